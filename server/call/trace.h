/* Trace context of a call (W3C Trace Context, level 1): the header `traceparent` that a client sends
 * over gRPC or HTTP joins the daemon's log lines to the client's trace. */
#ifndef SERVER_TRACE_H
#define SERVER_TRACE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct td_trace {
    bool given;         /* the client sent a valid traceparent */
    bool sampled;       /* and records its trace */
    char id[33];        /* of the trace; lower-case hexadecimal, as the two below */
    char parent_id[17]; /* the client's span */
    char span_id[17];   /* the call's own span, random */
} td_trace;

/* Reads a header's value of `size` bytes. The trace is not given where the value is not valid: W3C
 * asks for such a header to be ignored. */
void td_trace_read(td_trace *, const char *value, size_t size);

#endif
