/* The gRPC transport against a real client over real sockets, with methods of the test's own: every
 * kind of call, cancellation, deadlines, limits, errors, health, reflection, shutdown. */
#include <errno.h>
#include <grpc/compression.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "certificate_util.h"
#include "google/rpc/status.pb-c.h"
#include "grpc/health/v1/health.pb-c.h"
#include "grpc/reflection/v1/reflection.pb-c.h"
#include "rpc.h"
#include "rpc_util.h"
#include "server.h"
#include "tribo/v1/grasp.pb-c.h"

/* ---- methods: a message is a pair of numbers and some bytes ---- */

typedef Tribo__V1__GraspProgress number;
typedef Tribo__V1__GraspAsset blob;

static const ProtobufCMessageDescriptor *const NUMBER = &tribo__v1__grasp_progress__descriptor;
static const ProtobufCMessageDescriptor *const BLOB = &tribo__v1__grasp_asset__descriptor;

static struct {
    atomic_int cancelled, half_closed, waiting, flooded, written;
    td_call *_Atomic held;
} seen;

static number number_of(int value)
{
    number n = TRIBO__V1__GRASP_PROGRESS__INIT;
    n.grasps = value;
    return n;
}

static void send_number(td_call *call, int value)
{
    number n = number_of(value);
    td_call_send(call, &n.base);
}

static void echo(td_call *call, td_request *request)
{
    td_call_reply(call, request->message);
    td_request_free(request);
}

static void fail_wrong(td_call *call, td_request *request)
{
    tb_error error = {0};
    td_request_free(request);
    tb_fail_field(&error, TB_INVALID_ARGUMENT, "grasps", "grasps is 100 %% wrong: äöü \"x\"");
    td_call_finish(call, error.status, &error, 1.5);
}

/* answers only when it is cancelled, or when the test lets it go */
static void hang(td_call *call, td_request *request)
{
    td_request_free(request);
    td_call_hold(call);
    atomic_store(&seen.held, call);
    atomic_fetch_add(&seen.waiting, 1);
}

static void hang_cancelled(td_call *call)
{
    atomic_fetch_add(&seen.cancelled, 1);
    td_call_finish(call, TB_CANCELLED, NULL, 0);
    td_call_release(call);
}

static void sum(td_call *call, td_request *request)
{
    call->state = (void *)((intptr_t)call->state + ((number *)request->message)->grasps);
    td_request_free(request);
    td_call_read(call);
}

static void sum_half_closed(td_call *call)
{
    atomic_fetch_add(&seen.half_closed, 1);
    send_number(call, (int)(intptr_t)call->state);
    td_call_finish(call, TB_OK, NULL, 0);
}

static void note_cancelled(td_call *call)
{
    atomic_fetch_add(&seen.cancelled, 1);
    td_call_finish(call, TB_CANCELLED, NULL, 0);
}

/* counts down to 1, as fast as the reader takes it */
static void count_more(td_call *call)
{
    intptr_t left = (intptr_t)call->state;
    for (; left > 0 && td_call_queued(call) < 4; left--) {
        call->state = (void *)(left - 1);
        send_number(call, (int)left);
    }
    if (left == 0) td_call_finish(call, TB_OK, NULL, 0);
}

static void count(td_call *call, td_request *request)
{
    call->state = (void *)(intptr_t)((number *)request->message)->grasps;
    td_request_free(request);
    count_more(call);
}

static void chat(td_call *call, td_request *request)
{
    td_call_send(call, request->message);
    td_request_free(request);
    td_call_read(call);
}

static void chat_half_closed(td_call *call)
{
    td_call_finish(call, TB_OK, NULL, 0);
}

