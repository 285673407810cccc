/* For measurements: how many cycles the lanes of a card spend in each stage of a step.
 *
 * Built with -DTB_STAGE_TIMES, every launch begins by printing the sums of those before it since the
 * last line, to stderr; otherwise there is nothing here. The clock runs while a warp waits too, so
 * the sums say where a world's time goes and not what the card's units do. */
#ifndef TB_GPU_STAGES_H
#define TB_GPU_STAGES_H

#ifdef TB_STAGE_TIMES

#include <cstdio>

#include <cuda_runtime_api.h>

enum { TB_STAGE_SUMS = 16 };
static __device__ unsigned long long tb_stage_sums[TB_STAGE_SUMS];
static __device__ long long tb_stage_clocks[1 << 16]; /* when a lane's last stage ended */

static __device__ inline int tb_stage_slot(void)
{
    return (int)((blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) & 0xFFFF;
}

static __device__ inline void tb_stage_done(int stage)
{
    if (threadIdx.x != 0) return;
    const long long now = clock64();
    long long *last = &tb_stage_clocks[tb_stage_slot()];
    if (stage >= 0) atomicAdd(&tb_stage_sums[stage], (unsigned long long)(now - *last));
    if (stage == 0) atomicAdd(&tb_stage_sums[TB_STAGE_SUMS - 1], 1ull);
    *last = now;
}

static inline void tb_stage_print(int worlds, int lanes, cudaStream_t stream)
{
    static const char *const NAMES[] = {"arrays", "motion", "mass",     "begin", "rows",
                                        "broad",  "narrow", "contacts", "solve", "end"};
    unsigned long long sums[TB_STAGE_SUMS];
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &capture);
    if (capture != cudaStreamCaptureStatusNone)
        return; /* a launch yet to come, any number of times */
    cudaStreamSynchronize(stream);
    cudaMemcpyFromSymbol(sums, tb_stage_sums, sizeof sums);
    if (sums[TB_STAGE_SUMS - 1] > 0) {
        fprintf(stderr, "cycles a step, next %d worlds x %d lanes:", worlds, lanes);
        for (int i = 0; i < 10; i++)
            fprintf(stderr, " %s %llu", NAMES[i], sums[i] / sums[TB_STAGE_SUMS - 1]);
        fprintf(stderr, " (%llu steps)\n", sums[TB_STAGE_SUMS - 1]);
    }
    const unsigned long long none[TB_STAGE_SUMS] = {0};
    cudaMemcpyToSymbol(tb_stage_sums, none, sizeof none);
}

#define TB_STAGE_DONE(stage) tb_stage_done(stage)
#define TB_STAGES_BEGIN()    tb_stage_done(-1)
#define TB_STAGES_PRINT(launch, stream)                                                            \
    tb_stage_print((launch)->number_of_worlds, (launch)->lanes, stream)

#else
#define TB_STAGES_BEGIN()               ((void)0)
#define TB_STAGES_PRINT(launch, stream) ((void)0)
#endif

#endif
