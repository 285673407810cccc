/* Newton from many starts about the best impulses known: the last try of `auto` on small problems.
 *
 * Few contacts with a friction of 2 and more, a wedged handle between two pads, have solutions that
 * no sweep and no proximal round finds: friction grows faster than the normal impulses that carry it,
 * so that sweeps cycle, and rounds that are pulled towards their start stop at a minimum of the merit
 * that is no solution. Newton without a pull, on
 *
 *     f(lambda) = lambda - prox_C(lambda - r xi(lambda)),      r = scale / g_b,
 *
 * (Alart and Curnier, CMAME 92, 1991) has a region of attraction about every solution, smaller or
 * larger by the scale. Starts are the best impulses, moved by random numbers from a thousandth of
 * the largest impulse to all of it; the scale is 1, 10 and 100 in turn. A run ends where no
 * shortened step reduces |f|, after about ten steps. On the steps of grasps that brought this file
 * here a run reaches a solution with a probability of 1/4 to 1/50.
 *
 * The system has the size of the rows and is dense. Its random numbers depend on the number of the
 * run alone, so that equal calls give equal bytes. Cards have no such try. Neither has single
 * precision, where a step misses its tolerance by rounding: so float keeps the bytes of a card. */
#if !defined(TB_DEVICE) && !defined(TB_SINGLE)

#include "base/random.h"
#include "solve/newton/law_slope.h"
#include "solve/newton/newton_internal.h"

enum {
    LARGEST_ROWS = 96,              /* a step is a dense factorization of this size */
    MOST_CUBES = 200 * 1000 * 1000, /* steps times the cube of the rows: about 0.3 s */
    STEPS_OF_RUN = 40,
    SHORTENINGS = 10 /* of a step, by halves */
};

static const double LEAST_AMPLITUDE_LOG = -6.9; /* of a start's random part: a thousandth */
static const double RESTART_SCALES[] = {1, 10, 100};
enum { NUMBER_OF_SCALES = sizeof RESTART_SCALES / sizeof RESTART_SCALES[0] };
/* share of the diagonal that is added to it: stuck contacts beyond the number of dofs leave the
 * matrix singular */
static const double REGULARITY = 1e-11;
static const double LEAST_GAIN = 1e-4; /* of |f|, over the step's length (Armijo) */

#define tb_restarts TB_SYMBOL(tb_restarts)
typedef struct tb_restarts {
    const tb_problem *problem;
    int32_t rows;
    double *delassus, *matrix;    /* rows x rows: G + E; the system, factored in place */
    double *r;                    /* rows */
    double *lambda, *f, *step;    /* rows: iterate, its f, Newton's step */
    double *trial, *trial_f, *xi; /* rows */
    tb_real *slope;               /* squares of blocks, at 6 row */
    tb_real *judged;              /* rows: impulses in their sets */
} tb_restarts;

TB_STATIC tb_status restarts_prepare(tb_restarts *it, tb_arena *scratch)
{
    const int64_t n = it->rows;
    double *all = TB_ARENA_ARRAY(scratch, double, 2 * n * n + 7 * n);
    it->slope = TB_ARENA_ARRAY(scratch, tb_real, TB_BLOCK_ROWS * n);
    it->judged = TB_ARENA_ARRAY(scratch, tb_real, n);
    double *dense = TB_ARENA_ZEROED(scratch, double, n * it->problem->number_of_dofs);
    if (!all || !it->slope || !it->judged || !dense) return TB_RESOURCE_EXHAUSTED;
    double **arrays[] = {&it->r, &it->lambda, &it->f, &it->step, &it->trial, &it->trial_f, &it->xi};
    it->delassus = all;
    it->matrix = all + n * n;
    for (int32_t i = 0; i < (int32_t)(sizeof arrays / sizeof arrays[0]); i++)
        *arrays[i] = all + 2 * n * n + i * n;

    const int32_t dofs = it->problem->number_of_dofs;
    for (int32_t b = 0; b < it->problem->number_of_blocks; b++) {
        const tb_block *block = &it->problem->blocks[b];
        const tb_real *y = it->problem->values + block->value;
        for (int32_t i = 0; i < block->rows; i++)
            for (int32_t k = 0; k < block->width; k++)
                dense[(block->row + i) * dofs + tb_block_dof(it->problem, block, k)] = (double)*y++;
    }
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j <= i; j++) {
            double sum = 0;
            for (int32_t k = 0; k < dofs; k++) sum += dense[i * dofs + k] * dense[j * dofs + k];
            it->delassus[i * n + j] = it->delassus[j * n + i] = sum;
        }
    for (int32_t i = 0; i < n && it->problem->compliance; i++)
        it->delassus[i * n + i] += (double)it->problem->compliance[i];
    return TB_OK;
}

