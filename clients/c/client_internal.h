/* Internals of the C client: its connections and calls, and the functions that its files share.
 *
 *   client.c    clients: reconnecting, unary calls, repeating
 *   stream.c    streams;  upload.c  assets and models;  status.c  errors as the library's
 *   connect.c   sockets and TLS handshakes
 *   line.c      one connection: reading, writing, choice of the driving thread
 *   session.c   HTTP/2 events of a connection (callbacks of libnghttp2)
 *   exchange.c  one call on a connection
 *   coding.c    the small grammars of gRPC: percent coding, base64, timeouts
 *
 * Threads. The calling thread sends the request and reads its response: no hop to a thread of the
 * library. If several threads wait on one connection, one of them drives it: it polls, reads for
 * all and wakes the threads with complete responses; when its own response is complete, another
 * thread drives. A thread of the client checks the connection once a second, for pings and for
 * GOAWAY while no call runs. */
#ifndef CLIENT_INTERNAL_H
#define CLIENT_INTERNAL_H

#include <gnutls/gnutls.h>
#include <nghttp2/nghttp2.h>
#include <pthread.h>

#include "base/file.h"
#include "tribo_client.h"

typedef struct tbc_line tbc_line;
typedef struct tbc_exchange tbc_exchange;

/* Codes of gRPC (https://grpc.io/docs/guides/status-codes). */
enum {
    TBC_OK = 0,
    TBC_CANCELLED = 1,
    TBC_UNKNOWN = 2,
    TBC_DEADLINE_EXCEEDED = 4,
    TBC_PERMISSION_DENIED = 7,
    TBC_RESOURCE_EXHAUSTED = 8,
    TBC_UNIMPLEMENTED = 12,
    TBC_INTERNAL = 13,
    TBC_UNAVAILABLE = 14,
    TBC_UNAUTHENTICATED = 16
};

enum { TBC_PREFIX_BYTES = 5, TBC_REASON_SIZE = 256, TBC_TEXT_SIZE = 32 };

int64_t tbc_now_ns(void);
/* In `seconds` from now; 0: never. */
int64_t tbc_deadline_ns(double seconds);

/* ---- coding.c ---- */

/* Appends a grpc-message decoded: %41 is A; an invalid code is copied unchanged. */
bool tbc_percent_decode(tb_bytes *to, const uint8_t *text, size_t size);
/* Appends the bytes of base64, padded or not; false if the text is not base64. */
bool tbc_base64_decode(tb_bytes *to, const uint8_t *text, size_t size);
/* grpc-timeout, at most 8 digits and a unit, rounded up. */
void tbc_timeout_print(int64_t nanoseconds, char text[TBC_TEXT_SIZE]);

/* ---- connect.c ---- */

/* Server address and credentials; borrowed strings. */
typedef struct tbc_target {
    const char *address;
    char host[TBC_REASON_SIZE];                   /* for :authority and the server's certificate */
    gnutls_certificate_credentials_t credentials; /* NULL: plain text */
    size_t message_bytes;
    const char *traceparent, *tracestate; /* headers of every call; NULL: none */
} tbc_target;

/* Connects until the deadline; the socket is non-blocking. -1 with the reason. */
int tbc_dial(const char *address, int64_t deadline_ns, char reason[TBC_REASON_SIZE]);
/* "HOST:PORT" without the port, "localhost" for a Unix socket. */
void tbc_host_of(const char *address, char host[TBC_REASON_SIZE]);
/* Makes TLS over the socket until the deadline; NULL with the reason. */
gnutls_session_t tbc_secure(int socket, const tbc_target *, int64_t deadline_ns,
                            char reason[TBC_REASON_SIZE]);

/* ---- line.c ---- */

struct tbc_line {
    tbc_target target;
    int socket, wake;
    gnutls_session_t tls;
    tbc_line *next; /* of the client */

    pthread_mutex_t lock; /* for the rest */
    nghttp2_session *session;
    bool driven;  /* a thread polls and reads */
    bool settled; /* the server's settings came */
    bool going;   /* takes no new calls: the server sent GOAWAY */
    bool failed;  /* every call on it has ended */
    char reason[TBC_REASON_SIZE];
    tb_bytes unsent;
    size_t unsent_at;
    tbc_exchange *exchanges;
    int count; /* of exchanges, and of threads that are about to begin one */
    bool pinged;
    bool spins;         /* waits may poll: there are idle processors */
    int64_t average_ns; /* of waits for answers to unary calls */
    int64_t heard_ns, pinged_ns;
};

