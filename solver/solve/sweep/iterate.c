/* The iteration around the sweeps: start, stop tests, divergence, result.
 *
 * Stopping. The criterion is the natural map of the impulses in double (tb_problem_residuals). It
 * costs about a sweep, so it is not computed after every one: the changes of a sweep, in velocity
 * units, follow the residual up to a factor, the factor is learnt at every check, and the next
 * check comes when the estimate passes the tolerance or after half as many sweeps more. At least
 * one sweep is always made, also from a start that satisfies the tolerance: a stuck contact is
 * refined from step to step until it no longer changes by a bit.
 *
 * Divergence. Numbers that are not finite, or changes that grow for several sweeps in a row to a
 * multiple of the smallest seen (Poulsen 3.7 reacts to the first growth, but changes also grow for
 * a few sweeps in problems that converge), or a residual that stays above its best for long:
 * friction keeps impulses bounded, so that too large an omega often ends in a cycle. Then the
 * iteration returns to the best impulses so far and halves omega. */
#include "solve/sweep/accelerate.h"
#include "solve/sweep/spread.h"
#include "solve/sweep/sweep_control.h"

#include <string.h>

enum {
    BLOCK_SWEEPS = 60,   /* after these, contacts solved as blocks go on by rows */
    PLAIN_SWEEPS = 5,    /* before acceleration: contacts open, stick and slide as they find */
    SET_UP_BLOCKS = 128, /* blocks set up together, while their data is in the cache */
    ACCELERATION_DEPTH = 5
};
typedef struct tb_iteration {
    const tb_problem *problem;
    const tb_solve_options *options;
    tb_arena *scratch;
    tb_solution *solution;
    tb_sweeper sweeper;
    double c_norm;     /* 1 where c = 0: the residual is not divided then */
    tb_real *best;     /* impulses with the smallest residual so far, where there are any */
    tb_real *previous; /* impulses before the sweep, for the tests of increments */
    tb_real *r;        /* a number for every row, for Betz's test */
    tb_sweep_control control;
    tb_acceleration acceleration;
    int32_t accelerate_from; /* sweep after which steps are accelerated */
} tb_iteration;

TB_STATIC bool options_are_valid(const tb_solve_options *o)
{
    return o->tolerance >= 0 && o->tolerance <= DBL_MAX && o->maximum_iterations >= 1 &&
           o->omega >= 0 && o->omega < 1e6 && o->maximum_halvings >= 0 &&
           o->storage >= TB_STORAGE_AUTO && o->storage <= TB_STORAGE_T &&
           o->r_strategy >= TB_R_DIAGONAL && o->r_strategy <= TB_R_SPECTRUM &&
           o->stop >= TB_STOP_RESIDUAL && o->stop <= TB_STOP_ONE_SIDED &&
           o->colouring >= TB_COLOURING_RIGID && o->colouring <= TB_COLOURING_RELAXED &&
           o->colours >= 0;
}

/* s = Y lambda afresh */
TB_STATIC void refresh(tb_sweeper *sweeper)
{
    if (sweeper->storage != TB_STORAGE_FACTORIZED) return;
    tb_problem_whiten(sweeper->problem, sweeper->lambda, sweeper->s);
}

/* initial impulses of some blocks: finite warm ones, projected to their sets */
TB_STATIC void start(tb_iteration *it, const tb_warm_start *warm, int32_t first, int32_t end)
{
    tb_sweeper *sweeper = &it->sweeper;
    TB_EACH (k, end - first) {
        const tb_block *block = &it->problem->blocks[first + k];
        tb_real *lambda = sweeper->lambda + block->row;
        for (int32_t i = 0; i < block->rows; i++) lambda[i] = warm->lambda[block->row + i];
        if (!tb_all_finite(lambda, block->rows))
            for (int32_t i = 0; i < block->rows; i++) lambda[i] = 0;
        tb_prox_block(block->law, block->rows, block->mu, block->lower, block->upper, lambda);
    }
    tb_team_sync();
    if (sweeper->storage == TB_STORAGE_FACTORIZED)
        tb_problem_whiten_blocks(it->problem, first, end, sweeper->lambda, sweeper->s);
}

