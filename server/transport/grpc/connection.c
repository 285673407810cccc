/* Bytes of one connection: reading into libnghttp2, writing its frames, closing.
 *
 * A loop has one buffer for reading and one for writing, which its connections share; a connection
 * keeps bytes of its own only while its client takes none. One read of each ready connection a turn,
 * and a short one where the frames are small: work goes by frames, and a connection that floods gets
 * no more of the thread than any other. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"
#include "transport/grpc/grpc_internal.h"

enum {
    SHORT_READ_BYTES = 4096,
    SMALL_FRAME_BYTES = 512,
    /* bytes that a connection without a future discards at once */
    DISCARD_BYTES = 1 << 20
};

/* ---- making ---- */

static void print_peer(rpc_connection *c)
{
    char text[INET6_ADDRSTRLEN] = "?";
    const struct sockaddr_in *four = (const void *)&c->address;
    const struct sockaddr_in6 *six = (const void *)&c->address;
    if (c->local) {
        snprintf(c->peer, sizeof c->peer, "unix:");
        c->loopback = true;
    } else if (c->address.ss_family == AF_INET) {
        inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
        snprintf(c->peer, sizeof c->peer, "%s:%u", text, ntohs(four->sin_port));
        c->loopback = ntohl(four->sin_addr.s_addr) >> 24 == 127;
    } else if (c->address.ss_family == AF_INET6) {
        const struct in6_addr *a = &six->sin6_addr;
        inet_ntop(AF_INET6, a, text, sizeof text);
        snprintf(c->peer, sizeof c->peer, "[%s]:%u", text, ntohs(six->sin6_port));
        c->loopback = IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
    }
}

rpc_connection *rpc_connection_make(td_rpc *rpc, int socket, bool local,
                                    const struct sockaddr_storage *address)
{
    rpc_connection *c = calloc(1, sizeof *c);
    if (c == NULL) {
        close(socket);
        return NULL;
    }
    c->rpc = rpc;
    c->socket = socket;
    c->read_size = SHORT_READ_BYTES;
    c->payload_left = RPC_PREFACE_BYTES;
    c->local = local;
    c->address = *address;
    print_peer(c);
    const int64_t now = td_monotonic_ns();
    c->opened_ns = c->heard_ns = c->idle_since_ns = now;
    atomic_init(&c->quiet_since_ns, now);
    pthread_mutex_lock(&rpc->lock);
    c->peer_next = rpc->everybody;
    if (c->peer_next != NULL) c->peer_next->peer_previous = c;
    rpc->everybody = c;
    rpc->connections++;
    pthread_mutex_unlock(&rpc->lock);
    td_metrics_add(rpc->server->metrics, TD_METRIC_CONNECTIONS_GRPC, 1);
    return c;
}

void rpc_connection_open(rpc_connection *c)
{
    rpc_loop *loop = c->loop;
    c->next = loop->connections;
    if (c->next != NULL) c->next->previous = c;
    loop->connections = c;
    c->events = EPOLLIN | EPOLLRDHUP;
    struct epoll_event event = {.events = c->events, .data.ptr = c};
    const bool secure = c->rpc->certificates != NULL && !c->local;
    c->phase = secure ? RPC_HANDSHAKE : RPC_OPEN;
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, c->socket, &event) != 0 ||
        (secure ? !rpc_tls_begin(c) : !rpc_session_make(c))) {
        rpc_connection_close(c);
        return;
    }
    if (!secure) rpc_connection_touch(c);
}

/* ---- closing ---- */

void rpc_connection_free(rpc_connection *c)
{
    rpc_tls_end(c);
    nghttp2_session_del(c->session);
    tb_bytes_free(&c->unsent);
    free(c);
}

void rpc_connection_close(rpc_connection *c)
{
    td_rpc *rpc = c->rpc;
    rpc_loop *loop = c->loop;
    if (c->phase == RPC_CLOSED) return;
    c->phase = RPC_CLOSED;
    while (c->calls != NULL) rpc_call_close(c->calls, true);
    epoll_ctl(loop->epoll, EPOLL_CTL_DEL, c->socket, NULL);
    if (c->previous != NULL)
        c->previous->next = c->next;
    else
        loop->connections = c->next;
    if (c->next != NULL) c->next->previous = c->previous;

    pthread_mutex_lock(&rpc->lock);
    if (c->peer_previous != NULL)
        c->peer_previous->peer_next = c->peer_next;
    else
        rpc->everybody = c->peer_next;
    if (c->peer_next != NULL) c->peer_next->peer_previous = c->peer_previous;
    rpc->connections--;
    rpc->leaving -= c->leaving;
    pthread_cond_broadcast(&rpc->changed);
    pthread_mutex_unlock(&rpc->lock);
    close(c->socket); /* only now: the loop that accepts shuts down all connections of the list */
    td_metrics_add(rpc->server->metrics, TD_METRIC_CONNECTIONS_GRPC, -1);
    c->next = loop->ended;
    loop->ended = c;
}

