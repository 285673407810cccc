/* The grasp wrench space: epsilon and volume where they are known, and against brute force.
 *
 * Sources: C. Ferrari, J. Canny, Planning optimal grasps, ICRA 1992; closed forms stated at each
 * case. */
#include "common_truth.h"

static const double PI = 3.14159265358979323846;

/* deterministic numbers in (-1, 1) */
static double next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 4503599627370496.0 - 1;
}

static void space(const double *wrenches, int32_t count, double *epsilon, double *volume)
{
    tb_error error = {0};
    TEST_OK(tb_wrench_space(wrenches, count, epsilon, volume, &error), &error);
}

/* The wrenches of a point contact with friction: `edges` on the rim of its cone, torques about zero
 * over `radius`. Returns how many were written. */
static int32_t cone(double *w, const double p[3], const double n[3], double mu, int edges,
                    double radius)
{
    /* two tangents */
    double t[2][3];
    const int least = fabs(n[0]) < fabs(n[1]) ? (fabs(n[0]) < fabs(n[2]) ? 0 : 2)
                                              : (fabs(n[1]) < fabs(n[2]) ? 1 : 2);
    double axis[3] = {0};
    axis[least] = 1;
    for (int k = 0; k < 3; k++)
        t[0][k] = n[(k + 1) % 3] * axis[(k + 2) % 3] - n[(k + 2) % 3] * axis[(k + 1) % 3];
    const double length = sqrt(t[0][0] * t[0][0] + t[0][1] * t[0][1] + t[0][2] * t[0][2]);
    for (int k = 0; k < 3; k++) t[0][k] /= length;
    for (int k = 0; k < 3; k++)
        t[1][k] = n[(k + 1) % 3] * t[0][(k + 2) % 3] - n[(k + 2) % 3] * t[0][(k + 1) % 3];
    for (int e = 0; e < edges; e++) {
        const double a = 2 * PI * e / edges;
        double f[3];
        for (int k = 0; k < 3; k++) f[k] = n[k] + mu * (cos(a) * t[0][k] + sin(a) * t[1][k]);
        for (int k = 0; k < 3; k++) {
            w[6 * e + k] = f[k];
            w[6 * e + 3 + k] =
                (p[(k + 1) % 3] * f[(k + 2) % 3] - p[(k + 2) % 3] * f[(k + 1) % 3]) / radius;
        }
    }
    return edges;
}

/* The hull of +-e_i: the ball of largest radius has 1 / sqrt 6, the volume is 2^6 / 6!. */
START_TEST(the_cross_polytope)
{
    double w[12 * 6] = {0}, epsilon, volume;
    for (int i = 0; i < 12; i++) w[6 * i + i / 2] = i % 2 ? 1 : -1;
    space(w, 12, &epsilon, &volume);
    TRUTH_CHECK("cross-polytope: epsilon", fabs(epsilon - 1 / sqrt(6)), 1e-12);
    TRUTH_CHECK("cross-polytope: volume", fabs(volume - 64.0 / 720), 1e-12);
}
END_TEST

/* The cube [-1, 1]^6 with points inside, and shifted so that zero is nearer to one face. */
START_TEST(the_cube)
{
    double w[70 * 6], epsilon, volume;
    for (int i = 0; i < 64; i++)
        for (int k = 0; k < 6; k++) w[6 * i + k] = i >> k & 1 ? 1 : -1;
    for (int i = 64; i < 70; i++)
        for (int k = 0; k < 6; k++) w[6 * i + k] = 0.1 * (i - 66) * (k - 2.5) / 2.5;
    space(w, 70, &epsilon, &volume);
    TRUTH_CHECK("cube: epsilon", fabs(epsilon - 1), 1e-12);
    TRUTH_CHECK("cube: volume", fabs(volume - 64), 1e-10);
    for (int i = 0; i < 70; i++) w[6 * i + 2] += 0.7;
    space(w, 70, &epsilon, &volume);
    TRUTH_CHECK("shifted cube: epsilon", fabs(epsilon - 0.3), 1e-12);
    for (int i = 0; i < 70; i++) w[6 * i + 2] += 0.7;
    space(w, 70, &epsilon, &volume);
    ck_assert(epsilon == 0); /* zero is outside */
    TRUTH_CHECK("cube without zero: volume", fabs(volume - 64), 1e-10);
}
END_TEST

