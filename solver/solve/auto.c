/* Solver `auto`: chooses between sweeps (sor), steps from the statuses of the last solve, and
 * Newton's rounds, by their cost in sweeps.
 *
 *                       start at rest? ---- yes -----------------------------> done, nothing moves
 *                            | no
 *            the history says which way costs least
 *          /                 |                    \
 *     statuses            sweeps                Newton
 *     steps from the      runs of 10, 20, 40    rounds --- ok ---------------> done
 *     last statuses       ... sweeps  <-----------\  |
 *       |    \ fail: path    |     |               \ fails, not by rounding: sweeps to the end
 *       ok    `-- fails --> fail   ok ---------------------------------------> done
 *       |                    |
 *       v            left sweeps cost more than steps from the statuses: try these once,
 *      done          more than Newton's rounds: Newton, and sweeps where it fails
 *
 * Where half of many contacts or more have no friction, sweeps go along conjugate directions on a processor: Newton
 * never begins there, and comes after one long run of sweeps instead of runs of doubling length.
 *
 * "Path": ten sweeps, then Newton along falling weights (newton_path.c), in a world of up to 64 dofs
 * after steps that failed. "Sets" in names are the statuses of all blocks. Where the
 * history knows Newton's cost, Newton may follow the first run of sweeps (newton_is_nearer).
 *
 * Without a history, a problem whose rows all give way by themselves (recovery of overlaps) tries
 * steps from the statuses first, or right after the first run of sweeps where the caller knows no
 * statuses, whatever their price: they are exact.
 *
 * Where all of that fails, a quarter of the iterations is left. On a processor Newton from many starts
 * about the best impulses comes first (newton_restarts.c). Then Newton's rounds begin again from the
 * caller's start: impulses that an earlier way leaves may be a worse start. The last tries have no
 * start: Newton's rounds and sweeps from zero impulses, with the iterations that are left. Warm
 * impulses of an earlier step can lie where every way stagnates.
 *
 * Sweeps that are left follow from the fall of the residual over the last run. A step from the
 * statuses costs the price of its system's pattern (tb_newton_system_price). The history
 * (tb_solve_history) holds running averages of the cost of each way; the average of a way that is
 * not used decays, so that the way is tried again. The choice depends on the problem, its start and
 * the history, never on a clock, so that equal calls give equal bytes. solution->solver names the
 * way that ended the solve. */
#include "base/team.h"
#include "contact/judge.h"
#include "solve/islands.h"
#include "solve/newton/newton_internal.h"
#include "solve/sweep/conjugate.h"

#include <string.h>

/* The cost model; measured by "Choice of `auto`" in tests/bench/results/README.md. */
static const int32_t FIRST_RUN_SWEEPS = 10;  /* sweeps; each further run is twice as long */
static const double SET_STEPS_PRIOR = 3;     /* steps from statuses, without a history */
static const double NEWTON_STEPS_PRIOR = 20; /* steps of Newton after sweeps */
static const double ROUND_STEP_COST = 2;     /* a step of Newton's rounds, in steps from statuses */
static const double HISTORY_WEIGHT = 0.5;    /* of the last solve in a running average */
static const double HISTORY_DECAY = 0.98;    /* of an average, a solve that does not use it */

/* Limits. */
enum {
    LEAST_RESERVING = 400,        /* iterations of the options, from which on some are reserved */
    RESERVED_PART = 4,            /* one in this many is reserved for Newton from the start */
    LEAST_NEWTON_ITERATIONS = 50, /* of Newton's, where the options ask for few */
    RESTART_PART = 2,             /* one in this many of those is for Newton from many starts */
    CONJUGATE_SWEEPS = 1000,      /* along conjugate directions, before Newton */
    PATH_ITERATIONS = 48,         /* of Newton's after steps from statuses that failed */
    LARGEST_SYSTEM = 100000       /* unknowns; beyond, the price of a pattern costs many sweeps */
};
static const double NEWTON_SHARE = 0.75; /* of the iterations, at most */

/* Averages below these round to none. */
static const double NO_SWEEPS = 0.5; /* a solve */
static const double NO_STEPS = 0.5;  /* a solve */

