/* Every option of the configuration, listed once: section, name, field of td_config, kind, default,
 * smallest and largest value, effect of a reload (LIVE: changes; FIXED: needs a start), and one
 * line of help. For config.c alone. */
#ifndef SERVER_CONFIG_OPTIONS_H
#define SERVER_CONFIG_OPTIONS_H

#define KIB 1024.0
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

#define TD_CONFIG_LIST(X)                                                                          \
    X(server, grpc_address, grpc_address, TEXT, "127.0.0.1:7410", 0, 0, FIXED,                     \
      "address of gRPC; port 0 picks a free one; empty: not over TCP")                             \
    X(server, grpc_socket, grpc_socket, TEXT, "", 0, 0, FIXED,                                     \
      "path of a Unix socket for gRPC; empty: none")                                               \
    X(server, http_address, http_address, TEXT, "127.0.0.1:7480", 0, 0, FIXED,                     \
      "address of HTTP; port 0 picks a free one; empty: no HTTP")                                  \
    X(server, data, data, TEXT, "tribod-data", 0, 0, FIXED,                                        \
      "folder of the store; empty: in memory, lost at the end of the process")                     \
    X(server, threads, threads, INTEGER, "0", 0, 4096, FIXED,                                      \
      "threads that simulate; 0: one for each processor")                                          \
    X(server, backend, backend, BACKEND, "cpu", 0, 0, FIXED,                                       \
      "devices that step: cpu; gpu: cards; auto: both if there are cards, by size and "            \
      "load")                                                                                      \
    X(server, drain_seconds, drain_seconds, SECONDS, "20", 0, 86400, LIVE,                         \
      "s; time for work in flight to finish after SIGTERM")                                        \
    X(tls, certificate, tls_certificate, TEXT, "", 0, 0, FIXED,                                    \
      "PEM file with the certificate chain, for gRPC and HTTP; empty: plain text")                 \
    X(tls, key, tls_key, TEXT, "", 0, 0, FIXED, "PEM file with the private key")                   \
    X(tls, client_ca, tls_client_ca, TEXT, "", 0, 0, FIXED,                                        \
      "PEM file with authorities; if given, clients must show a certificate that one "             \
      "of them signed")                                                                            \
    X(log, level, log_level, LEVEL, "info", 0, 0, LIVE, "debug, info, warning or error")           \
    X(log, format, log_json, FORMAT, "text", 0, 0, FIXED, "text or json, one line an event")       \
    X(limits, message_bytes, message_bytes, BYTES, "64 MiB", 4 * KIB, 1 * GIB, FIXED,              \
      "largest request")                                                                           \
    X(limits, chunk_bytes, chunk_bytes, BYTES, "1 MiB", 4 * KIB, 64 * MIB, LIVE,                   \
      "answers of streams that are larger are sent in pieces of this size")                        \
    X(limits, asset_bytes, asset_bytes, BYTES, "256 MiB", 4 * KIB, 1 * GIB, LIVE,                  \
      "largest file that can be uploaded")                                                         \
    X(limits, kept_array_bytes, kept_array_bytes, BYTES, "1 GiB", 0, 1024 * GIB, LIVE,             \
      "arrays that calls of functions keep for later ones, half of it for one client; the "        \
      "longest unused go for new ones")                                                            \
    X(limits, unpack_bytes, unpack_bytes, BYTES, "128 MiB", 64 * KIB, 64 * GIB, LIVE,              \
      "memory that one unpacked request may take")                                                 \
    X(limits, nesting, nesting, INTEGER, "64", 8, 1000, LIVE,                                      \
      "levels of messages or JSON in a request")                                                   \
    X(limits, sessions, sessions, INTEGER, "4096", 1, 1000000, LIVE, "sessions open at once")      \
    X(limits, sessions_per_client, sessions_per_client, INTEGER, "2500", 1, 1000000, LIVE,         \
      "of these, sessions of one client; a key may have a quota of its own")                       \
    X(limits, worlds_per_session, worlds_per_session, INTEGER, "1000000", 1, 1000000, LIVE,        \
      "worlds of one session, besides what memory allows")                                         \
    X(limits, queue_length, queue_length, INTEGER, "1024", 1, 1000000, FIXED,                      \
      "requests that wait for a device; further ones are refused")                                 \
    X(limits, queue_wait_seconds, queue_wait_seconds, SECONDS, "0.25", 0, 86400, LIVE,             \
      "s; a step that would wait longer for its turn is refused at once; for four "                \
      "times this after a refusal, one that would wait longer than 1.5 times its own "             \
      "work; 0: only the queue's length counts")                                                   \
    X(limits, steps_per_request, steps_per_request, INTEGER, "1000000", 1, 1000000000, LIVE,       \
      "steps that one request may ask for")                                                        \
    X(limits, grasps_per_request, grasps_per_request, INTEGER, "1000000", 1, 1000000000, LIVE,     \
      "grasps times perturbations that one request may ask for")                                   \
    X(limits, memory_bytes, memory_bytes, BYTES, "0", 0, 1024 * 1024 * GIB, LIVE,                  \
      "memory of the process; beyond it new sessions and uploads are refused; 0: three quarters "  \
      "of the machine's or the control group's")                                                   \
    X(limits, client_memory_bytes, client_memory_bytes, BYTES, "0", 0, 1024 * 1024 * GIB, LIVE,    \
      "of this, memory of the sessions of one client, as estimated; 0: no limit of its own")       \
    X(limits, session_memory_bytes, session_memory_bytes, BYTES, "0", 0, 1024 * 1024 * GIB, LIVE,  \
      "memory of one session, as estimated; 0: no limit of its own")                               \
    X(limits, uploads, uploads, INTEGER, "256", 1, 1000000, FIXED,                                 \
      "scenes and files that wait to be parsed; further ones are refused")                         \
    X(limits, uploads_per_client, uploads_per_client, INTEGER, "64", 1, 1000000, FIXED,            \
      "of these, uploads of one key or of one address without a key")                              \
    X(limits, upload_seconds, upload_seconds, SECONDS, "60", 0.01, 86400, LIVE,                    \
      "s; time that parsing and compiling one scene may take")                                     \
    X(limits, upload_memory_bytes, upload_memory_bytes, BYTES, "1 GiB", 1 * MIB, 64 * GIB, LIVE,   \
      "memory that parsing and compiling one scene may take")                                      \
    X(limits, http_connections, http_connections, INTEGER, "1024", 1, 1000000, FIXED,              \
      "HTTP connections at once")                                                                  \
    X(limits, http_connections_per_address, http_connections_per_address, INTEGER, "256", 1,       \
      1000000, FIXED, "of these, connections from one address")                                    \
    X(limits, http_header_bytes, http_header_bytes, BYTES, "32 KiB", 1 * KIB, 1 * MIB, FIXED,      \
      "memory for the headers of one connection")                                                  \
    X(limits, http_timeout_seconds, http_timeout_seconds, SECONDS, "30", 0.1, 86400, FIXED,        \
      "s; a connection that sends nothing for this long is closed")                                \
    X(limits, grpc_connections, grpc_connections, INTEGER, "1024", 1, 1000000, FIXED,              \
      "gRPC connections at once")                                                                  \
    X(limits, grpc_connections_per_address, grpc_connections_per_address, INTEGER, "512", 1,       \
      1000000, FIXED, "of these, connections from one address")                                    \
    X(limits, grpc_streams, grpc_streams, INTEGER, "1000", 1, 100000, FIXED,                       \
      "calls at once on one gRPC connection")                                                      \
    X(limits, grpc_header_bytes, grpc_header_bytes, BYTES, "16 KiB", 1 * KIB, 1 * MIB, FIXED,      \
      "headers of one gRPC call, each counted with 32 bytes more")                                 \
    X(limits, grpc_timeout_seconds, grpc_timeout_seconds, SECONDS, "20", 0.1, 86400, FIXED,        \
      "s; for the preface of a gRPC connection, and between two parts of a request")               \
    X(limits, grpc_keepalive_seconds, grpc_keepalive_seconds, SECONDS, "30", 1, 86400, FIXED,      \
      "s; a silent gRPC client is pinged after this time")                                         \
    X(limits, grpc_idle_seconds, grpc_idle_seconds, SECONDS, "3600", 0, 1e9, FIXED,                \
      "s; a gRPC connection without a call for this long is asked to close; 0: never")             \
    X(limits, grpc_age_seconds, grpc_age_seconds, SECONDS, "0", 0, 1e9, FIXED,                     \
      "s; a gRPC connection of this age is asked to close after its calls; 0: never")              \
    X(limits, calls_per_second, calls_per_second, NUMBER, "0", 0, 1e9, LIVE,                       \
      "1/s; calls of one key or of one address without a key; 0: unlimited")                       \
    X(sessions, ttl_seconds, session_ttl_seconds, SECONDS, "600", 1, 1e9, LIVE,                    \
      "s; lease of a session that names none; each call renews it")                                \
    X(sessions, maximum_ttl_seconds, session_maximum_ttl_seconds, SECONDS, "86400", 1, 1e9, LIVE,  \
      "s; longest lease that a client may ask for")                                                \
    X(sessions, checkpoint_seconds, checkpoint_seconds, SECONDS, "10", 0, 1e9, LIVE,               \
      "s; changed sessions are written to the store this often; 0: never")                         \
    X(scheduler, maximum_queue_delay_us, maximum_queue_delay_us, INTEGER, "0", 0, 1000000, LIVE,   \
      "us; longest wait of a request for others that share its batch")                             \
    X(scheduler, maximum_batch_worlds, maximum_batch_worlds, INTEGER, "4096", 1, 1000000, LIVE,    \
      "worlds of one batch")                                                                       \
    X(scheduler, warm_up_seconds, warm_up_seconds, SECONDS, "5", 0, 600, FIXED,                    \
      "s; longest warm-up before the first request")                                               \
    X(scheduler, gpu_worlds, gpu_worlds, INTEGER, "0", 0, 1000000, LIVE,                           \
      "backend = auto: a session or job with at least this many worlds gets a card, "              \
      "unless meshes collide in it; 0: measured at the start and while serving")                   \
    X(scheduler, gpu_bodies, gpu_bodies, INTEGER, "2000", 1, 1000000000, LIVE,                     \
      "backend = auto: one world with at least this many bodies gets a card")                      \
    X(auth, anonymous, anonymous, SCOPE, "run", 0, 0, LIVE,                                        \
      "scope of callers without a key on loopback: none, read, run or admin")                      \
    X(auth, anonymous_remote, anonymous_remote, SWITCH, "no", 0, 0, LIVE,                          \
      "yes or no: the same scope for callers from elsewhere")                                      \
    X(auth, server_info, server_info, SCOPE, "none", 0, 0, LIVE,                                   \
      "scope that callers need to see devices, limits and load by GetServerInfo; other "           \
      "callers learn only that the server is there: none, read, run or admin")                     \
    X(auth, high_priority, high_priority, SCOPE, "admin", 0, 0, LIVE,                              \
      "scope that calls of PRIORITY_HIGH need: none, read, run or admin")                          \
    X(http, cors_origins, cors_origins, TEXT, "", 0, 0, LIVE,                                      \
      "origins whose pages may call, comma-separated; *: all; empty: none")                        \
    X(http, forwarding_headers, forwarding_headers, TEXT,                                          \
      "Forwarded, X-Forwarded-For, X-Forwarded-Host, X-Real-IP, Via, CF-Connecting-IP, "           \
      "True-Client-IP, X-Client-IP, Fly-Client-IP, Fastly-Client-IP",                              \
      0, 0, LIVE, "headers that proxies add: a caller with one of them is not on loopback")        \
    X(http, behind_proxy, behind_proxy, SWITCH, "no", 0, 0, LIVE,                                  \
      "yes or no: a proxy forwards to this server, so no caller counts as loopback")               \
    X(store, retain_days, retain_days, NUMBER, "90", 0, 1e6, FIXED,                                \
      "days that runs with their steps and events, unused assets and scenes are kept; "            \
      "0: without end")                                                                            \
    X(store, retain_snapshots_bytes, retain_snapshots_bytes, BYTES, "4 GiB", 0, 1024 * 1024 * GIB, \
      FIXED, "transient and automatic snapshots beyond this are deleted, the oldest first")        \
    X(store, session_snapshots, session_snapshots, INTEGER, "1000", 0, 1000000, FIXED,             \
      "snapshots that an open session keeps; the oldest are deleted for new ones; 0: "             \
      "no bound")                                                                                  \
    X(store, session_snapshots_bytes, session_snapshots_bytes, BYTES, "1 GiB", 0,                  \
      1024 * 1024 * GIB, FIXED,                                                                    \
      "bytes of snapshots that an open session keeps; the newest stays whatever its size; 0: no "  \
      "bound")                                                                                     \
    X(store, retain_jobs_bytes, retain_jobs_bytes, BYTES, "4 GiB", 0, 1024 * 1024 * GIB, FIXED,    \
      "results of ended grasp jobs beyond this: the oldest jobs are deleted; 0: no "               \
      "bound")                                                                                     \
    X(store, retain_recordings_bytes, retain_recordings_bytes, BYTES, "4 GiB", 0,                  \
      1024 * 1024 * GIB, FIXED, "recordings of runs beyond this: the oldest are deleted")          \
    X(store, retain_trajectories_bytes, retain_trajectories_bytes, BYTES, "4 GiB", 0,              \
      1024 * 1024 * GIB, FIXED,                                                                    \
      "trajectories of grasp jobs beyond this: the oldest are deleted; 0: no bound")               \
    X(store, retain_unused_bytes, retain_unused_bytes, BYTES, "4 GiB", 0, 1024 * 1024 * GIB,       \
      FIXED, "unused assets and scenes beyond this are deleted an hour after their last use")      \
    X(store, queue_length, store_queue_length, INTEGER, "4096", 16, 1000000, FIXED,                \
      "writes that wait; beyond it step summaries are dropped and counted")                        \
    X(fleet, replica, fleet_replica, TEXT, "", 0, 0, FIXED,                                        \
      "number of this daemon among the replicas of a fleet, or a name that ends in it, such as "   \
      "tribod-2; empty: no fleet")                                                                 \
    X(fleet, addresses, fleet_addresses, TEXT, "", 0, 0, FIXED,                                    \
      "gRPC addresses of the replicas, one by number, comma-separated, or a pattern "              \
      "with {} for the number; clients whose session is elsewhere receive its address")            \
    X(fleet, outbox, fleet_outbox, TEXT, "", 0, 0, FIXED,                                          \
      "PostgreSQL that gets the runs and benchmarks of all daemons of a fleet: "                   \
      "postgresql://USER@HOST/DATABASE, the password by PGPASSWORD or PGPASSFILE; empty: none")    \
    X(fleet, node, fleet_node, TEXT, "", 0, 0, FIXED,                                              \
      "name of this daemon in the fleet's database; empty: the host's name")                       \
    X(otlp, endpoint, otlp_endpoint, TEXT, "", 0, 0, FIXED,                                        \
      "collector that gets the spans of calls by OTLP/HTTP, such as http://localhost:4318; "       \
      "/v1/traces is appended; headers by OTEL_EXPORTER_OTLP_HEADERS; empty: none")                \
    X(otlp, ca, otlp_ca, TEXT, "", 0, 0, FIXED,                                                    \
      "PEM file with the authorities of an https endpoint; empty: the machine's")                  \
    X(otlp, service, otlp_service, TEXT, "tribod", 0, 0, FIXED, "service.name of the spans")       \
    X(otlp, root_ratio, otlp_root_ratio, NUMBER, "1", 0, 1, FIXED,                                 \
      "share of the calls without traceparent that begin a trace; a call with one follows its "    \
      "caller")                                                                                    \
    X(otlp, queue_spans, otlp_queue_spans, INTEGER, "2048", 1, 1000000, FIXED,                     \
      "spans that wait for the collector; further ones are dropped and counted")

#endif
