/* A small HTTP client on a bare socket, which can also send invalid requests. */
#ifndef HTTP_UTIL_H
#define HTTP_UTIL_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "test_util.h"

/* Milliseconds that an answer may take before the test fails. */
enum { HTTP_PATIENCE_MS = 20000 };

typedef struct http_answer {
    int status;
    tb_bytes head; /* status line and headers */
    tb_bytes body; /* chunks put together */
} http_answer;

static inline int http_connect(const char *address)
{
    struct sockaddr_in where = {.sin_family = AF_INET};
    const int one = 1;
    where.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_ge(s, 0);
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    ck_assert_int_eq(connect(s, (struct sockaddr *)&where, sizeof where), 0);
    return s;
}

/* False if the other end does not take it any more. */
static inline bool http_write(int s, const void *bytes, size_t size)
{
    const char *p = bytes;
    while (size > 0) {
        const ssize_t sent = send(s, p, size, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        p += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* Appends the next bytes; false at the end of the stream. */
static inline bool http_read_more(int s, tb_bytes *bytes)
{
    char buffer[65536];
    struct pollfd ready = {.fd = s, .events = POLLIN};
    ck_assert_msg(poll(&ready, 1, HTTP_PATIENCE_MS) == 1, "no answer within %d ms",
                  HTTP_PATIENCE_MS);
    const ssize_t got = recv(s, buffer, sizeof buffer, 0);
    if (got <= 0) return false;
    ck_assert_int_eq(tb_bytes_append(bytes, buffer, (size_t)got), TB_OK);
    return true;
}

static inline void http_drop_front(tb_bytes *bytes, size_t size)
{
    memmove(bytes->base, bytes->base + size, bytes->size - size);
    bytes->size -= size;
    bytes->base[bytes->size] = 0;
}

/* Value of a header of the answer, "" if it has none. Lives until the next call. */
static inline const char *http_value(const http_answer *answer, const char *name)
{
    static char value[1024];
    const char *line = (const char *)answer->head.base;
    const size_t length = strlen(name);
    while ((line = strstr(line, "\r\n")) != NULL) {
        line += 2;
        if (strncasecmp(line, name, length) != 0 || line[length] != ':') continue;
        line += length + 1;
        line += strspn(line, " ");
        snprintf(value, sizeof value, "%.*s", (int)strcspn(line, "\r"), line);
        return value;
    }
    return "";
}

/* Reads one answer; `left` keeps the bytes behind it. False if the stream ends before. */
static inline bool http_receive_more(int s, http_answer *answer, tb_bytes *left, bool head)
{
    memset(answer, 0, sizeof *answer);
    const char *end = NULL;
    while (left->size == 0 || (end = strstr((char *)left->base, "\r\n\r\n")) == NULL)
        if (!http_read_more(s, left)) return false;
    const size_t size = (size_t)(end - (char *)left->base) + 4;
    tb_bytes_append(&answer->head, left->base, size);
    http_drop_front(left, size);
    ck_assert_int_eq(sscanf((char *)answer->head.base, "HTTP/1.%*d %d", &answer->status), 1);
    if (answer->status == 100) {
        tb_bytes_free(&answer->head);
        return http_receive_more(s, answer, left, head);
    }
    tb_bytes_append(&answer->body, "", 0);
    if (head || answer->status == 204) return true;
    if (strcasecmp(http_value(answer, "Transfer-Encoding"), "chunked") != 0) {
        const size_t length = (size_t)atoll(http_value(answer, "Content-Length"));
        while (left->size < length)
            if (!http_read_more(s, left)) return false;
        tb_bytes_append(&answer->body, left->base, length);
        if (length > 0) http_drop_front(left, length);
        return true;
    }
    for (;;) {
        while (left->size == 0 || (end = strstr((char *)left->base, "\r\n")) == NULL)
            if (!http_read_more(s, left)) return false;
        const size_t chunk = strtoul((char *)left->base, NULL, 16);
        http_drop_front(left, (size_t)(end - (char *)left->base) + 2);
        while (left->size < chunk + 2)
            if (!http_read_more(s, left)) return false;
        tb_bytes_append(&answer->body, left->base, chunk);
        http_drop_front(left, chunk + 2);
        if (chunk == 0) return true;
    }
}

static inline bool http_receive(int s, http_answer *answer)
{
    tb_bytes left = {0};
    const bool whole = http_receive_more(s, answer, &left, false);
    ck_assert_uint_eq(left.size, 0);
    tb_bytes_free(&left);
    return whole;
}

static inline void http_answer_free(http_answer *answer)
{
    tb_bytes_free(&answer->head);
    tb_bytes_free(&answer->body);
}

/* Sends a request with a body; `headers` are whole lines, each with its line end. */
static inline bool http_send(int s, const char *method, const char *path, const char *headers,
                             const void *body, size_t size)
{
    char head[8192];
    const int length = snprintf(
        head, sizeof head, "%s %s HTTP/1.1\r\n%s%sContent-Length: %zu\r\n\r\n", method, path,
        strstr(headers, "Host:") == NULL ? "Host: localhost\r\n" : "", headers, size);
    ck_assert_int_lt(length, (int)sizeof head);
    return http_write(s, head, (size_t)length) && http_write(s, body, size);
}

/* One request on a connection of its own. */
static inline http_answer http_ask(const char *address, const char *method, const char *path,
                                   const char *headers, const void *body, size_t size)
{
    http_answer answer;
    tb_bytes left = {0};
    const int s = http_connect(address);
    http_send(s, method, path, headers, body, size);
    ck_assert_msg(http_receive_more(s, &answer, &left, strcmp(method, "HEAD") == 0),
                  "%s %s: no whole answer", method, path);
    tb_bytes_free(&left);
    close(s);
    return answer;
}

/* True if the other end closes within `seconds`, whatever it sends before. */
static inline bool http_closes(int s, double seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double end = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec + seconds;
    for (;;) {
        char buffer[4096];
        clock_gettime(CLOCK_MONOTONIC, &now);
        const double left = end - ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
        struct pollfd ready = {.fd = s, .events = POLLIN};
        if (left <= 0 || poll(&ready, 1, (int)(left * 1e3) + 1) == 0) return false;
        if (recv(s, buffer, sizeof buffer, 0) <= 0) return true;
    }
}

#endif
