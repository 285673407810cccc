/* Opens and closes the store: locks it for one process and checks a file that was not closed.
 *
 * The store holds a lock file beside the database by flock while it is open; the lock file names
 * the process. A clean close empties it. If it is not empty at the next start, the last process
 * crashed, and the store checks the database before use. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "db_internal.h"

int64_t db_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t db_utc_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void db_log(const db *store, tb_log_level level, const char *format, ...)
{
    if (store->log == NULL) return;
    char line[TB_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    store->log(store->log_context, level, line);
}

/* ---- the folder and its lock ---- */

static tb_status fail_path(tb_error *error, const char *path)
{
    return tb_fail(error, errno == ENOSPC ? TB_RESOURCE_EXHAUSTED : TB_FAILED_PRECONDITION,
                   "%s: %s", path, strerror(errno));
}

/* Makes the folder and the two files, for this user alone: keys' hashes lie in there. */
static tb_status make_files(db *store, const char *folder, bool existing, tb_error *error)
{
    char lock[DB_PATH_SIZE];
    if (snprintf(store->path, sizeof store->path, "%s/tribo.db", folder) >= DB_PATH_SIZE ||
        snprintf(lock, sizeof lock, "%s/tribo.lock", folder) >= DB_PATH_SIZE)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "folder",
                             "folder: a path of %zu bytes is too long", strlen(folder));
    if (existing && access(store->path, F_OK) != 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? tb_fail_field(error, TB_NOT_FOUND, "folder", "there is no store in %s", folder)
                   : fail_path(error, store->path);
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) return fail_path(error, folder);
    store->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (store->lock < 0) return fail_path(error, lock);
    return TB_OK;
}

/* Takes the lock; *crashed: the last holder did not close the store. */
static tb_status take_lock(db *store, bool *crashed, tb_error *error)
{
    char holder[32] = "";
    const bool taken = flock(store->lock, LOCK_EX | LOCK_NB) == 0;
    const int reason = errno;
    const ssize_t length = pread(store->lock, holder, sizeof holder - 1, 0);
    if (!taken && reason != EWOULDBLOCK)
        return tb_fail(error, TB_FAILED_PRECONDITION, "%s cannot be locked: %s", store->path,
                       strerror(reason));
    if (!taken)
        return tb_fail(error, TB_FAILED_PRECONDITION, "%s is in use by process %d", store->path,
                       atoi(holder));
    *crashed = length > 0;
    return TB_OK;
}

static tb_status mark_lock(db *store, bool open, tb_error *error)
{
    char text[32];
    const int length = snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (ftruncate(store->lock, 0) != 0 ||
        (open && pwrite(store->lock, text, (size_t)length, 0) != length))
        return fail_path(error, "tribo.lock");
    return TB_OK;
}

/* Makes an empty database file before SQLite does, with the right to read it for this user alone;
 * the folder is synced, so that a name for it is there after a loss of power. */
static tb_status make_database(db *store, const char *folder, tb_error *error)
{
    const int file = open(store->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return errno == EEXIST ? TB_OK : fail_path(error, store->path);
    close(file);
    const int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
        fsync(directory);
        close(directory);
    }
    return TB_OK;
}

/* ---- opening ---- */

tb_status db_check_integrity(db *store, tb_error *error)
{
    const int64_t start = db_monotonic_ns();
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->writer.connection.handle, "PRAGMA quick_check(1)", -1,
                                  &statement, NULL);
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    tb_status status = TB_OK;
    if (code != SQLITE_ROW) {
        status = db_fail(error, store->writer.connection.handle, code, store->path);
    } else {
        const char *answer = (const char *)sqlite3_column_text(statement, 0);
        if (answer == NULL || strcmp(answer, "ok") != 0)
            status = tb_fail(error, TB_DATA_LOSS, "%s is damaged: %s", store->path,
                             answer != NULL ? answer : "no answer");
    }
    sqlite3_finalize(statement);
    if (status == TB_OK)
        db_log(store, TB_LOG_INFO, "%s was not closed by the last process; checked in %.3f s",
               store->path, (double)(db_monotonic_ns() - start) * 1e-9);
    return status;
}

