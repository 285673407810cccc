/* The contacts of a substep and their staggered projections on a GPU (grid/programs.c, nodes/projections.h): a contact,
 * or a contact's place of a node, a lane. Contacts are numbered by their keys, and lists of the contacts of
 * a node ascend, so that every sum has the processor's order. Double only. */
#ifndef TB_SINGLE
#include "gpu/grid/fields.h"
#include "qp/facet_coordinates.h"

#ifndef TB_CARD /* a test on the processor has its own */
#define TB_CARD static __device__
#endif

enum { TWIST = TB_SOFT_TWIST };
enum { PLACES = TB_SOFT_MOST_ENTRIES, PARITIES = 8, SUMMED = TB_GPU_SOFT_SUMMED, PARTS = TB_GPU_SOFT_PARTS };

TB_CARD const tb_gpu_soft_rows *rows_of(const tb_gpu_soft_contacts *c, int32_t i)
{
    return c->rows + c->p.order[i];
}

/* Entries of a contact that are of nodes; the others are the halves of its rigid body. */
TB_CARD int32_t nodes_of(const tb_gpu_soft_rows *r)
{
    return r->rigid >= 0 ? r->count - 2 : r->count;
}

/* ---- numbers and places ---- */

TB_CARD void put_key(const tb_gpu_soft_contacts *c, int32_t i)
{
    c->p.key[i] = c->rows[i].moves ? c->found[i].contact.key : UINT64_MAX;
}

/* A cell's number is that of the cells with lower keys. */
TB_CARD void number_cell(const tb_gpu_soft_projections *p, int32_t i)
{
    const uint64_t key = p->key[i];
    int32_t rank = 0;
    if (key == UINT64_MAX) return;
#pragma unroll 8
    for (int32_t j = 0; j < p->found; j++) rank += p->key[j] < key;
    p->order[rank] = i;
    atomicAdd(&p->counts->contacts, 1);
}

/* grid/programs.c: recall, gap_velocity */
TB_CARD void recall(const tb_gpu_soft *g, int32_t i)
{
    const tb_gpu_soft_projections *p = &g->contacts.p;
    tb_soft_contact c = g->contacts.found[p->order[i]].contact;
    int32_t low = 0, high = p->befores;
    double rate = 1e300;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (p->before[middle].key < c.key)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < p->befores && p->before[low].key == c.key && p->sets != TB_SOFT_SETS_EMPTY) {
        c.alpha = p->before[low].alpha;
        c.beta[0] = p->before[low].beta[0], c.beta[1] = p->before[low].beta[1];
        if (p->sets == TB_SOFT_SETS_RECALLED) c.active = p->before[low].active;
    }
    rate = tb_min(rate, p->push_rate[c.a]);
    if (c.b < g->bodies) rate = tb_min(rate, p->push_rate[c.b]);
    p->gap_velocity[i] = tb_soft_gap_velocity(c.gap, p->dt, p->least_spacing, rate);
    p->number[i] = -1;
    p->partner[i] = rows_of(&g->contacts, i)->rigid;
    p->contact[i] = c;
}

/* The place of a node among a contact's, or -1. */
TB_CARD int32_t find_place(const tb_gpu_soft_contacts *c, int32_t i, uint64_t key)
{
    const tb_gpu_soft_rows *r = rows_of(c, i);
    for (int32_t e = 0; e < r->count; e++)
        if (r->key[e] == key) return PLACES * i + e;
    return -1;
}

/* Links a half of a rigid body: it has the contacts that move the body. */
TB_CARD void link_half(const tb_gpu_soft_contacts *c, int32_t i, int32_t e)
{
    const tb_gpu_soft_projections *p = &c->p;
    const int32_t half = e - nodes_of(rows_of(c, i)), contacts = p->counts->contacts;
    int32_t first = 0, next = i + 1;
    while (p->partner[first] != p->partner[i]) first++;
    while (next < contacts && p->partner[next] != p->partner[i]) next++;
    p->owner[PLACES * i + e] = PLACES * first + nodes_of(rows_of(c, first)) + half;
    p->next[PLACES * i + e] =
        next < contacts ? PLACES * next + nodes_of(rows_of(c, next)) + half : -1;
    atomicMax(&p->counts->reach[0], i - first);
}

