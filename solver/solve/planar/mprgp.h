/* MPRGP, modified proportioning with reduced gradient projections (Dostál and Schöberl, Comput.
 * Optim. Appl. 30, 2005; Dostál, Optimal Quadratic Programming Algorithms, 2009, algorithm 5.8), for
 * contacts in the plane: conjugate gradients on the contacts that push, one source for processor
 * and card.
 *
 * Without friction the impulses minimize p'Gp / 2 + c'p over p >= 0. The gradient is the contact
 * velocity xi = G p + c. Its free part belongs to impulses within their bounds, its chopped part to
 * impulses that want to leave a bound. While the free part dominates, conjugate gradients go on in
 * the face of the free impulses. A step that would cross a bound stops there, and a projected
 * gradient step follows, which may close or open many contacts at once. Where the chopped part
 * dominates, a step along it enlarges the face. All directions are scaled by r = 1 / G_ii.
 *
 * Friction is no such program. The tangential impulses have fixed bounds mu p_n for a round; the
 * next round takes its bounds from the new p_n. The rounds end where the residual of Coulomb's law
 * meets the tolerance.
 *
 * One solve is one team of TB_MPRGP_LANES lanes: a block of threads on a card, loops on a
 * processor. Sums run over the lanes' shares in halves on both, so both give the same bytes. Y lies
 * twice, by rows and by dofs, so that neighbouring lanes of a card read neighbouring numbers
 * (tb_mprgp_lists). */
#ifndef TB_MPRGP_H
#define TB_MPRGP_H

#include "contact/judge.h"
#include "solve/planar/betz_batch.h"
#include "solve/planar/mprgp_lists.h"
#include "solve/solve.h"

enum {
    TB_MPRGP_SUMS = 4,                                           /* at once */
    TB_MPRGP_WARPS = TB_MPRGP_LANES / 32,                        /* 32 */
    TB_MPRGP_PLACE = (TB_MPRGP_WARPS + 1) * (TB_MPRGP_SUMS + 1), /* shares of warps, totals */
    TB_MPRGP_SHARED = 2 * TB_MPRGP_PLACE * 8,
    TB_MPRGP_SPECTRUM = 10 /* products that estimate the largest eigenvalue */
};

/* Share of 2 / |G| of the projected gradient's step: the estimate of |G| is from below. */
static const double TB_MPRGP_STEP_SHARE = 0.85;
/* The residual that ends a round of fixed bounds, as a share of that of Coulomb's law. */
static const double TB_MPRGP_ROUND_SHARE = 0.1;
/* Above 1 by more than the rounding of a product and a quotient. */
static const double TB_MPRGP_ROUNDED_UP = 1 + 1e-15;

#define tb_mprgp TB_SYMBOL(tb_mprgp)
typedef struct tb_mprgp {
    const tb_problem *problem; /* blocks, c */
    tb_mprgp_lists y;
    tb_real *p, *r;          /* rows: impulses, N s; scale of the direction, kg */
    tb_real *s;              /* dofs: Y of an array of rows */
    tb_real *xi, *along, *q; /* rows: velocity; direction; G times it */
    tb_real *limit;          /* rows: largest tangential impulse of this round, N s; of a normal
                              * TB_REAL_MAX. Without friction it is not read. */
    double tolerance;        /* of the natural map, times |c|: m/s */
    double step;             /* of the projected gradient, times r */
    double target;           /* of this round: m/s */
    int32_t most, made;      /* products with G */
    bool rubs;               /* some block has friction */
    bool summed;             /* xi is a product, not a sum of changes */
    double total[TB_MPRGP_SUMS], least;
    double own[TB_MPRGP_SUMS]; /* a lane's shares of sums, on a card */
    double own_least;          /* of a lane on a card, of all on a processor */
    /* shares of all lanes, TB_MPRGP_SUMS x TB_MPRGP_LANES; on a card of warps, in shared memory,
     * TB_MPRGP_SHARED bytes */
    double *shares;
    int32_t turn; /* of two places in shared memory */
} tb_mprgp;

#ifdef TB_MPRGP_CARD /* the card's unit, which defines TB_MPRGP_FN */
#define TB_MPRGP_EACH(i, n)                                                                        \
    _Pragma("unroll 2") for (int32_t i = (int32_t)threadIdx.x; i < (n); i += TB_MPRGP_LANES)
