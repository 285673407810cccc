/* Closing actuators and their controls: of the request, else of the hand's profile, else of its
 * keyframes "open" and "closed", else of its motion (hand_motion.c). */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grasp/hand/profiles.h"

/* The control range of an actuator: its own, or the one that a plain motor's force limits imply. */
static bool control_range(const tb_model_actuator *a, double *lower, double *upper)
{
    const bool motor = a->gain[0] > 0 && a->gain[1] == 0 && a->gain[2] == 0 && a->bias[0] == 0 &&
                       a->bias[1] == 0 && a->bias[2] == 0;
    *lower = a->control_limited ? a->control_lower : a->force_lower / a->gain[0];
    *upper = a->control_limited ? a->control_upper : a->force_upper / a->gain[0];
    return a->control_limited || (motor && a->force_limited);
}

/* Control that causes no motion: for a position servo, the joint's described position. */
static double idle_control(const tb_model *m, const tb_model_actuator *a)
{
    double control = 0;
    if (a->joint >= 0 && a->gain[0] > 0 && a->bias[1] < 0) {
        const tb_model_joint *joint = &m->joints[a->joint];
        control = -a->bias[1] / a->gain[0] * a->gear[0] * joint->reference;
    }
    if (a->control_limited) control = fmin(fmax(control, a->control_lower), a->control_upper);
    return control;
}

/* Controls of a keyframe of the file; NULL: it has no such keyframe with controls. */
static const double *keyframe_controls(const tb_model *m, const char *name)
{
    const int32_t k = tb_model_find(m, TB_HANDLE_KEYFRAME, name);
    return k >= 0 ? m->keyframes[k].controls : NULL;
}

static const double *closed_controls(const tb_model *m)
{
    const double *closed = keyframe_controls(m, "closed");
    return closed != NULL ? closed : keyframe_controls(m, "close");
}

/* Index among the file's actuators of one of the bare hand's. */
static int32_t own_index(const grasp_hand *hand, int32_t actuator)
{
    int32_t i = 0;
    while (hand->actuators[i] != actuator) i++;
    return i;
}

static void add_closing(tb_grasp_plan *plan, int32_t actuator, tb_control_source source,
                        double open, double close)
{
    const int32_t n = plan->number_of_closing++;
    plan->closing[n] = actuator;
    plan->open[n] = open;
    plan->close[n] = close;
    plan->sources[n] = source;
}

/* ---- choosing actuators ---- */

static tb_status named_closing(const tb_grasp_hand *from, tb_grasp_plan *plan,
                               const grasp_hand *hand, tb_error *error)
{
    for (int32_t i = 0; i < from->number_of_closing; i++) {
        const char *name = from->closing[i] != NULL ? from->closing[i] : "";
        const int32_t own = tb_model_find(hand->file, TB_HANDLE_ACTUATOR, name);
        if (own < 0)
            return tb_fail_field(error, TB_NOT_FOUND, "hand.closing",
                                 "the hand has no actuator '%.100s'", name);
        if (hand->actuators[own] < 0)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "hand.closing",
                                 "actuator '%.100s' moves the hand's base, which the path carries",
                                 name);
        for (int32_t k = 0; k < i; k++)
            if (plan->closing[k] == hand->actuators[own])
                return tb_fail_field(error, TB_INVALID_ARGUMENT, "hand.closing",
                                     "actuator '%.100s' is named twice", name);
        add_closing(plan, hand->actuators[own], TB_CONTROL_MOTION, 0, 0);
    }
    return TB_OK;
}

/* Actuators of the profile's posture; none where it has none. */
static void profile_closing(tb_grasp_plan *plan, const grasp_hand *hand)
{
    const tb_model *m = hand->file;
    for (int32_t i = 0; plan->profile != NULL && i < m->number_of_actuators; i++) {
        double open, close;
        if (hand->actuators[i] >= 0 && grasp_profile_controls(plan->profile, m, i, &open, &close))
            add_closing(plan, hand->actuators[i], TB_CONTROL_PROFILE, open, close);
    }
}

/* Actuators whose controls differ between the keyframes. */
static void keyframe_closing(tb_grasp_plan *plan, const grasp_hand *hand)
{
    const tb_model *m = hand->file;
    const double *open = keyframe_controls(m, "open"), *closed = closed_controls(m);
    for (int32_t i = 0; open != NULL && closed != NULL && i < m->number_of_actuators; i++)
        if (hand->actuators[i] >= 0 && open[i] != closed[i])
            add_closing(plan, hand->actuators[i], TB_CONTROL_KEYFRAME, open[i], closed[i]);
}

/* All actuators with a control range, until the motion shows which of them close the hand. */
static tb_status ranged_closing(tb_grasp_plan *plan, const grasp_hand *hand, tb_error *error)
{
    const tb_model *m = hand->file;
    double lower, upper;
    for (int32_t i = 0; i < m->number_of_actuators; i++)
        if (hand->actuators[i] >= 0 && control_range(&m->actuators[i], &lower, &upper))
            add_closing(plan, hand->actuators[i], TB_CONTROL_MOTION, 0, 0);
    if (plan->number_of_closing == 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "hand.closing",
                             "no actuator of the hand has a control range: name those that close "
                             "it, with their controls");
    return TB_OK;
}

