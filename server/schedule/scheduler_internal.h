/* Declarations shared by the files of the scheduler: the queue with its accounts
 * (scheduler_queue.c), the running batch (scheduler_batch.c), the owner thread over both
 * (scheduler.c), and submitting threads, which may lease the device (scheduler_submit.c). */
#ifndef SERVER_SCHEDULER_INTERNAL_H
#define SERVER_SCHEDULER_INTERNAL_H

#include <pthread.h>

#include "schedule/scheduler.h"

/* Share of device time, by priority, that remains for it under full load of higher priorities. */
extern const double TD_PRIORITY_SHARES[];

enum { TD_PRIORITIES = 3, TD_ACCOUNTS = 256, TD_SUBMITTERS = 16 };

/* How long the device works for one batch or one slice before it looks around again. */
static const int64_t TD_SLICE_NS = 1000000;
/* The same for one slice of a job that yields to others. */
static const int64_t TD_SLICE_ALONE_NS = 50000000;
/* A launch on a card: long against the cost of the launch itself. */
static const int64_t TD_CARD_SLICE_NS = 4000000;
/* Longest computation on a submitter's thread: some ten times a thread switch, so that a longer
 * lease gains little, and short enough for a thread that serves other callers. */
static const int64_t TD_LEASE_NS = 100000;

/* One client's recent use, and its waiting jobs. */
typedef struct td_account {
    char name[TD_CALLER_NAME_SIZE];
    double used; /* ns, grown instead of decayed: see charge */
    td_job *first[TD_PRIORITIES], *last[TD_PRIORITIES];
    double backlog_ns[TD_PRIORITIES]; /* estimated work of jobs in the system */
    int32_t jobs;                     /* waiting or running */
} td_account;

/* A client that submits repeatedly, so that its next submission can be predicted. */
typedef struct td_submitter {
    const void *key; /* its states */
    uint64_t options;
    int64_t last_ns, period_ns;
} td_submitter;

/* ---- the queue: no locks of its own, the scheduler holds its mutex ---- */

typedef struct td_queue {
    td_account accounts[TD_ACCOUNTS];
    int32_t number_of_accounts;
    int32_t waiting;               /* jobs in lists */
    int64_t epoch_ns;              /* usage is counted in the worth of a nanosecond at this time */
    double step_ns;                /* average device time of one step of one world */
    double owed_ns[TD_PRIORITIES]; /* device time owed to jobs that higher priorities overtook */
    int32_t measured;              /* chunks behind that average */
    td_submitter submitters[TD_SUBMITTERS];
} td_queue;

td_account *td_queue_account(td_queue *, const td_caller *);
/* Adds at the end of its account's list. */
void td_queue_push(td_queue *, td_job *);
void td_queue_remove(td_queue *, td_job *);
/* The next account of this priority: the least used with jobs; NULL if there is none. `skip` (may
 * be NULL) marks accounts (by index) to ignore. */
td_account *td_queue_next(td_queue *, int priority, const bool *skip);
/* The next priority: the highest with waiting jobs, except when a lower one is owed its share of
 * the device (TD_PRIORITY_SHARES). -1: the queue is empty. */
int td_queue_priority(const td_queue *);
bool td_queue_waits(const td_queue *, int priority);
/* Books a launch under a leader of this priority: lower priorities that wait are owed their
 * share. */
void td_queue_owe(td_queue *, int priority, int64_t used_ns);
/* Books device time; later use weighs more (half-life of two seconds). */
void td_queue_charge(td_queue *, td_account *, int64_t used_ns, int64_t now_ns);
/* Estimated device time that a job still needs. */
double td_queue_remaining_ns(const td_queue *, const td_job *);
double td_queue_step_ns(const td_queue *, const td_job *);
/* Time until the completion of a job that arrives now: after all jobs of a higher priority, after
 * the fair share of other clients, and after the turns of its own client's jobs. */
double td_queue_completion_ns(const td_queue *, const td_job *, const td_account *, int64_t now_ns);
/* Device time (ns) that the other jobs of the same client and priority take while all take turns:
 * each takes as much as `job` still needs, or the rest of its own work if that is less. */
double td_queue_turns_ns(const td_queue *, const td_job *, const td_account *);
double td_queue_backlog_ns(const td_queue *);
/* td_queue_note records a submission; td_queue_companion_ns returns the time until the next
 * predicted submission of other states with equal options, if at most `limit_ns`, else 0. */
