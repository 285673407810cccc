/* A free body tumbles about its middle axis for 60 s: energy and angular momentum stay, and the
 * period is that of Euler's solution.
 *
 * Source: Landau and Lifshitz, Mechanics, par. 37. With moments I1 < I2 < I3, L^2 > 2 T I2, the
 * middle component of the angular velocity is a multiple of sn(tau, k) and returns to itself after
 *
 *     P = 4 K(k) sqrt(I1 I2 I3 / ((I3 - I2) (L^2 - 2 T I1))),
 *     k^2 = (I2 - I1) (2 T I3 - L^2) / ((I3 - I2) (L^2 - 2 T I1)).
 *
 * K is computed by the arithmetic-geometric mean. The body starts close to the unstable axis, where
 * k is near 1 and the body flips over again and again (Dzhanibekov's nut).
 *
 * Both schemes turn a single free body by a rule of second order that keeps its energy, and step
 * 1 ms. A free body whose frame is off its centre of mass is a tree like any other: Stewart and
 * Trinkle's scheme turns it by the velocity at the end of the step, which is of first order in the
 * direction of the angular momentum (about 0.3 w dt), and steps 0.25 ms. */
#include "common_mechanism.h"

#define SECONDS 60

static const double MOMENTS[3] = {1e-3, 2e-3, 3e-3}; /* kg m^2 */
static const double SPIN[3] = {0.01, 5, 0.02};       /* rad/s, body axes */

static double complete_elliptic_integral(double k2)
{
    double a = 1, b = sqrt(1 - k2);
    for (int i = 0; i < 60 && fabs(a - b) > 1e-16 * a; i++) {
        const double mean = 0.5 * (a + b);
        b = sqrt(a * b);
        a = mean;
    }
    return acos(-1) / (2 * a);
}

static double analytic_period(void)
{
    double twice_energy = 0, momentum2 = 0;
    for (int i = 0; i < 3; i++) {
        twice_energy += MOMENTS[i] * SPIN[i] * SPIN[i];
        momentum2 += MOMENTS[i] * MOMENTS[i] * SPIN[i] * SPIN[i];
    }
    const double *m = MOMENTS;
    ck_assert_msg(momentum2 > twice_energy * m[1], "the solution of the other case applies");
    const double d = (m[2] - m[1]) * (momentum2 - twice_energy * m[0]);
    const double k2 = (m[1] - m[0]) * (twice_energy * m[2] - momentum2) / d;
    return 4 * complete_elliptic_integral(k2) * sqrt(m[0] * m[1] * m[2] / d);
}

static void angular_momentum(const tb_body_motion *m, double momentum[3])
{
    double body[3];
    reference_unrotate(m->orientation, m->angular_velocity, body);
    for (int i = 0; i < 3; i++) body[i] *= MOMENTS[i];
    reference_rotate(m->orientation, body, momentum);
}

/* com: where the centre of mass lies in the body frame;
 * off the origin the body is a tree like any other */
static void tumble(tb_scheme scheme, double dt, const double com[3], const char *const names[3])
{
    truth t = truth_begin(0, dt);
    t.options.scheme = scheme;
    const double origin[3] = {0, 0, 0};
    const tb_handle body = mechanism_body(&t, "nut", (tb_handle){0}, origin, 1, com, MOMENTS);
    mechanism_joint(&t, "free", body, TB_JOINT_FREE, NULL, NULL);
    truth_start(&t);
    double v[3];
    reference_cross(com, SPIN, v); /* the centre of mass rests */
    truth_set_velocity(&t, "nut", v, SPIN);

    const double energy = tb_state_energy(t.state);
    tb_body_motion m = truth_motion(&t, "nut");
    double momentum[3], worst_energy = 0, worst_momentum = 0;
    angular_momentum(&m, momentum);
    const double size = sqrt(reference_dot(momentum, momentum));

    /* rising zeros of the middle component, by the line through the steps around them */
    double before = SPIN[1], first = 0, last = 0;
    int turns = -1;
    for (int i = 1; i <= (int)(SECONDS / dt); i++) {
        truth_run(&t, 1);
        m = truth_motion(&t, "nut");
        double now[3], w[3];
        angular_momentum(&m, now);
        double off = 0;
        for (int k = 0; k < 3; k++) off += pow(now[k] - momentum[k], 2);
        worst_momentum = fmax(worst_momentum, sqrt(off) / size);
        worst_energy = fmax(worst_energy, fabs(tb_state_energy(t.state) / energy - 1));
        reference_unrotate(m.orientation, m.angular_velocity, w);
        if (before < 0 && w[1] >= 0) {
            last = dt * (i - w[1] / (w[1] - before));
            if (++turns == 0) first = last;
        }
        before = w[1];
    }
    ck_assert_int_ge(turns, 5);
    TRUTH_CHECK(names[0], worst_energy, 1e-3);
    TRUTH_CHECK(names[1], worst_momentum, 1e-3);
    TRUTH_CHECK(names[2], fabs((last - first) / turns / analytic_period() - 1), 1e-3);
    truth_end(&t);
}

START_TEST(nut_flips_in_time_moreau)
{
    tumble(TB_SCHEME_MOREAU, 1e-3, (const double[3]){0, 0, 0},
           (const char *const[3]){"tumbling, Moreau: relative error of energy",
                                  "tumbling, Moreau: error of angular momentum (vector)",
                                  "tumbling, Moreau: relative error of the period"});
}
END_TEST

START_TEST(nut_flips_in_time_stewart_trinkle)
{
    tumble(TB_SCHEME_STEWART_TRINKLE, 1e-3, (const double[3]){0, 0, 0},
           (const char *const[3]){"tumbling, Stewart-Trinkle: relative error of energy",
                                  "tumbling, Stewart-Trinkle: error of angular momentum",
                                  "tumbling, Stewart-Trinkle: relative error of the period"});
}
END_TEST

START_TEST(nut_flips_in_time_about_a_point_off_its_centre)
{
    tumble(TB_SCHEME_MOREAU, 1e-3, (const double[3]){0.02, -0.01, 0.03},
           (const char *const[3]){"tumbling, Moreau, off-centre frame: error of energy",
                                  "tumbling, Moreau, off-centre frame: angular momentum",
                                  "tumbling, Moreau, off-centre frame: period"});
}
END_TEST

START_TEST(nut_flips_in_time_about_a_point_off_its_centre_stewart_trinkle)
{
    tumble(TB_SCHEME_STEWART_TRINKLE, 2.5e-4, (const double[3]){0.02, -0.01, 0.03},
           (const char *const[3]){"tumbling, S-T, off-centre frame: error of energy",
                                  "tumbling, S-T, off-centre frame: angular momentum",
                                  "tumbling, S-T, off-centre frame: period"});
}
END_TEST

TEST_MAIN(nut_flips_in_time_moreau, nut_flips_in_time_stewart_trinkle,
          nut_flips_in_time_about_a_point_off_its_centre,
          nut_flips_in_time_about_a_point_off_its_centre_stewart_trinkle)
