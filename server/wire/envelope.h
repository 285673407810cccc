/* Frames of the Connect and gRPC-Web protocols: a byte of flags, a big-endian length, a message.
 * Sources: https://connectrpc.com/docs/protocol and gRPC's PROTOCOL-WEB.md. */
#ifndef SERVER_HTTP_ENVELOPE_H
#define SERVER_HTTP_ENVELOPE_H

#include "base/file.h"

enum {
    HTTP_ENVELOPE_BYTES = 5,
    HTTP_FLAG_COMPRESSED = 0x01,
    HTTP_FLAG_END_STREAM = 0x02, /* Connect: the message is an EndStreamResponse */
    HTTP_FLAG_TRAILERS = 0x80,   /* gRPC-Web: the message is a block of trailers */
};

/* The one message of a request that has one; borrows from the body. */
typedef struct http_envelope {
    const unsigned char *bytes;
    size_t size;
    bool compressed;
} http_envelope;

/* Takes a body of exactly one enveloped message apart. INVALID_ARGUMENT for none, for more than
 * one, for one that is cut off, and for flags that a request may not have. */
tb_status http_envelope_read(const unsigned char *body, size_t size, http_envelope *, tb_error *);

/* Writes the five bytes before a message; false if it is too long for them. */
bool http_envelope_write(unsigned char header[HTTP_ENVELOPE_BYTES], unsigned flags, size_t size);

/* Decodes a gRPC-Web text body in place: base64, padded, possibly in several padded pieces.
 * INVALID_ARGUMENT with the offset of the first invalid byte. */
tb_status http_text_decode(tb_bytes *body, tb_error *);
/* Appends base64 with padding. */
tb_status http_text_encode(tb_bytes *text, const void *bytes, size_t size);

/* Milliseconds of Connect-Timeout-Ms, at most 10 digits; false if it is none. */
bool http_timeout_connect(const char *text, int64_t *nanoseconds);
/* grpc-timeout: at most 8 digits and a unit of H, M, S, m, u or n. */
bool http_timeout_grpc(const char *text, int64_t *nanoseconds);

/* Appends a grpc-message: every byte outside printable ASCII is percent-encoded. */
tb_status http_percent_encode(tb_bytes *text, const char *message);

#endif
