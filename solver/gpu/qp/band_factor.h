/* The factorization of the free variables' part of H, by all blocks.
 *
 * In each step of a chain one block works on the critical path: it takes the tile below the diagonal,
 * subtracts its square from the next diagonal tile and factors that. The other blocks finish the
 * column meanwhile and subtract its products from all tiles to the right. The factor does not
 * overwrite the matrix, so neither waits for the other's reads. */
#ifndef TB_GPU_BAND_FACTOR_H
#define TB_GPU_BAND_FACTOR_H

#include "gpu/qp/card.h"
#include "gpu/qp/tile_factor.h"

/* A block's memory while it factors. */
typedef struct factor_memory {
    tb_real tile[ROOM], inverse[ROOM], spare[ROOM];
    tb_real pivots[TILE], reciprocal[TILE];
    int bad, variable[2 * TILE];
} factor_memory;

/* ---- the matrix ---- */

/* Lanes follow the columns of H in memory, whichever way the chain's variables run. */
TB_CARD void gather_tile(const card *c, const band_shape *s, int chain, int row, int column,
                         factor_memory *m)
{
    const int EACH = SQUARE / LANES, n = TILE;
    const bool middle = chain == BOTTOM && column >= s->tiles[BOTTOM];
    int *variable = m->variable;
    if (threadIdx.x < 2 * TILE) {
        const int own = (int)threadIdx.x;
        const int p = chain_position(s, chain, (own < n ? row : column) * n + own % n);
        variable[own] = p >= 0 ? c->free[p] : -1;
    }
    __syncthreads();
    tb_real value[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int t = e * LANES + (int)threadIdx.x;
        const int i = chain == TOP ? t % n : t / n, j = chain == TOP ? t / n : t % n;
        const int p = variable[i], q = variable[n + j];
        value[e] = row == column && i == j ? (tb_real)1 : (tb_real)0;
        if (p >= 0 && q >= 0) value[e] = hessian_at(c, p, q);
        if (middle) value[e] = 0;
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int t = e * LANES + (int)threadIdx.x;
        const int i = chain == TOP ? t % n : t / n, j = chain == TOP ? t / n : t % n;
        m->tile[i * PITCH + j] = value[e];
    }
    if (row == column && threadIdx.x < n) {
        const int q = variable[threadIdx.x];
        c->pivots[(chain == TOP ? 0 : s->bottom_row) + row * n + (int)threadIdx.x] =
            q >= 0 ? TB_REAL_EPSILON * tb_abs(hessian_at(c, q, q)) : (tb_real)0;
    }
    __syncthreads();
    store_tile(c->matrix + tile_place(s, chain, row, column), m->tile);
    __syncthreads();
}

TB_CARD_LARGE void gather_matrix(const card *c, const band_shape *s, factor_memory *m)
{
    for (int chain = 0; chain < CHAINS; chain++) {
        const int columns = s->tiles[chain] + s->middle_tiles;
        const int tasks = columns * (s->below + 1);
        for (int t = (int)blockIdx.x; t < tasks; t += (int)gridDim.x) {
            const int column = t / (s->below + 1), row = column + t % (s->below + 1);
            if (row < columns) gather_tile(c, s, chain, row, column, m);
        }
    }
}

/* ---- steps ---- */

/* To be followed by __syncthreads. */
TB_CARD void load_pivots(const card *c, const band_shape *s, int chain, int column,
                         factor_memory *m)
{
    if (threadIdx.x == 0) m->bad = TILE;
    if (threadIdx.x < TILE)
        m->pivots[threadIdx.x] =
            c->pivots[(chain == TOP ? 0 : s->bottom_row) + column * TILE + (int)threadIdx.x];
}

