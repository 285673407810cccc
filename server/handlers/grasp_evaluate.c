/* The handler of EvaluateGrasps.
 *
 * A worker loads and compiles the models. The evaluation then runs as a slice job of the scheduler,
 * a few milliseconds at a time between the steps of other requests. Results are sent in the order
 * of the poses as they are ready. If the client falls behind by WINDOW messages, the evaluation
 * pauses: it leaves the scheduler, keeps its state, and returns when the transport has sent all
 * messages. The summary is sent once the run's row is durable. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "wire/grasp_message.h"
#include "handlers/grasp_request.h"
#include "session/catalog.h"
#include "call/memory.h"
#include "session/uploads.h"
#include "handlers/handlers.h"
#include "session/job_run.h"
#include "call/offload.h"
#include "schedule/priority.h"
#include "schedule/scheduler.h"
#include "session/session.h"

#include "tribo/v1/runs.pb-c.h"

enum { WINDOW = 64, TRIAL_BYTES = 768 };
/* A grasp and its result in the job and in messages: a trial's poses, controls and certificate. */
enum { TRIAL_MEMORY_BYTES = 1536 };
static const int64_t PROGRESS_NS = 200000000; /* between two messages of progress */
static const int64_t RETRY_NS = 5000000;      /* while the queue is full */

typedef enum evaluation_state { PAUSED, WORKING, ENDED } evaluation_state;

typedef struct evaluation {
    td_call *call;
    td_server *server;
    td_device *device; /* that plays it */
    uint64_t pace;
    tb_grasp_job *job;
    uint64_t memory_bytes; /* booked */
    td_job slice;
    pthread_mutex_t lock;
    evaluation_state state; /* under the lock */
    bool finished;          /* all results have been sent */
    td_wire wire;
    int64_t compute_ns, progress_ns, steps_counted;
    int32_t grasps, trials, held;
    int32_t counted; /* trials merged in the certificate */
    tb_certificate certificate;
    db_run run;
    tb_status status; /* how it ended */
    tb_error error;
} evaluation;

