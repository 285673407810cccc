/* Estimated completion of a job behind the jobs of several clients. A deadline that fair sharing
 * can meet is not refused because of work that the job does not wait for. */
#include "schedule/scheduler_internal.h"
#include "server/server_util.h"

static const double MS = 1e6;          /* ns */
static const int64_t NOW = 5000000000; /* ns */

enum { JOBS = 64 };

/* A queue with jobs of one world, one millisecond a step. */
typedef struct fixture {
    td_queue queue;
    td_job jobs[JOBS];
    int count;
} fixture;

static td_account *client(fixture *f, const char *name, double used_ms)
{
    td_caller caller = {0};
    snprintf(caller.name, sizeof caller.name, "%s", name);
    td_account *account = td_queue_account(&f->queue, &caller);
    td_queue_charge(&f->queue, account, (int64_t)(used_ms * MS), NOW);
    return account;
}

static td_job *make_job(fixture *f, td_account *account, td_priority priority, int steps)
{
    ck_assert_int_lt(f->count, JOBS);
    td_job *job = &f->jobs[f->count++];
    *job = (td_job){.account = account,
                    .priority = priority,
                    .worlds = 1,
                    .steps = steps,
                    .step_estimate_ns = (int64_t)MS};
    return job;
}

/* A job in the queue. */
static void wait_in_line(fixture *f, td_account *account, td_priority priority, int steps)
{
    td_job *job = make_job(f, account, priority, steps);
    account->jobs++;
    account->backlog_ns[priority] += td_queue_remaining_ns(&f->queue, job);
    td_queue_push(&f->queue, job);
}

/* Predicted completion of a job of the given length, ms. */
static double done_after(fixture *f, td_account *account, td_priority priority, int steps)
{
    const td_job *job = make_job(f, account, priority, steps);
    return td_queue_completion_ns(&f->queue, job, account, NOW) / MS;
}

static fixture *set_up(void)
{
    fixture *f = calloc(1, sizeof *f);
    ck_assert_ptr_nonnull(f);
    f->queue.epoch_ns = NOW;
    return f;
}

START_TEST(an_idle_device_takes_as_long_as_the_job)
{
    fixture *f = set_up();
    TEST_NEAR(done_after(f, client(f, "one", 0), TD_PRIORITY_NORMAL, 7), 7, 1e-9);
    free(f);
}
END_TEST

START_TEST(a_short_job_takes_turns_with_the_long_ones_of_its_client)
{
    fixture *f = set_up();
    td_account *one = client(f, "one", 0);
    wait_in_line(f, one, TD_PRIORITY_NORMAL, 10000);
    wait_in_line(f, one, TD_PRIORITY_NORMAL, 20000);
    wait_in_line(f, one, TD_PRIORITY_NORMAL, 1);
    /* 5 ms of its own work; of the others, two get as much and a slice, and one is soon done */
    TEST_NEAR(done_after(f, one, TD_PRIORITY_NORMAL, 5), 5 + 6 + 6 + 1, 1e-9);
    /* a running job is in no list, and counts */
    one->backlog_ns[TD_PRIORITY_NORMAL] += 3 * MS;
    TEST_NEAR(done_after(f, one, TD_PRIORITY_NORMAL, 5), 5 + 6 + 6 + 1 + 3, 1e-9);
    free(f);
}
END_TEST

START_TEST(equal_clients_share)
{
    fixture *f = set_up();
    td_account *one = client(f, "one", 100);
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "other %d", i);
        wait_in_line(f, client(f, name, 100), TD_PRIORITY_NORMAL, i < 2 ? 1000 : 2);
    }
    TEST_NEAR(done_after(f, one, TD_PRIORITY_NORMAL, 10), 10 + 10 + 10 + 2, 1e-9);
    free(f);
}
END_TEST