/* ---- controls ---- */

/* Gives named actuators the controls of the keyframes, where there are both. */
static void keyframe_named(tb_grasp_plan *plan, const grasp_hand *hand)
{
    const double *open = keyframe_controls(hand->file, "open"),
                 *closed = closed_controls(hand->file);
    for (int32_t i = 0; open != NULL && closed != NULL && i < plan->number_of_closing; i++) {
        const int32_t own = own_index(hand, plan->closing[i]);
        plan->open[i] = open[own];
        plan->close[i] = closed[own];
        plan->sources[i] = TB_CONTROL_KEYFRAME;
    }
}

static tb_status ends_of(const tb_grasp_plan *plan, const grasp_hand *hand, double *lower,
                         double *upper, tb_error *error)
{
    for (int32_t i = 0; i < plan->number_of_closing; i++) {
        const tb_model_actuator *a = &hand->bare->actuators[plan->closing[i]];
        const char *name =
            tb_model_thing_name(hand->file, TB_HANDLE_ACTUATOR, own_index(hand, plan->closing[i]));
        if (!control_range(a, &lower[i], &upper[i]))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "hand.close_controls",
                                 "actuator '%.100s' has no control range: give its controls open "
                                 "and closed",
                                 name);
    }
    return TB_OK;
}

/* Leaves out the actuators that do not move the fingertips apart. */
static void keep_closing(tb_grasp_plan *plan, const bool *closes)
{
    int32_t n = 0;
    for (int32_t i = 0; i < plan->number_of_closing; i++) {
        if (!closes[i]) continue;
        plan->closing[n] = plan->closing[i];
        plan->open[n] = plan->open[i];
        plan->close[n] = plan->close[i];
        plan->sources[n++] = plan->sources[i];
    }
    plan->number_of_closing = n;
}

static tb_status controls_from_motion(tb_grasp_plan *plan, const grasp_hand *hand, bool named,
                                      const double *start, tb_error *error)
{
    const size_t n = (size_t)plan->number_of_closing;
    double *ends = calloc(2 * n + 1, sizeof *ends);
    bool *closes = calloc(n + 1, sizeof *closes);
    tb_status status = TB_OK;
    if (ends == NULL || closes == NULL) status = tb_fail_memory(error, 0, "a hand's controls");
    if (status == TB_OK) status = ends_of(plan, hand, ends, ends + n, error);
    if (status == TB_OK) {
        const grasp_motion motion = {.hand = hand,
                                     .actuators = plan->closing,
                                     .count = plan->number_of_closing,
                                     .lower = ends,
                                     .upper = ends + n,
                                     .open = plan->open,
                                     .close = plan->close,
                                     .closes = closes};
        status = grasp_motion_find(plan, &motion, start, error);
    }
    if (status == TB_DIVERGED)
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, "hand",
                               "the hand diverges at the ends of its control ranges: give its "
                               "controls open and closed");
    if (status == TB_OK && !named) keep_closing(plan, closes);
    free(ends);
    free(closes);
    return status;
}

static void request_controls(const tb_grasp_hand *from, tb_grasp_plan *plan)
{
    for (int32_t i = 0; i < plan->number_of_closing; i++) {
        if (from->open_controls != NULL) plan->open[i] = from->open_controls[i];
        if (from->close_controls != NULL) plan->close[i] = from->close_controls[i];
        if (from->open_controls != NULL || from->close_controls != NULL)
            plan->sources[i] = TB_CONTROL_REQUEST;
    }
}

/* Controls of all actuators that do not close the hand. */
static void idle_controls(tb_grasp_plan *plan, const grasp_hand *hand)
{
    const double *open = keyframe_controls(hand->file, "open");
    for (int32_t i = 0; i < hand->file->number_of_actuators; i++) {
        const int32_t bare = hand->actuators[i];
        if (bare >= 0)
            plan->controls[bare] =
                open != NULL ? open[i] : idle_control(hand->bare, &hand->bare->actuators[bare]);
    }
}

tb_status grasp_hand_controls(const tb_grasp_hand *from, tb_grasp_plan *plan,
                              const grasp_hand *hand, const double *start, tb_error *error)
{
    const bool named = from->number_of_closing > 0;
    const bool told = from->open_controls != NULL && from->close_controls != NULL;
    tb_status status = TB_OK;
    idle_controls(plan, hand);
    if (named) {
        status = named_closing(from, plan, hand, error);
        if (status == TB_OK) keyframe_named(plan, hand);
    } else {
        profile_closing(plan, hand);
        if (plan->number_of_closing == 0) keyframe_closing(plan, hand);
        if (plan->number_of_closing == 0) status = ranged_closing(plan, hand, error);
    }
    if (status == TB_OK && !told && plan->sources[0] == TB_CONTROL_MOTION)
        status = controls_from_motion(plan, hand, named, start, error);
    if (status == TB_OK) request_controls(from, plan);
    return status;
}
