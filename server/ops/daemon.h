/* The daemon's parts, by pointer: the one struct that every call can reach.
 *
 * main makes one `td_server`, which lives as long as the process and is passed to every call. There
 * is no other shared state. Each part has its own header; its functions may be called from any
 * thread unless the header says otherwise. Parts from other folders are incomplete types here, so
 * that this header includes only ops/. */
#ifndef SERVER_DAEMON_H
#define SERVER_DAEMON_H

#include <stdatomic.h>
#include <stdint.h>

#include "ops/clock.h"
#include "ops/config.h"
#include "ops/device_record.h"
#include "ops/log.h"
#include "ops/metrics.h"
#include "ops/workers.h"

typedef struct td_server td_server;
typedef struct td_auth td_auth;             /* auth.h */
typedef struct td_catalog td_catalog;       /* catalog.h: assets and compiled scenes */
typedef struct td_sessions td_sessions;     /* session.h */
typedef struct td_grasp_jobs td_grasp_jobs; /* grasp_jobs.h */
typedef struct td_paces td_paces;           /* pace.h */
typedef struct td_scheduler td_scheduler;   /* scheduler.h */
typedef struct td_rpc td_rpc;               /* rpc.h */
typedef struct td_http td_http;             /* http.h */
typedef struct td_pool td_pool;             /* pool.h */
typedef struct td_programs td_programs;     /* programs.h */
typedef struct td_arrays td_arrays;         /* programs.h */
typedef struct td_memory td_memory;         /* memory.h */
typedef struct td_spans td_spans;           /* spans.h */
struct db;                                  /* ../db/db.h */
struct db_fleet;                            /* ../db/fleet/fleet.h */

struct td_server {
    /* Replaced as a whole by SIGHUP; read it once per call. Old ones stay until the end. */
    const td_config *_Atomic config;
    td_clock clock;
    td_log *log;
    td_metrics *metrics;
    td_spans *spans; /* NULL without [otlp] endpoint */
    td_auth *auth;
    td_device devices[TD_DEVICES]; /* the processors last */
    int32_t number_of_devices;
    td_paces *paces;     /* NULL where there is nothing to choose between */
    td_workers *workers; /* for work that takes milliseconds: reads, sessions, solving */
    td_pool *uploads;    /* for parsing, compiling and hashing: uploads.h */
    td_memory *memory;
    struct db *db;
    struct db_fleet *fleet; /* NULL without [fleet] outbox */
    td_catalog *catalog;
    td_sessions *sessions;
    td_grasp_jobs *grasp_jobs;
    td_programs *programs;
    td_arrays *arrays; /* that calls of functions keep */
    td_rpc *rpc;
    td_http *http;
    struct td_server_private *own; /* of server.c */
    int64_t start_time_us;         /* UTC */
    atomic_bool ready;             /* readiness: warm and not draining */
    atomic_bool unsaved;           /* a drain could not save all sessions */
    atomic_bool draining;          /* no new sessions, no new jobs */
    atomic_bool alive;             /* liveness: false once the last card is lost */
    atomic_int solving;            /* workers that solve problem files just now */
    atomic_llong uploads_end_ns;   /* monotonic; in a drain, when uploads are cancelled */
};

#endif
