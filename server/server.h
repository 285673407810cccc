/* The daemon's parts, and who may use which.
 *
 * One `td_server` is made by main, lives as long as the process and is handed to every call. There
 * is no other shared state. Each part has a header of its own; all of their functions may be called
 * from any thread unless they say otherwise. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdatomic.h>
#include <stdint.h>

#include "auth.h"
#include "call.h"
#include "clock.h"
#include "config.h"
#include "log.h"
#include "metrics.h"
#include "workers.h"

typedef struct td_catalog td_catalog;     /* catalog.h: assets and compiled scenes */
typedef struct td_sessions td_sessions;   /* session.h */
typedef struct td_scheduler td_scheduler; /* scheduler.h */
typedef struct td_rpc td_rpc;             /* rpc.h */
typedef struct td_http td_http;           /* http.h */
struct db;                                /* ../db/db.h */

struct td_server {
    const td_config *config; /* replaced as a whole by SIGHUP; read it once per call */
    td_clock clock;
    td_log *log;
    td_metrics *metrics;
    td_auth *auth;
    td_workers *workers; /* for work that takes milliseconds: compiling, solving, hashing */
    struct db *db;
    td_catalog *catalog;
    td_scheduler *scheduler;
    td_sessions *sessions;
    td_rpc *rpc;
    td_http *http;
    int64_t start_time_us; /* UTC */
    atomic_bool ready;     /* readiness: warm and not draining */
    atomic_bool draining;  /* no new sessions, no new jobs */
    atomic_bool alive;     /* liveness: false once a device is lost */
};

/* ---- server.c: making, running and ending it, in this order ---- */

tb_status td_server_create(const td_config *, td_server **, tb_error *);
/* Opens the ports and prints the ready line. */
tb_status td_server_start(td_server *, tb_error *);
/* Readiness false, no new work, work in flight finishes, sessions are checkpointed: all within the
 * configuration's drain_seconds; then transports shut down. */
void td_server_drain(td_server *);
void td_server_destroy(td_server *);
/* Takes over what can change while running: keys, limits, log level, origins. */
tb_status td_server_reload(td_server *, tb_error *);

#endif
