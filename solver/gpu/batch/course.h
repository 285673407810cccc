/* Courses on their way to a card and back: rows of the next steps of a world, one array of a course
 * behind the other. */
#ifndef TB_GPU_COURSE_H
#define TB_GPU_COURSE_H

#include "step/step.h"

/* Bytes of a step's rows. */
typedef struct tb_gpu_rows {
    size_t told, noted;
} tb_gpu_rows;

tb_gpu_rows tb_gpu_rows_of(const tb_course *course, const tb_model *model);

/* The first `rows` of the last `left` steps of a course, their rows into `told`; *sent: the last `left`
 * steps as the card has them, which finds what these rows tell at `told_there` and has room for what
 * they note at `noted_there`. */
void tb_gpu_course_send(const tb_course *course, const tb_model *model, int32_t left, int32_t rows,
                        void *told, void *told_there, void *noted_there, tb_course *sent);

/* The other way: what the first `taken` of these rows noted, and where the world diverged then, the
 * certificate that says so. */
void tb_gpu_course_receive(const tb_course *course, const tb_model *model, int32_t left,
                           int32_t rows, int32_t taken, bool diverged, const void *noted);

#endif
