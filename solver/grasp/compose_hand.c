/* The hand on its carrier: finds the base, the closing actuators, their controls, and the open
 * pose.
 *
 * The open pose comes from a simulation: the hand alone, without gravity, holds its open
 * controls until it rests. If neither request nor keyframes tell which end of a control range
 * opens the hand, both ends are simulated; the open end is the one with the outermost bodies
 * farther apart. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grasp/grasp.h"

/* limits of the simulation in which the hand comes to rest */
static const double SETTLE_S = 2, SETTLE_DT_S = 5e-4, REST_SPEED = 1e-4;
enum { SETTLE_CHUNK = 25 };

/* ---- the base ---- */

static bool is_ground(const tb_model_shape *shape)
{
    return shape->type == TB_SHAPE_PLANE || shape->type == TB_SHAPE_HEIGHT_FIELD;
}

static tb_status find_base(tb_grasp_plan *plan, grasp_hand *hand, tb_error *error)
{
    const tb_model *m = hand->file;
    int32_t roots = 0, root = 0;
    bool carried = false;
    for (int32_t b = 1; b < m->number_of_bodies; b++) {
        if (m->bodies[b].parent != 0) continue;
        roots++;
        root = b;
    }
    for (int32_t s = 0; s < m->number_of_shapes; s++) {
        if (m->shapes[s].body != 0) continue;
        if (!is_ground(&m->shapes[s])) carried = true;
    }
    if (roots == 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "hand", "the hand has no bodies");
    hand->merge.base = roots == 1 && !carried ? root : 0;
    hand->merge.world_shapes = true;
    for (int32_t b = 1; b < m->number_of_bodies && hand->merge.base == 0; b++) {
        const tb_model_body *body = &m->bodies[b];
        if (body->parent == 0 && body->number_of_joints > 0 &&
            m->joints[body->joint].type == TB_JOINT_FREE)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "hand",
                                 "the hand has more than one base: body '%.80s' is free, and there "
                                 "is more on the world",
                                 tb_model_thing_name(m, TB_HANDLE_BODY, b));
    }
    if (hand->merge.base == 0) return TB_OK;
    const tb_model_body *base = &m->bodies[hand->merge.base];
    for (int32_t j = base->joint; j < base->joint + base->number_of_joints; j++) {
        const char *name = tb_model_thing_name(m, TB_HANDLE_JOINT, j);
        const tb_status status = grasp_plan_warn(
            plan, error, "joint '%.80s' of the hand's base is replaced by the path", name);
        if (status != TB_OK) return status;
    }
    return TB_OK;
}

/* ---- building ---- */

tb_status grasp_hand_add(tb_scene *scene, const grasp_hand *hand, tb_error *error)
{
    tb_body_def def = tb_body_defaults();
    tb_merge_def merge = hand->merge;
    def.name = "carrier";
    def.kinematic = true;
    tb_status status = tb_scene_add_body(scene, &def, &merge.parent, error);
    if (status == TB_OK) status = tb_scene_add_model(scene, hand->file, &merge, error);
    for (int32_t i = 0; i < hand->number_of_stops && status == TB_OK; i++)
        status = tb_scene_stop_slide(scene, hand->stop_bodies[i] - 1, hand->stop_slides[i],
                                     hand->stop_lower[i], hand->stop_upper[i], error);
    return status;
}

static tb_status build_bare(grasp_hand *hand, double dt, tb_error *error)
{
    tb_scene_def def = tb_scene_defaults();
    tb_scene *scene = NULL;
    memset(def.gravity, 0, sizeof def.gravity);
    def.dt = dt;
    tb_status status = tb_scene_create(&def, &scene, error);
    hand->merge.actuators = hand->actuators;
    if (status == TB_OK) status = grasp_hand_add(scene, hand, error);
    hand->merge.actuators = NULL;
    if (status == TB_OK) status = tb_scene_compile(scene, &hand->bare, error);
    tb_scene_destroy(scene);
    return status;
}

