/* Worlds of balls by the volume law, and near pairs of boxes: a card beside the processor. Where there is no card,
 * one that the processor plays runs the kernels. TRIBO_TEST_BALLS_STEPS and TRIBO_TEST_BALLS_SCENE ask for more
 * steps and a larger scene than a played card has time for, TRIBO_TEST_BALLS_BOXES for another number of boxes. */
#include "base/random.h"
#include "backend/backend.h"
#include "card_util.h"
#include "penalty/broad.h"
#include "penalty/card/box_pairs.h"
#include "scene_util.h"
#include "step/step.h"
#include "tribo.h"
#include "volume_util.h"

/* Balls of three sizes that fall on a plane, a fixed ball and each other; two are not at their bodies'
 * origins' height, one touches nothing, one has no shape. */
static tb_model *heap(void)
{
    static char text[60000];
    size_t at = 0;
    at += (size_t)snprintf(
        text + at, sizeof text - at,
        "<mujoco><option timestep=\"0.001\" gravity=\"0 0 -9.81\"/><custom>"
        "<text name=\"volume_law\" data=\"sphere_stiffness=0 elasticity=1e6\"/></custom>"
        "<worldbody><geom type=\"plane\" size=\"5 5 1\" euler=\"3 5 0\"/>"
        "<geom type=\"sphere\" size=\"0.4\" pos=\"0 0 0.1\"/>"
        "<body pos=\"9 9 9\"><freejoint/><inertial pos=\"0 0 0\" mass=\"1\" "
        "diaginertia=\"1 2 3\"/></body>");
    for (int i = 0; i < 60; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "<body pos=\"%.9g %.9g %.9g\"><freejoint/><geom type=\"sphere\" "
                               "size=\"%g\" contype=\"%d\" conaffinity=\"%d\"/></body>",
                               0.31 * (i % 4) - 0.4 + 0.013 * i, 0.3 * (i / 4 % 4) - 0.5,
                               0.7 + 0.32 * (i / 16), i % 7 == 0 ? 0.05 : 0.14 + 0.01 * (i % 3),
                               i % 5 == 0 ? 2 : 1, i % 5 == 0 ? 3 : 1);
    at += (size_t)snprintf(text + at, sizeof text - at, "</worldbody></mujoco>");
    ck_assert(at < sizeof text);
    return written(text);
}

START_TEST(balls_move_as_on_the_processor)
{
    find_card();
    static const char *const INTEGRATORS[] = {"rkfix1", "rkfix2", "rkfix3",
                                              "rkfix4", "auto",   "symplectic"};
    const char *asked = getenv("TRIBO_TEST_BALLS_SCENE");
    const char *const SCENES[] = {"billiards_10", "billiards_hertz_10", NULL, asked};
    for (int s = 0; s < (asked != NULL ? 4 : 3); s++) {
        tb_model *model = SCENES[s] != NULL ? named_model(SCENES[s]) : heap();
        for (int i = 0; i < (int)(sizeof INTEGRATORS / sizeof *INTEGRATORS); i++) {
            bool equal;
            const int32_t steps =
                steps_asked("TRIBO_TEST_BALLS_STEPS", SCENES[s] != NULL ? 40 : 300);
            const double most = compare(model, INTEGRATORS[i], steps, 4, 0, &equal);
            printf("%s, %s, %d steps: %s, %.3g\n", SCENES[s] != NULL ? SCENES[s] : "heap",
                   INTEGRATORS[i], (int)steps, equal ? "equal bytes" : "apart", most);
            ck_assert_double_le(most, 1e-10);
            ck_assert(equal);
        }
        tb_model_destroy(model);
    }
}
END_TEST

