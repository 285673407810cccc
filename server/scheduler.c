/* The scheduler: a bounded queue and the thread that owns the device. See scheduler.h.
 *
 * The owner takes the leader (highest priority, then least used client), gathers who can share its
 * launch, lets them advance by a slice, answers those that are done and puts the others back at the
 * end of their lists: processor sharing with steps as its grain. When nothing is left it looks for
 * a few microseconds before it sleeps, since a client in a loop comes back at once. */
#include "scheduler_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

/* How long the owner looks for work before it sleeps: long only while work has been coming that
 * quickly, so that an idle server burns nothing. */
static const int64_t LONGEST_SPIN_NS = 100000, SHORTEST_SPIN_NS = 5000;
/* A wait for companions that is not worth the while. */
static const int64_t SHORTEST_WAIT_NS = 5000;
/* Launches measured before estimates refuse anybody; worlds that a batch has room for at first. */
enum { TRUSTED_MEASUREMENTS = 16, FIRST_WORLDS = 256 };

struct td_scheduler {
    td_server *server;
    td_metrics *metrics;
    int32_t threads, queue_length;
    char device[64];
    pthread_t owner;
    pthread_mutex_t mutex;
    pthread_cond_t work, idle; /* monotonic */
    /* under the mutex */
    td_queue queue;
    int32_t open;       /* accepted and not at their end: waiting, or in the launch */
    int32_t unfinished; /* accepted, and `done` has not returned */
    bool sleeping, ended;
    /* read without it */
    atomic_uint arrivals;
    atomic_int waiting;
    /* the owner's */
    td_batch batch;
    int64_t idle_ns; /* average time between the last work and the next */
};

static struct timespec to_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
                             .tv_nsec = (long)(ns % 1000000000)};
}

/* ---- submitting ---- */

static tb_status check_job(const td_job *job, tb_error *error)
{
    if (job->done == NULL || (job->steps == 0 && job->slice == NULL))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "job", "the job has nothing to do");
    if ((unsigned)job->priority >= TD_PRIORITIES)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "priority", "priority is %d",
                             (int)job->priority);
    if (job->steps == 0) return TB_OK;
    if (job->steps < 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "steps", "steps is %d", job->steps);
    if (job->worlds < 1 || job->states == NULL || job->certificates == NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "worlds", "a step job of %d worlds",
                             job->worlds);
    return TB_OK;
}

/* Whether somebody still wants the job. */
static tb_status check_wanted(const td_job *job, int64_t now, tb_error *error)
{
    if (job->stop != NULL && atomic_load_explicit(job->stop, memory_order_acquire))
        return tb_fail(error, TB_CANCELLED, "stopped after %d of %d steps", job->steps_done,
                       job->steps);
    if (job->call == NULL) return TB_OK;
    if (now >= job->call->deadline_ns)
        return tb_fail(error, TB_DEADLINE_EXCEEDED, "the deadline passed after %d of %d steps",
                       job->steps_done, job->steps);
    if (atomic_load_explicit(&job->call->gone, memory_order_acquire))
        return tb_fail(error, TB_CANCELLED, "cancelled after %d of %d steps", job->steps_done,
                       job->steps);
    return TB_OK;
}

static double retry_seconds(const td_queue *queue)
{
    const double half = 0.5e-9 * td_queue_backlog_ns(queue);
    return half < 1e-3 ? 1e-3 : half > 30 ? 30 : half;
}

/* Room in the queue and time enough: under the mutex. */
static tb_status admit(td_scheduler *s, td_job *job, int64_t now, double *retry_after,
                       tb_error *error)
{
    if (s->ended) return tb_fail(error, TB_UNAVAILABLE, "the scheduler has ended");
    job->account = td_queue_account(&s->queue, job->client);

    /* Jobs between two of their slices wait like those that have not begun: a launch takes many,
     * and if only those left behind counted, there would be no bound. A client that waits for
     * nothing yet may pass a queue that others have filled. */
    const int32_t waiting = s->open - s->threads;
    const int32_t limit = job->account->jobs > 0 ? s->queue_length : s->queue_length + TD_ACCOUNTS;
    if (waiting >= limit) {
        *retry_after = retry_seconds(&s->queue);
        td_metrics_add(s->metrics, TD_METRIC_QUEUE_REFUSED, 1);
        return tb_fail(error, TB_RESOURCE_EXHAUSTED,
                       "%d requests wait for the device, the queue takes %d; come back in %.3g s",
                       waiting, s->queue_length, *retry_after);
    }
    if (job->call == NULL || job->call->deadline_ns == INT64_MAX ||
        s->queue.measured < TRUSTED_MEASUREMENTS)
        return TB_OK;
    const double needed = td_queue_completion_ns(&s->queue, job, job->account);
    if (needed <= (double)(job->call->deadline_ns - now)) return TB_OK;
    td_metrics_add(s->metrics, TD_METRIC_QUEUE_DROPPED, 1);
    *retry_after = retry_seconds(&s->queue);
    return tb_fail(error, TB_DEADLINE_EXCEEDED,
                   "the deadline leaves %.3g s, waiting and stepping would take about %.3g s",
                   1e-9 * (double)(job->call->deadline_ns - now), 1e-9 * needed);
}

