/* The solve of a step as a kernel, for step_solve.cu and step_staggered.cu: in the order of kinds, and
 * beside the launches that follow. A block that has begun takes no more worlds. */
#include "gpu/batch/step_part.h"

/* Takes a world whose next part is its solve, so that no other launch has it; the same for all
 * lanes. */
TB_STATIC bool take_solve(saved_step *saved)
{
    int32_t stage = TB_GPU_KERNEL_SOLVE;
    if (TB_LEADER)
        stage = atomicCAS(&saved->stage, (int32_t)TB_GPU_KERNEL_SOLVE, (int32_t)STAGE_IN_SOLVE);
    tb_team_share(&stage, sizeof stage);
    return stage == TB_GPU_KERNEL_SOLVE;
}

TB_STATIC void solve_world(const tb_gpu_launch *launch, int32_t slot)
{
    tb_gpu_world *world = &launch->worlds[launch->first + slot];
    saved_step *saved = saved_step_of(launch, slot);
    shared_step *shared = shared_step_of_team();
    tb_certificate certificate;
    TB_STAGES_BEGIN();
    load_step(launch, saved, shared);
    tb_lane_clear(&certificate, sizeof certificate);
    const tb_status status = tb_step_solve(&shared->stepping, NULL);
    record_divergence(world, status, &certificate);
    save_step(saved, shared);
    __threadfence();
    tb_team_sync(); /* every lane has read the fields that are written below */
    if (!TB_LEADER) return;
    if (status != TB_OK)
        end_world(launch, world, status, shared->workspace.arena.peak, &certificate);
    /* from here on another launch may take the world */
    __threadfence();
    atomicExch(&saved->stage, stage_after(TB_GPU_KERNEL_SOLVE, status));
}

/* ---- solves in order ---- */

/* Clears the counts of kinds for the next step. */
TB_STATIC void clear_kinds(const tb_gpu_launch *launch, int32_t slot)
{
    if (!is_ordered(launch) || slot > 0) return;
    TB_EACH (k, TB_GPU_KINDS) launch->kinds[k] = 0;
}

/* ---- solves that overlap ---- */

/* Counts this block, after all writes of the block so far. */
TB_STATIC void count_block(const tb_gpu_launch *launch, int which)
{
    if (launch->overlap == 0) return;
    __threadfence();
    __syncwarp();
    if (threadIdx.x == 0 && threadIdx.y == 0) atomicAdd(&launch->counts[which], 1);
}

STEP_KERNEL(TB_GPU_BLOCKS_AT_ONCE)
{
    const int32_t slot = slot_of_team(), own = slot_at(&launch, slot);
    const bool taken = is_slot(&launch, own) && take_solve(saved_step_of(&launch, own));
    clear_kinds(&launch, slot);
    /* a block that has begun takes no more worlds: the next launch may find them at any stage */
    count_block(&launch, TB_GPU_BEGUN);
    if (taken) solve_world(&launch, own);
    count_block(&launch, TB_GPU_DONE);
}
