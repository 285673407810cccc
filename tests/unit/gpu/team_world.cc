// The physics as a card runs it with several lanes a world, for the processor: threads play the
// lanes (team_play.h), each with its own stack. Compiled twice, as double and with TB_SINGLE as
// float.
#define TB_TEAM_PLAYED 1
#include "gpu/batch/physics.h"

#include "gpu/batch/wide/wide_step.h"

#include "device_parts.h"
#include "team_meshes.h"
#include "team_play.h"

// Inputs of every lane, and its results.
typedef struct play {
    device_room room;
    device_job jobs[32];
    tb_status status[32];
    tb_certificate certificate; // of the leader
    first_solve *first;
    wide_outcome outcome;
    bool recovers; // by the kernel of wide worlds
    int32_t slice, pauses; // of a wide world's solve
} play;

static wide_solve shared;
static wide_pause paused;

// In slices, as where launches overlap.
static bool solve_wide(tb_stepping *stepping, void *context)
{
    play *p = (play *)context;
    wide_slice slice = {&paused, false, p->slice};
    wide_outcome outcome = wide_step_solve(stepping, &shared, &slice);
    slice.resumes = true;
    while (outcome == WIDE_BEGUN) {
        if (TB_LEADER) p->pauses++;
        outcome = wide_step_solve(stepping, &shared, &slice);
    }
    if (TB_LEADER) {
        p->outcome = outcome;
        p->recovers = stepping->recovered.velocity != NULL;
    }
    return outcome == WIDE_DONE;
}

static void play_lane(void *context, int32_t lane)
{
    play *p = (play *)context;
    tb_certificate certificate;
    p->status[lane] = play_job(&p->jobs[lane], &p->room, p->first, p, &certificate);
    if (lane == 0) p->certificate = certificate;
}

static tb_status step_together(play *own, device_job *job, int32_t lanes,
                               tb_certificate *certificate)
{
    play &p = *own;
    for (int32_t i = 0; i < lanes; i++) p.jobs[i] = *job;
    team_play(lanes, play_lane, &p);
    for (int32_t i = 1; i < lanes; i++)
        if (p.status[i] != p.status[0] || p.jobs[i].wanted != p.jobs[0].wanted)
            __builtin_trap(); // lanes that disagree would hang a card
    job->wanted = p.jobs[0].wanted;
    job->found = p.jobs[0].found;
    *certificate = p.certificate;
    return p.status[0];
}

tb_status team_world_step(device_job *job, int32_t lanes, tb_certificate *certificate)
{
    play p = {};
    return step_together(&p, job, lanes, certificate);
}

tb_status wide_world_step(device_job *job, int32_t slice, wide_told *told,
                          tb_certificate *certificate)
{
    play p = {};
    p.first = solve_wide;
    p.outcome = WIDE_LEFT;
    p.slice = slice;
    memset(&shared, 0xff, sizeof shared);
    const tb_status status = step_together(&p, job, 32, certificate);
    told->left = p.outcome == WIDE_LEFT;
    told->recovers = p.recovers;
    told->lacking = p.outcome == WIDE_LACKING;
    told->pauses = p.pauses;
    return status;
}

// ---- pairs with meshes ----

typedef struct mesh_play {
    team_meshes_call *call;
    tb_arena arena;
    tb_status status[32];
    uint32_t flags[32];
} mesh_play;

static void play_meshes(void *context, int32_t lane)
{
    mesh_play *p = (mesh_play *)context;
    team_meshes_call *call = p->call;
    tb_arena *arena = &p->arena;
    p->flags[lane] = 0;
    p->status[lane] = TB_RESOURCE_EXHAUSTED;
    tb_mesh_question *asked = TB_ARENA_ARRAY(arena, tb_mesh_question, call->pairs);
    if (asked) {
        TB_EACH (i, call->pairs) {
            asked[i].a = &call->shapes[2 * i];
            asked[i].b = &call->shapes[2 * i + 1];
            asked[i].margin = call->margin;
        }
        tb_team_sync();
        p->status[lane] = tb_collide_meshes(asked, call->pairs, arena, &p->flags[lane]);
    }
    if (lane != 0 || p->status[lane] != TB_OK) return;
    for (int32_t i = 0, n = 0; i < call->pairs; n += asked[i++].count) {
        call->counts[i] = asked[i].count;
        if (n + asked[i].count > call->capacity) __builtin_trap();
        for (int32_t k = 0; k < asked[i].count; k++) call->points[n + k] = asked[i].points[k];
    }
}

tb_status team_meshes(team_meshes_call *call)
{
    mesh_play p = {};
    p.call = call;
    tb_arena_over(&p.arena, call->memory, call->bytes);
    team_play(call->lanes, play_meshes, &p);
    call->wanted = p.arena.peak;
    call->flags = 0;
    for (int32_t i = 0; i < call->lanes; i++) {
        if (p.status[i] != p.status[0]) __builtin_trap();
        call->flags |= p.flags[i];
    }
    return p.status[0];
}