/* Diagonal blocks, r-factors and the start of all blocks, some at a time: each of these passes
 * would be one through memory. */
TB_STATIC void set_up(tb_iteration *it, const tb_warm_start *warm, tb_real omega)
{
    tb_sweeper *sweeper = &it->sweeper;
    const int32_t blocks = it->problem->number_of_blocks;
    const bool is_warm = warm->lambda && it->options->warm_start;
    for (int32_t first = 0, end = 0; first < blocks; first = end) {
        end = blocks - first > SET_UP_BLOCKS ? first + SET_UP_BLOCKS : blocks;
        tb_sweeper_start(sweeper, it->options, first, end, omega);
        if (is_warm) start(it, warm, first, end);
    }
    if (is_warm) it->control.next_check = 1; /* most warm starts are good already */
}

/* ---- points that share a load ---- */

/* Whether two contacts act on the same runs of dofs: two points of the same pair of bodies. */
TB_STATIC bool share_dofs(const tb_problem *problem, const tb_block *a, const tb_block *b)
{
    if (!tb_law_has_friction(b->law) || a->segments != b->segments || a->width != b->width)
        return false;
    for (int32_t i = 0; i < a->segments; i++)
        if (problem->segments[a->segment + i].dof != problem->segments[b->segment + i].dof)
            return false;
    return true;
}

/* By how much a contact alone would change its normal impulse. */
TB_STATIC tb_real normal_change(const tb_sweeper *sweeper, int32_t index)
{
    const tb_problem *problem = sweeper->problem;
    const tb_block *block = &problem->blocks[index];
    const tb_sweep_block *own = &sweeper->blocks[index];
    const tb_real *y = problem->values + block->value;
    const tb_real diagonal = own->rows > 3 ? sweeper->local[own->local] : own->g[0];
    const tb_real lambda = sweeper->lambda[block->row];
    tb_real xi = problem->c[block->row];
    TB_ROLLED
    for (int32_t i = 0; i < block->segments; i++) {
        const tb_segment run = problem->segments[block->segment + i];
        TB_ROLLED
        for (int32_t k = 0; k < run.count; k++) xi += *y++ * sweeper->s[run.dof + k];
    }
    return tb_spread_change(lambda, xi, diagonal);
}

TB_STATIC void move_normal(tb_sweeper *sweeper, int32_t index, tb_real change)
{
    const tb_problem *problem = sweeper->problem;
    const tb_block *block = &problem->blocks[index];
    const tb_real *y = problem->values + block->value;
    if (TB_LEADER) sweeper->lambda[block->row] += change;
    const uint16_t *dof = tb_block_columns(problem, index);
    TB_EACH (k, block->width)
        sweeper->s[dof ? dof[k] : tb_block_dof(problem, block, k)] += y[k] * change;
    tb_team_sync();
}

/* Gives each point of a pair its part of the change that it needs. False if the pair bears its
 * whole load. `changes` has space for the points, visible to all lanes. */
TB_STATIC bool spread_pair(tb_sweeper *sweeper, int32_t first, int32_t end, tb_real *changes)
{
    tb_real load = 0, change = 0;
    int32_t number = 0;
    tb_team_sync(); /* the last pair's have been read */
    TB_EACH (k, end - first) changes[k] = normal_change(sweeper, first + k);
    tb_team_sync();
    TB_ROLLED
    for (int32_t b = first; b < end; b++) {
        change += tb_abs(changes[b - first]);
        load += sweeper->lambda[sweeper->problem->blocks[b].row];
        number += changes[b - first] != 0;
    }
    if (!tb_spread_is_due(number, change, load)) return false;
    tb_team_sync();
    for (int32_t b = first; b < end; b++)
        if (changes[b - first] != 0) move_normal(sweeper, b, changes[b - first] / (tb_real)number);
    return true;
}

