/* Soft bodies of a state: the library's scenes, models, states and steps hold them, and rigid bodies push
 * back. */
#include "grid/grid.h"
#include "test_util.h"
#include "tribo_soft.h"

static tb_error error;

/* A ball of rubber flies to a free box; nothing outside acts. */
static const char CRASH[] =
    "<soft model=\"crash\">\n"
    "  <option timestep=\"0.002\" friction=\"0.3\"/>\n"
    "  <grid lower=\"-1.2 -1 -1\" upper=\"1.2 1 1\" spacing=\"0.1\"/>\n"
    "  <material name=\"rubber\" density=\"1000\" young=\"1e5\" poisson=\"0.3\" "
    "damping=\"0.002\"/>\n"
    "  <body name=\"ball\" material=\"rubber\" type=\"sphere\" size=\"0.35\" pos=\"-0.36 0.05 0\"\n"
    "        velocity=\"2 0 0\"/>\n"
    "  <rigid file=\"parts/rigid.xml\"/>\n"
    "</soft>\n";

static const char BOX[] =
    "<mujoco><worldbody>\n"
    "  <body name=\"box\" pos=\"0.25 0 0\"><freejoint/>\n"
    "    <geom name=\"box\" type=\"box\" size=\"0.2 0.3 0.25\" mass=\"150\"/></body>\n"
    "</worldbody></mujoco>\n";

typedef struct files {
    const char *text, *rigid; /* of "main.xml" and "parts/rigid.xml"; NULL: there is none */
} files;

static tb_status read_file(void *context, const char *path, unsigned char **bytes, size_t *size,
                           tb_error *cause)
{
    const files *f = context;
    const char *text = strcmp(path, "main.xml") == 0          ? f->text
                       : strcmp(path, "parts/rigid.xml") == 0 ? f->rigid
                                                              : NULL;
    if (text == NULL) return tb_fail(cause, TB_NOT_FOUND, "there is no file %s", path);
    *bytes = (unsigned char *)strdup(text);
    *size = strlen(text);
    return TB_OK;
}

static tb_status load_model(const char *text, const char *rigid, tb_model **model)
{
    files f = {text, rigid};
    const tb_file_source source = {read_file, &f};
    tb_import_options options = tb_import_defaults();
    options.files = &source;
    memset(&error, 0, sizeof error);
    return tb_model_load("main.xml", &options, model, &error);
}

static tb_model *model_of(const char *text, const char *rigid)
{
    tb_model *model = NULL;
    TEST_OK(load_model(text, rigid, &model), &error);
    return model;
}

static tb_state *state_of(const tb_model *model)
{
    tb_state *state = NULL;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    return state;
}

static tb_stepper *stepper_of(void)
{
    tb_stepper *stepper = NULL;
    TEST_OK(tb_stepper_create(NULL, &stepper, &error), &error);
    return stepper;
}

/* Momentum of the soft ball and of the box (150 kg), kg m/s. */
static void momentum_of(const tb_state *state, double momentum[3])
{
    tb_body_motion motion;
    tb_soft_world_measure(tb_state_soft_world(state), 0, NULL, momentum, NULL);
    const int32_t box = tb_model_find(tb_state_model(state), TB_HANDLE_BODY, "box");
    TEST_OK(tb_state_body_motion(state, box, &motion), NULL);
    for (int a = 0; a < 3; a++) momentum[a] += 150 * motion.linear_velocity[a];
}

