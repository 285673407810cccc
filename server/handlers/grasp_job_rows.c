/* Handlers of grasp jobs that read rows: GetGraspJob, ListGraspJobs, CancelGraspJob, ReplayGrasp,
 * GetGraspTrajectory, ListGraspTrajectories. Owners see their own jobs, administrators all; another
 * owner's gives NOT_FOUND, as an unknown id does. */
#include "handlers/grasp_job_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "call/offload.h"
#include "grasp/replay.h"
#include "handlers/grasp_request.h"
#include "handlers/handlers.h"
#include "session/catalog.h"
#include "session/session.h"
#include "session/uploads.h"
#include "wire/wire.h"

enum { MOST_RESULTS = 1000, RESULTS_AT_ONCE = 20 };

static const char *visible_owner(const td_call *call)
{
    return call->caller.scope >= TD_SCOPE_ADMIN ? NULL : call->caller.name;
}

void td_grasp_job_describe(td_grasp_job_row *r)
{
    Tribo__V1__GraspJobInfo *m = &r->message;
    db_grasp_job *row = &r->row;
    tribo__v1__grasp_job_info__init(m);
    td_id_print(&row->id, r->id);
    m->id = r->id;
    m->owner = row->owner;
    m->label = row->label;
    m->status = (Tribo__V1__GraspJobStatus)row->status;
    m->grasps = row->grasps;
    m->grasps_done = row->results;
    m->grasps_held = row->held;
    m->trials_uncertified = row->uncertified;
    m->create_time_us = row->create_time_us;
    m->end_time_us = row->end_time_us;
    m->message = row->message;
    m->trajectories = row->trajectories;
    m->trajectory_bytes = row->trajectory_bytes;
    m->trajectories_left_out = row->trajectories_left_out;
}

/* A job that the caller may see, by its id or a unique beginning of it. */
static tb_status find(const td_call *call, const char *text, td_grasp_job_row *found,
                      tb_error *error)
{
    db_id id = {0}, lower, upper;
    int32_t count = 1;
    tb_status status = TB_OK;
    if (!td_id_parse(text, &id)) {
        if (!td_id_range(text, &lower, &upper, sizeof id))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "id",
                                 "id is '%.80s', expected 32 lower-case hexadecimal digits, or the "
                                 "first %d or more",
                                 text, TD_ID_PREFIX_DIGITS);
        status = db_find_grasp_job(call->server->db, &lower, &upper, &id, &count, error);
        if (status == TB_OK && count > 1)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "id",
                                 "%s begins the ids of several jobs", text);
        if (status == TB_OK && count == 0) status = TB_NOT_FOUND;
    }
    const char *owner = visible_owner(call);
    if (status == TB_OK) status = db_get_grasp_job(call->server->db, &id, &found->row, error);
    if (status == TB_OK && owner != NULL && strcmp(owner, found->row.owner) != 0)
        status = TB_NOT_FOUND;
    if (status == TB_NOT_FOUND)
        return tb_fail_field(error, TB_NOT_FOUND, "id", "there is no grasp job %s", text);
    if (status == TB_OK) td_grasp_job_describe(found);
    return status;
}

/* ---- GetGraspJob ---- */

typedef struct results {
    Tribo__V1__GraspResult **messages;
    int32_t count;
} results;

static void clear(results *r)
{
    for (int32_t i = 0; i < r->count; i++)
        tribo__v1__grasp_result__free_unpacked(r->messages[i], NULL);
    free(r->messages);
}

/* Results from a pose on, as many as fit into an answer. */
static tb_status read_results(const td_call *call, const db_id *id, int32_t first, int32_t most,
                              results *r, tb_error *error)
{
    uint64_t bytes = 0;
    int32_t count = 1;
    tb_status status = TB_OK;
    r->messages = calloc((size_t)most + 1, sizeof(void *));
    if (r->messages == NULL) return tb_fail_memory(error, 0, "a job's results");
    while (status == TB_OK && count > 0 && r->count < most &&
           bytes < call->server->config->chunk_bytes) {
        db_grasp_result rows[RESULTS_AT_ONCE];
        const int32_t left = most - r->count;
        status =
            db_list_grasp_results(call->server->db, id, first + r->count, rows,
                                  left < RESULTS_AT_ONCE ? left : RESULTS_AT_ONCE, &count, error);
        for (int32_t i = 0; i < count; i++) {
            Tribo__V1__GraspResult *m =
                tribo__v1__grasp_result__unpack(NULL, rows[i].size, rows[i].bytes);
            bytes += rows[i].size;
            free(rows[i].bytes);
            if (m != NULL)
                r->messages[r->count++] = m;
            else if (status == TB_OK)
                status = tb_fail(error, TB_DATA_LOSS, "a job's result is damaged");
        }
    }
    return status;
}