#define TB_MPRGP_ADD(it, k, i, term) ((it)->own[k] += (term))
/* A number that no kernel writes: its load may pass stores. */
#define TB_MPRGP_READ(number) __ldg(&(number))

TB_MPRGP_FN void mprgp_meet(tb_mprgp *it)
{
    (void)it;
    __syncthreads();
}

TB_MPRGP_FN double mprgp_sum_of_warp(double own)
{
#pragma unroll
    for (int32_t half = 16; half > 0; half /= 2) own += __shfl_xor_sync(0xffffffffu, own, half);
    return own;
}

TB_MPRGP_FN double mprgp_least_of_warp(double own)
{
#pragma unroll
    for (int32_t half = 16; half > 0; half /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, own, half);
        if (other < own) own = other;
    }
    return own;
}

/* Warps add their lanes' shares, then one warp a number adds the warps'. Two places by turns: a lane
 * may write the next shares while others read the last totals. `sums` and `least` are constants
 * where this is inlined. */
TB_MPRGP_FN void mprgp_total(tb_mprgp *it, const int32_t sums, const bool least)
{
    const int32_t warp = (int32_t)threadIdx.x / 32, lane = (int32_t)threadIdx.x % 32;
    double *place = it->shares + it->turn * TB_MPRGP_PLACE,
           *total = place + TB_MPRGP_WARPS * (TB_MPRGP_SUMS + 1);
    it->turn = 1 - it->turn;
#pragma unroll
    for (int32_t k = 0; k < TB_MPRGP_SUMS; k++) {
        if (k >= sums) break;
        const double own = mprgp_sum_of_warp(it->own[k]);
        if (lane == 0) place[TB_MPRGP_WARPS * k + warp] = own;
        it->own[k] = 0;
    }
    if (least) {
        const double own = mprgp_least_of_warp(it->own_least);
        if (lane == 0) place[TB_MPRGP_WARPS * sums + warp] = own;
        it->own_least = TB_RESIDUAL_UNKNOWN;
    }
    __syncthreads();
    if (warp < sums + least) {
        const double own = place[TB_MPRGP_WARPS * warp + lane];
        const double all = warp < sums ? mprgp_sum_of_warp(own) : mprgp_least_of_warp(own);
        if (lane == 0) total[warp] = all;
    }
    __syncthreads();
#pragma unroll
    for (int32_t k = 0; k < TB_MPRGP_SUMS; k++)
        if (k < sums) it->total[k] = total[k];
    if (least) it->least = total[sums];
}
#else
#define TB_MPRGP_FN           TB_STATIC
#define TB_MPRGP_EACH(i, n)   for (int32_t i = 0; i < (n); i++)
#define TB_MPRGP_READ(number) (number)
#define TB_MPRGP_ADD(it, k, i, term)                                                               \
    ((it)->shares[(k)*TB_MPRGP_LANES + (i) % TB_MPRGP_LANES] += (term))

TB_MPRGP_FN void mprgp_meet(tb_mprgp *it)
{
    (void)it;
}

/* The lanes' shares of the first `sums` sums, added up in `total`, and the least number. */
TB_MPRGP_FN void mprgp_total(tb_mprgp *it, int32_t sums, bool least)
{
    for (int32_t k = 0; k < sums; k++) {
        double *share = it->shares + k * TB_MPRGP_LANES;
        for (int32_t warp = 0; warp < TB_MPRGP_WARPS; warp++)
            for (int32_t half = 16; half > 0; half /= 2)
                for (int32_t i = 32 * warp; i < 32 * warp + half; i++) share[i] += share[i + half];
        for (int32_t warp = 1; warp < TB_MPRGP_WARPS; warp++) share[warp] = share[32 * warp];
        for (int32_t half = TB_MPRGP_WARPS / 2; half > 0; half /= 2)
            for (int32_t i = 0; i < half; i++) share[i] += share[i + half];
        it->total[k] = share[0];
        for (int32_t i = 0; i < TB_MPRGP_LANES; i++) share[i] = 0;
    }
    if (!least) return;
    it->least = it->own_least;
    it->own_least = TB_RESIDUAL_UNKNOWN;
}
#endif

