/* The sweeps of Poulsen's solvers, his controller and his measure of quality. */
#include "solve/coloured/block_rows_sweep.h"
#include "solve/coloured/csp/csp.h"

#include "backend/backend.h"
#include "base/parallel.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = TB_CONTACT_ROWS, DOFS = TB_BODY_DOFS, CHUNK = 64 };

typedef struct solving {
    tb_row_sweep z;
    const tb_block_rows *p;
    const tb_poulsen_options *o;
    tb_edge_table table;
    tb_edge_colouring colours;
    double *previous; /* contacts x 4 */
    double *epsilon;  /* chunks: largest change of an impulse */
    int64_t blocks;   /* of A or T */
    int32_t threads;
    /* of the pass under way: contacts order[first ... first + count) or, without an order, these */
    const int32_t *order;
    int32_t first, count;
    bool in_place; /* new impulses replace the old ones at once */
} solving;

static void solve_chunk(void *context, int32_t chunk, int32_t thread)
{
    const solving *s = context;
    const int32_t from = chunk * CHUNK;
    const int32_t to = s->count - from > CHUNK ? from + CHUNK : s->count;
    double epsilon = 0;
    (void)thread;
    for (int32_t i = from; i < to; i++)
        epsilon = tb_row_solve(&s->z, s->order ? s->order[s->first + i] : i, s->in_place, epsilon);
    s->epsilon[chunk] = epsilon;
}

/* ---- passes ---- */

/* Solves the contacts of a pass; returns the largest change. */
static double pass(solving *s, const int32_t *order, int32_t first, int32_t count, bool in_place,
                   int32_t threads)
{
    const int32_t chunks = (count + CHUNK - 1) / CHUNK;
    double largest = 0;
    s->order = order;
    s->first = first;
    s->count = count;
    s->in_place = in_place;
    tb_parallel_for(chunks, 1, threads, solve_chunk, s);
    for (int32_t i = 0; i < chunks; i++)
        if (s->epsilon[i] > largest) largest = s->epsilon[i];
    return largest;
}

static void sum_body(void *context, int32_t m, int32_t thread)
{
    (void)thread;
    tb_row_sum_body(&((const solving *)context)->z, m);
}

/* w = Y' lambda afresh */
static void sum_bodies(solving *s)
{
    if (s->o->storage != TB_STORAGE_FACTORIZED) return;
    tb_parallel_for(s->p->graph.bodies, 256, s->threads, sum_body, s);
}

static double jacobi(solving *s)
{
    const double epsilon = pass(s, NULL, 0, s->p->graph.edges, false, s->threads);
    double *old = s->z.lambda;
    s->z.lambda = s->z.next;
    s->z.next = old;
    sum_bodies(s);
    return epsilon;
}

/* The unsafe colour's new impulses, taken over after the pass, in order. */
static void take_unsafe(solving *s, int32_t first, int32_t end)
{
    for (int32_t i = first; i < end; i++) {
        const int32_t k = s->colours.order[i];
        double *old = s->z.lambda + (int64_t)ROWS * k, change[ROWS];
        const double *fresh = s->z.next + (int64_t)ROWS * k;
        for (int r = 0; r < ROWS; r++) change[r] = fresh[r] - old[r];
        memcpy(old, fresh, ROWS * sizeof *old);
        if (s->o->storage != TB_STORAGE_FACTORIZED) continue;
        tb_row_push(&s->z, k, 0, change);
        tb_row_push(&s->z, k, 1, change);
    }
}

static double gauss_seidel(solving *s)
{
    if (s->o->colouring == TB_POULSEN_SEQUENTIAL)
        return pass(s, NULL, 0, s->p->graph.edges, true, 1);
    double largest = 0;
    const tb_edge_colouring *c = &s->colours;
    for (int32_t turn = 0; turn < c->colours; turn++) {
        const int32_t i = s->o->unsafe_first ? (turn + c->colours - c->unsafe) % c->colours : turn;
        const bool safe = i < c->colours - c->unsafe;
        const int32_t count = c->start[i + 1] - c->start[i];
        const double epsilon = pass(s, c->order, c->start[i], count, safe, s->threads);
        if (!safe) take_unsafe(s, c->start[i], c->start[i + 1]);
        if (epsilon > largest) largest = epsilon;
    }
    return largest;
}

/* ---- block rows ---- */

