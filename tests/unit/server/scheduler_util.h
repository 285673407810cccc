/* Jobs that tests give to a scheduler with its real owner thread: made, kept at work, waited for. */
#ifndef SCHEDULER_UTIL_H
#define SCHEDULER_UTIL_H

#include <pthread.h>

#include "schedule/scheduler_internal.h"
#include "server/server_util.h"

typedef struct fixture {
    td_config config;
    td_server server;
    td_scheduler *scheduler;
} fixture;

static inline void set_up(fixture *f, int threads, int queue_length)
{
    tb_error error = {0};
    memset(f, 0, sizeof *f);
    f->config = td_config_defaults();
    f->config.threads = threads;
    f->config.queue_length = queue_length;
    f->server.config = &f->config;
    atomic_init(&f->server.alive, true);
    TEST_OK(td_metrics_create(&f->server.metrics, &error), &error);
    TEST_OK(td_scheduler_create(&f->server, NULL, &f->scheduler, &error), &error);
}

static inline void tear_down(fixture *f)
{
    td_scheduler_destroy(f->scheduler);
    td_metrics_destroy(f->server.metrics);
}

/* ---- jobs ---- */

typedef struct test_job {
    td_job job; /* first: callbacks get it */
    td_caller client;
    tb_state *state;
    tb_certificate certificate;
    tb_status status;
    atomic_int slices, wanted_slices;
    atomic_bool entered, gate, done;
    int order;
    pthread_t thread; /* that called `done` */
} test_job;

static atomic_int finish_order;

static inline void on_done(td_job *job)
{
    test_job *t = (test_job *)job;
    t->status = job->status;
    t->thread = pthread_self();
    t->order = atomic_fetch_add(&finish_order, 1);
    atomic_store(&t->done, true);
}

/* Waits for its gate once, then counts slices of two milliseconds. */
static inline bool slice(td_job *job, int64_t budget_ns, tb_status *status, tb_error *error)
{
    test_job *t = (test_job *)job;
    (void)status, (void)error;
    atomic_store(&t->entered, true);
    while (!atomic_load(&t->gate)) test_sleep(1e-4);
    if (atomic_load(&t->wanted_slices) > 1) test_sleep((double)budget_ns * 1e-9);
    return atomic_fetch_add(&t->slices, 1) + 1 >= atomic_load(&t->wanted_slices);
}

static inline void prepare(test_job *t, const char *client)
{
    memset(t, 0, sizeof *t);
    snprintf(t->client.name, sizeof t->client.name, "%s", client);
    t->job.client = &t->client;
    t->job.priority = TD_PRIORITY_NORMAL;
    t->job.done = on_done;
    t->job.options = tb_step_defaults();
}

static inline void prepare_steps(test_job *t, const char *client, tb_state *state, int steps)
{
    prepare(t, client);
    t->state = state;
    t->job.states = &t->state;
    t->job.worlds = 1;
    t->job.steps = steps;
    t->job.certificates = &t->certificate;
}

static inline void prepare_slices(test_job *t, const char *client, int slices)
{
    prepare(t, client);
    t->job.slice = slice;
    atomic_store(&t->wanted_slices, slices);
}

static inline tb_status submit(fixture *f, test_job *t, double *retry_after)
{
    const tb_status status = td_scheduler_submit(f->scheduler, &t->job);
    if (status == TB_OK) return status; /* the job may be done already */
    if (retry_after != NULL) *retry_after = t->job.retry_after;
    ck_assert_int_eq(t->job.error.status, status);
    ck_assert_int_eq(t->job.status, status);
    return status;
}

static inline void wait_done(test_job *t)
{
    for (int i = 0; i < 200000 && !atomic_load(&t->done); i++) test_sleep(1e-4);
    ck_assert_msg(atomic_load(&t->done), "the job was not done in 20 s");
}

/* Keeps the device busy until its gate opens. */
static inline void block(fixture *f, test_job *blocker)
{
    prepare_slices(blocker, "blocker", 1);
    ck_assert_int_eq(submit(f, blocker, NULL), TB_OK);
    while (!atomic_load(&blocker->entered)) test_sleep(1e-4);
}

static inline void unblock(test_job *blocker)
{
    atomic_store(&blocker->gate, true);
    wait_done(blocker);
}

#endif
