/* Watch: the state now, the latest after each batch of steps, and why a session ended. */
#include "server/session_util.h"

static test_call *watch(td_server *s, const char *client, const char *id, double interval)
{
    test_call *call = test_call_begin(s, "tribo.v1.Simulation/Watch", client);
    Tribo__V1__WatchRequest r = TRIBO__V1__WATCH_REQUEST__INIT;
    r.session_id = (char *)(uintptr_t)id;
    r.minimum_interval = interval;
    test_call_request(call, &r.base);
    return call;
}

static int64_t steps_of(test_call *call, int i, uint64_t *skipped)
{
    Tribo__V1__WatchResponse *answer = test_call_answer(call, i);
    ck_assert_int_eq(answer->event, TRIBO__V1__SESSION_EVENT__SESSION_EVENT_UNSPECIFIED);
    ck_assert_ptr_nonnull(answer->state);
    ck_assert_ptr_nonnull(answer->state->q);
    const int64_t steps = answer->state->steps;
    if (skipped != NULL) *skipped = answer->skipped;
    tribo__v1__watch_response__free_unpacked(answer, NULL);
    return steps;
}

static int event_of(test_call *call, int i)
{
    Tribo__V1__WatchResponse *answer = test_call_answer(call, i);
    const int event = (int)answer->event;
    tribo__v1__watch_response__free_unpacked(answer, NULL);
    return event;
}

START_TEST(a_watcher_sees_the_state_now_and_after_every_batch)
{
    test_server t;
    char id[33];
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 2, 1, id);
    test_call *call = watch(&t.server, "one", id, 1e-9);
    test_call_wait(call, &call->sent, 1);
    ck_assert_int_eq(steps_of(call, 0, NULL), 0);
    for (int i = 1; i <= 5; i++) {
        ck_assert_int_eq(step_session(&t.server, "one", id, 3), TB_OK);
        test_call_wait(call, &call->sent, i + 1);
        ck_assert_int_eq(steps_of(call, i, NULL), 3 * i);
    }
    td_call_cancel(&call->call);
    test_call_wait(call, NULL, 0);
    ck_assert_int_eq(call->status, TB_CANCELLED);
    test_call_end(call);
    ck_assert_int_eq(step_session(&t.server, "one", id, 3), TB_OK);
    test_server_stop(&t);
}
END_TEST

START_TEST(between_its_intervals_a_watcher_gets_only_the_latest_and_a_count)
{
    test_server t;
    char id[33];
    uint64_t skipped = 0;
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 1, 1, id);
    test_call *call = watch(&t.server, "one", id, 0.4);
    test_call_wait(call, &call->sent, 1);
    for (int i = 0; i < 10; i++) ck_assert_int_eq(step_session(&t.server, "one", id, 2), TB_OK);
    /* the last state of the burst comes by itself, when the interval is over */
    test_call_wait(call, &call->sent, 2);
    ck_assert_int_eq(steps_of(call, 1, &skipped), 20);
    ck_assert_uint_eq(skipped, 9);
    ck_assert_int_eq(td_metrics_get(t.server.metrics, TD_METRIC_STREAM_SKIPPED), 9);
    test_sleep(0.5);
    ck_assert_int_eq(call->sent, 2);
    td_call_cancel(&call->call);
    test_call_end(call);
    test_server_stop(&t);
}
END_TEST

START_TEST(a_stalled_watcher_costs_one_message_and_misses_no_event)
{
    test_server t;
    char id[33];
    uint64_t skipped = 0;
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 1, 1, id);
    test_call *call = test_call_begin(&t.server, "tribo.v1.Simulation/Watch", "one");
    call->stalled = true;
    Tribo__V1__WatchRequest r = TRIBO__V1__WATCH_REQUEST__INIT;
    r.session_id = id;
    r.minimum_interval = 1e-9;
    test_call_request(call, &r.base);
    test_call_wait(call, &call->sent, 1);
    for (int i = 0; i < 50; i++) ck_assert_int_eq(step_session(&t.server, "one", id, 1), TB_OK);
    test_sleep(0.3);
    ck_assert_int_eq(call->sent, 1);
    test_call_flow(call);
    test_call_wait(call, &call->sent, 2);
    ck_assert_int_eq(steps_of(call, 1, &skipped), 50);
    ck_assert_uint_eq(skipped, 49);

    pthread_mutex_lock(&call->mutex);
    call->stalled = true;
    pthread_mutex_unlock(&call->mutex);
    ck_assert_int_eq(step_session(&t.server, "one", id, 1), TB_OK);
    ck_assert_int_eq(step_session(&t.server, "one", id, 1), TB_OK);
    ck_assert_int_eq(delete_session(&t.server, "one", TD_SCOPE_RUN, id), TB_OK);
    test_call_wait(call, NULL, 0);
    ck_assert_int_eq(call->status, TB_OK);
    ck_assert_int_eq(event_of(call, call->sent - 1),
                     TRIBO__V1__SESSION_EVENT__SESSION_EVENT_DELETED);
    test_call_end(call);
    test_server_stop(&t);
}
END_TEST

