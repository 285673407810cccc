/* See grasp_message.h. */
#include "wire/grasp_message.h"

#include <string.h>

static Tribo__V1__GraspVerdict verdict(tb_grasp_verdict v)
{
    switch (v) {
    case TB_GRASP_HELD: return TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_HELD;
    case TB_GRASP_SLIPPED: return TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_SLIPPED;
    case TB_GRASP_DROPPED: return TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_DROPPED;
    case TB_GRASP_COLLIDED: return TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_COLLIDED;
    case TB_GRASP_DIVERGED: return TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_DIVERGED;
    case TB_GRASP_UNCERTIFIED: return TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_UNCERTIFIED;
    }
    return TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_UNSPECIFIED;
}

static Tribo__V1__GraspStage stage(tb_grasp_stage s)
{
    switch (s) {
    case TB_GRASP_APPROACH: return TRIBO__V1__GRASP_STAGE__GRASP_STAGE_APPROACH;
    case TB_GRASP_CLOSING: return TRIBO__V1__GRASP_STAGE__GRASP_STAGE_CLOSING;
    case TB_GRASP_LIFT: return TRIBO__V1__GRASP_STAGE__GRASP_STAGE_LIFT;
    case TB_GRASP_SHAKING: return TRIBO__V1__GRASP_STAGE__GRASP_STAGE_SHAKING;
    case TB_GRASP_HOLD: return TRIBO__V1__GRASP_STAGE__GRASP_STAGE_HOLD;
    }
    return TRIBO__V1__GRASP_STAGE__GRASP_STAGE_UNSPECIFIED;
}

/* A message's numbers are only packed, never written to. */
static double *numbers(const double *values)
{
    return (double *)(uintptr_t)values;
}

static Tribo__V1__Pose *pose(td_wire *wire, const double position[3], const double orientation[4])
{
    Tribo__V1__Pose *m = td_wire_take(wire, sizeof *m);
    if (wire->failed) return NULL;
    tribo__v1__pose__init(m);
    m->n_position = 3;
    m->position = numbers(position);
    m->n_orientation = 4;
    m->orientation = numbers(orientation);
    return m;
}

static Tribo__V1__GraspReason *reason(td_wire *wire, const tb_grasp_trial *t)
{
    const tb_grasp_reason *r = &t->reason;
    Tribo__V1__GraspReason *m = td_wire_take(wire, sizeof *m);
    char *text = td_wire_take(wire, TB_GRASP_TEXT_SIZE);
    if (wire->failed) return NULL;
    tribo__v1__grasp_reason__init(m);
    tb_grasp_explain(t, text, TB_GRASP_TEXT_SIZE);
    m->text = text;
    m->stage = stage(r->stage);
    m->time = r->time;
    if (r->hand_body != NULL) {
        m->hand_body = (char *)(uintptr_t)r->hand_body;
        m->other_body = (char *)(uintptr_t)r->other_body;
        m->n_point = 3;
        m->point = numbers(r->point);
    }
    m->depth = r->depth;
    m->margin = r->margin;
    m->slide_time = r->slide_time;
    m->grip = r->grip;
    m->press = r->press;
    m->lean = r->lean;
    m->tool = pose(wire, r->position, r->orientation);
    m->residual = r->residual;
    if (t->verdict == TB_GRASP_UNCERTIFIED) m->apparent = verdict(r->apparent);
    return m;
}

static Tribo__V1__Certificate *certificate(td_wire *wire, const tb_certificate *c)
{
    Tribo__V1__Certificate *m = td_wire_take(wire, sizeof *m);
    if (wire->failed) return NULL;
    td_wire_certificate(c, m);
    return m;
}

static void fill_trials(td_wire *wire, const tb_grasp_result *r, Tribo__V1__GraspResult *m)
{
    const size_t n = (size_t)r->number_of_trials;
    Tribo__V1__GraspTrial *trials = td_wire_take(wire, n * sizeof *trials);
    m->trials = td_wire_take(wire, n * sizeof *m->trials);
    if (wire->failed) return;
    m->n_trials = n;
    for (size_t i = 0; i < n; i++) {
        const tb_grasp_trial *t = &r->trials[i];
        tribo__v1__grasp_trial__init(&trials[i]);
        trials[i].verdict = verdict(t->verdict);
        trials[i].slip = t->slip;
        trials[i].drop_time = t->drop_time;
        trials[i].friction = t->friction;
        trials[i].mass = t->mass;
        trials[i].certificate = certificate(wire, &t->certificate);
        trials[i].reason = reason(wire, t);
        m->trials[i] = &trials[i];
    }
}

static void fill_fingers(td_wire *wire, const tb_grasp_result *r, Tribo__V1__GraspResult *m)
{
    const size_t n = (size_t)r->number_of_fingers;
    m->finger_forces = td_wire_take(wire, n * sizeof *m->finger_forces);
    m->finger_names = td_wire_take(wire, n * sizeof *m->finger_names);
    if (wire->failed) return;
    m->n_finger_forces = m->n_finger_names = n;
    for (size_t i = 0; i < n; i++) {
        m->finger_forces[i] = r->fingers[i].force;
        m->finger_names[i] = (char *)(uintptr_t)r->fingers[i].body;
    }
}

