/* Sweeps over few contacts by one block (nodes/sweeps.h): contacts, their shares and all velocities are in its memory.
 *
 * Four lanes visit a contact of a colour, of which three have an axis each. A contact that moves a rigid body then waits for a warp,
 * which visits the contacts of the body in groups, each with eight lanes. */
#ifndef TB_GPU_SOFT_SWEEPS_IN_BLOCK_H
#define TB_GPU_SOFT_SWEEPS_IN_BLOCK_H

#include "gpu/grid/fields.h"
#include "gpu/qp/grid.h"

enum {
    QUAD = 4,
    QUADS = (int)TB_GPU_SOFT_THREADS / QUAD,
    CHUNK = 8, /* shares whose numbers are fetched together */
    OCTET = 8,
    FEW = (int)TB_SOFT_FEW_CONTACTS,
    FEW_SHARES = FEW * (int)TB_SOFT_MOST_ENTRIES
};

typedef struct block_memory {
    tb_soft_swept contacts[FEW];
    tb_soft_share shares[FEW_SHARES];
    double velocity[FEW_SHARES][3]; /* places, m/s: of nodes, by the impulses */
    double y[TB_SOFT_FEW_RIGID][TB_SOFT_TWIST];
    double slip[FEW][3];   /* contacts that move rigid bodies: u by nodes alone, m/s */
    double change[FEW][3]; /* and the change of their impulses, N s */
    int32_t moving[FEW];   /* by colour: contacts that move rigid bodies, by body, then -1 */
    int32_t
        length[FEW]; /* by colour, of the first contact of a body in moving: contacts of the body */
    int32_t changed; /* number of the last sweep that has changed a working set */
} block_memory;

/* Lists the contacts of a colour that move rigid bodies. A warp. */
TB_CARD void list_moving(block_memory *m, int32_t from, int32_t end)
{
    for (int32_t i = from + lane_of(); i < end; i += WARP) m->moving[i] = -1;
    __syncwarp();
    for (int32_t i = from + lane_of(); i < end; i += WARP) {
        const int32_t rigid = m->contacts[i].rigid;
        int32_t before = 0, all = 0;
        if (rigid < 0) continue;
        for (int32_t j = from; j < end; j++) {
            before += m->contacts[j].rigid >= 0 && m->contacts[j].rigid < rigid;
            all += m->contacts[j].rigid == rigid;
        }
        m->moving[from + before + m->contacts[i].rank] = i;
        if (m->contacts[i].rank == 0) m->length[from + before] = all;
    }
}

/* Fills the block's memory. */
TB_CARD void bring_contacts(const tb_soft_sweeps *s, int32_t colours, int32_t rigids,
                            block_memory *m)
{
    const int32_t lane = (int32_t)threadIdx.x, contacts = s->colours[colours];
    for (int32_t i = lane; i < contacts; i += TB_GPU_SOFT_THREADS) {
        tb_soft_swept own = s->contacts[i];
        tb_soft_sweep_prepare(s->shares, &own);
        m->contacts[i] = own;
    }
    for (int32_t k = lane; k < contacts * (int)TB_SOFT_MOST_ENTRIES; k += TB_GPU_SOFT_THREADS) {
        const tb_soft_swept *c = s->contacts + k / (int)TB_SOFT_MOST_ENTRIES;
        const int32_t share = c->first + k % (int)TB_SOFT_MOST_ENTRIES;
        if (share < c->last) m->shares[share] = s->shares[share];
        for (int a = 0; a < 3; a++) m->velocity[k][a] = 0;
    }
    for (int32_t k = lane; k < TB_SOFT_TWIST * rigids; k += TB_GPU_SOFT_THREADS)
        m->y[k / TB_SOFT_TWIST][k % TB_SOFT_TWIST] = 0;
    if (lane == 0) m->changed = 0;
    __syncthreads();
    for (int32_t c = warp_of(); c < colours; c += TB_GPU_SOFT_THREADS / WARP)
        list_moving(m, s->colours[c], s->colours[c + 1]);
    __syncthreads();
}

