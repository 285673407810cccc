/* The Tippe Top rises on its stem when it spins fast on a rough floor, and not otherwise.
 *
 * Source: Leine and Glocker, A set-valued force law for spatial Coulomb-Contensou friction, Eur. J.
 * Mech. A 22 (2003) 193, with their numbers: m = 6 g, I1 = 8e-7, I3 = 7e-7 kg m^2, body sphere R1 =
 * 1.5 cm with its centre a1 = 0.3 cm above the centre of mass, stem sphere R2 = 0.5 cm at a2 = 1.6
 * cm, mu = 0.3, spin 180 rad/s, tilted by 0.1 rad, no restitution, Contensou friction with a small
 * contact radius (0.5 mm here).
 *
 * The angle between the axis and the vertical passes 90 deg, the stem touches, and the centre of
 * mass rises from R1 - a1 cos to a2 + R2 above the floor. The needed work comes from the spin, so
 * the sum of energies falls throughout.
 *
 * Jellett's integral: let rho run from the centre of mass to the contact point, rho = -R1 n + a1 e.
 * Then d/dt (L . rho) = 0 whatever the force at the contact point is, as long as only the body
 * sphere touches and no spin torque acts (Jellett 1872). */
#include "common_mechanism.h"

#define BODY_RADIUS    15e-3 /* m */
#define BODY_CENTRE    3e-3  /* m, above the centre of mass */
#define STEM_RADIUS    5e-3
#define STEM_CENTRE    16e-3
#define CONTACT_RADIUS 5e-4
#define TILT           0.1  /* rad */
#define SPIN           180. /* rad/s */
#define DT             1e-4 /* s */

static const double MOMENTS[3] = {8e-7, 8e-7, 7e-7}; /* kg m^2 */

static tb_surface top_surface(tb_contact_kind kind, double mu)
{
    tb_surface s = truth_surface(mu, 0);
    s.kind = kind;
    s.spin_radius = CONTACT_RADIUS;
    return s;
}

static void add_sphere(truth *t, const char *name, tb_handle body, double radius, double height,
                       tb_surface surface)
{
    tb_error error;
    tb_shape_def def = tb_shape_defaults();
    def.name = name;
    def.body = body;
    def.type = TB_SHAPE_SPHERE;
    def.size[0] = radius;
    def.position[2] = height;
    def.surface = surface;
    TEST_OK(tb_scene_add_shape(t->scene, &def, NULL, &error), &error);
}

static truth top(tb_scheme scheme, tb_contact_kind kind, double mu, double spin, double tilt,
                 double dt)
{
    truth t = truth_begin(GRAVITY, dt);
    t.options.scheme = scheme;
    const tb_surface s = top_surface(kind, mu);
    truth_plane(&t, 0, 0, 1, s);
    const double origin[3] = {0, 0, 0};
    const tb_handle body = mechanism_body(&t, "top", (tb_handle){0}, origin, 6e-3, origin, MOMENTS);
    mechanism_joint(&t, "free", body, TB_JOINT_FREE, NULL, NULL);
    add_sphere(&t, "round", body, BODY_RADIUS, BODY_CENTRE, s);
    add_sphere(&t, "stem", body, STEM_RADIUS, STEM_CENTRE, s);
    truth_start(&t);
    const double p[3] = {0, 0, BODY_RADIUS - BODY_CENTRE * cos(tilt) - 1e-9};
    const double q[4] = {cos(tilt / 2), sin(tilt / 2), 0, 0};
    truth_set_pose(&t, "top", p, q);
    truth_set_velocity(&t, "top", origin, (const double[3]){0, 0, spin});
    return t;
}

/* cosine of the angle between the top's axis and the vertical */
static double uprightness(const tb_body_motion *m)
{
    double axis[3];
    reference_rotate(m->orientation, (const double[3]){0, 0, 1}, axis);
    return axis[2];
}

static double jellett(const tb_body_motion *m)
{
    double w[3], momentum[3], axis[3];
    reference_unrotate(m->orientation, m->angular_velocity, w);
    for (int k = 0; k < 3; k++) w[k] *= MOMENTS[k];
    reference_rotate(m->orientation, w, momentum);
    reference_rotate(m->orientation, (const double[3]){0, 0, BODY_CENTRE}, axis);
    axis[2] -= BODY_RADIUS;
    return reference_dot(momentum, axis);
}

typedef struct story {
    double lowest_cosine, last_cosine, highest_com;
    double energy_gain; /* largest rise above the lowest energy before, of the first */
    double inverts_at;  /* s, first time beyond 90 deg */
    bool stem_touched;
} story;

