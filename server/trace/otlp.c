/* See otlp.h. Messages are filled in place, in one block of memory a batch, and packed by the generated
 * code. */
#include "trace/otlp.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/build.h"

#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"

typedef Opentelemetry__Proto__Common__V1__KeyValue key_value;
typedef Opentelemetry__Proto__Common__V1__AnyValue any_value;
typedef Opentelemetry__Proto__Trace__V1__Span otlp_span;
typedef Opentelemetry__Proto__Trace__V1__Status otlp_status;

/* W3C's flag, and OpenTelemetry's two: whether the parent is known to be remote, and that it is. */
enum { SAMPLED = 1, KNOWS_REMOTE = 0x100, REMOTE = 0x200 };
/* of a call: itself, its wait, its computation */
enum { SPANS_OF_A_CALL = 3, MOST_ATTRIBUTES = 8, ID_BYTES = 8, TRACE_BYTES = 16 };

/* ---- attributes ---- */

typedef struct attributes {
    key_value messages[MOST_ATTRIBUTES];
    any_value values[MOST_ATTRIBUTES];
    key_value *pointers[MOST_ATTRIBUTES];
    size_t count;
} attributes;

static any_value *add(attributes *a, const char *key)
{
    any_value *value = &a->values[a->count];
    key_value *message = a->pointers[a->count] = &a->messages[a->count];
    a->count++;
    opentelemetry__proto__common__v1__key_value__init(message);
    opentelemetry__proto__common__v1__any_value__init(value);
    message->key = (char *)(uintptr_t)key;
    message->value = value;
    return value;
}

static void add_text(attributes *a, const char *key, const char *text)
{
    any_value *value = add(a, key);
    value->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
    value->string_value = (char *)(uintptr_t)text;
}

static void add_number(attributes *a, const char *key, int64_t number)
{
    any_value *value = add(a, key);
    value->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE;
    value->int_value = number;
}

/* ---- spans ---- */

typedef struct filled_span {
    otlp_span message;
    otlp_status status;
    attributes attributes;
    uint8_t trace_id[TRACE_BYTES], span_id[ID_BYTES], parent_id[ID_BYTES];
    char name[96];
} filled_span;

typedef struct batch {
    filled_span *spans;
    otlp_span **pointers;
    size_t count;
    int64_t utc_offset_ns;
} batch;

/* The next span of the batch, of the trace of `call`. */
static filled_span *next_span(batch *b, const td_span *call, int64_t start_ns, int64_t end_ns)
{
    filled_span *span = &b->spans[b->count];
    otlp_span *m = b->pointers[b->count++] = &span->message;
    opentelemetry__proto__trace__v1__span__init(m);
    sodium_hex2bin(span->trace_id, TRACE_BYTES, call->trace.id, 2 * (size_t)TRACE_BYTES, NULL, NULL,
                   NULL);
    m->trace_id = (ProtobufCBinaryData){.len = TRACE_BYTES, .data = span->trace_id};
    m->span_id = (ProtobufCBinaryData){.len = ID_BYTES, .data = span->span_id};
    m->name = span->name;
    m->start_time_unix_nano = (uint64_t)(start_ns + b->utc_offset_ns);
    m->end_time_unix_nano = (uint64_t)(end_ns + b->utc_offset_ns);
    m->flags = SAMPLED | KNOWS_REMOTE;
    m->trace_state = (char *)(uintptr_t)call->trace.state;
    return span;
}

static void set_parent(filled_span *span, const uint8_t id[ID_BYTES])
{
    memcpy(span->parent_id, id, ID_BYTES);
    span->message.parent_span_id = (ProtobufCBinaryData){.len = ID_BYTES, .data = span->parent_id};
}

static void set_attributes(filled_span *span)
{
    span->message.attributes = span->attributes.pointers;
    span->message.n_attributes = span->attributes.count;
}

/* Whether the fault is the server's, by the conventions for spans of a gRPC server. */
static bool is_fault(int code)
{
    enum {
        UNKNOWN = 2,
        DEADLINE_EXCEEDED = 4,
        UNIMPLEMENTED = 12,
        INTERNAL = 13,
        UNAVAILABLE = 14,
        DATA_LOSS = 15
    };
    return code == UNKNOWN || code == DEADLINE_EXCEEDED || code == UNIMPLEMENTED ||
           code == INTERNAL || code == UNAVAILABLE || code == DATA_LOSS;
}

