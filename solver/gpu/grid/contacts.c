/* Contacts of soft bodies on a GPU: the host's side of the search for cells in contact, and the velocities that
 * contact impulses change. */
#include <stdlib.h>
#include <string.h>

#include "gpu/grid/fields.h"

enum {
    FEWEST_FOUND = 16, /* cells in contact that the first search has memory for */
    COLUMN_UNIT = 16   /* numbers: columns of a band begin at whole sectors */
};

/* Rigid bodies, with room for what they get, and the clamps that follow them. */
static tb_status bring_rigid(tb_gpu_soft_world *c, const tb_soft_card_search *s, tb_error *error)
{
    tb_gpu_soft_contacts *t = &c->g.contacts;
    const size_t rigids = (size_t)s->rigids, clamps = (size_t)c->g.clamps;
    const size_t partners = rigids * sizeof *t->rigid;
    const size_t answers = TB_GPU_SOFT_ANSWERS * rigids * sizeof *t->p.answers;
    t->rigids = s->rigids;
    if (rigids == 0) return TB_OK;
    tb_status status = tb_gpu_reserve(&c->device, &c->partners,
                                      partners + answers + clamps * sizeof *t->followed, error);
    if (status == TB_OK) status = tb_gpu_reserve_pinned(&c->device, &c->answers, answers, error);
    if (status != TB_OK) return status;
    char *memory = c->partners.memory;
    t->rigid = (tb_soft_partner *)memory;
    t->p.answers = (double *)(memory + partners);
    t->followed = (int32_t *)(memory + partners + answers);
    status = tb_gpu_soft_upload(c, t->rigid, s->rigid, partners, error);
    if (status == TB_OK)
        status =
            tb_gpu_soft_upload(c, t->followed, s->followed, clamps * sizeof *t->followed, error);
    return status;
}

/* Obstacles and pairs, in the memory that the world has for them. */
static tb_status bring_search(tb_gpu_soft_world *c, const tb_soft_card_search *s, tb_error *error)
{
    const int32_t count = c->g.contacts.obstacles;
    tb_soft_card_obstacle *o = malloc(((size_t)count + 1) * sizeof *o);
    if (o == NULL) return tb_fail_memory(error, (size_t)count * sizeof *o, "obstacles");
    for (int32_t i = 0; i < count; i++) {
        o[i] = s->obstacle[i];
        o[i].solid.planes = c->planes[i];
    }
    /* a copy from memory that is not pinned has left it when the call returns */
    tb_status status =
        tb_gpu_soft_upload(c, c->g.contacts.obstacle, o, (size_t)count * sizeof *o, error);
    free(o);
    if (status == TB_OK)
        status = tb_gpu_soft_upload(c, c->g.contacts.pair, s->pair,
                                    (size_t)s->pairs * sizeof *s->pair, error);
    return status == TB_OK ? bring_rigid(c, s, error) : status;
}

/* Memory for `count` cells on both sides; on the host one more, for the number of cells. */
static tb_status reserve_found(tb_gpu_soft_world *c, int32_t count, tb_error *error)
{
    const size_t cell = sizeof(tb_soft_card_found), bytes = (size_t)count * cell;
    const size_t had = c->found.capacity;
    tb_status status = tb_gpu_reserve(&c->device, &c->found, bytes, error);
    /* a search fetches a few more cells than it finds */
    if (status == TB_OK && c->found.capacity > had)
        status = tb_gpu_check(
            &c->device, cudaMemsetAsync(c->found.memory, 0, c->found.capacity, c->device.stream),
            "finding contacts", error);
    if (status != TB_OK) return status;
    return tb_gpu_reserve_pinned(&c->device, &c->seen, c->found.capacity + cell, error);
}

/* One search, whose number of cells and `first` of them come back. Cells beyond the memory are counted and
 * not kept. */
static tb_status search_once(tb_gpu_soft_world *c, const tb_gpu_soft *g, int32_t first,
                             tb_error *error)
{
    const tb_gpu_soft_contacts *t = &g->contacts;
    tb_soft_card_found *seen = c->seen.memory;
    tb_status status =
        tb_gpu_check(&c->device, cudaMemsetAsync(t->count, 0, sizeof *t->count, c->device.stream),
                     "finding contacts", error);
    if (status == TB_OK)
        status = tb_gpu_check(&c->device, tb_gpu_soft_search(g, c->processors, c->device.stream),
                              "finding contacts", error);
    if (status == TB_OK) status = tb_gpu_soft_download(c, seen, t->count, sizeof *t->count, error);
    if (status == TB_OK)
        status = tb_gpu_soft_download(c, seen + 1, t->found, (size_t)first * sizeof *seen, error);
    return status == TB_OK ? tb_gpu_wait(&c->device, "finding contacts", error) : status;
}

