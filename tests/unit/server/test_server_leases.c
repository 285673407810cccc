/* Leases: a thread that brings a short job to an idle device computes it itself, with the same
 * bytes. */
#include "server/scheduler_util.h"

/* A job that may be leased, and how long its steps are said to take. */
static void prepare_at_once(test_job *t, const char *client, tb_state *state, int steps,
                            int64_t step_ns)
{
    prepare_steps(t, client, state, steps);
    t->job.at_once = true;
    t->job.step_estimate_ns = step_ns;
}

static int64_t leases(const fixture *f)
{
    return td_metrics_get(f->server.metrics, TD_METRIC_LEASES);
}

START_TEST(a_short_job_leases_an_idle_device_and_its_bytes_are_those_of_the_owner)
{
    enum { ROUNDS = 60 };
    tb_model *model = pile_of_boxes(3, 0.7);
    tb_state *states[2] = {world_of(model, 9), NULL};
    uint64_t hashes[2];
    tb_certificate certificates[2][ROUNDS];
    tb_error error = {0};
    TEST_OK(tb_state_fork(states[0], &states[1], &error), &error);
    for (int owner_only = 0; owner_only < 2; owner_only++) {
        fixture f;
        test_job job;
        set_up(&f, 2, 100);
        if (owner_only) td_scheduler_keep_to_owner(f.scheduler);
        for (int i = 0; i < ROUNDS; i++) {
            prepare_at_once(&job, "one", states[owner_only], 1 + i % 7, 2000);
            job.job.options.report_energy = i % 3 == 0; /* in launches of one step */
            ck_assert_int_eq(submit(&f, &job, NULL), TB_OK);
            /* the leased job is done by now, unless it took much longer than its estimate */
            wait_done(&job);
            ck_assert_int_eq(job.status, TB_OK);
            ck_assert_int_eq(job.job.steps_done, 1 + i % 7);
            ck_assert_int_gt(job.job.compute_ns, 0);
            if (owner_only) ck_assert(!pthread_equal(job.thread, pthread_self()));
            certificates[owner_only][i] = job.certificate;
        }
        ck_assert(td_scheduler_drain(f.scheduler, 5));
        if (owner_only)
            ck_assert_int_eq(leases(&f), 0);
        else
            ck_assert_int_gt(leases(&f), ROUNDS / 2);
        tear_down(&f);
        hashes[owner_only] = tb_state_hash(states[owner_only]);
        tb_state_destroy(states[owner_only]);
    }
    ck_assert_uint_eq(hashes[0], hashes[1]);
    for (int i = 0; i < ROUNDS; i++) {
        const tb_certificate *leased = &certificates[0][i], *queued = &certificates[1][i];
        ck_assert_int_eq(leased->status, queued->status);
        ck_assert_int_eq(leased->iterations, queued->iterations);
        ck_assert_mem_eq(&leased->residual, &queued->residual, sizeof leased->residual);
        ck_assert_mem_eq(&leased->energy, &queued->energy, sizeof leased->energy);
    }
    tb_model_destroy(model);
}
END_TEST

