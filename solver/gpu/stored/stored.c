/* Stored prox iterations on a card: the host's side. T goes there once, each iteration is the launches
 * of its variant, and the impulses come back. */
#include "gpu/stored/stored.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/device/array_copies.h"
#include "gpu/device/blas.h"
#include "solve/stored/stored.h"

enum { BEFORE, AFTER, COLUMN_BYTES = 128 /* padded columns begin at whole lines of the card */ };

typedef struct stored_job {
    tb_gpu_device device;
    tb_gpu_buffer matrix, vectors, staging;
    tb_gpu_stored s;
    tb_gpu_blas blas;
    const tb_prox_system *system;
    const tb_stored_variant *variant;
    const tb_prox_options *options;
    bool single;
    size_t size; /* bytes of a number */
    int processors;
} stored_job;

/* ---- memory ---- */

static char *take(char **free, size_t bytes)
{
    char *at = *free;
    *free += (bytes + 255) / 256 * 256;
    return at;
}

static size_t exchange_bytes(const stored_job *job)
{
    const size_t side = TB_GPU_STORED_SOR_CONTACTS, contacts = (size_t)job->s.contacts;
    if (job->variant->form != TB_STORED_FULL_IN_ONE) return 0;
    return TB_GPU_STORED_SOR_SLOTS * ((contacts + side - 1) / side * side * 3) * job->size;
}

/* Points the vectors into a block at `base`; returns the block's bytes. */
static size_t lay_out(stored_job *job, char *base)
{
    tb_gpu_stored *s = &job->s;
    const size_t contacts = (size_t)s->contacts, vector = 3 * contacts * job->size;
    const bool sparse = tb_stored_is_sparse(job->variant->form);
    const size_t blocks = sparse ? (size_t)job->system->blocks : 0;
    const size_t groups = job->variant->form == TB_STORED_SPARSE_RELAXED
                              ? (contacts + (size_t)s->group - 1) / (size_t)s->group
                              : 0;
    char *free = base;
    s->d = take(&free, vector);
    s->mu = take(&free, contacts * job->size);
    s->old = take(&free, vector);
    s->next = take(&free, vector);
    s->sum = take(&free, vector);
    s->partial = take(&free, (size_t)s->slices * vector);
    s->stopped = (int32_t *)(void *)take(&free, 2 * sizeof(int32_t));
    s->finished = (int32_t *)(void *)take(&free, sizeof(int32_t));
    s->counters = (unsigned *)(void *)take(&free, TB_GPU_STORED_COUNTERS * sizeof(unsigned));
    s->exchange = take(&free, exchange_bytes(job));
    s->row_start = (int32_t *)(void *)take(&free, (contacts + 1) * sizeof(int32_t));
    s->column = (int32_t *)(void *)take(&free, blocks * sizeof(int32_t));
    s->group_start = (int32_t *)(void *)take(&free, groups * (contacts + 1) * sizeof(int32_t));
    s->value = take(&free, blocks * 9 * job->size);
    return (size_t)(free - base);
}

static tb_status plan(stored_job *job, tb_error *error)
{
    tb_gpu_stored *s = &job->s;
    tb_gpu_device *device = &job->device;
    const int64_t n = 3 * (int64_t)job->system->contacts;
    const int64_t unit = job->variant->padded ? COLUMN_BYTES / (int64_t)job->size : 1;
    tb_status status = tb_gpu_check(
        device,
        cudaDeviceGetAttribute(&job->processors, cudaDevAttrMultiProcessorCount, device->index),
        "asking for its processors", error);
    if (status != TB_OK) return status;
    s->contacts = job->system->contacts;
    s->pitch = (n + unit - 1) / unit * unit;
    s->group = job->variant->group > 0 ? job->variant->group : 1;
    if (job->variant->form == TB_STORED_SPARSE_RELAXED && s->group > s->contacts)
        s->group = s->contacts;
    s->left_out = job->options->left_out;
    s->relative = job->options->relative;
    s->absolute = job->options->absolute;
    const int64_t tiles = (n + TB_GPU_STORED_JOR_ROWS - 1) / TB_GPU_STORED_JOR_ROWS;
    const int64_t most = job->processors * TB_GPU_STORED_JOR_BLOCKS / tiles;
    s->slices = job->variant->form != TB_STORED_ALL_IN_ONE ? 1
                : most < 1                                 ? 1
                                                           : (int32_t)(most < n ? most : n);
    status = tb_gpu_reserve(device, &job->vectors, lay_out(job, NULL), error);
    if (status == TB_OK) (void)lay_out(job, job->vectors.memory);
    if (status == TB_OK && !tb_stored_is_sparse(job->variant->form))
        status = tb_gpu_reserve(device, &job->matrix, (size_t)(s->pitch * n) * job->size, error);
    s->t = job->matrix.memory;
    const size_t column = 3 * (size_t)n * sizeof(double);
    if (status == TB_OK)
        status = tb_gpu_reserve_pinned(device, &job->staging,
                                       column > TB_GPU_STAGING ? column : TB_GPU_STAGING, error);
    return status;
}

