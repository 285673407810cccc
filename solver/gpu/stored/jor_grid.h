/* JOR in one cooperative launch: the whole card goes through all iterations and meets twice in
 * each, instead of two or three launches an iteration.
 *
 * T is cut into tiles of rows by slices of columns, as many as there are blocks, so that every
 * multiprocessor reads it at full width: a thread loads two neighbouring rows at once. The products
 * of the slices are summed in their order, contact by contact, with the projection and the stop
 * test. */
#ifndef TB_GPU_STORED_JOR_GRID_H
#define TB_GPU_STORED_JOR_GRID_H

#include "gpu/stored/product.h"

static const int COLUMNS_IN_FLIGHT = 8;

typedef struct pair_of_rows {
    tb_real row[2];
} __align__(2 * sizeof(tb_real)) pair_of_rows;

/* How T is cut: rows of a tile, even, and columns of a slice. */
typedef struct tiling {
    int tiles, rows, slices, columns;
} tiling;

TB_CARD tiling tiling_of(const tb_gpu_stored *s)
{
    const int n = 3 * s->contacts;
    tiling cut;
    cut.tiles = (n + TB_GPU_STORED_JOR_ROWS - 1) / TB_GPU_STORED_JOR_ROWS;
    cut.rows = ((n + cut.tiles - 1) / cut.tiles + 1) / 2 * 2;
    cut.slices = s->slices;
    cut.columns = (n + cut.slices - 1) / cut.slices;
    return cut;
}

/* partial(slice, rows of the tile) = T(tile, slice) old. Rows behind the last are padding of T. */
TB_CARD void product_of_tile(const tb_gpu_stored *s, const tiling *cut, int tile, int slice,
                             const tb_real *old, tb_real *shared)
{
    const int n = 3 * s->contacts, own = 2 * (int)threadIdx.x, row = tile * cut->rows + own;
    const int first = slice * cut->columns;
    int columns = n - first < cut->columns ? n - first : cut->columns;
    tb_real low = 0, high = 0;
    for (int from = 0; from < columns; from += TB_GPU_STORED_JOR_ROWS) {
        const int width =
            columns - from < TB_GPU_STORED_JOR_ROWS ? columns - from : TB_GPU_STORED_JOR_ROWS;
        __syncthreads();
        for (int k = (int)threadIdx.x; k < width; k += LANES) shared[k] = old[first + from + k];
        __syncthreads();
        if (own >= cut->rows || row >= n) continue;
        const tb_real *t = column_of(s, first + from) + row;
        int c = 0;
        for (; c + COLUMNS_IN_FLIGHT <= width; c += COLUMNS_IN_FLIGHT) {
            pair_of_rows two[8];
#pragma unroll
            for (int k = 0; k < 8; k++) two[k] = *(const pair_of_rows *)(t + k * s->pitch);
#pragma unroll
            for (int k = 0; k < 8; k++) {
                low += two[k].row[0] * shared[c + k];
                high += two[k].row[1] * shared[c + k];
            }
            t += COLUMNS_IN_FLIGHT * s->pitch;
        }
        for (; c < width; c++, t += s->pitch) {
            const pair_of_rows two = *(const pair_of_rows *)t;
            low += two.row[0] * shared[c];
            high += two.row[1] * shared[c];
        }
    }
    if (own >= cut->rows || row >= n) return;
    tb_real *to = (tb_real *)s->partial + (int64_t)slice * n + row;
    to[0] = low;
    if (own + 1 < cut->rows && row + 1 < n) to[1] = high;
}

/* A contact's slices in their order, d, the projection, the stop test. */
TB_CARD void sum_and_project(const tb_gpu_stored *s, int slices, int contact, const tb_real *old,
                             tb_real *next, int32_t *stays)
{
    const int n = 3 * s->contacts;
    tb_real x[3] = {0, 0, 0};
    for (int k = 0; k < slices; k++) {
        const volatile tb_real *from =
            (const volatile tb_real *)s->partial + (int64_t)k * n + 3 * (int64_t)contact;
        for (int i = 0; i < 3; i++) x[i] += from[i];
    }
    for (int i = 0; i < 3; i++) x[i] += ((const tb_real *)s->d)[3 * (int64_t)contact + i];
    tb_prox_coulomb(x, ((const tb_real *)s->mu)[contact]);
    for (int i = 0; i < 3; i++) {
        if (moves_on(s, old[3 * (int64_t)contact + i], x[i])) *stays = 0;
        next[3 * (int64_t)contact + i] = x[i];
    }
}

/* Impulses begin and end in `old` or `next`, alternating; `finished` receives the number of
 * iterations. stopped[0] and [1] alternate between iterations, so that one is reset while the
 * other is read. */
TB_CARD void iterate_jor(const tb_gpu_stored *s, tb_real *shared)
{
    const tiling cut = tiling_of(s);
    meeting *place = (meeting *)(void *)s->counters;
    const int blocks = (int)gridDim.x, lane = (int)(blockIdx.x * LANES + threadIdx.x);
    int made = 0;
    for (; made < s->iterations; made++) {
        const tb_real *old = (const tb_real *)(made % 2 ? s->next : s->old);
        tb_real *next = (tb_real *)(made % 2 ? s->old : s->next);
        int32_t *stays = &s->stopped[made % 2];
        for (int w = (int)blockIdx.x; w < cut.tiles * cut.slices; w += blocks)
            product_of_tile(s, &cut, w % cut.tiles, w / cut.tiles, old, shared);
        if (lane == 0) *(volatile int32_t *)stays = 1;
        meet(place, blocks);
        for (int contact = lane; contact < s->contacts; contact += blocks * LANES)
            sum_and_project(s, cut.slices, contact, old, next, stays);
        meet(place, blocks);
        if (s->check > 0 && (made + 1) % s->check == 0 && *(volatile int32_t *)stays) {
            made++;
            break;
        }
    }
    if (lane == 0) *s->finished = made;
}

#endif
