/* Betz's proxCUDA and proxSerial on a card (Solving Rigid Multibody Physics Dynamics Using Proximal Point
 * Functions on the GPU, RPI 2011, section 3.4): calculateR, solveNormal, solveFriction and updateBodyNu in
 * one launch of many sweeps.
 *
 * A team of blocks of threads goes through an island's sweeps, a contact and then a dof a thread, and meets
 * after each half. Teams work side by side, so one launch serves all islands of all worlds. The thesis's
 * single kernel has a fence in the place of the meetings (__threadfence orders one thread's writes and
 * waits for nobody), so a thread may read velocities of another sweep: TB_BETZ_UNGUARDED repeats that.
 *
 * The planar scheme is double only; the float build of this file is empty. */
#ifndef TB_SINGLE
#include "gpu/planar/betz.h"
#include "gpu/qp/grid.h"
#include "solve/planar/betz.h"

typedef struct betz_team {
    int blocks, lanes, lane; /* of threads in the team; this thread's number among them */
    meeting *place;
    unsigned *votes; /* 2, used by turns */
    bool unguarded;
} betz_team;

TB_CARD void meet_team(const betz_team *t)
{
    if (t->unguarded)
        __threadfence();
    else if (t->blocks == 1)
        __syncthreads();
    else
        meet(t->place, t->blocks);
}

/* calculateR, and velocities of the impulses that are there. */
TB_CARD void begin_island(const tb_betz *z, const tb_betz_island *own, const betz_team *t)
{
    for (int b = t->lane; b < own->blocks; b += t->lanes) {
        tb_betz_calculate_r(z, b, own->omega, (own->kind & TB_BETZ_RICHARDSON) != 0);
        z->flags[b] = 0;
    }
    for (int dof = t->lane; dof < own->dofs; dof += t->lanes) tb_betz_update_dof(z, dof);
}

/* solveNormal and solveFriction; returns what this thread's contacts vote. */
TB_CARD unsigned solve_contacts(const tb_betz *z, const tb_betz_island *own, const betz_team *t,
                                bool mu_one)
{
    const int both = TB_BETZ_NORMAL_CONVERGED | TB_BETZ_FRICTION_CONVERGED;
    unsigned vote = 0;
    for (int b = t->lane; b < own->blocks; b += t->lanes) {
        tb_betz_solve_normal(z, b);
        tb_betz_solve_friction(z, b, mu_one ? 1 : z->problem->blocks[b].mu);
        if ((z->flags[b] & both) != both) vote |= TB_BETZ_MOVES;
        if (z->flags[b] & TB_BETZ_OVER_LIMIT) vote |= TB_BETZ_OVER;
    }
    return vote;
}

TB_CARD void cast_vote(unsigned *ballot, unsigned vote)
{
    if (vote != 0 && (*(volatile unsigned *)ballot & vote) != vote) atomicOr(ballot, vote);
}

/* Whether the sweeps end with this vote. */
TB_CARD bool ends(const tb_betz_island *own, unsigned vote)
{
    if (own->limit > 0 && (vote & TB_BETZ_OVER)) return true;
    return (own->kind & TB_BETZ_ONE_SIDED) != 0 && !(vote & TB_BETZ_MOVES);
}

TB_CARD void sweep_island(const tb_betz *z, tb_betz_island *own, const betz_team *t)
{
    const bool watched = own->limit > 0 || (own->kind & TB_BETZ_ONE_SIDED) != 0;
    const int sweeps = own->sweeps;
    unsigned vote = TB_BETZ_MOVES;
    int made = 0;
    while (made < sweeps) {
        unsigned *ballot = t->votes + made % 2;
        const unsigned mine =
            solve_contacts(z, own, t, made == 0 && (own->kind & TB_BETZ_MU_ONE) != 0);
        if (watched) cast_vote(ballot, mine);
        meet_team(t);
        if (watched) vote = *(volatile unsigned *)ballot;
        for (int dof = t->lane; dof < own->dofs; dof += t->lanes) tb_betz_update_dof(z, dof);
        /* every lane has read the other ballot before the last meeting */
        if (t->lane == 0) t->votes[(made + 1) % 2] = 0;
        meet_team(t);
        made++;
        if (watched && ends(own, vote)) break;
    }
    if (t->lane > 0) return;
    own->made = made;
    own->vote = vote;
}

TB_CARD void go_through_island(const tb_gpu_betz *g, tb_betz_island *own, const betz_team *t)
{
    const tb_betz_batch *batch = &g->batch;
    const tb_problem problem = {.number_of_blocks = own->blocks,
                                .number_of_rows = own->rows,
                                .number_of_dofs = own->dofs,
                                .blocks = batch->blocks + own->block,
                                .segments = batch->segments + own->segment,
                                .values = batch->values + own->value,
                                .c = batch->c + own->row};
    const tb_betz z = {.problem = &problem,
                       .p = batch->p + own->row,
                       .s = g->s + own->dof,
                       .r = g->r + own->row,
                       .flags = g->flags + own->block,
                       .start = (int32_t *)batch->start + own->start,
                       .row = (int32_t *)batch->row_of + own->entry,
                       .number = (int64_t *)batch->number + own->entry,
                       .tolerance = own->tolerance,
                       .limit = own->limit,
                       .freeze = (own->kind & TB_BETZ_FREEZE) != 0};
    if (t->lane == 0) t->votes[0] = t->votes[1] = 0;
    if (own->kind & TB_BETZ_FRESH) begin_island(&z, own, t);
    if (t->blocks == 1)
        __syncthreads();
    else
        meet(t->place, t->blocks);
    sweep_island(&z, own, t);
}

extern "C" __global__ void __launch_bounds__(TB_GPU_BETZ_THREADS)
    tb_gpu_betz_sweeps(const __grid_constant__ tb_gpu_betz g)
{
    const int teams = (int)gridDim.x / g.team, number = (int)blockIdx.x / g.team;
    const int member = (int)blockIdx.x % g.team;
    unsigned *counters = g.counters + number * TB_GPU_BETZ_COUNTERS;
    betz_team t = {.blocks = g.team,
                   .lanes = g.team * LANES,
                   .lane = member * LANES + (int)threadIdx.x,
                   .place = (meeting *)(void *)counters,
                   .votes = counters + TB_GPU_BETZ_COUNTERS / 2,
                   .unguarded = false};
    for (int i = number; i < g.batch.number_of_islands; i += teams) {
        tb_betz_island *own = &g.batch.islands[i];
        if (own->sweeps == 0) continue;
        t.unguarded = (own->kind & TB_BETZ_UNGUARDED) != 0;
        go_through_island(&g, own, &t);
        if (t.blocks == 1)
            __syncthreads();
        else
            meet(t.place, t.blocks);
    }
}

extern "C" cudaError_t tb_gpu_start_betz(const tb_gpu_betz *betz, int32_t teams,
                                         cudaStream_t stream)
{
    tb_gpu_betz g = *betz;
    void *arguments[] = {&g};
    return cudaLaunchCooperativeKernel((const void *)tb_gpu_betz_sweeps,
                                       dim3((unsigned)(teams * g.team)),
                                       dim3((unsigned)TB_GPU_BETZ_THREADS), arguments, 0, stream);
}
#endif
