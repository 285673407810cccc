/* Handlers that look at a session's worlds or put them somewhere: GetState, SetState, Reset,
 * SetParameters, GetParameters, GetContacts, ExportProblem. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "handlers/handlers.h"
#include "call/offload.h"
#include "session/session_internal.h"

/* ---- GetState, GetContacts ---- */

static const char WATCH_IT[] = "; Watch sends it in pieces";

static void get_state(td_session *s, td_call *call, td_request *request)
{
    const Tribo__V1__GetStateRequest *message =
        (const Tribo__V1__GetStateRequest *)request->message;
    Tribo__V1__GetStateResponse response = TRIBO__V1__GET_STATE_RESPONSE__INIT;
    td_wire_want want;
    tb_error error = {0};
    if (td_wire_read_want(message->want, &want, &error) != TB_OK) {
        td_call_fail(call, &error);
        return;
    }
    want.state = want.controls = true;
    want.dt = td_session_dt(s);
    td_wire wire = td_wire_borrow(s->all);
    const td_wire_pair *pairs = NULL;
    int32_t number_of_pairs = 0;
    if (td_wire_find_pairs(&wire, s->scene->model, message->want, &pairs, &number_of_pairs,
                           &error) != TB_OK ||
        td_session_fetch(s, want, &error) != TB_OK) {
        td_wire_return(s->all, &wire);
        td_call_fail(call, &error);
        return;
    }
    const size_t n = (size_t)s->worlds;
    response.state = td_wire_state(&wire, s->states, s->worlds, want);
    if (want.contacts) {
        response.contacts = td_wire_contacts(&wire, s->states, s->worlds, want);
        response.n_contacts = n;
    }
    if (!td_session_fill_pairs(s, &wire, 0, s->worlds, message->want, response.state))
        wire.failed = true;
    if (want.arrays) {
        response.certificate_arrays = td_wire_last_certificate_arrays(&wire, s->states, s->worlds);
    } else {
        response.certificates = td_wire_last_certificates(&wire, s->states, s->worlds);
        response.n_certificates = n;
    }
    td_call_reply_bounded(call, &response.base, wire.failed, WATCH_IT);
    td_wire_return(s->all, &wire);
}

void td_simulation_get_state(td_call *call, td_request *request)
{
    td_session_handle(call, request,
                      ((const Tribo__V1__GetStateRequest *)request->message)->session_id, true,
                      get_state);
}

static void get_contacts(td_session *s, td_call *call, td_request *request)
{
    Tribo__V1__GetContactsResponse response = TRIBO__V1__GET_CONTACTS_RESPONSE__INIT;
    const td_wire_want want = {.contacts = true, .forces = true, .dt = td_session_dt(s)};
    tb_error error = {0};
    (void)request;
    if (td_session_fetch(s, want, &error) != TB_OK) {
        td_call_fail(call, &error);
        return;
    }
    td_wire wire = td_wire_borrow(s->all);
    response.contacts = td_wire_contacts(&wire, s->states, s->worlds, want);
    response.n_contacts = (size_t)s->worlds;
    td_call_reply_bounded(call, &response.base, wire.failed, WATCH_IT);
    td_wire_return(s->all, &wire);
}

void td_simulation_get_contacts(td_call *call, td_request *request)
{
    td_session_handle(call, request,
                      ((const Tribo__V1__GetContactsRequest *)request->message)->session_id, true,
                      get_contacts);
}

/* ---- SetState, Reset ---- */

typedef struct new_state {
    td_wire_rows q, u, controls, kinematic;
    const uint8_t *mask; /* worlds; NULL: all */
    tb_model_counts counts;
} new_state;

static tb_status read_state(td_session *s, td_wire *wire, const Tribo__V1__SetStateRequest *m,
                            new_state *n, tb_error *error)
{
    n->counts = tb_model_count(s->scene->model);
    tb_status status =
        td_wire_read_rows(wire, m->q, "q", s->worlds, n->counts.coordinates, &n->q, error);
    if (status == TB_OK)
        status = td_wire_read_rows(wire, m->u, "u", s->worlds, n->counts.dofs, &n->u, error);
    if (status == TB_OK)
        status = td_wire_read_rows(wire, m->controls, "controls", s->worlds, n->counts.actuators,
                                   &n->controls, error);
    if (status == TB_OK)
        status = td_wire_read_tables(wire, m->kinematic, "kinematic", s->worlds,
                                     n->counts.kinematic_bodies, TD_KINEMATIC_NUMBERS,
                                     &n->kinematic, error);
    if (status == TB_OK) status = td_wire_read_mask(m->mask, "mask", s->worlds, &n->mask, error);
    return status;
}

