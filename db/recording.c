/* Recordings of runs: one a run, replaced as a whole. Retention deletes the oldest written ones beyond
 * retain_recordings_bytes; they also go with their run. */
#include <stdlib.h>

#include "db_internal.h"

typedef struct recording_job {
    db_job job;
    db_id run;
    unsigned char *bytes; /* owned */
    int64_t crc32;
} recording_job;

static void release_recording(db_job *job)
{
    free(((recording_job *)job)->bytes);
    free(job);
}

static tb_status write_recording(db_connection *connection, db_job *job, tb_error *error)
{
    const recording_job *put = (const recording_job *)job;
    sqlite3_stmt *s = NULL;
    const tb_status status = db_take(connection, DB_RECORDING_PUT, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, &put->run);
    sqlite3_bind_int64(s, 2, (int64_t)job->size);
    sqlite3_bind_int64(s, 3, put->crc32);
    db_bind_bytes(s, 4, put->bytes, job->size);
    return db_run_statement(connection, s, "a recording", error);
}

tb_status db_put_recording(db *store, const db_id *run, unsigned char *bytes, uint64_t size,
                           db_done *done, void *context, tb_error *error)
{
    recording_job *put = db_job_create(sizeof *put, done, context, error);
    if (put == NULL) {
        free(bytes);
        return TB_RESOURCE_EXHAUSTED;
    }
    put->job.write = write_recording;
    put->job.release = release_recording;
    put->job.size = size;
    put->run = *run;
    put->bytes = bytes;
    put->crc32 = db_crc32(bytes, size);
    return db_submit(store, &put->job, error);
}

tb_status db_get_recording(db *store, const db_id *run, unsigned char **bytes, uint64_t *size,
                           tb_error *error)
{
    db_query query;
    *bytes = NULL;
    *size = 0;
    tb_status status = db_query_begin(store, DB_RECORDING_GET, &query, error);
    if (status != TB_OK) return status;
    db_bind_id(query.statement, 1, run);
    status = db_query_one(&query, "recording", error);
    if (status == TB_OK) {
        const int64_t number = sqlite3_column_int64(query.statement, 0);
        *size = (uint64_t)sqlite3_column_int64(query.statement, 1);
        status = db_read_blob(query.connection, "recording", number, *size,
                              sqlite3_column_int64(query.statement, 2), bytes, error);
    }
    db_query_end(&query);
    return status;
}
