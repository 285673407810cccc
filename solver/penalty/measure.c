/* Measurements of the thesis's tables 8.1 to 8.6: near pairs, overlaps and forces in one pose. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "penalty/bsp.h"
#include "penalty/card/measure_card.h"
#include "penalty/penalty_internal.h"

/* A measurement repeats until it has run so long, and at least twice. */
#define LEAST_SECONDS 0.1

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Boxes of the shapes that have one, one behind the other. */
static int32_t gather_boxes(tb_penalty *p)
{
    int32_t count = 0;
    for (int32_t i = 0; i < p->number_of_shapes; i++)
        if (!p->shapes[i].half_space)
            memcpy(p->bounded_boxes + 6 * count++, p->boxes + 6 * i, 6 * sizeof(double));
    return count;
}

static tb_status measure_pairs(tb_penalty *p, const char *method, double cell, tb_volume_measure *m,
                               tb_error *error)
{
    const bool encode = strcmp(method, "encode") == 0, morton = strcmp(method, "morton") == 0,
               rows = strcmp(method, "rows") == 0;
    tb_status status = TB_OK;
    m->seconds = INFINITY;
    m->shapes = gather_boxes(p);
    const double begin = now();
    for (int i = 0; status == TB_OK && (i < 2 || now() - begin < LEAST_SECONDS); i++) {
        const double before = now();
        if (rows)
            status = tb_broad_near(&p->broad, p->bounded_boxes, m->shapes, error);
        else if (encode)
            status = tb_broad_encode(&p->broad, p->bounded_boxes, m->shapes, cell, error);
        else
            status = morton ? tb_broad_morton(&p->broad, p->bounded_boxes, m->shapes, cell, error)
                            : tb_broad_brute(&p->broad, p->bounded_boxes, m->shapes, error);
        m->seconds = fmin(m->seconds, now() - before);
    }
    m->intervals = morton || encode ? p->broad.number_of_intervals : 0;
    m->pairs = encode ? 0 : p->broad.number_of_pairs;
    return status;
}

/* All forces once, while the list of near pairs holds. */
static tb_status measure_evaluation(tb_penalty *p, tb_volume_measure *m, tb_error *error)
{
    tb_status status = TB_OK;
    m->seconds = INFINITY;
    m->pairs = p->number_of_pairs;
    const double begin = now();
    for (int i = 0; status == TB_OK && (i < 2 || now() - begin < LEAST_SECONDS); i++) {
        const double before = now();
        status = tb_penalty_evaluate(p, 0, p->y, error);
        m->seconds = fmin(m->seconds, now() - before);
    }
    return status;
}

/* The pairs of polyhedra whose boxes meet; heap, NULL if memory is refused. */
static tb_solid_pair *gather_solids(const tb_penalty *p, int32_t *count)
{
    tb_solid_pair *pairs = calloc((size_t)p->number_of_pairs + 1, sizeof *pairs);
    *count = 0;
    for (int32_t i = 0; i < p->number_of_pairs && pairs; i++) {
        const tb_near_pair *pair = &p->pairs[i];
        const tb_law_shape *a = &p->shapes[pair->a], *b = &p->shapes[pair->b];
        if (a->solid < 0 || b->solid < 0 || a->half_space || b->half_space ||
            !tb_boxes_meet(p->boxes + 6 * pair->a, p->boxes + 6 * pair->b))
            continue;
        pairs[(*count)++] = (tb_solid_pair){&p->solids[a->solid], &p->solids[b->solid],
                                            p->shape_poses[pair->a], p->shape_poses[pair->b]};
    }
    return pairs;
}

