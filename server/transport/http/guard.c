/* The guard: how many connections there are, how long a request may take to arrive, and which
 * clients have gone.
 *
 * libmicrohttpd's timeout starts again with every byte, so a client that sends one every second
 * would stay for ever, and it does not look at suspended connections at all. Here each connection
 * has one deadline for the whole request, and its socket is watched for the other end closing (its
 * sending half alone, too: such a client has gone). The guard only ever shuts sockets down and
 * cancels calls; connections end in their own threads. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "transport/http/http_internal.h"

enum { EVENTS = 64 };
static const int64_t LONGEST_SLEEP_NS = 1000000000; /* configuration and clock may change */
static const int64_t SHORTEST_SLEEP_NS = 1000000;
/* A body that arrives at this rate, after a second's grace, keeps its connection. */
static const uint64_t UPLOAD_BYTES_PER_S = 16 << 10;
static const int64_t UPLOAD_GRACE_NS = 1000000000;
/* For the end of a request whose client has closed its sending half: it may be on its way inside. */
static const int64_t LAST_BYTES_NS = 1000000000;
static const int64_t COMPLAINT_NS = INT64_C(60000000000); /* between two lines of the log */

/* The guard's decisions under its lock, which it carries out without the lock. */
typedef struct verdict {
    http_exchange *exchange;
    bool expired, broken, overflow;
} verdict;

static int64_t timeout_ns(const td_http *http)
{
    return (int64_t)(http->server->config->http_timeout_seconds * 1e9);
}

/* ---- connections ----------------------------------------------------------------------------- */

enum MHD_Result http_accept(void *context, const struct sockaddr *address, socklen_t size)
{
    td_http *http = context;
    (void)address;
    (void)size;
    pthread_mutex_lock(&http->guard.lock);
    const bool room = http->guard.count < http->connections + HTTP_SPARE_CONNECTIONS;
    pthread_mutex_unlock(&http->guard.lock);
    return room ? MHD_YES : MHD_NO;
}

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family) return false;
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return a->ss_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/* Whether the body of a request is arriving, not slower than an upload does. */
static bool is_uploading(const http_connection *c, int64_t now)
{
    if (c->body_ns == 0) return false;
    const int64_t wanted_ns = now - c->body_ns - UPLOAD_GRACE_NS;
    return 1e-9 * (double)wanted_ns * (double)UPLOAD_BYTES_PER_S <= (double)c->body_bytes;
}

/* The connection that a new one may have the place of: without a call or an upload, of a caller
 * without a key, the one that has been idle for longest. NULL: there is none. Under the guard's lock. */
static http_connection *least_needed(const http_guard *guard, const http_connection *newcomer,
                                     bool same_address)
{
    http_connection *found = NULL;
    const int64_t now = td_monotonic_ns();
    for (http_connection *c = guard->connections; c != NULL; c = c->next) {
        if (c->leaving || c->exchange != NULL || c->standing >= TD_STANDING_KEY) continue;
        if (is_uploading(c, now)) continue;
        if (same_address && !same_host(&c->address, &newcomer->address)) continue;
        if (found == NULL || c->standing < found->standing ||
            (c->standing == found->standing && c->since_ns < found->since_ns))
            found = c;
    }
    return found;
}

/* Ends an idle connection for a new one; false if all are needed. Under the guard's lock. */
static bool make_room(td_http *http, const http_connection *newcomer, bool same_address)
{
    http_guard *guard = &http->guard;
    http_connection *c = least_needed(guard, newcomer, same_address);
    if (c == NULL) return false;
    c->leaving = true;
    guard->leaving++;
    shutdown(c->socket, SHUT_RDWR); /* its own thread sees the end of the stream and closes it */
    const int64_t now = td_monotonic_ns();
    td_metrics_add(http->server->metrics, TD_METRIC_CONNECTIONS_DISPLACED, 1);
    if (guard->complained_ns != 0 && now - guard->complained_ns < COMPLAINT_NS) return true;
    guard->complained_ns = now;
    td_log_write(http->server->log, TB_LOG_WARNING, "http.connections_full",
                 "connections=%d message=%s", guard->count,
                 "idle connections without a key are closed for new ones");
    return true;
}

