/* The writer: acknowledged writes survive kill -9; commits are shared; a full queue drops
 * summaries and counts them; one bad write does not affect others. */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "db/db_internal.h"
#include "db/db_util.h"

/* ---- kill -9 ---- */

enum { ROUNDS = 5, IN_FLIGHT = 8, SNAPSHOT_SIZE = 3000 };

typedef struct child_slot {
    int pipe;
    uint64_t number;
    atomic_int busy;
} child_slot;

static void acknowledge(void *context, tb_status status, const tb_error *error)
{
    child_slot *slot = context;
    if (status != TB_OK) {
        fprintf(stderr, "%s\n", error->message);
        _exit(2);
    }
    if (write(slot->pipe, &slot->number, sizeof slot->number) != sizeof slot->number) _exit(3);
    atomic_store(&slot->busy, 0);
}

/* Writes snapshots and runs without end; reports each acknowledged snapshot through the pipe. */
static void write_until_killed(const char *folder, int out, uint64_t first)
{
    db_options options = options_for(folder);
    tb_error error = {0};
    db *store = NULL;
    if (db_open(&options, &store, &error) != TB_OK) {
        fprintf(stderr, "%s\n", error.message);
        _exit(1);
    }
    put_scene(store, 1);
    put_session(store, 1, 1);
    static child_slot slots[IN_FLIGHT];
    for (uint64_t number = first;; number++) {
        child_slot *slot = &slots[number % IN_FLIGHT];
        while (atomic_load(&slot->busy)) usleep(50);
        slot->pipe = out;
        slot->number = number;
        atomic_store(&slot->busy, 1);
        const db_snapshot snapshot = snapshot_of(number, 1, DB_SNAPSHOT_CLIENT, SNAPSHOT_SIZE);
        if (db_put_snapshot(store, &snapshot, bytes_of(number, SNAPSHOT_SIZE), acknowledge, slot,
                            &error) != TB_OK)
            _exit(4);
        const db_run run = run_of(number, 1, 1, "planner");
        if (db_put_run(store, &run, NULL, NULL, &error) != TB_OK) _exit(5);
    }
}

START_TEST(what_was_acknowledged_is_there_after_kill_9)
{
    const char *folder = make_folder();
    static uint64_t acknowledged[100000];
    size_t count = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        int ends[2];
        ck_assert_int_eq(pipe(ends), 0);
        const pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            close(ends[0]);
            write_until_killed(folder, ends[1], 1000000 * (round + 1));
        }
        close(ends[1]);
        /* after some dozens of acknowledgements, in the middle of the next ones */
        const size_t enough = count + 60 + 17 * round;
        uint64_t number = 0;
        while (count < enough && read(ends[0], &number, sizeof number) == sizeof number)
            acknowledged[count++] = number;
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        /* snapshots reported before the kill count too */
        while (read(ends[0], &number, sizeof number) == sizeof number)
            acknowledged[count++] = number;
        close(ends[0]);
        int status = 0;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        ck_assert_uint_ge(count, enough);

        db *store = open_store(folder);
        tb_error error = {0};
        for (size_t i = 0; i < count; i++) {
            db_snapshot snapshot;
            const db_id id = id_of(acknowledged[i]);
            unsigned char *bytes = NULL, *expected = bytes_of(acknowledged[i], SNAPSHOT_SIZE);
            TEST_OK(db_get_snapshot(store, &id, &snapshot, &bytes, &error), &error);
            ck_assert_mem_eq(bytes, expected, SNAPSHOT_SIZE);
            free(bytes);
            free(expected);
        }
        /* the session that was open can go on from the last of them, or a later one */
        db_session *sessions = NULL;
        int32_t open = 0;
        TEST_OK(db_open_sessions(store, &sessions, &open, &error), &error);
        ck_assert_int_eq(open, 1);
        db_snapshot latest;
        unsigned char *bytes = NULL;
        TEST_OK(db_latest_snapshot(store, &sessions[0].id, &latest, &bytes, &error), &error);
        ck_assert_int_ge(latest.steps, (int64_t)acknowledged[count - 1] * 10);
        free(bytes);
        free(sessions);
        db_close(store);
    }
    remove_folder(folder);
}
END_TEST

