/* Hands that jam: warnings of what keeps the fingers from closing, found by taking it away.
 *
 * The hand closes on nothing again without the dry friction of its joints, and again without the
 * contacts between its links that push in the closed pose. Where the fingertips then go further, the
 * suspect is named with both ways. Fingertips may touch each other: that is how a hand closes. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grasp/grasp.h"

/* a way that grows by less than this share, or by less than this length, is the same */
static const double LONGER = 0.1, LONGER_M = 1e-3;

typedef struct closing {
    const tb_grasp_plan *plan;
    const grasp_hand *hand;
    double *controls, *q; /* of the closed hand; coordinates, scratch */
    tb_body_motion *open, *closed;
} closing;

/* Largest way (m) of a fingertip from the open pose to coordinates q. */
static tb_status find_way(closing *c, const double *q, double *way, tb_error *error)
{
    tb_state *state = NULL;
    *way = 0;
    tb_status status = tb_state_create(c->hand->bare, &state, error);
    if (status == TB_OK) status = grasp_hand_motions(c->hand, state, q, c->closed, error);
    for (int32_t i = 0; i < c->hand->number_of_tips && status == TB_OK; i++) {
        const int32_t b = c->hand->tips[i];
        const tb_vec3 from = tb_v3_load(c->open[b].com), to = tb_v3_load(c->closed[b].com);
        *way = fmax(*way, tb_v3_length(tb_v3_sub(to, from)));
    }
    tb_state_destroy(state);
    return status;
}

/* The way of the fingertips where another hand closes, from the same pose; 0 where that diverges. */
static tb_status way_of_other(closing *c, const grasp_hand *other, double *way, tb_error *error)
{
    const tb_status status =
        grasp_hand_rest(c->plan, other, c->plan->open_q, c->controls, c->q, NULL, error);
    *way = 0;
    if (status == TB_DIVERGED) return TB_OK;
    return status == TB_OK ? find_way(c, c->q, way, error) : status;
}

static bool is_longer(double way, double than)
{
    return way > (1 + LONGER) * than + LONGER_M;
}

/* ---- dry friction ---- */

static tb_status look_at_friction(closing *c, tb_grasp_plan *plan, double way, tb_error *error)
{
    const size_t joints = (size_t)c->hand->bare->number_of_joints;
    double without = 0;
    double *none = calloc(joints + 1, sizeof *none);
    if (none == NULL) return tb_fail_memory(error, 0, "a hand's friction");
    const tb_parameters parameters = {.dry_friction = none};
    grasp_hand other = *c->hand;
    other.parameters = &parameters;
    tb_status status = way_of_other(c, &other, &without, error);
    if (status == TB_OK && is_longer(without, way))
        status = grasp_plan_warn(plan, error,
                                 "jams: the closing actuators do not overcome the dry friction of "
                                 "the joints: the fingertips move %.1f mm, without it %.1f mm",
                                 1e3 * way, 1e3 * without);
    free(none);
    return status;
}

/* ---- links that block each other ---- */

static bool is_tip(const grasp_hand *hand, int32_t body)
{
    for (int32_t i = 0; i < hand->number_of_tips; i++)
        if (hand->tips[i] == body) return true;
    return false;
}

/* Pairs of shapes that push in the closed pose and are not two fingertips'; the one that pushes the
 * most comes first. The caller frees *pairs. */
static tb_status list_blocking(closing *c, int32_t **pairs, int32_t *count, tb_error *error)
{
    const tb_model *m = c->hand->bare;
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    tb_step_options options = c->plan->step;
    options.backend = TB_BACKEND_CPU;
    options.device = 0;
    double largest = 0;
    *count = 0;
    tb_status status = tb_state_create(m, &state, error);
    if (status == TB_OK) status = tb_stepper_create(&options, &stepper, error);
    if (status == TB_OK)
        status = tb_state_set_q(state, c->plan->closed_q, m->number_of_coordinates, error);
    if (status == TB_OK)
        status = tb_state_set_controls(state, c->controls, m->number_of_actuators, error);
    if (status == TB_OK) status = tb_step(stepper, state, 1, NULL, error);
    if (status == TB_DIVERGED || status == TB_NOT_CONVERGED) status = TB_OK;
    const int32_t contacts = status == TB_OK ? tb_state_number_of_contacts(state) : 0;
    *pairs = calloc(2 * ((size_t)contacts + 1), sizeof **pairs);
    if (*pairs == NULL) status = tb_fail_memory(error, 0, "a hand's contacts");
    for (int32_t i = 0; i < contacts && status == TB_OK; i++) {
        tb_contact_info info;
        status = tb_state_contact(state, i, &info);
        if (status != TB_OK || !(info.impulse[0] > 0)) continue;
        const int32_t a = info.shape_a, b = info.shape_b;
        if (is_tip(c->hand, m->shapes[a].body) && is_tip(c->hand, m->shapes[b].body)) continue;
        int32_t *at = *pairs + 2 * (*count)++;
        if (info.impulse[0] > largest) {
            largest = info.impulse[0];
            memcpy(at, *pairs, 2 * sizeof *at);
            at = *pairs;
        }
        at[0] = a;
        at[1] = b;
    }
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    return status;
}

