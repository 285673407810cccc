/* Sessions in the store: rows and runs, bytes of worlds, checkpoints. session_recover.c restores
 * them; session_internal.h defines turns. */
#include "session/session_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "ops/build.h"
#include "call/memory.h"
#include "session/job_run.h"
#include "wire/json.h"

#include "tribo/v1/runs.pb-c.h"

/* ---- worlds as bytes ---- */

typedef struct worlds_header {
    char magic[8];
    uint32_t version, worlds;
} worlds_header;

static const char WORLDS_MAGIC[8] = {'T', 'D', 'W', 'O', 'R', 'L', 'D', '\0'};
enum { WORLDS_VERSION = 1 };

tb_status td_worlds_pack(td_session *s, unsigned char **bytes, size_t *size, size_t *payload,
                         tb_error *error)
{
    worlds_header header = {.version = WORLDS_VERSION, .worlds = (uint32_t)s->worlds};
    memcpy(header.magic, WORLDS_MAGIC, sizeof header.magic);
    const size_t table = (size_t)s->worlds * sizeof(uint64_t);
    tb_bytes packed = {0};
    *bytes = NULL;
    const td_wire_want everything = {.state = true, .contacts = true};
    const tb_status fetched = td_session_fetch(s, everything, error);
    if (fetched != TB_OK) return fetched;
    *payload = sizeof header + table;
    tb_status status = tb_bytes_append(&packed, &header, sizeof header);
    for (int32_t w = 0; w < s->worlds && status == TB_OK; w++)
        status = tb_bytes_append(&packed, &(uint64_t){0}, sizeof(uint64_t));
    if (status != TB_OK) tb_fail_memory(error, *payload, "a snapshot");
    for (int32_t w = 0; w < s->worlds && status == TB_OK; w++) {
        unsigned char *world = NULL;
        size_t world_size = 0;
        status = tb_state_snapshot(s->states[w], &world, &world_size, error);
        if (status != TB_OK) break;
        status = tb_bytes_append(&packed, world, world_size);
        if (status != TB_OK) tb_fail_memory(error, world_size, "a snapshot");
        tb_bytes_destroy(world);
        const uint64_t entry = world_size;
        memcpy(packed.base + sizeof header + (size_t)w * sizeof entry, &entry, sizeof entry);
    }
    if (status != TB_OK) {
        tb_bytes_free(&packed);
        return status;
    }
    *bytes = packed.base;
    *size = packed.size;
    return TB_OK;
}

tb_status td_worlds_parts(const unsigned char *bytes, size_t size, int32_t worlds,
                          const unsigned char **parts, size_t *sizes, tb_error *error)
{
    worlds_header header;
    if (size < sizeof header) return tb_fail(error, TB_DATA_LOSS, "the snapshot is cut short");
    memcpy(&header, bytes, sizeof header);
    if (memcmp(header.magic, WORLDS_MAGIC, sizeof header.magic) != 0)
        return tb_fail(error, TB_DATA_LOSS, "the stored bytes are not a snapshot");
    if (header.version != WORLDS_VERSION)
        return tb_fail_field(error, TB_FAILED_PRECONDITION, "snapshot_id",
                             "the snapshot has format %u, this build reads %d", header.version,
                             WORLDS_VERSION);
    if (header.worlds != (uint32_t)worlds)
        return tb_fail_field(error, TB_FAILED_PRECONDITION, "snapshot_id",
                             "the snapshot has %u worlds, the session %d", header.worlds, worlds);
    size_t at = sizeof header + (size_t)worlds * sizeof(uint64_t);
    for (int32_t w = 0; w < worlds; w++) {
        uint64_t part = 0;
        if (at <= size) memcpy(&part, bytes + sizeof header + (size_t)w * sizeof part, sizeof part);
        if (at > size || part > size - at)
            return tb_fail(error, TB_DATA_LOSS, "the snapshot is cut short");
        parts[w] = bytes + at;
        sizes[w] = (size_t)part;
        at += (size_t)part;
    }
    if (at != size) return tb_fail(error, TB_DATA_LOSS, "bytes are left behind the snapshot");
    return TB_OK;
}

