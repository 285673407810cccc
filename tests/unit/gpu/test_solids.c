/* Worlds of solids by the volume law: a card beside the processor on the scenes of Göteman and Roxling, chapter 7. Where
 * there is no card, one that the processor plays runs the kernel. TRIBO_TEST_SOLIDS_STEPS asks for more steps
 * than a played card has time for, TRIBO_TEST_SOLIDS_SCENE for one scene alone. */
#include "penalty/card/body_law.h"
#include "volume_util.h"

/* Both integrators on one scene, after some steps of the processor; contacts: in one step at the least. */
static void compare_scene(const char *scene, int32_t before, int32_t played_steps, int32_t contacts)
{
    static const char *const INTEGRATORS[] = {"symplectic", "rkfix4"};
    find_card();
    const char *asked = getenv("TRIBO_TEST_SOLIDS_SCENE");
    const int32_t steps = steps_asked("TRIBO_TEST_SOLIDS_STEPS", played_steps);
    if (asked != NULL && strcmp(asked, scene) != 0) return;
    tb_model *model = named_model(scene);
    for (int i = 0; i < 2; i++) {
        bool equal;
        const double most = compare(model, INTEGRATORS[i], steps, contacts, before, &equal);
        printf("%s, %s, %d steps: %s, %.3g\n", scene, INTEGRATORS[i], (int)steps,
               equal ? "equal bytes" : "apart", most);
        ck_assert_double_le(most, 1e-10);
        ck_assert(equal);
    }
    tb_model_destroy(model);
}

