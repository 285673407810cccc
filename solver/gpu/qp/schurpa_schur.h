/* The Schur matrix of the border: its rows, its factor and its unknowns, by all blocks.
 *
 * A row belongs to the change of a variable, or pins the unknown of an earlier row:
 *
 *     [ A  e ] [z]   [w]         e' z = value
 *     [ e' 0 ] [m] = [value]
 *
 * A change that is undone is pinned at zero, a variable that moves to another bound at its
 * displacement, and a pin that is no longer wanted is pinned itself, so that its multiplier m
 * is zero. So the matrix only grows, and its factor is extended:
 *
 *     A = L D L',  X = L^-1        rows n behind rows o: B = A_no X_oo', L_no = B D_o^-1,
 *     A_nn - L_no B' = L_nn D_n L_nn',  X_no = -X_nn L_no X_oo,  z = X' D^-1 X w
 *
 * Up to 64 rows at a time: products by all blocks, the small factor by block 0. When the rows that
 * the present set needs fill no more such panels than the new rows, or the memory is full, the
 * matrix begins anew.
 *
 * There are pivots in any order. The matrix of forces is positive definite (a part of G^-1), that
 * of displacements negative definite (less a Schur complement of H; Vanderbei, Symmetric
 * quasidefinite matrices, SIAM J. Optim. 5, 1995). The pivot of a pin is -1 over the pivot that its
 * row would have as the last one. Rows come by eights; the last ones of a list may be rows of the
 * identity without a slot. */
#ifndef TB_GPU_SCHURPA_SCHUR_H
#define TB_GPU_SCHURPA_SCHUR_H

#include "gpu/qp/schurpa_border.h"

/* A block's memory for it. */
typedef struct schur_memory {
    union {
        tb_real part[WARPS][SLICE][COLUMNS]; /* of a product: sums of each warp */
        tb_real sum[LANES];
        struct { /* of the factor of a panel, by turns */
            tb_real column[2][TILE], row[2][TILE], magnitude[2];
        } pivot;
        int count[2 * WARPS + 2];
    } of;
} schur_memory;

/* Rows [from, from + count) of the matrix. */
typedef struct schur_panel {
    int from, count;
} schur_panel;

TB_CARD int round_to(int count, int unit)
{
    return (count + unit - 1) / unit * unit;
}

TB_CARD int panels_of(int rows)
{
    return (rows + TILE - 1) / TILE;
}

/* ---- rows ---- */

/* Rows of the change in a slot: none, its own, and one that pins it where it is known. */
TB_CARD int rows_wanted(const card *c, int slot)
{
    const int j = c->slot_variable[slot], bound = c->bound[j], base = c->base[j];
    return bound == base ? 0 : bound >= 0 && base >= 0 ? 2 : 1;
}

/* Rows that the matrix lacks for a slot whose last row is `tip` (-1: none). */
TB_CARD int rows_to_add(const card *c, int tip, int wanted)
{
    if (tip < 0) return wanted;
    return (c->depth[tip] % 2 != 0) != (wanted != 1);
}

TB_CARD void add_row(const card *c, int place, int slot, int on, int depth)
{
    c->row_slot[place] = slot;
    c->row_on[place] = on;
    c->depth[place] = depth;
    if (slot >= 0) c->tip[slot] = place;
}

/* Sums of two counts over the block's lanes before this one; the sums over all at the end of
 * `shared`. */
TB_CARD void scan_block(int *first, int *second, int *shared)
{
    int a = *first, b = *second;
    for (int step = 1; step < WARP; step *= 2) {
        const int u = __shfl_up_sync(0xffffffffu, a, step);
        const int v = __shfl_up_sync(0xffffffffu, b, step);
        if (lane_of() >= step) a += u, b += v;
    }
    __syncthreads();
    if (lane_of() == WARP - 1) {
        shared[warp_of()] = a;
        shared[WARPS + warp_of()] = b;
    }
    __syncthreads();
    a -= *first;
    b -= *second;
    int all[2] = {0, 0};
    for (int w = 0; w < WARPS; w++) {
        if (w < warp_of()) a += shared[w], b += shared[WARPS + w];
        all[0] += shared[w];
        all[1] += shared[WARPS + w];
    }
    *first = a;
    *second = b;
    if (threadIdx.x == 0) shared[2 * WARPS] = all[0], shared[2 * WARPS + 1] = all[1];
    __syncthreads();
}

