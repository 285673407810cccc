/* The daemon's configuration: an INI file, then the environment (TRIBOD_SECTION_NAME), then flags;
 * later sources override earlier ones. TD_CONFIG_LIST of config_options.h lists every option once
 * and drives defaults, parsing, ranges, reloading and --print-config. An option has the name of its
 * field, without the part that repeats the section ([tls] key is tls_key). */
#ifndef SERVER_CONFIG_H
#define SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tribo.h"

/* size of a text option; a line of a file holds less: TD_CONFIG_TEXT_LIMIT */
enum { TD_CONFIG_TEXT_SIZE = 256, TD_CONFIG_TEXT_LIMIT = 160 };

/* Permissions of a caller; each scope includes the scopes before it. */
typedef enum td_scope { TD_SCOPE_NONE, TD_SCOPE_READ, TD_SCOPE_RUN, TD_SCOPE_ADMIN } td_scope;

typedef struct td_config {
    /* [server] */
    char grpc_address[TD_CONFIG_TEXT_SIZE]; /* "127.0.0.1:7410"; "" switches gRPC over TCP off */
    char grpc_socket[TD_CONFIG_TEXT_SIZE];  /* path of a Unix socket; "": none */
    char http_address[TD_CONFIG_TEXT_SIZE]; /* "127.0.0.1:7480"; "" switches HTTP off */
    char data[TD_CONFIG_TEXT_SIZE];         /* folder of the store; "" keeps it in memory */
    int32_t threads;                        /* of the CPU device; 0: all processors */
    tb_backend_choice backend;              /* which devices step sessions */
    double drain_seconds;
    /* [tls] PEM files; "" for both: plain text */
    char tls_certificate[TD_CONFIG_TEXT_SIZE], tls_key[TD_CONFIG_TEXT_SIZE];
    char tls_client_ca[TD_CONFIG_TEXT_SIZE]; /* given: clients must show a certificate of it */
    /* [log] */
    tb_log_level log_level;
    bool log_json;
    /* [limits] */
    uint64_t message_bytes;    /* largest request */
    uint64_t chunk_bytes;      /* larger answers of streams are split into messages of this size */
    uint64_t asset_bytes;      /* largest asset */
    uint64_t kept_array_bytes; /* arrays that calls of functions keep */
    uint64_t unpack_bytes;     /* memory that one unpacked request may take */
    int32_t nesting;           /* of messages and JSON */
    int32_t sessions, sessions_per_client, worlds_per_session;
    int32_t queue_length;      /* requests waiting for a device */
    double queue_wait_seconds; /* longest estimated wait of a call for its turn; 0: no bound */
    int32_t steps_per_request;
    int32_t grasps_per_request; /* poses times perturbations */
    uint64_t memory_bytes;      /* of the process; 0: three quarters of the machine's */
    uint64_t client_memory_bytes, session_memory_bytes; /* 0: only the process's limit counts */
    int32_t uploads, uploads_per_client;                /* that wait to be parsed */
    double upload_seconds;                              /* for parsing one */
    uint64_t upload_memory_bytes;
    int32_t http_connections, http_connections_per_address;
    uint64_t http_header_bytes;
    double http_timeout_seconds; /* for a request to arrive; idle connections */
    int32_t grpc_connections, grpc_connections_per_address, grpc_streams;
    uint64_t grpc_header_bytes;
    double grpc_timeout_seconds, grpc_keepalive_seconds, grpc_idle_seconds, grpc_age_seconds;
    double calls_per_second; /* of a key or an anonymous address; 0: unlimited */
    /* [sessions] */
    double session_ttl_seconds, session_maximum_ttl_seconds;
    double checkpoint_seconds; /* sessions that changed are checkpointed this often; 0: never */
    /* [scheduler] */
    int32_t maximum_queue_delay_us; /* how long a request may wait for others to join its batch */
    int32_t maximum_batch_worlds;
    double warm_up_seconds; /* at most, before ready */
    /* with backend = auto, a session goes to a card from this many worlds (0: as measured by the
     * warm-up) or bodies of one world on */
    int32_t gpu_worlds, gpu_bodies;
    /* [auth] */
    int32_t anonymous;     /* td_scope of anonymous callers on loopback; "none", "read", ... */
    bool anonymous_remote; /* the same scope elsewhere too */
    int32_t server_info;   /* td_scope that sees more of GetServerInfo than the version */
    int32_t high_priority; /* td_scope that PRIORITY_HIGH asks for */
    /* [http] */
    char cors_origins[TD_CONFIG_TEXT_SIZE];       /* comma-separated, "*", or "": none */
    char forwarding_headers[TD_CONFIG_TEXT_SIZE]; /* comma-separated; see edge.h */
    bool behind_proxy;                            /* no caller counts as on loopback */
    /* [store] */
    double retain_days; /* of runs, summaries and events; 0: for ever */
    uint64_t retain_snapshots_bytes, retain_unused_bytes, retain_jobs_bytes,
        retain_recordings_bytes, retain_trajectories_bytes;
    int32_t session_snapshots; /* of an open session; 0: no bound */
    uint64_t session_snapshots_bytes;
    int32_t store_queue_length;
    /* [fleet] see replica.h; "" for both: no fleet */
    char fleet_replica[TD_CONFIG_TEXT_SIZE], fleet_addresses[TD_CONFIG_TEXT_SIZE];
    char fleet_outbox[TD_CONFIG_TEXT_SIZE]; /* URL of the fleet's database; "": none */
    char fleet_node[TD_CONFIG_TEXT_SIZE];   /* name of this daemon in it; "": the host's */
    /* [otlp] see ../trace/spans.h */
    char otlp_endpoint[TD_CONFIG_TEXT_SIZE]; /* URL of a collector; "": no spans */
    char otlp_ca[TD_CONFIG_TEXT_SIZE];       /* PEM file; "": the machine's authorities */
    char otlp_service[TD_CONFIG_TEXT_SIZE];  /* service.name of the spans */
    double otlp_root_ratio;                  /* of the calls without traceparent */
    int32_t otlp_queue_spans;
} td_config;

