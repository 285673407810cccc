/* Description of a hand for callers: tool frame, closing axis, opening, controls, fingertips; and a
 * hand without an object (tb_hand). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grasp/hand/profiles.h"

/* a fingertip that moves less than this part of the largest way stays where it is */
static const double STAYS = 0.1;
static const double LEAST_WAY_M = 1e-4;
/* a link beside a finger, within this distance across it, that ends this much before its tip is part
 * of the finger's mechanism */
static const double LINK_M = 0.03;
enum { POWER_ITERATIONS = 60 };

const char *tb_control_source_name(tb_control_source source)
{
    static const char *const NAMES[] = {"idle", "request", "profile", "keyframe", "motion"};
    return (unsigned)source < sizeof NAMES / sizeof NAMES[0] ? NAMES[source] : "unknown";
}

const char *grasp_hand_file_name(const tb_model *bare, tb_handle_kind kind, int32_t index)
{
    static const char PREFIX[] = "hand/";
    const char *name = tb_model_thing_name(bare, kind, index);
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0 ? name + strlen(PREFIX) : name;
}

/* ---- controls ---- */

static tb_status note_controls(tb_grasp_plan *plan, const grasp_hand *hand, tb_error *error)
{
    tb_hand_info *info = &plan->info;
    tb_hand_control *list = calloc((size_t)hand->file->number_of_actuators + 1, sizeof *list);
    if (list == NULL) return tb_fail_memory(error, 0, "a hand's controls");
    info->controls = list;
    for (int32_t i = 0; i < hand->file->number_of_actuators; i++) {
        const int32_t bare = hand->actuators[i];
        if (bare < 0) continue;
        tb_hand_control *c = &list[info->number_of_controls++];
        c->open = c->close = plan->controls[bare];
        for (int32_t k = 0; k < plan->number_of_closing; k++) {
            if (plan->closing[k] != bare) continue;
            c->open = plan->open[k];
            c->close = plan->close[k];
            c->source = plan->sources[k];
        }
        const char *name = tb_model_thing_name(hand->file, TB_HANDLE_ACTUATOR, i);
        c->actuator = strdup(name);
        if (c->actuator == NULL) return tb_fail_memory(error, 0, "a hand's controls");
    }
    return TB_OK;
}

/* ---- fingertips ---- */

/* Largest n . x over the shapes of a body that can touch; n in the base's frame. */
static double body_support(const tb_model *m, const tb_body_motion *motions, int32_t body,
                           tb_vec3 n)
{
    double largest = -INFINITY;
    for (int32_t s = 0; s < m->number_of_shapes; s++) {
        if (m->shapes[s].body != body || (m->shapes[s].category == 0 && m->shapes[s].mask == 0))
            continue;
        const grasp_frame frame = grasp_frame_of(&motions[body]);
        largest = fmax(largest, grasp_support(m, s, &frame, n));
    }
    return largest;
}

static tb_status note_tips(tb_grasp_plan *plan, const grasp_hand *hand, const tb_body_motion *open,
                           const tb_body_motion *closed, tb_error *error)
{
    tb_hand_info *info = &plan->info;
    tb_hand_tip *tips = calloc((size_t)hand->number_of_tips + 1, sizeof *tips);
    if (tips == NULL) return tb_fail_memory(error, 0, "a hand's fingertips");
    info->tips = tips;
    for (int32_t i = 0; i < hand->number_of_tips; i++) {
        const int32_t b = hand->tips[i];
        tb_v3_store(tips[i].open, grasp_frame_in(&plan->tool, tb_v3_load(open[b].com)));
        tb_v3_store(tips[i].close, grasp_frame_in(&plan->tool, tb_v3_load(closed[b].com)));
        tips[i].body = strdup(grasp_hand_file_name(hand->bare, TB_HANDLE_BODY, b));
        if (tips[i].body == NULL) return tb_fail_memory(error, 0, "a hand's fingertips");
        info->number_of_tips++;
    }
    return TB_OK;
}

/* Direction from the base to the fingertips, normal to the closing axis, in the base's frame; zero for
 * tips at the base. */