/* Lists the rows that the present set adds, and the slots of its changes; by block 0. */
TB_CARD_LARGE void list_border(const card *c, schur_memory *m)
{
    card_control *k = c->control;
    const int slots = k->slots, old = k->schur_rows, capacity = c->schur_capacity;
    int *shared = m->of.count, add = 0, need = 0;
    __syncthreads();
    for (int slot = (int)threadIdx.x; slot < slots; slot += LANES) {
        const int wanted = rows_wanted(c, slot);
        need += wanted;
        add += rows_to_add(c, c->tip[slot], wanted);
    }
    scan_block(&add, &need, shared);
    add = shared[2 * WARPS];
    need = shared[2 * WARPS + 1];
    const bool anew = old + add > capacity || panels_of(need) <= panels_of(add);
    int rows = anew ? 0 : old, used = 0;
    for (int begin = 0; begin < slots; begin += LANES) {
        const int slot = begin + (int)threadIdx.x;
        int wanted = 0, more = 0, changed = 0, tip = -1;
        if (slot < slots) {
            wanted = rows_wanted(c, slot);
            tip = anew ? -1 : c->tip[slot];
            more = rows_to_add(c, tip, wanted);
            changed = wanted > 0;
        }
        int place = more, number = changed;
        scan_block(&place, &number, shared);
        place += rows;
        if (changed) c->order[used + number] = slot;
        if (slot < slots && tip < 0) {
            c->tip[slot] = -1;
            if (wanted > 0) add_row(c, place, slot, -1, 0);
            if (wanted > 1) add_row(c, place + 1, slot, place, 1);
        } else if (more > 0) {
            add_row(c, place, slot, tip, c->depth[tip] + 1);
        }
        rows += shared[2 * WARPS];
        used += shared[2 * WARPS + 1];
        __syncthreads();
    }
    const int end = round_to(rows, OCTET);
    if (rows + (int)threadIdx.x < end) add_row(c, rows + (int)threadIdx.x, -1, -1, 0);
    if (threadIdx.x > 0) return;
    if (anew) k->schur_known = 0;
    k->schur_rows = end;
    if (used < k->used) c->given.result->deletions += k->used - used;
    k->used = used;
    if (used > c->given.result->largest_border) c->given.result->largest_border = used;
}

/* A number of the matrix. */
TB_CARD tb_real schur_at(const card *c, int a, int b)
{
    const int late = a > b ? a : b, early = a > b ? b : a, on = c->row_on[late];
    if (c->row_slot[late] < 0 || c->row_slot[early] < 0) return a == b ? (tb_real)1 : (tb_real)0;
    if (on >= 0) return on == early ? (tb_real)1 : (tb_real)0;
    if (c->row_on[early] >= 0) return 0;
    const int r = c->row_slot[late], q = c->row_slot[early];
    const int i = c->slot_variable[r], j = c->slot_variable[q];
    const tb_real value = c->schur[(int64_t)r * c->given.limit + q];
    return c->base[i] >= 0 && c->base[j] >= 0 ? value - hessian_at(c, i, j) : value;
}

/* The right-hand side. A row of a change that is pinned may have any; pins of pins are at zero, so
 * that the first pin holds its value again when the pin of it is pinned. */
TB_CARD tb_real schur_right(const card *c, int a)
{
    const int slot = c->row_slot[a];
    if (slot < 0) return 0;
    const int j = c->slot_variable[slot], bound = c->bound[j], base = c->base[j];
    if (c->row_on[a] >= 0) {
        const bool moved = bound >= 0 && base >= 0 && bound != base && c->depth[a] == 1;
        return moved ? bound_value(c, bound) - bound_value(c, base) : (tb_real)0;
    }
    if (base >= 0) return (tb_real)(c->base_pull[j] - (double)c->shift[slot]);
    return bound >= 0 ? bound_value(c, bound) - c->base_solution[c->row[j]] : (tb_real)0;
}

TB_CARD void fill_right(const card *c, int rows)
{
    for (int a = (int)(blockIdx.x * LANES + threadIdx.x); a < rows; a += (int)gridDim.x * LANES)
        c->schur_w[a] = schur_right(c, a);
}

