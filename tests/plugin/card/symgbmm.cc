/* The kernels of symgbmm, played: the source that cards run, lane by lane. */
#include "blocks.h"

static cudaError_t launch_played(void **arguments, dim3 blocks, dim3 threads, cudaStream_t stream);

#define cudaLaunchKernel(kernel, blocks, threads, arguments, memory, stream)                       \
    launch_played(arguments, blocks, threads, stream)

#include "../../../solver/gpu/qp/symgbmm.cu"

static void run_kernel(const void *argument)
{
    product_kernel(*(const tb_gpu_product *)argument);
}

static cudaError_t launch_played(void **arguments, dim3 blocks, dim3 threads, cudaStream_t stream)
{
    (void)stream;
    if (played_state() != cudaSuccess) return played_state();
    played_launch_blocks(run_kernel, arguments[0], blocks.x, threads.x, sizeof(product_memory));
    return played_state();
}
