/* Connections: opening, statements that are prepared once, values in and out, SQLite's complaints
 * as statuses. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "db_internal.h"

static const char *const TEXTS[DB_STATEMENTS] = {
#define STATEMENT_TEXT(name, text) text,
    DB_STATEMENT_LIST(STATEMENT_TEXT)
#undef STATEMENT_TEXT
};

const char *db_statement_text(db_statement statement)
{
    return TEXTS[statement];
}

/* ---- statuses ---- */

static tb_status status_of(int code)
{
    if (code == SQLITE_IOERR_SHORT_READ || code == SQLITE_IOERR_CORRUPTFS) return TB_DATA_LOSS;
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE: return TB_OK;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return TB_DATA_LOSS;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG: return TB_RESOURCE_EXHAUSTED;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return TB_UNAVAILABLE;
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
    case SQLITE_CONSTRAINT: return TB_FAILED_PRECONDITION;
    default: return TB_INTERNAL;
    }
}

tb_status db_fail(tb_error *error, sqlite3 *handle, int code, const char *what)
{
    const int extended = handle != NULL ? sqlite3_extended_errcode(handle) : code;
    if ((extended & 0xff) == (code & 0xff)) code = extended;
    if (code == SQLITE_CONSTRAINT_FOREIGNKEY)
        return tb_fail(error, TB_FAILED_PRECONDITION,
                       "%s refers to something that is not in the store", what);
    const char *text = handle != NULL ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
    return tb_fail(error, status_of(code), "%s: %s", what, text);
}

/* The file that a connection has open, while it is being opened. */
static const char *name_of(const db_connection *connection)
{
    if (connection->serves) return "the store";
    const char *path = sqlite3_db_filename(connection->handle, "main");
    return path != NULL && *path != '\0' ? path : "the store in memory";
}

/* ---- connections ---- */

