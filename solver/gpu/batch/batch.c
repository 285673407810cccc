/* See batch.h. */
#include "gpu/batch/batch.h"

#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/parallel.h"
#include "gpu/batch/course.h"

enum {
    PARALLEL_WORLDS = 512,     /* fewer are packed by the calling thread */
    LARGEST_PIECE = 1 << 16,   /* worlds; pinned memory is not the machine's to fill */
    BYTES_OF_ROWS = 256 << 20, /* of courses of small worlds and piles in a call, about; likewise */
    QUESTION_NS = 100000       /* between two questions to a caller that may cancel */
};

static const size_t PART_ALIGNMENT = 64;
static const size_t LINE_BYTES = 128; /* of a card's caches */

static size_t aligned(size_t bytes)
{
    return (bytes + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
}

/* One launch. */
typedef struct piece {
    tb_gpu_batch *batch;
    const int32_t *pending;
    int32_t count;
    tb_gpu_call call;
    /* bytes of the block, in this order, and of the staging up to the order; the inputs end with the
     * counts of solves */
    size_t inputs, headers, outputs, order;
    size_t counts_at, order_at; /* order_at: of small worlds, among the inputs */
    size_t
        bytes; /* of the staging: behind the block, the numbers and contacts that the host has newer */
    int32_t copies; /* that take it to its places */
    unsigned char *staging;
    tb_gpu_copy *list;
} piece;

static tb_gpu_task *task_of(const piece *p, int32_t i)
{
    return &p->batch->tasks[p->pending[i]];
}

/* Rows of the world's course that one launch may use: its steps in that launch. */
static int32_t rows_of(const piece *p, const tb_gpu_task *task)
{
    const int32_t steps = p->call.launch.steps;
    return task->steps_left < steps ? task->steps_left : steps;
}

static tb_gpu_world *header_of(const piece *p, int32_t i)
{
    return (tb_gpu_world *)(void *)(p->staging + p->inputs) + i;
}

static void for_worlds(piece *p, tb_parallel_function *function)
{
    const int32_t threads = p->count < PARALLEL_WORLDS ? 1 : p->batch->threads;
    tb_parallel_for(p->count, 64, threads, function, p);
}

/* ---- how a launch goes ---- */

/* Worlds are at the same place of theirs all at once: an odd number of lines from each to the next
 * spreads them over a cache. */
static size_t arena_stride(size_t bytes)
{
    return ((bytes + LINE_BYTES - 1) / LINE_BYTES | 1) * LINE_BYTES;
}

/* As many arenas as there are worlds, or as the card has room for; and as much memory for searches beside the
 * begin of steps (`searches`), if there is room for all. */
static tb_status reserve_arenas(piece *p, bool searches, tb_error *error)
{
    tb_gpu_batch *b = p->batch;
    tb_gpu_launch *l = &p->call.launch;
    size_t room = 0, total = 0;
    l->slots = p->count;
    const size_t wanted = (size_t)l->slots * l->arena_size;
    l->searches_beside = searches;
    if ((searches ? 2 : 1) * wanted <= b->arenas.capacity) return TB_OK;
    tb_status status = tb_gpu_free_memory(&b->device, &room, &total, error);
    if (status != TB_OK) return status;
    const size_t most = (room + b->arenas.capacity) / 4 * 3;
    l->searches_beside = searches && 2 * wanted <= most;
    if (wanted > most) l->slots = (int32_t)(most / l->arena_size);
    if (l->slots < 1) l->slots = 1; /* and the card may refuse */
    b->tables.slots = 0;
    const size_t each = (l->searches_beside ? 2 : 1) * l->arena_size;
    return tb_gpu_reserve(&b->device, &b->arenas, (size_t)l->slots * each, error);
}

/* Whether the arenas have the tables of all worlds of this launch. */
static bool tables_stand(const piece *p)
{
    const tb_gpu_tables *tables = &p->batch->tables;
    const tb_gpu_launch *l = &p->call.launch;
    if (tables->slots < p->count || tables->kernel != l->alone ||
        tables->arena_size != l->arena_size ||
        memcmp(&tables->options, &l->options, sizeof l->options) != 0)
        return false;
    for (int32_t i = 0; i < p->count; i++)
        if (tables->models[i] != task_of(p, i)->model->number) return false;
    return true;
}

/* Remembers the tables of a launch that has ended and stepped all worlds at once. */
static void keep_tables(piece *p)
{
    tb_gpu_tables *tables = &p->batch->tables;
    const tb_gpu_launch *l = &p->call.launch;
    if (!tb_gpu_is_by_warps(l) || l->slots < p->count) return;
    for (int32_t i = 0; i < p->count; i++) tables->models[i] = task_of(p, i)->model->number;
    memcpy(&tables->options, &l->options, sizeof l->options);
    tables->kernel = l->alone;
    tables->arena_size = l->arena_size;
    tables->slots = p->count;
}

/* Measures a piece for its launch: the most steps that a world has left, the largest arena, most and least
 * dofs, bytes of the courses' rows of one step, and the effort of the worlds' last solves. */
static void look_at_worlds(piece *p, int32_t *steps, int32_t *dofs, int32_t *least_dofs,
                           size_t *row_bytes, tb_gpu_effort *effort)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < p->count; i++) {
        const tb_gpu_task *task = task_of(p, i);
        const tb_state *s = task->state;
        if (task->steps_left > *steps) *steps = task->steps_left;
        const int32_t own = s->model->number_of_dofs;
        if (own > *dofs) *dofs = own;
        if (i == 0 || own < *least_dofs) *least_dofs = own;
        if (task->model->arena_size > bytes) bytes = task->model->arena_size;
        if (task->course != NULL) {
            const tb_gpu_rows rows = tb_gpu_rows_of(task->course, s->model);
            *row_bytes += rows.inputs + rows.outputs;
        }
        /* a state that was restored knows of no last solve */
        if (s->steps > 0 && s->certificate.step == s->steps)
            tb_gpu_effort_add(effort, s->certificate.iterations);
    }
    p->call.launch.arena_size = arena_stride(bytes);
}

