/* The scheduler's queue: lists by client and priority, fair share, estimates.
 *
 * Fair share. Each client's device time is booked, and the client with the least goes first. Only
 * recent use counts. Instead of decaying every account at every look, a booking is weighted by 2^(t
 * / half-life) at its time t; the order of the accounts is the same, and the weights are scaled
 * back to 1 before they grow too large. */
#include "base/error.h"
#include "schedule/scheduler_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double HALF_LIFE_NS = 2e9;
enum { LARGEST_EXPONENT = 100 };

/* Shares that low, normal and high keep under full load of higher priorities. */
const double TD_PRIORITY_SHARES[TD_PRIORITIES] = {0.05, 0.2, 1};

/* A first guess at a step of one world, until one has been measured. */
static const double STEP_GUESS_NS = 20e3;

/* ---- accounts ---- */

static double largest(const td_queue *queue)
{
    double most = 0;
    for (int32_t i = 0; i < queue->number_of_accounts; i++)
        most = fmax(most, queue->accounts[i].used);
    return most;
}

/* The idle account that has used the least; the last one, shared, if none is idle. */
static td_account *recycle(td_queue *queue)
{
    td_account *last = &queue->accounts[TD_ACCOUNTS - 1], *idle = NULL;
    for (td_account *a = queue->accounts; a <= last; a++)
        if (a->jobs == 0 && (idle == NULL || a->used < idle->used)) idle = a;
    if (idle == NULL) return last;
    /* a client must not gain by a dropped account */
    *idle = (td_account){.used = idle->used};
    return idle;
}

td_account *td_queue_account(td_queue *queue, const td_caller *client)
{
    const char *name = client == NULL            ? ""
                       : client->account[0] != 0 ? client->account
                                                 : client->name;
    for (int32_t i = 0; i < queue->number_of_accounts; i++)
        if (strcmp(queue->accounts[i].name, name) == 0) return &queue->accounts[i];
    td_account *account;
    if (queue->number_of_accounts < TD_ACCOUNTS) {
        account = &queue->accounts[queue->number_of_accounts++];
        *account = (td_account){0};
    } else {
        account = recycle(queue);
        if (account->jobs > 0) return account;
    }
    snprintf(account->name, sizeof account->name, "%s", name);
    return account;
}

td_account *td_queue_next(td_queue *queue, int priority, const bool *skip)
{
    td_account *next = NULL;
    for (int32_t i = 0; i < queue->number_of_accounts; i++) {
        td_account *a = &queue->accounts[i];
        if (a->first[priority] == NULL || (skip != NULL && skip[i])) continue;
        if (next == NULL || a->used < next->used) next = a;
    }
    return next;
}

void td_queue_charge(td_queue *queue, td_account *account, int64_t used_ns, int64_t now_ns)
{
    double exponent = (double)(now_ns - queue->epoch_ns) / HALF_LIFE_NS;
    if (exponent > LARGEST_EXPONENT) {
        if (largest(queue) > 0)
            for (int32_t i = 0; i < queue->number_of_accounts; i++)
                queue->accounts[i].used *= exp2(-exponent);
        queue->epoch_ns = now_ns;
        exponent = 0;
    }
    account->used += (double)used_ns * exp2(exponent);
}

/* ---- priorities ---- */

int td_queue_priority(const td_queue *queue)
{
    int highest = -1;
    for (int32_t i = 0; i < queue->number_of_accounts; i++)
        for (int p = TD_PRIORITIES - 1; p > highest; p--)
            if (queue->accounts[i].first[p] != NULL) highest = p;
    /* the lowest that has gone without its share first: others come to theirs soon enough */
    for (int p = 0; p < highest; p++)
        if (queue->owed_ns[p] >= (double)TD_SLICE_NS && td_queue_waits(queue, p)) return p;
    return highest;
}

bool td_queue_waits(const td_queue *queue, int priority)
{
    for (int32_t i = 0; i < queue->number_of_accounts; i++)
        if (queue->accounts[i].first[priority] != NULL) return true;
    return false;
}

