/* Turns: one job at a time on each session, in the order of arrival.
 *
 * A job may end its turn before its `run` returns, or later on another thread (a step, which the
 * device ends). The later of the two, the end of `run` or td_session_leave, starts the next job;
 * so the stack does not grow with the queue. Long jobs run on a worker, not on the device's or the
 * store's thread, where turns are returned. */
#include <stdlib.h>

#include "base/error.h"
#include "call/memory.h"
#include "call/pool.h"
#include "session/session_internal.h"

enum { TURN_AWAY, TURN_RUNNING, TURN_LEFT };

/* ---- running ---- */

/* The next job; NULL if there is none, and then the turn is free. An ended session keeps its turn
 * for good, and *close is true if this caller must close it. */
static td_job *next_job(td_session *s, bool *close)
{
    pthread_mutex_lock(&s->mutex);
    td_job *job = s->first;
    *close = false;
    if (job != NULL) {
        s->first = job->next;
        if (s->first == NULL) s->last = NULL;
        s->waiting--;
    } else {
        *close = s->ended;
        s->busy = s->ended;
    }
    pthread_mutex_unlock(&s->mutex);
    return job;
}

static void load_and_run(void *context);

/* Passes the job to a worker; false if the workers' queue is full. */
static bool hand_over(td_session *s, td_job *job)
{
    tb_error ignored;
    s->loading = job;
    td_session_hold(s);
    if (td_workers_post(s->all->server->workers, load_and_run, s, &ignored) == TB_OK) return true;
    td_session_release(s);
    return false;
}

/* Runs jobs until one keeps the turn beyond its `run`, or none is left. The first may have been
 * loaded for already. */
static void run_jobs(td_session *s, td_job *job, bool on_worker)
{
    td_session_hold(s);
    while (job != NULL) {
        tb_error error;
        if (job->needs_worlds && td_device_is_gone(s->all->server, s->device)) td_session_move(s);
        if (job->needs_worlds && s->states == NULL) {
            if (!on_worker && hand_over(s, job)) break;
            const tb_status status =
                on_worker ? td_session_load(s, &error)
                          : tb_fail(&error, TB_RESOURCE_EXHAUSTED,
                                    "the session's worlds cannot be loaded now: workers are busy");
            if (status != TB_OK) {
                job->refuse(job, &error);
                bool close = false;
                job = next_job(s, &close);
                if (close) td_session_close(s);
                continue;
            }
        }
        atomic_store(&s->turn_state, TURN_RUNNING);
        job->run(job);
        int state = TURN_RUNNING;
        if (atomic_compare_exchange_strong(&s->turn_state, &state, TURN_AWAY)) break;
        bool close = false;
        job = next_job(s, &close);
        if (close) td_session_close(s);
        if (job != NULL && !job->light && !on_worker && hand_over(s, job)) break;
    }
    td_session_release(s);
}

static void run_loaded(void *context)
{
    td_session *s = context;
    run_jobs(s, s->loading, true);
    td_session_release(s);
}

static void note_failure(td_session *s, const tb_error *error)
{
    s->failure = malloc(sizeof *s->failure);
    if (s->failure != NULL) *s->failure = *error;
}

/* On the pool for uploads, then back to a worker. */
static void load_scene_aside(void *context)
{
    td_session *s = context;
    tb_error error = {0};
    if (td_session_load_scene(s, &error) != TB_OK) note_failure(s, &error);
    if (td_workers_post(s->all->server->workers, run_loaded, s, &error) != TB_OK) run_loaded(s);
}

/* On a worker. A scene that must be compiled from the store is compiled on the pool for uploads. */
static void load_and_run(void *context)
{
    td_session *s = context;
    td_server *server = s->all->server;
    if (s->loading->needs_worlds && s->states == NULL && s->scene == NULL) {
        tb_error error = {0};
        s->scene = td_catalog_warm_scene(server->catalog, s->scene_id);
        if (s->scene == NULL) {
            if (td_pool_post(server->uploads, s->owner, load_scene_aside, s, &error) == TB_OK)
                return;
            note_failure(s, &error);
        }
    }
    run_loaded(s);
}

void td_session_leave(td_session *s)
{
    int state = TURN_RUNNING;
    if (atomic_compare_exchange_strong(&s->turn_state, &state, TURN_LEFT)) return;

    /* `run` has returned: this thread is another one, such as the device's, and has other work */
    td_session_hold(s);
    bool close = false;
    td_job *job = next_job(s, &close);
    if (close) td_session_close(s);
    if (job != NULL && (job->light || !hand_over(s, job))) run_jobs(s, job, false);
    td_session_release(s);
}

tb_status td_session_enter(td_job *job, tb_error *error)
{
    td_session *s = job->session;
    tb_status status = TB_OK;
    job->next = NULL;
    pthread_mutex_lock(&s->mutex);
    const bool mine = !s->busy && !s->ended;
    if (!mine) job->at_once = false;
    if (s->ended) {
        status = tb_fail_field(error, TB_NOT_FOUND, "session_id", "the session %s has ended: %s",
                               s->text, s->end_reason);
    } else if (mine) {
        s->busy = true;
    } else if (s->waiting >= TD_SESSION_WAITING) {
        status = tb_fail(error, TB_RESOURCE_EXHAUSTED,
                         "%d requests wait for the session %s already", s->waiting, s->text);
    } else {
        *(s->last != NULL ? &s->last->next : &s->first) = job;
        s->last = job;
        s->waiting++;
    }
    pthread_mutex_unlock(&s->mutex);
    if (mine) run_jobs(s, job, false);
    return status;
}