void td_queue_note(td_queue *, const td_job *, int64_t now_ns);
int64_t td_queue_companion_ns(const td_queue *, const td_job *, int64_t now_ns, int64_t limit_ns);
uint64_t td_options_hash(const tb_step_options *);
bool td_options_equal(const tb_step_options *, const tb_step_options *);

/* ---- the batch: of the thread that has the device ---- */

/* A world before a launch that may take it back. */
typedef struct td_saved {
    unsigned char *bytes;
    size_t size;
} td_saved;

typedef struct td_batch {
    td_job **list;
    int32_t jobs, capacity; /* of the list */
    int32_t worlds;
    double step_ns;                /* sum over the jobs */
    tb_stepper *serial, *parallel; /* a card has the second alone */
    int32_t threads;               /* that work side by side; 1: a card is one */
    int32_t packers;               /* threads that pack a card's worlds */
    int64_t slice_ns;              /* a launch's work */
    bool card;
    atomic_uint questions; /* of the solvers, whether to go on */
    atomic_bool unwanted;  /* nobody waits for the only job: its launch ends within the step */
    td_paces *paces;       /* NULL: nothing is noted */
    tb_state **states;     /* of worlds that are launched together, with their results */
    tb_certificate *certificates;
    int64_t *expected; /* step that each state must have reached */
    td_saved *saved;   /* of a launch that can end within its step */
    int32_t worlds_capacity;
} td_batch;

tb_status td_batch_create(td_batch *, const td_device *, int32_t threads, int32_t worlds,
                          tb_error *);
void td_batch_destroy(td_batch *);
void td_batch_clear(td_batch *);
/* False if out of memory. */
bool td_batch_add(td_batch *, td_job *, double step_ns, double backlog_ns);
/* Computes some steps of every job; counts them in steps_done, merges certificates, and sets each
 * job's status and error and whether it is finished. Returns the time it took, ns. */
int64_t td_batch_launch(td_batch *, td_metrics *);

/* ---- the scheduler ---- */

struct td_scheduler {
    td_server *server;
    td_device *own; /* NULL: the processors */
    td_metrics *metrics;
    int32_t threads, queue_length;
    int32_t width; /* worlds that are stepped side by side in the time of one */
    char device[64];
    pthread_t owner;
    pthread_mutex_t mutex;
    pthread_cond_t work, idle; /* monotonic */
    /* under the mutex */
    td_queue queue;
    int32_t open;       /* accepted and not at their end: waiting, or in the launch */
    int32_t unfinished; /* accepted, and `done` has not returned */
    bool held;          /* the device computes, for the owner or a lease */
    bool owner_only;    /* no leases */
    bool sleeping, ended;
    int32_t published;  /* waiting, as the metrics have it */
    int64_t refused_ns; /* when a job was last refused for its wait; 0: never */
    /* read without it */
    atomic_uint arrivals;
    atomic_int waiting;
    atomic_llong jobs_done, wait_ns, busy_ns;
    /* of the thread that has the device */
    td_batch batch;
    /* the owner's */
    int64_t idle_ns; /* average time between the last work and the next */
};

/* OK if the job is still wanted, otherwise CANCELLED or DEADLINE_EXCEEDED. (scheduler_queue.c) */
tb_status td_job_wanted(const td_job *, int64_t now_ns, tb_error *);
/* Longest wait (ns) of an admitted call whose own work takes needed_ns: [limits]
 * queue_wait_seconds, which absorbs a burst. For four times that time after a refusal (refused_ns)
 * the load exceeds the device, and waiting is useless. The limit is then 1.5 times the call's own
 * work, so that its answer comes within 2.5 times the work's duration, but at least a fiftieth of
 * the bound and at most all of it. INT64_MAX: no bound. */
int64_t td_wait_limit(const td_config *, int64_t refused_ns, int64_t now_ns, double needed_ns);
/* Publishes the number of waiting jobs. Caller holds the mutex. */
void td_scheduler_publish(td_scheduler *);
/* Time (ns) for a job that has not begun to wait for companions: 0 unless a companion is likely, a
 * processor would be idle without it, and the wait is short against the job's duration. `others`:
 * further waiting jobs. Caller holds the mutex. (scheduler.c) */
int64_t td_companion_wait(const td_scheduler *, const td_job *, int32_t others, int64_t now_ns);
/* Takes the idle device for a job that is in no list. False if out of memory. Caller holds the
 * mutex. Then the job is booked. td_lease_run, called without the mutex, answers the job, or gives
 * the rest of it to the owner. (scheduler.c) */
bool td_lease_take(td_scheduler *, td_job *);
void td_lease_run(td_scheduler *, td_job *);

#endif
