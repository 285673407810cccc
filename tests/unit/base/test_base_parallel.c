/* Parallel loops. */
#include "base/parallel.h"
#include "test_util.h"

typedef struct visits {
    int32_t *seen;      /* one an index; two threads on one index would be a race */
    int32_t threads;    /* that the loop may use */
    int32_t *by_thread; /* one a thread: would be a race if two ran under one number */
    int32_t wrong;
} visits;

static void visit(void *context, int32_t i, int32_t thread)
{
    visits *v = context;
    if (thread < 0 || thread >= v->threads) {
#pragma omp atomic
        v->wrong++;
        return;
    }
    v->seen[i]++;
    v->by_thread[thread]++;
}

START_TEST(every_index_is_done_exactly_once)
{
    const int32_t counts[] = {0, 1, 2, 7, 64, 1000, 4099}, grains[] = {-1, 0, 1, 3, 64, 5000};
    const int32_t threads[] = {-3, 0, 1, 2, 3, 8};
    for (size_t a = 0; a < 7; a++)
        for (size_t b = 0; b < 6; b++)
            for (size_t c = 0; c < 6; c++) {
                const int32_t count = counts[a], team = tb_parallel_threads(threads[c]);
                visits v = {calloc((size_t)count + 1, sizeof(int32_t)), team,
                            calloc((size_t)team, sizeof(int32_t)), 0};
                tb_parallel_for(count, grains[b], threads[c], visit, &v);
                int32_t sum = 0;
                for (int32_t i = 0; i < count; i++) ck_assert_int_eq(v.seen[i], 1);
                for (int32_t i = 0; i < team; i++) sum += v.by_thread[i];
                ck_assert_int_eq(sum, count);
                ck_assert_int_eq(v.wrong, 0);
                free(v.seen);
                free(v.by_thread);
            }
}
END_TEST

START_TEST(negative_counts_do_nothing)
{
    tb_parallel_for(-5, 1, 0, visit, NULL);
    tb_parallel_for(INT32_MIN, 1, 0, visit, NULL);
}
END_TEST

static void count_one(void *context, int32_t i, int32_t thread)
{
    int64_t *sums = context;
    sums[8 * thread] += i;
}

START_TEST(grains_beyond_the_count_do_not_overflow)
{
    int64_t sums[8 * 4] = {0};
    tb_parallel_for(1000, INT32_MAX, 4, count_one, sums);
    ck_assert_int_eq(sums[0], 1000 * 999 / 2);

    /* two chunks, the second of a few indices */
    memset(sums, 0, sizeof sums);
    tb_parallel_for(5000003, 4999999, 4, count_one, sums);
    int64_t sum = 0;
    for (int i = 0; i < 4; i++) sum += sums[8 * i];
    ck_assert_int_eq(sum, (int64_t)5000003 * 5000002 / 2);
}
END_TEST

START_TEST(as_many_threads_as_asked_within_reason)
{
    ck_assert_int_eq(tb_parallel_threads(1), 1);
    ck_assert_int_eq(tb_parallel_threads(5), 5);
    ck_assert_int_ge(tb_parallel_threads(0), 1);
    ck_assert_int_eq(tb_parallel_threads(-1), tb_parallel_threads(0));
    ck_assert_int_le(tb_parallel_threads(INT32_MAX), 4096);
}
END_TEST

typedef struct nest {
    int32_t inner_seen[16][100];
    int32_t team[16];
} nest;

static void inner(void *context, int32_t i, int32_t thread)
{
    int32_t *seen = context;
    seen[i] += 1 + 1000 * thread;
}

static void outer(void *context, int32_t i, int32_t thread)
{
    nest *n = context;
    (void)thread;
    n->team[i] = tb_parallel_threads(4);
    tb_parallel_for(100, 1, 4, inner, n->inner_seen[i]);
}

START_TEST(a_loop_inside_a_loop_runs_in_its_caller)
{
    static nest n;
    tb_parallel_for(16, 1, 4, outer, &n);
    for (int i = 0; i < 16; i++) {
        ck_assert_int_eq(n.team[i], 1);
        for (int k = 0; k < 100; k++) ck_assert_int_eq(n.inner_seen[i][k], 1);
    }
}
END_TEST

TEST_MAIN(every_index_is_done_exactly_once, negative_counts_do_nothing,
          grains_beyond_the_count_do_not_overflow, as_many_threads_as_asked_within_reason,
          a_loop_inside_a_loop_runs_in_its_caller)