/* Shares of the tolerance below which a start is at rest and is the answer: before sweeps, and
 * before steps from statuses. An unrefined start lets a held body creep by the remaining residual
 * in every step. In double a share of 1e-4 is about the last bits, and steps from statuses refine
 * every start. In float the last bits are those of gravity's share of a step, and a start that no
 * step improves for long is at rest. */
#ifdef TB_SINGLE
static const double REST_SHARE = 0.1, SETS_REST_SHARE = 0.1;
#else
static const double REST_SHARE = 1e-4, SETS_REST_SHARE = 0;
#endif
/* of the share, for a start of a world that has moved */
static const double MOVED_REST_SHARE = 0.1;

typedef enum tb_auto_run { TB_RUN_SOR, TB_RUN_SETS, TB_RUN_NEWTON, TB_RUN_RESTARTS } tb_auto_run;

typedef struct tb_choice {
    const tb_problem *problem;
    const tb_solve_options *options;
    tb_arena *scratch;
    tb_solution *solution;
    tb_real *start, *best; /* rows */
    tb_real *speeds;       /* blocks */
    uint8_t *statuses;     /* blocks */
    tb_solve_history *history;
    double *factor;
    const double *last_factor; /* as of tb_warm_start */
    double best_residual;
    double price_of_step, price_of_newton; /* in sweeps; of one from sets, of all usual rounds */
    double cost, cost_of_newton;           /* in sweeps, so far; of Newton's last run */
    char best_solver[16];
    int32_t iterations, halvings;
    int32_t limit;       /* of the iterations of all runs */
    bool start_rejected; /* the start was judged and rejected */
    bool apart;          /* as of tb_warm_start */
    bool follows_path;   /* Newton begins along falling weights */
    bool conjugates;     /* sweeps go along conjugate directions */
    tb_solve_work work;
} tb_choice;

/* The sets that the last run has found, as a start. */
TB_STATIC void auto_find_sets(tb_choice *choice, tb_warm_start *warm)
{
    const tb_problem *problem = choice->problem;
    TB_EACH (b, problem->number_of_blocks) {
        const tb_block *block = &problem->blocks[b];
        const tb_real *xi = choice->solution->xi + block->row;
        const bool slips = block->rows > 1 && block->law != TB_LAW_BILATERAL;
        choice->statuses[b] = choice->solution->statuses[b];
        choice->speeds[b] = slips ? tb_hypot2(xi[1], block->rows > 2 ? xi[2] : 0) : 0;
    }
    tb_team_sync();
    warm->statuses = choice->statuses;
    warm->speeds = choice->speeds;
}

/* Cost of a step of Newton's in steps from statuses: steps of rounds judge and search more. */
TB_STATIC double newton_step_cost(const tb_choice *choice)
{
    return choice->follows_path ? 1 : ROUND_STEP_COST;
}

/* Cost of the last run. */
TB_STATIC void auto_account(tb_choice *choice, tb_auto_run run)
{
    const tb_solution *solution = choice->solution;
    const double solves = run == TB_RUN_SOR ? 0 : (double)solution->work.linear_solves;
    const double price = choice->history && choice->history->price > 0 ? choice->history->price
                                                                       : choice->price_of_step;
    const double cost = (double)solution->iterations - solves +
                        solves * price * (run == TB_RUN_NEWTON ? newton_step_cost(choice) : 1);
    choice->cost += cost;
    if (run == TB_RUN_NEWTON) choice->cost_of_newton = cost;
}

TB_STATIC void auto_take_factor(tb_choice *choice)
{
    if (!choice->last_factor) return;
    const int32_t kept = tb_cached_factor_numbers(choice->problem->number_of_dofs);
    tb_team_copy(choice->factor, choice->last_factor, (size_t)kept * sizeof(double));
    tb_team_sync();
    choice->last_factor = NULL;
}

