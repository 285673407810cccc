/* See batch.h. */
#include "batch.h"

#include <stdatomic.h>
#include <string.h>

#include "base/base.h"
#include "base/parallel.h"

enum {
    PARALLEL_WORLDS = 512, /* fewer are packed by the calling thread */
    WARP_LANES = 32,
    /* Warps of a processor before worlds share them. Lanes of a warp wait for each other wherever
     * their worlds differ; but warps at different places of a long program push each other's
     * instructions and stacks out of the caches. Measured on an H200 with jaw and mug in the hold,
     * world-steps/s by lanes a world: 1,024 worlds 0.52 (1), 0.88 (4), 0.94 (8), 0.90 (16),
     * 0.26 M (32); 8,192 worlds 2.99 (1), 3.43 (2), 1.83 M (4); 32,768 worlds 4.8 (1), 3.1 M (2). */
    WARPS_OF_FEW = 2, /* worlds in a warp: eight at the most */
    WARPS_OF_MANY = 4 /* sixteen */
};

static const size_t PART_ALIGNMENT = 64;

static size_t aligned(size_t bytes)
{
    return (bytes + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
}

/* Where the parts of a piece begin in the block, and what there is of each. */
typedef struct piece {
    tb_gpu_batch *batch;
    const int32_t *pending;
    int32_t count;
    int64_t numbers, contacts, room; /* doubles, records, records */
    size_t numbers_begin, contacts_begin, size;
    size_t arena_size;
    unsigned char *staging;
    atomic_int failed; /* tb_status of unpacking */
} piece;

/* ---- how much ---- */

static size_t task_bytes(const tb_gpu_task *task)
{
    const size_t records =
        (size_t)task->state->number_of_contacts + 3 * (size_t)task->model->contact_capacity;
    return sizeof(tb_gpu_world) + task->state->number_of_numbers * sizeof(double) +
           records * sizeof(tb_contact_record);
}

int32_t tb_gpu_batch_piece(const tb_gpu_batch *batch, const int32_t *pending, int32_t count)
{
    size_t bytes = 0;
    int32_t n = 0;
    while (n < count) {
        bytes += task_bytes(&batch->tasks[pending[n]]);
        if (n > 0 && bytes > batch->memory_limit) break;
        n++;
    }
    return n;
}

static void lay_out(piece *p)
{
    for (int32_t i = 0; i < p->count; i++) {
        tb_gpu_task *task = &p->batch->tasks[p->pending[i]];
        task->numbers_at = p->numbers;
        task->contacts_at = p->contacts;
        task->room_at = p->room;
        p->numbers += (int64_t)task->state->number_of_numbers;
        p->contacts += task->state->number_of_contacts;
        p->room += 2 * (int64_t)task->model->contact_capacity;
        if (task->model->arena_size > p->arena_size) p->arena_size = task->model->arena_size;
    }
    p->numbers_begin = aligned((size_t)p->count * sizeof(tb_gpu_world));
    p->contacts_begin = aligned(p->numbers_begin + (size_t)p->numbers * sizeof(double));
    p->size = p->contacts_begin + (size_t)p->contacts * sizeof(tb_contact_record);
}

/* ---- packing ---- */

static double *moved(const double *pointer, const double *from, double *to)
{
    return to + (pointer - from);
}

static void pack_world(void *context, int32_t i, int32_t thread)
{
    (void)thread;
    const piece *p = context;
    const tb_gpu_task *task = &p->batch->tasks[p->pending[i]];
    const tb_state *s = task->state;
    unsigned char *block = p->batch->block.memory;
    tb_gpu_world *w = (tb_gpu_world *)(void *)p->staging + i;
    memset(w, 0, sizeof *w);

    /* the state as it is, then its pointers as the card has them */
    double *numbers = (double *)(void *)(block + p->numbers_begin) + task->numbers_at;
    w->state = *s;
    w->state.model = task->model->image;
    w->state.numbers = numbers;
    w->state.q = moved(s->q, s->numbers, numbers);
    w->state.u = moved(s->u, s->numbers, numbers);
    w->state.controls = moved(s->controls, s->numbers, numbers);
    w->state.activations = moved(s->activations, s->numbers, numbers);
    w->state.applied = moved(s->applied, s->numbers, numbers);
    w->state.wrenches = moved(s->wrenches, s->numbers, numbers);
    w->state.kinematic = moved(s->kinematic, s->numbers, numbers);
    w->state.row_impulses = moved(s->row_impulses, s->numbers, numbers);
    w->state.actuator_force = moved(s->actuator_force, s->numbers, numbers);
    w->state.contacts =
        (tb_contact_record *)(void *)(block + p->contacts_begin) + task->contacts_at;
    w->state.contact_capacity = s->number_of_contacts;
    w->state.next_contacts = NULL;
    w->state.next_capacity = 0;

    tb_contact_record *room = p->batch->room.memory;
    w->contact_capacity = task->model->contact_capacity;
    w->contacts[0] = room + task->room_at;
    w->contacts[1] = w->contacts[0] + w->contact_capacity;
    w->steps_left = task->steps_left;
    w->merged = task->merged;

    memcpy(p->staging + p->numbers_begin + (size_t)task->numbers_at * sizeof(double), s->numbers,
           s->number_of_numbers * sizeof(double));
    if (s->number_of_contacts > 0)
        memcpy(p->staging + p->contacts_begin +
                   (size_t)task->contacts_at * sizeof(tb_contact_record),
               s->contacts, (size_t)s->number_of_contacts * sizeof(tb_contact_record));
}

static const tb_gpu_world *returned(const piece *p, int32_t i)
{
    return (const tb_gpu_world *)(const void *)p->staging + i;
}

static void unpack_world(void *context, int32_t i, int32_t thread)
{
    (void)thread;
    piece *p = context;
    tb_gpu_task *task = &p->batch->tasks[p->pending[i]];
    tb_state *s = task->state;
    const tb_gpu_world *w = returned(p, i);
    const int64_t *offsets = p->batch->staged_offsets.memory;

    memcpy(s->numbers, p->staging + p->numbers_begin + (size_t)task->numbers_at * sizeof(double),
           s->number_of_numbers * sizeof(double));
    const int32_t contacts = w->state.number_of_contacts;
    if (contacts > 0)
        memcpy(s->next_contacts,
               (const tb_contact_record *)p->batch->staged_contacts.memory + offsets[i],
               (size_t)contacts * sizeof(tb_contact_record));
    tb_state_take_next(s, contacts);
    s->time = w->state.time;
    s->steps = w->state.steps;
    s->status = w->state.status;
    s->certificate = w->state.certificate;
    task->merged = w->merged;
    task->steps_left = w->steps_left;
    task->status = w->status;
    task->contacts_needed = w->contacts_needed;
    task->arena_needed = w->arena_needed;
}

/* Before anything changes: room for the contacts that come. */
static void reserve_world(void *context, int32_t i, int32_t thread)
{
    (void)thread;
    piece *p = context;
    const tb_status status = tb_state_reserve_next(p->batch->tasks[p->pending[i]].state,
                                                   returned(p, i)->state.number_of_contacts);
    if (status != TB_OK) atomic_store(&p->failed, (int)status);
}

static void for_worlds(piece *p, tb_parallel_function *function)
{
    const int32_t threads = p->count < PARALLEL_WORLDS ? 1 : p->batch->threads;
    tb_parallel_for(p->count, 64, threads, function, p);
}

/* ---- copies and launches ---- */

static tb_status copy(tb_gpu_batch *b, void *to, const void *from, size_t bytes,
                      enum cudaMemcpyKind kind, tb_error *error)
{
    if (bytes == 0) return TB_OK;
    b->copied_bytes += bytes;
    return tb_gpu_check(&b->device, cudaMemcpyAsync(to, from, bytes, kind, b->device.stream),
                        "copying worlds", error);
}

static tb_status send(piece *p, tb_error *error)
{
    tb_gpu_batch *b = p->batch;
    tb_gpu_device *d = &b->device;
    tb_status status = tb_gpu_reserve_pinned(d, &b->staging, p->size, error);
    if (status == TB_OK) status = tb_gpu_reserve(d, &b->block, p->size, error);
    if (status == TB_OK)
        status =
            tb_gpu_reserve(d, &b->room, (size_t)p->room * sizeof(tb_contact_record) + 1, error);
    if (status != TB_OK) return status;
    p->staging = b->staging.memory;
    for_worlds(p, pack_world);
    status = tb_gpu_mark(d, 0, error);
    if (status == TB_OK)
        status = copy(b, b->block.memory, p->staging, p->size, cudaMemcpyHostToDevice, error);
    return status;
}

static int32_t choose_stride(const tb_gpu_batch *b, int32_t worlds)
{
    if (b->stride > 0) return b->stride;
    const int64_t lanes = (int64_t)b->processors * WARP_LANES;
    int32_t stride = WARP_LANES;
    while (stride > 2 && (int64_t)stride * worlds > lanes * WARPS_OF_FEW) stride /= 2;
    if (stride == 2 && 2 * (int64_t)worlds > lanes * WARPS_OF_MANY) stride = 1;
    return stride;
}

/* As many arenas as there are worlds, or as the card has room for. */
static tb_status reserve_arenas(piece *p, int32_t *slots, tb_error *error)
{
    tb_gpu_batch *b = p->batch;
    size_t room = 0, total = 0;
    const size_t wanted = (size_t)p->count * p->arena_size;
    *slots = p->count;
    if (wanted <= b->arenas.capacity) return TB_OK;
    tb_status status = tb_gpu_room(&b->device, &room, &total, error);
    if (status != TB_OK) return status;
    const size_t most = (room + b->arenas.capacity) / 4 * 3;
    if (wanted > most) *slots = (int32_t)(most / p->arena_size);
    if (*slots < 1) *slots = 1; /* and the card may refuse */
    return tb_gpu_reserve(&b->device, &b->arenas, (size_t)*slots * p->arena_size, error);
}

static tb_status launch(piece *p, const tb_step_options *options, tb_error *error)
{
    tb_gpu_batch *b = p->batch;
    tb_gpu_launch l = {.worlds = b->block.memory,
                       .number_of_worlds = p->count,
                       .stride = choose_stride(b, p->count),
                       .solver = tb_solver_number(options->solve.solver),
                       .arena_size = p->arena_size,
                       .options = *options};
    /* names and functions of the host mean nothing there */
    l.options.solve.solver = NULL;
    l.options.solve.cancelled = NULL;
    l.options.solve.cancelled_context = NULL;
    tb_status status = reserve_arenas(p, &l.slots, error);
    if (status != TB_OK) return status;
    l.arenas = b->arenas.memory;
    status = tb_gpu_mark(&b->device, 1, error);
    if (status == TB_OK)
        status = tb_gpu_check(&b->device,
                              options->precision == TB_FLOAT
                                  ? tb_gpu_start_steps_f32(&l, b->device.stream)
                                  : tb_gpu_start_steps(&l, b->device.stream),
                              "launching steps", error);
    if (status == TB_OK) status = tb_gpu_mark(&b->device, 2, error);
    return status;
}

/* Contacts of all worlds, one after another, to the host. */
static tb_status fetch_contacts(piece *p, tb_error *error)
{
    tb_gpu_batch *b = p->batch;
    tb_gpu_device *d = &b->device;
    const size_t bytes = ((size_t)p->count + 1) * sizeof(int64_t);
    tb_status status = tb_gpu_reserve_pinned(d, &b->staged_offsets, bytes, error);
    if (status != TB_OK) return status;
    int64_t *offsets = b->staged_offsets.memory;
    offsets[0] = 0;
    for (int32_t i = 0; i < p->count; i++)
        offsets[i + 1] = offsets[i] + returned(p, i)->state.number_of_contacts;
    const size_t records = (size_t)offsets[p->count] * sizeof(tb_contact_record);
    if (records == 0) return TB_OK;

    status = tb_gpu_reserve_pinned(d, &b->staged_contacts, records, error);
    if (status == TB_OK) status = tb_gpu_reserve(d, &b->offsets, bytes, error);
    if (status == TB_OK) status = tb_gpu_reserve(d, &b->gathered, records, error);
    if (status == TB_OK)
        status = copy(b, b->offsets.memory, offsets, bytes, cudaMemcpyHostToDevice, error);
    if (status != TB_OK) return status;
    const tb_gpu_gather gather = {.worlds = b->block.memory,
                                  .offsets = b->offsets.memory,
                                  .records = b->gathered.memory,
                                  .number_of_worlds = p->count};
    status = tb_gpu_check(d, tb_gpu_start_gather(&gather, d->stream), "gathering contacts", error);
    if (status == TB_OK)
        status = copy(b, b->staged_contacts.memory, b->gathered.memory, records,
                      cudaMemcpyDeviceToHost, error);
    return status;
}

static tb_status fetch(piece *p, tb_error *error)
{
    tb_gpu_batch *b = p->batch;
    tb_gpu_device *d = &b->device;
    tb_status status =
        copy(b, p->staging, b->block.memory, p->contacts_begin, cudaMemcpyDeviceToHost, error);
    if (status == TB_OK) status = tb_gpu_wait(d, "steps", error);
    if (status == TB_OK) status = fetch_contacts(p, error);
    if (status == TB_OK) status = tb_gpu_mark(d, 3, error);
    if (status == TB_OK) status = tb_gpu_wait(d, "copying worlds", error);
    if (status == TB_OK) status = tb_gpu_elapsed(d, 0, 1, &b->copy_seconds, error);
    if (status == TB_OK) status = tb_gpu_elapsed(d, 1, 2, &b->compute_seconds, error);
    if (status == TB_OK) status = tb_gpu_elapsed(d, 2, 3, &b->copy_seconds, error);
    if (status != TB_OK) return status;

    for_worlds(p, reserve_world);
    if (atomic_load(&p->failed) != TB_OK) return tb_fail_memory(error, 0, "a batch's contacts");
    for_worlds(p, unpack_world);
    return TB_OK;
}

tb_status tb_gpu_batch_run(tb_gpu_batch *batch, const tb_step_options *options,
                           const int32_t *pending, int32_t count, tb_error *error)
{
    piece p = {.batch = batch, .pending = pending, .count = count};
    lay_out(&p);
    tb_status status = send(&p, error);
    if (status == TB_OK) status = launch(&p, options, error);
    if (status == TB_OK) status = fetch(&p, error);
    return status;
}
