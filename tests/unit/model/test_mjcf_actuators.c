/* MJCF actuators: shortcuts, defaults, limits, damping ratios and attributes of the joint. */
#include "mjcf_util.h"

/* a document with one pendulum, a tendon of it and these defaults and actuators */
#define ACTUATED(defaults, joint, actuators)                                                       \
    MJCF("<default>" defaults "</default><worldbody>" PENDULUM(                                    \
        "range='-1 2' " joint) "</worldbody>"                                                      \
                               "<tendon><fixed name='t'><joint joint='j' "                         \
                               "coef='2'/></fixed></tendon><actuator>" actuators "</actuator>")

static void check(const char *text, double gain0, double gain2, double bias0, double bias1,
                  double bias2, tb_activation activation)
{
    mjcf_case c = mjcf_load(text);
    const tb_model_actuator *a = &c.model->actuators[0];
    TEST_NEAR(a->gain[0], gain0, 1e-12);
    TEST_NEAR(a->gain[2], gain2, 1e-12);
    TEST_NEAR(a->bias[0], bias0, 1e-12);
    TEST_NEAR(a->bias[1], bias1, 1e-12);
    TEST_NEAR(a->bias[2], bias2, 1e-7);
    ck_assert_int_eq(a->activation_kind, activation);
    mjcf_free(&c);
}

START_TEST(shortcuts_set_gain_and_bias)
{
    check(ACTUATED("", "", "<motor joint='j'/>"), 1, 0, 0, 0, 0, TB_ACTIVATION_NONE);
    check(ACTUATED("", "", "<position joint='j' kp='5' kv='2'/>"), 5, 0, 0, -5, -2,
          TB_ACTIVATION_NONE);
    check(ACTUATED("", "", "<position joint='j' kp='5' timeconst='.1'/>"), 5, 0, 0, -5, 0,
          TB_ACTIVATION_FILTER);
    check(ACTUATED("", "", "<velocity joint='j' kv='3'/>"), 3, 0, 0, 0, -3, TB_ACTIVATION_NONE);
    check(ACTUATED("", "", "<intvelocity joint='j' kp='4' kv='1'/>"), 4, 0, 0, -4, -1,
          TB_ACTIVATION_INTEGRATOR);
    check(ACTUATED("", "", "<damper joint='j' kv='3' ctrlrange='0 2'/>"), 0, -3, 0, 0, 0,
          TB_ACTIVATION_NONE);
    check(ACTUATED("", "", "<cylinder joint='j' diameter='2' bias='1 2 3' timeconst='4'/>"),
          3.14159265358979323846, 0, 1, 2, 3, TB_ACTIVATION_FILTER);
    check(ACTUATED("", "",
                   "<general joint='j' gaintype='affine' gainprm='1 2 3' biastype='affine' "
                   "biasprm='4 5 6 7 8' dyntype='filterexact' dynprm='.3'/>"),
          1, 3, 4, 5, 6, TB_ACTIVATION_FILTER);
    check(ACTUATED("", "", "<general joint='j' gainprm='1 2 3' biasprm='4 5 6'/>"), 1, 0, 0, 0, 0,
          TB_ACTIVATION_NONE);
}
END_TEST

START_TEST(shortcuts_share_one_set_of_defaults)
{
    check(ACTUATED("<position kp='50' kv='3'/>", "", "<position joint='j' kp='20'/>"), 20, 0, 0,
          -20, -3, TB_ACTIVATION_NONE);
    check(ACTUATED("<position kp='50' kv='3'/>", "", "<general joint='j'/>"), 50, 0, 0, -50, -3,
          TB_ACTIVATION_NONE);
    check(ACTUATED("<position kp='50' kv='3'/>", "", "<motor joint='j'/>"), 1, 0, 0, 0, 0,
          TB_ACTIVATION_NONE);
    check(ACTUATED("<position kp='50' kv='3'/>", "", "<velocity joint='j'/>"), 1, 0, 0, 0, -1,
          TB_ACTIVATION_NONE);
    check(ACTUATED("<general gainprm='7' biasprm='0 -7 -3' biastype='affine'/>", "",
                   "<velocity joint='j'/>"),
          7, 0, 0, 0, -7, TB_ACTIVATION_NONE);
    check(ACTUATED("<general gainprm='7' biasprm='1 -7 -3' biastype='affine' dyntype='filter'/>",
                   "", "<position joint='j'/>"),
          7, 0, 0, -7, -3, TB_ACTIVATION_NONE);
    check(ACTUATED("<position kp='5'/><general forcerange='-1 1'/>", "", "<general joint='j'/>"), 5,
          0, 0, -5, 0, TB_ACTIVATION_NONE);
    check(ACTUATED("<position kp='50' timeconst='.1'/>", "", "<position joint='j'/>"), 50, 0, 0,
          -50, 0, TB_ACTIVATION_FILTER);
    check(ACTUATED("<position kp='50' timeconst='.1'/>", "", "<position joint='j' timeconst='0'/>"),
          50, 0, 0, -50, 0, TB_ACTIVATION_NONE);
    check(ACTUATED("<muscle ctrlrange='0 1'/>", "", "<motor joint='j'/>"), 1, 0, 0, 0, 0,
          TB_ACTIVATION_NONE);
}
END_TEST

