/* Applies and assembles a contact problem's matrix, and reads contact statuses from a solution. */
#include "base/team.h"
#include "contact/judge.h"

#include <string.h>

/* sum + the terms of column k over blocks with the same runs, in block order */
TB_STATIC tb_real scatter_column(const tb_problem *problem, int32_t first, int32_t end, int32_t k,
                                 const tb_real *lambda, tb_real sum)
{
    const int32_t rows = problem->blocks[first].rows, width = problem->blocks[first].width;
    if (rows == 3) {
        for (int32_t b = first; b < end; b++) {
            const tb_real *l = lambda + problem->blocks[b].row;
            const tb_real *y = problem->values + problem->blocks[b].value + k;
            sum = sum + l[0] * y[0] + l[1] * y[width] + l[2] * y[2 * width];
        }
        return sum;
    }
    TB_ROLLED
    for (int32_t b = first; b < end; b++) {
        const tb_real *l = lambda + problem->blocks[b].row;
        const tb_real *y = problem->values + problem->blocks[b].value + k;
        TB_ROLLED
        for (int32_t i = 0; i < rows; i++) sum += l[i] * y[i * width];
    }
    return sum;
}

/* s += (rows of the blocks)' lambda by a team, for blocks with the same runs: a lane takes
 * columns, so that each sum runs in the order of the rows */
TB_STATIC void scatter_together(const tb_problem *problem, int32_t first, int32_t end,
                                const tb_real *lambda, tb_real *s)
{
    const tb_block *block = &problem->blocks[first];
    const uint16_t *dofs = tb_block_columns(problem, first);
    TB_EACH (k, block->width) {
        tb_real *to = &s[dofs ? dofs[k] : tb_block_dof(problem, block, k)];
        *to = scatter_column(problem, first, end, k, lambda, *to);
    }
    tb_team_sync();
}

/* s += (rows of the block)' lambda */
TB_STATIC void block_scatter(const tb_problem *problem, const tb_block *block,
                             const tb_real *lambda, tb_real *s)
{
    const tb_real *value = problem->values + block->value;
    int32_t first = 0;
#ifndef TB_DEVICE /* three rows at once; each element of s adds them in order */
    if (block->rows == 3) {
        const tb_real *l = lambda + block->row;
        const tb_real *y0 = value, *y1 = y0 + block->width, *y2 = y1 + block->width;
        for (int32_t k = 0; k < block->segments; k++) {
            const tb_segment run = problem->segments[block->segment + k];
            tb_real *to = s + run.dof;
            for (int32_t j = 0; j < run.count; j++)
                to[j] = to[j] + l[0] * y0[j] + l[1] * y1[j] + l[2] * y2[j];
            y0 += run.count;
            y1 += run.count;
            y2 += run.count;
        }
        first = 3;
    }
#endif
    for (int32_t i = first; i < block->rows; i++) {
        const tb_real l = lambda[block->row + i];
        const tb_real *row = value + (int64_t)i * block->width;
        for (int32_t k = 0; k < block->segments; k++) {
            const tb_segment segment = problem->segments[block->segment + k];
            TB_ROLLED
            for (int32_t j = 0; j < segment.count; j++) s[segment.dof + j] += l * row[j];
            row += segment.count;
        }
    }
}

/* (row of the block) . s */
TB_STATIC tb_real row_gather(const tb_problem *problem, const tb_block *block, int32_t i,
                             const tb_real *s)
{
    const tb_real *row = problem->values + block->value + (int64_t)i * block->width;
    tb_real sum = 0;
    for (int32_t k = 0; k < block->segments; k++) {
        const tb_segment segment = problem->segments[block->segment + k];
        TB_ROLLED
        for (int32_t j = 0; j < segment.count; j++) sum += row[j] * s[segment.dof + j];
        row += segment.count;
    }
    return sum;
}

TB_EXTERN void tb_problem_whiten(const tb_problem *problem, const tb_real *lambda, tb_real *s)
{
    tb_team_clear(s, (size_t)problem->number_of_dofs * sizeof(tb_real));
    tb_team_sync();
    tb_problem_whiten_blocks(problem, 0, problem->number_of_blocks, lambda, s);
}

TB_EXTERN void tb_problem_whiten_blocks(const tb_problem *problem, int32_t first, int32_t end,
                                        const tb_real *lambda, tb_real *s)
{
    if (tb_team_is_one()) {
        for (int32_t b = first; b < end; b++)
            block_scatter(problem, &problem->blocks[b], lambda, s);
        return;
    }
    TB_ROLLED
    for (int32_t b = first; b < end;) {
        const int32_t alike = tb_blocks_alike(problem, b, end);
        scatter_together(problem, b, alike, lambda, s);
        b = alike;
    }
}

