/* The broad phase one element at a time: a box to cells, cells to Morton intervals, and the test of
 * two boxes in one cube. The functions are valid C and CUDA, so that a GPU runs the same ones;
 * broad_lanes.h has vector versions of the expensive ones.
 *
 * A grid of 2^21 cells an axis covers the boxes. A box is covered by 1 to 8 cubes of one size, the
 * smallest power of two of cells that is not less than the box's largest extent, and a cube on the
 * grid is an interval of Morton codes: intervals of two boxes are nested or disjoint (Göteman and
 * Roxling 3.8, A9, A10). Two boxes that overlap share a point, the point lies in one cube of each,
 * and of these one interval contains the other; so sorted intervals that overlap give every pair.
 *
 * A pair can be met in several cubes. Instead of sorting pairs and dropping equal neighbours as the
 * thesis does (A12, quadratic in the run), a pair counts only in the cube (the smaller one of
 * nested cubes) that holds the lower corner of the boxes' intersection: exactly one cube.
 * Quantizing is monotonic, so the corner is the larger of the two lower cells on each axis, and it
 * lies in a cube that both boxes reach unless, on some axis, both begin below the cube.
 *
 * In a cube a box is eight bytes: its corners in 64ths of the cube's edge. Quantizing is
 * monotonic, so corners in different 64ths decide the test; only boxes with an end in the same
 * 64th are compared themselves. */
#ifndef TB_BROAD_H
#define TB_BROAD_H

#include "base/morton.h"
#include "collide/collide.h"

enum {
    TB_CELL_GRID_BITS = 21,
    TB_CELL_GRID_CELLS = 1 << TB_CELL_GRID_BITS,
    TB_LOCAL_BITS = 6,  /* log2 of a cube's edge in local units, and the smallest level of cubes */
    TB_LEVEL_BITS = 4,  /* of a key */
    TB_LARGE_LEVEL = 18 /* boxes with larger cubes are tested against all others */
};

/* A grid of 2^21 cells an axis. Points outside belong to the outermost cells. */
typedef struct tb_cell_grid {
    tb_vec3 origin;        /* m, lower corner */
    tb_real inverse_cell;  /* 1/m */
    int32_t minimum_level; /* cubes have at least 2^this cells an edge */
} tb_cell_grid;

/* A box in cells, both ends included; the fourth of each is unused. */
typedef struct tb_cells {
    uint32_t lower[4], upper[4];
} tb_cells;

/* Last code of a cube. */
TB_FN uint64_t tb_morton_end(uint64_t start, int32_t level)
{
    return start + (((uint64_t)1 << 3 * level) - 1);
}

/* The cell of a coordinate; never decreases as x grows, and is 0 for NaN. */
TB_FN uint32_t tb_cell_grid_cell(tb_real x, tb_real origin, tb_real inverse_cell)
{
    const tb_real last = TB_R(TB_CELL_GRID_CELLS - 1);
    tb_real t = (x - origin) * inverse_cell;
    t = t > 0 ? t : 0;
    t = t < last ? t : last;
    return (uint32_t)(int32_t)t;
}

TB_FN tb_cells tb_cell_grid_cells(const tb_cell_grid *grid, const tb_box *box)
{
    tb_cells c;
    const tb_real s = grid->inverse_cell;
    c.lower[0] = tb_cell_grid_cell(box->lower.x, grid->origin.x, s);
    c.lower[1] = tb_cell_grid_cell(box->lower.y, grid->origin.y, s);
    c.lower[2] = tb_cell_grid_cell(box->lower.z, grid->origin.z, s);
    c.upper[0] = tb_cell_grid_cell(box->upper.x, grid->origin.x, s);
    c.upper[1] = tb_cell_grid_cell(box->upper.y, grid->origin.y, s);
    c.upper[2] = tb_cell_grid_cell(box->upper.z, grid->origin.z, s);
    c.lower[3] = c.upper[3] = 0;
    return c;
}

/* log2 of the edge of a box's cubes, in cells. */
TB_FN int32_t tb_cells_level(const tb_cells *c, int32_t minimum_level)
{
    uint32_t extent = c->upper[0] - c->lower[0];
    if (c->upper[1] - c->lower[1] > extent) extent = c->upper[1] - c->lower[1];
    if (c->upper[2] - c->lower[2] > extent) extent = c->upper[2] - c->lower[2];
    int32_t level = minimum_level;
    /* an extent beyond the grid belongs to an inverted box, for which any level will do */
    while (level < TB_CELL_GRID_BITS && (1u << level) < extent) level++;
    return level;
}

