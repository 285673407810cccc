/* Step and StepStream through their handlers. */
#include "schedule/scheduler.h"
#include "server/session_util.h"

/* ---- Step ---- */

START_TEST(a_step_gives_what_the_library_gives)
{
    test_server t;
    char id[33];
    tb_error error = {0};
    tb_certificate certificates[2];
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 3, 2, id);
    Tribo__V1__StepRequest r = TRIBO__V1__STEP_REQUEST__INIT;
    Tribo__V1__StepReturn want = TRIBO__V1__STEP_RETURN__INIT;
    r.session_id = id;
    r.steps = 60;
    r.want = &want;
    want.state = want.contacts = want.bodies = true;
    Tribo__V1__StepResponse *answer =
        test_unary(&t.server, "tribo.v1.Simulation/Step", "one", &r, NULL, NULL);

    tb_model *model = pile_of_boxes(3, 0.5);
    tb_state *states[2] = {world_of(model, 0), world_of(model, 0)};
    tb_stepper *stepper = NULL;
    TEST_OK(tb_stepper_create(NULL, &stepper, &error), &error);
    for (int w = 0; w < 2; w++)
        TEST_OK(tb_step(stepper, states[w], 60, &certificates[w], &error), &error);
    const tb_model_counts n = tb_model_count(model);
    ck_assert_uint_eq(answer->n_certificates, 2);
    ck_assert_int_eq(answer->state->steps, 60);
    ck_assert_uint_eq(answer->state->q->data.len, 2 * (size_t)n.coordinates * 8);
    ck_assert_mem_eq(answer->state->q->data.data, tb_state_q(states[0]), (size_t)n.coordinates * 8);
    ck_assert_mem_eq(answer->state->u->data.data + (size_t)n.dofs * 8, tb_state_u(states[1]),
                     (size_t)n.dofs * 8);
    for (int w = 0; w < 2; w++) {
        const Tribo__V1__Certificate *c = answer->certificates[w];
        ck_assert_int_eq(c->step, 60);
        ck_assert_int_eq(c->iterations, certificates[w].iterations);
        ck_assert_mem_eq(&c->residual, &certificates[w].residual, sizeof c->residual);
        ck_assert_str_eq(c->solver, certificates[w].solver);
        ck_assert_int_eq(answer->contacts[w]->count, tb_state_number_of_contacts(states[w]));
    }
    ck_assert_int_ge(answer->compute_time_us, 0);
    tribo__v1__step_response__free_unpacked(answer, NULL);

    /* single precision for the wire only */
    want.contacts = want.bodies = false;
    want.dtype = TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    r.steps = 1;
    answer = test_unary(&t.server, "tribo.v1.Simulation/Step", "one", &r, NULL, NULL);
    TEST_OK(tb_step(stepper, states[1], 1, NULL, &error), &error);
    ck_assert_uint_eq(answer->state->q->data.len, 2 * (size_t)n.coordinates * 4);
    float x;
    memcpy(&x, answer->state->q->data.data + (size_t)n.coordinates * 4 + 8, sizeof x);
    ck_assert(x == (float)tb_state_q(states[1])[2]);
    tribo__v1__step_response__free_unpacked(answer, NULL);
    tb_stepper_destroy(stepper);
    for (int w = 0; w < 2; w++) tb_state_destroy(states[w]);
    tb_model_destroy(model);
    test_server_stop(&t);
}
END_TEST

