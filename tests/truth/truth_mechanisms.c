/* Linkages and bodies on joints against reference integrations in double precision.
 *
 * The references know nothing of libtribo: minimal coordinates where a mechanism has them (double
 * pendulum, four-bar), Euler's equations of a heavy body about a point, Newton and Euler's for a
 * chain of hinges; classical Runge-Kutta, fourth order, at a tenth of a millisecond, where its own
 * error is below 1e-9.
 *
 * Moreau's midpoint rule is of second order for smooth motion, Stewart and Trinkle's scheme of
 * first: measured from two step lengths, as log2 of the ratio of their errors. */
#include "common_mechanism.h"

#define REFERENCE_DT 1e-4

static const double ORIGIN[3] = {0, 0, 0};

/* error at the end for two step lengths, and the order they show */
typedef struct convergence {
    double coarse, fine, order;
} convergence;

typedef double case_error(tb_scheme scheme, double dt);

static convergence converge(case_error *run, tb_scheme scheme, double dt)
{
    convergence c;
    c.coarse = run(scheme, dt);
    c.fine = run(scheme, dt / 2);
    c.order = log2(c.coarse / c.fine);
    return c;
}

/* `limits`: errors allowed at dt, for Moreau's scheme and Stewart and Trinkle's */
static void check_convergence(const char *name, case_error *run, double dt, const double limits[2])
{
    char line[128];
    const convergence moreau = converge(run, TB_SCHEME_MOREAU, dt);
    const convergence stewart = converge(run, TB_SCHEME_STEWART_TRINKLE, dt);
    snprintf(line, sizeof line, "%s, Moreau: error", name);
    TRUTH_CHECK(line, moreau.coarse, limits[0]);
    snprintf(line, sizeof line, "%s, Moreau: 2 - order", name);
    TRUTH_CHECK(line, 2 - moreau.order, 0.1);
    snprintf(line, sizeof line, "%s, Stewart-Trinkle: error", name);
    TRUTH_CHECK(line, stewart.coarse, limits[1]);
    snprintf(line, sizeof line, "%s, Stewart-Trinkle: 1 - order", name);
    TRUTH_CHECK(line, 1 - stewart.order, 0.1);
}

/* ---- double pendulum ---- */

typedef struct arm_link {
    double length, centre, mass, inertia; /* m, m, kg, kg m^2 about the centre of mass */
} arm_link;

static const arm_link UPPER = {0.5, 0.3, 1.2, 0.03}, LOWER = {0.4, 0.15, 0.8, 0.01};

/* x: angles from hanging straight down (absolute), their rates. Lagrange's equations. */
static void double_pendulum_rate(const double *x, double *rate, const void *context)
{
    (void)context;
    const arm_link a = UPPER, b = LOWER;
    const double c = cos(x[0] - x[1]), s = sin(x[0] - x[1]);
    const double coupling = b.mass * a.length * b.centre;
    double m[4] = {a.inertia + a.mass * a.centre * a.centre + b.mass * a.length * a.length,
                   coupling * c, coupling * c, b.inertia + b.mass * b.centre * b.centre};
    double f[2] = {-coupling * s * x[3] * x[3] -
                       (a.mass * a.centre + b.mass * a.length) * GRAVITY * sin(x[0]),
                   coupling * s * x[2] * x[2] - b.mass * b.centre * GRAVITY * sin(x[1])};
    reference_solve(m, f, 2);
    rate[0] = x[2];
    rate[1] = x[3];
    rate[2] = f[0];
    rate[3] = f[1];
}