static const char *link_name(const closing *c, int32_t shape)
{
    return grasp_hand_file_name(c->hand->bare, TB_HANDLE_BODY, c->hand->bare->shapes[shape].body);
}

static tb_status look_at_links(closing *c, tb_grasp_plan *plan, double way, tb_error *error)
{
    int32_t *pairs = NULL, count = 0;
    double without = 0;
    grasp_hand other = *c->hand;
    other.bare = NULL;
    tb_status status = list_blocking(c, &pairs, &count, error);
    if (status == TB_OK && count > 0)
        status = tb_model_leave_out(c->hand->bare, pairs, count, &other.bare, error);
    if (status == TB_OK && other.bare != NULL) status = way_of_other(c, &other, &without, error);
    if (status == TB_OK && is_longer(without, way))
        status = grasp_plan_warn(plan, error,
                                 "jams: links '%.60s' and '%.60s' block each other: the fingertips "
                                 "move %.1f mm, without their contact %.1f mm",
                                 link_name(c, pairs[0]), link_name(c, pairs[1]), 1e3 * way,
                                 1e3 * without);
    tb_model_destroy(other.bare);
    free(pairs);
    return status;
}

tb_status grasp_hand_warn_of_jams(tb_grasp_plan *plan, const grasp_hand *hand, tb_error *error)
{
    const tb_model *m = hand->bare;
    const size_t actuators = (size_t)m->number_of_actuators, bodies = (size_t)m->number_of_bodies;
    double *numbers = calloc(actuators + (size_t)plan->hand_coordinates + 1, sizeof *numbers);
    tb_body_motion *motions = calloc(2 * bodies, sizeof *motions);
    closing c = {.plan = plan, .hand = hand, .controls = numbers, .open = motions};
    tb_state *state = NULL;
    double way = 0;
    tb_status status = TB_OK;
    if (numbers == NULL || motions == NULL) status = tb_fail_memory(error, 0, "a hand");
    if (status == TB_OK) {
        c.q = numbers + actuators;
        c.closed = motions + bodies;
        memcpy(c.controls, plan->controls, actuators * sizeof *c.controls);
        for (int32_t i = 0; i < plan->number_of_closing; i++)
            c.controls[plan->closing[i]] = plan->close[i];
        status = tb_state_create(m, &state, error);
    }
    if (status == TB_OK) status = grasp_hand_motions(hand, state, plan->open_q, c.open, error);
    if (status == TB_OK) status = find_way(&c, plan->closed_q, &way, error);
    if (status == TB_OK) status = look_at_friction(&c, plan, way, error);
    if (status == TB_OK) status = look_at_links(&c, plan, way, error);
    tb_state_destroy(state);
    free(numbers);
    free(motions);
    return status;
}

tb_status grasp_warn_of_haste(tb_grasp_plan *plan, tb_error *error)
{
    const double time = (double)(plan->phases.close - plan->phases.approach) * plan->dt;
    if (!(plan->info.close_seconds > time)) return TB_OK;
    return grasp_plan_warn(
        plan, error, "the hand needs %.2f s to close on nothing, and has %.2f s: close_seconds",
        plan->info.close_seconds, time);
}

/* ---- overlaps ---- */

tb_status grasp_hand_warn_of_overlaps(tb_grasp_plan *plan, const grasp_hand *hand, bool refuse,
                                      tb_error *error)
{
    const tb_model *m = hand->bare;
    tb_state *state = NULL;
    tb_overlap *list = NULL;
    int32_t count = 0;
    tb_status status = tb_state_create(m, &state, error);
    if (status == TB_OK)
        status = tb_state_set_q(state, plan->open_q, m->number_of_coordinates, error);
    if (status == TB_OK)
        status = tb_state_overlaps(state, tb_step_defaults().contact_slop, 0, &list, &count, error);
    enum { NAMED = 8 };
    for (int32_t i = 0; i < count && i < NAMED && status == TB_OK; i++) {
        const char *a = grasp_hand_file_name(m, TB_HANDLE_BODY, list[i].body_a);
        const char *b = grasp_hand_file_name(m, TB_HANDLE_BODY, list[i].body_b);
        const double mm = 1e3 * list[i].depth;
        status = refuse ? tb_fail_field(error, TB_FAILED_PRECONDITION, "overlaps",
                                        "'%.60s' and '%.60s' of the open hand overlap by %.3g mm",
                                        a, b, mm)
                        : grasp_plan_warn(plan, error,
                                          "hand: '%.60s' and '%.60s' overlap by %.3g mm with the "
                                          "hand open: they push each other apart",
                                          a, b, mm);
    }
    if (status == TB_OK && count > NAMED)
        status = grasp_plan_warn(plan, error, "hand: %d more pairs overlap less with the hand open",
                                 (int)count - NAMED);
    tb_overlaps_destroy(list);
    tb_state_destroy(state);
    return status;
}
