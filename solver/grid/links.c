/* Contacts and nodes: J and T of Litven's chapter 4 as sparse sums, and their Hessians in bands. */
#include <stdlib.h>
#include <string.h>

#include "grid/nodes/projections.h"
#include "grid/programs.h"

static int by_place(const void *a, const void *b)
{
    const tb_soft_entry *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->contact > y->contact) - (x->contact < y->contact);
}

/* The two places of a contact's rigid body, if it moves. */
static int32_t list_rigid(tb_soft_world *w, tb_soft_links *l, int32_t i, int32_t n)
{
    const tb_soft_contact *c = l->contacts + i;
    const int32_t bodies = w->scene.number_of_bodies;
    const int32_t rigid = w->scene.obstacles[c->b - bodies].rigid - 1;
    if (rigid < 0 || !w->rigid[rigid].moves) return n;
    for (int half = 0; half < 2; half++) {
        double *map = l->maps + 9 * (2 * (size_t)i + (size_t)half);
        tb_soft_rigid_map(w->rigid[rigid].root, w->rigid[rigid].centre, c->point, half, map);
        l->entries[n++] = (tb_soft_entry){
            (uint64_t)bodies * w->nodes + (uint64_t)(2 * rigid + half), i, 0, 1, map};
    }
    return n;
}

static int32_t list_entries(tb_soft_world *w, tb_soft_links *l)
{
    int32_t n = 0;
    for (int32_t i = 0; i < l->count; i++)
        for (int side = 0; side < 2; side++) {
            const tb_soft_contact *c = l->contacts + i;
            const int32_t who = side == 0 ? c->a : c->b;
            if (who >= w->scene.number_of_bodies) {
                n = list_rigid(w, l, i, n);
                continue;
            }
            const tb_soft_field *f = w->fields + who;
            for (int k = 0; k < 8; k++) {
                const int32_t node = tb_soft_corner(w, c->cell, k);
                const double weight = c->weights[side][k];
                if (weight == 0 || (f->held != NULL && f->held[node])) continue;
                l->entries[n++] = (tb_soft_entry){(uint64_t)who * w->nodes + (uint64_t)node, i, 0,
                                                  side == 0 ? weight : -weight, NULL};
            }
        }
    return n;
}

tb_status tb_soft_links_make(tb_soft_world *w, tb_soft_contact *contacts, int32_t count,
                             tb_soft_links *l, tb_error *error)
{
    *l = (tb_soft_links){.contacts = contacts, .count = count};
    const size_t most = TB_SOFT_MOST_ENTRIES * (size_t)count;
    l->entries = TB_ARENA_ARRAY(&w->step, tb_soft_entry, most);
    l->first = TB_ARENA_ARRAY(&w->step, int32_t, most + 1);
    l->inverse_mass = TB_ARENA_ARRAY(&w->step, double, most);
    l->velocity = TB_ARENA_ARRAY(&w->step, double *, most);
    l->impulse = TB_ARENA_ARRAY(&w->step, double, 3 * most);
    l->maps = TB_ARENA_ARRAY(&w->step, double, 18 * (size_t)count);
    l->slip = TB_ARENA_ARRAY(&w->step, double, 3 * (size_t)count);
    l->part = TB_ARENA_ARRAY(&w->step, double, (size_t)count);
    if (l->entries == NULL || l->first == NULL || l->inverse_mass == NULL || l->velocity == NULL ||
        l->impulse == NULL || l->slip == NULL || l->maps == NULL || l->part == NULL)
        return tb_fail_memory(error, 0, "entries of contacts");
    l->number_of_entries = list_entries(w, l);
    qsort(l->entries, (size_t)l->number_of_entries, sizeof *l->entries, by_place);
    for (int32_t e = 0; e < l->number_of_entries; e++) {
        tb_soft_entry *entry = l->entries + e;
        if (e == 0 || entry->key != entry[-1].key) {
            const uint64_t who = entry->key / w->nodes, node = entry->key % w->nodes;
            if (who < (uint64_t)w->scene.number_of_bodies) {
                l->inverse_mass[l->places] = 1 / w->fields[who].mass[node];
                l->velocity[l->places] = w->fields[who].v + 3 * node;
                l->soft_places = l->places + 1;
            } else {
                const uint64_t half = entry->key - (uint64_t)w->scene.number_of_bodies * w->nodes;
                l->inverse_mass[l->places] = 1;
                l->velocity[l->places] = w->rigid[half / 2].y + 3 * (half % 2);
            }
            l->first[l->places++] = e;
        }
        entry->place = l->places - 1;
    }
    l->first[l->places] = l->number_of_entries;
    return TB_OK;
}

