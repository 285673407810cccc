/* A pool of threads for long work of callers: parsing and compiling scenes, decoding large bodies.
 *
 * The queue is bounded for each caller and as a whole. Callers alternate: the next job is from the
 * caller with the fewest running jobs, and among these from the caller served longest ago. The
 * threads may have a lower priority than all others of the process, so that parsing leaves the
 * processors to steps and reads. */
#ifndef SERVER_POOL_H
#define SERVER_POOL_H

#include <stdint.h>

#include "tribo.h"

typedef struct td_pool td_pool;

enum { TD_POOL_CALLER_SIZE = 64 };

typedef struct td_pool_options {
    const char *name;                 /* of its threads; at most 15 bytes */
    int32_t threads;                  /* 1 or more */
    int32_t queue_length, per_caller; /* jobs that wait, in all and of one caller */
    int niceness;                     /* of the threads, on top of the process's: 0 to 19 */
} td_pool_options;

tb_status td_pool_create(const td_pool_options *, td_pool **, tb_error *);
/* Runs `work` on a thread of the pool. `caller` is copied. RESOURCE_EXHAUSTED: too many jobs wait;
 * the message names the exceeded queue. */
tb_status td_pool_post(td_pool *, const char *caller, void (*work)(void *context), void *context,
                       tb_error *);

typedef struct td_pool_use {
    int32_t waiting, running;
    double oldest_seconds; /* age of the job that waits longest */
} td_pool_use;

td_pool_use td_pool_measure(td_pool *);
/* Runs queued jobs, then ends the threads; later posts get UNAVAILABLE. NULL is fine. */
void td_pool_stop(td_pool *);
/* The same, and frees it. */
void td_pool_destroy(td_pool *);

#endif