START_TEST(watchers_are_told_why_a_session_ended)
{
    test_server t;
    test_server_init(&t, false);
    snprintf(t.clock, sizeof t.clock, "/tmp/tribod-clock-%d", (int)getpid());
    shift_clock(&t, 0);
    test_server_start(&t);
    for (int i = 0; i < 4; i++) {
        char id[33];
        tb_error error = {0};
        open_pile(&t.server, "one", 1, 1, id);
        test_call *call = watch(&t.server, "one", id, 0);
        test_call_wait(call, &call->sent, 1);
        int expected = 0;
        switch (i) {
        case 0:
            ck_assert_int_eq(delete_session(&t.server, "one", TD_SCOPE_RUN, id), TB_OK);
            expected = TRIBO__V1__SESSION_EVENT__SESSION_EVENT_DELETED;
            break;
        case 1:
            ck_assert_int_eq(delete_session(&t.server, "root", TD_SCOPE_ADMIN, id), TB_OK);
            expected = TRIBO__V1__SESSION_EVENT__SESSION_EVENT_EVICTED;
            break;
        case 2:
            shift_clock(&t, 1e6);
            expected = TRIBO__V1__SESSION_EVENT__SESSION_EVENT_EXPIRED;
            break;
        default:
            TEST_OK(td_sessions_checkpoint_all(t.server.sessions, 5, &error), &error);
            expected = TRIBO__V1__SESSION_EVENT__SESSION_EVENT_DRAINED;
            break;
        }
        test_call_wait(call, NULL, 0);
        ck_assert_int_eq(call->status, TB_OK);
        ck_assert_int_eq(event_of(call, call->sent - 1), expected);
        test_call_end(call);
    }
    test_server_stop(&t);
    unlink(t.clock);
}
END_TEST

START_TEST(a_pause_is_told_and_the_watcher_stays)
{
    test_server t;
    char scene[65], id[33];
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    add_pile(&t.server, 1, scene);
    Tribo__V1__CreateSessionRequest r = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    r.scene_id = scene;
    r.on_disconnect = TRIBO__V1__ON_DISCONNECT__ON_DISCONNECT_PAUSE;
    TEST_OK(open_session(&t.server, "one", &r, id, &error), &error);
    test_call *call = watch(&t.server, "one", id, 1e-9);
    test_call_wait(call, &call->sent, 1);
    test_call *stream = test_call_begin(&t.server, "tribo.v1.Simulation/StepStream", "one");
    Tribo__V1__StepStreamRequest s = TRIBO__V1__STEP_STREAM_REQUEST__INIT;
    Tribo__V1__StepRequest step = TRIBO__V1__STEP_REQUEST__INIT;
    step.session_id = id;
    s.step = &step;
    test_call_request(stream, &s.base);
    test_call_wait(stream, &stream->sent, 1);
    test_call_wait(call, &call->sent, 2);
    td_call_cancel(&stream->call);
    test_call_end(stream);
    test_call_wait(call, &call->sent, 3);
    ck_assert_int_eq(event_of(call, 2), TRIBO__V1__SESSION_EVENT__SESSION_EVENT_PAUSED);
    ck_assert_int_eq(step_session(&t.server, "one", id, 4), TB_OK);
    test_call_wait(call, &call->sent, 4);
    ck_assert_int_eq(steps_of(call, 3, NULL), 5);
    td_call_cancel(&call->call);
    test_call_end(call);
    test_server_stop(&t);
}
END_TEST

START_TEST(a_watch_that_cannot_be_says_why)
{
    test_server t;
    char id[33];
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 1, 1, id);
    test_call *call = watch(&t.server, "two", id, 0);
    test_call_wait(call, NULL, 0);
    ck_assert_int_eq(call->status, TB_NOT_FOUND);
    test_call_end(call);
    call = watch(&t.server, "one", id, -1);
    test_call_wait(call, NULL, 0);
    ck_assert_int_eq(call->status, TB_INVALID_ARGUMENT);
    ck_assert_str_eq(call->error.field, "minimum_interval");
    test_call_end(call);
    test_server_stop(&t);
}
END_TEST

TEST_MAIN(a_watcher_sees_the_state_now_and_after_every_batch,
          between_its_intervals_a_watcher_gets_only_the_latest_and_a_count,
          a_stalled_watcher_costs_one_message_and_misses_no_event,
          watchers_are_told_why_a_session_ended, a_pause_is_told_and_the_watcher_stays,
          a_watch_that_cannot_be_says_why)
