/* Retention of grasp jobs with their results and trajectories, and of recordings: by age, by size,
 * with their run. */
#include "db/db_util.h"

static const int64_t DAY_US = 86400000000;
static const int64_t NOW_US = 1700000000000000 + 100 * 86400000000;
enum { RESULT_BYTES = 1000, RESULTS = 4 };

static db *open_bounded(double days, uint64_t jobs, uint64_t recordings)
{
    db_options options = options_for(NULL);
    tb_error error = {0};
    db *store = NULL;
    options.retain_days = days;
    options.retain_jobs_bytes = jobs;
    options.retain_recordings_bytes = recordings;
    TEST_OK(db_open(&options, &store, &error), &error);
    return store;
}

/* A job with four results of 1,000 bytes that ended `days` days ago; days < 0: it runs. */
static void put_job(db *store, uint64_t number, int64_t days)
{
    unsigned char bytes[RESULT_BYTES] = {(unsigned char)number};
    tb_error error = {0};
    db_grasp_job job = {.id = id_of(number), .owner = "planner", .grasps = RESULTS};
    job.create_time_us = NOW_US - 200 * DAY_US;
    TEST_OK(db_put_grasp_job(store, &job, "request", 7, NULL, NULL, &error), &error);
    for (int32_t i = 0; i < RESULTS; i++) {
        const db_grasp_result result = {
            .job = job.id, .pose = i, .bytes = bytes, .size = sizeof bytes};
        TEST_OK(db_put_grasp_result(store, &result, &error), &error);
    }
    if (days < 0) return;
    job.status = DB_GRASP_JOB_DONE;
    job.end_time_us = NOW_US - days * DAY_US;
    TEST_OK(db_end_grasp_job(store, &job, &error), &error);
}

/* How many results the job has; -1: it is gone. */
static int results_of(db *store, uint64_t number)
{
    db_grasp_result rows[RESULTS];
    db_grasp_job job;
    tb_error error = {0};
    int32_t count = 0;
    const db_id id = id_of(number);
    if (db_get_grasp_job(store, &id, &job, &error) != TB_OK) return -1;
    TEST_OK(db_list_grasp_results(store, &id, 0, rows, RESULTS, &count, &error), &error);
    for (int32_t i = 0; i < count; i++) free(rows[i].bytes);
    ck_assert_int_eq(job.results, count);
    return count;
}

START_TEST(jobs_go_by_age_with_their_results_and_running_ones_stay)
{
    db *store = open_bounded(30, 0, 0);
    tb_error error = {0};
    put_job(store, 1, 31);
    put_job(store, 2, 29);
    put_job(store, 3, -1);
    flush(store);
    TEST_OK(db_retain(store, NOW_US, &error), &error);
    ck_assert_int_eq(results_of(store, 1), -1);
    ck_assert_int_eq(results_of(store, 2), RESULTS);
    ck_assert_int_eq(results_of(store, 3), RESULTS);
    db_close(store);
}
END_TEST

START_TEST(jobs_go_by_size_the_oldest_first)
{
    db *store = open_bounded(0, 3 * RESULTS * RESULT_BYTES, 0);
    tb_error error = {0};
    put_job(store, 1, -1); /* runs: counts for nothing */
    for (uint64_t i = 2; i <= 6; i++) put_job(store, i, 1);
    flush(store);
    TEST_OK(db_retain(store, NOW_US, &error), &error);
    ck_assert_int_eq(results_of(store, 1), RESULTS);
    for (uint64_t i = 2; i <= 6; i++) ck_assert_int_eq(results_of(store, i), i <= 3 ? -1 : RESULTS);
    db_close(store);
}
END_TEST