/* All pairs in turn (see spread.h). */
TB_STATIC tb_status spread_loads(tb_iteration *it)
{
    const tb_problem *problem = it->problem;
    tb_sweeper *sweeper = &it->sweeper;
    if (sweeper->storage != TB_STORAGE_FACTORIZED) return TB_OK;
    const tb_arena_mark mark = tb_arena_get_mark(it->scratch);
    tb_real *changes = TB_ARENA_ARRAY(it->scratch, tb_real, TB_MOST_SHARING);
    if (!changes) return TB_RESOURCE_EXHAUSTED;
    bool any = true;
    for (int pass = 0; pass < TB_SPREADING_PASSES && any; pass++) {
        any = false;
        for (int32_t first = 0, end = 0; first < problem->number_of_blocks; first = end) {
            const tb_block *block = &problem->blocks[first];
            end = first + 1;
            if (!tb_law_has_friction(block->law)) continue;
            while (end < problem->number_of_blocks && end - first < TB_MOST_SHARING &&
                   share_dofs(problem, block, &problem->blocks[end]))
                end++;
            if (end - first > 1 && spread_pair(sweeper, first, end, changes)) any = true;
        }
    }
    tb_team_sync();
    tb_arena_return_to(it->scratch, mark);
    return TB_OK;
}

/* true residual of the sweeper's impulses */
TB_STATIC tb_status check(tb_iteration *it, double estimate, int32_t sweeps)
{
    tb_solution *solution = it->solution;
    const tb_status status =
        tb_problem_judge(it->problem, it->sweeper.lambda, NULL, it->scratch, solution->whitened,
                         solution->xi, &solution->residuals);
    if (status != TB_OK) return status;
    if (solution->first_check == 0) {
        solution->first_check = sweeps;
        solution->first_residual = solution->residuals.natural;
    }
    tb_sweep_control_checked(&it->control, solution->residuals.natural_absolute, estimate, sweeps);
    return TB_OK;
}

/* keeps the sweeper's impulses where they are the best that were checked */
TB_STATIC void keep_best(tb_iteration *it, int32_t sweeps)
{
    if (!tb_sweep_control_is_best(&it->control, it->solution->residuals.natural, sweeps)) return;
    tb_team_copy(it->best, it->sweeper.lambda,
                 (size_t)it->problem->number_of_rows * sizeof(tb_real));
    tb_team_sync();
}

/* the sweeper's impulses become the best known, or zero */
TB_STATIC void return_to_best(tb_iteration *it)
{
    const size_t bytes = (size_t)it->problem->number_of_rows * sizeof(tb_real);
    tb_team_sync();
    if (it->control.has_best)
        tb_team_copy(it->sweeper.lambda, it->best, bytes);
    else
        tb_team_clear(it->sweeper.lambda, bytes);
    tb_team_sync();
}

/* the thesis's own test, where it is the one that is asked for */
TB_STATIC bool increment_test(tb_iteration *it)
{
    const int32_t rows = it->problem->number_of_rows;
    const double tolerance = it->options->tolerance;
    const tb_real *lambda = it->sweeper.lambda;
    switch (it->options->stop) {
    case TB_STOP_ELEMENT:
        return tb_increment_element_test(lambda, it->previous, rows, tolerance, tolerance);
    case TB_STOP_NORM:
        return tb_increment_norm_test(lambda, it->previous, rows, tolerance, tolerance);
    case TB_STOP_EPSILON: return tb_increment_epsilon(lambda, it->previous, rows) <= tolerance;
    case TB_STOP_MERIT: return tb_increment_theta(lambda, it->previous, rows) <= tolerance;
    default: return false;
    }
}

