/* The HTTP transport over real sockets: Connect, gRPC-Web, pages, limits, and clients that do not
 * behave. The methods are the test's own, so that they can be as slow or as busy as it takes; the
 * rest is the daemon's. */
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <pthread.h>

#include "../../db/db.h"
#include "base/error.h"
#include "http.h"
#include "http_envelope.h"
#include "http_gzip.h"
#include "http_util.h"
#include "tribo/v1/runs.pb-c.h"
#include "tribo/v1/simulation.pb-c.h"

typedef Tribo__V1__ListRunsRequest count_request;
typedef Tribo__V1__ListRunsResponse count_response;

/* ---- methods --------------------------------------------------------------------------------- */

/* What the methods saw. */
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

/* Streams 64 MiB and does not look whether anybody takes them. */
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

static void prepare(void)
{
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

static void start(void)
{
    tb_error e = {0};
    TEST_OK(td_http_create(&server, &server.http, &e), &e);
    TEST_OK(td_http_start(server.http, &e), &e);
    at = td_http_address(server.http);
}

static void stop(void)
{
    td_http_shutdown(server.http, 0);
    td_http_destroy(server.http);
    wait_release();
    td_auth_destroy(server.auth);
    td_metrics_destroy(server.metrics);
    db_close(server.db);
    pthread_mutex_destroy(&seen.lock);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Waits up to ten seconds for a condition. */
#define EVENTUALLY(condition)                                                                      \
    do {                                                                                           \
        const double until_ = seconds() + 10;                                                      \
        while (!(condition) && seconds() < until_) usleep(2000);                                   \
        ck_assert_msg(condition, "never: %s", #condition);                                         \
    } while (0)

static const char JSON[] = "Content-Type: application/json\r\n";
static const char PROTO[] = "Content-Type: application/proto\r\n";
static const char STREAM_JSON[] = "Content-Type: application/connect+json\r\n";
static const char STREAM_PROTO[] = "Content-Type: application/connect+proto\r\n";
static const char WEB[] = "Content-Type: application/grpc-web+proto\r\nX-Grpc-Web: 1\r\n";
static const char WEB_TEXT[] = "Content-Type: application/grpc-web-text\r\n";

static http_answer post(const char *method, const char *headers, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "/tribo.v1.Test/%s", method);
    return http_ask(at, "POST", path, headers, text, strlen(text));
}

/* The answer is this error, in JSON; frees it. */
static void is_error(http_answer answer, int status, const char *code, const char *hint)
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

static void is_json(http_answer answer, const char *expected)
{
    ck_assert_msg(answer.status == 200 && strcmp((char *)answer.body.base, expected) == 0,
                  "%d %s instead of %s", answer.status, (char *)answer.body.base, expected);
    http_answer_free(&answer);
}

/* ---- unary calls ----------------------------------------------------------------------------- */

START_TEST(a_unary_call_in_json_and_in_protobuf)
{
    prepare();
    start();
    http_answer answer = post("Size", JSON, "{\"name\":\"mug.obj\",\"data\":\"AAAA\"}");
    ck_assert_str_eq(http_value(&answer, "Content-Type"), "application/json");
    is_json(answer, "{\"sha256\":\"mug.obj\",\"size\":\"3\"}");
    is_json(post("Size", "Content-Type: Application/JSON; charset=utf-8\r\n", "{}"), "{}");

    answer = post("Size", PROTO, "\x0a\x03mug\x12\x02hi");
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(http_value(&answer, "Content-Type"), "application/proto");
    ck_assert_uint_eq(answer.body.size, 7);
    ck_assert_mem_eq(answer.body.base, "\x0a\x03mug\x10\x02", 7);
    http_answer_free(&answer);
    /* the empty message is an empty body, both ways */
    answer = post("Size", PROTO, "");
    ck_assert_int_eq(answer.status, 200);
    ck_assert_uint_eq(answer.body.size, 0);
    http_answer_free(&answer);
    stop();
}
END_TEST

START_TEST(a_connection_is_kept_and_requests_may_come_ahead)
{
    prepare();
    start();
    const int s = http_connect(at);
    http_answer answer;
    for (int i = 0; i < 3; i++) {
        http_send(s, "POST", "/tribo.v1.Test/Size", JSON, "{\"name\":\"a\"}", 12);
        ck_assert(http_receive(s, &answer));
        is_json(answer, "{\"sha256\":\"a\"}");
    }
    /* two at once, the first of which is answered later, by another thread */
    const char both[] = "POST /tribo.v1.Test/Late HTTP/1.1\r\nHost: localhost\r\n"
                        "Content-Type: application/json\r\nContent-Length: 15\r\n\r\n"
                        "{\"pageSize\":50}"
                        "POST /tribo.v1.Test/Size HTTP/1.1\r\nHost: localhost\r\n"
                        "Content-Type: application/json\r\nContent-Length: 12\r\n\r\n"
                        "{\"name\":\"b\"}";
    tb_bytes left = {0};
    ck_assert(http_write(s, both, strlen(both)));
    ck_assert(http_receive_more(s, &answer, &left, false));
    is_json(answer, "{\"nextPageToken\":\"late\"}");
    ck_assert(http_receive_more(s, &answer, &left, false));
    is_json(answer, "{\"sha256\":\"b\"}");
    tb_bytes_free(&left);
    close(s);
    stop();
}
END_TEST

START_TEST(methods_that_only_read_answer_get)
{
    prepare();
    start();
    is_json(http_ask(at, "GET", "/tribo.v1.Test/Late", "", "", 0), "{\"nextPageToken\":\"late\"}");
    is_json(
        http_ask(at, "GET",
                 "/tribo.v1.Test/Late?connect=v1&encoding=json&message=%7B%22pageSize%22%3A3%7D",
                 "", "", 0),
        "{\"nextPageToken\":\"late\"}");
    is_json(
        http_ask(at, "GET", "/tribo.v1.Test/Late?encoding=json&base64=1&message=e30", "", "", 0),
        "{\"nextPageToken\":\"late\"}");
    http_answer answer =
        http_ask(at, "GET", "/tribo.v1.Test/Late?encoding=proto&base64=1&message=CAE", "", "", 0);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_mem_eq(answer.body.base, "\x12\x04late", 6);
    http_answer_free(&answer);
    answer = http_ask(at, "HEAD", "/tribo.v1.Test/Late", "", "", 0);
    ck_assert_int_eq(answer.status, 200);
    http_answer_free(&answer);
    is_error(http_ask(at, "GET", "/tribo.v1.Test/Late?encoding=xml", "", "", 0), 415,
             "invalid_argument", "json and proto");
    is_error(http_ask(at, "GET", "/tribo.v1.Test/Late?connect=v2", "", "", 0), 400,
             "invalid_argument", "v1");
    is_error(http_ask(at, "GET", "/tribo.v1.Test/Late?message=%7B%22x%22%3A3%7D", "", "", 0), 400,
             "invalid_argument", "no such field");
    is_error(http_ask(at, "GET", "/tribo.v1.Test/Late?base64=1&message=%21", "", "", 0), 400,
             "invalid_argument", "base64");
    answer = http_ask(at, "GET", "/tribo.v1.Test/Size", "", "", 0);
    ck_assert_str_eq(http_value(&answer, "Allow"), "POST, OPTIONS");
    is_error(answer, 405, "unimplemented", "GET is not allowed");
    stop();
}
END_TEST

START_TEST(refusals_say_what_would_do)
{
    prepare();
    start();
    is_error(http_ask(at, "POST", "/tribo.v1.Test/Sise", JSON, "{}", 2), 404, "unimplemented",
             "/tribo.v1.Test/Sise is not served here");
    is_error(http_ask(at, "GET", "/etc/passwd", "", "", 0), 404, "unimplemented", "/livez");
    is_error(http_ask(at, "PUT", "/tribo.v1.Test/Size", JSON, "{}", 2), 405, "unimplemented",
             "PUT is not allowed");
    http_answer answer = post("Size", "Content-Type: text/xml\r\n", "<a/>");
    ck_assert_ptr_nonnull(strstr(http_value(&answer, "Accept-Post"), "application/json"));
    is_error(answer, 415, "invalid_argument", "text/xml");
    is_error(post("Size", "", "{}"), 415, "invalid_argument", "application/proto");
    is_error(post("Size", STREAM_JSON, ""), 415, "invalid_argument", "unary");
    is_error(post("Count", JSON, "{}"), 415, "invalid_argument", "application/connect+json");
    is_error(post("Size", JSON, ""), 400, "invalid_argument", "send {}");
    is_error(post("Size", JSON, "{\"name\":5}"), 400, "invalid_argument", "name: a number");
    is_error(post("Size", PROTO, "\x0a\x7f"), 400, "invalid_argument", "");
    is_error(
        post("Size", "Content-Type: application/json\r\nConnect-Protocol-Version: 2\r\n", "{}"),
        400, "invalid_argument", "there is 1");
    is_error(post("Size", "Content-Type: application/json\r\nConnect-Timeout-Ms: 1s\r\n", "{}"),
             400, "invalid_argument", "no timeout");
    is_error(post("Size", "Content-Type: application/json\r\nContent-Encoding: br\r\n", "{}"), 501,
             "unimplemented", "gzip and identity");
    /* a refused request with a body leaves the connection as good as before, also one in chunks */
    const int s = http_connect(at);
    const char chunks[] = "POST /tribo.v1.Test/None HTTP/1.1\r\nHost: localhost\r\n"
                          "Transfer-Encoding: chunked\r\n\r\n";
    http_write(s, chunks, strlen(chunks));
    usleep(50000); /* an early answer would close the connection */
    http_write(s, "2\r\n{}\r\n0\r\n\r\n", 12);
    ck_assert(http_receive(s, &answer));
    is_error(answer, 404, "unimplemented", "");
    http_send(s, "POST", "/tribo.v1.Test/None", JSON, "{\"name\":\"a\"}", 12);
    ck_assert(http_receive(s, &answer));
    is_error(answer, 404, "unimplemented", "");
    http_send(s, "POST", "/tribo.v1.Test/Size", JSON, "{\"name\":\"a\"}", 12);
    ck_assert(http_receive(s, &answer));
    is_json(answer, "{\"sha256\":\"a\"}");
    close(s);
    stop();
}
END_TEST

START_TEST(errors_carry_details_and_when_to_retry)
{
    prepare();
    start();
    http_answer answer = post("Fail", JSON, "{}");
    ck_assert_str_eq(http_value(&answer, "Retry-After"), "3");
    const char *body = (const char *)answer.body.base;
    ck_assert_ptr_nonnull(
        strstr(body, "\"message\":\"sessions: \\\"100 %\\\" of 5 \xe2\x82\xac are"));
    ck_assert_ptr_nonnull(strstr(body, "{\"type\":\"google.rpc.ErrorInfo\",\"value\":\""));
    ck_assert_ptr_nonnull(strstr(body, "\"debug\":{\"reason\":\"TB_RESOURCE_EXHAUSTED\"") != NULL
                              ? body
                              : strstr(body, "\"debug\":{\"reason\":"));
    ck_assert_ptr_nonnull(strstr(body, "\"debug\":{\"retryDelay\":\"2.500s\"}"));
    ck_assert_ptr_null(strchr(body, '='));
    is_error(answer, 429, "resource_exhausted", "");
    stop();
}
END_TEST

START_TEST(answers_may_come_late)
{
    prepare();
    config.http_timeout_seconds = 0.5; /* is for requests to arrive, not for answers */
    start();
    is_json(post("Late", JSON, "{\"pageSize\":1700}"), "{\"nextPageToken\":\"late\"}");
    stop();
}
END_TEST

START_TEST(a_deadline_ends_a_call)
{
    prepare();
    start();
    const double begin = seconds();
    is_error(post("Wait", "Content-Type: application/json\r\nConnect-Timeout-Ms: 60\r\n", "{}"),
             504, "deadline_exceeded", "deadline");
    ck_assert(seconds() - begin < 5);
    ck_assert(atomic_load(&seen.waiting->gone));
    wait_release();
    /* one that has passed on arrival is not begun */
    is_error(post("Wait", "Content-Type: application/json\r\nConnect-Timeout-Ms: 0\r\n", "{}"), 504,
             "deadline_exceeded", "");
    ck_assert_ptr_null(seen.waiting);
    /* gRPC-Web spells it otherwise */
    http_answer answer =
        http_ask(at, "POST", "/tribo.v1.Test/Wait",
                 "Content-Type: application/grpc-web\r\nGrpc-Timeout: 50m\r\n", "\0\0\0\0\0", 5);
    ck_assert_ptr_nonnull(strstr((char *)answer.body.base + 5, "grpc-status:4\r\n"));
    http_answer_free(&answer);
    stop();
}
END_TEST

START_TEST(a_client_that_leaves_cancels_its_call)
{
    prepare();
    start();
    const int s = http_connect(at);
    http_send(s, "POST", "/tribo.v1.Test/Wait", JSON, "{}", 2);
    pthread_mutex_lock(&seen.lock);
    while (seen.waiting == NULL) {
        pthread_mutex_unlock(&seen.lock);
        usleep(1000);
        pthread_mutex_lock(&seen.lock);
    }
    pthread_mutex_unlock(&seen.lock);
    ck_assert(!atomic_load(&seen.waiting->gone));
    close(s);
    EVENTUALLY(atomic_load(&seen.waiting->gone));
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_HTTP) == 0);
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CALLS_IN_FLIGHT) == 0);
    stop();
}
END_TEST

