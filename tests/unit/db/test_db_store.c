/* The store: rows come back as they were put in, page by page, from a file and from memory; the
 * file belongs to one process; no hot query scans a table. */
#include <sys/stat.h>

#include "db/db_internal.h"
#include "db/db_util.h"

static void check_assets(db *store)
{
    tb_error error = {0};
    wait_for w = WAIT_FOR_INIT;
    for (uint64_t i = 1; i <= 5; i++) {
        db_asset asset = {.sha256 = digest_of(i), .size = i * 1000, .create_time_us = (int64_t)i};
        snprintf(asset.name, sizeof asset.name, "mug-%d.obj", (int)i);
        unsigned char *bytes = bytes_of(i, asset.size);
        TEST_OK(db_put_asset(store, &asset, bytes, wait_done, &w, &error), &error);
        TEST_OK(wait_status(&w), &w.error);
        /* once more is fine */
        TEST_OK(db_put_asset(store, &asset, bytes, wait_done, &w, &error), &error);
        TEST_OK(wait_status(&w), &w.error);
        free(bytes);
    }

    db_asset asset;
    unsigned char *bytes = NULL, *expected = bytes_of(3, 3000);
    const db_sha256 third = digest_of(3), none = digest_of(99);
    TEST_OK(db_get_asset(store, &third, &asset, &bytes, &error), &error);
    ck_assert_str_eq(asset.name, "mug-3.obj");
    ck_assert_uint_eq(asset.size, 3000);
    ck_assert_int_eq(asset.create_time_us, 3);
    ck_assert_mem_eq(bytes, expected, 3000);
    free(bytes);
    free(expected);
    TEST_STATUS(db_get_asset(store, &none, &asset, &bytes, &error), TB_NOT_FOUND, &error);
    ck_assert_ptr_null(bytes);

    /* newest first, two at a time */
    db_asset page[2];
    char token[DB_TOKEN_SIZE] = "";
    int seen = 0;
    do {
        int32_t count = 0;
        TEST_OK(db_list_assets(store, token, page, 2, &count, token, &error), &error);
        for (int32_t i = 0; i < count; i++, seen++)
            ck_assert_int_eq(page[i].create_time_us, 5 - seen);
    } while (token[0] != '\0');
    ck_assert_int_eq(seen, 5);
}

static void check_scenes(db *store)
{
    tb_error error = {0};
    for (uint64_t i = 1; i <= 3; i++) put_scene(store, i);
    flush(store);
    db_scene scene;
    unsigned char *bytes = NULL;
    const db_sha256 second = digest_of(2);
    TEST_OK(db_get_scene(store, &second, &scene, &bytes, &error), &error);
    ck_assert_mem_eq(bytes, "scene", 5);
    ck_assert_int_eq(scene.counts[0], 1);
    ck_assert_int_eq(scene.counts[8], 9);
    ck_assert_str_eq(scene.name, "jaw and mug");
    free(bytes);
    db_scene page[4];
    char token[DB_TOKEN_SIZE];
    int32_t count = 0;
    TEST_OK(db_list_scenes(store, "", page, 4, &count, token, &error), &error);
    ck_assert_int_eq(count, 3);
    ck_assert_str_eq(token, "");
    ck_assert_int_eq(page[0].counts[8], 9);
}