/* A job with two results of two trajectories of `size` bytes each. */
static void put_filmed(db *store, uint64_t number, size_t size)
{
    unsigned char bytes[4000];
    tb_error error = {0};
    const db_scene scene = {.sha256 = digest_of(number), .name = "scene", .size = 5};
    db_grasp_job job = {.id = id_of(number), .owner = "planner", .grasps = 2};
    job.scene = scene.sha256;
    ck_assert_uint_le(size, sizeof bytes);
    memset(bytes, (int)number, sizeof bytes);
    TEST_OK(db_put_scene(store, &scene, "scene", NULL, NULL, &error), &error);
    TEST_OK(db_put_grasp_job(store, &job, "request", 7, NULL, NULL, &error), &error);
    for (int32_t i = 0; i < 2; i++) {
        const db_grasp_trajectory films[2] = {{.pose = i, .copy = 0, .bytes = bytes, .size = size},
                                              {.pose = i, .copy = 2, .bytes = bytes, .size = size}};
        const db_grasp_result result = {.job = job.id,
                                        .pose = i,
                                        .bytes = bytes,
                                        .size = 100,
                                        .trajectories = films,
                                        .number_of_trajectories = 2,
                                        .trajectories_left_out = i};
        TEST_OK(db_put_grasp_result(store, &result, &error), &error);
        /* a result that is there stays, and its trajectories are not written twice */
        TEST_OK(db_put_grasp_result(store, &result, &error), &error);
    }
}

/* Trajectories of a job, by pose and copy: "0:0 0:2 1:0 1:2 ". */
static void expect_films(db *store, uint64_t number, size_t size, const char *expected)
{
    db_grasp_trajectory rows[8];
    char found[64] = "";
    tb_error error = {0};
    int32_t count = 0;
    const db_id id = id_of(number);
    TEST_OK(db_list_grasp_trajectories(store, &id, -1, -1, rows, 8, &count, &error), &error);
    for (int32_t i = 0; i < count; i++) {
        unsigned char *bytes = NULL;
        size_t read = 0;
        snprintf(found + strlen(found), sizeof found - strlen(found), "%d:%d ", (int)rows[i].pose,
                 (int)rows[i].copy);
        ck_assert_uint_eq(rows[i].size, size);
        TEST_OK(
            db_get_grasp_trajectory(store, &id, rows[i].pose, rows[i].copy, &bytes, &read, &error),
            &error);
        ck_assert(read == size && bytes[0] == number && bytes[size - 1] == number);
        free(bytes);
    }
    ck_assert_str_eq(found, expected);
}

START_TEST(trajectories_are_bounded_and_go_with_their_job)
{
    db_options options = options_for(NULL);
    tb_error error = {0};
    unsigned char *bytes = NULL;
    size_t size = 0;
    db *store = NULL;
    db_grasp_job job;
    db_grasp_trajectory row;
    int32_t count = 0;
    options.retain_days = 30;
    options.retain_trajectories_bytes = 5000;
    TEST_OK(db_open(&options, &store, &error), &error);
    put_filmed(store, 1, 1000);
    put_filmed(store, 2, 1000);
    flush(store);
    expect_films(store, 1, 1000, "0:0 0:2 1:0 1:2 ");
    const db_id first = id_of(1), second = id_of(2);
    TEST_OK(db_get_grasp_job(store, &first, &job, &error), &error);
    ck_assert(job.trajectories == 4 && job.trajectory_bytes == 4000);
    ck_assert(job.trajectories_left_out == 1 && job.results == 2 && job.result_bytes == 200);
    TEST_OK(db_list_grasp_trajectories(store, &first, 0, 0, &row, 1, &count, &error), &error);
    ck_assert(count == 1 && row.pose == 0 && row.copy == 2);
    ck_assert_int_eq(db_get_grasp_trajectory(store, &first, 1, 1, &bytes, &size, &error),
                     TB_NOT_FOUND);

    /* the oldest go beyond the bound, whether or not their job runs; its row still counts them */
    TEST_OK(db_retain(store, NOW_US, &error), &error);
    expect_films(store, 1, 1000, "1:2 ");
    expect_films(store, 2, 1000, "0:0 0:2 1:0 1:2 ");
    TEST_OK(db_get_grasp_job(store, &first, &job, &error), &error);
    ck_assert(job.trajectories == 4 && job.results == 2);

    /* the rest goes with its job; the scene that draws the others stays however old it is */
    job.status = DB_GRASP_JOB_DONE;
    job.end_time_us = NOW_US - 31 * DAY_US;
    TEST_OK(db_end_grasp_job(store, &job, &error), &error);
    flush(store);
    const int64_t later = NOW_US + INT64_C(10000) * DAY_US;
    TEST_OK(db_retain(store, NOW_US, &error), &error);
    expect_films(store, 1, 1000, "");
    TEST_OK(db_retain(store, later, &error), &error);
    db_scene scene;
    const db_sha256 kept = digest_of(2), gone = digest_of(1);
    TEST_OK(db_get_scene(store, &kept, &scene, &bytes, &error), &error);
    free(bytes);
    ck_assert_int_eq(db_get_scene(store, &gone, &scene, &bytes, &error), TB_NOT_FOUND);
    expect_films(store, 2, 1000, "0:0 0:2 1:0 1:2 ");
    TEST_OK(db_get_grasp_job(store, &second, &job, &error), &error);
    ck_assert_mem_eq(&job.scene, &kept, sizeof kept);
    db_close(store);
}
END_TEST

