/* Internals of the gRPC transport: its state, its calls, and the functions that its files share.
 *
 *   rpc.c         start, drain and end of the transport
 *   listen.c      listening sockets; accepting, also after descriptors ran out
 *   loop.c        the threads that wait for sockets and timers
 *   connection.c  bytes of one connection: reading, writing, closing
 *   frames.c      heads of frames, before libnghttp2 takes them
 *   session.c     HTTP/2 events of one connection (callbacks of libnghttp2)
 *   limits.c      rations of control frames; keepalive, age and idle times of a connection
 *   tls.c         sessions and handshakes of TLS (GnuTLS)
 *   begin.c       start of a call: its method, its caller, its deadline
 *   receive.c     request messages: framing, decompression, delivery to the method
 *   send.c        response messages, status, trailers
 *   call.c        the life of a call between handlers and transport
 *   deadlines.c   calls by the time of their deadline
 *   health.c      grpc.health.v1;  reflection.c  grpc.reflection.v1 and v1alpha
 *
 * Protocol: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md and RFC 9113.
 *
 * Threads. A connection belongs to one loop; only the loop's thread touches its socket and its
 * nghttp2_session. Handlers run on the loop's thread, or on one of the transport's two workers for
 * a large message. Handlers answer from any thread: the answer is queued at the call, and the call
 * is posted to its loop, which writes.
 *
 * Locks. A call's lock guards the queue of its answers; the loop's lock guards the list of posted
 * calls; the rpc's lock guards counts and watchers of health. Order: rpc, call, loop. */
#ifndef SERVER_TRANSPORT_GRPC_INTERNAL_H
#define SERVER_TRANSPORT_GRPC_INTERNAL_H

#include <gnutls/gnutls.h>
#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <sys/socket.h>

#include "call/certificates.h"
#include "base/file.h"
#include "transport/grpc/rpc.h"

typedef struct rpc_call rpc_call;
typedef struct rpc_connection rpc_connection;
typedef struct rpc_loop rpc_loop;
typedef struct rpc_reflection rpc_reflection;

enum {
    RPC_MOST_LOOPS = 4,
    RPC_LISTENERS = 2,
    RPC_WORKERS = 2,
    RPC_PREFIX_BYTES = 5, /* of a message: a flag and its length */
    RPC_BROKEN_STREAMS = 32,
    RPC_FRAME_HEAD_BYTES = 9,
    RPC_PREFACE_BYTES = 24,
    RPC_PATH_SIZE = 256,
    RPC_TEXT_SIZE = 16, /* of a short header value */
    RPC_READ_BYTES = 1 << 16,
    RPC_WRITE_BYTES = 1 << 17
};

/* ---- limits of a connection, from the configuration ---- */

typedef struct rpc_limits {
    int32_t connections, connections_per_address;
    uint32_t streams;      /* of one connection at once */
    size_t header_bytes;   /* of one request: names, values and 32 for each (RFC 9113 6.5.2) */
    size_t message_bytes;  /* of one request message, also once it is inflated */
    size_t incoming_bytes; /* of request messages that are not complete or not read yet, in all */
    int64_t handshake_ns;  /* for TLS and HTTP/2's preface, and for the message of a unary call */
    int64_t idle_ns;       /* without a call; INT64_MAX: for ever */
    int64_t age_ns;        /* of a connection before it is asked to go; INT64_MAX: for ever */
    int64_t keepalive_ns;  /* without a byte, before the client is pinged */
} rpc_limits;

/* Frames that cost the server more than the client: each takes a part of a ration that grows with
 * time and with the answers that the connection carries. */
typedef struct rpc_ration {
    double left;
    int64_t filled_ns;
} rpc_ration;

/* ---- the transport ---- */

