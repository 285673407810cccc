/* Watchers of a session, for the handler of Watch (simulation_watch.c). */
#ifndef SERVER_SESSION_WATCH_H
#define SERVER_SESSION_WATCH_H

#include "session/session_internal.h"

/* One Watch call; its state, freed with it. */
struct td_watcher {
    td_watcher *next;
    td_call *call; /* held while it is listed */
    td_session *session;
    td_wire_want want;
    bool certificates;
    int64_t interval_ns;
    int32_t *worlds; /* number_of_worlds, ascending; NULL: all */
    int32_t number_of_worlds;

    /* under the session's mutex */
    int64_t last_ns;                /* when it got a state */
    uint64_t unsent;                /* states since then */
    Tribo__V1__SessionEvent missed; /* an event that did not fit; repeated ones count once */
    bool listed;
};

/* Chooses its worlds. INVALID_ARGUMENT if they are not ascending worlds of the session, or if evaluations
 * are wanted that it cannot have. */
tb_status td_watcher_choose(td_watcher *, const int32_t *worlds, size_t count, tb_error *);
/* Lists it and has the present state sent. NOT_FOUND if the session has ended. */
tb_status td_watcher_add(td_watcher *, tb_error *);
void td_watcher_remove(td_watcher *);
void td_watcher_writable(td_watcher *);

#endif