static tb_status set_world(tb_state *state, const new_state *n, int32_t world, tb_error *error)
{
    tb_status status = TB_OK;
    if (n->q.numbers != NULL)
        status = tb_state_set_q(state, td_wire_row(n->q, world), n->counts.coordinates, error);
    if (status == TB_OK && n->u.numbers != NULL)
        status = tb_state_set_u(state, td_wire_row(n->u, world), n->counts.dofs, error);
    if (status == TB_OK && n->controls.numbers != NULL)
        status = tb_state_set_controls(state, td_wire_row(n->controls, world), n->counts.actuators,
                                       error);
    if (status == TB_OK && n->kinematic.numbers != NULL)
        status = td_session_set_kinematic(state, td_wire_row(n->kinematic, world), error);
    return status;
}

/* All worlds or none: the arrays were checked, but a quaternion of length 0 shows here. It shows on
 * copies first. */
static tb_status set_worlds(td_session *s, const new_state *n, tb_error *error)
{
    tb_status status = TB_OK;
    const bool turns = n->q.numbers != NULL || n->kinematic.numbers != NULL;
    for (int32_t w = 0; w < s->worlds && status == TB_OK && turns; w++) {
        tb_state *copy = NULL;
        if (!td_wire_masked_in(n->mask, w)) continue;
        status = tb_state_fork(s->states[w], &copy, error);
        if (status == TB_OK) status = set_world(copy, n, w, error);
        tb_state_destroy(copy);
    }
    for (int32_t w = 0; w < s->worlds && status == TB_OK; w++)
        if (td_wire_masked_in(n->mask, w)) status = set_world(s->states[w], n, w, error);
    return status;
}

/* Answers a call that changes worlds; `steps` is in the response. */
static void answer_change(td_session *s, td_call *call, tb_status status, const tb_error *error,
                          int64_t *steps, const ProtobufCMessage *response)
{
    if (status != TB_OK) {
        td_call_fail(call, error);
        return;
    }
    td_session_changed(s);
    *steps = tb_state_steps(s->states[0]);
    td_call_reply(call, response);
}

static void set_state(td_session *s, td_call *call, td_request *request)
{
    Tribo__V1__SetStateResponse response = TRIBO__V1__SET_STATE_RESPONSE__INIT;
    tb_error error = {0};
    new_state n;
    td_wire wire = td_wire_borrow(s->all);
    tb_status status =
        read_state(s, &wire, (const Tribo__V1__SetStateRequest *)request->message, &n, &error);
    if (status == TB_OK) status = set_worlds(s, &n, &error);
    answer_change(s, call, status, &error, &response.steps, &response.base);
    td_wire_return(s->all, &wire);
}

void td_simulation_set_state(td_call *call, td_request *request)
{
    td_session_handle(call, request,
                      ((const Tribo__V1__SetStateRequest *)request->message)->session_id, true,
                      set_state);
}

static void reset(td_session *s, td_call *call, td_request *request)
{
    const Tribo__V1__ResetRequest *message = (const Tribo__V1__ResetRequest *)request->message;
    Tribo__V1__ResetResponse response = TRIBO__V1__RESET_RESPONSE__INIT;
    tb_error error = {0};
    const int32_t keyframe = message->use_keyframe ? message->keyframe : -1;
    const int32_t keyframes = tb_model_count(s->scene->model).keyframes;
    const uint8_t *mask = NULL;
    tb_status status = td_wire_read_mask(message->mask, "mask", s->worlds, &mask, &error);
    if (status == TB_OK && message->use_keyframe && (keyframe < 0 || keyframe >= keyframes))
        status = tb_fail_field(&error, TB_INVALID_ARGUMENT, "keyframe",
                               "keyframe is %d, the scene has %d", keyframe, keyframes);
    for (int32_t w = 0; w < s->worlds && status == TB_OK; w++)
        if (td_wire_masked_in(mask, w)) status = tb_state_reset(s->states[w], keyframe, &error);
    answer_change(s, call, status, &error, &response.steps, &response.base);
}

void td_simulation_reset(td_call *call, td_request *request)
{
    td_session_handle(call, request,
                      ((const Tribo__V1__ResetRequest *)request->message)->session_id, true, reset);
}

/* ---- SetParameters, GetParameters ---- */

enum { PARAMETERS = 7 };

