/* Solves a contact problem of up to 36 dofs by one warp: semismooth Newton on the exact cone inside
 * a proximal point method, with sweeps where it fails.
 *
 * The method is that of solve/newton/newton.c, with its line search, its merit and its rules for
 * epsilon: Newton on lambda - prox_C(p - xi(lambda) / w), whose step follows from a system of the
 * dofs,
 *
 *     (I + Y' K Y) ds = Y' (prox_C(p - xi / w) - lambda),      K = prox_C' / w,
 *     dlambda = prox_C(p - xi / w) - lambda - K Y ds,
 *
 * and p moves on when the merit has fallen to a tenth. Slopes of the projection are those of
 * solve/newton/law_slope.h for disks.
 *
 * A lane holds dofs in the system (wide_system.h), in sums over all items and in sweeps, and whole
 * items elsewhere. So a step of Newton's is one pass over items, which expands the step, projects at
 * its end and leaves K and the lack for the next one, beside the system. Matrix and step are in working
 * precision, impulses, velocities and residuals in double, so that no round goes on from rounded
 * velocities.
 *
 * The start is judged first. Later the residual of the iterate, whose velocities follow from the
 * steps, tells when a judgement is due, for which impulses are brought into their laws' sets and
 * velocities are summed anew. */
#ifndef TB_GPU_WIDE_SOLVE_H
#define TB_GPU_WIDE_SOLVE_H

#include "gpu/batch/wide/wide_system.h"
#include "solve/newton/law_slope.h"

/* As in solve/newton/newton.c. */
static const tb_real WIDE_FIRST_EPSILON = TB_R(0.1);
static const tb_real WIDE_LEAST_EPSILON = TB_R(1e-4);
static const tb_real WIDE_SHRINK = TB_R(0.1);
static const tb_real WIDE_GROWTH = TB_R(4), WIDE_LARGEST_EPSILON = 10;
static const double WIDE_CONTRACTION = 0.1, WIDE_DECREASE = 1e-4;
/* A start whose residual is larger is swept first. */
static const double WIDE_COLD = 0.05;
/* An iterate whose residual is at most so many tolerances is judged. */
static const double WIDE_NEAR = 2;
/* Steps of Newton's and sweeps, after which a solve is left to the general solvers. */
enum { WIDE_STEPS = 100, WIDE_SWEEPS = 400 };
enum { WIDE_STEPS_OF_ROUND = 12, WIDE_FEW_STEPS = 8, WIDE_SHORTENINGS = 8 };
/* Sweeps of the first burst and of the longest. A burst follows one that leaves at most WIDE_GAIN
 * of the residual a sweep. */
enum { WIDE_BURST = 2, WIDE_LONGEST_BURST = 8 };
static const double WIDE_GAIN = 0.6;
/* A round stalls that leaves more than WIDE_STALLED of the residual. Its way then goes on by at most
 * WIDE_FAR_WAY of its lengths, WIDE_EXTENSIONS times a step, and no further than the residual
 * stays within WIDE_SAME of itself. */
static const double WIDE_STALLED = 0.3, WIDE_FAR_WAY = 1e3, WIDE_SAME = 1.1;
enum { WIDE_EXTENSIONS = 20 };
enum { WIDE_FAILURES = 2 /* in a row, before sweeps */ };

/* ---- one item ---- */

/* An item's numbers in a lane; rows that it has not are zero. */
typedef struct wide_own {
    double lambda[WIDE_ROWS], x[WIDE_ROWS];
    int32_t row, rows; /* WIDE_ROWS: its law is that of spin */
    tb_real mu;
    double lower, upper;
} wide_own;

WIDE_FN wide_own wide_item_of(const wide_memory *m, int32_t item)
{
    return TB_VALUE(wide_own){.row = m->row[item],
                              .rows = m->rows[item],
                              .mu = m->mu[item],
                              .lower = (double)m->lower[item],
                              .upper = (double)m->upper[item]};
}

