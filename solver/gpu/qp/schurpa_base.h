/* K0 on the card: the free variables, their factored matrix, and the parts of a set's answer:
 * the base solution and the border's columns. */
#ifndef TB_GPU_SCHURPA_BASE_H
#define TB_GPU_SCHURPA_BASE_H

#include "gpu/qp/schurpa_schur.h"

/* ---- K0 ---- */

/* The list of free variables, their ranks, how far apart two that H couples are among them, and the
 * plan for the band; by block 0. */
TB_CARD_LARGE void list_free(const card *c, int *shared)
{
    const int EACH = 8;
    card_control *k = c->control;
    const int n = c->given.n;
    int count = 0, reach = 0;
    for (int begin = 0; begin < n; begin += LANES * EACH) {
        const int own = begin + (int)threadIdx.x * EACH;
        bool is_free[EACH];
        int mine = 0;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            is_free[e] = own + e < n && c->bound[own + e] < 0;
            mine += is_free[e];
        }
        int sum = mine;
        for (int step = 1; step < WARP; step *= 2) {
            const int other = __shfl_up_sync(0xffffffffu, sum, step);
            if (lane_of() >= step) sum += other;
        }
        __syncthreads();
        if (lane_of() == WARP - 1) shared[warp_of()] = sum;
        __syncthreads();
        int place = count + sum - mine;
        for (int w = 0; w < WARPS; w++) {
            if (w < warp_of()) place += shared[w];
            count += shared[w];
        }
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (own + e >= n) continue;
            c->rank[own + e] = place;
            if (is_free[e]) c->free[place++] = own + e;
        }
    }
    if (threadIdx.x == 0) {
        c->rank[n] = count;
        shared[WARPS] = 0;
    }
    __syncthreads();
    for (int p = (int)threadIdx.x; p < count; p += LANES) {
        const int end = c->free[p] + c->given.half_bandwidth + 1;
        const int far = c->rank[end < n ? end : n] - 1 - p;
        if (far > reach) reach = far;
    }
    atomicMax(&shared[WARPS], reach);
    __syncthreads();
    if (threadIdx.x > 0) return;
    plan_band(&k->shape, count, shared[WARPS]);
    k->bad = INT32_MAX;
    k->shifted = 0;
    k->slots = k->used = k->since_factor = 0;
    k->schur_rows = k->schur_known = 0;
    c->given.result->factorizations++;
}

/* x of the base's bounds alone. */
TB_CARD void place_base(const card *c)
{
    int from, to;
    own_variables(c, &from, &to);
    for (int j = from + (int)threadIdx.x; j < to; j += LANES) {
        const int bound = c->base[j];
        c->x[j] = bound < 0 ? (tb_real)0 : bound_value(c, bound);
        if (c->x[j] != 0) c->control->shifted = 1;
    }
}

/* The base becomes the present set. */
TB_CARD void adopt_base(const card *c, const band_shape *s)
{
    int from, to;
    own_variables(c, &from, &to);
    for (int j = from + (int)threadIdx.x; j < to; j += LANES) {
        const int bound = c->bound[j];
        c->base[j] = bound;
        c->slot[j] = -1;
        c->row[j] = bound < 0 ? row_of_position(s, c->rank[j]) : -1;
    }
    place_base(c);
}

/* v = G^-1 (-f - H x_B): the free variables' part of the solution */
TB_CARD void solve_base(const card *c, const band_shape *s, void *memory)
{
    int from, to;
    const bool shifted = c->control->shifted != 0;
    if (shifted) {
        multiply_share(c, c->x, (double *)memory, c->given.block_memory);
        meet_all(c);
    }
    own_variables(c, &from, &to);
    for (int j = from + (int)threadIdx.x; j < to; j += LANES)
        c->base_pull[j] = (double)c->f[j] + (shifted ? product_at(c, j) : 0);
    meet_all(c);
    for (int t = (int)(blockIdx.x * LANES + threadIdx.x); t < s->rows * OCTET;
         t += (int)gridDim.x * LANES) {
        const int j = t % OCTET == 0 ? row_variable(c, s, t / OCTET) : -1;
        c->panel[t] = j >= 0 ? (tb_real)-c->base_pull[j] : (tb_real)0;
    }
    meet_all(c);
    solve_timed(c, s, OCTET, 1, 1, (solve_memory *)memory);
    for (int r = (int)(blockIdx.x * LANES + threadIdx.x); r < s->rows; r += (int)gridDim.x * LANES)
        c->base_solution[r] = c->panel[r * OCTET];
    meet_all(c);
}

