/* Grasp jobs that outlive their client: SubmitGrasps, and their way through crashes.
 *
 * A job is a row of the store with its request, and a row for each result, written as it comes. It
 * plays like EvaluateGrasps, in slices of the scheduler, but without a call. A job without an end is
 * resumed when the daemon starts: the poses that have results are left out of the request, and the
 * others keep their indices. No grasp depends on other entries of a request, so the results are the
 * same bytes as without the interruption. A drain stops a job between two slices; the next start
 * goes on with it. Trajectories of chosen trials are stored with the result of their grasp. */
#include "handlers/grasp_jobs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "grasp/replay.h"
#include "call/memory.h"
#include "call/offload.h"
#include "db/db.h"
#include "handlers/grasp_job_rows.h"
#include "handlers/grasp_request.h"
#include "handlers/handlers.h"
#include "schedule/priority.h"
#include "schedule/scheduler.h"
#include "session/catalog.h"
#include "session/session.h"
#include "session/uploads.h"
#include "wire/grasp_message.h"

static const uint64_t USUAL_TRAJECTORY_BYTES = 64 << 20;

typedef struct runner {
    td_server *server;
    td_device *device;
    tb_grasp_job *job;
    td_job slice;
    td_caller caller;
    db_grasp_job row;
    int32_t first;         /* pose of the request's first one */
    uint64_t memory_bytes; /* booked */
    td_wire wire;
    /* the next result, which the store has not taken yet; NULL: none */
    uint8_t *packed;
    db_grasp_result result;
    uint64_t trajectory_bytes;         /* that the job may store */
    int32_t copies;                    /* of each grasp that may be filmed */
    db_grasp_trajectory *trajectories; /* copies; of this result, their bytes owned */
    bool finished;                     /* the store has taken all results */
    atomic_bool cancelled;
    td_call *call;       /* that submitted it, until the row is durable */
    struct runner *next; /* of the server's list */
} runner;

struct td_grasp_jobs {
    pthread_mutex_t mutex;
    runner *first; /* under the mutex */
};

tb_status td_grasp_jobs_create(td_server *server, td_grasp_jobs **made, tb_error *error)
{
    (void)server;
    td_grasp_jobs *jobs = calloc(1, sizeof *jobs);
    if (jobs == NULL) return tb_fail_memory(error, sizeof *jobs, "grasp jobs");
    pthread_mutex_init(&jobs->mutex, NULL);
    *made = jobs;
    return TB_OK;
}

static void free_trajectories(runner *r)
{
    for (int32_t i = 0; i < r->result.number_of_trajectories; i++) free(r->trajectories[i].bytes);
    r->result.number_of_trajectories = 0;
}

static void free_runner(runner *r)
{
    tb_grasp_job_destroy(r->job);
    td_memory_give_back(r->server, r->row.owner, r->memory_bytes);
    td_wire_destroy(&r->wire);
    free_trajectories(r);
    free(r->trajectories);
    free(r->packed);
    free(r);
}

void td_grasp_jobs_destroy(td_grasp_jobs *jobs)
{
    if (jobs == NULL) return;
    while (jobs->first != NULL) {
        runner *r = jobs->first;
        jobs->first = r->next;
        free_runner(r);
    }
    pthread_mutex_destroy(&jobs->mutex);
    free(jobs);
}

static void list(runner *r)
{
    td_grasp_jobs *jobs = r->server->grasp_jobs;
    pthread_mutex_lock(&jobs->mutex);
    r->next = jobs->first;
    jobs->first = r;
    pthread_mutex_unlock(&jobs->mutex);
}

static void drop(runner *r)
{
    td_grasp_jobs *jobs = r->server->grasp_jobs;
    pthread_mutex_lock(&jobs->mutex);
    runner **at = &jobs->first;
    while (*at != NULL && *at != r) at = &(*at)->next;
    if (*at == r) *at = r->next;
    pthread_mutex_unlock(&jobs->mutex);
    free_runner(r);
}

void td_grasp_jobs_cancel(td_server *server, const db_id *id)
{
    td_grasp_jobs *jobs = server->grasp_jobs;
    pthread_mutex_lock(&jobs->mutex);
    for (runner *r = jobs->first; r != NULL; r = r->next)
        if (memcmp(r->row.id.bytes, id->bytes, sizeof id->bytes) == 0)
            atomic_store(&r->cancelled, true);
    pthread_mutex_unlock(&jobs->mutex);
}