START_TEST(forces_and_controls_are_checked_before_anything_moves)
{
    test_server t;
    char id[33], before[65], after[65];
    tb_status status;
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 1, 2, id);
    digest_of(&t.server, "one", id, before);
    double force[12] = {0};
    int64_t shape[2] = {2, 6};
    Tribo__V1__Array array = TRIBO__V1__ARRAY__INIT;
    array.shape = shape;
    array.n_shape = 2;
    array.data.data = (uint8_t *)force;
    array.data.len = sizeof force;
    Tribo__V1__StepRequest r = TRIBO__V1__STEP_REQUEST__INIT;
    r.session_id = id;
    for (int i = 0; i < 8; i++) {
        const char *field = "forces";
        Tribo__V1__StepRequest bad = r;
        Tribo__V1__Array a = array;
        bad.forces = &a;
        shape[0] = 2, shape[1] = 6, force[7] = 0;
        switch (i) {
        case 0: shape[1] = 5; break;
        case 1: shape[0] = 3; break;
        case 2: a.data.len = 88; break;
        case 3: force[7] = (double)INFINITY; break;
        case 4: a.dtype = TRIBO__V1__DATA_TYPE__DATA_TYPE_INT32; break;
        case 5: bad.forces = NULL, bad.controls = &a, field = "controls"; break;
        case 6: bad.forces = NULL, bad.steps = -1, field = "steps"; break;
        default: bad.forces = NULL, bad.priority = 9, field = "priority"; break;
        }
        ck_assert_ptr_null(
            test_unary(&t.server, "tribo.v1.Simulation/Step", "one", &bad, &status, &error));
        ck_assert_msg(status == TB_INVALID_ARGUMENT, "case %d", i);
        ck_assert_str_eq(error.field, field);
    }
    digest_of(&t.server, "one", id, after);
    ck_assert_str_eq(before, after);

    /* upwards with twice its weight in the second world alone */
    memset(force, 0, sizeof force);
    force[8] = 2 * 8 * 9.81;
    shape[0] = 2, shape[1] = 6;
    Tribo__V1__StepReturn want = TRIBO__V1__STEP_RETURN__INIT;
    want.state = true;
    r.want = &want;
    r.forces = &array;
    r.steps = 100;
    Tribo__V1__StepResponse *answer =
        test_unary(&t.server, "tribo.v1.Simulation/Step", "one", &r, NULL, NULL);
    double q[2][7];
    memcpy(q, answer->state->q->data.data, sizeof q);
    TEST_NEAR(q[0][2], 0.1, 1e-4);
    TEST_NEAR(q[1][2], 0.1 + 0.5 * 9.81 * 0.2 * 0.2, 0.01);
    tribo__v1__step_response__free_unpacked(answer, NULL);
    test_server_stop(&t);
}
END_TEST

START_TEST(an_answer_that_no_message_holds_is_refused_with_its_size)
{
    test_server t;
    char id[33], before[65], after[65];
    tb_status status;
    tb_error error = {0};
    test_server_init(&t, false);
    t.config.message_bytes = 4096;
    test_server_start(&t);
    open_pile(&t.server, "one", 2, 40, id);
    digest_of(&t.server, "one", id, before);
    Tribo__V1__StepRequest r = TRIBO__V1__STEP_REQUEST__INIT;
    Tribo__V1__StepReturn want = TRIBO__V1__STEP_RETURN__INIT;
    r.session_id = id;
    r.want = &want;
    want.state = true;
    ck_assert_ptr_null(
        test_unary(&t.server, "tribo.v1.Simulation/Step", "one", &r, &status, &error));
    ck_assert_int_eq(status, TB_RESOURCE_EXHAUSTED);
    ck_assert_ptr_nonnull(strstr(error.message, "bytes"));
    digest_of(&t.server, "one", id, after);
    ck_assert_str_eq(before, after);
    test_server_stop(&t);
}
END_TEST

/* ---- StepStream ---- */

static void stream_step(test_call *call, const char *id, int steps, uint64_t tag,
                        Tribo__V1__StepReturn *want)
{
    Tribo__V1__StepStreamRequest r = TRIBO__V1__STEP_STREAM_REQUEST__INIT;
    Tribo__V1__StepRequest step = TRIBO__V1__STEP_REQUEST__INIT;
    step.session_id = (char *)(uintptr_t)id;
    step.steps = steps;
    step.want = want;
    r.step = &step;
    r.tag = tag;
    test_call_request(call, &r.base);
}

START_TEST(a_stream_answers_every_request_in_order)
{
    enum { REQUESTS = 200 };
    test_server t;
    char id[33], streamed[65], whole[65], other[33];
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 3, 1, id);
    test_call *call = test_call_begin(&t.server, "tribo.v1.Simulation/StepStream", "one");
    for (int i = 0; i < REQUESTS; i++) {
        stream_step(call, i == 0 ? id : "", 1 + i % 3, 1000 + (uint64_t)i, NULL);
        if (i + 1 < REQUESTS) test_call_wait(call, &call->reads, i + 1);
    }
    call->call.method->half_closed(&call->call);
    test_call_wait(call, NULL, 0);
    ck_assert_int_eq(call->status, TB_OK);
    ck_assert_int_eq(call->sent, REQUESTS);
    int64_t steps = 0;
    for (int i = 0; i < REQUESTS; i++) {
        Tribo__V1__StepStreamResponse *answer = test_call_answer(call, i);
        steps += 1 + i % 3;
        ck_assert_uint_eq(answer->tag, 1000 + (uint64_t)i);
        ck_assert_int_eq(answer->step->state->steps, steps);
        ck_assert(!answer->more);
        tribo__v1__step_stream_response__free_unpacked(answer, NULL);
    }
    test_call_end(call);
    digest_of(&t.server, "one", id, streamed);
    open_pile(&t.server, "one", 3, 1, other);
    ck_assert_int_eq(step_session(&t.server, "one", other, (int)steps), TB_OK);
    digest_of(&t.server, "one", other, whole);
    ck_assert_str_eq(streamed, whole);
    test_server_stop(&t);
}
END_TEST

