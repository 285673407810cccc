/* Recovers sessions from the store, and ends them there: after a crash or a pause the worlds load
 * at first use, from the newest snapshot or checkpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "call/memory.h"
#include "session/session_row.h"
#include "session/uploads.h"

#include "tribo_soft.h"

#include "tribo/v1/runs.pb-c.h"

/* ---- coming back ---- */

static tb_status status_of_outcome(int32_t outcome)
{
    if (outcome == TRIBO__V1__OUTCOME__OUTCOME_DIVERGED) return TB_DIVERGED;
    return outcome == TRIBO__V1__OUTCOME__OUTCOME_NOT_CONVERGED ? TB_NOT_CONVERGED : TB_OK;
}

static void from_row_certificate(const db_certificate *row, tb_certificate *c)
{
    *c = (tb_certificate){.status = status_of_outcome(row->outcome),
                          .step = row->step,
                          .time = row->time,
                          .residual = row->residual,
                          .penetration = row->penetration,
                          .cone_error = row->cone_error,
                          .complementarity_error = row->complementarity_error,
                          .closure_error = row->closure_error,
                          .energy = row->energy,
                          .energy_change = row->energy_change,
                          .contacts = (int32_t)row->contacts,
                          .rows = (int32_t)row->rows,
                          .iterations = (int32_t)row->iterations,
                          .flags = row->flags};
    memcpy(c->solver, row->solver, sizeof c->solver);
}

static tb_status restore_packed(td_session *s, const unsigned char *bytes, size_t size,
                                tb_error *error)
{
    const size_t n = (size_t)s->worlds;
    const unsigned char **parts = calloc(n, sizeof(const unsigned char *));
    size_t *sizes = calloc(n, sizeof *sizes);
    tb_status status = TB_OK;
    if (parts == NULL || sizes == NULL) status = tb_fail_memory(error, n, "a snapshot's parts");
    if (status == TB_OK) status = td_worlds_parts(bytes, size, s->worlds, parts, sizes, error);
    if (status == TB_OK) status = td_session_restore(s, parts, sizes, error);
    free(parts);
    free(sizes);
    return status;
}

/* Counts of the run so far, once. A run that the store does not know begins now. */
static void recall_run(td_session *s)
{
    if (s->run.known) return;
    s->run.known = true;
    db_run row;
    tb_error ignored;
    if (db_get_run(s->all->server->db, &s->id, &row, &ignored) != TB_OK) return;
    free((void *)(uintptr_t)row.options_json);
    s->run.start_time_us = row.start_time_us;
    s->run.steps = row.steps;
    s->run.compute_ns = row.compute_time_us * 1000;
    from_row_certificate(&row.certificate, &s->run.certificate);
    td_session_recall_recording(s);
}

tb_status td_session_load_scene(td_session *s, tb_error *error)
{
    td_server *server = s->all->server;
    tb_budget budget = td_upload_budget_of_server(server);
    const tb_status status =
        td_catalog_scene(server->catalog, s->scene_id, &budget, &s->scene, error);
    return status != TB_OK && budget.status != TB_OK ? tb_budget_fail(&budget, error) : status;
}

tb_status td_session_load(td_session *s, tb_error *error)
{
    td_server *server = s->all->server;
    if (s->states != NULL) return TB_OK;
    recall_run(s);
    tb_status status = TB_OK;
    if (s->scene == NULL && s->failure != NULL) {
        *error = *s->failure;
        free(s->failure);
        s->failure = NULL;
        return error->status;
    }
    if (s->scene == NULL) status = td_session_load_scene(s, error);
    if (status != TB_OK) return status;
    db_snapshot snapshot;
    unsigned char *bytes = NULL;
    if (s->moved) status = db_flush(server->db, error);
    if (status != TB_OK) return status;
    s->moved = false;
    status = db_latest_snapshot(server->db, &s->id, &snapshot, &bytes, error);
    if (status == TB_NOT_FOUND && s->origin != NULL)
        status = db_latest_snapshot(server->db, &s->origin->id, &snapshot, &bytes, error);
    if (status == TB_OK)
        status = restore_packed(s, bytes, (size_t)snapshot.size, error);
    else if (status == TB_NOT_FOUND && s->origin == NULL)
        status = td_session_make_worlds(s, &s->states, error);
    free(bytes);
    if (status != TB_OK) return status;
    atomic_store(&s->loaded, true);
    atomic_store(&s->steps, tb_state_steps(s->states[0]));
    atomic_store(&s->time, tb_state_time(s->states[0]));
    return TB_OK;
}