static void log_job(const runner *r, const char *event, const char *status)
{
    char id[33];
    td_id_print(&r->row.id, id);
    td_log_write(r->server->log, TB_LOG_INFO, event,
                 "job=%s owner=%s label=%s grasps=%d results=%d status=%s device=%s", id,
                 r->row.owner, r->row.label, (int)r->row.grasps, (int)r->row.results, status,
                 r->device != NULL ? r->device->name : "-");
}

/* ---- playing ---- */

/* Gives the store the result that waits for it; true if none waits any more. */
static bool store_packed(runner *r, tb_status *status, tb_error *error)
{
    if (r->packed == NULL) return true;
    *status = db_put_grasp_result(r->server->db, &r->result, error);
    if (*status == TB_RESOURCE_EXHAUSTED) { /* the queue is full: later */
        *status = TB_OK;
        return false;
    }
    if (*status != TB_OK) return false;
    for (int32_t i = 0; i < r->result.number_of_trajectories; i++) {
        r->row.trajectories++;
        r->row.trajectory_bytes += (int64_t)r->trajectories[i].size;
    }
    free_trajectories(r);
    free(r->packed);
    r->packed = NULL;
    r->row.results++;
    td_metrics_add(r->server->metrics, TD_METRIC_GRASPS, 1);
    return true;
}

/* Packs the trajectory of a trial, unless the job may store no more of them. */
static bool pack_trajectory(runner *r, const tb_grasp_trial *trial, const tb_grasp_film *film,
                            int64_t *stored)
{
    const int32_t pose = r->result.pose;
    const Tribo__V1__GraspTrajectory *m = td_grasp_trajectory_message(&r->wire, pose, trial, film);
    const size_t size = m != NULL ? tribo__v1__grasp_trajectory__get_packed_size(m) : 0;
    if (m != NULL && (uint64_t)*stored + size > r->trajectory_bytes) {
        r->result.trajectories_left_out++;
        return true;
    }
    unsigned char *bytes = m != NULL ? malloc(size) : NULL;
    if (bytes == NULL) return false;
    tribo__v1__grasp_trajectory__pack(m, bytes);
    r->trajectories[r->result.number_of_trajectories++] =
        (db_grasp_trajectory){.pose = pose, .copy = film->copy, .bytes = bytes, .size = size};
    *stored += (int64_t)size;
    return true;
}

static bool pack_trajectories(runner *r, const tb_grasp_result *result)
{
    int64_t stored = r->row.trajectory_bytes;
    r->result.trajectories = r->trajectories;
    for (int32_t i = 0; i < r->copies; i++) {
        tb_grasp_film film;
        if (tb_grasp_job_filmed(r->job, i, &film) &&
            !pack_trajectory(r, &result->trials[i], &film, &stored))
            return false;
    }
    return true;
}

static bool store_ready(runner *r, tb_status *status, tb_error *error)
{
    for (;;) {
        if (!store_packed(r, status, error)) return false;
        const tb_grasp_result *result = tb_grasp_job_next(r->job);
        if (result == NULL) return true;
        td_wire_reset(&r->wire);
        Tribo__V1__GraspResult *message = td_grasp_result_message(&r->wire, result);
        if (message != NULL) {
            message->index += r->first;
            r->packed = malloc(tribo__v1__grasp_result__get_packed_size(message) + 1);
        }
        if (r->packed == NULL) {
            *status = tb_fail_memory(error, 0, "a grasp's result");
            return false;
        }
        r->result = (db_grasp_result){.job = r->row.id,
                                      .pose = message->index,
                                      .held = result->trials[0].verdict == TB_GRASP_HELD,
                                      .uncertified = result->uncertified,
                                      .bytes = r->packed};
        r->result.size = tribo__v1__grasp_result__pack(message, r->packed);
        if (!pack_trajectories(r, result)) {
            *status = tb_fail_memory(error, 0, "a grasp's trajectory");
            return false;
        }
    }
}

static bool yields(const void *context)
{
    const runner *r = context;
    return td_job_yields(&r->slice) || atomic_load(&r->cancelled);
}

/* On the device's owner thread. */
static bool play(td_job *job, int64_t budget_ns, tb_status *status, tb_error *error)
{
    runner *r = job->context;
    bool played = false;
    if (atomic_load(&r->cancelled)) {
        *status = tb_fail(error, TB_CANCELLED, "cancelled");
        return true;
    }
    if (atomic_load(&r->server->draining)) return true;
    const tb_grasp_progress before = tb_grasp_job_progress(r->job);
    *status = tb_grasp_job_advance(r->job, budget_ns, &played, error);
    const tb_grasp_progress now = tb_grasp_job_progress(r->job);
    td_metrics_add(r->server->metrics, TD_METRIC_WORLD_STEPS,
                   now.world_steps_done - before.world_steps_done);
    if (*status != TB_OK) return true;
    const bool stored = store_ready(r, status, error);
    r->finished = played && stored && *status == TB_OK;
    return r->finished || *status != TB_OK;
}

