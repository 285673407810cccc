/* Online backup: one moment of the store, copied page by page into a new file while the writer
 * continues.
 *
 * The source holds a read transaction from the first page to the last, so writes never restart the
 * copy; the log cannot be reset until the copy ends. The copy has a temporary name until it is
 * complete, checked and synced: a file of the requested name is valid. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db_internal.h"

enum { PAGES_AT_ONCE = 512 };

typedef void backup_progress(void *context, double fraction);

static tb_status fail_path(tb_error *error, const char *path)
{
    return tb_fail(error, errno == ENOSPC ? TB_RESOURCE_EXHAUSTED : TB_FAILED_PRECONDITION,
                   "%s: %s", path, strerror(errno));
}

static tb_status copy_pages(db_connection *from, db_connection *to, backup_progress *progress,
                            void *context, tb_error *error)
{
    sqlite3_backup *backup = sqlite3_backup_init(to->handle, "main", from->handle, "main");
    if (backup == NULL) return db_fail(error, to->handle, sqlite3_errcode(to->handle), "backup");
    int code = SQLITE_OK;
    while (code == SQLITE_OK) {
        code = sqlite3_backup_step(backup, PAGES_AT_ONCE);
        const int pages = sqlite3_backup_pagecount(backup);
        const int left = sqlite3_backup_remaining(backup);
        if (progress != NULL && pages > 0) progress(context, 1.0 - (double)left / (double)pages);
    }
    const int finished = sqlite3_backup_finish(backup);
    if (code == SQLITE_DONE) code = finished;
    if (code == SQLITE_OK) return TB_OK;
    return tb_fail(error, db_fail(NULL, NULL, code, ""), "backup: %s", sqlite3_errstr(code));
}

/* Makes the copy independent of a log file and checks its integrity. */
static tb_status check_copy(db_connection *copy, const char *path, tb_error *error)
{
    tb_status status = db_execute(copy, "PRAGMA journal_mode = DELETE", error);
    int64_t faults = 1;
    if (status == TB_OK)
        status = db_ask_number(
            copy, "SELECT count(*) FROM pragma_quick_check(1) WHERE quick_check <> 'ok'", &faults,
            error);
    if (status == TB_OK && faults != 0)
        status =
            tb_fail(error, TB_DATA_LOSS, "%s: the copy is damaged, as the store must be", path);
    return status;
}

/* Syncs the finished file, gives it its name unless that is taken, and syncs the name. */
static tb_status publish(const char *part, const char *path, tb_error *error)
{
    const int file = open(part, O_RDONLY | O_CLOEXEC);
    if (file < 0) return fail_path(error, part);
    const bool synced = fsync(file) == 0;
    tb_status status = synced ? TB_OK : fail_path(error, part);
    close(file);
    if (status != TB_OK) return status;

    if (link(part, path) == 0)
        unlink(part);
    else if (errno == EEXIST || rename(part, path) != 0)
        return fail_path(error, path);

    char folder[DB_PATH_SIZE];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    snprintf(slash != NULL ? slash + 1 : folder, 2, "%s", slash != NULL ? "" : ".");
    const int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
        fsync(directory);
        close(directory);
    }
    return TB_OK;
}

static tb_status backup_from(db_connection *from, const char *path, backup_progress *progress,
                             void *context, tb_error *error)
{
    char part[DB_PATH_SIZE];
    if (snprintf(part, sizeof part, "%s.part-%d", path, (int)getpid()) >= DB_PATH_SIZE)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "path",
                             "path: one of %zu bytes is too long", strlen(path));
    struct stat there;
    if (stat(path, &there) == 0)
        return tb_fail_field(error, TB_FAILED_PRECONDITION, "path",
                             "%s is there already; a backup writes a new file", path);
    const int file = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return fail_path(error, part);
    close(file);

    db_connection to;
    tb_status status = db_connection_open(&to, part, true, error);
    if (status == TB_OK) {
        status = db_execute(from, "BEGIN; SELECT count(*) FROM sqlite_schema", error);
        if (status == TB_OK) status = copy_pages(from, &to, progress, context, error);
        if (!sqlite3_get_autocommit(from->handle))
            sqlite3_exec(from->handle, "COMMIT", NULL, NULL, NULL);
        if (status == TB_OK) status = check_copy(&to, path, error);
        db_connection_close(&to);
    }
    if (status == TB_OK) status = publish(part, path, error);
    if (status != TB_OK) unlink(part);
    return status;
}

tb_status db_backup(db *store, const char *path, backup_progress *progress, void *context,
                    tb_error *error)
{
    if (store->path[0] == '\0') {
        pthread_mutex_lock(&store->memory);
        const tb_status status =
            backup_from(&store->writer.connection, path, progress, context, error);
        pthread_mutex_unlock(&store->memory);
        return status;
    }
    /* a connection of its own: it is busy for long, and the pool is small */
    db_connection from;
    tb_status status = db_connection_open(&from, store->path, false, error);
    if (status != TB_OK) return status;
    status = backup_from(&from, path, progress, context, error);
    db_connection_close(&from);
    return status;
}

tb_status db_backup_file(const char *folder, const char *path, backup_progress *progress,
                         void *context, tb_error *error)
{
    char source[DB_PATH_SIZE];
    struct stat there;
    if (snprintf(source, sizeof source, "%s/tribo.db", folder) >= DB_PATH_SIZE)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "folder",
                             "folder: a path of %zu bytes is too long", strlen(folder));
    if (stat(source, &there) != 0)
        return errno == ENOENT
                   ? tb_fail_field(error, TB_NOT_FOUND, "folder", "there is no store in %s", folder)
                   : fail_path(error, source);

    db_connection from;
    tb_status status = db_connection_open(&from, source, false, error);
    if (status != TB_OK) return status;
    int64_t application = 0;
    status = db_ask_number(&from, "PRAGMA application_id", &application, error);
    if (status == TB_OK && application != DB_APPLICATION_ID)
        status = tb_fail_field(error, TB_FAILED_PRECONDITION, "folder",
                               "%s is not a store of tribod", source);
    if (status == TB_OK) status = backup_from(&from, path, progress, context, error);
    db_connection_close(&from);
    return status;
}
