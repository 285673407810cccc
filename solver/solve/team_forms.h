/* The sweeps of forms.h by a team, for a device: the same numbers in the same order.
 *
 * Gauss-Seidel is a chain from block to block, and each link is short. So lanes share out the link:
 * the three rows of a contact are gathered by three lanes and passed round, every lane moves the
 * impulses in its own registers, the leader keeps them, and the change is scattered column by
 * column. Jacobi's blocks know nothing of each other: each lane takes whole blocks, and changes are
 * added afterwards in the order of the blocks.
 *
 * What is common is written for few instructions: a card waits for its code as for its numbers. */
#ifndef TB_TEAM_FORMS_H
#define TB_TEAM_FORMS_H

/* ---- one row ---- */

/* A row of a block whose columns have not been listed: too many. */
TB_STATIC TB_NO_INLINE tb_real tb_team_long_dot(const tb_problem *problem, const tb_block *source,
                                                const tb_real *y, const tb_real *s)
{
    const tb_segment *run = problem->segments + source->segment;
    tb_real sum = 0;
    TB_ROLLED
    for (int32_t k = 0; k < source->segments; k++) {
        TB_ROLLED
        for (int32_t j = 0; j < run[k].count; j++) sum += *y++ * s[run[k].dof + j];
    }
    return sum;
}

/* One row of Y times s, summed as rows.h sums it. Columns are loaded in fours, to wait for memory
 * once for all of them. */
TB_STATIC inline tb_real tb_team_dot(const tb_sweeper *sweeper, int32_t index, int32_t i)
{
    const tb_problem *problem = sweeper->problem;
    const tb_sweep_block *block = &sweeper->blocks[index];
    const tb_block *source = &problem->blocks[index];
    const int32_t width = source->width;
    const tb_real *s = sweeper->s, *y = problem->values + block->value + i * width;
    if (block->shape == TB_SHAPE_OF_TWO) return tb_dot66(y, s + block->dof_a, s + block->dof_b);
    if (block->shape == TB_SHAPE_OF_ONE) return tb_dot6(y, s + block->dof_a);
    const uint16_t *dof = tb_block_columns(problem, index);
    if (!dof) return tb_team_long_dot(problem, source, y, s);
    tb_real sum = 0;
    TB_ROLLED
    for (int32_t k = 0; k < width; k += 4) {
        tb_real p[4];
        for (int32_t j = 0; j < 4; j++) {
            const int32_t at = k + j < width ? k + j : k;
            p[j] = y[at] * s[dof[at]];
        }
        for (int32_t j = 0; j < 4; j++)
            if (k + j < width) sum += p[j];
    }
    return sum;
}

/* One row of a given G times lambda, with c and E; or T's row, as lambda - (T lambda + d). */
TB_STATIC TB_NO_INLINE tb_real tb_team_matrix_xi(const tb_sweeper *sweeper, int32_t row)
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
        TB_ROLLED
        for (int32_t k = g->row_start[row]; k < g->row_start[row + 1]; k++)
            sum += g->value[k] * old[g->column[k]];
    }
    if (problem->compliance && !sweeper->g) sum += problem->compliance[row] * old[row];
    return sum + problem->c[row];
}

TB_STATIC inline tb_real tb_team_factorized_xi(const tb_sweeper *sweeper, int32_t index, int32_t i)
{
    const tb_problem *problem = sweeper->problem;
    const int32_t row = sweeper->blocks[index].row + i;
    tb_real xi = tb_team_dot(sweeper, index, i) + problem->c[row];
    if (problem->compliance) xi += problem->compliance[row] * sweeper->lambda[row];
    return xi;
}

/* ---- the change of a block ---- */

