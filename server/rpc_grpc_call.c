/* A call on the wire.
 *
 * Out. The core takes one message of a call at a time, so packed messages wait in a list and each
 * completion sends the next; headers go with the first and the status with the last, so that a
 * unary answer is one write. Sending starts on the thread that asked for it: the write happens
 * there, without a hop.
 *
 * In. What a method must be told (a message, the end of the messages, room to send) are bits of
 * `events`. Whoever sets a bit while nobody tells becomes the teller until all bits are told. So a
 * method's functions never run two at once, and no thread waits for another.
 *
 * End. The core tells the close of every call once. After it no batch begins, so that the transport
 * can be taken down while a method still works on an answer that nobody wants. */
#include "rpc_grpc_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { EVENT_MESSAGE = 1, EVENT_HALF_CLOSED = 2, EVENT_WRITABLE = 4, EVENT_TELLING = 8 };
enum { RETRY_TEXT_SIZE = 32 };
/* messages above this take longer to unpack than the only poll thread should be away */
enum { LARGE_MESSAGE_BYTES = 256 << 10 };

/* ---- batches ---- */

/* Hands operations to the core; false if the call has closed. The lock is held and stays so: the
 * core queues completions and never calls back. */
static bool start_batch(rpc_call *call, const grpc_op *ops, size_t count, rpc_tag *tag)
{
    if (call->closed_seen) return false;
    if (grpc_call_start_batch(call->grpc, ops, count, tag, NULL) != GRPC_CALL_OK) return false;
    call->batches++;
    return true;
}

/* Gives the call back to the core once all is told, and lets go of the transport's reference.
 * Called after a batch with the lock held; unlocks. */
static void unlock_after_batch(rpc_call *call)
{
    const bool over = --call->batches == 0 && call->closed_seen;
    pthread_mutex_unlock(&call->lock);
    if (!over) return;

    td_rpc *rpc = call->rpc;
    const bool working = call->working;
    grpc_call_unref(call->grpc);
    td_call_release(&call->base);
    pthread_mutex_lock(&rpc->lock);
    rpc->calls--;
    if (working) rpc->working--;
    pthread_cond_broadcast(&rpc->changed);
    pthread_mutex_unlock(&rpc->lock);
}

/* ---- out ---- */

static void message_free(rpc_message *message)
{
    if (message == NULL) return;
    grpc_byte_buffer_destroy(message->bytes);
    free(message);
}

/* Sends what waits, as far as the core takes it now. The lock is held. */
static void send_more(rpc_call *call)
{
    grpc_op ops[3];
    size_t count = 0;
    if (call->sending || call->status_sent || call->closed_seen) return;
    if (call->first == NULL && !call->ending) return;
    /* a single answer waits for its status, to leave with it */
    if (!call->ending && !call->base.method->server_streaming) return;

    memset(ops, 0, sizeof ops);
    if (!call->headers_sent) ops[count++].op = GRPC_OP_SEND_INITIAL_METADATA;
    call->headers_sent = true;
    call->leaving = call->first;
    if (call->first != NULL) {
        call->first = call->first->next;
        ops[count].op = GRPC_OP_SEND_MESSAGE;
        /* more follows: the core may gather it in one write */
        if (call->first != NULL) ops[count].flags = GRPC_WRITE_BUFFER_HINT;
        ops[count++].data.send_message.send_message = call->leaving->bytes;
    }
    if (call->ending && call->first == NULL) {
        grpc_op *op = &ops[count++];
        op->op = GRPC_OP_SEND_STATUS_FROM_SERVER;
        op->data.send_status_from_server.status = call->code;
        op->data.send_status_from_server.status_details = &call->text;
        op->data.send_status_from_server.trailing_metadata = call->trailers;
        op->data.send_status_from_server.trailing_metadata_count = call->trailer_count;
        call->status_sent = true;
    }
    call->sending = start_batch(call, ops, count, &call->sent);
}

/* Forgets what was not sent. The lock is held; gives the number of messages. */
static int drop_waiting(rpc_call *call)
{
    int dropped = 0;
    while (call->first != NULL) {
        rpc_message *next = call->first->next;
        message_free(call->first);
        call->first = next;
        dropped++;
    }
    return dropped;
}

