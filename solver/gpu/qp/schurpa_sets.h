/* Sets on the card: the prediction of each bound's status from the present answer, and the next
 * action.
 *
 * A variable is free or held by one bound. The rules are those of qp/qp.c: all variables that
 * contradict the set change at once; when a set repeats, only the first of them changes from then
 * on. */
#ifndef TB_GPU_SCHURPA_SETS_H
#define TB_GPU_SCHURPA_SETS_H

#include "tribo_qp.h"
#include "gpu/qp/band_multiply.h"

typedef enum action { ACT_MOVE, ACT_FACTOR, ACT_REFINE, ACT_END } action;

enum { FREE = -1 };

/* largest[] of control and of each block */
enum {
    LARGEST_X,
    LARGEST_LAMBDA,
    LARGEST_FORCE,
    LARGEST_REST,
    LARGEST_PART,
    LARGEST_OUTSIDE,
    LARGEST_NEGATIVE,
    LARGEST_GAP,
    LARGEST_USED
};

TB_CARD unsigned long long hash_of(int variable, int bound)
{
    unsigned long long h = ((unsigned long long)(unsigned)variable << 32 | (unsigned)(bound + 1)) +
                           0x9e3779b97f4a7c15ull;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ h >> 27) * 0x94d049bb133111ebull;
    return h ^ h >> 31;
}

TB_CARD tb_real bound_value(const card *c, int bound)
{
    return c->b[bound] / c->value[bound];
}

/* ---- judgement ---- */

/* a value that is not a number is the largest of all */
TB_CARD void grow_to(double *largest, double value)
{
    if (!(fabs(value) <= *largest)) *largest = fabs(value);
}

/* Gradient, and the scales of ties and of the residual, for this block's variables: the formulas of
 * qp/qp_judge.c. To be followed by a meeting of all and gather_largest. */
TB_CARD_LARGE void judge_share(const card *c, double *shared)
{
    int from, to;
    double largest[MAXIMA] = {0};
    own_variables(c, &from, &to);
    for (int j = from + (int)threadIdx.x; j < to; j += LANES) {
        const double product = product_at(c, j), x = (double)c->x[j], force = (double)c->f[j];
        const double gradient = product + force;
        const int bound = c->bound[j];
        double rest = gradient;
        c->gradient[j] = gradient;
        grow_to(&largest[LARGEST_X], x);
        grow_to(&largest[LARGEST_FORCE], product);
        for (int k = c->first[j]; k < c->first[j + 1]; k++) {
            const int i = c->of[k];
            const double v = (double)c->value[i], b = (double)c->b[i], part = v * x;
            double lambda = 0;
            if (i == bound) {
                lambda = (double)(tb_real)(-gradient / v);
                rest += v * lambda;
                grow_to(&largest[LARGEST_LAMBDA], lambda);
                grow_to(&largest[LARGEST_FORCE], v * lambda);
                if (i >= c->given.equalities && lambda < 0)
                    grow_to(&largest[LARGEST_NEGATIVE], lambda);
            }
            grow_to(&largest[LARGEST_PART], part);
            if (i < c->given.equalities || part > b || !(part - b <= DBL_MAX))
                grow_to(&largest[LARGEST_OUTSIDE], part - b);
            if (i >= c->given.equalities) grow_to(&largest[LARGEST_GAP], lambda * (b - part));
        }
        grow_to(&largest[LARGEST_REST], rest);
    }
    __syncthreads();
    for (int q = 0; q < LARGEST_USED; q++) {
        const double of_warp = largest_of_warp(largest[q]);
        if (lane_of() == 0) shared[q * WARPS + warp_of()] = of_warp;
    }
    __syncthreads();
    if (threadIdx.x < LARGEST_USED) {
        double most = 0;
        for (int w = 0; w < WARPS; w++) grow_to(&most, shared[(int)threadIdx.x * WARPS + w]);
        c->maxima[blockIdx.x * MAXIMA + threadIdx.x] = most;
    }
}

/* Every block learns all maxima, and keeps them in its memory. */
TB_CARD void gather_largest(const card *c, double *largest)
{
    __syncthreads();
    for (int q = warp_of(); q < LARGEST_USED; q += WARPS) {
        double most = 0;
        for (int b = lane_of(); b < (int)gridDim.x; b += WARP)
            grow_to(&most, c->maxima[b * MAXIMA + q]);
        most = largest_of_warp(most);
        if (lane_of() == 0) largest[q] = most;
    }
    __syncthreads();
}

TB_CARD double card_relative(double value, double scale)
{
    const double ratio = scale > 0 ? value / scale : value;
    return fabs(ratio) <= DBL_MAX ? ratio : DBL_MAX;
}

TB_CARD double card_bounded(double value)
{
    return fabs(value) <= DBL_MAX ? value : DBL_MAX;
}

