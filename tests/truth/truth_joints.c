/* Single joints: springs and dampers, servos with force limits, dry friction, limits,
 * couplings, planar joints, and a body carried by one that is driven.
 *
 * Sources: closed forms, stated at each case. */
#include "common_mechanism.h"

#define DT 1e-3

static const double ORIGIN[3] = {0, 0, 0}, X_AXIS[3] = {1, 0, 0};
static const tb_scheme SCHEMES[2] = {TB_SCHEME_MOREAU, TB_SCHEME_STEWART_TRINKLE};
static const char *const SCHEME_NAMES[2] = {"Moreau", "Stewart-Trinkle"};

#define CHECK_SCHEME(scheme, text, measured, limit)                                                \
    do {                                                                                           \
        char line_[128];                                                                           \
        snprintf(line_, sizeof line_, "%s, %s", text, SCHEME_NAMES[scheme]);                       \
        TRUTH_CHECK(line_, measured, limit);                                                       \
    } while (0)

static truth begin(int scheme, double gravity, double dt)
{
    truth t = truth_begin(gravity, dt);
    t.options.scheme = SCHEMES[scheme];
    return t;
}

/* a body of `mass` that slides along x by joint `name` */
static tb_handle slider(truth *t, const char *name, double mass, const tb_joint_def *like)
{
    const double moments[3] = {0.01, 0.01, 0.01};
    char body[32];
    snprintf(body, sizeof body, "body of %s", name);
    tb_joint_def def = like != NULL ? *like : tb_joint_defaults();
    def.body = mechanism_body(t, body, (tb_handle){0}, ORIGIN, mass, ORIGIN, moments);
    def.name = name;
    def.type = TB_JOINT_SLIDE;
    memcpy(def.axis, X_AXIS, sizeof def.axis);
    return mechanism_add_joint(t, &def);
}

/* ---- spring and damper ---- */

/* m x'' + d x' + k x = 0 from x0 at rest: x = x0 exp(-a t) (cos w t + a / w sin w t), a = d / 2m,
 * w^2 = k/m - a^2 */
static double oscillator_error(int scheme, double dt)
{
    const double m = 2, k = 200, d = 4, x0 = 0.1;
    tb_joint_def def = tb_joint_defaults();
    def.stiffness = k;
    def.damping = d;
    truth t = begin(scheme, 0, dt);
    slider(&t, "x", m, &def);
    truth_start(&t);
    set_joint_coordinate(&t, "x", x0);
    const double a = d / (2 * m), w = sqrt(k / m - a * a);
    double worst = 0;
    for (int i = 1; i <= (int)lround(1 / dt); i++) {
        truth_run(&t, 1);
        const double s = i * dt, x = x0 * exp(-a * s) * (cos(w * s) + a / w * sin(w * s));
        worst = fmax(worst, fabs(joint_coordinate(&t, "x") - x) / x0);
    }
    truth_end(&t);
    return worst;
}

START_TEST(spring_and_damper_decay_as_they_should)
{
    /* implicit Euler adds w^2 dt / 2 to the decay rate: w^2 dt / 2 max(t exp(-a t)) = 0.018 here */
    const double limits[2] = {1e-4, 0.02}, orders[2] = {2, 1};
    for (int s = 0; s < 2; s++) {
        const double coarse = oscillator_error(s, DT), fine = oscillator_error(s, DT / 2);
        CHECK_SCHEME(s, "spring and damper: error", coarse, limits[s]);
        CHECK_SCHEME(s, "spring and damper: lack of order", orders[s] - log2(coarse / fine), 0.1);
    }
}
END_TEST

/* ---- position servo with a force limit ---- */

