/* The reaper: a thread that ends sessions with an expired lease, checkpoints changed ones, and
 * wakes watchers when their interval is over; and the drain of all sessions. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "call/memory.h"
#include "session/programs.h"
#include "session/session_internal.h"

/* How often it looks at the server's clock, which a test may have moved. */
static const int64_t REAPER_NS = 200000000;
/* How often freed memory is given back to the system. */
static const int64_t TRIM_NS = 2000000000;
/* Longest time between rounds of checkpoints that fail, s. */
static const double CHECKPOINT_BACKOFF_S = 300;

/* ---- choosing ---- */

enum { SWEEP = 256 };

/* Up to SWEEP sessions, held, that `wanted` chooses, from `*from` on in the order of creation. */
static int32_t sweep(td_sessions *all, uint64_t *from, td_session *found[SWEEP],
                     bool (*wanted)(const td_session *, int64_t now_us), int64_t now_us)
{
    int32_t n = 0;
    pthread_mutex_lock(&all->mutex);
    td_session *s = all->oldest;
    for (; s != NULL && n < SWEEP; s = s->newer) {
        if (s->sequence < *from || !wanted(s, now_us)) continue;
        td_session_hold(s);
        found[n++] = s;
    }
    *from = n > 0 ? found[n - 1]->sequence + 1 : UINT64_MAX;
    pthread_mutex_unlock(&all->mutex);
    return n;
}

static bool has_expired(const td_session *s, int64_t now_us)
{
    return atomic_load_explicit(&s->expire_time_us, memory_order_relaxed) <= now_us;
}

static bool has_changed(const td_session *s, int64_t now_us)
{
    (void)now_us;
    return atomic_load(&s->dirty);
}

static bool is_stranded(const td_session *s, int64_t now_us)
{
    (void)now_us;
    return td_device_is_gone(s->all->server, s->device);
}

static bool has_no_run(const td_session *s, int64_t now_us)
{
    (void)now_us;
    return atomic_load(&s->run_dirty);
}

void td_sessions_reap(td_sessions *all)
{
    const int64_t now = td_clock_steady_us(&all->server->clock);
    td_session *found[SWEEP];
    for (uint64_t from = 0; from != UINT64_MAX;) {
        const int32_t n = sweep(all, &from, found, has_expired, now);
        for (int32_t i = 0; i < n; i++) {
            td_session *s = found[i];
            pthread_mutex_lock(&s->mutex);
            const bool busy = s->busy; /* a call is running on the session */
            pthread_mutex_unlock(&s->mutex);
            if (!busy && has_expired(s, now) &&
                td_session_end(s, TRIBO__V1__SESSION_EVENT__SESSION_EVENT_EXPIRED,
                               "its lease ran out"))
                td_metrics_add(all->server->metrics, TD_METRIC_SESSIONS_EXPIRED, 1);
            td_session_release(s);
        }
    }
}

static void checkpoint_changed(td_sessions *all, td_checkpoint_wait *told)
{
    td_session *found[SWEEP];
    for (uint64_t from = 0; from != UINT64_MAX;) {
        const int32_t n = sweep(all, &from, found, has_changed, 0);
        for (int32_t i = 0; i < n; i++) {
            td_session_checkpoint(found[i], told);
            td_session_release(found[i]);
        }
    }
}

static void move_stranded(td_sessions *all)
{
    td_session *found[SWEEP];
    for (uint64_t from = 0; from != UINT64_MAX;) {
        const int32_t n = sweep(all, &from, found, is_stranded, 0);
        for (int32_t i = 0; i < n; i++) {
            td_session_move_idle(found[i]);
            td_session_release(found[i]);
        }
    }
}

static void write_runs(td_sessions *all)
{
    td_session *found[SWEEP];
    for (uint64_t from = 0; from != UINT64_MAX;) {
        const int32_t n = sweep(all, &from, found, has_no_run, 0);
        for (int32_t i = 0; i < n; i++) {
            td_session_write_run(found[i]);
            td_session_release(found[i]);
        }
    }
}

void td_checkpoint_failed(td_session *s, const tb_error *error)
{
    td_sessions *all = s->all;
    td_metrics_add(all->server->metrics, TD_METRIC_CHECKPOINTS_FAILED, 1);
    atomic_fetch_add(&all->failed_checkpoints, 1);
    if (atomic_exchange(&all->checkpoints_failing, true)) return;
    td_log_write(all->server->log, TB_LOG_ERROR, "session.checkpoint_failed",
                 "session=%s message=%s", s->text, error != NULL ? error->message : "");
}

