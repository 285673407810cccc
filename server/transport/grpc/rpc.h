/* The gRPC transport. Everything of gRPC's C core stays behind this header, in rpc_grpc*.c. */
#ifndef SERVER_RPC_H
#define SERVER_RPC_H

#include "call/auth.h"
#include "call/call.h"
#include "ops/daemon.h"
#include "schedule/device.h"

/* Binds config->grpc_address and, if given, the Unix socket; port 0 picks a free one.
 * FAILED_PRECONDITION with the address if it is in use. Serves once td_rpc_start was called. */
tb_status td_rpc_create(td_server *, td_rpc **, tb_error *);
tb_status td_rpc_start(td_rpc *, tb_error *);
/* "127.0.0.1:50051": where it listens. */
const char *td_rpc_address(const td_rpc *);
/* Notifies health watchers; called when readiness changes. */
void td_rpc_set_serving(td_rpc *, bool serving);
/* Refuses new calls, waits until running calls end or `seconds` have passed, then cancels them. */
void td_rpc_shutdown(td_rpc *, double seconds);
void td_rpc_destroy(td_rpc *);

#endif
