/* A few threads for work that takes milliseconds and must not hold up a transport: compiling a
 * scene, solving a file, hashing a key, packing a large answer. */
#ifndef SERVER_WORKERS_H
#define SERVER_WORKERS_H

#include "tribo.h"

typedef struct td_workers td_workers;

tb_status td_workers_create(int threads, int queue_length, td_workers **, tb_error *);
/* Runs `work(context)` on a worker. RESOURCE_EXHAUSTED when the queue is full. */
tb_status td_workers_post(td_workers *, void (*work)(void *context), void *context, tb_error *);
int td_workers_count(const td_workers *);

typedef struct td_workers_use {
    int waiting;
    double oldest_seconds; /* age of the job that waits longest */
} td_workers_use;

td_workers_use td_workers_measure(td_workers *);
/* Finishes posted jobs, then ends the threads. */
void td_workers_destroy(td_workers *);

#endif
