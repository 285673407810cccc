/* One HTTP/1.1 request to the daemon's own port, in plain text or over TLS. */
#include "probe_command.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/error.h"

enum { PROBE_SECONDS = 5, ANSWER_BYTES = 4096 };

static const char REQUEST[] =
    "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/* Connects to [server] http_address; *descriptor is the caller's to close. */
static tb_status connect_to(const char *address, int *descriptor, tb_error *error)
{
    char host[TD_CONFIG_TEXT_SIZE], service[8];
    uint16_t port;
    if (!td_address_parse(address, host, &port) || port == 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "server.http_address",
                             "--probe needs [server] http_address with a port, not '%s'", address);
    const bool everywhere = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    snprintf(service, sizeof service, "%u", (unsigned)port);
    const int wrong = getaddrinfo(everywhere ? NULL : host, service, &wanted, &found);
    if (wrong != 0) return tb_fail(error, TB_UNAVAILABLE, "%s: %s", address, gai_strerror(wrong));

    int socket_error = ECONNREFUSED;
    for (const struct addrinfo *a = found; a != NULL; a = a->ai_next) {
        const struct timeval limit = {.tv_sec = PROBE_SECONDS};
        const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, a->ai_protocol);
        if (fd < 0) continue;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
            *descriptor = fd;
            socket_error = 0;
            break;
        }
        socket_error = errno;
        close(fd);
    }
    freeaddrinfo(found);
    if (socket_error == 0) return TB_OK;
    return tb_fail(error, TB_UNAVAILABLE, "%s: %s", address, strerror(socket_error));
}

/* Sends REQUEST and reads to the end or to the size of `answer`; bytes read, -1 on a failure. */
static ssize_t ask_plain(int fd, char *answer, size_t size)
{
    size_t used = 0;
    if (send(fd, REQUEST, sizeof REQUEST - 1, MSG_NOSIGNAL) != (ssize_t)sizeof REQUEST - 1)
        return -1;
    while (used < size) {
        const ssize_t n = recv(fd, answer + used, size - used, 0);
        if (n <= 0) break;
        used += (size_t)n;
    }
    return (ssize_t)used;
}

/* The same through TLS, with the daemon's own certificate for a server that asks for one. */
static ssize_t ask_tls(const td_config *config, int fd, char *answer, size_t size)
{
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
    ssize_t used = -1;
    if (gnutls_certificate_allocate_credentials(&credentials) != 0) return -1;
    if (gnutls_init(&session, GNUTLS_CLIENT) != 0) {
        gnutls_certificate_free_credentials(credentials);
        return -1;
    }
    gnutls_certificate_set_x509_key_file(credentials, config->tls_certificate, config->tls_key,
                                         GNUTLS_X509_FMT_PEM);
    gnutls_set_default_priority(session);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    gnutls_transport_set_int(session, fd);
    gnutls_handshake_set_timeout(session, PROBE_SECONDS * 1000);

    int status;
    do status = gnutls_handshake(session);
    while (status < 0 && !gnutls_error_is_fatal(status));
    if (status == 0 && gnutls_record_send(session, REQUEST, sizeof REQUEST - 1) > 0) {
        used = 0;
        while ((size_t)used < size) {
            const ssize_t n = gnutls_record_recv(session, answer + used, size - (size_t)used);
            if (n <= 0) break;
            used += n;
        }
    }
    gnutls_deinit(session);
    gnutls_certificate_free_credentials(credentials);
    return used;
}

tb_status td_probe(const td_config *config, tb_error *error)
{
    char answer[ANSWER_BYTES + 1];
    int fd = -1;
    const tb_status status = connect_to(config->http_address, &fd, error);
    if (status != TB_OK) return status;
    const ssize_t size = *config->tls_certificate != '\0'
                             ? ask_tls(config, fd, answer, ANSWER_BYTES)
                             : ask_plain(fd, answer, ANSWER_BYTES);
    close(fd);
    if (size <= 0)
        return tb_fail(error, TB_UNAVAILABLE, "%s: no answer within %d s", config->http_address,
                       PROBE_SECONDS);
    answer[size] = '\0';

    /* the first line of the body says "ready", or why not */
    const char *body = strstr(answer, "\r\n\r\n");
    body = body != NULL ? body + 4 : "";
    const int length = (int)strcspn(body, "\r\n");
    if (strncmp(answer, "HTTP/1.1 200", 12) == 0)
        return printf("%.*s\n", length, body) < 0
                   ? tb_fail(error, TB_INTERNAL, "standard output: %s", strerror(errno))
                   : TB_OK;
    return tb_fail(error, TB_UNAVAILABLE, "%s: not ready: %.*s", config->http_address, length,
                   body);
}
