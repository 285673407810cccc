/* Assets: bytes under their SHA-256. */
#include <stdlib.h>
#include <string.h>

#include "db_internal.h"

typedef struct asset_job {
    db_job job;
    db_asset asset;
    const void *bytes; /* borrowed */
    int64_t crc32;
} asset_job;

static tb_status write_asset(db_connection *connection, db_job *job, tb_error *error)
{
    const asset_job *put = (const asset_job *)job;
    sqlite3_stmt *s = NULL;
    tb_status status = db_take(connection, DB_ASSET_PUT, &s, error);
    if (status != TB_OK) return status;
    db_bind_sha256(s, 1, &put->asset.sha256);
    db_bind_text(s, 2, put->asset.name, sizeof put->asset.name);
    sqlite3_bind_int64(s, 3, (int64_t)put->asset.size);
    sqlite3_bind_int64(s, 4, put->asset.create_time_us);
    sqlite3_bind_int64(s, 5, put->crc32);
    db_bind_bytes(s, 6, put->bytes, put->asset.size);
    status = db_run_statement(connection, s, "an asset", error);
    if (status == TB_OK) status = db_take(connection, DB_ASSET_USE, &s, error);
    if (status != TB_OK) return status;
    db_bind_sha256(s, 1, &put->asset.sha256);
    sqlite3_bind_int64(s, 2, put->asset.create_time_us);
    return db_run_statement(connection, s, "an asset's use", error);
}

tb_status db_put_asset(db *store, const db_asset *asset, const void *bytes, db_done *done,
                       void *context, tb_error *error)
{
    asset_job *put = db_job_create(sizeof *put, done, context, error);
    if (put == NULL) return TB_RESOURCE_EXHAUSTED;
    put->job.write = write_asset;
    put->job.full = true;
    put->job.compound = true;
    put->job.size = asset->size;
    put->asset = *asset;
    put->bytes = bytes;
    put->crc32 = db_crc32(bytes, asset->size);
    return db_submit(store, &put->job, error);
}

static void read_row(sqlite3_stmt *s, db_asset *asset)
{
    db_column_bytes(s, 1, asset->sha256.bytes, sizeof asset->sha256.bytes);
    db_column_text(s, 2, asset->name, sizeof asset->name);
    asset->size = (uint64_t)sqlite3_column_int64(s, 3);
    asset->create_time_us = sqlite3_column_int64(s, 4);
}

tb_status db_get_asset(db *store, const db_sha256 *sha256, db_asset *asset, unsigned char **bytes,
                       tb_error *error)
{
    *bytes = NULL;
    db_query query;
    tb_status status = db_query_begin(store, DB_ASSET_GET, &query, error);
    if (status != TB_OK) return status;
    db_bind_sha256(query.statement, 1, sha256);
    status = db_query_one(&query, "asset", error);
    if (status == TB_OK) {
        /* the statement stays open, so that row and bytes are of one moment */
        read_row(query.statement, asset);
        status = db_read_blob(query.connection, "asset", sqlite3_column_int64(query.statement, 0),
                              asset->size, sqlite3_column_int64(query.statement, 5), bytes, error);
    }
    db_query_end(&query);
    return status;
}

static tb_status read_entry(db_query *query, void *rows, int32_t index, tb_error *error)
{
    (void)error;
    read_row(query->statement, (db_asset *)rows + index);
    return TB_OK;
}

tb_status db_list_assets(db *store, const char *token, db_asset *assets, int32_t capacity,
                         int32_t *count, char next[DB_TOKEN_SIZE], tb_error *error)
{
    db_page page = {.list = 'a'};
    db_query query;
    *count = 0;
    tb_status status = db_page_parse(&page, token, error);
    if (status == TB_OK) status = db_query_begin(store, DB_ASSET_LIST, &query, error);
    if (status != TB_OK) return status;
    status = db_page_read(&query, &page, read_entry, assets, capacity, count, next, error);
    db_query_end(&query);
    return status;
}
