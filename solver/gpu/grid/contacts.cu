/* Contacts of soft bodies on a GPU: the search for cells in contact (nodes/touch.h), a cell a lane, J, T and H of
 * their programs (nodes/links.h), and the velocities that contact impulses change. Found cells lie in no order; the host sorts them by their
 * keys, so that nothing depends on the order in which lanes find them. Double only. */
#ifndef TB_SINGLE
#include "gpu/grid/fields.h"
#include "grid/nodes/touch.h"
#include "qp/facet_coordinates.h"

#ifndef TB_CARD /* a test on the processor has its own */
#define TB_CARD static __device__
#endif

/* The pair that a cell belongs to: the last one that begins at or before it. */
TB_CARD const tb_soft_card_pair *pair_of_cell(const tb_gpu_soft_contacts *c, int64_t cell)
{
    int32_t low = 0, high = c->pairs - 1;
    while (low < high) {
        const int32_t middle = (low + high + 1) / 2;
        if (c->pair[middle].first <= cell)
            low = middle;
        else
            high = middle - 1;
    }
    return c->pair + low;
}

TB_CARD tb_soft_side side_of(const tb_gpu_soft *g, int32_t who)
{
    tb_soft_side side;
    const bool is_body = who < g->bodies;
    const tb_soft_card_obstacle *o = g->contacts.obstacle + (is_body ? 0 : who - g->bodies);
    side.field = is_body ? g->fields + who : NULL;
    side.solid = is_body ? &g->body[who].shape : &o->solid;
    side.density = is_body ? g->body[who].material.density : 0;
    side.moves = !is_body && o->rigid >= 0 && g->contacts.rigid[o->rigid].moves;
    return side;
}

/* Masses, velocities and held nodes at the corners of a found cell on one side. */
TB_CARD void put_corners(const tb_gpu_soft *g, const tb_soft_field *f, int side,
                         tb_soft_card_found *found)
{
    for (int c = 0; c < 8; c++) {
        found->mass[side][c] = 0;
        found->held[side][c] = 0;
        for (int a = 0; a < 3; a++) found->v[side][c][a] = 0;
        if (f == NULL) continue;
        const int32_t n = tb_soft_corner_of(&g->space, found->contact.cell, c);
        found->mass[side][c] = f->mass[n];
        if (f->held != NULL) found->held[side][c] = f->held[n];
        for (int a = 0; a < 3; a++) found->v[side][c][a] = f->v[3 * (int64_t)n + a];
    }
}

extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_touch(const __grid_constant__ tb_gpu_soft g)
{
    const tb_gpu_soft_contacts *c = &g.contacts;
    const int64_t apart = (int64_t)gridDim.x * TB_GPU_SOFT_THREADS;
    for (int64_t cell = (int64_t)blockIdx.x * TB_GPU_SOFT_THREADS + threadIdx.x; cell < c->cells;
         cell += apart) {
        const tb_soft_card_pair pair = *pair_of_cell(c, cell);
        const int64_t own = cell - pair.first;
        const int32_t wide = pair.upper[0] - pair.lower[0], deep = pair.upper[1] - pair.lower[1];
        const int32_t at[3] = {pair.lower[0] + (int32_t)(own % wide),
                               pair.lower[1] + (int32_t)(own / wide % deep),
                               pair.lower[2] + (int32_t)(own / wide / deep)};
        const tb_soft_side a = side_of(&g, pair.a), b = side_of(&g, pair.b);
        tb_soft_contact contact;
        if (!tb_soft_touch(&g.space, &a, &b, at, &contact)) continue;
        const int32_t slot = atomicAdd(c->count, 1);
        if (slot >= c->capacity) continue;
        contact.a = pair.a;
        contact.b = pair.b;
        contact.key =
            tb_soft_contact_key(&g.space, at, pair.a, pair.b, g.bodies, g.bodies + c->obstacles);
        c->found[slot].contact = contact;
        put_corners(&g, a.field, 0, &c->found[slot]);
        put_corners(&g, b.field, 1, &c->found[slot]);
    }
}

