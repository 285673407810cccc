/* Sweeps over the contacts of soft bodies on a GPU (nodes/sweeps.h). Few contacts are visited by one block, which has them in its
 * memory (sweeps_in_block.h). Of more, in one cooperative launch whose blocks all meet after each colour, a group of lanes visits
 * a contact, a share a lane, and adds the shares up in their order. Double only. */
#ifndef TB_SINGLE
#include "gpu/grid/fields.h"
#include "gpu/qp/grid.h"
#include "gpu/grid/sweeps_in_block.h"

enum {
    SHARES = (int)TB_SOFT_MOST_ENTRIES,
    GROUPS = (int)TB_GPU_SOFT_THREADS / SHARES,
    /* of all colours: blocks are so few that they meet soon, and a colour of a flat contact has groups for all */
    CONTACTS_OF_BLOCK = 2 * GROUPS
};

typedef struct sweep_memory {
    double part[GROUPS][SHARES][3]; /* m/s: weighted velocities of the shares of a contact */
    double velocity[GROUPS][3];     /* m/s: their sums */
    double change[TB_GPU_SOFT_THREADS][TB_SOFT_TWIST]; /* of y, by contacts of a colour that is over */
    int32_t rigid[TB_GPU_SOFT_THREADS];                /* and the body that they move, or -1 */
    double y[1]; /* rigid bodies x 6: before the present colour; all blocks have the same */
} sweep_memory;

/* A group's visit to contact i, or, in the first sweep, the impulse that the contact begins with; -1: none, beside
 * a group of the warp that has one. later: contacts x 6, changes of y. Whether a working set changes. */
TB_CARD bool visit(const tb_soft_sweeps *s, int32_t i, bool first, volatile double *later,
                   sweep_memory *m)
{
    const int group = (int)threadIdx.x / SHARES, lane = (int)threadIdx.x % SHARES;
    const bool has = i >= 0;
    tb_soft_swept own = s->contacts[has ? i : 0];
    const bool shares = has && own.first + lane < own.last;
    const tb_soft_share x = s->shares[shares ? own.first + lane : 0];
    volatile double *at = s->change + 3 * (int64_t)x.place;
    double v[3], u[3], change[3] = {own.alpha, own.beta[0], own.beta[1]};
    bool changes = false;
    for (int k = 0; k < 3; k++) {
        v[k] = shares ? at[k] : 0;
        m->part[group][lane][k] = x.weight * v[k];
    }
    __syncwarp();
    if (lane < 3) {
        double sum = 0;
        for (int32_t e = 0; e < own.last - own.first; e++) sum += m->part[group][e][lane];
        m->velocity[group][lane] = sum;
    }
    __syncwarp();
    for (int k = 0; k < 3; k++) u[k] = tb_soft_sweep_slip(&own, k, m->velocity[group]);
    for (int k = 0; k < 3 && own.rigid >= 0; k++)
        u[k] += tb_soft_sweep_carried(own.rigid_row[k], m->y + TB_SOFT_TWIST * own.rigid);
    if (!first) changes = tb_soft_sweep_improve(&own, s->friction, u, change);
    for (int k = 0; k < 3 && shares; k++)
        at[k] = v[k] + tb_soft_share_change(&x, tb_soft_sweep_impulse(&own, k, change));
    if (has && own.rigid >= 0 && lane < TB_SOFT_TWIST)
        later[TB_SOFT_TWIST * (int64_t)i + lane] = tb_soft_sweep_turn(s->contacts + i, lane, change);
    if (!has || first) return false;
    if (lane == 0) {
        tb_soft_swept *c = s->contacts + i;
        c->alpha = own.alpha;
        c->beta[0] = own.beta[0], c->beta[1] = own.beta[1];
        c->active = own.active;
    }
    return changes;
}

/* All contacts of a colour. */
TB_CARD bool visit_colour(const tb_soft_sweeps *s, int32_t colour, bool first,
                          volatile double *later, sweep_memory *m)
{
    const int32_t end = s->colours[colour + 1], groups = (int32_t)gridDim.x * GROUPS;
    const int32_t own = (int32_t)blockIdx.x * GROUPS + (int32_t)threadIdx.x / SHARES;
    bool changes = false;
    for (int32_t from = s->colours[colour]; from < end; from += groups)
        changes |= visit(s, from + own < end ? from + own : -1, first, later, m);
    return changes;
}

/* Rigid bodies get the changes by a colour that is over: a lane brings those by a contact, and then a lane adds up a
 * number of a body in the order of the contacts. */
