/* The processor's loops of the stored iterations, in the order in which a card's kernels sum.
 * Compiled twice: sweeps_once.c has them in double, sweeps_f32_once.c in float. */
#ifndef TB_STORED_SWEEPS_H
#define TB_STORED_SWEEPS_H

#include "solve/stored/stored.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/parallel.h"
#include "contact/prox.h"

/* A run in working precision. */
typedef struct stored_run {
    int32_t contacts;
    const tb_real *t; /* by columns, 3 contacts numbers each; NULL for sparse forms */
    const tb_real *d, *mu;
    const int32_t *row_start, *column;
    const tb_real *value;         /* of the sparse forms */
    tb_real *lambda, *next, *sum; /* 3 numbers a contact */
    tb_stored_form form;
    int32_t group, threads, iterations, check_period;
    double relative, absolute;
    uint32_t left_out; /* tb_prox_part */
} stored_run;

/* Rows that are summed together while their sums stay in the first cache. */
enum { STRIP = 512 };

/* ---- products ---- */

/* sum(from ... to) += T(from ... to, first ... first + columns) x. Each row adds its columns in
 * order. */
static void add_columns(const stored_run *run, int32_t from, int32_t to, int32_t first,
                        int32_t columns, const tb_real *x, tb_real *TB_RESTRICT sum)
{
    const int64_t pitch = 3 * (int64_t)run->contacts;
    for (int32_t strip = from; strip < to; strip += STRIP) {
        const int32_t end = strip + STRIP < to ? strip + STRIP : to;
        for (int32_t c = 0; c < columns; c++) {
            const tb_real *t = run->t + (first + c) * pitch, factor = x[c];
            for (int32_t i = strip; i < end; i++) sum[i] += t[i] * factor;
        }
    }
}

/* x += block y, a block by rows */
static void add_block(const tb_real *block, const tb_real *y, tb_real *x)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) x[i] += block[3 * i + j] * y[j];
}

static bool moves_on(const stored_run *run, tb_real before, tb_real after)
{
    const double change = (double)tb_abs(after - before);
    return !(change <= run->absolute + run->relative * (double)tb_abs(before));
}

/* ---- Jacobi ---- */

static void jacobi_rows(const stored_run *run, int32_t from, int32_t to)
{
    for (int32_t i = from; i < to; i++) run->next[i] = 0;
    add_columns(run, from, to, 0, 3 * run->contacts, run->lambda, run->next);
    for (int32_t i = from; i < to; i++) run->next[i] += run->d[i];
    for (int32_t i = from; i < to; i += 3) tb_prox_coulomb(run->next + i, run->mu[i / 3]);
}

static void jacobi_strip(void *context, int32_t i, int32_t thread)
{
    const stored_run *run = context;
    (void)thread;
    const int32_t rows = STRIP / 3 * 3, n = 3 * run->contacts, from = i * rows;
    jacobi_rows(run, from, from + rows < n ? from + rows : n);
}

static bool jacobi(stored_run *run)
{
    const int32_t n = 3 * run->contacts, rows = STRIP / 3 * 3;
    const int32_t threads = run->form == TB_STORED_CORES ? run->threads : 1;
    tb_parallel_for((n + rows - 1) / rows, 1, threads, jacobi_strip, run);
    bool moved = false;
    for (int32_t i = 0; i < n; i++) moved = moved || moves_on(run, run->lambda[i], run->next[i]);
    tb_real *old = run->lambda;
    run->lambda = run->next;
    run->next = old;
    return moved;
}

/* ---- Gauss-Seidel with diagonal blocks, and its relaxed form ---- */

static bool set_impulse(stored_run *run, int32_t row, tb_real after)
{
    const bool moved = moves_on(run, run->lambda[row], after);
    run->lambda[row] = after;
    return moved;
}

/* Contact after contact of the rows [first, end): the normal, then both tangents together; less the parts
 * that are left out. Where no impulse is stored, moved tells that there was one, which keeps the compiler
 * from dropping the rest with it. */
static bool solve_diagonal(stored_run *run, int32_t first, int32_t end)
{
    const uint32_t out = run->left_out;
    tb_real *sum = run->sum;
    bool moved = false;
    for (int32_t j = first; j < end; j += 3) {
        tb_real normal = run->d[j] + sum[j];
        if (!(out & TB_PROX_NORMAL)) normal = tb_prox_unilateral(normal);
        if (!(out & TB_PROX_WRITES)) sum[j] = 0;
        if (!(out & TB_PROX_PROPAGATION)) add_columns(run, first, end, j, 1, &normal, sum);
        tb_real x[2] = {run->d[j + 1] + sum[j + 1], run->d[j + 2] + sum[j + 2]};
        if (!(out & TB_PROX_TANGENTIAL)) tb_prox_disk(x, run->mu[j / 3] * normal);
        if (!(out & TB_PROX_WRITES)) sum[j + 1] = sum[j + 2] = 0;
        if (!(out & TB_PROX_PROPAGATION)) add_columns(run, first, end, j + 1, 2, x, sum);
        if (out & TB_PROX_WRITES) {
            moved = moved || normal + x[0] + x[1] != 0;
            continue;
        }
        moved = set_impulse(run, j, normal) || moved;
        moved = set_impulse(run, j + 1, x[0]) || moved;
        moved = set_impulse(run, j + 2, x[1]) || moved;
    }
    return moved;
}