static void destroy_evaluation(void *state)
{
    evaluation *e = state;
    tb_grasp_job_destroy(e->job);
    td_memory_give_back(e->server, e->run.owner, e->memory_bytes);
    td_wire_destroy(&e->wire);
    free((void *)(uintptr_t)e->run.options_json);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

/* ---- the end ---- */

static void send_summary(evaluation *e)
{
    char id[33];
    const int32_t n = tb_grasp_job_number_of_warnings(e->job);
    Tribo__V1__EvaluateGraspsResponse response = TRIBO__V1__EVALUATE_GRASPS_RESPONSE__INIT;
    Tribo__V1__GraspSummary summary = TRIBO__V1__GRASP_SUMMARY__INIT;
    Tribo__V1__Certificate certificate = TRIBO__V1__CERTIFICATE__INIT;
    td_wire_reset(&e->wire);
    char **warnings = td_wire_take(&e->wire, (size_t)n * sizeof *warnings);
    for (int32_t i = 0; i < n && warnings != NULL; i++)
        warnings[i] = (char *)(uintptr_t)tb_grasp_job_warning(e->job, i);
    td_id_print(&e->run.id, id);
    td_wire_certificate(&e->certificate, &certificate);
    summary.run_id = id;
    summary.grasps = e->grasps;
    summary.trials = e->trials;
    summary.world_steps = e->run.steps;
    summary.compute_time_us = e->run.compute_time_us;
    summary.certificate = &certificate;
    summary.object_sha256 = (char *)(uintptr_t)tb_model_sha256(tb_grasp_job_model(e->job));
    summary.n_warnings = warnings != NULL ? (size_t)n : 0;
    summary.warnings = warnings;
    summary.device = e->device->name;
    const tb_grasp_progress progress = tb_grasp_job_progress(e->job);
    summary.trials_held = (int32_t)progress.trials_held;
    summary.trials_uncertified = (int32_t)progress.trials_uncertified;
    summary.hand = td_grasp_hand_message(&e->wire, tb_grasp_job_hand(e->job));
    response.event_case = TRIBO__V1__EVALUATE_GRASPS_RESPONSE__EVENT_SUMMARY;
    response.summary = &summary;
    td_call_send(e->call, &response.base);
}

/* On the store's writer thread, or at once if the store took nothing. */
static void on_stored(void *context, tb_status status, const tb_error *error)
{
    evaluation *e = context;
    td_call *call = e->call;
    if (e->status == TB_OK && status != TB_OK) {
        e->status = status;
        if (error != NULL) e->error = *error;
    }
    if (e->status == TB_OK) send_summary(e);
    td_call_finish(call, e->status, e->status == TB_OK ? NULL : &e->error, 0);
    td_call_release(call); /* and with it the evaluation, which is its state */
}

/* Records the average time of a step of all trials, though some trials end before others or before
 * their time. */
static void note_pace(const evaluation *e, const tb_grasp_progress *progress)
{
    const int64_t trials = progress->trials, threads = td_scheduler_threads(e->device->scheduler);
    if (progress->world_steps_done == 0) return;
    double step_ns = (double)e->compute_ns * (double)trials / (double)progress->world_steps_done;
    if (e->device->backend == TB_BACKEND_CPU)
        step_ns *= (double)(threads < trials ? threads : trials);
    td_device_note(e->server, e->device, e->pace, trials, step_ns);
}

/* Writes the run's last row and answers. The state is ENDED. */
static void end(evaluation *e, tb_status status, const tb_error *error)
{
    const tb_grasp_progress progress = tb_grasp_job_progress(e->job);
    tb_error failure = {0};
    e->status = status;
    if (error != NULL) e->error = *error;
    note_pace(e, &progress);
    td_job_run_end(e->server, status, &e->error, e->compute_ns, &e->run);
    e->run.worlds = progress.trials_done;
    e->run.steps = progress.world_steps_done;
    e->run.grasps = e->grasps;
    e->run.grasps_held = e->held;
    td_job_run_certificate(&e->certificate, &e->run.certificate);
    const tb_status stored = db_put_run(e->server->db, &e->run, on_stored, e, &failure);
    if (stored != TB_OK) on_stored(e, stored, &failure);
}

/* Takes the evaluation from one state to another; false if it is in a third. */
static bool turn(evaluation *e, evaluation_state from, evaluation_state to)
{
    pthread_mutex_lock(&e->lock);
    const bool turned = e->state == from;
    if (turned) e->state = to;
    pthread_mutex_unlock(&e->lock);
    return turned;
}

static void end_unwanted(evaluation *e)
{
    tb_error error = {0};
    const bool late = td_monotonic_ns() >= e->call->deadline_ns;
    tb_fail(&error, late ? TB_DEADLINE_EXCEEDED : TB_CANCELLED, "%s after %d grasps",
            late ? "the deadline passed" : "the client cancelled the call", (int)e->grasps);
    end(e, error.status, &error);
}

/* ---- playing ---- */

/* Merges the certificates of the trials that have a verdict by their steps. */
static void merge_certificates(evaluation *e, const tb_grasp_result *result)
{
    for (int32_t i = 0; i < result->number_of_trials; i++) {
        const tb_grasp_trial *t = &result->trials[i];
        if (t->verdict == TB_GRASP_COLLIDED || t->verdict == TB_GRASP_UNCERTIFIED) continue;
        if (e->counted++ == 0)
            e->certificate = t->certificate;
        else
            tb_certificate_merge(&e->certificate, &t->certificate);
    }
}

static void send_result(evaluation *e, const tb_grasp_result *result)
{
    Tribo__V1__EvaluateGraspsResponse response = TRIBO__V1__EVALUATE_GRASPS_RESPONSE__INIT;
    merge_certificates(e, result);
    e->grasps++;
    e->trials += result->number_of_trials;
    e->held += result->trials[0].verdict == TB_GRASP_HELD;
    td_metrics_add(e->server->metrics, TD_METRIC_GRASPS, 1);
    td_wire_reset(&e->wire);
    response.event_case = TRIBO__V1__EVALUATE_GRASPS_RESPONSE__EVENT_RESULT;
    response.result = td_grasp_result_message(&e->wire, result);
    if (response.result != NULL) td_call_send(e->call, &response.base);
}

static void send_progress(evaluation *e, const tb_grasp_progress *progress)
{
    Tribo__V1__EvaluateGraspsResponse response = TRIBO__V1__EVALUATE_GRASPS_RESPONSE__INIT;
    Tribo__V1__GraspProgress message;
    const int64_t now = td_monotonic_ns();
    if (now < e->progress_ns || td_call_queued(e->call) > 0) return;
    e->progress_ns = now + PROGRESS_NS;
    td_grasp_progress_message(progress, &message);
    response.event_case = TRIBO__V1__EVALUATE_GRASPS_RESPONSE__EVENT_PROGRESS;
    response.progress = &message;
    td_call_send(e->call, &response.base);
}

/* Sends finished results while the reader keeps up; true if none is left. */
static bool send_ready(evaluation *e, tb_status *status, tb_error *error)
{
    while (td_call_queued(e->call) < WINDOW) {
        const tb_grasp_result *result = tb_grasp_job_next(e->job);
        if (result == NULL) return true;
        send_result(e, result);
        if (e->wire.failed) {
            *status = tb_fail_memory(error, 0, "a grasp's result");
            return true;
        }
    }
    return false;
}

static bool yields(const void *job)
{
    return td_job_yields(job);
}

/* On the device's owner thread. */
static bool play(td_job *job, int64_t budget_ns, tb_status *status, tb_error *error)
{
    evaluation *e = job->context;
    bool played = false;
    tb_grasp_job_set_yields(e->job, yields, job);
    if (!send_ready(e, status, error)) return true; /* pauses */
    if (*status != TB_OK) return true;
    if (e->progress_ns == 0) { /* a reader learns how much there is before the first slice ends */
        const tb_grasp_progress start = tb_grasp_job_progress(e->job);
        send_progress(e, &start);
    }
    *status = tb_grasp_job_advance(e->job, budget_ns, &played, error);
    const tb_grasp_progress progress = tb_grasp_job_progress(e->job);
    td_metrics_add(e->server->metrics, TD_METRIC_WORLD_STEPS,
                   progress.world_steps_done - e->steps_counted);
    e->steps_counted = progress.world_steps_done;
    if (*status != TB_OK) return true;
    const bool sent = send_ready(e, status, error);
    e->finished = played && sent;
    if (!e->finished) send_progress(e, &progress);
    return e->finished || !sent;
}

static void resume(evaluation *e);

static void on_played(td_job *job)
{
    evaluation *e = job->context;
    e->compute_ns += job->compute_ns;
    if (job->status != TB_OK || e->finished) {
        turn(e, WORKING, ENDED);
        end(e, job->status, job->status == TB_OK ? NULL : &job->error);
        return;
    }
    turn(e, WORKING, PAUSED);
    /* the wire may have taken everything, or the client gone, before this was a pause */
    if (atomic_load(&e->call->gone)) {
        if (turn(e, PAUSED, ENDED)) end_unwanted(e);
    } else if (td_call_queued(e->call) == 0) {
        resume(e);
    }
}

static void resume_later(void *context)
{
    evaluation *e = context;
    td_call *call = e->call;
    const struct timespec pause = {.tv_nsec = RETRY_NS};
    nanosleep(&pause, NULL);
    resume(e);
    td_call_release(call);
}

/* Puts a paused evaluation to work. While the queue is full it waits outside: it was accepted once
 * and is not refused later. */
static void resume(evaluation *e)
{
    tb_error error = {0};
    if (!turn(e, PAUSED, WORKING)) return;
    e->slice.compute_ns = e->slice.started_ns = e->slice.finished_ns = 0;
    tb_status status = td_scheduler_submit(e->device->scheduler, &e->slice);
    if (status == TB_OK) return;
    error = e->slice.error;
    if (status == TB_RESOURCE_EXHAUSTED) {
        turn(e, WORKING, PAUSED);
        td_call_hold(e->call);
        if (!atomic_load(&e->call->gone) &&
            td_workers_post(e->server->workers, resume_later, e, &error) == TB_OK)
            return;
        td_call *call = e->call;
        if (turn(e, PAUSED, ENDED)) end(e, status, &error);
        td_call_release(call);
        return;
    }
    turn(e, WORKING, ENDED);
    end(e, status, &error);
}

/* ---- the beginning ---- */

tb_status td_grasp_check_copies(const td_config *config, const Tribo__V1__EvaluateGraspsRequest *m,
                                tb_error *error)
{
    const int64_t most = (int64_t)(config->chunk_bytes / TRIAL_BYTES);
    if (m->perturbation == NULL || m->perturbation->count <= most) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "perturbation.count",
                         "%d copies of each grasp, at most %lld are taken",
                         (int)m->perturbation->count, (long long)most);
}