START_TEST(short_steps_of_a_stream_are_taken_by_the_thread_that_brings_them)
{
    enum { MOST = 500, NEXT = 20 };
    test_server t;
    char id[33];
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 1, 1, id);
    test_call *call = test_call_begin(&t.server, "tribo.v1.Simulation/StepStream", "one");
    int steps = 0;
    /* once their time is known */
    while (steps < MOST && td_metrics_get(t.server.metrics, TD_METRIC_LEASES) == 0) {
        stream_step(call, id, 1, (uint64_t)steps, NULL);
        test_call_wait(call, &call->sent, ++steps);
    }
    ck_assert_int_lt(steps, MOST);

    /* with something else to do it leaves them to the owner */
    ck_assert(td_scheduler_drain(t.server.devices[0].scheduler, 5));
    const int64_t leases = td_metrics_get(t.server.metrics, TD_METRIC_LEASES);
    call->call.at_leisure = false;
    for (int i = 0; i < NEXT; i++) {
        stream_step(call, id, 1, (uint64_t)steps, NULL);
        test_call_wait(call, &call->sent, ++steps);
    }
    ck_assert_int_eq(td_metrics_get(t.server.metrics, TD_METRIC_LEASES), leases);
    test_call_end(call);
    test_server_stop(&t);
}
END_TEST

START_TEST(a_reader_that_stalls_is_not_read_from)
{
    test_server t;
    char id[33];
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 1, 1, id);
    test_call *call = test_call_begin(&t.server, "tribo.v1.Simulation/StepStream", "one");
    call->stalled = true;
    int given = 0;
    /* as long as the handler asks, it gets */
    for (; given < 100; given++) {
        if (given > 0) {
            for (int i = 0; i < 200 && test_call_number(call, &call->reads) < given; i++)
                test_sleep(1e-3);
            if (test_call_number(call, &call->reads) < given) break;
        }
        stream_step(call, given == 0 ? id : "", 1, (uint64_t)given, NULL);
    }
    ck_assert_int_ge(given, 4);
    ck_assert_int_le(given, 32);
    for (int i = 0; i < 1000 && test_call_number(call, &call->sent) < given; i++) test_sleep(1e-3);
    const int reads = test_call_number(call, &call->reads);
    test_call_flow(call);
    test_call_wait(call, &call->reads, reads + 1);
    call->call.method->half_closed(&call->call);
    test_call_wait(call, NULL, 0);
    ck_assert_int_eq(call->sent, given);
    test_call_end(call);
    test_server_stop(&t);
}
END_TEST

START_TEST(a_bad_message_ends_the_stream_with_its_status)
{
    test_server t;
    char id[33], other[33];
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 1, 1, id);
    open_pile(&t.server, "one", 1, 1, other);
    for (int i = 0; i < 3; i++) {
        test_call *call = test_call_begin(&t.server, "tribo.v1.Simulation/StepStream", "one");
        if (i > 0) {
            stream_step(call, id, 1, 1, NULL);
            test_call_wait(call, &call->sent, 1);
        }
        stream_step(call, i == 2 ? other : i == 1 ? id : "", i == 1 ? -4 : 1, 2, NULL);
        test_call_wait(call, NULL, 0);
        ck_assert_int_eq(call->status, TB_INVALID_ARGUMENT);
        ck_assert_int_eq(call->sent, i > 0);
        test_call_end(call);
    }
    test_server_stop(&t);
}
END_TEST

