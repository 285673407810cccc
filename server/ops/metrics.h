/* Counters, gauges and histograms, written out as Prometheus text. Names and label names are
 * listed once, in metrics.c; updating is lock-free. Base units: seconds and bytes. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tribo.h"

typedef struct td_metrics td_metrics;

/* Plain numbers: id, name, type, help */
#define TD_METRIC_LIST(X)                                                                          \
    X(SESSIONS, "tribod_sessions", gauge, "Sessions open now")                                     \
    X(SESSIONS_CREATED, "tribod_sessions_created_total", counter, "Sessions created")              \
    X(SESSIONS_EXPIRED, "tribod_sessions_expired_total", counter, "Sessions whose lease ran out")  \
    X(WORLD_STEPS, "tribod_world_steps_total", counter, "Steps taken, summed over worlds")         \
    X(BATCHES, "tribod_batches_total", counter, "Batches launched")                                \
    X(BATCHED_REQUESTS, "tribod_batched_requests_total", counter, "Requests in those batches")     \
    X(LEASES, "tribod_leases_total", counter, "Requests done by the thread that read them")        \
    X(NOT_CONVERGED, "tribod_not_converged_total", counter, "Requests above their tolerance")      \
    X(DIVERGED, "tribod_diverged_total", counter, "Worlds that diverged")                          \
    X(QUEUE_LENGTH, "tribod_queue_length", gauge, "Requests waiting for a device")                 \
    X(QUEUE_REFUSED, "tribod_queue_refused_total", counter, "Requests refused by a full queue")    \
    X(QUEUE_DROPPED, "tribod_queue_dropped_total", counter, "Requests dropped past deadline")      \
    X(GRASPS, "tribod_grasps_total", counter, "Grasps evaluated")                                  \
    X(STREAM_SKIPPED, "tribod_stream_skipped_total", counter, "States slow readers missed")        \
    X(DB_QUEUE_LENGTH, "tribod_db_queue_length", gauge, "Writes waiting for the store")            \
    X(DB_DROPPED, "tribod_db_dropped_total", counter, "Step summaries dropped by a full queue")    \
    X(DB_COMMITS, "tribod_db_commits_total", counter, "Transactions committed")                    \
    X(RATE_LIMITED, "tribod_rate_limited_total", counter, "Calls refused by a key's rate")         \
    X(UNAUTHENTICATED, "tribod_unauthenticated_total", counter, "Calls without a valid key")       \
    X(CONNECTIONS_HTTP, "tribod_http_connections", gauge, "HTTP connections open now")             \
    X(CALLS_IN_FLIGHT, "tribod_calls_in_flight", gauge, "Calls being served now")                  \
    X(CHECKPOINTS_FAILED, "tribod_checkpoints_failed_total", counter, "Checkpoints not stored")    \
    X(DESCRIPTORS, "tribod_descriptors", gauge, "Descriptors open now")                            \
    X(DESCRIPTORS_LIMIT, "tribod_descriptors_limit", gauge, "Descriptors that may be open")        \
    X(DB_BYTES, "tribod_db_bytes", gauge, "Size of the store's file")                              \
    X(DB_FAILURES, "tribod_db_failures_total", counter, "Transactions that failed as a whole")     \
    X(DB_FAILING, "tribod_db_failing", gauge, "1: the store cannot be written now")                \
    X(WORKERS_WAITING, "tribod_workers_waiting", gauge, "Jobs waiting for a worker")               \
    X(WORKERS_OLDEST, "tribod_workers_oldest_seconds", gauge, "Age of the oldest of these")        \
    X(UPLOADS_WAITING, "tribod_uploads_waiting", gauge, "Uploads waiting to be parsed")            \
    X(UPLOADS_OLDEST, "tribod_uploads_oldest_seconds", gauge, "Age of the oldest of these")        \
    X(MEMORY_BOOKED, "tribod_memory_booked_bytes", gauge, "Memory of sessions, as estimated")      \
    X(MEMORY_LIMIT, "tribod_memory_limit_bytes", gauge, "Memory that the process may take")        \
    X(CONNECTIONS_DISPLACED, "tribod_connections_displaced_total", counter,                        \
      "Idle connections closed for new ones")                                                      \
    X(CONNECTIONS_GRPC, "tribod_grpc_connections", gauge, "gRPC connections open now")             \
    X(GRPC_ABUSIVE, "tribod_grpc_abusive_total", counter, "gRPC connections ended for floods")     \
    X(OUTBOX_LENGTH, "tribod_outbox_length", gauge, "Rows waiting for the fleet's database")       \
    X(OUTBOX_OLDEST, "tribod_outbox_oldest_seconds", gauge, "Age of the oldest of these")          \
    X(OUTBOX_REFUSED, "tribod_outbox_refused", gauge, "Rows that this database cannot store")      \
    X(OUTBOX_SENT, "tribod_outbox_sent_total", counter, "Rows sent to the fleet's database")       \
    X(OUTBOX_FAILURES, "tribod_outbox_failures_total", counter, "Attempts to send that failed")    \
    X(OUTBOX_SKEW, "tribod_outbox_clock_skew_seconds", gauge,                                      \
      "Clock of this node minus that of the fleet's database")                                     \
    X(SPANS_WAITING, "tribod_spans_waiting", gauge, "Spans waiting for the collector")             \
    X(SPANS_SENT, "tribod_spans_sent_total", counter, "Calls whose spans the collector took")      \
    X(SPANS_DROPPED, "tribod_spans_dropped_total", counter, "Calls whose spans were lost")         \
    X(SPANS_FAILURES, "tribod_spans_failures_total", counter,                                      \
      "Requests that the collector failed")                                                        \
    X(LAST_EXIT, "tribod_last_exit_status", gauge,                                                 \
      "Exit status of the process before, -1: it was killed, -2: there was none")