TB_FN tb_block wide_spin_law(const wide_own *o)
{
    return TB_VALUE(tb_block){.law = TB_LAW_SPIN, .rows = WIDE_ROWS, .mu = o->mu};
}

/* The square of the natural map of a contact with spin. */
TB_CALLED double wide_natural_of_spin(const wide_own *o)
{
    const tb_block law = wide_spin_law(o);
    return tb_block_natural(&law, o->lambda, o->x);
}

WIDE_FN double wide_square_of_natural(const wide_own *o)
{
    if (o->rows == WIDE_ROWS) {
        const wide_own own = *o;
        return wide_natural_of_spin(&own);
    }
    return warp_natural_of(o->lambda, o->x, (double)o->mu, o->lower, o->upper);
}

/* The nearest impulses to z of a contact with spin, in place, and the slope d. Numbers that the
 * projection in working precision has not moved keep their double. */
TB_CALLED void wide_project_spin(const wide_own *o, double z[WIDE_ROWS], tb_real d[WIDE_SLOPES])
{
    const tb_block law = wide_spin_law(o);
    tb_real from[WIDE_ROWS], at[WIDE_ROWS], lambda[WIDE_ROWS];
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        from[r] = TB_R(z[r]);
        lambda[r] = TB_R(o->lambda[r]);
    }
    (void)tb_law_slope(&law, from, lambda, at, d);
    for (int32_t r = 0; r < WIDE_ROWS; r++)
        if (at[r] != from[r]) z[r] = (double)at[r];
}

/* The nearest impulses to z of an item without spin, in place. Returns the factor of the tangents,
 * and in *inverse one over their length before. */
WIDE_FN double wide_project_disk(const wide_own *o, double z[WIDE_ROWS], double *inverse)
{
    z[0] = fmin(fmax(z[0], o->lower), o->upper);
    const double radius = (double)o->mu * z[0], length2 = z[1] * z[1] + z[2] * z[2];
    *inverse = warp_inverse_root(length2);
    const double f = length2 > radius * radius ? radius * *inverse : 1;
    z[1] *= f;
    z[2] *= f;
    return f;
}

/* The same with the slope d of the projection, 3 x 3. */
WIDE_FN void wide_project_with_slope(const wide_own *o, double z[WIDE_ROWS], tb_real d[WIDE_SLOPES])
{
    const bool inside = z[0] > o->lower && z[0] < o->upper;
    double inverse;
    const double t1 = z[1], t2 = z[2], f = wide_project_disk(o, z, &inverse);
    for (int i = 1; i < 9; i++) d[i] = 0;
    d[0] = inside ? TB_R(1) : TB_R(0);
    const tb_real radius = o->mu * TB_R(z[0]);
    if (!(radius > 0)) return;
    d[4] = d[8] = TB_R(f);
    if (!(f < 1)) return;
    /* on the rim, with the iterate's own direction on the left while it lies within */
    const tb_real n1 = TB_R(t1 * inverse), n2 = TB_R(t2 * inverse), over = 1 / radius;
    tb_real a1 = TB_R(o->lambda[1]) * over, a2 = TB_R(o->lambda[2]) * over;
    const tb_real extent = a1 * a1 + a2 * a2;
    if (o->rows < 3 || !(extent <= TB_REAL_MAX)) {
        a1 = n1;
        a2 = n2;
    } else if (extent > 1) {
        const tb_real scale = tb_rsqrt(extent);
        a1 *= scale;
        a2 *= scale;
    }
    d[3] = o->mu * n1 * d[0];
    d[6] = o->mu * n2 * d[0];
    d[4] -= TB_R(f) * a1 * n1;
    d[5] = -TB_R(f) * a1 * n2;
    d[7] = -TB_R(f) * a2 * n1;
    d[8] -= TB_R(f) * a2 * n2;
}

