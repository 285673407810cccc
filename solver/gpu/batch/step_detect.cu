/* A part of the step: contacts and their rows. It also gives each solve its place in the order of
 * kinds. See step_part.h. */
#define KERNEL_NAME   tb_gpu_step_detect
#define KERNEL_START  tb_gpu_start_detect
#define KERNEL_STAGES tb_gpu_stages_detect
#include "gpu/batch/step_part.h"

TB_STATIC void detect_contacts(const tb_gpu_launch *launch, int32_t slot)
{
    tb_gpu_world *world = &launch->worlds[launch->first + slot];
    saved_step *saved = saved_step_of(launch, slot);
    shared_step *shared = shared_step_of_team();
    tb_certificate certificate;
    TB_STAGES_BEGIN();
    if (!is_before_part(saved, TB_GPU_KERNEL_DETECT)) return;
    load_step(launch, saved, shared);
    if (launch->searches_beside && TB_LEADER)
        shared->stepping.world.found = (const tb_found *)(void *)search_memory_of(launch, slot);
    tb_team_sync();
    const tb_status status = tb_step_detect(&shared->stepping, &certificate, NULL);
    leave_part(launch, world, saved, shared, TB_GPU_KERNEL_DETECT, status, &certificate);
}

/* Places a solve behind all solves of the kinds before its own. */
TB_STATIC void take_rank(const tb_gpu_launch *launch, int32_t slot)
{
    if (!is_ordered(launch) || slot >= launch->slots) return;
    const saved_step *saved = saved_step_of(launch, slot);
    int32_t own = 0, before = 0;
    TB_EACH (k, saved->kind) own += launch->kinds[k];
    (void)tb_team_before(own, &before);
    if (TB_LEADER) launch->order[before + saved->rank] = slot;
}

STEP_KERNEL(TB_GPU_BLOCKS_AT_ONCE)
{
    const int32_t slot = slot_of_team();
    if (is_slot(&launch, slot)) detect_contacts(&launch, slot);
    take_rank(&launch, slot);
}

STEP_START(launch->lanes[TB_GPU_KERNEL_DETECT], 1, shared_bytes_of_block((size_t)worlds, 0))
