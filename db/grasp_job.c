/* Rows of grasp jobs and their results.
 *
 * The writer stores results in the order of the poses, so the stored results are always the first
 * ones: a job resumes at the pose whose index is the number of its results. A stored result is not
 * written twice. Trajectories are written in the transaction of their result, so a resumed job has
 * exactly the trajectories of its stored results. */
#include <stdlib.h>
#include <string.h>

#include "db_internal.h"

/* ---- writes ---- */

typedef struct grasp_job_put {
    db_job job;
    db_grasp_job row;
    size_t size;
    db_grasp_trajectory *trajectories; /* row.trajectories; owned, like their bytes */
    unsigned char bytes[];             /* the request or the result */
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

static bool has_scene(const db_grasp_job *row)
{
    static const db_sha256 NONE;
    return memcmp(&row->scene, &NONE, sizeof NONE) != 0;
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
    if (has_scene(&put->row))
        db_bind_sha256(s, 8, &put->row.scene);
    else
        sqlite3_bind_null(s, 8);
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

static tb_status write_trajectories(db_connection *connection, const grasp_job_put *put,
                                    int64_t *bytes, tb_error *error)
{
    tb_status status = TB_OK;
    *bytes = 0;
    for (int32_t i = 0; i < put->row.trajectories && status == TB_OK; i++) {
        const db_grasp_trajectory *t = &put->trajectories[i];
        sqlite3_stmt *s = NULL;
        status = db_take(connection, DB_GRASP_TRAJECTORY_PUT, &s, error);
        if (status != TB_OK) break;
        db_bind_id(s, 1, &put->row.id);
        sqlite3_bind_int(s, 2, t->pose);
        sqlite3_bind_int(s, 3, t->copy);
        sqlite3_bind_int64(s, 4, (int64_t)t->size);
        sqlite3_bind_int64(s, 5, db_crc32(t->bytes, t->size));
        db_bind_bytes(s, 6, t->bytes, t->size);
        status = db_run_statement(connection, s, "a grasp's trajectory", error);
        *bytes += (int64_t)t->size;
    }
    return status;
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
    int64_t bytes = 0;
    status = write_trajectories(connection, put, &bytes, error);
    if (status == TB_OK) status = db_take(connection, DB_GRASP_JOB_COUNT, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, &put->row.id);
    sqlite3_bind_int(s, 2, put->row.held);
    sqlite3_bind_int(s, 3, put->row.uncertified);
    sqlite3_bind_int64(s, 4, (int64_t)put->size);
    sqlite3_bind_int(s, 5, put->row.trajectories);
    sqlite3_bind_int64(s, 6, bytes);
    sqlite3_bind_int(s, 7, put->row.trajectories_left_out);
    return db_run_statement(connection, s, "a grasp job", error);
}

static void release_result(db_job *job)
{
    grasp_job_put *put = (grasp_job_put *)job;
    for (int32_t i = 0; i < put->row.trajectories; i++) free(put->trajectories[i].bytes);
    free(put->trajectories);
    free(put);
}

static tb_status copy_trajectories(grasp_job_put *put, const db_grasp_result *from, tb_error *error)
{
    const size_t count = (size_t)from->number_of_trajectories;
    put->trajectories = calloc(count + 1, sizeof *put->trajectories);
    if (put->trajectories == NULL) return tb_fail_memory(error, count, "trajectories");
    for (int32_t i = 0; i < from->number_of_trajectories; i++) {
        db_grasp_trajectory *to = &put->trajectories[i];
        *to = from->trajectories[i];
        to->bytes = malloc(to->size + 1);
        if (to->bytes == NULL) return tb_fail_memory(error, to->size, "a trajectory");
        memcpy(to->bytes, from->trajectories[i].bytes, to->size);
        put->row.trajectories = i + 1;
        put->job.size += to->size;
    }
    return TB_OK;
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
    put->row.trajectories_left_out = result->trajectories_left_out;
    put->job.release = release_result;
    const tb_status status = copy_trajectories(put, result, error);
    if (status != TB_OK) {
        release_result(&put->job);
        return status;
    }
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
    row->trajectories = sqlite3_column_int(s, 13);
    row->trajectory_bytes = sqlite3_column_int64(s, 14);
    row->trajectories_left_out = sqlite3_column_int(s, 15);
    if (sqlite3_column_type(s, 16) != SQLITE_NULL)
        db_column_bytes(s, 16, &row->scene, sizeof row->scene);
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

/* ---- trajectories ---- */

tb_status db_get_grasp_trajectory(db *store, const db_id *job, int32_t pose, int32_t copy,
                                  unsigned char **bytes, size_t *size, tb_error *error)
{
    db_query query;
    *bytes = NULL;
    *size = 0;
    tb_status status = db_query_begin(store, DB_GRASP_TRAJECTORY_GET, &query, error);
    if (status != TB_OK) return status;
    db_bind_id(query.statement, 1, job);
    sqlite3_bind_int(query.statement, 2, pose);
    sqlite3_bind_int(query.statement, 3, copy);
    status = db_query_one(&query, "trajectory", error);
    if (status == TB_OK) {
        const int64_t number = sqlite3_column_int64(query.statement, 0);
        *size = (size_t)sqlite3_column_int64(query.statement, 1);
        status = db_read_blob(query.connection, "grasp_trajectory", number, *size,
                              sqlite3_column_int64(query.statement, 2), bytes, error);
    }
    db_query_end(&query);
    return status;
}

tb_status db_list_grasp_trajectories(db *store, const db_id *job, int32_t pose, int32_t copy,
                                     db_grasp_trajectory *rows, int32_t capacity, int32_t *count,
                                     tb_error *error)
{
    db_query query;
    *count = 0;
    tb_status status = db_query_begin(store, DB_GRASP_TRAJECTORY_LIST, &query, error);
    if (status != TB_OK) return status;
    db_bind_id(query.statement, 1, job);
    sqlite3_bind_int(query.statement, 2, pose);
    sqlite3_bind_int(query.statement, 3, copy);
    sqlite3_bind_int(query.statement, 4, capacity);
    while (*count < capacity && status == TB_OK) {
        bool row = false;
        status = db_next_row(query.connection, query.statement, &row, "trajectories", error);
        if (status != TB_OK || !row) break;
        rows[(*count)++] =
            (db_grasp_trajectory){.pose = sqlite3_column_int(query.statement, 0),
                                  .copy = sqlite3_column_int(query.statement, 1),
                                  .size = (size_t)sqlite3_column_int64(query.statement, 2)};
    }
    db_query_end(&query);
    return status;
}