/* The nearest impulses of the item's law to z, in place. */
WIDE_FN void wide_project(const wide_own *o, double z[WIDE_ROWS])
{
    if (o->rows == WIDE_ROWS) {
        const wide_own own = *o;
        double x[WIDE_ROWS];
        tb_real d[WIDE_SLOPES];
        for (int32_t r = 0; r < WIDE_ROWS; r++) x[r] = z[r];
        wide_project_spin(&own, x, d);
        for (int32_t r = 0; r < WIDE_ROWS; r++) z[r] = x[r];
        return;
    }
    double inverse;
    (void)wide_project_disk(o, z, &inverse);
}

/* ---- judging ---- */

/* s = Y' lambda: a lane sums a dof over all items. */
TB_CALLED void wide_whiten(const wide_solve *w, const double *lambda)
{
    wide_memory *m = w->m;
    tb_team_sync(); /* all have read the last s */
    TB_EACH (dof, w->dofs) {
        double sum = 0;
        TB_UNROLLED
        for (int32_t item = 0; item < w->items; item++) {
            const uint32_t columns = m->columns[item];
            if (!wide_has_group(columns, dof / WIDE_GROUP)) continue;
            const int32_t row = m->row[item], rows = m->rows[item];
            for (int32_t r = 0; r < WIDE_ROWS; r++)
                if (r < rows) sum += lambda[row + r] * (double)wide_value(m, columns, r, dof);
        }
        m->s[dof] = sum;
    }
    tb_team_sync();
}

/* Velocities of an item from s. */
TB_STATIC void wide_find_velocities(const wide_memory *m, int32_t item, wide_own *o)
{
    const uint32_t columns = m->columns[item];
    const int32_t stride = tb_count_bits(wide_groups(columns));
    const warp_quad *y = m->quads + wide_quad(columns, 0);
    double x[WIDE_ROWS] = {0, 0, 0, 0};
    TB_ROLLED
    for (uint32_t left = wide_groups(columns); left != 0; left &= left - 1, y++) {
        const double *s = m->s + WIDE_GROUP * tb_count_bits((left & (0 - left)) - 1);
        WIDE_FULL
        for (int32_t r = 0; r < WIDE_ROWS; r++) {
            if (r >= o->rows) continue;
            for (int32_t i = 0; i < WIDE_GROUP; i++) x[r] += (double)y[r * stride].v[i] * s[i];
        }
    }
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        o->x[r] = 0;
        if (r < o->rows)
            o->x[r] =
                x[r] + (double)m->c[o->row + r] + (double)m->compliance[o->row + r] * o->lambda[r];
    }
}

WIDE_FN void wide_take_rows(const wide_own *o, const double *from, double to[WIDE_ROWS])
{
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) to[r] = r < o->rows ? from[o->row + r] : 0;
}

WIDE_FN void wide_put_rows(const wide_own *o, const double from[WIDE_ROWS], double *to)
{
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++)
        if (r < o->rows) to[o->row + r] = from[r];
}

/* An impulse as a step keeps it. */
TB_FN double wide_kept(const wide_solve *w, double lambda)
{
    const tb_real coarse = TB_R(lambda);
    return w->has_fine ? (double)coarse + (double)TB_R(lambda - (double)coarse) : (double)coarse;
}

TB_STATIC double wide_root_of_sum(double own)
{
    const double sum = tb_team_total(own);
    return sum <= DBL_MAX ? sqrt(sum) : DBL_MAX;
}

/* Residual of some impulses, by the natural map of all items. */
TB_STATIC double wide_residual_of(const wide_solve *w, const double *impulses)
{
    wide_memory *m = w->m;
    double sum = 0;
    wide_whiten(w, impulses);
    TB_EACH (item, w->items) {
        wide_own o = wide_item_of(m, item);
        wide_take_rows(&o, impulses, o.lambda);
        wide_find_velocities(m, item, &o);
        sum += wide_square_of_natural(&o);
    }
    return wide_root_of_sum(sum) * w->inverse_norm;
}