static td_origin *find_origin(td_sessions *all, const uint8_t id[16])
{
    for (td_session *s = all->oldest; s != NULL; s = s->newer)
        if (s->origin != NULL && memcmp(s->origin->id.bytes, id, 16) == 0) {
            atomic_fetch_add(&s->origin->references, 1);
            return s->origin;
        }
    db_id origin;
    memcpy(origin.bytes, id, sizeof origin.bytes);
    return td_origin_new(&origin);
}

/* The device that the session would get if it were made now. */
static tb_status choose_device(td_session *s, td_device **device, tb_error *error)
{
    const td_device_wish wish = {
        .name = "",
        .worlds = s->worlds,
        .bodies = s->scene != NULL ? tb_model_count(s->scene->model).bodies : 0,
        .bytes = s->scene != NULL ? td_memory_on_card(s->scene->model, s->worlds) : 0,
        .meshes = s->scene != NULL && tb_model_has_meshes(s->scene->model),
        .soft_nodes = s->scene != NULL ? tb_soft_model_nodes(s->scene->model) : 0,
        .pace = td_session_pace(s),
        .options = &s->options};
    return td_device_choose(s->all->server, &wish, device, error);
}

/* The device that it had; where that is gone, one that it would get today. */
static tb_status find_device(td_session *s, uint8_t code, tb_error *error)
{
    td_server *server = s->all->server;
    td_device *device = td_device_coded(server, code);
    if (device == NULL) {
        tb_error unread; /* a scene that is gone is said when it is needed */
        if (server->number_of_devices > 1) (void)td_session_load_scene(s, &unread);
        const tb_status status = choose_device(s, &device, error);
        if (status != TB_OK) return status;
        if (code != 0)
            td_log_write(server->log, TB_LOG_WARNING, "session.moved", "session=%s device=%s",
                         s->text, device->name);
    }
    td_session_set_device(s, device);
    return TB_OK;
}

/* ---- leaving a lost card ---- */

void td_session_move(td_session *s)
{
    td_server *server = s->all->server;
    td_device *device = NULL;
    tb_error error = {0};
    if (choose_device(s, &device, &error) != TB_OK) {
        td_log_write(server->log, TB_LOG_ERROR, "session.not_moved", "session=%s message=%s",
                     s->text, error.message);
        return;
    }
    const bool loaded = s->states != NULL;
    td_session_destroy_worlds(s, s->states);
    s->states = NULL;
    s->changes++; /* a checkpoint on its way to the store unloads nothing */
    s->moved = true;
    if (loaded) td_session_give_memory_back(s);
    atomic_store(&s->loaded, false);
    atomic_store(&s->dirty, false);
    td_session_leave_device(s);
    td_session_set_device(s, device);
    td_session_put_event(s, "moved", device->name);
    td_log_write(server->log, TB_LOG_WARNING, "session.moved", "session=%s device=%s", s->text,
                 device->name);
}

static void run_move(td_job *job)
{
    td_session *s = job->session;
    if (td_device_is_gone(s->all->server, s->device)) td_session_move(s);
    td_session_leave(s);
    td_session_job_release(job);
    free(job);
}

static void refuse_move(td_job *job, const tb_error *error)
{
    (void)error;
    td_session_job_release(job);
    free(job);
}

void td_session_move_idle(td_session *s)
{
    tb_error ignored;
    pthread_mutex_lock(&s->mutex);
    const bool busy = s->busy; /* its job fails, and the next one moves the session */
    pthread_mutex_unlock(&s->mutex);
    td_job *job = busy ? NULL : calloc(1, sizeof *job);
    if (job == NULL) return;
    job->session = s;
    job->run = run_move;
    job->refuse = refuse_move;
    td_session_hold(s);
    if (td_session_enter(job, &ignored) == TB_OK) return;
    td_session_job_release(job);
    free(job);
}

/* ---- rows ---- */

