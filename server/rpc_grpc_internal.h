/* Inside the gRPC transport: its state, its calls, and what its files offer each other.
 *
 *   rpc_grpc.c             ports, start and shutdown
 *   rpc_grpc_poll.c        the threads that poll
 *   rpc_grpc_accept.c      a call arrives: its method, its caller, its deadline
 *   rpc_grpc_call.c        messages in and out, status, cancellation
 *   rpc_grpc_bytes.c       byte buffers to flat bytes, gzip
 *   rpc_grpc_tls.c         certificates
 *   rpc_grpc_health.c      grpc.health.v1
 *   rpc_grpc_reflection.c  grpc.reflection.v1 and v1alpha */
#ifndef SERVER_RPC_GRPC_INTERNAL_H
#define SERVER_RPC_GRPC_INTERNAL_H

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>
#include <pthread.h>

#include "rpc.h"

typedef struct rpc_call rpc_call;
typedef struct rpc_reflection rpc_reflection;

/* What a completion queue gives back: which event of which call. */
typedef struct rpc_tag {
    void (*happened)(rpc_call *, bool success);
    rpc_call *call;
} rpc_tag;

enum { RPC_MOST_THREADS = 2, RPC_ADDRESS_SIZE = TD_CONFIG_TEXT_SIZE + 16 };

struct td_rpc {
    td_server *server;
    grpc_server *grpc;
    grpc_completion_queue *queue;
    pthread_t threads[RPC_MOST_THREADS];
    int threads_running, most_threads;
    atomic_bool away;       /* the first of them is handling an event */
    atomic_bool relieved;   /* the second polls too */
    atomic_llong relief_ns; /* monotonic: when it was last asked for */
    bool started;
    char address[RPC_ADDRESS_SIZE];
    char socket[TD_CONFIG_TEXT_SIZE]; /* path to remove at the end, or "" */
    struct rpc_tls *tls;
    rpc_reflection *reflection;
    rpc_tag shutdown_tag;

    pthread_mutex_t lock; /* for the rest */
    pthread_cond_t changed;
    pthread_cond_t relief; /* `relieved` became true */
    atomic_bool ending;
    int calls;          /* on the wire */
    int working;        /* of these, calls of the daemon's own methods */
    uint64_t refused;   /* calls that came after the shutdown began */
    bool shutting_down; /* calls are refused, but for health's */
    bool shut_down;     /* the core has closed every connection */
    bool serving;
    rpc_call *watchers; /* of health, linked by watch_next */
};

/* One packed message that waits for the wire. */
typedef struct rpc_message {
    struct rpc_message *next;
    grpc_byte_buffer *bytes;
} rpc_message;

enum { RPC_TRAILERS = 2 };

/* A call on the wire. The core allows one batch of each kind at a time; `batches` counts them, and
 * the call is given back to the core when none is left and its close was seen. */
struct rpc_call {
    td_call base; /* first */
    td_rpc *rpc;
    grpc_call *grpc;
    grpc_call_details details;
    grpc_metadata_array metadata;
    rpc_tag accepted, received, closed, sent;
    grpc_byte_buffer *request; /* what the last receive brought */
    bool began;                /* a first message came; for the one who tells */
    bool working;              /* counted among the rpc's working calls */
    int cancelled;             /* filled by the core */
    atomic_uint events;        /* what waits to be told to the method; see rpc_grpc_call.c */

    pthread_mutex_t lock; /* for the rest */
    int batches;
    bool receiving; /* a message was asked for and the method has not got it */
    bool sending;   /* such a batch is on its way */
    bool headers_sent;
    bool ending, status_sent; /* a status is to be sent; is sent */
    bool closed_seen;         /* no further batches */
    rpc_message *first, *last;
    rpc_message *leaving; /* the one that is being sent */
    grpc_status_code code;
    grpc_slice text;
    grpc_metadata trailers[RPC_TRAILERS];
    size_t trailer_count;

    /* a watcher of health; under the rpc's lock */
    bool watching;
    const char *watched; /* NULL: a service that is not there */
    int watch_sent;      /* status that it knows */
    rpc_call *watch_next, *watch_previous;
};

/* ---- rpc_grpc_poll.c ---- */

tb_status rpc_poll_start(td_rpc *, tb_error *);
/* Has a second thread poll for a while: the one that polls may be kept away. */
void rpc_poll_relieve(td_rpc *);
/* Shuts the queue down, handles what is left in it, and ends the threads. */
void rpc_poll_end(td_rpc *);

/* ---- rpc_grpc_accept.c ---- */

/* Asks the core for one more call. Does nothing when shutting down or out of memory. */
void rpc_accept(td_rpc *);
/* The method served under this path: the daemon's, health's or reflection's. */
const td_method *rpc_method_find(const char *path);

/* ---- rpc_grpc_call.c ---- */

extern const td_call_transport rpc_transport;
/* Makes a call that waits to arrive; NULL without memory. */
rpc_call *rpc_call_make(td_rpc *);
/* Frees one that never arrived. */
void rpc_call_drop(rpc_call *);
/* It has arrived: the core will tell when it closes. Until rpc_call_begun it stays whatever comes.
 * `working`: a shutdown waits for it. False if there is a shutdown and the call is to be refused. */
bool rpc_call_begin(rpc_call *, bool working);
void rpc_call_begun(rpc_call *);

/* ---- rpc_grpc_bytes.c ---- */

/* A message's bytes in one piece. */
typedef struct rpc_flat {
    const uint8_t *bytes;
    size_t size;
    grpc_slice slice; /* holds them, if any */
    uint8_t *own;     /* or this does */
} rpc_flat;

/* Flattens and, where it is compressed, inflates to at most `limit` bytes. INVALID_ARGUMENT if it
 * does not inflate, RESOURCE_EXHAUSTED beyond the limit, UNSUPPORTED for another compression. */
tb_status rpc_flatten(grpc_byte_buffer *, size_t limit, rpc_flat *, tb_error *);
void rpc_flat_free(rpc_flat *);
/* Packs a message. */
grpc_byte_buffer *rpc_pack(const ProtobufCMessage *);

/* ---- rpc_grpc_tls.c ---- */

/* Credentials of the configuration; insecure ones where it names no certificate. Certificates are
 * read again when their files change. */
tb_status rpc_credentials(const td_config *, grpc_server_credentials **, struct rpc_tls **,
                          tb_error *);
void rpc_tls_destroy(struct rpc_tls *);

/* ---- rpc_grpc_health.c, rpc_grpc_reflection.c: tables ended by a NULL name ---- */

extern const td_method rpc_health_methods[];
extern const td_method rpc_reflection_methods[];
void rpc_health_change(td_rpc *, bool serving);
/* Ends all watches. */
void rpc_health_end(td_rpc *);

tb_status rpc_reflection_create(rpc_reflection **, tb_error *);
void rpc_reflection_destroy(rpc_reflection *);

#endif
