/* Declarations shared by the files of the HTTP transport.
 *
 *   http.c      the daemon of libmicrohttpd: listening, starting, ending
 *   listen.c    the listening socket
 *   guard.c     connections: their number, the time limit of a request, clients that have gone
 *   request.c   a request as it arrives: route, headers, body
 *   call.c      a request as a call: admission, decoding, messages of handlers
 *   answer.c    answers on the wire: Connect, gRPC-Web, streams
 *   error.c     errors in the forms of Connect and gRPC-Web
 *   pages.c     health, metrics;  dashboard.c  the files of the dashboard;  cors.c  CORS
 *   wire/envelope.c  the small grammars;  wire/gzip.c  compression
 *
 * Threads. libmicrohttpd runs a few threads of its own; each connection belongs to one of them. A
 * request without an answer yet is suspended; the thread that brings the answer resumes it. The
 * guard is one more thread, for deadlines and for clients that disconnect while suspended, which
 * libmicrohttpd does not see. Two workers take requests that may be slow to admit or decode, so
 * that they delay no other connection.
 *
 * Locks. An exchange's lock guards the state that handlers, guard and transport share; the guard's
 * lock guards connections. No thread holds both, and no thread calls a handler under either. */
#ifndef SERVER_HTTP_INTERNAL_H
#define SERVER_HTTP_INTERNAL_H

#include <microhttpd.h>
#include <pthread.h>
#include <sys/socket.h>

#include "call/certificates.h"
#include "base/file.h"
#include "transport/http/http.h"

enum {
    HTTP_PEER_SIZE = 64,
    HTTP_SPARE_CONNECTIONS = 32, /* beyond the limit: refused, and health is answered */
    HTTP_THREADS = 4,
    HTTP_WORKERS = 2,
};

typedef enum http_protocol {
    HTTP_CONNECT_UNARY,
    HTTP_CONNECT_STREAM,
    HTTP_GRPC_WEB,
} http_protocol;

/* How a request is encoded, and its answer with it. */
typedef struct http_format {
    http_protocol protocol;
    bool known;           /* the request has stated its format; else refusals are plain */
    bool json;            /* canonical protobuf JSON, else protobuf */
    bool text;            /* gRPC-Web in base64 */
    bool get;             /* Connect's GET: the message is in the query */
    bool events;          /* a stream by GET: Server-Sent Events, JSON each */
    bool plain;           /* JSON with arrays as lists */
    bool request_gzip;    /* the message may be (enveloped) or is (unary) compressed */
    bool response_gzip;   /* the client takes compressed answers */
    bool response_brotli; /* and files packed by brotli */
} http_format;

/* The requested route. */
typedef enum http_route {
    HTTP_ROUTE_REFUSED, /* see the exchange's refusal */
    HTTP_ROUTE_CALL,
    HTTP_ROUTE_LIVE,
    HTTP_ROUTE_READY,
    HTTP_ROUTE_METRICS,
    HTTP_ROUTE_FILE,
    HTTP_ROUTE_OPTIONS,
} http_route;

struct http_exchange;
/* A file of the dashboard. */
typedef struct http_file http_file;

/* One TCP connection. The second part is guarded by the guard's lock. */
typedef struct http_connection {
    td_http *http;
    int socket;
    char peer[HTTP_PEER_SIZE]; /* address and port */
    struct sockaddr_storage address;
    bool loopback;
    const char *over_what; /* one too many of these: everything but health is refused; or NULL */
    int32_t over_limit;    /* how many may be */

    td_certificate *certificate; /* of its handshake; NULL: plain text */
    bool closed;                 /* the guard frees it */
    bool broken;                 /* the client has gone */
    bool leaving;                /* idle, under eviction */
    td_standing standing;        /* of the callers so far */
    int64_t since_ns;            /* when it was opened, or its last request began */
    int64_t receive_deadline_ns; /* of the request that is arriving; INT64_MAX: none is due */
    int64_t body_ns;     /* when the arriving request's headers were read; 0: none is arriving */
    uint64_t body_bytes; /* of the arriving request's body so far */
    struct http_exchange *exchange; /* with a call in flight, referenced; or NULL */
    struct http_connection *next, *previous;
} http_connection;

