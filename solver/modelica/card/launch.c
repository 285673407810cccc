/* The host's side of the card: uploads a kernel's inputs, launches it, fetches arrays that the host reads.
 *
 * Arrays stay on the card from one kernel to the next; the host gets a copy when a statement of it,
 * or the end of the call, needs one. Their memory comes from the card's pool, which keeps freed
 * arrays, so that warm calls take nothing from the system. One call has the card at a time. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modelica/arithmetic.h"
#include "modelica/card/call.h"

enum { LAUNCHES_BETWEEN_CHECKS = 250, KIND_TOO_LONG = 15 };
enum { FAULT_BYTES = 8 * MO_FAULT_WORDS };
enum { SMALL_BYTES = 4096 }; /* below, the host copies its own arrays */
/* rounds of loops inside a thread for each second of the call's limit, fewer than a card makes */
static const double ROUNDS_A_SECOND = 5e7;

static pthread_mutex_t one_call = PTHREAD_MUTEX_INITIALIZER;

/* ---- failures ---- */

static void lost(mo_run *run, const char *what)
{
    tb_mo_run_escape(run, TB_ABORTED, (mo_place){0, 0}, "the card failed: %s", what);
}

/* the line and column of a byte of the source */
static mo_place place_of(const mo_program *program, int64_t byte)
{
    mo_place place = {1, 1};
    for (int64_t k = 0; k < byte && program->text[k] != '\0'; k++) {
        place.column++;
        if (program->text[k] == '\n') place = (mo_place){place.line + 1, 1};
    }
    return place;
}

static void tell_fault(mo_run *run, const uint64_t *fault)
{
    const uint64_t key = fault[0];
    const int kind = (int)(key & ((1 << MO_KIND_BITS) - 1));
    const int64_t byte = (int64_t)(key >> MO_KIND_BITS & ((1 << MO_PLACE_BITS) - 1));
    const mo_place place = place_of(run->program, byte);
    if (kind == KIND_TOO_LONG)
        tb_mo_run_escape(run, TB_DEADLINE_EXCEEDED, (mo_place){0, 0},
                         "a loop of a kernel took more rounds than the limit of %g s allows",
                         run->options->seconds);
    tb_mo_fail_kind(run, kind, place, (int64_t)fault[2], (int64_t)fault[3], (int64_t)fault[4]);
}

/* Waits for the kernels and ends the call if one of them failed. */
static void check(mo_run *run)
{
    struct mo_card *card = run->card;
    mo_driver *d = card->driver;
    if (!card->used || card->launches == 0) return;
    if (d->cuMemcpyDtoHAsync_v2(d->fault, d->card_fault, FAULT_BYTES, d->stream) != 0 ||
        d->cuStreamSynchronize(d->stream) != 0)
        lost(run, "a kernel");
    card->launches = 0;
    if (d->fault[0] != UINT64_MAX) tell_fault(run, d->fault);
}

/* ---- arrays ---- */

/* notes memory that must be freed if the call fails */
static bool hold(struct mo_card *card, cu_pointer pointer)
{
    if (card->pointers == card->capacity) {
        cu_pointer *grown =
            tb_grow(card->pointer, card->pointers + 1, &card->capacity, sizeof *grown);
        if (grown == NULL) return false;
        card->pointer = grown;
    }
    card->pointer[card->pointers++] = pointer;
    return true;
}

static cu_pointer take(mo_run *run, size_t bytes)
{
    mo_driver *d = run->card->driver;
    cu_pointer pointer = 0;
    if (d->cuMemAllocAsync(&pointer, bytes, d->stream) != 0)
        tb_mo_run_escape(run, TB_RESOURCE_EXHAUSTED, (mo_place){0, 0},
                         "the card has no %zu bytes left", bytes);
    if (!hold(run->card, pointer)) lost(run, "no memory on the host");
    return pointer;
}

static void forget(struct mo_card *card, cu_pointer pointer)
{
    for (int32_t k = card->pointers; k-- > 0;)
        if (card->pointer[k] == pointer) {
            card->pointer[k] = card->pointer[--card->pointers];
            return;
        }
}

