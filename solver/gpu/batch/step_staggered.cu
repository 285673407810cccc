/* A part of the step: impulses by staggered projections, instead of step_solve.cu. A kernel of its own,
 * so that other solvers do not pay for its code, registers and stack. See step_solve_part.h. */
#define KERNEL_NAME            tb_gpu_step_staggered
#define KERNEL_START           tb_gpu_start_staggered
#define KERNEL_STAGES          tb_gpu_stages_staggered
#define TB_UNIT_SOLVER_LIST(X) X(staggered)
#include "gpu/batch/step_solve_part.h"

/* Shared memory of a block's teams, bytes. The factors are larger than other solvers', so a block may
 * have more than other kernels' blocks, of which fewer then run at once: as much as was chosen, or
 * the most that a card gives on request. */
static size_t shared_bytes(const tb_gpu_launch *launch, size_t worlds)
{
    enum { UNASKED = 44 << 10, DECLARED = 4 << 10, UNITS = 2 * TB_ARENA_ALIGNMENT };
    size_t own = shared_bytes_of_team((size_t)launch->fast);
    int device = 0, most = 0;
    if (worlds * own <= UNASKED) return worlds * own;
    cudaError_t result = cudaGetDevice(&device);
    if (result == cudaSuccess)
        result = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (result == cudaSuccess) {
        const size_t each = ((size_t)most - DECLARED) / worlds;
        if (own > each) own = each / UNITS * UNITS - TB_ARENA_ALIGNMENT;
        result =
            cudaFuncSetAttribute((const void *)step_kernel,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(worlds * own));
    }
    if (result == cudaSuccess) return worlds * own;
    (void)cudaGetLastError();
    return worlds * SHARED_STEP_BYTES;
}

STEP_START(launch->lanes[TB_GPU_KERNEL_SOLVE], shared_bytes(launch, (size_t)worlds))
