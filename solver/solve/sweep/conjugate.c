/* Sweeps along conjugate directions, where few contacts have friction.
 *
 * Impulses of contacts without friction minimize a convex energy, l' G l / 2 + c' l over l >= 0. A sweep
 * forward and one backward are then a symmetric preconditioner, and the conjugate gradient method on the
 * rows that push needs the root of the sweeps that Gauss-Seidel does (Dostal, Optimal Quadratic
 * Programming Algorithms, 2009, chapter 5, for the method with projections). The next impulses minimize
 * the energy over the plane of the double sweep and the last step, both without the rows that have come
 * to rest at zero.
 *
 * With friction there is no such energy, but with radii of the disks that are held there is. The radii
 * follow mu times the normal impulse by a share from step to step: at once, contacts that slide and
 * are wedged would push each other round a cycle. Tangents on a rim move along it, and the multiplier of
 * the rim adds to the energy's curvature there.
 *
 * The criterion is the natural map, of impulses brought into their own disks. */
#include "solve/sweep/conjugate.h"

#ifndef TB_SINGLE
#include "solve/sweep/rows.h"

#include <string.h>

enum {
    FRICTIONLESS_PART = 2, /* at least one block in this many has no friction */
    LEAST_BLOCKS = 256,    /* below, Newton's systems are cheap */
    LEAST_SWEEPS = 20,     /* fewer do not pay for the preparation */
    STEPS_BETWEEN_CHECKS = 5,
    SWEEPS_WITHOUT_GAIN = 300 /* in which the best residual does not halve: the method ends */
};
static const double RADIUS_SHARE = 0.2;        /* of a radius' change, that a step makes */
static const double ON_RIM = 1 - 1e-9;         /* of the radius */
static const double LEAST_DETERMINANT = 1e-12; /* of the plane, over the product of its diagonal */

/* a block as a sweep reads it */
typedef struct tb_conjugate_block {
    tb_real r_normal, r_friction, carry[2]; /* carry: r_friction g_10, r_friction g_20 */
    tb_real radius;                         /* held */
    int32_t threes; /* runs of three dofs, 1 or 2, of a row of so many numbers; 0: another block */
    int32_t dof[2]; /* first of each */
} tb_conjugate_block;

typedef struct tb_conjugate {
    const tb_problem *problem;
    const tb_solve_options *options;
    tb_arena *scratch;
    tb_solution *solution;
    tb_conjugate_block *blocks;
    tb_real *lambda, *last, *sweep, *step;  /* rows; last: before the step; its directions */
    tb_real *s, *s_last, *s_sweep, *s_step; /* dofs: Y times these */
    tb_real *judged, *best;                 /* rows */
    double best_residual, gain_residual;
    int32_t gain_sweeps; /* when the best residual last halved */
    bool has_step;
} tb_conjugate;

TB_EXTERN bool tb_conjugate_suits(const tb_problem *problem, const tb_solve_options *options,
                                  int32_t sweeps)
{
    if (!problem->values || problem->number_of_blocks < LEAST_BLOCKS) return false;
    if (!options->accelerate || options->stop != TB_STOP_RESIDUAL || options->omega != 0)
        return false;
    if (sweeps < LEAST_SWEEPS || !(options->tolerance > 0)) return false;
    if (options->storage != TB_STORAGE_AUTO && options->storage != TB_STORAGE_FACTORIZED)
        return false;
    int32_t frictionless = 0;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const int32_t law = problem->blocks[b].law;
        if (law != TB_LAW_UNILATERAL && law != TB_LAW_COULOMB) return false;
        frictionless += law == TB_LAW_UNILATERAL;
    }
    return FRICTIONLESS_PART * frictionless >= problem->number_of_blocks &&
           tb_all_finite(problem->c, problem->number_of_rows);
}

/* Rows along points, whose dofs are three displacements, have kernels of fixed length. */
TB_STATIC void conjugate_find_threes(const tb_problem *problem, const tb_block *block,
                                     tb_conjugate_block *own)
{
    if (block->rows != 1 || (block->width != 3 && block->width != 6)) return;
    const tb_segment *run = problem->segments + block->segment;
    for (int32_t k = 0; k < block->segments; k++)
        if (run[k].count % 3 != 0) return;
    for (int32_t k = 0; k < block->segments; k++)
        for (int32_t j = 0; j < run[k].count; j += 3) own->dof[own->threes++] = run[k].dof + j;
}

