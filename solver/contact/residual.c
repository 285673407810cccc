/* Residuals of a proposed solution, in the measures of the field and of the theses.
 *
 * Every sum is in double, whatever the working precision, and starts from the problem's own
 * numbers, never from a solver's intermediate results. */
#include "base/team.h"
#include "contact/judge.h"

#include <math.h>
#include <string.h>

#ifdef TB_DEVICE
enum { UNROLLS = 0 }; /* on a device short code is faster */
#else
enum { UNROLLS = 1 };
#endif

/* sum + the terms of column k over blocks with the same runs, in block order. Rows with zero
 * impulse are skipped. */
TB_STATIC double whiten_column(const tb_problem *problem, int32_t first, int32_t end, int32_t k,
                               const tb_real *lambda, const tb_real *fine, double sum)
{
    const int32_t rows = problem->blocks[first].rows, width = problem->blocks[first].width;
    if (rows == 3) {
        for (int32_t b = first; b < end; b++) {
            const int32_t row = problem->blocks[b].row;
            const tb_real *y = problem->values + problem->blocks[b].value + k;
            double load[3];
            for (int i = 0; i < 3; i++) load[i] = tb_impulse_at(lambda, fine, row + i);
            const double more = sum + load[0] * (double)y[0] + load[1] * (double)y[width] +
                                load[2] * (double)y[2 * width];
            if (load[0] != 0 || load[1] != 0 || load[2] != 0) sum = more;
        }
        return sum;
    }
    TB_ROLLED
    for (int32_t b = first; b < end; b++) {
        const tb_real *y = problem->values + problem->blocks[b].value + k;
        TB_ROLLED
        for (int32_t i = 0; i < rows; i++) {
            const double load = tb_impulse_at(lambda, fine, problem->blocks[b].row + i);
            if (load != 0) sum += load * (double)y[i * width];
        }
    }
    return sum;
}

/* The same by a team: a lane takes columns of blocks with the same runs. */
TB_STATIC void whiten_together(const tb_problem *problem, const tb_real *lambda,
                               const tb_real *fine, double *s)
{
    TB_ROLLED
    for (int32_t b = 0; b < problem->number_of_blocks;) {
        const tb_block *block = &problem->blocks[b];
        const uint16_t *dofs = tb_block_columns(problem, b);
        const int32_t alike = tb_blocks_alike(problem, b, problem->number_of_blocks);
        TB_EACH (k, block->width) {
            double *to = &s[dofs ? dofs[k] : tb_block_dof(problem, block, k)];
            *to = whiten_column(problem, b, alike, k, lambda, fine, *to);
        }
        tb_team_sync();
        b = alike;
    }
}

/* Up to three rows of a block from `first` on at once: each element of s adds them in order. The
 * runs of free bodies, the most common, have a loop of fixed length. */
TB_STATIC void whiten_rows(const tb_problem *problem, const tb_block *block, int32_t first,
                           const double l[3], double *s)
{
    const int32_t width = block->width, left = block->rows - first;
    const tb_real *y0 = problem->values + block->value + (int64_t)first * width;
    const tb_real *y1 = left > 1 ? y0 + width : y0, *y2 = left > 2 ? y1 + width : y1;
    const tb_segment *run = problem->segments + block->segment;
    for (int32_t k = 0; k < block->segments; k++) {
        double *to = s + run[k].dof;
        if (UNROLLS && run[k].count == 6) {
            double sum[6]; /* local sums, because the compiler must assume that s aliases Y */
            for (int j = 0; j < 6; j++)
                sum[j] = to[j] + l[0] * (double)y0[j] + l[1] * (double)y1[j] + l[2] * (double)y2[j];
            for (int j = 0; j < 6; j++) to[j] = sum[j];
        } else {
            for (int32_t j = 0; j < run[k].count; j++)
                to[j] = to[j] + l[0] * (double)y0[j] + l[1] * (double)y1[j] + l[2] * (double)y2[j];
        }
        y0 += run[k].count;
        y1 += run[k].count;
        y2 += run[k].count;
    }
}

/* xi of the factorized form: s = Y lambda in double, then each row in turn */
TB_STATIC void whiten(const tb_problem *problem, const tb_real *lambda, const tb_real *fine,
                      double *s)
{
    if (!tb_team_is_one()) {
        tb_team_clear(s, (size_t)problem->number_of_dofs * sizeof(double));
        tb_team_sync();
        whiten_together(problem, lambda, fine, s);
        return;
    }
    memset(s, 0, (size_t)problem->number_of_dofs * sizeof(double));
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        for (int32_t i = 0; i < block->rows; i += 3) {
            const int32_t left = block->rows - i;
            double load[3];
            for (int32_t k = 0; k < 3; k++)
                load[k] = k < left ? tb_impulse_at(lambda, fine, block->row + i + k) : 0;
            if (load[0] != 0 || load[1] != 0 || load[2] != 0)
                whiten_rows(problem, block, i, load, s);
        }
    }
}

