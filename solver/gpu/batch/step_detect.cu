/* A part of the step: contacts and their rows. See step_kernel.h. */
#define KERNEL        1 /* TB_GPU_KERNEL_DETECT, which the preprocessor does not know */
#define KERNEL_NAME   tb_gpu_step_detect
#define KERNEL_START  tb_gpu_start_detect
#define KERNEL_STAGES tb_gpu_stages_detect
#include "gpu/batch/step_kernel.h"
