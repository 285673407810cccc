/* Handlers that look at a session's worlds or put them somewhere: GetState, SetState, Reset,
 * GetContacts, ExportProblem. */
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

static void set_state(td_session *s, td_call *call, td_request *request)
{
    Tribo__V1__SetStateResponse response = TRIBO__V1__SET_STATE_RESPONSE__INIT;
    tb_error error = {0};
    new_state n;
    td_wire wire = td_wire_borrow(s->all);
    tb_status status =
        read_state(s, &wire, (const Tribo__V1__SetStateRequest *)request->message, &n, &error);
    if (status == TB_OK) status = set_worlds(s, &n, &error);
    if (status == TB_OK) {
        td_session_changed(s);
        response.steps = tb_state_steps(s->states[0]);
        td_call_reply(call, &response.base);
    } else {
        td_call_fail(call, &error);
    }
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
    if (status != TB_OK) {
        td_call_fail(call, &error);
        return;
    }
    td_session_changed(s);
    response.steps = tb_state_steps(s->states[0]);
    td_call_reply(call, &response.base);
}

void td_simulation_reset(td_call *call, td_request *request)
{
    td_session_handle(call, request,
                      ((const Tribo__V1__ResetRequest *)request->message)->session_id, true, reset);
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
