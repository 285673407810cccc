/* The solve of a step of worlds with up to 36 dofs, in float: a warp takes a world. A world that it does
 * not take, or whose answer needs more, is left to step_solve.cu, which comes next. See
 * step_part.h and wide/wide_solve.h. */
#define KERNEL_NAME   tb_gpu_step_wide
#define KERNEL_START  tb_gpu_start_wide
#define KERNEL_STAGES tb_gpu_stages_wide
#define TB_UNIT_WIDE
#include "gpu/batch/step_part.h"

#include "gpu/batch/wide/wide_step.h"

/* The stage of a world whose solve is paused; no other kernel takes the world. */
enum { STAGE_PAUSED = STAGE_ENDED + 1 };

/* Room of a paused solve at the end of a world's memory, and bytes that a solve takes from its arena at
 * most. */
enum {
    PAUSE_BYTES =
        (sizeof(wide_pause) + TB_ARENA_ALIGNMENT - 1) / TB_ARENA_ALIGNMENT * TB_ARENA_ALIGNMENT,
    SOLVE_BYTES = 16384
};

TB_STATIC wide_pause *pause_of(const tb_gpu_launch *launch, saved_step *saved)
{
    return (wide_pause *)((unsigned char *)saved +
                          launch->arena_size / TB_ARENA_ALIGNMENT * TB_ARENA_ALIGNMENT -
                          PAUSE_BYTES);
}

/* Solves pause where launches overlap, so that another launch follows. */
TB_STATIC bool may_pause(const tb_gpu_launch *launch, size_t used)
{
    return launch->overlap > 0 &&
           SAVED_STEP_BYTES + used + SOLVE_BYTES + PAUSE_BYTES <= launch->arena_size;
}

/* The stage of a world, the same for all lanes. */
TB_STATIC int32_t stage_of(const saved_step *saved)
{
    int32_t stage = 0;
    if (TB_LEADER) stage = __ldcg(&saved->stage);
    tb_team_share(&stage, sizeof stage);
    return stage;
}

TB_STATIC void solve_wide(const tb_gpu_launch *launch, int32_t slot)
{
    saved_step *saved = saved_step_of(launch, slot);
    shared_step *shared = shared_step_of_team();
    size_t bytes;
    wide_solve *solve = (wide_solve *)tb_team_fast(&bytes);
    TB_STAGES_BEGIN();
    const int32_t stage = stage_of(saved);
    const bool resumes = stage == (int32_t)STAGE_PAUSED;
    if (!resumes && stage != (int32_t)TB_GPU_KERNEL_SOLVE) return;
    load_step(launch, saved, shared);
    const bool pauses = may_pause(launch, shared->workspace.arena.used);
    const wide_slice slice = {pause_of(launch, saved), resumes, pauses ? (int32_t)WIDE_SLICE : 0};
    const wide_outcome outcome = wide_step_solve(&shared->stepping, solve, &slice);
    TB_STAGE_DONE(TB_STAGE_SOLVE);
    if (outcome == WIDE_LEFT) return; /* the saved step is as it was */
    save_step(saved, shared);
    tb_team_sync();
    if (!TB_LEADER) return;
    saved->stage = outcome == WIDE_DONE    ? (int32_t)TB_GPU_KERNEL_END
                   : outcome == WIDE_BEGUN ? (int32_t)STAGE_PAUSED
                                           : (int32_t)TB_GPU_KERNEL_SOLVE;
}

/* Blocks that find room on a processor by their shared memory. */
enum { WIDE_AT_ONCE = 12 };

STEP_KERNEL(WIDE_AT_ONCE)
{
    const int32_t slot = slot_at(&launch, launch.slots - 1 - slot_of_team());
    if (is_slot(&launch, slot)) solve_wide(&launch, slot);
}

extern "C" cudaError_t KERNEL_SYMBOL(KERNEL_START)(const tb_gpu_launch *launch, cudaStream_t stream)
{
    const size_t bytes = shared_bytes_of_team(sizeof(wide_solve));
    step_kernel<<<(unsigned)launch->slots, dim3(TB_GPU_BLOCK_THREADS, 1), bytes, stream>>>(*launch);
    return cudaGetLastError();
}
