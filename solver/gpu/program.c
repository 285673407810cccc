/* Quadratic programs on the card: the host's side. It brings the numbers there, begins the one launch
 * that solves the program, and fetches how it ended. */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "program.h"

/* The card's memory of one program: everything that travels, in one block, then the work. */
typedef struct program_memory {
    tb_gpu_device device;
    tb_gpu_buffer given, work, staging;
} program_memory;

enum { COLUMN_UNIT = 16 /* numbers: columns of the hessian begin at whole sectors */ };

/* More bordered columns than this are dearer on a card than a fresh factorization. */
enum { MOST_BORDERED = 224 };

static const size_t PART_ALIGNMENT = 256;

static size_t round_up(size_t bytes)
{
    return (bytes + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
}

static size_t number_size(const tb_qp_options *options)
{
    return options->precision == TB_FLOAT ? sizeof(float) : sizeof(double);
}

/* ---- what the card has ---- */

static tb_status check_rows(const tb_qp_program *p, tb_error *error)
{
    for (int32_t i = 0; i < p->constraints; i++)
        if (p->row_start[i + 1] - p->row_start[i] != 1 || p->value[p->row_start[i]] == 0)
            return tb_fail_field(error, TB_UNSUPPORTED, "system",
                                 "row %d is no bound on one variable, and a card takes no others",
                                 (int)i);
    return TB_OK;
}

static size_t memory_for(const tb_gpu_program *p)
{
    return p->options.precision == TB_FLOAT ? tb_gpu_program_memory_f32(p)
                                            : tb_gpu_program_memory(p);
}

/* Blocks, their memory, and how large a border it has room for. */
static tb_status plan_launch(tb_gpu_device *device, tb_gpu_program *p, tb_error *error)
{
    int blocks = 0, memory = 0, together = 0;
    tb_status status = tb_gpu_check(
        device, cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, device->index),
        "asking for its processors", error);
    if (status == TB_OK)
        status = tb_gpu_check(
            device,
            cudaDeviceGetAttribute(&memory, cudaDevAttrMaxSharedMemoryPerBlockOptin, device->index),
            "asking for its shared memory", error);
    if (status == TB_OK)
        status = tb_gpu_check(
            device, cudaDeviceGetAttribute(&together, cudaDevAttrCooperativeLaunch, device->index),
            "asking for cooperative launches", error);
    if (status != TB_OK) return status;
    p->blocks = blocks;
    p->block_memory = (size_t)memory;
    p->limit = 0;
    if (blocks < TB_GPU_FEWEST_BLOCKS || !together || memory_for(p) > p->block_memory)
        return tb_fail_field(error, TB_UNSUPPORTED, "backend",
                             "a program of %d variables with a half-bandwidth of %d needs more "
                             "shared memory than card %d has",
                             (int)p->n, (int)p->half_bandwidth, (int)device->index);
    if (p->options.method != TB_QP_SCHURPA) return TB_OK;
    p->limit =
        p->options.maximum_changes < MOST_BORDERED ? p->options.maximum_changes : MOST_BORDERED;
    while (p->limit > 0 && memory_for(p) > p->block_memory) p->limit--;
    return TB_OK;
}

/* ---- to the card ---- */

/* What travels, part by part; the host's copy has the same places as the card's. */
typedef struct parts {
    unsigned char *host, *card;
    size_t used;
} parts;

static void *place(parts *p, size_t bytes, void **card)
{
    const size_t at = p->used;
    p->used += round_up(bytes);
    *card = p->card ? p->card + at : NULL;
    return p->host ? p->host + at : NULL;
}

static void convert(void *to, const double *from, size_t count, bool single)
{
    if (to == NULL || count == 0) return;
    if (!single) {
        memcpy(to, from, count * sizeof *from);
        return;
    }
    float *numbers = to;
    for (size_t i = 0; i < count; i++) numbers[i] = (float)from[i];
}

