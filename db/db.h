/* The store: one SQLite file (WAL, STRICT tables) behind one writer thread.
 *
 * The writer commits queued writes together, every 100 jobs or 20 ms. A snapshot that a client
 * waits for is committed with synchronous = FULL before its acknowledgement. Reads run on the
 * caller's thread over a small pool of read-only connections. A full queue drops step summaries
 * first and counts them; every acknowledged write waits or is refused, never dropped.
 *
 * Identifiers are 16 bytes (db_id) or SHA-256 digests (32 bytes). Times are microseconds UTC. The
 * store copies strings that are passed in. This folder must not include wire types, transports or
 * models. */
#ifndef DB_DB_H
#define DB_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tribo.h"

typedef struct db db;

/* Connections that read side by side. */
enum { DB_READERS = 6 };

typedef struct db_id {
    uint8_t bytes[16];
} db_id;

typedef struct db_sha256 {
    uint8_t bytes[32];
} db_sha256;

typedef struct db_options {
    const char *folder; /* NULL or "": in memory */
    int32_t queue_length;
    double retain_days; /* 0: for ever */
    /* Bound on snapshots of ended sessions; retention deletes the oldest first; 0: no bound. */
    uint64_t retain_snapshots_bytes;
    /* Bounds on the snapshots of one open session, in number and bytes. A put deletes the oldest ones
     * beyond them, and every checkpoint older than the put, but never the put itself; 0: no bound. */
    int32_t session_snapshots;
    uint64_t session_snapshots_bytes;
    /* Bound on assets and scenes that no row of the store references. Retention deletes the longest
     * unused first, none within an hour of its last use; 0: no bound. */
    uint64_t retain_unused_bytes;
    uint64_t
        retain_jobs_bytes; /* bound on results of ended grasp jobs; oldest first; 0: no bound */
    uint64_t retain_recordings_bytes;   /* bound on recordings; oldest first; 0: no bound */
    uint64_t retain_trajectories_bytes; /* likewise on trajectories of grasp jobs */
    bool outbox;   /* runs and benchmarks are noted for a fleet's database: outbox.h */
    bool existing; /* NOT_FOUND where there is none, instead of a new one */
    /* Opens the store without lock, version change or mark, whether or not another process holds
     * it. For changes of a few rows such as API keys. */
    bool beside;
    void (*log)(void *context, tb_log_level, const char *message);
    void *log_context;
    /* The writer thread calls this after each commit with the commit's duration; must be quick. */
    void (*committed)(void *context, double seconds);
    void *committed_context;
} db_options;

/* Opens or creates FOLDER/tribo.db, migrates it to this version, and marks runs and sessions that
 * the last process left open. FAILED_PRECONDITION for a file of a newer version or one that another
 * process holds, DATA_LOSS for a damaged one. With a full disk the store opens for reading, and
 * writes are refused with RESOURCE_EXHAUSTED until the disk has free space. */
tb_status db_open(const db_options *, db **, tb_error *);
/* Commits queued writes, then closes. */
void db_close(db *);

typedef struct db_counters {
    int64_t queued, committed_jobs, commits, dropped_summaries, file_bytes;
    int64_t failures; /* transactions that failed as a whole */
    bool failing;     /* the last one did, or the disk is full since the start */
    double last_commit_seconds;
} db_counters;

db_counters db_count(const db *);
/* True if the store cannot be written now; *why gets the message. The writer retries every two
 * seconds. */
bool db_is_failing(db *, tb_error *why);

/* The writer thread calls this once the job's transaction is durable (or failed): exactly once for
 * each put that returned OK, never for a refused put. Must not block; may put more, not wait. */
typedef void db_done(void *context, tb_status, const tb_error *);

/* Waits until everything queued so far is committed. */
tb_status db_flush(db *, tb_error *);

/* ---- assets and scenes ---- */

typedef struct db_asset {
    db_sha256 sha256;
    char name[128];
    uint64_t size;
    int64_t create_time_us;
} db_asset;

/* Borrows `bytes` until `done` is called. A put of an existing asset counts as a use. */
tb_status db_put_asset(db *, const db_asset *, const void *bytes, db_done *, void *context,
                       tb_error *);
/* malloc'ed bytes; NOT_FOUND. */
tb_status db_get_asset(db *, const db_sha256 *, db_asset *, unsigned char **bytes, tb_error *);

typedef struct db_scene {
    db_sha256 sha256; /* of the canonical bytes */
    char name[128];
    int32_t counts[9]; /* as SceneCounts, in that order */
    uint64_t size;
    int64_t create_time_us;
} db_scene;

