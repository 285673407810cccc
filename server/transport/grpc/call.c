/* The life of a call between handlers, which answer from any thread, and the wire, which the loop's
 * thread alone touches. The wire holds a reference until the stream is closed; from then on nothing
 * of the call is posted, so that the transport can be taken down while a method still works on an
 * answer that is not wanted any more. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "transport/grpc/grpc_internal.h"

/* ---- functions that handlers call ---- */

static void transport_send(td_call *base, const ProtobufCMessage *response)
{
    rpc_call *call = (rpc_call *)base;
    rpc_message *message = rpc_pack(response, call->gzip_out);
    if (message == NULL) {
        tb_error error = {0};
        atomic_fetch_sub(&base->queued, 1);
        tb_fail_memory(&error, protobuf_c_message_get_packed_size(response), "an answer");
        td_call_fail(base, &error);
        return;
    }
    pthread_mutex_lock(&call->lock);
    if (call->closed || call->ending) {
        atomic_fetch_sub(&base->queued, 1);
        free(message);
    } else {
        if (call->first == NULL)
            call->first = message;
        else
            call->last->next = message;
        call->last = message;
        if (base->method->server_streaming) rpc_loop_post(call);
    }
    pthread_mutex_unlock(&call->lock);
}

static void transport_finish(td_call *base, tb_status status, const tb_error *error,
                             double retry_after)
{
    rpc_call *call = (rpc_call *)base;
    tb_error *copy = NULL;
    if (status != TB_OK && error != NULL) {
        copy = malloc(sizeof *copy);
        if (copy != NULL) *copy = *error;
    }
    pthread_mutex_lock(&call->lock);
    if (!call->ending) {
        call->status = status;
        call->code = tb_status_grpc(status);
        call->retry_after = retry_after;
        call->error = copy;
        copy = NULL;
        call->ending = true;
        rpc_loop_post(call);
    }
    pthread_mutex_unlock(&call->lock);
    free(copy);
}

static void transport_read(td_call *base)
{
    rpc_call *call = (rpc_call *)base;
    pthread_mutex_lock(&call->lock);
    if (!call->reading && call->request.base == NULL) {
        call->reading = true;
        rpc_loop_post(call);
    }
    pthread_mutex_unlock(&call->lock);
}

static void transport_destroy(td_call *base)
{
    rpc_call *call = (rpc_call *)base;
    rpc_send_drop(call);
    if (call->head.authorization != NULL) {
        explicit_bzero(call->head.authorization, strlen(call->head.authorization));
        free(call->head.authorization);
    }
    free(call->request.base);
    free(call->error);
    pthread_mutex_destroy(&call->lock);
    free(call);
}

const td_call_transport rpc_transport = {.send = transport_send,
                                         .finish = transport_finish,
                                         .read = transport_read,
                                         .destroy = transport_destroy,
                                         .name = "grpc"};

/* ---- on the loop's thread ---- */

rpc_call *rpc_call_make(rpc_connection *c, int32_t stream)
{
    rpc_call *call = calloc(1, sizeof *call);
    if (call == NULL) return NULL;
    if (pthread_mutex_init(&call->lock, NULL) != 0) {
        free(call);
        return NULL;
    }
    td_call_init(&call->base, &rpc_transport, c->rpc->server);
    memcpy(call->base.peer, c->peer, sizeof call->base.peer);
    atomic_init(&call->events, 0);
    call->rpc = c->rpc;
    call->loop = c->loop;
    call->connection = c;
    call->stream = stream;
    call->arrived_ns = call->base.arrival_ns;
    call->next = c->calls;
    if (call->next != NULL) call->next->previous = call;
    c->calls = call;
    c->number_of_calls++;
    return call;
}

bool rpc_call_begin(rpc_call *call, bool working)
{
    td_rpc *rpc = call->rpc;
    pthread_mutex_lock(&rpc->lock);
    const bool refused = working && rpc->shutting_down;
    if (refused) rpc->refused++;
    call->working = working && !refused;
    call->counted = true;
    rpc->calls++;
    if (call->working) rpc->working++;
    pthread_mutex_unlock(&rpc->lock);
    return !refused;
}

void rpc_call_posted(rpc_call *call)
{
    pthread_mutex_lock(&call->lock);
    call->posted = false;
    pthread_mutex_unlock(&call->lock);
    if (call->connection == NULL) return;
    if (call->http_status != NULL) {
        rpc_send_http(call);
        return;
    }
    rpc_receive(call);
    rpc_send(call);
    const int left = call->left;
    call->left = 0;
    if (left > 0 && atomic_fetch_sub(&call->base.queued, left) == left) rpc_tell_writable(call);
}

static void unlink_call(rpc_call *call)
{
    rpc_connection *c = call->connection;
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        c->calls = call->next;
    if (call->next != NULL) call->next->previous = call->previous;
    const int standing = atomic_load(&call->standing);
    if (standing > atomic_load(&c->standing)) atomic_store(&c->standing, standing);
    atomic_store(&c->quiet_since_ns, td_monotonic_ns());
    c->number_of_calls--;
    call->connection = NULL;
}

void rpc_call_close(rpc_call *call, bool broken)
{
    td_rpc *rpc = call->rpc;
    td_call *base = &call->base;
    rpc_deadline_remove(call);
    rpc_receive_drop(call);
    pthread_mutex_lock(&call->lock);
    call->closed = true;
    const int dropped = rpc_send_drop(call);
    pthread_mutex_unlock(&call->lock);
    atomic_fetch_sub(&base->queued, dropped + call->left);
    call->left = 0;
    unlink_call(call);
    if (broken || !atomic_load(&base->finished)) td_call_cancel(base);

    if (call->counted) {
        pthread_mutex_lock(&rpc->lock);
        rpc->calls--;
        if (call->working) rpc->working--;
        pthread_cond_broadcast(&rpc->changed);
        pthread_mutex_unlock(&rpc->lock);
    }
    td_call_release(base);
}

/* The method receives `cancelled` before the call ends, and may end the call itself as cancelled:
 * the client receives the transport's reason instead. */
void rpc_call_abort(rpc_call *call, const tb_error *error, double retry_after)
{
    td_call *base = &call->base;
    if (call->trailed || atomic_load(&base->finished)) return;
    td_call_cancel(base);
    td_call_finish(base, error->status, error, retry_after);
    tb_error *copy = malloc(sizeof *copy);
    pthread_mutex_lock(&call->lock);
    if (copy != NULL && call->ending && call->status == TB_CANCELLED) {
        *copy = *error;
        free(call->error);
        call->error = copy;
        call->status = error->status;
        call->code = tb_status_grpc(error->status);
        call->retry_after = retry_after;
        copy = NULL;
    }
    pthread_mutex_unlock(&call->lock);
    free(copy);
}
