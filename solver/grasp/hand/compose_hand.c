/* The hand on its carrier: finds the base and the poses in which the hand rests open and closed.
 *
 * Both poses come from a simulation: the hand alone, without gravity, holds its controls until it
 * rests (hand_rest.c). hand_controls.c finds the controls, hand_info.c the numbers that follow from the
 * poses. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grasp/hand/profiles.h"

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

/* ---- the pose in which it begins ---- */

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

static tb_status take_arrays(tb_grasp_plan *plan, const grasp_hand *hand, tb_error *error)
{
    const size_t actuators = (size_t)hand->bare->number_of_actuators + 1;
    plan->hand_coordinates = hand->bare->number_of_coordinates;
    const size_t coordinates = (size_t)plan->hand_coordinates + 1;
    plan->open_q = calloc(coordinates, sizeof *plan->open_q);
    plan->closed_q = calloc(coordinates, sizeof *plan->closed_q);
    plan->controls = calloc(actuators, sizeof *plan->controls);
    plan->closing = calloc(actuators, sizeof *plan->closing);
    plan->sources = calloc(actuators, sizeof *plan->sources);
    plan->open = calloc(actuators, sizeof *plan->open);
    plan->close = calloc(actuators, sizeof *plan->close);
    if (plan->open_q == NULL || plan->closed_q == NULL || plan->controls == NULL ||
        plan->closing == NULL || plan->sources == NULL || plan->open == NULL || plan->close == NULL)
        return tb_fail_memory(error, 0, "a hand");
    return TB_OK;
}

/* Lets the hand rest with its open and with its closed controls. A hand that diverges when it closes
 * on nothing may still grasp. */
static tb_status find_poses(tb_grasp_plan *plan, const grasp_hand *hand, const double *start,
                            tb_error *error)
{
    for (int32_t i = 0; i < plan->number_of_closing; i++)
        plan->controls[plan->closing[i]] = plan->open[i];
    tb_status status =
        grasp_hand_rest(plan, hand, start, plan->controls, plan->open_q, NULL, error);
    if (status == TB_DIVERGED)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "hand",
                             "the hand diverges when it is opened: are its controls in range?");
    const size_t count = (size_t)hand->bare->number_of_actuators;
    double *closed = malloc((count + 1) * sizeof *closed);
    if (closed == NULL) return tb_fail_memory(error, 0, "a hand");
    memcpy(closed, plan->controls, count * sizeof *closed);
    for (int32_t i = 0; i < plan->number_of_closing; i++) closed[plan->closing[i]] = plan->close[i];
    if (status == TB_OK)
        status = grasp_hand_rest(plan, hand, plan->open_q, closed, plan->closed_q,
                                 &plan->info.close_seconds, error);
    free(closed);
    if (status != TB_DIVERGED) return status;
    memcpy(plan->closed_q, plan->open_q, (size_t)plan->hand_coordinates * sizeof(double));
    return grasp_plan_warn(plan, error, "the hand diverges when it closes on nothing");
}

static tb_status set_tool(const tb_grasp_hand *from, tb_grasp_plan *plan, const grasp_hand *hand,
                          tb_error *error)
{
    const tb_status status = grasp_profile_find(from->profile, hand->file, &plan->profile, error);
    plan->tool = grasp_frame_make(from->tool_position, from->tool_orientation);
    if (status != TB_OK || plan->profile == NULL) return status;
    const grasp_frame frame = grasp_profile_tool(plan->profile, hand->file, hand->merge.base);
    plan->tool = grasp_frame_mul(&frame, &plan->tool);
    return TB_OK;
}

tb_status grasp_hand_make(const tb_grasp_request *request, tb_grasp_plan *plan, grasp_hand *hand,
                          tb_error *error)
{
    hand->merge = tb_merge_defaults();
    hand->merge.prefix = "hand/";
    hand->merge.friction = request->object.friction > 0 ? request->object.friction : -1;
    /* shapes that overlap in the file's first pose are left out there; those that stay are judged in
     * the world of the grasp, where the base is no part of the world and the hand begins open */
    const bool leaves_out = request->hand.overlaps == TB_OVERLAPS_IGNORE;
    tb_status status = leaves_out ? tb_scene_compile_apart(request->hand.scene, TB_OVERLAPS_IGNORE,
                                                           NULL, &hand->file, error)
                                  : tb_scene_compile(request->hand.scene, &hand->file, error);
    for (int32_t i = 0; status == TB_OK && i < hand->file->number_of_warnings; i++)
        status = grasp_plan_warn(plan, error, "hand: %.400s", hand->file->warnings[i]);
    if (status != TB_OK) return status;
    hand->actuators = calloc((size_t)hand->file->number_of_actuators + 1, sizeof(int32_t));
    if (hand->actuators == NULL) return tb_fail_memory(error, 0, "a hand");
    status = find_base(plan, hand, error);
    if (status == TB_OK) status = set_tool(&request->hand, plan, hand, error);
    if (status == TB_OK) status = build_bare(hand, plan->dt, error);
    if (status == TB_OK) status = take_arrays(plan, hand, error);
    if (status == TB_OK) status = grasp_hand_tips(hand, error);
    if (status != TB_OK) return status;

    double *start = calloc((size_t)plan->hand_coordinates + 1, sizeof *start);
    if (start == NULL) return tb_fail_memory(error, 0, "a hand");
    const int32_t open = tb_model_find(hand->file, TB_HANDLE_KEYFRAME, "open");
    const double *kept = open >= 0 ? hand->file->keyframes[open].q : NULL;
    bare_coordinates(hand, kept != NULL ? kept : hand->file->q_reference, start);
    status = grasp_hand_controls(&request->hand, plan, hand, start, error);
    if (status == TB_OK) status = find_poses(plan, hand, start, error);
    if (status == TB_OK)
        status = grasp_hand_warn_of_overlaps(plan, hand,
                                             request->hand.overlaps == TB_OVERLAPS_ERROR, error);
    if (status == TB_OK) status = grasp_hand_note(plan, hand, error);
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
    free(hand->tips);
    memset(hand, 0, sizeof *hand);
}