START_TEST(keys_are_asked_for_and_taken)
{
    prepare();
    char key[128], header[256];
    tb_error e = {0};
    TEST_OK(td_auth_create_key(server.db, "planner", TD_SCOPE_RUN, 0, 0, key, &e), &e);
    config.anonymous = TD_SCOPE_NONE;
    td_auth_reload(server.auth, &config);
    start();
    http_answer answer = post("Size", JSON, "{}");
    ck_assert_str_eq(http_value(&answer, "WWW-Authenticate"), "Bearer realm=\"tribod\"");
    is_error(answer, 401, "unauthenticated", "");
    is_error(post("Size", "Content-Type: application/json\r\nAuthorization: Bearer x\r\n", "{}"),
             401, "unauthenticated", "");
    snprintf(header, sizeof header,
             "Content-Type: application/json\r\nAuthorization: Bearer %s\r\n", key);
    for (int i = 0; i < 3; i++)
        is_json(post("Size", header, "{\"name\":\"a\"}"), "{\"sha256\":\"a\"}");
    stop();
}
END_TEST

START_TEST(loopback_counts_only_for_those_who_meant_it)
{
    prepare();
    start();
    /* a page of the Internet that had its name point to this machine, and a proxy's other side */
    is_error(post("Size", "Host: evil.example\r\nContent-Type: application/json\r\n", "{}"), 401,
             "unauthenticated", "");
    is_error(post("Size", "X-Forwarded-For: 192.0.2.1\r\nContent-Type: application/json\r\n", "{}"),
             401, "unauthenticated", "");
    is_json(post("Size", "Host: 127.0.0.1:7480\r\nContent-Type: application/json\r\n", "{}"), "{}");
    is_error(
        post("Size", "Host: 127.0.0.1.evil.example\r\nContent-Type: application/json\r\n", "{}"),
        401, "unauthenticated", "");
    stop();
}
END_TEST

