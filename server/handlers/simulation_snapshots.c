/* Handlers of snapshots: Snapshot, Restore. A snapshot's bytes are taken in the session's turn, in
 * microseconds; the call is answered when the store has them, and the session goes on meanwhile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "handlers/handlers.h"
#include "call/offload.h"
#include "session/session_internal.h"

/* ---- Snapshot ---- */

typedef struct snapshot_answer {
    td_call *call;
    char id[33], sha256[TD_SHA256_TEXT];
    size_t size;         /* of the worlds' bytes */
    unsigned char *copy; /* of all bytes, if the worlds' are wanted */
    size_t packed_size;
    int32_t worlds;
} snapshot_answer;

static tb_status send_answer(snapshot_answer *a, tb_error *error)
{
    Tribo__V1__SnapshotResponse response = TRIBO__V1__SNAPSHOT_RESPONSE__INIT;
    const size_t n = (size_t)a->worlds;
    const unsigned char **parts = NULL;
    size_t *sizes = NULL;
    ProtobufCBinaryData *data = NULL;
    tb_status status = TB_OK;
    if (a->copy != NULL) {
        parts = calloc(n, sizeof(const unsigned char *));
        sizes = calloc(n, sizeof *sizes);
        data = calloc(n, sizeof *data);
        if (parts == NULL || sizes == NULL || data == NULL)
            status = tb_fail_memory(error, n * sizeof *data, "a snapshot");
        else
            status = td_worlds_parts(a->copy, a->packed_size, a->worlds, parts, sizes, error);
        for (size_t w = 0; w < n && status == TB_OK; w++)
            data[w] =
                (ProtobufCBinaryData){.len = sizes[w], .data = (uint8_t *)(uintptr_t)parts[w]};
        response.data = data;
        response.n_data = n;
    }
    response.snapshot_id = a->id;
    response.sha256 = a->sha256;
    response.size = a->size;
    if (status == TB_OK) td_call_reply(a->call, &response.base);
    free(parts);
    free(sizes);
    free(data);
    return status;
}

/* On the store's writer thread, or at once for a transient one. */
static void on_kept(void *context, tb_status status, const tb_error *error)
{
    snapshot_answer *a = context;
    tb_error cause = {0};
    if (status == TB_OK) {
        status = send_answer(a, &cause);
        error = &cause;
    }
    if (status != TB_OK) td_call_finish(a->call, status, error, 0);
    td_call_release(a->call);
    free(a->copy);
    free(a);
}

static tb_status prepare_answer(td_session *s, td_call *call,
                                const Tribo__V1__SnapshotRequest *message,
                                const unsigned char *bytes, size_t size, size_t payload,
                                snapshot_answer **answer, tb_error *error)
{
    const uint64_t limit = s->all->server->config->message_bytes;
    if (message->want_data && size > limit)
        return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "want_data",
                             "the snapshot has %zu bytes, a message at most %llu", size,
                             (unsigned long long)limit);
    snapshot_answer *a = calloc(1, sizeof *a);
    unsigned char *copy = message->want_data ? malloc(size) : NULL;
    if (a == NULL || (message->want_data && copy == NULL)) {
        free(a);
        free(copy);
        return tb_fail_memory(error, size, "a snapshot");
    }
    *a = (snapshot_answer){.call = call,
                           .size = size - payload,
                           .packed_size = size,
                           .copy = copy,
                           .worlds = s->worlds};
    if (copy != NULL) memcpy(copy, bytes, size);
    const db_sha256 digest = td_sha256_of(bytes + payload, size - payload);
    td_sha256_print(&digest, a->sha256);
    *answer = a;
    return TB_OK;
}

static db_snapshot snapshot_row(const td_session *s, const char *label, size_t size)
{
    db_snapshot row;
    memset(&row, 0, sizeof row);
    row.id = td_id_random();
    row.session = s->id;
    td_sha256_parse(s->scene_id, &row.scene);
    row.kind = DB_SNAPSHOT_CLIENT;
    snprintf(row.label, sizeof row.label, "%s", label);
    row.worlds = s->worlds;
    row.steps = atomic_load(&s->steps);
    row.time = atomic_load(&s->time);
    row.size = size;
    row.create_time_us = td_clock_utc_us(&s->all->server->clock);
    return row;
}

static void snapshot(td_session *s, td_call *call, td_request *request)
{
    const Tribo__V1__SnapshotRequest *message =
        (const Tribo__V1__SnapshotRequest *)request->message;
    unsigned char *bytes = NULL;
    size_t size = 0, payload = 0;
    snapshot_answer *a = NULL;
    tb_error error = {0};
    tb_status status = TB_OK;
    if (strlen(message->label) > TD_LABEL_BYTES)
        status = tb_fail_field(&error, TB_INVALID_ARGUMENT, "label",
                               "the label has %zu bytes, at most %d are taken",
                               strlen(message->label), TD_LABEL_BYTES);
    if (status == TB_OK) status = td_worlds_pack(s, &bytes, &size, &payload, &error);
    if (status == TB_OK)
        status = prepare_answer(s, call, message, bytes, size, payload, &a, &error);
    if (status != TB_OK) {
        free(bytes);
        td_call_fail(call, &error);
        return;
    }
    const db_snapshot row = snapshot_row(s, message->label, size);
    td_id_print(&row.id, a->id);
    td_call_hold(call);
    if (message->transient) {
        status = td_transient_keep(s->all, &row.id, &s->id, bytes, size, &error);
        on_kept(a, status, &error);
        return;
    }
    status = db_put_snapshot(s->all->server->db, &row, bytes, on_kept, a, &error);
    if (status != TB_OK) {
        on_kept(a, status, &error);
        return;
    }
    /* lists show these steps after a restart, before the worlds are loaded */
    const db_session session = td_session_row(s);
    db_put_session(s->all->server->db, &session, NULL, NULL, NULL);
    td_session_put_event(s, "snapshot", message->label);
}