/* Evaluates the last round. Each round with failures doubles the interval, up to CHECKPOINT_BACKOFF_S; the
 * first round without failures is logged. */
static double checkpoint_interval(td_sessions *all, double every)
{
    enum { DOUBLINGS = 10 };
    if (atomic_exchange(&all->failed_checkpoints, 0) > 0) {
        if (all->failed_rounds < DOUBLINGS) all->failed_rounds++;
    } else if (atomic_exchange(&all->checkpoints_failing, false)) {
        td_log_write(all->server->log, TB_LOG_INFO, "session.checkpoints_again", "rounds_lost=%d",
                     all->failed_rounds);
        all->failed_rounds = 0;
    }
    const double late = ldexp(every, all->failed_rounds);
    return all->failed_rounds == 0 ? every : fmax(every, fmin(late, CHECKPOINT_BACKOFF_S));
}

static void checkpoint_when_due(td_sessions *all)
{
    const double every = all->server->config->checkpoint_seconds;
    const int64_t now = td_clock_steady_us(&all->server->clock);
    if (every <= 0 || now < all->next_checkpoint_us || atomic_load(&all->checkpoints) > 0) return;
    const double interval = checkpoint_interval(all, every);
    if (all->next_checkpoint_us > 0) checkpoint_changed(all, NULL);
    all->next_checkpoint_us = now + (int64_t)(interval * 1e6);
}

static void trim_when_due(td_sessions *all)
{
    const int64_t now = td_monotonic_ns();
    if (now < all->next_trim_ns) return;
    td_memory_trim();
    all->next_trim_ns = now + TRIM_NS;
}

static void *reap_for_ever(void *context)
{
    td_sessions *all = context;
    int64_t next_look = 0;
    pthread_mutex_lock(&all->reaper_mutex);
    while (!all->ending) {
        const int64_t now = td_monotonic_ns();
        const int64_t due = all->next_due_ns < next_look ? all->next_due_ns : next_look;
        if (now < due) {
            const struct timespec until = {.tv_sec = (time_t)(due / 1000000000),
                                           .tv_nsec = (long)(due % 1000000000)};
            pthread_cond_timedwait(&all->reaper_wake, &all->reaper_mutex, &until);
            continue;
        }
        const bool look = now >= next_look;
        if (look) next_look = now + REAPER_NS;
        all->next_due_ns = INT64_MAX;
        pthread_mutex_unlock(&all->reaper_mutex);
        if (look) {
            td_sessions_reap(all);
            td_arrays_reap(all->server->arrays);
            move_stranded(all);
            write_runs(all);
            checkpoint_when_due(all);
            trim_when_due(all);
        }
        const int64_t next_due = td_sessions_flush_watchers(all, now);
        pthread_mutex_lock(&all->reaper_mutex);
        if (next_due < all->next_due_ns) all->next_due_ns = next_due;
    }
    pthread_mutex_unlock(&all->reaper_mutex);
    return NULL;
}

void td_sessions_wake_at(td_sessions *all, int64_t due_ns)
{
    pthread_mutex_lock(&all->reaper_mutex);
    const bool sooner = due_ns < all->next_due_ns;
    if (sooner) all->next_due_ns = due_ns;
    pthread_mutex_unlock(&all->reaper_mutex);
    if (sooner) pthread_cond_signal(&all->reaper_wake);
}

/* ---- draining ---- */

void td_drain_add(td_sessions *all, td_drain_node *node)
{
    pthread_mutex_lock(&all->mutex);
    node->previous = NULL;
    node->next = all->draining;
    if (node->next != NULL) node->next->previous = node;
    all->draining = node;
    pthread_mutex_unlock(&all->mutex);
}

static void take_node(td_sessions *all, td_drain_node *node)
{
    if (node->previous == NULL && all->draining != node) return;
    *(node->previous != NULL ? &node->previous->next : &all->draining) = node->next;
    if (node->next != NULL) node->next->previous = node->previous;
    node->next = node->previous = NULL;
}

void td_drain_remove(td_sessions *all, td_drain_node *node)
{
    pthread_mutex_lock(&all->mutex);
    take_node(all, node);
    pthread_mutex_unlock(&all->mutex);
}

static bool any(const td_session *s, int64_t now_us)
{
    (void)s, (void)now_us;
    return true;
}