/* s += the block's rows' change: every number by one lane */
TB_STATIC TB_NO_INLINE void tb_team_scatter(const tb_sweeper *sweeper, int32_t index, tb_real *to,
                                            const tb_real *change)
{
    const tb_problem *problem = sweeper->problem;
    const tb_sweep_block *block = &sweeper->blocks[index];
    const tb_block *source = &problem->blocks[index];
    const tb_real *y = problem->values + block->value;
    const int32_t width = source->width;
    const bool twins = block->shape != TB_SHAPE_OF_ANY;
    const uint16_t *dof = tb_block_columns(problem, index);
    TB_EACH (k, width) {
        tb_real *place = &to[dof ? dof[k] : tb_block_dof(problem, source, k)], sum = *place;
        if (block->rows == 3) {
            const tb_real y0 = y[k] * change[0], y1 = y[width + k] * change[1];
            const tb_real y2 = y[2 * width + k] * change[2];
            sum = twins ? (sum + y0) + (y1 + y2) : sum + (y0 + y1 + y2);
        } else {
            TB_ROLLED
            for (int32_t i = 0; i < block->rows; i++) sum += y[i * width + k] * change[i];
        }
        *place = sum;
    }
}

/* ---- Gauss-Seidel ---- */

/* A block of any kind, in any form of storage. */
TB_STATIC TB_NO_INLINE double tb_team_move_any(tb_sweeper *sweeper, int32_t index)
{
    const bool factorized = sweeper->storage == TB_STORAGE_FACTORIZED;
    const int32_t row = sweeper->blocks[index].row, rows = sweeper->blocks[index].rows;
    tb_real xi[TB_BLOCK_ROWS], lambda[TB_BLOCK_ROWS], change[TB_BLOCK_ROWS];
    tb_real alpha = sweeper->alpha ? sweeper->alpha[index] : 0;
    TB_ROLLED
    for (int32_t i = 0; i < rows; i++) {
        xi[i] = factorized ? tb_team_factorized_xi(sweeper, index, i)
                           : tb_team_matrix_xi(sweeper, row + i);
        lambda[i] = sweeper->lambda[row + i];
    }
    const double measure = sweeper->t
                               ? tb_move_by_t(sweeper, index, true, xi, lambda, change)
                               : tb_move_block(sweeper, index, true, xi, lambda, change, &alpha);
    tb_team_sync(); /* all have read what is written now */
    if (TB_LEADER) {
        TB_ROLLED
        for (int32_t i = 0; i < rows; i++) sweeper->lambda[row + i] = lambda[i];
        if (sweeper->alpha) sweeper->alpha[index] = alpha;
    }
    if (factorized) tb_team_scatter(sweeper, index, sweeper->s, change);
    tb_team_sync();
    return measure;
}

/* A contact by rows, each gathered by a lane of its own; there are three lanes or more. */
TB_STATIC inline double tb_team_move_contact(tb_sweeper *sweeper, int32_t index)
{
    const tb_problem *problem = sweeper->problem;
    const tb_sweep_block *block = &sweeper->blocks[index];
    const tb_block *source = &problem->blocks[index];
    tb_real *kept = sweeper->lambda + block->row, *s = sweeper->s;
    const int32_t lane = tb_team_lane();
    const tb_real own = tb_team_factorized_xi(sweeper, index, lane < 3 ? lane : 2);
    tb_real xi[3] = {own, own, own}, lambda[3] = {kept[0], kept[1], kept[2]}, change[3];
    tb_team_pass(&xi[0], sizeof xi[0], 0);
    tb_team_pass(&xi[1], sizeof xi[1], 1);
    tb_team_pass(&xi[2], sizeof xi[2], 2);
    tb_update_coulomb(block, true, xi, lambda, change);
    tb_team_sync(); /* all have read what is written now */
    if (lane == 0) {
        kept[0] = lambda[0];
        kept[1] = lambda[1];
        kept[2] = lambda[2];
    }
    const tb_real *y = problem->values + block->value;
    const int32_t width = source->width;
    const uint16_t *dof = tb_block_columns(problem, index);
    const bool twins = block->shape != TB_SHAPE_OF_ANY;
    TB_EACH (k, width) {
        tb_real *place = &s[dof ? dof[k] : tb_block_dof(problem, source, k)];
        const tb_real y0 = y[k] * change[0], y1 = y[width + k] * change[1];
        const tb_real y2 = y[2 * width + k] * change[2], old = *place;
        *place = twins ? (old + y0) + (y1 + y2) : old + (y0 + y1 + y2);
    }
    tb_team_sync();
    return tb_contact_measure(block, change);
}