/* The row of a normal (0) or a tangent in the components of an entry's place. */
static void row_of(const tb_soft_links *l, const tb_soft_entry *e, int which, double row[3])
{
    tb_soft_entry_row(e, tb_soft_direction(l->contacts + e->contact, which), row);
}

void tb_soft_links_slip(const tb_soft_world *w, const tb_soft_links *l, double *slip)
{
    const int32_t bodies = w->scene.number_of_bodies;
    memset(slip, 0, 3 * (size_t)l->count * sizeof *slip);
    for (int32_t e = 0; e < l->number_of_entries; e++) {
        const tb_soft_entry *entry = l->entries + e;
        for (int k = 0; k < 3; k++) {
            double row[3];
            row_of(l, entry, k, row);
            slip[3 * entry->contact + k] += tb_soft_dot(row, l->velocity[entry->place]);
        }
    }
    for (int32_t i = 0; i < l->count; i++) {
        const tb_soft_contact *c = l->contacts + i;
        double velocity[3];
        for (int side = 0; side < 2; side++) {
            const int32_t who = side == 0 ? c->a : c->b;
            if (who >= bodies || w->fields[who].held == NULL) continue;
            for (int k = 0; k < 8; k++) {
                const int32_t node = tb_soft_corner(w, c->cell, k);
                const double weight = side == 0 ? c->weights[0][k] : -c->weights[1][k];
                if (w->fields[who].held[node] == 0) continue;
                for (int d = 0; d < 3; d++)
                    slip[3 * i + d] += weight * tb_soft_dot(tb_soft_direction(c, d),
                                                            w->fields[who].v + 3 * (size_t)node);
            }
        }
        if (c->b < bodies) continue;
        tb_soft_obstacle_velocity(w, c->b - bodies, c->point, velocity);
        for (int k = 0; k < 3; k++)
            slip[3 * i + k] -= tb_soft_dot(tb_soft_direction(c, k), velocity);
    }
}

void tb_soft_links_impulses(const tb_soft_links *l, bool normal, bool tangential, double *impulse)
{
    memset(impulse, 0, 3 * (size_t)l->places * sizeof *impulse);
    for (int32_t e = 0; e < l->number_of_entries; e++) {
        const tb_soft_entry *entry = l->entries + e;
        const tb_soft_contact *c = l->contacts + entry->contact;
        double p[3], row[3];
        tb_soft_contact_impulse(c, normal, tangential, p);
        tb_soft_entry_row(entry, p, row);
        for (int a = 0; a < 3; a++) impulse[3 * entry->place + a] += row[a];
    }
}

void tb_soft_links_respond(const tb_soft_links *l, const double *impulse, double *slip)
{
    for (int32_t e = 0; e < l->number_of_entries; e++) {
        const tb_soft_entry *entry = l->entries + e;
        for (int k = 0; k < 3; k++) {
            double row[3];
            row_of(l, entry, k, row);
            slip[3 * entry->contact + k] +=
                l->inverse_mass[entry->place] * tb_soft_dot(row, impulse + 3 * entry->place);
        }
    }
}

double tb_soft_links_sum(const tb_soft_links *l)
{
    tb_soft_run_sum sum = {0};
    for (int32_t i = 0; i < l->count; i++) tb_soft_run_add(&sum, i, l->part[i]);
    return tb_soft_run_end(&sum);
}

double tb_soft_links_product(const tb_soft_links *l, const double *p, const double *q)
{
    memset(l->part, 0, (size_t)l->count * sizeof *l->part);
    for (int32_t d = 0; d < l->places; d++)
        l->part[l->entries[l->first[d]].contact] +=
            l->inverse_mass[d] * tb_soft_dot(p + 3 * d, q + 3 * d);
    return tb_soft_links_sum(l);
}