static void transport_send(td_call *base, const ProtobufCMessage *response)
{
    rpc_call *call = (rpc_call *)base;
    rpc_message *message = malloc(sizeof *message);
    if (message == NULL) {
        /* an answer that cannot be sent ends the call; the method learns of it by the close */
        atomic_fetch_sub(&base->queued, 1);
        pthread_mutex_lock(&call->lock);
        if (!call->closed_seen)
            grpc_call_cancel_with_status(call->grpc, GRPC_STATUS_RESOURCE_EXHAUSTED,
                                         "out of memory", NULL);
        pthread_mutex_unlock(&call->lock);
        return;
    }
    message->next = NULL;
    message->bytes = rpc_pack(response);
    pthread_mutex_lock(&call->lock);
    if (call->closed_seen || call->ending) {
        atomic_fetch_sub(&base->queued, 1);
        message_free(message);
    } else {
        if (call->first == NULL)
            call->first = message;
        else
            call->last->next = message;
        call->last = message;
        send_more(call);
    }
    pthread_mutex_unlock(&call->lock);
}

static void add_trailer(rpc_call *call, const char *key, grpc_slice value)
{
    grpc_metadata *trailer = &call->trailers[call->trailer_count++];
    trailer->key = grpc_slice_from_static_string(key);
    trailer->value = value;
}

/* Prepares the status of a call that went wrong. */
static void describe_failure(rpc_call *call, tb_status status, const tb_error *error,
                             double retry_after)
{
    size_t size = 0;
    const bool told = error != NULL && error->message[0] != '\0';
    uint8_t *details = td_status_details(status, error, retry_after, &size);
    call->text = grpc_slice_from_copied_string(told ? error->message : tb_status_text(status));
    if (details != NULL)
        add_trailer(call, "grpc-status-details-bin",
                    grpc_slice_from_copied_buffer((const char *)details, size));
    free(details);
    if (retry_after > 0) {
        char text[RETRY_TEXT_SIZE];
        const double longest_ms = 1e9;
        snprintf(text, sizeof text, "%.0f", ceil(fmin(retry_after * 1e3, longest_ms)));
        add_trailer(call, "grpc-retry-pushback-ms", grpc_slice_from_copied_string(text));
    }
}

static void transport_finish(td_call *base, tb_status status, const tb_error *error,
                             double retry_after)
{
    rpc_call *call = (rpc_call *)base;
    pthread_mutex_lock(&call->lock);
    if (!call->ending) {
        call->code = (grpc_status_code)tb_status_grpc(status);
        if (status != TB_OK) describe_failure(call, status, error, retry_after);
        call->ending = true;
        send_more(call);
    }
    pthread_mutex_unlock(&call->lock);
}

/* ---- in ---- */

static void refuse_message(rpc_call *call, grpc_byte_buffer *bytes, const tb_error *error)
{
    grpc_byte_buffer_destroy(bytes);
    td_call_refuse(&call->base, error);
}

static void tell_message(rpc_call *call)
{
    td_call *base = &call->base;
    rpc_flat flat;
    td_request *request = NULL;
    tb_error error = {0};
    pthread_mutex_lock(&call->lock);
    grpc_byte_buffer *bytes = call->request;
    call->request = NULL;
    call->receiving = false;
    pthread_mutex_unlock(&call->lock);
    call->began = true;

    const size_t limit = base->server->config->message_bytes;
    if (rpc_flatten(bytes, limit, &flat, &error) != TB_OK) {
        refuse_message(call, bytes, &error);
        return;
    }
    if (flat.size > LARGE_MESSAGE_BYTES) rpc_poll_relieve(call->rpc);
    const tb_status status =
        td_request_unpack(base->server, base->method, flat.bytes, flat.size, &request, &error);
    rpc_flat_free(&flat);
    if (status != TB_OK) {
        refuse_message(call, bytes, &error);
        return;
    }
    grpc_byte_buffer_destroy(bytes);
    td_call_dispatch(base, request);
}

static void tell_half_closed(rpc_call *call)
{
    td_call *base = &call->base;
    if (atomic_load(&base->gone) || atomic_load(&base->finished)) return;
    if (call->began) {
        if (base->method->half_closed != NULL) base->method->half_closed(base);
    } else if (base->method->client_streaming && base->method->server_streaming) {
        td_call_finish(base, TB_OK, NULL, 0);
    } else {
        tb_error error = {0};
        tb_fail(&error, TB_INVALID_ARGUMENT, "%s: the client sent no message", base->method->name);
        td_call_refuse(base, &error);
    }
}

static void tell_writable(rpc_call *call)
{
    td_call *base = &call->base;
    if (base->method->writable == NULL || td_call_queued(base) > 0) return;
    if (atomic_load(&base->gone) || atomic_load(&base->finished)) return;
    base->method->writable(base);
}

/* Has the method told of an event: by this thread, or by the one that is telling already. */
static void tell(rpc_call *call, unsigned event)
{
    if (atomic_fetch_or(&call->events, event | EVENT_TELLING) & EVENT_TELLING) return;
    td_call_hold(&call->base);
    for (;;) {
        const unsigned events = atomic_exchange(&call->events, EVENT_TELLING);
        if (events & EVENT_MESSAGE) tell_message(call);
        if (events & EVENT_HALF_CLOSED) tell_half_closed(call);
        if (events & EVENT_WRITABLE) tell_writable(call);
        unsigned expected = EVENT_TELLING;
        if (atomic_compare_exchange_strong(&call->events, &expected, 0)) break;
    }
    td_call_release(&call->base);
}