tb_status td_session_restore(td_session *s, const unsigned char *const *parts, const size_t *sizes,
                             tb_error *error)
{
    tb_state **states = NULL;
    tb_status status = td_session_make_worlds(s, &states, error);
    for (int32_t w = 0; w < s->worlds && status == TB_OK; w++)
        status = tb_state_restore(states[w], parts[w], sizes[w], error);
    if (status != TB_OK) {
        td_session_destroy_worlds(s, states);
        return status;
    }
    td_session_destroy_worlds(s, s->states);
    s->states = states;
    return TB_OK;
}

/* ---- rows ---- */

static void pack_row_options(const td_session *s, bool family, db_session *row)
{
    td_row_options o;
    memset(&o, 0, sizeof o);
    memcpy(o.magic, TD_ROW_MAGIC, sizeof o.magic);
    o.keyframe = s->keyframe;
    o.steps = atomic_load(&s->steps);
    o.time = atomic_load(&s->time);
    o.family = family;
    o.device = td_device_code(s->device);
    if (!family && s->origin != NULL) {
        o.has_origin = 1;
        memcpy(o.origin, s->origin->id.bytes, sizeof o.origin);
    }
    o.packed_size = s->packed_options_size;
    memcpy(row->options, &o, sizeof o);
    memcpy(row->options + sizeof o, s->packed_options, s->packed_options_size);
    row->options_size = (uint32_t)sizeof o + s->packed_options_size;
}

db_session td_session_row(const td_session *s)
{
    db_session row;
    memset(&row, 0, sizeof row);
    row.id = s->id;
    td_sha256_parse(s->scene_id, &row.scene);
    snprintf(row.owner, sizeof row.owner, "%s", s->owner);
    snprintf(row.label, sizeof row.label, "%s", s->label);
    row.worlds = s->worlds;
    row.ttl_seconds = s->ttl_seconds;
    row.on_disconnect = s->on_disconnect;
    row.create_time_us = s->create_time_us;
    row.expire_time_us =
        td_clock_to_utc_us(&s->all->server->clock, atomic_load(&s->expire_time_us));
    pack_row_options(s, false, &row);
    return row;
}

db_session td_origin_row(const td_session *parent, const td_origin *origin)
{
    db_session row = td_session_row(parent);
    row.id = origin->id;
    row.label[0] = '\0';
    pack_row_options(parent, true, &row);
    return row;
}

td_origin *td_origin_new(const db_id *id)
{
    td_origin *origin = calloc(1, sizeof *origin);
    if (origin == NULL) return NULL;
    origin->id = *id;
    atomic_init(&origin->references, 1);
    return origin;
}

void td_origin_release(td_sessions *all, td_origin *origin)
{
    if (atomic_fetch_sub(&origin->references, 1) != 1) return;
    /* at the end of the process the forks are still there, and need it */
    if (!all->ending) db_end_session(all->server->db, &origin->id, "forked", NULL, NULL, NULL);
    free(origin);
}

/* ---- runs ---- */

static void print_options(const td_session *s, tb_bytes *json)
{
    Tribo__V1__StepOptions *options =
        tribo__v1__step_options__unpack(NULL, s->packed_options_size, s->packed_options);
    if (options == NULL) return;
    td_json_print(json, &options->base, NULL);
    tribo__v1__step_options__free_unpacked(options, NULL);
}

/* The run's row; its options point into *json, which the caller frees. */
static db_run run_row(td_session *s, int32_t run_status, const char *message, tb_bytes *json)
{
    td_server *server = s->all->server;
    db_run run;
    memset(&run, 0, sizeof run);
    run.id = s->id;
    run.kind = TRIBO__V1__RUN_KIND__RUN_KIND_SESSION;
    run.status = run_status;
    snprintf(run.owner, sizeof run.owner, "%s", s->owner);
    snprintf(run.label, sizeof run.label, "%s", s->label);
    snprintf(run.build, sizeof run.build, "%s", td_build());
    snprintf(run.device, sizeof run.device, "%s, %.40s", s->device->name, s->device->description);
    snprintf(run.message, sizeof run.message, "%s", message);
    td_sha256_parse(s->scene_id, &run.scene);
    print_options(s, json);
    run.options_json = (const char *)json->base;
    run.start_time_us = s->run.start_time_us;
    if (run_status != TRIBO__V1__RUN_STATUS__RUN_STATUS_RUNNING)
        run.end_time_us = td_clock_utc_us(&server->clock);
    run.worlds = s->worlds;
    run.steps = s->run.steps;
    run.compute_time_us = s->run.compute_ns / 1000;
    td_job_run_certificate(&s->run.certificate, &run.certificate);
    atomic_store(&s->run_dirty, false);
    return run;
}