/* Searches until there is memory for all cells, of which `expected` come back with the number. */
static tb_status search(tb_gpu_soft_world *c, const tb_soft_card_search *s, int32_t expected,
                        int32_t *count, int32_t *first, tb_error *error)
{
    *count = FEWEST_FOUND;
    *first = 0;
    tb_status status = bring_search(c, s, error);
    tb_gpu_soft g = c->g;
    g.contacts.pairs = s->pairs;
    g.contacts.cells = s->cells;
    g.contacts.capacity = 0;
    while (status == TB_OK && *count > g.contacts.capacity) {
        status = reserve_found(c, *count, error);
        if (status != TB_OK) break;
        g.contacts.found = c->found.memory;
        /* whole memory: a search with a few more cells is not made twice */
        g.contacts.capacity = (int32_t)(c->found.capacity / sizeof(tb_soft_card_found));
        *first = expected < g.contacts.capacity ? expected : g.contacts.capacity;
        status = search_once(c, &g, *first, error);
        if (status == TB_OK) memcpy(count, c->seen.memory, sizeof *count);
    }
    c->unlinked = status == TB_OK ? *count : 0;
    return status;
}

tb_status tb_gpu_soft_find_there(tb_gpu_soft_world *c, const tb_soft_card_search *s, int32_t *count,
                                 tb_error *error)
{
    int32_t ignored;
    return search(c, s, 0, count, &ignored, error);
}

tb_status tb_gpu_soft_find(tb_gpu_soft_world *c, tb_soft_card_search *s, tb_error *error)
{
    int32_t count, first;
    tb_status status = search(c, s, c->expected, &count, &first, error);
    if (status != TB_OK) return status;
    tb_soft_card_found *seen = (tb_soft_card_found *)c->seen.memory + 1;
    if (count > first) {
        status =
            tb_gpu_soft_download(c, seen + first, (tb_soft_card_found *)c->found.memory + first,
                                 (size_t)(count - first) * sizeof *seen, error);
        if (status == TB_OK) status = tb_gpu_wait(&c->device, "finding contacts", error);
    }
    c->expected = count + count / 8;
    s->found = seen;
    s->count = count;
    return status;
}

/* ---- H ---- */

tb_status tb_gpu_soft_link_found(tb_gpu_soft_world *c, tb_gpu_soft *g, tb_error *error)
{
    const size_t bytes = (size_t)c->unlinked * sizeof *g->contacts.rows;
    tb_status status = TB_OK;
    if (c->unlinked > 0) status = tb_gpu_reserve(&c->device, &c->rows, bytes, error);
    g->contacts.found = c->found.memory;
    g->contacts.rows = c->rows.memory;
    g->contacts.linked = c->unlinked;
    if (status == TB_OK && c->unlinked > 0)
        status = tb_gpu_check(&c->device, tb_gpu_soft_link(g, c->processors, c->device.stream),
                              "linking contacts", error);
    c->unlinked = 0;
    return status;
}

/* The band to the host, where columns follow each other. */
static tb_status fetch_band(tb_gpu_soft_world *c, const tb_gpu_soft_contacts *t, double *host,
                            tb_error *error)
{
    const size_t height = ((size_t)t->half_bandwidth + 1) * sizeof *host;
    return tb_gpu_check(&c->device,
                        cudaMemcpy2DAsync(host, height, t->band, (size_t)t->stride * sizeof *host,
                                          height, (size_t)t->contacts * (size_t)t->columns,
                                          cudaMemcpyDeviceToHost, c->device.stream),
                        "fetching a hessian", error);
}

/* H of the contacts that g->contacts.which lists. */
tb_status tb_gpu_soft_band(tb_gpu_soft_world *c, tb_gpu_soft *g, int32_t contacts, int32_t columns,
                           int32_t half_bandwidth, bool turned, tb_error *error)
{
    tb_gpu_soft_contacts *t = &g->contacts;
    const int32_t n = contacts * columns;
    tb_gpu_buffer *band = &c->band[columns - 1];
    t->contacts = contacts;
    t->columns = columns;
    t->half_bandwidth = half_bandwidth;
    t->turned = turned;
    if (turned) t->half_bandwidth = half_bandwidth < n - 2 ? half_bandwidth + 2 : n - 1;
    t->stride = ((int64_t)t->half_bandwidth + COLUMN_UNIT) / COLUMN_UNIT * COLUMN_UNIT;
    const size_t bytes = (size_t)n * (size_t)t->stride * sizeof *t->band;
    tb_status status = tb_gpu_reserve(&c->device, band, bytes, error);
    if (status != TB_OK) return status;
    t->band = band->memory;
    status = tb_gpu_check(&c->device, cudaMemsetAsync(t->band, 0, bytes, c->device.stream),
                          "making a hessian", error);
    if (status != TB_OK) return status;
    return tb_gpu_check(&c->device, tb_gpu_soft_hessian(g, c->processors, c->device.stream),
                        "making a hessian", error);
}

