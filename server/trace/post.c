/* See post.h. */
#include "trace/post.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "ops/clock.h"
#include "ops/config.h"

struct td_post {
    td_url url;
    char *head; /* request line and headers without Content-Length */
    const atomic_bool *stop;
    gnutls_certificate_credentials_t credentials; /* NULL: plain text */
};

/* ---- life ---- */

static tb_status load_authorities(td_post *post, const char *ca, tb_error *error)
{
    if (gnutls_certificate_allocate_credentials(&post->credentials) != 0)
        return tb_fail_memory(error, 0, "certificates");
    const int found = *ca != '\0' ? gnutls_certificate_set_x509_trust_file(post->credentials, ca,
                                                                           GNUTLS_X509_FMT_PEM)
                                  : gnutls_certificate_set_x509_system_trust(post->credentials);
    if (found > 0) return TB_OK;
    return tb_fail_field(error, TB_NOT_FOUND, "ca", "no certificate authorities in '%s'%s%s",
                         *ca != '\0' ? ca : "the machine's list", found < 0 ? ": " : "",
                         found < 0 ? gnutls_strerror(found) : "");
}

/* "Host" names the port where it is not the usual one of the scheme. */
static char *make_head(const td_url *url, const td_post_options *options)
{
    char *head = NULL, port[8] = "";
    size_t size = 0;
    FILE *out = open_memstream(&head, &size);
    if (out == NULL) return NULL;
    if (url->port != (url->tls ? 443 : 80)) snprintf(port, sizeof port, ":%u", url->port);
    const bool six = strchr(url->host, ':') != NULL;
    fprintf(out,
            "POST %s%s HTTP/1.1\r\nHost: %s%s%s%s\r\nConnection: close\r\nUser-Agent: "
            "tribod/" TB_VERSION "\r\nContent-Type: %s\r\n%s",
            url->path, options->path, six ? "[" : "", url->host, six ? "]" : "", port,
            options->type, options->headers);
    if (fclose(out) == 0) return head;
    free(head);
    return NULL;
}

tb_status td_post_create(const td_post_options *options, td_post **created, tb_error *error)
{
    *created = NULL;
    td_post *post = calloc(1, sizeof *post);
    if (post == NULL) return tb_fail_memory(error, sizeof *post, "a connection");
    tb_status status = TB_OK;
    post->stop = options->stop;
    if (!td_url_parse(options->url, &post->url))
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, "url", "'%.160s' is no http:// URL",
                               options->url);
    if (status == TB_OK && (post->head = make_head(&post->url, options)) == NULL)
        status = tb_fail_memory(error, 0, "a request");
    if (status == TB_OK && post->url.tls) status = load_authorities(post, options->ca, error);
    if (status == TB_OK)
        *created = post;
    else
        td_post_destroy(post);
    return status;
}

void td_post_destroy(td_post *post)
{
    if (post == NULL) return;
    if (post->credentials != NULL) gnutls_certificate_free_credentials(post->credentials);
    free(post->head);
    free(post);
}

/* ---- one connection ---- */

typedef struct connection {
    const td_post *post;
    int fd;
    gnutls_session_t session; /* NULL: plain text */
    int64_t deadline_ns;
    const char *failure; /* why it ended */
} connection;

/* Waits until the socket is ready; false at the deadline or after a request to stop. */
static bool wait_for_socket(connection *c, short events)
{
    enum { TURN_MS = 50 };
    for (;;) {
        const int64_t left_ms = (c->deadline_ns - td_monotonic_ns()) / 1000000;
        struct pollfd wanted = {.fd = c->fd, .events = events};
        const bool stopped = atomic_load(c->post->stop);
        if (stopped || left_ms <= 0) {
            c->failure = stopped ? "the daemon ends" : "no answer in time";
            return false;
        }
        if (poll(&wanted, 1, left_ms < TURN_MS ? (int)left_ms + 1 : TURN_MS) > 0) return true;
    }
}