TB_STATIC tb_status conjugate_take_memory(tb_conjugate *it)
{
    const int32_t rows = it->problem->number_of_rows, dofs = it->problem->number_of_dofs;
    tb_real **of_rows[] = {&it->lambda, &it->last, &it->sweep, &it->step, &it->judged, &it->best};
    tb_real **of_dofs[] = {&it->s, &it->s_last, &it->s_sweep, &it->s_step};
    for (size_t i = 0; i < sizeof of_rows / sizeof *of_rows; i++)
        if (!(*of_rows[i] = TB_ARENA_ZEROED(it->scratch, tb_real, rows)))
            return TB_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < sizeof of_dofs / sizeof *of_dofs; i++)
        if (!(*of_dofs[i] = TB_ARENA_ZEROED(it->scratch, tb_real, dofs)))
            return TB_RESOURCE_EXHAUSTED;
    it->blocks = TB_ARENA_ARRAY(it->scratch, tb_conjugate_block, it->problem->number_of_blocks);
    return it->blocks ? TB_OK : TB_RESOURCE_EXHAUSTED;
}

/* Factors of the blocks, and finite warm impulses in their sets. */
TB_STATIC void conjugate_begin(tb_conjugate *it, const tb_warm_start *warm)
{
    const tb_problem *problem = it->problem;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        tb_conjugate_block *own = &it->blocks[b];
        tb_real g[TB_BLOCK_ROWS * TB_BLOCK_ROWS], *lambda = it->lambda + block->row;
        const int n = block->rows;
        tb_problem_local_block(problem, b, g);
        memset(own, 0, sizeof *own);
        conjugate_find_threes(problem, block, own);
        own->r_normal = g[0] > 0 ? 1 / g[0] : 0;
        if (n == 3) {
            const tb_real largest = tb_max(g[4], g[8]);
            own->r_friction = largest > 0 ? 1 / largest : 0;
            own->carry[0] = own->r_friction * g[3];
            own->carry[1] = own->r_friction * g[6];
        }
        if (warm->lambda && it->options->warm_start && tb_all_finite(warm->lambda + block->row, n))
            memcpy(lambda, warm->lambda + block->row, (size_t)n * sizeof(tb_real));
        tb_prox_block(block->law, n, block->mu, block->lower, block->upper, lambda);
        own->radius = n == 3 ? block->mu * lambda[0] : 0;
    }
    tb_problem_whiten(problem, it->lambda, it->s);
}

/* xi of a block */
TB_STATIC void conjugate_gather(const tb_conjugate *it, const tb_block *block, tb_real *xi)
{
    const tb_problem *problem = it->problem;
    tb_gather_any(problem, block, it->s, xi);
    for (int i = 0; i < block->rows; i++) {
        xi[i] += problem->c[block->row + i];
        if (problem->compliance)
            xi[i] += problem->compliance[block->row + i] * it->lambda[block->row + i];
    }
}

/* s += the rows' numbers times an impulse of a row along points */
TB_STATIC inline void conjugate_add_row(tb_conjugate *it, const tb_block *block,
                                        const tb_conjugate_block *own, tb_real impulse)
{
    const tb_real *y = it->problem->values + block->value;
    if (impulse == 0) return;
    for (int k = 0; k < own->threes; k++)
        for (int i = 0; i < 3; i++) it->s[own->dof[k] + i] += y[3 * k + i] * impulse;
}

/* Moves the impulse of a row along points. */
TB_STATIC inline void conjugate_move_row(tb_conjugate *it, const tb_block *block,
                                         const tb_conjugate_block *own)
{
    const tb_problem *problem = it->problem;
    const tb_real *y = problem->values + block->value, *a = it->s + own->dof[0];
    const tb_real *b = own->threes == 2 ? it->s + own->dof[1] : NULL;
    tb_real *lambda = it->lambda + block->row;
    tb_real xi = (problem->c[block->row] + y[0] * a[0]) + (y[1] * a[1] + y[2] * a[2]);
    if (b) xi += (y[3] * b[0] + y[4] * b[1]) + y[5] * b[2];
    if (problem->compliance) xi += problem->compliance[block->row] * *lambda;
    const tb_real normal = tb_max(*lambda - own->r_normal * xi, 0), change = normal - *lambda;
    *lambda = normal;
    conjugate_add_row(it, block, own, change);
}

