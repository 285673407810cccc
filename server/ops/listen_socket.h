/* Sockets that the transports listen on. */
#ifndef TD_LISTEN_SOCKET_H
#define TD_LISTEN_SOCKET_H

#include <netdb.h>

/* Connections that wait to be accepted. */
enum { TD_LISTEN_BACKLOG = 1024 };

/* A non-blocking TCP socket that is bound to the address and listens; an IPv6 one takes IPv4 as well.
 * -1 and errno on failure. */
int td_listen_socket(const struct addrinfo *where);

#endif
