/* The outbox: rows enter it in the transaction that writes them, and leave it once they are
 * acknowledged. A real PostgreSQL takes them in tests/e2e/runs_reach_the_fleet.py. */
#include "db/db_util.h"
#include "db/outbox.h"

static db *open_outbox(const char *folder, bool outbox)
{
    db_options options = options_for(folder);
    options.outbox = outbox;
    tb_error error = {0};
    db *store = NULL;
    TEST_OK(db_open(&options, &store, &error), &error);
    return store;
}

static int32_t list(db *store, db_outbox_entry *entries, int32_t capacity)
{
    int32_t count = 0;
    tb_error error = {0};
    TEST_OK(db_outbox_list(store, entries, capacity, &count, &error), &error);
    return count;
}

static void acknowledge(db *store, const db_outbox_entry *entries, int32_t count)
{
    tb_error error = {0};
    TEST_OK(db_outbox_acknowledge(store, entries, count, &error), &error);
}

static bool aim(db *store, const char *target)
{
    bool filled = false;
    tb_error error = {0};
    TEST_OK(db_outbox_aim(store, target, &filled, &error), &error);
    return filled;
}

static void record(db *store, uint64_t number)
{
    const double samples[] = {1, 2, 4};
    db_benchmark benchmark = {.id = id_of(number),
                              .name = "jaw_mug.step",
                              .metric = "seconds",
                              .samples = samples,
                              .number_of_samples = 3,
                              .time_us = 1700000000000000};
    tb_error error = {0};
    TEST_OK(db_record_benchmark(store, &benchmark, &error), &error);
}

START_TEST(a_row_waits_once_and_in_its_latest_state)
{
    db *store = open_outbox(NULL, true);
    db_outbox_entry entries[10];
    ck_assert_int_eq(list(store, entries, 10), 0);
    db_run run = run_of(1, 1, 1, "planner"), other = run_of(2, 1, 1, "planner");
    put_run(store, &run);
    put_run(store, &other);
    run.steps = 800;
    put_run(store, &run);
    record(store, 3);
    flush(store);
    ck_assert_int_eq(list(store, entries, 10), 3);
    ck_assert_mem_eq(entries[0].id.bytes, other.id.bytes, 16); /* the first changed after it */
    ck_assert_mem_eq(entries[1].id.bytes, run.id.bytes, 16);
    ck_assert_int_eq(entries[1].kind, DB_OUTBOX_RUN);
    ck_assert_int_eq(entries[2].kind, DB_OUTBOX_BENCHMARK);
    ck_assert_int_lt(entries[0].sequence, entries[1].sequence);
    ck_assert_int_lt(entries[1].sequence, entries[2].sequence);
    ck_assert_int_eq(list(store, entries, 2), 2);

    db_benchmark benchmark;
    tb_error error = {0};
    const db_id id = id_of(3);
    TEST_OK(db_get_benchmark(store, &id, &benchmark, &error), &error);
    ck_assert_int_eq(benchmark.number_of_samples, 3);
    TEST_NEAR(benchmark.samples[2], 4, 0);
    free((void *)benchmark.samples);
    db_close(store);
}
END_TEST

START_TEST(an_acknowledgement_spares_what_changed_meanwhile)
{
    db *store = open_outbox(NULL, true);
    db_outbox_entry entries[10];
    db_outbox_measure measure;
    tb_error error = {0};
    db_run run = run_of(1, 1, 1, "planner"), other = run_of(2, 1, 1, "planner");
    put_run(store, &run);
    put_run(store, &other);
    flush(store);
    ck_assert_int_eq(list(store, entries, 10), 2);
    run.status = 2;
    put_run(store, &run);
    flush(store);
    acknowledge(store, entries, 2);
    ck_assert_int_eq(list(store, entries, 10), 1);
    ck_assert_mem_eq(entries[0].id.bytes, run.id.bytes, 16);
    TEST_OK(db_outbox_measure_now(store, &measure, &error), &error);
    ck_assert_int_eq(measure.length, 1);
    ck_assert_int_gt(measure.oldest_us, 1700000000000000);
    acknowledge(store, entries, 1);
    TEST_OK(db_outbox_measure_now(store, &measure, &error), &error);
    ck_assert_int_eq(measure.length, 0);
    ck_assert_int_eq(measure.oldest_us, 0);
    db_close(store);
}
END_TEST