/* Columns of row k, ascending: contacts of both bodies, each once. NULL: only their number. */
static int32_t row_columns(const solving *s, int32_t k, int32_t *list)
{
    const tb_edge_table *t = &s->table;
    const int32_t a = tb_row_body(&s->z, k, 0), b = tb_row_body(&s->z, k, 1);
    int32_t i = t->start[a], j = t->start[b], n = 0;
    while (i < t->start[a + 1] || j < t->start[b + 1]) {
        const int32_t p = i < t->start[a + 1] ? t->edge[i] : INT32_MAX;
        const int32_t q = j < t->start[b + 1] ? t->edge[j] : INT32_MAX;
        if (list) list[n] = p < q ? p : q;
        n++;
        i += p <= q;
        j += q <= p;
    }
    return n;
}

static void fill_row(void *context, int32_t k, int32_t thread)
{
    const solving *s = context;
    (void)thread;
    const tb_row_sweep *z = &s->z;
    row_columns(s, k, (int32_t *)(uintptr_t)z->column + z->start[k]);
    for (int64_t j = z->start[k]; j < z->start[k + 1]; j++) {
        const int32_t l = z->column[j];
        double *block = z->block + TB_BLOCK_NUMBERS * j;
        memset(block, 0, TB_BLOCK_NUMBERS * sizeof *block);
        for (int e = 0; e < 4; e++) {
            if (tb_row_body(z, k, e / 2) != tb_row_body(z, l, e % 2)) continue;
            const double *y = tb_row_side(z, k, e / 2), *x = tb_row_side(z, l, e % 2);
            for (int r = 0; r < ROWS; r++)
                for (int c = 0; c < ROWS; c++)
                    for (int d = 0; d < DOFS; d++)
                        block[r * ROWS + c] += y[r * DOFS + d] * x[c * DOFS + d];
        }
        if (s->o->storage != TB_STORAGE_T) continue;
        for (int r = 0; r < TB_BLOCK_NUMBERS; r++) block[r] *= -z->r;
        for (int r = 0; r < ROWS && l == k; r++) block[r * ROWS + r] += 1;
    }
}

static tb_status make_rows(solving *s, tb_arena *arena, tb_poulsen_result *result, tb_error *error)
{
    if (s->o->storage == TB_STORAGE_FACTORIZED) return TB_OK;
    const int64_t blocks = tb_edge_blocks(&s->p->graph, &s->table);
    const char *name = s->o->storage == TB_STORAGE_T ? "T" : "A";
    result->matrix_bytes = (uint64_t)blocks * TB_BLOCK_NUMBERS * sizeof(double);
    const uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t limit = s->o->memory_limit > 0 ? s->o->memory_limit : machine;
    if (result->matrix_bytes > limit)
        return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "storage",
                             "%s takes %llu bytes, and %llu are allowed", name,
                             (unsigned long long)result->matrix_bytes, (unsigned long long)limit);
    int64_t *start = TB_ARENA_ARRAY(arena, int64_t, (size_t)s->p->graph.edges + 1);
    s->z.column = TB_ARENA_ARRAY(arena, int32_t, blocks);
    s->z.block = TB_ARENA_ARRAY(arena, double, TB_BLOCK_NUMBERS *blocks);
    if (!start || !s->z.column || !s->z.block)
        return tb_fail_memory(error, (size_t)result->matrix_bytes, name);
    start[0] = 0;
    for (int32_t k = 0; k < s->p->graph.edges; k++)
        start[k + 1] = start[k] + row_columns(s, k, NULL);
    s->z.start = start;
    s->blocks = blocks;
    tb_parallel_for(s->p->graph.edges, CHUNK, s->threads, fill_row, s);
    return TB_OK;
}

/* R times nu */
static void scale_r(solving *s)
{
    s->z.r *= s->o->nu;
    if (s->o->storage != TB_STORAGE_T) return;
    for (int32_t k = 0; k < s->p->graph.edges; k++) tb_row_rescale(&s->z, k, s->o->nu);
}

/* ---- the whole ---- */

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* gamma = 1/2 || prox(lambda - 100 (A lambda + b)) - lambda ||^2, by bodies in every storage
 * form. */
double tb_row_quality(const tb_row_sweep *s)
{
    double sum = 0;
    for (int32_t m = 0; m < s->bodies; m++) tb_row_sum_body(s, m);
    for (int32_t k = 0; k < s->contacts; k++) {
        const double *own = s->lambda + (int64_t)ROWS * k;
        double v[ROWS], z[ROWS];
        tb_row_velocity(s, k, v);
        for (int r = 0; r < ROWS; r++) z[r] = own[r] - TB_POULSEN_R * v[r];
        tb_prox_block(TB_LAW_SPIN, ROWS, s->mu, 0, 0, z);
        for (int r = 0; r < ROWS; r++) sum += (z[r] - own[r]) * (z[r] - own[r]);
    }
    return sum / 2;
}

