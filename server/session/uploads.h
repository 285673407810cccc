/* Uploads: requests that are parsed, compiled or hashed at length, on a pool of their own (pool.h),
 * so that reads and steps never wait behind them.
 *
 * An upload works within a budget of time and memory (base/budget.h), ends when its caller leaves,
 * and ends when a drain has used up a quarter of its time. The pool has fewer threads than the store
 * has connections for reading, so that uploads never hold all of these. */
#ifndef SERVER_UPLOADS_H
#define SERVER_UPLOADS_H

#include "base/budget.h"
#include "session/catalog.h"
#include "call/pool.h"
#include "call/auth.h"
#include "call/call.h"
#include "ops/daemon.h"
#include "schedule/device.h"

/* The pool of a server with this configuration. */
tb_status td_uploads_create(const td_config *, td_pool **, tb_error *);
/* Runs `work` on the pool; otherwise as td_offload. A call that is cancelled or past its deadline
 * ends instead. */
void td_upload(td_call *, td_request *, void (*work)(td_call *, td_request *));

/* The budget of one upload; bind it around parsing. It checks the call and the drain. */
tb_budget td_upload_budget(td_call *);
/* The same for work that no call waits for: it ends with the server's drain alone. */
tb_budget td_upload_budget_of_server(td_server *);
/* Why parsing failed: where the budget ended, that is the cause; UNAVAILABLE in a drain. */
tb_status td_upload_failure(td_call *, const tb_budget *, tb_status, tb_error *);

/* Runs `work` where a scene of the catalog is wanted: on this worker if the scene is in memory, else on
 * the pool, because it must be compiled from the store. */
void td_upload_for_scene(td_call *, td_request *, const char *scene_id,
                         void (*work)(td_call *, td_request *));
/* The scene, compiled within the call's budget if need be. */
tb_status td_upload_scene(td_call *, const char *scene_id, const td_scene **, tb_error *);

/* Account name in a queue: the key's name, or the address of a caller without a key. */
void td_caller_key(const td_call *, char key[TD_POOL_CALLER_SIZE]);

#endif