static void list_by_variable(const tb_qp_program *p, int32_t *first, int32_t *of)
{
    memset(first, 0, ((size_t)p->n + 1) * sizeof *first);
    for (int32_t i = 0; i < p->constraints; i++) first[p->column[i] + 1]++;
    for (int32_t j = 0; j < p->n; j++) first[j + 1] += first[j];
    for (int32_t i = 0; i < p->constraints; i++) of[first[p->column[i]]++] = i;
    for (int32_t j = p->n; j > 0; j--) first[j] = first[j - 1];
    first[0] = 0;
}

/* Where everything of a program lies; writes the host's copy where there is one. Returns bytes: those
 * that travel, without the results behind them. */
static size_t lay_out(const tb_qp_program *q, const uint8_t *active, parts *p, tb_gpu_program *g,
                      size_t *all)
{
    const bool single = g->options.precision == TB_FLOAT;
    const size_t n = (size_t)q->n, m = (size_t)q->constraints, size = number_size(&g->options);
    void *first_there, *of_there, *active_there, *result_there, *x_there, *lambda_there;
    convert(place(p, n * size, &g->f), q->f, n, single);
    convert(place(p, m * size, &g->value), q->value, m, single);
    convert(place(p, m * size, &g->b), q->b, m, single);
    int32_t *first = place(p, (n + 1) * sizeof *first, &first_there);
    int32_t *of = place(p, m * sizeof *of, &of_there);
    uint8_t *set = place(p, m, &active_there);
    if (set != NULL) {
        list_by_variable(q, first, of);
        if (m > 0) memcpy(set, active, m);
    }
    const size_t travels = p->used;
    (void)place(p, sizeof *g->result, &result_there);
    (void)place(p, n * sizeof(double), &x_there);
    (void)place(p, m * sizeof(double), &lambda_there);
    *all = p->used;
    (void)place(p, n * (size_t)g->stride * size, &g->hessian);
    g->first = first_there;
    g->of = of_there;
    g->active = active_there;
    g->result = result_there;
    g->x = x_there;
    g->lambda = lambda_there;
    return travels;
}

/* The hessian goes in pieces that the pinned memory has room for. */
static tb_status send_hessian(program_memory *m, const tb_qp_program *q, const tb_gpu_program *g,
                              tb_error *error)
{
    const size_t size = number_size(&g->options), band = (size_t)q->half_bandwidth + 1;
    const size_t columns = m->staging.capacity / (band * size), n = (size_t)q->n;
    tb_status status = TB_OK;
    for (size_t j = 0; j < n && status == TB_OK; j += columns) {
        const size_t count = n - j < columns ? n - j : columns;
        status = tb_gpu_wait(&m->device, "bringing the hessian", error);
        if (status != TB_OK) break;
        convert(m->staging.memory, q->hessian + j * band, count * band, size == sizeof(float));
        status = tb_gpu_check(&m->device,
                              cudaMemcpy2DAsync((char *)g->hessian + j * (size_t)g->stride * size,
                                                (size_t)g->stride * size, m->staging.memory,
                                                band * size, band * size, count,
                                                cudaMemcpyHostToDevice, m->device.stream),
                              "bringing the hessian", error);
    }
    return status == TB_OK ? tb_gpu_wait(&m->device, "bringing the hessian", error) : status;
}

static tb_status send_program(program_memory *m, const tb_qp_program *q, const uint8_t *active,
                              tb_gpu_program *g, size_t *all, tb_error *error)
{
    enum { LEAST_STAGING = 16 << 20 };
    const size_t band = ((size_t)q->half_bandwidth + 1) * number_size(&g->options);
    parts sizes = {0};
    const size_t travels = lay_out(q, active, &sizes, g, all);
    size_t staging = band > LEAST_STAGING ? band : LEAST_STAGING;
    if (*all > staging) staging = *all;
    tb_status status = tb_gpu_reserve(&m->device, &m->given, sizes.used, error);
    if (status == TB_OK) status = tb_gpu_reserve_pinned(&m->device, &m->staging, staging, error);
    if (status != TB_OK) return status;
    parts there = {.card = m->given.memory};
    (void)lay_out(q, active, &there, g, all);
    status = send_hessian(m, q, g, error);
    if (status != TB_OK) return status;
    parts both = {.host = m->staging.memory, .card = m->given.memory};
    (void)lay_out(q, active, &both, g, all);
    return tb_gpu_check(&m->device,
                        cudaMemcpyAsync(m->given.memory, m->staging.memory, travels,
                                        cudaMemcpyHostToDevice, m->device.stream),
                        "bringing the program", error);
}

