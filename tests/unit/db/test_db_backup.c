/* Backup: a whole and sound copy of one moment, made while the store is written to. */
#include <sys/stat.h>
#include <sys/wait.h>

#include "db/db_util.h"

static char target_folder[64];

/* A path in a new folder for copies; opening the copy as a store takes the name tribo.db. */
static const char *target(void)
{
    static char path[128];
    strcpy(target_folder, make_folder());
    snprintf(path, sizeof path, "%s/tribo.db", target_folder);
    return path;
}

static void fill(db *store, uint64_t snapshots)
{
    tb_error error = {0};
    put_scene(store, 1);
    put_session(store, 1, 1);
    for (uint64_t i = 0; i < snapshots; i++)
        TEST_OK(put_snapshot(store, 100 + i, 1, DB_SNAPSHOT_CLIENT, 100000, &error), &error);
}

typedef struct steps {
    int count;
    double last;
    bool falling;
} steps;

static void note_progress(void *context, double fraction)
{
    steps *s = context;
    s->falling |= fraction < s->last || fraction > 1;
    s->last = fraction;
    s->count++;
}

/* Opens the copy as a store and looks for the snapshots. */
static void check_copy(uint64_t snapshots)
{
    db *store = open_store(target_folder);
    tb_error error = {0};
    for (uint64_t i = 0; i < snapshots; i++) {
        db_snapshot snapshot;
        const db_id id = id_of(100 + i);
        unsigned char *bytes = NULL, *expected = bytes_of(100 + i, 100000);
        TEST_OK(db_get_snapshot(store, &id, &snapshot, &bytes, &error), &error);
        ck_assert_mem_eq(bytes, expected, 100000);
        free(bytes);
        free(expected);
    }
    db_close(store);
    remove_folder(target_folder);
}

START_TEST(a_store_in_use_is_copied)
{
    static char folder[64];
    strcpy(folder, make_folder());
    db *store = open_store(folder);
    fill(store, 60);
    steps s = {0};
    tb_error error = {0};
    const char *path = target();
    TEST_OK(db_backup(store, path, note_progress, &s, &error), &error);
    ck_assert_int_ge(s.count, 2);
    ck_assert(!s.falling);
    TEST_NEAR(s.last, 1, 0);
    struct stat file;
    ck_assert_int_eq(stat(path, &file), 0);
    ck_assert_int_eq(file.st_mode & 0777, 0600);
    /* once more is refused: a backup does not write over anything */
    TEST_STATUS(db_backup(store, path, NULL, NULL, &error), TB_FAILED_PRECONDITION, &error);
    ck_assert_str_eq(error.field, "path");
    db_close(store);
    remove_folder(folder);
    check_copy(60);
}
END_TEST

START_TEST(a_store_in_memory_is_copied)
{
    db *store = open_store(NULL);
    fill(store, 10);
    tb_error error = {0};
    TEST_OK(db_backup(store, target(), NULL, NULL, &error), &error);
    fill(store, 0); /* the copy continues */
    flush(store);
    db_close(store);
    check_copy(10);
}
END_TEST

typedef struct writing {
    db *store;
    uint64_t number;
    int failures;
} writing;

/* Writes between two pieces of the copy: each piece sees the file changed. */
static void write_meanwhile(void *context, double fraction)
{
    (void)fraction;
    writing *w = context;
    tb_error error = {0};
    w->failures +=
        put_snapshot(w->store, ++w->number, 1, DB_SNAPSHOT_CLIENT, 50000, &error) != TB_OK;
}

START_TEST(writing_goes_on_and_the_copy_is_of_one_moment)
{
    static char folder[64];
    strcpy(folder, make_folder());
    db *store = open_store(folder);
    fill(store, 60);
    writing w = {.store = store, .number = 5000};
    tb_error error = {0};
    TEST_OK(db_backup(store, target(), write_meanwhile, &w, &error), &error);
    ck_assert_int_eq(w.failures, 0);
    ck_assert_uint_gt(w.number, 5002);
    /* writes after the start of the copy are in the store and not in the copy */
    ck_assert_int_eq(ask_file(folder, "SELECT count(*) FROM snapshot"),
                     60 + (int64_t)(w.number - 5000));
    ck_assert_int_eq(ask_file(target_folder, "SELECT count(*) FROM snapshot"), 60);
    db_close(store);
    remove_folder(folder);
    check_copy(60);
}
END_TEST