/* ---- H ---- */

/* Adds an entry with its rows of the normal and of the tangents. */
TB_CARD void put_entry(tb_gpu_soft_rows *r, uint64_t key, double inverse_mass, double weight,
                       const double *map, const tb_soft_contact *contact)
{
    const int32_t e = r->count++;
    r->key[e] = key;
    r->inverse_mass[e] = inverse_mass;
    r->weight[e] = weight;
    for (int d = 0; d < 3; d++)
        tb_soft_row(weight, map, tb_soft_direction(contact, d), r->row[d][e]);
}

/* grid/links.c: entries of one side of a cell, in the order of their keys */
TB_CARD void put_side(const tb_gpu_soft *g, const tb_soft_card_found *found, int side,
                      tb_gpu_soft_rows *r)
{
    const tb_soft_contact *c = &found->contact;
    const int32_t who = side == 0 ? c->a : c->b;
    if (who < g->bodies) {
        for (int k = 0; k < 8; k++) {
            const double weight = c->weights[side][k];
            const int32_t node = tb_soft_corner_of(&g->space, c->cell, k);
            if (weight == 0 || found->held[side][k] != 0) continue;
            put_entry(r, (uint64_t)who * g->nodes + (uint64_t)node, 1 / found->mass[side][k],
                      side == 0 ? weight : -weight, NULL, c);
        }
        return;
    }
    const int32_t rigid = g->contacts.obstacle[who - g->bodies].rigid;
    const tb_soft_partner *partner = g->contacts.rigid + rigid;
    if (rigid < 0 || !partner->moves) return;
    r->rigid = rigid;
    for (int half = 0; half < 2; half++) {
        double *map = r->map[half];
        tb_soft_rigid_map(partner->root, partner->centre, c->point, half, map);
        put_entry(r, (uint64_t)g->bodies * g->nodes + (uint64_t)(2 * rigid + half), 1, 1, map, c);
    }
}

/* Rows of J and T of found cells, a cell a lane. */
extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_make_rows(const __grid_constant__ tb_gpu_soft g)
{
    const int32_t apart = (int32_t)(gridDim.x * TB_GPU_SOFT_THREADS);
    for (int32_t i = (int32_t)(blockIdx.x * TB_GPU_SOFT_THREADS + threadIdx.x);
         i < g.contacts.linked; i += apart) {
        tb_gpu_soft_rows *r = g.contacts.rows + i;
        double mobility[3] = {0, 0, 0};
        r->count = 0;
        r->rigid = -1;
        for (int side = 0; side < 2; side++) put_side(&g, g.contacts.found + i, side, r);
        for (int32_t e = 0; e < r->count; e++)
            for (int d = 0; d < 3; d++)
                mobility[d] += r->inverse_mass[e] * tb_soft_dot(r->row[d][e], r->row[d][e]);
        r->mobility = mobility[0] + mobility[1] + mobility[2];
        r->diagonal = mobility[0];
        r->moves = tb_soft_moves(mobility);
    }
}

/* The block of cell i by cell j of H. */
TB_CARD void couple(const tb_gpu_soft_contacts *c, const tb_gpu_soft_rows *x,
                    const tb_gpu_soft_rows *y, double h[2][2])
{
    const int tangents = c->columns - 1; /* 1: rows of the tangents, 0: of the normal */
    h[0][0] = h[0][1] = h[1][0] = h[1][1] = 0;
    for (int32_t a = 0, b = 0; a < x->count && b < y->count;) {
        if (x->key[a] == y->key[b]) {
            for (int p = 0; p < c->columns; p++)
                for (int q = 0; q < c->columns; q++)
                    h[p][q] += x->inverse_mass[a] *
                               tb_soft_dot(x->row[p + tangents][a], y->row[q + tangents][b]);
            a++, b++;
        } else if (x->key[a] < y->key[b]) {
            a++;
        } else {
            b++;
        }
    }
    for (int p = 0; p < c->columns && x == y; p++) h[p][p] += TB_SOFT_SHIFT * x->mobility;
    if (!c->turned) return;
    for (int p = 0; p < 2; p++) tb_qp_turn_two(&h[p][0], &h[p][1]);
    for (int q = 0; q < 2; q++) tb_qp_turn_two(&h[0][q], &h[1][q]);
}