/* ---- streams --------------------------------------------------------------------------------- */

/* A request in an envelope. */
static http_answer post_frame(const char *method, const char *headers, unsigned flags,
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
static unsigned next_frame(const tb_bytes *body, size_t *position, const char **message,
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

START_TEST(a_stream_in_json_ends_with_its_last_frame)
{
    prepare();
    start();
    http_answer answer = post_frame("Count", STREAM_JSON, 0, "{\"pageSize\":100}", 16);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(http_value(&answer, "Content-Type"), "application/connect+json");
    size_t position = 0, size = 0;
    const char *message = NULL;
    for (int i = 0; i < 100; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "{\"nextPageToken\":\"%d\"}", i);
        ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 0);
        ck_assert_uint_eq(size, strlen(expected));
        ck_assert_mem_eq(message, expected, size);
    }
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 2);
    ck_assert_uint_eq(size, 2);
    ck_assert_mem_eq(message, "{}", 2);
    ck_assert_uint_eq(position, answer.body.size);
    http_answer_free(&answer);
    stop();
}
END_TEST

START_TEST(an_error_after_messages_comes_in_the_last_frame)
{
    prepare();
    start();
    http_answer answer = post_frame("Count", STREAM_PROTO, 0,
                                    "\x08\x02\x12\x04"
                                    "fail",
                                    8);
    size_t position = 0, size = 0;
    const char *message = NULL;
    ck_assert_str_eq(http_value(&answer, "Content-Type"), "application/connect+proto");
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 0);
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 0);
    ck_assert_mem_eq(message,
                     "\x12\x01"
                     "1",
                     3);
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 2);
    ck_assert_int_eq(
        strncmp(message, "{\"error\":{\"code\":\"not_found\",\"message\":\"no more\"", 47), 0);
    http_answer_free(&answer);
    stop();
}
END_TEST

