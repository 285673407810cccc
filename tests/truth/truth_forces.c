/* Forces that are no contacts: springs and dampers of every joint, the medium, gravity
 * compensation, and actuators of every transmission, driven by every kind of input.
 *
 * Source of the accelerations: MuJoCo 4.0.0 (qacc_smooth) given the same documents at the same
 * keyframes; other limits are closed forms, stated at each case. */
#include <string.h>

#include "common_truth.h"

/* springs and dampers, also polynomial ones, of free, ball and hinge joints */
static const char SPRINGS[] =
    "<mujoco>"
    "<default>"
    "<geom contype='0' conaffinity='0'/>"
    "</default>"
    "<worldbody>"
    "<body pos='0 0 1' quat='1 .2 .3 .1'>"
    "<joint name='j' type='free' stiffness='20 3 4' damping='.5 .2 .1' armature='.1' "
    "frictionloss='0'/>"
    "<geom type='box' size='.1 .2 .1'/>"
    "</body>"
    "<body pos='0 1 1'>"
    "<joint type='ball' stiffness='5 1 2' damping='.3 .1 .2' armature='.02' pos='0 .1 "
    ".2'/>"
    "<geom type='box' size='.1 .2 .1'/>"
    "<body pos='.2 .2 .2'>"
    "<joint type='hinge' stiffness='2 1 1' springref='20' damping='.1 .3 .1' axis='1 1 "
    "0'/>"
    "<geom size='.1'/>"
    "</body>"
    "</body>"
    "</worldbody>"
    "<keyframe>"
    "<key qpos='0.82 -1.02 1.17 0.98 0.08 0.19 0.07 0.9 -0.39 -0.04 -0.17 1.33' "
    "qvel='0.23 -0.35 -0.28 -0.67 -1.06 -0.39 0.48 -0.24 0.96 -0.2' ctrl='' act=''/>"
    "</keyframe>"
    "</mujoco>";

static const double SPRINGS_ACCELERATION[] = {
    -1.58298884234, 1.97194484813, -10.0658102832, 13.866703986,  23.0984434101,
    5.49913925232,  35.5563008989, 26.9002548199,  21.0062289276, -273.059266219};

/* a medium with wind: boxes by inertia, ellipsoids */
static const char MEDIUM[] =
    "<mujoco>"
    "<default>"
    "<geom contype='0' conaffinity='0'/>"
    "</default>"
    "<option density='1000' viscosity='0.5' wind='.3 -.2 .5'/>"
    "<worldbody>"
    "<body pos='0 0 1' quat='1 .2 .3 .1'>"
    "<freejoint/>"
    "<geom type='box' size='.1 .2 .15'/>"
    "</body>"
    "<body pos='0 1 1'>"
    "<joint type='ball' pos='0 .1 .2'/>"
    "<geom type='capsule' size='.1 .2' fluidshape='ellipsoid' quat='1 1 0 .3' pos='.1 .1 "
    "0'/>"
    "<body pos='.2 .2 .2'>"
    "<joint type='hinge' axis='1 1 0'/>"
    "<geom size='.1 .2 .05' type='ellipsoid' pos='0 .1 0' euler='10 20 30' "
    "fluidshape='ellipsoid' fluidcoef='.6 .3 1.2 .8 1.1'/>"
    "<geom type='sphere' size='.05' pos='.2 0 0'/>"
    "</body>"
    "</body>"
    "<body pos='2 1 1'>"
    "<freejoint/>"
    "<inertial pos='.1 .2 0' mass='2' diaginertia='.1 .12 .08' quat='1 .3 .2 .1'/>"
    "</body>"
    "<body pos='3 1 1'>"
    "<freejoint/>"
    "<geom type='box' size='.1 .1 .1'/>"
    "<geom type='box' size='.1 .2 .1' pos='.1 .2 .3'/>"
    "</body>"
    "</worldbody>"
    "<keyframe>"
    "<key qpos='-0.26 -0.07 1.67 0.94 0.33 -0.03 -0.01 0.94 -0.12 0.03 -0.32 0.1 2.09 "
    "1.63 1.13 0.85 0.1 -0.28 0.43 2.23 1.44 0.87 0.97 -0.17 -0.13 -0.13' qvel='0.38 "
    "-0.11 1.48 -1.83 -0 -0.89 0.78 -2.12 -0.34 0.21 -1.48 0.99 0.18 1.01 0.96 -0.98 "
    "-0.8 -0.2 0.75 0.85 -0.71 -0.61' ctrl='' act=''/>"
    "</keyframe>"
    "</mujoco>";

