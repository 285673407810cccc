/* Quadratic programs on the card: the host's side. It sends the numbers, begins the one launch
 * that solves the program, and fetches the result. */
#include <stdlib.h>
#include <string.h>

#include "gpu/device/array_copies.h"
#include "gpu/qp/prepared.h"
#include "qp/facet_coordinates.h"

/* Offsets of a program's parts, bytes; the same on the host's side and on the card, but for the
 * hessian. Parts sent for each solve come first, then fetched parts, then the rest. */
typedef struct places {
    size_t f, b, active, result, x, lambda, value, first, of, hessian, all;
} places;

/* A program on a card. */
typedef struct card_program {
    tb_gpu_device device;
    tb_gpu_buffer given, work, staging;
    tb_gpu_program g;
    places at;
    void **room; /* of tb_qp_card_program: gets this struct for the next program; NULL: none */
} card_program;

enum { COLUMN_UNIT = 16 /* numbers: columns of the hessian begin at whole sectors */ };

/* Above this number of bordered columns a fresh factorization is cheaper on a card. */
enum { MOST_BORDERED = 512 };

static const size_t PART_ALIGNMENT = 256;

static size_t round_up(size_t bytes)
{
    return (bytes + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
}

static size_t number_size(const tb_qp_options *options)
{
    return options->precision == TB_FLOAT ? sizeof(float) : sizeof(double);
}

/* ---- limits of the card ---- */

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

/* Blocks, their memory, and the most bordered columns. */
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
    const int32_t most = p->n < MOST_BORDERED ? p->n : MOST_BORDERED;
    p->limit = p->options.maximum_changes < most ? p->options.maximum_changes : most;
    return TB_OK;
}

/* ---- to the card ---- */

static size_t take_place(size_t *used, size_t count, size_t size)
{
    const size_t at = *used;
    *used += round_up(count * size);
    return at;
}

static places find_places(const tb_gpu_program *g)
{
    const size_t n = (size_t)g->n, m = (size_t)g->constraints, size = number_size(&g->options);
    places at;
    size_t used = 0;
    at.f = take_place(&used, n, size);
    at.b = take_place(&used, m, size);
    at.active = take_place(&used, m, 1);
    at.result = take_place(&used, 1, sizeof *g->result);
    at.x = take_place(&used, n, sizeof *g->x);
    at.lambda = take_place(&used, m, sizeof *g->lambda);
    at.value = take_place(&used, m, size);
    at.first = take_place(&used, n + 1, sizeof *g->first);
    at.of = take_place(&used, m, sizeof *g->of);
    at.hessian = take_place(&used, g->hessian == NULL ? n * (size_t)g->stride : 0, size);
    at.all = used;
    return at;
}

static void point_to(tb_gpu_program *g, const places *at, char *card)
{
    g->f = card + at->f;
    g->b = card + at->b;
    g->active = (uint8_t *)(card + at->active);
    g->result = (tb_qp_result *)(void *)(card + at->result);
    g->x = (double *)(void *)(card + at->x);
    g->lambda = (double *)(void *)(card + at->lambda);
    g->value = card + at->value;
    g->first = (int32_t *)(void *)(card + at->first);
    g->of = (int32_t *)(void *)(card + at->of);
    if (g->hessian == NULL) g->hessian = card + at->hessian;
}