/* The contacts of a node are those of the eight cells around it; cells in the order of their keys. */
TB_CARD void link_node(const tb_gpu_soft *g, int32_t i, int32_t e)
{
    const tb_gpu_soft_contacts *c = &g->contacts;
    const tb_gpu_soft_projections *p = &c->p;
    const uint64_t key = rows_of(c, i)->key[e];
    const int64_t node = (int64_t)(key % g->nodes), *stride = g->space.stride;
    const int64_t at[3] = {node % stride[1], node % stride[2] / stride[1], node / stride[2]};
    const int32_t contacts = p->counts->contacts;
    int32_t owner = -1, next = -1;
    for (int corner = PARITIES - 1; corner >= 0 && next < 0; corner--) {
        const int64_t x = corner >> 2 & 1, y = corner >> 1 & 1, z = corner & 1;
        const int64_t cell = node - x * stride[0] - y * stride[1] - z * stride[2];
        if (at[0] < x || at[1] < y || at[2] < z || p->cell[cell] < 0) continue;
        for (int32_t j = p->cell[cell]; j < contacts && next < 0; j++) {
            if (p->contact[j].cell != cell) break;
            if (owner >= 0 && j <= i) continue;
            const int32_t place = find_place(c, j, key);
            if (place >= 0 && owner < 0) owner = place;
            if (place >= 0 && j > i) next = place;
        }
    }
    p->owner[PLACES * i + e] = owner;
    p->next[PLACES * i + e] = next;
    atomicMax(&p->counts->reach[0], i - owner / PLACES);
}

TB_CARD void link_place(const tb_gpu_soft *g, int32_t i, int32_t e)
{
    if (e < nodes_of(rows_of(&g->contacts, i)))
        link_node(g, i, e);
    else
        link_half(&g->contacts, i, e);
}

/* ---- sweeps ---- */

/* How many contacts of the cell come before. */
TB_CARD int32_t rank_in_cell(const tb_gpu_soft_projections *p, int32_t i)
{
    return i - p->cell[p->contact[i].cell];
}

/* grid/warm/sweeps.c: list_colours */
TB_CARD int32_t colour_of(const tb_gpu_soft *g, int32_t i)
{
    const int64_t cell = g->contacts.p.contact[i].cell, *stride = g->space.stride;
    const int64_t x = cell % stride[1], y = cell % stride[2] / stride[1], z = cell / stride[2];
    return PARITIES * rank_in_cell(&g->contacts.p, i) + (int32_t)(x % 2 + y % 2 * 2 + z % 2 * 4);
}

/* Positions by colour; the order in a colour does not matter where its contacts have nothing in common. */
TB_CARD void order_by_colour(const tb_gpu_soft *g)
{
    const tb_gpu_soft_projections *p = &g->contacts.p;
    const int32_t contacts = p->counts->contacts, lane = (int32_t)threadIdx.x;
    int32_t *first = g->contacts.sweeps.colours;
    for (int32_t i = lane; i < contacts; i += TB_GPU_SOFT_THREADS)
        atomicMax(&p->counts->ranks, rank_in_cell(p, i));
    __syncthreads();
    const int32_t colours = PARITIES * (*(volatile int32_t *)&p->counts->ranks + 1);
    for (int32_t k = lane; k <= colours; k += TB_GPU_SOFT_THREADS) first[k] = 0;
    __syncthreads();
    for (int32_t i = lane; i < contacts; i += TB_GPU_SOFT_THREADS) {
        p->colour[i] = colour_of(g, i);
        atomicAdd(&first[p->colour[i] + 1], 1);
    }
    __syncthreads();
    if (lane == 0) {
        for (int32_t k = 0; k < colours; k++) {
            p->cursor[k] = first[k];
            first[k + 1] += first[k];
        }
        p->counts->colours = colours;
    }
    __syncthreads();
    for (int32_t i = lane; i < contacts; i += TB_GPU_SOFT_THREADS)
        p->position[i] = atomicAdd(&p->cursor[p->colour[i]], 1);
}

/* Rigid bodies get the changes by a colour in the order of its contacts. */
TB_CARD void order_in_colour(const tb_gpu_soft *g, int32_t i)
{
    const tb_gpu_soft_projections *p = &g->contacts.p;
    int32_t before = 0;
    for (int32_t j = 0; j < i; j++) before += p->colour[j] == p->colour[i];
    p->position[i] = g->contacts.sweeps.colours[p->colour[i]] + before;
}