static void publish_waiting(td_scheduler *s)
{
    atomic_store_explicit(&s->waiting, s->queue.waiting, memory_order_relaxed);
    td_metrics_set(s->metrics, TD_METRIC_QUEUE_LENGTH, s->queue.waiting);
}

tb_status td_scheduler_submit(td_scheduler *s, td_job *job, double *retry_after, tb_error *error)
{
    *retry_after = 0;
    tb_status status = check_job(job, error);
    if (status != TB_OK) return status;
    const int64_t now = td_monotonic_ns();
    job->steps_done = 0;
    job->queued_ns = now;
    job->started_ns = job->finished_ns = job->compute_ns = 0;
    job->waited = false;
    status = check_wanted(job, now, error);
    if (status != TB_OK) {
        td_metrics_add(s->metrics, TD_METRIC_QUEUE_DROPPED, 1);
        return status;
    }

    pthread_mutex_lock(&s->mutex);
    status = admit(s, job, now, retry_after, error);
    const bool wake = status == TB_OK && s->sleeping;
    if (status == TB_OK) {
        if (job->steps > 0) td_queue_note(&s->queue, job, now);
        job->account->jobs++;
        job->account->backlog_ns[job->priority] += td_queue_remaining_ns(&s->queue, job);
        td_queue_push(&s->queue, job);
        s->open++;
        s->unfinished++;
        s->sleeping = false;
        publish_waiting(s);
        atomic_fetch_add_explicit(&s->arrivals, 1, memory_order_release);
    }
    pthread_mutex_unlock(&s->mutex);
    if (wake) pthread_cond_signal(&s->work);
    return status;
}

/* ---- the owner: taking work ---- */

/* Ends a job outside of the mutex. The job is the caller's again when `done` begins. */
static void finish(td_scheduler *s, td_job *job, tb_status status, const tb_error *error)
{
    job->finished_ns = td_monotonic_ns();
    if (job->started_ns == 0) job->started_ns = job->finished_ns;
    td_metrics_observe(s->metrics, TD_HISTOGRAM_QUEUE,
                       1e-9 * (double)(job->started_ns - job->queued_ns));
    if (job->compute_ns > 0)
        td_metrics_observe(s->metrics, TD_HISTOGRAM_COMPUTE, 1e-9 * (double)job->compute_ns);
    job->done(job, status, error);
}

/* Takes a job off the lists and its estimate off its account: under the mutex. */
static double take(td_scheduler *s, td_job *job)
{
    const double remaining = td_queue_remaining_ns(&s->queue, job);
    td_queue_remove(&s->queue, job);
    return remaining;
}

/* What is left of a job that ends will not be done: under the mutex, and before the job is
 * answered, since whoever comes back at once must not be told to wait for it. */
static void unbook(td_account *account, int priority, double backlog_ns)
{
    double *backlog = &account->backlog_ns[priority];
    *backlog = *backlog > backlog_ns ? *backlog - backlog_ns : 0;
}

/* Whose job it was no longer has it: under the mutex. */
static void forget(td_scheduler *s, td_account *account, int priority)
{
    /* nothing is left; rounding may have left something */
    if (--account->jobs == 0) account->backlog_ns[priority] = 0;
    if (--s->unfinished == 0) pthread_cond_broadcast(&s->idle);
}

static td_job *find_leader(td_scheduler *s)
{
    for (int p = TD_PRIORITIES - 1; p >= 0; p--) {
        const td_account *account = td_queue_next(&s->queue, p, NULL);
        if (account != NULL) return account->first[p];
    }
    return NULL;
}

