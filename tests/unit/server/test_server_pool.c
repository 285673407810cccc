/* The pool for uploads: bounded for each caller, fair among them. */
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "call/pool.h"
#include "test_util.h"

enum { ORDER = 64 };

/* Jobs that record their order, the first of which waits at a gate. */
typedef struct record {
    atomic_bool open;
    atomic_int count;
    char order[ORDER];
} record;

typedef struct noted {
    record *to;
    char name;
    bool waits;
} noted;

static void pause_1ms(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void note(void *context)
{
    noted *job = context;
    while (job->waits && !atomic_load(&job->to->open)) pause_1ms();
    job->to->order[atomic_fetch_add(&job->to->count, 1)] = job->name;
}

static td_pool *make_pool(int32_t threads, int32_t queue, int32_t per_caller)
{
    tb_error error;
    td_pool *pool = NULL;
    const td_pool_options options = {.name = "test",
                                     .threads = threads,
                                     .queue_length = queue,
                                     .per_caller = per_caller,
                                     .niceness = 5};
    TEST_OK(td_pool_create(&options, &pool, &error), &error);
    return pool;
}

/* Waits until the first job is at work. */
static void await_running(td_pool *pool, int32_t running)
{
    for (int i = 0; i < 5000 && td_pool_measure(pool).running < running; i++) pause_1ms();
    ck_assert_int_eq(td_pool_measure(pool).running, running);
}

START_TEST(callers_take_turns)
{
    tb_error error;
    record r = {0};
    td_pool *pool = make_pool(1, 100, 100);
    noted gate = {&r, 'g', true}, a = {&r, 'a', false}, b = {&r, 'b', false};
    TEST_OK(td_pool_post(pool, "gate", note, &gate, &error), &error);
    await_running(pool, 1);
    for (int i = 0; i < 6; i++) TEST_OK(td_pool_post(pool, "a", note, &a, &error), &error);
    for (int i = 0; i < 3; i++) TEST_OK(td_pool_post(pool, "b", note, &b, &error), &error);
    atomic_store(&r.open, true);
    td_pool_destroy(pool); /* runs all of it */
    ck_assert_int_eq(atomic_load(&r.count), 10);
    /* the six of the first caller do not hold the three of the second up */
    ck_assert(strchr(r.order, 'b') <= r.order + 2);
    ck_assert(strrchr(r.order, 'b') <= r.order + 6);
}
END_TEST

START_TEST(a_caller_is_bounded_and_others_are_not)
{
    tb_error error;
    record r = {0};
    td_pool *pool = make_pool(1, 5, 2);
    noted gate = {&r, 'g', true}, job = {&r, 'x', false};
    TEST_OK(td_pool_post(pool, "gate", note, &gate, &error), &error);
    await_running(pool, 1);
    TEST_OK(td_pool_post(pool, "a", note, &job, &error), &error);
    TEST_OK(td_pool_post(pool, "a", note, &job, &error), &error);
    TEST_STATUS(td_pool_post(pool, "a", note, &job, &error), TB_RESOURCE_EXHAUSTED, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "2 requests of a"));
    TEST_OK(td_pool_post(pool, "b", note, &job, &error), &error);
    TEST_OK(td_pool_post(pool, "c", note, &job, &error), &error);
    TEST_OK(td_pool_post(pool, "d", note, &job, &error), &error);
    TEST_STATUS(td_pool_post(pool, "e", note, &job, &error), TB_RESOURCE_EXHAUSTED, &error);
    pause_1ms();
    ck_assert_int_eq(td_pool_measure(pool).waiting, 5);
    ck_assert_double_gt(td_pool_measure(pool).oldest_seconds, 0);
    atomic_store(&r.open, true);
    td_pool_destroy(pool);
    ck_assert_int_eq(atomic_load(&r.count), 6);
}
END_TEST

START_TEST(a_caller_with_a_job_at_work_waits_for_one_without)
{
    tb_error error;
    record r = {0};
    td_pool *pool = make_pool(2, 100, 100);
    noted slow = {&r, 's', true}, more = {&r, 'm', false}, other = {&r, 'o', false};
    TEST_OK(td_pool_post(pool, "heavy", note, &slow, &error), &error);
    noted second = {&r, 's', true};
    TEST_OK(td_pool_post(pool, "heavy", note, &second, &error), &error);
    await_running(pool, 2);
    for (int i = 0; i < 4; i++) TEST_OK(td_pool_post(pool, "heavy", note, &more, &error), &error);
    TEST_OK(td_pool_post(pool, "light", note, &other, &error), &error);
    atomic_store(&r.open, true);
    td_pool_destroy(pool);
    ck_assert_int_eq(atomic_load(&r.count), 7);
    ck_assert(strchr(r.order, 'o') <= r.order + 4);
}
END_TEST

TEST_MAIN(callers_take_turns, a_caller_is_bounded_and_others_are_not,
          a_caller_with_a_job_at_work_waits_for_one_without)