/* A caller that may cancel can end the launch: not one step, and not small worlds, which do not read
 * the word. These wait without a question, which would take longer than a short launch. */
static tb_status let_stop(piece *p, const tb_step_options *options, tb_error *error)
{
    tb_gpu_batch *b = p->batch;
    const tb_gpu_launch *l = &p->call.launch;
    if (options->solve.cancelled == NULL || l->steps == 1 || tb_gpu_is_by_warps(l)) return TB_OK;
    const tb_status status = tb_gpu_reserve_pinned(&b->device, &b->stop, sizeof(int32_t), error);
    if (status != TB_OK) return status;
    *(int32_t *)b->stop.memory = 0;
    p->call.launch.stop = b->stop.memory;
    return TB_OK;
}

/* Whether blocks take the worlds of the launch in an order of their own (put_order). */
static bool has_order(const tb_gpu_launch *launch)
{
    return tb_gpu_is_by_warps(launch) && launch->slots >= launch->number_of_worlds;
}

/* Fills a call, except the address of its block. */
static tb_status plan(piece *p, const tb_step_options *options, tb_error *error)
{
    tb_gpu_batch *b = p->batch;
    tb_gpu_call *call = &p->call;
    tb_gpu_launch *l = &call->launch;
    int32_t steps = 0, dofs = 0, least_dofs = 0;
    size_t row_bytes = 0;
    tb_gpu_effort effort = {0};
    memset(call, 0, sizeof *call);
    l->number_of_worlds = p->count;
    l->crowded = task_of(p, 0)->way == TB_GPU_CROWDED ? (int32_t)TB_GPU_WARP_CONTACTS : 0;
    tb_gpu_call_set_options(call, options);
    look_at_worlds(p, &steps, &dofs, &least_dofs, &row_bytes, &effort);
    l->steps = tb_gpu_choose_steps(steps, options->solve.cancelled != NULL, true);
    if (task_of(p, 0)->way == TB_GPU_ONE_GENERAL) l->steps = 1;
    tb_gpu_choose_lanes(&b->schedule, b->processors, l);
    tb_gpu_choose_fast(dofs, call->single ? sizeof(float) : sizeof(double), l);
    const tb_gpu_way way = task_of(p, 0)->way;
    const bool by_warps = way == TB_GPU_BY_WARP || way == TB_GPU_BY_PILE;
    tb_status status = reserve_arenas(p, !by_warps, error);
    tb_gpu_choose_wide(least_dofs, call->single, l);
    tb_gpu_choose_alone(&b->schedule, b->processors, &effort, l);
    tb_gpu_choose_overlap(&b->schedule, b->processors, &effort, l);
    if (by_warps) {
        tb_gpu_choose_warp(way == TB_GPU_BY_PILE, l);
        l->tables_stand = tables_stand(p);
    }
    if (tb_gpu_is_by_warps(l) && row_bytes * (size_t)l->steps > BYTES_OF_ROWS) {
        const int32_t rows = (int32_t)(BYTES_OF_ROWS / row_bytes);
        l->steps = rows > 1 ? rows : 1;
    }
    if (status == TB_OK) status = let_stop(p, options, error);
    if (status == TB_OK && l->overlap > 0) {
        status = tb_gpu_side_streams_open(&b->side_streams, &b->device, error);
        /* without side streams every world waits for the longest solve */
        if (status != TB_OK && status != TB_ABORTED) status = TB_OK, l->overlap = 0, l->groups = 1;
    }
    return status;
}