static double double_pendulum(tb_scheme scheme, double dt)
{
    truth t = truth_begin(GRAVITY, dt);
    t.options.scheme = scheme;
    /* hinges about -y: a positive angle moves a hanging link towards +x */
    const double axis[3] = {0, -1, 0}, below[3] = {0, 0, -UPPER.length};
    const tb_handle upper = mechanism_body(
        &t, "upper", (tb_handle){0}, ORIGIN, UPPER.mass, (const double[3]){0, 0, -UPPER.centre},
        (const double[3]){UPPER.inertia, UPPER.inertia, UPPER.inertia});
    mechanism_joint(&t, "shoulder", upper, TB_JOINT_HINGE, NULL, axis);
    const tb_handle lower = mechanism_body(
        &t, "lower", upper, below, LOWER.mass, (const double[3]){0, 0, -LOWER.centre},
        (const double[3]){LOWER.inertia, LOWER.inertia, LOWER.inertia});
    mechanism_joint(&t, "elbow", lower, TB_JOINT_HINGE, NULL, axis);
    truth_start(&t);
    set_joint_coordinate(&t, "shoulder", 1.2);
    set_joint_coordinate(&t, "elbow", 0.8);

    const double seconds = 2;
    double x[4] = {1.2, 2.0, 0, 0};
    truth_run(&t, (int32_t)lround(seconds / dt));
    reference_run(double_pendulum_rate, NULL, 4, x, REFERENCE_DT, lround(seconds / REFERENCE_DT));
    const double a = joint_coordinate(&t, "shoulder"), b = joint_coordinate(&t, "elbow");
    truth_end(&t);
    return fmax(fabs(a - x[0]), fabs(a + b - x[1]));
}

START_TEST(double_pendulum_swings_as_lagrange_says)
{
    check_convergence("double pendulum, 2 s, 1 ms", double_pendulum, 1e-3,
                      (const double[2]){1e-4, 5e-2});
}
END_TEST

/* ---- four-bar linkage ---- */

/* Crank from (0, 0), ground to (0.5, 0), in the x-z plane; Grashof, so that the crank turns right
 * round. Each bar has its centre of mass at the middle. */
enum { CRANK, COUPLER, ROCKER };
static const double BARS[3] = {0.15, 0.5, 0.3}, GROUND = 0.5;
static const double BAR_MASS[3] = {0.6, 1.0, 0.8}, BAR_INERTIA[3] = {2e-3, 2e-2, 8e-3};
#define CRANK_SPEED 15.0 /* rad/s at the start, crank along +x */

/* Angles of coupler and rocker (from +x towards +z), and their derivatives by the crank's angle. */
static void four_bar_angles(double crank, double angles[3], double slopes[3])
{
    const double x = BARS[CRANK] * cos(crank), z = BARS[CRANK] * sin(crank);
    const double dx = GROUND - x, dz = -z, d2 = dx * dx + dz * dz, d = sqrt(d2);
    const double a = (BARS[COUPLER] * BARS[COUPLER] - BARS[ROCKER] * BARS[ROCKER] + d2) / (2 * d);
    const double h = sqrt(BARS[COUPLER] * BARS[COUPLER] - a * a);
    const double px = (a * dx - h * dz) / d,
                 pz = (a * dz + h * dx) / d; /* tip from the crank's end */
    angles[CRANK] = crank;
    angles[COUPLER] = atan2(pz, px);
    angles[ROCKER] = atan2(z + pz, x + px - GROUND);

    /* l1 e1 + l2 e2 - l3 e3 = ground, derived by the crank's angle */
    slopes[CRANK] = 1;
    const double s = sin(angles[ROCKER] - angles[COUPLER]);
    slopes[COUPLER] = BARS[CRANK] * sin(crank - angles[ROCKER]) / (BARS[COUPLER] * s);
    slopes[ROCKER] = BARS[CRANK] * sin(crank - angles[COUPLER]) / (BARS[ROCKER] * s);
}

/* kinetic energy for unit speed of the crank, doubled, and potential energy */
static void four_bar_energies(double crank, double *mass, double *potential)
{
    double angle[3], slope[3];
    four_bar_angles(crank, angle, slope);
    *mass = *potential = 0;
    for (int i = 0; i < 3; i++) {
        /* the bar's middle: its base and half the bar */
        const double half = BARS[i] / 2;
        double vx = -half * sin(angle[i]) * slope[i], vz = half * cos(angle[i]) * slope[i];
        double height = half * sin(angle[i]);
        if (i == COUPLER) {
            vx -= BARS[CRANK] * sin(crank);
            vz += BARS[CRANK] * cos(crank);
            height += BARS[CRANK] * sin(crank);
        }
        *mass += BAR_MASS[i] * (vx * vx + vz * vz) + BAR_INERTIA[i] * slope[i] * slope[i];
        *potential += BAR_MASS[i] * GRAVITY * height;
    }
}

