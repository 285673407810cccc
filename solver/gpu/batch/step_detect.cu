/* A part of the step: contacts and their rows. See step_part.h. */
#define PART        1 /* TB_GPU_PART_DETECT, which the preprocessor does not know */
#define PART_KERNEL tb_gpu_step_detect
#define PART_START  tb_gpu_start_detect
#define PART_STAGES tb_gpu_stages_detect
#include "gpu/batch/step_part.h"
