/* Full SOR in one cooperative launch: the exact block Gauss-Seidel of Nützi 5.3.1, its two steps
 * overlapped.
 *
 * Block 0 of the grid goes along the diagonal of T, 32 contacts at a time; every other block owns a
 * stretch of rows and adds the columns of diagonal blocks that are finished, while block 0 is ahead
 * by one: the columns of diagonal block p - 1 for the rows of p, which cannot wait, it adds itself.
 * One warp solves a diagonal block, a contact a lane, by shuffles, while the others load the next
 * one. Owners load T before the impulses that they wait for.
 *
 * With s counting the diagonal blocks of all iterations, the row of diagonal block q is finished by
 * block 0 at s, taken over by its owner from there, handed back after s + P - 2, and P is their
 * number. */
#ifndef TB_GPU_STORED_SOR_GRID_H
#define TB_GPU_STORED_SOR_GRID_H

#include "gpu/stored/jor_grid.h"

enum {
    CONTACTS = TB_GPU_STORED_SOR_CONTACTS,
    SIDE = 3 * CONTACTS, /* rows of a diagonal block */
    STRIP = 128,         /* rows that an owner goes through at a time, two a thread */
    PARTS = 4,           /* threads that share the columns of a pair of rows */
    COLUMNS = SIDE / PARTS,
    PROGRESS = 32 /* counters: the diagonal's, then each owner's, one a cache line */
};

/* Shared memory of block 0; an owner of rows uses `next` and `part` of it. Buffers of two serve the
 * diagonal blocks by turns. */
typedef struct sor_memory {
    tb_real diagonal[2][SIDE][SIDE]; /* by columns: T's diagonal block */
    tb_real below[SIDE][SIDE]; /* T(rows of the diagonal block, columns of the one before it) */
    tb_real sum[2][SIDE], next[2][SIDE];
    tb_real part[PARTS][STRIP];
    int last; /* the iterations end here */
} sor_memory;

typedef struct sor_extent {
    int n, blocks, owners, rows; /* rows of an owner, even */
} sor_extent;

TB_CARD sor_extent extent_of(const tb_gpu_stored *s)
{
    sor_extent e;
    e.n = 3 * s->contacts;
    e.blocks = (s->contacts + CONTACTS - 1) / CONTACTS;
    e.owners = (int)gridDim.x - 1;
    e.rows = ((e.n + e.owners - 1) / e.owners + 1) / 2 * 2;
    return e;
}

TB_CARD volatile unsigned *progress_of(const tb_gpu_stored *s, int block)
{
    return &s->counters[PROGRESS * (1 + block)];
}

/* Waits until a block has counted to `target`; reached by all its threads. */
TB_CARD void wait_until(volatile unsigned *progress, unsigned target)
{
    if (threadIdx.x == 0) {
        while ((int)(*progress - target) < 0) TB_CARD_SPIN;
        __threadfence();
    }
    __syncthreads();
}

TB_CARD void publish(volatile unsigned *progress, unsigned count)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *progress = count;
}

/* The thread's COLUMNS columns of T, from `column` on, for rows `row` and `row` + 1; zero beyond
 * the last column, and for rows from `last` on. */
TB_CARD void load_columns(const tb_gpu_stored *s, int row, int last, int column, pair_of_rows *two)
{
    const int n = 3 * s->contacts;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        two[c].row[0] = two[c].row[1] = 0;
        if (row < last && column + c < n)
            two[c] = *(const pair_of_rows *)(column_of(s, column + c) + row);
    }
}

/* ---- the diagonal ---- */

/* Threads that load squares: two rows and COLUMNS columns each. */
enum { LOADERS = SIDE / 2 * PARTS };

/* A square of T into shared memory; all loads of a thread are in flight at once. */
TB_CARD void load_square(const tb_gpu_stored *s, int row, int column, tb_real (*to)[SIDE],
                         int thread)
{
    const int own = 2 * (thread % (SIDE / 2)), first = thread / (SIDE / 2) * COLUMNS;
    pair_of_rows two[COLUMNS];
    load_columns(s, row + own, 3 * s->contacts, column + first, two);
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        to[first + c][own] = two[c].row[0];
        to[first + c][own + 1] = two[c].row[1];
    }
}

/* sum += below next, by PARTS threads a row, their parts in order. */
TB_CARD void add_square(sor_memory *m, tb_real *sum, const tb_real *next)
{
    const int thread = (int)threadIdx.x;
    for (int e = thread; e < SIDE * PARTS; e += LANES) {
        const int i = e % SIDE, part = e / SIDE;
        tb_real own = 0;
        for (int c = part * COLUMNS; c < (part + 1) * COLUMNS; c++) own += m->below[c][i] * next[c];
        m->part[part][i] = own;
    }
    __syncthreads();
    if (thread < SIDE)
        sum[thread] +=
            (m->part[0][thread] + m->part[1][thread]) + (m->part[2][thread] + m->part[3][thread]);
    __syncthreads();
}

