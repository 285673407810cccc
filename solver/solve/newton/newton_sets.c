/* Newton from the sets of the last solve: which contact was open, stuck or slipped, and where to.
 *
 * From one step of time to the next few contacts change their status, so the first system is
 * assembled for the sets as they were, and its solution is the answer wherever they still are: one
 * linear solve, however far the impulses have to go (Litven 3.8; Hintermueller, Ito, Kunisch, SIAM
 * J. Optim. 13, 2002: the primal-dual active set method is this Newton). Later steps read the sets
 * off the projections, as the method does, and follow the direction of slip. The pull towards the
 * last impulses (see newton.c) is as weak as the tolerance asks for, so that it does not need
 * rounds of its own; nothing shortens a step, since a set that is nearly right needs no safeguard.
 * Where a few steps do not do, the caller's rounds take over from the best impulses met.
 *
 * Where several bodies lie on each other, rounding the impulses to float alone leaves a residual near
 * the usual tolerance, and a stack at rest would be solved again in every step. So in float an
 * impulse has a second number, its rounding error (`fine`): systems are solved in float, steps are
 * added and judged in double, and the state keeps the sum. */
#include "base/team.h"
#include "solve/newton/law_slope.h"
#include "solve/newton/newton_internal.h"

#include <math.h>
#include <string.h>

enum {
    STEPS_FROM_SETS = 6,
    PATIENCE = 2 /* steps in a row that neither are better than the best nor come nearer */
};
static const double PULL_SHARE = 0.1;   /* of the tolerance, that the pull may leave */
static const double UNSEEN_SHARE = 0.3; /* of it, that the linear system's residual may leave */
/* epsilon: a weaker pull would leave the impulses to rounding, the next round does better. In piles
 * the slowest motions have a hundredth of a contact's G: a pull as strong as that would leave
 * them */
#ifdef TB_SINGLE
static const tb_real WEAKEST_PULL = TB_R(1e-4), STRONGEST_PULL = TB_R(1e-3);
#else
static const tb_real WEAKEST_PULL = TB_R(1e-7), STRONGEST_PULL = TB_R(1e-3);
#endif
static const double GAIN_TO_STAY =
    0.01; /* of the start's residual, for impulses that are no answer */
/* of the residual: where a step with the right sets leaves more, the pull is in its way */
static const double SLOW = 0.1;
/* of the residual before a step: one that leaves less comes nearer. Sets that were wrong leap far in the
 * first step, and the next ones come back to the start's residual before they are better than it. */
static const double NEARER = 0.1;
/* of the start's residual, in a world with a history: a step that leaves more had wrong sets, and of 700 such
 * solves of seventeen robots the next steps brought 10 to the tolerance */
static const double LEAP = 1e3;
static const tb_real LEAST_PULL =
    10 * TB_SMALLEST_EPSILON;                /* epsilon: weaker ones leave rounding */
static const tb_real WEAKENING = TB_R(0.05); /* of the proximal term, when sets no longer change */
/* of a known pull: after steps that reached the tolerance, after steps that did not, and after
 * steps that began with it and did not */
static const double PULL_GROWTH = 1.5, PULL_GROWTH_ON_FAILURE = 4, PULL_GROWTH_OF_NO_USE = 12;
static const tb_real NEAR_RIM = TB_R(0.999);

TB_EXTERN bool tb_newton_has_sets(const tb_problem *problem, const tb_solve_options *options,
                                  const tb_warm_start *warm)
{
    if (!options->warm_start || !warm->lambda || !warm->statuses) return false;
    if (!(options->tolerance > 0) || options->maximum_iterations < 1) return false;
    if (!tb_team_all_finite(problem->c, problem->number_of_rows)) return false;
    int32_t known = 0;
    TB_EACH (b, problem->number_of_blocks) known += warm->statuses[b] != TB_STATUS_UNKNOWN;
    tb_team_before(known, &known);
    return 2 * (int64_t)known >= problem->number_of_blocks;
}

/* finite warm impulses, projected to their sets */
TB_STATIC void sets_start(tb_newton *it, const tb_warm_start *warm)
{
    TB_EACH (b, it->problem->number_of_blocks) {
        const tb_block *block = &it->problem->blocks[b];
        tb_real *lambda = it->lambda + block->row;
        for (int32_t i = 0; i < block->rows; i++) lambda[i] = warm->lambda[block->row + i];
        if (!tb_all_finite(lambda, block->rows))
            for (int32_t i = 0; i < block->rows; i++) lambda[i] = 0;
        tb_prox_block(block->law, block->rows, block->mu, block->lower, block->upper, lambda);
        for (int32_t i = block->row; it->fine && i < block->row + block->rows; i++)
            it->fine[i] = warm->fine && it->lambda[i] == warm->lambda[i] ? warm->fine[i] : 0;
    }
    tb_team_sync();
}