START_TEST(a_shortcut_finds_its_own_kind_in_the_classes_around)
{
#define INNER(defaults) "<default class='a'>" defaults "</default>"
    check(ACTUATED("<position kp='5' timeconst='.3'/>" INNER("<motor gear='2'/>"), "",
                   "<position class='a' joint='j'/>"),
          5, 0, 0, -5, 0, TB_ACTIVATION_FILTER);
    check(ACTUATED("<general gainprm='7'/>" INNER("<position kp='5'/>"), "",
                   "<velocity class='a' joint='j'/>"),
          7, 0, 0, 0, -7, TB_ACTIVATION_NONE);
    check(ACTUATED("<position kp='5'/>" INNER("<velocity kv='9'/>"
                                              "<default class='b'><position kv='2'/></default>"),
                   "", "<position class='b' joint='j'/>"),
          5, 0, 0, -5, -2, TB_ACTIVATION_NONE);
    check(ACTUATED("<position kp='5'/><velocity kv='4'/>" INNER("<position kv='1'/>"), "",
                   "<position class='a' joint='j'/>"),
          1, 0, 0, -1, -1, TB_ACTIVATION_NONE);
    check(ACTUATED("<general gaintype='affine' gainprm='7 8 -9'/>", "", "<velocity joint='j'/>"), 1,
          0, 0, 0, -1, TB_ACTIVATION_NONE);
}
END_TEST

START_TEST(damping_ratios_use_the_reflected_inertia)
{
    check(ACTUATED("", "armature='.3'", "<position joint='j' kp='100' dampratio='1' gear='2'/>"),
          100, 0, 0, -100, -8.32914329, TB_ACTIVATION_NONE);
    check(ACTUATED("", "armature='.3'", "<position tendon='t' kp='100' dampratio='1' gear='2'/>"),
          100, 0, 0, -100, -4.16457164, TB_ACTIVATION_NONE);
    check(
        ACTUATED("", "armature='.3'", "<intvelocity tendon='t' kp='100' dampratio='1' gear='2'/>"),
        100, 0, 0, -100, -4.16457164, TB_ACTIVATION_INTEGRATOR);
    check(ACTUATED("", "armature='.3'",
                   "<general joint='j' gainprm='100' biastype='affine' biasprm='0 -100 1'/>"),
          100, 0, 0, -100, -16.65828658, TB_ACTIVATION_NONE);
    check(ACTUATED("<position kp='50' dampratio='1'/>", "", "<position joint='j' kv='1'/>"), 50, 0,
          0, -50, -1, TB_ACTIVATION_NONE);
    /* two joints: the other one gives way */
    check(
        MJCF(
            "<worldbody><body><joint armature='.3'/><geom size='.1' pos='.3 0 0'/>"
            "<body pos='.5 0 0'><joint name='k' armature='.3'/><geom size='.1' pos='.3 0 "
            "0'/></body>"
            "</body></worldbody><actuator><position joint='k' kp='100' dampratio='1'/></actuator>"),
        100, 0, 0, -100, -12.42127879, TB_ACTIVATION_NONE);
}
END_TEST

START_TEST(ranges_limit_only_where_they_rise)
{
    mjcf_case c = mjcf_load(
        ACTUATED("", "",
                 "<motor name='a' joint='j' ctrlrange='-1 1' forcerange='-2 2' gear='3 4'/>"
                 "<motor name='b' joint='j' ctrlrange='1 0' forcerange='0 0'/>"
                 "<motor name='c' joint='j' ctrlrange='0 1' ctrllimited='false'/>"
                 "<intvelocity name='d' joint='j' actrange='0 1'/>"
                 "<position name='e' joint='j' inheritrange='.5'/>"
                 "<intvelocity name='f' joint='j' inheritrange='1'/>"
                 "<damper name='g' joint='j' ctrlrange='0 2'/>"));
    const tb_model_actuator *a = c.model->actuators;
    const double degree = 3.14159265358979323846 / 180;
    ck_assert(a[0].control_limited && a[0].force_limited && !a[0].activation_limited);
    TEST_NEAR(a[0].control_lower, -1, 0);
    TEST_NEAR(a[0].force_upper, 2, 0);
    TEST_NEAR(a[0].gear[0], 3, 0);
    ck_assert(!a[1].control_limited && !a[1].force_limited);
    ck_assert(!a[2].control_limited);
    ck_assert(a[3].activation_limited && !a[3].control_limited);
    ck_assert(a[4].control_limited);
    TEST_NEAR(a[4].control_lower, -0.25 * degree, 1e-15);
    TEST_NEAR(a[4].control_upper, 1.25 * degree, 1e-15);
    ck_assert(a[5].activation_limited);
    TEST_NEAR(a[5].activation_upper, 2 * degree, 1e-15);
    ck_assert(a[6].control_limited);
    mjcf_free(&c);
}
END_TEST