static tb_vec3 forward_of(const tb_grasp_plan *plan, const grasp_hand *hand,
                          const tb_body_motion *open, const tb_body_motion *closed)
{
    const tb_vec3 axis = tb_q_rotate(plan->tool.orientation, tb_v3_load(plan->info.axis));
    tb_vec3 middle = tb_v3(0, 0, 0);
    for (int32_t i = 0; i < hand->number_of_tips; i++) {
        const int32_t b = hand->tips[i];
        middle = tb_v3_add(middle, tb_v3_add(tb_v3_load(open[b].com), tb_v3_load(closed[b].com)));
    }
    middle = tb_v3_add_scaled(middle, axis, -tb_v3_dot(axis, middle));
    return tb_v3_normalize(middle, tb_v3(0, 0, 0));
}

/* Leaves out the bars of fingers that are linkages: they have no children and touch nothing that the
 * hand holds. */
static void drop_links(tb_hand_info *info, grasp_hand *hand, tb_vec3 forward,
                       const tb_body_motion *open)
{
    const int32_t count = hand->number_of_tips;
    tb_hand_tip *tips = (tb_hand_tip *)(uintptr_t)info->tips;
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        const tb_body_motion *link = &open[hand->tips[i]];
        const double reach = body_support(hand->bare, open, hand->tips[i], forward);
        bool is_link = false;
        /* fingers in front of this one have been moved to the front of the list */
        for (int32_t k = 0; k < count && !is_link; k++) {
            if (k >= kept && k < i) continue;
            const tb_vec3 away =
                tb_v3_sub(tb_v3_load(open[hand->tips[k]].com), tb_v3_load(link->com));
            const tb_vec3 across = tb_v3_add_scaled(away, forward, -tb_v3_dot(forward, away));
            is_link = tb_v3_length(across) < LINK_M &&
                      body_support(hand->bare, open, hand->tips[k], forward) > reach + LINK_M;
        }
        if (is_link) {
            free((char *)(uintptr_t)tips[i].body);
            continue;
        }
        const tb_hand_tip tip = tips[i];
        tips[kept] = tip;
        hand->tips[kept++] = hand->tips[i];
    }
    info->number_of_tips = hand->number_of_tips = kept;
}

static tb_vec3 way_of(const tb_hand_tip *tip)
{
    return tb_v3_sub(tb_v3_load(tip->close), tb_v3_load(tip->open));
}

/* Direction in which the fingertips move relative to each other the most: the eigenvector of the
 * largest eigenvalue of the sum over pairs of (way_i - way_j)(way_i - way_j)', by power
 * iteration. */
static void find_axis(tb_hand_info *info)
{
    tb_vec3 axis = tb_v3(0.1, 1, 0.01);
    for (int round = 0; round < POWER_ITERATIONS; round++) {
        tb_vec3 next = tb_v3(0, 0, 0);
        for (int32_t i = 0; i < info->number_of_tips; i++)
            for (int32_t k = i + 1; k < info->number_of_tips; k++) {
                const tb_vec3 d = tb_v3_sub(way_of(&info->tips[i]), way_of(&info->tips[k]));
                next = tb_v3_add_scaled(next, d, tb_v3_dot(d, axis));
            }
        if (!(tb_v3_length(next) > LEAST_WAY_M * LEAST_WAY_M))
            return; /* the tips do not approach each other */
        axis = tb_v3_normalize(next, axis);
    }
    const double largest = fmax(fabs(axis.x), fmax(fabs(axis.y), fabs(axis.z)));
    for (int k = 0; k < 3; k++)
        if (fabs(tb_v3_at(axis, k)) == largest && tb_v3_at(axis, k) < 0) axis = tb_v3_negate(axis);
    tb_v3_store(info->axis, axis);
}

/* Free space between the fingertips on both sides of their middle along the axis, with the hand open
 * and closed. */
