/* When `tribo load` has measured long enough. */
#ifndef CLI_LOAD_SETTLE_H
#define CLI_LOAD_SETTLE_H

#include "bench/load.h"

/* The table's figures of a window: calls a second; latencies in s. */
typedef struct load_figures {
    double rate, p50, p90, p99, worst;
    int64_t refused, failed, count;
} load_figures;

load_figures load_summarize(const load_window *);
/* Whether the last three of `count` windows agree within 10 % in throughput and median, each with
 * each. Windows without an answer agree with nothing. */
bool load_settled(const load_figures *windows, int count);

#endif