/* Sum over the contact's shares of weight times velocity along an axis, in their order. */
TB_CARD double sum_of_shares(const block_memory *m, const tb_soft_swept *c, int axis)
{
    double sum = 0;
    for (int32_t first = c->first; first < c->last; first += CHUNK) {
        const int32_t many = c->last - first;
        double part[CHUNK];
#pragma unroll
        for (int e = 0; e < CHUNK; e++) {
            const tb_soft_share *x = &m->shares[first + (e < many ? e : 0)];
            part[e] = x->weight * m->velocity[x->place][axis];
        }
#pragma unroll
        for (int e = 0; e < CHUNK; e++)
            if (e < many) sum += part[e];
    }
    return sum;
}

/* Moves the nodes of a contact along an axis by the impulse there, N s. They are different ones: all are read before one is
 * written. */
TB_CARD void push_nodes(block_memory *m, const tb_soft_swept *c, int axis, double impulse)
{
    for (int32_t first = c->first; first < c->last; first += CHUNK) {
        const int32_t many = c->last - first;
        int32_t place[CHUNK];
        double next[CHUNK];
#pragma unroll
        for (int e = 0; e < CHUNK; e++) {
            const tb_soft_share *x = &m->shares[first + (e < many ? e : 0)];
            place[e] = x->place;
            next[e] = m->velocity[place[e]][axis] + tb_soft_share_change(x, impulse);
        }
#pragma unroll
        for (int e = 0; e < CHUNK; e++)
            if (e < many) m->velocity[place[e]][axis] = next[e];
    }
}

TB_CARD double one_of(const double x[3], int which)
{
    return which == 0 ? x[0] : which == 1 ? x[1] : x[2];
}

TB_CARD void keep_impulses(tb_soft_swept *c, const tb_soft_swept *own)
{
    c->alpha = own->alpha;
    c->beta[0] = own->beta[0], c->beta[1] = own->beta[1];
    c->active = own->active;
}

/* A quad's visit to contact i; has: or to none, beside a quad of the warp that visits i. Sweep 0 is of the impulses that contacts
 * begin with. Whether a working set changes. */
TB_CARD bool visit_by_quad(block_memory *m, int32_t i, bool has, double friction, bool first)
{
    const int axis = (int)threadIdx.x % QUAD, quad = lane_of() / QUAD * QUAD;
    tb_soft_swept *c = &m->contacts[i], own = *c;
    double velocity[3], u[3], change[3] = {own.alpha, own.beta[0], own.beta[1]};
    bool changes = false;
    has = has && axis < 3;
    if (!first) {
        const double sum = has ? sum_of_shares(m, c, axis) : 0;
        for (int k = 0; k < 3; k++) velocity[k] = __shfl_sync(0xffffffffu, sum, quad + k);
        for (int k = 0; k < 3; k++) u[k] = tb_soft_sweep_slip(&own, k, velocity);
    }
    /* all lanes have read what one of them writes */
    __syncwarp();
    if (!has) return false;
    if (own.rigid >= 0) {
        if (!first) m->slip[i][axis] = one_of(u, axis);
        return false;
    }
    if (!first) changes = tb_soft_sweep_improve(&own, friction, u, change);
    push_nodes(m, c, axis, tb_soft_sweep_impulse(c, axis, change));
    if (axis == 0) keep_impulses(c, &own);
    return changes;
}

/* A contact that moves a rigid body, as a lane of its octet has it. */
typedef struct moving_contact {
    tb_soft_swept own;
    double row[TB_SOFT_TWIST]; /* of the direction of the lane */
    double slip;               /* along it */
    int32_t i;
    bool has; /* not beside others of an incomplete group */
} moving_contact;

/* Contact `at` of so many in a list; it is not one of the group that is being visited. */
TB_CARD moving_contact fetch_moving(const block_memory *m, const int32_t *list, int32_t count,
                                    int32_t at)
{
    const int k = lane_of() % OCTET % 3;
    moving_contact x;
    x.has = at < count;
    x.i = list[x.has ? at : count - 1];
    x.own = m->contacts[x.i];
    for (int j = 0; j < TB_SOFT_TWIST; j++) x.row[j] = m->contacts[x.i].rigid_row[k][j];
    x.slip = m->slip[x.i][k];
    return x;
}