/* From its row. FAILED_PRECONDITION for options that this build does not read. */
static tb_status recover(td_sessions *all, const db_session *row, bool *family, tb_error *error)
{
    td_row_options o;
    *family = false;
    if (row->options_size < sizeof o)
        return tb_fail(error, TB_FAILED_PRECONDITION, "the row's options are cut short");
    memcpy(&o, row->options, sizeof o);
    if (memcmp(o.magic, TD_ROW_MAGIC, sizeof o.magic) != 0 ||
        o.packed_size != row->options_size - sizeof o || o.packed_size > TD_OPTIONS_BYTES)
        return tb_fail(error, TB_FAILED_PRECONDITION, "the row's options are of another build");
    *family = o.family != 0;
    if (*family) return TB_OK;

    td_session *s = td_session_new(all, error);
    if (s == NULL) return TB_RESOURCE_EXHAUSTED;
    s->id = row->id;
    td_id_print(&s->id, s->text);
    td_sha256_print(&row->scene, s->scene_id);
    snprintf(s->owner, sizeof s->owner, "%s", row->owner);
    snprintf(s->label, sizeof s->label, "%s", row->label);
    s->worlds = row->worlds;
    s->on_disconnect = row->on_disconnect;
    s->keyframe = o.keyframe;
    s->ttl_seconds = row->ttl_seconds;
    s->create_time_us = row->create_time_us;
    s->run.start_time_us = row->create_time_us;
    s->packed_options_size = o.packed_size;
    memcpy(s->packed_options, row->options + sizeof o, o.packed_size);
    atomic_store(&s->steps, o.steps);
    atomic_store(&s->time, o.time);
    atomic_store(&s->run_dirty, false);
    td_session_renew(s); /* the outage was not the client's */

    tb_status status = TB_OK;
    Tribo__V1__StepOptions *options =
        tribo__v1__step_options__unpack(NULL, o.packed_size, s->packed_options);
    s->certificates = calloc((size_t)(s->worlds > 0 ? s->worlds : 1), sizeof *s->certificates);
    if (options == NULL || s->certificates == NULL || s->worlds < 1)
        status = tb_fail(error, TB_FAILED_PRECONDITION, "the row's options are damaged");
    else
        status = td_wire_read_step_options(options, "options", &s->options, error);
    if (status == TB_OK) status = find_device(s, o.device, error);
    if (options != NULL) tribo__v1__step_options__free_unpacked(options, NULL);
    if (status == TB_OK && o.has_origin) {
        s->origin = find_origin(all, o.origin);
        if (s->origin == NULL) status = tb_fail_memory(error, sizeof *s->origin, "a fork");
    }
    if (status == TB_OK) td_sessions_adopt(all, s);
    td_session_release(s);
    return status;
}

/* The row of an origin that no fork needs any longer. */
static void end_orphan(td_sessions *all, const db_session *row)
{
    for (const td_session *s = all->oldest; s != NULL; s = s->newer)
        if (s->origin != NULL && memcmp(&s->origin->id, &row->id, sizeof row->id) == 0) return;
    db_end_session(all->server->db, &row->id, "forked", NULL, NULL, NULL);
}

tb_status td_sessions_recover(td_sessions *all, tb_error *error)
{
    td_server *server = all->server;
    db_session *rows = NULL;
    int32_t count = 0;
    tb_status status = db_open_sessions(server->db, &rows, &count, error);
    if (status != TB_OK) return status;
    for (int32_t i = 0; i < count; i++) {
        bool family = false;
        tb_error cause = {0};
        if (recover(all, &rows[i], &family, &cause) == TB_OK) continue;
        char text[33];
        td_id_print(&rows[i].id, text);
        td_log_write(server->log, TB_LOG_ERROR, "session.lost", "session=%s message=%s", text,
                     cause.message);
    }
    for (int32_t i = 0; i < count; i++) {
        td_row_options o;
        if (rows[i].options_size < sizeof o) continue;
        memcpy(&o, rows[i].options, sizeof o);
        if (o.family) end_orphan(all, &rows[i]);
    }
    free(rows);
    if (count > 0)
        td_log_write(server->log, TB_LOG_INFO, "sessions.recovered", "sessions=%d",
                     td_sessions_count(all));
    return TB_OK;
}

/* ---- the end ---- */

/* Answers the call that deleted the session, if there is one. */
static void on_ended(void *context, tb_status status, const tb_error *error)
{
    td_call *call = context;
    const Tribo__V1__DeleteSessionResponse response = TRIBO__V1__DELETE_SESSION_RESPONSE__INIT;
    if (status == TB_OK)
        td_call_reply(call, &response.base);
    else
        td_call_finish(call, status, error, 0);
    td_call_release(call);
}

static void close_now(void *context)
{
    td_session *s = context;
    td_server *server = s->all->server;
    tb_error error = {0};
    td_call *deletion = s->deletion;
    s->deletion = NULL;
    recall_run(s);
    td_session_put_event(s, s->end_reason, "");
    td_session_put_recording(s);
    const tb_status status =
        td_session_put_end(s, deletion != NULL ? on_ended : NULL, deletion, &error);
    if (status != TB_OK && deletion != NULL) on_ended(deletion, status, &error);
    if (status != TB_OK)
        td_log_write(server->log, TB_LOG_ERROR, "session.end_failed", "session=%s message=%s",
                     s->text, error.message);
    td_session_destroy_worlds(s, s->states);
    s->states = NULL;
    td_session_give_memory_back(s);
    td_session_release(s);
}

void td_session_close(td_session *s)
{
    tb_error ignored;
    td_session_hold(s);
    if (td_workers_post(s->all->server->workers, close_now, s, &ignored) != TB_OK) close_now(s);
}
