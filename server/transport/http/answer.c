/* Answers on the wire: one body for Connect's unary calls, errors and pages; a stream of frames for
 * everything that is enveloped. A stream is read by libmicrohttpd in pieces; when nothing waits,
 * the connection is suspended until a handler sends, and when the client does not read, nothing is
 * encoded ahead. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "wire/envelope.h"
#include "wire/gzip.h"
#include "transport/http/http_internal.h"
#include "wire/json.h"

enum {
    GZIP_LEAST_BYTES = 1024, /* below that, packing costs more than it saves */
    STREAM_BLOCK_BYTES = 32768,
    HEADERS = 4, /* of an answer, with the pair of NULL behind */
};

/* ---- one body -------------------------------------------------------------------------------- */

static void common_headers(const http_exchange *x, struct MHD_Response *response)
{
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, MHD_HTTP_HEADER_SERVER, "tribod");
    /* a client that goes on over a connection which is about to end would see it break */
    if (x->close_after || atomic_load(&x->http->draining))
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    http_cors(x, response);
}

enum MHD_Result http_answer_bytes(http_exchange *x, int http_status, const char *type,
                                  tb_bytes *body, const http_pair *headers)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback(body->size, body->base, free);
    if (response == NULL) {
        tb_bytes_free(body);
        return MHD_NO;
    }
    *body = (tb_bytes){0};
    if (type != NULL) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (; headers != NULL && headers->name != NULL; headers++)
        MHD_add_response_header(response, headers->name, headers->value);
    common_headers(x, response);
    const enum MHD_Result result = MHD_queue_response(x->wire, (unsigned)http_status, response);
    MHD_destroy_response(response);
    return result;
}

/* A Connect error as a whole answer. */
static enum MHD_Result answer_error(http_exchange *x, int http_status, tb_status status,
                                    const tb_error *error, double retry_after)
{
    tb_bytes body = {0};
    char seconds[16];
    http_pair headers[HEADERS + 1] = {{NULL, NULL}};
    int count = 0;
    if (http_error_connect(&body, status, error, retry_after) != TB_OK) {
        tb_bytes_free(&body);
        return MHD_NO;
    }
    if (retry_after > 0) {
        http_retry_text(retry_after, seconds);
        headers[count++] = (http_pair){MHD_HTTP_HEADER_RETRY_AFTER, seconds};
    }
    if (status == TB_UNAUTHENTICATED) {
        headers[count++] = (http_pair){MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"tribod\""};
    }
    if (http_status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        headers[count++] = (http_pair){MHD_HTTP_HEADER_ALLOW, x->allow};
    }
    if (x->accept_post != NULL) {
        headers[count++] = (http_pair){"Accept-Post", x->accept_post};
    }
    return http_answer_bytes(x, http_status, "application/json", &body, headers);
}