/* A job that nobody wants any longer: answers it. Called with the mutex, which it lets go. */
static void drop(td_scheduler *s, td_job *job, tb_status status, const tb_error *error)
{
    td_account *account = job->account;
    const int priority = (int)job->priority;
    unbook(account, priority, take(s, job));
    s->open--;
    publish_waiting(s);
    pthread_mutex_unlock(&s->mutex);
    if (job->steps_done == 0) td_metrics_add(s->metrics, TD_METRIC_QUEUE_DROPPED, 1);
    finish(s, job, status, error);
    pthread_mutex_lock(&s->mutex);
    forget(s, account, priority);
}

static bool can_join(const td_scheduler *s, const td_job *leader, const td_job *job)
{
    if (job == leader || job->steps == 0) return false;
    if (s->batch.worlds + job->worlds > s->server->config->maximum_batch_worlds) return false;
    const double step_ns = s->batch.step_ns + td_queue_step_ns(&s->queue, job);
    if (step_ns > (double)TD_SLICE_NS * s->threads) return false;
    /* beyond that, company is welcome as long as the leader is done with this slice: else it would
     * dilute the leader's share, and its client's */
    const int32_t left = leader->steps - leader->steps_done;
    if (s->batch.worlds + job->worlds > s->threads &&
        step_ns * left > (double)TD_SLICE_NS * s->threads)
        return false;
    /* those of lower priority may only fill processors that would stand idle */
    if (job->priority < leader->priority && s->batch.worlds + job->worlds > s->threads)
        return false;
    tb_error ignored;
    return check_wanted(job, td_monotonic_ns(), &ignored) == TB_OK &&
           td_options_equal(&leader->options, &job->options);
}

static bool add_to_batch(td_scheduler *s, td_job *job)
{
    const double step_ns = td_queue_step_ns(&s->queue, job);
    if (!td_batch_add(&s->batch, job, step_ns, td_queue_remaining_ns(&s->queue, job))) return false;
    take(s, job);
    return true;
}

/* Fills the batch with the leader and those that can share its launch, in their order. */
static bool gather(td_scheduler *s, td_job *leader)
{
    td_batch_clear(&s->batch);
    if (!add_to_batch(s, leader)) return false;
    for (int p = (int)leader->priority; p >= 0; p--) {
        bool seen[TD_ACCOUNTS] = {false};
        for (td_account *a; (a = td_queue_next(&s->queue, p, seen)) != NULL;) {
            seen[a - s->queue.accounts] = true;
            for (td_job *job = a->first[p], *next; job != NULL; job = next) {
                next = job->next;
                if (can_join(s, leader, job) && !add_to_batch(s, job)) return true;
            }
        }
    }
    return true;
}

/* ---- the owner: working ---- */

static void account_batch(td_scheduler *s, int64_t took_ns)
{
    const int64_t now = td_monotonic_ns();
    const td_batch *batch = &s->batch;
    for (int32_t i = 0; i < batch->jobs; i++) {
        const td_batch_entry *e = &batch->entries[i];
        const double share = batch->step_ns > 0 ? e->step_ns / batch->step_ns : 0;
        td_queue_charge(&s->queue, e->account, (int64_t)((double)took_ns * share), now);
        if (e->finished) {
            forget(s, e->account, e->priority);
            continue;
        }
        double *backlog = &e->account->backlog_ns[e->priority];
        *backlog += td_queue_remaining_ns(&s->queue, e->job) - e->backlog_ns;
        if (*backlog < 0) *backlog = 0;
        td_queue_push(&s->queue, e->job);
    }
}

/* The average over all worlds, for jobs that nobody has measured. */
static void learn(td_scheduler *s)
{
    double step_ns = 0;
    for (int32_t i = 0; i < s->batch.jobs; i++)
        step_ns += (double)s->batch.entries[i].job->step_estimate_ns;
    step_ns /= s->batch.worlds;
    td_queue *q = &s->queue;
    q->step_ns = q->measured == 0 ? step_ns : 0.9 * q->step_ns + 0.1 * step_ns;
    if (q->measured < INT32_MAX) q->measured++;
}

/* Called with the mutex, which is let go while the device works. */
static void run_batch(td_scheduler *s)
{
    td_batch *batch = &s->batch;
    publish_waiting(s);
    pthread_mutex_unlock(&s->mutex);

    const int64_t begin = td_monotonic_ns();
    for (int32_t i = 0; i < batch->jobs; i++)
        if (batch->entries[i].job->started_ns == 0) batch->entries[i].job->started_ns = begin;
    const int64_t took = td_batch_launch(batch, s->metrics);
    if (batch->error.status == TB_ABORTED) atomic_store(&s->server->alive, false);

    /* who is answered may come back at once, and finds its place free */
    pthread_mutex_lock(&s->mutex);
    if (took > 0) learn(s);
    for (int32_t i = 0; i < batch->jobs; i++) {
        const td_batch_entry *e = &batch->entries[i];
        if (!e->finished) continue;
        s->open--;
        unbook(e->account, e->priority, e->backlog_ns);
    }
    pthread_mutex_unlock(&s->mutex);
    for (int32_t i = 0; i < batch->jobs; i++) {
        td_batch_entry *e = &batch->entries[i];
        if (e->finished) finish(s, e->job, e->status, e->status == TB_OK ? NULL : &batch->error);
    }
    pthread_mutex_lock(&s->mutex);
    account_batch(s, took);
    publish_waiting(s);
}

