/* Rations of frames and time limits of a connection: they bound the cost of one client.
 *
 * Some HTTP/2 frames are cheap to send and expensive to process: resets, SETTINGS, PING, PRIORITY,
 * empty DATA, tiny windows (CVE-2023-44487, CVE-2019-9511 to 9518). Each connection has a ration of
 * them that grows with time and with the answers that it carries, since an honest client
 * acknowledges answers by windows and probes its line by pings. A client that exceeds its ration
 * receives ENHANCE_YOUR_CALM and loses the connection. libnghttp2 itself bounds CONTINUATION
 * frames, waiting acknowledgements and entries of SETTINGS (session.c). */
#include "transport/grpc/grpc_internal.h"

#include "base/error.h"
#include "wire/descriptors.h"

/* Of control frames, by their cost. */
static const double CONTROL_BURST = 2000, CONTROL_PER_SECOND = 200, CONTROL_PER_ANSWER = 2;
static const double COST = 1, COST_OF_SETTINGS = 20, COST_OF_EMPTY_DATA = 10;
/* Of resets. A stream that lived for a while costs less: many calls may meet one deadline. */
static const double RESET_BURST = 200, RESETS_PER_SECOND = 50, COST_OF_OLD_RESET = 0.1;
static const int64_t OLD_STREAM_NS = 50000000;

/* Defaults of a configuration that leaves them 0. */
enum {
    CONNECTIONS = 1024,
    CONNECTIONS_PER_ADDRESS = 512,
    STREAMS = 1000,
    HEADER_BYTES = 16384,
    MESSAGES_AT_ONCE = 8
};
enum { CHECKS_PER_TIME_LIMIT = 16 };
static const double HANDSHAKE_S = 20, KEEPALIVE_S = 30;
/* The answer to a ping has to come within this. */
static const int64_t PING_NS = 20000000000;
/* After the first GOAWAY, before the second: longer than any round trip. */
static const int64_t NOTICE_NS = 1000000000;
/* Calls of a connection that was asked to go may go on for this long. */
static const int64_t GRACE_NS = 600000000000;
static const int64_t LAST_WORDS_NS = 1000000000, STOPPING_NS = 300000000;

static int64_t nanoseconds(double seconds, int64_t otherwise)
{
    const double longest = 1e9;
    return seconds > 0 ? (int64_t)((seconds < longest ? seconds : longest) * 1e9) : otherwise;
}

rpc_limits rpc_limits_of(const td_config *config)
{
    const int32_t streams = config->grpc_streams > 0 ? config->grpc_streams : STREAMS;
    const size_t header_bytes =
        config->grpc_header_bytes > 0 ? config->grpc_header_bytes : HEADER_BYTES;
    const int32_t wanted = config->grpc_connections > 0 ? config->grpc_connections : CONNECTIONS;
    const int transports = *config->http_address != '\0' ? 2 : 1;
    return (rpc_limits){
        .connections = td_descriptors_for_connections(wanted, transports),
        .connections_per_address = config->grpc_connections_per_address > 0
                                       ? config->grpc_connections_per_address
                                       : CONNECTIONS_PER_ADDRESS,
        .streams = (uint32_t)streams,
        .header_bytes = header_bytes,
        .message_bytes = config->message_bytes,
        .incoming_bytes = MESSAGES_AT_ONCE * config->message_bytes,
        .handshake_ns = nanoseconds(config->grpc_timeout_seconds, (int64_t)(HANDSHAKE_S * 1e9)),
        .idle_ns = nanoseconds(config->grpc_idle_seconds, INT64_MAX),
        .age_ns = nanoseconds(config->grpc_age_seconds, INT64_MAX),
        .keepalive_ns = nanoseconds(config->grpc_keepalive_seconds, (int64_t)(KEEPALIVE_S * 1e9))};
}

/* ---- rations ---- */

bool rpc_ration_take(rpc_ration *ration, double cost, double rate, double burst, int64_t now)
{
    if (ration->filled_ns == 0) {
        ration->left = burst;
    } else {
        ration->left += rate * 1e-9 * (double)(now - ration->filled_ns);
        if (ration->left > burst) ration->left = burst;
    }
    ration->filled_ns = now;
    ration->left -= cost;
    return ration->left >= 0;
}