static void check_sessions(db *store)
{
    tb_error error = {0};
    wait_for w = WAIT_FOR_INIT;
    for (uint64_t i = 10; i < 15; i++) put_session(store, i, 1);

    /* an update, an end, and an update after the end, which does not bring it back */
    db_session changed = session_of(11, 1);
    changed.expire_time_us = 77;
    TEST_OK(db_put_session(store, &changed, wait_done, &w, &error), &error);
    TEST_OK(wait_status(&w), &w.error);
    const db_id twelve = id_of(12), none = id_of(999);
    TEST_OK(db_end_session(store, &twelve, "expired", wait_done, &w, &error), &error);
    TEST_OK(wait_status(&w), &w.error);
    put_session(store, 12, 1);
    changed = session_of(13, 1);
    changed.ended = true;
    TEST_OK(db_put_session(store, &changed, wait_done, &w, &error), &error);
    TEST_OK(wait_status(&w), &w.error);

    db_session *sessions = NULL;
    int32_t count = 0;
    TEST_OK(db_open_sessions(store, &sessions, &count, &error), &error);
    ck_assert_int_eq(count, 3);
    ck_assert_mem_eq(&sessions[0].id, id_of(10).bytes, 16);
    ck_assert_mem_eq(&sessions[2].id, id_of(14).bytes, 16);
    ck_assert_int_eq(sessions[1].expire_time_us, 77);
    ck_assert_uint_eq(sessions[0].options_size, 3);
    ck_assert_mem_eq(sessions[0].options, "\1\0\2", 3);
    ck_assert_str_eq(sessions[0].owner, "planner");
    TEST_NEAR(sessions[0].ttl_seconds, 60.5, 0);
    free(sessions);

    TEST_OK(db_end_session(store, &none, "expired", wait_done, &w, &error), &error);
    TEST_STATUS(wait_status(&w), TB_NOT_FOUND, &w.error);
    /* a session of a scene that was never put could not be brought back */
    changed = session_of(16, 4711);
    TEST_OK(db_put_session(store, &changed, wait_done, &w, &error), &error);
    TEST_STATUS(wait_status(&w), TB_FAILED_PRECONDITION, &w.error);
    ck_assert_ptr_nonnull(strstr(w.error.message, "not in the store"));
}

static void check_snapshots(db *store)
{
    tb_error error = {0};
    TEST_OK(put_snapshot(store, 1, 10, DB_SNAPSHOT_CHECKPOINT, 5000, &error), &error);
    TEST_OK(put_snapshot(store, 2, 10, DB_SNAPSHOT_CLIENT, 6000, &error), &error);
    TEST_OK(put_snapshot(store, 3, 10, DB_SNAPSHOT_CHECKPOINT, 0, &error), &error);

    db_snapshot snapshot;
    unsigned char *bytes = NULL, *expected = bytes_of(2, 6000);
    const db_id first = id_of(1), second = id_of(2), ten = id_of(10), eleven = id_of(11);
    TEST_OK(db_get_snapshot(store, &second, &snapshot, &bytes, &error), &error);
    ck_assert_mem_eq(bytes, expected, 6000);
    ck_assert_str_eq(snapshot.label, "before the lift");
    ck_assert_int_eq(snapshot.steps, 20);
    TEST_NEAR(snapshot.time, 0.25, 0);
    ck_assert_mem_eq(&snapshot.session, &ten, sizeof ten);
    ck_assert_int_eq(snapshot.kind, DB_SNAPSHOT_CLIENT);
    free(bytes);
    free(expected);
    /* the first was automatic and is overtaken */
    TEST_STATUS(db_get_snapshot(store, &first, &snapshot, &bytes, &error), TB_NOT_FOUND, &error);
    TEST_OK(db_latest_snapshot(store, &ten, &snapshot, &bytes, &error), &error);
    ck_assert_int_eq(snapshot.steps, 30);
    ck_assert_uint_eq(snapshot.size, 0);
    free(bytes);
    TEST_STATUS(db_latest_snapshot(store, &eleven, &snapshot, &bytes, &error), TB_NOT_FOUND,
                &error);
    TEST_STATUS(put_snapshot(store, 4, 999, DB_SNAPSHOT_CLIENT, 10, &error), TB_FAILED_PRECONDITION,
                &error);
}