static void on_played(td_job *job)
{
    runner *r = job->context;
    const tb_status status = job->status;
    tb_error failure = {0};
    if (!r->finished && status == TB_OK) { /* a drain: the next process goes on */
        log_job(r, "grasp_job.paused", "running");
        drop(r);
        return;
    }
    r->row.status = r->finished              ? DB_GRASP_JOB_DONE
                    : status == TB_CANCELLED ? DB_GRASP_JOB_CANCELLED
                                             : DB_GRASP_JOB_FAILED;
    r->row.end_time_us = td_clock_utc_us(&r->server->clock);
    if (!r->finished && status != TB_OK)
        snprintf(r->row.message, sizeof r->row.message, "%.255s", job->error.message);
    /* a job that is cancelled by an end of the process goes on after it */
    if (!atomic_load(&r->server->draining) || r->finished)
        db_end_grasp_job(r->server->db, &r->row, &failure);
    log_job(r, "grasp_job.ended", tb_status_name(r->finished ? TB_OK : status));
    drop(r);
}

static void start(runner *r)
{
    tb_grasp_job_set_yields(r->job, yields, r);
    r->slice = (td_job){.priority = TD_PRIORITY_LOW,
                        .client = &r->caller,
                        .patient = true,
                        .slice = play,
                        .done = on_played,
                        .context = r};
    tb_status status = TB_RESOURCE_EXHAUSTED;
    while (status == TB_RESOURCE_EXHAUSTED && !atomic_load(&r->server->draining)) {
        const struct timespec pause = {.tv_nsec = 5000000};
        status = td_scheduler_submit(r->device->scheduler, &r->slice);
        if (status == TB_RESOURCE_EXHAUSTED) nanosleep(&pause, NULL);
    }
    if (status == TB_OK) return;
    log_job(r, "grasp_job.paused", tb_status_name(status));
    drop(r);
}

/* ---- making ---- */

/* Marks the poses that the request names; those before `first` have results already. */
static tb_status read_chosen(const Tribo__V1__GraspTrajectoryOptions *m, int32_t first,
                             int32_t poses, bool *chosen, tb_error *error)
{
    char field[64];
    for (size_t i = 0; i < m->n_grasps; i++) {
        const int32_t grasp = m->grasps[i];
        snprintf(field, sizeof field, "trajectories.grasps[%zu]", i);
        if (grasp < 0 || grasp >= first + poses)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s is %d, expected 0 to %d",
                                 field, (int)grasp, (int)(first + poses) - 1);
        if (grasp >= first) chosen[grasp - first] = true;
    }
    return TB_OK;
}

static tb_status read_verdicts(const Tribo__V1__GraspTrajectoryOptions *m, uint32_t *verdicts,
                               tb_error *error)
{
    char field[64];
    for (size_t i = 0; i < m->n_verdicts; i++) {
        const int verdict = (int)m->verdicts[i];
        snprintf(field, sizeof field, "trajectories.verdicts[%zu]", i);
        if (verdict < TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_HELD ||
            verdict > TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_UNCERTIFIED)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s is %d, no verdict", field,
                                 verdict);
        *verdicts |= 1u << (verdict - TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_HELD);
    }
    return TB_OK;
}

/* Puts the scene that draws the trajectories into the store, once a job. */
static tb_status keep_scene(runner *r, tb_error *error)
{
    size_t size = 0;
    tb_model *copy = NULL;
    const td_scene *scene = NULL;
    const unsigned char *bytes = tb_model_bytes(tb_grasp_job_model(r->job), &size);
    tb_status status = tb_model_from_bytes(bytes, size, &copy, error);
    if (status == TB_OK) status = td_catalog_add_scene(r->server->catalog, copy, &scene, error);
    if (status != TB_OK) return status;
    td_sha256_parse(scene->id, &r->row.scene);
    td_scene_release(r->server->catalog, scene);
    return TB_OK;
}

