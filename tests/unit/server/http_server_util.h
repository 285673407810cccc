/* Shared by the tests of the HTTP transport: a server of the daemon's parts with test methods,
 * which can be as slow or as busy as needed. Includes the table of methods that the library
 * would otherwise provide. */
#ifndef HTTP_SERVER_UTIL_H
#define HTTP_SERVER_UTIL_H

#include <pthread.h>

#include "handlers/handlers.h"
#include "db/db.h"
#include "base/error.h"
#include "transport/http/http.h"
#include "wire/envelope.h"
#include "wire/gzip.h"
#include "server/http_util.h"
#include "tribo/v1/runs.pb-c.h"
#include "tribo/v1/simulation.pb-c.h"

typedef Tribo__V1__ListRunsRequest count_request;
typedef Tribo__V1__ListRunsResponse count_response;

/* ---- methods --------------------------------------------------------------------------------- */

/* Arguments that the methods saw. */
static struct {
    pthread_mutex_t lock;
    td_call *waiting; /* the call that Wait holds */
    int flooded, most_queued;
    atomic_int cancelled, released;
    atomic_bool gone;
} seen;

/* Answers with the size of the data and gives the name back. */
static void size_message(td_call *call, td_request *request)
{
    const Tribo__V1__CreateAssetRequest *asked = (const void *)request->message;
    Tribo__V1__CreateAssetResponse response = TRIBO__V1__CREATE_ASSET_RESPONSE__INIT;
    response.sha256 = asked->name;
    response.size = asked->data.len;
    td_call_reply(call, &response.base);
    td_request_free(request);
}

static void reply_text(td_call *call, char *text)
{
    count_response response = TRIBO__V1__LIST_RUNS_RESPONSE__INIT;
    response.next_page_token = text;
    td_call_reply(call, &response.base);
}

typedef struct late {
    td_call *call;
    int milliseconds;
} late;

static void *late_run(void *context)
{
    late *l = context;
    char text[] = "late";
    usleep((useconds_t)l->milliseconds * 1000);
    reply_text(l->call, text);
    td_call_release(l->call);
    free(l);
    return NULL;
}

/* Answers from another thread after page_size milliseconds. */
static void late_message(td_call *call, td_request *request)
{
    pthread_t thread;
    late *l = malloc(sizeof *l);
    *l = (late){.call = call, .milliseconds = ((count_request *)request->message)->page_size};
    td_call_hold(call);
    td_request_free(request);
    ck_assert_int_eq(pthread_create(&thread, NULL, late_run, l), 0);
    pthread_detach(thread);
}

/* Never answers; the test ends it. */
static void wait_message(td_call *call, td_request *request)
{
    td_request_free(request);
    td_call_hold(call);
    pthread_mutex_lock(&seen.lock);
    seen.waiting = call;
    pthread_mutex_unlock(&seen.lock);
}

static void wait_release(void)
{
    pthread_mutex_lock(&seen.lock);
    td_call *call = seen.waiting;
    seen.waiting = NULL;
    pthread_mutex_unlock(&seen.lock);
    if (call == NULL) return;
    td_call_finish(call, TB_CANCELLED, NULL, 0);
    td_call_release(call);
}

static void fail_message(td_call *call, td_request *request)
{
    tb_error error = {0};
    td_request_free(request);
    tb_fail_field(&error, TB_RESOURCE_EXHAUSTED, "sessions",
                  "sessions: \"100 %%\" of 5 € are open");
    td_call_finish(call, error.status, &error, 2.5);
}

/* Streams page_size numbers, a few at a time; then fails if the token says so. */
typedef struct counter {
    int next, end;
    bool fails;
} counter;

static void count_go_on(td_call *call)
{
    counter *c = call->state;
    tb_error error = {0};
    while (c->next < c->end && td_call_queued(call) < 4) {
        char text[16];
        count_response response = TRIBO__V1__LIST_RUNS_RESPONSE__INIT;
        snprintf(text, sizeof text, "%d", c->next++);
        response.next_page_token = text;
        td_call_send(call, &response.base);
    }
    if (c->next < c->end) return;
    if (c->fails) tb_fail(&error, TB_NOT_FOUND, "no more");
    td_call_finish(call, error.status, &error, 0);
}

static void count_message(td_call *call, td_request *request)
{
    const count_request *asked = (const void *)request->message;
    counter *c = calloc(1, sizeof *c);
    *c = (counter){.end = asked->page_size, .fails = strcmp(asked->page_token, "fail") == 0};
    call->state = c;
    call->destroy_state = free;
    td_request_free(request);
    count_go_on(call);
}