void td_queue_owe(td_queue *queue, int priority, int64_t used_ns)
{
    for (int p = 0; p < TD_PRIORITIES; p++) {
        const double share = TD_PRIORITY_SHARES[p];
        double *owed = &queue->owed_ns[p];
        if (p == priority)
            *owed = fmax(*owed - (double)used_ns, 0);
        else if (p < priority && td_queue_waits(queue, p))
            *owed += (double)used_ns * share / (1 - share);
        else if (p < priority)
            *owed = 0; /* no other job waited */
    }
}

/* ---- lists ---- */

void td_queue_push(td_queue *queue, td_job *job)
{
    td_account *a = job->account;
    job->next = NULL;
    job->previous = a->last[job->priority];
    if (job->previous != NULL)
        job->previous->next = job;
    else
        a->first[job->priority] = job;
    a->last[job->priority] = job;
    queue->waiting++;
}

void td_queue_remove(td_queue *queue, td_job *job)
{
    td_account *a = job->account;
    if (job->previous != NULL)
        job->previous->next = job->next;
    else
        a->first[job->priority] = job->next;
    if (job->next != NULL)
        job->next->previous = job->previous;
    else
        a->last[job->priority] = job->previous;
    job->next = job->previous = NULL;
    queue->waiting--;
}

/* ---- estimates ---- */

double td_queue_step_ns(const td_queue *queue, const td_job *job)
{
    if (job->step_estimate_ns > 0) return (double)job->step_estimate_ns;
    return (double)job->worlds * (queue->measured > 0 ? queue->step_ns : STEP_GUESS_NS);
}

double td_queue_remaining_ns(const td_queue *queue, const td_job *job)
{
    if (job->steps == 0) return (double)TD_SLICE_NS; /* unknown; the next slice counts */
    return td_queue_step_ns(queue, job) * (double)(job->steps - job->steps_done);
}

/* Time that the client's other jobs of the same priority take before a job that needs `needed` ns
 * is done. They alternate, a slice each, so none gets more than this one and the slice before
 * it. */
static double own_share_ns(const td_queue *queue, const td_account *account, int priority,
                           double needed)
{
    const double most = needed + (double)TD_SLICE_NS;
    double share = 0, listed = 0;
    for (const td_job *j = account->first[priority]; j != NULL; j = j->next) {
        const double remaining = td_queue_remaining_ns(queue, j);
        share += fmin(remaining, most);
        listed += remaining;
    }
    /* the job of the launch under way is in no list */
    return share + fmin(fmax(account->backlog_ns[priority] - listed, 0), most);
}

double td_queue_turns_ns(const td_queue *queue, const td_job *job, const td_account *account)
{
    const double needed = td_queue_remaining_ns(queue, job);
    double turns = 0;
    int32_t listed = 0;
    for (int p = 0; p < TD_PRIORITIES; p++)
        for (const td_job *j = account->first[p]; j != NULL; j = j->next, listed++)
            if (p == (int)job->priority)
                turns += fmin(td_queue_step_ns(queue, j) * (double)(j->steps > 0 ? j->steps : 1),
                              needed);
    /* the job of the launch under way is in no list */
    return turns + needed * fmax(account->jobs - listed, 0);
}

double td_queue_completion_ns(const td_queue *queue, const td_job *job, const td_account *account,
                              int64_t now_ns)
{
    const int priority = (int)job->priority;
    const double needed = td_queue_remaining_ns(queue, job);
    const double own = needed + own_share_ns(queue, account, priority, needed);
    const double weight = exp2(-(double)(now_ns - queue->epoch_ns) / HALF_LIFE_NS);
    double all = own, above = 0;
    for (int32_t i = 0; i < queue->number_of_accounts; i++) {
        const td_account *a = &queue->accounts[i];
        if (a->jobs == 0) continue;
        for (int p = priority + 1; p < TD_PRIORITIES; p++) above += a->backlog_ns[p];
        if (a == account) continue;
        /* a client with more recent use waits until this client has caught up, and vice versa */
        const double ahead = (a->used - account->used) * weight;
        all += fmin(a->backlog_ns[priority], fmax(own - ahead, 0));
    }
    /* higher priorities take their share and leave this one its own */
    const double share = TD_PRIORITY_SHARES[priority];
    return all + fmin(above, all * (1 - share) / share);
}