/* Copies the bytes. A put of an existing scene counts as a use. */
tb_status db_put_scene(db *, const db_scene *, const void *canonical_bytes, db_done *,
                       void *context, tb_error *);
tb_status db_get_scene(db *, const db_sha256 *, db_scene *, unsigned char **bytes, tb_error *);

/* Finds a scene by a range of its digest; *count: 0, 1, or 2 if there are more. */
tb_status db_find_scene(db *, const db_sha256 *lower, const db_sha256 *upper, db_sha256 *found,
                        int32_t *count, tb_error *);

/* Pages, newest first: up to `capacity` rows after `token` ("" for the first page); writes the next
 * token (64 bytes; "" at the end). Returns the number of rows in *count. */
enum { DB_TOKEN_SIZE = 64 };
tb_status db_list_assets(db *, const char *token, db_asset *, int32_t capacity, int32_t *count,
                         char next[DB_TOKEN_SIZE], tb_error *);
tb_status db_list_scenes(db *, const char *token, db_scene *, int32_t capacity, int32_t *count,
                         char next[DB_TOKEN_SIZE], tb_error *);

/* ---- sessions and snapshots ---- */

typedef struct db_session {
    db_id id;
    db_sha256 scene;
    char owner[64], label[201];
    int32_t worlds;
    double ttl_seconds;
    int32_t on_disconnect;
    unsigned char options[256]; /* the session's own bytes */
    uint32_t options_size;
    int64_t create_time_us, expire_time_us;
    bool ended; /* deleted, expired or evicted */
} db_session;

/* Inserts or updates; its scene must have been put before. An end is final: an update cannot undo
 * it. Ending an unknown session gives NOT_FOUND. */
tb_status db_put_session(db *, const db_session *, db_done *, void *context, tb_error *);
tb_status db_end_session(db *, const db_id *, const char *reason, db_done *, void *context,
                         tb_error *);
/* All sessions that have not ended: for the start after a crash. malloc'ed array. */
tb_status db_open_sessions(db *, db_session **, int32_t *count, tb_error *);

typedef enum db_snapshot_kind {
    DB_SNAPSHOT_CLIENT,    /* asked for and acknowledged: kept within the session's bounds */
    DB_SNAPSHOT_CHECKPOINT /* automatic: the newest of a session counts */
} db_snapshot_kind;

typedef struct db_snapshot {
    db_id id, session;
    db_sha256 scene;
    db_snapshot_kind kind;
    char label[201];
    int32_t worlds;
    int64_t steps;
    double time; /* s, simulated */
    uint64_t size;
    int64_t create_time_us;
} db_snapshot;

/* Takes over `bytes` (malloc'ed), also when it refuses. Durable (synchronous FULL) when `done` says
 * OK. The session must have been put before. Older checkpoints of the session go with the same
 * commit. */
tb_status db_put_snapshot(db *, const db_snapshot *, unsigned char *bytes, db_done *, void *context,
                          tb_error *);
tb_status db_get_snapshot(db *, const db_id *, db_snapshot *, unsigned char **bytes, tb_error *);
/* The newest of a session, of any kind; NOT_FOUND. */
tb_status db_latest_snapshot(db *, const db_id *session, db_snapshot *, unsigned char **bytes,
                             tb_error *);

/* ---- runs ---- */

/* Certificate as the store keeps it. */
typedef struct db_certificate {
    int32_t outcome; /* as tribo.v1.Outcome */
    int64_t step;
    double time, residual, penetration, cone_error, complementarity_error, closure_error, energy,
        energy_change;
    int64_t contacts, rows, iterations;
    char solver[16];
    uint32_t flags; /* tb_certificate_flags */
} db_certificate;

typedef struct db_run {
    db_id id;             /* of a session's run: the session's id */
    int32_t kind, status; /* as tribo.v1.RunKind, RunStatus */
    char owner[64], label[201], build[128], device[64], message[256];
    db_sha256 scene;
    const char *options_json; /* in: copied; out: malloc'ed, the caller frees; may be NULL */
    int64_t start_time_us, end_time_us, worlds, steps, compute_time_us, grasps, grasps_held;
    db_certificate certificate;
} db_run;

/* Inserts or updates by id. An update leaves kind, owner, scene and start as they were, and the
 * options where it brings none. */
