/* The volume law against Göteman and Roxling (2015), chapters 6 and 7, on their scenes.
 *
 * Resting forces, the decay of a spin, the Tippe Top, numbers of force evaluations, and the balance
 * of energy, which is exact up to the integrator's error because the contacts' work is integrated
 * with the motion. */
#include "../unit/scene_util.h"
#include "common_truth.h"

typedef struct played {
    tb_model *model;
    tb_state *state;
    tb_stepper *stepper;
    tb_certificate worst; /* of all steps */
} played;

static tb_error error;

static played play_begin(const char *scene, const char *integrator, double tolerance, double dt)
{
    played p = {0};
    p.model = named_model(scene);
    tb_step_options options = tb_step_defaults();
    options.scheme = TB_SCHEME_VOLUME;
    options.solve.solver = integrator;
    options.solve.tolerance = tolerance;
    options.dt = dt;
    options.report_energy = true;
    TEST_OK(tb_stepper_create(&options, &p.stepper, &error), &error);
    TEST_OK(tb_state_create(p.model, &p.state, &error), &error);
    TEST_OK(tb_state_reset(p.state, tb_model_find(p.model, TB_HANDLE_KEYFRAME, "start"), &error),
            &error);
    return p;
}

static void play(played *p, int32_t steps)
{
    tb_certificate c;
    TEST_OK(tb_step(p->stepper, p->state, steps, &c, &error), &error);
    tb_certificate_merge(&p->worst, &c);
}

static void play_end(played *p)
{
    tb_state_destroy(p->state);
    tb_stepper_destroy(p->stepper);
    tb_model_destroy(p->model);
}

/* Sum of all contact forces, N, and their torque about a point, N m. */
static void forces(const played *p, double dt, const double about[3], double force[3],
                   double torque[3])
{
    memset(force, 0, 3 * sizeof *force);
    memset(torque, 0, 3 * sizeof *torque);
    for (int32_t i = 0; i < tb_state_number_of_contacts(p->state); i++) {
        tb_contact_info c;
        double f[3];
        TEST_OK(tb_state_contact(p->state, i, &c), NULL);
        for (int k = 0; k < 3; k++)
            f[k] = (c.impulse[0] * c.normal[k] + c.impulse[1] * c.tangent1[k] +
                    c.impulse[2] * c.tangent2[k]) /
                   dt;
        for (int k = 0; k < 3; k++) {
            const int i1 = (k + 1) % 3, i2 = (k + 2) % 3;
            force[k] += f[k];
            torque[k] +=
                (c.position[i1] - about[i1]) * f[i2] - (c.position[i2] - about[i2]) * f[i1];
        }
    }
}

/* The thesis's y is our z, its frame the cube's lower corner: (0, mg, 0) N, (mg/2)(-1, 0, 1) N
 * m. */
START_TEST(a_cube_at_rest_is_carried_with_its_weight)
{
    double force[3], torque[3];
    const double corner[3] = {-0.5, -0.5, 0};
    played p = play_begin("cube_drop", "rkfix4", 1e-8, 0.001);
    play(&p, 8000);
    forces(&p, 0.001, corner, force, torque);
    TRUTH_CHECK("volume law: cube at rest, force 9810 N", fabs(force[2] / 9810 - 1), 1e-3);
    TRUTH_CHECK("volume law: cube at rest, torque +-4905 N m",
                fmax(fabs(torque[0] / 4905 - 1), fabs(torque[1] / -4905 - 1)), 1e-3);
    TRUTH_CHECK("volume law: cube at rest, sideways N", hypot(force[0], force[1]), 1e-3);
    play_end(&p);
}
END_TEST

START_TEST(a_ring_hangs_on_both_prongs_of_a_fork)
{
    double force[3], torque[3];
    const double origin[3] = {0, 0, 0};
    played p = play_begin("fork_ring", "rkfix4", 1e-8, 0.01);
    play(&p, 500);
    forces(&p, 0.01, origin, force, torque);
    ck_assert_int_eq(tb_state_number_of_contacts(p.state), 2);
    TRUTH_CHECK("volume law: fork and ring, force 7357.5 N", fabs(force[2] / 7357.5 - 1), 1e-3);
    play_end(&p);
}
END_TEST

