/* Spans as a message of OTLP (proto/opentelemetry), attributes by OpenTelemetry's semantic
 * conventions for RPC. */
#ifndef SERVER_OTLP_H
#define SERVER_OTLP_H

#include "trace/spans.h"

/* The process in the resource of all its spans. */
typedef struct td_otlp_resource {
    const char *service;  /* service.name */
    const char *instance; /* service.instance.id */
} td_otlp_resource;

/* ExportTraceServiceRequest of `count` spans and their children, malloc'ed; `utc_offset_ns` is UTC
 * less the monotonic clock. NULL without memory. */
uint8_t *td_otlp_pack(const td_otlp_resource *, const td_span *, int32_t count,
                      int64_t utc_offset_ns, size_t *size);
/* Spans that the collector refused, by the body of its answer, with its reason in `message`; 0: none,
 * or no such body. */
int64_t td_otlp_rejected(const uint8_t *body, size_t size, char *message, size_t room);

#endif
