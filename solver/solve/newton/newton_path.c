/* Newton along falling weights of the proximal term, from a warm start, in up to 64 dofs.
 *
 * The proximal problem of newton.c is easy at a large epsilon: from a warm start Newton needs two
 * to five steps at 0.1, and crawls from kink to kink at 1e-4. So the first round has the epsilon of
 * the start's residual, and each later round a smaller one. Two things keep the rounds short:
 *
 *   - Where the sets (open, stick, slip, and where to) of the last round hold at the new epsilon,
 *     its solution is that of one linear system, so the first step of a round assumes these sets.
 *     Read off the projections, they would be wrong: at a smaller epsilon the projected point
 *     p - xi / w lies far from the impulses.
 *   - The other steps end where the gap prox - lambda is at a right angle to their own dxi. With
 *     the radii of friction held, -dxi' gap is the derivative of a convex function along the step,
 *     so that this is an exact line search (as in Todorov, ICRA 2014, section IV, for the primal).
 *     Along a step xi moves in a line: a trial costs projections and no product.
 *
 * Slow motions, such as those of an arm on a heavy base, show the residual no change until the pull is weak
 * enough for them: after each round with assumed sets that hardly gains, epsilon falls faster.
 *
 * Where the steps do not reach the tolerance, the caller continues with sweeps and the rounds of
 * newton.c. Not in float, whose rounding leaves too few epsilons. */
#include "base/team.h"
#include "solve/newton/newton_internal.h"

/* Piles of free bodies take the rounds of newton.c: the path's are no fewer there. So only worlds with a
 * block of linked bodies have a path, and more dofs than two free bodies: sweeps soon end the others. The
 * same holds for islands of larger worlds, which the caller leaves out. */
enum { FREE_BODY_DOFS = 6, TWO_FREE_BODIES_DOFS = 12 };

/* Whether a block moves more dofs than two free bodies, or more in a run than one: an arm, or a leg and its
 * base. */
TB_STATIC bool is_linked(const tb_problem *problem, const tb_block *block)
{
    bool linked = block->width > TWO_FREE_BODIES_DOFS;
    for (int32_t k = 0; k < block->segments && !linked; k++)
        linked = problem->segments[block->segment + k].count > FREE_BODY_DOFS;
    return linked;
}

TB_EXTERN bool tb_newton_has_path(const tb_problem *problem)
{
    const int32_t dofs = problem->number_of_dofs;
    const bool is_double = sizeof(tb_real) == sizeof(double);
    const bool fits = dofs > TWO_FREE_BODIES_DOFS && dofs <= TB_DENSE_DOFS && problem->values;
    bool linked = false;
    for (int32_t b = 0; is_double && fits && !linked && b < problem->number_of_blocks; b++)
        linked = is_linked(problem, &problem->blocks[b]);
    return linked;
}

#ifndef TB_SINGLE
enum {
    PATH_STEPS = 32,          /* linear solves of all rounds */
    PATH_STEPS_OF_ROUND = 10, /* with a line search */
    PATH_LENGTHENINGS = 3,    /* of a step, by doubling */
    PATH_SECTIONS = 8,        /* of the interval of lengths */
    PATH_SHORT_ROUND = 2,     /* steps: fewer are a short round */
    PATH_PATIENCE = 3         /* rounds in a row that are no better than the best */
};
static const double PATH_LEAST_FIRST_EPSILON = 1e-3, PATH_LARGEST_EPSILON = 0.1;
/* below it a round of several steps does not end; short rounds go on to the smallest */
static const double PATH_LEAST_EPSILON = 1e-4;
static const double PATH_IDLE_EPSILON = 1e-7; /* short rounds above it need not be better */
static const double PATH_SHRINK = 0.3;        /* of epsilon, a round */
/* of the residual: a round with assumed sets that leaves more is slow, and epsilon falls faster */
static const double PATH_SLOW = 0.5;
static const double RIGHT_ANGLE = 0.1;    /* of the derivative at the step's begin */
static const double SECTION_MARGIN = 0.1; /* of an interval, at both ends */
static const double SETS_HOLD = 1e-3; /* of the merit: a step with assumed sets ends the round */