TB_STATIC bool one_sided_test(tb_iteration *it)
{
    const tb_sweeper *sweeper = &it->sweeper;
    tb_team_sync();
    TB_EACH (b, it->problem->number_of_blocks) {
        const tb_sweep_block *block = &sweeper->blocks[b];
        for (int i = 0; i < block->rows; i++)
            it->r[block->row + i] = i == 0 ? block->r_normal : block->r_friction;
    }
    tb_team_sync();
    return tb_problem_one_sided_test(it->problem, sweeper->lambda, it->solution->xi, it->r,
                                     it->options->tolerance);
}

/* back to the best impulses, with half the omega */
TB_STATIC void roll_back(tb_iteration *it)
{
    tb_sweeper *sweeper = &it->sweeper;
    return_to_best(it);
    refresh(sweeper);
    it->solution->halvings++;
    tb_sweeper_set_omega(sweeper, it->options, sweeper->omega / 2);
    if (sweeper->alpha)
        tb_team_clear(sweeper->alpha, (size_t)it->problem->number_of_blocks * sizeof(tb_real));
    tb_team_sync();
    tb_accelerate_restart(&it->acceleration);
    tb_sweep_control_rolled_back(&it->control);
}

/* Exact local solves settle easy problems in fewer sweeps, but in hard ones (many contacts on the
 * rim of their cones, W singular) neighbours can push each other round a cycle for ever; a
 * projected step gives way. */
TB_STATIC bool leave_blocks(tb_iteration *it)
{
    tb_sweeper *sweeper = &it->sweeper;
    bool none = true;
    TB_EACH (b, it->problem->number_of_blocks) {
        tb_sweep_block *block = &sweeper->blocks[b];
        if (block->law != TB_LAW_COULOMB || block->block_solve != TB_SOLVE_WHOLE) continue;
        block->block_solve = TB_SOLVE_BY_ROWS;
        none = false;
    }
    tb_team_sync();
    if (tb_team_all(none)) return false;
    tb_sweeper_set_omega(sweeper, it->options, sweeper->omega);
    tb_accelerate_restart(&it->acceleration);
    return true;
}

TB_STATIC bool is_cancelled(const tb_solve_options *options)
{
#ifdef TB_DEVICE /* a card has no caller to ask */
    (void)options;
    return false;
#else
    return options->cancelled && options->cancelled(options->cancelled_context);
#endif
}

TB_STATIC double sweep_once(tb_sweeper *sweeper)
{
#ifndef TB_DEVICE
    if (sweeper->colours) return tb_coloured_sweep(sweeper);
#endif
    return sweeper->gauss_seidel ? tb_sor_sweep(sweeper) : tb_jor_sweep(sweeper);
}

