/* Metrics: arrays of atomic numbers, and a table of calls by method and transport that grows by
 * compare-and-swap up to a bound, whatever names come in. */
#include "ops/metrics.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "ops/build.h"

/* upper edges of the buckets, s; one more bucket holds larger values */
static const double EDGES[] = {1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4,
                               1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1,  0.2,  0.5,
                               1,    2,    5,    10,   20,   50,   100};

enum { BUCKETS = sizeof EDGES / sizeof EDGES[0] };
enum { STATUSES = TB_INTERNAL + 1, ROWS = 256, ROWS_USED_MAXIMUM = 192, ROW_NAME_SIZE = 96 };

typedef struct histogram {
    _Atomic int64_t buckets[BUCKETS + 1]; /* not yet summed up */
    _Atomic int64_t sum_ns;
} histogram;

/* A call of a trace that fell into a bucket. */
typedef struct exemplar {
    char trace_id[33], span_id[17];
    double seconds, unix_time;
} exemplar;

/* The calls of one method over one transport. Immutable names; made once, never removed. */
typedef struct call_row {
    char method[ROW_NAME_SIZE];
    char transport[16];
    _Atomic int64_t by_status[STATUSES];
    histogram time;
    exemplar *exemplars; /* of each bucket; NULL before the first traced call; under the mutex */
} call_row;

struct td_metrics {
    _Atomic int64_t numbers[TD_METRICS];
    histogram histograms[TD_HISTOGRAMS];
    call_row *_Atomic rows[ROWS];
    atomic_int rows_used;
    call_row other; /* series that exceeded the table */
    double start_time;
    td_metrics_refresh *refresh;
    void *refresh_context;
    td_metrics_print *print;
    void *print_context;
    pthread_mutex_t exemplars; /* guards those of all rows */
};

static const struct {
    const char *name, *type, *help;
} NUMBERS[TD_METRICS] = {
#define NUMBER_TEXTS(id, name, type, help) {name, #type, help},
    TD_METRIC_LIST(NUMBER_TEXTS)};

static const struct {
    const char *name, *help;
} HISTOGRAMS[TD_HISTOGRAMS] = {
#define HISTOGRAM_TEXTS(id, name, help) {name, help},
    TD_HISTOGRAM_LIST(HISTOGRAM_TEXTS)};

tb_status td_metrics_create(td_metrics **created, tb_error *error)
{
    td_metrics *metrics = calloc(1, sizeof *metrics);
    *created = metrics;
    if (metrics == NULL) return tb_fail_memory(error, sizeof *metrics, "metrics");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    metrics->start_time = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    pthread_mutex_init(&metrics->exemplars, NULL);
    snprintf(metrics->other.method, sizeof metrics->other.method, "other");
    snprintf(metrics->other.transport, sizeof metrics->other.transport, "other");
    return TB_OK;
}

void td_metrics_destroy(td_metrics *metrics)
{
    if (metrics == NULL) return;
    for (int i = 0; i < ROWS; i++) {
        call_row *row = atomic_load(&metrics->rows[i]);
        if (row != NULL) free(row->exemplars);
        free(row);
    }
    free(metrics->other.exemplars);
    pthread_mutex_destroy(&metrics->exemplars);
    free(metrics);
}

void td_metrics_on_refresh(td_metrics *metrics, td_metrics_refresh *refresh, void *context)
{
    metrics->refresh = refresh;
    metrics->refresh_context = context;
}

void td_metrics_on_print(td_metrics *metrics, td_metrics_print *print, void *context)
{
    metrics->print = print;
    metrics->print_context = context;
}

void td_metrics_add(td_metrics *metrics, td_metric metric, int64_t amount)
{
    atomic_fetch_add_explicit(&metrics->numbers[metric], amount, memory_order_relaxed);
}

void td_metrics_set(td_metrics *metrics, td_metric metric, int64_t value)
{
    atomic_store_explicit(&metrics->numbers[metric], value, memory_order_relaxed);
}

