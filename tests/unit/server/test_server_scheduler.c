/* The scheduler with its real owner thread: order, bounds, deadlines, and that merging changes no
 * byte of any result. Leases have tests of their own. */
#include "server/scheduler_util.h"

/* ---- merging ---- */

enum { JOBS = 14 };

static void check_merging(int threads, bool energies)
{
    fixture f;
    tb_error error = {0};
    tb_model *models[3] = {pile_of_boxes(1, 0.5), pile_of_boxes(3, 0.7), pile_of_boxes(6, 0.3)};
    tb_state *alone[JOBS], *merged[JOBS];
    tb_certificate certificates[JOBS];
    tb_stepper *stepper = NULL;
    test_job jobs[JOBS], blocker;
    tb_step_options options = tb_step_defaults();
    options.report_energy = energies;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    set_up(&f, threads, 1000);

    for (int i = 0; i < JOBS; i++) {
        alone[i] = world_of(models[i % 3], 5 + i);
        TEST_OK(tb_state_fork(alone[i], &merged[i], &error), &error);
        TEST_OK(tb_step(stepper, alone[i], 1 + 13 * i, &certificates[i], &error), &error);
    }
    block(&f, &blocker);
    for (int i = 0; i < JOBS; i++) {
        prepare_steps(&jobs[i], i % 2 ? "one" : "two", merged[i], 1 + 13 * i);
        jobs[i].job.options = options;
        ck_assert_int_eq(submit(&f, &jobs[i], NULL), TB_OK);
    }
    ck_assert_int_eq(td_scheduler_queued(f.scheduler), JOBS);
    unblock(&blocker);
    for (int i = 0; i < JOBS; i++) wait_done(&jobs[i]);

    const int64_t batches = td_metrics_get(f.server.metrics, TD_METRIC_BATCHES);
    const int64_t requests = td_metrics_get(f.server.metrics, TD_METRIC_BATCHED_REQUESTS);
    ck_assert_msg(requests > batches, "%d batches of %d requests", (int)batches, (int)requests);
    for (int i = 0; i < JOBS; i++) {
        ck_assert_int_eq(jobs[i].status, TB_OK);
        ck_assert_int_eq(jobs[i].job.steps_done, 1 + 13 * i);
        ck_assert_uint_eq(tb_state_hash(alone[i]), tb_state_hash(merged[i]));
        const tb_certificate *a = &certificates[i], *m = &jobs[i].certificate;
        ck_assert_int_eq(a->status, m->status);
        ck_assert_int_eq(a->step, m->step);
        ck_assert_int_eq(a->iterations, m->iterations);
        ck_assert_mem_eq(&a->residual, &m->residual, sizeof a->residual);
        ck_assert_mem_eq(&a->energy, &m->energy, sizeof a->energy);
        ck_assert_mem_eq(&a->energy_change, &m->energy_change, sizeof a->energy_change);
        ck_assert_str_eq(a->solver, m->solver);
        if (energies) ck_assert(a->energy != 0);
        tb_state_destroy(alone[i]);
        tb_state_destroy(merged[i]);
    }
    tear_down(&f);
    tb_stepper_destroy(stepper);
    for (int i = 0; i < 3; i++) tb_model_destroy(models[i]);
}

START_TEST(merged_results_are_those_of_each_alone)
{
    check_merging(1, false);
    check_merging(2, false);
}
END_TEST

START_TEST(merged_energies_are_those_of_each_alone)
{
    check_merging(1, true);
    check_merging(2, true);
}
END_TEST