struct rpc_loop {
    td_rpc *rpc;
    int epoll, wake; /* descriptors */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* for `posted` and `arrived` */
    rpc_call *posted, **posted_end;
    rpc_connection *arrived;     /* accepted by another loop */
    atomic_bool sleeping;        /* a post has to wake the thread up */
    atomic_bool closing;         /* closes every connection */
    atomic_bool leaving;         /* asks every client to open a new connection */
    atomic_bool told;            /* one of these two is new */
    atomic_bool stop;            /* ends the thread */
    rpc_connection *connections; /* the rest is of the thread alone */
    rpc_connection *dirty;       /* have something to write, linked by next_dirty */
    rpc_connection *ended;       /* freed once no event can name them */
    rpc_call **deadlines;        /* a heap */
    size_t deadline_count, deadline_capacity;
    int64_t tick_ns; /* when the connections' times are looked at next */
    int messages;    /* handed to methods since the last wait */
    bool accepts;    /* this loop has the listeners */
    bool accepting;  /* the listeners are in its epoll set */
    int64_t accept_again_ns;
    uint8_t *read_buffer, *write_buffer; /* RPC_READ_BYTES, RPC_WRITE_BYTES */
};

struct td_rpc {
    td_server *server;
    rpc_limits limits;
    uint64_t forwarding_lengths; /* see edge.h */
    rpc_loop loops[RPC_MOST_LOOPS];
    int loop_count, next_loop;
    int listeners[RPC_LISTENERS];
    bool listener_is_local[RPC_LISTENERS]; /* a Unix socket */
    int listener_count;
    int spare;             /* a reserve descriptor, closed to refuse a connection; -1 */
    int64_t complained_ns; /* last log line about descriptors that ran out */
    int64_t told_full_ns;  /* last log line about evicted idle connections; of the loop that
                            * accepts */
    td_workers *workers;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    bool started;
    char address[TD_CONFIG_TEXT_SIZE + 16];
    char socket[TD_CONFIG_TEXT_SIZE]; /* path to remove at the end, or "" */
    td_certificates *certificates;    /* NULL: plain text */
    rpc_reflection *reflection;
    atomic_size_t incoming; /* bytes of request messages held, of all connections */

    pthread_mutex_t lock; /* for the rest */
    pthread_cond_t changed;
    int calls;          /* on the wire */
    int working;        /* of these, calls of the daemon's own methods */
    uint64_t refused;   /* calls that came after the shutdown began */
    bool shutting_down; /* calls are refused, but for health's */
    bool serving;
    rpc_call *watchers; /* of health, linked by watch_next */
    int connections;
    int leaving;                      /* of these, idle connections under eviction */
    struct rpc_connection *everybody; /* all connections, linked by peer_next */
};

/* Streams that the server ended before their client had. Frames that the client had already sent
 * are ignored; on any other closed stream DATA and HEADERS end the connection (RFC 9113 5.1). */
typedef struct rpc_broken_streams {
    int32_t recent[RPC_BROKEN_STREAMS];
    int32_t below; /* of ids up to this one nothing is known: their frames are ignored too */
    unsigned count;
} rpc_broken_streams;

/* ---- a connection: of its loop's thread alone, but for the links of the rpc's list ---- */

typedef enum rpc_phase {
    RPC_HANDSHAKE, /* of TLS */
    RPC_OPEN,
    RPC_LAST_WORDS, /* everything is written: waits for the client to close */
    RPC_CLOSED
} rpc_phase;

