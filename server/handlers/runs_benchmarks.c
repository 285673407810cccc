/* Handlers of benchmarks: RecordBenchmark, ListBenchmarks. Every caller sees all results: a result
 * gives the speed of a build on a machine, not the contents of a simulation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "handlers/handlers.h"
#include "call/offload.h"
#include "handlers/run_message.h"
#include "session/session.h"

/* ---- RecordBenchmark ---- */

static tb_status copy_text(char *to, size_t size, const char *from, const char *field,
                           tb_error *error)
{
    const size_t length = strlen(from);
    if (length >= size)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                             "%s has %zu bytes, at most %zu are kept", field, length, size - 1);
    memcpy(to, from, length + 1);
    return TB_OK;
}

static tb_status require_text(const char *given, const char *field, tb_error *error)
{
    if (given[0] != '\0') return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s is missing", field);
}

static tb_status read_texts(const Tribo__V1__Benchmark *message, db_benchmark *row, tb_error *error)
{
    const struct {
        char *to;
        size_t size;
        const char *from, *field;
    } texts[] = {
        {row->name, sizeof row->name, message->name, "benchmark.name"},
        {row->metric, sizeof row->metric, message->metric, "benchmark.metric"},
        {row->unit, sizeof row->unit, message->unit, "benchmark.unit"},
        {row->testbed, sizeof row->testbed, message->testbed, "benchmark.testbed"},
        {row->build, sizeof row->build, message->build, "benchmark.build"},
    };
    tb_status status = require_text(message->name, "benchmark.name", error);
    if (status == TB_OK) status = require_text(message->metric, "benchmark.metric", error);
    for (size_t i = 0; i < sizeof texts / sizeof *texts && status == TB_OK; i++)
        status = copy_text(texts[i].to, texts[i].size, texts[i].from, texts[i].field, error);
    return status;
}

static tb_status read_numbers(const Tribo__V1__Benchmark *message, db_benchmark *row,
                              tb_error *error)
{
    const struct {
        double value;
        const char *field;
    } numbers[] = {{message->residual, "benchmark.residual"},
                   {message->iterations, "benchmark.iterations"},
                   {message->penetration, "benchmark.penetration"},
                   {message->energy_drift, "benchmark.energy_drift"}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!isfinite(numbers[i].value))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, numbers[i].field, "%s is %g",
                                 numbers[i].field, numbers[i].value);
    if (message->n_samples < 1 || message->n_samples > DB_BENCHMARK_SAMPLES)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "benchmark.samples",
                             "benchmark.samples: %zu of them, expected 1 to %d", message->n_samples,
                             DB_BENCHMARK_SAMPLES);
    for (size_t i = 0; i < message->n_samples; i++)
        if (!isfinite(message->samples[i]))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "benchmark.samples",
                                 "benchmark.samples[%zu] is %g", i, message->samples[i]);
    row->residual = message->residual;
    row->iterations = message->iterations;
    row->penetration = message->penetration;
    row->energy_drift = message->energy_drift;
    row->samples = message->samples; /* borrowed from the request */
    row->number_of_samples = (int32_t)message->n_samples;
    return TB_OK;
}

static void record_benchmark(td_call *call, td_request *request)
{
    const Tribo__V1__RecordBenchmarkRequest *message =
        (const Tribo__V1__RecordBenchmarkRequest *)request->message;
    td_benchmark benchmark = {0};
    db_benchmark *row = &benchmark.row;
    tb_error error = {0};
    tb_status status = TB_OK;
    if (message->benchmark == NULL)
        status =
            tb_fail_field(&error, TB_INVALID_ARGUMENT, "benchmark", "the benchmark is missing");
    if (status == TB_OK) status = read_texts(message->benchmark, row, &error);
    if (status == TB_OK) status = read_numbers(message->benchmark, row, &error);
    if (status == TB_OK) {
        row->id = td_id_random();
        row->time_us = td_clock_utc_us(&call->server->clock);
        status = db_record_benchmark(call->server->db, row, &error);
    }
    if (status == TB_OK) {
        Tribo__V1__RecordBenchmarkResponse response = TRIBO__V1__RECORD_BENCHMARK_RESPONSE__INIT;
        td_benchmark_describe(&benchmark);
        response.benchmark = &benchmark.message;
        td_call_reply(call, &response.base);
    } else {
        td_call_fail(call, &error);
    }
    td_request_free(request);
}

