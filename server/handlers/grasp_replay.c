/* ReplayGrasp: one trial of a stored job, played again on the pool for uploads, since its files are
 * parsed anew. Nothing is stored: a trial gives the same states whenever it is played. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "grasp/replay.h"
#include "handlers/grasp_job_rows.h"
#include "handlers/grasp_request.h"
#include "handlers/handlers.h"
#include "session/catalog.h"
#include "session/uploads.h"
#include "wire/wire.h"

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
    f->want = (td_wire_want){.poses = true, .contacts = true, .forces = true, .dt = dt};
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
    tb_status status = td_grasp_job_find(call, wanted->id, &job, error);
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

static void work(td_call *call, td_request *request)
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
    td_upload(call, request, work);
}
