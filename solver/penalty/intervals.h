/* Morton intervals of boxes, one box wide (Göteman and Roxling 5.2, after Lavrov).
 *
 * The world is 2^21 cells along each axis. A box is covered by 1, 2, 4 or 8 aligned cubes whose edge
 * is the smallest power of two that is not below the box's largest extent in cells; the codes of the
 * cells of a cube are an interval. Intervals of two boxes are nested or disjoint, so that sorted
 * starts give all pairs of boxes that share a cube. */
#ifndef TB_MORTON_INTERVALS_H
#define TB_MORTON_INTERVALS_H

#include <stdbool.h>

#include "base/morton.h"
#include "base/vector.h"

enum { TB_MORTON_BITS = 21, TB_MORTON_INTERVALS = 8 };

/* Cell of a coordinate; `lower` is the world's corner, cells beyond its ends are the last ones. */
TB_FN uint32_t tb_morton_cell(double x, double lower, double per_metre)
{
    const double cell = (x - lower) * per_metre;
    const double last = (double)((1 << TB_MORTON_BITS) - 1);
    return cell > 0 ? (uint32_t)(cell < last ? cell : last) : 0;
}

/* The intervals of a box (lower, upper; m): starts, and the common logarithm *power of their length
 * to the base 8. Returns their number. */
TB_FN int32_t tb_morton_intervals(const double box[6], const double lower[3], double per_metre,
                                  uint64_t start[TB_MORTON_INTERVALS], int32_t *power)
{
    uint32_t low[3], high[3], extent = 0, size = 1, counts[3];
    uint64_t spread[3][2];
    int32_t count = 0, bits = 0;
    for (int i = 0; i < 3; i++) {
        low[i] = tb_morton_cell(box[i], lower[i], per_metre);
        high[i] = tb_morton_cell(box[3 + i], lower[i], per_metre);
        if (high[i] - low[i] > extent) extent = high[i] - low[i];
    }
    while (size < extent) size <<= 1, bits++;
    for (int i = 0; i < 3; i++) {
        const uint32_t first = low[i] & ~(size - 1), last = high[i] & ~(size - 1);
        counts[i] = last != first ? 2 : 1;
        spread[i][0] = tb_morton_spread(first) << i;
        spread[i][1] = counts[i] > 1 ? tb_morton_spread(last) << i : 0;
    }
    for (uint32_t z = 0; z < counts[2]; z++)
        for (uint32_t y = 0; y < counts[1]; y++)
            for (uint32_t x = 0; x < counts[0]; x++)
                start[count++] = spread[0][x] | spread[1][y] | spread[2][z];
    *power = bits;
    return count;
}

#endif