START_TEST(other_options_are_not_merged)
{
    fixture f;
    tb_error error = {0};
    tb_model *model = pile_of_boxes(2, 0.5);
    tb_state *states[4], *alone[4];
    test_job jobs[4], blocker;
    set_up(&f, 1, 100);
    block(&f, &blocker);
    for (int i = 0; i < 4; i++) {
        states[i] = world_of(model, 3);
        alone[i] = world_of(model, 3);
        prepare_steps(&jobs[i], "one", states[i], 40);
        jobs[i].job.options.dt = 0.001 * (i + 1);
        tb_stepper *stepper = NULL;
        TEST_OK(tb_stepper_create(&jobs[i].job.options, &stepper, &error), &error);
        TEST_OK(tb_step(stepper, alone[i], 40, NULL, &error), &error);
        tb_stepper_destroy(stepper);
        ck_assert_int_eq(submit(&f, &jobs[i], NULL), TB_OK);
    }
    unblock(&blocker);
    for (int i = 0; i < 4; i++) {
        wait_done(&jobs[i]);
        ck_assert_uint_eq(tb_state_hash(states[i]), tb_state_hash(alone[i]));
        tb_state_destroy(states[i]);
        tb_state_destroy(alone[i]);
    }
    ck_assert_int_eq(td_metrics_get(f.server.metrics, TD_METRIC_BATCHES),
                     td_metrics_get(f.server.metrics, TD_METRIC_BATCHED_REQUESTS));
    tear_down(&f);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_world_that_diverges_leaves_its_neighbours_alone)
{
    fixture f;
    tb_error error = {0};
    tb_model *model = pile_of_boxes(1, 0.5);
    tb_state *states[3], *alone = world_of(model, 0);
    double u[6] = {0, 0, 0, 1e300, -1e300, 1e300};
    tb_stepper *stepper = NULL;
    test_job jobs[3], blocker;
    set_up(&f, 1, 100);
    block(&f, &blocker);
    for (int i = 0; i < 3; i++) {
        states[i] = world_of(model, 0);
        if (i == 1) TEST_OK(tb_state_set_u(states[i], u, 6, &error), &error);
        prepare_steps(&jobs[i], "one", states[i], 200);
        ck_assert_int_eq(submit(&f, &jobs[i], NULL), TB_OK);
    }
    unblock(&blocker);
    TEST_OK(tb_stepper_create(NULL, &stepper, &error), &error);
    TEST_OK(tb_step(stepper, alone, 200, NULL, &error), &error);
    for (int i = 0; i < 3; i++) {
        wait_done(&jobs[i]);
        ck_assert_int_eq(jobs[i].status, TB_OK);
        ck_assert((jobs[i].certificate.status == TB_DIVERGED) == (i == 1));
        if (i != 1) ck_assert_uint_eq(tb_state_hash(states[i]), tb_state_hash(alone));
    }
    ck_assert_int_eq(td_metrics_get(f.server.metrics, TD_METRIC_DIVERGED), 1);
    tear_down(&f);
    tb_stepper_destroy(stepper);
    tb_state_destroy(alone);
    for (int i = 0; i < 3; i++) tb_state_destroy(states[i]);
    tb_model_destroy(model);
}
END_TEST

/* ---- bounds ---- */

START_TEST(a_full_queue_refuses_at_once_and_says_when_to_come_back)
{
    fixture f;
    tb_model *model = pile_of_boxes(1, 0.5);
    tb_state *states[6];
    test_job jobs[6], blocker;
    double retry_after = 0;
    set_up(&f, 1, 4);
    block(&f, &blocker);
    for (int i = 0; i < 6; i++) {
        states[i] = world_of(model, 0);
        prepare_steps(&jobs[i], i < 5 ? "greedy" : "modest", states[i], 10);
    }
    for (int i = 0; i < 4; i++) ck_assert_int_eq(submit(&f, &jobs[i], NULL), TB_OK);
    ck_assert_int_eq(submit(&f, &jobs[4], &retry_after), TB_RESOURCE_EXHAUSTED);
    ck_assert_double_gt(retry_after, 0);
    ck_assert_int_eq(td_metrics_get(f.server.metrics, TD_METRIC_QUEUE_REFUSED), 1);

    /* one client's flood does not lock another out */
    ck_assert_int_eq(submit(&f, &jobs[5], NULL), TB_OK);
    unblock(&blocker);
    for (int i = 0; i < 6; i++)
        if (i != 4) wait_done(&jobs[i]);
    ck_assert(!atomic_load(&jobs[4].done));
    ck_assert(td_scheduler_drain(f.scheduler, 5));
    ck_assert_int_eq(submit(&f, &jobs[4], &retry_after), TB_OK);
    wait_done(&jobs[4]);
    tear_down(&f);
    for (int i = 0; i < 6; i++) tb_state_destroy(states[i]);
    tb_model_destroy(model);
}
END_TEST

/* ---- deadlines and cancellation ---- */

