/* Reads a request as it arrives: its route, its encoding, and its body, within limits.
 *
 * Refusals come as early as the headers allow. The body of a refused request is read and discarded
 * if it is short, so that the connection can be kept; the server does not wait for a long one. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <gnutls/gnutls.h>

#include "handlers/handlers.h"
#include "base/error.h"
#include "call/edge.h"
#include "wire/envelope.h"
#include "transport/http/http_internal.h"

/* Limit of bytes that are read of a body only to be discarded. */
static const uint64_t DISCARD_LIMIT = 1 << 20;

static const char UNARY_TYPES[] = "application/json, application/proto, application/grpc-web, "
                                  "application/grpc-web-text";
static const char STREAM_TYPES[] = "application/connect+json, application/connect+proto, "
                                   "application/grpc-web, application/grpc-web-text";

/* ---- refusing -------------------------------------------------------------------------------- */

static void refuse(http_exchange *x, int http_status, tb_status status, const char *format, ...)
    TB_PRINTF(4, 5);
static void refuse(http_exchange *x, int http_status, tb_status status, const char *format, ...)
{
    char message[TB_ERROR_MESSAGE_SIZE];
    va_list arguments;
    if (x->refusal_http != 0) return; /* the first reason is kept */
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    x->refusal_http = http_status;
    x->refusal_status = status;
    tb_fail(&x->refusal, status, "%s", message);
    x->route = HTTP_ROUTE_REFUSED;
}

/* ---- headers --------------------------------------------------------------------------------- */

typedef struct header_sum {
    const td_config *config;
    uint64_t bytes;
    bool forwarded; /* a proxy forwarded the request */
    td_framing framing;
} header_sum;

static enum MHD_Result add_header(void *context, enum MHD_ValueKind kind, const char *key,
                                  size_t key_size, const char *value, size_t value_size)
{
    header_sum *sum = context;
    (void)kind;
    sum->bytes += key_size + value_size + 4; /* ": " and the line end */
    sum->forwarded |= td_edge_forwards(sum->config, key, key_size);
    td_framing_add(&sum->framing, key, key_size, value != NULL ? value : "", value_size);
    return MHD_YES;
}

/* Checks the limits and forms of every request, and determines its client. */
static void check_headers(http_exchange *x, const char *url)
{
    header_sum sum = {.config = x->config, .bytes = strlen(url)};
    MHD_get_connection_values_n(x->wire, MHD_HEADER_KIND, add_header, &sum);
    const char *host = http_header(x, "Host"), *fault = td_framing_fault(&sum.framing);
    x->call.caller.loopback =
        td_edge_is_loopback(x->config, x->connection->loopback, sum.forwarded, host);
    if (fault == NULL && host != NULL && !td_edge_host_is_sound(host))
        fault = "the Host header is not HOST or HOST:PORT";
    if (fault != NULL) {
        /* where a request ends is in doubt, so that nothing behind it is believed */
        refuse(x, MHD_HTTP_BAD_REQUEST, TB_INVALID_ARGUMENT, "%s", fault);
        x->close_after = true;
    }
    if (sum.bytes > x->config->http_header_bytes) {
        refuse(x, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, TB_RESOURCE_EXHAUSTED,
               "the headers have %llu bytes, at most %llu are allowed",
               (unsigned long long)sum.bytes, (unsigned long long)x->config->http_header_bytes);
        x->close_after = true;
    }
}

/* True for health probes, which are answered to every caller regardless of limits. */
static bool is_health(const http_exchange *x)
{
    return x->route == HTTP_ROUTE_LIVE || x->route == HTTP_ROUTE_READY ||
           x->route == HTTP_ROUTE_METRICS;
}

/* With a client CA, the client's certificate is asked for by the handshake and judged here. */
static void check_certificate(http_exchange *x)
{
    if (x->http->client_ca.size == 0 || is_health(x)) return;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->wire, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    unsigned verdict = 0;
    if (info == NULL ||
        gnutls_certificate_verify_peers2((gnutls_session_t)info->tls_session, &verdict) < 0 ||
        verdict != 0)
        refuse(x, MHD_HTTP_FORBIDDEN, TB_PERMISSION_DENIED,
               "this server wants a client certificate that its authority has signed");
}

/* ---- the route ------------------------------------------------------------------------------- */

static bool is_get(const char *method)
{
    return strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
}

/* GET is for methods that change nothing; streams come as Server-Sent Events. */
static bool method_allows_get(const td_method *method)
{
    return !method->client_streaming && method->scope <= TD_SCOPE_READ;
}

