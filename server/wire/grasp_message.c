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
    }
    return TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_UNSPECIFIED;
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
    if (wire->failed) return;
    for (size_t i = 0; i < n; i++) {
        memcpy(wrenches + 6 * i, r->contacts[i].wrench, 6 * sizeof *wrenches);
        memcpy(positions + 3 * i, r->contacts[i].position, 3 * sizeof *positions);
        memcpy(normals + 3 * i, r->contacts[i].normal, 3 * sizeof *normals);
    }
    const Tribo__V1__DataType type = TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64;
    m->wrenches = td_wire_array(wire, type, wrenches, (int64_t)n, 6);
    m->contact_positions = td_wire_array(wire, type, positions, (int64_t)n, 3);
    m->contact_normals = td_wire_array(wire, type, normals, (int64_t)n, 3);
}

Tribo__V1__GraspResult *td_grasp_result_message(td_wire *wire, const tb_grasp_result *r)
{
    Tribo__V1__GraspResult *m = td_wire_take(wire, sizeof *m);
    Tribo__V1__Certificate *certificate = td_wire_take(wire, sizeof *certificate);
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
    td_wire_certificate(&r->certificate, certificate);
    m->certificate = certificate;
    fill_trials(wire, r, m);
    fill_fingers(wire, r, m);
    fill_contacts(wire, r, m);
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