/* Every way to get an envelope wrong is answered, in the stream's own way. */
START_TEST(malformed_envelopes_are_refused)
{
    prepare();
    start();
    static const struct {
        const char *body;
        size_t size;
        const char *hint;
    } BAD[] = {
        {"", 0, "the body is empty"},
        {"\0\0\0", 3, "cut off"},
        {"\0\0\0\0\5{}", 7, "promises 5 bytes, 2 came"},
        {"\0\377\377\377\377{}", 7, "promises 4294967295 bytes"},
        {"\0\0\0\0\2{}x", 8, "1 bytes follow"},
        {"\0\0\0\0\2{}\0\0\0\0\2{}", 14, "7 bytes follow"},
        {"\2\0\0\0\2{}", 7, "flags are 0x02"},
        {"\200\0\0\0\2{}", 7, "flags are 0x80"},
        {"\1\0\0\0\2{}", 7, "no header says how"},
        {"\0\0\0\0\0", 5, "send {}"},
        {"\0\0\0\0\1{", 6, "no JSON"},
    };
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        http_answer answer =
            http_ask(at, "POST", "/tribo.v1.Test/Count", STREAM_JSON, BAD[i].body, BAD[i].size);
        ck_assert_int_eq(answer.status, 200);
        ck_assert_uint_eq(answer.body.base[0], 2);
        const char *message = (const char *)answer.body.base + 5;
        ck_assert_msg(strstr(message, "\"invalid_argument\"") != NULL &&
                          strstr(message, BAD[i].hint) != NULL,
                      "%zu: %s without '%s'", i, message, BAD[i].hint);
        http_answer_free(&answer);
    }
    stop();
}
END_TEST

START_TEST(grpc_web_has_trailers_in_the_body)
{
    prepare();
    start();
    size_t position = 0, size = 0;
    const char *message = NULL;
    http_answer answer = post_frame("Count", WEB, 0, "\x08\x02", 2);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(http_value(&answer, "Content-Type"), "application/grpc-web+proto");
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 0);
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 0);
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 0x80);
    ck_assert_mem_eq(message, "grpc-status:0\r\n", 15);
    http_answer_free(&answer);

    /* unary */
    answer = post_frame("Size", WEB, 0, "\x0a\x03mug", 5);
    position = 0;
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 0);
    ck_assert_mem_eq(message, "\x0a\x03mug", 5);
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 0x80);
    http_answer_free(&answer);

    /* an error, with what the header may not hold escaped and the details beside it */
    answer = post_frame("Fail", WEB, 0, "", 0);
    position = 0;
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 0x80);
    ck_assert_ptr_nonnull(strstr(message,
                                 "grpc-status:8\r\ngrpc-message:sessions: \"100 %25\" of 5 "
                                 "%E2%82%AC are open\r\ngrpc-status-details-bin:CA"));
    ck_assert_ptr_nonnull(strstr(message, "retry-after:3\r\n"));
    http_answer_free(&answer);

    /* a method that only gRPC can carry */
    answer = post_frame("PutAsset", WEB, 0, "", 0);
    position = 0;
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 0x80);
    ck_assert_ptr_nonnull(strstr(message, "grpc-status:12\r\n"));
    ck_assert_ptr_nonnull(strstr(message, "CreateAsset"));
    http_answer_free(&answer);
    stop();
}
END_TEST

START_TEST(grpc_web_text_is_base64_in_pieces)
{
    prepare();
    start();
    /* 00 00000002 08 02 in two pieces, each padded: "AAAAAAI=" "CAI=" */
    http_answer answer = post("Count", WEB_TEXT, "AAAAAAI=CAI=");
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(http_value(&answer, "Content-Type"), "application/grpc-web-text+proto");
    tb_error e = {0};
    TEST_OK(http_text_decode(&answer.body, &e), &e);
    size_t position = 0, size = 0;
    const char *message = NULL;
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 0);
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 0);
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 0x80);
    http_answer_free(&answer);
    answer = post("Count", WEB_TEXT, "AAA");
    TEST_OK(http_text_decode(&answer.body, &e), &e);
    ck_assert_ptr_nonnull(strstr((char *)answer.body.base + 5, "grpc-status:3\r\n"));
    http_answer_free(&answer);
    stop();
}
END_TEST

START_TEST(a_client_stream_is_refused_with_a_way_out)
{
    prepare();
    start();
    is_error(post("PutAsset", JSON, "{}"), 415, "invalid_argument", "connect+json");
    http_answer answer = post_frame("PutAsset", STREAM_JSON, 0, "{}", 2);
    ck_assert_int_eq(answer.status, 200);
    const char *message = (const char *)answer.body.base + 5;
    ck_assert_ptr_nonnull(strstr(message, "unimplemented"));
    ck_assert_ptr_nonnull(strstr(message, "CreateAsset"));
    http_answer_free(&answer);
    stop();
}
END_TEST

START_TEST(a_stalled_reader_holds_up_nobody_and_costs_no_memory)
{
    prepare();
    start();
    const int s = http_connect(at);
    http_send(s, "POST", "/tribo.v1.Test/Flood", STREAM_PROTO, "\0\0\0\0\0", 5);
    /* until the socket is full and the flood stands still */
    int before = -1, now = 0;
    for (int i = 0; i < 200 && before != now; i++) {
        usleep(50000);
        before = now;
        pthread_mutex_lock(&seen.lock);
        now = seen.flooded;
        pthread_mutex_unlock(&seen.lock);
        if (now == 0) before = -1;
    }
    ck_assert_int_gt(now, 0);
    ck_assert_int_eq(before, now);
    ck_assert_int_le(seen.most_queued, 4);
    /* others are served meanwhile, on every thread */
    for (int i = 0; i < 32; i++) is_json(post("Late", JSON, "{}"), "{\"nextPageToken\":\"late\"}");
    ck_assert_int_eq(atomic_load(&seen.cancelled), 0);
    /* it goes on when it is read */
    for (bool more = false; !more;) {
        tb_bytes some = {0};
        ck_assert(http_read_more(s, &some));
        tb_bytes_free(&some);
        pthread_mutex_lock(&seen.lock);
        more = seen.flooded > now;
        pthread_mutex_unlock(&seen.lock);
    }
    close(s);
    EVENTUALLY(atomic_load(&seen.cancelled) == 1);
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CALLS_IN_FLIGHT) == 0);
    stop();
}
END_TEST