/* Judges the iterate, brought into the laws' sets. */
TB_CALLED void wide_judge(wide_solve *w)
{
    wide_memory *m = w->m;
    TB_EACH (item, w->items) {
        wide_own o = wide_item_of(m, item);
        double z[WIDE_ROWS];
        wide_take_rows(&o, m->lambda, z);
        wide_take_rows(&o, m->lambda, o.lambda);
        wide_project(&o, z);
        WIDE_FULL
        for (int32_t r = 0; r < WIDE_ROWS; r++) z[r] = wide_kept(w, z[r]);
        wide_put_rows(&o, z, m->answer);
    }
    tb_team_sync();
    w->now.residual = wide_residual_of(w, m->answer);
}

/* The answer as the iterate. */
TB_STATIC void wide_take_answer(const wide_solve *w)
{
    TB_EACH (r, w->rows) w->m->lambda[r] = w->m->answer[r];
    tb_team_sync();
}

/* ---- sweeps ---- */

/* Numbers of an item that all its sweeps need, in the place of its K: 1 / G and G between the normal row
 * and the others, and in the place of the lack the rate along the others, by the trace of G there. */
TB_STATIC void wide_prepare_sweeps(const wide_solve *w)
{
    wide_memory *m = w->m;
    TB_EACH (item, w->items) {
        const uint32_t columns = m->columns[item];
        const int32_t row = m->row[item], rows = m->rows[item];
        const int32_t stride = tb_count_bits(wide_groups(columns));
        const warp_quad *y = m->quads + wide_quad(columns, 0);
        tb_real g[WIDE_ROWS] = {0, 0, 0, 0}, trace = 0;
        TB_ROLLED
        for (int32_t q = 0; q < stride; q++) {
            const warp_quad first = y[q];
            WIDE_FULL
            for (int32_t r = 0; r < WIDE_ROWS; r++) {
                if (r >= rows) continue;
                const warp_quad other = y[r * stride + q];
                for (int32_t i = 0; i < WIDE_GROUP; i++) {
                    g[r] += first.v[i] * other.v[i];
                    if (r > 0) trace += other.v[i] * other.v[i];
                }
            }
        }
        tb_real *to = wide_slope(m, item);
        const tb_real own = g[0] + m->compliance[row];
        to[0] = own > 0 ? 1 / own : TB_R(0);
        WIDE_FULL
        for (int32_t r = 1; r < WIDE_ROWS; r++)
            if (r < rows) to[r] = g[r];
        m->lack[row] = trace > 0 ? 1 / trace : TB_R(0);
    }
    tb_team_sync();
}

/* Impulses of an item after friction's set, in place. */
WIDE_FN void wide_sweep_friction(const wide_memory *m, int32_t item, int32_t rows,
                                 tb_real x[WIDE_ROWS])
{
    const tb_real radius = m->mu[item] * x[0];
    if (rows == WIDE_ROWS) {
        tb_real own[3] = {x[1], x[2], x[3]};
        tb_prox_ellipsoid(own, radius);
        for (int32_t i = 0; i < 3; i++) x[1 + i] = own[i];
        return;
    }
    const tb_real f = tb_prox_disk_factor(x[1] * x[1] + x[2] * x[2], radius);
    x[1] *= f;
    x[2] *= f;
}