/* The same for a job that works by itself. */
static void run_slice(td_scheduler *s, td_job *job)
{
    td_account *account = job->account;
    const int priority = (int)job->priority;
    const double backlog = take(s, job);
    const int64_t budget = s->queue.waiting > 0 ? 2 * TD_SLICE_NS : TD_SLICE_ALONE_NS;
    job->arrivals = &s->arrivals;
    job->arrivals_seen = atomic_load_explicit(&s->arrivals, memory_order_relaxed);
    publish_waiting(s);
    pthread_mutex_unlock(&s->mutex);

    const int64_t begin = td_monotonic_ns();
    if (job->started_ns == 0) job->started_ns = begin;
    tb_status status = TB_OK;
    tb_error error = {0};
    const bool finished = job->slice(job, budget, &status, &error) || status != TB_OK;
    const int64_t now = td_monotonic_ns();
    job->compute_ns += now - begin;
    if (status == TB_ABORTED) atomic_store(&s->server->alive, false);
    pthread_mutex_lock(&s->mutex);
    if (finished) {
        s->open--;
        unbook(account, priority, backlog);
    }
    pthread_mutex_unlock(&s->mutex);
    if (finished) finish(s, job, status, status == TB_OK ? NULL : &error);

    pthread_mutex_lock(&s->mutex);
    td_queue_charge(&s->queue, account, now - begin, now);
    if (finished)
        forget(s, account, priority);
    else
        td_queue_push(&s->queue, job);
    publish_waiting(s);
}

/* ---- the owner: waiting ---- */

/* Sleeps until something arrives or, if given, a time has come: with the mutex. */
static void sleep_until(td_scheduler *s, int64_t until_ns)
{
    s->sleeping = true;
    if (until_ns == INT64_MAX) {
        while (s->sleeping && !s->ended) pthread_cond_wait(&s->work, &s->mutex);
    } else {
        const struct timespec until = to_timespec(until_ns);
        while (s->sleeping && !s->ended)
            if (pthread_cond_timedwait(&s->work, &s->mutex, &until) == ETIMEDOUT) break;
    }
    s->sleeping = false;
}

