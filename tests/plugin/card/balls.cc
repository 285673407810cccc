/* The kernel of worlds of balls, played: the source that cards run, lane by lane. */
#include "blocks.h"

static cudaError_t launch_played(const void *kernel, void **arguments, dim3 blocks, dim3 threads,
                                 size_t memory);

#define cudaLaunchCooperativeKernel(kernel, blocks, threads, arguments, memory, stream)            \
    ((void)(stream), launch_played(kernel, arguments, blocks, threads, memory))

#include "../../../solver/gpu/penalty/balls.cu"

#ifndef TB_SINGLE
static void run_kernel(const void *argument)
{
    tb_gpu_balls_steps(*(const tb_gpu_balls *)argument);
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
