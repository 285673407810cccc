/* Full SOR in one cooperative launch: the exact block Gauss-Seidel of Nützi 5.3.1, its two steps
 * overlapped.
 *
 * Block 0 of the grid goes along the diagonal of T, CONTACTS contacts at a time; every other block
 * owns a stretch of rows and adds the columns of diagonal blocks that are solved. The columns of the
 * last AHEAD diagonal blocks cannot wait for an owner: block 0 adds them itself. One warp solves a
 * diagonal block, a contact a lane; meanwhile the others hand over the block before, fetch the sums
 * of the next one, add the columns of all blocks before that but the last to it, and load T, so that
 * between two solves there is only the product with one square of T.
 *
 * Blocks hand numbers to each other through slots of global memory: an empty slot has all bits set,
 * and its reader waits for any other number. So no number needs a fence, a flag and a second load. A
 * slot of impulses is used every other iteration and is emptied in the one between, when all owners
 * have read it; readers of sums empty their slots themselves, most of an iteration before the next
 * number comes.
 *
 * With s counting the diagonal blocks of all iterations and P their number, the rows of a block are
 * solved by block 0 at s, taken over by their owner from there, and handed back with the columns of
 * s + P - AHEAD - 1. */
#ifndef TB_GPU_STORED_SOR_GRID_H
#define TB_GPU_STORED_SOR_GRID_H

#include <string.h>

#include "gpu/stored/jor_grid.h"

enum {
    CONTACTS = TB_GPU_STORED_SOR_CONTACTS,
    AHEAD = TB_GPU_STORED_SOR_AHEAD,
    SIDE = 3 * CONTACTS, /* rows of a diagonal block */
    PARTS = 4,           /* threads that share the columns of a row, or of a pair of rows */
    FAR = AHEAD - 1,     /* squares of a row of T behind the last one before the diagonal */
    X_KEPT = AHEAD + 2,
    RINGS = 3,     /* diagonal squares and far ones in memory */
    WORKERS = 192, /* threads of block 0 that load T and add columns: all but two warps */
    STRIP = 128,   /* rows that an owner goes through at a time, two a thread */
    STAGES = 3,    /* strips of T in flight or in use */
    EMPTYING = AHEAD + 2
};
/* Below, the card's root of doubles flushes to zero. */
static const double SMALLEST_QUICK = 1e-290;

/* Shared memory of block 0. Squares lie by columns; x, sums and parts of block s in place s modulo the
 * number of places. */
typedef struct diagonal_memory_of_grid {
    tb_real diagonal[RINGS][SIDE][SIDE];  /* T(s, s) */
    tb_real near[2][SIDE][SIDE];          /* T(s, s - 1) */
    tb_real far[RINGS][FAR * SIDE][SIDE]; /* T(s, s - 2), T(s, s - 3), ... */
    tb_real x[X_KEPT][SIDE];              /* impulses */
    tb_real sum[2][SIDE], left[2][SIDE];  /* before the solve, with d; after it */
    tb_real mu[2][CONTACTS];
    tb_real near_part[PARTS][SIDE], far_part[2][PARTS][SIDE];
    int last; /* the iterations end here */
} diagonal_memory_of_grid;

/* Shared memory of an owner of rows. */
typedef struct owner_memory {
    tb_real t[STAGES][SIDE][STRIP];
    tb_real x[SIDE], part[PARTS][STRIP];
    int last;
} owner_memory;

