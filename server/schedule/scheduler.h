/* The scheduler: one thread at a time has the device, normally its owner thread.
 *
 * If a job allows it (`at_once`), is short, and no job runs or waits, the submitting thread leases
 * the device and computes before td_scheduler_submit returns: for a step of a few microseconds,
 * waking the owner and being woken by its answer takes longer than the step. Jobs that arrive
 * meanwhile queue for the owner.
 *
 * There are two kinds of jobs. Step jobs advance worlds by a number of steps under the same
 * options; waiting step jobs are merged into one batch, which changes no result. Slice jobs
 * (grasps, problem files) compute for a few milliseconds at each call. The owner selects by
 * priority, then by fair share: the client with the least recent device time goes first. The owner
 * checks cancellation and deadlines before launch and between steps. On processors it also ends a long
 * step of a job that is alone in its batch: no world makes that step. A full queue refuses at once and
 * gives a retry time.
 *
 * A step job runs in chunks of about a millisecond, so that jobs with different numbers of steps
 * share batches and no client waits for another client's thousand steps. A slice of a lone job is
 * long, since its threads wait for the slowest at each slice's end, and ends early when another job
 * arrives. A diverged world keeps its state and reports it in its certificate; its job and the
 * other worlds continue. */
#ifndef SERVER_SCHEDULER_H
#define SERVER_SCHEDULER_H

#include "call/auth.h"
#include "ops/daemon.h"
#include "schedule/device.h"
#include "schedule/job.h"

/* For a device of the server, which outlives it; NULL: the processors. */
tb_status td_scheduler_create(td_server *, td_device *, td_scheduler **, tb_error *);
/* Runs everything that a step there may need once over nothing: from a slice of a job of its
 * own. */
tb_status td_scheduler_warm(td_scheduler *, tb_error *);
/* RESOURCE_EXHAUSTED when the queue is full (with `retry_after`), DEADLINE_EXCEEDED when the
 * deadline has passed or cannot be met by the queue's own estimate, UNAVAILABLE when ended. A step
 * job of normal or high priority that would wait longer than td_wait_limit() allows is refused
 * with RESOURCE_EXHAUSTED, too, unless it is `patient`. A refused job has the status, the reason and
 * the retry time, and its `done` is not called; an accepted one may be done and freed before this
 * returns. */
tb_status td_scheduler_submit(td_scheduler *, td_job *);
/* How long a job would wait for the device if it were submitted now, ns. 0 while nothing is
 * known. */
double td_scheduler_wait_ns(td_scheduler *, const td_job *);
/* Restricts the device to its owner thread, as a card requires. Call before the first job. */
void td_scheduler_keep_to_owner(td_scheduler *);
/* How many wait, and a description of the device ("cpu", "2 threads"). */
int32_t td_scheduler_queued(const td_scheduler *);
const char *td_scheduler_device(const td_scheduler *);
int32_t td_scheduler_threads(const td_scheduler *);

/* Totals of a scheduler. */
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

/* On every device, runs all that a step may need and steps a small scene in both precisions, so
 * that first answers are quick; gives up quietly after `seconds`. ABORTED if a device is lost. */
tb_status td_server_warm_up(td_server *, double seconds, tb_error *);

#endif
