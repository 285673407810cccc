/* The sweeps of forms.h by a team, for a device: the same numbers in the same order.
 *
 * Gauss-Seidel is a chain from block to block, and each link is short. So lanes share the link:
 * the three rows of a contact are gathered by three lanes and passed round, every lane moves the
 * impulses in its own registers, the leader keeps them, and the change is scattered column by
 * column. Jacobi's blocks are independent: each lane takes whole blocks, and changes are
 * added afterwards in the order of the blocks.
 *
 * Common code is short: a card waits for instructions as it does for numbers. */
#ifndef TB_TEAM_FORMS_H
#define TB_TEAM_FORMS_H

#include "solve/sweep/moves.h"
#include "solve/sweep/rows.h"

/* ---- one row ---- */

/* A row of a block with more columns than are listed. */
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

/* Products in a row, summed as rows.h sums them. The next four are loaded while four are added. */
TB_STATIC inline tb_real tb_team_sum(const tb_real *p, int32_t width, int shape)
{
    if (shape == TB_SHAPE_OF_ONE) return (p[0] + p[2] + p[4]) + (p[1] + p[3] + p[5]);
    if (shape == TB_SHAPE_OF_TWO)
        return ((p[0] + p[2] + p[4]) + (p[6] + p[8] + p[10])) +
               ((p[1] + p[3] + p[5]) + (p[7] + p[9] + p[11]));
    tb_real sum = 0;
    int32_t k = 0;
    if (width >= 4) {
        tb_real a = p[0], b = p[1], c = p[2], d = p[3];
        TB_ROLLED
        for (k = 4; k + 4 <= width; k += 4) {
            const tb_real next_a = p[k], next_b = p[k + 1], next_c = p[k + 2], next_d = p[k + 3];
            sum = sum + a + b + c + d;
            a = next_a;
            b = next_b;
            c = next_c;
            d = next_d;
        }
        sum = sum + a + b + c + d;
    }
    TB_ROLLED
    for (; k < width; k++) sum += p[k];
    return sum;
}

/* Space for the products of this many columns of up to three rows, visible to all lanes; each
 * row's products follow those of the row before. */
TB_STATIC inline tb_real *tb_team_products(const tb_sweeper *sweeper, int32_t width)
{
    return tb_team_numbers(3 * width, sweeper->products);
}

