/* When `tribo load` stops measuring: three windows in a row that agree within 10 %, each with each,
 * in throughput and median. The tests make up the latencies. */
#include "bench/load_settle.h"
#include "test_util.h"

/* A window of one second with `count` calls that each took `latency` s. */
static load_figures window_of(int64_t count, double latency)
{
    load_window w = {.latencies = calloc((size_t)(count > 0 ? count : 1), sizeof(double)),
                     .count = count,
                     .seconds = 1};
    ck_assert_ptr_nonnull(w.latencies);
    for (int64_t i = 0; i < count; i++) w.latencies[i] = latency;
    const load_figures f = load_summarize(&w);
    load_window_free(&w);
    return f;
}

/* After how many of these windows it is settled; 0: never. */
static int settles_after(const load_figures *windows, int count)
{
    for (int i = 1; i <= count; i++)
        if (load_settled(windows, i)) return i;
    return 0;
}

START_TEST(three_windows_that_agree_are_enough)
{
    const load_figures alike[] = {window_of(1000, 1e-3), window_of(1050, 1.05e-3),
                                  window_of(1090, 0.99e-3), window_of(1000, 1e-3)};
    ck_assert_int_eq(settles_after(alike, 1), 0);
    ck_assert_int_eq(settles_after(alike, 2), 0);
    ck_assert_int_eq(settles_after(alike, 4), 3);
}
END_TEST

START_TEST(a_daemon_that_warms_up_is_waited_for)
{
    const load_figures warming[] = {window_of(200, 5e-3),   window_of(500, 2e-3),
                                    window_of(800, 1.2e-3), window_of(950, 1.05e-3),
                                    window_of(990, 1e-3),   window_of(1000, 1e-3)};
    ck_assert_int_eq(settles_after(warming, 6), 6);
}
END_TEST

START_TEST(a_slow_drift_is_not_rest)
{
    /* neighbours agree within 6 %, the first and the third do not */
    load_figures drift[20];
    for (int i = 0; i < 20; i++)
        drift[i] = window_of((int64_t)(1000 * pow(1.06, i)), 1e-3 * pow(0.999, i));
    ck_assert_int_eq(settles_after(drift, 20), 0);
    for (int i = 0; i < 20; i++) drift[i] = window_of(1000, 1e-3 * pow(1.06, i));
    ck_assert_int_eq(settles_after(drift, 20), 0);
}
END_TEST

START_TEST(the_border_is_ten_percent_of_the_larger)
{
    const load_figures within[] = {window_of(1000, 1e-3), window_of(901, 1e-3),
                                   window_of(950, 1e-3)};
    const load_figures beyond[] = {window_of(1000, 1e-3), window_of(899, 1e-3),
                                   window_of(950, 1e-3)};
    const load_figures slow[] = {window_of(1000, 1e-3), window_of(1000, 1e-3),
                                 window_of(1000, 1.12e-3)};
    ck_assert_int_eq(settles_after(within, 3), 3);
    ck_assert_int_eq(settles_after(beyond, 3), 0);
    ck_assert_int_eq(settles_after(slow, 3), 0);
}
END_TEST

START_TEST(one_window_out_of_line_starts_the_count_anew)
{
    const load_figures noisy[] = {window_of(1000, 1e-3), window_of(1000, 1e-3),
                                  window_of(600, 2e-3),  window_of(1000, 1e-3),
                                  window_of(1000, 1e-3), window_of(1000, 1e-3)};
    ck_assert_int_eq(settles_after(noisy, 6), 6);
}
END_TEST

START_TEST(windows_without_an_answer_never_settle)
{
    load_figures silent[5];
    for (int i = 0; i < 5; i++) silent[i] = window_of(0, 0);
    ck_assert_int_eq(settles_after(silent, 5), 0);
}
END_TEST

START_TEST(quantiles_are_of_nearest_rank)
{
    double latencies[100];
    for (int i = 0; i < 100; i++) latencies[i] = 1e-3 * (i + 1);
    const load_window w = {.latencies = latencies, .count = 100, .seconds = 2};
    const load_figures f = load_summarize(&w);
    TEST_NEAR(f.rate, 50, 0);
    TEST_NEAR(f.p50, 0.050, 1e-15);
    TEST_NEAR(f.p90, 0.090, 1e-15);
    TEST_NEAR(f.p99, 0.099, 1e-15);
    TEST_NEAR(f.worst, 0.100, 1e-15);
}
END_TEST

TEST_MAIN(three_windows_that_agree_are_enough, a_daemon_that_warms_up_is_waited_for,
          a_slow_drift_is_not_rest, the_border_is_ten_percent_of_the_larger,
          one_window_out_of_line_starts_the_count_anew, windows_without_an_answer_never_settle,
          quantiles_are_of_nearest_rank)