static const double MEDIUM_ACCELERATION[] = {
    0.00870661253788, 0.054059002754, -10.8739882414, 0.860588155514, -0.626423076923,
    0.346847464332,   0.838111618201, 24.6302964282,  5.79752652415,  -26.7480059956,
    250.916552917,    -98.453119954,  -53.7553738488, -34.0107942265, -18.894234726,
    22.4724021619,    5.66103634858,  -1.00128403393, -10.4572536636, -0.564854434782,
    0.748775684018,   -0.060171251551};

/* gravity compensation, by actuators and within bounds of joints */
static const char COMPENSATION[] =
    "<mujoco>"
    "<default>"
    "<geom contype='0' conaffinity='0'/>"
    "</default>"
    "<worldbody>"
    "<body pos='0 0 1' gravcomp='.7'>"
    "<freejoint/>"
    "<geom type='box' size='.1 .2 .15' pos='.1 0 0'/>"
    "</body>"
    "<body pos='0 0 2' gravcomp='.7'>"
    "<freejoint/>"
    "<geom type='box' size='.1 .2 .15'/>"
    "</body>"
    "<body pos='0 1 1'  gravcomp='1.2'>"
    "<joint name='a' type='hinge' axis='1 1 0' pos='0 .1 .2' actuatorgravcomp='true' "
    "actuatorfrcrange='-20 5'/>"
    "<geom type='capsule' size='.1 .2' pos='.1 .1 0'/>"
    "<body pos='.2 .2 .2' gravcomp='1'>"
    "<joint name='b' type='hinge' axis='1 1 0' actuatorfrcrange='-.3 .2' "
    "actuatorgravcomp='true'/>"
    "<geom size='.1 .2 .05' type='ellipsoid' pos='0 .1 0' euler='10 20 30'/>"
    "<geom type='sphere' size='.05' pos='.2 0 0'/>"
    "</body>"
    "</body>"
    "</worldbody>"
    "<actuator>"
    "<motor joint='a' gear='30'/>"
    "<position joint='b' kp='3' kv='1'/>"
    "<motor joint='b' gear='-2'/>"
    "</actuator>"
    "<keyframe>"
    "<key qpos='-0.32 -0.53 0.9 0.97 0.08 0.22 0.02 -0.22 -0.31 2.3 0.92 0.32 0.05 -0.24 "
    "-0.38 0.64' qvel='0.2 -1.73 -0.08 -1.16 -0.63 -0.49 -0.71 0.55 -0.06 -0.59 0.41 "
    "0.83 -1.64 -0.26' ctrl='0.74 -0.96 0.41' act=''/>"
    "</keyframe>"
    "</mujoco>";

static const double COMPENSATION_ACCELERATION[] = {0.0239069664306,
                                                   -0.0990322806638,
                                                   -3.05938231688,
                                                   -0.086436,
                                                   -0.218615384615,
                                                   0.43848,
                                                   0,
                                                   1.48029736617e-16,
                                                   -2.943,
                                                   -0.095284,
                                                   0.188346153846,
                                                   -0.14514,
                                                   15.9842799325,
                                                   -48.9670697057};

