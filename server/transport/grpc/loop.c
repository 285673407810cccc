/* The threads that wait for sockets, posts and timers.
 *
 * One turn of a loop: events of sockets are read and decoded, calls that were posted are looked at
 * (messages go to their methods, answers to libnghttp2), connections with something to write write,
 * deadlines and times are checked, and the thread sleeps. Answers of one turn leave in one write a
 * connection.
 *
 * While something keeps coming within a few microseconds, and there are processors to spare, the
 * thread looks for it instead of sleeping: waking takes as long as a step. An idle server sleeps. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "transport/grpc/grpc_internal.h"

enum {
    EVENTS = 64,
    /* fewer processors than this have one loop, and none to spin on */
    PROCESSORS_TO_SPIN = 4,
    PROCESSORS_PER_LOOP = 4,
    /* turns of posted calls before sockets are looked at again */
    ROUNDS = 8
};
/* s; a stopping server is gone by then, and a replacement may listen on its address */
#define STOPPED_RETRY_S 1.0
/* Longer waits are slept through. */
static const int64_t LONGEST_SPIN_NS = 100000;
static const int64_t TICK_NS = 250000000, LONGEST_SLEEP_NS = 3600000000000;

/* ---- posts ---- */

void rpc_loop_wake(rpc_loop *loop)
{
    const uint64_t one = 1;
    if (!atomic_exchange(&loop->sleeping, false)) return;
    while (write(loop->wake, &one, sizeof one) < 0 && errno == EINTR) continue;
}

void rpc_loop_post(rpc_call *call)
{
    rpc_loop *loop = call->loop;
    if (call->posted || call->closed) return;
    call->posted = true;
    td_call_hold(&call->base);
    pthread_mutex_lock(&loop->lock);
    call->next_posted = NULL;
    *loop->posted_end = call;
    loop->posted_end = &call->next_posted;
    pthread_mutex_unlock(&loop->lock);
    rpc_loop_wake(loop);
}

void rpc_loop_adopt(rpc_loop *loop, rpc_connection *connection)
{
    connection->loop = loop;
    pthread_mutex_lock(&loop->lock);
    connection->next = loop->arrived;
    loop->arrived = connection;
    pthread_mutex_unlock(&loop->lock);
    rpc_loop_wake(loop);
}

static bool run_posted(rpc_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    rpc_call *call = loop->posted;
    loop->posted = NULL;
    loop->posted_end = &loop->posted;
    rpc_connection *arrived = loop->arrived;
    loop->arrived = NULL;
    pthread_mutex_unlock(&loop->lock);

    const bool any = call != NULL || arrived != NULL;
    for (rpc_connection *next; arrived != NULL; arrived = next) {
        next = arrived->next;
        arrived->next = NULL;
        rpc_connection_open(arrived);
    }
    for (rpc_call *next; call != NULL; call = next) {
        next = call->next_posted;
        rpc_call_posted(call);
        td_call_release(&call->base);
    }
    return any;
}

/* Takes the next connection with something to write off the list; NULL: there is none. */
static rpc_connection *take_dirty(rpc_loop *loop)
{
    rpc_connection *connection = loop->dirty;
    if (connection == NULL) return NULL;
    loop->dirty = connection->next_dirty;
    connection->dirty = false;
    return connection;
}

/* ---- waiting ---- */

static bool has_posts(rpc_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    const bool any = loop->posted != NULL || loop->arrived != NULL;
    pthread_mutex_unlock(&loop->lock);
    return any;
}

static int milliseconds_until(int64_t when_ns)
{
    const int64_t left = when_ns - td_monotonic_ns();
    if (left <= 0) return 0;
    return (int)((left < LONGEST_SLEEP_NS ? left : LONGEST_SLEEP_NS) / 1000000) + 1;
}

