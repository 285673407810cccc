/* Handlers of Step and StepStream.
 *
 * A stream reads the next request while earlier ones run, up to a window of unsent responses; a
 * client that does not read therefore blocks its own requests. Responses come in order, since a
 * session runs one request at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "handlers/handlers.h"
#include "call/offload.h"
#include "session/session_step.h"

enum { WINDOW = 16 };

/* ---- Step ---- */

static void answer_unary(td_step *step)
{
    td_session *s = step->job.session;
    td_call *call = step->job.call;
    const uint64_t limit = s->all->server->config->message_bytes;
    const int64_t begin = td_monotonic_ns();
    if (step->job.status == TB_OK && td_step_bytes(step) > limit)
        step->job.status =
            tb_fail_field(&step->job.error, TB_RESOURCE_EXHAUSTED, "want",
                          "the steps were taken, but the answer has about %llu bytes, a "
                          "message at most %llu; StepStream sends it in pieces",
                          (unsigned long long)td_step_bytes(step), (unsigned long long)limit);
    if (step->job.status == TB_OK) {
        Tribo__V1__StepResponse response = TRIBO__V1__STEP_RESPONSE__INIT;
        td_wire wire = td_wire_borrow(s->all);
        if (td_step_fill(step, &wire, 0, s->worlds, &response))
            td_call_reply(call, &response.base);
        else
            step->job.status = tb_fail_memory(&step->job.error, 0, "an answer");
        td_wire_return(s->all, &wire);
        td_metrics_observe(s->all->server->metrics, TD_HISTOGRAM_COPY,
                           1e-9 * (double)(td_monotonic_ns() - begin));
    }
    if (step->job.status != TB_OK)
        td_call_finish(call, step->job.status, &step->job.error, step->job.retry_after);
    td_step_end(step);
}

static tb_status check_draining(const td_call *call, tb_error *error)
{
    if (!atomic_load(&call->server->draining)) return TB_OK;
    return tb_fail(error, TB_UNAVAILABLE, "the server is stopping");
}

void td_simulation_step(td_call *call, td_request *request)
{
    const Tribo__V1__StepRequest *message = (const Tribo__V1__StepRequest *)request->message;
    tb_error error = {0};
    double retry_after = 0;
    td_session *s = NULL;
    tb_status status =
        td_sessions_find(call->server->sessions, &call->caller, message->session_id, &s, &error);
    if (status != TB_OK) {
        td_request_free(request);
    } else {
        td_step *step = td_step_create(call, request, message, s, answer_unary, &error);
        status = step == NULL ? error.status : td_step_start(step, &retry_after, &error);
    }
    td_session_release(s);
    if (status != TB_OK) td_call_finish(call, status, &error, retry_after);
}

/* ---- StepStream ---- */

typedef struct stream {
    td_call *call;
    td_drain_node drain;
    pthread_mutex_t mutex;
    td_session *session; /* held from the first message on */
    int32_t at_work;     /* requests without an answer yet */
    bool reading;        /* the transport was asked for a message */
    bool half_closed, ended;
} stream;

static void destroy_stream(void *state)
{
    stream *t = state;
    td_session_release(t->session);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}

/* The end of a stream that was marked as ended by this caller. */
static void finish_stream(stream *t, tb_status status, const tb_error *error, double retry_after)
{
    td_drain_remove(t->call->server->sessions, &t->drain);
    td_call_finish(t->call, status, error, retry_after);
}

static void end_stream(stream *t, tb_status status, const tb_error *error, double retry_after)
{
    pthread_mutex_lock(&t->mutex);
    const bool first = !t->ended;
    t->ended = true;
    pthread_mutex_unlock(&t->mutex);
    if (first) finish_stream(t, status, error, retry_after);
}

