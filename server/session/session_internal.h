/* Declarations shared by the files of the sessions.
 *
 *   session.c          the table: identity, owner, lease, quota, the end of a session
 *   session_reaper.c   actions by the clock, and at a drain
 *   session_turn.c     one job at a time on each session; loading its worlds when they are needed
 *   session_store.c    rows, checkpoints; session_recover.c: recovery, and the end
 *   session_watch.c    watchers: the latest state, and events
 *
 * Turn. A job on a session's worlds has the session's turn, and returns it by td_session_leave.
 * Members marked (turn) below belong to the job with the turn. Locks: the table's, then a
 * session's; no thread holds either while it calls a function that could wait or call back. */
#ifndef SERVER_SESSION_INTERNAL_H
#define SERVER_SESSION_INTERNAL_H

#include <pthread.h>

#include "session/catalog.h"
#include "schedule/scheduler.h"
#include "session/session.h"
#include "wire/recording.h"
#include "wire/wire.h"

enum { TD_LABEL_BYTES = 200, TD_SESSION_WAITING = 64, TD_OPTIONS_BYTES = 200 };

/* The snapshot that a fork falls back to until it has its own checkpoint. It belongs to a hidden
 * session row, which ends when the last fork no longer needs it. */
typedef struct td_origin {
    db_id id;
    atomic_int references;
} td_origin;

typedef struct td_watcher td_watcher;

/* Contents of a run's row, and of a summary of the last second. (turn) */
typedef struct td_run_account {
    int64_t start_time_us, steps, compute_ns;
    tb_certificate certificate;
    bool known; /* false: recovered, the store's row has not been read yet */
    int32_t summary_steps;
    int64_t summary_ns;
    tb_certificate summary;
} td_run_account;

struct td_session {
    td_sessions *all;
    atomic_int references;

    /* never change */
    db_id id;
    char text[33], scene_id[TD_SHA256_TEXT], owner[TD_CALLER_NAME_SIZE], label[TD_LABEL_BYTES + 1];
    int32_t worlds, on_disconnect, keyframe; /* keyframe -1: the reference pose */
    double ttl_seconds;
    uint64_t pace; /* of its scene and options: pace.h */
    tb_step_options options;
    unsigned char packed_options[TD_OPTIONS_BYTES]; /* StepOptions, packed */
    uint32_t packed_options_size;
    int64_t create_time_us;

    td_device *_Atomic device;   /* that steps it; changes (turn) where its card is lost */
    atomic_llong expire_time_us; /* of the steady clock */
    atomic_llong steps;          /* as published */
    _Atomic double time;         /* s, as published */
    _Atomic double rate;         /* steps of every world a second, over the last summary */
    atomic_llong stepped_ns;     /* when it last stepped */
    atomic_llong listed_bytes;   /* memory booked for it, as published */
    atomic_bool recorded;        /* it has a recording, as published */
    atomic_bool stop;            /* ended: work on it stops between steps */
    atomic_bool loaded;          /* worlds are in memory */
    atomic_bool dirty;           /* changed since the last checkpoint */
    atomic_bool run_dirty;       /* the store has no row of its run yet */
    atomic_int turn_state;

    /* (turn) */
    const td_scene *scene;
    tb_state **states;     /* worlds; NULL: not loaded */
    uint64_t memory_bytes; /* booked for them */
    uint64_t device_bytes; /* of these, counted in its device's world_bytes */
    bool has_parameters;   /* a world had parameters of its own: memory is booked for them, too */
    td_call *deletion;     /* held; answered when the end is durable; NULL: no such call */
    tb_certificate *certificates;
    int64_t step_estimate_ns, changes;
    td_run_account run;
    td_recording *recording;  /* NULL: nothing is recorded */
    uint64_t recording_bytes; /* booked for it */
    td_origin *origin;
    bool keeps_evaluations; /* some of its worlds do */
    bool moved; /* it left a lost card: the store may still have to write its last checkpoint */

    /* under its mutex */
    pthread_mutex_t mutex;
    bool busy, ended;
    td_job *first, *last;
    int32_t waiting;
    char end_reason[64];
    td_watcher *watchers;
    int32_t number_of_watchers;
    atomic_int evaluation_watchers; /* those of evaluations; read without the mutex */
    bool flushing;                  /* the flush job is queued */

