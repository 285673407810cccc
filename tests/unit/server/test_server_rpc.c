/* The gRPC transport against a real client over real sockets: every kind of call, cancellation,
 * deadlines, limits, errors. */
#include "google/rpc/status.pb-c.h"
#include "server/rpc_bench.h"

/* ---- kinds of calls ---- */

START_TEST(a_unary_call_is_answered)
{
    bench b;
    bench_open(&b);
    for (int i = 0; i < 100; i++) ck_assert_int_eq(echo_number(&b.client, i), GRPC_STATUS_OK);
    bench_close(&b);
}
END_TEST

START_TEST(an_unknown_method_is_unimplemented)
{
    bench b;
    grpc_status_code code;
    number n = number_of(1);
    bench_open(&b);
    ck_assert_ptr_null(call_unary(&b.client, "/tribo.test.Test/Nothing", &n, NUMBER, &code));
    ck_assert_int_eq(code, GRPC_STATUS_UNIMPLEMENTED);
    ck_assert_ptr_null(call_unary(&b.client, "/", &n, NUMBER, &code));
    ck_assert_int_eq(code, GRPC_STATUS_UNIMPLEMENTED);
    bench_close(&b);
}
END_TEST

START_TEST(an_error_carries_text_details_and_pushback)
{
    bench b;
    client_call call;
    number n = number_of(1);
    bench_open(&b);
    call_begin(&call, &b.client, "/tribo.test.Test/Fail");
    call_send(&call, &n);
    call_half_close(&call);
    ck_assert_ptr_null(call_receive(&call, NUMBER));
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_INVALID_ARGUMENT);
    ck_assert_str_eq(call.text, "grasps is 100 % wrong: äöü \"x\"");
    ck_assert_str_eq(call.exchange->pushback, "1500");
    const tb_bytes *details = &call.exchange->details;
    Google__Rpc__Status *status = google__rpc__status__unpack(NULL, details->size, details->base);
    ck_assert_ptr_nonnull(status);
    ck_assert_int_eq(status->code, 3);
    ck_assert_str_eq(status->message, call.text);
    ck_assert_uint_eq(status->n_details, 3); /* ErrorInfo, BadRequest, RetryInfo */
    google__rpc__status__free_unpacked(status, NULL);
    call_end(&call);
    bench_close(&b);
}
END_TEST

START_TEST(a_client_stream_is_summed)
{
    bench b;
    client_call call;
    bench_open(&b);
    call_begin(&call, &b.client, "/tribo.test.Test/Sum");
    for (int i = 1; i <= 500; i++) {
        number n = number_of(i);
        ck_assert(call_send(&call, &n));
    }
    call_half_close(&call);
    number *answer = call_receive(&call, NUMBER);
    ck_assert_int_eq(answer->grasps, 125250);
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_OK);
    free_message(answer);
    call_end(&call);
    bench_close(&b);
}
END_TEST

START_TEST(a_stream_without_a_message_is_refused)
{
    bench b;
    client_call call;
    bench_open(&b);
    call_begin(&call, &b.client, "/tribo.test.Test/Sum");
    call_half_close(&call);
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_INVALID_ARGUMENT);
    call_end(&call);
    call_begin(&call, &b.client, "/tribo.test.Test/Chat");
    call_half_close(&call);
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_OK);
    call_end(&call);
    bench_close(&b);
}
END_TEST

START_TEST(a_server_stream_comes_whole_and_in_order)
{
    enum { COUNT = 5000 };
    bench b;
    client_call call;
    number n = number_of(COUNT), *answer;
    bench_open(&b);
    call_begin(&call, &b.client, "/tribo.test.Test/Count");
    call_send(&call, &n);
    call_half_close(&call);
    int expected = COUNT;
    while ((answer = call_receive(&call, NUMBER)) != NULL) {
        ck_assert_int_eq(answer->grasps, expected--);
        free_message(answer);
    }
    ck_assert_int_eq(expected, 0);
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_OK);
    call_end(&call);
    bench_close(&b);
}
END_TEST

START_TEST(a_bidirectional_stream_answers_each_message)
{
    bench b;
    client_call call;
    bench_open(&b);
    call_begin(&call, &b.client, "/tribo.test.Test/Chat");
    for (int i = 0; i < 2000; i++) {
        number n = number_of(i);
        ck_assert(call_send(&call, &n));
        number *answer = call_receive(&call, NUMBER);
        ck_assert_int_eq(answer->grasps, i);
        free_message(answer);
    }
    call_half_close(&call);
    ck_assert_ptr_null(call_receive(&call, NUMBER));
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_OK);
    call_end(&call);
    bench_close(&b);
}
END_TEST

/* ---- the client goes, or waits too long ---- */

