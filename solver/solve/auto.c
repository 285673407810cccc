/* The solver that chooses: sweeps while they will do, Newton where they will not.
 *
 * A warm start is mostly good already, and most cold problems need some dozen sweeps, each far
 * cheaper than a Newton step. So sor begins. Where two short runs do not reach the tolerance, the
 * rate at which the residual fell from one to the other says how many sweeps are left, and the
 * pattern of Newton's system what those cost against the usual number of Newton steps. Sweeps go on
 * in runs that double while they are the cheaper way; then Newton takes over, and sweeps again
 * should it fail. The choice depends on the problem and its
 * start alone, never on a clock: the same call gives the same bytes. solution->solver names the one
 * that ended the work. */
#include "base/team.h"
#include "solve/newton_system.h"
#include "solve/solve.h"

#include <string.h>

enum {
    AUTO_FIRST_SWEEPS = 10,
    AUTO_NEXT_SWEEPS = 20,       /* before the rate is looked at again, at first */
    USUAL_NEWTON_STEPS = 20,     /* of Newton from where sweeps left */
    LEAST_NEWTON_ITERATIONS = 50 /* of Newton's, where the options ask for few */
};
static const double SLOWEST_RATE = 0.999; /* of the residual, a sweep: beyond, sweeps stand still */
static const double NEWTON_SHARE = 0.75;  /* of the iterations, at most */

typedef struct tb_choice {
    const tb_problem *problem;
    const tb_solve_options *options;
    tb_arena *scratch;
    tb_solution *solution;
    tb_real *start, *best; /* rows */
    double best_residual;
    char best_solver[16];
    int32_t iterations, halvings;
} tb_choice;

/* One run, of sor or newton, of at most so many iterations, from what the last one left. */
TB_STATIC tb_status auto_run(tb_choice *choice, bool newton, tb_warm_start *warm,
                             int32_t iterations, bool *ended)
{
    tb_solution *solution = choice->solution;
    const size_t bytes = (size_t)choice->problem->number_of_rows * sizeof(tb_real);
    tb_solve_options options = *choice->options;
    const int32_t left = options.maximum_iterations - choice->iterations;
    options.maximum_iterations = iterations < left ? iterations : left;
    tb_warm_start own = {.scratch = choice->scratch};
    if (!warm) {
        tb_team_sync();
        tb_team_copy(choice->start, solution->lambda, bytes);
        tb_team_sync();
        own.lambda = choice->start;
        options.warm_start = true;
        warm = &own;
    }
    const tb_status status = newton ? tb_solve_newton(choice->problem, &options, warm, solution)
                                    : tb_solve_sor(choice->problem, &options, warm, solution);
    if (status != TB_OK) return status;
    choice->iterations += solution->iterations;
    choice->halvings += solution->halvings;
    if (solution->residuals.natural < choice->best_residual) {
        choice->best_residual = solution->residuals.natural;
        tb_team_copy(choice->best, solution->lambda, bytes);
        tb_team_sync();
        memcpy(choice->best_solver, solution->solver, sizeof choice->best_solver);
    }

    /* numbers that are not finite are no better in other hands */
    *ended = solution->status == TB_OK || solution->residuals.natural >= TB_RESIDUAL_UNKNOWN ||
             !tb_all_finite(choice->problem->c, choice->problem->number_of_rows) ||
             choice->iterations >= choice->options->maximum_iterations;
    return TB_OK;
}

/* How many sweeps are worth as much as Newton's usual steps; none where it cannot be had. */
TB_STATIC tb_status price_of_newton(tb_choice *choice, double *sweeps)
{
    const tb_arena_mark mark = tb_arena_get_mark(choice->scratch);
    tb_newton_system system;
    double step = 0, one_sweep = 1;
    tb_status status = tb_newton_system_prepare(&system, choice->problem, choice->scratch);
    if (status == TB_OK)
        status = tb_newton_system_price(&system, choice->solution->statuses, &step, &one_sweep);
    tb_arena_return_to(choice->scratch, mark);
    *sweeps = status == TB_UNSUPPORTED ? DBL_MAX : (double)USUAL_NEWTON_STEPS * step / one_sweep;
    return status == TB_UNSUPPORTED ? TB_OK : status;
}

