/* Large-world mode with spinning and rolling friction, with one lane that plays a card: one step
 * against the CPU's Newton where the solution is unique, balls that roll, spin and lie on a slope
 * against their laws, and the certificate, the warm start and the growth of memory. */
#include "large_scenes.h"

#ifdef __SANITIZE_ADDRESS__
enum { ROUNDS = 3 };
#else
enum { ROUNDS = 6 };
#endif

/* Friction of all shapes that are added from now on. */
static void choose(tb_contact_kind law, double spin, double rolling)
{
    kind = law;
    spin_radius = spin;
    rolling_length = rolling;
}

/* ---- one step ---- */

/* Balls of every law and several lengths that touch a plane, and no other ball. A frictionless ball
 * takes the plane's law, so that the plane has Coulomb's. */
static tb_model *scattered(bool with_box)
{
    enum { SIDE = 6 };
    static const tb_contact_kind kinds[] = {TB_CONTACT_FRICTIONLESS, TB_CONTACT_COULOMB,
                                            TB_CONTACT_SPIN, TB_CONTACT_ROLLING};
    uint32_t seed = 9;
    tb_scene *scene = new_scene();
    const tb_handle none = {0};
    friction = 0.3;
    choose(TB_CONTACT_COULOMB, 0, 0);
    add_part(scene, none, TB_SHAPE_PLANE, 0, 0, 0);
    if (with_box) place(scene, TB_SHAPE_BOX, (const double[]){-1, 0, 0.05}, 0.05, 0.05, 0.05, 0);
    for (int i = 0; i < SIDE * SIDE; i++) {
        const double radius = 0.05 * (1 + noise(&seed));
        friction = 0.5 + noise(&seed);
        choose(kinds[i % 4], i % 3 ? 0.5 * radius * (0.5 + noise(&seed)) : 0,
               i % 5 ? 0.2 * radius * (0.5 + noise(&seed)) : 0);
        place(scene, TB_SHAPE_SPHERE,
              (const double[]){0.3 * (i % SIDE), 0.3 * (i / SIDE), radius - 1e-5}, radius, 0, 0,
              noise(&seed));
    }
    return finish(scene);
}

/* Pushes bodies aside and turns them, from a dof on. */
static void stir(tb_state *state, int32_t first, uint32_t *seed)
{
    for (int32_t i = first; i < state->model->number_of_dofs; i++)
        if (i % 6 != 2) state->u[i] += (i % 6 < 3 ? 0.2 : 4) * noise(seed);
}

/* Velocities and impulses of one step; without recovery, which is part of the velocities in a large
 * world alone. */
static void compare_steps(tb_model *model, const char *solver, int32_t first, bool impulses)
{
    uint32_t seed = 4;
    tb_step_options options = options_of(1e-13), newton = options;
    options.recovery_speed = newton.recovery_speed = 0;
    options.solve.solver = solver;
    newton.solve.solver = "newton";
    tb_state *state = state_of(model);
    step_large(state, &options, 40, 0, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        tb_state *large = NULL, *cpu = NULL;
        tb_error error;
        stir(state, first, &seed);
        TEST_OK(tb_state_fork(state, &large, &error), &error);
        TEST_OK(tb_state_fork(state, &cpu, &error), &error);
        options.scheme = newton.scheme =
            round % 3 == 2 ? TB_SCHEME_MOREAU : TB_SCHEME_STEWART_TRINKLE;
        const tb_certificate a = step_large(large, &options, 1, 0, NULL);
        const tb_certificate b = step_cpu(cpu, &newton, 1);
        ck_assert_int_eq(a.status, TB_OK);
        ck_assert_double_le(a.residual, options.solve.tolerance);
        ck_assert_int_eq(a.rows, b.rows);
        ck_assert_int_gt(a.contacts, 20);
        check_contacts(large, cpu, 1e-12);
        ck_assert_double_le(largest_difference(large->u, cpu->u, model->number_of_dofs), 1e-9);
        for (int32_t i = 0; impulses && i < large->number_of_contacts; i++) {
            const tb_contact_record *x = &large->contacts[i], *y = &cpu->contacts[i];
            ck_assert_double_le(largest_difference(x->impulse, y->impulse, 6), 1e-9);
            ck_assert_double_le(largest_difference(x->velocity, y->velocity, 3), 1e-9);
            ck_assert_int_eq(x->status, y->status);
        }
        tb_state_destroy(large);
        tb_state_destroy(cpu);
        options.scheme = TB_SCHEME_STEWART_TRINKLE;
        step_large(state, &options, 10, 0, NULL);
    }
    tb_state_destroy(state);
    tb_model_destroy(model);
}

