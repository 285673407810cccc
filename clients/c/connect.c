/* Sockets and TLS handshakes, each until a deadline. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client_internal.h"

static const char UNIX_PREFIX[] = "unix:";
static const char PRIORITIES[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

int64_t tbc_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t tbc_deadline_ns(double seconds)
{
    const double longest = 1e9;
    if (!(seconds > 0)) return INT64_MAX;
    return tbc_now_ns() + (int64_t)((seconds < longest ? seconds : longest) * 1e9);
}

/* Waits for an event of the socket; false if the deadline comes first. */
static bool wait_for(int socket, short events, int64_t deadline_ns)
{
    struct pollfd p = {.fd = socket, .events = events};
    for (;;) {
        const int64_t left = deadline_ns - tbc_now_ns(), longest = 3600000000000;
        if (left <= 0) return false;
        const int result = poll(&p, 1, (int)((left < longest ? left : longest) / 1000000) + 1);
        if (result > 0) return true;
        if (result < 0 && errno != EINTR) return false;
    }
}

static int dial_one(int family, const struct sockaddr *address, socklen_t size, int64_t deadline_ns,
                    char reason[TBC_REASON_SIZE])
{
    const int one = 1;
    int why = 0;
    socklen_t length = sizeof why;
    const int s = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s < 0) {
        snprintf(reason, TBC_REASON_SIZE, "%s", strerror(errno));
        return -1;
    }
    if (family != AF_UNIX) setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(s, address, size) == 0) return s;
    why = errno;
    if (why == EINPROGRESS) {
        why = ETIMEDOUT;
        if (wait_for(s, POLLOUT, deadline_ns)) getsockopt(s, SOL_SOCKET, SO_ERROR, &why, &length);
        if (why == 0) return s;
    }
    snprintf(reason, TBC_REASON_SIZE, "%s", strerror(why));
    close(s);
    return -1;
}

static int dial_unix(const char *path, int64_t deadline_ns, char reason[TBC_REASON_SIZE])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strncmp(path, "//", 2) == 0) path += 2;
    if (strlen(path) >= sizeof address.sun_path) {
        snprintf(reason, TBC_REASON_SIZE, "the path of a socket is too long");
        return -1;
    }
    strcpy(address.sun_path, path);
    return dial_one(AF_UNIX, (const struct sockaddr *)&address, sizeof address, deadline_ns,
                    reason);
}

void tbc_host_of(const char *address, char host[TBC_REASON_SIZE])
{
    const char *colon = strrchr(address, ':');
    const size_t length = colon != NULL ? (size_t)(colon - address) : strlen(address);
    if (strncmp(address, UNIX_PREFIX, sizeof UNIX_PREFIX - 1) == 0)
        snprintf(host, TBC_REASON_SIZE, "localhost");
    else if (length >= 2 && address[0] == '[' && address[length - 1] == ']')
        snprintf(host, TBC_REASON_SIZE, "%.*s", (int)length - 2, address + 1);
    else
        snprintf(host, TBC_REASON_SIZE, "%.*s", (int)length, address);
}

int tbc_dial(const char *address, int64_t deadline_ns, char reason[TBC_REASON_SIZE])
{
    const struct addrinfo want = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[TBC_REASON_SIZE];
    if (strncmp(address, UNIX_PREFIX, sizeof UNIX_PREFIX - 1) == 0)
        return dial_unix(address + sizeof UNIX_PREFIX - 1, deadline_ns, reason);
    const char *colon = strrchr(address, ':');
    if (colon == NULL || colon[1] == '\0') {
        snprintf(reason, TBC_REASON_SIZE, "the address is not HOST:PORT");
        return -1;
    }
    tbc_host_of(address, host);
    const int result = getaddrinfo(host, colon + 1, &want, &found);
    if (result != 0) {
        snprintf(reason, TBC_REASON_SIZE, "%s", gai_strerror(result));
        return -1;
    }
    int s = -1;
    for (const struct addrinfo *a = found; a != NULL && s < 0; a = a->ai_next)
        s = dial_one(a->ai_family, a->ai_addr, a->ai_addrlen, deadline_ns, reason);
    freeaddrinfo(found);
    return s;
}

static int shake_hands(gnutls_session_t tls, int socket, int64_t deadline_ns)
{
    for (;;) {
        const int result = gnutls_handshake(tls);
        if (result == 0 || gnutls_error_is_fatal(result)) return result;
        if (result != GNUTLS_E_AGAIN) continue;
        const short events = gnutls_record_get_direction(tls) ? POLLOUT : POLLIN;
        if (!wait_for(socket, events, deadline_ns)) return GNUTLS_E_TIMEDOUT;
    }
}

gnutls_session_t tbc_secure(int socket, const tbc_target *target, int64_t deadline_ns,
                            char reason[TBC_REASON_SIZE])
{
    unsigned char protocol[] = "h2";
    const gnutls_datum_t h2 = {.data = protocol, .size = 2};
    gnutls_session_t tls = NULL;
    gnutls_datum_t chosen = {0};
    int result = gnutls_init(&tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
    if (result == 0) {
        gnutls_transport_set_int(tls, socket);
        if (target->host[0] != '\0' &&
            strspn(target->host, "0123456789.:abcdefABCDEF") != strlen(target->host))
            gnutls_server_name_set(tls, GNUTLS_NAME_DNS, target->host, strlen(target->host));
        gnutls_session_set_verify_cert(tls, target->host, 0);
        result = gnutls_priority_set_direct(tls, PRIORITIES, NULL);
    }
    if (result == 0)
        result = gnutls_credentials_set(tls, GNUTLS_CRD_CERTIFICATE, target->credentials);
    if (result == 0) result = gnutls_alpn_set_protocols(tls, &h2, 1, GNUTLS_ALPN_MANDATORY);
    if (result == 0) result = shake_hands(tls, socket, deadline_ns);
    if (result == 0) result = gnutls_alpn_get_selected_protocol(tls, &chosen);
    if (result == 0) return tls;
    snprintf(reason, TBC_REASON_SIZE, "TLS: %s", gnutls_strerror(result));
    if (tls != NULL) gnutls_deinit(tls);
    return NULL;
}