/* One response message that waits for the wire, packed. */
typedef struct http_item {
    struct http_item *next;
    size_t size;
    unsigned char frame[]; /* HTTP_ENVELOPE_BYTES, then the message */
} http_item;

/* One request and its answer. */
typedef struct http_exchange {
    td_call call; /* first: a call is an exchange */
    td_http *http;
    http_connection *connection;
    struct MHD_Connection *wire; /* while on the wire */
    const td_config *config;
    http_route route;
    const http_file *file; /* of HTTP_ROUTE_FILE */
    http_format format;
    bool complete;    /* the request has arrived */
    bool close_after; /* the connection ends with the answer */

    /* a request that is not a call, or a call that is refused */
    int refusal_http;
    tb_status refusal_status;
    char allow[64];          /* methods, for 405 and OPTIONS; "" otherwise */
    const char *accept_post; /* types, for 415; NULL otherwise */
    double refusal_retry;    /* s; 0: none */
    tb_error refusal;

    tb_bytes body;
    uint64_t body_limit, discarded;

    atomic_bool overflow; /* the handler ignores a slow reader */

    /* shared with handlers, under the lock */
    pthread_mutex_t lock;
    bool off_wire;    /* the connection is done with it: nothing more is wanted */
    bool dead;        /* the client has gone, or cannot be served: close */
    bool dispatching; /* the method's first function runs */
    bool suspended;
    bool finished;
    http_item *first, *last;
    size_t waiting_bytes;
    tb_status status;
    double retry_after;
    tb_error error;

    /* of the thread that writes the answer */
    bool drained, ended;
    http_item *current; /* the item that may own the frame `out` */
    const unsigned char *out;
    size_t out_size, out_at;
    tb_bytes encoded;
} http_exchange;

/* Connections and their deadlines. */
typedef struct http_guard {
    pthread_mutex_t lock;
    pthread_t thread;
    bool running, stop;
    int epoll, wake; /* descriptors; -1: none */
    int64_t wake_ns; /* when the guard looks next, under the lock */
    http_connection *connections, *closed;
    int32_t count, leaving; /* leaving: of these, idle ones under eviction */
    int64_t complained_ns;  /* last log line about evicted connections */
} http_guard;

struct td_http {
    td_server *server;
    http_guard guard;
    td_pool *decoders; /* of large bodies, and where the slow check of a key is due */
    struct MHD_Daemon *daemon;
    int32_t connections; /* that may be open: as configured, or as descriptors allow */
    int listener;
    char address[TD_CONFIG_TEXT_SIZE];
    bool ipv6;
    tb_bytes certificate, key, client_ca; /* PEM, with a zero behind: for libmicrohttpd */
    td_certificates *certificates;        /* credentials of handshakes; NULL: plain text */
    atomic_bool draining;                 /* refuses new calls */
    atomic_bool stopping;                 /* refuses all calls, also of requests in progress */
    pthread_mutex_t calls_lock;
    pthread_cond_t calls_done;
    int32_t calls; /* on the wire, under calls_lock */
};

/* ---- http_listen.c ---- */

/* Binds and listens. `address` is HOST:PORT with a name, an IPv4 or a bracketed IPv6 address; the
 * bound one is written to `bound`. FAILED_PRECONDITION in use, INVALID_ARGUMENT not an address. */
tb_status http_listen(const char *address, int *listener, bool *ipv6,
                      char bound[TD_CONFIG_TEXT_SIZE], tb_error *);
void http_peer_print(const struct sockaddr *, char peer[HTTP_PEER_SIZE]);
bool http_peer_loopback(const struct sockaddr *);

/* ---- http_guard.c ---- */