START_TEST(a_handler_that_floods_is_stopped)
{
    prepare();
    start();
    http_answer answer = post_frame("Burst", STREAM_PROTO, 0, "", 0);
    size_t position = 0, size = 0;
    const char *message = NULL;
    int count = 0;
    while (next_frame(&answer.body, &position, &message, &size) == 0) count++;
    ck_assert_ptr_nonnull(strstr(message, "{\"error\":{\"code\":\"resource_exhausted\""));
    /* four messages of the largest size, and the next ones that went over that */
    ck_assert_int_le(seen.most_queued, 5 * 16 + 2);
    ck_assert_int_le(count, 5 * 16 + 2);
    http_answer_free(&answer);
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CALLS_IN_FLIGHT) == 0);
    stop();
}
END_TEST

/* ---- limits ---------------------------------------------------------------------------------- */

/* Sends a byte every 30 ms; seconds until the other end has enough. */
static double drip(const char *first, const char *drops)
{
    const int s = http_connect(at);
    const double begin = seconds();
    ck_assert(http_write(s, first, strlen(first)));
    for (int i = 0; i < 1000; i++) {
        const char drop = drops[(size_t)i % strlen(drops)];
        if (http_closes(s, 0.03) || !http_write(s, &drop, 1)) {
            close(s);
            return seconds() - begin;
        }
    }
    close(s);
    return INFINITY;
}

START_TEST(a_slowloris_client_is_cut_off)
{
    prepare();
    config.http_timeout_seconds = 0.5;
    start();
    double took = drip("", "a");
    ck_assert_msg(took > 0.3 && took < 5, "in the request line: %g s", took);
    took = drip("GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ", "b");
    ck_assert_msg(took > 0.3 && took < 5, "in the headers: %g s", took);
    took = drip("GET / HTTP/1.1\r\nHost: localhost\r\n", "X: y\r\n");
    ck_assert_msg(took > 0.3 && took < 5, "in many headers: %g s", took);
    took = drip("POST /tribo.v1.Test/Size HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                "application/json\r\nContent-Length: 100000\r\n\r\n",
                " ");
    ck_assert_msg(took > 0.3 && took < 5, "in the body: %g s", took);
    /* so is one that says nothing */
    const int s = http_connect(at);
    ck_assert(http_closes(s, 5));
    close(s);
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_HTTP) == 0);
    stop();
}
END_TEST

START_TEST(bodies_that_are_too_large_are_refused)
{
    prepare();
    start();
    /* by their promise, before they come */
    const int s = http_connect(at);
    http_answer answer;
    const char head[] = "POST /tribo.v1.Test/Size HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                        "application/json\r\nContent-Length: 99999999999\r\n\r\n";
    http_write(s, head, strlen(head));
    ck_assert(http_receive(s, &answer));
    ck_assert_str_eq(http_value(&answer, "Connection"), "close");
    is_error(answer, 413, "resource_exhausted", "1048576 bytes");
    close(s);

    /* in chunks without a promise */
    const int c = http_connect(at);
    const char chunked[] = "POST /tribo.v1.Test/Size HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                           "application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    static char chunk[65536 + 16];
    strcpy(chunk, "10000\r\n");
    memset(chunk + 7, ' ', 65536);
    strcpy(chunk + 7 + 65536, "\r\n");
    http_write(c, chunked, strlen(chunked));
    for (int i = 0; i < 20; i++) http_write(c, chunk, strlen(chunk));
    http_write(c, "0\r\n\r\n", 5);
    ck_assert(http_receive(c, &answer));
    is_error(answer, 413, "resource_exhausted", "1048576 bytes");
    close(c);

    /* a little too large, and sent whole: the answer is read, not a reset */
    char *body = calloc(1, 1200000);
    memset(body, ' ', 1199999);
    is_error(http_ask(at, "POST", "/tribo.v1.Test/Size", JSON, body, 1199999), 413,
             "resource_exhausted", "");
    /* as large as allowed */
    memset(body, ' ', 1048576);
    memcpy(body, "{}", 2);
    is_json(http_ask(at, "POST", "/tribo.v1.Test/Size", JSON, body, 1048576), "{}");
    free(body);
    stop();
}
END_TEST

START_TEST(gzip_both_ways_and_no_bombs)
{
    prepare();
    start();
    static const char GZIP_JSON[] = "Content-Type: application/json\r\nContent-Encoding: gzip\r\n";
    tb_bytes packed = {0}, unpacked = {0};
    tb_error e = {0};
    TEST_OK(http_gzip("{\"name\":\"mug\"}", 14, &packed, &e), &e);
    is_json(http_ask(at, "POST", "/tribo.v1.Test/Size", GZIP_JSON, packed.base, packed.size),
            "{\"sha256\":\"mug\"}");
    is_error(http_ask(at, "POST", "/tribo.v1.Test/Size", GZIP_JSON, packed.base, packed.size - 3),
             400, "invalid_argument", "cut off");
    is_error(http_ask(at, "POST", "/tribo.v1.Test/Size", GZIP_JSON, "{}", 2), 400,
             "invalid_argument", "no gzip");
    /* in an envelope */
    http_answer answer = post_frame("Count",
                                    "Content-Type: application/connect+json\r\n"
                                    "Connect-Content-Encoding: gzip\r\n",
                                    1, packed.base, packed.size);
    ck_assert_ptr_nonnull(strstr((char *)answer.body.base + 5, "name: "));
    http_answer_free(&answer);
    tb_bytes_free(&packed);

    /* 200 MB in 200 KB */
    const size_t bomb = (size_t)200 << 20;
    char *zeros = calloc(1, bomb);
    TEST_OK(http_gzip(zeros, bomb, &packed, &e), &e);
    free(zeros);
    ck_assert_uint_lt(packed.size, 1 << 20);
    is_error(http_ask(at, "POST", "/tribo.v1.Test/Size", GZIP_JSON, packed.base, packed.size), 429,
             "resource_exhausted", "unpacks to more than");
    tb_bytes_free(&packed);

    /* answers */
    answer =
        post("Big", "Content-Type: application/json\r\nAccept-Encoding: br, gzip;q=0.5\r\n", "{}");
    ck_assert_str_eq(http_value(&answer, "Content-Encoding"), "gzip");
    TEST_OK(http_gunzip(answer.body.base, answer.body.size, 1 << 20, &unpacked, &e), &e);
    ck_assert_ptr_nonnull(strstr((char *)unpacked.base, "again and again\"},"));
    ck_assert_uint_lt(answer.body.size, unpacked.size / 10);
    tb_bytes_free(&unpacked);
    http_answer_free(&answer);
    answer = post("Big", "Content-Type: application/json\r\nAccept-Encoding: gzip;q=0\r\n", "{}");
    ck_assert_str_eq(http_value(&answer, "Content-Encoding"), "");
    http_answer_free(&answer);
    answer = post_frame(
        "Big", "Content-Type: application/grpc-web\r\nGrpc-Accept-Encoding: gzip\r\n", 0, "", 0);
    size_t position = 0, size = 0;
    const char *message = NULL;
    ck_assert_str_eq(http_value(&answer, "Grpc-Encoding"), "gzip");
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 1);
    TEST_OK(http_gunzip((const unsigned char *)message, size, 1 << 20, &unpacked, &e), &e);
    ck_assert_uint_eq(next_frame(&answer.body, &position, &message, &size), 0x80);
    tb_bytes_free(&unpacked);
    http_answer_free(&answer);
    stop();
}
END_TEST