enum MHD_Result http_answer_packed(http_exchange *x, const char *type, const tb_bytes *message,
                                   const http_pair *headers)
{
    tb_bytes body = {0};
    tb_error error = {0};
    http_pair all[HEADERS + 3] = {{MHD_HTTP_HEADER_VARY, "Accept-Encoding"}};
    int count = 1;
    for (; headers != NULL && headers->name != NULL && count <= HEADERS; headers++)
        all[count++] = *headers;
    if (x->format.response_gzip && message->size >= GZIP_LEAST_BYTES) {
        if (http_gzip(message->base, message->size, &body, &error) == TB_OK)
            all[count] = (http_pair){MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip"};
        else
            tb_bytes_free(&body);
    }
    if (body.size == 0 && tb_bytes_append(&body, message->base, message->size) != TB_OK) {
        tb_fail_memory(&error, message->size, "an answer");
        return answer_error(x, tb_status_http(error.status), error.status, &error, 1);
    }
    return http_answer_bytes(x, MHD_HTTP_OK, type, &body, all);
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* A packed message as the client wants it: the same bytes, or JSON. */
static tb_status encode(const http_exchange *x, const http_item *item, tb_bytes *encoded,
                        tb_error *error)
{
    const unsigned char *packed = item->frame + HTTP_ENVELOPE_BYTES;
    if (!x->format.json) {
        const tb_status status = tb_bytes_append(encoded, packed, item->size);
        return status == TB_OK ? TB_OK : tb_fail_memory(error, item->size, "an answer");
    }
    ProtobufCMessage *message =
        protobuf_c_message_unpack(x->call.method->output, NULL, item->size, packed);
    if (message == NULL) return tb_fail_memory(error, item->size, "an answer");
    const tb_status status = x->format.plain ? td_json_print_plain(encoded, message, error)
                                             : td_json_print(encoded, message, error);
    protobuf_c_message_free_unpacked(message, NULL);
    return status;
}

static enum MHD_Result answer_unary(http_exchange *x)
{
    tb_bytes message = {0};
    tb_error error = x->error;
    tb_status status = x->status;
    if (status == TB_OK && x->first == NULL)
        status = tb_fail(&error, TB_INTERNAL, "%s.%s gave no answer", x->call.method->service,
                         x->call.method->name);
    if (status == TB_OK) status = encode(x, x->first, &message, &error);
    const enum MHD_Result result =
        status == TB_OK
            ? http_answer_packed(x, x->format.json ? "application/json" : "application/proto",
                                 &message, NULL)
            : answer_error(x, tb_status_http(status), status, &error, x->retry_after);
    tb_bytes_free(&message);
    return result;
}

/* Makes `out` a Server-Sent Event of the JSON in `encoded`, which is one line. */
static tb_status make_event(http_exchange *x, bool end, const tb_bytes *encoded, tb_error *error)
{
    const char *head = end ? "event: end\ndata: " : "data: ";
    tb_bytes_free(&x->encoded);
    tb_status status = tb_bytes_append(&x->encoded, head, strlen(head));
    if (status == TB_OK) status = tb_bytes_append(&x->encoded, encoded->base, encoded->size);
    if (status == TB_OK) status = tb_bytes_append(&x->encoded, "\n\n", 2);
    x->out = x->encoded.base;
    x->out_size = status == TB_OK ? x->encoded.size : 0;
    x->out_at = 0;
    return status == TB_OK ? TB_OK : tb_fail_memory(error, encoded->size, "an event");
}

/* Makes `out` a frame of these flags from the bytes in `encoded`, in base64 if the client reads
 * text. */
static tb_status make_frame(http_exchange *x, unsigned flags, tb_bytes *encoded, tb_error *error)
{
    tb_bytes packed = {0};
    unsigned char header[HTTP_ENVELOPE_BYTES];
    tb_status status = TB_OK;
    if (x->format.events) return make_event(x, flags != 0, encoded, error);
    tb_bytes_free(&x->encoded);
    const bool end = flags != 0;
    if (x->format.response_gzip && !end && encoded->size >= GZIP_LEAST_BYTES) {
        status = http_gzip(encoded->base, encoded->size, &packed, error);
        flags |= HTTP_FLAG_COMPRESSED;
    }
    const tb_bytes *from = flags & HTTP_FLAG_COMPRESSED ? &packed : encoded;
    if (status == TB_OK && !http_envelope_write(header, flags, from->size))
        status = tb_fail(error, TB_RESOURCE_EXHAUSTED, "an answer of %zu bytes", from->size);
    tb_bytes frame = {0};
    if (status == TB_OK && (tb_bytes_append(&frame, header, sizeof header) != TB_OK ||
                            tb_bytes_append(&frame, from->base, from->size) != TB_OK))
        status = tb_fail_memory(error, from->size, "an answer");
    if (status == TB_OK && x->format.text) {
        if (http_text_encode(&x->encoded, frame.base, frame.size) != TB_OK)
            status = tb_fail_memory(error, frame.size, "an answer");
    } else if (status == TB_OK) {
        x->encoded = frame;
        frame = (tb_bytes){0};
    }
    tb_bytes_free(&frame);
    tb_bytes_free(&packed);
    x->out = x->encoded.base;
    x->out_size = status == TB_OK ? x->encoded.size : 0;
    x->out_at = 0;
    return status;
}

/* The next message becomes `out`. Protobuf that stays as it is goes out without a copy. */
static tb_status out_message(http_exchange *x, http_item *item, tb_error *error)
{
    const bool as_it_is = !x->format.json && !x->format.text &&
                          (!x->format.response_gzip || item->size < GZIP_LEAST_BYTES);
    x->current = item;
    if (as_it_is) {
        x->out = item->frame;
        x->out_size = HTTP_ENVELOPE_BYTES + item->size;
        x->out_at = 0;
        return TB_OK;
    }
    tb_bytes message = {0};
    tb_status status = encode(x, item, &message, error);
    if (status == TB_OK) status = make_frame(x, 0, &message, error);
    tb_bytes_free(&message);
    return status;
}

static tb_status out_end(http_exchange *x, tb_status code, const tb_error *why, double retry_after,
                         tb_error *error)
{
    const bool web = x->format.protocol == HTTP_GRPC_WEB;
    tb_bytes text = {0};
    tb_status status = web ? http_error_trailers(&text, code, why, retry_after)
                           : http_error_end_stream(&text, code, why, retry_after);
    if (status == TB_OK)
        status = make_frame(x, web ? HTTP_FLAG_TRAILERS : HTTP_FLAG_END_STREAM, &text, error);
    tb_bytes_free(&text);
    return status;
}

/* ---- streams --------------------------------------------------------------------------------- */

enum next { NEXT_OUT, NEXT_NOTHING, NEXT_END, NEXT_BROKEN };

/* The frame in `out` has gone: gives its message back and counts it. */
static void out_gone(http_exchange *x)
{
    x->out_size = x->out_at = 0;
    if (x->current == NULL) return;
    free(x->current);
    x->current = NULL;
    if (atomic_fetch_sub(&x->call.queued, 1) == 1) x->drained = true;
}

/* Finds the next bytes for the wire. `may_wait`: suspend if there are none. */
static enum next out_next(http_exchange *x, bool may_wait)
{
    tb_error error = {0};
    pthread_mutex_lock(&x->lock);
    for (;;) {
        http_item *item = x->first;
        if (x->dead) {
            pthread_mutex_unlock(&x->lock);
            return NEXT_BROKEN;
        }
        if (item != NULL) {
            x->first = item->next;
            if (x->first == NULL) x->last = NULL;
            x->waiting_bytes -= item->size;
            pthread_mutex_unlock(&x->lock);
            if (out_message(x, item, &error) == TB_OK) return NEXT_OUT;
            /* an encoding error ends the stream, with its reason */
            td_call_cancel(&x->call);
            td_call_finish(&x->call, error.status, &error, 0);
            pthread_mutex_lock(&x->lock);
            http_call_drop_items(x);
            x->finished = true;
            x->status = error.status;
            x->error = error;
            continue;
        }
        if (x->finished) {
            pthread_mutex_unlock(&x->lock);
            if (x->ended) return NEXT_END;
            x->ended = true;
            const tb_status status = out_end(x, x->status, &x->error, x->retry_after, &error);
            return status == TB_OK ? NEXT_OUT : NEXT_BROKEN;
        }
        if (!x->drained || !may_wait) break;
        /* the handler may send more, also from inside this */
        x->drained = false;
        pthread_mutex_unlock(&x->lock);
        if (x->call.method->writable != NULL && !atomic_load(&x->call.gone))
            x->call.method->writable(&x->call);
        pthread_mutex_lock(&x->lock);
    }
    if (may_wait) {
        x->suspended = true;
        MHD_suspend_connection(x->wire);
    }
    pthread_mutex_unlock(&x->lock);
    return NEXT_NOTHING;
}

/* libmicrohttpd asks for the next bytes of a stream. */
static ssize_t read_stream(void *context, uint64_t position, char *buffer, size_t room)
{
    http_exchange *x = context;
    size_t filled = 0;
    (void)position;
    while (filled < room) {
        if (x->out_at == x->out_size) {
            const enum next next = out_next(x, filled == 0);
            if (next == NEXT_BROKEN) return MHD_CONTENT_READER_END_WITH_ERROR;
            if (next == NEXT_END && filled == 0) return MHD_CONTENT_READER_END_OF_STREAM;
            if (next != NEXT_OUT) break;
        }
        const size_t left = x->out_size - x->out_at;
        const size_t taken = left < room - filled ? left : room - filled;
        memcpy(buffer + filled, x->out + x->out_at, taken);
        filled += taken;
        x->out_at += taken;
        if (x->out_at == x->out_size) out_gone(x);
    }
    return (ssize_t)filled;
}

static const char *stream_type(const http_format *format)
{
    if (format->events) return "text/event-stream";
    if (format->protocol == HTTP_CONNECT_STREAM)
        return format->json ? "application/connect+json" : "application/connect+proto";
    return format->json   ? "application/grpc-web+json"
           : format->text ? "application/grpc-web-text+proto"
                          : "application/grpc-web+proto";
}

static enum MHD_Result answer_stream(http_exchange *x)
{
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, read_stream, x, NULL);
    if (response == NULL) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, stream_type(&x->format));
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    if (x->format.response_gzip)
        MHD_add_response_header(response,
                                x->format.protocol == HTTP_GRPC_WEB ? "Grpc-Encoding"
                                                                    : "Connect-Content-Encoding",
                                "gzip");
    common_headers(x, response);
    const enum MHD_Result result = MHD_queue_response(x->wire, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

enum MHD_Result http_call_answer(http_exchange *x)
{
    pthread_mutex_lock(&x->lock);
    const bool dead = x->dead, there = http_call_answerable(x), suspended = x->suspended;
    if (!there && !suspended) {
        x->suspended = true;
        MHD_suspend_connection(x->wire);
    }
    pthread_mutex_unlock(&x->lock);
    if (!there || suspended) return MHD_YES;
    if (dead) return MHD_NO;
    return x->format.protocol == HTTP_CONNECT_UNARY ? answer_unary(x) : answer_stream(x);
}

/* Clients of a stream look for errors inside it, once it is known to be one. */
enum MHD_Result http_answer_refusal(http_exchange *x)
{
    if (!x->format.known || x->format.protocol == HTTP_CONNECT_UNARY)
        return answer_error(x, x->refusal_http, x->refusal_status, &x->refusal, x->refusal_retry);
    tb_error error = {0};
    if (out_end(x, x->refusal_status, &x->refusal, x->refusal_retry, &error) != TB_OK)
        return MHD_NO;
    tb_bytes body = x->encoded;
    x->encoded = (tb_bytes){0};
    x->out_size = 0;
    return http_answer_bytes(x, MHD_HTTP_OK, stream_type(&x->format), &body, NULL);
}