START_TEST(armature_and_damping_of_an_actuator_belong_to_its_joint)
{
    mjcf_case c = mjcf_load(ACTUATED("", "damping='1' armature='1'",
                                     "<motor joint='j' damping='2' armature='3' gear='2'/>"
                                     "<motor tendon='t' damping='5' gear='3'/>"));
    TEST_NEAR(c.model->dofs[0].damping, 9, 1e-12);
    TEST_NEAR(c.model->dofs[0].armature, 13, 1e-12);
    TEST_NEAR(c.model->tendons[0].damping, 45, 1e-12);
    mjcf_free(&c);
}
END_TEST

START_TEST(a_joints_force_range_narrows_its_only_actuator)
{
    mjcf_case c = mjcf_load(ACTUATED("", "actuatorfrcrange='-6 4'",
                                     "<position joint='j' gear='2' forcerange='-1 9'/>"));
    ck_assert(c.model->actuators[0].force_limited);
    TEST_NEAR(c.model->actuators[0].force_lower, -1, 0);
    TEST_NEAR(c.model->actuators[0].force_upper, 2, 0);
    mjcf_free(&c);
    c = mjcf_load(ACTUATED("", "actuatorfrcrange='-6 4'", "<position joint='j' gear='-2'/>"));
    TEST_NEAR(c.model->actuators[0].force_lower, -2, 0);
    TEST_NEAR(c.model->actuators[0].force_upper, 3, 0);
    mjcf_free(&c);
    /* of several actuators only the step knows the sum */
    c = mjcf_load(ACTUATED("", "actuatorfrcrange='-6 4'", "<motor joint='j'/><motor joint='j'/>"));
    ck_assert(c.model->has_joint_forces && !c.model->actuators[0].force_limited);
    TEST_NEAR(c.model->joints[0].force_lower, -6, 0);
    TEST_NEAR(c.model->joints[0].force_upper, 4, 0);
    mjcf_free(&c);
    c = mjcf_load(ACTUATED("", "actuatorfrcrange='-6 4'", "<motor tendon='t'/>"));
    ck_assert(c.model->has_joint_forces && !c.model->actuators[0].force_limited);
    mjcf_free(&c);
}
END_TEST

/* Values of MuJoCo 4.0's compiled model; a servo's other controls follow it. */
START_TEST(a_pid_is_a_servo_with_inputs)
{
    mjcf_case c = mjcf_load(ACTUATED(
        "<pid kp='7' ki='3'/>", "",
        "<pid joint='j' kv='2' imax='4' slewmax='5' input='ff pos vel' velrange='-1 1'/>"));
    const tb_model_actuator *a = c.model->actuators;
    ck_assert_int_eq(c.model->number_of_actuators, 3);
    ck_assert_int_eq(c.model->number_of_activations, 2);
    ck_assert_int_eq(a[0].number_of_inputs, 2);
    TEST_NEAR(a[0].gain[0], 7, 0);
    TEST_NEAR(a[0].bias[1], -7, 0);
    TEST_NEAR(a[0].bias[2], -2, 0);
    TEST_NEAR(a[0].integral_gain, 3, 0);
    TEST_NEAR(a[0].integral_limit, 4, 0);
    TEST_NEAR(a[0].slew_rate, 5, 0);
    ck_assert(a[1].is_input && a[1].control_limited && a[2].is_input && !a[2].control_limited);
    TEST_NEAR(a[1].gain[0], 2, 0);
    TEST_NEAR(a[2].gain[0], 1, 0);
    mjcf_free(&c);
    /* the damping of a ratio is the gain of the velocity's control */
    c = mjcf_load(ACTUATED("", "", "<pid joint='j' kp='7' dampratio='1'/>"));
    a = c.model->actuators;
    ck_assert(a[0].bias[2] < 0);
    TEST_NEAR(a[1].gain[0], -a[0].bias[2], 0);
    mjcf_free(&c);
}
END_TEST

#define DC_MOTOR(settings)                                                                         \
    ACTUATED("", "", "<dcmotor joint='j' resistance='2' motorconst='.2' " settings "/>")

/* K and R of the first actuator, and its torque limit (0: none), beside MuJoCo 4.0's gainprm and
 * forcerange. */