static void get(td_call *call, td_request *request)
{
    const Tribo__V1__GetGraspJobRequest *m = (const void *)request->message;
    td_grasp_job_row job = {0};
    results r = {0};
    tb_error error = {0};
    tb_status status = TB_OK;
    if (m->first_result < 0)
        status = tb_fail_field(&error, TB_INVALID_ARGUMENT, "first_result", "first_result is %d",
                               (int)m->first_result);
    if (status == TB_OK && (m->maximum_results < 0 || m->maximum_results > MOST_RESULTS))
        status = tb_fail_field(&error, TB_INVALID_ARGUMENT, "maximum_results",
                               "maximum_results is %d, expected 0 to %d", (int)m->maximum_results,
                               MOST_RESULTS);
    if (status == TB_OK) status = find(call, m->id, &job, &error);
    if (status == TB_OK && m->maximum_results > 0)
        status = read_results(call, &job.row.id, m->first_result, m->maximum_results, &r, &error);
    if (status == TB_OK) {
        Tribo__V1__GetGraspJobResponse response = TRIBO__V1__GET_GRASP_JOB_RESPONSE__INIT;
        response.job = &job.message;
        response.n_results = (size_t)r.count;
        response.results = r.messages;
        td_call_reply(call, &response.base);
    } else {
        td_call_fail(call, &error);
    }
    clear(&r);
    td_request_free(request);
}

void td_grasp_get_grasp_job(td_call *call, td_request *request)
{
    td_offload(call, request, get);
}

/* ---- ListGraspJobs ---- */

static void list(td_call *call, td_request *request)
{
    const Tribo__V1__ListGraspJobsRequest *m = (const void *)request->message;
    Tribo__V1__ListGraspJobsResponse response = TRIBO__V1__LIST_GRASP_JOBS_RESPONSE__INIT;
    td_grasp_job_row *jobs = NULL;
    db_grasp_job *rows = NULL;
    char next[DB_TOKEN_SIZE] = "";
    int32_t size = 0, count = 0;
    tb_error error = {0};
    tb_status status = td_page_size(m->page_size, &size, &error);
    if (status == TB_OK) {
        jobs = calloc((size_t)size, sizeof *jobs);
        rows = calloc((size_t)size, sizeof *rows);
        response.jobs = calloc((size_t)size, sizeof(void *));
        if (jobs == NULL || rows == NULL || response.jobs == NULL)
            status = tb_fail_memory(&error, (size_t)size * sizeof *jobs, "a list");
    }
    if (status == TB_OK)
        status = db_list_grasp_jobs(call->server->db, visible_owner(call), m->page_token, rows,
                                    size, &count, next, &error);
    if (status == TB_OK) {
        for (int32_t i = 0; i < count; i++) {
            jobs[i].row = rows[i];
            td_grasp_job_describe(&jobs[i]);
            response.jobs[i] = &jobs[i].message;
        }
        response.n_jobs = (size_t)count;
        response.next_page_token = next;
        td_call_reply(call, &response.base);
    } else {
        td_call_fail(call, &error);
    }
    free(response.jobs);
    free(jobs);
    free(rows);
    td_request_free(request);
}

void td_grasp_list_grasp_jobs(td_call *call, td_request *request)
{
    td_offload(call, request, list);
}

/* ---- CancelGraspJob ---- */