/* One degree of freedom and energy kept: the crank never stops, so its speed follows from its
 * angle. */
static void four_bar_rate(const double *x, double *rate, const void *context)
{
    double mass, potential;
    four_bar_energies(x[0], &mass, &potential);
    rate[0] = sqrt(2 * (*(const double *)context - potential) / mass);
}

static tb_handle bar(truth *t, const char *name, const char *joint, int which, tb_handle parent,
                     const double position[3])
{
    /* the bar lies along its own x; hinges about -y turn x towards +z */
    const double i = BAR_INERTIA[which], axis[3] = {0, -1, 0};
    const tb_handle body =
        mechanism_body(t, name, parent, position, BAR_MASS[which],
                       (const double[3]){BARS[which] / 2, 0, 0}, (const double[3]){i, i, i});
    mechanism_joint(t, joint, body, TB_JOINT_HINGE, NULL, axis);
    return body;
}

typedef struct loop_run {
    double error, closure, drift; /* rad; m; of the first energy */
} loop_run;

static loop_run four_bar(tb_scheme scheme, double dt)
{
    truth t = truth_begin(GRAVITY, dt);
    t.options.scheme = scheme;
    t.options.solve.maximum_iterations = 100000;
    const tb_handle crank = bar(&t, "crank", "q_crank", CRANK, (tb_handle){0}, ORIGIN);
    const double crank_end[3] = {BARS[CRANK], 0, 0}, ground[3] = {GROUND, 0, 0};
    const tb_handle coupler = bar(&t, "coupler", "q_coupler", COUPLER, crank, crank_end);
    const tb_handle rocker = bar(&t, "rocker", "q_rocker", ROCKER, (tb_handle){0}, ground);
    tb_error error;
    tb_equality_def pin = tb_equality_defaults();
    pin.type = TB_EQUALITY_CONNECT;
    pin.a = coupler;
    pin.b = rocker;
    pin.anchor_a[0] = BARS[COUPLER];
    pin.anchor_b[0] = BARS[ROCKER];
    pin.has_anchor_b = true;
    TEST_OK(tb_scene_add_equality(t.scene, &pin, NULL, &error), &error);
    truth_start(&t);

    double angle[3], slope[3];
    four_bar_angles(0, angle, slope);
    set_joint_coordinate(&t, "q_coupler", angle[COUPLER]);
    set_joint_coordinate(&t, "q_rocker", angle[ROCKER]);
    set_joint_velocity(&t, "q_crank", CRANK_SPEED);
    set_joint_velocity(&t, "q_coupler", CRANK_SPEED * (slope[COUPLER] - 1));
    set_joint_velocity(&t, "q_rocker", CRANK_SPEED * slope[ROCKER]);

    double x[1] = {0}, mass, potential;
    four_bar_energies(0, &mass, &potential);
    const double total = 0.5 * mass * CRANK_SPEED * CRANK_SPEED + potential;
    TEST_NEAR_RELATIVE(tb_state_energy(t.state), total, 1e-12);
    loop_run r = {0, 0, 0};
    const double stride = 0.01;
    for (int i = 0; i < 200; i++) {
        truth_run(&t, (int32_t)lround(stride / dt));
        reference_run(four_bar_rate, &total, 1, x, REFERENCE_DT, lround(stride / REFERENCE_DT));
        r.error = fmax(r.error, fabs(joint_coordinate(&t, "q_crank") - x[0]));
        r.drift = fmax(r.drift, fabs(tb_state_energy(t.state) / total - 1));
    }
    ck_assert(x[0] > 4 * acos(-1)); /* the body did turn round */
    r.closure = t.worst.closure_error;
    truth_end(&t);
    return r;
}

static double four_bar_error(tb_scheme scheme, double dt)
{
    return four_bar(scheme, dt).error;
}

