/* The handler of Watch. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "handlers/handlers.h"
#include "call/offload.h"
#include "session/session_watch.h"

static void destroy_watcher(void *state)
{
    td_watcher *w = state;
    td_session_release(w->session);
    free(w->worlds);
    free(w);
}

static tb_status read_interval(double seconds, int64_t *interval_ns, tb_error *error)
{
    static const double USUAL_S = 1.0 / 30, LONGEST_S = 86400;
    *interval_ns = (int64_t)((seconds == 0 ? USUAL_S : seconds) * 1e9);
    if (seconds >= 0 && seconds <= LONGEST_S) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "minimum_interval",
                         "minimum_interval is %g s, expected 0 to %g", seconds, LONGEST_S);
}

void td_simulation_watch(td_call *call, td_request *request)
{
    const Tribo__V1__WatchRequest *message = (const Tribo__V1__WatchRequest *)request->message;
    tb_error error = {0};
    td_watcher *w = calloc(1, sizeof *w);
    tb_status status = TB_OK;
    if (w == NULL)
        status = tb_fail_memory(&error, sizeof *w, "a watcher");
    else
        status = td_wire_read_want(message->want, &w->want, &error);
    if (status == TB_OK && w->want.pairs)
        status = tb_fail_field(&error, TB_INVALID_ARGUMENT, "want.pairs",
                               "want.pairs: Watch gives contacts, but no pairs");
    if (status == TB_OK) status = read_interval(message->minimum_interval, &w->interval_ns, &error);
    if (status == TB_OK && atomic_load(&call->server->draining))
        status = tb_fail(&error, TB_UNAVAILABLE, "the server is stopping");
    if (status == TB_OK)
        status = td_sessions_find(call->server->sessions, &call->caller, message->session_id,
                                  &w->session, &error);
    if (status == TB_OK) {
        w->certificates = message->certificates;
        w->want.evaluations = message->evaluations;
        status = td_watcher_choose(w, message->worlds, message->n_worlds, &error);
    }
    td_request_free(request);
    if (status != TB_OK) {
        if (w != NULL) {
            td_session_release(w->session);
            free(w->worlds);
        }
        free(w);
        td_call_fail(call, &error);
        return;
    }
    w->call = call;
    if (!w->want.bodies && !w->want.contacts && !w->want.poses && !w->want.forces &&
        !w->want.sensors)
        w->want.state = true;
    call->destroy_state = destroy_watcher;
    td_call_set_state(call, w);
    if (td_watcher_add(w, &error) != TB_OK)
        td_call_fail(call, &error);
    else if (atomic_load(&call->gone)) /* the cancellation may have come too early to see it */
        td_simulation_watch_cancelled(call);
}

void td_simulation_watch_half_closed(td_call *call)
{
    (void)call; /* its one request is there */
}

void td_simulation_watch_writable(td_call *call)
{
    td_watcher *w = td_call_state(call);
    if (w != NULL) td_watcher_writable(w);
}

void td_simulation_watch_cancelled(td_call *call)
{
    tb_error error;
    td_watcher *w = td_call_state(call);
    if (w != NULL) td_watcher_remove(w);
    tb_fail(&error, TB_CANCELLED, "the watcher went away");
    td_call_fail(call, &error);
}
