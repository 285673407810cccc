/* Layout of a band of free variables on the card.
 *
 * The band is factored from both of its ends at once: a chain of tile columns from the top, one
 * from the bottom, whose variables are in reverse order, and in the middle as many rows as the two
 * chains need between them. That costs no more sums and almost halves the sequence of columns,
 * which is the critical path. Each chain's matrix extends into the middle, the bottom's reversed
 * too; its contribution there is reversed and added to the top's.
 *
 * For solving, tile columns are collected into superblocks at least as large as the band is wide,
 * so that each couples with the next one alone (Litven's blocks); the triangle of each is inverted.
 * A superblock costs the blocks four meetings, so narrow bands have superblocks wider than the
 * band. */
#ifndef TB_GPU_BAND_SHAPE_H
#define TB_GPU_BAND_SHAPE_H

#include "gpu/qp/tile.h"

enum { TOP, BOTTOM, CHAINS };
static const int LEAST_SUPER = 8; /* tile columns of a superblock */

typedef struct band_shape {
    int free_count, reach;         /* reach: half-bandwidth among the free variables */
    int below;                     /* tiles below a diagonal one */
    int super;                     /* tile columns of a superblock */
    int tiles[CHAINS];             /* columns before the middle */
    int middle_tiles, middle_rows; /* middle_rows: less than the tiles have, at a ragged end */
    int superblocks[CHAINS];       /* the middle is one more */
    int rows, bottom_row; /* of vectors: top, middle, bottom from bottom_row, and its middle */
} band_shape;

/* Tile columns that any set of n variables may need, and superblocks. */
static inline int64_t most_tile_columns(int64_t n, int64_t below)
{
    return n / TILE + 2 * below + 4;
}

/* Tile columns of a superblock. */
static inline int64_t superblock_tiles(int64_t below)
{
    return below > LEAST_SUPER ? below : LEAST_SUPER;
}

static inline int64_t most_superblocks(int64_t n, int64_t super)
{
    return n / TILE / super + 5;
}

static inline int64_t most_rows(int64_t n, int64_t below)
{
    return most_tile_columns(n, below) * TILE;
}

static inline int64_t tiles_below(int64_t reach)
{
    return reach < TILE ? 1 : (reach + TILE - 1) / TILE;
}

/* By one lane. */
TB_CARD void plan_band(band_shape *s, int free_count, int reach)
{
    s->free_count = free_count;
    s->reach = reach;
    s->below = reach < TILE ? 1 : (reach + TILE - 1) / TILE;
    const int between = reach > 0 ? reach : 1;
    const int outside = free_count > between ? (free_count - between) / TILE : 0;
    s->tiles[TOP] = (outside + 1) / 2;
    s->tiles[BOTTOM] = outside / 2;
    s->middle_rows = free_count - outside * TILE;
    s->middle_tiles = (s->middle_rows + TILE - 1) / TILE;
    s->super = s->below > LEAST_SUPER ? s->below : LEAST_SUPER;
    for (int c = 0; c < CHAINS; c++) s->superblocks[c] = (s->tiles[c] + s->super - 1) / s->super;
    s->bottom_row = (s->tiles[TOP] + s->middle_tiles) * TILE;
    s->rows = s->bottom_row + (s->tiles[BOTTOM] + s->middle_tiles) * TILE;
}

/* Free variables in a row of a chain's matrix: their position in the list, or -1: none. */
TB_CARD int chain_position(const band_shape *s, int chain, int row)
{
    if (row >= s->tiles[chain] * TILE + s->middle_rows) return -1;
    return chain == TOP ? row : s->free_count - 1 - row;
}

/* The row of vectors of the free variable at a position of the list. */
TB_CARD int row_of_position(const band_shape *s, int position)
{
    if (position < s->tiles[TOP] * TILE + s->middle_rows) return position;
    return s->bottom_row + s->free_count - 1 - position;
}

/* ---- tiles ---- */

/* tile (row, column) of a chain, row - column in 0 ... below; the chain's first row is 0 */
TB_CARD int64_t tile_place(const band_shape *s, int chain, int row, int column)
{
    const int64_t before = chain == TOP ? 0 : s->tiles[TOP] + s->middle_tiles;
    return ((before + column) * (s->below + 1) + row - column) * SQUARE;
}

/* ---- superblocks: the top's, then the bottom's, then the middle ---- */

TB_CARD int superblock_of(const band_shape *s, int chain, int index)
{
    return chain == TOP ? index : s->superblocks[TOP] + index;
}

TB_CARD int middle_superblock(const band_shape *s)
{
    return s->superblocks[TOP] + s->superblocks[BOTTOM];
}

/* The first tile column of a chain's superblock; a short one comes first, for it couples with more
 * than the next one otherwise. The one behind the last begins at the middle. */
TB_CARD int superblock_begin(const band_shape *s, int chain, int index)
{
    return index == 0 ? 0 : s->tiles[chain] - (s->superblocks[chain] - index) * s->super;
}

TB_CARD int64_t inverse_place(const band_shape *s, int superblock, int row, int column)
{
    const int64_t size = s->super + 1;
    return ((superblock * size + row) * size + column) * SQUARE;
}

/* A tile column's place in a superblock. */
typedef struct in_superblock {
    int number; /* of the superblock, among all */
    int k;      /* column there */
    int tiles;  /* of the superblock */
} in_superblock;

TB_CARD in_superblock find_column(const band_shape *s, int chain, int column)
{
    in_superblock p;
    if (column >= s->tiles[chain]) {
        p.number = middle_superblock(s);
        p.k = column - s->tiles[chain];
        p.tiles = s->middle_tiles;
        return p;
    }
    const int short_one = superblock_begin(s, chain, 1);
    const int index = column < short_one ? 0 : 1 + (column - short_one) / s->super;
    p.number = superblock_of(s, chain, index);
    p.k = column - superblock_begin(s, chain, index);
    p.tiles = superblock_begin(s, chain, index + 1) - superblock_begin(s, chain, index);
    return p;
}

/* Where the inverse of a chain's diagonal tile lies. */
TB_CARD int64_t diagonal_place(const band_shape *s, int chain, int column)
{
    const in_superblock p = find_column(s, chain, column);
    return inverse_place(s, p.number, p.k, p.k);
}

#endif
