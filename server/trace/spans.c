/* See spans.h. */
#include "trace/spans.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "ops/clock.h"
#include "trace/otlp.h"
#include "trace/post.h"

/* Spans of one request; a queue of this length wakes the thread. */
enum { BATCH = 256, HEADERS_SIZE = 4096, NAME_SIZE = 64 };
static const double ANSWER_S = 10;     /* for a request */
static const double DELAY_S = 1;       /* from a span to its request */
static const double FIRST_PAUSE_S = 1; /* after a failure; doubles */
static const double LONGEST_PAUSE_S = 30;
static const double PATIENCE_S = 60; /* for one batch */
static const double FAREWELL_S = 1;  /* for the rest, at the end */

struct td_spans {
    td_log *log;
    td_metrics *metrics;
    td_post *post;
    char service[TD_CONFIG_TEXT_SIZE], instance[TD_CONFIG_TEXT_SIZE];
    td_otlp_resource resource;
    uint32_t root_threshold; /* a random number below it begins a trace */
    bool all_roots;

    pthread_t thread;
    bool started;
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* monotonic clock */
    td_span *ring;       /* under the mutex, as the three below */
    int32_t capacity, first;
    bool closing;
    atomic_int count; /* changed under the mutex */
    atomic_bool stop; /* ends waiting for the collector */

    /* the thread's own */
    td_span batch[BATCH];
    bool failing;
};

/* ---- the callers' part ---- */

void td_spans_begin(td_spans *spans, td_trace *trace)
{
    struct {
        uint32_t lot;
        uint8_t trace[16], span[8];
    } random;
    trace->sampled = false;
    if (spans == NULL || (spans->root_threshold == 0 && !spans->all_roots)) return;
    if (atomic_load_explicit(&spans->count, memory_order_relaxed) >= spans->capacity) {
        td_metrics_add(spans->metrics, TD_METRIC_SPANS_DROPPED, 1);
        return;
    }
    randombytes_buf(&random, sizeof random);
    if (!spans->all_roots && random.lot >= spans->root_threshold) return;
    trace->sampled = true;
    trace->parent_id[0] = trace->state[0] = '\0';
    sodium_bin2hex(trace->id, sizeof trace->id, random.trace, sizeof random.trace);
    sodium_bin2hex(trace->span_id, sizeof trace->span_id, random.span, sizeof random.span);
}

void td_spans_add(td_spans *spans, const td_span *span)
{
    bool taken = false, wake = false;
    pthread_mutex_lock(&spans->mutex);
    const int32_t count = atomic_load_explicit(&spans->count, memory_order_relaxed);
    if (count < spans->capacity) {
        spans->ring[(spans->first + count) % spans->capacity] = *span;
        atomic_store_explicit(&spans->count, count + 1, memory_order_relaxed);
        taken = true;
        wake = count == 0 || count + 1 == BATCH;
    }
    pthread_mutex_unlock(&spans->mutex);
    if (wake) pthread_cond_signal(&spans->wake);
    if (!taken) td_metrics_add(spans->metrics, TD_METRIC_SPANS_DROPPED, 1);
}

int64_t td_spans_waiting(const td_spans *spans)
{
    return spans != NULL ? atomic_load_explicit(&spans->count, memory_order_relaxed) : 0;
}

/* ---- the thread ---- */

static struct timespec after(double seconds)
{
    const int64_t end = td_monotonic_ns() + (int64_t)(seconds * 1e9);
    return (struct timespec){.tv_sec = (time_t)(end / 1000000000), .tv_nsec = end % 1000000000};
}

/* Waits; true when the daemon ends. */
static bool pause_for(td_spans *spans, double seconds)
{
    const struct timespec end = after(seconds);
    pthread_mutex_lock(&spans->mutex);
    while (!spans->closing && pthread_cond_timedwait(&spans->wake, &spans->mutex, &end) == 0) {
    }
    const bool closing = spans->closing;
    pthread_mutex_unlock(&spans->mutex);
    return closing;
}

/* Takes the oldest spans once the first has waited long enough or a batch is full; 0: the daemon ends
 * and none is left. */
static int32_t take_batch(td_spans *spans)
{
    pthread_mutex_lock(&spans->mutex);
    while (atomic_load(&spans->count) == 0 && !spans->closing)
        pthread_cond_wait(&spans->wake, &spans->mutex);
    const struct timespec end = after(DELAY_S);
    while (atomic_load(&spans->count) < BATCH && !spans->closing &&
           pthread_cond_timedwait(&spans->wake, &spans->mutex, &end) == 0) {
    }
    const int32_t waiting = atomic_load(&spans->count);
    const int32_t count = waiting < BATCH ? waiting : BATCH;
    for (int32_t i = 0; i < count; i++)
        spans->batch[i] = spans->ring[(spans->first + i) % spans->capacity];
    spans->first = (spans->first + count) % spans->capacity;
    atomic_store(&spans->count, waiting - count);
    pthread_mutex_unlock(&spans->mutex);
    return count;
}