/* One warp, a contact a lane: the contacts of a diagonal block in order. All lanes compute, one
 * lane's numbers count; until its turn a lane's sums hold d too. Returns whether an element of this
 * lane's contact fails the stop test. */
TB_CARD bool solve_diagonal(const tb_gpu_stored *s, sor_memory *m, int buffer, int first)
{
    const tb_real(*t)[SIDE] = m->diagonal[buffer];
    const int lane = lane_of(), own = 3 * lane, contact = first / 3 + lane;
    const int left = s->contacts - first / 3, contacts = left < CONTACTS ? left : CONTACTS;
    const bool real = lane < contacts;
    tb_real sum[3], x[3] = {0, 0, 0};
    const tb_real mu = real ? ((const tb_real *)s->mu)[contact] : 0;
    for (int k = 0; k < 3; k++)
        sum[k] = m->sum[buffer][own + k] + (real ? ((const tb_real *)s->d)[first + own + k] : 0);
    for (int j = 0; j < contacts; j++) {
        const tb_real *column = t[3 * j] + own;
        const bool turn = lane == j;
        const tb_real normal = __shfl_sync(0xffffffffu, tb_prox_unilateral(sum[0]), j);
        const tb_real z1 = sum[1] + column[1] * normal, z2 = sum[2] + column[2] * normal;
        const tb_real factor = tb_prox_disk_factor(z1 * z1 + z2 * z2, mu * normal);
        const tb_real y1 = __shfl_sync(0xffffffffu, z1 * factor, j);
        const tb_real y2 = __shfl_sync(0xffffffffu, z2 * factor, j);
        if (turn) x[0] = normal, x[1] = y1, x[2] = y2;
        const tb_real base[3] = {turn ? 0 : sum[0], turn ? 0 : z1, turn ? 0 : z2};
        sum[0] = base[0] + column[0] * normal;
        sum[1] = base[1];
        sum[2] = base[2];
        for (int k = 0; k < 3; k++) sum[k] += column[SIDE + k] * y1 + column[2 * SIDE + k] * y2;
    }
    bool moved = false;
    for (int k = 0; k < 3; k++) {
        m->sum[buffer][own + k] = sum[k];
        m->next[buffer][own + k] = x[k];
        if (real) moved = moved || moves_on(s, ((const tb_real *)s->next)[first + own + k], x[k]);
    }
    return moved;
}

/* One warp hands diagonal block p to the owners of rows, as the `count`-th of all. */
TB_CARD void publish_block(const tb_gpu_stored *s, const sor_extent *e, const sor_memory *m, int p,
                           unsigned count)
{
    const int first = p * SIDE, rows = e->n - first < SIDE ? e->n - first : SIDE;
    const int buffer = (int)(count - 1) % 2;
    for (int i = lane_of(); i < rows; i += WARP) {
        ((tb_real *)s->sum)[first + i] = m->sum[buffer][i];
        ((tb_real *)s->next)[first + i] = m->next[buffer][i];
    }
    __threadfence();
    __syncwarp();
    if (lane_of() == 0) *progress_of(s, 0) = count;
}

/* One warp loads the sums of diagonal block p as their owners have left them, when these have
 * counted to `target`. */
TB_CARD void load_sums(const tb_gpu_stored *s, const sor_extent *e, int p, unsigned target,
                       tb_real *to)
{
    const int first = p * SIDE, rows = e->n - first < SIDE ? e->n - first : SIDE;
    if (target > 0)
        for (int o = first / e->rows; o <= (first + rows - 1) / e->rows; o++)
            while ((int)(*progress_of(s, 1 + o) - target) < 0) TB_CARD_SPIN;
    __threadfence();
    for (int i = lane_of(); i < SIDE; i += WARP)
        to[i] = i < rows ? ((const volatile tb_real *)s->sum)[first + i] : 0;
}

/* The squares of T that diagonal block p needs, by the warps behind the second. */
TB_CARD void load_squares(const tb_gpu_stored *s, const sor_extent *e, sor_memory *m, int p,
                          int buffer)
{
    const int before = p > 0 ? p - 1 : e->blocks - 1;
    const int thread = (int)threadIdx.x - 2 * WARP;
    if (thread < 0 || thread >= LOADERS) return;
    load_square(s, p * SIDE, p * SIDE, m->diagonal[buffer], thread);
    load_square(s, p * SIDE, before * SIDE, m->below, thread);
}

/* Ends an iteration: signals the owners whether it was the last, and stores that in
 * `last`. First warp. */