/* Flat sets: nothing, one point, two hard fingers (no torque about the line between them). */
START_TEST(flat_sets_have_no_ball)
{
    double w[64 * 6], epsilon = 1, volume = 1;
    space(NULL, 0, &epsilon, &volume);
    ck_assert(epsilon == 0 && volume == 0);
    const double p[2][3] = {{0, 1, 0}, {0, -1, 0}}, n[2][3] = {{0, -1, 0}, {0, 1, 0}};
    int32_t count = cone(w, p[0], n[0], 0.8, 16, 1);
    space(w, count, &epsilon, &volume);
    ck_assert(epsilon == 0 && volume == 0);
    count += cone(w + 6 * count, p[1], n[1], 0.8, 16, 1);
    space(w, count, &epsilon, &volume);
    TRUTH_CHECK("two hard fingers: epsilon", epsilon, 0);
    TRUTH_CHECK("two hard fingers: volume", volume, 0);

    /* nearly flat: rounding of a turned frame must not make a volume */
    for (int32_t i = 0; i < count; i++) {
        const double c = cos(0.3), s = sin(0.3), x = w[6 * i], y = w[6 * i + 1];
        w[6 * i] = c * x - s * y;
        w[6 * i + 1] = s * x + c * y;
    }
    space(w, count, &epsilon, &volume);
    TRUTH_CHECK("two hard fingers, turned: epsilon", epsilon, 0);
}
END_TEST

/* Two soft fingers: torque about the line between them is at most s (over the radius), each. The
 * space is the product-like hull of both; a force along the line and the torques about it are
 * bounded in closed form: along the torque axis the largest wrench is s. */
START_TEST(two_soft_fingers_resist_the_torque_that_hard_ones_do_not)
{
    double w[64 * 6], epsilon, volume;
    const double p[2][3] = {{0, 1, 0}, {0, -1, 0}}, n[2][3] = {{0, -1, 0}, {0, 1, 0}};
    const double spin = 0.05;
    int32_t count = cone(w, p[0], n[0], 0.8, 16, 1);
    count += cone(w + 6 * count, p[1], n[1], 0.8, 16, 1);
    for (int i = 0; i < 4; i++, count++) {
        memset(w + 6 * count, 0, 6 * sizeof *w);
        w[6 * count + 1] = i / 2 ? 1 : -1;
        w[6 * count + 4] = i % 2 ? spin : -spin;
    }
    space(w, count, &epsilon, &volume);
    /* the nearest facets lie against the weak torque: epsilon is just below spin */
    ck_assert(epsilon > 0 && volume > 0);
    TRUTH_CHECK("two soft fingers: epsilon below the spin limit", epsilon - spin, 0);
    TRUTH_CHECK("two soft fingers: epsilon, relative", 1 - epsilon / spin, 0.02);
}
END_TEST

/* ---- brute force ---- */

enum { MOST_FACETS = 20000 };

/* A facet: n . x <= offset holds for all points. */
typedef struct facet {
    double n[6], offset;
} facet;

/* The hyperplane through six points, unit normal; false if they do not span one. */
static bool hyperplane(const double *w, const int32_t points[6], facet *f)
{
    double a[5][6];
    int columns[6] = {0, 1, 2, 3, 4, 5};
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 6; k++) a[i][k] = w[6 * points[i + 1] + k] - w[6 * points[0] + k];
    /* Gauss with full pivoting: the last column stays free */
    for (int i = 0; i < 5; i++) {
        int row = i, column = i;
        for (int r = i; r < 5; r++)
            for (int c = i; c < 6; c++)
                if (fabs(a[r][columns[c]]) > fabs(a[row][columns[column]])) {
                    row = r;
                    column = c;
                }
        const int swap = columns[i];
        columns[i] = columns[column];
        columns[column] = swap;
        for (int k = 0; k < 6; k++) {
            const double x = a[i][k];
            a[i][k] = a[row][k];
            a[row][k] = x;
        }
        if (!(fabs(a[i][columns[i]]) > 1e-9)) return false;
        for (int r = i + 1; r < 5; r++) {
            const double factor = a[r][columns[i]] / a[i][columns[i]];
            for (int k = 0; k < 6; k++) a[r][k] -= factor * a[i][k];
        }
    }
    f->n[columns[5]] = 1;
    for (int i = 4; i >= 0; i--) {
        double sum = 0;
        for (int c = i + 1; c < 6; c++) sum += a[i][columns[c]] * f->n[columns[c]];
        f->n[columns[i]] = -sum / a[i][columns[i]];
    }
    double length = 0;
    for (int k = 0; k < 6; k++) length += f->n[k] * f->n[k];
    f->offset = 0;
    for (int k = 0; k < 6; k++) {
        f->n[k] /= sqrt(length);
        f->offset += f->n[k] * w[6 * points[0] + k];
    }
    return true;
}

/* Turns the hyperplane outwards if all points lie on one side of it: then it is a facet. */
static bool is_facet(const double *w, int32_t count, facet *f)
{
    double lower = 0, upper = 0;
    for (int32_t i = 0; i < count; i++) {
        double x = -f->offset;
        for (int k = 0; k < 6; k++) x += f->n[k] * w[6 * i + k];
        lower = fmin(lower, x);
        upper = fmax(upper, x);
        if (lower < -1e-9 && upper > 1e-9) return false;
    }
    if (upper <= 1e-9) return true;
    for (int k = 0; k < 6; k++) f->n[k] = -f->n[k];
    f->offset = -f->offset;
    return true;
}