    /* accepted steps that have not ended: their number, and the expected time including their
     * wait */
    atomic_int open_steps;
    atomic_llong open_steps_ns, refused_ns; /* refused_ns: see td_wait_limit() */

    td_job flush;      /* of the watchers: at most one is queued */
    td_job *loading;   /* (turn) the job that waits for a worker */
    tb_error *failure; /* (turn) why its scene could not be compiled for that; NULL: it could */

    /* under the table's mutex */
    td_session *hash_next, *newer, *older;
    uint64_t sequence;
};

/* A stream to notify when the server drains. The stream removes its node from the list before it
 * finishes its call. */
typedef struct td_drain_node {
    struct td_drain_node *next, *previous;
    td_call *call;
    void (*drain)(td_call *);
} td_drain_node;

typedef struct td_owner {
    char name[TD_CALLER_NAME_SIZE];
    int32_t sessions;
} td_owner;

typedef struct td_transient td_transient;

struct td_sessions {
    td_server *server;
    pthread_mutex_t mutex;
    td_session **buckets;
    uint32_t number_of_buckets; /* a power of two */
    td_session *newest, *oldest;
    uint64_t next_sequence;
    int32_t count, reserved;
    td_owner *owners;
    int32_t number_of_owners, owner_capacity;
    td_drain_node *draining; /* under the mutex */

    /* snapshots that are kept in memory only, oldest first; under transient_mutex */
    pthread_mutex_t transient_mutex;
    td_transient *oldest_transient, *newest_transient;
    size_t transient_bytes;

    /* scratch for answers; under wires_mutex */
    pthread_mutex_t wires_mutex;
    td_wire wires[8];
    int number_of_wires;

    /* the reaper, and watchers with a due time; under reaper_mutex */
    pthread_t reaper;
    pthread_mutex_t reaper_mutex;
    pthread_cond_t reaper_wake;
    int64_t next_due_ns;
    bool ending, reaper_started;
    int64_t next_checkpoint_us;      /* of the steady clock; the reaper's */
    int64_t next_trim_ns;            /* monotonic; the reaper's */
    atomic_int watching;             /* watchers in all */
    atomic_int checkpoints;          /* queued in the store */
    atomic_int failed_checkpoints;   /* since the last round of them */
    atomic_bool checkpoints_failing; /* said in the log; until a round without failures */
    int32_t failed_rounds;           /* one after the other; the reaper's */
};

/* ---- session.c ---- */

void td_session_hold(td_session *);
void td_session_release(td_session *);
/* A new zeroed session with its constant members, held once, in no table. NULL if out of memory. */
td_session *td_session_new(td_sessions *, tb_error *);
/* Reserves `count` more sessions of a client, or RESOURCE_EXHAUSTED; returned by _unreserve or
 * consumed by _insert. */
tb_status td_sessions_reserve(td_sessions *, const td_caller *, int32_t count, tb_error *);
void td_sessions_unreserve(td_sessions *, const char *owner, int32_t count);
/* Puts a session with a reservation into the table, which holds it. */
void td_sessions_insert(td_sessions *, td_session *);
/* The same for a session recovered from the store, without a quota check. */
void td_sessions_adopt(td_sessions *, td_session *);
/* The caller's session of this id, held and its lease renewed. INVALID_ARGUMENT for a malformed id,
 * NOT_FOUND for another owner's session (except for administrators). */
tb_status td_sessions_find(td_sessions *, const td_caller *, const char *id, td_session **,
                           tb_error *);
void td_session_renew(td_session *);
/* The pace key of its steps (pace.h). */
uint64_t td_session_pace(const td_session *);
/* Where its steps are made from now on: once, when all its other options are known. */
void td_session_set_device(td_session *, td_device *);
/* Takes the session from its device's counts. */
void td_session_leave_device(td_session *);
/* Copies all requested parts of the worlds from the device at once. (turn) */
tb_status td_session_fetch(td_session *, td_wire_want, tb_error *);
/* The same of some worlds. */
tb_status td_session_fetch_worlds(td_session *, tb_state *const *states, int32_t worlds,
                                  td_wire_want, tb_error *);