START_TEST(servo_pushes_with_its_limit_and_no_more)
{
    const double mass = 2, most = 30, target = 1;
    for (int s = 0; s < 2; s++) {
        tb_error error;
        truth t = begin(s, 0, DT);
        const tb_handle joint = slider(&t, "x", mass, NULL);
        tb_actuator_def servo = tb_actuator_defaults();
        servo.target = joint;
        tb_actuator_position_servo(&servo, 1e4, 500);
        servo.force_limited = true;
        servo.force_lower = -most;
        servo.force_upper = most;
        TEST_OK(tb_scene_add_actuator(t.scene, &servo, NULL, &error), &error);
        truth_start(&t);
        TEST_OK(tb_state_set_control(t.state, 0, target, &error), &error);
        double largest = 0, saturated = 0, push = 0;
        for (int i = 1; i <= 3000; i++) {
            truth_run(&t, 1);
            const double force = tb_state_actuator_force(t.state, 0);
            largest = fmax(largest, fabs(force));
            /* within a tenth of a second the brakes are far: kp (1 - x) > limit + kd v */
            if (i > 100) continue;
            saturated = fmax(saturated, fabs(force - most));
            push = fmax(push, fabs(joint_velocity(&t, "x") - most / mass * i * DT));
        }
        CHECK_SCHEME(s, "servo: force beyond its limit, N", largest - most, 1e-9);
        CHECK_SCHEME(s, "servo: force short of its limit in saturation, N", saturated, 1e-9);
        CHECK_SCHEME(s, "servo: speed error in saturation, m/s", push, 1e-12);
        CHECK_SCHEME(s, "servo: distance from its target, m",
                     fabs(joint_coordinate(&t, "x") - target), 1e-9);
        truth_end(&t);
    }
}
END_TEST

/* ---- dry friction ---- */

START_TEST(dry_friction_holds_and_slows_down)
{
    /* holds below f; above, m a = F - f; from v0 it stops after m v0 / f, for good */
    const double mass = 2, f = 5;
    tb_joint_def def = tb_joint_defaults();
    def.dry_friction = f;
    for (int s = 0; s < 2; s++) {
        truth t = begin(s, 0, DT);
        slider(&t, "x", mass, &def);
        truth_start(&t);
        set_joint_force(&t, "x", 0.999 * f);
        truth_run(&t, 1000);
        CHECK_SCHEME(s, "dry friction: way below its limit in 1 s, m",
                     fabs(joint_coordinate(&t, "x")), 1e-15);
        set_joint_force(&t, "x", 1.2 * f);
        truth_run(&t, 1000);
        CHECK_SCHEME(s, "dry friction: relative error of a above it",
                     fabs(joint_velocity(&t, "x") / (0.2 * f / mass) - 1), 1e-12);

        set_joint_force(&t, "x", 0);
        set_joint_velocity(&t, "x", 1);
        double worst = 0;
        for (int i = 1; i <= 1000; i++) {
            truth_run(&t, 1);
            const double v = fmax(1 - f / mass * i * DT, 0);
            worst = fmax(worst, fabs(joint_velocity(&t, "x") - v));
        }
        CHECK_SCHEME(s, "dry friction: speed error to the stop and after, m/s", worst, 1e-12);
        truth_end(&t);
    }
}
END_TEST

/* ---- limits ---- */

START_TEST(limits_stop_a_joint)
{
    /* a slide that drops onto its limit and rests on it; a hinge that falls against its own.
     * Stewart and Trinkle's scheme meets a limit where it is,
     * Moreau's within the way of one step. */
    for (int s = 0; s < 2; s++) {
        truth t = begin(s, GRAVITY, DT);
        const double moments[3] = {0.01, 0.01, 0.01}, com[3] = {0.3, 0, 0};
        tb_joint_def def = tb_joint_defaults();
        def.name = "drop";
        def.type = TB_JOINT_SLIDE;
        def.body = mechanism_body(&t, "a", (tb_handle){0}, ORIGIN, 3, ORIGIN, moments);
        def.axis[0] = def.axis[1] = 0, def.axis[2] = 1;
        def.limited = true;
        def.lower = -0.5;
        def.upper = 1;
        mechanism_add_joint(&t, &def);
        def.name = "fall";
        def.type = TB_JOINT_HINGE;
        def.body = mechanism_body(&t, "b", (tb_handle){0}, ORIGIN, 1, com, moments);
        def.axis[1] = 1, def.axis[2] = 0; /* a positive angle goes down */
        def.lower = -0.1;
        def.upper = 0.7;
        mechanism_add_joint(&t, &def);
        truth_start(&t);

        double beyond = 0;
        for (int i = 0; i < 2000; i++) {
            truth_run(&t, 1);
            beyond = fmax(beyond, -0.5 - joint_coordinate(&t, "drop"));
            beyond = fmax(beyond, joint_coordinate(&t, "fall") - 0.7);
        }
        const double speed =
            sqrt(2 * GRAVITY * 0.5); /* of the drop; the hinge is slower per radian */
        CHECK_SCHEME(s, "limits: passed by, m or rad", beyond,
                     SCHEMES[s] == TB_SCHEME_MOREAU ? 2 * speed * DT : 1e-12);
        CHECK_SCHEME(s, "limits: off the limit at rest, m or rad",
                     fmax(fabs(joint_coordinate(&t, "drop") + 0.5),
                          fabs(joint_coordinate(&t, "fall") - 0.7)),
                     SCHEMES[s] == TB_SCHEME_MOREAU ? 2 * speed * DT : 1e-12);
        CHECK_SCHEME(s, "limits: speed at rest, m/s or rad/s",
                     fmax(fabs(joint_velocity(&t, "drop")), fabs(joint_velocity(&t, "fall"))),
                     1e-12);
        truth_end(&t);
    }
}
END_TEST

