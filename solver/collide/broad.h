/* The broad phase one element at a time: a box to cells, cells to Morton intervals, and the tests
 * of a pair of intervals. In the common part of C and CUDA, so that a GPU schedules the same
 * functions.
 *
 * A grid of 2^21 cells an axis covers the boxes. A box is covered by 1 to 8 cubes of one size, the
 * smallest power of two of cells that is not less than the box's largest extent, and a cube on the
 * grid is an interval of Morton codes: intervals of two boxes are nested or disjoint (Göteman and
 * Roxling 3.8, A9, A10). Two boxes that overlap share a point, the point lies in one cube of each,
 * and of these one interval contains the other; so sorted intervals that overlap give every pair.
 *
 * A pair can be met in several cubes. Instead of sorting pairs and dropping equal neighbours as the
 * thesis does (A12, quadratic in the run), a pair counts only where both cubes hold the lower
 * corner of the boxes' intersection: that is one pair of cubes exactly, and known at once.
 * Quantizing is monotonic, so the corner is the larger of the two lower cells on each axis. */
#ifndef TB_BROAD_H
#define TB_BROAD_H

#include "collide/collide.h"

enum { TB_GRID_BITS = 21, TB_GRID_CELLS = 1 << TB_GRID_BITS };

/* A grid of 2^21 cells an axis. What lies outside belongs to the outermost cells. */
typedef struct tb_grid {
    tb_vec3 origin;        /* m, lower corner */
    tb_real inverse_cell;  /* 1/m */
    int32_t minimum_level; /* cubes have at least 2^this cells an edge */
} tb_grid;

/* A box in cells, both ends included. */
typedef struct tb_cells {
    uint32_t lower[3], upper[3];
} tb_cells;

/* Bit k of x to bit 3k, of the 21 that there are. */
TB_FN uint64_t tb_morton_spread(uint32_t x)
{
    uint64_t v = x & 0x1fffff;
    v = (v | v << 32) & 0x001f00000000ffffu;
    v = (v | v << 16) & 0x001f0000ff0000ffu;
    v = (v | v << 8) & 0x100f00f00f00f00fu;
    v = (v | v << 4) & 0x10c30c30c30c30c3u;
    v = (v | v << 2) & 0x1249249249249249u;
    return v;
}

TB_FN uint64_t tb_morton_code(uint32_t x, uint32_t y, uint32_t z)
{
    return tb_morton_spread(x) | tb_morton_spread(y) << 1 | tb_morton_spread(z) << 2;
}

/* The cell of a coordinate; never decreases as x grows, and is 0 for NaN. */
TB_FN uint32_t tb_grid_cell(tb_real x, tb_real origin, tb_real inverse_cell)
{
    const tb_real last = TB_R(TB_GRID_CELLS - 1);
    tb_real t = (x - origin) * inverse_cell;
    t = t > 0 ? t : 0;
    t = t < last ? t : last;
    return (uint32_t)(int32_t)t;
}

TB_FN tb_cells tb_grid_cells(const tb_grid *grid, const tb_box *box)
{
    tb_cells c;
    const tb_real s = grid->inverse_cell;
    c.lower[0] = tb_grid_cell(box->lower.x, grid->origin.x, s);
    c.lower[1] = tb_grid_cell(box->lower.y, grid->origin.y, s);
    c.lower[2] = tb_grid_cell(box->lower.z, grid->origin.z, s);
    c.upper[0] = tb_grid_cell(box->upper.x, grid->origin.x, s);
    c.upper[1] = tb_grid_cell(box->upper.y, grid->origin.y, s);
    c.upper[2] = tb_grid_cell(box->upper.z, grid->origin.z, s);
    return c;
}

/* log2 of the edge of a box's cubes, in cells. */
TB_FN int32_t tb_cells_level(const tb_cells *c, int32_t minimum_level)
{
    uint32_t extent = c->upper[0] - c->lower[0];
    if (c->upper[1] - c->lower[1] > extent) extent = c->upper[1] - c->lower[1];
    if (c->upper[2] - c->lower[2] > extent) extent = c->upper[2] - c->lower[2];
    int32_t level = minimum_level;
    /* an extent beyond the grid is that of a box inside out: its level is as good as any */
    while (level < TB_GRID_BITS && (1u << level) < extent) level++;
    return level;
}

/* One cube of one box: its interval starts at code `start` and ends at start + 8^level - 1. */
typedef struct tb_cube {
    uint64_t start;
    uint32_t box;
    /* bits 0 to 2: the axes on which it lies above the cube of the box's lower corner */
    uint32_t offset;
} tb_cube;

/* The code one cube further along an axis: with the gaps between the axis' digits filled, the carry
 * of an addition runs through them. */
TB_FN uint64_t tb_morton_step(uint64_t code, int axis, int32_t level)
{
    const uint64_t digits = (uint64_t)0x1249249249249249u << axis;
    const uint64_t next = (code | ~digits) + ((uint64_t)1 << (3 * level + axis));
    return (code & ~digits) | (next & digits);
}

/* The cubes of a box. Returns how many: 1, 2, 4 or 8, the first of the eight that are always
 * written, so that there is no branch for a processor or a warp to stumble over: each axis doubles
 * the list and the count follows where the box reaches into the next cube. */
