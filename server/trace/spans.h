/* Spans of calls, sent to a collector by OTLP/HTTP (option [otlp] endpoint).
 *
 * A call that ends leaves its span in a queue of fixed size, and never waits: a span that finds the
 * queue full is dropped and counted. A thread takes spans in batches, at most a second after they came,
 * and posts them. A batch that the collector cannot take now is tried again, at first after a
 * second, at last every 30 s, and dropped after a minute; the log has the failure and the recovery
 * once.
 *
 * A trace that a client records (flag `sampled` of traceparent) has the call's span, and a share
 * [otlp] root_ratio of the calls without traceparent begins a trace. A span that waited for a device
 * or was computed by one has children for both. */
#ifndef SERVER_SPANS_H
#define SERVER_SPANS_H

#include "ops/config.h"
#include "ops/log.h"
#include "ops/metrics.h"
#include "trace/trace.h"

typedef struct td_spans td_spans;

/* A call that ended. Texts that are pointers live as long as the daemon. */
typedef struct td_span {
    td_trace trace; /* sampled */
    const char *service, *method, *transport;
    tb_status status;
    int64_t start_ns, end_ns;                   /* monotonic, as the times below */
    int64_t queued_ns, started_ns, finished_ns; /* of its device's job; 0: there was none */
    const char *device;
    char peer[64];
} td_span;

/* Starts the thread that sends; *created is NULL without an endpoint. INVALID_ARGUMENT and NOT_FOUND
 * as td_post_create, and for a wrong OTEL_EXPORTER_OTLP_HEADERS in the environment. */
tb_status td_spans_create(const td_config *, td_log *, td_metrics *, td_spans **created,
                          tb_error *);
/* Sends the queued spans, for a second at most, and ends the thread. */
void td_spans_destroy(td_spans *);

/* Starts a trace in a share of the calls without one, and sets `sampled`. NULL spans: none. */
void td_spans_begin(td_spans *, td_trace *);
/* Takes a copy of a span, or drops it. */
void td_spans_add(td_spans *, const td_span *);
/* Spans in the queue; 0 for NULL. */
int64_t td_spans_waiting(const td_spans *);

#endif