/* how fast a contact slips */
TB_STATIC tb_real slip_speed(const tb_block *block, const tb_real *xi)
{
    if (block->law == TB_LAW_BILATERAL || block->rows < 2) return 0;
    return tb_hypot2(xi[1], block->rows > 2 ? xi[2] : 0);
}

/* Whether dry friction at one of its bounds would jump to the other one next. Between the two it sticks:
 * under a weak pull any velocity moves its projection from bound to bound, and statuses that leave out
 * the stick alternate for ever. */
TB_STATIC bool slip_turns(const tb_block *block, const tb_real *z, const tb_real *lambda)
{
    if (block->law != TB_LAW_BOX) return false;
    const bool low = lambda[0] - block->lower < block->upper - lambda[0];
    return low ? z[0] >= block->upper : z[0] <= block->lower;
}

TB_EXTERN bool tb_newton_linearize(tb_newton *it, const uint8_t *statuses, const tb_real *speeds)
{
    bool same = true;
    TB_EACH (b, it->problem->number_of_blocks) {
        const tb_block *block = &it->problem->blocks[b];
        const int32_t row = block->row;
        const tb_real w = it->weight[b];
        uint8_t status = TB_CONTACT_OPEN;
        if (w == 0) { /* without mass behind it */
            TB_ROLLED
            for (int32_t i = 0; i < block->rows; i++) it->prox_gap[row + i] = 0;
        } else {
            const tb_real r = 1 / w;
            tb_real z[TB_BLOCK_ROWS], x[TB_BLOCK_ROWS];
            tb_real *slope = it->slope + TB_BLOCK_ROWS * (int64_t)row;
            TB_ROLLED
            for (int32_t i = 0; i < block->rows; i++) z[i] = it->p[row + i] - r * it->xi[row + i];
            int known = statuses ? statuses[b] : (int)TB_STATUS_UNKNOWN;
            if (!statuses && it->statuses[b] == TB_CONTACT_SLIP &&
                slip_turns(block, z, it->lambda + row))
                known = TB_CONTACT_STICK;
            const tb_real speed = speeds ? speeds[b] : slip_speed(block, it->xi + row);
            status = (uint8_t)tb_law_slope_of_status(block, known, r * speed, z, it->lambda + row,
                                                     x, slope);
            TB_ROLLED
            for (int32_t i = 0; i < block->rows; i++)
                it->prox_gap[row + i] = x[i] - it->lambda[row + i];
            TB_ROLLED
            for (int32_t i = 0; it->fine && i < block->rows; i++)
                if (x[i] == z[i]) /* without the digits that rounding took from z */
                    it->prox_gap[row + i] =
                        it->p[row + i] - it->lambda[row + i] - r * it->xi[row + i];
        }
        same = same && !statuses && status == it->statuses[b];
        it->statuses[b] = status;
    }
    tb_team_sync();
    return tb_team_all(same);
}

/* Judges the impulses, brought into their sets; the best stay. */
TB_CALLED tb_status sets_judge(tb_newton *it, tb_solution *solution)
{
    const tb_problem *problem = it->problem;
    tb_real *fine = it->fine ? solution->fine : NULL;
    tb_newton_project_fine(problem, it->lambda, it->fine, solution->lambda, fine);
    const tb_status status =
        tb_problem_judge(problem, solution->lambda, fine, it->scratch, solution->whitened,
                         solution->xi, &solution->residuals);
    const double residual = solution->residuals.natural, tolerance = it->options->tolerance;
    if (status == TB_OK && (residual < TB_WORTHWHILE_GAIN * it->best_residual ||
                            (residual <= tolerance && it->best_residual > tolerance))) {
        it->best_residual = solution->residuals.natural;
        tb_team_copy(it->best, solution->lambda, (size_t)problem->number_of_rows * sizeof(tb_real));
        tb_team_sync();
    }
    return status;
}

/* length of lambda - r xi in friction's set; mu lambda_n on its rim */
TB_CALLED tb_real rub_extent(const tb_real *lambda, const tb_real *xi, tb_real r, int32_t n)
{
    tb_real extent = 0;
    TB_ROLLED
    for (int32_t i = 1; i < n; i++)
        extent = tb_hypot2(extent, (i == 3 ? TB_R(1.5) : 1) * (lambda[i] - r * xi[i]));
    return extent;
}

