/* Solves a contact problem of up to 36 dofs by one warp: semismooth Newton on the exact cone inside
 * a proximal point method, with sweeps where it fails.
 *
 * The method is that of solve/newton/newton.c, with its line search and its merit: Newton on
 * lambda - prox_C(p - xi(lambda) / w), whose step follows from a system of the dofs,
 *
 *     (I + Y' K Y) ds = Y' (prox_C(p - xi / w) - lambda),      K = prox_C' / w,
 *     dlambda = prox_C(p - xi / w) - lambda - K Y ds,
 *
 * and p moves on when the merit has fallen to a fifth. Slopes of the projection are those of
 * solve/newton/law_slope.h for disks.
 *
 * A lane holds dofs in the system (wide_system.h), in sums over all rows and in sweeps, rows in
 * products with Y, and whole items elsewhere. A step of Newton's is one pass over rows, for Y ds, and
 * one over items, which projects at the step's end and leaves K and the lack for the next one, beside
 * the system; a last one takes the natural map where the step is accepted. Matrix and step are in
 * working precision, impulses, velocities and residuals in double, so that no round goes on from
 * rounded velocities.
 *
 * The start is judged first; worlds that are no piles go on from its statuses (wide_statuses.h). Later
 * the residual of the iterate, whose velocities follow from the steps, tells when a judgement is due,
 * for which impulses are brought into their laws' sets and velocities are summed anew. */
#ifndef TB_GPU_WIDE_SOLVE_H
#define TB_GPU_WIDE_SOLVE_H

#include "base/random.h"
#include "gpu/batch/wide/wide_sweep.h"
#include "gpu/batch/wide/wide_system.h"

/* As in solve/newton/newton.c, but for what a round has to gain, and for how fast epsilon falls. */
static const tb_real WIDE_FIRST_EPSILON = TB_R(0.1);
static const tb_real WIDE_LEAST_EPSILON = TB_R(1e-4);
/* Share of epsilon that a round leaves. Rounds at weights that fall faster go in circles more often. */
static const tb_real WIDE_SHRINK = TB_R(0.3);
static const tb_real WIDE_GROWTH = TB_R(4), WIDE_LARGEST_EPSILON = 10;
static const double WIDE_CONTRACTION = 0.2, WIDE_DECREASE = 1e-4;
/* An item without a slope whose lack is at most this share of the tolerance, as a velocity, is left
 * out of the system. */
static const double WIDE_NO_LACK = 0.01;
/* An iterate whose residual is at most so many tolerances is judged. */
static const double WIDE_NEAR = 2;
/* Steps of Newton's from a start, after which the solve begins anew. */
enum { WIDE_STEPS = 100 };
/* The largest impulse of a random start, as a share of the iterate's largest. */
static const double WIDE_RANDOM_SHARE = 0.3;
/* Steps after which epsilon falls to WIDE_LATE_EPSILON where rounds stall: slow motions of the dofs
 * lose little of their residual in a round at a larger weight. Sooner it costs more steps than it
 * saves, because Newton crawls from kink to kink at such weights. */
enum { WIDE_LATE = 20 };
static const tb_real WIDE_LATE_EPSILON = TB_R(1e-7);
/* A round that needs more steps, or shorter ones, ends, and the next one has a larger weight: that is
 * cheaper than to crawl on. */
enum { WIDE_STEPS_OF_ROUND = 4, WIDE_SHORTENINGS = 4 };
/* Sweeps of the first burst and of the longest. A burst follows one that leaves at most WIDE_GAIN of
 * the residual. */
enum { WIDE_BURST = 4, WIDE_LONGEST_BURST = 8 };
static const double WIDE_GAIN = 0.4;
/* A round stalls that leaves more than WIDE_STALLED of the residual. Its way then goes on by at most
 * WIDE_FAR_WAY of its lengths, WIDE_EXTENSIONS times a step, and no further than the residual
 * stays within WIDE_SAME of itself. */
