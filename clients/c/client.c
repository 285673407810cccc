/* Connections and unary calls. A call borrows a completion queue from the client, runs its one
 * batch of operations and plucks the result: no thread of our own, no lock while waiting. */
#include "client_internal.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const double FIRST_PAUSE_S = 0.05, LONGEST_PAUSE_S = 2;
/* A daemon that restarts is found again this soon: between two attempts to connect. */
enum { FIRST_RECONNECT_MS = 100, LONGEST_RECONNECT_MS = 2000, PING_MS = 10000 };

/* Only these may be sent again when it is not known whether the server saw them. */
static const char *const READS[] = {"GetServerInfo", "ListAssets",  "GetScene",       "ListScenes",
                                    "ListSessions",  "GetState",    "GetContacts",    "ListRuns",
                                    "GetRun",        "CompareRuns", "ListBenchmarks", "Heartbeat"};

tbc_options tbc_options_defaults(void)
{
    return (tbc_options){.address = "127.0.0.1:7410",
                         .connect_timeout = 5,
                         .attempts = 4,
                         .message_bytes = (size_t)64 << 20};
}

/* ---- connecting ---- */

gpr_timespec tbc_deadline(double seconds)
{
    if (!(seconds > 0)) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                        gpr_time_from_nanos((int64_t)(seconds * 1e9), GPR_TIMESPAN));
}

static grpc_arg int_arg(const char *key, int value)
{
    grpc_arg arg = {.type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t)key};
    arg.value.integer = value;
    return arg;
}

static grpc_channel *open_channel(const tbc_options *options)
{
    const int limit = options->message_bytes > INT32_MAX ? INT32_MAX : (int)options->message_bytes;
    grpc_arg args[] = {int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, limit),
                       int_arg(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, limit),
                       /* a client is a connection of its own, not one that others share */
                       int_arg(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
                       int_arg(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, FIRST_RECONNECT_MS),
                       int_arg(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, FIRST_RECONNECT_MS),
                       int_arg(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, LONGEST_RECONNECT_MS),
                       int_arg(GRPC_ARG_KEEPALIVE_TIME_MS, PING_MS),
                       int_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, PING_MS),
                       int_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
                       int_arg(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0)};
    const grpc_channel_args list = {.num_args = sizeof args / sizeof args[0], .args = args};
    grpc_channel_credentials *credentials = NULL;
    if (options->root_pem != NULL) {
        grpc_ssl_pem_key_cert_pair pair = {.private_key = options->client_key,
                                           .cert_chain = options->client_pem};
        credentials = grpc_ssl_credentials_create(
            options->root_pem, options->client_pem != NULL ? &pair : NULL, NULL, NULL);
    } else {
        credentials = grpc_insecure_credentials_create();
    }
    grpc_channel *channel = grpc_channel_create(options->address, credentials, &list);
    grpc_channel_credentials_release(credentials);
    return channel;
}