int64_t td_metrics_get(const td_metrics *metrics, td_metric metric)
{
    return atomic_load_explicit(&metrics->numbers[metric], memory_order_relaxed);
}

static int bucket_of(double seconds)
{
    int bucket = 0;
    while (bucket < BUCKETS && seconds > EDGES[bucket]) bucket++;
    return bucket;
}

static void observe(histogram *h, double seconds)
{
    /* not a number counts as 0, and a century is long enough */
    if (!(seconds > 0)) seconds = 0;
    if (seconds > 3e9) seconds = 3e9;
    const int bucket = bucket_of(seconds);
    atomic_fetch_add_explicit(&h->buckets[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum_ns, (int64_t)(seconds * 1e9 + 0.5), memory_order_relaxed);
}

void td_metrics_observe(td_metrics *metrics, td_histogram which, double seconds)
{
    observe(&metrics->histograms[which], seconds);
}

/* ---- calls -------------------------------------------------------------------------------------*/

static uint32_t hash(const char *text, uint32_t value)
{
    for (; *text != '\0'; text++) value = (value ^ (unsigned char)*text) * 16777619U;
    return value;
}

static call_row *row_create(const char *method, const char *transport)
{
    call_row *row = calloc(1, sizeof *row);
    if (row == NULL) return NULL;
    snprintf(row->method, sizeof row->method, "%s", method);
    snprintf(row->transport, sizeof row->transport, "%s", transport);
    return row;
}

/* The row of a method and a transport, made at first use; `other` when the table is full. */
static call_row *row_find(td_metrics *metrics, const char *method, const char *transport)
{
    uint32_t slot = hash(transport, hash(method, 2166136261U)) % ROWS;
    call_row *made = NULL, *found = NULL;
    for (int probes = 0; probes < ROWS && found == NULL; probes++, slot = (slot + 1) % ROWS) {
        call_row *row = atomic_load_explicit(&metrics->rows[slot], memory_order_acquire);
        if (row == NULL) {
            if (made == NULL) {
                if (atomic_load_explicit(&metrics->rows_used, memory_order_relaxed) >=
                    ROWS_USED_MAXIMUM)
                    break;
                made = row_create(method, transport);
                if (made == NULL) break;
            }
            /* fails if another thread was quicker: then `row` is that thread's */
            if (atomic_compare_exchange_strong(&metrics->rows[slot], &row, made)) {
                atomic_fetch_add_explicit(&metrics->rows_used, 1, memory_order_relaxed);
                return made;
            }
        }
        if (strcmp(row->method, method) == 0 && strcmp(row->transport, transport) == 0) found = row;
    }
    free(made);
    return found != NULL ? found : &metrics->other;
}

void td_metrics_call(td_metrics *metrics, const char *service, const char *method,
                     const char *transport, tb_status status, double seconds)
{
    char name[ROW_NAME_SIZE];
    snprintf(name, sizeof name, "%s/%s", service, method);
    call_row *row = row_find(metrics, name, transport);
    const int index = (int)status >= 0 && (int)status < STATUSES ? (int)status : TB_INTERNAL;
    atomic_fetch_add_explicit(&row->by_status[index], 1, memory_order_relaxed);
    observe(&row->time, seconds);
}

void td_metrics_trace(td_metrics *metrics, const char *service, const char *method,
                      const char *transport, double seconds, const char *trace_id,
                      const char *span_id)
{
    char name[ROW_NAME_SIZE];
    struct timespec now;
    snprintf(name, sizeof name, "%s/%s", service, method);
    call_row *row = row_find(metrics, name, transport);
    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&metrics->exemplars);
    if (row->exemplars == NULL) row->exemplars = calloc(BUCKETS + 1, sizeof *row->exemplars);
    if (row->exemplars != NULL) {
        exemplar *kept = &row->exemplars[bucket_of(seconds)];
        snprintf(kept->trace_id, sizeof kept->trace_id, "%s", trace_id);
        snprintf(kept->span_id, sizeof kept->span_id, "%s", span_id);
        kept->seconds = seconds;
        kept->unix_time = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    }
    pthread_mutex_unlock(&metrics->exemplars);
}

