/* The sweeps of forms.h by a team, for a device: the same numbers in the same order.
 *
 * Gauss-Seidel is a chain from block to block, and each link is short. So lanes share out the link:
 * the three rows of a contact are gathered by three lanes and passed round, every lane moves the
 * impulses in its own registers, the leader keeps them, and the change is scattered column by
 * column. Jacobi's blocks know nothing of each other: each lane takes whole blocks, and changes are
 * added afterwards in the order of the blocks. */
#ifndef TB_TEAM_FORMS_H
#define TB_TEAM_FORMS_H

/* one row's xi, summed as rows.h sums it */
TB_STATIC inline tb_real tb_team_row_xi(const tb_sweeper *sweeper, int32_t index, int32_t i)
{
    const tb_problem *problem = sweeper->problem;
    const tb_sweep_block *block = &sweeper->blocks[index];
    const tb_real *s = sweeper->s, *y = problem->values + block->value;
    const int32_t row = block->row + i;
    tb_real xi = 0;
    if (block->shape == TB_SHAPE_OF_TWO) {
        xi = tb_dot66(y + 12 * i, s + block->dof_a, s + block->dof_b);
    } else if (block->shape == TB_SHAPE_OF_ONE) {
        xi = tb_dot6(y + 6 * i, s + block->dof_a);
    } else {
        const tb_block *source = &problem->blocks[index];
        const tb_segment *run = problem->segments + source->segment;
        y += (int64_t)i * source->width;
        for (int32_t k = 0; k < source->segments; k++) {
            const tb_real *from = s + run[k].dof;
            for (int32_t j = 0; j < run[k].count; j++) xi += *y++ * from[j];
        }
    }
    xi += problem->c[row];
    if (problem->compliance) xi += problem->compliance[row] * sweeper->lambda[row];
    return xi;
}

/* s += the block's rows' change: every number by one lane */
TB_STATIC inline void tb_team_scatter(const tb_sweeper *sweeper, int32_t index, tb_real *to,
                                      const tb_real *change)
{
    const tb_problem *problem = sweeper->problem;
    const tb_sweep_block *block = &sweeper->blocks[index];
    const tb_block *source = &problem->blocks[index];
    const tb_real *y = problem->values + block->value;
    const int32_t width = source->width;
    TB_EACH (k, width) {
        tb_real *place = &to[tb_block_dof(problem, source, k)];
        if (block->rows == 1) {
            *place += y[k] * change[0];
        } else if (block->shape != TB_SHAPE_OF_ANY) {
            *place = (*place + y[k] * change[0]) +
                     (y[width + k] * change[1] + y[2 * width + k] * change[2]);
        } else if (block->rows == 3) {
            *place += y[k] * change[0] + y[width + k] * change[1] + y[2 * width + k] * change[2];
        } else {
            tb_real sum = *place;
            for (int32_t i = 0; i < block->rows; i++) sum += y[i * width + k] * change[i];
            *place = sum;
        }
    }
}

/* one row of a given G times lambda, with c and E; or T's row, as lambda - (T lambda + d) */
TB_STATIC inline tb_real tb_team_matrix_xi(const tb_sweeper *sweeper, int32_t row)
{
    const tb_problem *problem = sweeper->problem;
    const tb_matrix *g = &sweeper->matrix;
    const tb_real *old = sweeper->lambda;
    if (sweeper->t) {
        const int32_t n = problem->number_of_rows;
        const tb_real z = tb_dot_long(sweeper->t + (int64_t)row * n, old, n) + sweeper->d[row];
        return old[row] - z;
    }
    tb_real sum = 0;
    if (g->dense) {
        sum = tb_dot_long(g->dense + (int64_t)row * g->columns, old, g->columns);
    } else {
        for (int32_t k = g->row_start[row]; k < g->row_start[row + 1]; k++)
            sum += g->value[k] * old[g->column[k]];
    }
    if (problem->compliance && !sweeper->g) sum += problem->compliance[row] * old[row];
    return sum + problem->c[row];
}

TB_STATIC inline tb_real tb_team_xi(const tb_sweeper *sweeper, int32_t index, int32_t i,
                                    bool factorized)
{
    return factorized ? tb_team_row_xi(sweeper, index, i)
                      : tb_team_matrix_xi(sweeper, sweeper->blocks[index].row + i);
}

