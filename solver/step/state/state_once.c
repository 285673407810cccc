/* Worlds: creation, access, forks; snapshot_once.c has snapshots.
 *
 * All numbers of a state but its contacts lie in one block. Contacts are most of a state under
 * contact, and a step reads the old ones and writes new ones elsewhere; so a fork copies the block
 * and shares the contacts, which are counted and go with their last owner. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "step/dynamics/dynamics.h"
#include "step/evaluations.h"
#include "step/soft.h"
#include "step/step.h"

/* ---- creation ---- */

static size_t count_numbers(const tb_model *m)
{
#define COUNT(NAME, member, numbers) +(size_t)(numbers)
    return 0 TB_STATE_ARRAYS(COUNT) TB_STATE_HIDDEN_ARRAYS(COUNT);
#undef COUNT
}

static void lay_out(tb_state *s)
{
    const tb_model *m = s->model;
    double *p = s->numbers;
#define LAY_OUT(NAME, member, numbers) s->member = p, p += (numbers);
    TB_STATE_ARRAYS(LAY_OUT)
    TB_STATE_HIDDEN_ARRAYS(LAY_OUT)
#undef LAY_OUT
}

static tb_status allocate(const tb_model *model, tb_state **state, tb_error *error)
{
    *state = NULL;
    const size_t numbers = count_numbers(model);
    const size_t bytes = sizeof(tb_state) + numbers * sizeof(double);
    tb_state *s = calloc(1, bytes);
    if (!s) return tb_fail_memory(error, bytes, "a state");
    tb_wish_huge_pages(s, bytes);
    s->numbers = (double *)(s + 1);
    s->model = model;
    s->number_of_numbers = numbers;
    lay_out(s);
    *state = s;
    return TB_OK;
}

/* ---- contacts ---- */

/* Header of the records that `contacts` and `next_contacts` point at. */
typedef struct contact_block {
    atomic_int owners; /* states; only a sole owner writes */
    tb_contact_record records[];
} contact_block;

static contact_block *block_of(tb_contact_record *records)
{
    return (contact_block *)((char *)records - offsetof(contact_block, records));
}

/* Removes one owner; the last one frees. All writes of other owners are visible to it. */
static void release_contacts(tb_contact_record *records)
{
    if (records &&
        atomic_fetch_sub_explicit(&block_of(records)->owners, 1, memory_order_acq_rel) == 1)
        free(block_of(records));
}

static bool shared(tb_contact_record *records)
{
    return atomic_load_explicit(&block_of(records)->owners, memory_order_acquire) > 1;
}

/* Grows a block that has no other owner, or makes one where there was none. */
static tb_status grow_contacts(tb_contact_record **records, int32_t *capacity, int32_t count)
{
    if (count <= *capacity) return TB_OK;
    /* half as much again, so that a growing heap of bodies does not ask at every step */
    int64_t wanted = (int64_t)*capacity + *capacity / 2;
    if (wanted < count) wanted = count;
    if (wanted > INT32_MAX) wanted = INT32_MAX;
    const size_t bytes = sizeof(contact_block) + (size_t)wanted * sizeof(tb_contact_record);
    contact_block *block = realloc(*records ? block_of(*records) : NULL, bytes);
    if (!block) return TB_RESOURCE_EXHAUSTED;
    tb_wish_huge_pages(block, bytes);
    atomic_init(&block->owners, 1);
    *records = block->records;
    *capacity = (int32_t)wanted;
    return TB_OK;
}

/* Reserves memory for contacts that replace the present ones: a block that forks share stays
 * with them. */
tb_status tb_state_replace_contacts(tb_state *state, int32_t count)
{
    if (count > 0 && state->contacts && shared(state->contacts)) {
        tb_contact_record *own = NULL;
        int32_t capacity = 0;
        if (grow_contacts(&own, &capacity, count) != TB_OK) return TB_RESOURCE_EXHAUSTED;
        release_contacts(state->contacts);
        state->contacts = own;
        state->contact_capacity = capacity;
    }
    return grow_contacts(&state->contacts, &state->contact_capacity, count);
}

tb_status tb_state_reserve_next(tb_state *state, int32_t count)
{
    return grow_contacts(&state->next_contacts, &state->next_capacity, count);
}

