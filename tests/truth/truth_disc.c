/* A disc that slides and spins stops both at once.
 *
 * Sources: Farkas, Bartels, Unger and Wolf, Frictional coupling between sliding and spinning
 * motion, Phys. Rev. Lett. 90 (2003) 248302; Weidman and Malhotra, On the terminal motion of
 * sliding spinning disks with uniform Coulomb friction, Physica D 233 (2007) 1. With
 * eps = v / (R w) and uniform pressure on a ring of radius R,
 *
 *     v' = -mu g f(eps),           f = mean of (eps - sin s) / d,
 *     w' = -mu g t(eps) m R / I,   t = mean of (1 - eps sin s) / d     over the ring's angle s,
 *                                  d^2 = 1 + eps^2 - 2 eps sin s,
 *
 * which is integrated here for reference. The ratio eps moves towards f / eps = (m R^2 / I) t,
 * where v' / v = w' / w; for a hoop, I = m R^2, f(1) = t(1) makes that eps = 1. The ring is 24 feet
 * on one body whose centre of mass lies at their height, so that friction does not tilt it. How the
 * load is shared is left open by statics; the jor sweep keeps the symmetry.
 *
 * A single contact with Contensou spin of radius R has the law (F / mu N)^2 + (T / (2/3 mu R N))^2
 * <= 1, so a disc slides and spins with F : T = v : (2/3 R)^2 w, and
 *
 *     dv / dw = (I / m) v / ((2/3 R)^2 w),    v w^(-p) constant,    p = I / (m (2/3 R)^2),
 *
 * 9/8 for I = m R^2 / 2. */
#include "common_mechanism.h"

#define RADIUS 0.1
#define MASS   1.0
#define MU     0.3
#define DT     1e-4
#define FEET   24

/* (v, w) of a ring with I = inertia m R^2; f and t by the trapezoidal rule over the ring */
static void ring_rate(const double *x, double *rate, const void *context)
{
    const double inertia = *(const double *)context;
    const double eps = x[0] / (RADIUS * x[1]);
    const int n = 960;
    double f = 0, t = 0;
    for (int i = 0; i < n; i++) {
        const double s = sin(2 * acos(-1) * (i + 0.5) / n);
        const double d = sqrt(1 + eps * eps - 2 * eps * s);
        f += (eps - s) / d;
        t += (1 - eps * s) / d;
    }
    rate[0] = -MU * GRAVITY * f / n;
    rate[1] = -MU * GRAVITY * t / n / (inertia * RADIUS);
}

/* A body on feet (number 1: a single contact with spin) that slides along x and spins. */
static truth disc(int feet, double inertia, double v, double w)
{
    truth t = truth_begin(GRAVITY, DT);
    t.options.solve.solver = "jor";
    const double origin[3] = {0, 0, 0};
    const double i = inertia * MASS * RADIUS * RADIUS;
    tb_surface s = truth_surface(MU, 0);
    if (feet == 1) {
        s.kind = TB_CONTACT_SPIN;
        s.spin_radius = RADIUS;
    }
    truth_plane(&t, 0, 0, 1, s);
    const tb_handle body = mechanism_body(&t, "disc", (tb_handle){0}, origin, MASS, origin,
                                          (const double[3]){i / 2, i / 2, i});
    mechanism_joint(&t, "free", body, TB_JOINT_FREE, NULL, NULL);
    for (int k = 0; k < feet; k++) {
        tb_error error;
        tb_shape_def foot = tb_shape_defaults();
        const double angle = 2 * acos(-1) * k / feet, r = feet == 1 ? 0 : RADIUS;
        foot.body = body;
        foot.type = TB_SHAPE_SPHERE;
        foot.size[0] = 1e-3;
        foot.position[0] = r * cos(angle);
        foot.position[1] = r * sin(angle);
        foot.position[2] = foot.size[0];
        foot.surface = s;
        TEST_OK(tb_scene_add_shape(t.scene, &foot, NULL, &error), &error);
    }
    truth_start(&t);
    truth_set_velocity(&t, "disc", (const double[3]){v, 0, 0}, (const double[3]){0, 0, w});
    return t;
}

typedef struct stop {
    double slide_ends, spin_ends; /* s, below 1e-3 of the start */
    double ratio;                 /* v / (R w) when v is below 1 % of the start */
} stop;

