/* The kernels of the stored prox iterations, played: the source that cards run, lane by lane. */
#include "blocks.h"

static cudaError_t launch_played(const void *kernel, void **arguments, dim3 blocks, dim3 threads,
                                 size_t memory);

#define cudaLaunchKernel(kernel, blocks, threads, arguments, memory, stream)                       \
    ((void)(stream), launch_played(kernel, arguments, blocks, threads, memory))
#define cudaLaunchCooperativeKernel cudaLaunchKernel

#include "../../../solver/gpu/stored/stored.cu"

typedef void stored_function(const tb_gpu_stored argument);
static stored_function *function;

static void run_kernel(const void *argument)
{
    function(*(const tb_gpu_stored *)argument);
}

static cudaError_t launch_played(const void *kernel, void **arguments, dim3 blocks, dim3 threads,
                                 size_t memory)
{
    if (played_state() != cudaSuccess) return played_state();
    function = (stored_function *)kernel;
    played_launch_blocks(run_kernel, arguments[0], blocks.x, threads.x, memory + 16);
    return played_state();
}
