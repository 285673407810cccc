/* World masks, body wrenches, kinematic targets and parameters; many worlds. */
#include "server/session_util.h"

/* A ball in weightlessness, and a kinematic paddle under it. */
static const char SCENE[] =
    "<mujoco><option timestep='0.01' gravity='0 0 0'/><worldbody>"
    "<body name='ball' pos='0 0 1'><freejoint/><geom size='.1' mass='2'/></body>"
    "<body name='paddle' mocap='true' pos='5 0 0'><geom type='box' size='.1 .1 .1'/></body>"
    "</worldbody></mujoco>";
enum { WORLDS = 3, BODIES = 3 };

static void open_balls(td_server *s, int worlds, char id[33])
{
    tb_error error = {0};
    Tribo__V1__CreateSceneRequest scene = TRIBO__V1__CREATE_SCENE_REQUEST__INIT;
    scene.main_case = TRIBO__V1__CREATE_SCENE_REQUEST__MAIN_TEXT;
    scene.text = (char *)(uintptr_t)SCENE;
    Tribo__V1__CreateSceneResponse *made =
        test_unary(s, "tribo.v1.Simulation/CreateScene", "one", &scene, NULL, NULL);
    Tribo__V1__CreateSessionRequest request = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    request.scene_id = made->scene_id;
    request.worlds = worlds;
    TEST_OK(open_session(s, "one", &request, id, &error), &error);
    tribo__v1__create_scene_response__free_unpacked(made, NULL);
}

typedef struct array {
    Tribo__V1__Array message;
    int64_t shape[3];
} array;

static void lend(array *a, Tribo__V1__DataType dtype, const void *data, size_t size, int axes,
                 int64_t n, int64_t m, int64_t k)
{
    tribo__v1__array__init(&a->message);
    a->shape[0] = n;
    a->shape[1] = m;
    a->shape[2] = k;
    a->message.shape = a->shape;
    a->message.n_shape = (size_t)axes;
    a->message.dtype = dtype;
    a->message.data.data = (uint8_t *)(uintptr_t)data;
    a->message.data.len = size;
}

static void lend_mask(array *a, const uint8_t *mask, int n)
{
    lend(a, TRIBO__V1__DATA_TYPE__DATA_TYPE_UINT8, mask, (size_t)n, 1, n, 0, 0);
}

#define DOUBLES(a, numbers, axes, n, m, k)                                                         \
    lend(a, TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64, numbers, sizeof numbers, axes, n, m, k)

/* Positions z of the balls and the worlds' steps. */
static void look(td_server *s, const char *id, double z[WORLDS], int64_t steps[WORLDS])
{
    Tribo__V1__GetStateRequest r = TRIBO__V1__GET_STATE_REQUEST__INIT;
    r.session_id = (char *)(uintptr_t)id;
    Tribo__V1__GetStateResponse *a =
        test_unary(s, "tribo.v1.Simulation/GetState", "one", &r, NULL, NULL);
    for (int w = 0; w < WORLDS; w++) {
        memcpy(&z[w], a->state->q->data.data + ((size_t)w * 7 + 2) * sizeof z[w], sizeof z[w]);
        steps[w] = a->certificates[w]->step;
    }
    tribo__v1__get_state_response__free_unpacked(a, NULL);
}

static tb_status step_with(td_server *s, Tribo__V1__StepRequest *r, tb_error *error)
{
    tb_status status;
    Tribo__V1__StepResponse *a =
        test_unary(s, "tribo.v1.Simulation/Step", "one", r, &status, error);
    if (a != NULL) {
        ck_assert_uint_eq(a->n_certificates, WORLDS);
        tribo__v1__step_response__free_unpacked(a, NULL);
    }
    return status;
}