START_TEST(a_refused_row_is_set_aside_until_it_changes_or_the_next_start)
{
    const char *folder = make_folder();
    db *store = open_outbox(folder, true);
    db_outbox_entry entries[10];
    db_outbox_measure measure;
    tb_error error = {0};
    db_run run = run_of(1, 1, 1, "planner");
    ck_assert(aim(store, "a"));
    put_run(store, &run);
    flush(store);
    ck_assert_int_eq(list(store, entries, 10), 1);
    TEST_OK(db_outbox_refuse(store, entries, "no such character", &error), &error);
    ck_assert_int_eq(list(store, entries, 10), 0);
    TEST_OK(db_outbox_measure_now(store, &measure, &error), &error);
    ck_assert_int_eq(measure.refused, 1);
    db_close(store);

    store = open_outbox(folder, true);
    ck_assert_int_eq(list(store, entries, 10), 1);
    TEST_OK(db_outbox_refuse(store, entries, "no such character", &error), &error);
    put_run(store, &run);
    flush(store);
    ck_assert_int_eq(list(store, entries, 10), 1);
    db_close(store);
    remove_folder(folder);
}
END_TEST

START_TEST(sequences_grow_over_starts_and_another_database_gets_everything)
{
    const char *folder = make_folder();
    db *store = open_outbox(folder, true);
    db_outbox_entry entries[10];
    db_run run = run_of(1, 1, 1, "planner");
    run.status = 2; /* a start changes those that run */
    ck_assert(aim(store, "a"));
    put_run(store, &run);
    record(store, 3);
    flush(store);
    ck_assert_int_eq(list(store, entries, 10), 2);
    const int64_t before = entries[1].sequence;
    acknowledge(store, entries, 2);
    db_close(store);

    store = open_outbox(folder, true);
    ck_assert(!aim(store, "a"));
    ck_assert_int_eq(list(store, entries, 10), 0);
    ck_assert(aim(store, "b"));
    ck_assert_int_eq(list(store, entries, 10), 2);
    ck_assert_int_gt(entries[0].sequence, before);
    put_run(store, &run);
    flush(store);
    ck_assert_int_eq(list(store, entries, 10), 2);
    ck_assert_int_eq(entries[1].kind, DB_OUTBOX_RUN);
    db_close(store);

    /* changes without an outbox are not noted, so the same database gets everything again */
    store = open_outbox(folder, false);
    put_run(store, &run);
    flush(store);
    ck_assert_int_eq(list(store, entries, 10), 0);
    db_close(store);
    store = open_outbox(folder, true);
    ck_assert(aim(store, "b"));
    ck_assert_int_eq(list(store, entries, 10), 2);
    db_close(store);
    remove_folder(folder);
}
END_TEST

START_TEST(retention_keeps_runs_that_wait)
{
    const char *folder = make_folder();
    db_options options = options_for(folder);
    options.outbox = true;
    options.retain_days = 1;
    tb_error error = {0};
    db *store = NULL;
    db_outbox_entry entries[10];
    TEST_OK(db_open(&options, &store, &error), &error);
    db_run run = run_of(1, 1, 2, "planner");
    run.status = 2;
    run.end_time_us = 1700000000000000;
    put_run(store, &run);
    flush(store);
    TEST_OK(db_retain(store, 1800000000000000, &error), &error);
    ck_assert_int_eq(ask_file(folder, "SELECT count(*) FROM run"), 1);
    acknowledge(store, entries, list(store, entries, 10));
    TEST_OK(db_retain(store, 1800000000000000, &error), &error);
    ck_assert_int_eq(ask_file(folder, "SELECT count(*) FROM run"), 0);
    db_close(store);
    remove_folder(folder);
}
END_TEST

TEST_MAIN(a_row_waits_once_and_in_its_latest_state,
          an_acknowledgement_spares_what_changed_meanwhile,
          a_refused_row_is_set_aside_until_it_changes_or_the_next_start,
          sequences_grow_over_starts_and_another_database_gets_everything,
          retention_keeps_runs_that_wait)
