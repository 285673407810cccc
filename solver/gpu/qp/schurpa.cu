/* Primal-dual active sets on a card, one launch for a whole program with bounds and a band:
 * Litven's SCHURPA and, without a border, his DIRECT. Compiled twice, as double and with TB_SINGLE
 * as float.
 *
 * All blocks walk through the method together. Block 0 makes single decisions and writes them to
 * the control; after the next barrier all blocks read the same. Sums and maxima have a fixed order,
 * so the bytes do not depend on the blocks' timing. */
#include "gpu/qp/schurpa_base.h"
#include "gpu/qp/schurpa_manage.h"

#include <stddef.h>

/* ---- memory ---- */

typedef struct carver {
    char *memory;
    size_t used;
} carver;

static void *carve(carver *from, int64_t count, size_t size)
{
    char *at = from->memory ? from->memory + from->used : NULL;
    from->used += ((size_t)count * size + 255) / 256 * 256;
    return at;
}

#define CARVE(type, count) ((type *)carve(&from, (count), sizeof(type)))

/* The card's pointers into program->work, or, without it, only their size. */
static size_t lay_out(const tb_gpu_program *p, card *c)
{
    carver from = {(char *)p->work, 0};
    const int64_t n = p->n, half = p->half_bandwidth, limit = p->limit, blocks = p->blocks;
    const int64_t below = tiles_below(half), tiles = most_tile_columns(n, below) * (below + 1);
    const int64_t super = superblock_tiles(below);
    const int64_t square = (super + 1) * (super + 1), rows = most_rows(n, below);
    const int64_t inverses = most_superblocks(n, super) * square;
    const int64_t panels = limit / COLUMNS + 1;
    c->given = *p;
    c->hessian = (const tb_real *)p->hessian;
    c->f = (const tb_real *)p->f;
    c->value = (const tb_real *)p->value;
    c->b = (const tb_real *)p->b;
    c->first = p->first;
    c->of = p->of;
    c->control = CARVE(card_control, 1);
    c->bound = CARVE(int, n);
    c->base = CARVE(int, n);
    c->next = CARVE(int, n);
    c->slot = CARVE(int, n);
    c->row = CARVE(int, n);
    c->free = CARVE(int, n);
    c->rank = CARVE(int, n + 1);
    c->bucket = CARVE(signed char, n);
    c->visited = CARVE(unsigned long long, (int64_t)p->options.maximum_iterations + 2);
    c->matrix = CARVE(tb_real, tiles * SQUARE);
    c->factor = CARVE(tb_real, tiles * SQUARE);
    c->inverse = CARVE(tb_real, inverses * SQUARE);
    c->spare = CARVE(tb_real, inverses * SQUARE);
    c->panel = CARVE(tb_real, panels * rows * COLUMNS);
    c->other = CARVE(tb_real, panels * rows * COLUMNS);
    c->pivots = CARVE(tb_real, rows);
    c->base_solution = CARVE(tb_real, rows);
    c->slot_variable = CARVE(int, limit);
    c->order = CARVE(int, limit);
    c->right = CARVE(tb_real, limit * rows);
    c->column = CARVE(tb_real, limit * rows);
    c->schur = CARVE(tb_real, limit * limit);
    c->lower = CARVE(tb_real, limit);
    c->shift = CARVE(tb_real, limit);
    const int64_t capacity = (2 * limit + TILE - 1) / TILE * TILE;
    const int64_t pitch = capacity + 2 * TILE, border_rows = capacity + TILE;
    c->schur_capacity = (int)capacity;
    c->schur_pitch = (int)pitch;
    c->tip = CARVE(int, limit);
    c->row_slot = CARVE(int, border_rows);
    c->row_on = CARVE(int, border_rows);
    c->depth = CARVE(int, border_rows);
    c->schur_inverse = CARVE(tb_real, limit > 0 ? border_rows * pitch : 0);
    c->schur_pivot = CARVE(tb_real, border_rows);
    c->schur_w = CARVE(tb_real, border_rows);
    c->schur_y = CARVE(tb_real, border_rows);
    c->schur_number = CARVE(tb_real, limit > 0 ? border_rows * pitch : 0);
    c->schur_magnitude = CARVE(tb_real, border_rows);
    c->schur_product = CARVE(tb_real, TILE * pitch);
    c->schur_left = CARVE(tb_real, TILE * pitch);
    c->block_count = CARVE(int, blocks);
    c->block_list = CARVE(int, n);
    c->x = CARVE(tb_real, n);
    c->gradient = CARVE(double, n);
    c->base_pull = CARVE(double, n);
    c->partial = CARVE(double, blocks *(share_of(n, blocks) + half));
    c->maxima = CARVE(double, blocks *MAXIMA);
    return from.used;
}