tb_status db_execute(db_connection *connection, const char *sql, tb_error *error)
{
    const int code = sqlite3_exec(connection->handle, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? TB_OK
                             : db_fail(error, connection->handle, code, name_of(connection));
}

tb_status db_ask_number(db_connection *connection, const char *sql, int64_t *number,
                        tb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(connection->handle, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    if (code == SQLITE_ROW) *number = sqlite3_column_int64(statement, 0);
    const tb_status status =
        code == SQLITE_ROW ? TB_OK : db_fail(error, connection->handle, code, name_of(connection));
    sqlite3_finalize(statement);
    return status;
}

tb_status db_connection_open(db_connection *connection, const char *path, bool writes,
                             tb_error *error)
{
    memset(connection, 0, sizeof *connection);
    const int flags = writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    const int code = sqlite3_open_v2(path, &connection->handle, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK) {
        const tb_status status = db_fail(error, connection->handle, code, path);
        db_connection_close(connection);
        return status;
    }
    sqlite3_extended_result_codes(connection->handle, 1);
    sqlite3_busy_timeout(connection->handle, DB_BUSY_TIMEOUT_MS);
    /* a damaged schema runs nothing of its own; a page that lies is an error, not an answer */
    sqlite3_db_config(connection->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(connection->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return TB_OK;
}

void db_connection_close(db_connection *connection)
{
    for (int i = 0; i < DB_STATEMENTS; i++) sqlite3_finalize(connection->statements[i]);
    sqlite3_close(connection->handle);
    memset(connection, 0, sizeof *connection);
}

/* ---- statements ---- */

tb_status db_take(db_connection *connection, db_statement statement, sqlite3_stmt **taken,
                  tb_error *error)
{
    sqlite3_stmt **place = &connection->statements[statement];
    int code = SQLITE_OK;
    if (*place == NULL)
        code = sqlite3_prepare_v3(connection->handle, TEXTS[statement], -1,
                                  SQLITE_PREPARE_PERSISTENT, place, NULL);
    *taken = *place;
    return code == SQLITE_OK ? TB_OK
                             : db_fail(error, connection->handle, code, name_of(connection));
}

void db_give_back(sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}

tb_status db_next_row(db_connection *connection, sqlite3_stmt *statement, bool *row,
                      const char *what, tb_error *error)
{
    const int code = sqlite3_step(statement);
    *row = code == SQLITE_ROW;
    if (*row) return TB_OK;
    const tb_status status =
        code == SQLITE_DONE ? TB_OK : db_fail(error, connection->handle, code, what);
    db_give_back(statement);
    return status;
}

tb_status db_run_statement(db_connection *connection, sqlite3_stmt *statement, const char *what,
                           tb_error *error)
{
    bool row = false;
    const tb_status status = db_next_row(connection, statement, &row, what, error);
    if (row) db_give_back(statement);
    return status;
}

/* ---- values ---- */

void db_bind_text(sqlite3_stmt *statement, int index, const char *text, size_t size)
{
    sqlite3_bind_text(statement, index, text, (int)strnlen(text, size), SQLITE_STATIC);
}

void db_bind_bytes(sqlite3_stmt *statement, int index, const void *bytes, uint64_t size)
{
    /* no pointer would be NULL, not a blob of no bytes */
    sqlite3_bind_blob64(statement, index, size != 0 ? bytes : "", size, SQLITE_STATIC);
}

void db_bind_id(sqlite3_stmt *statement, int index, const db_id *id)
{
    db_bind_bytes(statement, index, id->bytes, sizeof id->bytes);
}

void db_bind_sha256(sqlite3_stmt *statement, int index, const db_sha256 *digest)
{
    db_bind_bytes(statement, index, digest->bytes, sizeof digest->bytes);
}

void db_bind_certificate(sqlite3_stmt *statement, int first, const db_certificate *c)
{
    const double numbers[] = {
        c->time,          c->residual, c->penetration,  c->cone_error, c->complementarity_error,
        c->closure_error, c->energy,   c->energy_change};
    sqlite3_bind_int64(statement, first++, c->outcome);
    sqlite3_bind_int64(statement, first++, c->step);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sqlite3_bind_double(statement, first++, numbers[i]);
    sqlite3_bind_int64(statement, first++, c->contacts);
    sqlite3_bind_int64(statement, first++, c->rows);
    sqlite3_bind_int64(statement, first++, c->iterations);
    db_bind_text(statement, first++, c->solver, sizeof c->solver);
    sqlite3_bind_int64(statement, first, c->flags);
}

void db_column_text(sqlite3_stmt *statement, int index, char *text, size_t size)
{
    const unsigned char *from = sqlite3_column_text(statement, index);
    const size_t length = from != NULL ? (size_t)sqlite3_column_bytes(statement, index) : 0;
    const size_t kept = length < size ? length : size - 1;
    if (kept != 0) memcpy(text, from, kept);
    memset(text + kept, 0, size - kept);
}

void db_column_bytes(sqlite3_stmt *statement, int index, void *bytes, size_t size)
{
    const void *from = sqlite3_column_blob(statement, index);
    const size_t length = from != NULL ? (size_t)sqlite3_column_bytes(statement, index) : 0;
    const size_t kept = length < size ? length : size;
    if (kept != 0) memcpy(bytes, from, kept);
    memset((unsigned char *)bytes + kept, 0, size - kept);
}

double db_column_number(sqlite3_stmt *statement, int index)
{
    if (sqlite3_column_type(statement, index) == SQLITE_NULL) return (double)NAN;
    return sqlite3_column_double(statement, index);
}

void db_column_certificate(sqlite3_stmt *statement, int first, db_certificate *c)
{
    double *const numbers[] = {&c->time,
                               &c->residual,
                               &c->penetration,
                               &c->cone_error,
                               &c->complementarity_error,
                               &c->closure_error,
                               &c->energy,
                               &c->energy_change};
    c->outcome = sqlite3_column_int(statement, first++);
    c->step = sqlite3_column_int64(statement, first++);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = db_column_number(statement, first++);
    c->contacts = sqlite3_column_int64(statement, first++);
    c->rows = sqlite3_column_int64(statement, first++);
    c->iterations = sqlite3_column_int64(statement, first++);
    db_column_text(statement, first++, c->solver, sizeof c->solver);
    c->flags = (uint32_t)sqlite3_column_int64(statement, first);
}

/* ---- blobs ---- */

int64_t db_crc32(const void *bytes, uint64_t size)
{
    return (int64_t)crc32_z(0, bytes, (z_size_t)size);
}

tb_status db_read_blob(db_connection *connection, const char *table, int64_t number, uint64_t size,
                       int64_t crc32, unsigned char **bytes, tb_error *error)
{
    *bytes = NULL;
    sqlite3_blob *blob = NULL;
    int code = sqlite3_blob_open(connection->handle, "main", table, "bytes", number, 0, &blob);
    if (code != SQLITE_OK) {
        const tb_status status = db_fail(error, connection->handle, code, "stored bytes");
        sqlite3_blob_close(blob);
        /* SQLITE_ERROR: the row exists, the bytes that belong to it do not */
        return status == TB_INTERNAL
                   ? tb_fail(error, TB_DATA_LOSS, "the store has lost bytes of %s", table)
                   : status;
    }
    tb_status status = TB_OK;
    unsigned char *read = NULL;
    if ((uint64_t)sqlite3_blob_bytes(blob) != size) {
        status = tb_fail(error, TB_DATA_LOSS, "%s: %d bytes stored, %llu expected", table,
                         sqlite3_blob_bytes(blob), (unsigned long long)size);
        goto done;
    }
    read = malloc(size != 0 ? size : 1);
    if (read == NULL) {
        status = tb_fail_memory(error, size, "stored bytes");
        goto done;
    }
    code = size != 0 ? sqlite3_blob_read(blob, read, (int)size, 0) : SQLITE_OK;
    if (code != SQLITE_OK)
        status = db_fail(error, connection->handle, code, "stored bytes");
    else if (crc32 >= 0 && db_crc32(read, size) != crc32)
        status = tb_fail(error, TB_DATA_LOSS, "%s: stored bytes have changed (checksum)", table);
done:
    sqlite3_blob_close(blob);
    if (status == TB_OK)
        *bytes = read;
    else
        free(read);
    return status;
}