static void wait_for(rpc_connection *c, uint32_t events)
{
    if (events == c->events) return;
    struct epoll_event event = {.events = events, .data.ptr = c};
    c->events = events;
    epoll_ctl(c->loop->epoll, EPOLL_CTL_MOD, c->socket, &event);
}

/* Everything is written: the client reads it to the end and closes. Closing at once would discard
 * data that the client has not read, since its own bytes may still arrive. They stay in the socket
 * until the next tick, so that TCP's window holds back a client that goes on sending. */
static void say_last_words(rpc_connection *c)
{
    wait_for(c, EPOLLRDHUP);
    while (c->calls != NULL) rpc_call_close(c->calls, true);
    if (c->tls != NULL) gnutls_bye(c->tls, GNUTLS_SHUT_WR);
    shutdown(c->socket, SHUT_WR);
    c->phase = RPC_LAST_WORDS;
    c->last_words_ns = td_monotonic_ns();
}

/* ---- reading ---- */

/* Bytes read into the loop's buffer; 0: none now; -1: the connection is over. */
static ssize_t read_some(rpc_connection *c)
{
    uint8_t *buffer = c->loop->read_buffer;
    if (c->tls != NULL && c->phase == RPC_OPEN) {
        const ssize_t size = gnutls_record_recv(c->tls, buffer, RPC_READ_BYTES);
        if (size > 0) return size;
        if (size == 0) return -1;
        return gnutls_error_is_fatal((int)size) ? -1 : 0;
    }
    const ssize_t size = recv(c->socket, buffer, c->read_size, 0);
    if (size > 0) return size;
    if (size == 0) return -1;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

void rpc_connection_discard(rpc_connection *c)
{
    /* Linux's TCP discards without copying where MSG_TRUNC is given (tcp(7)) */
    const int flags = c->local ? 0 : MSG_TRUNC;
    const size_t most = c->local ? RPC_READ_BYTES : DISCARD_BYTES;
    const ssize_t size = recv(c->socket, c->loop->read_buffer, most, flags);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) rpc_connection_close(c);
}

/* After a read of `size` bytes, which libnghttp2 took (`good`) or not: chooses the size of the next
 * read, and ends a connection whose frames are wrong. */
static void judge_frames(rpc_connection *c, size_t size, bool good)
{
    const bool small = (size_t)c->frames * SMALL_FRAME_BYTES > size;
    c->read_size = small ? SHORT_READ_BYTES : RPC_READ_BYTES;
    if (!good && c->ending == NGHTTP2_NO_ERROR) {
        /* the bytes are no HTTP/2, or memory ran out: GOAWAY where libnghttp2 can still send it */
        nghttp2_session_terminate_session(c->session, NGHTTP2_PROTOCOL_ERROR);
        c->ending = NGHTTP2_PROTOCOL_ERROR;
    } else if (c->ending != NGHTTP2_NO_ERROR) {
        if (c->ending == NGHTTP2_ENHANCE_YOUR_CALM) {
            td_metrics_add(c->rpc->server->metrics, TD_METRIC_GRPC_ABUSIVE, 1);
            td_log_write(c->rpc->server->log, TB_LOG_DEBUG, "grpc.abusive", "peer=%s", c->peer);
        }
        nghttp2_session_terminate_session(c->session, c->ending);
    }
    rpc_connection_touch(c);
}

/* Goes on with the handshake of TLS; true once it is done. */
static bool finish_handshake(rpc_connection *c, uint32_t events)
{
    const int result = events & (EPOLLERR | EPOLLHUP) ? -1 : rpc_tls_handshake(c);
    if (result == 0) return false;
    if (result < 0 || !rpc_session_make(c)) {
        rpc_connection_close(c);
        return false;
    }
    c->phase = RPC_OPEN;
    rpc_connection_touch(c);
    return true;
}

void rpc_connection_ready(rpc_connection *c, uint32_t events)
{
    if (c->phase == RPC_CLOSED) return;
    if (c->phase == RPC_LAST_WORDS) {
        rpc_connection_discard(c);
        return;
    }
    if (c->phase == RPC_HANDSHAKE) {
        if (!finish_handshake(c, events)) return;
        events = EPOLLIN; /* the client's first record may have come with its last message */
    }
    if (events & EPOLLOUT) rpc_connection_touch(c);
    bool more = (events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) != 0;
    while (more) {
        const ssize_t size = read_some(c);
        if (size < 0) rpc_connection_close(c);
        if (size <= 0) return;
        c->heard_ns = td_monotonic_ns();
        if (c->ending == NGHTTP2_NO_ERROR) {
            const bool good = rpc_frames_take(c, c->loop->read_buffer, (size_t)size);
            judge_frames(c, (size_t)size, good);
        }
        /* a record that GnuTLS holds already makes the socket ready for nothing */
        more = c->tls != NULL && gnutls_record_check_pending(c->tls) > 0;
    }
}

