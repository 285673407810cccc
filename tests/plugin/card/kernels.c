/* The kernels of the GPU backend, played: the step is the one that cards run, compiled for the
 * processor (tests/unit/gpu/device_world.cc), in the memory and with the capacities of the card. The
 * whole step runs in the launch of a card's solve; the other parts move a world's stage on, as they
 * do there (solver/gpu/batch/step_kernel.h). So the order of the launches, their groups and the
 * counts of barriers are those of solver/gpu/batch/steps.c.
 *
 *   TRIBO_TEST_FAIL=n   the n-th kernel of steps from now on cannot be launched
 *   TRIBO_TEST_STOP=n   the n-th question of a launch, whether it is to end, ends it, as if the
 *                       caller had given up meanwhile
 *   TRIBO_TEST_OVER=n   a launch that takes its worlds through many steps is over after n steps of all of
 *                       them; on a card a clock ends it (solver/gpu/device/launch_time.h) */
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

/* Where solves overlap: solves of more iterations outlast this many steps of the others. */
enum { LONG_SOLVE = 10, STEPS_OF_OTHERS = 3 };

/* At the beginning of a world's arena: its next part, the steps of others that its solve still takes,
 * and the model whose tables a launch of small worlds left there, NULL after all others. */
typedef struct saved_step {
    int32_t stage, rest;
    const tb_model *tables_of;
    tb_certificate certificate;
} saved_step;
enum { SAVED_STEP_BYTES = 256 };
_Static_assert(sizeof(saved_step) <= SAVED_STEP_BYTES, "room for the saved step between two parts");

static saved_step *saved_step_of(const tb_gpu_launch *launch, int32_t slot)
{
    return (saved_step *)(void *)(launch->arenas + (size_t)slot * launch->arena_size);
}

/* ---- a world ---- */

static tb_status make_step(const tb_gpu_launch *launch, tb_gpu_world *world, saved_step *saved,
                           step_function *step)
{
    tb_state *state = &world->state;
    device_job job = {.state = state,
                      .options = &launch->options,
                      .course = world->course.steps > 0 ? &world->course : NULL,
                      .step = world->course.steps - world->steps_left,
                      .solver = launch->solver,
                      .memory = (unsigned char *)saved + SAVED_STEP_BYTES,
                      .bytes = launch->arena_size - SAVED_STEP_BYTES};
    const int other = state->contacts == world->contacts[0];
    state->next_contacts = world->contacts[other];
    state->next_capacity = world->contact_capacity;
    state->next_wanted = 0;
    world->status = step(&job, &saved->certificate);
    if (world->status == TB_RESOURCE_EXHAUSTED) {
        world->contacts_needed = state->next_wanted;
        if (job.wanted + SAVED_STEP_BYTES > launch->arena_size)
            world->arena_needed = job.wanted + SAVED_STEP_BYTES;
    }
    return world->status;
}

static void end_step(tb_gpu_world *world, const saved_step *saved)
{
    if (world->status == TB_RESOURCE_EXHAUSTED) return;
    tb_certificate_add(&world->merged, &saved->certificate);
    world->steps_left = world->status == TB_OK ? world->steps_left - 1 : 0;
}

static void begin_world(tb_gpu_world *world)
{
    world->status = TB_OK;
    world->contacts_needed = 0;
    world->arena_needed = 0;
}

static bool goes_on(const tb_gpu_launch *launch, const tb_gpu_world *world)
{
    return world->status == TB_OK && world->steps_left > 0 &&
           (launch->crowded == 0 || world->state.number_of_contacts > launch->crowded);
}

static int questions; /* of the launch, whether it is to end */

/* Whether the launch is to end. A real card's host says so while the kernel runs; here a question
 * itself can make it say so. */
static bool is_stopped(const tb_gpu_launch *launch)
{
    const char *text = getenv("TRIBO_TEST_STOP");
    if (launch->stop == NULL) return false;
    if (text != NULL && ++questions == atoi(text)) *(volatile int32_t *)(uintptr_t)launch->stop = 1;
    return *launch->stop != 0;
}

/* Whether the launch has lasted as long as one may. */
static bool is_over(const tb_gpu_launch *launch)
{
    const char *text = getenv("TRIBO_TEST_OVER");
    return text != NULL && launch->counts[0]++ >= atoi(text);
}

/* ---- kernels ---- */

typedef struct kernel {
    tb_gpu_launch launch;
    step_function *step;
    int32_t kernel_index; /* TB_GPU_KERNELS: all steps of each world */
    bool last;            /* an end for which no solve goes on any longer */
} kernel;

static void play_kernel_of_world(const kernel *k, tb_gpu_world *world, saved_step *saved)
{
    const tb_gpu_launch *launch = &k->launch;
    if (k->kernel_index == TB_GPU_KERNEL_BEGIN && launch->step == 0) {
        begin_world(world);
        saved->stage = TB_GPU_KERNEL_BEGIN;
    }
    if (saved->stage != k->kernel_index) return;
    switch (k->kernel_index) {
    case TB_GPU_KERNEL_BEGIN:
        saved->stage += goes_on(launch, world) && (launch->step == 0 || !is_stopped(launch));
        break;
    case TB_GPU_KERNEL_DETECT: saved->stage++; break;
    case TB_GPU_KERNEL_SOLVE:
        saved->stage++;
        saved->rest = 0;
        (void)make_step(launch, world, saved, k->step);
        if (launch->overlap > 0 && saved->certificate.iterations > LONG_SOLVE)
            saved->rest = STEPS_OF_OTHERS;
        break;
    default:
        if (saved->rest-- > 0 && !k->last) return;
        end_step(world, saved);
        saved->stage = TB_GPU_KERNEL_BEGIN;
    }
}