/* sends for ever, a message of 64 KiB whenever the last has left */
static void flood_more(td_call *call)
{
    enum { SIZE = 1 << 16 };
    uint8_t *data = calloc(1, SIZE);
    blob b = TRIBO__V1__GRASP_ASSET__INIT;
    b.main_case = TRIBO__V1__GRASP_ASSET__MAIN_DATA;
    b.data = (ProtobufCBinaryData){SIZE, data};
    td_call_send(call, &b.base);
    atomic_fetch_add(&seen.flooded, 1);
    free(data);
}

static void flood(td_call *call, td_request *request)
{
    td_request_free(request);
    flood_more(call);
}

#define METHOD(name_, client, server, ...)                                                         \
    {                                                                                              \
        .service = "tribo.test.Test", .name = name_, .client_streaming = client,                   \
        .server_streaming = server, .scope = TD_SCOPE_RUN,                                         \
        .input = &tribo__v1__grasp_progress__descriptor, __VA_ARGS__                               \
    }
#define NUMBERS .output = &tribo__v1__grasp_progress__descriptor

static const td_method METHODS[] = {
    METHOD("Echo", false, false, NUMBERS, .message = echo),
    METHOD("Fail", false, false, NUMBERS, .message = fail_wrong),
    METHOD("Hang", false, false, NUMBERS, .message = hang, .cancelled = hang_cancelled),
    METHOD("Sum", true, false, NUMBERS, .message = sum, .half_closed = sum_half_closed,
           .cancelled = note_cancelled),
    METHOD("Count", false, true, NUMBERS, .message = count, .writable = count_more,
           .cancelled = note_cancelled),
    METHOD("Chat", true, true, NUMBERS, .message = chat, .half_closed = chat_half_closed,
           .cancelled = note_cancelled),
    METHOD("Flood", false, true, .output = &tribo__v1__grasp_asset__descriptor, .message = flood,
           .writable = flood_more, .cancelled = note_cancelled),
    {.service = "tribo.test.Test",
     .name = "Blob",
     .input = &tribo__v1__grasp_asset__descriptor,
     .output = &tribo__v1__grasp_asset__descriptor,
     .message = echo},
    {.name = NULL}};

/* The daemon's own table names handlers of all its parts; this one stands in for it. */
const td_method *td_methods(void)
{
    return METHODS;
}

const td_method *td_method_find(const char *path)
{
    static const char PREFIX[] = "/tribo.test.Test/";
    if (strncmp(path, PREFIX, sizeof PREFIX - 1) != 0) return NULL;
    for (const td_method *m = METHODS; m->name != NULL; m++)
        if (strcmp(path + sizeof PREFIX - 1, m->name) == 0) return m;
    return NULL;
}

/* Admission: one key is good, one is slow and good, any other is refused. */
bool td_auth_quick(td_auth *auth, const char *authorization)
{
    (void)auth;
    return authorization == NULL || strcmp(authorization, "Bearer slow") != 0;
}

tb_status td_auth_admit(td_auth *auth, td_call *call, const char *authorization, bool loopback,
                        double *retry_after, tb_error *error)
{
    (void)auth;
    (void)retry_after;
    call->caller.loopback = loopback;
    call->caller.scope = TD_SCOPE_RUN;
    if (!loopback) return tb_fail(error, TB_PERMISSION_DENIED, "not on loopback");
    if (authorization == NULL || strncmp(authorization, "Bearer ", 7) != 0) return TB_OK;
    if (strcmp(authorization + 7, "good") == 0 || strcmp(authorization + 7, "slow") == 0)
        return TB_OK;
    return tb_fail(error, TB_UNAUTHENTICATED, "the key is not known");
}

/* ---- a server and a client ---- */

enum { MESSAGE_BYTES = 1 << 20 };

typedef struct bench {
    td_config config;
    td_server server;
    client client;
} bench;

static void bench_configure(bench *b)
{
    memset(b, 0, sizeof *b);
    memset(&seen, 0, sizeof seen);
    strcpy(b->config.grpc_address, "127.0.0.1:0");
    b->config.message_bytes = MESSAGE_BYTES;
    b->config.unpack_bytes = 8 * MESSAGE_BYTES;
    b->config.nesting = 16;
    b->server.config = &b->config;
}

