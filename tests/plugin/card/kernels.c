/* The kernels of the GPU backend, played: the step is the one that cards run, compiled for the
 * processor (tests/unit/gpu/device_world.cc), in the card's memory and with what fits there. It is made
 * whole where a card makes its solve; the other parts say where a world stands, as they do there
 * (solver/gpu/batch/step_part.h). So the order of the launches, their groups and what gates count are those
 * of solver/gpu/batch/steps.c.
 *
 *   TRIBO_TEST_FAIL=n   the n-th kernel of steps from now on cannot be launched */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../unit/gpu/device_world.h"
#include "gpu/device/gpu_internal.h"
#include "played.h"
#include "step/certificate.h"

typedef tb_status step_function(device_job *job, tb_certificate *certificate);

/* the float build of the same source */
step_function device_world_step_f32;

/* Where solves overlap: those of more iterations outlast so many steps of the others. */
enum { LONG_SOLVE = 10, STEPS_OF_OTHERS = 3 };

/* At the beginning of a world's arena: the part before which it stands, and how many steps of others
 * its solve still takes. */
typedef struct between {
    int32_t stands, rest;
    tb_certificate certificate;
} between;
enum { BETWEEN_BYTES = 256 };
_Static_assert(sizeof(between) <= BETWEEN_BYTES, "room for what stands between two parts");

static between *between_of(const tb_gpu_launch *launch, int32_t slot)
{
    return (between *)(void *)(launch->arenas + (size_t)slot * launch->arena_size);
}

/* ---- a world ---- */

static tb_status make_step(const tb_gpu_launch *launch, tb_gpu_world *world, between *kept,
                           step_function *step)
{
    tb_state *state = &world->state;
    device_job job = {.state = state,
                      .options = &launch->options,
                      .course = world->course.steps > 0 ? &world->course : NULL,
                      .step = world->course.steps - world->steps_left,
                      .solver = launch->solver,
                      .memory = (unsigned char *)kept + BETWEEN_BYTES,
                      .bytes = launch->arena_size - BETWEEN_BYTES};
    const int other = state->contacts == world->contacts[0];
    state->next_contacts = world->contacts[other];
    state->next_capacity = world->contact_capacity;
    state->next_wanted = 0;
    world->status = step(&job, &kept->certificate);
    if (world->status == TB_RESOURCE_EXHAUSTED) {
        world->contacts_needed = state->next_wanted;
        if (job.wanted + BETWEEN_BYTES > launch->arena_size)
            world->arena_needed = job.wanted + BETWEEN_BYTES;
    }
    return world->status;
}

static void end_step(tb_gpu_world *world, const between *kept)
{
    if (world->status == TB_RESOURCE_EXHAUSTED) return;
    tb_certificate_add(&world->merged, &kept->certificate);
    world->steps_left = world->status == TB_OK ? world->steps_left - 1 : 0;
}

static void begin_world(tb_gpu_world *world)
{
    world->status = TB_OK;
    world->contacts_needed = 0;
    world->arena_needed = 0;
}

static bool goes_on(const tb_gpu_world *world)
{
    return world->status == TB_OK && world->steps_left > 0;
}

/* ---- kernels ---- */

typedef struct kernel {
    tb_gpu_launch launch;
    step_function *step;
    int32_t part; /* TB_GPU_PARTS: all steps of each world */
    bool last;    /* an end for which no solve goes on any longer */
} kernel;

static void play_part(const kernel *k, tb_gpu_world *world, between *kept)
{
    const tb_gpu_launch *launch = &k->launch;
    if (k->part == TB_GPU_PART_BEGIN && launch->step == 0) {
        begin_world(world);
        kept->stands = TB_GPU_PART_BEGIN;
    }
    if (kept->stands != k->part) return;
    switch (k->part) {
    case TB_GPU_PART_BEGIN: kept->stands += goes_on(world); break;
    case TB_GPU_PART_DETECT: kept->stands++; break;
    case TB_GPU_PART_SOLVE:
        kept->stands++;
        kept->rest = 0;
        (void)make_step(launch, world, kept, k->step);
        if (launch->overlap > 0 && kept->certificate.iterations > LONG_SOLVE)
            kept->rest = STEPS_OF_OTHERS;
        break;
    default:
        if (kept->rest-- > 0 && !k->last) return;
        end_step(world, kept);
        kept->stands = TB_GPU_PART_BEGIN;
    }
}

