/* Broad phases of the volume law: all pairs of boxes that may meet. */
#ifndef TB_PENALTY_BROAD_H
#define TB_PENALTY_BROAD_H

#include "base/base.h"

/* A sort on another device: keys in place, values (may be NULL) follow them. */
typedef tb_status tb_broad_sorter(void *context, uint64_t *keys, uint64_t *values, int32_t count,
                                  tb_error *error);

/* From these numbers of intervals and of pairs on the thesis sorts on the card (A11). */
enum { TB_BROAD_MANY_INTERVALS = 160000, TB_BROAD_MANY_PAIRS = 190000 };

/* Working memory and result; zeroed is empty. */
typedef struct tb_broad {
    tb_broad_sorter
        *sorter; /* of tb_broad_morton, for as many keys as the thesis says; NULL: none */
    void *sorter_context;
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
/* The grid of Morton codes: the world's lower corner; returns cells per metre. */
double tb_broad_grid(const double *boxes, int32_t count, double cell, double lower[3]);
/* Sorts keys with their values (may be NULL), each array with a spare one that may take its place. */
void tb_broad_sort(uint64_t **keys, uint64_t **spare, uint64_t **values, uint64_t **more,
                   int32_t count);
/* The same pairs by comparing every box with every other. */
tb_status tb_broad_brute(tb_broad *broad, const double *boxes, int32_t count, tb_error *error);

/* Whether two boxes share a point. */
static inline bool tb_boxes_meet(const double *a, const double *b)
{
    return a[0] <= b[3] && b[0] <= a[3] && a[1] <= b[4] && b[1] <= a[4] && a[2] <= b[5] &&
           b[2] <= a[5];
}

#endif
