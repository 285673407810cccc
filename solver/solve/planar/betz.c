/* Betz's two solvers: prox_serial, one thread with the freeze and the restart by an impulse limit,
 * and prox_cuda, whose kernels run over all contacts or all dofs at once, here on threads.
 *
 * Stopping. By TB_STOP_ONE_SIDED both stop as the thesis does: every contact has
 * rho_n > -tolerance, and its friction has converged. His freeze belongs to that test: a normal
 * impulse that once passed it stays while it passes, also where the contact separates, so prox_serial
 * freezes under this test alone. By TB_STOP_RESIDUAL both go on to the residual of the certificate,
 * without the freeze.
 *
 * Divergence. Jacobi's r with omega 0.5 need not converge with friction. Where the residual rises
 * above the residual of zero impulses, the solve begins again with half the omega
 * (options->maximum_halvings), but not as_listed.
 *
 * The restart (prox_serial, options->impulse_limit): a trial p_n above the limit sets all impulses
 * to zero, halves omega and doubles the sweeps that are left. The listing computes r before it
 * halves omega and lets two frictional sweeps of prox_cuda begin with mu = 1; options->as_listed
 * repeats both. */
#include "solve/planar/betz_run.h"

#include "base/parallel.h"

#include <string.h>

enum { BETZ_FIRST_CHECK = 8, BETZ_MOST_RESTARTS = 10, BETZ_GRAIN = 256 };
static const double BETZ_OMEGA = 0.5;
/* Impulses of zero have a natural map of at most |c|; a residual well above it means divergence. */
static const double BETZ_DIVERGED = 4;

TB_STATIC tb_status betz_check(const tb_problem *problem, const tb_solve_options *o)
{
    if (!(o->tolerance >= 0) || o->maximum_iterations < 1 || !(o->omega >= 0))
        return TB_INVALID_ARGUMENT;
    if (!problem->values || problem->compliance) return TB_UNSUPPORTED;
    if (o->stop != TB_STOP_RESIDUAL && o->stop != TB_STOP_ONE_SIDED) return TB_UNSUPPORTED;
    if (o->r_strategy == TB_R_SPECTRUM) return TB_UNSUPPORTED;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const int32_t law = problem->blocks[b].law;
        if (law != TB_LAW_PLANAR && law != TB_LAW_UNILATERAL) return TB_UNSUPPORTED;
    }
    return TB_OK;
}

/* The numbers of Y by dof, contacts in order. */
TB_STATIC tb_status betz_list_dofs(tb_betz *z, tb_arena *scratch)
{
    const tb_problem *p = z->problem;
    int64_t total = 0;
    for (int32_t b = 0; b < p->number_of_blocks; b++)
        total += (int64_t)p->blocks[b].rows * p->blocks[b].width;
    if (total > INT32_MAX) return TB_RESOURCE_EXHAUSTED;
    z->start = TB_ARENA_ZEROED(scratch, int32_t, (size_t)p->number_of_dofs + 2);
    z->row = TB_ARENA_ARRAY(scratch, int32_t, total);
    z->coefficient = TB_ARENA_ARRAY(scratch, tb_real, total);
    if (!z->start || !z->row || !z->coefficient) return TB_RESOURCE_EXHAUSTED;
    int32_t *end = z->start + 1;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t b = 0; b < p->number_of_blocks; b++) {
            const tb_block *block = &p->blocks[b];
            for (int32_t k = 0; k < block->rows; k++)
                for (int32_t j = 0; j < block->width; j++) {
                    const int32_t dof = tb_block_dof(p, block, j);
                    if (pass == 0) {
                        end[dof + 1]++;
                        continue;
                    }
                    z->row[end[dof]] = block->row + k;
                    z->coefficient[end[dof]++] =
                        p->values[block->value + (int64_t)k * block->width + j];
                }
        }
        if (pass == 0)
            for (int32_t d = 0; d < p->number_of_dofs; d++) end[d + 1] += end[d];
    }
    return TB_OK;
}

TB_STATIC tb_status betz_take(tb_betz_run *run, tb_betz_kind kind)
{
    tb_betz *z = &run->z;
    const size_t rows = (size_t)z->problem->number_of_rows;
    z->p = TB_ARENA_ZEROED(run->scratch, tb_real, rows);
    z->r = TB_ARENA_ZEROED(run->scratch, tb_real, rows);
    z->s = TB_ARENA_ZEROED(run->scratch, tb_real, z->problem->number_of_dofs);
    z->flags = TB_ARENA_ZEROED(run->scratch, uint8_t, z->problem->number_of_blocks);
    if (!z->p || !z->r || !z->s || !z->flags) return TB_RESOURCE_EXHAUSTED;
    return kind == TB_BETZ_OF_MPRGP ? TB_OK : betz_list_dofs(z, run->scratch);
}

/* ---- kernels over all contacts and dofs ---- */

