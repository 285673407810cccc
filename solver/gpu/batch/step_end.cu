/* A part of the step: the way to the end of the step, and what is remembered of it. See step_part.h. */
#define PART        3 /* TB_GPU_PART_END, which the preprocessor does not know */
#define PART_KERNEL tb_gpu_step_end
#define PART_START  tb_gpu_start_end
#define PART_STAGES tb_gpu_stages_end
#include "gpu/batch/step_part.h"