bool rpc_limits_frame(rpc_connection *c, const nghttp2_frame_hd *head)
{
    double cost = COST;
    switch (head->type) {
    case NGHTTP2_DATA:
        if (head->length > 0 || (head->flags & NGHTTP2_FLAG_END_STREAM)) return true;
        cost = COST_OF_EMPTY_DATA;
        break;
    case NGHTTP2_HEADERS:
    case NGHTTP2_RST_STREAM: return true; /* bounded by streams and resets */
    case NGHTTP2_SETTINGS: cost = COST_OF_SETTINGS; break;
    default: break; /* PING, PRIORITY, WINDOW_UPDATE, GOAWAY, unknown ones */
    }
    return rpc_ration_take(&c->control, cost, CONTROL_PER_SECOND, CONTROL_BURST, c->heard_ns);
}

bool rpc_limits_reset(rpc_connection *c, const rpc_call *call)
{
    const bool old = call != NULL && c->heard_ns - call->base.arrival_ns > OLD_STREAM_NS;
    return rpc_ration_take(&c->resets, old ? COST_OF_OLD_RESET : COST, RESETS_PER_SECOND,
                           RESET_BURST, c->heard_ns);
}

void rpc_limits_sent(rpc_connection *c)
{
    if (c->control.filled_ns != 0) c->control.left += CONTROL_PER_ANSWER;
}

/* ---- times ---- */

void rpc_connection_notice(rpc_connection *c, int64_t now)
{
    if (c->phase != RPC_OPEN || c->noticed) return;
    c->noticed = true;
    c->noticed_ns = now;
    nghttp2_submit_shutdown_notice(c->session);
    rpc_connection_touch(c);
}

void rpc_connection_goodbye(rpc_connection *c, int64_t now)
{
    if (c->phase == RPC_HANDSHAKE) {
        c->goodbye_ns = now;
        c->said_goodbye = true;
    }
    if (c->phase != RPC_OPEN || c->said_goodbye) return;
    c->said_goodbye = true;
    c->goodbye_ns = now;
    nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(c->session), NGHTTP2_NO_ERROR,
                          NULL, 0);
    rpc_connection_touch(c);
}

/* A message that stopped arriving, or that never came, holds memory and a stream. A visit of each of
 * thousands of streams takes milliseconds, so visits are rare beside the time limit. */
static void check_calls(rpc_connection *c, int64_t now)
{
    tb_error error = {0};
    if (now - c->calls_checked_ns < c->rpc->limits.handshake_ns / CHECKS_PER_TIME_LIMIT) return;
    c->calls_checked_ns = now;
    tb_fail(&error, TB_DEADLINE_EXCEEDED, "the request stopped arriving");
    for (rpc_call *call = c->calls; call != NULL; call = call->next) {
        if (now - call->arrived_ns < c->rpc->limits.handshake_ns) continue;
        if (call->http_status != NULL) {
            call->input_ended = true;
            rpc_send_http(call);
            continue;
        }
        pthread_mutex_lock(&call->lock);
        const bool waits = call->reading && !call->ending;
        pthread_mutex_unlock(&call->lock);
        const bool streams = call->base.method != NULL && call->base.method->client_streaming;
        if (waits && (!streams || call->arrived.size > call->arrived_at))
            rpc_call_abort(call, &error, 0);
    }
}

static void check_keepalive(rpc_connection *c, int64_t now)
{
    if (c->pinged && now - c->pinged_ns > PING_NS && now - c->heard_ns > PING_NS) {
        rpc_connection_close(c);
        return;
    }
    if (c->pinged || now - c->heard_ns < c->rpc->limits.keepalive_ns) return;
    c->pinged = true;
    c->pinged_ns = now;
    nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL);
    rpc_connection_touch(c);
}

void rpc_limits_tick(rpc_connection *c, int64_t now)
{
    const rpc_limits *limits = &c->rpc->limits;
    const bool begun = c->phase != RPC_HANDSHAKE && c->settled;
    if ((!begun && now - c->opened_ns > limits->handshake_ns) ||
        (c->phase == RPC_LAST_WORDS && now - c->last_words_ns > LAST_WORDS_NS) ||
        (c->said_goodbye && atomic_load(&c->loop->closing) && now - c->goodbye_ns > STOPPING_NS) ||
        (c->said_goodbye && now - c->goodbye_ns > GRACE_NS)) {
        rpc_connection_close(c);
        return;
    }
    if (c->phase == RPC_LAST_WORDS) rpc_connection_discard(c);
    if (c->phase != RPC_OPEN) return;
    if (c->calls != NULL) c->idle_since_ns = now;
    if (now - c->opened_ns > limits->age_ns || now - c->idle_since_ns > limits->idle_ns)
        rpc_connection_notice(c, now);
    /* while the server drains, its end says the second word */
    if (c->noticed && now - c->noticed_ns > NOTICE_NS && !atomic_load(&c->loop->leaving))
        rpc_connection_goodbye(c, now);
    check_calls(c, now);
    check_keepalive(c, now);
}