static void check_motor(const char *text, double k, double r, double limit)
{
    mjcf_case c = mjcf_load(text);
    const tb_model_actuator *a = c.model->actuators;
    TEST_NEAR(a->gain[0], k / r, 1e-14);
    TEST_NEAR(a->bias[2], -k * k / r, 1e-14);
    TEST_NEAR(a->bias[1], 0, 0);
    ck_assert(a->force_limited == (limit > 0));
    TEST_NEAR(a->force_upper, limit, 1e-14);
    TEST_NEAR(a->force_lower, -limit, 1e-14);
    mjcf_free(&c);
}

START_TEST(a_dcmotor_is_a_gain_with_back_emf)
{
    const char *const class = "<dcmotor resistance='2' motorconst='.2' saturation='.1'/>";
    check_motor(ACTUATED("", "", "<dcmotor joint='j' resistance='2' motorconst='.3 .2'/>"),
                0.24494897427831780, 2, 0);
    check_motor(DC_MOTOR("saturation='0 1.5'"), 0.2, 2, 0.3);
    /* from the nominal point, also against damping */
    check_motor(ACTUATED("", "", "<dcmotor joint='j' nominal='12 2 300' saturation='.05'/>"), 0.04,
                0.24, 0.05);
    check_motor(ACTUATED("", "", "<dcmotor joint='j' nominal='12 2 300' damping='1e-4'/>"), 0.0394,
                0.2364, 0);
    check_motor(ACTUATED("<motor damping='1e-4'/>", "", "<dcmotor joint='j' nominal='12 2 300'/>"),
                0.0394, 0.2364, 0);
    /* 300 K^2 - 12 K + 300 R B = 0 with R = 1, B = 1e-4 */
    check_motor(
        ACTUATED("", "", "<dcmotor joint='j' resistance='1' nominal='12 2 300' damping='1e-4'/>"),
        0.02 + 0.017320508075688773, 1, 0);
    /* values of a class stay, each by itself; its torque limit is every actuator's */
    char text[1000];
    static const struct {
        const char *settings;
        double k;
    } CASES[] = {{"", 0.2}, {"motorconst='.4'", 0.4}, {"nominal='12 2 300'", 0.08944271909999159}};
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, ACTUATED("%s", "", "<dcmotor joint='j' %s/>"), class,
                 CASES[i].settings);
        check_motor(text, CASES[i].k, 2, 0.1);
    }
    snprintf(text, sizeof text, ACTUATED("%s", "", "<motor joint='j'/>"), class);
    mjcf_case c = mjcf_load(text);
    ck_assert(c.model->actuators[0].force_limited);
    TEST_NEAR(c.model->actuators[0].force_upper, 0.1, 0);
    TEST_NEAR(c.model->actuators[0].gain[0], 1, 0);
    mjcf_free(&c);
}
END_TEST

START_TEST(a_dcmotor_has_a_current_or_a_controller)
{
    mjcf_case c = mjcf_load(DC_MOTOR("inductance='.002'"));
    const tb_model_actuator *a = c.model->actuators;
    ck_assert_int_eq(a->activation_kind, TB_ACTIVATION_CURRENT);
    ck_assert_int_eq(c.model->number_of_activations, 1);
    TEST_NEAR(a->gain[0], 0.2, 0);
    TEST_NEAR(a->bias[2], 0, 0);
    TEST_NEAR(a->time_constant, 0.001, 1e-18);
    TEST_NEAR(a->resistance, 2, 0);
    TEST_NEAR(a->back_emf, 0.2, 0);
    size_t size = 0;
    tb_model *again = NULL;
    tb_error error = {0};
    const unsigned char *bytes = tb_model_bytes(c.model, &size);
    TEST_OK(tb_model_from_bytes(bytes, size, &again, &error), &error);
    ck_assert_str_eq(tb_model_sha256(c.model), tb_model_sha256(again));
    ck_assert_mem_eq(again->actuators, a, sizeof *a);
    tb_model_destroy(again);
    mjcf_free(&c);
    /* the controller's torque does not depend on K and R; a voltage beside it does */
    c = mjcf_load(DC_MOTOR("input='pos vel ff voltage' controller='10 2 5 3 4' ctrlrange='-1 1'"));
    a = c.model->actuators;
    static const double GAINS[] = {10, 5, 1, 0.1};
    ck_assert_int_eq(c.model->number_of_actuators, 4);
    for (int i = 0; i < 4; i++) {
        TEST_NEAR(a[i].gain[0], GAINS[i], 1e-16);
        ck_assert(a[i].is_input == (i > 0) && a[i].control_limited);
    }
    TEST_NEAR(a->bias[1], -10, 0);
    TEST_NEAR(a->bias[2], -5, 0);
    TEST_NEAR(a->integral_gain, 2, 0);
    TEST_NEAR(a->slew_rate, 3, 0);
    TEST_NEAR(a->integral_limit, 4, 0);
    mjcf_free(&c);
}
END_TEST

