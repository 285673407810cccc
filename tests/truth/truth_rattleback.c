/* A rattleback, spun in one sense, rattles, stops and turns round; spun in the other it does not.
 *
 * Source: Kane and Levinson, Realistic mathematical modeling of the rattleback, Int. J. Non-Linear
 * Mechanics 17 (1982) 175, with their numbers: an ellipsoid of semi-axes 0.2, 0.03, 0.02 m, the
 * centre of mass 0.01 m below its centre, mass 1 kg, central inertia A = 0.0002, B = 0.0016, C =
 * 0.0017, D = -0.00002 kg m^2, tilted by 0.5 deg about both horizontal axes, spun at 5 rad/s. It
 * rolls without slipping: friction is ample here.
 *
 * The reference is their model, integrated here by Runge and Kutta's method: r from the centre of
 * mass to the contact point moves within the body as the vertical n does, n' = n x w, and
 * v = r x w.
 *
 * The fast rocking (up to 107 rad/s) that feeds on the spin is damped by the step, by the order of
 * w^2 dt, because the contact's velocity vanishes at the end of a step in the directions of its
 * middle. So the step is short, and the reversal still comes a little early. */
#include "common_mechanism.h"

#define MASS    1.0
#define LOWER   0.01 /* m, centre of mass below the ellipsoid's centre */
#define DT      2e-5
#define SECONDS 6

static const double AXES[3] = {0.2, 0.03, 0.02};
static const double INERTIA[9] = {0.0002, -0.00002, 0, -0.00002, 0.0016, 0, 0, 0, 0.0017};

/* ---- reference: numbers are the orientation (4) and the angular velocity in body axes (3) ---- */

static void multiply(const double a[9], const double x[3], double y[3])
{
    for (int i = 0; i < 3; i++) y[i] = reference_dot(a + 3 * i, x);
}

/* contact point from the centre of mass for the vertical n (body axes), and its rate for n' */
static void contact_point(const double n[3], const double rate_n[3], double r[3], double rate[3])
{
    /* r = -A^2 n / sqrt(n A^2 n) */
    double s = 0, ds = 0;
    for (int k = 0; k < 3; k++) {
        s += AXES[k] * AXES[k] * n[k] * n[k];
        ds += AXES[k] * AXES[k] * n[k] * rate_n[k];
    }
    const double root = sqrt(s);
    for (int k = 0; k < 3; k++) {
        const double a2 = AXES[k] * AXES[k];
        r[k] = -a2 * n[k] / root;
        rate[k] = -a2 * rate_n[k] / root + a2 * n[k] * ds / (root * s);
    }
    r[2] += LOWER;
}

/* The contact force is F = m (v' + g n); moments about the centre of mass, I w' + w x I w = r x F,
 * with the velocity of the centre of mass v = r x w and v' = r' x w + r x w' + w x (r x w), all in
 * body axes. */
static void rolling_rate(const double *x, double *rate, const void *context)
{
    (void)context;
    const double *q = x, *w = x + 4;
    double n[3], rate_n[3], r[3], rate_r[3], momentum[3], known[3], a[3], b[3], right[3];
    reference_turn(q, w, rate);
    reference_unrotate(q, (const double[3]){0, 0, 1}, n);
    reference_cross(n, w, rate_n);
    contact_point(n, rate_n, r, rate_r);

    reference_cross(rate_r, w, known);
    reference_cross(r, w, a);
    reference_cross(w, a, b);
    for (int k = 0; k < 3; k++) known[k] += b[k] + GRAVITY * n[k];
    reference_cross(r, known, right);
    multiply(INERTIA, w, momentum);
    reference_cross(w, momentum, a);
    for (int k = 0; k < 3; k++) right[k] = MASS * right[k] - a[k];

    /* -m r x (r x w') = m (r.r 1 - r r') w' */
    double matrix[9];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            matrix[3 * i + j] =
                INERTIA[3 * i + j] + MASS * ((i == j) * reference_dot(r, r) - r[i] * r[j]);
    reference_solve(matrix, right, 3);
    memcpy(rate + 4, right, sizeof right);
}

/* 0.5 deg about x, then about y */
static void tilted(double q[4])
{
    const double half = 0.25 * acos(-1) / 180, c = cos(half), s = sin(half);
    const double tilt[4] = {c * c, s * c, c * s, -s * s}; /* (c, 0, s, 0) (c, s, 0, 0) */
    memcpy(q, tilt, sizeof tilt);
}

/* ---- libtribo ---- */