TB_CARD void end_iteration(const tb_gpu_stored *s, sor_memory *m, bool moved, int made)
{
    const bool any = __ballot_sync(0xffffffffu, moved) != 0;
    if (threadIdx.x != 0) return;
    const int stops = s->check > 0 && made % s->check == 0 && !any;
    *(volatile int32_t *)s->stopped = stops;
    *s->finished = made;
    m->last = stops || made == s->iterations;
}

/* Block 0. `at` counts the diagonal blocks of all iterations. While the first warp solves one, the
 * second hands the one before to the owners and fetches the sums of the next, and the others
 * load T. */
TB_CARD void go_along_diagonal(const tb_gpu_stored *s, sor_memory *m)
{
    const sor_extent e = extent_of(s);
    const int warp = warp_of();
    bool moved = false;
    unsigned at = 0;
    if (warp == 1) load_sums(s, &e, 0, 0, m->sum[0]);
    load_squares(s, &e, m, 0, 0);
    __syncthreads();
    for (int made = 1;; made++)
        for (int p = 0; p < e.blocks; p++, at++) {
            const int buffer = (int)at % 2, other = 1 - buffer, behind = (p + 1) % e.blocks;
            if (at > 0) add_square(m, m->sum[buffer], m->next[other]);
            if (warp == 0) moved = solve_diagonal(s, m, buffer, p * SIDE) || moved;
            if (warp == 1) {
                if (at > 0) publish_block(s, &e, m, p > 0 ? p - 1 : e.blocks - 1, at);
                load_sums(s, &e, behind, at, m->sum[other]);
            }
            load_squares(s, &e, m, behind, other);
            __syncthreads();
            if (p < e.blocks - 1) continue;
            if (warp == 0) end_iteration(s, m, moved, made);
            moved = false;
            __syncthreads();
            if (!m->last) continue;
            if (warp == 1) publish_block(s, &e, m, p, at + 1);
            return;
        }
}

/* ---- owners of rows ---- */

/* sum of a strip's rows += columns of diagonal block p, but for rows of p and of the block
 * behind it. */
TB_CARD void add_columns(const tb_gpu_stored *s, sor_memory *m, const pair_of_rows *two, int strip,
                         int last, int p, int behind)
{
    const int part = (int)threadIdx.x / (STRIP / 2), own = 2 * ((int)threadIdx.x % (STRIP / 2));
    tb_real low = 0, high = 0;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        low += two[c].row[0] * m->next[0][part * COLUMNS + c];
        high += two[c].row[1] * m->next[0][part * COLUMNS + c];
    }
    m->part[part][own] = low;
    m->part[part][own + 1] = high;
    __syncthreads();
    const int thread = (int)threadIdx.x, row = strip + thread, block = row / SIDE;
    if (thread < STRIP && row < last && block != p && block != behind)
        ((tb_real *)s->sum)[row] +=
            (m->part[0][thread] + m->part[1][thread]) + (m->part[2][thread] + m->part[3][thread]);
    __syncthreads();
}

/* Whether rows [first, last) take part in a diagonal block. */
TB_CARD bool has_rows_of(int first, int last, int block)
{
    return first < (block + 1) * SIDE && last > block * SIDE;
}

TB_CARD void own_rows(const tb_gpu_stored *s, sor_memory *m)
{
    const sor_extent e = extent_of(s);
    const int owner = (int)blockIdx.x - 1, first = owner * e.rows;
    const int last = first + e.rows < e.n ? first + e.rows : e.n;
    const int thread = (int)threadIdx.x, part = thread / (STRIP / 2);
    const int pair = 2 * (thread % (STRIP / 2));
    pair_of_rows two[COLUMNS];
    unsigned at = 0;
    if (first >= e.n) return;
    for (int made = 0; made < s->iterations; made++)
        for (int p = 0; p < e.blocks; p++, at++) {
            const int column = p * SIDE, width = e.n - column < SIDE ? e.n - column : SIDE;
            load_columns(s, first + pair, last, column + part * COLUMNS, two);
            wait_until(progress_of(s, 0), at + 1);
            if (thread < SIDE)
                m->next[0][thread] =
                    thread < width ? ((volatile const tb_real *)s->next)[column + thread] : 0;
            __syncthreads();
            for (int strip = first; strip < last; strip += STRIP) {
                if (strip > first)
                    load_columns(s, strip + pair, last, column + part * COLUMNS, two);
                add_columns(s, m, two, strip, last, p, (p + 1) % e.blocks);
            }
            if (has_rows_of(first, last, (p + 2) % e.blocks))
                publish(progress_of(s, 1 + owner), at + 1);
            if (p == e.blocks - 1 && *(volatile int32_t *)s->stopped) return;
        }
}

#endif