START_TEST(a_mask_chooses_the_worlds_that_step_are_set_and_are_reset)
{
    test_server t;
    char id[33];
    double z[WORLDS];
    int64_t steps[WORLDS];
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    open_balls(&t.server, WORLDS, id);

    /* 4 N upwards on 2 kg for half a second, in worlds 0 and 2 */
    const double wrench[BODIES * 6] = {[6 + 2] = 4};
    const uint8_t outer[WORLDS] = {1, 0, 1}, none[WORLDS] = {0}, last[WORLDS] = {0, 0, 7};
    array mask, wrenches;
    lend_mask(&mask, outer, WORLDS);
    DOUBLES(&wrenches, wrench, 2, BODIES, 6, 0);
    Tribo__V1__StepRequest r = TRIBO__V1__STEP_REQUEST__INIT;
    r.session_id = id;
    r.steps = 50;
    r.mask = &mask.message;
    r.wrenches = &wrenches.message;
    ck_assert_int_eq(step_with(&t.server, &r, &error), TB_OK);
    look(&t.server, id, z, steps);
    TEST_NEAR(z[0], 1 + 0.5 * 2 * 0.25, 0.01);
    TEST_NEAR(z[1], 1, 0);
    TEST_NEAR(z[2], z[0], 0);
    ck_assert(steps[0] == 50 && steps[1] == 0 && steps[2] == 50);

    Tribo__V1__ResetRequest reset = TRIBO__V1__RESET_REQUEST__INIT;
    lend_mask(&mask, last, WORLDS);
    reset.session_id = id;
    reset.mask = &mask.message;
    tribo__v1__reset_response__free_unpacked(
        test_unary(&t.server, "tribo.v1.Simulation/Reset", "one", &reset, NULL, NULL), NULL);
    look(&t.server, id, z, steps);
    TEST_NEAR(z[2], 1, 0);
    ck_assert(z[0] > 1.2);

    Tribo__V1__SetStateRequest set = TRIBO__V1__SET_STATE_REQUEST__INIT;
    const double q[7] = {0, 0, 9, 1, 0, 0, 0};
    array poses;
    DOUBLES(&poses, q, 1, 7, 0, 0);
    set.session_id = id;
    set.q = &poses.message;
    set.mask = &mask.message;
    tribo__v1__set_state_response__free_unpacked(
        test_unary(&t.server, "tribo.v1.Simulation/SetState", "one", &set, NULL, NULL), NULL);
    look(&t.server, id, z, steps);
    TEST_NEAR(z[2], 9, 0);
    TEST_NEAR(z[1], 1, 0);

    lend_mask(&mask, none, WORLDS);
    ck_assert_int_eq(step_with(&t.server, &r, &error), TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "mask");
    lend_mask(&mask, none, WORLDS - 1);
    ck_assert_int_eq(step_with(&t.server, &r, &error), TB_INVALID_ARGUMENT);
    r.mask = NULL;
    DOUBLES(&wrenches, wrench, 2, 6, BODIES, 0);
    ck_assert_int_eq(step_with(&t.server, &r, &error), TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "wrenches");
    test_server_stop(&t);
}
END_TEST

START_TEST(kinematic_bodies_go_where_they_are_sent)
{
    test_server t;
    char id[33];
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    open_balls(&t.server, WORLDS, id);
    /* each world its own speed along y */
    double targets[WORLDS * 13] = {0};
    for (int w = 0; w < WORLDS; w++) {
        targets[13 * w] = 5;
        targets[13 * w + 3] = 1;
        targets[13 * w + 8] = w;
    }
    array kinematic;
    DOUBLES(&kinematic, targets, 3, WORLDS, 1, 13);
    Tribo__V1__StepRequest r = TRIBO__V1__STEP_REQUEST__INIT;
    r.session_id = id;
    r.steps = 100;
    r.kinematic = &kinematic.message;
    ck_assert_int_eq(step_with(&t.server, &r, &error), TB_OK);
    Tribo__V1__GetStateRequest get = TRIBO__V1__GET_STATE_REQUEST__INIT;
    Tribo__V1__StepReturn want = TRIBO__V1__STEP_RETURN__INIT;
    want.poses = true;
    get.session_id = id;
    get.want = &want;
    Tribo__V1__GetStateResponse *a =
        test_unary(&t.server, "tribo.v1.Simulation/GetState", "one", &get, NULL, NULL);
    for (int w = 0; w < WORLDS; w++) {
        float pose[7];
        memcpy(pose, a->state->poses->data.data + (size_t)(w * BODIES + 2) * sizeof pose,
               sizeof pose);
        TEST_NEAR((double)pose[0], 5, 1e-6);
        TEST_NEAR((double)pose[1], w, 1e-5);
    }
    tribo__v1__get_state_response__free_unpacked(a, NULL);
    targets[13 + 3] = 0; /* no orientation: nothing is set */
    ck_assert_int_eq(step_with(&t.server, &r, &error), TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "kinematic");
    test_server_stop(&t);
}
END_TEST

static double mass_of(td_server *s, const char *id, int world)
{
    Tribo__V1__GetParametersRequest r = TRIBO__V1__GET_PARAMETERS_REQUEST__INIT;
    r.session_id = (char *)(uintptr_t)id;
    Tribo__V1__GetParametersResponse *a =
        test_unary(s, "tribo.v1.Simulation/GetParameters", "one", &r, NULL, NULL);
    ck_assert(a->mass->n_shape == 2 && a->mass->shape[0] == WORLDS && a->mass->shape[1] == BODIES);
    ck_assert(a->friction->shape[1] == 2 && a->gain->n_shape == 3 && a->gain->shape[1] == 0);
    ck_assert_uint_eq(a->gain->data.len, 0);
    double mass;
    memcpy(&mass, a->mass->data.data + (size_t)(world * BODIES + 1) * sizeof mass, sizeof mass);
    tribo__v1__get_parameters_response__free_unpacked(a, NULL);
    return mass;
}