/* ---- all of it ---- */

/* Lists the variables of a first set that the last launch's border lacks. */
TB_CARD void begin_next(const card *c, int j)
{
    const int bound = c->bound[j];
    c->next[j] = bound;
    c->bucket[j] = -1;
    if (bound != c->base[j] && c->slot[j] < 0) atomicAdd(&c->control->fresh_at_start, 1);
}

/* Sets at the start: of several bounds of a variable that shall hold, an equality, else the
 * first. */
TB_CARD_LARGE void begin_sets(const card *c)
{
    int from, to;
    own_variables(c, &from, &to);
    for (int j = from + (int)threadIdx.x; j < to; j += LANES) {
        int bound = FREE, equalities = 0, dropped = -1;
        for (int t = c->first[j]; t < c->first[j + 1]; t++) {
            const int i = c->of[t];
            const bool equality = i < c->given.equalities;
            if (!equality && !c->given.active[i]) continue;
            equalities += equality;
            dropped++;
            if (bound < 0) bound = i; /* equalities come first */
        }
        c->bound[j] = bound;
        if (dropped > 0) atomicAdd(&c->given.result->dropped, dropped);
        if (equalities > 1) c->control->stop = 1;
        atomicAdd(&c->control->hash, hash_of(j, bound));
        if (c->given.again) begin_next(c, j);
    }
}

/* With K0 factored already: its solution v for this f and b, and the border for this set, if it
 * fits. The kept columns' products with v are those of the last f and b, so they are formed anew
 * here: a set that needs no fresh column forms none later. */
TB_CARD_LARGE void solve_again(const card *c, void *memory)
{
    card_control *k = c->control;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        k->votes[0].fresh = k->fresh_at_start;
        k->single = -1;
        choose_move(c, &k->votes[0]);
        k->votes[0].fresh = 0;
    }
    const band_shape s = k->shape;
    place_base(c);
    meet_all(c);
    if (k->action != ACT_MOVE) return;
    solve_base(c, &s, memory);
    multiply_columns(c, &s, k->slots, 0);
}

/* Scales of the numbers, by block 0. */
TB_CARD_LARGE void begin_sizes(const card *c, double *shared)
{
    card_control *k = c->control;
    double f = 0, a = 0, b = 0;
#pragma unroll 4
    for (int j = (int)threadIdx.x; j < c->given.n; j += LANES) grow_to(&f, (double)c->f[j]);
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < c->given.constraints; i += LANES) {
        grow_to(&a, (double)c->value[i]);
        grow_to(&b, (double)c->b[i]);
    }
    f = largest_of_warp(f);
    a = largest_of_warp(a);
    b = largest_of_warp(b);
    if (lane_of() == 0) {
        shared[warp_of()] = f;
        shared[WARPS + warp_of()] = a;
        shared[2 * WARPS + warp_of()] = b;
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int w = 0; w < WARPS; w++) {
        k->largest_f = fmax(k->largest_f, shared[w]);
        k->largest_a = fmax(k->largest_a, shared[WARPS + w]);
        k->largest_b = fmax(k->largest_b, shared[2 * WARPS + w]);
    }
    k->before = DBL_MAX;
    k->action = ACT_FACTOR;
    c->given.result->status = TB_NOT_CONVERGED;
    k->began = card_time();
}

TB_CARD_LARGE void write_answer(const card *c)
{
    int from, to, active = 0, corrected = 0;
    own_variables(c, &from, &to);
    for (int j = from + (int)threadIdx.x; j < to; j += LANES) {
        const int bound = c->bound[j];
        c->given.x[j] = (double)c->x[j];
        for (int t = c->first[j]; t < c->first[j + 1]; t++) {
            const int i = c->of[t];
            const bool holds = i == bound;
            c->given.lambda[i] =
                holds ? (double)(tb_real)(-c->gradient[j] / (double)c->value[i]) : 0;
            if (i >= c->given.equalities) {
                active += holds;
                corrected += holds != (c->given.active[i] != 0);
            }
            c->given.active[i] = holds;
        }
    }
    if (active) atomicAdd(&c->given.result->active, active);
    if (corrected) atomicAdd(&c->given.result->corrected, corrected);
}