static story watch(truth *t, double seconds)
{
    story s = {.lowest_cosine = 1, .inverts_at = INFINITY};
    const int32_t stem = tb_model_find(t->model, TB_HANDLE_SHAPE, "stem");
    const double first = tb_state_energy(t->state);
    double lowest = first;
    const int steps = (int)(seconds / DT);
    for (int i = 0; i < steps; i++) {
        truth_run(t, 1);
        const tb_body_motion m = truth_motion(t, "top");
        const double energy = tb_state_energy(t->state);
        s.energy_gain = fmax(s.energy_gain, (energy - lowest) / first);
        lowest = fmin(lowest, energy);
        s.last_cosine = uprightness(&m);
        if (s.last_cosine < 0 && s.lowest_cosine >= 0) s.inverts_at = tb_state_time(t->state);
        s.lowest_cosine = fmin(s.lowest_cosine, s.last_cosine);
        s.highest_com = fmax(s.highest_com, m.com[2]);
        for (int32_t k = 0; k < tb_state_number_of_contacts(t->state); k++) {
            tb_contact_info c;
            TEST_OK(tb_state_contact(t->state, k, &c), NULL);
            if ((c.shape_a == stem || c.shape_b == stem) && c.impulse[0] > 0) s.stem_touched = true;
        }
    }
    return s;
}

static void stands_up(tb_scheme scheme, const char *const names[4])
{
    truth t = top(scheme, TB_CONTACT_SPIN, 0.3, SPIN, TILT, DT);
    const story s = watch(&t, 3);
    TRUTH_CHECK(names[0], 1 + s.lowest_cosine, 0.01);
    TRUTH_CHECK(names[1], fabs(s.highest_com / (STEM_CENTRE + STEM_RADIUS) - 1), 0.01);
    TRUTH_CHECK(names[2], s.inverts_at, 2);
    TRUTH_CHECK(names[3], s.energy_gain, 3e-9); /* recovery lifts the top by the slop at most */
    ck_assert(s.stem_touched);
    ck_assert(s.last_cosine < -0.9);
    truth_end(&t);
}

START_TEST(spinning_top_stands_up_on_its_stem)
{
    stands_up(TB_SCHEME_MOREAU,
              (const char *const[4]){"Tippe Top: 1 + cos of the angle at its largest",
                                     "Tippe Top: height of com on the stem, relative error",
                                     "Tippe Top: passes 90 deg at, s",
                                     "Tippe Top: energy gained, of the first"});
    stands_up(TB_SCHEME_STEWART_TRINKLE,
              (const char *const[4]){"Tippe Top, S-T: 1 + cos of the angle at its largest",
                                     "Tippe Top, S-T: height of com on the stem, relative error",
                                     "Tippe Top, S-T: passes 90 deg at, s",
                                     "Tippe Top, S-T: energy gained, of the first"});
}
END_TEST

START_TEST(top_without_spin_or_friction_stays_down)
{
    truth t = top(TB_SCHEME_MOREAU, TB_CONTACT_SPIN, 0.3, 0, TILT, DT);
    const story still = watch(&t, 3);
    truth_end(&t);
    TRUTH_CHECK("Tippe Top without spin: 1 - cos at the most", 1 - still.lowest_cosine, 0.01);

    t = top(TB_SCHEME_MOREAU, TB_CONTACT_SPIN, 0, SPIN, TILT, DT);
    const story smooth = watch(&t, 3);
    truth_end(&t);
    TRUTH_CHECK("Tippe Top without friction: 1 - cos at the most", 1 - smooth.lowest_cosine, 0.01);
    ck_assert(!still.stem_touched && !smooth.stem_touched);
}
END_TEST

START_TEST(jellett_integral_stays)
{
    /* Contact forces turn a spinning body with an error of first order in dt: 6e-3 at 0.1 ms. */
    const double dt = 1e-5;

    /* so little friction that the top keeps sliding, no spin torque, and far from upright */
    truth t = top(TB_SCHEME_STEWART_TRINKLE, TB_CONTACT_COULOMB, 0.03, SPIN, 1, dt);
    tb_body_motion m = truth_motion(&t, "top");
    const double first = jellett(&m);
    double worst = 0, change = 0;
    const double start = uprightness(&m);
    for (int i = 0; i < (int)(3 / dt); i++) {
        truth_run(&t, 1);
        m = truth_motion(&t, "top");
        worst = fmax(worst, fabs(jellett(&m) / first - 1));
        change = fmax(change, fabs(uprightness(&m) - start));
    }
    ck_assert_msg(change > 0.2, "the top hardly turned over: cos changed by %g", change);
    TRUTH_CHECK("Tippe Top sliding: relative change of Jellett's integral", worst, 1e-3);
    truth_end(&t);
}
END_TEST

TEST_MAIN(spinning_top_stands_up_on_its_stem, top_without_spin_or_friction_stays_down,
          jellett_integral_stays)