static void check_run(const db_run *run, uint64_t number)
{
    const db_run expected = run_of(number, 1, 1, "planner");
    ck_assert_mem_eq(&run->id, &expected.id, sizeof run->id);
    ck_assert_str_eq(run->options_json, expected.options_json);
    ck_assert_str_eq(run->label, expected.label);
    ck_assert_str_eq(run->build, expected.build);
    ck_assert_str_eq(run->device, expected.device);
    ck_assert_int_eq(run->start_time_us, expected.start_time_us);
    ck_assert_int_eq(run->worlds, 4);
    ck_assert_int_eq(run->grasps, 10);
    ck_assert_int_eq(run->grasps_held, 7);
    ck_assert_int_eq(run->compute_time_us, 12345);
    ck_assert_mem_eq(&run->scene, &expected.scene, sizeof run->scene);
    const db_certificate *a = &run->certificate, *b = &expected.certificate;
    ck_assert(a->outcome == b->outcome && a->step == b->step && a->time == b->time);
    ck_assert(a->residual == b->residual && a->penetration == b->penetration);
    ck_assert(a->cone_error == b->cone_error && a->energy == b->energy);
    ck_assert(a->complementarity_error == b->complementarity_error);
    ck_assert(a->closure_error == b->closure_error && a->energy_change == b->energy_change);
    ck_assert(a->contacts == b->contacts && a->rows == b->rows);
    ck_assert(a->iterations == b->iterations && a->flags == b->flags);
    ck_assert_str_eq(a->solver, b->solver);
}

static int count_runs(db *store, int32_t kind, const db_sha256 *scene, const char *owner,
                      int32_t page_size)
{
    const db_run_filter filter = {.kind = kind, .scene = scene, .owner = owner};
    db_run page[16];
    char token[DB_TOKEN_SIZE] = "";
    tb_error error = {0};
    int seen = 0;
    int64_t last = INT64_MAX;
    do {
        int32_t count = 0;
        TEST_OK(db_list_runs(store, &filter, token, page, page_size, &count, token, &error),
                &error);
        for (int32_t i = 0; i < count; i++, seen++) {
            ck_assert_int_lt(page[i].start_time_us, last);
            last = page[i].start_time_us;
            ck_assert(kind == 0 || page[i].kind == kind);
            ck_assert(owner == NULL || strcmp(page[i].owner, owner) == 0);
            ck_assert(scene == NULL || memcmp(&page[i].scene, scene, sizeof *scene) == 0);
            free((void *)page[i].options_json);
        }
    } while (token[0] != '\0');
    return seen;
}

static void check_runs(db *store)
{
    tb_error error = {0};
    /* 24 runs: owner changes with each, kind with each second, scene with each fourth */
    for (uint64_t i = 0; i < 24; i++) {
        const db_run run =
            run_of(100 + i, 1 + i / 4 % 2, 1 + (int32_t)(i / 2 % 2), i % 2 ? "guest" : "planner");
        put_run(store, &run);
    }
    flush(store);
    db_run run;
    const db_id id = id_of(100), none = id_of(7777);
    TEST_OK(db_get_run(store, &id, &run, &error), &error);
    check_run(&run, 100);
    free((void *)run.options_json);
    TEST_STATUS(db_get_run(store, &none, &run, &error), TB_NOT_FOUND, &error);

    const db_sha256 scene = digest_of(1);
    for (int32_t page = 1; page <= 16; page += 5) {
        ck_assert_int_eq(count_runs(store, 0, NULL, NULL, page), 24);
        ck_assert_int_eq(count_runs(store, 1, NULL, NULL, page), 12);
        ck_assert_int_eq(count_runs(store, 0, &scene, NULL, page), 12);
        ck_assert_int_eq(count_runs(store, 1, &scene, NULL, page), 6);
        ck_assert_int_eq(count_runs(store, 0, NULL, "guest", page), 12);
        ck_assert_int_eq(count_runs(store, 2, NULL, "guest", page), 6);
        ck_assert_int_eq(count_runs(store, 0, &scene, "guest", page), 6);
        ck_assert_int_eq(count_runs(store, 2, &scene, "guest", page), 3);
        ck_assert_int_eq(count_runs(store, 0, NULL, "nobody", page), 0);
    }

    /* an update keeps fields that it does not name */
    db_run update = run_of(100, 2, 2, "thief");
    update.options_json = NULL;
    update.status = 2;
    update.steps = 999;
    update.end_time_us = 5;
    update.certificate.residual = (double)NAN;
    put_run(store, &update);
    flush(store);
    TEST_OK(db_get_run(store, &id, &run, &error), &error);
    ck_assert_str_eq(run.owner, "planner");
    ck_assert_int_eq(run.kind, 1);
    ck_assert_int_eq(run.status, 2);
    ck_assert_int_eq(run.steps, 999);
    ck_assert_str_eq(run.options_json, "{\"dt\":0.001}");
    ck_assert(isnan(run.certificate.residual));
    free((void *)run.options_json);
}