/* Both overlaps pushed as one contact: the thesis's "splitting off". */
START_TEST(a_ring_on_a_fork_may_be_pushed_at_one_point)
{
    played p = play_begin("fork_ring_joined", "rkfix4", 1e-8, 0.01);
    int32_t most = 0;
    for (int i = 0; i < 100; i++) {
        play(&p, 1);
        most = most > tb_state_number_of_contacts(p.state) ? most
                                                           : tb_state_number_of_contacts(p.state);
    }
    ck_assert_int_eq(most, 1);
    play_end(&p);
}
END_TEST

/* A cube of a softer material than its ground: E = 2 E1 E2 / (E1 + E2), and it rests at the depth
 * m g / (E 0.7523 sqrt(A)), since F = E 0.7523 sqrt(A d d). */
START_TEST(a_soft_cube_sinks_by_its_own_constants)
{
    static const char SOFT[] = "<custom><text name=\"volume_law:cube\" data=\"elasticity=2e6 "
                               "damping=3\"/></custom></mujoco>";
    const double e = 2 * 2e6 * 1e7 / (2e6 + 1e7), k = 4 / (3 * sqrt(acos(-1.)));
    unsigned char *text;
    size_t size;
    tb_scene *s;
    tb_model *model;
    tb_state *state;
    tb_stepper *stepper;
    tb_certificate c;
    TEST_OK(tb_named_scene_mjcf("cube_drop", &text, &size, &error), &error);
    char *longer = malloc(size + sizeof SOFT);
    memcpy(longer, text, size);
    strcpy(strstr(longer, "</mujoco>"), SOFT);
    TEST_OK(tb_scene_load_mjcf(longer, strlen(longer), "soft", NULL, &s, &error), &error);
    TEST_OK(tb_scene_compile(s, &model, &error), &error);
    tb_step_options options = tb_step_defaults();
    options.scheme = TB_SCHEME_VOLUME;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    TEST_OK(tb_state_create(model, &state, &error), &error);
    TEST_OK(tb_step(stepper, state, 6000, &c, &error), &error);
    tb_contact_info contact;
    TEST_OK(tb_state_contact(state, 0, &contact), NULL);
    TRUTH_CHECK("volume law: soft cube at rest, depth", fabs(-contact.gap * e * k / 9810 - 1),
                1e-3);
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    tb_model_destroy(model);
    tb_scene_destroy(s);
    tb_bytes_destroy(text);
    free(longer);
}
END_TEST

/* w = exp(-t / tau), tau = I / (A F c_r) = 166.7 / (9810 0.02) s; the cube begins at its resting
 * depth. */
START_TEST(a_spin_decays_by_rotational_damping)
{
    tb_body_motion m;
    const double tau = 1000. / 6 / (9810 * 0.02);
    played p = play_begin("cube_spin", "rkfix4", 1e-8, 0.001);
    play(&p, 850);
    TEST_OK(tb_state_body_motion(p.state, tb_model_find(p.model, TB_HANDLE_BODY, "cube"), &m),
            NULL);
    TRUTH_CHECK("volume law: cube spin, tau 0.85 s",
                fabs(-0.85 / log(m.angular_velocity[2]) / tau - 1), 0.02);
    play_end(&p);
}
END_TEST

/* Section 9.1.4: the spin about the stem vanishes where the stem is horizontal, is negative afterwards, and thus goes on
 * in its direction in the world. Friction takes some of it before, so that it vanishes a little later. */