/* grid/warm/sweeps.c: split_rigid */
TB_CARD void split_rigid(const tb_gpu_soft *g, int32_t i, tb_soft_swept *x)
{
    const tb_gpu_soft_projections *p = &g->contacts.p;
    const int32_t contacts = p->counts->contacts;
    int32_t all = 0;
    x->rank = x->parts = 0;
    if (p->partner[i] < 0) return;
    for (int32_t j = 0; j < contacts; j++) {
        const bool same = p->colour[j] == p->colour[i] && p->partner[j] == p->partner[i];
        x->rank += same && j < i;
        all += same;
    }
    x->parts = tb_soft_parts(x->rank, all, tb_soft_sweeps_are_few(contacts, g->contacts.rigids));
}

/* grid/links.c: tb_soft_links_slip */
TB_CARD void find_base(const tb_gpu_soft *g, int32_t i, double base[3])
{
    const tb_gpu_soft_rows *r = rows_of(&g->contacts, i);
    const tb_soft_card_found *found = g->contacts.found + g->contacts.p.order[i];
    const tb_soft_contact *c = &g->contacts.p.contact[i];
    for (int d = 0; d < 3; d++) base[d] = 0;
    /* y of rigid bodies is 0 */
    for (int32_t e = 0; e < nodes_of(r); e++) {
        const double *v =
            g->fields[r->key[e] / g->nodes].v + 3 * (int64_t)(r->key[e] % g->nodes);
        for (int d = 0; d < 3; d++) base[d] += tb_soft_dot(r->row[d][e], v);
    }
    for (int side = 0; side < 2; side++) {
        const int32_t who = side == 0 ? c->a : c->b;
        if (who >= g->bodies || g->fields[who].held == NULL) continue;
        for (int k = 0; k < 8; k++) {
            const double weight = side == 0 ? c->weights[0][k] : -c->weights[1][k];
            if (found->held[side][k] == 0) continue;
            for (int d = 0; d < 3; d++)
                base[d] += weight * tb_soft_dot(tb_soft_direction(c, d), found->v[side][k]);
        }
    }
    if (c->b < g->bodies) return;
    const tb_soft_card_obstacle *o = g->contacts.obstacle + (c->b - g->bodies);
    double velocity[3] = {o->velocity[0], o->velocity[1], o->velocity[2]};
    if (o->rigid >= 0) {
        const tb_soft_partner *partner = g->contacts.rigid + o->rigid;
        tb_soft_partner_velocity(partner->centre, partner->twist, c->point, velocity);
    }
    for (int d = 0; d < 3; d++) base[d] -= tb_soft_dot(tb_soft_direction(c, d), velocity);
}

/* grid/warm/sweeps.c: list_contacts */
TB_CARD void put_swept(const tb_gpu_soft *g, int32_t i)
{
    const tb_gpu_soft_projections *p = &g->contacts.p;
    const tb_gpu_soft_rows *r = rows_of(&g->contacts, i);
    const tb_soft_contact *c = p->contact + i;
    tb_soft_swept *x = g->contacts.sweeps.contacts + p->position[i];
    find_base(g, i, p->base + 3 * i);
    for (int d = 0; d < 3; d++) {
        x->base[d] = p->base[3 * i + d];
        for (int a = 0; a < 3; a++) x->direction[d][a] = tb_soft_direction(c, d)[a];
    }
    x->gap_velocity = p->gap_velocity[i];
    x->alpha = c->alpha;
    x->beta[0] = c->beta[0], x->beta[1] = c->beta[1];
    x->contact = i;
    x->first = PLACES * i, x->last = PLACES * i + nodes_of(r);
    x->active = c->active;
    x->rigid = p->partner[i];
    split_rigid(g, i, x);
    for (int32_t e = 0; e < nodes_of(r); e++)
        g->contacts.sweeps.shares[PLACES * i + e] =
            (tb_soft_share){r->weight[e], r->inverse_mass[e], p->owner[PLACES * i + e]};
    for (int half = 0; half < 2 && r->rigid >= 0; half++) tb_soft_sweep_half(x, half, r->map[half]);
}

TB_CARD void clear_parts(const tb_gpu_soft_projections *p, int32_t i)
{
    for (int q = 0; q < PARTS; q++) p->part[PARTS * i + q] = 0;
}

