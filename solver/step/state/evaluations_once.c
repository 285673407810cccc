/* Evaluations of the volume law that a state keeps: see step/evaluations.h. */
#include "step/evaluations.h"

#include <stdlib.h>
#include <string.h>

#include "step/step.h"

enum { POSE_NUMBERS = 7, BOX_NUMBERS = 6 };

/* ---- making ---- */

static size_t bytes_in_use(const tb_kept_evaluations *k)
{
    return (size_t)k->evaluation_capacity * sizeof *k->evaluations +
           (size_t)k->contact_capacity * sizeof *k->contact +
           (size_t)k->triangle_capacity * sizeof *k->triangle +
           ((size_t)k->pose_capacity + (size_t)k->box_capacity) * sizeof(double);
}

/* Room for `count` elements. False if the bound or the machine refuses it. */
static bool reserve(tb_kept_evaluations *k, void **array, int64_t count, int32_t *capacity,
                    size_t size)
{
    if (count <= *capacity) return true;
    const size_t left = k->bytes - bytes_in_use(k);
    const int64_t fitting = (int64_t)*capacity + (int64_t)(left / size);
    int64_t wanted = (int64_t)*capacity + *capacity / 2 + 16;
    if (wanted < count) wanted = count;
    if (wanted > fitting) wanted = fitting;
    if (wanted > INT32_MAX) wanted = INT32_MAX;
    if (wanted < count) return false;
    void *grown = realloc(*array, (size_t)wanted * size);
    if (!grown) return false;
    *array = grown;
    *capacity = (int32_t)wanted;
    return true;
}

void tb_kept_clear(tb_kept_evaluations *k)
{
    if (k) k->count = k->left_out = k->contacts = k->triangles = 0;
}

void tb_kept_begin_step(tb_kept_evaluations *k, int32_t bodies, const int32_t *shapes,
                        int32_t number_of_shapes)
{
    int32_t *copy = realloc(k->box_shapes, ((size_t)number_of_shapes + 1) * sizeof *copy);
    k->shapes = copy ? number_of_shapes : 0;
    if (copy) {
        k->box_shapes = copy;
        memcpy(copy, shapes, (size_t)number_of_shapes * sizeof *copy);
    }
    k->bodies = bodies;
    tb_kept_clear(k);
}

void tb_kept_begin(tb_kept_evaluations *k, double time)
{
    void *array = k->evaluations;
    k->fits = k->left_out == 0 && reserve(k, &array, (int64_t)k->count + 1, &k->evaluation_capacity,
                                          sizeof *k->evaluations);
    k->evaluations = array;
    if (k->fits)
        k->evaluations[k->count] = (tb_evaluation){
            .time = time, .first_contact = k->contacts, .first_triangle = k->triangles};
}

/* Numbers of the present evaluation in an array with `each` of them an evaluation. */
static double *numbers_of(tb_kept_evaluations *k, double **numbers, int32_t *capacity, int64_t each)
{
    void *array = *numbers;
    k->fits = k->fits && reserve(k, &array, (k->count + 1) * each, capacity, sizeof(double));
    *numbers = array;
    return k->fits ? *numbers + k->count * each : NULL;
}

double *tb_kept_poses(tb_kept_evaluations *k)
{
    return numbers_of(k, &k->poses, &k->pose_capacity, (int64_t)k->bodies * POSE_NUMBERS);
}

double *tb_kept_boxes(tb_kept_evaluations *k)
{
    return numbers_of(k, &k->boxes, &k->box_capacity, (int64_t)k->shapes * BOX_NUMBERS);
}

tb_evaluation_contact *tb_kept_contact(tb_kept_evaluations *k)
{
    void *array = k->contact;
    k->fits = k->fits && reserve(k, &array, (int64_t)k->contacts + 1, &k->contact_capacity,
                                 sizeof *k->contact);
    k->contact = array;
    if (!k->fits) return NULL;
    tb_evaluation_contact *made = &k->contact[k->contacts++];
    memset(made, 0, sizeof *made);
    return made;
}

tb_evaluation_triangle *tb_kept_triangle(tb_kept_evaluations *k)
{
    void *array = k->triangle;
    k->fits = k->fits && reserve(k, &array, (int64_t)k->triangles + 1, &k->triangle_capacity,
                                 sizeof *k->triangle);
    k->triangle = array;
    if (!k->fits) return NULL;
    tb_evaluation_triangle *made = &k->triangle[k->triangles++];
    memset(made, 0, sizeof *made);
    return made;
}

void tb_kept_end(tb_kept_evaluations *k)
{
    if (!k->fits) {
        k->left_out++;
        return;
    }
    tb_evaluation *e = &k->evaluations[k->count++];
    e->number_of_contacts = k->contacts - e->first_contact;
    e->number_of_triangles = k->triangles - e->first_triangle;
}

void tb_kept_destroy(tb_kept_evaluations *k)
{
    if (!k) return;
    free(k->evaluations);
    free(k->contact);
    free(k->triangle);
    free(k->poses);
    free(k->boxes);
    free(k->box_shapes);
    free(k);
}

/* ---- of a state ---- */

tb_status tb_state_keep_evaluations(tb_state *state, size_t bytes, tb_error *error)
{
    if (state->kept && state->kept->bytes == bytes) return TB_OK;
    tb_kept_destroy(state->kept);
    state->kept = NULL;
    if (bytes == 0) return TB_OK;
    state->kept = calloc(1, sizeof *state->kept);
    if (!state->kept) return tb_fail_memory(error, sizeof *state->kept, "evaluations");
    state->kept->bytes = bytes;
    return TB_OK;
}

tb_evaluations tb_state_evaluations(const tb_state *state)
{
    const tb_kept_evaluations *k = state->kept;
    if (!k) return (tb_evaluations){0};
    return (tb_evaluations){.evaluations = k->evaluations,
                            .number_of_evaluations = k->count,
                            .left_out = k->left_out,
                            .contacts = k->contact,
                            .triangles = k->triangle,
                            .poses = k->poses,
                            .box_shapes = k->box_shapes,
                            .number_of_box_shapes = k->shapes,
                            .boxes = k->boxes};
}
