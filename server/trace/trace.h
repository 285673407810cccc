/* Trace context of a call (W3C Trace Context, level 1): the headers `traceparent` and `tracestate`
 * that a client sends over gRPC or HTTP join the daemon's log lines and spans to the client's
 * trace. */
#ifndef SERVER_TRACE_H
#define SERVER_TRACE_H

#include <stdbool.h>
#include <stddef.h>

/* size of tracestate that W3C asks to keep; a longer one is dropped */
enum { TD_TRACE_STATE_BYTES = 512 };

typedef struct td_trace {
    bool given;         /* the client sent a valid traceparent */
    bool sampled;       /* the trace is recorded: the client says so, or it began here (spans.h) */
    char id[33];        /* of the trace; lower-case hexadecimal, as the two below */
    char parent_id[17]; /* the client's span; "": the trace begins here */
    char span_id[17];   /* the call's own span, random */
    char state[TD_TRACE_STATE_BYTES + 1]; /* the client's tracestate, "" if there is none */
} td_trace;

/* Reads traceparent, a header's value of `size` bytes. An invalid value leaves the trace without
 * ids, as W3C requires. */
void td_trace_read(td_trace *, const char *value, size_t size);
/* Reads tracestate; a second header continues the list of the first. A list that is too long or not
 * of printable ASCII is dropped. */
void td_trace_read_state(td_trace *, const char *value, size_t size);

#endif
