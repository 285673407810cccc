/* The handler of Fork: many sessions that go on from where one is.
 *
 * A fork costs a copy of the worlds' numbers and a row in the store. Until it has a checkpoint of
 * its own, it goes back to a snapshot that all forks of one call share (td_origin); so a thousand
 * forks write one snapshot, and are durable when the call is answered all the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "handlers/handlers.h"
#include "call/offload.h"
#include "session/session_internal.h"

/* One Fork call until everything is durable. */
typedef struct forking {
    td_call *call;
    td_session **forks; /* held */
    int32_t count;
    atomic_int open; /* writes that have not been reported yet, and the handler itself */
    pthread_mutex_t mutex;
    tb_status status; /* the first failure */
    tb_error error;
} forking;

static void end_forking(forking *f)
{
    Tribo__V1__ForkResponse response = TRIBO__V1__FORK_RESPONSE__INIT;
    char **ids = calloc((size_t)f->count, sizeof(char *));
    if (ids == NULL && f->status == TB_OK)
        f->status = tb_fail_memory(&f->error, (size_t)f->count * sizeof(char *), "an answer");
    if (f->status == TB_OK) {
        for (int32_t i = 0; i < f->count; i++) ids[i] = f->forks[i]->text;
        response.session_ids = ids;
        response.n_session_ids = (size_t)f->count;
        td_call_reply(f->call, &response.base);
    } else {
        for (int32_t i = 0; i < f->count; i++)
            td_session_end(f->forks[i], TRIBO__V1__SESSION_EVENT__SESSION_EVENT_DELETED,
                           "it was never stored");
        td_call_finish(f->call, f->status, &f->error, 0);
    }
    for (int32_t i = 0; i < f->count; i++) td_session_release(f->forks[i]);
    td_call_release(f->call);
    pthread_mutex_destroy(&f->mutex);
    free(ids);
    free(f->forks);
    free(f);
}

/* A write is durable, or failed; with the last one the call is answered. */
static void on_written(void *context, tb_status status, const tb_error *error)
{
    forking *f = context;
    if (status != TB_OK) {
        pthread_mutex_lock(&f->mutex);
        if (f->status == TB_OK) {
            f->status = status;
            if (error != NULL) f->error = *error;
        }
        pthread_mutex_unlock(&f->mutex);
    }
    if (atomic_fetch_sub(&f->open, 1) == 1) end_forking(f);
}

/* ---- copies ---- */

static tb_status copy_worlds(const td_session *parent, td_session *fork, tb_error *error)
{
    const size_t n = (size_t)parent->worlds;
    tb_status status = td_session_book_memory(fork, error);
    if (status != TB_OK) return status;
    fork->states = calloc(n, sizeof(tb_state *));
    fork->certificates = malloc(n * sizeof *fork->certificates);
    if (fork->states == NULL || fork->certificates == NULL)
        return tb_fail_memory(error, n * sizeof *fork->certificates, "a fork");
    memcpy(fork->certificates, parent->certificates, n * sizeof *fork->certificates);
    for (size_t w = 0; w < n && status == TB_OK; w++)
        status = tb_state_fork(parent->states[w], &fork->states[w], error);
    atomic_store(&fork->loaded, status == TB_OK);
    return status;
}

static void copy_settings(const td_session *parent, td_session *fork, int64_t now_us)
{
    memcpy(fork->scene_id, parent->scene_id, sizeof fork->scene_id);
    memcpy(fork->owner, parent->owner, sizeof fork->owner);
    memcpy(fork->label, parent->label, sizeof fork->label);
    fork->worlds = parent->worlds;
    fork->on_disconnect = parent->on_disconnect;
    fork->keyframe = parent->keyframe;
    fork->has_parameters = parent->has_parameters;
    fork->ttl_seconds = parent->ttl_seconds;
    fork->options = parent->options;
    td_session_set_device(fork, parent->device);
    memcpy(fork->packed_options, parent->packed_options, parent->packed_options_size);
    fork->packed_options_size = parent->packed_options_size;
    fork->step_estimate_ns = parent->step_estimate_ns;
    fork->create_time_us = fork->run.start_time_us = now_us;
    fork->run.known = true;
    atomic_store(&fork->steps, atomic_load(&parent->steps));
    atomic_store(&fork->time, atomic_load(&parent->time));
    atomic_store(&fork->dirty, true);
    atomic_store(&fork->run_dirty, true); /* its row is written a little later */
    td_session_renew(fork);
}

static td_session *make_fork(td_session *parent, td_origin *origin, int64_t now_us, tb_error *error)
{
    td_session *fork = td_session_new(parent->all, error);
    if (fork == NULL) return NULL;
    copy_settings(parent, fork, now_us);
    fork->scene = td_scene_hold(parent->all->server->catalog, parent->scene);
    fork->origin = origin;
    atomic_fetch_add(&origin->references, 1);
    if (copy_worlds(parent, fork, error) == TB_OK) return fork;
    td_session_release(fork);
    return NULL;
}

/* ---- the store ---- */

