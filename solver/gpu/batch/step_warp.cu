/* All parts of the step, and all steps of a launch, for worlds with few dofs and contacts (warp_fits.h): a
 * warp keeps its world. The kernel is fast because its code is small: it has neither meshes nor the
 * general solvers, and leaves the steps that need them to step_alone.cu. See step_kernel.h and
 * warp_solve.h. */
#define KERNEL_NAME   tb_gpu_step_warp
#define KERNEL_START  tb_gpu_start_warp
#define KERNEL_STAGES tb_gpu_stages_warp
#define TB_UNIT_WARP
#include "gpu/batch/step_kernel.h"