/* The loop; false where K0 could not be factored. */
TB_CARD bool solve_program(const card *c, void *memory)
{
    card_control *k = c->control;
    for (int turn = 0;; turn ^= 1) {
        const action what = (action)k->action;
        if (what == ACT_FACTOR) {
            if (!factor_base(c, memory)) return false;
        } else {
            const band_shape s = k->shape;
            if (what == ACT_REFINE) {
                refine_base(c, &s, memory);
                border_again(c, &s, memory);
            } else {
                border_base(c, &s, memory);
            }
            if (k->singular) { /* this set, with factors of its own */
                meet_all(c);
                if (blockIdx.x == 0 && threadIdx.x == 0) {
                    k->singular = 0;
                    k->action = ACT_MOVE;
                    c->given.result->resets++;
                }
                if (!factor_base(c, memory)) return false;
            }
        }
        const band_shape s = k->shape;
        find_x(c, &s, (tb_real *)memory);
        meet_all(c);
        multiply_share(c, c->x, (double *)memory, c->given.block_memory);
        meet_all(c);
        double *largest = (double *)memory;
        judge_share(c, largest);
        meet_all(c);
        gather_largest(c, largest);
        vote_share(c, largest, &k->votes[turn]);
        meet_all(c);
        if (blockIdx.x == 0) {
            clear_vote(&k->votes[turn ^ 1], c->given.n);
            manage(c, largest, &k->votes[turn], (int *)(largest + MAXIMA));
        }
        meet_all(c);
        if (k->action == ACT_END) return true;
        if (k->action != ACT_FACTOR) continue;
        int from, to;
        own_variables(c, &from, &to);
        for (int j = from + (int)threadIdx.x; j < to; j += LANES)
            if (k->single < 0 || j == k->single) c->bound[j] = c->next[j];
        meet_all(c);
    }
}

#define schurpa_kernel TB_SYMBOL(tb_gpu_schurpa)
extern "C" __global__ void __launch_bounds__(TB_GPU_PROGRAM_THREADS, 1)
    schurpa_kernel(const __grid_constant__ card c)
{
#ifdef __CUDACC__
    extern __shared__ __align__(16) unsigned char shared_bytes[];
#endif
    void *memory = shared_bytes;
    begin_sets(&c);
    if (blockIdx.x == 0) {
        for (int v = 0; v < 2; v++) clear_vote(&c.control->votes[v], c.given.n);
        begin_sizes(&c, (double *)memory);
    }
    meet_all(&c);
    if (c.given.again && !c.control->stop) solve_again(&c, memory);
    const bool solved = !c.control->stop && solve_program(&c, memory);
    meet_all(&c);
    if (solved) write_answer(&c);
    if (blockIdx.x > 0 || threadIdx.x > 0) return;
    if (!solved) c.given.result->status = TB_FAILED_PRECONDITION;
    c.given.result->seconds = 1e-9 * (double)(card_time() - c.control->began);
}

/* ---- for the host ---- */

extern "C" size_t TB_SYMBOL(tb_gpu_program_scratch)(const tb_gpu_program *program)
{
    tb_gpu_program sizes = *program;
    card c;
    sizes.work = NULL;
    return lay_out(&sizes, &c);
}

extern "C" size_t TB_SYMBOL(tb_gpu_program_memory)(const tb_gpu_program *program)
{
    const int64_t parts[] = {
        (int64_t)sizeof(factor_memory),
        (int64_t)sizeof(solve_memory),
        (int64_t)sizeof(schur_memory),
        (int64_t)sizeof(double) *
            multiply_room(program->n, program->half_bandwidth, program->blocks, 1),
    };
    int64_t most = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i] > most) most = parts[i];
    return (size_t)most;
}

extern "C" cudaError_t TB_SYMBOL(tb_gpu_start_program)(const tb_gpu_program *program,
                                                       cudaStream_t stream)
{
    card c;
    lay_out(program, &c);
    cudaError_t result = cudaFuncSetAttribute((const void *)schurpa_kernel,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              (int)program->block_memory);
    const size_t cleared = program->again ? offsetof(card_control, shape) : sizeof(card_control);
    if (result == cudaSuccess) result = cudaMemsetAsync(c.control, 0, cleared, stream);
    if (result == cudaSuccess)
        result = cudaMemsetAsync(program->result, 0, sizeof *program->result, stream);
    if (result != cudaSuccess) return result;
    void *arguments[] = {&c};
    return cudaLaunchCooperativeKernel(
        (const void *)schurpa_kernel, dim3((unsigned)program->blocks), dim3(TB_GPU_PROGRAM_THREADS),
        arguments, program->block_memory, stream);
}