static bool full_sweep(stored_run *run)
{
    const int32_t n = 3 * run->contacts, side = 3 * run->group;
    bool moved = false;
    for (int32_t first = 0; first < n; first += side) {
        const int32_t end = first + side < n ? first + side : n;
        moved = solve_diagonal(run, first, end) || moved;
        if (run->left_out & TB_PROX_STEP_B) continue;
        add_columns(run, 0, first, first, end - first, run->lambda + first, run->sum);
        add_columns(run, end, n, first, end - first, run->lambda + first, run->sum);
    }
    return moved;
}

static bool project_contact(stored_run *run, int32_t contact)
{
    tb_real *sum = run->sum + 3 * (int64_t)contact, x[3];
    bool moved = false;
    for (int k = 0; k < 3; k++) {
        x[k] = sum[k] + run->d[3 * (int64_t)contact + k];
        sum[k] = 0;
    }
    tb_prox_coulomb(x, run->mu[contact]);
    for (int k = 0; k < 3; k++) moved = set_impulse(run, 3 * contact + k, x[k]) || moved;
    return moved;
}

static bool relaxed_sweep(stored_run *run)
{
    const int32_t n = 3 * run->contacts;
    bool moved = false;
    for (int32_t first = 0; first < run->contacts; first += run->group) {
        const int32_t end = first + run->group < run->contacts ? first + run->group : run->contacts;
        for (int32_t c = first; c < end; c++) moved = project_contact(run, c) || moved;
        add_columns(run, 0, n, 3 * first, 3 * (end - first), run->lambda + 3 * (int64_t)first,
                    run->sum);
    }
    return moved;
}

/* The upper part of T times the start. Relaxed groups use whole diagonal blocks; the exact
 * iteration uses the diagonal and the entry (T2, T1) of each contact, since its tangents are
 * projected together (Nützi, figure 5.3b). */
static void start_sums(stored_run *run, bool relaxed)
{
    const int32_t n = 3 * run->contacts;
    for (int32_t i = 0; i < n; i++) {
        const int32_t group = i / 3 / run->group * run->group * 3;
        const int32_t from = relaxed ? group : i - (i % 3 == 2);
        run->sum[i] = 0;
        add_columns(run, i, i + 1, from, n - from, run->lambda + from, run->sum);
    }
}

/* ---- block CSR ---- */

static bool sparse_relaxed_sweep(stored_run *run)
{
    bool moved = false;
    for (int32_t first = 0; first < run->contacts; first += run->group) {
        const int32_t end = first + run->group < run->contacts ? first + run->group : run->contacts;
        for (int32_t c = first; c < end; c++) moved = project_contact(run, c) || moved;
        for (int32_t r = 0; r < run->contacts; r++)
            for (int32_t b = run->row_start[r]; b < run->row_start[r + 1]; b++)
                if (run->column[b] >= first && run->column[b] < end)
                    add_block(run->value + 9 * (int64_t)b,
                              run->lambda + 3 * (int64_t)run->column[b], run->sum + 3 * (int64_t)r);
    }
    return moved;
}

static void start_sparse_sums(stored_run *run)
{
    memset(run->sum, 0, 3 * (size_t)run->contacts * sizeof *run->sum);
    for (int32_t r = 0; r < run->contacts; r++)
        for (int32_t b = run->row_start[r]; b < run->row_start[r + 1]; b++)
            if (run->column[b] >= r / run->group * run->group)
                add_block(run->value + 9 * (int64_t)b, run->lambda + 3 * (int64_t)run->column[b],
                          run->sum + 3 * (int64_t)r);
}

/* One contact of the sparse exact iteration: blocks off the diagonal from left to right, then
 * the diagonal block. The tangents use the new normal and each other's last values. */