static void release(struct mo_card *card, cu_pointer pointer)
{
    card->driver->cuMemFreeAsync(pointer, card->driver->stream);
    forget(card, pointer);
}

static void need_card(mo_run *run, mo_array *array, bool content)
{
    mo_driver *d = run->card->driver;
    const size_t bytes = (size_t)array->bytes;
    if (array->card == NULL) array->card = (void *)(uintptr_t)take(run, bytes);
    if (array->where & MO_ON_CARD) return;
    const cu_pointer to = (cu_pointer)(uintptr_t)array->card;
    int failed = 0;
    if (array->zero)
        failed = d->cuMemsetD8Async(to, 0, bytes, d->stream);
    else if (content)
        failed = d->cuMemcpyHtoDAsync_v2(to, array->data, bytes, d->stream);
    if (failed) lost(run, "a copy to it");
    array->where |= MO_ON_CARD;
}

void tb_mo_card_read(mo_run *run, mo_array *array, void *memory)
{
    mo_driver *d = run->card->driver;
    check(run);
    if (array->bytes > 0 && (d->cuMemcpyDtoHAsync_v2(memory, (cu_pointer)(uintptr_t)array->card,
                                                     (size_t)array->bytes, d->stream) != 0 ||
                             d->cuStreamSynchronize(d->stream) != 0))
        lost(run, "a copy from it");
}

void tb_mo_card_fetch(mo_run *run, mo_array *array)
{
    tb_mo_need_host(run, array);
    tb_mo_card_read(run, array, array->data);
    array->where |= MO_ON_HOST;
    array->zero = false;
}

void tb_mo_card_free(mo_run *run, mo_array *array)
{
    release(run->card, (cu_pointer)(uintptr_t)array->card);
    array->card = NULL;
}

bool tb_mo_card_copy(mo_run *run, mo_array *to, mo_array *from, int64_t place)
{
    mo_driver *d = run->card->driver;
    if (from->zero || from->bytes == 0 || to == from) return false;
    if (from->where == MO_ON_HOST && from->bytes < SMALL_BYTES) return false;
    need_card(run, from, true);
    memcpy(to->size, from->size, sizeof to->size);
    tb_mo_allocate(run, to, place);
    to->where = MO_ON_CARD;
    to->zero = false;
    need_card(run, to, false);
    if (d->cuMemcpyDtoDAsync_v2((cu_pointer)(uintptr_t)to->card, (cu_pointer)(uintptr_t)from->card,
                                (size_t)from->bytes, d->stream) != 0)
        lost(run, "a copy on it");
    return true;
}

void *tb_mo_card_take(mo_run *run, mo_array *array)
{
    void *memory = array->card;
    forget(run->card, (cu_pointer)(uintptr_t)memory);
    array->card = NULL;
    array->where = 0;
    return memory;
}

/* ---- launches ---- */

/* The launch's argument, as the struct p0, p1, ... of the generated text. */
typedef struct mo_parameters {
    int64_t from[3], to[3], total, rounds;
    uint64_t fault, launch, part;
    /* scalars, then arrays */
    unsigned char rest[8 * MO_KERNEL_SCALARS + (8 + 8 * MO_RANK) * MO_KERNEL_ARRAYS];
} mo_parameters;

static void fill(const mo_frame *frame, const mo_kernel *k, unsigned char *at)
{
    for (int32_t i = 0; i < k->scalars; i++, at += 8) memcpy(at, &frame->slot[k->scalar[i]], 8);
    if (k->scalars == 0) at += 8;
    for (int32_t i = 0; i < k->arrays; i++) {
        const mo_array *array = frame->slot[k->array[i]].array;
        memcpy(at, &array->card, 8);
        memcpy(at + 8, array->size, sizeof array->size);
        at += 8 + sizeof array->size;
    }
}