static const double WIDE_STALLED = 0.3, WIDE_FAR_WAY = 1e3, WIDE_SAME = 1.1;
enum { WIDE_EXTENSIONS = 20 };
/* A round sums x anew when the residual has fallen to this share of the one at the last sum: x follows
 * from steps in working precision. */
static const double WIDE_DRIFT = 1e-3;
enum { WIDE_FAILURES = 2 /* in a row, before sweeps */ };

/* ---- Newton's step ---- */

/* How a pass over the items comes to the point at which it looks. */
typedef enum wide_way {
    WIDE_AT_START, /* no step: p is where the iterate is */
    WIDE_ASSUMED,  /* the same, with slopes of the items' statuses */
    WIDE_STEP,     /* a step follows from the change of velocities by ds */
    WIDE_SHORTER   /* the step of the last pass, with another length */
} wide_way;

/* Y ds: the change of velocities by a step, as far as it follows from ds. */
TB_STATIC void wide_expand(wide_solve *w)
{
    wide_memory *m = wide_memory_of(w);
    TB_EACH (r, w->rows) {
        const uint32_t columns = wide_columns_of_row(m, r);
        const warp_quad *y = m->quads + wide_quad(columns, 0);
        tb_real u = 0;
        TB_ROLLED
        for (uint32_t left = wide_groups(columns); left != 0; left &= left - 1, y++) {
            const warp_quad own = *y, ds = wide_right(m)[tb_count_bits((left & (0 - left)) - 1)];
            for (int32_t i = 0; i < WIDE_GROUP; i++) u += own.v[i] * ds.v[i];
        }
        m->change[r] = u;
    }
    tb_team_sync();
}

/* A step of the item's impulses, and of its velocities, from Y ds. */
TB_STATIC void wide_find_step(wide_memory *m, uint32_t columns)
{
    const int32_t row = wide_row(columns), rows = wide_rows(columns);
    const warp_quad *k = wide_slope(m, columns);
    tb_real u[WIDE_ROWS];
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) u[r] = r < rows ? m->change[row + r] : TB_R(0);
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        if (r >= rows) continue;
        const warp_quad own = k[r];
        const bool is_spin = rows == WIDE_ROWS;
        tb_real step = own.v[0] * u[0] + own.v[1] * u[1] + own.v[2] * u[2];
        step = is_spin ? m->lack[row + r] - step - own.v[3] * u[3] : own.v[3] - step;
        m->step[row + r] = step;
        m->change[row + r] = u[r] + wide_compliance(m, row + r) * step;
    }
}

/* The item at the point that it looks at. */
TB_STATIC wide_own wide_go(wide_solve *w, int32_t item, wide_way way, tb_real length)
{
    wide_memory *m = wide_memory_of(w);
    wide_own o = wide_item_of(m, item);
    if (way == WIDE_STEP) wide_find_step(m, m->columns[item]);
    wide_take_rows(&o, m->lambda, o.lambda);
    wide_take_rows(&o, m->x, o.x);
    if (way == WIDE_AT_START || way == WIDE_ASSUMED) {
        wide_put_rows(&o, o.lambda, m->p);
        return o;
    }
    wide_move(m, length, &o);
    return o;
}

/* Puts down whether an item counts in the system: whether K has a number other than zero, or the
 * lack, whose part of the merit is lack2, changes velocities by more than a share of the tolerance. */
TB_FN void wide_put_active(wide_solve *w, int32_t item, tb_real epsilon, bool has_slope,
                           double lack2)
{
    const double least = WIDE_NO_LACK * w->tolerance * (double)epsilon;
    const double own = lack2 * w->inverse_norm * w->inverse_norm;
    wide_memory_of(w)->active[item] = has_slope || own > least * least;
}

