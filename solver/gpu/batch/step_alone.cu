/* All parts of the step, and all steps of a launch, for few worlds: none waits for another one. With
 * many worlds this loses, since warps that run different parts crowd each other's code out of the
 * caches. See step_part.h. */
#define KERNEL_NAME   tb_gpu_step_alone
#define KERNEL_START  tb_gpu_start_alone
#define KERNEL_STAGES tb_gpu_stages_alone
#include "gpu/batch/step_part.h"

#include "gpu/device/launch_time.h"

/* Whether the host wants the launch to end, the same for all lanes. */
TB_STATIC bool is_stopped(const tb_gpu_launch *launch)
{
    int32_t stop = 0;
    if (launch->stop == NULL) return false;
    if (TB_LEADER) stop = *launch->stop;
    tb_team_share(&stop, sizeof stop);
    return stop != 0;
}

/* Makes all steps of a world, or as many until the launch is over: one at least. */
TB_STATIC void go_alone(const tb_gpu_launch *launch, int32_t slot)
{
    tb_gpu_world *world = &launch->worlds[launch->first + slot];
    saved_step *saved = saved_step_of(launch, slot);
    shared_step *shared = shared_step_of_team();
    if (TB_LEADER) {
        world->status = TB_OK;
        world->contacts_needed = 0;
        world->arena_needed = 0;
    }
    tb_team_sync();
    const unsigned long long end = end_of_launch(launch);
    for (int32_t left = launch->steps; left > 0 && world->steps_left > 0 &&
                                       world->status == TB_OK && !is_sparse(launch, world);
         left--) {
        tb_certificate certificate;
        TB_STAGES_BEGIN();
        load_new_step(launch, world, saved, shared);
        tb_status status = begin_step(shared, launch, world, &certificate);
        if (status == TB_OK) status = tb_step_detect(&shared->stepping, &certificate, NULL);
        if (status == TB_OK) status = tb_step_solve(&shared->stepping, NULL);
        if (status == TB_OK) status = tb_step_end(&shared->stepping, &certificate, NULL);
        end_step(launch, world, status, shared->workspace.arena.peak, &certificate);
        if (is_stopped(launch) || is_over(end)) return;
    }
}

STEP_KERNEL(TB_GPU_BLOCKS_AT_ONCE)
{
    const int32_t slot = slot_of_team();
    if (is_slot(&launch, slot)) go_alone(&launch, slot);
}

STEP_START(launch->lanes[TB_GPU_KERNEL_BEGIN], 1,
           shared_bytes_of_block((size_t)worlds, (size_t)launch->fast))