/* A block of one row. */
TB_STATIC inline double tb_team_move_single(tb_sweeper *sweeper, int32_t index)
{
    const tb_problem *problem = sweeper->problem;
    const tb_sweep_block *block = &sweeper->blocks[index];
    const tb_block *source = &problem->blocks[index];
    const tb_real xi = tb_team_factorized_xi(sweeper, index, 0);
    tb_real lambda = sweeper->lambda[block->row], change;
    const double measure = tb_move_row(block, source, xi, &lambda, &change);
    tb_team_sync(); /* all have read what is written now */
    if (TB_LEADER) sweeper->lambda[block->row] = lambda;
    const tb_real *y = problem->values + block->value;
    TB_EACH (k, source->width) sweeper->s[tb_block_dof(problem, source, k)] += y[k] * change;
    tb_team_sync();
    return measure;
}

TB_STATIC inline double tb_team_gauss_seidel(tb_sweeper *sweeper)
{
    const bool factorized = sweeper->storage == TB_STORAGE_FACTORIZED;
    const bool lanes_for_rows = factorized && tb_team_lanes() > 2;
    double measure = 0;
    TB_ROLLED
    for (int32_t b = 0; b < sweeper->problem->number_of_blocks; b++) {
        const tb_sweep_block *block = &sweeper->blocks[b];
        if (lanes_for_rows && block->law == TB_LAW_COULOMB && !block->block_solve)
            measure += tb_team_move_contact(sweeper, b);
        else if (factorized && block->rows == 1)
            measure += tb_team_move_single(sweeper, b);
        else
            measure += tb_team_move_any(sweeper, b);
    }
    return measure;
}

/* ---- Jacobi ---- */

TB_STATIC inline double tb_team_jacobi(tb_sweeper *sweeper)
{
    const tb_problem *problem = sweeper->problem;
    const bool factorized = sweeper->storage == TB_STORAGE_FACTORIZED;
    tb_real *old = factorized ? sweeper->s : sweeper->lambda, *next = sweeper->next;
    tb_real *to = factorized ? sweeper->lambda : next;
    const int32_t size = factorized ? problem->number_of_dofs : problem->number_of_rows;
    TB_EACH (b, problem->number_of_blocks) {
        const int32_t row = sweeper->blocks[b].row, rows = sweeper->blocks[b].rows;
        tb_real xi[TB_BLOCK_ROWS], lambda[TB_BLOCK_ROWS], change[TB_BLOCK_ROWS];
        TB_ROLLED
        for (int32_t i = 0; i < rows; i++) {
            xi[i] = factorized ? tb_team_factorized_xi(sweeper, b, i)
                               : tb_team_matrix_xi(sweeper, row + i);
            lambda[i] = sweeper->lambda[row + i];
        }
        sweeper->measures[b] = sweeper->t
                                   ? tb_move_by_t(sweeper, b, false, xi, lambda, change)
                                   : tb_move_block(sweeper, b, false, xi, lambda, change, NULL);
        TB_ROLLED
        for (int32_t i = 0; i < rows; i++) {
            to[row + i] = lambda[i];
            sweeper->change[row + i] = change[i];
        }
    }
    if (factorized) tb_team_copy(next, old, (size_t)size * sizeof(tb_real));
    tb_team_sync();
    double measure = 0;
    TB_ROLLED
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

#endif