/* ---- writing ---- */

void rpc_connection_touch(rpc_connection *c)
{
    if (c->dirty || c->phase == RPC_CLOSED) return;
    c->dirty = true;
    c->next_dirty = c->loop->dirty;
    c->loop->dirty = c;
}

/* Writes; the number of bytes that were taken, or -1 when the connection is over. */
static ssize_t write_some(rpc_connection *c, const uint8_t *bytes, size_t size)
{
    size_t sent = 0;
    while (sent < size) {
        ssize_t taken = 0;
        if (c->tls != NULL) {
            taken = gnutls_record_send(c->tls, bytes + sent, size - sent);
            if (taken < 0 && gnutls_error_is_fatal((int)taken)) return -1;
        } else {
            taken = send(c->socket, bytes + sent, size - sent, MSG_NOSIGNAL);
            if (taken < 0 && errno == EINTR) continue;
            if (taken < 0 && errno != EAGAIN) return -1;
        }
        if (taken <= 0) break;
        sent += (size_t)taken;
    }
    return (ssize_t)sent;
}

/* Collects frames of libnghttp2, as many as fit the loop's buffer; -1 on failure. */
static ssize_t collect(rpc_connection *c, tb_bytes *rest)
{
    uint8_t *buffer = c->loop->write_buffer;
    size_t filled = 0;
    while (filled < RPC_WRITE_BYTES && rest->size == 0) {
        const uint8_t *bytes = NULL;
        const ssize_t size = nghttp2_session_mem_send(c->session, &bytes);
        if (size < 0) return -1;
        if (size == 0) break;
        const size_t room = RPC_WRITE_BYTES - filled;
        const size_t kept = (size_t)size < room ? (size_t)size : room;
        memcpy(buffer + filled, bytes, kept);
        filled += kept;
        if (kept < (size_t)size &&
            tb_bytes_append(rest, bytes + kept, (size_t)size - kept) != TB_OK)
            return -1;
    }
    return (ssize_t)filled;
}

/* Keeps the bytes that the socket did not take. */
static bool keep(rpc_connection *c, const uint8_t *bytes, size_t size, tb_bytes *rest)
{
    tb_bytes kept = {0};
    c->unsent_at = 0;
    const bool good = tb_bytes_append(&kept, bytes, size) == TB_OK &&
                      (rest->size == 0 || tb_bytes_append(&kept, rest->base, rest->size) == TB_OK);
    tb_bytes_free(rest);
    tb_bytes_free(&c->unsent);
    c->unsent = kept;
    return good;
}

/* Writes the bytes that an earlier turn left; false if the connection is over. */
static bool write_unsent(rpc_connection *c)
{
    if (c->unsent.size == 0) return true;
    const ssize_t sent =
        write_some(c, c->unsent.base + c->unsent_at, c->unsent.size - c->unsent_at);
    if (sent < 0) return false;
    c->unsent_at += (size_t)sent;
    if (c->unsent_at == c->unsent.size) tb_bytes_free(&c->unsent);
    return true;
}

static bool is_over(const rpc_connection *c)
{
    if (c->ending != NGHTTP2_NO_ERROR) return true;
    if (nghttp2_session_want_write(c->session)) return false;
    return !nghttp2_session_want_read(c->session) || (c->said_goodbye && c->calls == NULL);
}

void rpc_connection_write(rpc_connection *c)
{
    if (c->phase != RPC_OPEN) return;
    bool good = write_unsent(c);
    while (good && c->unsent.size == 0) {
        tb_bytes rest = {0};
        const ssize_t size = collect(c, &rest);
        const ssize_t sent = size > 0 ? write_some(c, c->loop->write_buffer, (size_t)size) : size;
        good = sent >= 0;
        if (!good || size == 0) {
            tb_bytes_free(&rest);
            break;
        }
        if (sent < size || rest.size > 0)
            good = keep(c, c->loop->write_buffer + sent, (size_t)(size - sent), &rest) &&
                   (sent < size || write_unsent(c));
    }
    if (!good) {
        rpc_connection_close(c);
        return;
    }
    wait_for(c, EPOLLIN | EPOLLRDHUP | (c->unsent.size > 0 ? EPOLLOUT : 0));
    if (c->unsent.size == 0 && is_over(c)) say_last_words(c);
}
