/* The sweeps of Poulsen's solvers, his controller and his measure of quality. */
#include "solve/coloured/block_rows.h"

#include "base/parallel.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = TB_CONTACT_ROWS, DOFS = TB_BODY_DOFS, CHUNK = 64 };

typedef struct solving {
    const tb_block_rows *p;
    const tb_poulsen_options *o;
    tb_edge_table table;
    tb_edge_colouring colours;
    double r;                         /* N s per m/s: R = r 1 */
    double *lambda, *next, *previous; /* contacts x 4 */
    double *w;                        /* bodies x 6: Y' lambda, factorized */
    int64_t *start;                   /* contacts + 1: first block of each row */
    int32_t *column;
    double *block;   /* blocks x 16: A, or T */
    double *epsilon; /* chunks: largest change of an impulse */
    int32_t threads;
    /* of the pass under way: contacts order[first ... first + count) or, without an order, these */
    const int32_t *order;
    int32_t first, count;
    bool in_place; /* new impulses replace the old ones at once */
} solving;

/* ---- one contact ---- */

static const double *side(const solving *s, int32_t k, int i)
{
    return s->p->y + ((int64_t)k * 2 + i) * TB_SIDE_NUMBERS;
}

static int32_t body(const solving *s, int32_t k, int i)
{
    return i == 0 ? s->p->graph.a[k] : s->p->graph.b[k];
}

/* velocity = Y_k w + b_k */
static void velocity_by_bodies(const solving *s, int32_t k, double v[ROWS])
{
    memcpy(v, s->p->b + (int64_t)ROWS * k, ROWS * sizeof *v);
    for (int i = 0; i < 2; i++) {
        const double *y = side(s, k, i), *w = s->w + (int64_t)DOFS * body(s, k, i);
        for (int r = 0; r < ROWS; r++)
            for (int d = 0; d < DOFS; d++) v[r] += y[r * DOFS + d] * w[d];
    }
}

static void row_times(const solving *s, int32_t k, const double *lambda, double v[ROWS])
{
    for (int64_t j = s->start[k]; j < s->start[k + 1]; j++) {
        const double *block = s->block + TB_BLOCK_NUMBERS * j;
        const double *x = lambda + (int64_t)ROWS * s->column[j];
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < ROWS; c++) v[r] += block[r * ROWS + c] * x[c];
    }
}

/* z = lambda - R (A lambda + b), before its projection */
static void trial(const solving *s, int32_t k, double z[ROWS])
{
    const double *own = s->lambda + (int64_t)ROWS * k;
    double v[ROWS] = {0};
    switch (s->o->storage) {
    case TB_STORAGE_T:
        for (int r = 0; r < ROWS; r++) v[r] = -s->r * s->p->b[(int64_t)ROWS * k + r];
        row_times(s, k, s->lambda, v);
        memcpy(z, v, sizeof v);
        return;
    case TB_STORAGE_DENSE:
        memcpy(v, s->p->b + (int64_t)ROWS * k, sizeof v);
        row_times(s, k, s->lambda, v);
        break;
    default: velocity_by_bodies(s, k, v); break;
    }
    for (int r = 0; r < ROWS; r++) z[r] = own[r] - s->r * v[r];
}

/* w of both bodies after a change of the contact's impulses */
static void push_bodies(const solving *s, int32_t k, const double change[ROWS])
{
    for (int i = 0; i < 2; i++) {
        const double *y = side(s, k, i);
        double *w = s->w + (int64_t)DOFS * body(s, k, i);
        for (int r = 0; r < ROWS; r++)
            for (int d = 0; d < DOFS; d++) w[d] += y[r * DOFS + d] * change[r];
    }
}