START_TEST(the_pid_plugin_is_read_by_instance_or_in_place)
{
    mjcf_case c = mjcf_load(MJCF(
        "<extension><plugin plugin='mujoco.pid'><instance name='i'><config key='kp' "
        "value='4'/><config key='ki' value='2'/><config key='kd' value='.5'/><config "
        "key='imax' value='1'/><config key='slewmax' value='3'/></instance></plugin>"
        "</extension><worldbody>" PENDULUM(
            "") "</worldbody><actuator><plugin joint='j' "
                "plugin='mujoco.pid' instance='i' actdim='2' ctrlrange='0 1'/><plugin joint='j' "
                "plugin='mujoco.pid'><config key='kp' "
                "value='9'/></plugin></actuator><keyframe><key "
                "act='.1 .2'/></keyframe>"));
    const tb_model_actuator *a = c.model->actuators;
    TEST_NEAR(a[0].gain[0], 4, 0);
    TEST_NEAR(a[0].bias[2], -0.5, 0);
    TEST_NEAR(a[0].integral_limit, 0.5, 0);
    ck_assert(a[0].early && a[0].slew_from_control && a[0].control_limited);
    TEST_NEAR(a[1].gain[0], 9, 0);
    ck_assert_int_eq(a[1].slew, -1);
    /* MuJoCo's plugin has the integral first */
    TEST_NEAR(c.model->keyframes[0].activations[a[0].integral], 0.1, 0);
    TEST_NEAR(c.model->keyframes[0].activations[a[0].slew], 0.2, 0);
    mjcf_free(&c);
}
END_TEST

START_TEST(muscles_have_defaults_of_their_own)
{
    mjcf_case c = mjcf_load(
        ACTUATED("<muscle lengthrange='.1 .9'/>", "",
                 "<muscle joint='j' force='20' range='.7 1.1' timeconst='.02 .05' tausmooth='.1'/>"
                 "<muscle joint='j' scale='300'/>"
                 "<general joint='j' dyntype='integrator' actearly='true'/>"));
    const tb_model_actuator *a = c.model->actuators;
    ck_assert_int_eq(a[0].activation_kind, TB_ACTIVATION_MUSCLE);
    ck_assert(a[0].gain_curve == TB_CURVE_MUSCLE && a[0].bias_curve == TB_CURVE_MUSCLE);
    TEST_NEAR(a[0].muscle_gain.force, 20, 0);
    TEST_NEAR(a[0].muscle_gain.range[0], 0.7, 0);
    TEST_NEAR(a[0].muscle_bias.range[1], 1.1, 0);
    TEST_NEAR(a[0].muscle_gain.longest, 1.6, 0);
    TEST_NEAR(a[0].muscle_times[1], 0.05, 0);
    TEST_NEAR(a[0].muscle_times[2], 0.1, 0);
    TEST_NEAR(a[0].length_range[1], 0.9, 0);
    /* scale over the acceleration of a unit force: times the inertia about the hinge */
    const double inertia = 4.18879020478639 * (0.4 * 0.01 + 0.09);
    TEST_NEAR(a[1].muscle_gain.force, 300 * inertia, 1e-9);
    ck_assert(a[2].early);
    mjcf_free(&c);
}
END_TEST

static void check_lengths(const mjcf_case *c, int32_t actuator, double shortest, double longest,
                          double tolerance)
{
    const double *range = c->model->actuators[actuator].length_range;
    TEST_NEAR(range[0], shortest, tolerance);
    TEST_NEAR(range[1], longest, tolerance);
}

/* Two hinged bodies and a muscle's tendon over a cylinder. */
#define ARM(between, actuators)                                                                    \
    MJCF(                                                                                          \
        between                                                                                    \
        "<worldbody><site name='a' pos='-.3 0 .05'/>"                                              \
        "<body><joint name='j' axis='0 1 0' range='-60 80' stiffness='9' damping='3'/>"            \
        "<geom size='.05' pos='.3 0 0'/><geom name='c' type='cylinder' size='.03 .1' "             \
        "euler='90 0 0' contype='0' conaffinity='0' mass='0'/>"                                    \
        "<body pos='.4 0 0'><joint name='k' axis='0 1 0' range='0 45' frictionloss='2'/>"          \
        "<geom size='.04' pos='.2 0 0'/><site name='b' pos='.1 0 .02'/></body></body></worldbody>" \
        "<tendon><spatial name='t' stiffness='50'><site site='a'/><geom geom='c'/>"                \
        "<site site='b'/></spatial></tendon><actuator>" actuators "</actuator>")