void tb_state_take_next(tb_state *state, int32_t count)
{
    tb_contact_record *old = state->contacts;
    int32_t capacity = state->contact_capacity;
    if (old && shared(old)) {
        release_contacts(old);
        old = NULL;
        capacity = 0;
    }
    state->contacts = state->next_contacts;
    state->contact_capacity = state->next_capacity;
    state->number_of_contacts = count;
    state->next_contacts = old;
    state->next_capacity = capacity;
}

/* ---- life ---- */

tb_status tb_state_create(const tb_model *model, tb_state **state, tb_error *error)
{
    if (!model || !state)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "model",
                             "no model or no place for the state");
    tb_status status = allocate(model, state, error);
    if (status == TB_OK && model->soft)
        status = tb_state_soft_create(model, &(*state)->soft, error);
    if (status == TB_OK) status = tb_state_reset(*state, -1, error);
    if (status == TB_OK) return TB_OK;
    tb_state_destroy(*state);
    *state = NULL;
    return status;
}

void tb_state_destroy(tb_state *state)
{
    if (!state) return;
    tb_state_drop_device_copy(state);
    release_contacts(state->contacts);
    release_contacts(state->next_contacts);
    tb_variant_release(state->variant);
    tb_state_soft_destroy(state->soft);
    tb_kept_destroy(state->kept);
    free(state);
}

tb_status tb_state_reset(tb_state *state, int32_t keyframe, tb_error *error)
{
    const tb_model *m = state->model;
    if (keyframe < -1 || keyframe >= m->number_of_keyframes)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "keyframe",
                             "keyframe %d, but the model has %d", keyframe, m->number_of_keyframes);
    tb_state_mark_host_newer(state, TB_STATE_ALL);
    memset(state->numbers, 0, state->number_of_numbers * sizeof(double));
    memset(&state->certificate, 0, sizeof state->certificate);
    state->time = 0;
    state->steps = 0;
    state->status = TB_OK;
    state->number_of_contacts = 0;
    tb_kept_clear(state->kept);
    memcpy(state->q, m->q_reference, (size_t)m->number_of_coordinates * sizeof(double));
    for (int32_t k = 0; k < m->number_of_kinematic_bodies; k++) {
        const tb_model_body *body = &m->bodies[m->kinematic_bodies[k]];
        double *numbers = state->kinematic + TB_KINEMATIC_NUMBERS * k;
        memcpy(numbers, body->position, sizeof body->position);
        memcpy(numbers + 3, body->orientation, sizeof body->orientation);
    }
    tb_status status = state->soft ? tb_state_soft_reset(state, error) : TB_OK;
    if (keyframe < 0 || status != TB_OK) {
        tb_sleep_reset(state);
        return status;
    }

    const tb_model_keyframe *key = &m->keyframes[keyframe];
    state->time = key->time;
    if (key->q) status = tb_state_set_q(state, key->q, m->number_of_coordinates, error);
    if (status == TB_OK && key->u) status = tb_state_set_u(state, key->u, m->number_of_dofs, error);
    if (status == TB_OK && key->controls)
        status = tb_state_set_controls(state, key->controls, m->number_of_actuators, error);
    memcpy(state->activations, key->activations, (size_t)m->number_of_activations * sizeof(double));
    for (int32_t k = 0; k < m->number_of_kinematic_bodies; k++)
        memcpy(state->kinematic + TB_KINEMATIC_NUMBERS * k, key->kinematic + 7 * k,
               7 * sizeof(double));
    tb_sleep_reset(state);
    return status;
}

/* ---- access ---- */

const tb_model *tb_state_model(const tb_state *state)
{
    return tb_variant_origin(state);
}

double tb_state_time(const tb_state *state)
{
    return state->time;
}

int64_t tb_state_steps(const tb_state *state)
{
    return state->steps;
}

const double *tb_state_q(const tb_state *state)
{
    tb_state_sync_to_host(state, TB_STATE_Q, NULL);
    return state->q;
}

const double *tb_state_u(const tb_state *state)
{
    tb_state_sync_to_host(state, TB_STATE_U, NULL);
    return state->u;
}

const double *tb_state_controls(const tb_state *state)
{
    tb_state_sync_to_host(state, TB_STATE_CONTROLS, NULL);
    return state->controls;
}