static bool is_by_warps(const tb_gpu_launch *l)
{
    return l->alone == TB_GPU_ALONE_BY_WARP || l->alone == TB_GPU_ALONE_BY_PILE;
}

/* The slot of a block. */
static int32_t slot_of(const tb_gpu_launch *l, int32_t block)
{
    return is_by_warps(l) && l->order != NULL ? l->order[block] : block;
}

/* A world that an earlier launch of warps has left waits for the host. */
static void play_alone(const kernel *k, tb_gpu_world *world, saved_step *saved)
{
    const tb_gpu_launch *launch = &k->launch;
    const bool by_warps = is_by_warps(launch);
    if (!by_warps) begin_world(world);
    for (int32_t left = launch->steps; left > 0 && goes_on(launch, world); left--) {
        if (by_warps && is_over(launch)) return;
        (void)make_step(launch, world, saved, k->step);
        end_step(world, saved);
        if (is_stopped(launch) || (!by_warps && is_over(launch))) return;
    }
}

static bool is_slot(const tb_gpu_launch *l, int32_t slot)
{
    return slot < l->slots && l->first + slot < l->number_of_worlds;
}

static cudaError_t play_kernel(const kernel *k)
{
    const tb_gpu_launch *l = &k->launch;
    for (int32_t block = 0; is_slot(l, block); block++) {
        const int32_t slot = slot_of(l, block);
        saved_step *saved = saved_step_of(l, slot);
        saved->tables_of = NULL;
        (k->kernel_index == TB_GPU_KERNELS ? play_alone : play_kernel_of_world)(
            k, &l->worlds[l->first + slot], saved);
    }
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

/* of the calling thread: a solve barrier was its last launch */
static _Thread_local bool gated;

static cudaError_t start(const tb_gpu_launch *launch, cudaStream_t stream, int32_t kernel_index,
                         step_function *step)
{
    const kernel k = {*launch, step, kernel_index, !gated};
    cudaError_t result = played_use(stream);
    if (result == cudaSuccess && fails()) result = cudaErrorInvalidValue;
    if (result != cudaSuccess) return result;
    const bool first = kernel_index == TB_GPU_KERNELS || (kernel_index == TB_GPU_KERNEL_BEGIN &&
                                                          launch->step == 0 && launch->first == 0);
    if (first) {
        questions = 0;
        played_count_launch();
        played_launch();
    }
    gated = false;
    if (kernel_index == TB_GPU_KERNEL_SOLVE && launch->overlap > 0) {
        const int32_t worlds = TB_GPU_BLOCK_THREADS / launch->lanes[kernel_index];
        launch->counts[TB_GPU_BEGUN] += (launch->slots + worlds - 1) / worlds;
    }
    return play_kernel(&k);
}

#define START(name, kernel_index)                                                                  \
    cudaError_t tb_gpu_start_##name(const tb_gpu_launch *launch, cudaStream_t stream)              \
    {                                                                                              \
        return start(launch, stream, kernel_index, device_world_step);                             \
    }                                                                                              \
    cudaError_t tb_gpu_start_##name##_f32(const tb_gpu_launch *launch, cudaStream_t stream)        \
    {                                                                                              \
        return start(launch, stream, kernel_index, device_world_step_f32);                         \
    }
START(begin, TB_GPU_KERNEL_BEGIN)
START(detect, TB_GPU_KERNEL_DETECT)
START(solve, TB_GPU_KERNEL_SOLVE)
START(end, TB_GPU_KERNEL_END)
START(staggered, TB_GPU_KERNEL_SOLVE)
START(alone, TB_GPU_KERNELS)

/* A launch of small worlds or of piles may only use tables that stand in the arena of each world. */
static cudaError_t start_warps(const tb_gpu_launch *launch, cudaStream_t stream)
{
    const tb_gpu_world *worlds = launch->worlds + launch->first;
    for (int32_t block = 0; launch->tables_stand && is_slot(launch, block); block++) {
        const int32_t slot = slot_of(launch, block);
        if (saved_step_of(launch, slot)->tables_of == worlds[slot].state.model) continue;
        fprintf(stderr, "world %d of a launch has no tables of its model\n", (int)slot);
        abort();
    }
    const cudaError_t result = start(launch, stream, TB_GPU_KERNELS, device_world_step_f32);
    for (int32_t block = 0; result == cudaSuccess && is_slot(launch, block); block++) {
        const int32_t slot = slot_of(launch, block);
        saved_step_of(launch, slot)->tables_of = worlds[slot].state.model;
    }
    if (launch->number_of_worlds > 0 && !launch->tables_stand) played_count_tables();
    return result;
}

/* float alone */
cudaError_t tb_gpu_start_warp_f32(const tb_gpu_launch *launch, cudaStream_t stream)
{
    return start_warps(launch, stream);
}

cudaError_t tb_gpu_start_pile_f32(const tb_gpu_launch *launch, cudaStream_t stream)
{
    return start_warps(launch, stream);
}

/* Takes no solve of a wide world, so that the next launch makes it. */
cudaError_t tb_gpu_start_wide_f32(const tb_gpu_launch *launch, cudaStream_t stream)
{
    (void)launch;
    return played_use(stream);
}

/* On a card a solve barrier that counts wrongly opens too early, or never. */
cudaError_t tb_gpu_start_solve_barrier(const tb_gpu_launch *launch, int32_t begun,
                                       cudaStream_t stream)
{
    const cudaError_t result = played_use(stream);
    if (result != cudaSuccess) return result;
    if (begun > 0 && launch->counts[TB_GPU_BEGUN] != begun) {
        fprintf(stderr, "a solve barrier waits for %d blocks, %d have begun\n", begun,
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