static truth rattleback(double spin)
{
    truth t = truth_begin(GRAVITY, DT);
    t.options.scheme = TB_SCHEME_MOREAU;
    tb_error error;
    truth_plane(&t, 0, 0, 1, truth_surface(2, 0));
    tb_handle body;
    tb_body_def def = tb_body_defaults();
    def.name = "stone";
    def.has_inertia = true;
    def.mass = MASS;
    def.inertia[0] = INERTIA[0], def.inertia[1] = INERTIA[4], def.inertia[2] = INERTIA[8];
    def.inertia[3] = INERTIA[1];
    TEST_OK(tb_scene_add_body(t.scene, &def, &body, &error), &error);
    mechanism_joint(&t, "free", body, TB_JOINT_FREE, NULL, NULL);
    tb_shape_def shape = tb_shape_defaults();
    shape.body = body;
    shape.type = TB_SHAPE_ELLIPSOID;
    memcpy(shape.size, AXES, sizeof AXES);
    shape.position[2] = LOWER;
    shape.surface = truth_surface(2, 0);
    TEST_OK(tb_scene_add_shape(t.scene, &shape, NULL, &error), &error);
    truth_start(&t);

    double q[4], n[3], r[3], rate[3], w[3] = {0, 0, spin}, v[3];
    tilted(q);
    reference_unrotate(q, (const double[3]){0, 0, 1}, n);
    contact_point(n, w, r, rate);
    const double p[3] = {0, 0, -reference_dot(r, n) - 1e-9};
    reference_cross(r, w, rate);
    reference_rotate(q, rate, v);
    truth_set_pose(&t, "stone", p, q);
    truth_set_velocity(&t, "stone", v, w);
    return t;
}

typedef struct outcome {
    double reverses_at; /* s; infinite: never */
    double last_spin;   /* rad/s, about the vertical */
} outcome;

/* the spin `now` at `time`, a step after the last */
static void note_spin(outcome *o, double now, double time, double step)
{
    const double before = o->last_spin;
    if (before * now <= 0 && !isfinite(o->reverses_at))
        o->reverses_at = time - step * now / (now - before);
    o->last_spin = now;
}

static outcome reference(double spin)
{
    outcome o = {INFINITY, spin};
    double x[7] = {0}, w[3];
    tilted(x);
    x[6] = spin;
    for (int i = 1; i <= (int)(SECONDS / DT); i += 4) {
        reference_run(rolling_rate, NULL, 7, x, 4 * DT, 1);
        reference_rotate(x, x + 4, w);
        note_spin(&o, w[2], (i + 3) * DT, 4 * DT);
    }
    return o;
}

/* gain: largest rise of energy above its lowest before, of the first; every contact must stick */
static outcome simulate(double spin, double *gain)
{
    truth t = rattleback(spin);
    outcome o = {INFINITY, spin};
    const double first = tb_state_energy(t.state);
    double lowest = first;
    *gain = 0;
    for (int i = 1; i <= (int)(SECONDS / DT); i++) {
        truth_run(&t, 1);
        note_spin(&o, truth_motion(&t, "stone").angular_velocity[2], i * DT, DT);
        tb_contact_info c;
        TEST_OK(tb_state_contact(t.state, 0, &c), NULL);
        ck_assert_int_eq(c.status, TB_CONTACT_STICK);
        if (i % 10) continue;
        const double energy = tb_state_energy(t.state);
        *gain = fmax(*gain, (energy - lowest) / first);
        lowest = fmin(lowest, energy);
    }
    truth_end(&t);
    return o;
}

START_TEST(stone_turns_round_from_one_sense)
{
    double gain;
    const outcome o = simulate(-5, &gain), r = reference(-5);
    TRUTH_CHECK("rattleback: relative error of the time of reversal",
                fabs(o.reverses_at / r.reverses_at - 1), 0.05);
    TRUTH_CHECK("rattleback: minus the spin at the end, of 5 rad/s", -o.last_spin / 5, -0.5);
    TRUTH_CHECK("rattleback: energy gained, of the first", gain, 1e-6);
}
END_TEST

START_TEST(stone_spins_on_in_the_other)
{
    double gain;
    const outcome o = simulate(5, &gain), r = reference(5);
    ck_assert(!isfinite(r.reverses_at));
    TRUTH_CHECK("rattleback, other sense: reversals in 6 s", isfinite(o.reverses_at), 0);
    TRUTH_CHECK("rattleback, other sense: relative error of the last spin",
                fabs(o.last_spin / r.last_spin - 1), 0.05);
    TRUTH_CHECK("rattleback, other sense: energy gained, of the first", gain, 1e-6);
}
END_TEST

TEST_MAIN(stone_turns_round_from_one_sense, stone_spins_on_in_the_other)