const double *tb_state_activations(const tb_state *state)
{
    tb_state_sync_to_host(state, TB_STATE_ACTIVATIONS, NULL);
    return state->activations;
}

static tb_status check_numbers(const double *numbers, int32_t count, int32_t expected,
                               const char *field, tb_error *error)
{
    if (count != expected)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s: %d numbers, %d expected",
                             field, count, expected);
    if (!numbers && expected)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s: no numbers", field);
    for (int32_t i = 0; i < count; i++)
        if (!isfinite(numbers[i]))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s[%d] is not finite", field,
                                 i);
    return TB_OK;
}

tb_status tb_state_set_q(tb_state *state, const double *q, int32_t count, tb_error *error)
{
    const tb_model *m = state->model;
    const tb_status status = check_numbers(q, count, m->number_of_coordinates, "q", error);
    if (status != TB_OK) return status;

    /* quaternions must have a direction */
    for (int32_t j = 0; j < m->number_of_joints; j++) {
        const tb_model_joint *joint = &m->joints[j];
        if (joint->type != TB_JOINT_BALL && joint->type != TB_JOINT_FREE) continue;
        const double *o = q + joint->coordinate + (joint->type == TB_JOINT_FREE ? 3 : 0);
        if (!(o[0] * o[0] + o[1] * o[1] + o[2] * o[2] + o[3] * o[3] > 1e-20))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "q",
                                 "q: the quaternion of joint '%s' has length 0",
                                 tb_model_thing_name(m, TB_HANDLE_JOINT, j));
    }
    tb_state_mark_host_newer(state, TB_STATE_Q);
    memcpy(state->q, q, (size_t)count * sizeof(double));
    for (int32_t j = 0; j < m->number_of_joints; j++) {
        const tb_model_joint *joint = &m->joints[j];
        if (joint->type != TB_JOINT_BALL && joint->type != TB_JOINT_FREE) continue;
        double *o = state->q + joint->coordinate + (joint->type == TB_JOINT_FREE ? 3 : 0);
        tb_q_store(o, tb_q_normalize(tb_q_load(o)));
    }
    return TB_OK;
}

tb_status tb_state_set_u(tb_state *state, const double *u, int32_t count, tb_error *error)
{
    const tb_status status = check_numbers(u, count, state->model->number_of_dofs, "u", error);
    if (status != TB_OK) return status;
    tb_state_mark_host_newer(state, TB_STATE_U);
    memcpy(state->u, u, (size_t)count * sizeof(double));
    return TB_OK;
}

tb_status tb_state_set_controls(tb_state *state, const double *controls, int32_t count,
                                tb_error *error)
{
    const tb_status status =
        check_numbers(controls, count, state->model->number_of_actuators, "controls", error);
    if (status != TB_OK) return status;
    tb_state_mark_host_newer(state, TB_STATE_CONTROLS);
    memcpy(state->controls, controls, (size_t)count * sizeof(double));
    return TB_OK;
}

tb_status tb_state_set_control(tb_state *state, int32_t actuator, double value, tb_error *error)
{
    if (actuator < 0 || actuator >= state->model->number_of_actuators)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "actuator", "actuator %d of %d", actuator,
                             state->model->number_of_actuators);
    if (!isfinite(value))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "value", "control %d is not finite",
                             actuator);
    const tb_status status =
        tb_state_sync_to_host(state, TB_STATE_CONTROLS, error); /* the others */
    if (status != TB_OK) return status;
    tb_state_mark_host_newer(state, TB_STATE_CONTROLS);
    state->controls[actuator] = value;
    return TB_OK;
}

tb_status tb_state_set_applied_force(tb_state *state, const double *force, int32_t count,
                                     tb_error *error)
{
    const size_t bytes = (size_t)state->model->number_of_dofs * sizeof(double);
    if (!force) {
        tb_state_mark_host_newer(state, TB_STATE_APPLIED);
        memset(state->applied, 0, bytes);
        return TB_OK;
    }
    const tb_status status =
        check_numbers(force, count, state->model->number_of_dofs, "force", error);
    if (status != TB_OK) return status;
    tb_state_mark_host_newer(state, TB_STATE_APPLIED);
    memcpy(state->applied, force, bytes);
    return TB_OK;
}

