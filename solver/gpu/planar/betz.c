/* Betz's sweeps on a card: the host's side. The islands of a step go there in one copy, every call
 * makes sweeps, and the impulses come back. */
#include "gpu/planar/betz.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/device/device.h"

typedef struct planar_card {
    tb_gpu_device device;
    tb_gpu_buffer memory, staging;
    int processors;
} planar_card;

/* ---- layout: arrays sent, then arrays fetched, then arrays that stay ---- */

typedef struct parts {
    size_t blocks, segments, values, dof_of, c, start, row_of, coefficient;
    size_t islands, p; /* brought and fetched */
    size_t s, r, work, flags, counters, end;
} parts;

static size_t place(size_t *end, size_t bytes)
{
    const size_t at = *end;
    *end += (bytes + 255) / 256 * 256;
    return at;
}

static parts lay_out(const tb_betz_batch *b, int32_t teams)
{
    const size_t blocks = (size_t)b->number_of_blocks, rows = (size_t)b->number_of_rows;
    const size_t dofs = (size_t)b->number_of_dofs, islands = (size_t)b->number_of_islands;
    const size_t entries = (size_t)b->number_of_entries;
    size_t end = 0;
    parts p;
    p.blocks = place(&end, blocks * sizeof *b->blocks);
    p.segments = place(&end, (size_t)b->number_of_segments * sizeof *b->segments);
    p.values = place(&end, (size_t)b->number_of_values * sizeof *b->values);
    p.dof_of = place(&end, b->mprgp ? (size_t)b->number_of_values * sizeof *b->dof_of : 0);
    p.c = place(&end, rows * sizeof *b->c);
    p.start = place(&end, (dofs + islands) * sizeof *b->start);
    p.row_of = place(&end, entries * sizeof *b->row_of);
    p.coefficient = place(&end, entries * sizeof *b->coefficient);
    p.islands = place(&end, islands * sizeof *b->islands);
    p.p = place(&end, rows * sizeof *b->p);
    p.s = place(&end, dofs * sizeof(double));
    p.r = place(&end, rows * sizeof(double));
    p.work = place(&end, b->mprgp ? TB_MPRGP_ARRAYS * rows * sizeof(double) : 0);
    p.flags = place(&end, blocks);
    p.counters = place(&end, (size_t)teams * TB_GPU_BETZ_COUNTERS * sizeof(unsigned));
    p.end = end;
    return p;
}

static void put(const planar_card *card, size_t at, const void *from, size_t bytes)
{
    memcpy((char *)card->staging.memory + at, from, bytes);
}

static void stage(const planar_card *card, const parts *p, const tb_betz_batch *b)
{
    put(card, p->blocks, b->blocks, (size_t)b->number_of_blocks * sizeof *b->blocks);
    put(card, p->segments, b->segments, (size_t)b->number_of_segments * sizeof *b->segments);
    put(card, p->values, b->values, (size_t)b->number_of_values * sizeof *b->values);
    if (b->mprgp) put(card, p->dof_of, b->dof_of, (size_t)b->number_of_values * sizeof *b->dof_of);
    put(card, p->c, b->c, (size_t)b->number_of_rows * sizeof *b->c);
    put(card, p->start, b->start,
        ((size_t)b->number_of_dofs + (size_t)b->number_of_islands) * sizeof *b->start);
    put(card, p->row_of, b->row_of, (size_t)b->number_of_entries * sizeof *b->row_of);
    put(card, p->coefficient, b->coefficient,
        (size_t)b->number_of_entries * sizeof *b->coefficient);
}

static tb_gpu_betz view_of(const planar_card *card, const parts *p, const tb_betz_batch *b,
                           int32_t team)
{
    char *base = card->memory.memory;
    tb_gpu_betz g = {.batch = *b, .team = team};
    g.batch.blocks = (const tb_block *)(void *)(base + p->blocks);
    g.batch.segments = (const tb_segment *)(void *)(base + p->segments);
    g.batch.values = (const double *)(void *)(base + p->values);
    g.batch.dof_of = (const int32_t *)(void *)(base + p->dof_of);
    g.batch.c = (const double *)(void *)(base + p->c);
    g.batch.start = (const int32_t *)(void *)(base + p->start);
    g.batch.row_of = (const int32_t *)(void *)(base + p->row_of);
    g.batch.coefficient = (const double *)(void *)(base + p->coefficient);
    g.batch.islands = (tb_betz_island *)(void *)(base + p->islands);
    g.batch.p = (double *)(void *)(base + p->p);
    g.s = (double *)(void *)(base + p->s);
    g.r = (double *)(void *)(base + p->r);
    g.work = (double *)(void *)(base + p->work);
    g.flags = (uint8_t *)(base + p->flags);
    g.counters = (unsigned *)(void *)(base + p->counters);
    return g;
}

/* ---- a call ---- */

/* Blocks of threads for an island: a contact or a dof a thread if all sweeping islands fit on
 * the card. */