TB_CARD void end_colour(const tb_gpu_soft_contacts *c, int32_t colour,
                        const volatile double *later, sweep_memory *m)
{
    const tb_soft_sweeps *s = &c->sweeps;
    const int32_t numbers = TB_SOFT_TWIST * c->rigids, end = s->colours[colour + 1];
    const int32_t lane = (int32_t)threadIdx.x;
    if (numbers == 0) return;
    for (int32_t from = s->colours[colour]; from < end; from += TB_GPU_SOFT_THREADS) {
        const int32_t i = from + lane, rest = end - from;
        const int32_t many = rest < TB_GPU_SOFT_THREADS ? rest : TB_GPU_SOFT_THREADS;
        m->rigid[lane] = i < end ? s->contacts[i].rigid : -1;
        for (int k = 0; k < TB_SOFT_TWIST && m->rigid[lane] >= 0; k++)
            m->change[lane][k] = later[TB_SOFT_TWIST * (int64_t)i + k];
        __syncthreads();
        for (int32_t k = lane; k < numbers; k += TB_GPU_SOFT_THREADS)
            for (int32_t j = 0; j < many; j++)
                if (m->rigid[j] == k / TB_SOFT_TWIST) m->y[k] += m->change[j][k % TB_SOFT_TWIST];
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_sweep_all(const __grid_constant__ tb_gpu_soft g)
{
#ifdef __CUDACC__
    extern __shared__ __align__(16) unsigned char shared_bytes[];
#endif
    sweep_memory *m = (sweep_memory *)(void *)shared_bytes;
    const tb_soft_sweeps *s = &g.contacts.sweeps;
    meeting *place = (meeting *)(void *)g.contacts.meeting;
    volatile int32_t *changed = g.contacts.changed;
    const int blocks = (int)gridDim.x;
    const int32_t colours =
        g.contacts.colours_there != NULL ? *g.contacts.colours_there : s->number_of_colours;
    /* the other kernel's; without rigid bodies both do the same */
    if (g.contacts.rigids > 0 && tb_soft_sweeps_are_few(s->colours[colours], g.contacts.rigids)) return;
    const int64_t buffer = TB_SOFT_TWIST * (int64_t)s->number_of_contacts;
    if (g.contacts.wanted != NULL && *g.contacts.wanted == 0) return;
    if (blockIdx.x == 0 && threadIdx.x == 0) *changed = -1;
    for (int32_t i = (int32_t)(blockIdx.x * TB_GPU_SOFT_THREADS + threadIdx.x);
         i < s->colours[colours]; i += (int32_t)(gridDim.x * TB_GPU_SOFT_THREADS))
        tb_soft_sweep_prepare(s->shares, s->contacts + i);
    for (int32_t k = (int32_t)threadIdx.x; k < TB_SOFT_TWIST * g.contacts.rigids; k += TB_GPU_SOFT_THREADS)
        m->y[k] = 0;
    meet(place, blocks);
    /* sweep 0 is of the impulses that contacts begin with; a block that goes on writes a higher number, at which those
     * that have not read it yet go on too. Colours have two buffers by turns: a block may begin the next one while
     * another still reads. */
    int64_t turn = 0;
    for (int32_t n = 0, settled = 0; n <= TB_SOFT_SWEEPS && settled < TB_SOFT_SETTLED; n++) {
        for (int32_t c = 0; c < colours; c++) {
            if (s->colours[c] == s->colours[c + 1]) continue;
            double *later = g.contacts.p.later + (turn++ % 2) * buffer;
            if (visit_colour(s, c, n == 0, later, m)) *changed = n - 1;
            meet(place, blocks);
            end_colour(&g.contacts, c, later, m);
        }
        if (n > 0) settled = n - 1 - *changed;
    }
}

extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_sweep_few(const __grid_constant__ tb_gpu_soft g)
{
#ifdef __CUDACC__
    extern __shared__ __align__(16) unsigned char shared_bytes[];
#endif
    const tb_soft_sweeps *s = &g.contacts.sweeps;
    const int32_t colours =
        g.contacts.colours_there != NULL ? *g.contacts.colours_there : s->number_of_colours;
    if (g.contacts.wanted != NULL && *g.contacts.wanted == 0) return;
    if (tb_soft_sweeps_are_few(s->colours[colours], g.contacts.rigids))
        sweep_in_block(s, colours, g.contacts.rigids, (block_memory *)(void *)shared_bytes);
}

static cudaError_t sweep_few(tb_gpu_soft *g, cudaStream_t stream)
{
    void *arguments[] = {g};
    const cudaError_t result =
        cudaFuncSetAttribute((const void *)tb_gpu_soft_sweep_few,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(block_memory));
    if (result != cudaSuccess) return result;
    return cudaLaunchKernel((const void *)tb_gpu_soft_sweep_few, dim3(1),
                            dim3((unsigned)TB_GPU_SOFT_THREADS), arguments, sizeof(block_memory), stream);
}

static cudaError_t sweep_many(tb_gpu_soft *g, int32_t processors, cudaStream_t stream)
{
    void *arguments[] = {g};
    const int32_t wanted = g->contacts.sweeps.number_of_contacts / CONTACTS_OF_BLOCK + 1;
    static_assert(sizeof(meeting) <= TB_GPU_SOFT_MEETING, "a place where blocks meet");
    const cudaError_t result = cudaMemsetAsync(g->contacts.meeting, 0, sizeof(meeting), stream);
    if (result != cudaSuccess) return result;
    return cudaLaunchCooperativeKernel((const void *)tb_gpu_soft_sweep_all,
                                       dim3((unsigned)(wanted < processors ? wanted : processors)),
                                       dim3((unsigned)TB_GPU_SOFT_THREADS), arguments,
                                       sizeof(sweep_memory) +
                                           TB_SOFT_TWIST * (size_t)g->contacts.rigids * sizeof(double),
                                       stream);
}

/* The number of contacts is known on the card: there are as many as the host says or fewer. */
extern "C" cudaError_t tb_gpu_soft_sweep_contacts(const tb_gpu_soft *soft, int32_t processors,
                                                  cudaStream_t stream)
{
    tb_gpu_soft g = *soft;
    const int32_t most = g.contacts.sweeps.number_of_contacts, rigids = g.contacts.rigids;
    cudaError_t result = cudaSuccess;
    if (tb_soft_sweeps_are_few(rigids > 0 ? 0 : most, rigids)) result = sweep_few(&g, stream);
    if (result == cudaSuccess && !tb_soft_sweeps_are_few(most, rigids))
        result = sweep_many(&g, processors, stream);
    return result;
}
#endif