TB_STATIC void betz_contact(void *context, int32_t b, int32_t thread)
{
    const tb_betz_run *run = (const tb_betz_run *)context;
    const tb_real mu = run->z.problem->blocks[b].mu;
    (void)thread;
    tb_betz_solve_normal(&run->z, b);
    tb_betz_solve_friction(&run->z, b, run->mu_factor > 0 ? mu : 1);
}

TB_STATIC void betz_dof(void *context, int32_t dof, int32_t thread)
{
    (void)thread;
    tb_betz_update_dof(&((const tb_betz_run *)context)->z, dof);
}

TB_STATIC void betz_set_r(tb_betz_run *run)
{
    for (int32_t b = 0; b < run->z.problem->number_of_blocks; b++)
        tb_betz_calculate_r(&run->z, b, run->omega_of_r, run->richardson);
}

TB_STATIC void betz_update(tb_betz_run *run)
{
    tb_parallel_for(run->z.problem->number_of_dofs, BETZ_GRAIN, run->threads, betz_dof, run);
}

TB_STATIC void betz_sweep(tb_betz_run *run)
{
    const int32_t blocks = run->z.problem->number_of_blocks;
    if (run->in_turn) {
        for (int32_t b = 0; b < blocks; b++) tb_betz_solve_in_turn(&run->z, b);
        return;
    }
    tb_parallel_for(blocks, BETZ_GRAIN, run->threads, betz_contact, run);
    betz_update(run);
}

/* ---- the loop ---- */

TB_STATIC bool betz_all_converged(const tb_betz_run *run)
{
    const int both = TB_BETZ_NORMAL_CONVERGED | TB_BETZ_FRICTION_CONVERGED;
    for (int32_t b = 0; b < run->z.problem->number_of_blocks; b++)
        if ((run->z.flags[b] & both) != both) return false;
    return true;
}

TB_STATIC bool betz_is_over(const tb_betz_run *run)
{
    for (int32_t b = 0; b < run->z.problem->number_of_blocks; b++)
        if (run->z.flags[b] & TB_BETZ_OVER_LIMIT) return true;
    return false;
}

/* Everything to zero, with half the omega; r as the listing has it, or by the new omega. */
TB_STATIC void betz_restart(tb_betz_run *run)
{
    const tb_problem *p = run->z.problem;
    memset(run->z.p, 0, (size_t)p->number_of_rows * sizeof *run->z.p);
    memset(run->z.s, 0, (size_t)p->number_of_dofs * sizeof *run->z.s);
    memset(run->z.flags, 0, (size_t)p->number_of_blocks);
    run->omega_of_r = run->options->as_listed ? run->omega : run->omega / 2;
    run->omega /= 2;
    betz_set_r(run);
    run->solution->halvings++;
    run->made = 0;
    run->next_check = BETZ_FIRST_CHECK;
}

TB_STATIC tb_status betz_judge(tb_betz_run *run)
{
    tb_solution *solution = run->solution;
    return tb_problem_judge(run->z.problem, run->z.p, NULL, run->scratch, solution->whitened,
                            solution->xi, &solution->residuals);
}

TB_EXTERN int32_t tb_betz_due(const tb_betz_run *run)
{
    const int64_t next = run->next_check < run->most ? run->next_check : run->most;
    return (int32_t)(next - run->made);
}

TB_EXTERN tb_real tb_betz_limit(const tb_betz_run *run)
{
    return run->solution->halvings < BETZ_MOST_RESTARTS ? run->z.limit : 0;
}

TB_EXTERN tb_status tb_betz_look(tb_betz_run *run, int32_t made, bool ended, bool over)
{
    const tb_solve_options *o = run->options;
    tb_solution *solution = run->solution;
    run->made += made;
    solution->iterations += made;
    if (over) {
        betz_restart(run);
        run->most *= 2;
        return TB_OK;
    }
    if (run->made >= run->next_check) run->next_check += run->next_check / 2;
    const tb_status status = betz_judge(run);
    if (status != TB_OK) return status;
    const double residual = solution->residuals.natural;
    if (ended || (o->stop != TB_STOP_ONE_SIDED && residual <= o->tolerance)) {
        solution->status = TB_OK;
        run->done = true;
        return TB_OK;
    }
    run->done = run->made >= run->most;
    if (o->as_listed || solution->halvings >= o->maximum_halvings) return TB_OK;
    if (residual <= BETZ_DIVERGED) return TB_OK;
    betz_restart(run);
    run->done = false;
    return TB_OK;
}