tb_status http_guard_start(td_http *, tb_error *);
void http_guard_stop(td_http *);
/* Callbacks of libmicrohttpd: whether to accept, and the life of a connection. */
enum MHD_Result http_accept(void *http, const struct sockaddr *, socklen_t);
void http_connection_notify(void *http, struct MHD_Connection *, void **context,
                            enum MHD_ConnectionNotificationCode);
/* The request has to arrive within the configuration's time from now; or has arrived. */
void http_receive_begin(http_connection *);
/* Bytes of the body of the arriving request; 0 with its headers. */
void http_receive_body(http_connection *, size_t bytes);
void http_receive_end(http_connection *);
/* The caller of a call that is being dispatched was admitted. */
void http_guard_admitted(http_exchange *);
/* A call is on the wire, or off it again: the guard watches its deadline and its client. */
void http_guard_watch(http_exchange *);
void http_guard_forget(http_exchange *);
/* Has the guard look now. */
void http_guard_wake(td_http *);
/* Cancels every call on the wire: the server is stopping. */
void http_guard_cancel_all(td_http *);

/* ---- http_request.c ---- */

/* Callbacks of libmicrohttpd: a request arrives; it is over. */
enum MHD_Result http_handle(void *http, struct MHD_Connection *, const char *url,
                            const char *method, const char *version, const char *upload,
                            size_t *upload_size, void **context);
void http_completed(void *http, struct MHD_Connection *, void **context,
                    enum MHD_RequestTerminationCode);
/* Value of a header, or NULL. */
const char *http_header(const http_exchange *, const char *name);

/* ---- http_call.c ---- */

extern const td_call_transport HTTP_TRANSPORT;
/* Admits, decodes and dispatches a request that has arrived. False: a worker does so, and the
 * connection is suspended meanwhile. */
bool http_call_begin(http_exchange *);
/* Resumes the connection if its answer can go on. Under the exchange's lock. */
void http_call_wake(http_exchange *);
/* Whether the answer can be queued: under the exchange's lock. */
bool http_call_answerable(const http_exchange *);
void http_call_drop_items(http_exchange *);

/* ---- http_answer.c ---- */

/* Queues the answer if it is there, else suspends the connection. */
enum MHD_Result http_call_answer(http_exchange *);
/* One header of an answer; a list of them ends with a NULL name. */
typedef struct http_pair {
    const char *name, *value;
} http_pair;

/* Queues a body; takes it over, also on failure. Adds the common headers, such as CORS. */
enum MHD_Result http_answer_bytes(http_exchange *, int http_status, const char *type,
                                  tb_bytes *body, const http_pair *headers);
/* The same, packed if the client takes gzip and it is worth it. */
enum MHD_Result http_answer_packed(http_exchange *, const char *type, const tb_bytes *body,
                                   const http_pair *headers);
/* Queues exchange->refusal. */
enum MHD_Result http_answer_refusal(http_exchange *);

/* ---- http_error.c ---- */

/* Appends a Connect error: {"code": ..., "message": ..., "details": [...]}. */
tb_status http_error_connect(tb_bytes *text, tb_status, const tb_error *, double retry_after);
/* Appends the JSON of Connect's EndStreamResponse. */
tb_status http_error_end_stream(tb_bytes *text, tb_status, const tb_error *, double retry_after);
/* Appends a block of gRPC-Web trailers. */
tb_status http_error_trailers(tb_bytes *text, tb_status, const tb_error *, double retry_after);
/* Whole seconds for Retry-After. */
void http_retry_text(double retry_after, char text[16]);

/* ---- http_pages.c ---- */

enum MHD_Result http_answer_page(http_exchange *);

/* ---- http_dashboard.c ---- */

/* The file at this path, or NULL. */
const http_file *http_file_find(const char *url);
/* Queues exchange->file. */
enum MHD_Result http_answer_file(http_exchange *);

/* ---- http_cors.c ---- */

/* Adds Access-Control headers, as far as the configuration allows the request's origin. */
void http_cors(const http_exchange *, struct MHD_Response *);
/* Whether a request with this Origin may be served at all. */
bool http_origin_allowed(const http_exchange *);

#endif