START_TEST(snapshots_are_committed_with_synchronous_full)
{
    const char *folder = make_folder();
    db *store = open_store(folder);
    put_scene(store, 1);
    put_session(store, 1, 1);
    flush(store);
    const db_run run = run_of(1, 1, 1, "planner");
    put_run(store, &run);
    flush(store);
    int64_t synchronous = -1;
    tb_error error = {0};
    TEST_OK(db_ask_number(&store->writer.connection, "PRAGMA synchronous", &synchronous, &error),
            &error);
    ck_assert_int_eq(synchronous, 1); /* NORMAL */
    TEST_OK(put_snapshot(store, 1, 1, DB_SNAPSHOT_CLIENT, 10, &error), &error);
    flush(store);
    TEST_OK(db_ask_number(&store->writer.connection, "PRAGMA synchronous", &synchronous, &error),
            &error);
    ck_assert_int_eq(synchronous, 2); /* FULL */
    db_close(store);
    remove_folder(folder);
}
END_TEST

/* ---- the queue ---- */

/* A write whose callback keeps the writer busy until it is released. */
typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool entered, open;
} gate;

static void hold_writer(void *context, tb_status status, const tb_error *error)
{
    (void)status, (void)error;
    gate *g = context;
    pthread_mutex_lock(&g->mutex);
    g->entered = true;
    pthread_cond_broadcast(&g->changed);
    while (!g->open) pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static gate *close_gate(db *store)
{
    static gate g;
    g = (gate){.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    tb_error error = {0};
    const db_run run = run_of(1, 1, 1, "planner");
    TEST_OK(db_put_run(store, &run, hold_writer, &g, &error), &error);
    pthread_mutex_lock(&g.mutex);
    while (!g.entered) pthread_cond_wait(&g.changed, &g.mutex);
    pthread_mutex_unlock(&g.mutex);
    return &g;
}

static void open_gate(gate *g)
{
    pthread_mutex_lock(&g->mutex);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->mutex);
}

static void count_done(void *context, tb_status status, const tb_error *error)
{
    (void)error;
    if (status == TB_OK) atomic_fetch_add((atomic_int *)context, 1);
}

START_TEST(a_full_queue_loses_summaries_only_and_counts_them)
{
    db_options options = options_for(NULL);
    options.queue_length = 50;
    tb_error error = {0};
    db *store = NULL;
    TEST_OK(db_open(&options, &store, &error), &error);
    gate *g = close_gate(store);

    /* 200 into a queue of 50: the oldest 150 go */
    for (int i = 0; i < 200; i++) {
        const db_step_summary summary = {.run = id_of(1), .step = i, .steps = 1};
        db_put_step_summary(store, &summary);
    }
    ck_assert_int_eq(db_count(store).dropped_summaries, 150);
    ck_assert_int_eq(db_count(store).queued, 50);

    /* 30 writes with a waiting caller replace 30 of the others */
    atomic_int done = 0;
    int accepted = 0;
    for (uint64_t i = 0; i < 30; i++, accepted++) {
        const db_run run = run_of(100 + i, 1, 1, "planner");
        TEST_OK(db_put_run(store, &run, count_done, &done, &error), &error);
    }
    ck_assert_int_eq(db_count(store).dropped_summaries, 180);

    /* until there is nothing left to drop; then submitters wait a moment and are refused */
    tb_status status = TB_OK;
    while (status == TB_OK) {
        const db_run run = run_of(1000 + (uint64_t)accepted, 1, 1, "planner");
        status = db_put_run(store, &run, count_done, &done, &error);
        accepted += status == TB_OK;
    }
    TEST_STATUS(status, TB_RESOURCE_EXHAUSTED, &error);
    ck_assert_int_eq(accepted, 50);
    ck_assert_int_eq(db_count(store).dropped_summaries, 200);
    /* a summary finds no room either and is counted */
    const db_step_summary late = {.run = id_of(1), .step = 7};
    db_put_step_summary(store, &late);
    ck_assert_int_eq(db_count(store).dropped_summaries, 201);

    /* everything that was accepted is written */
    open_gate(g);
    flush(store);
    ck_assert_int_eq(atomic_load(&done), 50);
    const db_id first = id_of(100), one = id_of(1);
    db_run run;
    TEST_OK(db_get_run(store, &first, &run, &error), &error);
    free((void *)run.options_json);
    db_step_summary summaries[4];
    int32_t count = 0;
    TEST_OK(db_list_step_summaries(store, &one, summaries, 4, &count, &error), &error);
    ck_assert_int_eq(count, 0);
    db_close(store);
}
END_TEST

START_TEST(the_newest_summaries_survive_a_full_queue)
{
    db_options options = options_for(NULL);
    options.queue_length = 20;
    tb_error error = {0};
    db *store = NULL;
    TEST_OK(db_open(&options, &store, &error), &error);
    gate *g = close_gate(store);
    for (int i = 0; i < 100; i++) {
        const db_step_summary summary = {.run = id_of(1), .step = i};
        db_put_step_summary(store, &summary);
    }
    open_gate(g);
    flush(store);
    db_step_summary summaries[100];
    int32_t count = 0;
    const db_id one = id_of(1);
    TEST_OK(db_list_step_summaries(store, &one, summaries, 100, &count, &error), &error);
    ck_assert_int_eq(count, 20);
    for (int i = 0; i < count; i++) ck_assert_int_eq(summaries[i].step, 80 + i);
    db_close(store);
}
END_TEST

START_TEST(commits_are_shared)
{
    const char *folder = make_folder();
    db_options options = options_for(folder);
    options.queue_length = 3000;
    tb_error error = {0};
    db *store = NULL;
    TEST_OK(db_open(&options, &store, &error), &error);
    gate *g = close_gate(store);
    for (uint64_t i = 0; i < 2000; i++) {
        const db_run run = run_of(10 + i, 1, 1, "planner");
        put_run(store, &run);
    }
    const int64_t before = db_count(store).commits;
    open_gate(g);
    flush(store);
    const db_counters counters = db_count(store);
    ck_assert_int_eq(counters.commits - before, 20);
    ck_assert_int_eq(counters.committed_jobs, 2001);
    ck_assert_int_eq(counters.queued, 0);
    db_close(store);
    remove_folder(folder);
}
END_TEST

START_TEST(a_write_that_nobody_waits_for_is_committed_by_itself)
{
    db *store = open_store(NULL);
    const db_run run = run_of(1, 1, 1, "planner");
    put_run(store, &run);
    const int64_t end = db_monotonic_ns() + 20000000000;
    while (db_count(store).committed_jobs == 0 && db_monotonic_ns() < end) usleep(1000);
    ck_assert_int_eq(db_count(store).committed_jobs, 1);
    db_close(store);
}
END_TEST

/* ---- failures ---- */

START_TEST(one_bad_write_harms_no_other_of_its_transaction)
{
    db *store = open_store(NULL);
    put_scene(store, 1);
    flush(store);
    gate *g = close_gate(store);
    const int64_t before = db_count(store).commits;
    tb_error error = {0};
    wait_for good = WAIT_FOR_INIT, bad = WAIT_FOR_INIT, snapshot_fails = WAIT_FOR_INIT;
    const db_session fine = session_of(1, 1), orphan = session_of(2, 4711);
    const db_snapshot lost = snapshot_of(1, 4711, DB_SNAPSHOT_CLIENT, 10);
    TEST_OK(db_put_session(store, &orphan, wait_done, &bad, &error), &error);
    TEST_OK(db_put_snapshot(store, &lost, bytes_of(1, 10), wait_done, &snapshot_fails, &error),
            &error);
    TEST_OK(db_put_session(store, &fine, wait_done, &good, &error), &error);
    open_gate(g);
    TEST_STATUS(wait_status(&bad), TB_FAILED_PRECONDITION, &bad.error);
    TEST_STATUS(wait_status(&snapshot_fails), TB_FAILED_PRECONDITION, &snapshot_fails.error);
    TEST_OK(wait_status(&good), &good.error);
    ck_assert_int_eq(db_count(store).commits - before, 1);
    db_session *sessions = NULL;
    int32_t count = 0;
    TEST_OK(db_open_sessions(store, &sessions, &count, &error), &error);
    ck_assert_int_eq(count, 1);
    free(sessions);
    db_close(store);
}
END_TEST

static void be_quiet(void *context, tb_log_level level, const char *message)
{
    (void)level, (void)message;
    atomic_fetch_add((atomic_int *)context, 1);
}

START_TEST(a_full_disk_refuses_what_does_not_fit_and_takes_the_rest)
{
    const char *folder = make_folder();
    atomic_int lines = 0;
    db_options options = options_for(folder);
    options.log = be_quiet;
    options.log_context = &lines;
    tb_error error = {0};
    db *store = NULL;
    TEST_OK(db_open(&options, &store, &error), &error);
    gate *g = close_gate(store);
    /* at most 200 pages: SQLite then fails as on a full disk */
    TEST_OK(db_execute(&store->writer.connection, "PRAGMA max_page_count = 200", &error), &error);

    wait_for small = WAIT_FOR_INIT, large = WAIT_FOR_INIT, after = WAIT_FOR_INIT;
    const db_run run = run_of(2, 1, 1, "planner"), last = run_of(3, 1, 1, "planner");
    const db_asset asset = {.sha256 = digest_of(1), .size = 4 << 20};
    unsigned char *bytes = bytes_of(1, asset.size);
    TEST_OK(db_put_run(store, &run, wait_done, &small, &error), &error);
    TEST_OK(db_put_asset(store, &asset, bytes, wait_done, &large, &error), &error);
    TEST_OK(db_put_run(store, &last, wait_done, &after, &error), &error);
    open_gate(g);
    TEST_STATUS(wait_status(&large), TB_RESOURCE_EXHAUSTED, &large.error);
    ck_assert_msg(strstr(large.error.message, "full") != NULL, "%s", large.error.message);
    TEST_OK(wait_status(&small), &small.error);
    TEST_OK(wait_status(&after), &after.error);
    free(bytes);
    ck_assert_int_gt(atomic_load(&lines), 0);
    const db_id three = id_of(3);
    db_run back;
    TEST_OK(db_get_run(store, &three, &back, &error), &error);
    free((void *)back.options_json);
    db_close(store);
    remove_folder(folder);
}
END_TEST

/* ---- callbacks and threads ---- */

typedef struct nested {
    db *store;
    tb_status waits, records;
    wait_for put;
} nested;

static void put_from_callback(void *context, tb_status status, const tb_error *error)
{
    (void)status, (void)error;
    nested *n = context;
    n->waits = db_flush(n->store, NULL);
    db_benchmark benchmark = {.id = id_of(9)};
    n->records = db_record_benchmark(n->store, &benchmark, NULL);
    const db_run run = run_of(2, 1, 1, "planner");
    db_put_run(n->store, &run, wait_done, &n->put, NULL);
}

START_TEST(a_callback_may_put_but_not_wait)
{
    db *store = open_store(NULL);
    nested n = {.store = store, .put = WAIT_FOR_INIT};
    tb_error error = {0};
    const db_run run = run_of(1, 1, 1, "planner");
    TEST_OK(db_put_run(store, &run, put_from_callback, &n, &error), &error);
    TEST_OK(wait_status(&n.put), &n.put.error);
    ck_assert_int_eq(n.waits, TB_FAILED_PRECONDITION);
    ck_assert_int_eq(n.records, TB_FAILED_PRECONDITION);
    db_close(store);
}
END_TEST

typedef struct crowd {
    db *store;
    uint64_t first;
    int failures;
} crowd;

static void *put_and_read(void *context)
{
    crowd *c = context;
    for (uint64_t i = 0; i < 60; i++) {
        wait_for w = WAIT_FOR_INIT;
        const db_run run = run_of(c->first + i, 1, 1, "planner");
        const db_step_summary summary = {.run = run.id, .step = (int64_t)i};
        c->failures += db_put_run(c->store, &run, wait_done, &w, NULL) != TB_OK;
        c->failures += wait_status(&w) != TB_OK;
        db_put_step_summary(c->store, &summary);
        /* acknowledged means readable */
        db_run back;
        if (db_get_run(c->store, &run.id, &back, NULL) == TB_OK)
            free((void *)back.options_json);
        else
            c->failures++;
    }
    return NULL;
}

static void crowd_on(const char *folder)
{
    enum { THREADS = 9 };
    db *store = open_store(folder);
    pthread_t threads[THREADS];
    crowd crowds[THREADS];
    for (int i = 0; i < THREADS; i++) {
        crowds[i] = (crowd){.store = store, .first = 1000 * (uint64_t)(i + 1)};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, put_and_read, &crowds[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(crowds[i].failures, 0);
    }
    flush(store);
    ck_assert_int_eq(db_count(store).committed_jobs, 2 * 60 * THREADS);
    db_close(store);
}

START_TEST(many_threads_write_and_read)
{
    const char *folder = make_folder();
    crowd_on(folder);
    remove_folder(folder);
    crowd_on(NULL);
}
END_TEST

TEST_MAIN(what_was_acknowledged_is_there_after_kill_9,
          snapshots_are_committed_with_synchronous_full,
          a_full_queue_loses_summaries_only_and_counts_them,
          the_newest_summaries_survive_a_full_queue, commits_are_shared,
          a_write_that_nobody_waits_for_is_committed_by_itself,
          one_bad_write_harms_no_other_of_its_transaction,
          a_full_disk_refuses_what_does_not_fit_and_takes_the_rest, a_callback_may_put_but_not_wait,
          many_threads_write_and_read)
