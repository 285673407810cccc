/* Submitting: admits a job, and either queues it or leases the device for it.
 *
 * Normally a job is queued and the owner is woken. That costs two thread switches, to the owner and
 * back with the answer, several times a step of a small world. A submitter that allows it therefore
 * leases an idle device for a short job and computes on its own thread, which has just read the
 * request and will write the answer. Jobs that arrive meanwhile queue, and the owner finds them
 * when the lease ends: merging, order and shares are those of a busy device. */
#include "base/error.h"
#include "schedule/scheduler_internal.h"

/* Launches measured before estimates may refuse a job. */
enum { TRUSTED_MEASUREMENTS = 16 };

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

static double retry_seconds(const td_queue *queue)
{
    const double half = 0.5e-9 * td_queue_backlog_ns(queue);
    return half < 1e-3 ? 1e-3 : half > 30 ? 30 : half;
}

int64_t td_wait_limit(const td_config *config, int64_t refused_ns, int64_t now, double needed_ns)
{
    static const double WORK_PART = 1.5, BOUND_PART = 0.02, REMEMBERED = 4;
    const double bound = 1e9 * config->queue_wait_seconds;
    if (bound <= 0 || bound >= (double)INT64_MAX) return INT64_MAX;
    if ((double)(now - refused_ns) > REMEMBERED * bound) return (int64_t)bound;
    const double least = BOUND_PART * bound, wanted = WORK_PART * needed_ns;
    const double limit = wanted > least ? wanted : least;
    return (int64_t)(limit < bound ? limit : bound);
}

/* Refuses a job that would wait too long, by the estimate of its completion. Caller holds the mutex. */
static tb_status check_wait(td_scheduler *s, td_job *job, double completion_ns, int64_t now)
{
    if (job->patient || job->steps == 0 || job->priority == TD_PRIORITY_LOW) return TB_OK;
    const double own = td_queue_remaining_ns(&s->queue, job);
    /* later jobs take turns with this job, too: the estimate takes as many as wait now */
    const int32_t beside = s->width > job->worlds ? s->width / job->worlds : 1;
    const double turns = td_queue_turns_ns(&s->queue, job, job->account) / beside;
    const double wait = completion_ns - own > turns ? completion_ns - own : turns;
    const double limit = (double)td_wait_limit(s->server->config, s->refused_ns, now, own);
    if (wait <= limit) return TB_OK;
    s->refused_ns = now;
    job->retry_after = 1e-9 * (wait - 0.5 * limit);
    td_metrics_add(s->metrics, TD_METRIC_QUEUE_REFUSED, 1);
    return tb_fail(&job->error, TB_RESOURCE_EXHAUSTED,
                   "the call would wait about %.3g s for the device, at most %.3g s are allowed; "
                   "come back in %.3g s",
                   1e-9 * wait, 1e-9 * limit, job->retry_after);
}

double td_scheduler_wait_ns(td_scheduler *s, const td_job *job)
{
    double wait = 0;
    pthread_mutex_lock(&s->mutex);
    if (s->queue.measured >= TRUSTED_MEASUREMENTS && s->queue.waiting > 0) {
        const td_account *account = td_queue_account(&s->queue, job->client);
        wait = td_queue_completion_ns(&s->queue, job, account, td_monotonic_ns()) -
               td_queue_remaining_ns(&s->queue, job);
    }
    pthread_mutex_unlock(&s->mutex);
    return wait > 0 ? wait : 0;
}

