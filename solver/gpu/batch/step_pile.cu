/* The same as step_warp.cu for piles: worlds of up to six trees of up to six dofs (warp_fits.h), mostly
 * free bodies. See small/warp_trees.h. */
#define KERNEL_NAME   tb_gpu_step_pile
#define KERNEL_START  tb_gpu_start_pile
#define KERNEL_STAGES tb_gpu_stages_pile
#define TB_UNIT_WARP
#define TB_UNIT_PILE
#include "gpu/batch/step_kernel.h"
