/* Steps as a sequence of launches, a kernel for each part of a step.
 *
 * Worlds go through a step side by side, so that all of the card runs the same part at a time, in
 * that part's own registers, stack and lanes. A kernel ends with its last world, and few solves take
 * many times what most do. So solves beyond a patience wait for a second launch, in which each has a
 * warp; and groups of worlds go their ways in streams of their own, so that where one group waits
 * for its last worlds, others have the card. Where the card has no memory for all worlds at once,
 * they come in turns, each with all its steps. */
#include "gpu_internal.h"

#include <stdio.h>

#include "stages.h"

typedef cudaError_t start_function(const tb_gpu_launch *launch, cudaStream_t stream);

#define OF_DOUBLE(part) tb_gpu_start_##part,
#define OF_FLOAT(part)  tb_gpu_start_##part##_f32,
static start_function *const DOUBLE_PARTS[TB_GPU_PARTS] = {TB_GPU_START_PARTS(OF_DOUBLE)};
static start_function *const FLOAT_PARTS[TB_GPU_PARTS] = {TB_GPU_START_PARTS(OF_FLOAT)};

/* Kernels that count their cycles bring these along. */
typedef void stages_function(unsigned long long sums[TB_STAGE_SUMS]);
#define STAGES_OF(part)                                                                            \
    stages_function tb_gpu_stages_##part __attribute__((weak));                                    \
    stages_function tb_gpu_stages_##part##_f32 __attribute__((weak));
TB_GPU_START_PARTS(STAGES_OF)
#define STAGES(part) tb_gpu_stages_##part, tb_gpu_stages_##part##_f32,

static void print_stages(const tb_gpu_launch *next, cudaStream_t stream)
{
    static const char *const NAMES[] = {"arrays", "motion", "mass",     "begin", "rows",
                                        "broad",  "narrow", "contacts", "solve", "end"};
    stages_function *const takes[] = {TB_GPU_START_PARTS(STAGES)};
    unsigned long long sums[TB_STAGE_SUMS] = {0};
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    (void)cudaStreamIsCapturing(stream, &capture);
    if (takes[0] == NULL || capture != cudaStreamCaptureStatusNone) return;
    (void)cudaStreamSynchronize(stream);
    for (size_t i = 0; i < sizeof takes / sizeof *takes; i++)
        if (takes[i] != NULL) takes[i](sums);
    const unsigned long long steps = sums[TB_STAGE_SUMS - 1];
    if (steps == 0) return;
    fprintf(stderr, "cycles a step, next %d worlds x %d lanes:", (int)next->number_of_worlds,
            (int)next->lanes[TB_GPU_PART_SOLVE]);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        fprintf(stderr, " %s %llu", NAMES[i], sums[i] / steps);
    fprintf(stderr, " (%llu steps)\n", steps);
}

/* Solves that have been left waiting: whichever warp is free takes the next. */
static cudaError_t start_waiting(const tb_gpu_launch *launch, int32_t takers, start_function *solve,
                                 cudaStream_t stream)
{
    tb_gpu_launch second = *launch;
    second.lanes[TB_GPU_PART_SOLVE] = TB_GPU_BLOCK_THREADS;
    second.patience = 0;
    second.takers = takers < launch->slots ? takers : launch->slots;
    return solve(&second, stream);
}

static cudaError_t start_step(const tb_gpu_launch *group, int32_t first, int32_t step,
                              start_function *const *parts, cudaStream_t stream)
{
    cudaError_t result = cudaSuccess;
    tb_gpu_launch launch = *group;
    launch.first = first;
    launch.step = step;
    launch.takers = 0;
    for (int part = 0; part < TB_GPU_PARTS && result == cudaSuccess; part++) {
        result = parts[part](&launch, stream);
        if (part == TB_GPU_PART_SOLVE && launch.patience > 0 && result == cudaSuccess)
            result = start_waiting(&launch, group->takers, parts[part], stream);
    }
    return result;
}

/* Steps of a group, those of all its turns one after the other. */
static int64_t steps_of(const tb_gpu_launch *launch)
{
    const int32_t turns = (launch->number_of_worlds + launch->slots - 1) / launch->slots;
    return (int64_t)turns * launch->steps;
}

/* A group begins its next step when all have begun theirs, so that the first one does not wait for
 * the host to have told all of the last. */
static cudaError_t start_steps(const tb_gpu_launch *launches, int32_t count,
                               const cudaStream_t *streams, start_function *const *parts)
{
    cudaError_t result = cudaSuccess;
    print_stages(launches, streams[0]);
    bool more = true;
    for (int64_t k = 0; more; k++) {
        more = false;
        for (int32_t g = 0; g < count && result == cudaSuccess; g++) {
            const tb_gpu_launch *l = &launches[g];
            if (k >= steps_of(l)) continue;
            more = true;
            result = start_step(l, (int32_t)(k / l->steps) * l->slots, (int32_t)(k % l->steps),
                                parts, streams[g]);
        }
    }
    return result;
}

/* A launch of no worlds for each number of lanes that a world can have. */
static cudaError_t warm_steps(start_function *const *parts, cudaStream_t stream)
{
    cudaError_t result = cudaSuccess;
    for (int32_t lanes = 1; lanes <= TB_GPU_BLOCK_THREADS; lanes *= 2) {
        tb_gpu_launch launch = {.slots = 1};
        for (int part = 0; part < TB_GPU_PARTS; part++) launch.lanes[part] = lanes;
        for (int part = 0; part < TB_GPU_PARTS && result == cudaSuccess; part++)
            result = parts[part](&launch, stream);
    }
    return result;
}

cudaError_t tb_gpu_start_steps(const tb_gpu_launch *launches, int32_t count,
                               const cudaStream_t *streams)
{
    return start_steps(launches, count, streams, DOUBLE_PARTS);
}

cudaError_t tb_gpu_start_steps_f32(const tb_gpu_launch *launches, int32_t count,
                                   const cudaStream_t *streams)
{
    return start_steps(launches, count, streams, FLOAT_PARTS);
}

cudaError_t tb_gpu_warm_steps(cudaStream_t stream)
{
    return warm_steps(DOUBLE_PARTS, stream);
}

cudaError_t tb_gpu_warm_steps_f32(cudaStream_t stream)
{
    return warm_steps(FLOAT_PARTS, stream);
}
