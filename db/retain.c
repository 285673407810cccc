/* Retention: rows that are older than the store may keep, and bytes that nothing needs: snapshots of
 * ended sessions, unused assets and scenes. Done in slices of a few rows, so that no write waits
 * long behind one.
 *
 * An asset or scene stays for an hour after its last use whatever its size: a caller that was just
 * given its digest can use it. The catalog puts it again when it is used later than that. Benchmarks
 * and keys stay: people put them there by hand. */
#include "db_internal.h"

enum { SLICE_ROWS = 200, SLICE_HISTORY = 2000, SLICE_SNAPSHOTS = 20 };
static const double DAY_US = 86400e6;
static const int64_t UNUSED_US = 3600000000; /* shortest time from a use to the end */

/* Runs one of the deletions; *more if it found a full slice of rows. */
static tb_status delete_rows(db_connection *connection, db_statement statement, int64_t bound,
                             int32_t limit, bool *more, tb_error *error)
{
    sqlite3_stmt *s = NULL;
    tb_status status = db_take(connection, statement, &s, error);
    if (status != TB_OK) return status;
    sqlite3_bind_int64(s, 1, bound);
    sqlite3_bind_int(s, 2, limit);
    status = db_run_statement(connection, s, "retention", error);
    if (status == TB_OK && sqlite3_changes(connection->handle) >= limit) *more = true;
    return status;
}

static tb_status retain_age(db_connection *connection, int64_t oldest_us, bool *more,
                            tb_error *error)
{
    static const struct {
        db_statement statement;
        int32_t limit;
    } STEPS[] = {{DB_RETAIN_SUMMARIES, SLICE_HISTORY},    {DB_RETAIN_EVENTS, SLICE_HISTORY},
                 {DB_RETAIN_SESSIONS, SLICE_SNAPSHOTS},   {DB_RETAIN_RUNS, SLICE_ROWS},
                 {DB_RETAIN_GRASP_JOBS, SLICE_SNAPSHOTS}, {DB_RETAIN_REFUSALS, SLICE_ROWS},
                 {DB_RETAIN_ASSETS, SLICE_SNAPSHOTS},     {DB_RETAIN_SCENES, SLICE_SNAPSHOTS}};
    tb_status status = TB_OK;
    /* histories first: runs then have little to take with them */
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS && status == TB_OK && !*more; i++)
        status =
            delete_rows(connection, STEPS[i].statement, oldest_us, STEPS[i].limit, more, error);
    return status;
}

static tb_status retain_snapshots(db_connection *connection, uint64_t bytes, bool *more,
                                  tb_error *error)
{
    sqlite3_stmt *s = NULL;
    bool row = false;
    tb_status status = db_take(connection, DB_RETAIN_SNAPSHOTS_SIZE, &s, error);
    if (status == TB_OK) status = db_next_row(connection, s, &row, "retention", error);
    if (status != TB_OK) return status;
    const bool beyond = row && (uint64_t)sqlite3_column_int64(s, 0) > bytes;
    if (row) db_give_back(s);
    if (!beyond) return TB_OK;
    return delete_rows(connection, DB_RETAIN_SNAPSHOTS, (int64_t)bytes, SLICE_SNAPSHOTS, more,
                       error);
}

/* Assets and scenes that nothing needs, beyond the bytes. The ended sessions of a scene go before it,
 * because their rows refer to it. */
static tb_status retain_unused(db_connection *connection, uint64_t bytes, int64_t now_us,
                               bool *more, tb_error *error)
{
    static const db_statement STEPS[] = {DB_RETAIN_UNUSED_ASSETS, DB_RETAIN_UNUSED_SESSIONS,
                                         DB_RETAIN_UNUSED_SCENES};
    tb_status status = TB_OK;
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS && status == TB_OK; i++) {
        sqlite3_stmt *s = NULL;
        status = db_take(connection, STEPS[i], &s, error);
        if (status != TB_OK) break;
        sqlite3_bind_int64(s, 1, (int64_t)bytes);
        sqlite3_bind_int(s, 2, SLICE_SNAPSHOTS);
        sqlite3_bind_int64(s, 3, now_us - UNUSED_US);
        status = db_run_statement(connection, s, "retention", error);
        const bool rows = STEPS[i] != DB_RETAIN_UNUSED_SESSIONS;
        if (rows && sqlite3_changes(connection->handle) >= SLICE_SNAPSHOTS) *more = true;
    }
    return status;
}

/* Gives pages back to the disk when more than a quarter of the file is free. */
static tb_status shrink(db_connection *connection, bool *more, tb_error *error)
{
    enum { PAGES_KEPT = 4096 };
    int64_t free_pages = 0, pages = 0;
    tb_status status = db_ask_number(connection, "PRAGMA freelist_count", &free_pages, error);
    if (status == TB_OK) status = db_ask_number(connection, "PRAGMA page_count", &pages, error);
    if (status != TB_OK || free_pages < PAGES_KEPT || free_pages < pages / 4) return status;
    *more = true;
    return db_execute(connection, "PRAGMA incremental_vacuum(2048)", error);
}

tb_status db_retain_slice(db *store, db_connection *connection, int64_t now_us, bool *more,
                          tb_error *error)
{
    *more = false;
    tb_status status = TB_OK;
    if (store->retain_days > 0) {
        const int64_t oldest_us = now_us - (int64_t)(store->retain_days * DAY_US);
        status = retain_age(connection, oldest_us, more, error);
    }
    if (status == TB_OK && !*more && store->retain_snapshots_bytes > 0)
        status = retain_snapshots(connection, store->retain_snapshots_bytes, more, error);
    if (status == TB_OK && !*more && store->retain_jobs_bytes > 0)
        status = delete_rows(connection, DB_RETAIN_GRASP_JOBS_SIZE,
                             (int64_t)store->retain_jobs_bytes, SLICE_SNAPSHOTS, more, error);
    if (status == TB_OK && !*more && store->retain_recordings_bytes > 0)
        status = delete_rows(connection, DB_RETAIN_RECORDINGS,
                             (int64_t)store->retain_recordings_bytes, SLICE_SNAPSHOTS, more, error);
    if (status == TB_OK && !*more && store->retain_trajectories_bytes > 0)
        status =
            delete_rows(connection, DB_RETAIN_GRASP_TRAJECTORIES,
                        (int64_t)store->retain_trajectories_bytes, SLICE_SNAPSHOTS, more, error);
    if (status == TB_OK && !*more && store->retain_unused_bytes > 0)
        status = retain_unused(connection, store->retain_unused_bytes, now_us, more, error);
    if (status == TB_OK && !*more)
        status = delete_rows(connection, DB_RETAIN_REFUSALS_NUMBER, DB_KEY_REFUSALS, SLICE_ROWS,
                             more, error);
    if (status == TB_OK && !*more) status = shrink(connection, more, error);
    return status;
}