START_TEST(connections_and_headers_are_limited)
{
    prepare();
    config.http_connections = 3;
    config.http_header_bytes = 2048;
    start();
    int open[3];
    http_answer answer;
    for (int i = 0; i < 3; i++) {
        open[i] = http_connect(at);
        http_send(open[i], "POST", "/tribo.v1.Test/Size", JSON, "{}", 2);
        ck_assert(http_receive(open[i], &answer));
        is_json(answer, "{}");
    }
    answer = post("Size", JSON, "{}");
    ck_assert_str_eq(http_value(&answer, "Retry-After"), "1");
    is_error(answer, 503, "unavailable", "too many connections are open: the limit is 3");
    answer = http_ask(at, "GET", "/livez", "", "", 0);
    ck_assert_int_eq(answer.status, 200);
    http_answer_free(&answer);
    ck_assert_int_ge(td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_HTTP), 3);
    for (int i = 0; i < 3; i++) close(open[i]);
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_HTTP) == 0);

    char headers[4096] = "Content-Type: application/json\r\nX-Long: ";
    memset(headers + strlen(headers), 'x', 3000);
    strcat(headers, "\r\n");
    is_error(post("Size", headers, "{}"), 431, "resource_exhausted", "at most 2048");
    stop();

    prepare();
    config.http_connections_per_address = 1;
    start();
    const int one = http_connect(at);
    http_send(one, "POST", "/tribo.v1.Test/Size", JSON, "{}", 2);
    ck_assert(http_receive(one, &answer));
    is_json(answer, "{}");
    is_error(post("Size", JSON, "{}"), 503, "unavailable", "from this address");
    close(one);
    stop();
}
END_TEST

/* ---- pages, browsers ------------------------------------------------------------------------- */

static void page_is(const char *path, int status, const char *text)
{
    http_answer answer = http_ask(at, "GET", path, "", "", 0);
    ck_assert_int_eq(answer.status, status);
    ck_assert_msg(strstr((char *)answer.body.base, text) != NULL, "%s: %.300s", path,
                  (char *)answer.body.base);
    http_answer_free(&answer);
}

START_TEST(health_metrics_and_the_status_page)
{
    prepare();
    start();
    page_is("/livez", 200, "alive");
    page_is("/readyz", 200, "ready");
    atomic_store(&server.ready, false);
    page_is("/readyz", 503, "warming up");
    atomic_store(&server.draining, true);
    page_is("/readyz", 503, "stopping");
    atomic_store(&server.alive, false);
    page_is("/livez", 503, "not alive");
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_HTTP) == 0);
    page_is("/metrics", 200, "\ntribod_http_connections 1\n");
    page_is("/", 200, "<title>Tribod</title>");

    http_answer answer = http_ask(at, "HEAD", "/", "", "", 0);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(http_value(&answer, "Content-Type"), "text/html; charset=utf-8");
    ck_assert_str_eq(http_value(&answer, "X-Content-Type-Options"), "nosniff");
    ck_assert_ptr_nonnull(strstr(http_value(&answer, "Content-Security-Policy"),
                                 "default-src 'none'; style-src 'sha256-"));
    http_answer_free(&answer);
    answer = http_ask(at, "OPTIONS", "/livez", "", "", 0);
    ck_assert_int_eq(answer.status, 204);
    ck_assert_str_eq(http_value(&answer, "Allow"), "GET, HEAD, OPTIONS");
    http_answer_free(&answer);
    is_error(http_ask(at, "POST", "/livez", "", "x", 1), 405, "unimplemented", "GET, HEAD");
    stop();
}
END_TEST

