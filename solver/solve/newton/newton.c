/* Semismooth Newton on the exact cone, inside a proximal point method.
 *
 * Outside: the impulses p of the last round pull with a small weight, so that a solution of
 *
 *     xi = G lambda + E lambda + c,      lambda = prox_C(p - xi / w),      w = epsilon g_b
 *
 * is sought, g_b the mean diagonal of G in the block. This is lambda = prox_C(lambda - r (xi + w
 * (lambda - p))) at r = 1 / w, the proximal point form of the method of multipliers (Rockafellar,
 * Math. Oper. Res. 1, 1976). Redundant contacts have one answer there, the one next to p, and the
 * system is regular however far contacts outnumber dofs. Its solution is the next p. Equality rows
 * are part of the same system; their prox is the identity. epsilon falls while Newton needs few
 * steps and rises where it does not contract; the smaller it is, the more digits a round gains.
 * Friction is exact throughout: as in Alart and Curnier (CMAME 92, 1991) the disk's radius moves
 * with the normal impulse, and no convex neighbour is solved in between. Slopes are those of
 * law_slope.h.
 *
 * Inside: Newton on lambda - prox_C(p - xi(lambda) / w). Which contact is open, sticks or slips,
 * and where to, follows from the projections of the given impulses: a block that keeps its status
 * needs no other start. A step is shortened until the merit |w (lambda - prox)|, a velocity, falls.
 * Along a step xi moves in a line, so that a trial costs projections and no product. A round that
 * fails is undone and repeated with a larger epsilon; after some failures in a row, sweeps of sor
 * on the same proximal problem look for the set of contacts, and when rounds gain nothing for long,
 * sweeps on the problem itself.
 *
 * The criterion is always the natural map of the problem itself in double, of impulses projected to
 * their sets; the result is the best of them. */
#include "base/team.h"
#include "solve/newton/law_slope.h"
#include "solve/newton/newton_internal.h"
#include "solve/sweep/rows.h"

#include <string.h>

enum {
    NEWTON_FIRST_SWEEPS = 5, /* of sor: they give Newton an active set to begin with */
    STEPS_OF_ROUND = 12,     /* Newton steps for one p, at most */
    FEW_STEPS = 8,           /* after so few, epsilon falls */
    STEP_SHORTENINGS = 8,    /* of a step, by halves */
    FAILURES_TO_SWEEP = 4,
    SWEEPS_OF_RESCUE = 10,
    WORK_WITHOUT_GAIN = 150, /* steps and sweeps in which the best residual does not halve */
    SWEEPS_OF_FALLBACK = 200,
    MOST_FALLBACKS = 3,
    FALLBACK_FROM_ZERO = 2,   /* the second */
    FALLBACKS_AT_ROUNDING = 1 /* where little more is to be gained than rounding leaves */
};

static const tb_real LARGEST_FIRST_EPSILON = TB_R(0.1), LARGEST_EPSILON = TB_R(10);
static const tb_real EPSILON_GROWTH = TB_R(4);                        /* of epsilon, on failure */
static const tb_real SHRINK_BOLD = TB_R(0.1), SHRINK_SHY = TB_R(0.5); /* else */
static const double ROUND_CONTRACTION = 0.1; /* of a round's merit: enough for the next p */
/* newton alone: just below the tolerance held things would all slide the same way. In float that is
 * where rounding begins, and a step could lead out of it */
#ifdef TB_SINGLE
static const double REST = 1;
#else
static const double REST = 0.1;
#endif
static const double NEAR_ROUNDING = 4;     /* times the residual left by rounding */
static const double LEAST_DECREASE = 1e-4; /* of the merit, over the step's length (Armijo) */

/* how a round ended */
typedef enum tb_round_end { TB_ROUND_SOLVED, TB_ROUND_CONTRACTED, TB_ROUND_FAILED } tb_round_end;

