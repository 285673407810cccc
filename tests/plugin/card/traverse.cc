/* The kernel of traversals of BSP trees, played: the source that cards run, lane by lane. */
#include "blocks.h"

static cudaError_t launch_played(const void *kernel, void **arguments, dim3 blocks, dim3 threads,
                                 size_t memory);

#define cudaLaunchKernel(kernel, blocks, threads, arguments, memory, stream)            \
    ((void)(stream), launch_played(kernel, arguments, blocks, threads, memory))

#include "../../../solver/gpu/penalty/traverse.cu"

#ifndef TB_SINGLE
static void run_kernel(const void *argument)
{
    tb_gpu_traverse_parts(*(const tb_gpu_traverse *)argument);
}

static cudaError_t launch_played(const void *kernel, void **arguments, dim3 blocks, dim3 threads,
                                 size_t memory)
{
    (void)kernel;
    if (played_state() != cudaSuccess) return played_state();
    played_launch_blocks(run_kernel, arguments[0], blocks.x, threads.x, memory + 16);
    return played_state();
}
#endif
