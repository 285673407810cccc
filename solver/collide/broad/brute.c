/* The broad phase for few boxes: compares every box with every other. */
#include "collide/broad/broad.h"
#include "collide/broad/broad_lanes.h"

/* The speed of the short inner loop depends on its alignment in a cache line. A fixed alignment
 * keeps comparisons with it independent of the surrounding code; a caller that takes the function in
 * would undo it. */
TB_EXTERN TB_NO_INLINE TB_ALIGNED_CODE tb_status
tb_broad_phase_brute(const tb_box *boxes, int32_t number_of_boxes, tb_pair_filter *filter,
                     const void *context, tb_arena *arena, tb_pair **pairs, int32_t *count)
{
    *pairs = NULL;
    *count = 0;
    for (int32_t i = 0; i < number_of_boxes; i++)
        if (!tb_box_valid(&boxes[i])) return TB_INVALID_ARGUMENT;

    /* run with the usual capacity, and again with the needed capacity if it was too small */
    int64_t capacity = (int64_t)number_of_boxes * 8, found = 0;
    do {
        if (found > INT32_MAX) return TB_RESOURCE_EXHAUSTED;
        if (found > capacity) capacity = found;
        tb_pair *list = TB_ARENA_ARRAY(arena, tb_pair, capacity);
        if (!list) return TB_RESOURCE_EXHAUSTED;
        *pairs = list;
        found = 0;
        for (int32_t a = 0; a < number_of_boxes; a++) {
            const tb_box box = boxes[a];
            for (int32_t b = a + 1; b < number_of_boxes; b++) {
                if (!tb_box_overlap_exact(&box, &boxes[b])) continue;
                if (filter && !filter(context, a, b)) continue;
                if (found < capacity) {
                    list[found].a = a;
                    list[found].b = b;
                }
                found++;
            }
        }
    } while (found > capacity);
    *count = (int32_t)found;
    return TB_OK;
}