/* Reads on while the window allows; ends a stream that is complete or idle during a drain. */
static void go_on(stream *t)
{
    td_call *call = t->call;
    const bool draining = atomic_load(&call->server->draining);
    tb_error error = {0};
    pthread_mutex_lock(&t->mutex);
    const bool idle = t->at_work == 0 && !t->ended;
    const bool over = idle && t->half_closed;
    const bool stopped = idle && !over && draining && t->reading;
    const bool read =
        !t->ended && !t->half_closed && !t->reading && t->at_work + td_call_queued(call) < WINDOW;
    if (read) t->reading = true;
    if (over || stopped) t->ended = true;
    pthread_mutex_unlock(&t->mutex);
    if (over) {
        finish_stream(t, TB_OK, NULL, 0);
    } else if (stopped) {
        tb_fail(&error, TB_UNAVAILABLE, "the server is stopping; the session is checkpointed");
        finish_stream(t, TB_UNAVAILABLE, &error, 1);
    } else if (read) {
        td_call_read(call);
    }
}

/* Called when a message arrives: true if the stream still accepts it and has counted it as
 * running. */
static bool accept(stream *t)
{
    pthread_mutex_lock(&t->mutex);
    const bool taken = !t->ended;
    t->reading = false;
    if (taken) t->at_work++;
    pthread_mutex_unlock(&t->mutex);
    return taken;
}

/* A message has been answered, or never will be. */
static void settle(stream *t)
{
    pthread_mutex_lock(&t->mutex);
    t->at_work--;
    pthread_mutex_unlock(&t->mutex);
}

static void drain_stream(td_call *call)
{
    stream *t = td_call_state(call);
    if (t != NULL) go_on(t);
}

/* Applies the session's policy for a broken stream. */
static void disconnect(td_session *s)
{
    if (s->on_disconnect == TRIBO__V1__ON_DISCONNECT__ON_DISCONNECT_PAUSE)
        td_session_pause(s);
    else if (s->on_disconnect == TRIBO__V1__ON_DISCONNECT__ON_DISCONNECT_DELETE)
        td_session_end(s, TRIBO__V1__SESSION_EVENT__SESSION_EVENT_DELETED,
                       "the stream that stepped it broke");
}

static tb_status send_pieces(td_step *step)
{
    td_session *s = step->job.session;
    const td_config *config = s->all->server->config;
    const int64_t begin = td_monotonic_ns();
    tb_status status = TB_OK;
    for (int32_t first = 0; first < s->worlds && status == TB_OK;) {
        Tribo__V1__StepStreamResponse response = TRIBO__V1__STEP_STREAM_RESPONSE__INIT;
        Tribo__V1__StepResponse part = TRIBO__V1__STEP_RESPONSE__INIT;
        const int32_t count =
            td_session_piece(s->states + first, s->worlds - first, step->want, config->chunk_bytes);
        td_wire wire = td_wire_borrow(s->all);
        response.step = &part;
        response.tag = step->tag;
        response.more = first + count < s->worlds;
        if (td_step_fill(step, &wire, first, count, &part))
            td_call_send(step->job.call, &response.base);
        else
            status = tb_fail_memory(&step->job.error, 0, "an answer");
        td_wire_return(s->all, &wire);
        first += count;
    }
    td_metrics_observe(s->all->server->metrics, TD_HISTOGRAM_COPY,
                       1e-9 * (double)(td_monotonic_ns() - begin));
    return status;
}

static void answer_stream(td_step *step)
{
    stream *t = step->job.context;
    td_call *call = step->job.call;
    if (step->job.status == TB_OK) step->job.status = send_pieces(step);
    if (step->job.status != TB_OK)
        end_stream(t, step->job.status, &step->job.error, step->job.retry_after);
    td_call_hold(call); /* the stream outlives the step */
    td_step_end(step);
    settle(t);
    go_on(t);
    td_call_release(call);
}