TB_STATIC tb_status take_newton_memory(tb_newton *it)
{
    const int32_t rows = it->problem->number_of_rows, blocks = it->problem->number_of_blocks;
    tb_arena *scratch = it->scratch;
    tb_real **arrays[] = {
        &it->lambda,   &it->xi,       &it->p,     &it->change, &it->dxi,  &it->trial,
#ifdef TB_SINGLE
        &it->fine,
#endif
        &it->trial_xi, &it->prox_gap, &it->shift, &it->stiff,  &it->best, &it->last};
    const int64_t apart = ((int64_t)rows + 7) / 8 * 8; /* aligned as if each were taken by itself */
    const int32_t number = (int32_t)(sizeof arrays / sizeof arrays[0]);
    tb_real *all = TB_ARENA_ARRAY(scratch, tb_real, number * apart);
    if (!all) return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < number; i++) *arrays[i] = all + i * apart;
    it->slope = TB_ARENA_ARRAY(scratch, tb_real, TB_BLOCK_ROWS * (int64_t)rows);
    it->g = TB_ARENA_ARRAY(scratch, tb_real, blocks);
    it->weight = TB_ARENA_ARRAY(scratch, tb_real, blocks);
    it->s = TB_ARENA_ARRAY(scratch, tb_real, it->problem->number_of_dofs);
    it->statuses = TB_ARENA_ARRAY(scratch, uint8_t, blocks);
#ifndef TB_SINGLE
    it->former = TB_ARENA_ARRAY(scratch, uint8_t, blocks);
    if (!it->former) return TB_RESOURCE_EXHAUSTED;
#endif
    it->squares = TB_ARENA_ARRAY(scratch, double, rows);
    tb_real *zero = TB_ARENA_ZEROED(scratch, tb_real, rows);
    if (!it->slope || !it->g || !it->weight || !it->s || !it->statuses || !it->squares || !zero)
        return TB_RESOURCE_EXHAUSTED;
    it->linear = *it->problem;
    it->linear.c = zero;
    it->linear.c_squared = 0;
    return TB_OK;
}

TB_EXTERN tb_real tb_newton_mean_diagonal(const tb_problem *problem, int32_t index)
{
    const tb_block *block = &problem->blocks[index];
    const int32_t n = block->rows;
    tb_real first = 0, mean = 0;
    if (problem->values) {
        for (int32_t i = 0; i < n; i++) {
            const tb_real *y = problem->values + block->value + (int64_t)i * block->width;
            tb_real sum = tb_dot_long(y, y, block->width);
            if (problem->compliance) sum += problem->compliance[block->row + i];
            if (i == 0) first = sum;
            mean += sum / (tb_real)n;
        }
    } else {
        tb_real local[TB_BLOCK_ROWS * TB_BLOCK_ROWS];
        tb_problem_local_block(problem, index, local);
        first = local[0];
        TB_ROLLED
        for (int32_t i = 0; i < n; i++) mean += tb_abs(local[i * n + i]) / (tb_real)n;
    }
    const bool moves = first > 0 || block->law == TB_LAW_BILATERAL;
    return moves && mean > 0 && mean <= TB_REAL_MAX ? mean : 0;
}

TB_EXTERN void tb_newton_measure(tb_newton *it)
{
    TB_EACH (b, it->problem->number_of_blocks) it->g[b] = tb_newton_mean_diagonal(it->problem, b);
    tb_team_sync();
}

TB_EXTERN tb_status tb_newton_prepare(tb_newton *it)
{
    const tb_status status = take_newton_memory(it);
    return status == TB_OK ? tb_newton_system_prepare(&it->system, it->problem, it->scratch)
                           : status;
}

TB_EXTERN void tb_newton_weigh(tb_newton *it)
{
    tb_team_sync();
    TB_EACH (b, it->problem->number_of_blocks) it->weight[b] = it->epsilon * it->g[b];
    tb_team_sync();
}

/* xi of the impulses, summed in double also where it is kept as float: a round can go no nearer to
 * the answer than its xi, and float's sums leave as much as a tolerance of 1e-6. */
TB_STATIC tb_status newton_find_xi(tb_newton *it)
{
    if (sizeof(tb_real) < sizeof(double)) {
        tb_residuals residuals;
        return tb_problem_residuals(it->problem, it->lambda, it->scratch, it->xi, &residuals);
    }
    tb_problem_apply(it->problem, it->lambda, it->s, it->xi);
    return TB_OK;
}