/* Sets all kinematic bodies, TD_KINEMATIC_NUMBERS each in the model's order. */
enum { TD_KINEMATIC_NUMBERS = 13 };
tb_status td_session_set_kinematic(tb_state *, const double *numbers, tb_error *);
/* Adds the contacts of the wanted pairs, which exist, to a state of these worlds. False if out of
 * memory. (turn, loaded) */
bool td_session_fill_pairs(const td_session *, td_wire *, int32_t first, int32_t count,
                           const Tribo__V1__StepReturn *, Tribo__V1__State *);
/* s, of its steps. (turn, loaded) */
double td_session_dt(const td_session *);
/* Ends a session: removes it from the table, stops its job, notifies watchers, updates the store.
 * False if it had ended before. */
bool td_session_end(td_session *, Tribo__V1__SessionEvent, const char *reason);
/* The same for a DeleteSession call, which is answered once the store has it. */
void td_session_delete(td_session *, td_call *);
/* How many of these worlds make a message of about `bytes`, at least one. (turn) */
int32_t td_session_piece(tb_state *const *states, int32_t worlds, td_wire_want, uint64_t bytes);
/* Memory for one answer, and back. */
td_wire td_wire_borrow(td_sessions *);
void td_wire_return(td_sessions *, td_wire *);
/* At drain, `drain` is called once, unless the node was removed before. */
void td_drain_add(td_sessions *, td_drain_node *);
void td_drain_remove(td_sessions *, td_drain_node *);

/* ---- session_reaper.c ---- */

tb_status td_reaper_start(td_sessions *, tb_error *);
void td_reaper_stop(td_sessions *);

/* ---- session_turn.c ---- */

/* Runs the job when the turn of its session comes, at once if the turn is free. NOT_FOUND when the
 * session has ended, RESOURCE_EXHAUSTED when the queue is full; then no function of the job is
 * called. */
tb_status td_session_enter(td_job *, tb_error *);
/* Frees the request, and releases the call and the session, where the job holds them. */
void td_session_job_release(td_job *);
void td_session_leave(td_session *);
/* Worlds in the state in which the session was created. (turn) */
tb_status td_session_make_worlds(td_session *, tb_state ***, tb_error *);
void td_session_destroy_worlds(td_session *, tb_state **);
/* Books the memory of the worlds before they are made; a loaded session has booked it already.
 * RESOURCE_EXHAUSTED. (turn) */
tb_status td_session_book_memory(td_session *, tb_error *);
/* Books memory for parameters of the worlds once. (turn, loaded) */
tb_status td_session_book_parameters(td_session *, tb_error *);
/* After the worlds have gone. (turn) */
void td_session_give_memory_back(td_session *);
/* Lets others see how much is booked. (turn) */
void td_session_publish_memory(td_session *);
/* The worlds have changed: counts, publishes, marks as dirty. (turn) */
void td_session_changed(td_session *);

/* A request that is answered within one turn. `handle` answers the call; the rest is done here. */
typedef void td_session_handler(td_session *, td_call *, td_request *);
void td_session_handle(td_call *, td_request *, const char *session_id, bool needs_worlds,
                       td_session_handler *);

/* ---- session_store.c ---- */

/* All worlds as one run of bytes for the store: a table of sizes, then each world's snapshot.
 * malloc'ed; the payload (all worlds' bytes one after the other) begins at bytes + *payload. */
tb_status td_worlds_pack(td_session *, unsigned char **bytes, size_t *size, size_t *payload,
                         tb_error *);
/* Where each world lies in such bytes. DATA_LOSS if they are not; FAILED_PRECONDITION for a format
 * that this build does not read, or another number of worlds. */
tb_status td_worlds_parts(const unsigned char *bytes, size_t size, int32_t worlds,
                          const unsigned char **parts, size_t *sizes, tb_error *);
/* New worlds from snapshots; nothing changes on failure. (turn) */
tb_status td_session_restore(td_session *, const unsigned char *const *parts, const size_t *sizes,
                             tb_error *);