/* Whether a product reads and writes inside of its matrices alone, so that tiles need no checks. */
static bool fits_tiles(mo_run *run, mo_frame *frame, const mo_kernel *k, const mo_parameters *p)
{
    enum { FEWEST = 32 * 32 };
    if (k->product == NULL || p->from[0] != 1 || p->from[1] != 1 || p->total < FEWEST) return false;
    const int64_t depth = tb_mo_evaluate_integer(run, frame, k->product->limit);
    const mo_array *x = frame->slot[k->left].array, *y = frame->slot[k->right].array;
    const mo_array *z = frame->slot[k->result].array;
    return p->to[0] <= x->size[0] && depth <= x->size[1] && depth <= y->size[0] &&
           p->to[1] <= y->size[1] && p->to[0] <= z->size[0] && p->to[1] <= z->size[1];
}

static int64_t blocks_of(const mo_tile *tile, const mo_parameters *p)
{
    return ((p->to[0] + tile->rows - 1) / tile->rows) *
           ((p->to[1] + tile->columns - 1) / tile->columns);
}

/* The largest tile that gives each processor of the card enough blocks. */
static int choose_tile(const mo_driver *d, const mo_tiled *tiled, const mo_parameters *p)
{
    int chosen = -1;
    for (int q = 0; q < MO_TILES; q++) {
        if (tiled->handle[q] == NULL) continue;
        chosen = q;
        if ((double)blocks_of(&tb_mo_tiles[q], p) >= tb_mo_tiles[q].blocks * d->processors) break;
    }
    return chosen;
}

static int64_t most_rounds(const mo_run *run)
{
    return run->options->seconds > 0 ? (int64_t)(run->options->seconds * ROUNDS_A_SECOND)
                                     : INT64_MAX / 2;
}

/* Has the kernel's arrays on the card, and no failure of earlier launches there. */
static void open_launch(mo_run *run, const mo_frame *frame, const mo_kernel *k)
{
    struct mo_card *card = run->card;
    mo_driver *d = card->driver;
    if (!card->used) d->cuEventRecord(d->begin, d->stream);
    card->used = true;
    for (int32_t i = 0; i < k->arrays; i++) need_card(run, frame->slot[k->array[i]].array, true);
    if (card->launches == 0 && d->cuMemsetD8Async(d->card_fault, 0xff, FAULT_BYTES, d->stream) != 0)
        lost(run, "its memory");
}

/* Notes that the kernel has written, and looks for failures now and then. */
static void close_launch(mo_run *run, const mo_frame *frame, const mo_kernel *k)
{
    for (int32_t i = 0; i < k->arrays; i++) {
        mo_array *array = frame->slot[k->array[i]].array;
        if (!k->stored[i]) continue;
        array->where = MO_ON_CARD;
        array->zero = false;
    }
    run->timing.launches++;
    if (++run->card->launches < LAUNCHES_BETWEEN_CHECKS) return;
    check(run);
    run->poll(run);
}

/* parts of a reduction side by side, and words for them and for the parts that they join to */
static int64_t parts_of(int64_t rounds)
{
    return (rounds + MO_BRANCHES - 1) / MO_BRANCHES;
}

static int64_t words_of(int64_t parts)
{
    return parts + parts / 32 + 8;
}

static void launch(mo_run *run, mo_frame *frame, const mo_kernel *k, cu_handle function,
                   const mo_tiled *tiled, mo_parameters *p)
{
    struct mo_card *card = run->card;
    mo_driver *d = card->driver;
    open_launch(run, frame, k);
    p->fault = d->card_fault;
    p->launch = (uint64_t)card->launches;
    p->rounds = most_rounds(run);
    fill(frame, k, p->rest);
    const mo_fold *fold = k->loop->loop->fold;
    const int64_t work = fold != NULL && fold->parallel ? parts_of(p->total) : p->total;
    int64_t blocks = (work + MO_BLOCK - 1) / MO_BLOCK;
    unsigned threads = MO_BLOCK;
    if (fold != NULL && !fold->parallel) {
        blocks = 1;
        threads = MO_FOLD_THREADS;
    }
    if (fits_tiles(run, frame, k, p)) {
        const int tile = choose_tile(d, tiled, p);
        blocks = blocks_of(&tb_mo_tiles[tile], p);
        function = tiled->handle[tile];
        threads = (unsigned)tb_mo_tiles[tile].threads;
    }
    void *parameters[] = {p};
    if (d->cuLaunchKernel(function, (unsigned)(blocks < 1 << 22 ? blocks : 1 << 22), 1, 1, threads,
                          1, 1, 0, d->stream, parameters, NULL) != 0)
        lost(run, "a launch");
    close_launch(run, frame, k);
}

