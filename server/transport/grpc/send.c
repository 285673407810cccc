/* Response messages, status and trailers.
 *
 * Messages wait in a list at the call. libnghttp2 asks for bytes of a stream when the stream's
 * window, the connection's window and the socket can take them; with an empty list the stream is
 * deferred until a message is posted. Headers go with the first message and the status with the
 * last, so that a unary answer is one write; a failure without a message is one HEADERS frame. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "transport/grpc/grpc_internal.h"
#include "wire/envelope.h"
#include "wire/gzip.h"

enum {
    MOST_HEADERS = 10,
    NUMBER_SIZE = 32,
    WORTH_PACKING_BYTES = 1024,
    /* of a request other than gRPC: no more data is awaited */
    ENOUGH_BYTES = 1 << 15
};

/* ---- messages ---- */

static void write_prefix(rpc_message *message, bool compressed, size_t size)
{
    http_envelope_write(message->bytes, compressed ? HTTP_FLAG_COMPRESSED : 0, size);
    message->size = size + RPC_PREFIX_BYTES;
    message->at = 0;
    message->next = NULL;
}

/* The message compressed, if that makes it smaller; else as it was. */
static rpc_message *compress(rpc_message *plain)
{
    tb_bytes packed = {0};
    tb_error error = {0};
    rpc_message *made = NULL;
    const size_t size = plain->size - RPC_PREFIX_BYTES;
    if (http_gzip(plain->bytes + RPC_PREFIX_BYTES, size, &packed, &error) == TB_OK &&
        packed.size < size)
        made = malloc(sizeof *made + RPC_PREFIX_BYTES + packed.size);
    if (made != NULL) {
        memcpy(made->bytes + RPC_PREFIX_BYTES, packed.base, packed.size);
        write_prefix(made, true, packed.size);
        free(plain);
    }
    tb_bytes_free(&packed);
    return made != NULL ? made : plain;
}

rpc_message *rpc_pack(const ProtobufCMessage *message, bool gzip)
{
    const size_t size = protobuf_c_message_get_packed_size(message);
    if (size > UINT32_MAX) return NULL;
    rpc_message *made = malloc(sizeof *made + RPC_PREFIX_BYTES + size);
    if (made == NULL) return NULL;
    protobuf_c_message_pack(message, made->bytes + RPC_PREFIX_BYTES);
    write_prefix(made, false, size);
    return gzip && size >= WORTH_PACKING_BYTES ? compress(made) : made;
}

int rpc_send_drop(rpc_call *call)
{
    int dropped = 0;
    while (call->first != NULL) {
        rpc_message *next = call->first->next;
        free(call->first);
        call->first = next;
        dropped++;
    }
    call->last = NULL;
    return dropped;
}

/* ---- headers ---- */

typedef struct header_list {
    nghttp2_nv entries[MOST_HEADERS];
    size_t count;
} header_list;

