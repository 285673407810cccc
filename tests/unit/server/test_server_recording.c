/* Recordings: frames within a bound, pages of a live session and of one that has ended, and masks of
 * worlds beside them. */
#include "server/session_util.h"

#include "tribo/v1/runs.pb-c.h"
#include "wire/recording.h"

static Tribo__V1__GetRecordingResponse *get(td_server *s, const char *client, const char *id,
                                            int first, int count, tb_status *status,
                                            tb_error *error)
{
    Tribo__V1__GetRecordingRequest r = TRIBO__V1__GET_RECORDING_REQUEST__INIT;
    r.run_id = (char *)(uintptr_t)id;
    r.first = first;
    r.count = count;
    return test_unary(s, "tribo.v1.Runs/GetRecording", client, &r, status, error);
}

/* A session of `worlds` piles of two boxes whose last world is recorded. */
static void open_recorded(td_server *s, int worlds, double interval, uint64_t bytes, char id[33])
{
    char scene[65];
    tb_error error = {0};
    add_pile(s, 2, scene);
    Tribo__V1__CreateSessionRequest request = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    Tribo__V1__RecordOptions record = TRIBO__V1__RECORD_OPTIONS__INIT;
    record.interval = interval;
    record.maximum_bytes = bytes;
    record.world = worlds - 1;
    request.scene_id = scene;
    request.worlds = worlds;
    request.record = &record;
    TEST_OK(open_session(s, "one", &request, id, &error), &error);
}

static double number(const Tribo__V1__Array *array, int i)
{
    double x;
    ck_assert_int_eq(array->dtype, TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64);
    memcpy(&x, array->data.data + (size_t)i * sizeof x, sizeof x);
    return x;
}

static void check_pages(td_server *s, const char *id, double dt)
{
    Tribo__V1__GetRecordingResponse *a = get(s, "one", id, 0, 0, NULL, NULL);
    ck_assert_int_eq(a->frames, 11); /* the first state and ten steps */
    ck_assert_int_eq((int)a->times->shape[0], 11);
    ck_assert_int_eq(a->world, 1);
    for (int i = 0; i < 11; i++) TEST_NEAR(number(a->times, i), 2 * i * dt, 1e-12);
    ck_assert_uint_eq(a->poses->n_shape, 3);
    ck_assert_int_eq((int)a->poses->shape[1], 3);
    /* contacts of all frames lie one after the other; the pile's weight is on the floor at the end */
    int64_t sum = 0;
    int32_t counts[11];
    ck_assert_uint_eq(a->contact_counts->data.len, sizeof counts);
    memcpy(counts, a->contact_counts->data.data, sizeof counts);
    for (int i = 0; i < 11; i++) sum += counts[i];
    ck_assert_int_gt(counts[10], 0);
    ck_assert_int_eq(a->forces->shape[0], sum);
    ck_assert_int_eq((int)a->shapes->shape[1], 2);
    tribo__v1__get_recording_response__free_unpacked(a, NULL);

    a = get(s, "one", id, 9, 50, NULL, NULL);
    ck_assert_int_eq((int)a->times->shape[0], 2);
    ck_assert_int_eq(a->first, 9);
    TEST_NEAR(number(a->times, 0), 18 * dt, 1e-12);
    tribo__v1__get_recording_response__free_unpacked(a, NULL);

    tb_status status;
    tb_error error = {0};
    ck_assert_ptr_null(get(s, "one", id, 12, 1, &status, &error));
    ck_assert_int_eq(status, TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "first");
    ck_assert_ptr_null(get(s, "two", id, 0, 1, &status, &error));
    ck_assert_int_eq(status, TB_NOT_FOUND);
}

START_TEST(a_recording_is_read_by_pages_while_the_session_lives_and_after)
{
    test_server t;
    char id[33];
    test_server_init(&t, true);
    test_server_start(&t);
    open_recorded(&t.server, 2, 1e-6, 0, id);
    const double dt = 0.002;
    for (int i = 0; i < 10; i++) ck_assert_int_eq(step_session(&t.server, "one", id, 2), TB_OK);
    check_pages(&t.server, id, dt);

    /* across a restart it goes on */
    tb_error error = {0};
    TEST_OK(td_sessions_checkpoint_all(t.server.sessions, 5, &error), &error);
    test_server_stop(&t);
    test_server_start(&t);
    check_pages(&t.server, id, dt);
    ck_assert_int_eq(step_session(&t.server, "one", id, 1), TB_OK);
    Tribo__V1__GetRecordingResponse *a = get(&t.server, "one", id, 0, 0, NULL, NULL);
    ck_assert_int_eq(a->frames, 12);
    tribo__v1__get_recording_response__free_unpacked(a, NULL);

    ck_assert_int_eq(delete_session(&t.server, "one", TD_SCOPE_RUN, id), TB_OK);
    a = get(&t.server, "one", id, 11, 1, NULL, NULL);
    ck_assert_int_eq(a->frames, 12);
    ck_assert_int_eq((int)a->times->shape[0], 1);
    tribo__v1__get_recording_response__free_unpacked(a, NULL);
    test_server_stop(&t);
}
END_TEST