db_session td_session_row(const td_session *);
db_session td_origin_row(const td_session *parent, const td_origin *);
/* (turn) */
tb_status td_session_put_run(td_session *, int32_t run_status, const char *message, tb_error *);
/* The session's end and its run's, in one transaction. (turn) */
tb_status td_session_put_end(td_session *, db_done *, void *context, tb_error *);
void td_session_put_event(td_session *, const char *kind, const char *message);
/* Counts a step job in the run: how often its worlds, of these certificates, stepped. (turn) */
void td_session_account(td_session *, const tb_certificate *, int32_t worlds, int32_t steps,
                        int64_t compute_ns);
/* Begins a recording: books its bound, takes the first frame. (turn, loaded) */
tb_status td_session_start_recording(td_session *, const Tribo__V1__RecordOptions *, tb_error *);
/* Takes a frame if one is due. (turn) */
void td_session_record(td_session *);
/* Hands the recording to the store if it has changed; the run's row is there. (turn) */
void td_session_put_recording(td_session *);
/* Goes on with the recording in the store, if there is one. (turn) */
void td_session_recall_recording(td_session *);
void td_session_end_recording(td_session *);
/* Leaves a lost card: frees the worlds, which load again at their next use from the newest snapshot or
 * checkpoint, on the device that the session would get today. (turn) */
void td_session_move(td_session *);
/* The same when the turn comes; for a session that no job uses. */
void td_session_move_idle(td_session *);
/* Loads the worlds from the store. (turn) */
tb_status td_session_load(td_session *, tb_error *);
/* (turn) Its scene, within the budget of an upload. */
tb_status td_session_load_scene(td_session *, tb_error *);
/* Makes a checkpoint when the turn comes; calls `told` (may be NULL) when it is durable or was not
 * needed. */
typedef struct td_checkpoint_wait td_checkpoint_wait;
void td_session_checkpoint(td_session *, td_checkpoint_wait *told);
void td_checkpoint_begin(td_checkpoint_wait *); /* NULL is fine */
/* Counts a failed checkpoint, and logs the first one after a success. */
void td_checkpoint_failed(td_session *, const tb_error *);
void td_checkpoint_told(td_checkpoint_wait *, tb_status, const tb_error *);
/* Checkpoints, then frees the worlds, unless they change meanwhile. */
void td_session_pause(td_session *);
/* Has the row of a fork's run written. */
void td_session_write_run(td_session *);
/* Ends the session's run and rows and frees its memory. (turn, kept for good) */
void td_session_close(td_session *);
td_origin *td_origin_new(const db_id *);
void td_origin_release(td_sessions *, td_origin *);

/* ---- session_watch.c ---- */

/* Before a step: the worlds whose evaluations are watched keep them, the others do not. (turn) */
void td_session_keep_evaluations(td_session *);
/* Notifies watchers after every change. (turn) */
void td_session_publish(td_session *);
/* Before the worlds are freed: sends the latest state to each watcher that has not got it, if its
 * call's queue has space. (turn) */
void td_session_publish_last(td_session *);
/* An event for all watchers; with `last` their calls end. */
void td_session_tell(td_session *, Tribo__V1__SessionEvent, const char *message, bool last);
/* Sends due states when the turn comes. */
void td_session_flush(td_session *);
/* Sends due states to watchers that waited for their interval: from the reaper. Returns the time of
 * the next one, INT64_MAX if there is none. */
int64_t td_sessions_flush_watchers(td_sessions *, int64_t now_ns);
/* Wakes the reaper at this time at the latest. */
void td_sessions_wake_at(td_sessions *, int64_t due_ns);

/* ---- session_transients.c ---- */

/* Takes over the bytes, also on failure. Evicts the oldest snapshots if the limit is reached. */
tb_status td_transient_keep(td_sessions *, const db_id *id, const db_id *session,
                            unsigned char *bytes, size_t size, tb_error *);
/* A malloc'ed copy of the bytes, and the session it is of; false if there is none of this id. */
bool td_transient_find(td_sessions *, const db_id *id, db_id *session, unsigned char **bytes,
                       size_t *size);
/* Snapshots in memory of a session that has ended go; of all with a zeroed id. */
void td_transients_drop(td_sessions *, const db_id *session);

#endif
