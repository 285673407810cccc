/* Versions of the file: numbered SQL files, compiled in, each run in one transaction together with
 * the new PRAGMA user_version. A crash in the middle leaves the version before. */
#include <stdio.h>

#include "db_internal.h"

static const char INITIAL[] = {
#include "db/schema/0001_initial.sql.inc"
    '\0'};

static const char KEYS_AND_SNAPSHOT_BYTES[] = {
#include "db/schema/0002_keys_and_snapshot_bytes.sql.inc"
    '\0'};

static const char KEY_EXPIRY_AND_USES[] = {
#include "db/schema/0003_key_expiry_and_uses.sql.inc"
    '\0'};

static const char GRASP_JOBS[] = {
#include "db/schema/0004_grasp_jobs.sql.inc"
    '\0'};

static const char RECORDINGS[] = {
#include "db/schema/0005_recordings.sql.inc"
    '\0'};

static const char OUTBOX[] = {
#include "db/schema/0006_outbox.sql.inc"
    '\0'};

static const char GRASP_TRAJECTORIES[] = {
#include "db/schema/0007_grasp_trajectories.sql.inc"
    '\0'};

/* entry i leads from version i to i + 1 */
static const char *const STEPS[DB_VERSION] = {
    INITIAL, KEYS_AND_SNAPSHOT_BYTES, KEY_EXPIRY_AND_USES, GRASP_JOBS, RECORDINGS,
    OUTBOX,  GRASP_TRAJECTORIES};

static tb_status migrate_once(db_connection *connection, int from, tb_error *error)
{
    char version[96];
    snprintf(version, sizeof version, "PRAGMA user_version = %d; PRAGMA application_id = %d",
             from + 1, DB_APPLICATION_ID);
    tb_status status = db_execute(connection, "BEGIN IMMEDIATE", error);
    if (status != TB_OK) return status;
    status = db_execute(connection, STEPS[from], error);
    if (status == TB_OK) status = db_execute(connection, version, error);

    /* foreign keys are off during a step, so violations show only now */
    int64_t broken = 0;
    if (status == TB_OK)
        status = db_ask_number(connection, "SELECT count(*) FROM pragma_foreign_key_check", &broken,
                               error);
    if (status == TB_OK && broken != 0)
        status = tb_fail(error, TB_DATA_LOSS, "%lld rows refer to rows that are not there",
                         (long long)broken);
    if (status == TB_OK) status = db_execute(connection, "COMMIT", error);
    if (status != TB_OK && !sqlite3_get_autocommit(connection->handle))
        sqlite3_exec(connection->handle, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

tb_status db_check_version(const db *store, db_connection *connection, int64_t *version,
                           tb_error *error)
{
    int64_t application = 0, tables = 0;
    tb_status status = db_ask_number(connection, "PRAGMA user_version", version, error);
    if (status == TB_OK)
        status = db_ask_number(connection, "PRAGMA application_id", &application, error);
    if (status == TB_OK)
        status = db_ask_number(connection, "SELECT count(*) FROM sqlite_schema", &tables, error);
    if (status != TB_OK) return status;

    if ((*version != 0 || tables != 0) && application != DB_APPLICATION_ID)
        return tb_fail(error, TB_FAILED_PRECONDITION, "%s is not a store of tribod", store->path);
    if (*version > DB_VERSION)
        return tb_fail(error, TB_FAILED_PRECONDITION,
                       "%s has version %lld, which is newer than this build's %d", store->path,
                       (long long)*version, DB_VERSION);
    return TB_OK;
}

tb_status db_migrate(db *store, db_connection *connection, tb_error *error)
{
    int64_t version = 0;
    tb_status status = db_check_version(store, connection, &version, error);
    for (int from = (int)version; from < DB_VERSION && status == TB_OK; from++) {
        status = migrate_once(connection, from, error);
        if (status == TB_OK && version > 0)
            db_log(store, TB_LOG_INFO, "%s brought from version %d to %d", store->path, from,
                   from + 1);
    }
    return status;
}
