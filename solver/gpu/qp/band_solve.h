/* Solving with the factor: substitution by superblocks, whose triangles have been inverted (Litven
 * 5.3, algorithm 5.3).
 *
 * A solve is 4 p - 2 products one after the other, each of a superblock with all right-hand sides,
 * spread over the blocks by sixteen rows. Numbers of rows x columns are stored row by row, `width`
 * columns wide; many columns are several such panels. */
#ifndef TB_GPU_BAND_SOLVE_H
#define TB_GPU_BAND_SOLVE_H

#include "gpu/qp/band_factor.h"

static const int OCTETS = TILE / OCTET, SLICE = 2 * OCTET, SLICES = TILE / SLICE;

/* ---- substitution ---- */

/* Sixteen rows of a product, by a block: tiles of the matrix at a, a + step ..., by its rows (or
 * columns, if `across`); x: the rows of the first tile's columns. */
typedef struct slice {
    const tb_real *a, *x;
    int64_t step;
    int tiles;
    bool across, minus;
    const tb_real *old; /* addend, or NULL */
    tb_real *to;
} slice;

/* A block's memory while it solves. */
typedef struct solve_memory {
    tb_real part[WARPS][SLICE][COLUMNS];
} solve_memory;

/* this warp's part of the sums, `groups` times eight columns */
TB_CARD __forceinline__ void sum_slice(const slice *e, tb_real (*part)[COLUMNS], int width,
                                       const int groups)
{
    const int ar = e->across ? 1 : TILE, at = e->across ? TILE : 1;
    tb_real sums[2][COLUMNS / OCTET][2] = {{{0}}};
#pragma unroll 3
    for (int o = warp_of(); o < e->tiles * OCTETS; o += WARPS) {
        const tb_real *a = e->a + o / OCTETS * e->step + o % OCTETS * OCTET * at;
        const tb_real *x = e->x + (int64_t)o * OCTET * width;
#pragma unroll
        for (int g = 0; g < groups; g++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                warp_product(sums[h][g], a + h * OCTET * ar, ar, at, x + g * OCTET, 1, width,
                             OCTET);
    }
    const int row = lane_of() / 4, column = lane_of() % 4 * 2;
#pragma unroll
    for (int g = 0; g < groups; g++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            part[h * OCTET + row][g * OCTET + column] = sums[h][g][0];
            part[h * OCTET + row][g * OCTET + column + 1] = sums[h][g][1];
        }
}

TB_CARD_LARGE void product_of_slice(const slice *e, int width, solve_memory *m)
{
    if (width == OCTET)
        sum_slice(e, m->part[warp_of()], width, 1);
    else
        sum_slice(e, m->part[warp_of()], width, COLUMNS / OCTET);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < SLICE * width; i += LANES) {
        const int row = i / width, column = i % width;
        tb_real sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) sum += m->part[w][row][column];
        if (e->minus) sum = -sum;
        e->to[i] = e->old ? e->old[i] + sum : sum;
    }
    __syncthreads();
}

typedef enum stage {
    COUPLE_DOWN, /* t = b - C y of the superblock above */
    INVERT_DOWN, /* y = D t */
    COUPLE_UP,   /* t = y - C' x of the one below */
    INVERT_UP    /* x = D' t */
} stage;

/* Work of one block in a stage: sixteen rows of tile row `k` (in the superblock) of `index` of a
 * chain; the superblock behind a chain's last is the middle, as the chain sees it. */
TB_CARD slice plan_slice(const card *c, const band_shape *s, stage what, int chain, int index,
                         int k, int part, int width, int64_t panel)
{
    const bool middle = index == s->superblocks[chain];
    const int begin = superblock_begin(s, chain, index), row = begin + k;
    const int end = middle ? begin + s->middle_tiles : superblock_begin(s, chain, index + 1);
    const int number = middle ? middle_superblock(s) : superblock_of(s, chain, index);
    const int64_t first = chain == TOP ? 0 : s->bottom_row;
    const tb_real *p = c->panel + panel, *q = c->other + panel;
    const int64_t own = (first + (int64_t)row * TILE + part * SLICE) * width;
    int from;
    slice e;
    e.minus = what == COUPLE_DOWN || what == COUPLE_UP;
    e.across = what == COUPLE_UP || what == INVERT_UP;
    switch (what) {
    case COUPLE_DOWN: {
        const int above = superblock_begin(s, chain, index - 1);
        from = row - s->below > above ? row - s->below : above;
        e.a = c->factor + tile_place(s, chain, row, from);
        e.step = (int64_t)s->below * SQUARE;
        e.tiles = begin - from;
        e.x = q;
        e.old = p + own;
        e.to = c->panel + panel + own;
        break;
    }
    case INVERT_DOWN:
        from = begin;
        e.a = c->inverse + inverse_place(s, number, k, 0);
        e.step = SQUARE;
        e.tiles = k + 1;
        e.x = p;
        e.old = NULL;
        e.to = c->other + panel + own;
        break;
    case COUPLE_UP: {
        const int next_end = index + 1 == s->superblocks[chain]
                                 ? end + s->middle_tiles
                                 : superblock_begin(s, chain, index + 2);
        const int last = row + s->below < next_end - 1 ? row + s->below : next_end - 1;
        from = end;
        e.a = c->factor + tile_place(s, chain, from, row);
        e.step = SQUARE;
        e.tiles = last + 1 - from;
        e.x = p;
        e.old = q + own;
        e.to = c->other + panel + own;
        break;
    }
    default:
        from = row;
        e.a = c->inverse + inverse_place(s, number, k, k);
        e.step = (int64_t)(s->super + 1) * SQUARE;
        e.tiles = end - row;
        e.x = q;
        e.old = NULL;
        e.to = c->panel + panel + own;
    }
    e.a += part * SLICE * (e.across ? 1 : TILE);
    e.x += (first + (int64_t)from * TILE) * width;
    return e;
}