/* ---- to the card ---- */

/* The blocks of T by their column: of[first[c]] ... of[first[c + 1] - 1], and their rows. */
typedef struct by_column {
    int64_t *first;
    int32_t *of, *row;
} by_column;

static void by_column_free(by_column *list)
{
    free(list->first);
    free(list->of);
    free(list->row);
}

static tb_status by_column_make(const tb_prox_system *system, by_column *list, tb_error *error)
{
    const size_t contacts = (size_t)system->contacts, blocks = (size_t)system->blocks;
    *list = (by_column){calloc(contacts + 2, sizeof *list->first),
                        malloc((blocks + 1) * sizeof *list->of),
                        malloc((blocks + 1) * sizeof *list->row)};
    if (!list->first || !list->of || !list->row) {
        by_column_free(list);
        return tb_fail_memory(error, blocks * 2 * sizeof *list->of, "T by columns");
    }
    for (int64_t b = 0; b < system->blocks; b++) list->first[system->column[b] + 2]++;
    for (size_t c = 0; c < contacts; c++) list->first[c + 2] += list->first[c + 1];
    for (int32_t r = 0; r < system->contacts; r++)
        for (int32_t b = system->row_start[r]; b < system->row_start[r + 1]; b++) {
            const int64_t at = list->first[system->column[b] + 1]++;
            list->of[at] = b;
            list->row[at] = r;
        }
    return TB_OK;
}

/* The columns of contacts [from, to) into the pinned memory, 3 contacts numbers each. */
static void fill_columns(const stored_job *job, const by_column *list, int32_t from, int32_t to)
{
    const size_t n = 3 * (size_t)job->system->contacts;
    double *doubles = job->staging.memory;
    float *floats = job->staging.memory;
    memset(job->staging.memory, 0, 3 * (size_t)(to - from) * n * job->size);
    for (int32_t c = from; c < to; c++)
        for (int64_t k = list->first[c]; k < list->first[c + 1]; k++)
            for (int e = 0; e < 9; e++) {
                const size_t at = (3 * (size_t)(c - from) + (size_t)(e % 3)) * n +
                                  3 * (size_t)list->row[k] + (size_t)(e / 3);
                const double t = job->system->value[9 * (int64_t)list->of[k] + e];
                if (job->single)
                    floats[at] = (float)t;
                else
                    doubles[at] = t;
            }
}

static tb_status upload_matrix(stored_job *job, tb_error *error)
{
    const size_t n = 3 * (size_t)job->system->contacts, pitch = (size_t)job->s.pitch * job->size;
    const int32_t most = (int32_t)(job->staging.capacity / (3 * n * job->size));
    by_column list;
    tb_status status = by_column_make(job->system, &list, error);
    if (status != TB_OK) return status;
    for (int32_t c = 0; c < job->system->contacts && status == TB_OK; c += most) {
        const int32_t end = job->system->contacts - c < most ? job->system->contacts : c + most;
        fill_columns(job, &list, c, end);
        status = tb_gpu_check(&job->device,
                              cudaMemcpy2DAsync((char *)job->matrix.memory + 3 * (size_t)c * pitch,
                                                pitch, job->staging.memory, n * job->size,
                                                n * job->size, 3 * (size_t)(end - c),
                                                cudaMemcpyHostToDevice, job->device.stream),
                              "bringing T", error);
        if (status == TB_OK) status = tb_gpu_wait(&job->device, "bringing T", error);
    }
    by_column_free(&list);
    return status;
}

static tb_status upload_vector(stored_job *job, const void *to, const double *from, size_t count,
                               tb_error *error)
{
    return tb_gpu_upload_doubles(&job->device, &job->staging, (void *)(uintptr_t)to, 1, from, 1,
                                 count, job->single, error);
}

