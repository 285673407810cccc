/* The border on the card: columns of R = K0^-1 U for variables that have changed since K0 was
 * factored, and the Schur matrix of these columns (Litven 3.2; qp/qp_border.c has it for any
 * constraints).
 *
 * With bounds alone, everything is a force or a displacement of one variable. A free variable that
 * becomes bound takes a force -z, so its column is that of a unit force; a bound one that moves or
 * becomes free has a displacement z, and its column is the response of the others:
 *
 *     x_F = v + sum z_s X_s,   X_s = G^-1 e_s  or  -G^-1 H_F,s        D_rs = U_r' X_s
 *     r is bound now:  sum_s D_rs z_s            = b_r - v_r
 *     r is free now:   sum_s (D_rs - H_rs) z_s   = (f + H_.B x_B)_r - U_r' v    (H_rs: s displaced)
 *     r has moved:     z_r                       = its displacement
 *
 * Eight columns take as long to solve for as one, and 32 little longer. So when some are needed,
 * columns of variables near a change are added: they often save a later solve. A column is kept
 * when its change is undone, until K0 is factored again. */
#ifndef TB_GPU_SCHURPA_BORDER_H
#define TB_GPU_SCHURPA_BORDER_H

#include "gpu/qp/band_solve.h"
#include "gpu/qp/schurpa_sets.h"

TB_CARD void begin_time(const card *c)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) c->control->marked = card_time();
}

TB_CARD void end_time(const card *c, double *seconds)
{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *seconds += 1e-9 * (double)(card_time() - c->control->marked);
}

/* The variable of a row, or -1. */
TB_CARD int row_variable(const card *c, const band_shape *s, int row)
{
    if (row < s->bottom_row) {
        return row < s->tiles[TOP] * TILE + s->middle_rows ? c->free[row] : -1;
    }
    const int q = row - s->bottom_row;
    return q < s->tiles[BOTTOM] * TILE ? c->free[s->free_count - 1 - q] : -1;
}

TB_CARD void solve_timed(const card *c, const band_shape *s, int width, int panels, int columns,
                         solve_memory *m)
{
    card_control *k = c->control;
    tb_qp_result *result = c->given.result;
    begin_time(c);
    solve_band(c, s, width, panels, m);
    end_time(c, &result->solve_seconds);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        result->solves += columns;
        result->batches++;
        k->since_factor += columns;
    }
}

/* ---- columns ---- */

/* Applies the manager's changes of sets. Variables that need a column are listed, block by block
 * in their order. The caller adds a barrier. */
TB_CARD_LARGE void list_fresh(const card *c, int *shared)
{
    const card_control *k = c->control;
    int from, to, count = 0;
    own_variables(c, &from, &to);
    for (int begin = from; begin < to; begin += LANES) {
        const int j = begin + (int)threadIdx.x;
        bool wanted = false;
        if (j < to) {
            if (k->single < 0 || j == k->single) c->bound[j] = c->next[j];
            wanted = c->slot[j] < 0 && (c->bound[j] != c->base[j] ||
                                        (c->bucket[j] >= 0 && c->bucket[j] >= k->cutoff));
        }
        const unsigned ballot = __ballot_sync(0xffffffffu, wanted);
        __syncthreads();
        if (lane_of() == 0) shared[warp_of()] = __popc(ballot);
        __syncthreads();
        int place = count + __popc(ballot & ((1u << lane_of()) - 1));
        for (int w = 0; w < WARPS; w++) {
            if (w < warp_of()) place += shared[w];
            count += shared[w];
        }
        if (wanted) c->block_list[from + place] = j;
    }
    if (threadIdx.x == 0) c->block_count[blockIdx.x] = count;
}

/* Gives this block's listed variables their columns' numbers; returns how many are fresh in all. */
TB_CARD int number_fresh(const card *c, int *shared)
{
    const int first = c->control->slots;
    int from, to;
    own_variables(c, &from, &to);
    if (warp_of() == 0) {
        int before = 0, all = 0;
        for (int b = lane_of(); b < (int)gridDim.x; b += WARP) {
            const int count = c->block_count[b];
            all += count;
            if (b < (int)blockIdx.x) before += count;
        }
        for (int step = WARP / 2; step > 0; step /= 2) {
            before += __shfl_xor_sync(0xffffffffu, before, step);
            all += __shfl_xor_sync(0xffffffffu, all, step);
        }
        if (lane_of() == 0) {
            shared[0] = before;
            shared[1] = all;
        }
    }
    __syncthreads();
    const int before = shared[0], fresh = shared[1];
    for (int i = (int)threadIdx.x; i < c->block_count[blockIdx.x]; i += LANES) {
        const int j = c->block_list[from + i], slot = first + before + i;
        c->slot[j] = slot;
        c->slot_variable[slot] = j;
        c->tip[slot] = -1;
    }
    return fresh;
}