static void find_route(http_exchange *x, const char *url)
{
    static const struct {
        const char *path;
        http_route route;
    } PAGES[] = {{"/livez", HTTP_ROUTE_LIVE},
                 {"/readyz", HTTP_ROUTE_READY},
                 {"/metrics", HTTP_ROUTE_METRICS}};
    for (size_t i = 0; i < sizeof PAGES / sizeof PAGES[0]; i++)
        if (strcmp(url, PAGES[i].path) == 0) {
            x->route = PAGES[i].route;
            strcpy(x->allow, "GET, HEAD, OPTIONS");
            return;
        }
    x->file = http_file_find(url);
    if (x->file != NULL) {
        x->route = HTTP_ROUTE_FILE;
        strcpy(x->allow, "GET, HEAD, OPTIONS");
        return;
    }
    x->route = HTTP_ROUTE_CALL;
    x->call.method = td_method_find(url);
    if (x->call.method == NULL)
        refuse(x, MHD_HTTP_NOT_FOUND, TB_UNSUPPORTED,
               "%.200s is not served here: there are /SERVICE/METHOD of tribo.v1 (for example "
               "/tribo.v1.Simulation/GetServerInfo), /livez, /readyz, /metrics and /",
               url);
    else
        strcpy(x->allow,
               method_allows_get(x->call.method) ? "GET, HEAD, POST, OPTIONS" : "POST, OPTIONS");
}

static void check_method(http_exchange *x, const char *method)
{
    if (x->route == HTTP_ROUTE_REFUSED) return;
    if (strcmp(method, MHD_HTTP_METHOD_OPTIONS) == 0) {
        x->route = HTTP_ROUTE_OPTIONS;
        return;
    }
    const bool call = x->route == HTTP_ROUTE_CALL;
    x->format.get = call && is_get(method);
    if (call && strcmp(method, MHD_HTTP_METHOD_POST) == 0) return;
    const bool head_of_stream =
        call && strcmp(method, MHD_HTTP_METHOD_HEAD) == 0 && x->call.method->server_streaming;
    if (is_get(method) && !head_of_stream && (!call || method_allows_get(x->call.method))) return;
    refuse(x, MHD_HTTP_METHOD_NOT_ALLOWED, TB_UNSUPPORTED, "%.20s is not allowed here: use %s",
           method, x->allow);
}

/* ---- the format ------------------------------------------------------------------------------ */

/* Whether a comma-separated list (of encodings) names `word`, whatever its weight but 0. */
static bool list_has(const char *list, const char *word)
{
    const size_t length = strlen(word);
    while (list != NULL && *list != '\0') {
        list += strspn(list, " \t,");
        const size_t item = strcspn(list, ",");
        const size_t name = strcspn(list, " \t,;");
        if (name == length && strncasecmp(list, word, length) == 0) {
            const char *weight = memchr(list, '=', item);
            return weight == NULL || strtod(weight + 1, NULL) > 0;
        }
        list += item;
    }
    return false;
}

/* A compression that the client says it used: gzip, or none. */
static void read_encoding(http_exchange *x, const char *header)
{
    const char *encoding = header != NULL ? http_header(x, header) : NULL;
    if (encoding == NULL || strcasecmp(encoding, "identity") == 0 || *encoding == '\0') return;
    if (strcasecmp(encoding, "gzip") == 0)
        x->format.request_gzip = true;
    else
        refuse(x, MHD_HTTP_NOT_IMPLEMENTED, TB_UNSUPPORTED,
               "%s: \"%.40s\" is not known; there are gzip and identity", header, encoding);
}

/* The type without parameters, in lower case. */
static void media_type(const char *header, char type[64])
{
    size_t length = strcspn(header, " \t;");
    if (length > 63) length = 63;
    for (size_t i = 0; i < length; i++) type[i] = (char)tolower((unsigned char)header[i]);
    type[length] = '\0';
}