double td_queue_backlog_ns(const td_queue *queue)
{
    double sum = 0;
    for (int32_t i = 0; i < queue->number_of_accounts; i++)
        for (int p = 0; p < TD_PRIORITIES; p++) sum += queue->accounts[i].backlog_ns[p];
    return sum;
}

/* ---- prediction of submissions ---- */

void td_queue_note(td_queue *queue, const td_job *job, int64_t now_ns)
{
    td_submitter *oldest = &queue->submitters[0];
    for (int i = 0; i < TD_SUBMITTERS; i++) {
        td_submitter *s = &queue->submitters[i];
        if (s->key == (const void *)job->states) {
            const int64_t period = now_ns - s->last_ns;
            s->period_ns = s->period_ns > 0 ? (3 * s->period_ns + period) / 4 : period;
            s->last_ns = now_ns;
            s->options = td_options_hash(&job->options);
            return;
        }
        if (s->last_ns < oldest->last_ns) oldest = s;
    }
    *oldest = (td_submitter){
        .key = job->states, .options = td_options_hash(&job->options), .last_ns = now_ns};
}

int64_t td_queue_companion_ns(const td_queue *queue, const td_job *job, int64_t now_ns,
                              int64_t limit_ns)
{
    const uint64_t options = td_options_hash(&job->options);
    int64_t soonest = 0;
    for (int i = 0; i < TD_SUBMITTERS; i++) {
        const td_submitter *s = &queue->submitters[i];
        if (s->key == (const void *)job->states || s->period_ns <= 0 || s->options != options)
            continue;
        const int64_t in = s->last_ns + s->period_ns - now_ns;
        if (in > 0 && in <= limit_ns && (soonest == 0 || in < soonest)) soonest = in;
    }
    return soonest;
}

/* ---- options ---- */

/* The fields that decide over a step, but the number of threads, which does not. */
#define OPTIONS(X)                                                                                 \
    X(dt)                                                                                          \
    X(scheme)                                                                                      \
    X(precision)                                                                                   \
    X(recovery_speed)                                                                              \
    X(contact_slop)                                                                                \
    X(speculative_time)                                                                            \
    X(contact_margin)                                                                              \
    X(contact_merge)                                                                               \
    X(closure_tolerance)                                                                           \
    X(closure_slop)                                                                                \
    X(report_energy)                                                                               \
    X(solve.tolerance)                                                                             \
    X(solve.maximum_iterations)                                                                    \
    X(solve.omega)                                                                                 \
    X(solve.r_strategy)                                                                            \
    X(solve.storage)                                                                               \
    X(solve.stop)                                                                                  \
    X(solve.impulse_limit)                                                                         \
    X(solve.as_listed)                                                                             \
    X(solve.colouring)                                                                             \
    X(solve.colours)                                                                               \
    X(solve.warm_start) X(solve.local_solve) X(solve.accelerate) X(solve.maximum_halvings)

bool td_options_equal(const tb_step_options *a, const tb_step_options *b)
{
#define SAME(field) &&a->field == b->field
    return (a->solve.solver == b->solve.solver || strcmp(a->solve.solver, b->solve.solver) == 0)
        OPTIONS(SAME);
#undef SAME
}

uint64_t td_options_hash(const tb_step_options *o)
{
    uint64_t hash = 0xcbf29ce484222325u;
#define MIX(field)                                                                                 \
    {                                                                                              \
        const double x = (double)o->field;                                                         \
        uint64_t word;                                                                             \
        memcpy(&word, &x, sizeof word);                                                            \
        hash = (hash ^ word) * 0x100000001b3u;                                                     \
        hash ^= hash >> 29;                                                                        \
    }
    OPTIONS(MIX)
#undef MIX
    for (const char *c = o->solve.solver; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return hash;
}

/* ---- checks of both the owner and submitters ---- */

tb_status td_job_wanted(const td_job *job, int64_t now, tb_error *error)
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

void td_scheduler_publish(td_scheduler *s)
{
    atomic_store_explicit(&s->waiting, s->queue.waiting, memory_order_relaxed);
    if (s->queue.waiting == s->published) return;
    td_metrics_add(s->metrics, TD_METRIC_QUEUE_LENGTH, s->queue.waiting - s->published);
    s->published = s->queue.waiting;
}