/* sites, cranks, parents' axes, muscles, early activations */
static const char ACTUATORS[] =
    "<mujoco>"
    "<default>"
    "<geom contype='0' conaffinity='0'/>"
    "</default>"
    "<option timestep='1e-7'/>"
    "<worldbody>"
    "<site name='w' pos='.3 .2 .1' euler='10 20 30'/>"
    "<body name='f' pos='0 0 1' quat='1 .2 .3 .1'>"
    "<freejoint name='fj'/>"
    "<geom type='box' size='.1 .2 .15' pos='.1 0 0'/>"
    "<site name='s1' pos='.1 .2 .3' euler='20 30 40'/>"
    "</body>"
    "<body pos='0 1 1'>"
    "<joint name='ball' type='ball' pos='0 .1 .2'/>"
    "<geom type='capsule' size='.1 .2' pos='.1 .1 0'/>"
    "<site name='s2' pos='.2 0 .1' euler='50 20 30'/>"
    "<body pos='.2 .2 .2'>"
    "<joint name='b' type='hinge' axis='1 1 0' range='-100 100'/>"
    "<geom size='.1 .2 .05' type='ellipsoid' pos='0 .1 0' euler='10 20 30'/>"
    "<site name='s3' pos='.1 .3 .1' euler='0 90 10'/>"
    "</body>"
    "</body>"
    "<body pos='2 0 0'>"
    "<joint name='crank' axis='0 1 0'/>"
    "<geom type='capsule' fromto='0 0 0 .3 0 0' size='.04'/>"
    "<site name='pin' pos='.3 0 0'/>"
    "</body>"
    "<body pos='2 0 0'>"
    "<joint name='sl' axis='1 1 0'/>"
    "<geom type='capsule' fromto='0 0 0 .3 0 0' size='.04'/>"
    "<site name='slider' pos='.1 0 .1' zaxis='1 0 .1'/>"
    "</body>"
    "</worldbody>"
    "<actuator>"
    "<motor site='s1' gear='1 2 3 .4 .5 .6'/>"
    "<position site='s2' refsite='s1' gear='1 -.5 .3 0 0 0' kp='3' kv='.5'/>"
    "<position site='s3' refsite='s2' gear='0 0 0 1 -.5 .3' kp='3' kv='.5'/>"
    "<position site='s3' refsite='w' gear='.2 .3 .1 1 -.5 .3' kp='3' kv='.5'/>"
    "<general cranksite='pin' slidersite='slider' cranklength='.6' gear='2' "
    "biastype='affine' biasprm='1 -3 -.4' gainprm='2'/>"
    "<motor jointinparent='ball' gear='1 2 3'/>"
    "<motor jointinparent='fj' gear='1 2 3 4 5 6'/>"
    "<position joint='ball' gear='1 .3 .2' kp='7'/>"
    "<intvelocity joint='ball' gear='1 .3 .2' kp='7' kv='1'/>"
    "<muscle joint='b' lengthrange='-2 2' force='30' tausmooth='.1'/>"
    "<muscle joint='b' lengthrange='-1.5 2.2' gear='-1'/>"
    "<general joint='crank' dyntype='filterexact' dynprm='.1' actearly='true' "
    "gainprm='5'/>"
    "<general joint='crank' dyntype='integrator' actearly='true' gainprm='5' "
    "actlimited='true' actrange='-.5 .5'/>"
    "<damper joint='crank' kv='2' ctrlrange='0 3'/>"
    "<cylinder joint='crank' area='2' timeconst='.2'/>"
    "<motor joint='b' damping='.2 .1 .1' armature='.05' gear='2'/>"
    "</actuator>"
    "<keyframe>"
    "<key qpos='0.42 0.71 -0.02 0.81 0.21 0.4 0.38 0.95 0.13 0.29 0.06 0.22 0.07 -0.43' "
    "qvel='-0.85 0.38 -0.58 1.27 1.29 1.8 -0.03 1.38 -0.91 -0.82 0.08 0.28' ctrl='-0.79 "
    "0.73 -0.72 -0.12 0.17 -0.36 -0.16 0.77 -0.09 0.08 0.94 -0.45 0.79 -0.28 -0.38 0.76' "
    "act='0.07 0.87 0.83 0.89 0.06 0.24'/>"
    "</keyframe>"
    "</mujoco>";