TB_CALLED tb_real matrix_row_times(const tb_matrix *matrix, int32_t row, const tb_real *x)
{
    tb_real sum = 0;
    if (matrix->dense) {
        const tb_real *value = matrix->dense + (int64_t)row * matrix->columns;
        TB_ROLLED
        for (int32_t j = 0; j < matrix->columns; j++) sum += value[j] * x[j];
    } else {
        TB_ROLLED
        for (int32_t k = matrix->row_start[row]; k < matrix->row_start[row + 1]; k++)
            sum += matrix->value[k] * x[matrix->column[k]];
    }
    return sum;
}

TB_EXTERN void tb_problem_apply(const tb_problem *problem, const tb_real *lambda, tb_real *s,
                                tb_real *xi)
{
    if (problem->values) {
        tb_problem_whiten(problem, lambda, s);
        TB_EACH (b, problem->number_of_blocks) {
            const tb_block *block = &problem->blocks[b];
            for (int32_t i = 0; i < block->rows; i++)
                xi[block->row + i] = row_gather(problem, block, i, s) + problem->c[block->row + i];
        }
    } else {
        TB_EACH (i, problem->number_of_rows)
            xi[i] = matrix_row_times(problem->matrix, i, lambda) + problem->c[i];
    }
    tb_team_sync();
    if (!problem->compliance) return;
    TB_EACH (i, problem->number_of_rows) xi[i] += problem->compliance[i] * lambda[i];
    tb_team_sync();
}

/* product of two rows by the dofs that both blocks' runs share */
TB_STATIC tb_real rows_product(const tb_problem *problem, const tb_block *a, int32_t i,
                               const tb_block *b, int32_t j)
{
    const tb_real *left = problem->values + a->value + (int64_t)i * a->width;
    tb_real sum = 0;
    for (int32_t p = 0; p < a->segments; p++) {
        const tb_segment s = problem->segments[a->segment + p];
        const tb_real *right = problem->values + b->value + (int64_t)j * b->width;
        for (int32_t q = 0; q < b->segments; q++) {
            const tb_segment t = problem->segments[b->segment + q];
            const int32_t from = s.dof > t.dof ? s.dof : t.dof;
            const int32_t s_end = s.dof + s.count, t_end = t.dof + t.count;
            const int32_t to = s_end < t_end ? s_end : t_end;
            TB_ROLLED
            for (int32_t k = from; k < to; k++) sum += left[k - s.dof] * right[k - t.dof];
            right += t.count;
        }
        left += s.count;
    }
    return sum;
}

/* Y Y' of a block's three rows, all six sums at once */
TB_STATIC void three_rows_product(const tb_real *y, int32_t width, tb_real g[9])
{
    tb_real aa = 0, ab = 0, ac = 0, bb = 0, bc = 0, cc = 0;
    TB_ROLLED
    for (int32_t k = 0; k < width; k++) {
        const tb_real a = y[k], b = y[width + k], c = y[2 * width + k];
        aa += a * a;
        ab += b * a;
        bb += b * b;
        ac += c * a;
        bc += c * b;
        cc += c * c;
    }
    g[0] = aa;
    g[1] = g[3] = ab;
    g[2] = g[6] = ac;
    g[4] = bb;
    g[5] = g[7] = bc;
    g[8] = cc;
}

/* product of rows i and j of one block: same runs, each dof once */
TB_CALLED tb_real own_rows_product(const tb_problem *problem, const tb_block *block, int32_t i,
                                   int32_t j)
{
    const tb_real *left = problem->values + block->value + (int64_t)i * block->width;
    const tb_real *right = problem->values + block->value + (int64_t)j * block->width;
    tb_real sum = 0;
    TB_ROLLED
    for (int32_t k = 0; k < block->width; k++) sum += left[k] * right[k];
    return sum;
}

TB_EXTERN void tb_problem_local_block(const tb_problem *problem, int32_t block_index, tb_real *g)
{
    const tb_block *block = &problem->blocks[block_index];
    const int32_t n = block->rows;
    const bool three = problem->values && n == 3;
    if (three) three_rows_product(problem->values + block->value, block->width, g);
    TB_ROLLED
    for (int32_t i = 0; !three && i < n; i++) {
        const int32_t row = block->row + i;
        if (problem->values) {
            TB_ROLLED
            for (int32_t j = 0; j <= i; j++)
                g[i * n + j] = g[j * n + i] = own_rows_product(problem, block, i, j);
        } else if (problem->matrix->dense) {
            const tb_matrix *matrix = problem->matrix;
            TB_ROLLED
            for (int32_t j = 0; j < n; j++)
                g[i * n + j] = matrix->dense[(int64_t)row * matrix->columns + block->row + j];
        } else {
            const tb_matrix *matrix = problem->matrix;
            TB_ROLLED
            for (int32_t j = 0; j < n; j++) g[i * n + j] = 0;
            TB_ROLLED
            for (int32_t k = matrix->row_start[row]; k < matrix->row_start[row + 1]; k++) {
                const int32_t j = matrix->column[k] - block->row;
                if (j >= 0 && j < n) g[i * n + j] += matrix->value[k];
            }
        }
    }
    TB_ROLLED
    for (int32_t i = 0; problem->compliance && i < n; i++)
        g[i * n + i] += problem->compliance[block->row + i];
}