/* ---- actuators ---- */

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

static const tb_model_keyframe *find_keyframe(const tb_model *m, const char *name)
{
    const int32_t k = tb_model_find(m, TB_HANDLE_KEYFRAME, name);
    return k >= 0 ? &m->keyframes[k] : NULL;
}

static const tb_model_keyframe *closed_keyframe(const tb_model *m)
{
    const tb_model_keyframe *closed = find_keyframe(m, "closed");
    return closed != NULL ? closed : find_keyframe(m, "close");
}

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
        plan->closing[plan->number_of_closing++] = hand->actuators[own];
    }
    return TB_OK;
}

static tb_status find_closing(const tb_grasp_hand *from, tb_grasp_plan *plan,
                              const grasp_hand *hand, tb_error *error)
{
    const tb_model *m = hand->file;
    const tb_model_keyframe *open = find_keyframe(m, "open"), *closed = closed_keyframe(m);
    if (from->number_of_closing > 0) return named_closing(from, plan, hand, error);
    for (int32_t i = 0; i < m->number_of_actuators; i++) {
        if (hand->actuators[i] < 0) continue;
        const bool differs = open != NULL && closed != NULL && open->controls != NULL &&
                             closed->controls != NULL && open->controls[i] != closed->controls[i];
        const bool told = open != NULL && closed != NULL;
        double lower, upper;
        if (told ? differs : control_range(&m->actuators[i], &lower, &upper))
            plan->closing[plan->number_of_closing++] = hand->actuators[i];
    }
    if (plan->number_of_closing == 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "hand.closing",
                             "no actuator of the hand has a control range: name those that close "
                             "it, with their controls");
    return TB_OK;
}

/* ---- simulating the open hand ---- */

/* Coordinates of the bare hand from those of its file: without the base's own coordinates. */
static void bare_coordinates(const grasp_hand *hand, const double *q, double *bare)
{
    const tb_model *m = hand->file;
    int32_t n = 0;
    for (int32_t j = 0; j < m->number_of_joints; j++) {
        const tb_model_joint *joint = &m->joints[j];
        const int32_t count = tb_joint_coordinates(joint->type);
        if (hand->merge.base == 0 || joint->body != hand->merge.base)
            for (int32_t i = 0; i < count; i++) bare[n++] = q[joint->coordinate + i];
    }
}

static bool rests(const tb_state *state, int32_t dofs)
{
    const double *u = tb_state_u(state);
    for (int32_t i = 0; i < dofs; i++)
        if (!(fabs(u[i]) < REST_SPEED)) return false;
    return true;
}

/* Simulates the hand with these controls of its closing actuators until it rests; then *spread
 * (m) is the distance of its outermost bodies and q its joint coordinates. */
