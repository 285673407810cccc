/* Retention: old runs with their histories are deleted, living sessions keep their data,
 * snapshots of ended ones are bounded in bytes, and the disk gets its pages back. */
#include "db/db_util.h"

static const int64_t DAY_US = 86400000000;
static const int64_t NOW_US = 1700000000000000 + 100 * 86400000000;

static db *open_with(const char *folder, double days, uint64_t bytes)
{
    db_options options = options_for(folder);
    options.retain_days = days;
    options.retain_snapshots_bytes = bytes;
    options.queue_length = 5000;
    tb_error error = {0};
    db *store = NULL;
    TEST_OK(db_open(&options, &store, &error), &error);
    return store;
}

/* A finished run that ended `days` days ago, with a summary and an event of that time. */
static void put_old_run(db *store, uint64_t number, int64_t days, bool running)
{
    tb_error error = {0};
    db_run run = run_of(number, 1, 1, "planner");
    const int64_t time_us = NOW_US - days * DAY_US;
    run.start_time_us = time_us - 1000;
    run.end_time_us = running ? 0 : time_us;
    run.status = running ? 1 : 2;
    put_run(store, &run);
    const db_step_summary summary = {.run = run.id, .step = 1, .time_us = time_us};
    db_put_step_summary(store, &summary);
    const db_event event = {.run = run.id, .time_us = time_us, .kind = "created"};
    TEST_OK(db_put_event(store, &event, &error), &error);
}

static bool has_run(db *store, uint64_t number)
{
    db_run run;
    const db_id id = id_of(number);
    const tb_status status = db_get_run(store, &id, &run, NULL);
    if (status == TB_OK) free((void *)run.options_json);
    return status == TB_OK;
}

static int32_t history(db *store, uint64_t number)
{
    db_step_summary summaries[4];
    db_event events[4];
    int32_t count = 0, more = 0;
    tb_error error = {0};
    const db_id id = id_of(number);
    TEST_OK(db_list_step_summaries(store, &id, summaries, 4, &count, &error), &error);
    TEST_OK(db_list_events(store, &id, events, 4, &more, &error), &error);
    return count + more;
}

START_TEST(runs_go_when_they_are_old_and_running_ones_stay)
{
    db *store = open_with(NULL, 30, 0);
    tb_error error = {0};
    put_old_run(store, 1, 90, false);
    put_old_run(store, 2, 31, false);
    put_old_run(store, 3, 90, true);
    put_old_run(store, 4, 29, false);
    flush(store);
    TEST_OK(db_retain(store, NOW_US, &error), &error);
    ck_assert(!has_run(store, 1) && !has_run(store, 2));
    ck_assert(has_run(store, 3) && has_run(store, 4));
    ck_assert_int_eq(history(store, 1), 0);
    ck_assert_int_eq(history(store, 3), 0); /* the run continues, but its oldest history goes */
    ck_assert_int_eq(history(store, 4), 2);
    db_close(store);
}
END_TEST

START_TEST(zero_days_are_for_ever)
{
    db *store = open_with(NULL, 0, 0);
    tb_error error = {0};
    put_old_run(store, 1, 9000, false);
    flush(store);
    TEST_OK(db_retain(store, NOW_US, &error), &error);
    ck_assert(has_run(store, 1));
    db_close(store);
}
END_TEST

START_TEST(many_slices_take_everything)
{
    db *store = open_with(NULL, 30, 0);
    tb_error error = {0};
    for (uint64_t i = 0; i < 1100; i++) put_old_run(store, i, 40, false);
    flush(store);
    TEST_OK(db_retain(store, NOW_US, &error), &error);
    db_run run;
    int32_t count = 0;
    char next[DB_TOKEN_SIZE];
    const db_run_filter all = {0};
    TEST_OK(db_list_runs(store, &all, "", &run, 1, &count, next, &error), &error);
    ck_assert_int_eq(count, 0);
    db_close(store);
}
END_TEST

static tb_status end_session(db *store, uint64_t number)
{
    wait_for w = WAIT_FOR_INIT;
    const db_id id = id_of(number);
    tb_error error = {0};
    TEST_OK(db_end_session(store, &id, "expired", wait_done, &w, &error), &error);
    return wait_status(&w);
}

static bool has_snapshot(db *store, uint64_t number)
{
    db_snapshot snapshot;
    unsigned char *bytes = NULL;
    const db_id id = id_of(number);
    const tb_status status = db_get_snapshot(store, &id, &snapshot, &bytes, NULL);
    free(bytes);
    return status == TB_OK;
}