/* One stage of one superblock for all panels, by `count` blocks of which this is `self`. */
TB_CARD void do_stage(const card *c, const band_shape *s, stage what, int chain, int index,
                      int width, int panels, int self, int count, solve_memory *m)
{
    const int begin = superblock_begin(s, chain, index);
    const int tiles = index == s->superblocks[chain]
                          ? s->middle_tiles
                          : superblock_begin(s, chain, index + 1) - begin;
    const int each = tiles * SLICES, tasks = each * panels;
    for (int t = self; t < tasks; t += count) {
        const slice e = plan_slice(c, s, what, chain, index, t % each / SLICES, t % SLICES, width,
                                   (int64_t)(t / each) * s->rows * width);
        product_of_slice(&e, width, m);
    }
}

/* Adds the middle of the bottom's vectors to the top's, or copies the top's to it, reversed. */
TB_CARD void turn_middle(const card *c, const band_shape *s, int width, int panels, bool back)
{
    const int n = s->middle_rows, top = s->tiles[TOP] * TILE;
    const int bottom = s->bottom_row + s->tiles[BOTTOM] * TILE;
    const int own = (int)(blockIdx.x * LANES + threadIdx.x);
    for (int t = own; t < panels * n * width; t += (int)gridDim.x * LANES) {
        const int row = t / width % n, column = t % width;
        tb_real *p = c->panel + (int64_t)(t / width / n) * s->rows * width;
        tb_real *here = p + (int64_t)(top + row) * width + column;
        tb_real *there = p + (int64_t)(bottom + n - 1 - row) * width + column;
        if (back)
            *there = *here;
        else
            *here += *there;
    }
}

/* panel <- inverse(A) panel, for `panels` of `width` (8 or COLUMNS) columns. Rows without a
 * variable are zero before and after, but for the middle of the bottom. Ends with a barrier of
 * all blocks. */
TB_CARD_LARGE void solve_band(const card *c, const band_shape *s, int width, int panels,
                              solve_memory *m)
{
    card_control *k = c->control;
    const bool both = s->tiles[BOTTOM] > 0;
    const int blocks = (int)gridDim.x, half = blocks / 2;
    const int chain = both && (int)blockIdx.x >= half ? BOTTOM : TOP;
    const int self = chain == TOP ? (int)blockIdx.x : (int)blockIdx.x - half;
    const int count = !both ? blocks : chain == TOP ? half : blocks - half;
    meeting *place = both ? &k->chain[chain] : &k->all;
    const int last = s->superblocks[chain];
    for (int i = 0; i < last; i++) {
        do_stage(c, s, INVERT_DOWN, chain, i, width, panels, self, count, m);
        meet(place, count);
        do_stage(c, s, COUPLE_DOWN, chain, i + 1, width, panels, self, count, m);
        meet(place, count);
    }
    if (both) {
        meet_all(c);
        turn_middle(c, s, width, panels, false);
        meet_all(c);
    }
    const int middle = s->superblocks[TOP];
    do_stage(c, s, INVERT_DOWN, TOP, middle, width, panels, (int)blockIdx.x, blocks, m);
    meet_all(c);
    do_stage(c, s, INVERT_UP, TOP, middle, width, panels, (int)blockIdx.x, blocks, m);
    meet_all(c);
    if (both) {
        turn_middle(c, s, width, panels, true);
        meet_all(c);
    }
    for (int i = last - 1; i >= 0; i--) {
        do_stage(c, s, COUPLE_UP, chain, i, width, panels, self, count, m);
        meet(place, count);
        do_stage(c, s, INVERT_UP, chain, i, width, panels, self, count, m);
        meet(place, count);
    }
    meet_all(c);
}

#endif