/* Has the job film the chosen trials; `first`: the request's first pose in the whole job. */
static tb_status film(runner *r, const Tribo__V1__EvaluateGraspsRequest *m, int32_t first,
                      tb_error *error)
{
    const Tribo__V1__GraspTrajectoryOptions *from = m->trajectories;
    tb_grasp_film_options options = {0};
    if (from == NULL) return TB_OK;
    options.copies = from->copies;
    options.interval = from->interval;
    bool *chosen = calloc(m->n_poses + 1, sizeof *chosen);
    if (chosen == NULL) return tb_fail_memory(error, m->n_poses, "a grasp job");
    options.poses = chosen;
    tb_status status = read_chosen(from, first, (int32_t)m->n_poses, chosen, error);
    if (status == TB_OK) status = read_verdicts(from, &options.verdicts, error);
    if (status == TB_OK) {
        status = tb_grasp_job_film(r->job, &options, error);
        if (status == TB_INVALID_ARGUMENT) {
            char field[TB_ERROR_NAME_SIZE];
            snprintf(field, sizeof field, "trajectories.%.100s", error->field);
            snprintf(error->field, sizeof error->field, "%s", field);
        }
    }
    free(chosen);
    if (status != TB_OK) return status;
    r->copies = from->copies > 0 ? from->copies : 1;
    r->trajectory_bytes = from->maximum_bytes > 0 ? from->maximum_bytes : USUAL_TRAJECTORY_BYTES;
    r->trajectories = calloc((size_t)r->copies, sizeof *r->trajectories);
    if (r->trajectories == NULL) return tb_fail_memory(error, 0, "a grasp job");
    const uint64_t memory = tb_grasp_job_film_bytes(r->job);
    status = td_memory_take(r->server, r->row.owner, memory, "the job's trajectories", error);
    if (status != TB_OK) return status;
    r->memory_bytes += memory;
    return first == 0 ? keep_scene(r, error) : TB_OK;
}

static tb_status make(td_server *server, const char *owner,
                      const Tribo__V1__EvaluateGraspsRequest *m, int32_t first, runner **made,
                      tb_error *error)
{
    uint64_t pace = 0;
    runner *r = calloc(1, sizeof *r);
    *made = NULL;
    if (r == NULL) return tb_fail_memory(error, sizeof *r, "a grasp job");
    r->server = server;
    snprintf(r->row.owner, sizeof r->row.owner, "%s", owner);
    snprintf(r->row.label, sizeof r->row.label, "%s", m->label);
    snprintf(r->caller.name, sizeof r->caller.name, "%s", owner);
    tb_status status = td_grasp_check_copies(server->config, m, error);
    const uint64_t memory = td_grasp_memory(m);
    if (status == TB_OK) status = td_memory_take(server, owner, memory, "the job", error);
    if (status == TB_OK) r->memory_bytes = memory;
    if (status == TB_OK) status = td_grasp_job_make(server, m, &r->job, &r->device, &pace, error);
    if (status == TB_OK) status = film(r, m, first, error);
    if (status == TB_OK)
        *made = r;
    else
        free_runner(r);
    return status;
}

/* ---- SubmitGrasps ---- */

/* On the store's writer thread: the row is durable, and the job begins on a worker. */
static void begin(void *context)
{
    start(context);
}

static void on_durable(void *context, tb_status status, const tb_error *error)
{
    runner *r = context;
    td_call *call = r->call;
    tb_error failure = {0};
    r->call = NULL;
    if (error != NULL) failure = *error;
    if (status == TB_OK) {
        Tribo__V1__SubmitGraspsResponse response = TRIBO__V1__SUBMIT_GRASPS_RESPONSE__INIT;
        td_grasp_job_row row = {.row = r->row};
        td_grasp_job_describe(&row);
        response.job = &row.message;
        log_job(r, "grasp_job.submitted", "running");
        list(r);
        td_call_reply(call, &response.base);
        if (td_workers_post(r->server->workers, begin, r, &failure) != TB_OK) start(r);
    } else {
        failure.status = status;
        td_call_fail(call, &failure);
        free_runner(r);
    }
    td_call_release(call);
}

