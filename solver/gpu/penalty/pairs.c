/* Near pairs of boxes, and sorts, on a GPU: the host's side. */
#include "gpu/penalty/pairs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/device/device.h"

/* Pairs for each box that a list has room for at first; one that is too short is made again. */
enum { FIRST_PAIRS_OF_A_BOX = 8 };

typedef struct pairs_job {
    tb_gpu_device device;
    tb_gpu_buffer memory, found, scratch;
    tb_gpu_pairs g; /* pointers of the card */
    double *corners;
    int processors;
    int32_t totals[TB_GPU_TOTALS];
} pairs_job;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- memory ---- */

static size_t rounded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Room for `numbers` keys or boxes' intervals, and what sorts and sums of them need. */
static tb_status reserve_slots(pairs_job *j, int32_t slots, int32_t boxes, tb_error *error)
{
    tb_gpu_pairs *g = &j->g;
    const size_t wide = rounded((size_t)slots * sizeof *g->starts);
    const size_t corners = rounded(6 * (size_t)boxes * sizeof(double));
    tb_status status = tb_gpu_reserve(&j->device, &j->memory, 4 * wide + corners + 256, error);
    if (status != TB_OK) return status;
    char *at = j->memory.memory;
    g->boxes = boxes;
    g->slots = slots;
    g->starts = (unsigned long long *)(void *)at;
    g->spare_starts = (unsigned long long *)(void *)(at + wide);
    g->owners = (unsigned long long *)(void *)(at + 2 * wide);
    g->spare_owners = (unsigned long long *)(void *)(at + 3 * wide);
    g->corners = (const double *)(void *)(at + 4 * wide);
    g->totals = (int32_t *)(void *)(at + 4 * wide + corners);
    return TB_OK;
}

/* Room for `capacity` pairs and for counts of slots or pairs. */
static tb_status reserve_pairs(pairs_job *j, int32_t capacity, tb_error *error)
{
    tb_gpu_pairs *g = &j->g;
    const int32_t most = capacity > g->slots ? capacity : g->slots;
    const size_t wide = rounded((size_t)capacity * sizeof *g->pairs);
    const size_t narrow = rounded((size_t)most * sizeof *g->counts);
    const tb_status status = tb_gpu_reserve(&j->device, &j->found, 2 * wide + 2 * narrow, error);
    if (status != TB_OK) return status;
    char *at = j->found.memory;
    g->capacity = capacity;
    g->pairs = (unsigned long long *)(void *)at;
    g->spare_pairs = (unsigned long long *)(void *)(at + wide);
    g->counts = (int32_t *)(void *)(at + 2 * wide);
    g->offsets = (int32_t *)(void *)(at + 2 * wide + narrow);
    return TB_OK;
}

/* ---- work of a search ---- */

static tb_status sort(pairs_job *j, const unsigned long long *keys, unsigned long long *to,
                      const unsigned long long *values, unsigned long long *values_to,
                      int32_t count, tb_error *error)
{
    size_t bytes = 0;
    if (count == 0) return TB_OK;
    tb_status status = tb_gpu_check(
        &j->device,
        tb_gpu_start_sort(NULL, &bytes, keys, to, values, values_to, count, j->device.stream),
        "sorting", error);
    if (status == TB_OK) status = tb_gpu_reserve(&j->device, &j->scratch, bytes + 1, error);
    if (status != TB_OK) return status;
    return tb_gpu_check(&j->device,
                        tb_gpu_start_sort(j->scratch.memory, &bytes, keys, to, values, values_to,
                                          count, j->device.stream),
                        "sorting", error);
}

static tb_status add_up(pairs_job *j, int32_t count, tb_error *error)
{
    size_t bytes = 0;
    tb_status status = tb_gpu_check(
        &j->device,
        tb_gpu_start_sums(NULL, &bytes, j->g.counts, j->g.offsets, count, j->device.stream),
        "adding counts up", error);
    if (status == TB_OK) status = tb_gpu_reserve(&j->device, &j->scratch, bytes + 1, error);
    if (status != TB_OK) return status;
    return tb_gpu_check(&j->device,
                        tb_gpu_start_sums(j->scratch.memory, &bytes, j->g.counts, j->g.offsets,
                                          count, j->device.stream),
                        "adding counts up", error);
}

static tb_status launch(pairs_job *j, tb_gpu_pairs_step step, tb_error *error)
{
    return tb_gpu_check(&j->device,
                        tb_gpu_start_pairs(&j->g, step, j->processors, j->device.stream),
                        "finding pairs", error);
}

static tb_status fetch(pairs_job *j, void *to, const void *from, size_t bytes, tb_error *error)
{
    if (bytes == 0) return TB_OK;
    return tb_gpu_check(&j->device,
                        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, j->device.stream),
                        "fetching pairs", error);
}

