/* Rows of sessions: the data that recovery after a crash needs, and the session's end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db_internal.h"

typedef struct session_job {
    db_job job;
    db_session session;
    char reason[64];
} session_job;

/* Ends it and lets retention have its snapshots. Nothing changes where it has ended before. */
static tb_status end_session(db_connection *connection, const db_id *id, const char *reason,
                             tb_error *error)
{
    sqlite3_stmt *s = NULL;
    tb_status status = db_take(connection, DB_SESSION_END, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, id);
    sqlite3_bind_int64(s, 2, db_utc_us());
    db_bind_text(s, 3, reason, SIZE_MAX);
    status = db_run_statement(connection, s, "a session", error);
    if (status == TB_OK) status = db_take(connection, DB_SESSION_SNAPSHOTS_TRANSIENT, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, id);
    return db_run_statement(connection, s, "a session's snapshots", error);
}

static tb_status write_session(db_connection *connection, db_job *job, tb_error *error)
{
    const session_job *put = (const session_job *)job;
    const db_session *session = &put->session;
    sqlite3_stmt *s = NULL;
    tb_status status = db_take(connection, DB_SESSION_PUT, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, &session->id);
    db_bind_sha256(s, 2, &session->scene);
    db_bind_text(s, 3, session->owner, sizeof session->owner);
    db_bind_text(s, 4, session->label, sizeof session->label);
    sqlite3_bind_int(s, 5, session->worlds);
    sqlite3_bind_double(s, 6, session->ttl_seconds);
    sqlite3_bind_int(s, 7, session->on_disconnect);
    db_bind_bytes(s, 8, session->options, session->options_size);
    sqlite3_bind_int64(s, 9, session->create_time_us);
    sqlite3_bind_int64(s, 10, session->expire_time_us);
    sqlite3_bind_int(s, 11, session->ended);
    sqlite3_bind_int64(s, 12, session->ended ? db_utc_us() : 0);
    status = db_run_statement(connection, s, "a session", error);
    if (status == TB_OK && session->ended)
        status = end_session(connection, &session->id, "", error);
    return status;
}

tb_status db_put_session(db *store, const db_session *session, db_done *done, void *context,
                         tb_error *error)
{
    if (session->options_size > sizeof session->options)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "options_size",
                             "a session's options of %u bytes, at most %zu are kept",
                             session->options_size, sizeof session->options);
    session_job *put = db_job_create(sizeof *put, done, context, error);
    if (put == NULL) return TB_RESOURCE_EXHAUSTED;
    put->job.write = write_session;
    put->job.compound = true;
    put->session = *session;
    return db_submit(store, &put->job, error);
}

tb_status db_write_session_end(db_connection *connection, const db_id *id, const char *reason,
                               tb_error *error)
{
    sqlite3_stmt *s = NULL;
    tb_status status = db_take(connection, DB_SESSION_EXISTS, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, id);
    bool row = false;
    status = db_next_row(connection, s, &row, "a session", error);
    if (status != TB_OK) return status;
    if (!row) return tb_fail(error, TB_NOT_FOUND, "the store has no such session");
    db_give_back(s);
    return end_session(connection, id, reason, error);
}

static tb_status write_end(db_connection *connection, db_job *job, tb_error *error)
{
    const session_job *end = (const session_job *)job;
    return db_write_session_end(connection, &end->session.id, end->reason, error);
}

tb_status db_end_session(db *store, const db_id *id, const char *reason, db_done *done,
                         void *context, tb_error *error)
{
    session_job *end = db_job_create(sizeof *end, done, context, error);
    if (end == NULL) return TB_RESOURCE_EXHAUSTED;
    end->job.write = write_end;
    end->job.compound = true;
    end->session.id = *id;
    snprintf(end->reason, sizeof end->reason, "%s", reason);
    return db_submit(store, &end->job, error);
}

static void read_row(sqlite3_stmt *s, db_session *session)
{
    db_column_bytes(s, 0, session->id.bytes, sizeof session->id.bytes);
    db_column_bytes(s, 1, session->scene.bytes, sizeof session->scene.bytes);
    db_column_text(s, 2, session->owner, sizeof session->owner);
    db_column_text(s, 3, session->label, sizeof session->label);
    session->worlds = sqlite3_column_int(s, 4);
    session->ttl_seconds = sqlite3_column_double(s, 5);
    session->on_disconnect = sqlite3_column_int(s, 6);
    db_column_bytes(s, 7, session->options, sizeof session->options);
    session->options_size = (uint32_t)sqlite3_column_bytes(s, 7);
    session->create_time_us = sqlite3_column_int64(s, 8);
    session->expire_time_us = sqlite3_column_int64(s, 9);
    session->ended = sqlite3_column_int(s, 10) != 0;
}

tb_status db_open_sessions(db *store, db_session **sessions, int32_t *count, tb_error *error)
{
    *sessions = NULL;
    *count = 0;
    db_query query;
    tb_status status = db_query_begin(store, DB_SESSION_OPEN, &query, error);
    if (status != TB_OK) return status;
    db_session *rows = malloc(sizeof *rows);
    int32_t capacity = 1;
    if (rows == NULL) status = tb_fail_memory(error, sizeof *rows, "sessions");
    while (status == TB_OK) {
        bool row = false;
        status = db_next_row(query.connection, query.statement, &row, "sessions", error);
        if (status != TB_OK || !row) break;
        if (*count == capacity) {
            capacity *= 2;
            db_session *grown = realloc(rows, (size_t)capacity * sizeof *rows);
            if (grown == NULL) {
                status = tb_fail_memory(error, (size_t)capacity * sizeof *rows, "sessions");
                break;
            }
            rows = grown;
        }
        memset(&rows[*count], 0, sizeof *rows);
        read_row(query.statement, &rows[*count]);
        ++*count;
    }
    db_query_end(&query);
    if (status == TB_OK) {
        *sessions = rows;
    } else {
        free(rows);
        *count = 0;
    }
    return status;
}
