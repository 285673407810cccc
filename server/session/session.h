/* Sessions: worlds that live between calls, under a lease.
 *
 * A session belongs to one owner and holds one or more worlds of one scene with their warm contact
 * caches. Jobs on a session run one after the other. Its lease is renewed by every call that names
 * it; the reaper ends it when the lease runs out. Checkpoints in the store bring it back after a
 * crash or a pause, from its last acknowledged snapshot or checkpoint, whichever is newer. */
#ifndef SERVER_SESSION_H
#define SERVER_SESSION_H

#include "db/db.h"
#include "call/auth.h"
#include "call/call.h"
#include "ops/daemon.h"
#include "schedule/device.h"
#include "schedule/job.h"

tb_status td_sessions_create(td_server *, td_sessions **, tb_error *);
/* Brings back the sessions that the store says were open; their worlds load at first use. */
tb_status td_sessions_recover(td_sessions *, tb_error *);
int32_t td_sessions_count(const td_sessions *);
/* Ends sessions with an expired lease by the server's clock; the reaper thread also does this. */
void td_sessions_reap(td_sessions *);
/* Checkpoints every session that changed since its last checkpoint and waits until each is durable;
 * sends DRAINED to watchers. */
tb_status td_sessions_checkpoint_all(td_sessions *, double seconds, tb_error *);
void td_sessions_destroy(td_sessions *);

/* 32 hexadecimal digits and back. */
void td_id_print(const db_id *, char text[33]);
bool td_id_parse(const char *text, db_id *);
db_id td_id_random(void);
/* The range of ids or digests of `size` bytes that begin with a text of TD_ID_PREFIX_DIGITS or more
 * lower-case hexadecimal digits. False for any other text. */
enum { TD_ID_PREFIX_DIGITS = 4 };
bool td_id_range(const char *text, void *lower, void *upper, size_t size);

#endif