START_TEST(a_deadline_counts_before_the_queue_before_the_launch_and_between_steps)
{
    fixture f;
    tb_model *model = pile_of_boxes(3, 0.5);
    tb_state *state = world_of(model, 0);
    test_job job, blocker;
    set_up(&f, 1, 100);
    test_call *call = test_call_begin(&f.server, NULL, "one");

    /* before the queue */
    prepare_steps(&job, "one", state, 10);
    job.job.call = &call->call;
    call->call.deadline_ns = td_monotonic_ns() - 1;
    ck_assert_int_eq(submit(&f, &job, NULL), TB_DEADLINE_EXCEEDED);

    /* before the launch */
    block(&f, &blocker);
    call->call.deadline_ns = td_monotonic_ns() + 20000000;
    ck_assert_int_eq(submit(&f, &job, NULL), TB_OK);
    test_sleep(0.03);
    unblock(&blocker);
    wait_done(&job);
    ck_assert_int_eq(job.status, TB_DEADLINE_EXCEEDED);
    ck_assert_int_eq(job.job.steps_done, 0);
    ck_assert_int_eq(tb_state_steps(state), 0);

    /* between steps */
    prepare_steps(&job, "one", state, 100000000);
    job.job.call = &call->call;
    call->call.deadline_ns = td_monotonic_ns() + 30000000;
    ck_assert_int_eq(submit(&f, &job, NULL), TB_OK);
    wait_done(&job);
    ck_assert_int_eq(job.status, TB_DEADLINE_EXCEEDED);
    ck_assert_int_gt(job.job.steps_done, 0);
    ck_assert_int_eq(tb_state_steps(state), job.job.steps_done);
    ck_assert_int_ge(td_metrics_get(f.server.metrics, TD_METRIC_QUEUE_DROPPED), 2);
    tear_down(&f);
    test_call_end(call);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

/* The solver of this job never comes to its tolerance. */
START_TEST(a_deadline_and_a_cancelled_call_end_a_step_that_lasts)
{
    fixture f;
    tb_model *model = pile_of_boxes(6, 0.5);
    tb_state *state = world_of(model, 3);
    test_job job;
    set_up(&f, 1, 100);
    test_call *call = test_call_begin(&f.server, NULL, "one");
    const uint64_t before = tb_state_hash(state);
    const int64_t steps = tb_state_steps(state);

    for (int by_deadline = 0; by_deadline < 2; by_deadline++) {
        prepare_steps(&job, "one", state, 3);
        job.job.options.solve.solver = "sor";
        job.job.options.solve.tolerance = 1e-300;
        job.job.options.solve.maximum_iterations = 1000000000;
        job.job.call = &call->call;
        call->call.deadline_ns = by_deadline ? td_monotonic_ns() + 50000000 : INT64_MAX;
        const int64_t begin = td_monotonic_ns();
        ck_assert_int_eq(submit(&f, &job, NULL), TB_OK);
        test_sleep(0.1);
        ck_assert(by_deadline || !atomic_load(&job.done));
        atomic_store(&call->call.gone, !by_deadline);
        wait_done(&job);
        atomic_store(&call->call.gone, false);
        ck_assert_int_eq(job.status, by_deadline ? TB_DEADLINE_EXCEEDED : TB_CANCELLED);
        ck_assert_int_eq(job.job.error.status, job.status);
        ck_assert_ptr_nonnull(strstr(job.job.error.message, "after 0 of 3 steps"));
        ck_assert_int_eq(job.job.steps_done, 0);
        ck_assert_double_lt((double)(td_monotonic_ns() - begin), 5e9);
        ck_assert_uint_eq(tb_state_hash(state), before);
    }
    ck_assert_int_eq(td_metrics_get(f.server.metrics, TD_METRIC_WORLD_STEPS), 0);

    /* the next job finds the state as it was */
    prepare_steps(&job, "one", state, 3);
    ck_assert_int_eq(submit(&f, &job, NULL), TB_OK);
    wait_done(&job);
    ck_assert_int_eq(job.status, TB_OK);
    ck_assert_int_eq(tb_state_steps(state), steps + 3);
    tear_down(&f);
    test_call_end(call);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

/* It has no contacts, so its steps have nothing to solve. */
static tb_model *free_sphere(void)
{
    static const char text[] =
        "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>";
    tb_error error = {0};
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    TEST_OK(tb_scene_load_mjcf(text, strlen(text), NULL, NULL, &scene, &error), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

/* The same of worlds of one job, of which two make the step at once: all go back. */
START_TEST(a_step_of_several_worlds_that_lasts_ends_for_all_of_them)
{
    enum { WORLDS = 4 };
    for (int threads = 1; threads <= 2; threads++) {
        fixture f;
        tb_model *models[2] = {pile_of_boxes(6, 0.5), free_sphere()};
        tb_state *states[WORLDS];
        tb_certificate certificates[WORLDS];
        uint64_t before[WORLDS];
        test_job job;
        set_up(&f, threads, 100);
        test_call *call = test_call_begin(&f.server, NULL, "one");
        for (int w = 0; w < WORLDS; w++) {
            states[w] = world_of(models[w % 2], w);
            before[w] = tb_state_hash(states[w]);
        }

        for (int known = 0; known < 2; known++) {
            prepare_steps(&job, "one", states[0], 3);
            job.job.states = states;
            job.job.worlds = WORLDS;
            job.job.certificates = certificates;
            job.job.options.solve.solver = "sor";
            job.job.options.solve.tolerance = 1e-300;
            job.job.options.solve.maximum_iterations = 1000000000;
            job.job.step_estimate_ns = known ? 100000000 : 0;
            job.job.call = &call->call;
            call->call.deadline_ns = known ? td_monotonic_ns() + 500000000 : INT64_MAX;
            ck_assert_int_eq(submit(&f, &job, NULL), TB_OK);
            test_sleep(0.1);
            ck_assert(!atomic_load(&job.done));
            atomic_store(&call->call.gone, !known);
            wait_done(&job);
            atomic_store(&call->call.gone, false);
            ck_assert_int_eq(job.status, known ? TB_DEADLINE_EXCEEDED : TB_CANCELLED);
            ck_assert_ptr_nonnull(strstr(job.job.error.message, "after 0 of 3 steps"));
            ck_assert_int_eq(job.job.steps_done, 0);
            for (int w = 0; w < WORLDS; w++) ck_assert_uint_eq(tb_state_hash(states[w]), before[w]);
        }
        ck_assert_int_eq(td_metrics_get(f.server.metrics, TD_METRIC_WORLD_STEPS), 0);

        /* the next job finds the states as they were */
        prepare_steps(&job, "one", states[0], 3);
        job.job.states = states;
        job.job.worlds = WORLDS;
        job.job.certificates = certificates;
        ck_assert_int_eq(submit(&f, &job, NULL), TB_OK);
        wait_done(&job);
        ck_assert_int_eq(job.status, TB_OK);
        tear_down(&f);
        test_call_end(call);
        for (int w = 0; w < WORLDS; w++) tb_state_destroy(states[w]);
        for (int m = 0; m < 2; m++) tb_model_destroy(models[m]);
    }
}
END_TEST

START_TEST(a_deadline_that_the_queue_cannot_meet_is_refused_at_once)
{
    fixture f;
    tb_model *model = pile_of_boxes(3, 0.5);
    tb_state *state = world_of(model, 0);
    test_job job;
    set_up(&f, 1, 100);
    test_call *call = test_call_begin(&f.server, NULL, "one");
    prepare_steps(&job, "one", state, 1);
    for (int i = 0; i < 40; i++) {
        ck_assert_int_eq(submit(&f, &job, NULL), TB_OK);
        wait_done(&job);
        atomic_store(&job.done, false);
    }
    /* the job has its own estimate by now */
    ck_assert_int_gt(job.job.step_estimate_ns, 0);
    job.job.call = &call->call;
    job.job.steps = 100000000;
    call->call.deadline_ns = td_monotonic_ns() + 1000000000;
    ck_assert_int_eq(submit(&f, &job, NULL), TB_DEADLINE_EXCEEDED);
    ck_assert_int_eq(td_scheduler_queued(f.scheduler), 0);
    tear_down(&f);
    test_call_end(call);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_cancelled_call_and_a_stopped_session_end_between_steps)
{
    fixture f;
    tb_model *model = pile_of_boxes(3, 0.5);
    tb_state *state = world_of(model, 0);
    test_job job;
    set_up(&f, 1, 100);
    test_call *call = test_call_begin(&f.server, NULL, "one");
    for (int round = 0; round < 2; round++) {
        atomic_bool stop = false;
        prepare_steps(&job, "one", state, 100000000);
        if (round == 0)
            job.job.call = &call->call;
        else
            job.job.stop = &stop;
        const int64_t before = tb_state_steps(state);
        ck_assert_int_eq(submit(&f, &job, NULL), TB_OK);
        test_sleep(0.02);
        if (round == 0)
            atomic_store(&call->call.gone, true);
        else
            atomic_store(&stop, true);
        wait_done(&job);
        ck_assert_int_eq(job.status, TB_CANCELLED);
        ck_assert_int_gt(job.job.steps_done, 0);
        ck_assert_int_eq(tb_state_steps(state) - before, job.job.steps_done);
    }
    tear_down(&f);
    test_call_end(call);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

/* ---- order ---- */

START_TEST(a_higher_priority_goes_first)
{
    fixture f;
    tb_model *model = pile_of_boxes(1, 0.5);
    test_job jobs[6], blocker;
    set_up(&f, 1, 100);
    block(&f, &blocker);
    for (int i = 0; i < 6; i++) {
        prepare_slices(&jobs[i], "one", 1);
        atomic_store(&jobs[i].gate, true);
        jobs[i].job.priority = (td_priority)(i % 3);
        ck_assert_int_eq(submit(&f, &jobs[i], NULL), TB_OK);
    }
    unblock(&blocker);
    for (int i = 0; i < 6; i++) wait_done(&jobs[i]);
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++)
            if (jobs[i].job.priority > jobs[k].job.priority)
                ck_assert_int_lt(jobs[i].order, jobs[k].order);
    tear_down(&f);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_client_of_one_request_does_not_wait_behind_a_flood)
{
    fixture f;
    test_job flood[30], one, blocker;
    set_up(&f, 1, 100);
    block(&f, &blocker);
    for (int i = 0; i < 30; i++) {
        prepare_slices(&flood[i], "flood", 2);
        atomic_store(&flood[i].gate, true);
        ck_assert_int_eq(submit(&f, &flood[i], NULL), TB_OK);
    }
    prepare_slices(&one, "modest", 1);
    atomic_store(&one.gate, true);
    ck_assert_int_eq(submit(&f, &one, NULL), TB_OK);
    const int before = atomic_load(&finish_order);
    unblock(&blocker);
    wait_done(&one);
    ck_assert_int_le(one.order - before, 3);
    for (int i = 0; i < 30; i++) wait_done(&flood[i]);
    tear_down(&f);
}
END_TEST

START_TEST(steps_go_on_between_the_slices_of_a_long_job)
{
    fixture f;
    tb_model *model = pile_of_boxes(1, 0.5);
    tb_state *state = world_of(model, 0);
    test_job grasps, steps;
    set_up(&f, 1, 100);
    prepare_slices(&grasps, "one", 200);
    atomic_store(&grasps.gate, true);
    ck_assert_int_eq(submit(&f, &grasps, NULL), TB_OK);
    while (!atomic_load(&grasps.entered)) test_sleep(1e-4);
    prepare_steps(&steps, "one", state, 20);
    ck_assert_int_eq(submit(&f, &steps, NULL), TB_OK);
    wait_done(&steps);
    ck_assert(!atomic_load(&grasps.done));
    ck_assert_int_lt(atomic_load(&grasps.slices), 100);
    wait_done(&grasps);
    ck_assert_int_eq(atomic_load(&grasps.slices), 200);
    tear_down(&f);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

/* ---- waiting for companions ---- */

START_TEST(a_lone_stream_never_waits_for_companions)
{
    fixture f;
    tb_model *model = pile_of_boxes(1, 0.5);
    tb_state *state = world_of(model, 50);
    test_job job;
    set_up(&f, 2, 100);
    f.config.maximum_queue_delay_us = 500000;
    prepare_steps(&job, "one", state, 20);
    int64_t shortest = INT64_MAX;
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(submit(&f, &job, NULL), TB_OK);
        wait_done(&job);
        atomic_store(&job.done, false);
        const int64_t waited = job.job.started_ns - job.job.queued_ns;
        if (waited < shortest) shortest = waited;
        ck_assert(!job.job.waited);
    }
    ck_assert_int_lt(shortest, 5000000);
    tear_down(&f);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

START_TEST(the_end_answers_those_that_still_wait)
{
    fixture f;
    tb_model *model = pile_of_boxes(1, 0.5);
    tb_state *state = world_of(model, 0);
    test_job job, blocker;
    set_up(&f, 1, 100);
    block(&f, &blocker);
    prepare_steps(&job, "one", state, 100000000);
    ck_assert_int_eq(submit(&f, &job, NULL), TB_OK);
    ck_assert(!td_scheduler_drain(f.scheduler, 0.01));
    atomic_store(&blocker.gate, true);
    tear_down(&f);
    ck_assert(atomic_load(&job.done));
    ck_assert_int_eq(job.status, TB_UNAVAILABLE);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

TEST_MAIN(merged_results_are_those_of_each_alone, merged_energies_are_those_of_each_alone,
          other_options_are_not_merged, a_world_that_diverges_leaves_its_neighbours_alone,
          a_full_queue_refuses_at_once_and_says_when_to_come_back,
          a_deadline_counts_before_the_queue_before_the_launch_and_between_steps,
          a_deadline_and_a_cancelled_call_end_a_step_that_lasts,
          a_step_of_several_worlds_that_lasts_ends_for_all_of_them,
          a_deadline_that_the_queue_cannot_meet_is_refused_at_once,
          a_cancelled_call_and_a_stopped_session_end_between_steps, a_higher_priority_goes_first,
          a_client_of_one_request_does_not_wait_behind_a_flood,
          steps_go_on_between_the_slices_of_a_long_job, a_lone_stream_never_waits_for_companions,
          the_end_answers_those_that_still_wait)