TB_EXTERN double tb_newton_merit(tb_newton *it, const tb_real *lambda, const tb_real *xi, bool keep)
{
    TB_EACH (b, it->problem->number_of_blocks) {
        const tb_block *block = &it->problem->blocks[b];
        const int32_t row = block->row;
        const tb_real w = it->weight[b];
        if (w == 0) { /* without mass behind it */
            it->statuses[b] = TB_CONTACT_OPEN;
            TB_ROLLED
            for (int32_t i = 0; i < block->rows; i++) {
                it->squares[row + i] = 0;
                if (keep) it->prox_gap[row + i] = 0;
            }
            continue;
        }
        const tb_real r = 1 / w;
        tb_real z[TB_BLOCK_ROWS], x[TB_BLOCK_ROWS];
        TB_ROLLED
        for (int32_t i = 0; i < block->rows; i++) x[i] = z[i] = it->p[row + i] - r * xi[row + i];
        if (keep)
            it->statuses[b] = (uint8_t)tb_law_slope(block, z, lambda + row, x,
                                                    it->slope + TB_BLOCK_ROWS * (int64_t)row);
        else
            tb_prox_block(block->law, block->rows, block->mu, block->lower, block->upper, x);
        TB_ROLLED
        for (int32_t i = 0; i < block->rows; i++) {
            const tb_real prox_gap = x[i] - lambda[row + i];
            if (keep) it->prox_gap[row + i] = prox_gap;
            it->squares[row + i] = (double)(w * prox_gap) * (double)(w * prox_gap);
        }
    }
    tb_team_sync();
    double sum = 0;
    for (int32_t i = 0; i < it->problem->number_of_rows; i++) sum += it->squares[i];
    tb_team_sync();
    return sum <= DBL_MAX ? sqrt(sum) : DBL_MAX;
}

TB_EXTERN void tb_newton_project(const tb_problem *problem, const tb_real *lambda, tb_real *to)
{
    tb_team_sync();
    TB_EACH (b, problem->number_of_blocks) {
        const tb_block *block = &problem->blocks[b];
        for (int32_t i = block->row; i < block->row + block->rows; i++) to[i] = lambda[i];
        tb_prox_block(block->law, block->rows, block->mu, block->lower, block->upper,
                      to + block->row);
    }
    tb_team_sync();
}

TB_EXTERN void tb_newton_project_fine(const tb_problem *problem, const tb_real *lambda,
                                      const tb_real *fine, tb_real *to, tb_real *to_fine)
{
    tb_newton_project(problem, lambda, to);
    if (!to_fine) return;
    TB_EACH (i, problem->number_of_rows) to_fine[i] = fine && to[i] == lambda[i] ? fine[i] : 0;
    tb_team_sync();
}

/* Judges the impulses, brought into their sets, and keeps them where they are the best. */
TB_CALLED tb_status newton_judge(tb_newton *it)
{
    const tb_problem *problem = it->problem;
    const size_t bytes = (size_t)problem->number_of_rows * sizeof(tb_real);
    tb_residuals residuals;
    tb_newton_project(problem, it->lambda, it->trial);
    const tb_status status =
        tb_problem_judge(problem, it->trial, NULL, it->scratch, NULL, NULL, &residuals);
    if (status == TB_OK && (residuals.natural < TB_WORTHWHILE_GAIN * it->best_residual ||
                            (residuals.natural <= it->options->tolerance &&
                             it->best_residual > it->options->tolerance))) {
        it->best_residual = residuals.natural;
        tb_team_copy(it->best, it->trial, bytes);
        tb_team_sync();
    }
    return status;
}

/* Sweeps of sor from `lambda` into it, on this problem. */
TB_CALLED tb_status newton_sweep(tb_newton *it, const tb_problem *problem, int32_t sweeps,
                                 double tolerance)
{
    tb_solve_options options = *it->options;
    const int32_t left = options.maximum_iterations - it->work;
    if (left < 1) return TB_OK;
    options.maximum_iterations = sweeps < left ? sweeps : left;
    options.tolerance = tolerance;
    options.stop = TB_STOP_RESIDUAL;
    options.storage = TB_STORAGE_AUTO;
    options.warm_start = true;
    tb_team_sync();
    tb_team_copy(it->trial, it->lambda, (size_t)problem->number_of_rows * sizeof(tb_real));
    tb_team_sync();
    tb_warm_start warm = {.lambda = it->trial, .scratch = it->scratch};
    tb_solution solution = {.lambda = it->lambda, .xi = it->trial_xi, .statuses = it->statuses};
    const tb_status status = tb_solve_sor(problem, &options, &warm, &solution);
    it->work += solution.iterations;
    return status;
}

