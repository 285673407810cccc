/* Watchers: clients that follow a session stepped by other clients.
 *
 * No state is queued for a reader: once a watcher may have a state (its interval has passed, and
 * its last message was sent), it gets the current one. So a stalled reader costs no memory, and
 * misses states, which are counted, but no events. The job with the turn sends states. */
#include "session/session_watch.h"

#include <stdlib.h>

#include "base/error.h"

/* Watchers that are served in one pass; events that may wait in a stalled call. */
enum { PASS = 32, WAITING_EVENTS = 16 };

/* ---- sending ---- */

/* `worlds`: of the states; NULL: the message does not name them. */
static void send_piece(td_watcher *w, td_wire *wire, tb_state *const *states, int32_t *worlds,
                       int32_t count, bool more, uint64_t skipped)
{
    Tribo__V1__WatchResponse response = TRIBO__V1__WATCH_RESPONSE__INIT;
    response.state = td_wire_state(wire, states, count, w->want);
    if (w->want.contacts) {
        response.contacts = td_wire_contacts(wire, states, count, w->want);
        response.n_contacts = (size_t)count;
    }
    if (w->certificates && w->want.arrays) {
        response.certificate_arrays = td_wire_last_certificate_arrays(wire, states, count);
    } else if (w->certificates) {
        response.certificates = td_wire_last_certificates(wire, states, count);
        response.n_certificates = (size_t)count;
    }
    if (w->want.evaluations) {
        response.evaluations = td_wire_evaluations(wire, states, count, w->want.dtype);
        response.n_evaluations = (size_t)count;
    }
    response.worlds = worlds;
    response.n_worlds = worlds != NULL ? (size_t)count : 0;
    response.time_us = td_clock_utc_us(&w->session->all->server->clock);
    response.skipped = skipped;
    response.more = more;
    if (!wire->failed) td_call_send(w->call, &response.base);
}

/* The watcher's worlds; NULL if out of memory. */
static tb_state *const *choose_states(const td_watcher *w, td_wire *wire)
{
    tb_state **states = td_wire_take(wire, (size_t)w->number_of_worlds * sizeof *states);
    for (int32_t i = 0; states != NULL && i < w->number_of_worlds; i++)
        states[i] = w->session->states[w->worlds[i]];
    return states;
}

static void send_state(td_watcher *w, uint64_t skipped)
{
    td_session *s = w->session;
    td_metrics *metrics = s->all->server->metrics;
    const uint64_t chunk = s->all->server->config->chunk_bytes;
    const int64_t begin = td_monotonic_ns();
    tb_error lost;
    td_wire chosen = td_wire_borrow(s->all);
    const int32_t worlds = w->worlds != NULL ? w->number_of_worlds : s->worlds;
    tb_state *const *states = w->worlds != NULL ? choose_states(w, &chosen) : s->states;
    w->want.dt = td_session_dt(s);
    if (states == NULL || td_session_fetch_worlds(s, states, worlds, w->want, &lost) != TB_OK) {
        td_wire_return(s->all, &chosen); /* an event says why */
        return;
    }
    if (skipped > 0) td_metrics_add(metrics, TD_METRIC_STREAM_SKIPPED, (int64_t)skipped);
    for (int32_t first = 0; first < worlds;) {
        int32_t count = td_session_piece(states + first, worlds - first, w->want, chunk);
        td_wire wire = td_wire_borrow(s->all);
        send_piece(w, &wire, states + first, w->worlds != NULL ? w->worlds + first : NULL, count,
                   first + count < worlds, skipped);
        td_wire_return(s->all, &wire);
        first += count;
    }
    td_wire_return(s->all, &chosen);
    td_metrics_observe(metrics, TD_HISTOGRAM_COPY, 1e-9 * (double)(td_monotonic_ns() - begin));
}

/* When a watcher gets a state: when it is due; or at once, since there will be none later. */
typedef enum urgency { WHEN_DUE, LAST_CHANCE } urgency;

