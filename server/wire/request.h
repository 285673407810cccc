/* Requests: a message of a client and the bounded arena that holds all of it. [limits]
 * message_bytes, unpack_bytes and nesting of the configuration set the bounds. */
#ifndef SERVER_REQUEST_H
#define SERVER_REQUEST_H

#include <protobuf-c/protobuf-c.h>

#include "tribo.h"

typedef struct td_server td_server;

/* A request message with the bounded arena that it was unpacked into. */
typedef struct td_request {
    ProtobufCMessage *message;
    struct td_message_arena *arena;
} td_request;

void td_request_free(td_request *); /* NULL is fine */

/* Checks the message's size and nesting, and unpacks it into a fresh bounded arena.
 * INVALID_ARGUMENT if it is malformed, RESOURCE_EXHAUSTED if it would take too much memory. */
tb_status td_request_unpack(const td_server *, const ProtobufCMessageDescriptor *,
                            const uint8_t *bytes, size_t size, td_request **, tb_error *);
/* An empty request of this type in an arena of its own: for the JSON transcoder, which fills it by
 * td_request_allocate. */
tb_status td_request_create(const td_server *, const ProtobufCMessageDescriptor *, td_request **,
                            tb_error *);
void *td_request_allocate(td_request *, size_t size); /* zeroed; NULL beyond the arena's bound */

/* The page size that a list request asks for: 0 means 100. INVALID_ARGUMENT outside of 0..1000. */
tb_status td_page_size(int32_t asked, int32_t *size, tb_error *);

#endif