/* sweeps until the stop test holds, the sweeps are used up, or omega cannot be halved again */
TB_STATIC tb_status sweep_on(tb_iteration *it)
{
    const tb_solve_options *options = it->options;
    tb_sweeper *sweeper = &it->sweeper;
    tb_solution *solution = it->solution;
    const size_t bytes = (size_t)it->problem->number_of_rows * sizeof(tb_real);

    solution->status = TB_NOT_CONVERGED;
    for (int32_t n = 1; n <= options->maximum_iterations; n++) {
        if (is_cancelled(options)) return TB_CANCELLED;
        if (it->previous) {
            tb_team_sync();
            tb_team_copy(it->previous, sweeper->lambda, bytes);
            tb_team_sync();
        }
        const bool accelerate = n > it->accelerate_from;
        if (n - 1 == it->accelerate_from) {
            const tb_status status = tb_accelerate_prepare(&it->acceleration, it->problem,
                                                           ACCELERATION_DEPTH, it->scratch);
            if (status != TB_OK) return status;
        }
        if (accelerate) tb_accelerate_begin(&it->acceleration, sweeper->lambda);
        const double estimate = sqrt(sweep_once(sweeper));
        solution->iterations = n;
        if (tb_sweep_control_diverges(&it->control, estimate, it->acceleration.jumped)) {
            if (solution->halvings >= options->maximum_halvings) {
                solution->status = TB_DIVERGED;
                return TB_OK;
            }
            roll_back(it);
            it->control.next_check = n + 1;
            continue;
        }
        bool stop = increment_test(it);
        const bool due = stop || n >= it->control.next_check || n == options->maximum_iterations ||
                         options->stop == TB_STOP_ONE_SIDED ||
                         (options->stop == TB_STOP_RESIDUAL &&
                          estimate * it->control.ratio <= options->tolerance * it->c_norm);
        if (due) {
            const tb_status status = check(it, estimate, n);
            if (status != TB_OK) return status;
            if (options->stop == TB_STOP_RESIDUAL)
                stop = solution->residuals.natural <= options->tolerance;
            else if (options->stop == TB_STOP_ONE_SIDED)
                stop = one_sided_test(it);
            if (stop) {
                solution->status = TB_OK;
                return TB_OK;
            }
            keep_best(it, n);
            if (tb_sweep_control_stagnates(&it->control, n) &&
                solution->halvings < options->maximum_halvings) {
                roll_back(it);
                it->control.best_sweep = n;
                continue;
            }
        }
        const bool changed = n == BLOCK_SWEEPS && leave_blocks(it);
        bool jumped = false;
        if (accelerate && !changed)
            jumped = tb_accelerate_step(&it->acceleration, it->problem, sweeper->lambda);
        if (jumped || n % TB_SWEEPS_TO_REFRESH == 0) refresh(sweeper);
    }
    return TB_OK;
}

/* Stores the result: the converged impulses, else the best finite ones. */
TB_STATIC tb_status account(tb_iteration *it)
{
    tb_solution *solution = it->solution;
    const int32_t rows = it->problem->number_of_rows;
    tb_real *lambda = it->sweeper.lambda;
    if (solution->status != TB_OK) {
        return_to_best(it);
        const tb_status status =
            tb_problem_judge(it->problem, lambda, NULL, it->scratch, solution->whitened,
                             solution->xi, &solution->residuals);
        if (status != TB_OK) return status;
    }
    tb_team_copy(solution->lambda, lambda, (size_t)rows * sizeof(tb_real));
    bool finite = true;
    TB_EACH (i, rows) finite = finite && tb_abs(solution->xi[i]) <= TB_REAL_MAX;
    finite = tb_team_all(finite);
    tb_team_sync();
    if (!finite) {
        tb_team_clear(solution->xi, (size_t)rows * sizeof(tb_real));
        solution->status = TB_DIVERGED;
    }
    tb_problem_statuses(it->problem, solution->lambda, solution->statuses);
    return TB_OK;
}

TB_STATIC tb_status take_memory(tb_iteration *it)
{
    const int32_t rows = it->problem->number_of_rows;
    const tb_stop_test stop = it->options->stop;
    it->best = TB_ARENA_ARRAY(it->scratch, tb_real, rows);
    if (!it->best) return TB_RESOURCE_EXHAUSTED;
    if (stop == TB_STOP_ELEMENT || stop == TB_STOP_NORM || stop == TB_STOP_EPSILON ||
        stop == TB_STOP_MERIT) {
        it->previous = TB_ARENA_ARRAY(it->scratch, tb_real, rows);
        if (!it->previous) return TB_RESOURCE_EXHAUSTED;
    }
    if (stop == TB_STOP_ONE_SIDED) {
        it->r = TB_ARENA_ARRAY(it->scratch, tb_real, rows);
        if (!it->r) return TB_RESOURCE_EXHAUSTED;
    }
    return TB_OK;
}

