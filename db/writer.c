/* The writer: one thread that owns the only connection that writes.
 *
 * Waiting jobs share a transaction and its fsync, which makes a commit for each acknowledged
 * snapshot affordable. A job without a waiting caller stays in the queue for up to 20 ms, so that a
 * stream of summaries costs few commits. A job with a waiting caller is taken at once, with all
 * jobs that arrived during the last commit.
 *
 * A full queue first drops its oldest step summaries and counts them. Then submitters wait briefly
 * for a free slot and are refused. Every other queued job is committed or reported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db_internal.h"

static const int64_t NS = 1000000000;
static const int64_t GATHER_NS = 20000000;      /* how long an unhurried job waits for others */
static const int64_t ROOM_NS = 250000000;       /* how long a submitter waits for a free slot */
static const int64_t RETAIN_NS = 60000000000;   /* from one retention to the next */
static const int64_t TRIAL_NS = 2000000000;     /* from a failed write to a trial */
static const uint64_t BATCH_BYTES = 64u << 20;  /* a transaction ends beyond this */
static const uint64_t QUEUE_BYTES = 512u << 20; /* held by queued jobs; one larger goes alone */
/* pages in the log: when to copy them back (each time costs two syncs), and when to insist */
enum { CHECKPOINT_PAGES = 4000, LONG_LOG_PAGES = 32000, INSIST_MS = 100 };

static struct timespec time_at(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / NS, .tv_nsec = ns % NS};
}

/* ---- queues, under the mutex ---- */

static void push(db_writer *w, db_job *job)
{
    db_queue *queue = job->summary ? &w->summaries : &w->jobs;
    job->sequence = ++w->sequence;
    job->queued_ns = db_monotonic_ns();
    job->next = NULL;
    if (queue->last != NULL)
        queue->last->next = job;
    else
        queue->first = job;
    queue->last = job;
    queue->count++;
    w->queued_bytes += job->size;
    w->prompt += job->done != NULL;
}

static db_job *pop(db_writer *w, db_queue *queue)
{
    db_job *job = queue->first;
    queue->first = job->next;
    if (queue->first == NULL) queue->last = NULL;
    queue->count--;
    w->queued_bytes -= job->size;
    w->prompt -= job->done != NULL;
    return job;
}

/* The job that came first; NULL if both queues are empty. */
static db_job *oldest(const db_writer *w)
{
    db_job *job = w->jobs.first, *summary = w->summaries.first;
    if (job == NULL || summary == NULL) return job != NULL ? job : summary;
    return summary->sequence < job->sequence ? summary : job;
}

static int32_t queued(const db_writer *w)
{
    return w->jobs.count + w->summaries.count;
}

/* ---- submitting ---- */

void *db_job_create(size_t size, db_done *done, void *context, tb_error *error)
{
    db_job *job = calloc(1, size);
    if (job == NULL) {
        tb_fail_memory(error, size, "a write to the store");
        return NULL;
    }
    job->done = done;
    job->context = context;
    job->size = size;
    return job;
}

static void release(db_job *job)
{
    if (job->release != NULL)
        job->release(job);
    else
        free(job);
}

static bool on_writer_thread(const db_writer *w)
{
    return w->started && pthread_equal(pthread_self(), w->thread);
}

/* Waits until the queue has a slot for the job; drops queued summaries. Caller holds the mutex. */
static tb_status make_room(db *store, const db_job *job, tb_error *error)
{
    db_writer *w = &store->writer;
    const struct timespec end = time_at(db_monotonic_ns() + ROOM_NS);
    bool late = false;
    if (atomic_load(&store->reading))
        return tb_fail(error, TB_RESOURCE_EXHAUSTED,
                       "the disk is full: the store is read, and nothing is written");
    while (!w->closing) {
        const bool many = queued(w) >= store->queue_length;
        const bool large = w->queued_bytes > 0 && w->queued_bytes + job->size > QUEUE_BYTES;
        if (!many && !large) return TB_OK;
        if (many && w->summaries.count > 0) {
            release(pop(w, &w->summaries));
            atomic_fetch_add(&store->dropped_summaries, 1);
            continue;
        }
        if (late || job->summary || on_writer_thread(w))
            return tb_fail(error, TB_RESOURCE_EXHAUSTED,
                           "the store is behind: %d writes of %llu MiB are waiting", queued(w),
                           (unsigned long long)(w->queued_bytes >> 20));
        late = pthread_cond_timedwait(&w->room, &w->mutex, &end) != 0;
    }
    return tb_fail(error, TB_UNAVAILABLE, "the store is closing");
}