static tb_status set_with(td_server *s, Tribo__V1__SetParametersRequest *r, tb_error *error)
{
    tb_status status;
    Tribo__V1__SetParametersResponse *a =
        test_unary(s, "tribo.v1.Simulation/SetParameters", "one", r, &status, error);
    if (a != NULL) tribo__v1__set_parameters_response__free_unpacked(a, NULL);
    return status;
}

START_TEST(worlds_have_masses_of_their_own)
{
    test_server t;
    char id[33];
    double z[WORLDS];
    int64_t steps[WORLDS];
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    open_balls(&t.server, WORLDS, id);
    double masses[WORLDS] = {2, 4, 8};
    int32_t ball = 1;
    array values, wrenches;
    DOUBLES(&values, masses, 2, WORLDS, 1, 0);
    Tribo__V1__Parameter mass = TRIBO__V1__PARAMETER__INIT;
    mass.elements = &ball;
    mass.n_elements = 1;
    mass.values = &values.message;
    Tribo__V1__SetParametersRequest set = TRIBO__V1__SET_PARAMETERS_REQUEST__INIT;
    set.session_id = id;
    set.mass = &mass;
    ck_assert_int_eq(set_with(&t.server, &set, &error), TB_OK);

    /* 8 N upwards for half a second */
    const double wrench[BODIES * 6] = {[6 + 2] = 8};
    DOUBLES(&wrenches, wrench, 2, BODIES, 6, 0);
    Tribo__V1__StepRequest r = TRIBO__V1__STEP_REQUEST__INIT;
    r.session_id = id;
    r.steps = 50;
    r.wrenches = &wrenches.message;
    ck_assert_int_eq(step_with(&t.server, &r, &error), TB_OK);
    look(&t.server, id, z, steps);
    TEST_NEAR(z[0] - 1, 2 * (z[1] - 1), 1e-12);
    TEST_NEAR(z[1] - 1, 2 * (z[2] - 1), 1e-12);
    TEST_NEAR(z[0], 1 + 0.5 * 4 * 0.25, 0.02);

    /* one wrong number, and none is set */
    masses[0] = 3;
    masses[2] = -1;
    ck_assert_int_eq(set_with(&t.server, &set, &error), TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "mass");
    ck_assert_ptr_nonnull(strstr(error.message, "'ball'"));
    TEST_NEAR(mass_of(&t.server, id, 0), 2, 0);
    TEST_NEAR(mass_of(&t.server, id, 2), 8, 0);
    ball = BODIES;
    ck_assert_int_eq(set_with(&t.server, &set, &error), TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "mass.elements");
    mass.n_elements = 0;
    ck_assert_int_eq(set_with(&t.server, &set, &error), TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "mass.values");

    /* back to the scene's, in one world */
    const uint8_t last[WORLDS] = {0, 0, 1};
    array mask;
    lend_mask(&mask, last, WORLDS);
    set.mass = NULL;
    set.mask = &mask.message;
    set.from_scene = true;
    ck_assert_int_eq(set_with(&t.server, &set, &error), TB_OK);
    TEST_NEAR(mass_of(&t.server, id, 2), 2, 0);
    TEST_NEAR(mass_of(&t.server, id, 1), 4, 0);
    test_server_stop(&t);
}
END_TEST

START_TEST(memory_bounds_the_worlds_of_a_session)
{
    test_server t;
    char id[33], scene[65];
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 1, 5000, id); /* more than the old limit of 4,096 */
    ck_assert_int_eq(step_session(&t.server, "one", id, 1), TB_OK);
    t.config.session_memory_bytes = 1 << 20;
    add_pile(&t.server, 1, scene);
    Tribo__V1__CreateSessionRequest request = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    request.scene_id = scene;
    request.worlds = 5000;
    ck_assert_int_eq(open_session(&t.server, "one", &request, id, &error), TB_RESOURCE_EXHAUSTED);
    ck_assert_str_eq(error.field, "memory");
    ck_assert_ptr_nonnull(strstr(error.message, "a session may have 1048576"));
    test_server_stop(&t);
}
END_TEST

TEST_MAIN(a_mask_chooses_the_worlds_that_step_are_set_and_are_reset,
          kinematic_bodies_go_where_they_are_sent, worlds_have_masses_of_their_own,
          memory_bounds_the_worlds_of_a_session)
