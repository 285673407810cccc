/* Rows of benchmarks: every sample, with its device and build. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "db_internal.h"
#include "outbox.h"

typedef struct benchmark_job {
    db_job job;
    db_benchmark benchmark; /* samples point behind */
    double samples[];
} benchmark_job;

/* ---- writing ---- */

/* A name of testbed, build or benchmark, once. */
static tb_status write_name(db_connection *connection, db_statement statement, const char *name,
                            size_t size, tb_error *error)
{
    sqlite3_stmt *s = NULL;
    const tb_status status = db_take(connection, statement, &s, error);
    if (status != TB_OK) return status;
    db_bind_text(s, 1, name, size);
    return db_run_statement(connection, s, "a benchmark", error);
}

static tb_status write_row(db_connection *connection, const db_benchmark *b, tb_error *error)
{
    sqlite3_stmt *s = NULL;
    const tb_status status = db_take(connection, DB_BENCHMARK_PUT, &s, error);
    if (status != TB_OK) return status;
    db_bind_id(s, 1, &b->id);
    db_bind_text(s, 2, b->name, sizeof b->name);
    db_bind_text(s, 3, b->testbed, sizeof b->testbed);
    db_bind_text(s, 4, b->build, sizeof b->build);
    db_bind_text(s, 5, b->metric, sizeof b->metric);
    db_bind_text(s, 6, b->unit, sizeof b->unit);
    sqlite3_bind_int64(s, 7, b->time_us);
    sqlite3_bind_int(s, 8, b->number_of_samples);
    const double numbers[] = {b->median,     b->lower,       b->upper,       b->residual,
                              b->iterations, b->penetration, b->energy_drift};
    for (int i = 0; i < (int)(sizeof numbers / sizeof *numbers); i++)
        sqlite3_bind_double(s, 9 + i, numbers[i]);
    return db_run_statement(connection, s, "a benchmark", error);
}

static tb_status write_benchmark(db_connection *connection, db_job *job, tb_error *error)
{
    const db_benchmark *b = &((const benchmark_job *)job)->benchmark;
    tb_status status =
        write_name(connection, DB_BENCHMARK_PUT_NAME, b->name, sizeof b->name, error);
    if (status == TB_OK)
        status =
            write_name(connection, DB_BENCHMARK_PUT_TESTBED, b->testbed, sizeof b->testbed, error);
    if (status == TB_OK)
        status = write_name(connection, DB_BENCHMARK_PUT_BUILD, b->build, sizeof b->build, error);
    if (status == TB_OK) status = write_row(connection, b, error);

    const int64_t number = sqlite3_last_insert_rowid(connection->handle);
    for (int32_t i = 0; i < b->number_of_samples && status == TB_OK; i++) {
        sqlite3_stmt *s = NULL;
        status = db_take(connection, DB_BENCHMARK_PUT_SAMPLE, &s, error);
        if (status != TB_OK) break;
        sqlite3_bind_int64(s, 1, number);
        sqlite3_bind_int(s, 2, i);
        sqlite3_bind_double(s, 3, b->samples[i]);
        status = db_run_statement(connection, s, "a benchmark's samples", error);
    }
    return status;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Quantile of sorted samples, linear between neighbours (type 7 of Hyndman and Fan, 1996). */
static double quantile(const double *sorted, int32_t count, double p)
{
    const double place = p * (count - 1);
    const int32_t below = (int32_t)place;
    if (below + 1 >= count) return sorted[count - 1];
    return sorted[below] + (place - below) * (sorted[below + 1] - sorted[below]);
}

static tb_status fill_quartiles(db_benchmark *b, tb_error *error)
{
    b->median = b->lower = b->upper = 0;
    if (b->number_of_samples == 0) return TB_OK;
    const size_t size = (size_t)b->number_of_samples * sizeof(double);
    double *sorted = malloc(size);
    if (sorted == NULL) return tb_fail_memory(error, size, "a benchmark's samples");
    memcpy(sorted, b->samples, size);
    qsort(sorted, (size_t)b->number_of_samples, sizeof *sorted, compare);
    b->median = quantile(sorted, b->number_of_samples, 0.5);
    b->lower = quantile(sorted, b->number_of_samples, 0.25);
    b->upper = quantile(sorted, b->number_of_samples, 0.75);
    free(sorted);
    return TB_OK;
}

tb_status db_record_benchmark(db *store, db_benchmark *benchmark, tb_error *error)
{
    const int32_t count = benchmark->number_of_samples;
    if (count < 0 || count > DB_BENCHMARK_SAMPLES)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "samples",
                             "samples: %d of them, 0 to %d can be kept", count,
                             DB_BENCHMARK_SAMPLES);
    for (int32_t i = 0; i < count; i++)
        if (!isfinite(benchmark->samples[i]))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "samples", "samples[%d] is not finite",
                                 i);
    const tb_status status = fill_quartiles(benchmark, error);
    if (status != TB_OK) return status;

    const size_t size = (size_t)count * sizeof(double);
    benchmark_job *put = db_job_create(sizeof *put + size, NULL, NULL, error);
    if (put == NULL) return TB_RESOURCE_EXHAUSTED;
    put->job.write = write_benchmark;
    put->job.full = true;
    put->job.compound = true;
    put->benchmark = *benchmark;
    if (size != 0) memcpy(put->samples, benchmark->samples, size);
    put->benchmark.samples = put->samples;
    return db_submit_and_wait(store, &put->job, error);
}

