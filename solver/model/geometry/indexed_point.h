/* A point with its number in a list, and the order of such points: by x, y, z, then by number. */
#ifndef TB_INDEXED_POINT_H
#define TB_INDEXED_POINT_H

#include <stdint.h>

typedef struct tb_indexed_point {
    double x[3];
    int32_t index;
} tb_indexed_point;

/* For qsort. */
static inline int tb_indexed_point_compare(const void *left, const void *right)
{
    const tb_indexed_point *l = left, *r = right;
    for (int i = 0; i < 3; i++)
        if (l->x[i] != r->x[i]) return l->x[i] < r->x[i] ? -1 : 1;
    return (l->index > r->index) - (l->index < r->index);
}

#endif