/* One run of at most `iterations`, from `warm` or (NULL) from the impulses of the last run. */
TB_CALLED tb_status auto_run(tb_choice *choice, tb_auto_run run, tb_warm_start *warm,
                             int32_t iterations, bool *ended)
{
    tb_solution *solution = choice->solution;
    const size_t bytes = (size_t)choice->problem->number_of_rows * sizeof(tb_real);
    tb_solve_options options = *choice->options;
    const int32_t left = choice->limit - choice->iterations;
    options.maximum_iterations = iterations < left ? iterations : left;
    if (run != TB_RUN_SOR) auto_take_factor(choice);
    tb_warm_start own = {.scratch = choice->scratch,
                         .history = choice->history,
                         .factor = choice->factor,
                         .apart = choice->apart};
    if (!warm) {
        tb_team_sync();
        tb_team_copy(choice->start, solution->lambda, bytes);
        tb_team_sync();
        own.lambda = choice->start;
        if (run == TB_RUN_SETS) auto_find_sets(choice, &own);
        options.warm_start = true;
        warm = &own;
    }
    tb_status status = TB_OK;
    if (run == TB_RUN_SOR) status = tb_solve_sor(choice->problem, &options, warm, solution);
    if (run == TB_RUN_SETS) status = tb_solve_from_sets(choice->problem, &options, warm, solution);
    if (run == TB_RUN_NEWTON) status = tb_solve_newton(choice->problem, &options, warm, solution);
#if !defined(TB_DEVICE) && !defined(TB_SINGLE)
    if (run == TB_RUN_RESTARTS)
        status = tb_solve_restarts(choice->problem, &options, warm, solution);
#endif
    if (status != TB_OK) return status;
    choice->iterations += solution->iterations;
    choice->halvings += solution->halvings;
    auto_account(choice, run);
    if (run != TB_RUN_SOR) {
        choice->work.linear_solves += solution->work.linear_solves;
        choice->work.factorizations += solution->work.factorizations;
        choice->work.resets += solution->work.resets;
    }
    if (solution->residuals.natural < choice->best_residual) {
        choice->best_residual = solution->residuals.natural;
        tb_team_copy(choice->best, solution->lambda, bytes);
        tb_team_sync();
        memcpy(choice->best_solver, solution->solver, sizeof choice->best_solver);
    }

    /* numbers that are not finite are no better in other hands */
    *ended = solution->status == TB_OK || solution->residuals.natural >= TB_RESIDUAL_UNKNOWN ||
             !tb_team_all_finite(choice->problem->c, choice->problem->number_of_rows) ||
             choice->iterations >= choice->limit;
    return TB_OK;
}

/* Cost of steps from sets and of Newton, in sweeps; infinite without memory for a factorization. Along
 * falling weights it is the history's, where that knows it. */
TB_CALLED tb_status auto_price(tb_choice *choice)
{
    const tb_arena_mark mark = tb_arena_get_mark(choice->scratch);
    tb_newton_system system;
    tb_newton_price price = {.sweep = 1, .step = DBL_MAX, .sets_step = DBL_MAX};
    const tb_problem *problem = choice->problem;
    const int32_t unknowns = problem->values ? problem->number_of_dofs : problem->number_of_rows;
    tb_status status = unknowns > LARGEST_SYSTEM
                           ? TB_UNSUPPORTED
                           : tb_newton_system_prepare(&system, problem, choice->scratch);
    if (status == TB_OK)
        status = tb_newton_system_price(&system, choice->solution->statuses, &price);
    tb_arena_return_to(choice->scratch, mark);
    const bool none = status == TB_UNSUPPORTED;
    choice->price_of_step = none ? DBL_MAX : price.sets_step / price.sweep;
    choice->price_of_newton = none ? DBL_MAX : NEWTON_STEPS_PRIOR * price.step / price.sweep;
    if (!none && choice->follows_path) {
        const double known = choice->history ? choice->history->newton : 0;
        choice->price_of_newton = known > 0 ? known : NEWTON_STEPS_PRIOR * choice->price_of_step;
    }
    return none ? TB_OK : status;
}

/* how many sweeps are left at the rate between two residuals */
TB_CALLED double auto_sweeps_left(double before, double after, double sweeps, double tolerance)
{
    if (!(after > 0) || !(tolerance > 0)) return DBL_MAX;
    const double rate = before > 0 ? exp(log(after / before) / sweeps) : 1;
    return rate < 1 ? log(tolerance / after) / log(rate) : DBL_MAX;
}

/* ---- history ---- */

/* Expected cost of steps from the statuses, in sweeps: one step at least. A world that one sweep a
 * step keeps at rest is thus not disturbed by a trial whenever the average has decayed. */
TB_STATIC double cost_of_sets(const tb_solve_history *h)
{
    return (h->steps > 1 ? h->steps : 1) * h->price;
}

TB_STATIC bool sets_are_cheaper(const tb_solve_history *h)
{
    return h && h->price > 0 && cost_of_sets(h) < h->sweeps;
}

