/* The daemon's parts, and who may use which.
 *
 * One `td_server` is made by main, lives as long as the process and is handed to every call. There
 * is no other shared state. Each part has a header of its own; all of their functions may be called
 * from any thread unless they say otherwise. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdatomic.h>
#include <stdint.h>

#include "call/auth.h"
#include "call/call.h"
#include "ops/clock.h"
#include "ops/config.h"
#include "schedule/device.h"
#include "ops/log.h"
#include "ops/metrics.h"
#include "ops/workers.h"

typedef struct td_catalog td_catalog;     /* catalog.h: assets and compiled scenes */
typedef struct td_sessions td_sessions;   /* session.h */
typedef struct td_paces td_paces;         /* pace.h */
typedef struct td_scheduler td_scheduler; /* scheduler.h */
typedef struct td_rpc td_rpc;             /* rpc.h */
typedef struct td_http td_http;           /* http.h */
typedef struct td_pool td_pool;           /* pool.h */
typedef struct td_memory td_memory;       /* memory.h */
struct db;                                /* ../db/db.h */

struct td_server {
    /* Replaced as a whole by SIGHUP; read it once per call. Old ones stay until the end. */
    const td_config *_Atomic config;
    td_clock clock;
    td_log *log;
    td_metrics *metrics;
    td_auth *auth;
    td_device devices[TD_DEVICES]; /* the processors last */
    int32_t number_of_devices;
    td_paces *paces;     /* NULL where there is nothing to choose between */
    td_workers *workers; /* for work that takes milliseconds: reads, sessions, solving */
    td_pool *uploads;    /* for parsing, compiling and hashing: uploads.h */
    td_memory *memory;
    struct db *db;
    td_catalog *catalog;
    td_sessions *sessions;
    td_rpc *rpc;
    td_http *http;
    struct td_server_private *own; /* of server.c */
    int64_t start_time_us;         /* UTC */
    atomic_bool ready;             /* readiness: warm and not draining */
    atomic_bool unsaved;           /* a drain could not save all sessions */
    atomic_bool draining;          /* no new sessions, no new jobs */
    atomic_bool alive;             /* liveness: false once a device is lost */
    atomic_int solving;            /* workers that solve problem files just now */
    atomic_llong uploads_end_ns;   /* monotonic; in a drain, when uploads are cancelled */
};

/* ---- server.c: making, running and ending it, in this order ---- */

/* Makes every part and binds the ports, so that one in use is told at once. Copies the
 * configuration, which was checked. Signals that the caller waits for must be blocked before, since
 * threads start here. */
tb_status td_server_create(const td_config *, td_server **, tb_error *);
/* Serves, warms up, and is ready. */
tb_status td_server_start(td_server *, tb_error *);
/* Whether it takes work: warm, not draining, and its store can be written; *why it does not. */
bool td_server_is_ready(td_server *, tb_error *why);
/* Once a second, from the main thread: follows the store's keys, and tells health watchers and the
 * log of a change of readiness. */
void td_server_look_after(td_server *);
/* Where it listens, "-" where it does not. */
const char *td_server_grpc_address(const td_server *);
const char *td_server_http_address(const td_server *);
/* Readiness false, no new work, work in flight finishes, sessions are checkpointed: all within the
 * configuration's drain_seconds; then transports shut down. False if work was left undone. */
bool td_server_drain(td_server *);
void td_server_destroy(td_server *); /* NULL is fine; drains nothing */
/* Takes over what can change while running: keys, limits, log level, origins. The configuration was
 * checked; what only a start can change is logged and stays. */
tb_status td_server_reload(td_server *, const td_config *, tb_error *);

/* warm_up.c: on every device, runs all that a step may need and steps a small scene in both
 * precisions, so that first answers are quick; gives up quietly after `seconds`. ABORTED if a device
 * is lost. */
tb_status td_server_warm_up(td_server *, double seconds, tb_error *);

#endif
