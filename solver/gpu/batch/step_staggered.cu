/* A part of the step: impulses by staggered projections, instead of step_solve.cu. A kernel of its own,
 * so that other solvers do not pay for its code, registers and stack. Its factors are squares of the
 * number of contacts, so none lies in shared memory. See step_solve_part.h. */
#define KERNEL_NAME            tb_gpu_step_staggered
#define KERNEL_START           tb_gpu_start_staggered
#define KERNEL_STAGES          tb_gpu_stages_staggered
#define TB_UNIT_SOLVER_LIST(X) X(staggered)
#include "gpu/batch/step_solve_part.h"

STEP_START(launch->lanes[TB_GPU_KERNEL_SOLVE], 1, shared_bytes_of_block((size_t)worlds, 0))