/* ---- solving ---- */

static tb_status run_program(program_memory *m, const tb_qp_program *q, tb_gpu_program *g,
                             uint8_t *active, double *x, double *lambda, tb_qp_result *result,
                             size_t all, tb_error *error)
{
    const bool single = g->options.precision == TB_FLOAT;
    const size_t work = single ? tb_gpu_program_work_f32(g) : tb_gpu_program_work(g);
    tb_status status = tb_gpu_reserve(&m->device, &m->work, work, error);
    if (status != TB_OK) return status;
    g->work = m->work.memory;
    status = tb_gpu_check(
        &m->device, (single ? tb_gpu_start_program_f32 : tb_gpu_start_program)(g, m->device.stream),
        "beginning the program", error);
    if (status == TB_OK)
        status = tb_gpu_check(&m->device,
                              cudaMemcpyAsync(m->staging.memory, m->given.memory, all,
                                              cudaMemcpyDeviceToHost, m->device.stream),
                              "fetching the solution", error);
    if (status == TB_OK) status = tb_gpu_wait(&m->device, "solving the program", error);
    if (status != TB_OK) return status;
    const unsigned char *here = m->staging.memory;
    const char *there = m->given.memory;
    memcpy(result, here + ((char *)g->result - there), sizeof *result);
    if (result->status == TB_FAILED_PRECONDITION)
        return tb_fail(error, TB_FAILED_PRECONDITION,
                       "the Hessian with the equalities alone makes a singular system");
    memcpy(x, here + ((char *)g->x - there), (size_t)q->n * sizeof *x);
    if (q->constraints == 0) return TB_OK;
    memcpy(active, here + ((char *)g->active - there), (size_t)q->constraints);
    memcpy(lambda, here + ((char *)g->lambda - there), (size_t)q->constraints * sizeof *lambda);
    return TB_OK;
}

tb_status tb_gpu_solve_program(const tb_qp_program *q, const tb_qp_options *options,
                               uint8_t *active, double *x, double *lambda, tb_qp_result *result,
                               tb_error *error)
{
    program_memory m = {0};
    char reason[TB_ERROR_MESSAGE_SIZE];
    if (options->device >= tb_gpu_count(reason))
        return tb_fail_field(error, TB_NOT_FOUND, "device", "there is no card %d",
                             (int)options->device);
    tb_status status = check_rows(q, error);
    if (status == TB_OK) status = tb_gpu_device_open(options->device, &m.device, error);
    if (status != TB_OK) return status;
    tb_gpu_program g = {.n = q->n,
                        .half_bandwidth = q->half_bandwidth,
                        .constraints = q->constraints,
                        .equalities = q->equalities,
                        .options = *options};
    const bool single = options->precision == TB_FLOAT;
    g.stride = ((int64_t)q->half_bandwidth + COLUMN_UNIT) / COLUMN_UNIT * COLUMN_UNIT;
    if (g.options.tolerance == 0) g.options.tolerance = single ? 1e-4 : 1e-10;
    if (g.options.tie == 0) g.options.tie = 100 * (single ? (double)FLT_EPSILON : DBL_EPSILON);
    size_t all = 0;
    status = plan_launch(&m.device, &g, error);
    if (status == TB_OK) status = send_program(&m, q, active, &g, &all, error);
    if (status == TB_OK) status = run_program(&m, q, &g, active, x, lambda, result, all, error);
    tb_gpu_release(&m.device, &m.given);
    tb_gpu_release(&m.device, &m.work);
    tb_gpu_release_pinned(&m.device, &m.staging);
    tb_gpu_device_close(&m.device);
    return status;
}