static void solve_chunk(void *context, int32_t chunk, int32_t thread)
{
    const solving *s = context;
    const bool push = s->in_place && s->o->storage == TB_STORAGE_FACTORIZED;
    const int32_t from = chunk * CHUNK;
    const int32_t to = s->count - from > CHUNK ? from + CHUNK : s->count;
    double epsilon = 0;
    (void)thread;
    for (int32_t i = from; i < to; i++) {
        const int32_t k = s->order ? s->order[s->first + i] : i;
        double z[ROWS], change[ROWS];
        double *old = s->lambda + (int64_t)ROWS * k;
        trial(s, k, z);
        tb_prox_block(TB_LAW_SPIN, ROWS, s->p->mu, 0, 0, z);
        for (int r = 0; r < ROWS; r++) {
            change[r] = z[r] - old[r];
            if (fabs(change[r]) > epsilon) epsilon = fabs(change[r]);
        }
        memcpy(s->in_place ? old : s->next + (int64_t)ROWS * k, z, sizeof z);
        if (push) push_bodies(s, k, change);
    }
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
    const solving *s = context;
    double *w = s->w + (int64_t)DOFS * m;
    (void)thread;
    memset(w, 0, DOFS * sizeof *w);
    for (int32_t j = s->table.start[m]; j < s->table.start[m + 1]; j++) {
        const int32_t k = s->table.edge[j];
        const double *y = side(s, k, s->p->graph.a[k] == m ? 0 : 1);
        const double *x = s->lambda + (int64_t)ROWS * k;
        for (int r = 0; r < ROWS; r++)
            for (int d = 0; d < DOFS; d++) w[d] += y[r * DOFS + d] * x[r];
    }
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
    double *old = s->lambda;
    s->lambda = s->next;
    s->next = old;
    sum_bodies(s);
    return epsilon;
}

/* The unsafe colour's new impulses, taken over after the pass, in order. */
static void take_unsafe(solving *s, int32_t first, int32_t end)
{
    for (int32_t i = first; i < end; i++) {
        const int32_t k = s->colours.order[i];
        double *old = s->lambda + (int64_t)ROWS * k, change[ROWS];
        const double *fresh = s->next + (int64_t)ROWS * k;
        for (int r = 0; r < ROWS; r++) change[r] = fresh[r] - old[r];
        memcpy(old, fresh, ROWS * sizeof *old);
        if (s->o->storage == TB_STORAGE_FACTORIZED) push_bodies(s, k, change);
    }
}