/* ---- reductions ---- */

/* Whether the host reduces faster: few rounds over arrays that it has. */
static bool is_small(const mo_frame *frame, const mo_kernel *k, int64_t rounds)
{
    enum { FEW_ROUNDS = 1000 };
    for (int32_t i = 0; i < k->arrays; i++)
        if (!(frame->slot[k->array[i]].array->where & MO_ON_HOST)) return false;
    return rounds < FEW_ROUNDS;
}

static void get_folds(mo_run *run, mo_frame *frame, const mo_fold *fold)
{
    check(run);
    for (int32_t q = 0; q < fold->count; q++)
        memcpy(&frame->slot[fold->variable[q]], &run->card->driver->fault[MO_RESULT_WORD + q], 8);
}

/* The argument of a kernel that joins parts, as the struct of the generated text. */
typedef struct mo_parts {
    uint64_t part, result;
    int64_t count;
} mo_parts;

static void launch_joins(mo_run *run, const mo_loaded *loaded, const mo_fold *fold,
                         const mo_parameters *p)
{
    mo_driver *d = run->card->driver;
    const int64_t count = parts_of(p->total);
    for (int32_t q = 0; q < fold->count; q++) {
        mo_parts parts = {.part = p->part + 8 * (uint64_t)(q * words_of(count)),
                          .result = d->card_fault + 8 * (uint64_t)(MO_RESULT_WORD + q),
                          .count = count};
        void *parameters[] = {&parts};
        const cu_handle join = loaded->join[tb_mo_join_number(fold->statement[q]->value)];
        if (d->cuLaunchKernel(join, 1, 1, 1, MO_FOLD_THREADS, 1, 1, 0, d->stream, parameters,
                              NULL) != 0)
            lost(run, "a launch");
    }
}

/* Joins the result of each reduction with the value that its variable had before the rounds. */
static void take_folds(mo_run *run, mo_frame *frame, const mo_fold *fold)
{
    mo_slot old[MO_FOLDS];
    for (int32_t q = 0; q < fold->count; q++) old[q] = frame->slot[fold->variable[q]];
    get_folds(run, frame, fold);
    for (int32_t q = 0; q < fold->count; q++) {
        const mo_s *s = fold->statement[q];
        mo_slot *slot = &frame->slot[fold->variable[q]];
        if (s->tree > 0)
            tb_mo_tree_of(frame, s)->part[0] = slot->real;
        else if (s->value->op == MO_X_ADD)
            slot->real = old[q].real + slot->real;
        else if (s->value->base == MO_T_REAL)
            slot->real = s->value->op == MO_X_MINIMUM ? mo_min_real(old[q].real, slot->real)
                                                      : mo_max_real(old[q].real, slot->real);
        else
            slot->integer = s->value->op == MO_X_MINIMUM
                                ? mo_min_integer(old[q].integer, slot->integer)
                                : mo_max_integer(old[q].integer, slot->integer);
    }
}

static void reduce(mo_run *run, mo_frame *frame, const mo_kernel *k, const mo_loaded *loaded,
                   cu_handle function, mo_parameters *p)
{
    const mo_fold *fold = k->loop->loop->fold;
    if (fold->parallel)
        p->part = take(run, 8 * (size_t)(fold->count * words_of(parts_of(p->total))));
    launch(run, frame, k, function, NULL, p);
    if (fold->parallel) {
        launch_joins(run, loaded, fold, p);
        /* a check at the end of the launch came before the joins: another one fetches their results */
        if (run->card->launches == 0) run->card->launches = 1;
        release(run->card, p->part);
        take_folds(run, frame, fold);
    } else {
        get_folds(run, frame, fold);
    }
}

