/* The scheduler: one thread at a time has the device, as a rule its owner thread.
 *
 * Where a job allows it (`at_once`), is short, and finds nobody working or waiting, the thread that
 * submits it leases the device and does the work before td_scheduler_submit returns: for a step of a
 * few microseconds, waking the owner and being woken by its answer would take longer than the work.
 * Whatever comes meanwhile queues up for the owner.
 *
 * Two kinds of jobs. Step jobs advance worlds by a number of steps under the same options; those
 * that are waiting together are merged into one batch, which changes no result. Slice jobs (grasps,
 * problem files) do a few milliseconds of work of their own at each call. The owner picks by
 * priority, then by fair share: the client that has used the least device time of late goes first.
 * It looks at cancellation and deadlines before launch and between steps. A full queue refuses at
 * once and says when to come back.
 *
 * A step job runs in chunks of about a millisecond, so that jobs with different numbers of steps
 * share batches and nobody waits for somebody else's thousand steps. A slice of a job that is alone
 * is long, since the end of each costs its threads a wait for the last of them, and ends as soon as
 * other work comes. A world that diverges stays where it is and says so in its certificate; its job
 * and its neighbours go on. */
#ifndef SERVER_SCHEDULER_H
#define SERVER_SCHEDULER_H

#include "call/auth.h"
#include "call/call.h"
#include "ops/daemon.h"
#include "schedule/device.h"

typedef enum td_priority { TD_PRIORITY_LOW, TD_PRIORITY_NORMAL, TD_PRIORITY_HIGH } td_priority;

typedef struct td_job td_job;

/* A job. The caller owns it, fills the first part, and must keep it until `done` was called. */
struct td_job {
    td_priority priority;
    const td_caller *client; /* for fair share; borrowed */
    td_call *call;           /* whose deadline and cancellation count; may be NULL */

    /* a step job: `worlds` states that no one else touches until done */
    tb_state *const *states;
    int32_t worlds;
    int32_t steps;
    tb_step_options options;
    tb_certificate *certificates; /* worlds; merged over the steps */
    const atomic_bool *stop;      /* true ends the job as CANCELLED; NULL: never */
    bool at_once;                 /* the submitting thread may do it, and call `done` */
    bool patient;                 /* no wait is too long: streams, and who has waited already */
    /* ns of device time that one step of all worlds takes; 0: unknown. The scheduler learns it and
     * leaves it here, the caller may carry it on to its next job of the same worlds. */
    int64_t step_estimate_ns;
    uint64_t pace; /* what paces know the worlds by (pace.h); 0: nothing is noted */

    /* a slice job (steps == 0): works for about `budget_ns`, and less where td_job_yields says so;
     * true when it is finished. A status other than OK in *status ends it. Runs on the owner
     * thread. */
    bool (*slice)(td_job *, int64_t budget_ns, tb_status *status, tb_error *);

    /* Called once, on the owner thread or, before td_scheduler_submit returns, on the submitter's
     * (`at_once`); with no lock of the scheduler. DEADLINE_EXCEEDED and CANCELLED tell how many steps were
     * taken in `steps_done`. Must not block. */
    void (*done)(td_job *, tb_status, const tb_error *);
    void *context; /* the caller's own */

    /* filled by the scheduler */
    int32_t steps_done;
    int64_t queued_ns, started_ns, finished_ns; /* monotonic; compute time is the job's share */
    int64_t compute_ns;
    td_job *next, *previous;
    struct td_account *account;
    bool waited; /* for companions, once */
    const atomic_uint *arrivals;
    unsigned arrivals_seen; /* when its slice began */
};

/* Whether a slice should end before its time: other work has come, or nobody waits for this job any
 * longer. From any thread that works for the slice. */
static inline bool td_job_yields(const td_job *job)
{
    return atomic_load_explicit(job->arrivals, memory_order_relaxed) != job->arrivals_seen ||
           (job->call != NULL && atomic_load_explicit(&job->call->gone, memory_order_relaxed));
}

/* For a device of the server, which outlives it; NULL: the processors. */
tb_status td_scheduler_create(td_server *, const td_device *, td_scheduler **, tb_error *);
/* Runs everything that a step there may need once over nothing: from a slice of a job of its own. */
tb_status td_scheduler_warm(td_scheduler *, tb_error *);
/* RESOURCE_EXHAUSTED when the queue is full (with *retry_after, s), DEADLINE_EXCEEDED when the
 * deadline has passed or cannot be met by the queue's own estimate, UNAVAILABLE when ended. A step
 * job of normal or high priority that would wait longer than [limits] queue_wait_seconds is refused
 * with RESOURCE_EXHAUSTED, too, unless it is `patient`. */
tb_status td_scheduler_submit(td_scheduler *, td_job *, double *retry_after, tb_error *);
/* How long a job would wait for the device if it were submitted now, ns. 0 while nothing is known. */
double td_scheduler_wait_ns(td_scheduler *, const td_job *);
/* From now on only the owner thread gives the device work, as a card wants it. Before the first
 * job. */
void td_scheduler_keep_to_owner(td_scheduler *);
/* How many wait, and a description of the device ("cpu", "2 threads"). */
int32_t td_scheduler_queued(const td_scheduler *);
const char *td_scheduler_device(const td_scheduler *);
int32_t td_scheduler_threads(const td_scheduler *);

/* What it has done so far. */
typedef struct td_scheduler_use {
    int32_t waiting;
    int64_t jobs;
    double wait_seconds, busy_seconds;
} td_scheduler_use;

td_scheduler_use td_scheduler_measure(td_scheduler *);
/* Waits until no job is left or `seconds` have passed; false in that case. */
bool td_scheduler_drain(td_scheduler *, double seconds);
void td_scheduler_destroy(td_scheduler *);

/* ---- warm_up.c ---- */

/* On every device, runs all that a step may need and steps a small scene in both
 * precisions, so that first answers are quick; gives up quietly after `seconds`. ABORTED if a device
 * is lost. */
tb_status td_server_warm_up(td_server *, double seconds, tb_error *);

#endif