/* up to three rows of the factorized form from `first` on, at once */
TB_STATIC void factorized_rows(const tb_problem *problem, const tb_block *block, int32_t first,
                               const double *s, double *x)
{
    const int32_t width = block->width, left = block->rows - first - 1;
    const tb_real *y0 = problem->values + block->value + (int64_t)first * width;
    const tb_real *y1 = left > 0 ? y0 + width : y0, *y2 = left > 1 ? y1 + width : y1;
    const tb_segment *run = problem->segments + block->segment;
    const int32_t row = block->row + first, second = left > 0, third = second + (left > 1);
    double x0 = (double)problem->c[row], x1 = (double)problem->c[row + second];
    double x2 = (double)problem->c[row + third];
    TB_ROLLED
    for (int32_t k = 0; k < block->segments; k++) {
        const double *from = s + run[k].dof;
        double p0 = 0, p1 = 0, p2 = 0;
        if (UNROLLS && run[k].count == 6) {
            for (int j = 0; j < 6; j++) {
                p0 += (double)y0[j] * from[j];
                p1 += (double)y1[j] * from[j];
                p2 += (double)y2[j] * from[j];
            }
        } else {
            TB_ROLLED
            for (int32_t j = 0; j < run[k].count; j++) {
                p0 += (double)y0[j] * from[j];
                p1 += (double)y1[j] * from[j];
                p2 += (double)y2[j] * from[j];
            }
        }
        y0 += run[k].count;
        y1 += run[k].count;
        y2 += run[k].count;
        x0 += p0;
        x1 += p1;
        x2 += p2;
    }
    x[first] = x0;
    if (left > 0) x[first + 1] = x1;
    if (left > 1) x[first + 2] = x2;
}

TB_STATIC TB_NO_INLINE double matrix_row_xi(const tb_problem *problem, int32_t row,
                                            const tb_real *lambda, const tb_real *fine)
{
    double part = 0;
    if (problem->matrix->dense) {
        const tb_real *value = problem->matrix->dense + (int64_t)row * problem->matrix->columns;
        TB_ROLLED
        for (int32_t j = 0; j < problem->matrix->columns; j++)
            part += (double)value[j] * tb_impulse_at(lambda, fine, j);
    } else {
        const tb_matrix *matrix = problem->matrix;
        TB_ROLLED
        for (int32_t k = matrix->row_start[row]; k < matrix->row_start[row + 1]; k++)
            part += (double)matrix->value[k] * tb_impulse_at(lambda, fine, matrix->column[k]);
    }
    return (double)problem->c[row] + part;
}

/* Sums and maxima of the residuals, of one block or of all. */
typedef struct tb_judgement {
    double natural, complementarity, cone, penetration;
} tb_judgement;

TB_STATIC void add_judgement(tb_judgement *all, const tb_judgement *one)
{
    all->natural += one->natural;
    all->complementarity = tb_larger(all->complementarity, one->complementarity);
    all->cone = tb_larger(all->cone, one->cone);
    all->penetration = tb_larger(all->penetration, one->penetration);
}

/* Judges one block, and writes its rows of xi. */
TB_STATIC tb_judgement judge_block(const tb_problem *problem, const tb_block *block,
                                   const tb_real *lambda, const tb_real *fine, const double *s,
                                   tb_real *xi)
{
    double l[TB_BLOCK_ROWS], x[TB_BLOCK_ROWS];
    TB_ROLLED
    for (int32_t i = 0; problem->values && i < block->rows; i += 3)
        factorized_rows(problem, block, i, s, x);
    TB_ROLLED
    for (int32_t i = 0; i < block->rows; i++) {
        const int32_t row = block->row + i;
        l[i] = tb_impulse_at(lambda, fine, row);
        if (!problem->values) x[i] = matrix_row_xi(problem, row, lambda, fine);
        if (problem->compliance) x[i] += (double)problem->compliance[row] * l[i];
        if (xi) xi[row] = TB_R(x[i]);
    }
    const bool one_sided = block->law != TB_LAW_BILATERAL && block->law != TB_LAW_BOX;
    tb_judgement own;
    own.natural = tb_block_natural(block, l, x);
    own.complementarity = one_sided ? fabs(l[0] * x[0]) : 0;
    own.cone = tb_block_cone_excess(block, l);
    own.penetration = one_sided ? -x[0] : 0;
    return own;
}

/* All blocks by a team. Lanes store their terms, so that sums run in the order of the blocks;
 * maxima do not depend on the order. */