static tb_status settle(const tb_grasp_plan *plan, const grasp_hand *hand, const double *start,
                        const double *closing, double *q, double *spread, tb_error *error)
{
    const tb_model *m = hand->bare;
    tb_step_options options = plan->step;
    options.backend = TB_BACKEND_CPU; /* one small world, with the same result for every backend */
    options.device = 0;
    options.dt = fmax(plan->dt, SETTLE_DT_S); /* bounds the number of steps */
    const int64_t most = (int64_t)(SETTLE_S / options.dt);
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    tb_body_motion *motions = calloc((size_t)m->number_of_bodies, sizeof *motions);
    tb_status status = motions == NULL ? tb_fail_memory(error, 0, "a hand") : TB_OK;
    if (status == TB_OK) status = tb_state_create(m, &state, error);
    if (status == TB_OK) status = tb_stepper_create(&options, &stepper, error);
    if (status == TB_OK) status = tb_state_set_q(state, start, m->number_of_coordinates, error);
    if (status == TB_OK)
        status = tb_state_set_controls(state, plan->controls, m->number_of_actuators, error);
    for (int32_t i = 0; i < plan->number_of_closing && status == TB_OK; i++)
        status = tb_state_set_control(state, plan->closing[i], closing[i], error);
    for (int64_t step = 0; step < most && status == TB_OK; step += SETTLE_CHUNK) {
        status = tb_step(stepper, state, SETTLE_CHUNK, NULL, error);
        if (rests(state, m->number_of_dofs)) break;
    }
    if (status == TB_DIVERGED)
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, "hand",
                               "the hand diverges when it is opened: are its controls in range?");
    if (status == TB_OK) status = tb_state_body_motions(state, motions);
    if (status == TB_OK) {
        int32_t pairs = 0;
        *spread = 0;
        memcpy(q, tb_state_q(state), (size_t)m->number_of_coordinates * sizeof *q);
        for (int32_t a = 2; a < m->number_of_bodies; a++)
            for (int32_t b = a + 1; b < m->number_of_bodies; b++) {
                /* bodies without children: in depth-first order the next one is no child */
                const bool leaf_a = m->bodies[a + 1].parent != a;
                const bool leaf_b = b + 1 == m->number_of_bodies || m->bodies[b + 1].parent != b;
                if (!leaf_a || !leaf_b || m->bodies[a].tree < 0 || m->bodies[b].tree < 0) continue;
                const tb_vec3 way =
                    tb_v3_sub(tb_v3_load(motions[a].com), tb_v3_load(motions[b].com));
                *spread += tb_v3_length(way);
                pairs++;
            }
        if (pairs > 0) *spread /= pairs;
    }
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    free(motions);
    return status;
}

/* ---- controls ---- */

/* Index among the file's actuators of one of the bare hand's. */
static int32_t own_index(const grasp_hand *hand, int32_t actuator)
{
    int32_t i = 0;
    while (hand->actuators[i] != actuator) i++;
    return i;
}

