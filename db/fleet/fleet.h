/* A fleet's database: PostgreSQL, into which every node sends its runs and benchmarks, and from which
 * any node lists those of all.
 *
 * A thread takes entries of the outbox (../outbox.h) in batches, sends their rows with INSERT ... ON
 * CONFLICT (id), and deletes the entries once the database has committed. A batch that was committed but
 * not acknowledged is sent again and changes nothing: each run and benchmark is there once, and a row
 * replaces an older state of itself alone (column sequence). While the database is away the thread
 * tries again, at first after a second, at last every 30 s, and logs the failure and the recovery once.
 *
 * Lists are ordered by the clocks of the nodes, so each node compares its clock with the database's once
 * a minute and logs a difference of more than five seconds.
 *
 * The tables (tribo_run, tribo_benchmark, tribo_fleet) are made by the first node; columns have the
 * names of the messages in proto/tribo/v1/runs.proto, ids are hexadecimal text. */
#ifndef DB_FLEET_FLEET_H
#define DB_FLEET_FLEET_H

#include "db/db.h"

typedef struct db_fleet db_fleet;

enum { DB_FLEET_NODE_SIZE = 64 };

typedef struct db_fleet_options {
    const char *url;  /* postgresql://..., copied */
    const char *node; /* name of this node in the database, copied */
    void (*log)(void *context, tb_log_level, const char *message);
    void *log_context;
} db_fleet_options;

/* Starts the thread that sends. The store was opened with `outbox`, and outlives the fleet. The database
 * need not answer yet. FAILED_PRECONDITION where libpq cannot be loaded. */
tb_status db_fleet_create(db *, const db_fleet_options *, db_fleet **, tb_error *);
/* Sends the waiting rows, for two seconds at most, and ends the thread. Callers of lists have returned. */
void db_fleet_destroy(db_fleet *);

typedef struct db_fleet_counters {
    int64_t waiting,
        refused;            /* entries of the outbox: to be sent; that the database cannot store */
    int64_t sent, failures; /* rows, since the start; attempts that failed */
    double oldest_seconds;  /* age of the oldest entry that waits; 0: none */
    double skew_seconds;    /* this node's clock minus the database's, compared once a minute */
} db_fleet_counters;

db_fleet_counters db_fleet_count(const db_fleet *);

typedef struct db_fleet_run {
    db_run run; /* the caller frees options_json */
    char node[DB_FLEET_NODE_SIZE];
    int64_t sequence; /* grows with each state of the run that its node sent */
} db_fleet_run;

typedef struct db_fleet_benchmark {
    db_benchmark benchmark; /* the caller frees samples */
    char node[DB_FLEET_NODE_SIZE];
    int64_t sequence;
} db_fleet_benchmark;

/* Pages of all nodes' rows, latest start first, as db_list_runs. They ask the database on the caller's
 * thread, ten seconds at most: FAILED_PRECONDITION where it does not answer. */
tb_status db_fleet_list_runs(db_fleet *, const db_run_filter *, const char *token, db_fleet_run *,
                             int32_t capacity, int32_t *count, char next[DB_TOKEN_SIZE],
                             tb_error *);
/* Runs with ids from `lower` to `upper` that `owner` (NULL: all) may see: *count is 0, 1, or 2 for
 * several, and *run is the first. Fails as the lists do. */
tb_status db_fleet_find_run(db_fleet *, const db_id *lower, const db_id *upper, const char *owner,
                            db_fleet_run *run, int32_t *count, tb_error *);
tb_status db_fleet_list_benchmarks(db_fleet *, const char *name, const char *token,
                                   db_fleet_benchmark *, int32_t capacity, int32_t *count,
                                   char next[DB_TOKEN_SIZE], tb_error *);

#endif