/* Adds a new connection to the list and marks it if it is beyond the limit. */
static void join(td_http *http, http_connection *connection)
{
    const td_config *config = http->server->config;
    http_guard *guard = &http->guard;
    pthread_mutex_lock(&guard->lock);
    int32_t from_there = 0;
    for (const http_connection *c = guard->connections; c != NULL; c = c->next)
        from_there += !c->leaving && same_host(&c->address, &connection->address);
    const bool full = guard->count - guard->leaving >= http->connections;
    const bool full_there = from_there >= config->http_connections_per_address;
    const bool room = !(full || full_there) || make_room(http, connection, full_there);
    if (full && !room) {
        connection->over_what = "connections";
        connection->over_limit = http->connections;
    } else if (full_there && !room) {
        connection->over_what = "connections from this address";
        connection->over_limit = config->http_connections_per_address;
    }
    connection->since_ns = td_monotonic_ns();
    connection->receive_deadline_ns = connection->since_ns + timeout_ns(http);
    const bool soon = connection->receive_deadline_ns < guard->wake_ns;
    connection->next = guard->connections;
    if (connection->next != NULL) connection->next->previous = connection;
    guard->connections = connection;
    guard->count++;
    /* edge-triggered and only for the other end's closing: it wakes up the guard once at most */
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    epoll_ctl(guard->epoll, EPOLL_CTL_ADD, connection->socket, &event);
    pthread_mutex_unlock(&guard->lock);
    td_metrics_add(http->server->metrics, TD_METRIC_CONNECTIONS_HTTP, 1);
    if (soon) http_guard_wake(http);
}

static void leave(td_http *http, http_connection *connection)
{
    http_guard *guard = &http->guard;
    pthread_mutex_lock(&guard->lock);
    epoll_ctl(guard->epoll, EPOLL_CTL_DEL, connection->socket, NULL);
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        guard->connections = connection->next;
    if (connection->next != NULL) connection->next->previous = connection->previous;
    guard->count--;
    guard->leaving -= connection->leaving;
    /* a queued event may still name it; the guard frees it when no event can */
    connection->closed = true;
    connection->next = guard->closed;
    guard->closed = connection;
    pthread_mutex_unlock(&guard->lock);
    td_metrics_add(http->server->metrics, TD_METRIC_CONNECTIONS_HTTP, -1);
}

/* Libmicrohttpd knows the certificate of its start: the handshake of a new connection gets the one
 * that the files hold now. */
static void serve_certificate(http_connection *connection, struct MHD_Connection *wire)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(wire, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (connection->http->certificates == NULL || info == NULL || info->tls_session == NULL) return;
    connection->certificate = td_certificates_current(connection->http->certificates);
    gnutls_credentials_set((gnutls_session_t)info->tls_session, GNUTLS_CRD_CERTIFICATE,
                           td_certificate_credentials(connection->certificate));
}

static void free_connection(http_connection *connection)
{
    td_certificate_release(connection->certificate);
    free(connection);
}

void http_connection_notify(void *context, struct MHD_Connection *wire, void **slot,
                            enum MHD_ConnectionNotificationCode code)
{
    td_http *http = context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*slot != NULL) leave(http, *slot);
        *slot = NULL;
        return;
    }
    http_connection *connection = calloc(1, sizeof *connection);
    const union MHD_ConnectionInfo *descriptor =
        MHD_get_connection_info(wire, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *client =
        MHD_get_connection_info(wire, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    *slot = connection;
    if (connection == NULL || descriptor == NULL || client == NULL) {
        free(connection); /* http_handle closes a connection without a record */
        *slot = NULL;
        return;
    }
    const int one = 1;
    connection->http = http;
    connection->socket = descriptor->connect_fd;
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    const struct sockaddr *address = client->client_addr;
    memcpy(&connection->address, address,
           address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in));
    http_peer_print(address, connection->peer);
    connection->loopback = http_peer_loopback(address);
    serve_certificate(connection, wire);
    join(http, connection);
}

void http_receive_begin(http_connection *connection)
{
    td_http *http = connection->http;
    const int64_t now = td_monotonic_ns();
    pthread_mutex_lock(&http->guard.lock);
    const int64_t deadline = now + (connection->broken ? LAST_BYTES_NS : timeout_ns(http));
    connection->since_ns = now;
    connection->body_ns = 0;
    connection->receive_deadline_ns = deadline;
    const bool soon = deadline < http->guard.wake_ns;
    pthread_mutex_unlock(&http->guard.lock);
    if (soon) http_guard_wake(http);
}

