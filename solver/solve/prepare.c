/* Setting a sweep up: diagonal blocks, r-factors, storage forms. */
#include "solve/sweep_internal.h"

#include <string.h>

/* Coupling of a contact's rows above which it pays to solve it as a block. Below, a projected step
 * is as good and half the price: a sphere's own block is diagonal. */
static const tb_real COUPLING_THAT_PAYS = TB_R(0.05);

TB_STATIC tb_sweep_shape shape_of(const tb_problem *problem, const tb_block *block)
{
    if (!problem->values || block->law != TB_LAW_COULOMB) return TB_SHAPE_OF_ANY;
    const tb_segment *segment = problem->segments + block->segment;
    if (block->segments == 1 && segment[0].count == 6) return TB_SHAPE_OF_ONE;
    if (block->segments == 2 && segment[0].count == 6 && segment[1].count == 6)
        return TB_SHAPE_OF_TWO;
    return TB_SHAPE_OF_ANY;
}

/* diagonal block of a contact between free bodies, symmetric */
TB_STATIC void local_of_fixed(const tb_real *y, int width, tb_real g[9])
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j <= i; j++) {
            tb_real sum = 0;
            for (int k = 0; k < width; k++) sum += y[i * width + k] * y[j * width + k];
            g[3 * i + j] = g[3 * j + i] = sum;
        }
}

/* largest off-diagonal number of a 3x3 block against its diagonal, squared;
 * and its tangents' ratio */
TB_STATIC bool block_solve_pays(const tb_real g[9])
{
    if (!(g[0] > 0) || !(g[4] > 0) || !(g[8] > 0)) return false;
    const tb_real c = COUPLING_THAT_PAYS * COUPLING_THAT_PAYS;
    const tb_real nt0 = tb_abs(g[1] * g[3]), nt1 = tb_abs(g[2] * g[6]), tt = tb_abs(g[5] * g[7]);
    if (nt0 > c * g[0] * g[4] || nt1 > c * g[0] * g[8] || tt > c * g[4] * g[8]) return true;
    return tb_min(g[4], g[8]) < TB_R(0.7) * tb_max(g[4], g[8]);
}

/* Sliding friction can press the contact together faster than its normal impulse parts it
 * (Painleve): then no r makes projected steps contract, and a single contact needs a solution of
 * the whole. Rare: a slender body, mu > 1. */
TB_STATIC bool jams(const tb_real g[9], tb_real mu)
{
    return mu * tb_hypot2(g[1], g[2]) >= g[0] || mu * tb_hypot2(g[3], g[6]) >= g[0];
}

/* Cholesky factor in place of g; false (g restored) where g is not safely positive definite */
TB_STATIC bool factor_bilateral(tb_real *g, int n)
{
    tb_real copy[TB_BLOCK_ROWS * TB_BLOCK_ROWS];
    memcpy(copy, g, (size_t)(n * n) * sizeof(tb_real));
    if (tb_cholesky(g, n, n) == n) {
        bool safe = true;
        for (int i = 0; i < n; i++)
            safe = safe && g[i * n + i] * g[i * n + i] > 64 * TB_REAL_EPSILON * copy[i * n + i];
        if (safe) return true;
    }
    memcpy(g, copy, (size_t)(n * n) * sizeof(tb_real));
    return false;
}

TB_STATIC tb_status take_blocks(tb_sweeper *sweeper, const tb_solve_options *options,
                                bool gauss_seidel, tb_arena *scratch)
{
    const tb_problem *problem = sweeper->problem;
    sweeper->jams =
        gauss_seidel && sweeper->storage != TB_STORAGE_T && options->r_strategy == TB_R_DIAGONAL;
    sweeper->whole = sweeper->jams && options->local_solve;
    /* a bound that needs no look at the blocks; what is not written costs nothing */
    const int64_t local_count = TB_BLOCK_ROWS * (int64_t)problem->number_of_rows;
    sweeper->blocks = TB_ARENA_ARRAY(scratch, tb_sweep_block, problem->number_of_blocks);
    sweeper->local = TB_ARENA_ARRAY(scratch, tb_real, local_count);
    sweeper->filled = 0;
    sweeper->alpha = NULL;
    if (!sweeper->blocks || !sweeper->local) return TB_RESOURCE_EXHAUSTED;
    if (sweeper->jams) {
        sweeper->alpha = TB_ARENA_ZEROED(scratch, tb_real, problem->number_of_blocks);
        if (!sweeper->alpha) return TB_RESOURCE_EXHAUSTED;
    }
    return TB_OK;
}