static tb_status check_body(const tb_state *state, int32_t body, tb_error *error)
{
    if (body >= 0 && body < state->model->number_of_bodies) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "body", "body %d of %d", body,
                         state->model->number_of_bodies);
}

tb_status tb_state_set_body_wrench(tb_state *state, int32_t body, const double wrench[6],
                                   tb_error *error)
{
    tb_status status = check_body(state, body, error);
    if (status == TB_OK) status = check_numbers(wrench, 6, 6, "wrench", error);
    if (status == TB_OK)
        status = tb_state_sync_to_host(state, TB_STATE_WRENCHES, error); /* the others */
    if (status != TB_OK) return status;
    tb_state_mark_host_newer(state, TB_STATE_WRENCHES);
    memcpy(state->wrenches + 6 * body, wrench, 6 * sizeof(double));
    return TB_OK;
}

tb_status tb_state_set_kinematic(tb_state *state, int32_t body, const double position[3],
                                 const double orientation[4], const double linear_velocity[3],
                                 const double angular_velocity[3], tb_error *error)
{
    tb_status status = check_body(state, body, error);
    if (status != TB_OK) return status;
    const int32_t index = state->model->bodies[body].kinematic;
    if (index < 0)
        return tb_fail_field(error, TB_FAILED_PRECONDITION, "body", "body '%s' is not kinematic",
                             tb_model_thing_name(state->model, TB_HANDLE_BODY, body));
    double n[TB_KINEMATIC_NUMBERS];
    memcpy(n, position, 3 * sizeof(double));
    memcpy(n + 3, orientation, 4 * sizeof(double));
    memcpy(n + 7, linear_velocity, 3 * sizeof(double));
    memcpy(n + 10, angular_velocity, 3 * sizeof(double));
    status = check_numbers(n, TB_KINEMATIC_NUMBERS, TB_KINEMATIC_NUMBERS, "pose", error);
    if (status != TB_OK) return status;
    if (!(n[3] * n[3] + n[4] * n[4] + n[5] * n[5] + n[6] * n[6] > 1e-20))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "orientation",
                             "the orientation has length 0");
    /* steps move the others */
    if (state->model->number_of_kinematic_bodies > 1)
        status = tb_state_sync_to_host(state, TB_STATE_KINEMATIC, error);
    if (status != TB_OK) return status;
    tb_state_mark_host_newer(state, TB_STATE_KINEMATIC);
    tb_q_store(n + 3, tb_q_normalize(tb_q_load(n + 3)));
    memcpy(state->kinematic + TB_KINEMATIC_NUMBERS * index, n, sizeof n);
    return TB_OK;
}

int32_t tb_state_number_of_contacts(const tb_state *state)
{
    return state->number_of_contacts;
}

tb_status tb_state_contact(const tb_state *state, int32_t index, tb_contact_info *info)
{
    if (index < 0 || index >= state->number_of_contacts || !info) return TB_INVALID_ARGUMENT;
    const tb_status status = tb_state_sync_to_host(state, TB_STATE_CONTACTS, NULL);
    if (status != TB_OK) return status;
    const tb_contact_record *r = &state->contacts[index];
    info->shape_a = r->shape_a;
    info->shape_b = r->shape_b;
    info->feature = r->feature;
    memcpy(info->position, r->position, sizeof r->position);
    memcpy(info->normal, r->normal, sizeof r->normal);
    memcpy(info->tangent1, r->tangent1, sizeof r->tangent1);
    memcpy(info->tangent2, r->tangent2, sizeof r->tangent2);
    info->gap = r->gap;
    memcpy(info->impulse, r->impulse, sizeof r->impulse);
    memcpy(info->velocity, r->velocity, sizeof r->velocity);
    info->kind = (tb_contact_kind)r->kind;
    info->status = (tb_contact_status)r->status;
    return TB_OK;
}

double tb_state_actuator_force(const tb_state *state, int32_t actuator)
{
    if (actuator < 0 || actuator >= state->model->number_of_actuators) return 0;
    tb_state_sync_to_host(state, TB_STATE_ACTUATOR_FORCE, NULL);
    return state->actuator_force[actuator];
}