TB_CARD void put_pushed(const tb_gpu_soft *g, int32_t i)
{
    const tb_gpu_soft_projections *p = &g->contacts.p;
    clear_parts(p, i);
    p->part[PARTS * i] = tb_soft_pushed(g->contacts.sweeps.contacts[p->position[i]].alpha,
                                        p->gap_velocity[i]);
}

/* grid/programs.c: sweep */
TB_CARD void slow_down(const tb_gpu_soft *g, int32_t i)
{
    const tb_gpu_soft_projections *p = &g->contacts.p;
    if (!p->counts->slower || !(p->gap_velocity[i] < 0)) return;
    p->gap_velocity[i] *= p->most_pushed / p->counts->sum[0];
    g->contacts.sweeps.contacts[p->position[i]].gap_velocity = p->gap_velocity[i];
}

TB_CARD void take_swept(const tb_gpu_soft *g, int32_t i)
{
    tb_soft_contact *c = g->contacts.p.contact + i;
    const tb_soft_swept *x = g->contacts.sweeps.contacts + g->contacts.p.position[i];
    c->alpha = x->alpha;
    c->beta[0] = x->beta[0], c->beta[1] = x->beta[1];
    c->active = x->active;
}

/* ---- programs ---- */

/* Rows as bounds: of (C) one a contact, of (F) four in the coordinates of facets, two of the sum and two of the
 * difference. */
TB_CARD void open_rows(const tb_gpu_soft_projections *p, int32_t i)
{
    const int32_t at = p->columns == 1 ? i : p->number[i], rows = p->columns * p->columns;
    if (at < 0) return;
    for (int32_t k = 0; k < rows; k++) {
        const int32_t row = rows * at + k;
        p->value[row] = p->columns == 1 || k % 2 == 1 ? -1 : 1;
        p->row_of[row] = row;
        if (p->columns == 1) p->b[row] = 0;
        p->active[row] = p->first[row] = p->contact[i].active >> (p->columns - 1 + k) & 1;
    }
    for (int32_t k = 0; k < p->columns; k++)
        p->row_first[p->columns * at + k] = rows * at + p->columns * k;
    const int32_t all = p->columns == 1 ? p->counts->contacts : p->counts->sliding;
    if (at == all - 1) p->row_first[p->columns * all] = rows * all;
}

/* grid/links.c: tb_soft_links_impulses, for one node */
TB_CARD void gather(const tb_gpu_soft_contacts *c, int32_t place)
{
    const tb_gpu_soft_projections *p = &c->p;
    double sum[3] = {0, 0, 0};
    if (p->owner[place] != place || place % PLACES >= nodes_of(rows_of(c, place / PLACES))) return;
    for (int32_t s = place; s >= 0; s = p->next[s]) {
        double impulse[3], row[3];
        tb_soft_contact_impulse(p->contact + s / PLACES, p->normal, p->tangential, impulse);
        tb_soft_row(rows_of(c, s / PLACES)->weight[s % PLACES], NULL, impulse, row);
        for (int a = 0; a < 3; a++) sum[a] += row[a];
    }
    for (int a = 0; a < 3; a++) p->impulse[p->from][3 * (int64_t)place + a] = sum[a];
}

/* The same for a rigid body. One block: a lane has a contact, and six lanes add its numbers up in order. */
TB_CARD void gather_halves(const tb_gpu_soft_contacts *c, int32_t rigid, double *numbers)
{
    const tb_gpu_soft_projections *p = &c->p;
    const int32_t contacts = p->counts->contacts, lane = (int32_t)threadIdx.x;
    double *own = numbers + TWIST * lane, sum = 0;
    int32_t first = -1;
    for (int32_t from = 0; from < contacts; from += TB_GPU_SOFT_THREADS) {
        const int32_t i = from + lane, rest = contacts - from;
        const int32_t many = rest < TB_GPU_SOFT_THREADS ? rest : TB_GPU_SOFT_THREADS;
        const bool has = i < contacts && p->partner[i] == rigid;
        for (int k = 0; k < TWIST; k++) own[k] = 0;
        if (has) {
            double impulse[3];
            tb_soft_contact_impulse(p->contact + i, p->normal, p->tangential, impulse);
            for (int half = 0; half < 2; half++)
                tb_soft_row(1, rows_of(c, i)->map[half], impulse, own + 3 * half);
        }
        __syncthreads();
        for (int32_t k = 0; k < many && lane < TWIST; k++) {
            if (first < 0 && p->partner[from + k] == rigid) first = from + k;
            sum += numbers[TWIST * k + lane];
        }
        __syncthreads();
    }
    if (first < 0) return;
    const int64_t place = PLACES * first + nodes_of(rows_of(c, first));
    p->impulse[p->from][3 * place + lane] = sum;
}

