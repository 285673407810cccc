/* The listening socket. This code binds it instead of libmicrohttpd, so that an error names an
 * address in use and the caller can read the port chosen for port 0. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "ops/listen_socket.h"
#include "transport/http/http_internal.h"

void http_peer_print(const struct sockaddr *address, char peer[HTTP_PEER_SIZE])
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const void *)address;
        inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
        snprintf(peer, HTTP_PEER_SIZE, "%s:%u", text, ntohs(four->sin_port));
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const void *)address;
        inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
        snprintf(peer, HTTP_PEER_SIZE, "[%s]:%u", text, ntohs(six->sin6_port));
    } else {
        snprintf(peer, HTTP_PEER_SIZE, "unknown");
    }
}

bool http_peer_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const void *)address;
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa_family == AF_INET6) {
        const struct in6_addr *six =
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
    }
    return false;
}

/* "HOST:PORT" apart; brackets of IPv6 taken off. False if it is not of that form. */
static bool split(const char *address, char host[TD_CONFIG_TEXT_SIZE], const char **port)
{
    const char *colon = strrchr(address, ':');
    if (colon == NULL || colon[1] == '\0' || colon - address >= TD_CONFIG_TEXT_SIZE) return false;
    size_t length = (size_t)(colon - address);
    const char *begin = address;
    if (length >= 2 && begin[0] == '[' && begin[length - 1] == ']') {
        begin++;
        length -= 2;
    } else if (memchr(begin, ':', length) != NULL) {
        return false;
    }
    memcpy(host, begin, length);
    host[length] = '\0';
    *port = colon + 1;
    return strspn(*port, "0123456789") == strlen(*port);
}

tb_status http_listen(const char *address, int *listener, bool *ipv6,
                      char bound[TD_CONFIG_TEXT_SIZE], tb_error *error)
{
    char host[TD_CONFIG_TEXT_SIZE];
    const char *port = NULL;
    if (!split(address, host, &port))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "http_address",
                             "http_address: '%s' is not HOST:PORT", address);
    struct addrinfo *found = NULL;
    const struct addrinfo want = {.ai_family = AF_UNSPEC,
                                  .ai_socktype = SOCK_STREAM,
                                  .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    const bool any = host[0] == '\0' || strcmp(host, "*") == 0;
    const int result = getaddrinfo(any ? NULL : host, port, &want, &found);
    if (result != 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "http_address", "http_address: '%s': %s",
                             address, gai_strerror(result));

    int s = -1, why = 0;
    for (const struct addrinfo *a = found; a != NULL && s < 0; a = a->ai_next) {
        s = td_listen_socket(a);
        why = errno;
        *ipv6 = a->ai_family == AF_INET6;
    }
    freeaddrinfo(found);
    if (s < 0)
        return tb_fail_field(error, TB_FAILED_PRECONDITION, "http_address",
                             "http_address: cannot listen on %s: %s", address, strerror(why));

    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    char text[HTTP_PEER_SIZE];
    if (getsockname(s, (struct sockaddr *)&name, &size) != 0) {
        close(s);
        return tb_fail(error, TB_INTERNAL, "getsockname: %s", strerror(errno));
    }
    http_peer_print((const struct sockaddr *)&name, text);
    snprintf(bound, TD_CONFIG_TEXT_SIZE, "%s", text);
    *listener = s;
    return TB_OK;
}
