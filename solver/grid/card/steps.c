/* The processor's side of a world on a card: which part of a substep the card makes, and which copy of the
 * fields is the present one. Contacts are found and solved on the card. Those of the exact cone and of programs
 * that a card leaves come with the nodes at their corners, their programs are set up here, and the changed
 * velocities go back. */
#include "grid/card/steps.h"

#include <stdlib.h>
#include <string.h>

#include "grid/grid_internal.h"
#include "grid/nodes/projections.h"

tb_status tb_soft_card_open(tb_soft_world *w, tb_error *error)
{
    const tb_soft_scene *s = &w->scene;
    tb_soft_card_body body[TB_SOFT_MOST_BODIES];
    tb_soft_card_clamp clamp[TB_SOFT_MOST_BODIES];
    tb_soft_solid obstacle[TB_SOFT_MOST_OBSTACLES];
    const tb_backend *backend = NULL;
    if (s->options.backend != TB_BACKEND_GPU) return TB_OK;
    tb_status status = tb_backend_find(TB_BACKEND_GPU, &backend, error);
    if (status != TB_OK || backend->soft_open == NULL) return status;
    for (int32_t b = 0; b < s->number_of_bodies; b++)
        body[b] = (tb_soft_card_body){s->bodies[b].shape, s->bodies[b].material,
                                      w->fields[b].held != NULL};
    for (int32_t i = 0; i < s->number_of_clamps; i++) {
        const tb_soft_clamp *from = s->clamps + i;
        clamp[i].body = from->body;
        memcpy(clamp[i].lower, from->lower, sizeof clamp[i].lower);
        memcpy(clamp[i].upper, from->upper, sizeof clamp[i].upper);
    }
    for (int32_t i = 0; i < s->number_of_obstacles; i++) obstacle[i] = s->obstacles[i].shape;
    const tb_soft_card_scene scene = {.space = w->space,
                                      .nodes = w->nodes,
                                      .bodies = s->number_of_bodies,
                                      .clamps = s->number_of_clamps,
                                      .obstacles = s->number_of_obstacles,
                                      .body = body,
                                      .clamp = clamp,
                                      .obstacle = obstacle};
    w->card = calloc(1, sizeof *w->card);
    if (w->card == NULL) return tb_fail_memory(error, sizeof *w->card, "soft bodies on a card");
    w->card->backend = backend;
    return backend->soft_open(s->options.device, &scene, &w->card->context, error);
}

void tb_soft_card_close(tb_soft_world *w)
{
    if (w->card == NULL) return;
    for (int i = 0; i < 2; i++)
        if (w->card->rooms[i] != NULL) w->card->backend->program_leave(w->card->rooms[i]);
    if (w->card->context != NULL) w->card->backend->soft_close(w->card->context);
    free(w->card);
    w->card = NULL;
}

void tb_soft_card_forget(tb_soft_world *w)
{
    if (w->card == NULL) return;
    w->card->brought = w->card->stale = false;
    w->card->contacts_there = w->card->contacts_stale = false;
}

/* ---- calls ---- */

static tb_soft_card_call begin_call(tb_soft_world *w, tb_soft_card_part part)
{
    return (tb_soft_card_call){.part = part,
                               .frames = w->frames,
                               .fields = w->fields,
                               .outcomes = w->card->outcomes,
                               .impulses = w->card->impulses};
}

static tb_status make(tb_soft_world *w, const tb_soft_card_call *call, tb_error *error)
{
    return w->card->backend->soft_call(w->card->context, call, error);
}

static tb_status make_part(tb_soft_world *w, tb_soft_card_part part, tb_error *error)
{
    const tb_soft_card_call call = begin_call(w, part);
    return make(w, &call, error);
}

tb_status tb_soft_card_bring(tb_soft_world *w, tb_error *error)
{
    if (w->card == NULL || w->card->brought) return TB_OK;
    const tb_status status = make_part(w, TB_SOFT_CARD_BRING, error);
    w->card->brought = w->card->measured = status == TB_OK;
    return status;
}

tb_status tb_soft_card_fetch(tb_soft_world *w, tb_error *error)
{
    if (w->card == NULL || !w->card->stale) return TB_OK;
    tb_status status = tb_soft_card_fetch_contacts(w, error);
    if (status == TB_OK) status = make_part(w, TB_SOFT_CARD_FETCH, error);
    w->card->stale = status != TB_OK;
    w->failed = w->failed || status != TB_OK;
    return status;
}