void http_receive_body(http_connection *connection, size_t bytes)
{
    http_guard *guard = &connection->http->guard;
    pthread_mutex_lock(&guard->lock);
    if (connection->body_ns == 0) {
        connection->body_ns = td_monotonic_ns();
        connection->body_bytes = 0;
    }
    connection->body_bytes += bytes;
    pthread_mutex_unlock(&guard->lock);
}

void http_receive_end(http_connection *connection)
{
    http_guard *guard = &connection->http->guard;
    pthread_mutex_lock(&guard->lock);
    connection->body_ns = 0;
    connection->receive_deadline_ns = INT64_MAX;
    pthread_mutex_unlock(&guard->lock);
}

void http_guard_admitted(http_exchange *exchange)
{
    http_guard *guard = &exchange->http->guard;
    const td_standing standing = td_auth_standing(&exchange->call.caller);
    pthread_mutex_lock(&guard->lock);
    /* the connection stays while its request is dispatched */
    http_connection *c = exchange->connection;
    if (standing > c->standing) c->standing = standing;
    pthread_mutex_unlock(&guard->lock);
}

/* ---- calls ----------------------------------------------------------------------------------- */

void http_guard_watch(http_exchange *exchange)
{
    td_http *http = exchange->http;
    td_call_hold(&exchange->call);
    pthread_mutex_lock(&http->guard.lock);
    exchange->connection->exchange = exchange;
    /* a client that left while its request was read */
    const bool soon =
        exchange->connection->broken || exchange->call.deadline_ns < http->guard.wake_ns;
    pthread_mutex_unlock(&http->guard.lock);
    if (soon) http_guard_wake(http);
}

void http_guard_forget(http_exchange *exchange)
{
    td_http *http = exchange->http;
    pthread_mutex_lock(&http->guard.lock);
    const bool known = exchange->connection->exchange == exchange;
    if (known) exchange->connection->exchange = NULL;
    pthread_mutex_unlock(&http->guard.lock);
    if (known) td_call_release(&exchange->call);
}

void http_guard_wake(td_http *http)
{
    const uint64_t one = 1;
    ssize_t written = 0;
    do written = write(http->guard.wake, &one, sizeof one);
    while (written < 0 && errno == EINTR);
}

/* Ends a call from outside its handler. Without locks: handlers take their own. */
static void act(const verdict *v)
{
    http_exchange *exchange = v->exchange;
    tb_error error = {0};
    if (v->broken) {
        pthread_mutex_lock(&exchange->lock);
        exchange->dead = true;
        pthread_mutex_unlock(&exchange->lock);
    }
    td_call_cancel(&exchange->call);
    if (v->expired)
        tb_fail(&error, TB_DEADLINE_EXCEEDED, "the deadline passed before the answer was there");
    else if (v->overflow)
        tb_fail(&error, TB_RESOURCE_EXHAUSTED,
                "more answers wait for this reader than memory is set apart for");
    else
        tb_fail(&error, TB_CANCELLED, "the client closed the connection");
    td_call_finish(&exchange->call, error.status, &error, 0);
    pthread_mutex_lock(&exchange->lock);
    http_call_wake(exchange);
    pthread_mutex_unlock(&exchange->lock);
    td_call_release(&exchange->call);
}

/* Looks at one connection under the guard's lock; true if its call has to be ended. */
static bool judge(http_connection *connection, int64_t now, verdict *v, int64_t *next)
{
    if (connection->receive_deadline_ns <= now) {
        /* its own thread sees the end of the stream and closes it */
        shutdown(connection->socket, SHUT_RDWR);
        connection->receive_deadline_ns = INT64_MAX;
    } else if (connection->receive_deadline_ns < *next) {
        *next = connection->receive_deadline_ns;
    }
    http_exchange *exchange = connection->exchange;
    if (exchange == NULL) return false;
    *v = (verdict){.exchange = exchange,
                   .expired = exchange->call.deadline_ns <= now,
                   .broken = connection->broken};
    v->overflow = atomic_load(&exchange->overflow);
    if (v->expired || v->broken || v->overflow) {
        connection->exchange = NULL; /* its reference goes to the verdict */
        return true;
    }
    if (exchange->call.deadline_ns < *next) *next = exchange->call.deadline_ns;
    return false;
}

