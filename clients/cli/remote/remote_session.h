/* Worlds stepped by a daemon as if they were stepped here.
 *
 * The daemon compiles the same model (the digests must agree) and steps; after each portion its
 * worlds' snapshots are restored into the states here, bit for bit. So everything that reads a
 * state, recordings and reports for two, works with a daemon as without. */
#ifndef CLI_REMOTE_SESSION_H
#define CLI_REMOTE_SESSION_H

#include "remote/remote.h"
#include "tribo/v1/common.pb-c.h"

typedef struct remote_session remote_session;

typedef struct remote_step {
    const tb_step_options *options; /* backend and device name this machine's devices: not sent */
    const char *device;             /* of the daemon; "": it chooses */
    int32_t worlds;
    int32_t keyframe;                /* -1: the reference pose */
    const tb_import_options *import; /* how the daemon reads the model */
} remote_step;

/* Uploads the model at `path` and opens a session. FAILED_PRECONDITION if the daemon makes another
 * model of it than `model`. */
tb_status remote_session_open(const remote_options *, const char *path, const tb_model *model,
                              const remote_step *, remote_session **, tb_error *);
/* Steps all worlds under the controls that the states hold, and brings the states up to date.
 * `certificates` has an entry for each world. */
tb_status remote_session_step(remote_session *, tb_state *const *worlds, int32_t steps,
                              tb_certificate *certificates, tb_error *);
/* A certificate as the library has it. */
void remote_read_certificate(const Tribo__V1__Certificate *from, tb_certificate *to);
void remote_session_close(remote_session *); /* deletes the session; NULL is fine */

#endif