static tb_status colour(solving *s, tb_arena *arena, tb_error *error)
{
    tb_status status = TB_OK;
    const tb_edge_graph *g = &s->p->graph;
    if (s->o->jacobi || s->o->colouring == TB_POULSEN_SEQUENTIAL ||
        s->o->colouring == TB_POULSEN_NAIVE)
        return TB_OK;
    if (s->o->colouring == TB_POULSEN_BALANCED)
        return tb_edge_colour_balanced(g, &s->table, s->o->colours, arena, &s->colours, error);
    status = tb_edge_colour_greedy(g, &s->table, arena, &s->colours);
    if (status == TB_OK && s->o->colouring == TB_POULSEN_RELAXED)
        status = tb_edge_merge_unsafe(g->edges, (int32_t)(TB_EDGE_SMALL_SHARE * g->edges), arena,
                                      &s->colours);
    return status == TB_OK ? TB_OK : tb_fail_memory(error, 0, "a colouring");
}

/* Iterations with his controller: the first growth of epsilon brings the impulses before it back
 * and scales R; after five such the solve ends. */
static void iterate(solving *s, tb_poulsen_result *result)
{
    const size_t bytes = (size_t)s->p->graph.edges * ROWS * sizeof(double);
    double last = INFINITY;
    for (int32_t i = 0; i < s->o->iterations; i++) {
        memcpy(s->previous, s->z.lambda, bytes);
        const double epsilon = s->o->jacobi ? jacobi(s) : gauss_seidel(s);
        result->iterations = i + 1;
        result->epsilon = epsilon;
        if (epsilon > last && s->o->tries > 0) {
            memcpy(s->z.lambda, s->previous, bytes);
            sum_bodies(s);
            if (result->reductions == s->o->tries) return;
            scale_r(s);
            result->reductions++;
            last = INFINITY;
            continue;
        }
        last = epsilon;
        if (s->o->gamma > 0 && tb_row_quality(&s->z) <= s->o->gamma) return;
    }
}

/* ---- on a GPU ---- */

/* The bodies of the unsafe colour and the contacts of each there, in order. */
static tb_status list_unsafe(const solving *s, tb_arena *arena, tb_row_run *run, tb_error *error)
{
    const tb_edge_colouring *c = &s->colours;
    if (run->unsafe == 0 || s->o->storage != TB_STORAGE_FACTORIZED) return TB_OK;
    const int32_t first = c->start[c->colours - 1], count = c->start[c->colours] - first;
    int32_t *place = TB_ARENA_ARRAY(arena, int32_t, s->p->graph.bodies);
    int32_t *list = TB_ARENA_ARRAY(arena, int32_t, 2 * (int64_t)count);
    int32_t *start = TB_ARENA_ZEROED(arena, int32_t, 2 * (int64_t)count + 3);
    int32_t *edge = TB_ARENA_ARRAY(arena, int32_t, 2 * (int64_t)count);
    if (!place || !list || !start || !edge) return tb_fail_memory(error, 0, "the unsafe colour");
    for (int32_t m = 0; m < s->p->graph.bodies; m++) place[m] = -1;
    /* counts are two entries behind, so that filling leaves each body's first index */
    for (int32_t i = 0; i < 2 * count; i++) {
        const int32_t m = tb_row_body(&s->z, c->order[first + i / 2], i % 2);
        if (place[m] < 0) {
            place[m] = run->unsafe_bodies;
            list[run->unsafe_bodies++] = m;
        }
        start[place[m] + 2]++;
    }
    for (int32_t i = 0; i < run->unsafe_bodies; i++) start[i + 2] += start[i + 1];
    for (int32_t i = 0; i < 2 * count; i++) {
        const int32_t k = c->order[first + i / 2];
        edge[start[place[tb_row_body(&s->z, k, i % 2)] + 1]++] = k;
    }
    run->unsafe_body = list;
    run->unsafe_start = start;
    run->unsafe_edge = edge;
    return TB_OK;
}

