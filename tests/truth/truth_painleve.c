/* Painleve's rod: a slender rod slides with its lower tip on a rough floor and leans away from its
 * motion.
 *
 * Source: Genot and Brogliato, New results on Painleve paradoxes, Eur. J. Mech. A 18 (1999) 653;
 * the closed forms follow from rigid-body mechanics. Mass m, length 2 l, I = m l^2 / 3 about the
 * centre, which lies at l (cos, sin)(theta) from the tip. A force (F, N) at the tip accelerates the
 * tip by
 *
 *     m a_x = (1 + 3 sin^2) F -     3 sin cos N
 *     m a_z =    -3 sin cos F + (1 + 3 cos^2) N - m g + m w^2 l sin
 *
 * While the tip slides towards -x, F = mu N and m a_z = A N - m g, A = 1 + 3 cos^2 - 3 mu sin cos.
 * A vanishes at mu = (1 + 3 cos^2) / (3 sin cos), which is 4/3 at tan(theta) = 2 (sin^2 = 4/5, sin
 * cos = 2/5).
 *
 * Below: A > 0, and the rod slides on with N = m g / A, however large that is. Above: A < 0, w = 0
 * leaves no finite force, and the motion goes on by an impact without collision: of all impulses in
 * the cone only one stops the tip dead. With the tip's velocity -v and G the matrix above,
 *
 *     (lambda_t, lambda_n) = G^-1 m (v, g dt) -> m v (0.4, 0.3),    ratio 4/3 <= mu,
 *
 * so that is possible exactly above mu = 4/3. */
#include "common_mechanism.h"

#define MASS  2.0  /* kg */
#define HALF  0.5  /* m, l */
#define SPEED 3.0  /* m/s, of the tip, towards -x */
#define TIP   1e-3 /* m, radius of the ball at the tip */

static const double SIN = 0.89442719099991588, COS = 0.44721359549995794; /* tan = 2 */

/* The rod as a body with its centre of mass at the origin and a small ball whose lowest point is
 * the tip. */
static truth rod(double mu, tb_scheme scheme, double dt)
{
    truth t = truth_begin(GRAVITY, dt);
    t.options.scheme = scheme;
    t.options.solve.maximum_iterations = 100000;
    t.options.report_energy = true;
    truth_plane(&t, 0, 0, 1, truth_surface(mu, 0));
    const double inertia = MASS * HALF * HALF / 3;

    /* Moreau's scheme takes up contacts that are closed:
     * a touch of overlap decides the first step */
    const double deep = scheme == TB_SCHEME_MOREAU ? 1e-12 : 0;
    const double centre[3] = {HALF * COS, 0, HALF * SIN - deep};
    const tb_handle body =
        mechanism_body(&t, "rod", (tb_handle){0}, centre, MASS, (const double[3]){0, 0, 0},
                       (const double[3]){inertia, inertia, inertia});
    mechanism_joint(&t, "free", body, TB_JOINT_FREE, NULL, NULL);
    tb_error error;
    tb_shape_def tip = tb_shape_defaults();
    tip.body = body;
    tip.type = TB_SHAPE_SPHERE;
    tip.size[0] = TIP;
    tip.position[0] = -HALF * COS;
    tip.position[2] = -HALF * SIN + TIP;
    tip.surface = truth_surface(mu, 0);
    TEST_OK(tb_scene_add_shape(t.scene, &tip, NULL, &error), &error);
    truth_start(&t);
    truth_set_velocity(&t, "rod", (const double[3]){-SPEED, 0, 0}, (const double[3]){0, 0, 0});
    return t;
}

/* impulse on the rod at its tip: along x, along z */
static void tip_impulse(const truth *t, double impulse[2])
{
    impulse[0] = impulse[1] = 0;
    for (int32_t i = 0; i < tb_state_number_of_contacts(t->state); i++) {
        tb_contact_info c;
        TEST_OK(tb_state_contact(t->state, i, &c), NULL);
        const double side = c.normal[2] > 0 ? 1 : -1; /* on B, which the normal points to */
        impulse[0] += side * (c.impulse[0] * c.normal[0] + c.impulse[1] * c.tangent1[0] +
                              c.impulse[2] * c.tangent2[0]);
        impulse[1] += side * (c.impulse[0] * c.normal[2] + c.impulse[1] * c.tangent1[2] +
                              c.impulse[2] * c.tangent2[2]);
    }
}

/* largest speed of the tip's contact after the last step, m/s; the tip must have one */
static double contact_speed(const truth *t)
{
    double speed = 0;
    ck_assert_int_ge(tb_state_number_of_contacts(t->state), 1);
    for (int32_t i = 0; i < tb_state_number_of_contacts(t->state); i++) {
        tb_contact_info c;
        TEST_OK(tb_state_contact(t->state, i, &c), NULL);
        speed = fmax(speed, sqrt(reference_dot(c.velocity, c.velocity)));
    }
    return speed;
}