START_TEST(the_tippe_top_inverts)
{
    double inverted = INFINITY, lowest = 1, gain = 0, before = INFINITY;
    double horizontal = INFINITY, still = INFINITY, spin = 0;
    played p = play_begin("tippe_top", "rkfix4", 1e-8, 1e-4);
    const int32_t body = tb_model_find(p.model, TB_HANDLE_BODY, "top");
    for (int i = 0; i < 330; i++) {
        tb_body_motion m;
        play(&p, 100);
        TEST_OK(tb_state_body_motion(p.state, body, &m), NULL);
        const double *q = m.orientation, cosine = 1 - 2 * (q[1] * q[1] + q[2] * q[2]);
        const double energy = tb_state_energy(p.state), time = tb_state_time(p.state);
        const double *w = m.angular_velocity;
        spin = 2 * (q[1] * q[3] + q[0] * q[2]) * w[0] + 2 * (q[2] * q[3] - q[0] * q[1]) * w[1] +
               cosine * w[2];
        if (cosine <= 0) horizontal = fmin(horizontal, time);
        if (spin <= 0) still = fmin(still, time);
        gain = fmax(gain, energy - before);
        before = energy;
        if (cosine < -0.99) inverted = fmin(inverted, time);
        lowest = fmin(lowest, cosine);
    }
    TRUTH_CHECK("volume law: Tippe Top on its stem, 1 + cosine", 1 + lowest, 0.01);
    TRUTH_CHECK("volume law: Tippe Top inverted, s", inverted, 3.3);
    TRUTH_CHECK("volume law: Tippe Top, spin vanishes after the stem is horizontal, s",
                fabs(still - horizontal), 0.05);
    TRUTH_CHECK("volume law: Tippe Top, spin at the end, of the first", 1 + spin / 180, 0.5);
    TRUTH_CHECK("volume law: Tippe Top, gain of energy, J", gain, 1e-5);
    play_end(&p);
}
END_TEST

/* Springs between balls dissipate nothing: the missing energy is the integrator's error. */
START_TEST(elastic_impacts_keep_their_energy_to_the_tolerance)
{
    static const struct {
        const char *integrator;
        double tolerance, dt, limit; /* of the energy */
    } CASES[] = {{"rkfix4", 1e-8, 0.001, 1e-7}, {"cerk23", 1e-7, 0.01, 1e-5},
                 {"cerk34", 1e-8, 0.01, 1e-6},  {"cerk45", 1e-9, 0.01, 1e-6},
                 {"cvode", 1e-9, 0.1, 1e-5},    {"cvode_adams", 1e-9, 0.1, 1e-5},
                 {"ida", 1e-9, 0.1, 1e-5},      {"arkode", 1e-9, 0.1, 1e-5}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char name[96];
        tb_error refusal = {0};
        played p = play_begin("billiards_10", CASES[i].integrator, CASES[i].tolerance, CASES[i].dt);
        const double before = tb_state_energy(p.state);
        const tb_status status =
            tb_step(p.stepper, p.state, (int32_t)(1 / CASES[i].dt + 0.5), &p.worst, &refusal);
        if (status == TB_UNSUPPORTED && strstr(refusal.message, "SUNDIALS")) {
            play_end(&p);
            continue;
        }
        TEST_OK(status, &refusal);
        snprintf(name, sizeof name, "volume law: energy of impacts, %s, %d evaluations",
                 CASES[i].integrator, p.worst.iterations);
        ck_assert_int_gt(p.worst.iterations, 100);
        TRUTH_CHECK(name, fabs(p.worst.energy_unexplained) / before, CASES[i].limit);
        play_end(&p);
    }
}
END_TEST

/* Hertz: F = 4/3 E sqrt(R) d^1.5 with R half the radius of equal balls; its energy is kept, too. */
START_TEST(balls_without_springs_repel_each_other_by_hertz)
{
    played p = play_begin("billiards_hertz_10", "rkfix4", 1e-8, 1e-4);
    const double before = tb_state_energy(p.state);
    double worst = 0;
    int32_t seen = 0;
    for (int i = 0; i < 3000; i++) {
        play(&p, 1);
        for (int32_t k = 0; k < tb_state_number_of_contacts(p.state); k++) {
            tb_contact_info c;
            TEST_OK(tb_state_contact(p.state, k, &c), NULL);
            if (-c.gap < 1e-5) continue;
            const double force = 4. / 3 * 1e7 * sqrt(0.25) * pow(-c.gap, 1.5);
            worst = fmax(worst, fabs(c.impulse[0] / 1e-4 / force - 1));
            seen++;
        }
    }
    ck_assert_int_gt(seen, 100);
    TRUTH_CHECK("volume law: Hertz between balls, force", worst, 1e-9);
    TRUTH_CHECK("volume law: Hertz between balls, energy",
                fabs(p.worst.energy_unexplained) / before, 1e-6);
    play_end(&p);
}
END_TEST