static int32_t team_of(const planar_card *card, const tb_betz_batch *b, int32_t *teams)
{
    const int32_t room = card->processors * TB_GPU_BETZ_BLOCKS;
    int32_t busy = 0, largest = 1;
    for (int32_t i = 0; i < b->number_of_islands; i++) {
        const tb_betz_island *own = &b->islands[i];
        const int32_t items = own->blocks > own->dofs ? own->blocks : own->dofs;
        if (own->sweeps == 0) continue;
        busy++;
        if (items > largest) largest = items;
    }
    int32_t team = (largest + TB_GPU_BETZ_THREADS - 1) / TB_GPU_BETZ_THREADS;
    if (busy > 0 && team > room / busy) team = room / busy > 1 ? room / busy : 1;
    if (team > room) team = room;
    *teams = room / team < b->number_of_islands ? room / team : b->number_of_islands;
    return team;
}

static tb_status copy(planar_card *card, size_t from, size_t to, enum cudaMemcpyKind kind,
                      tb_error *error)
{
    char *there = (char *)card->memory.memory + from, *here = (char *)card->staging.memory + from;
    const bool down = kind == cudaMemcpyDeviceToHost;
    return tb_gpu_check(&card->device,
                        cudaMemcpyAsync(down ? here : there, down ? there : here, to - from, kind,
                                        card->device.stream),
                        "moving planar contacts", error);
}

static tb_status launch(planar_card *card, const parts *p, const tb_betz_batch *b, int32_t team,
                        int32_t teams, tb_error *error)
{
    const tb_gpu_betz g = view_of(card, p, b, team);
    if (b->mprgp)
        return tb_gpu_check(&card->device, tb_gpu_start_mprgp(&g, card->device.stream),
                            "solving planar contacts", error);
    tb_status status = tb_gpu_check(
        &card->device,
        cudaMemsetAsync(g.counters, 0, (size_t)teams * TB_GPU_BETZ_COUNTERS * sizeof *g.counters,
                        card->device.stream),
        "sweeping planar contacts", error);
    if (status != TB_OK) return status;
    return tb_gpu_check(&card->device, tb_gpu_start_betz(&g, teams, card->device.stream),
                        "sweeping planar contacts", error);
}

tb_status tb_gpu_planar_sweep(void *context, const tb_betz_batch *b, bool fresh, tb_error *error)
{
    planar_card *card = context;
    int32_t teams = 1;
    const int32_t team = team_of(card, b, &teams);
    const parts p = lay_out(b, card->processors * TB_GPU_BETZ_BLOCKS);
    const size_t islands = (size_t)b->number_of_islands * sizeof *b->islands;
    const size_t rows = (size_t)b->number_of_rows * sizeof *b->p;
    tb_status status = tb_gpu_device_enter(&card->device, error);
    if (status == TB_OK && fresh)
        status = tb_gpu_reserve(&card->device, &card->memory, p.end, error);
    if (status == TB_OK && fresh)
        status = tb_gpu_reserve_pinned(&card->device, &card->staging, p.end, error);
    if (status != TB_OK) return status;
    if (fresh) stage(card, &p, b);
    put(card, p.islands, b->islands, islands);
    put(card, p.p, b->p, rows);
    status = copy(card, fresh ? 0 : p.islands, p.s, cudaMemcpyHostToDevice, error);
    if (status == TB_OK) status = launch(card, &p, b, team, teams, error);
    if (status == TB_OK) status = copy(card, p.islands, p.s, cudaMemcpyDeviceToHost, error);
    if (status == TB_OK) status = tb_gpu_wait(&card->device, "sweeping planar contacts", error);
    if (status != TB_OK) return status;
    memcpy(b->islands, (char *)card->staging.memory + p.islands, islands);
    memcpy(b->p, (char *)card->staging.memory + p.p, rows);
    return TB_OK;
}

/* ---- the context ---- */

void tb_gpu_planar_close(void *context)
{
    planar_card *card = context;
    if (!card) return;
    tb_gpu_release(&card->device, &card->memory);
    tb_gpu_release_pinned(&card->device, &card->staging);
    tb_gpu_device_close(&card->device);
    free(card);
}

tb_status tb_gpu_planar_open(int32_t device, void **context, tb_error *error)
{
    char reason[TB_ERROR_MESSAGE_SIZE];
    const int32_t devices = tb_gpu_count(reason);
    *context = NULL;
    if (device >= devices)
        return tb_fail_field(error, TB_NOT_FOUND, "device", "device %d of %d of backend 'gpu'",
                             (int)device, (int)devices);
    planar_card *card = calloc(1, sizeof *card);
    if (!card) return tb_fail_memory(error, sizeof *card, "the planar sweeps");
    tb_status status = tb_gpu_device_open(device, &card->device, error);
    if (status != TB_OK) {
        free(card);
        return status;
    }
    status = tb_gpu_check(
        &card->device,
        cudaDeviceGetAttribute(&card->processors, cudaDevAttrMultiProcessorCount, device),
        "asking for its processors", error);
    if (status != TB_OK) {
        tb_gpu_planar_close(card);
        return status;
    }
    *context = card;
    return TB_OK;
}
