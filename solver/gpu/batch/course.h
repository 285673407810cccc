/* Courses on their way to a card and back: rows of the next steps of a world, one array of a course
 * behind the other. */
#ifndef TB_GPU_COURSE_H
#define TB_GPU_COURSE_H

#include "step/step.h"

/* Bytes of a step's rows. */
typedef struct tb_gpu_rows {
    size_t inputs, outputs;
} tb_gpu_rows;

tb_gpu_rows tb_gpu_rows_of(const tb_course *course, const tb_model *model);

/* Copies the inputs of the first `rows` of the last `left` steps of a course to `inputs`. *sent: the last
 * `left` steps as the card has them, with these inputs at `inputs_there` and their outputs at
 * `outputs_there`. */
void tb_gpu_course_send(const tb_course *course, const tb_model *model, int32_t left, int32_t rows,
                        void *inputs, void *inputs_there, void *outputs_there, tb_course *sent);

/* Copies the outputs of the first `taken` of these rows back; where the world diverged in the next step,
 * also the certificate that says so. */
void tb_gpu_course_receive(const tb_course *course, const tb_model *model, int32_t left,
                           int32_t rows, int32_t taken, bool diverged, const void *outputs);

#endif
