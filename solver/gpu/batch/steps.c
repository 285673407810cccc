/* Steps as a sequence of launches, a kernel for each part of a step.
 *
 * Few worlds go alone, each through all its steps in one kernel. Many worlds make a step side by side:
 * the whole card runs the same part at a time, with that part's registers, stack and lanes. A kernel
 * ends with its last world, and a few solves take many times longer than most. So where some solves
 * are long, the solves of a step are a launch of their own on a side stream, and a solve barrier lets
 * the next kernel begin when nearly all of them are done. The other solves go on, and their worlds
 * join the rest in a later step. More worlds than the card holds at once come in two groups, each in
 * its own stream, so that the first blocks of one group run beside the last blocks of the other. The
 * call ends after as many rounds as there are steps, and the host calls again for the worlds that have
 * steps left. A warp keeps a small world or a pile for all steps of one launch. Worlds are independent,
 * so the schedule changes no result.
 *
 * Where the card's memory does not hold all worlds, they come in turns, each with all its steps. */
#include "gpu/device/gpu_internal.h"

#include <stdio.h>
#include <string.h>

#include "gpu/device/side_streams.h"
#include "solve/solve.h"
#include "gpu/batch/choose.h"
#include "gpu/batch/stages.h"

typedef cudaError_t start_function(const tb_gpu_launch *launch, cudaStream_t stream);

typedef struct step_kernels {
    start_function *parts[TB_GPU_KERNELS], *staggered, *alone;
    start_function *warp, *pile, *wide; /* NULL in double */
} step_kernels;

#define OF_DOUBLE(part) tb_gpu_start_##part,
#define OF_FLOAT(part)  tb_gpu_start_##part##_f32,
static const step_kernels IN_DOUBLE = {
    {TB_GPU_START_PARTS(OF_DOUBLE)}, tb_gpu_start_staggered, tb_gpu_start_alone, NULL, NULL, NULL};
static const step_kernels IN_FLOAT = {{TB_GPU_START_PARTS(OF_FLOAT)}, tb_gpu_start_staggered_f32,
                                      tb_gpu_start_alone_f32,         tb_gpu_start_warp_f32,
                                      tb_gpu_start_pile_f32,          tb_gpu_start_wide_f32};

/* The parts of a launch, whose solver may have a kernel of its own; then the kernel that takes solves
 * before. */
enum { WIDE = TB_GPU_KERNELS, LAUNCH_PARTS };
typedef struct launch_parts {
    start_function *start[LAUNCH_PARTS];
} launch_parts;

