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
    }
    return fresh;
}

/* U of fresh columns, into their places and into the panels. */
TB_CARD_LARGE void fill_fresh(const card *c, const band_shape *s, int first, int fresh, int width,
                              int panels)
{
    const int rows = s->rows, all = rows * panels * width;
#pragma unroll 2
    for (int t = (int)(blockIdx.x * LANES + threadIdx.x); t < all; t += (int)gridDim.x * LANES) {
        const int row = t % rows, column = t / rows;
        tb_real value = 0;
        if (column < fresh) {
            const int j = c->slot_variable[first + column], own = row_variable(c, s, row);
            const bool force = c->base[j] < 0;
            if (own >= 0) value = force ? (tb_real)(own == j) : -hessian_at(c, own, j);
            c->right[(int64_t)(first + column) * rows + row] = value;
        }
        c->panel[((int64_t)(column / width) * rows + row) * width + column % width] = value;
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

/* D of fresh columns with all others, and U' v of all that are displacements. */
TB_CARD_LARGE void multiply_columns(const card *c, const band_shape *s, int first, int fresh)
{
    const int64_t rows = s->rows;
    const int limit = c->given.limit, slots = first + fresh, pairs = slots * fresh;
    const int warp = (int)blockIdx.x * WARPS + warp_of(), warps = (int)gridDim.x * WARPS;
    for (int t = warp; t < pairs + slots; t += warps) {
        const int r = t < pairs ? t / fresh : t - pairs;
        const int i = c->slot_variable[r];
        if (t >= pairs) { /* U' v */
            if (c->base[i] < 0) continue;
            const double dot = dot_of_column(c, s, r, c->base_solution);
            if (lane_of() == 0) c->shift[r] = (tb_real)dot;
            continue;
        }
        const int q = first + t % fresh, j = c->slot_variable[q];
        if (r > q) continue;
        double value;
        if (c->base[i] < 0)
            value = (double)c->column[q * rows + c->row[i]];
        else if (c->base[j] < 0)
            value = (double)c->column[r * rows + c->row[j]];
        else
            value = dot_of_column(c, s, r, c->column + q * rows);
        if (lane_of() == 0)
            c->schur[(int64_t)r * limit + q] = c->schur[(int64_t)q * limit + r] = (tb_real)value;
    }
}

/* ---- the small system, by block 0 ---- */

static const int MOST_COLUMNS = 512;

/* A block's memory for it: rows of size + 1 numbers. */
typedef struct small_system {
    int size;
    int order[MOST_COLUMNS], variable[MOST_COLUMNS], bound[MOST_COLUMNS], base[MOST_COLUMNS];
    tb_real matrix[1];
} small_system;

/* The columns of the present border, of variables that differ from the base. */
TB_CARD void list_border(const card *c, small_system *m)
{
    card_control *k = c->control;
    const int slots = k->slots;
    if (warp_of() == 0) {
        int size = 0;
        for (int begin = 0; begin < slots; begin += WARP) {
            const int slot = begin + lane_of();
            bool differs = false;
            if (slot < slots) {
                const int j = c->slot_variable[slot];
                differs = c->bound[j] != c->base[j];
            }
            const unsigned ballot = __ballot_sync(0xffffffffu, differs);
            if (differs) m->order[size + __popc(ballot & ((1u << lane_of()) - 1))] = slot;
            size += __popc(ballot);
        }
        if (lane_of() == 0) m->size = size;
    }
    __syncthreads();
}

TB_CARD void fill_border(const card *c, small_system *m)
{
    const int size = m->size, limit = c->given.limit;
    for (int a = (int)threadIdx.x; a < size; a += LANES) {
        const int j = c->slot_variable[m->order[a]];
        m->variable[a] = j;
        m->bound[a] = c->bound[j];
        m->base[a] = c->base[j];
    }
    __syncthreads();
#pragma unroll 4
    for (int t = (int)threadIdx.x; t < size * (size + 1); t += LANES) {
        const int a = t / (size + 1), b = t % (size + 1), r = m->order[a];
        const int i = m->variable[a], bound = m->bound[a], base = m->base[a];
        tb_real value;
        if (b < size) {
            const int q = m->order[b], j = m->variable[b];
            value = c->schur[(int64_t)r * limit + q];
            if (base >= 0 && m->base[b] >= 0) value -= hessian_at(c, i, j);
            if (base >= 0 && bound >= 0) value = a == b ? (tb_real)1 : (tb_real)0;
        } else if (base < 0) {
            value = bound_value(c, bound) - c->base_solution[c->row[i]];
        } else if (bound < 0) {
            value = (tb_real)(c->base_pull[i] - (double)c->shift[r]);
        } else {
            value = bound_value(c, bound) - bound_value(c, base);
        }
        m->matrix[t] = value;
    }
    __syncthreads();
}

/* L D L' without pivoting, and the right-hand side with it. The matrix of forces is positive
 * definite (a part of G^-1), that of displacements negative definite (less a Schur complement of
 * H), so with any order there are pivots (Vanderbei, Symmetric quasidefinite matrices, SIAM J.
 * Optim. 5, 1995). Moved variables are known, so their rows are rows of the identity. False if a
 * pivot is a rounding of the largest. */
TB_CARD bool eliminate_border(small_system *m)
{
    const int size = m->size, wide = size + 1;
    tb_real most = 0, least = TB_REAL_MAX;
    for (int k = 0; k < size; k++) {
        const tb_real pivot = m->matrix[k * wide + k];
        most = tb_max(most, tb_abs(pivot));
        least = tb_min(least, tb_abs(pivot));
        if (!(tb_abs(pivot) > 0)) return false; /* all lanes see the same */
        const tb_real inverse = 1 / pivot;
        for (int i = k + 1 + (int)threadIdx.x / 16; i < size; i += LANES / 16) {
            const tb_real factor = m->matrix[i * wide + k] * inverse;
            for (int j = k + 1 + (int)threadIdx.x % 16; j < wide; j += 16)
                m->matrix[i * wide + j] =
                    fma(-factor, m->matrix[k * wide + j], m->matrix[i * wide + j]);
        }
        __syncthreads();
    }
    return size == 0 || least > 10 * TB_REAL_EPSILON * most;
}

/* By one warp; the unknowns end in the last column. */
TB_CARD void substitute_border(small_system *m)
{
    const int size = m->size, wide = size + 1;
    for (int k = size - 1; k >= 0; k--) {
        const tb_real z = m->matrix[k * wide + size] / m->matrix[k * wide + k];
        __syncwarp();
        for (int i = lane_of(); i <= k; i += WARP)
            m->matrix[i * wide + size] =
                i == k ? z : fma(-m->matrix[i * wide + k], z, m->matrix[i * wide + size]);
        __syncwarp();
    }
}

/* Block 0 finds the border's unknowns for the present set. To be followed by a meeting. */
TB_CARD_LARGE void solve_border(const card *c, small_system *m)
{
    card_control *k = c->control;
    list_border(c, m);
    fill_border(c, m);
    const bool regular = eliminate_border(m);
    __syncthreads();
    if (warp_of() == 0 && regular) substitute_border(m);
    __syncthreads();
    for (int t = (int)threadIdx.x; t < m->size && regular; t += LANES) {
        c->order[t] = m->order[t];
        c->lower[m->order[t]] = m->matrix[t * (m->size + 1) + m->size];
    }
    if (threadIdx.x > 0) return;
    k->singular = !regular;
    if (m->size < k->used) c->given.result->deletions += k->used - m->size;
    k->used = m->size;
    if (m->size > c->given.result->largest_border) c->given.result->largest_border = m->size;
}

#endif