START_TEST(another_process_copies_a_store_that_is_held_and_one_that_is_not)
{
    static char folder[64];
    strcpy(folder, make_folder());
    db *store = open_store(folder);
    fill(store, 20);
    steps s = {0};
    tb_error error = {0};
    TEST_OK(db_backup_file(folder, target(), note_progress, &s, &error), &error);
    TEST_NEAR(s.last, 1, 0);
    check_copy(20);
    db_close(store);
    TEST_OK(db_backup_file(folder, target(), NULL, NULL, &error), &error);
    check_copy(20);
    remove_folder(folder);
}
END_TEST

START_TEST(a_store_that_was_never_closed_is_copied_with_all_that_was_committed)
{
    static char folder[64];
    strcpy(folder, make_folder());
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        fill(open_store(folder), 20);
        _exit(0); /* as if killed: the log stays as it is */
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    char log[128];
    struct stat file;
    snprintf(log, sizeof log, "%s/tribo.db-wal", folder);
    ck_assert_int_eq(stat(log, &file), 0);
    ck_assert_int_gt(file.st_size, 100000);

    tb_error error = {0};
    TEST_OK(db_backup_file(folder, target(), NULL, NULL, &error), &error);
    check_copy(20);
    remove_folder(folder);
}
END_TEST

START_TEST(what_is_no_store_is_not_copied)
{
    static char folder[64];
    strcpy(folder, make_folder());
    tb_error error = {0};
    const char *path = target();
    TEST_STATUS(db_backup_file(folder, path, NULL, NULL, &error), TB_NOT_FOUND, &error);
    ck_assert_str_eq(error.field, "folder");
    char name[128];
    snprintf(name, sizeof name, "%s/tribo.db", folder);
    FILE *file = fopen(name, "wb");
    for (int i = 0; i < 1000; i++) fputs("not a database ", file);
    fclose(file);
    TEST_STATUS(db_backup_file(folder, path, NULL, NULL, &error), TB_DATA_LOSS, &error);
    db *store = open_store(NULL);
    TEST_STATUS(db_backup(store, "/nowhere/at/all.db", NULL, NULL, &error), TB_FAILED_PRECONDITION,
                &error);
    db_close(store);
    remove_folder(folder);
    remove_folder(target_folder); /* nothing is left of the attempts */
}
END_TEST

START_TEST(a_damaged_store_is_not_copied)
{
    static char folder[64];
    strcpy(folder, make_folder());
    db *store = open_store(folder);
    fill(store, 20);
    db_close(store);
    const int64_t root =
        ask_file(folder, "SELECT rootpage FROM sqlite_schema WHERE name = 'snapshot_bytes'");
    char name[128], garbage[4096];
    memset(garbage, 'g', sizeof garbage);
    snprintf(name, sizeof name, "%s/tribo.db", folder);
    FILE *file = fopen(name, "r+b");
    fseek(file, (long)(root - 1) * 4096, SEEK_SET);
    fwrite(garbage, 1, sizeof garbage, file);
    fclose(file);
    tb_error error = {0};
    TEST_STATUS(db_backup_file(folder, target(), NULL, NULL, &error), TB_DATA_LOSS, &error);
    remove_folder(target_folder);
    remove_folder(folder);
}
END_TEST

TEST_MAIN(a_store_in_use_is_copied, a_store_in_memory_is_copied,
          writing_goes_on_and_the_copy_is_of_one_moment,
          another_process_copies_a_store_that_is_held_and_one_that_is_not,
          a_store_that_was_never_closed_is_copied_with_all_that_was_committed,
          what_is_no_store_is_not_copied, a_damaged_store_is_not_copied)