START_TEST(snapshots_of_ended_sessions_are_bounded_in_bytes)
{
    enum { SIZE = 1000 };
    db *store = open_with(NULL, 0, 10 * SIZE);
    tb_error error = {0};
    put_scene(store, 1);
    put_session(store, 1, 1);
    put_session(store, 2, 1);
    /* 30 of a session that ends, 20 of one that lives on, in turn */
    for (uint64_t i = 0; i < 50; i++)
        TEST_OK(put_snapshot(store, 100 + i, i % 5 < 3 ? 1 : 2, DB_SNAPSHOT_CLIENT, SIZE, &error),
                &error);
    TEST_OK(db_retain(store, NOW_US, &error), &error);
    for (uint64_t i = 0; i < 50; i++) ck_assert(has_snapshot(store, 100 + i));

    TEST_OK(end_session(store, 1), NULL);
    TEST_OK(db_retain(store, NOW_US, &error), &error);
    int ended = 0, living = 0;
    uint64_t oldest = UINT64_MAX;
    for (uint64_t i = 0; i < 50; i++) {
        const bool there = has_snapshot(store, 100 + i);
        if (i % 5 >= 3)
            living += there;
        else
            ended += there;
        if (there && i % 5 < 3 && i < oldest) oldest = i;
    }
    ck_assert_int_eq(living, 20);
    ck_assert_int_eq(ended, 10); /* the newest ten */
    ck_assert_uint_eq(oldest, 32);
    db_close(store);
}
END_TEST

static int count_snapshots(db *store, uint64_t first, uint64_t end)
{
    int count = 0;
    for (uint64_t i = first; i < end; i++) count += has_snapshot(store, i);
    return count;
}

static void count_line(void *context, tb_log_level level, const char *message)
{
    if (level == TB_LOG_WARNING && strstr(message, "session_snapshots") != NULL) ++*(int *)context;
}

START_TEST(snapshots_of_open_sessions_are_bounded_in_number_and_bytes)
{
    enum { SIZE = 1000, NUMBER = 5 };
    int lines = 0;
    db_options options = options_for(NULL);
    options.session_snapshots = NUMBER;
    options.session_snapshots_bytes = 10 * SIZE;
    options.log = count_line;
    options.log_context = &lines;
    tb_error error = {0};
    db *store = NULL;
    TEST_OK(db_open(&options, &store, &error), &error);
    put_scene(store, 1);
    put_session(store, 1, 1);
    put_session(store, 2, 1);
    for (uint64_t i = 0; i < 20; i++)
        TEST_OK(put_snapshot(store, 100 + i, 1, DB_SNAPSHOT_CLIENT, SIZE, &error), &error);
    for (uint64_t i = 0; i < 4; i++)
        TEST_OK(put_snapshot(store, 200 + i, 2, DB_SNAPSHOT_CLIENT, SIZE, &error), &error);
    /* the newest five of the first, and nothing of the other one */
    ck_assert_int_eq(count_snapshots(store, 100, 115), 0);
    ck_assert_int_eq(count_snapshots(store, 115, 120), NUMBER);
    ck_assert_int_eq(count_snapshots(store, 200, 204), 4);
    /* bytes: four of 3,000 are too many; one of 30,000 stays alone */
    for (uint64_t i = 0; i < 4; i++)
        TEST_OK(put_snapshot(store, 300 + i, 2, DB_SNAPSHOT_CLIENT, 3 * SIZE, &error), &error);
    ck_assert_int_eq(count_snapshots(store, 200, 204), 0);
    ck_assert_int_eq(count_snapshots(store, 300, 304), 3);
    TEST_OK(put_snapshot(store, 400, 2, DB_SNAPSHOT_CLIENT, 30 * SIZE, &error), &error);
    ck_assert_int_eq(count_snapshots(store, 300, 304), 0);
    ck_assert(has_snapshot(store, 400));
    ck_assert_int_eq(lines, 1);
    db_close(store);
}
END_TEST

START_TEST(ended_sessions_go_with_their_snapshots)
{
    db *store = open_with(NULL, 30, 0);
    tb_error error = {0};
    put_scene(store, 1);
    put_session(store, 1, 1);
    put_session(store, 2, 1);
    TEST_OK(put_snapshot(store, 1, 1, DB_SNAPSHOT_CLIENT, 100, &error), &error);
    TEST_OK(put_snapshot(store, 2, 2, DB_SNAPSHOT_CLIENT, 100, &error), &error);
    TEST_OK(end_session(store, 1), NULL);
    /* the session ended now: its snapshot is kept for a day and gone after a year */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t now_us = (int64_t)now.tv_sec * 1000000;
    TEST_OK(db_retain(store, now_us + DAY_US, &error), &error);
    ck_assert(has_snapshot(store, 1));
    TEST_OK(db_retain(store, now_us + 365 * DAY_US, &error), &error);
    ck_assert(!has_snapshot(store, 1));
    ck_assert(has_snapshot(store, 2));
    db_close(store);
}
END_TEST

