/* A part of the step: dynamics, and the rows that are no contacts. See step_part.h. */
#define PART        0 /* TB_GPU_PART_BEGIN, which the preprocessor does not know */
#define PART_KERNEL tb_gpu_step_begin
#define PART_START  tb_gpu_start_begin
#define PART_STAGES tb_gpu_stages_begin
#include "gpu/batch/step_part.h"
