/* API keys, and the audit of refused ones. Only hashes come here; the keys themselves never do. */
#include <stdio.h>
#include <string.h>

#include "db_internal.h"

typedef struct key_job {
    db_job job;
    db_api_key key;
} key_job;

static tb_status write_key(db_connection *connection, db_job *job, tb_error *error)
{
    const db_api_key *key = &((const key_job *)job)->key;
    sqlite3_stmt *s = NULL;
    const tb_status status = db_take(connection, DB_KEY_PUT, &s, error);
    if (status != TB_OK) return status;
    db_bind_text(s, 1, key->id, sizeof key->id);
    db_bind_text(s, 2, key->name, sizeof key->name);
    db_bind_text(s, 3, key->hash, sizeof key->hash);
    sqlite3_bind_int(s, 4, key->scope);
    sqlite3_bind_double(s, 5, key->calls_per_second);
    sqlite3_bind_int(s, 6, key->sessions);
    sqlite3_bind_int64(s, 7, key->create_time_us);
    sqlite3_bind_int(s, 8, key->revoked);
    sqlite3_bind_int64(s, 9, key->expire_time_us);
    return db_run_statement(connection, s, "a key", error);
}

tb_status db_put_api_key(db *store, const db_api_key *key, tb_error *error)
{
    key_job *put = db_job_create(sizeof *put, NULL, NULL, error);
    if (put == NULL) return TB_RESOURCE_EXHAUSTED;
    put->job.write = write_key;
    put->job.full = true;
    put->key = *key;
    return db_submit_and_wait(store, &put->job, error);
}

static void read_row(sqlite3_stmt *s, db_api_key *key)
{
    memset(key, 0, sizeof *key);
    db_column_text(s, 0, key->id, sizeof key->id);
    db_column_text(s, 1, key->name, sizeof key->name);
    db_column_text(s, 2, key->hash, sizeof key->hash);
    key->scope = sqlite3_column_int(s, 3);
    key->calls_per_second = sqlite3_column_double(s, 4);
    key->sessions = sqlite3_column_int(s, 5);
    key->create_time_us = sqlite3_column_int64(s, 6);
    key->revoked = sqlite3_column_int(s, 7) != 0;
    key->expire_time_us = sqlite3_column_int64(s, 8);
    key->use_time_us = sqlite3_column_int64(s, 9);
}

tb_status db_get_api_key(db *store, const char *id, db_api_key *key, tb_error *error)
{
    db_query query;
    tb_status status = db_query_begin(store, DB_KEY_GET, &query, error);
    if (status != TB_OK) return status;
    db_bind_text(query.statement, 1, id, sizeof key->id);
    status = db_query_one(&query, "key", error);
    if (status == TB_OK) read_row(query.statement, key);
    db_query_end(&query);
    return status;
}

tb_status db_api_keys_mark(db *store, int64_t *mark, tb_error *error)
{
    db_query query;
    tb_status status = db_query_begin(store, DB_KEY_MARK, &query, error);
    if (status != TB_OK) return status;
    status = db_query_one(&query, "keys", error);
    if (status == TB_OK) *mark = sqlite3_column_int64(query.statement, 0);
    db_query_end(&query);
    return status;
}

tb_status db_list_api_keys(db *store, db_api_key *keys, int32_t capacity, int32_t *count,
                           tb_error *error)
{
    *count = 0;
    db_query query;
    tb_status status = db_query_begin(store, DB_KEY_LIST, &query, error);
    if (status != TB_OK) return status;
    sqlite3_bind_int(query.statement, 1, capacity);
    while (status == TB_OK && *count < capacity) {
        bool row = false;
        status = db_next_row(query.connection, query.statement, &row, "keys", error);
        if (status != TB_OK || !row) break;
        read_row(query.statement, &keys[(*count)++]);
    }
    db_query_end(&query);
    return status;
}

/* ---- uses and refusals ---- */

static tb_status write_use(db_connection *connection, db_job *job, tb_error *error)
{
    const db_api_key *key = &((const key_job *)job)->key;
    sqlite3_stmt *s = NULL;
    const tb_status status = db_take(connection, DB_KEY_USE, &s, error);
    if (status != TB_OK) return status;
    db_bind_text(s, 1, key->id, sizeof key->id);
    sqlite3_bind_int64(s, 2, key->use_time_us);
    return db_run_statement(connection, s, "a key's use", error);
}

tb_status db_note_key_use(db *store, const char *id, int64_t time_us, tb_error *error)
{
    key_job *use = db_job_create(sizeof *use, NULL, NULL, error);
    if (use == NULL) return TB_RESOURCE_EXHAUSTED;
    use->job.write = write_use;
    snprintf(use->key.id, sizeof use->key.id, "%s", id);
    use->key.use_time_us = time_us;
    return db_submit(store, &use->job, error);
}

typedef struct refusal_job {
    db_job job;
    db_key_refusal refusal;
} refusal_job;

static tb_status write_refusal(db_connection *connection, db_job *job, tb_error *error)
{
    const db_key_refusal *refusal = &((const refusal_job *)job)->refusal;
    sqlite3_stmt *s = NULL;
    const tb_status status = db_take(connection, DB_KEY_REFUSAL_PUT, &s, error);
    if (status != TB_OK) return status;
    db_bind_text(s, 1, refusal->key, sizeof refusal->key);
    db_bind_text(s, 2, refusal->peer, sizeof refusal->peer);
    db_bind_text(s, 3, refusal->reason, sizeof refusal->reason);
    sqlite3_bind_int64(s, 4, refusal->refusals);
    sqlite3_bind_int64(s, 5, refusal->first_time_us);
    sqlite3_bind_int64(s, 6, refusal->last_time_us);
    return db_run_statement(connection, s, "a refused key", error);
}

tb_status db_note_key_refusal(db *store, const db_key_refusal *refusal, tb_error *error)
{
    refusal_job *put = db_job_create(sizeof *put, NULL, NULL, error);
    if (put == NULL) return TB_RESOURCE_EXHAUSTED;
    put->job.write = write_refusal;
    put->refusal = *refusal;
    return db_submit(store, &put->job, error);
}

tb_status db_list_key_refusals(db *store, db_key_refusal *refusals, int32_t capacity,
                               int32_t *count, tb_error *error)
{
    *count = 0;
    db_query query;
    tb_status status = db_query_begin(store, DB_KEY_REFUSAL_LIST, &query, error);
    if (status != TB_OK) return status;
    sqlite3_bind_int(query.statement, 1, capacity);
    while (status == TB_OK && *count < capacity) {
        bool row = false;
        status = db_next_row(query.connection, query.statement, &row, "refused keys", error);
        if (status != TB_OK || !row) break;
        db_key_refusal *refusal = &refusals[(*count)++];
        memset(refusal, 0, sizeof *refusal);
        db_column_text(query.statement, 0, refusal->key, sizeof refusal->key);
        db_column_text(query.statement, 1, refusal->peer, sizeof refusal->peer);
        db_column_text(query.statement, 2, refusal->reason, sizeof refusal->reason);
        refusal->refusals = sqlite3_column_int64(query.statement, 3);
        refusal->first_time_us = sqlite3_column_int64(query.statement, 4);
        refusal->last_time_us = sqlite3_column_int64(query.statement, 5);
    }
    db_query_end(&query);
    return status;
}
