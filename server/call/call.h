/* A call: one request of a client, independent of its transport.
 *
 * Transports (transport/grpc, transport/http) make a `td_call` for every request they accept, find
 * its method in the table of handlers/methods.c, unpack request messages and pass them to the
 * method's functions. The functions answer by td_call_send and td_call_finish, at once or later and
 * from any thread; they must not depend on gRPC or HTTP. A call is reference-counted: the transport
 * holds one reference until the call is off the wire, a handler that answers later takes another.
 *
 * Flow. Unary and server-streaming calls get exactly one request message. A method with a request
 * stream gets the first message by itself and each further one after td_call_read. td_call_send
 * never blocks: it packs and queues. A method that sends many messages watches td_call_queued and
 * continues in `writable`, so that a stalled reader costs no memory. */
#ifndef SERVER_CALL_H
#define SERVER_CALL_H

#include <protobuf-c/protobuf-c.h>
#include <stdatomic.h>

#include "ops/config.h"
#include "trace/trace.h"
#include "tribo.h"
#include "wire/request.h"

typedef struct td_server td_server;
typedef struct td_call td_call;
typedef struct td_method td_method;

enum { TD_CALLER_NAME_SIZE = 64 };

/* The authenticated caller. td_auth_admit fills it before a method sees the call. */
typedef struct td_caller {
    char name[TD_CALLER_NAME_SIZE]; /* owner of the call's objects: the key's name, "anonymous" */
    /* the account in the queues: the key's name, or "anonymous" with the address; "": name */
    char account[TD_CALLER_NAME_SIZE];
    td_scope scope;
    bool loopback;    /* came over a loopback address or a Unix socket */
    int32_t sessions; /* quota of open sessions; 0: the configuration's */
} td_caller;

/* One method of one service. Functions that are NULL do nothing. All may be called from any
 * transport thread, but never two at once for one call, `cancelled` excepted. */
struct td_method {
    const char *service; /* "tribo.v1.Simulation" */
    const char *name;    /* "Step" */
    bool client_streaming, server_streaming;
    td_scope scope;
    const ProtobufCMessageDescriptor *input, *output;
    /* A request message; the handler owns it and frees it by td_request_free. */
    void (*message)(td_call *, td_request *);
    /* The client sends no more (request streams only). */
    void (*half_closed)(td_call *);
    /* Everything that td_call_send queued has left. */
    void (*writable)(td_call *);
    /* The client went away or the deadline passed: stop the work, then still td_call_finish. May
     * come while another function of the method runs, and at most once. */
    void (*cancelled)(td_call *);
};

/* The transport's part of a call. td_call_send has added one to `queued` before `send`; the
 * transport subtracts one for each message that was sent (or dropped), and calls the method's
 * `writable` at zero. */
typedef struct td_call_transport {
    void (*send)(td_call *, const ProtobufCMessage *);
    void (*finish)(td_call *, tb_status, const tb_error *, double retry_after);
    void (*read)(td_call *);
    void (*destroy)(td_call *); /* last reference gone: frees the call */
    const char *name;           /* "grpc", "http": for the metrics */
} td_call_transport;

/* Times of the device's job that a call waited for, monotonic; 0: there was none. */
typedef struct td_call_work {
    atomic_llong queued_ns, started_ns, finished_ns;
    const char *_Atomic device; /* its name, as long as the daemon lives */
} td_call_work;

/* The part of a call that all transports share; a transport embeds it as its first member. */
struct td_call {
    const td_call_transport *transport;
    const td_method *method;
    td_server *server;
    td_caller caller;
    int64_t arrival_ns;  /* monotonic, when its headers were there */
    int64_t deadline_ns; /* monotonic; INT64_MAX: none */
    char peer[64];       /* address, for logs */
    td_trace trace;      /* the client's, or one that begins here, for logs and spans */
    td_call_work work;   /* for spans */
    /* The transport's thread was otherwise idle when this message arrived, so the thread may work
     * on it for some microseconds. */
    bool at_leisure;
    atomic_int references;
    atomic_int queued;                  /* messages sent and not yet taken by the wire */
    atomic_bool gone;                   /* cancelled by the client, or past its deadline */
    atomic_bool finished;               /* td_call_finish was called */
    atomic_int stage;                   /* call.c's own: whether the method has seen the call */
    void *state;                        /* the handler's own, for calls that last */
    void (*destroy_state)(void *state); /* called with the last reference */
};

void td_call_init(td_call *, const td_call_transport *, td_server *);
void td_call_hold(td_call *);
void td_call_release(td_call *);

/* Packs and queues one response message; silently nothing once the call is gone or finished. */
void td_call_send(td_call *, const ProtobufCMessage *response);
/* Ends the call, once; later calls are ignored. `error` may be NULL. With RESOURCE_EXHAUSTED or
 * UNAVAILABLE, `retry_after` > 0 (s) is the client's retry delay. */
void td_call_finish(td_call *, tb_status, const tb_error *error, double retry_after);
/* Sends and ends well, or ends with the error: the end of every unary method. */
void td_call_reply(td_call *, const ProtobufCMessage *response);
void td_call_fail(td_call *, const tb_error *error);
/* Replies if the answer fits one message, else RESOURCE_EXHAUSTED with `advice` ("; Watch ...");
 * `failed`: memory ran out while it was built. */
void td_call_reply_bounded(td_call *, const ProtobufCMessage *response, bool failed,
                           const char *advice);
/* Asks for the next message of a request stream. */
void td_call_read(td_call *);
static inline int td_call_queued(td_call *call)
{
    return atomic_load_explicit(&call->queued, memory_order_acquire);
}
/* True if the client still waits: it has not gone, and the deadline is after `now_ns`. */
bool td_call_wanted(td_call *, int64_t now_ns);
/* Notes when a device worked for the call, the latest time if it did several times. A call that sends a
 * stream of requests has no such times of its own and keeps none. */
void td_call_worked(td_call *, const char *device, int64_t queued_ns, int64_t started_ns,
                    int64_t finished_ns);

/* ---- for transports ---- */

/* Hands one message to the method after the caller was admitted, counts and times the call. A call
 * that is over or past its deadline takes no message: the request is freed. */
void td_call_dispatch(td_call *, td_request *);
/* Cancels the call because the client disconnected or the deadline passed; idempotent. A call
 * without a delivered message ends here; any other method receives `cancelled`. */
void td_call_cancel(td_call *);
/* Ends the call with the error because the transport cannot take the client's message; a method
 * that has seen the call receives `cancelled`. */
void td_call_refuse(td_call *, const tb_error *);

/* The error as google.rpc.Status bytes (ErrorInfo, BadRequest, RetryInfo as they apply), malloc'ed;
 * for `grpc-status-details-bin` and Connect's details. NULL if out of memory. */
uint8_t *td_status_details(tb_status, const tb_error *, double retry_after, size_t *size);

#endif
