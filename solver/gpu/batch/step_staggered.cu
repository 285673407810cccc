/* A part of the step: impulses by staggered projections, instead of step_solve.cu. A kernel of its own,
 * so that what it needs of code, registers and stack is nothing to those who solve otherwise. See
 * step_kernel.h. */
#define KERNEL                 2 /* TB_GPU_KERNEL_SOLVE, which the preprocessor does not know */
#define KERNEL_NAME            tb_gpu_step_staggered
#define KERNEL_START           tb_gpu_start_staggered
#define KERNEL_STAGES          tb_gpu_stages_staggered
#define KERNEL_ASKS            /* for more shared memory than others have: its factors are larger */
#define TB_UNIT_SOLVER_LIST(X) X(staggered)
#include "gpu/batch/step_kernel.h"