/* One item: every lane knows its dofs' part of the rows. */
TB_STATIC void wide_sweep_item(const wide_solve *w, int32_t item, tb_real s[2])
{
    wide_memory *m = w->m;
    const uint32_t columns = m->columns[item];
    const int32_t row = m->row[item], rows = m->rows[item], dof = tb_team_lane();
    const bool wide = w->dofs > WIDE_LANES;
    tb_real y[2][WIDE_ROWS], u[WIDE_ROWS], x[WIDE_ROWS], before[WIDE_ROWS];
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        const bool is = r < rows;
        y[0][r] = is ? wide_value(m, columns, r, dof) : TB_R(0);
        y[1][r] = is && wide ? wide_value(m, columns, r, dof + WIDE_LANES) : TB_R(0);
        before[r] = is ? TB_R(m->answer[row + r]) : TB_R(0);
        u[r] = y[0][r] * s[0] + y[1][r] * s[1];
        for (int32_t step = WIDE_LANES / 2; is && step > 0; step /= 2)
            u[r] += tb_team_take_real(u[r], tb_team_lane() ^ step);
        u[r] += is ? m->c[row + r] + m->compliance[row + r] * before[r] : TB_R(0);
    }
    const tb_real *k = wide_slope(m, item);
    const tb_real rate = m->lack[row];
    x[0] = tb_clamp(before[0] - k[0] * u[0], m->lower[item], m->upper[item]);
    WIDE_FULL
    for (int32_t r = 1; r < WIDE_ROWS; r++) {
        x[r] = 0;
        if (r >= rows) continue;
        const tb_real own = rate / (1 + rate * m->compliance[row + r]);
        x[r] = before[r] - own * (u[r] + k[r] * (x[0] - before[0]));
    }
    if (rows > 1) wide_sweep_friction(m, item, rows, x);
    tb_team_sync(); /* all have read the impulses */
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        s[0] += y[0][r] * (x[r] - before[r]);
        s[1] += y[1][r] * (x[r] - before[r]);
        if (TB_LEADER && r < rows) m->answer[row + r] = (double)x[r];
    }
    tb_team_sync();
}

/* A burst of sweeps from the answer that was judged last, which the iterate becomes. */
TB_CALLED void wide_sweep(wide_solve *w, int32_t turns)
{
    wide_memory *m = w->m;
    wide_prepare_sweeps(w);
    const int32_t dof = tb_team_lane();
    tb_real s[2] = {TB_R(m->s[dof]),
                    dof + WIDE_LANES < w->dofs ? TB_R(m->s[dof + WIDE_LANES]) : TB_R(0)};
    TB_ROLLED
    for (int32_t turn = 0; turn < turns; turn++) {
        TB_ROLLED
        for (int32_t item = 0; item < w->items; item++) wide_sweep_item(w, item, s);
    }
    w->now.sweeps += turns;
    wide_take_answer(w);
    wide_judge(w);
    wide_take_answer(w);
}

/* ---- Newton's step ---- */

/* How a pass over the items comes to the point at which it looks. */
typedef enum wide_way {
    WIDE_AT_START, /* velocities from s, no step */
    WIDE_STEP,     /* a step follows from ds */
    WIDE_SHORTER   /* the step of the last pass, with another length */
} wide_way;

/* A step of the item's impulses and of its velocities from ds. */
TB_STATIC void wide_expand(wide_memory *m, int32_t item, const wide_own *o)
{
    const uint32_t columns = m->columns[item];
    const int32_t stride = tb_count_bits(wide_groups(columns));
    const warp_quad *y = m->quads + wide_quad(columns, 0);
    const tb_real *k = wide_slope(m, item);
    tb_real u[WIDE_ROWS] = {0, 0, 0, 0}, step[WIDE_ROWS];
    TB_ROLLED
    for (uint32_t left = wide_groups(columns); left != 0; left &= left - 1, y++) {
        const warp_quad ds = m->right[tb_count_bits((left & (0 - left)) - 1)];
        WIDE_FULL
        for (int32_t r = 0; r < WIDE_ROWS; r++) {
            if (r >= o->rows) continue;
            const warp_quad own = y[r * stride];
            for (int32_t i = 0; i < WIDE_GROUP; i++) u[r] += own.v[i] * ds.v[i];
        }
    }
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        step[r] = 0;
        WIDE_FULL
        for (int32_t j = 0; j < WIDE_ROWS; j++)
            if (r < o->rows && j < o->rows) step[r] -= k[r * o->rows + j] * u[j];
    }
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        if (r >= o->rows) continue;
        m->step[o->row + r] = m->lack[o->row + r] + step[r];
        m->change[o->row + r] = u[r] + m->compliance[o->row + r] * m->step[o->row + r];
    }
}