/* Events, looked for before the thread sleeps where they are likely to come soon. */
static int wait_for_events(rpc_loop *loop, struct epoll_event *events, int64_t until_ns, bool spins,
                           int64_t *average_ns)
{
    const int64_t begin = td_monotonic_ns(), limit = 2 * *average_ns;
    int64_t now = begin;
    int count = 0;
    if (spins && limit <= LONGEST_SPIN_NS)
        for (; count == 0 && now - begin < limit && !has_posts(loop); now = td_monotonic_ns())
            count = epoll_wait(loop->epoll, events, EVENTS, 0);
    if (count == 0) {
        atomic_store(&loop->sleeping, true);
        /* a post may have come before `sleeping` was seen */
        const bool posts = has_posts(loop) || atomic_load(&loop->stop) || atomic_load(&loop->told);
        count = epoll_wait(loop->epoll, events, EVENTS, posts ? 0 : milliseconds_until(until_ns));
        atomic_store(&loop->sleeping, false);
        now = td_monotonic_ns();
    }
    const int64_t waited = now - begin < LONGEST_SPIN_NS ? now - begin : LONGEST_SPIN_NS;
    *average_ns = (7 * *average_ns + waited) / 8;
    return count > 0 ? count : 0;
}

/* Serves an event of a listener or of the wake-up; false: the event is a connection's. */
static bool serve_own_event(rpc_loop *loop, const struct epoll_event *event)
{
    uint64_t number;
    for (int i = 0; loop->accepts && i < loop->rpc->listener_count; i++)
        if (event->data.ptr == &loop->rpc->listeners[i]) {
            rpc_accept(loop, i);
            return true;
        }
    if (event->data.ptr != loop) return false;
    while (read(loop->wake, &number, sizeof number) < 0 && errno == EINTR) continue;
    return true;
}

void rpc_loop_accept(rpc_loop *loop, bool on)
{
    td_rpc *rpc = loop->rpc;
    if (loop->accepting == on) return;
    for (int i = 0; i < rpc->listener_count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &rpc->listeners[i]};
        epoll_ctl(loop->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, rpc->listeners[i], &event);
    }
    loop->accepting = on;
}

/* ---- times ---- */

/* Carries out the orders of the transport's drain. */
static void obey(rpc_loop *loop, int64_t now)
{
    const bool closing = atomic_load(&loop->closing), leaving = atomic_load(&loop->leaving);
    tb_error error = {0};
    if (!closing && !leaving) return;
    if (closing) rpc_loop_accept(loop, false);
    tb_fail(&error, TB_UNAVAILABLE, "the server is stopping");
    for (rpc_connection *c = loop->connections; c != NULL; c = c->next) {
        rpc_connection_notice(c, now);
        if (!closing) continue;
        for (rpc_call *call = c->calls; call != NULL; call = call->next)
            rpc_call_abort(call, &error, STOPPED_RETRY_S);
        rpc_connection_goodbye(c, now);
    }
}

static void tick(rpc_loop *loop, int64_t now)
{
    loop->tick_ns = now + TICK_NS;
    obey(loop, now); /* also connections that are new */
    if (loop->accepts && !loop->accepting && !atomic_load(&loop->closing) &&
        now >= loop->accept_again_ns)
        rpc_loop_accept(loop, true);
    for (rpc_connection *c = loop->connections, *next; c != NULL; c = next) {
        next = c->next;
        rpc_limits_tick(c, now);
    }
}

static void free_ended(rpc_loop *loop)
{
    for (rpc_connection *c = loop->ended, *next; c != NULL; c = next) {
        next = c->next;
        rpc_connection_free(c);
    }
    loop->ended = NULL;
}

int64_t rpc_loop_turn(rpc_loop *loop)
{
    for (int i = 0; i < ROUNDS && run_posted(loop); i++) continue;
    const int64_t now = td_monotonic_ns(), deadline = rpc_deadlines_run(loop, now);
    if (atomic_exchange(&loop->told, false)) obey(loop, now);
    if (now >= loop->tick_ns) tick(loop, now);
    run_posted(loop);
    for (rpc_connection *c; (c = take_dirty(loop)) != NULL;) rpc_connection_write(c);
    free_ended(loop);
    return deadline < loop->tick_ns ? deadline : loop->tick_ns;
}