/* f of some impulses, its slopes where they are wanted, and |f|. */
TB_STATIC double restarts_map(const tb_restarts *it, const double *lambda, double *f, bool slopes)
{
    const tb_problem *problem = it->problem;
    double sum = 0;
    for (int32_t i = 0; i < it->rows; i++) {
        it->xi[i] = (double)problem->c[i];
        for (int32_t j = 0; j < it->rows; j++)
            it->xi[i] += it->delassus[i * it->rows + j] * lambda[j];
    }
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        const int32_t row = block->row;
        tb_real z[TB_BLOCK_ROWS], x[TB_BLOCK_ROWS];
        for (int32_t i = 0; i < block->rows; i++)
            x[i] = z[i] = TB_R(lambda[row + i] - it->r[row + i] * it->xi[row + i]);
        if (slopes)
            tb_law_slope(block, z, z, x, it->slope + TB_BLOCK_ROWS * (int64_t)row);
        else
            tb_prox_block(block->law, block->rows, block->mu, block->lower, block->upper, x);
        for (int32_t i = 0; i < block->rows; i++) {
            f[row + i] = lambda[row + i] - (double)x[i];
            sum += f[row + i] * f[row + i];
        }
    }
    return sum <= DBL_MAX ? sqrt(sum) : DBL_MAX;
}

/* df/dlambda = 1 - D (1 - r G), with D the slopes of the blocks. */
TB_STATIC void restarts_assemble(const tb_restarts *it)
{
    const int32_t n = it->rows;
    for (int32_t b = 0; b < it->problem->number_of_blocks; b++) {
        const tb_block *block = &it->problem->blocks[b];
        const tb_real *d = it->slope + TB_BLOCK_ROWS * (int64_t)block->row;
        for (int32_t i = 0; i < block->rows; i++) {
            double *row = it->matrix + (block->row + i) * n;
            for (int32_t j = 0; j < n; j++) row[j] = 0;
            for (int32_t k = 0; k < block->rows; k++) {
                const double slope = (double)d[i * block->rows + k];
                const int32_t of = block->row + k;
                for (int32_t j = 0; j < n && slope != 0; j++)
                    row[j] += slope * it->r[of] * it->delassus[of * n + j];
                row[of] -= slope;
            }
            row[block->row + i] += 1 + REGULARITY;
        }
    }
}

/* The solution of the system by elimination with the largest pivot of each column, in place in x;
 * false where a pivot vanishes. */
