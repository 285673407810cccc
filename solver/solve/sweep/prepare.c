/* Setting a sweep up: diagonal blocks, r-factors, storage forms. */
#include "solve/sweep/factors.h"
#include "solve/sweep/sweep_internal.h"

#include <string.h>

TB_STATIC tb_sweep_shape shape_of(const tb_problem *problem, const tb_block *block)
{
    if (!problem->values || block->law != TB_LAW_COULOMB) return TB_SHAPE_OF_ANY;
    const tb_segment *segment = problem->segments + block->segment;
    if (block->segments == 1 && segment[0].count == 6) return TB_SHAPE_OF_ONE;
    if (block->segments == 2 && segment[0].count == 6 && segment[1].count == 6)
        return TB_SHAPE_OF_TWO;
    return TB_SHAPE_OF_ANY;
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
    sweeper->painleve =
        gauss_seidel && sweeper->storage != TB_STORAGE_T && options->r_strategy == TB_R_DIAGONAL;
    sweeper->whole = sweeper->painleve && options->local_solve;
    /* an upper bound that needs no pass over the blocks; unused memory costs nothing */
    const int64_t local_count = TB_BLOCK_ROWS * (int64_t)problem->number_of_rows;
    sweeper->blocks = TB_ARENA_ARRAY(scratch, tb_sweep_block, problem->number_of_blocks);
    sweeper->local = TB_ARENA_ARRAY(scratch, tb_real, local_count);
    sweeper->alpha = NULL;
    if (!sweeper->blocks || !sweeper->local) return TB_RESOURCE_EXHAUSTED;
    if (sweeper->painleve) {
        sweeper->alpha = TB_ARENA_ZEROED(scratch, tb_real, problem->number_of_blocks);
        if (!sweeper->alpha) return TB_RESOURCE_EXHAUSTED;
    }
#ifdef TB_DEVICE
    sweeper->products = TB_ARENA_ARRAY(scratch, tb_real, 3 * TB_LISTED_COLUMNS);
    if (!sweeper->products) return TB_RESOURCE_EXHAUSTED;
    sweeper->links = NULL;
    if (gauss_seidel && problem->columns && sweeper->storage == TB_STORAGE_FACTORIZED &&
        tb_team_lanes() > 2) {
        sweeper->links = TB_ARENA_ARRAY(scratch, tb_team_link, problem->number_of_blocks);
        if (!sweeper->links) return TB_RESOURCE_EXHAUSTED;
    }
#endif
    sweeper->change = NULL;
    sweeper->measures = NULL;
    if (gauss_seidel) return TB_OK;
    sweeper->change = TB_ARENA_ARRAY(scratch, tb_real, problem->number_of_rows);
    sweeper->measures = TB_ARENA_ARRAY(scratch, double, problem->number_of_blocks);
    return sweeper->change && sweeper->measures ? TB_OK : TB_RESOURCE_EXHAUSTED;
}