/* Y_row . s. */
TB_MPRGP_FN tb_real mprgp_speed(const tb_mprgp *it, int32_t row)
{
    const int32_t rows = it->problem->number_of_rows;
    tb_real speed = 0;
    TB_UNROLLED
    for (int32_t j = 0; j < it->y.width; j++)
        speed += TB_MPRGP_READ(it->y.of_row[j * rows + row]) *
                 it->s[TB_MPRGP_READ(it->y.dof[j * rows + row])];
    return speed;
}

/* s of a dof: its column of Y times an array of rows. */
TB_MPRGP_FN tb_real mprgp_sum_dof(const tb_mprgp *it, int32_t dof, const tb_real *rows)
{
    const int32_t *slice = it->y.slice + dof / TB_MPRGP_SLICE;
    const int32_t from = TB_MPRGP_READ(slice[0]) + dof % TB_MPRGP_SLICE;
    const int32_t to = TB_MPRGP_READ(slice[1]);
    tb_real sum = 0;
    TB_UNROLLED
    for (int32_t i = from; i < to; i += TB_MPRGP_SLICE)
        sum += TB_MPRGP_READ(it->y.of_dof[i]) * rows[TB_MPRGP_READ(it->y.row[i])];
    return sum;
}

typedef struct mprgp_bounds {
    tb_real low, high;
} mprgp_bounds;

TB_FN mprgp_bounds mprgp_bounds_of(const tb_mprgp *it, int32_t row)
{
    mprgp_bounds b = {0, TB_REAL_MAX};
    if (!it->rubs) return b;
    b.high = it->limit[row];
    if (b.high < TB_REAL_MAX) b.low = -b.high;
    return b;
}

/* The velocity of an impulse within its bounds, else 0. */
TB_FN tb_real mprgp_free(tb_real p, tb_real xi, mprgp_bounds b)
{
    return p > b.low && p < b.high ? xi : 0;
}

/* The velocity of an impulse at a bound that it wants to leave, else 0. */
TB_FN tb_real mprgp_chopped(tb_real p, tb_real xi, mprgp_bounds b)
{
    if (p <= b.low && p >= b.high) return 0;
    if (p <= b.low) return xi < 0 ? xi : 0;
    return p >= b.high && xi > 0 ? xi : 0;
}

TB_FN tb_real mprgp_clamped(tb_real p, mprgp_bounds b)
{
    if (!(p > b.low)) return b.low;
    return p < b.high ? p : b.high;
}

/* s <- Y of an array of rows. */
TB_MPRGP_FN void mprgp_sum_dofs(tb_mprgp *it, const tb_real *rows)
{
    mprgp_meet(it);
    TB_MPRGP_EACH(d, it->problem->number_of_dofs)
    it->s[d] = mprgp_sum_dof(it, d, rows);
    mprgp_meet(it);
    it->made++;
}

/* xi <- G p + c. */
TB_MPRGP_FN void mprgp_sum_xi(tb_mprgp *it)
{
    mprgp_sum_dofs(it, it->p);
    TB_MPRGP_EACH(row, it->problem->number_of_rows)
    it->xi[row] = mprgp_speed(it, row) + it->problem->c[row];
    it->summed = true;
}

/* q <- G along; totals: along' G along, xi' along; least: how far p may go along -along. */
TB_MPRGP_FN void mprgp_multiply(tb_mprgp *it)
{
    mprgp_sum_dofs(it, it->along);
    TB_MPRGP_EACH(row, it->problem->number_of_rows)
    {
        const tb_real a = it->along[row], q = mprgp_speed(it, row);
        const mprgp_bounds b = mprgp_bounds_of(it, row);
        it->q[row] = q;
        TB_MPRGP_ADD(it, 0, row, (double)a * (double)q);
        TB_MPRGP_ADD(it, 1, row, (double)a * (double)it->xi[row]);
        const tb_real bound = a > 0 ? b.low : b.high;
        if (a == 0 || bound >= TB_REAL_MAX) continue;
        const double room = (double)tb_abs(it->p[row] - bound), pace = (double)tb_abs(a);
        if (room > pace * it->own_least * TB_MPRGP_ROUNDED_UP) continue; /* spares a division */
        if (room / pace < it->own_least) it->own_least = room / pace;
    }
    mprgp_total(it, 2, true);
}