#define SCENE_TEST(scene, before, steps, contacts)                                                 \
    START_TEST(scene##_moves_as_on_the_processor)                                                  \
    {                                                                                              \
        compare_scene(#scene, before, steps, contacts);                                            \
    }                                                                                              \
    END_TEST

SCENE_TEST(cube_drop, 0, 600, 1)
SCENE_TEST(cube_friction, 0, 200, 1)
SCENE_TEST(cube_spin, 0, 200, 1)
SCENE_TEST(fork_ring, 0, 50, 2)
SCENE_TEST(fork_ring_joined, 0, 50, 1)
SCENE_TEST(prisms_27, 0, 450, 9)
SCENE_TEST(bucket, 0, 100, 15)
SCENE_TEST(geneva, 640, 40, 1)
SCENE_TEST(tippe_top, 0, 300, 1)

/* Worlds that a team of blocks each steps, and that share blocks by turns, have the bytes of one alone. */
START_TEST(worlds_do_not_depend_on_their_neighbours)
{
    enum { WORLDS = 19 };
    tb_model *model = named_model("prisms_27");
    tb_state *together[WORLDS], *alone;
    tb_certificate certificates[WORLDS], single;
    tb_error error;
    find_card();
    tb_stepper *card = stepper_by(TB_BACKEND_GPU, "symplectic", false);
    for (int32_t i = 0; i < WORLDS; i++) {
        start(model, &together[i], i);
        together[i]->u[2] = -4;
    }
    TEST_OK(tb_step_batch(card, together, WORLDS, 220, certificates, &error), &error);
    for (int32_t i = 0; i < WORLDS; i++) {
        start(model, &alone, i);
        alone->u[2] = -4;
        TEST_OK(tb_step(card, alone, 150, &single, &error), &error);
        TEST_OK(tb_step(card, alone, 70, &single, &error), &error);
        const tb_model *m = alone->model;
        ck_assert_mem_eq(alone->q, together[i]->q,
                         (size_t)m->number_of_coordinates * sizeof(double));
        ck_assert_mem_eq(alone->u, together[i]->u, (size_t)m->number_of_dofs * sizeof(double));
        ck_assert_int_eq(alone->number_of_contacts, together[i]->number_of_contacts);
        ck_assert_int_gt(certificates[i].contacts, 0);
        tb_state_destroy(alone);
        tb_state_destroy(together[i]);
    }
    tb_stepper_destroy(card);
    tb_model_destroy(model);
}
END_TEST

/* Boxes far from each other, and later all within each other: the memory of near pairs grows. With `rings`
 * their pieces are many, and the memory of fragments grows too. */
static void meet_in_the_middle(bool rings)
{
    enum { BOXES = 20 };
    static char text[20000];
    size_t at = (size_t)snprintf(
        text, sizeof text,
        "<mujoco><option timestep=\"0.01\" gravity=\"0 0 0\"/><custom>"
        "<text name=\"volume_law\" data=\"elasticity=10\"/></custom>%s<worldbody>",
        rings
            ? "<asset><mesh name=\"ell\" inertia=\"exact\" vertex=\"0 0 0 1 0 0 1 .4 0 .4 .4 0 .4 "
              "1 0 0 1 0 0 0 .5 1 0 .5 1 .4 .5 .4 .4 .5 .4 1 .5 0 1 .5\" face=\"0 2 1 0 3 2 0 4 3 "
              "0 "
              "5 4 6 7 8 6 8 9 6 9 10 6 10 11 0 1 7 0 7 6 1 2 8 1 8 7 2 3 9 2 9 8 3 4 10 3 10 9 4 "
              "5 "
              "11 4 11 10 5 0 6 5 6 11\"/></asset>"
            : "");
    for (int i = 0; i < BOXES; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "<body pos=\"%g %g 0\"><freejoint/><geom type=\"%s\"/></body>",
                               5.0 * (i % 5) - 10, 5.0 * (i / 5) - 7.5,
                               rings ? "sdf\" mesh=\"ell" : "box\" size=\".6 .5 .4");
    at += (size_t)snprintf(text + at, sizeof text - at, "</worldbody></mujoco>");
    ck_assert(at < sizeof text);
    tb_model *model = written(text);
    tb_state *a, *b;
    tb_certificate ca, cb;
    tb_error error;
    tb_stepper *cpu = stepper_by(TB_BACKEND_CPU, "rkfix2", false),
               *card = stepper_by(TB_BACKEND_GPU, "rkfix2", false);
    start(model, &a, 0);
    start(model, &b, 0);
    for (int i = 0; i < BOXES; i++)
        for (int k = 0; k < 2; k++)
            a->u[6 * i + k] = b->u[6 * i + k] = -2 * a->q[7 * i + k]; /* all meet after 0.5 s */
    TEST_OK(tb_step(cpu, a, 50, &ca, &error), &error);
    TEST_OK(tb_step(card, b, 50, &cb, &error), &error);
    ck_assert_int_eq(ca.contacts, cb.contacts);
    ck_assert_int_gt(ca.contacts, 100);
    ck_assert_double_le(farthest(a->q, b->q, a->model->number_of_coordinates), 1e-10);
    tb_state_destroy(a);
    tb_state_destroy(b);
    tb_stepper_destroy(cpu);
    tb_stepper_destroy(card);
    tb_model_destroy(model);
}

START_TEST(the_room_of_a_world_grows)
{
    find_card();
    meet_in_the_middle(false);
    meet_in_the_middle(true);
}
END_TEST

START_TEST(a_world_that_diverges_is_frozen_at_the_processors_step)
{
    tb_model *model = named_model("prisms_27");
    tb_state *states[3], *beside;
    tb_certificate certificate;
    tb_error error;
    find_card();
    tb_stepper *cpu = stepper_by(TB_BACKEND_CPU, "rkfix4", false),
               *card = stepper_by(TB_BACKEND_GPU, "rkfix4", false);
    for (int i = 0; i < 3; i++) start(model, &states[i], 0);
    start(model, &beside, 0);
    states[1]->u[6] = beside->u[6] = 1.7976e308; /* too far after some steps */
    states[1]->applied[6] = beside->applied[6] = 1.7e308;
    ck_assert_int_eq(tb_step(cpu, beside, 30, &certificate, &error), TB_DIVERGED);
    ck_assert_int_eq(tb_step_batch(card, states, 3, 30, NULL, &error), TB_DIVERGED);
    ck_assert_ptr_nonnull(strstr(error.message, "world 1: the world diverged in step"));
    ck_assert_int_eq(states[1]->steps, beside->steps);
    ck_assert_int_eq(states[0]->steps, 30);
    ck_assert_int_eq(states[2]->steps, 30);
    ck_assert_mem_eq(states[0]->q, states[2]->q,
                     (size_t)states[0]->model->number_of_coordinates * sizeof(double));
    for (int i = 0; i < 3; i++) tb_state_destroy(states[i]);
    tb_state_destroy(beside);
    tb_stepper_destroy(cpu);
    tb_stepper_destroy(card);
    tb_model_destroy(model);
}
END_TEST

/* Bodies on slides and hinges under applied forces: the accelerations of the step's own dynamics. */
START_TEST(single_bodies_accelerate_as_by_the_equations_of_trees)
{
    static const char TEXT[] =
        "<mujoco><option timestep=\"0.001\" gravity=\"1 -2 -9\"/><worldbody>"
        "<body pos=\"1 2 3\" euler=\"20 30 40\">"
        "<body pos=\".5 0 .1\" euler=\"10 -20 5\"><inertial pos=\".1 .2 .3\" mass=\"2\" "
        "fullinertia=\"1 2 2.5 .1 .2 .3\"/><joint type=\"hinge\" axis=\"1 2 2\" pos=\".3 .1 -.2\"/>"
        "<geom type=\"box\" size=\".1 .1 .1\"/></body></body>"
        "<body pos=\"9 0 0\" euler=\"0 50 0\" gravcomp=\".5\"><inertial pos=\".1 0 0\" mass=\"3\" "
        "diaginertia=\"1 1 1\"/><joint type=\"slide\" axis=\"1 0 0\"/><joint type=\"slide\" "
        "axis=\"1 1 0\"/><geom type=\"box\" size=\".1 .1 .1\"/></body>"
        "<body pos=\"5 0 0\"><freejoint/><inertial pos=\".1 -.2 .3\" mass=\"2\" "
        "fullinertia=\"1 2 2.5 .1 .2 .3\"/><geom type=\"box\" size=\".1 .1 .1\"/></body>"
        "</worldbody></mujoco>";
    static const char *const INTEGRATORS[] = {"symplectic", "rkfix1"};
    tb_model *model = written(TEXT);
    tb_error error;
    find_card();
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            tb_state *state;
            double before[9], expected[9];
            tb_stepper *stepper =
                stepper_by(k == 0 ? TB_BACKEND_CPU : TB_BACKEND_GPU, INTEGRATORS[i], false);
            start(model, &state, 0);
            for (int d = 0; d < 9; d++) {
                if (d < 3 || d > 5) state->q[d] = 0.3 - 0.2 * d;
                state->u[d] = 0.7 + 0.1 * d;
                state->applied[d] = 2 - d;
            }
            for (int w = 0; w < 6 * model->number_of_bodies; w++) state->wrenches[w] = 0.1 * w;
            memcpy(before, state->u, sizeof before);
            TEST_OK(tb_state_smooth_acceleration(state, expected, &error), &error);
            TEST_OK(tb_step(stepper, state, 1, NULL, &error), &error);
            for (int d = 0; d < 9; d++)
                ck_assert_double_le(fabs((state->u[d] - before[d]) / 0.001 - expected[d]),
                                    1e-9 * (1 + fabs(expected[d])));
            tb_state_destroy(state);
            tb_stepper_destroy(stepper);
        }
    tb_model_destroy(model);
}
END_TEST

static double units_apart(double x, long double exact)
{
    return (double)(fabsl(x - exact) / fabs(nextafter((double)exact, INFINITY) - (double)exact));
}

START_TEST(sines_are_those_of_long_numbers)
{
    double sine, cosine, most = 0;
    for (int i = -200000; i <= 200000; i++) {
        const double around = (i % 1000) * 1.5707963267948966; /* multiples of a right angle */
        const double angles[] = {i * 4.9, i * 7e-6, i == 0 ? 1e-300 : 1e-9 / i,
                                 nextafter(around, i)};
        for (int k = 0; k < 4; k++) {
            tb_law_sine_cosine(angles[k], &sine, &cosine);
            most = fmax(most, units_apart(sine, sinl((long double)angles[k])));
            most = fmax(most, units_apart(cosine, cosl((long double)angles[k])));
        }
    }
    ck_assert_double_le(most, 1);
    tb_law_sine_cosine(-1e300, &sine, &cosine);
    ck_assert_double_le(fabs(sine * sine + cosine * cosine - 1), 1e-15);
    tb_law_sine_cosine(NAN, &sine, &cosine);
    ck_assert(isnan(sine) && isnan(cosine));
}
END_TEST

TEST_MAIN(sines_are_those_of_long_numbers, cube_drop_moves_as_on_the_processor,
          cube_friction_moves_as_on_the_processor, cube_spin_moves_as_on_the_processor,
          fork_ring_moves_as_on_the_processor, fork_ring_joined_moves_as_on_the_processor,
          prisms_27_moves_as_on_the_processor, bucket_moves_as_on_the_processor,
          geneva_moves_as_on_the_processor, tippe_top_moves_as_on_the_processor,
          worlds_do_not_depend_on_their_neighbours, the_room_of_a_world_grows,
          a_world_that_diverges_is_frozen_at_the_processors_step,
          single_bodies_accelerate_as_by_the_equations_of_trees)
