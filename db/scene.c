/* Scenes: the canonical bytes of compiled models under their SHA-256. */
#include <stdlib.h>
#include <string.h>

#include "db_internal.h"

typedef struct scene_job {
    db_job job;
    db_scene scene;
    int64_t crc32;
    unsigned char bytes[];
} scene_job;

static tb_status write_scene(db_connection *connection, db_job *job, tb_error *error)
{
    const scene_job *put = (const scene_job *)job;
    sqlite3_stmt *s = NULL;
    tb_status status = db_take(connection, DB_SCENE_PUT, &s, error);
    if (status != TB_OK) return status;
    db_bind_sha256(s, 1, &put->scene.sha256);
    db_bind_text(s, 2, put->scene.name, sizeof put->scene.name);
    db_bind_bytes(s, 3, put->scene.counts, sizeof put->scene.counts);
    sqlite3_bind_int64(s, 4, (int64_t)put->scene.size);
    sqlite3_bind_int64(s, 5, put->scene.create_time_us);
    sqlite3_bind_int64(s, 6, put->crc32);
    db_bind_bytes(s, 7, put->bytes, put->scene.size);
    status = db_run_statement(connection, s, "a scene", error);
    if (status == TB_OK) status = db_take(connection, DB_SCENE_USE, &s, error);
    if (status != TB_OK) return status;
    db_bind_sha256(s, 1, &put->scene.sha256);
    sqlite3_bind_int64(s, 2, put->scene.create_time_us);
    return db_run_statement(connection, s, "a scene's use", error);
}

tb_status db_put_scene(db *store, const db_scene *scene, const void *bytes, db_done *done,
                       void *context, tb_error *error)
{
    scene_job *put = db_job_create(sizeof *put + scene->size, done, context, error);
    if (put == NULL) return TB_RESOURCE_EXHAUSTED;
    put->job.write = write_scene;
    put->job.full = true;
    put->job.compound = true;
    put->job.size = sizeof *put + scene->size;
    put->scene = *scene;
    memcpy(put->bytes, bytes, scene->size);
    put->crc32 = db_crc32(bytes, scene->size);
    return db_submit(store, &put->job, error);
}

static void read_row(sqlite3_stmt *s, db_scene *scene)
{
    db_column_bytes(s, 1, scene->sha256.bytes, sizeof scene->sha256.bytes);
    db_column_text(s, 2, scene->name, sizeof scene->name);
    db_column_bytes(s, 3, scene->counts, sizeof scene->counts);
    scene->size = (uint64_t)sqlite3_column_int64(s, 4);
    scene->create_time_us = sqlite3_column_int64(s, 5);
}

tb_status db_get_scene(db *store, const db_sha256 *sha256, db_scene *scene, unsigned char **bytes,
                       tb_error *error)
{
    *bytes = NULL;
    db_query query;
    tb_status status = db_query_begin(store, DB_SCENE_GET, &query, error);
    if (status != TB_OK) return status;
    db_bind_sha256(query.statement, 1, sha256);
    status = db_query_one(&query, "scene", error);
    if (status == TB_OK) {
        /* the statement stays open, so that row and bytes are of one moment */
        read_row(query.statement, scene);
        status = db_read_blob(query.connection, "scene", sqlite3_column_int64(query.statement, 0),
                              scene->size, sqlite3_column_int64(query.statement, 6), bytes, error);
    }
    db_query_end(&query);
    return status;
}

tb_status db_find_scene(db *store, const db_sha256 *lower, const db_sha256 *upper, db_sha256 *found,
                        int32_t *count, tb_error *error)
{
    return db_query_between(store, DB_SCENE_BETWEEN, lower, upper, sizeof *found, found, count,
                            error);
}

static tb_status read_entry(db_query *query, void *rows, int32_t index, tb_error *error)
{
    (void)error;
    read_row(query->statement, (db_scene *)rows + index);
    return TB_OK;
}

tb_status db_list_scenes(db *store, const char *token, db_scene *scenes, int32_t capacity,
                         int32_t *count, char next[DB_TOKEN_SIZE], tb_error *error)
{
    db_page page = {.list = 's'};
    db_query query;
    *count = 0;
    tb_status status = db_page_parse(&page, token, error);
    if (status == TB_OK) status = db_query_begin(store, DB_SCENE_LIST, &query, error);
    if (status != TB_OK) return status;
    status = db_page_read(&query, &page, read_entry, scenes, capacity, count, next, error);
    db_query_end(&query);
    return status;
}
