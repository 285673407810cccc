/* Runs handlers on workers. Handlers that may wait for the disk or run for milliseconds use a
 * worker. */
#ifndef SERVER_OFFLOAD_H
#define SERVER_OFFLOAD_H

#include "call/auth.h"
#include "call/call.h"
#include "ops/daemon.h"

/* Runs `work` on a worker, which answers the call (now or later) and owns the request. The worker
 * holds the call until `work` returns. With a full queue the call fails with RESOURCE_EXHAUSTED and
 * the request is freed. */
void td_offload(td_call *, td_request *, void (*work)(td_call *, td_request *));

/* A call's state where `cancelled` may look for it while `message` still makes it. After setting
 * it, `message` looks at call->gone once more: one of the two sees the other. */
static inline void td_call_set_state(td_call *call, void *state)
{
    __atomic_store_n(&call->state, state, __ATOMIC_SEQ_CST);
}

static inline void *td_call_state(td_call *call)
{
    return __atomic_load_n(&call->state, __ATOMIC_SEQ_CST);
}

#endif