static double gauss_seidel(solving *s)
{
    if (s->o->colouring == TB_POULSEN_SEQUENTIAL)
        return pass(s, NULL, 0, s->p->graph.edges, true, 1);
    double largest = 0;
    const tb_edge_colouring *c = &s->colours;
    for (int32_t i = 0; i < c->colours; i++) {
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
    const int32_t a = body(s, k, 0), b = body(s, k, 1);
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
    row_columns(s, k, s->column + s->start[k]);
    for (int64_t j = s->start[k]; j < s->start[k + 1]; j++) {
        const int32_t l = s->column[j];
        double *block = s->block + TB_BLOCK_NUMBERS * j;
        memset(block, 0, TB_BLOCK_NUMBERS * sizeof *block);
        for (int e = 0; e < 4; e++) {
            if (body(s, k, e / 2) != body(s, l, e % 2)) continue;
            const double *y = side(s, k, e / 2), *x = side(s, l, e % 2);
            for (int r = 0; r < ROWS; r++)
                for (int c = 0; c < ROWS; c++)
                    for (int d = 0; d < DOFS; d++)
                        block[r * ROWS + c] += y[r * DOFS + d] * x[c * DOFS + d];
        }
        if (s->o->storage != TB_STORAGE_T) continue;
        for (int r = 0; r < TB_BLOCK_NUMBERS; r++) block[r] *= -s->r;
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
    s->start = TB_ARENA_ARRAY(arena, int64_t, (size_t)s->p->graph.edges + 1);
    s->column = TB_ARENA_ARRAY(arena, int32_t, blocks);
    s->block = TB_ARENA_ARRAY(arena, double, TB_BLOCK_NUMBERS *blocks);
    if (!s->start || !s->column || !s->block)
        return tb_fail_memory(error, (size_t)result->matrix_bytes, name);
    s->start[0] = 0;
    for (int32_t k = 0; k < s->p->graph.edges; k++)
        s->start[k + 1] = s->start[k] + row_columns(s, k, NULL);
    tb_parallel_for(s->p->graph.edges, CHUNK, s->threads, fill_row, s);
    return TB_OK;
}

/* R times nu; T by its closed form (Poulsen 3.6). */
static void scale_r(solving *s)
{
    const double nu = s->o->nu;
    s->r *= nu;
    if (s->o->storage != TB_STORAGE_T) return;
    for (int32_t k = 0; k < s->p->graph.edges; k++)
        for (int64_t j = s->start[k]; j < s->start[k + 1]; j++) {
            double *block = s->block + TB_BLOCK_NUMBERS * j;
            for (int i = 0; i < TB_BLOCK_NUMBERS; i++) block[i] *= nu;
            for (int r = 0; r < ROWS && s->column[j] == k; r++) block[r * ROWS + r] += 1 - nu;
        }
}

/* ---- the whole ---- */

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* gamma = 1/2 || prox(lambda - 100 (A lambda + b)) - lambda ||^2, by bodies whatever the storage. */
static double quality(solving *s)
{
    double sum = 0;
    for (int32_t m = 0; m < s->p->graph.bodies; m++) sum_body(s, m, 0);
    for (int32_t k = 0; k < s->p->graph.edges; k++) {
        const double *own = s->lambda + (int64_t)ROWS * k;
        double v[ROWS], z[ROWS];
        velocity_by_bodies(s, k, v);
        for (int r = 0; r < ROWS; r++) z[r] = own[r] - TB_POULSEN_R * v[r];
        tb_prox_block(TB_LAW_SPIN, ROWS, s->p->mu, 0, 0, z);
        for (int r = 0; r < ROWS; r++) sum += (z[r] - own[r]) * (z[r] - own[r]);
    }
    return sum / 2;
}

static tb_status colour(solving *s, tb_arena *arena, tb_error *error)
{
    tb_status status = TB_OK;
    const tb_edge_graph *g = &s->p->graph;
    if (s->o->jacobi || s->o->colouring == TB_POULSEN_SEQUENTIAL) return TB_OK;
    if (s->o->colouring == TB_POULSEN_BALANCED)
        return tb_edge_colour_balanced(g, &s->table, s->o->colours, arena, &s->colours, error);
    status = tb_edge_colour_greedy(g, &s->table, arena, &s->colours);
    if (status == TB_OK && s->o->colouring == TB_POULSEN_RELAXED)
        status = tb_edge_merge_unsafe(g->edges, (int32_t)(TB_EDGE_SMALL_SHARE * g->edges), arena,
                                      &s->colours);
    return status == TB_OK ? TB_OK : tb_fail_memory(error, 0, "a colouring");
}

/* Iterations with his controller: the first growth of epsilon brings the impulses before it back and
 * scales R; after five such the solve ends. */
static void iterate(solving *s, tb_poulsen_result *result)
{
    const size_t bytes = (size_t)s->p->graph.edges * ROWS * sizeof(double);
    double last = INFINITY;
    for (int32_t i = 0; i < s->o->iterations; i++) {
        memcpy(s->previous, s->lambda, bytes);
        const double epsilon = s->o->jacobi ? jacobi(s) : gauss_seidel(s);
        result->iterations = i + 1;
        result->epsilon = epsilon;
        if (epsilon > last && s->o->tries > 0) {
            memcpy(s->lambda, s->previous, bytes);
            sum_bodies(s);
            if (result->reductions == s->o->tries) return;
            scale_r(s);
            result->reductions++;
            last = INFINITY;
            continue;
        }
        last = epsilon;
        if (s->o->gamma > 0 && quality(s) <= s->o->gamma) return;
    }
}

tb_status tb_block_rows_solve(const tb_block_rows *rows, const tb_poulsen_options *options,
                              tb_arena *arena, double *lambda, tb_poulsen_result *result,
                              tb_error *error)
{
    const size_t numbers = (size_t)rows->graph.edges * ROWS;
    solving s = {
        .p = rows, .o = options, .r = options->r, .threads = tb_parallel_threads(options->threads)};
    memset(result, 0, sizeof *result);
    const double start = seconds_now();
    tb_status status = tb_edge_table_build(&rows->graph, arena, &s.table);
    s.lambda = TB_ARENA_ZEROED(arena, double, numbers);
    s.next = TB_ARENA_ZEROED(arena, double, numbers);
    s.previous = TB_ARENA_ZEROED(arena, double, numbers);
    s.w = TB_ARENA_ZEROED(arena, double, (size_t)rows->graph.bodies *DOFS);
    s.epsilon = TB_ARENA_ARRAY(arena, double, (size_t)rows->graph.edges / CHUNK + 1);
    if (status != TB_OK || !s.lambda || !s.next || !s.previous || !s.w || !s.epsilon)
        return tb_fail_memory(error, 0, "impulses");
    status = colour(&s, arena, error);
    if (status == TB_OK) status = make_rows(&s, arena, result, error);
    if (status != TB_OK) return status;
    result->colours = s.colours.colours;
    result->setup_seconds = seconds_now() - start;
    const double begun = seconds_now();
    iterate(&s, result);
    result->seconds = seconds_now() - begun;
    result->gamma = quality(&s);
    result->r = s.r;
    memcpy(lambda, s.lambda, numbers * sizeof *lambda);
    return TB_OK;
}
