/* How a sweep moves the impulses of one block, in every storage form.
 *
 * The functions take the block's xi, write its impulses and their change, and return the block's
 * share of the sweep's measure: the squares of the change of velocity that the diagonal block of G
 * makes of it. `gauss_seidel` is a constant where they are used (forms.h). */
#ifndef TB_MOVES_H
#define TB_MOVES_H

#include "solve/sweep/sweep_internal.h"

/* out of line: the sweep's registers are for the rows */
TB_STATIC TB_NO_INLINE void tb_move_exactly(const tb_sweep_block *block, tb_real omega,
                                            const tb_real *xi, tb_real *lambda, tb_real *change,
                                            tb_real *alpha)
{
    tb_update_coulomb_exact(block, omega, xi, lambda, change, alpha);
}

/* a block of one row, of any law */
TB_STATIC inline double tb_move_row(const tb_sweep_block *block, const tb_block *source, tb_real xi,
                                    tb_real *lambda, tb_real *change)
{
    tb_real x = *lambda - block->r_normal * xi;
    if (block->law == TB_LAW_BOX)
        x = tb_prox_box(x, source->lower, source->upper);
    else if (block->law == TB_LAW_UNILATERAL)
        x = tb_prox_unilateral(x);
    *change = x - *lambda;
    *lambda = x;
    const tb_real n = block->g[0] * *change;
    return (double)(n * n);
}

/* squared change of a Coulomb contact, in the sweep's measure */
TB_STATIC inline double tb_contact_measure(const tb_sweep_block *block, const tb_real *change)
{
    const tb_real n = block->g[0] * change[0], friction = tb_max(block->g[4], block->g[8]);
    const tb_real t0 = friction * change[1], t1 = friction * change[2];
    return (double)(n * n + t0 * t0 + t1 * t1);
}

/* any law but Coulomb's, likewise */
TB_STATIC TB_NO_INLINE double tb_move_other(tb_sweeper *sweeper, int32_t index, bool gauss_seidel,
                                            tb_real *xi, tb_real *lambda, tb_real *change)
{
    const tb_sweep_block *block = &sweeper->blocks[index];
    const tb_block *source = &sweeper->problem->blocks[index];
    if (block->rows == 1) return tb_move_row(block, source, xi[0], lambda, change);
    const tb_real *g = block->rows > 3 ? sweeper->local + block->local : block->g;
    double measure = 0;
    if (block->block_solve) {
        /* bilateral, g holds the Cholesky factor: an exact step for all rows */
        for (int i = 0; i < block->rows; i++) {
            measure += (double)xi[i] * (double)xi[i];
            change[i] = -sweeper->omega * xi[i];
        }
        tb_cholesky_solve(g, block->rows, block->rows, change);
        for (int i = 0; i < block->rows; i++) lambda[i] += change[i];
        return measure;
    }
    tb_update_any(block, g, source->lower, source->upper, gauss_seidel, xi, lambda, change);
    for (int i = 0; i < block->rows; i++) {
        const double v = (double)(g[i * block->rows + i] * change[i]);
        measure += v * v;
    }
    return measure;
}

/* moves one block's impulses for its gathered xi; returns the change's share of the measure.
 * `alpha`: the block's, where blocks are solved exactly */
TB_STATIC inline double tb_move_block(tb_sweeper *sweeper, int32_t index, bool gauss_seidel,
                                      tb_real *xi, tb_real *lambda, tb_real *change, tb_real *alpha)
{
    const tb_sweep_block *block = &sweeper->blocks[index];
    if (block->law != TB_LAW_COULOMB)
        return tb_move_other(sweeper, index, gauss_seidel, xi, lambda, change);
    if (gauss_seidel && block->block_solve)
        tb_move_exactly(block, sweeper->omega, xi, lambda, change, alpha);
    else
        tb_update_coulomb(block, gauss_seidel, xi, lambda, change);
    return tb_contact_measure(block, change);
}

/* z = T lambda + d is lambda - r xi: the update takes it as an xi with r = 1 and the diagonal block
 * 1 - T. `step` comes as lambda - z. */
TB_STATIC inline double tb_move_by_t(tb_sweeper *sweeper, int32_t index, bool gauss_seidel,
                                     tb_real *step, tb_real *lambda, tb_real *change)
{
    const tb_sweep_block *block = &sweeper->blocks[index];
    const tb_block *source = &sweeper->problem->blocks[index];
    const int64_t n = sweeper->problem->number_of_rows;
    const int rows = block->rows;
    tb_real local[TB_BLOCK_ROWS * TB_BLOCK_ROWS] = {0};
    for (int i = 0; i < rows; i++) {
        const tb_real *row = sweeper->t + (block->row + i) * n;
        for (int j = 0; j < rows; j++) local[i * rows + j] = TB_R(i == j) - row[block->row + j];
    }
    tb_sweep_block unit = *block;
    unit.r_normal = unit.r_friction = 1;
    tb_update_any(&unit, local, source->lower, source->upper, gauss_seidel, step, lambda, change);
    const tb_real *g = rows > 3 ? sweeper->local + block->local : block->g;
    double measure = 0;
    for (int i = 0; i < rows; i++) {
        const double v = (double)(g[i * rows + i] * change[i]);
        measure += v * v;
    }
    return measure;
}

#endif