static void *loop_run(void *context)
{
    rpc_loop *loop = context;
    struct epoll_event events[EVENTS];
    int64_t average_ns = LONGEST_SPIN_NS, until = 0;
    const bool spins = sysconf(_SC_NPROCESSORS_ONLN) >= PROCESSORS_TO_SPIN;
    rpc_loop_accept(loop, loop->accepts);
    while (!atomic_load(&loop->stop)) {
        const int count = wait_for_events(loop, events, until, spins, &average_ns);
        loop->messages = 0;
        for (int i = 0; i < count; i++)
            if (!serve_own_event(loop, &events[i]))
                rpc_connection_ready(events[i].data.ptr, events[i].events);
        until = rpc_loop_turn(loop);
    }
    /* the server is going: connections that are left are cut off */
    run_posted(loop);
    while (loop->connections != NULL) rpc_connection_close(loop->connections);
    run_posted(loop);
    free_ended(loop);
    return NULL;
}

/* ---- making and ending ---- */

static tb_status loop_make(td_rpc *rpc, rpc_loop *loop, tb_error *error)
{
    memset(loop, 0, sizeof *loop);
    loop->rpc = rpc;
    loop->posted_end = &loop->posted;
    atomic_init(&loop->sleeping, false);
    atomic_init(&loop->closing, false);
    atomic_init(&loop->leaving, false);
    atomic_init(&loop->told, false);
    atomic_init(&loop->stop, false);
    if (pthread_mutex_init(&loop->lock, NULL) != 0)
        return tb_fail_memory(error, 0, "a lock of the gRPC server");
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->read_buffer = malloc(RPC_READ_BYTES);
    loop->write_buffer = malloc(RPC_WRITE_BYTES);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = loop};
    if (loop->epoll < 0 || loop->wake < 0 ||
        epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake, &event) != 0)
        return tb_fail(error, TB_RESOURCE_EXHAUSTED, "epoll: %s", strerror(errno));
    if (loop->read_buffer == NULL || loop->write_buffer == NULL)
        return tb_fail_memory(error, RPC_READ_BYTES + RPC_WRITE_BYTES, "buffers of gRPC");
    return TB_OK;
}

tb_status rpc_loops_create(td_rpc *rpc, tb_error *error)
{
    const long loops = sysconf(_SC_NPROCESSORS_ONLN) / PROCESSORS_PER_LOOP;
    const int wanted = loops < 1 ? 1 : loops > RPC_MOST_LOOPS ? RPC_MOST_LOOPS : (int)loops;
    tb_status status = TB_OK;
    while (status == TB_OK && rpc->loop_count < wanted)
        status = loop_make(rpc, &rpc->loops[rpc->loop_count++], error);
    rpc->loops[0].accepts = true;
    return status;
}

tb_status rpc_loops_start(td_rpc *rpc, tb_error *error)
{
    for (int i = 0; i < rpc->loop_count; i++) {
        const int reason = pthread_create(&rpc->loops[i].thread, NULL, loop_run, &rpc->loops[i]);
        if (reason != 0)
            return tb_fail(error, TB_RESOURCE_EXHAUSTED, "cannot start a thread: %s",
                           strerror(reason));
        rpc->loops[i].running = true;
    }
    return TB_OK;
}

void rpc_loops_destroy(td_rpc *rpc)
{
    for (int i = 0; i < rpc->loop_count; i++) {
        rpc_loop *loop = &rpc->loops[i];
        atomic_store(&loop->stop, true);
        rpc_loop_wake(loop);
        if (loop->running) pthread_join(loop->thread, NULL);
        if (loop->epoll >= 0) close(loop->epoll);
        if (loop->wake >= 0) close(loop->wake);
        free(loop->deadlines);
        free(loop->read_buffer);
        free(loop->write_buffer);
        pthread_mutex_destroy(&loop->lock);
    }
    rpc->loop_count = 0;
}