START_TEST(four_bar_turns_as_its_energy_says)
{
    check_convergence("four-bar, 2 s, 0.5 ms", four_bar_error, 5e-4, (const double[2]){2e-3, 1});
    const loop_run moreau = four_bar(TB_SCHEME_MOREAU, 5e-4);
    const loop_run stewart = four_bar(TB_SCHEME_STEWART_TRINKLE, 5e-4);
    TRUTH_CHECK("four-bar, Moreau: loop error, m", moreau.closure, 1e-9);
    TRUTH_CHECK("four-bar, Stewart-Trinkle: loop error, m", stewart.closure, 1e-9);
    TRUTH_CHECK("four-bar, Moreau: energy drift, relative", moreau.drift, 1e-3);
    TRUTH_CHECK("four-bar, Stewart-Trinkle: energy drift, relative", stewart.drift, 0.05);
}
END_TEST

/* ---- seven-joint arm ---- */

enum { JOINTS = 7 };

/* the size of a Kuka LBR; axes along z and y in turn, as its are */
static const struct {
    double offset[3], axis[3], mass, com[3], inertia[3];
} LINKS[JOINTS] = {{{0, 0, 0.16}, {0, 0, 1}, 4.0, {0, -0.03, 0.12}, {0.1, 0.09, 0.02}},
                   {{0, 0, 0.20}, {0, 1, 0}, 4.0, {0, 0.06, 0.04}, {0.05, 0.018, 0.044}},
                   {{0, 0, 0.20}, {0, 0, 1}, 3.0, {0, 0.03, 0.13}, {0.08, 0.075, 0.01}},
                   {{0, 0, 0.22}, {0, -1, 0}, 2.7, {0, 0.067, 0.034}, {0.03, 0.01, 0.029}},
                   {{0, 0, 0.18}, {0, 0, 1}, 1.7, {0.001, 0.021, 0.076}, {0.02, 0.018, 0.005}},
                   {{0, 0, 0.22}, {0, 1, 0}, 1.8, {0.002, 0.006, 0.001}, {0.005, 0.0036, 0.0047}},
                   {{0, 0.01, 0.08}, {0, 0, 1}, 0.3, {0.01, 0.02, 0.02}, {0.001, 0.0012, 0.001}}};

/* further forces on the joints */
typedef struct arm_extras {
    double damping, armature, stiffness;   /* N m s/rad, kg m^2, N m/rad towards 0.2 rad */
    double servo_stiffness, servo_damping; /* N m/rad, N m s/rad towards ARM_TARGET */
} arm_extras;

static const double ARM_START[JOINTS] = {0.3, -0.9, 0.4, 1.1, -0.6, 0.8, 0.2};
static const double ARM_SPEED[JOINTS] = {0.5, 1.0, -1.5, -1.0, 2.0, 1.5, 3.0};
static const double ARM_TARGET[JOINTS] = {0.5, -0.5, 0.1, 1.4, -0.2, 0.3, 0.9};
#define SPRING_REST 0.2

static void turned_by(const double q[4], const double axis[3], double angle, double r[4])
{
    const double c = cos(angle / 2), s = sin(angle / 2);
    const double p[4] = {c, s * axis[0], s * axis[1], s * axis[2]};
    double across[3];
    reference_cross(q + 1, p + 1, across);
    const double w = q[0] * p[0] - reference_dot(q + 1, p + 1);
    for (int k = 0; k < 3; k++) r[1 + k] = q[0] * p[1 + k] + p[0] * q[1 + k] + across[k];
    r[0] = w;
}

/* I x for principal moments along the axes of q */
static void inertia_times(const double q[4], const double moments[3], const double x[3],
                          double y[3])
{
    double local[3];
    reference_unrotate(q, x, local);
    for (int k = 0; k < 3; k++) local[k] *= moments[k];
    reference_rotate(q, local, y);
}

/* r += w' x d + w x (w x d) */
static void add_carried(const double rate[3], const double w[3], const double d[3], double r[3])
{
    double a[3], b[3];
    reference_cross(rate, d, a);
    for (int k = 0; k < 3; k++) r[k] += a[k];
    reference_cross(w, d, a);
    reference_cross(w, a, b);
    for (int k = 0; k < 3; k++) r[k] += b[k];
}

/* Newton and Euler's equations of every link, summed along the directions in which the joints move
 * it: with J and W the velocities of centre of mass and link for unit joint speeds,
 *     sum (m J'J + W'I W) u' = forces - sum (m J'(a - g) + W'(I w' + w x I w)),
 * a and w' those at u' = 0. */
