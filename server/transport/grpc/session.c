/* HTTP/2 events of one connection: callbacks of libnghttp2, but for the bytes of messages, which
 * receive.c takes.
 *
 * libnghttp2 checks frames, states and headers by RFC 9113 and answers errors itself. Windows are
 * opened by hand: the connection's as bytes come, so that one stream cannot hold up the others, and a
 * stream's as its messages are read, so that a method that does not read makes its client wait. */
#include <string.h>

#include "base/error.h"
#include "transport/grpc/grpc_internal.h"

enum {
    STREAM_WINDOW_BYTES = 1 << 18,
    CONNECTION_WINDOW_BYTES = 1 << 22,
    /* entries of one SETTINGS frame; acknowledgements that wait for a client that does not read */
    MOST_SETTINGS = 32,
    MOST_ACKNOWLEDGEMENTS = 256,
    MOST_CONTINUATIONS = 8,
    /* streams that a client may reset: burst and rate a second. The ration of limits.c is stricter,
     * except for older streams such as a stream past its deadline */
    RESETS_BURST = 10000,
    RESETS_PER_SECOND = 1000,
    /* headers beyond this multiple of the limit end the connection */
    HEADERS_WITHOUT_ANSWER = 4
};

static rpc_call *call_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

/* A frame was refused together with its stream, which libnghttp2 does not keep: a call beyond the
 * number of streams. Its message may follow. */
static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error,
                            void *context)
{
    (void)session;
    (void)error;
    if (frame->hd.type == NGHTTP2_HEADERS) rpc_broken_add(context, frame->hd.stream_id);
    return 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    rpc_connection *c = context;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    rpc_call *call = rpc_call_make(c, frame->hd.stream_id);
    if (call == NULL) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, call);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *context)
{
    rpc_connection *c = context;
    (void)flags;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    rpc_call *call = call_of(session, frame->hd.stream_id);
    if (call == NULL) return 0;
    rpc_begin_header(call, name, name_size, value, value_size);
    if (call->head.bytes <= HEADERS_WITHOUT_ANSWER * call->rpc->limits.header_bytes) return 0;
    /* one byte can encode a header of 4 kB, and libnghttp2 decodes a refused block to its end: only
     * the end of the connection bounds that work */
    c->ending = NGHTTP2_ENHANCE_YOUR_CALM;
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static void end_input(rpc_call *call)
{
    call->input_ended = true;
    pthread_mutex_lock(&call->lock);
    rpc_loop_post(call);
    pthread_mutex_unlock(&call->lock);
}

static int on_frame_received(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    rpc_connection *c = context;
    rpc_call *call = NULL;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        call = call_of(session, frame->hd.stream_id);
        if (call == NULL) break;
        if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) end_input(call);
        if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) rpc_begin(call);
        break;
    case NGHTTP2_DATA:
        call = call_of(session, frame->hd.stream_id);
        if (call != NULL && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) end_input(call);
        break;
    case NGHTTP2_RST_STREAM:
        if (!rpc_limits_reset(c, call_of(session, frame->hd.stream_id)))
            c->ending = NGHTTP2_ENHANCE_YOUR_CALM;
        break;
    case NGHTTP2_SETTINGS: c->settled = true; break;
    case NGHTTP2_PING:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK) c->pinged = false;
        break;
    default: break;
    }
    return 0;
}

/* Errors of a stream that the client made the server answer by RST_STREAM count like resets of its
 * own: otherwise frames that are wrong on purpose would begin work without end. */
static bool is_provoked(uint32_t code)
{
    return code != NGHTTP2_NO_ERROR && code != NGHTTP2_CANCEL && code != NGHTTP2_REFUSED_STREAM;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    rpc_connection *c = context;
    const bool answers = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    if (answers) rpc_limits_sent(c);
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
        rpc_broken_add(c, frame->hd.stream_id);
        if (is_provoked(frame->rst_stream.error_code) && !rpc_limits_reset(c, NULL))
            c->ending = NGHTTP2_ENHANCE_YOUR_CALM;
    }
    if (answers && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        const rpc_call *call = call_of(session, frame->hd.stream_id);
        /* the answer is complete, the request is not wanted any more (RFC 9113 8.1) */
        if (call != NULL && !call->input_ended)
            nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                      NGHTTP2_NO_ERROR);
    }
    return 0;
}

static int on_stream_closed(nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
    (void)context;
    (void)code;
    rpc_call *call = call_of(session, stream);
    if (call != NULL) {
        nghttp2_session_set_stream_user_data(session, stream, NULL);
        rpc_call_close(call, !call->trailed);
    }
    return 0;
}

tb_status rpc_session_prepare(td_rpc *rpc, tb_error *error)
{
    if (nghttp2_session_callbacks_new(&rpc->callbacks) != 0 ||
        nghttp2_option_new(&rpc->option) != 0)
        return tb_fail_memory(error, 0, "HTTP/2");
    nghttp2_session_callbacks *cb = rpc->callbacks;
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_received);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, rpc_receive_data);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_closed);

    nghttp2_option_set_no_auto_window_update(rpc->option, 1);
    nghttp2_option_set_no_closed_streams(rpc->option, 1);
    nghttp2_option_set_max_settings(rpc->option, MOST_SETTINGS);
    nghttp2_option_set_max_outbound_ack(rpc->option, MOST_ACKNOWLEDGEMENTS);
    nghttp2_option_set_max_continuations(rpc->option, MOST_CONTINUATIONS);
    nghttp2_option_set_stream_reset_rate_limit(rpc->option, RESETS_BURST, RESETS_PER_SECOND);
    return TB_OK;
}

void rpc_session_dispose(td_rpc *rpc)
{
    nghttp2_session_callbacks_del(rpc->callbacks);
    nghttp2_option_del(rpc->option);
    rpc->callbacks = NULL;
    rpc->option = NULL;
}

bool rpc_session_make(rpc_connection *c)
{
    const td_rpc *rpc = c->rpc;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, rpc->limits.streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)rpc->limits.header_bytes}};
    return nghttp2_session_server_new2(&c->session, rpc->callbacks, c, rpc->option) == 0 &&
           nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings,
                                   sizeof settings / sizeof settings[0]) == 0 &&
           nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0,
                                                 CONNECTION_WINDOW_BYTES) == 0;
}
