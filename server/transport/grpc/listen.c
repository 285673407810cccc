/* Listening sockets, and accepting connections within limits.
 *
 * A process without free descriptors cannot accept, but its listener stays ready: a thread that
 * polls it would spin, and closing the listener would end the service. The transport therefore
 * keeps one spare descriptor. It closes the spare, accepts the waiting connection, closes that
 * connection to notify the client, and reopens the spare; if accepting still fails, the listeners
 * pause briefly. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "ops/listen_socket.h"
#include "transport/grpc/grpc_internal.h"

enum { ACCEPTS_AT_ONCE = 32 };
static const int64_t REST_NS = 100000000, COMPLAINT_NS = 60000000000;

/* ---- binding ---- */

static void add_listener(td_rpc *rpc, int listener, bool local)
{
    rpc->listener_is_local[rpc->listener_count] = local;
    rpc->listeners[rpc->listener_count++] = listener;
}

static int port_of(int listener)
{
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    if (getsockname(listener, (struct sockaddr *)&name, &size) != 0) return 0;
    if (name.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)&name)->sin6_port);
    return ntohs(((const struct sockaddr_in *)(const void *)&name)->sin_port);
}

static tb_status listen_tcp(td_rpc *rpc, const td_config *config, tb_error *error)
{
    char host[TD_CONFIG_TEXT_SIZE];
    const char *address = config->grpc_address;
    const char *colon = strrchr(address, ':');
    if (address[0] == '\0') return TB_OK;
    if (colon == NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "grpc", "'%s' is not HOST:PORT", address);

    const int length = (int)(colon - address);
    const bool bracketed = length >= 2 && address[0] == '[' && colon[-1] == ']';
    snprintf(host, sizeof host, "%.*s", bracketed ? length - 2 : length,
             bracketed ? address + 1 : address);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    const bool any = *host == '\0' || strcmp(host, "*") == 0;
    const int result = getaddrinfo(any ? NULL : host, colon + 1, &hints, &found);
    if (result != 0)
        return tb_fail_field(error, TB_FAILED_PRECONDITION, "grpc", "cannot listen on %s: %s",
                             address, gai_strerror(result));
    int listener = -1, why = 0;
    for (const struct addrinfo *a = found; a != NULL && listener < 0; a = a->ai_next) {
        listener = td_listen_socket(a);
        why = errno;
    }
    freeaddrinfo(found);
    if (listener < 0)
        return tb_fail_field(error, TB_FAILED_PRECONDITION, "grpc", "cannot listen on %s: %s",
                             address, strerror(why));
    add_listener(rpc, listener, false);
    snprintf(rpc->address, sizeof rpc->address, "%.*s:%d", length, address, port_of(listener));
    return TB_OK;
}

/* Whether a server answers on this socket; a file without a server is left from a crash. */
static bool is_served(const struct sockaddr_un *address)
{
    const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0) return false;
    const bool answered = connect(s, (const struct sockaddr *)address, sizeof *address) == 0;
    close(s);
    return answered;
}

static tb_status listen_unix(td_rpc *rpc, const td_config *config, tb_error *error)
{
    const char *path = config->grpc_socket;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path[0] == '\0') return TB_OK;
    if (strlen(path) >= sizeof address.sun_path)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "grpc_socket",
                             "the path '%s' has more than %zu bytes", path,
                             sizeof address.sun_path - 1);
    strcpy(address.sun_path, path);
    if (is_served(&address))
        return tb_fail_field(error, TB_FAILED_PRECONDITION, "grpc_socket",
                             "cannot listen on %s: %s", path, strerror(EADDRINUSE));
    unlink(path);
    const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s < 0 || bind(s, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(s, TD_LISTEN_BACKLOG) != 0) {
        const int why = errno;
        if (s >= 0) close(s);
        return tb_fail_field(error, TB_FAILED_PRECONDITION, "grpc_socket",
                             "cannot listen on %s: %s", path, strerror(why));
    }
    add_listener(rpc, s, true);
    strcpy(rpc->socket, path);
    if (rpc->address[0] == '\0') snprintf(rpc->address, sizeof rpc->address, "unix:%s", path);
    return TB_OK;
}

tb_status rpc_listen(td_rpc *rpc, const td_config *config, tb_error *error)
{
    rpc->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    tb_status status = listen_tcp(rpc, config, error);
    if (status == TB_OK) status = listen_unix(rpc, config, error);
    return status;
}

void rpc_unlisten(td_rpc *rpc)
{
    for (int i = 0; i < rpc->listener_count; i++) close(rpc->listeners[i]);
    rpc->listener_count = 0;
    if (rpc->spare >= 0) close(rpc->spare);
    rpc->spare = -1;
    if (rpc->socket[0] != '\0') unlink(rpc->socket);
    rpc->socket[0] = '\0';
}