static void play_alone(const kernel *k, tb_gpu_world *world, between *kept)
{
    begin_world(world);
    for (int32_t left = k->launch.steps; left > 0 && goes_on(world); left--) {
        (void)make_step(&k->launch, world, kept, k->step);
        end_step(world, kept);
    }
}

static cudaError_t play_kernel(const void *argument)
{
    const kernel *k = argument;
    const tb_gpu_launch *l = &k->launch;
    for (int32_t slot = 0; slot < l->slots && l->first + slot < l->number_of_worlds; slot++)
        (k->part == TB_GPU_PARTS ? play_alone : play_part)(k, &l->worlds[l->first + slot],
                                                           between_of(l, slot));
    return played_state();
}

/* Whether this launch is the one that is to fail. */
static bool fails(void)
{
    static _Atomic int left = -1;
    const char *text = getenv("TRIBO_TEST_FAIL");
    if (text == NULL)
        left = -1;
    else if (left < 0)
        left = atoi(text);
    return left > 0 && --left == 0;
}

/* of the calling thread: a gate was the last that it launched */
static _Thread_local bool gated;

static cudaError_t start(const tb_gpu_launch *launch, cudaStream_t stream, int32_t part,
                         step_function *step)
{
    const kernel k = {*launch, step, part, !gated};
    cudaError_t result = played_use(stream);
    if (result == cudaSuccess && fails()) result = cudaErrorInvalidValue;
    if (result != cudaSuccess) return result;
    const bool first = part == TB_GPU_PARTS ||
                       (part == TB_GPU_PART_BEGIN && launch->step == 0 && launch->first == 0);
    if (first && played_capture_of(stream) == NULL) played_count_launch();
    if (first) played_launch();
    gated = false;
    if (part == TB_GPU_PART_SOLVE && launch->overlap > 0) {
        const int32_t worlds = TB_GPU_BLOCK_THREADS / launch->lanes[part];
        launch->counts[TB_GPU_BEGUN] += (launch->slots + worlds - 1) / worlds;
    }
    return played_kept(stream, play_kernel, &k, sizeof k) ? cudaSuccess : play_kernel(&k);
}

#define START(name, part)                                                                          \
    cudaError_t tb_gpu_start_##name(const tb_gpu_launch *launch, cudaStream_t stream)              \
    {                                                                                              \
        return start(launch, stream, part, device_world_step);                                     \
    }                                                                                              \
    cudaError_t tb_gpu_start_##name##_f32(const tb_gpu_launch *launch, cudaStream_t stream)        \
    {                                                                                              \
        return start(launch, stream, part, device_world_step_f32);                                 \
    }
START(begin, TB_GPU_PART_BEGIN)
START(detect, TB_GPU_PART_DETECT)
START(solve, TB_GPU_PART_SOLVE)
START(end, TB_GPU_PART_END)
START(staggered, TB_GPU_PART_SOLVE)
START(alone, TB_GPU_PARTS)

/* On a card a gate that counts wrongly opens too early, or never. */
cudaError_t tb_gpu_start_gate(const tb_gpu_launch *launch, int32_t begun, cudaStream_t stream)
{
    const cudaError_t result = played_use(stream);
    if (result != cudaSuccess) return result;
    if (begun > 0 && launch->counts[TB_GPU_BEGUN] != begun) {
        fprintf(stderr, "a gate waits for %d blocks, %d have begun\n", begun,
                launch->counts[TB_GPU_BEGUN]);
        abort();
    }
    gated = true;
    return played_state();
}

cudaError_t tb_gpu_start_copies(const tb_gpu_copy *copies, int32_t count, cudaStream_t stream)
{
    (void)stream;
    played_count_launch();
    if (played_state() != cudaSuccess) return played_state();
    for (int32_t i = 0; i < count; i++)
        memcpy(copies[i].to, copies[i].from, (size_t)copies[i].bytes);
    return cudaSuccess;
}