/* ---- text --------------------------------------------------------------------------------------*/

/* A label's value with the escapes of the text format. */
static void print_label(FILE *out, const char *name, const char *value)
{
    fprintf(out, "%s=\"", name);
    for (; *value != '\0'; value++) {
        if (*value == '"' || *value == '\\')
            fprintf(out, "\\%c", *value);
        else if (*value == '\n')
            fputs("\\n", out);
        else
            fputc(*value, out);
    }
    fputc('"', out);
}

static void print_head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* `labels` is "" or `method="..",transport=".."`; `exemplars` NULL, or one of each bucket. */
static void print_histogram(FILE *out, const char *name, const char *labels, const histogram *h,
                            const exemplar *exemplars)
{
    const char *comma = *labels != '\0' ? "," : "";
    const char *open = *labels != '\0' ? "{" : "", *close = *labels != '\0' ? "}" : "";
    int64_t count = 0;
    for (int i = 0; i <= BUCKETS; i++) {
        count += atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
        fprintf(out, "%s_bucket{%s%sle=\"", name, labels, comma);
        if (i < BUCKETS)
            fprintf(out, "%g", EDGES[i]);
        else
            fputs("+Inf", out);
        fprintf(out, "\"} %" PRId64, count);
        if (exemplars != NULL && exemplars[i].trace_id[0] != '\0')
            fprintf(out, " # {trace_id=\"%s\",span_id=\"%s\"} %.9f %.3f", exemplars[i].trace_id,
                    exemplars[i].span_id, exemplars[i].seconds, exemplars[i].unix_time);
        fputc('\n', out);
    }
    const int64_t sum = atomic_load_explicit(&h->sum_ns, memory_order_relaxed);
    fprintf(out, "%s_sum%s%s%s %.9f\n", name, open, labels, close, (double)sum * 1e-9);
    fprintf(out, "%s_count%s%s%s %" PRId64 "\n", name, open, labels, close, count);
}

/* The rows that have been used, `other` last; NULL past the end. */
static const call_row *row_next(const td_metrics *metrics, int *index)
{
    while (*index < ROWS) {
        const call_row *row = atomic_load_explicit(&metrics->rows[*index], memory_order_acquire);
        ++*index;
        if (row != NULL) return row;
    }
    return (*index)++ == ROWS ? &metrics->other : NULL;
}

static int64_t row_count(const call_row *row)
{
    int64_t count = 0;
    for (int s = 0; s < STATUSES; s++)
        count += atomic_load_explicit(&row->by_status[s], memory_order_relaxed);
    return count;
}

static void print_calls(FILE *out, td_metrics *metrics, bool with_exemplars)
{
    const call_row *row;
    print_head(out, "tribod_calls_total", "counter", "Calls finished, by status");
    for (int i = 0; (row = row_next(metrics, &i)) != NULL;) {
        for (int s = 0; s < STATUSES; s++) {
            const int64_t n = atomic_load_explicit(&row->by_status[s], memory_order_relaxed);
            if (n == 0) continue;
            fputs("tribod_calls_total{", out);
            print_label(out, "method", row->method);
            fputc(',', out);
            print_label(out, "transport", row->transport);
            fprintf(out, ",status=\"%s\"} %" PRId64 "\n", tb_status_name((tb_status)s), n);
        }
    }
    print_head(out, "tribod_call_seconds", "histogram", "Time from a call's arrival to its end");
    for (int i = 0; (row = row_next(metrics, &i)) != NULL;) {
        if (row_count(row) == 0) continue;
        char *labels = NULL;
        size_t size = 0;
        FILE *text = open_memstream(&labels, &size);
        if (text == NULL) continue;
        print_label(text, "method", row->method);
        fputc(',', text);
        print_label(text, "transport", row->transport);
        pthread_mutex_lock(&metrics->exemplars);
        if (fclose(text) == 0)
            print_histogram(out, "tribod_call_seconds", labels, &row->time,
                            with_exemplars ? row->exemplars : NULL);
        pthread_mutex_unlock(&metrics->exemplars);
        free(labels);
    }
}