/* the proximal problem is one like the others: its pull is a compliance and a part of c */
TB_STATIC tb_status newton_sweep_proximal(tb_newton *it)
{
    const tb_problem *problem = it->problem;
    TB_EACH (b, problem->number_of_blocks) {
        TB_ROLLED
        for (int32_t i = 0; i < problem->blocks[b].rows; i++) {
            const int32_t row = problem->blocks[b].row + i;
            it->shift[row] = problem->c[row] - it->weight[b] * it->p[row];
            it->stiff[row] = it->weight[b] + (problem->compliance ? problem->compliance[row] : 0);
        }
    }
    tb_team_sync();
    tb_problem proximal = *problem;
    proximal.c = it->shift;
    proximal.c_squared = 0;
    proximal.compliance = it->stiff;
    return newton_sweep(it, &proximal, SWEEPS_OF_RESCUE, 0);
}

/* Shortens the step until the merit falls below `merit`; true where it did: lambda and xi moved. */
TB_STATIC bool newton_search_line(tb_newton *it, double merit)
{
    const int32_t rows = it->problem->number_of_rows;
    tb_problem_apply(&it->linear, it->change, it->s, it->dxi);
    tb_real length = 1;
    for (int k = 0; k < STEP_SHORTENINGS; k++, length /= 2) {
        TB_EACH (i, rows) {
            it->trial[i] = it->lambda[i] + length * it->change[i];
            it->trial_xi[i] = it->xi[i] + length * it->dxi[i];
        }
        tb_team_sync();
        const double now = tb_newton_merit(it, it->trial, it->trial_xi, false);
        if (now <= merit * (1 - LEAST_DECREASE * (double)length)) {
            tb_team_copy(it->lambda, it->trial, (size_t)rows * sizeof(tb_real));
            tb_team_copy(it->xi, it->trial_xi, (size_t)rows * sizeof(tb_real));
            tb_team_sync();
            return true;
        }
    }
    return false;
}

TB_EXTERN bool tb_newton_is_cancelled(const tb_newton *it)
{
#ifdef TB_DEVICE /* a card has no caller to ask */
    (void)it;
    return false;
#else
    return it->options->cancelled && it->options->cancelled(it->options->cancelled_context);
#endif
}

/* Newton for one p, from p. *steps: how many it took. */
TB_STATIC tb_status newton_round(tb_newton *it, int32_t *steps, tb_round_end *end)
{
    const size_t bytes = (size_t)it->problem->number_of_rows * sizeof(tb_real);
    tb_newton_weigh(it);
    tb_team_copy(it->p, it->lambda, bytes);
    tb_team_sync();
    tb_status status = newton_find_xi(it);
    if (status != TB_OK) return status;
    double merit = tb_newton_merit(it, it->lambda, it->xi, true);
    const double before = merit;
    *steps = 0;
    *end = TB_ROUND_FAILED;
    while (*steps < STEPS_OF_ROUND && it->work < it->options->maximum_iterations) {
        if (tb_newton_is_cancelled(it)) return TB_CANCELLED;
        bool solved = false;
        status = tb_newton_system_solve(&it->system, it->weight, it->slope, it->prox_gap,
                                        it->statuses, it->change, &solved);
        if (status != TB_OK) return status;
        it->work++;
        if (!solved || !newton_search_line(it, merit)) return TB_OK;
        (*steps)++;
        merit = tb_newton_merit(it, it->lambda, it->xi, true);
        status = newton_judge(it);
        if (status != TB_OK) return status;
        if (it->best_residual <= it->options->tolerance) {
            *end = TB_ROUND_SOLVED;
            return TB_OK;
        }
        if (merit <= ROUND_CONTRACTION * before) {
            *end = TB_ROUND_CONTRACTED;
            return TB_OK;
        }
    }
    return TB_OK;
}

/* The merit of impulses as their own p, at the weights as they are. */
TB_CALLED double merit_at_rest(tb_newton *it, const tb_real *lambda)
{
    tb_team_sync();
    tb_team_copy(it->p, lambda, (size_t)it->problem->number_of_rows * sizeof(tb_real));
    tb_team_sync();
    tb_problem_apply(it->problem, it->p, it->s, it->xi);
    return tb_newton_merit(it, it->p, it->xi, false);
}