tb_status tb_gpu_soft_make_hessian(tb_gpu_soft_world *c, tb_soft_card_hessian *h, tb_error *error)
{
    tb_gpu_soft g = c->g;
    tb_gpu_soft_contacts *t = &g.contacts;
    const size_t list = (size_t)h->contacts * sizeof *h->found;
    tb_status status = tb_gpu_soft_link_found(c, &g, error);
    if (status == TB_OK) status = tb_gpu_reserve(&c->device, &c->which, list, error);
    if (status != TB_OK) return status;
    t->which = c->which.memory;
    status = tb_gpu_soft_upload(c, t->which, h->found, list, error);
    if (status == TB_OK)
        status =
            tb_gpu_soft_band(c, &g, h->contacts, h->columns, h->half_bandwidth, h->turned, error);
    if (status == TB_OK && h->host != NULL) status = fetch_band(c, t, h->host, error);
    h->band = t->band;
    h->stride = t->stride;
    /* the program's stream begins when this one is done */
    return status == TB_OK ? tb_gpu_wait(&c->device, "making a hessian", error) : status;
}

/* ---- sweeps ---- */

tb_status tb_gpu_soft_sweep(tb_gpu_soft_world *c, tb_soft_sweeps *s, tb_error *error)
{
    tb_gpu_soft g = c->g;
    tb_soft_sweeps *to = &g.contacts.sweeps;
    const size_t contacts = (size_t)s->number_of_contacts * sizeof *s->contacts;
    const size_t shares = (size_t)s->number_of_shares * sizeof *s->shares;
    const size_t colours = ((size_t)s->number_of_colours + 1) * sizeof *s->colours;
    const size_t change = 3 * (size_t)s->places * sizeof *s->change;
    char *memory;
    /* the place where blocks meet comes first: it is aligned as the memory is */
    tb_status status = tb_gpu_reserve(
        &c->device, &c->swept,
        TB_GPU_SOFT_MEETING + contacts + shares + change + colours + sizeof(int32_t), error);
    if (status != TB_OK) return status;
    g.contacts.meeting = c->swept.memory;
    memory = (char *)c->swept.memory + TB_GPU_SOFT_MEETING;
    *to = *s;
    to->contacts = (tb_soft_swept *)memory;
    to->shares = (tb_soft_share *)(memory + contacts);
    to->change = (double *)(memory + contacts + shares);
    to->colours = (int32_t *)(memory + contacts + shares + change);
    g.contacts.changed = to->colours + s->number_of_colours + 1;
    status = tb_gpu_soft_upload(c, to->contacts, s->contacts, contacts, error);
    if (status == TB_OK) status = tb_gpu_soft_upload(c, to->shares, s->shares, shares, error);
    if (status == TB_OK) status = tb_gpu_soft_upload(c, to->change, s->change, change, error);
    if (status == TB_OK) status = tb_gpu_soft_upload(c, to->colours, s->colours, colours, error);
    if (status == TB_OK)
        status = tb_gpu_check(&c->device,
                              tb_gpu_soft_sweep_contacts(&g, c->processors, c->device.stream),
                              "sweeping over contacts", error);
    if (status == TB_OK)
        status = tb_gpu_soft_download(c, s->contacts, to->contacts, contacts, error);
    return status == TB_OK ? tb_gpu_wait(&c->device, "sweeping over contacts", error) : status;
}

tb_status tb_gpu_soft_push(tb_gpu_soft_world *c, const tb_soft_card_push *push, int32_t pushes,
                           tb_error *error)
{
    const size_t bytes = (size_t)pushes * sizeof *push;
    tb_gpu_soft g = c->g;
    tb_status status = tb_gpu_reserve(&c->device, &c->push, bytes, error);
    if (status == TB_OK) status = tb_gpu_reserve_pinned(&c->device, &c->pushed, bytes, error);
    if (status != TB_OK) return status;
    memcpy(c->pushed.memory, push, bytes); /* the last push is over since the transport behind it */
    g.contacts.push = c->push.memory;
    g.contacts.pushes = pushes;
    status = tb_gpu_soft_upload(c, c->push.memory, c->pushed.memory, bytes, error);
    if (status != TB_OK) return status;
    return tb_gpu_check(&c->device,
                        tb_gpu_soft_take_velocities(&g, c->processors, c->device.stream),
                        "moving soft bodies", error);
}