static tb_status bring(pairs_job *j, const void *to, const void *from, size_t bytes,
                       tb_error *error)
{
    if (bytes == 0) return TB_OK;
    return tb_gpu_check(&j->device,
                        cudaMemcpyAsync((void *)(uintptr_t)to, from, bytes, cudaMemcpyHostToDevice,
                                        j->device.stream),
                        "bringing boxes", error);
}

static tb_status fetch_totals(pairs_job *j, tb_error *error)
{
    tb_status status = fetch(j, j->totals, j->g.totals, sizeof j->totals, error);
    return status == TB_OK ? tb_gpu_wait(&j->device, "finding pairs", error) : status;
}

/* Pairs of the sorted intervals, by one of both ways; again with more room where they do not fit. */
static tb_status find(pairs_job *j, tb_box_pairs_way way, tb_error *error)
{
    tb_status status = TB_OK;
    for (;;) {
        if (way == TB_PAIRS_BY_COUNT) {
            status = launch(j, TB_GPU_PAIRS_COUNT, error);
            if (status == TB_OK) status = add_up(j, j->g.slots, error);
            if (status == TB_OK) status = launch(j, TB_GPU_PAIRS_WRITE, error);
        } else {
            status = tb_gpu_check(&j->device,
                                  cudaMemsetAsync(j->g.totals + TB_GPU_TOTAL_FOUND, 0,
                                                  sizeof *j->g.totals, j->device.stream),
                                  "finding pairs", error);
            if (status == TB_OK) status = launch(j, TB_GPU_PAIRS_APPEND, error);
        }
        if (status == TB_OK) status = fetch_totals(j, error);
        const int32_t found = j->totals[TB_GPU_TOTAL_FOUND];
        if (status != TB_OK || found <= j->g.capacity) return status;
        status = reserve_pairs(j, found + found / 4, error);
        if (status != TB_OK) return status;
    }
}

/* Leaves each pair once, in spare_pairs. */
static tb_status take_doubles_out(pairs_job *j, tb_error *error)
{
    tb_gpu_pairs *g = &j->g;
    const int32_t room = g->capacity;
    unsigned long long *swap = g->pairs;
    g->pairs = g->spare_pairs; /* the sorted ones */
    g->spare_pairs = swap;
    g->capacity = j->totals[TB_GPU_TOTAL_FOUND];
    tb_status status = launch(j, TB_GPU_PAIRS_MARK, error);
    if (status == TB_OK) status = add_up(j, g->capacity, error);
    if (status == TB_OK) status = launch(j, TB_GPU_PAIRS_KEEP, error);
    g->capacity = room;
    return status;
}

/* Time since the last mark goes to a part. */
static tb_status pass_mark(pairs_job *j, tb_box_pairs *p, int part, tb_error *error)
{
    tb_status status = tb_gpu_mark(&j->device, 1, error);
    if (status == TB_OK) status = tb_gpu_wait(&j->device, "finding pairs", error);
    if (status == TB_OK) status = tb_gpu_elapsed(&j->device, 0, 1, &p->seconds[part], error);
    return status == TB_OK ? tb_gpu_mark(&j->device, 0, error) : status;
}

static tb_status search(pairs_job *j, tb_box_pairs *p, tb_error *error)
{
    tb_gpu_pairs *g = &j->g;
    memset(p->seconds, 0, sizeof p->seconds);
    tb_status status =
        bring(j, g->corners, j->corners, 6 * (size_t)p->count * sizeof(double), error);
    if (status == TB_OK)
        status = tb_gpu_check(
            &j->device,
            cudaMemsetAsync(g->totals, 0, TB_GPU_TOTALS * sizeof *g->totals, j->device.stream),
            "finding pairs", error);
    if (status == TB_OK) status = tb_gpu_mark(&j->device, 0, error);
    if (status == TB_OK) status = launch(j, TB_GPU_PAIRS_ENCODE, error);
    if (status == TB_OK) status = pass_mark(j, p, TB_PAIRS_ENCODE, error);
    if (status == TB_OK)
        status = sort(j, g->starts, g->spare_starts, g->owners, g->spare_owners, g->slots, error);
    if (status == TB_OK) status = pass_mark(j, p, TB_PAIRS_SORT_STARTS, error);
    if (status != TB_OK) return status;
    unsigned long long *const starts = g->starts, *const owners = g->owners;
    g->starts = g->spare_starts, g->owners = g->spare_owners;
    status = find(j, p->way, error);
    g->starts = starts, g->owners = owners;
    if (status == TB_OK) status = pass_mark(j, p, TB_PAIRS_FIND, error);
    if (status == TB_OK)
        status =
            sort(j, g->pairs, g->spare_pairs, NULL, NULL, j->totals[TB_GPU_TOTAL_FOUND], error);
    if (status == TB_OK && j->totals[TB_GPU_TOTAL_FOUND] > 0) status = take_doubles_out(j, error);
    if (status == TB_OK) status = pass_mark(j, p, TB_PAIRS_SORT_PAIRS, error);
    if (status == TB_OK) status = fetch_totals(j, error);
    return status;
}