tb_status db_submit(db *store, db_job *job, tb_error *error)
{
    db_writer *w = &store->writer;
    pthread_mutex_lock(&w->mutex);
    const tb_status status = make_room(store, job, error);
    if (status == TB_OK) {
        push(w, job);
        /* the writer sleeps on an empty queue, or gathers until one is in a hurry */
        if (queued(w) == 1 || w->prompt > 0 || queued(w) >= DB_BATCH) pthread_cond_signal(&w->work);
    }
    atomic_store(&store->queued, queued(w));
    pthread_mutex_unlock(&w->mutex);
    if (status == TB_OK) return TB_OK;
    if (job->summary) atomic_fetch_add(&store->dropped_summaries, 1);
    release(job);
    return status;
}

typedef struct waiter {
    pthread_mutex_t mutex;
    pthread_cond_t told;
    bool done;
    tb_status status;
    tb_error error;
} waiter;

static void tell_waiter(void *context, tb_status status, const tb_error *error)
{
    waiter *w = context;
    pthread_mutex_lock(&w->mutex);
    w->done = true;
    w->status = status;
    if (error != NULL) w->error = *error;
    pthread_cond_signal(&w->told);
    pthread_mutex_unlock(&w->mutex);
}

tb_status db_submit_and_wait(db *store, db_job *job, tb_error *error)
{
    if (on_writer_thread(&store->writer)) {
        release(job);
        return tb_fail(error, TB_FAILED_PRECONDITION,
                       "the store's writer cannot wait for a write of its own");
    }
    waiter w = {.mutex = PTHREAD_MUTEX_INITIALIZER, .told = PTHREAD_COND_INITIALIZER};
    job->done = tell_waiter;
    job->context = &w;
    tb_status status = db_submit(store, job, error);
    if (status == TB_OK) {
        pthread_mutex_lock(&w.mutex);
        while (!w.done) pthread_cond_wait(&w.told, &w.mutex);
        pthread_mutex_unlock(&w.mutex);
        status = w.status;
        if (status != TB_OK && error != NULL) *error = w.error;
    }
    pthread_cond_destroy(&w.told);
    pthread_mutex_destroy(&w.mutex);
    return status;
}

/* Whether something that was queued up to `sequence` is not committed yet. */
static bool pending(db_writer *w, uint64_t sequence)
{
    if (w->in_flight != 0 && w->in_flight <= sequence) return true;
    const db_job *job = oldest(w);
    return job != NULL && job->sequence <= sequence;
}

tb_status db_flush(db *store, tb_error *error)
{
    db_writer *w = &store->writer;
    if (on_writer_thread(w))
        return tb_fail(error, TB_FAILED_PRECONDITION, "the store's writer cannot wait for itself");
    pthread_mutex_lock(&w->mutex);
    const uint64_t sequence = w->sequence;
    const int64_t failures = w->failures;
    w->flushing++;
    pthread_cond_signal(&w->work);
    while (pending(w, sequence)) pthread_cond_wait(&w->idle, &w->mutex);
    w->flushing--;
    tb_status status = TB_OK;
    if (w->failures != failures) {
        status = w->last_failure.status;
        if (error != NULL) *error = w->last_failure;
    }
    pthread_mutex_unlock(&w->mutex);
    return status;
}

/* ---- transactions, on the writer's thread ---- */

static tb_status run(db_connection *connection, db_statement statement, tb_error *error)
{
    sqlite3_stmt *s = NULL;
    const tb_status status = db_take(connection, statement, &s, error);
    return status == TB_OK ? db_run_statement(connection, s, "the store", error) : status;
}

/* PRAGMA synchronous takes effect between transactions only. */
static tb_status set_durability(db_writer *w, bool full, tb_error *error)
{
    if (w->full == full) return TB_OK;
    const char *const sql = full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL";
    const tb_status status = db_execute(&w->connection, sql, error);
    if (status == TB_OK) w->full = full;
    return status;
}

/* One job inside a transaction; one of several statements leaves all of its traces or none. */
static tb_status write_job(db_connection *connection, db_job *job, tb_error *error)
{
    if (!job->compound) return job->write(connection, job, error);
    tb_status status = run(connection, DB_SAVEPOINT, error);
    if (status != TB_OK) return status;
    status = job->write(connection, job, error);
    if (sqlite3_get_autocommit(connection->handle)) return status; /* all is undone already */
    if (status != TB_OK) run(connection, DB_UNDO, NULL);
    const tb_status released = run(connection, DB_RELEASE, status == TB_OK ? error : NULL);
    return status != TB_OK ? status : released;
}