static void arm_rate(const double *x, double *rate, const void *context)
{
    const arm_extras *extras = context;
    const double *u = x + JOINTS;
    double m[JOINTS * JOINTS] = {0}, f[JOINTS] = {0};
    double pivot[JOINTS][3], axis[JOINTS][3];
    double turn[4] = {1, 0, 0, 0}, at[3] = {0}, w[3] = {0}, w_rate[3] = {0};
    double a[3] = {0, 0, GRAVITY}; /* the base falls upward */

    for (int i = 0; i < JOINTS; i++) {
        double d[3], c[3], across[3];
        reference_rotate(turn, LINKS[i].offset, d);
        add_carried(w_rate, w, d, a);
        reference_rotate(turn, LINKS[i].axis, axis[i]);
        reference_cross(w, axis[i], across);
        for (int k = 0; k < 3; k++) {
            at[k] += d[k];
            pivot[i][k] = at[k];
            w_rate[k] += across[k] * u[i];
            w[k] += axis[i][k] * u[i];
        }
        turned_by(turn, LINKS[i].axis, x[i], turn);
        reference_rotate(turn, LINKS[i].com, c);

        double a_com[3] = {a[0], a[1], a[2]}, moment[3], spin[3], gyro[3];
        add_carried(w_rate, w, c, a_com);
        inertia_times(turn, LINKS[i].inertia, w_rate, moment);
        inertia_times(turn, LINKS[i].inertia, w, spin);
        reference_cross(w, spin, gyro);
        for (int k = 0; k < 3; k++) moment[k] += gyro[k];

        double jv[JOINTS][3], iw[JOINTS][3];
        for (int j = 0; j <= i; j++) {
            const double arm[3] = {at[0] + c[0] - pivot[j][0], at[1] + c[1] - pivot[j][1],
                                   at[2] + c[2] - pivot[j][2]};
            reference_cross(axis[j], arm, jv[j]);
            inertia_times(turn, LINKS[i].inertia, axis[j], iw[j]);
            f[j] -= LINKS[i].mass * reference_dot(jv[j], a_com) + reference_dot(axis[j], moment);
            for (int k = 0; k <= j; k++) {
                const double entry =
                    LINKS[i].mass * reference_dot(jv[j], jv[k]) + reference_dot(axis[k], iw[j]);
                m[j * JOINTS + k] += entry;
                if (k != j) m[k * JOINTS + j] += entry;
            }
        }
    }
    for (int i = 0; i < JOINTS; i++) {
        m[i * JOINTS + i] += extras->armature;
        f[i] -= extras->damping * u[i] + extras->stiffness * (x[i] - SPRING_REST);
        f[i] += extras->servo_stiffness * (ARM_TARGET[i] - x[i]) - extras->servo_damping * u[i];
        rate[i] = u[i];
    }
    reference_solve(m, f, JOINTS);
    memcpy(rate + JOINTS, f, sizeof f);
}

static truth arm(tb_scheme scheme, double dt, const arm_extras *extras)
{
    truth t = truth_begin(GRAVITY, dt);
    t.options.scheme = scheme;
    tb_error error;
    tb_handle parent = {0};
    for (int i = 0; i < JOINTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "link%d", i);
        parent = mechanism_body(&t, name, parent, LINKS[i].offset, LINKS[i].mass, LINKS[i].com,
                                LINKS[i].inertia);
        snprintf(name, sizeof name, "q%d", i);
        tb_joint_def def = tb_joint_defaults();
        def.name = name;
        def.body = parent;
        def.type = TB_JOINT_HINGE;
        memcpy(def.axis, LINKS[i].axis, sizeof def.axis);
        def.damping = extras->damping;
        def.armature = extras->armature;
        def.stiffness = extras->stiffness;
        def.spring_reference = SPRING_REST;
        const tb_handle joint = mechanism_add_joint(&t, &def);
        if (extras->servo_stiffness == 0) continue;
        tb_actuator_def servo = tb_actuator_defaults();
        servo.target = joint;
        tb_actuator_position_servo(&servo, extras->servo_stiffness, extras->servo_damping);
        TEST_OK(tb_scene_add_actuator(t.scene, &servo, NULL, &error), &error);
    }
    truth_start(&t);
    TEST_OK(tb_state_set_q(t.state, ARM_START, JOINTS, &error), &error);
    TEST_OK(tb_state_set_u(t.state, ARM_SPEED, JOINTS, &error), &error);
    if (extras->servo_stiffness != 0)
        TEST_OK(tb_state_set_controls(t.state, ARM_TARGET, JOINTS, &error), &error);
    return t;
}

