/* Rows of tables into the benchmark tables of a store, by a daemon or without one. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "db/db.h"
#include "common/cli.h"
#include "bench/thesis.h"
#include "tribo/v1/runs.pb-c.h"

/* One number: "betz.group.2100 bodies", metric "8 s". */
typedef struct sample {
    char name[128], metric[64], unit[32], testbed[256], build[128];
    double value, residual, iterations;
} sample;

static sample sample_of(const thesis_table *t, int row, int column, const thesis_options *o)
{
    sample s = {.value = t->row[row].here[column]};
    tb_device_info device = {.name = ""};
    tb_device_describe((tb_backend_choice)o->backend, 0, &device, NULL);
    snprintf(s.name, sizeof s.name, "%s.%s.%s", t->bench, t->name, t->row[row].label);
    snprintf(s.metric, sizeof s.metric, "%s", t->column[column].name);
    snprintf(s.unit, sizeof s.unit, "%s", t->column[column].unit);
    snprintf(s.testbed, sizeof s.testbed, "%s%s%s", device.name, device.driver[0] ? " " : "",
             device.driver);
    snprintf(s.build, sizeof s.build, "%s", cli_commit());
    s.residual = isfinite(t->row[row].residual) ? t->row[row].residual : 0;
    s.iterations = isfinite(t->row[row].iterations) ? t->row[row].iterations : 0;
    return s;
}

static tb_status by_server(tbc_client *client, sample *s, tb_error *error)
{
    Tribo__V1__Benchmark benchmark = TRIBO__V1__BENCHMARK__INIT;
    Tribo__V1__RecordBenchmarkRequest request = TRIBO__V1__RECORD_BENCHMARK_REQUEST__INIT;
    Tribo__V1__RecordBenchmarkResponse *answer = NULL;
    benchmark.name = s->name;
    benchmark.metric = s->metric;
    benchmark.unit = s->unit;
    benchmark.testbed = s->testbed;
    benchmark.build = s->build;
    benchmark.n_samples = 1;
    benchmark.samples = &s->value;
    benchmark.residual = s->residual;
    benchmark.iterations = s->iterations;
    request.benchmark = &benchmark;
    const tb_status status = TBC_CALL(client, "tribo.v1.Runs/RecordBenchmark", &request,
                                      record_benchmark_response, &answer, error);
    tbc_free(answer);
    return status;
}

static tb_status by_store(db *store, const sample *s, tb_error *error)
{
    db_benchmark row;
    memset(&row, 0, sizeof row);
    snprintf(row.name, sizeof row.name, "%s", s->name);
    snprintf(row.metric, sizeof row.metric, "%s", s->metric);
    snprintf(row.unit, sizeof row.unit, "%s", s->unit);
    snprintf(row.testbed, sizeof row.testbed, "%s", s->testbed);
    snprintf(row.build, sizeof row.build, "%s", s->build);
    row.samples = &s->value;
    row.number_of_samples = 1;
    row.residual = s->residual;
    row.iterations = s->iterations;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    row.time_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    if (getrandom(row.id.bytes, sizeof row.id.bytes, 0) != (ssize_t)sizeof row.id.bytes)
        return cli_fail(error, TB_INTERNAL, "", 0, NULL, "no random numbers for an id");
    return db_record_benchmark(store, &row, error);
}

tb_status thesis_record(const thesis_table *t, const thesis_options *o, tb_error *error)
{
    tbc_client *client = NULL;
    db *store = NULL;
    tb_status status = TB_OK;
    if (o->server) status = remote_connect(&o->remote, &client, error);
    if (status == TB_OK && o->store != NULL) {
        db_options options = {.folder = o->store, .queue_length = 64};
        status = db_open(&options, &store, error);
        options.beside = status == TB_FAILED_PRECONDITION; /* a daemon holds it */
        if (options.beside) status = db_open(&options, &store, error);
    }
    for (int i = 0; i < t->rows && status == TB_OK; i++)
        for (int k = 0; k < t->columns && status == TB_OK; k++) {
            if (!isfinite(t->row[i].here[k])) continue;
            sample s = sample_of(t, i, k, o);
            if (client != NULL) status = by_server(client, &s, error);
            if (status == TB_OK && store != NULL) status = by_store(store, &s, error);
        }
    tbc_disconnect(client);
    db_close(store);
    return status;
}