/* Looks until something has arrived or it is no longer likely to: without the mutex. */
static void spin(const td_scheduler *s, unsigned seen, int64_t begin)
{
    int64_t limit = 2 * s->idle_ns;
    if (limit > LONGEST_SPIN_NS || limit < SHORTEST_SPIN_NS) limit = SHORTEST_SPIN_NS;
    for (int64_t now = begin; now - begin < limit; now = td_monotonic_ns()) {
        if (atomic_load_explicit(&s->arrivals, memory_order_acquire) != seen) return;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

static void wait_for_work(td_scheduler *s)
{
    /* a client in a loop is back before a sleeping thread would have woken */
    const unsigned seen = atomic_load_explicit(&s->arrivals, memory_order_acquire);
    pthread_mutex_unlock(&s->mutex);
    const int64_t begin = td_monotonic_ns();
    spin(s, seen, begin);
    pthread_mutex_lock(&s->mutex);
    if (s->queue.waiting == 0 && !s->ended) sleep_until(s, INT64_MAX);
    int64_t idle = td_monotonic_ns() - begin;
    if (idle > LONGEST_SPIN_NS) idle = LONGEST_SPIN_NS; /* one pause is not the end of a loop */
    s->idle_ns = (7 * s->idle_ns + idle) / 8;
}

/* Waits for a companion if one is likely to come, if a processor would stand idle without it, and
 * if the wait is short against the work. True if it waited, so that the queue has changed. */
static bool wait_for_companion(td_scheduler *s, td_job *leader)
{
    const int64_t longest = (int64_t)s->server->config->maximum_queue_delay_us * 1000;
    if (longest == 0 || leader->waited || leader->steps == 0 || leader->steps_done > 0 ||
        s->threads < 2 || leader->worlds >= s->threads || s->queue.waiting > 1)
        return false;
    const double half = 0.5 * td_queue_remaining_ns(&s->queue, leader);
    const int64_t limit = half < (double)longest ? (int64_t)half : longest;
    if (limit < SHORTEST_WAIT_NS) return false;
    const int64_t now = td_monotonic_ns();
    const int64_t wait = td_queue_companion_ns(&s->queue, leader, now, limit);
    if (wait == 0) return false;
    leader->waited = true;
    sleep_until(s, now + limit);
    return true;
}

static void fail_waiting(td_scheduler *s)
{
    tb_error error;
    tb_fail(&error, TB_UNAVAILABLE, "the server is stopping");
    for (td_job *job; (job = find_leader(s)) != NULL;) drop(s, job, TB_UNAVAILABLE, &error);
}

static void *own_device(void *context)
{
    td_scheduler *s = context;
    pthread_mutex_lock(&s->mutex);
    while (!s->ended) {
        td_job *leader = find_leader(s);
        if (leader == NULL) {
            wait_for_work(s);
            continue;
        }
        tb_error error;
        const tb_status wanted = check_wanted(leader, td_monotonic_ns(), &error);
        if (wanted != TB_OK) {
            drop(s, leader, wanted, &error);
        } else if (wait_for_companion(s, leader)) {
            continue;
        } else if (leader->steps == 0) {
            run_slice(s, leader);
        } else if (gather(s, leader)) {
            run_batch(s);
        } else {
            tb_fail_memory(&error, sizeof(td_batch_entry), "a batch");
            drop(s, leader, TB_RESOURCE_EXHAUSTED, &error);
        }
    }
    fail_waiting(s);
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

/* ---- its life ---- */

static int32_t choose_threads(const td_config *config)
{
    if (config->threads > 0) return config->threads;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors < 1 ? 1 : processors > 512 ? 512 : (int32_t)processors;
}

static tb_status start(td_scheduler *s, tb_error *error)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->work, &monotonic);
    pthread_cond_init(&s->idle, &monotonic);
    pthread_condattr_destroy(&monotonic);
    const int failed = pthread_create(&s->owner, NULL, own_device, s);
    if (failed == 0) return TB_OK;
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->idle);
    return tb_fail(error, TB_RESOURCE_EXHAUSTED, "no thread for the device: %s", strerror(failed));
}

tb_status td_scheduler_create(td_server *server, td_scheduler **scheduler, tb_error *error)
{
    const td_config *config = server->config;
    *scheduler = NULL;
    td_scheduler *s = calloc(1, sizeof *s);
    if (s == NULL) return tb_fail_memory(error, sizeof *s, "the scheduler");
    s->server = server;
    s->metrics = server->metrics;
    s->threads = choose_threads(config);
    s->queue_length = config->queue_length;
    s->queue.epoch_ns = td_monotonic_ns();
    snprintf(s->device, sizeof s->device, "%d thread%s", s->threads, s->threads == 1 ? "" : "s");
    tb_status status = td_batch_create(&s->batch, s->threads, FIRST_WORLDS, error);
    if (status == TB_OK) {
        status = start(s, error);
        if (status != TB_OK) td_batch_destroy(&s->batch);
    }
    if (status != TB_OK) {
        free(s);
        return status;
    }
    *scheduler = s;
    return TB_OK;
}

int32_t td_scheduler_queued(const td_scheduler *s)
{
    return atomic_load_explicit(&s->waiting, memory_order_relaxed);
}

const char *td_scheduler_device(const td_scheduler *s)
{
    return s->device;
}

bool td_scheduler_drain(td_scheduler *s, double seconds)
{
    const struct timespec until = to_timespec(td_monotonic_ns() + (int64_t)(seconds * 1e9));
    pthread_mutex_lock(&s->mutex);
    while (s->unfinished > 0)
        if (pthread_cond_timedwait(&s->idle, &s->mutex, &until) == ETIMEDOUT) break;
    const bool drained = s->unfinished == 0;
    pthread_mutex_unlock(&s->mutex);
    return drained;
}

void td_scheduler_destroy(td_scheduler *s)
{
    if (s == NULL) return;
    pthread_mutex_lock(&s->mutex);
    s->ended = true;
    pthread_mutex_unlock(&s->mutex);
    atomic_fetch_add(&s->arrivals, 1);
    pthread_cond_signal(&s->work);
    pthread_join(s->owner, NULL);
    td_batch_destroy(&s->batch);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->idle);
    free(s);
}