/* Connects to one address of the host. */
static bool connect_to(connection *c, const struct addrinfo *a)
{
    int fault = 0;
    socklen_t size = sizeof fault;
    c->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    c->failure = strerror(errno);
    if (c->fd < 0) return false;
    if (connect(c->fd, a->ai_addr, a->ai_addrlen) == 0) return true;
    if (errno == EINPROGRESS) {
        if (!wait_for_socket(c, POLLOUT)) return false;
        if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &fault, &size) != 0) fault = errno;
        if (fault == 0) return true;
        errno = fault;
    }
    c->failure = strerror(errno);
    return false;
}

static bool open_socket(connection *c)
{
    const td_url *url = &c->post->url;
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char service[8];
    snprintf(service, sizeof service, "%u", (unsigned)url->port);
    const int wrong = getaddrinfo(url->host, service, &wanted, &found);
    if (wrong != 0) {
        c->failure = gai_strerror(wrong);
        return false;
    }
    bool good = false;
    for (const struct addrinfo *a = found; a != NULL && !good; a = a->ai_next) {
        good = connect_to(c, a);
        if (!good && c->fd >= 0) close(c->fd);
        if (!good) c->fd = -1;
    }
    freeaddrinfo(found);
    return good;
}

/* After GnuTLS asked to be called again; false where the connection failed. */
static bool again(connection *c, ssize_t code)
{
    if (code != GNUTLS_E_AGAIN && code != GNUTLS_E_INTERRUPTED) {
        c->failure = gnutls_strerror((int)code);
        return gnutls_error_is_fatal((int)code) == 0;
    }
    return wait_for_socket(c, gnutls_record_get_direction(c->session) == 1 ? POLLOUT : POLLIN);
}

static bool start_tls(connection *c)
{
    const char *host = c->post->url.host;
    c->failure = "out of memory";
    if (gnutls_init(&c->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) != 0)
        return false;
    gnutls_set_default_priority(c->session);
    gnutls_credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, c->post->credentials);
    gnutls_server_name_set(c->session, GNUTLS_NAME_DNS, host, strlen(host));
    gnutls_session_set_verify_cert(c->session, host, 0);
    gnutls_transport_set_int(c->session, c->fd);
    for (int code; (code = gnutls_handshake(c->session)) != 0;)
        if (!again(c, code)) return false;
    return true;
}

static bool send_all(connection *c, const void *bytes, size_t size)
{
    for (size_t sent = 0; sent < size;) {
        const char *rest = (const char *)bytes + sent;
        const ssize_t n = c->session != NULL ? gnutls_record_send(c->session, rest, size - sent)
                                             : send(c->fd, rest, size - sent, MSG_NOSIGNAL);
        if (n >= 0) {
            sent += (size_t)n;
        } else if (c->session != NULL) {
            if (!again(c, n)) return false;
        } else if (errno != EINTR) {
            c->failure = strerror(errno);
            if (errno != EAGAIN || !wait_for_socket(c, POLLOUT)) return false;
        }
    }
    return true;
}

/* Bytes read; 0 at the end or on a failure. */
static size_t receive(connection *c, char *bytes, size_t room)
{
    for (;;) {
        const ssize_t n = c->session != NULL ? gnutls_record_recv(c->session, bytes, room)
                                             : recv(c->fd, bytes, room, 0);
        if (n >= 0) return (size_t)n;
        if (c->session != NULL) {
            if (!again(c, n)) return 0;
        } else if (errno != EINTR) {
            c->failure = strerror(errno);
            if (errno != EAGAIN || !wait_for_socket(c, POLLIN)) return 0;
        }
    }
}

/* ---- the answer ---- */

/* The value of a header in the lines before `end`; NULL: there is none. */
static const char *find_header(const char *head, const char *end, const char *name)
{
    const size_t length = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line != NULL && line < end;
         line = strstr(line + 2, "\r\n")) {
        const char *at = line + 2;
        if (strncasecmp(at, name, length) != 0 || at[length] != ':') continue;
        at += length + 1;
        return at + strspn(at, " \t");
    }
    return NULL;
}