/* grid/programs.c: slip_with */
TB_CARD void respond(const tb_gpu_soft_contacts *c, int32_t i, double slip[3])
{
    const tb_gpu_soft_projections *p = &c->p;
    const tb_gpu_soft_rows *r = rows_of(c, i);
    for (int d = 0; d < 3; d++) slip[d] = p->base[3 * i + d];
    for (int32_t e = 0; e < r->count; e++) {
        const double *impulse = p->impulse[p->from] + 3 * (int64_t)p->owner[PLACES * i + e];
        for (int d = 0; d < 3; d++)
            slip[d] += r->inverse_mass[e] * tb_soft_dot(r->row[d][e], impulse);
    }
}

TB_CARD void put_force(const tb_gpu_soft_contacts *c, int32_t i)
{
    const tb_gpu_soft_projections *p = &c->p;
    const int32_t at = p->columns == 1 ? i : p->number[i];
    double slip[3];
    if (at < 0) return;
    respond(c, i, slip);
    if (p->columns == 1) {
        p->f[i] = slip[0] + p->gap_velocity[i];
        return;
    }
    tb_qp_turn_two(&slip[1], &slip[2]);
    for (int k = 0; k < 2; k++) p->f[2 * at + k] = slip[1 + k];
    for (int k = 0; k < 4; k++) p->b[4 * at + k] = c->sweeps.friction * p->contact[i].alpha;
}

TB_CARD void take_answer(const tb_gpu_soft_projections *p, int32_t i)
{
    tb_soft_contact *c = p->contact + i;
    if (p->columns == 1) {
        c->alpha = tb_max(p->x[i], 0.0);
        c->active = (c->active & ~1u) | (p->active[i] != 0);
        return;
    }
    const int32_t at = p->number[i];
    c->active &= 1;
    if (at < 0) return;
    for (int k = 0; k < 2; k++) c->beta[k] = p->x[2 * at + k];
    tb_qp_turn_two(&c->beta[0], &c->beta[1]);
    for (int k = 0; k < 4; k++)
        if (p->active[4 * at + k]) c->active |= 2u << k;
}

/* grid/programs.c: choose_cells. One block; a lane has a piece of the contacts. */
TB_CARD void choose_cells(const tb_gpu_soft_projections *p, double *largest, int32_t *before)
{
    const int32_t contacts = p->counts->contacts, lane = (int32_t)threadIdx.x;
    const int32_t piece = (contacts + TB_GPU_SOFT_THREADS - 1) / TB_GPU_SOFT_THREADS;
    const int32_t from = lane * piece < contacts ? lane * piece : contacts;
    const int32_t to = from + piece < contacts ? from + piece : contacts;
    double own = 0;
    for (int32_t i = from; i < to; i++) own = tb_max(own, p->contact[i].alpha);
    largest[lane] = own;
    if (lane == 0) p->counts->others = p->counts->reach[1] = 0;
    __syncthreads();
    double all = 0;
    for (int32_t k = 0; k < TB_GPU_SOFT_THREADS; k++) all = tb_max(all, largest[k]);
    int32_t have = 0, others = 0;
    for (int32_t i = from; i < to; i++) {
        const bool has = p->contact[i].alpha > TB_SOFT_SMALLEST_IMPULSE * all;
        have += has;
        others += has != (p->number[i] >= 0);
    }
    before[lane] = have;
    if (others > 0) atomicAdd(&p->counts->others, others);
    __syncthreads();
    int32_t n = 0;
    for (int32_t k = 0; k < lane; k++) n += before[k];
    for (int32_t i = from; i < to; i++) {
        const bool has = p->contact[i].alpha > TB_SOFT_SMALLEST_IMPULSE * all;
        if (has)
            p->which[n] = p->order[i];
        else
            p->contact[i].beta[0] = p->contact[i].beta[1] = 0;
        p->number[i] = has ? n++ : -1;
    }
    if (lane == TB_GPU_SOFT_THREADS - 1) p->counts->sliding = n;
}

