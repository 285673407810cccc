/* The factorization of the free variables' part of H, by all blocks.
 *
 * In each step of a chain one block does what the next step waits for: it takes the tile below the
 * diagonal, subtracts its square from the next diagonal tile and factors that. The others finish the
 * column meanwhile and subtract its products from everything to the right. Tiles of the matrix and of
 * the factor have places of their own, so the two read what they like. */
#ifndef TB_GPU_BAND_FACTOR_H
#define TB_GPU_BAND_FACTOR_H

#include "gpu/card.h"
#include "gpu/tile_factor.h"

/* A block's memory while it factors. */
typedef struct factor_memory {
    tb_real tile[ROOM], inverse[ROOM], spare[ROOM];
    tb_real pivots[TILE], reciprocal[TILE];
    int bad;
} factor_memory;

/* ---- the matrix ---- */

/* Lanes follow the columns of H in memory, whichever way the chain's variables run. */
TB_CARD void gather_tile(const card *c, const band_shape *s, int chain, int row, int column,
                         tb_real *tile)
{
    const bool middle = chain == BOTTOM && column >= s->tiles[BOTTOM];
    for (int e = (int)threadIdx.x; e < SQUARE; e += LANES) {
        const int i = chain == TOP ? e % TILE : e / TILE, j = chain == TOP ? e / TILE : e % TILE;
        const int p = chain_position(s, chain, row * TILE + i);
        const int q = chain_position(s, chain, column * TILE + j);
        tb_real value = row == column && i == j ? (tb_real)1 : (tb_real)0;
        if (p >= 0 && q >= 0) value = hessian_at(c, c->free[p], c->free[q]);
        tile[i * PITCH + j] = middle ? 0 : value;
    }
    __syncthreads();
    store_tile(c->matrix + tile_place(s, chain, row, column), tile);
    __syncthreads();
}

TB_CARD_LARGE void gather_matrix(const card *c, const band_shape *s, tb_real *tile)
{
    for (int chain = 0; chain < CHAINS; chain++) {
        const int columns = s->tiles[chain] + s->middle_tiles;
        const int tasks = columns * (s->below + 1);
        for (int t = (int)blockIdx.x; t < tasks; t += (int)gridDim.x) {
            const int column = t / (s->below + 1), row = column + t % (s->below + 1);
            if (row < columns) gather_tile(c, s, chain, row, column, tile);
        }
    }
}

/* ---- steps ---- */

/* The least that the pivots of a tile may be: a rounding of the matrix's diagonal. */
TB_CARD void load_pivots(const card *c, const band_shape *s, int chain, int column, tb_real *pivots)
{
    if (threadIdx.x >= TILE) return;
    const int p = chain_position(s, chain, column * TILE + (int)threadIdx.x);
    const int j = p >= 0 ? c->free[p] : -1;
    pivots[threadIdx.x] = j >= 0 ? TB_REAL_EPSILON * tb_abs(hessian_at(c, j, j)) : (tb_real)0;
}

TB_CARD void factor_diagonal(const card *c, const band_shape *s, int chain, int column,
                             factor_memory *m)
{
    if (threadIdx.x == 0) m->bad = TILE;
    load_pivots(c, s, chain, column, m->pivots);
    __syncthreads();
    factor_tile(m->tile, m->inverse, m->spare, m->pivots, m->reciprocal, &m->bad);
    store_tile(c->inverse + diagonal_place(s, chain, column), m->inverse);
    if (threadIdx.x == 0 && m->bad < TILE)
        atomicMin(&c->control->bad, chain_position(s, chain, column * TILE + m->bad));
}

/* spare = A_row,column D_column', the factor's tile; D is in `inverse` */
TB_CARD void divide_tile(const card *c, const band_shape *s, int chain, int row, int column,
                         factor_memory *m)
{
    tb_real sums[SUMS] = {0};
    load_tile(m->tile, c->matrix + tile_place(s, chain, row, column));
    __syncthreads();
    tile_product(sums, m->tile, m->inverse, true);
#pragma unroll
    for (int e = 0; e < SUMS; e++) m->spare[sum_row(e) * PITCH + sum_column(e)] = sums[e];
    __syncthreads();
}

/* What the next step of the chain waits for. `inverse` is of this column, and becomes the next's. */
TB_CARD void step_ahead(const card *c, const band_shape *s, int chain, int column, factor_memory *m)
{
    divide_tile(c, s, chain, column + 1, column, m);
    const tb_real *from = c->matrix + tile_place(s, chain, column + 1, column + 1);
    tb_real sums[SUMS] = {0}, old[SUMS];
#pragma unroll
    for (int e = 0; e < SUMS; e++) old[e] = from[sum_row(e) * TILE + sum_column(e)];
    tile_product(sums, m->spare, m->spare, true);
#pragma unroll
    for (int e = 0; e < SUMS; e++) m->tile[sum_row(e) * PITCH + sum_column(e)] = old[e] - sums[e];
    __syncthreads();
    factor_diagonal(c, s, chain, column + 1, m);
}