START_TEST(the_disk_gets_its_pages_back)
{
    const char *folder = make_folder();
    db *store = open_with(folder, 0, 1);
    tb_error error = {0};
    put_scene(store, 1);
    put_session(store, 1, 1);
    for (uint64_t i = 0; i < 20; i++)
        TEST_OK(put_snapshot(store, 100 + i, 1, DB_SNAPSHOT_CLIENT, 2 << 20, &error), &error);
    flush(store);
    const int64_t full = db_count(store).file_bytes;
    ck_assert_int_gt(full, 40 << 20);
    TEST_OK(end_session(store, 1), NULL);
    TEST_OK(db_retain(store, NOW_US, &error), &error);
    flush(store);
    ck_assert_int_lt(db_count(store).file_bytes, full / 2);
    db_close(store);
    remove_folder(folder);
}
END_TEST

/* ---- unused assets and scenes ---- */

static void put_asset_used(db *store, uint64_t number, uint64_t size, int64_t time_us)
{
    tb_error error = {0};
    wait_for w = WAIT_FOR_INIT;
    const db_asset asset = {
        .sha256 = digest_of(number), .name = "mug", .size = size, .create_time_us = time_us};
    unsigned char *bytes = bytes_of(number, size);
    TEST_OK(db_put_asset(store, &asset, bytes, wait_done, &w, &error), &error);
    TEST_OK(wait_status(&w), &w.error);
    free(bytes);
}

static bool has_asset(db *store, uint64_t number)
{
    db_asset asset;
    unsigned char *bytes = NULL;
    const db_sha256 digest = digest_of(number);
    const tb_status status = db_get_asset(store, &digest, &asset, &bytes, NULL);
    free(bytes);
    return status == TB_OK;
}

static void put_scene_used(db *store, uint64_t number, uint64_t size, int64_t time_us)
{
    tb_error error = {0};
    const db_scene scene = {
        .sha256 = digest_of(number), .name = "jaw", .size = size, .create_time_us = time_us};
    unsigned char *bytes = bytes_of(number, size);
    TEST_OK(db_put_scene(store, &scene, bytes, NULL, NULL, &error), &error);
    free(bytes);
}

static bool has_scene(db *store, uint64_t number)
{
    db_scene scene;
    unsigned char *bytes = NULL;
    const db_sha256 digest = digest_of(number);
    const tb_status status = db_get_scene(store, &digest, &scene, &bytes, NULL);
    free(bytes);
    return status == TB_OK;
}

START_TEST(assets_and_scenes_go_that_nobody_used_for_days)
{
    db *store = open_with(NULL, 30, 0);
    tb_error error = {0};
    put_asset_used(store, 1, 10, NOW_US - 31 * DAY_US);
    put_asset_used(store, 2, 10, NOW_US - 29 * DAY_US);
    put_asset_used(store, 3, 10, NOW_US - 90 * DAY_US);
    put_asset_used(store, 3, 10, NOW_US - 2 * DAY_US); /* used again */
    for (uint64_t i = 1; i <= 4; i++) put_scene_used(store, i, 10, NOW_US - 31 * DAY_US);
    put_scene_used(store, 5, 10, NOW_US - 29 * DAY_US);
    put_session(store, 1, 1);
    const db_run run = run_of(1, 3, 1, "planner"), old = run_of(2, 4, 1, "planner");
    put_run(store, &run);
    put_run(store, &old);
    put_old_run(store, 2, 60, false);
    flush(store);
    TEST_OK(db_retain(store, NOW_US, &error), &error);
    ck_assert(!has_asset(store, 1) && has_asset(store, 2) && has_asset(store, 3));
    ck_assert(has_scene(store, 1));  /* of a session */
    ck_assert(!has_scene(store, 2)); /* of nothing */
    ck_assert(has_scene(store, 5));  /* used of late */
    ck_assert(has_scene(store, 3) == has_run(store, 1));
    db_close(store);
}
END_TEST