/* The gap prox - lambda at lambda + length change, times -dxi: the derivative of the step. */
TB_CALLED double path_derivative(tb_newton *it, double length)
{
    TB_EACH (b, it->problem->number_of_blocks) {
        const tb_block *block = &it->problem->blocks[b];
        const int32_t row = block->row;
        const tb_real w = it->weight[b];
        tb_real lambda[TB_BLOCK_ROWS] = {0}, x[TB_BLOCK_ROWS] = {0};
        TB_ROLLED
        for (int32_t i = 0; i < block->rows; i++) {
            lambda[i] = it->lambda[row + i] + length * it->change[row + i];
            const tb_real xi = it->xi[row + i] + length * it->dxi[row + i];
            x[i] = w > 0 ? it->p[row + i] - xi / w : lambda[i];
        }
        if (w > 0) tb_prox_block(block->law, block->rows, block->mu, block->lower, block->upper, x);
        TB_ROLLED
        for (int32_t i = 0; i < block->rows; i++)
            it->squares[row + i] = -it->dxi[row + i] * (x[i] - lambda[i]);
    }
    tb_team_sync();
    double sum = 0;
    for (int32_t i = 0; i < it->problem->number_of_rows; i++) sum += it->squares[i];
    tb_team_sync();
    return sum;
}

/* The length at which the derivative is near zero: 1, or a point of an interval around the zero
 * by regula falsi. */
TB_STATIC double path_search(tb_newton *it)
{
    const double begin = path_derivative(it, 0), near = RIGHT_ANGLE * fabs(begin);
    double low = 0, high = 1, at_low = begin, at_high = path_derivative(it, 1);
    if (fabs(at_high) <= near) return 1;
    for (int k = 0; k < PATH_LENGTHENINGS && at_high < 0; k++) {
        low = high;
        at_low = at_high;
        high *= 2;
        at_high = path_derivative(it, high);
    }
    if (!(at_high > 0)) return at_high <= 0 ? high : 1;
    double length = high;
    for (int k = 0; k < PATH_SECTIONS; k++) {
        double share = -at_low / (at_high - at_low);
        if (!(share > SECTION_MARGIN)) share = SECTION_MARGIN;
        if (share > 1 - SECTION_MARGIN) share = 1 - SECTION_MARGIN;
        length = low + (high - low) * share;
        const double here = path_derivative(it, length);
        if (fabs(here) <= near) break;
        if (here < 0) {
            low = length;
            at_low = here;
        } else {
            high = length;
            at_high = here;
        }
    }
    return length;
}

/* to = lambda + length change, to_xi = xi + length dxi */
TB_STATIC void path_move(const tb_newton *it, double length, tb_real *to, tb_real *to_xi)
{
    TB_EACH (i, it->problem->number_of_rows) {
        to[i] = it->lambda[i] + length * it->change[i];
        to_xi[i] = it->xi[i] + length * it->dxi[i];
    }
    tb_team_sync();
}

/* Keeps the statuses of now; true where they are those that were kept before. */
TB_STATIC bool path_keep_statuses(const tb_newton *it, uint8_t *kept)
{
    bool same = true;
    TB_EACH (b, it->problem->number_of_blocks) {
        same = same && kept[b] == it->statuses[b];
        kept[b] = it->statuses[b];
    }
    return tb_team_all(same);
}

/* The step from lambda, with lack, slopes and statuses as they are. */
TB_STATIC tb_status path_solve(tb_newton *it, bool *solved)
{
    if (tb_newton_is_cancelled(it)) return TB_CANCELLED;
    const tb_status status = tb_newton_system_solve(&it->system, it->weight, it->slope,
                                                    it->prox_gap, it->statuses, it->change, solved);
    it->work++;
    if (status == TB_OK && *solved) tb_newton_system_move(&it->system, it->change, it->dxi);
    return status;
}

/* Steps with a line search, until a whole one keeps all statuses. *steps: how many; *solved: false
 * where a system was singular. */
TB_STATIC tb_status path_steps(tb_newton *it, int32_t limit, int32_t *steps, bool *solved)
{
    tb_newton_merit(it, it->lambda, it->xi, true);
    path_keep_statuses(it, it->former);
    for (*steps = 0; *steps < PATH_STEPS_OF_ROUND && it->work < limit;) {
        const tb_status status = path_solve(it, solved);
        if (status != TB_OK || !*solved) return status;
        (*steps)++;
        const double length = path_search(it);
        path_move(it, length, it->lambda, it->xi);
        tb_newton_merit(it, it->lambda, it->xi, true);
        if (path_keep_statuses(it, it->former) && length == 1) break;
    }
    return TB_OK;
}

/* A step that assumes the statuses `former` of lambda, with the slip of xi, which is lambda's:
 * trial, trial_xi. Leaves p = lambda and the weights of it->epsilon. */
