/* Every parameter of a world on a card: worlds of one batch with values of their own step as on the
 * processor, worlds that stay there too, and each parameter changes the motion. The tests use a card if
 * there is one, else one that the processor plays (tests/plugin/card). */
#include "card_util.h"

/* A servo's finger pushes a box over the floor; its tip hangs on a hinge that a motor turns. */
static const char SCENE[] =
    "<mujoco><option timestep='0.002'/><worldbody>"
    "<geom name='floor' type='plane' size='5 5 1' friction='0.5'/>"
    "<body name='box' pos='0.13 0 0.05'><freejoint/>"
    "<geom name='box' type='box' size='0.05 0.05 0.05' mass='1' friction='0.2'/></body>"
    "<body name='finger' pos='0 0 0.05'><joint name='push' type='slide' axis='1 0 0'/>"
    "<geom name='finger' type='capsule' size='0.02 0.02' mass='0.5' friction='0.1'/>"
    "<body name='tip' pos='0.05 0 0'><joint name='bend' axis='0 1 0' damping='0.01'"
    " frictionloss='0.001'/><geom name='tip' size='0.02' mass='0.1' friction='0.2'/></body></body>"
    "</worldbody><actuator>"
    "<general name='push' joint='push' biastype='affine' gainprm='40' biasprm='0 -40 -4'/>"
    "<motor joint='bend' gear='0.1'/></actuator></mujoco>";

typedef enum parameter {
    NONE,
    FRICTION,
    MASS,
    GAIN,
    BIAS,
    DAMPING,
    DRY_FRICTION,
    SIZE,
    NUMBER_OF_PARAMETERS
} parameter;
static const char *const NAMES[] = {"none", "friction", "mass",         "gain",
                                    "bias", "damping",  "dry friction", "size"};
enum { WORLDS = 3, STEPS = 150, MOST = 32 };

static tb_model *scene_model(void)
{
    tb_error error = {0};
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    TEST_OK(tb_scene_load_mjcf(SCENE, strlen(SCENE), "t.xml", NULL, &scene, &error), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

static tb_state *world_of(const tb_model *model)
{
    static const double CONTROLS[2] = {0.6, 0.3};
    tb_error error = {0};
    tb_state *state = state_of(model);
    TEST_OK(tb_state_set_controls(state, CONTROLS, 2, &error), &error);
    return state;
}

/* Gives the k-th world its own values of one parameter: the scene's times 1.4, 1.8, 2.2. */
static void change(tb_state *state, parameter which, int k)
{
    double friction[MOST], mass[MOST], gain[3 * MOST], bias[3 * MOST], damping[MOST], dry[MOST],
        size[3 * MOST];
    const tb_parameters all = {friction, mass, gain, bias, damping, dry, size};
    const tb_model_counts n = tb_model_count(tb_state_model(state));
    const double factor = 1.4 + 0.4 * k;
    tb_parameters chosen = {0};
    tb_error error = {0};
    tb_state_parameters(state, &all);
    for (int32_t i = 0; i < n.shapes; i++) friction[i] *= factor;
    for (int32_t i = 0; i < n.bodies; i++) mass[i] *= factor;
    for (int32_t i = 0; i < 3 * n.actuators; i++) gain[i] *= factor, bias[i] *= factor;
    for (int32_t i = 0; i < n.joints; i++) damping[i] *= factor, dry[i] *= 10 * factor;
    /* of the box, which grows towards the finger and keeps its height */
    size[3 * tb_model_find(tb_state_model(state), TB_HANDLE_SHAPE, "box")] *= factor;
    if (which == FRICTION) chosen.friction = friction;
    if (which == MASS) chosen.mass = mass;
    if (which == GAIN) chosen.gain = gain;
    if (which == BIAS) chosen.bias = bias;
    if (which == DAMPING) chosen.damping = damping;
    if (which == DRY_FRICTION) chosen.dry_friction = dry;
    if (which == SIZE) chosen.size = size;
    if (which != NONE) TEST_OK(tb_state_set_parameters(state, &chosen, &error), &error);
}

/* Steps a batch whose worlds differ by one parameter; writes their coordinates (WORLDS x MOST). */
static void play(const tb_model *model, tb_stepper *stepper, parameter which, double *q)
{
    tb_error error = {0};
    tb_state *worlds[WORLDS];
    const tb_model_counts n = tb_model_count(model);
    for (int k = 0; k < WORLDS; k++) {
        worlds[k] = world_of(model);
        change(worlds[k], which, k);
    }
    TEST_OK(tb_step_batch(stepper, worlds, WORLDS, STEPS, NULL, &error), &error);
    for (int k = 0; k < WORLDS; k++) {
        memcpy(q + k * MOST, tb_state_q(worlds[k]), (size_t)n.coordinates * sizeof *q);
        ck_assert_int_eq(tb_state_certificate(worlds[k])->status, TB_OK);
        tb_state_destroy(worlds[k]);
    }
}

static double distance(const double *a, const double *b, int32_t count)
{
    double largest = 0;
    for (int32_t i = 0; i < count; i++) largest = fmax(largest, fabs(a[i] - b[i]));
    return largest;
}

START_TEST(every_parameter_steps_on_a_card_as_on_the_processor)
{
    const bool played = find_card();
    tb_model *model = scene_model();
    tb_stepper *stays = resident_stepper(0), *plain = plain_stepper(),
               *cpu = stepper_on(TB_BACKEND_CPU, TB_DOUBLE);
    const int32_t n = tb_model_count(model).coordinates;
    static double unchanged[WORLDS * MOST], expected[WORLDS * MOST], card[WORLDS * MOST];
    play(model, cpu, NONE, unchanged);
    for (parameter which = NONE; which < NUMBER_OF_PARAMETERS; which++) {
        play(model, cpu, which, expected);
        for (int k = 0; k < WORLDS && which != NONE; k++) {
            const double moved = distance(expected + k * MOST, unchanged + k * MOST, n);
            ck_assert_msg(moved > 1e-5, "%s of world %d moves nothing: %g", NAMES[which], k, moved);
            for (int other = 0; other < k; other++)
                ck_assert_msg(distance(expected + k * MOST, expected + other * MOST, n) > 1e-6,
                              "%s: worlds %d and %d", NAMES[which], k, other);
        }
        for (int resident = 0; resident < 2; resident++) {
            play(model, resident ? stays : plain, which, card);
            for (int k = 0; k < WORLDS; k++) {
                const double apart = distance(expected + k * MOST, card + k * MOST, n);
                ck_assert_msg(apart <= (played ? 0 : 1e-8), "%s of world %d: %g m apart",
                              NAMES[which], k, apart);
            }
        }
    }
    tb_stepper_destroy(stays), tb_stepper_destroy(plain), tb_stepper_destroy(cpu);
    tb_model_destroy(model);
}
END_TEST

TEST_MAIN(every_parameter_steps_on_a_card_as_on_the_processor)