/* ---- sweeps ---- */

/* The launch's argument of a sweep, as the struct of the generated text. */
typedef struct mo_sweep_parameters {
    int32_t ends[MO_SWEEP_PARTS][4], steps, rows, columns, groups;
    int64_t first, last, rounds, mark;
    uint64_t marks, fault, launch, out[MO_SWEEP_ARRAYS];
    unsigned char rest[8 * MO_KERNEL_SCALARS + (8 + 8 * MO_RANK) * MO_KERNEL_ARRAYS];
} mo_sweep_parameters;

/* Ends of the nests and size of the grid; false: the sweep runs round by round. */
static bool open_sweep(mo_run *run, mo_frame *frame, const mo_sweep *sweep, mo_sweep_parameters *p)
{
    enum { MOST_ELEMENTS = 1 << 25 };
    p->rows = p->columns = 0;
    for (int32_t k = 0; k < sweep->arrays; k++) {
        const mo_array *array = frame->slot[sweep->array[k]].array;
        if (array->bytes == 0 || array->bytes / 8 > MOST_ELEMENTS) return false;
        if (array->size[0] > p->rows) p->rows = (int32_t)array->size[0];
        if (array->size[1] > p->columns) p->columns = (int32_t)array->size[1];
    }
    if (p->rows > MOST_ELEMENTS / p->columns) return false;
    for (int32_t k = 0; k < sweep->parts; k++) {
        const mo_s *part = sweep->part[k];
        for (int32_t d = 0; part->op == MO_S_FOR && d < 2; d++) {
            const mo_s *level = part->loop->nest[d];
            const int64_t from = tb_mo_evaluate_integer(run, frame, level->value);
            const int64_t to = tb_mo_evaluate_integer(run, frame, level->limit);
            /* rounds outside of the grid have no element of their own: they fail, in order */
            if (from < 1 || to > (d == 0 ? p->rows : p->columns)) return false;
            p->ends[k][2 * d] = from > to ? INT32_MAX : (int32_t)from;
            p->ends[k][2 * d + 1] = from > to ? 0 : (int32_t)to;
        }
        if (part->op != MO_S_COPY) continue;
        const mo_array *to = frame->slot[part->variable].array;
        const mo_array *from = frame->slot[part->source].array;
        if (to->size[0] != from->size[0] || to->size[1] != from->size[1]) return false;
    }
    return true;
}

static int32_t steps_of_group(const mo_sweep *sweep)
{
    int32_t steps = MO_SWEEP_STEPS / sweep->parts;
    for (int32_t d = 0; d < 2; d++) {
        const int32_t reach = sweep->reach_low[d] + sweep->reach_high[d];
        if (reach > 0 && MO_SWEEP_REACH / reach < steps) steps = MO_SWEEP_REACH / reach;
    }
    return steps;
}

static int64_t tiles_across(int64_t size, int64_t steps, const mo_sweep *sweep, int32_t d)
{
    const int64_t side = MO_SIDE - steps * (sweep->reach_low[d] + sweep->reach_high[d]);
    return (size + side - 1) / side;
}