TB_EXTERN void tb_sweeper_fill(tb_sweeper *sweeper, int32_t first, int32_t end)
{
    const tb_problem *problem = sweeper->problem;
    for (int32_t b = first; b < end; b++) {
        const tb_block *source = &problem->blocks[b];
        tb_sweep_block *block = &sweeper->blocks[b];
        block->law = (uint8_t)source->law;
        block->rows = (uint8_t)source->rows;
        block->row = source->row;
        block->value = source->value;
        block->mu = source->mu;
        block->block_solve = TB_SOLVE_BY_ROWS;
        block->local = 0;
        block->dof_a = block->dof_b = 0;
        const tb_sweep_shape shape =
            sweeper->storage == TB_STORAGE_FACTORIZED ? shape_of(problem, source) : TB_SHAPE_OF_ANY;
        block->shape = (uint8_t)shape;
        if (shape != TB_SHAPE_OF_ANY) {
            const tb_segment *segment = problem->segments + source->segment;
            block->dof_a = segment[0].dof;
            if (shape == TB_SHAPE_OF_TWO) block->dof_b = segment[1].dof;
        }

        /* the diagonal block, beside the others or in a place of its own */
        tb_real *g = block->g;
        if (source->rows > 3) {
            block->local = sweeper->filled;
            g = sweeper->local + sweeper->filled;
            sweeper->filled += source->rows * source->rows;
        }
        if (shape != TB_SHAPE_OF_ANY) {
            local_of_fixed(problem->values + source->value, source->width, g);
            if (problem->compliance)
                for (int i = 0; i < 3; i++) g[4 * i] += problem->compliance[source->row + i];
        } else {
            tb_problem_local_block(problem, b, g);
        }

        if (source->law != TB_LAW_COULOMB) continue;
        if (sweeper->whole && block_solve_pays(g)) block->block_solve = TB_SOLVE_WHOLE;
        if (sweeper->jams && jams(g, source->mu)) block->block_solve = TB_SOLVE_WHOLE_ALWAYS;
    }
}

TB_EXTERN tb_status tb_sweeper_prepare(tb_sweeper *sweeper, const tb_problem *problem,
                                       const tb_solve_options *options, bool gauss_seidel,
                                       tb_arena *scratch)
{
    const int32_t rows = problem->number_of_rows;
    sweeper->problem = problem;
    sweeper->s = sweeper->next = NULL;
    sweeper->g = sweeper->t = sweeper->d = NULL;
    sweeper->omega = 0;
    sweeper->r_global = 1;
    sweeper->gauss_seidel = gauss_seidel;

    /* the form: what the problem has, unless another is asked for */
    sweeper->storage = options->storage;
    if (sweeper->storage == TB_STORAGE_AUTO)
        sweeper->storage = problem->values ? TB_STORAGE_FACTORIZED : TB_STORAGE_DENSE;
    if (sweeper->storage == TB_STORAGE_FACTORIZED && !problem->values) return TB_UNSUPPORTED;

    sweeper->lambda = TB_ARENA_ZEROED(scratch, tb_real, rows);
    if (!sweeper->lambda) return TB_RESOURCE_EXHAUSTED;
    if (sweeper->storage == TB_STORAGE_FACTORIZED) {
        sweeper->s = TB_ARENA_ZEROED(scratch, tb_real, problem->number_of_dofs);
        if (!sweeper->s) return TB_RESOURCE_EXHAUSTED;
    }
    if (!gauss_seidel) {
        const bool factorized = sweeper->storage == TB_STORAGE_FACTORIZED;
        sweeper->next =
            TB_ARENA_ZEROED(scratch, tb_real, factorized ? problem->number_of_dofs : rows);
        if (!sweeper->next) return TB_RESOURCE_EXHAUSTED;
    }

    /* G, where it is wanted whole and is not given so */
    if (sweeper->storage == TB_STORAGE_DENSE && !problem->values) {
        sweeper->matrix = *problem->matrix;
    } else if (sweeper->storage != TB_STORAGE_FACTORIZED) {
        const size_t size = (size_t)rows * (size_t)rows;
        sweeper->g = TB_ARENA_ARRAY(scratch, tb_real, size);
        if (!sweeper->g) return TB_RESOURCE_EXHAUSTED;
        const tb_status status = tb_problem_delassus(problem, sweeper->g);
        if (status != TB_OK) return status;
        sweeper->matrix = TB_VALUE(tb_matrix){.rows = rows, .columns = rows, .dense = sweeper->g};
        if (sweeper->storage == TB_STORAGE_T) {
            sweeper->t = sweeper->g; /* becomes T with the first omega */
            sweeper->d = TB_ARENA_ARRAY(scratch, tb_real, rows);
            if (!sweeper->d) return TB_RESOURCE_EXHAUSTED;
        }
    }
    if (options->r_strategy == TB_R_SPECTRUM) {
        const tb_status status = tb_spectrum_r(problem, scratch, &sweeper->r_global);
        if (status != TB_OK) return status;
    }
    return take_blocks(sweeper, options, gauss_seidel, scratch);
}