/* Sends to every watcher that is due. The reaper later serves watchers that are still within their
 * interval; a watcher with a full call is served when the call has space. (turn) */
static void send_due(td_session *s, bool changed, urgency when)
{
    struct {
        td_watcher *watcher;
        uint64_t skipped;
    } due[PASS];
    int n = 0;
    const int64_t now = td_monotonic_ns();
    int64_t next = INT64_MAX;
    pthread_mutex_lock(&s->mutex);
    for (td_watcher *w = s->watchers; w != NULL; w = w->next) {
        if (changed) w->unsent++;
        if (w->unsent == 0 || td_call_queued(w->call) > 0) continue;
        const int64_t at = when == WHEN_DUE ? w->last_ns + w->interval_ns : now;
        if (at > now || n == PASS) {
            if (at < next) next = at;
            continue;
        }
        due[n].watcher = w;
        due[n++].skipped = w->unsent - 1;
        w->unsent = 0;
        w->last_ns = now;
        td_call_hold(w->call);
    }
    pthread_mutex_unlock(&s->mutex);
    for (int i = 0; i < n; i++) {
        send_state(due[i].watcher, due[i].skipped);
        td_call_release(due[i].watcher->call);
    }
    if (next < INT64_MAX) td_sessions_wake_at(s->all, next);
}

void td_session_publish(td_session *s)
{
    if (atomic_load(&s->all->watching) > 0) send_due(s, true, WHEN_DUE);
}

void td_session_publish_last(td_session *s)
{
    if (atomic_load(&s->all->watching) == 0) return;
    send_due(s, false, LAST_CHANCE);
    pthread_mutex_lock(&s->mutex);
    for (td_watcher *w = s->watchers; w != NULL; w = w->next) w->unsent = 0;
    pthread_mutex_unlock(&s->mutex);
}

/* ---- evaluations ---- */

/* Memory of the evaluations that a session keeps, and that one world keeps. */
static const size_t SESSION_EVALUATION_BYTES = 64 << 20, WORLD_EVALUATION_BYTES = 16 << 20;

/* Marks the worlds whose evaluations are watched; their number. */
static int32_t mark_watched(td_session *s, uint8_t *watched)
{
    int32_t count = 0;
    pthread_mutex_lock(&s->mutex);
    for (const td_watcher *w = s->watchers; w != NULL; w = w->next) {
        const int32_t worlds = w->worlds != NULL ? w->number_of_worlds : s->worlds;
        for (int32_t i = 0; w->want.evaluations && i < worlds; i++) {
            uint8_t *mark = &watched[w->worlds != NULL ? w->worlds[i] : i];
            count += *mark == 0;
            *mark = 1;
        }
    }
    pthread_mutex_unlock(&s->mutex);
    return count;
}

void td_session_keep_evaluations(td_session *s)
{
    if (atomic_load(&s->evaluation_watchers) == 0 && !s->keeps_evaluations) return;
    uint8_t *watched = calloc((size_t)s->worlds, sizeof *watched);
    if (watched == NULL) return; /* as they were */
    const int32_t count = mark_watched(s, watched);
    size_t bytes = count > 0 ? SESSION_EVALUATION_BYTES / (size_t)count : 0;
    if (bytes > WORLD_EVALUATION_BYTES) bytes = WORLD_EVALUATION_BYTES;
    tb_error ignored; /* a world without memory keeps none */
    for (int32_t w = 0; w < s->worlds; w++)
        tb_state_keep_evaluations(s->states[w], watched[w] ? bytes : 0, &ignored);
    s->keeps_evaluations = count > 0;
    free(watched);
}

/* ---- flushing ---- */

static void end_flush(td_session *s)
{
    pthread_mutex_lock(&s->mutex);
    s->flushing = false;
    pthread_mutex_unlock(&s->mutex);
}