START_TEST(a_soft_ball_and_a_rigid_box_keep_the_sum_of_their_momenta)
{
    tb_model *model = model_of(CRASH, BOX);
    tb_state *state = state_of(model);
    tb_stepper *stepper = stepper_of();
    tb_soft_certificate c;
    double start[3], end[3], worst = 0, deepest = 0;
    momentum_of(state, start);
    ck_assert(start[0] > 300);
    for (int i = 0; i < 100; i++) {
        TEST_OK(tb_step(stepper, state, 1, NULL, &error), &error);
        ck_assert(tb_state_soft_certificate(state, &c));
        worst = fmax(worst, c.prediction_error);
        deepest = fmax(deepest, c.penetration);
        momentum_of(state, end);
        for (int a = 0; a < 3; a++) TEST_NEAR(end[a], start[a], 1e-10 * start[0]);
    }
    tb_body_motion box;
    TEST_OK(tb_state_body_motion(state, 1, &box), NULL);
    ck_assert_msg(box.linear_velocity[0] > 0.8, "the box moves by %g m/s", box.linear_velocity[0]);
    /* off the middle: it turns, too */
    ck_assert(fabs(box.angular_velocity[2]) > 0.01);
    /* free bodies are predicted up to rotation */
    ck_assert_msg(worst < 1e-3, "velocities are off by %g m/s", worst);
    ck_assert_msg(deepest < 0.05, "the ball is %g m in the box", deepest);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

/* A plate of steel rests on a block of jelly, which stands on a plate that stands on the floor. */
static const char STACK[] =
    "<soft model=\"stack\">\n"
    "  <option timestep=\"0.002\" gravity=\"0 0 -9.81\" friction=\"0.5\"/>\n"
    "  <grid lower=\"-0.6 -0.6 -0.4\" upper=\"0.6 0.6 0.9\" spacing=\"0.1\"/>\n"
    "  <material name=\"jelly\" density=\"1000\" young=\"1e5\" poisson=\"0.3\" damping=\"0.01\"/>\n"
    "  <body name=\"block\" material=\"jelly\" type=\"box\" size=\"0.2 0.2 0.15\" pos=\"0 0 "
    "0.25\"/>\n"
    "  <wall name=\"floor\" type=\"plane\"/>\n"
    "  <rigid file=\"parts/rigid.xml\"/>\n"
    "</soft>\n";

static const char PLATES[] = "<mujoco><worldbody>\n"
                             "  <body name=\"low\" pos=\"0 0 0.05\"><freejoint/>\n"
                             "    <geom type=\"box\" size=\"0.3 0.3 0.05\" mass=\"20\"/></body>\n"
                             "  <body name=\"high\" pos=\"0 0 0.45\"><freejoint/>\n"
                             "    <geom type=\"box\" size=\"0.3 0.3 0.05\" mass=\"10\"/></body>\n"
                             "</worldbody></mujoco>\n";

START_TEST(a_plate_rests_on_jelly_on_a_plate_on_the_floor)
{
    tb_model *model = model_of(STACK, PLATES);
    tb_state *state = state_of(model);
    tb_stepper *stepper = stepper_of();
    tb_body_motion low, high;
    tb_soft_certificate c;
    TEST_OK(tb_step(stepper, state, 300, NULL, &error), &error);
    TEST_OK(tb_state_body_motion(state, 1, &low), NULL);
    TEST_OK(tb_state_body_motion(state, 2, &high), NULL);
    TEST_NEAR(low.position[2], 0.05, 1e-5);
    TEST_NEAR(low.linear_velocity[2], 0, 1e-4);
    TEST_NEAR(high.linear_velocity[2], 0, 2e-3);
    /* strain of the block by 10 kg and half of its own 48 kg: 0.3 m (10 + 24) g / (E 0.16 m^2) */
    TEST_NEAR(high.position[2], 0.45 - 0.3 * 34 * 9.81 / (1e5 * 0.16), 2e-3);
    ck_assert(tb_state_soft_certificate(state, &c));
    ck_assert_msg(c.prediction_error < 1e-4, "velocities are off by %g m/s", c.prediction_error);
    ck_assert_msg(c.penetration < 0.01, "overlaps of %g m", c.penetration);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

/* ---- clamps that move ---- */

#define PAD(clamp)                                                                                 \
    "<soft model=\"pad\">\n"                                                                       \
    "  <option timestep=\"0.002\" gravity=\"0 0 -9.81\"/>\n"                                       \
    "  <grid lower=\"-0.6 -0.6 -0.6\" upper=\"0.7 0.6 0.6\" spacing=\"0.1\"/>\n"                   \
    "  <material name=\"jelly\" density=\"1000\" young=\"1e5\" poisson=\"0.3\" "                   \
    "damping=\"0.02\"/>\n"                                                                         \
    "  <body name=\"pad\" material=\"jelly\" type=\"box\" size=\"0.2 0.2 0.1\"/>\n"                \
    "  <clamp body=\"pad\" lower=\"-1 -1 -0.02\" upper=\"1 1 1\" " clamp "/>\n"                    \
    "  <rigid file=\"parts/rigid.xml\"/>\n"                                                        \
    "</soft>\n"

static const char JAW[] = "<mujoco><worldbody>\n"
                          "  <body name=\"jaw\" pos=\"0 0 0.2\">\n"
                          "    <joint type=\"slide\" axis=\"0 0 1\" stiffness=\"20000\" "
                          "damping=\"900\"/>\n"
                          "    <geom type=\"box\" size=\"0.2 0.2 0.1\" mass=\"50\"/></body>\n"
                          "</worldbody></mujoco>\n";

START_TEST(a_pad_hangs_on_the_jaw_that_it_is_clamped_to)
{
    tb_model *model = model_of(PAD("rigid=\"jaw\""), JAW);
    tb_state *state = state_of(model), *fork = NULL, *restored = state_of(model);
    tb_stepper *stepper = stepper_of();
    tb_body_motion jaw;
    tb_soft_certificate c;
    unsigned char *bytes = NULL;
    size_t size = 0;
    double centre[3];
    TEST_OK(tb_step(stepper, state, 300, NULL, &error), &error);
    TEST_OK(tb_state_fork(state, &fork, &error), &error);
    TEST_OK(tb_state_snapshot(state, &bytes, &size, &error), &error);
    TEST_OK(tb_state_restore(restored, bytes, size, &error), &error);
    tb_state *const all[] = {state, fork, restored};
    TEST_OK(tb_step_batch(stepper, all, 3, 100, NULL, &error), &error);
    ck_assert(tb_state_hash(state) == tb_state_hash(fork));
    ck_assert(tb_state_hash(state) == tb_state_hash(restored));

    /* the spring carries jaw and pad, 50 and 32 kg */
    const double sag = 82 * 9.81 / 20000;
    TEST_OK(tb_state_body_motion(state, tb_model_find(model, TB_HANDLE_BODY, "jaw"), &jaw), NULL);
    TEST_NEAR_RELATIVE(0.2 - jaw.position[2], sag, 0.01);
    tb_soft_world_measure(tb_state_soft_world(state), 0, NULL, NULL, centre);
    /* the pad's own weight stretches its lower half by less than rho g L^2 / (2 E) */
    TEST_NEAR(centre[2], -sag, 2e-3);
    TEST_NEAR(centre[0], 0, 1e-6);
    ck_assert(tb_state_soft_certificate(state, &c));
    ck_assert_int_eq(c.contacts, 0); /* with its own jaw */
    for (int i = 0; i < 3; i++) tb_state_destroy(all[i]);
    tb_bytes_destroy(bytes);
    tb_stepper_destroy(stepper);
    tb_model_destroy(model);
}
END_TEST

static const char FAR_BALL[] = "<mujoco><worldbody>\n"
                               "  <body name=\"ball\" pos=\"0 0 9\"><freejoint/>\n"
                               "    <geom size=\"0.1\" mass=\"1\"/></body>\n"
                               "</worldbody></mujoco>\n";

START_TEST(a_clamp_with_a_velocity_takes_its_body_along)
{
    tb_model *model = model_of(PAD("velocity=\"0.25 0 0\""), FAR_BALL), *none = NULL;
    tb_state *state = state_of(model);
    tb_stepper *stepper = stepper_of();
    double first[3], second[3];
    TEST_OK(tb_step(stepper, state, 200, NULL, &error), &error);
    tb_soft_world_measure(tb_state_soft_world(state), 0, NULL, NULL, first);
    TEST_OK(tb_step(stepper, state, 100, NULL, &error), &error);
    tb_soft_world_measure(tb_state_soft_world(state), 0, NULL, NULL, second);
    TEST_NEAR(second[0] - first[0], 0.25 * 0.2, 1e-3);
    TEST_NEAR(second[2] - first[2], 0, 1e-3);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
    ck_assert_int_eq(load_model(PAD("rigid=\"finger\""), JAW, &none), TB_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.message, "'finger'") != NULL, "%s", error.message);
}
END_TEST

/* The upper plate of the stack on a joint, the lower one a wall. */
static void settle_on_joint(const char *joint, double height[2])
{
    char rigid[1024];
    snprintf(rigid, sizeof rigid,
             "<mujoco><worldbody><geom type=\"box\" size=\"0.3 0.3 0.05\" pos=\"0 0 0.05\"/>"
             "<body name=\"high\" pos=\"0 0 0.45\">%s<geom type=\"box\" size=\"0.3 0.3 0.05\" "
             "mass=\"10\"/></body></worldbody></mujoco>",
             joint);
    tb_model *model = model_of(STACK, rigid);
    tb_state *state = state_of(model);
    tb_stepper *stepper = stepper_of();
    for (int i = 0; i < 2; i++) {
        tb_body_motion high;
        tb_soft_certificate c;
        TEST_OK(tb_step(stepper, state, 40, NULL, &error), &error);
        TEST_OK(tb_state_body_motion(state, 1, &high), NULL);
        height[i] = high.position[2];
        ck_assert(tb_state_soft_certificate(state, &c));
        ck_assert_msg(c.prediction_error < 1e-6, "velocities are off by %g m/s",
                      c.prediction_error);
    }
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
}

START_TEST(a_body_on_a_slide_answers_as_a_free_one_that_moves_along_it)
{
    double free_body[2], slide[2];
    settle_on_joint("<freejoint/>", free_body);
    settle_on_joint("<joint type=\"slide\" axis=\"0 0 1\"/>", slide);
    for (int i = 0; i < 2; i++) {
        ck_assert(free_body[i] < 0.448);
        TEST_NEAR(slide[i], free_body[i], 1e-4);
    }
}
END_TEST

/* Two pads on jaws that motors press against a block, which hangs between them on a slide. */
static const char HELD[] =
    "<soft model=\"held\">\n"
    "  <option timestep=\"0.002\" gravity=\"0 0 -9.81\" friction=\"0.5\"/>\n"
    "  <grid lower=\"-0.06 -0.036 -0.036\" upper=\"0.06 0.036 0.036\" spacing=\"0.006\"/>\n"
    "  <material name=\"silicone\" density=\"4400\" young=\"2e5\" poisson=\"0.4\" "
    "damping=\"1e-4\"/>\n"
    "  <body name=\"left\" material=\"silicone\" type=\"box\" size=\"0.006 0.009 0.009\"\n"
    "        pos=\"-0.0211 0 0\"/>\n"
    "  <body name=\"right\" material=\"silicone\" type=\"box\" size=\"0.006 0.009 0.009\"\n"
    "        pos=\"0.0211 0 0\"/>\n"
    "  <clamp body=\"left\" lower=\"-1 -1 -1\" upper=\"-0.021 1 1\" rigid=\"left_jaw\"/>\n"
    "  <clamp body=\"right\" lower=\"0.021 -1 -1\" upper=\"1 1 1\" rigid=\"right_jaw\"/>\n"
    "  <rigid file=\"parts/rigid.xml\"/>\n"
    "</soft>\n";
static const double HELD_FORCE = 5, HELD_FRICTION = 0.5, HELD_DAMPING = 80; /* N; 1; N s/m */

/* Velocities of a block (m/s, mean of the last 20 ms; upwards) whose weight is `ratio` times the most
 * that two pads carry, 2 mu N. */
static double hang(double ratio)
{
    char rigid[1536];
    snprintf(rigid, sizeof rigid,
             "<mujoco><worldbody>"
             "<body name=\"left_jaw\" pos=\"-0.03 0 0\"><joint name=\"l\" type=\"slide\" "
             "axis=\"1 0 0\" damping=\"60\"/>"
             "<geom type=\"box\" size=\"0.002 0.009 0.009\" mass=\"0.1\"/></body>"
             "<body name=\"right_jaw\" pos=\"0.03 0 0\"><joint name=\"r\" type=\"slide\" "
             "axis=\"-1 0 0\" damping=\"60\"/>"
             "<geom type=\"box\" size=\"0.002 0.009 0.009\" mass=\"0.1\"/></body>"
             "<body name=\"block\"><joint type=\"slide\" axis=\"0 0 1\" damping=\"%g\"/>"
             "<geom type=\"box\" size=\"0.015 0.012 0.02\" mass=\"%.17g\"/></body>"
             "</worldbody><actuator><motor joint=\"l\"/><motor joint=\"r\"/></actuator></mujoco>",
             HELD_DAMPING, ratio * 2 * HELD_FRICTION * HELD_FORCE / 9.81);
    tb_model *model = model_of(HELD, rigid);
    tb_state *state = state_of(model);
    tb_stepper *stepper = stepper_of();
    const int32_t block = tb_model_find(model, TB_HANDLE_BODY, "block");
    const double controls[2] = {HELD_FORCE, HELD_FORCE};
    tb_body_motion from, to;
    TEST_OK(tb_state_set_controls(state, controls, 2, &error), &error);
    TEST_OK(tb_step(stepper, state, 45, NULL, &error), &error);
    TEST_OK(tb_state_body_motion(state, block, &from), NULL);
    TEST_OK(tb_step(stepper, state, 10, NULL, &error), &error);
    TEST_OK(tb_state_body_motion(state, block, &to), NULL);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
    return (to.position[2] - from.position[2]) / 0.02;
}

/* Above the limit the damper of the slide carries what the friction of both pads, 2 mu N, does not. */
START_TEST(two_pads_hold_a_block_up_to_twice_the_friction_of_one)
{
    const double held = hang(0.9), slips = hang(1.2);
    const double terminal = -0.2 * 2 * HELD_FRICTION * HELD_FORCE / HELD_DAMPING;
    printf("block between two pads: %.3g m/s at 0.9 of the limit, %.3g m/s at 1.2 (%.3g)\n", held,
           slips, terminal);
    TEST_NEAR(held, 0, 5e-4);
    TEST_NEAR_RELATIVE(slips, terminal, 0.05);
}
END_TEST

/* A block on the floor under a free box of a ninetieth of its mass. */
static const char LOADED[] =
    "<soft model=\"loaded\"><option timestep=\"0.002\" gravity=\"0 0 -9.81\" friction=\"0.5\"/>\n"
    "<grid lower=\"-0.6 -0.6 -0.4\" upper=\"0.6 0.6 0.9\" spacing=\"0.06\"/>\n"
    "<material name=\"m\" density=\"1000\" young=\"5e4\" poisson=\"0.3\" damping=\"0.02\"/>\n"
    "<body name=\"b\" material=\"m\" type=\"box\" size=\"0.24 0.24 0.1\" pos=\"0 0 0.1\"/>\n"
    "<wall name=\"floor\" type=\"plane\"/><rigid file=\"parts/rigid.xml\"/></soft>\n";

static const char LIGHT[] =
    "<mujoco><worldbody><body name=\"box\" pos=\"0 0 0.305\" euler=\"0 3 10\"><freejoint/>\n"
    "<geom type=\"box\" size=\"0.2 0.2 0.1\" mass=\"0.5\"/></body></worldbody></mujoco>\n";

/* Many contacts move a light body much: sweeps find the sets of both programs even so. */
START_TEST(a_light_box_on_a_block_needs_two_projections)
{
    tb_model *model = model_of(LOADED, LIGHT);
    tb_state *state = state_of(model);
    tb_stepper *stepper = stepper_of();
    tb_soft_certificate c;
    for (int i = 0; i < 4; i++) {
        TEST_OK(tb_step(stepper, state, 1, NULL, &error), &error);
        ck_assert(tb_state_soft_certificate(state, &c));
        ck_assert_int_eq(c.status, TB_OK);
        ck_assert_msg(c.projections <= 2, "%d projections in step %d", c.projections, i);
    }
    ck_assert_int_gt(c.contacts, 100);
    ck_assert_int_le(c.contacts, 160);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

START_TEST(snapshots_and_forks_go_on_with_the_same_bytes)
{
    tb_model *model = model_of(CRASH, BOX);
    tb_state *state = state_of(model), *fork = NULL, *restored = state_of(model);
    tb_stepper *stepper = stepper_of();
    unsigned char *bytes = NULL;
    size_t size = 0;
    const uint64_t start = tb_state_hash(state);
    TEST_OK(tb_step(stepper, state, 40, NULL, &error), &error);
    const uint64_t touched = tb_state_hash(state);
    ck_assert(start != touched);
    TEST_OK(tb_state_fork(state, &fork, &error), &error);
    TEST_OK(tb_state_snapshot(state, &bytes, &size, &error), &error);
    TEST_OK(tb_step(stepper, restored, 3, NULL, &error), &error); /* elsewhere before */
    TEST_OK(tb_state_restore(restored, bytes, size, &error), &error);
    ck_assert(tb_state_hash(fork) == touched);
    ck_assert(tb_state_hash(restored) == touched);
    tb_state *const all[] = {state, fork, restored};
    TEST_OK(tb_step_batch(stepper, all, 3, 10, NULL, &error), &error);
    ck_assert(tb_state_hash(state) == tb_state_hash(fork));
    ck_assert(tb_state_hash(state) == tb_state_hash(restored));
    ck_assert(tb_state_hash(state) != touched);
    TEST_OK(tb_state_reset(fork, -1, &error), &error);
    ck_assert(tb_state_hash(fork) == start);

    bytes[size - 100] ^= 1;
    TEST_STATUS(tb_state_restore(fork, bytes, size, &error), TB_DATA_LOSS, NULL);
    TEST_STATUS(tb_state_restore(fork, bytes, size / 2, &error), TB_DATA_LOSS, NULL);
    ck_assert(tb_state_hash(fork) == start);
    tb_bytes_destroy(bytes);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_state_destroy(fork);
    tb_state_destroy(restored);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_models_bytes_hold_its_soft_bodies)
{
    tb_model *model = model_of(STACK, PLATES), *again = NULL;
    size_t size = 0;
    const unsigned char *bytes = tb_model_bytes(model, &size);
    TEST_OK(tb_model_from_bytes(bytes, size, &again, &error), &error);
    ck_assert_str_eq(tb_model_sha256(model), tb_model_sha256(again));
    ck_assert_int_eq(tb_soft_model_bodies(again), 1);
    ck_assert(tb_soft_model_bytes(again) > 100000);
    ck_assert_int_gt(tb_soft_model_nodes(again), 1000);
    ck_assert_uint_gt(tb_soft_model_card_bytes(again), 100000);
    ck_assert_str_eq(tb_model_name(again), "stack");
    TEST_NEAR(tb_model_dt(again), 0.002, 0);
    ck_assert(tb_model_find(again, TB_HANDLE_SHAPE, "floor") >= 0);
    tb_model_destroy(again);
    tb_model_destroy(model);

    /* another material is another model */
    char *other = strdup(STACK);
    memcpy(strstr(other, "1e5"), "2e5", 3);
    model = model_of(STACK, PLATES);
    again = model_of(other, PLATES);
    ck_assert_str_ne(tb_model_sha256(model), tb_model_sha256(again));
    free(other);
    tb_model_destroy(again);
    tb_model_destroy(model);

    model = model_of(BOX, NULL);
    tb_state *state = state_of(model);
    ck_assert_int_eq(tb_soft_model_bodies(model), 0);
    ck_assert_uint_eq(tb_soft_model_bytes(model), 0);
    ck_assert_ptr_null(tb_state_soft_world(state));
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_step_that_fails_leaves_the_state_as_it_was)
{
    tb_model *model = model_of(CRASH, BOX);
    tb_state *state = state_of(model);
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    TEST_OK(tb_step(stepper, state, 10, NULL, &error), &error);
    const uint64_t before = tb_state_hash(state);
    options.dt = 0.9;
    TEST_OK(tb_stepper_set_options(stepper, &options, &error), &error);
    TEST_STATUS(tb_step(stepper, state, 1, NULL, &error), TB_FAILED_PRECONDITION, &error);
    ck_assert(strstr(error.message, "substeps") != NULL);
    ck_assert(tb_state_hash(state) == before);
    options = tb_step_defaults();
    options.precision = TB_FLOAT;
    TEST_OK(tb_stepper_set_options(stepper, &options, &error), &error);
    TEST_STATUS(tb_step(stepper, state, 1, NULL, &error), TB_UNSUPPORTED, NULL);
    options = tb_step_defaults();
    options.scheme = TB_SCHEME_MOREAU;
    TEST_OK(tb_stepper_set_options(stepper, &options, &error), &error);
    TEST_STATUS(tb_step(stepper, state, 1, NULL, &error), TB_UNSUPPORTED, NULL);
    ck_assert(tb_state_hash(state) == before);
    options = tb_step_defaults();
    TEST_OK(tb_stepper_set_options(stepper, &options, &error), &error);
    TEST_OK(tb_step(stepper, state, 1, NULL, &error), &error);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

static void refuse(const char *text, const char *rigid, tb_status status, const char *said)
{
    tb_model *model = NULL;
    TEST_STATUS(load_model(text, rigid, &model), status, &error);
    ck_assert_msg(strstr(error.message, said) != NULL, "'%s' does not say '%s'", error.message,
                  said);
    ck_assert_ptr_null(model);
}

START_TEST(bad_rigid_files_are_refused_by_name)
{
    refuse(CRASH, NULL, TB_NOT_FOUND, "parts/rigid.xml");
    refuse(CRASH, CRASH, TB_INVALID_ARGUMENT, "is a scene of soft bodies");
    refuse(CRASH, "<mujoco><worldbody><geom typ=\"box\"/></worldbody></mujoco>",
           TB_INVALID_ARGUMENT, "parts/rigid.xml:1");
    refuse(CRASH,
           "<mujoco><asset><mesh name=\"m\" vertex=\"0 0 0 1 0 0 0 1 0 0 0 1\"/>"
           "<hfield name=\"h\" nrow=\"2\" ncol=\"2\" size=\"1 1 1 1\"/></asset><worldbody>"
           "<geom name=\"hills\" type=\"hfield\" hfield=\"h\"/></worldbody></mujoco>",
           TB_UNSUPPORTED, "'hills' (number 0) is a height field");
    char *twice = malloc(sizeof CRASH + 64);
    snprintf(twice, sizeof CRASH + 64, "%.*s<rigid file=\"a.xml\"/></soft>",
             (int)(strstr(CRASH, "</soft>") - CRASH), CRASH);
    refuse(twice, BOX, TB_INVALID_ARGUMENT, "main.xml:8: rigid");
    free(twice);
}
END_TEST

TEST_MAIN(a_pad_hangs_on_the_jaw_that_it_is_clamped_to,
          a_clamp_with_a_velocity_takes_its_body_along,
          a_soft_ball_and_a_rigid_box_keep_the_sum_of_their_momenta,
          a_plate_rests_on_jelly_on_a_plate_on_the_floor,
          a_body_on_a_slide_answers_as_a_free_one_that_moves_along_it,
          two_pads_hold_a_block_up_to_twice_the_friction_of_one,
          a_light_box_on_a_block_needs_two_projections,
          snapshots_and_forks_go_on_with_the_same_bytes, a_models_bytes_hold_its_soft_bodies,
          a_step_that_fails_leaves_the_state_as_it_was, bad_rigid_files_are_refused_by_name)