/* ---- there ---- */

static tb_status settle(piece *p, int32_t count, tb_error *error)
{
    tb_gpu_batch *b = p->batch;
    if (count > LARGEST_PIECE) count = LARGEST_PIECE;
    for (int32_t i = 1; i < count; i++)
        if (task_of(p, i)->way != task_of(p, 0)->way) count = i;
    for (int32_t i = 0; i < count; i++) {
        const tb_gpu_task *task = task_of(p, i);
        const int32_t contacts = task->state->number_of_contacts;
        const int32_t learned = task->model->contact_capacity;
        b->moves[i] = (tb_gpu_move){.state = task->state,
                                    .capacity = contacts > learned ? contacts : learned};
    }
    return tb_gpu_device_copies_settle(b->device_copies, b->moves, count, &p->count, error);
}

/* Arrays that the host has newer, neighbours in one: calls `found` for each stretch of numbers. */
typedef void found_stretch(void *context, size_t first, size_t count);

static void for_stretches(const tb_state *s, found_stretch *found, void *context)
{
    size_t first[TB_ARRAYS + 1];
    if ((s->host_newer & TB_PARTS_NUMBERS) == 0) return;
    tb_state_arrays(s, first);
    for (int a = 0, end; a < TB_ARRAYS; a = end) {
        end = a + 1;
        if (!(s->host_newer & (1u << a))) continue;
        while (end < TB_ARRAYS && (s->host_newer & (1u << end))) end++;
        if (first[end] > first[a]) found(context, first[a], first[end] - first[a]);
    }
}

static void count_stretch(void *context, size_t first, size_t count)
{
    piece *p = context;
    (void)first;
    p->bytes += count * sizeof(double);
    p->copies++;
}

static size_t contact_bytes(const tb_state *s)
{
    if (!(s->host_newer & TB_STATE_CONTACTS)) return 0;
    return (size_t)s->number_of_contacts * sizeof(tb_contact_record);
}

/* Places in the block: inputs of courses, the order of small worlds, counts of solves, headers, outputs of
 * courses, the order by kinds. */
static void lay_out_block(piece *p)
{
    for (int32_t i = 0; i < p->count; i++) {
        tb_gpu_task *task = task_of(p, i);
        task->inputs_at = p->inputs;
        task->outputs_at = p->outputs;
        if (task->course == NULL) continue;
        const tb_gpu_rows rows = tb_gpu_rows_of(task->course, task->state->model);
        p->inputs += (size_t)rows_of(p, task) * rows.inputs;
        p->outputs += (size_t)rows_of(p, task) * rows.outputs;
    }
    p->order_at = p->inputs;
    if (has_order(&p->call.launch)) p->inputs += (size_t)p->count * sizeof(int32_t);
    p->counts_at = aligned(p->inputs);
    p->inputs = aligned(p->counts_at + TB_GPU_GROUPS * TB_GPU_GROUP_COUNTS * sizeof(int32_t));
    p->headers = aligned((size_t)p->count * sizeof(tb_gpu_world));
    p->outputs = aligned(p->outputs);
    p->order = (size_t)p->count * sizeof(int32_t);
}