START_TEST(ball_joint_keeps_its_cone)
{
    /* a ball joint may turn by 0.6 rad; the body tips over and hangs in its limit, which Moreau's
     * scheme meets within the way of a step: at most
     * sqrt(2 m g c (1 - cos 0.6) / I) dt = 3.2 rad/s dt */
    const double limits[2] = {3.3e-3, 1e-9};
    for (int s = 0; s < 2; s++) {
        truth t = begin(s, GRAVITY, DT);
        tb_joint_def def = tb_joint_defaults();
        def.name = "ball";
        def.type = TB_JOINT_BALL;
        def.limited = true;
        def.upper = 0.6;
        def.damping = 0.1;
        def.body =
            mechanism_body(&t, "rod", (tb_handle){0}, ORIGIN, 1, (const double[3]){0, 0, 0.3},
                           (const double[3]){0.01, 0.01, 0.001});
        mechanism_add_joint(&t, &def);
        truth_start(&t);
        set_joint_velocity(&t, "ball", 0.5);
        const double upright[4] = {1, 0, 0, 0};
        double beyond = 0, angle = 0;
        for (int i = 0; i < 5000; i++) {
            truth_run(&t, 1);
            angle = reference_angle(upright, tb_state_q(t.state));
            beyond = fmax(beyond, angle - 0.6);
        }
        CHECK_SCHEME(s, "ball limit: passed by, rad", beyond, limits[s]);
        CHECK_SCHEME(s, "ball limit: off the limit at rest, rad", fabs(angle - 0.6), limits[s]);
        truth_end(&t);
    }
}
END_TEST

/* ---- couplings ---- */

static void couple(truth *t, tb_equality_type type, tb_handle a, tb_handle b, double p1, double p2)
{
    tb_error error;
    tb_equality_def def = tb_equality_defaults();
    def.type = type;
    def.a = a;
    def.b = b;
    memset(def.polynomial, 0, sizeof def.polynomial);
    def.polynomial[1] = p1;
    def.polynomial[2] = p2;
    TEST_OK(tb_scene_add_equality(t->scene, &def, NULL, &error), &error);
}

START_TEST(mimic_joint_follows)
{
    /* b follows 2 a: a force F on a moves it with F / (m_a + 4 m_b) */
    const double force = 7, m_a = 1.5, m_b = 0.7;
    for (int s = 0; s < 2; s++) {
        truth t = begin(s, 0, DT);
        const tb_handle a = slider(&t, "a", m_a, NULL), b = slider(&t, "b", m_b, NULL);
        couple(&t, TB_EQUALITY_JOINT, b, a, 2, 0);
        truth_start(&t);
        set_joint_force(&t, "a", force);
        truth_run(&t, 1000);
        CHECK_SCHEME(s, "mimic: relative error of a",
                     fabs(joint_velocity(&t, "a") / (force / (m_a + 4 * m_b)) - 1), 1e-9);
        CHECK_SCHEME(s, "mimic: error of the coupling, m",
                     fmax(t.worst.closure_error,
                          fabs(joint_coordinate(&t, "b") - 2 * joint_coordinate(&t, "a"))),
                     1e-9);
        truth_end(&t);
    }
}
END_TEST