static void bench_serve(bench *b)
{
    tb_error error = {0};
    TEST_OK(td_metrics_create(&b->server.metrics, &error), &error);
    TEST_OK(td_workers_create(1, 16, &b->server.workers, &error), &error);
    TEST_OK(td_rpc_create(&b->server, &b->server.rpc, &error), &error);
    TEST_OK(td_rpc_start(b->server.rpc, &error), &error);
    td_rpc_set_serving(b->server.rpc, true);
}

static void bench_open(bench *b)
{
    grpc_init();
    bench_configure(b);
    bench_serve(b);
    client_open(&b->client, td_rpc_address(b->server.rpc));
}

static void bench_stop(bench *b)
{
    td_rpc_shutdown(b->server.rpc, 5);
    td_rpc_destroy(b->server.rpc);
    td_workers_destroy(b->server.workers);
    ck_assert_int_eq(td_metrics_get(b->server.metrics, TD_METRIC_CALLS_IN_FLIGHT), 0);
    td_metrics_destroy(b->server.metrics);
}

static void bench_close(bench *b)
{
    client_close(&b->client);
    bench_stop(b);
    grpc_shutdown();
}

/* Waits up to 10 s until the number is at least `least`. */
static void wait_for(const atomic_int *value, int least)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    for (int i = 0; i < 5000 && atomic_load(value) < least; i++) nanosleep(&pause, NULL);
    ck_assert_int_ge(atomic_load(value), least);
}

static void pause_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void free_message(void *message)
{
    if (message != NULL) protobuf_c_message_free_unpacked(message, NULL);
}

/* Echoes a number; gives the code. */
static grpc_status_code echo_number(client *c, int value)
{
    grpc_status_code code;
    number n = number_of(value);
    number *answer = call_unary(c, "/tribo.test.Test/Echo", &n, NUMBER, &code);
    if (code == GRPC_STATUS_OK)
        ck_assert_int_eq(answer->grasps, value);
    else
        ck_assert_ptr_null(answer);
    free_message(answer);
    return code;
}

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
    ck_assert(grpc_slice_str_cmp(call_trailer(&call, "grpc-retry-pushback-ms"), "1500") == 0);
    const grpc_slice details = call_trailer(&call, "grpc-status-details-bin");
    Google__Rpc__Status *status = google__rpc__status__unpack(NULL, GRPC_SLICE_LENGTH(details),
                                                              GRPC_SLICE_START_PTR(details));
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
    call_begin_with(&call, &b.client, "/tribo.test.Test/Hang", 0.3, NULL, NULL);
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

/* ---- what must not come in ---- */

/* Sends these bytes to Echo or Blob; gives the code. */
static grpc_status_code send_raw(client *c, const char *path, grpc_byte_buffer *bytes)
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

static grpc_byte_buffer *raw_bytes(const void *data, size_t size)
{
    grpc_slice slice = grpc_slice_from_copied_buffer(data, size);
    grpc_byte_buffer *bytes = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    return bytes;
}

/* A blob of `size` zeros, encoded. */
static grpc_byte_buffer *zeros(size_t size)
{
    uint8_t *data = calloc(1, size);
    blob message = TRIBO__V1__GRASP_ASSET__INIT;
    message.main_case = TRIBO__V1__GRASP_ASSET__MAIN_DATA;
    message.data = (ProtobufCBinaryData){size, data};
    grpc_byte_buffer *bytes = client_pack(&message);
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
    grpc_arg arg = {.type = GRPC_ARG_INTEGER, .value.integer = GRPC_COMPRESS_GZIP};
    char key[] = GRPC_COMPRESSION_CHANNEL_DEFAULT_ALGORITHM;
    arg.key = key;
    const grpc_channel_args args = {1, &arg};
    const char *path = "/tribo.test.Test/Blob";
    bench_open(&b);
    client zipping;
    client_open_with(&zipping, td_rpc_address(b.server.rpc), grpc_insecure_credentials_create(),
                     &args);
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
                        "authorization", cases[i].value);
        call_send(&call, &n);
        call_half_close(&call);
        free_message(call_receive(&call, NUMBER));
        ck_assert_int_eq(call_status(&call), cases[i].code);
        call_end(&call);
    }
    bench_close(&b);
}
END_TEST