/* how many sweeps are left at the rate between two residuals */
TB_STATIC double auto_sweeps_left(double before, double after, double sweeps, double tolerance)
{
    if (!(after > 0) || !(tolerance > 0)) return DBL_MAX;
    const double rate = before > 0 ? exp(log(after / before) / sweeps) : 1;
    return rate < SLOWEST_RATE ? log(tolerance / after) / log(rate) : DBL_MAX;
}

TB_STATIC tb_status auto_choose(tb_choice *choice, tb_warm_start *warm)
{
    const int32_t most = choice->options->maximum_iterations;
    const double tolerance = choice->options->tolerance;
    bool ended = false;
    tb_status status = auto_run(choice, false, warm, AUTO_FIRST_SWEEPS, &ended);
    if (status != TB_OK || ended) return status;

    /* sweeps while they promise to be cheaper, looked at again after every run */
    double price = 0;
    bool promising = true;
    for (int32_t sweeps = AUTO_NEXT_SWEEPS; promising; sweeps *= 2) {
        const double before = choice->solution->residuals.natural;
        const int32_t made = choice->iterations;
        status = auto_run(choice, false, NULL, sweeps, &ended);
        if (status != TB_OK || ended) return status;
        if (sweeps == AUTO_NEXT_SWEEPS) status = price_of_newton(choice, &price);
        if (status != TB_OK) return status;
        const double left = auto_sweeps_left(before, choice->solution->residuals.natural,
                                             choice->iterations - made, tolerance);
        promising = left <= price || price >= DBL_MAX;
    }

    /* then Newton, and sweeps again with what it leaves */
    int32_t share = (int32_t)(NEWTON_SHARE * most);
    if (share < LEAST_NEWTON_ITERATIONS) share = LEAST_NEWTON_ITERATIONS;
    status = auto_run(choice, true, NULL, share, &ended);
    if (status != TB_OK || ended) return status;
    return auto_run(choice, false, NULL, most, &ended);
}

TB_EXTERN tb_status tb_solve_auto(const tb_problem *problem, const tb_solve_options *options,
                                  tb_warm_start *warm, tb_solution *solution)
{
    /* the theses' own tests look at what a sweep changes, and there is no choice */
    if (options->stop != TB_STOP_RESIDUAL) return tb_solve_sor(problem, options, warm, solution);
    const tb_arena_mark mark = tb_arena_get_mark(warm->scratch);
    tb_choice choice = {.problem = problem,
                        .options = options,
                        .scratch = warm->scratch,
                        .solution = solution,
                        .best_residual = DBL_MAX};
    choice.start = TB_ARENA_ARRAY(warm->scratch, tb_real, problem->number_of_rows);
    choice.best = TB_ARENA_ARRAY(warm->scratch, tb_real, problem->number_of_rows);
    tb_status status = choice.start && choice.best ? TB_OK : TB_RESOURCE_EXHAUSTED;
    if (status == TB_OK && options->maximum_iterations < 1) status = TB_INVALID_ARGUMENT;
    if (status == TB_OK) status = auto_choose(&choice, warm);
    if (status == TB_OK) {
        solution->iterations = choice.iterations;
        solution->halvings = choice.halvings;
    }

    /* what the last one left may be worse than what another had */
    if (status == TB_OK && solution->status != TB_OK &&
        choice.best_residual < solution->residuals.natural) {
        tb_team_copy(solution->lambda, choice.best,
                     (size_t)problem->number_of_rows * sizeof(tb_real));
        tb_team_sync();
        status = tb_problem_judge(problem, solution->lambda, warm->scratch, solution->whitened,
                                  solution->xi, &solution->residuals);
        tb_problem_statuses(problem, solution->lambda, solution->statuses);
        memcpy(solution->solver, choice.best_solver, sizeof solution->solver);
    }
    tb_arena_return_to(warm->scratch, mark);
    return status;
}