TB_STATIC tb_status judge_together(const tb_problem *problem, const tb_real *lambda,
                                   const tb_real *fine, tb_arena *scratch, const double *s,
                                   tb_real *xi, tb_judgement *all)
{
    const int32_t blocks = problem->number_of_blocks, lanes = tb_team_lanes();
    double *natural = TB_ARENA_ARRAY(scratch, double, blocks);
    tb_judgement *largest = TB_ARENA_ARRAY(scratch, tb_judgement, lanes);
    tb_judgement mine = {0, 0, 0, 0};
    if (!natural || !largest) return TB_RESOURCE_EXHAUSTED;
    TB_EACH (b, blocks) {
        tb_judgement own = judge_block(problem, &problem->blocks[b], lambda, fine, s, xi);
        natural[b] = own.natural;
        own.natural = 0;
        add_judgement(&mine, &own);
    }
    largest[tb_team_lane()] = mine;
    tb_team_sync();
    TB_ROLLED
    for (int32_t k = 0; k < lanes && k < blocks; k++) add_judgement(all, &largest[k]);
    for (int32_t b = 0; b < blocks; b++) all->natural += natural[b];
    return TB_OK;
}

TB_EXTERN double tb_problem_c_squared(const tb_problem *problem)
{
    if (problem->c_squared > 0) return problem->c_squared;
    double sum = 0;
    for (int32_t i = 0; i < problem->number_of_rows; i++)
        sum += (double)problem->c[i] * (double)problem->c[i];
    return sum;
}

TB_EXTERN tb_status tb_problem_residuals(const tb_problem *problem, const tb_real *lambda,
                                         tb_arena *scratch, tb_real *xi, tb_residuals *residuals)
{
    return tb_problem_judge(problem, lambda, NULL, scratch, NULL, xi, residuals);
}

TB_EXTERN tb_status tb_problem_judge(const tb_problem *problem, const tb_real *lambda,
                                     const tb_real *fine, tb_arena *scratch, double *whitened,
                                     tb_real *xi, tb_residuals *residuals)
{
    const tb_arena_mark mark = tb_arena_get_mark(scratch);
    double *s = NULL;
    if (problem->values) {
        s = whitened ? whitened : TB_ARENA_ARRAY(scratch, double, problem->number_of_dofs);
        if (!s) return TB_RESOURCE_EXHAUSTED;
        whiten(problem, lambda, fine, s);
    }
    const int32_t blocks = problem->number_of_blocks;
    tb_judgement all = {0, 0, 0, 0};
    if (!tb_team_is_one()) {
        const tb_status status = judge_together(problem, lambda, fine, scratch, s, xi, &all);
        if (status != TB_OK) return status;
    } else {
        TB_ROLLED
        for (int32_t b = 0; b < blocks; b++) {
            const tb_judgement own = judge_block(problem, &problem->blocks[b], lambda, fine, s, xi);
            add_judgement(&all, &own);
        }
    }
    const double c2 = tb_problem_c_squared(problem);
    tb_team_sync(); /* other lanes may reuse the returned memory */
    tb_arena_return_to(scratch, mark);

    residuals->natural_absolute = tb_residual_known(sqrt(all.natural));
    residuals->natural =
        tb_residual_known(c2 > 0 ? sqrt(all.natural) / sqrt(c2) : sqrt(all.natural));
    residuals->complementarity = tb_residual_known(all.complementarity);
    residuals->cone = tb_residual_known(all.cone);
    residuals->penetration_velocity = tb_residual_known(all.penetration);
    return TB_OK;
}
TB_EXTERN double tb_increment_theta(const tb_real *lambda, const tb_real *previous, int32_t rows)
{
    double sum = 0;
    TB_ROLLED
    for (int32_t i = 0; i < rows; i++) {
        const double e = (double)lambda[i] - (double)previous[i];
        sum += e * e;
    }
    return tb_residual_known(sum);
}

TB_EXTERN double tb_increment_epsilon(const tb_real *lambda, const tb_real *previous, int32_t rows)
{
    double largest = 0;
    for (int32_t i = 0; i < rows; i++) {
        const double e = fabs((double)lambda[i] - (double)previous[i]);
        if (!(e <= largest)) largest = e; /* NaN passes this test and stays */
        if (isnan(e)) return TB_RESIDUAL_UNKNOWN;
    }
    return tb_residual_known(largest);
}

TB_EXTERN bool tb_increment_element_test(const tb_real *lambda, const tb_real *previous,
                                         int32_t rows, double relative, double absolute)
{
    for (int32_t i = 0; i < rows; i++)
        if (!tb_element_converged(lambda[i], previous[i], relative, absolute)) return false;
    return true;
}

TB_EXTERN bool tb_increment_norm_test(const tb_real *lambda, const tb_real *previous, int32_t rows,
                                      double relative, double absolute)
{
    double increment = 0, size = 0;
    TB_ROLLED
    for (int32_t i = 0; i < rows; i++) {
        const double e = (double)lambda[i] - (double)previous[i];
        increment += e * e;
        size += (double)previous[i] * (double)previous[i];
    }
    return sqrt(increment) <= sqrt(size) * relative + absolute;
}

TB_EXTERN bool tb_problem_one_sided_test(const tb_problem *problem, const tb_real *lambda,
                                         const tb_real *xi, const tb_real *r, double tolerance)
{
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        if (!tb_block_one_sided(block->law, block->rows, block->mu, block->lower, block->upper,
                                lambda + block->row, xi + block->row, r + block->row, tolerance))
            return false;
    }
    return true;
}