/* ---- health and reflection ---- */

#define HEALTH(status) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##status

typedef Grpc__Health__V1__HealthCheckResponse health;

static const ProtobufCMessageDescriptor *const HEALTH_TYPE =
    &grpc__health__v1__health_check_response__descriptor;

static int check_health(client *c, const char *service, grpc_status_code *code)
{
    char name[64];
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    snprintf(name, sizeof name, "%s", service);
    request.service = name;
    health *answer = call_unary(c, "/grpc.health.v1.Health/Check", &request, HEALTH_TYPE, code);
    const int status = answer != NULL ? (int)answer->status : -1;
    free_message(answer);
    return status;
}

START_TEST(health_is_checked)
{
    bench b;
    grpc_status_code code;
    bench_open(&b);
    ck_assert_int_eq(check_health(&b.client, "", &code), HEALTH(SERVING));
    ck_assert_int_eq(check_health(&b.client, "tribo.test.Test", &code), HEALTH(SERVING));
    td_rpc_set_serving(b.server.rpc, false);
    ck_assert_int_eq(check_health(&b.client, "", &code), HEALTH(NOT_SERVING));
    ck_assert_int_eq(check_health(&b.client, "tribo.test.Test", &code), HEALTH(NOT_SERVING));
    ck_assert_int_eq(check_health(&b.client, "tribo.test.Nobody", &code), -1);
    ck_assert_int_eq(code, GRPC_STATUS_NOT_FOUND);
    bench_close(&b);
}
END_TEST

static void watch_health(client_call *call, client *c, const char *service)
{
    char name[64];
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    snprintf(name, sizeof name, "%s", service);
    request.service = name;
    call_begin(call, c, "/grpc.health.v1.Health/Watch");
    call_send(call, &request);
    call_half_close(call);
}

static void expect_health(client_call *call, int status)
{
    health *answer = call_receive(call, HEALTH_TYPE);
    ck_assert_ptr_nonnull(answer);
    ck_assert_int_eq((int)answer->status, status);
    free_message(answer);
}

START_TEST(health_is_watched)
{
    bench b;
    client_call call, stranger, cancelled;
    bench_open(&b);
    watch_health(&call, &b.client, "");
    expect_health(&call, HEALTH(SERVING));
    watch_health(&stranger, &b.client, "tribo.test.Nobody");
    expect_health(&stranger, HEALTH(SERVICE_UNKNOWN));
    watch_health(&cancelled, &b.client, "tribo.test.Test");
    expect_health(&cancelled, HEALTH(SERVING));
    call_cancel(&cancelled);
    ck_assert_int_eq(call_status(&cancelled), GRPC_STATUS_CANCELLED);

    td_rpc_set_serving(b.server.rpc, false);
    expect_health(&call, HEALTH(NOT_SERVING));
    td_rpc_set_serving(b.server.rpc, true);
    expect_health(&call, HEALTH(SERVING));
    bench_stop(&b); /* the end is told too */
    expect_health(&call, HEALTH(NOT_SERVING));
    ck_assert_ptr_null(call_receive(&call, HEALTH_TYPE));
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_UNAVAILABLE);
    call_end(&call);
    call_end(&stranger);
    call_end(&cancelled);
    client_close(&b.client);
    grpc_shutdown();
}
END_TEST