/* The Delassus matrix pair by pair, without compliance. */
TB_STATIC void delassus_by_pairs(const tb_problem *problem, tb_real *g)
{
    const int64_t n = problem->number_of_rows;
    TB_EACH (a, problem->number_of_blocks) {
        for (int32_t b = 0; b <= a; b++) {
            const tb_block *left = &problem->blocks[a], *right = &problem->blocks[b];
            for (int32_t i = 0; i < left->rows; i++)
                for (int32_t j = 0; j < right->rows; j++) {
                    const tb_real value = rows_product(problem, left, i, right, j);
                    const int64_t row = left->row + i, column = right->row + j;
                    g[row * n + column] = value;
                    g[column * n + row] = value;
                }
        }
    }
}

#ifdef TB_DEVICE
TB_STATIC void delassus_of_rows(const tb_problem *problem, tb_real *g)
{
    delassus_by_pairs(problem, g);
}
#else
enum { SPREAD_DOFS = 512 }; /* 4 KiB of stack */

/* A row of a block at its dofs; NULL: zeros. */
TB_STATIC void spread_row(const tb_problem *problem, const tb_block *block, const tb_real *row,
                          tb_real *spread)
{
    for (int32_t s = 0; s < block->segments; s++) {
        const tb_segment run = problem->segments[block->segment + s];
        for (int32_t k = 0; k < run.count; k++) spread[run.dof + k] = row ? *row++ : 0;
    }
}

/* Product of a row of a block with one that is spread over all dofs. */
TB_STATIC tb_real spread_product(const tb_problem *problem, const tb_block *block,
                                 const tb_real *row, const tb_real *spread)
{
    tb_real sum = 0;
    for (int32_t s = 0; s < block->segments; s++) {
        const tb_segment run = problem->segments[block->segment + s];
        for (int32_t k = 0; k < run.count; k++) sum += *row++ * spread[run.dof + k];
    }
    return sum;
}

/* The same numbers: a row is spread over the dofs once for all rows before it, instead of a search
 * for common dofs in each pair. */
TB_STATIC void delassus_of_rows(const tb_problem *problem, tb_real *g)
{
    const int64_t n = problem->number_of_rows;
    tb_real spread[SPREAD_DOFS] = {0};
    if (problem->number_of_dofs > SPREAD_DOFS) {
        delassus_by_pairs(problem, g);
        return;
    }
    for (int32_t a = 0; a < problem->number_of_blocks; a++) {
        const tb_block *left = &problem->blocks[a];
        for (int32_t i = 0; i < left->rows; i++) {
            const int64_t row = left->row + i;
            spread_row(problem, left, problem->values + left->value + i * left->width, spread);
            for (int32_t b = 0; b <= a; b++) {
                const tb_block *right = &problem->blocks[b];
                const tb_real *values = problem->values + right->value;
                for (int32_t j = 0; j < right->rows; j++, values += right->width)
                    g[row * n + right->row + j] = g[(right->row + j) * n + row] =
                        spread_product(problem, right, values, spread);
            }
            spread_row(problem, left, NULL, spread);
        }
    }
}
#endif

TB_EXTERN tb_status tb_problem_delassus(const tb_problem *problem, tb_real *g)
{
    const int32_t n = problem->number_of_rows;
    tb_team_clear(g, (size_t)n * (size_t)n * sizeof(tb_real));
    tb_team_sync();
    if (problem->values) {
        delassus_of_rows(problem, g);
    } else if (problem->matrix->dense) {
        tb_team_copy(g, problem->matrix->dense, (size_t)n * (size_t)n * sizeof(tb_real));
    } else {
        const tb_matrix *matrix = problem->matrix;
        TB_EACH (i, n)
            for (int32_t k = matrix->row_start[i]; k < matrix->row_start[i + 1]; k++)
                g[(int64_t)i * n + matrix->column[k]] += matrix->value[k];
    }
    tb_team_sync();
    if (!problem->compliance) return TB_OK;
    TB_EACH (i, n) g[(int64_t)i * n + i] += problem->compliance[i];
    tb_team_sync();
    return TB_OK;
}

TB_EXTERN void tb_problem_statuses(const tb_problem *problem, const tb_real *lambda,
                                   uint8_t *statuses)
{
    TB_EACH (b, problem->number_of_blocks)
        statuses[b] = tb_block_status(&problem->blocks[b], lambda + problem->blocks[b].row);
    tb_team_sync();
}
