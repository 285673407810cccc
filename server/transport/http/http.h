/* The HTTP transport: the Connect protocol and gRPC-Web for the methods of call.h, and /livez,
 * /readyz, /metrics and the dashboard. libmicrohttpd stays behind this header, in http*.c. */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include "call/auth.h"
#include "call/call.h"
#include "ops/daemon.h"
#include "schedule/device.h"

/* Binds config->http_address; port 0 picks a free one. FAILED_PRECONDITION if it is in use. */
tb_status td_http_create(td_server *, td_http **, tb_error *);
tb_status td_http_start(td_http *, tb_error *);
const char *td_http_address(const td_http *); /* "127.0.0.1:8080" */
/* As td_rpc_shutdown. /livez and /readyz answer until the end. */
void td_http_shutdown(td_http *, double seconds);
void td_http_destroy(td_http *);

#endif