static void check_histories(db *store)
{
    tb_error error = {0};
    for (int i = 0; i < 50; i++) {
        const db_step_summary summary = {.run = id_of(101),
                                         .step = i,
                                         .time_us = 1000 + i,
                                         .steps = 10,
                                         .certificate = certificate_of((uint64_t)i)};
        db_put_step_summary(store, &summary);
        db_event event = {.run = id_of(101), .time_us = 1000 + i, .kind = "snapshot"};
        snprintf(event.message, sizeof event.message, "number %d", i);
        TEST_OK(db_put_event(store, &event, &error), &error);
    }
    flush(store);
    const db_id id = id_of(101);
    db_step_summary summaries[60];
    db_event events[60];
    for (int32_t capacity = 10; capacity <= 60; capacity += 50) {
        const int expected = capacity < 50 ? capacity : 50;
        int32_t count = 0;
        TEST_OK(db_list_step_summaries(store, &id, summaries, capacity, &count, &error), &error);
        ck_assert_int_eq(count, expected);
        for (int i = 0; i < count; i++) {
            ck_assert_int_eq(summaries[i].step, 50 - expected + i);
            ck_assert_int_eq(summaries[i].certificate.step, 50 - expected + i);
            ck_assert_str_eq(summaries[i].certificate.solver, "newton");
        }
        TEST_OK(db_list_events(store, &id, events, capacity, &count, &error), &error);
        ck_assert_int_eq(count, expected);
        for (int i = 0; i < count; i++) ck_assert_int_eq(events[i].time_us, 1050 - expected + i);
        ck_assert_str_eq(events[count - 1].message, "number 49");
    }
}

