/* The solver that chooses: sweeps while they will do, Newton where they will not.
 *
 * A warm start is mostly good already, and most cold problems need some dozen sweeps, each far
 * cheaper than a Newton step. So sor begins, unless what the solves before showed (tb_solve_history)
 * says that steps from the sets of the last one, or Newton's rounds, are the cheaper way: so many
 * steps, each worth so many sweeps by the pattern of their system, against so many sweeps. What a way
 * costs includes what had to come after it. The numbers follow the last solves, and those that are
 * not used fade, so that they are tried again in time. Where the last solves needed no sweep, or in
 * float begin with sets, a start that is far below the tolerance is the answer as it stands.
 *
 * Where two short runs of sweeps do not reach the tolerance, the rate at which the residual fell
 * from one to the other says how many sweeps are left. Are a few steps from the sets that the sweeps
 * have found worth less than those, they are tried once: at the first look where there is a history,
 * which remembers what led nowhere, else when the sets have settled, so that few statuses have
 * changed over a run. Sweeps go on, in runs that double, while they are cheaper than Newton's usual
 * rounds; then Newton takes over, and sweeps again should it fail for other reasons than rounding.
 * The choice depends on the problem, its start and the history alone, never on a clock: the same call
 * gives the same bytes. solution->solver names the one that ended the work. */
#include "base/team.h"
#include "contact/judge.h"
#include "solve/newton/newton_internal.h"

#include <string.h>

enum {
    AUTO_FIRST_SWEEPS = 10,
    AUTO_NEXT_SWEEPS = 20,        /* before the rate is looked at again, at first ... */
    AUTO_KNOWN_SWEEPS = 10,       /* ... where there is a history, which knows what is dear */
    USUAL_STEPS_FROM_SETS = 3,    /* where nothing is known */
    USUAL_NEWTON_STEPS = 20,      /* of Newton from where sweeps left */
    LEAST_NEWTON_ITERATIONS = 50, /* of Newton's, where the options ask for few */
    /* beyond so many unknowns the price of a pattern alone is worth many sweeps */
    LARGEST_SYSTEM = 100000
};
static const double SLOWEST_RATE = 0.999; /* of the residual, a sweep: beyond, sweeps stand still */
static const double NEWTON_SHARE = 0.75;  /* of the iterations, at most */
static const double NEWS = 0.5;           /* weight of the last solve in the history */
static const double NEWS_OF_A_STEP = 0.05;    /* weight of sweeps that a step from sets is worth */
static const double FADING = 0.98;            /* of what was not used, a solve */
static const double FADING_OF_SWEEPS = 0.95;  /* while Newton begins: a look at them is cheap */
static const double STEPS_OF_A_FAILURE = 100; /* of steps from sets that led nowhere */
static const double SWEEPS_TO_LOOK_UP = 4;    /* so few are never worth a look at anything else */
static const double DEARER_IN_ROUNDS = 2;     /* than a step from sets is one of Newton's */
static const double DEARER_IN_A_ROW = 1.5;    /* is each after the first */
static const double SWEEPS_OF_REST = 0.5;     /* with fewer a solve, a start is looked at first */
static const double FEWEST_SWEEPS = 1e-3;     /* that are remembered */
static const double STEPS_OF_REST = 0.25;     /* what is remembered of none: less than after any */
static const double AT_REST_ANEW = 0.1;       /* of the share at which what stands goes on to */
static const double STEPS_AFTER_REST = 0.9;   /* more have been made since */
static const double UNSETTLED = 0.1;          /* share of statuses that a run changes, at most */

/* Shares of the tolerance below which a start stands: where sweeps would begin, where steps from sets
 * would. What is held would creep by what the tolerance leaves, step after step; refined every time
 * it stands still. In double that is to the last bits, and steps from sets refine any start. A float's
 * last bits are those of gravity's share of a step: there a start that none can better for long
 * stands. */
#ifdef TB_SINGLE
static const double AT_REST = 0.1, REST_OF_SETS = 0.1;
#else
static const double AT_REST = 1e-4, REST_OF_SETS = 0;
#endif

typedef enum tb_auto_run { TB_RUN_SOR, TB_RUN_SETS, TB_RUN_NEWTON } tb_auto_run;

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
    bool start_rejected; /* the start was looked at, and did not stand */
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