tb_status tb_soft_card_keep(tb_soft_world *w, tb_error *error)
{
    tb_status status = tb_soft_card_bring(w, error);
    if (status == TB_OK) status = tb_soft_card_fetch_contacts(w, error);
    return status == TB_OK ? make_part(w, TB_SOFT_CARD_KEEP, error) : status;
}

tb_status tb_soft_card_undo(tb_soft_world *w, tb_error *error)
{
    const tb_status status = make_part(w, TB_SOFT_CARD_UNDO, error);
    w->card->brought = w->card->stale = true;
    w->card->contacts_there = w->card->contacts_stale = false; /* the caller has put them back */
    w->card->measured = status == TB_OK;
    return status;
}

tb_status tb_soft_card_do(tb_soft_world *w, tb_soft_card_part part, double dt, tb_error *error)
{
    tb_soft_card *c = w->card;
    tb_soft_card_call call = begin_call(w, part);
    const bool moves = part != TB_SOFT_CARD_MEASURE;
    if (!moves && c->measured) return TB_OK;
    call.dt = dt;
    for (int32_t i = 0; i < w->scene.number_of_clamps; i++)
        if (tb_soft_clamp_follows(w, i)) call.followers |= (uint64_t)1 << i;
    const tb_status status = make(w, &call, error);
    c->measured = status == TB_OK && !moves;
    if (!moves || status != TB_OK) return status;
    c->stale = true;
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++) {
        const tb_soft_card_outcome *o = c->outcomes + b;
        tb_soft_field *f = w->fields + b;
        if (part == TB_SOFT_CARD_FORCES) f->stiffness = o->stress.stiffness;
        memcpy(f->lower, o->lower, sizeof f->lower);
        memcpy(f->upper, o->upper, sizeof f->upper);
        f->outside = o->outside;
    }
    return TB_OK;
}

void tb_soft_card_receive(tb_soft_world *w, int32_t body)
{
    for (int32_t c = 0; c < w->scene.number_of_clamps; c++) {
        const double *impulse = w->card->impulses + 6 * c;
        if (w->scene.clamps[c].body == body && tb_soft_clamp_follows(w, c))
            tb_soft_clamp_receive(w, c, impulse, impulse + 3);
    }
}

/* ---- contacts ---- */

/* Pairs of things that may touch, and how many cells they share. */
static tb_status list_pairs(tb_soft_world *w, tb_soft_card_search *s, tb_error *error)
{
    const int32_t bodies = w->scene.number_of_bodies;
    const int32_t things = bodies + w->scene.number_of_obstacles;
    tb_soft_card_pair *pair = TB_ARENA_ARRAY(&w->step, tb_soft_card_pair, bodies * things);
    if (pair == NULL) return tb_fail_memory(error, 0, "pairs of soft bodies");
    for (int32_t a = 0; a < bodies; a++)
        for (int32_t b = a + 1; b < things; b++) {
            tb_soft_card_pair p = {.a = a, .b = b, .first = s->cells};
            int64_t cells = 1;
            if (!tb_soft_pair_may_touch(w, a, b, p.lower, p.upper)) continue;
            for (int i = 0; i < 3; i++) cells *= p.upper[i] - p.lower[i];
            s->cells += cells;
            pair[s->pairs++] = p;
        }
    s->pair = pair;
    return TB_OK;
}

static tb_status list_obstacles(tb_soft_world *w, tb_soft_card_search *s, tb_error *error)
{
    const int32_t count = w->scene.number_of_obstacles;
    tb_soft_card_obstacle *o = TB_ARENA_ZEROED(&w->step, tb_soft_card_obstacle, count);
    tb_soft_partner *rigid = TB_ARENA_ZEROED(&w->step, tb_soft_partner, w->number_of_rigid);
    int32_t *followed = TB_ARENA_ARRAY(&w->step, int32_t, w->scene.number_of_clamps);
    if (o == NULL || rigid == NULL || followed == NULL)
        return tb_fail_memory(error, 0, "obstacles of soft bodies");
    for (int32_t i = 0; i < count; i++) {
        o[i].solid = w->now[i];
        o[i].rigid = w->scene.obstacles[i].rigid - 1;
        memcpy(o[i].velocity, w->scene.obstacles[i].velocity, sizeof o[i].velocity);
    }
    for (int32_t i = 0; i < w->number_of_rigid; i++) {
        const tb_soft_rigid *r = w->rigid + i;
        rigid[i].centre = r->centre;
        rigid[i].moves = r->moves;
        memcpy(rigid[i].twist, r->twist, sizeof rigid[i].twist);
        memcpy(rigid[i].root, r->root, sizeof rigid[i].root);
    }
    for (int32_t c = 0; c < w->scene.number_of_clamps; c++)
        followed[c] = w->scene.clamps[c].rigid - 1;
    s->obstacle = o;
    s->rigid = rigid;
    s->rigids = w->number_of_rigid;
    s->followed = followed;
    return TB_OK;
}

