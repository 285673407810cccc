/* Decisions of block 0 while the others wait: whether the set is the solution, which constraints
 * change, and whether the border can take the change. */
#ifndef TB_GPU_SCHURPA_MANAGE_H
#define TB_GPU_SCHURPA_MANAGE_H

#include "gpu/qp/schurpa_sets.h"

/* Number of additional columns: as many as fill the panels. */
TB_CARD int choose_cutoff(const vote *box, int extra)
{
    int cutoff = BUCKETS;
    while (cutoff > 0 && box->candidates[cutoff - 1] <= extra) extra -= box->candidates[--cutoff];
    return cutoff;
}

/* Nothing changes: is this the solution? */
TB_CARD void confirm_set(const card *c)
{
    card_control *k = c->control;
    tb_qp_result *result = c->given.result;
    const double relative = result->kkt.relative;
    k->action = ACT_END;
    if (relative <= c->given.options.tolerance) {
        result->status = TB_OK;
    } else if (k->round < c->given.options.maximum_refinements && relative <= 0.5 * k->before) {
        k->action = ACT_REFINE;
        k->round++;
        k->before = relative;
        result->refinements++;
    } else if (k->used > 0 && result->iterations < c->given.options.maximum_iterations) {
        k->action = ACT_FACTOR;
        k->single = -1;
        result->resets++;
    }
}

/* Whether new rows of the Schur matrix cost more than a factorization. Both walk through 64 rows at
 * a time: the factorization along the longer chain and the middle, the Schur matrix along the new
 * rows, whose columns have to be solved for beside. On an H200 64 rows take about 26 and 65 us. */
TB_CARD bool factors_sooner(const card_control *k, int changes)
{
    const int steps = k->shape.tiles[TOP] + k->shape.middle_tiles;
    return 5 * ((changes + TILE - 1) / TILE) >= 2 * steps && changes > TILE;
}

/* Decides whether the border can take the change, and which columns are added. */
TB_CARD void choose_move(const card *c, const vote *box)
{
    card_control *k = c->control;
    const int limit = c->given.limit;
    int fresh = box->fresh;
    if (k->single >= 0) fresh = c->slot[k->single] < 0 && c->next[k->single] != c->base[k->single];
    k->action = ACT_MOVE;
    k->cutoff = BUCKETS;
    const int changes = box->changed > fresh ? box->changed : fresh;
    if (k->slots + fresh > limit || k->since_factor + fresh > c->given.options.maximum_solves ||
        factors_sooner(k, k->single >= 0 ? 1 : changes)) {
        k->action = ACT_FACTOR;
        c->given.result->resets += c->given.options.method == TB_QP_SCHURPA;
        return;
    }
    if (fresh == 0) return;
    int extra = (fresh + 2 * COLUMNS - 1) / (2 * COLUMNS) * (2 * COLUMNS) - fresh;
    const int solves = c->given.options.maximum_solves - k->since_factor - fresh;
    if (extra > limit - k->slots - fresh) extra = limit - k->slots - fresh;
    if (extra > solves) extra = solves;
    k->cutoff = choose_cutoff(box, extra);
}

TB_CARD_LARGE void manage(const card *c, const double *largest, const vote *box, int *shared)
{
    card_control *k = c->control;
    tb_qp_result *result = c->given.result;
    const bool lane = threadIdx.x == 0, changes = box->changed > 0;
    if (lane) {
        if (k->action != ACT_REFINE) {
            result->iterations++;
            c->visited[k->visits++] = k->hash;
        }
        make_kkt(c, largest, &result->kkt);
        k->single = -1;
        k->action = ACT_MOVE;
        if (!(largest[LARGEST_X] <= DBL_MAX)) {
            result->status = TB_DIVERGED;
            k->action = ACT_END;
        } else if (!changes) {
            confirm_set(c);
        } else {
            k->round = 0;
            k->before = DBL_MAX;
            if (result->iterations >= c->given.options.maximum_iterations) k->action = ACT_END;
        }
    }
    __syncthreads();
    if (k->action != ACT_MOVE || !changes) return;

    /* a set that comes back: from now on the least variable changes alone */
    if (result->cycle == 0) {
        const int length = visited_before(c, box->hash, shared);
        __syncthreads();
        if (lane && length > 0) {
            result->cycle = length;
            k->visits = 0;
            c->visited[k->visits++] = k->hash;
        }
        __syncthreads();
    }
    unsigned long long hash = box->hash;
    if (result->cycle > 0) {
        const int j = box->first;
        hash = k->hash - hash_of(j, c->bound[j]) + hash_of(j, c->next[j]);
        const int length = visited_before(c, hash, shared);
        if (lane) k->single = j;
        if (lane && length > 0) k->action = ACT_END;
        __syncthreads();
    }
    if (!lane || k->action == ACT_END) return;
    k->hash = hash;
    choose_move(c, box);
}

#endif
