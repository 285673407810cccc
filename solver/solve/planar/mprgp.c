/* The solver mprgp on a processor: an island's iterations by loops (mprgp.h). */
#include "solve/planar/mprgp.h"
#include "solve/planar/mprgp_run.h"

#include <math.h>

/* A little less than the tolerance, which the judge's sums in another order may exceed. */
static const double MPRGP_MARGIN = 0.999;

TB_EXTERN bool tb_mprgp_rubs(const tb_problem *problem)
{
    for (int32_t b = 0; b < problem->number_of_blocks; b++)
        if (problem->blocks[b].rows > 1) return true;
    return false;
}

/* Y by rows, and the number of entries of each dof. */
TB_STATIC tb_status mprgp_list_rows(const tb_problem *p, tb_mprgp_lists *lists, int32_t *count,
                                    tb_arena *scratch)
{
    const int64_t rows = p->number_of_rows;
    for (int32_t b = 0; b < p->number_of_blocks; b++)
        if (p->blocks[b].width > lists->width) lists->width = p->blocks[b].width;
    if (rows * lists->width > INT32_MAX) return TB_RESOURCE_EXHAUSTED;
    tb_real *of_row = TB_ARENA_ZEROED(scratch, tb_real, rows * lists->width);
    int32_t *dof = TB_ARENA_ZEROED(scratch, int32_t, rows * lists->width);
    if (!of_row || !dof) return TB_RESOURCE_EXHAUSTED;
    for (int32_t b = 0; b < p->number_of_blocks; b++) {
        const tb_block *block = &p->blocks[b];
        const tb_real *y = p->values + block->value;
        for (int32_t i = 0, j = 0; i < block->segments; i++) {
            const tb_segment run = p->segments[block->segment + i];
            for (int32_t d = run.dof; d < run.dof + run.count; d++, j++) {
                for (int32_t k = 0; k < block->rows; k++) {
                    of_row[j * rows + block->row + k] = y[(int64_t)k * block->width + j];
                    dof[j * rows + block->row + k] = d;
                }
                count[d] += block->rows;
            }
        }
    }
    lists->of_row = of_row;
    lists->dof = dof;
    return TB_OK;
}

/* Y by dofs, rows in order. `count` becomes the next entry of each dof. */
TB_STATIC tb_status mprgp_list_dofs(const tb_problem *p, tb_mprgp_lists *lists, int32_t *count,
                                    tb_arena *scratch)
{
    const int32_t dofs = p->number_of_dofs, slices = tb_mprgp_slices(dofs);
    int32_t *slice = TB_ARENA_ZEROED(scratch, int32_t, (size_t)slices + 1);
    if (!slice) return TB_RESOURCE_EXHAUSTED;
    int64_t total = 0;
    for (int32_t d = 0; d < dofs; d++) {
        int32_t *most = &slice[d / TB_MPRGP_SLICE];
        if (count[d] > *most) *most = count[d];
    }
    for (int32_t i = 0; i <= slices; i++) {
        const int64_t own = i < slices ? (int64_t)slice[i] * TB_MPRGP_SLICE : 0;
        if (total > INT32_MAX) return TB_RESOURCE_EXHAUSTED;
        slice[i] = (int32_t)total;
        total += own;
    }
    tb_real *of_dof = TB_ARENA_ZEROED(scratch, tb_real, total);
    int32_t *row = TB_ARENA_ZEROED(scratch, int32_t, total);
    if (!of_dof || !row) return TB_RESOURCE_EXHAUSTED;
    for (int32_t d = 0; d < dofs; d++) count[d] = slice[d / TB_MPRGP_SLICE] + d % TB_MPRGP_SLICE;
    for (int32_t b = 0; b < p->number_of_blocks; b++) {
        const tb_block *block = &p->blocks[b];
        const tb_real *y = p->values + block->value;
        for (int32_t k = 0; k < block->rows; k++)
            for (int32_t i = 0; i < block->segments; i++) {
                const tb_segment run = p->segments[block->segment + i];
                for (int32_t d = run.dof; d < run.dof + run.count; d++) {
                    row[count[d]] = block->row + k;
                    of_dof[count[d]] = *y++;
                    count[d] += TB_MPRGP_SLICE;
                }
            }
    }
    lists->slice = slice;
    lists->of_dof = of_dof;
    lists->row = row;
    return TB_OK;
}

