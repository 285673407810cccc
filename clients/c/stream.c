/* Streams. Each has a completion queue of its own; sends and receives are plucked by their tags, so
 * that one thread may send while another receives. The status of the call is asked for when it is
 * opened and looked at when a receive finds no message; whatever was started is plucked before the
 * queue is given back, since the next call that borrows it must find it empty.
 *
 * While answers keep coming within some ten microseconds, as those of short steps do, a receive
 * looks for the next one before it sleeps: waking a thread takes as long as the rest of the way. */
#include <grpc/support/time.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "client_internal.h"

/* A receive that is likely to take longer sleeps at once. */
static const int64_t LONGEST_SPIN_NS = 100000;
/* With fewer processors than this, looking would keep the server from answering. */
enum { PROCESSORS_TO_SPIN = 4 };

struct tbc_stream {
    tbc_client *client;
    grpc_completion_queue *queue;
    grpc_call *call;
    const ProtobufCMessageDescriptor *descriptor;
    char method[128];
    grpc_metadata authorization;
    grpc_metadata_array initial;
    tbc_end end;
    bool half_closed;                    /* the sender's */
    bool ended;                          /* the receiver's: nothing of the call is pending */
    bool spins;                          /* there are processors to spare */
    int64_t average_ns;                  /* the receiver's: how long it waits */
    char send_tag, receive_tag, end_tag; /* their addresses are the tags */
};

static bool start(tbc_stream *s, const grpc_op *op, void *tag)
{
    return grpc_call_start_batch(s->call, op, 1, tag, NULL) == GRPC_CALL_OK;
}

static grpc_event pluck(tbc_stream *s, void *tag, gpr_timespec deadline)
{
    return grpc_completion_queue_pluck(s->queue, tag, deadline, NULL);
}

static bool run(tbc_stream *s, const grpc_op *op, void *tag)
{
    return start(s, op, tag) && pluck(s, tag, gpr_inf_future(GPR_CLOCK_MONOTONIC)).success != 0;
}

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The same for a receive, which waits for the server. */
static bool run_receive(tbc_stream *s, const grpc_op *op, void *tag)
{
    grpc_event event = {.type = GRPC_QUEUE_TIMEOUT};
    if (!start(s, op, tag)) return false;
    const int64_t begin = monotonic_ns(), limit = 2 * s->average_ns;
    int64_t now = begin;
    if (s->spins && limit <= LONGEST_SPIN_NS)
        for (; event.type == GRPC_QUEUE_TIMEOUT && now - begin < limit; now = monotonic_ns())
            event = pluck(s, tag, gpr_time_0(GPR_CLOCK_MONOTONIC));
    if (event.type == GRPC_QUEUE_TIMEOUT) {
        event = pluck(s, tag, gpr_inf_future(GPR_CLOCK_MONOTONIC));
        now = monotonic_ns();
    }
    /* one pause is not the end of a loop */
    const int64_t waited = now - begin < LONGEST_SPIN_NS ? now - begin : LONGEST_SPIN_NS;
    s->average_ns = (7 * s->average_ns + waited) / 8;
    return event.success != 0;
}