void td_runs_record_benchmark(td_call *call, td_request *request)
{
    td_offload(call, request, record_benchmark);
}

/* ---- ListBenchmarks ---- */

typedef struct benchmark_page {
    td_benchmark *benchmarks;
    Tribo__V1__Benchmark **pointers;
    int32_t count;
    char next[DB_TOKEN_SIZE];
} benchmark_page;

static void clear_page(benchmark_page *page)
{
    for (int32_t i = 0; i < page->count; i++) td_benchmark_clear(&page->benchmarks[i]);
    free(page->benchmarks);
    free(page->pointers);
}

static tb_status list_rows(const td_call *call, const void *name, const char *token, void *rows,
                           int32_t most, int32_t *count, char next[DB_TOKEN_SIZE], tb_error *error)
{
    return db_list_benchmarks(call->server->db, name, token, rows, most, count, next, error);
}

static size_t add_benchmark(void *context, const void *row)
{
    benchmark_page *page = context;
    td_benchmark *benchmark = &page->benchmarks[page->count];
    benchmark->row = *(const db_benchmark *)row;
    td_benchmark_describe(benchmark);
    page->pointers[page->count++] = &benchmark->message;
    return protobuf_c_message_get_packed_size(&benchmark->message.base);
}

static tb_status list_fleet_rows(const td_call *call, const void *name, const char *token,
                                 void *rows, int32_t most, int32_t *count, char next[DB_TOKEN_SIZE],
                                 tb_error *error)
{
    return db_fleet_list_benchmarks(call->server->fleet, name, token, rows, most, count, next,
                                    error);
}

static size_t add_fleet_benchmark(void *context, const void *row)
{
    benchmark_page *page = context;
    const db_fleet_benchmark *listed = row;
    memcpy(page->benchmarks[page->count].node, listed->node, sizeof listed->node);
    return add_benchmark(context, &listed->benchmark);
}

static tb_status read_page(const td_call *call, const Tribo__V1__ListBenchmarksRequest *message,
                           int32_t size, benchmark_page *page, tb_error *error)
{
    static const td_page_source BENCHMARKS = {.row_bytes = sizeof(db_benchmark),
                                              .rows_at_once = 20, /* of up to 1,000 samples each */
                                              .list = list_rows,
                                              .add = add_benchmark};
    static const td_page_source FLEET_BENCHMARKS = {.row_bytes = sizeof(db_fleet_benchmark),
                                                    .rows_at_once = 20,
                                                    .list = list_fleet_rows,
                                                    .add = add_fleet_benchmark};
    page->benchmarks = calloc((size_t)size, sizeof *page->benchmarks);
    page->pointers = calloc((size_t)size, sizeof(Tribo__V1__Benchmark *));
    if (page->benchmarks == NULL || page->pointers == NULL)
        return tb_fail_memory(error, (size_t)size * sizeof *page->benchmarks, "a list");
    return td_page_read(call, message->fleet ? &FLEET_BENCHMARKS : &BENCHMARKS, message->name,
                        message->page_token, size, page, page->next, error);
}

static void list_benchmarks(td_call *call, td_request *request)
{
    const Tribo__V1__ListBenchmarksRequest *message =
        (const Tribo__V1__ListBenchmarksRequest *)request->message;
    benchmark_page page = {0};
    int32_t size = 0;
    tb_error error = {0};
    tb_status status = td_page_size(message->page_size, &size, &error);
    if (status == TB_OK && message->fleet) status = td_run_needs_fleet(call, &error);
    if (status == TB_OK) status = read_page(call, message, size, &page, &error);
    if (status == TB_OK) {
        Tribo__V1__ListBenchmarksResponse response = TRIBO__V1__LIST_BENCHMARKS_RESPONSE__INIT;
        response.benchmarks = page.pointers;
        response.n_benchmarks = (size_t)page.count;
        response.next_page_token = page.next;
        td_call_reply(call, &response.base);
    } else {
        td_call_fail(call, &error);
    }
    clear_page(&page);
    td_request_free(request);
}

void td_runs_list_benchmarks(td_call *call, td_request *request)
{
    td_offload(call, request, list_benchmarks);
}