/* Logs the change from working to failing. */
static void note_failure(td_spans *spans, const char *reason)
{
    if (!spans->failing)
        td_log_write(spans->log, TB_LOG_WARNING, "spans.failing", "message=%s", reason);
    spans->failing = true;
}

/* Logs the recovery, and the spans that the collector refused from an accepted batch. */
static void note_success(td_spans *spans, int32_t count, const td_post_answer *answer)
{
    char message[TB_ERROR_MESSAGE_SIZE];
    int64_t refused = td_otlp_rejected(answer->body, answer->size, message, sizeof message);
    if (refused > count) refused = count;
    if (refused > 0) {
        td_metrics_add(spans->metrics, TD_METRIC_SPANS_DROPPED, refused);
        note_failure(spans, message);
    } else if (spans->failing) {
        td_log_write(spans->log, TB_LOG_INFO, "spans.sent_again", "waiting=%lld",
                     (long long)td_spans_waiting(spans));
        spans->failing = false;
    }
    td_metrics_add(spans->metrics, TD_METRIC_SPANS_SENT, count - refused);
}

/* Whether the collector may take the same request later (OTLP/HTTP, "Failures"). */
static bool is_temporary(int status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

/* Posts a packed batch until it is taken, refused, or too old; false when the daemon ends before. */
static bool send_batch(td_spans *spans, const uint8_t *body, size_t size, int32_t count)
{
    const int64_t end = td_monotonic_ns() + (int64_t)(PATIENCE_S * 1e9);
    for (double pause = FIRST_PAUSE_S;; pause = fmin(2 * pause, LONGEST_PAUSE_S)) {
        td_post_answer answer = {0};
        tb_error error = {0};
        tb_status status = td_post_send(spans->post, body, size, ANSWER_S, &answer, &error);
        if (atomic_load(&spans->stop)) return false;
        if (status == TB_OK && answer.status / 100 == 2) {
            note_success(spans, count, &answer);
            return true;
        }
        if (status == TB_OK)
            tb_fail(&error, TB_UNAVAILABLE, "the collector answers with HTTP status %d",
                    answer.status);
        td_metrics_add(spans->metrics, TD_METRIC_SPANS_FAILURES, 1);
        note_failure(spans, error.message);
        const bool again = status != TB_OK || is_temporary(answer.status);
        if (!again || td_monotonic_ns() > end) break;
        if (pause_for(spans, fmin(fmax(pause, answer.retry_after), LONGEST_PAUSE_S))) return false;
    }
    td_metrics_add(spans->metrics, TD_METRIC_SPANS_DROPPED, count);
    return true;
}

static void *send_all(void *context)
{
    td_spans *spans = context;
    bool going = true;
    while (going) {
        const int32_t count = take_batch(spans);
        if (count == 0) break;
        struct timespec utc;
        clock_gettime(CLOCK_REALTIME, &utc);
        const int64_t utc_ns = (int64_t)utc.tv_sec * 1000000000 + utc.tv_nsec;
        size_t size = 0;
        uint8_t *body =
            td_otlp_pack(&spans->resource, spans->batch, count, utc_ns - td_monotonic_ns(), &size);
        if (body == NULL)
            td_metrics_add(spans->metrics, TD_METRIC_SPANS_DROPPED, count);
        else
            going = send_batch(spans, body, size, count);
        free(body);
    }
    return NULL;
}

/* ---- life ---- */

/* One header of OTEL_EXPORTER_OTLP_HEADERS, "name=value", as a line; false if it is malformed. */
static bool print_header(FILE *out, const char *text, size_t size)
{
    const char *equals = memchr(text, '=', size);
    if (equals == NULL || equals == text) return false;
    for (const char *c = text; c < equals; c++)
        if (!isalnum((unsigned char)*c) && strchr("!#$%&'*+-.^_`|~", *c) == NULL) return false;
    fprintf(out, "%.*s: ", (int)(equals - text), text);
    for (const char *c = equals + 1; c < text + size; c++) {
        unsigned value = (unsigned char)*c;
        if (*c == '%' && (text + size - c < 3 || sscanf(c + 1, "%2x", &value) != 1)) return false;
        if (*c == '%') c += 2;
        if (value < ' ' || value > '~') return false;
        fputc((int)value, out);
    }
    fputs("\r\n", out);
    return true;
}

/* The headers of the environment as lines of a request. A key of the collector is a secret: it comes by
 * the environment alone, and no message has it. */
static tb_status read_headers(char lines[HEADERS_SIZE], tb_error *error)
{
    static const char NAME[] = "OTEL_EXPORTER_OTLP_HEADERS";
    const char *text = getenv(NAME);
    bool good = true;
    FILE *out = fmemopen(lines, HEADERS_SIZE, "w");
    if (out == NULL) return tb_fail_memory(error, HEADERS_SIZE, "headers");
    while (text != NULL && *text != '\0' && good) {
        text += strspn(text, " ,");
        size_t size = strcspn(text, ",");
        const char *next = text + size;
        while (size > 0 && text[size - 1] == ' ') size--;
        good = size == 0 || print_header(out, text, size);
        text = next;
    }
    good = !ferror(out) && ftell(out) < HEADERS_SIZE - 1 && good;
    fclose(out);
    if (good) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, NAME,
                         "%s in the environment is not NAME=VALUE,NAME=VALUE, or too long", NAME);
}