TB_EXTERN tb_status tb_mprgp_open(tb_betz_run *run, tb_mprgp_lists *lists,
                                  const tb_problem *problem, const tb_solve_options *options,
                                  const tb_warm_start *warm, tb_solution *solution)
{
    if (options->stop != TB_STOP_RESIDUAL || options->r_strategy != TB_R_DIAGONAL)
        return TB_UNSUPPORTED;
    tb_status status = tb_betz_open(run, problem, options, warm, solution, TB_BETZ_OF_MPRGP);
    if (status != TB_OK) return status;
    run->z.tolerance *= TB_R(MPRGP_MARGIN * sqrt(tb_problem_c_squared(problem)));
    run->next_check = run->most;
    *lists = (tb_mprgp_lists){0};
    int32_t *count = TB_ARENA_ZEROED(run->scratch, int32_t, problem->number_of_dofs);
    if (!count) return TB_RESOURCE_EXHAUSTED;
    status = mprgp_list_rows(problem, lists, count, run->scratch);
    return status == TB_OK ? mprgp_list_dofs(problem, lists, count, run->scratch) : status;
}

/* The iterations up to one look. False: they gave up. */
TB_STATIC tb_status mprgp_run(tb_betz_run *run, const tb_mprgp_lists *lists)
{
    const tb_problem *problem = run->z.problem;
    const size_t rows = (size_t)problem->number_of_rows;
    tb_mprgp it = {.problem = problem,
                   .y = *lists,
                   .p = run->z.p,
                   .r = run->z.r,
                   .s = run->z.s,
                   .xi = TB_ARENA_ARRAY(run->scratch, tb_real, rows),
                   .along = TB_ARENA_ARRAY(run->scratch, tb_real, rows),
                   .q = TB_ARENA_ARRAY(run->scratch, tb_real, rows),
                   .limit = TB_ARENA_ARRAY(run->scratch, tb_real, rows),
                   .shares = TB_ARENA_ZEROED(run->scratch, double, TB_MPRGP_SUMS *TB_MPRGP_LANES),
                   .own_least = TB_RESIDUAL_UNKNOWN,
                   .tolerance = (double)run->z.tolerance,
                   .rubs = tb_mprgp_rubs(problem)};
    if (!it.xi || !it.along || !it.q || !it.limit || !it.shares) return TB_RESOURCE_EXHAUSTED;
    const tb_solve_options *o = run->options;
    tb_status status = TB_OK;
    while (!run->done && status == TB_OK) {
        if (o->cancelled && o->cancelled(o->cancelled_context)) return TB_CANCELLED;
        it.most = tb_betz_due(run);
        if (!tb_mprgp_iterate(&it)) run->most = run->made + it.made;
        status = tb_betz_look(run, it.made, false, false);
    }
    return status;
}

TB_EXTERN tb_status tb_solve_mprgp(const tb_problem *problem, const tb_solve_options *options,
                                   tb_warm_start *warm, tb_solution *solution)
{
    const tb_arena_mark mark = tb_arena_get_mark(warm->scratch);
    tb_betz_run run;
    tb_mprgp_lists lists;
    tb_status status = tb_mprgp_open(&run, &lists, problem, options, warm, solution);
    if (status == TB_OK) status = mprgp_run(&run, &lists);
    if (status == TB_OK) status = tb_betz_close(&run);
    tb_arena_return_to(warm->scratch, mark);
    return status;
}
