/* The life of a call, whatever transport carries it: counted, begun, cancelled, ended once. */
#include "call/call.h"

#include <string.h>

#include "base/error.h"
#include "call/auth.h"
#include "ops/daemon.h"
#include "trace/spans.h"

/* Stages of a call. It leaves FRESH once, to BEGUN (the method got a message) or CANCELLED. */
enum { STAGE_FRESH, STAGE_BEGUN, STAGE_CANCELLED };

void td_call_init(td_call *call, const td_call_transport *transport, td_server *server)
{
    memset(call, 0, sizeof *call);
    call->transport = transport;
    call->server = server;
    call->arrival_ns = td_monotonic_ns();
    call->deadline_ns = INT64_MAX;
    call->at_leisure = true;
    atomic_init(&call->references, 1);
    atomic_init(&call->queued, 0);
    atomic_init(&call->gone, false);
    atomic_init(&call->finished, false);
    atomic_init(&call->stage, STAGE_FRESH);
    atomic_init(&call->work.queued_ns, 0);
    atomic_init(&call->work.started_ns, 0);
    atomic_init(&call->work.finished_ns, 0);
    atomic_init(&call->work.device, NULL);
}

void td_call_hold(td_call *call)
{
    atomic_fetch_add_explicit(&call->references, 1, memory_order_relaxed);
}

void td_call_release(td_call *call)
{
    if (atomic_fetch_sub_explicit(&call->references, 1, memory_order_acq_rel) != 1) return;
    if (call->destroy_state != NULL) call->destroy_state(call->state);
    call->transport->destroy(call);
}

/* Counts one more message for the transport; false if the client takes none any more. */
static bool count_message(td_call *call)
{
    if (atomic_load(&call->gone) || atomic_load(&call->finished)) return false;
    atomic_fetch_add_explicit(&call->queued, 1, memory_order_acq_rel);
    return true;
}

void td_call_send(td_call *call, const ProtobufCMessage *response)
{
    if (count_message(call)) call->transport->send(call, response);
}

void td_call_worked(td_call *call, const char *device, int64_t queued_ns, int64_t started_ns,
                    int64_t finished_ns)
{
    if (call->server->spans == NULL || call->method->client_streaming) return;
    atomic_store_explicit(&call->work.queued_ns, queued_ns, memory_order_relaxed);
    atomic_store_explicit(&call->work.started_ns, started_ns, memory_order_relaxed);
    atomic_store_explicit(&call->work.finished_ns, finished_ns, memory_order_relaxed);
    atomic_store_explicit(&call->work.device, device, memory_order_release);
}

/* One line for the call's span, of level info if the client sampled the trace, else of level debug. */
static void log_span(const td_call *call, tb_status status, double seconds)
{
    const td_trace *trace = &call->trace;
    const bool recorded = trace->given && trace->sampled;
    td_log_write(call->server->log, recorded ? TB_LOG_INFO : TB_LOG_DEBUG, "call.finished",
                 "trace_id=%s span_id=%s parent_span_id=%s service=%s method=%s transport=%s "
                 "status=%s seconds=%.6f peer=%s",
                 trace->id, trace->span_id, trace->parent_id, call->method->service,
                 call->method->name, call->transport->name, tb_status_name(status), seconds,
                 call->peer);
}

/* The call's span for the collector. */
static void send_span(const td_call *call, tb_status status, int64_t end_ns)
{
    const char *device = atomic_load_explicit(&call->work.device, memory_order_acquire);
    td_span span = {.trace = call->trace,
                    .service = call->method->service,
                    .method = call->method->name,
                    .transport = call->transport->name,
                    .status = status,
                    .start_ns = call->arrival_ns,
                    .end_ns = end_ns,
                    .queued_ns = atomic_load(&call->work.queued_ns),
                    .started_ns = atomic_load(&call->work.started_ns),
                    .finished_ns = atomic_load(&call->work.finished_ns),
                    .device = device};
    memcpy(span.peer, call->peer, sizeof span.peer);
    td_spans_add(call->server->spans, &span);
}

