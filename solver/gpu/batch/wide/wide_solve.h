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

#include "gpu/batch/wide/wide_sweep.h"
#include "gpu/batch/wide/wide_system.h"

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
/* Steps of Newton's from the start, as many from zero impulses, and sweeps, after which a solve is
 * left to the general solvers. */
enum { WIDE_STEPS = 100, WIDE_SWEEPS = 400 };
/* Steps after which epsilon falls to WIDE_LATE_EPSILON where rounds stall: slow motions of the dofs
 * lose little of their residual in a round at a larger weight. Sooner it costs more steps than it
 * saves, because Newton crawls from kink to kink at such weights. */
enum { WIDE_LATE = 20 };
static const tb_real WIDE_LATE_EPSILON = TB_R(1e-7);
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

/* ---- Newton's step ---- */

/* How a pass over the items comes to the point at which it looks. */
typedef enum wide_way {
    WIDE_AT_START, /* velocities from s, no step */
    WIDE_STEP,     /* a step follows from ds */
    WIDE_SHORTER   /* the step of the last pass, with another length */
} wide_way;

/* A step of the item's impulses and of its velocities from ds. */
TB_STATIC void wide_expand(const wide_solve *w, int32_t item, const wide_own *o)
{
    wide_memory *m = wide_memory_of(w);
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
    wide_memory *m = wide_memory_of(w);
    wide_own o = wide_item_of(m, item);
    wide_take_rows(&o, m->lambda, o.lambda);
    if (way == WIDE_AT_START) {
        wide_find_velocities(w, item, &o);
        wide_put_rows(&o, o.x, m->x);
        wide_put_rows(&o, o.lambda, m->p);
        return o;
    }
    if (way == WIDE_STEP) wide_expand(w, item, &o);
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
    wide_memory *m = wide_memory_of(w);
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
    wide_memory *m = wide_memory_of(w);
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
    wide_memory *m = wide_memory_of(w);
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

TB_FN bool wide_is_late(const wide_solve *w)
{
    return w->now.steps > (int32_t)WIDE_LATE;
}

/* Newton for one p, from p. */
TB_STATIC wide_end wide_round(wide_solve *w, int32_t *steps)
{
    double natural;
    wide_whiten(w, wide_memory_of(w)->lambda);
    double merit = wide_look(w, WIDE_AT_START, 0, &natural);
    const double before = merit;
    tb_team_sync();
    TB_ROLLED
    for (*steps = 0; *steps < WIDE_STEPS_OF_ROUND && w->now.steps < w->now.limit;) {
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
TB_STATIC double wide_reach(const wide_solve *w, int32_t item)
{
    const wide_memory *m = wide_memory_of(w);
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
    wide_memory *m = wide_memory_of(w);
    double reach = WIDE_FAR_WAY;
    TB_EACH (item, w->items) reach = fmin(reach, wide_reach(w, item));
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
        const tb_real least = stalls && wide_is_late(w) ? WIDE_LATE_EPSILON : WIDE_LEAST_EPSILON;
        if (steps <= WIDE_FEW_STEPS)
            now->epsilon = tb_min(now->epsilon, tb_max(now->epsilon * WIDE_SHRINK, least));
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

/* Begins anew from zero impulses: those of the last step can lie where rounds go in circles. */
TB_STATIC void wide_begin_from_zero(wide_solve *w)
{
    wide_progress *now = &w->now;
    TB_EACH (r, w->rows) wide_memory_of(w)->lambda[r] = 0;
    tb_team_sync();
    wide_judge(w);
    wide_take_answer(w);
    now->epsilon = WIDE_FIRST_EPSILON;
    now->last = DBL_MAX;
    now->failures = now->extensions = 0;
    now->limit += (int32_t)WIDE_STEPS;
}

/* How far the rounds of a solve have come. */
typedef enum wide_state { WIDE_REACHED, WIDE_PAUSED, WIDE_GIVEN_UP } wide_state;

/* Rounds from the iterate as it is to the tolerance. */
TB_STATIC wide_state wide_iterate(wide_solve *w)
{
    wide_progress *now = &w->now;
    int32_t steps;
    TB_ROLLED
    while (now->residual > w->tolerance && now->sweeps < WIDE_SWEEPS) {
        if (now->steps >= 2 * (int32_t)WIDE_STEPS) break;
        if (now->steps + now->sweeps >= w->most) return WIDE_PAUSED;
        if (now->steps >= now->limit) wide_begin_from_zero(w);
        const wide_end end = wide_round(w, &steps);
        if (end == WIDE_SOLVED) return WIDE_REACHED;
        wide_follow(w, end, steps);
    }
    return now->residual <= w->tolerance ? WIDE_REACHED : WIDE_GIVEN_UP;
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
    w->now.limit = (int32_t)WIDE_STEPS;
}

#endif