static const double ACTUATORS_ACCELERATION[] = {-0.904252711284, 0.180280529362, -10.8916616028,
                                                -1.63762377868,  -10.4053798791, -0.834922924756,
                                                -14.9288792762,  0.471837290337, -11.426818139,
                                                61.9794419429,   128.57331385,   60.4155911347};

/* ---- a world at its first keyframe ---- */

static truth load(const char *text, tb_scheme scheme, double dt)
{
    truth t = truth_begin(GRAVITY, dt);
    t.options.scheme = scheme;
    t.options.dt = dt;
    tb_error error = {0};
    tb_scene_destroy(t.scene);
    t.scene = NULL;
    TEST_OK(tb_scene_load_mjcf(text, strlen(text), "forces.xml", NULL, &t.scene, &error), &error);
    truth_start(&t);
    if (tb_model_count(t.model).keyframes > 0) TEST_OK(tb_state_reset(t.state, 0, &error), &error);
    return t;
}

/* Largest difference, over the largest acceleration. */
static double difference(const double *a, const double *b, int32_t count)
{
    double worst = 0, largest = 1;
    for (int32_t i = 0; i < count; i++) {
        worst = fmax(worst, fabs(a[i] - b[i]));
        largest = fmax(largest, fabs(b[i]));
    }
    return worst / largest;
}

/* Checks the acceleration and, to first order in the step, the step's change of velocity. */
static void check_accelerations(const char *name, const char *text, const double *expected)
{
    static const tb_scheme SCHEMES[] = {TB_SCHEME_STEWART_TRINKLE, TB_SCHEME_MOREAU};
    enum { MOST = 64 };
    const double SHORT = 1e-7; /* s */
    double found[MOST], before[MOST];
    char line[128];
    tb_error error = {0};
    for (int s = 0; s < 2; s++) {
        truth t = load(text, SCHEMES[s], SHORT);
        const int32_t dofs = tb_model_count(t.model).dofs;
        ck_assert_int_le(dofs, MOST);
        TEST_OK(tb_state_smooth_acceleration(t.state, found, &error), &error);
        snprintf(line, sizeof line, "%s: acceleration beside MuJoCo's", name);
        if (s == 0) TRUTH_CHECK(line, difference(found, expected, dofs), 1e-6);

        memcpy(before, tb_state_u(t.state), (size_t)dofs * sizeof *before);
        truth_run(&t, 1);
        for (int32_t i = 0; i < dofs; i++) found[i] = (tb_state_u(t.state)[i] - before[i]) / SHORT;
        snprintf(line, sizeof line, "%s: what a step of 100 ns gains, %s", name,
                 s == 0 ? "Stewart-Trinkle" : "Moreau");
        TRUTH_CHECK(line, difference(found, expected, dofs), 1e-4);
        truth_end(&t);
    }
}

START_TEST(springs_and_dampers_of_all_joints)
{
    check_accelerations("springs", SPRINGS, SPRINGS_ACCELERATION);
}
END_TEST

START_TEST(a_medium_with_wind)
{
    check_accelerations("medium", MEDIUM, MEDIUM_ACCELERATION);
}
END_TEST

START_TEST(gravity_compensation_within_bounds_of_joints)
{
    check_accelerations("compensation", COMPENSATION, COMPENSATION_ACCELERATION);
}
END_TEST

START_TEST(actuators_of_all_kinds)
{
    check_accelerations("actuators", ACTUATORS, ACTUATORS_ACCELERATION);
}
END_TEST

/* ---- steps ---- */

/* Stokes: a ball sinks with m g = 3 pi d mu v, d the edge of the box that has its inertia,
 * sqrt(12 / 5) r. The medium is so thick that an explicit step of 10 ms would diverge: dt 3 pi d
 * mu / m is 35. */
