/* Reasons: why a trial was not held, which contact gave way, and the same in words. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "grasp/grasp.h"

/* below this margin a contact slides: the friction limit is reached to the solver's accuracy */
static const double SLIDES = 1e-3;
/* a smaller press or lean is not told in words */
static const double PRESSES_N = 0.1, LEANS_RAD = 0.05;
static const double PI = 3.14159265358979323846;

const char *tb_grasp_stage_name(tb_grasp_stage stage)
{
    static const char *const NAMES[] = {"approach", "closing", "lift", "shaking", "hold"};
    return (unsigned)stage < sizeof NAMES / sizeof NAMES[0] ? NAMES[stage] : "unknown";
}

static tb_grasp_stage stage_of(const tb_grasp_plan *plan, int64_t step)
{
    const grasp_phases *at = &plan->phases;
    if (step <= at->approach) return TB_GRASP_APPROACH;
    if (step <= at->close) return TB_GRASP_CLOSING;
    if (step <= at->lift) return TB_GRASP_LIFT;
    return step <= at->shake ? TB_GRASP_SHAKING : TB_GRASP_HOLD;
}

/* ---- names and places ---- */

/* A body by its name in its own file. */
static const char *body_name(const tb_grasp_plan *plan, int32_t body)
{
    if (body < plan->carrier) return "table";
    if (body == plan->carrier) return "base";
    const char *name = tb_model_thing_name(plan->model, TB_HANDLE_BODY, body);
    const char *slash = strchr(name, '/');
    return slash != NULL ? slash + 1 : name;
}

/* Sets the two bodies of a pair of shapes, the hand's first. */
static void set_bodies(const tb_grasp_plan *plan, const int32_t shapes[2], tb_grasp_reason *reason)
{
    const int32_t a = plan->model->shapes[shapes[0]].body, b = plan->model->shapes[shapes[1]].body;
    const bool hand_first = a >= plan->carrier && a < plan->hand_end;
    reason->hand_body = body_name(plan, hand_first ? a : b);
    reason->other_body = body_name(plan, hand_first ? b : a);
}

/* Frame of the object's file in the shown state. */
static grasp_frame object_frame(const grasp_world *world)
{
    const tb_grasp_plan *plan = world->plan;
    const double *q = tb_state_q(world->shown) + plan->object_coordinate;
    grasp_frame frame = grasp_frame_make(q, q + 3);
    frame.position = tb_v3_sub(frame.position, tb_q_rotate(frame.orientation, plan->object_origin));
    return frame;
}

/* Stage, time and the tool's pose after `step` steps, with the object in this frame. */
static void set_moment(grasp_world *world, int64_t step, const grasp_frame *object)
{
    const tb_grasp_plan *plan = world->plan;
    tb_grasp_reason *r = &world->trial.reason;
    const grasp_frame tool = grasp_tool_at(plan, &world->target, step);
    const grasp_frame back = grasp_frame_inverse(object);
    const grasp_frame in_object = grasp_frame_mul(&back, &tool);
    r->stage = stage_of(plan, step);
    r->time = (double)step * plan->dt;
    tb_v3_store(r->position, in_object.position);
    tb_q_store(r->orientation, in_object.orientation);
}

/* ---- observations while a world runs ---- */

void grasp_reason_begin(grasp_world *world)
{
    world->trial.reason = (tb_grasp_reason){.slide_time = -1};
    world->slide = (grasp_slide){.step = -1, .margin = 1, .last_margin = 1, .shapes = {-1, -1}};
    world->grip = (grasp_grip){0};
    world->missed_step = -1;
    world->missed = 0;
}

void grasp_reason_follow(grasp_world *world, const tb_touch *hold)
{
    grasp_slide *slide = &world->slide;
    if (hold->weakest[0] < 0) return; /* no contact: the last one is the one that gave way */
    const bool slides = hold->margin < SLIDES;
    slide->object = object_frame(world);
    if (!slides || slide->step < 0) {
        const tb_vec3 point = grasp_frame_in(&slide->object, tb_v3_load(hold->weakest_position));
        memcpy(slide->shapes, hold->weakest, sizeof slide->shapes);
        tb_v3_store(slide->point, point);
        slide->margin = slides ? slide->last_margin : hold->margin;
        slide->step = slides ? world->step : -1;
    }
    slide->last_margin = hold->margin;
}

/* ---- reasons ---- */

void grasp_reason_collided(grasp_world *world, const tb_touch *touch)
{
    tb_grasp_reason *r = &world->trial.reason;
    const grasp_frame object = object_frame(world);
    set_moment(world, world->step, &object);
    r->stage = TB_GRASP_APPROACH; /* also in the pose itself, which the first step reaches */
    set_bodies(world->plan, touch->nearest, r);
    r->depth = -touch->gap;
    tb_v3_store(r->point, grasp_frame_in(&object, tb_v3_load(touch->nearest_position)));
}

void grasp_reason_in_table(grasp_world *world, int32_t shape, int64_t step, double depth)
{
    tb_grasp_reason *r = &world->trial.reason;
    set_moment(world, step, &world->plan->object_frame);
    r->hand_body = body_name(world->plan, world->plan->model->shapes[shape].body);
    r->other_body = "table";
    r->depth = depth;
}