/* A block with its diagonal block, which is beside the others or in a place of its own. */
TB_STATIC tb_sweep_block make_block(const tb_sweeper *sweeper, int32_t b)
{
    const tb_problem *problem = sweeper->problem;
    const tb_block *source = &problem->blocks[b];
    tb_sweep_block block = {.law = (uint8_t)source->law,
                            .rows = (uint8_t)source->rows,
                            .block_solve = TB_SOLVE_BY_ROWS,
                            .row = source->row,
                            .value = source->value,
                            .mu = source->mu};
    const tb_sweep_shape shape =
        sweeper->storage == TB_STORAGE_FACTORIZED ? shape_of(problem, source) : TB_SHAPE_OF_ANY;
    block.shape = (uint8_t)shape;
    if (shape != TB_SHAPE_OF_ANY) {
        const tb_segment *segment = problem->segments + source->segment;
        block.dof_a = segment[0].dof;
        if (shape == TB_SHAPE_OF_TWO) block.dof_b = segment[1].dof;
    }
    if (source->rows > 3) block.local = TB_BLOCK_ROWS * (int64_t)source->row;
    tb_real *g = source->rows > 3 ? sweeper->local + block.local : block.g;
    tb_problem_local_block(problem, b, g);

    if (source->law != TB_LAW_COULOMB) return block;
    if (sweeper->whole && tb_block_solve_pays(g)) block.block_solve = TB_SOLVE_WHOLE;
    if (sweeper->painleve && tb_block_is_painleve(g, source->mu))
        block.block_solve = TB_SOLVE_WHOLE_ALWAYS;
    return block;
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
    sweeper->colours = NULL;
    sweeper->gauss_seidel = gauss_seidel;

    /* storage form: that of the problem, unless the options name another */
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
        tb_block_diagonal_r(block, g, omega);
        /* an exact solve needs 1 / G_NN; its relaxation is separate */
        if (block->block_solve) block->r_normal = tb_over(1, g[0]);
        if (first && sweeper->whole && block->law == TB_LAW_BILATERAL && block->rows > 1)
            block->block_solve = factor_bilateral(g, block->rows);
    }
}

/* Data of a block for a team's sweep; needs its r-factors and its kind of solve. */
TB_STATIC void set_link(tb_sweeper *sweeper, int32_t b, const tb_sweep_block *block)
{
#ifdef TB_DEVICE
    const tb_problem *problem = sweeper->problem;
    const tb_block *source = &problem->blocks[b];
    if (!sweeper->links) return;
    const int32_t width = source->width;
    const bool near = (width + 3) / 4 <= TB_TEAM_NUMBERS_OF_A_LANE / 12 * tb_team_lanes();
    const bool by_rows = block->law == TB_LAW_COULOMB && !block->block_solve;
    tb_team_link link = {.y = problem->values + block->value, .row = block->row, .width = width};
    if (near && (by_rows || block->rows == 1)) {
        link.dof = tb_block_columns(problem, b);
        link.law = block->law;
        link.shape = block->shape;
        link.rows = block->rows;
        link.mu = block->mu;
        link.r_normal = block->r_normal;
        link.r_friction = block->r_friction;
        link.g_normal = block->g[0];
        link.g_friction = by_rows ? tb_max(block->g[4], block->g[8]) : 0;
        link.carry[0] = by_rows ? block->g[3] : source->lower;
        link.carry[1] = by_rows ? block->g[6] : source->upper;
        link.c[0] = problem->c[block->row];
        link.c[1] = by_rows ? problem->c[block->row + 1] : 0;
        link.c[2] = by_rows ? problem->c[block->row + 2] : 0;
    }
    sweeper->links[b] = link;
#else
    (void)sweeper, (void)b, (void)block;
#endif
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

TB_EXTERN void tb_sweeper_start(tb_sweeper *sweeper, const tb_solve_options *options, int32_t first,
                                int32_t end, tb_real omega)
{
    TB_EACH (k, end - first) {
        tb_sweep_block block = make_block(sweeper, first + k);
        set_block_omega(sweeper, options, &block, omega, true);
        sweeper->blocks[first + k] = block;
        if (sweeper->t) set_block_t(sweeper, &block, 0, true);
        set_link(sweeper, first + k, &block);
    }
    tb_team_sync();
    if (end == sweeper->problem->number_of_blocks) sweeper->omega = omega;
}

TB_EXTERN void tb_sweeper_set_omega(tb_sweeper *sweeper, const tb_solve_options *options,
                                    tb_real omega)
{
    const tb_real ratio = omega / sweeper->omega;
    sweeper->omega = omega;
    TB_EACH (b, sweeper->problem->number_of_blocks) {
        set_block_omega(sweeper, options, &sweeper->blocks[b], omega, false);
        if (sweeper->t) set_block_t(sweeper, &sweeper->blocks[b], ratio, false);
        set_link(sweeper, b, &sweeper->blocks[b]);
    }
    tb_team_sync();
}
