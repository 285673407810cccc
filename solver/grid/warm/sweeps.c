/* First working sets of a substep's contact programs, by sweeps over single contacts.
 *
 * The working sets of the last substep are a poor guess where bodies begin to slip, since few facets of
 * friction are active and a contact that starts to slide changes its own. A sweep visits all contacts, a
 * colour after the other, and minimizes both programs in the impulses of one contact while the others stay
 * (projected Gauss-Seidel; nodes/sweeps.h). Sweeps that begin with the impulses of the last substep find
 * most of the active constraints; the programs then need few changes of their sets. A sweep costs about
 * as much as one product with a sparse Hessian, and far less than one right-hand side of a banded
 * factor. On a card a colour's contacts are visited at the same time, with the same results. */
#include <string.h>

#include "grid/card/steps.h"
#include "grid/programs.h"

/* Numbers the contacts by colour: cells whose coordinates are even and odd along the same axes have no node
 * in common, and of several contacts in a cell each has colours of its own. order: contacts, by colour. */
static tb_status list_colours(tb_soft_world *w, const tb_soft_links *l, int32_t *order,
                              tb_soft_sweeps *s, tb_error *error)
{
    enum { PARITIES = 8 };
    const int64_t *stride = w->space.stride;
    int32_t *colour = TB_ARENA_ARRAY(&w->step, int32_t, l->count);
    int32_t most = 0, rank = 0, n = 0;
    if (colour == NULL) return tb_fail_memory(error, 0, "sweeps over contacts");
    for (int32_t i = 0; i < l->count; i++) {
        const int64_t cell = l->contacts[i].cell, x = cell % stride[1],
                      y = cell % stride[2] / stride[1], z = cell / stride[2];
        rank = i > 0 && cell == l->contacts[i - 1].cell ? rank + 1 : 0;
        colour[i] = (int32_t)(PARITIES * rank + x % 2 + y % 2 * 2 + z % 2 * 4);
        if (rank > most) most = rank;
    }
    s->number_of_colours = PARITIES * (most + 1);
    s->colours = TB_ARENA_ARRAY(&w->step, int32_t, s->number_of_colours + 1);
    if (s->colours == NULL) return tb_fail_memory(error, 0, "sweeps over contacts");
    for (int32_t c = 0; c < s->number_of_colours; c++) {
        s->colours[c] = n;
        for (int32_t i = 0; i < l->count; i++)
            if (colour[i] == c) order[n++] = i;
    }
    s->colours[s->number_of_colours] = n;
    return TB_OK;
}

/* The rigid body that a contact moves, or -1. */
static int32_t rigid_of(const tb_soft_world *w, const tb_soft_contact *c)
{
    const int32_t wall = c->b - w->scene.number_of_bodies;
    const int32_t rigid = wall < 0 ? -1 : w->scene.obstacles[wall].rigid - 1;
    return rigid >= 0 && w->rigid[rigid].moves ? rigid : -1;
}

static void split_rigid(const tb_soft_sweeps *s)
{
    for (int32_t colour = 0; colour < s->number_of_colours; colour++)
        for (int32_t i = s->colours[colour]; i < s->colours[colour + 1]; i++) {
            tb_soft_swept *c = s->contacts + i;
            if (c->rigid < 0) continue;
            for (int32_t k = s->colours[colour]; k < s->colours[colour + 1]; k++)
                c->parts += s->contacts[k].rigid == c->rigid;
            c->parts = tb_soft_split(c->parts);
        }
}

/* The contacts in the order of their colours, and the entries of each. */
static tb_status list_contacts(tb_soft_world *w, const tb_soft_links *l, const double *base,
                               const double *gap_velocity, tb_soft_sweeps *s, tb_error *error)
{
    int32_t *order = TB_ARENA_ARRAY(&w->step, int32_t, l->count);
    int32_t *end = TB_ARENA_ZEROED(&w->step, int32_t, l->count + 1); /* of each contact's shares */
    if (order == NULL || end == NULL) return tb_fail_memory(error, 0, "sweeps over contacts");
    const tb_status status = list_colours(w, l, order, s, error);
    if (status != TB_OK) return status;
    for (int32_t e = 0; e < l->number_of_entries; e++) end[l->entries[e].contact + 1]++;
    for (int32_t i = 0; i < l->count; i++) end[i + 1] += end[i];
    for (int32_t k = 0; k < l->count; k++) {
        const tb_soft_contact *c = l->contacts + order[k];
        tb_soft_swept *x = s->contacts + k;
        *x = (tb_soft_swept){.gap_velocity = gap_velocity[order[k]],
                             .alpha = c->alpha,
                             .beta = {c->beta[0], c->beta[1]},
                             .contact = order[k],
                             .first = end[order[k]],
                             .last = end[order[k] + 1],
                             .active = c->active,
                             .rigid = rigid_of(w, c)};
        memcpy(x->direction[0], c->normal, sizeof c->normal);
        memcpy(x->direction[1], c->tangent, sizeof c->tangent);
        memcpy(x->base, base + 3 * (size_t)order[k], sizeof x->base);
    }
    split_rigid(s);
    for (int32_t e = 0; e < l->number_of_entries; e++) {
        const tb_soft_entry *entry = l->entries + e;
        s->shares[end[entry->contact]++] =
            (tb_soft_share){entry->place, entry->weight, l->inverse_mass[entry->place], entry->map};
    }
    return TB_OK;
}