/* Waits until the channel is connected. */
static bool wait_connected(tbc_client *client, double seconds)
{
    const gpr_timespec deadline = tbc_deadline(seconds);
    grpc_completion_queue *queue = tbc_queue_take(client);
    grpc_connectivity_state state = grpc_channel_check_connectivity_state(client->channel, 1);
    while (queue != NULL && state != GRPC_CHANNEL_READY && state != GRPC_CHANNEL_SHUTDOWN) {
        grpc_channel_watch_connectivity_state(client->channel, state, deadline, queue, client);
        const grpc_event event =
            grpc_completion_queue_pluck(queue, client, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        if (!event.success) break;
        state = grpc_channel_check_connectivity_state(client->channel, 1);
    }
    if (queue != NULL) tbc_queue_give(client, queue);
    return state == GRPC_CHANNEL_READY;
}

static tb_status check(const tbc_options *options, tb_error *error)
{
    if (options->address == NULL || options->address[0] == 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "address", "the address is empty");
    if ((options->client_pem != NULL) != (options->client_key != NULL))
        return tb_fail_field(error, TB_INVALID_ARGUMENT,
                             options->client_pem != NULL ? "client_key" : "client_pem",
                             "a client's certificate and its key come together");
    if (options->client_pem != NULL && options->root_pem == NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "root_pem",
                             "a client's certificate needs TLS, which root_pem asks for");
    return TB_OK;
}

static bool copy_key(tbc_client *client, const char *key)
{
    const size_t size = strlen(key) + sizeof "Bearer ";
    char *text = malloc(size);
    if (text == NULL) return false;
    snprintf(text, size, "Bearer %s", key);
    client->authorization = grpc_slice_from_copied_string(text);
    client->has_key = true;
    free(text);
    return true;
}

tb_status tbc_connect(const tbc_options *options, tbc_client **out, tb_error *error)
{
    *out = NULL;
    const tb_status status = check(options, error);
    if (status != TB_OK) return status;
    tbc_client *client = calloc(1, sizeof *client);
    if (client == NULL) return tb_fail_memory(error, sizeof *client, "a client");
    grpc_init();
    pthread_mutex_init(&client->lock, NULL);
    client->timeout = options->timeout;
    client->attempts = options->attempts > 1 ? options->attempts : 1;
    client->address = strdup(options->address);
    if (client->address == NULL ||
        (options->api_key != NULL && !copy_key(client, options->api_key))) {
        tbc_disconnect(client);
        return tb_fail_memory(error, 0, "a client");
    }
    client->channel = open_channel(options);
    if (options->connect_timeout > 0 && !wait_connected(client, options->connect_timeout)) {
        tbc_disconnect(client);
        return tb_fail_field(error, TB_UNAVAILABLE, "address", "no tribod answers at %s%s",
                             options->address,
                             options->root_pem != NULL ? " by TLS with a certificate of the "
                                                         "trusted ones"
                                                       : "");
    }
    *out = client;
    return TB_OK;
}

static void destroy_queue(grpc_completion_queue *queue)
{
    grpc_completion_queue_shutdown(queue);
    grpc_completion_queue_destroy(queue);
}

void tbc_disconnect(tbc_client *client)
{
    if (client == NULL) return;
    for (int32_t i = 0; i < client->number_of_idle_queues; i++)
        destroy_queue(client->idle_queues[i]);
    if (client->channel != NULL) grpc_channel_destroy(client->channel);
    pthread_mutex_destroy(&client->lock);
    if (client->has_key) grpc_slice_unref(client->authorization);
    free(client->address);
    free(client);
    grpc_shutdown();
}

grpc_completion_queue *tbc_queue_take(tbc_client *client)
{
    grpc_completion_queue *queue = NULL;
    pthread_mutex_lock(&client->lock);
    if (client->number_of_idle_queues > 0)
        queue = client->idle_queues[--client->number_of_idle_queues];
    pthread_mutex_unlock(&client->lock);
    return queue != NULL ? queue : grpc_completion_queue_create_for_pluck(NULL);
}

void tbc_queue_give(tbc_client *client, grpc_completion_queue *queue)
{
    const int32_t room = (int32_t)(sizeof client->idle_queues / sizeof client->idle_queues[0]);
    pthread_mutex_lock(&client->lock);
    if (client->number_of_idle_queues < room) {
        client->idle_queues[client->number_of_idle_queues++] = queue;
        queue = NULL;
    }
    pthread_mutex_unlock(&client->lock);
    if (queue != NULL) destroy_queue(queue);
}

grpc_call *tbc_call_create(tbc_client *client, const char *method, gpr_timespec deadline,
                           grpc_completion_queue *queue)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", method[0] == '/' ? "" : "/", method);
    /* the channel takes a reference of its own */
    const grpc_slice slice = grpc_slice_from_copied_string(path);
    grpc_call *call = grpc_channel_create_call(client->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
                                               queue, slice, NULL, deadline, NULL);
    grpc_slice_unref(slice);
    return call;
}

void tbc_metadata(const tbc_client *client, grpc_metadata *entry, size_t *count)
{
    *count = client->has_key;
    if (*count == 0) return;
    memset(entry, 0, sizeof *entry);
    entry->key = grpc_slice_from_static_string("authorization");
    entry->value = client->authorization;
}

/* ---- messages ---- */

grpc_byte_buffer *tbc_pack(const ProtobufCMessage *message)
{
    const size_t size = protobuf_c_message_get_packed_size(message);
    grpc_slice slice = grpc_slice_malloc(size);
    protobuf_c_message_pack(message, GRPC_SLICE_START_PTR(slice));
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    return buffer;
}

tb_status tbc_unpack(grpc_byte_buffer *buffer, const ProtobufCMessageDescriptor *descriptor,
                     ProtobufCMessage **message, tb_error *error)
{
    grpc_byte_buffer_reader reader;
    *message = NULL;
    if (grpc_byte_buffer_reader_init(&reader, buffer)) {
        grpc_slice slice = grpc_byte_buffer_reader_readall(&reader);
        *message = protobuf_c_message_unpack(descriptor, NULL, GRPC_SLICE_LENGTH(slice),
                                             GRPC_SLICE_START_PTR(slice));
        grpc_slice_unref(slice);
        grpc_byte_buffer_reader_destroy(&reader);
    }
    if (*message == NULL)
        return tb_fail(error, TB_DATA_LOSS, "the server's answer is not a %s", descriptor->name);
    return TB_OK;
}