/* ---- products ---- */

/* Sixteen rows and 32 columns of a product, summed over t in [from, to): a(r, t) at a[r * ar + t],
 * b(t, c) at b[c * bc + t * bt]; from and to are multiples of eight, and so are the rows and
 * columns that are there. */
typedef struct schur_product {
    const tb_real *a, *b;
    int ar, bc, bt, from, to, rows, columns;
} schur_product;

TB_CARD_LARGE void multiply_part(const schur_product *e, schur_memory *m)
{
    tb_real sums[2][COLUMNS / OCTET][2] = {{{0}}};
    __syncthreads();
#pragma unroll 2
    for (int t = e->from + warp_of() * OCTET; t < e->to; t += WARPS * OCTET) {
#pragma unroll
        for (int g = 0; g < COLUMNS / OCTET; g++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                if (g * OCTET < e->columns && h * OCTET < e->rows)
                    warp_product(sums[h][g], e->a + h * OCTET * e->ar + t, e->ar, 1,
                                 e->b + (int64_t)g * OCTET * e->bc + (int64_t)t * e->bt, e->bc,
                                 e->bt, OCTET);
    }
    const int row = lane_of() / 4, column = lane_of() % 4 * 2;
#pragma unroll
    for (int g = 0; g < COLUMNS / OCTET; g++)
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                m->of.part[warp_of()][h * OCTET + row][g * OCTET + column + i] = sums[h][g][i];
    __syncthreads();
}

/* One of the 512 sums. */
TB_CARD tb_real part_at(const schur_memory *m, int i)
{
    tb_real sum = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) sum += m->of.part[w][i / COLUMNS][i % COLUMNS];
    return sum;
}

typedef enum schur_stage {
    TIMES_INVERSE, /* B = A_no X_oo', and L_no = B D_o^-1 */
    SUBTRACT,      /* A_nn - L_no B' */
    SPREAD,        /* T = L_no X_oo */
    FINISH         /* X_no = -X_nn T */
} schur_stage;

/* Part (row, column) of a stage. */
TB_CARD_LARGE void do_part(const card *c, schur_stage what, schur_panel p, int row, int column,
                           schur_memory *m)
{
    const int pitch = c->schur_pitch;
    tb_real *own = c->schur_inverse + (int64_t)p.from * pitch;
    schur_product e = {
        .ar = pitch, .to = p.from, .rows = p.count - row, .columns = p.from - column};
    tb_real *numbers = c->schur_number + (int64_t)p.from * pitch;
    switch (what) {
    case TIMES_INVERSE:
        e.a = numbers;
        e.b = c->schur_inverse + (int64_t)column * pitch;
        e.bc = pitch, e.bt = 1;
        if (column + COLUMNS < p.from) e.to = column + COLUMNS;
        break;
    case SUBTRACT:
        e.a = c->schur_left;
        e.b = c->schur_product + (int64_t)column * pitch;
        e.bc = pitch, e.bt = 1;
        e.columns = p.count - column;
        break;
    case SPREAD:
        e.a = c->schur_left;
        e.b = c->schur_inverse + column;
        e.bc = 1, e.bt = pitch;
        e.from = column;
        break;
    default:
        e.a = own + p.from;
        e.b = c->schur_product + column;
        e.bc = 1, e.bt = pitch;
        e.to = p.count;
    }
    e.a += (int64_t)row * pitch;
    multiply_part(&e, m);
    for (int i = (int)threadIdx.x; i < SLICE * COLUMNS; i += LANES) {
        const int r = row + i / COLUMNS, q = column + i % COLUMNS;
        const int64_t at = (int64_t)r * pitch + q;
        const bool there = r < p.count;
        if (q >= (what == SUBTRACT ? p.count : p.from)) continue;
        const tb_real sum = there ? part_at(m, i) : (tb_real)0;
        if (what == SUBTRACT) {
            if (there) numbers[at + p.from] -= sum;
        } else if (what == FINISH) {
            own[at] = -sum;
        } else if (what == SPREAD) {
            c->schur_product[at] = sum;
        } else {
            c->schur_product[at] = sum;
            c->schur_left[at] = sum / c->schur_pivot[q];
        }
    }
}