static void find_opening(tb_grasp_plan *plan, const grasp_hand *hand, const tb_body_motion *open,
                         const tb_body_motion *closed)
{
    tb_hand_info *info = &plan->info;
    const tb_vec3 axis = tb_q_rotate(plan->tool.orientation, tb_v3_load(info->axis));
    double middle = 0, above[2] = {INFINITY, INFINITY}, below[2] = {-INFINITY, -INFINITY};
    if (!(tb_v3_length(axis) > 0)) return;
    for (int32_t i = 0; i < hand->number_of_tips; i++)
        middle += tb_v3_dot(axis, tb_v3_load(open[hand->tips[i]].com)) / hand->number_of_tips;
    for (int32_t i = 0; i < hand->number_of_tips; i++) {
        const int32_t b = hand->tips[i];
        const bool is_above = tb_v3_dot(axis, tb_v3_load(open[b].com)) >= middle;
        for (int k = 0; k < 2; k++) {
            const tb_body_motion *pose = k == 0 ? open : closed;
            if (is_above)
                above[k] = fmin(above[k], -body_support(hand->bare, pose, b, tb_v3_negate(axis)));
            else
                below[k] = fmax(below[k], body_support(hand->bare, pose, b, axis));
        }
    }
    if (!isfinite(above[0]) || !isfinite(below[0])) return;
    info->opening = fmax(0, above[0] - below[0]);
    info->least_opening = fmin(info->opening, fmax(0, above[1] - below[1]));
}

/* Warns of hands that do not close, or with one side alone. */
static tb_status warn_of_sides(tb_grasp_plan *plan, const grasp_hand *hand,
                               const tb_body_motion *open, const tb_body_motion *closed,
                               tb_error *error)
{
    const tb_hand_info *info = &plan->info;
    const double apart = 1e3 * grasp_hand_spread(hand, open),
                 together = 1e3 * grasp_hand_spread(hand, closed);
    int32_t moved = -1, stays = -1, number_moved = 0;
    double largest = 0;
    for (int32_t i = 0; i < info->number_of_tips; i++)
        largest = fmax(largest, tb_v3_length(way_of(&info->tips[i])));
    if (info->number_of_tips < 2 || !(largest > LEAST_WAY_M))
        return grasp_plan_warn(
            plan, error,
            "the closing controls move %s fingertips: name the closing actuators "
            "and their controls open and closed",
            info->number_of_tips < 2 ? "fewer than two" : "no");
    for (int32_t i = 0; i < info->number_of_tips; i++) {
        const bool moves = tb_v3_length(way_of(&info->tips[i])) > STAYS * largest;
        number_moved += moves;
        *(moves ? &moved : &stays) = i;
    }
    if (number_moved == 1)
        return grasp_plan_warn(plan, error,
                               "one-sided: closing moves '%.60s' by %.1f mm and leaves '%.60s' in "
                               "place",
                               info->tips[moved].body, 1e3 * largest, info->tips[stays].body);
    if (!(together < apart))
        return grasp_plan_warn(plan, error,
                               "one-sided: the fingertips are %.1f mm apart with the hand open and "
                               "%.1f mm closed: do all fingers open in one sense?",
                               apart, together);
    return TB_OK;
}

tb_status grasp_hand_note(tb_grasp_plan *plan, grasp_hand *hand, tb_error *error)
{
    const tb_model *m = hand->bare;
    tb_hand_info *info = &plan->info;
    tb_state *state = NULL;
    const size_t bodies = (size_t)m->number_of_bodies;
    tb_body_motion *open = calloc(2 * bodies, sizeof *open), *closed = open + bodies;
    tb_status status = open == NULL ? tb_fail_memory(error, 0, "a hand") : TB_OK;
    if (status == TB_OK) status = note_controls(plan, hand, error);
    if (status == TB_OK) status = tb_state_create(m, &state, error);
    if (status == TB_OK) status = grasp_hand_motions(hand, state, plan->open_q, open, error);
    if (status == TB_OK) status = grasp_hand_motions(hand, state, plan->closed_q, closed, error);
    if (status == TB_OK) status = note_tips(plan, hand, open, closed, error);
    if (status == TB_OK) {
        const int32_t base = hand->merge.base;
        snprintf(plan->base, sizeof plan->base, "%s",
                 base > 0 ? tb_model_thing_name(hand->file, TB_HANDLE_BODY, base) : "");
        info->base = plan->base;
        info->profile = plan->profile != NULL ? plan->profile->name : "";
        tb_v3_store(info->tool_position, plan->tool.position);
        tb_q_store(info->tool_orientation, plan->tool.orientation);
        find_axis(info);
        drop_links(info, hand, forward_of(plan, hand, open, closed), open);
        find_axis(info);
        find_opening(plan, hand, open, closed);
        status = warn_of_sides(plan, hand, open, closed, error);
        if (status == TB_OK) status = grasp_hand_warn_of_jams(plan, hand, error);
    }
    tb_state_destroy(state);
    free(open);
    return status;
}

