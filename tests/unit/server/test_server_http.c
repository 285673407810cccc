/* Calls over HTTP through real sockets: Connect and gRPC-Web, unary and streaming. */
#include "server/http_server_util.h"

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
    TEST_OK(td_auth_create_key(
                server.db, "planner",
                &(td_key_terms){.scope = TD_SCOPE_RUN, .calls_per_second = 0, .sessions = 0}, key,
                &e),
            &e);
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

START_TEST(a_stream_by_get_is_server_sent_events)
{
    prepare();
    start();
    http_answer answer =
        http_ask(at, "GET", "/tribo.v1.Test/Count?message=%7B%22pageSize%22%3A2%7D",
                 "Accept: text/event-stream\r\nAccept-Encoding: gzip\r\n", "", 0);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(http_value(&answer, "Content-Type"), "text/event-stream");
    ck_assert_str_eq((const char *)answer.body.base,
                     "data: {\"nextPageToken\":\"0\"}\n\ndata: {\"nextPageToken\":\"1\"}\n\n"
                     "event: end\ndata: {}\n\n");
    http_answer_free(&answer);
    answer = http_ask(at, "GET", "/tribo.v1.Test/Count?message=%7B%22pageToken%22%3A%22fail%22%7D",
                      "", "", 0);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_ptr_nonnull(strstr((const char *)answer.body.base, "event: end\ndata: {\"error\":"));
    http_answer_free(&answer);
    is_error(http_ask(at, "GET", "/tribo.v1.Test/Count?encoding=proto", "", "", 0), 415,
             "invalid_argument", "events are JSON");
    is_error(http_ask(at, "GET", "/tribo.v1.Test/Late?arrays=octal", "", "", 0), 400,
             "invalid_argument", "plain and base64");
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

    /* an error, with characters escaped that the header may not hold and the details beside it */
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
    /* until the socket is full and the flood stops */
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
    /* the stream continues when it is read */
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

TEST_MAIN(a_unary_call_in_json_and_in_protobuf, a_connection_is_kept_and_requests_may_come_ahead,
          methods_that_only_read_answer_get, refusals_say_what_would_do,
          errors_carry_details_and_when_to_retry, answers_may_come_late, a_deadline_ends_a_call,
          a_client_that_leaves_cancels_its_call, keys_are_asked_for_and_taken,
          loopback_counts_only_for_those_who_meant_it, a_stream_in_json_ends_with_its_last_frame,
          a_stream_by_get_is_server_sent_events, an_error_after_messages_comes_in_the_last_frame,
          malformed_envelopes_are_refused, grpc_web_has_trailers_in_the_body,
          grpc_web_text_is_base64_in_pieces, a_client_stream_is_refused_with_a_way_out,
          a_stalled_reader_holds_up_nobody_and_costs_no_memory, a_handler_that_floods_is_stopped,
          gzip_both_ways_and_no_bombs)