/* wide_linearize of a contact with spin. */
TB_CALLED double wide_linearize_spin(wide_solve *w, int32_t item, tb_real epsilon, bool assumed,
                                     const wide_own *o)
{
    wide_memory *m = wide_memory_of(w);
    const tb_real weight = epsilon * m->weight[item];
    const tb_real rho = weight > 0 ? 1 / weight : TB_R(0);
    tb_real d[WIDE_SLOPES];
    double z[WIDE_ROWS], sum = 0;
    for (int32_t r = 0; r < WIDE_ROWS; r++) z[r] = m->p[o->row + r] - (double)rho * o->x[r];
    wide_project_spin(o, assumed ? m->status[item] : (int32_t)TB_STATUS_UNKNOWN, z, d);
    if (WIDE_HAS_STATUSES && !assumed) m->status[item] = (uint8_t)wide_status_of(o, z);
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        const tb_real lack = TB_R(z[r] - o->lambda[r]);
        const tb_real shrink =
            1 / (1 + d[(WIDE_ROWS + 1) * r] * rho * wide_compliance(m, o->row + r));
        sum += (double)(weight * lack) * (double)(weight * lack);
        m->lack[o->row + r] = lack * shrink;
        for (int32_t j = 0; j < WIDE_ROWS; j++)
            m->k[o->row + r].v[j] = d[WIDE_ROWS * r + j] * rho * shrink;
    }
    wide_put_active(w, item, epsilon, true, sum);
    return sum;
}

/* K and the lack of the item there, as they would be with its status where that is assumed. Returns
 * the square of its w (lambda - prox_C(p - xi / w)), a velocity. */
TB_STATIC double wide_linearize(wide_solve *w, int32_t item, tb_real epsilon, bool assumed,
                                const wide_own *o)
{
    wide_memory *m = wide_memory_of(w);
    const tb_real weight = epsilon * m->weight[item];
    const tb_real rho = weight > 0 ? 1 / weight : TB_R(0);
    tb_real d[WIDE_SLOPES];
    double z[WIDE_ROWS], sum = 0;
    const int32_t n = o->rows;
    if (n == WIDE_ROWS) {
        const wide_own own = *o;
        return wide_linearize_spin(w, item, epsilon, assumed, &own);
    }
    wide_take_rows(o, m->p, z);
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) z[r] -= (double)rho * o->x[r];
    if (WIDE_HAS_STATUSES && assumed) {
        const double slip = sqrt(o->x[1] * o->x[1] + o->x[2] * o->x[2]);
        wide_assume_status(o, m->status[item], (double)rho * slip, z, d);
    } else {
        wide_project_with_slope(o, z, d);
        if (WIDE_HAS_STATUSES) m->status[item] = (uint8_t)wide_status_of(o, z);
    }
    WIDE_FULL
    for (int32_t r = 0; r < 3; r++) {
        if (r >= n) continue;
        const tb_real lack = TB_R(z[r] - o->lambda[r]);
        const tb_real shrink = 1 / (1 + d[4 * r] * rho * wide_compliance(m, o->row + r));
        sum += (double)(weight * lack) * (double)(weight * lack);
        const tb_real scale = rho * shrink;
        m->k[o->row + r] = TB_VALUE(warp_quad){
            {d[3 * r] * scale, d[3 * r + 1] * scale, d[3 * r + 2] * scale, lack * shrink}};
    }
    wide_put_active(w, item, epsilon, d[0] != 0 || (n > 1 && d[4] != 0), sum);
    return sum;
}

/* Looks at a point: the merit there. */
TB_CALLED double wide_look(wide_solve *w, tb_real epsilon, wide_way way, tb_real length)
{
    double merit = 0;
    if (way == WIDE_STEP) wide_expand(w);
    TB_EACH (item, w->items) {
        const wide_own o = wide_go(w, item, way, length);
        merit += wide_linearize(w, item, epsilon, way == WIDE_ASSUMED, &o);
    }
    return wide_root_of_sum(merit);
}

