/* Broad phases of the volume law: all pairs of boxes that may meet. */
#ifndef TB_PENALTY_BROAD_H
#define TB_PENALTY_BROAD_H

#include "base/base.h"

/* Working memory and result; zeroed is empty. */
typedef struct tb_broad {
    uint64_t *starts, *spare_starts; /* intervals */
    uint64_t *owners, *spare_owners; /* box, and the power of the length above bit 32 */
    uint64_t *pairs, *spare_pairs;   /* first box in the upper half, a < b */
    uint32_t *numbers;               /* of tb_broad_rows */
    int32_t interval_capacity, pair_capacity, number_capacity;
    int32_t number_of_intervals, number_of_pairs;
} tb_broad;

void tb_broad_free(tb_broad *broad);

/* Pairs of boxes (6 numbers each: lower, upper; m, finite) that meet, sorted, each once, in
 * `pairs`. cell: m, the base cell's edge; 0: chosen from the boxes. RESOURCE_EXHAUSTED. */
tb_status tb_broad_morton(tb_broad *broad, const double *boxes, int32_t count, double cell,
                          tb_error *error);
/* The same by rows of boxes that are swept along the third axis. Boxes of one size take about a third
 * of the time; *fits is false, and nothing is found, where too many boxes are larger than the others. */
tb_status tb_broad_rows(tb_broad *broad, const double *boxes, int32_t count, bool *fits,
                        tb_error *error);
/* By rows, or by intervals where rows do not fit. */
tb_status tb_broad_near(tb_broad *broad, const double *boxes, int32_t count, tb_error *error);
/* The first part of tb_broad_morton alone: the intervals, unsorted. */
tb_status tb_broad_encode(tb_broad *broad, const double *boxes, int32_t count, double cell,
                          tb_error *error);
/* The same pairs by comparing every box with every other. */
tb_status tb_broad_brute(tb_broad *broad, const double *boxes, int32_t count, tb_error *error);

/* Whether two boxes share a point. */
static inline bool tb_boxes_meet(const double *a, const double *b)
{
    return a[0] <= b[3] && b[0] <= a[3] && a[1] <= b[4] && b[1] <= a[4] && a[2] <= b[5] &&
           b[2] <= a[5];
}

#endif