/* One row of Y times s by one lane. */
TB_STATIC TB_NO_INLINE tb_real tb_team_dot(const tb_sweeper *sweeper, int32_t index, int32_t i)
{
    const tb_problem *problem = sweeper->problem;
    const tb_sweep_block *block = &sweeper->blocks[index];
    const tb_block *source = &problem->blocks[index];
    const int32_t width = source->width;
    const tb_real *s = sweeper->s, *y = problem->values + block->value + i * width;
    if (block->shape == TB_SHAPE_OF_TWO) return tb_dot66(y, s + block->dof_a, s + block->dof_b);
    if (block->shape == TB_SHAPE_OF_ONE) return tb_dot6(y, s + block->dof_a);
    return tb_team_long_dot(problem, source, y, s);
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

/* xi of a block's rows from `first` on, three at most: products by all lanes, each sum by one. */
TB_STATIC TB_NO_INLINE void tb_team_gather(const tb_sweeper *sweeper, int32_t index, int32_t first,
                                           int32_t rows, tb_real *xi)
{
    const tb_problem *problem = sweeper->problem;
    const tb_block *source = &problem->blocks[index];
    const int32_t width = source->width;
    const tb_real *y = problem->values + source->value + (int64_t)first * width;
    const uint16_t *dof = tb_block_columns(problem, index);
    tb_real *products = tb_team_products(sweeper, width);
    TB_EACH (k, width) {
        const tb_real s = sweeper->s[dof ? dof[k] : tb_block_dof(problem, source, k)];
        TB_ROLLED
        for (int32_t i = 0; i < rows; i++) products[i * width + k] = y[i * width + k] * s;
    }
    tb_team_sync();
    TB_ROLLED
    for (int32_t i = 0; i < rows; i++)
        xi[i] = tb_team_sum(products + i * width, width, TB_SHAPE_OF_ANY);
    tb_team_sync(); /* all have read them */
}

/* Likewise of all rows, with c and E. */
TB_STATIC inline void tb_team_gather_block(const tb_sweeper *sweeper, int32_t index, tb_real *xi)
{
    const tb_problem *problem = sweeper->problem;
    const tb_sweep_block *block = &sweeper->blocks[index];
    const bool together =
        block->shape == TB_SHAPE_OF_ANY && problem->blocks[index].width <= TB_LISTED_COLUMNS;
    TB_ROLLED
    for (int32_t i = 0; i < block->rows; i += 3) {
        const int32_t left = block->rows - i, rows = left < 3 ? left : 3;
        if (together) {
            tb_team_gather(sweeper, index, i, rows, xi + i);
        } else {
            TB_ROLLED
            for (int32_t k = i; k < i + rows; k++) xi[k] = tb_team_dot(sweeper, index, k);
        }
    }
    TB_ROLLED
    for (int32_t i = 0; i < block->rows; i++) {
        xi[i] += problem->c[block->row + i];
        if (problem->compliance)
            xi[i] += problem->compliance[block->row + i] * sweeper->lambda[block->row + i];
    }
}

/* A block of any kind, in any form of storage. */
TB_STATIC TB_NO_INLINE double tb_team_move_any(tb_sweeper *sweeper, int32_t index)
{
    const bool factorized = sweeper->storage == TB_STORAGE_FACTORIZED;
    const int32_t row = sweeper->blocks[index].row, rows = sweeper->blocks[index].rows;
    tb_real xi[TB_BLOCK_ROWS], lambda[TB_BLOCK_ROWS], change[TB_BLOCK_ROWS];
    tb_real alpha = sweeper->alpha ? sweeper->alpha[index] : 0;
    if (factorized) tb_team_gather_block(sweeper, index, xi);
    TB_ROLLED
    for (int32_t i = 0; i < rows; i++) {
        if (!factorized) xi[i] = tb_team_matrix_xi(sweeper, row + i);
        lambda[i] = sweeper->lambda[row + i];
    }
    const double measure = sweeper->t
                               ? tb_move_by_t(sweeper, index, true, xi, lambda, change)
                               : tb_move_block(sweeper, index, true, xi, lambda, change, &alpha);
    tb_team_sync(); /* all lanes have read the old values */
    if (TB_LEADER) {
        TB_ROLLED
        for (int32_t i = 0; i < rows; i++) sweeper->lambda[row + i] = lambda[i];
        if (sweeper->alpha) sweeper->alpha[index] = alpha;
    }
    if (factorized) tb_team_scatter(sweeper, index, sweeper->s, change);
    tb_team_sync();
    return measure;
}

/* A lane's columns of a block; it keeps its first column for the change. */
typedef struct tb_team_column {
    int32_t dof; /* -1: it has none */
    tb_real s, y[3];
} tb_team_column;

/* Products of a contact's rows; the lane's first column. */
TB_STATIC inline tb_team_column tb_team_multiply(const tb_sweeper *sweeper, const tb_block *source,
                                                 const uint16_t *dof, tb_real *products)
{
    const tb_problem *problem = sweeper->problem;
    const tb_real *y = problem->values + source->value;
    const int32_t width = source->width;
    tb_team_column own = {-1, 0, {0, 0, 0}};
    TB_EACH (k, width) {
        const tb_real y0 = y[k], y1 = y[width + k], y2 = y[2 * width + k];
        const int32_t at = dof ? dof[k] : tb_block_dof(problem, source, k);
        const tb_real s = sweeper->s[at];
        products[k] = y0 * s;
        products[width + k] = y1 * s;
        products[2 * width + k] = y2 * s;
        if (own.dof < 0) own = TB_VALUE(tb_team_column){at, s, {y0, y1, y2}};
    }
    return own;
}

TB_STATIC inline tb_real tb_team_moved(const tb_team_column *own, const tb_real *change, bool twins)
{
    const tb_real y0 = own->y[0] * change[0], y1 = own->y[1] * change[1];
    const tb_real y2 = own->y[2] * change[2];
    return twins ? (own->s + y0) + (y1 + y2) : own->s + (y0 + y1 + y2);
}

/* s moves by a contact's change. */
TB_STATIC inline void tb_team_move_columns(const tb_sweeper *sweeper, const tb_block *source,
                                           const uint16_t *dof, const tb_team_column *first,
                                           const tb_real *change, bool twins)
{
    const tb_problem *problem = sweeper->problem;
    const tb_real *y = problem->values + source->value;
    const int32_t width = source->width;
    if (first->dof >= 0) sweeper->s[first->dof] = tb_team_moved(first, change, twins);
    TB_ROLLED
    for (int32_t k = tb_team_lane() + tb_team_lanes(); k < width; k += tb_team_lanes()) {
        const int32_t at = dof ? dof[k] : tb_block_dof(problem, source, k);
        const tb_team_column own = {at, sweeper->s[at], {y[k], y[width + k], y[2 * width + k]}};
        sweeper->s[at] = tb_team_moved(&own, change, twins);
    }
}

/* A contact by rows: its products by all lanes, each row's sum by one; there are three lanes or
 * more.
 * Where nothing changes s stays as it is. */
TB_STATIC TB_NO_INLINE double tb_team_move_contact(tb_sweeper *sweeper, int32_t index)
{
    const tb_problem *problem = sweeper->problem;
    const tb_sweep_block *block = &sweeper->blocks[index];
    const tb_block *source = &problem->blocks[index];
    const int32_t lane = tb_team_lane(), i = lane < 3 ? lane : 2, width = source->width;
    const uint16_t *dof = tb_block_columns(problem, index);
    tb_real *kept = sweeper->lambda + block->row, *products = tb_team_products(sweeper, width);
    tb_real own = problem->c[block->row + i], lambda[3] = {kept[0], kept[1], kept[2]}, change[3];
    const tb_team_column column = tb_team_multiply(sweeper, source, dof, products);
    tb_team_sync();
    own = tb_team_sum(products + i * width, width, block->shape) + own;
    if (problem->compliance) own += problem->compliance[block->row + i] * kept[i];
    tb_real xi[3] = {own, own, own};
    tb_team_pass(&xi[0], sizeof xi[0], 0);
    tb_team_pass(&xi[1], sizeof xi[1], 1);
    tb_team_pass(&xi[2], sizeof xi[2], 2);
    tb_update_coulomb(block, true, xi, lambda, change);
    tb_team_sync(); /* all lanes have read the old values */
    if (lane == 0) {
        kept[0] = lambda[0];
        kept[1] = lambda[1];
        kept[2] = lambda[2];
    }
    if (change[0] == 0 && change[1] == 0 && change[2] == 0) return 0;
    tb_team_move_columns(sweeper, source, dof, &column, change, block->shape != TB_SHAPE_OF_ANY);
    tb_team_sync();
    return tb_contact_measure(block, change);
}

TB_STATIC inline bool tb_team_is_listed(const tb_sweeper *sweeper, int32_t index)
{
    return sweeper->storage == TB_STORAGE_FACTORIZED &&
           sweeper->problem->blocks[index].width <= TB_LISTED_COLUMNS;
}

/* A block without a link, by its kind. */
TB_STATIC TB_NO_INLINE double tb_team_move_unlinked(tb_sweeper *sweeper, int32_t index)
{
    const tb_sweep_block *block = &sweeper->blocks[index];
    if (tb_team_is_listed(sweeper, index) && tb_team_lanes() > 2 && block->law == TB_LAW_COULOMB &&
        !block->block_solve)
        return tb_team_move_contact(sweeper, index);
    return tb_team_move_any(sweeper, index);
}

/* Four neighbouring numbers, read in few accesses. */
typedef struct TB_ALIGNED(16) tb_team_quad {
    tb_real n[4];
} tb_team_quad;

/* A row's sum in the order of tb_team_sum, over products padded with zeros to a multiple of
 * four: a sum that begins with +0 is never -0, so that adding +0 does not change it. */
TB_STATIC inline tb_real tb_team_sum_near(const tb_real *p, int32_t filled, int shape)
{
    if (shape != TB_SHAPE_OF_ANY) return tb_team_sum(p, 0, shape);
    const tb_team_quad zero = {{0, 0, 0, 0}}, a = *(const tb_team_quad *)p;
    const tb_team_quad b = filled > 4 ? *(const tb_team_quad *)(p + 4) : zero;
    tb_real sum = (tb_real)0 + a.n[0] + a.n[1] + a.n[2] + a.n[3];
    sum = sum + b.n[0] + b.n[1] + b.n[2] + b.n[3];
    TB_ROLLED
    for (int32_t k = 8; k < filled; k += 4) {
        const tb_team_quad q = *(const tb_team_quad *)(p + k);
        sum = sum + q.n[0] + q.n[1] + q.n[2] + q.n[3];
    }
    return sum;
}

/* Arrays of a sweep in fast memory, for its links. */
typedef struct tb_team_sweep {
    tb_real *lambda, *s, *near;
    const tb_real *compliance;
    int32_t lane, lanes;
} tb_team_sweep;

/* The products of a column from the second of a lane on. */
TB_STATIC inline void tb_team_multiply_far(const tb_team_sweep *w, const tb_team_link *link,
                                           int32_t filled)
{
    TB_ROLLED
    for (int32_t k = w->lane + w->lanes; k < filled; k += w->lanes) {
        const bool there = k < link->width;
        const tb_real s = there ? w->s[link->dof[k]] : 0;
        TB_ROLLED
        for (int32_t i = 0; i < link->rows; i++)
            w->near[i * filled + k] = there ? link->y[i * link->width + k] * s : 0;
    }
}

/* A block of one row; every lane sums. Where nothing changes s stays as it is. */
TB_STATIC inline double tb_team_move_row(const tb_team_sweep *w, const tb_team_link *link)
{
    const int32_t lane = w->lane, width = link->width, filled = (width + 3) & ~3;
    tb_real lambda = w->lambda[link->row], y = 0, s = 0, change;
    int32_t dof = 0;
    if (lane < width) {
        dof = link->dof[lane];
        y = link->y[lane];
        s = w->s[dof];
    }
    if (lane < filled) w->near[lane] = y * s;
    if (filled > w->lanes) tb_team_multiply_far(w, link, filled);
    tb_team_sync();
    tb_real xi = tb_team_sum_near(w->near, filled, TB_SHAPE_OF_ANY) + link->c[0];
    if (w->compliance) xi += w->compliance[link->row] * lambda;
    tb_sweep_block block;
    tb_block source;
    block.law = link->law;
    block.r_normal = link->r_normal;
    block.g[0] = link->g_normal;
    source.lower = link->carry[0];
    source.upper = link->carry[1];
    const double measure = tb_move_row(&block, &source, xi, &lambda, &change);
    if (lane == 0) w->lambda[link->row] = lambda; /* all have read it */
    if (change != 0) {
        if (lane < width) w->s[dof] = s + y * change;
        TB_ROLLED
        for (int32_t k = lane + w->lanes; k < width; k += w->lanes)
            w->s[link->dof[k]] += link->y[k] * change;
    }
    tb_team_sync();
    return change != 0 ? measure : 0;
}

/* tb_team_move_contact of a contact with a link. */
TB_STATIC inline double tb_team_move_linked(const tb_team_sweep *w, const tb_team_link *link)
{
    const int32_t lane = w->lane, width = link->width, filled = (width + 3) & ~3;
    tb_real *kept = w->lambda + link->row;
    tb_real lambda[3] = {kept[0], kept[1], kept[2]}, change[3];
    const bool twins = link->shape != TB_SHAPE_OF_ANY;
    tb_team_column column = {0, 0, {0, 0, 0}};
    if (lane < width) {
        const tb_real *y = link->y + lane;
        column.dof = link->dof[lane];
        column.y[0] = y[0];
        column.y[1] = y[width];
        column.y[2] = y[2 * width];
        column.s = w->s[column.dof];
    }
    if (lane < filled) {
        w->near[lane] = column.y[0] * column.s;
        w->near[filled + lane] = column.y[1] * column.s;
        w->near[2 * filled + lane] = column.y[2] * column.s;
    }
    if (filled > w->lanes) tb_team_multiply_far(w, link, filled);
    tb_team_sync();
    const int32_t i = lane < 3 ? lane : 2;
    tb_real own = lane == 0 ? link->c[0] : lane == 1 ? link->c[1] : link->c[2];
    own = tb_team_sum_near(w->near + i * filled, filled, link->shape) + own;
    if (w->compliance)
        own += w->compliance[link->row + i] * (lane == 0   ? lambda[0]
                                               : lane == 1 ? lambda[1]
                                                           : lambda[2]);
    tb_real xi[3] = {own, own, own};
    tb_team_pass(&xi[0], sizeof xi[0], 0);
    tb_team_pass(&xi[1], sizeof xi[1], 1);
    tb_team_pass(&xi[2], sizeof xi[2], 2);
    tb_sweep_block block;
    block.mu = link->mu;
    block.r_normal = link->r_normal;
    block.r_friction = link->r_friction;
    block.g[0] = link->g_normal;
    block.g[3] = link->carry[0];
    block.g[6] = link->carry[1];
    block.g[4] = block.g[8] = link->g_friction;
    tb_update_coulomb(&block, true, xi, lambda, change);
    if (lane == 0) { /* all lanes have read them before they are overwritten */
        kept[0] = lambda[0];
        kept[1] = lambda[1];
        kept[2] = lambda[2];
    }
    const bool changes = !(change[0] == 0 && change[1] == 0 && change[2] == 0);
    if (changes) {
        if (lane < width) w->s[column.dof] = tb_team_moved(&column, change, twins);
        TB_ROLLED
        for (int32_t k = lane + w->lanes; k < width; k += w->lanes) {
            const tb_real *y = link->y + k;
            tb_real *to = &w->s[link->dof[k]];
            const tb_team_column more = {0, *to, {y[0], y[width], y[2 * width]}};
            *to = tb_team_moved(&more, change, twins);
        }
    }
    tb_team_sync();
    return changes ? tb_contact_measure(&block, change) : 0;
}

TB_STATIC inline double tb_team_gauss_seidel(tb_sweeper *sweeper)
{
    const tb_team_link *links = sweeper->links;
    const int32_t blocks = sweeper->problem->number_of_blocks;
    const tb_team_sweep w = {.lambda = sweeper->lambda,
                             .s = sweeper->s,
                             .near = tb_team_near(),
                             .compliance = sweeper->problem->compliance,
                             .lane = tb_team_lane(),
                             .lanes = tb_team_lanes()};
    double measure = 0;
    TB_ROLLED
    for (int32_t b = 0; b < blocks; b++) {
        if (links) {
            const tb_team_link link = links[b];
            if (link.dof) {
                measure +=
                    link.rows == 1 ? tb_team_move_row(&w, &link) : tb_team_move_linked(&w, &link);
                continue;
            }
        }
        measure += tb_team_move_unlinked(sweeper, b);
    }
    tb_team_sync(); /* the last impulses are written */
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