/* The item at the point that it looks at. */
TB_STATIC wide_own wide_go(const wide_solve *w, int32_t item, wide_way way, tb_real length)
{
    wide_memory *m = w->m;
    wide_own o = wide_item_of(m, item);
    wide_take_rows(&o, m->lambda, o.lambda);
    if (way == WIDE_AT_START) {
        wide_find_velocities(m, item, &o);
        wide_put_rows(&o, o.x, m->x);
        wide_put_rows(&o, o.lambda, m->p);
        return o;
    }
    if (way == WIDE_STEP) wide_expand(m, item, &o);
    wide_take_rows(&o, m->x, o.x);
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        if (r >= o.rows) continue;
        o.lambda[r] += (double)(length * m->step[o.row + r]);
        o.x[r] += (double)(length * m->change[o.row + r]);
    }
    return o;
}

/* wide_linearize of a contact with spin. */
TB_CALLED double wide_linearize_spin(const wide_solve *w, int32_t item, const wide_own *o)
{
    wide_memory *m = w->m;
    const tb_real weight = w->now.epsilon * m->weight[item];
    const tb_real rho = weight > 0 ? 1 / weight : TB_R(0);
    tb_real d[WIDE_SLOPES], *k = wide_slope(m, item);
    double z[WIDE_ROWS], sum = 0;
    for (int32_t r = 0; r < WIDE_ROWS; r++) z[r] = m->p[o->row + r] - (double)rho * o->x[r];
    wide_project_spin(o, z, d);
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        const tb_real lack = TB_R(z[r] - o->lambda[r]);
        const tb_real shrink = 1 / (1 + d[(WIDE_ROWS + 1) * r] * rho * m->compliance[o->row + r]);
        sum += (double)(weight * lack) * (double)(weight * lack);
        m->lack[o->row + r] = lack * shrink;
        for (int32_t j = 0; j < WIDE_ROWS; j++)
            k[WIDE_ROWS * r + j] = d[WIDE_ROWS * r + j] * rho * shrink;
    }
    return sum;
}

/* K and the lack of the item there. Returns the square of its w (lambda - prox_C(p - xi / w)), a
 * velocity. */
TB_STATIC double wide_linearize(const wide_solve *w, int32_t item, const wide_own *o)
{
    wide_memory *m = w->m;
    const tb_real weight = w->now.epsilon * m->weight[item];
    const tb_real rho = weight > 0 ? 1 / weight : TB_R(0);
    tb_real d[WIDE_SLOPES], *k = wide_slope(m, item);
    double z[WIDE_ROWS], sum = 0;
    const int32_t n = o->rows;
    if (n == WIDE_ROWS) {
        const wide_own own = *o;
        return wide_linearize_spin(w, item, &own);
    }
    wide_take_rows(o, m->p, z);
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) z[r] -= (double)rho * o->x[r];
    wide_project_with_slope(o, z, d);
    WIDE_FULL
    for (int32_t r = 0; r < 3; r++) {
        if (r >= n) continue;
        const tb_real lack = TB_R(z[r] - o->lambda[r]);
        const tb_real shrink = 1 / (1 + d[4 * r] * rho * m->compliance[o->row + r]);
        sum += (double)(weight * lack) * (double)(weight * lack);
        m->lack[o->row + r] = lack * shrink;
        WIDE_FULL
        for (int32_t j = 0; j < 3; j++)
            if (j < n) k[r * n + j] = d[3 * r + j] * rho * shrink;
    }
    return sum;
}

