/* The answer to a step that no solver solves.
 *
 * Links that overlap, loops that miss by more than a gap: friction jams such rows, the solvers end
 * far from their tolerance, and impulses that are committed all the same may do work without limit.
 * For a problem with fixed friction bounds
 *
 *     f(lambda) = lambda' (G + E) lambda / 2 + c' lambda
 *
 * is convex, it is 0 without impulses, and the work that rows do is at most f. An exact solution has
 * f = -lambda' (G + E) lambda / 2 + lambda' xi <= 0, since friction only takes energy. So an answer
 * that missed its tolerance and has f > 0 makes energy. It is replaced by coordinate descent on f
 * (projected Gauss-Seidel without relaxation), first without friction, then with the friction bounds
 * of the normal impulses found. f never rises on the way, so that the answer takes energy from the
 * first sweep on, however far from its tolerance it ends. An answer that takes energy and is far from
 * the law is replaced where descent comes nearer. The residual is that of the exact law. */
#include "contact/judge.h"
#include "step/stages/stages.h"

enum { DESCENT_SWEEPS = 100 };
/* of the largest change of a sweep's impulses over the largest impulse */
#define DESCENT_TOLERANCE TB_R(1e-6)
/* of the natural residual: an answer below it is near the law */
#define NEAR_LAW 1e-3

typedef struct descent {
    const tb_problem *problem;
    tb_real *lambda;
    const tb_real *normals; /* rows: normal impulses that bound friction; NULL: no friction */
    double *s;              /* dofs, Y lambda */
    double largest, change; /* impulse and change of the last sweep */
} descent;

/* y . s of one row */
TB_STATIC double row_product(const descent *d, const tb_block *block, int32_t i)
{
    const tb_real *y = d->problem->values + block->value + (int64_t)i * block->width;
    const tb_segment *run = d->problem->segments + block->segment;
    double sum = 0;
    for (int32_t k = 0; k < block->segments; k++)
        for (int32_t j = 0; j < run[k].count; j++) sum += (double)*y++ * d->s[run[k].dof + j];
    return sum;
}

TB_STATIC void add_row(const descent *d, const tb_block *block, int32_t i, double change)
{
    const tb_real *y = d->problem->values + block->value + (int64_t)i * block->width;
    const tb_segment *run = d->problem->segments + block->segment;
    for (int32_t k = 0; k < block->segments; k++)
        for (int32_t j = 0; j < run[k].count; j++) d->s[run[k].dof + j] += (double)*y++ * change;
}

/* Half the width that friction's set leaves row i >= 1 between the impulses of the block's other
 * rows: the set's section along the row, N s. */
TB_STATIC tb_real friction_room(const tb_block *block, const tb_real *lambda, tb_real normal,
                                int32_t i)
{
    const bool rolls = i >= 4;
    const tb_real radius = rolls ? normal : block->mu * normal, spin_axis = TB_R(2.0 / 3.0);
    const int32_t end = rolls ? 6 : block->rows < 4 ? block->rows : 4;
    tb_real left = radius * radius;
    for (int32_t k = rolls ? 4 : 1; k < end; k++) {
        const tb_real part = k == 3 ? lambda[k] / spin_axis : lambda[k];
        if (k != i) left -= part * part;
    }
    return (i == 3 ? spin_axis : 1) * (left > 0 ? tb_sqrt(left) : 0);
}

/* The least f along row i of a block. */
TB_STATIC void descend_row(descent *d, const tb_block *block, int32_t i)
{
    const int32_t row = block->row + i;
    tb_real *lambda = d->lambda + block->row;
    const tb_real own = d->problem->compliance ? d->problem->compliance[row] : 0;
    const tb_real g = tb_block_row_square(d->problem->values, block, i) + own;
    const bool rubs = i > 0 && block->law != TB_LAW_BILATERAL;
    if (!(g > 0) || (rubs && !d->normals)) return;
    const double xi =
        row_product(d, block, i) + (double)own * (double)lambda[i] + (double)d->problem->c[row];
    tb_real next = TB_R((double)lambda[i] - xi / (double)g);
    if (rubs) {
        const tb_real room = friction_room(block, lambda, d->normals[block->row], i);
        next = tb_clamp(next, -room, room);
    } else if (block->law == TB_LAW_BOX) {
        next = tb_clamp(next, block->lower, block->upper);
    } else if (block->law != TB_LAW_BILATERAL) {
        next = tb_max(next, 0);
    }
    const double change = (double)next - (double)lambda[i];
    if (change == 0) return;
    add_row(d, block, i, change);
    lambda[i] = next;
    d->change = fmax(d->change, fabs(change));
    d->largest = fmax(d->largest, fabs((double)next));
}

