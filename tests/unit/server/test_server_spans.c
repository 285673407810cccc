/* URLs, the HTTP requests that carry spans, and the answers that collectors give. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ops/clock.h"
#include "ops/config.h"
#include "test_util.h"
#include "trace/otlp.h"
#include "trace/post.h"

/* ---- a server of one answer ---- */

typedef struct server {
    int listener;
    const char *answer; /* NULL: none */
    bool keeps_open;    /* until the client closes */
    char request[4096];
    pthread_t thread;
    char url[64];
} server;

static void *serve(void *context)
{
    server *s = context;
    const int fd = accept(s->listener, NULL, NULL);
    size_t used = 0;
    if (fd < 0) return NULL;
    while (strstr(s->request, "the body") == NULL) {
        const ssize_t n = recv(fd, s->request + used, sizeof s->request - 1 - used, 0);
        if (n <= 0) break;
        used += (size_t)n;
    }
    if (s->answer != NULL) (void)send(fd, s->answer, strlen(s->answer), MSG_NOSIGNAL);
    char rest;
    if (s->keeps_open) (void)recv(fd, &rest, 1, 0);
    close(fd);
    return NULL;
}

static void start(server *s)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof where;
    s->listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(s->listener, (struct sockaddr *)&where, size), 0);
    ck_assert_int_eq(listen(s->listener, 1), 0);
    ck_assert_int_eq(getsockname(s->listener, (struct sockaddr *)&where, &size), 0);
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u/base", (unsigned)ntohs(where.sin_port));
    ck_assert_int_eq(pthread_create(&s->thread, NULL, serve, s), 0);
}

static tb_status post_once(server *s, double seconds, td_post_answer *answer, tb_error *error)
{
    static atomic_bool never;
    td_post *post = NULL;
    start(s);
    const td_post_options options = {.url = s->url,
                                     .path = "/v1/traces",
                                     .type = "text/plain",
                                     .headers = "X-One: two\r\n",
                                     .ca = "",
                                     .stop = &never};
    TEST_OK(td_post_create(&options, &post, error), error);
    const tb_status status = td_post_send(post, "the body", 8, seconds, answer, error);
    td_post_destroy(post);
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
    return status;
}

START_TEST(a_request_is_answered)
{
    static const struct {
        const char *answer, *body;
        int status;
        double retry_after;
    } CASES[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "abc", 200, 0},
        {"HTTP/1.0 200 OK\r\n\r\nto the end", "to the end", 200, 0},
        {"HTTP/1.1 503 Busy\r\nretry-after:  7\r\nContent-Length: 0\r\n\r\n", "", 503, 7},
        {"HTTP/1.1 429 Busy\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n\r\n", "", 429, 0},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
         "chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
         "abcde", 200, 0},
        /* a chunk that is cut, and one that is longer than the answer */
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", "", 200, 0},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab\r\n", "", 200,
         0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        server s = {.answer = CASES[i].answer};
        td_post_answer answer;
        tb_error error = {0};
        TEST_OK(post_once(&s, 20, &answer, &error), &error);
        ck_assert_int_eq(answer.status, CASES[i].status);
        TEST_NEAR(answer.retry_after, CASES[i].retry_after, 0);
        ck_assert_uint_eq(answer.size, strlen(CASES[i].body));
        ck_assert_mem_eq(answer.body, CASES[i].body, answer.size);
        ck_assert_ptr_nonnull(
            strstr(s.request, "POST /base/v1/traces HTTP/1.1\r\nHost: 127.0.0.1:"));
        ck_assert_ptr_nonnull(strstr(s.request, "\r\nX-One: two\r\n"));
        ck_assert_ptr_nonnull(strstr(s.request, "\r\nContent-Length: 8\r\n\r\nthe body"));
    }
}
END_TEST

START_TEST(an_answer_with_its_length_needs_no_end)
{
    server s = {.answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", .keeps_open = true};
    td_post_answer answer;
    tb_error error = {0};
    TEST_OK(post_once(&s, 20, &answer, &error), &error);
    ck_assert_uint_eq(answer.size, 2);
}
END_TEST

START_TEST(other_answers_are_failures)
{
    static const char *const WRONG[] = {"", "HTTP/2 200\r\n\r\n", "ready\r\n\r\n", "HTTP/1.1 200",
                                        "HTTP/1.1 abc\r\n\r\n"};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        server s = {.answer = WRONG[i]};
        td_post_answer answer;
        tb_error error = {0};
        ck_assert_int_eq(post_once(&s, 20, &answer, &error), TB_UNAVAILABLE);
        ck_assert_ptr_nonnull(strstr(error.message, "127.0.0.1:"));
    }
}
END_TEST

START_TEST(a_silent_server_is_left)
{
    server s = {.answer = NULL, .keeps_open = true};
    td_post_answer answer;
    tb_error error = {0};
    const int64_t began = td_monotonic_ns();
    ck_assert_int_eq(post_once(&s, 0.2, &answer, &error), TB_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(error.message, "in time"));
    ck_assert(td_monotonic_ns() - began >= 150000000);
}
END_TEST

START_TEST(urls_are_split)
{
    static const struct {
        const char *url, *host, *path;
        uint16_t port;
        bool tls;
    } RIGHT[] = {
        {"http://collector:4318", "collector", "", 4318, false},
        {"https://a.example/otlp/", "a.example", "/otlp", 443, true},
        {"http://[::1]:4318/", "::1", "", 4318, false},
        {"http://[::1]", "::1", "", 80, false},
    };
    static const char *const WRONG[] = {"",           "collector:4318",    "http://",
                                        "http://:80", "http://a:0",        "http://a:70000",
                                        "ftp://a",    "http://a/?b=c",     "http://a/#b",
                                        "http://a b", "http://user@a:4318"};
    td_url url;
    for (size_t i = 0; i < sizeof RIGHT / sizeof *RIGHT; i++) {
        ck_assert_msg(td_url_parse(RIGHT[i].url, &url), "%s", RIGHT[i].url);
        ck_assert_str_eq(url.host, RIGHT[i].host);
        ck_assert_str_eq(url.path, RIGHT[i].path);
        ck_assert_uint_eq(url.port, RIGHT[i].port);
        ck_assert_int_eq(url.tls, RIGHT[i].tls);
    }
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++)
        ck_assert_msg(!td_url_parse(WRONG[i], &url), "%s", WRONG[i]);
}
END_TEST

START_TEST(refused_spans_are_read)
{
    /* ExportTraceServiceResponse {partial_success {rejected_spans: 3 error_message: "no"}} */
    static const uint8_t BODY[] = {0x0a, 0x06, 0x08, 0x03, 0x12, 0x02, 'n', 'o'};
    char message[32];
    ck_assert_int_eq(td_otlp_rejected(BODY, sizeof BODY, message, sizeof message), 3);
    ck_assert_str_eq(message, "no");
    ck_assert_int_eq(td_otlp_rejected(BODY, 0, message, sizeof message), 0);
    ck_assert_int_eq(td_otlp_rejected(BODY, sizeof BODY - 1, message, sizeof message), 0);
}
END_TEST

TEST_MAIN(a_request_is_answered, an_answer_with_its_length_needs_no_end, other_answers_are_failures,
          a_silent_server_is_left, urls_are_split, refused_spans_are_read)