void grasp_hand_forget(tb_grasp_plan *plan)
{
    tb_hand_info *info = &plan->info;
    for (int32_t i = 0; i < info->number_of_controls; i++) free((char *)info->controls[i].actuator);
    for (int32_t i = 0; i < info->number_of_tips; i++) free((char *)info->tips[i].body);
    free((tb_hand_control *)info->controls);
    free((tb_hand_tip *)info->tips);
}

/* ---- a hand without an object ---- */

struct tb_hand {
    tb_grasp_plan plan;
    grasp_hand hand;
    tb_body_motion *open, *closed; /* all bodies of the bare hand */
    int32_t *shapes;               /* shapes that can touch */
    int32_t number_of_shapes;
};

/* Motions of all bodies in both poses, and the shapes that can touch. */
static tb_status pose_hand(tb_hand *h, tb_error *error)
{
    const tb_model *m = h->hand.bare;
    tb_state *state = NULL;
    h->open = calloc((size_t)m->number_of_bodies, sizeof *h->open);
    h->closed = calloc((size_t)m->number_of_bodies, sizeof *h->closed);
    h->shapes = calloc((size_t)m->number_of_shapes + 1, sizeof *h->shapes);
    if (h->open == NULL || h->closed == NULL || h->shapes == NULL)
        return tb_fail_memory(error, 0, "a hand");
    for (int32_t s = 0; s < m->number_of_shapes; s++)
        if (m->shapes[s].category != 0 || m->shapes[s].mask != 0)
            h->shapes[h->number_of_shapes++] = s;
    tb_status status = tb_state_create(m, &state, error);
    if (status == TB_OK)
        status = grasp_hand_motions(&h->hand, state, h->plan.open_q, h->open, error);
    if (status == TB_OK)
        status = grasp_hand_motions(&h->hand, state, h->plan.closed_q, h->closed, error);
    tb_state_destroy(state);
    return status;
}

tb_status tb_hand_create(const tb_grasp_hand *hand, tb_hand **made, tb_error *error)
{
    tb_grasp_request request = tb_grasp_defaults();
    request.hand = *hand;
    *made = NULL;
    tb_status status = grasp_check_hand(hand, error);
    if (status != TB_OK) return status;
    tb_hand *h = calloc(1, sizeof *h);
    if (h == NULL) return tb_fail_memory(error, sizeof *h, "a hand");
    grasp_plan_options(&request, &h->plan);
    status = grasp_hand_make(&request, &h->plan, &h->hand, error);
    if (status == TB_OK) status = pose_hand(h, error);
    if (status == TB_OK)
        *made = h;
    else
        tb_hand_destroy(h);
    return status;
}

void tb_hand_destroy(tb_hand *h)
{
    if (h == NULL) return;
    grasp_hand_free(&h->hand);
    grasp_plan_free(&h->plan);
    free(h->open);
    free(h->closed);
    free(h->shapes);
    free(h);
}

const tb_hand_info *tb_hand_describe(const tb_hand *h)
{
    return &h->plan.info;
}

int32_t tb_hand_number_of_warnings(const tb_hand *h)
{
    return h->plan.number_of_warnings;
}

const char *tb_hand_warning(const tb_hand *h, int32_t index)
{
    return index >= 0 && index < h->plan.number_of_warnings ? h->plan.warnings[index] : "";
}

int32_t tb_hand_number_of_shapes(const tb_hand *h)
{
    return h->number_of_shapes;
}

const char *tb_hand_shape_body(const tb_hand *h, int32_t shape)
{
    const int32_t body = h->hand.bare->shapes[h->shapes[shape]].body;
    return grasp_hand_file_name(h->hand.bare, TB_HANDLE_BODY, body);
}

double tb_hand_support(const tb_hand *h, int32_t shape, bool closed, const double n[3])
{
    const tb_model *m = h->hand.bare;
    const int32_t index = h->shapes[shape], body = m->shapes[index].body;
    const grasp_frame frame = grasp_frame_of(&(closed ? h->closed : h->open)[body]);
    const tb_vec3 along = tb_q_rotate(h->plan.tool.orientation, tb_v3_load(n));
    return grasp_support(m, index, &frame, along) - tb_v3_dot(along, h->plan.tool.position);
}