/* Restores the impulses of `last` if they are better at the present weights: at a small epsilon
 * a step can move impulses far out of their sets, where its merit hardly grows, and no larger
 * epsilon recovers them. */
TB_STATIC void newton_go_back(tb_newton *it)
{
    const double back = merit_at_rest(it, it->last), here = merit_at_rest(it, it->lambda);
    if (here < back) return;
    tb_team_copy(it->lambda, it->last, (size_t)it->problem->number_of_rows * sizeof(tb_real));
    tb_team_sync();
}

/* After a round that failed: a larger epsilon, and sweeps after several failures. A gain of the
 * round at that epsilon is kept. */
TB_STATIC tb_status newton_recover(tb_newton *it)
{
    const size_t bytes = (size_t)it->problem->number_of_rows * sizeof(tb_real);
    it->failures++;
    it->epsilon = tb_min(it->epsilon * EPSILON_GROWTH, LARGEST_EPSILON);
    it->floor = it->epsilon;
    it->shrink = tb_min(tb_sqrt(it->shrink), SHRINK_SHY);
    tb_newton_weigh(it);
    tb_team_copy(it->last, it->p, bytes);
    newton_go_back(it);
    if (it->failures <= FAILURES_TO_SWEEP) return TB_OK;
    tb_team_copy(it->p, it->lambda, bytes);
    tb_team_sync();
    return newton_sweep_proximal(it);
}

/* True if the best residual is at most a few times the rounding of Y and lambda: epsilon |Y| |Y
 * lambda|, with the norm of Y over all its entries. */
TB_STATIC tb_status newton_look_at_rounding(tb_newton *it)
{
    const tb_problem *problem = it->problem;
    tb_residuals residuals;
    const tb_status status =
        tb_problem_residuals(problem, it->best, it->scratch, it->trial_xi, &residuals);
    double squares = 0, energy = 0; /* of Y; lambda' G lambda */
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        squares += (double)it->g[b] * block->rows;
        for (int32_t i = block->row; i < block->row + block->rows; i++)
            energy += (double)it->best[i] * ((double)it->trial_xi[i] - (double)problem->c[i]);
    }
    tb_team_sync(); /* all have read them */
    const double least = (double)TB_REAL_EPSILON * sqrt(squares * fabs(energy));
    it->at_rounding = residuals.natural_absolute <= NEAR_ROUNDING * least;
    return status;
}

/* Decides whether to continue. When rounds no longer reduce the residual, sweeps on the problem
 * itself start from the best impulses, a few times, and fewer times near rounding. One of the
 * sweeps starts from zero: links that jam have impulses that cancel each other, a warm start
 * carries them from step to step and lets them grow, and at 1e10 N s their rounding alone exceeds
 * the tolerance. *go_on is false when no fallback is left. */
TB_STATIC tb_status newton_watch_gain(tb_newton *it, bool *go_on)
{
    *go_on = true;
    if (it->best_residual <= 0.5 * it->gain_residual) {
        it->gain_residual = it->best_residual;
        it->gain_work = it->work;
        return TB_OK;
    }
    if (it->work - it->gain_work < WORK_WITHOUT_GAIN) return TB_OK;
    tb_status status = newton_look_at_rounding(it);
    *go_on = it->fallbacks++ < (it->at_rounding ? FALLBACKS_AT_ROUNDING : MOST_FALLBACKS);
    if (status != TB_OK || !*go_on) return status;
    if (it->fallbacks == FALLBACK_FROM_ZERO) {
        TB_EACH (i, it->problem->number_of_rows) it->lambda[i] = 0;
    } else {
        tb_team_copy(it->lambda, it->best, (size_t)it->problem->number_of_rows * sizeof(tb_real));
    }
    tb_team_sync();
    status = newton_sweep(it, it->problem, SWEEPS_OF_FALLBACK, it->options->tolerance);
    if (status == TB_OK) status = newton_judge(it);
    it->gain_work = it->work;
    it->epsilon = LARGEST_FIRST_EPSILON;
    it->shrink = it->boldest = tb_min(2 * it->boldest, SHRINK_SHY); /* with more care */
    it->failures = 0;
    return status;
}

/* The first epsilon is the square root of the residual: a weak term keeps a good warm start in
 * place, and a strong one makes a cold start contract. */
TB_STATIC tb_real first_epsilon(double residual)
{
    const tb_real root = TB_R(sqrt(residual));
    return tb_clamp(root, TB_SMALLEST_EPSILON, LARGEST_FIRST_EPSILON);
}