TB_STATIC bool restarts_eliminate(double *a, int32_t n, double *x)
{
    for (int32_t k = 0; k < n; k++) {
        int32_t pivot = k;
        for (int32_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
        if (!(fabs(a[pivot * n + k]) > 0)) return false;
        for (int32_t j = k; j < n && pivot != k; j++) {
            const double kept = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = kept;
        }
        const double kept = x[k];
        x[k] = x[pivot];
        x[pivot] = kept;
        for (int32_t i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / a[k * n + k];
            for (int32_t j = k + 1; j < n && factor != 0; j++)
                a[i * n + j] -= factor * a[k * n + j];
            x[i] -= factor * x[k];
        }
    }
    for (int32_t k = n - 1; k >= 0; k--) {
        for (int32_t j = k + 1; j < n; j++) x[k] -= a[k * n + j] * x[j];
        x[k] /= a[k * n + k];
    }
    return true;
}

/* Newton from it->lambda, which moves; *work counts its steps. */
TB_STATIC void restarts_run(tb_restarts *it, int32_t most, int32_t *work)
{
    const int32_t n = it->rows;
    double size = restarts_map(it, it->lambda, it->f, true);
    for (int32_t k = 0; k < STEPS_OF_RUN && *work < most && size > 0; k++) {
        restarts_assemble(it);
        for (int32_t i = 0; i < n; i++) it->step[i] = -it->f[i];
        (*work)++;
        if (!restarts_eliminate(it->matrix, n, it->step)) return;
        double length = 1, now = DBL_MAX;
        for (int32_t s = 0; s < SHORTENINGS; s++, length /= 2) {
            for (int32_t i = 0; i < n; i++) it->trial[i] = it->lambda[i] + length * it->step[i];
            now = restarts_map(it, it->trial, it->trial_f, false);
            if (now < size * (1 - LEAST_GAIN * length)) break;
        }
        if (!(now < size)) return;
        for (int32_t i = 0; i < n; i++) it->lambda[i] = it->trial[i];
        size = restarts_map(it, it->lambda, it->f, true);
    }
}

/* The start of a run: the impulses given, from the fourth run on with a random part. */
TB_STATIC void restarts_start(tb_restarts *it, const tb_real *from, double largest, int32_t run)
{
    tb_random random = tb_random_stream(0, (uint64_t)run);
    const bool moves = run >= NUMBER_OF_SCALES;
    const double amplitude =
        moves ? largest * exp(tb_random_between(&random, LEAST_AMPLITUDE_LOG, 0)) : 0;
    for (int32_t i = 0; i < it->rows; i++)
        it->judged[i] = TB_R((double)from[i] + (moves ? amplitude * tb_random_normal(&random) : 0));
    tb_newton_project(it->problem, it->judged, it->judged);
    for (int32_t i = 0; i < it->rows; i++) it->lambda[i] = (double)it->judged[i];
    for (int32_t b = 0; b < it->problem->number_of_blocks; b++) {
        const tb_block *block = &it->problem->blocks[b];
        const double g = (double)tb_newton_mean_diagonal(it->problem, b);
        for (int32_t i = 0; i < block->rows; i++)
            it->r[block->row + i] = g > 0 ? RESTART_SCALES[run % NUMBER_OF_SCALES] / g : 0;
    }
}

/* Brings impulses into their sets and judges them. Those that reach the tolerance are the solution's;
 * others leave no trace, since a contradiction has impulses without bound for hardly any gain. */
TB_STATIC tb_status restarts_judge(const tb_restarts *it, tb_arena *scratch, double tolerance,
                                   tb_solution *solution)
{
    tb_residuals residuals;
    for (int32_t i = 0; i < it->rows; i++) it->judged[i] = TB_R(it->lambda[i]);
    if (!tb_all_finite(it->judged, it->rows)) return TB_OK;
    tb_newton_project(it->problem, it->judged, it->judged);
    tb_status status =
        tb_problem_judge(it->problem, it->judged, NULL, scratch, NULL, NULL, &residuals);
    if (status != TB_OK || !(residuals.natural <= tolerance)) return status;
    for (int32_t i = 0; i < it->rows; i++) solution->lambda[i] = it->judged[i];
    return tb_problem_judge(it->problem, solution->lambda, NULL, scratch, solution->whitened,
                            solution->xi, &solution->residuals);
}

TB_EXTERN tb_status tb_solve_restarts(const tb_problem *problem, const tb_solve_options *options,
                                      const tb_warm_start *warm, tb_solution *solution)
{
    const tb_arena_mark mark = tb_arena_get_mark(warm->scratch);
    const int32_t n = problem->number_of_rows;
    tb_restarts it = {.problem = problem, .rows = n};
    double largest = 0;
    solution->iterations = solution->halvings = 0;
    solution->status = TB_NOT_CONVERGED;
    solution->has_fine = false;
    tb_newton_project(problem, warm->lambda, solution->lambda);
    tb_status status = tb_problem_judge(problem, solution->lambda, NULL, warm->scratch,
                                        solution->whitened, solution->xi, &solution->residuals);
    const bool fits = problem->values && n <= LARGEST_ROWS;
    if (status == TB_OK && fits) status = restarts_prepare(&it, warm->scratch);
    for (int32_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)warm->lambda[i]));
    const int32_t cubes = fits ? MOST_CUBES / (n * n * n + 1) : 0;
    const int32_t most = cubes < options->maximum_iterations ? cubes : options->maximum_iterations;
    for (int32_t run = 0; status == TB_OK && solution->iterations < most; run++) {
        if (options->cancelled && options->cancelled(options->cancelled_context))
            status = TB_CANCELLED;
        restarts_start(&it, warm->lambda, largest, run);
        restarts_run(&it, most, &solution->iterations);
        if (status == TB_OK)
            status = restarts_judge(&it, warm->scratch, options->tolerance, solution);
        if (solution->residuals.natural <= options->tolerance) break;
    }
    solution->work.linear_solves = solution->work.factorizations = solution->iterations;
    if (solution->residuals.natural <= options->tolerance) solution->status = TB_OK;
    tb_problem_statuses(problem, solution->lambda, solution->statuses);
    tb_solution_sign(solution, "newton");
    tb_arena_return_to(warm->scratch, mark);
    return status;
}

#endif