static void run_flush(td_job *job)
{
    td_session *s = job->session;
    end_flush(s);
    send_due(s, false, WHEN_DUE);
    td_session_leave(s);
    td_session_release(s);
}

static void refuse_flush(td_job *job, const tb_error *error)
{
    (void)error;
    end_flush(job->session);
    td_session_release(job->session);
}

void td_session_flush(td_session *s)
{
    pthread_mutex_lock(&s->mutex);
    const bool mine = !s->flushing && !s->ended;
    if (mine) s->flushing = true;
    pthread_mutex_unlock(&s->mutex);
    if (!mine) return;
    tb_error ignored;
    s->flush.session = s;
    s->flush.run = run_flush;
    s->flush.refuse = refuse_flush;
    s->flush.needs_worlds = true;
    td_session_hold(s);
    if (td_session_enter(&s->flush, &ignored) != TB_OK) refuse_flush(&s->flush, &ignored);
}

/* When the session's next watcher is due; INT64_MAX if none waits for its time. */
static int64_t next_due(td_session *s)
{
    int64_t next = INT64_MAX;
    pthread_mutex_lock(&s->mutex);
    for (const td_watcher *w = s->watchers; w != NULL; w = w->next)
        if (w->unsent > 0 && td_call_queued(w->call) == 0 && w->last_ns + w->interval_ns < next)
            next = w->last_ns + w->interval_ns;
    pthread_mutex_unlock(&s->mutex);
    return next;
}

int64_t td_sessions_flush_watchers(td_sessions *all, int64_t now_ns)
{
    int64_t next = INT64_MAX;
    if (atomic_load(&all->watching) == 0) return next;
    for (bool more = true; more;) {
        td_session *due[PASS];
        int n = 0;
        next = INT64_MAX;
        pthread_mutex_lock(&all->mutex);
        for (td_session *s = all->newest; s != NULL && n < PASS; s = s->older) {
            const int64_t at = next_due(s);
            if (at > now_ns) {
                if (at < next) next = at;
                continue;
            }
            pthread_mutex_lock(&s->mutex);
            const bool coming = s->flushing;
            pthread_mutex_unlock(&s->mutex);
            if (coming) continue;
            td_session_hold(s);
            due[n++] = s;
        }
        more = n == PASS;
        pthread_mutex_unlock(&all->mutex);
        for (int i = 0; i < n; i++) {
            td_session_flush(due[i]);
            td_session_release(due[i]);
        }
    }
    return next;
}

/* ---- events ---- */

static void send_event(td_watcher *w, Tribo__V1__SessionEvent event, const char *message)
{
    Tribo__V1__WatchResponse response = TRIBO__V1__WATCH_RESPONSE__INIT;
    response.event = event;
    response.message = (char *)(uintptr_t)message;
    td_call_send(w->call, &response.base);
}

static void tell_last(td_watcher *list, Tribo__V1__SessionEvent event, const char *message)
{
    while (list != NULL) {
        td_watcher *next = list->next;
        atomic_fetch_sub(&list->session->all->watching, 1);
        send_event(list, event, message);
        td_call_finish(list->call, TB_OK, NULL, 0);
        td_call_release(list->call);
        list = next;
    }
}

void td_session_tell(td_session *s, Tribo__V1__SessionEvent event, const char *message, bool last)
{
    pthread_mutex_lock(&s->mutex);
    td_watcher *list = s->watchers;
    if (last) {
        s->watchers = NULL;
        s->number_of_watchers = 0;
        atomic_store(&s->evaluation_watchers, 0);
        for (td_watcher *w = list; w != NULL; w = w->next) w->listed = false;
    } else {
        /* a call takes a message without waiting and without calling back */
        for (td_watcher *w = list; w != NULL; w = w->next) {
            if (td_call_queued(w->call) < WAITING_EVENTS)
                send_event(w, event, message);
            else
                w->missed = event;
        }
    }
    pthread_mutex_unlock(&s->mutex);
    if (last) tell_last(list, event, message);
}

/* ---- coming and going ---- */