static tb_status upload_integers(stored_job *job, const int32_t *to, const int32_t *from,
                                 size_t count, tb_error *error)
{
    const tb_status status =
        tb_gpu_check(&job->device,
                     cudaMemcpyAsync((void *)(uintptr_t)to, from, count * sizeof *from,
                                     cudaMemcpyHostToDevice, job->device.stream),
                     "bringing T", error);
    return status == TB_OK ? tb_gpu_wait(&job->device, "bringing T", error) : status;
}

/* For each group of columns and each row, the row's first block in the group or behind it. */
static tb_status upload_groups(stored_job *job, tb_error *error)
{
    const tb_prox_system *system = job->system;
    const int32_t contacts = system->contacts, group = job->s.group;
    const int32_t groups = (contacts + group - 1) / group;
    const size_t count = (size_t)groups * ((size_t)contacts + 1);
    int32_t *start = malloc(count * sizeof *start);
    if (!start) return tb_fail_memory(error, count * sizeof *start, "the groups of T");
    for (int32_t r = 0; r < contacts; r++) {
        int32_t b = system->row_start[r];
        for (int32_t g = 0; g < groups; g++) {
            while (b < system->row_start[r + 1] && system->column[b] < g * group) b++;
            start[(size_t)g * ((size_t)contacts + 1) + (size_t)r] = b;
        }
    }
    for (int32_t g = 0; g < groups; g++)
        start[(size_t)(g + 1) * ((size_t)contacts + 1) - 1] = (int32_t)system->blocks;
    const tb_status status = upload_integers(job, job->s.group_start, start, count, error);
    free(start);
    return status;
}

static tb_status upload_sparse(stored_job *job, const double *lambda, tb_error *error)
{
    const tb_prox_system *system = job->system;
    const size_t contacts = (size_t)system->contacts, blocks = (size_t)system->blocks;
    tb_status status =
        upload_integers(job, job->s.row_start, system->row_start, contacts + 1, error);
    if (status == TB_OK)
        status = upload_integers(job, job->s.column, system->column, blocks, error);
    if (status == TB_OK)
        status = upload_vector(job, job->s.value, system->value, 9 * blocks, error);
    if (status != TB_OK || job->variant->form != TB_STORED_SPARSE_RELAXED) return status;
    status = upload_groups(job, error);
    double *sum = malloc(3 * contacts * sizeof *sum);
    if (status == TB_OK && !sum)
        status = tb_fail_memory(error, 3 * contacts * sizeof *sum, "a start vector");
    if (status == TB_OK) {
        tb_stored_start_sparse(system, job->s.group, lambda, sum);
        status = upload_vector(job, job->s.sum, sum, 3 * contacts, error);
    }
    free(sum);
    return status;
}

/* ---- iterations ---- */

static tb_status start(stored_job *job, tb_gpu_stored_step step, tb_error *error)
{
    return tb_gpu_check(&job->device,
                        (job->single ? tb_gpu_start_stored_f32 : tb_gpu_start_stored)(
                            &job->s, step, job->processors, job->device.stream),
                        "beginning an iteration", error);
}

static tb_status clear(stored_job *job, void *memory, int value, size_t bytes, tb_error *error)
{
    return tb_gpu_check(&job->device, cudaMemsetAsync(memory, value, bytes, job->device.stream),
                        "beginning an iteration", error);
}

static tb_status start_all(stored_job *job, const tb_gpu_stored_step *steps, int count,
                           tb_error *error)
{
    tb_status status = TB_OK;
    for (int k = 0; k < count && status == TB_OK; k++) status = start(job, steps[k], error);
    return status;
}

/* The launches of one JOR iteration from `old` to `next`. */
static tb_status jacobi(stored_job *job, tb_error *error)
{
    static const tb_gpu_stored_step SPLIT[] = {TB_GPU_STORED_GEMV, TB_GPU_STORED_PROX};
    static const tb_gpu_stored_step ADDED[] = {TB_GPU_STORED_ADD, TB_GPU_STORED_PROX};
    const tb_gpu_stored *s = &job->s;
    tb_status status = TB_OK;
    switch (job->variant->form) {
    case TB_STORED_SPLIT: return start_all(job, SPLIT, 2, error);
    case TB_STORED_FUSED:
        return start(job, s->group == 126 ? TB_GPU_STORED_FUSED_126 : TB_GPU_STORED_FUSED_192,
                     error);
    default: break;
    }
    status = tb_gpu_blas_product(&job->blas, job->single, 3 * s->contacts, s->t, s->pitch, s->old,
                                 s->sum, error);
    if (status != TB_OK) return status;
    return job->variant->form == TB_STORED_LIBRARY ? start_all(job, ADDED, 2, error)
                                                   : start(job, TB_GPU_STORED_ADD_PROX, error);
}

