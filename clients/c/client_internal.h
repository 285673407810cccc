/* What the files of the C client share. */
#ifndef CLIENT_INTERNAL_H
#define CLIENT_INTERNAL_H

#include <grpc/grpc.h>
#include <pthread.h>

#include "tribo_client.h"

struct tbc_client {
    grpc_channel *channel;
    char *address;
    bool has_key;
    grpc_slice authorization; /* "Bearer ..."; counted, since the transport may keep it longer */
    double timeout;
    int32_t attempts;
    pthread_mutex_t lock;
    grpc_completion_queue *idle_queues[16]; /* made once, used by one call after the other */
    int32_t number_of_idle_queues;
};

/* A completion queue of its own for one call. */
grpc_completion_queue *tbc_queue_take(tbc_client *);
void tbc_queue_give(tbc_client *, grpc_completion_queue *);

/* In `seconds` from now; 0: never. */
gpr_timespec tbc_deadline(double seconds);
/* A call that has sent nothing yet. */
grpc_call *tbc_call_create(tbc_client *, const char *method, gpr_timespec deadline,
                           grpc_completion_queue *);
/* The metadata that every call sends; *count 0 or 1. */
void tbc_metadata(const tbc_client *, grpc_metadata *, size_t *count);

/* A message as a byte buffer of one slice. Like all of gRPC, it ends the process without memory. */
grpc_byte_buffer *tbc_pack(const ProtobufCMessage *);
tb_status tbc_unpack(grpc_byte_buffer *, const ProtobufCMessageDescriptor *, ProtobufCMessage **,
                     tb_error *);

/* How a call ended. */
typedef struct tbc_end {
    grpc_status_code code;
    grpc_slice message;
    grpc_metadata_array trailing;
} tbc_end;

void tbc_end_init(tbc_end *);
/* Fills the error from status, message and details; *retry_after (may be NULL) in s, or < 0. */
tb_status tbc_end_status(const tbc_client *, const tbc_end *, const char *method,
                         double *retry_after, tb_error *);
void tbc_end_free(tbc_end *);

#endif