/* moves impulses that the caller holds; see tb_move_block */
TB_STATIC inline double tb_team_move(tb_sweeper *sweeper, int32_t index, bool gauss_seidel,
                                     tb_real *xi, tb_real *lambda, tb_real *change, tb_real *alpha)
{
    return sweeper->t ? tb_move_by_t(sweeper, index, gauss_seidel, xi, lambda, change)
                      : tb_move_block(sweeper, index, gauss_seidel, xi, lambda, change, alpha);
}

TB_STATIC inline double tb_team_gauss_seidel(tb_sweeper *sweeper, bool factorized)
{
    const int32_t blocks = sweeper->problem->number_of_blocks;
    const int32_t lane = tb_team_lane(), lanes = tb_team_lanes();
    double measure = 0;
    for (int32_t b = 0; b < blocks; b++) {
        const tb_sweep_block *block = &sweeper->blocks[b];
        tb_real *kept = sweeper->lambda + block->row;
        tb_real xi[TB_BLOCK_ROWS], lambda[TB_BLOCK_ROWS], change[TB_BLOCK_ROWS];
        tb_real alpha = sweeper->alpha ? sweeper->alpha[b] : 0;
        if (block->rows == 3 && lanes > 2) {
            const tb_real own = tb_team_xi(sweeper, b, lane < 3 ? lane : 2, factorized);
            for (int32_t i = 0; i < 3; i++) {
                lambda[i] = kept[i];
                xi[i] = own;
                tb_team_pass(&xi[i], sizeof xi[i], i);
            }
        } else {
            for (int32_t i = 0; i < block->rows; i++) {
                xi[i] = tb_team_xi(sweeper, b, i, factorized);
                lambda[i] = kept[i];
            }
        }
        measure += tb_team_move(sweeper, b, true, xi, lambda, change, &alpha);
        tb_team_sync(); /* all have read what is written now */
        if (lane == 0) {
            for (int32_t i = 0; i < block->rows; i++) kept[i] = lambda[i];
            if (sweeper->alpha) sweeper->alpha[b] = alpha;
        }
        if (factorized) tb_team_scatter(sweeper, b, sweeper->s, change);
        tb_team_sync();
    }
    return measure;
}

TB_STATIC inline double tb_team_jacobi(tb_sweeper *sweeper, bool factorized)
{
    const tb_problem *problem = sweeper->problem;
    tb_real *old = factorized ? sweeper->s : sweeper->lambda, *next = sweeper->next;
    const int32_t size = factorized ? problem->number_of_dofs : problem->number_of_rows;
    TB_EACH (b, problem->number_of_blocks) {
        const tb_sweep_block *block = &sweeper->blocks[b];
        tb_real xi[TB_BLOCK_ROWS], lambda[TB_BLOCK_ROWS], change[TB_BLOCK_ROWS];
        for (int32_t i = 0; i < block->rows; i++) {
            xi[i] = tb_team_xi(sweeper, b, i, factorized);
            lambda[i] = sweeper->lambda[block->row + i];
        }
        sweeper->measures[b] = tb_team_move(sweeper, b, false, xi, lambda, change, NULL);
        tb_real *to = factorized ? sweeper->lambda : next;
        for (int32_t i = 0; i < block->rows; i++) {
            to[block->row + i] = lambda[i];
            sweeper->change[block->row + i] = change[i];
        }
    }
    if (factorized) tb_team_copy(next, old, (size_t)size * sizeof(tb_real));
    tb_team_sync();
    double measure = 0;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        measure += sweeper->measures[b];
        if (!factorized) continue;
        tb_team_scatter(sweeper, b, next, sweeper->change + sweeper->blocks[b].row);
        tb_team_sync();
    }
    tb_team_sync();
    sweeper->next = old;
    if (factorized)
        sweeper->s = next;
    else
        sweeper->lambda = next;
    return measure;
}

TB_STATIC inline double tb_team_sweep(tb_sweeper *sweeper, bool gauss_seidel, bool factorized)
{
    return gauss_seidel ? tb_team_gauss_seidel(sweeper, factorized)
                        : tb_team_jacobi(sweeper, factorized);
}

TB_STATIC inline double tb_sweep_factorized(tb_sweeper *sweeper, bool gauss_seidel)
{
    return tb_team_sweep(sweeper, gauss_seidel, true);
}

TB_STATIC inline double tb_sweep_given(tb_sweeper *sweeper, bool gauss_seidel)
{
    return tb_team_sweep(sweeper, gauss_seidel, false);
}

TB_STATIC inline double tb_sweep_t(tb_sweeper *sweeper, bool gauss_seidel)
{
    return tb_team_sweep(sweeper, gauss_seidel, false);
}

#endif
