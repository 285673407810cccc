/* Parameters of a world: it steps as a world of a scene that is written with the same values, alone
 * and in a batch, and its snapshots and forks go on with them. */
#include "test_util.h"

#include "step/step.h"

/* A gripper's finger pushes a box over the floor; a ball with armature lies beside. */
static const char SCENE[] =
    "<mujoco><option timestep='0.002'/><worldbody>"
    "<geom name='floor' type='plane' size='5 5 1' friction='%.17g'/>"
    "<body name='box' pos='0.3 0 0.05'><freejoint/><inertial pos='0 0 0' mass='%.17g' "
    "diaginertia='%.17g %.17g %.17g'/>"
    "<geom name='box' type='box' size='%.17g %.17g %.17g' friction='%.17g'/></body>"
    "<body name='finger' pos='0 0 0.05'><joint name='push' type='slide' axis='1 0 0'/>"
    "<inertial pos='0.01 0 0' mass='%.17g' diaginertia='%.17g %.17g %.17g'/>"
    "<geom type='capsule' size='%.17g %.17g' friction='0.1'/>"
    "<body name='tip' pos='0.05 0 0'><joint name='bend' axis='0 1 0' damping='%.17g' "
    "frictionloss='%.17g'/>"
    "<inertial pos='0 0 0' mass='0.1' diaginertia='1e-4 1e-4 1e-4'/>"
    "<geom size='0.02' friction='0.2'/></body></body>"
    "<body name='ball' pos='0 1 0.1'><joint name='roll' type='free' damping='%.17g' "
    "frictionloss='%.17g'/><geom size='0.1' mass='1' friction='0.3'/></body>"
    "</worldbody><actuator>"
    "<general name='push' joint='push' biastype='affine' gainprm='%.17g' biasprm='0 %.17g %.17g'/>"
    "<motor joint='bend' gear='0.1'/></actuator></mujoco>";

typedef struct values {
    double floor, box_friction, box_mass, finger_mass, gain, damping;
    double bend_damping, bend_dry, ball_damping, ball_dry; /* of joints */
    double box[3], finger[2];                              /* sizes */
} values;

#define BOX                                                                                        \
    {                                                                                              \
        0.05, 0.05, 0.05                                                                           \
    }
#define FINGER                                                                                     \
    {                                                                                              \
        0.02, 0.02                                                                                 \
    }

static const values WRITTEN = {0.5, 0.2, 1, 0.5, 40, 4, 0.01, 0, 0.05, 0, BOX, FINGER};
static const values OTHERS[] = {
    {0.1, 0.05, 1, 0.5, 40, 4, 0.01, 0, 0.05, 0, BOX, FINGER},
    {0.5, 0.2, 2.7, 0.5, 40, 4, 0.01, 0, 0.05, 0, BOX, FINGER},
    {0.5, 0.2, 1, 0.31, 40, 4, 0.01, 0, 0.05, 0, BOX, FINGER},
    {0.5, 0.2, 1, 0.5, 93.5, 1.3, 0.01, 0, 0.05, 0, BOX, FINGER},
    {0.9, 1.1, 0.37, 0.77, 71, 9.3, 0.02, 0.003, 0.1, 0.05, {0.06, 0.04, 0.03}, {0.025, 0.001}},
    {0.5, 0.2, 1, 0.5, 40, 4, 0.3, 0, 0.05, 0, BOX, FINGER},
    {0.5, 0.2, 1, 0.5, 40, 4, 0.01, 0.02, 0.05, 0, BOX, FINGER},
    {0.5, 0.2, 1, 0.5, 40, 4, 0.01, 0, 0.7, 0, BOX, FINGER},
    {0.5, 0.2, 1, 0.5, 40, 4, 0.01, 0, 0.05, 0.2, BOX, FINGER},
    {0.5, 0.2, 1, 0.5, 40, 4, 0.01, 0, 0.05, 0, {0.05, 0.05, 0.07}, FINGER},
    {0.5, 0.2, 1, 0.5, 40, 4, 0.01, 0, 0.05, 0, {0.15, 0.05, 0.05}, {0.03, 0.05}},
    {0.5, 0.2, 1, 0.5, 40, 4, 0.01, 0, 0.05, 0, BOX, FINGER}};
enum { NUMBER_OF_OTHERS = sizeof OTHERS / sizeof *OTHERS, STEPS = 300, COUNT = 8 };

