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

/* Ranks of the contacts among those that move the same rigid body, and the parts of the bodies. */
static void split_rigid(const tb_soft_sweeps *s, bool few)
{
    for (int32_t colour = 0; colour < s->number_of_colours; colour++)
        for (int32_t i = s->colours[colour]; i < s->colours[colour + 1]; i++) {
            tb_soft_swept *c = s->contacts + i;
            int32_t all = 0;
            if (c->rigid < 0) continue;
            for (int32_t k = s->colours[colour]; k < s->colours[colour + 1]; k++) {
                c->rank += k < i && s->contacts[k].rigid == c->rigid;
                all += s->contacts[k].rigid == c->rigid;
            }
            c->parts = tb_soft_parts(c->rank, all, few);
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
    for (int32_t e = 0; e < l->number_of_entries; e++)
        end[l->entries[e].contact + 1] += l->entries[e].map == NULL;
    for (int32_t i = 0; i < l->count; i++) end[i + 1] += end[i];
    s->number_of_shares = end[l->count];
    for (int32_t k = 0; k < l->count; k++) {
        const int32_t i = order[k];
        const tb_soft_contact *c = l->contacts + i;
        tb_soft_swept *x = s->contacts + k;
        *x = (tb_soft_swept){.gap_velocity = gap_velocity[i],
                             .alpha = c->alpha,
                             .beta = {c->beta[0], c->beta[1]},
                             .contact = i,
                             .first = end[i],
                             .last = end[i + 1],
                             .active = c->active,
                             .rigid = rigid_of(w, c)};
        memcpy(x->direction[0], c->normal, sizeof c->normal);
        memcpy(x->direction[1], c->tangent, sizeof c->tangent);
        memcpy(x->base, base + 3 * (size_t)i, sizeof x->base);
        for (int half = 0; half < 2 && x->rigid >= 0; half++)
            tb_soft_sweep_half(x, half, l->maps + 9 * (2 * (size_t)i + (size_t)half));
    }
    for (int32_t e = 0; e < l->number_of_entries; e++) {
        const tb_soft_entry *entry = l->entries + e;
        if (entry->map == NULL)
            s->shares[end[entry->contact]++] =
                (tb_soft_share){entry->weight, l->inverse_mass[entry->place], entry->place};
    }
    return TB_OK;
}

/* Velocities of the world's rigid bodies, x 6: by the impulses, and as contacts see them. */
typedef struct rigid_velocities {
    double *y, *seen;
    size_t bytes;
    bool few; /* contacts: they see the impulses of a group that is over, and else of a colour */
} rigid_velocities;

/* Changes velocities by the impulses of a contact, along its normal and tangents. */
static void push(const tb_soft_sweeps *s, const tb_soft_swept *c, const double change[3], double *y)
{
    double impulse[3];
    for (int k = 0; k < 3; k++) impulse[k] = tb_soft_sweep_impulse(c, k, change);
    for (int32_t i = c->first; i < c->last; i++) {
        const tb_soft_share *x = s->shares + i;
        double *v = s->change + 3 * (size_t)x->place;
        for (int k = 0; k < 3; k++) v[k] += tb_soft_share_change(x, impulse[k]);
    }
    for (int k = 0; k < TB_SOFT_TWIST && c->rigid >= 0; k++)
        y[TB_SOFT_TWIST * c->rigid + k] += tb_soft_sweep_turn(c, k, change);
}

/* u of a contact by all impulses. */
static void find_slip(const tb_soft_sweeps *s, const tb_soft_swept *c, const double *seen,
                      double u[3])
{
    double velocity[3] = {0, 0, 0};
    for (int32_t i = c->first; i < c->last; i++) {
        const double *v = s->change + 3 * (size_t)s->shares[i].place;
        for (int k = 0; k < 3; k++) velocity[k] += s->shares[i].weight * v[k];
    }
    for (int k = 0; k < 3; k++) u[k] = tb_soft_sweep_slip(c, k, velocity);
    for (int k = 0; k < 3 && c->rigid >= 0; k++)
        u[k] += tb_soft_sweep_carried(c->rigid_row[k], seen + TB_SOFT_TWIST * (size_t)c->rigid);
}

/* A visit to all contacts; `first`: of the impulses that they begin with. Whether a working set changes. */
static bool visit_all(const tb_soft_sweeps *s, const rigid_velocities *r, bool first)
{
    bool changes = false;
    for (int32_t colour = 0; colour < s->number_of_colours; colour++) {
        for (int32_t i = s->colours[colour]; i < s->colours[colour + 1]; i++) {
            tb_soft_swept *c = s->contacts + i;
            double u[3], change[3] = {c->alpha, c->beta[0], c->beta[1]};
            if (first) {
                tb_soft_sweep_prepare(s->shares, c);
            } else {
                find_slip(s, c, r->seen, u);
                changes |= tb_soft_sweep_improve(c, s->friction, u, change);
            }
            push(s, c, change, r->y);
            const size_t body = TB_SOFT_TWIST * (size_t)(c->rigid >= 0 ? c->rigid : 0);
            if (c->rigid >= 0 && r->few && tb_soft_ends_group(c))
                memcpy(r->seen + body, r->y + body, TB_SOFT_TWIST * sizeof *r->y);
        }
        memcpy(r->seen, r->y, r->bytes);
    }
    return changes;
}

static void sweep(const tb_soft_sweeps *s, const rigid_velocities *r)
{
    visit_all(s, r, true);
    for (int32_t n = 0, settled = 0; n < TB_SOFT_SWEEPS && settled < TB_SOFT_SETTLED; n++)
        settled = visit_all(s, r, false) ? 0 : settled + 1;
}

tb_status tb_soft_links_sweep(tb_soft_world *w, const tb_soft_links *l, const double *base,
                              const double *gap_velocity, tb_error *error)
{
    const size_t twists = TB_SOFT_TWIST * (size_t)w->number_of_rigid;
    tb_soft_sweeps s = {
        .contacts = TB_ARENA_ARRAY(&w->step, tb_soft_swept, l->count),
        .shares = TB_ARENA_ARRAY(&w->step, tb_soft_share, l->number_of_entries),
        .change = TB_ARENA_ZEROED(&w->step, double, 3 * (size_t)l->places),
        .number_of_contacts = l->count,
        .places = l->places,
        .friction = w->scene.options.friction,
    };
    const rigid_velocities r = {.y = TB_ARENA_ZEROED(&w->step, double, twists),
                                .seen = TB_ARENA_ZEROED(&w->step, double, twists),
                                .bytes = twists * sizeof(double),
                                .few = tb_soft_sweeps_are_few(l->count, w->number_of_rigid)};
    if (s.contacts == NULL || s.shares == NULL || s.change == NULL || r.y == NULL || r.seen == NULL)
        return tb_fail_memory(error, 0, "sweeps over contacts");
    tb_status status = list_contacts(w, l, base, gap_velocity, &s, error);
    if (status != TB_OK) return status;
    split_rigid(&s, r.few);
    if (w->card != NULL && l->places == l->soft_places)
        status = tb_soft_card_sweep(w, &s, error);
    else
        sweep(&s, &r);
    for (int32_t i = 0; i < l->count && status == TB_OK; i++) {
        const tb_soft_swept *x = s.contacts + i;
        tb_soft_contact *c = l->contacts + x->contact;
        c->alpha = x->alpha;
        c->beta[0] = x->beta[0], c->beta[1] = x->beta[1];
        c->active = x->active;
    }
    return status;
}