/* The origin's row and snapshot. */
static tb_status put_origin(td_session *parent, const td_origin *origin, forking *f,
                            tb_error *error)
{
    db *store = parent->all->server->db;
    unsigned char *bytes = NULL;
    size_t size = 0, payload = 0;
    tb_status status = td_worlds_pack(parent, &bytes, &size, &payload, error);
    if (status != TB_OK) return status;
    const db_session row = td_origin_row(parent, origin);
    db_snapshot snapshot;
    memset(&snapshot, 0, sizeof snapshot);
    snapshot.id = td_id_random();
    snapshot.session = origin->id;
    snapshot.scene = row.scene;
    snapshot.kind = DB_SNAPSHOT_CLIENT;
    snapshot.worlds = parent->worlds;
    snapshot.steps = atomic_load(&parent->steps);
    snapshot.time = atomic_load(&parent->time);
    snapshot.size = size;
    snapshot.create_time_us = row.create_time_us;
    status = db_put_session(store, &row, NULL, NULL, error);
    if (status != TB_OK) {
        free(bytes);
        return status;
    }
    atomic_fetch_add(&f->open, 1);
    status = db_put_snapshot(store, &snapshot, bytes, on_written, f, error);
    if (status != TB_OK) atomic_fetch_sub(&f->open, 1);
    return status;
}

static void put_forks(forking *f)
{
    for (int32_t i = 0; i < f->count; i++) {
        td_session *fork = f->forks[i];
        tb_error error = {0};
        const db_session row = td_session_row(fork);
        td_sessions_insert(fork->all, fork);
        atomic_fetch_add(&f->open, 1);
        const tb_status status = db_put_session(fork->all->server->db, &row, on_written, f, &error);
        if (status != TB_OK) on_written(f, status, &error);
    }
}

/* ---- the call ---- */

static forking *begin_forking(td_call *call, int32_t count, tb_error *error)
{
    forking *f = calloc(1, sizeof *f);
    td_session **forks = calloc((size_t)count, sizeof(td_session *));
    if (f == NULL || forks == NULL) {
        free(f);
        free(forks);
        tb_fail_memory(error, (size_t)count * sizeof(td_session *), "forks");
        return NULL;
    }
    f->call = call;
    f->forks = forks;
    pthread_mutex_init(&f->mutex, NULL);
    atomic_init(&f->open, 1);
    td_call_hold(call);
    return f;
}

static tb_status make_forks(td_session *parent, forking *f, int32_t count, tb_error *error)
{
    const int64_t now = td_clock_utc_us(&parent->all->server->clock);
    const db_id id = td_id_random();
    td_origin *origin = td_origin_new(&id);
    if (origin == NULL) return tb_fail_memory(error, sizeof *origin, "a fork");
    tb_status status = TB_OK;
    while (f->count < count && status == TB_OK) {
        td_session *fork = make_fork(parent, origin, now, error);
        if (fork == NULL)
            status = TB_RESOURCE_EXHAUSTED;
        else
            f->forks[f->count++] = fork;
    }
    if (status == TB_OK) status = put_origin(parent, origin, f, error);
    td_origin_release(parent->all, origin);
    return status;
}

static void fork_session(td_session *parent, td_call *call, td_request *request)
{
    const Tribo__V1__ForkRequest *message = (const Tribo__V1__ForkRequest *)request->message;
    td_sessions *all = parent->all;
    const int32_t limit = all->server->config->sessions;
    const int32_t count = message->count == 0 ? 1 : message->count;
    tb_error error = {0};
    tb_status status = TB_OK;
    if (count < 1 || count > limit)
        status = tb_fail_field(&error, TB_INVALID_ARGUMENT, "count",
                               "count is %d, expected 1 to %d", message->count, limit);
    /* the session's owner owns the forks; the caller may be an administrator instead */
    td_caller owner = call->caller;
    if (strcmp(owner.name, parent->owner) != 0) owner.sessions = 0;
    snprintf(owner.name, sizeof owner.name, "%s", parent->owner);
    if (status == TB_OK) status = td_sessions_reserve(all, &owner, count, &error);
    if (status != TB_OK) {
        td_call_fail(call, &error);
        return;
    }
    forking *f = begin_forking(call, count, &error);
    status = f == NULL ? TB_RESOURCE_EXHAUSTED : make_forks(parent, f, count, &error);
    if (status != TB_OK) {
        td_sessions_unreserve(all, parent->owner, count);
        if (f == NULL) {
            td_call_fail(call, &error);
        } else {
            error.status = status;
            on_written(f, status, &error);
        }
        return;
    }
    put_forks(f);
    td_metrics_add(all->server->metrics, TD_METRIC_SESSIONS_CREATED, count);
    on_written(f, TB_OK, NULL); /* the handler's own part */
}

static void fork_on_worker(td_call *call, td_request *request)
{
    td_session_handle(call, request, ((const Tribo__V1__ForkRequest *)request->message)->session_id,
                      true, fork_session);
}

void td_simulation_fork(td_call *call, td_request *request)
{
    td_offload(call, request, fork_on_worker);
}
