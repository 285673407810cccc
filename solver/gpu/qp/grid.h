/* Blocks of one launch that work together: barriers, and single-block work.
 *
 * All blocks of the grid are on the card at once (a cooperative launch), so they may wait for each
 * other. Writes before a barrier are visible to all its blocks afterwards. */
#ifndef TB_GPU_GRID_H
#define TB_GPU_GRID_H

#include "gpu/qp/program.h"

/* TB_CARD_LARGE marks functions that would else be inlined in many places. */
#ifndef TB_CARD /* a test on the processor has its own */
#define TB_CARD       static __device__
#define TB_CARD_LARGE static __device__ __noinline__
#define TB_CARD_SPIN  ((void)0)
#endif

static const int WARP = 32, LANES = TB_GPU_PROGRAM_THREADS, WARPS = LANES / WARP;

/* A place where blocks meet; alone in its cache line. */
typedef struct meeting {
    unsigned arrived, apart[31];
} meeting;

TB_CARD int lane_of(void)
{
    return (int)threadIdx.x % WARP;
}

TB_CARD int warp_of(void)
{
    return (int)threadIdx.x / WARP;
}

/* Waits until `count` blocks have come; counts on from meeting to meeting. */
TB_CARD void meet(meeting *place, int count)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned many = (unsigned)count;
        __threadfence();
        const unsigned ticket = atomicAdd(&place->arrived, 1u);
        const unsigned target = (ticket / many + 1) * many;
        while ((int)(*(volatile unsigned *)&place->arrived - target) < 0) TB_CARD_SPIN;
        __threadfence();
    }
    __syncthreads();
}

/* Progress of one block, for others to wait for: adds one at each call. */
TB_CARD void tell(meeting *place)
{
    __syncthreads();
    if (threadIdx.x > 0) return;
    __threadfence();
    atomicAdd(&place->arrived, 1u);
}

TB_CARD unsigned told(const meeting *place)
{
    return *(const volatile unsigned *)&place->arrived;
}

/* Waits until it has counted to `target`. */
TB_CARD void wait_for(const meeting *place, unsigned target)
{
    if (threadIdx.x == 0) {
        while ((int)(told(place) - target) < 0) TB_CARD_SPIN;
        __threadfence();
    }
    __syncthreads();
}

/* The largest of a warp's numbers, to all of its lanes; one that is not a number is the largest. */
TB_CARD double largest_of_warp(double value)
{
    for (int step = WARP / 2; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, value, step);
        if (!(other <= value)) value = other;
    }
    return value;
}

TB_CARD double sum_of_warp(double value)
{
    for (int step = WARP / 2; step > 0; step /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

/* Nanoseconds of the card. */
TB_CARD unsigned long long card_time(void)
{
#ifdef __CUDA_ARCH__
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#else
    return 0;
#endif
}

#endif