static void read_content_type(http_exchange *x)
{
    static const struct {
        const char *type;
        http_protocol protocol;
        bool json, text;
    } TYPES[] = {
        {"application/json", HTTP_CONNECT_UNARY, true, false},
        {"application/proto", HTTP_CONNECT_UNARY, false, false},
        {"application/connect+json", HTTP_CONNECT_STREAM, true, false},
        {"application/connect+proto", HTTP_CONNECT_STREAM, false, false},
        {"application/grpc-web", HTTP_GRPC_WEB, false, false},
        {"application/grpc-web+proto", HTTP_GRPC_WEB, false, false},
        {"application/grpc-web+json", HTTP_GRPC_WEB, true, false},
        {"application/grpc-web-text", HTTP_GRPC_WEB, false, true},
        {"application/grpc-web-text+proto", HTTP_GRPC_WEB, false, true},
    };
    const td_method *method = x->call.method;
    const bool stream = method->client_streaming || method->server_streaming;
    const char *header = http_header(x, MHD_HTTP_HEADER_CONTENT_TYPE);
    char type[64] = "";
    if (header != NULL) media_type(header, type);
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (strcmp(type, TYPES[i].type) != 0) continue;
        if (TYPES[i].protocol == (stream ? HTTP_CONNECT_UNARY : HTTP_CONNECT_STREAM)) break;
        x->format.protocol = TYPES[i].protocol;
        x->format.json = TYPES[i].json;
        x->format.text = TYPES[i].text;
        x->format.known = true;
        return;
    }
    x->accept_post = stream ? STREAM_TYPES : UNARY_TYPES;
    refuse(x, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, TB_INVALID_ARGUMENT,
           "Content-Type: \"%.60s\" is not taken by %s.%s, which is %s; it takes %s", type,
           method->service, method->name, stream ? "streaming" : "unary", x->accept_post);
}

static const char *query(const http_exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->wire, MHD_GET_ARGUMENT_KIND, name);
}

/* Connect's GET; people may leave out everything that has an obvious value. */
static void read_get_format(http_exchange *x)
{
    const char *version = query(x, "connect"), *encoding = query(x, "encoding");
    const char *compression = query(x, "compression");
    x->format.json = encoding == NULL || strcmp(encoding, "json") == 0;
    if (x->call.method->server_streaming) {
        x->format.events = true;
        x->format.protocol = HTTP_CONNECT_STREAM;
        if (!x->format.json)
            refuse(x, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, TB_INVALID_ARGUMENT,
                   "encoding: \"%.40s\": events are JSON", encoding);
    }
    if (!x->format.json && strcmp(encoding, "proto") != 0)
        refuse(x, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, TB_INVALID_ARGUMENT,
               "encoding: \"%.40s\" is not known; there are json and proto", encoding);
    if (version != NULL && strcmp(version, "v1") != 0)
        refuse(x, MHD_HTTP_BAD_REQUEST, TB_INVALID_ARGUMENT,
               "connect: \"%.20s\" is not known; there is v1", version);
    x->format.request_gzip = compression != NULL && strcmp(compression, "gzip") == 0;
    if (compression != NULL && !x->format.request_gzip && strcmp(compression, "identity") != 0)
        refuse(x, MHD_HTTP_NOT_IMPLEMENTED, TB_UNSUPPORTED,
               "compression: \"%.40s\" is not known; there are gzip and identity", compression);
}

static void read_timeout(http_exchange *x)
{
    const bool grpc = x->format.protocol == HTTP_GRPC_WEB;
    const char *name = grpc ? "Grpc-Timeout" : "Connect-Timeout-Ms";
    const char *text = http_header(x, name);
    int64_t wait = 0;
    if (text == NULL) return;
    if (!(grpc ? http_timeout_grpc(text, &wait) : http_timeout_connect(text, &wait)))
        refuse(x, MHD_HTTP_BAD_REQUEST, TB_INVALID_ARGUMENT, "%s: \"%.40s\" is no timeout", name,
               text);
    else
        x->call.deadline_ns = x->call.arrival_ns + wait;
}

/* How arrays are written in JSON: "Tribo-Arrays: plain", or "arrays=plain" in the query of a GET. */
static void read_arrays(http_exchange *x)
{
    const char *header = http_header(x, "Tribo-Arrays");
    const char *arrays = x->format.get && header == NULL ? query(x, "arrays") : header;
    if (arrays == NULL || strcasecmp(arrays, "base64") == 0) return;
    x->format.plain = true;
    if (strcasecmp(arrays, "plain") != 0)
        refuse(x, MHD_HTTP_BAD_REQUEST, TB_INVALID_ARGUMENT,
               "Tribo-Arrays: \"%.40s\" is not known; there are plain and base64", arrays);
}

