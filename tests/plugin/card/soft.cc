/* The kernels of soft bodies' fields and contacts, played: the source that cards run, lane by lane. */
#include "blocks.h"

static cudaError_t launch_played(const void *kernel, void **arguments, dim3 blocks, dim3 threads,
                                 size_t memory);

#define cudaLaunchKernel(kernel, blocks, threads, arguments, memory, stream)                       \
    ((void)(stream), launch_played(kernel, arguments, blocks, threads, memory))

#define cudaLaunchCooperativeKernel cudaLaunchKernel

#include "../../../solver/gpu/grid/contacts.cu"
#include "../../../solver/gpu/grid/fields.cu"
#include "../../../solver/gpu/grid/impulses.cu"
#include "../../../solver/gpu/grid/sweeps.cu"

#ifndef TB_SINGLE
typedef void soft_function(const tb_gpu_soft argument);
static soft_function *function;

static void run_kernel(const void *argument)
{
    function(*(const tb_gpu_soft *)argument);
}

static cudaError_t launch_played(const void *kernel, void **arguments, dim3 blocks, dim3 threads,
                                 size_t memory)
{
    if (played_state() != cudaSuccess) return played_state();
    function = (soft_function *)kernel;
    played_launch_blocks(run_kernel, arguments[0], blocks.x, threads.x, memory + 16);
    return played_state();
}
#endif
