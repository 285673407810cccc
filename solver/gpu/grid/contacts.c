/* Contacts of soft bodies on a GPU: the host's side of the search for cells in contact, and the velocities that
 * contact impulses change. */
#include <stdlib.h>
#include <string.h>

#include "gpu/grid/fields.h"

enum { FEWEST_FOUND = 16 /* cells in contact that the first search has memory for */ };

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
    return status;
}

/* Memory for `count` cells on both sides; on the host one more, for the number of cells. */
static tb_status reserve_found(tb_gpu_soft_world *c, int32_t count, tb_error *error)
{
    const size_t cell = sizeof(tb_soft_card_found), bytes = (size_t)count * cell;
    const tb_status status = tb_gpu_reserve(&c->device, &c->found, bytes, error);
    if (status != TB_OK) return status;
    return tb_gpu_reserve_pinned(&c->device, &c->seen, bytes + cell, error);
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

tb_status tb_gpu_soft_find(tb_gpu_soft_world *c, tb_soft_card_search *s, tb_error *error)
{
    tb_gpu_soft g = c->g;
    int32_t count = FEWEST_FOUND, first = 0;
    g.contacts.pairs = s->pairs;
    g.contacts.cells = s->cells;
    g.contacts.capacity = 0;
    tb_status status = bring_search(c, s, error);
    while (status == TB_OK && count > g.contacts.capacity) {
        status = reserve_found(c, count, error);
        if (status != TB_OK) break;
        g.contacts.found = c->found.memory;
        g.contacts.capacity = count;
        first = c->expected < g.contacts.capacity ? c->expected : g.contacts.capacity;
        status = search_once(c, &g, first, error);
        if (status == TB_OK) memcpy(&count, c->seen.memory, sizeof count);
    }
    if (status != TB_OK) return status;
    tb_soft_card_found *seen = (tb_soft_card_found *)c->seen.memory + 1;
    if (count > first) {
        status = tb_gpu_soft_download(c, seen + first, g.contacts.found + first,
                                      (size_t)(count - first) * sizeof *seen, error);
        if (status == TB_OK) status = tb_gpu_wait(&c->device, "finding contacts", error);
    }
    c->expected = count + count / 8;
    s->found = seen;
    s->count = count;
    return status;
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