static stream *begin_stream(td_call *call, tb_error *error)
{
    stream *t = calloc(1, sizeof *t);
    if (t == NULL) {
        tb_fail_memory(error, sizeof *t, "a stream");
        return NULL;
    }
    t->call = call;
    t->drain.call = call;
    t->drain.drain = drain_stream;
    pthread_mutex_init(&t->mutex, NULL);
    call->destroy_state = destroy_stream;
    td_call_set_state(call, t);
    td_drain_add(call->server->sessions, &t->drain);
    return t;
}

/* The first message says which session; later ones may say it again. */
static tb_status find_session(stream *t, const char *id, tb_error *error)
{
    td_call *call = t->call;
    if (t->session == NULL) {
        td_session *s = NULL;
        const tb_status status =
            td_sessions_find(call->server->sessions, &call->caller, id, &s, error);
        pthread_mutex_lock(&t->mutex);
        t->session = s;
        pthread_mutex_unlock(&t->mutex);
        return status;
    }
    td_session_renew(t->session);
    if (*id == '\0' || strcmp(id, t->session->text) == 0) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "step.session_id",
                         "a stream steps one session, and this one began with %s",
                         t->session->text);
}

static tb_status take_message(stream *t, td_request *request, double *retry_after, tb_error *error)
{
    const Tribo__V1__StepStreamRequest *message =
        (const Tribo__V1__StepStreamRequest *)request->message;
    static const Tribo__V1__StepRequest usual = TRIBO__V1__STEP_REQUEST__INIT;
    const Tribo__V1__StepRequest *asked = message->step != NULL ? message->step : &usual;
    const uint64_t tag = message->tag;
    tb_status status = find_session(t, asked->session_id, error);
    if (status != TB_OK) {
        td_request_free(request);
        return status;
    }
    td_step *step = td_step_create(t->call, request, asked, t->session, answer_stream, error);
    if (step == NULL) return error->status;
    step->job.context = t;
    step->tag = tag;
    return td_step_start(step, retry_after, error);
}

void td_simulation_step_stream(td_call *call, td_request *request)
{
    tb_error error = {0};
    double retry_after = 0;
    stream *t = td_call_state(call);
    const bool first = t == NULL;
    tb_status status = TB_OK;
    if (first) {
        status = check_draining(call, &error);
        t = status == TB_OK ? begin_stream(call, &error) : NULL;
    }
    if (t == NULL) {
        td_request_free(request);
        td_call_finish(call, error.status, &error, 1);
        return;
    }
    if (!accept(t)) {
        td_request_free(request);
        return;
    }
    status = take_message(t, request, &retry_after, &error);
    if (status != TB_OK) {
        end_stream(t, status, &error, retry_after);
        settle(t);
    } else {
        go_on(t);
    }
    /* the cancellation may have come too early to see the stream */
    if (first && atomic_load(&call->gone)) td_simulation_step_stream_cancelled(call);
}

void td_simulation_step_stream_half_closed(td_call *call)
{
    stream *t = td_call_state(call);
    tb_error error;
    if (t == NULL) {
        tb_fail_field(&error, TB_INVALID_ARGUMENT, "step.session_id",
                      "the stream ended before its first message");
        td_call_fail(call, &error);
        return;
    }
    pthread_mutex_lock(&t->mutex);
    t->half_closed = true;
    pthread_mutex_unlock(&t->mutex);
    go_on(t);
}

void td_simulation_step_stream_writable(td_call *call)
{
    stream *t = td_call_state(call);
    if (t != NULL) go_on(t);
}

void td_simulation_step_stream_cancelled(td_call *call)
{
    stream *t = td_call_state(call);
    tb_error error;
    tb_fail(&error, TB_CANCELLED, "the stream broke");
    if (t == NULL) {
        td_call_fail(call, &error);
        return;
    }
    pthread_mutex_lock(&t->mutex);
    td_session *s = t->ended ? NULL : t->session;
    pthread_mutex_unlock(&t->mutex);
    end_stream(t, TB_CANCELLED, &error, 0);
    if (s != NULL) disconnect(s);
}