/* Numbers beside MuJoCo's, whose limits and equalities give way. */
START_TEST(lengths_of_muscles_are_found_by_pulling)
{
    const double degree = 3.14159265358979323846 / 180;
    mjcf_case c = mjcf_load(ACTUATED("", "", "<muscle joint='j' gear='-2' force='1'/>"));
    check_lengths(&c, 0, -4 * degree, 2 * degree, 1e-8);
    mjcf_free(&c);

    /* given ranges stay, unless all are to be found */
    c = mjcf_load(ARM("", "<muscle joint='j'/><muscle joint='k' lengthrange='.2 .3'/>"
                          "<muscle tendon='t' gear='2'/>"));
    check_lengths(&c, 0, -60 * degree, 80 * degree, 1e-8);
    check_lengths(&c, 1, .2, .3, 0);
    /* the shortest at two limits, the longest between limits, as MuJoCo finds it too */
    tb_state *state;
    double length = 0;
    TEST_OK(tb_state_create(c.model, &state, &c.error), &c.error);
    TEST_OK(tb_state_set_q(state, (const double[]){-60 * degree, 0}, 2, &c.error), &c.error);
    TEST_OK(tb_state_tendons(state, &length, NULL, &c.error), &c.error);
    TEST_NEAR(c.model->actuators[2].length_range[0], 2 * length, 1e-8);
    TEST_NEAR(c.model->actuators[2].length_range[1], 1.616615, 1e-5);
    tb_state_destroy(state);
    mjcf_free(&c);
    c = mjcf_load(ARM("<compiler><lengthrange useexisting='false'/></compiler>",
                      "<muscle joint='k' lengthrange='.2 .3'/>"));
    check_lengths(&c, 0, 0, 45 * degree, 1e-8);
    mjcf_free(&c);

    /* joints that are tied: k = 0.1 + j / 2 is between 0 and 45 degrees */
    c = mjcf_load(ARM("<equality><joint joint1='k' joint2='j' polycoef='.1 .5 0 0 0'/></equality>",
                      "<muscle joint='j'/><muscle joint='k' gear='2'/>"));
    check_lengths(&c, 0, -.2, 2 * (45 * degree - .1), 1e-6);
    check_lengths(&c, 1, 0, 90 * degree, 1e-6);
    mjcf_free(&c);

    /* limits on demand, without the gear as in MuJoCo */
    c = mjcf_load(
        ARM("<compiler><lengthrange uselimit='true'/></compiler>", "<muscle joint='k' gear='2'/>"));
    check_lengths(&c, 0, 0, 45 * degree, 0);
    mjcf_free(&c);

    mjcf_refuses(ACTUATED("", "limited='false'", "\n<muscle joint='j'/>"), TB_INVALID_ARGUMENT, 2,
                 "comes to no rest");
    mjcf_refuses(ARM("<compiler><lengthrange mode='none'/></compiler>", "<muscle joint='j'/>"),
                 TB_UNSUPPORTED, 1, "which is not to be found");
    mjcf_refuses(ARM("<compiler><lengthrange timestep='0'/></compiler>", ""), TB_INVALID_ARGUMENT,
                 1, "timestep > 0");
    mjcf_refuses(ARM("<compiler><lengthrange accel='-1'/></compiler>", ""), TB_INVALID_ARGUMENT, 1,
                 "accel is below 0");
    mjcf_refuses(ARM("<compiler><lengthrange steps='9'/></compiler>", ""), TB_INVALID_ARGUMENT, 1,
                 "unknown attribute 'steps'");
    mjcf_refuses(ARM("", "<muscle site='a'/>"), TB_UNSUPPORTED, 1, "neither a hinge, a slide");
}
END_TEST

START_TEST(sites_and_cranks_are_pushed_through_lists_of_dofs)
{
    mjcf_case c = mjcf_load(MJCF(
        "<worldbody><site name='w'/><body name='p'><joint name='i'/><geom size='.1'/><body "
        "name='c'><joint name='j' axis='1 0 0'/><geom size='.1'/><site name='s'/></body>"
        "<body><joint axis='0 1 0'/><geom size='.1'/><site name='r'/></body></body></worldbody>"
        "<actuator><motor site='s' gear='1 2 3 4 5 6'/><position site='s' refsite='r' gear='0 0 0 "
        "0 0 2'/><position site='s' refsite='w' gear='1'/>"
        "<motor cranksite='s' slidersite='r' cranklength='.5'/></actuator>"));
    const tb_model_actuator *a = c.model->actuators;
    static const int32_t MOMENTS[] = {2, 2, 2, 2}, OWN[] = {2, 1, 2, 1};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(a[i].number_of_moments, MOMENTS[i]);
        ck_assert_int_eq(a[i].own_moments, OWN[i]);
    }
    ck_assert_int_eq(a[0].transmission, TB_TRANSMISSION_SITE);
    ck_assert_int_eq(a[1].transmission, TB_TRANSMISSION_SITE_TO_SITE);
    ck_assert_int_eq(a[3].transmission, TB_TRANSMISSION_CRANK);
    TEST_NEAR(a[1].period, 4 * 3.14159265358979323846, 1e-14);
    TEST_NEAR(a[2].period, 0, 0);
    ck_assert_int_eq(c.model->moment_dofs[a[0].moment], 1);
    ck_assert_int_eq(c.model->moment_dofs[a[0].moment + 1], 0);
    ck_assert_int_eq(c.model->moment_dofs[a[1].moment + 1], 2);
    mjcf_free(&c);
}
END_TEST