/* omega over the diagonal, or none where a row has no mass behind it */
TB_STATIC tb_real over(tb_real omega, tb_real diagonal)
{
    const tb_real r = diagonal > 0 ? omega / diagonal : 0;
    return r <= TB_REAL_MAX ? r : 0;
}

/* Nützi 4.41: one r for the normal, one for all rows of friction by the largest of their diagonals.
 * Three rows and more that are projected as one can couple so far that this overshoots: half of
 * Gershgorin's bound on their eigenvalues is the limit of stability. */
TB_STATIC void diagonal_r(tb_sweep_block *block, const tb_real *g, tb_real omega)
{
    const int n = block->rows;
    block->r_normal = over(omega, g[0]);
    block->r_friction = block->r_normal;
    if (n == 1) return;
    const int first = block->law == TB_LAW_BILATERAL ? 0 : 1;
    tb_real largest = 0, bound = 0;
    for (int i = first; i < n; i++) {
        tb_real sum = 0;
        for (int j = first; j < n; j++) sum += tb_abs(g[i * n + j]);
        largest = tb_max(largest, g[i * n + i]);
        bound = tb_max(bound, sum);
    }
    if (n > 3) largest = tb_max(largest, TB_R(0.6) * bound);
    block->r_friction = over(omega, largest);
}

/* The r-factors of one block. */
TB_STATIC void set_block_omega(tb_sweeper *sweeper, const tb_solve_options *options,
                               tb_sweep_block *block, tb_real omega, bool first)
{
    tb_real *g = block->rows > 3 ? sweeper->local + block->local : block->g;
    switch (options->r_strategy) {
    case TB_R_RICHARDSON: block->r_normal = block->r_friction = omega; break;
    case TB_R_SPECTRUM:
        block->r_normal = block->r_friction = omega * TB_R(sweeper->r_global);
        break;
    default:
        if (block->block_solve && block->law == TB_LAW_BILATERAL) break;
        diagonal_r(block, g, omega);
        /* an exact solve wants 1 / G_NN; its relaxation stands apart */
        if (block->block_solve) block->r_normal = over(1, g[0]);
        if (first && sweeper->whole && block->law == TB_LAW_BILATERAL && block->rows > 1)
            block->block_solve = factor_bilateral(g, block->rows);
    }
}

/* T = 1 - R G from G the first time, scaled after that (Poulsen 3.6): one block's rows. */
TB_STATIC void set_block_t(tb_sweeper *sweeper, const tb_sweep_block *block, tb_real ratio,
                           bool first)
{
    const tb_problem *problem = sweeper->problem;
    const int64_t n = problem->number_of_rows;
    for (int i = 0; i < block->rows; i++) {
        const int64_t row = block->row + i;
        tb_real r = block->r_friction;
        if (i == 0 && block->law != TB_LAW_BILATERAL) r = block->r_normal;
        tb_real *t = sweeper->t + row * n;
        if (first) {
            for (int64_t j = 0; j < n; j++) t[j] *= -r;
            t[row] += 1;
        } else {
            const tb_real diagonal = 1 - ratio * (1 - t[row]);
            for (int64_t j = 0; j < n; j++) t[j] *= ratio;
            t[row] = diagonal;
        }
        sweeper->d[row] = -r * problem->c[row];
    }
}

TB_EXTERN void tb_sweeper_start_omega(tb_sweeper *sweeper, const tb_solve_options *options,
                                      int32_t first, int32_t end, tb_real omega)
{
    for (int32_t b = first; b < end; b++) {
        set_block_omega(sweeper, options, &sweeper->blocks[b], omega, true);
        if (sweeper->t) set_block_t(sweeper, &sweeper->blocks[b], 0, true);
    }
    if (end == sweeper->problem->number_of_blocks) sweeper->omega = omega;
}

TB_EXTERN void tb_sweeper_set_omega(tb_sweeper *sweeper, const tb_solve_options *options,
                                    tb_real omega)
{
    const tb_real ratio = omega / sweeper->omega;
    sweeper->omega = omega;
    for (int32_t b = 0; b < sweeper->problem->number_of_blocks; b++) {
        set_block_omega(sweeper, options, &sweeper->blocks[b], omega, false);
        if (sweeper->t) set_block_t(sweeper, &sweeper->blocks[b], ratio, false);
    }
}
