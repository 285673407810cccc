/* A full disk: failed writes are reported and retried, and a store on a full disk opens for
 * reading until the disk has space. The disk is a file system in memory of a few MiB, which only
 * root can mount: without that right the tests pass without a check. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "db/db_internal.h"
#include "db/db_util.h"

enum { MIB = 1 << 20, LINES_SIZE = 4096 };

static char lines[LINES_SIZE]; /* of the store's log */

static void keep_line(void *context, tb_log_level level, const char *message)
{
    (void)context;
    const size_t length = strlen(lines);
    if (level >= TB_LOG_INFO) snprintf(lines + length, LINES_SIZE - length, "%s\n", message);
}

/* Mounts a disk of the given MiB on a new folder, seen by this process alone; NULL without the
 * right. */
static const char *mount_disk(int mib)
{
    char size[32];
    if (unshare(CLONE_NEWNS) != 0) return NULL;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return NULL;
    const char *folder = make_folder();
    snprintf(size, sizeof size, "size=%dm", mib);
    if (mount("none", folder, "tmpfs", 0, size) == 0) return folder;
    rmdir(folder);
    return NULL;
}

static void unmount_disk(const char *folder)
{
    ck_assert_int_eq(umount(folder), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Takes all pages that are free. */
static void fill_disk(const char *folder)
{
    static const char block[4096];
    char path[128];
    snprintf(path, sizeof path, "%s/ballast", folder);
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(file, 0);
    while (write(file, block, sizeof block) > 0) continue;
    ck_assert_int_eq(errno, ENOSPC);
    close(file);
}

static void free_disk(const char *folder)
{
    char path[128];
    snprintf(path, sizeof path, "%s/ballast", folder);
    ck_assert_int_eq(unlink(path), 0);
}

static db *open_on(const char *folder)
{
    db_options options = options_for(folder);
    options.log = keep_line;
    tb_error error = {0};
    db *store = NULL;
    lines[0] = '\0';
    TEST_OK(db_open(&options, &store, &error), &error);
    return store;
}

/* Waits until the store can be written, 10 s at most. */
static bool becomes_writable(db *store)
{
    for (int i = 0; i < 200 && db_count(store).failing; i++) usleep(50000);
    return !db_count(store).failing;
}

static void fill_store(db *store)
{
    tb_error error = {0};
    put_scene(store, 1);
    put_session(store, 1, 1);
    TEST_OK(put_snapshot(store, 1, 1, DB_SNAPSHOT_CLIENT, 100000, &error), &error);
}

static void check_snapshot(db *store, uint64_t number, uint64_t size)
{
    tb_error error = {0};
    db_snapshot snapshot;
    unsigned char *bytes = NULL, *expected = bytes_of(number, size);
    const db_id id = id_of(number);
    TEST_OK(db_get_snapshot(store, &id, &snapshot, &bytes, &error), &error);
    ck_assert_uint_eq(snapshot.size, size);
    ck_assert_mem_eq(bytes, expected, size);
    free(bytes);
    free(expected);
}

START_TEST(writes_that_fail_are_reported_until_there_is_room)
{
    const char *folder = mount_disk(8);
    if (folder == NULL) return;
    db *store = open_on(folder);
    tb_error error = {0}, why = {0};
    fill_store(store);
    ck_assert(!db_is_failing(store, &why));
    fill_disk(folder);
    TEST_STATUS(put_snapshot(store, 2, 1, DB_SNAPSHOT_CLIENT, MIB, &error), TB_RESOURCE_EXHAUSTED,
                &error);
    ck_assert(db_is_failing(store, &why) && db_count(store).failures > 0);
    ck_assert_msg(strstr(why.message, "full") != NULL, "%s", why.message);
    check_snapshot(store, 1, 100000);
    free_disk(folder);
    ck_assert(becomes_writable(store)); /* the store tries by itself */
    TEST_OK(put_snapshot(store, 2, 1, DB_SNAPSHOT_CLIENT, MIB, &error), &error);
    check_snapshot(store, 2, MIB);
    db_close(store);
    ck_assert_ptr_nonnull(strstr(lines, "written again"));
    unmount_disk(folder);
}
END_TEST

/* In a process of its own that ends without closing the store: its log is not copied back. */
static void crash_after_a_snapshot(const char *folder)
{
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        db *store = open_on(folder);
        put_snapshot(store, 3, 1, DB_SNAPSHOT_CLIENT, 5000, NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void open_when_full(bool crash)
{
    const char *folder = mount_disk(8);
    if (folder == NULL) return;
    db *store = open_on(folder);
    fill_store(store);
    db_close(store);
    if (crash) crash_after_a_snapshot(folder);
    fill_disk(folder);

    store = open_on(folder);
    ck_assert_msg(strstr(lines, "the disk is full: the store is read") != NULL, "%s", lines);
    ck_assert_msg(strstr(lines, folder) != NULL, "%s", lines);
    tb_error error = {0}, why = {0};
    ck_assert(db_is_failing(store, &why));
    ck_assert_ptr_nonnull(strstr(why.message, "full"));
    check_snapshot(store, 1, 100000);
    if (crash) check_snapshot(store, 3, 5000);
    TEST_STATUS(put_snapshot(store, 2, 1, DB_SNAPSHOT_CLIENT, 10, &error), TB_RESOURCE_EXHAUSTED,
                &error);
    ck_assert_ptr_nonnull(strstr(error.message, "disk is full"));
    TEST_OK(db_flush(store, &error), &error);
    db_close(store);

    /* opened once more, and then there is room */
    store = open_on(folder);
    ck_assert(db_count(store).failing);
    free_disk(folder);
    ck_assert(becomes_writable(store));
    TEST_OK(put_snapshot(store, 2, 1, DB_SNAPSHOT_CLIENT, 10, &error), &error);
    check_snapshot(store, 1, 100000);
    check_snapshot(store, 2, 10);
    if (crash) check_snapshot(store, 3, 5000);
    db_close(store);
    store = open_on(folder);
    check_snapshot(store, 2, 10);
    db_close(store);
    unmount_disk(folder);
}

START_TEST(a_store_on_a_full_disk_is_read_until_there_is_room)
{
    open_when_full(false);
}
END_TEST

START_TEST(what_a_crash_left_in_the_log_is_read_on_a_full_disk)
{
    open_when_full(true);
}
END_TEST

START_TEST(a_new_store_on_a_full_disk_is_refused_by_name)
{
    const char *folder = mount_disk(1);
    if (folder == NULL) return;
    fill_disk(folder);
    const db_options options = options_for(folder);
    tb_error error = {0};
    db *store = NULL;
    ck_assert_int_ne(db_open(&options, &store, &error), TB_OK);
    ck_assert_msg(strstr(error.message, folder) != NULL, "%s", error.message);
    unmount_disk(folder);
}
END_TEST

START_TEST(a_folder_that_can_only_be_read_is_named)
{
    const char *folder = mount_disk(4);
    if (folder == NULL) return;
    db_close(open_on(folder));
    ck_assert_int_eq(mount("none", folder, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
    const db_options options = options_for(folder);
    tb_error error = {0};
    db *store = NULL;
    TEST_STATUS(db_open(&options, &store, &error), TB_FAILED_PRECONDITION, &error);
    ck_assert_msg(strstr(error.message, folder) != NULL, "%s", error.message);
    ck_assert_msg(strstr(error.message, "Read-only") != NULL, "%s", error.message);
    unmount_disk(folder);
}
END_TEST

TEST_MAIN(writes_that_fail_are_reported_until_there_is_room,
          a_store_on_a_full_disk_is_read_until_there_is_room,
          what_a_crash_left_in_the_log_is_read_on_a_full_disk,
          a_new_store_on_a_full_disk_is_refused_by_name, a_folder_that_can_only_be_read_is_named)