/* Goes along the step, shortened until the merit falls; false: it does not. */
TB_STATIC bool wide_search_line(wide_solve *w, wide_progress *now, double *merit)
{
    tb_real length = 1;
    TB_ROLLED
    for (int k = 0; k < WIDE_SHORTENINGS; k++, length /= 2) {
        const double reached =
            wide_look(w, now->epsilon, k == 0 ? WIDE_STEP : WIDE_SHORTER, length);
        if (!(reached <= *merit * (1 - WIDE_DECREASE * (double)length))) continue;
        tb_team_sync();
        *merit = reached;
        now->residual = wide_residual_of(w, wide_memory_of(w)->lambda, length);
        return true;
    }
    tb_team_sync();
    return false;
}

/* ---- rounds ---- */

/* How a round ended. */
typedef enum wide_end { WIDE_SOLVED, WIDE_CONTRACTED, WIDE_FAILED } wide_end;

/* The smallest epsilon of the rounds to come. */
TB_FN tb_real wide_least_epsilon(const wide_progress *now, bool stalls)
{
    return stalls && now->steps > (int32_t)WIDE_LATE ? WIDE_LATE_EPSILON : WIDE_LEAST_EPSILON;
}

/* Newton for one p, from p. */
TB_STATIC wide_end wide_round(wide_solve *w, wide_progress *now)
{
    double *lambda = wide_memory_of(w)->lambda;
    /* x moves with the iterate, but for rounding */
    if (!(now->residual > WIDE_DRIFT * now->summed)) {
        wide_find_velocities(w, lambda);
        now->summed = now->residual;
    }
    double merit = wide_look(w, now->epsilon, WIDE_AT_START, 0);
    const double before = merit;
    tb_team_sync();
    TB_ROLLED
    for (int k = 0; k < WIDE_STEPS_OF_ROUND && now->steps < now->limit; k++) {
        now->steps++;
        wide_solve_system(w);
        if (!wide_search_line(w, now, &merit)) return WIDE_FAILED;
        const bool judged = now->residual <= WIDE_NEAR * w->tolerance;
        if (judged) now->residual = wide_judge(w);
        if (now->residual <= w->tolerance) return WIDE_SOLVED;
        if (judged) { /* x is the answer's */
            wide_find_velocities(w, lambda);
            now->summed = now->residual;
        }
        if (merit <= WIDE_CONTRACTION * before) return WIDE_CONTRACTED;
    }
    return WIDE_FAILED;
}

/* How far the way lambda - p of the last round goes on, in its own lengths, until an impulse reaches a
 * bound or its friction the rim. */
TB_STATIC double wide_reach(wide_solve *w, int32_t item)
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
TB_CALLED bool wide_extend(wide_solve *w, double residual)
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
    wide_find_velocities(w, m->lambda);
    if (wide_residual_of(w, m->lambda, 0) <= WIDE_SAME * residual) return true;
    wide_take_answer(w);
    return false;
}

TB_STATIC void wide_sweep_on(wide_solve *w, wide_progress *now, int32_t turns)
{
    now->residual = wide_sweep(w, turns);
    now->summed = now->residual;
    now->sweeps += turns;
}

/* After a round: a smaller proximal weight, or a larger one, and sweeps after some failures. */
TB_STATIC void wide_follow(wide_solve *w, wide_progress *now, wide_end end)
{
    if (end == WIDE_CONTRACTED) {
        const bool stalls = now->residual > WIDE_STALLED * now->last;
        now->failures = 0;
        now->last = now->residual;
        if (stalls && now->extensions++ < WIDE_EXTENSIONS) {
            const bool extended = wide_extend(w, now->residual);
            now->summed = extended ? now->residual : DBL_MAX;
            if (extended) return;
        }
        const tb_real least = wide_least_epsilon(now, stalls);
        now->epsilon = tb_min(now->epsilon, tb_max(now->epsilon * WIDE_SHRINK, least));
        return;
    }
    now->failures++;
    now->epsilon = tb_min(now->epsilon * WIDE_GROWTH, WIDE_LARGEST_EPSILON);
    now->residual = wide_judge(w);
    now->summed = DBL_MAX; /* x is the answer's */
    if (now->failures <= WIDE_FAILURES) return;
    wide_sweep_on(w, now, WIDE_LONGEST_BURST);
    now->epsilon = WIDE_FIRST_EPSILON;
    now->failures = 0;
}