/* All parts of a stage, by `count` blocks of which this is `self`. */
TB_CARD void do_parts(const card *c, schur_stage what, schur_panel p, int self, int count,
                      schur_memory *m)
{
    const int rows = round_to(p.count, SLICE) / SLICE;
    const int columns = ((what == SUBTRACT ? p.count : p.from) + COLUMNS - 1) / COLUMNS;
    for (int t = self; t < rows * columns; t += count)
        do_part(c, what, p, t % rows * SLICE, t / rows * COLUMNS, m);
}

/* ---- a panel ---- */

/* The numbers of rows from `known` on with all rows before them and with their panel. */
TB_CARD_LARGE void gather_rows(const card *c, int known, int rows)
{
    const int all = (rows - known) * rows;
#pragma unroll 4
    for (int t = (int)(blockIdx.x * LANES + threadIdx.x); t < all; t += (int)gridDim.x * LANES) {
        const int a = known + t / rows, b = t % rows;
        if (b >= known + round_to(a - known + 1, TILE)) continue;
        const tb_real value = schur_at(c, a, b);
        c->schur_number[(int64_t)a * c->schur_pitch + b] = value;
        if (a == b) c->schur_magnitude[a] = tb_abs(value);
    }
}

/* Adds the magnitudes of the numbers that are subtracted from the diagonal. */
TB_CARD void add_magnitudes(const card *c, schur_panel p)
{
    const int pitch = c->schur_pitch, warps = (int)gridDim.x * WARPS;
    /* the last blocks have no part of the product */
    for (int r = warps - 1 - ((int)blockIdx.x * WARPS + warp_of()); r < p.count; r += warps) {
        const tb_real *b = c->schur_product + (int64_t)r * pitch;
        const tb_real *l = c->schur_left + (int64_t)r * pitch;
        double sum = 0;
        for (int t = lane_of(); t < p.from; t += WARP) sum += fabs((double)b[t] * (double)l[t]);
        sum = sum_of_warp(sum);
        if (lane_of() == 0) c->schur_magnitude[p.from + r] += (tb_real)sum;
    }
}

/* L_nn D_n L_nn' and X_nn, by block 0: each lane has 4 x 4 numbers of both. False where a pivot is a
 * rounding of its summands. */
TB_CARD_LARGE bool factor_panel(const card *c, schur_panel p, schur_memory *m)
{
    const int EACH = 4, STEP = 16, ti = (int)threadIdx.x / STEP, tj = (int)threadIdx.x % STEP;
    const int pitch = c->schur_pitch;
    const tb_real *from = c->schur_number + (int64_t)p.from * pitch + p.from;
    tb_real s[EACH][EACH], x[EACH][EACH], magnitude[EACH];
#pragma unroll
    for (int a = 0; a < EACH; a++) {
        const int i = ti + STEP * a;
        magnitude[a] = i < p.count ? c->schur_magnitude[p.from + i] : (tb_real)0;
#pragma unroll
        for (int b = 0; b < EACH; b++) {
            const int j = tj + STEP * b;
            s[a][b] = i < p.count && j < p.count ? from[(int64_t)i * pitch + j] : (tb_real)0;
            x[a][b] = i == j ? (tb_real)1 : (tb_real)0;
        }
    }
    __syncthreads();
    bool regular = true;
#pragma unroll
    for (int d = 0; d < EACH; d++) {
        for (int e = 0; e < STEP && d * STEP + e < p.count && regular; e++) {
            const int at = d * STEP + e, turn = e % 2;
#pragma unroll
            for (int a = 0; a < EACH; a++) {
                if (tj == e && a >= d) m->of.pivot.column[turn][ti + STEP * a] = s[a][d];
                if (ti == e && a <= d) m->of.pivot.row[turn][tj + STEP * a] = x[d][a];
            }
            if (ti == e && tj == e) m->of.pivot.magnitude[turn] = magnitude[d];
            __syncthreads();
            const tb_real pivot = m->of.pivot.column[turn][at];
            regular = tb_abs(pivot) > 10 * TB_REAL_EPSILON * m->of.pivot.magnitude[turn];
            const tb_real inverse = 1 / pivot;
            if (threadIdx.x == 0) c->schur_pivot[p.from + at] = pivot;
#pragma unroll
            for (int a = d; a < EACH; a++) {
                const int i = ti + STEP * a;
                const tb_real own = m->of.pivot.column[turn][i];
                const tb_real l = i > at ? own * inverse : (tb_real)0;
                magnitude[a] += tb_abs(l * own);
#pragma unroll
                for (int b = 0; b < EACH; b++) {
                    if (b >= d) s[a][b] = fma(-l, m->of.pivot.column[turn][tj + STEP * b], s[a][b]);
                    if (b <= d) x[a][b] = fma(-l, m->of.pivot.row[turn][tj + STEP * b], x[a][b]);
                }
            }
        }
    }
    /* later products read up to a part behind the diagonal */
    tb_real *to = c->schur_inverse + (int64_t)p.from * pitch + p.from;
#pragma unroll
    for (int a = 0; a < EACH; a++)
#pragma unroll
        for (int b = 0; b < 2 * EACH; b++) {
            const int i = ti + STEP * a, j = tj + STEP * b;
            to[(int64_t)i * pitch + j] =
                b < EACH && j <= i && i < p.count ? x[a][b % EACH] : (tb_real)0;
        }
    return regular;
}