tb_status db_put_run(db *, const db_run *, db_done *, void *context, tb_error *);
/* Puts the last state of a session's run and ends the session, both or neither: after a crash the
 * session is open if and only if its run is. NOT_FOUND for an unknown session. */
tb_status db_end_session_run(db *, const db_run *, const char *reason, db_done *, void *context,
                             tb_error *);
tb_status db_get_run(db *, const db_id *, db_run *, tb_error *);
/* Finds a run by a range of its id; *count: 0, 1, or 2 if there are more. */
tb_status db_find_run(db *, const db_id *lower, const db_id *upper, db_id *found, int32_t *count,
                      tb_error *);
/* Stores the recording of a run, which must have been put before, and replaces an earlier one.
 * Takes over the bytes, also on failure. */
tb_status db_put_recording(db *, const db_id *run, unsigned char *bytes, uint64_t size, db_done *,
                           void *context, tb_error *);
/* NOT_FOUND if the run has none. The caller frees the bytes. */
tb_status db_get_recording(db *, const db_id *run, unsigned char **bytes, uint64_t *size,
                           tb_error *);

typedef struct db_run_filter {
    int32_t kind;           /* 0: all */
    const db_sha256 *scene; /* NULL: all */
    const char *owner;      /* NULL: of all owners */
} db_run_filter;
tb_status db_list_runs(db *, const db_run_filter *, const char *token, db_run *, int32_t capacity,
                       int32_t *count, char next[DB_TOKEN_SIZE], tb_error *);

typedef struct db_step_summary {
    db_id run;
    int64_t step, time_us;
    int32_t steps;
    db_certificate certificate;
} db_step_summary;

/* May be dropped when the queue is full. Its run must have been put before. */
void db_put_step_summary(db *, const db_step_summary *);
/* The newest `capacity`, oldest of them first. */
tb_status db_list_step_summaries(db *, const db_id *run, db_step_summary *, int32_t capacity,
                                 int32_t *count, tb_error *);

typedef struct db_event {
    db_id run;
    int64_t time_us;
    char kind[32], message[256];
} db_event;

/* Its run must have been put before. */
tb_status db_put_event(db *, const db_event *, tb_error *);
/* The newest `capacity`, oldest of them first. */
tb_status db_list_events(db *, const db_id *run, db_event *, int32_t capacity, int32_t *count,
                         tb_error *);

/* ---- benchmarks ---- */

enum { DB_BENCHMARK_SAMPLES = 1000 };

typedef struct db_benchmark {
    db_id id;
    char name[128], metric[64], unit[32], testbed[256], build[128];
    const double *samples; /* in: copied; out: malloc'ed, the caller frees */
    int32_t number_of_samples;
    double median, lower, upper; /* filled by the store */
    double residual, iterations, penetration, energy_drift;
    int64_t time_us;
} db_benchmark;

tb_status db_record_benchmark(db *, db_benchmark *, tb_error *); /* waits for the commit */
tb_status db_list_benchmarks(db *, const char *name, const char *token, db_benchmark *,
                             int32_t capacity, int32_t *count, char next[DB_TOKEN_SIZE],
                             tb_error *);

/* ---- API keys ---- */

typedef struct db_api_key {
    char id[16], name[64], hash[160]; /* hash: argon2id string */
    int32_t scope;                    /* td_scope */
    double calls_per_second;          /* 0: the configuration's */
    int32_t sessions;                 /* quota; 0: the configuration's */
    int64_t create_time_us;
    int64_t expire_time_us; /* 0: never */
    int64_t use_time_us;    /* last db_note_key_use; 0: none; a put leaves it */
    bool revoked;
} db_api_key;

tb_status db_put_api_key(db *, const db_api_key *, tb_error *); /* waits for the commit */
tb_status db_get_api_key(db *, const char *id, db_api_key *, tb_error *);
/* A number that changes when any process makes or revokes a key. */
tb_status db_api_keys_mark(db *, int64_t *mark, tb_error *);
tb_status db_list_api_keys(db *, db_api_key *, int32_t capacity, int32_t *count, tb_error *);

/* Records a key's use; the latest time counts. Does not wait for the commit. */
tb_status db_note_key_use(db *, const char *id, int64_t time_us, tb_error *);

/* Refused keys: one row for each key, peer and reason, with the number of refusals. The latest
 * DB_KEY_REFUSALS rows are kept. */
enum { DB_KEY_REFUSALS = 1000 };

typedef struct db_key_refusal {
    char key[16];  /* the id that was shown; there need not be such a key */
    char peer[64]; /* address */
    char reason[32];
    int64_t refusals, first_time_us, last_time_us;
} db_key_refusal;