/* The launches of one SOR iteration: along the diagonal, steps A and B by turns. */
static tb_status gauss_seidel(stored_job *job, tb_error *error)
{
    tb_gpu_stored *s = &job->s;
    const bool full = job->variant->form == TB_STORED_FULL;
    const tb_gpu_stored_step steps[2] = {full ? TB_GPU_STORED_SOR_A : TB_GPU_STORED_RELAXED_A,
                                         full ? TB_GPU_STORED_SOR_B
                                         : job->variant->form == TB_STORED_SPARSE_RELAXED
                                             ? TB_GPU_STORED_SPARSE_B
                                             : TB_GPU_STORED_RELAXED_B};
    const int count = s->left_out & TB_PROX_STEP_B ? 1 : 2;
    tb_status status = TB_OK;
    if (job->variant->form == TB_STORED_SPARSE_FULL) {
        status = clear(job, s->counters, 0, TB_GPU_STORED_COUNTERS * sizeof *s->counters, error);
        return status == TB_OK ? start(job, TB_GPU_STORED_SPARSE_SOR, error) : status;
    }
    for (s->index = 0; s->index * s->group < s->contacts && status == TB_OK; s->index++)
        status = start_all(job, steps, count, error);
    return status;
}

static tb_status read_integer(stored_job *job, const int32_t *from, int32_t *to, tb_error *error)
{
    const tb_status status =
        tb_gpu_check(&job->device,
                     cudaMemcpyAsync(job->staging.memory, from, sizeof *to, cudaMemcpyDeviceToHost,
                                     job->device.stream),
                     "reading the stop test", error);
    if (status != TB_OK) return status;
    const tb_status waited = tb_gpu_wait(&job->device, "reading the stop test", error);
    if (waited == TB_OK) memcpy(to, job->staging.memory, sizeof *to);
    return waited;
}

/* Iteration after iteration, the host reading the stop test at each period. */
static tb_status iterate(stored_job *job, bool jor, tb_prox_result *result, tb_error *error)
{
    tb_gpu_stored *s = &job->s;
    const int32_t period = job->options->check_period;
    tb_status status = TB_OK;
    for (int32_t made = 1; made <= job->options->iterations && status == TB_OK; made++) {
        s->check = period > 0 && made % period == 0;
        if (s->check) status = clear(job, s->stopped, 1, sizeof *s->stopped, error);
        if (status == TB_OK) status = jor ? jacobi(job, error) : gauss_seidel(job, error);
        if (status == TB_OK && jor && s->check) status = start(job, TB_GPU_STORED_CANCEL, error);
        if (jor) {
            void *old = s->old;
            s->old = s->next;
            s->next = old;
        }
        result->iterations = made;
        int32_t stays = 0;
        if (status == TB_OK && s->check) status = read_integer(job, s->stopped, &stays, error);
        result->converged = stays != 0;
        if (stays) break;
    }
    return status;
}

/* All iterations in one launch. */
static tb_status iterate_in_one(stored_job *job, bool jor, tb_prox_result *result, tb_error *error)
{
    tb_gpu_stored *s = &job->s;
    s->iterations = job->options->iterations;
    s->check = job->options->check_period;
    int32_t stays = 0;
    tb_status status = start(job, jor ? TB_GPU_STORED_JOR : TB_GPU_STORED_SOR, error);
    if (status == TB_OK) status = read_integer(job, s->finished, &result->iterations, error);
    const int32_t last = jor ? (result->iterations + 1) % 2 : 0;
    if (status == TB_OK && s->check > 0 && result->iterations % s->check == 0)
        status = read_integer(job, s->stopped + last, &stays, error);
    result->converged = stays != 0;
    if (jor && result->iterations % 2 != 0) s->old = s->next;
    return status;
}

