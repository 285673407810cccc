/* The threads that poll.
 *
 * The core polls its sockets inside of those who wait for its completion queue, so that a message
 * is decoded, and as a rule answered, by the thread that read it. With two threads in the queue the
 * core hands polling from one to the other at every event, which costs a stream a wake of a thread
 * each time. So one thread polls alone while nothing but streams is at work. A second one joins it
 * for as long as something may keep the first away: calls begin (whose methods may take long), a
 * message is large, or more messages have come than one thread answers at once.
 *
 * While a stream's next message keeps coming within a few microseconds, the first thread looks for
 * it instead of sleeping: waking takes as long as a step. An idle server sleeps. */
#include <grpc/support/time.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "rpc_grpc_internal.h"

/* Longer waits are slept through; the shortest that shows that nothing else was there, ns. */
static const int64_t LONGEST_SPIN_NS = 100000, SHORTEST_WAIT_NS = 2000;
/* How long the second thread stays after it was last asked for. */
static const int64_t STAND_IN_NS = 5000000;
enum {
    /* messages at once from which on one thread is too few */
    MESSAGES_FOR_TWO = 4,
    /* fewer processors than this have one thread that polls, and none to spin on */
    PROCESSORS_FOR_TWO = 4
};

/* What a thread knows of its last waits. */
typedef struct rpc_waits {
    bool spins;
    int64_t average_ns; /* of a wait in which something came from outside */
    int32_t messages;   /* since the last such wait */
} rpc_waits;

static grpc_event next_event(td_rpc *rpc, gpr_timespec deadline)
{
    return grpc_completion_queue_next(rpc->queue, deadline, NULL);
}

/* The next event; looks for it for a while if it is likely to come soon. */
static grpc_event wait_for_event(td_rpc *rpc, rpc_waits *waits, gpr_timespec deadline)
{
    const int64_t begin = td_monotonic_ns(), limit = 2 * waits->average_ns;
    const bool spins = waits->spins && limit <= LONGEST_SPIN_NS && !atomic_load(&rpc->relieved);
    grpc_event event = {.type = GRPC_QUEUE_TIMEOUT};
    int64_t now = begin;
    for (; spins && event.type == GRPC_QUEUE_TIMEOUT && now - begin < limit;
         now = td_monotonic_ns())
        event = next_event(rpc, gpr_time_0(GPR_CLOCK_MONOTONIC));
    if (event.type == GRPC_QUEUE_TIMEOUT) {
        event = next_event(rpc, deadline);
        now = td_monotonic_ns();
    }

    int64_t wait = now - begin;
    if (wait < SHORTEST_WAIT_NS) return event;
    if (wait > LONGEST_SPIN_NS) wait = LONGEST_SPIN_NS; /* one pause is not the end of a stream */
    waits->average_ns = (7 * waits->average_ns + wait) / 8;
    waits->messages = 0;
    return event;
}

static void handle(td_rpc *rpc, rpc_waits *waits, const grpc_event *event)
{
    const rpc_tag *tag = event->tag;
    if (tag == &rpc->shutdown_tag) {
        pthread_mutex_lock(&rpc->lock);
        rpc->shut_down = true;
        pthread_cond_broadcast(&rpc->changed);
        pthread_mutex_unlock(&rpc->lock);
        return;
    }
    rpc_call *call = tag->call;
    if (tag == &call->received) {
        /* the lock also tells race detectors of the order that the core, which they do not see into,
         * has brought this message and the one before it into */
        pthread_mutex_lock(&call->lock);
        call->base.at_leisure = waits->messages == 0;
        pthread_mutex_unlock(&call->lock);
        if (++waits->messages >= MESSAGES_FOR_TWO) rpc_poll_relieve(rpc);
    }
    tag->happened(call, event->success != 0);
}

static void *serve(void *context)
{
    td_rpc *rpc = context;
    rpc_waits waits = {.spins = rpc->most_threads > 1, .average_ns = LONGEST_SPIN_NS};
    for (;;) {
        const grpc_event event = wait_for_event(rpc, &waits, gpr_inf_future(GPR_CLOCK_MONOTONIC));
        if (event.type == GRPC_QUEUE_SHUTDOWN) return NULL;
        if (event.type != GRPC_OP_COMPLETE) continue;
        atomic_store(&rpc->away, true);
        handle(rpc, &waits, &event);
        atomic_store(&rpc->away, false);
    }
}

/* The first thread does not poll, or the queue is to be emptied. */
static bool needed(const td_rpc *rpc)
{
    return atomic_load(&rpc->away) || atomic_load(&rpc->ending);
}

/* Serves until nobody has asked for it for a while and the first thread is back; false at the end. */
static bool help(td_rpc *rpc)
{
    rpc_waits waits = {.average_ns = LONGEST_SPIN_NS};
    for (;;) {
        const int64_t left = atomic_load(&rpc->relief_ns) + STAND_IN_NS - td_monotonic_ns();
        if (left <= 0 && !needed(rpc)) return true;
        const gpr_timespec until =
            gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                         gpr_time_from_nanos(left > 0 ? left : STAND_IN_NS, GPR_TIMESPAN));
        const grpc_event event = wait_for_event(rpc, &waits, until);
        if (event.type == GRPC_QUEUE_SHUTDOWN) return false;
        if (event.type == GRPC_OP_COMPLETE) handle(rpc, &waits, &event);
    }
}

static void *stand_in(void *context)
{
    td_rpc *rpc = context;
    do {
        pthread_mutex_lock(&rpc->lock);
        atomic_store(&rpc->relieved, false);
        /* the first may just have gone away and taken this thread for awake */
        if (needed(rpc)) atomic_store(&rpc->relieved, true);
        while (!atomic_load(&rpc->relieved)) pthread_cond_wait(&rpc->relief, &rpc->lock);
        pthread_mutex_unlock(&rpc->lock);
    } while (help(rpc));
    return NULL;
}

void rpc_poll_relieve(td_rpc *rpc)
{
    if (rpc->most_threads < 2) return;
    atomic_store(&rpc->relief_ns, td_monotonic_ns());
    if (atomic_load(&rpc->relieved)) return;
    pthread_mutex_lock(&rpc->lock);
    atomic_store(&rpc->relieved, true);
    pthread_cond_signal(&rpc->relief);
    pthread_mutex_unlock(&rpc->lock);
}

tb_status rpc_poll_start(td_rpc *rpc, tb_error *error)
{
    rpc->most_threads = sysconf(_SC_NPROCESSORS_ONLN) < PROCESSORS_FOR_TWO ? 1 : RPC_MOST_THREADS;
    for (int i = 0; i < rpc->most_threads; i++) {
        const int reason = pthread_create(&rpc->threads[i], NULL, i == 0 ? serve : stand_in, rpc);
        if (reason != 0)
            return tb_fail(error, TB_RESOURCE_EXHAUSTED, "cannot start a thread: %s",
                           strerror(reason));
        rpc->threads_running++;
    }
    return TB_OK;
}

void rpc_poll_end(td_rpc *rpc)
{
    pthread_mutex_lock(&rpc->lock);
    atomic_store(&rpc->ending, true);
    atomic_store(&rpc->relieved, true);
    pthread_cond_broadcast(&rpc->relief);
    pthread_mutex_unlock(&rpc->lock);
    if (rpc->queue != NULL) grpc_completion_queue_shutdown(rpc->queue);
    if (rpc->threads_running == 0 && rpc->queue != NULL) serve(rpc);
    for (int i = 0; i < rpc->threads_running; i++) pthread_join(rpc->threads[i], NULL);
}