/* A_row,other -= L_row,column L_other,column' */
TB_CARD void subtract_product(const card *c, const band_shape *s, int chain, int row, int other,
                              int column, factor_memory *m)
{
    tb_real *to = c->matrix + tile_place(s, chain, row, other);
    tb_real sums[SUMS] = {0}, old[SUMS];
    __syncthreads();
    load_tile(m->tile, c->factor + tile_place(s, chain, row, column));
    load_tile(m->spare, c->factor + tile_place(s, chain, other, column));
#pragma unroll
    for (int e = 0; e < SUMS; e++) old[e] = to[sum_row(e) * TILE + sum_column(e)];
    __syncthreads();
    tile_product(sums, m->tile, m->spare, true);
#pragma unroll
    for (int e = 0; e < SUMS; e++) to[sum_row(e) * TILE + sum_column(e)] = old[e] - sums[e];
}

/* Tile columns [from, to) of a chain by `count` blocks, at least two, of which this is `self`. The
 * matrix goes on to `end`. Ends with a meeting of them. */
TB_CARD_LARGE void factor_columns(const card *c, const band_shape *s, int chain, int from, int to,
                                  int end, int self, int count, meeting *place, meeting *workers,
                                  factor_memory *m)
{
    if (from >= to) return;
    if (self == 0) {
        load_tile(m->tile, c->matrix + tile_place(s, chain, from, from));
        factor_diagonal(c, s, chain, from, m);
    }
    meet(place, count);
    for (int column = from; column < to; column++) {
        const int left = end - 1 - column, below = s->below < left ? s->below : left;
        const bool ahead = column + 1 < to;
        if (self == 0) {
            if (ahead) step_ahead(c, s, chain, column, m);
            meet(place, count);
            continue;
        }
        if (self - 1 < below) {
            load_tile(m->inverse, c->inverse + diagonal_place(s, chain, column));
            for (int i = self; i <= below; i += count - 1) {
                divide_tile(c, s, chain, column + i, column, m);
                store_tile(c->factor + tile_place(s, chain, column + i, column), m->spare);
                __syncthreads();
            }
        }
        meet(workers, count - 1);
        /* pairs (1, 1), (2, 1), (2, 2), (3, 1) ...: the first is the other block's if it steps on */
        int i = 1, j = self - 1 + (ahead ? 2 : 1);
        for (;;) {
            while (j > i) j -= i++;
            if (i > below) break;
            subtract_product(c, s, chain, column + i, column + j, column, m);
            j += count - 1;
        }
        meet(place, count);
    }
}

/* ---- all of it ---- */

/* What the bottom's chain subtracted from the middle, turned round. */
TB_CARD_LARGE void merge_middle(const card *c, const band_shape *s)
{
    const int tiles = s->middle_tiles, n = s->middle_rows;
    const int tasks = tiles * (tiles + 1) / 2;
    for (int t = (int)blockIdx.x; t < tasks; t += (int)gridDim.x) {
        int row = 0, column = t;
        while (column > row) column -= ++row;
        tb_real *to = c->matrix + tile_place(s, TOP, s->tiles[TOP] + row, s->tiles[TOP] + column);
        for (int e = (int)threadIdx.x; e < SQUARE; e += LANES) {
            int i = row * TILE + e / TILE, j = column * TILE + e % TILE;
            if (i >= n || j >= n) continue;
            i = n - 1 - i;
            j = n - 1 - j;
            const int low = i > j ? i : j, high = i > j ? j : i;
            to[e] += c->matrix[tile_place(s, BOTTOM, s->tiles[BOTTOM] + low / TILE,
                                          s->tiles[BOTTOM] + high / TILE) +
                               low % TILE * TILE + high % TILE];
        }
    }
}

/* Factors; control->bad tells of a pivot that is too small. Ends with a meeting of all. */
TB_CARD void factor_band(const card *c, const band_shape *s, factor_memory *m)
{
    card_control *k = c->control;
    const int blocks = (int)gridDim.x, self = (int)blockIdx.x;
    gather_matrix(c, s, m->tile);
    meet_all(c);
    if (s->tiles[BOTTOM] > 0) {
        const int half = blocks / 2, chain = self < half ? TOP : BOTTOM;
        factor_columns(c, s, chain, 0, s->tiles[chain], s->tiles[chain] + s->middle_tiles,
                       chain == TOP ? self : self - half, chain == TOP ? half : blocks - half,
                       &k->chain[chain], &k->workers[chain], m);
        meet_all(c);
        merge_middle(c, s);
    } else {
        factor_columns(c, s, TOP, 0, s->tiles[TOP], s->tiles[TOP] + s->middle_tiles, self, blocks,
                       &k->all, &k->workers[CHAINS], m);
    }
    meet_all(c);
    const int end = s->tiles[TOP] + s->middle_tiles;
    factor_columns(c, s, TOP, s->tiles[TOP], end, end, self, blocks, &k->all, &k->workers[CHAINS],
                   m);
    meet_all(c);
}

#endif