START_TEST(a_cancelled_call_is_told)
{
    bench b;
    client_call call;
    number n = number_of(1);
    bench_open(&b);
    call_begin(&call, &b.client, "/tribo.test.Test/Hang");
    call_send(&call, &n);
    call_half_close(&call);
    wait_for(&seen.waiting, 1);
    call_cancel(&call);
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_CANCELLED);
    wait_for(&seen.cancelled, 1);
    call_end(&call);
    ck_assert_int_eq(echo_number(&b.client, 3), GRPC_STATUS_OK);
    bench_close(&b);
}
END_TEST

START_TEST(a_cancelled_upload_does_not_look_finished)
{
    bench b;
    client_call call;
    number n = number_of(1);
    bench_open(&b);
    for (int i = 0; i < 50; i++) {
        call_begin(&call, &b.client, "/tribo.test.Test/Sum");
        for (int j = 0; j <= i % 3; j++) call_send(&call, &n);
        call_cancel(&call);
        ck_assert_int_eq(call_status(&call), GRPC_STATUS_CANCELLED);
        call_end(&call);
    }
    pause_ms(200);
    ck_assert_int_eq(atomic_load(&seen.half_closed), 0);
    bench_close(&b);
}
END_TEST

START_TEST(a_deadline_ends_the_work)
{
    bench b;
    client_call call;
    number n = number_of(1);
    bench_open(&b);
    ck_assert_int_eq(echo_number(&b.client, 3), GRPC_STATUS_OK); /* connected */
    call_begin_with(&call, &b.client, "/tribo.test.Test/Hang", 0.3, NULL);
    call_send(&call, &n);
    call_half_close(&call);
    wait_for(&seen.waiting, 1);
    const td_call *held = atomic_load(&seen.held);
    const double left = (double)(held->deadline_ns - held->arrival_ns) * 1e-9;
    ck_assert_double_gt(left, 0.05);
    ck_assert_double_le(left, 0.31);
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_DEADLINE_EXCEEDED);
    wait_for(&seen.cancelled, 1);
    call_end(&call);
    bench_close(&b);
}
END_TEST

START_TEST(a_client_that_vanishes_is_told)
{
    bench b;
    client gone;
    client_call call;
    number n = number_of(1);
    bench_open(&b);
    client_open(&gone, td_rpc_address(b.server.rpc));
    call_begin(&call, &gone, "/tribo.test.Test/Hang");
    call_send(&call, &n);
    wait_for(&seen.waiting, 1);
    call_end(&call);
    client_close(&gone);
    wait_for(&seen.cancelled, 1);
    bench_close(&b);
}
END_TEST

START_TEST(a_reader_that_stalls_costs_little_and_slows_nobody)
{
    bench b;
    client_call call;
    number n = number_of(1);
    bench_open(&b);
    call_begin(&call, &b.client, "/tribo.test.Test/Flood");
    call_send(&call, &n);
    wait_for(&seen.flooded, 1);
    /* on the same connection others go on; the stalled one fills its window and no more */
    for (int i = 0; i < 1000; i++) ck_assert_int_eq(echo_number(&b.client, i), GRPC_STATUS_OK);
    pause_ms(500);
    const int before = atomic_load(&seen.flooded);
    ck_assert_int_lt(before, 512); /* 32 MiB */
    pause_ms(500);
    ck_assert_int_eq(atomic_load(&seen.flooded), before);
    for (int i = 0; i < before + 100; i++) {
        blob *message = call_receive(&call, BLOB);
        ck_assert_ptr_nonnull(message);
        free_message(message);
    }
    call_cancel(&call);
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_CANCELLED);
    wait_for(&seen.cancelled, 1);
    call_end(&call);
    bench_close(&b);
}
END_TEST

/* ---- refused connections ---- */

/* Sends these bytes to Echo or Blob; gives the code. */
static grpc_status_code send_raw(client *c, const char *path, tb_bytes bytes)
{
    client_call call;
    call_begin(&call, c, path);
    call_send_bytes(&call, bytes);
    call_half_close(&call);
    free_message(call_receive(&call, BLOB));
    const grpc_status_code code = call_status(&call);
    call_end(&call);
    return code;
}

static tb_bytes raw_bytes(const void *data, size_t size)
{
    tb_bytes bytes = {0};
    ck_assert_int_eq(tb_bytes_append(&bytes, data, size), TB_OK);
    return bytes;
}

/* A blob of `size` zeros, encoded. */
static tb_bytes zeros(size_t size)
{
    uint8_t *data = calloc(1, size);
    blob message = TRIBO__V1__GRASP_ASSET__INIT;
    message.main_case = TRIBO__V1__GRASP_ASSET__MAIN_DATA;
    message.data = (ProtobufCBinaryData){size, data};
    const tb_bytes bytes = client_pack(&message);
    free(data);
    return bytes;
}

