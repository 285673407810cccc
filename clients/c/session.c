/* HTTP/2 events of a connection, for the client: callbacks of libnghttp2. All run under the line's
 * lock, inside of tbc_line_receive and tbc_line_flush. */
#include <stdlib.h>
#include <string.h>

#include "client_internal.h"

enum { STREAM_WINDOW_BYTES = 1 << 20, CONNECTION_WINDOW_BYTES = 1 << 24 };
enum { HTTP_OK = 200 };

static tbc_exchange *exchange_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

static bool is_named(const uint8_t *name, size_t size, const char *wanted)
{
    return strlen(wanted) == size && memcmp(name, wanted, size) == 0;
}

static int number(const uint8_t *text, size_t size)
{
    int value = 0;
    if (size == 0 || size > 4) return -1;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') return -1;
        value = 10 * value + (text[i] - '0');
    }
    return value;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t size, uint8_t flags,
                     void *context)
{
    (void)flags;
    (void)context;
    tbc_exchange *x = exchange_of(session, frame->hd.stream_id);
    if (x == NULL || frame->hd.type != NGHTTP2_HEADERS) return 0;
    if (is_named(name, name_size, ":status")) {
        x->http_status = number(value, size);
    } else if (is_named(name, name_size, "grpc-status")) {
        x->code = number(value, size);
        if (x->code < 0) x->code = TBC_UNKNOWN;
    } else if (is_named(name, name_size, "grpc-message")) {
        tb_bytes_free(&x->message);
        tbc_percent_decode(&x->message, value, size);
    } else if (is_named(name, name_size, "grpc-status-details-bin")) {
        tb_bytes_free(&x->details);
        if (!tbc_base64_decode(&x->details, value, size)) tb_bytes_free(&x->details);
    } else if (is_named(name, name_size, "grpc-retry-pushback-ms")) {
        const size_t kept = size < sizeof x->pushback ? size : sizeof x->pushback - 1;
        memcpy(x->pushback, value, kept);
        x->pushback[kept] = '\0';
    }
    return 0;
}

/* How gRPC names an answer that is not its own (doc/http-grpc-status-mapping.md). */
static int code_of_http(int status)
{
    switch (status) {
    case 400: return TBC_INTERNAL;
    case 401: return TBC_UNAUTHENTICATED;
    case 403: return TBC_PERMISSION_DENIED;
    case 404: return TBC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504: return TBC_UNAVAILABLE;
    default: return TBC_UNKNOWN;
    }
}

static int code_of_reset(uint32_t error)
{
    switch (error) {
    case NGHTTP2_REFUSED_STREAM: return TBC_UNAVAILABLE;
    case NGHTTP2_CANCEL: return TBC_CANCELLED;
    case NGHTTP2_ENHANCE_YOUR_CALM: return TBC_RESOURCE_EXHAUSTED;
    case NGHTTP2_INADEQUATE_SECURITY: return TBC_PERMISSION_DENIED;
    default: return TBC_INTERNAL;
    }
}

static int on_stream_closed(nghttp2_session *session, int32_t stream, uint32_t error, void *context)
{
    (void)context;
    tbc_exchange *x = exchange_of(session, stream);
    if (x == NULL) return 0;
    nghttp2_session_set_stream_user_data(session, stream, NULL);
    x->unseen = error == NGHTTP2_REFUSED_STREAM;
    if (x->code >= 0)
        tbc_exchange_end(x, x->code, NULL);
    else if (error != NGHTTP2_NO_ERROR)
        tbc_exchange_end(x, code_of_reset(error), nghttp2_http2_strerror(error));
    else if (x->http_status != HTTP_OK)
        tbc_exchange_end(x, code_of_http(x->http_status), "the answer is not gRPC's");
    else
        tbc_exchange_end(x, TBC_INTERNAL, "the answer has no status");
    return 0;
}

static int on_frame_received(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    tbc_line *line = context;
    switch (frame->hd.type) {
    case NGHTTP2_SETTINGS: line->settled = true; break;
    case NGHTTP2_GOAWAY: line->going = true; break;
    case NGHTTP2_PING:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK) line->pinged = false;
        break;
    case NGHTTP2_DATA: {
        tbc_exchange *x = exchange_of(session, frame->hd.stream_id);
        if (x != NULL) tbc_exchange_wake(x);
        break;
    }
    default: break;
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
                   size_t size, void *context)
{
    (void)flags;
    (void)context;
    tbc_exchange *x = exchange_of(session, stream);
    nghttp2_session_consume_connection(session, size);
    if (x == NULL || x->ended) {
        nghttp2_session_consume_stream(session, stream, size);
        return 0;
    }
    if (tb_bytes_append(&x->in, bytes, size) != TB_OK) {
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
        tbc_exchange_end(x, TBC_RESOURCE_EXHAUSTED, "no memory for the answer");
        return 0;
    }
    x->unconsumed += size;
    /* a message that is not whole is waited for; behind a whole one the server waits */
    if (!tbc_exchange_has_message(x)) {
        nghttp2_session_consume_stream(session, stream, x->unconsumed);
        x->unconsumed = 0;
    }
    return 0;
}

static bool set_callbacks(nghttp2_session_callbacks **made)
{
    if (nghttp2_session_callbacks_new(made) != 0) return false;
    nghttp2_session_callbacks_set_on_header_callback(*made, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(*made, on_frame_received);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(*made, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(*made, on_stream_closed);
    return true;
}

bool tbc_session_make(tbc_line *line)
{
    static const nghttp2_settings_entry SETTINGS[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES}};
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    bool good = set_callbacks(&callbacks) && nghttp2_option_new(&option) == 0;
    if (good) {
        nghttp2_option_set_no_auto_window_update(option, 1);
        nghttp2_option_set_no_closed_streams(option, 1);
        good = nghttp2_session_client_new2(&line->session, callbacks, line, option) == 0 &&
               nghttp2_submit_settings(line->session, NGHTTP2_FLAG_NONE, SETTINGS,
                                       sizeof SETTINGS / sizeof SETTINGS[0]) == 0 &&
               nghttp2_session_set_local_window_size(line->session, NGHTTP2_FLAG_NONE, 0,
                                                     CONNECTION_WINDOW_BYTES) == 0;
    }
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    return good;
}
