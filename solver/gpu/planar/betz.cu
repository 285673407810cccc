/* Betz's proxCUDA and proxSerial on a card (Solving Rigid Multibody Physics Dynamics Using Proximal
 * Point Functions on the GPU, RPI 2011, section 3.4): calculateR, solveNormal, solveFriction and
 * updateBodyNu in one launch of many sweeps.
 *
 * A team of blocks of threads goes through an island's sweeps, a contact and then a dof a thread,
 * with a barrier after each half. Teams work side by side, so one launch serves all islands of all
 * worlds. The thesis's single kernel has a fence in place of the barriers (__threadfence orders one
 * thread's writes without waiting), so a thread may read velocities of another sweep:
 * TB_BETZ_UNGUARDED repeats that.
 *
 * The planar scheme is double only; the float build of this file is empty. */
#ifndef TB_SINGLE
#include "gpu/planar/betz.h"
#include "gpu/qp/grid.h"
#include "solve/planar/betz.h"

typedef struct betz_team {
    int blocks, lane; /* of threads in the team; this thread's number among them */
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

/* Share of an island that one block of threads computes: contacts and dofs, in shared memory where
 * they fit, because a barrier between blocks empties the L1 cache. Impulses and velocities stay in
 * global memory. */
typedef struct betz_share {
    tb_problem problem;
    tb_betz contacts; /* the share's own contacts from 0 */
    tb_betz dofs;     /* the share's own dofs from 0; rows are the island's */
    int first, number_of_contacts, number_of_dofs;
} betz_share;

/* Room in shared memory, taken from its beginning; multiples of eight bytes. */
TB_CARD unsigned char *take(unsigned char **free, int64_t bytes)
{
    unsigned char *at = *free;
    *free += (bytes + 7) / 8 * 8;
    return at;
}

TB_CARD int64_t rounded(int64_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* to <- from, by all threads of the block. */
TB_CARD void copy_words(void *to, const void *from, int64_t bytes)
{
    const int64_t words = bytes / 4;
    for (int64_t i = (int)threadIdx.x; i < words; i += LANES)
        ((unsigned *)to)[i] = ((const unsigned *)from)[i];
}

/* Contacts, segments, values and rows of the share into shared memory, counted from the share's
 * first. */
TB_CARD void keep_contacts(betz_share *share, unsigned char **free)
{
    const int n = share->number_of_contacts;
    const tb_block *from = share->problem.blocks, *last = from + n - 1;
    const int row = from->row, rows = last->row + last->rows - row, segment = from->segment;
    const int segments = last->segment + last->segments - segment;
    const int64_t value = from->value;
    const int64_t values = last->value + (int64_t)last->rows * last->width - value;
    tb_block *blocks = (tb_block *)(void *)take(free, n * (int64_t)sizeof *blocks);
    tb_segment *runs = (tb_segment *)(void *)take(free, segments * (int64_t)sizeof *runs);
    double *y = (double *)(void *)take(free, values * (int64_t)sizeof *y);
    double *c = (double *)(void *)take(free, rows * (int64_t)sizeof *c);
    double *r = (double *)(void *)take(free, rows * (int64_t)sizeof *r);
    uint8_t *flags = take(free, n);
    copy_words(blocks, from, n * (int64_t)sizeof *blocks);
    copy_words(runs, share->problem.segments + segment, segments * (int64_t)sizeof *runs);
    copy_words(y, share->problem.values + value, values * (int64_t)sizeof *y);
    copy_words(c, share->problem.c + row, rows * (int64_t)sizeof *c);
    for (int i = (int)threadIdx.x; i < n; i += LANES) flags[i] = share->contacts.flags[i];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < n; i += LANES) {
        blocks[i].row -= row;
        blocks[i].segment -= segment;
        blocks[i].value -= value;
    }
    share->problem.blocks = blocks;
    share->problem.segments = runs;
    share->problem.values = y;
    share->problem.c = c;
    share->contacts.p += row;
    share->contacts.r = r;
    share->contacts.flags = flags;
}

TB_CARD void keep_dofs(betz_share *share, unsigned char **free)
{
    const int n = share->number_of_dofs, first = share->dofs.start[0];
    const int entries = share->dofs.start[n] - first;
    int32_t *start = (int32_t *)(void *)take(free, (n + 1) * (int64_t)sizeof *start);
    int32_t *row = (int32_t *)(void *)take(free, entries * (int64_t)sizeof *row);
    double *y = (double *)(void *)take(free, entries * (int64_t)sizeof *y);
    for (int i = (int)threadIdx.x; i <= n; i += LANES) start[i] = share->dofs.start[i] - first;
    copy_words(row, share->dofs.row + first, entries * (int64_t)sizeof *row);
    copy_words(y, share->dofs.coefficient + first, entries * (int64_t)sizeof *y);
    share->dofs.start = start;
    share->dofs.row = row;
    share->dofs.coefficient = y;
}

/* Bytes that keep_contacts and keep_dofs take. */
TB_CARD int64_t bytes_of(const betz_share *share)
{
    const int n = share->number_of_contacts, d = share->number_of_dofs;
    int64_t bytes = 0;
    if (n > 0) {
        const tb_block *from = share->problem.blocks, *last = from + n - 1;
        const int rows = last->row + last->rows - from->row;
        const int segments = last->segment + last->segments - from->segment;
        const int64_t values = last->value + (int64_t)last->rows * last->width - from->value;
        bytes += rounded(n * (int64_t)sizeof *from) + rounded(n) +
                 rounded(segments * (int64_t)sizeof(tb_segment)) +
                 (values + 2 * rows) * (int64_t)sizeof(double);
    }
    if (d > 0) {
        const int entries = share->dofs.start[d] - share->dofs.start[0];
        bytes += rounded((d + 1) * (int64_t)sizeof(int32_t)) +
                 rounded(entries * (int64_t)sizeof(int32_t)) + entries * (int64_t)sizeof(double);
    }
    return bytes;
}

/* The part of a block of threads: neighbouring contacts, and neighbouring dofs. */
TB_CARD void open_share(const tb_gpu_betz *g, const tb_betz_island *own, int member, int team,
                        unsigned char *memory, betz_share *share)
{
    const tb_betz_batch *batch = &g->batch;
    const int contacts = (own->blocks + team - 1) / team, dofs = (own->dofs + team - 1) / team;
    const int first = member * contacts < own->blocks ? member * contacts : own->blocks;
    const int dof = member * dofs < own->dofs ? member * dofs : own->dofs;
    share->first = first;
    share->number_of_contacts = own->blocks - first < contacts ? own->blocks - first : contacts;
    share->number_of_dofs = own->dofs - dof < dofs ? own->dofs - dof : dofs;
    share->problem = tb_problem{.number_of_blocks = own->blocks,
                                .number_of_rows = own->rows,
                                .number_of_dofs = own->dofs,
                                .blocks = batch->blocks + own->block + first,
                                .segments = batch->segments + own->segment,
                                .values = batch->values + own->value,
                                .c = batch->c + own->row};
    share->contacts = tb_betz{.problem = &share->problem,
                              .p = batch->p + own->row,
                              .s = g->s + own->dof,
                              .r = g->r + own->row,
                              .flags = g->flags + own->block + first,
                              .tolerance = own->tolerance,
                              .limit = own->limit,
                              .freeze = (own->kind & TB_BETZ_FREEZE) != 0};
    share->dofs = tb_betz{.problem = &share->problem,
                          .p = batch->p + own->row,
                          .s = g->s + own->dof + dof,
                          .start = (int32_t *)batch->start + own->start + dof,
                          .row = (int32_t *)batch->row_of + own->entry,
                          .coefficient = (double *)batch->coefficient + own->entry};
    if (bytes_of(share) > TB_GPU_BETZ_SHARED) return;
    if (share->number_of_contacts > 0) keep_contacts(share, &memory);
    if (share->number_of_dofs > 0) keep_dofs(share, &memory);
    __syncthreads();
}

/* calculateR; where the island is fresh, flags and velocities of the impulses that are there. */
TB_CARD void begin_share(const betz_share *share, const tb_betz_island *own)
{
    const bool fresh = (own->kind & TB_BETZ_FRESH) != 0;
    for (int b = (int)threadIdx.x; b < share->number_of_contacts; b += LANES) {
        tb_betz_calculate_r(&share->contacts, b, own->omega, (own->kind & TB_BETZ_RICHARDSON) != 0);
        if (fresh) share->contacts.flags[b] = 0;
    }
    for (int d = (int)threadIdx.x; fresh && d < share->number_of_dofs; d += LANES)
        tb_betz_update_dof(&share->dofs, d);
}

/* solveNormal and solveFriction; returns the stop votes of this thread's contacts. */
TB_CARD unsigned solve_contacts(const betz_share *share, bool mu_one)
{
    const int both = TB_BETZ_NORMAL_CONVERGED | TB_BETZ_FRICTION_CONVERGED;
    const tb_betz *z = &share->contacts;
    unsigned vote = 0;
    for (int b = (int)threadIdx.x; b < share->number_of_contacts; b += LANES) {
        tb_betz_solve_normal(z, b);
        tb_betz_solve_friction(z, b, mu_one ? 1 : share->problem.blocks[b].mu);
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

TB_CARD void sweep_share(const betz_share *share, tb_betz_island *own, const betz_team *t)
{
    const bool watched = own->limit > 0 || (own->kind & TB_BETZ_ONE_SIDED) != 0;
    const int sweeps = own->sweeps;
    unsigned vote = TB_BETZ_MOVES;
    int made = 0;
    while (made < sweeps) {
        unsigned *ballot = t->votes + made % 2;
        const unsigned mine = solve_contacts(share, made == 0 && (own->kind & TB_BETZ_MU_ONE) != 0);
        if (watched) cast_vote(ballot, mine);
        meet_team(t);
        if (watched) vote = *(volatile unsigned *)ballot;
        for (int d = (int)threadIdx.x; d < share->number_of_dofs; d += LANES)
            tb_betz_update_dof(&share->dofs, d);
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

TB_CARD void meet_always(const betz_team *t)
{
    if (t->blocks == 1)
        __syncthreads();
    else
        meet(t->place, t->blocks);
}

TB_CARD void go_through_island(const tb_gpu_betz *g, tb_betz_island *own, int member,
                               const betz_team *t, unsigned char *memory)
{
    betz_share share;
    open_share(g, own, member, t->blocks, memory, &share);
    if (t->lane == 0) t->votes[0] = t->votes[1] = 0;
    begin_share(&share, own);
    meet_always(t);
    sweep_share(&share, own, t);
    __syncthreads();
    uint8_t *flags = g->flags + own->block + share.first;
    for (int b = (int)threadIdx.x; b < share.number_of_contacts; b += LANES)
        flags[b] = share.contacts.flags[b];
    meet_always(t);
}

#ifdef __CUDACC__
#define BETZ_MEMORY extern __shared__ __align__(16) unsigned char shared_bytes[];
#else
#define BETZ_MEMORY
#endif

extern "C" __global__ void __launch_bounds__(TB_GPU_BETZ_THREADS)
    tb_gpu_betz_sweeps(const __grid_constant__ tb_gpu_betz g)
{
    BETZ_MEMORY
    const int teams = (int)gridDim.x / g.team, number = (int)blockIdx.x / g.team;
    const int member = (int)blockIdx.x % g.team;
    unsigned *counters = g.counters + number * TB_GPU_BETZ_COUNTERS;
    betz_team t = {.blocks = g.team,
                   .lane = member * LANES + (int)threadIdx.x,
                   .place = (meeting *)(void *)counters,
                   .votes = counters + TB_GPU_BETZ_COUNTERS / 2,
                   .unguarded = false};
    for (int i = number; i < g.batch.number_of_islands; i += teams) {
        tb_betz_island *own = &g.batch.islands[i];
        if (own->sweeps == 0) continue;
        t.unguarded = (own->kind & TB_BETZ_UNGUARDED) != 0;
        go_through_island(&g, own, member, &t, shared_bytes);
    }
}

extern "C" cudaError_t tb_gpu_start_betz(const tb_gpu_betz *betz, int32_t teams,
                                         cudaStream_t stream)
{
    tb_gpu_betz g = *betz;
    void *arguments[] = {&g};
    const void *kernel = (const void *)tb_gpu_betz_sweeps;
    const cudaError_t result = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, TB_GPU_BETZ_SHARED);
    if (result != cudaSuccess) return result;
    return cudaLaunchCooperativeKernel(kernel, dim3((unsigned)(teams * g.team)),
                                       dim3((unsigned)TB_GPU_BETZ_THREADS), arguments,
                                       TB_GPU_BETZ_SHARED, stream);
}
#endif
