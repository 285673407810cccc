/* Rows of grasp jobs and their results.
 *
 * Results are written in the order of the poses by the one writer, so those in the store are always the
 * first ones: a job goes on at the pose whose index is the number of its results. A result that is
 * there already is not written twice. */
#include <stdlib.h>
#include <string.h>

#include "db_internal.h"

/* ---- writes ---- */

typedef struct grasp_job_put {
    db_job job;
    db_grasp_job row;
    size_t size;
    unsigned char bytes[]; /* the request or the result */
} grasp_job_put;

static grasp_job_put *make_put(size_t size, const void *bytes, db_done *done, void *context,
                               tb_error *error)
{
    grasp_job_put *put = db_job_create(sizeof *put + size, done, context, error);
    if (put == NULL) return NULL;
    put->job.size = sizeof *put + size;
    put->size = size;
    if (size > 0) memcpy(put->bytes, bytes, size);
    return put;
}

static tb_status write_job(db_connection *connection, db_job *job, tb_error *error)
{
    const grasp_job_put *put = (const grasp_job_put *)job;
    sqlite3_stmt *s = NULL;
    const tb_status status = db_take(connection, DB_GRASP_JOB_PUT, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, &put->row.id);
    db_bind_text(s, 2, put->row.owner, sizeof put->row.owner);
    db_bind_text(s, 3, put->row.label, sizeof put->row.label);
    sqlite3_bind_int(s, 4, DB_GRASP_JOB_RUNNING);
    sqlite3_bind_int(s, 5, put->row.grasps);
    sqlite3_bind_int64(s, 6, put->row.create_time_us);
    db_bind_bytes(s, 7, put->bytes, put->size);
    return db_run_statement(connection, s, "a grasp job", error);
}

tb_status db_put_grasp_job(db *store, const db_grasp_job *row, const void *request, size_t size,
                           db_done *done, void *context, tb_error *error)
{
    grasp_job_put *put = make_put(size, request, done, context, error);
    if (put == NULL) return TB_RESOURCE_EXHAUSTED;
    put->job.write = write_job;
    put->job.full = true;
    put->row = *row;
    return db_submit(store, &put->job, error);
}

static tb_status write_end(db_connection *connection, db_job *job, tb_error *error)
{
    const grasp_job_put *put = (const grasp_job_put *)job;
    sqlite3_stmt *s = NULL;
    const tb_status status = db_take(connection, DB_GRASP_JOB_END, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, &put->row.id);
    sqlite3_bind_int(s, 2, put->row.status);
    sqlite3_bind_int64(s, 3, put->row.end_time_us);
    db_bind_text(s, 4, put->row.message, sizeof put->row.message);
    return db_run_statement(connection, s, "a grasp job", error);
}

tb_status db_end_grasp_job(db *store, const db_grasp_job *row, tb_error *error)
{
    grasp_job_put *put = make_put(0, NULL, NULL, NULL, error);
    if (put == NULL) return TB_RESOURCE_EXHAUSTED;
    put->job.write = write_end;
    put->row = *row;
    return db_submit(store, &put->job, error);
}

static tb_status write_result(db_connection *connection, db_job *job, tb_error *error)
{
    const grasp_job_put *put = (const grasp_job_put *)job;
    sqlite3_stmt *s = NULL;
    tb_status status = db_take(connection, DB_GRASP_RESULT_PUT, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, &put->row.id);
    sqlite3_bind_int(s, 2, put->row.results);
    db_bind_bytes(s, 3, put->bytes, put->size);
    status = db_run_statement(connection, s, "a grasp's result", error);
    if (status != TB_OK || sqlite3_changes(connection->handle) == 0) return status;
    status = db_take(connection, DB_GRASP_JOB_COUNT, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, &put->row.id);
    sqlite3_bind_int(s, 2, put->row.held);
    sqlite3_bind_int(s, 3, put->row.uncertified);
    sqlite3_bind_int64(s, 4, (int64_t)put->size);
    return db_run_statement(connection, s, "a grasp job", error);
}

tb_status db_put_grasp_result(db *store, const db_grasp_result *result, tb_error *error)
{
    grasp_job_put *put = make_put(result->size, result->bytes, NULL, NULL, error);
    if (put == NULL) return TB_RESOURCE_EXHAUSTED;
    put->job.write = write_result;
    put->job.compound = true;
    put->row.id = result->job;
    put->row.results = result->pose;
    put->row.held = result->held ? 1 : 0;
    put->row.uncertified = result->uncertified;
    return db_submit(store, &put->job, error);
}

/* ---- reads ---- */