/* What the last run cost. Steps within rounds judge and search more than those from sets. */
TB_STATIC void auto_account(tb_choice *choice, tb_auto_run run)
{
    const tb_solution *solution = choice->solution;
    const double solves = run == TB_RUN_SOR ? 0 : (double)solution->work.linear_solves;
    const double price = choice->history && choice->history->price > 0 ? choice->history->price
                                                                       : choice->price_of_step;
    const double cost = (double)solution->iterations - solves +
                        solves * price * (run == TB_RUN_NEWTON ? DEARER_IN_ROUNDS : 1);
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

/* One run of at most so many iterations, from `warm` or (NULL) from what the last one left. */
TB_CALLED tb_status auto_run(tb_choice *choice, tb_auto_run run, tb_warm_start *warm,
                             int32_t iterations, bool *ended)
{
    tb_solution *solution = choice->solution;
    const size_t bytes = (size_t)choice->problem->number_of_rows * sizeof(tb_real);
    tb_solve_options options = *choice->options;
    const int32_t left = options.maximum_iterations - choice->iterations;
    options.maximum_iterations = iterations < left ? iterations : left;
    if (run != TB_RUN_SOR) auto_take_factor(choice);
    tb_warm_start own = {
        .scratch = choice->scratch, .history = choice->history, .factor = choice->factor};
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
             choice->iterations >= choice->options->maximum_iterations;
    return TB_OK;
}

/* What the steps from sets and the rounds of Newton are worth in sweeps; infinite where a
 * factorization cannot be had. */
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
    choice->price_of_newton =
        none ? DBL_MAX : (double)USUAL_NEWTON_STEPS * price.step / price.sweep;
    return none ? TB_OK : status;
}

/* how many sweeps are left at the rate between two residuals */
TB_CALLED double auto_sweeps_left(double before, double after, double sweeps, double tolerance)
{
    if (!(after > 0) || !(tolerance > 0)) return DBL_MAX;
    const double rate = before > 0 ? exp(log(after / before) / sweeps) : 1;
    return rate < SLOWEST_RATE ? log(tolerance / after) / log(rate) : DBL_MAX;
}

/* ---- what the solves before say ---- */

/* What steps from sets are likely to cost, in sweeps. However far their number has faded, one is
 * the least: what stands still by a sweep a step would be stirred by every try. */
TB_STATIC double cost_of_sets(const tb_solve_history *h)
{
    const double steps = h->steps > 1 ? h->steps : 1;
    return (1 + DEARER_IN_A_ROW * (steps - 1)) * h->price;
}

TB_STATIC bool sets_are_cheaper(const tb_solve_history *h)
{
    return h && h->price > 0 && cost_of_sets(h) < h->sweeps;
}

TB_STATIC bool newton_is_cheapest(const tb_solve_history *h)
{
    return h && h->newton > 0 && h->newton < h->sweeps && h->sweeps > SWEEPS_TO_LOOK_UP &&
           (!(h->price > 0) || h->newton < cost_of_sets(h));
}

TB_EXTERN bool tb_auto_begins_with_sweeps(const tb_solve_history *history)
{
    return !sets_are_cheaper(history) && !newton_is_cheapest(history);
}

/* A step stops what has begun to move by impulses that would set it in motion again in the next one:
 * only another takes them back. So a start that has not stood before must be the better for it. */
TB_EXTERN double tb_auto_rest(const tb_solve_history *history)
{
    const bool stood = history && history->steps < 2 * STEPS_OF_REST;
    return stood ? REST_OF_SETS : AT_REST_ANEW * REST_OF_SETS;
}

TB_STATIC double learn(double known, double seen)
{
    return known > 0 ? known + NEWS * (seen - known) : seen;
}

/* After a solve that Newton has ended: what the way there cost belongs to the run that began it. */
TB_STATIC void learn_of_newton(tb_choice *choice, tb_auto_run first)
{
    tb_solve_history *h = choice->history;
    if (!h) return;
    h->newton = learn(h->newton, choice->cost_of_newton);
    if (first == TB_RUN_SOR) h->sweeps = learn(h->sweeps, choice->cost);
    if (first != TB_RUN_NEWTON) return;
    h->sweeps *= FADING_OF_SWEEPS;
    h->steps *= FADING;
}

TB_STATIC bool auto_is_at_rest(const tb_choice *choice)
{
    return choice->solution->residuals.natural <= AT_REST * choice->options->tolerance;
}

/* What is left of the steps from sets that are remembered, after a solve by sweeps: the more steps the
 * sweeps were worth, the sooner it pays to try sets again. */
TB_STATIC double fading_of_steps(const tb_choice *choice)
{
    const tb_solve_history *h = choice->history;
    if (!(h->price > 0)) return FADING;
    const double worth = (double)choice->iterations / h->price;
    return fmin(FADING, 1.0 / (1.0 + NEWS_OF_A_STEP * worth));
}