static void lay_out(piece *p)
{
    lay_out_block(p);
    p->bytes = p->inputs + p->headers + p->outputs;
    for (int32_t i = 0; i < p->count; i++) {
        tb_gpu_task *task = task_of(p, i);
        const size_t contacts = contact_bytes(task->state);
        task->bytes_at = p->bytes;
        task->copies_at = p->copies;
        for_stretches(task->state, count_stretch, p);
        p->bytes += contacts;
        p->copies += contacts > 0;
        p->batch->uploads += task->state->host_newer == TB_STATE_ALL;
    }
}

/* Bytes of one world on their way into the staging. */
typedef struct packing {
    const tb_state *state;
    double *numbers; /* the card's */
    unsigned char *to;
    tb_gpu_copy *copy;
} packing;

static void pack_bytes(packing *k, void *place, const void *from, size_t bytes)
{
    memcpy(k->to, from, bytes);
    *k->copy++ = (tb_gpu_copy){.from = k->to, .to = place, .bytes = (int64_t)bytes};
    k->to += bytes;
}

static void pack_stretch(void *context, size_t first, size_t count)
{
    packing *k = context;
    pack_bytes(k, k->numbers + first, k->state->numbers + first, count * sizeof(double));
}

/* The state as it is, with its pointers as the card has them. */
static void pack_header(tb_gpu_world *w, const tb_gpu_task *task,
                        const tb_gpu_device_copy *device_copy)
{
    const tb_state *s = task->state;
    double *numbers = tb_gpu_device_copy_numbers(device_copy);
    memset(w, 0, sizeof *w);
    w->state = *s;
    w->state.model = task->model->image;
    w->state.numbers = numbers;
#define MOVE(NAME, member, count) w->state.member = numbers + (s->member - s->numbers);
    TB_STATE_ARRAYS(MOVE)
    TB_STATE_HIDDEN_ARRAYS(MOVE)
#undef MOVE
    w->state.contacts = tb_gpu_device_copy_contacts(device_copy, device_copy->current);
    w->state.contact_capacity = device_copy->capacity;
    w->state.next_contacts = NULL;
    w->state.next_capacity = 0;
    w->contact_capacity = device_copy->capacity;
    w->contacts[0] = tb_gpu_device_copy_contacts(device_copy, 0);
    w->contacts[1] = tb_gpu_device_copy_contacts(device_copy, 1);
    w->steps_left = task->steps_left;
    w->merged = task->merged;
}

/* Rows of the next steps, and where a card finds theirs. */
static void pack_course(const piece *p, tb_gpu_world *w, const tb_gpu_task *task)
{
    char *block = p->batch->block.memory;
    if (task->course == NULL) return;
    tb_gpu_course_send(task->course, task->state->model, task->steps_left, rows_of(p, task),
                       p->staging + task->inputs_at, block + task->inputs_at,
                       block + p->inputs + p->headers + task->outputs_at, &w->course);
}

static void pack_world(void *context, int32_t i, int32_t thread)
{
    (void)thread;
    const piece *p = context;
    const tb_gpu_task *task = task_of(p, i);
    const tb_state *s = task->state;
    const size_t contacts = contact_bytes(s);
    tb_gpu_device_copy *device_copy = tb_gpu_device_copy_of(s);
    packing k = {.state = s,
                 .numbers = tb_gpu_device_copy_numbers(device_copy),
                 .to = p->staging + task->bytes_at,
                 .copy = p->list + task->copies_at};
    for_stretches(s, pack_stretch, &k);
    if (contacts > 0)
        pack_bytes(&k, tb_gpu_device_copy_contacts(device_copy, device_copy->current), s->contacts,
                   contacts);
    pack_header(header_of(p, i), task, device_copy);
    pack_course(p, header_of(p, i), task);
}

/* The order in which blocks take the worlds of a launch of small worlds or piles: those with the most
 * contacts first, and among them those whose last solve took the most iterations. Worlds that are alike run the same code at about the same
 * time, so the warps of a processor fetch it less often. */
