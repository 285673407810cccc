/* A part of the step: impulses by staggered projections, instead of step_solve.cu. A kernel of its own,
 * so that what it needs of code, registers and stack is nothing to those who solve otherwise. See
 * step_part.h. */
#define PART                   2 /* TB_GPU_PART_SOLVE, which the preprocessor does not know */
#define PART_KERNEL            tb_gpu_step_staggered
#define PART_START             tb_gpu_start_staggered
#define PART_STAGES            tb_gpu_stages_staggered
#define PART_ASKS              /* for more shared memory than others have: its factors are larger */
#define TB_UNIT_SOLVER_LIST(X) X(staggered)
#include "gpu/batch/step_part.h"
