// A step part by part, as the kernels of a card take it (gpu/step_part.h); for device_world.cc and
// team_world.cc, after gpu/physics.h.
#ifndef DEVICE_PARTS_H
#define DEVICE_PARTS_H

#include "device_world.h"

// A solve that is beyond `patience` (0: none is) is made a second time, from what detect has left.
static tb_status play_parts(tb_state *state, const tb_step_options *options,
                            tb_workspace *workspace, int32_t patience, bool *again,
                            tb_certificate *certificate)
{
    tb_stepping stepping;
    tb_status status = tb_step_begin(&stepping, state, options, workspace, certificate, NULL);
    if (status == TB_OK) status = tb_step_detect(&stepping, certificate, NULL);
    if (status != TB_OK) return status;
    const tb_stepping detected = stepping;
    const tb_arena arena = workspace->arena;
    status = tb_step_solve(&stepping, patience, NULL);
    *again = status == TB_CANCELLED;
    if (*again) {
        const size_t peak = workspace->arena.peak;
        tb_team_sync(); // as between kernels
        stepping = detected;
        workspace->arena = arena;
        status = tb_step_solve(&stepping, 0, NULL);
        if (peak > workspace->arena.peak) workspace->arena.peak = peak;
    }
    return status == TB_OK ? tb_step_end(&stepping, certificate, NULL) : status;
}

// A lane's part of device_world_step and team_world_step.
static tb_status play_job(device_job *job, tb_certificate *certificate)
{
    tb_workspace workspace;
    tb_arena_over(&workspace.arena, job->memory, job->bytes);
    workspace.threads = 1;
    workspace.solver = job->solver;
    job->again = false;
    tb_status status = TB_OK;
    if (job->course) status = tb_course_tell(job->state, job->course, job->step, &workspace.arena);
    if (status == TB_OK)
        status = play_parts(job->state, job->options, &workspace, job->patience, &job->again,
                            certificate);
    if (job->course && (status == TB_OK || status == TB_DIVERGED))
        tb_course_note(job->state, job->course, job->step, certificate);
    job->wanted = workspace.arena.peak;
    return status;
}

#endif
