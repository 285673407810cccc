/* Stepping as a service wants it: no allocation once warm, bit-exact resume, bytes that depend on
 * neither the batch nor the threads, worlds that fail alone. */
#include "test_util.h"

enum { BALLS = 27 };

/* A heap of boxes and balls on a floor, a hinged flap with a motor and a servo beside it. */
static tb_model *heap(void)
{
    tb_error error;
    tb_scene_def def = tb_scene_defaults();
    def.dt = 2e-3;
    def.gravity[2] = -9.81;
    tb_scene *scene = NULL;
    TEST_OK(tb_scene_create(&def, &scene, &error), &error);
    tb_shape_def floor = tb_shape_defaults();
    floor.type = TB_SHAPE_PLANE;
    TEST_OK(tb_scene_add_shape(scene, &floor, NULL, &error), &error);
    for (int i = 0; i < BALLS; i++) {
        tb_body_def body = tb_body_defaults();
        tb_handle handle;
        body.position[0] = 0.11 * (i % 3) + 0.003 * i;
        body.position[1] = 0.11 * (i / 3 % 3) - 0.002 * i;
        body.position[2] = 0.08 + 0.12 * (i / 9);
        TEST_OK(tb_scene_add_body(scene, &body, &handle, &error), &error);
        tb_joint_def joint = tb_joint_defaults();
        joint.type = TB_JOINT_FREE;
        joint.body = handle;
        TEST_OK(tb_scene_add_joint(scene, &joint, NULL, &error), &error);
        tb_shape_def shape = tb_shape_defaults();
        shape.type = i % 2 ? TB_SHAPE_SPHERE : TB_SHAPE_BOX;
        shape.body = handle;
        shape.size[0] = shape.size[1] = shape.size[2] = 0.05;
        shape.surface.friction = 0.5;
        if (i % 5 == 0) {
            shape.surface.kind = TB_CONTACT_ROLLING;
            shape.surface.spin_radius = 0.01;
            shape.surface.rolling_length = 1e-3;
        }
        TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    }

    tb_body_def flap = tb_body_defaults();
    flap.name = "flap";
    flap.position[0] = -0.2;
    flap.position[2] = 0.1;
    tb_handle flap_handle, hinge_handle;
    TEST_OK(tb_scene_add_body(scene, &flap, &flap_handle, &error), &error);
    tb_joint_def hinge = tb_joint_defaults();
    hinge.type = TB_JOINT_HINGE;
    hinge.body = flap_handle;
    hinge.axis[0] = 0, hinge.axis[1] = 1, hinge.axis[2] = 0;
    hinge.limited = true;
    hinge.lower = -0.5, hinge.upper = 0.5;
    hinge.dry_friction = 0.01;
    TEST_OK(tb_scene_add_joint(scene, &hinge, &hinge_handle, &error), &error);
    tb_shape_def plate = tb_shape_defaults();
    plate.type = TB_SHAPE_BOX;
    plate.body = flap_handle;
    plate.position[0] = 0.1;
    plate.size[0] = 0.1, plate.size[1] = 0.05, plate.size[2] = 0.005;
    TEST_OK(tb_scene_add_shape(scene, &plate, NULL, &error), &error);
    tb_actuator_def servo = tb_actuator_defaults();
    servo.target = hinge_handle;
    tb_actuator_position_servo(&servo, 20, 1);
    servo.force_limited = true;
    servo.force_lower = -2, servo.force_upper = 2;
    TEST_OK(tb_scene_add_actuator(scene, &servo, NULL, &error), &error);

    tb_model *model = NULL;
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

static tb_state *world_of(const tb_model *model, double servo)
{
    tb_error error;
    tb_state *state = NULL;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    TEST_OK(tb_state_set_control(state, 0, servo, &error), &error);
    return state;
}

static tb_stepper *stepper_with(int32_t threads, tb_precision precision)
{
    tb_error error;
    tb_step_options options = tb_step_defaults();
    options.threads = threads;
    options.precision = precision;
    tb_stepper *stepper = NULL;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    return stepper;
}

static void advance(tb_stepper *stepper, tb_state *state, int32_t steps)
{
    tb_error error;
    TEST_OK(tb_step(stepper, state, steps, NULL, &error), &error);
}

START_TEST(a_warm_step_allocates_nothing)
{
    tb_model *model = heap();
    tb_state *state = world_of(model, 0.3);
    tb_stepper *stepper = stepper_with(1, TB_DOUBLE);
    advance(stepper, state, 300);

    /* a stepper is warm after worlds as large as these: the same steps again */
    TEST_OK(tb_state_reset(state, -1, NULL), NULL);
    const int64_t before = tb_stepper_allocations(stepper);
    const size_t bytes = tb_stepper_allocated(stepper);
    ck_assert_int_gt(before, 0);
    TEST_OK(tb_state_set_control(state, 0, 0.3, NULL), NULL);
    for (int i = 0; i < 300; i++) {
        advance(stepper, state, 1);
        ck_assert_int_eq(tb_stepper_allocations(stepper), before);
        ck_assert_uint_eq(tb_stepper_allocated(stepper), bytes);
    }
    ck_assert_int_gt(tb_state_number_of_contacts(state), BALLS);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

static void resume_in(tb_precision precision)
{
    tb_error error;
    tb_model *model = heap();
    tb_state *state = world_of(model, 0.3), *other = world_of(model, 0);
    tb_stepper *stepper = stepper_with(1, precision), *second = stepper_with(1, precision);
    advance(stepper, state, 150); /* in the middle of contact */
    ck_assert_int_gt(tb_state_number_of_contacts(state), 10);
    unsigned char *bytes = NULL;
    size_t size = 0;
    TEST_OK(tb_state_snapshot(state, &bytes, &size, &error), &error);
    tb_state *fork = NULL;
    TEST_OK(tb_state_fork(state, &fork, &error), &error);
    ck_assert(tb_state_hash(fork) == tb_state_hash(state));
    advance(stepper, state, 100);
    TEST_OK(tb_state_restore(other, bytes, size, &error), &error);
    advance(second, other, 100);
    advance(second, fork, 100);
    ck_assert(tb_state_hash(state) == tb_state_hash(other));
    ck_assert(tb_state_hash(state) == tb_state_hash(fork));

    /* a snapshot that is cut or changed is refused and changes nothing */
    const uint64_t hash = tb_state_hash(other);
    for (size_t cut = 0; cut < size; cut += 97)
        ck_assert_int_ne(tb_state_restore(other, bytes, cut, &error), TB_OK);
    bytes[0] ^= 1;
    TEST_STATUS(tb_state_restore(other, bytes, size, &error), TB_DATA_LOSS, &error);
    ck_assert(tb_state_hash(other) == hash);
    tb_bytes_destroy(bytes);
    tb_stepper_destroy(stepper);
    tb_stepper_destroy(second);
    tb_state_destroy(state);
    tb_state_destroy(other);
    tb_state_destroy(fork);
    tb_model_destroy(model);
}

START_TEST(a_snapshot_resumes_bit_exactly_in_double)
{
    resume_in(TB_DOUBLE);
}
END_TEST

START_TEST(a_snapshot_resumes_bit_exactly_in_float)
{
    resume_in(TB_FLOAT);
}
END_TEST

START_TEST(bytes_depend_on_neither_batch_nor_threads)
{
    enum { WORLDS = 5 };
    tb_error error;
    tb_model *model = heap();
    uint64_t alone[WORLDS];
    for (int i = 0; i < WORLDS; i++) {
        tb_stepper *stepper = stepper_with(1, TB_DOUBLE);
        tb_state *state = world_of(model, 0.1 * i);
        advance(stepper, state, 80);
        alone[i] = tb_state_hash(state);
        tb_state_destroy(state);
        tb_stepper_destroy(stepper);
    }
    ck_assert(alone[0] != alone[1]);
    for (int32_t threads = 1; threads <= 3; threads++) {
        tb_stepper *stepper = stepper_with(threads, TB_DOUBLE);
        tb_state *states[WORLDS];
        tb_certificate certificates[WORLDS];
        for (int i = 0; i < WORLDS; i++) states[i] = world_of(model, 0.1 * i);
        for (int k = 0; k < 4; k++)
            TEST_OK(tb_step_batch(stepper, states, WORLDS, 20, certificates, &error), &error);
        for (int i = 0; i < WORLDS; i++) {
            ck_assert_msg(tb_state_hash(states[i]) == alone[i], "world %d, %d threads", i, threads);
            ck_assert_int_eq(certificates[i].step, 80);
            tb_state_destroy(states[i]);
        }
        tb_stepper_destroy(stepper);
    }
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_world_that_diverges_freezes_alone)
{
    tb_error error;
    tb_model *model = heap();
    tb_state *states[3];
    for (int i = 0; i < 3; i++) states[i] = world_of(model, 0);
    const int32_t dofs = tb_model_count(model).dofs;
    double *u = calloc((size_t)dofs, sizeof *u);
    ck_assert_ptr_nonnull(u);
    u[3] = 1e300;
    TEST_OK(tb_state_set_u(states[1], u, dofs, &error), &error);
    free(u);
    tb_stepper *stepper = stepper_with(2, TB_DOUBLE);
    tb_certificate certificates[3];
    TEST_STATUS(tb_step_batch(stepper, states, 3, 10, certificates, &error), TB_DIVERGED, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "world 1"));
    ck_assert_int_eq(tb_state_steps(states[0]), 10);
    ck_assert_int_eq(tb_state_steps(states[2]), 10);
    ck_assert_int_lt(tb_state_steps(states[1]), 10);
    ck_assert(certificates[1].flags & TB_CERTIFICATE_DIVERGED);
    ck_assert_int_eq(certificates[0].status, TB_OK);
    const double *q = tb_state_q(states[1]);
    for (int32_t i = 0; i < tb_model_count(model).coordinates; i++) ck_assert(isfinite(q[i]));
    TEST_STATUS(tb_step(stepper, states[1], 1, NULL, &error), TB_DIVERGED, &error);
    for (int i = 0; i < 3; i++) tb_state_destroy(states[i]);
    tb_stepper_destroy(stepper);
    tb_model_destroy(model);
}
END_TEST

START_TEST(options_and_setters_name_the_field)
{
    tb_error error;
    tb_model *model = heap();
    tb_state *state = world_of(model, 0);
    tb_step_options options = tb_step_defaults();
    tb_stepper *stepper = NULL;
    options.dt = (double)NAN;
    TEST_STATUS(tb_stepper_create(&options, &stepper, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "dt");
    options = tb_step_defaults();
    options.solve.solver = "magic";
    TEST_STATUS(tb_stepper_create(&options, &stepper, &error), TB_NOT_FOUND, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "magic"));
    const double nan_control = (double)NAN;
    TEST_STATUS(tb_state_set_controls(state, &nan_control, 1, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "controls");
    TEST_STATUS(tb_state_set_q(state, &nan_control, 1, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "q");
    TEST_STATUS(tb_state_set_control(state, 7, 0, &error), TB_INVALID_ARGUMENT, &error);
    TEST_STATUS(tb_state_reset(state, 3, &error), TB_INVALID_ARGUMENT, &error);
    TEST_STATUS(tb_state_set_kinematic(state, 1, (double[3]){0}, (double[4]){1, 0, 0, 0},
                                       (double[3]){0}, (double[3]){0}, &error),
                TB_FAILED_PRECONDITION, &error);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

START_TEST(float_and_double_agree_while_motion_is_regular)
{
    tb_model *model = heap();
    tb_state *a = world_of(model, 0.2), *b = world_of(model, 0.2);
    tb_stepper *in_double = stepper_with(1, TB_DOUBLE), *in_float = stepper_with(1, TB_FLOAT);
    advance(in_double, a, 20);
    advance(in_float, b, 20);
    const double *qa = tb_state_q(a), *qb = tb_state_q(b);
    for (int32_t i = 0; i < tb_model_count(model).coordinates; i++) TEST_NEAR(qb[i], qa[i], 1e-3);
    ck_assert(tb_state_hash(a) != tb_state_hash(b));
    tb_stepper_destroy(in_double);
    tb_stepper_destroy(in_float);
    tb_state_destroy(a);
    tb_state_destroy(b);
    tb_model_destroy(model);
}
END_TEST

TEST_MAIN(a_warm_step_allocates_nothing, a_snapshot_resumes_bit_exactly_in_double,
          a_snapshot_resumes_bit_exactly_in_float, bytes_depend_on_neither_batch_nor_threads,
          a_world_that_diverges_freezes_alone, options_and_setters_name_the_field,
          float_and_double_agree_while_motion_is_regular)