/* After sweeps alone have ended a solve. One that began at rest has needed none; where it did not,
 * the sweep has stopped a velocity by impulses that only the next one takes back. */
TB_STATIC tb_status learn_of_sweeps(tb_choice *choice)
{
    tb_solve_history *h = choice->history;
    if (!h) return TB_OK;
    const bool none = choice->iterations <= 1 && !choice->start_rejected && auto_is_at_rest(choice);
    h->sweeps = tb_larger(learn(h->sweeps, none ? 0 : (double)choice->iterations), FEWEST_SWEEPS);
    h->steps *= fading_of_steps(choice);
    h->newton *= FADING;
    if (h->sweeps <= SWEEPS_TO_LOOK_UP || h->price > 0) return TB_OK;
    const tb_status status = auto_price(choice);
    h->price = choice->price_of_step;
    h->steps = USUAL_STEPS_FROM_SETS;
    return status;
}

/* After steps from sets: so many of them have ended it, or what came after was worth as many. */
TB_STATIC void learn_of_sets(tb_choice *choice, double steps)
{
    tb_solve_history *h = choice->history;
    const bool stands = REST_OF_SETS > 0, stood = stands && h->steps < STEPS_AFTER_REST;
    h->steps = stands && steps == 0 ? STEPS_OF_REST : learn(h->steps, steps);
    if (stood || (stands && steps == 0)) return; /* sweeps would stir what hardly ever moves */
    h->sweeps *= FADING;
    h->newton *= FADING;
}

/* What steps from sets that sweeps have found are worth by now, in sweeps. */
TB_STATIC double worth_of_sets(const tb_choice *choice)
{
    const tb_solve_history *h = choice->history;
    const double usual = (double)USUAL_STEPS_FROM_SETS;
    return (h && h->steps > usual ? h->steps : usual) * choice->price_of_step;
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
        if (h) h->steps *= FADING;
        return TB_OK;
    }
    const tb_status status = auto_run(choice, TB_RUN_SETS, NULL, INT32_MAX, ended);
    const double steps = *ended ? (double)choice->work.linear_solves : STEPS_OF_A_FAILURE;
    if (h) h->steps += NEWS * (steps - h->steps);
    return status;
}

/* After the first sweeps: whether Newton, whose price the history knows, costs less than what is left
 * at the rate at which they began. */
TB_STATIC bool newton_is_nearer(const tb_choice *choice)
{
    const tb_solve_history *h = choice->history;
    const tb_solution *solution = choice->solution;
    const int32_t sweeps = solution->iterations - solution->first_check;
    return h && h->newton > 0 && sweeps > 0 &&
           auto_sweeps_left(solution->first_residual, solution->residuals.natural, sweeps,
                            choice->options->tolerance) > h->newton;
}

/* Keeps the statuses that a run has left. */
TB_STATIC void auto_note_sets(tb_choice *choice)
{
    TB_EACH (b, choice->problem->number_of_blocks)
        choice->statuses[b] = choice->solution->statuses[b];
    tb_team_sync();
}

/* Whether the next run has left nearly all of them. */
TB_STATIC bool auto_sets_stand(const tb_choice *choice)
{
    const int32_t blocks = choice->problem->number_of_blocks;
    int32_t changed = 0;
    TB_ROLLED
    for (int32_t b = 0; b < blocks; b++)
        changed += choice->statuses[b] != choice->solution->statuses[b];
    tb_team_sync(); /* all have read them */
    return (double)changed <= UNSETTLED * (double)blocks;
}

/* Sweeps in runs that double, until the tolerance is reached or they promise to be dearer than
 * Newton. */
TB_CALLED tb_status auto_sweep(tb_choice *choice, tb_warm_start *warm, bool *ended)
{
    tb_status status = auto_run(choice, TB_RUN_SOR, warm, AUTO_FIRST_SWEEPS, ended);
    if (status != TB_OK || *ended) return status;
    bool many = newton_is_nearer(choice), tried = false;
    /* where rows give way by themselves a step from any sets is exact, and few are needed */
    if (!choice->history && choice->problem->number_of_dofs <= TB_DENSE_DOFS &&
        tb_newton_is_elastic(choice->problem)) {
        tried = true;
        status = auto_run(choice, TB_RUN_SETS, NULL, INT32_MAX, ended);
        if (status != TB_OK || *ended) return status;
    }
    const int32_t next = choice->history ? AUTO_KNOWN_SWEEPS : AUTO_NEXT_SWEEPS;
    for (int32_t sweeps = next; !many; sweeps *= 2) {
        const double before = choice->solution->residuals.natural;
        const int32_t made = choice->iterations;
        auto_note_sets(choice);
        status = auto_run(choice, TB_RUN_SOR, NULL, sweeps, ended);
        if (status != TB_OK || *ended) return status;
        const int32_t own = choice->iterations - made;
        if (sweeps == next) status = auto_price(choice);
        if (status != TB_OK) return status;
        if (!tried && (choice->history || auto_sets_stand(choice))) {
            tried = true;
            status = auto_try_sets(choice, before, own, ended);
            if (status != TB_OK || *ended) return status;
        }
        many = auto_sweeps_are_many(choice, before, own, choice->price_of_newton);
    }
    return TB_OK;
}

