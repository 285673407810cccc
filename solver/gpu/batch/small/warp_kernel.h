/* A launch of the kernel of small worlds: tables of each model, then all steps of each world (step_warp.cu).
 *
 * The tables of a model lie in the arena of one world that has it: the first one among the first 32
 * worlds, or else the world itself. A kernel of its own makes them before the steps, so that the steps
 * do not carry the code. */
#ifndef TB_GPU_WARP_KERNEL_H
#define TB_GPU_WARP_KERNEL_H

#include "gpu/device/launch_time.h"
#include "gpu/batch/small/warp_step.h"

enum {
    WARP_ARENA_BYTES =
        (sizeof(warp_arena) + TB_ARENA_ALIGNMENT - 1) / TB_ARENA_ALIGNMENT * TB_ARENA_ALIGNMENT
};

static_assert((int)WARP_ITEMS == (int)TB_GPU_WARP_CONTACTS,
              "worlds with more contacts do not come here");

TB_STATIC warp_arena *warp_arena_of(const tb_gpu_launch *launch, int32_t slot)
{
    unsigned char *own = (unsigned char *)saved_step_of(launch, slot);
    return (warp_arena *)(void *)(own + SAVED_STEP_BYTES);
}

/* Whether a world's memory holds its part of the tables. */
TB_STATIC bool has_warp_arena(const tb_gpu_launch *launch)
{
    return launch->arena_size >= SAVED_STEP_BYTES + WARP_ARENA_BYTES;
}

/* The slot whose arena has the tables of this slot's model. */
TB_STATIC int32_t slot_of_model(const tb_gpu_launch *launch, int32_t slot)
{
    const tb_gpu_world *worlds = launch->worlds + launch->first;
    const int32_t lane = tb_team_lane();
    const bool is = lane < launch->slots && launch->first + lane < launch->number_of_worlds &&
                    worlds[lane].state.model == worlds[slot].state.model;
    const uint32_t bits = tb_team_ballot(is);
    return bits ? lowest_bit(bits) : slot;
}

TB_STATIC void prepare_model(const tb_gpu_launch *launch, int32_t slot)
{
    shared_step *shared = shared_step_of_team();
    warp_arena *own = warp_arena_of(launch, slot);
    if (!has_warp_arena(launch) || slot_of_model(launch, slot) != slot) return;
    if (TB_LEADER) {
        tb_arena_over(&shared->workspace.arena, (unsigned char *)own + WARP_ARENA_BYTES,
                      launch->arena_size - SAVED_STEP_BYTES - WARP_ARENA_BYTES);
        shared->workspace.threads = 1;
        shared->workspace.solver = launch->solver;
    }
    tb_team_sync();
    warp_put_common(own, &launch->worlds[launch->first + slot].state, &launch->options,
                    &shared->workspace);
}

TB_STATIC void choose_next_of_all(tb_gpu_world *world)
{
    tb_team_sync();
    if (TB_LEADER) choose_next(world);
    tb_team_sync();
}

/* Whether the course records each step. */
TB_STATIC bool records(const tb_course *course)
{
    return course->steps > 0 && (course->q || course->touches || course->certificates);
}

TB_STATIC void give_world(const warp_keep *keep, tb_gpu_world *world, const warp_errors *errors)
{
    tb_certificate certificate;
    choose_next_of_all(world);
    warp_give(keep);
    warp_certify(keep, &keep->now, errors, &certificate);
    if (TB_LEADER) world->state.certificate = certificate;
    tb_team_sync();
}

/* Gives the world back, with the merged certificate of the launch's steps. */
TB_STATIC void leave_world(const warp_keep *keep, tb_gpu_world *world, int32_t made,
                           const warp_errors *errors, const warp_errors *worst)
{
    tb_certificate sum;
    if (made == 0) return;
    const bool given = records(&world->course);
    if (!given) give_world(keep, world, errors);
    warp_certify(keep, &keep->sum, worst, &sum);
    tb_team_sync();
    if (TB_LEADER) {
        if (!given) world->steps_left -= made;
        tb_certificate_add(&world->merged, &sum);
    }
    tb_team_sync();
}