START_TEST(a_ball_sinks_in_honey)
{
    truth t = load("<mujoco><option viscosity='1000'/><worldbody><body><freejoint/>"
                   "<geom type='sphere' size='.1' mass='4'/></body></worldbody></mujoco>",
                   TB_SCHEME_STEWART_TRINKLE, 0.01);
    const double edge = sqrt(12.0 / 5) * 0.1;
    const double expected = -4 * GRAVITY / (3 * 3.14159265358979323846 * edge * 1000);
    truth_run(&t, 100);
    TRUTH_CHECK("a ball sinks in honey: error of its speed",
                fabs(tb_state_u(t.state)[2] / expected - 1), 1e-9);
    truth_end(&t);
}
END_TEST

/* A spring holds a free body 1 m up: it hangs m g / k below, about its place it turns with
 * sqrt(I / k). Energy: kinetic, gravity's and the spring's stay in sum, by Moreau's rule to second
 * order. */
START_TEST(a_free_joints_spring_pulls_its_body_back)
{
    truth t = load("<mujoco><worldbody><body pos='0 0 1'><joint type='free' stiffness='20' "
                   "damping='8'/><geom type='box' size='.1 .1 .1' mass='2'/></body></worldbody>"
                   "<keyframe><key qvel='0 0 0 1 2 3'/></keyframe></mujoco>",
                   TB_SCHEME_STEWART_TRINKLE, 1e-3);
    truth_run(&t, 30000);
    TRUTH_CHECK("spring of a free joint: error of where the body hangs, m",
                fabs(tb_state_q(t.state)[2] - (1 - 2 * GRAVITY / 20)), 1e-9);
    TRUTH_CHECK("spring of a free joint: turn that is left", fabs(1 - fabs(tb_state_q(t.state)[3])),
                1e-9);
    truth_end(&t);

    double drift[2];
    for (int i = 0; i < 2; i++) {
        t = load("<mujoco><worldbody><body pos='0 0 1'><joint type='free' stiffness='20 5 3'/>"
                 "<geom type='box' size='.1 .1 .1' mass='2'/></body></worldbody>"
                 "<keyframe><key qvel='0 0 0 0 2 0'/></keyframe></mujoco>",
                 TB_SCHEME_MOREAU, i == 0 ? 2e-3 : 1e-3);
        const double before = tb_state_energy(t.state);
        drift[i] = 0;
        for (int k = 0; k < (i == 0 ? 1000 : 2000); k++) {
            truth_run(&t, 1);
            drift[i] = fmax(drift[i], fabs(tb_state_energy(t.state) - before));
        }
        truth_end(&t);
    }
    TRUTH_CHECK("polynomial spring of a free joint, Moreau: energy drift, J", drift[1], 1e-3);
    TRUTH_CHECK("polynomial spring of a free joint, Moreau: 2 - order",
                2 - log2(drift[0] / drift[1]), 0.2);
}
END_TEST

/* Without weight an arm keeps its momentum and its energy; energy knows of the compensation. */
START_TEST(compensated_bodies_float)
{
    truth t = load("<mujoco><worldbody><body gravcomp='1' pos='0 0 1'><freejoint/>"
                   "<geom size='.1'/></body><body gravcomp='1' pos='2 0 1'><joint axis='0 1 0'/>"
                   "<geom size='.1' pos='.3 0 0'/></body></worldbody>"
                   "<keyframe><key qvel='0 0 1 0 0 0 2'/></keyframe></mujoco>",
                   TB_SCHEME_STEWART_TRINKLE, 1e-3);
    const double before = tb_state_energy(t.state);
    truth_run(&t, 1000);
    TRUTH_CHECK("compensated ball: error of its height, m", fabs(tb_state_q(t.state)[2] - 2),
                1e-12);
    TRUTH_CHECK("compensated arm: error of its angle, rad", fabs(tb_state_q(t.state)[7] - 2), 1e-9);
    TRUTH_CHECK("compensated bodies: change of energy, J", fabs(tb_state_energy(t.state) - before),
                1e-9);
    truth_end(&t);
}
END_TEST