TB_CARD void find_reach(const tb_gpu_soft_projections *p, int32_t place)
{
    const int32_t number = p->number[place / PLACES];
    int32_t s = p->owner[place];
    if (number < 0) return;
    while (p->number[s / PLACES] < 0) s = p->next[s];
    atomicMax(&p->counts->reach[1], number - p->number[s / PLACES]);
}

/* The squares of friction's node impulses before and now, and of their difference, tb_soft_links_product. */
TB_CARD void put_squares(const tb_gpu_soft_contacts *c, int32_t i)
{
    const tb_gpu_soft_projections *p = &c->p;
    const tb_gpu_soft_rows *r = rows_of(c, i);
    double *part = p->part + PARTS * i;
    clear_parts(p, i);
    for (int32_t e = 0; e < r->count; e++) {
        const int32_t place = PLACES * i + e;
        double change[3];
        if (p->owner[place] != place) continue;
        const double *before = p->impulse[1] + 3 * (int64_t)place;
        const double *now = p->impulse[2] + 3 * (int64_t)place;
        for (int a = 0; a < 3; a++) change[a] = before[a] - now[a];
        part[0] += r->inverse_mass[e] * tb_soft_dot(before, before);
        part[1] += r->inverse_mass[e] * tb_soft_dot(now, now);
        part[2] += r->inverse_mass[e] * tb_soft_dot(change, change);
    }
}

TB_CARD void count_sets(const tb_gpu_soft_projections *p, int32_t i)
{
    const int32_t at = p->columns == 1 ? i : p->number[i], rows = p->columns * p->columns;
    int32_t active = 0, warm = 0;
    if (at < 0) return;
    for (int32_t row = rows * at; row < rows * at + rows; row++) {
        active += p->active[row] != 0;
        warm += p->active[row] != 0 && p->first[row] != 0;
    }
    if (active > 0) atomicAdd(&p->counts->active[p->columns - 1], active);
    if (warm > 0) atomicAdd(&p->counts->warm[p->columns - 1], warm);
}

/* ---- the result ---- */

TB_CARD bool is_free(const tb_gpu_soft *g, int32_t who)
{
    return who < g->bodies && g->fields[who].held == NULL;
}

/* grid/programs.c: cone_error, apply. A contact moves the nodes that it owns. */
TB_CARD void apply(const tb_gpu_soft *g, int32_t i)
{
    const tb_gpu_soft_projections *p = &g->contacts.p;
    const tb_gpu_soft_rows *r = rows_of(&g->contacts, i);
    const tb_soft_contact *c = p->contact + i;
    double *part = p->part + PARTS * i, slip[3], impulse[3];
    clear_parts(p, i);
    respond(&g->contacts, i, slip);
    for (int32_t e = 0; e < r->count; e++) {
        const int32_t place = PLACES * i + e, half = e - nodes_of(r);
        if (p->owner[place] != place) continue;
        double *v = half < 0
                        ? g->fields[r->key[e] / g->nodes].v + 3 * (int64_t)(r->key[e] % g->nodes)
                        : p->answers + TB_GPU_SOFT_ANSWERS * (int64_t)r->rigid + 3 * half;
        for (int a = 0; a < 3; a++) {
            const double push = p->impulse[p->from][3 * (int64_t)place + a];
            const double step = push * r->inverse_mass[e];
            if (half < 0) part[0] += push * (v[a] + 0.5 * step);
            v[a] += step;
        }
    }
    tb_soft_contact_impulse(c, true, true, impulse);
    for (int a = 0; a < 3; a++)
        part[1 + a] = tb_soft_external(is_free(g, c->a), is_free(g, c->b), impulse[a]);
    part[4] = tb_soft_pushed(c->alpha, p->gap_velocity[i]);
    part[5] = -c->gap;
    part[6] = tb_soft_cone_distance(c, r->diagonal, slip, p->gap_velocity[i],
                                    g->contacts.sweeps.friction);
}