static bool sparse_contact(stored_run *run, int32_t contact)
{
    tb_real x[3] = {0, 0, 0}, own[3], y[3];
    const tb_real *diagonal = NULL, *d = run->d + 3 * (int64_t)contact;
    for (int32_t b = run->row_start[contact]; b < run->row_start[contact + 1]; b++) {
        const tb_real *block = run->value + 9 * (int64_t)b;
        if (run->column[b] == contact)
            diagonal = block;
        else
            add_block(block, run->lambda + 3 * (int64_t)run->column[b], x);
    }
    for (int k = 0; k < 3; k++) y[k] = own[k] = run->lambda[3 * (int64_t)contact + k];
    for (int i = 0; i < 3; i++) {
        tb_real product = 0;
        for (int j = 0; j < 3 && diagonal; j++) product += diagonal[3 * i + j] * y[j];
        own[i] = x[i] + product + d[i];
        if (i == 0) own[0] = y[0] = tb_prox_unilateral(own[0]);
    }
    tb_prox_disk(own + 1, run->mu[contact] * own[0]);
    bool moved = false;
    for (int k = 0; k < 3; k++) moved = set_impulse(run, 3 * contact + k, own[k]) || moved;
    return moved;
}

static bool sparse_full_sweep(stored_run *run)
{
    bool moved = false;
    for (int32_t c = 0; c < run->contacts; c++) moved = sparse_contact(run, c) || moved;
    return moved;
}

/* ---- a run ---- */

static bool sweep(stored_run *run)
{
    switch (run->form) {
    case TB_STORED_FULL:
    case TB_STORED_FULL_IN_ONE: return full_sweep(run);
    case TB_STORED_RELAXED: return relaxed_sweep(run);
    case TB_STORED_SPARSE_FULL: return sparse_full_sweep(run);
    case TB_STORED_SPARSE_RELAXED: return sparse_relaxed_sweep(run);
    default: return jacobi(run);
    }
}

/* Returns the iterations made. */
static int32_t iterate(stored_run *run, bool *converged)
{
    *converged = false;
    if (run->form == TB_STORED_SPARSE_RELAXED)
        start_sparse_sums(run);
    else if (run->form == TB_STORED_FULL || run->form == TB_STORED_FULL_IN_ONE ||
             run->form == TB_STORED_RELAXED)
        start_sums(run, run->form == TB_STORED_RELAXED);
    for (int32_t made = 1; made <= run->iterations; made++) {
        const bool moved = sweep(run);
        if (run->check_period > 0 && made % run->check_period == 0 && !moved) {
            *converged = true;
            return made;
        }
    }
    return run->iterations;
}

static double clock_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static tb_real *copy_of(const double *from, size_t count)
{
    tb_real *to = malloc((count + 1) * sizeof *to);
    for (size_t i = 0; i < count && to; i++) to[i] = (tb_real)from[i];
    return to;
}

/* T by columns from its blocks of 3 x 3. */
static tb_real *expanded(const tb_prox_system *system)
{
    const int64_t n = 3 * (int64_t)system->contacts;
    tb_real *t = calloc((size_t)(n * n), sizeof *t);
    for (int32_t r = 0; r < system->contacts && t; r++)
        for (int32_t b = system->row_start[r]; b < system->row_start[r + 1]; b++)
            for (int e = 0; e < 9; e++)
                t[(3 * (int64_t)system->column[b] + e % 3) * n + 3 * (int64_t)r + e / 3] =
                    (tb_real)system->value[9 * (int64_t)b + e];
    return t;
}

#define stored_solve TB_SYMBOL(tb_stored_solve)
tb_status stored_solve(const tb_prox_system *system, const tb_stored_variant *variant,
                       const tb_prox_options *options, double *lambda, tb_prox_result *result)
{
    const size_t n = 3 * (size_t)system->contacts;
    const bool sparse = tb_stored_is_sparse(variant->form);
    tb_real *t = sparse ? NULL : expanded(system);
    tb_real *value = sparse ? copy_of(system->value, 9 * (size_t)system->blocks) : NULL;
    tb_real *d = copy_of(system->d, n), *mu = copy_of(system->mu, n / 3);
    tb_real *start = copy_of(lambda, n), *next = copy_of(lambda, n), *sum = copy_of(lambda, n);
    tb_status status = TB_RESOURCE_EXHAUSTED;
    if ((t || value) && d && mu && start && next && sum) {
        stored_run run = {.contacts = system->contacts,
                          .t = t,
                          .d = d,
                          .mu = mu,
                          .row_start = system->row_start,
                          .column = system->column,
                          .value = value,
                          .lambda = start,
                          .next = next,
                          .sum = sum,
                          .form = variant->form,
                          .group =
                              variant->group < system->contacts ? variant->group : system->contacts,
                          .threads = options->threads,
                          .iterations = options->iterations,
                          .check_period = options->check_period,
                          .relative = options->relative,
                          .absolute = options->absolute,
                          .left_out = options->left_out};
        const double began = clock_now();
        result->iterations = iterate(&run, &result->converged);
        result->seconds = clock_now() - began;
        for (size_t i = 0; i < n; i++) lambda[i] = (double)run.lambda[i];
        status = TB_OK;
    }
    tb_real *all[] = {t, value, d, mu, start, next, sum};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
    return status;
}

#endif