/* Looks at a point: the merit there, and in *natural the residual of the iterate as it is. */
TB_CALLED double wide_look(const wide_solve *w, wide_way way, tb_real length, double *natural)
{
    double merit = 0, square = 0;
    TB_EACH (item, w->items) {
        const wide_own o = wide_go(w, item, way, length);
        square += wide_square_of_natural(&o);
        merit += wide_linearize(w, item, &o);
    }
    *natural = wide_root_of_sum(square) * w->inverse_norm;
    return wide_root_of_sum(merit);
}

/* Goes along the step, shortened until the merit falls; false: it does not. */
TB_STATIC bool wide_search_line(wide_solve *w, double *merit)
{
    wide_memory *m = w->m;
    tb_real length = 1;
    TB_ROLLED
    for (int k = 0; k < WIDE_SHORTENINGS; k++, length /= 2) {
        double natural;
        const double reached = wide_look(w, k == 0 ? WIDE_STEP : WIDE_SHORTER, length, &natural);
        if (!(reached <= *merit * (1 - WIDE_DECREASE * (double)length))) continue;
        tb_team_sync();
        TB_EACH (r, w->rows) {
            m->lambda[r] += (double)(length * m->step[r]);
            m->x[r] += (double)(length * m->change[r]);
        }
        tb_team_sync();
        *merit = reached;
        w->now.residual = natural;
        return true;
    }
    tb_team_sync();
    return false;
}

/* ---- rounds ---- */

/* How a round ended. */
typedef enum wide_end { WIDE_SOLVED, WIDE_CONTRACTED, WIDE_FAILED } wide_end;

/* Newton for one p, from p. */
TB_STATIC wide_end wide_round(wide_solve *w, int32_t *steps)
{
    double natural;
    wide_whiten(w, w->m->lambda);
    double merit = wide_look(w, WIDE_AT_START, 0, &natural);
    const double before = merit;
    tb_team_sync();
    TB_ROLLED
    for (*steps = 0; *steps < WIDE_STEPS_OF_ROUND && w->now.steps < WIDE_STEPS;) {
        w->now.steps++;
        wide_solve_system(w);
        if (!wide_search_line(w, &merit)) return WIDE_FAILED;
        (*steps)++;
        if (w->now.residual <= WIDE_NEAR * w->tolerance) wide_judge(w);
        if (w->now.residual <= w->tolerance) return WIDE_SOLVED;
        if (merit <= WIDE_CONTRACTION * before) return WIDE_CONTRACTED;
    }
    return WIDE_FAILED;
}

/* How far the way lambda - p of the last round goes on, in its own lengths, until an impulse reaches a
 * bound or its friction the rim. */
TB_STATIC double wide_reach(const wide_memory *m, int32_t item)
{
    const wide_own o = wide_item_of(m, item);
    double at[WIDE_ROWS], d[WIDE_ROWS], reach = WIDE_FAR_WAY;
    wide_take_rows(&o, m->lambda, at);
    wide_take_rows(&o, m->p, d);
    for (int32_t r = 0; r < WIDE_ROWS; r++) d[r] = at[r] - d[r];
    if (d[0] < 0 && at[0] > o.lower) reach = (o.lower - at[0]) / d[0];
    if (d[0] > 0 && at[0] < o.upper) reach = (o.upper - at[0]) / d[0];
    /* |t + k dt| = mu (n + k dn) */
    const double mu2 = (double)o.mu * (double)o.mu;
    const double a = d[1] * d[1] + d[2] * d[2] - mu2 * d[0] * d[0];
    const double b = at[1] * d[1] + at[2] * d[2] - mu2 * at[0] * d[0];
    const double c = at[1] * at[1] + at[2] * at[2] - mu2 * at[0] * at[0];
    const double root = b * b - a * c;
    if (!(c < -1e-6 * mu2 * at[0] * at[0]) || !(root > 0)) return reach;
    const double below = b + sqrt(root);
    return below > 0 ? fmin(reach, -c / below) : reach;
}