/* The contact that gave way, of a trial that was lost or slipped. */
static void set_slide(grasp_world *world)
{
    tb_grasp_reason *r = &world->trial.reason;
    const grasp_slide *slide = &world->slide;
    r->grip = world->grip.grip;
    r->press = world->grip.press;
    r->lean = world->grip.lean;
    if (slide->shapes[0] < 0) return;
    set_bodies(world->plan, slide->shapes, r);
    memcpy(r->point, slide->point, sizeof r->point);
    r->margin = slide->margin;
    if (slide->step >= 0) r->slide_time = (double)slide->step * world->plan->dt;
}

void grasp_reason_lost(grasp_world *world, int64_t step)
{
    const grasp_frame shown = object_frame(world);
    const bool touched = world->slide.shapes[0] >= 0;
    set_moment(world, step, touched ? &world->slide.object : &shown);
    set_slide(world);
}

void grasp_reason_now(grasp_world *world)
{
    const grasp_frame object = object_frame(world);
    set_moment(world, world->step, &object);
}

void grasp_reason_certify(grasp_world *world)
{
    tb_grasp_trial *trial = &world->trial;
    const double missed = (double)world->missed_step * world->plan->dt;
    if (world->missed_step < 0 || trial->verdict == TB_GRASP_COLLIDED ||
        trial->verdict == TB_GRASP_DIVERGED)
        return;
    /* the way of an object that the hand has lost says nothing about the grasp */
    if (trial->verdict == TB_GRASP_DROPPED && missed > trial->drop_time) return;
    trial->reason.apparent = trial->verdict;
    trial->verdict = TB_GRASP_UNCERTIFIED;
    trial->reason.stage = stage_of(world->plan, world->missed_step);
    trial->reason.time = missed;
    trial->reason.residual = world->missed_residual;
}

/* ---- in words ---- */

/* Appends to a text, which is cut at its capacity. */
static void add(char *text, size_t size, const char *format, ...) TB_PRINTF(3, 4);
static void add(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    if (used + 1 < size) vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

static void add_contact(char *text, size_t size, const tb_grasp_reason *r)
{
    if (r->hand_body == NULL) return;
    add(text, size, ": the contact of '%s' with '%s' ", r->hand_body, r->other_body);
    if (r->slide_time >= 0)
        add(text, size, "slid from %.3f s on, margin %.3f before", r->slide_time, r->margin);
    else
        add(text, size, "opened without sliding, margin %.3f", r->margin);
}

/* The grip when the lift began, as far as it explains the slip. */
static void add_grip(char *text, size_t size, const tb_grasp_trial *trial)
{
    const tb_grasp_reason *r = &trial->reason;
    if (!(r->grip > 0)) return;
    add(text, size, "; the lift began with a grip of %.3g N on %.3g kg", r->grip, trial->mass);
    if (r->press > PRESSES_N) add(text, size, ", pressed on the table with %.3g N", r->press);
    if (r->lean > LEANS_RAD)
        add(text, size, ", on faces that lean by %.0f degrees", r->lean * 180 / PI);
}

void tb_grasp_explain(const tb_grasp_trial *trial, char *text, size_t size)
{
    const tb_grasp_reason *r = &trial->reason;
    const char *stage = tb_grasp_stage_name(r->stage);
    if (size == 0) return;
    text[0] = '\0';
    switch (trial->verdict) {
    case TB_GRASP_HELD:
        add(text, size, "held to the end, %.3f s; slipped %.2g mm", r->time, 1e3 * trial->slip);
        return;
    case TB_GRASP_SLIPPED:
        add(text, size, "slipped %.3g mm, more than the limit since %.3f s (%s)", 1e3 * trial->slip,
            r->time, stage);
        add_contact(text, size, r);
        add_grip(text, size, trial);
        return;
    case TB_GRASP_DROPPED:
        if (r->hand_body == NULL)
            add(text, size, "never held: no finger bore the object when the lift began, %.3f s",
                r->time);
        else
            add(text, size, "lost at %.3f s (%s)", r->time, stage);
        add_contact(text, size, r);
        add_grip(text, size, trial);
        return;
    case TB_GRASP_COLLIDED:
        add(text, size, "the hand's '%s' was %.2f mm inside '%s' at %.3f s (%s)", r->hand_body,
            1e3 * r->depth, r->other_body, r->time, stage);
        return;
    case TB_GRASP_DIVERGED:
        add(text, size, "the simulation diverged at %.3f s (%s)", r->time, stage);
        return;
    case TB_GRASP_UNCERTIFIED:
        add(text, size,
            "no verdict: the step at %.3f s (%s) ended at residual %.2e, above the tolerance; ",
            r->time, stage, r->residual);
        if (r->apparent == TB_GRASP_UNCERTIFIED)
            add(text, size, "the trial was ended after %d such steps", TB_GRASP_MISSED_STEPS);
        else
            add(text, size, "the motion alone says %s", tb_grasp_verdict_name(r->apparent));
        return;
    }
}
