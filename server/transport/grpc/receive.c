/* Request messages: framing, decompression, and delivery to the method.
 *
 * A message is a flag, a length of four bytes, and its bytes, split over any DATA frames. A
 * stream's window opens only for the message that the method requested: a method that does not read
 * blocks its client. The transport counts all held bytes and refuses a message beyond the bound
 * with a retry time.
 *
 * Events of a call (a message, the end of the messages, space to send) are bits of `events`. A
 * thread that sets a bit while no delivery runs delivers events until all bits are clear. So a
 * method's functions never run concurrently for one call, and no thread waits for another. A worker
 * decodes and delivers large and compressed messages. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "transport/grpc/grpc_internal.h"
#include "wire/gzip.h"

enum { EVENT_MESSAGE = 1, EVENT_HALF_CLOSED = 2, EVENT_WRITABLE = 4, EVENT_TELLING = 8 };
enum {
    /* messages above this take longer to decode than other connections should wait */
    LARGE_MESSAGE_BYTES = 256 << 10,
    LARGE_COMPRESSED_BYTES = 4 << 10,
    /* smaller messages are copied out of the received bytes; for larger ones the bytes that follow
     * are copied */
    SMALL_MESSAGE_BYTES = 16 << 10,
    COMPRESSED = 1
};
/* s; for other messages to be done with */
#define FULL_RETRY_S 1.0

void rpc_flat_free(td_rpc *rpc, rpc_flat *flat)
{
    atomic_fetch_sub(&rpc->incoming, flat->accounted);
    free(flat->base);
    *flat = (rpc_flat){0};
}

/* ---- delivery ---- */

/* Inflates a message in place of its packed form, up to the limit for messages. */
static tb_status inflate_flat(const rpc_call *call, rpc_flat *flat, tb_error *error)
{
    tb_bytes inflated = {0};
    const size_t limit = call->rpc->limits.message_bytes;
    const tb_status status =
        http_gunzip(flat->base + flat->at, flat->size, limit, &inflated, error);
    if (status != TB_OK) {
        tb_bytes_free(&inflated);
        return status;
    }
    free(flat->base);
    flat->base = inflated.base;
    flat->at = 0;
    flat->size = inflated.size;
    return TB_OK;
}

/* The message to deliver, unpacked; NULL if it cannot be read, and then the call is refused. */
static td_request *take_request(rpc_call *call)
{
    td_call *base = &call->base;
    td_request *request = NULL;
    tb_error error = {0};
    pthread_mutex_lock(&call->lock);
    rpc_flat flat = call->request;
    call->request = (rpc_flat){0};
    pthread_mutex_unlock(&call->lock);
    call->began = true;

    tb_status status = flat.compressed ? inflate_flat(call, &flat, &error) : TB_OK;
    if (status == TB_OK)
        status = td_request_unpack(base->server, base->method->input, flat.base + flat.at,
                                   flat.size, &request, &error);
    rpc_flat_free(call->rpc, &flat);
    if (status == TB_OK) return request;
    td_call_refuse(base, &error);
    return NULL;
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
    if (base->method == NULL || base->method->writable == NULL || td_call_queued(base) > 0) return;
    if (atomic_load(&base->gone) || atomic_load(&base->finished)) return;
    base->method->writable(base);
}

/* Delivers an event to the method: on this thread, or on the thread that is delivering already. */
static void tell(rpc_call *call, unsigned event)
{
    if (atomic_fetch_or(&call->events, event | EVENT_TELLING) & EVENT_TELLING) return;
    td_call_hold(&call->base);
    for (;;) {
        const unsigned events = atomic_exchange(&call->events, EVENT_TELLING);
        td_request *request = events & EVENT_MESSAGE ? take_request(call) : NULL;
        if (request != NULL) td_call_dispatch(&call->base, request);
        if (events & EVENT_HALF_CLOSED) tell_half_closed(call);
        if (events & EVENT_WRITABLE) tell_writable(call);
        unsigned expected = EVENT_TELLING;
        if (atomic_compare_exchange_strong(&call->events, &expected, 0)) break;
    }
    td_call_release(&call->base);
}

void rpc_tell_writable(rpc_call *call)
{
    tell(call, EVENT_WRITABLE);
}

static void tell_on_worker(void *context)
{
    rpc_call *call = context;
    tell(call, EVENT_MESSAGE);
    td_call_release(&call->base);
}

/* ---- messages ---- */

/* Opens the stream's window by the consumed bytes, all but `kept`. */
static void consume(rpc_call *call, size_t kept)
{
    if (call->unconsumed <= kept) return;
    nghttp2_session_consume_stream(call->connection->session, call->stream,
                                   call->unconsumed - kept);
    call->unconsumed = kept;
    rpc_connection_touch(call->connection);
}

void rpc_receive_drop(rpc_call *call)
{
    atomic_fetch_sub(&call->rpc->incoming, call->accounted);
    call->accounted = 0;
    call->arrived_at = 0;
    tb_bytes_free(&call->arrived);
}

static void refuse(rpc_call *call, const tb_error *error)
{
    rpc_receive_drop(call);
    consume(call, 0);
    td_call_refuse(&call->base, error);
}