/* Steps from statuses compete where the start has statuses. */
TB_STATIC bool newton_is_cheapest(const tb_solve_history *h, bool has_sets)
{
    return h && h->newton > 0 && h->newton < h->sweeps &&
           (!has_sets || !(h->price > 0) || h->newton < cost_of_sets(h));
}

TB_EXTERN bool tb_auto_begins_with_sweeps(const tb_solve_history *history)
{
    return !sets_are_cheaper(history) && !newton_is_cheapest(history, true);
}

/* Whether the last solves made hardly any step from their statuses. */
TB_STATIC bool has_stood(const tb_solve_history *h)
{
    return h && h->steps < NO_STEPS;
}

/* A solve that stops a body which has begun to move does so by impulses that would move it again in
 * the next step, until another solve takes them back. So a start of a world that has moved has to
 * be better to pass as at rest. */
TB_EXTERN double tb_auto_rest(const tb_solve_history *history)
{
    return has_stood(history) ? SETS_REST_SHARE : MOVED_REST_SHARE * SETS_REST_SHARE;
}

TB_STATIC double learn(double known, double seen)
{
    return known > 0 ? known + HISTORY_WEIGHT * (seen - known) : seen;
}

/* After a solve that Newton has ended: its whole cost is counted for the run that began it. */
TB_STATIC void learn_of_newton(tb_choice *choice, tb_auto_run first)
{
    tb_solve_history *h = choice->history;
    if (!h) return;
    h->newton = learn(h->newton, choice->cost_of_newton);
    if (first == TB_RUN_SOR) h->sweeps = learn(h->sweeps, choice->cost);
    if (first != TB_RUN_NEWTON) return;
    h->sweeps *= HISTORY_DECAY;
    h->steps *= HISTORY_DECAY;
}

TB_STATIC bool auto_is_at_rest(const tb_choice *choice)
{
    return choice->solution->residuals.natural <= REST_SHARE * choice->options->tolerance;
}

/* After sweeps alone have ended a solve. One that began at rest has needed none; where it did not,
 * the sweep has stopped a velocity by impulses that only the next one takes back. */
TB_STATIC tb_status learn_of_sweeps(tb_choice *choice)
{
    tb_solve_history *h = choice->history;
    if (!h) return TB_OK;
    const bool none = choice->iterations <= 1 && !choice->start_rejected && auto_is_at_rest(choice);
    h->sweeps = tb_larger(learn(h->sweeps, none ? 0 : (double)choice->iterations), DBL_MIN);
    h->steps *= HISTORY_DECAY;
    h->newton *= HISTORY_DECAY;
    if (h->price > 0) return TB_OK;
    const tb_status status = auto_price(choice);
    h->price = choice->price_of_step;
    h->steps = SET_STEPS_PRIOR;
    return status;
}

/* Updates the history after steps from sets: their number if they ended the solve, else the
 * equivalent of their cost. In float a start that needed no step marks the world as at rest; its
 * other averages then do not decay, because a trial of sweeps would move it. */
TB_STATIC void learn_of_sets(tb_choice *choice, double steps)
{
    tb_solve_history *h = choice->history;
    const bool rests = SETS_REST_SHARE > 0, stood = rests && has_stood(h);
    h->steps = rests && steps == 0 ? HISTORY_WEIGHT * NO_STEPS : learn(h->steps, steps);
    if (stood || (rests && steps == 0)) return;
    h->sweeps *= HISTORY_DECAY;
    h->newton *= HISTORY_DECAY;
}

/* After steps from sets that failed and sweeps that then ended the solve: sweeps from the start would
 * have cost about as many. Without this an average of sweeps that Newton had to end, which is high, would
 * decay too slowly to let sweeps try again. */
TB_STATIC void learn_of_sweeps_alone(tb_choice *choice, int32_t sweeps)
{
    tb_solve_history *h = choice->history;
    h->sweeps = tb_larger(learn(h->sweeps, (double)sweeps), DBL_MIN);
}

/* Present cost, in sweeps, of steps from sets that sweeps have found. */
TB_STATIC double worth_of_sets(const tb_choice *choice)
{
    const tb_solve_history *h = choice->history;
    const bool more = h && h->steps > SET_STEPS_PRIOR;
    return (more ? h->steps : SET_STEPS_PRIOR) * choice->price_of_step;
}