/* H in a band, a block of two cells a lane: sums over the nodes of both in the order of grid/links.c. */
extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_make_band(const __grid_constant__ tb_gpu_soft g)
{
    const tb_gpu_soft_contacts *c = &g.contacts;
    const int64_t apart = (int64_t)gridDim.x * TB_GPU_SOFT_THREADS;
    const int64_t reach = c->half_bandwidth / c->columns + 1, all = reach * c->contacts;
    for (int64_t block = (int64_t)blockIdx.x * TB_GPU_SOFT_THREADS + threadIdx.x; block < all;
         block += apart) {
        const int64_t j = block / reach, i = j + block % reach;
        double h[2][2];
        if (i >= c->contacts) continue;
        couple(c, c->rows + c->which[i], c->rows + c->which[j], h);
        for (int p = 0; p < c->columns; p++)
            for (int q = 0; q < c->columns; q++) {
                const int64_t column = c->columns * j + q, below = c->columns * i + p - column;
                if (below >= 0 && below <= c->half_bandwidth)
                    c->band[below + column * c->stride] = h[p][q];
            }
    }
}

extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_velocities(const __grid_constant__ tb_gpu_soft g)
{
    const int32_t apart = (int32_t)(gridDim.x * TB_GPU_SOFT_THREADS);
    for (int32_t i = (int32_t)(blockIdx.x * TB_GPU_SOFT_THREADS + threadIdx.x);
         i < g.contacts.pushes; i += apart) {
        const tb_soft_card_push push = g.contacts.push[i];
        for (int a = 0; a < 3; a++) g.fields[push.body].v[3 * (int64_t)push.node + a] = push.v[a];
    }
}

static cudaError_t launch_cells(const tb_gpu_soft *soft, const void *kernel, int64_t cells,
                                int32_t processors, cudaStream_t stream)
{
    tb_gpu_soft g = *soft;
    const int64_t most_blocks = (int64_t)processors * TB_GPU_SOFT_BLOCKS;
    void *arguments[] = {&g};
    const int64_t wanted = (cells + TB_GPU_SOFT_THREADS - 1) / TB_GPU_SOFT_THREADS;
    const unsigned blocks = (unsigned)(wanted < most_blocks ? wanted : most_blocks);
    return cudaLaunchKernel(kernel, dim3(blocks), dim3((unsigned)TB_GPU_SOFT_THREADS), arguments,
                            0, stream);
}

extern "C" cudaError_t tb_gpu_soft_search(const tb_gpu_soft *soft, int32_t processors,
                                          cudaStream_t stream)
{
    return launch_cells(soft, (const void *)tb_gpu_soft_touch, soft->contacts.cells,
                        processors, stream);
}

extern "C" cudaError_t tb_gpu_soft_link(const tb_gpu_soft *soft, int32_t processors,
                                        cudaStream_t stream)
{
    return launch_cells(soft, (const void *)tb_gpu_soft_make_rows, soft->contacts.linked, processors,
                        stream);
}

extern "C" cudaError_t tb_gpu_soft_hessian(const tb_gpu_soft *soft, int32_t processors,
                                           cudaStream_t stream)
{
    const tb_gpu_soft_contacts *c = &soft->contacts;
    return launch_cells(soft, (const void *)tb_gpu_soft_make_band,
                        (int64_t)(c->half_bandwidth / c->columns + 1) * c->contacts, processors,
                        stream);
}

extern "C" cudaError_t tb_gpu_soft_take_velocities(const tb_gpu_soft *soft, int32_t processors,
                                                   cudaStream_t stream)
{
    return launch_cells(soft, (const void *)tb_gpu_soft_velocities, soft->contacts.pushes,
                        processors, stream);
}
#endif
