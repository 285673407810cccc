// The step of the kernels in which a warp keeps its world (gpu/batch/step_warp.cu, with TB_UNIT_PILE
// step_pile.cu), for the processor: 32 lanes take turns (team_play.h). Compiled as double and with
// TB_SINGLE as float.
#define TB_TEAM_PLAYED 1
#define TB_UNIT_WARP   1
#include "gpu/batch/physics.h"

#include "device_world.h"
#include "team_play.h"

// Data that the lanes share, and the result of each.
typedef struct play {
    warp_keep keep;
    tb_workspace workspace;
    device_job *job;
    tb_status status[32];
    tb_certificate certificate; // of the leader
} play;

static TB_ALIGNED(16) unsigned char shared[WARP_BYTES];

static void play_lane(void *context, int32_t lane)
{
    play *p = (play *)context;
    device_job *job = p->job;
    tb_certificate certificate = {};
    warp_errors errors;
    tb_status status = TB_OK;
    if (job->course)
        status = tb_course_apply_inputs(job->state, job->course, job->step, &p->workspace.arena);
    if (status == TB_OK) {
        warp_arena *own = (warp_arena *)job->memory;
        tb_team_sync();
        warp_put_common(own, job->state, job->options, &p->workspace);
        status = warp_take(&p->keep, &own->common, own->records, job->state, job->options);
    }
    if (status == TB_OK) status = warp_step(&p->keep, (warp_problem *)shared, &errors);
    if (status == TB_OK) {
        warp_give(&p->keep);
        warp_certify(&p->keep, &p->keep.now, &errors, &certificate);
        if (lane == 0) job->state->certificate = certificate;
    }
    if (status == TB_DIVERGED) status = freeze(job->state, &certificate, 0, NULL);
    if (job->course && (status == TB_OK || status == TB_DIVERGED))
        tb_course_record_outputs(job->state, job->course, job->step, &certificate);
    p->status[lane] = status;
    if (lane == 0) p->certificate = certificate;
}

#ifdef TB_UNIT_PILE
#define WORLD_STEP pile_world_step
#else
#define WORLD_STEP warp_world_step
#endif
tb_status WORLD_STEP(device_job *job, tb_certificate *certificate)
{
    static play p;
    p = (play){};
    p.job = job;
    const size_t own = (sizeof(warp_arena) + 63) / 64 * 64; // the tables lie before the arena
    tb_arena_over(&p.workspace.arena, (unsigned char *)job->memory + own, job->bytes - own);
    memset(shared, 0xff, sizeof shared);
    team_play(32, play_lane, &p);
    for (int32_t i = 1; i < 32; i++)
        if (p.status[i] != p.status[0]) __builtin_trap(); // lanes that disagree would hang a card
    job->wanted = own + p.workspace.arena.peak;
    *certificate = p.certificate;
    return p.status[0];
}
