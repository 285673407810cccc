/* The Runs service over a real store: owners see their own, administrators all; pages, limits and
 * refusals that name the field. */
#include "db/db_util.h"
#include "handlers/run_message.h"
#include "server/server_util.h"

/* A server with the parts that the Runs service uses: store, workers, clock. */
static test_server *begin(void)
{
    static test_server t;
    test_server_init(&t, false);
    tb_error error = {0};
    td_server *s = &t.server;
    memset(s, 0, sizeof *s);
    s->config = &t.config;
    s->clock = td_clock_make();
    TEST_OK(td_metrics_create(&s->metrics, &error), &error);
    TEST_OK(td_workers_create(2, 100, &s->workers, &error), &error);
    s->db = open_store(NULL);
    return &t;
}

static void end(test_server *t)
{
    td_workers_destroy(t->server.workers);
    db_close(t->server.db);
    td_metrics_destroy(t->server.metrics);
}

/* A unary call by a caller with a scope; NULL for a failure, which must be the expected one. */
static void *ask(test_server *t, const char *method, const char *client, td_scope scope,
                 const void *request, tb_status expected, const char *field)
{
    char path[80];
    snprintf(path, sizeof path, "tribo.v1.Runs/%s", method);
    test_call *call = test_call_begin(&t->server, path, client);
    call->call.caller.scope = scope;
    test_call_request(call, request);
    test_call_wait(call, NULL, 0);
    TEST_STATUS(call->status, expected, &call->error);
    if (expected != TB_OK) {
        ck_assert_str_eq(call->error.field, field);
        ck_assert_int_eq(call->sent, 0);
    }
    void *answer = expected == TB_OK ? test_call_answer(call, 0) : NULL;
    test_call_end(call);
    return answer;
}

#define FREE(message) protobuf_c_message_free_unpacked(&(message)->base, NULL)

/* 60 runs, of "planner" and "guest" in turn, of two scenes and three kinds. */
static void fill(test_server *t)
{
    for (uint64_t i = 0; i < 60; i++) {
        const db_run run =
            run_of(i, 1 + i / 6 % 2, 1 + (int32_t)(i / 2 % 3), i % 2 ? "guest" : "planner");
        put_run(t->server.db, &run);
    }
    flush(t->server.db);
}

/* Walks all pages; checks order and owner; gives the number of runs. */
static int count_runs(test_server *t, const char *client, td_scope scope,
                      Tribo__V1__ListRunsRequest request)
{
    char token[DB_TOKEN_SIZE] = "";
    int seen = 0;
    int64_t last = INT64_MAX;
    do {
        request.page_token = token;
        Tribo__V1__ListRunsResponse *answer =
            ask(t, "ListRuns", client, scope, &request, TB_OK, NULL);
        for (size_t i = 0; i < answer->n_runs; i++, seen++) {
            const Tribo__V1__Run *run = answer->runs[i];
            ck_assert_int_lt(run->start_time_us, last);
            last = run->start_time_us;
            if (scope < TD_SCOPE_ADMIN) ck_assert_str_eq(run->owner, client);
        }
        snprintf(token, sizeof token, "%s", answer->next_page_token);
        FREE(answer);
    } while (token[0] != '\0');
    return seen;
}

START_TEST(owners_see_their_own_runs_and_administrators_all)
{
    test_server *t = begin();
    fill(t);
    Tribo__V1__ListRunsRequest request = TRIBO__V1__LIST_RUNS_REQUEST__INIT;
    for (int32_t size = 0; size <= 60; size += 7) {
        request.page_size = size;
        ck_assert_int_eq(count_runs(t, "planner", TD_SCOPE_READ, request), 30);
        ck_assert_int_eq(count_runs(t, "guest", TD_SCOPE_RUN, request), 30);
        ck_assert_int_eq(count_runs(t, "stranger", TD_SCOPE_RUN, request), 0);
        ck_assert_int_eq(count_runs(t, "root", TD_SCOPE_ADMIN, request), 60);
    }
    char scene[TD_SHA256_TEXT];
    const db_sha256 digest = digest_of(2);
    td_sha256_print(&digest, scene);
    request.kind = TRIBO__V1__RUN_KIND__RUN_KIND_GRASPS;
    ck_assert_int_eq(count_runs(t, "root", TD_SCOPE_ADMIN, request), 20);
    request.scene_id = scene;
    ck_assert_int_eq(count_runs(t, "root", TD_SCOPE_ADMIN, request), 10);
    ck_assert_int_eq(count_runs(t, "guest", TD_SCOPE_READ, request), 5);
    end(t);
}
END_TEST