static void fill_contacts(td_wire *wire, const tb_grasp_result *r, Tribo__V1__GraspResult *m)
{
    const size_t n = (size_t)r->number_of_contacts;
    double *wrenches = td_wire_take(wire, 6 * n * sizeof *wrenches);
    double *positions = td_wire_take(wire, 3 * n * sizeof *positions);
    double *normals = td_wire_take(wire, 3 * n * sizeof *normals);
    double *frictions = td_wire_take(wire, 3 * n * sizeof *frictions);
    if (wire->failed) return;
    for (size_t i = 0; i < n; i++) {
        memcpy(wrenches + 6 * i, r->contacts[i].wrench, 6 * sizeof *wrenches);
        memcpy(positions + 3 * i, r->contacts[i].position, 3 * sizeof *positions);
        memcpy(normals + 3 * i, r->contacts[i].normal, 3 * sizeof *normals);
        memcpy(frictions + 3 * i, r->contacts[i].friction, 3 * sizeof *frictions);
    }
    const Tribo__V1__DataType type = TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64;
    m->wrenches = td_wire_array(wire, type, wrenches, (int64_t)n, 6);
    m->contact_positions = td_wire_array(wire, type, positions, (int64_t)n, 3);
    m->contact_normals = td_wire_array(wire, type, normals, (int64_t)n, 3);
    m->contact_frictions = td_wire_array(wire, type, frictions, (int64_t)n, 3);
}

Tribo__V1__GraspResult *td_grasp_result_message(td_wire *wire, const tb_grasp_result *r)
{
    Tribo__V1__GraspResult *m = td_wire_take(wire, sizeof *m);
    if (wire->failed) return NULL;
    tribo__v1__grasp_result__init(m);
    m->index = r->index;
    m->name = (char *)(uintptr_t)r->name;
    m->success = r->success;
    m->success_lower = r->lower;
    m->success_upper = r->upper;
    m->verdict = verdict(r->trials[0].verdict);
    m->slip = r->slip;
    m->drop_time = r->trials[0].drop_time;
    m->epsilon_quality = r->epsilon;
    m->volume_quality = r->volume;
    m->weakest_margin = r->margin;
    m->certificate = certificate(wire, &r->certificate);
    m->reason = reason(wire, &r->trials[0]);
    m->uncertified = r->uncertified;
    m->pose = pose(wire, r->pose->position, r->pose->orientation);
    m->n_approach = m->n_object_centre = 3;
    m->approach = numbers(r->approach);
    m->object_centre = numbers(r->centre);
    m->object_radius = r->radius;
    fill_trials(wire, r, m);
    fill_fingers(wire, r, m);
    fill_contacts(wire, r, m);
    return wire->failed ? NULL : m;
}

Tribo__V1__GraspTrajectory *td_grasp_trajectory_message(td_wire *wire, int32_t grasp,
                                                        const tb_grasp_trial *trial,
                                                        const tb_grasp_film *film)
{
    enum { POSE_NUMBERS = 7 };
    Tribo__V1__GraspTrajectory *m = td_wire_take(wire, sizeof *m);
    if (wire->failed) return NULL;
    tribo__v1__grasp_trajectory__init(m);
    m->grasp = grasp;
    m->copy = film->copy;
    m->verdict = verdict(trial->verdict);
    m->times =
        td_wire_array(wire, TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64, film->times, film->frames, 0);
    m->poses =
        td_wire_cube(wire,
                     td_wire_array(wire, TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32, film->poses,
                                   (int64_t)film->frames * film->bodies, POSE_NUMBERS),
                     film->frames, film->bodies, POSE_NUMBERS);
    return wire->failed ? NULL : m;
}

void td_grasp_progress_message(const tb_grasp_progress *p, Tribo__V1__GraspProgress *m)
{
    tribo__v1__grasp_progress__init(m);
    m->grasps_done = p->grasps_done;
    m->grasps = p->grasps;
    m->world_steps_done = p->world_steps_done;
    m->world_steps = p->world_steps;
}

static Tribo__V1__ControlSource source(tb_control_source s)
{
    switch (s) {
    case TB_CONTROL_IDLE: return TRIBO__V1__CONTROL_SOURCE__CONTROL_SOURCE_IDLE;
    case TB_CONTROL_REQUEST: return TRIBO__V1__CONTROL_SOURCE__CONTROL_SOURCE_REQUEST;
    case TB_CONTROL_PROFILE: return TRIBO__V1__CONTROL_SOURCE__CONTROL_SOURCE_PROFILE;
    case TB_CONTROL_KEYFRAME: return TRIBO__V1__CONTROL_SOURCE__CONTROL_SOURCE_KEYFRAME;
    case TB_CONTROL_MOTION: return TRIBO__V1__CONTROL_SOURCE__CONTROL_SOURCE_MOTION;
    }
    return TRIBO__V1__CONTROL_SOURCE__CONTROL_SOURCE_UNSPECIFIED;
}

Tribo__V1__HandInfo *td_grasp_hand_message(td_wire *wire, const tb_hand_info *h)
{
    const size_t n = (size_t)h->number_of_controls;
    Tribo__V1__HandInfo *m = td_wire_take(wire, sizeof *m);
    Tribo__V1__HandControl *controls = td_wire_take(wire, n * sizeof *controls);
    Tribo__V1__HandControl **pointers = td_wire_take(wire, n * sizeof *pointers);
    if (wire->failed) return NULL;
    tribo__v1__hand_info__init(m);
    m->profile = (char *)(uintptr_t)h->profile;
    m->base_body = (char *)(uintptr_t)h->base;
    m->tool = pose(wire, h->tool_position, h->tool_orientation);
    m->n_axis = 3;
    m->axis = numbers(h->axis);
    m->opening = h->opening;
    m->least_opening = h->least_opening;
    m->n_controls = n;
    m->controls = pointers;
    for (size_t i = 0; i < n; i++) {
        tribo__v1__hand_control__init(&controls[i]);
        controls[i].actuator = (char *)(uintptr_t)h->controls[i].actuator;
        controls[i].open = h->controls[i].open;
        controls[i].close = h->controls[i].close;
        controls[i].source = source(h->controls[i].source);
        pointers[i] = &controls[i];
    }
    return wire->failed ? NULL : m;
}
