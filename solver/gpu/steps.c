/* Steps as a sequence of launches, a kernel for each part of a step.
 *
 * Few worlds go alone, each through all its steps in one kernel. Many go through a step side by side,
 * so that all of the card runs the same part at a time, in that part's own registers, stack and lanes. A kernel ends with its last world, and few solves take
 * many times what most do. So a solve that goes on for longer than a patience is given up and waits
 * for a launch beside, in which it has a warp to itself and is begun anew, while the others go on
 * with their next steps; its world joins them when it is done, some steps behind. After as many
 * rounds as there are steps the call ends, and the host calls again for the worlds that have steps
 * left. No world knows of another, so none of this is seen in what they leave.
 *
 * Where the card has no memory for all worlds at once, they come in turns, each with all its steps,
 * and nobody waits. */
#include "gpu_internal.h"

#include <stdio.h>
#include <string.h>

#include "sides.h"
#include "solve/solve.h"
#include "stages.h"

typedef cudaError_t start_function(const tb_gpu_launch *launch, cudaStream_t stream);

typedef struct step_kernels {
    start_function *parts[TB_GPU_PARTS], *staggered, *alone;
} step_kernels;

#define OF_DOUBLE(part) tb_gpu_start_##part,
#define OF_FLOAT(part)  tb_gpu_start_##part##_f32,
static const step_kernels IN_DOUBLE = {
    {TB_GPU_START_PARTS(OF_DOUBLE)}, tb_gpu_start_staggered, tb_gpu_start_alone};
static const step_kernels IN_FLOAT = {
    {TB_GPU_START_PARTS(OF_FLOAT)}, tb_gpu_start_staggered_f32, tb_gpu_start_alone_f32};

/* The parts of a launch: its solver may have a kernel of its own. */
typedef struct launch_parts {
    start_function *start[TB_GPU_PARTS];
} launch_parts;

static launch_parts parts_of(const step_kernels *kernels, int32_t solver)
{
    launch_parts parts;
    memcpy(parts.start, kernels->parts, sizeof parts.start);
    if (solver == TB_SOLVER_NUMBER_staggered) parts.start[TB_GPU_PART_SOLVE] = kernels->staggered;
    return parts;
}

/* Kernels that count their cycles bring these along. */
typedef void stages_function(unsigned long long sums[TB_STAGE_SUMS]);
#define STAGES_OF(part)                                                                            \
    stages_function tb_gpu_stages_##part __attribute__((weak));                                    \
    stages_function tb_gpu_stages_##part##_f32 __attribute__((weak));
TB_GPU_START_PARTS(STAGES_OF)
STAGES_OF(staggered)
STAGES_OF(alone)
#define STAGES(part) tb_gpu_stages_##part, tb_gpu_stages_##part##_f32,