TB_STATIC void descend(descent *d)
{
    for (int32_t k = 0; k < DESCENT_SWEEPS; k++) {
        d->change = d->largest = 0;
        for (int32_t b = 0; b < d->problem->number_of_blocks; b++)
            for (int32_t i = 0; i < d->problem->blocks[b].rows; i++)
                descend_row(d, &d->problem->blocks[b], i);
        if (d->change <= (double)DESCENT_TOLERANCE * d->largest) return;
    }
}

/* Friction into the sets of the normal impulses as they are now. */
TB_STATIC void project_all(const descent *d)
{
    for (int32_t b = 0; b < d->problem->number_of_blocks; b++) {
        const tb_block *k = &d->problem->blocks[b];
        tb_prox_block(k->law, k->rows, k->mu, k->lower, k->upper, d->lambda + k->row);
    }
}

/* c' lambda and lambda' (G + E) lambda of impulses that have been judged. */
TB_STATIC void find_works(const tb_problem *problem, const tb_solution *solution, double *linear,
                          double *square)
{
    const tb_real *fine = solution->has_fine ? solution->fine : NULL;
    *linear = *square = 0;
    for (int32_t r = 0; r < problem->number_of_rows; r++) {
        const double lambda = tb_impulse_at(solution->lambda, fine, r);
        *linear += (double)problem->c[r] * lambda;
        *square += ((double)solution->xi[r] - (double)problem->c[r]) * lambda;
    }
}

TB_STATIC tb_status judge(const tb_world *w, const tb_problem *problem, const tb_real *fine,
                          tb_solution *solution)
{
    const tb_status status =
        tb_problem_judge(problem, solution->lambda, fine, w->arena, solution->whitened,
                         solution->xi, &solution->residuals);
    if (status == TB_OK) tb_problem_statuses(problem, solution->lambda, solution->statuses);
    return status;
}

/* All impulses by one factor to the least f along them: friction's sets are cones. */
TB_STATIC tb_status scale_down(const tb_world *w, const tb_problem *problem, tb_solution *solution)
{
    double linear, square;
    tb_status status = judge(w, problem, NULL, solution);
    find_works(problem, solution, &linear, &square);
    if (status != TB_OK || -linear >= square) return status;
    const tb_real factor = TB_R(linear < 0 ? -linear / square : 0);
    tb_team_sync(); /* all have read the impulses */
    TB_EACH (r, problem->number_of_rows) solution->lambda[r] *= factor;
    tb_team_sync();
    return judge(w, problem, NULL, solution);
}

/* Both descents, from zero. `normals` has room for the rows. */
TB_STATIC tb_status find_descent(const tb_world *w, const tb_problem *problem, tb_real *normals,
                                 double *s, tb_solution *solution)
{
    descent d = {.problem = problem, .lambda = solution->lambda, .s = s};
    TB_EACH (r, problem->number_of_rows) solution->lambda[r] = 0;
    tb_team_sync();
    if (TB_LEADER) {
        descend(&d);
        for (int32_t r = 0; r < problem->number_of_rows; r++) normals[r] = d.lambda[r];
        d.normals = normals;
        descend(&d);
        project_all(&d);
    }
    solution->has_fine = false;
    tb_team_sync();
    return scale_down(w, problem, solution);
}

TB_EXTERN tb_status tb_world_take_no_energy(const tb_world *w, const tb_problem *problem,
                                            tb_solution *solution, tb_error *error)
{
    const size_t rows = (size_t)problem->number_of_rows;
    double linear, square;
    if (solution->status == TB_OK || rows == 0) return TB_OK;
    find_works(problem, solution, &linear, &square);
    const bool takes_energy = linear + 0.5 * square <= 0;
    if (takes_energy && (double)solution->residuals.natural <= NEAR_LAW) return TB_OK;
    const tb_solution solved = *solution; /* all but its arrays */
    tb_real *kept = TB_ARENA_ARRAY(w->arena, tb_real, rows);
    tb_real *normals = TB_ARENA_ARRAY(w->arena, tb_real, rows);
    double *s = TB_ARENA_ZEROED(w->arena, double, problem->number_of_dofs);
    if (!kept || !normals || !s) return tb_fail_memory(error, 0, "a step's last resort");
    tb_team_copy(kept, solution->lambda, rows * sizeof *kept);
    tb_team_sync();
    tb_status status = find_descent(w, problem, normals, s, solution);
    if (status == TB_OK && takes_energy &&
        solved.residuals.natural <= solution->residuals.natural) {
        tb_team_sync();
        tb_team_copy(solution->lambda, kept, rows * sizeof *kept);
        tb_team_sync();
        *solution = solved;
        status = judge(w, problem, solved.has_fine ? solved.fine : NULL, solution);
    } else {
        const bool meets = (double)solution->residuals.natural <= w->options->solve.tolerance;
        solution->status = meets ? TB_OK : TB_NOT_CONVERGED;
        tb_solution_sign(solution, "descent");
    }
    return status == TB_OK ? TB_OK : tb_fail_memory(error, 0, "a step's last resort");
}