START_TEST(worlds_do_not_depend_on_their_neighbours)
{
    enum { WORLDS = 11 };
    tb_model *model = named_model("billiards_10"), *other = heap();
    tb_state *together[WORLDS], *alone;
    tb_certificate certificates[WORLDS], single;
    tb_error error;
    find_card();
    tb_stepper *card = stepper_by(TB_BACKEND_GPU, "rkfix4", false);
    for (int32_t i = 0; i < WORLDS; i++) start(i == 5 ? other : model, &together[i], i);
    TEST_OK(tb_step_batch(card, together, WORLDS, 37, certificates, &error), &error);
    for (int32_t i = 0; i < WORLDS; i++) {
        start(i == 5 ? other : model, &alone, i);
        TEST_OK(tb_step(card, alone, 30, &single, &error), &error);
        TEST_OK(tb_step(card, alone, 7, &single, &error), &error);
        const tb_model *m = alone->model;
        ck_assert_mem_eq(alone->q, together[i]->q,
                         (size_t)m->number_of_coordinates * sizeof(double));
        ck_assert_mem_eq(alone->u, together[i]->u, (size_t)m->number_of_dofs * sizeof(double));
        ck_assert_int_eq(alone->number_of_contacts, together[i]->number_of_contacts);
        ck_assert_int_eq(certificates[i].iterations, 37 * 4);
        tb_state_destroy(alone);
        tb_state_destroy(together[i]);
    }
    tb_stepper_destroy(card);
    tb_model_destroy(model);
    tb_model_destroy(other);
}
END_TEST

/* More partners than a lane lists at once. */
START_TEST(a_ball_among_many_adds_all_of_them)
{
    static char text[30000];
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "<mujoco><option timestep=\"0.001\" gravity=\"0 0 0\"/><worldbody>"
                                 "<body><freejoint/><geom type=\"sphere\" size=\"1\"/></body>");
    for (int i = 0; i < 90; i++) {
        const double z = (i + 0.5) / 45 - 1, r = sqrt(1 - z * z), turn = 2.399963 * i;
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "<body pos=\"%.9g %.9g %.9g\"><freejoint/><geom type=\"sphere\" "
                               "size=\"0.05\"/></body>",
                               1.04 * r * cos(turn), 1.04 * r * sin(turn), 1.04 * z + 0.003 * r);
    }
    at += (size_t)snprintf(text + at, sizeof text - at, "</worldbody></mujoco>");
    ck_assert(at < sizeof text);
    find_card();
    tb_model *model = written(text);
    bool equal;
    compare(model, "rkfix4", 5, 4, 0, &equal);
    ck_assert(equal);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_world_that_diverges_is_frozen_at_the_processors_step)
{
    tb_model *model = named_model("billiards_10");
    tb_state *states[3], *beside;
    tb_certificate certificate;
    tb_error error;
    find_card();
    tb_stepper *cpu = stepper_by(TB_BACKEND_CPU, "rkfix4", false),
               *card = stepper_by(TB_BACKEND_GPU, "rkfix4", false);
    for (int i = 0; i < 3; i++) start(model, &states[i], 0);
    start(model, &beside, 0);
    states[1]->u[6] = beside->u[6] = 1.7976e308; /* too far after some steps */
    states[1]->applied[6] = beside->applied[6] = 1.5e308;
    ck_assert_int_eq(tb_step(cpu, beside, 30, &certificate, &error), TB_DIVERGED);
    ck_assert_int_eq(tb_step_batch(card, states, 3, 30, NULL, &error), TB_DIVERGED);
    ck_assert_ptr_nonnull(strstr(error.message, "world 1: the world diverged in step"));
    ck_assert_int_eq(states[1]->steps, beside->steps);
    ck_assert_mem_eq(states[1]->q, beside->q, 7 * sizeof(double));
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

START_TEST(other_models_and_integrators_are_refused_by_name)
{
    static const struct {
        const char *body, *says;
    } CASES[] = {
        {"<body><joint type=\"ball\"/><geom type=\"sphere\" size=\"1\"/></body>", "trees other"},
        {"<body><joint type=\"hinge\" damping=\"1\"/><geom type=\"box\" size=\"1 1 1\"/></body>",
         "dampers"},
        {"<body mocap=\"true\"><geom type=\"sphere\" size=\"1\"/></body>", "moved bodies"}};
    tb_error error;
    tb_step_options options = tb_step_defaults();
    tb_stepper *stepper = NULL;
    find_card();
    for (int i = 0; i < (int)(sizeof CASES / sizeof *CASES); i++) {
        char text[400];
        snprintf(text, sizeof text, "<mujoco><worldbody>%s</worldbody></mujoco>", CASES[i].body);
        tb_model *model = written(text);
        tb_state *state = NULL;
        tb_stepper *card = stepper_by(TB_BACKEND_GPU, "auto", false);
        TEST_OK(tb_state_create(model, &state, &error), &error);
        ck_assert_int_eq(tb_step(card, state, 1, NULL, &error), TB_UNSUPPORTED);
        ck_assert_msg(strstr(error.message, CASES[i].says) != NULL, "%s", error.message);
        tb_state_destroy(state);
        tb_stepper_destroy(card);
        tb_model_destroy(model);
    }
    options.scheme = TB_SCHEME_VOLUME;
    options.backend = TB_BACKEND_GPU;
    options.solve.solver = "cerk45";
    ck_assert_int_eq(tb_stepper_create(&options, &stepper, &error), TB_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "integrator 'cerk45' does not run on the GPU"));
}
END_TEST