/* way: of a card, -1: `method` of the processor. */
static tb_status measure_overlaps(tb_penalty *p, tb_overlap_method method, int32_t way,
                                  double limit, tb_volume_measure *m, tb_error *error)
{
    tb_bsp *bsp = NULL;
    tb_status status = tb_bsp_create(&bsp, error);
    tb_solid_pair *pairs = gather_solids(p, &m->pairs);
    tb_bsp_result *results = calloc((size_t)m->pairs + 1, sizeof *results);
    if (status == TB_OK && (!pairs || !results))
        status = tb_fail_memory(error, 0, "a measurement of overlaps");
    m->seconds = INFINITY;
    const double begin = now();
    for (int i = 0; status == TB_OK && (i < 2 || now() - begin < LEAST_SECONDS); i++) {
        const double before = now();
        status = way < 0 ? tb_bsp_intersect(bsp, method, pairs, m->pairs, results, error)
                         : tb_bsp_card_intersect(bsp, (tb_traversal_way)way, (int32_t)limit, pairs,
                                                 m->pairs, results, &m->parts[0], error);
        m->seconds = fmin(m->seconds, now() - before);
    }
    for (int32_t i = 0; i < m->pairs && status == TB_OK; i++) {
        m->volume += results[i].volume;
        m->triangles += results[i].triangles;
        m->mended += results[i].mended;
    }
    free(pairs);
    free(results);
    tb_bsp_destroy(bsp);
    return status;
}

static tb_status find_pose(tb_penalty *p, const tb_state *state, tb_error *error)
{
    const tb_model *m = state->model;
    tb_status status = tb_penalty_prepare(p, state, error);
    if (status != TB_OK) return status;
    memcpy(p->y, state->q, (size_t)m->number_of_coordinates * sizeof *p->y);
    memcpy(p->y + m->number_of_coordinates, state->u, (size_t)m->number_of_dofs * sizeof *p->y);
    return tb_penalty_evaluate(p, 0, p->y, error);
}

tb_status tb_state_measure_volume(const tb_state *state, const char *method, double cell,
                                  tb_volume_measure *measure, tb_error *error)
{
    static const char *const NAMES[] = {
#define NAMED(name, text, summary) text,
        TB_OVERLAP_METHOD_LIST(NAMED)
#undef NAMED
    };
    memset(measure, 0, sizeof *measure);
    const bool near = strcmp(method, "morton") == 0 || strcmp(method, "brute") == 0 ||
                      strcmp(method, "encode") == 0 || strcmp(method, "rows") == 0;
    const bool card = strcmp(method, "gpu_count") == 0 || strcmp(method, "gpu_append") == 0 ||
                      strcmp(method, "gpu_sort") == 0;
    const bool all = strcmp(method, "evaluation") == 0;
    const int32_t way = tb_traversal_way_of(method);
    int32_t overlap = way < 0 ? -1 : (int32_t)TB_OVERLAP_TRAVERSAL;
    for (int32_t i = 0; i < (int32_t)(sizeof NAMES / sizeof *NAMES); i++)
        if (strcmp(method, NAMES[i]) == 0) overlap = i;
    if (!near && !card && !all && overlap < 0)
        return tb_fail_field(error, TB_NOT_FOUND, "method", "there is no method '%s'", method);
    tb_status status = tb_state_sync_to_host(state, TB_PARTS_NUMBERS, error);
    if (status != TB_OK) return status;
    tb_penalty *p = calloc(1, sizeof *p);
    if (!p) return tb_fail_memory(error, sizeof *p, "a measurement");
    p->dynamics_memory.threads = 1;
    status = find_pose(p, state, error);
    if (status == TB_OK && near) status = measure_pairs(p, method, cell, measure, error);
    if (status == TB_OK && card) {
        measure->shapes = gather_boxes(p);
        status = tb_measure_card_pairs(&p->broad, p->bounded_boxes, measure->shapes, method, cell,
                                       measure, error);
    }
    if (status == TB_OK && all) status = measure_evaluation(p, measure, error);
    if (status == TB_OK && overlap >= 0)
        status = measure_overlaps(p, (tb_overlap_method)overlap, way, cell, measure, error);
    tb_penalty_destroy(p);
    return status;
}