typedef Grpc__Reflection__V1__ServerReflectionRequest question;
typedef Grpc__Reflection__V1__ServerReflectionResponse reply;
#define ASK(kind)   GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##kind
#define REPLY(kind) GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##kind

/* Asks on an open stream; free the reply. */
static reply *ask(client_call *call, int kind, const char *text)
{
    char copy[128];
    question q = GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
    snprintf(copy, sizeof copy, "%s", text);
    q.message_request_case =
        (Grpc__Reflection__V1__ServerReflectionRequest__MessageRequestCase)kind;
    q.list_services = copy; /* all of these are strings in one union */
    ck_assert(call_send(call, &q));
    reply *answer =
        call_receive(call, &grpc__reflection__v1__server_reflection_response__descriptor);
    ck_assert_ptr_nonnull(answer);
    ck_assert_str_eq(answer->original_request->list_services, copy);
    return answer;
}

static bool holds(ProtobufCBinaryData file, const char *text)
{
    return memmem(file.data, file.len, text, strlen(text)) != NULL;
}

static void reflect(client *c, const char *path)
{
    static const char *const SYMBOLS[] = {"tribo.v1.Grasp", "tribo.v1.Grasp.EvaluateGrasps",
                                          "tribo.v1.GraspPose", "tribo.v1.GraspVerdict"};
    client_call call;
    call_begin(&call, c, path);
    reply *r = ask(&call, ASK(LIST_SERVICES), "");
    ck_assert_int_eq(r->message_response_case, REPLY(LIST_SERVICES_RESPONSE));
    ck_assert_uint_eq(r->list_services_response->n_service, 4);
    ck_assert_str_eq(r->list_services_response->service[0]->name, "tribo.test.Test");
    free_message(r);

    r = ask(&call, ASK(FILE_BY_FILENAME), "tribo/v1/common.proto");
    ck_assert_int_eq(r->message_response_case, REPLY(FILE_DESCRIPTOR_RESPONSE));
    ck_assert_uint_eq(r->file_descriptor_response->n_file_descriptor_proto, 1);
    ck_assert(holds(r->file_descriptor_response->file_descriptor_proto[0], "Certificate"));
    free_message(r);

    for (size_t i = 0; i < sizeof SYMBOLS / sizeof SYMBOLS[0]; i++) {
        r = ask(&call, ASK(FILE_CONTAINING_SYMBOL), SYMBOLS[i]);
        ck_assert_int_eq(r->message_response_case, REPLY(FILE_DESCRIPTOR_RESPONSE));
        /* the file, and what it imports */
        ck_assert_uint_ge(r->file_descriptor_response->n_file_descriptor_proto, 3);
        ck_assert(
            holds(r->file_descriptor_response->file_descriptor_proto[0], "tribo/v1/grasp.proto"));
        free_message(r);
    }
    r = ask(&call, ASK(ALL_EXTENSION_NUMBERS_OF_TYPE), "tribo.v1.Pose");
    ck_assert_int_eq(r->message_response_case, REPLY(ALL_EXTENSION_NUMBERS_RESPONSE));
    ck_assert_uint_eq(r->all_extension_numbers_response->n_extension_number, 0);
    free_message(r);
    const int kinds[] = {ASK(FILE_BY_FILENAME), ASK(FILE_CONTAINING_SYMBOL),
                         ASK(ALL_EXTENSION_NUMBERS_OF_TYPE)};
    for (size_t i = 0; i < 3; i++) {
        r = ask(&call, kinds[i], "tribo.v1.Nothing");
        ck_assert_int_eq(r->message_response_case, REPLY(ERROR_RESPONSE));
        ck_assert_int_eq(r->error_response->error_code, GRPC_STATUS_NOT_FOUND);
        free_message(r);
    }
    call_half_close(&call);
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_OK);
    call_end(&call);
}

