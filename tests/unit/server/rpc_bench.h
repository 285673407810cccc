/* The bench of the gRPC transport's tests: methods of its own (echo, fail, hang, sum, count, chat,
 * flood), a server that serves nothing else on a free port, and a client of it. */
#ifndef RPC_BENCH_H
#define RPC_BENCH_H

#include <time.h>

#include "handlers/handlers.h"
#include "base/error.h"
#include "grpc/health/v1/health.pb-c.h"
#include "transport/grpc/rpc.h"
#include "server/rpc_util.h"
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

static inline number number_of(int value)
{
    number n = TRIBO__V1__GRASP_PROGRESS__INIT;
    n.grasps = value;
    return n;
}

static inline void send_number(td_call *call, int value)
{
    number n = number_of(value);
    td_call_send(call, &n.base);
}

static inline void echo(td_call *call, td_request *request)
{
    td_call_reply(call, request->message);
    td_request_free(request);
}

static inline void fail_wrong(td_call *call, td_request *request)
{
    tb_error error = {0};
    td_request_free(request);
    tb_fail_field(&error, TB_INVALID_ARGUMENT, "grasps", "grasps is 100 %% wrong: äöü \"x\"");
    td_call_finish(call, error.status, &error, 1.5);
}

/* answers only when it is cancelled, or when the test lets it go */
static inline void hang(td_call *call, td_request *request)
{
    td_request_free(request);
    td_call_hold(call);
    atomic_store(&seen.held, call);
    atomic_fetch_add(&seen.waiting, 1);
}

static inline void hang_cancelled(td_call *call)
{
    atomic_fetch_add(&seen.cancelled, 1);
    td_call_finish(call, TB_CANCELLED, NULL, 0);
    td_call_release(call);
}

static inline void sum(td_call *call, td_request *request)
{
    call->state = (void *)((intptr_t)call->state + ((number *)request->message)->grasps);
    td_request_free(request);
    td_call_read(call);
}

static inline void sum_half_closed(td_call *call)
{
    atomic_fetch_add(&seen.half_closed, 1);
    send_number(call, (int)(intptr_t)call->state);
    td_call_finish(call, TB_OK, NULL, 0);
}

static inline void note_cancelled(td_call *call)
{
    atomic_fetch_add(&seen.cancelled, 1);
    td_call_finish(call, TB_CANCELLED, NULL, 0);
}

/* counts down to 1, as fast as the reader takes it */
static inline void count_more(td_call *call)
{
    intptr_t left = (intptr_t)call->state;
    for (; left > 0 && td_call_queued(call) < 4; left--) {
        call->state = (void *)(left - 1);
        send_number(call, (int)left);
    }
    if (left == 0) td_call_finish(call, TB_OK, NULL, 0);
}

static inline void count(td_call *call, td_request *request)
{
    call->state = (void *)(intptr_t)((number *)request->message)->grasps;
    td_request_free(request);
    count_more(call);
}

static inline void chat(td_call *call, td_request *request)
{
    td_call_send(call, request->message);
    td_request_free(request);
    td_call_read(call);
}

static inline void chat_half_closed(td_call *call)
{
    td_call_finish(call, TB_OK, NULL, 0);
}

/* sends for ever, a message of 64 KiB whenever the last has left */
static inline void flood_more(td_call *call)
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

static inline void flood(td_call *call, td_request *request)
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

/* Replaces the daemon's own table, which names handlers of all its parts. */
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

static inline void bench_configure(bench *b)
{
    memset(b, 0, sizeof *b);
    memset(&seen, 0, sizeof seen);
    strcpy(b->config.grpc_address, "127.0.0.1:0");
    b->config.message_bytes = MESSAGE_BYTES;
    b->config.unpack_bytes = 8 * MESSAGE_BYTES;
    b->config.nesting = 16;
    b->server.config = &b->config;
}

static inline void bench_serve(bench *b)
{
    tb_error error = {0};
    TEST_OK(td_metrics_create(&b->server.metrics, &error), &error);
    TEST_OK(td_workers_create(1, 16, &b->server.workers, &error), &error);
    TEST_OK(td_rpc_create(&b->server, &b->server.rpc, &error), &error);
    TEST_OK(td_rpc_start(b->server.rpc, &error), &error);
    td_rpc_set_serving(b->server.rpc, true);
}

static inline void bench_open(bench *b)
{
    bench_configure(b);
    bench_serve(b);
    client_open(&b->client, td_rpc_address(b->server.rpc));
}

static inline void bench_stop(bench *b)
{
    td_rpc_shutdown(b->server.rpc, 5);
    td_rpc_destroy(b->server.rpc);
    td_workers_destroy(b->server.workers);
    ck_assert_int_eq(td_metrics_get(b->server.metrics, TD_METRIC_CALLS_IN_FLIGHT), 0);
    td_metrics_destroy(b->server.metrics);
}

static inline void bench_close(bench *b)
{
    client_close(&b->client);
    bench_stop(b);
}

/* Waits up to 10 s until the number is at least `least`. */
static inline void wait_for(const atomic_int *value, int least)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    for (int i = 0; i < 5000 && atomic_load(value) < least; i++) nanosleep(&pause, NULL);
    ck_assert_int_ge(atomic_load(value), least);
}

static inline void pause_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static inline void free_message(void *message)
{
    if (message != NULL) protobuf_c_message_free_unpacked(message, NULL);
}

/* Echoes a number; gives the code. */
static inline grpc_status_code echo_number(client *c, int value)
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

/* ---- health ---- */

#define HEALTH(status) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##status

typedef Grpc__Health__V1__HealthCheckResponse health;

static const ProtobufCMessageDescriptor *const HEALTH_TYPE =
    &grpc__health__v1__health_check_response__descriptor;

static inline int check_health(client *c, const char *service, grpc_status_code *code)
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

#endif