/* A contact that slips may have impulses a rounding inside of their rim: then xi says so. */
TB_EXTERN void tb_newton_statuses(const tb_newton *it, tb_solution *solution)
{
    const tb_problem *problem = it->problem;
    tb_problem_statuses(problem, solution->lambda, solution->statuses);
    TB_EACH (b, problem->number_of_blocks) {
        const tb_block *block = &problem->blocks[b];
        const bool rubs = tb_law_has_friction(block->law);
        if (!rubs || solution->statuses[b] != TB_CONTACT_STICK) continue;
        const tb_real *lambda = solution->lambda + block->row, *xi = solution->xi + block->row;
        const tb_real radius = block->mu * lambda[0];
        const int32_t n = block->rows < 4 ? block->rows : 4;
        if (rub_extent(lambda, xi, 0, n) < NEAR_RIM * radius) continue;
        const tb_real g = tb_newton_mean_diagonal(problem, b);
        if (g > 0 && rub_extent(lambda, xi, 1 / g, n) > radius)
            solution->statuses[b] = TB_CONTACT_SLIP;
    }
    tb_team_sync();
}

/* One step; false where there is none. */
TB_STATIC tb_status sets_step(tb_newton *it, bool *stepped)
{
    const tb_status status = tb_newton_system_solve(
        &it->system, it->weight, it->slope, it->prox_gap, it->statuses, it->change, stepped);
    it->work++;
    if (status != TB_OK || !*stepped) return status;
    TB_EACH (i, it->problem->number_of_rows) {
        const double sum = tb_impulse_at(it->lambda, it->fine, i) + (double)it->change[i];
        it->lambda[i] = TB_R(sum);
        if (it->fine) it->fine[i] = TB_R(sum - (double)it->lambda[i]);
    }
    tb_team_sync();
    return TB_OK;
}

/* xi follows the last step, where another comes after it. */
TB_STATIC void sets_follow(tb_newton *it)
{
    tb_newton_system_move(&it->system, it->change, it->dxi);
    TB_EACH (i, it->problem->number_of_rows) it->xi[i] += it->dxi[i];
    tb_team_sync();
}

/* A weaker pull, when the sets no longer change and the tolerance is not reached: slow motions need
 * it, an arm near a singular pose above all. False where it is as weak as it may be. */
TB_STATIC bool sets_weaken(tb_newton *it)
{
    const tb_real epsilon = tb_max(WEAKENING * it->epsilon, LEAST_PULL);
    if (!(epsilon < it->epsilon)) return false;
    it->epsilon = epsilon;
    tb_newton_cached_factor_end(&it->system);
    tb_newton_weigh(it);
    return true;
}

/* Steps until the tolerance is reached, or they lead nowhere. */
TB_STATIC tb_status sets_iterate(tb_newton *it, const tb_warm_start *warm, tb_solution *solution)
{
    const size_t bytes = (size_t)it->problem->number_of_rows * sizeof(tb_real);
    const double tolerance = it->options->tolerance, start = it->best_residual;
    int32_t idle = 0;
    double last = DBL_MAX; /* residual before the last step */
    for (int32_t k = 0; k < STEPS_FROM_SETS && (k == 0 || it->best_residual > tolerance) &&
                        it->work < it->options->maximum_iterations;
         k++) {
        if (k > 0) sets_follow(it);
        if (k == 0) {
            tb_newton_linearize(it, warm->statuses, warm->speeds);
        } else if (tb_newton_linearize(it, NULL, NULL)) {
            /* the sets no longer change: the rest is due to the proximal term, a turning slip,
             * or rounding */
            tb_team_copy(it->lambda, solution->lambda, bytes);
            tb_team_copy(it->xi, solution->xi, bytes);
            tb_team_copy(it->p, solution->lambda, bytes);
            if (it->fine) tb_team_copy(it->fine, solution->fine, bytes);
            tb_team_sync();
            if (solution->residuals.natural > SLOW * last && sets_weaken(it)) idle = 0;
            tb_newton_linearize(it, it->statuses, NULL);
        }
        if (tb_newton_is_cancelled(it)) return TB_CANCELLED;
        bool stepped = false;
        const double before = it->best_residual;
        last = solution->residuals.natural;
        tb_status status = sets_step(it, &stepped);
        if (status == TB_OK && stepped) status = sets_judge(it, solution);
        if (status != TB_OK) return status;
        const bool nears = solution->residuals.natural < NEARER * last;
        idle = nears || it->best_residual < before ? 0 : idle + 1;
        const bool leaps = warm->history && solution->residuals.natural > LEAP * start;
        if (!stepped || idle > PATIENCE || leaps) break;
    }
    return TB_OK;
}

/* A residual of the linear system that the tolerance does not see: it is a whitened velocity, and
 * moves xi by Y' times it. */
TB_STATIC double residual_unseen(const tb_newton *it)
{
    double rows = 0; /* squares of all numbers of Y, or more */
    TB_ROLLED
    for (int32_t b = 0; b < it->problem->number_of_blocks; b++)
        rows += (double)it->g[b] * it->problem->blocks[b].rows;
    const double seen = it->options->tolerance * sqrt(tb_problem_c_squared(it->problem));
    return rows > 0 ? UNSEEN_SHARE * seen / sqrt(rows) : 0;
}

