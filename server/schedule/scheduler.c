/* The scheduler's owner thread, and leases of the device by other threads. See scheduler.h.
 *
 * The owner takes the leader (highest priority, then least used client), gathers jobs that can
 * share its launch, advances them by a slice, answers finished jobs and puts the others at the end
 * of their lists: processor sharing with a granularity of steps. With an empty queue the owner
 * polls for a few microseconds before it sleeps, since a client in a loop submits again at once. */
#include "schedule/scheduler_internal.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/parallel.h"

/* How long the owner looks for work before it sleeps: long only while work has been coming that
 * quickly, so that an idle server burns nothing. */
static const int64_t LONGEST_SPIN_NS = 100000, SHORTEST_SPIN_NS = 5000;
/* A wait for companions that is not worth the while. */
static const int64_t SHORTEST_WAIT_NS = 5000;
/* Initial capacity of a batch in worlds. */
enum { FIRST_WORLDS = 256 };

static struct timespec to_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
                             .tv_nsec = (long)(ns % 1000000000)};
}

/* ---- the owner: taking work ---- */

/* Counts a job that ends, outside of the mutex. `done` follows; with it the job is the creator's
 * again. */
static void count_end(td_scheduler *s, td_job *job)
{
    job->finished_ns = td_monotonic_ns();
    if (job->started_ns == 0) job->started_ns = job->finished_ns;
    const bool slices = job->steps == 0; /* minutes long: a histogram of their own */
    td_metrics_observe(s->metrics, slices ? TD_HISTOGRAM_JOB_QUEUE : TD_HISTOGRAM_QUEUE,
                       1e-9 * (double)(job->started_ns - job->queued_ns));
    if (job->compute_ns > 0)
        td_metrics_observe(s->metrics, slices ? TD_HISTOGRAM_JOB_COMPUTE : TD_HISTOGRAM_COMPUTE,
                           1e-9 * (double)job->compute_ns);
    if (job->call != NULL)
        td_call_worked(job->call, s->own != NULL ? s->own->name : "cpu", job->queued_ns,
                       job->started_ns, job->finished_ns);
    atomic_fetch_add_explicit(&s->jobs_done, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->wait_ns, job->started_ns - job->queued_ns, memory_order_relaxed);
}

/* Takes a job off the lists and its estimate off its account: under the mutex. */
static double take(td_scheduler *s, td_job *job)
{
    const double remaining = td_queue_remaining_ns(&s->queue, job);
    td_queue_remove(&s->queue, job);
    return remaining;
}

/* Removes an ending job with `backlog_ns` of booked work from its account. Caller holds the mutex.
 * Runs before the job's answer, since its client may submit again at once and must not be refused
 * because of it. */
static void close_job(td_scheduler *s, td_job *job, double backlog_ns)
{
    td_account *account = job->account;
    double *backlog = &account->backlog_ns[job->priority];
    *backlog = *backlog > backlog_ns ? *backlog - backlog_ns : 0;
    /* nothing is left; rounding may have left something */
    if (--account->jobs == 0) *backlog = 0;
    s->open--;
}

/* Counts jobs whose `done` has returned. Caller holds the mutex. */
static void count_answered(td_scheduler *s, int32_t jobs)
{
    s->unfinished -= jobs;
    if (jobs > 0 && s->unfinished == 0) pthread_cond_broadcast(&s->idle);
}

static td_job *find_leader(td_scheduler *s)
{
    const int p = td_queue_priority(&s->queue);
    return p >= 0 ? td_queue_next(&s->queue, p, NULL)->first[p] : NULL;
}

/* Answers a job that is cancelled or past its deadline. Caller holds the mutex, which the function
 * releases meanwhile. */
static void drop(td_scheduler *s, td_job *job, tb_status status)
{
    job->status = status;
    close_job(s, job, take(s, job));
    td_scheduler_publish(s);
    pthread_mutex_unlock(&s->mutex);
    if (job->steps_done == 0) td_metrics_add(s->metrics, TD_METRIC_QUEUE_DROPPED, 1);
    count_end(s, job);
    job->done(job);
    pthread_mutex_lock(&s->mutex);
    count_answered(s, 1);
}

