/* Poulsen's sweeps on a GPU: the host's side. Everything goes there in one copy, all iterations are
 * one launch, and the impulses come back. */
#include "gpu/coloured/rows.h"

#include <string.h>

#include "gpu/device/device.h"

enum { BEFORE, AFTER };

typedef struct rows_job {
    tb_gpu_device device;
    tb_gpu_buffer memory;
    tb_gpu_rows rows; /* pointers of the card */
    size_t end;
    bool measuring; /* the first pass over the arrays counts their bytes */
    int processors;
} rows_job;

/* Memory for an array on the card, with the host's numbers in it, or zeros if `from` is NULL. */
static tb_status place(rows_job *job, const void *to_place, const void *from, size_t bytes,
                       tb_error *error)
{
    char *at = job->measuring ? NULL : (char *)job->memory.memory + job->end;
    job->end += (bytes + 255) / 256 * 256;
    if (job->measuring || bytes == 0) return TB_OK;
    memcpy((void *)(uintptr_t)to_place, &at, sizeof at);
    return tb_gpu_check(
        &job->device,
        from ? cudaMemcpyAsync(at, from, bytes, cudaMemcpyHostToDevice, job->device.stream)
             : cudaMemsetAsync(at, 0, bytes, job->device.stream),
        "bringing contacts", error);
}

static tb_status place_all(rows_job *job, const tb_row_run *run, tb_error *error)
{
    const tb_row_sweep *s = &run->sweep;
    tb_gpu_rows *g = &job->rows;
    tb_row_sweep *t = &g->run.sweep;
    const size_t contacts = (size_t)s->contacts, bodies = (size_t)s->bodies;
    const size_t numbers = TB_CONTACT_ROWS * contacts * sizeof(double), index = sizeof(int32_t);
    const size_t blocks = (size_t)run->blocks, unsafe = (size_t)run->unsafe_bodies;
    const size_t edges = unsafe > 0 ? (size_t)run->unsafe_start[unsafe] : 0;
    const bool factorized = s->storage == TB_STORAGE_FACTORIZED;
    const struct {
        const void *to, *from;
        size_t bytes;
    } arrays[] = {{&t->a, s->a, contacts * index},
                  {&t->b, s->b, contacts * index},
                  {&t->y, s->y, factorized ? 2 * TB_SIDE_NUMBERS * contacts * sizeof(double) : 0},
                  {&t->free, s->free, numbers},
                  {&t->lambda, s->lambda, numbers},
                  {&t->next, s->lambda, numbers},
                  {&t->w, s->w, factorized ? TB_BODY_DOFS * bodies * sizeof(double) : 0},
                  {&t->start, s->start, factorized ? 0 : (contacts + 1) * sizeof *s->start},
                  {&t->column, s->column, blocks * index},
                  {&t->block, s->block, blocks * TB_BLOCK_NUMBERS * sizeof(double)},
                  {&t->of_body, s->of_body, factorized ? (bodies + 1) * index : 0},
                  {&t->edge, s->edge, factorized ? (size_t)s->of_body[bodies] * index : 0},
                  {&g->run.colour_start, run->colour_start,
                   run->colours > 0 ? ((size_t)run->colours + 1) * index : 0},
                  {&g->run.order, run->order, run->colours > 0 ? contacts * index : 0},
                  {&g->run.unsafe_body, run->unsafe_body, unsafe * index},
                  {&g->run.unsafe_start, run->unsafe_start, unsafe > 0 ? (unsafe + 1) * index : 0},
                  {&g->run.unsafe_edge, run->unsafe_edge, edges * index},
                  {&g->before[0], s->lambda, numbers},
                  {&g->before[1], NULL, numbers},
                  {&g->largest, NULL, 3 * sizeof *g->largest},
                  {&g->meeting, NULL, 32 * sizeof *g->meeting},
                  {&g->outcome, NULL, sizeof *g->outcome}};
    tb_status status = TB_OK;
    job->end = 0;
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0] && status == TB_OK; i++)
        status = place(job, arrays[i].to, arrays[i].from, arrays[i].bytes, error);
    return status;
}

static tb_status bring(rows_job *job, const tb_row_run *run, tb_error *error)
{
    job->rows.run = *run;
    job->measuring = true;
    tb_status status = place_all(job, run, error);
    if (status == TB_OK) status = tb_gpu_reserve(&job->device, &job->memory, job->end, error);
    job->measuring = false;
    if (status == TB_OK) status = place_all(job, run, error);
    if (status != TB_OK) return status;
    status = tb_gpu_check(
        &job->device,
        cudaDeviceGetAttribute(&job->processors, cudaDevAttrMultiProcessorCount, job->device.index),
        "asking for its processors", error);
    return status == TB_OK ? tb_gpu_wait(&job->device, "bringing contacts", error) : status;
}

static tb_status iterate(rows_job *job, const tb_row_run *run, tb_row_outcome *outcome,
                         tb_error *error)
{
    const size_t numbers = TB_CONTACT_ROWS * (size_t)run->sweep.contacts * sizeof(double);
    double seconds = 0;
    tb_status status = tb_gpu_mark(&job->device, BEFORE, error);
    if (status == TB_OK)
        status = tb_gpu_check(&job->device,
                              tb_gpu_start_rows(&job->rows, job->processors, job->device.stream),
                              "sweeping contacts", error);
    if (status == TB_OK) status = tb_gpu_mark(&job->device, AFTER, error);
    if (status == TB_OK)
        status = tb_gpu_check(&job->device,
                              cudaMemcpyAsync(outcome, job->rows.outcome, sizeof *outcome,
                                              cudaMemcpyDeviceToHost, job->device.stream),
                              "fetching impulses", error);
    if (status == TB_OK)
        status = tb_gpu_check(&job->device,
                              cudaMemcpyAsync(run->sweep.lambda, job->rows.run.sweep.lambda,
                                              numbers, cudaMemcpyDeviceToHost, job->device.stream),
                              "fetching impulses", error);
    if (status == TB_OK) status = tb_gpu_wait(&job->device, "sweeping contacts", error);
    if (status == TB_OK) status = tb_gpu_elapsed(&job->device, BEFORE, AFTER, &seconds, error);
    outcome->seconds = seconds;
    return status;
}

tb_status tb_gpu_rows_iterate(int32_t device, const tb_row_run *run, tb_row_outcome *outcome,
                              tb_error *error)
{
    char reason[TB_ERROR_MESSAGE_SIZE];
    const int32_t devices = tb_gpu_count(reason);
    if (device >= devices)
        return tb_fail_field(error, TB_NOT_FOUND, "device", "device %d of %d of backend 'gpu'",
                             (int)device, (int)devices);
    rows_job job = {.measuring = true};
    tb_status status = tb_gpu_device_open(device, &job.device, error);
    if (status != TB_OK) return status;
    status = bring(&job, run, error);
    if (status == TB_OK) status = iterate(&job, run, outcome, error);
    tb_gpu_release(&job.device, &job.memory);
    tb_gpu_device_close(&job.device);
    return status;
}
