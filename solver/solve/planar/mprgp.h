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
 * processor. Sums run over the lanes' shares in halves on both, so both give the same bytes. */
#ifndef TB_MPRGP_H
#define TB_MPRGP_H

#include "contact/judge.h"
#include "solve/planar/betz.h"
#include "solve/planar/betz_batch.h"

enum {
    TB_MPRGP_SUMS = 4, /* at once */
    TB_MPRGP_SHARED = 2 * 32 * (TB_MPRGP_SUMS + 1) * 8,
    TB_MPRGP_SPECTRUM = 10 /* products that estimate the largest eigenvalue */
};

/* Share of 2 / |G| of the projected gradient's step: the estimate of |G| is from below. */
static const double TB_MPRGP_STEP_SHARE = 0.85;
/* The residual that ends a round of fixed bounds, as a share of that of Coulomb's law. */
static const double TB_MPRGP_ROUND_SHARE = 0.1;

#define tb_mprgp TB_SYMBOL(tb_mprgp)
typedef struct tb_mprgp {
    tb_betz z;               /* p, r, s and Y by dof */
    tb_real *xi, *along, *q; /* rows: velocity; direction; G times it */
    tb_real *limit;          /* blocks: largest tangential impulse of this round, N s */
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
#define TB_MPRGP_EACH(i, n)          for (int32_t i = (int32_t)threadIdx.x; i < (n); i += TB_MPRGP_LANES)
#define TB_MPRGP_ADD(it, k, i, term) ((it)->own[k] += (term))

TB_MPRGP_FN void mprgp_meet(tb_mprgp *it)
{
    (void)it;
    __syncthreads();
}

/* Two places by turns: a lane may write the next shares while others read the last. */
TB_MPRGP_FN void mprgp_total(tb_mprgp *it, int32_t sums)
{
    const int32_t warp = (int32_t)threadIdx.x / 32, lane = (int32_t)threadIdx.x % 32;
    double *place = it->shares + it->turn * 32 * (TB_MPRGP_SUMS + 1);
    it->turn = 1 - it->turn;
    for (int32_t k = 0; k < TB_MPRGP_SUMS; k++) {
        if (k >= sums) break;
        for (int half = 16; half > 0; half /= 2)
            it->own[k] += __shfl_xor_sync(0xffffffffu, it->own[k], half);
        if (lane == 0) place[32 * k + warp] = it->own[k];
    }
    for (int half = 16; half > 0; half /= 2)
        it->own_least = fmin(it->own_least, __shfl_xor_sync(0xffffffffu, it->own_least, half));
    if (lane == 0) place[32 * TB_MPRGP_SUMS + warp] = it->own_least;
    __syncthreads();
    for (int32_t k = 0; k < TB_MPRGP_SUMS; k++) {
        if (k >= sums) break;
        it->total[k] = place[32 * k + lane];
        for (int half = 16; half > 0; half /= 2)
            it->total[k] += __shfl_xor_sync(0xffffffffu, it->total[k], half);
        it->own[k] = 0;
    }
    it->least = place[32 * TB_MPRGP_SUMS + lane];
    for (int half = 16; half > 0; half /= 2)
        it->least = fmin(it->least, __shfl_xor_sync(0xffffffffu, it->least, half));
    it->own_least = TB_RESIDUAL_UNKNOWN;
}
#else
#define TB_MPRGP_FN         TB_STATIC
#define TB_MPRGP_EACH(i, n) for (int32_t i = 0; i < (n); i++)
#define TB_MPRGP_ADD(it, k, i, term)                                                               \
    ((it)->shares[(k)*TB_MPRGP_LANES + (i) % TB_MPRGP_LANES] += (term))

TB_MPRGP_FN void mprgp_meet(tb_mprgp *it)
{
    (void)it;
}

/* The lanes' shares of the first `sums` sums, added up in `total`, and the least number. */
TB_MPRGP_FN void mprgp_total(tb_mprgp *it, int32_t sums)
{
    for (int32_t k = 0; k < sums; k++) {
        double *share = it->shares + k * TB_MPRGP_LANES;
        for (int32_t warp = 0; warp < 32; warp++)
            for (int32_t half = 16; half > 0; half /= 2)
                for (int32_t i = 32 * warp; i < 32 * warp + half; i++) share[i] += share[i + half];
        for (int32_t warp = 1; warp < 32; warp++) share[warp] = share[32 * warp];
        for (int32_t half = 16; half > 0; half /= 2)
            for (int32_t i = 0; i < half; i++) share[i] += share[i + half];
        it->total[k] = share[0];
        for (int32_t i = 0; i < TB_MPRGP_LANES; i++) share[i] = 0;
    }
    it->least = it->own_least;
    it->own_least = TB_RESIDUAL_UNKNOWN;
}
#endif

/* Y_row . s of the row k of a block. */
TB_FN tb_real mprgp_speed(const tb_mprgp *it, const tb_block *block, int32_t k)
{
    const tb_problem *problem = it->z.problem;
    const tb_real *y = problem->values + block->value + (int64_t)k * block->width;
    tb_real speed = 0;
    for (int32_t i = 0; i < block->segments; i++) {
        const tb_segment run = problem->segments[block->segment + i];
        for (int32_t j = 0; j < run.count; j++) speed += *y++ * it->z.s[run.dof + j];
    }
    return speed;
}

TB_FN tb_real mprgp_low(const tb_mprgp *it, int32_t b, int32_t k)
{
    return k == 0 ? 0 : -it->limit[b];
}

TB_FN tb_real mprgp_high(const tb_mprgp *it, int32_t b, int32_t k)
{
    return k == 0 ? TB_REAL_MAX : it->limit[b];
}

/* The velocity of an impulse within its bounds, else 0. */
TB_FN tb_real mprgp_free(tb_real p, tb_real xi, tb_real low, tb_real high)
{
    return p > low && p < high ? xi : 0;
}

/* The velocity of an impulse at a bound that it wants to leave, else 0. */
TB_FN tb_real mprgp_chopped(tb_real p, tb_real xi, tb_real low, tb_real high)
{
    if (p <= low && p >= high) return 0;
    if (p <= low) return xi < 0 ? xi : 0;
    return p >= high && xi > 0 ? xi : 0;
}

TB_FN tb_real mprgp_clamped(tb_real p, tb_real low, tb_real high)
{
    if (!(p > low)) return low;
    return p < high ? p : high;
}

/* s <- Y of an array of rows. */
TB_MPRGP_FN void mprgp_sum_dofs(tb_mprgp *it, tb_real *rows)
{
    tb_betz z = it->z;
    z.p = rows;
    mprgp_meet(it);
    TB_MPRGP_EACH(d, it->z.problem->number_of_dofs)
    tb_betz_update_dof(&z, d);
    mprgp_meet(it);
    it->made++;
}

/* xi <- G p + c. */
TB_MPRGP_FN void mprgp_sum_xi(tb_mprgp *it)
{
    const tb_problem *problem = it->z.problem;
    mprgp_sum_dofs(it, it->z.p);
    TB_MPRGP_EACH(b, problem->number_of_blocks)
    {
        const tb_block *block = &problem->blocks[b];
        for (int32_t k = 0; k < block->rows; k++)
            it->xi[block->row + k] = mprgp_speed(it, block, k) + problem->c[block->row + k];
    }
    it->summed = true;
}

/* q <- G along; totals: along' G along, xi' along; least: how far p may go along -along. */
TB_MPRGP_FN void mprgp_multiply(tb_mprgp *it)
{
    const tb_problem *problem = it->z.problem;
    mprgp_sum_dofs(it, it->along);
    TB_MPRGP_EACH(b, problem->number_of_blocks)
    {
        const tb_block *block = &problem->blocks[b];
        for (int32_t k = 0; k < block->rows; k++) {
            const int32_t row = block->row + k;
            const tb_real a = it->along[row], q = mprgp_speed(it, block, k);
            it->q[row] = q;
            TB_MPRGP_ADD(it, 0, b, (double)a * (double)q);
            TB_MPRGP_ADD(it, 1, b, (double)a * (double)it->xi[row]);
            const tb_real bound = a > 0 ? mprgp_low(it, b, k) : mprgp_high(it, b, k);
            if (a == 0 || bound >= TB_REAL_MAX) continue;
            const double far = (double)((it->z.p[row] - bound) / a);
            if (far < it->own_least) it->own_least = far;
        }
    }
    mprgp_total(it, 2);
}

/* The natural map of a row with this round's bounds. */
TB_FN double mprgp_natural(tb_real p, tb_real xi, tb_real low, tb_real high)
{
    return (double)(p - mprgp_clamped(p - xi, low, high));
}

/* The next direction, the free part less gamma times the last one, and the totals that choose the
 * step: squares of the natural map, of the chopped part, the free part times its reduced self, and
 * squares of the natural map of Coulomb's law. */
TB_MPRGP_FN void mprgp_look(tb_mprgp *it, double gamma)
{
    const tb_problem *problem = it->z.problem;
    TB_MPRGP_EACH(b, problem->number_of_blocks)
    {
        const tb_block *block = &problem->blocks[b];
        for (int32_t k = 0; k < block->rows; k++) {
            const int32_t row = block->row + k;
            const tb_real low = mprgp_low(it, b, k), high = mprgp_high(it, b, k);
            const tb_real p = it->z.p[row], xi = it->xi[row], r = it->z.r[row];
            const tb_real within = mprgp_free(p, xi, low, high);
            const tb_real chopped = mprgp_chopped(p, xi, low, high);
            const double natural = mprgp_natural(p, xi, low, high);
            const double room = (double)(xi > 0 ? p - low : high - p) / it->step;
            const double reach = (double)tb_abs(r * within);
            it->along[row] = gamma == 0 ? r * within : r * within - TB_R(gamma) * it->along[row];
            TB_MPRGP_ADD(it, 0, b, natural * natural);
            TB_MPRGP_ADD(it, 1, b, (double)(r * chopped * chopped));
            TB_MPRGP_ADD(it, 2, b, (room < reach ? room : reach) * (double)tb_abs(within));
        }
        if (!it->rubs) continue;
        double p[3] = {0, 0, 0}, xi[3] = {0, 0, 0}; /* of a law in the plane the last is not read */
        for (int32_t k = 0; k < block->rows && k < 2; k++) {
            p[k] = (double)it->z.p[block->row + k];
            xi[k] = (double)it->xi[block->row + k];
        }
        TB_MPRGP_ADD(it, 3, b, tb_block_natural(block, p, xi));
    }
    mprgp_total(it, it->rubs ? 4 : 3);
}

/* p and xi go `length` along -along; totals: free part of xi times q, for gamma. */
TB_MPRGP_FN void mprgp_go(tb_mprgp *it, double length)
{
    const tb_problem *problem = it->z.problem;
    const tb_real step = TB_R(length);
    TB_MPRGP_EACH(b, problem->number_of_blocks)
    {
        const tb_block *block = &problem->blocks[b];
        for (int32_t k = 0; k < block->rows; k++) {
            const int32_t row = block->row + k;
            const tb_real low = mprgp_low(it, b, k), high = mprgp_high(it, b, k);
            const tb_real p = mprgp_clamped(it->z.p[row] - step * it->along[row], low, high);
            const tb_real q = it->q[row], xi = it->xi[row] - step * q;
            it->z.p[row] = p;
            it->xi[row] = xi;
            TB_MPRGP_ADD(it, 0, b, (double)(it->z.r[row] * mprgp_free(p, xi, low, high) * q));
        }
    }
    it->summed = false;
    mprgp_total(it, 1);
}

/* A projected gradient step of the free impulses, after which xi is a product. */
TB_MPRGP_FN void mprgp_expand(tb_mprgp *it)
{
    const tb_problem *problem = it->z.problem;
    TB_MPRGP_EACH(b, problem->number_of_blocks)
    {
        const tb_block *block = &problem->blocks[b];
        for (int32_t k = 0; k < block->rows; k++) {
            const int32_t row = block->row + k;
            const tb_real low = mprgp_low(it, b, k), high = mprgp_high(it, b, k);
            const tb_real p = it->z.p[row];
            const tb_real move = it->z.r[row] * mprgp_free(p, it->xi[row], low, high);
            it->z.p[row] = mprgp_clamped(p - TB_R(it->step) * move, low, high);
        }
    }
    mprgp_sum_xi(it);
}

/* The direction of the impulses that want to leave their bounds. */
TB_MPRGP_FN void mprgp_leave_bounds(tb_mprgp *it)
{
    const tb_problem *problem = it->z.problem;
    TB_MPRGP_EACH(b, problem->number_of_blocks)
    {
        const tb_block *block = &problem->blocks[b];
        for (int32_t k = 0; k < block->rows; k++) {
            const int32_t row = block->row + k;
            it->along[row] =
                it->z.r[row] *
                mprgp_chopped(it->z.p[row], it->xi[row], mprgp_low(it, b, k), mprgp_high(it, b, k));
        }
    }
}

/* Impulses into the bounds of a new round, which follow from their normal impulses. */
TB_MPRGP_FN void mprgp_bound(tb_mprgp *it)
{
    const tb_problem *problem = it->z.problem;
    TB_MPRGP_EACH(b, problem->number_of_blocks)
    {
        const tb_block *block = &problem->blocks[b];
        tb_real *p = it->z.p + block->row;
        p[0] = mprgp_clamped(p[0], 0, TB_REAL_MAX);
        it->limit[b] = block->rows > 1 ? block->mu * p[0] : 0;
        if (block->rows > 1) p[1] = mprgp_clamped(p[1], -it->limit[b], it->limit[b]);
    }
    mprgp_sum_xi(it);
}

/* r, and the step of the projected gradient: a share of 2 / |R G|, by the power method. */
TB_MPRGP_FN void mprgp_measure(tb_mprgp *it)
{
    const tb_problem *problem = it->z.problem;
    double largest = 1, scale = 1;
    TB_MPRGP_EACH(b, problem->number_of_blocks)
    {
        const tb_block *block = &problem->blocks[b];
        tb_betz_calculate_r(&it->z, b, 1, false);
        for (int32_t k = 0; k < block->rows; k++) /* unlike numbers reach every eigenvector */
            it->along[block->row + k] =
                it->z.r[block->row + k] * TB_R(1 + 0.1 * (((block->row + k) * 5) % 13));
    }
    for (int32_t i = 0; i < TB_MPRGP_SPECTRUM; i++) {
        mprgp_sum_dofs(it, it->along);
        TB_MPRGP_EACH(b, problem->number_of_blocks)
        {
            const tb_block *block = &problem->blocks[b];
            for (int32_t k = 0; k < block->rows; k++) {
                const int32_t row = block->row + k;
                const double v = (double)it->along[row], r = (double)it->z.r[row];
                const double next = scale * r * (double)mprgp_speed(it, block, k);
                it->along[row] = TB_R(next);
                if (!(r > 0)) continue;
                TB_MPRGP_ADD(it, 0, b, next * next / r);
                TB_MPRGP_ADD(it, 1, b, v * v / r);
            }
        }
        mprgp_total(it, 2);
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
