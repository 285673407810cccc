/* Plays a source of cards that launches one kernel: include this, then the source, and write
 * PLAY_KERNEL(kernel, type of its argument) behind it. */
#ifndef TESTS_PLUGIN_CARD_ONE_KERNEL_H
#define TESTS_PLUGIN_CARD_ONE_KERNEL_H

#include "blocks.h"

static cudaError_t launch_played(const void *kernel, void **arguments, dim3 blocks, dim3 threads,
                                 size_t memory);

#define cudaLaunchKernel(kernel, blocks, threads, arguments, memory, stream)                       \
    ((void)(stream), launch_played(kernel, arguments, blocks, threads, memory))
#define cudaLaunchCooperativeKernel cudaLaunchKernel
#define cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, memory)             \
    ((void)(threads), *(blocks) = 2, cudaSuccess)

#define PLAY_KERNEL(kernel_played, argument_type)                                                  \
    static void run_kernel(const void *argument)                                                   \
    {                                                                                              \
        kernel_played(*(const argument_type *)argument);                                           \
    }                                                                                              \
                                                                                                   \
    static cudaError_t launch_played(const void *kernel, void **arguments, dim3 blocks,            \
                                     dim3 threads, size_t memory)                                  \
    {                                                                                              \
        (void)kernel;                                                                              \
        if (played_state() != cudaSuccess) return played_state();                                  \
        played_launch_blocks(run_kernel, arguments[0], blocks.x, threads.x, memory + 16);          \
        return played_state();                                                                     \
    }

#endif