/* Factors K0 at the present set; false where it is not positive definite. */
TB_CARD_LARGE bool factor_base(const card *c, void *memory)
{
    begin_time(c);
    if (blockIdx.x == 0) list_free(c, (int *)memory);
    meet_all(c);
    const band_shape s = c->control->shape;
    adopt_base(c, &s);
    factor_band(c, &s, (factor_memory *)memory);
    end_time(c, &c->given.result->factor_seconds);
    if (c->control->bad != INT32_MAX) return false;
    solve_base(c, &s, memory);
    return true;
}

/* ---- answers ---- */

/* x of the present set, from v and the border's columns: a lane has a variable, a warp a share of
 * the columns. To be followed by a meeting. */
TB_CARD_LARGE void find_x(const card *c, const band_shape *s, tb_real *shared)
{
    const int used = c->control->used;
    int from, to;
    own_variables(c, &from, &to);
    for (int begin = from; begin < to; begin += WARP) {
        const int j = begin + lane_of(), bound = j < to ? c->bound[j] : 0;
        const bool sums = j < to && bound < 0 && c->base[j] < 0;
        const int row = sums ? c->row[j] : 0;
        tb_real x = 0;
#pragma unroll 8
        for (int t = warp_of(); t < used; t += WARPS) {
            const int slot = c->order[t];
            if (sums) x = fma(c->lower[slot], c->column[(int64_t)slot * s->rows + row], x);
        }
        __syncthreads();
        shared[threadIdx.x] = x;
        __syncthreads();
        if (warp_of() > 0 || j >= to) continue;
        if (bound >= 0) {
            x = bound_value(c, bound);
        } else if (!sums) {
            x = bound_value(c, c->base[j]) + c->lower[c->slot[j]];
        } else {
            x = c->base_solution[row];
#pragma unroll
            for (int w = 0; w < WARPS; w++) x += shared[w * WARP + lane_of()];
        }
        c->x[j] = x;
    }
}

/* Residual of the free rows, solved for and added to v: one step of iterative refinement. */
TB_CARD void refine_base(const card *c, const band_shape *s, void *memory)
{
    for (int t = (int)(blockIdx.x * LANES + threadIdx.x); t < s->rows * OCTET;
         t += (int)gridDim.x * LANES) {
        const int j = t % OCTET == 0 ? row_variable(c, s, t / OCTET) : -1;
        c->panel[t] = j >= 0 && c->bound[j] < 0 ? (tb_real)-c->gradient[j] : (tb_real)0;
    }
    meet_all(c);
    solve_timed(c, s, OCTET, 1, 1, (solve_memory *)memory);
    for (int r = (int)(blockIdx.x * LANES + threadIdx.x); r < s->rows; r += (int)gridDim.x * LANES)
        c->base_solution[r] += c->panel[r * OCTET];
    meet_all(c);
}

/* Columns that the set needs, and the border's unknowns. */
TB_CARD void border_base(const card *c, const band_shape *s, void *memory)
{
    card_control *k = c->control;
    const int first = k->slots;
    list_fresh(c, (int *)memory);
    meet_all(c);
    const int fresh = number_fresh(c, (int *)memory);
    if (fresh > 0) {
        meet_all(c);
        const int width = fresh <= OCTET ? OCTET : COLUMNS;
        const int panels = (fresh + width - 1) / width;
        fill_fresh(c, s, first, fresh, width, panels);
        meet_all(c);
        solve_timed(c, s, width, panels, fresh, (solve_memory *)memory);
        keep_fresh(c, s, first, fresh, width);
        if (blockIdx.x == 0 && threadIdx.x == 0) k->slots = first + fresh;
        meet_all(c);
        multiply_columns(c, s, first, fresh);
    }
    if (blockIdx.x == 0) list_border(c, (schur_memory *)memory);
    meet_all(c);
    solve_border(c, (schur_memory *)memory);
}

/* After a refinement: the same border against another v. */
TB_CARD void border_again(const card *c, const band_shape *s, void *memory)
{
    if (c->control->slots == 0) return;
    multiply_columns(c, s, c->control->slots, 0);
    meet_all(c);
    solve_border(c, (schur_memory *)memory);
}

#endif