static void add(header_list *list, const char *name, const void *value, size_t size)
{
    list->entries[list->count++] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                                                .value = (uint8_t *)(uintptr_t)value,
                                                .namelen = strlen(name),
                                                .valuelen = size,
                                                .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

static void add_text(header_list *list, const char *name, const char *value)
{
    add(list, name, value, strlen(value));
}

static void add_response_headers(const rpc_call *call, header_list *list)
{
    add_text(list, ":status", "200");
    add_text(list, "content-type", "application/grpc");
    if (call->gzip_out) add_text(list, "grpc-encoding", "gzip");
    if (call->head.encoding[0] != '\0') add_text(list, "grpc-accept-encoding", "identity,gzip");
}

/* Texts of a status, which live until the headers are submitted. */
typedef struct status_texts {
    char code[NUMBER_SIZE], pushback[NUMBER_SIZE];
    tb_bytes message, details;
} status_texts;

/* Unpadded base64, as gRPC asks of values of -bin headers. */
static void encode_details(tb_bytes *text, const uint8_t *bytes, size_t size)
{
    if (http_text_encode(text, bytes, size) != TB_OK) tb_bytes_free(text);
    while (text->size > 0 && text->base[text->size - 1] == '=') text->size--;
}

static void add_status(const rpc_call *call, header_list *list, status_texts *texts)
{
    const tb_error *error = call->error;
    snprintf(texts->code, sizeof texts->code, "%d", call->code);
    add_text(list, "grpc-status", texts->code);
    if (call->status == TB_OK) return;

    const bool told = error != NULL && error->message[0] != '\0';
    const char *message = told ? error->message : tb_status_text(call->status);
    if (http_percent_encode(&texts->message, message) == TB_OK && texts->message.size > 0)
        add(list, "grpc-message", texts->message.base, texts->message.size);
    size_t size = 0;
    uint8_t *details = td_status_details(call->status, error, call->retry_after, &size);
    if (details != NULL) encode_details(&texts->details, details, size);
    free(details);
    if (texts->details.size > 0)
        add(list, "grpc-status-details-bin", texts->details.base, texts->details.size);
    if (call->retry_after > 0) {
        const double longest_ms = 1e9;
        snprintf(texts->pushback, sizeof texts->pushback, "%.0f",
                 ceil(fmin(call->retry_after * 1e3, longest_ms)));
        add_text(list, "grpc-retry-pushback-ms", texts->pushback);
    }
}

static void free_texts(status_texts *texts)
{
    tb_bytes_free(&texts->message);
    tb_bytes_free(&texts->details);
}

/* ---- to libnghttp2 ---- */

static void submit_trailers(rpc_call *call, nghttp2_session *session)
{
    header_list list = {.count = 0};
    status_texts texts = {.message = {0}};
    call->trailed = true;
    add_status(call, &list, &texts);
    nghttp2_submit_trailer(session, call->stream, list.entries, list.count);
    free_texts(&texts);
}

/* Copies waiting bytes into the frame; removes complete messages. Caller holds the lock. */
static size_t copy_messages(rpc_call *call, uint8_t *to, size_t room)
{
    size_t filled = 0;
    while (call->first != NULL && filled < room) {
        rpc_message *message = call->first;
        const size_t rest = message->size - message->at;
        const size_t part = rest < room - filled ? rest : room - filled;
        memcpy(to + filled, message->bytes + message->at, part);
        filled += part;
        message->at += part;
        if (message->at < message->size) break;
        call->first = message->next;
        if (call->first == NULL) call->last = NULL;
        free(message);
        call->left++;
    }
    return filled;
}

/* nghttp2_data_source_read_callback. */
static ssize_t read_answers(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room,
                            uint32_t *flags, nghttp2_data_source *source, void *context)
{
    rpc_call *call = source->ptr;
    (void)stream;
    (void)context;
    pthread_mutex_lock(&call->lock);
    const size_t filled = copy_messages(call, to, room);
    const bool ended = call->first == NULL && call->ending;
    /* `queued` is lowered outside of libnghttp2 */
    if (call->left > 0) rpc_loop_post(call);
    pthread_mutex_unlock(&call->lock);
    if (ended) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        submit_trailers(call, session);
    } else if (filled == 0) {
        call->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)filled;
}

static void submit_response(rpc_call *call, bool only_status)
{
    header_list list = {.count = 0};
    status_texts texts = {.message = {0}};
    const nghttp2_data_provider provider = {.source.ptr = call, .read_callback = read_answers};
    call->answered = true;
    add_response_headers(call, &list);
    if (only_status) {
        call->trailed = true;
        add_status(call, &list, &texts);
    }
    nghttp2_submit_response(call->connection->session, call->stream, list.entries, list.count,
                            only_status ? NULL : &provider);
    free_texts(&texts);
}

void rpc_send(rpc_call *call)
{
    pthread_mutex_lock(&call->lock);
    const bool some = call->first != NULL, ending = call->ending;
    pthread_mutex_unlock(&call->lock);
    /* a single answer waits for its status, to leave with it */
    const bool streams = call->base.method != NULL && call->base.method->server_streaming;
    if (call->trailed || (!some && !ending) || (!streams && !ending)) return;
    if (!call->answered) {
        submit_response(call, !some);
    } else if (call->deferred) {
        call->deferred = false;
        nghttp2_session_resume_data(call->connection->session, call->stream);
    } else {
        return; /* libnghttp2 asks by itself */
    }
    rpc_connection_touch(call->connection);
}

/* nghttp2_data_source_read_callback. */
static ssize_t read_line(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *context)
{
    static const char LINE[] = "This port speaks gRPC: POST with content-type application/grpc\n";
    const size_t size = sizeof LINE - 1;
    rpc_call *call = source->ptr;
    (void)session;
    (void)stream;
    (void)context;
    const size_t rest = size - call->line_at, part = rest < room ? rest : room;
    memcpy(to, LINE + call->line_at, part);
    call->line_at += part;
    if (call->line_at == size) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        call->trailed = true;
    }
    return (ssize_t)part;
}

void rpc_send_http(rpc_call *call)
{
    header_list list = {.count = 0};
    const nghttp2_data_provider provider = {.source.ptr = call, .read_callback = read_line};
    if (call->answered || (!call->input_ended && call->unconsumed < ENOUGH_BYTES)) return;
    call->answered = true;
    add_text(&list, ":status", call->http_status);
    add_text(&list, "content-type", "text/plain");
    const bool has_text = strcmp(call->head.method, "HEAD") != 0;
    call->trailed = !has_text;
    nghttp2_submit_response(call->connection->session, call->stream, list.entries, list.count,
                            has_text ? &provider : NULL);
    rpc_connection_touch(call->connection);
}
