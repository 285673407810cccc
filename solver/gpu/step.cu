/* The step on a card: one lane takes one world from collision to integration, all its steps in one
 * launch. Compiled twice, as double and with TB_SINGLE as float.
 *
 * Whatever a world does is done by its own lane with its own memory, in the order of the CPU's step,
 * so its bytes cannot depend on its neighbours, its place in the batch or the size of the launch. */
#include "gpu/physics.h"

#include "gpu_internal.h"
#include "step/certificate.h"

/* Both blocks of contacts are the world's own; those that it came with are only read. So after each
 * step the block that was not just written is the next one to write. */
TB_STATIC void choose_next(tb_gpu_world *world)
{
    tb_state *state = &world->state;
    state->next_contacts =
        state->contacts == world->contacts[0] ? world->contacts[1] : world->contacts[0];
    state->next_capacity = world->contact_capacity;
    state->next_wanted = 0;
}

/* Takes a world through the steps that it has left. */
TB_STATIC void step_world(const tb_gpu_launch *launch, tb_gpu_world *world, int32_t slot)
{
    tb_workspace workspace;
    tb_arena_over(&workspace.arena, launch->arenas + (size_t)slot * launch->arena_size,
                  launch->arena_size);
    workspace.threads = 1;
    workspace.solver = launch->solver;
    world->status = TB_OK;
    world->contacts_needed = 0;
    world->arena_needed = 0;
    while (world->steps_left > 0) {
        tb_certificate certificate;
        choose_next(world);
        const tb_status status =
            tb_world_step(&world->state, &launch->options, &workspace, &certificate, NULL);
        world->status = status;
        if (status == TB_RESOURCE_EXHAUSTED) {
            world->contacts_needed = world->state.next_wanted;
            if (workspace.arena.peak > launch->arena_size)
                world->arena_needed = workspace.arena.peak;
            return;
        }
        tb_certificate_add(&world->merged, &certificate);
        world->steps_left = status == TB_OK ? world->steps_left - 1 : 0;
    }
}

#define step_worlds TB_SYMBOL(tb_gpu_step_worlds)
extern "C" __global__ void __launch_bounds__(TB_GPU_BLOCK_THREADS)
    step_worlds(const __grid_constant__ tb_gpu_launch launch)
{
    const int32_t lane = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    const int32_t slot = lane / launch.stride;
    if (slot >= launch.slots || lane % launch.stride != 0) return;
    for (int32_t i = slot; i < launch.number_of_worlds; i += launch.slots)
        step_world(&launch, &launch.worlds[i], slot);
}

extern "C" cudaError_t TB_SYMBOL(tb_gpu_start_steps)(const tb_gpu_launch *launch,
                                                     cudaStream_t stream)
{
    const int64_t lanes = (int64_t)launch->slots * launch->stride;
    const unsigned blocks = (unsigned)((lanes + TB_GPU_BLOCK_THREADS - 1) / TB_GPU_BLOCK_THREADS);
    step_worlds<<<blocks, TB_GPU_BLOCK_THREADS, 0, stream>>>(*launch);
    return cudaGetLastError();
}

extern "C" cudaError_t TB_SYMBOL(tb_gpu_measure_steps)(struct cudaFuncAttributes *attributes)
{
    return cudaFuncGetAttributes(attributes, (const void *)step_worlds);
}

/* A launch of no worlds for each number of lanes that a world can have. */
extern "C" cudaError_t TB_SYMBOL(tb_gpu_warm_steps)(cudaStream_t stream)
{
    cudaError_t result = cudaSuccess;
    for (int32_t stride = 1; stride <= TB_GPU_BLOCK_THREADS && result == cudaSuccess; stride *= 2) {
        tb_gpu_launch launch = {};
        launch.slots = launch.stride = stride;
        result = TB_SYMBOL(tb_gpu_start_steps)(&launch, stream);
    }
    return result;
}