/* ---- the choice ---- */

/* Whether sweeps are left that are worth more than this many. */
TB_STATIC bool auto_sweeps_are_many(const tb_choice *choice, double before, int32_t sweeps,
                                    double price)
{
    if (price >= DBL_MAX) return false;
    const double left = auto_sweeps_left(before, choice->solution->residuals.natural, sweeps,
                                         choice->options->tolerance);
    return left > price;
}

/* Steps from the sets that sweeps have found, where they promise to be the cheaper way; where they
 * lead nowhere, that is remembered. */
TB_STATIC tb_status auto_try_sets(tb_choice *choice, double before, int32_t sweeps, bool *ended)
{
    tb_solve_history *h = choice->history;
    if (!auto_sweeps_are_many(choice, before, sweeps, worth_of_sets(choice))) {
        if (h) h->steps *= HISTORY_DECAY;
        return TB_OK;
    }
    const tb_status status = auto_run(choice, TB_RUN_SETS, NULL, INT32_MAX, ended);
    /* a failure counts as all of Newton's rounds */
    const double failure = NEWTON_STEPS_PRIOR * newton_step_cost(choice);
    const double steps = *ended ? (double)choice->work.linear_solves : failure;
    if (h) h->steps += HISTORY_WEIGHT * (steps - h->steps);
    return status;
}

/* After the first sweeps: whether Newton, whose price the history knows, costs less than the sweeps
 * that are left at their present rate. */
TB_STATIC bool newton_is_nearer(const tb_choice *choice)
{
    const tb_solve_history *h = choice->history;
    const tb_solution *solution = choice->solution;
    const int32_t sweeps = solution->iterations - solution->first_check;
    return h && h->newton > 0 && sweeps > 0 &&
           auto_sweeps_left(solution->first_residual, solution->residuals.natural, sweeps,
                            choice->options->tolerance) > h->newton;
}

/* Whether a step from any statuses is exact, so that few are needed: the rows give way by
 * themselves, and the caller keeps no history that would choose. */
TB_STATIC bool sets_are_exact(const tb_choice *choice)
{
    return !choice->history && choice->problem->number_of_dofs <= TB_DENSE_DOFS &&
           tb_newton_is_elastic(choice->problem);
}

/* Sweeps in runs of doubling length, until the tolerance is reached or Newton is predicted to be
 * cheaper. */
TB_CALLED tb_status auto_sweep(tb_choice *choice, tb_warm_start *warm, bool *ended)
{
    tb_status status = auto_run(choice, TB_RUN_SOR, warm, FIRST_RUN_SWEEPS, ended);
    if (status != TB_OK || *ended) return status;
    if (choice->conjugates) {
        status = auto_run(choice, TB_RUN_SOR, NULL, CONJUGATE_SWEEPS, ended);
        return status != TB_OK || *ended ? status : auto_price(choice);
    }
    bool many = newton_is_nearer(choice);
    const bool exact = sets_are_exact(choice);
    if (exact) {
        status = auto_run(choice, TB_RUN_SETS, NULL, INT32_MAX, ended);
        if (status != TB_OK || *ended) return status;
    }
    bool tried = exact;
    for (int32_t sweeps = 2 * FIRST_RUN_SWEEPS; !many; sweeps *= 2) {
        const double before = choice->solution->residuals.natural;
        const int32_t made = choice->iterations;
        status = auto_run(choice, TB_RUN_SOR, NULL, sweeps, ended);
        if (status != TB_OK || *ended) return status;
        const int32_t own = choice->iterations - made;
        if (sweeps == 2 * FIRST_RUN_SWEEPS) status = auto_price(choice);
        if (status != TB_OK) return status;
        if (!tried) {
            tried = true;
            status = auto_try_sets(choice, before, own, ended);
            if (status != TB_OK || *ended) return status;
        }
        many = auto_sweeps_are_many(choice, before, own, choice->price_of_newton);
    }
    return TB_OK;
}

/* After steps from the statuses that have failed: the first run of sweeps, which ends many of these
 * solves for less than a step, then Newton along falling weights. Their cost counts as that of the
 * steps. */