/* Joins chunks in place; the size of the body, 0 where one is malformed or cut. */
static size_t join_chunks(char *body, size_t size)
{
    size_t used = 0, at = 0;
    for (;;) {
        char *end = NULL;
        if (at >= size) return 0;
        const unsigned long chunk = strtoul(body + at, &end, 16);
        const char *line = end != body + at ? strstr(end, "\r\n") : NULL;
        if (line == NULL) return 0;
        const size_t begin = (size_t)(line + 2 - body);
        if (chunk == 0) return used;
        if (chunk > size || begin + chunk > size) return 0;
        memmove(body + used, body + begin, chunk);
        used += chunk;
        at = begin + chunk + 2;
    }
}

/* Reads up to the end of the answer or the capacity of the array. */
static size_t read_answer(connection *c, char *text, size_t room)
{
    size_t used = 0, needed = SIZE_MAX;
    while (used < needed && used < room - 1) {
        const size_t n = receive(c, text + used, room - 1 - used);
        if (n == 0) break;
        used += n;
        text[used] = '\0';
        const char *end = strstr(text, "\r\n\r\n");
        if (end == NULL || needed != SIZE_MAX) continue;
        const char *length = find_header(text, end, "Content-Length");
        if (length != NULL) needed = (size_t)(end + 4 - text) + strtoul(length, NULL, 10);
    }
    text[used] = '\0';
    return used;
}

static bool parse_answer(char *text, size_t used, td_post_answer *answer)
{
    const char *end = strstr(text, "\r\n\r\n");
    *answer = (td_post_answer){0};
    if (end == NULL || sscanf(text, "HTTP/1.%*1[01] %3d", &answer->status) != 1) return false;
    const char *retry = find_header(text, end, "Retry-After");
    if (retry != NULL) answer->retry_after = strtod(retry, NULL);
    if (!(answer->retry_after >= 0)) answer->retry_after = 0;
    char *body = text + (end + 4 - text);
    size_t size = used - (size_t)(body - text);
    const char *coding = find_header(text, end, "Transfer-Encoding");
    if (coding != NULL && strncasecmp(coding, "chunked", 7) == 0) size = join_chunks(body, size);
    if (size > sizeof answer->body) size = 0;
    memcpy(answer->body, body, size);
    answer->size = size;
    return true;
}

/* ---- a request ---- */

static bool exchange(connection *c, const void *body, size_t size, td_post_answer *answer)
{
    enum { HEAD_BYTES = 4096 };
    char length[48], text[TD_POST_ANSWER_BYTES + HEAD_BYTES];
    const int digits = snprintf(length, sizeof length, "Content-Length: %zu\r\n\r\n", size);
    if (!open_socket(c) || (c->post->url.tls && !start_tls(c))) return false;
    if (!send_all(c, c->post->head, strlen(c->post->head)) ||
        !send_all(c, length, (size_t)digits) || !send_all(c, body, size))
        return false;
    c->failure = "the connection was closed";
    const size_t used = read_answer(c, text, sizeof text);
    if (used > 0 && parse_answer(text, used, answer)) return true;
    if (used > 0) c->failure = "the answer is not HTTP/1.1";
    return false;
}

tb_status td_post_send(td_post *post, const void *body, size_t size, double seconds,
                       td_post_answer *answer, tb_error *error)
{
    connection c = {.post = post,
                    .fd = -1,
                    .deadline_ns = td_monotonic_ns() + (int64_t)(seconds * 1e9),
                    .failure = ""};
    const bool good = exchange(&c, body, size, answer);
    if (c.session != NULL) gnutls_deinit(c.session);
    if (c.fd >= 0) close(c.fd);
    if (good) return TB_OK;
    return tb_fail(error, TB_UNAVAILABLE, "%s:%u: %s", post->url.host, (unsigned)post->url.port,
                   c.failure);
}