TB_STATIC tb_status betz_loop(tb_betz_run *run)
{
    const tb_solve_options *o = run->options;
    tb_status status = TB_OK;
    while (!run->done && status == TB_OK) {
        const int32_t due = tb_betz_due(run);
        const bool watched = tb_betz_limit(run) > 0;
        bool ended = false, over = false;
        int32_t made = 0;
        while (made < due && !ended && !over) {
            if (o->cancelled && o->cancelled(o->cancelled_context)) return TB_CANCELLED;
            run->mu_factor = tb_betz_begins_as_listed(run) && made == 0 ? 0 : 1;
            betz_sweep(run);
            made++;
            over = watched && betz_is_over(run);
            ended = !over && o->stop == TB_STOP_ONE_SIDED && betz_all_converged(run);
        }
        status = tb_betz_look(run, made, ended, over);
    }
    return status;
}

/* Finite warm impulses, projected to their sets. */
TB_STATIC void betz_start(tb_betz_run *run, const tb_warm_start *warm)
{
    const tb_problem *problem = run->z.problem;
    if (!warm->lambda || !run->options->warm_start) return;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        tb_real *p = run->z.p + block->row;
        for (int32_t i = 0; i < block->rows; i++) p[i] = warm->lambda[block->row + i];
        if (!tb_all_finite(p, block->rows)) p[0] = p[block->rows - 1] = 0;
        tb_prox_block(block->law, block->rows, block->mu, block->lower, block->upper, p);
    }
}

TB_EXTERN tb_status tb_betz_close(tb_betz_run *run)
{
    const tb_problem *problem = run->z.problem;
    const size_t bytes = (size_t)problem->number_of_rows * sizeof(tb_real);
    tb_status status = TB_OK;
    if (!tb_all_finite(run->z.p, problem->number_of_rows) ||
        !tb_all_finite(run->solution->xi, problem->number_of_rows)) {
        memset(run->z.p, 0, bytes);
        status = betz_judge(run);
        run->solution->status = TB_DIVERGED;
    }
    memcpy(run->solution->lambda, run->z.p, bytes);
    tb_problem_statuses(problem, run->solution->lambda, run->solution->statuses);
    return status;
}

TB_EXTERN tb_status tb_betz_open(tb_betz_run *run, const tb_problem *problem,
                                 const tb_solve_options *options, const tb_warm_start *warm,
                                 tb_solution *solution, tb_betz_kind kind)
{
    static const char *const NAMES[] = {"prox_serial", "prox_cuda", "mprgp"};
    const bool serial = kind == TB_BETZ_OF_SERIAL;
    tb_status status = betz_check(problem, options);
    if (status != TB_OK) return status;
    *run = (tb_betz_run){.z = {.problem = problem,
                               .tolerance = TB_R(options->tolerance),
                               .limit = serial ? TB_R(options->impulse_limit) : 0,
                               .freeze = serial && options->stop == TB_STOP_ONE_SIDED},
                         .options = options,
                         .scratch = warm->scratch,
                         .solution = solution,
                         .omega = TB_R(options->omega > 0 ? options->omega : BETZ_OMEGA),
                         .mu_factor = 1,
                         .threads = serial ? 1 : tb_parallel_threads(options->threads),
                         .most = options->maximum_iterations,
                         .next_check = BETZ_FIRST_CHECK,
                         .serial = serial,
                         .in_turn = options->r_strategy == TB_R_GAUSS_SEIDEL,
                         .richardson = options->r_strategy == TB_R_RICHARDSON};
    if (run->in_turn && options->omega == 0) run->omega = 1;
    run->omega_of_r = run->omega;
    solution->iterations = solution->halvings = solution->first_check = 0;
    solution->status = TB_NOT_CONVERGED;
    tb_solution_sign(solution, NAMES[kind]);
    status = betz_take(run, kind);
    if (status != TB_OK) return status;
    betz_start(run, warm);
    if (kind == TB_BETZ_OF_MPRGP) return TB_OK;
    betz_set_r(run);
    betz_update(run);
    return TB_OK;
}

TB_STATIC tb_status betz_solve(const tb_problem *problem, const tb_solve_options *options,
                               tb_warm_start *warm, tb_solution *solution, tb_betz_kind kind)
{
    const tb_arena_mark mark = tb_arena_get_mark(warm->scratch);
    tb_betz_run run;
    tb_status status = tb_betz_open(&run, problem, options, warm, solution, kind);
    if (status == TB_OK) status = betz_loop(&run);
    if (status == TB_OK) status = tb_betz_close(&run);
    tb_arena_return_to(warm->scratch, mark);
    return status;
}

TB_EXTERN tb_status tb_solve_prox_serial(const tb_problem *problem, const tb_solve_options *options,
                                         tb_warm_start *warm, tb_solution *solution)
{
    return betz_solve(problem, options, warm, solution, TB_BETZ_OF_SERIAL);
}

TB_EXTERN tb_status tb_solve_prox_cuda(const tb_problem *problem, const tb_solve_options *options,
                                       tb_warm_start *warm, tb_solution *solution)
{
    return betz_solve(problem, options, warm, solution, TB_BETZ_OF_CUDA);
}