/* Parts [from, to) of the host's copy, to the card or back. */
static tb_status copy_parts(card_program *h, size_t from, size_t to, enum cudaMemcpyKind kind,
                            tb_error *error)
{
    char *here = (char *)h->staging.memory + from, *there = (char *)h->given.memory + from;
    const bool up = kind == cudaMemcpyHostToDevice;
    return tb_gpu_check(
        &h->device,
        cudaMemcpyAsync(up ? there : here, up ? here : there, to - from, kind, h->device.stream),
        up ? "bringing the program" : "fetching the solution", error);
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

/* Memory for the parts. Gaps between them are copied with them, and sums read a few numbers behind a column of the
 * hessian and drop them: new memory is cleared. */
static tb_status reserve_given(card_program *h, tb_error *error)
{
    const size_t had = h->given.capacity;
    const tb_status status = tb_gpu_reserve(&h->device, &h->given, h->at.all, error);
    if (status != TB_OK || h->given.capacity == had) return status;
    return tb_gpu_check(&h->device,
                        cudaMemsetAsync(h->given.memory, 0, h->given.capacity, h->device.stream),
                        "bringing the program", error);
}

/* Parts that stay: memory, the hessian, the rows. */
static tb_status send_program(card_program *h, const tb_qp_program *q, tb_error *error)
{
    const bool single = h->g.options.precision == TB_FLOAT;
    const size_t n = (size_t)q->n, band = (size_t)q->half_bandwidth + 1;
    size_t staging = 0;
    h->at = find_places(&h->g);
    if (q->hessian != NULL) staging = TB_GPU_STAGING; /* a hessian goes there piece by piece */
    if (band * number_size(&h->g.options) > staging) staging = band * number_size(&h->g.options);
    if (h->at.hessian > staging) staging = h->at.hessian;
    tb_status status = reserve_given(h, error);
    if (status == TB_OK) status = tb_gpu_reserve_pinned(&h->device, &h->staging, staging, error);
    if (status != TB_OK) return status;
    point_to(&h->g, &h->at, h->given.memory);
    const size_t work = single ? tb_gpu_program_scratch_f32(&h->g) : tb_gpu_program_scratch(&h->g);
    status = tb_gpu_reserve(&h->device, &h->work, work, error);
    if (status == TB_OK && q->hessian != NULL)
        status = tb_gpu_upload_doubles(&h->device, &h->staging, h->g.hessian, (size_t)h->g.stride,
                                       q->hessian, band, n, single, error);
    if (status != TB_OK) return status;
    h->g.work = h->work.memory;
    char *here = h->staging.memory;
    tb_gpu_convert(here + h->at.value, q->value, (size_t)q->constraints, single);
    list_by_variable(q, (int32_t *)(void *)(here + h->at.first),
                     (int32_t *)(void *)(here + h->at.of));
    status = copy_parts(h, h->at.value, h->at.hessian, cudaMemcpyHostToDevice, error);
    return status == TB_OK ? tb_gpu_wait(&h->device, "bringing the program", error) : status;
}

/* ---- opening ---- */

static void release(card_program *h)
{
    tb_gpu_release(&h->device, &h->given);
    tb_gpu_release(&h->device, &h->work);
    tb_gpu_release_pinned(&h->device, &h->staging);
    tb_gpu_device_close(&h->device);
    free(h);
}

/* The stream and the memory in the room, if it has them and they are of this device, or new ones. */
static tb_status enter_room(int32_t device, void **room, card_program **program, tb_error *error)
{
    card_program *h = room != NULL ? *room : NULL;
    tb_status status = TB_OK;
    if (room != NULL) *room = NULL;
    if (h != NULL && h->device.index == device) {
        status = tb_gpu_device_enter(&h->device, error);
    } else {
        if (h != NULL) release(h);
        h = calloc(1, sizeof *h);
        if (h == NULL) return tb_fail_memory(error, sizeof *h, "a program on a card");
        status = tb_gpu_device_open(device, &h->device, error);
        if (status != TB_OK) {
            free(h);
            return status;
        }
    }
    h->device.soft = room != NULL; /* rooms are those of soft worlds */
    h->room = room;
    if (status == TB_OK)
        *program = h;
    else
        release(h);
    return status;
}

/* A stream, memory and a launch for the program. `card`: its Hessian lies there; NULL: on the host. */
static tb_status begin_program(const tb_qp_program *q, const tb_qp_card_program *card,
                               const tb_qp_options *options, card_program **program,
                               tb_error *error)
{
    const bool single = options->precision == TB_FLOAT;
    card_program *h = NULL;
    tb_status status = enter_room(options->device, card != NULL ? card->room : NULL, &h, error);
    if (status != TB_OK) return status;
    h->g = (tb_gpu_program){.n = q->n,
                            .half_bandwidth = q->half_bandwidth,
                            .constraints = q->constraints,
                            .equalities = q->equalities,
                            .options = *options};
    h->g.stride = ((int64_t)q->half_bandwidth + COLUMN_UNIT) / COLUMN_UNIT * COLUMN_UNIT;
    if (card != NULL) {
        h->g.hessian = (void *)(uintptr_t)card->band;
        h->g.stride = card->stride;
    }
    if (options->tolerance == 0) h->g.options.tolerance = single ? 1e-4 : 1e-10;
    if (options->tie == 0) h->g.options.tie = 100 * (single ? (double)FLT_EPSILON : DBL_EPSILON);
    status = plan_launch(&h->device, &h->g, error);
    if (status == TB_OK)
        *program = h;
    else
        release(h);
    return status;
}

tb_status tb_gpu_program_open(const tb_qp_program *q, const tb_qp_options *options, void **context,
                              tb_error *error)
{
    char reason[TB_ERROR_MESSAGE_SIZE];
    card_program *h = NULL;
    if (options->device >= tb_gpu_count(reason))
        return tb_fail_field(error, TB_NOT_FOUND, "device", "there is no card %d",
                             (int)options->device);
    tb_status status = check_rows(q, error);
    if (status == TB_OK && q->hessian == NULL && options->precision == TB_FLOAT)
        status = tb_fail_field(error, TB_UNSUPPORTED, "precision",
                               "a hessian that lies on a card is in double");
    if (status == TB_OK)
        status = begin_program(
            q, q->hessian == NULL ? (const tb_qp_card_program *)(const void *)q : NULL, options, &h,
            error);
    if (status != TB_OK) return status;
    status = send_program(h, q, error);
    if (status == TB_OK)
        *context = h;
    else
        release(h); /* memory that was too small for it is free again */
    return status;
}

tb_status tb_gpu_program_prepare(const tb_qp_card_program *q, const tb_qp_options *options,
                                 void **context, const tb_gpu_program **numbers, tb_error *error)
{
    card_program *h = NULL;
    tb_status status = begin_program(&q->program, q, options, &h, error);
    if (status != TB_OK) return status;
    h->at = find_places(&h->g);
    status = reserve_given(h, error);
    if (status == TB_OK) status = tb_gpu_wait(&h->device, "clearing a program", error);
    if (status == TB_OK)
        status = tb_gpu_reserve_pinned(&h->device, &h->staging, h->at.hessian, error);
    if (status == TB_OK) {
        point_to(&h->g, &h->at, h->given.memory);
        status = tb_gpu_reserve(&h->device, &h->work, tb_gpu_program_scratch(&h->g), error);
    }
    if (status != TB_OK) {
        release(h);
        return status;
    }
    h->g.work = h->work.memory;
    *context = h;
    *numbers = &h->g;
    return TB_OK;
}

/* ---- solving ---- */

/* After a launch: whether the next one may begin with its factorization. */
static tb_status end_solve(card_program *h, const tb_qp_result *result, tb_error *error)
{
    if (result->status == TB_FAILED_PRECONDITION)
        return tb_fail(error, TB_FAILED_PRECONDITION,
                       "the Hessian with the equalities alone makes a singular system");
    h->g.again = h->g.options.method == TB_QP_SCHURPA && result->status != TB_DIVERGED;
    return TB_OK;
}

tb_status tb_gpu_program_run(void *context, tb_gpu_device *device, tb_qp_result *result,
                             tb_error *error)
{
    card_program *h = context;
    const tb_gpu_program now = h->g;
    void *here = h->staging.memory;
    h->g.again = 0; /* unless all goes well */
    tb_status status = tb_gpu_check(device, tb_gpu_start_program(&now, device->stream),
                                    "beginning the program", error);
    if (status == TB_OK)
        status = tb_gpu_check(device,
                              cudaMemcpyAsync(here, now.result, sizeof *result,
                                              cudaMemcpyDeviceToHost, device->stream),
                              "fetching the solution", error);
    if (status == TB_OK) status = tb_gpu_wait(device, "solving the program", error);
    if (status != TB_OK) return status;
    memcpy(result, here, sizeof *result);
    return end_solve(h, result, error);
}

static void read_solution(const card_program *h, uint8_t *active, double *x, double *lambda)
{
    const char *here = h->staging.memory;
    const size_t m = (size_t)h->g.constraints;
    memcpy(x, here + h->at.x, (size_t)h->g.n * sizeof *x);
    if (m == 0) return;
    memcpy(active, here + h->at.active, m);
    memcpy(lambda, here + h->at.lambda, m * sizeof *lambda);
}

tb_status tb_gpu_program_solve(void *context, const double *f, const double *b, uint8_t *active,
                               double *x, double *lambda, tb_qp_result *result, tb_error *error)
{
    card_program *h = context;
    const bool single = h->g.options.precision == TB_FLOAT;
    const size_t m = (size_t)h->g.constraints;
    tb_gpu_program now = h->g;
    tb_status status = tb_gpu_device_enter(&h->device, error);
    if (status != TB_OK) return status;
    char *here = h->staging.memory;
    tb_gpu_convert(here + h->at.f, f, (size_t)h->g.n, single);
    tb_gpu_convert(here + h->at.b, b, m, single);
    if (m > 0) memcpy(here + h->at.active, active, m);
    h->g.again = 0; /* unless all goes well */
    status = copy_parts(h, h->at.f, h->at.result, cudaMemcpyHostToDevice, error);
    if (status == TB_OK)
        status = tb_gpu_check(
            &h->device,
            (single ? tb_gpu_start_program_f32 : tb_gpu_start_program)(&now, h->device.stream),
            "beginning the program", error);
    if (status == TB_OK)
        status = copy_parts(h, h->at.active, h->at.value, cudaMemcpyDeviceToHost, error);
    if (status == TB_OK) status = tb_gpu_wait(&h->device, "solving the program", error);
    if (status != TB_OK) return status;
    memcpy(result, here + h->at.result, sizeof *result);
    status = end_solve(h, result, error);
    if (status == TB_OK) read_solution(h, active, x, lambda);
    return status;
}

void tb_gpu_program_forget(void *context)
{
    ((card_program *)context)->g.again = 0;
}

void tb_gpu_program_close(void *context)
{
    card_program *h = context;
    if (h->room != NULL && !h->device.lost)
        *h->room = h;
    else
        release(h);
}

void tb_gpu_program_leave(void *room)
{
    release(room);
}