/* largest error of a joint angle at the end */
static double arm_error(tb_scheme scheme, double dt, double seconds, const arm_extras *extras)
{
    truth t = arm(scheme, dt, extras);
    double x[2 * JOINTS], worst = 0;
    memcpy(x, ARM_START, sizeof ARM_START);
    memcpy(x + JOINTS, ARM_SPEED, sizeof ARM_SPEED);
    truth_run(&t, (int32_t)lround(seconds / dt));
    reference_run(arm_rate, extras, 2 * JOINTS, x, REFERENCE_DT, lround(seconds / REFERENCE_DT));
    for (int i = 0; i < JOINTS; i++) worst = fmax(worst, fabs(tb_state_q(t.state)[i] - x[i]));
    truth_end(&t);
    return worst;
}

static const arm_extras FREE_ARM = {0}, PASSIVE_ARM = {0.5, 0.02, 4, 0, 0},
                        DRIVEN_ARM = {0.1, 0.02, 0, 200, 15};

static double free_arm(tb_scheme scheme, double dt)
{
    return arm_error(scheme, dt, 0.5, &FREE_ARM);
}

static double passive_arm(tb_scheme scheme, double dt)
{
    return arm_error(scheme, dt, 1, &PASSIVE_ARM);
}

START_TEST(arm_falls_as_newton_and_euler_say)
{
    check_convergence("arm, 0.5 s, 1 ms", free_arm, 1e-3, (const double[2]){1e-3, 1e-1});
    check_convergence("arm with springs, dampers, armature, 1 s", passive_arm, 1e-3,
                      (const double[2]){1e-3, 1e-1});
}
END_TEST

static double driven_arm(tb_scheme scheme, double dt)
{
    return arm_error(scheme, dt, 1, &DRIVEN_ARM);
}

START_TEST(arm_with_servos_moves_as_newton_and_euler_say)
{
    check_convergence("arm with servos, 1 s, 1 ms", driven_arm, 1e-3,
                      (const double[2]){1e-5, 1e-3});
}
END_TEST

START_TEST(arm_accelerates_as_newton_and_euler_say)
{
    truth t = arm(TB_SCHEME_MOREAU, 1e-3, &PASSIVE_ARM);
    double x[2 * JOINTS], rate[2 * JOINTS], a[JOINTS], worst = 0, largest = 0;
    tb_error error;
    memcpy(x, ARM_START, sizeof ARM_START);
    memcpy(x + JOINTS, ARM_SPEED, sizeof ARM_SPEED);
    arm_rate(x, rate, &PASSIVE_ARM);
    TEST_OK(tb_state_smooth_acceleration(t.state, a, &error), &error);
    for (int i = 0; i < JOINTS; i++) {
        worst = fmax(worst, fabs(a[i] - rate[JOINTS + i]));
        largest = fmax(largest, fabs(rate[JOINTS + i]));
    }
    TRUTH_CHECK("arm: relative error of the smooth acceleration", worst / largest, 1e-12);
    truth_end(&t);
}
END_TEST

/* ---- one body about a point, and free with its centre of mass off the origin ---- */

static const double STONE_MASS = 1.5, STONE_COM[3] = {0.05, 0.02, -0.2};
static const double STONE_MOMENTS[3] = {0.02, 0.03, 0.015}, STONE_SPIN[3] = {3, 1, 5};

/* x: orientation, angular velocity in body axes. Euler's equations about the point of support. */
static void top_rate(const double *x, double *rate, const void *context)
{
    (void)context;
    const double *q = x, *w = x + 4, *c = STONE_COM;
    double m[9], momentum[3], gyro[3], down[3], f[3];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            m[3 * i + j] = (i == j) * (STONE_MOMENTS[i] + STONE_MASS * reference_dot(c, c)) -
                           STONE_MASS * c[i] * c[j];
    for (int i = 0; i < 3; i++) momentum[i] = reference_dot(m + 3 * i, w);
    reference_cross(w, momentum, gyro);
    reference_unrotate(q, (const double[3]){0, 0, -STONE_MASS * GRAVITY}, down);
    reference_cross(c, down, f);
    for (int i = 0; i < 3; i++) f[i] -= gyro[i];
    reference_turn(q, w, rate);
    reference_solve(m, f, 3);
    memcpy(rate + 4, f, sizeof f);
}