/* x_b = x_a + x_a^2: energy 1/2 (m_a + m_b (1 + 2 x)^2) v^2 is kept without forces,
 * so v follows from x */
static void curve_rate(const double *x, double *rate, const void *context)
{
    const double *p = context, slope = 1 + 2 * x[0]; /* energy, m_a, m_b */
    rate[0] = sqrt(2 * p[0] / (p[1] + p[2] * slope * slope));
}

START_TEST(mimic_joint_follows_a_curve)
{
    const double limits[2] = {1e-6, 1e-2}, m_a = 1.5, m_b = 0.7, v0 = 2;
    const double p[3] = {0.5 * (m_a + m_b) * v0 * v0, m_a, m_b};
    for (int s = 0; s < 2; s++) {
        truth t = begin(s, 0, DT);
        const tb_handle a = slider(&t, "a", m_a, NULL), b = slider(&t, "b", m_b, NULL);
        couple(&t, TB_EQUALITY_JOINT, b, a, 1, 1);
        truth_start(&t);
        set_joint_velocity(&t, "a", v0);
        set_joint_velocity(&t, "b", v0);
        double x[1] = {0};
        truth_run(&t, 1000);
        reference_run(curve_rate, p, 1, x, 1e-4, 10000);
        CHECK_SCHEME(s, "mimic along a curve: relative error of x",
                     fabs(joint_coordinate(&t, "a") / x[0] - 1), limits[s]);
        CHECK_SCHEME(s, "mimic along a curve: error of the coupling, m", t.worst.closure_error,
                     1e-9);
        truth_end(&t);
    }
}
END_TEST

START_TEST(tendon_keeps_its_length)
{
    /* Atwood's machine: a tendon of constant length x_a + x_b over a pulley;
     * a = (m_a - m_b) g / (m_a + m_b) */
    const double m_a = 3, m_b = 2;
    for (int s = 0; s < 2; s++) {
        truth t = begin(s, GRAVITY, DT);
        const double moments[3] = {0.01, 0.01, 0.01}, down[3] = {0, 0, -1};
        tb_error error;
        tb_handle joints[2], tendon;
        for (int i = 0; i < 2; i++) {
            const tb_handle body = mechanism_body(&t, i ? "b" : "a", (tb_handle){0}, ORIGIN,
                                                  i ? m_b : m_a, ORIGIN, moments);
            joints[i] = mechanism_joint(&t, i ? "x_b" : "x_a", body, TB_JOINT_SLIDE, NULL, down);
        }
        tb_tendon_def def = tb_tendon_defaults();
        def.joints = joints;
        def.coefficients = (const double[2]){1, 1};
        def.number_of_joints = 2;
        TEST_OK(tb_scene_add_tendon(t.scene, &def, &tendon, &error), &error);
        couple(&t, TB_EQUALITY_TENDON, tendon, (tb_handle){0}, 0, 0);
        truth_start(&t);
        truth_run(&t, 1000);
        const double a = (m_a - m_b) * GRAVITY / (m_a + m_b);
        CHECK_SCHEME(s, "tendon: relative error of a", fabs(joint_velocity(&t, "x_a") / a - 1),
                     1e-9);
        CHECK_SCHEME(s, "tendon: change of length, m",
                     fabs(joint_coordinate(&t, "x_a") + joint_coordinate(&t, "x_b")), 1e-9);
        truth_end(&t);
    }
}
END_TEST

/* ---- planar joint ---- */