/* Connects and waits for the server's settings. NULL with the reason. */
tbc_line *tbc_line_open(const tbc_target *, int64_t deadline_ns, char reason[TBC_REASON_SIZE]);
void tbc_line_free(tbc_line *);
/* Whether a new call may begin here. */
bool tbc_line_usable(tbc_line *);
/* Reads without waiting, and keeps the connection alive: about once a second. */
void tbc_line_tick(tbc_line *);

/* Callers of the functions below hold the line's lock. */

/* Writes libnghttp2's pending bytes until the socket would block. */
void tbc_line_flush(tbc_line *);
/* Reads the bytes that have arrived. */
void tbc_line_receive(tbc_line *);
/* Makes the driver poll again, because another thread changed its events. */
void tbc_line_kick(tbc_line *);
/* Ends every call as UNAVAILABLE. */
void tbc_line_fail(tbc_line *, const char *reason);
/* Waits, driving the line if no other thread does, until the exchange is `done`, has ended, or its
 * deadline passes, which ends it. */
void tbc_line_wait(tbc_line *, tbc_exchange *, bool (*done)(const tbc_exchange *));

/* ---- session.c ---- */

bool tbc_session_make(tbc_line *);

/* ---- exchange.c ---- */

struct tbc_exchange {
    tbc_line *line;
    tbc_exchange *next, *previous; /* of the line */
    int32_t stream;
    int64_t deadline_ns;
    pthread_cond_t changed;
    bool waiting;
    int64_t average_ns; /* of waits for a message; begins with the line's */

    const uint8_t *out; /* borrowed from the sender while it waits */
    size_t out_size, out_at;
    uint8_t prefix[TBC_PREFIX_BYTES];
    size_t prefix_at;
    bool sending, half_closed, deferred;

    tb_bytes in;
    size_t in_at, unconsumed;

    bool ended;
    bool unseen; /* the server has certainly not started this call */
    int http_status;
    int code; /* gRPC's; -1: not yet */
    tb_bytes message, details;
    char pushback[TBC_TEXT_SIZE];
};

/* Begins a call; NULL if the line takes none any more, or without memory. `encoding` (may be NULL)
 * is sent as grpc-encoding. */
tbc_exchange *tbc_exchange_open(tbc_line *, const char *path, const char *authorization,
                                const char *encoding, int64_t deadline_ns);
/* Sends a message; waits until the connection took it. False if the call has ended. */
bool tbc_exchange_send(tbc_exchange *, const void *bytes, size_t size, bool compressed);
/* The same for the last message, without waiting: `bytes` must stay until the call has ended. */
void tbc_exchange_send_last(tbc_exchange *, const void *bytes, size_t size);
bool tbc_exchange_half_close(tbc_exchange *);
/* The next message; false at the end of the call. `message` must be empty. */
bool tbc_exchange_receive(tbc_exchange *, tb_bytes *message);
/* Waits for the end; gives gRPC's code. */
int tbc_exchange_finish(tbc_exchange *);
void tbc_exchange_cancel(tbc_exchange *);
/* Cancels an unfinished exchange, and frees it. */
void tbc_exchange_close(tbc_exchange *);

/* For session.c, under the line's lock. */
void tbc_exchange_end(tbc_exchange *, int code, const char *message);
void tbc_exchange_wake(tbc_exchange *);
/* Whether a whole message is there; ends the call if one is too large. */
bool tbc_exchange_has_message(const tbc_exchange *);

/* ---- client.c ---- */

struct tbc_client {
    char *address, *authorization;  /* "Bearer ...", or NULL */
    char *traceparent, *tracestate; /* or NULL */
    tbc_target target;
    double timeout;
    int32_t attempts;
    pthread_t keeper;
    bool keeping;
    pthread_mutex_t connecting; /* one thread connects; taken before `lock` */
    pthread_mutex_t lock;       /* for the rest */
    pthread_cond_t stopped;
    bool stop;
    tbc_line *lines; /* the first takes new calls */
};

/* Begins a call on a connection that is there, or made now. NULL with the error. */
tbc_exchange *tbc_begin(tbc_client *, const char *method, int64_t deadline_ns, tb_error *);
/* A message packed, malloc'ed; NULL with the error. */
uint8_t *tbc_pack(const tbc_client *, const ProtobufCMessage *, size_t *size, tb_error *);
tb_status tbc_unpack(const tb_bytes *, const ProtobufCMessageDescriptor *, ProtobufCMessage **,
                     tb_error *);

/* ---- status.c ---- */

/* Fills the error from status, message and details; *retry_after (may be NULL) in s, or < 0. */
tb_status tbc_end_status(const tbc_client *, const tbc_exchange *, const char *method,
                         double *retry_after, tb_error *);

#endif
