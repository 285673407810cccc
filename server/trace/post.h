/* HTTP/1.1 POST requests to one address, in plain text or over TLS, each on a connection of its own.
 *
 * A thread of its own sends a few requests a second, so a connection a request costs nothing that
 * matters, and no request meets a connection that the other side has just closed. */
#ifndef SERVER_POST_H
#define SERVER_POST_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "tribo.h"

typedef struct td_post td_post;

typedef struct td_post_options {
    const char *url;         /* td_url_parse takes it */
    const char *path;        /* appended to the path of the URL */
    const char *type;        /* Content-Type */
    const char *headers;     /* further lines, each with "\r\n" at its end */
    const char *ca;          /* PEM file of authorities that the server's certificate needs; "": the
                              * machine's */
    const atomic_bool *stop; /* true ends a request as UNAVAILABLE; borrowed */
} td_post_options;

/* INVALID_ARGUMENT for a wrong URL, NOT_FOUND for authorities that cannot be read. */
tb_status td_post_create(const td_post_options *, td_post **, tb_error *);
void td_post_destroy(td_post *);

enum { TD_POST_ANSWER_BYTES = 8192 };

typedef struct td_post_answer {
    int status;         /* of HTTP */
    double retry_after; /* s, as the server asks; 0: it does not */
    size_t size;        /* of the body; 0 where it is larger than the array */
    uint8_t body[TD_POST_ANSWER_BYTES];
} td_post_answer;

/* Sends the body and waits for the answer, for `seconds` at most (looking up the name of the host
 * may take longer). UNAVAILABLE where none comes. */
tb_status td_post_send(td_post *, const void *body, size_t size, double seconds, td_post_answer *,
                       tb_error *);

#endif