/* On the pool for uploads: files are parsed. */
static void submit(td_call *call, td_request *request)
{
    const Tribo__V1__EvaluateGraspsRequest *m =
        ((const Tribo__V1__SubmitGraspsRequest *)request->message)->grasps;
    tb_error error = {0};
    runner *r = NULL;
    uint8_t *packed = NULL;
    tb_status status = TB_OK;
    if (m == NULL)
        status = tb_fail_field(&error, TB_INVALID_ARGUMENT, "grasps", "the request has no grasps");
    if (status == TB_OK) {
        tb_budget budget = td_upload_budget(call);
        tb_budget_bind(&budget);
        status = make(call->server, call->caller.name, m, 0, &r, &error);
        tb_budget_release();
        status = td_upload_failure(call, &budget, status, &error);
    }
    const size_t size =
        status == TB_OK ? tribo__v1__evaluate_grasps_request__get_packed_size(m) : 0;
    if (status == TB_OK && (packed = malloc(size + 1)) == NULL)
        status = tb_fail_memory(&error, size, "a grasp job");
    if (status == TB_OK) {
        tribo__v1__evaluate_grasps_request__pack(m, packed);
        r->row.id = td_id_random();
        r->row.status = DB_GRASP_JOB_RUNNING;
        r->row.grasps = (int32_t)m->n_poses;
        r->row.create_time_us = td_clock_utc_us(&call->server->clock);
        r->call = call;
        td_call_hold(call);
        status = db_put_grasp_job(call->server->db, &r->row, packed, size, on_durable, r, &error);
        if (status != TB_OK) td_call_release(call);
    }
    free(packed);
    td_request_free(request);
    if (status == TB_OK) return;
    if (r != NULL) free_runner(r);
    td_call_fail(call, &error);
}

void td_grasp_submit_grasps(td_call *call, td_request *request)
{
    tb_error error = {0};
    if (!atomic_load(&call->server->draining)) {
        td_upload(call, request, submit);
        return;
    }
    td_request_free(request);
    tb_fail(&error, TB_UNAVAILABLE, "the server is stopping");
    td_call_fail(call, &error);
}

/* ---- after a restart ---- */

typedef struct resumption {
    td_server *server;
    db_grasp_job row;
} resumption;

/* Makes the rest of a job: without the poses that have results. */
static tb_status remake(const resumption *from, runner **made, tb_error *error)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    tb_status status = db_get_grasp_request(from->server->db, &from->row.id, &bytes, &size, error);
    if (status != TB_OK) return status;
    Tribo__V1__EvaluateGraspsRequest *m =
        tribo__v1__evaluate_grasps_request__unpack(NULL, size, bytes);
    free(bytes);
    if (m == NULL) return tb_fail(error, TB_DATA_LOSS, "the job's request is damaged");
    const size_t poses = m->n_poses, done = (size_t)from->row.results;
    if (done >= poses) {
        tribo__v1__evaluate_grasps_request__free_unpacked(m, NULL);
        return TB_OK; /* all results are there, the end alone is missing */
    }
    Tribo__V1__GraspPose **all = m->poses;
    m->poses = all + done;
    m->n_poses = poses - done;
    status = make(from->server, from->row.owner, m, from->row.results, made, error);
    m->poses = all;
    m->n_poses = poses;
    tribo__v1__evaluate_grasps_request__free_unpacked(m, NULL);
    if (status == TB_OK) {
        (*made)->row = from->row;
        (*made)->first = from->row.results;
    }
    return status;
}

static void resume(void *context)
{
    resumption *from = context;
    td_server *server = from->server;
    runner *r = NULL;
    tb_error error = {0};
    const tb_status status = remake(from, &r, &error);
    if (status == TB_OK && r != NULL) {
        log_job(r, "grasp_job.resumed", "running");
        list(r);
        start(r);
    } else {
        char id[33];
        td_id_print(&from->row.id, id);
        td_log_write(server->log, status == TB_OK ? TB_LOG_INFO : TB_LOG_ERROR, "grasp_job.ended",
                     "job=%s status=%s message=%s", id, tb_status_name(status), error.message);
        from->row.status = status == TB_OK ? DB_GRASP_JOB_DONE : DB_GRASP_JOB_FAILED;
        from->row.end_time_us = td_clock_utc_us(&server->clock);
        snprintf(from->row.message, sizeof from->row.message, "%.255s", error.message);
        db_end_grasp_job(server->db, &from->row, &error);
    }
    free(from);
}

void td_grasp_jobs_resume(td_server *server)
{
    int64_t number = 0;
    bool found = true;
    tb_error error = {0};
    while (found) {
        db_grasp_job row;
        const tb_status status =
            db_list_open_grasp_jobs(server->db, number, &row, &number, &found, &error);
        if (status != TB_OK || !found) break;
        resumption *from = malloc(sizeof *from);
        if (from == NULL) break;
        *from = (resumption){.server = server, .row = row};
        if (td_workers_post(server->workers, resume, from, &error) != TB_OK) resume(from);
    }
    if (error.status != TB_OK)
        td_log_write(server->log, TB_LOG_ERROR, "grasp_job.resume", "message=%s", error.message);
}