/* ---- reading ---- */

static tb_status read_samples(db_connection *connection, int64_t number, db_benchmark *b,
                              tb_error *error)
{
    if (b->number_of_samples == 0) return TB_OK;
    double *samples = calloc((size_t)b->number_of_samples, sizeof *samples);
    if (samples == NULL) return tb_fail_memory(error, 0, "a benchmark's samples");
    b->samples = samples;

    sqlite3_stmt *s = NULL;
    tb_status status = db_take(connection, DB_BENCHMARK_SAMPLES_OF, &s, error);
    if (status != TB_OK) return status;
    sqlite3_bind_int64(s, 1, number);
    int32_t count = 0;
    bool row = true;
    while (count < b->number_of_samples && row) {
        status = db_next_row(connection, s, &row, "a benchmark's samples", error);
        if (status != TB_OK) return status;
        if (row) samples[count++] = db_column_number(s, 0);
    }
    db_give_back(s);
    b->number_of_samples = count;
    return TB_OK;
}

static tb_status read_entry(db_query *query, void *rows, int32_t index, tb_error *error)
{
    sqlite3_stmt *s = query->statement;
    db_benchmark *b = (db_benchmark *)rows + index;
    memset(b, 0, sizeof *b);
    db_column_bytes(s, 1, b->id.bytes, sizeof b->id.bytes);
    db_column_text(s, 2, b->name, sizeof b->name);
    db_column_text(s, 3, b->metric, sizeof b->metric);
    db_column_text(s, 4, b->unit, sizeof b->unit);
    db_column_text(s, 5, b->testbed, sizeof b->testbed);
    db_column_text(s, 6, b->build, sizeof b->build);
    b->number_of_samples = sqlite3_column_int(s, 7);
    double *const numbers[] = {&b->median,     &b->lower,       &b->upper,       &b->residual,
                               &b->iterations, &b->penetration, &b->energy_drift};
    for (int i = 0; i < (int)(sizeof numbers / sizeof *numbers); i++)
        *numbers[i] = db_column_number(s, 8 + i);
    b->time_us = sqlite3_column_int64(s, 15);
    if (b->number_of_samples < 0 || b->number_of_samples > DB_BENCHMARK_SAMPLES)
        return tb_fail(error, TB_DATA_LOSS, "a stored benchmark claims %d samples",
                       b->number_of_samples);
    const tb_status status = read_samples(query->connection, sqlite3_column_int64(s, 0), b, error);
    if (status != TB_OK) free((void *)b->samples);
    return status;
}

tb_status db_get_benchmark(db *store, const db_id *id, db_benchmark *benchmark, tb_error *error)
{
    db_query query;
    tb_status status = db_query_begin(store, DB_BENCHMARK_GET, &query, error);
    if (status != TB_OK) return status;
    db_bind_id(query.statement, 1, id);
    status = db_query_one(&query, "benchmark", error);
    if (status == TB_OK) status = read_entry(&query, benchmark, 0, error);
    db_query_end(&query);
    return status;
}

tb_status db_list_benchmarks(db *store, const char *name, const char *token,
                             db_benchmark *benchmarks, int32_t capacity, int32_t *count,
                             char next[DB_TOKEN_SIZE], tb_error *error)
{
    const bool all = name == NULL || name[0] == '\0';
    db_page page = {.list = 'b'};
    page.filter = all ? 0 : db_page_hash(0, name, strlen(name));
    db_query query;
    *count = 0;
    tb_status status = db_page_parse(&page, token, error);
    if (status == TB_OK)
        status =
            db_query_begin(store, all ? DB_BENCHMARK_LIST : DB_BENCHMARK_LIST_NAME, &query, error);
    if (status != TB_OK) return status;
    if (!all) db_bind_text(query.statement, 3, name, SIZE_MAX);
    status = db_page_read(&query, &page, read_entry, benchmarks, capacity, count, next, error);
    db_query_end(&query);
    if (status != TB_OK) {
        for (int32_t i = 0; i < *count; i++) free((void *)benchmarks[i].samples);
        *count = 0;
    }
    return status;
}