static bool can_join(const td_scheduler *s, const td_job *leader, const td_job *job)
{
    if (job == leader || job->steps == 0) return false;
    if (s->batch.worlds + job->worlds > s->server->config->maximum_batch_worlds) return false;
    const double step_ns = s->batch.step_ns + td_queue_step_ns(&s->queue, job);
    const bool beside = s->batch.worlds + job->worlds <= s->width;
    if (!(s->batch.card && beside) && step_ns > (double)TD_SLICE_NS * s->threads) return false;
    /* beyond that, company is welcome as long as the leader is done with this slice: else it would
     * dilute the leader's share, and its client's */
    const int32_t left = leader->steps - leader->steps_done;
    if (!beside && step_ns * left > (double)TD_SLICE_NS * s->threads) return false;
    /* jobs of lower priority may only fill processors that would be idle */
    if (job->priority < leader->priority && !beside) return false;
    tb_error ignored;
    return td_job_wanted(job, td_monotonic_ns(), &ignored) == TB_OK &&
           td_options_equal(&leader->options, &job->options);
}

static bool add_to_batch(td_scheduler *s, td_job *job)
{
    const double step_ns = td_queue_step_ns(&s->queue, job);
    if (!td_batch_add(&s->batch, job, step_ns, td_queue_remaining_ns(&s->queue, job))) return false;
    take(s, job);
    return true;
}

/* Fills the batch with the leader and the jobs that can share its launch, in their order. */
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

static void count_busy(td_scheduler *s, int64_t took_ns)
{
    atomic_fetch_add_explicit(&s->busy_ns, took_ns, memory_order_relaxed);
}

/* Charges the launch to its accounts, closes finished jobs and queues the others again. Caller
 * holds the mutex. */
static void account_batch(td_scheduler *s, int64_t took_ns)
{
    const int64_t now = td_monotonic_ns();
    count_busy(s, took_ns);
    const td_batch *batch = &s->batch;
    td_queue_owe(&s->queue, (int)batch->list[0]->priority, took_ns);
    for (int32_t i = 0; i < batch->jobs; i++) {
        td_job *job = batch->list[i];
        const double share = batch->step_ns > 0 ? job->step_ns / batch->step_ns : 0;
        td_queue_charge(&s->queue, job->account, (int64_t)((double)took_ns * share), now);
        if (job->finished) {
            close_job(s, job, job->backlog_ns);
            continue;
        }
        double *backlog = &job->account->backlog_ns[job->priority];
        *backlog += td_queue_remaining_ns(&s->queue, job) - job->backlog_ns;
        if (*backlog < 0) *backlog = 0;
        td_queue_push(&s->queue, job);
    }
}

/* Averages over all worlds, as an estimate for jobs without a measurement. */
static void learn(td_scheduler *s)
{
    double step_ns = 0;
    for (int32_t i = 0; i < s->batch.jobs; i++)
        step_ns += (double)s->batch.list[i]->step_estimate_ns;
    step_ns /= s->batch.worlds;
    td_queue *q = &s->queue;
    q->step_ns = q->measured == 0 ? step_ns : 0.9 * q->step_ns + 0.1 * step_ns;
    if (q->measured < INT32_MAX) q->measured++;
}

/* Caller holds the mutex, which is released while the device computes. */
static void run_batch(td_scheduler *s)
{
    td_batch *batch = &s->batch;
    td_scheduler_publish(s);
    pthread_mutex_unlock(&s->mutex);

    const int64_t begin = td_monotonic_ns();
    for (int32_t i = 0; i < batch->jobs; i++)
        if (batch->list[i]->started_ns == 0) batch->list[i]->started_ns = begin;
    const int64_t took = td_batch_launch(batch, s->metrics);
    for (int32_t i = 0; i < batch->jobs; i++)
        if (batch->list[i]->status == TB_ABORTED) td_device_lose(s->server, s->own);

    /* an answered client may submit again at once and must find its slot free */
    pthread_mutex_lock(&s->mutex);
    if (took > 0) learn(s);
    account_batch(s, took);
    td_scheduler_publish(s);
    pthread_mutex_unlock(&s->mutex);
    int32_t answered = 0;
    for (int32_t i = 0; i < batch->jobs; i++) {
        td_job *job = batch->list[i];
        if (!job->finished) continue;
        count_end(s, job);
        job->done(job);
        answered++;
    }
    pthread_mutex_lock(&s->mutex);
    count_answered(s, answered);
}