/* Checks the queue's free slots and the estimated wait. Caller holds the mutex. */
static tb_status admit(td_scheduler *s, td_job *job, int64_t now)
{
    tb_error *error = &job->error;
    if (s->ended) return tb_fail(error, TB_UNAVAILABLE, "the scheduler has ended");
    job->account = td_queue_account(&s->queue, job->client);

    /* Jobs between two slices count as waiting, like jobs that have not begun: a launch takes many,
     * and counting only the jobs left behind would set no bound. A client with no waiting job may
     * pass a queue that others have filled. */
    const int32_t waiting = s->open - s->threads;
    const int32_t limit = job->account->jobs > 0 ? s->queue_length : s->queue_length + TD_ACCOUNTS;
    if (waiting >= limit) {
        job->retry_after = retry_seconds(&s->queue);
        td_metrics_add(s->metrics, TD_METRIC_QUEUE_REFUSED, 1);
        return tb_fail(error, TB_RESOURCE_EXHAUSTED,
                       "%d requests wait for the device, the queue takes %d; come back in %.3g s",
                       waiting, s->queue_length, job->retry_after);
    }
    if (s->queue.measured < TRUSTED_MEASUREMENTS) return TB_OK;
    const double needed = td_queue_completion_ns(&s->queue, job, job->account, now);
    const int64_t deadline = job->call != NULL ? job->call->deadline_ns : INT64_MAX;
    if (deadline == INT64_MAX || needed <= (double)(deadline - now))
        return check_wait(s, job, needed, now);
    td_metrics_add(s->metrics, TD_METRIC_QUEUE_DROPPED, 1);
    job->retry_after = retry_seconds(&s->queue);
    return tb_fail(error, TB_DEADLINE_EXCEEDED,
                   "the deadline leaves %.3g s, waiting and stepping would take about %.3g s",
                   1e-9 * (double)(job->call->deadline_ns - now), 1e-9 * needed);
}

/* Whether the submitter may lease the device for this job. Caller holds the mutex. */
static bool may_lease(const td_scheduler *s, const td_job *job, int64_t now)
{
    if (!job->at_once || s->held || s->owner_only || s->queue.waiting > 0) return false;
    if (job->steps == 0 || job->step_estimate_ns <= 0 || job->priority == TD_PRIORITY_LOW)
        return false;
    return td_queue_remaining_ns(&s->queue, job) <= (double)TD_LEASE_NS &&
           td_companion_wait(s, job, 0, now) == 0;
}

/* Adds an admitted job to its account and to the counts. Caller holds the mutex. */
static void book(td_scheduler *s, td_job *job, int64_t now)
{
    if (job->steps > 0) td_queue_note(&s->queue, job, now);
    job->account->jobs++;
    job->account->backlog_ns[job->priority] += td_queue_remaining_ns(&s->queue, job);
    s->open++;
    s->unfinished++;
}

/* Queues the job for the owner. Caller holds the mutex. True if the owner must be woken; while the
 * device is leased, the end of the lease wakes it. */
static bool enqueue(td_scheduler *s, td_job *job)
{
    const bool wake = s->sleeping && !s->held;
    td_queue_push(&s->queue, job);
    if (wake) s->sleeping = false;
    td_scheduler_publish(s);
    atomic_fetch_add_explicit(&s->arrivals, 1, memory_order_release);
    return wake;
}

tb_status td_scheduler_submit(td_scheduler *s, td_job *job)
{
    job->retry_after = 0;
    job->error.status = TB_OK;
    tb_status status = job->status = check_job(job, &job->error);
    if (status != TB_OK) return status;
    const int64_t now = td_monotonic_ns();
    job->steps_done = 0;
    job->queued_ns = now;
    job->started_ns = job->finished_ns = job->compute_ns = 0;
    job->waited = false;
    status = job->status = td_job_wanted(job, now, &job->error);
    if (status != TB_OK) {
        td_metrics_add(s->metrics, TD_METRIC_QUEUE_DROPPED, 1);
        return status;
    }

    pthread_mutex_lock(&s->mutex);
    status = job->status = admit(s, job, now);
    bool lease = false, wake = false;
    if (status == TB_OK) {
        lease = may_lease(s, job, now) && td_lease_take(s, job);
        book(s, job, now);
        if (!lease) wake = enqueue(s, job);
    }
    pthread_mutex_unlock(&s->mutex);
    if (lease) td_lease_run(s, job);
    if (wake) pthread_cond_signal(&s->work);
    return status;
}