/* The natural map of Coulomb's law of all blocks; constant laws and lengths leave a card none of the
 * other laws. */
TB_MPRGP_FN void mprgp_look_at_friction(tb_mprgp *it)
{
    const tb_problem *problem = it->problem;
    TB_MPRGP_EACH(b, problem->number_of_blocks)
    {
        const tb_block *block = &problem->blocks[b];
        const tb_real *p = it->p + block->row, *xi = it->xi + block->row;
        const tb_block normal = {.law = TB_LAW_UNILATERAL, .rows = 1};
        const tb_block planar = {.law = TB_LAW_PLANAR, .rows = 2, .mu = block->mu};
        double impulse[2] = {(double)p[0], 0}, speed[2] = {(double)xi[0], 0};
        if (block->rows > 1) {
            impulse[1] = (double)p[1];
            speed[1] = (double)xi[1];
            TB_MPRGP_ADD(it, 3, b, tb_block_natural(&planar, impulse, speed));
        } else {
            TB_MPRGP_ADD(it, 3, b, tb_block_natural(&normal, impulse, speed));
        }
    }
}

/* The next direction, the free part less gamma times the last one, and the totals that choose the
 * step: squares of the natural map, of the chopped part, the free part times its reduced self, and
 * squares of the natural map of Coulomb's law. */
TB_MPRGP_FN void mprgp_look(tb_mprgp *it, double gamma)
{
    const double pace = 1 / it->step;
    if (it->rubs) { /* rows of a lane are not its blocks' */
        mprgp_meet(it);
        mprgp_look_at_friction(it);
    }
    TB_MPRGP_EACH(row, it->problem->number_of_rows)
    {
        const mprgp_bounds b = mprgp_bounds_of(it, row);
        const tb_real p = it->p[row], xi = it->xi[row], r = it->r[row];
        const tb_real within = mprgp_free(p, xi, b), chopped = mprgp_chopped(p, xi, b);
        const double natural = (double)(p - mprgp_clamped(p - xi, b));
        const double room = (double)(xi > 0 ? p - b.low : b.high - p) * pace;
        const double reach = (double)tb_abs(r * within);
        it->along[row] = gamma == 0 ? r * within : r * within - TB_R(gamma) * it->along[row];
        TB_MPRGP_ADD(it, 0, row, natural * natural);
        TB_MPRGP_ADD(it, 1, row, (double)(r * chopped * chopped));
        TB_MPRGP_ADD(it, 2, row, (room < reach ? room : reach) * (double)tb_abs(within));
    }
    if (it->rubs)
        mprgp_total(it, 4, false);
    else
        mprgp_total(it, 3, false);
}

/* p and xi go `length` along -along; totals: free part of xi times q, for gamma. */
TB_MPRGP_FN void mprgp_go(tb_mprgp *it, double length)
{
    const tb_real step = TB_R(length);
    TB_MPRGP_EACH(row, it->problem->number_of_rows)
    {
        const mprgp_bounds b = mprgp_bounds_of(it, row);
        const tb_real p = mprgp_clamped(it->p[row] - step * it->along[row], b);
        const tb_real q = it->q[row], xi = it->xi[row] - step * q;
        it->p[row] = p;
        it->xi[row] = xi;
        TB_MPRGP_ADD(it, 0, row, (double)(it->r[row] * mprgp_free(p, xi, b) * q));
    }
    it->summed = false;
    mprgp_total(it, 1, false);
}

/* A projected gradient step of the free impulses, after which xi is a product. */
TB_MPRGP_FN void mprgp_expand(tb_mprgp *it)
{
    TB_MPRGP_EACH(row, it->problem->number_of_rows)
    {
        const mprgp_bounds b = mprgp_bounds_of(it, row);
        const tb_real p = it->p[row], move = it->r[row] * mprgp_free(p, it->xi[row], b);
        it->p[row] = mprgp_clamped(p - TB_R(it->step) * move, b);
    }
    mprgp_sum_xi(it);
}

/* The direction of the impulses that want to leave their bounds. */
TB_MPRGP_FN void mprgp_leave_bounds(tb_mprgp *it)
{
    TB_MPRGP_EACH(row, it->problem->number_of_rows)
    it->along[row] = it->r[row] * mprgp_chopped(it->p[row], it->xi[row], mprgp_bounds_of(it, row));
}