TB_STATIC tb_status auto_follow_path(tb_choice *choice, bool *ended)
{
    if (!choice->follows_path) return TB_OK;
    tb_status status = auto_run(choice, TB_RUN_SOR, NULL, FIRST_RUN_SWEEPS, ended);
    const bool swept = *ended;
    if (swept && choice->history) learn_of_sweeps_alone(choice, choice->solution->iterations);
    if (status == TB_OK && !swept)
        status = auto_run(choice, TB_RUN_NEWTON, NULL, PATH_ITERATIONS, ended);
    if (status != TB_OK || !*ended || !choice->history) return status;
    if (!swept) learn_of_newton(choice, TB_RUN_SETS);
    learn_of_sets(choice, choice->cost / choice->history->price);
    return TB_OK;
}

/* Accepts the start itself if it is at rest. */
TB_STATIC tb_status auto_stand(tb_choice *choice, const tb_warm_start *warm, bool *ended)
{
    const tb_problem *problem = choice->problem;
    const tb_solve_history *h = choice->history;
    tb_solution *solution = choice->solution;
    if (!h || !(h->sweeps > 0 && h->sweeps < NO_SWEEPS)) return TB_OK;
    if (!warm->lambda || !choice->options->warm_start) return TB_OK;
    tb_newton_project_fine(problem, warm->lambda, warm->fine, solution->lambda, solution->fine);
    const tb_status status =
        tb_problem_judge(problem, solution->lambda, solution->fine, choice->scratch,
                         solution->whitened, solution->xi, &solution->residuals);
    if (status != TB_OK) return status;
    *ended = auto_is_at_rest(choice);
    solution->has_fine = *ended && solution->fine != NULL;
    choice->start_rejected = !*ended;
    if (!*ended) return TB_OK;
    solution->status = TB_OK;
    tb_problem_statuses(problem, solution->lambda, solution->statuses);
    tb_solution_sign(solution, "auto");
    return learn_of_sweeps(choice);
}

TB_STATIC tb_status auto_choose(tb_choice *choice, tb_warm_start *warm)
{
    const int32_t most = choice->options->maximum_iterations;
    bool ended = false;
    tb_status status = auto_stand(choice, warm, &ended);
    if (status != TB_OK || ended) return status;
    int32_t share = (int32_t)(NEWTON_SHARE * most);
    if (share < LEAST_NEWTON_ITERATIONS) share = LEAST_NEWTON_ITERATIONS;
    const bool has_sets = tb_newton_has_sets(choice->problem, choice->options, warm);
    if (!choice->conjugates && newton_is_cheapest(choice->history, has_sets)) {
        status = auto_run(choice, TB_RUN_NEWTON, warm, share, &ended);
        if (status == TB_OK) learn_of_newton(choice, TB_RUN_NEWTON);
        if (status != TB_OK || ended || choice->solution->at_rounding) return status;
        return auto_run(choice, TB_RUN_SOR, NULL, most, &ended);
    }
    const bool from_sets =
        has_sets && (sets_are_cheaper(choice->history) || sets_are_exact(choice));
    if (from_sets) {
        status = auto_run(choice, TB_RUN_SETS, warm, INT32_MAX, &ended);
        if (status == TB_OK && ended && choice->history)
            learn_of_sets(choice, (double)choice->work.linear_solves);
        if (status != TB_OK || ended) return status;
        status = auto_follow_path(choice, &ended);
        if (status != TB_OK || ended) return status;
    }
    const int32_t made = choice->iterations;
    const int32_t solves = choice->work.linear_solves;
    status = auto_sweep(choice, from_sets ? NULL : warm, &ended);
    if (status != TB_OK) return status;
    if (from_sets && choice->history) {
        learn_of_sets(choice, choice->cost / choice->history->price);
        if (ended && choice->work.linear_solves == solves)
            learn_of_sweeps_alone(choice, choice->iterations - made);
    } else if (ended && choice->work.linear_solves == 0) {
        status = learn_of_sweeps(choice);
    } else if (ended && choice->history) {
        /* steps from statuses that sweeps had found: both are the cost of a begin with sweeps */
        choice->history->sweeps = learn(choice->history->sweeps, choice->cost);
    }
    if (ended || status != TB_OK) return status;

    /* then Newton, and sweeps again from its impulses */
    status = auto_run(choice, TB_RUN_NEWTON, NULL, share, &ended);
    if (status == TB_OK) learn_of_newton(choice, from_sets ? TB_RUN_SETS : TB_RUN_SOR);
    if (status != TB_OK || ended || choice->solution->at_rounding) return status;
    return auto_run(choice, TB_RUN_SOR, NULL, most, &ended);
}