static void print_stages(const tb_gpu_launch *next, cudaStream_t stream)
{
    static const char *const NAMES[] = {"arrays", "motion", "mass",     "begin", "rows",
                                        "broad",  "narrow", "contacts", "solve", "end"};
    stages_function *const takes[] = {TB_GPU_START_PARTS(STAGES) STAGES(staggered) STAGES(alone)};
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

/* Solves that wait: whichever warp is free takes the next. */
static cudaError_t start_beside(const tb_gpu_launch *launch, start_function *solve,
                                const tb_gpu_sides *sides, int32_t side, cudaStream_t stream)
{
    tb_gpu_launch own = *launch;
    own.lanes[TB_GPU_PART_SOLVE] = TB_GPU_BLOCK_THREADS;
    own.patience = 0;
    const cudaError_t result = tb_gpu_side_begin(sides, side, stream);
    return result == cudaSuccess ? solve(&own, sides->streams[side]) : result;
}

static cudaError_t start_step(const tb_gpu_launch *whole, int32_t first, int32_t step,
                              start_function *const *parts, const tb_gpu_sides *sides,
                              cudaStream_t stream)
{
    cudaError_t result = cudaSuccess;
    tb_gpu_launch launch = *whole;
    launch.first = first;
    launch.step = step;
    launch.takers = 0;
    for (int part = 0; part < TB_GPU_PARTS && result == cudaSuccess; part++) {
        result = parts[part](&launch, stream);
        if (part == TB_GPU_PART_SOLVE && whole->patience > 0 && result == cudaSuccess)
            result = start_beside(whole, parts[part], sides, step % TB_GPU_SIDES, stream);
    }
    return result;
}

/* Waits for the solves beside, and ends the steps that they belong to. */
static cudaError_t finish_beside(const tb_gpu_launch *whole, start_function *const *parts,
                                 const tb_gpu_sides *sides, cudaStream_t stream)
{
    tb_gpu_launch launch = *whole;
    const int32_t used = whole->steps < TB_GPU_SIDES ? whole->steps : TB_GPU_SIDES;
    cudaError_t result = tb_gpu_sides_join(sides, used, stream);
    launch.takers = 0;
    if (result == cudaSuccess) result = parts[TB_GPU_PART_END](&launch, stream);
    return result;
}

static cudaError_t start_all(const tb_gpu_launch *launch, const tb_gpu_sides *sides,
                             const step_kernels *kernels, cudaStream_t stream)
{
    const launch_parts own = parts_of(kernels, launch->solver);
    start_function *const *parts = own.start;
    cudaError_t result = cudaSuccess;
    for (int32_t first = 0; first < launch->number_of_worlds; first += launch->slots)
        for (int32_t step = 0; step < launch->steps && result == cudaSuccess; step++)
            result = start_step(launch, first, step, parts, sides, stream);
    if (launch->patience == 0) return result;
    if (result == cudaSuccess) result = finish_beside(launch, parts, sides, stream);
    /* nobody waits for what has been begun, and its memory is used again */
    if (result != cudaSuccess) tb_gpu_sides_settle(sides, TB_GPU_SIDES);
    return result;
}

static cudaError_t start_steps(const tb_gpu_launch *launch, const tb_gpu_sides *sides,
                               const step_kernels *kernels, cudaStream_t stream)
{
    print_stages(launch, stream);
    return launch->alone ? kernels->alone(launch, stream)
                         : start_all(launch, sides, kernels, stream);
}

/* A launch of no worlds for each number of lanes that a world can have. */
static cudaError_t warm_steps(const step_kernels *kernels, cudaStream_t stream)
{
    cudaError_t result = cudaSuccess;
    for (int32_t lanes = 1; lanes <= TB_GPU_BLOCK_THREADS; lanes *= 2) {
        tb_gpu_launch launch = {.slots = 1};
        for (int part = 0; part < TB_GPU_PARTS; part++) launch.lanes[part] = lanes;
        for (int part = 0; part < TB_GPU_PARTS && result == cudaSuccess; part++)
            result = kernels->parts[part](&launch, stream);
        if (result == cudaSuccess) result = kernels->staggered(&launch, stream);
        if (result == cudaSuccess) result = kernels->alone(&launch, stream);
    }
    return result;
}

cudaError_t tb_gpu_start_steps(const tb_gpu_launch *launch, const tb_gpu_sides *sides,
                               cudaStream_t stream)
{
    return start_steps(launch, sides, &IN_DOUBLE, stream);
}

cudaError_t tb_gpu_start_steps_f32(const tb_gpu_launch *launch, const tb_gpu_sides *sides,
                                   cudaStream_t stream)
{
    return start_steps(launch, sides, &IN_FLOAT, stream);
}

cudaError_t tb_gpu_warm_steps(cudaStream_t stream)
{
    return warm_steps(&IN_DOUBLE, stream);
}

cudaError_t tb_gpu_warm_steps_f32(cudaStream_t stream)
{
    return warm_steps(&IN_FLOAT, stream);
}
