/* See course.h. */
#include "gpu/batch/course.h"

#include <string.h>

/* An array of a course: bytes of a step's row, and where it stands there. */
enum { KINEMATIC, ACCELERATIONS, CONTROLS, TOLD };
enum { Q, MOVED, TOUCHES, CERTIFICATES, NOTED };

static void told_rows(const tb_course *course, const tb_model *m, size_t bytes[TOLD])
{
    const size_t bodies = (size_t)m->number_of_kinematic_bodies;
    const size_t actuators = (size_t)m->number_of_actuators;
    bytes[KINEMATIC] =
        course->kinematic != NULL ? bodies * TB_KINEMATIC_NUMBERS * sizeof(double) : 0;
    bytes[ACCELERATIONS] = course->accelerations != NULL ? bodies * 6 * sizeof(double) : 0;
    bytes[CONTROLS] = course->controls != NULL ? actuators * sizeof(double) : 0;
}

static void noted_rows(const tb_course *course, const tb_model *m, size_t bytes[NOTED])
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
    size_t told[TOLD], noted[NOTED];
    tb_gpu_rows rows = {0};
    told_rows(course, model, told);
    noted_rows(course, model, noted);
    for (int i = 0; i < TOLD; i++) rows.told += told[i];
    for (int i = 0; i < NOTED; i++) rows.noted += noted[i];
    return rows;
}

/* ---- there ---- */

/* Some rows of an array that may not be there, and how far the places have come by it. */
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
                        void *told, void *told_there, void *noted_there, tb_course *sent)
{
    size_t in[TOLD], out[NOTED];
    places p = {.to = told, .there = told_there, .first = course->steps - left, .count = rows};
    told_rows(course, model, in);
    noted_rows(course, model, out);
    *sent = *course;
    sent->steps = left;
    sent->kinematic = send_rows(&p, course->kinematic, in[KINEMATIC]);
    if (sent->kinematic != NULL)
        tb_course_normalize(told, (int64_t)rows * model->number_of_kinematic_bodies);
    sent->accelerations = send_rows(&p, course->accelerations, in[ACCELERATIONS]);
    sent->controls = send_rows(&p, course->controls, in[CONTROLS]);
    p.there = noted_there;
    sent->q = room_for(&p, course->q, out[Q]);
    sent->moved = room_for(&p, course->moved, out[MOVED]);
    sent->touches = room_for(&p, course->touches, out[TOUCHES]);
    sent->certificates = room_for(&p, course->certificates, out[CERTIFICATES]);
}

/* ---- back ---- */

void tb_gpu_course_receive(const tb_course *course, const tb_model *model, int32_t left,
                           int32_t rows, int32_t taken, bool diverged, const void *noted)
{
    size_t bytes[NOTED];
    void *const arrays[NOTED] = {course->q, course->moved, course->touches, course->certificates};
    const size_t first = (size_t)(course->steps - left);
    const char *from = noted;
    noted_rows(course, model, bytes);
    for (int i = 0; i < NOTED; i++) {
        if (arrays[i] == NULL) continue;
        const size_t count = (size_t)taken + (i == CERTIFICATES && diverged);
        memcpy((char *)arrays[i] + first * bytes[i], from, count * bytes[i]);
        from += (size_t)rows * bytes[i];
    }
}
