/* Rows of runs and their history: step summaries and events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db_internal.h"

/* ---- runs ---- */

typedef struct run_job {
    db_job job;
    db_run run;
    char end_reason[64]; /* of the run's session */
    size_t options_size;
    char options_json[]; /* without a zero; run.options_json says whether there is one */
} run_job;

static tb_status write_run(db_connection *connection, db_job *job, tb_error *error)
{
    const run_job *put = (const run_job *)job;
    const db_run *run = &put->run;
    sqlite3_stmt *s = NULL;
    const tb_status status = db_take(connection, DB_RUN_PUT, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, &run->id);
    sqlite3_bind_int(s, 2, run->kind);
    sqlite3_bind_int(s, 3, run->status);
    db_bind_text(s, 4, run->owner, sizeof run->owner);
    db_bind_text(s, 5, run->label, sizeof run->label);
    db_bind_sha256(s, 6, &run->scene);
    if (run->options_json != NULL) db_bind_text(s, 7, put->options_json, put->options_size);
    db_bind_text(s, 8, run->build, sizeof run->build);
    db_bind_text(s, 9, run->device, sizeof run->device);
    const int64_t numbers[] = {run->start_time_us,   run->end_time_us, run->worlds,     run->steps,
                               run->compute_time_us, run->grasps,      run->grasps_held};
    for (int i = 0; i < (int)(sizeof numbers / sizeof *numbers); i++)
        sqlite3_bind_int64(s, 10 + i, numbers[i]);
    db_bind_text(s, 17, run->message, sizeof run->message);
    db_bind_certificate(s, 18, &run->certificate);
    return db_run_statement(connection, s, "a run", error);
}

static tb_status write_session_run_end(db_connection *connection, db_job *job, tb_error *error)
{
    const run_job *end = (const run_job *)job;
    const tb_status status = write_run(connection, job, error);
    if (status != TB_OK) return status;
    return db_write_session_end(connection, &end->run.id, end->end_reason, error);
}

/* NULL with the error filled when memory is short. */
static run_job *create_run_job(const db_run *run, db_done *done, void *context, tb_error *error)
{
    const size_t size = run->options_json != NULL ? strlen(run->options_json) : 0;
    run_job *put = db_job_create(sizeof *put + size, done, context, error);
    if (put == NULL) return NULL;
    put->job.write = write_run;
    put->job.size = sizeof *put + size;
    put->run = *run;
    put->options_size = size;
    if (size != 0) memcpy(put->options_json, run->options_json, size);
    return put;
}

tb_status db_put_run(db *store, const db_run *run, db_done *done, void *context, tb_error *error)
{
    run_job *put = create_run_job(run, done, context, error);
    return put != NULL ? db_submit(store, &put->job, error) : TB_RESOURCE_EXHAUSTED;
}

tb_status db_end_session_run(db *store, const db_run *run, const char *reason, db_done *done,
                             void *context, tb_error *error)
{
    run_job *end = create_run_job(run, done, context, error);
    if (end == NULL) return TB_RESOURCE_EXHAUSTED;
    end->job.write = write_session_run_end;
    end->job.compound = true;
    snprintf(end->end_reason, sizeof end->end_reason, "%s", reason);
    return db_submit(store, &end->job, error);
}

