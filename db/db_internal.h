/* Declarations shared by the files of the store: connections with their statements, jobs for the
 * writer, the store itself. Callers outside this folder include db.h alone. */
#ifndef DB_INTERNAL_H
#define DB_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "base/error.h"
#include "db.h"
#include "statements.h"

/* The version that this build writes: the number of migrations. */
enum { DB_VERSION = 7 };
/* PRAGMA application_id of our files: "TRBD". */
enum { DB_APPLICATION_ID = 0x54524244 };

enum { DB_SHA256_SIZE = 32 };

/* ---- connections (connection.c) ---- */

/* How long SQLite waits for a lock of another process, a backup for example. */
enum { DB_BUSY_TIMEOUT_MS = 10000 };

/* One SQLite connection; used by one thread at a time. */
typedef struct db_connection {
    sqlite3 *handle;
    sqlite3_stmt *statements[DB_STATEMENTS]; /* prepared at first use */
    bool serves;                             /* its errors go to callers and omit the file's path */
} db_connection;

tb_status db_connection_open(db_connection *, const char *path, bool writes, tb_error *);
void db_connection_close(db_connection *);
/* Runs texts that give no rows. */
tb_status db_execute(db_connection *, const char *sql, tb_error *);
/* First column of the first row. */
tb_status db_ask_number(db_connection *, const char *sql, int64_t *, tb_error *);

/* Converts an SQLite error to a status; the message begins with `what`. */
tb_status db_fail(tb_error *, sqlite3 *, int code, const char *what);

/* A statement ready for binding. */
tb_status db_take(db_connection *, db_statement, sqlite3_stmt **, tb_error *);
/* Resets a statement and clears its bindings. */
void db_give_back(sqlite3_stmt *);
/* Runs a statement that gives no rows, then gives it back. */
tb_status db_run_statement(db_connection *, sqlite3_stmt *, const char *what, tb_error *);
/* Steps to the next row; *row is true if there is one. Resets the statement at the end of the rows
 * and on failure. */
tb_status db_next_row(db_connection *, sqlite3_stmt *, bool *row, const char *what, tb_error *);

/* Values. Texts are cut at `size`, the array's; not-a-number is NULL. Bound values are borrowed
 * until the statement is given back. */
void db_bind_text(sqlite3_stmt *, int index, const char *text, size_t size);
void db_bind_id(sqlite3_stmt *, int index, const db_id *);
void db_bind_sha256(sqlite3_stmt *, int index, const db_sha256 *);
void db_bind_bytes(sqlite3_stmt *, int index, const void *bytes, uint64_t size);
void db_bind_certificate(sqlite3_stmt *, int first, const db_certificate *);
void db_column_text(sqlite3_stmt *, int index, char *text, size_t size);
void db_column_bytes(sqlite3_stmt *, int index, void *bytes, size_t size);
double db_column_number(sqlite3_stmt *, int index);
void db_column_certificate(sqlite3_stmt *, int first, db_certificate *);

/* Reads a whole blob of row `number` straight into malloc'ed memory and checks it: DATA_LOSS if its
 * size or its CRC-32 (negative: unknown) differs from the row's. */
tb_status db_read_blob(db_connection *, const char *table, int64_t number, uint64_t size,
                       int64_t crc32, unsigned char **bytes, tb_error *);
int64_t db_crc32(const void *bytes, uint64_t size);

/* Ends a session and lets retention have its snapshots; NOT_FOUND (session.c). For jobs. */
tb_status db_write_session_end(db_connection *, const db_id *, const char *reason, tb_error *);

/* ---- jobs (writer.c) ---- */

typedef struct db_job db_job;