struct rpc_connection {
    td_rpc *rpc;
    rpc_loop *loop;
    rpc_connection *next, *previous;           /* of the loop */
    rpc_connection *peer_next, *peer_previous; /* of all; under the rpc's lock */
    rpc_connection *next_dirty;
    bool dirty;
    int socket;
    uint32_t events; /* that epoll waits for */
    rpc_phase phase;
    bool local;    /* over a Unix socket */
    bool loopback; /* the peer is on this machine */
    char peer[64];
    struct sockaddr_storage address;
    gnutls_session_t tls; /* NULL: plain */
    td_certificate *certificate;
    nghttp2_session *session;
    tb_bytes unsent;
    size_t unsent_at;
    rpc_call *calls;
    /* for the loop that accepts, too */
    atomic_int number_of_calls, standing; /* standing: td_standing of the callers so far */
    atomic_llong quiet_since_ns;          /* when it was opened, or its last call ended */
    bool leaving;                         /* idle, under eviction; under the rpc's lock */
    rpc_ration control, resets;
    rpc_broken_streams broken;
    uint8_t head[RPC_FRAME_HEAD_BYTES]; /* of the frame that arrives */
    size_t head_size;
    size_t payload_left; /* of the frame before that, or of the preface */
    int frames;          /* that began in the bytes of the last read */
    size_t read_size;    /* of the next read */
    uint32_t ending;     /* HTTP/2's error that ends the connection; 0 (NO_ERROR): none */
    bool settled;        /* the client's settings came */
    bool noticed;        /* the client was asked to open a new connection (the first GOAWAY) */
    bool said_goodbye;   /* no new streams are taken (the second GOAWAY) */
    bool pinged;         /* the server's ping is not answered */
    int64_t opened_ns, heard_ns, pinged_ns, noticed_ns, goodbye_ns, idle_since_ns, last_words_ns;
    int64_t calls_checked_ns;
};

/* ---- a call ---- */

/* One packed message that waits for the wire, with its prefix. */
typedef struct rpc_message {
    struct rpc_message *next;
    size_t size, at;
    uint8_t bytes[];
} rpc_message;

/* The headers of a request, as far as the transport reads them. */
typedef struct rpc_head {
    char path[RPC_PATH_SIZE];
    char method[RPC_TEXT_SIZE], timeout[RPC_TEXT_SIZE], encoding[RPC_TEXT_SIZE];
    char *authorization; /* malloc'ed, or NULL */
    size_t bytes;        /* of names and values so far */
    bool grpc;           /* the content type is gRPC's */
    bool takes_gzip;
    bool has_timeout;
    bool forwarded; /* a proxy forwarded the request */
    bool foreign;   /* :authority is no name of this machine's loopback */
    bool too_large;
    bool no_memory;
} rpc_head;

/* A request message that is complete. */
typedef struct rpc_flat {
    uint8_t *base; /* malloc'ed; the message begins at `at` */
    size_t at, size;
    size_t accounted; /* of the transport's incoming bytes */
    bool compressed;
} rpc_flat;

struct rpc_call {
    td_call base; /* first */
    td_rpc *rpc;
    rpc_loop *loop;
    bool began;             /* a first message came; of the delivering thread */
    bool counted;           /* among the rpc's calls */
    atomic_int standing;    /* td_standing of its caller, once admitted */
    bool working;           /* counted among the rpc's working calls */
    bool gzip_in, gzip_out; /* messages may be, answers are, compressed */
    atomic_uint events;     /* events to deliver to the method; see receive.c */

    /* of the loop's thread */
    rpc_connection *connection; /* NULL once off the wire */
    int32_t stream;
    rpc_call *next, *previous; /* of the connection */
    rpc_head head;
    tb_bytes arrived; /* of messages, from `arrived_at` on */
    size_t arrived_at, unconsumed, accounted;
    int64_t arrived_ns; /* when the last bytes came */
    bool input_ended, end_told;
    bool answered;           /* the response's headers were handed to libnghttp2 */
    bool deferred;           /* libnghttp2 waits for more of the answer */
    const char *http_status; /* status of a request that is not gRPC; or NULL */
    size_t line_at;          /* bytes of that answer's text that left */
    bool trailed;            /* the status was handed to libnghttp2 */
    int left;                /* messages that libnghttp2 took since `queued` was last lowered */
    size_t heap_index;       /* in the loop's deadlines, from 1 on; 0: not there */