START_TEST(who_has_used_little_goes_before_who_has_used_much)
{
    fixture *f = set_up();
    td_account *heavy = client(f, "heavy", 500), *light = client(f, "light", 0);
    td_account *middle = client(f, "middle", 30);
    for (int i = 0; i < 20; i++) wait_in_line(f, heavy, TD_PRIORITY_NORMAL, 1000);
    wait_in_line(f, middle, TD_PRIORITY_NORMAL, 1000);
    TEST_NEAR(done_after(f, light, TD_PRIORITY_NORMAL, 20), 20, 1e-9);
    /* beyond 30 ms the one in the middle has its turns, too */
    TEST_NEAR(done_after(f, light, TD_PRIORITY_NORMAL, 100), 100 + 70, 1e-9);

    /* and the heavy one has to wait until it has been caught up with */
    wait_in_line(f, light, TD_PRIORITY_NORMAL, 50);
    const double heavy_done = done_after(f, heavy, TD_PRIORITY_NORMAL, 1);
    TEST_NEAR(heavy_done, 1 + 20 * 2 + 50 + (1 + 20 * 2 + 470), 1e-9);
    free(f);
}
END_TEST

START_TEST(use_of_long_ago_counts_less)
{
    fixture *f = set_up();
    td_account *one = client(f, "one", 0), *other = client(f, "other", 80);
    wait_in_line(f, other, TD_PRIORITY_NORMAL, 1000);
    const td_job *job = make_job(f, one, TD_PRIORITY_NORMAL, 100);
    /* two half-lives later 80 ms are worth 20 */
    const double later = td_queue_completion_ns(&f->queue, job, one, NOW + 4000000000) / MS;
    TEST_NEAR(later, 100 + 80, 1e-9);
    free(f);
}
END_TEST

START_TEST(higher_priorities_come_first_but_for_a_share)
{
    fixture *f = set_up();
    td_account *one = client(f, "one", 0), *heavy = client(f, "heavy", 900);
    wait_in_line(f, heavy, TD_PRIORITY_HIGH, 40);
    wait_in_line(f, one, TD_PRIORITY_HIGH, 3);
    wait_in_line(f, heavy, TD_PRIORITY_LOW, 70);
    /* a long job waits for all of it, a short one has a fifth of the device meanwhile */
    TEST_NEAR(done_after(f, one, TD_PRIORITY_NORMAL, 20), 20 + 40 + 3, 1e-9);
    TEST_NEAR(done_after(f, one, TD_PRIORITY_NORMAL, 2), 2 + 2 * 4, 1e-9);
    TEST_NEAR(done_after(f, one, TD_PRIORITY_HIGH, 2), 2 + 3, 1e-9);
    free(f);
}
END_TEST

START_TEST(lower_priorities_get_their_shares)
{
    fixture *f = set_up();
    td_account *one = client(f, "one", 0);
    enum { ROUNDS = 10000 };
    int used[TD_PRIORITIES] = {0};
    for (int p = 0; p < TD_PRIORITIES; p++) wait_in_line(f, one, (td_priority)p, 1000000);
    for (int i = 0; i < ROUNDS; i++) {
        const int p = td_queue_priority(&f->queue);
        used[p]++;
        td_queue_owe(&f->queue, p, 1000000);
    }
    TEST_NEAR(used[TD_PRIORITY_NORMAL], 0.2 * ROUNDS, 0.02 * ROUNDS);
    TEST_NEAR(used[TD_PRIORITY_LOW], 0.05 * ROUNDS, 0.01 * ROUNDS);
    ck_assert_int_gt(used[TD_PRIORITY_HIGH], (int)(0.7 * ROUNDS));
    free(f);
}
END_TEST

START_TEST(an_equal_load_of_newcomers_is_foreseen)
{
    fixture *f = set_up();
    td_account *one = client(f, "one", 0);
    for (int i = 0; i < 3; i++) wait_in_line(f, one, TD_PRIORITY_NORMAL, 10);
    const td_job *job = make_job(f, one, TD_PRIORITY_NORMAL, 10);
    one->jobs = 4; /* one is in the launch */
    TEST_NEAR(td_queue_turns_ns(&f->queue, job, one) / MS, 4 * 10, 1e-9);
    const td_job *quick = make_job(f, one, TD_PRIORITY_NORMAL, 1);
    TEST_NEAR(td_queue_turns_ns(&f->queue, quick, one) / MS, 4 * 1, 1e-9);
    free(f);
}
END_TEST

/* ---- with a device ---- */

typedef struct real_job {
    td_job job; /* first: the callback gets it */
    td_caller client;
    tb_state *state;
    tb_certificate certificate;
    atomic_bool stop, done;
    tb_status status;
} real_job;