tb_status td_session_put_run(td_session *s, int32_t run_status, const char *message,
                             tb_error *error)
{
    tb_bytes json = {0};
    const db_run run = run_row(s, run_status, message, &json);
    const tb_status status = db_put_run(s->all->server->db, &run, NULL, NULL, error);
    tb_bytes_free(&json);
    return status;
}

tb_status td_session_put_end(td_session *s, db_done *done, void *context, tb_error *error)
{
    tb_bytes json = {0};
    const db_run run = run_row(s, TRIBO__V1__RUN_STATUS__RUN_STATUS_DONE, s->end_reason, &json);
    const tb_status status =
        db_end_session_run(s->all->server->db, &run, s->end_reason, done, context, error);
    tb_bytes_free(&json);
    return status;
}

/* Summaries and events belong to a run's row, which a fork gets later than its session's. */
static void ensure_run(td_session *s)
{
    if (atomic_load(&s->run_dirty))
        td_session_put_run(s, TRIBO__V1__RUN_STATUS__RUN_STATUS_RUNNING, "", NULL);
}

void td_session_put_event(td_session *s, const char *kind, const char *message)
{
    td_server *server = s->all->server;
    ensure_run(s);
    db_event event;
    memset(&event, 0, sizeof event);
    event.run = s->id;
    event.time_us = td_clock_utc_us(&server->clock);
    snprintf(event.kind, sizeof event.kind, "%s", kind);
    snprintf(event.message, sizeof event.message, "%s", message);
    tb_error error;
    if (db_put_event(server->db, &event, &error) != TB_OK)
        td_log_write(server->log, TB_LOG_WARNING, "session.event_lost",
                     "session=%s kind=%s message=%s", s->text, kind, error.message);
}

void td_session_account(td_session *s, const tb_certificate *certificates, int32_t worlds,
                        int32_t steps, int64_t compute_ns)
{
    static const int64_t SUMMARY_NS = 1000000000;
    td_run_account *run = &s->run;
    run->steps += (int64_t)steps * worlds;
    run->compute_ns += compute_ns;
    run->summary_steps += steps;
    for (int32_t w = 0; w < worlds; w++) {
        tb_certificate_merge(&run->certificate, &certificates[w]);
        tb_certificate_merge(&run->summary, &certificates[w]);
    }
    const int64_t now = td_monotonic_ns();
    atomic_store(&s->stepped_ns, now);
    if (now - run->summary_ns < SUMMARY_NS) return;
    if (run->summary_ns > 0)
        atomic_store(&s->rate, 1e9 * run->summary_steps / (double)(now - run->summary_ns));
    ensure_run(s);
    db_step_summary summary;
    memset(&summary, 0, sizeof summary);
    summary.run = s->id;
    summary.step = run->summary.step;
    summary.time_us = td_clock_utc_us(&s->all->server->clock);
    summary.steps = run->summary_steps;
    td_job_run_certificate(&run->summary, &summary.certificate);
    db_put_step_summary(s->all->server->db, &summary);
    run->summary = (tb_certificate){0};
    run->summary_steps = 0;
    run->summary_ns = now;
}

/* ---- recordings ---- */

tb_status td_session_start_recording(td_session *s, const Tribo__V1__RecordOptions *options,
                                     tb_error *error)
{
    const int32_t bodies = tb_model_count(s->scene->model).bodies;
    tb_status status =
        td_recording_create(options, "record", s->worlds, bodies, &s->recording, error);
    if (status != TB_OK) return status;
    status =
        td_memory_take(s->all->server, s->owner, s->recording->maximum, "the recording", error);
    if (status == TB_OK) s->recording_bytes = s->recording->maximum;
    td_session_publish_memory(s);
    td_session_record(s);
    return status;
}

void td_session_record(td_session *s)
{
    td_recording *r = s->recording;
    if (r == NULL || s->states == NULL) return;
    tb_state *state = s->states[r->world];
    if (!td_recording_due(r, tb_state_time(state))) return;
    const td_wire_want want = {.bodies = true, .contacts = true};
    tb_error lost;
    if (td_session_fetch_worlds(s, &state, 1, want, &lost) == TB_OK)
        td_recording_add(r, state, td_session_dt(s));
}