/* One sweep, by held radii. */
TB_STATIC void conjugate_sweep(tb_conjugate *it, bool backward)
{
    const tb_problem *problem = it->problem;
    const int32_t blocks = problem->number_of_blocks;
    for (int32_t k = 0; k < blocks; k++) {
        const int32_t b = backward ? blocks - 1 - k : k;
        const tb_block *block = &problem->blocks[b];
        const tb_conjugate_block *own = &it->blocks[b];
        tb_real *lambda = it->lambda + block->row, xi[TB_BLOCK_ROWS] = {0}, change[TB_BLOCK_ROWS];
        if (own->threes) {
            conjugate_move_row(it, block, own);
            continue;
        }
        conjugate_gather(it, block, xi);
        const tb_real normal = tb_max(lambda[0] - own->r_normal * xi[0], 0);
        change[0] = normal - lambda[0];
        lambda[0] = normal;
        if (block->rows == 3) {
            tb_real t[2];
            for (int i = 0; i < 2; i++)
                t[i] = lambda[1 + i] - own->r_friction * xi[1 + i] - own->carry[i] * change[0];
            tb_prox_disk(t, own->radius);
            for (int i = 0; i < 2; i++) {
                change[1 + i] = t[i] - lambda[1 + i];
                lambda[1 + i] = t[i];
            }
        }
        tb_scatter_any(problem, block, it->s, change);
    }
}

/* direction (one of sweep and step) += change in a block's rows, with its image */
TB_STATIC void conjugate_change(const tb_conjugate *it, const tb_block *block, tb_real *direction,
                                tb_real *image, const tb_real *change)
{
    bool any = false;
    for (int i = 0; i < block->rows; i++) {
        direction[block->row + i] += change[i];
        any = any || change[i] != 0;
    }
    if (any) tb_scatter_any(it->problem, block, image, change);
}

/* Keeps of a direction of a contact only its tangent along the rim. Returns that part. */
TB_STATIC tb_real conjugate_keep_along(const tb_conjugate *it, const tb_block *block,
                                       tb_real *direction, tb_real *image, const tb_real *rim)
{
    const tb_real *t = direction + block->row + 1;
    const tb_real along = rim[0] * t[0] + rim[1] * t[1];
    const tb_real change[3] = {0, along * rim[0] - t[0], along * rim[1] - t[1]};
    conjugate_change(it, block, direction, image, change);
    return along;
}

/* Takes out of both directions the rows that rest at zero and what leads off a rim. curvature: sums
 * of the rims' multipliers, for sweep sweep, sweep step, step step. */
TB_STATIC void conjugate_restrict(tb_conjugate *it, double *curvature)
{
    const tb_problem *problem = it->problem;
    curvature[0] = curvature[1] = curvature[2] = 0;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        const tb_real *lambda = it->lambda + block->row, radius = it->blocks[b].radius;
        if (!(lambda[0] > 0)) {
            const tb_real of_sweep[3] = {-it->sweep[block->row], 0, 0};
            const tb_real of_step[3] = {-it->step[block->row], 0, 0};
            conjugate_change(it, block, it->sweep, it->s_sweep, of_sweep);
            conjugate_change(it, block, it->step, it->s_step, of_step);
        }
        if (block->rows != 3) continue;
        const tb_real length = tb_hypot2(lambda[1], lambda[2]);
        if (length < ON_RIM * radius) continue;
        tb_real xi[TB_BLOCK_ROWS] = {0}, rim[2] = {0, 0}, multiplier = 0;
        if (length > 0) {
            rim[0] = -lambda[2] / length;
            rim[1] = lambda[1] / length;
            conjugate_gather(it, block, xi);
            multiplier = -(xi[1] * lambda[1] + xi[2] * lambda[2]) / (length * radius);
            if (!(multiplier > 0)) continue; /* it leaves the rim */
        }
        const tb_real along_sweep = conjugate_keep_along(it, block, it->sweep, it->s_sweep, rim);
        const tb_real along_step = conjugate_keep_along(it, block, it->step, it->s_step, rim);
        curvature[0] += multiplier * along_sweep * along_sweep;
        curvature[1] += multiplier * along_sweep * along_step;
        curvature[2] += multiplier * along_step * along_step;
    }
}