/* One parameter: numbers of each world for some elements. */
typedef struct new_parameter {
    const Tribo__V1__Parameter *message; /* NULL: not given */
    const char *name;
    int32_t elements, numbers; /* of the scene; of an element */
    int64_t given;             /* elements in a row of the request */
    td_wire_rows rows;
    double *now, *before; /* all elements of a world, and of the world before it */
} new_parameter;

/* The parameters with room for the numbers of two worlds. */
static bool lay_out_parameters(td_wire *wire, const tb_model *model,
                               new_parameter parameters[PARAMETERS])
{
    const tb_model_counts n = tb_model_count(model);
    static const char *const names[PARAMETERS] = {"friction", "mass",         "gain", "bias",
                                                  "damping",  "dry_friction", "size"};
    const int32_t elements[PARAMETERS] = {n.shapes, n.bodies, n.actuators, n.actuators,
                                          n.joints, n.joints, n.shapes};
    const int32_t numbers[PARAMETERS] = {1, 1, 3, 3, 1, 1, 3};
    memset(parameters, 0, PARAMETERS * sizeof *parameters);
    for (int i = 0; i < PARAMETERS; i++) {
        new_parameter *p = &parameters[i];
        p->name = names[i];
        p->elements = elements[i];
        p->numbers = numbers[i];
        const size_t bytes = ((size_t)p->elements * (size_t)p->numbers + 1) * sizeof(double);
        p->now = td_wire_take(wire, bytes);
        p->before = td_wire_take(wire, bytes);
        if (p->now == NULL || p->before == NULL) return false;
        memset(p->before, 0, bytes);
    }
    return true;
}

static tb_status read_parameter(td_wire *wire, new_parameter *p, int32_t worlds, tb_error *error)
{
    char field[32];
    const Tribo__V1__Parameter *m = p->message;
    if (m == NULL) return TB_OK;
    p->given = m->n_elements > 0 ? (int64_t)m->n_elements : p->elements;
    snprintf(field, sizeof field, "%s.elements", p->name);
    for (size_t i = 0; i < m->n_elements; i++)
        if (m->elements[i] < 0 || m->elements[i] >= p->elements)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                                 "%s[%zu] is %d, the scene has %d", field, i, m->elements[i],
                                 p->elements);
    snprintf(field, sizeof field, "%s.values", p->name);
    if (m->values == NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s is missing", field);
    if (p->numbers == 1)
        return td_wire_read_rows(wire, m->values, field, worlds, p->given, &p->rows, error);
    return td_wire_read_tables(wire, m->values, field, worlds, p->given, p->numbers, &p->rows,
                               error);
}

static tb_status read_parameters(td_session *s, td_wire *wire,
                                 const Tribo__V1__SetParametersRequest *m,
                                 new_parameter parameters[PARAMETERS], const uint8_t **mask,
                                 tb_error *error)
{
    if (!lay_out_parameters(wire, s->scene->model, parameters))
        return tb_fail_memory(error, 0, "parameters");
    const Tribo__V1__Parameter *const messages[PARAMETERS] = {
        m->friction, m->mass, m->gain, m->bias, m->damping, m->dry_friction, m->size};
    tb_status status = td_wire_read_mask(m->mask, "mask", s->worlds, mask, error);
    for (int i = 0; i < PARAMETERS && status == TB_OK; i++) {
        parameters[i].message = messages[i];
        status = read_parameter(wire, &parameters[i], s->worlds, error);
    }
    return status;
}

/* The arrays that hold the values of a world. */
static tb_parameters values_now(const new_parameter parameters[PARAMETERS])
{
    return (tb_parameters){parameters[0].now, parameters[1].now, parameters[2].now,
                           parameters[3].now, parameters[4].now, parameters[5].now,
                           parameters[6].now};
}

/* Writes the world's values, with those of the request, to `now`; true if all are those of the
 * world before. */
static bool take_values(const tb_state *present, new_parameter parameters[PARAMETERS],
                        int32_t world)
{
    const tb_parameters into = values_now(parameters);
    bool same = true;
    tb_state_parameters(present, &into);
    for (int i = 0; i < PARAMETERS; i++) {
        const new_parameter *p = &parameters[i];
        const size_t numbers = (size_t)p->numbers, bytes = numbers * sizeof(double);
        for (int64_t k = 0; p->message != NULL && k < p->given; k++) {
            const int64_t element = p->message->n_elements > 0 ? p->message->elements[k] : k;
            memcpy(p->now + numbers * (size_t)element,
                   td_wire_row(p->rows, world) + numbers * (size_t)k, bytes);
        }
        same = same && memcmp(p->now, p->before, bytes * (size_t)p->elements) == 0;
        memcpy(p->before, p->now, bytes * (size_t)p->elements);
    }
    return same;
}

