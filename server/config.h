/* The daemon's configuration: an INI file, then the environment (TRIBOD_SECTION_NAME), then flags;
 * the later one wins. Every option is listed once, in TD_CONFIG_LIST of config.c, which drives
 * parsing, checks, --print-config and --help. */
#ifndef SERVER_CONFIG_H
#define SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tribo.h"

enum { TD_CONFIG_TEXT_SIZE = 256 };

typedef struct td_config {
    /* [server] */
    char grpc_address[TD_CONFIG_TEXT_SIZE]; /* "127.0.0.1:7410"; "" switches gRPC over TCP off */
    char grpc_socket[TD_CONFIG_TEXT_SIZE];  /* path of a Unix socket; "": none */
    char http_address[TD_CONFIG_TEXT_SIZE]; /* "127.0.0.1:7480"; "" switches HTTP off */
    char data[TD_CONFIG_TEXT_SIZE];         /* folder of the store; "" keeps it in memory */
    int32_t threads;                        /* of the CPU device; 0: all processors */
    double drain_seconds;
    /* [tls] PEM files; "" for both: plain text */
    char tls_certificate[TD_CONFIG_TEXT_SIZE], tls_key[TD_CONFIG_TEXT_SIZE];
    char tls_client_ca[TD_CONFIG_TEXT_SIZE]; /* given: clients must show a certificate of it */
    /* [log] */
    tb_log_level log_level;
    bool log_json;
    /* [limits] */
    uint64_t message_bytes; /* largest request */
    uint64_t chunk_bytes;   /* larger answers of streams are split into messages of this size */
    uint64_t asset_bytes;   /* largest asset */
    uint64_t unpack_bytes;  /* memory that one unpacked request may take */
    int32_t nesting;        /* of messages and JSON */
    int32_t sessions, sessions_per_client, worlds_per_session;
    int32_t queue_length; /* requests waiting for a device */
    int32_t steps_per_request;
    int32_t grasps_per_request; /* poses times perturbations */
    int32_t http_connections, http_connections_per_address;
    uint64_t http_header_bytes;
    double http_timeout_seconds; /* for a request to arrive; idle connections */
    double calls_per_second;     /* of a key or an anonymous address; 0: unlimited */
    /* [sessions] */
    double session_ttl_seconds, session_maximum_ttl_seconds;
    double checkpoint_seconds; /* sessions that changed are checkpointed this often; 0: never */
    /* [scheduler] */
    int32_t maximum_queue_delay_us; /* how long a request may wait for others to join its batch */
    int32_t maximum_batch_worlds;
    double warm_up_seconds; /* at most, before ready */
    /* [auth] */
    int32_t anonymous;     /* td_scope of anonymous callers on loopback */
    bool anonymous_remote; /* the same scope elsewhere too */
    /* [http] */
    char cors_origins[TD_CONFIG_TEXT_SIZE]; /* comma-separated, "*", or "": none */
    /* [store] */
    double retain_days; /* of runs, summaries and events; 0: for ever */
    uint64_t retain_snapshots_bytes;
    int32_t store_queue_length;
} td_config;

td_config td_config_defaults(void);
/* Reads a file; INVALID_ARGUMENT names file, line and option. */
tb_status td_config_read(td_config *, const char *path, tb_error *);
/* Reads text, for tests and fuzzing; `name` stands for the file in messages. */
tb_status td_config_parse(td_config *, const char *text, size_t size, const char *name, tb_error *);
tb_status td_config_environment(td_config *, char *const *environment, tb_error *);
/* Checks what one option alone cannot know: files exist, addresses parse, limits fit together. */
tb_status td_config_check(const td_config *, tb_error *);
/* As an INI file that td_config_read takes. */
void td_config_print(const td_config *, FILE *);

#endif