/* x' E y, with compliance E */
TB_STATIC double conjugate_elastic(const tb_problem *problem, const tb_real *x, const tb_real *y)
{
    double sum = 0;
    for (int32_t i = 0; problem->compliance && i < problem->number_of_rows; i++)
        sum += problem->compliance[i] * x[i] * y[i];
    return sum;
}

/* slope of the energy along a direction */
TB_STATIC double conjugate_slope(const tb_conjugate *it, const tb_real *direction,
                                 const tb_real *image)
{
    const tb_problem *problem = it->problem;
    return tb_dot_long(it->s, image, problem->number_of_dofs) +
           tb_dot_long(problem->c, direction, problem->number_of_rows) +
           conjugate_elastic(problem, it->lambda, direction);
}

/* Factors of the two directions that lead to the least energy. */
TB_STATIC void conjugate_combine(const tb_conjugate *it, const double *curvature, double *of_sweep,
                                 double *of_step)
{
    const tb_problem *problem = it->problem;
    const int32_t dofs = problem->number_of_dofs;
    const double ww = tb_dot_long(it->s_sweep, it->s_sweep, dofs) +
                      conjugate_elastic(problem, it->sweep, it->sweep) + curvature[0];
    const double slope = conjugate_slope(it, it->sweep, it->s_sweep);
    *of_sweep = ww > 0 ? -slope / ww : 0;
    *of_step = 0;
    if (!it->has_step) return;
    const double wp = tb_dot_long(it->s_sweep, it->s_step, dofs) +
                      conjugate_elastic(problem, it->sweep, it->step) + curvature[1];
    const double pp = tb_dot_long(it->s_step, it->s_step, dofs) +
                      conjugate_elastic(problem, it->step, it->step) + curvature[2];
    const double other = conjugate_slope(it, it->step, it->s_step);
    const double determinant = ww * pp - wp * wp;
    if (!(determinant > LEAST_DETERMINANT * ww * pp)) return;
    *of_sweep = (wp * other - pp * slope) / determinant;
    *of_step = (wp * slope - ww * other) / determinant;
}

/* s = Y lambda afresh: where a step adds to its own image, the image's rounding grows with the factors
 * of the steps. */
TB_STATIC void conjugate_whiten(tb_conjugate *it)
{
    const tb_problem *problem = it->problem;
    memset(it->s, 0, (size_t)problem->number_of_dofs * sizeof(tb_real));
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        const tb_real *lambda = it->lambda + block->row;
        if (it->blocks[b].threes)
            conjugate_add_row(it, block, &it->blocks[b], *lambda);
        else
            tb_scatter_any(problem, block, it->s, lambda);
    }
}

/* Moves the impulses, and brings them back into their sets. */
TB_STATIC void conjugate_move(tb_conjugate *it, double of_sweep, double of_step)
{
    const tb_problem *problem = it->problem;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        tb_real *lambda = it->lambda + block->row;
        for (int i = 0; i < block->rows; i++)
            lambda[i] += of_sweep * it->sweep[block->row + i] + of_step * it->step[block->row + i];
        lambda[0] = tb_max(lambda[0], 0);
        if (block->rows == 3) tb_prox_disk(lambda + 1, it->blocks[b].radius);
    }
    conjugate_whiten(it);
}

/* Radii follow the normal impulses. */
TB_STATIC void conjugate_relax(tb_conjugate *it)
{
    const tb_problem *problem = it->problem;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        if (block->rows != 3) continue;
        const tb_real *lambda = it->lambda + block->row;
        tb_real *radius = &it->blocks[b].radius;
        const tb_real own = block->mu * lambda[0], length = tb_hypot2(lambda[1], lambda[2]);
        const bool slips = length >= ON_RIM * *radius || length > own;
        *radius = slips ? *radius + RADIUS_SHARE * (own - *radius) : own;
    }
}