double tb_state_limit_impulse(const tb_state *state, int32_t joint)
{
    if (joint < 0 || joint >= state->model->number_of_joints) return 0;
    tb_state_sync_to_host(state, TB_STATE_ROW_IMPULSES, NULL);
    const double *limits =
        state->row_impulses + tb_row_memory_layout(state->model).joint_limits + 2 * (size_t)joint;
    return limits[0] - limits[1];
}

/* ---- forks ---- */

tb_status tb_state_fork_rigid(const tb_state *state, tb_state **fork, tb_error *error)
{
    const tb_status status = allocate(state->model, fork, error);
    if (status != TB_OK) return status;
    tb_state *f = *fork;
    f->variant = tb_variant_share(state->variant);
    memcpy(f->numbers, state->numbers, state->number_of_numbers * sizeof(double));
    f->number_of_contacts = state->number_of_contacts;
    if (state->number_of_contacts && !(state->device_newer & TB_STATE_CONTACTS)) {
        atomic_fetch_add_explicit(&block_of(state->contacts)->owners, 1, memory_order_relaxed);
        f->contacts = state->contacts;
        f->contact_capacity = state->contact_capacity;
    }
    f->time = state->time;
    f->steps = state->steps;
    f->status = state->status;
    f->certificate = state->certificate;
    f->device_copy = state->device_copy;
    f->host_newer = state->host_newer;
    f->device_newer = state->device_newer;
    if (f->device_copy) f->device_copy->backend->share(f->device_copy);
    return TB_OK;
}

void tb_state_put_back_rigid(tb_state *state, tb_state *fork)
{
    tb_contact_record *contacts = state->contacts;
    const int32_t count = state->number_of_contacts, capacity = state->contact_capacity;
    memcpy(state->numbers, fork->numbers, state->number_of_numbers * sizeof(double));
    state->contacts = fork->contacts;
    state->number_of_contacts = fork->number_of_contacts;
    state->contact_capacity = fork->contact_capacity;
    state->time = fork->time;
    state->steps = fork->steps;
    state->status = fork->status;
    state->certificate = fork->certificate;
    fork->contacts = contacts;
    fork->number_of_contacts = count;
    fork->contact_capacity = capacity;
}

tb_status tb_state_scale_impulses(tb_state *state, double factor)
{
    const int32_t count = state->number_of_contacts;
    const size_t rows = (size_t)tb_row_memory_layout(state->model).total;
    if (tb_state_reserve_next(state, count) != TB_OK) return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < count; i++) {
        tb_contact_record *c = state->next_contacts + i;
        *c = state->contacts[i];
        for (size_t k = 0; k < sizeof c->impulse / sizeof *c->impulse; k++) c->impulse[k] *= factor;
    }
    tb_state_take_next(state, count);
    for (size_t r = 0; r < rows; r++) state->row_impulses[r] *= factor;
    return TB_OK;
}

void tb_state_count_one_step(tb_state *state, const tb_state *before, double time)
{
    const tb_model *m = state->model;
    const bool current = m->number_of_sleep_numbers > 0 && tb_sleep_is_current(state);
    state->steps = before->steps + 1;
    state->time = time;
    if (current) tb_sleep_is_written(state);
    memcpy(state->past_u, before->u, (size_t)m->number_of_past_velocities * sizeof(double));
}

tb_status tb_state_fork(const tb_state *state, tb_state **fork, tb_error *error)
{
    tb_status status = tb_state_fork_rigid(state, fork, error);
    if (status != TB_OK || !state->soft) return status;
    status = tb_state_soft_fork(state, &(*fork)->soft, error);
    if (status == TB_OK) return TB_OK;
    tb_state_destroy(*fork);
    *fork = NULL;
    return status;
}

tb_status tb_state_freeze(tb_state *state, tb_certificate *certificate, tb_error *error)
{
    certificate->status = TB_DIVERGED;
    certificate->flags |= TB_CERTIFICATE_DIVERGED;
    certificate->step = state->steps;
    certificate->time = state->time;
    state->status = TB_DIVERGED;
    state->certificate = *certificate;
    return tb_fail(error, TB_DIVERGED, "the world diverged in step %lld at %.9g s and is frozen",
                   (long long)state->steps + 1, state->time);
}
