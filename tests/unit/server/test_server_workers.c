/* Workers: everything posted is done once, a full queue refuses, the end waits. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "ops/clock.h"
#include "test_util.h"
#include "ops/workers.h"

static void count(void *context)
{
    atomic_fetch_add((atomic_int *)context, 1);
}

START_TEST(everything_posted_is_done_once_before_the_end)
{
    tb_error error;
    td_workers *workers;
    atomic_int done = 0;
    TEST_OK(td_workers_create(3, 1000, &workers, &error), &error);
    for (int i = 0; i < 1000; i++) TEST_OK(td_workers_post(workers, count, &done, &error), &error);
    td_workers_destroy(workers);
    ck_assert_int_eq(atomic_load(&done), 1000);
}
END_TEST

typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool open;
    int waiting;
} gate;

static void wait_at_gate(void *context)
{
    gate *g = context;
    pthread_mutex_lock(&g->mutex);
    g->waiting++;
    pthread_cond_broadcast(&g->changed);
    while (!g->open) pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

START_TEST(a_full_queue_refuses_and_recovers)
{
    tb_error error;
    td_workers *workers;
    atomic_int done = 0;
    gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};
    TEST_OK(td_workers_create(1, 4, &workers, &error), &error);
    TEST_OK(td_workers_post(workers, wait_at_gate, &g, &error), &error);
    pthread_mutex_lock(&g.mutex);
    while (g.waiting == 0) pthread_cond_wait(&g.changed, &g.mutex);
    pthread_mutex_unlock(&g.mutex);

    for (int i = 0; i < 4; i++) TEST_OK(td_workers_post(workers, count, &done, &error), &error);
    TEST_STATUS(td_workers_post(workers, count, &done, &error), TB_RESOURCE_EXHAUSTED, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "4"));

    pthread_mutex_lock(&g.mutex);
    g.open = true;
    pthread_cond_broadcast(&g.changed);
    pthread_mutex_unlock(&g.mutex);
    while (atomic_load(&done) < 4) usleep(1000);
    TEST_OK(td_workers_post(workers, count, &done, &error), &error);
    td_workers_destroy(workers);
    ck_assert_int_eq(atomic_load(&done), 5);
}
END_TEST

START_TEST(threads_work_side_by_side)
{
    tb_error error;
    td_workers *workers;
    gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};
    TEST_OK(td_workers_create(3, 3, &workers, &error), &error);
    for (int i = 0; i < 3; i++) TEST_OK(td_workers_post(workers, wait_at_gate, &g, &error), &error);
    /* all three are inside at once, or this waits for ever */
    pthread_mutex_lock(&g.mutex);
    while (g.waiting < 3) pthread_cond_wait(&g.changed, &g.mutex);
    g.open = true;
    pthread_cond_broadcast(&g.changed);
    pthread_mutex_unlock(&g.mutex);
    td_workers_destroy(workers);
}
END_TEST

START_TEST(counts_below_one_are_refused)
{
    tb_error error;
    td_workers *workers;
    TEST_STATUS(td_workers_create(0, 1, &workers, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "threads");
    TEST_STATUS(td_workers_create(1, -1, &workers, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "queue_length");
    ck_assert_ptr_null(workers);
    td_workers_destroy(NULL);
}
END_TEST

START_TEST(the_clock_is_shifted_by_a_file)
{
    char path[] = "/tmp/test_server_clock_XXXXXX";
    const int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    unsetenv("TRIBOD_TEST_CLOCK");
    const td_clock real = td_clock_make();
    setenv("TRIBOD_TEST_CLOCK", path, 1);
    const td_clock shifted = td_clock_make();
    unsetenv("TRIBOD_TEST_CLOCK");

    /* an empty file shifts by nothing */
    TEST_NEAR(td_clock_utc_us(&shifted) - td_clock_utc_us(&real), 0, 1e6);
    ck_assert_int_eq(pwrite(file, "3600.5\n", 7, 0), 7);
    TEST_NEAR(td_clock_utc_us(&shifted) - td_clock_utc_us(&real), 3600.5e6, 1e6);
    ck_assert_int_eq(pwrite(file, "nan    \n", 8, 0), 8);
    TEST_NEAR(td_clock_utc_us(&shifted) - td_clock_utc_us(&real), 0, 1e6);
    close(file);
    unlink(path);

    const int64_t before = td_monotonic_ns();
    ck_assert_int_ge(td_monotonic_ns(), before);
}
END_TEST

static void sleep_a_while(void *context)
{
    (void)context;
    usleep(300000);
}

START_TEST(what_waits_is_counted_with_its_age)
{
    td_workers *workers = NULL;
    tb_error error;
    TEST_OK(td_workers_create(1, 8, &workers, &error), &error);
    ck_assert_int_eq(td_workers_measure(workers).waiting, 0);
    for (int i = 0; i < 3; i++)
        TEST_OK(td_workers_post(workers, sleep_a_while, NULL, &error), &error);
    usleep(100000);
    const td_workers_use use = td_workers_measure(workers);
    ck_assert_int_ge(use.waiting, 2);
    ck_assert(use.oldest_seconds > 0.09 && use.oldest_seconds < 5);
    td_workers_destroy(workers);
}
END_TEST

TEST_MAIN(what_waits_is_counted_with_its_age, everything_posted_is_done_once_before_the_end,
          a_full_queue_refuses_and_recovers, threads_work_side_by_side,
          counts_below_one_are_refused, the_clock_is_shifted_by_a_file)