/* Records a step that has been made. */
TB_STATIC void record_step(const warp_keep *keep, tb_gpu_world *world, const warp_errors *errors)
{
    give_world(keep, world, errors);
    tb_course_record_outputs(&world->state, &world->course, step_of_course(world),
                             &world->state.certificate);
    tb_team_sync();
    if (TB_LEADER) world->steps_left--;
    tb_team_sync();
}

TB_STATIC tb_status take_world(const tb_gpu_launch *launch, tb_gpu_world *world, int32_t slot,
                               warp_keep *keep)
{
    choose_next_of_all(world);
    if (world->state.next_capacity < WARP_ITEMS)
        return tb_state_reserve_next(&world->state, WARP_ITEMS);
    if (!has_warp_arena(launch)) return TB_RESOURCE_EXHAUSTED;
    const warp_common *common = &warp_arena_of(launch, slot_of_model(launch, slot))->common;
    const tb_status status = warp_take(keep, common, warp_arena_of(launch, slot)->records,
                                       &world->state, &launch->options);
    if (TB_LEADER && status == TB_OK && world->course.steps > 0 && world->course.controls)
        keep->course_controls =
            world->course.controls + (int64_t)step_of_course(world) * common->actuators;
    tb_team_sync();
    return status;
}

/* Bytes of the arena for the tables, which follow the saved steps of worlds. */
TB_STATIC size_t warp_arena_peak(const tb_gpu_launch *launch, int32_t slot)
{
    const size_t least = WARP_ARENA_BYTES;
    if (!has_warp_arena(launch)) return least;
    return least + warp_arena_of(launch, slot_of_model(launch, slot))->common.peak;
}

/* All steps of a world until one that the general kernel has to make, or until the launch is over. */
TB_STATIC void go_by_warp(const tb_gpu_launch *launch, int32_t slot)
{
    tb_gpu_world *world = &launch->worlds[launch->first + slot];
    warp_keep *keep = &shared_step_of_team()->keep;
    size_t bytes;
    warp_problem *problem = (warp_problem *)tb_team_fast(&bytes);
    /* a world that an earlier launch of the call has left waits for the host */
    if (world->status != TB_OK || world->steps_left == 0) return;
    const int32_t steps = launch->steps < world->steps_left ? launch->steps : world->steps_left;
    const bool tells = records(&world->course);
    tb_status status = TB_DIVERGED;
    if (world->state.status != TB_DIVERGED) status = take_world(launch, world, slot, keep);
    warp_errors errors = {0, 0, 0}, worst = {0, 0, 0};
    const unsigned long long end = end_of_launch(launch);
    int32_t made = 0;
    TB_ROLLED
    while (made < steps && status == TB_OK && !is_over(end)) {
        TB_STAGES_BEGIN();
        TB_STAGE_DONE(TB_STAGE_ARRAYS);
        warp_errors now;
        status = warp_step(keep, problem, &now);
        if (status != TB_OK) break;
        errors = now;
        worst.penetration = tb_max(worst.penetration, now.penetration);
        worst.cone = tb_max(worst.cone, now.cone);
        worst.complementarity = tb_max(worst.complementarity, now.complementarity);
        if (tells) record_step(keep, world, &errors);
        made++;
    }
    leave_world(keep, world, made, &errors, &worst);
    if (status == TB_OK) return;
    tb_certificate certificate;
    memset(&certificate, 0, sizeof certificate);
    if (status == TB_DIVERGED) status = freeze(&world->state, &certificate, 0, NULL);
    if (status != TB_UNSUPPORTED) {
        end_step(launch, world, status, warp_arena_peak(launch, slot), &certificate);
        return;
    }
    tb_team_sync(); /* all have read the status */
    if (TB_LEADER) world->status = status;
    tb_team_sync();
}

#endif
