/* What the files of the scheduler share: the queue with its accounts (scheduler_queue.c), the batch
 * that is being computed (scheduler_batch.c), and the owner thread over both (scheduler.c). */
#ifndef SERVER_SCHEDULER_INTERNAL_H
#define SERVER_SCHEDULER_INTERNAL_H

#include "scheduler.h"

enum { TD_PRIORITIES = 3, TD_ACCOUNTS = 256, TD_SUBMITTERS = 16 };

/* How long the device works for one batch or one slice before it looks around again. */
static const int64_t TD_SLICE_NS = 1000000;
/* The same for one slice of a job that yields to others. */
static const int64_t TD_SLICE_ALONE_NS = 50000000;

/* What one client has used of late, and its jobs that wait. */
typedef struct td_account {
    char name[TD_CALLER_NAME_SIZE];
    double used; /* ns, grown instead of decayed: see charge */
    td_job *first[TD_PRIORITIES], *last[TD_PRIORITIES];
    double backlog_ns[TD_PRIORITIES]; /* estimated work of jobs in the system */
    int32_t jobs;                     /* waiting or running */
} td_account;

/* Someone who submits again and again, so that the next time can be foretold. */
typedef struct td_submitter {
    const void *key; /* its states */
    uint64_t options;
    int64_t last_ns, period_ns;
} td_submitter;

/* ---- the queue: no locks of its own, the scheduler holds its mutex ---- */

typedef struct td_queue {
    td_account accounts[TD_ACCOUNTS];
    int32_t number_of_accounts;
    int32_t waiting;  /* jobs in lists */
    int64_t epoch_ns; /* usage is counted in the worth of a nanosecond at this time */
    double step_ns;   /* average device time of one step of one world */
    int32_t measured; /* chunks behind that average */
    td_submitter submitters[TD_SUBMITTERS];
} td_queue;

td_account *td_queue_account(td_queue *, const td_caller *);
/* Adds at the end of its account's list. */
void td_queue_push(td_queue *, td_job *);
void td_queue_remove(td_queue *, td_job *);
/* The account whose turn it is at this priority: the least used with jobs; NULL if there is none.
 * `skip` (may be NULL) says which accounts (by index) not to look at. */
td_account *td_queue_next(td_queue *, int priority, const bool *skip);
/* Books device time; later use weighs more (half-life of two seconds). */
void td_queue_charge(td_queue *, td_account *, int64_t used_ns, int64_t now_ns);
/* Estimated device time that a job still needs. */
double td_queue_remaining_ns(const td_queue *, const td_job *);
double td_queue_step_ns(const td_queue *, const td_job *);
/* When a job that arrived now would be done, from now on, under fair sharing. */
double td_queue_completion_ns(const td_queue *, const td_job *, const td_account *);
double td_queue_backlog_ns(const td_queue *);
/* Remembers a submission; how long the next one of somebody else with equal options is likely to
 * take, if that is below `limit_ns`, else 0. */
void td_queue_note(td_queue *, const td_job *, int64_t now_ns);
int64_t td_queue_companion_ns(const td_queue *, const td_job *, int64_t now_ns, int64_t limit_ns);
uint64_t td_options_hash(const tb_step_options *);
bool td_options_equal(const tb_step_options *, const tb_step_options *);

/* ---- the batch: the owner thread's alone ---- */

typedef struct td_batch_entry {
    td_job *job;
    td_account *account;
    double step_ns;    /* its estimate before the launch: its weight in the batch */
    double backlog_ns; /* what it was booked with */
    int priority;
    tb_status status; /* of the launch */
    bool finished;
} td_batch_entry;

typedef struct td_batch {
    td_batch_entry *entries;
    int32_t jobs, capacity;
    int32_t worlds;
    double step_ns; /* sum over the entries */
    tb_stepper *serial, *parallel;
    int32_t threads;
    tb_state **states; /* of a parallel launch, with what comes back */
    tb_certificate *certificates;
    int64_t *expected; /* step that each state must have reached */
    int32_t worlds_capacity;
    tb_error error; /* of the first entry that failed */
} td_batch;

tb_status td_batch_create(td_batch *, int32_t threads, int32_t worlds, tb_error *);
void td_batch_destroy(td_batch *);
void td_batch_clear(td_batch *);
/* False without memory. */
bool td_batch_add(td_batch *, td_job *, double step_ns, double backlog_ns);
/* Computes some steps of every entry; counts them in the jobs' steps_done, merges certificates,
 * and sets each entry's status and whether it is finished. Returns the time it took, ns. */
int64_t td_batch_launch(td_batch *, td_metrics *);

#endif