/* the same about the centre of mass, without forces */
static void tumbling_rate(const double *x, double *rate, const void *context)
{
    (void)context;
    const double *w = x + 4;
    double momentum[3], gyro[3];
    for (int i = 0; i < 3; i++) momentum[i] = STONE_MOMENTS[i] * w[i];
    reference_cross(w, momentum, gyro);
    reference_turn(x, w, rate);
    for (int i = 0; i < 3; i++) rate[4 + i] = -gyro[i] / STONE_MOMENTS[i];
}

static truth stone(tb_scheme scheme, double dt, tb_joint_type type)
{
    truth t = truth_begin(GRAVITY, dt);
    t.options.scheme = scheme;
    const tb_handle body =
        mechanism_body(&t, "stone", (tb_handle){0}, ORIGIN, STONE_MASS, STONE_COM, STONE_MOMENTS);
    mechanism_joint(&t, "joint", body, type, NULL, NULL);
    truth_start(&t);
    return t;
}

static double top_error(tb_scheme scheme, double dt)
{
    truth t = stone(scheme, dt, TB_JOINT_BALL);
    double x[7] = {1, 0, 0, 0, STONE_SPIN[0], STONE_SPIN[1], STONE_SPIN[2]};
    tb_error error;
    TEST_OK(tb_state_set_u(t.state, STONE_SPIN, 3, &error), &error);
    truth_run(&t, (int32_t)lround(1 / dt));
    reference_run(top_rate, NULL, 7, x, REFERENCE_DT, lround(1 / REFERENCE_DT));
    const double angle = reference_angle(truth_motion(&t, "stone").orientation, x);
    truth_end(&t);
    return angle;
}

static double flight_error(tb_scheme scheme, double dt)
{
    truth t = stone(scheme, dt, TB_JOINT_FREE);
    double x[7] = {1, 0, 0, 0, STONE_SPIN[0], STONE_SPIN[1], STONE_SPIN[2]}, turned[3], c[3];
    const double v[3] = {1, -2, 4}; /* of the origin */
    truth_set_velocity(&t, "stone", v, STONE_SPIN);
    reference_cross(STONE_SPIN, STONE_COM, turned);
    truth_run(&t, (int32_t)lround(1 / dt));
    reference_run(tumbling_rate, NULL, 7, x, REFERENCE_DT, lround(1 / REFERENCE_DT));
    const tb_body_motion m = truth_motion(&t, "stone");
    reference_rotate(x, STONE_COM, c);
    double worst = reference_angle(m.orientation, x);
    for (int k = 0; k < 3; k++) {
        const double com = STONE_COM[k] + v[k] + turned[k] - (k == 2) * GRAVITY / 2;
        worst = fmax(worst, fabs(m.position[k] - (com - c[k])));
    }
    truth_end(&t);
    return worst;
}

START_TEST(heavy_body_turns_about_a_ball_joint_as_euler_says)
{
    check_convergence("ball joint, 1 s, 1 ms", top_error, 1e-3, (const double[2]){1e-4, 3e-2});
}
END_TEST

START_TEST(body_with_its_centre_off_the_origin_flies_as_euler_says)
{
    check_convergence("free off-centre body, 1 s, 1 ms", flight_error, 1e-3,
                      (const double[2]){1e-4, 3e-2});
}
END_TEST

TEST_MAIN(double_pendulum_swings_as_lagrange_says, four_bar_turns_as_its_energy_says,
          arm_falls_as_newton_and_euler_say, arm_with_servos_moves_as_newton_and_euler_say,
          arm_accelerates_as_newton_and_euler_say,
          heavy_body_turns_about_a_ball_joint_as_euler_says,
          body_with_its_centre_off_the_origin_flies_as_euler_says)