/* Newton from many starts about the best impulses, Newton's rounds from the caller's start, then
 * Newton's rounds and sweeps from zero impulses, with the iterations kept for them. */
TB_STATIC tb_status auto_begin_again(tb_choice *choice, tb_warm_start *warm)
{
    bool ended;
    tb_status status = TB_OK;
    choice->limit = choice->options->maximum_iterations;
#if !defined(TB_DEVICE) && !defined(TB_SINGLE)
    tb_warm_start best = *warm;
    best.lambda = choice->start;
    tb_team_copy(choice->start, choice->best,
                 (size_t)choice->problem->number_of_rows * sizeof(tb_real));
    const int32_t restarts = (choice->limit - choice->iterations) / RESTART_PART;
    status = auto_run(choice, TB_RUN_RESTARTS, &best, restarts, &ended);
    if (status != TB_OK || ended) return status;
#endif
    status = auto_run(choice, TB_RUN_NEWTON, warm, choice->limit, &ended);
    if (status != TB_OK || ended || choice->solution->at_rounding) return status;
    tb_warm_start cold = *warm;
    cold.lambda = NULL;
    cold.fine = NULL;
    cold.statuses = NULL;
    cold.speeds = NULL;
    status = auto_run(choice, TB_RUN_NEWTON, &cold, choice->limit, &ended);
    if (status != TB_OK || ended || choice->solution->at_rounding) return status;
    return auto_run(choice, TB_RUN_SOR, &cold, choice->limit, &ended);
}

/* Whether all numbers of a problem are finite. */
TB_STATIC bool auto_is_finite(const tb_problem *problem)
{
    bool finite = tb_team_all_finite(problem->c, problem->number_of_rows) && problem->values;
    for (int32_t b = 0; b < problem->number_of_blocks && finite; b++) {
        const tb_block *block = &problem->blocks[b];
        finite = tb_all_finite(problem->values + block->value, block->rows * block->width);
    }
    return finite;
}

/* A problem as a whole. */
TB_CALLED tb_status auto_solve(const tb_problem *problem, const tb_solve_options *options,
                               tb_warm_start *warm, tb_solution *solution)
{
    const tb_arena_mark mark = tb_arena_get_mark(warm->scratch);
    tb_choice choice = {.problem = problem,
                        .options = options,
                        .scratch = warm->scratch,
                        .solution = solution,
                        .history = warm->history,
                        .factor = warm->factor,
                        .last_factor = warm->last_factor,
                        .best_residual = DBL_MAX,
                        .limit = options->maximum_iterations,
                        .apart = warm->apart,
                        .follows_path = !warm->apart && tb_newton_has_path(problem)};
    choice.conjugates = tb_conjugate_suits(problem, options, CONJUGATE_SWEEPS);
    choice.start = TB_ARENA_ARRAY(warm->scratch, tb_real, problem->number_of_rows);
    choice.best = TB_ARENA_ARRAY(warm->scratch, tb_real, problem->number_of_rows);
    choice.speeds = TB_ARENA_ARRAY(warm->scratch, tb_real, problem->number_of_blocks);
    choice.statuses = TB_ARENA_ARRAY(warm->scratch, uint8_t, problem->number_of_blocks);
    const int32_t most = options->maximum_iterations;
    if (most >= LEAST_RESERVING) choice.limit = most - most / RESERVED_PART;
    tb_status status = choice.start && choice.best && choice.speeds && choice.statuses
                           ? TB_OK
                           : TB_RESOURCE_EXHAUSTED;
    if (status == TB_OK && options->maximum_iterations < 1) status = TB_INVALID_ARGUMENT;
    if (status == TB_OK) status = auto_choose(&choice, warm);
    /* sweeps that diverge are no reason to give up better impulses of another way */
    const bool diverged = status == TB_OK && solution->status == TB_DIVERGED;
    const bool begins =
        solution->status == TB_NOT_CONVERGED || (diverged && auto_is_finite(problem));
    if (status == TB_OK && begins && choice.limit < most && !solution->at_rounding)
        status = auto_begin_again(&choice, warm);
    warm->last_factor = choice.last_factor;
    if (status == TB_OK) {
        solution->iterations = choice.iterations;
        solution->halvings = choice.halvings;
        solution->work = choice.work;
    }

    /* the last solver's result may be worse than an earlier one */
    if (status == TB_OK && solution->status != TB_OK &&
        choice.best_residual < solution->residuals.natural) {
        tb_team_copy(solution->lambda, choice.best,
                     (size_t)problem->number_of_rows * sizeof(tb_real));
        tb_team_sync();
        status = tb_problem_judge(problem, solution->lambda, NULL, warm->scratch,
                                  solution->whitened, solution->xi, &solution->residuals);
        tb_problem_statuses(problem, solution->lambda, solution->statuses);
        memcpy(solution->solver, choice.best_solver, sizeof solution->solver);
        if (begins) solution->status = TB_NOT_CONVERGED;
    }
    tb_arena_return_to(warm->scratch, mark);
    return status;
}