/* Keeps bytes of a message; false if the call is refused for want of memory. */
static bool keep_bytes(rpc_call *call, const uint8_t *bytes, size_t size)
{
    td_rpc *rpc = call->rpc;
    tb_error error = {0};
    if (atomic_load(&rpc->incoming) + size > rpc->limits.incoming_bytes) {
        tb_fail(&error, TB_RESOURCE_EXHAUSTED,
                "the server holds %zu bytes of other requests; try again later",
                rpc->limits.incoming_bytes);
        rpc_receive_drop(call);
        consume(call, 0);
        rpc_call_abort(call, &error, FULL_RETRY_S);
        return false;
    }
    if (tb_bytes_append(&call->arrived, bytes, size) != TB_OK) {
        tb_fail_memory(&error, size, "a request");
        refuse(call, &error);
        return false;
    }
    atomic_fetch_add(&rpc->incoming, size);
    call->accounted += size;
    return true;
}

int rpc_receive_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
                     size_t size, void *connection)
{
    (void)flags, (void)connection;
    rpc_call *call = nghttp2_session_get_stream_user_data(session, stream);
    nghttp2_session_consume_connection(session, size);
    if (call == NULL) {
        nghttp2_session_consume_stream(session, stream, size);
        return 0;
    }
    call->unconsumed += size;
    call->arrived_ns = call->connection->heard_ns;
    if (call->http_status != NULL) {
        rpc_send_http(call);
    } else if (atomic_load(&call->base.finished)) {
        rpc_receive_drop(call);
        consume(call, 0);
    } else if (keep_bytes(call, bytes, size)) {
        pthread_mutex_lock(&call->lock);
        if (call->reading) rpc_loop_post(call);
        pthread_mutex_unlock(&call->lock);
    }
    return 0;
}

/* Takes the first `size` bytes after the message prefix out of the received bytes. */
static bool take_message(rpc_call *call, size_t size, rpc_flat *flat)
{
    const size_t begin = call->arrived_at + RPC_PREFIX_BYTES, end = begin + size;
    const size_t follows = call->arrived.size - end;
    if (size <= SMALL_MESSAGE_BYTES && follows > 0) {
        flat->base = malloc(size + 1);
        if (flat->base == NULL) return false;
        memcpy(flat->base, call->arrived.base + begin, size);
        call->arrived_at = end;
    } else {
        tb_bytes rest = {0};
        if (follows > 0 && tb_bytes_append(&rest, call->arrived.base + end, follows) != TB_OK)
            return false;
        flat->base = call->arrived.base;
        flat->at = begin;
        call->arrived = rest;
        call->arrived_at = 0;
    }
    flat->size = size;
    flat->accounted = size + RPC_PREFIX_BYTES;
    call->accounted -= flat->accounted;
    consume(call, follows);
    return true;
}

/* The length behind the prefix of the next message; false if it has to be refused. */
static bool read_prefix(const rpc_call *call, size_t *size, bool *compressed, tb_error *error)
{
    const uint8_t *prefix = call->arrived.base + call->arrived_at;
    const size_t limit = call->rpc->limits.message_bytes;
    *compressed = prefix[0] == COMPRESSED;
    *size = (size_t)prefix[1] << 24 | (size_t)prefix[2] << 16 | (size_t)prefix[3] << 8 | prefix[4];
    if (prefix[0] > COMPRESSED)
        tb_fail(error, TB_INVALID_ARGUMENT, "a message's flags are 0x%02x: they may be 0 or 1",
                prefix[0]);
    else if (*compressed && !call->gzip_in)
        tb_fail(error, TB_INVALID_ARGUMENT,
                "a message is compressed, and grpc-encoding does not say how");
    else if (*size > limit)
        tb_fail(error, TB_RESOURCE_EXHAUSTED,
                "the message has %zu bytes, more than the %zu that it may have", *size, limit);
    else
        return true;
    return false;
}

/* Takes the next message, if the method asked for one and it is complete. Otherwise false: the
 * message is still to come, or the call's input has ended or is refused. */
static bool next_message(rpc_call *call, rpc_flat *flat)
{
    const size_t there = call->arrived.size - call->arrived_at;
    tb_error error = {0};
    pthread_mutex_lock(&call->lock);
    const bool reading = call->reading;
    pthread_mutex_unlock(&call->lock);
    if (atomic_load(&call->base.finished)) {
        rpc_receive_drop(call);
        consume(call, 0);
        return false;
    }
    if (!reading) return false;
    if (there == 0 && call->input_ended) {
        if (!call->end_told) tell(call, EVENT_HALF_CLOSED);
        call->end_told = true;
        return false;
    }
    size_t size = 0;
    if (there >= RPC_PREFIX_BYTES && !read_prefix(call, &size, &flat->compressed, &error)) {
        refuse(call, &error);
        return false;
    }
    if (there < RPC_PREFIX_BYTES || there - RPC_PREFIX_BYTES < size) {
        if (call->input_ended) {
            tb_fail(&error, TB_INVALID_ARGUMENT, "the request ends within a message");
            refuse(call, &error);
        } else {
            consume(call, 0);
        }
        return false;
    }
    if (take_message(call, size, flat)) return true;
    tb_fail_memory(&error, size, "a message");
    refuse(call, &error);
    return false;
}

void rpc_receive(rpc_call *call)
{
    rpc_flat flat = {0};
    if (!next_message(call, &flat)) return;
    pthread_mutex_lock(&call->lock);
    call->request = flat;
    call->reading = false;
    pthread_mutex_unlock(&call->lock);
    const bool large = flat.size > (flat.compressed ? LARGE_COMPRESSED_BYTES : LARGE_MESSAGE_BYTES);
    call->base.at_leisure = !large && call->loop->messages++ == 0;
    if (large) {
        td_call_hold(&call->base);
        if (td_workers_post(call->rpc->workers, tell_on_worker, call, NULL) == TB_OK) return;
        td_call_release(&call->base);
    }
    tell(call, EVENT_MESSAGE);
}