static void note_outcome(db *store, tb_status status, const tb_error *error)
{
    db_writer *w = &store->writer;
    if (status != TB_OK && error != NULL) {
        pthread_mutex_lock(&w->mutex);
        w->trouble = *error;
        pthread_mutex_unlock(&w->mutex);
    }
    if (atomic_exchange(&store->failing, status != TB_OK) && status == TB_OK)
        db_log(store, TB_LOG_INFO, "the store is written again");
    if (status != TB_OK) w->next_trial_ns = db_monotonic_ns() + TRIAL_NS;
}

/* Commits `count` jobs together. A job's own failure is left in its error and does not harm the
 * others; the function fails when the transaction did, and then nothing has happened. */
static tb_status transact(db *store, db_job *const *jobs, tb_error *errors, int32_t count,
                          tb_error *error)
{
    db_writer *w = &store->writer;
    db_connection *connection = &w->connection;
    bool full = false;
    for (int32_t i = 0; i < count; i++) full |= jobs[i]->full;

    pthread_mutex_lock(&store->memory);
    tb_status status = set_durability(w, full, error);
    if (status == TB_OK) status = run(connection, DB_BEGIN, error);
    for (int32_t i = 0; i < count && status == TB_OK; i++) {
        errors[i].status = TB_OK;
        tb_error fault = {0};
        const tb_status written = write_job(connection, jobs[i], &fault);
        if (written != TB_OK) errors[i] = fault, errors[i].status = written;
        /* a full disk and the like undo the whole transaction on the spot */
        if (sqlite3_get_autocommit(connection->handle)) {
            status = written != TB_OK ? written : TB_INTERNAL;
            if (error != NULL) *error = fault, error->status = status;
        }
    }
    if (status == TB_OK) status = run(connection, DB_COMMIT, error);
    if (status != TB_OK && !sqlite3_get_autocommit(connection->handle))
        sqlite3_exec(connection->handle, "ROLLBACK", NULL, NULL, NULL);
    pthread_mutex_unlock(&store->memory);
    note_outcome(store, status, error);
    return status;
}

/* Commits a batch; if that fails, one job after the other, so that one that cannot be written takes
 * no other with it. */
static void commit_batch(db *store, int32_t count)
{
    db_writer *w = &store->writer;
    const int64_t start = db_monotonic_ns();
    tb_error error = {0};
    tb_status status = transact(store, w->batch, w->errors, count, &error);
    if (status != TB_OK)
        db_log(store, TB_LOG_ERROR, "%d writes failed together: %s", count, error.message);
    if (status != TB_OK && count == 1) w->errors[0] = error, w->errors[0].status = status;
    for (int32_t i = 0; i < count && status != TB_OK && count > 1; i++) {
        tb_error fault = {0};
        const tb_status alone = transact(store, &w->batch[i], &w->errors[i], 1, &fault);
        if (alone != TB_OK) w->errors[i] = fault, w->errors[i].status = alone;
    }
    const double seconds = (double)(db_monotonic_ns() - start) * 1e-9;
    atomic_store(&store->last_commit_seconds, seconds);
    if (store->committed != NULL) store->committed(store->committed_context, seconds);
    atomic_fetch_add(&store->commits, 1);

    int32_t failed = 0;
    for (int32_t i = 0; i < count; i++) {
        if (w->errors[i].status == TB_OK) continue;
        /* no caller receives this error */
        if (w->batch[i]->done == NULL && failed++ == 0)
            db_log(store, TB_LOG_WARNING, "a write failed: %s", w->errors[i].message);
        if (status == TB_OK) continue;
        pthread_mutex_lock(&w->mutex);
        w->failures++;
        w->last_failure = w->errors[i];
        pthread_mutex_unlock(&w->mutex);
    }
    atomic_fetch_add(&store->committed_jobs, count);
}

static void tell_and_release(db_writer *w, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        db_job *job = w->batch[i];
        const tb_error *error = &w->errors[i];
        if (job->done != NULL)
            job->done(job->context, error->status, error->status != TB_OK ? error : NULL);
        release(job);
    }
}