/* The thesis counts 6,686 evaluations for 1,000 steps of 512 prisms; rkfix4 needs 4 a step. */
START_TEST(runs_repeat_and_continue_from_snapshots_byte_by_byte)
{
    unsigned char *bytes;
    size_t size;
    played p = play_begin("prisms_27", "rkfix4", 1e-8, 0.001),
           q = play_begin("prisms_27", "rkfix4", 1e-8, 0.001);
    play(&p, 450);
    ck_assert_int_eq(p.worst.iterations, 1800);
    TEST_OK(tb_state_snapshot(p.state, &bytes, &size, &error), &error);
    TEST_OK(tb_state_restore(q.state, bytes, size, &error), &error);
    tb_bytes_destroy(bytes);
    play(&p, 50);
    play(&q, 50);
    ck_assert_int_gt(tb_state_number_of_contacts(p.state), 8);
    ck_assert(tb_state_hash(p.state) == tb_state_hash(q.state));
    play_end(&p);
    play_end(&q);
}
END_TEST

/* 5,051 balls, so that threads share the loops over trees, shapes and pairs. */
START_TEST(one_world_has_the_same_bytes_with_any_number_of_threads)
{
    uint64_t hashes[2];
    tb_certificate worst[2];
    for (int i = 0; i < 2; i++) {
        played p = play_begin("billiards", "rkfix4", 1e-8, 0.01);
        tb_step_options options = tb_stepper_options(p.stepper);
        options.threads = i == 0 ? 1 : 3;
        TEST_OK(tb_stepper_set_options(p.stepper, &options, &error), &error);
        play(&p, 80);
        ck_assert_int_gt(tb_state_number_of_contacts(p.state), 10);
        hashes[i] = tb_state_hash(p.state);
        worst[i] = p.worst;
        play_end(&p);
    }
    ck_assert(hashes[0] == hashes[1]);
    ck_assert(memcmp(&worst[0], &worst[1], sizeof worst[0]) == 0);
}
END_TEST

/* A step takes the energy at its start from the step before, unless somebody has moved the state. */
START_TEST(the_energy_at_a_steps_start_is_that_of_the_state)
{
    played p = play_begin("cube_drop", "rkfix4", 1e-8, 0.001);
    tb_certificate c;
    for (int i = 0; i < 6; i++) {
        TEST_OK(tb_step(p.stepper, p.state, 1, &c, &error), &error);
        const double before = c.energy;
        if (i % 2 == 1) {
            double q[7];
            memcpy(q, tb_state_q(p.state), sizeof q);
            q[2] += 1;
            TEST_OK(tb_state_set_q(p.state, q, 7, &error), &error);
        }
        TEST_OK(tb_step(p.stepper, p.state, 1, &c, &error), &error);
        const double raised = c.energy - c.energy_change - before;
        if (i % 2 == 1)
            ck_assert_double_gt(raised, 100); /* J: a metre higher */
        else
            ck_assert_double_eq(raised, 0);
    }
    play_end(&p);
}
END_TEST

TEST_MAIN(a_cube_at_rest_is_carried_with_its_weight, a_ring_hangs_on_both_prongs_of_a_fork,
          a_ring_on_a_fork_may_be_pushed_at_one_point, a_soft_cube_sinks_by_its_own_constants,
          a_spin_decays_by_rotational_damping, the_tippe_top_inverts,
          elastic_impacts_keep_their_energy_to_the_tolerance,
          balls_without_springs_repel_each_other_by_hertz,
          runs_repeat_and_continue_from_snapshots_byte_by_byte,
          one_world_has_the_same_bytes_with_any_number_of_threads,
          the_energy_at_a_steps_start_is_that_of_the_state)