/* Evaluations are of few worlds, by the one scheme that has them. */
static tb_status check_evaluations(const td_watcher *w, int32_t worlds, tb_error *error)
{
    enum { MOST_WORLDS = 16 };
    if (!w->want.evaluations) return TB_OK;
    if (w->session->options.scheme != TB_SCHEME_VOLUME)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "evaluations",
                             "evaluations: the session does not step by the volume law");
    if (worlds > MOST_WORLDS)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "evaluations",
                             "evaluations of %d worlds, at most %d are given; choose some by "
                             "`worlds`",
                             (int)worlds, (int)MOST_WORLDS);
    return TB_OK;
}

tb_status td_watcher_choose(td_watcher *w, const int32_t *worlds, size_t count, tb_error *error)
{
    const int32_t all = w->session->worlds;
    const tb_status status = check_evaluations(w, count == 0 ? all : (int32_t)count, error);
    if (status != TB_OK || count == 0) return status;
    for (size_t i = 0; i < count; i++)
        if (worlds[i] < 0 || worlds[i] >= all || (i > 0 && worlds[i] <= worlds[i - 1]))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "worlds",
                                 "worlds[%zu] is %d, expected ascending numbers below %d", i,
                                 (int)worlds[i], (int)all);
    w->worlds = malloc(count * sizeof *worlds);
    if (w->worlds == NULL) return tb_fail_memory(error, count * sizeof *worlds, "worlds");
    for (size_t i = 0; i < count; i++) w->worlds[i] = worlds[i];
    w->number_of_worlds = (int32_t)count;
    return TB_OK;
}

tb_status td_watcher_add(td_watcher *w, tb_error *error)
{
    td_session *s = w->session;
    tb_status status = TB_OK;
    w->unsent = 1; /* a state now */
    w->last_ns = td_monotonic_ns() - w->interval_ns;
    pthread_mutex_lock(&s->mutex);
    if (s->ended) {
        status = tb_fail_field(error, TB_NOT_FOUND, "session_id", "the session %s has ended: %s",
                               s->text, s->end_reason);
    } else {
        td_call_hold(w->call);
        w->listed = true;
        w->next = s->watchers;
        s->watchers = w;
        s->number_of_watchers++;
        if (w->want.evaluations) atomic_fetch_add(&s->evaluation_watchers, 1);
        atomic_fetch_add(&s->all->watching, 1);
    }
    pthread_mutex_unlock(&s->mutex);
    if (status == TB_OK) td_session_flush(s);
    return status;
}

void td_watcher_remove(td_watcher *w)
{
    td_session *s = w->session;
    pthread_mutex_lock(&s->mutex);
    const bool listed = w->listed;
    if (listed) {
        td_watcher **link = &s->watchers;
        while (*link != w) link = &(*link)->next;
        *link = w->next;
        s->number_of_watchers--;
        if (w->want.evaluations) atomic_fetch_sub(&s->evaluation_watchers, 1);
        w->listed = false;
        atomic_fetch_sub(&s->all->watching, 1);
    }
    pthread_mutex_unlock(&s->mutex);
    if (listed) td_call_release(w->call);
}

void td_watcher_writable(td_watcher *w)
{
    td_session *s = w->session;
    pthread_mutex_lock(&s->mutex);
    if (w->listed && w->missed != TRIBO__V1__SESSION_EVENT__SESSION_EVENT_UNSPECIFIED) {
        send_event(w, w->missed, "");
        w->missed = TRIBO__V1__SESSION_EVENT__SESSION_EVENT_UNSPECIFIED;
    }
    const bool waits = w->listed && w->unsent > 0 && td_call_queued(w->call) == 0;
    const int64_t at = w->last_ns + w->interval_ns;
    pthread_mutex_unlock(&s->mutex);
    if (!waits) return;
    if (at > td_monotonic_ns())
        td_sessions_wake_at(s->all, at);
    else
        td_session_flush(s);
}