/* Checkpoints a long log after the waiting callers have their answers, so no caller pays for it.
 * SQLite restarts a log only without readers; readers that overlap without a gap would let it grow
 * without bound, so a very long log makes new readers wait briefly. */
static void checkpoint(db *store)
{
    db_writer *w = &store->writer;
    if (w->log_pages < w->checkpoint_at) return;
    const bool insist = w->log_pages > LONG_LOG_PAGES;
    int in_log = 0, copied = 0;
    if (insist) sqlite3_busy_timeout(w->connection.handle, INSIST_MS);
    const int code = sqlite3_wal_checkpoint_v2(
        w->connection.handle, NULL, insist ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE,
        &in_log, &copied);
    if (insist) sqlite3_busy_timeout(w->connection.handle, DB_BUSY_TIMEOUT_MS);
    if (code != SQLITE_OK && code != SQLITE_BUSY)
        db_log(store, TB_LOG_WARNING, "checkpoint: %s", sqlite3_errmsg(w->connection.handle));
    /* a reader that looks at an old moment, a backup say, holds the log back: try again later */
    w->checkpoint_at = copied == in_log ? CHECKPOINT_PAGES : w->log_pages + CHECKPOINT_PAGES;
    if (copied == in_log) w->log_pages = 0;
}

static int note_log_pages(void *context, sqlite3 *handle, const char *name, int pages)
{
    (void)handle, (void)name;
    ((db_writer *)context)->log_pages = pages;
    return SQLITE_OK;
}

static void count_pages(db *store)
{
    sqlite3_stmt *s = NULL;
    bool row = false;
    if (db_take(&store->writer.connection, DB_PAGE_COUNT, &s, NULL) != TB_OK) return;
    pthread_mutex_lock(&store->memory);
    db_next_row(&store->writer.connection, s, &row, "the store", NULL);
    if (row) {
        atomic_store(&store->pages, sqlite3_column_int64(s, 0));
        db_give_back(s);
    }
    pthread_mutex_unlock(&store->memory);
}

/* ---- batches ---- */

/* Takes jobs in the order of arrival; under the mutex. */
static int32_t take_batch(db_writer *w)
{
    uint64_t bytes = 0;
    int32_t count = 0;
    for (db_job *job = oldest(w); job != NULL && count < DB_BATCH; job = oldest(w)) {
        bytes += job->size;
        if (count > 0 && bytes > BATCH_BYTES) break;
        w->batch[count++] = job->summary ? pop(w, &w->summaries) : pop(w, &w->jobs);
    }
    w->in_flight = count > 0 ? w->batch[0]->sequence : 0;
    return count;
}

/* Waits for a batch that is worth a commit; false when it is time for something else. Under the
 * mutex. */
static bool gather(db *store)
{
    db_writer *w = &store->writer;
    if (queued(w) == 0) {
        if (w->closing) return false;
        const bool failing = atomic_load(&store->failing);
        const int64_t due =
            failing && w->next_trial_ns < w->next_retain_ns ? w->next_trial_ns : w->next_retain_ns;
        const struct timespec end = time_at(due);
        pthread_cond_timedwait(&w->work, &w->mutex, &end);
    }
    while (queued(w) > 0) {
        if (w->prompt > 0 || w->flushing > 0 || w->closing || queued(w) >= DB_BATCH) return true;
        const int64_t due = oldest(w)->queued_ns + GATHER_NS;
        if (db_monotonic_ns() >= due) return true;
        const struct timespec end = time_at(due);
        pthread_cond_timedwait(&w->work, &w->mutex, &end);
    }
    return false;
}

/* ---- retention ---- */

typedef struct retain_job {
    db_job job;
    db *store;
    int64_t now_us;
    bool *more;
} retain_job;

static tb_status write_retain(db_connection *connection, db_job *job, tb_error *error)
{
    retain_job *retain = (retain_job *)job;
    return db_retain_slice(retain->store, connection, retain->now_us, retain->more, error);
}

tb_status db_retain(db *store, int64_t now_us, tb_error *error)
{
    tb_status status = TB_OK;
    bool more = true;
    while (status == TB_OK && more) {
        retain_job *retain = db_job_create(sizeof *retain, NULL, NULL, error);
        if (retain == NULL) return TB_RESOURCE_EXHAUSTED;
        retain->job.write = write_retain;
        retain->job.compound = true;
        retain->store = store;
        retain->now_us = now_us;
        retain->more = &more;
        status = db_submit_and_wait(store, &retain->job, error);
    }
    return status;
}