START_TEST(reflection_tells_services_and_files)
{
    bench b;
    bench_open(&b);
    reflect(&b.client, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
    reflect(&b.client, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
    bench_close(&b);
}
END_TEST

/* ---- ports, shutdown ---- */

START_TEST(a_port_in_use_is_refused_by_name)
{
    bench b, second;
    tb_error error = {0};
    bench_open(&b);
    memcpy(&second, &b, sizeof b);
    second.server.config = &second.config;
    strcpy(second.config.grpc_address, td_rpc_address(b.server.rpc));
    TEST_STATUS(td_rpc_create(&second.server, &second.server.rpc, &error), TB_FAILED_PRECONDITION,
                &error);
    ck_assert_ptr_null(second.server.rpc);
    ck_assert_ptr_nonnull(strstr(error.message, td_rpc_address(b.server.rpc)));
    ck_assert_ptr_nonnull(strstr(error.message, strerror(EADDRINUSE)));
    ck_assert_int_eq(echo_number(&b.client, 3), GRPC_STATUS_OK);
    bench_close(&b);
}
END_TEST

/* Makes a socket file that nobody serves. */
static void leave_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int s = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_uint_lt(strlen(path), sizeof address.sun_path);
    strcpy(address.sun_path, path);
    ck_assert_int_eq(bind(s, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(s, 1), 0);
    close(s);
}

START_TEST(a_unix_socket_serves_too)
{
    char folder[] = "/tmp/test_server_rpc.XXXXXX", target[128];
    bench b, second;
    client local;
    tb_error error = {0};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    grpc_init();
    bench_configure(&b);
    snprintf(b.config.grpc_socket, sizeof b.config.grpc_socket, "%s/rpc", folder);
    leave_socket(b.config.grpc_socket); /* as a crash does */
    bench_serve(&b);
    client_open(&b.client, td_rpc_address(b.server.rpc));
    snprintf(target, sizeof target, "unix:%s/rpc", folder);
    client_open(&local, target);
    ck_assert_int_eq(echo_number(&local, 5), GRPC_STATUS_OK);
    ck_assert_int_eq(echo_number(&b.client, 6), GRPC_STATUS_OK);

    /* a second server does not take the socket from the first */
    memcpy(&second, &b, sizeof b);
    second.server.config = &second.config;
    TEST_STATUS(td_rpc_create(&second.server, &second.server.rpc, &error), TB_FAILED_PRECONDITION,
                &error);
    ck_assert_ptr_nonnull(strstr(error.message, b.config.grpc_socket));
    ck_assert_int_eq(echo_number(&local, 7), GRPC_STATUS_OK);
    client_close(&local);
    bench_close(&b);
    ck_assert_int_eq(rmdir(folder), 0); /* the socket is gone */
}
END_TEST

/* Writes a certificate signed by the authority, and its key, to where the configuration says. */
static void write_certificate(const td_config *config, const authority *ca)
{
    char pem[CERTIFICATE_PEM_SIZE];
    authority a = certificate_make("localhost", ca);
    certificate_pem(&a, pem);
    certificate_write(config->tls_certificate, pem);
    certificate_key_pem(&a, pem);
    certificate_write(config->tls_key, pem);
    certificate_free(&a);
}

/* Echoes over a connection of its own that trusts the authority; gives the code. */
static grpc_status_code echo_over_tls(const bench *b, const authority *ca, const authority *self)
{
    char root[CERTIFICATE_PEM_SIZE], own[CERTIFICATE_PEM_SIZE], key[CERTIFICATE_PEM_SIZE];
    grpc_arg local = {.type = GRPC_ARG_INTEGER, .value.integer = 1};
    char name[] = GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL;
    client c;
    client_call call;
    number n = number_of(1);
    local.key = name;
    const grpc_channel_args args = {1, &local};
    certificate_pem(ca, root);
    grpc_ssl_pem_key_cert_pair pair = {key, own};
    if (self != NULL) certificate_pem(self, own);
    if (self != NULL) certificate_key_pem(self, key);
    client_open_with(&c, td_rpc_address(b->server.rpc),
                     grpc_ssl_credentials_create(root, self != NULL ? &pair : NULL, NULL, NULL),
                     &args);
    call_begin_with(&call, &c, "/tribo.test.Test/Echo", 3, NULL, NULL);
    if (call_send(&call, &n)) call_half_close(&call);
    free_message(call_receive(&call, NUMBER));
    const grpc_status_code code = call_status(&call);
    call_end(&call);
    client_close(&c);
    return code;
}

START_TEST(tls_and_mutual_tls_are_spoken)
{
    char folder[] = "/tmp/test_server_rpc.XXXXXX", pem[CERTIFICATE_PEM_SIZE];
    bench b;
    authority ca = certificate_make("authority", NULL), other = certificate_make("other", NULL);
    authority friend = certificate_make("friend", &ca), foe = certificate_make("foe", &other);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    grpc_init();
    bench_configure(&b);
    snprintf(b.config.tls_certificate, TD_CONFIG_TEXT_SIZE, "%s/certificate", folder);
    snprintf(b.config.tls_key, TD_CONFIG_TEXT_SIZE, "%s/key", folder);
    write_certificate(&b.config, &ca);
    bench_serve(&b);
    ck_assert_int_eq(echo_over_tls(&b, &ca, NULL), GRPC_STATUS_OK);
    ck_assert_int_ne(echo_over_tls(&b, &other, NULL), GRPC_STATUS_OK);

    /* a certificate that is renewed on disk is served; one that is broken is not */
    write_certificate(&b.config, &other);
    ck_assert_int_eq(echo_over_tls(&b, &other, NULL), GRPC_STATUS_OK);
    certificate_write(b.config.tls_certificate, "nonsense");
    ck_assert_int_eq(echo_over_tls(&b, &other, NULL), GRPC_STATUS_OK);
    bench_stop(&b);

    bench_configure(&b);
    snprintf(b.config.tls_certificate, TD_CONFIG_TEXT_SIZE, "%s/certificate", folder);
    snprintf(b.config.tls_key, TD_CONFIG_TEXT_SIZE, "%s/key", folder);
    snprintf(b.config.tls_client_ca, TD_CONFIG_TEXT_SIZE, "%s/ca", folder);
    write_certificate(&b.config, &ca);
    certificate_pem(&ca, pem);
    certificate_write(b.config.tls_client_ca, pem);
    bench_serve(&b);
    ck_assert_int_eq(echo_over_tls(&b, &ca, &friend), GRPC_STATUS_OK);
    ck_assert_int_ne(echo_over_tls(&b, &ca, &foe), GRPC_STATUS_OK);
    ck_assert_int_ne(echo_over_tls(&b, &ca, NULL), GRPC_STATUS_OK);
    bench_stop(&b);

    ck_assert_int_eq(unlink(b.config.tls_certificate) | unlink(b.config.tls_key), 0);
    ck_assert_int_eq(unlink(b.config.tls_client_ca) | rmdir(folder), 0);
    certificate_free(&ca);
    certificate_free(&other);
    certificate_free(&friend);
    certificate_free(&foe);
    grpc_shutdown();
}
END_TEST

START_TEST(certificates_that_cannot_be_used_are_named)
{
    char folder[] = "/tmp/test_server_rpc.XXXXXX";
    bench b;
    tb_error error = {0};
    bench_configure(&b);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(b.config.tls_certificate, TD_CONFIG_TEXT_SIZE, "%s/certificate", folder);
    snprintf(b.config.tls_key, TD_CONFIG_TEXT_SIZE, "%s/key", folder);
    certificate_write(b.config.tls_certificate, "nonsense");
    certificate_write(b.config.tls_key, "nonsense");
    TEST_STATUS(td_rpc_create(&b.server, &b.server.rpc, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_ptr_nonnull(strstr(error.message, b.config.tls_certificate));
    ck_assert_int_eq(unlink(b.config.tls_certificate) | unlink(b.config.tls_key) | rmdir(folder),
                     0);
    strcpy(b.config.tls_certificate, "/nowhere/certificate");
    strcpy(b.config.tls_key, "/nowhere/key");
    TEST_STATUS(td_rpc_create(&b.server, &b.server.rpc, &error), TB_NOT_FOUND, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "/nowhere/certificate"));
}
END_TEST

static void *shut_down(void *context)
{
    td_rpc_shutdown(context, 10);
    return NULL;
}

START_TEST(shutdown_waits_for_what_is_in_flight)
{
    bench b;
    client_call call;
    number n = number_of(1);
    pthread_t thread;
    bench_open(&b);
    call_begin(&call, &b.client, "/tribo.test.Test/Hang");
    call_send(&call, &n);
    call_half_close(&call);
    wait_for(&seen.waiting, 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, shut_down, b.server.rpc), 0);
    pause_ms(200);
    /* meanwhile others are refused, and health says why */
    grpc_status_code code;
    ck_assert_int_eq(echo_number(&b.client, 3), GRPC_STATUS_UNAVAILABLE);
    ck_assert_int_eq(check_health(&b.client, "", &code), HEALTH(NOT_SERVING));
    td_call *held = atomic_load(&seen.held);
    n.grasps = 77;
    td_call_reply(held, &n.base);
    td_call_release(held);
    number *answer = call_receive(&call, NUMBER);
    ck_assert_ptr_nonnull(answer);
    ck_assert_int_eq(answer->grasps, 77);
    free_message(answer);
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_OK);
    call_end(&call);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(atomic_load(&seen.cancelled), 0);
    bench_close(&b);
}
END_TEST

START_TEST(shutdown_cancels_what_takes_too_long)
{
    bench b;
    client_call call;
    number n = number_of(1);
    bench_open(&b);
    call_begin(&call, &b.client, "/tribo.test.Test/Hang");
    call_send(&call, &n);
    call_half_close(&call);
    wait_for(&seen.waiting, 1);
    td_rpc_shutdown(b.server.rpc, 0.2);
    ck_assert_int_eq(atomic_load(&seen.cancelled), 1);
    ck_assert_int_ne(call_status(&call), GRPC_STATUS_OK);
    call_end(&call);
    bench_close(&b);
}
END_TEST

START_TEST(a_server_that_never_started_goes_quietly)
{
    bench b;
    tb_error error = {0};
    bench_configure(&b);
    TEST_OK(td_metrics_create(&b.server.metrics, &error), &error);
    TEST_OK(td_rpc_create(&b.server, &b.server.rpc, &error), &error);
    td_rpc_destroy(b.server.rpc);
    td_metrics_destroy(b.server.metrics);
}
END_TEST

TEST_MAIN(a_unary_call_is_answered, an_unknown_method_is_unimplemented,
          an_error_carries_text_details_and_pushback, a_client_stream_is_summed,
          a_stream_without_a_message_is_refused, a_server_stream_comes_whole_and_in_order,
          a_bidirectional_stream_answers_each_message, a_cancelled_call_is_told,
          a_cancelled_upload_does_not_look_finished, a_deadline_ends_the_work,
          a_client_that_vanishes_is_told, a_reader_that_stalls_costs_little_and_slows_nobody,
          oversized_and_malformed_messages_get_a_status, a_malformed_message_in_a_stream_ends_it,
          compressed_messages_are_inflated_within_the_limit, keys_are_asked_for, health_is_checked,
          health_is_watched, reflection_tells_services_and_files, a_port_in_use_is_refused_by_name,
          a_unix_socket_serves_too, tls_and_mutual_tls_are_spoken,
          certificates_that_cannot_be_used_are_named, shutdown_waits_for_what_is_in_flight,
          shutdown_cancels_what_takes_too_long, a_server_that_never_started_goes_quietly)