static void cancel(td_call *call, td_request *request)
{
    const Tribo__V1__CancelGraspJobRequest *m = (const void *)request->message;
    td_grasp_job_row job = {0};
    tb_error error = {0};
    tb_status status = find(call, m->id, &job, &error);
    if (status == TB_OK && job.row.status == DB_GRASP_JOB_RUNNING) {
        db_grasp_job end = job.row;
        end.status = DB_GRASP_JOB_CANCELLED;
        end.end_time_us = td_clock_utc_us(&call->server->clock);
        status = db_end_grasp_job(call->server->db, &end, &error);
        td_grasp_jobs_cancel(call->server, &job.row.id);
        if (status == TB_OK) status = db_flush(call->server->db, &error);
        if (status == TB_OK) status = find(call, m->id, &job, &error);
    }
    if (status == TB_OK) {
        Tribo__V1__CancelGraspJobResponse response = TRIBO__V1__CANCEL_GRASP_JOB_RESPONSE__INIT;
        response.job = &job.message;
        td_call_reply(call, &response.base);
    } else {
        td_call_fail(call, &error);
    }
    td_request_free(request);
}

void td_grasp_cancel_grasp_job(td_call *call, td_request *request)
{
    td_offload(call, request, cancel);
}

/* ---- ReplayGrasp ---- */

/* One trial of a stored job is played again on the pool for uploads, since its files are parsed
 * anew. Nothing is stored: a trial gives the same states whenever it is played. */

static const double DEFAULT_INTERVAL_S = 0.01, SHORTEST_INTERVAL_S = 1e-4;
static const double DEFAULT_DT_S = 0.002; /* of GraspProtocol */
enum { MOST_FRAMES = 100000 };

/* The frames of a replay as they come. */
typedef struct film {
    td_call *call;
    td_wire wire;
    td_wire_want want;
    Tribo__V1__GraspFrame **frames;
    size_t number, capacity;
} film;

static tb_status add_frame(film *f, Tribo__V1__GraspFrame *frame, tb_error *error)
{
    if (f->number == f->capacity) {
        const size_t capacity = 2 * f->capacity + 64;
        void *grown = realloc(f->frames, capacity * sizeof(void *));
        if (grown == NULL) return tb_fail_memory(error, capacity * sizeof(void *), "a replay");
        f->frames = grown;
        f->capacity = capacity;
    }
    f->frames[f->number++] = frame;
    return TB_OK;
}

/* Called by the library with each shown state. */
static tb_status show(void *context, tb_state *state, double time, const tb_certificate *step,
                      tb_error *error)
{
    film *f = context;
    if (atomic_load(&f->call->gone)) return tb_fail(error, TB_CANCELLED, "the caller has gone");
    if (f->number >= MOST_FRAMES)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "interval",
                             "the replay has more than %d frames: take a longer interval",
                             MOST_FRAMES);
    Tribo__V1__GraspFrame *frame = td_wire_take(&f->wire, sizeof *frame);
    Tribo__V1__Certificate *certificate = td_wire_take(&f->wire, sizeof *certificate);
    tb_certificate *kept = td_wire_take(&f->wire, sizeof *kept);
    if (frame == NULL || certificate == NULL || kept == NULL)
        return tb_fail_memory(error, sizeof *frame, "a replay");
    tribo__v1__grasp_frame__init(frame);
    *kept = *step; /* the message borrows from it */
    td_wire_certificate(kept, certificate);
    frame->time = time;
    frame->certificate = certificate;
    frame->state = td_wire_state(&f->wire, &state, 1, f->want);
    Tribo__V1__Contacts **contacts = td_wire_contacts(&f->wire, &state, 1, f->want);
    frame->contacts = contacts != NULL ? contacts[0] : NULL;
    if (frame->state == NULL || frame->contacts == NULL || f->wire.failed)
        return tb_fail_memory(error, sizeof *frame, "a replay");
    return add_frame(f, frame, error);
}