static void transport_read(td_call *base)
{
    rpc_call *call = (rpc_call *)base;
    const grpc_op op = {.op = GRPC_OP_RECV_MESSAGE,
                        .data.recv_message.recv_message = &call->request};
    pthread_mutex_lock(&call->lock);
    if (!call->receiving) call->receiving = start_batch(call, &op, 1, &call->received);
    pthread_mutex_unlock(&call->lock);
}

/* ---- what the completion queue brings ---- */

static void on_received(rpc_call *call, bool success)
{
    /* no message: the client has sent all, or the call broke, of which the close will tell */
    if (call->request != NULL && success)
        tell(call, EVENT_MESSAGE);
    else if (success && !grpc_call_failed_before_recv_message(call->grpc))
        tell(call, EVENT_HALF_CLOSED);

    pthread_mutex_lock(&call->lock);
    unlock_after_batch(call);
}

static void on_sent(rpc_call *call, bool success)
{
    int left = 0;
    pthread_mutex_lock(&call->lock);
    call->sending = false;
    if (call->leaving != NULL) left++;
    message_free(call->leaving);
    call->leaving = NULL;
    if (success)
        send_more(call);
    else
        left += drop_waiting(call);
    pthread_mutex_unlock(&call->lock);

    if (left > 0 && atomic_fetch_sub(&call->base.queued, left) == left && success)
        tell(call, EVENT_WRITABLE);

    pthread_mutex_lock(&call->lock);
    unlock_after_batch(call);
}

static void on_closed(rpc_call *call, bool success)
{
    (void)success;
    pthread_mutex_lock(&call->lock);
    call->closed_seen = true;
    const int dropped = drop_waiting(call);
    pthread_mutex_unlock(&call->lock);

    atomic_fetch_sub(&call->base.queued, dropped);
    if (call->cancelled != 0) td_call_cancel(&call->base);

    pthread_mutex_lock(&call->lock);
    unlock_after_batch(call);
}

/* ---- beginning and end ---- */

static void transport_destroy(td_call *base)
{
    rpc_call *call = (rpc_call *)base;
    drop_waiting(call);
    message_free(call->leaving);
    if (call->request != NULL) grpc_byte_buffer_destroy(call->request);
    for (size_t i = 0; i < call->trailer_count; i++) grpc_slice_unref(call->trailers[i].value);
    grpc_slice_unref(call->text);
    grpc_call_details_destroy(&call->details);
    grpc_metadata_array_destroy(&call->metadata);
    pthread_mutex_destroy(&call->lock);
    free(call);
}

const td_call_transport rpc_transport = {.send = transport_send,
                                         .finish = transport_finish,
                                         .read = transport_read,
                                         .destroy = transport_destroy,
                                         .name = "grpc"};

rpc_call *rpc_call_make(td_rpc *rpc)
{
    rpc_call *call = calloc(1, sizeof *call);
    if (call == NULL) return NULL;
    if (pthread_mutex_init(&call->lock, NULL) != 0) {
        free(call);
        return NULL;
    }
    td_call_init(&call->base, &rpc_transport, rpc->server);
    call->rpc = rpc;
    call->received = (rpc_tag){on_received, call};
    call->closed = (rpc_tag){on_closed, call};
    call->sent = (rpc_tag){on_sent, call};
    call->text = grpc_empty_slice();
    atomic_init(&call->events, 0);
    grpc_call_details_init(&call->details);
    grpc_metadata_array_init(&call->metadata);
    return call;
}

void rpc_call_drop(rpc_call *call)
{
    td_call_release(&call->base);
}

bool rpc_call_begin(rpc_call *call, bool working)
{
    const grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
                        .data.recv_close_on_server.cancelled = &call->cancelled};
    pthread_mutex_lock(&call->rpc->lock);
    const bool refused = working && call->rpc->shutting_down;
    if (refused) call->rpc->refused++;
    call->working = working && !refused;
    call->rpc->calls++;
    if (call->working) call->rpc->working++;
    pthread_mutex_unlock(&call->rpc->lock);

    pthread_mutex_lock(&call->lock);
    call->batches = 1; /* the arrival itself, until rpc_call_begun */
    if (!start_batch(call, &op, 1, &call->closed)) call->closed_seen = true;
    pthread_mutex_unlock(&call->lock);
    return !refused;
}

void rpc_call_begun(rpc_call *call)
{
    pthread_mutex_lock(&call->lock);
    unlock_after_batch(call);
}
