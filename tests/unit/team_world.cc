// The physics as a card runs it with several lanes a world, for the processor: threads play the lanes
// (team_play.h), each with its own stack. Compiled twice, as double and with TB_SINGLE as float.
#define TB_TEAM_PLAYED 1
#include "gpu/physics.h"

#include "device_parts.h"
#include "team_play.h"

// What every lane is given, and what each leaves.
typedef struct play {
    device_room room;
    device_job jobs[32];
    tb_status status[32];
    tb_certificate certificate; // of the leader
} play;

static void play_lane(void *context, int32_t lane)
{
    play *p = (play *)context;
    tb_certificate certificate;
    p->status[lane] = play_job(&p->jobs[lane], &p->room, &certificate);
    if (lane == 0) p->certificate = certificate;
}

tb_status team_world_step(device_job *job, int32_t lanes, tb_certificate *certificate)
{
    play p = {};
    for (int32_t i = 0; i < lanes; i++) p.jobs[i] = *job;
    team_play(lanes, play_lane, &p);
    for (int32_t i = 1; i < lanes; i++)
        if (p.status[i] != p.status[0] || p.jobs[i].wanted != p.jobs[0].wanted)
            __builtin_trap(); // lanes that disagree would hang a card
    job->wanted = p.jobs[0].wanted;
    job->again = p.jobs[0].again;
    *certificate = p.certificate;
    return p.status[0];
}