/* The residual of the impulses in their own disks; the best stay. */
TB_STATIC tb_status conjugate_check(tb_conjugate *it)
{
    const tb_problem *problem = it->problem;
    tb_solution *solution = it->solution;
    const size_t bytes = (size_t)problem->number_of_rows * sizeof(tb_real);
    memcpy(it->judged, it->lambda, bytes);
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        tb_prox_block(block->law, block->rows, block->mu, block->lower, block->upper,
                      it->judged + block->row);
    }
    const tb_status status = tb_problem_judge(problem, it->judged, NULL, it->scratch, NULL,
                                              solution->xi, &solution->residuals);
    if (status != TB_OK) return status;
    if (solution->first_check == 0) {
        solution->first_check = solution->iterations;
        solution->first_residual = solution->residuals.natural;
    }
    if (!(solution->residuals.natural < it->best_residual)) return TB_OK;
    it->best_residual = solution->residuals.natural;
    memcpy(it->best, it->judged, bytes);
    if (it->best_residual > 0.5 * it->gain_residual) return TB_OK;
    it->gain_residual = it->best_residual;
    it->gain_sweeps = solution->iterations;
    return TB_OK;
}

/* A double sweep and the step that it leads to. */
TB_STATIC void conjugate_step(tb_conjugate *it)
{
    const tb_problem *problem = it->problem;
    const int32_t rows = problem->number_of_rows, dofs = problem->number_of_dofs;
    double curvature[3], of_sweep, of_step;
    memcpy(it->last, it->lambda, (size_t)rows * sizeof(tb_real));
    memcpy(it->s_last, it->s, (size_t)dofs * sizeof(tb_real));
    conjugate_sweep(it, false);
    conjugate_sweep(it, true);
    for (int32_t i = 0; i < rows; i++) it->sweep[i] = it->lambda[i] - it->last[i];
    for (int32_t i = 0; i < dofs; i++) it->s_sweep[i] = it->s[i] - it->s_last[i];
    conjugate_restrict(it, curvature);
    conjugate_combine(it, curvature, &of_sweep, &of_step);
    conjugate_move(it, of_sweep, of_step);
    for (int32_t i = 0; i < rows; i++) it->step[i] = it->lambda[i] - it->last[i];
    for (int32_t i = 0; i < dofs; i++) it->s_step[i] = it->s[i] - it->s_last[i];
    it->has_step = true;
    conjugate_relax(it);
}

TB_EXTERN tb_status tb_conjugate_solve(const tb_problem *problem, const tb_solve_options *options,
                                       const tb_warm_start *warm, tb_solution *solution)
{
    const tb_arena_mark mark = tb_arena_get_mark(warm->scratch);
    tb_problem known = *problem;
    known.c_squared = tb_problem_c_squared(problem);
    tb_conjugate it = {.problem = &known,
                       .options = options,
                       .scratch = warm->scratch,
                       .solution = solution,
                       .best_residual = DBL_MAX,
                       .gain_residual = DBL_MAX};
    solution->iterations = solution->halvings = solution->first_check = 0;
    solution->status = TB_NOT_CONVERGED;
    tb_status status = conjugate_take_memory(&it);
    if (status != TB_OK) goto done;
    conjugate_begin(&it, warm);
    for (int32_t k = 1; solution->iterations + 2 <= options->maximum_iterations; k++) {
        if (options->cancelled && options->cancelled(options->cancelled_context)) {
            status = TB_CANCELLED;
            goto done;
        }
        conjugate_step(&it);
        solution->iterations += 2;
        if (k % STEPS_BETWEEN_CHECKS != 0 &&
            solution->iterations + 2 <= options->maximum_iterations)
            continue;
        status = conjugate_check(&it);
        if (status != TB_OK) goto done;
        if (it.best_residual <= options->tolerance) break;
        if (solution->iterations - it.gain_sweeps > SWEEPS_WITHOUT_GAIN) break;
    }
    memcpy(solution->lambda, it.best, (size_t)known.number_of_rows * sizeof(tb_real));
    status = tb_problem_judge(&known, solution->lambda, NULL, warm->scratch, solution->whitened,
                              solution->xi, &solution->residuals);
    if (status != TB_OK) goto done;
    if (solution->residuals.natural <= options->tolerance) solution->status = TB_OK;
    tb_problem_statuses(&known, solution->lambda, solution->statuses);
done:
    tb_arena_return_to(warm->scratch, mark);
    return status;
}

#endif