START_TEST(a_large_answer_comes_in_pieces_of_worlds)
{
    enum { WORLDS = 50 };
    test_server t;
    char id[33];
    test_server_init(&t, false);
    t.config.chunk_bytes = 4096;
    test_server_start(&t);
    open_pile(&t.server, "one", 1, WORLDS, id);
    test_call *call = test_call_begin(&t.server, "tribo.v1.Simulation/StepStream", "one");
    Tribo__V1__StepReturn want = TRIBO__V1__STEP_RETURN__INIT;
    want.state = want.contacts = true;
    stream_step(call, id, 3, 5, &want);
    call->call.method->half_closed(&call->call);
    test_call_wait(call, NULL, 0);
    ck_assert_int_eq(call->status, TB_OK);
    ck_assert_int_gt(call->sent, 5);
    int64_t worlds = 0;
    for (int i = 0; i < call->sent; i++) {
        Tribo__V1__StepStreamResponse *piece = test_call_answer(call, i);
        ck_assert_uint_le(call->messages[i].size, 4096);
        ck_assert_int_eq(piece->more, i + 1 < call->sent);
        ck_assert_uint_eq(piece->tag, 5);
        ck_assert_int_eq((int64_t)piece->step->n_certificates, piece->step->state->q->shape[0]);
        ck_assert_uint_eq(piece->step->n_contacts, piece->step->n_certificates);
        worlds += piece->step->state->q->shape[0];
        tribo__v1__step_stream_response__free_unpacked(piece, NULL);
    }
    ck_assert_int_eq(worlds, WORLDS);
    test_call_end(call);
    test_server_stop(&t);
}
END_TEST

static int64_t count_of(td_server *s, const char *id)
{
    Tribo__V1__GetStateRequest r = TRIBO__V1__GET_STATE_REQUEST__INIT;
    r.session_id = (char *)(uintptr_t)id;
    Tribo__V1__GetStateResponse *answer =
        test_unary(s, "tribo.v1.Simulation/GetState", "one", &r, NULL, NULL);
    const int64_t steps = answer->state->steps;
    tribo__v1__get_state_response__free_unpacked(answer, NULL);
    return steps;
}

START_TEST(a_broken_stream_stops_between_steps_and_does_what_the_session_wants)
{
    for (int what = 1; what <= 3; what++) {
        test_server t;
        char scene[65], id[33];
        tb_error error = {0};
        test_server_init(&t, false);
        test_server_start(&t);
        add_pile(&t.server, 3, scene);
        Tribo__V1__CreateSessionRequest r = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
        r.scene_id = scene;
        r.on_disconnect = (Tribo__V1__OnDisconnect)what;
        TEST_OK(open_session(&t.server, "one", &r, id, &error), &error);
        test_call *call = test_call_begin(&t.server, "tribo.v1.Simulation/StepStream", "one");
        stream_step(call, id, 1000000, 1, NULL);
        test_sleep(0.05);
        td_call_cancel(&call->call);
        test_call_wait(call, NULL, 0);
        ck_assert_int_eq(call->status, TB_CANCELLED);
        test_call_end(call);
        if (what == TRIBO__V1__ON_DISCONNECT__ON_DISCONNECT_DELETE) {
            ck_assert_int_eq(step_session(&t.server, "one", id, 1), TB_NOT_FOUND);
            ck_assert_int_eq(td_sessions_count(t.server.sessions), 0);
        } else {
            if (what == TRIBO__V1__ON_DISCONNECT__ON_DISCONNECT_PAUSE) {
                int status = 0;
                for (int i = 0; i < 200 && status != 2; i++) {
                    Tribo__V1__ListSessionsRequest l = TRIBO__V1__LIST_SESSIONS_REQUEST__INIT;
                    Tribo__V1__ListSessionsResponse *list = test_unary(
                        &t.server, "tribo.v1.Simulation/ListSessions", "one", &l, NULL, NULL);
                    status = (int)list->sessions[0]->status;
                    ck_assert_int_gt(list->sessions[0]->steps, 0);
                    tribo__v1__list_sessions_response__free_unpacked(list, NULL);
                    test_sleep(0.01);
                }
                ck_assert_int_eq(status, TRIBO__V1__SESSION_STATUS__SESSION_STATUS_PAUSED);
            }
            const int64_t steps = count_of(&t.server, id);
            ck_assert_int_gt(steps, 0);
            ck_assert_int_lt(steps, 1000000);
            ck_assert_int_eq(step_session(&t.server, "one", id, 5), TB_OK);
            ck_assert_int_eq(count_of(&t.server, id), steps + 5);
        }
        test_server_stop(&t);
    }
}
END_TEST