/* Makes states that carry the parameters of each world, one for a run of worlds with equal values:
 * carriers[w] is NULL where that of a world before applies. */
static tb_status make_carriers(td_session *s, new_parameter parameters[PARAMETERS],
                               const uint8_t *mask, bool from_scene, tb_state **carriers,
                               tb_error *error)
{
    tb_state *plain = NULL;
    bool first = true;
    tb_status status = tb_state_create(s->scene->model, &plain, error);
    for (int32_t w = 0; w < s->worlds && status == TB_OK; w++) {
        if (!td_wire_masked_in(mask, w)) continue;
        if (take_values(from_scene ? plain : s->states[w], parameters, w) && !first) continue;
        first = false;
        const tb_parameters values = values_now(parameters);
        status = tb_state_create(s->scene->model, &carriers[w], error);
        if (status == TB_OK) status = tb_state_set_parameters(carriers[w], &values, error);
    }
    tb_state_destroy(plain);
    return status;
}

/* All worlds or none. */
static tb_status set_world_parameters(td_session *s, new_parameter parameters[PARAMETERS],
                                      const uint8_t *mask, bool from_scene, tb_error *error)
{
    tb_state **carriers = calloc((size_t)s->worlds, sizeof(tb_state *));
    if (carriers == NULL)
        return tb_fail_memory(error, (size_t)s->worlds * sizeof *carriers, "parameters");
    tb_status status = td_session_book_parameters(s, error);
    if (status == TB_OK) status = make_carriers(s, parameters, mask, from_scene, carriers, error);
    if (status == TB_OK) /* one transfer of all worlds from a card */
        status = tb_states_fetch(s->states, s->worlds, true, error);
    const tb_state *carrier = NULL;
    for (int32_t w = 0; w < s->worlds && status == TB_OK; w++) {
        if (carriers[w] != NULL) carrier = carriers[w];
        if (td_wire_masked_in(mask, w))
            status = tb_state_share_parameters(s->states[w], carrier, error);
    }
    for (int32_t w = 0; w < s->worlds; w++) tb_state_destroy(carriers[w]);
    free(carriers);
    return status;
}

static void set_parameters(td_session *s, td_call *call, td_request *request)
{
    const Tribo__V1__SetParametersRequest *message =
        (const Tribo__V1__SetParametersRequest *)request->message;
    Tribo__V1__SetParametersResponse response = TRIBO__V1__SET_PARAMETERS_RESPONSE__INIT;
    tb_error error = {0};
    new_parameter parameters[PARAMETERS];
    const uint8_t *mask = NULL;
    td_wire wire = td_wire_borrow(s->all);
    tb_status status = read_parameters(s, &wire, message, parameters, &mask, &error);
    if (status == TB_OK)
        status = set_world_parameters(s, parameters, mask, message->from_scene, &error);
    answer_change(s, call, status, &error, &response.steps, &response.base);
    td_wire_return(s->all, &wire);
}

void td_simulation_set_parameters(td_call *call, td_request *request)
{
    td_session_handle(call, request,
                      ((const Tribo__V1__SetParametersRequest *)request->message)->session_id, true,
                      set_parameters);
}

/* worlds x elements, or x 3; an axis of length 0 shows as one */
static Tribo__V1__Array *parameter_array(td_wire *wire, const double *numbers, int32_t worlds,
                                         int32_t elements, int32_t per_element)
{
    Tribo__V1__Array *array = td_wire_array(wire, TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64, numbers,
                                            worlds, (int64_t)elements * per_element);
    if (array == NULL) return NULL;
    if (elements == 0) array->data.len = 0;
    if (per_element > 1) return td_wire_cube(wire, array, worlds, elements, per_element);
    array->n_shape = 2;
    return array;
}