/* ---- accepting ---- */

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family) return false;
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
    return a->ss_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr,
                  sizeof(struct in6_addr)) == 0;
}

/* Ends a connection in favour of a new one: without a call and of a caller without a key, of the lowest
 * standing, quiet for longest. False: no connection qualifies. Caller holds the rpc's lock. */
static bool make_room(td_rpc *rpc, const struct sockaddr_storage *address, bool same_address)
{
    rpc_connection *found = NULL;
    int standing = TD_STANDING_KEY;
    int64_t since_ns = INT64_MAX;
    for (rpc_connection *c = rpc->everybody; c != NULL; c = c->peer_next) {
        const int its = atomic_load(&c->standing);
        const int64_t quiet = atomic_load(&c->quiet_since_ns);
        if (c->leaving || c->local || atomic_load(&c->number_of_calls) > 0) continue;
        if (same_address && !same_host(&c->address, address)) continue;
        if (its > standing || (its == standing && quiet >= since_ns)) continue;
        if (its >= TD_STANDING_KEY) continue;
        found = c, standing = its, since_ns = quiet;
    }
    if (found == NULL) return false;
    found->leaving = true;
    rpc->leaving++;
    shutdown(found->socket, SHUT_RDWR); /* its own loop sees the end and closes it */
    return true;
}

static void tell_full(td_rpc *rpc)
{
    const int64_t now = td_monotonic_ns();
    td_metrics_add(rpc->server->metrics, TD_METRIC_CONNECTIONS_DISPLACED, 1);
    if (rpc->told_full_ns != 0 && now - rpc->told_full_ns < COMPLAINT_NS) return;
    rpc->told_full_ns = now;
    td_log_write(rpc->server->log, TB_LOG_WARNING, "grpc.connections_full",
                 "connections=%d message=%s", rpc->connections,
                 "idle connections without a key are closed for new ones");
}

/* True if one more connection from this address is within the limits; may evict an idle one. */
static bool has_room(td_rpc *rpc, const struct sockaddr_storage *address)
{
    pthread_mutex_lock(&rpc->lock);
    int from_there = 0;
    for (const rpc_connection *c = rpc->everybody; c != NULL; c = c->peer_next)
        from_there += !c->leaving && same_host(&c->address, address);
    const bool full = rpc->connections - rpc->leaving >= rpc->limits.connections;
    const bool full_there = from_there >= rpc->limits.connections_per_address;
    const bool made = (full || full_there) && make_room(rpc, address, full_there);
    pthread_mutex_unlock(&rpc->lock);
    if (made) tell_full(rpc);
    return made || !(full || full_there);
}

/* Closes a connection beyond the limit. A client without TLS receives an empty SETTINGS and GOAWAY
 * with ENHANCE_YOUR_CALM (0xb). */
static void turn_away(const td_rpc *rpc, int socket)
{
    static const uint8_t FRAMES[] = {0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 8, 7,
                                     0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11};
    if (rpc->certificates == NULL)
        (void)!send(socket, FRAMES, sizeof FRAMES, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(socket, SHUT_WR);
    close(socket);
}

/* Out of descriptors: accepts by the spare one, closes, and takes the spare again. False if the
 * listeners have to rest. */
static bool refuse_by_spare(td_rpc *rpc, int listener)
{
    const int64_t now = td_monotonic_ns();
    if (rpc->complained_ns == 0 || now - rpc->complained_ns > COMPLAINT_NS) {
        rpc->complained_ns = now;
        td_log_write(rpc->server->log, TB_LOG_WARNING, "grpc.descriptors",
                     "message=%s connections=%d",
                     "no descriptors are left: new connections are closed", rpc->connections);
    }
    if (rpc->spare < 0) return false;
    close(rpc->spare);
    const int s = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (s >= 0) close(s);
    rpc->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return s >= 0 && rpc->spare >= 0;
}

void rpc_accept(rpc_loop *loop, int index)
{
    td_rpc *rpc = loop->rpc;
    const int listener = rpc->listeners[index], one = 1;
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
        socklen_t size = sizeof address;
        const int s =
            accept4(listener, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (s < 0) {
            const bool scarce =
                errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
            if (!scarce) return; /* nothing waits, or the client has gone already */
            if (refuse_by_spare(rpc, listener)) continue;
            rpc_loop_accept(loop, false);
            loop->accept_again_ns = td_monotonic_ns() + REST_NS;
            return;
        }
        const bool local = rpc->listener_is_local[index];
        if (!local && !has_room(rpc, &address)) {
            turn_away(rpc, s);
            continue;
        }
        if (!local) setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        rpc_connection *connection = rpc_connection_make(rpc, s, local, &address);
        if (connection != NULL)
            rpc_loop_adopt(&rpc->loops[rpc->next_loop++ % rpc->loop_count], connection);
    }
}
