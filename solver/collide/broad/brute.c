/* The broad phase of few boxes: every one with every other. */
#include "collide/broad/broad.h"

/* The inner loop is so short that it takes up to 1.6 times as long by its place in a cache line;
 * its place is fixed, or what is compared with it would change with the code around. */
TB_EXTERN TB_ALIGNED_CODE tb_status tb_broad_phase_brute(const tb_box *boxes,
                                                         int32_t number_of_boxes,
                                                         tb_pair_filter *filter,
                                                         const void *context, tb_arena *arena,
                                                         tb_pair **pairs, int32_t *count)
{
    *pairs = NULL;
    *count = 0;
    for (int32_t i = 0; i < number_of_boxes; i++)
        if (!tb_box_valid(&boxes[i])) return TB_INVALID_ARGUMENT;

    /* once with the usual room, and again with enough where that was too little */
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
                if (!tb_box_overlap(&box, &boxes[b])) continue;
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
