/* Blocks of a cooperative launch, played by one thread: every lane is a context of its own that
 * runs until it has to wait for its warp, its block, or another block. A wait without a lane that
 * could run ends the program.
 *
 * Lanes run in a fixed order, so this finds no races; it finds wrong indices, wrong arithmetic,
 * missing barriers and reads of unwritten memory, which begins as NaN. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "played.h"

#define TB_CARD       static
#define TB_CARD_LARGE static
#define TB_CARD_SPIN  played_wait_in_line()
#define TB_CARD_MMA   1
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

enum { PLAYED_WARP = 32, PLAYED_STACK = 64 << 10, PLAYED_MOST = 16 * 256 };

struct played_index {
    unsigned x;
};

/* Lanes that wait for each other. */
struct played_group {
    int waiting, of;
    int *lanes;
};

struct played_lane {
    ucontext_t begin; /* once; then jumps, which ask nothing of the system */
    jmp_buf place;
    bool begun;
    char *stack;
    played_index thread, block;
    /* numbers shown to its warp, in turns: a lane that shows the next one does not disturb those that
     * still read the last */
    unsigned char number[2][8], turn;
};

static struct {
    played_lane lanes[PLAYED_MOST];
    int line[PLAYED_MOST], first, length; /* lanes that can run, a ring */
    int lane, count, running;
    played_index grid, threads;
    played_group *blocks, *warps;
    unsigned char **memory;
    jmp_buf caller;
    void (*kernel)(const void *argument);
    const void *argument;
} played;

static void played_line_up(int lane)
{
    played.line[(played.first + played.length++) % PLAYED_MOST] = lane;
}

/* To the next in line; comes back when this one is. */
static void played_next(jmp_buf *own)
{
    if (played.length == 0 && played.running > 0) {
        fprintf(stderr, "lanes wait for nobody\n");
        abort();
    }
    if (own != NULL && _setjmp(*own) != 0) return;
    if (played.length == 0) _longjmp(played.caller, 1);
    played.lane = played.line[played.first];
    played.first = (played.first + 1) % PLAYED_MOST;
    played.length--;
    played_lane *lane = &played.lanes[played.lane];
    if (lane->begun) _longjmp(lane->place, 1);
    lane->begun = true;
    setcontext(&lane->begin);
}

static inline void played_wait_in_line()
{
    played_line_up(played.lane);
    played_next(&played.lanes[played.lane].place);
}

static void played_meet(played_group *group)
{
    if (++group->waiting < group->of) {
        group->lanes[group->waiting - 1] = played.lane;
        played_next(&played.lanes[played.lane].place);
        return;
    }
    group->waiting = 0;
    for (int i = 0; i < group->of - 1; i++) played_line_up(group->lanes[i]);
}

static void played_run()
{
    played.kernel(played.argument);
    played.running--;
    played_next(NULL);
}

/* Runs a kernel; its memory is taken here and given back. */
static void played_launch_blocks(void (*kernel)(const void *), const void *argument,
                                 unsigned blocks, unsigned threads, size_t memory)
{
    const int count = (int)(blocks * threads);
    if (count > PLAYED_MOST) abort();
    played.kernel = kernel;
    played.argument = argument;
    played.grid.x = blocks;
    played.threads.x = threads;
    played.running = played.count = count;
    played.first = played.length = 0;
    played.blocks = (played_group *)calloc(blocks, sizeof(played_group));
    played.warps = (played_group *)calloc((size_t)count / PLAYED_WARP, sizeof(played_group));
    played.memory = (unsigned char **)calloc(blocks, sizeof(unsigned char *));
    for (unsigned b = 0; b < blocks; b++) {
        played.blocks[b].of = (int)threads;
        played.blocks[b].lanes = (int *)calloc(threads, sizeof(int));
        played.memory[b] = (unsigned char *)aligned_alloc(256, (memory + 255) / 256 * 256);
        memset(played.memory[b], 0xff, memory);
    }
    for (int w = 0; w < count / PLAYED_WARP; w++) {
        played.warps[w].of = PLAYED_WARP;
        played.warps[w].lanes = (int *)calloc(PLAYED_WARP, sizeof(int));
    }
    for (int i = 0; i < count; i++) {
        played_lane *lane = &played.lanes[i];
        if (lane->stack == NULL) { /* kept for later launches */
            lane->stack = (char *)malloc(PLAYED_STACK);
            getcontext(&lane->begin);
            lane->begin.uc_stack.ss_sp = lane->stack;
            lane->begin.uc_stack.ss_size = PLAYED_STACK;
            lane->begin.uc_link = NULL;
            makecontext(&lane->begin, played_run, 0);
        }
        lane->block.x = (unsigned)i / threads;
        lane->thread.x = (unsigned)i % threads;
        lane->begun = false;
        lane->turn = 0;
        played_line_up(i);
    }
    played_next(&played.caller); /* and here again when all have ended */
    for (unsigned b = 0; b < blocks; b++) {
        free(played.blocks[b].lanes);
        free(played.memory[b]);
    }
    for (int w = 0; w < count / PLAYED_WARP; w++) free(played.warps[w].lanes);
    free(played.blocks);
    free(played.warps);
    free(played.memory);
}