void tbc_free(void *message)
{
    if (message != NULL) protobuf_c_message_free_unpacked(message, NULL);
}

/* ---- unary calls ---- */

/* One attempt. */
static tb_status attempt(tbc_client *client, const char *method, const ProtobufCMessage *request,
                         const ProtobufCMessageDescriptor *descriptor, gpr_timespec deadline,
                         ProtobufCMessage **response, double *retry_after, tb_error *error)
{
    grpc_completion_queue *queue = tbc_queue_take(client);
    grpc_call *call = tbc_call_create(client, method, deadline, queue);
    grpc_byte_buffer *outgoing = tbc_pack(request), *incoming = NULL;
    grpc_metadata_array initial;
    grpc_metadata authorization;
    tbc_end end;
    tb_status status = TB_OK;
    grpc_metadata_array_init(&initial);
    tbc_end_init(&end);

    grpc_op ops[6];
    memset(ops, 0, sizeof ops);
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    ops[0].data.send_initial_metadata.metadata = &authorization;
    tbc_metadata(client, &authorization, &ops[0].data.send_initial_metadata.count);
    ops[1].op = GRPC_OP_SEND_MESSAGE;
    ops[1].data.send_message.send_message = outgoing;
    ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
    ops[3].data.recv_initial_metadata.recv_initial_metadata = &initial;
    ops[4].op = GRPC_OP_RECV_MESSAGE;
    ops[4].data.recv_message.recv_message = &incoming;
    ops[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    ops[5].data.recv_status_on_client.trailing_metadata = &end.trailing;
    ops[5].data.recv_status_on_client.status = &end.code;
    ops[5].data.recv_status_on_client.status_details = &end.message;
    if (grpc_call_start_batch(call, ops, 6, call, NULL) != GRPC_CALL_OK) {
        status = tb_fail(error, TB_INTERNAL, "%s could not be started", method);
        goto done;
    }
    grpc_completion_queue_pluck(queue, call, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    status = tbc_end_status(client, &end, method, retry_after, error);
    if (status == TB_OK && incoming == NULL)
        status = tb_fail(error, TB_DATA_LOSS, "%s was answered without a message", method);
    if (status == TB_OK) status = tbc_unpack(incoming, descriptor, response, error);
done:
    grpc_byte_buffer_destroy(outgoing);
    if (incoming != NULL) grpc_byte_buffer_destroy(incoming);
    grpc_metadata_array_destroy(&initial);
    tbc_end_free(&end);
    grpc_call_unref(call);
    tbc_queue_give(client, queue);
    return status;
}

static bool only_reads(const char *method)
{
    const char *slash = strrchr(method, '/');
    const char *name = slash != NULL ? slash + 1 : method;
    for (size_t i = 0; i < sizeof READS / sizeof READS[0]; i++)
        if (strcmp(name, READS[i]) == 0) return true;
    return false;
}

/* Sleeps; false if the deadline would come first. */
static bool pause_before(gpr_timespec deadline, double seconds)
{
    const gpr_timespec until = tbc_deadline(seconds);
    if (gpr_time_cmp(until, deadline) >= 0) return false;
    gpr_sleep_until(until);
    return true;
}

tb_status tbc_call(tbc_client *client, const char *method, const ProtobufCMessage *request,
                   const ProtobufCMessageDescriptor *descriptor, double timeout,
                   ProtobufCMessage **response, tb_error *error)
{
    /* one deadline for all attempts and the pauses between them */
    const gpr_timespec deadline = tbc_deadline(timeout > 0 ? timeout : client->timeout);
    double pause = FIRST_PAUSE_S;
    for (int32_t i = 1;; i++) {
        double retry_after = -1;
        *response = NULL;
        const tb_status status =
            attempt(client, method, request, descriptor, deadline, response, &retry_after, error);
        /* with a time to come back the server has refused without doing anything */
        const bool again = (status == TB_RESOURCE_EXHAUSTED && retry_after >= 0) ||
                           (status == TB_UNAVAILABLE && (retry_after >= 0 || only_reads(method)));
        if (!again || i >= client->attempts) return status;
        double wait = retry_after > pause ? retry_after : pause;
        if (wait > LONGEST_PAUSE_S) wait = LONGEST_PAUSE_S;
        if (!pause_before(deadline, wait)) return status;
        pause *= 2;
    }
}
