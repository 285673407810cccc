/* A small gRPC client on the C core for tests: one call at a time, every batch waited for. */
#ifndef RPC_UTIL_H
#define RPC_UTIL_H

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>
#include <protobuf-c/protobuf-c.h>

#include "test_util.h"

enum { CLIENT_TIMEOUT_S = 20, CLIENT_TEXT_SIZE = 1024 };

typedef struct client {
    grpc_channel *channel;
    grpc_completion_queue *queue;
} client;

typedef struct client_call {
    client *client;
    grpc_call *call;
    grpc_metadata_array trailing;
    grpc_status_code code;
    grpc_slice text_slice;
    char text[CLIENT_TEXT_SIZE]; /* of the status */
    bool headers_seen;
} client_call;

static inline void client_open_with(client *c, const char *target, grpc_channel_credentials *creds,
                                    const grpc_channel_args *args)
{
    c->channel = grpc_channel_create(target, creds, args);
    grpc_channel_credentials_release(creds);
    c->queue = grpc_completion_queue_create_for_next(NULL);
}

static inline void client_open(client *c, const char *target)
{
    /* a channel of its own connection, not one shared with the test before */
    grpc_arg local = {.type = GRPC_ARG_INTEGER, .value.integer = 1};
    char key[] = GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL;
    local.key = key;
    const grpc_channel_args args = {1, &local};
    client_open_with(c, target, grpc_insecure_credentials_create(), &args);
}

static inline void client_close(client *c)
{
    grpc_channel_destroy(c->channel);
    grpc_completion_queue_shutdown(c->queue);
    while (grpc_completion_queue_next(c->queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL).type !=
           GRPC_QUEUE_SHUTDOWN) {
    }
    grpc_completion_queue_destroy(c->queue);
}

static inline gpr_timespec client_after(double seconds)
{
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                        gpr_time_from_micros((int64_t)(seconds * 1e6), GPR_TIMESPAN));
}

/* Waits for the completion of the batch with this tag; gives its success. */
static inline bool client_wait(client *c, const void *tag)
{
    const grpc_event event =
        grpc_completion_queue_next(c->queue, client_after(CLIENT_TIMEOUT_S), NULL);
    ck_assert_msg(event.type == GRPC_OP_COMPLETE, "the server did not answer");
    ck_assert_ptr_eq(event.tag, tag);
    return event.success != 0;
}

static inline bool client_batch(client_call *call, const grpc_op *ops, size_t count)
{
    ck_assert_int_eq(grpc_call_start_batch(call->call, ops, count, call, NULL), GRPC_CALL_OK);
    return client_wait(call->client, call);
}

static inline grpc_byte_buffer *client_pack(const void *message)
{
    grpc_slice slice = grpc_slice_malloc(protobuf_c_message_get_packed_size(message));
    protobuf_c_message_pack(message, GRPC_SLICE_START_PTR(slice));
    grpc_byte_buffer *bytes = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    return bytes;
}