/* The run's record of the request: all but the files and the poses. */
static char *options_json(const Tribo__V1__EvaluateGraspsRequest *m)
{
    Tribo__V1__EvaluateGraspsRequest kept = *m;
    Tribo__V1__GraspObject object = *m->object;
    Tribo__V1__GraspHand hand = *m->hand;
    object.asset = hand.asset = NULL;
    kept.object = &object;
    kept.hand = &hand;
    kept.n_poses = 0;
    kept.poses = NULL;
    kept.label = (char *)(uintptr_t) "";
    return td_job_run_options(&kept.base);
}

static int64_t trials_of(const Tribo__V1__EvaluateGraspsRequest *m)
{
    const int32_t copies = m->perturbation != NULL ? m->perturbation->count : 0;
    return (int64_t)m->n_poses * (copies > 0 ? copies : 1);
}

uint64_t td_grasp_memory(const Tribo__V1__EvaluateGraspsRequest *m)
{
    return (uint64_t)trials_of(m) * TRIAL_MEMORY_BYTES;
}

tb_status td_grasp_job_make(td_server *server, const Tribo__V1__EvaluateGraspsRequest *m,
                            tb_grasp_job **job, td_device **device, uint64_t *pace, tb_error *error)
{
    td_grasp_request request;
    const int64_t begin = td_monotonic_ns();
    tb_status status = td_grasp_request_read(server, m, &request, error);
    if (status != TB_OK) return status;
    const int64_t trials = trials_of(m);
    const tb_grasp_object *object = &request.request.object;
    *pace = server->paces == NULL ? 0 : td_grasp_request_pace(m, &request.request.step);
    const td_device_wish wish = {.name = m->device,
                                 .worlds = trials,
                                 .ends = true,
                                 .pace = *pace,
                                 .meshes =
                                     (!object->convex && tb_scene_has_meshes(object->scene)) ||
                                     tb_scene_has_meshes(request.request.hand.scene),
                                 .options = &request.request.step};
    status = td_device_choose(server, &wish, device, error);
    if (status != TB_OK) {
        td_grasp_request_free(&request);
        return status;
    }
    td_device_apply(*device, &request.request.step);
    status = tb_grasp_job_create(&request.request, job, error);
    if (status != TB_OK) td_grasp_rename_field(error);
    td_grasp_request_free(&request);
    td_metrics_observe(server->metrics, TD_HISTOGRAM_COMPILE,
                       1e-9 * (double)(td_monotonic_ns() - begin));
    return status;
}

