/* The step on a card: a team of lanes takes one world from collision to integration, all its steps in
 * one launch. Compiled twice, as double and with TB_SINGLE as float.
 *
 * A block is one warp of one team or several (base/team.h). Whatever a world does is done by its own
 * team with its own memory, in an order that does not depend on how many lanes there are, so its
 * bytes cannot depend on its neighbours, its place in the batch or the size of the launch. */
#include "gpu/stages.h"
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
    int32_t steps_left = world->steps_left;
    tb_status status = TB_OK;
    if (TB_LEADER) world->contacts_needed = 0, world->arena_needed = 0;
    TB_STAGES_BEGIN();
    while (steps_left > 0) {
        tb_certificate certificate;
        if (TB_LEADER) choose_next(world);
        tb_team_sync();
        status = tb_world_step(&world->state, &launch->options, &workspace, &certificate, NULL);
        if (status == TB_RESOURCE_EXHAUSTED) {
            if (TB_LEADER) world->contacts_needed = world->state.next_wanted;
            if (TB_LEADER && workspace.arena.peak > launch->arena_size)
                world->arena_needed = workspace.arena.peak;
            break;
        }
        if (TB_LEADER) tb_certificate_add(&world->merged, &certificate);
        steps_left = status == TB_OK ? steps_left - 1 : 0;
    }
    if (TB_LEADER) world->status = status, world->steps_left = steps_left;
}

#define step_worlds TB_SYMBOL(tb_gpu_step_worlds)
extern "C" __global__ void __launch_bounds__(TB_GPU_BLOCK_THREADS, TB_GPU_BLOCKS_AT_ONCE)
    step_worlds(const __grid_constant__ tb_gpu_launch launch)
{
    const int32_t slot = (int32_t)(blockIdx.x * blockDim.y + threadIdx.y);
    if (slot >= launch.slots) return;
    for (int32_t i = slot; i < launch.number_of_worlds; i += launch.slots)
        step_world(&launch, &launch.worlds[i], slot);
}

extern "C" cudaError_t TB_SYMBOL(tb_gpu_start_steps)(const tb_gpu_launch *launch,
                                                     cudaStream_t stream)
{
    const int32_t worlds = TB_GPU_BLOCK_THREADS / launch->lanes;
    const unsigned blocks = (unsigned)((launch->slots + worlds - 1) / worlds);
    TB_STAGES_PRINT(launch, stream);
    step_worlds<<<blocks, dim3((unsigned)launch->lanes, (unsigned)worlds), 0, stream>>>(*launch);
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
    for (int32_t lanes = 1; lanes <= TB_GPU_BLOCK_THREADS && result == cudaSuccess; lanes *= 2) {
        tb_gpu_launch launch = {};
        launch.slots = launch.lanes = lanes;
        result = TB_SYMBOL(tb_gpu_start_steps)(&launch, stream);
    }
    return result;
}