static tb_status range_ends(const tb_grasp_plan *plan, const grasp_hand *hand, double *lower,
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

/* Fills plan->open and plan->close from the request, the keyframes, or the ranges. */
static tb_status find_controls(const tb_grasp_hand *from, tb_grasp_plan *plan,
                               const grasp_hand *hand, const double *start, tb_error *error)
{
    const int32_t n = plan->number_of_closing, coordinates = hand->bare->number_of_coordinates;
    const tb_model_keyframe *open = find_keyframe(hand->file, "open"),
                            *closed = closed_keyframe(hand->file);
    const bool told_open = from->open_controls != NULL || (open != NULL && open->controls != NULL);
    const bool told_close =
        from->close_controls != NULL || (closed != NULL && closed->controls != NULL);
    if (!told_open || !told_close) {
        double *ends = calloc(2 * (size_t)n + (size_t)coordinates + 1, sizeof *ends);
        double *lower = ends, *upper = ends + n, spread[2] = {0};
        if (ends == NULL) return tb_fail_memory(error, 0, "a hand's controls");
        tb_status status = range_ends(plan, hand, lower, upper, error);
        if (status == TB_OK)
            status = settle(plan, hand, start, lower, ends + 2 * n, &spread[0], error);
        if (status == TB_OK)
            status = settle(plan, hand, start, upper, ends + 2 * n, &spread[1], error);
        const bool lower_opens = spread[0] >= spread[1];
        for (int32_t i = 0; i < n; i++) {
            plan->open[i] = lower_opens ? lower[i] : upper[i];
            plan->close[i] = lower_opens ? upper[i] : lower[i];
        }
        free(ends);
        if (status != TB_OK) return status;
    }
    for (int32_t i = 0; i < n; i++) {
        const int32_t own = own_index(hand, plan->closing[i]);
        if (open != NULL && open->controls != NULL) plan->open[i] = open->controls[own];
        if (closed != NULL && closed->controls != NULL) plan->close[i] = closed->controls[own];
        if (from->open_controls != NULL) plan->open[i] = from->open_controls[i];
        if (from->close_controls != NULL) plan->close[i] = from->close_controls[i];
    }
    return TB_OK;
}

/* Controls of all actuators except the closing ones, with the hand open. */
static void idle_controls(tb_grasp_plan *plan, const grasp_hand *hand)
{
    const tb_model_keyframe *open = find_keyframe(hand->file, "open");
    for (int32_t i = 0; i < hand->file->number_of_actuators; i++) {
        const int32_t bare = hand->actuators[i];
        if (bare < 0) continue;
        plan->controls[bare] = open != NULL && open->controls != NULL
                                   ? open->controls[i]
                                   : idle_control(hand->bare, &hand->bare->actuators[bare]);
    }
}

static tb_status take_arrays(tb_grasp_plan *plan, const grasp_hand *hand, tb_error *error)
{
    const size_t actuators = (size_t)hand->bare->number_of_actuators + 1;
    plan->hand_coordinates = hand->bare->number_of_coordinates;
    plan->open_q = calloc((size_t)plan->hand_coordinates + 1, sizeof *plan->open_q);
    plan->controls = calloc(actuators, sizeof *plan->controls);
    plan->closing = calloc(actuators, sizeof *plan->closing);
    plan->open = calloc(actuators, sizeof *plan->open);
    plan->close = calloc(actuators, sizeof *plan->close);
    if (plan->open_q == NULL || plan->controls == NULL || plan->closing == NULL ||
        plan->open == NULL || plan->close == NULL)
        return tb_fail_memory(error, 0, "a hand");
    return TB_OK;
}

tb_status grasp_hand_make(const tb_grasp_request *request, tb_grasp_plan *plan, grasp_hand *hand,
                          tb_error *error)
{
    double *start = NULL, spread = 0;
    hand->merge = tb_merge_defaults();
    hand->merge.prefix = "hand/";
    hand->merge.friction = request->object.friction > 0 ? request->object.friction : -1;
    tb_status status = tb_scene_compile_apart(request->hand.scene, request->hand.overlaps, NULL,
                                              &hand->file, error);
    for (int32_t i = 0; status == TB_OK && i < hand->file->number_of_warnings; i++)
        status = grasp_plan_warn(plan, error, "hand: %.400s", hand->file->warnings[i]);
    if (status != TB_OK) return status;
    hand->actuators = calloc((size_t)hand->file->number_of_actuators + 1, sizeof(int32_t));
    if (hand->actuators == NULL) return tb_fail_memory(error, 0, "a hand");
    status = find_base(plan, hand, error);
    if (status == TB_OK) status = build_bare(hand, plan->dt, error);
    if (status == TB_OK) status = take_arrays(plan, hand, error);
    if (status == TB_OK) status = find_closing(&request->hand, plan, hand, error);
    if (status != TB_OK) return status;

    start = calloc((size_t)plan->hand_coordinates + 1, sizeof *start);
    if (start == NULL) return tb_fail_memory(error, 0, "a hand");
    const tb_model_keyframe *open = find_keyframe(hand->file, "open");
    bare_coordinates(hand, open != NULL && open->q != NULL ? open->q : hand->file->q_reference,
                     start);
    idle_controls(plan, hand);
    status = find_controls(&request->hand, plan, hand, start, error);
    if (status == TB_OK)
        status = settle(plan, hand, start, plan->open, plan->open_q, &spread, error);
    for (int32_t i = 0; i < plan->number_of_closing && status == TB_OK; i++)
        plan->controls[plan->closing[i]] = plan->open[i];
    if (status == TB_OK && request->protocol.width > 0)
        status = grasp_hand_stop(plan, hand, request->protocol.width, error);
    free(start);
    return status;
}

void grasp_hand_free(grasp_hand *hand)
{
    tb_model_destroy(hand->bare);
    tb_model_destroy(hand->file);
    free(hand->actuators);
    memset(hand, 0, sizeof *hand);
}