/* The same for a job that works by itself. */
static void run_slice(td_scheduler *s, td_job *job)
{
    const double backlog = take(s, job);
    const int64_t budget = s->queue.waiting > 0 ? 2 * TD_SLICE_NS : TD_SLICE_ALONE_NS;
    job->arrivals = &s->arrivals;
    job->arrivals_seen = atomic_load_explicit(&s->arrivals, memory_order_relaxed);
    td_scheduler_publish(s);
    pthread_mutex_unlock(&s->mutex);

    const int64_t begin = td_monotonic_ns();
    if (job->started_ns == 0) job->started_ns = begin;
    job->status = TB_OK;
    const bool finished =
        job->slice(job, budget, &job->status, &job->error) || job->status != TB_OK;
    const int64_t now = td_monotonic_ns();
    job->compute_ns += now - begin;
    count_busy(s, now - begin);
    if (job->status == TB_ABORTED) td_device_lose(s->server, s->own);
    pthread_mutex_lock(&s->mutex);
    td_queue_charge(&s->queue, job->account, now - begin, now);
    td_queue_owe(&s->queue, (int)job->priority, now - begin);
    if (finished)
        close_job(s, job, backlog);
    else
        td_queue_push(&s->queue, job);
    td_scheduler_publish(s);
    if (!finished) return;
    pthread_mutex_unlock(&s->mutex);
    count_end(s, job);
    job->done(job);
    pthread_mutex_lock(&s->mutex);
    count_answered(s, 1);
}

/* ---- a lease ---- */

/* Frees the device and informs the owner of jobs that arrived meanwhile. Caller holds the mutex.
 * True if the owner must be woken. */
static bool end_lease(td_scheduler *s)
{
    s->held = false;
    const bool wake = s->sleeping && (s->queue.waiting > 0 || s->ended);
    if (wake) s->sleeping = false;
    return wake;
}

bool td_lease_take(td_scheduler *s, td_job *job)
{
    td_batch_clear(&s->batch);
    s->held = td_batch_add(&s->batch, job, td_queue_step_ns(&s->queue, job),
                           td_queue_remaining_ns(&s->queue, job));
    return s->held;
}

/* Frees the device after `took` ns of the leased job. True if the job has finished; otherwise it is
 * the owner's from now on. */
static bool close_lease(td_scheduler *s, td_job *job, int64_t took)
{
    pthread_mutex_lock(&s->mutex);
    if (!job->finished && s->ended) {
        /* no thread would continue it */
        job->status = tb_fail(&job->error, TB_UNAVAILABLE, "the server is stopping");
        job->finished = true;
    }
    const bool finished = job->finished;
    td_metrics_add(s->metrics, TD_METRIC_LEASES, 1);
    if (took > 0) learn(s);
    count_busy(s, took);
    td_queue_charge(&s->queue, job->account, took, td_monotonic_ns());
    if (finished) {
        close_job(s, job, job->backlog_ns);
    } else {
        double *backlog = &job->account->backlog_ns[job->priority];
        *backlog = fmax(*backlog - job->backlog_ns, 0) + td_queue_remaining_ns(&s->queue, job);
        td_queue_push(&s->queue, job);
        td_scheduler_publish(s);
        atomic_fetch_add_explicit(&s->arrivals, 1, memory_order_release);
    }
    const bool wake = end_lease(s);
    pthread_mutex_unlock(&s->mutex);
    if (wake) pthread_cond_signal(&s->work);
    return finished;
}

