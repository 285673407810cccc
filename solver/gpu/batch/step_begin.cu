/* A part of the step: dynamics, and the rows that are no contacts. See step_kernel.h. */
#define KERNEL        0 /* TB_GPU_KERNEL_BEGIN, which the preprocessor does not know */
#define KERNEL_NAME   tb_gpu_step_begin
#define KERNEL_START  tb_gpu_start_begin
#define KERNEL_STAGES tb_gpu_stages_begin
#include "gpu/batch/step_kernel.h"