START_TEST(near_pairs_are_those_of_the_processor)
{
    const bool is_played = find_card();
    const tb_backend *gpu = NULL;
    tb_error error;
    tb_random random = tb_random_stream(3, 0);
    tb_broad broad = {0};
    TEST_OK(tb_backend_find(TB_BACKEND_GPU, &gpu, &error), &error);
    const int32_t most = steps_asked("TRIBO_TEST_BALLS_BOXES", is_played ? 300 : 20000);
    double *boxes = malloc(6 * (size_t)most * sizeof *boxes);
    for (int scene = 0; scene < 6; scene++) {
        const int32_t count = scene == 5 ? 1 : most - 17 * scene;
        const double half = scene == 1 ? 0.5 : 0.04;
        for (int32_t i = 0; i < count; i++)
            for (int k = 0; k < 3; k++) {
                const double x = tb_random_between(&random, -1, 1);
                const double h = scene == 2 && i % 9 == 0 ? 4 * half : half;
                boxes[6 * i + k] = x - h / (is_played ? 1 : 4);
                boxes[6 * i + 3 + k] = x + h / (is_played ? 1 : 4);
            }
        TEST_OK(tb_broad_brute(&broad, boxes, count, &error), &error);
        for (int way = TB_PAIRS_BY_COUNT; way <= TB_PAIRS_BY_APPEND; way++) {
            tb_box_pairs p = {.way = (tb_box_pairs_way)way,
                              .count = count,
                              .boxes = boxes,
                              .lower = {-2, -2, -2},
                              .cells_per_metre = scene == 3 ? 25 : 1000,
                              .repeats = 2};
            TEST_OK(gpu->box_pairs(0, &p, &error), &error);
            ck_assert_int_eq(p.number_of_pairs, broad.number_of_pairs);
            ck_assert_int_ge(p.number_of_intervals, count);
            if (p.number_of_pairs > 0)
                ck_assert_mem_eq(p.pairs, broad.pairs, (size_t)p.number_of_pairs * sizeof *p.pairs);
            free(p.pairs);
        }
    }
    free(boxes);
    tb_broad_free(&broad);
}
END_TEST

START_TEST(keys_are_sorted_with_their_values)
{
    enum { KEYS = 5000 };
    static uint64_t keys[KEYS], values[KEYS];
    const tb_backend *gpu = NULL;
    tb_error error;
    tb_random random = tb_random_stream(4, 0);
    find_card();
    TEST_OK(tb_backend_find(TB_BACKEND_GPU, &gpu, &error), &error);
    for (int with = 0; with < 2; with++) {
        for (int i = 0; i < KEYS; i++) {
            keys[i] = (uint64_t)(tb_random_uniform(&random) * 0x1p62);
            values[i] = ~keys[i];
        }
        tb_box_pairs p = {
            .way = TB_PAIRS_SORT, .count = KEYS, .keys = keys, .values = with ? values : NULL};
        TEST_OK(gpu->box_pairs(0, &p, &error), &error);
        for (int i = 0; i < KEYS; i++) {
            ck_assert(i == 0 || keys[i - 1] <= keys[i]);
            ck_assert(!with || values[i] == ~keys[i]);
        }
    }
}
END_TEST

TEST_MAIN(balls_move_as_on_the_processor, worlds_do_not_depend_on_their_neighbours,
          a_ball_among_many_adds_all_of_them,
          a_world_that_diverges_is_frozen_at_the_processors_step,
          other_models_and_integrators_are_refused_by_name, near_pairs_are_those_of_the_processor,
          keys_are_sorted_with_their_values)