/* The start itself, where it stands. */
TB_STATIC tb_status auto_stand(tb_choice *choice, const tb_warm_start *warm, bool *ended)
{
    const tb_problem *problem = choice->problem;
    const tb_solve_history *h = choice->history;
    tb_solution *solution = choice->solution;
    if (!h || !(h->sweeps > 0 && h->sweeps < SWEEPS_OF_REST)) return TB_OK;
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
    if (newton_is_cheapest(choice->history)) {
        status = auto_run(choice, TB_RUN_NEWTON, warm, share, &ended);
        if (status == TB_OK) learn_of_newton(choice, TB_RUN_NEWTON);
        if (status != TB_OK || ended || choice->solution->at_rounding) return status;
        return auto_run(choice, TB_RUN_SOR, NULL, most, &ended);
    }
    bool from_sets = sets_are_cheaper(choice->history) &&
                     tb_newton_has_sets(choice->problem, choice->options, warm);
    if (from_sets) {
        status = auto_run(choice, TB_RUN_SETS, warm, INT32_MAX, &ended);
        if (status == TB_OK && ended) learn_of_sets(choice, (double)choice->work.linear_solves);
        if (status != TB_OK || ended) return status;
    }
    status = auto_sweep(choice, from_sets ? NULL : warm, &ended);
    if (status != TB_OK) return status;
    if (from_sets)
        learn_of_sets(choice, choice->cost / choice->history->price);
    else if (ended && choice->work.linear_solves == 0)
        status = learn_of_sweeps(choice);
    if (ended || status != TB_OK) return status;

    /* then Newton, and sweeps again with what it leaves */
    status = auto_run(choice, TB_RUN_NEWTON, NULL, share, &ended);
    if (status == TB_OK) learn_of_newton(choice, from_sets ? TB_RUN_SETS : TB_RUN_SOR);
    if (status != TB_OK || ended || choice->solution->at_rounding) return status;
    return auto_run(choice, TB_RUN_SOR, NULL, most, &ended);
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
                        .history = warm->history,
                        .factor = warm->factor,
                        .last_factor = warm->last_factor,
                        .best_residual = DBL_MAX};
    choice.start = TB_ARENA_ARRAY(warm->scratch, tb_real, problem->number_of_rows);
    choice.best = TB_ARENA_ARRAY(warm->scratch, tb_real, problem->number_of_rows);
    choice.speeds = TB_ARENA_ARRAY(warm->scratch, tb_real, problem->number_of_blocks);
    choice.statuses = TB_ARENA_ARRAY(warm->scratch, uint8_t, problem->number_of_blocks);
    tb_status status = choice.start && choice.best && choice.speeds && choice.statuses
                           ? TB_OK
                           : TB_RESOURCE_EXHAUSTED;
    if (status == TB_OK && options->maximum_iterations < 1) status = TB_INVALID_ARGUMENT;
    if (status == TB_OK) status = auto_choose(&choice, warm);
    warm->last_factor = choice.last_factor;
    if (status == TB_OK) {
        solution->iterations = choice.iterations;
        solution->halvings = choice.halvings;
        solution->work = choice.work;
    }

    /* what the last one left may be worse than what another had */
    if (status == TB_OK && solution->status != TB_OK &&
        choice.best_residual < solution->residuals.natural) {
        tb_team_copy(solution->lambda, choice.best,
                     (size_t)problem->number_of_rows * sizeof(tb_real));
        tb_team_sync();
        status = tb_problem_judge(problem, solution->lambda, NULL, warm->scratch,
                                  solution->whitened, solution->xi, &solution->residuals);
        tb_problem_statuses(problem, solution->lambda, solution->statuses);
        memcpy(solution->solver, choice.best_solver, sizeof solution->solver);
    }
    tb_arena_return_to(warm->scratch, mark);
    return status;
}
