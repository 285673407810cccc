/* Client of tribod for C: calls over gRPC with the messages that protoc-c makes of proto/tribo/v1.
 *
 *     tbc_client *client;
 *     tbc_options options = tbc_options_defaults();
 *     options.address = "127.0.0.1:7410";
 *     if (tbc_connect(&options, &client, &error) != TB_OK) ...
 *
 *     Tribo__V1__StepRequest request = TRIBO__V1__STEP_REQUEST__INIT;
 *     request.session_id = session, request.steps = 10;
 *     Tribo__V1__StepResponse *answer = NULL;
 *     status = TBC_CALL(client, "tribo.v1.Simulation/Step", &request, step_response, &answer,
 *                       &error);
 *     ...
 *     tbc_free(answer);
 *
 * Several threads may use a client at once. On a stream, one thread may send while another
 * receives. Errors carry the server's status, its message, and the field, file and line at fault.
 * Like gRPC, the library aborts the process when a small allocation fails. */
#ifndef TRIBO_CLIENT_H
#define TRIBO_CLIENT_H

#include <protobuf-c/protobuf-c.h>

#include "tribo.h"

typedef struct tbc_client tbc_client;
typedef struct tbc_stream tbc_stream;

typedef struct tbc_options {
    const char *address;    /* "HOST:PORT" or "unix:/path"; all strings are copied */
    const char *api_key;    /* NULL: none */
    const char *root_pem;   /* TLS: trusted certificates as PEM text; NULL: plain text */
    const char *client_pem; /* mutual TLS: certificate chain and key as PEM text; NULL: none */
    const char *client_key;
    double timeout;         /* s, for calls that do not set their own; 0: none */
    double connect_timeout; /* s, longest wait of tbc_connect for the server */
    int32_t attempts;       /* attempts at a call that is safe to repeat; 1: no repeat */
    size_t message_bytes;   /* largest message */
    /* W3C trace context sent with every call, as the headers' values; NULL: none */
    const char *traceparent, *tracestate;
} tbc_options;

tbc_options tbc_options_defaults(void);

/* UNAVAILABLE names the address if no server answers there. */
tb_status tbc_connect(const tbc_options *, tbc_client **, tb_error *);
void tbc_disconnect(tbc_client *); /* after all calls and streams have ended; NULL is fine */

/* One request, one response. `*response` is the caller's and freed by tbc_free, NULL after an
 * error; the descriptor defines its type. timeout in s, for all attempts together; 0: the client's.
 * Repeats an attempt only if that is safe: the server refused it unprocessed (a full queue, a
 * stopping server), or the method only reads. */
tb_status tbc_call(tbc_client *, const char *method, const ProtobufCMessage *request,
                   const ProtobufCMessageDescriptor *descriptor, double timeout,
                   ProtobufCMessage **response, tb_error *);
#define TBC_CALL(client, method, request, type, response, error)                                   \
    tbc_call(client, method, &(request)->base, &tribo__v1__##type##__descriptor, 0,                \
             (ProtobufCMessage **)(void *)(response), error)
void tbc_free(void *message); /* NULL is fine */

/* Opens a call that streams in either direction or both. */
tb_status tbc_stream_open(tbc_client *, const char *method,
                          const ProtobufCMessageDescriptor *response_descriptor, double timeout,
                          tbc_stream **, tb_error *);
/* Sends one message; waits until the transport accepts it. UNAVAILABLE if the call has ended:
 * receive returns the reason. */
tb_status tbc_stream_send(tbc_stream *, const ProtobufCMessage *request, tb_error *);
/* Ends the sending half of the stream. */
tb_status tbc_stream_half_close(tbc_stream *, tb_error *);
/* The next message, freed by tbc_free; *response NULL at the end of a stream that ended well. */
tb_status tbc_stream_receive(tbc_stream *, ProtobufCMessage **response, tb_error *);
/* Stops the call on the server; receive then gives CANCELLED. May come from another thread, but not
 * while the stream is closed. */
void tbc_stream_cancel(tbc_stream *);
void tbc_stream_close(tbc_stream *); /* cancels an unfinished stream; NULL is fine */

/* ---- common first steps of a program ---- */

/* Uploads a file in pieces. */
tb_status tbc_put_asset(tbc_client *, const char *name, const void *bytes, size_t size,
                        char sha256[65], tb_error *);

/* Files to upload with a model: reference as the importer will ask for it, and path on disk. */
typedef struct tbc_files {
    int32_t count;
    char **references; /* count */
    char (*sha256)[65];
} tbc_files;

/* Uploads a MJCF, URDF, OBJ or STL file and every file it refers to. The library's own importer
 * reads the model to find them. package_path: ':'-separated roots of package:// addresses, searched
 * in addition to the model's folder and its parents; NULL: none. Free by tbc_files_free. */
tb_status tbc_upload_model(tbc_client *, const char *path, const char *package_path,
                           char sha256[65], tbc_files *, tb_error *);
void tbc_files_free(tbc_files *);

/* The same, then CreateScene. */
tb_status tbc_load_scene(tbc_client *, const char *path, const char *package_path,
                         char scene_id[65], tb_error *);
/* The same with the importer's options. The client sends package_path, density, fixed_base,
 * balance_inertia, overlaps and overlap_keyframe; the daemon's limits and files and this client's
 * log apply. */
tb_status tbc_load_scene_as(tbc_client *, const char *path, const tb_import_options *,
                            char scene_id[65], tb_error *);

#endif