void td_session_put_recording(td_session *s)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    tb_error error;
    if (s->recording == NULL || !s->recording->changed) return;
    tb_status status = td_recording_pack(s->recording, &bytes, &size, &error);
    if (status == TB_OK)
        status = db_put_recording(s->all->server->db, &s->id, bytes, size, NULL, NULL, &error);
    if (status == TB_OK) return;
    s->recording->changed = true;
    td_log_write(s->all->server->log, TB_LOG_WARNING, "session.recording_failed",
                 "session=%s message=%s", s->text, error.message);
}

void td_session_recall_recording(td_session *s)
{
    unsigned char *bytes = NULL;
    uint64_t size = 0;
    tb_error error;
    if (s->recording != NULL ||
        db_get_recording(s->all->server->db, &s->id, &bytes, &size, &error) != TB_OK)
        return;
    tb_status status = td_recording_unpack(bytes, (size_t)size, &s->recording, &error);
    free(bytes);
    if (status == TB_OK)
        status = td_memory_take(s->all->server, s->owner, s->recording->maximum, "the recording",
                                &error);
    if (status == TB_OK) {
        s->recording_bytes = s->recording->maximum;
        td_session_publish_memory(s);
        return;
    }
    td_session_end_recording(s);
    td_log_write(s->all->server->log, TB_LOG_WARNING, "session.recording_ended",
                 "session=%s message=%s", s->text, error.message);
}

void td_session_end_recording(td_session *s)
{
    if (s->recording_bytes > 0) td_memory_give_back(s->all->server, s->owner, s->recording_bytes);
    s->recording_bytes = 0;
    td_recording_destroy(s->recording);
    s->recording = NULL;
}

/* ---- checkpoints ---- */

typedef struct stored_checkpoint {
    td_job unload; /* with the session; first */
    td_checkpoint_wait *told;
    int64_t changes; /* of the session when its worlds were packed */
    bool pause;
} stored_checkpoint;

static void free_checkpoint(stored_checkpoint *c)
{
    td_session_job_release(&c->unload);
    free(c);
}

static void unload(td_job *job)
{
    stored_checkpoint *c = (stored_checkpoint *)job;
    td_session *s = job->session;
    if (s->changes == c->changes && s->states != NULL) {
        td_session_publish_last(s);
        td_session_destroy_worlds(s, s->states);
        s->states = NULL;
        td_session_give_memory_back(s);
        atomic_store(&s->loaded, false);
        td_session_tell(s, TRIBO__V1__SESSION_EVENT__SESSION_EVENT_PAUSED,
                        "its worlds are in the store; the next call brings them back", false);
    }
    td_session_leave(s);
    free_checkpoint(c);
}

static void refuse_unload(td_job *job, const tb_error *error)
{
    (void)error;
    free_checkpoint((stored_checkpoint *)job);
}

/* On the store's writer thread. */
static void on_checkpoint(void *context, tb_status status, const tb_error *error)
{
    stored_checkpoint *c = context;
    td_session *s = c->unload.session;
    td_sessions *all = s->all;
    if (status != TB_OK) {
        atomic_store(&s->dirty, true);
        td_checkpoint_failed(s, error);
    }
    td_checkpoint_told(c->told, status, error);
    c->told = NULL;
    atomic_fetch_sub(&all->checkpoints, 1);
    tb_error ignored;
    if (status != TB_OK || !c->pause || td_session_enter(&c->unload, &ignored) != TB_OK)
        free_checkpoint(c);
}