/* The host's fields at the corners of a cell in contact. */
static void take_corners(tb_soft_world *w, const tb_soft_card_found *found)
{
    for (int side = 0; side < 2; side++) {
        const int32_t who = side == 0 ? found->contact.a : found->contact.b;
        if (who >= w->scene.number_of_bodies) continue;
        tb_soft_field *f = w->fields + who;
        for (int c = 0; c < 8; c++) {
            const int32_t n = tb_soft_corner(w, found->contact.cell, c);
            f->mass[n] = found->mass[side][c];
            memcpy(f->v + 3 * (size_t)n, found->v[side][c], sizeof found->v[side][c]);
            if (f->held != NULL) f->held[n] = found->held[side][c];
        }
    }
}

static int compare_places(const void *a, const void *b)
{
    const uint64_t x = ((const tb_soft_card_place *)a)->key,
                   y = ((const tb_soft_card_place *)b)->key;
    return x < y ? -1 : x > y;
}

tb_status tb_soft_card_find_contacts(tb_soft_world *w, tb_soft_contact **contacts, int32_t *count,
                                     tb_error *error)
{
    tb_soft_card_search s = {0};
    tb_soft_card_call call = begin_call(w, TB_SOFT_CARD_SEARCH);
    *contacts = NULL;
    *count = 0;
    tb_status status = list_pairs(w, &s, error);
    if (status != TB_OK || s.pairs == 0) return status;
    call.search = &s;
    status = list_obstacles(w, &s, error);
    if (status == TB_OK) status = make(w, &call, error);
    if (status != TB_OK) return status;
    *contacts = TB_ARENA_ARRAY(&w->step, tb_soft_contact, s.count);
    tb_soft_card_place *places = TB_ARENA_ARRAY(&w->step, tb_soft_card_place, s.count);
    if (*contacts == NULL || places == NULL)
        return tb_fail_memory(error, (size_t)s.count * sizeof **contacts, "cells in contact");
    for (int32_t i = 0; i < s.count; i++) {
        (*contacts)[i] = s.found[i].contact;
        places[i] = (tb_soft_card_place){s.found[i].contact.key, i};
        take_corners(w, s.found + i);
    }
    tb_soft_sort_contacts(*contacts, s.count);
    if (s.count > 0) qsort(places, (size_t)s.count, sizeof *places, compare_places);
    w->card->places = places;
    w->card->number_of_places = s.count;
    *count = s.count;
    return TB_OK;
}

tb_status tb_soft_card_fetch_contacts(tb_soft_world *w, tb_error *error)
{
    tb_soft_card *card = w->card;
    if (card == NULL || !card->contacts_stale) return TB_OK;
    tb_soft_card_call call = begin_call(w, TB_SOFT_CARD_RECALL);
    tb_arena_reset(&w->history);
    w->contacts = call.recalled =
        TB_ARENA_ARRAY(&w->history, tb_soft_contact, w->number_of_contacts);
    if (w->contacts == NULL) return tb_fail_memory(error, 0, "contacts of a substep");
    const tb_status status = make(w, &call, error);
    card->contacts_stale = status != TB_OK;
    return status;
}

enum { ANSWERS = 12 }; /* numbers of a rigid body that CONTACT gives */

/* Whether the card takes the contacts of a substep as a whole. */
static bool takes_contacts(const tb_soft_world *w)
{
    const tb_soft_options *o = &w->scene.options;
    return o->programs == TB_BACKEND_GPU && o->contact != TB_SOFT_NEWTON;
}

