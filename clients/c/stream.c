/* Streams: a call that sends and receives messages one by one. One thread may send while another
 * receives; a waiting thread drives the connection. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client_internal.h"

struct tbc_stream {
    tbc_client *client;
    tbc_exchange *exchange;
    const ProtobufCMessageDescriptor *descriptor;
    char method[128];
    bool half_closed; /* the sender's */
    tb_bytes message; /* the receiver's: its memory serves one message after the other */
};

tb_status tbc_stream_open(tbc_client *client, const char *method,
                          const ProtobufCMessageDescriptor *descriptor, double timeout,
                          tbc_stream **out, tb_error *error)
{
    tb_error told = {.status = TB_OK};
    *out = NULL;
    tbc_stream *s = calloc(1, sizeof *s);
    if (s == NULL) return tb_fail_memory(error, sizeof *s, "a stream");
    s->client = client;
    s->descriptor = descriptor;
    strncpy(s->method, method, sizeof s->method - 1);
    const int64_t deadline = tbc_deadline_ns(timeout > 0 ? timeout : client->timeout);
    s->exchange = tbc_begin(client, method, deadline, &told);
    if (s->exchange == NULL) {
        free(s);
        if (error != NULL) *error = told;
        return told.status;
    }
    *out = s;
    return TB_OK;
}

/* Waits for the end of the call and returns its status. */
static tb_status finish(tbc_stream *s, tb_error *error)
{
    tbc_exchange_finish(s->exchange);
    return tbc_end_status(s->client, s->exchange, s->method, NULL, error);
}

tb_status tbc_stream_send(tbc_stream *s, const ProtobufCMessage *request, tb_error *error)
{
    size_t size = 0;
    tb_error told = {.status = TB_OK};
    if (s->half_closed)
        return tb_fail(error, TB_FAILED_PRECONDITION, "%s was told that no more would be sent",
                       s->method);
    uint8_t *bytes = tbc_pack(s->client, request, &size, &told);
    if (bytes == NULL) {
        if (error != NULL) *error = told;
        return told.status;
    }
    const bool sent = tbc_exchange_send(s->exchange, bytes, size, false);
    free(bytes);
    /* receive returns the call's status with the reason */
    return sent ? TB_OK : tb_fail(error, TB_UNAVAILABLE, "%s has ended", s->method);
}

tb_status tbc_stream_half_close(tbc_stream *s, tb_error *error)
{
    if (s->half_closed) return TB_OK;
    s->half_closed = true;
    if (!tbc_exchange_half_close(s->exchange))
        return tb_fail(error, TB_UNAVAILABLE, "%s has ended", s->method);
    return TB_OK;
}

tb_status tbc_stream_receive(tbc_stream *s, ProtobufCMessage **response, tb_error *error)
{
    *response = NULL;
    s->message.size = 0;
    if (!tbc_exchange_receive(s->exchange, &s->message)) return finish(s, error);
    return tbc_unpack(&s->message, s->descriptor, response, error);
}

void tbc_stream_cancel(tbc_stream *s)
{
    tbc_exchange_cancel(s->exchange);
}

void tbc_stream_close(tbc_stream *s)
{
    if (s == NULL) return;
    tbc_exchange_close(s->exchange);
    tb_bytes_free(&s->message);
    free(s);
}