/* Packs the worlds and hands them to the store with the session's rows. (turn) */
static tb_status store_checkpoint(td_session *s, td_checkpoint_wait *told, bool pause,
                                  tb_error *error)
{
    td_server *server = s->all->server;
    stored_checkpoint *c = calloc(1, sizeof *c);
    if (c == NULL) return tb_fail_memory(error, sizeof *c, "a checkpoint");
    unsigned char *bytes = NULL;
    size_t size = 0, payload = 0;
    tb_status status = td_worlds_pack(s, &bytes, &size, &payload, error);
    if (status == TB_OK)
        status = td_session_put_run(s, TRIBO__V1__RUN_STATUS__RUN_STATUS_RUNNING, "", error);
    if (status != TB_OK) {
        free(bytes);
        free(c);
        return status;
    }
    td_session_put_recording(s);
    c->unload.session = s;
    c->unload.run = unload;
    c->unload.refuse = refuse_unload;
    c->unload.light = true;
    c->told = told;
    c->changes = s->changes;
    c->pause = pause;
    td_session_hold(s);
    db_snapshot snapshot;
    memset(&snapshot, 0, sizeof snapshot);
    snapshot.id = td_id_random();
    snapshot.session = s->id;
    td_sha256_parse(s->scene_id, &snapshot.scene);
    snapshot.kind = DB_SNAPSHOT_CHECKPOINT;
    snapshot.worlds = s->worlds;
    snapshot.steps = atomic_load(&s->steps);
    snapshot.time = atomic_load(&s->time);
    snapshot.size = size;
    snapshot.create_time_us = td_clock_utc_us(&server->clock);
    td_checkpoint_begin(told);
    atomic_fetch_add(&s->all->checkpoints, 1);
    atomic_store(&s->dirty, false);
    status = db_put_snapshot(server->db, &snapshot, bytes, on_checkpoint, c, error);
    if (status != TB_OK) {
        atomic_store(&s->dirty, true);
        on_checkpoint(c, status, error);
        return TB_OK; /* already reported */
    }
    /* from here on the session goes back to this, not to where it was forked */
    td_origin *origin = s->origin;
    s->origin = NULL;
    const db_session row = td_session_row(s);
    tb_error row_error;
    if (db_put_session(server->db, &row, NULL, NULL, &row_error) != TB_OK)
        td_log_write(server->log, TB_LOG_WARNING, "session.row_failed", "session=%s message=%s",
                     s->text, row_error.message);
    if (origin != NULL) td_origin_release(s->all, origin);
    return TB_OK;
}

typedef enum checkpoint_kind { CHECKPOINT, CHECKPOINT_AND_UNLOAD, RUN_ONLY } checkpoint_kind;

typedef struct checkpoint_job {
    td_job job;
    td_checkpoint_wait *told;
    checkpoint_kind kind;
} checkpoint_job;

static void end_checkpoint_job(checkpoint_job *t, tb_status status, const tb_error *error)
{
    td_checkpoint_told(t->told, status, error);
    td_session_job_release(&t->job);
    free(t);
}

static void run_checkpoint(td_job *job)
{
    checkpoint_job *t = (checkpoint_job *)job;
    td_session *s = job->session;
    tb_error error = {0};
    tb_status status = TB_OK;
    const bool pause = t->kind == CHECKPOINT_AND_UNLOAD;
    /* the worlds of a lost card cannot be fetched; the session moves at its next turn */
    const bool held = s->states != NULL && !td_device_is_gone(s->all->server, s->device);
    if (t->kind != RUN_ONLY && held && (pause || atomic_load(&s->dirty)))
        status = store_checkpoint(s, t->told, pause, &error);
    else if (s->run.known && atomic_load(&s->run_dirty))
        status = td_session_put_run(s, TRIBO__V1__RUN_STATUS__RUN_STATUS_RUNNING, "", &error);
    if (status != TB_OK) td_checkpoint_failed(s, &error);
    td_session_leave(s);
    end_checkpoint_job(t, status, &error);
}

static void refuse_checkpoint(td_job *job, const tb_error *error)
{
    (void)error;
    /* the session has ended: nothing to keep */
    end_checkpoint_job((checkpoint_job *)job, TB_OK, NULL);
}

static void enter_checkpoint(td_session *s, td_checkpoint_wait *told, checkpoint_kind kind)
{
    tb_error error = {0};
    checkpoint_job *t = calloc(1, sizeof *t);
    tb_status status = TB_OK;
    td_checkpoint_begin(told);
    if (t == NULL) {
        status = tb_fail_memory(&error, sizeof *t, "a checkpoint");
        td_checkpoint_told(told, status, &error);
        return;
    }
    t->job.session = s;
    t->job.run = run_checkpoint;
    t->job.refuse = refuse_checkpoint;
    t->told = told;
    t->kind = kind;
    td_session_hold(s);
    status = td_session_enter(&t->job, &error);
    if (status != TB_OK) end_checkpoint_job(t, status == TB_NOT_FOUND ? TB_OK : status, &error);
}

void td_session_checkpoint(td_session *s, td_checkpoint_wait *told)
{
    enter_checkpoint(s, told, CHECKPOINT);
}

void td_session_pause(td_session *s)
{
    enter_checkpoint(s, NULL, CHECKPOINT_AND_UNLOAD);
}

void td_session_write_run(td_session *s)
{
    enter_checkpoint(s, NULL, RUN_ONLY);
}