START_TEST(only_a_short_job_of_a_willing_submitter_leases_and_only_an_idle_device)
{
    fixture f;
    tb_model *model = pile_of_boxes(1, 0.5);
    tb_state *state = world_of(model, 0);
    test_job job, blocker;
    set_up(&f, 1, 100);
    for (int i = 0; i < 5; i++) {
        prepare_at_once(&job, "one", state, 2, 2000);
        switch (i) {
        case 0: job.job.at_once = false; break;
        case 1: job.job.priority = TD_PRIORITY_LOW; break;
        case 2: job.job.step_estimate_ns = 0; break;
        case 3: job.job.step_estimate_ns = TD_LEASE_NS; break;
        default: block(&f, &blocker); break;
        }
        ck_assert_int_eq(submit(&f, &job, NULL), TB_OK);
        if (i == 4) {
            ck_assert_int_eq(td_scheduler_queued(f.scheduler), 1);
            unblock(&blocker);
        }
        wait_done(&job);
        ck_assert(!pthread_equal(job.thread, pthread_self()));
        ck_assert(td_scheduler_drain(f.scheduler, 5));
    }
    ck_assert_int_eq(leases(&f), 0);

    /* the same job, with nothing against it */
    prepare_at_once(&job, "one", state, 1, 2000);
    ck_assert_int_eq(submit(&f, &job, NULL), TB_OK);
    ck_assert(atomic_load(&job.done));
    ck_assert(pthread_equal(job.thread, pthread_self()));
    ck_assert_int_eq(leases(&f), 1);
    tear_down(&f);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

typedef struct lessee {
    fixture *f;
    test_job job;
} lessee;

static void *submit_one(void *context)
{
    lessee *l = context;
    submit(l->f, &l->job, NULL);
    return NULL;
}

static bool is_held(td_scheduler *s)
{
    pthread_mutex_lock(&s->mutex);
    const bool held = s->held;
    pthread_mutex_unlock(&s->mutex);
    return held;
}

START_TEST(what_comes_during_a_lease_is_one_batch_afterwards)
{
    enum { GUESTS = 4, LONG = 20000 };
    tb_model *model = pile_of_boxes(1, 0.5);
    bool together = false;
    for (int attempt = 0; attempt < 10 && !together; attempt++) {
        fixture f;
        lessee host = {.f = &f};
        test_job guests[GUESTS];
        tb_state *states[GUESTS + 1], *alone[GUESTS + 1];
        pthread_t thread;
        tb_error error = {0};
        tb_stepper *stepper = NULL;
        TEST_OK(tb_stepper_create(NULL, &stepper, &error), &error);
        set_up(&f, GUESTS, 100);
        for (int i = 0; i <= GUESTS; i++) {
            states[i] = world_of(model, 3 * i);
            alone[i] = world_of(model, 3 * i);
            TEST_OK(tb_step(stepper, alone[i], i == GUESTS ? LONG : 1, NULL, &error), &error);
        }
        /* said to be short, and long */
        prepare_at_once(&host.job, "host", states[GUESTS], LONG, 1);
        ck_assert_int_eq(pthread_create(&thread, NULL, submit_one, &host), 0);
        while (!is_held(f.scheduler) && leases(&f) == 0) test_sleep(1e-5);
        for (int i = 0; i < GUESTS; i++) {
            prepare_at_once(&guests[i], "guest", states[i], 1, 2000);
            ck_assert_int_eq(submit(&f, &guests[i], NULL), TB_OK);
        }
        together = leases(&f) == 0; /* not over yet */
        for (int i = 0; i < GUESTS; i++) wait_done(&guests[i]);
        pthread_join(thread, NULL);
        wait_done(&host.job);
        if (together) {
            ck_assert_int_eq(leases(&f), 1);
            ck_assert_int_eq(td_metrics_get(f.server.metrics, TD_METRIC_BATCHES), 2);
            ck_assert_int_eq(td_metrics_get(f.server.metrics, TD_METRIC_BATCHED_REQUESTS),
                             1 + GUESTS);
            ck_assert(pthread_equal(host.job.thread, thread));
        }
        tear_down(&f);
        for (int i = 0; i <= GUESTS; i++) {
            ck_assert_uint_eq(tb_state_hash(states[i]), tb_state_hash(alone[i]));
            tb_state_destroy(states[i]);
            tb_state_destroy(alone[i]);
        }
        tb_stepper_destroy(stepper);
    }
    ck_assert_msg(together, "the lease was over before the others came, ten times");
    tb_model_destroy(model);
}
END_TEST

enum { STREAMS = 4, STREAM_STEPS = 300 };

typedef struct test_stream {
    fixture *f;
    tb_state *state;
    char name[8];
    int kind; /* the last one also cancels */
    int64_t taken;
} test_stream;

static void *run_stream(void *context)
{
    test_stream *s = context;
    test_job job;
    for (int i = 0; i < STREAM_STEPS; i++) {
        atomic_bool stop = s->kind == STREAMS - 1 && i % 5 == 0;
        prepare_at_once(&job, s->name, s->state, 1 + i % 3, i % 11 == 0 ? 0 : 3000);
        job.job.priority = i % 7 == 0 ? TD_PRIORITY_LOW : TD_PRIORITY_NORMAL;
        job.job.stop = &stop;
        const tb_status status = submit(s->f, &job, NULL);
        if (status == TB_CANCELLED) continue;
        ck_assert_int_eq(status, TB_OK);
        wait_done(&job);
        ck_assert_int_eq(job.status, TB_OK);
        s->taken += job.job.steps_done;
    }
    return NULL;
}

START_TEST(leases_and_the_owner_take_turns_under_load)
{
    fixture f;
    tb_error error = {0};
    tb_model *model = pile_of_boxes(2, 0.5);
    test_stream streams[STREAMS];
    pthread_t threads[STREAMS];
    test_job grasps;
    tb_stepper *stepper = NULL;
    TEST_OK(tb_stepper_create(NULL, &stepper, &error), &error);
    set_up(&f, 2, 1000);
    f.config.maximum_queue_delay_us = 50;
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = (test_stream){.f = &f, .state = world_of(model, i), .kind = i};
        snprintf(streams[i].name, sizeof streams[i].name, "%d", i);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_stream, &streams[i]), 0);
    }
    prepare_slices(&grasps, "grasps", 5);
    atomic_store(&grasps.gate, true);
    ck_assert_int_eq(submit(&f, &grasps, NULL), TB_OK);
    for (int i = 0; i < STREAMS; i++) pthread_join(threads[i], NULL);
    wait_done(&grasps);
    ck_assert(td_scheduler_drain(f.scheduler, 5));
    ck_assert_int_gt(leases(&f), 0);
    ck_assert_int_gt(td_metrics_get(f.server.metrics, TD_METRIC_BATCHES), leases(&f));
    ck_assert_int_eq(td_scheduler_queued(f.scheduler), 0);
    tear_down(&f);
    for (int i = 0; i < STREAMS; i++) {
        tb_state *alone = world_of(model, i);
        TEST_OK(tb_step(stepper, alone, (int32_t)streams[i].taken, NULL, &error), &error);
        ck_assert_uint_eq(tb_state_hash(alone), tb_state_hash(streams[i].state));
        tb_state_destroy(alone);
        tb_state_destroy(streams[i].state);
    }
    tb_stepper_destroy(stepper);
    tb_model_destroy(model);
}
END_TEST

TEST_MAIN(a_short_job_leases_an_idle_device_and_its_bytes_are_those_of_the_owner,
          only_a_short_job_of_a_willing_submitter_leases_and_only_an_idle_device,
          what_comes_during_a_lease_is_one_batch_afterwards,
          leases_and_the_owner_take_turns_under_load)
