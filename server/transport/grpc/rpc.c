/* The gRPC server: its parts made in the order of their needs, drained, and ended in the reverse.
 *
 * Drain. New calls are refused by a status that clients retry on, while calls in flight go on. Every
 * client is asked at once to open a new connection (GOAWAY with the largest stream id, RFC 9113
 * 6.8), so that a call that is on its way is still answered. When the last call has ended, or time
 * is up, the second GOAWAY names the last stream that was served, and connections close. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "call/edge.h"
#include "transport/grpc/grpc_internal.h"

/* s; for clients to hang up after the last call */
#define GOODBYE_S 0.5
/* connections may close after this long without a new call, s, or at the latest after this, ns */
#define QUIET_S       0.02
#define QUIET_MOST_NS 500000000

enum { WORKER_QUEUE = 64 };

static tb_status rpc_make(td_server *server, td_rpc **made, tb_error *error)
{
    td_rpc *rpc = calloc(1, sizeof *rpc);
    *made = NULL;
    if (rpc == NULL) return tb_fail_memory(error, sizeof *rpc, "the gRPC server");
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    const bool locks = pthread_mutex_init(&rpc->lock, NULL) == 0 &&
                       pthread_cond_init(&rpc->changed, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    if (!locks) {
        free(rpc);
        return tb_fail_memory(error, 0, "locks of the gRPC server");
    }
    rpc->server = server;
    rpc->spare = -1;
    rpc->limits = rpc_limits_of(server->config);
    rpc->forwarding_lengths = td_edge_forwarding_lengths(server->config);
    atomic_init(&rpc->incoming, 0);
    *made = rpc;
    return TB_OK;
}

tb_status td_rpc_create(td_server *server, td_rpc **made, tb_error *error)
{
    td_rpc *rpc = NULL;
    *made = NULL;
    tb_status status = rpc_make(server, &rpc, error);
    if (status != TB_OK) return status;
    status = rpc_session_prepare(rpc, error);
    if (status == TB_OK) status = rpc_loops_create(rpc, error);
    if (status == TB_OK) status = rpc_reflection_create(&rpc->reflection, error);
    if (status == TB_OK) status = td_certificates_create(server->config, &rpc->certificates, error);
    if (status == TB_OK) status = rpc_listen(rpc, server->config, error);
    if (status == TB_OK)
        *made = rpc;
    else
        td_rpc_destroy(rpc);
    return status;
}

tb_status td_rpc_start(td_rpc *rpc, tb_error *error)
{
    tb_status status = td_workers_create(RPC_WORKERS, WORKER_QUEUE, &rpc->workers, error);
    if (status == TB_OK) status = rpc_loops_start(rpc, error);
    rpc->started = status == TB_OK;
    return status;
}

const char *td_rpc_address(const td_rpc *rpc)
{
    return rpc->address;
}

void td_rpc_set_serving(td_rpc *rpc, bool serving)
{
    rpc_health_change(rpc, serving);
}

/* ---- draining ---- */

static struct timespec later_by(double seconds)
{
    struct timespec until;
    const double longest = 1e6;
    clock_gettime(CLOCK_MONOTONIC, &until);
    if (seconds > longest) seconds = longest;
    if (seconds < 0) seconds = 0;
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}

/* Waits until no call came for a moment, or half a second has passed. The lock is held. */
static void wait_quiet(td_rpc *rpc)
{
    const int64_t end = td_monotonic_ns() + QUIET_MOST_NS;
    uint64_t seen;
    do {
        seen = rpc->refused;
        const struct timespec moment = later_by(QUIET_S);
        int late = 0;
        while (late == 0) late = pthread_cond_timedwait(&rpc->changed, &rpc->lock, &moment);
    } while (rpc->refused != seen && td_monotonic_ns() < end);
}

static void tell_loops(td_rpc *rpc, bool closing)
{
    for (int i = 0; i < rpc->loop_count; i++) {
        atomic_store(closing ? &rpc->loops[i].closing : &rpc->loops[i].leaving, true);
        atomic_store(&rpc->loops[i].told, true);
        rpc_loop_wake(&rpc->loops[i]);
    }
}

void td_rpc_shutdown(td_rpc *rpc, double seconds)
{
    struct timespec until = later_by(seconds);
    int late = 0;
    pthread_mutex_lock(&rpc->lock);
    const bool again = rpc->shutting_down;
    rpc->shutting_down = true;
    pthread_mutex_unlock(&rpc->lock);
    if (again || !rpc->started) return;

    rpc_health_change(rpc, false);
    tell_loops(rpc, false);
    pthread_mutex_lock(&rpc->lock);
    while (rpc->working > 0 && late == 0)
        late = pthread_cond_timedwait(&rpc->changed, &rpc->lock, &until);
    if (late == 0) wait_quiet(rpc);
    pthread_mutex_unlock(&rpc->lock);

    rpc_health_end(rpc);
    tell_loops(rpc, true);
    until = later_by(GOODBYE_S);
    late = 0;
    pthread_mutex_lock(&rpc->lock);
    /* each call hears of its end, and each client of its connection's */
    while (rpc->calls > 0) pthread_cond_wait(&rpc->changed, &rpc->lock);
    while (rpc->connections > 0 && late == 0)
        late = pthread_cond_timedwait(&rpc->changed, &rpc->lock, &until);
    pthread_mutex_unlock(&rpc->lock);
}

void td_rpc_destroy(td_rpc *rpc)
{
    if (rpc == NULL) return;
    td_rpc_shutdown(rpc, 0);
    rpc_loops_destroy(rpc);
    if (rpc->workers != NULL) td_workers_destroy(rpc->workers);
    rpc_unlisten(rpc);
    rpc_session_dispose(rpc);
    td_certificates_destroy(rpc->certificates);
    rpc_reflection_destroy(rpc->reflection);
    pthread_cond_destroy(&rpc->changed);
    pthread_mutex_destroy(&rpc->lock);
    free(rpc);
}