static void put_recording(db *store, uint64_t number, int letter, size_t size)
{
    tb_error error = {0};
    const db_id id = id_of(number);
    unsigned char *bytes = malloc(size);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, letter, size);
    TEST_OK(db_put_recording(store, &id, bytes, size, NULL, NULL, &error), &error);
}

/* The letter of a run's recording of `size` bytes; 0: there is none. */
static int letter_of(db *store, uint64_t number, uint64_t expected)
{
    unsigned char *bytes = NULL;
    uint64_t size = 0;
    tb_error error = {0};
    const db_id id = id_of(number);
    if (db_get_recording(store, &id, &bytes, &size, &error) != TB_OK) {
        ck_assert_int_eq(error.status, TB_NOT_FOUND);
        return 0;
    }
    ck_assert_uint_eq(size, expected);
    const int letter = bytes[size - 1];
    free(bytes);
    return letter;
}

START_TEST(a_recording_replaces_the_one_before_and_goes_beyond_the_bound_or_with_its_run)
{
    db *store = open_bounded(30, 0, 3000);
    tb_error error = {0};
    for (uint64_t i = 1; i <= 5; i++) {
        db_run run = run_of(i, 1, i == 5 ? 2 : 1, "planner");
        run.end_time_us = i == 5 ? NOW_US - 31 * DAY_US : 0;
        run.status = i == 5 ? 2 : 1;
        put_run(store, &run);
        put_recording(store, i, 'a', 900);
    }
    put_recording(store, 1, 'b', 1200); /* now the newest */
    flush(store);
    ck_assert_int_eq(letter_of(store, 1, 1200), 'b');
    ck_assert_int_eq(letter_of(store, 2, 900), 'a');
    TEST_OK(db_retain(store, NOW_US, &error), &error);
    /* the fifth went with its run; of the others 1,200 + 900 + 900 bytes fit */
    ck_assert_int_eq(letter_of(store, 5, 900), 0);
    ck_assert_int_eq(letter_of(store, 2, 900), 0);
    ck_assert_int_eq(letter_of(store, 3, 900), 'a');
    ck_assert_int_eq(letter_of(store, 4, 900), 'a');
    ck_assert_int_eq(letter_of(store, 1, 1200), 'b');

    /* a run that is not there has none */
    const db_id none = id_of(99);
    wait_for w = WAIT_FOR_INIT;
    TEST_OK(db_put_recording(store, &none, calloc(1, 8), 8, wait_done, &w, &error), &error);
    ck_assert_int_ne(wait_status(&w), TB_OK);
    db_close(store);
}
END_TEST

TEST_MAIN(jobs_go_by_age_with_their_results_and_running_ones_stay, jobs_go_by_size_the_oldest_first,
          trajectories_are_bounded_and_go_with_their_job,
          a_recording_replaces_the_one_before_and_goes_beyond_the_bound_or_with_its_run)