/* U of fresh columns into the panels, and of displacements into their places too. */
TB_CARD_LARGE void fill_fresh(const card *c, const band_shape *s, int first, int fresh, int width,
                              int panels)
{
    const int rows = s->rows, all = rows * panels * width;
#pragma unroll 2
    for (int t = (int)(blockIdx.x * LANES + threadIdx.x); t < all; t += (int)gridDim.x * LANES) {
        const int row = t / width % rows, column = t / width / rows * width + t % width;
        tb_real value = 0;
        if (column < fresh) {
            const int j = c->slot_variable[first + column], own = row_variable(c, s, row);
            const bool force = c->base[j] < 0;
            if (own >= 0) value = force ? (tb_real)(own == j) : -hessian_at(c, own, j);
            if (!force) c->right[(int64_t)(first + column) * rows + row] = value;
        }
        c->panel[t] = value;
    }
}

TB_CARD void keep_fresh(const card *c, const band_shape *s, int first, int fresh, int width)
{
    const int64_t rows = s->rows;
    const int middle = s->bottom_row + s->tiles[BOTTOM] * TILE;
    for (int64_t t = blockIdx.x * LANES + threadIdx.x; t < rows * fresh;
         t += (int64_t)gridDim.x * LANES) {
        const int row = (int)(t % rows), column = (int)(t / rows);
        c->column[(first + column) * rows + row] =
            row >= middle
                ? 0
                : c->panel[column / width * rows * width + (int64_t)row * width + column % width];
    }
}

TB_CARD double dot_of_rows(const tb_real *a, const tb_real *b, int from, int to)
{
    double sum = 0;
#pragma unroll 8
    for (int i = from + lane_of(); i < to; i += WARP) sum = fma((double)a[i], (double)b[i], sum);
    return sum;
}

/* U_j' z for a displacement's column: nonzero only in rows of variables that H couples with j,
 * which are contiguous in the top and the middle, and in the bottom */
TB_CARD double dot_of_column(const card *c, const band_shape *s, int slot, const tb_real *z)
{
    const int j = c->slot_variable[slot], half = c->given.half_bandwidth, n = c->given.n;
    const int from = c->rank[j > half ? j - half : 0];
    const int to = c->rank[j + half + 1 < n ? j + half + 1 : n]; /* positions */
    const int turn = s->tiles[TOP] * TILE + s->middle_rows;
    const tb_real *u = c->right + (int64_t)slot * s->rows;
    double sum = 0;
    if (from < turn) sum += dot_of_rows(u, z, from, to < turn ? to : turn);
    if (to > turn)
        sum += dot_of_rows(u, z, row_of_position(s, to - 1),
                           row_of_position(s, from > turn ? from : turn) + 1);
    return sum_of_warp(sum);
}

/* Stores a number of D for two slots. */
TB_CARD void store_product(const card *c, int r, int q, double value)
{
    const int64_t limit = c->given.limit;
    c->schur[r * limit + q] = c->schur[q * limit + r] = (tb_real)value;
}

/* D of fresh columns with all others, and U' v of all that are displacements. The number of a pair
 * with a force is a number of a column, and a lane fetches it; a warp sums two displacements'. */
TB_CARD_LARGE void multiply_columns(const card *c, const band_shape *s, int first, int fresh)
{
    const int64_t rows = s->rows;
    const int slots = first + fresh, pairs = slots * fresh;
    const int warp = (int)blockIdx.x * WARPS + warp_of(), warps = (int)gridDim.x * WARPS;
    const int share = (pairs + warps - 1) / warps, each = share < WARP ? share : WARP;
    for (int begin = warp * each; begin < pairs; begin += warps * each) {
        const int t = begin + lane_of();
        const int r = t / fresh, q = first + t % fresh;
        const bool own = lane_of() < each && t < pairs && r <= q;
        bool both = false;
        if (own) {
            const int i = c->slot_variable[r], j = c->slot_variable[q];
            both = c->base[i] >= 0 && c->base[j] >= 0;
            if (c->base[i] < 0)
                store_product(c, r, q, (double)c->column[q * rows + c->row[i]]);
            else if (!both)
                store_product(c, r, q, (double)c->column[r * rows + c->row[j]]);
        }
        const unsigned left = __ballot_sync(0xffffffffu, both);
        for (int l = 0; l < each; l++) {
            if (!(left >> l & 1)) continue;
            const int a = (begin + l) / fresh, b = first + (begin + l) % fresh;
            const double dot = dot_of_column(c, s, a, c->column + b * rows);
            if (lane_of() == 0) store_product(c, a, b, dot);
        }
    }
    for (int r = warp; r < slots; r += warps) {
        if (c->base[c->slot_variable[r]] < 0) continue;
        const double dot = dot_of_column(c, s, r, c->base_solution);
        if (lane_of() == 0) c->shift[r] = (tb_real)dot;
    }
}

#endif