static stop run_out(truth *t)
{
    stop s = {0, 0, 0};
    const tb_body_motion start = truth_motion(t, "disc");
    const double v0 = start.linear_velocity[0], w0 = start.angular_velocity[2];
    for (int i = 0; i < 100000 && (s.slide_ends == 0 || s.spin_ends == 0); i++) {
        truth_run(t, 1);
        const tb_body_motion m = truth_motion(t, "disc");
        const double v = hypot(m.linear_velocity[0], m.linear_velocity[1]);
        const double w = m.angular_velocity[2], time = tb_state_time(t->state);
        if (s.ratio == 0 && (v < 0.01 * v0 || w < 0.01 * w0)) s.ratio = v / (RADIUS * w);
        if (s.slide_ends == 0 && v < 1e-3 * v0) s.slide_ends = time;
        if (s.spin_ends == 0 && w < 1e-3 * w0) s.spin_ends = time;
    }
    ck_assert(s.slide_ends > 0 && s.spin_ends > 0);
    return s;
}

START_TEST(ring_of_feet_stops_at_once)
{
    double worst_time = 0, worst_ratio = 0;
    const double inertias[3] = {1, 0.5, 1.5}, ratios[3] = {0.3, 1.2, 3};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            truth t = disc(FEET, inertias[i], 0.5, 0.5 / RADIUS / ratios[k]);
            const stop s = run_out(&t);
            worst_time = fmax(worst_time, fabs(s.slide_ends / s.spin_ends - 1));
            if (i == 0) worst_ratio = fmax(worst_ratio, fabs(s.ratio - 1));
            truth_end(&t);
        }
    }
    TRUTH_CHECK("ring of feet: slide and spin end together, relative", worst_time, 0.01);
    TRUTH_CHECK("hoop on feet: terminal v / (R w), off 1", worst_ratio, 0.01);
}
END_TEST

START_TEST(ring_of_feet_slows_down_as_a_ring_does)
{
    double worst = 0;
    const double inertias[2] = {0.5, 1.5}, ratios[2] = {0.3, 3};
    for (int i = 0; i < 4; i++) {
        const double v = 0.5, w = v / RADIUS / ratios[i % 2];
        double x[2] = {v, w};
        truth t = disc(FEET, inertias[i / 2], v, w);
        /* until a tenth is left: momentary rest of the feet distinguishes a ring of feet from a
         * ring */
        while (x[0] > 0.1 * v && x[1] > 0.1 * w) {
            truth_run(&t, 10);
            reference_run(ring_rate, &inertias[i / 2], 2, x, 10 * DT, 1);
            const tb_body_motion m = truth_motion(&t, "disc");
            worst = fmax(worst, fabs(m.linear_velocity[0] - x[0]) / v);
            worst = fmax(worst, fabs(m.angular_velocity[2] - x[1]) / w);
            worst = fmax(worst, fabs(m.linear_velocity[1]) / v);
        }
        truth_end(&t);
    }
    TRUTH_CHECK("ring of feet: error of v and w on the way, of the start", worst, 0.01);
}
END_TEST

START_TEST(contensou_disc_keeps_its_power_law)
{
    truth t = disc(1, 0.5, 1, 30);
    const double p = 9.0 / 8;
    double worst = 0;
    double spin = 30;
    while (spin > 0.3) {
        truth_run(&t, 1);
        const tb_body_motion m = truth_motion(&t, "disc");
        spin = m.angular_velocity[2];
        if (spin < 0.3) break;
        worst = fmax(worst, fabs(m.linear_velocity[0] * pow(spin / 30, -p) - 1));
    }
    TRUTH_CHECK("Contensou disc: v w^(-9/8), relative change", worst, 0.01);
    truth_end(&t);
    t = disc(1, 0.5, 1, 30);
    const stop s = run_out(&t);
    TRUTH_CHECK("Contensou disc: slide and spin end together, relative",
                fabs(s.slide_ends / s.spin_ends - 1), 0.01);
    truth_end(&t);
}
END_TEST

TEST_MAIN(ring_of_feet_stops_at_once, ring_of_feet_slows_down_as_a_ring_does,
          contensou_disc_keeps_its_power_law)
