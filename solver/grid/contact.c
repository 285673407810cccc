/* The search for cells in contact: loops over the cells that two things share (nodes/touch.h). */
#include <stdlib.h>
#include <string.h>

#include "grid/grid_internal.h"

typedef struct collection {
    tb_soft_contact *items;
    int32_t count, capacity;
} collection;

/* Cells along an axis that an obstacle with its margin reaches. */
static void narrow(const tb_soft_world *w, int32_t obstacle, int axis, int32_t lower[3],
                   int32_t upper[3])
{
    double from[3], to[3];
    const double h = w->scene.lattice.spacing[axis], origin = w->scene.lattice.origin[axis];
    tb_soft_bounds(w->now + obstacle, from, to);
    const double first = floor((from[axis] - origin) / h) - 1;
    const double last = floor((to[axis] - origin) / h) + 2;
    if (first > lower[axis]) lower[axis] = (int32_t)tb_min(first, (double)upper[axis]);
    if (last < upper[axis]) upper[axis] = (int32_t)tb_max(last, (double)lower[axis]);
}

/* Cells, upper excluded, in which body a and b may be in contact. */
static void common_cells(const tb_soft_world *w, int32_t a, int32_t b, int32_t lower[3],
                         int32_t upper[3])
{
    const int32_t bodies = w->scene.number_of_bodies;
    for (int i = 0; i < 3; i++) {
        lower[i] = w->fields[a].lower[i];
        upper[i] = w->fields[a].upper[i] - 1;
        if (b >= bodies) {
            narrow(w, b - bodies, i, lower, upper);
            continue;
        }
        if (w->fields[b].lower[i] > lower[i]) lower[i] = w->fields[b].lower[i];
        if (w->fields[b].upper[i] - 1 < upper[i]) upper[i] = w->fields[b].upper[i] - 1;
    }
}

tb_soft_side tb_soft_side_of(const tb_soft_world *w, int32_t who)
{
    const int32_t obstacle = who - w->scene.number_of_bodies;
    if (obstacle < 0)
        return (tb_soft_side){w->fields + who, &w->scene.bodies[who].shape,
                              w->scene.bodies[who].material.density, false};
    const int32_t rigid = w->scene.obstacles[obstacle].rigid;
    return (tb_soft_side){NULL, w->now + obstacle, 0, rigid > 0 && w->rigid[rigid - 1].moves};
}

bool tb_soft_pair_may_touch(const tb_soft_world *w, int32_t a, int32_t b, int32_t lower[3],
                            int32_t upper[3])
{
    const int32_t bodies = w->scene.number_of_bodies;
    if (b >= bodies && tb_soft_clamped_to(w, a, b - bodies)) return false;
    common_cells(w, a, b, lower, upper);
    return lower[0] < upper[0] && lower[1] < upper[1] && lower[2] < upper[2];
}

/* Cells of one pair. */
static bool collect_pair(const tb_soft_world *w, int32_t a, int32_t b, collection *all)
{
    const int32_t bodies = w->scene.number_of_bodies;
    const tb_soft_side side_a = tb_soft_side_of(w, a), side_b = tb_soft_side_of(w, b);
    int32_t lower[3], upper[3];
    if (!tb_soft_pair_may_touch(w, a, b, lower, upper)) return true;
    for (int32_t i = lower[0]; i < upper[0]; i++)
        for (int32_t j = lower[1]; j < upper[1]; j++)
            for (int32_t k = lower[2]; k < upper[2]; k++) {
                tb_soft_contact contact;
                const int32_t at[3] = {i, j, k};
                if (!tb_soft_touch(&w->space, &side_a, &side_b, at, &contact)) continue;
                if (all->count == all->capacity) {
                    void *grown =
                        tb_grow(all->items, all->count + 1, &all->capacity, sizeof *all->items);
                    if (grown == NULL) return false;
                    all->items = grown;
                }
                contact.a = a;
                contact.b = b;
                contact.key = tb_soft_contact_key(&w->space, at, a, b, bodies,
                                                  bodies + w->scene.number_of_obstacles);
                all->items[all->count++] = contact;
            }
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t x = ((const tb_soft_contact *)a)->key, y = ((const tb_soft_contact *)b)->key;
    return x < y ? -1 : x > y;
}

void tb_soft_sort_contacts(tb_soft_contact *contacts, int32_t count)
{
    if (count > 0) qsort(contacts, (size_t)count, sizeof *contacts, compare_keys);
}

tb_status tb_soft_find_contacts(tb_soft_world *w, tb_soft_contact **contacts, int32_t *count,
                                tb_error *error)
{
    collection all = {0};
    const int32_t bodies = w->scene.number_of_bodies;
    bool whole = true;
    for (int32_t a = 0; a < bodies; a++)
        for (int32_t b = a + 1; b < bodies + w->scene.number_of_obstacles; b++)
            whole = whole && collect_pair(w, a, b, &all);
    tb_soft_sort_contacts(all.items, all.count);
    *contacts = TB_ARENA_ARRAY(&w->step, tb_soft_contact, all.count);
    if (*contacts != NULL && all.count > 0)
        memcpy(*contacts, all.items, (size_t)all.count * sizeof *all.items);
    *count = all.count;
    free(all.items);
    if (!whole || *contacts == NULL)
        return tb_fail_memory(error, (size_t)all.count * sizeof **contacts, "cells in contact");
    return TB_OK;
}
