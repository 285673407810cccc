/* See listen_socket.h. */
#include "ops/listen_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

int td_listen_socket(const struct addrinfo *where)
{
    const int one = 1, zero = 0;
    const int s = socket(where->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s < 0) return -1;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (where->ai_family == AF_INET6) setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(s, where->ai_addr, where->ai_addrlen) == 0 && listen(s, TD_LISTEN_BACKLOG) == 0)
        return s;
    const int why = errno;
    close(s);
    errno = why;
    return -1;
}