void td_session_job_release(td_job *job)
{
    td_request_free(job->request);
    if (job->call != NULL) td_call_release(job->call);
    td_session_release(job->session);
}

/* ---- worlds ---- */

void td_session_destroy_worlds(td_session *s, tb_state **states)
{
    if (states == NULL) return;
    for (int32_t w = 0; w < s->worlds; w++) tb_state_destroy(states[w]);
    free(states);
}

void td_session_publish_memory(td_session *s)
{
    if (s->device != NULL) {
        atomic_fetch_add(&s->device->world_bytes,
                         (long long)s->memory_bytes - (long long)s->device_bytes);
        s->device_bytes = s->memory_bytes;
    }
    atomic_store(&s->listed_bytes, (long long)(s->memory_bytes + s->recording_bytes));
    atomic_store(&s->recorded, s->recording != NULL);
}

void td_session_give_memory_back(td_session *s)
{
    if (s->memory_bytes > 0) td_memory_give_back(s->all->server, s->owner, s->memory_bytes);
    s->memory_bytes = 0;
    td_session_publish_memory(s);
}

tb_status td_session_book_memory(td_session *s, tb_error *error)
{
    if (s->memory_bytes > 0) return TB_OK;
    uint64_t bytes = td_memory_of_worlds(s->scene->model, s->worlds);
    if (s->has_parameters) bytes += td_memory_of_parameters(s->scene->model, s->worlds);
    const tb_status status = td_memory_take(s->all->server, s->owner, bytes, "the session", error);
    if (status == TB_OK) s->memory_bytes = bytes;
    td_session_publish_memory(s);
    return status;
}

tb_status td_session_book_parameters(td_session *s, tb_error *error)
{
    if (s->has_parameters) return TB_OK;
    const uint64_t bytes = td_memory_of_parameters(s->scene->model, s->worlds);
    const tb_status status =
        td_memory_take(s->all->server, s->owner, bytes, "the worlds' parameters", error);
    if (status != TB_OK) return status;
    s->memory_bytes += bytes;
    s->has_parameters = true;
    td_session_publish_memory(s);
    return TB_OK;
}

tb_status td_session_make_worlds(td_session *s, tb_state ***made, tb_error *error)
{
    *made = NULL;
    tb_status status = td_session_book_memory(s, error);
    if (status != TB_OK) return status;
    tb_state **states = calloc((size_t)s->worlds, sizeof(tb_state *));
    if (states == NULL) return tb_fail_memory(error, (size_t)s->worlds * sizeof *states, "worlds");
    for (int32_t w = 0; w < s->worlds && status == TB_OK; w++) {
        status = tb_state_create(s->scene->model, &states[w], error);
        if (status == TB_OK && s->keyframe >= 0)
            status = tb_state_reset(states[w], s->keyframe, error);
    }
    if (status == TB_OK)
        *made = states;
    else
        td_session_destroy_worlds(s, states);
    return status;
}

void td_session_changed(td_session *s)
{
    s->changes++;
    atomic_store(&s->steps, tb_state_steps(s->states[0]));
    atomic_store(&s->time, tb_state_time(s->states[0]));
    atomic_store(&s->dirty, true);
    td_session_record(s);
    td_session_publish(s);
}

/* ---- requests within one turn ---- */

typedef struct turn_request {
    td_job job;
    td_session_handler *handle;
} turn_request;

static void free_request(td_job *job)
{
    td_session_job_release(job);
    free(job);
}

static void run_request(td_job *job)
{
    td_session *s = job->session;
    ((turn_request *)job)->handle(s, job->call, job->request);
    td_session_renew(s);
    td_session_leave(s);
    free_request(job);
}

static void refuse_request(td_job *job, const tb_error *error)
{
    td_call_fail(job->call, error);
    free_request(job);
}

void td_session_handle(td_call *call, td_request *request, const char *session_id,
                       bool needs_worlds, td_session_handler *handle)
{
    tb_error error = {0};
    td_session *session = NULL;
    turn_request *r = NULL;
    tb_status status =
        td_sessions_find(call->server->sessions, &call->caller, session_id, &session, &error);
    if (status == TB_OK) {
        r = calloc(1, sizeof *r);
        if (r == NULL) status = tb_fail_memory(&error, sizeof *r, "a request");
    }
    if (status != TB_OK) {
        td_session_release(session);
        td_request_free(request);
        td_call_fail(call, &error);
        return;
    }
    r->job.call = call;
    r->job.request = request;
    r->job.session = session;
    r->job.run = run_request;
    r->job.refuse = refuse_request;
    r->job.needs_worlds = needs_worlds;
    r->handle = handle;
    td_call_hold(call);
    status = td_session_enter(&r->job, &error);
    if (status == TB_OK) return;
    td_call_finish(call, status, &error, 0.01);
    free_request(&r->job);
}