static evaluation *make_evaluation(td_call *call, const Tribo__V1__EvaluateGraspsRequest *m,
                                   tb_grasp_job *job, td_device *device, uint64_t pace,
                                   td_priority priority)
{
    evaluation *e = calloc(1, sizeof *e);
    if (e == NULL) return NULL;
    e->call = call;
    e->server = call->server;
    e->device = device;
    e->pace = pace;
    e->job = job;
    e->slice = (td_job){.priority = priority,
                        .client = &call->caller,
                        .call = call,
                        .slice = play,
                        .done = on_played,
                        .context = e};
    pthread_mutex_init(&e->lock, NULL);
    e->state = PAUSED;
    td_job_run_begin(call, device, TRIBO__V1__RUN_KIND__RUN_KIND_GRASPS, m->label, &e->run);
    td_sha256_parse(tb_model_sha256(tb_grasp_job_model(job)), &e->run.scene);
    e->run.options_json = options_json(m);
    return e;
}

/* On the pool for uploads: files are parsed. */
static void begin(td_call *call, td_request *request)
{
    const Tribo__V1__EvaluateGraspsRequest *m =
        (const Tribo__V1__EvaluateGraspsRequest *)request->message;
    tb_error error = {0};
    tb_grasp_job *job = NULL;
    evaluation *e = NULL;
    td_device *device = NULL;
    uint64_t pace = 0;
    td_priority priority = TD_PRIORITY_NORMAL;
    tb_status status = td_priority_read(call, m->priority, &priority, &error);
    if (status == TB_OK && m->trajectories != NULL)
        status = tb_fail_field(&error, TB_INVALID_ARGUMENT, "trajectories",
                               "only the jobs of SubmitGrasps keep trajectories");
    if (status == TB_OK) status = td_grasp_check_copies(call->server->config, m, &error);
    const uint64_t memory = td_grasp_memory(m);
    if (status == TB_OK)
        status = td_memory_take(call->server, call->caller.name, memory, "the job", &error);
    const bool booked = status == TB_OK;
    if (status == TB_OK) {
        tb_budget budget = td_upload_budget(call);
        tb_budget_bind(&budget);
        status = td_grasp_job_make(call->server, m, &job, &device, &pace, &error);
        tb_budget_release();
        status = td_upload_failure(call, &budget, status, &error);
    }
    if (status == TB_OK) {
        e = make_evaluation(call, m, job, device, pace, priority);
        if (e == NULL) {
            status = tb_fail_memory(&error, sizeof *e, "an evaluation");
            tb_grasp_job_destroy(job);
        }
    }
    td_request_free(request);
    if (e == NULL) {
        if (booked) td_memory_give_back(call->server, call->caller.name, memory);
        td_call_finish(call, status, &error, 0);
        return;
    }
    e->memory_bytes = memory;
    td_call_hold(call); /* until it has ended */
    call->destroy_state = destroy_evaluation;
    if (db_put_run(e->server->db, &e->run, NULL, NULL, &error) != TB_OK) {
        td_call_set_state(call, e);
        if (turn(e, PAUSED, ENDED)) end(e, error.status, &error);
        return;
    }
    td_call_set_state(call, e);
    if (!atomic_load(&call->gone))
        resume(e);
    else if (turn(e, PAUSED, ENDED)) /* the cancellation may have come too early to see it */
        end_unwanted(e);
}

void td_grasp_evaluate_grasps(td_call *call, td_request *request)
{
    tb_error error = {0};
    if (atomic_load(&call->server->draining)) {
        td_request_free(request);
        tb_fail(&error, TB_UNAVAILABLE, "the server is stopping");
        td_call_fail(call, &error);
        return;
    }
    td_upload(call, request, begin);
}

void td_grasp_evaluate_grasps_half_closed(td_call *call)
{
    (void)call; /* its one request is there */
}

void td_grasp_evaluate_grasps_writable(td_call *call)
{
    evaluation *e = td_call_state(call);
    if (e != NULL) resume(e);
}

void td_grasp_evaluate_grasps_cancelled(td_call *call)
{
    /* a running job ends at its next slice; a job under construction ends when it is complete */
    evaluation *e = td_call_state(call);
    if (e != NULL && turn(e, PAUSED, ENDED)) end_unwanted(e);
}
