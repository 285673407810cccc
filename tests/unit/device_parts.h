// A step part by part, as the kernels of a card take it (gpu/step_part.h); for device_world.cc and
// team_world.cc, after gpu/physics.h.
#ifndef DEVICE_PARTS_H
#define DEVICE_PARTS_H

#include "device_world.h"

// What the lanes of a world have in common (at_hand there), and what it was before the solve.
typedef struct device_room {
    tb_stepping stepping, detected;
    tb_workspace workspace;
    tb_arena arena;
} device_room;

// As between kernels: what detect has left is kept, and is there again.
static void keep_detected(device_room *room)
{
    tb_team_sync();
    if (TB_LEADER) {
        room->detected = room->stepping;
        room->arena = room->workspace.arena;
    }
    tb_team_sync();
}

static void return_to_detected(device_room *room)
{
    const size_t peak = room->workspace.arena.peak;
    tb_team_sync();
    if (TB_LEADER) {
        room->stepping = room->detected;
        room->workspace.arena = room->arena;
        room->workspace.arena.peak = peak;
    }
    tb_team_sync();
}

// A solve that is beyond `patience` (0: none is) is made a second time, from what detect has left.
static tb_status play_parts(tb_state *state, const tb_step_options *options, device_room *room,
                            int32_t patience, bool *again, tb_certificate *certificate)
{
    tb_stepping *stepping = &room->stepping;
    tb_status status = tb_step_begin(stepping, state, options, &room->workspace, certificate, NULL);
    if (status == TB_OK) status = tb_step_detect(stepping, certificate, NULL);
    if (status != TB_OK) return status;
    keep_detected(room);
    status = tb_step_solve(stepping, patience, NULL);
    *again = status == TB_CANCELLED;
    if (*again) {
        return_to_detected(room);
        status = tb_step_solve(stepping, 0, NULL);
    }
    return status == TB_OK ? tb_step_end(stepping, certificate, NULL) : status;
}

// A lane's part of device_world_step and team_world_step.
static tb_status play_job(device_job *job, device_room *room, tb_certificate *certificate)
{
    tb_workspace *workspace = &room->workspace;
    if (TB_LEADER) {
        tb_arena_over(&workspace->arena, job->memory, job->bytes);
        workspace->threads = 1;
        workspace->solver = job->solver;
    }
    tb_team_sync();
    job->again = false;
    tb_status status = TB_OK;
    if (job->course) status = tb_course_tell(job->state, job->course, job->step, &workspace->arena);
    if (status == TB_OK)
        status =
            play_parts(job->state, job->options, room, job->patience, &job->again, certificate);
    if (job->course && (status == TB_OK || status == TB_DIVERGED))
        tb_course_note(job->state, job->course, job->step, certificate);
    tb_team_sync();
    job->wanted = workspace->arena.peak;
    return status;
}

#endif
