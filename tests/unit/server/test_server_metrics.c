/* Metrics: numbers, histograms and calls as Prometheus reads them. */
#include <pthread.h>

#include "ops/metrics.h"
#include "test_util.h"

static td_metrics *open_metrics(void)
{
    tb_error error;
    td_metrics *metrics;
    TEST_OK(td_metrics_create(&metrics, &error), &error);
    return metrics;
}

/* The value on the line that begins with `name` and a space; -1 if there is no such line. */
static double value_of(const char *page, const char *name)
{
    const size_t length = strlen(name);
    for (const char *l = page; l != NULL; l = strchr(l, '\n')) {
        if (*l == '\n') l++;
        if (strncmp(l, name, length) == 0 && l[length] == ' ') return strtod(l + length, NULL);
    }
    return -1;
}

static char *page_of(td_metrics *metrics)
{
    size_t size;
    char *page = td_metrics_text(metrics, &size);
    ck_assert_ptr_nonnull(page);
    ck_assert_uint_eq(strlen(page), size);
    return page;
}

START_TEST(numbers_are_added_and_set)
{
    td_metrics *metrics = open_metrics();
    td_metrics_add(metrics, TD_METRIC_WORLD_STEPS, 40);
    td_metrics_add(metrics, TD_METRIC_WORLD_STEPS, 2);
    td_metrics_set(metrics, TD_METRIC_SESSIONS, 7);
    td_metrics_add(metrics, TD_METRIC_SESSIONS, -3);
    ck_assert_int_eq(td_metrics_get(metrics, TD_METRIC_WORLD_STEPS), 42);
    char *page = page_of(metrics);
    TEST_NEAR(value_of(page, "tribod_world_steps_total"), 42, 0);
    TEST_NEAR(value_of(page, "tribod_sessions"), 4, 0);
    TEST_NEAR(value_of(page, "tribod_grasps_total"), 0, 0);
    ck_assert_ptr_nonnull(strstr(page, "# TYPE tribod_sessions gauge\n"));
    ck_assert_ptr_nonnull(strstr(page, "# TYPE tribod_world_steps_total counter\n"));
    ck_assert(value_of(page, "process_resident_memory_bytes") > 1e5);
    ck_assert(value_of(page, "process_start_time_seconds") > 1.7e9);
    ck_assert_ptr_nonnull(strstr(page, "tribod_build_info{version=\"" TB_VERSION "\",build=\""));
    free(page);
    td_metrics_destroy(metrics);
}
END_TEST

START_TEST(a_histogram_sums_up_its_buckets)
{
    td_metrics *metrics = open_metrics();
    const double seconds[] = {5e-7, 1e-6, 1.5e-6, 0.003, 100, 1000, -1, NAN};
    for (size_t i = 0; i < 8; i++) td_metrics_observe(metrics, TD_HISTOGRAM_COMPUTE, seconds[i]);
    char *page = page_of(metrics);
    /* below and at an edge; negative values and NaN count as 0 */
    TEST_NEAR(value_of(page, "tribod_compute_seconds_bucket{le=\"1e-06\"}"), 4, 0);
    TEST_NEAR(value_of(page, "tribod_compute_seconds_bucket{le=\"2e-06\"}"), 5, 0);
    TEST_NEAR(value_of(page, "tribod_compute_seconds_bucket{le=\"0.002\"}"), 5, 0);
    TEST_NEAR(value_of(page, "tribod_compute_seconds_bucket{le=\"0.005\"}"), 6, 0);
    TEST_NEAR(value_of(page, "tribod_compute_seconds_bucket{le=\"100\"}"), 7, 0);
    TEST_NEAR(value_of(page, "tribod_compute_seconds_bucket{le=\"+Inf\"}"), 8, 0);
    TEST_NEAR(value_of(page, "tribod_compute_seconds_count"), 8, 0);
    TEST_NEAR(value_of(page, "tribod_compute_seconds_sum"), 1100.003003, 1e-6);
    TEST_NEAR(value_of(page, "tribod_queue_seconds_count"), 0, 0);
    free(page);
    td_metrics_destroy(metrics);
}
END_TEST

START_TEST(calls_are_counted_by_method_transport_and_status)
{
    td_metrics *metrics = open_metrics();
    td_metrics_call(metrics, "tribo.v1.Simulation", "Step", "grpc", TB_OK, 0.001);
    td_metrics_call(metrics, "tribo.v1.Simulation", "Step", "grpc", TB_OK, 0.001);
    td_metrics_call(metrics, "tribo.v1.Simulation", "Step", "grpc", TB_NOT_FOUND, 0.5);
    td_metrics_call(metrics, "tribo.v1.Simulation", "Step", "http", TB_OK, 0.001);
    char *page = page_of(metrics);
#define STEP "method=\"tribo.v1.Simulation/Step\",transport="
    TEST_NEAR(value_of(page, "tribod_calls_total{" STEP "\"grpc\",status=\"OK\"}"), 2, 0);
    TEST_NEAR(value_of(page, "tribod_calls_total{" STEP "\"grpc\",status=\"NOT_FOUND\"}"), 1, 0);
    TEST_NEAR(value_of(page, "tribod_calls_total{" STEP "\"http\",status=\"OK\"}"), 1, 0);
    TEST_NEAR(value_of(page, "tribod_call_seconds_bucket{" STEP "\"grpc\",le=\"0.01\"}"), 2, 0);
    TEST_NEAR(value_of(page, "tribod_call_seconds_count{" STEP "\"grpc\"}"), 3, 0);
    TEST_NEAR(value_of(page, "tribod_call_seconds_sum{" STEP "\"grpc\"}"), 0.502, 1e-9);
#undef STEP
    free(page);
    td_metrics_destroy(metrics);
}
END_TEST