/* By one lane. */
TB_CARD void make_kkt(const card *c, const double *largest, tb_kkt *kkt)
{
    const card_control *k = c->control;
    const double force = fmax(largest[LARGEST_FORCE], k->largest_f);
    const double length = fmax(largest[LARGEST_PART], k->largest_b);
    double multiplier = largest[LARGEST_LAMBDA];
    if (k->largest_a > 0) multiplier = fmax(multiplier, k->largest_f / k->largest_a);
    const double parts[4] = {card_relative(largest[LARGEST_REST], force),
                             card_relative(largest[LARGEST_OUTSIDE], length),
                             card_relative(largest[LARGEST_NEGATIVE], multiplier),
                             card_relative(largest[LARGEST_GAP], multiplier * length)};
    kkt->stationarity = card_bounded(largest[LARGEST_REST]);
    kkt->primal = card_bounded(largest[LARGEST_OUTSIDE]);
    kkt->dual = card_bounded(largest[LARGEST_NEGATIVE]);
    kkt->complementarity = card_bounded(largest[LARGEST_GAP]);
    kkt->relative = 0;
    for (int p = 0; p < 4; p++) grow_to(&kkt->relative, parts[p]);
}

/* ---- the next set ---- */

/* Predicted status of variable j, and its distance from another status: a force, over the
 * largest one. */
TB_CARD int predict_bound(const card *c, int j, double primal_tie, double dual_tie, double *near)
{
    const int bound = c->bound[j];
    const double x = (double)c->x[j], gradient = c->gradient[j];
    int next = bound;
    *near = DBL_MAX;
    if (bound >= 0) {
        const double v = (double)c->value[bound];
        const double lambda = (double)(tb_real)(-gradient / v);
        if (bound < c->given.equalities) return bound;
        *near = fabs(gradient);
        if (lambda >= -dual_tie) return bound;
        next = FREE;
    }
    double worst = -primal_tie;
    for (int k = c->first[j]; k < c->first[j + 1]; k++) {
        const int i = c->of[k];
        const double v = (double)c->value[i], slack = (double)c->b[i] - v * x;
        if (i == bound) continue;
        if (slack < worst) {
            worst = slack;
            next = i;
        }
        const double back = fabs(slack / v * (double)c->hessian[(int64_t)j * c->given.stride]);
        if (bound < 0 && back < *near) *near = back;
    }
    return next;
}

/* Predicts this block's variables and counts their votes. */
TB_CARD_LARGE void vote_share(const card *c, const double *largest, vote *box)
{
    const card_control *k = c->control;
    const double a = k->largest_a,
                 dual = fmax(a > 0 ? k->largest_f / a : 0, largest[LARGEST_LAMBDA]);
    const double primal = fmax(k->largest_b, a * largest[LARGEST_X]);
    const double scale = largest[LARGEST_FORCE];
    unsigned long long hash = 0;
    int from, to;
    own_variables(c, &from, &to);
    for (int j = from + (int)threadIdx.x; j < to; j += LANES) {
        double near;
        const int next =
            predict_bound(c, j, c->given.options.tie * primal, c->given.options.tie * dual, &near);
        c->next[j] = next;
        c->bucket[j] = -1;
        if (next != c->bound[j]) {
            atomicAdd(&box->changed, 1);
            atomicMin(&box->first, j);
            if (next != c->base[j] && c->slot[j] < 0) atomicAdd(&box->fresh, 1);
        } else if (next == c->base[j] && c->slot[j] < 0 && near < scale) {
            int bucket = 0;
            for (double at = scale / 2; bucket < BUCKETS - 1 && near < at; at *= 0.5) bucket++;
            c->bucket[j] = (signed char)bucket;
            atomicAdd(&box->candidates[bucket], 1);
        }
        hash += hash_of(j, next);
    }
    for (int step = WARP / 2; step > 0; step /= 2) hash += __shfl_xor_sync(0xffffffffu, hash, step);
    if (lane_of() == 0) atomicAdd(&box->hash, hash);
}

TB_CARD void clear_vote(vote *box, int n)
{
    if (threadIdx.x >= BUCKETS) return;
    box->candidates[threadIdx.x] = 0;
    if (threadIdx.x > 0) return;
    box->changed = box->fresh = 0;
    box->first = n;
    box->hash = 0;
}

/* Whether a set was solved for before, and how many sets ago; by block 0. */
TB_CARD int visited_before(const card *c, unsigned long long hash, int *shared)
{
    const int visits = c->control->visits;
    if (threadIdx.x == 0) *shared = -1;
    __syncthreads();
    for (int k = (int)threadIdx.x; k < visits; k += LANES)
        if (c->visited[k] == hash) atomicMax(shared, k);
    __syncthreads();
    return *shared < 0 ? 0 : visits - *shared;
}

#endif