typedef enum td_metric {
#define TD_METRIC_ENUM(id, name, type, help) TD_METRIC_##id,
    TD_METRIC_LIST(TD_METRIC_ENUM)
#undef TD_METRIC_ENUM
        TD_METRICS
} td_metric;

/* Histograms of seconds, with exponential buckets from 1 us to 100 s. */
#define TD_HISTOGRAM_LIST(X)                                                                       \
    X(QUEUE, "tribod_queue_seconds", "Time a request waited for its device")                       \
    X(COMPUTE, "tribod_compute_seconds", "Time a request was computed")                            \
    X(JOB_QUEUE, "tribod_job_queue_seconds", "Time a job waited for its first slice")              \
    X(JOB_COMPUTE, "tribod_job_compute_seconds", "Time a job was computed, over all slices")       \
    X(COPY, "tribod_copy_seconds", "Time packing and copying results")                             \
    X(COMPILE, "tribod_compile_seconds", "Time compiling a scene")                                 \
    X(DB_COMMIT, "tribod_db_commit_seconds", "Time of a commit")

typedef enum td_histogram {
#define TD_HISTOGRAM_ENUM(id, name, help) TD_HISTOGRAM_##id,
    TD_HISTOGRAM_LIST(TD_HISTOGRAM_ENUM)
#undef TD_HISTOGRAM_ENUM
        TD_HISTOGRAMS
} td_histogram;

tb_status td_metrics_create(td_metrics **, tb_error *);
void td_metrics_destroy(td_metrics *);
void td_metrics_add(td_metrics *, td_metric, int64_t amount);
void td_metrics_set(td_metrics *, td_metric, int64_t value);
int64_t td_metrics_get(const td_metrics *, td_metric);
void td_metrics_observe(td_metrics *, td_histogram, double seconds);
/* One finished call: counted by method ("tribo.v1.Simulation/Step"), transport ("grpc", "http")
 * and status, timed by method. */
void td_metrics_call(td_metrics *, const char *service, const char *method, const char *transport,
                     tb_status, double seconds);
/* Keeps a finished call of a trace as the exemplar of its bucket: the latest one is on the page in
 * OpenMetrics format, so that a slow bucket leads to a trace. Ids as in td_trace. */
void td_metrics_trace(td_metrics *, const char *service, const char *method, const char *transport,
                      double seconds, const char *trace_id, const char *span_id);
/* Called before each page is written, to set gauges that others hold (queue lengths). Set it before
 * the metrics are shared. */
typedef void td_metrics_refresh(void *context);
void td_metrics_on_refresh(td_metrics *, td_metrics_refresh *, void *context);
/* Called at the end of each page to print metrics with their own labels. Set before sharing. */
typedef void td_metrics_print(void *context, FILE *out);
void td_metrics_on_print(td_metrics *, td_metrics_print *, void *context);
/* The whole page in Prometheus's text format, malloc'ed; NULL if out of memory. */
char *td_metrics_text(td_metrics *, size_t *size);
/* The same in OpenMetrics 1.0, with exemplars. */
char *td_metrics_open_metrics(td_metrics *, size_t *size);

#endif
