/* Opens a store on a full disk for reading; the store writes nothing until the disk has free space.
 *
 * A write-ahead log needs an index in shared memory, which is a file beside the database. A
 * connection that locks the file exclusively keeps the index in its own memory, so it reads all
 * commits of the last process without allocating a page. */
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "db_internal.h"

/* Free bytes required before writing: the log's first pages, its index, and a reserve. */
enum { ROOM_BYTES = 4 << 20 };

static uint64_t room(const db *store)
{
    char folder[DB_PATH_SIZE];
    struct statvfs disk;
    snprintf(folder, sizeof folder, "%s", store->path);
    char *slash = strrchr(folder, '/');
    if (slash != NULL) *slash = '\0';
    if (statvfs(folder, &disk) != 0) return 0;
    return (uint64_t)disk.f_bavail * disk.f_frsize;
}

bool db_has_room(const db *store)
{
    return room(store) >= ROOM_BYTES;
}

bool db_disk_is_full(const db *store, tb_status status)
{
    if (store->path[0] == '\0' || status == TB_DATA_LOSS) return false;
    enum { NO_ROOM_BYTES = 64 << 10 }; /* an index has 32 KiB */
    return status == TB_RESOURCE_EXHAUSTED || room(store) < NO_ROOM_BYTES;
}

static tb_status check_version(db *store, tb_error *error)
{
    db_connection *connection = &store->writer.connection;
    int64_t version = 0, application = 0;
    tb_status status = db_ask_number(connection, "PRAGMA user_version", &version, error);
    if (status == TB_OK)
        status = db_ask_number(connection, "PRAGMA application_id", &application, error);
    if (status != TB_OK) return status;
    if (version == DB_VERSION && application == DB_APPLICATION_ID) return TB_OK;
    return tb_fail(error, TB_RESOURCE_EXHAUSTED,
                   "%s: the disk is full, and a store of version %d must be made there first",
                   store->path, DB_VERSION);
}

tb_status db_begin_reading(db *store, tb_error *cause)
{
    db_writer *w = &store->writer;
    const tb_error full = *cause;
    tb_status status = db_connection_open(&w->connection, store->path, true, cause);
    if (status == TB_OK)
        status = db_execute(&w->connection, "PRAGMA locking_mode = EXCLUSIVE", cause);
    if (status == TB_OK) status = check_version(store, cause);
    if (status == TB_OK && store->crashed) status = db_check_integrity(store, cause);
    if (status == TB_OK) status = db_execute(&w->connection, "PRAGMA query_only = ON", cause);
    if (status != TB_OK) {
        db_connection_close(&w->connection);
        return status;
    }
    sqlite3_db_config(w->connection.handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    w->connection.serves = true;
    w->trouble = (tb_error){0};
    tb_fail(&w->trouble, TB_RESOURCE_EXHAUSTED, "the disk was full at the start (%.160s)",
            full.message);
    atomic_store(&store->alone, true);
    atomic_store(&store->reading, true);
    if (!atomic_exchange(&store->failing, true))
        db_log(store, TB_LOG_ERROR,
               "%s: the disk is full: the store is read, and nothing is written until there is "
               "room (%s)",
               store->path, full.message);
    return TB_OK;
}

void db_try_writing(db *store)
{
    db_writer *w = &store->writer;
    tb_error error = {0};
    db_connection_close(&w->connection);
    tb_status status = db_begin_writing(store, &error);
    if (status == TB_OK) status = db_writer_adopt(store, &error);
    if (status == TB_OK) {
        atomic_store(&store->reading, false);
        atomic_store(&store->failing, false);
        db_log(store, TB_LOG_INFO, "%s: there is room on the disk: the store is written again",
               store->path);
    } else {
        db_log(store, TB_LOG_ERROR, "%s cannot be written yet: %s", store->path, error.message);
        db_connection_close(&w->connection);
        if (db_begin_reading(store, &error) == TB_OK) return;
        w->connection.serves = true; /* without a handle: its users get an error */
        db_log(store, TB_LOG_ERROR, "%s cannot be read: %s", store->path, error.message);
    }
}