START_TEST(a_run_without_a_recording_says_so)
{
    test_server t;
    char id[33];
    tb_status status;
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 1, 1, id);
    ck_assert_ptr_null(get(&t.server, "one", id, 0, 1, &status, &error));
    ck_assert_int_eq(status, TB_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, "no recording"));
    test_server_stop(&t);
}
END_TEST

START_TEST(a_full_recording_keeps_the_whole_run_at_half_the_rate)
{
    Tribo__V1__RecordOptions options = TRIBO__V1__RECORD_OPTIONS__INIT;
    td_recording *r = NULL, *again = NULL;
    tb_error error = {0};
    tb_model *model = pile_of_boxes(2, 0.5);
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    const tb_step_options step = tb_step_defaults();
    TEST_OK(tb_state_create(model, &state, &error), &error);
    TEST_OK(tb_stepper_create(&step, &stepper, &error), &error);
    options.interval = tb_model_dt(model);
    options.maximum_bytes = TD_RECORDING_LEAST;
    TEST_OK(td_recording_create(&options, "record", 1, 3, &r, &error), &error);
    for (int i = 0; i < 2000; i++) {
        if (td_recording_due(r, tb_state_time(state)))
            td_recording_add(r, state, tb_model_dt(model));
        ck_assert_uint_le(r->size, r->maximum);
        ck_assert_uint_le(r->capacity, r->maximum);
        TEST_OK(tb_step(stepper, state, 1, NULL, &error), &error);
    }
    const double times = r->interval / tb_model_dt(model);
    ck_assert(times >= 4 && fabs(log2(times) - round(log2(times))) < 1e-9);
    ck_assert_int_gt(r->frames, 20);

    Tribo__V1__GetRecordingResponse page = TRIBO__V1__GET_RECORDING_RESPONSE__INIT;
    td_wire wire = {0};
    td_recording_fill(&wire, r, 0, r->frames, UINT64_MAX, &page);
    ck_assert(!wire.failed);
    TEST_NEAR(number(page.times, 0), 0, 0);
    for (int i = 1; i < r->frames; i++)
        TEST_NEAR(number(page.times, i) - number(page.times, i - 1), r->interval, 1e-9);
    ck_assert(number(page.times, r->frames - 1) > 1999 * tb_model_dt(model) - r->interval);
    td_wire_destroy(&wire);

    /* packed, and every damage of a head or a size is seen */
    unsigned char *bytes = NULL;
    size_t size = 0;
    TEST_OK(td_recording_pack(r, &bytes, &size, &error), &error);
    TEST_OK(td_recording_unpack(bytes, size, &again, &error), &error);
    ck_assert_int_eq(again->frames, r->frames);
    ck_assert_mem_eq(again->bytes, r->bytes, r->size);
    td_recording_destroy(again);
    for (size_t cut = 1; cut < 200; cut++)
        ck_assert_int_eq(td_recording_unpack(bytes, size - cut, &again, &error), TB_DATA_LOSS);
    bytes[0] ^= 1;
    ck_assert_int_eq(td_recording_unpack(bytes, size, &again, &error), TB_DATA_LOSS);
    free(bytes);
    td_recording_destroy(r);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

START_TEST(options_that_are_none_are_refused)
{
    test_server t;
    char scene[65], id[33];
    test_server_init(&t, false);
    test_server_start(&t);
    add_pile(&t.server, 1, scene);
    for (int i = 0; i < 3; i++) {
        static const char *const FIELDS[] = {"record.interval", "record.world",
                                             "record.maximum_bytes"};
        Tribo__V1__CreateSessionRequest request = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
        Tribo__V1__RecordOptions record = TRIBO__V1__RECORD_OPTIONS__INIT;
        tb_error error = {0};
        record.interval = i == 0 ? -1 : 0;
        record.world = i == 1 ? 1 : 0;
        record.maximum_bytes = i == 2 ? 1000 : 0;
        request.scene_id = scene;
        request.record = &record;
        ck_assert_int_eq(open_session(&t.server, "one", &request, id, &error), TB_INVALID_ARGUMENT);
        ck_assert_str_eq(error.field, FIELDS[i]);
    }
    test_server_stop(&t);
}
END_TEST

TEST_MAIN(a_recording_is_read_by_pages_while_the_session_lives_and_after,
          a_run_without_a_recording_says_so, a_full_recording_keeps_the_whole_run_at_half_the_rate,
          options_that_are_none_are_refused)