/* One round over all connections; ends at most one call, and says whether there was one. */
static bool look(td_http *http)
{
    http_guard *guard = &http->guard;
    const int64_t now = td_monotonic_ns();
    int64_t next = now + LONGEST_SLEEP_NS;
    verdict v = {0};
    bool found = false;
    pthread_mutex_lock(&guard->lock);
    for (http_connection *c = guard->connections; c != NULL && !found; c = c->next)
        found = judge(c, now, &v, &next);
    guard->wake_ns = next;
    pthread_mutex_unlock(&guard->lock);
    if (found) act(&v);
    return found;
}

/* The client has closed its half. Libmicrohttpd may have read the last bytes before the close and
 * then reports nothing more, so the rest of an unfinished request is not awaited. */
static void mark_broken(http_connection *connection)
{
    const int64_t deadline = td_monotonic_ns() + LAST_BYTES_NS;
    connection->broken = true;
    if (connection->receive_deadline_ns != INT64_MAX && connection->receive_deadline_ns > deadline)
        connection->receive_deadline_ns = deadline;
}

static void *guard_run(void *context)
{
    td_http *http = context;
    http_guard *guard = &http->guard;
    struct epoll_event events[EVENTS];
    for (;;) {
        while (look(http)) continue;

        pthread_mutex_lock(&guard->lock);
        const bool stop = guard->stop;
        int64_t sleep = guard->wake_ns - td_monotonic_ns();
        http_connection *closed = guard->closed;
        guard->closed = NULL;
        pthread_mutex_unlock(&guard->lock);
        /* out of the epoll set since before the last wait: no event can name them any more */
        for (http_connection *next; closed != NULL; closed = next) {
            next = closed->next;
            free_connection(closed);
        }
        if (stop) return NULL;

        if (sleep < SHORTEST_SLEEP_NS) sleep = SHORTEST_SLEEP_NS;
        const int count = epoll_wait(guard->epoll, events, EVENTS, (int)(sleep / 1000000) + 1);
        pthread_mutex_lock(&guard->lock);
        for (int i = 0; i < count; i++) {
            http_connection *connection = events[i].data.ptr;
            uint64_t number = 0;
            if (connection == NULL) {
                while (read(guard->wake, &number, sizeof number) < 0 && errno == EINTR) continue;
            } else if (!connection->closed) {
                mark_broken(connection);
            }
        }
        pthread_mutex_unlock(&guard->lock);
    }
}

void http_guard_cancel_all(td_http *http)
{
    for (;;) {
        http_exchange *exchange = NULL;
        pthread_mutex_lock(&http->guard.lock);
        for (http_connection *c = http->guard.connections; c != NULL && exchange == NULL;
             c = c->next) {
            exchange = c->exchange;
            c->exchange = NULL;
        }
        pthread_mutex_unlock(&http->guard.lock);
        if (exchange == NULL) return;
        tb_error error = {0};
        tb_fail(&error, TB_UNAVAILABLE, "the server is stopping");
        td_call_cancel(&exchange->call);
        td_call_finish(&exchange->call, error.status, &error, 1);
        pthread_mutex_lock(&exchange->lock);
        http_call_wake(exchange);
        pthread_mutex_unlock(&exchange->lock);
        td_call_release(&exchange->call);
    }
}

tb_status http_guard_start(td_http *http, tb_error *error)
{
    http_guard *guard = &http->guard;
    guard->epoll = epoll_create1(EPOLL_CLOEXEC);
    guard->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (guard->epoll < 0 || guard->wake < 0 ||
        epoll_ctl(guard->epoll, EPOLL_CTL_ADD, guard->wake, &event) != 0)
        return tb_fail(error, TB_INTERNAL, "epoll: %s", strerror(errno));
    const int result = pthread_create(&guard->thread, NULL, guard_run, http);
    if (result != 0) return tb_fail(error, TB_RESOURCE_EXHAUSTED, "a thread: %s", strerror(result));
    guard->running = true;
    return TB_OK;
}

void http_guard_stop(td_http *http)
{
    http_guard *guard = &http->guard;
    if (guard->running) {
        pthread_mutex_lock(&guard->lock);
        guard->stop = true;
        pthread_mutex_unlock(&guard->lock);
        http_guard_wake(http);
        pthread_join(guard->thread, NULL);
        guard->running = false;
    }
    if (guard->epoll >= 0) close(guard->epoll);
    if (guard->wake >= 0) close(guard->wake);
    guard->epoll = guard->wake = -1;
}