START_TEST(oversized_and_malformed_messages_get_a_status)
{
    bench b;
    const char *path = "/tribo.test.Test/Blob";
    const uint8_t malformed[] = {0x12, 0x7f, 0x00};
    uint8_t *bomb = malloc(MESSAGE_BYTES / 2);
    bench_open(&b);
    ck_assert_int_eq(send_raw(&b.client, path, zeros(MESSAGE_BYTES - 100)), GRPC_STATUS_OK);
    ck_assert_int_eq(send_raw(&b.client, path, zeros(MESSAGE_BYTES + 100)),
                     GRPC_STATUS_RESOURCE_EXHAUSTED);
    ck_assert_int_eq(send_raw(&b.client, path, zeros(8 * MESSAGE_BYTES)),
                     GRPC_STATUS_RESOURCE_EXHAUSTED);
    ck_assert_int_eq(send_raw(&b.client, path, raw_bytes(malformed, sizeof malformed)),
                     GRPC_STATUS_INVALID_ARGUMENT);
    for (size_t i = 0; i < MESSAGE_BYTES / 2; i += 2) memcpy(bomb + i, (uint8_t[]){0x78, 0}, 2);
    ck_assert_int_eq(send_raw(&b.client, path, raw_bytes(bomb, MESSAGE_BYTES / 2)),
                     GRPC_STATUS_RESOURCE_EXHAUSTED);
    free(bomb);
    ck_assert_int_eq(echo_number(&b.client, 3), GRPC_STATUS_OK);
    bench_close(&b);
}
END_TEST

START_TEST(a_malformed_message_in_a_stream_ends_it)
{
    bench b;
    client_call call;
    number n = number_of(1);
    const uint8_t malformed[] = {0x12, 0x7f, 0x00};
    bench_open(&b);
    call_begin(&call, &b.client, "/tribo.test.Test/Sum");
    call_send(&call, &n);
    call_send_bytes(&call, raw_bytes(malformed, sizeof malformed));
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_INVALID_ARGUMENT);
    wait_for(&seen.cancelled, 1);
    call_end(&call);
    bench_close(&b);
    ck_assert_int_eq(atomic_load(&seen.cancelled), 1);
}
END_TEST

START_TEST(compressed_messages_are_inflated_within_the_limit)
{
    bench b;
    const char *path = "/tribo.test.Test/Blob";
    bench_open(&b);
    client zipping;
    client_open(&zipping, td_rpc_address(b.server.rpc));
    zipping.zips = true;
    ck_assert_int_eq(send_raw(&zipping, path, zeros(1000)), GRPC_STATUS_OK);
    ck_assert_int_eq(send_raw(&zipping, path, zeros(MESSAGE_BYTES - 100)), GRPC_STATUS_OK);
    /* a few kilobytes on the wire */
    ck_assert_int_eq(send_raw(&zipping, path, zeros(MESSAGE_BYTES + 100)),
                     GRPC_STATUS_RESOURCE_EXHAUSTED);
    ck_assert_int_eq(send_raw(&zipping, path, zeros(64 * MESSAGE_BYTES)),
                     GRPC_STATUS_RESOURCE_EXHAUSTED);
    client_close(&zipping);
    bench_close(&b);
}
END_TEST

START_TEST(keys_are_asked_for)
{
    static const struct {
        const char *value;
        grpc_status_code code;
    } cases[] = {{"Bearer good", GRPC_STATUS_OK},
                 {"Bearer slow", GRPC_STATUS_OK},
                 {"Bearer bad", GRPC_STATUS_UNAUTHENTICATED}};
    bench b;
    bench_open(&b);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        client_call call;
        number n = number_of(1);
        call_begin_with(&call, &b.client, "/tribo.test.Test/Echo", CLIENT_TIMEOUT_S,
                        cases[i].value);
        call_send(&call, &n);
        call_half_close(&call);
        free_message(call_receive(&call, NUMBER));
        ck_assert_int_eq(call_status(&call), cases[i].code);
        call_end(&call);
    }
    bench_close(&b);
}
END_TEST

TEST_MAIN(a_unary_call_is_answered, an_unknown_method_is_unimplemented,
          an_error_carries_text_details_and_pushback, a_client_stream_is_summed,
          a_stream_without_a_message_is_refused, a_server_stream_comes_whole_and_in_order,
          a_bidirectional_stream_answers_each_message, a_cancelled_call_is_told,
          a_cancelled_upload_does_not_look_finished, a_deadline_ends_the_work,
          a_client_that_vanishes_is_told, a_reader_that_stalls_costs_little_and_slows_nobody,
          oversized_and_malformed_messages_get_a_status, a_malformed_message_in_a_stream_ends_it,
          compressed_messages_are_inflated_within_the_limit, keys_are_asked_for)
