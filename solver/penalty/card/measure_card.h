/* Measurements of a card's broad phase. */
#ifndef TB_MEASURE_CARD_H
#define TB_MEASURE_CARD_H

#include "penalty/broad.h"
#include "penalty/bsp.h"
#include "penalty/card/traversal.h"
#include "tribo_step.h"

/* Methods "gpu_count", "gpu_append", "gpu_sort" of tb_state_measure_volume over `count` boxes. UNAVAILABLE
 * without a card. */
tb_status tb_measure_card_pairs(tb_broad *broad, const double *boxes, int32_t count,
                                const char *method, double cell, tb_volume_measure *m,
                                tb_error *error);

/* The ways of a card by name, "gpu_recursive" to "gpu_own"; -1 for another name. */
int32_t tb_traversal_way_of(const char *method);
/* The overlaps of `count` pairs as tb_bsp_intersect, their triangles down the trees on a card; limit: of the hybrid
 * way, 0: the thesis's 5,000. *seconds: on the card. UNAVAILABLE without a card. */
tb_status tb_bsp_card_intersect(tb_bsp *bsp, tb_traversal_way way, int32_t limit,
                                const tb_solid_pair *pairs, int32_t count, tb_bsp_result *results,
                                double *seconds, tb_error *error);

#endif
