/* A part of the step: the way to the end of the step, its certificate, and the outputs of the course.
 * See step_part.h. */
#define KERNEL_NAME   tb_gpu_step_end
#define KERNEL_START  tb_gpu_start_end
#define KERNEL_STAGES tb_gpu_stages_end
#include "gpu/batch/step_part.h"

TB_STATIC void end_of_step(const tb_gpu_launch *launch, int32_t slot)
{
    tb_gpu_world *world = &launch->worlds[launch->first + slot];
    saved_step *saved = saved_step_of(launch, slot);
    shared_step *shared = shared_step_of_team();
    tb_certificate certificate;
    TB_STAGES_BEGIN();
    if (!is_before_part(saved, TB_GPU_KERNEL_END)) return;
    __threadfence(); /* the solve may have run beside this launch: its writes are read from here on */
    load_step(launch, saved, shared);
    const tb_status status = tb_step_end(&shared->stepping, &certificate, NULL);
    end_step(launch, world, status, shared->workspace.arena.peak, &certificate);
    if (TB_LEADER) saved->stage = stage_after(TB_GPU_KERNEL_END, status);
}

STEP_KERNEL(TB_GPU_BLOCKS_AT_ONCE)
{
    const int32_t slot = slot_of_team();
    if (is_slot(&launch, slot)) end_of_step(&launch, slot);
}

STEP_START(launch->lanes[TB_GPU_KERNEL_END], 1, shared_bytes_of_block((size_t)worlds, 0))