struct td_checkpoint_wait {
    pthread_mutex_t mutex;
    pthread_cond_t told;
    int32_t open;
    int references; /* of the waiting thread, and of each checkpoint */
    tb_status status;
    tb_error error;
};

static void drop_wait(td_checkpoint_wait *wait)
{
    pthread_mutex_lock(&wait->mutex);
    const bool last = --wait->references == 0;
    pthread_mutex_unlock(&wait->mutex);
    if (!last) return;
    pthread_mutex_destroy(&wait->mutex);
    pthread_cond_destroy(&wait->told);
    free(wait);
}

void td_checkpoint_begin(td_checkpoint_wait *wait)
{
    if (wait == NULL) return;
    pthread_mutex_lock(&wait->mutex);
    wait->open++;
    wait->references++;
    pthread_mutex_unlock(&wait->mutex);
}

void td_checkpoint_told(td_checkpoint_wait *wait, tb_status status, const tb_error *error)
{
    if (wait == NULL) return;
    pthread_mutex_lock(&wait->mutex);
    wait->open--;
    if (status != TB_OK && wait->status == TB_OK) {
        wait->status = status;
        if (error != NULL) wait->error = *error;
    }
    pthread_cond_broadcast(&wait->told);
    pthread_mutex_unlock(&wait->mutex);
    drop_wait(wait);
}

/* Streams end when they are idle, watchers at once. */
static void tell_drained(td_sessions *all)
{
    td_session *found[SWEEP];
    for (uint64_t from = 0; from != UINT64_MAX;) {
        const int32_t n = sweep(all, &from, found, any, 0);
        for (int32_t i = 0; i < n; i++) {
            td_session_tell(found[i], TRIBO__V1__SESSION_EVENT__SESSION_EVENT_DRAINED,
                            "the server is stopping; the session is checkpointed", true);
            td_session_release(found[i]);
        }
    }
    for (;;) {
        pthread_mutex_lock(&all->mutex);
        td_drain_node *node = all->draining;
        td_call *call = node != NULL ? node->call : NULL;
        void (*drain)(td_call *) = node != NULL ? node->drain : NULL;
        if (node != NULL) {
            take_node(all, node);
            td_call_hold(call);
        }
        pthread_mutex_unlock(&all->mutex);
        if (call == NULL) break;
        drain(call);
        td_call_release(call);
    }
}

tb_status td_sessions_checkpoint_all(td_sessions *all, double seconds, tb_error *error)
{
    td_checkpoint_wait *wait = calloc(1, sizeof *wait);
    if (wait == NULL) return tb_fail_memory(error, sizeof *wait, "a checkpoint");
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&wait->mutex, NULL);
    pthread_cond_init(&wait->told, &monotonic);
    pthread_condattr_destroy(&monotonic);
    wait->references = 1;

    const int64_t end = td_monotonic_ns() + (int64_t)(seconds * 1e9);
    const struct timespec until = {.tv_sec = (time_t)(end / 1000000000),
                                   .tv_nsec = (long)(end % 1000000000)};
    checkpoint_changed(all, wait);
    int late = 0;
    pthread_mutex_lock(&wait->mutex);
    while (wait->open > 0 && late != ETIMEDOUT)
        late = pthread_cond_timedwait(&wait->told, &wait->mutex, &until);
    const int32_t open = wait->open;
    tb_status status = wait->status;
    if (status != TB_OK && error != NULL) *error = wait->error;
    pthread_mutex_unlock(&wait->mutex);
    drop_wait(wait);
    if (status == TB_OK && open > 0)
        status = tb_fail(error, TB_DEADLINE_EXCEEDED,
                         "%d sessions were not checkpointed within %.3g s", open, seconds);
    tell_drained(all);
    return status;
}

/* ---- life ---- */

tb_status td_reaper_start(td_sessions *all, tb_error *error)
{
    const int failed = pthread_create(&all->reaper, NULL, reap_for_ever, all);
    all->reaper_started = failed == 0;
    if (failed == 0) return TB_OK;
    return tb_fail(error, TB_RESOURCE_EXHAUSTED, "no thread for the sessions: %s",
                   strerror(failed));
}

void td_reaper_stop(td_sessions *all)
{
    pthread_mutex_lock(&all->reaper_mutex);
    all->ending = true;
    pthread_mutex_unlock(&all->reaper_mutex);
    pthread_cond_signal(&all->reaper_wake);
    if (all->reaper_started) pthread_join(all->reaper, NULL);
}