static void trace_call(td_call *call, tb_status status, int64_t end_ns)
{
    td_trace *trace = &call->trace;
    const double seconds = (double)(end_ns - call->arrival_ns) * 1e-9;
    if (!trace->given) td_spans_begin(call->server->spans, trace);
    if (trace->given || trace->sampled) log_span(call, status, seconds);
    if (!trace->sampled) return;
    td_metrics_trace(call->server->metrics, call->method->service, call->method->name,
                     call->transport->name, seconds, trace->id, trace->span_id);
    if (call->server->spans != NULL) send_span(call, status, end_ns);
}

void td_call_finish(td_call *call, tb_status status, const tb_error *error, double retry_after)
{
    if (atomic_exchange(&call->finished, true)) return;
    td_metrics *metrics = call->server->metrics;
    if (atomic_load(&call->stage) == STAGE_BEGUN)
        td_metrics_add(metrics, TD_METRIC_CALLS_IN_FLIGHT, -1);
    if (call->method != NULL) {
        const int64_t end_ns = td_monotonic_ns();
        td_metrics_call(metrics, call->method->service, call->method->name, call->transport->name,
                        status, (double)(end_ns - call->arrival_ns) * 1e-9);
        trace_call(call, status, end_ns);
    }
    call->transport->finish(call, status, error, retry_after);
}

void td_call_reply(td_call *call, const ProtobufCMessage *response)
{
    if (count_message(call)) call->transport->send(call, response);
    td_call_finish(call, TB_OK, NULL, 0);
}

void td_call_fail(td_call *call, const tb_error *error)
{
    /* an error that forgot its status must not look like success */
    td_call_finish(call, error->status != TB_OK ? error->status : TB_INTERNAL, error, 0);
}

void td_call_reply_bounded(td_call *call, const ProtobufCMessage *response, bool failed,
                           const char *advice)
{
    tb_error error;
    const uint64_t limit = call->server->config->message_bytes;
    const size_t size = failed ? 0 : protobuf_c_message_get_packed_size(response);
    if (failed) {
        tb_fail_memory(&error, 0, "an answer");
        td_call_fail(call, &error);
    } else if (size > limit) {
        tb_fail(&error, TB_RESOURCE_EXHAUSTED, "the answer has %zu bytes, a message at most %llu%s",
                size, (unsigned long long)limit, advice);
        td_call_fail(call, &error);
    } else {
        td_call_reply(call, response);
    }
}

void td_call_read(td_call *call)
{
    call->transport->read(call);
}

bool td_call_wanted(td_call *call, int64_t now_ns)
{
    return !atomic_load_explicit(&call->gone, memory_order_relaxed) && now_ns < call->deadline_ns;
}

void td_call_dispatch(td_call *call, td_request *request)
{
    int stage = STAGE_FRESH;
    if (!td_call_wanted(call, td_monotonic_ns())) {
        td_call_cancel(call);
    } else if (!atomic_load(&call->finished)) {
        if (atomic_compare_exchange_strong(&call->stage, &stage, STAGE_BEGUN))
            td_metrics_add(call->server->metrics, TD_METRIC_CALLS_IN_FLIGHT, 1);
        if (stage != STAGE_CANCELLED) {
            call->method->message(call, request);
            return;
        }
    }
    td_request_free(request);
}

/* Keeps the method from a call that has not begun. False if it has begun: then the method's
 * `cancelled` is called, if `informs`. */
static bool keep_from_method(td_call *call, bool informs)
{
    int stage = STAGE_FRESH;
    if (atomic_compare_exchange_strong(&call->stage, &stage, STAGE_CANCELLED)) return true;
    if (informs && call->method->cancelled != NULL) call->method->cancelled(call);
    return false;
}

void td_call_cancel(td_call *call)
{
    if (atomic_exchange(&call->gone, true)) return;
    if (!keep_from_method(call, !atomic_load(&call->finished))) return;
    tb_error error = {0};
    if (td_monotonic_ns() >= call->deadline_ns)
        tb_fail(&error, TB_DEADLINE_EXCEEDED, "the deadline passed before the call began");
    else
        tb_fail(&error, TB_CANCELLED, "the client cancelled the call before it began");
    td_call_finish(call, error.status, &error, 0);
}

/* Unlike a cancelled call, a refused one is answered first, so that the method hears of an end. */
void td_call_refuse(td_call *call, const tb_error *error)
{
    if (atomic_load(&call->finished)) return;
    td_call_fail(call, error);
    if (!atomic_exchange(&call->gone, true)) keep_from_method(call, true);
}
