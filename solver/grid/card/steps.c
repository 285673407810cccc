/* The processor's side of a world on a card: which part of a substep the card makes, and which copy of the
 * fields is the present one. Contacts are found and solved here: where bodies are near, their fields are
 * copied, and the changed velocities go back. */
#include "grid/card/steps.h"

#include <stdlib.h>
#include <string.h>

#include "grid/grid_internal.h"

/* Rigid bodies and the clamps that move with them take part on the processor alone. */
static bool fits(const tb_soft_scene *s)
{
    bool fits = s->rigid[0] == '\0';
    for (int32_t i = 0; i < s->number_of_obstacles; i++) fits = fits && s->obstacles[i].rigid == 0;
    for (int32_t i = 0; i < s->number_of_clamps; i++)
        fits = fits && s->clamps[i].rigid == 0 && s->clamps[i].partner[0] == '\0';
    return fits;
}

tb_status tb_soft_card_open(tb_soft_world *w, tb_error *error)
{
    const tb_soft_scene *s = &w->scene;
    tb_soft_card_body body[TB_SOFT_MOST_BODIES];
    tb_soft_card_clamp clamp[TB_SOFT_MOST_BODIES];
    const tb_backend *backend = NULL;
    if (s->options.backend != TB_BACKEND_GPU || !fits(s)) return TB_OK;
    tb_status status = tb_backend_find(TB_BACKEND_GPU, &backend, error);
    if (status != TB_OK || backend->soft_open == NULL) return status;
    for (int32_t b = 0; b < s->number_of_bodies; b++)
        body[b] = (tb_soft_card_body){s->bodies[b].shape, s->bodies[b].material,
                                      w->fields[b].held != NULL};
    for (int32_t i = 0; i < s->number_of_clamps; i++) {
        const tb_soft_clamp *from = s->clamps + i;
        clamp[i] = (tb_soft_card_clamp){.body = from->body};
        memcpy(clamp[i].lower, from->lower, sizeof clamp[i].lower);
        memcpy(clamp[i].upper, from->upper, sizeof clamp[i].upper);
        memcpy(clamp[i].velocity, from->velocity, sizeof clamp[i].velocity);
    }
    const tb_soft_card_scene scene = {.space = w->space,
                                      .nodes = w->nodes,
                                      .bodies = s->number_of_bodies,
                                      .clamps = s->number_of_clamps,
                                      .body = body,
                                      .clamp = clamp};
    w->card = calloc(1, sizeof *w->card);
    if (w->card == NULL) return tb_fail_memory(error, sizeof *w->card, "soft bodies on a card");
    w->card->backend = backend;
    return backend->soft_open(0, &scene, &w->card->context, error);
}

void tb_soft_card_close(tb_soft_world *w)
{
    if (w->card == NULL) return;
    if (w->card->context != NULL) w->card->backend->soft_close(w->card->context);
    free(w->card);
    w->card = NULL;
}

void tb_soft_card_forget(tb_soft_world *w)
{
    if (w->card == NULL) return;
    w->card->brought = w->card->stale = false;
}

static tb_status call(tb_soft_world *w, tb_soft_card_part part, double dt, tb_error *error)
{
    tb_soft_card *c = w->card;
    const tb_soft_card_call call = {part, w->time, dt, w->fields, c->outcomes};
    return c->backend->soft_call(c->context, &call, error);
}

tb_status tb_soft_card_bring(tb_soft_world *w, tb_error *error)
{
    if (w->card == NULL || w->card->brought) return TB_OK;
    const tb_status status = call(w, TB_SOFT_CARD_BRING, 0, error);
    w->card->brought = w->card->measured = status == TB_OK;
    return status;
}

tb_status tb_soft_card_fetch(tb_soft_world *w, tb_error *error)
{
    if (w->card == NULL || !w->card->stale) return TB_OK;
    const tb_status status = call(w, TB_SOFT_CARD_FETCH, 0, error);
    w->card->stale = status != TB_OK;
    w->failed = w->failed || status != TB_OK;
    return status;
}

tb_status tb_soft_card_do(tb_soft_world *w, tb_soft_card_part part, double dt, tb_error *error)
{
    tb_soft_card *c = w->card;
    if (part == TB_SOFT_CARD_MEASURE && c->measured) return TB_OK;
    const tb_status status = call(w, part, dt, error);
    const bool computes = part == TB_SOFT_CARD_FORCES || part == TB_SOFT_CARD_TRANSPORT;
    if (computes || part == TB_SOFT_CARD_MEASURE)
        c->measured = status == TB_OK && part == TB_SOFT_CARD_MEASURE;
    if (!computes || status != TB_OK) return status;
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

bool tb_soft_card_may_touch(const tb_soft_world *w)
{
    const int32_t bodies = w->scene.number_of_bodies;
    for (int32_t a = 0; a < bodies; a++)
        for (int32_t b = a + 1; b < bodies + w->scene.number_of_obstacles; b++) {
            int32_t lower[3], upper[3];
            if (tb_soft_pair_may_touch(w, a, b, lower, upper)) return true;
        }
    return false;
}