TB_STATIC tb_status path_assume(tb_newton *it, bool *solved)
{
    tb_newton_weigh(it);
    tb_team_copy(it->p, it->lambda, (size_t)it->problem->number_of_rows * sizeof(tb_real));
    tb_team_sync();
    tb_newton_linearize(it, it->former, NULL);
    const tb_status status = path_solve(it, solved);
    if (status == TB_OK && *solved) path_move(it, 1, it->trial, it->trial_xi);
    return status;
}

/* Judges impulses in their sets; the best stay. Writes their xi. */
TB_STATIC tb_status path_judge(tb_newton *it, const tb_real *lambda, tb_real *xi, double *residual)
{
    tb_residuals residuals;
    const tb_status status =
        tb_problem_judge(it->problem, lambda, NULL, it->scratch, NULL, xi, &residuals);
    *residual = residuals.natural;
    const double tolerance = it->options->tolerance;
    if (status == TB_OK && (*residual < TB_WORTHWHILE_GAIN * it->best_residual ||
                            (*residual <= tolerance && it->best_residual > tolerance))) {
        it->best_residual = *residual;
        tb_team_copy(it->best, lambda, (size_t)it->problem->number_of_rows * sizeof(tb_real));
        tb_team_sync();
    }
    return status;
}

/* The round's impulses, brought into their sets, are the next; `former` are their statuses. The
 * projections p - xi / w would be those of a solution, but divide what is left by w. */
TB_STATIC tb_status path_end_round(tb_newton *it, double *residual)
{
    tb_newton_merit(it, it->lambda, it->xi, true);
    path_keep_statuses(it, it->former);
    tb_newton_project(it->problem, it->lambda, it->trial);
    tb_team_copy(it->lambda, it->trial, (size_t)it->problem->number_of_rows * sizeof(tb_real));
    tb_team_sync();
    return path_judge(it, it->lambda, it->xi, residual);
}

/* One round at it->epsilon, after `rounds` others. *steps: with a line search. */
TB_STATIC tb_status path_round(tb_newton *it, int32_t limit, int32_t rounds, int32_t *steps,
                               bool *solved)
{
    const size_t bytes = (size_t)it->problem->number_of_rows * sizeof(tb_real);
    tb_status status = TB_OK;
    *steps = 0;
    if (rounds > 0) {
        status = path_assume(it, solved);
        if (status != TB_OK || !*solved) return status;
        const double before = tb_newton_merit(it, it->lambda, it->xi, false);
        const double after = tb_newton_merit(it, it->trial, it->trial_xi, false);
        if (after < before) {
            tb_team_copy(it->lambda, it->trial, bytes);
            tb_team_copy(it->xi, it->trial_xi, bytes);
            tb_team_sync();
        }
        if (after < SETS_HOLD * before) return TB_OK;
    } else {
        tb_newton_weigh(it);
        tb_team_copy(it->p, it->lambda, bytes);
        tb_team_sync();
    }
    return path_steps(it, limit, steps, solved);
}

TB_EXTERN tb_status tb_newton_follow_path(tb_newton *it)
{
    const double tolerance = it->options->tolerance;
    double residual = 0;
    tb_status status = path_judge(it, it->lambda, it->xi, &residual);
    const int32_t left = it->options->maximum_iterations - it->work;
    const int32_t limit = it->work + (left < PATH_STEPS ? left : PATH_STEPS);
    it->epsilon = tb_clamp(sqrt(residual), PATH_LEAST_FIRST_EPSILON, PATH_LARGEST_EPSILON);
    bool solved = true;
    int32_t idle = 0;
    double shrink = PATH_SHRINK;
    for (int32_t rounds = 0; status == TB_OK && solved && idle < PATH_PATIENCE &&
                             it->best_residual > tolerance && it->work < limit;
         rounds++) {
        const double best = it->best_residual, before = residual;
        int32_t steps = 0;
        status = path_round(it, limit, rounds, &steps, &solved);
        if (status == TB_OK) status = path_end_round(it, &residual);
        if (status != TB_OK || it->best_residual <= tolerance || it->work >= limit) break;
        const bool is_short = steps < PATH_SHORT_ROUND;
        if (it->best_residual < best)
            idle = 0;
        else if (!is_short || it->epsilon <= PATH_IDLE_EPSILON)
            idle++;
        const bool is_slow = steps == 0 && residual > PATH_SLOW * before;
        shrink = is_slow ? shrink * PATH_SHRINK : PATH_SHRINK;
        const double least = is_short ? (double)TB_SMALLEST_EPSILON : PATH_LEAST_EPSILON;
        it->epsilon = tb_max(it->epsilon * shrink, tb_min(least, it->epsilon));
    }
    return status;
}
#endif