enum { MOST_CONTACTS = (int)TB_GPU_WARP_CONTACTS, MOST_ITERATIONS = 7 };
enum { ORDER_KEYS = (MOST_CONTACTS + 1) * (MOST_ITERATIONS + 1) };

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t key_in_order(const tb_state *s)
{
    const int32_t contacts = least(s->number_of_contacts, MOST_CONTACTS);
    const int32_t iterations = least(s->certificate.iterations, MOST_ITERATIONS);
    return ORDER_KEYS - 1 - ((MOST_ITERATIONS + 1) * contacts + iterations);
}

/* A sort by counting: worlds with equal keys keep their order. */
static void put_order(const piece *p, int32_t *order)
{
    int32_t next[ORDER_KEYS + 1] = {0};
    for (int32_t i = 0; i < p->count; i++) next[key_in_order(task_of(p, i)->state) + 1]++;
    for (int32_t k = 1; k <= ORDER_KEYS; k++) next[k] += next[k - 1];
    for (int32_t i = 0; i < p->count; i++) order[next[key_in_order(task_of(p, i)->state)]++] = i;
}

static tb_status send(piece *p, tb_error *error)
{
    tb_gpu_batch *b = p->batch;
    tb_gpu_device *d = &b->device;
    lay_out(p);
    tb_status status = tb_gpu_reserve_pinned(d, &b->staging, p->bytes, error);
    if (status == TB_OK) status = tb_gpu_reserve_copies(d, &b->list, p->copies, error);
    const size_t block = p->inputs + p->headers + p->outputs + p->order;
    if (status == TB_OK) status = tb_gpu_reserve(d, &b->block, block, error);
    if (status != TB_OK) return status;
    p->staging = b->staging.memory;
    memset(p->staging + p->counts_at, 0, p->inputs - p->counts_at);
    if (has_order(&p->call.launch)) put_order(p, (int32_t *)(void *)(p->staging + p->order_at));
    p->list = b->list.memory;
    for_worlds(p, pack_world);
    if (p->copies > 0) status = tb_gpu_mark(d, 0, error);
    if (status == TB_OK && p->copies > 0) {
        b->copied_bytes += p->bytes - (p->inputs + p->headers + p->outputs);
        status = tb_gpu_check(d, tb_gpu_start_copies(p->list, p->copies, d->stream),
                              "sending worlds", error);
    }
    return status;
}

/* ---- a launch ---- */

/* Puts the block's addresses on the card into the launch. */
static void place_call(piece *p)
{
    tb_gpu_batch *b = p->batch;
    tb_gpu_call *call = &p->call;
    tb_gpu_launch *l = &call->launch;
    char *block = b->block.memory;
    l->worlds = (tb_gpu_world *)(void *)(block + p->inputs);
    l->arenas = b->arenas.memory;
    if (l->searches_beside) l->searches = l->arenas + (size_t)l->slots * l->arena_size;
    l->counts = (int32_t *)(void *)(block + p->counts_at);
    if (l->solver == TB_SOLVER_NUMBER_auto &&
        l->lanes[TB_GPU_KERNEL_SOLVE] < TB_GPU_BLOCK_THREADS) {
        l->kinds = l->counts + TB_GPU_COUNTS;
        l->order = (int32_t *)(void *)(block + p->inputs + p->headers + p->outputs);
    }
    if (has_order(l)) l->order = (int32_t *)(void *)(block + p->order_at);
    call->side_streams = &b->side_streams;
    call->staging = p->staging;
    call->block = block;
    call->inputs = p->inputs;
    call->headers = p->headers;
    call->outputs = p->outputs;
}

/* Headers there, steps, headers back. */
static tb_status launch(piece *p, tb_error *error)
{
    tb_gpu_batch *b = p->batch;
    tb_gpu_device *d = &b->device;
    const tb_gpu_call *call = &p->call;
    place_call(p);
    b->copied_bytes += call->inputs + 2 * call->headers + call->outputs;
    tb_status status = tb_gpu_mark(d, 1, error);
    if (status == TB_OK)
        status = tb_gpu_check(d, tb_gpu_call_start(call, d->stream), "launching steps", error);
    if (status == TB_OK) status = tb_gpu_mark(d, 2, error);
    return status;
}