/* Adds to the row's number. Does not wait for the commit. */
tb_status db_note_key_refusal(db *, const db_key_refusal *, tb_error *);
/* The latest first. */
tb_status db_list_key_refusals(db *, db_key_refusal *, int32_t capacity, int32_t *count,
                               tb_error *);

/* ---- housekeeping ---- */

/* Online backup into a new file while the store is in use; `progress` may be NULL. */
tb_status db_backup(db *, const char *path, void (*progress)(void *context, double fraction),
                    void *context, tb_error *);
/* The same for a store on disk, whether or not a daemon holds it: reads only. */
tb_status db_backup_file(const char *folder, const char *path,
                         void (*progress)(void *context, double fraction), void *context,
                         tb_error *);
/* Deletes rows that are past retention; the writer calls this once a minute. */
tb_status db_retain(db *, int64_t now_us, tb_error *);

/* ---- grasp jobs (grasp_job.c) ---- */

enum { DB_GRASP_JOB_RUNNING = 1, DB_GRASP_JOB_DONE, DB_GRASP_JOB_CANCELLED, DB_GRASP_JOB_FAILED };

typedef struct db_grasp_job {
    db_id id;
    char owner[64], label[128];
    int32_t status; /* DB_GRASP_JOB_... */
    int32_t grasps, results, held, uncertified;
    int64_t result_bytes, create_time_us, end_time_us; /* end 0: running */
    char message[256];
    /* trajectories written, including those that retention has deleted since; chosen trajectories
     * beyond the job's bound */
    int32_t trajectories, trajectories_left_out;
    int64_t trajectory_bytes;
    db_sha256 scene; /* draws them; zeros: the job keeps none */
} db_grasp_job;

typedef struct db_grasp_trajectory {
    int32_t pose, copy;
    unsigned char *bytes; /* NULL in a list */
    size_t size;
} db_grasp_trajectory;

typedef struct db_grasp_result {
    db_id job;
    int32_t pose;
    bool held;           /* only for a put */
    int32_t uncertified; /* likewise, trials */
    unsigned char *bytes;
    size_t size;
    /* only for a put: committed with the result or not at all */
    const db_grasp_trajectory *trajectories;
    int32_t number_of_trajectories, trajectories_left_out;
} db_grasp_result;

/* A running job; copies the request. `done` is called once it is durable. */
tb_status db_put_grasp_job(db *, const db_grasp_job *, const void *request, size_t size, db_done *,
                           void *context, tb_error *);
/* Takes id, status, end_time_us and message; a job that has already ended stays unchanged. */
tb_status db_end_grasp_job(db *, const db_grasp_job *, tb_error *);
/* Copies all bytes. A stored result and its trajectories stay unchanged. */
tb_status db_put_grasp_result(db *, const db_grasp_result *, tb_error *);
tb_status db_get_grasp_job(db *, const db_id *, db_grasp_job *, tb_error *);
/* malloc'ed bytes. */
tb_status db_get_grasp_request(db *, const db_id *, unsigned char **bytes, size_t *size,
                               tb_error *);
/* As db_find_scene. */
tb_status db_find_grasp_job(db *, const db_id *lower, const db_id *upper, db_id *found,
                            int32_t *count, tb_error *);
/* Newest first; owner NULL: of all. */
tb_status db_list_grasp_jobs(db *, const char *owner, const char *token, db_grasp_job *,
                             int32_t capacity, int32_t *count, char next[DB_TOKEN_SIZE],
                             tb_error *);
/* The first running job numbered above `after`, and its number. */
tb_status db_list_open_grasp_jobs(db *, int64_t after, db_grasp_job *, int64_t *number, bool *found,
                                  tb_error *);
/* Results in the order of the poses from `first` on; bytes malloc'ed. */
tb_status db_list_grasp_results(db *, const db_id *job, int32_t first, db_grasp_result *,
                                int32_t capacity, int32_t *count, tb_error *);
/* malloc'ed bytes; NOT_FOUND. */
tb_status db_get_grasp_trajectory(db *, const db_id *job, int32_t pose, int32_t copy,
                                  unsigned char **bytes, size_t *size, tb_error *);
/* Trajectories of a job in the order of poses and copies, starting after (pose, copy). */
tb_status db_list_grasp_trajectories(db *, const db_id *job, int32_t pose, int32_t copy,
                                     db_grasp_trajectory *, int32_t capacity, int32_t *count,
                                     tb_error *);

#endif
