/* Kernel that later kernels of a step wait behind while solves overlap (steps.c). It ends when all blocks of
 * solves have begun and at most `overlap` of them still run. */
#ifndef TB_SINGLE

#include "gpu/device/gpu_internal.h"

enum {
    POLL_NANOSECONDS = 500,
    GRACE_OF = 32 /* of the wait: a solve that is nearly done is still waited for */
};

/* Counts only grow, and DONE is read last, so that no more solves run than the difference. */
static __device__ bool is_open(int32_t *counts, int32_t begun, int32_t overlap)
{
    if (begun == 0) return true; /* a warm-up waits for no solve */
    const int32_t all = atomicAdd(&counts[TB_GPU_BEGUN], 0);
    __threadfence();
    return all >= begun && all - atomicAdd(&counts[TB_GPU_DONE], 0) <= overlap;
}

static __global__ void tb_gpu_solve_barrier(int32_t *counts, int32_t begun, int32_t overlap)
{
    const long long start = clock64();
    while (!is_open(counts, begun, overlap)) __nanosleep(POLL_NANOSECONDS);
    const long long waited = clock64() - start;
    while (clock64() - start < waited + waited / GRACE_OF && !is_open(counts, begun, 0))
        __nanosleep(POLL_NANOSECONDS);
}

extern "C" cudaError_t tb_gpu_start_solve_barrier(const tb_gpu_launch *launch, int32_t begun,
                                                  cudaStream_t stream)
{
    tb_gpu_solve_barrier<<<1, 1, 0, stream>>>(launch->counts, begun, launch->overlap);
    return cudaGetLastError();
}

#endif