static tb_status run(stored_job *job, tb_prox_result *result, tb_error *error)
{
    tb_gpu_stored *s = &job->s;
    tb_stored_form form = job->variant->form;
    const int32_t side = TB_GPU_STORED_SOR_CONTACTS;
    const bool jor = form <= TB_STORED_ALL_IN_ONE;
    tb_status status = TB_OK;
    /* with fewer diagonal blocks a row would be at two places at once; the steps serve there */
    if (form == TB_STORED_FULL_IN_ONE && s->contacts <= (TB_GPU_STORED_SOR_FEWEST - 1) * side) {
        static const tb_stored_variant STEPS = {.form = TB_STORED_FULL, .group = 32};
        job->variant = &STEPS;
        form = TB_STORED_FULL;
    }
    if (form == TB_STORED_FULL || form == TB_STORED_FULL_IN_ONE || form == TB_STORED_RELAXED) {
        s->check = form == TB_STORED_RELAXED;
        status = start(job, TB_GPU_STORED_START, error);
    }
    if (status == TB_OK)
        status = clear(job, s->counters, 0, TB_GPU_STORED_COUNTERS * sizeof *s->counters, error);
    if (status == TB_OK) status = clear(job, s->stopped, 0, 2 * sizeof *s->stopped, error);
    if (status == TB_OK && form == TB_STORED_FULL_IN_ONE)
        status = clear(job, s->exchange, 0xff, exchange_bytes(job), error);
    if (status == TB_OK) status = tb_gpu_mark(&job->device, BEFORE, error);
    if (status != TB_OK) return status;
    status = form == TB_STORED_ALL_IN_ONE || form == TB_STORED_FULL_IN_ONE
                 ? iterate_in_one(job, jor, result, error)
                 : iterate(job, jor, result, error);
    if (!jor) s->old = s->next;
    if (status == TB_OK) status = tb_gpu_mark(&job->device, AFTER, error);
    if (status == TB_OK) status = tb_gpu_wait(&job->device, "iterating", error);
    return status == TB_OK ? tb_gpu_elapsed(&job->device, BEFORE, AFTER, &result->seconds, error)
                           : status;
}

/* ---- a whole call ---- */

static tb_status upload(stored_job *job, const double *lambda, tb_error *error)
{
    const tb_prox_system *system = job->system;
    const size_t rows = 3 * (size_t)system->contacts;
    tb_status status = upload_vector(job, job->s.d, system->d, rows, error);
    if (status == TB_OK) status = upload_vector(job, job->s.mu, system->mu, rows / 3, error);
    if (status == TB_OK) status = upload_vector(job, job->s.old, lambda, rows, error);
    if (status == TB_OK) status = upload_vector(job, job->s.next, lambda, rows, error);
    if (status != TB_OK) return status;
    return tb_stored_is_sparse(job->variant->form) ? upload_sparse(job, lambda, error)
                                                   : upload_matrix(job, error);
}

static tb_status go(stored_job *job, double *lambda, tb_prox_result *result, tb_error *error)
{
    const bool library = job->variant->form <= TB_STORED_LIBRARY_FUSED;
    tb_status status = plan(job, error);
    if (status == TB_OK && library)
        status = tb_gpu_blas_open(&job->blas, job->device.stream, error);
    const double began = tb_gpu_host_clock();
    if (status == TB_OK) status = upload(job, lambda, error);
    const double there = tb_gpu_host_clock();
    if (status == TB_OK) status = run(job, result, error);
    const double done = tb_gpu_host_clock();
    if (status == TB_OK)
        status = tb_gpu_download_doubles(&job->device, &job->staging, lambda, job->s.old,
                                         3 * (size_t)job->s.contacts, job->single, error);
    result->copy_seconds = there - began + tb_gpu_host_clock() - done;
    return status;
}

tb_status tb_gpu_prox_iterate(const tb_prox_system *system, const tb_prox_options *options,
                              double *lambda, tb_prox_result *result, tb_error *error)
{
    char reason[TB_ERROR_MESSAGE_SIZE];
    if (options->device >= tb_gpu_count(reason))
        return tb_fail_field(error, TB_NOT_FOUND, "device", "there is no card %d",
                             (int)options->device);
    stored_job job = {.system = system,
                      .options = options,
                      .variant = tb_stored_variant_find(options->variant),
                      .single = options->precision == TB_FLOAT,
                      .size = options->precision == TB_FLOAT ? sizeof(float) : sizeof(double)};
    tb_status status = tb_gpu_device_open(options->device, &job.device, error);
    if (status != TB_OK) return status;
    status = go(&job, lambda, result, error);
    tb_gpu_blas_close(&job.blas);
    tb_gpu_release(&job.device, &job.matrix);
    tb_gpu_release(&job.device, &job.vectors);
    tb_gpu_release_pinned(&job.device, &job.staging);
    tb_gpu_device_close(&job.device);
    return status;
}