void td_lease_run(td_scheduler *s, td_job *job)
{
    const int64_t begin = job->started_ns = td_monotonic_ns();
    int64_t took = 0;
    for (;;) {
        took += td_batch_launch(&s->batch, s->metrics);
        if (job->finished) break;
        const int64_t now = td_monotonic_ns();
        job->status = td_job_wanted(job, now, &job->error);
        job->finished = job->status != TB_OK;
        if (job->finished || now - begin > TD_LEASE_NS || atomic_load(&s->waiting) > 0) break;
    }
    if (job->status == TB_ABORTED) td_device_lose(s->server, s->own);
    if (!close_lease(s, job, took)) return;

    /* the device serves others while this thread answers */
    count_end(s, job);
    job->done(job);
    pthread_mutex_lock(&s->mutex);
    count_answered(s, 1);
    pthread_mutex_unlock(&s->mutex);
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

int64_t td_companion_wait(const td_scheduler *s, const td_job *job, int32_t others, int64_t now)
{
    const int64_t longest = (int64_t)s->server->config->maximum_queue_delay_us * 1000;
    if (longest == 0 || s->width < 2 || job->worlds >= s->width || others > 0) return 0;
    const double half = 0.5 * td_queue_remaining_ns(&s->queue, job);
    const int64_t limit = half < (double)longest ? (int64_t)half : longest;
    if (limit < SHORTEST_WAIT_NS) return 0;
    return td_queue_companion_ns(&s->queue, job, now, limit) > 0 ? limit : 0;
}

/* True if it waited, so that the queue has changed. */
static bool wait_for_companion(td_scheduler *s, td_job *leader)
{
    if (leader->waited || leader->steps == 0 || leader->steps_done > 0) return false;
    const int64_t now = td_monotonic_ns();
    const int64_t wait = td_companion_wait(s, leader, s->queue.waiting - 1, now);
    if (wait == 0) return false;
    leader->waited = true;
    sleep_until(s, now + wait);
    return true;
}

/* Waits for the end of the lease. */
static void wait_for_lease(td_scheduler *s)
{
    s->sleeping = true;
    while (s->held) pthread_cond_wait(&s->work, &s->mutex);
    s->sleeping = false;
}

static void fail_waiting(td_scheduler *s)
{
    for (td_job *job; (job = find_leader(s)) != NULL;)
        drop(s, job, tb_fail(&job->error, TB_UNAVAILABLE, "the server is stopping"));
}

static void *own_device(void *context)
{
    td_scheduler *s = context;
    pthread_mutex_lock(&s->mutex);
    while (!s->ended) {
        if (s->held) wait_for_lease(s);
        td_job *leader = find_leader(s);
        if (leader == NULL) {
            wait_for_work(s);
            continue;
        }
        const tb_status wanted = td_job_wanted(leader, td_monotonic_ns(), &leader->error);
        if (wanted != TB_OK) {
            drop(s, leader, wanted);
        } else if (wait_for_companion(s, leader)) {
            continue;
        } else if (leader->steps == 0) {
            s->held = true;
            run_slice(s, leader);
            s->held = false;
        } else if (gather(s, leader)) {
            s->held = true;
            run_batch(s);
            s->held = false;
        } else {
            drop(s, leader, tb_fail_memory(&leader->error, sizeof(td_job *), "a batch"));
        }
    }
    if (s->held) wait_for_lease(s);
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

/* A card is one device whatever its processors: it counts as one thread, and takes some worlds for
 * each of its processors in the time of one. */
static void measure_out(td_scheduler *s, const td_device *device, const td_config *config)
{
    enum { WORLDS_OF_PROCESSOR = 8 };
    s->threads = s->width = choose_threads(config);
    if (device == NULL || device->backend == TB_BACKEND_CPU) {
        snprintf(s->device, sizeof s->device, "%d thread%s", s->threads,
                 s->threads == 1 ? "" : "s");
        return;
    }
    s->threads = 1;
    s->width = WORLDS_OF_PROCESSOR * device->processors;
    s->owner_only = true;
    snprintf(s->device, sizeof s->device, "%.60s", device->description);
}

tb_status td_scheduler_create(td_server *server, td_device *device, td_scheduler **scheduler,
                              tb_error *error)
{
    const td_config *config = server->config;
    *scheduler = NULL;
    td_scheduler *s = calloc(1, sizeof *s);
    if (s == NULL) return tb_fail_memory(error, sizeof *s, "the scheduler");
    s->server = server;
    s->own = device;
    s->metrics = server->metrics;
    measure_out(s, device, config);
    s->queue_length = config->queue_length;
    s->queue.epoch_ns = td_monotonic_ns();
    tb_status status =
        td_batch_create(&s->batch, device, choose_threads(config), FIRST_WORLDS, error);
    s->batch.paces = server->paces;
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

void td_scheduler_keep_to_owner(td_scheduler *s)
{
    pthread_mutex_lock(&s->mutex);
    s->owner_only = true;
    pthread_mutex_unlock(&s->mutex);
}

static void start_thread(void *context, int32_t i, int32_t thread)
{
    (void)context;
    (void)i;
    (void)thread;
}

/* OpenMP ends the process when it cannot start a thread, so all threads start while memory is
 * there. */
tb_status td_scheduler_warm(td_scheduler *s, tb_error *error)
{
    tb_parallel_for(s->threads, 1, s->threads, start_thread, NULL);
    return s->batch.card ? tb_stepper_warm(s->batch.parallel, error) : TB_OK;
}

td_scheduler_use td_scheduler_measure(td_scheduler *s)
{
    return (td_scheduler_use){.waiting = td_scheduler_queued(s),
                              .jobs = atomic_load(&s->jobs_done),
                              .wait_seconds = 1e-9 * (double)atomic_load(&s->wait_ns),
                              .busy_seconds = 1e-9 * (double)atomic_load(&s->busy_ns)};
}

int32_t td_scheduler_threads(const td_scheduler *s)
{
    return s->threads;
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
    /* the leasing thread may still be answering */
    pthread_mutex_lock(&s->mutex);
    while (s->unfinished > 0) pthread_cond_wait(&s->idle, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
    td_batch_destroy(&s->batch);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->idle);
    free(s);
}
