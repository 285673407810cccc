// A step part by part, as the kernels of a card take it (gpu/batch/step_kernel.h); for
// device_world.cc and team_world.cc, after gpu/batch/physics.h.
#ifndef DEVICE_PARTS_H
#define DEVICE_PARTS_H

#include "device_world.h"

// Memory shared by the lanes of a world (shared_step there).
typedef struct device_room {
    tb_stepping stepping;
    tb_workspace workspace;
} device_room;

// A solve in the place of the first part of tb_step_solve; true: in the place of all of it.
typedef bool first_solve(tb_stepping *stepping, void *context);

static tb_status play_parts(tb_state *state, const tb_step_options *options, device_room *room,
                            first_solve *first, void *context, tb_certificate *certificate)
{
    tb_stepping *stepping = &room->stepping;
    tb_status status = tb_step_begin(stepping, state, options, &room->workspace, certificate, NULL);
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
    tb_status status = TB_OK;
    if (job->course)
        status = tb_course_apply_inputs(job->state, job->course, job->step, &workspace->arena);
    if (status == TB_OK)
        status = play_parts(job->state, job->options, room, first, context, certificate);
    if (job->course && (status == TB_OK || status == TB_DIVERGED))
        tb_course_record_outputs(job->state, job->course, job->step, certificate);
    tb_team_sync();
    job->wanted = workspace->arena.peak;
    return status;
}

#endif