static tb_status make_post(td_spans *spans, const td_config *config, tb_error *error)
{
    char headers[HEADERS_SIZE] = "";
    const tb_status status = read_headers(headers, error);
    if (status != TB_OK) return status;
    const td_post_options options = {.url = config->otlp_endpoint,
                                     .path = "/v1/traces",
                                     .type = "application/x-protobuf",
                                     .headers = headers,
                                     .ca = config->otlp_ca,
                                     .stop = &spans->stop};
    return td_post_create(&options, &spans->post, error);
}

tb_status td_spans_create(const td_config *config, td_log *log, td_metrics *metrics,
                          td_spans **created, tb_error *error)
{
    *created = NULL;
    if (*config->otlp_endpoint == '\0') return TB_OK;
    td_spans *spans = calloc(1, sizeof *spans);
    if (spans == NULL) return tb_fail_memory(error, sizeof *spans, "spans");
    spans->log = log;
    spans->metrics = metrics;
    spans->capacity = config->otlp_queue_spans;
    spans->all_roots = config->otlp_root_ratio >= 1;
    spans->root_threshold = (uint32_t)(fmin(config->otlp_root_ratio, 1) * (double)UINT32_MAX);
    snprintf(spans->service, sizeof spans->service, "%s", config->otlp_service);
    if (*config->fleet_node != '\0')
        snprintf(spans->instance, sizeof spans->instance, "%s", config->fleet_node);
    else
        gethostname(spans->instance, sizeof spans->instance - 1);
    spans->resource = (td_otlp_resource){.service = spans->service, .instance = spans->instance};
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&spans->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&spans->mutex, NULL);

    tb_status status = TB_OK;
    spans->ring = calloc((size_t)spans->capacity, sizeof *spans->ring);
    if (spans->ring == NULL)
        status = tb_fail_memory(error, (size_t)spans->capacity * sizeof *spans->ring,
                                "a queue of spans");
    if (status == TB_OK) status = make_post(spans, config, error);
    if (status == TB_OK) {
        spans->started = pthread_create(&spans->thread, NULL, send_all, spans) == 0;
        if (!spans->started) status = tb_fail(error, TB_RESOURCE_EXHAUSTED, "no thread for spans");
    }
    if (status != TB_OK) {
        td_spans_destroy(spans);
        return status;
    }
    *created = spans;
    return TB_OK;
}

/* Ends the thread. False if the thread is still resolving a host name, which cannot be interrupted;
 * from then on the thread only touches its own memory. */
static bool end_thread(td_spans *spans)
{
    struct timespec end = after(FAREWELL_S);
    pthread_mutex_lock(&spans->mutex);
    spans->closing = true;
    pthread_cond_signal(&spans->wake);
    pthread_mutex_unlock(&spans->mutex);
    if (pthread_clockjoin_np(spans->thread, NULL, CLOCK_MONOTONIC, &end) == 0) return true;
    atomic_store(&spans->stop, true);
    end = after(0.5);
    if (pthread_clockjoin_np(spans->thread, NULL, CLOCK_MONOTONIC, &end) == 0) return true;
    pthread_detach(spans->thread);
    return false;
}

void td_spans_destroy(td_spans *spans)
{
    if (spans == NULL || (spans->started && !end_thread(spans))) return;
    td_post_destroy(spans->post);
    pthread_mutex_destroy(&spans->mutex);
    pthread_cond_destroy(&spans->wake);
    free(spans->ring);
    free(spans);
}
