/* Shared by the tests of the store: temporary folders, ids, sample rows. */
#ifndef DB_UTIL_H
#define DB_UTIL_H

#include <dirent.h>
#include <pthread.h>
#include <sqlite3.h>
#include <unistd.h>

#include "db/db.h"
#include "test_util.h"

/* Makes a new folder; the name is static and changes with the next call. */
static inline const char *make_folder(void)
{
    static char folder[64];
    strcpy(folder, "/tmp/tribo_test_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    return folder;
}

static inline void remove_folder(const char *folder)
{
    DIR *list = opendir(folder);
    ck_assert_ptr_nonnull(list);
    for (struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') ck_assert_int_eq(remove(path), 0);
    }
    closedir(list);
    ck_assert_int_eq(rmdir(folder), 0);
}

static inline void log_to_stderr(void *context, tb_log_level level, const char *message)
{
    (void)context;
    if (level >= TB_LOG_WARNING) fprintf(stderr, "store: %s\n", message);
}

static inline db_options options_for(const char *folder)
{
    return (db_options){.folder = folder, .queue_length = 1000, .log = log_to_stderr};
}

static inline db *open_store(const char *folder)
{
    const db_options options = options_for(folder);
    tb_error error = {0};
    db *store = NULL;
    TEST_OK(db_open(&options, &store, &error), &error);
    return store;
}

/* An id or digest made of a number. */
static inline db_id id_of(uint64_t number)
{
    db_id id = {{0}};
    memcpy(id.bytes, &number, sizeof number);
    id.bytes[15] = 0xd1;
    return id;
}

static inline db_sha256 digest_of(uint64_t number)
{
    db_sha256 digest = {{0}};
    memcpy(digest.bytes, &number, sizeof number);
    digest.bytes[31] = 0x5a;
    return digest;
}

/* Waits for one job: pass wait_done and the address of a zeroed wait. */
typedef struct wait_for {
    pthread_mutex_t mutex;
    pthread_cond_t told;
    int times;
    tb_status status;
    tb_error error;
} wait_for;

#define WAIT_FOR_INIT                                                                              \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .told = PTHREAD_COND_INITIALIZER                       \
    }

static inline void wait_done(void *context, tb_status status, const tb_error *error)
{
    wait_for *w = context;
    pthread_mutex_lock(&w->mutex);
    w->times++;
    w->status = status;
    if (error != NULL) w->error = *error;
    pthread_cond_broadcast(&w->told);
    pthread_mutex_unlock(&w->mutex);
}

/* The status of the job, once. */
static inline tb_status wait_status(wait_for *w)
{
    pthread_mutex_lock(&w->mutex);
    while (w->times == 0) pthread_cond_wait(&w->told, &w->mutex);
    w->times--;
    const tb_status status = w->status;
    pthread_mutex_unlock(&w->mutex);
    return status;
}

static inline void put_scene(db *store, uint64_t number)
{
    tb_error error = {0};
    const db_scene scene = {.sha256 = digest_of(number),
                            .name = "jaw and mug",
                            .counts = {1, 2, 3, 4, 5, 6, 7, 8, 9},
                            .size = 5,
                            .create_time_us = 1700000000000000 + (int64_t)number};
    TEST_OK(db_put_scene(store, &scene, "scene", NULL, NULL, &error), &error);
}

static inline db_session session_of(uint64_t number, uint64_t scene)
{
    return (db_session){.id = id_of(number),
                        .scene = digest_of(scene),
                        .owner = "planner",
                        .label = "a label",
                        .worlds = 3,
                        .ttl_seconds = 60.5,
                        .on_disconnect = 2,
                        .options = {1, 0, 2},
                        .options_size = 3,
                        .create_time_us = 1700000000000000 + (int64_t)number,
                        .expire_time_us = 1700000060000000 + (int64_t)number};
}

static inline void put_session(db *store, uint64_t number, uint64_t scene)
{
    tb_error error = {0};
    const db_session session = session_of(number, scene);
    TEST_OK(db_put_session(store, &session, NULL, NULL, &error), &error);
}

/* `size` bytes that depend on the number. */
static inline unsigned char *bytes_of(uint64_t number, uint64_t size)
{
    unsigned char *bytes = malloc(size != 0 ? size : 1);
    ck_assert_ptr_nonnull(bytes);
    for (uint64_t i = 0; i < size; i++) bytes[i] = (unsigned char)(number * 131 + i * 7 + (i >> 8));
    return bytes;
}

static inline db_snapshot snapshot_of(uint64_t number, uint64_t session, db_snapshot_kind kind,
                                      uint64_t size)
{
    return (db_snapshot){.id = id_of(number),
                         .session = id_of(session),
                         .scene = digest_of(1),
                         .kind = kind,
                         .label = "before the lift",
                         .worlds = 3,
                         .steps = (int64_t)number * 10,
                         .time = 0.125 * (double)number,
                         .size = size,
                         .create_time_us = 1700000000000000 + (int64_t)number};
}

/* Puts a snapshot and waits until it is durable. */
static inline tb_status put_snapshot(db *store, uint64_t number, uint64_t session,
                                     db_snapshot_kind kind, uint64_t size, tb_error *error)
{
    wait_for w = WAIT_FOR_INIT;
    const db_snapshot snapshot = snapshot_of(number, session, kind, size);
    tb_status status =
        db_put_snapshot(store, &snapshot, bytes_of(number, size), wait_done, &w, error);
    if (status == TB_OK) {
        status = wait_status(&w);
        if (error != NULL) *error = w.error;
    }
    return status;
}

static inline db_certificate certificate_of(uint64_t number)
{
    return (db_certificate){.outcome = 1,
                            .step = (int64_t)number,
                            .time = 0.001 * (double)number,
                            .residual = 1e-9,
                            .penetration = 2e-6,
                            .cone_error = 3e-12,
                            .complementarity_error = 4e-13,
                            .closure_error = 5e-7,
                            .energy = 6.5,
                            .energy_change = -0.25,
                            .contacts = 41,
                            .rows = 123,
                            .iterations = 77,
                            .solver = "newton",
                            .flags = 5};
}

static inline db_run run_of(uint64_t number, uint64_t scene, int32_t kind, const char *owner)
{
    db_run run = {.id = id_of(number),
                  .kind = kind,
                  .status = 1,
                  .label = "night run",
                  .build = "0.1.0 abc",
                  .device = "cpu",
                  .scene = digest_of(scene),
                  .options_json = "{\"dt\":0.001}",
                  .start_time_us = 1700000000000000 + (int64_t)number,
                  .worlds = 4,
                  .steps = 400,
                  .compute_time_us = 12345,
                  .grasps = 10,
                  .grasps_held = 7,
                  .certificate = certificate_of(number)};
    snprintf(run.owner, sizeof run.owner, "%s", owner);
    return run;
}

static inline void put_run(db *store, const db_run *run)
{
    tb_error error = {0};
    TEST_OK(db_put_run(store, run, NULL, NULL, &error), &error);
}

static inline void flush(db *store)
{
    tb_error error = {0};
    TEST_OK(db_flush(store, &error), &error);
}

/* One number out of a store's file, past the store. */
static inline int64_t ask_file(const char *folder, const char *sql)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tribo.db", folder);
    sqlite3 *handle = NULL;
    sqlite3_stmt *statement = NULL;
    ck_assert_int_eq(sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_msg(sqlite3_prepare_v2(handle, sql, -1, &statement, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(handle));
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    const int64_t answer = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return answer;
}

#endif
