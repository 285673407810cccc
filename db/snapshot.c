/* Snapshots: the bytes of a session's worlds at one moment. Their rows and their bytes lie in two
 * tables, so that marking a row costs nothing of its bytes. */
#include <math.h>
#include <stdlib.h>

#include "db_internal.h"

static const int64_t DROPPED_LOG_NS = INT64_C(60000000000);

_Static_assert(DB_SNAPSHOT_CHECKPOINT == 1, "statements.h says so too");

typedef struct snapshot_job {
    db_job job;
    db *store;
    db_snapshot snapshot;
    unsigned char *bytes; /* owned */
    int64_t crc32;
} snapshot_job;

static void release_snapshot(db_job *job)
{
    free(((snapshot_job *)job)->bytes);
    free(job);
}

/* Deletes the oldest snapshots beyond the bounds of a session, and logs that once a minute. */
static tb_status drop_beyond(db *store, db_connection *connection, const db_id *session,
                             tb_error *error)
{
    sqlite3_stmt *s = NULL;
    const int32_t number = store->session_snapshots;
    const uint64_t bytes = store->session_snapshots_bytes;
    if (number == 0 && bytes == 0) return TB_OK;
    tb_status status = db_take(connection, DB_SNAPSHOT_DROP_BEYOND, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, session);
    sqlite3_bind_int64(s, 2, number > 0 ? number : INT32_MAX);
    sqlite3_bind_int64(s, 3, bytes > 0 && bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX);
    status = db_run_statement(connection, s, "older snapshots", error);
    if (status != TB_OK) return status;

    db_writer *w = &store->writer;
    w->snapshots_dropped += sqlite3_changes(connection->handle);
    if (w->snapshots_dropped == 0 || db_monotonic_ns() < w->next_dropped_log_ns) return TB_OK;
    db_log(store, TB_LOG_WARNING,
           "%lld snapshots deleted: an open session keeps its newest %d, %llu bytes of them "
           "(session_snapshots, session_snapshots_bytes)",
           (long long)w->snapshots_dropped, (int)number, (unsigned long long)bytes);
    w->snapshots_dropped = 0;
    w->next_dropped_log_ns = db_monotonic_ns() + DROPPED_LOG_NS;
    return TB_OK;
}

static tb_status write_snapshot(db_connection *connection, db_job *job, tb_error *error)
{
    const snapshot_job *put = (const snapshot_job *)job;
    const db_snapshot *snapshot = &put->snapshot;
    sqlite3_stmt *s = NULL;
    tb_status status = db_take(connection, DB_SNAPSHOT_PUT, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, &snapshot->id);
    db_bind_id(s, 2, &snapshot->session);
    db_bind_sha256(s, 3, &snapshot->scene);
    sqlite3_bind_int(s, 4, (int)snapshot->kind);
    db_bind_text(s, 5, snapshot->label, sizeof snapshot->label);
    sqlite3_bind_int(s, 6, snapshot->worlds);
    sqlite3_bind_int64(s, 7, snapshot->steps);
    sqlite3_bind_double(s, 8, snapshot->time);
    sqlite3_bind_int64(s, 9, (int64_t)snapshot->size);
    sqlite3_bind_int64(s, 10, snapshot->create_time_us);
    sqlite3_bind_int64(s, 11, put->crc32);
    status = db_run_statement(connection, s, "a snapshot", error);
    if (status != TB_OK) return status;

    const int64_t number = sqlite3_last_insert_rowid(connection->handle);
    status = db_take(connection, DB_SNAPSHOT_PUT_BYTES, &s, error);
    if (status != TB_OK) return status;
    sqlite3_bind_int64(s, 1, number);
    db_bind_bytes(s, 2, put->bytes, snapshot->size);
    status = db_run_statement(connection, s, "a snapshot", error);
    if (status != TB_OK) return status;

    /* older snapshots that this one replaces */
    status = db_take(connection, DB_SNAPSHOT_DROP_CHECKPOINTS, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, &snapshot->session);
    sqlite3_bind_int64(s, 2, number);
    status = db_run_statement(connection, s, "older checkpoints", error);
    return status == TB_OK ? drop_beyond(put->store, connection, &snapshot->session, error)
                           : status;
}

tb_status db_put_snapshot(db *store, const db_snapshot *snapshot, unsigned char *bytes,
                          db_done *done, void *context, tb_error *error)
{
    snapshot_job *put = db_job_create(sizeof *put, done, context, error);
    if (put == NULL) {
        free(bytes);
        return TB_RESOURCE_EXHAUSTED;
    }
    put->job.write = write_snapshot;
    put->store = store;
    put->job.release = release_snapshot;
    put->job.full = true;
    put->job.compound = true;
    put->job.size = snapshot->size;
    put->snapshot = *snapshot;
    put->bytes = bytes;
    put->crc32 = db_crc32(bytes, snapshot->size);
    return db_submit(store, &put->job, error);
}

static tb_status read_one(db_query *query, db_snapshot *snapshot, unsigned char **bytes,
                          tb_error *error)
{
    const tb_status status = db_query_one(query, "snapshot", error);
    if (status != TB_OK) return status;
    sqlite3_stmt *s = query->statement;
    const int64_t number = sqlite3_column_int64(s, 0);
    db_column_bytes(s, 1, snapshot->id.bytes, sizeof snapshot->id.bytes);
    db_column_bytes(s, 2, snapshot->session.bytes, sizeof snapshot->session.bytes);
    db_column_bytes(s, 3, snapshot->scene.bytes, sizeof snapshot->scene.bytes);
    snapshot->kind = (db_snapshot_kind)sqlite3_column_int(s, 4);
    db_column_text(s, 5, snapshot->label, sizeof snapshot->label);
    snapshot->worlds = sqlite3_column_int(s, 6);
    snapshot->steps = sqlite3_column_int64(s, 7);
    snapshot->time = db_column_number(s, 8);
    snapshot->size = (uint64_t)sqlite3_column_int64(s, 9);
    snapshot->create_time_us = sqlite3_column_int64(s, 10);
    const bool checked = sqlite3_column_type(s, 11) != SQLITE_NULL;
    const int64_t crc32 = checked ? sqlite3_column_int64(s, 11) : -1;
    return db_read_blob(query->connection, "snapshot_bytes", number, snapshot->size, crc32, bytes,
                        error);
}

static tb_status get(db *store, db_statement statement, const db_id *id, db_snapshot *snapshot,
                     unsigned char **bytes, tb_error *error)
{
    *bytes = NULL;
    db_query query;
    tb_status status = db_query_begin(store, statement, &query, error);
    if (status != TB_OK) return status;
    db_bind_id(query.statement, 1, id);
    status = read_one(&query, snapshot, bytes, error);
    db_query_end(&query);
    return status;
}

tb_status db_get_snapshot(db *store, const db_id *id, db_snapshot *snapshot, unsigned char **bytes,
                          tb_error *error)
{
    return get(store, DB_SNAPSHOT_GET, id, snapshot, bytes, error);
}

tb_status db_latest_snapshot(db *store, const db_id *session, db_snapshot *snapshot,
                             unsigned char **bytes, tb_error *error)
{
    return get(store, DB_SNAPSHOT_LATEST, session, snapshot, bytes, error);
}