/* Launches groups of rounds; the buffers of the arrays change places with each group. */
static void launch_sweep(mo_run *run, mo_frame *frame, const mo_kernel *k, cu_handle function,
                         unsigned blocks, mo_sweep_parameters *p)
{
    const mo_sweep *sweep = k->sweep;
    struct mo_card *card = run->card;
    mo_driver *d = card->driver;
    void *parameters[] = {p};
    open_launch(run, frame, k);
    p->fault = d->card_fault;
    p->launch = (uint64_t)card->launches;
    fill(frame, k, p->rest);
    const int failed = p->groups > 1
                           ? d->cuLaunchCooperativeKernel(function, blocks, 1, 1, MO_SWEEP_THREADS,
                                                          1, 1, 0, d->stream, parameters)
                           : d->cuLaunchKernel(function, blocks, 1, 1, MO_SWEEP_THREADS, 1, 1, 0,
                                               d->stream, parameters, NULL);
    if (failed) lost(run, "a launch");
    for (int32_t i = 0; i < sweep->arrays && p->groups % 2 != 0; i++) {
        mo_array *array = frame->slot[sweep->array[i]].array;
        const uint64_t read = (uint64_t)(uintptr_t)array->card;
        array->card = (void *)(uintptr_t)p->out[i];
        p->out[i] = read;
    }
    card->launches += p->groups - 1;
    close_launch(run, frame, k);
}

/* Whether the card runs all blocks of a sweep at once, so that they may wait for one another. */
static bool runs_at_once(const mo_driver *d, cu_handle function, int64_t blocks)
{
    int resident = 0;
    return d->cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, function, MO_SWEEP_THREADS,
                                                          0) == 0 &&
           blocks <= (int64_t)resident * d->processors;
}

/* Launches the rounds first ... to, in groups of p->steps. A launch ends where failures are looked for. */
static void launch_groups(mo_run *run, mo_frame *frame, const mo_kernel *k, cu_handle function,
                          int64_t to, mo_sweep_parameters *p)
{
    mo_driver *d = run->card->driver;
    const int64_t blocks = tiles_across(p->rows, p->steps, k->sweep, 0) *
                           tiles_across(p->columns, p->steps, k->sweep, 1);
    const bool together = to - p->first >= p->steps && runs_at_once(d, function, blocks);
    if (together) {
        p->marks = take(run, 8 * (size_t)blocks);
        if (d->cuMemsetD8Async(p->marks, 0, 8 * (size_t)blocks, d->stream) != 0)
            lost(run, "its memory");
    }
    for (; p->first <= to; p->first = p->last + 1, p->mark += p->groups) {
        const int64_t left = (to - p->first) / p->steps + 1;
        const int64_t most = together ? LAUNCHES_BETWEEN_CHECKS - run->card->launches : 1;
        p->groups = (int32_t)(left < most ? left : most);
        p->last = left <= most ? to : p->first + (int64_t)p->groups * p->steps - 1;
        launch_sweep(run, frame, k, function, (unsigned)blocks, p);
        if ((run->budget -= p->last - p->first + 1) < 0) run->poll(run);
    }
    if (together) release(run->card, p->marks);
}

static bool run_sweep(mo_run *run, mo_frame *frame, const mo_s *s, const mo_kernel *k,
                      cu_handle function)
{
    const mo_sweep *sweep = k->sweep;
    mo_sweep_parameters p = {.rounds = most_rounds(run)};
    p.first = tb_mo_evaluate_integer(run, frame, s->value);
    const int64_t to = tb_mo_evaluate_integer(run, frame, s->limit);
    if (!k->fits || to <= p.first || to > INT64_MAX / 2 || p.first < -INT64_MAX / 2) return false;
    if (sweep->settles) {
        tb_mo_interpret_rounds(run, frame, s, p.first, p.first);
        p.first++;
    }
    if (!open_sweep(run, frame, sweep, &p)) {
        if (sweep->settles) tb_mo_interpret_rounds(run, frame, s, p.first, to);
        return sweep->settles;
    }
    for (int32_t i = 0; i < sweep->arrays; i++)
        p.out[i] = take(run, (size_t)frame->slot[sweep->array[i]].array->bytes);
    const int32_t most = steps_of_group(sweep);
    p.steps = (int32_t)(to - p.first + 1 < most ? to - p.first + 1 : most);
    launch_groups(run, frame, k, function, to, &p);
    for (int32_t i = 0; i < sweep->arrays; i++) release(run->card, p.out[i]);
    return true;
}

