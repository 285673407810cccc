/* A job: one piece of work that waits in line, for its session, for a device, or first for one and
 * then for the other.
 *
 * A session runs one job at a time, in the order of arrival: the job has the session's turn, and
 * `run` is called (session/session_turn.c). A device runs a job as its scheduler decides
 * (scheduler.h): step jobs advance worlds, slice jobs (grasps) compute for a few milliseconds at
 * each call. A Step request is one job for both: `run` submits it to the session's device, and
 * `done` answers it while the session's turn is still its own.
 *
 * The creator owns a job, fills the first three parts, and keeps it until `run`, `refuse` or `done`
 * has it back. A job waits in one line at a time, so it has one pair of links. This room passes on
 * the session and the request, and looks into neither. */
#ifndef SERVER_JOB_H
#define SERVER_JOB_H

#include "call/call.h"

typedef enum td_priority { TD_PRIORITY_LOW, TD_PRIORITY_NORMAL, TD_PRIORITY_HIGH } td_priority;

typedef struct td_session td_session;
typedef struct td_job td_job;

struct td_job {
    /* ---- whose it is ---- */
    td_call *call;           /* its deadline and cancellation apply; may be NULL */
    td_request *request;     /* message of the call; NULL: none */
    const td_caller *client; /* for fair share; borrowed */
    td_priority priority;
    /* The thread that brings the job may do it, and call `done`. td_session_enter takes this back
     * when the session's turn is not free. */
    bool at_once;
    bool patient;  /* accepts any wait: streams, jobs that have waited */
    void *context; /* the creator's own */

    /* ---- the turn of a session ---- */
    td_session *session; /* NULL: the job is for a device alone */
    /* Has the turn, and gives it back by td_session_leave, now or later, on any thread. */
    void (*run)(td_job *);
    /* Instead of `run`, when the session has ended or its worlds cannot be loaded. */
    void (*refuse)(td_job *, const tb_error *);
    bool needs_worlds; /* load them first */
    bool light;        /* takes microseconds: may run wherever the turn is given back */

    /* ---- work of a device ---- */
    /* a step job: `worlds` states that no one else touches until done */
    tb_state *const *states;
    int32_t worlds;
    int32_t steps;
    tb_step_options options;
    tb_certificate *certificates; /* worlds; merged over the steps */
    const atomic_bool *stop;      /* true ends the job as CANCELLED; NULL: never */
    /* ns of device time that one step of all worlds takes; 0: unknown. The scheduler learns it and
     * leaves it here, the caller may carry it on to its next job of the same worlds. */
    int64_t step_estimate_ns;
    uint64_t pace; /* the worlds' pace key (pace.h); 0: not recorded */
    /* a slice job (steps == 0): computes for about `budget_ns`, less if td_job_yields is true;
     * returns true when finished. A status other than OK in *status ends it. Runs on the owner
     * thread. */
    bool (*slice)(td_job *, int64_t budget_ns, tb_status *status, tb_error *);
    /* Called once, on the owner thread or, before td_scheduler_submit returns, on the submitter's
     * (`at_once`); with no lock of the scheduler. `status` and `error` say how the job ended. With
     * DEADLINE_EXCEEDED and CANCELLED, `steps_done` has the number of steps taken. Must not
     * block. */
    void (*done)(td_job *);

    /* ---- filled by the session and the scheduler ---- */
    td_job *next, *previous; /* in the line of the session, then of the account */
    tb_status status;
    tb_error error;
    double retry_after; /* s; of a job that was refused */
    int32_t steps_done;
    int64_t queued_ns, started_ns, finished_ns; /* monotonic; compute time is the job's share */
    int64_t compute_ns;
    struct td_account *account;
    bool waited; /* for companions, once */
    /* its part of the present launch */
    double step_ns;    /* its estimate before the launch: its weight in the batch */
    double backlog_ns; /* its booked backlog */
    bool moved;        /* a world of it has made a step */
    int32_t cut;       /* steps that it did not make because nobody waits for it */
    bool finished;
    const atomic_uint *arrivals;
    unsigned arrivals_seen; /* when its slice began */
};

/* True if a slice should end early: another job waits, or this job is cancelled or past its
 * deadline. From any thread that computes for the slice. */
static inline bool td_job_yields(const td_job *job)
{
    return atomic_load_explicit(job->arrivals, memory_order_relaxed) != job->arrivals_seen ||
           (job->call != NULL && atomic_load_explicit(&job->call->gone, memory_order_relaxed));
}

#endif