#ifdef TB_DEVICE
/* Lists the dofs of columns: lanes that take one column each find its dof there at once. */
TB_STATIC tb_status list_columns(tb_problem *problem, tb_arena *scratch)
{
    const int32_t dofs = problem->number_of_dofs, blocks = problem->number_of_blocks;
    const int32_t stride = dofs < TB_LISTED_COLUMNS ? dofs : TB_LISTED_COLUMNS;
    uint16_t *columns = TB_ARENA_ARRAY(scratch, uint16_t, (int64_t)stride * blocks);
    if (!columns) return TB_RESOURCE_EXHAUSTED;
    TB_EACH (b, blocks) {
        const tb_block *block = &problem->blocks[b];
        if (block->width > stride) continue;
        uint16_t *to = columns + (int64_t)b * stride;
        TB_ROLLED
        for (int32_t k = 0; k < block->segments; k++) {
            const tb_segment run = problem->segments[block->segment + k];
            TB_ROLLED
            for (int32_t j = 0; j < run.count; j++) *to++ = (uint16_t)(run.dof + j);
        }
    }
    tb_team_sync();
    problem->columns = columns;
    problem->stride = stride;
    return TB_OK;
}
#endif

TB_STATIC tb_status iterate(const tb_problem *problem, const tb_solve_options *options,
                            tb_warm_start *warm, tb_solution *solution, const char *name,
                            double omega, bool gauss_seidel, bool coloured)
{
    if (!options_are_valid(options)) return TB_INVALID_ARGUMENT;
    const tb_arena_mark mark = tb_arena_get_mark(warm->scratch);
    tb_iteration it = {
        .problem = problem,
        .options = options,
        .scratch = warm->scratch,
        .solution = solution,
    };
    tb_sweep_control_begin(&it.control, TB_SWEEPS_BETWEEN_CHECKS);
    solution->iterations = solution->halvings = solution->first_check = 0;
    tb_solution_sign(solution, name);

    const double c2 = tb_problem_c_squared(problem);
    tb_problem known = *problem;
    known.c_squared = c2;
    it.problem = problem = &known;
#ifdef TB_DEVICE
    if (problem->values && problem->number_of_dofs <= UINT16_MAX && !problem->columns &&
        list_columns(&known, warm->scratch) != TB_OK)
        return TB_RESOURCE_EXHAUSTED;
#endif
    it.c_norm = c2 > 0 ? sqrt(c2) : 1;

    tb_status status = take_memory(&it);
    if (status != TB_OK) goto done;
    status = tb_sweeper_prepare(&it.sweeper, problem, options, gauss_seidel, warm->scratch);
    if (status != TB_OK) goto done;
#ifdef TB_DEVICE
    (void)coloured;
#else
    tb_colours colours;
    if (coloured) {
        status = tb_colours_find(problem, options, warm->scratch, &colours);
        if (status != TB_OK) goto done;
        it.sweeper.colours = &colours;
    }
#endif
    if (!(c2 <= DBL_MAX) && !tb_all_finite(problem->c, problem->number_of_rows)) {
        solution->status = TB_DIVERGED;
        status = account(&it);
        goto done;
    }
    it.accelerate_from = INT32_MAX;
    if (options->accelerate && options->stop == TB_STOP_RESIDUAL &&
        options->maximum_iterations > PLAIN_SWEEPS) {
        it.accelerate_from = PLAIN_SWEEPS;
    }
    set_up(&it, warm, TB_R(options->omega > 0 ? options->omega : omega));
    if (gauss_seidel) status = spread_loads(&it);
    if (status == TB_OK) status = sweep_on(&it);
    if (status == TB_OK) status = account(&it);
done:
    tb_arena_return_to(warm->scratch, mark);
    return status;
}

TB_EXTERN tb_status tb_iterate(const tb_problem *problem, const tb_solve_options *options,
                               tb_warm_start *warm, tb_solution *solution, const char *name,
                               double omega, bool gauss_seidel)
{
    return iterate(problem, options, warm, solution, name, omega, gauss_seidel, false);
}

#ifndef TB_DEVICE
TB_EXTERN tb_status tb_iterate_coloured(const tb_problem *problem, const tb_solve_options *options,
                                        tb_warm_start *warm, tb_solution *solution,
                                        const char *name, double omega)
{
    return iterate(problem, options, warm, solution, name, omega, true, true);
}
#endif