/* ---- Hessians ---- */

void tb_soft_links_mobility(const tb_soft_links *l, double *mobility)
{
    memset(mobility, 0, 3 * (size_t)l->count * sizeof *mobility);
    for (int32_t e = 0; e < l->number_of_entries; e++) {
        const tb_soft_entry *entry = l->entries + e;
        for (int k = 0; k < 3; k++) {
            double row[3];
            row_of(l, entry, k, row);
            mobility[3 * entry->contact + k] +=
                l->inverse_mass[entry->place] * tb_soft_dot(row, row);
        }
    }
}

/* Adds the coupling of two entries at one place, whose numbers are p >= q, to H. x, y: rows of the entries in
 * the place's components, columns x 3. */
static void add_pair(double inverse_mass, const double *x, int32_t p, const double *y, int32_t q,
                     int32_t columns, int32_t half_bandwidth, double *band)
{
    for (int32_t k = 0; k < columns; k++)
        for (int32_t m = 0; m < columns; m++) {
            const int32_t i = columns * p + k, j = columns * q + m;
            if (i < j) continue;
            band[(size_t)(i - j) + (size_t)j * (size_t)(half_bandwidth + 1)] +=
                inverse_mass * tb_soft_dot(x + 3 * k, y + 3 * m);
        }
}

int32_t tb_soft_links_half_bandwidth(const tb_soft_links *l, const int32_t *number, int32_t columns)
{
    int32_t reach = 0;
    for (int32_t d = 0; d < l->places; d++) {
        int32_t least = INT32_MAX, most = -1;
        for (int32_t e = l->first[d]; e < l->first[d + 1]; e++) {
            const int32_t i = number[l->entries[e].contact];
            if (i < 0) continue;
            least = i < least ? i : least;
            most = i > most ? i : most;
        }
        if (most >= 0 && most - least > reach) reach = most - least;
    }
    return columns * (reach + 1) - 1;
}

tb_status tb_soft_links_hessian(tb_soft_world *w, const tb_soft_links *l, const int32_t *number,
                                int32_t columns, int32_t half_bandwidth, double **band,
                                tb_error *error)
{
    const int32_t rho = half_bandwidth;
    int32_t n = 0;
    for (int32_t i = 0; i < l->count; i++)
        if (number[i] >= 0) n = columns * (number[i] + 1);
    *band = TB_ARENA_ZEROED(&w->step, double, (size_t)n *(size_t)(rho + 1));
    double *rows = TB_ARENA_ARRAY(&w->step, double, 6 * (size_t)l->number_of_entries);
    if (*band == NULL || rows == NULL)
        return tb_fail_memory(error, (size_t)n * (size_t)(rho + 1) * sizeof(double),
                              "the Hessian of contacts");
    for (int32_t e = 0; e < l->number_of_entries; e++)
        for (int32_t k = 0; k < columns; k++)
            row_of(l, l->entries + e, columns == 1 ? 0 : k + 1, rows + 6 * (size_t)e + 3 * k);
    for (int32_t d = 0; d < l->places; d++)
        for (int32_t e = l->first[d]; e < l->first[d + 1]; e++)
            for (int32_t f = l->first[d]; f < l->first[d + 1]; f++) {
                const int32_t p = number[l->entries[e].contact], q = number[l->entries[f].contact];
                if (q >= 0 && p >= q)
                    add_pair(l->inverse_mass[d], rows + 6 * (size_t)e, p, rows + 6 * (size_t)f, q,
                             columns, rho, *band);
            }
    double *mobility = TB_ARENA_ARRAY(&w->step, double, 3 * (size_t)l->count);
    if (mobility == NULL) return tb_fail_memory(error, 0, "the Hessian of contacts");
    tb_soft_links_mobility(l, mobility);
    for (int32_t i = 0; i < l->count; i++) {
        const double *m = mobility + 3 * i;
        for (int32_t k = 0; k < columns && number[i] >= 0; k++)
            (*band)[(size_t)(columns * number[i] + k) * (size_t)(rho + 1)] +=
                TB_SOFT_SHIFT * (m[0] + m[1] + m[2]);
    }
    return TB_OK;
}