static tb_status set_pragmas(db *store, tb_error *error)
{
    db_connection *connection = &store->writer.connection;
    /* before the first table, or it has no effect: free pages can be given back to the disk */
    tb_status status = db_execute(connection, "PRAGMA auto_vacuum = INCREMENTAL", error);
    if (status != TB_OK || store->path[0] == '\0') return status;

    sqlite3_stmt *statement = NULL;
    int code =
        sqlite3_prepare_v2(connection->handle, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    if (code != SQLITE_ROW)
        status = db_fail(error, connection->handle, code, store->path);
    else if (strcmp((const char *)sqlite3_column_text(statement, 0), "wal") != 0)
        status = tb_fail(error, TB_FAILED_PRECONDITION,
                         "%s lies where no write-ahead log can be kept (journal mode %s)",
                         store->path, (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    /* the log shrinks to this size after a large asset */
    if (status == TB_OK)
        status = db_execute(connection, "PRAGMA journal_size_limit = 67108864", error);
    return status;
}

/* Marks runs that the last process left running as interrupted; runs of sessions stay open, since
 * sessions are recovered. */
static tb_status mark_interrupted(db *store, tb_error *error)
{
    db_connection *connection = &store->writer.connection;
    static const db_statement STEPS[] = {DB_BEGIN, DB_RUN_NOTE_INTERRUPTED, DB_RUN_INTERRUPT,
                                         DB_COMMIT};
    tb_status status = TB_OK;
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS && status == TB_OK; i++) {
        sqlite3_stmt *s = NULL;
        status = db_take(connection, STEPS[i], &s, error);
        if (status != TB_OK) break;
        if (STEPS[i] == DB_RUN_NOTE_INTERRUPTED) sqlite3_bind_int64(s, 1, db_utc_us());
        status = db_run_statement(connection, s, store->path, error);
    }
    return status;
}

tb_status db_begin_writing(db *store, tb_error *error)
{
    db_connection *connection = &store->writer.connection;
    const bool file = store->path[0] != '\0';
    tb_status status = db_connection_open(connection, file ? store->path : ":memory:", true, error);
    /* a store of another version or program keeps its bytes: even pragmas write */
    int64_t version = 0;
    if (status == TB_OK) status = db_check_version(store, connection, &version, error);
    if (status == TB_OK) status = set_pragmas(store, error);
    if (status == TB_OK && store->crashed) status = db_check_integrity(store, error);
    if (status == TB_OK) status = db_execute(connection, "PRAGMA foreign_keys = OFF", error);
    if (status == TB_OK) status = db_migrate(store, connection, error);
    if (status == TB_OK) status = db_execute(connection, "PRAGMA foreign_keys = ON", error);
    if (status == TB_OK) status = db_outbox_begin(store, connection, error);
    if (status == TB_OK) status = mark_interrupted(store, error);
    if (status == TB_OK && store->lock >= 0) status = mark_lock(store, true, error);
    if (status != TB_OK) {
        db_connection_close(connection);
        return status;
    }
    connection->serves = true;
    atomic_store(&store->alone, !file);
    return TB_OK;
}

/* Opens a file that another process looks after, as it is. */
static tb_status open_beside(db *store, const char *folder, tb_error *error)
{
    db_connection *connection = &store->writer.connection;
    int64_t version = 0, application = 0;
    if (snprintf(store->path, sizeof store->path, "%s/tribo.db", folder) >= DB_PATH_SIZE)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "folder",
                             "folder: a path of %zu bytes is too long", strlen(folder));
    if (access(store->path, F_OK) != 0)
        return tb_fail(error, TB_NOT_FOUND, "%s: %s", store->path, strerror(errno));
    tb_status status = db_connection_open(connection, store->path, true, error);
    if (status == TB_OK)
        status = db_ask_number(connection, "PRAGMA application_id", &application, error);
    if (status == TB_OK) status = db_ask_number(connection, "PRAGMA user_version", &version, error);
    if (status == TB_OK && application != DB_APPLICATION_ID)
        status = tb_fail(error, TB_FAILED_PRECONDITION, "%s is not a store of tribod", store->path);
    if (status == TB_OK && version != DB_VERSION)
        status = tb_fail(error, TB_FAILED_PRECONDITION,
                         "%s has version %lld, and this build works beside version %d only",
                         store->path, (long long)version, DB_VERSION);
    if (status == TB_OK) status = db_execute(connection, "PRAGMA foreign_keys = ON", error);
    connection->serves = status == TB_OK;
    if (status == TB_OK) status = db_writer_start(store, error);
    return status;
}

static tb_status open_store(db *store, const char *folder, bool existing, tb_error *error)
{
    tb_status status = TB_OK;
    if (folder != NULL && folder[0] != '\0') {
        status = make_files(store, folder, existing, error);
        if (status == TB_OK) status = take_lock(store, &store->crashed, error);
        if (status == TB_OK) status = make_database(store, folder, error);
    }
    if (status == TB_OK) {
        tb_error cause = {0};
        status = db_begin_writing(store, &cause);
        if (status != TB_OK && db_disk_is_full(store, status))
            status = db_begin_reading(store, &cause);
        if (status != TB_OK && error != NULL) *error = cause;
    }
    if (status == TB_OK) status = db_writer_start(store, error);
    return status;
}

static void make_locks(db *store)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&store->writer.mutex, NULL);
    pthread_cond_init(&store->writer.work, &monotonic);
    pthread_cond_init(&store->writer.room, &monotonic);
    pthread_cond_init(&store->writer.idle, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&store->readers_mutex, NULL);
    pthread_cond_init(&store->readers_free, NULL);
    pthread_mutex_init(&store->memory, NULL);
}