/* A muscle's activation follows a control of 1 with d act/dt = (1 - act) / (tau (0.5 + 1.5 act)):
 * t = tau (2 ln(1 / (1 - act)) - 1.5 act), from rest. */
START_TEST(a_muscle_wakes)
{
    truth t = load("<mujoco><worldbody><body><joint name='j' axis='0 1 0'/><geom size='.1' "
                   "pos='.3 0 0'/></body></worldbody><actuator><muscle joint='j' force='1' "
                   "lengthrange='-2 2' timeconst='.1 .4'/></actuator>"
                   "<keyframe><key ctrl='1'/></keyframe></mujoco>",
                   TB_SCHEME_STEWART_TRINKLE, 1e-4);
    truth_run(&t, 1000);
    const double act = tb_state_activations(t.state)[0];
    TRUTH_CHECK("a muscle wakes: error of the time, s",
                fabs(0.1 * (2 * log(1 / (1 - act)) - 1.5 * act) - 0.1), 1e-4);
    truth_end(&t);
}
END_TEST

/* A box of 1 kg hangs from a ceiling by 20 N: the ceiling pushes back by 20 N minus the weight,
 * which bounds friction (mu 1). Slope of gravity `aside`; speed along it after 1 s. */
static double slide(double aside, double pull, double *height)
{
    char text[1024];
    snprintf(text, sizeof text,
             "<mujoco><option gravity='%g 0 -10'/><worldbody><geom type='plane' size='5 5 .1' "
             "zaxis='0 0 -1' pos='0 0 1'/><body name='b' pos='0 0 .9'><freejoint/><geom type='box' "
             "size='.1 .1 .1' mass='1'/></body></worldbody><actuator><adhesion body='b' gain='%g' "
             "ctrlrange='0 1'/></actuator><keyframe><key ctrl='1'/></keyframe></mujoco>",
             aside, pull);
    truth t = load(text, TB_SCHEME_STEWART_TRINKLE, 1e-3);
    truth_run(&t, 1000);
    const double speed = tb_state_u(t.state)[0];
    *height = tb_state_q(t.state)[2];
    if (pull > 0)
        TRUTH_CHECK("adhesion: error of the force, N",
                    fabs(tb_state_actuator_force(t.state, 0) - pull), 1e-12);
    truth_end(&t);
    return speed;
}

START_TEST(adhesion_holds_a_box_under_a_ceiling)
{
    double height;
    TRUTH_CHECK("adhesion of 20 N, 9 N aside: speed, m/s", fabs(slide(9, 20, &height)), 1e-6);
    TRUTH_CHECK("adhesion of 20 N, 9 N aside: error of the height, m", fabs(height - 0.9), 1e-6);
    TRUTH_CHECK("adhesion of 20 N, 11 N aside: error of the speed, m/s",
                fabs(slide(11, 20, &height) - 1), 0.01);
    TRUTH_CHECK("adhesion of 20 N, 11 N aside: error of the height, m", fabs(height - 0.9), 1e-6);
    /* weaker than the weight: the box falls, and nothing draws it from afar */
    slide(0, 9.9, &height);
    TRUTH_CHECK("adhesion of 9.9 N: error of the fall, m", fabs(0.9 - height - 5), 0.2);
}
END_TEST

TEST_MAIN(springs_and_dampers_of_all_joints, a_medium_with_wind,
          gravity_compensation_within_bounds_of_joints, actuators_of_all_kinds,
          a_ball_sinks_in_honey, a_free_joints_spring_pulls_its_body_back, compensated_bodies_float,
          a_muscle_wakes, adhesion_holds_a_box_under_a_ceiling)