/* All facets, by trying every six points. */
static int32_t all_facets(const double *w, int32_t count, facet *facets)
{
    int32_t n = 0, p[6] = {0, 1, 2, 3, 4, 5};
    for (;;) {
        facet f;
        if (hyperplane(w, p, &f) && is_facet(w, count, &f)) {
            ck_assert_int_lt(n, MOST_FACETS);
            facets[n++] = f;
        }
        int i = 5;
        while (i >= 0 && p[i] == count - 6 + i) i--;
        if (i < 0) return n;
        p[i]++;
        for (int k = i + 1; k < 6; k++) p[k] = p[k - 1] + 1;
    }
}

/* Volume by points drawn in the box around the hull. */
static double drawn_volume(const double *w, int32_t count, const facet *facets, int32_t number,
                           int32_t draws)
{
    double lower[6], upper[6], box = 1;
    uint64_t seed = 5;
    int32_t inside = 0;
    for (int k = 0; k < 6; k++) {
        lower[k] = upper[k] = w[k];
        for (int32_t i = 0; i < count; i++) {
            lower[k] = fmin(lower[k], w[6 * i + k]);
            upper[k] = fmax(upper[k], w[6 * i + k]);
        }
        box *= upper[k] - lower[k];
    }
    for (int32_t draw = 0; draw < draws; draw++) {
        double x[6];
        for (int k = 0; k < 6; k++) x[k] = lower[k] + (upper[k] - lower[k]) * (next(&seed) + 1) / 2;
        bool in = true;
        for (int32_t f = 0; f < number && in; f++) {
            double side = -facets[f].offset;
            for (int k = 0; k < 6; k++) side += facets[f].n[k] * x[k];
            in = side <= 0;
        }
        inside += in;
    }
    return box * inside / draws;
}

/* Four fingers on a sphere at the corners of a tetrahedron, then at random near them: epsilon is
 * the smallest offset of all facets that any six points span; volume against drawn points. */
START_TEST(epsilon_and_volume_agree_with_brute_force)
{
    static const double CORNERS[4][3] = {{1, 1, 1}, {1, -1, -1}, {-1, 1, -1}, {-1, -1, 1}};
    static facet facets[MOST_FACETS];
    uint64_t seed = 7;
    for (int which = 0; which < 4; which++) {
        double w[4 * 6 * 6], epsilon, volume, brute = INFINITY;
        int32_t count = 0;
        for (int i = 0; i < 4; i++) {
            double p[3], n[3], length = 0;
            for (int k = 0; k < 3; k++) p[k] = CORNERS[i][k] + (which > 0 ? 0.5 * next(&seed) : 0);
            for (int k = 0; k < 3; k++) length += p[k] * p[k];
            for (int k = 0; k < 3; k++) p[k] /= sqrt(length);
            for (int k = 0; k < 3; k++) n[k] = -p[k];
            count += cone(w + 6 * count, p, n, 0.6, 5, 1);
        }
        space(w, count, &epsilon, &volume);
        const int32_t number = all_facets(w, count, facets);
        for (int32_t f = 0; f < number; f++) brute = fmin(brute, facets[f].offset);
        ck_assert(epsilon > 0);
        char name[64];
        snprintf(name, sizeof name, "fingers on a sphere %d: epsilon, relative", which);
        TRUTH_CHECK(name, fabs(brute / epsilon - 1), 1e-9);
        snprintf(name, sizeof name, "fingers on a sphere %d: volume, relative", which);
        const double drawn = drawn_volume(w, count, facets, number, 400000);
        TRUTH_CHECK(name, fabs(drawn / volume - 1), 0.05);
    }
}
END_TEST

/* Volume scales with the sixth power, and adding a point outside adds its pyramid: the hull of a
 * cube and a point at height h over a facet has 64 + 32 h / 6. */
START_TEST(volumes_add_up)
{
    double w[65 * 6], epsilon, volume;
    for (int i = 0; i < 64; i++)
        for (int k = 0; k < 6; k++) w[6 * i + k] = i >> k & 1 ? 1 : -1;
    for (int k = 0; k < 6; k++) w[6 * 64 + k] = k == 3 ? 1.9 : 0.2 * (k - 2);
    space(w, 65, &epsilon, &volume);
    TRUTH_CHECK("cube with a pyramid: volume", fabs(volume - 64 - 32 * 0.9 / 6), 1e-10);
    for (int i = 0; i < 65 * 6; i++) w[i] *= 0.01;
    space(w, 65, &epsilon, &volume);
    TRUTH_CHECK("cube with a pyramid, small: volume, relative",
                fabs(volume * 1e12 / (64 + 32 * 0.9 / 6) - 1), 1e-9);
}
END_TEST

TEST_MAIN(the_cross_polytope, the_cube, flat_sets_have_no_ball,
          two_soft_fingers_resist_the_torque_that_hard_ones_do_not,
          epsilon_and_volume_agree_with_brute_force, volumes_add_up)