/* A write that waits for its transaction. Kinds of jobs embed it as their first member. */
struct db_job {
    /* Runs inside a transaction; may be called twice, when a transaction had to be repeated. */
    tb_status (*write)(db_connection *, db_job *, tb_error *);
    /* Frees the job and its members; NULL: free(). */
    void (*release)(db_job *);
    db_done *done; /* NULL: no caller waits */
    void *context;
    bool summary;  /* the first to go when the queue is full */
    bool full;     /* its commit is synchronous = FULL */
    bool compound; /* several statements: a savepoint keeps them together */
    uint64_t size; /* bytes that it holds or borrows */

    /* the writer's */
    uint64_t sequence;
    int64_t queued_ns;
    db_job *next;
};

/* A zeroed job of `size` bytes; NULL with the error filled. */
void *db_job_create(size_t size, db_done *, void *context, tb_error *);
/* Queues a job, which belongs to the writer from then on, refused or not. RESOURCE_EXHAUSTED when
 * the queue stays full; UNAVAILABLE while the store closes. Summaries never fail. */
tb_status db_submit(db *, db_job *, tb_error *);
/* The same, and waits for the commit; `done` and `context` are its own. FAILED_PRECONDITION on the
 * writer thread. */
tb_status db_submit_and_wait(db *, db_job *, tb_error *);

typedef struct db_queue {
    db_job *first, *last;
    int32_t count;
} db_queue;

enum { DB_BATCH = 100 }; /* jobs a transaction */

/* The writer: a thread, its connection and two queues that it drains in the order of arrival. */
typedef struct db_writer {
    db_connection connection;
    pthread_t thread;
    bool started;
    pthread_mutex_t mutex;
    pthread_cond_t work, room, idle; /* monotonic clock */

    /* under the mutex */
    db_queue jobs, summaries;
    uint64_t queued_bytes;
    uint64_t sequence;  /* of the last job queued */
    uint64_t in_flight; /* of the first job of the running batch; 0: none */
    int32_t prompt;     /* queued jobs with a waiting caller */
    int32_t flushing;   /* threads in db_flush */
    bool closing;
    int64_t failures; /* transactions that failed as a whole */
    tb_error last_failure;
    tb_error trouble; /* of the last transaction that failed as a whole */

    /* the thread's own */
    bool full; /* the connection's synchronous is FULL */
    int64_t next_retain_ns, next_trial_ns;
    int64_t snapshots_dropped, next_dropped_log_ns; /* snapshots beyond their session's bounds */
    int log_pages, checkpoint_at; /* pages in the write-ahead log; when to copy them back */
    db_job *batch[DB_BATCH];
    tb_error errors[DB_BATCH];
} db_writer;

tb_status db_writer_start(db *, tb_error *);
/* Sets up a connection that was just opened. */
tb_status db_writer_adopt(db *, tb_error *);
void db_writer_stop(db *); /* commits queued jobs */

/* ---- the store (db.c) ---- */

enum { DB_PATH_SIZE = 4096 };

struct db {
    char path[DB_PATH_SIZE]; /* of the file; "" in memory */
    int lock;                /* descriptor of the lock file; -1 in memory */
    bool crashed;            /* the last process did not close the store */
    int32_t queue_length;
    double retain_days;
    uint64_t retain_snapshots_bytes, retain_unused_bytes, retain_jobs_bytes,
        retain_recordings_bytes, retain_trajectories_bytes;
    int32_t session_snapshots;
    uint64_t session_snapshots_bytes;
    bool outbox;
    void (*log)(void *context, tb_log_level, const char *message);
    void *log_context;
    void (*committed)(void *context, double seconds);
    void *committed_context;

    db_writer writer;

    atomic_bool failing; /* the last transaction failed as a whole, or `reading` */
    atomic_bool reading; /* the disk is full since the start: nothing is written */

    /* Readers of a file, opened when they are first needed. In memory, and on a full disk, the
     * writer's connection is `alone`: all read by it, and `memory` keeps readers out while the
     * writer is in a transaction. */
    atomic_bool alone;
    pthread_mutex_t readers_mutex;
    pthread_cond_t readers_free;
    db_connection readers[DB_READERS];
    bool reader_busy[DB_READERS];
    pthread_mutex_t memory;

