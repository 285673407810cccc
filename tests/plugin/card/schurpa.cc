/* The kernel of quadratic programs, played: the source that cards run, lane by lane. */
#include "blocks.h"

static cudaError_t launch_played(void **arguments, dim3 blocks, dim3 threads, size_t memory);

#define cudaLaunchCooperativeKernel(kernel, blocks, threads, arguments, memory, stream)            \
    launch_played(arguments, blocks, threads, memory)

#include "../../../solver/gpu/qp/schurpa.cu"

static void run_kernel(const void *argument)
{
    schurpa_kernel(*(const card *)argument);
}

static cudaError_t launch_played(void **arguments, dim3 blocks, dim3 threads, size_t memory)
{
    if (played_state() != cudaSuccess) return played_state();
    played_launch_blocks(run_kernel, arguments[0], blocks.x, threads.x, memory);
    return played_state();
}
