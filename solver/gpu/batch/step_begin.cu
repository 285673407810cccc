/* A part of the step: dynamics, and the rows that are no contacts. It also counts the kinds of the
 * solves to come, so that step_solve.cu can start the long ones first. See step_part.h.
 *
 * Each world has a second team, in another block, that searches for the step's contacts meanwhile: it
 * finds the poses once more, and step_detect.cu begins with what it has found. */
#define KERNEL_NAME   tb_gpu_step_begin
#define KERNEL_START  tb_gpu_start_begin
#define KERNEL_STAGES tb_gpu_stages_begin
#include "gpu/batch/step_part.h"

/* The first world reads the host's word for all others: when thousands read it over the bus, this takes longer
 * than the part. */
TB_STATIC void pass_stop(const tb_gpu_launch *launch, int32_t slot)
{
    if (launch->stop == NULL || slot > 0 || !TB_LEADER) return;
    if (*launch->stop != 0) atomicExch(&launch->counts[TB_GPU_STOPPED], 1);
}

/* Whether the host wants the launch to end, the same for all lanes. */
TB_STATIC bool is_stopped(const tb_gpu_launch *launch)
{
    int32_t stop = 0;
    if (launch->stop == NULL) return false;
    if (TB_LEADER) stop = __ldcg(&launch->counts[TB_GPU_STOPPED]);
    tb_team_share(&stop, sizeof stop);
    return stop != 0;
}

TB_STATIC void begin_world(const tb_gpu_launch *launch, int32_t slot)
{
    tb_gpu_world *world = &launch->worlds[launch->first + slot];
    saved_step *saved = saved_step_of(launch, slot);
    shared_step *shared = shared_step_of_team();
    tb_certificate certificate;
    TB_STAGES_BEGIN();
    if (launch->step == 0 && TB_LEADER) {
        world->status = TB_OK;
        world->contacts_needed = 0;
        world->arena_needed = 0;
        saved->stage = TB_GPU_KERNEL_BEGIN;
    }
    tb_team_sync();
    if (!is_before_part(saved, TB_GPU_KERNEL_BEGIN) || world->status != TB_OK ||
        world->steps_left == 0 || is_sparse(launch, world) ||
        (launch->step > 0 && is_stopped(launch)))
        return;
    load_new_step(launch, world, saved, shared);
    const tb_status status = begin_step(shared, launch, world, &certificate);
    leave_part(launch, world, saved, shared, TB_GPU_KERNEL_BEGIN, status, &certificate);
}

/* ---- the search beside it ---- */

/* The kinematic bodies of the step that begins: the course's, which the other team is about to copy. */
TB_STATIC const double *kinematic_of(const tb_gpu_world *world)
{
    const tb_course *course = &world->course;
    if (course->steps == 0 || !course->kinematic) return world->state.kinematic;
    const int64_t numbers =
        TB_KINEMATIC_NUMBERS * (int64_t)world->state.model->number_of_kinematic_bodies;
    return course->kinematic + step_of_course(world) * numbers;
}

/* Also for worlds that begin no step now: the search changes nothing but its own memory. */
TB_STATIC void search_world(const tb_gpu_launch *launch, int32_t slot)
{
    tb_gpu_world *world = &launch->worlds[launch->first + slot];
    shared_step *shared = shared_step_of_team();
    unsigned char *memory = search_memory_of(launch, slot);
    tb_found found;
    TB_STAGES_BEGIN();
    if (world->steps_left == 0 || is_sparse(launch, world)) return;
    if (TB_LEADER) {
        tb_arena_over(&shared->workspace.arena, memory + FOUND_BYTES,
                      launch->arena_size - FOUND_BYTES);
        shared->workspace.threads = 1;
        shared->workspace.solver = launch->solver;
    }
    tb_team_sync();
    tb_step_search(&shared->stepping, &world->state, kinematic_of(world), &launch->options,
                   &shared->workspace, &found);
    if (TB_LEADER) *(tb_found *)(void *)memory = found;
}

/* ---- kinds of solves ---- */

TB_STATIC int32_t bounded(int32_t value, int32_t count)
{
    return value < count ? value : count - 1;
}

/* Kind of a world's next solve, predicted from its last one. */
TB_STATIC int32_t kind_of(const tb_gpu_world *world)
{
    const tb_certificate *last = &world->state.certificate;
    tb_solve_history history;
    tb_lane_copy(&history, world->state.history, sizeof history);
    const int32_t way = tb_auto_begins_with_sweeps(&history) ? 1 : 0;
    const int32_t size = bounded((last->contacts + 3) / 4, TB_GPU_SIZES);
    int32_t length = 0;
    while (length < TB_GPU_LENGTHS - 1 && last->iterations >= 1 << length) length++;
    return (way * TB_GPU_SIZES + size) * TB_GPU_LENGTHS + length;
}

/* Every slot is of a kind, whether its world goes on or not. */
TB_STATIC void count_kind(const tb_gpu_launch *launch, int32_t slot)
{
    const int32_t world = launch->first + slot;
    if (!is_ordered(launch) || !TB_LEADER || slot >= launch->slots) return;
    saved_step *saved = saved_step_of(launch, slot);
    saved->kind = world < launch->number_of_worlds ? kind_of(&launch->worlds[world]) : 0;
    saved->rank = atomicAdd(&launch->kinds[saved->kind], 1);
}

STEP_KERNEL(TB_GPU_BLOCKS_AT_ONCE)
{
    const int32_t all = blocks_of(&launch, (int32_t)blockDim.y) * (int32_t)blockDim.y;
    const int32_t slot = slot_of_team();
    if (slot >= all) {
        if (is_slot(&launch, slot - all)) search_world(&launch, slot - all);
        return;
    }
    pass_stop(&launch, slot);
    if (is_slot(&launch, slot)) begin_world(&launch, slot);
    count_kind(&launch, slot);
}

STEP_START(launch->lanes[TB_GPU_KERNEL_BEGIN], launch->searches_beside ? 2 : 1,
           shared_bytes_of_block((size_t)worlds, 0))
