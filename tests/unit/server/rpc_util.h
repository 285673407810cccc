/* A small gRPC client for tests, on the connections of the C client: one call at a time, each step
 * waited for. */
#ifndef RPC_UTIL_H
#define RPC_UTIL_H

#include <time.h>

#include "client_internal.h"
#include "wire/gzip.h"
#include "test_util.h"

enum { CLIENT_TIMEOUT_S = 20, CLIENT_TEXT_SIZE = 1024, CLIENT_LINES = 8 };

typedef enum grpc_status_code {
    GRPC_STATUS_OK = 0,
    GRPC_STATUS_CANCELLED = 1,
    GRPC_STATUS_INVALID_ARGUMENT = 3,
    GRPC_STATUS_DEADLINE_EXCEEDED = 4,
    GRPC_STATUS_NOT_FOUND = 5,
    GRPC_STATUS_PERMISSION_DENIED = 7,
    GRPC_STATUS_RESOURCE_EXHAUSTED = 8,
    GRPC_STATUS_UNIMPLEMENTED = 12,
    GRPC_STATUS_UNAVAILABLE = 14,
    GRPC_STATUS_UNAUTHENTICATED = 16
} grpc_status_code;

/* Connections stay until the end: calls may last on one that takes no new ones. */
typedef struct client {
    tbc_target target;
    tbc_line *lines[CLIENT_LINES];
    int count;
    char address[256];
    bool zips; /* sends its messages compressed */
} client;

typedef struct client_call {
    client *client;
    tbc_exchange *exchange; /* NULL: never began, and ends as UNAVAILABLE */
    grpc_status_code code;
    char text[CLIENT_TEXT_SIZE]; /* of the status */
} client_call;

static inline void client_open_with(client *c, const char *target,
                                    gnutls_certificate_credentials_t credentials)
{
    memset(c, 0, sizeof *c);
    snprintf(c->address, sizeof c->address, "%s", target);
    c->target.address = c->address;
    c->target.credentials = credentials;
    c->target.message_bytes = (size_t)64 << 20;
    tbc_host_of(c->address, c->target.host);
}

static inline void client_open(client *c, const char *target)
{
    client_open_with(c, target, NULL);
}

static inline void client_close(client *c)
{
    for (int i = 0; i < c->count; i++) tbc_line_free(c->lines[i]);
    if (c->target.credentials != NULL) gnutls_certificate_free_credentials(c->target.credentials);
}

/* A connection that takes calls; NULL if none can be had before the deadline. */
static inline tbc_line *client_line(client *c, int64_t deadline_ns)
{
    char reason[TBC_REASON_SIZE];
    if (c->count > 0 && tbc_line_usable(c->lines[c->count - 1])) return c->lines[c->count - 1];
    ck_assert_int_lt(c->count, CLIENT_LINES);
    tbc_line *line = tbc_line_open(&c->target, deadline_ns, reason);
    if (line != NULL) c->lines[c->count++] = line;
    return line;
}

static inline tb_bytes client_pack(const void *message)
{
    tb_bytes bytes = {0};
    const size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *packed = malloc(size + 1);
    protobuf_c_message_pack(message, packed);
    ck_assert_int_eq(tb_bytes_append(&bytes, packed, size), TB_OK);
    free(packed);
    return bytes;
}

/* Begins a call: sends its headers; `deadline`: seconds from now, 0: none. */
static inline void call_begin_with(client_call *call, client *c, const char *path, double seconds,
                                   const char *authorization)
{
    const int64_t deadline = tbc_deadline_ns(seconds);
    memset(call, 0, sizeof *call);
    call->client = c;
    tbc_line *line = client_line(c, deadline);
    if (line != NULL)
        call->exchange =
            tbc_exchange_open(line, path, authorization, c->zips ? "gzip" : NULL, deadline);
}

static inline void call_begin(client_call *call, client *c, const char *path)
{
    call_begin_with(call, c, path, CLIENT_TIMEOUT_S, NULL);
}

/* Sends these bytes as a message, and frees them. */
static inline bool call_send_bytes(client_call *call, tb_bytes bytes)
{
    tb_bytes packed = {0};
    tb_error error = {0};
    bool sent = false;
    if (call->exchange != NULL && call->client->zips) {
        TEST_OK(http_gzip(bytes.base, bytes.size, &packed, &error), &error);
        sent = tbc_exchange_send(call->exchange, packed.base, packed.size, true);
    } else if (call->exchange != NULL) {
        sent = tbc_exchange_send(call->exchange, bytes.base, bytes.size, false);
    }
    tb_bytes_free(&packed);
    tb_bytes_free(&bytes);
    return sent;
}

static inline bool call_send(client_call *call, const void *message)
{
    return call_send_bytes(call, client_pack(message));
}

static inline void call_half_close(client_call *call)
{
    if (call->exchange != NULL) tbc_exchange_half_close(call->exchange);
}

/* The next message of this type, or NULL at the end. */
static inline void *call_receive(client_call *call, const ProtobufCMessageDescriptor *type)
{
    tb_bytes bytes = {0};
    if (call->exchange == NULL || !tbc_exchange_receive(call->exchange, &bytes)) return NULL;
    void *message = protobuf_c_message_unpack(
        type, NULL, bytes.size, bytes.base != NULL ? bytes.base : (const uint8_t *)"");
    ck_assert_ptr_nonnull(message);
    tb_bytes_free(&bytes);
    return message;
}

/* Waits for the status. */
static inline grpc_status_code call_status(client_call *call)
{
    call->code = GRPC_STATUS_UNAVAILABLE;
    if (call->exchange == NULL) return call->code;
    call->code = (grpc_status_code)tbc_exchange_finish(call->exchange);
    const tb_bytes *text = &call->exchange->message;
    const size_t kept = text->size < CLIENT_TEXT_SIZE ? text->size : CLIENT_TEXT_SIZE - 1;
    if (kept > 0) memcpy(call->text, text->base, kept);
    call->text[kept] = '\0';
    return call->code;
}

static inline void call_cancel(client_call *call)
{
    tbc_exchange_cancel(call->exchange);
}

static inline void call_end(client_call *call)
{
    tbc_exchange_close(call->exchange);
}

/* A unary call: the answer, or NULL with *code. */
static inline void *call_unary(client *c, const char *path, const void *request,
                               const ProtobufCMessageDescriptor *type, grpc_status_code *code)
{
    client_call call;
    call_begin(&call, c, path);
    call_send(&call, request);
    call_half_close(&call);
    void *answer = call_receive(&call, type);
    *code = call_status(&call);
    call_end(&call);
    return answer;
}

#endif