static tb_status read_run(db_query *query, void *rows, int32_t index, tb_error *error)
{
    sqlite3_stmt *s = query->statement;
    db_run *run = (db_run *)rows + index;
    memset(run, 0, sizeof *run);
    const unsigned char *options = sqlite3_column_text(s, 7);
    if (options != NULL) {
        run->options_json = strdup((const char *)options);
        if (run->options_json == NULL)
            return tb_fail_memory(error, strlen((const char *)options), "a run's options");
    }
    db_column_bytes(s, 1, run->id.bytes, sizeof run->id.bytes);
    run->kind = sqlite3_column_int(s, 2);
    run->status = sqlite3_column_int(s, 3);
    db_column_text(s, 4, run->owner, sizeof run->owner);
    db_column_text(s, 5, run->label, sizeof run->label);
    db_column_bytes(s, 6, run->scene.bytes, sizeof run->scene.bytes);
    db_column_text(s, 8, run->build, sizeof run->build);
    db_column_text(s, 9, run->device, sizeof run->device);
    int64_t *const numbers[] = {&run->start_time_us, &run->end_time_us,     &run->worlds,
                                &run->steps,         &run->compute_time_us, &run->grasps,
                                &run->grasps_held};
    for (int i = 0; i < (int)(sizeof numbers / sizeof *numbers); i++)
        *numbers[i] = sqlite3_column_int64(s, 10 + i);
    db_column_text(s, 17, run->message, sizeof run->message);
    db_column_certificate(s, 18, &run->certificate);
    return TB_OK;
}

tb_status db_get_run(db *store, const db_id *id, db_run *run, tb_error *error)
{
    db_query query;
    tb_status status = db_query_begin(store, DB_RUN_GET, &query, error);
    if (status != TB_OK) return status;
    db_bind_id(query.statement, 1, id);
    status = db_query_one(&query, "run", error);
    if (status == TB_OK) status = read_run(&query, run, 0, error);
    db_query_end(&query);
    return status;
}

tb_status db_find_run(db *store, const db_id *lower, const db_id *upper, db_id *found,
                      int32_t *count, tb_error *error)
{
    return db_query_between(store, DB_RUN_BETWEEN, lower, upper, sizeof *found, found, count,
                            error);
}

tb_status db_list_runs(db *store, const db_run_filter *filter, const char *token, db_run *runs,
                       int32_t capacity, int32_t *count, char next[DB_TOKEN_SIZE], tb_error *error)
{
    /* one statement for each set of filters, in the order of the list */
    const int chosen =
        (filter->kind != 0) + 2 * (filter->scene != NULL) + 4 * (filter->owner != NULL);
    db_page page = {.list = 'r'};
    page.filter = db_page_hash(0, &filter->kind, sizeof filter->kind);
    if (filter->scene != NULL)
        page.filter = db_page_hash(page.filter, filter->scene->bytes, DB_SHA256_SIZE);
    if (filter->owner != NULL)
        page.filter = db_page_hash(page.filter, filter->owner, strlen(filter->owner) + 1);

    db_query query;
    *count = 0;
    tb_status status = db_page_parse(&page, token, error);
    if (status == TB_OK)
        status = db_query_begin(store, (db_statement)(DB_RUN_LIST + chosen), &query, error);
    if (status != TB_OK) return status;
    sqlite3_stmt *s = query.statement;
    if (filter->kind != 0) sqlite3_bind_int(s, 3, filter->kind);
    if (filter->scene != NULL) db_bind_sha256(s, 4, filter->scene);
    if (filter->owner != NULL) db_bind_text(s, 5, filter->owner, SIZE_MAX);
    status = db_page_read(&query, &page, read_run, runs, capacity, count, next, error);
    db_query_end(&query);
    if (status != TB_OK) {
        for (int32_t i = 0; i < *count; i++) free((void *)runs[i].options_json);
        *count = 0;
    }
    return status;
}

/* ---- step summaries ---- */

typedef struct summary_job {
    db_job job;
    db_step_summary summary;
} summary_job;

static tb_status write_summary(db_connection *connection, db_job *job, tb_error *error)
{
    const db_step_summary *summary = &((const summary_job *)job)->summary;
    sqlite3_stmt *s = NULL;
    const tb_status status = db_take(connection, DB_STEP_SUMMARY_PUT, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, &summary->run);
    sqlite3_bind_int64(s, 2, summary->step);
    sqlite3_bind_int64(s, 3, summary->time_us);
    sqlite3_bind_int(s, 4, summary->steps);
    db_bind_certificate(s, 5, &summary->certificate);
    return db_run_statement(connection, s, "a step summary", error);
}