TB_EXTERN bool tb_newton_is_elastic(const tb_problem *problem)
{
    bool elastic = problem->compliance != NULL;
    TB_ROLLED
    for (int32_t i = 0; elastic && i < problem->number_of_rows; i++)
        elastic = problem->compliance[i] > 0;
    return elastic;
}

/* epsilon for steps from a start of that residual. The slow motions of a world, say of a light hand
 * on a heavy base, are the same from solve to solve: a pull that had to weaken for them is not
 * tried again at once. */
TB_STATIC tb_real pull_of(const tb_newton *it, const tb_solve_history *history, double residual)
{
    if (tb_newton_is_elastic(it->problem)) return LEAST_PULL;
    const tb_real known = history ? TB_R(history->pull) : 0;
    const tb_real pull = TB_R(PULL_SHARE * it->options->tolerance / residual);
#ifdef TB_SINGLE
    /* a kept factor serves as long as pulls are alike, so where there is one they are strong: few
     * bodies have no slow motions */
    const tb_real more = tb_cached_factor_numbers(it->problem->number_of_dofs) > 0 ? 10 : 1;
#else
    const tb_real more = 1;
#endif
    const tb_real asked = tb_clamp(pull, more * WEAKEST_PULL, more * STRONGEST_PULL);
    return known > 0 && known < asked ? known : asked;
}

/* The pull that the next solve begins with: that of steps that had to weaken it twice, or as far as
 * it goes. A pull that weakened once is no sign of slow motions: sets that change also ask for it.
 * A known pull that did not have to weaken grows, so that it is given up where the slow motions
 * are gone. Steps that begin with it and fail although it is weak have another reason to fail, such
 * as sets that are wrong: a weak pull lets the impulses of wrong sets leap, so that it grows by much
 * more. */
TB_STATIC void learn_of_pull(const tb_newton *it, tb_real first, tb_solve_history *history)
{
    if (!history) return;
    const bool reached = it->best_residual <= it->options->tolerance;
    const bool known = history->pull > 0 && first == TB_R(history->pull);
    const bool weakened = it->epsilon < first;
    if (known && !reached)
        history->pull *= PULL_GROWTH_OF_NO_USE;
    else if (weakened && (it->epsilon < WEAKENING * first || it->epsilon <= LEAST_PULL))
        history->pull = (double)it->epsilon;
    else if (reached)
        history->pull *= PULL_GROWTH;
    else
        history->pull *= PULL_GROWTH_ON_FAILURE;
    if (history->pull > (double)STRONGEST_PULL) history->pull = 0;
}

TB_EXTERN tb_status tb_newton_from_sets(tb_newton *it, const tb_warm_start *warm,
                                        tb_solution *solution, bool *ended)
{
    const size_t bytes = (size_t)it->problem->number_of_rows * sizeof(tb_real);
    const double tolerance = it->options->tolerance;
    tb_status status = tb_newton_cached_factor_prepare(&it->system, warm->factor);
    if (status != TB_OK) return status;
    if (sizeof(tb_real) == sizeof(double) || !solution->fine) it->fine = NULL;
    sets_start(it, warm);
    tb_team_copy(it->best, it->lambda, bytes);
    tb_team_copy(it->shift, it->lambda, bytes);
    tb_team_sync();
    status = sets_judge(it, solution);
    const double start = it->best_residual;
    if (status == TB_OK && it->best_residual > it->rest * tolerance) {
        tb_newton_measure(it);
        it->epsilon = pull_of(it, warm->history, it->best_residual);
        it->epsilon = TB_R(
            tb_newton_cached_factor_begin(&it->system, (double)it->epsilon, residual_unseen(it)));
        tb_team_copy(it->xi, solution->xi, bytes);
        tb_team_copy(it->p, it->lambda, bytes);
        tb_newton_weigh(it);
        const tb_real first = it->epsilon;
        status = sets_iterate(it, warm, solution);
        learn_of_pull(it, first, warm->history);
        tb_newton_cached_factor_end(&it->system);
    }
    *ended = status == TB_OK && it->best_residual <= tolerance &&
             solution->residuals.natural <= tolerance;
    if (*ended) {
        solution->status = TB_OK;
        solution->has_fine = it->fine != NULL;
        tb_newton_statuses(it, solution);
    } else if (status == TB_OK && it->best_residual > GAIN_TO_STAY * start) {
        /* where no impulses satisfy a contradiction, a weak pull piles them up: not from there */
        it->best_residual = start;
        tb_team_copy(it->best, it->shift, bytes);
        tb_team_sync();
    }
    return status;
}
