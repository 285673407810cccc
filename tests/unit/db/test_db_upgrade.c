/* Versions of the store: a file of version 1 is upgraded with all its rows; a newer, a foreign
 * and a damaged file are refused with different errors. */
#include <sys/stat.h>

#include "db/db_internal.h"
#include "db/db_util.h"

static const char FIXTURE[] = "tests/data/store_v1.sql";

static const char *path_in(const char *folder, const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Runs a text of SQL on the file of a folder, past the store. */
static void run_sql(const char *folder, const char *sql)
{
    sqlite3 *handle = NULL;
    char *message = NULL;
    ck_assert_int_eq(sqlite3_open(path_in(folder, "tribo.db"), &handle), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(handle, sql, NULL, NULL, &message) == SQLITE_OK, "%s", message);
    sqlite3_close(handle);
}

static void build_fixture(const char *folder)
{
    FILE *file = fopen(FIXTURE, "rb");
    ck_assert_msg(file != NULL, "%s cannot be read: tests run in the folder of the README",
                  FIXTURE);
    static char text[1 << 16];
    const size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    ck_assert_uint_lt(size, sizeof text - 1);
    text[size] = '\0';
    run_sql(folder, text);
}

static tb_status try_open(const char *folder, tb_error *error)
{
    const db_options options = {.folder = folder, .queue_length = 10};
    db *store = NULL;
    const tb_status status = db_open(&options, &store, error);
    if (status == TB_OK)
        db_close(store);
    else
        ck_assert_ptr_null(store);
    return status;
}

static db_id plain_id(unsigned char last)
{
    db_id id = {{0}};
    id.bytes[15] = last;
    return id;
}

static void check_old_sessions(db *store)
{
    tb_error error = {0};
    db_session *sessions = NULL;
    int32_t count = 0;
    TEST_OK(db_open_sessions(store, &sessions, &count, &error), &error);
    ck_assert_int_eq(count, 1);
    ck_assert_str_eq(sessions[0].label, "open");
    ck_assert_mem_eq(sessions[0].options, "\x0a\x0b", 2);

    db_snapshot snapshot;
    unsigned char *bytes = NULL;
    db_id id = plain_id(0x11);
    TEST_OK(db_get_snapshot(store, &id, &snapshot, &bytes, &error), &error);
    ck_assert_uint_eq(snapshot.size, 6);
    ck_assert_mem_eq(bytes, "\0\1\2\3\4\5", 6);
    ck_assert_int_eq(snapshot.steps, 150);
    free(bytes);
    TEST_OK(db_latest_snapshot(store, &sessions[0].id, &snapshot, &bytes, &error), &error);
    ck_assert_int_eq(snapshot.steps, 160);
    free(bytes);
    free(sessions);
    id = plain_id(0x13);
    TEST_OK(db_get_snapshot(store, &id, &snapshot, &bytes, &error), &error);
    ck_assert_uint_eq(snapshot.size, 5000);
    free(bytes);
}

static void check_old_runs(db *store)
{
    tb_error error = {0};
    db_run run;
    db_id id = plain_id(1);
    TEST_OK(db_get_run(store, &id, &run, &error), &error);
    ck_assert_str_eq(run.options_json, "{\"dt\":0.005}");
    ck_assert_int_eq(run.status, 1); /* its session comes back, and with it the run */
    ck_assert_int_eq(run.end_time_us, 0);
    ck_assert(isnan(run.certificate.closure_error));
    ck_assert_int_eq(run.certificate.iterations, 33);
    free((void *)run.options_json);
    id = plain_id(0x21);
    TEST_OK(db_get_run(store, &id, &run, &error), &error);
    ck_assert_int_eq(run.grasps_held, 60);
    ck_assert_ptr_null(run.options_json);

    db_benchmark benchmark;
    int32_t count = 0;
    char next[DB_TOKEN_SIZE];
    TEST_OK(db_list_benchmarks(store, "", "", &benchmark, 1, &count, next, &error), &error);
    ck_assert_int_eq(count, 1);
    ck_assert_int_eq(benchmark.number_of_samples, 3);
    TEST_NEAR(benchmark.samples[1], 3, 0);
    ck_assert_str_eq(benchmark.build, "0.1.0 gcc");
    free((void *)benchmark.samples);
}

START_TEST(a_store_of_version_1_is_brought_up_with_all_that_is_in_it)
{
    const char *folder = make_folder();
    build_fixture(folder);
    ck_assert_int_eq(ask_file(folder, "PRAGMA user_version"), 1);
    db *store = open_store(folder);
    check_old_sessions(store);
    check_old_runs(store);
    tb_error error = {0};
    db_asset asset;
    unsigned char *bytes = NULL;
    db_sha256 digest = {{0}};
    digest.bytes[31] = 1;
    TEST_OK(db_get_asset(store, &digest, &asset, &bytes, &error), &error);
    ck_assert_mem_eq(bytes, "mug!", 4);
    free(bytes);

    /* and the tables of version 2 work on it */
    const db_api_key key = {.id = "00000001", .name = "robot", .hash = "x"};
    TEST_OK(db_put_api_key(store, &key, &error), &error);
    db_close(store);
    ck_assert_int_eq(ask_file(folder, "PRAGMA user_version"), DB_VERSION);
    ck_assert_int_eq(ask_file(folder, "SELECT count(*) FROM snapshot_bytes"), 3);
    ck_assert_int_eq(ask_file(folder, "SELECT count(*) FROM snapshot WHERE transient = 1"), 1);
    remove_folder(folder);
}
END_TEST

START_TEST(an_upgrade_that_fails_leaves_the_old_version)
{
    const char *folder = make_folder();
    build_fixture(folder);
    run_sql(folder, "CREATE TABLE snapshot_bytes (in_the_way INTEGER)");
    tb_error error = {0};
    ck_assert_int_ne(try_open(folder, &error), TB_OK);
    ck_assert_ptr_nonnull(strstr(error.message, "snapshot_bytes"));
    ck_assert_int_eq(ask_file(folder, "PRAGMA user_version"), 1);
    ck_assert_int_eq(ask_file(folder, "SELECT count(*) FROM sqlite_schema WHERE name = 'api_key'"),
                     0);
    run_sql(folder, "DROP TABLE snapshot_bytes");
    TEST_OK(try_open(folder, &error), &error);
    remove_folder(folder);
}
END_TEST

START_TEST(a_newer_store_is_refused_and_left_alone)
{
    const char *folder = make_folder();
    tb_error error = {0};
    TEST_OK(try_open(folder, &error), &error);
    run_sql(folder, "PRAGMA user_version = 8");
    TEST_STATUS(try_open(folder, &error), TB_FAILED_PRECONDITION, &error);
    ck_assert_msg(strstr(error.message, "newer") != NULL, "%s", error.message);
    ck_assert_int_eq(ask_file(folder, "PRAGMA user_version"), 8);
    remove_folder(folder);
}
END_TEST

START_TEST(a_database_of_something_else_is_refused)
{
    const char *folder = make_folder();
    run_sql(folder, "CREATE TABLE bookmarks (address TEXT)");
    tb_error error = {0};
    TEST_STATUS(try_open(folder, &error), TB_FAILED_PRECONDITION, &error);
    ck_assert_msg(strstr(error.message, "not a store") != NULL, "%s", error.message);
    remove_folder(folder);
}
END_TEST

/* ---- damage ---- */

static void overwrite(const char *folder, long offset, const char *text)
{
    FILE *file = fopen(path_in(folder, "tribo.db"), "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, offset, SEEK_SET), 0);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
}

static void fill(const char *folder)
{
    db *store = open_store(folder);
    tb_error error = {0};
    put_scene(store, 1);
    put_session(store, 1, 1);
    for (uint64_t i = 1; i < 30; i++) {
        const db_run run = run_of(i, 1, 1, "planner");
        put_run(store, &run);
        TEST_OK(put_snapshot(store, i, 1, DB_SNAPSHOT_CLIENT, 20000, &error), &error);
    }
    db_close(store);
}

START_TEST(a_file_that_is_no_database_is_reported_as_damaged)
{
    const char *folder = make_folder();
    FILE *file = fopen(path_in(folder, "tribo.db"), "wb");
    for (int i = 0; i < 5000; i++) fputs("not a database ", file);
    fclose(file);
    tb_error error = {0};
    TEST_STATUS(try_open(folder, &error), TB_DATA_LOSS, &error);
    remove_folder(folder);
}
END_TEST

START_TEST(a_truncated_file_is_reported_as_damaged)
{
    const char *folder = make_folder();
    fill(folder);
    struct stat file;
    ck_assert_int_eq(stat(path_in(folder, "tribo.db"), &file), 0);
    ck_assert_int_eq(truncate(path_in(folder, "tribo.db"), file.st_size / 2), 0);
    tb_error error = {0};
    TEST_STATUS(try_open(folder, &error), TB_DATA_LOSS, &error);
    remove_folder(folder);
}
END_TEST

START_TEST(damage_is_found_at_the_start_after_a_crash)
{
    const char *folder = make_folder();
    fill(folder);
    /* a page in the middle; the lock file says that the last process did not close the store */
    char garbage[4097];
    memset(garbage, 'g', sizeof garbage - 1);
    garbage[4096] = '\0';
    const int64_t root = ask_file(folder, "SELECT rootpage FROM sqlite_schema WHERE name = 'run'");
    overwrite(folder, (long)(root - 1) * 4096, garbage);
    FILE *lock = fopen(path_in(folder, "tribo.lock"), "wb");
    fputs("4711\n", lock);
    fclose(lock);
    tb_error error = {0};
    TEST_STATUS(try_open(folder, &error), TB_DATA_LOSS, &error);
    remove_folder(folder);
}
END_TEST

START_TEST(changed_bytes_of_a_snapshot_are_reported)
{
    const char *folder = make_folder();
    fill(folder);
    run_sql(folder, "UPDATE snapshot_bytes SET bytes = zeroblob(20000) WHERE snapshot = 5; "
                    "UPDATE snapshot_bytes SET bytes = zeroblob(3) WHERE snapshot = 6; "
                    "DELETE FROM snapshot_bytes WHERE snapshot = 7");
    db *store = open_store(folder);
    db_snapshot snapshot;
    unsigned char *bytes = NULL;
    for (uint64_t i = 5; i <= 8; i++) {
        tb_error error = {0};
        const db_id id = id_of(i);
        TEST_STATUS(db_get_snapshot(store, &id, &snapshot, &bytes, &error),
                    i < 8 ? TB_DATA_LOSS : TB_OK, &error);
        ck_assert((bytes != NULL) == (i == 8));
    }
    free(bytes);
    db_close(store);
    remove_folder(folder);
}
END_TEST

START_TEST(a_folder_that_cannot_be_is_refused)
{
    tb_error error = {0};
    TEST_STATUS(try_open("/dev/null/store", &error), TB_FAILED_PRECONDITION, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "/dev/null/store"));
    const db_options none = {.queue_length = 0}, forever = {.queue_length = 1, .retain_days = -1};
    db *store = NULL;
    TEST_STATUS(db_open(&none, &store, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "queue_length");
    TEST_STATUS(db_open(&forever, &store, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "retain_days");
}
END_TEST

TEST_MAIN(a_store_of_version_1_is_brought_up_with_all_that_is_in_it,
          an_upgrade_that_fails_leaves_the_old_version, a_newer_store_is_refused_and_left_alone,
          a_database_of_something_else_is_refused,
          a_file_that_is_no_database_is_reported_as_damaged,
          a_truncated_file_is_reported_as_damaged, damage_is_found_at_the_start_after_a_crash,
          changed_bytes_of_a_snapshot_are_reported, a_folder_that_cannot_be_is_refused)
