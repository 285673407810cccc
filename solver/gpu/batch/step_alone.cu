/* All parts of the step, and all steps of a launch, for few worlds: each goes its own way and waits for
 * nobody. With many this loses, since warps that run different parts crowd each other's code out of
 * the caches. See step_kernel.h. */
#define KERNEL        4 /* TB_GPU_KERNELS, which the preprocessor does not know */
#define KERNEL_NAME   tb_gpu_step_alone
#define KERNEL_START  tb_gpu_start_alone
#define KERNEL_STAGES tb_gpu_stages_alone
#include "gpu/batch/step_kernel.h"