/* Streams 64 KiB messages for ever, as fast as they are taken. */
static void flood_go_on(td_call *call)
{
    static uint8_t data[65536];
    pthread_mutex_lock(&seen.lock);
    while (td_call_queued(call) < 4 && !atomic_load(&call->gone)) {
        Tribo__V1__ExportProblemResponse response = TRIBO__V1__EXPORT_PROBLEM_RESPONSE__INIT;
        response.data = (ProtobufCBinaryData){.len = sizeof data, .data = data};
        td_call_send(call, &response.base);
        seen.flooded++;
        if (td_call_queued(call) > seen.most_queued) seen.most_queued = td_call_queued(call);
    }
    pthread_mutex_unlock(&seen.lock);
}

static void flood_message(td_call *call, td_request *request)
{
    td_request_free(request);
    flood_go_on(call);
}

static void flood_cancelled(td_call *call)
{
    atomic_fetch_add(&seen.cancelled, 1);
    td_call_finish(call, TB_CANCELLED, NULL, 0);
}

/* Streams 64 MiB without regard to the reader. */
static void burst_message(td_call *call, td_request *request)
{
    static uint8_t data[65536];
    td_request_free(request);
    for (int i = 0; i < 1024; i++) {
        Tribo__V1__ExportProblemResponse response = TRIBO__V1__EXPORT_PROBLEM_RESPONSE__INIT;
        response.data = (ProtobufCBinaryData){.len = sizeof data, .data = data};
        td_call_send(call, &response.base);
        if (td_call_queued(call) > seen.most_queued) seen.most_queued = td_call_queued(call);
    }
}

/* A page of runs that is worth packing. */
static void big_message(td_call *call, td_request *request)
{
    enum { RUNS = 500 };
    Tribo__V1__Run runs[RUNS], *pointers[RUNS];
    char text[] = "the same text again and again";
    count_response response = TRIBO__V1__LIST_RUNS_RESPONSE__INIT;
    td_request_free(request);
    for (int i = 0; i < RUNS; i++) {
        tribo__v1__run__init(&runs[i]);
        runs[i].label = text;
        pointers[i] = &runs[i];
    }
    response.n_runs = RUNS;
    response.runs = pointers;
    td_call_reply(call, &response.base);
}

#define RUNS                                                                                       \
    .input = &tribo__v1__list_runs_request__descriptor,                                            \
    .output = &tribo__v1__list_runs_response__descriptor
#define SERVICE .service = "tribo.v1.Test"

static const td_method METHODS[] = {
    {SERVICE, .name = "Size", .scope = TD_SCOPE_RUN, .message = size_message,
     .input = &tribo__v1__create_asset_request__descriptor,
     .output = &tribo__v1__create_asset_response__descriptor},
    {SERVICE, .name = "Late", .scope = TD_SCOPE_READ, .message = late_message, RUNS},
    {SERVICE, .name = "Wait", .scope = TD_SCOPE_READ, .message = wait_message, RUNS},
    {SERVICE, .name = "Fail", .scope = TD_SCOPE_NONE, .message = fail_message, RUNS},
    {SERVICE, .name = "Big", .scope = TD_SCOPE_READ, .message = big_message, RUNS},
    {SERVICE, .name = "Count", .scope = TD_SCOPE_READ, .server_streaming = true,
     .message = count_message, .writable = count_go_on, RUNS},
    {SERVICE, .name = "Flood", .scope = TD_SCOPE_READ, .server_streaming = true,
     .message = flood_message, .writable = flood_go_on, .cancelled = flood_cancelled,
     .input = &tribo__v1__export_problem_request__descriptor,
     .output = &tribo__v1__export_problem_response__descriptor},
    {SERVICE, .name = "Burst", .scope = TD_SCOPE_READ, .server_streaming = true,
     .message = burst_message, .input = &tribo__v1__export_problem_request__descriptor,
     .output = &tribo__v1__export_problem_response__descriptor},
    {SERVICE, .name = "PutAsset", .scope = TD_SCOPE_RUN, .client_streaming = true,
     .input = &tribo__v1__put_asset_request__descriptor,
     .output = &tribo__v1__put_asset_response__descriptor},
    {.name = NULL},
};

const td_method *td_methods(void)
{
    return METHODS;
}

const td_method *td_method_find(const char *path)
{
    for (const td_method *m = METHODS; m->name != NULL; m++) {
        char expected[64];
        snprintf(expected, sizeof expected, "/%s/%s", m->service, m->name);
        if (strcmp(path, expected) == 0) return m;
    }
    return NULL;
}

/* ---- a server -------------------------------------------------------------------------------- */

static td_config config;
static td_server server;
static const char *at; /* its address */