START_TEST(names_from_strangers_are_escaped_and_bounded)
{
    td_metrics *metrics = open_metrics();
    td_metrics_call(metrics, "a\"b\\c\nd", "M", "http", TB_OK, 0);
    for (int i = 0; i < 100000; i++) {
        char name[32];
        snprintf(name, sizeof name, "Method%d", i);
        td_metrics_call(metrics, "strange", name, "http", TB_UNSUPPORTED, 0);
    }
    char *page = page_of(metrics);
    ck_assert_ptr_nonnull(strstr(page, "{method=\"a\\\"b\\\\c\\nd/M\",transport=\"http\""));
    ck_assert(value_of(page, "tribod_calls_total{method=\"other\",transport=\"other\","
                             "status=\"UNSUPPORTED\"}") > 99000);
    ck_assert_uint_lt(strlen(page), 1 << 20);
    free(page);
    td_metrics_destroy(metrics);
}
END_TEST

static void *call_many(void *context)
{
    td_metrics *metrics = context;
    for (int i = 0; i < 20000; i++) {
        char name[8];
        snprintf(name, sizeof name, "M%d", i % 50);
        td_metrics_call(metrics, "s", name, "grpc", TB_OK, 1e-5);
        td_metrics_add(metrics, TD_METRIC_GRASPS, 1);
    }
    return NULL;
}

START_TEST(threads_lose_no_count)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    td_metrics *metrics = open_metrics();
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, call_many, metrics);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    ck_assert_int_eq(td_metrics_get(metrics, TD_METRIC_GRASPS), 80000);
    char *page = page_of(metrics);
    for (int i = 0; i < 50; i++) {
        char name[128];
        snprintf(name, sizeof name,
                 "tribod_calls_total{method=\"s/M%d\",transport=\"grpc\",status=\"OK\"}", i);
        TEST_NEAR(value_of(page, name), 1600, 0);
    }
    free(page);
    td_metrics_destroy(metrics);
}
END_TEST

static void refresh(void *context)
{
    td_metrics_set(context, TD_METRIC_QUEUE_LENGTH, 12);
}

START_TEST(gauges_are_refreshed_before_a_page)
{
    td_metrics *metrics = open_metrics();
    td_metrics_on_refresh(metrics, refresh, metrics);
    char *page = page_of(metrics);
    TEST_NEAR(value_of(page, "tribod_queue_length"), 12, 0);
    free(page);
    td_metrics_destroy(metrics);
}
END_TEST

START_TEST(open_metrics_has_exemplars_and_names_of_families)
{
    size_t size = 0;
    tb_error error = {0};
    td_metrics *metrics = NULL;
    TEST_OK(td_metrics_create(&metrics, &error), &error);
    td_metrics_call(metrics, "tribo.v1.Simulation", "Step", "grpc", TB_OK, 0.0015);
    td_metrics_trace(metrics, "tribo.v1.Simulation", "Step", "grpc", 0.0011, "first", "a");
    td_metrics_trace(metrics, "tribo.v1.Simulation", "Step", "grpc", 0.0015,
                     "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    td_metrics_trace(metrics, "tribo.v1.Simulation", "Step", "grpc", 700, "slow", "b");
    char *page = td_metrics_open_metrics(metrics, &size);
    ck_assert_ptr_nonnull(page);
    ck_assert_uint_eq(size, strlen(page));
    ck_assert_ptr_nonnull(strstr(page, "# TYPE tribod_calls counter\n"));
    ck_assert_ptr_nonnull(strstr(page, "# HELP tribod_sessions_created Sessions"));
    ck_assert_ptr_nonnull(strstr(page, "\ntribod_sessions_created_total 0\n"));
    const char *bucket = strstr(page, "le=\"0.002\"} 1 # {trace_id=");
    ck_assert_msg(bucket != NULL, "%s", page);
    ck_assert_ptr_nonnull(strstr(bucket, "\"4bf92f3577b34da6a3ce929d0e0e4736\",span_id="
                                         "\"00f067aa0ba902b7\"} 0.001500000 1"));
    ck_assert_ptr_null(strstr(page, "\"first\"")); /* the latest of a bucket counts */
    ck_assert_ptr_nonnull(strstr(page, "le=\"+Inf\"} 1 # {trace_id=\"slow\""));
    ck_assert_str_eq(page + size - strlen("\n# EOF\n"), "\n# EOF\n");
    free(page);

    page = td_metrics_text(metrics, &size);
    ck_assert_ptr_null(strstr(page, "trace_id"));
    ck_assert_ptr_null(strstr(page, "# EOF"));
    ck_assert_ptr_nonnull(strstr(page, "# TYPE tribod_calls_total counter\n"));
    free(page);
    td_metrics_destroy(metrics);
}
END_TEST

TEST_MAIN(open_metrics_has_exemplars_and_names_of_families, numbers_are_added_and_set,
          a_histogram_sums_up_its_buckets, calls_are_counted_by_method_transport_and_status,
          names_from_strangers_are_escaped_and_bounded, threads_lose_no_count,
          gauges_are_refreshed_before_a_page)