START_TEST(a_run_comes_with_its_history)
{
    test_server *t = begin();
    fill(t);
    tb_error error = {0};
    for (int i = 0; i < 150; i++) {
        const db_step_summary summary = {.run = id_of(4),
                                         .step = i,
                                         .time_us = 1000 + i,
                                         .steps = 10,
                                         .certificate = certificate_of((uint64_t)i)};
        db_put_step_summary(t->server.db, &summary);
    }
    const db_event event = {.run = id_of(4), .time_us = 7, .kind = "expired", .message = "its ttl"};
    TEST_OK(db_put_event(t->server.db, &event, &error), &error);
    flush(t->server.db);

    char id[33];
    const db_id four = id_of(4);
    td_id_print(&four, id);
    Tribo__V1__GetRunRequest request = TRIBO__V1__GET_RUN_REQUEST__INIT;
    request.run_id = id;
    Tribo__V1__GetRunResponse *answer =
        ask(t, "GetRun", "planner", TD_SCOPE_READ, &request, TB_OK, NULL);
    const Tribo__V1__Run *run = answer->run;
    ck_assert_str_eq(run->run_id, id);
    ck_assert_str_eq(run->owner, "planner");
    ck_assert_str_eq(run->options_json, "{\"dt\":0.001}");
    ck_assert_str_eq(run->device, "cpu");
    ck_assert_uint_eq(strlen(run->scene_id), 64);
    ck_assert_int_eq(run->steps, 400);
    ck_assert_int_eq(run->grasps_held, 7);
    ck_assert_int_eq(run->certificate->contacts, 41);
    ck_assert_str_eq(run->certificate->solver, "newton");
    ck_assert(run->certificate->capacity_grew && !run->certificate->relaxation_halved);
    ck_assert_uint_eq(answer->n_summaries, 100);
    ck_assert_int_eq(answer->summaries[0]->step, 50);
    ck_assert_int_eq(answer->summaries[99]->step, 149);
    ck_assert_int_eq(answer->summaries[99]->certificate->step, 149);
    ck_assert_uint_eq(answer->n_events, 1);
    ck_assert_str_eq(answer->events[0]->kind, "expired");
    ck_assert_str_eq(answer->events[0]->message, "its ttl");
    FREE(answer);

    request.maximum_summaries = 1000;
    answer = ask(t, "GetRun", "root", TD_SCOPE_ADMIN, &request, TB_OK, NULL);
    ck_assert_uint_eq(answer->n_summaries, 150);
    FREE(answer);
    /* another owner's is hidden */
    ask(t, "GetRun", "guest", TD_SCOPE_RUN, &request, TB_NOT_FOUND, "run_id");
    end(t);
}
END_TEST

START_TEST(two_runs_are_compared)
{
    test_server *t = begin();
    db_run a = run_of(1, 1, 1, "planner"), b = run_of(2, 1, 1, "planner");
    b.steps = 3 * a.steps;
    b.compute_time_us = 2 * a.compute_time_us;
    b.certificate.residual = 0.25 * a.certificate.residual;
    strcpy(b.build, "0.2.0");
    db_run c = run_of(3, 2, 2, "planner");
    c.options_json = NULL;
    c.compute_time_us = 0;
    c.certificate.residual = (double)NAN;
    put_run(t->server.db, &a);
    put_run(t->server.db, &b);
    put_run(t->server.db, &c);
    flush(t->server.db);

    char first[33], second[33], third[33];
    td_id_print(&a.id, first);
    td_id_print(&b.id, second);
    td_id_print(&c.id, third);
    Tribo__V1__CompareRunsRequest request = TRIBO__V1__COMPARE_RUNS_REQUEST__INIT;
    request.run_id_a = first;
    request.run_id_b = second;
    Tribo__V1__CompareRunsResponse *answer =
        ask(t, "CompareRuns", "planner", TD_SCOPE_READ, &request, TB_OK, NULL);
    ck_assert(answer->same_scene && answer->same_options && !answer->same_build);
    TEST_NEAR(answer->steps_per_second_ratio, 1.5, 1e-12);
    TEST_NEAR(answer->residual_ratio, 0.25, 1e-12);
    ck_assert_str_eq(answer->b->run_id, second);
    FREE(answer);

    /* where a ratio says nothing it is 0 and not not-a-number */
    request.run_id_b = third;
    answer = ask(t, "CompareRuns", "planner", TD_SCOPE_READ, &request, TB_OK, NULL);
    ck_assert(!answer->same_scene && !answer->same_options && answer->same_build);
    TEST_NEAR(answer->steps_per_second_ratio, 0, 0);
    TEST_NEAR(answer->residual_ratio, 0, 0);
    FREE(answer);
    ask(t, "CompareRuns", "guest", TD_SCOPE_READ, &request, TB_NOT_FOUND, "run_id_a");
    request.run_id_b = "12";
    ask(t, "CompareRuns", "planner", TD_SCOPE_READ, &request, TB_INVALID_ARGUMENT, "run_id_b");
    end(t);
}
END_TEST