START_TEST(unused_bytes_are_bounded_and_the_longest_unused_go_first)
{
    enum { SIZE = 1000 };
    db_options options = options_for(NULL);
    options.retain_unused_bytes = 10 * SIZE;
    tb_error error = {0};
    db *store = NULL;
    TEST_OK(db_open(&options, &store, &error), &error);
    struct timespec clock;
    clock_gettime(CLOCK_REALTIME, &clock);
    const int64_t now_us = (int64_t)clock.tv_sec * 1000000, hour_us = DAY_US / 24;
    const int64_t later_us = now_us + 3 * hour_us;
    /* 40 assets, the later the newer; 30 scenes, newer than these, with a session each: every third
     * is open, every third has ended with a snapshot, every third without */
    for (uint64_t i = 0; i < 40; i++)
        put_asset_used(store, i, SIZE, now_us - 400 * hour_us + (int64_t)i);
    for (uint64_t i = 100; i < 130; i++) {
        put_scene_used(store, i, SIZE, now_us - 200 * hour_us + (int64_t)i);
        put_session(store, i, i);
        db_snapshot snapshot = snapshot_of(i, i, DB_SNAPSHOT_CLIENT, 3);
        snapshot.scene = digest_of(i);
        if (i % 3 == 1)
            TEST_OK(db_put_snapshot(store, &snapshot, bytes_of(i, 3), NULL, NULL, &error), &error);
        if (i % 3 != 0) TEST_OK(end_session(store, i), NULL);
    }
    /* recently used ones are kept, however many */
    for (uint64_t i = 40; i < 45; i++) put_asset_used(store, i, SIZE, later_us - hour_us / 2);
    flush(store);
    /* sessions that ended within the hour keep their scenes: they may still be listed */
    TEST_OK(db_retain(store, now_us, &error), &error);
    for (uint64_t i = 100; i < 130; i++) ck_assert(has_scene(store, i));
    TEST_OK(db_retain(store, later_us, &error), &error);
    int assets = 0, idle = 0;
    for (uint64_t i = 0; i < 40; i++) assets += has_asset(store, i);
    for (uint64_t i = 40; i < 45; i++) ck_assert(has_asset(store, i));
    for (uint64_t i = 100; i < 130; i++) {
        ck_assert(i % 3 == 2 || has_scene(store, i));
        idle += i % 3 == 2 && has_scene(store, i);
    }
    ck_assert_int_eq(assets, 0);
    ck_assert_int_eq(idle, 5); /* with the five assets in use: ten thousand bytes */
    for (uint64_t i = 115; i < 130; i++) ck_assert(i % 3 != 2 || has_scene(store, i));
    db_close(store);
}
END_TEST

START_TEST(refused_keys_are_counted_and_bounded_in_number)
{
    db *store = open_with(NULL, 0, 0);
    tb_error error = {0};
    for (int64_t i = 0; i < DB_KEY_REFUSALS + 300; i++) {
        db_key_refusal refusal = {.peer = "10.0.0.1",
                                  .reason = "unknown",
                                  .refusals = 1 + i % 2,
                                  .first_time_us = i + 1,
                                  .last_time_us = i + 1};
        snprintf(refusal.key, sizeof refusal.key, "%08x", (unsigned)i);
        TEST_OK(db_note_key_refusal(store, &refusal, &error), &error);
        refusal.last_time_us += 1;
        TEST_OK(db_note_key_refusal(store, &refusal, &error), &error);
        if (i % 200 == 0) flush(store);
    }
    TEST_OK(db_retain(store, NOW_US, &error), &error);
    static db_key_refusal all[2 * DB_KEY_REFUSALS];
    int32_t count = 0;
    TEST_OK(db_list_key_refusals(store, all, 2 * DB_KEY_REFUSALS, &count, &error), &error);
    ck_assert_int_eq(count, DB_KEY_REFUSALS);
    ck_assert_str_eq(all[0].key, "00000513"); /* 1299, the latest */
    ck_assert_int_eq(all[0].refusals, 4);
    ck_assert_int_eq(all[0].first_time_us, 1300);
    ck_assert_int_eq(all[0].last_time_us, 1301);
    db_close(store);
}
END_TEST

TEST_MAIN(runs_go_when_they_are_old_and_running_ones_stay, zero_days_are_for_ever,
          many_slices_take_everything, snapshots_of_ended_sessions_are_bounded_in_bytes,
          snapshots_of_open_sessions_are_bounded_in_number_and_bytes,
          ended_sessions_go_with_their_snapshots, the_disk_gets_its_pages_back,
          assets_and_scenes_go_that_nobody_used_for_days,
          unused_bytes_are_bounded_and_the_longest_unused_go_first,
          refused_keys_are_counted_and_bounded_in_number)