/* Changes velocities by an impulse (N s, world axes) of a contact. */
static void push(const tb_soft_sweeps *s, const tb_soft_swept *c, const double impulse[3])
{
    for (int32_t i = c->first; i < c->last; i++) {
        double *v = s->change + 3 * (size_t)s->shares[i].place, change[3];
        tb_soft_share_change(s->shares + i, impulse, change);
        for (int k = 0; k < 3; k++) v[k] += change[k];
    }
}

/* Relative velocity of a contact by all impulses, in world axes. */
static void relative_velocity(const tb_soft_sweeps *s, const tb_soft_swept *c, double velocity[3])
{
    for (int k = 0; k < 3; k++) velocity[k] = 0;
    for (int32_t i = c->first; i < c->last; i++) {
        const tb_soft_share *x = s->shares + i;
        double part[3];
        tb_soft_share_velocity(x,
                               x->place < s->soft_places
                                   ? s->change + 3 * (size_t)x->place
                                   : s->seen + 3 * (size_t)(x->place - s->soft_places),
                               part);
        for (int k = 0; k < 3; k++) velocity[k] += part[k];
    }
}

/* Contacts see the rigid bodies' velocities by the impulses of the colour that is over. */
static void end_colour(const tb_soft_sweeps *s)
{
    const size_t halves = (size_t)(s->places - s->soft_places);
    if (halves > 0)
        memcpy(s->seen, s->change + 3 * (size_t)s->soft_places, 3 * halves * sizeof *s->seen);
}

/* A visit to all contacts; `first`: of the impulses that they begin with. Whether a working set changes. */
static bool visit_all(const tb_soft_sweeps *s, bool first)
{
    bool changes = false;
    for (int32_t colour = 0; colour < s->number_of_colours; colour++) {
        for (int32_t i = s->colours[colour]; i < s->colours[colour + 1]; i++) {
            tb_soft_swept *c = s->contacts + i;
            double velocity[3], impulse[3];
            if (first) {
                tb_soft_sweep_mobility(s, c);
                tb_soft_sweep_first(c, impulse);
            } else {
                relative_velocity(s, c, velocity);
                changes |= tb_soft_sweep_improve(c, s->friction, velocity, impulse);
            }
            push(s, c, impulse);
        }
        end_colour(s);
    }
    return changes;
}

static void sweep(const tb_soft_sweeps *s)
{
    visit_all(s, true);
    for (int32_t n = 0, settled = 0; n < TB_SOFT_SWEEPS && settled < TB_SOFT_SETTLED; n++)
        settled = visit_all(s, false) ? 0 : settled + 1;
}

tb_status tb_soft_links_sweep(tb_soft_world *w, const tb_soft_links *l, const double *base,
                              const double *gap_velocity, tb_error *error)
{
    tb_soft_sweeps s = {
        .contacts = TB_ARENA_ARRAY(&w->step, tb_soft_swept, l->count),
        .shares = TB_ARENA_ARRAY(&w->step, tb_soft_share, l->number_of_entries),
        .change = TB_ARENA_ZEROED(&w->step, double, 3 * (size_t)l->places),
        .seen = TB_ARENA_ZEROED(&w->step, double, 3 * (size_t)(l->places - l->soft_places)),
        .number_of_contacts = l->count,
        .number_of_shares = l->number_of_entries,
        .places = l->places,
        .soft_places = l->soft_places,
        .friction = w->scene.options.friction,
    };
    if (s.contacts == NULL || s.shares == NULL || s.change == NULL || s.seen == NULL)
        return tb_fail_memory(error, 0, "sweeps over contacts");
    tb_status status = list_contacts(w, l, base, gap_velocity, &s, error);
    if (status != TB_OK) return status;
    if (w->card != NULL && l->places == l->soft_places)
        status = tb_soft_card_sweep(w, &s, error);
    else
        sweep(&s);
    for (int32_t i = 0; i < l->count && status == TB_OK; i++) {
        const tb_soft_swept *x = s.contacts + i;
        tb_soft_contact *c = l->contacts + x->contact;
        c->alpha = x->alpha;
        c->beta[0] = x->beta[0], c->beta[1] = x->beta[1];
        c->active = x->active;
    }
    return status;
}