tb_status tbc_stream_open(tbc_client *client, const char *method,
                          const ProtobufCMessageDescriptor *descriptor, double timeout,
                          tbc_stream **out, tb_error *error)
{
    *out = NULL;
    tbc_stream *s = calloc(1, sizeof *s);
    if (s == NULL) return tb_fail_memory(error, sizeof *s, "a stream");
    s->client = client;
    s->descriptor = descriptor;
    s->average_ns = LONGEST_SPIN_NS;
    s->spins = sysconf(_SC_NPROCESSORS_ONLN) >= PROCESSORS_TO_SPIN;
    strncpy(s->method, method, sizeof s->method - 1);
    s->queue = tbc_queue_take(client);
    s->call = tbc_call_create(client, method, tbc_deadline(timeout > 0 ? timeout : client->timeout),
                              s->queue);
    grpc_metadata_array_init(&s->initial);
    tbc_end_init(&s->end);

    grpc_op ops[3];
    memset(ops, 0, sizeof ops);
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    ops[0].data.send_initial_metadata.metadata = &s->authorization;
    tbc_metadata(client, &s->authorization, &ops[0].data.send_initial_metadata.count);
    ops[1].op = GRPC_OP_RECV_INITIAL_METADATA;
    ops[1].data.recv_initial_metadata.recv_initial_metadata = &s->initial;
    ops[2].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    ops[2].data.recv_status_on_client.trailing_metadata = &s->end.trailing;
    ops[2].data.recv_status_on_client.status = &s->end.code;
    ops[2].data.recv_status_on_client.status_details = &s->end.message;
    /* done when the call has ended: nobody waits for it before */
    if (grpc_call_start_batch(s->call, ops, 3, &s->end_tag, NULL) != GRPC_CALL_OK) {
        s->ended = true;
        tbc_stream_close(s);
        return tb_fail(error, TB_INTERNAL, "%s could not be started", method);
    }
    *out = s;
    return TB_OK;
}

/* Waits for the end of the call and tells how it was. */
static tb_status finish(tbc_stream *s, tb_error *error)
{
    if (!s->ended) {
        grpc_completion_queue_pluck(s->queue, &s->end_tag, gpr_inf_future(GPR_CLOCK_MONOTONIC),
                                    NULL);
        s->ended = true;
    }
    return tbc_end_status(s->client, &s->end, s->method, NULL, error);
}

tb_status tbc_stream_send(tbc_stream *s, const ProtobufCMessage *request, tb_error *error)
{
    if (s->half_closed)
        return tb_fail(error, TB_FAILED_PRECONDITION, "%s was told that no more would be sent",
                       s->method);
    grpc_byte_buffer *buffer = tbc_pack(request);
    grpc_op op;
    memset(&op, 0, sizeof op);
    op.op = GRPC_OP_SEND_MESSAGE;
    op.data.send_message.send_message = buffer;
    const bool sent = run(s, &op, &s->send_tag);
    grpc_byte_buffer_destroy(buffer);
    /* why it failed is in the call's status, which receive tells */
    if (!sent) return tb_fail(error, TB_UNAVAILABLE, "%s has ended", s->method);
    return TB_OK;
}

tb_status tbc_stream_half_close(tbc_stream *s, tb_error *error)
{
    if (s->half_closed) return TB_OK;
    grpc_op op;
    memset(&op, 0, sizeof op);
    op.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    s->half_closed = true;
    if (!run(s, &op, &s->send_tag))
        return tb_fail(error, TB_UNAVAILABLE, "%s has ended", s->method);
    return TB_OK;
}

tb_status tbc_stream_receive(tbc_stream *s, ProtobufCMessage **response, tb_error *error)
{
    grpc_byte_buffer *buffer = NULL;
    grpc_op op;
    *response = NULL;
    if (s->ended) return finish(s, error);
    memset(&op, 0, sizeof op);
    op.op = GRPC_OP_RECV_MESSAGE;
    op.data.recv_message.recv_message = &buffer;
    if (!run_receive(s, &op, &s->receive_tag) || buffer == NULL) return finish(s, error);
    const tb_status status = tbc_unpack(buffer, s->descriptor, response, error);
    grpc_byte_buffer_destroy(buffer);
    return status;
}

void tbc_stream_cancel(tbc_stream *s)
{
    grpc_call_cancel(s->call, NULL);
}

void tbc_stream_close(tbc_stream *s)
{
    if (s == NULL) return;
    if (!s->ended) {
        grpc_call_cancel(s->call, NULL);
        finish(s, NULL);
    }
    grpc_metadata_array_destroy(&s->initial);
    tbc_end_free(&s->end);
    grpc_call_unref(s->call);
    tbc_queue_give(s->client, s->queue);
    free(s);
}
