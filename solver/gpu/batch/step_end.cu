/* A part of the step: the way to the end of the step, and what is remembered of it. See step_kernel.h. */
#define KERNEL        3 /* TB_GPU_KERNEL_END, which the preprocessor does not know */
#define KERNEL_NAME   tb_gpu_step_end
#define KERNEL_START  tb_gpu_start_end
#define KERNEL_STAGES tb_gpu_stages_end
#include "gpu/batch/step_kernel.h"