static launch_parts parts_of(const step_kernels *kernels, int32_t solver)
{
    launch_parts parts;
    memcpy(parts.start, kernels->parts, sizeof kernels->parts);
    parts.start[WIDE] = kernels->wide;
    if (solver == TB_SOLVER_NUMBER_staggered) parts.start[TB_GPU_KERNEL_SOLVE] = kernels->staggered;
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
STAGES_OF(warp)
STAGES_OF(pile)
STAGES_OF(wide)
#define STAGES(part) tb_gpu_stages_##part, tb_gpu_stages_##part##_f32,

static void print_stages(const tb_gpu_launch *next, cudaStream_t stream)
{
    static const char *const NAMES[] = {"arrays", "motion", "mass",     "begin", "rows",
                                        "broad",  "narrow", "contacts", "solve", "end"};
    stages_function *const takes[] = {TB_GPU_START_PARTS(STAGES) STAGES(staggered) STAGES(alone)
                                          STAGES(warp) STAGES(pile) STAGES(wide)};
    unsigned long long sums[TB_STAGE_SUMS] = {0};
    if (takes[0] == NULL) return;
    (void)cudaStreamSynchronize(stream);
    for (size_t i = 0; i < sizeof takes / sizeof *takes; i++)
        if (takes[i] != NULL) takes[i](sums);
    const unsigned long long steps = sums[TB_STAGE_SUMS - 1];
    if (steps == 0) return;
    fprintf(stderr, "cycles a step, next %d worlds x %d lanes:", (int)next->number_of_worlds,
            (int)next->lanes[TB_GPU_KERNEL_SOLVE]);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        fprintf(stderr, " %s %llu", NAMES[i], sums[i] / steps);
    fprintf(stderr, " (%llu steps)\n", steps);
}

/* A failure after a kernel has begun leaves an unknown set of worlds between two steps: it counts as
 * the loss of the card. */
static cudaError_t beyond_first(cudaError_t result, bool begun)
{
    return begun && result != cudaSuccess ? cudaErrorLaunchFailure : result;
}

static cudaError_t start_parts(const tb_gpu_launch *launch, start_function *const *parts, int first,
                               int end, cudaStream_t stream)
{
    cudaError_t result = cudaSuccess;
    for (int part = first; part < end && result == cudaSuccess; part++) {
        result = beyond_first(parts[part](launch, stream), part > first);
        if (part == TB_GPU_KERNEL_DETECT && launch->wide && result == cudaSuccess)
            result = beyond_first(parts[WIDE](launch, stream), true);
    }
    return result;
}

/* Launches as many worlds as find room on the card at once, with all their steps, then the next ones. */
static cudaError_t start_in_turns(const tb_gpu_launch *whole, start_function *const *parts,
                                  cudaStream_t stream)
{
    cudaError_t result = cudaSuccess;
    tb_gpu_launch launch = *whole;
    for (; launch.first < whole->number_of_worlds; launch.first += whole->slots)
        for (launch.step = 0; launch.step < whole->steps && result == cudaSuccess; launch.step++)
            result = beyond_first(start_parts(&launch, parts, 0, TB_GPU_KERNELS, stream),
                                  launch.first + launch.step > 0);
    return result;
}

/* ---- solves that overlap ---- */

static tb_gpu_launch group_of(const tb_gpu_launch *whole, int32_t group)
{
    enum { UNIT = TB_GPU_BLOCK_THREADS }; /* worlds of whole blocks, whatever their lanes */
    tb_gpu_launch own = *whole;
    const int32_t all = whole->number_of_worlds, groups = whole->groups;
    const int32_t size = (all + groups * UNIT - 1) / (groups * UNIT) * UNIT;
    own.first = group * size < all ? group * size : all;
    own.slots = all - own.first < size ? all - own.first : size;
    own.arenas += (size_t)own.first * whole->arena_size;
    if (whole->searches_beside) own.searches += (size_t)own.first * whole->arena_size;
    own.counts += group * TB_GPU_GROUP_COUNTS;
    if (whole->kinds != NULL) {
        own.kinds += group * TB_GPU_GROUP_COUNTS;
        own.order += own.first;
    }
    return own;
}

/* One step of a group. */
static cudaError_t start_step(const tb_gpu_launch *launch, start_function *const *parts,
                              const tb_gpu_side_streams *side_streams, int32_t stream_index,
                              cudaStream_t stream)
{
    const int32_t worlds = TB_GPU_BLOCK_THREADS / launch->lanes[TB_GPU_KERNEL_SOLVE];
    const int32_t blocks = (launch->slots + worlds - 1) / worlds;
    cudaError_t result = start_parts(launch, parts, 0, TB_GPU_KERNEL_SOLVE, stream);
    if (result != cudaSuccess) return result;
    result = tb_gpu_side_stream_begin(side_streams, stream_index, stream);
    if (result == cudaSuccess)
        result = parts[TB_GPU_KERNEL_SOLVE](launch, side_streams->streams[stream_index]);
    if (result == cudaSuccess)
        result = tb_gpu_start_solve_barrier(launch, (launch->step + 1) * blocks, stream);
    if (result == cudaSuccess)
        result = start_parts(launch, parts, TB_GPU_KERNEL_END, TB_GPU_KERNELS, stream);
    return beyond_first(result, true);
}

/* Makes later work on the stream wait for all groups and all their solves. */
static cudaError_t join_groups(const tb_gpu_launch *whole, int32_t own_streams,
                               const tb_gpu_side_streams *side_streams, cudaStream_t stream)
{
    const int32_t used = whole->steps < own_streams ? whole->steps : own_streams;
    cudaError_t result = cudaSuccess;
    for (int32_t g = 0; g < whole->groups; g++) {
        for (int32_t s = 0; s < used && result == cudaSuccess; s++)
            result = tb_gpu_side_stream_join(side_streams, g * own_streams + s, stream);
        if (g > 0 && result == cudaSuccess)
            result = tb_gpu_side_stream_join(side_streams, TB_GPU_SOLVE_STREAMS + g - 1, stream);
    }
    return result;
}

/* Ends the steps whose solves the last launches have left: paused ones of wide worlds, which pause no
 * more now, then what those leave to the general solvers. */
static cudaError_t end_steps(const tb_gpu_launch *whole, start_function *const *parts,
                             cudaStream_t stream)
{
    tb_gpu_launch last = *whole;
    last.overlap = 0;
    last.kinds = NULL;
    cudaError_t result = whole->wide ? parts[WIDE](&last, stream) : cudaSuccess;
    if (whole->wide && result == cudaSuccess) result = parts[TB_GPU_KERNEL_SOLVE](&last, stream);
    return result == cudaSuccess ? parts[TB_GPU_KERNEL_END](&last, stream) : result;
}

/* A group's steps come one after the other, its solves each on the next of its streams. */
static cudaError_t start_overlapping(const tb_gpu_launch *whole, start_function *const *parts,
                                     const tb_gpu_side_streams *side_streams, cudaStream_t stream)
{
    const int32_t groups = whole->groups, own_streams = TB_GPU_SOLVE_STREAMS / groups;
    tb_gpu_launch own[TB_GPU_GROUPS];
    cudaStream_t streams[TB_GPU_GROUPS] = {stream};
    cudaError_t result = cudaSuccess;
    for (int32_t g = 0; g < groups; g++) own[g] = group_of(whole, g);
    for (int32_t g = 1; g < groups && result == cudaSuccess; g++) {
        streams[g] = side_streams->streams[TB_GPU_SOLVE_STREAMS + g - 1];
        result = tb_gpu_side_stream_begin(side_streams, TB_GPU_SOLVE_STREAMS + g - 1, stream);
    }
    for (int32_t step = 0; step < whole->steps; step++) {
        for (int32_t g = 0; g < groups && result == cudaSuccess; g++) {
            own[g].step = step;
            result = beyond_first(start_step(&own[g], parts, side_streams,
                                             g * own_streams + step % own_streams, streams[g]),
                                  step + g > 0);
        }
    }

    /* the last of the solves, and the steps that they belong to */
    if (result == cudaSuccess)
        result = beyond_first(join_groups(whole, own_streams, side_streams, stream), true);
    if (result == cudaSuccess) result = beyond_first(end_steps(whole, parts, stream), true);
    /* after a failure no caller waits for started kernels, and their memory is used again */
    if (result != cudaSuccess) tb_gpu_side_streams_wait(side_streams);
    return result;
}

/* ---- small worlds and piles ---- */

/* As many worlds at a time as there are arenas. */
static cudaError_t start_warps(const tb_gpu_launch *whole, start_function *kernel,
                               cudaStream_t stream)
{
    cudaError_t result = cudaSuccess;
    tb_gpu_launch own = *whole;
    for (; own.first < own.number_of_worlds && result == cudaSuccess; own.first += own.slots)
        result = beyond_first(kernel(&own, stream), own.first > 0);
    return result;
}

static cudaError_t start_steps(const tb_gpu_launch *launch, const tb_gpu_side_streams *side_streams,
                               const step_kernels *kernels, cudaStream_t stream)
{
    print_stages(launch, stream);
    const launch_parts parts = parts_of(kernels, launch->solver);
    if (launch->alone == TB_GPU_ALONE_BY_WARP) return start_warps(launch, kernels->warp, stream);
    if (launch->alone == TB_GPU_ALONE_BY_PILE) return start_warps(launch, kernels->pile, stream);
    if (launch->alone) return kernels->alone(launch, stream);
    return launch->overlap > 0 ? start_overlapping(launch, parts.start, side_streams, stream)
                               : start_in_turns(launch, parts.start, stream);
}

/* A launch of no worlds for each number of lanes that a world can have. */
static cudaError_t warm_steps(const step_kernels *kernels, cudaStream_t stream)
{
    cudaError_t result = cudaSuccess;
    for (int32_t lanes = 1; lanes <= TB_GPU_BLOCK_THREADS; lanes *= 2) {
        tb_gpu_launch launch = {.slots = 1};
        for (int part = 0; part < TB_GPU_KERNELS; part++) launch.lanes[part] = lanes;
        for (int part = 0; part < TB_GPU_KERNELS && result == cudaSuccess; part++)
            result = kernels->parts[part](&launch, stream);
        if (result == cudaSuccess) result = kernels->staggered(&launch, stream);
        if (result == cudaSuccess) result = kernels->alone(&launch, stream);
        if (result == cudaSuccess && lanes == TB_GPU_BLOCK_THREADS && kernels->warp != NULL)
            result = kernels->warp(&launch, stream);
        if (result == cudaSuccess && lanes == TB_GPU_BLOCK_THREADS && kernels->pile != NULL)
            result = kernels->pile(&launch, stream);
        if (result == cudaSuccess && lanes == TB_GPU_BLOCK_THREADS && kernels->wide != NULL)
            result = kernels->wide(&launch, stream);
        if (result == cudaSuccess) result = tb_gpu_start_solve_barrier(&launch, 0, stream);
    }
    return result;
}

cudaError_t tb_gpu_start_steps(const tb_gpu_launch *launch, const tb_gpu_side_streams *side_streams,
                               cudaStream_t stream)
{
    return start_steps(launch, side_streams, &IN_DOUBLE, stream);
}

cudaError_t tb_gpu_start_steps_f32(const tb_gpu_launch *launch,
                                   const tb_gpu_side_streams *side_streams, cudaStream_t stream)
{
    return start_steps(launch, side_streams, &IN_FLOAT, stream);
}

cudaError_t tb_gpu_warm_steps(cudaStream_t stream)
{
    return warm_steps(&IN_DOUBLE, stream);
}

cudaError_t tb_gpu_warm_steps_f32(cudaStream_t stream)
{
    return warm_steps(&IN_FLOAT, stream);
}