START_TEST(other_origins_need_leave)
{
    prepare();
    strcpy(config.cors_origins, "https://lab.example, http://localhost:3000");
    start();
    static const char PREFLIGHT[] = "Origin: http://localhost:3000\r\n"
                                    "Access-Control-Request-Method: POST\r\n"
                                    "Access-Control-Request-Headers: connect-protocol-version\r\n";
    http_answer answer = http_ask(at, "OPTIONS", "/tribo.v1.Test/Size", PREFLIGHT, "", 0);
    ck_assert_int_eq(answer.status, 204);
    ck_assert_str_eq(http_value(&answer, "Access-Control-Allow-Origin"), "http://localhost:3000");
    ck_assert_ptr_nonnull(
        strstr(http_value(&answer, "Access-Control-Allow-Headers"), "Connect-Protocol-Version"));
    ck_assert_ptr_nonnull(strstr(http_value(&answer, "Access-Control-Allow-Methods"), "POST"));
    http_answer_free(&answer);

    answer =
        post("Size", "Content-Type: application/json\r\nOrigin: https://lab.example\r\n", "{}");
    ck_assert_str_eq(http_value(&answer, "Access-Control-Allow-Origin"), "https://lab.example");
    ck_assert_ptr_nonnull(
        strstr(http_value(&answer, "Access-Control-Expose-Headers"), "Grpc-Status"));
    ck_assert_str_eq(http_value(&answer, "Vary"), "Accept-Encoding");
    is_json(answer, "{}");

    /* errors can be read too */
    answer =
        post("Fail", "Content-Type: application/json\r\nOrigin: https://lab.example\r\n", "{}");
    ck_assert_str_eq(http_value(&answer, "Access-Control-Allow-Origin"), "https://lab.example");
    http_answer_free(&answer);

    answer =
        http_ask(at, "OPTIONS", "/tribo.v1.Test/Size", "Origin: https://evil.example\r\n", "", 0);
    ck_assert_str_eq(http_value(&answer, "Access-Control-Allow-Origin"), "");
    http_answer_free(&answer);
    is_error(
        post("Size", "Content-Type: application/json\r\nOrigin: https://evil.example\r\n", "{}"),
        403, "permission_denied", "cors_origins");
    /* the server's own page */
    is_json(post("Size",
                 "Host: localhost:9\r\nContent-Type: application/json\r\n"
                 "Origin: http://localhost:9\r\n",
                 "{}"),
            "{}");
    stop();
}
END_TEST

/* ---- beginning and end ----------------------------------------------------------------------- */

START_TEST(an_address_in_use_is_named)
{
    prepare();
    start();
    td_http *second = NULL;
    tb_error e = {0};
    strcpy(config.http_address, at);
    TEST_STATUS(td_http_create(&server, &second, &e), TB_FAILED_PRECONDITION, &e);
    ck_assert_ptr_null(second);
    ck_assert_ptr_nonnull(strstr(e.message, at));
    static const char *const BAD[] = {"localhost", "", "127.0.0.1:http", "::1:80", "127.0.0.1:"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        strcpy(config.http_address, BAD[i]);
        TEST_STATUS(td_http_create(&server, &second, &e), TB_INVALID_ARGUMENT, &e);
    }
    stop();
}
END_TEST

static void *shut_down(void *limit)
{
    td_http_shutdown(server.http, *(double *)limit);
    return NULL;
}

START_TEST(stopping_lets_calls_finish_and_answers_health)
{
    prepare();
    start();
    pthread_t thread;
    double limit = 20;
    const int s = http_connect(at), w = http_connect(at);
    http_answer answer;
    http_send(s, "POST", "/tribo.v1.Test/Late", JSON, "{\"pageSize\":700}", 16);
    usleep(200000);
    ck_assert_int_eq(pthread_create(&thread, NULL, shut_down, &limit), 0);
    usleep(100000);
    is_error(post("Size", JSON, "{}"), 503, "unavailable", "stopping");
    page_is("/livez", 200, "alive");
    page_is("/readyz", 503, "stopping");
    ck_assert(http_receive(s, &answer));
    is_json(answer, "{\"nextPageToken\":\"late\"}");
    pthread_join(thread, NULL);
    page_is("/livez", 200, "alive");
    close(s);
    close(w);
    stop();

    /* what does not finish in time is told so */
    prepare();
    start();
    limit = 0.2;
    const int v = http_connect(at);
    http_send(v, "POST", "/tribo.v1.Test/Wait", JSON, "{}", 2);
    usleep(200000);
    ck_assert_int_eq(pthread_create(&thread, NULL, shut_down, &limit), 0);
    ck_assert(http_receive(v, &answer));
    is_error(answer, 503, "unavailable", "stopping");
    pthread_join(thread, NULL);
    close(v);
    stop();
}
END_TEST

/* ---- TLS ------------------------------------------------------------------------------------- */

/* A key and a certificate that it signed itself, as two PEM files. */
static void write_certificate(const char *certificate_path, const char *key_path)
{
    gnutls_x509_crt_t certificate;
    gnutls_x509_privkey_t key;
    gnutls_datum_t text;
    tb_error e = {0};
    const unsigned char serial[] = {1};
    gnutls_x509_privkey_init(&key);
    gnutls_x509_crt_init(&certificate);
    ck_assert_int_eq(gnutls_x509_privkey_generate(key, GNUTLS_PK_EDDSA_ED25519, 256, 0), 0);
    gnutls_x509_crt_set_version(certificate, 3);
    gnutls_x509_crt_set_serial(certificate, serial, sizeof serial);
    gnutls_x509_crt_set_activation_time(certificate, time(NULL) - 60);
    gnutls_x509_crt_set_expiration_time(certificate, time(NULL) + 3600);
    gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, "localhost", 9);
    gnutls_x509_crt_set_key(certificate, key);
    gnutls_x509_crt_set_basic_constraints(certificate, 1, 0);
    ck_assert_int_eq(gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA512, 0), 0);
    ck_assert_int_eq(gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &text), 0);
    TEST_OK(tb_file_write(certificate_path, text.data, text.size, &e), &e);
    gnutls_free(text.data);
    ck_assert_int_eq(gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, 0, &text),
                     0);
    TEST_OK(tb_file_write(key_path, text.data, text.size, &e), &e);
    gnutls_free(text.data);
    gnutls_x509_crt_deinit(certificate);
    gnutls_x509_privkey_deinit(key);
}

/* Asks over TLS, with the server's own certificate as the client's if `with_certificate`; appends
 * the answer. */
static void ask_tls(const char *request, bool with_certificate, tb_bytes *answer)
{
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
    char piece[4096];
    ck_assert_int_eq(gnutls_certificate_allocate_credentials(&credentials), 0);
    if (with_certificate)
        ck_assert_int_eq(gnutls_certificate_set_x509_key_file(credentials, config.tls_certificate,
                                                              config.tls_key, GNUTLS_X509_FMT_PEM),
                         0);
    ck_assert_int_eq(gnutls_init(&session, GNUTLS_CLIENT), 0);
    gnutls_set_default_priority(session);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    const int s = http_connect(at);
    gnutls_transport_set_int(session, s);
    ck_assert_int_eq(gnutls_handshake(session), 0);
    ck_assert_int_eq(gnutls_record_send(session, request, strlen(request)), (int)strlen(request));
    for (;;) {
        const ssize_t got = gnutls_record_recv(session, piece, sizeof piece);
        if (got == GNUTLS_E_AGAIN || got == GNUTLS_E_INTERRUPTED) continue;
        if (got <= 0) break;
        ck_assert_int_eq(tb_bytes_append(answer, piece, (size_t)got), TB_OK);
    }
    gnutls_deinit(session);
    gnutls_certificate_free_credentials(credentials);
    close(s);
}