static inline void stop(void)
{
    td_http_shutdown(server.http, 0);
    td_http_destroy(server.http);
    wait_release();
    td_auth_destroy(server.auth);
    td_metrics_destroy(server.metrics);
    db_close(server.db);
    pthread_mutex_destroy(&seen.lock);
    memset(&server, 0, sizeof server);
}

/* A test that failed without a process of its own has left its server running. That server ends
 * first, so that the log shows the failure. */
static inline void prepare(void)
{
    if (server.http != NULL) stop();
    tb_error e = {0};
    const db_options options = {.folder = "", .queue_length = 64};
    memset(&seen, 0, sizeof seen);
    memset(&server, 0, sizeof server);
    pthread_mutex_init(&seen.lock, NULL);
    config = td_config_defaults();
    strcpy(config.http_address, "127.0.0.1:0");
    config.http_timeout_seconds = 10;
    config.message_bytes = 1 << 20;
    server.config = &config;
    atomic_init(&server.ready, true);
    atomic_init(&server.alive, true);
    TEST_OK(db_open(&options, &server.db, &e), &e);
    TEST_OK(td_metrics_create(&server.metrics, &e), &e);
    TEST_OK(td_auth_create(&config, server.db, &server.auth, &e), &e);
}

static inline void start(void)
{
    tb_error e = {0};
    TEST_OK(td_http_create(&server, &server.http, &e), &e);
    TEST_OK(td_http_start(server.http, &e), &e);
    at = td_http_address(server.http);
}

static inline double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Waits up to a minute for a condition. */
#define EVENTUALLY(condition)                                                                      \
    do {                                                                                           \
        const double until_ = seconds() + 60;                                                      \
        while (!(condition) && seconds() < until_) usleep(2000);                                   \
        ck_assert_msg(condition, "never: %s", #condition);                                         \
    } while (0)

static const char JSON[] = "Content-Type: application/json\r\n";
static const char PROTO[] = "Content-Type: application/proto\r\n";
static const char STREAM_JSON[] = "Content-Type: application/connect+json\r\n";
static const char STREAM_PROTO[] = "Content-Type: application/connect+proto\r\n";
static const char WEB[] = "Content-Type: application/grpc-web+proto\r\nX-Grpc-Web: 1\r\n";
static const char WEB_TEXT[] = "Content-Type: application/grpc-web-text\r\n";

static inline http_answer post(const char *method, const char *headers, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "/tribo.v1.Test/%s", method);
    return http_ask(at, "POST", path, headers, text, strlen(text));
}

/* The answer is this error, in JSON; frees it. */
static inline void is_error(http_answer answer, int status, const char *code, const char *hint)
{
    char expected[64];
    snprintf(expected, sizeof expected, "{\"code\":\"%s\"", code);
    const char *body = (const char *)answer.body.base;
    ck_assert_msg(answer.status == status && strncmp(body, expected, strlen(expected)) == 0 &&
                      strstr(body, hint) != NULL,
                  "%d %s instead of %d %s with '%s'", answer.status, body, status, code, hint);
    ck_assert_str_eq(http_value(&answer, "Content-Type"), "application/json");
    http_answer_free(&answer);
}

static inline void is_json(http_answer answer, const char *expected)
{
    ck_assert_msg(answer.status == 200 && strcmp((char *)answer.body.base, expected) == 0,
                  "%d %s instead of %s", answer.status, (char *)answer.body.base, expected);
    http_answer_free(&answer);
}

/* A request in an envelope. */
static inline http_answer post_frame(const char *method, const char *headers, unsigned flags,
                                     const void *message, size_t size)
{
    char path[128];
    unsigned char *frame = malloc(size + HTTP_ENVELOPE_BYTES);
    http_envelope_write(frame, flags, size);
    memcpy(frame + HTTP_ENVELOPE_BYTES, message, size);
    snprintf(path, sizeof path, "/tribo.v1.Test/%s", method);
    http_answer answer = http_ask(at, "POST", path, headers, frame, size + HTTP_ENVELOPE_BYTES);
    free(frame);
    return answer;
}

/* Takes the next frame out of a body: its flags, its message as a string of *size bytes. */
static inline unsigned next_frame(const tb_bytes *body, size_t *position, const char **message,
                                  size_t *size)
{
    ck_assert_uint_ge(body->size, *position + HTTP_ENVELOPE_BYTES);
    const unsigned char *head = body->base + *position;
    *size = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
    ck_assert_uint_ge(body->size, *position + HTTP_ENVELOPE_BYTES + *size);
    *message = (const char *)head + HTTP_ENVELOPE_BYTES;
    *position += HTTP_ENVELOPE_BYTES + *size;
    return head[0];
}

#endif