START_TEST(bad_requests_are_refused_by_name_of_the_field)
{
    test_server *t = begin();
    Tribo__V1__ListRunsRequest list = TRIBO__V1__LIST_RUNS_REQUEST__INIT;
    list.page_size = 1001;
    ask(t, "ListRuns", "guest", TD_SCOPE_READ, &list, TB_INVALID_ARGUMENT, "page_size");
    list.page_size = -1;
    ask(t, "ListRuns", "guest", TD_SCOPE_READ, &list, TB_INVALID_ARGUMENT, "page_size");
    list.page_size = 0;
    list.page_token = "nonsense";
    ask(t, "ListRuns", "guest", TD_SCOPE_READ, &list, TB_INVALID_ARGUMENT, "page_token");
    list.page_token = "";
    list.scene_id = "abc";
    ask(t, "ListRuns", "guest", TD_SCOPE_READ, &list, TB_INVALID_ARGUMENT, "scene_id");
    list.scene_id = "";
    list.kind = (Tribo__V1__RunKind)17;
    ask(t, "ListRuns", "guest", TD_SCOPE_READ, &list, TB_INVALID_ARGUMENT, "kind");

    Tribo__V1__GetRunRequest get = TRIBO__V1__GET_RUN_REQUEST__INIT;
    ask(t, "GetRun", "guest", TD_SCOPE_READ, &get, TB_INVALID_ARGUMENT, "run_id");
    get.run_id = "00000000000000000000000000000000";
    ask(t, "GetRun", "guest", TD_SCOPE_READ, &get, TB_NOT_FOUND, "run_id");
    get.maximum_summaries = -1;
    ask(t, "GetRun", "guest", TD_SCOPE_READ, &get, TB_INVALID_ARGUMENT, "maximum_summaries");
    get.maximum_summaries = 1001;
    ask(t, "GetRun", "guest", TD_SCOPE_READ, &get, TB_INVALID_ARGUMENT, "maximum_summaries");
    end(t);
}
END_TEST

/* ---- benchmarks ---- */

static double SAMPLES[1001];

static Tribo__V1__Benchmark benchmark_of(char *name, size_t samples)
{
    Tribo__V1__Benchmark b = TRIBO__V1__BENCHMARK__INIT;
    for (size_t i = 0; i < 1001; i++) SAMPLES[i] = (double)i;
    b.name = name;
    b.metric = "seconds";
    b.unit = "s";
    b.testbed = "a machine";
    b.build = "0.1.0";
    b.samples = SAMPLES;
    b.n_samples = samples;
    b.residual = 1e-9;
    b.benchmark_id = "mine";
    b.median = 7;
    b.time_us = 3;
    return b;
}

START_TEST(benchmarks_are_recorded_and_listed)
{
    test_server *t = begin();
    Tribo__V1__RecordBenchmarkRequest record = TRIBO__V1__RECORD_BENCHMARK_REQUEST__INIT;
    Tribo__V1__Benchmark b = benchmark_of("jaw_mug.step", 101);
    record.benchmark = &b;
    Tribo__V1__RecordBenchmarkResponse *recorded =
        ask(t, "RecordBenchmark", "guest", TD_SCOPE_RUN, &record, TB_OK, NULL);
    /* id, time and quartiles are the server's */
    ck_assert_uint_eq(strlen(recorded->benchmark->benchmark_id), 32);
    ck_assert_int_gt(recorded->benchmark->time_us, 1700000000000000);
    TEST_NEAR(recorded->benchmark->median, 50, 0);
    TEST_NEAR(recorded->benchmark->lower, 25, 0);
    TEST_NEAR(recorded->benchmark->upper, 75, 0);
    FREE(recorded);
    for (int i = 0; i < 5; i++) {
        b = benchmark_of(i % 2 ? "stack.step" : "jaw_mug.step", 3);
        recorded = ask(t, "RecordBenchmark", "guest", TD_SCOPE_RUN, &record, TB_OK, NULL);
        FREE(recorded);
    }
    Tribo__V1__ListBenchmarksRequest list = TRIBO__V1__LIST_BENCHMARKS_REQUEST__INIT;
    list.page_size = 4;
    Tribo__V1__ListBenchmarksResponse *page =
        ask(t, "ListBenchmarks", "planner", TD_SCOPE_READ, &list, TB_OK, NULL);
    ck_assert_uint_eq(page->n_benchmarks, 4);
    list.page_token = page->next_page_token;
    Tribo__V1__ListBenchmarksResponse *rest =
        ask(t, "ListBenchmarks", "planner", TD_SCOPE_READ, &list, TB_OK, NULL);
    ck_assert_uint_eq(rest->n_benchmarks, 2);
    ck_assert_str_eq(rest->next_page_token, "");
    ck_assert_uint_eq(rest->benchmarks[1]->n_samples, 101);
    TEST_NEAR(rest->benchmarks[1]->samples[100], 100, 0);
    TEST_NEAR(rest->benchmarks[1]->residual, 1e-9, 0);
    FREE(rest);
    /* a token of one filter is none of another */
    list.name = "stack.step";
    ask(t, "ListBenchmarks", "planner", TD_SCOPE_READ, &list, TB_INVALID_ARGUMENT, "page_token");
    FREE(page);
    list.page_token = "";
    page = ask(t, "ListBenchmarks", "planner", TD_SCOPE_READ, &list, TB_OK, NULL);
    ck_assert_uint_eq(page->n_benchmarks, 2);
    ck_assert_str_eq(page->benchmarks[0]->name, "stack.step");
    FREE(page);
    end(t);
}
END_TEST