static tb_status iterate_on_gpu(solving *s, tb_arena *arena, tb_poulsen_result *result,
                                tb_error *error)
{
    const tb_backend *backend = NULL;
    tb_row_outcome outcome = {0};
    tb_status status = tb_backend_find(TB_BACKEND_GPU, &backend, error);
    if (status == TB_OK && !backend->rows_iterate)
        status = tb_fail_field(error, TB_UNSUPPORTED, "backend",
                               "backend '%s' has no sweeps of block rows", backend->name);
    if (status != TB_OK) return status;
    tb_row_run run = {.sweep = s->z,
                      .blocks = s->blocks,
                      .colours = s->colours.colours,
                      .unsafe = s->colours.unsafe,
                      .colour_start = s->colours.start,
                      .order = s->colours.order,
                      .iterations = s->o->iterations,
                      .tries = s->o->tries,
                      .nu = s->o->nu};
    status = list_unsafe(s, arena, &run, error);
    if (status == TB_OK) status = backend->rows_iterate(s->o->device, &run, &outcome, error);
    if (status != TB_OK) return status;
    result->iterations = outcome.iterations;
    result->reductions = outcome.reductions;
    result->epsilon = outcome.epsilon;
    result->seconds = outcome.seconds;
    s->z.r = outcome.r;
    return TB_OK;
}

static tb_status check_gpu(const tb_poulsen_options *o, tb_error *error)
{
    if (o->backend != TB_BACKEND_GPU) return TB_OK;
    if (!o->jacobi && o->colouring == TB_POULSEN_SEQUENTIAL)
        return tb_fail_field(error, TB_UNSUPPORTED, "colouring",
                             "the sequential order has nothing for a GPU to do at once");
    if (o->unsafe_first)
        return tb_fail_field(error, TB_UNSUPPORTED, "unsafe_first",
                             "a GPU solves the unsafe colour last");
    if (o->gamma > 0)
        return tb_fail_field(error, TB_UNSUPPORTED, "gamma",
                             "a GPU makes all iterations: it does not stop at a gamma");
    return TB_OK;
}

tb_status tb_block_rows_solve(const tb_block_rows *rows, const tb_poulsen_options *options,
                              tb_arena *arena, double *lambda, tb_poulsen_result *result,
                              tb_error *error)
{
    const size_t numbers = (size_t)rows->graph.edges * ROWS;
    solving s = {.p = rows, .o = options, .threads = tb_parallel_threads(options->threads)};
    memset(result, 0, sizeof *result);
    const double start = seconds_now();
    tb_status status = check_gpu(options, error);
    if (status == TB_OK) status = tb_csp_check(options, error);
    if (status == TB_OK) status = tb_edge_table_build(&rows->graph, arena, &s.table);
    s.z = (tb_row_sweep){.contacts = rows->graph.edges,
                         .bodies = rows->graph.bodies,
                         .a = rows->graph.a,
                         .b = rows->graph.b,
                         .y = rows->y,
                         .free = rows->b,
                         .mu = rows->mu,
                         .r = options->r,
                         .storage = (int32_t)options->storage,
                         .lambda = TB_ARENA_ZEROED(arena, double, numbers),
                         .next = TB_ARENA_ZEROED(arena, double, numbers),
                         .w = TB_ARENA_ZEROED(arena, double, (size_t)rows->graph.bodies *DOFS),
                         .of_body = s.table.start,
                         .edge = s.table.edge};
    s.previous = TB_ARENA_ZEROED(arena, double, numbers);
    s.epsilon = TB_ARENA_ARRAY(arena, double, (size_t)rows->graph.edges / CHUNK + 1);
    if (status == TB_UNSUPPORTED) return status;
    if (status != TB_OK || !s.z.lambda || !s.z.next || !s.previous || !s.z.w || !s.epsilon)
        return tb_fail_memory(error, 0, "impulses");
    status = colour(&s, arena, error);
    if (status == TB_OK) status = make_rows(&s, arena, result, error);
    if (status != TB_OK) return status;
    result->colours = s.colours.colours;
    result->setup_seconds = seconds_now() - start;
    const double begun = seconds_now();
    if (options->backend == TB_BACKEND_GPU) {
        status = iterate_on_gpu(&s, arena, result, error);
        if (status != TB_OK) return status;
    } else if (options->processes != TB_POULSEN_LOOPS) {
        status = tb_csp_iterate(&s.z, &s.colours, options, s.threads, arena, result, error);
        if (status != TB_OK) return status;
        result->setup_seconds += seconds_now() - begun - result->seconds;
    } else {
        iterate(&s, result);
        result->seconds = seconds_now() - begun;
    }
    result->gamma = tb_row_quality(&s.z);
    result->r = s.z.r;
    memcpy(lambda, s.z.lambda, numbers * sizeof *lambda);
    return TB_OK;
}