static void read_format(http_exchange *x)
{
    static const char *const REQUEST_ENCODING[] = {"Content-Encoding", "Connect-Content-Encoding",
                                                   "Grpc-Encoding"};
    static const char *const RESPONSE_ENCODING[] = {"Accept-Encoding", "Connect-Accept-Encoding",
                                                    "Grpc-Accept-Encoding"};
    if (x->route != HTTP_ROUTE_CALL) {
        x->format.response_gzip = list_has(http_header(x, RESPONSE_ENCODING[0]), "gzip");
        x->format.response_brotli = list_has(http_header(x, RESPONSE_ENCODING[0]), "br");
        return;
    }
    if (x->format.get)
        read_get_format(x);
    else
        read_content_type(x);
    const http_protocol protocol = x->format.protocol;
    if (!x->format.get) read_encoding(x, REQUEST_ENCODING[protocol]);
    x->format.response_gzip =
        !x->format.events && list_has(http_header(x, RESPONSE_ENCODING[protocol]), "gzip");
    read_arrays(x);
    read_timeout(x);
    const char *traceparent = http_header(x, "traceparent");
    if (traceparent != NULL) td_trace_read(&x->call.trace, traceparent, strlen(traceparent));
    const char *tracestate = http_header(x, "tracestate");
    if (tracestate != NULL) td_trace_read_state(&x->call.trace, tracestate, strlen(tracestate));

    const char *version = http_header(x, "Connect-Protocol-Version");
    if (version != NULL && strcmp(version, "1") != 0)
        refuse(x, MHD_HTTP_BAD_REQUEST, TB_INVALID_ARGUMENT,
               "Connect-Protocol-Version: \"%.20s\" is not known; there is 1", version);
    const td_method *method = x->call.method;
    if (method->client_streaming)
        refuse(x, MHD_HTTP_NOT_IMPLEMENTED, TB_UNSUPPORTED,
               "%s.%s takes a stream of requests, which only gRPC carries%s", method->service,
               method->name,
               strcmp(method->name, "PutAsset") == 0
                   ? ": call it by gRPC, or send the file in one message to CreateAsset"
                   : "; over HTTP call its unary sibling");
}

/* ---- the body -------------------------------------------------------------------------------- */