/* ---- unknowns ---- */

/* y = D^-1 X w, a row a warp */
TB_CARD void solve_down(const card *c, int rows)
{
    const int pitch = c->schur_pitch, warps = (int)gridDim.x * WARPS;
    for (int a = (int)blockIdx.x * WARPS + warp_of(); a < rows; a += warps) {
        const double sum = dot_of_rows(c->schur_inverse + (int64_t)a * pitch, c->schur_w, 0, a + 1);
        const double all = sum_of_warp(sum);
        if (lane_of() == 0) c->schur_y[a] = (tb_real)(all / (double)c->schur_pivot[a]);
    }
}

/* z = X' y, eight rows of z a block */
TB_CARD void solve_up(const card *c, int rows, schur_memory *m)
{
    const int pitch = c->schur_pitch, STREAMS = LANES / OCTET;
    const int stream = (int)threadIdx.x / OCTET, own = (int)threadIdx.x % OCTET;
    for (int first = (int)blockIdx.x * OCTET; first < rows; first += (int)gridDim.x * OCTET) {
        const int a = first + own;
        tb_real sum = 0;
#pragma unroll 4
        for (int b = first + stream; b < rows; b += STREAMS)
            sum = fma(c->schur_inverse[(int64_t)b * pitch + a], c->schur_y[b], sum);
        __syncthreads();
        m->of.sum[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x < OCTET && c->row_on[a] < 0 && c->row_slot[a] >= 0) {
            tb_real z = 0;
            for (int k = 0; k < STREAMS; k++) z += m->of.sum[k * OCTET + own];
            c->lower[c->row_slot[a]] = z;
        }
    }
}

/* The border's unknowns for the listed rows. Ends with a meeting of all. */
TB_CARD_LARGE void solve_border(const card *c, schur_memory *m)
{
    card_control *k = c->control;
    const int rows = k->schur_rows, known = k->schur_known;
    const int self = (int)blockIdx.x, blocks = (int)gridDim.x;
    if (k->used == 0) return;
    fill_right(c, rows);
    gather_rows(c, known, rows);
    meet_all(c);
    for (int from = known; from < rows; from += TILE) {
        const schur_panel p = {from, rows - from < TILE ? rows - from : TILE};
        if (from > 0) {
            do_parts(c, TIMES_INVERSE, p, self, blocks, m);
            meet_all(c);
            do_parts(c, SUBTRACT, p, self, blocks, m);
            add_magnitudes(c, p);
            meet_all(c);
        }
        if (self == 0) {
            const bool regular = factor_panel(c, p, m);
            if (threadIdx.x == 0) k->singular = !regular;
        } else {
            do_parts(c, SPREAD, p, self - 1, blocks - 1, m);
        }
        meet_all(c);
        if (k->singular) return;
        if (from > 0) {
            do_parts(c, FINISH, p, self, blocks, m);
            meet_all(c);
        }
    }
    solve_down(c, rows);
    if (self == 0 && threadIdx.x == 0) k->schur_known = rows;
    meet_all(c);
    solve_up(c, rows, m);
    meet_all(c);
}

#endif