/* Plays one pose of the job's request; the poses of the message are put back. */
static tb_status play(td_server *server, Tribo__V1__EvaluateGraspsRequest *m,
                      const Tribo__V1__ReplayGraspRequest *wanted, film *f, tb_model **model,
                      tb_error *error)
{
    td_grasp_request request;
    Tribo__V1__GraspPose **all = m->poses;
    const size_t number = m->n_poses;
    if (wanted->grasp < 0 || (size_t)wanted->grasp >= number)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "grasp", "grasp is %d, expected 0 to %d",
                             (int)wanted->grasp, (int)number - 1);
    m->poses = all + wanted->grasp;
    m->n_poses = 1;
    tb_status status = td_grasp_request_read(server, m, &request, error);
    m->poses = all;
    m->n_poses = number;
    if (status != TB_OK) return status;
    request.request.step.backend = TB_BACKEND_CPU;
    request.request.step.threads = 1;
    const double interval = wanted->interval > 0 ? wanted->interval : DEFAULT_INTERVAL_S;
    if (!(request.request.step.dt > 0)) request.request.step.dt = DEFAULT_DT_S;
    const double dt = request.request.step.dt;
    f->want =
        (td_wire_want){.poses = true, .contacts = true, .forces = true, .sensors = true, .dt = dt};
    status = tb_grasp_replay(&request.request, wanted->copy, interval, show, f, model, error);
    if (status != TB_OK) td_grasp_rename_field(error);
    td_grasp_request_free(&request);
    return status;
}

static tb_status replay(td_call *call, const Tribo__V1__ReplayGraspRequest *wanted, film *f,
                        const td_scene **scene, tb_error *error)
{
    td_grasp_job_row job = {0};
    unsigned char *bytes = NULL;
    size_t size = 0;
    tb_model *model = NULL;
    if (!isfinite(wanted->interval) || wanted->interval < 0 ||
        (wanted->interval > 0 && wanted->interval < SHORTEST_INTERVAL_S))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "interval",
                             "interval is %g, expected 0 or at least %g s", wanted->interval,
                             SHORTEST_INTERVAL_S);
    tb_status status = find(call, wanted->id, &job, error);
    if (status == TB_OK)
        status = db_get_grasp_request(call->server->db, &job.row.id, &bytes, &size, error);
    if (status != TB_OK) return status;
    Tribo__V1__EvaluateGraspsRequest *m =
        tribo__v1__evaluate_grasps_request__unpack(NULL, size, bytes);
    free(bytes);
    if (m == NULL) return tb_fail(error, TB_DATA_LOSS, "the job's request is damaged");
    tb_budget budget = td_upload_budget(call);
    tb_budget_bind(&budget);
    status = play(call->server, m, wanted, f, &model, error);
    tb_budget_release();
    status = td_upload_failure(call, &budget, status, error);
    tribo__v1__evaluate_grasps_request__free_unpacked(m, NULL);
    return status == TB_OK ? td_catalog_add_scene(call->server->catalog, model, scene, error)
                           : status;
}

static void replay_on_pool(td_call *call, td_request *request)
{
    film f = {.call = call};
    const td_scene *scene = NULL;
    tb_error error = {0};
    if (replay(call, (const void *)request->message, &f, &scene, &error) == TB_OK) {
        Tribo__V1__ReplayGraspResponse response = TRIBO__V1__REPLAY_GRASP_RESPONSE__INIT;
        response.scene_id = (char *)(uintptr_t)scene->id;
        response.frames = f.frames;
        response.n_frames = f.number;
        td_call_reply_bounded(call, &response.base, f.wire.failed, "; take a longer interval");
        td_scene_release(call->server->catalog, scene);
    } else {
        td_call_fail(call, &error);
    }
    free(f.frames);
    td_wire_destroy(&f.wire);
    td_request_free(request);
}

void td_grasp_replay_grasp(td_call *call, td_request *request)
{
    td_upload(call, request, replay_on_pool);
}

/* ---- GetGraspTrajectory, ListGraspTrajectories ---- */

static tb_status read_trajectory(const td_call *call, const Tribo__V1__GetGraspTrajectoryRequest *m,
                                 td_grasp_job_row *job, Tribo__V1__GraspTrajectory **trajectory,
                                 tb_error *error)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    tb_status status = find(call, m->id, job, error);
    if (status != TB_OK) return status;
    status = db_get_grasp_trajectory(call->server->db, &job->row.id, m->grasp, m->copy, &bytes,
                                     &size, error);
    if (status == TB_NOT_FOUND)
        return tb_fail_field(error, TB_NOT_FOUND, "grasp",
                             "the job has no trajectory of copy %d of grasp %d: it was not chosen, "
                             "has no result yet, or was deleted",
                             (int)m->copy, (int)m->grasp);
    if (status != TB_OK) return status;
    *trajectory = tribo__v1__grasp_trajectory__unpack(NULL, size, bytes);
    free(bytes);
    return *trajectory != NULL ? TB_OK : tb_fail(error, TB_DATA_LOSS, "a trajectory is damaged");
}