    pthread_mutex_t lock; /* for the rest */
    rpc_call *next_posted;
    bool posted;
    bool closed;      /* off the wire: nothing is posted any more */
    bool reading;     /* a message was asked for and the method has not got it */
    bool ending;      /* a status is to be sent */
    rpc_flat request; /* messages to deliver */
    rpc_message *first, *last;
    tb_status status;
    int code; /* gRPC's */
    double retry_after;
    tb_error *error; /* malloc'ed, or NULL */

    /* a watcher of health; under the rpc's lock */
    bool watching;
    const char *watched; /* NULL: a service that is not there */
    int watch_sent;      /* status that it knows */
    rpc_call *watch_next, *watch_previous;
};

/* ---- listen.c ---- */

tb_status rpc_listen(td_rpc *, const td_config *, tb_error *);
void rpc_unlisten(td_rpc *);
/* Accepts the connections that wait at a listener. */
void rpc_accept(rpc_loop *, int listener_index);

/* ---- loop.c ---- */

tb_status rpc_loops_create(td_rpc *, tb_error *);
tb_status rpc_loops_start(td_rpc *, tb_error *);
/* Ends the threads; every connection must be closed. */
void rpc_loops_destroy(td_rpc *);
/* Posts a call with answers to send or a message to read. The caller holds the call's lock. */
void rpc_loop_post(rpc_call *);
void rpc_loop_wake(rpc_loop *);
/* Hands a new connection to its loop. */
void rpc_loop_adopt(rpc_loop *, rpc_connection *);
/* Everything of a turn but waiting and reading: calls that were posted, times, writes. Gives when
 * it has to be called again, monotonic ns. */
int64_t rpc_loop_turn(rpc_loop *);
/* Takes the listeners into the loop's epoll set, or out of it. */
void rpc_loop_accept(rpc_loop *, bool on);

/* ---- connection.c ---- */

/* A connection on this socket, which it takes over; NULL if out of memory. */
rpc_connection *rpc_connection_make(td_rpc *, int socket, bool local,
                                    const struct sockaddr_storage *);
void rpc_connection_open(rpc_connection *);
/* Events of epoll. */
void rpc_connection_ready(rpc_connection *, uint32_t events);
/* Discards bytes that came after the last words; closes the connection once its client did. */
void rpc_connection_discard(rpc_connection *);
/* Something is to be written: before the loop sleeps again. */
void rpc_connection_touch(rpc_connection *);
void rpc_connection_write(rpc_connection *);
/* Ends its calls and closes the socket; freed by the loop. */
void rpc_connection_close(rpc_connection *);
void rpc_connection_free(rpc_connection *);

/* ---- frames.c ---- */

/* Feeds bytes that came to libnghttp2, frame by frame; false where it fails. A frame that is not
 * allowed sets the connection's `ending`, and it and all behind it are not taken. */
bool rpc_frames_take(rpc_connection *, const uint8_t *bytes, size_t size);
/* The server ended this stream, perhaps before its client did. */
void rpc_broken_add(rpc_connection *, int32_t stream);

/* ---- session.c ---- */

tb_status rpc_session_prepare(td_rpc *, tb_error *);
void rpc_session_dispose(td_rpc *);
/* Makes the connection's nghttp2_session and its settings; false if out of memory. */
bool rpc_session_make(rpc_connection *);

/* ---- limits.c ---- */

rpc_limits rpc_limits_of(const td_config *);
/* Takes `cost` of a ration that grows by `rate` a second up to `burst`; false: used up. */
bool rpc_ration_take(rpc_ration *, double cost, double rate, double burst, int64_t now_ns);
/* Counts a frame that came; false: the client sends too many that cost it nothing. */
bool rpc_limits_frame(rpc_connection *, const nghttp2_frame_hd *);
/* Counts a stream that the client broke off, or (NULL) made the server break off. */
bool rpc_limits_reset(rpc_connection *, const rpc_call *);
/* A frame of an answer has left: the client may acknowledge it. */
void rpc_limits_sent(rpc_connection *);
/* Looks at the connection's times: handshake, keepalive, idle, age. About once a second. */
void rpc_limits_tick(rpc_connection *, int64_t now_ns);
/* First and second step of a graceful end. */
void rpc_connection_notice(rpc_connection *, int64_t now_ns);
void rpc_connection_goodbye(rpc_connection *, int64_t now_ns);