void db_put_step_summary(db *store, const db_step_summary *summary)
{
    summary_job *put = db_job_create(sizeof *put, NULL, NULL, NULL);
    if (put == NULL) {
        atomic_fetch_add(&store->dropped_summaries, 1);
        return;
    }
    put->job.write = write_summary;
    put->job.summary = true;
    put->summary = *summary;
    db_submit(store, &put->job, NULL);
}

/* ---- events ---- */

typedef struct event_job {
    db_job job;
    db_event event;
} event_job;

static tb_status write_event(db_connection *connection, db_job *job, tb_error *error)
{
    const db_event *event = &((const event_job *)job)->event;
    sqlite3_stmt *s = NULL;
    const tb_status status = db_take(connection, DB_EVENT_PUT, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, &event->run);
    sqlite3_bind_int64(s, 2, event->time_us);
    db_bind_text(s, 3, event->kind, sizeof event->kind);
    db_bind_text(s, 4, event->message, sizeof event->message);
    return db_run_statement(connection, s, "an event", error);
}

tb_status db_put_event(db *store, const db_event *event, tb_error *error)
{
    event_job *put = db_job_create(sizeof *put, NULL, NULL, error);
    if (put == NULL) return TB_RESOURCE_EXHAUSTED;
    put->job.write = write_event;
    put->event = *event;
    return db_submit(store, &put->job, error);
}

/* ---- histories: the newest rows of a run, turned so that the oldest comes first ---- */

typedef void history_reader(sqlite3_stmt *, void *row);

static void read_summary(sqlite3_stmt *s, void *row)
{
    db_step_summary *summary = row;
    db_column_bytes(s, 0, summary->run.bytes, sizeof summary->run.bytes);
    summary->step = sqlite3_column_int64(s, 1);
    summary->time_us = sqlite3_column_int64(s, 2);
    summary->steps = sqlite3_column_int(s, 3);
    db_column_certificate(s, 4, &summary->certificate);
}

static void read_event(sqlite3_stmt *s, void *row)
{
    db_event *event = row;
    db_column_bytes(s, 0, event->run.bytes, sizeof event->run.bytes);
    event->time_us = sqlite3_column_int64(s, 1);
    db_column_text(s, 2, event->kind, sizeof event->kind);
    db_column_text(s, 3, event->message, sizeof event->message);
}

static tb_status list_history(db *store, db_statement statement, const db_id *run, void *rows,
                              size_t size, history_reader *read, int32_t capacity, int32_t *count,
                              tb_error *error)
{
    *count = 0;
    db_query query;
    tb_status status = db_query_begin(store, statement, &query, error);
    if (status != TB_OK) return status;
    db_bind_id(query.statement, 1, run);
    sqlite3_bind_int(query.statement, 2, capacity);
    unsigned char *const end = (unsigned char *)rows + (size_t)capacity * size;
    while (*count < capacity) {
        bool row = false;
        status = db_next_row(query.connection, query.statement, &row, "a run's history", error);
        if (status != TB_OK || !row) break;
        ++*count;
        read(query.statement, end - (size_t)*count * size);
    }
    db_query_end(&query);
    memmove(rows, end - (size_t)*count * size, (size_t)*count * size);
    if (status != TB_OK) *count = 0;
    return status;
}

tb_status db_list_step_summaries(db *store, const db_id *run, db_step_summary *summaries,
                                 int32_t capacity, int32_t *count, tb_error *error)
{
    return list_history(store, DB_STEP_SUMMARY_LIST, run, summaries, sizeof *summaries,
                        read_summary, capacity, count, error);
}

tb_status db_list_events(db *store, const db_id *run, db_event *events, int32_t capacity,
                         int32_t *count, tb_error *error)
{
    return list_history(store, DB_EVENT_LIST, run, events, sizeof *events, read_event, capacity,
                        count, error);
}