static void get_parameters(td_session *s, td_call *call, td_request *request)
{
    Tribo__V1__GetParametersResponse response = TRIBO__V1__GET_PARAMETERS_RESPONSE__INIT;
    const tb_model_counts n = tb_model_count(s->scene->model);
    const size_t worlds = (size_t)s->worlds, shapes = (size_t)n.shapes, bodies = (size_t)n.bodies,
                 gains = 3 * (size_t)n.actuators, joints = (size_t)n.joints;
    (void)request;
    td_wire wire = td_wire_borrow(s->all);
    const tb_parameters all = {td_wire_take(&wire, worlds * shapes * sizeof(double)),
                               td_wire_take(&wire, worlds * bodies * sizeof(double)),
                               td_wire_take(&wire, worlds * gains * sizeof(double)),
                               td_wire_take(&wire, worlds * gains * sizeof(double)),
                               td_wire_take(&wire, worlds * joints * sizeof(double)),
                               td_wire_take(&wire, worlds * joints * sizeof(double)),
                               td_wire_take(&wire, worlds * 3 * shapes * sizeof(double))};
    for (size_t w = 0; w < worlds && !wire.failed; w++) {
        const tb_parameters row = {all.friction + w * shapes, all.mass + w * bodies,
                                   all.gain + w * gains,      all.bias + w * gains,
                                   all.damping + w * joints,  all.dry_friction + w * joints,
                                   all.size + w * 3 * shapes};
        tb_state_parameters(s->states[w], &row);
    }
    if (!wire.failed) {
        response.friction = parameter_array(&wire, all.friction, s->worlds, n.shapes, 1);
        response.mass = parameter_array(&wire, all.mass, s->worlds, n.bodies, 1);
        response.gain = parameter_array(&wire, all.gain, s->worlds, n.actuators, 3);
        response.bias = parameter_array(&wire, all.bias, s->worlds, n.actuators, 3);
        response.damping = parameter_array(&wire, all.damping, s->worlds, n.joints, 1);
        response.dry_friction = parameter_array(&wire, all.dry_friction, s->worlds, n.joints, 1);
        response.size = parameter_array(&wire, all.size, s->worlds, n.shapes, 3);
    }
    td_call_reply_bounded(call, &response.base, wire.failed, "");
    td_wire_return(s->all, &wire);
}

void td_simulation_get_parameters(td_call *call, td_request *request)
{
    td_session_handle(call, request,
                      ((const Tribo__V1__GetParametersRequest *)request->message)->session_id, true,
                      get_parameters);
}

/* ---- ExportProblem ---- */

/* The library writes files; this one is read back and removed at once. */
static tb_status export_problem(td_session *s, int32_t world, tb_bytes *text, tb_error *error)
{
    char folder[] = "/tmp/tribod-XXXXXX", path[sizeof folder + 16];
    tb_stepper *stepper = NULL;
    if (mkdtemp(folder) == NULL)
        return tb_fail(error, TB_INTERNAL, "no temporary folder for the problem: %s",
                       strerror(errno));
    snprintf(path, sizeof path, "%s/problem.dat", folder);
    tb_step_options options = s->options;
    options.threads = 1;
    tb_status status = tb_stepper_create(&options, &stepper, error);
    if (status == TB_OK) status = tb_export_problem(stepper, s->states[world], path, error);
    if (status == TB_OK) status = tb_file_read(path, 0, text, error);
    tb_stepper_destroy(stepper);
    unlink(path);
    rmdir(folder);
    return status;
}

static void answer_problem(td_session *s, td_call *call, td_request *request)
{
    const Tribo__V1__ExportProblemRequest *message =
        (const Tribo__V1__ExportProblemRequest *)request->message;
    Tribo__V1__ExportProblemResponse response = TRIBO__V1__EXPORT_PROBLEM_RESPONSE__INIT;
    tb_error error = {0};
    tb_bytes text = {0};
    char name[96];
    tb_status status = TB_OK;
    if (message->world < 0 || message->world >= s->worlds)
        status = tb_fail_field(&error, TB_INVALID_ARGUMENT, "world",
                               "world is %d, the session has %d", message->world, s->worlds);
    if (status == TB_OK) status = export_problem(s, message->world, &text, &error);
    if (status == TB_OK) {
        snprintf(name, sizeof name, "%.8s-%d-%lld.dat", s->text, message->world,
                 (long long)tb_state_steps(s->states[message->world]));
        response.name = name;
        response.data.data = text.base;
        response.data.len = text.size;
        td_call_reply_bounded(call, &response.base, false, "");
    } else {
        td_call_fail(call, &error);
    }
    tb_bytes_free(&text);
}

static void export_on_worker(td_call *call, td_request *request)
{
    td_session_handle(call, request,
                      ((const Tribo__V1__ExportProblemRequest *)request->message)->session_id, true,
                      answer_problem);
}

void td_simulation_export_problem(td_call *call, td_request *request)
{
    td_offload(call, request, export_on_worker);
}