static void get_trajectory(td_call *call, td_request *request)
{
    Tribo__V1__GetGraspTrajectoryResponse response = TRIBO__V1__GET_GRASP_TRAJECTORY_RESPONSE__INIT;
    td_grasp_job_row job = {0};
    char scene[TD_SHA256_TEXT];
    tb_error error = {0};
    if (read_trajectory(call, (const void *)request->message, &job, &response.trajectory, &error) ==
        TB_OK) {
        td_sha256_print(&job.row.scene, scene);
        response.scene_id = scene;
        td_call_reply(call, &response.base);
        tribo__v1__grasp_trajectory__free_unpacked(response.trajectory, NULL);
    } else {
        td_call_fail(call, &error);
    }
    td_request_free(request);
}

void td_grasp_get_grasp_trajectory(td_call *call, td_request *request)
{
    td_offload(call, request, get_trajectory);
}

/* A page's token names the last trial of the page before: "12:0". */
static tb_status read_place(const char *token, int *grasp, int *copy, tb_error *error)
{
    int length = 0;
    *grasp = *copy = -1;
    if (*token == '\0') return TB_OK;
    if (sscanf(token, "%9d:%9d%n", grasp, copy, &length) == 2 && token[length] == '\0')
        return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "page_token",
                         "page_token is none of this list's");
}

static void list_trajectories(td_call *call, td_request *request)
{
    const Tribo__V1__ListGraspTrajectoriesRequest *m = (const void *)request->message;
    Tribo__V1__ListGraspTrajectoriesResponse response =
        TRIBO__V1__LIST_GRASP_TRAJECTORIES_RESPONSE__INIT;
    Tribo__V1__GraspTrajectoryInfo *infos = NULL;
    db_grasp_trajectory *rows = NULL;
    td_grasp_job_row job = {0};
    char next[DB_TOKEN_SIZE] = "";
    int32_t size = 0, count = 0;
    int grasp = -1, copy = -1;
    tb_error error = {0};
    tb_status status = td_page_size(m->page_size, &size, &error);
    if (status == TB_OK) status = read_place(m->page_token, &grasp, &copy, &error);
    if (status == TB_OK) status = find(call, m->id, &job, &error);
    if (status == TB_OK) {
        infos = calloc((size_t)size, sizeof *infos);
        rows = calloc((size_t)size + 1, sizeof *rows);
        response.trajectories = calloc((size_t)size, sizeof(void *));
        if (infos == NULL || rows == NULL || response.trajectories == NULL)
            status = tb_fail_memory(&error, (size_t)size * sizeof *rows, "a list");
    }
    if (status == TB_OK) /* one extra row shows whether another page follows */
        status = db_list_grasp_trajectories(call->server->db, &job.row.id, grasp, copy, rows,
                                            size + 1, &count, &error);
    if (status == TB_OK) {
        const int32_t shown = count < size ? count : size;
        for (int32_t i = 0; i < shown; i++) {
            tribo__v1__grasp_trajectory_info__init(&infos[i]);
            infos[i].grasp = rows[i].pose;
            infos[i].copy = rows[i].copy;
            infos[i].bytes = (int64_t)rows[i].size;
            response.trajectories[i] = &infos[i];
        }
        if (count > size)
            snprintf(next, sizeof next, "%d:%d", (int)rows[size - 1].pose,
                     (int)rows[size - 1].copy);
        response.n_trajectories = (size_t)shown;
        response.next_page_token = next;
        td_call_reply(call, &response.base);
    } else {
        td_call_fail(call, &error);
    }
    free(response.trajectories);
    free(infos);
    free(rows);
    td_request_free(request);
}

void td_grasp_list_grasp_trajectories(td_call *call, td_request *request)
{
    td_offload(call, request, list_trajectories);
}