/* ---- islands ---- */

/* Sums of the islands' histories, weighted by their rows. */
typedef struct tb_learned {
    double rows, sweeps, steps, price, newton;   /* sums */
    double with_sweeps, with_price, with_newton; /* rows of islands that know the number */
    double pull;                                 /* of the largest island */
    int32_t largest;                             /* its rows */
} tb_learned;

TB_STATIC void add_learned(tb_learned *all, const tb_solve_history *own, int32_t rows)
{
    all->rows += rows;
    all->sweeps += rows * own->sweeps;
    all->steps += rows * own->steps;
    all->price += rows * own->price;
    all->newton += rows * own->newton;
    if (own->sweeps > 0) all->with_sweeps += rows;
    if (own->price > 0) all->with_price += rows;
    if (own->newton > 0) all->with_newton += rows;
    if (rows <= all->largest) return;
    all->largest = rows;
    all->pull = own->pull;
}

TB_STATIC double mean_over(double sum, double rows)
{
    return rows > 0 ? sum / rows : 0;
}

/* Solves each island separately. All begin with the world's history, and the mean of their new
 * histories is the next one: no island's choice depends on another's. */
TB_STATIC tb_status auto_solve_apart(const tb_islands *islands, const tb_solve_options *options,
                                     const tb_warm_start *warm, tb_solution *solution)
{
    tb_learned all;
    memset(&all, 0, sizeof all);
    tb_islands_begin(solution);
    for (int32_t i = 0; i < islands->number; i++) {
        tb_problem problem;
        tb_solution part;
        tb_solve_history history;
        tb_warm_start start = *warm;
        tb_islands_open(islands, i, &problem, &start, &part);
        if (warm->history) {
            history = *warm->history;
            start.history = &history;
        }
        const tb_status status = auto_solve(&problem, options, &start, &part);
        if (status != TB_OK) return status;
        tb_islands_close(islands, i, &part, solution);
        if (warm->history) add_learned(&all, &history, problem.number_of_rows);
    }
    if (warm->history) {
        warm->history->sweeps = mean_over(all.sweeps, all.with_sweeps);
        warm->history->steps = mean_over(all.steps, all.rows);
        warm->history->price = mean_over(all.price, all.with_price);
        warm->history->newton = mean_over(all.newton, all.with_newton);
        warm->history->pull = all.pull;
    }
    return tb_problem_judge(islands->problem, solution->lambda,
                            solution->has_fine ? solution->fine : NULL, warm->scratch,
                            solution->whitened, solution->xi, &solution->residuals);
}

TB_EXTERN tb_status tb_solve_auto(const tb_problem *problem, const tb_solve_options *options,
                                  tb_warm_start *warm, tb_solution *solution)
{
    /* the theses' own tests look at the change by a sweep, and there is no choice */
    if (options->stop != TB_STOP_RESIDUAL) return tb_solve_sor(problem, options, warm, solution);
    const tb_arena_mark mark = tb_arena_get_mark(warm->scratch);
    tb_islands islands;
    tb_status status = tb_islands_find(problem, options, warm, solution, &islands);
    if (status == TB_OK && islands.number > 0)
        status = auto_solve_apart(&islands, options, warm, solution);
    else if (status == TB_OK)
        status = auto_solve(problem, options, warm, solution);
    tb_arena_return_to(warm->scratch, mark);
    return status;
}