TB_CALLED tb_status newton_rounds(tb_newton *it)
{
    it->epsilon = first_epsilon(it->best_residual);
    it->floor = TB_SMALLEST_EPSILON;
    it->shrink = it->boldest = SHRINK_BOLD;
    it->gain_residual = it->best_residual;
    it->gain_work = it->work;
    bool go_on = true;
    while (go_on && it->best_residual > it->options->tolerance &&
           it->work < it->options->maximum_iterations) {
        int32_t steps = 0;
        tb_round_end end = TB_ROUND_FAILED;
        tb_status status = newton_round(it, &steps, &end);
        if (status == TB_OK && end == TB_ROUND_FAILED) {
            status = newton_recover(it);
        } else if (end == TB_ROUND_CONTRACTED) {
            it->failures = 0;
            if (steps <= FEW_STEPS) {
                it->epsilon = tb_max(it->epsilon * it->shrink, tb_min(it->floor, it->epsilon));
                it->floor = tb_max(it->floor * TB_R(0.5), TB_SMALLEST_EPSILON);
                it->shrink = tb_max(it->shrink * TB_R(0.7), it->boldest);
            }
        }
        if (status == TB_OK) status = newton_watch_gain(it, &go_on);
        if (status != TB_OK) return status;
    }
    return TB_OK;
}

/* the best impulses leave, with their honest account */
TB_CALLED tb_status newton_finish(const tb_newton *it, tb_solution *solution)
{
    const tb_problem *problem = it->problem;
    tb_team_copy(solution->lambda, it->best, (size_t)problem->number_of_rows * sizeof(tb_real));
    tb_team_sync();
    const tb_status status =
        tb_problem_judge(problem, solution->lambda, NULL, it->scratch, solution->whitened,
                         solution->xi, &solution->residuals);
    if (status != TB_OK) return status;
    tb_newton_statuses(it, solution);
    solution->iterations = it->work;
    solution->status =
        solution->residuals.natural <= it->options->tolerance ? TB_OK : TB_NOT_CONVERGED;
    return TB_OK;
}

#ifndef TB_SINGLE
/* Rounds along falling weights from a warm start, where the problem has few dofs. */
TB_STATIC tb_status newton_try_path(tb_newton *it, const tb_warm_start *warm, bool *ended)
{
    const tb_problem *problem = it->problem;
    if (warm->apart || !tb_newton_has_path(problem)) return TB_OK;
    if (!it->options->warm_start || !warm->lambda) return TB_OK;
    if (!tb_team_all_finite(problem->c, problem->number_of_rows)) return TB_OK;
    if (!tb_team_all_finite(warm->lambda, problem->number_of_rows)) return TB_OK;
    tb_status status = it->lambda ? TB_OK : tb_newton_prepare(it);
    if (status != TB_OK) return status;
    tb_newton_measure(it);
    tb_newton_project(problem, warm->lambda, it->lambda);
    const int32_t before = it->work;
    status = tb_newton_follow_path(it);
    /* a start within the tolerance is refined, as by the other ways */
    *ended = status == TB_OK && it->best_residual <= it->options->tolerance && it->work > before;
    return status;
}
#endif

/* From anywhere: sweeps first, then rounds. */
TB_STATIC tb_status newton_from_anywhere(tb_newton *it, tb_warm_start *warm, tb_solution *solution,
                                         bool *ended)
{
    const tb_problem *problem = it->problem;
    tb_solve_options first = *it->options;
    const int32_t left = first.maximum_iterations - it->work;
    first.stop = TB_STOP_RESIDUAL;
    first.maximum_iterations = left < NEWTON_FIRST_SWEEPS ? left : NEWTON_FIRST_SWEEPS;
    tb_status status = tb_solve_sor(problem, &first, warm, solution);
    it->work += solution->iterations;
    *ended = status != TB_OK || solution->status == TB_OK ||
             solution->residuals.natural >= TB_RESIDUAL_UNKNOWN ||
             !tb_team_all_finite(problem->c, problem->number_of_rows);
    if (*ended) return status;
    if (!it->lambda) {
        status = tb_newton_prepare(it);
        if (status != TB_OK) return status;
        tb_newton_measure(it);
    }
    tb_team_copy(it->lambda, solution->lambda, (size_t)problem->number_of_rows * sizeof(tb_real));
    tb_team_sync();
    status = newton_judge(it);
    if (status == TB_OK) status = newton_rounds(it);
    return status;
}

