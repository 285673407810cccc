/* Sensors: numbers in closed form, types that are left out with a warning, and sensors as a part of
 * the model. */
#include <math.h>

#include "model/mjcf_util.h"

static tb_error error;

#define G 9.81
/* A box of 2 kg that rests with a touch zone below and one above, in sight of a driven reference; a
 * pendulum of 0.5 m; a welded load. */
#define SCENE                                                                                      \
    MJCF(                                                                                          \
        "<option timestep='.001'/><worldbody><geom name='floor' type='plane' size='1 1 .1'/>"      \
        "<body name='box' pos='0 0 .1'><freejoint/><geom name='g' type='box' size='.1 .1 .1' "     \
        "mass='2'/><site name='under' type='box' size='.11 .11 .02' pos='0 0 -.1'/>"               \
        "<site name='above' type='box' size='.11 .11 .02' pos='0 0 .1'/>"                          \
        "<site name='turned' euler='0 90 0'/></body>"                                              \
        "<body name='arm' pos='3 0 2'><joint name='j' axis='0 1 0'/>"                              \
        "<geom size='.01' mass='1' pos='0 0 -.5' contype='0' conaffinity='0'/>"                    \
        "<site name='bob' pos='0 0 -.5'/></body>"                                                  \
        "<body name='post' pos='5 0 0'><body name='load' pos='0 .3 1'>"                            \
        "<geom size='.1' mass='4' contype='0' conaffinity='0'/><site name='foot' pos='0 -.3 -1'/>" \
        "</body></body></worldbody>"                                                               \
        "<sensor><touch name='tu' site='under'/><touch name='ta' site='above'/>"                   \
        "<accelerometer name='rest' site='turned'/><jointpos name='p' joint='j'/>"                 \
        "<jointvel name='v' joint='j'/><accelerometer name='swing' site='bob'/>"                   \
        "<gyro name='w' site='bob' cutoff='.5'/><force name='f' site='foot'/>"                     \
        "<torque name='t' site='foot'/><framepos name='where' objtype='geom' objname='g' "         \
        "reftype='site' refname='turned'/><subtreecom name='all' body='world'/>"                   \
        "<clock name='time'/><magnetometer site='bob'/>"                                           \
        "<framequat objtype='body' objname='box'/><jointpos joint='none'/></sensor>"               \
        "<keyframe><key qpos='0 0 .1 1 0 0 0 .3' qvel='0 0 0 0 0 0 2'/></keyframe>")

static const double *numbers_of(const tb_state *state, const char *name, double *numbers)
{
    tb_sensor_info info;
    const tb_model *m = tb_state_model(state);
    TEST_OK(tb_state_sensors(state, 0.001, numbers, &error), &error);
    const int32_t index = tb_model_find(m, TB_HANDLE_SENSOR, name);
    ck_assert_int_eq(tb_model_sensor_info(m, index, &info), TB_OK);
    return numbers + info.first;
}

static void near3(const double *x, double a, double b, double c, double within)
{
    TEST_NEAR(x[0], a, within);
    TEST_NEAR(x[1], b, within);
    TEST_NEAR(x[2], c, within);
}