START_TEST(a_page_ends_early_when_it_is_large)
{
    test_server *t = begin();
    t->config.chunk_bytes = 100000;
    for (uint64_t i = 0; i < 100; i++) {
        db_benchmark row = {.id = id_of(i), .samples = SAMPLES, .number_of_samples = 1000};
        strcpy(row.name, "large");
        tb_error error = {0};
        TEST_OK(db_record_benchmark(t->server.db, &row, &error), &error);
    }
    Tribo__V1__ListBenchmarksRequest list = TRIBO__V1__LIST_BENCHMARKS_REQUEST__INIT;
    list.page_size = 1000;
    char token[DB_TOKEN_SIZE] = "";
    size_t seen = 0, pages = 0;
    do {
        list.page_token = token;
        Tribo__V1__ListBenchmarksResponse *page =
            ask(t, "ListBenchmarks", "planner", TD_SCOPE_READ, &list, TB_OK, NULL);
        ck_assert_uint_lt(protobuf_c_message_get_packed_size(&page->base), 300000);
        seen += page->n_benchmarks;
        pages++;
        snprintf(token, sizeof token, "%s", page->next_page_token);
        FREE(page);
    } while (token[0] != '\0');
    ck_assert_uint_eq(seen, 100);
    ck_assert_uint_ge(pages, 3);
    end(t);
}
END_TEST

START_TEST(bad_benchmarks_are_refused_by_name_of_the_field)
{
    test_server *t = begin();
    Tribo__V1__RecordBenchmarkRequest record = TRIBO__V1__RECORD_BENCHMARK_REQUEST__INIT;
    ask(t, "RecordBenchmark", "guest", TD_SCOPE_RUN, &record, TB_INVALID_ARGUMENT, "benchmark");
    Tribo__V1__Benchmark b = benchmark_of("", 3);
    record.benchmark = &b;
    ask(t, "RecordBenchmark", "guest", TD_SCOPE_RUN, &record, TB_INVALID_ARGUMENT,
        "benchmark.name");
    b = benchmark_of("x", 3);
    b.metric = "";
    ask(t, "RecordBenchmark", "guest", TD_SCOPE_RUN, &record, TB_INVALID_ARGUMENT,
        "benchmark.metric");
    b = benchmark_of("x", 3);
    char unit[40];
    memset(unit, 'u', sizeof unit - 1);
    unit[sizeof unit - 1] = '\0';
    b.unit = unit;
    ask(t, "RecordBenchmark", "guest", TD_SCOPE_RUN, &record, TB_INVALID_ARGUMENT,
        "benchmark.unit");
    for (size_t n = 0; n <= 1001; n += 1001) {
        b = benchmark_of("x", n);
        ask(t, "RecordBenchmark", "guest", TD_SCOPE_RUN, &record, TB_INVALID_ARGUMENT,
            "benchmark.samples");
    }
    b = benchmark_of("x", 3);
    SAMPLES[1] = (double)NAN;
    ask(t, "RecordBenchmark", "guest", TD_SCOPE_RUN, &record, TB_INVALID_ARGUMENT,
        "benchmark.samples");
    b = benchmark_of("x", 3);
    b.penetration = (double)INFINITY;
    ask(t, "RecordBenchmark", "guest", TD_SCOPE_RUN, &record, TB_INVALID_ARGUMENT,
        "benchmark.penetration");
    end(t);
}
END_TEST

TEST_MAIN(owners_see_their_own_runs_and_administrators_all, a_run_comes_with_its_history,
          two_runs_are_compared, bad_requests_are_refused_by_name_of_the_field,
          benchmarks_are_recorded_and_listed, a_page_ends_early_when_it_is_large,
          bad_benchmarks_are_refused_by_name_of_the_field)