/* Begins a call: sends its headers, with one header more if `key` is not NULL. */
static inline void call_begin_with(client_call *call, client *c, const char *path, double seconds,
                                   const char *key, const char *value)
{
    grpc_metadata header;
    memset(call, 0, sizeof *call);
    call->client = c;
    call->text_slice = grpc_empty_slice();
    grpc_metadata_array_init(&call->trailing);
    call->call = grpc_channel_create_call(
        c->channel, NULL, GRPC_PROPAGATE_DEFAULTS, c->queue, grpc_slice_from_static_string(path),
        NULL, seconds > 0 ? client_after(seconds) : gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    grpc_op op = {.op = GRPC_OP_SEND_INITIAL_METADATA};
    op.flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY;
    if (key != NULL) {
        header.key = grpc_slice_from_static_string(key);
        header.value = grpc_slice_from_static_string(value);
        op.data.send_initial_metadata.count = 1;
        op.data.send_initial_metadata.metadata = &header;
    }
    client_batch(call, &op, 1);
}

static inline void call_begin(client_call *call, client *c, const char *path)
{
    call_begin_with(call, c, path, CLIENT_TIMEOUT_S, NULL, NULL);
}

static inline bool call_send_bytes(client_call *call, grpc_byte_buffer *bytes)
{
    grpc_op op = {.op = GRPC_OP_SEND_MESSAGE};
    op.data.send_message.send_message = bytes;
    const bool sent = client_batch(call, &op, 1);
    grpc_byte_buffer_destroy(bytes);
    return sent;
}

static inline bool call_send(client_call *call, const void *message)
{
    return call_send_bytes(call, client_pack(message));
}

static inline void call_half_close(client_call *call)
{
    const grpc_op op = {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
    client_batch(call, &op, 1);
}

/* The next message of this type, or NULL at the end. Headers come with the first. */
static inline void *call_receive(client_call *call, const ProtobufCMessageDescriptor *type)
{
    grpc_byte_buffer *bytes = NULL;
    grpc_metadata_array initial;
    grpc_metadata_array_init(&initial);
    grpc_op ops[2] = {{.op = GRPC_OP_RECV_MESSAGE}, {.op = GRPC_OP_RECV_INITIAL_METADATA}};
    ops[0].data.recv_message.recv_message = &bytes;
    ops[1].data.recv_initial_metadata.recv_initial_metadata = &initial;
    client_batch(call, ops, call->headers_seen ? 1 : 2);
    call->headers_seen = true;
    grpc_metadata_array_destroy(&initial);
    if (bytes == NULL) return NULL;
    grpc_byte_buffer_reader reader;
    ck_assert(grpc_byte_buffer_reader_init(&reader, bytes));
    grpc_slice slice = grpc_byte_buffer_reader_readall(&reader);
    void *message = protobuf_c_message_unpack(type, NULL, GRPC_SLICE_LENGTH(slice),
                                              GRPC_SLICE_START_PTR(slice));
    ck_assert_ptr_nonnull(message);
    grpc_slice_unref(slice);
    grpc_byte_buffer_reader_destroy(&reader);
    grpc_byte_buffer_destroy(bytes);
    return message;
}

/* Waits for the status. */
static inline grpc_status_code call_status(client_call *call)
{
    grpc_metadata_array initial;
    grpc_metadata_array_init(&initial);
    grpc_op ops[2] = {{.op = GRPC_OP_RECV_STATUS_ON_CLIENT}, {.op = GRPC_OP_RECV_INITIAL_METADATA}};
    ops[0].data.recv_status_on_client.trailing_metadata = &call->trailing;
    ops[0].data.recv_status_on_client.status = &call->code;
    ops[0].data.recv_status_on_client.status_details = &call->text_slice;
    ops[1].data.recv_initial_metadata.recv_initial_metadata = &initial;
    client_batch(call, ops, call->headers_seen ? 1 : 2);
    call->headers_seen = true;
    grpc_metadata_array_destroy(&initial);
    const size_t length = GRPC_SLICE_LENGTH(call->text_slice);
    const size_t kept = length < CLIENT_TEXT_SIZE ? length : CLIENT_TEXT_SIZE - 1;
    memcpy(call->text, GRPC_SLICE_START_PTR(call->text_slice), kept);
    call->text[kept] = '\0';
    return call->code;
}

/* A trailer's value, as a slice of the call's own; empty if there is none. */
static inline grpc_slice call_trailer(const client_call *call, const char *key)
{
    for (size_t i = 0; i < call->trailing.count; i++)
        if (grpc_slice_str_cmp(call->trailing.metadata[i].key, key) == 0)
            return call->trailing.metadata[i].value;
    return grpc_empty_slice();
}

static inline void call_cancel(client_call *call)
{
    ck_assert_int_eq(grpc_call_cancel(call->call, NULL), GRPC_CALL_OK);
}

static inline void call_end(client_call *call)
{
    grpc_metadata_array_destroy(&call->trailing);
    grpc_slice_unref(call->text_slice);
    grpc_call_unref(call->call);
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