static void check_benchmarks(db *store)
{
    tb_error error = {0};
    const double samples[] = {5, 1, 4, 2, 3, 9};
    for (uint64_t i = 0; i < 6; i++) {
        db_benchmark b = {.id = id_of(500 + i),
                          .metric = "seconds",
                          .unit = "s",
                          .testbed = "a machine",
                          .build = "0.1.0",
                          .samples = samples,
                          .number_of_samples = 6,
                          .residual = 1e-9,
                          .iterations = 12.5,
                          .penetration = 1e-6,
                          .energy_drift = -1e-3,
                          .time_us = (int64_t)i};
        strcpy(b.name, i % 2 ? "jaw_mug.step" : "stack.step");
        TEST_OK(db_record_benchmark(store, &b, &error), &error);
        TEST_NEAR(b.median, 3.5, 1e-15);
        TEST_NEAR(b.lower, 2.25, 1e-15);
        TEST_NEAR(b.upper, 4.75, 1e-15);
    }
    db_benchmark page[2];
    char token[DB_TOKEN_SIZE] = "";
    int seen = 0;
    do {
        int32_t count = 0;
        TEST_OK(db_list_benchmarks(store, "jaw_mug.step", token, page, 2, &count, token, &error),
                &error);
        for (int32_t i = 0; i < count; i++, seen++) {
            ck_assert_int_eq(page[i].time_us, 5 - 2 * seen);
            ck_assert_int_eq(page[i].number_of_samples, 6);
            ck_assert_mem_eq(page[i].samples, samples, sizeof samples);
            ck_assert_str_eq(page[i].testbed, "a machine");
            TEST_NEAR(page[i].iterations, 12.5, 0);
            TEST_NEAR(page[i].upper, 4.75, 1e-15);
            free((void *)page[i].samples);
        }
    } while (token[0] != '\0');
    ck_assert_int_eq(seen, 3);

    const double bad[] = {1, (double)INFINITY};
    db_benchmark b = {.samples = bad, .number_of_samples = 2};
    TEST_STATUS(db_record_benchmark(store, &b, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "samples");
    b.number_of_samples = 1001;
    TEST_STATUS(db_record_benchmark(store, &b, &error), TB_INVALID_ARGUMENT, &error);
}

static void check_keys(db *store)
{
    tb_error error = {0};
    for (int i = 0; i < 3; i++) {
        db_api_key key = {.name = "robot", .hash = "$argon2id$...", .scope = 2, .sessions = 5};
        snprintf(key.id, sizeof key.id, "0000000%d", i);
        key.calls_per_second = 0.5;
        TEST_OK(db_put_api_key(store, &key, &error), &error);
        key.revoked = i == 1;
        TEST_OK(db_put_api_key(store, &key, &error), &error);
    }
    /* the time of use is the latest one reported, and a put keeps it */
    TEST_OK(db_note_key_use(store, "00000002", 2000, &error), &error);
    TEST_OK(db_note_key_use(store, "00000002", 1000, &error), &error);
    TEST_OK(db_note_key_use(store, "none", 1000, &error), &error);
    db_api_key ending = {.id = "00000002", .name = "robot", .hash = "x", .expire_time_us = 77};
    TEST_OK(db_put_api_key(store, &ending, &error), &error);
    TEST_OK(db_get_api_key(store, "00000002", &ending, &error), &error);
    ck_assert_int_eq(ending.use_time_us, 2000);
    ck_assert_int_eq(ending.expire_time_us, 77);
    ending.expire_time_us = 0, ending.calls_per_second = 0.5, ending.sessions = 5;
    snprintf(ending.hash, sizeof ending.hash, "$argon2id$...");
    ending.scope = 2;
    TEST_OK(db_put_api_key(store, &ending, &error), &error);
    db_api_key key, all[8];
    TEST_OK(db_get_api_key(store, "00000001", &key, &error), &error);
    ck_assert(key.revoked);
    ck_assert_str_eq(key.hash, "$argon2id$...");
    ck_assert_int_eq(key.sessions, 5);
    TEST_STATUS(db_get_api_key(store, "00000009", &key, &error), TB_NOT_FOUND, &error);
    int32_t count = 0;
    TEST_OK(db_list_api_keys(store, all, 8, &count, &error), &error);
    ck_assert_int_eq(count, 3);
    ck_assert_str_eq(all[2].id, "00000002");
    TEST_OK(db_list_api_keys(store, all, 2, &count, &error), &error);
    ck_assert_int_eq(count, 2);
}

static void check_all(db *store)
{
    check_assets(store);
    check_scenes(store);
    check_sessions(store);
    check_snapshots(store);
    check_runs(store);
    check_histories(store);
    check_benchmarks(store);
    check_keys(store);
}

START_TEST(what_is_put_into_memory_comes_out)
{
    db *store = open_store(NULL);
    check_all(store);
    ck_assert_int_gt(db_count(store).commits, 10);
    ck_assert_int_gt(db_count(store).file_bytes, 10000);
    db_close(store);
}
END_TEST

START_TEST(what_is_put_into_a_file_comes_out_and_stays)
{
    const char *folder = make_folder();
    db *store = open_store(folder);
    check_all(store);
    db_close(store);
    ck_assert_int_eq(ask_file(folder, "SELECT count(*) FROM asset"), 5);

    /* only the owner may read the keys' hashes */
    char path[128];
    struct stat file;
    snprintf(path, sizeof path, "%s/tribo.db", folder);
    ck_assert_int_eq(stat(path, &file), 0);
    ck_assert_int_eq(file.st_mode & 0777, 0600);

    store = open_store(folder);
    ck_assert_int_eq(count_runs(store, 0, NULL, NULL, 10), 24);
    db_close(store);
    remove_folder(folder);
}
END_TEST

START_TEST(a_session_and_its_run_end_together_or_not_at_all)
{
    db *store = open_store(NULL);
    tb_error error = {0};
    wait_for w = WAIT_FOR_INIT;
    const db_id none = id_of(999);
    db_session *sessions = NULL;
    int32_t before = 0, after = 0;
    put_scene(store, 1);
    put_session(store, 40, 1);
    flush(store);
    TEST_OK(db_open_sessions(store, &sessions, &before, &error), &error);
    free(sessions);

    db_run run = run_of(40, 1, 1, "planner"), found;
    run.status = 2;
    TEST_OK(db_end_session_run(store, &run, "deleted", wait_done, &w, &error), &error);
    TEST_OK(wait_status(&w), &w.error);
    TEST_OK(db_get_run(store, &run.id, &found, &error), &error);
    ck_assert_int_eq(found.status, 2);
    check_run(&found, 40);
    free((void *)found.options_json);
    TEST_OK(db_open_sessions(store, &sessions, &after, &error), &error);
    ck_assert_int_eq(after, before - 1);
    free(sessions);

    run.id = none;
    TEST_OK(db_end_session_run(store, &run, "deleted", wait_done, &w, &error), &error);
    TEST_STATUS(wait_status(&w), TB_NOT_FOUND, &w.error);
    TEST_STATUS(db_get_run(store, &none, &found, &error), TB_NOT_FOUND, &error);
    db_close(store);
}
END_TEST

START_TEST(runs_that_were_open_are_marked_at_the_next_start)
{
    const char *folder = make_folder();
    db *store = open_store(folder);
    const db_run open = run_of(1, 1, 1, "planner");
    db_run done = run_of(2, 1, 1, "planner"), eventful = run_of(3, 1, 2, "planner");
    done.status = 2;
    done.end_time_us = done.start_time_us + 10;
    put_run(store, &open);
    put_run(store, &done);
    put_run(store, &eventful);
    tb_error error = {0};
    const db_event event = {.run = id_of(3), .time_us = 1800000000000000, .kind = "created"};
    TEST_OK(db_put_event(store, &event, &error), &error);
    /* the run of an open session bears its id */
    const db_run resumed = run_of(4, 1, 1, "planner");
    put_run(store, &resumed);
    put_scene(store, 1);
    put_session(store, 4, 1);
    db_close(store);

    store = open_store(folder);
    db_run run;
    db_event events[4];
    int32_t count = 0;
    const db_id first = id_of(1), second = id_of(2), third = id_of(3), fourth = id_of(4);
    TEST_OK(db_get_run(store, &fourth, &run, &error), &error);
    ck_assert_int_eq(run.status, 1);
    ck_assert_int_eq(run.end_time_us, 0);
    free((void *)run.options_json);
    TEST_OK(db_get_run(store, &first, &run, &error), &error);
    ck_assert_int_eq(run.status, 5);
    ck_assert_int_eq(run.end_time_us, open.start_time_us);
    free((void *)run.options_json);
    TEST_OK(db_get_run(store, &second, &run, &error), &error);
    ck_assert_int_eq(run.status, 2);
    free((void *)run.options_json);
    /* the run lasted at least until its last event */
    TEST_OK(db_get_run(store, &third, &run, &error), &error);
    ck_assert_int_eq(run.end_time_us, event.time_us);
    free((void *)run.options_json);
    TEST_OK(db_list_events(store, &third, events, 4, &count, &error), &error);
    ck_assert_int_eq(count, 2);
    ck_assert_str_eq(events[1].kind, "interrupted");
    TEST_OK(db_list_events(store, &second, events, 4, &count, &error), &error);
    ck_assert_int_eq(count, 0);
    db_close(store);
    remove_folder(folder);
}
END_TEST

START_TEST(a_file_belongs_to_one_process)
{
    const char *folder = make_folder();
    db *store = open_store(folder), *second = NULL;
    const db_options options = options_for(folder);
    tb_error error = {0};
    TEST_STATUS(db_open(&options, &second, &error), TB_FAILED_PRECONDITION, &error);
    ck_assert_ptr_null(second);
    char expected[64];
    snprintf(expected, sizeof expected, "in use by process %d", (int)getpid());
    ck_assert_msg(strstr(error.message, expected) != NULL, "%s", error.message);
    db_close(store);
    store = open_store(folder);
    db_close(store);
    remove_folder(folder);
}
END_TEST

START_TEST(keys_can_be_changed_beside_the_holder)
{
    const char *folder = make_folder();
    db_options options = options_for(folder);
    options.beside = true;
    db *beside = NULL;
    tb_error error = {0};
    db_api_key read;
    TEST_STATUS(db_open(&options, &beside, &error), TB_NOT_FOUND, &error);
    db *store = open_store(folder);
    const db_api_key first = {.id = "00000001", .name = "a", .hash = "h", .scope = 2};
    const db_api_key second = {.id = "00000002", .name = "b", .hash = "h", .scope = 1};
    TEST_OK(db_put_api_key(store, &first, &error), &error);

    /* each sees the other's writes, also after the other has closed */
    TEST_OK(db_open(&options, &beside, &error), &error);
    TEST_OK(db_get_api_key(beside, "00000001", &read, &error), &error);
    ck_assert_str_eq(read.name, "a");
    TEST_OK(db_put_api_key(beside, &second, &error), &error);
    db_close(beside);
    TEST_OK(db_get_api_key(store, "00000002", &read, &error), &error);
    ck_assert_str_eq(read.name, "b");
    db_close(store);

    /* the holder's lock was left alone */
    TEST_OK(db_open(&options, &beside, &error), &error);
    store = open_store(folder);
    db_close(beside);
    db_close(store);
    remove_folder(folder);
}
END_TEST

START_TEST(a_token_serves_its_own_list_only)
{
    db *store = open_store(NULL);
    tb_error error = {0};
    for (uint64_t i = 0; i < 4; i++) {
        const db_run run = run_of(i, 1, 1, "planner");
        put_run(store, &run);
        put_scene(store, i);
    }
    flush(store);
    char token[DB_TOKEN_SIZE], next[DB_TOKEN_SIZE];
    int32_t count = 0;
    db_scene scenes[2];
    db_run runs[2];
    TEST_OK(db_list_scenes(store, "", scenes, 2, &count, token, &error), &error);
    ck_assert_str_ne(token, "");

    const db_run_filter all = {0}, mine = {.owner = "planner"};
    const char *const bad[] = {token, "x", "r0000000000000002ffffffff", "0 OR 1=1",
                               "a token that is far longer than any token of ours has ever been"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        TEST_STATUS(db_list_runs(store, &all, bad[i], runs, 2, &count, next, &error),
                    TB_INVALID_ARGUMENT, &error);
        ck_assert_str_eq(error.field, "page_token");
    }
    /* nor under another filter */
    TEST_OK(db_list_runs(store, &all, "", runs, 2, &count, token, &error), &error);
    for (int i = 0; i < count; i++) free((void *)runs[i].options_json);
    TEST_STATUS(db_list_runs(store, &mine, token, runs, 2, &count, next, &error),
                TB_INVALID_ARGUMENT, &error);
    db_close(store);
}
END_TEST

START_TEST(a_large_asset_goes_in_and_out)
{
    const char *folder = make_folder();
    db *store = open_store(folder);
    tb_error error = {0};
    wait_for w = WAIT_FOR_INIT;
    const uint64_t size = 48u << 20;
    unsigned char *bytes = bytes_of(1, size), *back = NULL;
    db_asset asset = {.sha256 = digest_of(1), .size = size, .name = "large.stl"};
    TEST_OK(db_put_asset(store, &asset, bytes, wait_done, &w, &error), &error);
    TEST_OK(wait_status(&w), &w.error);
    const db_sha256 digest = digest_of(1);
    TEST_OK(db_get_asset(store, &digest, &asset, &back, &error), &error);
    ck_assert(memcmp(bytes, back, size) == 0);
    free(bytes);
    free(back);
    db_close(store);
    remove_folder(folder);
}
END_TEST

typedef struct plan {
    char text[1024];
} plan;

static plan plan_of(sqlite3 *handle, const char *sql)
{
    plan p = {""};
    char *explained = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
    sqlite3_stmt *s = NULL;
    ck_assert_msg(sqlite3_prepare_v2(handle, explained, -1, &s, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(handle));
    while (sqlite3_step(s) == SQLITE_ROW) {
        const size_t length = strlen(p.text);
        snprintf(p.text + length, sizeof p.text - length, "%s; ", sqlite3_column_text(s, 3));
    }
    sqlite3_finalize(s);
    sqlite3_free(explained);
    return p;
}

START_TEST(no_query_reads_a_table_from_end_to_end)
{
    db *store = open_store(NULL);
    int searched = 0;
    for (int i = DB_ASSET_PUT; i < DB_STATEMENTS; i++) {
        const char *sql = db_statement_text((db_statement)i);
        const plan p = plan_of(store->writer.connection.handle, sql);
        searched += strstr(p.text, "SEARCH") != NULL;
        /* Keys are few, and the change mark is computed over all of them. Bounded by LIMIT in key
         * order: the list of keys. The sizes of transient snapshots, of ended grasp jobs, of
         * recordings and of trajectories are summed in an index that holds nothing else, and so are
         * the open sessions and runs. Refused keys are bounded in number. Retention sums the sizes of assets and
         * scenes once a minute. The rows of one session's snapshots come by their index and are
         * scanned as a subquery. */
        if (i == DB_KEY_MARK) continue;
        /* the outbox is read and emptied as a whole, and its state is one row */
        if (i >= DB_OUTBOX_OPEN && i <= DB_OUTBOX_MEASURE) continue;
        if (i == DB_KEY_LIST || i == DB_RETAIN_SNAPSHOTS || i == DB_RETAIN_SNAPSHOTS_SIZE ||
            i == DB_KEY_REFUSAL_LIST || i == DB_RETAIN_REFUSALS_NUMBER ||
            i == DB_RETAIN_UNUSED_ASSETS || i == DB_RETAIN_UNUSED_SESSIONS ||
            i == DB_RETAIN_UNUSED_SCENES || i == DB_SESSION_OPEN || i == DB_RUN_NOTE_INTERRUPTED ||
            i == DB_RUN_INTERRUPT || i == DB_SNAPSHOT_DROP_BEYOND ||
            i == DB_RETAIN_GRASP_JOBS_SIZE || i == DB_RETAIN_RECORDINGS ||
            i == DB_RETAIN_GRASP_TRAJECTORIES) {
            ck_assert_msg(strstr(p.text, "INDEX") != NULL || i == DB_KEY_LIST, "%s: %s", sql,
                          p.text);
            continue;
        }
        ck_assert_msg(strstr(p.text, "SCAN") == NULL, "%s: %s", sql, p.text);
        ck_assert_msg(strstr(p.text, "TEMP B-TREE") == NULL, "%s: %s", sql, p.text);
    }
    ck_assert_int_gt(searched, 25);
    db_close(store);
}
END_TEST

TEST_MAIN(what_is_put_into_memory_comes_out, what_is_put_into_a_file_comes_out_and_stays,
          a_session_and_its_run_end_together_or_not_at_all,
          runs_that_were_open_are_marked_at_the_next_start, a_file_belongs_to_one_process,
          keys_can_be_changed_beside_the_holder, a_token_serves_its_own_list_only,
          a_large_asset_goes_in_and_out, no_query_reads_a_table_from_end_to_end)
