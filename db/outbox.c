/* The outbox in SQLite: see outbox.h and schema/0006_outbox.sql. */
#include "outbox.h"

#include <string.h>

#include "db_internal.h"

enum { TARGET_SIZE = 64, MESSAGE_SIZE = 256 };

/* ---- at the start ---- */

/* Runs a statement with one whole number. */
static tb_status run_with(db_connection *connection, db_statement statement, int64_t number,
                          tb_error *error)
{
    sqlite3_stmt *s = NULL;
    const tb_status status = db_take(connection, statement, &s, error);
    if (status != TB_OK) return status;
    if (sqlite3_bind_parameter_count(s) > 0) sqlite3_bind_int64(s, 1, number);
    return db_run_statement(connection, s, "the outbox", error);
}

tb_status db_outbox_begin(db *store, db_connection *connection, tb_error *error)
{
    static const db_statement OPEN[] = {DB_BEGIN, DB_OUTBOX_OPEN, DB_OUTBOX_RETRY, DB_COMMIT};
    static const db_statement CLOSE[] = {DB_BEGIN, DB_OUTBOX_CLEAR, DB_OUTBOX_CLOSE, DB_COMMIT};
    const db_statement *steps = store->outbox ? OPEN : CLOSE;
    tb_status status = TB_OK;
    for (size_t i = 0; i < sizeof OPEN / sizeof *OPEN && status == TB_OK; i++)
        status = run_with(connection, steps[i], db_utc_us(), error);
    return status;
}

/* ---- jobs of the writer ---- */

typedef struct aim_job {
    db_job job;
    bool *filled;
    char target[TARGET_SIZE];
} aim_job;

static tb_status write_aim(db_connection *connection, db_job *job, tb_error *error)
{
    static const db_statement STEPS[] = {DB_OUTBOX_CLEAR, DB_OUTBOX_FILL_RUNS, DB_OUTBOX_COUNT_ON,
                                         DB_OUTBOX_FILL_BENCHMARKS, DB_OUTBOX_COUNT_ON};
    const aim_job *aim = (const aim_job *)job;
    sqlite3_stmt *s = NULL;
    tb_status status = db_take(connection, DB_OUTBOX_AIM, &s, error);
    if (status != TB_OK) return status;
    db_bind_text(s, 1, aim->target, sizeof aim->target);
    status = db_run_statement(connection, s, "the outbox", error);
    *aim->filled = status == TB_OK && sqlite3_changes(connection->handle) > 0;
    if (!*aim->filled) return status;
    const int64_t now_us = db_utc_us();
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS && status == TB_OK; i++)
        status = run_with(connection, STEPS[i], now_us, error);
    return status;
}

tb_status db_outbox_aim(db *store, const char *target, bool *filled, tb_error *error)
{
    *filled = false;
    if (strlen(target) >= TARGET_SIZE)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "target",
                             "the identity '%.40s...' is too long", target);
    aim_job *aim = db_job_create(sizeof *aim, NULL, NULL, error);
    if (aim == NULL) return TB_RESOURCE_EXHAUSTED;
    aim->job.write = write_aim;
    aim->job.full = true;
    aim->job.compound = true;
    aim->filled = filled;
    memcpy(aim->target, target, strlen(target) + 1);
    return db_submit_and_wait(store, &aim->job, error);
}

typedef struct acknowledge_job {
    db_job job;
    int32_t count;
    int64_t sequences[];
} acknowledge_job;

static tb_status write_acknowledge(db_connection *connection, db_job *job, tb_error *error)
{
    const acknowledge_job *acknowledge = (const acknowledge_job *)job;
    tb_status status = TB_OK;
    for (int32_t i = 0; i < acknowledge->count && status == TB_OK; i++)
        status = run_with(connection, DB_OUTBOX_DELETE, acknowledge->sequences[i], error);
    return status;
}

tb_status db_outbox_acknowledge(db *store, const db_outbox_entry *entries, int32_t count,
                                tb_error *error)
{
    if (count == 0) return TB_OK;
    const size_t size = (size_t)count * sizeof(int64_t);
    acknowledge_job *job = db_job_create(sizeof *job + size, NULL, NULL, error);
    if (job == NULL) return TB_RESOURCE_EXHAUSTED;
    job->job.write = write_acknowledge;
    job->job.compound = true;
    job->count = count;
    for (int32_t i = 0; i < count; i++) job->sequences[i] = entries[i].sequence;
    return db_submit_and_wait(store, &job->job, error);
}

typedef struct refuse_job {
    db_job job;
    int64_t sequence;
    char message[MESSAGE_SIZE];
} refuse_job;

static tb_status write_refuse(db_connection *connection, db_job *job, tb_error *error)
{
    const refuse_job *refuse = (const refuse_job *)job;
    sqlite3_stmt *s = NULL;
    const tb_status status = db_take(connection, DB_OUTBOX_REFUSE, &s, error);
    if (status != TB_OK) return status;
    sqlite3_bind_int64(s, 1, refuse->sequence);
    db_bind_text(s, 2, refuse->message, sizeof refuse->message);
    return db_run_statement(connection, s, "the outbox", error);
}

tb_status db_outbox_refuse(db *store, const db_outbox_entry *entry, const char *message,
                           tb_error *error)
{
    refuse_job *refuse = db_job_create(sizeof *refuse, NULL, NULL, error);
    if (refuse == NULL) return TB_RESOURCE_EXHAUSTED;
    refuse->job.write = write_refuse;
    refuse->sequence = entry->sequence;
    strncpy(refuse->message, message, sizeof refuse->message - 1);
    return db_submit_and_wait(store, &refuse->job, error);
}

/* ---- reading ---- */

tb_status db_outbox_list(db *store, db_outbox_entry *entries, int32_t capacity, int32_t *count,
                         tb_error *error)
{
    db_query query;
    *count = 0;
    tb_status status = db_query_begin(store, DB_OUTBOX_LIST, &query, error);
    if (status != TB_OK) return status;
    sqlite3_bind_int(query.statement, 1, capacity);
    while (*count < capacity) {
        bool row = false;
        status = db_next_row(query.connection, query.statement, &row, "the outbox", error);
        if (status != TB_OK || !row) break;
        db_outbox_entry *entry = &entries[(*count)++];
        entry->sequence = sqlite3_column_int64(query.statement, 0);
        entry->kind = sqlite3_column_int(query.statement, 1);
        db_column_bytes(query.statement, 2, entry->id.bytes, sizeof entry->id.bytes);
    }
    db_query_end(&query);
    return status;
}

tb_status db_outbox_measure_now(db *store, db_outbox_measure *measure, tb_error *error)
{
    db_query query;
    tb_status status = db_query_begin(store, DB_OUTBOX_MEASURE, &query, error);
    if (status != TB_OK) return status;
    status = db_query_one(&query, "outbox", error);
    if (status == TB_OK)
        *measure = (db_outbox_measure){.length = sqlite3_column_int64(query.statement, 0),
                                       .refused = sqlite3_column_int64(query.statement, 1),
                                       .oldest_us = sqlite3_column_int64(query.statement, 2)};
    db_query_end(&query);
    return status;
}