TB_CARD void factor_diagonal(const card *c, const band_shape *s, int chain, int column,
                             factor_memory *m)
{
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

/* The data that the next step of the chain waits for. `inverse` is of this column, and becomes
 * the next's. */
TB_CARD void step_ahead(const card *c, const band_shape *s, int chain, int column, factor_memory *m)
{
    const tb_real *from = c->matrix + tile_place(s, chain, column + 1, column + 1);
    tb_real sums[SUMS] = {0}, old[SUMS];
    load_pivots(c, s, chain, column + 1, m);
#pragma unroll
    for (int e = 0; e < SUMS; e++) old[e] = from[sum_row(e) * TILE + sum_column(e)];
    divide_tile(c, s, chain, column + 1, column, m);
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

/* ---- inverses of superblocks, during the factorization ----
 *
 * X = L^-1 row by row: X_kc = -D_k M_kc with M_kc = sum L_kj X_jc over j = c ... k - 1. As soon as
 * a row of X is complete, its products are added to the sums of all later rows. */

/* X_kc of the row of tile column `column`; D is in `inverse` */
TB_CARD void finish_inverse(const card *c, const band_shape *s, in_superblock p, int at,
                            factor_memory *m)
{
    const int64_t place = inverse_place(s, p.number, p.k, at);
    tb_real sums[SUMS] = {0};
    load_tile(m->tile, c->spare + place);
    __syncthreads();
    tile_product(sums, m->inverse, m->tile, false);
#pragma unroll
    for (int e = 0; e < SUMS; e++) c->inverse[place + sum_row(e) * TILE + sum_column(e)] = -sums[e];
    __syncthreads();
}

/* M_row,at += L_row,k X_k,at; L_row,k is tile (column + row - k, column) of the factor. The first
 * of the summands is that of the first k >= at in the band of the row. */
TB_CARD void add_to_inverse(const card *c, const band_shape *s, int chain, int column,
                            in_superblock p, int row, int at, factor_memory *m)
{
    tb_real *to = c->spare + inverse_place(s, p.number, row, at);
    const bool first = p.k == at || p.k == row - s->below;
    tb_real sums[SUMS] = {0}, old[SUMS];
    __syncthreads();
    load_tile(m->tile, c->factor + tile_place(s, chain, column + row - p.k, column));
    load_tile(m->spare, c->inverse + inverse_place(s, p.number, p.k, at));
#pragma unroll
    for (int e = 0; e < SUMS; e++)
        old[e] = first ? (tb_real)0 : to[sum_row(e) * TILE + sum_column(e)];
    __syncthreads();
    tile_product(sums, m->tile, m->spare, false);
#pragma unroll
    for (int e = 0; e < SUMS; e++) to[sum_row(e) * TILE + sum_column(e)] = old[e] + sums[e];
}

/* ---- a chain ---- */

/* A group of blocks that factor a chain, of which this is `self`: at least two. */
typedef struct chain_group {
    int chain, self, count;
    meeting *place, *workers, *ahead;
} chain_group;

/* First half of a column's step: its tiles of the factor, and its row of the inverse. */
TB_CARD void finish_column(const card *c, const band_shape *s, const chain_group *g, int column,
                           int below, factor_memory *m)
{
    const in_superblock p = find_column(s, g->chain, column);
    const int tasks = below + p.k;
    if (g->self - 1 >= tasks) return;
    load_tile(m->inverse, c->inverse + diagonal_place(s, g->chain, column));
    for (int t = g->self - 1; t < tasks; t += g->count - 1) {
        if (t < below) {
            divide_tile(c, s, g->chain, column + 1 + t, column, m);
            store_tile(c->factor + tile_place(s, g->chain, column + 1 + t, column), m->spare);
            __syncthreads();
        } else {
            finish_inverse(c, s, p, t - below, m);
        }
    }
}

/* Second half: the column's products for the columns on the right, and for later rows of the
 * inverse. */
TB_CARD void spread_column(const card *c, const band_shape *s, const chain_group *g, int column,
                           int below, bool ahead, factor_memory *m)
{
    const in_superblock p = find_column(s, g->chain, column);
    const int pairs = below * (below + 1) / 2, rest = p.tiles - 1 - p.k;
    const int later = rest < s->below ? rest : s->below;
    const int tasks = pairs + later * (p.k + 1);
    /* pairs (1, 1), (2, 1), (2, 2), (3, 1) ...: the first is block 0's if it steps on */
    for (int t = g->self - 1 + ahead; t < tasks; t += g->count - 1) {
        if (t < pairs) {
            int i = 1, j = t + 1;
            while (j > i) j -= i++;
            subtract_product(c, s, g->chain, column + i, column + j, column, m);
        } else {
            const int task = t - pairs;
            add_to_inverse(c, s, g->chain, column, p, p.k + 1 + task / (p.k + 1), task % (p.k + 1),
                           m);
        }
    }
}

/* Tile columns [from, to) of a chain whose matrix extends to `end`. Ends with a barrier. Block 0
 * runs a step ahead of the others: the tiles that it reads were finished a column ago. */
TB_CARD_LARGE void factor_columns(const card *c, const band_shape *s, const chain_group *g,
                                  int from, int to, int end, factor_memory *m)
{
    if (from >= to) return;
    const unsigned done = told(g->ahead), arrived = told(g->workers);
    const unsigned workers = (unsigned)g->count - 1;
    meet(g->place, g->count);
    if (g->self == 0) {
        load_tile(m->tile, c->matrix + tile_place(s, g->chain, from, from));
        load_pivots(c, s, g->chain, from, m);
        __syncthreads();
        factor_diagonal(c, s, g->chain, from, m);
        tell(g->ahead);
        for (int column = from; column + 1 < to; column++) {
            wait_for(g->workers, arrived + 2 * workers * (unsigned)(column - from));
            step_ahead(c, s, g->chain, column, m);
            tell(g->ahead);
        }
    } else {
        for (int column = from; column < to; column++) {
            const int left = end - 1 - column, below = s->below < left ? s->below : left;
            wait_for(g->ahead, done + 1 + (unsigned)(column - from));
            finish_column(c, s, g, column, below, m);
            meet(g->workers, (int)workers);
            spread_column(c, s, g, column, below, column + 1 < to, m);
            meet(g->workers, (int)workers);
        }
    }
    meet(g->place, g->count);
}

/* ---- all of it ---- */

/* The bottom chain's subtrahend of the middle, reversed. */
TB_CARD_LARGE void merge_middle(const card *c, const band_shape *s)
{
    const int tiles = s->middle_tiles, n = s->middle_rows;
    const int tasks = tiles * (tiles + 1) / 2;
    for (int t = (int)blockIdx.x; t < tasks; t += (int)gridDim.x) {
        int row = 0, column = t;
        while (column > row) column -= ++row;
        tb_real *to = c->matrix + tile_place(s, TOP, s->tiles[TOP] + row, s->tiles[TOP] + column);
        const int EACH = SQUARE / LANES;
        tb_real part[EACH], own[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int e = k * LANES + (int)threadIdx.x;
            const int i = n - 1 - row * TILE - e / TILE, j = n - 1 - column * TILE - e % TILE;
            const int low = i > j ? i : j, high = i > j ? j : i;
            own[k] = to[e];
            part[k] = 0;
            if (high >= 0)
                part[k] = c->matrix[tile_place(s, BOTTOM, s->tiles[BOTTOM] + low / TILE,
                                               s->tiles[BOTTOM] + high / TILE) +
                                    low % TILE * TILE + high % TILE];
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) to[k * LANES + (int)threadIdx.x] = own[k] + part[k];
    }
}

/* Factors, and inverts the superblocks; control->bad marks a pivot that is too small. Ends with
 * a barrier of all blocks. */
TB_CARD_LARGE void factor_band(const card *c, const band_shape *s, factor_memory *m)
{
    card_control *k = c->control;
    const int blocks = (int)gridDim.x, self = (int)blockIdx.x;
    const int end = s->tiles[TOP] + s->middle_tiles;
    chain_group all;
    all.chain = TOP;
    all.self = self;
    all.count = blocks;
    all.place = &k->all;
    all.workers = &k->workers[CHAINS];
    all.ahead = &k->ahead[CHAINS];
    gather_matrix(c, s, m);
    meet_all(c);
    if (s->tiles[BOTTOM] > 0) {
        const int half = blocks / 2;
        chain_group own;
        own.chain = self < half ? TOP : BOTTOM;
        own.self = own.chain == TOP ? self : self - half;
        own.count = own.chain == TOP ? half : blocks - half;
        own.place = &k->chain[own.chain];
        own.workers = &k->workers[own.chain];
        own.ahead = &k->ahead[own.chain];
        factor_columns(c, s, &own, 0, s->tiles[own.chain], s->tiles[own.chain] + s->middle_tiles,
                       m);
        meet_all(c);
        merge_middle(c, s);
    } else {
        factor_columns(c, s, &all, 0, s->tiles[TOP], end, m);
    }
    meet_all(c);
    factor_columns(c, s, &all, s->tiles[TOP], end, end, m);
    meet_all(c);
}

#endif