/* A slice of retention between two batches, once a minute and on until nothing is left. */
static void retain_now_and_then(db *store)
{
    db_writer *w = &store->writer;
    if (db_monotonic_ns() < w->next_retain_ns) return;
    bool more = false;
    retain_job retain = {
        .job = {.write = write_retain}, .store = store, .now_us = db_utc_us(), .more = &more};
    db_job *const job = &retain.job;
    tb_error own = {0}, error = {0};
    tb_status status = transact(store, &job, &own, 1, &error);
    if (status == TB_OK && own.status != TB_OK) status = own.status, error = own;
    if (status != TB_OK) db_log(store, TB_LOG_WARNING, "retention: %s", error.message);
    w->next_retain_ns = db_monotonic_ns() + (status == TB_OK && more ? 0 : RETAIN_NS);
}

/* ---- writes that fail ---- */

bool db_is_failing(db *store, tb_error *why)
{
    db_writer *w = &store->writer;
    const bool failing = atomic_load(&store->failing);
    pthread_mutex_lock(&w->mutex);
    if (failing && why != NULL) *why = w->trouble;
    pthread_mutex_unlock(&w->mutex);
    return failing;
}

/* Rewrites a page of the file's header. */
static tb_status write_trial(db_connection *connection, db_job *job, tb_error *error)
{
    (void)job;
    char version[48];
    snprintf(version, sizeof version, "PRAGMA user_version = %d", DB_VERSION);
    return db_execute(connection, version, error);
}

/* While writes fail, finds out whether they would now. */
static void try_again(db *store)
{
    db_writer *w = &store->writer;
    if (!atomic_load(&store->failing) || db_monotonic_ns() < w->next_trial_ns) return;
    w->next_trial_ns = db_monotonic_ns() + TRIAL_NS;
    if (!atomic_load(&store->reading)) {
        db_job trial = {.write = write_trial};
        db_job *const job = &trial;
        tb_error own = {0}, error = {0};
        transact(store, &job, &own, 1, &error);
    } else if (db_has_room(store)) {
        pthread_mutex_lock(&store->memory);
        db_try_writing(store);
        pthread_mutex_unlock(&store->memory);
    }
}

/* ---- the thread ---- */

static void *write_for_ever(void *context)
{
    db *store = context;
    db_writer *w = &store->writer;
    pthread_mutex_lock(&w->mutex);
    while (!w->closing || queued(w) > 0) {
        const int32_t count = gather(store) ? take_batch(w) : 0;
        atomic_store(&store->queued, queued(w));
        if (count > 0) pthread_cond_broadcast(&w->room);
        const bool closing = w->closing;
        pthread_mutex_unlock(&w->mutex);

        if (count > 0) {
            commit_batch(store, count);
            tell_and_release(w, count);
            count_pages(store);
        }
        checkpoint(store);
        if (!closing) try_again(store);
        if (!closing && !atomic_load(&store->reading)) retain_now_and_then(store);

        pthread_mutex_lock(&w->mutex);
        w->in_flight = 0;
        pthread_cond_broadcast(&w->idle);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

tb_status db_writer_adopt(db *store, tb_error *error)
{
    db_writer *w = &store->writer;
    w->checkpoint_at = CHECKPOINT_PAGES;
    w->log_pages = 0;
    w->full = false;
    sqlite3_wal_hook(w->connection.handle, note_log_pages, w);
    return db_execute(&w->connection, "PRAGMA synchronous = NORMAL", error);
}

tb_status db_writer_start(db *store, tb_error *error)
{
    db_writer *w = &store->writer;
    w->next_retain_ns = db_monotonic_ns() + RETAIN_NS;
    const tb_status status = db_writer_adopt(store, error);
    if (status != TB_OK) return status;
    count_pages(store);
    if (pthread_create(&w->thread, NULL, write_for_ever, store) != 0)
        return tb_fail(error, TB_RESOURCE_EXHAUSTED, "no thread for the store's writer");
    w->started = true;
    return TB_OK;
}

void db_writer_stop(db *store)
{
    db_writer *w = &store->writer;
    if (!w->started) return;
    pthread_mutex_lock(&w->mutex);
    w->closing = true;
    pthread_cond_broadcast(&w->work);
    pthread_cond_broadcast(&w->room);
    pthread_mutex_unlock(&w->mutex);
    pthread_join(w->thread, NULL);
    w->started = false;
}