/* ---- tls.c ---- */

/* Gives the connection a session of TLS; false if out of memory. */
bool rpc_tls_begin(rpc_connection *);
/* Goes on with the handshake: 1 done, 0 wait, -1 failed. */
int rpc_tls_handshake(rpc_connection *);
void rpc_tls_end(rpc_connection *);

/* ---- begin.c ---- */

/* One header of a request that arrives. */
void rpc_begin_header(rpc_call *, const uint8_t *name, size_t name_size, const uint8_t *value,
                      size_t value_size);
/* All headers are there: finds the method, admits the caller, asks for the first message. */
void rpc_begin(rpc_call *);
/* The method served under this path: the daemon's, health's or reflection's. */
const td_method *rpc_method_find(const char *path);

/* ---- receive.c ---- */

/* Bytes of messages came: nghttp2_on_data_chunk_recv_callback. */
int rpc_receive_data(nghttp2_session *, uint8_t flags, int32_t stream, const uint8_t *bytes,
                     size_t size, void *connection);
/* Hands the next message to the method if it was asked for and is there. */
void rpc_receive(rpc_call *);
/* Notifies the method that all of its messages were sent. */
void rpc_tell_writable(rpc_call *);
/* Drops received bytes that were not read. */
void rpc_receive_drop(rpc_call *);
void rpc_flat_free(td_rpc *, rpc_flat *);

/* ---- send.c ---- */

/* Packs a message after its prefix; compressed if that saves enough. NULL if out of memory. */
rpc_message *rpc_pack(const ProtobufCMessage *, bool gzip);
/* Hands the call's answers to libnghttp2, as far as it asks for them. */
void rpc_send(rpc_call *);
/* Answers a request that is not gRPC by `http_status` and a line of text, once the request is
 * complete or too large to read on. */
void rpc_send_http(rpc_call *);
/* Drops unsent messages; returns their number. Caller holds the call's lock. */
int rpc_send_drop(rpc_call *);

/* ---- call.c ---- */

extern const td_call_transport rpc_transport;
/* Makes a call when its headers begin to arrive; NULL if out of memory. */
rpc_call *rpc_call_make(rpc_connection *, int32_t stream);
/* The call counts from now on. `working`: a shutdown waits for it. False if there is a shutdown and
 * the call is to be refused. */
bool rpc_call_begin(rpc_call *, bool working);
/* Serves a post: hands over a message that is wanted, sends answers. */
void rpc_call_posted(rpc_call *);
/* The stream is closed; `broken`: not by the end of its answer. */
void rpc_call_close(rpc_call *, bool broken);
/* Ends a call from outside its method: its deadline has passed, or the server stops. */
void rpc_call_abort(rpc_call *, const tb_error *, double retry_after);

/* ---- deadlines.c ---- */

bool rpc_deadline_add(rpc_call *);
void rpc_deadline_remove(rpc_call *);
/* Ends the calls past their deadline; returns the next deadline, or INT64_MAX. */
int64_t rpc_deadlines_run(rpc_loop *, int64_t now_ns);

/* ---- health.c, reflection.c: tables ended by a NULL name ---- */

extern const td_method rpc_health_methods[];
extern const td_method rpc_reflection_methods[];
void rpc_health_change(td_rpc *, bool serving);
/* Ends all watches. */
void rpc_health_end(td_rpc *);

tb_status rpc_reflection_create(rpc_reflection **, tb_error *);
void rpc_reflection_destroy(rpc_reflection *);

#endif