/* One step, so short that the rod does not turn within it. */
static double worst_force_error(tb_scheme scheme)
{
    const double mus[6] = {0, 0.5, 1, 1.2, 1.3, 1.33}, dt = 1e-6;
    double worst = 0;
    for (int i = 0; i < 6; i++) {
        truth t = rod(mus[i], scheme, dt);
        truth_run(&t, 1);
        double impulse[2];
        tip_impulse(&t, impulse);
        const double a = 1 + 3 * COS * COS - 3 * mus[i] * SIN * COS;
        const double normal = MASS * GRAVITY / a;
        worst = fmax(worst, fabs(impulse[1] / dt / normal - 1));
        worst = fmax(worst, fabs(impulse[0] / dt - mus[i] * normal) / normal);
        truth_end(&t);
    }
    return worst;
}

START_TEST(rod_slides_on_below_the_critical_friction)
{
    TRUTH_CHECK("Painleve, mu < 4/3: relative error of the force",
                worst_force_error(TB_SCHEME_STEWART_TRINKLE), 1e-6);
    TRUTH_CHECK("Painleve, mu < 4/3, Moreau: relative error of the force",
                worst_force_error(TB_SCHEME_MOREAU), 1e-6);
}
END_TEST

static double worst_impulse_error(tb_scheme scheme, double *tip_speed, double *energy_gain)
{
    const double mus[4] = {1.34, 1.5, 2, 4}, dt = 1e-6;
    double worst = 0;
    *tip_speed = *energy_gain = 0;
    for (int i = 0; i < 4; i++) {
        truth t = rod(mus[i], scheme, dt);
        truth_run(&t, 1);
        double impulse[2];
        tip_impulse(&t, impulse);
        /* G = (3.4, -1.2; -1.2, 1.6) / m, determinant 4 / m^2 */
        const double v = SPEED, fall = GRAVITY * dt;
        const double tangent = MASS * (1.6 * v + 1.2 * fall) / 4;
        const double normal = MASS * (1.2 * v + 3.4 * fall) / 4;
        worst = fmax(worst, hypot(impulse[0] - tangent, impulse[1] - normal) / normal);
        *tip_speed = fmax(*tip_speed, contact_speed(&t) / SPEED);
        *energy_gain = fmax(*energy_gain, t.worst.energy_change);
        truth_end(&t);
    }
    return worst;
}

START_TEST(rod_is_stopped_without_collision_above_it)
{
    double speed, gain;
    TRUTH_CHECK("Painleve, mu > 4/3: relative error of the impulse",
                worst_impulse_error(TB_SCHEME_STEWART_TRINKLE, &speed, &gain), 1e-6);
    TRUTH_CHECK("Painleve, mu > 4/3: tip's speed after, of the speed before", speed, 1e-6);
    TRUTH_CHECK("Painleve, mu > 4/3: energy gained, J", gain, 0);
    TRUTH_CHECK("Painleve, mu > 4/3, Moreau: relative error of the impulse",
                worst_impulse_error(TB_SCHEME_MOREAU, &speed, &gain), 1e-6);
    TRUTH_CHECK("Painleve, mu > 4/3, Moreau: tip's speed after", speed, 1e-6);
    TRUTH_CHECK("Painleve, mu > 4/3, Moreau: energy gained, J", gain, 0);
}
END_TEST

/* After that, the rod slides, or stops and turns over its tip, jumps, falls. No step needs a
 * larger impulse than the tangential impact of the closed form, no impulse leaves its law, the
 * tip does not sink, and energy does not grow. */
static void go_on(tb_scheme scheme, const char *const names[4])
{
    double gain = 0, residual = 0, penetration = 0, largest = 0;
    const double mus[6] = {0.5, 1, 1.3, 1.34, 2, 4};
    for (int i = 0; i < 6; i++) {
        truth t = rod(mus[i], scheme, 1e-4);
        const double energy = tb_state_energy(t.state);
        double lowest = energy;
        for (int k = 0; k < 2000; k++) {
            truth_run(&t, 1);
            const double now = tb_state_energy(t.state);
            gain = fmax(gain, (now - lowest) / energy);
            lowest = fmin(lowest, now);
            double impulse[2];
            tip_impulse(&t, impulse);
            largest = fmax(largest, impulse[1] / (MASS * SPEED));
            /* the rest of the rod has no shape */
            if (truth_motion(&t, "rod").com[2] < 0.1 * HALF) break;
        }
        residual = fmax(residual, t.worst.residual);
        penetration = fmax(penetration, t.worst.penetration);
        truth_end(&t);
    }
    TRUTH_CHECK(names[0], residual, 1e-12);
    TRUTH_CHECK(names[1], penetration, 1e-5);
    TRUTH_CHECK(names[2], gain, 1e-6);
    TRUTH_CHECK(names[3], largest, 0.301);
}

START_TEST(rod_goes_on_without_jam)
{
    go_on(TB_SCHEME_STEWART_TRINKLE,
          (const char *const[4]){"Painleve, going on: largest residual",
                                 "Painleve, going on: penetration, m",
                                 "Painleve, going on: energy gained, of the first",
                                 "Painleve, going on: largest impulse / m v (0.3 in theory)"});
    go_on(TB_SCHEME_MOREAU,
          (const char *const[4]){"Painleve, Moreau, going on: largest residual",
                                 "Painleve, Moreau, going on: penetration, m",
                                 "Painleve, Moreau, going on: energy gained, of the first",
                                 "Painleve, Moreau, going on: largest impulse / m v"});
}
END_TEST

TEST_MAIN(rod_slides_on_below_the_critical_friction, rod_is_stopped_without_collision_above_it,
          rod_goes_on_without_jam)
