/* One connection: reading, writing, and the choice of the driving thread.
 *
 * While responses keep arriving within some ten microseconds, as for short steps, the driving
 * thread polls for the next one before it sleeps: waking a thread takes as long as the rest of the
 * round trip. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client_internal.h"

enum { READ_BYTES = 1 << 16, READS_AT_ONCE = 16, WRITE_BYTES = 1 << 16, PROCESSORS_TO_SPIN = 4 };
/* A wait that is likely to take longer sleeps at once. */
static const int64_t LONGEST_SPIN_NS = 100000, LONGEST_SLEEP_NS = 1000000000;
/* A line that brought bytes this recently is not read for a GOAWAY before the next call. */
static const int64_t FRESH_NS = 1000000;
/* A server that is silent is pinged, and has to answer. */
static const int64_t PING_NS = 10000000000;

/* ---- bytes ---- */

void tbc_line_fail(tbc_line *line, const char *reason)
{
    if (line->failed) return;
    line->failed = line->going = true;
    snprintf(line->reason, sizeof line->reason, "%s", reason);
    shutdown(line->socket, SHUT_RDWR);
    for (tbc_exchange *x = line->exchanges; x != NULL; x = x->next)
        tbc_exchange_end(x, TBC_UNAVAILABLE, line->reason);
    tbc_line_kick(line);
}

/* Bytes that the socket took, 0 if it is full, -1 if the connection is over. */
static ssize_t write_some(tbc_line *line, const uint8_t *bytes, size_t size)
{
    if (line->tls != NULL) {
        const ssize_t taken = gnutls_record_send(line->tls, bytes, size);
        return taken >= 0 ? taken : gnutls_error_is_fatal((int)taken) ? -1 : 0;
    }
    const ssize_t taken = send(line->socket, bytes, size, MSG_NOSIGNAL);
    return taken >= 0 ? taken : errno == EAGAIN || errno == EINTR ? 0 : -1;
}

/* Collects frames until there are enough for one write; false if out of memory. */
static bool collect(tbc_line *line)
{
    while (line->unsent.size < WRITE_BYTES) {
        const uint8_t *bytes = NULL;
        const ssize_t size = nghttp2_session_mem_send(line->session, &bytes);
        if (size == 0) return true;
        if (size < 0 || tb_bytes_append(&line->unsent, bytes, (size_t)size) != TB_OK) return false;
    }
    return true;
}

void tbc_line_flush(tbc_line *line)
{
    while (!line->failed) {
        if (line->unsent_at == line->unsent.size) {
            line->unsent.size = line->unsent_at = 0;
            if (!collect(line)) {
                tbc_line_fail(line, "HTTP/2 cannot go on");
                return;
            }
            if (line->unsent.size == 0) return;
        }
        const ssize_t taken = write_some(line, line->unsent.base + line->unsent_at,
                                         line->unsent.size - line->unsent_at);
        if (taken < 0) tbc_line_fail(line, "the connection broke off");
        if (taken <= 0) return;
        line->unsent_at += (size_t)taken;
    }
}

