/* Heads of frames, read before libnghttp2 takes the frames.
 *
 * libnghttp2 passes over frames of streams that are closed without a callback, so that a client
 * could send them without end, and RFC 9113 5.1 calls them an error of the connection unless the
 * server ended the stream while the frames were on their way. So each head is looked at here: frames
 * are counted and rationed, and DATA and HEADERS that no client may send end the connection. */
#include <string.h>

#include "base/error.h"
#include "transport/grpc/grpc_internal.h"

void rpc_broken_add(rpc_connection *c, int32_t stream)
{
    rpc_broken_streams *broken = &c->broken;
    int32_t *place = &broken->recent[broken->count++ % RPC_BROKEN_STREAMS];
    if (*place > broken->below) broken->below = *place;
    *place = stream;
}

static bool may_be_on_its_way(const rpc_broken_streams *broken, int32_t stream)
{
    if (stream <= broken->below) return true;
    for (int i = 0; i < RPC_BROKEN_STREAMS; i++)
        if (broken->recent[i] == stream) return true;
    return false;
}

/* Whether the client opened this stream, or one after it, and it is over. */
static bool is_closed(nghttp2_session *session, int32_t stream)
{
    return stream > 0 && stream <= nghttp2_session_get_last_proc_stream_id(session) &&
           nghttp2_session_find_stream(session, stream) == NULL;
}

/* A frame begins; libnghttp2 has taken all before it. */
static void begin_frame(rpc_connection *c, const nghttp2_frame_hd *head)
{
    c->frames++;
    if (!rpc_limits_frame(c, head)) {
        c->ending = NGHTTP2_ENHANCE_YOUR_CALM;
        return;
    }
    if (head->type != NGHTTP2_DATA && head->type != NGHTTP2_HEADERS) return;
    if (is_closed(c->session, head->stream_id) && !may_be_on_its_way(&c->broken, head->stream_id))
        c->ending = NGHTTP2_STREAM_CLOSED;
}

static nghttp2_frame_hd parse_head(const uint8_t *h)
{
    const uint32_t stream =
        (uint32_t)h[5] << 24 | (uint32_t)h[6] << 16 | (uint32_t)h[7] << 8 | h[8];
    return (nghttp2_frame_hd){.length = (size_t)h[0] << 16 | (size_t)h[1] << 8 | h[2],
                              .stream_id = (int32_t)(stream & INT32_MAX),
                              .type = h[3],
                              .flags = h[4]};
}

bool rpc_frames_take(rpc_connection *c, const uint8_t *bytes, size_t size)
{
    size_t taken = 0;
    c->frames = 0;
    for (size_t at = 0; at < size && c->ending == NGHTTP2_NO_ERROR;) {
        const size_t rest = size - at;
        if (c->payload_left > 0) {
            const size_t part = c->payload_left < rest ? c->payload_left : rest;
            c->payload_left -= part;
            at += part;
            continue;
        }
        const size_t begin = at, missing = RPC_FRAME_HEAD_BYTES - c->head_size;
        const size_t part = missing < rest ? missing : rest;
        memcpy(c->head + c->head_size, bytes + at, part);
        c->head_size += part;
        at += part;
        if (c->head_size < RPC_FRAME_HEAD_BYTES) break;
        c->head_size = 0;
        const nghttp2_frame_hd head = parse_head(c->head);
        c->payload_left = head.length;
        if (nghttp2_session_mem_recv(c->session, bytes + taken, begin - taken) < 0) return false;
        taken = begin;
        begin_frame(c, &head);
    }
    return c->ending != NGHTTP2_NO_ERROR ||
           nghttp2_session_mem_recv(c->session, bytes + taken, size - taken) >= 0;
}