/* The scene's inertia times the ratio of masses, rounded as parameters round it. */
static tb_model *written(values v)
{
    char text[4096];
    const double box = v.box_mass / WRITTEN.box_mass, finger = v.finger_mass / WRITTEN.finger_mass;
    snprintf(text, sizeof text, SCENE, v.floor, v.box_mass, 2e-3 * box, 3e-3 * box, 4e-3 * box,
             v.box[0], v.box[1], v.box[2], v.box_friction, v.finger_mass, 1e-3 * finger,
             2e-3 * finger, 3e-3 * finger, v.finger[0], v.finger[1], v.bend_damping, v.bend_dry,
             v.ball_damping, v.ball_dry, v.gain, -v.gain, -v.damping);
    tb_error error = {0};
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    TEST_OK(tb_scene_load_mjcf(text, strlen(text), "t.xml", NULL, &scene, &error), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

typedef struct numbers {
    double friction[COUNT], mass[COUNT], gain[3 * COUNT], bias[3 * COUNT];
    double damping[COUNT], dry_friction[COUNT], size[3 * COUNT];
} numbers;

static tb_parameters arrays(numbers *n)
{
    return (tb_parameters){n->friction, n->mass,         n->gain, n->bias,
                           n->damping,  n->dry_friction, n->size};
}

static numbers read(const tb_state *state)
{
    numbers n;
    memset(&n, 0, sizeof n);
    const tb_parameters p = arrays(&n);
    tb_state_parameters(state, &p);
    return n;
}

static void set(tb_state *state, values v)
{
    tb_error error = {0};
    const tb_model *m = tb_state_model(state);
    numbers n = read(state);
    n.friction[tb_model_find(m, TB_HANDLE_SHAPE, "floor")] = v.floor;
    n.friction[tb_model_find(m, TB_HANDLE_SHAPE, "box")] = v.box_friction;
    n.mass[tb_model_find(m, TB_HANDLE_BODY, "box")] = v.box_mass;
    n.mass[tb_model_find(m, TB_HANDLE_BODY, "finger")] = v.finger_mass;
    n.gain[0] = v.gain;
    n.bias[1] = -v.gain;
    n.bias[2] = -v.damping;
    const int32_t bend = tb_model_find(m, TB_HANDLE_JOINT, "bend"),
                  roll = tb_model_find(m, TB_HANDLE_JOINT, "roll");
    n.damping[bend] = v.bend_damping;
    n.dry_friction[bend] = v.bend_dry;
    n.damping[roll] = v.ball_damping;
    n.dry_friction[roll] = v.ball_dry;
    memcpy(n.size + 3 * 1, v.box, sizeof v.box);
    memcpy(n.size + 3 * 2, v.finger, sizeof v.finger);
    const tb_parameters p = arrays(&n);
    TEST_OK(tb_state_set_parameters(state, &p, &error), &error);
}

static tb_state *world_of(const tb_model *model)
{
    tb_error error = {0};
    tb_state *state = NULL;
    const double controls[2] = {0.6, 0.3};
    TEST_OK(tb_state_create(model, &state, &error), &error);
    TEST_OK(tb_state_set_controls(state, controls, 2, &error), &error);
    return state;
}

static tb_stepper *stepper_of(tb_precision precision)
{
    tb_error error = {0};
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    options.precision = precision;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    return stepper;
}

static void same(const tb_state *a, const tb_state *b)
{
    const tb_model_counts n = tb_model_count(tb_state_model(a));
    ck_assert_mem_eq(tb_state_q(a), tb_state_q(b), (size_t)n.coordinates * sizeof(double));
    ck_assert_mem_eq(tb_state_u(a), tb_state_u(b), (size_t)n.dofs * sizeof(double));
    ck_assert_int_eq(tb_state_number_of_contacts(a), tb_state_number_of_contacts(b));
    ck_assert_int_eq(tb_state_certificate(a)->iterations, tb_state_certificate(b)->iterations);
}

START_TEST(a_world_with_parameters_steps_as_a_scene_written_with_them)
{
    tb_error error = {0};
    for (int precision = TB_DOUBLE; precision <= TB_FLOAT; precision++) {
        tb_model *model = written(WRITTEN);
        tb_state *worlds[NUMBER_OF_OTHERS], *alone[NUMBER_OF_OTHERS];
        tb_model *scenes[NUMBER_OF_OTHERS];
        tb_stepper *stepper = stepper_of((tb_precision)precision);
        for (int i = 0; i < NUMBER_OF_OTHERS; i++) {
            worlds[i] = world_of(model);
            set(worlds[i], OTHERS[i]);
            scenes[i] = written(OTHERS[i]);
            alone[i] = world_of(scenes[i]);
            TEST_OK(tb_step(stepper, alone[i], STEPS, NULL, &error), &error);
        }
        TEST_OK(tb_step_batch(stepper, worlds, NUMBER_OF_OTHERS, STEPS, NULL, &error), &error);
        for (int i = 0; i < NUMBER_OF_OTHERS; i++) {
            same(worlds[i], alone[i]);
            ck_assert_ptr_eq(tb_state_model(worlds[i]), model);
            /* the parameters matter in this scene */
            if (i > 0)
                ck_assert_mem_ne(tb_state_q(worlds[i]), tb_state_q(worlds[0]), sizeof(double));
        }
        /* values equal to the scene's are no parameters */
        tb_state *plain = world_of(model);
        TEST_OK(tb_step(stepper, plain, STEPS, NULL, &error), &error);
        ck_assert_uint_eq(tb_state_hash(plain), tb_state_hash(worlds[NUMBER_OF_OTHERS - 1]));
        tb_state_destroy(plain);
        for (int i = 0; i < NUMBER_OF_OTHERS; i++) {
            tb_state_destroy(worlds[i]);
            tb_state_destroy(alone[i]);
            tb_model_destroy(scenes[i]);
        }
        tb_stepper_destroy(stepper);
        tb_model_destroy(model);
    }
}
END_TEST

START_TEST(snapshots_forks_and_resets_keep_parameters)
{
    tb_error error = {0};
    tb_model *model = written(WRITTEN);
    tb_stepper *stepper = stepper_of(TB_DOUBLE);
    tb_state *world = world_of(model), *fork = NULL, *restored = world_of(model);
    unsigned char *bytes = NULL, *plain = NULL;
    size_t size = 0, plain_size = 0;
    TEST_OK(tb_state_snapshot(restored, &plain, &plain_size, &error), &error);
    set(world, OTHERS[4]);
    TEST_OK(tb_step(stepper, world, 100, NULL, &error), &error);
    TEST_OK(tb_state_fork(world, &fork, &error), &error);
    TEST_OK(tb_state_snapshot(world, &bytes, &size, &error), &error);
    TEST_OK(tb_state_restore(restored, bytes, size, &error), &error);
    ck_assert_uint_eq(tb_state_hash(restored), tb_state_hash(world));
    TEST_OK(tb_step(stepper, world, 200, NULL, &error), &error);
    TEST_OK(tb_step(stepper, fork, 200, NULL, &error), &error);
    TEST_OK(tb_step(stepper, restored, 200, NULL, &error), &error);
    same(world, fork);
    same(world, restored);

    /* a fork keeps its own */
    set(world, WRITTEN);
    ck_assert_double_eq(read(fork).mass[1], OTHERS[4].box_mass);
    tb_state_destroy(world);
    TEST_OK(tb_state_reset(fork, -1, &error), &error);
    ck_assert_double_eq(read(fork).friction[0], OTHERS[4].floor);
    TEST_OK(tb_step(stepper, fork, 1, NULL, &error), &error);

    /* one without parameters takes them away; damage changes nothing */
    const uint64_t before = tb_state_hash(restored);
    bytes[size - 20] ^= 1;
    TEST_STATUS(tb_state_restore(restored, bytes, size, &error), TB_DATA_LOSS, &error);
    ck_assert_uint_eq(tb_state_hash(restored), before);
    TEST_OK(tb_state_restore(restored, plain, plain_size, &error), &error);
    ck_assert_double_eq(read(restored).mass[1], WRITTEN.box_mass);

    TEST_OK(tb_state_share_parameters(restored, fork, &error), &error);
    ck_assert_double_eq(read(restored).mass[1], OTHERS[4].box_mass);
    tb_state_destroy(fork);
    TEST_OK(tb_step(stepper, restored, 1, NULL, &error), &error);
    tb_bytes_destroy(bytes);
    tb_bytes_destroy(plain);
    tb_state_destroy(restored);
    tb_stepper_destroy(stepper);
    tb_model_destroy(model);
}
END_TEST

/* The checksum at the end of a snapshot: FNV-1a over words. */
static void sign(unsigned char *bytes, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u, word;
    for (size_t i = 0; i + 16 <= size; i += 8) {
        memcpy(&word, bytes + i, 8);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    memcpy(bytes + size - 8, &hash, 8);
}

START_TEST(a_snapshot_from_before_joints_and_sizes_were_parameters_keeps_the_scenes)
{
    enum { VERSION = 8, FIRST_PARAMETERS = 7 };
    tb_error error = {0};
    tb_model *model = written(WRITTEN);
    tb_state *world = world_of(model), *restored = world_of(model);
    values v = OTHERS[0];
    v.gain = 71;
    set(world, v);
    unsigned char *bytes = NULL;
    size_t size = 0;
    TEST_OK(tb_state_snapshot(world, &bytes, &size, &error), &error);
    size -= (tb_variant_numbers(model) - tb_variant_first_numbers(model)) * sizeof(double);
    bytes[VERSION] = FIRST_PARAMETERS;
    sign(bytes, size);
    set(restored, OTHERS[4]);
    TEST_OK(tb_state_restore(restored, bytes, size, &error), &error);
    const numbers found = read(restored), wanted = read(world);
    ck_assert_mem_eq(&found, &wanted, sizeof found);
    ck_assert_uint_eq(tb_state_hash(restored), tb_state_hash(world));

    /* the same bytes are none of the newest format */
    bytes[VERSION] = 10;
    sign(bytes, size);
    TEST_STATUS(tb_state_restore(restored, bytes, size, &error), TB_DATA_LOSS, &error);
    tb_bytes_destroy(bytes);
    tb_state_destroy(world);
    tb_state_destroy(restored);
    tb_model_destroy(model);
}
END_TEST

static void refused(tb_state *state, numbers n, const char *field, const char *text)
{
    tb_error error = {0};
    const tb_parameters p = arrays(&n);
    const uint64_t before = tb_state_hash(state);
    TEST_STATUS(tb_state_set_parameters(state, &p, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, field);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);
    ck_assert_uint_eq(tb_state_hash(state), before);
}

START_TEST(parameters_out_of_range_are_refused_by_name)
{
    tb_model *model = written(WRITTEN);
    tb_state *world = world_of(model);
    set(world, OTHERS[0]);
    numbers n = read(world);
    n.friction[1] = -0.1;
    refused(world, n, "friction", "shape 1 ('box'): friction is -0.1");
    n = read(world);
    n.mass[2] = 0;
    refused(world, n, "mass", "body 2 ('finger'): mass is 0");
    n.mass[2] = INFINITY;
    refused(world, n, "mass", "expected a number > 0");
    n = read(world);
    n.gain[0] = NAN;
    refused(world, n, "gain", "actuator 0 ('push')");
    n = read(world);
    n.bias[5] = INFINITY;
    refused(world, n, "bias", "actuator 1");
    n = read(world);
    n.damping[0] = 1;
    refused(world, n, "damping", "but the scene gives the free joint none");
    n = read(world);
    n.damping[2] = -1;
    refused(world, n, "damping", "joint 2 ('bend'): damping is -1");
    n = read(world);
    n.dry_friction[1] = NAN;
    refused(world, n, "dry_friction", "joint 1 ('push')");
    n = read(world);
    n.size[3] = 0;
    refused(world, n, "size", "shape 1 ('box'): size is 0, expected a number > 0");
    n = read(world);
    n.size[0] = 1;
    refused(world, n, "size", "shape 0 ('floor'): size is 1, but only spheres");
    n = read(world);
    n.size[3 * 2 + 2] = 0.1;
    refused(world, n, "size", "does not have it");
    n.size[3 * 2 + 2] = 0;
    n.size[3 * 2 + 1] = -1;
    refused(world, n, "size", "expected a number >= 0");

    /* the world's mass is not used; NULL leaves values as they are */
    tb_error error = {0};
    double mass[COUNT] = {-1, 2, 0.5, 0.1, 3};
    TEST_OK(tb_state_set_parameters(world, &(tb_parameters){.mass = mass}, &error), &error);
    ck_assert_double_eq(read(world).mass[4], 3);
    ck_assert_double_eq(read(world).friction[0], OTHERS[0].floor);

    TEST_OK(tb_state_set_parameters(world, NULL, &error), &error);
    ck_assert_double_eq(read(world).mass[4], 1);
    ck_assert_double_eq(read(world).friction[0], WRITTEN.floor);

    tb_model *other = written(OTHERS[1]);
    tb_state *foreign = world_of(other);
    TEST_STATUS(tb_state_share_parameters(world, foreign, &error), TB_INVALID_ARGUMENT, &error);
    tb_state_destroy(foreign);
    tb_model_destroy(other);
    tb_state_destroy(world);
    tb_model_destroy(model);
}
END_TEST

TEST_MAIN(a_world_with_parameters_steps_as_a_scene_written_with_them,
          snapshots_forks_and_resets_keep_parameters,
          a_snapshot_from_before_joints_and_sizes_were_parameters_keeps_the_scenes,
          parameters_out_of_range_are_refused_by_name)