typedef union sor_memory {
    diagonal_memory_of_grid diagonal;
    owner_memory owner;
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

/* ---- slots ---- */

#ifdef TB_SINGLE
typedef unsigned slot_bits;
#else
typedef unsigned long long slot_bits;
#endif
static const slot_bits EMPTY = ~(slot_bits)0;

/* Slots of impulses, by the parity of the iteration, of sums for block 0, of sums for owners. */
TB_CARD tb_real *slots_of(const tb_gpu_stored *s, int kind)
{
    const int64_t rows = (int64_t)(s->contacts + CONTACTS - 1) / CONTACTS * SIDE;
    return (tb_real *)s->exchange + kind * rows;
}

enum { IMPULSES = 0, SUMS_IN = 2, SUMS_OUT = 3 };

/* A number that is the empty slot's becomes another one that is no number either. */
TB_CARD void put_in_slot(tb_real *slot, tb_real number)
{
    slot_bits bits;
    memcpy(&bits, &number, sizeof bits);
    *(volatile slot_bits *)slot = bits == EMPTY ? EMPTY >> 1 : bits;
}

TB_CARD void empty_slot(tb_real *slot)
{
    *(volatile slot_bits *)slot = EMPTY;
}

TB_CARD tb_real wait_for_slot(const tb_real *slot)
{
    slot_bits bits;
    tb_real number;
    while ((bits = *(const volatile slot_bits *)slot) == EMPTY) TB_CARD_SPIN;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* ---- loads that go on while the thread does other work ---- */

/* Two rows of a column of T to shared memory; zero beyond the last row and column. */
TB_CARD void load_pair(const tb_gpu_stored *s, int row, int column, tb_real *to)
{
    const int n = 3 * s->contacts, left = n - row;
    const int rows = column < n ? (left > 2 ? 2 : (left > 0 ? left : 0)) : 0;
    const tb_real *from = rows > 0 ? column_of(s, column) + row : (const tb_real *)s->t;
#ifdef __CUDA_ARCH__
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(place), "l"(from),
                 "n"(2 * sizeof(tb_real)), "r"(rows * (int)sizeof(tb_real))
                 : "memory");
#else
    for (int i = 0; i < 2; i++) to[i] = i < rows ? from[i] : 0;
#endif
}

/* Ends a group of loads. */
TB_CARD void end_loads(void)
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for this thread's loads but for those of the last GROUPS groups. */
#ifdef __CUDA_ARCH__
#define WAIT_FOR_LOADS(groups) asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")
#else
#define WAIT_FOR_LOADS(groups) ((void)0)
#endif

/* ---- the diagonal ---- */

TB_CARD tb_real fused(tb_real a, tb_real b, tb_real sum)
{
#ifdef TB_SINGLE
    return fmaf(a, b, sum);
#else
    return fma(a, b, sum);
#endif
}

/* A position among the diagonal blocks of one iteration. */
TB_CARD int block_at(const sor_extent *e, unsigned at, int before)
{
    return (int)((at + (unsigned)(e->blocks - before)) % (unsigned)e->blocks);
}

/* A square of T by the workers, of whom this is number `thread`. */
TB_CARD void load_square(const tb_gpu_stored *s, int row, int column, tb_real (*to)[SIDE],
                         int thread)
{
    for (int i = thread; i < SIDE * SIDE / 2; i += WORKERS) {
        const int c = i / (SIDE / 2), pair = 2 * (i % (SIDE / 2));
        load_pair(s, row + pair, column + c, &to[c][pair]);
    }
}

TB_CARD void load_diagonal(const tb_gpu_stored *s, const sor_extent *e, diagonal_memory_of_grid *m,
                           unsigned at, int thread)
{
    const int p = block_at(e, at, 0), before = block_at(e, at, 1);
    load_square(s, p * SIDE, p * SIDE, m->diagonal[at % RINGS], thread);
    load_square(s, p * SIDE, before * SIDE, m->near[at % 2], thread);
}

TB_CARD void load_far(const tb_gpu_stored *s, const sor_extent *e, diagonal_memory_of_grid *m,
                      unsigned at, int thread)
{
    for (int k = 0; k < FAR; k++)
        load_square(s, block_at(e, at, 0) * SIDE, block_at(e, at, 2 + k) * SIDE,
                    m->far[at % RINGS] + k * SIDE, thread);
}

/* A thread's part of the product of a square and x: SIDE / PARTS columns of one row. */
TB_CARD tb_real part_of_product(const tb_real (*square)[SIDE], const tb_real *x, int thread)
{
    const int row = thread % SIDE, first = thread / SIDE * (SIDE / PARTS);
    tb_real even = 0, odd = 0;
#pragma unroll
    for (int c = 0; c < SIDE / PARTS; c += 2) {
        even = fused(square[first + c][row], x[first + c], even);
        odd = fused(square[first + c + 1][row], x[first + c + 1], odd);
    }
    return even + odd;
}

TB_CARD tb_real sum_of_parts(const tb_real (*part)[SIDE], int row)
{
    return (part[0][row] + part[1][row]) + (part[2][row] + part[3][row]);
}

/* The numbers of T that a turn needs, fetched a turn ahead. */
typedef struct turn_of_contact {
    tb_real rows[3][3]; /* T(contact of the lane, contact whose turn it is), by columns */
    tb_real next[3][3]; /* T(contact of the next turn, contact whose turn it is), by columns */
    tb_real tangent[2]; /* T(tangents, normal) of the contact itself */
    tb_real mu;
} turn_of_contact;

TB_CARD void fetch_turn(const diagonal_memory_of_grid *m, unsigned at, int j, int row,
                        turn_of_contact *turn)
{
    const int next = j + 1 < CONTACTS ? 3 * (j + 1) : 3 * j;
#pragma unroll
    for (int c = 0; c < 3; c++) {
        const tb_real *column = m->diagonal[at % RINGS][3 * j + c];
#pragma unroll
        for (int k = 0; k < 3; k++) {
            turn->rows[c][k] = column[row + k];
            turn->next[c][k] = column[next + k];
        }
        if (c > 0) continue;
        turn->tangent[0] = column[3 * j + 1];
        turn->tangent[1] = column[3 * j + 2];
    }
    turn->mu = m->mu[at % 2][j];
}

/* 1 / sqrt(x) without the range test of the library, but for the smallest numbers. */
TB_CARD tb_real quick_rsqrt(tb_real x)
{
#if defined(__CUDA_ARCH__) && !defined(TB_SINGLE)
    if (x < SMALLEST_QUICK) return tb_rsqrt(x);
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    const double rest = fma(-x, y * y, 1.0); /* third order: the first guess has 20 bits */
    return fma(fma(rest, 0.375, 0.5), y * rest, y);
#else
    return tb_rsqrt(x);
#endif
}

/* One warp: the contacts of diagonal block `at` in order. A lane keeps the sums of its contact; half
 * the warp repeats the other half. The impulses of a contact are computed by all lanes alike, from
 * the sums `own` of the contact whose turn it is: all lanes add to those of the next contact what the
 * present one changes, so that no number goes from lane to lane between two contacts. A root is on
 * the way to the next contact only where this one slips; what it multiplies is computed beside it. */
TB_CARD void solve_diagonal(diagonal_memory_of_grid *m, unsigned at)
{
    const int lane = lane_of() % CONTACTS, row = 3 * lane;
    tb_real sum[3], own[3], x[3] = {0, 0, 0};
    turn_of_contact now, then;
    fetch_turn(m, at, 0, row, &then);
    for (int k = 0; k < 3; k++) {
        sum[k] = (m->sum[at % 2][row + k] + sum_of_parts(m->far_part[at % 2], row + k)) +
                 sum_of_parts(m->near_part, row + k);
        own[k] = __shfl_sync(0xffffffffu, sum[k], 0);
    }
#pragma unroll
    for (int j = 0; j < CONTACTS; j++) {
        const bool turn = lane == j;
        tb_real following[3], normal = own[0];
        now = then;
        if (j + 1 < CONTACTS) fetch_turn(m, at, j + 1, row, &then);
        for (int k = 0; k < 3; k++)
            following[k] = __shfl_sync(0xffffffffu, sum[k], j + 1 < CONTACTS ? j + 1 : j);
        if (!(normal > 0)) { /* open: nothing changes */
            for (int k = 0; k < 3; k++) {
                own[k] = following[k];
                if (turn) sum[k] = 0;
            }
            continue;
        }
        tb_real y1 = fused(now.tangent[0], normal, own[1]);
        tb_real y2 = fused(now.tangent[1], normal, own[2]);
        const tb_real length2 = fused(y1, y1, y2 * y2), radius = now.mu * normal;
        tb_real change[3];
        for (int k = 0; k < 3; k++) {
            following[k] = fused(now.next[0][k], normal, following[k]);
            change[k] = fused(now.next[1][k], y1, now.next[2][k] * y2);
        }
        if (length2 > radius * radius) {
            const tb_real root = quick_rsqrt(length2);
            for (int k = 0; k < 3; k++) own[k] = fused(root, radius * change[k], following[k]);
            y1 *= radius * root;
            y2 *= radius * root;
        } else {
            for (int k = 0; k < 3; k++) own[k] = following[k] + change[k];
        }
        if (turn) x[0] = normal, x[1] = y1, x[2] = y2;
        /* a row that is solved begins the next iteration's sum; its tangents see the next normal */
        sum[0] = fused(now.rows[0][0], normal, turn ? 0 : sum[0]);
        for (int k = 1; k < 3; k++) sum[k] = turn ? 0 : fused(now.rows[0][k], normal, sum[k]);
        for (int k = 0; k < 3; k++)
            sum[k] = fused(now.rows[2][k], y2, fused(now.rows[1][k], y1, sum[k]));
    }
    if (lane_of() >= CONTACTS) return;
    for (int k = 0; k < 3; k++) {
        m->x[at % X_KEPT][row + k] = x[k];
        m->left[at % 2][row + k] = sum[k];
    }
}

/* One warp hands diagonal block `at` to the owners of rows, stores its impulses, and empties slots
 * that all owners have read. Returns whether an element fails the stop test. */
TB_CARD bool hand_over(const tb_gpu_stored *s, const sor_extent *e,
                       const diagonal_memory_of_grid *m, unsigned at)
{
    const int first = block_at(e, at, 0) * SIDE, parity = (int)(at / (unsigned)e->blocks % 2);
    bool moved = false;
    for (int i = lane_of(); i < SIDE; i += WARP) {
        put_in_slot(slots_of(s, IMPULSES + parity) + first + i, m->x[at % X_KEPT][i]);
        put_in_slot(slots_of(s, SUMS_OUT) + first + i, m->left[at % 2][i]);
    }
    for (int i = lane_of(); i < SIDE && first + i < e->n; i += WARP) {
        tb_real *to = (tb_real *)s->next + first + i;
        moved = moves_on(s, *to, m->x[at % X_KEPT][i]) || moved;
        *to = m->x[at % X_KEPT][i];
    }
    if (at < (unsigned)(e->blocks + EMPTYING)) return moved;
    const unsigned old = at - (unsigned)(e->blocks + EMPTYING);
    tb_real *stale = slots_of(s, IMPULSES + (int)(old / (unsigned)e->blocks % 2));
    for (int i = lane_of(); i < SIDE; i += WARP) empty_slot(stale + block_at(e, old, 0) * SIDE + i);
    return moved;
}

/* One warp fetches the sums of diagonal block `at` from their owners, adds d, and fetches mu. */
TB_CARD void fetch_sums(const tb_gpu_stored *s, const sor_extent *e, diagonal_memory_of_grid *m,
                        unsigned at)
{
    const int first = block_at(e, at, 0) * SIDE;
    tb_real *in = slots_of(s, SUMS_IN);
    for (int i = lane_of(); i < SIDE; i += WARP) {
        const int row = first + i;
        tb_real sum = 0;
        if (row < e->n) {
            const tb_real d = ((const tb_real *)s->d)[row];
            if (at <= AHEAD) { /* no owner adds to it before */
                sum = ((const tb_real *)s->sum)[row];
            } else {
                sum = wait_for_slot(in + row);
                empty_slot(in + row);
            }
            sum += d;
        }
        m->sum[at % 2][i] = sum;
    }
    const int contact = first / 3 + lane_of();
    if (lane_of() < CONTACTS)
        m->mu[at % 2][lane_of()] = contact < s->contacts ? ((const tb_real *)s->mu)[contact] : 0;
}

/* Ends an iteration: signals the owners whether it was the last, and stores that in
 * `last`. One warp. */
TB_CARD void end_iteration(const tb_gpu_stored *s, diagonal_memory_of_grid *m, bool moved, int made)
{
    const bool any = __ballot_sync(0xffffffffu, moved) != 0;
    if (lane_of() != 0) return;
    const int stops = s->check > 0 && made % s->check == 0 && !any;
    *(volatile int32_t *)s->stopped = stops;
    *s->finished = made;
    m->last = stops || made == s->iterations;
}

/* Block 0, while its first warp solves block `at`. */
TB_CARD void work_beside(const tb_gpu_stored *s, const sor_extent *e, diagonal_memory_of_grid *m,
                         unsigned at)
{
    const int thread = (int)threadIdx.x - 2 * WARP;
    if (thread < 0) {
        fetch_sums(s, e, m, at + 1);
        return;
    }
    load_diagonal(s, e, m, at + 2, thread);
    load_far(s, e, m, at + 3, thread);
    end_loads();
    tb_real part = 0;
    for (int k = 0; k < FAR; k++)
        part += part_of_product(m->far[(at + 1) % RINGS] + k * SIDE,
                                m->x[(at + X_KEPT - 1 - (unsigned)k) % X_KEPT], thread);
    m->far_part[(at + 1) % 2][thread / SIDE][thread % SIDE] = part;
    WAIT_FOR_LOADS(1);
}

/* Memory and loads before the first block. */
TB_CARD void begin_diagonal(const tb_gpu_stored *s, const sor_extent *e, diagonal_memory_of_grid *m)
{
    const int thread = (int)threadIdx.x;
    for (int i = thread; i < X_KEPT * SIDE; i += LANES) m->x[i / SIDE][i % SIDE] = 0;
    for (int i = thread; i < PARTS * SIDE; i += LANES) m->far_part[0][i / SIDE][i % SIDE] = 0;
    if (thread < WORKERS) {
        for (unsigned at = 0; at < 2; at++) load_diagonal(s, e, m, at, thread);
        for (unsigned at = 1; at < 3; at++) load_far(s, e, m, at, thread);
        end_loads();
        WAIT_FOR_LOADS(0);
    } else if (warp_of() == WORKERS / WARP) {
        fetch_sums(s, e, m, 0);
    }
    __syncthreads();
}

TB_CARD void go_along_diagonal(const tb_gpu_stored *s, diagonal_memory_of_grid *m)
{
    const sor_extent e = extent_of(s);
    const int thread = (int)threadIdx.x, warp = warp_of();
    bool moved = false;
    unsigned at = 0;
    begin_diagonal(s, &e, m);
    for (int made = 1;; made++)
        for (int p = 0; p < e.blocks; p++, at++) {
            if (thread < WORKERS)
                m->near_part[thread / SIDE][thread % SIDE] =
                    part_of_product(m->near[at % 2], m->x[(at + X_KEPT - 1) % X_KEPT], thread);
            __syncthreads();
            if (warp == 2 && p > 0) moved = hand_over(s, &e, m, at - 1) || moved;
            if (warp == 0)
                solve_diagonal(m, at);
            else
                work_beside(s, &e, m, at);
            __syncthreads();
            if (p < e.blocks - 1) continue;
            /* the last block tells the owners whether they go on */
            if (warp == 2) {
                const int first = p * SIDE;
                for (int i = lane_of(); i < SIDE && first + i < e.n; i += WARP)
                    moved =
                        moves_on(s, ((const tb_real *)s->next)[first + i], m->x[at % X_KEPT][i]) ||
                        moved;
                end_iteration(s, m, moved, made);
                __threadfence();
                __syncwarp();
                (void)hand_over(s, &e, m, at);
            }
            moved = false;
            __syncthreads();
            if (m->last) return;
        }
}

/* ---- owners of rows ---- */

/* Rows of an owner, and the strips that they are cut into. */
typedef struct own_stretch {
    int first, last, strips;
} own_stretch;

/* Loads piece `piece` of the columns of all diagonal blocks, a strip of rows each. */
TB_CARD void load_strip(const tb_gpu_stored *s, const sor_extent *e, const own_stretch *own,
                        owner_memory *m, unsigned piece)
{
    const int column = (int)(piece / (unsigned)own->strips % (unsigned)e->blocks) * SIDE;
    const int row = own->first + (int)(piece % (unsigned)own->strips) * STRIP;
    const int rows = own->last - row < STRIP ? own->last - row : STRIP, pairs = (rows + 1) / 2;
    for (int i = (int)threadIdx.x; i < SIDE * pairs; i += LANES) {
        const int c = i / pairs, pair = 2 * (i % pairs);
        load_pair(s, row + pair, column + c, &m->t[piece % STAGES][c][pair]);
    }
    end_loads();
}

/* The impulses of a diagonal block, by two warps. One lane of each waits for its first number and
 * the others for the lane: all owners read the same lines, which waits of all lanes would keep from
 * being written. */
TB_CARD void wait_for_impulses(const tb_real *slots, tb_real *x)
{
    const int thread = (int)threadIdx.x;
    if (thread >= 2 * WARP) return;
    if (lane_of() == 0) (void)wait_for_slot(slots + thread);
    __syncwarp();
    if (thread < SIDE) x[thread] = wait_for_slot(slots + thread);
}

/* Parts of a strip's products with the impulses of one diagonal block. */
TB_CARD void multiply_strip(owner_memory *m, unsigned piece)
{
    const int part = (int)threadIdx.x / (STRIP / 2), own = 2 * ((int)threadIdx.x % (STRIP / 2));
    tb_real low = 0, high = 0;
#pragma unroll
    for (int c = part * (SIDE / PARTS); c < (part + 1) * (SIDE / PARTS); c++) {
        const pair_of_rows two = *(const pair_of_rows *)&m->t[piece % STAGES][c][own];
        low += two.row[0] * m->x[c];
        high += two.row[1] * m->x[c];
    }
    m->part[part][own] = low;
    m->part[part][own + 1] = high;
}

/* One thread's row takes the columns of diagonal block p. */
TB_CARD void add_to_row(const tb_gpu_stored *s, const sor_extent *e, const owner_memory *m, int row,
                        int within, int p)
{
    tb_real *sum = (tb_real *)s->sum + row;
    const int since = (p - row / SIDE + e->blocks) % e->blocks; /* blocks since its own */
    if (since == 0) {
        tb_real *out = slots_of(s, SUMS_OUT) + row;
        *sum = wait_for_slot(out);
        empty_slot(out);
        return;
    }
    if (since >= e->blocks - AHEAD) return;
    const tb_real all = *sum + ((m->part[0][within] + m->part[1][within]) +
                                (m->part[2][within] + m->part[3][within]));
    *sum = all;
    if (since == e->blocks - AHEAD - 1) put_in_slot(slots_of(s, SUMS_IN) + row, all);
}

TB_CARD void own_rows(const tb_gpu_stored *s, owner_memory *m)
{
    const sor_extent e = extent_of(s);
    own_stretch own;
    own.first = ((int)blockIdx.x - 1) * e.rows;
    own.last = own.first + e.rows < e.n ? own.first + e.rows : e.n;
    own.strips = (own.last - own.first + STRIP - 1) / STRIP;
    if (own.first >= e.n) return;
    const int thread = (int)threadIdx.x;
    unsigned piece = 0;
    for (unsigned i = 0; i < STAGES - 1; i++) load_strip(s, &e, &own, m, i);
    for (int made = 0; made < s->iterations; made++)
        for (int p = 0; p < e.blocks; p++) {
            wait_for_impulses(slots_of(s, IMPULSES + made % 2) + p * SIDE, m->x);
            for (int strip = own.first; strip < own.last; strip += STRIP, piece++) {
                WAIT_FOR_LOADS(STAGES - 2);
                __syncthreads();
                load_strip(s, &e, &own, m, piece + STAGES - 1);
                multiply_strip(m, piece);
                __syncthreads();
                if (thread < STRIP && strip + thread < own.last)
                    add_to_row(s, &e, m, strip + thread, thread, p);
            }
            if (p == e.blocks - 1) { /* read after the block's impulses, which came after it */
                if (thread == 0) {
                    __threadfence();
                    m->last = *(volatile int32_t *)s->stopped;
                }
                __syncthreads();
                if (m->last) return;
            }
        }
}

#endif
