/* Reports if the daemon accepts calls that cost computation. */
#ifndef SERVER_READINESS_H
#define SERVER_READINESS_H

#include "ops/daemon.h"

/* True when the daemon is warm, does not drain, and can write its store; else *why is the
 * reason. */
bool td_server_is_ready(td_server *, tb_error *why);

#endif