START_TEST(numbers_are_those_of_mechanics)
{
    mjcf_case c = mjcf_load(SCENE);
    tb_stepper *stepper;
    tb_state *state;
    const tb_step_options options = tb_step_defaults();
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    TEST_OK(tb_state_create(c.model, &state, &error), &error);
    TEST_OK(tb_state_reset(state, 0, &error), &error);
    ck_assert_int_eq(tb_model_count(c.model).sensors, 12);
    double n[64];
    ck_assert_int_le(tb_model_count(c.model).sensor_numbers, 64);

    /* before a step there are no forces and accelerations */
    near3(numbers_of(state, "rest", n), 0, 0, 0, 0);
    near3(numbers_of(state, "f", n), 0, 0, 0, 0);
    TEST_NEAR(*numbers_of(state, "p", n), 0.3, 1e-15);

    TEST_OK(tb_step(stepper, state, 1, NULL, &error), &error);
    TEST_NEAR(*numbers_of(state, "tu", n), 2 * G, 1e-5);
    TEST_NEAR(*numbers_of(state, "ta", n), 0, 0);
    near3(numbers_of(state, "rest", n), -G, 0, 0, 1e-6); /* up is the site's -x */
    near3(numbers_of(state, "f", n), 0, 0, 4 * G, 1e-9);
    near3(numbers_of(state, "t", n), 4 * G * 0.3, 0, 0, 1e-9);
    near3(numbers_of(state, "where", n), 0, 0, 0, 1e-15);
    near3(numbers_of(state, "w", n), 0, 0.5, 0, 0); /* 2 rad/s beyond the cutoff */
    TEST_NEAR(*numbers_of(state, "time", n), 0.001, 1e-15);
    /* the bob feels the centripetal acceleration and gravity along the rod, nothing across */
    const double angle = *numbers_of(state, "p", n), speed = *numbers_of(state, "v", n);
    near3(numbers_of(state, "swing", n), 0, 0, speed * speed * 0.5 + G * cos(angle), 0.02);
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    mjcf_free(&c);
}
END_TEST

START_TEST(what_is_not_measured_is_named)
{
    mjcf_case c = mjcf_load(SCENE);
    ck_assert_int_eq(mjcf_warnings(&c, "magnetometer is not computed"), 1);
    ck_assert_int_eq(mjcf_warnings(&c, "framequat is left out: principal axes"), 1);
    ck_assert_int_eq(mjcf_warnings(&c, "jointpos is left out: the model has no such"), 1);
    mjcf_free(&c);
}
END_TEST

START_TEST(sensors_are_a_part_of_the_model)
{
    mjcf_case c = mjcf_load(SCENE);
    size_t size;
    const unsigned char *bytes = tb_model_bytes(c.model, &size);
    tb_model *copy;
    TEST_OK(tb_model_from_bytes(bytes, size, &copy, &error), &error);
    ck_assert_str_eq(tb_model_sha256(copy), tb_model_sha256(c.model));
    ck_assert_int_eq(copy->number_of_sensors, c.model->number_of_sensors);
    for (int32_t i = 0; i < copy->number_of_sensors; i++) {
        tb_sensor_info a, b;
        ck_assert_int_eq(tb_model_sensor_info(c.model, i, &a), TB_OK);
        ck_assert_int_eq(tb_model_sensor_info(copy, i, &b), TB_OK);
        ck_assert_int_eq(a.type, b.type);
        ck_assert_int_eq(a.object, b.object);
        ck_assert_int_eq(a.first, b.first);
    }
    tb_model_destroy(copy);
    mjcf_free(&c);
}
END_TEST

START_TEST(a_builder_refuses_what_measures_nothing)
{
    tb_scene *scene = NULL;
    TEST_OK(tb_scene_create(NULL, &scene, &error), &error);
    tb_sensor_def def = tb_sensor_defaults();
    def.type = TB_SENSOR_JOINT_POSITION;
    ck_assert_int_eq(tb_scene_add_sensor(scene, &def, NULL, &error), TB_INVALID_ARGUMENT);
    def.type = TB_SENSOR_TYPES;
    ck_assert_int_eq(tb_scene_add_sensor(scene, &def, NULL, &error), TB_INVALID_ARGUMENT);
    def = tb_sensor_defaults();
    def.has_reference = true;
    ck_assert_int_eq(tb_scene_add_sensor(scene, &def, NULL, &error), TB_INVALID_ARGUMENT);
    def = tb_sensor_defaults();
    def.cutoff = -1;
    ck_assert_int_eq(tb_scene_add_sensor(scene, &def, NULL, &error), TB_INVALID_ARGUMENT);
    tb_scene_destroy(scene);
}
END_TEST

TEST_MAIN(numbers_are_those_of_mechanics, what_is_not_measured_is_named,
          sensors_are_a_part_of_the_model, a_builder_refuses_what_measures_nothing)