/* ---- calls ---- */

static tb_status find_pairs(pairs_job *j, tb_box_pairs *p, tb_error *error)
{
    if (p->count > INT32_MAX / (2 * TB_GPU_PAIRS_SLOTS))
        return tb_fail(error, TB_RESOURCE_EXHAUSTED, "%d boxes are too many for a card",
                       (int)p->count);
    tb_status status = reserve_slots(j, TB_GPU_PAIRS_SLOTS * p->count, p->count, error);
    if (status == TB_OK) status = reserve_pairs(j, FIRST_PAIRS_OF_A_BOX * p->count, error);
    if (status != TB_OK) return status;
    memcpy(j->g.lower, p->lower, sizeof j->g.lower);
    j->g.cells_per_metre = p->cells_per_metre;
    j->corners = malloc(6 * (size_t)p->count * sizeof(double));
    if (!j->corners) return tb_fail_memory(error, 0, "the boxes of a card");
    for (int32_t i = 0; i < p->repeats && status == TB_OK; i++) {
        const double before = now();
        for (int32_t b = 0; b < p->count; b++)
            for (int k = 0; k < 6; k++)
                j->corners[(size_t)k * (size_t)p->count + (size_t)b] =
                    p->boxes[6 * (size_t)b + (size_t)k];
        status = search(j, p, error);
        if (status != TB_OK) break;
        p->number_of_intervals = j->totals[TB_GPU_TOTAL_INTERVALS];
        p->number_of_pairs = j->totals[TB_GPU_TOTAL_KEPT];
        const size_t bytes = (size_t)p->number_of_pairs * sizeof *p->pairs;
        free(p->pairs);
        p->pairs = malloc(bytes + 1);
        if (!p->pairs) return tb_fail_memory(error, bytes, "pairs of boxes");
        status = fetch(j, p->pairs, j->g.spare_pairs, bytes, error);
        if (status == TB_OK) status = tb_gpu_wait(&j->device, "finding pairs", error);
        const double seconds = now() - before;
        if (i == 0 || seconds < p->whole) p->whole = seconds;
    }
    return status;
}

static tb_status sort_keys(pairs_job *j, tb_box_pairs *p, tb_error *error)
{
    const size_t bytes = (size_t)p->count * sizeof *p->keys;
    tb_status status = reserve_slots(j, p->count, 0, error);
    const double before = now();
    if (status == TB_OK) status = bring(j, j->g.starts, p->keys, bytes, error);
    if (status == TB_OK && p->values) status = bring(j, j->g.owners, p->values, bytes, error);
    if (status == TB_OK) status = tb_gpu_mark(&j->device, 0, error);
    if (status == TB_OK)
        status = sort(j, j->g.starts, j->g.spare_starts, p->values ? j->g.owners : NULL,
                      j->g.spare_owners, p->count, error);
    if (status == TB_OK) status = pass_mark(j, p, TB_PAIRS_SORT_STARTS, error);
    if (status == TB_OK) status = fetch(j, p->keys, j->g.spare_starts, bytes, error);
    if (status == TB_OK && p->values) status = fetch(j, p->values, j->g.spare_owners, bytes, error);
    if (status == TB_OK) status = tb_gpu_wait(&j->device, "sorting", error);
    p->whole = now() - before;
    return status;
}

tb_status tb_gpu_box_pairs(int32_t device, tb_box_pairs *pairs, tb_error *error)
{
    char reason[TB_ERROR_MESSAGE_SIZE];
    const int32_t devices = tb_gpu_count(reason);
    if (device >= devices)
        return tb_fail_field(error, TB_NOT_FOUND, "device", "device %d of %d of backend 'gpu'",
                             (int)device, (int)devices);
    pairs_job j = {.corners = NULL};
    pairs->number_of_pairs = pairs->number_of_intervals = 0;
    memset(pairs->seconds, 0, sizeof pairs->seconds);
    if (pairs->count == 0) return TB_OK;
    tb_status status = tb_gpu_device_open(device, &j.device, error);
    if (status != TB_OK) return status;
    status = tb_gpu_check(
        &j.device, cudaDeviceGetAttribute(&j.processors, cudaDevAttrMultiProcessorCount, device),
        "asking for its processors", error);
    if (status == TB_OK)
        status = (pairs->way == TB_PAIRS_SORT ? sort_keys : find_pairs)(&j, pairs, error);
    free(j.corners);
    tb_gpu_release(&j.device, &j.memory);
    tb_gpu_release(&j.device, &j.found);
    tb_gpu_release(&j.device, &j.scratch);
    tb_gpu_device_close(&j.device);
    return status;
}