/* The length that the headers promise; UINT64_MAX: unknown, it comes in chunks. */
static uint64_t promised_length(const http_exchange *x)
{
    const char *length = http_header(x, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (length != NULL) return strtoull(length, NULL, 10);
    return http_header(x, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL ? UINT64_MAX : 0;
}

static void refuse_body(http_exchange *x)
{
    refuse(x, MHD_HTTP_CONTENT_TOO_LARGE, TB_RESOURCE_EXHAUSTED,
           "the body is larger than the %llu bytes that a message may have",
           (unsigned long long)x->config->message_bytes);
}

static void check_length(http_exchange *x, uint64_t length)
{
    if (x->route == HTTP_ROUTE_CALL) {
        x->body_limit = x->config->message_bytes + HTTP_ENVELOPE_BYTES;
        if (x->format.text) x->body_limit = x->body_limit / 3 * 4 + 8;
        if (length != UINT64_MAX && length > x->body_limit) refuse_body(x);
    }
}

static void take_body(http_exchange *x, const char *bytes, size_t size)
{
    if (x->route == HTTP_ROUTE_CALL) {
        if (x->body.size + size > x->body_limit)
            refuse_body(x);
        else if (tb_bytes_append(&x->body, bytes, size) != TB_OK)
            refuse(x, MHD_HTTP_SERVICE_UNAVAILABLE, TB_UNAVAILABLE, "no memory for the body");
        if (x->route == HTTP_ROUTE_CALL) return;
        tb_bytes_free(&x->body);
    }
    x->discarded += size;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static http_exchange *exchange_create(td_http *http, http_connection *connection,
                                      struct MHD_Connection *wire)
{
    http_exchange *x = calloc(1, sizeof *x);
    if (x == NULL) return NULL;
    td_call_init(&x->call, &HTTP_TRANSPORT, http->server);
    pthread_mutex_init(&x->lock, NULL);
    x->http = http;
    x->connection = connection;
    x->wire = wire;
    x->config = http->server->config;
    atomic_init(&x->overflow, false);
    strcpy(x->call.peer, connection->peer);
    pthread_mutex_lock(&http->calls_lock);
    http->calls++;
    pthread_mutex_unlock(&http->calls_lock);
    return x;
}

/* True if a refused request is answered before its body has come. Many clients read an answer only
 * after they have sent everything, so the server waits for short and chunked bodies. */
static bool answer_early(const http_exchange *x, uint64_t length)
{
    const td_method *method = x->call.method;
    if (length == 0) return false;
    if (http_header(x, MHD_HTTP_HEADER_EXPECT) != NULL) return true;
    if (length != UINT64_MAX) return length > DISCARD_LIMIT;
    /* a client that talks and listens at a time may not end its request before it has heard */
    return method != NULL && method->client_streaming && method->server_streaming;
}

/* The request line and the headers are there. */
static enum MHD_Result begin(http_exchange *x, const char *url, const char *method)
{
    find_route(x, url);
    check_headers(x, url);
    check_method(x, method);
    check_certificate(x);
    read_format(x);
    if (x->connection->over_what != NULL && !is_health(x)) {
        refuse(x, MHD_HTTP_SERVICE_UNAVAILABLE, TB_UNAVAILABLE,
               "too many %s are open: the limit is %d", x->connection->over_what,
               (int)x->connection->over_limit);
        x->refusal_retry = 1;
        x->close_after = true;
    }
    if (x->route == HTTP_ROUTE_CALL && atomic_load(&x->http->draining)) {
        refuse(x, MHD_HTTP_SERVICE_UNAVAILABLE, TB_UNAVAILABLE, "the server is stopping");
        x->refusal_retry = 1;
        x->close_after = true;
    }
    if (x->route == HTTP_ROUTE_CALL && !http_origin_allowed(x))
        refuse(
            x, MHD_HTTP_FORBIDDEN, TB_PERMISSION_DENIED,
            "pages of \"%.100s\" may not call this server: see cors_origins of its configuration",
            http_header(x, "Origin"));

    const uint64_t length = promised_length(x);
    check_length(x, length);
    if (x->route == HTTP_ROUTE_REFUSED && (x->close_after || answer_early(x, length))) {
        x->close_after = true;
        http_receive_end(x->connection);
        return http_answer_refusal(x);
    }
    if (x->route == HTTP_ROUTE_CALL && length > 0) http_receive_body(x->connection, 0);
    return MHD_YES;
}

/* The request is complete, or its answer can go on. */
static enum MHD_Result go_on(http_exchange *x)
{
    if (x->route == HTTP_ROUTE_REFUSED) return http_answer_refusal(x);
    if (x->route != HTTP_ROUTE_CALL) return http_answer_page(x);
    return http_call_answer(x);
}

enum MHD_Result http_handle(void *context, struct MHD_Connection *wire, const char *url,
                            const char *method, const char *version, const char *upload,
                            size_t *upload_size, void **slot)
{
    http_exchange *x = *slot;
    (void)version;
    if (x == NULL) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(wire, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        http_connection *connection = info != NULL ? info->socket_context : NULL;
        if (connection == NULL) return MHD_NO;
        x = exchange_create(context, connection, wire);
        if (x == NULL) return MHD_NO;
        *slot = x;
        http_receive_begin(connection);
        return begin(x, url, method);
    }
    if (*upload_size > 0) {
        http_receive_body(x->connection, *upload_size);
        take_body(x, upload, *upload_size);
        *upload_size = 0;
        return x->discarded > DISCARD_LIMIT + x->body_limit ? MHD_NO : MHD_YES;
    }
    if (!x->complete) {
        x->complete = true;
        http_receive_end(x->connection);
        if (x->route == HTTP_ROUTE_CALL && !http_call_begin(x)) return MHD_YES;
    }
    return go_on(x);
}

void http_completed(void *context, struct MHD_Connection *wire, void **slot,
                    enum MHD_RequestTerminationCode code)
{
    td_http *http = context;
    http_exchange *x = *slot;
    (void)wire;
    (void)code;
    if (x == NULL) return;
    *slot = NULL;
    http_receive_begin(x->connection); /* of the next request */
    http_guard_forget(x);
    pthread_mutex_lock(&x->lock);
    x->off_wire = true;
    x->wire = NULL;
    http_call_drop_items(x);
    pthread_mutex_unlock(&x->lock);
    /* an answer that is whole was finished before; anything else has lost its client */
    if (x->complete && x->route == HTTP_ROUTE_CALL) {
        tb_error error = {0};
        tb_fail(&error, TB_CANCELLED, "the client closed the connection");
        td_call_cancel(&x->call);
        td_call_finish(&x->call, error.status, &error, 0);
    }

    pthread_mutex_lock(&http->calls_lock);
    http->calls--;
    pthread_cond_broadcast(&http->calls_done);
    pthread_mutex_unlock(&http->calls_lock);
    td_call_release(&x->call);
}