static void on_done(td_job *job)
{
    real_job *r = (real_job *)job;
    r->status = job->status;
    atomic_store(&r->done, true);
}

static void prepare(real_job *r, const char *name, tb_state *state, int steps)
{
    memset(r, 0, sizeof *r);
    snprintf(r->client.name, sizeof r->client.name, "%s", name);
    r->state = state;
    r->job.client = &r->client;
    r->job.priority = TD_PRIORITY_NORMAL;
    r->job.options = tb_step_defaults();
    r->job.states = &r->state;
    r->job.worlds = 1;
    r->job.steps = steps;
    r->job.certificates = &r->certificate;
    r->job.stop = &r->stop;
    r->job.done = on_done;
}

static void finish(real_job *r)
{
    for (int i = 0; i < 300000 && !atomic_load(&r->done); i++) test_sleep(1e-4);
    ck_assert(atomic_load(&r->done));
}

START_TEST(a_deadline_is_met_beside_hours_of_work_of_the_same_client)
{
    test_server t;
    tb_error error = {0};
    real_job r, hours;
    tb_model *model = pile_of_boxes(3, 0.5);
    tb_state *state = world_of(model, 0), *other = world_of(model, 0);
    test_server_init(&t, false);
    t.config.threads = 1;
    test_server_start(&t);
    td_scheduler *s = t.server.devices[0].scheduler;
    test_call *call = test_call_begin(&t.server, NULL, "one");

    /* estimates are trusted after some measurements */
    for (int i = 0; i < 40; i++) {
        prepare(&r, "one", state, 1);
        TEST_OK(td_scheduler_submit(s, &r.job), &r.job.error);
        finish(&r);
    }
    prepare(&hours, "one", other, 1000000000);
    TEST_OK(td_scheduler_submit(s, &hours.job), &hours.job.error);
    prepare(&r, "one", state, 3);
    r.job.call = &call->call;
    call->call.deadline_ns = td_monotonic_ns() + 10000000000;
    TEST_OK(td_scheduler_submit(s, &r.job), &r.job.error);
    finish(&r);
    TEST_STATUS(r.status, TB_OK, &error);
    ck_assert(!atomic_load(&hours.done));

    /* jobs that cannot be done in time are refused as before */
    prepare(&r, "one", state, 1000000000);
    r.job.call = &call->call;
    call->call.deadline_ns = td_monotonic_ns() + 1000000000;
    TEST_STATUS(td_scheduler_submit(s, &r.job), TB_DEADLINE_EXCEEDED, &r.job.error);
    atomic_store(&hours.stop, true);
    finish(&hours);
    test_call_end(call);
    tb_state_destroy(state);
    tb_state_destroy(other);
    test_server_stop(&t);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_call_waits_as_long_as_its_own_work_allows)
{
    static const struct {
        double seconds, needed_ns;
        int64_t limit_ns;
    } cases[] = {{0.25, 0, 5000000},     {0.25, 1e6, 5000000},  {0.25, 6e7, 90000000},
                 {0.25, 1e9, 250000000}, {10, 1e9, 1500000000}, {0, 1e6, INT64_MAX}};
    td_config config = td_config_defaults();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        config.queue_wait_seconds = cases[i].seconds;
        const int64_t remembered = (int64_t)(4e9 * config.queue_wait_seconds);
        ck_assert_int_eq(td_wait_limit(&config, 7, 7 + remembered, cases[i].needed_ns),
                         cases[i].limit_ns);
        /* a burst may fill the bound */
        const double bound = 1e9 * config.queue_wait_seconds;
        ck_assert_int_eq(td_wait_limit(&config, 7, 8 + remembered, cases[i].needed_ns),
                         bound > 0 ? (int64_t)bound : INT64_MAX);
    }
}
END_TEST

TEST_MAIN(a_call_waits_as_long_as_its_own_work_allows, lower_priorities_get_their_shares,
          an_equal_load_of_newcomers_is_foreseen, an_idle_device_takes_as_long_as_the_job,
          a_short_job_takes_turns_with_the_long_ones_of_its_client, equal_clients_share,
          who_has_used_little_goes_before_who_has_used_much, use_of_long_ago_counts_less,
          higher_priorities_come_first_but_for_a_share,
          a_deadline_is_met_beside_hours_of_work_of_the_same_client)
