// The physics as a card runs it with several lanes a world, for the processor: threads play the lanes
// (team_play.h), each with its own stack and its own account of the arena. Compiled twice, as double
// and with TB_SINGLE as float.
#define TB_TEAM_PLAYED 1
#include "gpu/physics.h"

#include "device_world.h"
#include "team_play.h"

// What every lane is given, and what each leaves.
typedef struct play {
    tb_state *state;
    const tb_step_options *options;
    int32_t solver;
    void *memory;
    size_t bytes;
    size_t wanted[32];
    tb_status status[32];
    tb_certificate certificate; // of the leader
} play;

static void play_lane(void *context, int32_t lane)
{
    play *p = (play *)context;
    tb_workspace workspace;
    tb_certificate certificate;
    tb_arena_over(&workspace.arena, p->memory, p->bytes);
    workspace.threads = 1;
    workspace.solver = p->solver;
    p->status[lane] = tb_world_step(p->state, p->options, &workspace, &certificate, NULL);
    p->wanted[lane] = workspace.arena.peak;
    if (lane == 0) p->certificate = certificate;
}

tb_status team_world_step(tb_state *state, const tb_step_options *options, int32_t solver,
                          int32_t lanes, void *memory, size_t bytes, size_t *wanted,
                          tb_certificate *certificate)
{
    play p = {};
    p.state = state;
    p.options = options;
    p.solver = solver;
    p.memory = memory;
    p.bytes = bytes;
    team_play(lanes, play_lane, &p);
    for (int32_t i = 1; i < lanes; i++)
        if (p.status[i] != p.status[0] || p.wanted[i] != p.wanted[0])
            __builtin_trap(); // lanes that disagree would hang a card
    *wanted = p.wanted[0];
    *certificate = p.certificate;
    return p.status[0];
}
