/* Large-world mode with meshes and height fields against the CPU's step: the same contacts on rough
 * ground, in a funnel, on a height field and on a mesh that moves; nothing falls through. */
#include "large_compare.h"
#include "large_surfaces.h"

enum { SHAPES = 72, FALLING_STEPS = 300 };

static const double HEIGHT = 0.09; /* m, of the lowest shapes over the ground */

static const char *const names[] = {"rough mesh", "funnel", "height field", "moved mesh"};

START_TEST(one_step_on_a_mesh_or_a_height_field_is_that_of_the_cpu)
{
    for (int base = ROUGH; base <= MOVED; base++)
        for (int balls = 0; balls < 2; balls++)
            compare_steps(names[base], grounded((ground_kind)base, balls, 0, SHAPES, HEIGHT), 1e-9,
                          1e-13);
}
END_TEST

START_TEST(contacts_with_friction_are_those_of_the_cpu)
{
    for (int base = ROUGH; base <= MOVED; base++)
        for (int balls = 0; balls < 2; balls++)
            compare_steps(names[base], grounded((ground_kind)base, balls, 0.5, SHAPES, HEIGHT), 0,
                          1e-8);
}
END_TEST

START_TEST(contacts_with_rolling_friction_are_those_of_the_cpu)
{
    kind = TB_CONTACT_ROLLING;
    spin_radius = 0.01, rolling_length = 0.005;
    for (int balls = 0; balls < 2; balls++)
        compare_steps("rolling", grounded(ROUGH, balls, 0.5, SHAPES, HEIGHT), 0, 1e-8);
    kind = TB_CONTACT_COULOMB;
    spin_radius = rolling_length = 0;
}
END_TEST

/* The least height of the bodies' centres over the ground, m. */
static double least_height(const tb_state *state, ground_kind base)
{
    double least = INFINITY;
    tb_vec3 at = tb_v3(0, 0, 0);
    tb_quaternion turn = base == FUNNEL
                             ? tb_q(1, 0, 0, 0)
                             : tb_q(cos(TILT / 2), 0.6 * sin(TILT / 2), 0.8 * sin(TILT / 2), 0);
    if (base == MOVED) {
        at = tb_v3_load(state->kinematic);
        turn = tb_q_load(state->kinematic + 3);
    }
    const tb_mat33 rotation = tb_q_matrix(turn);
    for (int32_t i = 0; i < state->model->number_of_coordinates; i += 7) {
        const tb_vec3 p = tb_m33_tmul_v3(&rotation, tb_v3_sub(tb_v3_load(state->q + i), at));
        double ground[3] = {0, 0, ground_height(p.x, p.y) - 0.2};
        if (base == FUNNEL) on_funnel((p.x + 0.8) / 1.6, (p.y + 0.8) / 1.6, ground);
        least = fmin(least, p.z - ground[2]);
    }
    return least;
}

/* All shapes come to lie on the ground, with the residual within the tolerance in the end. */
static void fall(ground_kind base, bool balls, tb_precision precision)
{
    tb_step_options options = options_of(1e-5);
    options.precision = precision;
    if (precision == TB_FLOAT) options.solve.tolerance = 1e-4;
    tb_model *model = grounded(base, balls, 0.5, SHAPES, HEIGHT);
    tb_state *state = state_of(model);
    move_kinematic(state);
    const tb_certificate all = step_large(state, &options, FALLING_STEPS, 0, NULL);
    const tb_certificate last = step_large(state, &options, 1, 0, NULL);
    const double height = least_height(state, base);
    printf("%s, %s: %d contacts, %d sweeps, residual %.2g, penetration %.2g, height %.3g\n",
           names[base], balls ? "balls" : "all shapes", all.contacts, all.iterations, all.residual,
           last.penetration, height);
    ck_assert_int_eq(last.status, TB_OK);
    ck_assert_double_le(last.residual, options.solve.tolerance);
    ck_assert_double_le(all.residual, 0.01); /* some steps keep one, as on the CPU */
    ck_assert_int_gt(all.contacts, SHAPES);
    ck_assert_double_le(last.penetration, 2e-3);
    ck_assert_double_gt(height, 0.01);
    tb_state_destroy(state);
    tb_model_destroy(model);
}

START_TEST(nothing_falls_through)
{
    for (int base = ROUGH; base <= MOVED; base++) {
        fall((ground_kind)base, false, TB_DOUBLE);
        fall((ground_kind)base, true, TB_DOUBLE);
        fall((ground_kind)base, base % 2 == 0, TB_FLOAT);
    }
}
END_TEST

START_TEST(room_does_not_matter)
{
    tb_step_options options = options_of(1e-5);
    for (int base = ROUGH; base <= FIELD; base++)
        check_room(large_played_step,
                   grounded((ground_kind)base, base == FUNNEL, 0.5, SHAPES, HEIGHT), &options, 60);
}
END_TEST

START_TEST(one_step_of_moving_meshes_is_that_of_the_cpu)
{
    compare_steps("jacks", jacks(0, 32), 1e-9, 1e-13);
    compare_steps("jacks with friction", jacks(0.5, 32), 0, 1e-8);
}
END_TEST

/* Most contacts of a pair. */
static int32_t most_of_a_pair(const tb_state *state)
{
    int32_t most = 0, count = 0;
    for (int32_t i = 0; i < state->number_of_contacts; i++) {
        const tb_contact_record *r = &state->contacts[i];
        count = i > 0 && r->shape_a == r[-1].shape_a && r->shape_b == r[-1].shape_b ? count + 1 : 1;
        most = count > most ? count : most;
    }
    return most;
}

START_TEST(a_pair_has_more_points_than_a_unit)
{
    for (int box = 0; box < 2; box++) {
        compare_steps("cone", cone(0, box), 1e-9, 1e-13);
        compare_steps("cone with friction", cone(0.5, box), 0, 1e-8);
        const tb_step_options options = options_of(1e-6);
        tb_model *model = cone(0.5, box);
        tb_state *state = state_of(model);
        const tb_certificate certificate = step_large(state, &options, FALLING_STEPS, 0, NULL);
        ck_assert_int_gt(most_of_a_pair(state), TB_MANIFOLD_POINTS);
        ck_assert_int_eq(certificate.status, TB_OK);
        tb_state_destroy(state);
        tb_model_destroy(model);
    }
}
END_TEST

TEST_MAIN(one_step_on_a_mesh_or_a_height_field_is_that_of_the_cpu,
          contacts_with_friction_are_those_of_the_cpu,
          contacts_with_rolling_friction_are_those_of_the_cpu, nothing_falls_through,
          room_does_not_matter, one_step_of_moving_meshes_is_that_of_the_cpu,
          a_pair_has_more_points_than_a_unit)
