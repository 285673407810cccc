/* See course.h. */
#include "gpu/batch/course.h"

#include <string.h>

/* Arrays of a course, in the order in which they lie in the staging block. */
enum { KINEMATIC, ACCELERATIONS, CONTROLS, INPUTS };
enum { Q, MOVED, TOUCHES, CERTIFICATES, OUTPUTS };

static void input_rows(const tb_course *course, const tb_model *m, size_t bytes[INPUTS])
{
    const size_t bodies = (size_t)m->number_of_kinematic_bodies;
    const size_t actuators = (size_t)m->number_of_actuators;
    bytes[KINEMATIC] =
        course->kinematic != NULL ? bodies * TB_KINEMATIC_NUMBERS * sizeof(double) : 0;
    bytes[ACCELERATIONS] = course->accelerations != NULL ? bodies * 6 * sizeof(double) : 0;
    bytes[CONTROLS] = course->controls != NULL ? actuators * sizeof(double) : 0;
}

static void output_rows(const tb_course *course, const tb_model *m, size_t bytes[OUTPUTS])
{
    const size_t bodies = (size_t)m->number_of_kinematic_bodies;
    const size_t coordinates = (size_t)m->number_of_coordinates;
    const size_t watches = (size_t)course->number_of_watches;
    bytes[Q] = course->q != NULL ? coordinates * sizeof(double) : 0;
    bytes[MOVED] = course->moved != NULL ? bodies * TB_KINEMATIC_NUMBERS * sizeof(double) : 0;
    bytes[TOUCHES] = course->touches != NULL ? watches * sizeof(tb_touch) : 0;
    bytes[CERTIFICATES] = course->certificates != NULL ? sizeof(tb_certificate) : 0;
}

tb_gpu_rows tb_gpu_rows_of(const tb_course *course, const tb_model *model)
{
    size_t inputs[INPUTS], outputs[OUTPUTS];
    tb_gpu_rows rows = {0};
    input_rows(course, model, inputs);
    output_rows(course, model, outputs);
    for (int i = 0; i < INPUTS; i++) rows.inputs += inputs[i];
    for (int i = 0; i < OUTPUTS; i++) rows.outputs += outputs[i];
    return rows;
}

/* ---- to the card ---- */

/* Rows `first` to `first + count` of a course, and the place of the next array in the host's staging
 * (`to`) and on the card (`there`); both move on together. */
typedef struct places {
    char *to, *there;
    int32_t first, count;
} places;

static const double *send_rows(places *p, const double *rows, size_t bytes)
{
    const double *there = (const double *)(const void *)p->there;
    if (rows == NULL) return NULL;
    memcpy(p->to, (const char *)rows + (size_t)p->first * bytes, (size_t)p->count * bytes);
    p->to += (size_t)p->count * bytes;
    p->there += (size_t)p->count * bytes;
    return there;
}

static void *room_for(places *p, const void *rows, size_t bytes)
{
    void *there = p->there;
    if (rows == NULL) return NULL;
    p->there += (size_t)p->count * bytes;
    return there;
}

void tb_gpu_course_send(const tb_course *course, const tb_model *model, int32_t left, int32_t rows,
                        void *inputs, void *inputs_there, void *outputs_there, tb_course *sent)
{
    size_t in[INPUTS], out[OUTPUTS];
    places p = {.to = inputs, .there = inputs_there, .first = course->steps - left, .count = rows};
    input_rows(course, model, in);
    output_rows(course, model, out);
    *sent = *course;
    sent->steps = left;
    sent->kinematic = send_rows(&p, course->kinematic, in[KINEMATIC]);
    if (sent->kinematic != NULL)
        tb_course_normalize(inputs, (int64_t)rows * model->number_of_kinematic_bodies);
    sent->accelerations = send_rows(&p, course->accelerations, in[ACCELERATIONS]);
    sent->controls = send_rows(&p, course->controls, in[CONTROLS]);
    p.there = outputs_there;
    sent->q = room_for(&p, course->q, out[Q]);
    sent->moved = room_for(&p, course->moved, out[MOVED]);
    sent->touches = room_for(&p, course->touches, out[TOUCHES]);
    sent->certificates = room_for(&p, course->certificates, out[CERTIFICATES]);
}

/* ---- back ---- */

void tb_gpu_course_receive(const tb_course *course, const tb_model *model, int32_t left,
                           int32_t rows, int32_t taken, bool diverged, const void *outputs)
{
    size_t bytes[OUTPUTS];
    void *const arrays[OUTPUTS] = {course->q, course->moved, course->touches, course->certificates};
    const size_t first = (size_t)(course->steps - left);
    const char *from = outputs;
    output_rows(course, model, bytes);
    for (int i = 0; i < OUTPUTS; i++) {
        if (arrays[i] == NULL) continue;
        /* a step that diverges leaves a certificate and nothing else */
        const size_t count = (size_t)taken + (i == CERTIFICATES && diverged);
        memcpy((char *)arrays[i] + first * bytes[i], from, count * bytes[i]);
        from += (size_t)rows * bytes[i];
    }
}