static void fill_call(batch *b, const td_span *call)
{
    filled_span *span = next_span(b, call, call->start_ns, call->end_ns);
    attributes *a = &span->attributes;
    snprintf(span->name, sizeof span->name, "%s/%s", call->service, call->method);
    sodium_hex2bin(span->span_id, ID_BYTES, call->trace.span_id, 2 * (size_t)ID_BYTES, NULL, NULL,
                   NULL);
    span->message.kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_SERVER;
    if (call->trace.parent_id[0] != '\0') {
        uint8_t parent[ID_BYTES];
        sodium_hex2bin(parent, ID_BYTES, call->trace.parent_id, 2 * (size_t)ID_BYTES, NULL, NULL,
                       NULL);
        set_parent(span, parent);
        span->message.flags |= REMOTE;
    }

    const int code = tb_status_grpc(call->status);
    const bool http = strcmp(call->transport, "http") == 0;
    add_text(a, "rpc.system", http ? "connect_rpc" : "grpc");
    add_text(a, "rpc.service", call->service);
    add_text(a, "rpc.method", call->method);
    if (!http) add_number(a, "rpc.grpc.status_code", code);
    add_text(a, "tribod.status", tb_status_name(call->status));
    add_text(a, "network.peer.address", call->peer);
    if (call->device != NULL) add_text(a, "tribod.device", call->device);
    set_attributes(span);
    opentelemetry__proto__trace__v1__status__init(&span->status);
    if (is_fault(code)) {
        span->status.code = OPENTELEMETRY__PROTO__TRACE__V1__STATUS__STATUS_CODE__STATUS_CODE_ERROR;
        span->status.message = (char *)(uintptr_t)tb_status_text(call->status);
        span->message.status = &span->status;
    }
}

/* A part of the call, as its child. */
static void fill_part(batch *b, const td_span *call, const filled_span *parent, const char *name,
                      int64_t start_ns, int64_t end_ns)
{
    filled_span *span = next_span(b, call, start_ns, end_ns);
    snprintf(span->name, sizeof span->name, "%s", name);
    span->message.kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_INTERNAL;
    randombytes_buf(span->span_id, ID_BYTES);
    set_parent(span, parent->span_id);
    add_text(&span->attributes, "tribod.device", call->device);
    set_attributes(span);
}

static void fill(batch *b, const td_span *call)
{
    const filled_span *parent = &b->spans[b->count];
    fill_call(b, call);
    if (call->device == NULL) return;
    fill_part(b, call, parent, "wait for device", call->queued_ns, call->started_ns);
    fill_part(b, call, parent, "compute", call->started_ns, call->finished_ns);
}

uint8_t *td_otlp_pack(const td_otlp_resource *resource, const td_span *spans, int32_t count,
                      int64_t utc_offset_ns, size_t *size)
{
    const size_t most = (size_t)count * SPANS_OF_A_CALL;
    batch b = {.spans = calloc(most, sizeof *b.spans),
               .pointers = calloc(most, sizeof(otlp_span *)),
               .utc_offset_ns = utc_offset_ns};
    uint8_t *packed = NULL;
    attributes process = {.count = 0};
    if (b.spans == NULL || b.pointers == NULL) goto done;
    for (int32_t i = 0; i < count; i++) fill(&b, &spans[i]);

    add_text(&process, "service.name", resource->service);
    add_text(&process, "service.version", TB_VERSION);
    add_text(&process, "service.instance.id", resource->instance);
    Opentelemetry__Proto__Resource__V1__Resource owner =
        OPENTELEMETRY__PROTO__RESOURCE__V1__RESOURCE__INIT;
    owner.attributes = process.pointers;
    owner.n_attributes = process.count;

    Opentelemetry__Proto__Common__V1__InstrumentationScope scope =
        OPENTELEMETRY__PROTO__COMMON__V1__INSTRUMENTATION_SCOPE__INIT;
    scope.name = "tribod";
    scope.version = (char *)(uintptr_t)td_build();
    Opentelemetry__Proto__Trace__V1__ScopeSpans of_scope =
        OPENTELEMETRY__PROTO__TRACE__V1__SCOPE_SPANS__INIT;
    of_scope.scope = &scope;
    of_scope.spans = b.pointers;
    of_scope.n_spans = b.count;

    Opentelemetry__Proto__Trace__V1__ScopeSpans *scopes[] = {&of_scope};
    Opentelemetry__Proto__Trace__V1__ResourceSpans of_process =
        OPENTELEMETRY__PROTO__TRACE__V1__RESOURCE_SPANS__INIT;
    of_process.resource = &owner;
    of_process.scope_spans = scopes;
    of_process.n_scope_spans = 1;
    Opentelemetry__Proto__Trace__V1__ResourceSpans *processes[] = {&of_process};
    Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest request =
        OPENTELEMETRY__PROTO__COLLECTOR__TRACE__V1__EXPORT_TRACE_SERVICE_REQUEST__INIT;
    request.resource_spans = processes;
    request.n_resource_spans = 1;

    *size = protobuf_c_message_get_packed_size(&request.base);
    packed = malloc(*size);
    if (packed != NULL) protobuf_c_message_pack(&request.base, packed);
done:
    free(b.spans);
    free(b.pointers);
    return packed;
}

int64_t td_otlp_rejected(const uint8_t *body, size_t size, char *message, size_t room)
{
    Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceResponse *answer =
        opentelemetry__proto__collector__trace__v1__export_trace_service_response__unpack(
            NULL, size, body);
    int64_t rejected = 0;
    message[0] = '\0';
    if (answer == NULL) return 0;
    if (answer->partial_success != NULL) {
        rejected = answer->partial_success->rejected_spans;
        snprintf(message, room, "%s", answer->partial_success->error_message);
    }
    opentelemetry__proto__collector__trace__v1__export_trace_service_response__free_unpacked(answer,
                                                                                             NULL);
    return rejected > 0 ? rejected : 0;
}
