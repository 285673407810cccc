/* See run_message.h. */
#include "handlers/run_message.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "session/session.h"

/* protobuf-c points at texts and numbers that it only reads without saying const */
static char *text(const char *constant)
{
    return (char *)(uintptr_t)constant;
}

void td_run_certificate(const db_certificate *c, Tribo__V1__Certificate *message)
{
    tribo__v1__certificate__init(message);
    message->outcome = (Tribo__V1__Outcome)c->outcome;
    message->step = c->step;
    message->time = c->time;
    message->residual = c->residual;
    message->penetration = c->penetration;
    message->cone_error = c->cone_error;
    message->complementarity_error = c->complementarity_error;
    message->closure_error = c->closure_error;
    message->energy = c->energy;
    message->energy_change = c->energy_change;
    /* sums over many steps may be beyond the wire's integers */
    message->contacts = (int32_t)(c->contacts < INT32_MAX ? c->contacts : INT32_MAX);
    message->rows = (int32_t)(c->rows < INT32_MAX ? c->rows : INT32_MAX);
    message->iterations = (int32_t)(c->iterations < INT32_MAX ? c->iterations : INT32_MAX);
    message->solver = text(c->solver);
    message->capacity_grew = (c->flags & TB_CERTIFICATE_OVERFLOW) != 0;
    message->relaxation_halved = (c->flags & TB_CERTIFICATE_HALVED) != 0;
    message->degenerate_pair = (c->flags & TB_CERTIFICATE_DEGENERATE) != 0;
}

void td_run_describe(td_run *run)
{
    static const db_sha256 NONE;
    const db_run *row = &run->row;
    td_id_print(&row->id, run->id);
    run->scene[0] = '\0';
    if (memcmp(&row->scene, &NONE, sizeof NONE) != 0) td_sha256_print(&row->scene, run->scene);
    td_run_certificate(&row->certificate, &run->certificate);

    Tribo__V1__Run *message = &run->message;
    tribo__v1__run__init(message);
    message->run_id = run->id;
    message->kind = (Tribo__V1__RunKind)row->kind;
    message->status = (Tribo__V1__RunStatus)row->status;
    message->owner = text(row->owner);
    message->label = text(row->label);
    message->scene_id = run->scene;
    if (row->options_json != NULL) message->options_json = text(row->options_json);
    message->build = text(row->build);
    message->device = text(row->device);
    message->start_time_us = row->start_time_us;
    message->end_time_us = row->end_time_us;
    message->worlds = row->worlds;
    message->steps = row->steps;
    message->compute_time_us = row->compute_time_us;
    message->certificate = &run->certificate;
    message->message = text(row->message);
    message->grasps = row->grasps;
    message->grasps_held = row->grasps_held;
    message->node = run->node;
}

tb_status td_run_needs_fleet(const td_call *call, tb_error *error)
{
    if (call->server->fleet != NULL) return TB_OK;
    return tb_fail_field(error, TB_FAILED_PRECONDITION, "fleet",
                         "this daemon has no [fleet] outbox, so it lists its own runs alone");
}

void td_run_clear(td_run *run)
{
    free(text(run->row.options_json));
    run->row.options_json = NULL;
}

void td_benchmark_describe(td_benchmark *benchmark)
{
    const db_benchmark *row = &benchmark->row;
    td_id_print(&row->id, benchmark->id);
    Tribo__V1__Benchmark *message = &benchmark->message;
    tribo__v1__benchmark__init(message);
    message->benchmark_id = benchmark->id;
    message->name = text(row->name);
    message->metric = text(row->metric);
    message->unit = text(row->unit);
    message->testbed = text(row->testbed);
    message->build = text(row->build);
    message->samples = (double *)(uintptr_t)row->samples;
    message->n_samples = (size_t)row->number_of_samples;
    message->median = row->median;
    message->lower = row->lower;
    message->upper = row->upper;
    message->residual = row->residual;
    message->iterations = row->iterations;
    message->penetration = row->penetration;
    message->energy_drift = row->energy_drift;
    message->time_us = row->time_us;
    message->node = benchmark->node;
}

void td_benchmark_clear(td_benchmark *benchmark)
{
    free((void *)(uintptr_t)benchmark->row.samples);
    benchmark->row.samples = NULL;
}

tb_status td_page_read(const td_call *call, const td_page_source *source, const void *query,
                       const char *token, int32_t size, void *page, char next[DB_TOKEN_SIZE],
                       tb_error *error)
{
    const int32_t most = source->rows_at_once;
    char *rows = calloc((size_t)most, source->row_bytes);
    if (rows == NULL) return tb_fail_memory(error, (size_t)most * source->row_bytes, "a list");
    tb_status status = TB_OK;
    uint64_t bytes = 0;
    int32_t left = size;
    do {
        int32_t count = 0;
        status =
            source->list(call, query, token, rows, left < most ? left : most, &count, next, error);
        if (status != TB_OK) break;
        for (int32_t i = 0; i < count; i++)
            bytes += source->add(page, rows + (size_t)i * source->row_bytes);
        left -= count;
        token = next;
    } while (next[0] != '\0' && left > 0 && bytes < call->server->config->chunk_bytes);
    free(rows);
    return status;
}
