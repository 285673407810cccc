/* A part of the step: impulses, but for solvers that have a kernel of their own
 * (step_staggered.cu). See step_solve_part.h. */
#define KERNEL_NAME            tb_gpu_step_solve
#define KERNEL_START           tb_gpu_start_solve
#define KERNEL_STAGES          tb_gpu_stages_solve
#define TB_UNIT_SOLVER_LIST(X) X(sor) X(jor) X(newton) X(auto)
#include "gpu/batch/step_solve_part.h"

STEP_START(launch->lanes[TB_GPU_KERNEL_SOLVE], 1,
           shared_bytes_of_block((size_t)worlds, (size_t)launch->fast))