/* A warp's visit to the contacts of a colour that move one rigid body. */
TB_CARD bool visit_moving(block_memory *m, const int32_t *list, int32_t count, double friction,
                          bool first)
{
    const int octet = lane_of() / OCTET, k = lane_of() % OCTET;
    double *y = m->y[m->contacts[list[0]].rigid];
    moving_contact x = fetch_moving(m, list, count, octet);
    bool changes = false;
    for (int32_t from = 0; from < count; from += TB_SOFT_GROUP) {
        /* the next group is fetched while this one is visited */
        moving_contact next = x;
        if (from + TB_SOFT_GROUP < count)
            next = fetch_moving(m, list, count, from + TB_SOFT_GROUP + octet);
        tb_soft_swept *c = &m->contacts[x.i];
        double u[3], change[3] = {x.own.alpha, x.own.beta[0], x.own.beta[1]};
        if (!first) {
            const double own = x.slip + tb_soft_sweep_carried(x.row, y);
            for (int q = 0; q < 3; q++) u[q] = __shfl_sync(0xffffffffu, own, octet * OCTET + q);
            if (tb_soft_sweep_improve(&x.own, friction, u, change) && x.has) changes = true;
        }
        const int component = k < TB_SOFT_TWIST ? k : 0;
        const double turn = tb_soft_sweep_turn(c, component, change);
        double sum = y[component];
        for (int q = 0; q < TB_SOFT_GROUP; q++) {
            const double part = __shfl_sync(0xffffffffu, turn, q * OCTET + k);
            if (from + q < count) sum += part;
        }
        __syncwarp(); /* all have read y */
        if (octet == 0 && k < TB_SOFT_TWIST) y[k] = sum;
        if (x.has && k < 3) m->change[x.i][k] = one_of(change, k);
        if (x.has && k == 0) keep_impulses(c, &x.own);
        __syncwarp();
        x = next;
    }
    return changes;
}

/* All contacts of a colour. */
TB_CARD bool visit_colour_in_block(block_memory *m, int32_t from, int32_t end, double friction,
                                   bool first)
{
    const int32_t own = (int32_t)threadIdx.x / QUAD, axis = (int32_t)threadIdx.x % QUAD;
    const int32_t warps = (int32_t)own / (WARP / QUAD) * (WARP / QUAD); /* first quad of the warp */
    bool changes = false;
    for (int32_t i = from; i + warps < end; i += QUADS)
        changes |=
            visit_by_quad(m, i + own < end ? i + own : i + warps, i + own < end, friction, first);
    __syncthreads();
    if (m->moving[from] < 0) return changes;
    for (int32_t at = from, body = 0; at < end && m->moving[at] >= 0; at += m->length[at], body++)
        if (body % (TB_GPU_SOFT_THREADS / WARP) == warp_of())
            changes |= visit_moving(m, m->moving + at, m->length[at], friction, first);
    __syncthreads();
    for (int32_t i = from + own; i < end && axis < 3; i += QUADS)
        if (m->contacts[i].rigid >= 0)
            push_nodes(m, &m->contacts[i], axis,
                       tb_soft_sweep_impulse(&m->contacts[i], axis, m->change[i]));
    __syncthreads();
    return changes;
}

TB_CARD void sweep_in_block(const tb_soft_sweeps *s, int32_t colours, int32_t rigids,
                            block_memory *m)
{
    const int32_t contacts = s->colours[colours];
    bring_contacts(s, colours, rigids, m);
    for (int32_t n = 0, settled = 0; n <= TB_SOFT_SWEEPS && settled < TB_SOFT_SETTLED; n++) {
        bool changes = false;
        for (int32_t c = 0; c < colours; c++)
            if (s->colours[c] < s->colours[c + 1])
                changes |=
                    visit_colour_in_block(m, s->colours[c], s->colours[c + 1], s->friction, n == 0);
        if (changes) atomicMax(&m->changed, n);
        __syncthreads();
        settled = n - m->changed;
        __syncthreads(); /* all have read it before the next sweep writes */
    }
    for (int32_t i = (int32_t)threadIdx.x; i < contacts; i += TB_GPU_SOFT_THREADS) {
        s->contacts[i].alpha = m->contacts[i].alpha;
        for (int k = 0; k < 2; k++) s->contacts[i].beta[k] = m->contacts[i].beta[k];
        s->contacts[i].active = m->contacts[i].active;
    }
}

#endif