START_TEST(flags_and_groups_disable_actuators)
{
    mjcf_case c = mjcf_load(MJCF("<option actuatorgroupdisable='2 5'/><worldbody>" PENDULUM(
        "") "</worldbody><actuator><motor joint='j' group='2'/>"
            "<motor joint='j' group='1'/></actuator>"));
    ck_assert(c.model->actuators[0].disabled);
    ck_assert(!c.model->actuators[1].disabled);
    ck_assert_int_eq(mjcf_warnings(&c, "is disabled"), 1);
    mjcf_free(&c);
    c = mjcf_load(
        MJCF("<option><flag actuation='disable' clampctrl='disable'/></option><worldbody>" PENDULUM(
            "") "</worldbody><actuator><position joint='j' kp='5' "
                "ctrlrange='0 1'/></actuator>"));
    ck_assert(c.model->actuators[0].disabled);
    ck_assert(!c.model->actuators[0].control_limited);
    mjcf_free(&c);
}
END_TEST

START_TEST(actuators_that_make_no_sense_are_refused)
{
    static const struct {
        const char *text;
        tb_status status;
        const char *words;
    } CASES[] = {
        {ACTUATED("", "", "<motor/>"), TB_INVALID_ARGUMENT, "motor: no joint, tendon, site"},
        {ACTUATED("", "", "<motor joint='x'/>"), TB_NOT_FOUND, "there is no joint 'x'"},
        {ACTUATED("", "", "<motor tendon='x'/>"), TB_NOT_FOUND, "there is no tendon 'x'"},
        {ACTUATED("", "", "<motor joint='j' tendon='t'/>"), TB_INVALID_ARGUMENT,
         "both joint and tendon"},
        {ACTUATED("", "", "<motor site='s'/>"), TB_NOT_FOUND, "there is no site 's'"},
        {ACTUATED("", "", "<motor joint='j' refsite='s'/>"), TB_INVALID_ARGUMENT, "refsite"},
        {ACTUATED("", "", "<motor joint='j' kp='1'/>"), TB_INVALID_ARGUMENT,
         "unknown attribute 'kp'"},
        {ACTUATED("", "", "<motor joint='j' delay='.1'/>"), TB_INVALID_ARGUMENT, "nsample"},
        {ACTUATED("", "", "<pid joint='j' delay='.1' nsample='5'/>"), TB_UNSUPPORTED,
         "several controls"},
        {ACTUATED("", "", "<pid joint='j' input='vel' ki='1'/>"), TB_INVALID_ARGUMENT,
         "need the input pos"},
        {ACTUATED("", "", "<pid joint='j' input='pos speed'/>"), TB_INVALID_ARGUMENT,
         "is not of pos, vel and ff"},
        {ACTUATED("", "", "<pid joint='j' kv='1' dampratio='1'/>"), TB_INVALID_ARGUMENT,
         "both kv and dampratio"},
        {ACTUATED("", "", "<orientation joint='j'/>"), TB_UNSUPPORTED, "ball joint"},
        {ACTUATED("", "", "<plugin joint='j' plugin='mujoco.other'/>"), TB_UNSUPPORTED,
         "'mujoco.other' is not supported"},
        {ACTUATED("", "", "<plugin joint='j' plugin='mujoco.pid' instance='i'/>"), TB_NOT_FOUND,
         "no plugin instance 'i'"},
        {ACTUATED("", "",
                  "<plugin joint='j' plugin='mujoco.pid'><config key='kx' value='1'/>"
                  "</plugin>"),
         TB_INVALID_ARGUMENT, "'kx' is not of kp"},
        {ACTUATED("", "", "<muscle joint='j' lmin='2'/>"), TB_INVALID_ARGUMENT, "lmin < 1 < lmax"},
        {ACTUATED("", "", "<muscle joint='j' tausmooth='-1'/>"), TB_INVALID_ARGUMENT, "tausmooth"},
        {ACTUATED("", "", "<dcmotor joint='j' motorconst='1'/>"), TB_INVALID_ARGUMENT,
         "a motor constant and a resistance"},
        {ACTUATED("", "", "<dcmotor joint='j' resistance='1'/>"), TB_INVALID_ARGUMENT,
         "a motor constant and a resistance"},
        {DC_MOTOR("inductance='-1'"), TB_INVALID_ARGUMENT, "inductance is less than 0"},
        {DC_MOTOR("controller='1'"), TB_INVALID_ARGUMENT, "a controller needs one"},
        {DC_MOTOR("input='ff' controller='0 1'"), TB_INVALID_ARGUMENT, "without the input pos"},
        {DC_MOTOR("input='pos vel' controller='1' inductance='.1'"), TB_UNSUPPORTED,
         "a controller of a motor with inductance"},
        {DC_MOTOR("input='pos' controller='1 0 0 0 0 12'"), TB_UNSUPPORTED, "Vmax"},
        {DC_MOTOR("input='vel' controller='0 0 1 3'"), TB_UNSUPPORTED, "slewmax without"},
        {DC_MOTOR("input='none'"), TB_UNSUPPORTED, "an actuator without control"},
        {DC_MOTOR("thermal='0 0 5'"), TB_UNSUPPORTED, "a winding whose resistance"},
        {DC_MOTOR("lugre='1e4 100 .005 .008 .1'"), TB_UNSUPPORTED, "LuGre friction"},
        {DC_MOTOR("cogging='.1 4'"), TB_UNSUPPORTED, "cogging is not"},
        {DC_MOTOR("inductance='.1' saturation='0 0 3'"), TB_UNSUPPORTED, "the current's rate"},
        {ACTUATED("", "", "<engine joint='j'/>"), TB_INVALID_ARGUMENT, "engine: unknown element"},
        {ACTUATED("", "", "<general joint='j' gaintype='muscle'/>"), TB_INVALID_ARGUMENT,
         "a muscle needs a rising range"},
        {ACTUATED("", "", "<general joint='j' gaintype='user'/>"), TB_UNSUPPORTED, "gaintype"},
        {ACTUATED("", "", "<general joint='j' biastype='user'/>"), TB_UNSUPPORTED, "biastype"},
        {ACTUATED("", "", "<general joint='j' dyntype='muscle'/>"), TB_INVALID_ARGUMENT,
         "time constants"},
        {ACTUATED("", "", "<general joint='j' dyntype='user'/>"), TB_UNSUPPORTED, "dyntype"},
        {ACTUATED("", "", "<general joint='j' dyntype='user' actdim='3'/>"), TB_UNSUPPORTED,
         "actdim"},
        {ACTUATED("", "", "<general joint='j' dyntype='filter' dynprm='0'/>"), TB_INVALID_ARGUMENT,
         "time constant"},
        {ACTUATED("", "", "<position joint='j' kv='-1'/>"), TB_INVALID_ARGUMENT, "kv is negative"},
        {ACTUATED("", "", "<position joint='j' kv='1' dampratio='1'/>"), TB_INVALID_ARGUMENT,
         "both kv and dampratio"},
        {ACTUATED("", "", "<position joint='j' inheritrange='1' ctrlrange='0 1'/>"),
         TB_INVALID_ARGUMENT, "both ctrlrange and inheritrange"},
        {ACTUATED("", "limited='false'", "<position joint='j' inheritrange='1'/>"),
         TB_INVALID_ARGUMENT, "inheritrange needs a range"},
        {ACTUATED("", "", "<damper joint='j'/>"), TB_INVALID_ARGUMENT, "a damper's ctrlrange"},
        {ACTUATED("", "", "<motor joint='j' ctrllimited='true'/>"), TB_INVALID_ARGUMENT,
         "ctrlrange"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        mjcf_refuses(CASES[i].text, CASES[i].status, 1, CASES[i].words);
    mjcf_refuses(MJCF("<compiler autolimits='false'/><worldbody>" PENDULUM(
                     "") "</worldbody><actuator>"
                         "<motor joint='j' ctrlrange='0 1'/></actuator>"),
                 TB_INVALID_ARGUMENT, 1, "ctrlrange is given without ctrllimited");
}
END_TEST

TEST_MAIN(shortcuts_set_gain_and_bias, shortcuts_share_one_set_of_defaults,
          a_shortcut_finds_its_own_kind_in_the_classes_around,
          damping_ratios_use_the_reflected_inertia, ranges_limit_only_where_they_rise,
          armature_and_damping_of_an_actuator_belong_to_its_joint,
          a_joints_force_range_narrows_its_only_actuator, a_pid_is_a_servo_with_inputs,
          a_dcmotor_is_a_gain_with_back_emf, a_dcmotor_has_a_current_or_a_controller,
          the_pid_plugin_is_read_by_instance_or_in_place, muscles_have_defaults_of_their_own,
          lengths_of_muscles_are_found_by_pulling,
          sites_and_cranks_are_pushed_through_lists_of_dofs, flags_and_groups_disable_actuators,
          actuators_that_make_no_sense_are_refused)