/* The sets of the last solve first, where they are known. */
TB_STATIC tb_status newton_solve(tb_newton *it, const tb_warm_start *warm, tb_solution *solution)
{
    bool ended = false;
    tb_status status = TB_OK;
    tb_warm_start start = *warm;
    if (tb_newton_has_sets(it->problem, it->options, warm)) {
        status = tb_newton_prepare(it);
        if (status == TB_OK) status = tb_newton_from_sets(it, warm, solution, &ended);
        if (status != TB_OK) return status;
        tb_solution_sign(solution, "newton");
        if (ended) return TB_OK;
        it->resets++;
        tb_team_copy(it->p, it->best, (size_t)it->problem->number_of_rows * sizeof(tb_real));
        tb_team_sync();
        start.lambda = it->p;
    }
#ifndef TB_SINGLE
    bool found = false;
    if (it->work < it->options->maximum_iterations) status = newton_try_path(it, &start, &found);
    if (status == TB_OK && found) {
        status = newton_finish(it, solution);
        tb_solution_sign(solution, "newton");
    }
    if (status != TB_OK || found) return status;
    if (it->p && start.lambda == it->p) { /* the path has moved p */
        tb_team_copy(it->p, it->best, (size_t)it->problem->number_of_rows * sizeof(tb_real));
        tb_team_sync();
    }
#endif
    if (it->work < it->options->maximum_iterations || it->options->maximum_iterations < 1)
        status = newton_from_anywhere(it, &start, solution, &ended);
    if (status == TB_OK && !ended) {
        status = newton_finish(it, solution);
        tb_solution_sign(solution, "newton");
    }
    return status;
}

/* counts and statuses of the result */
TB_STATIC void newton_account(tb_newton *it, const tb_warm_start *warm, tb_solution *solution)
{
    tb_newton_price price;
    solution->iterations = it->work;
    solution->work.linear_solves = it->system.solves;
    solution->work.factorizations = it->system.factorizations;
    solution->work.resets = it->resets;
    solution->at_rounding = it->at_rounding;
    if (!warm->history || !it->system.has_pattern) return;
    tb_newton_system_price(&it->system, NULL, &price);
    warm->history->price = price.sets_step / price.sweep;
}

TB_EXTERN tb_status tb_solve_from_sets(const tb_problem *problem, const tb_solve_options *options,
                                       const tb_warm_start *warm, tb_solution *solution)
{
    const tb_arena_mark mark = tb_arena_get_mark(warm->scratch);
    tb_newton it = {.problem = problem,
                    .options = options,
                    .scratch = warm->scratch,
                    .best_residual = DBL_MAX,
                    .rest = tb_auto_rest(warm->history)};
    bool ended = false;
    solution->iterations = solution->halvings = 0;
    solution->status = TB_NOT_CONVERGED;
    tb_status status = tb_newton_prepare(&it);
    if (status == TB_OK) status = tb_newton_from_sets(&it, warm, solution, &ended);
    tb_solution_sign(solution, "newton");
    if (status == TB_OK && !ended) {
        it.resets++;
        status = newton_finish(&it, solution);
    }
    newton_account(&it, warm, solution);
    tb_arena_return_to(warm->scratch, mark);
    return status;
}

TB_EXTERN tb_status tb_solve_newton(const tb_problem *problem, const tb_solve_options *options,
                                    tb_warm_start *warm, tb_solution *solution)
{
    const tb_arena_mark mark = tb_arena_get_mark(warm->scratch);
    tb_newton it = {.problem = problem,
                    .options = options,
                    .scratch = warm->scratch,
                    .best_residual = DBL_MAX,
                    .rest = REST};
    solution->iterations = solution->halvings = 0;
    tb_status status = newton_solve(&it, warm, solution);
    newton_account(&it, warm, solution);
    tb_arena_return_to(warm->scratch, mark);
    if (status == TB_UNSUPPORTED) {
        /* too many nodes for a factorization: sweeps have to do */
        tb_solve_options first = *options;
        first.stop = TB_STOP_RESIDUAL;
        status = tb_solve_sor(problem, &first, warm, solution);
    }
    return status;
}