/* Bytes read, 0 for none now, -1 at the end. */
static ssize_t read_some(tbc_line *line, uint8_t *buffer)
{
    if (line->tls != NULL) {
        const ssize_t size = gnutls_record_recv(line->tls, buffer, READ_BYTES);
        if (size > 0) return size;
        return size < 0 && !gnutls_error_is_fatal((int)size) ? 0 : -1;
    }
    const ssize_t size = recv(line->socket, buffer, READ_BYTES, 0);
    if (size > 0) return size;
    return size < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

void tbc_line_receive(tbc_line *line)
{
    uint8_t buffer[READ_BYTES];
    for (int i = 0; i < READS_AT_ONCE && !line->failed; i++) {
        const ssize_t size = read_some(line, buffer);
        if (size == 0) break;
        if (size < 0) {
            tbc_line_fail(line, "the server closed the connection");
            return;
        }
        line->heard_ns = tbc_now_ns();
        if (nghttp2_session_mem_recv(line->session, buffer, (size_t)size) < 0) {
            tbc_line_fail(line, "the server does not speak HTTP/2");
            return;
        }
        if (size < READ_BYTES && line->tls == NULL) break;
    }
    tbc_line_flush(line);
    if (!line->failed && !nghttp2_session_want_read(line->session) &&
        !nghttp2_session_want_write(line->session))
        tbc_line_fail(line, "the server ended the connection");
}

void tbc_line_kick(tbc_line *line)
{
    const uint64_t one = 1;
    if (line->driven)
        while (write(line->wake, &one, sizeof one) < 0 && errno == EINTR) continue;
}

/* ---- waiting ---- */

static int milliseconds(int64_t left)
{
    if (left <= 0) return 0;
    return (int)((left < LONGEST_SLEEP_NS ? left : LONGEST_SLEEP_NS) / 1000000) + 1;
}

/* Polls without the lock until bytes come, the line is kicked, or the deadline passes. */
static void poll_line(tbc_line *line, int64_t deadline_ns, int64_t spin_ns)
{
    uint64_t count;
    const bool unsent = line->unsent_at < line->unsent.size;
    const bool held = line->tls != NULL && gnutls_record_check_pending(line->tls) > 0;
    struct pollfd p[2] = {{.fd = line->socket, .events = (short)(POLLIN | (unsent ? POLLOUT : 0))},
                          {.fd = line->wake, .events = POLLIN}};
    pthread_mutex_unlock(&line->lock);
    const int64_t begin = tbc_now_ns();
    int ready = 0;
    for (int64_t now = begin; ready == 0 && now - begin < spin_ns; now = tbc_now_ns())
        ready = poll(p, 2, 0);
    if (ready == 0) poll(p, 2, held ? 0 : milliseconds(deadline_ns - begin));
    if (p[1].revents & POLLIN)
        while (read(line->wake, &count, sizeof count) < 0 && errno == EINTR) continue;
    pthread_mutex_lock(&line->lock);
}

static void drive(tbc_line *line, tbc_exchange *x)
{
    const int64_t limit = 2 * x->average_ns;
    line->driven = true;
    tbc_line_flush(line);
    if (!line->failed) {
        const int64_t begin = tbc_now_ns();
        poll_line(line, x->deadline_ns, line->spins && limit <= LONGEST_SPIN_NS ? limit : 0);
        /* one pause is not the end of a loop */
        int64_t waited = tbc_now_ns() - begin;
        if (waited > LONGEST_SPIN_NS) waited = LONGEST_SPIN_NS;
        x->average_ns = (7 * x->average_ns + waited) / 8;
        /* a unary call waits once: the next call begins with this result */
        if (x->half_closed) line->average_ns = (7 * line->average_ns + waited) / 8;
        if (!line->failed) tbc_line_receive(line);
    }
    line->driven = false;
}

/* Another thread drives from now on, if one waits. */
static void pass_on(tbc_line *line)
{
    if (line->driven) return;
    for (tbc_exchange *x = line->exchanges; x != NULL; x = x->next)
        if (x->waiting) {
            pthread_cond_signal(&x->changed);
            return;
        }
}

static void wait_for_driver(tbc_line *line, tbc_exchange *x)
{
    const int64_t left = x->deadline_ns - tbc_now_ns();
    int64_t until = tbc_now_ns() + (left < LONGEST_SLEEP_NS ? left : LONGEST_SLEEP_NS);
    const struct timespec time = {.tv_sec = (time_t)(until / 1000000000),
                                  .tv_nsec = (long)(until % 1000000000)};
    x->waiting = true;
    pthread_cond_timedwait(&x->changed, &line->lock, &time);
    x->waiting = false;
}

void tbc_line_wait(tbc_line *line, tbc_exchange *x, bool (*done)(const tbc_exchange *))
{
    while (!done(x) && !x->ended) {
        if (tbc_now_ns() >= x->deadline_ns) {
            nghttp2_submit_rst_stream(line->session, NGHTTP2_FLAG_NONE, x->stream, NGHTTP2_CANCEL);
            tbc_exchange_end(x, TBC_DEADLINE_EXCEEDED, "the deadline passed");
            tbc_line_flush(line);
        } else if (line->driven) {
            wait_for_driver(line, x);
        } else {
            drive(line, x);
        }
    }
    pass_on(line);
}

/* ---- life ---- */

bool tbc_line_usable(tbc_line *line)
{
    pthread_mutex_lock(&line->lock);
    const bool fresh = tbc_now_ns() - line->heard_ns < FRESH_NS;
    if (!fresh && !line->driven && !line->failed) tbc_line_receive(line);
    const bool usable = !line->going && !line->failed;
    pthread_mutex_unlock(&line->lock);
    return usable;
}

void tbc_line_tick(tbc_line *line)
{
    pthread_mutex_lock(&line->lock);
    if (!line->driven && !line->failed) tbc_line_receive(line);
    const int64_t now = tbc_now_ns();
    if (!line->failed && line->pinged && now - line->pinged_ns > PING_NS &&
        now - line->heard_ns > PING_NS) {
        tbc_line_fail(line, "the server does not answer");
    } else if (!line->failed && !line->pinged && now - line->heard_ns > PING_NS) {
        line->pinged = true;
        line->pinged_ns = now;
        nghttp2_submit_ping(line->session, NGHTTP2_FLAG_NONE, NULL);
        tbc_line_flush(line);
    }
    pthread_mutex_unlock(&line->lock);
}

/* Reads until the server's settings came; false with the line's reason. */
static bool settle(tbc_line *line, int64_t deadline_ns)
{
    pthread_mutex_lock(&line->lock);
    tbc_line_flush(line);
    while (!line->settled && !line->failed) {
        if (tbc_now_ns() >= deadline_ns) {
            tbc_line_fail(line, "the server does not answer");
            break;
        }
        poll_line(line, deadline_ns, 0);
        tbc_line_receive(line);
    }
    const bool good = line->settled && !line->failed;
    pthread_mutex_unlock(&line->lock);
    return good;
}

tbc_line *tbc_line_open(const tbc_target *target, int64_t deadline_ns, char reason[TBC_REASON_SIZE])
{
    tbc_line *line = calloc(1, sizeof *line);
    snprintf(reason, TBC_REASON_SIZE, "out of memory");
    if (line == NULL) return NULL;
    line->target = *target;
    line->heard_ns = tbc_now_ns();
    line->average_ns = LONGEST_SPIN_NS;
    /* once: the C library reads a file for it */
    line->spins = sysconf(_SC_NPROCESSORS_ONLN) >= PROCESSORS_TO_SPIN;
    pthread_mutex_init(&line->lock, NULL);
    line->socket = -1;
    line->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (line->wake >= 0) line->socket = tbc_dial(target->address, deadline_ns, reason);
    bool good = line->socket >= 0;
    if (good && target->credentials != NULL) {
        line->tls = tbc_secure(line->socket, target, deadline_ns, reason);
        good = line->tls != NULL;
    }
    if (good) good = tbc_session_make(line);
    if (good && !settle(line, deadline_ns)) {
        snprintf(reason, TBC_REASON_SIZE, "%s", line->reason);
        good = false;
    }
    if (good) return line;
    tbc_line_free(line);
    return NULL;
}

void tbc_line_free(tbc_line *line)
{
    if (line == NULL) return;
    if (line->session != NULL && !line->failed) {
        nghttp2_session_terminate_session(line->session, NGHTTP2_NO_ERROR);
        tbc_line_flush(line);
    }
    nghttp2_session_del(line->session);
    if (line->tls != NULL) gnutls_deinit(line->tls);
    if (line->socket >= 0) close(line->socket);
    if (line->wake >= 0) close(line->wake);
    tb_bytes_free(&line->unsent);
    pthread_mutex_destroy(&line->lock);
    free(line);
}
