/* Measurements of a card's broad phase. */
#ifndef TB_MEASURE_CARD_H
#define TB_MEASURE_CARD_H

#include "penalty/broad.h"
#include "tribo_step.h"

/* Methods "gpu_count", "gpu_append", "gpu_sort" of tb_state_measure_volume over `count` boxes. UNAVAILABLE
 * without a card. */
tb_status tb_measure_card_pairs(tb_broad *broad, const double *boxes, int32_t count,
                                const char *method, double cell, tb_volume_measure *m,
                                tb_error *error);

#endif