/* Goes on along the way of the last round to the first contact that opens or slips. Impulses of
 * redundant contacts creep along this way, and a round moves them by no more than a velocity over
 * the proximal weight. Taken back where the way changes velocities. */
TB_CALLED bool wide_extend(const wide_solve *w)
{
    wide_memory *m = w->m;
    double reach = WIDE_FAR_WAY;
    TB_EACH (item, w->items) reach = fmin(reach, wide_reach(m, item));
    reach = -tb_team_largest(-reach);
    if (!(reach < WIDE_FAR_WAY)) return false;
    tb_team_sync();
    TB_EACH (r, w->rows) {
        m->answer[r] = m->lambda[r];
        m->lambda[r] += reach * (m->lambda[r] - m->p[r]);
    }
    tb_team_sync();
    if (wide_residual_of(w, m->lambda) <= WIDE_SAME * w->now.residual) return true;
    wide_take_answer(w);
    return false;
}

/* Bursts, each longer than the last one, while they gain as much as WIDE_GAIN a sweep. */
TB_STATIC void wide_begin_with_sweeps(wide_solve *w)
{
    double needed = 1;
    TB_ROLLED
    for (int32_t turns = WIDE_BURST; turns <= WIDE_LONGEST_BURST; turns *= 2) {
        const double before = w->now.residual;
        wide_sweep(w, turns);
        needed = turns == WIDE_BURST ? WIDE_GAIN * WIDE_GAIN : needed * needed;
        if (w->now.residual <= w->tolerance || !(w->now.residual <= needed * before)) return;
    }
}

/* After a round: a smaller proximal weight, or a larger one, and sweeps after some failures. */
TB_STATIC void wide_follow(wide_solve *w, wide_end end, int32_t steps)
{
    wide_progress *now = &w->now;
    if (end == WIDE_CONTRACTED) {
        const bool stalls = now->residual > WIDE_STALLED * now->last;
        now->failures = 0;
        now->last = now->residual;
        if (stalls && now->extensions++ < WIDE_EXTENSIONS && wide_extend(w)) return;
        if (steps <= WIDE_FEW_STEPS)
            now->epsilon = tb_max(now->epsilon * WIDE_SHRINK, WIDE_LEAST_EPSILON);
        return;
    }
    now->failures++;
    now->epsilon = tb_min(now->epsilon * WIDE_GROWTH, WIDE_LARGEST_EPSILON);
    wide_judge(w);
    if (now->failures <= WIDE_FAILURES) return;
    wide_sweep(w, WIDE_LONGEST_BURST);
    now->epsilon = WIDE_FIRST_EPSILON;
    now->failures = 0;
}

/* Rounds from the iterate as it is to the tolerance; false: it was not reached. */
TB_STATIC bool wide_iterate(wide_solve *w)
{
    wide_progress *now = &w->now;
    int32_t steps;
    TB_ROLLED
    while (now->residual > w->tolerance && now->steps < WIDE_STEPS && now->sweeps < WIDE_SWEEPS) {
        const wide_end end = wide_round(w, &steps);
        if (end == WIDE_SOLVED) return true;
        wide_follow(w, end, steps);
    }
    return now->residual <= w->tolerance;
}

/* Judges the start, and sweeps where that is cheaper or the start is far away. */
TB_STATIC void wide_begin(wide_solve *w, bool begins_with_sweeps)
{
    wide_judge(w);
    if (w->now.residual <= w->tolerance) return;
    wide_take_answer(w);
    if (begins_with_sweeps || w->now.residual > WIDE_COLD) wide_begin_with_sweeps(w);
    w->now.epsilon = tb_clamp(TB_R(sqrt(w->now.residual)), WIDE_LEAST_EPSILON, WIDE_FIRST_EPSILON);
    w->now.last = DBL_MAX;
}

#endif
