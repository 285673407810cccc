/* One sweep in each storage form, for sor.c and jor.c to instantiate.
 *
 * `gauss_seidel` is a constant where these are used. True: a block sees all changes made before it,
 * its own rows see each other. False (Jacobi): every block sees the last sweep's impulses; changes
 * go to `next`. */
#ifndef TB_FORMS_H
#define TB_FORMS_H

#include "solve/sweep/moves.h"
#include "solve/sweep/rows.h"

#include <string.h>

#ifdef TB_DEVICE
#include "solve/sweep/team_forms.h"
#else

TB_STATIC inline double tb_sweep_factorized(tb_sweeper *sweeper, bool gauss_seidel)
{
    const tb_problem *problem = sweeper->problem;
    const tb_real *compliance = problem->compliance;
    tb_real *s = sweeper->s, *to = gauss_seidel ? s : sweeper->next;
    if (!gauss_seidel) memcpy(to, s, (size_t)problem->number_of_dofs * sizeof(tb_real));

    double measure = 0;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_sweep_block *block = &sweeper->blocks[b];
        const tb_real *y = problem->values + block->value;
        const tb_real *c = problem->c + block->row;
        tb_real *lambda = sweeper->lambda + block->row;
        tb_real xi[TB_BLOCK_ROWS], change[TB_BLOCK_ROWS];

        /* gather */
        if (block->shape == TB_SHAPE_OF_TWO) {
            for (int i = 0; i < 3; i++)
                xi[i] = tb_dot66(y + 12 * i, s + block->dof_a, s + block->dof_b) + c[i];
        } else if (block->shape == TB_SHAPE_OF_ONE) {
            for (int i = 0; i < 3; i++) xi[i] = tb_dot6(y + 6 * i, s + block->dof_a) + c[i];
        } else {
            tb_gather_any(problem, &problem->blocks[b], s, xi);
            for (int i = 0; i < block->rows; i++) xi[i] += c[i];
        }
        if (compliance)
            for (int i = 0; i < block->rows; i++) xi[i] += compliance[block->row + i] * lambda[i];

        measure += tb_move_block(sweeper, b, gauss_seidel, xi, lambda, change,
                                 sweeper->alpha ? &sweeper->alpha[b] : NULL);

        /* scatter */
        if (block->shape == TB_SHAPE_OF_TWO) {
            tb_add6x3(to + block->dof_a, y, 12, change);
            tb_add6x3(to + block->dof_b, y + 6, 12, change);
        } else if (block->shape == TB_SHAPE_OF_ONE) {
            tb_add6x3(to + block->dof_a, y, 6, change);
        } else {
            tb_scatter_any(problem, &problem->blocks[b], to, change);
        }
    }
    if (!gauss_seidel) {
        sweeper->next = s;
        sweeper->s = to;
    }
    return measure;
}

TB_STATIC inline double tb_sweep_given(tb_sweeper *sweeper, bool gauss_seidel)
{
    const tb_problem *problem = sweeper->problem;
    const tb_matrix *g = &sweeper->matrix;
    const tb_real *old = sweeper->lambda; /* source of xi */
    tb_real *lambda = gauss_seidel ? sweeper->lambda : sweeper->next;
    if (!gauss_seidel) memcpy(lambda, old, (size_t)problem->number_of_rows * sizeof(tb_real));

    double measure = 0;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_sweep_block *block = &sweeper->blocks[b];
        tb_real xi[TB_BLOCK_ROWS], change[TB_BLOCK_ROWS];
        for (int i = 0; i < block->rows; i++) {
            const int32_t row = block->row + i;
            tb_real sum = 0;
            if (g->dense) {
                sum = tb_dot_long(g->dense + (int64_t)row * g->columns, old, g->columns);
            } else {
                for (int32_t k = g->row_start[row]; k < g->row_start[row + 1]; k++)
                    sum += g->value[k] * old[g->column[k]];
            }
            /* an assembled G has the compliance on its diagonal, a given one has not */
            if (problem->compliance && !sweeper->g) sum += problem->compliance[row] * old[row];
            xi[i] = sum + problem->c[row];
        }
        measure += tb_move_block(sweeper, b, gauss_seidel, xi, lambda + block->row, change,
                                 sweeper->alpha ? &sweeper->alpha[b] : NULL);
    }
    if (!gauss_seidel) {
        sweeper->next = sweeper->lambda;
        sweeper->lambda = lambda;
    }
    return measure;
}

TB_STATIC inline double tb_sweep_t(tb_sweeper *sweeper, bool gauss_seidel)
{
    const tb_problem *problem = sweeper->problem;
    const int32_t n = problem->number_of_rows;
    const tb_real *old = sweeper->lambda;
    tb_real *lambda = gauss_seidel ? sweeper->lambda : sweeper->next;
    if (!gauss_seidel) memcpy(lambda, old, (size_t)n * sizeof(tb_real));

    double measure = 0;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_sweep_block *block = &sweeper->blocks[b];
        tb_real step[TB_BLOCK_ROWS], change[TB_BLOCK_ROWS];
        for (int i = 0; i < block->rows; i++) {
            const tb_real *row = sweeper->t + (int64_t)(block->row + i) * n;
            const tb_real z = tb_dot_long(row, old, n) + sweeper->d[block->row + i];
            step[i] = old[block->row + i] - z;
        }
        measure += tb_move_by_t(sweeper, b, gauss_seidel, step, lambda + block->row, change);
    }
    if (!gauss_seidel) {
        sweeper->next = sweeper->lambda;
        sweeper->lambda = lambda;
    }
    return measure;
}

#endif
#endif