/* grid/programs.c: push_rigid. One block, as gather_halves. */
TB_CARD void push_rigid(const tb_gpu_soft *g, int32_t rigid, double *numbers)
{
    const tb_gpu_soft_contacts *c = &g->contacts;
    const tb_gpu_soft_projections *p = &c->p;
    const int32_t contacts = p->counts->contacts, lane = (int32_t)threadIdx.x;
    double *own = numbers + TWIST * lane;
    tb_soft_run_sum sum = {0, 0};
    for (int32_t from = 0; from < contacts; from += TB_GPU_SOFT_THREADS) {
        const int32_t i = from + lane, rest = contacts - from;
        const int32_t many = rest < TB_GPU_SOFT_THREADS ? rest : TB_GPU_SOFT_THREADS;
        if (i < contacts) {
            const tb_soft_contact *t = p->contact + i;
            tb_soft_contact_wrench(&g->space, t, c->found[p->order[i]].held[0], c->followed,
                                   t->b < g->bodies ? -1 : c->obstacle[t->b - g->bodies].rigid,
                                   rigid, c->rigid[rigid].centre, own);
        }
        __syncthreads();
        for (int32_t k = 0; k < many && lane < TWIST; k++)
            tb_soft_run_add(&sum, from + k, numbers[TWIST * k + lane]);
        __syncthreads();
    }
    if (lane < TWIST)
        p->answers[TB_GPU_SOFT_ANSWERS * (int64_t)rigid + TWIST + lane] = tb_soft_run_end(&sum);
}

/* nodes/projections.h: runs, and the runs in order; maxima begin with 0 */
TB_CARD void add_up(const tb_gpu_soft_projections *p)
{
    const int32_t contacts = p->counts->contacts, lane = (int32_t)threadIdx.x;
    const int32_t runs = (contacts + TB_SOFT_CONTACT_RUN - 1) / TB_SOFT_CONTACT_RUN;
    for (int32_t t = lane; t < PARTS * runs; t += TB_GPU_SOFT_THREADS) {
        const int32_t q = t % PARTS, from = t / PARTS * TB_SOFT_CONTACT_RUN;
        const int32_t rest = contacts - from;
        const int32_t to = from + (rest < TB_SOFT_CONTACT_RUN ? rest : TB_SOFT_CONTACT_RUN);
        double sum = 0;
#pragma unroll 8
        for (int32_t i = from; i < to; i++) {
            const double part = p->part[PARTS * i + q];
            sum = q < SUMMED ? sum + part : tb_max(sum, part);
        }
        p->run[t] = sum;
    }
    __syncthreads();
    if (lane >= PARTS) return;
    double sum = 0;
#pragma unroll 8
    for (int32_t k = 0; k < runs; k++) {
        const double run = p->run[PARTS * k + lane];
        sum = lane < SUMMED ? sum + run : tb_max(sum, run);
    }
    p->counts->sum[lane] = sum;
    if (lane == 0) p->counts->slower = sum > p->most_pushed;
}

/* ---- launches ---- */

extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_by_contact(const __grid_constant__ tb_gpu_soft g)
{
    const tb_gpu_soft_projections *p = &g.contacts.p;
    const int32_t apart = (int32_t)(gridDim.x * TB_GPU_SOFT_THREADS);
    for (int32_t i = (int32_t)(blockIdx.x * TB_GPU_SOFT_THREADS + threadIdx.x); i < p->found;
         i += apart) {
        if (p->stage == TB_GPU_SOFT_KEYS) {
            put_key(&g.contacts, i);
        } else if (p->stage == TB_GPU_SOFT_NUMBER) {
            number_cell(p, i);
        } else if (i < p->counts->contacts) {
            switch (p->stage) {
            case TB_GPU_SOFT_RECALL: recall(&g, i); break;
            case TB_GPU_SOFT_CELLS:
                if (i == 0 || p->contact[i - 1].cell != p->contact[i].cell)
                    p->cell[p->contact[i].cell] = i;
                break;
            case TB_GPU_SOFT_ORDER: order_in_colour(&g, i); break;
            case TB_GPU_SOFT_SWEPT: put_swept(&g, i); break;
            case TB_GPU_SOFT_PUSHED: put_pushed(&g, i); break;
            case TB_GPU_SOFT_SLOWER: slow_down(&g, i); break;
            case TB_GPU_SOFT_BACK: take_swept(&g, i); break;
            case TB_GPU_SOFT_OPEN: open_rows(p, i); break;
            case TB_GPU_SOFT_FORCE: put_force(&g.contacts, i); break;
            case TB_GPU_SOFT_ANSWER: take_answer(p, i); break;
            case TB_GPU_SOFT_TEST: put_squares(&g.contacts, i); break;
            case TB_GPU_SOFT_SETS: count_sets(p, i); break;
            default: apply(&g, i);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_by_place(const __grid_constant__ tb_gpu_soft g)
{
    const tb_gpu_soft_projections *p = &g.contacts.p;
    const int32_t apart = (int32_t)(gridDim.x * TB_GPU_SOFT_THREADS);
    for (int32_t s = (int32_t)(blockIdx.x * TB_GPU_SOFT_THREADS + threadIdx.x);
         s < PLACES * p->found; s += apart) {
        const int32_t i = s / PLACES;
        if (i >= p->counts->contacts || s % PLACES >= rows_of(&g.contacts, i)->count) continue;
        switch (p->stage) {
        case TB_GPU_SOFT_PLACES: link_place(&g, i, s % PLACES); break;
        case TB_GPU_SOFT_REACH: find_reach(p, s); break;
        default: gather(&g.contacts, s);
        }
    }
}

extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_by_one_block(const __grid_constant__ tb_gpu_soft g)
{
#ifdef __CUDACC__
    extern __shared__ __align__(16) unsigned char shared_bytes[];
#endif
    double *numbers = (double *)(void *)shared_bytes;
    switch (g.contacts.p.stage) {
    case TB_GPU_SOFT_COLOURS: order_by_colour(&g); break;
    case TB_GPU_SOFT_CHOOSE:
        choose_cells(&g.contacts.p, numbers, (int32_t *)(numbers + TB_GPU_SOFT_THREADS));
        break;
    default: add_up(&g.contacts.p);
    }
}

extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_by_rigid(const __grid_constant__ tb_gpu_soft g)
{
#ifdef __CUDACC__
    extern __shared__ __align__(16) unsigned char shared_bytes[];
#endif
    double *numbers = (double *)(void *)shared_bytes;
    if (g.contacts.p.stage == TB_GPU_SOFT_HALVES)
        gather_halves(&g.contacts, (int32_t)blockIdx.x, numbers);
    else
        push_rigid(&g, (int32_t)blockIdx.x, numbers);
}

extern "C" cudaError_t tb_gpu_soft_project(const tb_gpu_soft *soft, tb_gpu_soft_stage stage,
                                           int32_t processors, cudaStream_t stream)
{
    tb_gpu_soft g = *soft;
    void *arguments[] = {&g};
    const dim3 threads((unsigned)TB_GPU_SOFT_THREADS);
    const bool places = stage == TB_GPU_SOFT_PLACES || stage == TB_GPU_SOFT_REACH ||
                        stage == TB_GPU_SOFT_GATHER;
    const int64_t lanes = (int64_t)g.contacts.p.found * (places ? PLACES : 1);
    const int64_t wanted = (lanes + TB_GPU_SOFT_THREADS - 1) / TB_GPU_SOFT_THREADS;
    const int64_t most = (int64_t)processors * TB_GPU_SOFT_BLOCKS;
    static_assert(sizeof g <= 4096, "arguments of a kernel");
    g.contacts.p.stage = stage;
    if (stage == TB_GPU_SOFT_COLOURS || stage == TB_GPU_SOFT_CHOOSE || stage == TB_GPU_SOFT_SUM)
        return cudaLaunchKernel((const void *)tb_gpu_soft_by_one_block, dim3(1), threads, arguments,
                                (size_t)TB_GPU_SOFT_THREADS * (sizeof(double) + sizeof(int32_t)),
                                stream);
    if (stage == TB_GPU_SOFT_HALVES || stage == TB_GPU_SOFT_WRENCHES)
        return cudaLaunchKernel((const void *)tb_gpu_soft_by_rigid,
                                dim3((unsigned)g.contacts.rigids), threads, arguments,
                                (size_t)TB_GPU_SOFT_THREADS * TWIST * sizeof(double), stream);
    return cudaLaunchKernel(places ? (const void *)tb_gpu_soft_by_place
                                   : (const void *)tb_gpu_soft_by_contact,
                            dim3((unsigned)(wanted < most ? wanted : most)), threads, arguments, 0,
                            stream);
}
#endif