/* Process metrics, as in Prometheus's client libraries. */
static void print_process(FILE *out, const td_metrics *metrics)
{
    struct timespec cpu;
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (statm != NULL) {
        if (fscanf(statm, "%*s %ld", &pages) != 1) pages = 0;
        fclose(statm);
    }
    print_head(out, "process_resident_memory_bytes", "gauge", "Resident memory size in bytes");
    fprintf(out, "process_resident_memory_bytes %" PRId64 "\n",
            (int64_t)pages * (int64_t)sysconf(_SC_PAGESIZE));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    print_head(out, "process_cpu_seconds_total", "counter", "User and system time in seconds");
    fprintf(out, "process_cpu_seconds_total %.6f\n",
            (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec);
    print_head(out, "process_start_time_seconds", "gauge", "Start time since 1970 in seconds");
    fprintf(out, "process_start_time_seconds %.3f\n", metrics->start_time);
    print_head(out, "tribod_build_info", "gauge", "1, with version and build");
    fputs("tribod_build_info{", out);
    print_label(out, "version", TB_VERSION);
    fputc(',', out);
    print_label(out, "build", td_build());
    fputs("} 1\n", out);
}

static char *write_page(td_metrics *metrics, bool with_exemplars, size_t *size)
{
    char *text = NULL;
    *size = 0;
    if (metrics->refresh != NULL) metrics->refresh(metrics->refresh_context);
    FILE *out = open_memstream(&text, size);
    if (out == NULL) return NULL;
    for (int i = 0; i < TD_METRICS; i++) {
        print_head(out, NUMBERS[i].name, NUMBERS[i].type, NUMBERS[i].help);
        fprintf(out, "%s %" PRId64 "\n", NUMBERS[i].name, td_metrics_get(metrics, (td_metric)i));
    }
    for (int i = 0; i < TD_HISTOGRAMS; i++) {
        print_head(out, HISTOGRAMS[i].name, "histogram", HISTOGRAMS[i].help);
        print_histogram(out, HISTOGRAMS[i].name, "", &metrics->histograms[i], NULL);
    }
    print_calls(out, metrics, with_exemplars);
    if (metrics->print != NULL) metrics->print(metrics->print_context, out);
    print_process(out, metrics);
    const bool bad = ferror(out) != 0;
    if (fclose(out) != 0 || bad) {
        free(text);
        *size = 0;
        return NULL;
    }
    return text;
}

char *td_metrics_text(td_metrics *metrics, size_t *size)
{
    return write_page(metrics, false, size);
}

/* In OpenMetrics the name of a counter's family is without the _total of its samples. */
char *td_metrics_open_metrics(td_metrics *metrics, size_t *size)
{
    static const char TOTAL[] = "_total ";
    char *page = write_page(metrics, true, size), *text = NULL;
    FILE *out = page != NULL ? open_memstream(&text, size) : NULL;
    if (out == NULL) {
        free(page);
        return NULL;
    }
    char *rest = NULL;
    for (char *line = strtok_r(page, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *total = strncmp(line, "# ", 2) == 0 ? strstr(line, TOTAL) : NULL;
        const char *name_end =
            strncmp(line, "# ", 2) == 0 ? strchr(line + strlen("# HELP "), ' ') : NULL;
        if (total != NULL && name_end == total + strlen(TOTAL) - 1)
            fprintf(out, "%.*s%s\n", (int)(total - line), line, name_end);
        else
            fprintf(out, "%s\n", line);
    }
    fputs("# EOF\n", out);
    free(page);
    const bool bad = ferror(out) != 0;
    if (fclose(out) == 0 && !bad) return text;
    free(text);
    return NULL;
}