/* Begins anew where rounds go in circles: from zero impulses, later from random ones, the same in every
 * run. */
TB_CALLED void wide_begin_again(wide_solve *w, wide_progress *now)
{
    wide_memory *m = wide_memory_of(w);
    double largest = 0;
    TB_EACH (r, w->rows) largest = tb_larger(largest, fabs(m->lambda[r]));
    largest = tb_team_largest(largest);
    tb_team_sync();
    const double share = now->limit > (int32_t)WIDE_STEPS ? WIDE_RANDOM_SHARE : 0;
    TB_EACH (r, w->rows) {
        tb_random random = tb_random_stream((uint64_t)now->limit, (uint64_t)r);
        m->lambda[r] = share * largest * tb_random_between(&random, -1, 1);
    }
    tb_team_sync();
    now->residual = wide_judge(w);
    wide_take_answer(w);
    now->summed = now->residual;
    now->epsilon = WIDE_FIRST_EPSILON;
    now->last = DBL_MAX;
    now->failures = now->extensions = 0;
    now->limit += (int32_t)WIDE_STEPS;
}

/* How far the rounds of a solve have come. */
typedef enum wide_state {
    WIDE_REACHED,
    WIDE_PAUSED,
    WIDE_GIVEN_UP /* the steps from this start are used up */
} wide_state;

/* Rounds from the iterate as it is to the tolerance. */
TB_STATIC wide_state wide_make_rounds(wide_solve *w, wide_progress *now, int32_t most)
{
    TB_ROLLED
    while (now->residual > w->tolerance) {
        if (now->steps >= now->limit) return WIDE_GIVEN_UP;
        if (now->steps + now->sweeps >= most) return WIDE_PAUSED;
        const wide_end end = wide_round(w, now);
        if (end == WIDE_SOLVED) return WIDE_REACHED;
        wide_follow(w, now, end);
    }
    return WIDE_REACHED;
}

/* The same, until it pauses after `most` steps and sweeps of the solve. A function of its own, so that
 * numbers of the rounds stay in registers. */
TB_CALLED wide_state wide_iterate(wide_solve *w, wide_progress *progress, int32_t most)
{
    wide_progress now = *progress;
    const wide_state state = wide_make_rounds(w, &now, most);
    *progress = now;
    return state;
}

/* ---- the start ---- */

/* Judges the start. False: it is no answer. */
TB_STATIC bool wide_begin(wide_solve *w, wide_progress *now)
{
    now->last = DBL_MAX;
    now->limit = (int32_t)WIDE_STEPS;
    now->residual = now->start = wide_judge(w);
    if (now->residual <= w->tolerance) return true;
    wide_take_answer(w);
    now->summed = now->residual;
    return false;
}

/* Sweeps a start that was judged last: bursts, each longer than the last one, while they gain. */
TB_STATIC void wide_sweep_start(wide_solve *w, wide_progress *now)
{
    TB_ROLLED
    for (int32_t turns = WIDE_BURST; turns <= WIDE_LONGEST_BURST; turns *= 2) {
        const double before = now->residual;
        wide_sweep_on(w, now, turns);
        if (now->residual <= w->tolerance || !(now->residual <= WIDE_GAIN * before)) return;
    }
}

/* Epsilon of the first round, from a start that is as near as its residual says. */
TB_STATIC void wide_weigh_start(wide_progress *now)
{
    now->epsilon = tb_clamp(TB_R(sqrt(now->residual)), WIDE_LEAST_EPSILON, WIDE_FIRST_EPSILON);
}

#endif