/* ---- names of kernels ---- */

#define threadIdx       (played.lanes[played.lane].thread)
#define blockIdx        (played.lanes[played.lane].block)
#define gridDim         (played.grid)
#define blockDim        (played.threads)
#define shared_bytes    (played.memory[blockIdx.x])
#define __syncthreads() played_meet(&played.blocks[blockIdx.x])
#define __syncwarp()    played_meet(&played.warps[played.lane / PLAYED_WARP])
#define __threadfence() ((void)0)

/* Shows a number to the warp. Returns the warp's first lane; numbers are those of `turn`. */
template <typename number> static const played_lane *played_tell(number own, int *turn)
{
    played_lane *lane = &played.lanes[played.lane];
    *turn = lane->turn;
    lane->turn = !lane->turn;
    memcpy(lane->number[*turn], &own, sizeof own);
    __syncwarp();
    return &played.lanes[played.lane / PLAYED_WARP * PLAYED_WARP];
}

template <typename number> static number played_show(number own, int from)
{
    int turn;
    number other;
    const played_lane *first = played_tell(own, &turn);
    memcpy(&other, first[from].number[turn], sizeof other);
    return other;
}

template <typename number> static number __shfl_sync(unsigned, number own, int from)
{
    return played_show(own, from);
}

template <typename number> static number __shfl_xor_sync(unsigned, number own, int mask)
{
    return played_show(own, (played.lane % PLAYED_WARP) ^ mask);
}

template <typename number> static number __shfl_up_sync(unsigned, number own, int distance)
{
    const int lane = played.lane % PLAYED_WARP;
    return played_show(own, lane < distance ? lane : lane - distance);
}

static inline unsigned __ballot_sync(unsigned, bool own)
{
    int turn;
    unsigned bits = 0;
    const played_lane *first = played_tell<unsigned char>(own, &turn);
    for (int i = 0; i < PLAYED_WARP; i++) bits |= (unsigned)first[i].number[turn][0] << i;
    return bits;
}

template <typename number> static number __ldg(const number *at)
{
    return *at;
}

static inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}

template <typename number> static number atomicAdd(number *at, number value)
{
    const number old = *at;
    *at = old + value;
    return old;
}

template <typename number> static number atomicExch(number *at, number value)
{
    const number old = *at;
    *at = value;
    return old;
}

static inline unsigned atomicOr(unsigned *at, unsigned value)
{
    const unsigned old = *at;
    *at = old | value;
    return old;
}

template <typename number> static number atomicMin(number *at, number value)
{
    const number old = *at;
    if (value < old) *at = value;
    return old;
}

template <typename number> static number atomicMax(number *at, number value)
{
    const number old = *at;
    if (value > old) *at = value;
    return old;
}

static inline double rsqrt(double x)
{
    return 1 / __builtin_sqrt(x);
}

static inline float rsqrtf(float x)
{
    return 1 / __builtin_sqrtf(x);
}

/* the tensor cores' m8n8k4 of doubles */
static inline void multiply_add(double *sums, double a, double b)
{
    const int lane = played.lane % PLAYED_WARP, row = lane / 4, column = lane % 4 * 2;
    for (int k = 0; k < 4; k++) {
        const double left = played_show(a, row * 4 + k);
        for (int h = 0; h < 2; h++)
            sums[h] = __builtin_fma(left, played_show(b, (column + h) * 4 + k), sums[h]);
    }
}

#endif