START_TEST(one_step_of_balls_of_every_law_is_that_of_the_cpu)
{
    compare_steps(scattered(false), "sor", 0, true);
    compare_steps(scattered(true), "sor", 0, false);
    compare_steps(scattered(false), "jor", 0, true);
}
END_TEST

START_TEST(one_step_of_balls_on_a_heavy_box_is_that_of_the_cpu)
{
    choose(TB_CONTACT_ROLLING, 0.01, 0.005);
    compare_steps(hub(), "sor", 6, false);
    choose(TB_CONTACT_SPIN, 0.02, 0);
    compare_steps(hub(), "sor", 6, false);
}
END_TEST

/* A ball in the middle of a table that turns at a given speed. */
START_TEST(a_table_that_turns_takes_a_ball_along)
{
    tb_error error;
    tb_scene *scene = new_scene();
    const tb_handle none = {0};
    friction = 0.4;
    choose(TB_CONTACT_SPIN, 0.02, 0);
    tb_body_def def = tb_body_defaults();
    def.kinematic = true;
    tb_handle table;
    TEST_OK(tb_scene_add_body(scene, &def, &table, &error), &error);
    add_part(scene, table, TB_SHAPE_CYLINDER, 0.5, 0.1, 0);
    add_part(scene, none, TB_SHAPE_SPHERE, 0.01, 0, 0); /* in the table, and fixed as it is */
    place(scene, TB_SHAPE_SPHERE, (const double[]){0, 0, 0.15}, 0.05, 0, 0, 0);
    tb_model *model = finish(scene);
    tb_state *state = state_of(model);
    state->kinematic[12] = 3;
    const tb_step_options options = options_of(1e-12);
    /* 2/3 mu spin_radius m g over 2/5 m R^2 */
    const double speed_up = 2.0 / 3 * 0.4 * 0.02 * 9.80665 * 2.5 / (0.05 * 0.05);
    step_large(state, &options, 10, 0, NULL);
    ck_assert_double_le(fabs(state->u[5] - 10 * options.dt * speed_up), 1e-3);
    step_large(state, &options, 200, 0, NULL);
    ck_assert_double_le(fabs(state->u[5] - 3), 1e-9);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

/* ---- laws ---- */

static const double RADIUS = 0.05, GRAVITY = 9.80665, DT = 2e-3;

/* One ball on a plane whose gravity leans towards x by this angle, and in worlds that are not round
 * a box that falls far away. */
static tb_model *ball_on_a_slope(double angle, bool round)
{
    tb_error error;
    tb_scene *scene = new_scene();
    const tb_handle none = {0};
    tb_scene_def options = tb_scene_options(scene);
    options.gravity[0] = GRAVITY * sin(angle);
    options.gravity[2] = -GRAVITY * cos(angle);
    TEST_OK(tb_scene_set_options(scene, &options, &error), &error);
    friction = 0.6;
    add_part(scene, none, TB_SHAPE_PLANE, 0, 0, 0);
    place(scene, TB_SHAPE_SPHERE, (const double[]){0, 0, RADIUS}, RADIUS, 0, 0, 0);
    if (!round) place(scene, TB_SHAPE_BOX, (const double[]){0, 9, 9}, 0.1, 0.1, 0.1, 0);
    return finish(scene);
}

/* A ball that rolls is slowed down by 5/7 g rolling_length / R; the energy 7/10 m v^2 is the work
 * rolling_length m g of the way over R. Steps take each velocity for the whole of dt. */
static void roll_to_rest(bool round)
{
    enum { STEPS = 40 };
    choose(TB_CONTACT_ROLLING, 0, 0.02);
    tb_model *model = ball_on_a_slope(0, round);
    tb_state *state = state_of(model);
    tb_step_options options = options_of(1e-13);
    options.dt = DT;
    const double slowing = 5.0 / 7 * GRAVITY * rolling_length / RADIUS,
                 start = STEPS * slowing * DT;
    state->u[0] = start;
    state->u[4] = start / RADIUS;
    for (int i = 1; i <= STEPS; i++) {
        step_large(state, &options, 1, 0, NULL);
        ck_assert_double_le(fabs(state->u[0] - (STEPS - i) * slowing * DT), 1e-10);
        ck_assert_double_le(fabs(RADIUS * state->u[4] - state->u[0]), 1e-10);
    }
    const double way = 0.7 * start * start * RADIUS / (rolling_length * GRAVITY);
    ck_assert_double_le(fabs(state->q[0] - (way - start * DT / 2)), 1e-9);
    step_large(state, &options, 20, 0, NULL);
    ck_assert_double_le(fabs(state->u[0]), 1e-10);
    tb_state_destroy(state);
    tb_model_destroy(model);
}

START_TEST(rolling_friction_stops_a_ball_after_its_way)
{
    roll_to_rest(true);
    roll_to_rest(false);
}
END_TEST

/* A spinning ball is slowed down by 2/3 mu spin_radius m g over 2/5 m R^2. */
static void spin_to_rest(bool round)
{
    enum { STEPS = 40 };
    choose(TB_CONTACT_SPIN, 0.01, 0);
    tb_model *model = ball_on_a_slope(0, round);
    tb_state *state = state_of(model);
    tb_step_options options = options_of(1e-13);
    options.dt = DT;
    const double slowing = 2.0 / 3 * friction * spin_radius * GRAVITY * 2.5 / (RADIUS * RADIUS);
    state->u[5] = (STEPS - 0.5) * slowing * DT;
    for (int i = 1; i <= STEPS + 2; i++) {
        step_large(state, &options, 1, 0, NULL);
        const double expected = fmax(STEPS - 0.5 - i, 0) * slowing * DT;
        ck_assert_double_le(fabs(state->u[5] - expected), 1e-9);
    }
    const tb_contact_record *r = &state->contacts[0];
    ck_assert_int_eq(r->kind, TB_CONTACT_SPIN);
    tb_state_destroy(state);
    tb_model_destroy(model);
}

START_TEST(spinning_friction_stops_a_ball_in_its_time)
{
    spin_to_rest(true);
    spin_to_rest(false);
}
END_TEST

/* A ball on a slope rests up to tan(angle) = rolling_length / R and rolls by
 * 5/7 g (sin(angle) - rolling_length / R cos(angle)) beyond. */
static void lean(double share, bool round)
{
    enum { STEPS = 50 };
    choose(TB_CONTACT_ROLLING, 0.01, 0.01);
    const double angle = atan(share * rolling_length / RADIUS);
    tb_model *model = ball_on_a_slope(angle, round);
    tb_state *state = state_of(model);
    tb_step_options options = options_of(1e-13);
    options.dt = DT;
    step_large(state, &options, STEPS, 0, NULL);
    const double drive = sin(angle) - rolling_length / RADIUS * cos(angle);
    const double expected = fmax(5.0 / 7 * GRAVITY * drive * STEPS * DT, 0);
    ck_assert_double_le(fabs(state->u[0] - expected), 1e-9);
    ck_assert_double_le(fabs(RADIUS * state->u[4] - expected), 1e-9);
    const tb_contact_record *r = &state->contacts[0];
    const double torque = hypot(r->impulse[4], r->impulse[5]);
    ck_assert_int_eq(r->kind, TB_CONTACT_ROLLING);
    ck_assert_double_le(fabs(torque - fmin(share, 1) * rolling_length * r->impulse[0]), 1e-9);
    tb_state_destroy(state);
    tb_model_destroy(model);
}

START_TEST(a_ball_on_a_slope_rests_or_rolls)
{
    static const double shares[] = {0.5, 0.99, 1.01, 2};
    for (int i = 0; i < 4; i++) {
        lean(shares[i], true);
        lean(shares[i], false);
    }
}
END_TEST

/* ---- worlds of many contacts ---- */

/* The CPU starts the same step from the impulses that a large world ended with, and its only sweep
 * moves them by nothing: its residual is that of the large world. */
static void confirm_rolls(tb_model *model, int32_t sweeps)
{
    tb_error error;
    tb_step_options options = options_of(1e-9);
    tb_state *large = state_of(model), *cpu = NULL;
    options.recovery_speed = 0;
    step_large(large, &options, 30, 0, NULL);
    for (int32_t i = 0; i < model->number_of_dofs; i++) large->u[i] += 0.01 * (i % 5);
    TEST_OK(tb_state_fork(large, &cpu, &error), &error);
    options.solve.maximum_iterations = sweeps;
    const tb_certificate a = step_large(large, &options, 1, 0, NULL);
    const int32_t contacts = large->number_of_contacts;
    ck_assert_int_eq(tb_state_reserve_next(cpu, contacts), TB_OK);
    memcpy(cpu->next_contacts, large->contacts, (size_t)contacts * sizeof *large->contacts);
    tb_state_take_next(cpu, contacts);
    options.solve.maximum_iterations = 1;
    options.solve.omega = 1e-13;
    options.solve.solver = "jor"; /* it spreads no load before its sweeps */
    const tb_certificate b = step_cpu(cpu, &options, 1);
    ck_assert_int_eq(a.rows, b.rows);
    ck_assert_double_gt(a.residual, 1e-9);
    ck_assert_double_le(fabs(a.residual - b.residual), 1e-9 * a.residual + 1e-12);
    ck_assert_double_le(fabs(a.complementarity_error - b.complementarity_error),
                        1e-9 * a.complementarity_error + 1e-12);
    ck_assert_double_le(fabs(a.cone_error - b.cone_error), 1e-12);
    ck_assert_double_le(largest_difference(large->u, cpu->u, model->number_of_dofs), 1e-9);
    tb_state_destroy(large);
    tb_state_destroy(cpu);
    tb_model_destroy(model);
}

START_TEST(what_the_certificate_says_the_cpu_confirms)
{
    choose(TB_CONTACT_ROLLING, 0.01, 0.005);
    confirm_rolls(pile(0.5), 7);
    confirm_rolls(mixed(0.5), 12);
    choose(TB_CONTACT_SPIN, 0.01, 0);
    confirm_rolls(pile(0.5), 7);
    confirm_rolls(mixed(0.5), 12);
}
END_TEST

START_TEST(calls_and_room_do_not_matter)
{
    choose(TB_CONTACT_ROLLING, 0.01, 0.005);
    compare_calls(pile(0.5));
    compare_calls(mixed(0.5));
}
END_TEST

static void settle(const char *name, tb_model *model, tb_precision precision, int32_t savings)
{
    tb_step_options options = options_of(precision == TB_FLOAT ? 1e-4 : 1e-6);
    options.precision = precision;
    tb_state *state = state_of(model);
    step_large(state, &options, 200, 0, NULL);
    const tb_certificate warm = step_large(state, &options, 1, 0, NULL);
    options.solve.warm_start = false;
    const tb_certificate cold = step_large(state, &options, 1, 0, NULL);
    ck_assert_int_eq(warm.status, TB_OK);
    ck_assert_int_eq(cold.status, TB_OK);
    ck_assert_int_gt(warm.rows, 5 * warm.contacts);
    ck_assert_int_gt(warm.contacts, 100);
    ck_assert_int_ge(cold.iterations, savings * warm.iterations);
    printf("%s, %s: %d sweeps, %d from nothing\n", name, precision == TB_FLOAT ? "float" : "double",
           warm.iterations, cold.iterations);
    tb_state_destroy(state);
    tb_model_destroy(model);
}

/* Impulses of the last step spare a world at rest its sweeps. */
START_TEST(worlds_settle_within_the_tolerance)
{
    choose(TB_CONTACT_ROLLING, 0.01, 0.005);
    settle("pile", pile(0.5), TB_DOUBLE, 0);
    settle("pile", pile(0.5), TB_FLOAT, 0);
    settle("balls on a box", hub(), TB_DOUBLE, 10);
    settle("balls on a box", hub(), TB_FLOAT, 10);
}
END_TEST

TEST_MAIN(one_step_of_balls_of_every_law_is_that_of_the_cpu,
          one_step_of_balls_on_a_heavy_box_is_that_of_the_cpu,
          a_table_that_turns_takes_a_ball_along, rolling_friction_stops_a_ball_after_its_way,
          spinning_friction_stops_a_ball_in_its_time, a_ball_on_a_slope_rests_or_rolls,
          what_the_certificate_says_the_cpu_confirms, calls_and_room_do_not_matter,
          worlds_settle_within_the_tolerance)