START_TEST(tls_and_certificates_of_clients)
{
    char folder[] = "/tmp/tribo_test_XXXXXX";
    tb_error e = {0};
    tb_bytes answer = {0};
    static const char ASK[] = "POST /tribo.v1.Test/Late HTTP/1.1\r\nHost: localhost\r\nConnection: "
                              "close\r\nContent-Type: application/json\r\nContent-Length: "
                              "15\r\n\r\n{\"pageSize\":20}";
    static const char HEALTH[] =
        "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    prepare();
    snprintf(config.tls_certificate, sizeof config.tls_certificate, "%s/certificate", folder);
    snprintf(config.tls_key, sizeof config.tls_key, "%s/key", folder);
    write_certificate(config.tls_certificate, config.tls_key);
    start();
    ask_tls(ASK, false, &answer);
    ck_assert_ptr_nonnull(strstr((char *)answer.base, "\r\n\r\n{\"nextPageToken\":\"late\"}"));
    tb_bytes_free(&answer);
    /* a client that speaks no TLS is cut off */
    const int plain = http_connect(at);
    http_write(plain, HEALTH, strlen(HEALTH));
    ck_assert(http_closes(plain, 5));
    close(plain);
    stop();

    /* with an authority for clients, theirs is asked for; probes have none */
    prepare();
    snprintf(config.tls_certificate, sizeof config.tls_certificate, "%s/certificate", folder);
    snprintf(config.tls_key, sizeof config.tls_key, "%s/key", folder);
    strcpy(config.tls_client_ca, config.tls_certificate);
    start();
    ask_tls(ASK, true, &answer);
    ck_assert_ptr_nonnull(strstr((char *)answer.base, "HTTP/1.1 200"));
    tb_bytes_free(&answer);
    ask_tls(ASK, false, &answer);
    ck_assert_ptr_nonnull(strstr((char *)answer.base, "HTTP/1.1 403"));
    tb_bytes_free(&answer);
    ask_tls(HEALTH, false, &answer);
    ck_assert_ptr_nonnull(strstr((char *)answer.base, "HTTP/1.1 200"));
    tb_bytes_free(&answer);
    stop();

    /* a key that is none */
    prepare();
    snprintf(config.tls_certificate, sizeof config.tls_certificate, "%s/certificate", folder);
    strcpy(config.tls_key, config.tls_certificate);
    TEST_OK(td_http_create(&server, &server.http, &e), &e);
    TEST_STATUS(td_http_start(server.http, &e), TB_FAILED_PRECONDITION, &e);
    stop();
    remove(config.tls_certificate);
    snprintf(config.tls_key, sizeof config.tls_key, "%s/key", folder);
    remove(config.tls_key);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* Many callers, late answers, and some that leave in the middle: for the sanitizers. */
static void *caller_run(void *context)
{
    unsigned number = *(unsigned *)context;
    for (int i = 0; i < 40; i++) {
        number = number * 1664525 + 1013904223;
        const int s = http_connect(at);
        http_answer answer;
        if (number >> 30 == 0) {
            http_send(s, "POST", "/tribo.v1.Test/Count", STREAM_JSON,
                      "\0\0\0\0\22{\"pageSize\":90000}", 5 + 18);
        } else if (number >> 30 == 1) {
            http_send(s, "POST", "/tribo.v1.Test/Flood", STREAM_PROTO, "\0\0\0\0\0", 5);
        } else {
            http_send(s, "POST", "/tribo.v1.Test/Late", JSON, "{\"pageSize\":3}", 14);
        }
        usleep(number >> 16 & 4095);
        if (number >> 30 == 3 && http_receive(s, &answer)) http_answer_free(&answer);
        close(s);
    }
    return NULL;
}

START_TEST(clients_come_and_go)
{
    prepare();
    start();
    enum { CALLERS = 8 };
    pthread_t threads[CALLERS];
    unsigned numbers[CALLERS];
    for (unsigned i = 0; i < CALLERS; i++) {
        numbers[i] = 77 * i + 1;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, caller_run, &numbers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_HTTP) == 0);
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CALLS_IN_FLIGHT) == 0);
    is_json(post("Size", JSON, "{}"), "{}");
    stop();
}
END_TEST

TEST_MAIN(a_unary_call_in_json_and_in_protobuf, a_connection_is_kept_and_requests_may_come_ahead,
          methods_that_only_read_answer_get, refusals_say_what_would_do,
          errors_carry_details_and_when_to_retry, answers_may_come_late, a_deadline_ends_a_call,
          a_client_that_leaves_cancels_its_call, keys_are_asked_for_and_taken,
          loopback_counts_only_for_those_who_meant_it, a_stream_in_json_ends_with_its_last_frame,
          an_error_after_messages_comes_in_the_last_frame, malformed_envelopes_are_refused,
          grpc_web_has_trailers_in_the_body, grpc_web_text_is_base64_in_pieces,
          a_client_stream_is_refused_with_a_way_out,
          a_stalled_reader_holds_up_nobody_and_costs_no_memory, a_handler_that_floods_is_stopped,
          a_slowloris_client_is_cut_off, bodies_that_are_too_large_are_refused,
          gzip_both_ways_and_no_bombs, connections_and_headers_are_limited,
          health_metrics_and_the_status_page, other_origins_need_leave, an_address_in_use_is_named,
          stopping_lets_calls_finish_and_answers_health, tls_and_certificates_of_clients,
          clients_come_and_go)