/* ---- back ---- */

tb_gpu_way tb_gpu_next_way(const tb_gpu_task *task)
{
    const bool crowded = task->state->number_of_contacts > (int32_t)TB_GPU_WARP_CONTACTS;
    return task->usual != TB_GPU_GENERAL && crowded ? TB_GPU_CROWDED : task->usual;
}

static void unpack_world(void *context, int32_t i, int32_t thread)
{
    (void)thread;
    const piece *p = context;
    tb_gpu_task *task = task_of(p, i);
    tb_state *s = task->state;
    tb_gpu_device_copy *device_copy = tb_gpu_device_copy_of(s);
    const tb_gpu_world *w = header_of(p, i);

    device_copy->current = w->state.contacts == w->contacts[1];
    device_copy->contacts = w->state.number_of_contacts;
    const int32_t taken = (int32_t)(w->state.steps - s->steps);
    s->host_newer = 0;
    if (taken > 0) {
        s->device_newer |= TB_STATE_ALL & ~(uint32_t)TB_PARTS_INPUT;
        device_copy->dirty = true;
    }
    if (task->course != NULL && task->course->steps > 0) {
        /* copied even where no step followed */
        s->device_newer |= tb_course_arrays(task->course);
        device_copy->dirty |= tb_course_arrays(task->course) != 0;
        tb_gpu_course_receive(task->course, s->model, task->steps_left, rows_of(p, task), taken,
                              w->status == TB_DIVERGED,
                              p->staging + p->inputs + p->headers + task->outputs_at);
    }
    s->number_of_contacts = w->state.number_of_contacts;
    s->time = w->state.time;
    s->steps = w->state.steps;
    s->status = w->state.status;
    s->certificate = w->state.certificate;
    task->merged = w->merged;
    task->steps_left = w->steps_left;
    const bool by_warp = task->way == TB_GPU_BY_WARP || task->way == TB_GPU_BY_PILE;
    const bool left = by_warp && w->status == TB_UNSUPPORTED;
    task->way = left ? TB_GPU_ONE_GENERAL : tb_gpu_next_way(task);
    task->status = left ? TB_OK : w->status;
    task->contacts_needed = w->contacts_needed;
    task->arena_needed = w->arena_needed;
}

/* Asks the caller until the launch has ended, and passes a yes on to the kernels. */
static void ask_meanwhile(const tb_gpu_device *device, const tb_solve_options *solve,
                          volatile int32_t *stop)
{
    const struct timespec pause = {.tv_nsec = QUESTION_NS};
    while (tb_gpu_is_busy(device)) {
        if (*stop == 0 && solve->cancelled(solve->cancelled_context)) *stop = 1;
        (void)nanosleep(&pause, NULL);
    }
}

static tb_status await_steps(piece *p, const tb_step_options *options, tb_error *error)
{
    tb_gpu_batch *b = p->batch;
    tb_gpu_device *d = &b->device;
    if (p->call.launch.stop != NULL) ask_meanwhile(d, &options->solve, b->stop.memory);
    tb_status status = tb_gpu_wait(d, "steps", error);
    if (status == TB_OK && p->copies > 0) status = tb_gpu_elapsed(d, 0, 1, &b->copy_seconds, error);
    if (status == TB_OK) status = tb_gpu_elapsed(d, 1, 2, &b->compute_seconds, error);
    return status;
}

tb_status tb_gpu_batch_run(tb_gpu_batch *batch, const tb_step_options *options,
                           const int32_t *pending, int32_t count, int32_t *taken, tb_error *error)
{
    piece p = {.batch = batch, .pending = pending};
    tb_status status = settle(&p, count, error);
    if (status == TB_OK) status = plan(&p, options, error);
    if (status == TB_OK) status = send(&p, error);
    batch->tables.slots = 0; /* until this launch has ended */
    if (status == TB_OK) status = launch(&p, error);
    if (status == TB_OK) status = await_steps(&p, options, error);
    if (status == TB_OK) keep_tables(&p);
    if (status == TB_OK) for_worlds(&p, unpack_world);
    batch->launches++;
    *taken = p.count;
    return status;
}
