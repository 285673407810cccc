/* Near pairs of boxes, and sorts, on a card: the data of a call (Göteman and Roxling 5.2, 5.3, A10 to A13).
 *
 * The card encodes the boxes as Morton intervals, sorts them, finds pairs in one of two ways, sorts the pairs
 * and takes doubles out. The pairs are those of tb_broad_morton. */
#ifndef TB_BOX_PAIRS_H
#define TB_BOX_PAIRS_H

#include <stdint.h>

typedef enum tb_box_pairs_way {
    TB_PAIRS_BY_COUNT,  /* count, prefix sum, write */
    TB_PAIRS_BY_APPEND, /* warps append to one list */
    TB_PAIRS_SORT       /* no boxes: keys are sorted with their values */
} tb_box_pairs_way;

enum { TB_PAIRS_ENCODE, TB_PAIRS_SORT_STARTS, TB_PAIRS_FIND, TB_PAIRS_SORT_PAIRS, TB_PAIRS_PARTS };

typedef struct tb_box_pairs {
    tb_box_pairs_way way;
    int32_t count;                    /* of boxes, or of keys */
    const double *boxes;              /* m, count x 6: lower, upper */
    double lower[3], cells_per_metre; /* the grid of the Morton codes */
    uint64_t *keys, *values; /* count: sorted in place, values follow their keys; NULL: none */
    /* results */
    uint64_t *pairs; /* heap, the caller frees it: first box in the upper half, sorted, each once */
    int32_t number_of_pairs, number_of_intervals;
    double seconds[TB_PAIRS_PARTS]; /* on the card, of the last of `repeats` */
    double whole;    /* s, with copies, by the host's clock: the least of `repeats` */
    int32_t repeats; /* at least 1 */
} tb_box_pairs;

#endif