    atomic_llong queued, committed_jobs, commits, dropped_summaries, pages;
    _Atomic double last_commit_seconds;
};

/* Opens the connection that writes, brings the file up to DB_VERSION and marks it as in use. */
tb_status db_begin_writing(db *, tb_error *);
/* DATA_LOSS for a damaged file. */
tb_status db_check_integrity(db *, tb_error *);

/* ---- a full disk (full_disk.c) ---- */

/* True if opening failed because the disk is full, by its status or by the file system's free
 * space. */
bool db_disk_is_full(const db *, tb_status);
/* Opens the file for reading by the writer's connection alone, without a log's index on the disk.
 * *cause: why it cannot be written; replaced where it cannot be read either. */
tb_status db_begin_reading(db *, tb_error *cause);
/* Opens the file for writing once the disk has free space. Under `memory`, on the writer's
 * thread. */
void db_try_writing(db *);
bool db_has_room(const db *);

/* A connection for reading, waited for if all are in use. */
tb_status db_reader_take(db *, db_connection **, tb_error *);
void db_reader_give_back(db *, db_connection *);

/* One read on the caller's thread: a connection of the pool and a statement on it. */
typedef struct db_query {
    db *store;
    db_connection *connection;
    sqlite3_stmt *statement;
} db_query;

tb_status db_query_begin(db *, db_statement, db_query *, tb_error *);
/* The only row; NOT_FOUND says that the store has no such `what`. */
tb_status db_query_one(db_query *, const char *what, tb_error *);
void db_query_end(db_query *);
/* Up to two keys of `size` bytes from `lower` to `upper` by a statement with these bounds; the first
 * goes to `key`. */
tb_status db_query_between(db *, db_statement, const void *lower, const void *upper, size_t size,
                           void *key, int32_t *count, tb_error *);

void db_log(const db *, tb_log_level, const char *format, ...) TB_PRINTF(3, 4);

/* ---- pages (page.c) ---- */

/* Identity of a page's list: its letter and a hash of its filter, so that a list refuses another
 * list's token. */
typedef struct db_page {
    char list;
    uint32_t filter;
    int64_t before; /* rows with smaller numbers come next */
} db_page;

uint32_t db_page_hash(uint32_t hash, const void *bytes, size_t size);
/* INVALID_ARGUMENT, field page_token. */
tb_status db_page_parse(db_page *, const char *token, tb_error *);
void db_page_print(const db_page *, char token[DB_TOKEN_SIZE]);

/* Reads the statement's current row into entry `index` of `rows`. */
typedef tb_status db_row_reader(db_query *, void *rows, int32_t index, tb_error *);

/* Runs a list statement whose column 0 is the number, ?1 the bound and ?2 the limit, both bound
 * here; `read` is called for each of up to `capacity` rows. */
tb_status db_page_read(db_query *, db_page *, db_row_reader *, void *rows, int32_t capacity,
                       int32_t *count, char next[DB_TOKEN_SIZE], tb_error *);

/* ---- the rest ---- */

/* Reads a file's version. FAILED_PRECONDITION for a newer one or a file of something else, which this
 * leaves as it is (migrate.c). */
tb_status db_check_version(const db *, db_connection *, int64_t *version, tb_error *);
/* Brings a file up to DB_VERSION, one transaction a step (migrate.c). FAILED_PRECONDITION for a
 * newer version or a file of something else. */
tb_status db_migrate(db *, db_connection *, tb_error *);

/* One slice of retention inside the writer's transaction (retain.c); *more: there is work left. */
tb_status db_retain_slice(db *, db_connection *, int64_t now_us, bool *more, tb_error *);

/* Opens the outbox, or empties and closes it where the store has no fleet (outbox.c). */
tb_status db_outbox_begin(db *, db_connection *, tb_error *);

int64_t db_monotonic_ns(void);
int64_t db_utc_us(void);

#endif
