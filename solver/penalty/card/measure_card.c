/* Measurements of a card's broad phase beside the processor's (tables 8.1 to 8.3). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/backend.h"
#include "base/random.h"
#include "penalty/card/box_pairs.h"
#include "penalty/card/measure_card.h"

enum { REPEATS = 10 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static tb_status find_card(const tb_backend **gpu, tb_error *error)
{
    const tb_status status = tb_backend_find(TB_BACKEND_GPU, gpu, error);
    if (status == TB_OK && !(*gpu)->box_pairs)
        return tb_fail_field(error, TB_UNSUPPORTED, "backend", "backend '%s' finds no pairs",
                             (*gpu)->name);
    return status;
}

static tb_status sort_on_card(void *context, uint64_t *keys, uint64_t *values, int32_t count,
                              tb_error *error)
{
    const tb_backend *gpu = context;
    tb_box_pairs sort = {.way = TB_PAIRS_SORT, .count = count, .keys = keys, .values = values};
    return gpu->box_pairs(0, &sort, error);
}

/* The processor's intervals and pairs; the card sorts where they are many. */
static tb_status measure_sorted(tb_broad *broad, const tb_backend *gpu, const double *boxes,
                                int32_t count, double cell, tb_volume_measure *m, tb_error *error)
{
    tb_status status = TB_OK;
    broad->sorter = sort_on_card;
    broad->sorter_context = (void *)(uintptr_t)gpu;
    m->seconds = INFINITY;
    for (int i = 0; i < REPEATS && status == TB_OK; i++) {
        const double before = now();
        status = tb_broad_morton(broad, boxes, count, cell, error);
        m->seconds = fmin(m->seconds, now() - before);
    }
    broad->sorter = NULL;
    m->intervals = broad->number_of_intervals;
    m->pairs = broad->number_of_pairs;
    return status;
}

tb_status tb_measure_card_pairs(tb_broad *broad, const double *boxes, int32_t count,
                                const char *method, double cell, tb_volume_measure *m,
                                tb_error *error)
{
    const tb_backend *gpu = NULL;
    tb_status status = find_card(&gpu, error);
    if (status != TB_OK) return status;
    if (strcmp(method, "gpu_sort") == 0)
        return measure_sorted(broad, gpu, boxes, count, cell, m, error);
    tb_box_pairs p = {.way = strcmp(method, "gpu_append") == 0 ? TB_PAIRS_BY_APPEND
                                                               : TB_PAIRS_BY_COUNT,
                      .count = count,
                      .boxes = boxes,
                      .repeats = REPEATS};
    p.cells_per_metre = tb_broad_grid(boxes, count, cell, p.lower);
    status = gpu->box_pairs(0, &p, error);
    m->seconds = p.whole;
    m->intervals = p.number_of_intervals;
    m->pairs = p.number_of_pairs;
    memcpy(m->parts, p.seconds, sizeof p.seconds);
    free(p.pairs);
    return status;
}

tb_status tb_measure_sort(int32_t count, bool on_card, double *seconds, tb_error *error)
{
    const tb_backend *gpu = NULL;
    tb_status status = on_card ? find_card(&gpu, error) : TB_OK;
    const size_t bytes = ((size_t)count + 1) * sizeof(uint64_t);
    uint64_t *arrays[4] = {malloc(bytes), malloc(bytes), malloc(bytes), malloc(bytes)};
    if (status == TB_OK && (!arrays[0] || !arrays[1] || !arrays[2] || !arrays[3]))
        status = tb_fail_memory(error, 4 * bytes, "a measurement of sorts");
    *seconds = INFINITY;
    for (int i = 0; i < REPEATS && status == TB_OK; i++) {
        tb_random random = tb_random_stream(1, 0);
        for (int32_t k = 0; k < count; k++) {
            const uint64_t high = tb_random_u32(&random) >> 1;
            arrays[0][k] = high << 32 | tb_random_u32(&random);
            arrays[2][k] = (uint64_t)k;
        }
        tb_box_pairs sort = {
            .way = TB_PAIRS_SORT, .count = count, .keys = arrays[0], .values = arrays[2]};
        const double before = now();
        if (on_card)
            status = gpu->box_pairs(0, &sort, error);
        else
            tb_broad_sort(&arrays[0], &arrays[1], &arrays[2], &arrays[3], count);
        *seconds = fmin(*seconds, on_card ? sort.whole : now() - before);
    }
    for (int i = 0; i < 4; i++) free(arrays[i]);
    return status;
}
