/* Load on a daemon: callers with their own threads and sessions step as fast as answers come
 * (closed loop) or at fixed times regardless of answers (open loop). */
#ifndef CLI_LOAD_H
#define CLI_LOAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "tribo_client.h"

typedef enum load_method {
    LOAD_STEP,   /* unary Step */
    LOAD_STREAM, /* StepStream, one in flight at a time */
    LOAD_INFO    /* GetServerInfo: the wire alone */
} load_method;

typedef struct load_plan {
    const char *scene_id;
    load_method method;
    int32_t callers, worlds, steps;
    double rate; /* calls a second of all callers together; 0: closed loop */
} load_plan;

/* Latencies of one window in s, sorted. In an open loop they count from the time at which the call
 * was due, so that a daemon that stalls does not hide the calls that it held up. */
typedef struct load_window {
    double *latencies;
    int64_t count, refused, failed;
    double seconds;
} load_window;

typedef struct load load;

/* Opens the sessions and starts the callers. */
tb_status load_start(tbc_client *, const load_plan *, load **, tb_error *);
/* Measures for `seconds`. Free the latencies by load_window_free. */
tb_status load_measure(load *, double seconds, load_window *, tb_error *);
void load_window_free(load_window *);
/* The q-th quantile, 0 to 1; 0 of an empty window. */
double load_quantile(const load_window *, double q);
/* Stops the callers and deletes the sessions. */
void load_stop(load *);

#endif