bool tb_mo_card_loop(mo_run *run, mo_frame *frame, const mo_s *s)
{
    const mo_loop *loop = s->loop;
    mo_parameters p;
    const mo_loaded *loaded = run->card->functions;
    const int32_t f = frame->function->index;
    if (loaded->kernels == NULL || loaded->kernels[f] == NULL) return false;
    if (loop->sweep != NULL) {
        const int32_t number = frame->function->kernels + loop->sweep->number;
        return run_sweep(run, frame, s, &loaded->kernels[f][number], loaded->handle[f][number]);
    }
    if (loop->number < 0) return false;
    const mo_kernel *k = &loaded->kernels[f][loop->number];
    if (!k->fits) return false;
    p.total = 1;
    for (int32_t d = 0; d < MO_NEST; d++) {
        p.from[d] = p.to[d] = 1;
        if (d >= loop->depth) continue;
        p.from[d] = tb_mo_evaluate_integer(run, frame, loop->nest[d]->value);
        p.to[d] = tb_mo_evaluate_integer(run, frame, loop->nest[d]->limit);
        if (p.to[d] < p.from[d]) return true;
        const int64_t most = INT64_C(1) << MO_ROUND_BITS;
        if (p.to[d] - p.from[d] >= most || p.total > (most - 1) / (p.to[d] - p.from[d] + 1))
            return false;
        p.total *= p.to[d] - p.from[d] + 1;
    }
    for (int32_t i = 0; i < k->arrays; i++)
        if (frame->slot[k->array[i]].array->bytes == 0) return false;
    if (loop->fold != NULL && is_small(frame, k, p.total)) return false;
    if (loop->fold != NULL)
        reduce(run, frame, k, loaded, loaded->handle[f][loop->number], &p);
    else
        launch(run, frame, k, loaded->handle[f][loop->number], &loaded->tiled[f][loop->number], &p);
    return true;
}

/* ---- outputs that stay ---- */

bool tb_mo_card_first_infinite(mo_run *run, const mo_array *array, int64_t *index)
{
    struct mo_card *card = run->card;
    mo_driver *d = card->driver;
    struct {
        uint64_t array, first;
        int64_t count;
    } p = {(uint64_t)(uintptr_t)array->card, d->card_fault + 8 * MO_RESULT_WORD, array->bytes / 8};
    void *parameters[] = {&p};
    const cu_handle search = card->functions->finite;
    if (search == NULL || array->card == NULL) return false;
    check(run);
    if (!card->used) d->cuEventRecord(d->begin, d->stream);
    const int64_t blocks = (p.count + MO_BLOCK - 1) / MO_BLOCK, most = 8 * (int64_t)d->processors;
    if (d->cuMemsetD8Async(d->card_fault, 0xff, FAULT_BYTES, d->stream) != 0 ||
        d->cuLaunchKernel(search, (unsigned)(blocks < most ? blocks : most), 1, 1, MO_BLOCK, 1, 1,
                          0, d->stream, parameters, NULL) != 0)
        lost(run, "a launch");
    card->used = true;
    card->launches = 1;
    check(run);
    *index = (int64_t)d->fault[MO_RESULT_WORD];
    return true;
}

/* ---- calls ---- */

void tb_mo_card_begin(mo_run *run)
{
    pthread_mutex_lock(&one_call);
    run->card->driver->cuCtxSetCurrent(run->card->driver->context);
}

void tb_mo_card_finish(mo_run *run)
{
    check(run);
}

void tb_mo_card_end(mo_run *run)
{
    struct mo_card *card = run->card;
    mo_driver *d = card->driver;
    float milliseconds = 0;
    for (int32_t k = 0; k < card->pointers; k++) d->cuMemFreeAsync(card->pointer[k], d->stream);
    free(card->pointer);
    if (card->used) {
        d->cuEventRecord(d->end, d->stream);
        d->cuStreamSynchronize(d->stream);
        if (d->cuEventElapsedTime(&milliseconds, d->begin, d->end) == 0)
            run->timing.kernel_seconds = 1e-3 * (double)milliseconds;
    }
    pthread_mutex_unlock(&one_call);
    free(card);
    run->card = NULL;
}