tb_status tb_soft_card_solve_contacts(tb_soft_world *w, double dt, tb_soft_certificate *c,
                                      bool *solved, tb_error *error)
{
    const tb_soft_options *o = &w->scene.options;
    const double *h = w->scene.lattice.spacing;
    double rates[TB_SOFT_MOST_BODIES];
    tb_soft_certificate worse = *c;
    tb_soft_card *card = w->card;
    tb_soft_card_call call = begin_call(w, TB_SOFT_CARD_CONTACT);
    *solved = false;
    if (!takes_contacts(w)) return tb_soft_card_fetch_contacts(w, error);
    const tb_qp_options programs = tb_soft_program_options(w);
    tb_soft_card_contacts s = {.before = w->contacts,
                               .befores = card->contacts_there ? -1 : w->number_of_contacts,
                               .push_rate = rates,
                               .dt = dt,
                               .least_spacing = tb_min(h[0], tb_min(h[1], h[2])),
                               .most_pushed = TB_SOFT_MOST_PUSHED_ENERGY * w->energy,
                               .friction = o->friction,
                               .tolerance = o->tolerance,
                               .most_projections = o->most_projections,
                               .sets = o->first_sets,
                               .programs = &programs,
                               .rooms = card->rooms,
                               .answers =
                                   TB_ARENA_ZEROED(&w->step, double, ANSWERS * w->number_of_rigid),
                               .c = &worse};
    if (s.answers == NULL) return tb_fail_memory(error, 0, "rigid bodies of a substep");
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++)
        rates[b] = tb_soft_push_rate(w->fields[b].stiffness, w->scene.bodies[b].material.density,
                                     s.least_spacing);
    tb_status status = list_pairs(w, &s.search, error);
    if (status == TB_OK) status = list_obstacles(w, &s.search, error);
    call.contacts = &s;
    if (status == TB_OK) status = make(w, &call, error);
    if (status != TB_OK) return status;
    *solved = s.solved;
    if (!s.solved) return tb_soft_card_fetch_contacts(w, error);
    *c = worse;
    for (int a = 0; a < 3; a++) w->external[a] += s.external[a];
    for (int32_t i = 0; i < w->number_of_rigid; i++)
        for (int k = 0; k < 6; k++) {
            w->rigid[i].y[k] = s.answers[ANSWERS * i + k];
            w->rigid[i].impulse[k] += s.answers[ANSWERS * i + 6 + k];
        }
    w->number_of_contacts = s.count;
    card->contacts_there = card->contacts_stale = true;
    return TB_OK;
}

tb_status tb_soft_card_make_hessian(tb_soft_world *w, const tb_soft_contact *contacts,
                                    int32_t count, const int32_t *number, int32_t columns,
                                    tb_qp_card_program *program, double *host, tb_error *error)
{
    const tb_soft_card_place *place = w->card->places;
    int32_t *found = TB_ARENA_ARRAY(&w->step, int32_t, count);
    tb_soft_card_call call = begin_call(w, TB_SOFT_CARD_HESSIAN);
    tb_soft_card_hessian h = {.found = found,
                              .contacts = program->program.n / columns,
                              .columns = columns,
                              .half_bandwidth = program->program.half_bandwidth,
                              .turned = columns == 2 && host == NULL,
                              .host = host};
    if (found == NULL) return tb_fail_memory(error, 0, "the Hessian of contacts");
    for (int32_t i = 0; i < count; i++) {
        if (number[i] < 0) continue;
        while (place->key != contacts[i].key) place++; /* both ascend, and all are there */
        found[number[i]] = place->place;
    }
    call.hessian = &h;
    const tb_status status = make(w, &call, error);
    program->band = h.band;
    program->stride = h.stride;
    return status;
}

tb_status tb_soft_card_sweep(tb_soft_world *w, tb_soft_sweeps *sweeps, tb_error *error)
{
    tb_soft_card_call call = begin_call(w, TB_SOFT_CARD_SWEEP);
    call.sweeps = sweeps;
    return make(w, &call, error);
}

tb_status tb_soft_card_push_velocities(tb_soft_world *w, const tb_soft_card_push *push,
                                       int32_t count, tb_error *error)
{
    tb_soft_card_call call = begin_call(w, TB_SOFT_CARD_PUSH);
    call.push = push;
    call.pushes = count;
    return count > 0 ? make(w, &call, error) : TB_OK;
}