/* Impulses into the bounds of a new round, which follow from their normal impulses. */
TB_MPRGP_FN void mprgp_bound(tb_mprgp *it)
{
    const tb_problem *problem = it->problem;
    mprgp_meet(it);
    TB_MPRGP_EACH(b, problem->number_of_blocks)
    {
        const tb_block *block = &problem->blocks[b];
        tb_real *p = it->p + block->row, *limit = it->limit + block->row;
        if (!(p[0] > 0)) p[0] = 0;
        limit[0] = TB_REAL_MAX;
        if (block->rows == 1) continue;
        limit[1] = block->mu * p[0];
        p[1] = tb_clamp(p[1], -limit[1], limit[1]);
    }
    mprgp_sum_xi(it);
}

/* r, and the step of the projected gradient: a share of 2 / |R G|, by the power method. */
TB_MPRGP_FN void mprgp_measure(tb_mprgp *it)
{
    const int32_t rows = it->problem->number_of_rows;
    double largest = 1, scale = 1;
    TB_MPRGP_EACH(row, rows)
    {
        tb_real g = 0;
        for (int32_t j = 0; j < it->y.width; j++)
            g += it->y.of_row[j * rows + row] * it->y.of_row[j * rows + row];
        it->r[row] = g > 0 ? 1 / g : 0;
        /* unlike numbers reach every eigenvector */
        it->along[row] = it->r[row] * TB_R(1 + 0.1 * ((row * 5) % 13));
    }
    for (int32_t i = 0; i < TB_MPRGP_SPECTRUM; i++) {
        mprgp_sum_dofs(it, it->along);
        TB_MPRGP_EACH(row, rows)
        {
            const double v = (double)it->along[row], r = (double)it->r[row];
            const double next = scale * r * (double)mprgp_speed(it, row);
            it->along[row] = TB_R(next);
            if (!(r > 0)) continue;
            TB_MPRGP_ADD(it, 0, row, next * next / r);
            TB_MPRGP_ADD(it, 1, row, v * v / r);
        }
        mprgp_total(it, 2, false);
        if (!(it->total[1] > 0) || !(it->total[0] > 0)) break;
        largest = sqrt(it->total[0] / it->total[1]) / scale;
        scale = 1 / largest;
    }
    it->step = 2 * TB_MPRGP_STEP_SHARE / (largest > 1 ? largest : 1);
}

/* The residual meets this round's target: true where the solve ends. */
TB_MPRGP_FN bool mprgp_end_round(tb_mprgp *it)
{
    if (!it->summed) { /* rounding of many changes may hide the rest */
        mprgp_sum_xi(it);
        return false;
    }
    if (!it->rubs) return true;
    const double exact = sqrt(it->total[3]);
    if (exact <= it->tolerance) return true;
    it->target = fmax(TB_MPRGP_ROUND_SHARE * exact, it->tolerance / 2);
    mprgp_bound(it);
    return false;
}

/* Products until the tolerance is met (true), or their number is up. From p; r is written. */
TB_MPRGP_FN bool tb_mprgp_iterate(tb_mprgp *it)
{
    double gamma = 0;
    it->made = 0;
    it->target = it->rubs ? 0 : it->tolerance;
    mprgp_measure(it);
    mprgp_bound(it);
    while (it->made < it->most) {
        mprgp_look(it, gamma);
        gamma = 0;
        if (!(it->total[0] <= TB_RESIDUAL_UNKNOWN)) return false;
        if (it->target == 0)
            it->target = fmax(TB_MPRGP_ROUND_SHARE * sqrt(it->total[3]), it->tolerance);
        if (sqrt(it->total[0]) <= it->target) {
            if (mprgp_end_round(it)) return true;
            continue;
        }
        const bool expands = it->total[1] <= it->total[2];
        if (!expands) mprgp_leave_bounds(it);
        mprgp_multiply(it);
        const double curvature = it->total[0], length = it->total[1] / it->total[0];
        if (!(curvature > 0)) return false;
        const bool crosses = length > it->least;
        mprgp_go(it, crosses ? it->least : length);
        if (expands && crosses)
            mprgp_expand(it);
        else if (expands)
            gamma = it->total[0] / curvature;
    }
    return false;
}

#endif
