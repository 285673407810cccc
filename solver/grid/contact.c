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

/* Lengths and distances that several pairs or cells ask for; each is measured once a search. */
typedef struct measures {
    int32_t lower[3], upper[3]; /* cells that a body may share with any partner, upper excluded */
    double *lengths;            /* of those cells x 8: to the body, at the corners */
    uint8_t *asked;             /* of those cells: UNKNOWN, INVALID or KNOWN */
    double *distance;           /* nodes of the cells that a pair shares: to the obstacle, m */
} measures;

enum { UNKNOWN, INVALID, KNOWN };

/* Lengths to body a at the corners of a cell; NULL: they are not valid. */
static const double *lengths_to_body(const tb_soft_world *w, int32_t a, const int32_t at[3],
                                     const measures *m)
{
    const tb_soft_field *f = w->fields + a;
    size_t cell = 0;
    for (int i = 2; i >= 0; i--)
        cell = cell * (size_t)(m->upper[i] - m->lower[i]) + (size_t)(at[i] - m->lower[i]);
    if (m->asked[cell] == UNKNOWN) {
        const tb_soft_side side = tb_soft_side_of(w, a);
        const int32_t n = tb_soft_node(w, at[0], at[1], at[2]);
        m->asked[cell] = tb_soft_cell_valid(w, f, n) ? KNOWN : INVALID;
        if (m->asked[cell] == KNOWN)
            tb_soft_lengths_to(&w->space, &side, n, at, m->lengths + 8 * cell);
    }
    return m->asked[cell] == KNOWN ? m->lengths + 8 * cell : NULL;
}

/* Distances to an obstacle at the nodes of cells [lower, upper). */
static void measure_obstacle(const tb_soft_world *w, const tb_soft_solid *obstacle,
                             const int32_t lower[3], const int32_t upper[3], double *distance)
{
    for (int32_t k = lower[2]; k <= upper[2]; k++)
        for (int32_t j = lower[1]; j <= upper[1]; j++)
            for (int32_t i = lower[0]; i <= upper[0]; i++) {
                const int32_t at[3] = {i, j, k};
                double x[3];
                tb_soft_place_of(&w->space, at, x);
                *distance++ = tb_soft_distance(obstacle, x);
            }
}

/* Lengths to side b of a pair at the corners of a cell among [lower, upper); false: they are not valid. */
static bool lengths_to_partner(const tb_soft_world *w, const tb_soft_side *b, const int32_t at[3],
                               const int32_t lower[3], const int32_t upper[3], const measures *m,
                               double lengths[8])
{
    const int32_t n = tb_soft_node(w, at[0], at[1], at[2]);
    if (b->field != NULL) {
        if (!tb_soft_cell_valid(w, b->field, n)) return false;
        tb_soft_lengths_to(&w->space, b, n, at, lengths);
        return true;
    }
    const int32_t row = upper[0] - lower[0] + 1, plane = row * (upper[1] - lower[1] + 1);
    const double *from = m->distance + (at[0] - lower[0]) + (ptrdiff_t)row * (at[1] - lower[1]) +
                         (ptrdiff_t)plane * (at[2] - lower[2]);
    for (int c = 0; c < 8; c++)
        lengths[c] = from[(c & 1) + (c >> 1 & 1) * row + (c >> 2 & 1) * plane];
    tb_soft_to_lengths(&w->space, lengths);
    return true;
}

/* Room for one more contact; NULL: no memory. */
static tb_soft_contact *grow(collection *all)
{
    if (all->count == all->capacity) {
        void *grown = tb_grow(all->items, all->count + 1, &all->capacity, sizeof *all->items);
        if (grown == NULL) return NULL;
        all->items = grown;
    }
    return all->items + all->count;
}

/* Cells of one pair. */
static bool collect_pair(const tb_soft_world *w, int32_t a, int32_t b, const measures *m,
                         collection *all)
{
    const int32_t bodies = w->scene.number_of_bodies;
    const tb_soft_side side_a = tb_soft_side_of(w, a), side_b = tb_soft_side_of(w, b);
    int32_t lower[3], upper[3];
    if (!tb_soft_pair_may_touch(w, a, b, lower, upper)) return true;
    if (b >= bodies) measure_obstacle(w, side_b.solid, lower, upper, m->distance);
    for (int32_t k = lower[2]; k < upper[2]; k++)
        for (int32_t j = lower[1]; j < upper[1]; j++)
            for (int32_t i = lower[0]; i < upper[0]; i++) {
                const int32_t at[3] = {i, j, k};
                double da[8], db[8];
                const double *lengths = lengths_to_body(w, a, at, m);
                if (lengths == NULL || !lengths_to_partner(w, &side_b, at, lower, upper, m, db) ||
                    !tb_soft_comes_near(&w->space, lengths, db))
                    continue;
                tb_soft_contact *contact = grow(all);
                if (contact == NULL) return false;
                memcpy(da, lengths, sizeof da);
                if (!tb_soft_touch_within(&w->space, &side_a, &side_b, at, da, db, contact))
                    continue;
                contact->a = a;
                contact->b = b;
                contact->key = tb_soft_contact_key(&w->space, at, a, b, bodies,
                                                   bodies + w->scene.number_of_obstacles);
                all->count++;
            }
    return true;
}

/* The cells that a body may share with those after it, upper excluded; false: none. */
static bool shared_cells(const tb_soft_world *w, int32_t a, measures *m)
{
    const int32_t things = w->scene.number_of_bodies + w->scene.number_of_obstacles;
    bool any = false;
    for (int32_t b = a + 1; b < things; b++) {
        int32_t lower[3], upper[3];
        if (!tb_soft_pair_may_touch(w, a, b, lower, upper)) continue;
        for (int i = 0; i < 3; i++) {
            if (!any || lower[i] < m->lower[i]) m->lower[i] = lower[i];
            if (!any || upper[i] > m->upper[i]) m->upper[i] = upper[i];
        }
        any = true;
    }
    return any;
}

/* Cells of a body and all that come after it: bodies with a higher number, obstacles. */
static bool collect_body(tb_soft_world *w, int32_t a, collection *all)
{
    const int32_t things = w->scene.number_of_bodies + w->scene.number_of_obstacles;
    size_t cells = 1, nodes = 1;
    measures m = {0};
    if (!shared_cells(w, a, &m)) return true;
    for (int i = 0; i < 3; i++) {
        cells *= (size_t)(m.upper[i] - m.lower[i]);
        nodes *= (size_t)(m.upper[i] - m.lower[i] + 1);
    }
    m.lengths = TB_ARENA_ARRAY(&w->step, double, 8 * cells);
    m.asked = TB_ARENA_ZEROED(&w->step, uint8_t, cells);
    m.distance = TB_ARENA_ARRAY(&w->step, double, nodes);
    bool whole = m.lengths != NULL && m.asked != NULL && m.distance != NULL;
    for (int32_t b = a + 1; b < things && whole; b++) whole = collect_pair(w, a, b, &m, all);
    return whole;
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
    for (int32_t a = 0; a < bodies && whole; a++) whole = collect_body(w, a, &all);
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