START_TEST(deleting_a_session_stops_the_step_at_work)
{
    test_server t;
    char id[33];
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 3, 1, id);
    test_call *call = test_call_begin(&t.server, "tribo.v1.Simulation/Step", "one");
    test_call *behind = test_call_begin(&t.server, "tribo.v1.Simulation/Step", "one");
    Tribo__V1__StepRequest r = TRIBO__V1__STEP_REQUEST__INIT;
    r.session_id = id;
    r.steps = 1000000;
    test_call_request(call, &r.base);
    test_call_request(behind, &r.base);
    test_sleep(0.03);
    ck_assert_int_eq(delete_session(&t.server, "one", TD_SCOPE_RUN, id), TB_OK);
    test_call_wait(call, NULL, 0);
    test_call_wait(behind, NULL, 0);
    ck_assert_int_eq(call->status, TB_ABORTED);
    ck_assert_int_eq(behind->status, TB_NOT_FOUND);
    test_call_end(call);
    test_call_end(behind);
    test_server_stop(&t);
}
END_TEST

START_TEST(requests_of_one_session_wait_for_each_other_up_to_a_bound)
{
    enum { REQUESTS = 80 };
    test_server t;
    char id[33];
    test_call *calls[REQUESTS], *blocker;
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 2, 1, id);
    Tribo__V1__StepRequest r = TRIBO__V1__STEP_REQUEST__INIT;
    r.session_id = id;
    r.steps = 1000000;
    blocker = test_call_begin(&t.server, "tribo.v1.Simulation/Step", "one");
    test_call_request(blocker, &r.base);
    r.steps = 1;
    int refused = 0, done = 0;
    for (int i = 0; i < REQUESTS; i++) {
        calls[i] = test_call_begin(&t.server, "tribo.v1.Simulation/Step", "one");
        test_call_request(calls[i], &r.base);
    }
    td_call_cancel(&blocker->call);
    test_call_wait(blocker, NULL, 0);
    test_call_end(blocker);
    for (int i = 0; i < REQUESTS; i++) {
        test_call_wait(calls[i], NULL, 0);
        refused += calls[i]->status == TB_RESOURCE_EXHAUSTED;
        done += calls[i]->status == TB_OK;
        test_call_end(calls[i]);
    }
    ck_assert_int_eq(refused + done, REQUESTS);
    ck_assert_int_eq(done, 64);
    test_server_stop(&t);
}
END_TEST

START_TEST(at_drain_a_stream_answers_what_it_has_and_ends)
{
    test_server t;
    char id[33];
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 2, 1, id);
    test_call *call = test_call_begin(&t.server, "tribo.v1.Simulation/StepStream", "one");
    test_call *idle = test_call_begin(&t.server, "tribo.v1.Simulation/StepStream", "one");
    stream_step(idle, id, 1, 1, NULL);
    test_call_wait(idle, &idle->sent, 1);
    stream_step(call, id, 2000, 1, NULL);
    atomic_store(&t.server.draining, true);
    TEST_OK(td_sessions_checkpoint_all(t.server.sessions, 10, &error), &error);
    test_call_wait(call, NULL, 0);
    test_call_wait(idle, NULL, 0);
    ck_assert_int_eq(call->sent, 1);
    ck_assert_int_eq(call->status, TB_UNAVAILABLE);
    ck_assert_int_eq(idle->status, TB_UNAVAILABLE);
    ck_assert_double_gt(call->retry_after, 0);
    test_call_end(call);
    test_call_end(idle);
    test_server_stop(&t);
}
END_TEST

TEST_MAIN(a_step_gives_what_the_library_gives,
          forces_and_controls_are_checked_before_anything_moves,
          an_answer_that_no_message_holds_is_refused_with_its_size,
          a_stream_answers_every_request_in_order,
          short_steps_of_a_stream_are_taken_by_the_thread_that_brings_them,
          a_reader_that_stalls_is_not_read_from, a_bad_message_ends_the_stream_with_its_status,
          a_large_answer_comes_in_pieces_of_worlds,
          a_broken_stream_stops_between_steps_and_does_what_the_session_wants,
          deleting_a_session_stops_the_step_at_work,
          requests_of_one_session_wait_for_each_other_up_to_a_bound,
          at_drain_a_stream_answers_what_it_has_and_ends)