td_config td_config_defaults(void);
/* Sets one option from text. INVALID_ARGUMENT begins with `source` (a flag, a variable) and names
 * the value; then nothing changed. */
tb_status td_config_set(td_config *, const char *section, const char *option, const char *value,
                        const char *source, tb_error *);
/* Reads a file or a pipe; INVALID_ARGUMENT names file, line, option and value. */
tb_status td_config_read(td_config *, const char *path, tb_error *);
/* Whether the path can be read a second time; a pipe cannot. */
bool td_config_again(const char *path);
/* Parses text, for tests and fuzzing; messages use `name` as the file's name. */
tb_status td_config_parse(td_config *, const char *text, size_t size, const char *name, tb_error *);
/* Takes the TRIBOD_SECTION_NAME of a NULL-terminated list of "NAME=value". INVALID_ARGUMENT for a
 * TRIBOD_ variable that is no option; names without TRIBOD_ are ignored. */
tb_status td_config_environment(td_config *, char *const *environment, tb_error *);
/* Checks relations beyond a single option: files exist, addresses parse, limits are consistent. */
tb_status td_config_check(const td_config *, tb_error *);
/* As an INI file that td_config_read takes. */
void td_config_print(const td_config *, FILE *);

/* Whether every option has the same value. */
bool td_config_equal(const td_config *, const td_config *);
/* For a reload: resets options that only a start can change to the values of `running`; calls
 * `kept` (may be NULL) with "section.option" of each that differed. */
void td_config_keep_fixed(td_config *, const td_config *running,
                          void (*kept)(void *context, const char *option), void *context);

/* Splits "host:port" or "[::1]:port"; all interfaces are 0.0.0.0 or [::]. `host` holds at least
 * TD_CONFIG_TEXT_SIZE bytes. False for any other form. */
bool td_address_parse(const char *address, char *host, uint16_t *port);

/* Parts of "http://HOST:PORT/PATH" or "https://...". */
typedef struct td_url {
    bool tls;
    char host[TD_CONFIG_TEXT_SIZE]; /* without the brackets of an IPv6 address */
    uint16_t port;
    char path[TD_CONFIG_TEXT_SIZE]; /* "" or "/...", without a slash at the end */
} td_url;

/* Without a port it is the scheme's. False for any other form: user names, queries and fragments are
 * none of an address that is configured. */
bool td_url_parse(const char *url, td_url *);

#endif