static tb_status read_job(db_query *query, void *rows, int32_t index, tb_error *error)
{
    sqlite3_stmt *s = query->statement;
    db_grasp_job *row = (db_grasp_job *)rows + index;
    (void)error;
    memset(row, 0, sizeof *row);
    db_column_bytes(s, 1, row->id.bytes, sizeof row->id.bytes);
    db_column_text(s, 2, row->owner, sizeof row->owner);
    db_column_text(s, 3, row->label, sizeof row->label);
    int32_t *const numbers[] = {&row->status, &row->grasps, &row->results, &row->held,
                                &row->uncertified};
    for (int i = 0; i < 5; i++) *numbers[i] = sqlite3_column_int(s, 4 + i);
    row->result_bytes = sqlite3_column_int64(s, 9);
    row->create_time_us = sqlite3_column_int64(s, 10);
    row->end_time_us = sqlite3_column_int64(s, 11);
    db_column_text(s, 12, row->message, sizeof row->message);
    return TB_OK;
}

tb_status db_get_grasp_job(db *store, const db_id *id, db_grasp_job *row, tb_error *error)
{
    db_query query;
    tb_status status = db_query_begin(store, DB_GRASP_JOB_GET, &query, error);
    if (status != TB_OK) return status;
    db_bind_id(query.statement, 1, id);
    status = db_query_one(&query, "grasp job", error);
    if (status == TB_OK) status = read_job(&query, row, 0, error);
    db_query_end(&query);
    return status;
}

/* malloc'ed bytes of a column. */
static tb_status take_bytes(sqlite3_stmt *s, int column, unsigned char **bytes, size_t *size,
                            tb_error *error)
{
    const void *from = sqlite3_column_blob(s, column);
    *size = (size_t)sqlite3_column_bytes(s, column);
    *bytes = malloc(*size + 1);
    if (*bytes == NULL) return tb_fail_memory(error, *size, "a grasp job");
    if (*size > 0) memcpy(*bytes, from, *size);
    return TB_OK;
}

tb_status db_get_grasp_request(db *store, const db_id *id, unsigned char **bytes, size_t *size,
                               tb_error *error)
{
    db_query query;
    *bytes = NULL;
    tb_status status = db_query_begin(store, DB_GRASP_JOB_REQUEST, &query, error);
    if (status != TB_OK) return status;
    db_bind_id(query.statement, 1, id);
    status = db_query_one(&query, "grasp job", error);
    if (status == TB_OK) status = take_bytes(query.statement, 0, bytes, size, error);
    db_query_end(&query);
    return status;
}

tb_status db_find_grasp_job(db *store, const db_id *lower, const db_id *upper, db_id *found,
                            int32_t *count, tb_error *error)
{
    return db_query_between(store, DB_GRASP_JOB_BETWEEN, lower, upper, sizeof *found, found, count,
                            error);
}

tb_status db_list_grasp_jobs(db *store, const char *owner, const char *token, db_grasp_job *rows,
                             int32_t capacity, int32_t *count, char next[DB_TOKEN_SIZE],
                             tb_error *error)
{
    db_page page = {.list = 'g'};
    db_query query;
    *count = 0;
    if (owner != NULL) page.filter = db_page_hash(0, owner, strlen(owner) + 1);
    tb_status status = db_page_parse(&page, token, error);
    if (status == TB_OK)
        status = db_query_begin(store, owner != NULL ? DB_GRASP_JOB_LIST_OWNER : DB_GRASP_JOB_LIST,
                                &query, error);
    if (status != TB_OK) return status;
    if (owner != NULL) db_bind_text(query.statement, 3, owner, SIZE_MAX);
    status = db_page_read(&query, &page, read_job, rows, capacity, count, next, error);
    db_query_end(&query);
    return status;
}

tb_status db_list_open_grasp_jobs(db *store, int64_t after, db_grasp_job *row, int64_t *number,
                                  bool *found, tb_error *error)
{
    db_query query;
    *found = false;
    tb_status status = db_query_begin(store, DB_GRASP_JOB_OPEN, &query, error);
    if (status != TB_OK) return status;
    sqlite3_bind_int64(query.statement, 1, after);
    status = db_next_row(query.connection, query.statement, found, "grasp jobs", error);
    if (status == TB_OK && *found) {
        *number = sqlite3_column_int64(query.statement, 0);
        status = read_job(&query, row, 0, error);
    }
    db_query_end(&query);
    return status;
}

tb_status db_list_grasp_results(db *store, const db_id *job, int32_t first, db_grasp_result *rows,
                                int32_t capacity, int32_t *count, tb_error *error)
{
    db_query query;
    *count = 0;
    tb_status status = db_query_begin(store, DB_GRASP_RESULT_LIST, &query, error);
    if (status != TB_OK) return status;
    db_bind_id(query.statement, 1, job);
    sqlite3_bind_int(query.statement, 2, first);
    sqlite3_bind_int(query.statement, 3, capacity);
    while (*count < capacity && status == TB_OK) {
        bool row = false;
        db_grasp_result *to = &rows[*count];
        status = db_next_row(query.connection, query.statement, &row, "a job's results", error);
        if (status != TB_OK || !row) break;
        *to = (db_grasp_result){.job = *job, .pose = sqlite3_column_int(query.statement, 0)};
        status = take_bytes(query.statement, 1, &to->bytes, &to->size, error);
        if (status == TB_OK) ++*count;
    }
    db_query_end(&query);
    return status;
}