/* Layout of a cube of a box in one word, from the top: the cube's code in units of the smallest
 * cubes; 15 minus its level above the smallest, so that a cube sorts before smaller cubes with
 * the same code; the box. At most 63 bits, which bounds the smallest level from below. */
typedef struct tb_key_layout {
    int32_t box_bits, minimum_level;
} tb_key_layout;

TB_FN int32_t tb_key_least_level(int32_t box_bits)
{
    const int32_t fits = (3 * TB_CELL_GRID_BITS + TB_LEVEL_BITS + box_bits - 63 + 2) / 3;
    return fits > TB_LOCAL_BITS ? fits : TB_LOCAL_BITS;
}

/* Level of a cube, which is a key without its box. */
TB_FN int32_t tb_cube_level(uint64_t cube, int32_t minimum_level)
{
    return minimum_level + 15 - (int32_t)(cube & 15);
}

/* The last of the cubes inside a cube. */
TB_FN uint64_t tb_cube_end(uint64_t cube)
{
    return (tb_morton_end(cube >> TB_LEVEL_BITS, 15 - (int32_t)(cube & 15)) << TB_LEVEL_BITS) | 15;
}

/* One cube of one box. `local` are eight bytes, the first the lowest: the lower corner's x, y, z in
 * 64ths of the cube's edge, a zero, the upper corner's, a zero. Corners may lie up to a cube
 * below or above the cube; corners farther away are clamped to just outside or one cube off.
 * TB_LOCAL_ZERO is added to every byte, so that none is negative. */
typedef struct tb_item {
    uint64_t key, local;
} tb_item;

enum { TB_LOCAL_ZERO = 1 << TB_LOCAL_BITS, TB_LOCAL_MOST = 3 * TB_LOCAL_ZERO - 1 };

/* `local` of a box that reaches into the cube with lower corner `base`, of a level of at least
 * TB_LOCAL_BITS. */
TB_FN uint64_t tb_cells_local(const tb_cells *c, const uint32_t base[3], int32_t level)
{
    uint64_t local = 0;
    const int32_t shift = level - TB_LOCAL_BITS;
    for (int axis = 0; axis < 3; axis++) {
        const uint32_t zero = base[axis] >> shift;
        const uint32_t lower = (c->lower[axis] >> shift) + TB_LOCAL_ZERO;
        const uint32_t upper = (c->upper[axis] >> shift) + TB_LOCAL_ZERO - zero;
        local |= (uint64_t)(lower > zero ? lower - zero : 0) << 8 * axis |
                 (uint64_t)(upper < TB_LOCAL_MOST ? upper : (uint32_t)TB_LOCAL_MOST)
                     << (32 + 8 * axis);
    }
    return local;
}

/* The cubes of a box: 1, 2, 4 or 8. Writes the items and returns their number. */
TB_FN int32_t tb_cells_items(const tb_cells *c, int32_t level, tb_key_layout layout, uint32_t box,
                             tb_item out[8])
{
    int32_t count = 0;
    const int32_t above = level - layout.minimum_level;
    for (uint32_t k = 0; k < 8; k++) {
        uint32_t cube[3], base[3];
        bool reached = true;
        for (int axis = 0; axis < 3; axis++) {
            cube[axis] = (c->lower[axis] >> level) + (k >> axis & 1);
            base[axis] = cube[axis] << level;
            reached &= cube[axis] <= c->upper[axis] >> level;
        }
        if (!reached) continue;
        const uint64_t code = tb_morton_code(cube[0], cube[1], cube[2]) << 3 * above;
        out[count].key = (code << TB_LEVEL_BITS | (uint64_t)(15 - above)) << layout.box_bits | box;
        out[count].local = tb_cells_local(c, base, level);
        count++;
    }
    return count;
}

/* Two boxes in one cube by their `local`: negative if they do not overlap or the pair belongs to
 * another cube, 0 if the boxes themselves must be compared, positive if they overlap. */
TB_FN int32_t tb_local_overlap(uint64_t a, uint64_t b)
{
    int32_t least = TB_LOCAL_MOST;
    for (int axis = 0; axis < 3; axis++) {
        const int32_t lower_a = (int32_t)(a >> 8 * axis & 255);
        const int32_t lower_b = (int32_t)(b >> 8 * axis & 255);
        const int32_t upper_a = (int32_t)(a >> (32 + 8 * axis) & 255);
        const int32_t upper_b = (int32_t)(b >> (32 + 8 * axis) & 255);
        const int32_t lower = lower_a > lower_b ? lower_a : lower_b;
        const int32_t upper = upper_a < upper_b ? upper_a : upper_b;
        if (lower < TB_LOCAL_ZERO) return -1;
        if (upper - lower < least) least = upper - lower;
    }
    return least;
}

#endif
