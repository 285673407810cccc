/* Reads: a small pool of read-only connections, each with statements of its own. In memory and
 * on a full disk there is only the writer's connection, which readers use between its transactions. */
#include <string.h>

#include "db_internal.h"

tb_status db_reader_take(db *store, db_connection **connection, tb_error *error)
{
    *connection = NULL;
    if (atomic_load(&store->alone)) {
        pthread_mutex_lock(&store->memory);
        *connection = &store->writer.connection;
        if (atomic_load(&store->alone)) return TB_OK;
        pthread_mutex_unlock(&store->memory); /* the disk got free space meanwhile */
    }

    /* one that is open and free, or else one more */
    pthread_mutex_lock(&store->readers_mutex);
    int chosen = -1;
    while (chosen < 0) {
        for (int i = DB_READERS - 1; i >= 0; i--)
            if (!store->reader_busy[i] && (chosen < 0 || store->readers[i].handle != NULL))
                chosen = i;
        if (chosen < 0) pthread_cond_wait(&store->readers_free, &store->readers_mutex);
    }
    store->reader_busy[chosen] = true;
    pthread_mutex_unlock(&store->readers_mutex);

    db_connection *reader = &store->readers[chosen];
    tb_status status = TB_OK;
    if (reader->handle == NULL) status = db_connection_open(reader, store->path, false, error);
    reader->serves = status == TB_OK;
    if (status == TB_OK)
        *connection = reader;
    else
        db_reader_give_back(store, reader);
    return status;
}

void db_reader_give_back(db *store, db_connection *connection)
{
    if (connection == &store->writer.connection) {
        pthread_mutex_unlock(&store->memory);
        return;
    }
    pthread_mutex_lock(&store->readers_mutex);
    store->reader_busy[connection - store->readers] = false;
    pthread_cond_signal(&store->readers_free);
    pthread_mutex_unlock(&store->readers_mutex);
}

tb_status db_query_begin(db *store, db_statement statement, db_query *query, tb_error *error)
{
    *query = (db_query){.store = store};
    tb_status status = db_reader_take(store, &query->connection, error);
    if (status != TB_OK) return status;
    status = db_take(query->connection, statement, &query->statement, error);
    if (status != TB_OK) db_query_end(query);
    return status;
}

tb_status db_query_one(db_query *query, const char *what, tb_error *error)
{
    bool row = false;
    const tb_status status = db_next_row(query->connection, query->statement, &row, what, error);
    if (status == TB_OK && !row)
        return tb_fail(error, TB_NOT_FOUND, "the store has no such %s", what);
    return status;
}

tb_status db_query_between(db *store, db_statement statement, const void *lower, const void *upper,
                           size_t size, void *key, int32_t *count, tb_error *error)
{
    db_query query;
    bool row = true;
    *count = 0;
    tb_status status = db_query_begin(store, statement, &query, error);
    if (status != TB_OK) return status;
    db_bind_bytes(query.statement, 1, lower, size);
    db_bind_bytes(query.statement, 2, upper, size);
    while (status == TB_OK && row) {
        status = db_next_row(query.connection, query.statement, &row, "a prefix", error);
        if (status != TB_OK || !row) break;
        if ((*count)++ == 0) db_column_bytes(query.statement, 0, key, size);
    }
    db_query_end(&query);
    return status;
}

void db_query_end(db_query *query)
{
    if (query->statement != NULL) db_give_back(query->statement);
    if (query->connection != NULL) db_reader_give_back(query->store, query->connection);
    *query = (db_query){0};
}
