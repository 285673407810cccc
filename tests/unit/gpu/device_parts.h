// A step part by part, as the kernels of a card take it (gpu/batch/step_kernel.h); for
// device_world.cc and team_world.cc, after gpu/batch/physics.h.
#ifndef DEVICE_PARTS_H
#define DEVICE_PARTS_H

#include "device_world.h"

// Memory shared by the lanes of a world (shared_step there).
typedef struct device_room {
    tb_stepping stepping;
    tb_workspace workspace;
    // of the search beside the begin
    tb_stepping searching;
    tb_workspace search_workspace;
    tb_found found;
} device_room;

// A solve in the place of the first part of tb_step_solve; true: in the place of all of it.
typedef bool first_solve(tb_stepping *stepping, void *context);

// By the same lanes: what another team does at any time beside the begin.
static void play_search(const device_job *job, device_room *room)
{
    const tb_course *course = job->course;
    const double *kinematic = job->state->kinematic;
    if (course && course->kinematic)
        kinematic = course->kinematic + (int64_t)job->step * TB_KINEMATIC_NUMBERS *
                                            job->state->model->number_of_kinematic_bodies;
    if (TB_LEADER) {
        tb_arena_over(&room->search_workspace.arena, job->search, job->bytes);
        room->search_workspace.threads = 1;
        room->search_workspace.solver = job->solver;
    }
    tb_team_sync();
    tb_found found;
    tb_step_search(&room->searching, job->state, kinematic, job->options, &room->search_workspace,
                   &found);
    if (TB_LEADER) room->found = found;
    tb_team_sync();
}

static tb_status play_begin(const device_job *job, device_room *room, tb_certificate *certificate)
{
    tb_status status = TB_OK;
    if (job->search && !job->late) play_search(job, room);
    if (job->course)
        status = tb_course_apply_inputs(job->state, job->course, job->step, &room->workspace.arena);
    if (status == TB_OK)
        status = tb_step_begin(&room->stepping, job->state, job->options, &room->workspace,
                               certificate, NULL);
    if (job->search && job->late && status == TB_OK) play_search(job, room);
    if (job->search && TB_LEADER) room->stepping.world.found = &room->found;
    tb_team_sync();
    return status;
}

static tb_status play_parts(const device_job *job, device_room *room, first_solve *first,
                            void *context, tb_certificate *certificate)
{
    tb_stepping *stepping = &room->stepping;
    tb_status status = play_begin(job, room, certificate);
    if (status == TB_OK) status = tb_step_detect(stepping, certificate, NULL);
    if (status == TB_OK && !(first && first(stepping, context)))
        status = tb_step_solve(stepping, NULL);
    return status == TB_OK ? tb_step_end(stepping, certificate, NULL) : status;
}

// A lane's part of device_world_step, team_world_step and wide_world_step.
static tb_status play_job(device_job *job, device_room *room, first_solve *first, void *context,
                          tb_certificate *certificate)
{
    tb_workspace *workspace = &room->workspace;
    if (TB_LEADER) {
        tb_arena_over(&workspace->arena, job->memory, job->bytes);
        workspace->threads = 1;
        workspace->solver = job->solver;
    }
    tb_team_sync();
    const tb_status status = play_parts(job, room, first, context, certificate);
    job->found = job->search && room->found.status != TB_RESOURCE_EXHAUSTED;
    if (job->course && (status == TB_OK || status == TB_DIVERGED))
        tb_course_record_outputs(job->state, job->course, job->step, certificate);
    tb_team_sync();
    job->wanted = workspace->arena.peak;
    return status;
}

#endif