static void destroy(db *store)
{
    for (int i = 0; i < DB_READERS; i++) db_connection_close(&store->readers[i]);
    db_connection_close(&store->writer.connection);
    if (store->lock >= 0) close(store->lock);
    pthread_mutex_destroy(&store->writer.mutex);
    pthread_cond_destroy(&store->writer.work);
    pthread_cond_destroy(&store->writer.room);
    pthread_cond_destroy(&store->writer.idle);
    pthread_mutex_destroy(&store->readers_mutex);
    pthread_cond_destroy(&store->readers_free);
    pthread_mutex_destroy(&store->memory);
    free(store);
}

tb_status db_open(const db_options *options, db **opened, tb_error *error)
{
    *opened = NULL;
    if (options->queue_length < 1)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "queue_length",
                             "queue_length %d, at least 1 is needed", options->queue_length);
    if (!(options->retain_days >= 0))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "retain_days",
                             "retain_days %g is not 0 or more", options->retain_days);
    db *store = calloc(1, sizeof *store);
    if (store == NULL) return tb_fail_memory(error, sizeof *store, "the store");
    store->lock = -1;
    store->queue_length = options->queue_length;
    store->retain_days = options->retain_days;
    store->retain_snapshots_bytes = options->retain_snapshots_bytes;
    store->retain_unused_bytes = options->retain_unused_bytes;
    store->retain_jobs_bytes = options->retain_jobs_bytes;
    store->retain_recordings_bytes = options->retain_recordings_bytes;
    store->retain_trajectories_bytes = options->retain_trajectories_bytes;
    store->outbox = options->outbox;
    store->session_snapshots = options->session_snapshots;
    store->session_snapshots_bytes = options->session_snapshots_bytes;
    store->log = options->log;
    store->log_context = options->log_context;
    store->committed = options->committed;
    store->committed_context = options->committed_context;
    make_locks(store);

    const bool beside = options->beside && options->folder != NULL && options->folder[0] != '\0';
    const tb_status status = beside ? open_beside(store, options->folder, error)
                                    : open_store(store, options->folder, options->existing, error);
    if (status != TB_OK) {
        destroy(store);
        return status;
    }
    *opened = store;
    return TB_OK;
}

void db_close(db *store)
{
    if (store == NULL) return;
    db_writer_stop(store);
    tb_error error = {0};
    if (db_execute(&store->writer.connection, "PRAGMA optimize", &error) != TB_OK)
        db_log(store, TB_LOG_WARNING, "closing the store: %s", error.message);
    /* readers go first: the last connection to close copies the log back and removes it */
    for (int i = 0; i < DB_READERS; i++) db_connection_close(&store->readers[i]);
    db_connection_close(&store->writer.connection);
    if (store->lock >= 0 && mark_lock(store, false, &error) != TB_OK)
        db_log(store, TB_LOG_WARNING, "closing the store: %s", error.message);
    destroy(store);
}

db_counters db_count(const db *store)
{
    enum { PAGE_SIZE = 4096 };
    db_writer *writer =
        (db_writer *)(uintptr_t)&store->writer; /* the mutex is no part of the value */
    pthread_mutex_lock(&writer->mutex);
    const int64_t failures = writer->failures;
    pthread_mutex_unlock(&writer->mutex);
    return (db_counters){.queued = atomic_load(&store->queued),
                         .committed_jobs = atomic_load(&store->committed_jobs),
                         .commits = atomic_load(&store->commits),
                         .dropped_summaries = atomic_load(&store->dropped_summaries),
                         .file_bytes = atomic_load(&store->pages) * PAGE_SIZE,
                         .failures = failures,
                         .failing = atomic_load(&store->failing),
                         .last_commit_seconds = atomic_load(&store->last_commit_seconds)};
}
