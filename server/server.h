/* The daemon's life: making, running and ending it. Its parts are listed in ops/daemon.h. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "call/auth.h"
#include "call/call.h"
#include "ops/daemon.h"
#include "schedule/device.h"

/* ---- server.c: making, running and ending it, in this order ---- */

/* Makes every part and binds the ports, so that a port in use is reported at once. Copies the
 * configuration, which was checked. The caller must have blocked the signals that it waits for,
 * since threads start here. */
tb_status td_server_create(const td_config *, td_server **, tb_error *);
/* Serves, warms up, and is ready. */
tb_status td_server_start(td_server *, tb_error *);
/* Called once a second by the main thread: follows the store's keys, and reports a change of
 * readiness to health watchers and the log. */
void td_server_look_after(td_server *);
/* Where it listens, "-" where it does not. */
const char *td_server_grpc_address(const td_server *);
const char *td_server_http_address(const td_server *);
/* Readiness false, no new work, work in flight finishes, sessions are checkpointed: all within the
 * configuration's drain_seconds; then transports shut down. False if work was left undone. */
bool td_server_drain(td_server *);
void td_server_destroy(td_server *); /* NULL is fine; drains nothing */
/* Takes over options that can change while the daemon runs: keys, limits, log level, origins. The
 * configuration was checked; changes of other options are logged and wait for a start. */
tb_status td_server_reload(td_server *, const td_config *, tb_error *);

#endif