START_TEST(planar_joint_keeps_its_plane)
{
    /* a plate thrown and spun in a vertical plane: its centre of mass flies a parabola within the
     * plane, and spins on at its rate; the plane's normal is y, and the centre of mass lies off the
     * joint */
    const double com[3] = {0.04, 0, 0.03}, moments[3] = {0.02, 0.03, 0.01};
    const double seconds = 0.5, spin = 4;
    const double limits[2] = {1e-5, 2e-2};
    for (int s = 0; s < 2; s++) {
        truth t = begin(s, GRAVITY, DT);
        const tb_handle body = mechanism_body(&t, "plate", (tb_handle){0}, ORIGIN, 1, com, moments);
        const double y[3] = {0, 1, 0};
        mechanism_joint(&t, "plane", body, TB_JOINT_PLANAR, NULL, y);
        truth_start(&t);
        set_joint_velocity(&t, "plane_x", 1.5);
        set_joint_velocity(&t, "plane_angle", spin);
        const tb_body_motion start = truth_motion(&t, "plate");
        double v[3], across[3], offset[3];
        reference_rotate(start.orientation, com, offset);
        reference_cross(start.angular_velocity, offset, across);
        for (int k = 0; k < 3; k++) v[k] = start.linear_velocity[k] + across[k];
        truth_run(&t, (int32_t)lround(seconds / DT));
        const tb_body_motion m = truth_motion(&t, "plate");
        double worst = 0;
        for (int k = 0; k < 3; k++) {
            const double fall = k == 2 ? GRAVITY * seconds * seconds / 2 : 0;
            worst = fmax(worst, fabs(m.com[k] - (start.com[k] + v[k] * seconds - fall)));
        }
        CHECK_SCHEME(s, "planar joint: error of the parabola, m", worst, limits[s]);
        CHECK_SCHEME(s, "planar joint: relative error of the spin",
                     fabs(fabs(m.angular_velocity[1]) / spin - 1), limits[s]);
        CHECK_SCHEME(s, "planar joint: out of its plane, m",
                     fabs(m.position[1]) + hypot(m.angular_velocity[0], m.angular_velocity[2]),
                     1e-12);
        truth_end(&t);
    }
}
END_TEST

/* ---- a driven body carries another ---- */

/* A table with a box on it is driven along x with acceleration a; the box follows,
 * or slides with mu g. */
static void carried(int s, double a, double mu, double expected, const char *text)
{
    tb_error error;
    truth t = begin(s, GRAVITY, DT);
    const double deep = SCHEMES[s] == TB_SCHEME_MOREAU ? 1e-6 : 0;
    tb_handle table;
    tb_body_def def = tb_body_defaults();
    def.name = "table";
    def.kinematic = true;
    TEST_OK(tb_scene_add_body(t.scene, &def, &table, &error), &error);
    tb_shape_def top = tb_shape_defaults();
    top.body = table;
    top.type = TB_SHAPE_BOX;
    top.size[0] = top.size[1] = 5, top.size[2] = 0.5;
    top.position[2] = -0.5;
    top.surface = truth_surface(mu, 0);
    TEST_OK(tb_scene_add_shape(t.scene, &top, NULL, &error), &error);
    truth_body(&t, "box", TB_SHAPE_BOX, (const double[3]){0.2, 0.2, 0.1}, 2,
               (const double[3]){0, 0, 0.1 - deep}, NULL, truth_surface(mu, 0));
    truth_start(&t);
    const int32_t index = tb_model_find(t.model, TB_HANDLE_BODY, "table");
    const double upright[4] = {1, 0, 0, 0};
    double worst = 0;
    for (int i = 0; i < 1000; i++) {
        /* the velocity at the end of the step, held through it */
        const double v = a * (i + 1) * DT, velocity[3] = {v, 0, 0};
        const tb_body_motion m = truth_motion(&t, "table");
        TEST_OK(
            tb_state_set_kinematic(t.state, index, m.position, upright, velocity, ORIGIN, &error),
            &error);
        truth_run(&t, 1);
        worst =
            fmax(worst, fabs(truth_motion(&t, "box").linear_velocity[0] - expected * (i + 1) * DT));
    }
    CHECK_SCHEME(s, text, worst, 1e-9);
    truth_end(&t);
}

START_TEST(driven_table_carries_a_box_by_friction)
{
    for (int s = 0; s < 2; s++) {
        carried(s, 4.8, 0.5, 4.8, "driven table, a < mu g: speed error of the box, m/s");
        carried(s, 6, 0.5, 0.5 * GRAVITY, "driven table, a > mu g: speed error of the box, m/s");
    }
}
END_TEST

TEST_MAIN(spring_and_damper_decay_as_they_should, servo_pushes_with_its_limit_and_no_more,
          dry_friction_holds_and_slows_down, limits_stop_a_joint, ball_joint_keeps_its_cone,
          mimic_joint_follows, mimic_joint_follows_a_curve, tendon_keeps_its_length,
          planar_joint_keeps_its_plane, driven_table_carries_a_box_by_friction)
