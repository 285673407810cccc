/* The handler of GetRecording: frames of a live session's recording from memory, in its turn; of a
 * run that has ended from the store. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "call/offload.h"
#include "handlers/handlers.h"
#include "handlers/run_message.h"
#include "session/session_internal.h"

enum { USUAL_FRAMES = 100, MOST_FRAMES = 10000 };

static void fail_without(td_call *call, const char *id)
{
    tb_error error;
    tb_fail_field(&error, TB_NOT_FOUND, "run_id",
                  "the run %s has no recording; CreateSession makes one with `record`", id);
    td_call_fail(call, &error);
}

static void answer(td_call *call, const Tribo__V1__GetRecordingRequest *m, const char *id,
                   const char *scene, const td_recording *r, td_wire *wire)
{
    Tribo__V1__GetRecordingResponse response = TRIBO__V1__GET_RECORDING_RESPONSE__INIT;
    tb_error error;
    const int32_t count = m->count == 0 ? USUAL_FRAMES : m->count;
    tb_status status = TB_OK;
    if (m->first < 0 || m->first > r->frames)
        status = tb_fail_field(&error, TB_INVALID_ARGUMENT, "first",
                               "first is %d, the recording has %d frames", (int)m->first,
                               (int)r->frames);
    else if (count < 1 || count > MOST_FRAMES)
        status = tb_fail_field(&error, TB_INVALID_ARGUMENT, "count",
                               "count is %d, expected 1 to %d, or 0 for %d", (int)m->count,
                               (int)MOST_FRAMES, (int)USUAL_FRAMES);
    if (status != TB_OK) {
        td_call_fail(call, &error);
        return;
    }
    response.run_id = (char *)(uintptr_t)id;
    response.scene_id = (char *)(uintptr_t)scene;
    td_recording_fill(wire, r, m->first, count, call->server->config->message_bytes / 2, &response);
    td_call_reply_bounded(call, &response.base, wire->failed, "; ask for fewer frames");
}

/* ---- a live session ---- */

static void answer_in_turn(td_session *s, td_call *call, td_request *request)
{
    if (s->recording == NULL && !s->run.known) td_session_recall_recording(s);
    if (s->recording == NULL) {
        fail_without(call, s->text);
        return;
    }
    td_wire wire = td_wire_borrow(s->all);
    answer(call, (const Tribo__V1__GetRecordingRequest *)request->message, s->text, s->scene_id,
           s->recording, &wire);
    td_wire_return(s->all, &wire);
}

static bool is_live(td_call *call, const char *id)
{
    tb_error ignored;
    td_session *s = NULL;
    const bool live =
        td_sessions_find(call->server->sessions, &call->caller, id, &s, &ignored) == TB_OK;
    td_session_release(s);
    return live;
}

/* ---- a run that has ended ---- */

static void answer_from_store(td_call *call, td_request *request, const td_run *run)
{
    unsigned char *bytes = NULL;
    uint64_t size = 0;
    td_recording *r = NULL;
    tb_error error = {0};
    tb_status status = db_get_recording(call->server->db, &run->row.id, &bytes, &size, &error);
    if (status == TB_OK) status = td_recording_unpack(bytes, (size_t)size, &r, &error);
    free(bytes);
    if (status == TB_OK) {
        td_wire wire = {0};
        answer(call, (const Tribo__V1__GetRecordingRequest *)request->message, run->id, run->scene,
               r, &wire);
        td_wire_destroy(&wire);
    } else if (status == TB_NOT_FOUND) {
        fail_without(call, run->id);
    } else {
        td_call_fail(call, &error);
    }
    td_recording_destroy(r);
    td_request_free(request);
}

static void get_recording(td_call *call, td_request *request)
{
    const Tribo__V1__GetRecordingRequest *m =
        (const Tribo__V1__GetRecordingRequest *)request->message;
    td_run run = {0};
    tb_error error = {0};
    if (td_run_find(call, m->run_id, "run_id", &run, &error) != TB_OK) {
        td_call_fail(call, &error);
        td_request_free(request);
        return;
    }
    if (is_live(call, run.id))
        td_session_handle(call, request, run.id, false, answer_in_turn);
    else
        answer_from_store(call, request, &run);
    td_run_clear(&run);
}

void td_runs_get_recording(td_call *call, td_request *request)
{
    td_offload(call, request, get_recording);
}