void td_simulation_snapshot(td_call *call, td_request *request)
{
    td_session_handle(call, request,
                      ((const Tribo__V1__SnapshotRequest *)request->message)->session_id, true,
                      snapshot);
}

/* ---- Restore ---- */

/* The bytes of a snapshot of one of the caller's sessions. */
static tb_status fetch(td_session *s, const td_caller *caller, const char *text,
                       unsigned char **bytes, size_t *size, tb_error *error)
{
    db_id id, of;
    char session[33];
    td_session *taken_of = NULL;
    *bytes = NULL;
    if (!td_id_parse(text, &id))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "snapshot_id",
                             "snapshot_id is '%.80s', expected 32 lower-case hexadecimal digits",
                             text);
    tb_status status = TB_OK;
    if (!td_transient_find(s->all, &id, &of, bytes, size)) {
        db_snapshot row;
        status = db_get_snapshot(s->all->server->db, &id, &row, bytes, error);
        if (status == TB_OK) {
            of = row.session;
            *size = (size_t)row.size;
        }
    }
    /* callers must not learn of other owners' snapshots */
    if (status == TB_OK && memcmp(&of, &s->id, sizeof of) != 0) {
        td_id_print(&of, session);
        status = td_sessions_find(s->all, caller, session, &taken_of, error);
        td_session_release(taken_of);
    }
    if (status == TB_NOT_FOUND)
        status = tb_fail_field(error, status, "snapshot_id",
                               "there is no snapshot %s; a session keeps its newest %d, of %llu "
                               "bytes together",
                               text, (int)s->all->server->config->session_snapshots,
                               (unsigned long long)s->all->server->config->session_snapshots_bytes);
    if (status != TB_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    return status;
}

static tb_status restore_parts(td_session *s, td_call *call,
                               const Tribo__V1__RestoreRequest *message, tb_error *error)
{
    const size_t n = (size_t)s->worlds;
    const bool by_id = *message->snapshot_id != '\0';
    if (by_id == (message->n_data > 0))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "snapshot_id",
                             "the request wants either snapshot_id or data");
    if (!by_id && message->n_data != n)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "data",
                             "data has %zu worlds, the session %zu", message->n_data, n);
    const unsigned char **parts = calloc(n, sizeof(const unsigned char *));
    size_t *sizes = calloc(n, sizeof *sizes);
    unsigned char *bytes = NULL;
    size_t size = 0;
    tb_status status = TB_OK;
    if (parts == NULL || sizes == NULL) status = tb_fail_memory(error, n, "a snapshot's parts");
    if (status == TB_OK && by_id) {
        status = fetch(s, &call->caller, message->snapshot_id, &bytes, &size, error);
        if (status == TB_OK) status = td_worlds_parts(bytes, size, s->worlds, parts, sizes, error);
    }
    for (size_t w = 0; w < n && status == TB_OK && !by_id; w++) {
        parts[w] = message->data[w].data;
        sizes[w] = message->data[w].len;
    }
    if (status == TB_OK) status = td_session_restore(s, parts, sizes, error);
    free(parts);
    free(sizes);
    free(bytes);
    return status;
}

static void restore(td_session *s, td_call *call, td_request *request)
{
    const Tribo__V1__RestoreRequest *message = (const Tribo__V1__RestoreRequest *)request->message;
    Tribo__V1__RestoreResponse response = TRIBO__V1__RESTORE_RESPONSE__INIT;
    tb_error error = {0};
    if (restore_parts(s, call, message, &error) != TB_OK) {
        /* bytes that a client sent are an argument, not a loss */
        if (error.status == TB_DATA_LOSS && *message->snapshot_id == '\0')
            tb_fail_field(&error, TB_INVALID_ARGUMENT, "data", "data: %s", error.message);
        td_call_fail(call, &error);
        return;
    }
    td_session_changed(s);
    td_session_put_event(s, "restored", message->snapshot_id);
    response.steps = tb_state_steps(s->states[0]);
    response.time = tb_state_time(s->states[0]);
    td_call_reply(call, &response.base);
}

static void restore_on_worker(td_call *call, td_request *request)
{
    td_session_handle(call, request,
                      ((const Tribo__V1__RestoreRequest *)request->message)->session_id, true,
                      restore);
}

void td_simulation_restore(td_call *call, td_request *request)
{
    td_offload(call, request, restore_on_worker);
}