TB_FN int32_t tb_cells_cubes(const tb_cells *c, int32_t level, uint32_t box, tb_cube out[8])
{
    const uint32_t x = c->lower[0] >> level, y = c->lower[1] >> level, z = c->lower[2] >> level;
    const uint64_t first = tb_morton_code(x, y, z) << 3 * level;
    const uint64_t along_y = tb_morton_step(first, 1, level) - first;
    const uint64_t along_z = tb_morton_step(first, 2, level) - first;
    out[0].start = first;
    out[0].box = out[1].box = box;
    out[0].offset = 0;
    out[1].start = tb_morton_step(first, 0, level);
    out[1].offset = 1;
    int32_t count = 1 + (c->upper[0] >> level != x);
    for (int32_t k = 0; k < 2; k++) {
        out[count + k].start = out[k].start + along_y;
        out[count + k].box = box;
        out[count + k].offset = out[k].offset | 2;
    }
    count <<= c->upper[1] >> level != y;
    for (int32_t k = 0; k < 4; k++) {
        out[count + k].start = out[k].start + along_z;
        out[count + k].box = box;
        out[count + k].offset = out[k].offset | 4;
    }
    return count << (c->upper[2] >> level != z);
}

/* Last code of a cube. */
TB_FN uint64_t tb_morton_end(uint64_t start, int32_t level)
{
    return start + (((uint64_t)1 << 3 * level) - 1);
}

/* Two corners of a box in two words, so that two subtractions compare all axes at once: 18 bits of
 * each cell (the lowest three of 21 are dropped), each under a guard bit that a subtraction takes
 * away where the minuend is smaller. Above them stands a field of one bit and a guard for each axis
 * on which a cube lies above the box's lower cube: the lower word bears the bit,
 * the upper its complement. */
enum { TB_PACKED_DROPPED = 3 };
#define TB_PACKED_BOX_GUARDS  ((uint64_t)1 << 18 | (uint64_t)1 << 37 | (uint64_t)1 << 56)
#define TB_PACKED_CUBE_GUARDS ((uint64_t)1 << 58 | (uint64_t)1 << 60 | (uint64_t)1 << 62)

typedef struct tb_packed_box {
    uint64_t lower, upper;
} tb_packed_box;

TB_FN uint64_t tb_cells_pack(const uint32_t cell[3])
{
    return (uint64_t)(cell[0] >> TB_PACKED_DROPPED) |
           (uint64_t)(cell[1] >> TB_PACKED_DROPPED) << 19 |
           (uint64_t)(cell[2] >> TB_PACKED_DROPPED) << 38;
}

TB_FN tb_packed_box tb_packed_box_of(const tb_cells *c)
{
    tb_packed_box p;
    p.lower = tb_cells_pack(c->lower);
    p.upper = tb_cells_pack(c->upper) | TB_PACKED_BOX_GUARDS | TB_PACKED_CUBE_GUARDS;
    return p;
}

/* The same with the offset of one of its cubes. */
TB_FN tb_packed_box tb_packed_cube(tb_packed_box p, uint32_t offset)
{
    const uint64_t bits = (uint64_t)(offset & 1) << 57 | (uint64_t)(offset >> 1 & 1) << 59 |
                          (uint64_t)(offset >> 2 & 1) << 61;
    const uint64_t ones = (uint64_t)1 << 57 | (uint64_t)1 << 59 | (uint64_t)1 << 61;
    p.lower |= bits;
    p.upper |= ones ^ bits;
    return p;
}

/* Whether boxes overlap as far as packed cells tell: false only if the boxes themselves do not.
 * With guards = TB_PACKED_BOX_GUARDS | TB_PACKED_CUBE_GUARDS, for two boxes in one and the same
 * cube, also whether the cube holds the lower corner of their intersection: it does unless it lies
 * above the lower cubes of both on some axis. */
TB_FN bool tb_packed_overlap(tb_packed_box a, tb_packed_box b, uint64_t guards)
{
    return ((a.upper - b.lower) & (b.upper - a.lower) & guards) == guards;
}

/* Whether the lower corner of the intersection of two boxes lies in the cube of box b, where b's
 * cubes are not larger than a's. Levels are at least TB_PACKED_DROPPED. */
TB_FN bool tb_packed_owns(uint64_t lower_a, uint64_t lower_b, uint32_t offset_b, int32_t level_b)
{
    for (int axis = 0; axis < 3; axis++) {
        const uint32_t a = (uint32_t)(lower_a >> 19 * axis) & 0x3ffff;
        const uint32_t b = (uint32_t)(lower_b >> 19 * axis) & 0x3ffff;
        const uint32_t corner = (a > b ? a : b) >> (level_b - TB_PACKED_DROPPED);
        if (corner != (b >> (level_b - TB_PACKED_DROPPED)) + (offset_b >> axis & 1)) return false;
    }
    return true;
}

/* Closed boxes, so that touching counts. */
TB_FN bool tb_box_overlap(const tb_box *a, const tb_box *b)
{
    return a->lower.x <= b->upper.x && b->lower.x <= a->upper.x && a->lower.y <= b->upper.y &&
           b->lower.y <= a->upper.y && a->lower.z <= b->upper.z && b->lower.z <= a->upper.z;
}

/* The same without branches, for pairs that are likely to overlap. */
TB_FN bool tb_box_overlap_likely(const tb_box *a, const tb_box *b)
{
    return (a->lower.x <= b->upper.x) & (b->lower.x <= a->upper.x) & (a->lower.y <= b->upper.y) &
           (b->lower.y <= a->upper.y) & (a->lower.z <= b->upper.z) & (b->lower.z <= a->upper.z);
}

/* Finite, and not inside out. */
TB_FN bool tb_box_valid(const tb_box *b)
{
    return (b->lower.x >= -TB_REAL_MAX) & (b->lower.y >= -TB_REAL_MAX) &
           (b->lower.z >= -TB_REAL_MAX) & (b->upper.x <= TB_REAL_MAX) &
           (b->upper.y <= TB_REAL_MAX) & (b->upper.z <= TB_REAL_MAX) & (b->lower.x <= b->upper.x) &
           (b->lower.y <= b->upper.y) & (b->lower.z <= b->upper.z);
}

#endif
