/* For measurements: how many cycles the lanes of a card spend in each stage of a step.
 *
 * Built with -DTB_STAGE_TIMES (of the kernels alone), every call begins by printing the sums of those
 * before it since the last line, to stderr (steps.c); otherwise there is nothing here. The clock runs
 * while a warp waits too, so the sums are the time of worlds, not the load of the card's units. */
#ifndef TB_GPU_STAGES_H
#define TB_GPU_STAGES_H

enum { TB_STAGE_SUMS = 16 }; /* the last one counts steps */

#ifdef TB_STAGE_TIMES

#include <cuda_runtime_api.h>

static __device__ unsigned long long tb_stage_sums[TB_STAGE_SUMS];
static __device__ long long tb_stage_clocks[1 << 16]; /* when a team's last stage ended */

static __device__ inline void tb_stage_done(int stage)
{
    if (threadIdx.x != 0) return;
    const long long now = clock64();
    long long *last = &tb_stage_clocks[(blockIdx.x * blockDim.y + threadIdx.y) & 0xFFFF];
    if (stage >= 0) atomicAdd(&tb_stage_sums[stage], (unsigned long long)(now - *last));
    if (stage == 0) atomicAdd(&tb_stage_sums[TB_STAGE_SUMS - 1], 1ull);
    *last = now;
}

/* Adds this kernel's counts to the sums, and clears them. */
static inline void tb_stages_take(unsigned long long sums[TB_STAGE_SUMS])
{
    unsigned long long own[TB_STAGE_SUMS];
    const unsigned long long none[TB_STAGE_SUMS] = {0};
    (void)cudaMemcpyFromSymbol(own, tb_stage_sums, sizeof own);
    (void)cudaMemcpyToSymbol(tb_stage_sums, none, sizeof none);
    for (int i = 0; i < TB_STAGE_SUMS; i++) sums[i] += own[i];
}

#define TB_STAGE_DONE(stage) tb_stage_done(stage)
#define TB_STAGES_BEGIN()    tb_stage_done(-1)

#else
#define TB_STAGES_BEGIN() ((void)0)
#endif

#endif
