/* Staggered projections: normal impulses and friction in turn, each a quadratic program solved by
 * SCHURPA (Litven, algorithms 4.1 and 4.2; Kaufman, Sueda, James, Pai, Staggered projections for
 * frictional contact in multibody systems, 2008).
 *
 *     (C)  normals that are not negative,      with friction held
 *     (F)  friction within mu times them,      with normals held
 *
 * Each program is factored once a step and keeps its bordered columns; only f and b change from turn
 * to turn, and sets begin where the last turn's ended or its multipliers point. Contacts without a
 * normal impulse have no friction: all their facets meet in a point, and which of them hold would be
 * rounding (Litven's theorem 4.2 asks for limits above zero). Two of them are pinned, and stay in
 * the program.
 *
 * A turn is a map of the impulses to themselves, and it need not contract: large friction that
 * carries normal impulses makes turns go round. So turns are accelerated (accelerate.h), and where
 * neither their change nor the residual falls for long, only half of a turn's change is taken. If
 * that goes round as well, that is what is said: solution->work.cycle.
 *
 * In space the cone of (F) has four facets inscribed in the Coulomb cone. So the answer is exact
 * for contacts that stick or have no friction and for planar ones; for contacts that slide it has
 * as little as 0.71 of the friction. Its residual is measured against the exact cone, as every
 * solver's, and the status says NOT_CONVERGED where that is above the tolerance. The best impulses
 * met are what is returned. */
#include "solve/accelerate.h"
#include "solve/solve.h"
#include "solve/staggered.h"

#include <string.h>

/* normal impulses below this share of the largest are none */
static const double NO_IMPULSE = sizeof(tb_real) == sizeof(float) ? 1e-6 : 1e-12;
/* turns end when the impulses' change, in the kinetic metric, is this share of the tolerance */
static const double SHARE_OF_TOLERANCE = 1e-3;
/* a gain: of the best residual, of the smallest change */
static const double GAIN_OF_RESIDUAL = 0.99, GAIN_OF_CHANGE = 0.9;
static const tb_real LEAST_SHARE = TB_R(0.5); /* of a turn's change, where turns go round */
enum {
    PLAIN_TURNS = 2, /* before acceleration: sets find their way */
    ACCELERATION_TURNS = 5,
    TURNS_WITHOUT_GAIN = 40,
    TURNS_OF_CYCLE = 64 /* longest cycle of sets that is found */
};

typedef struct tb_staggered {
    const tb_problem *problem;
    const tb_solve_options *options;
    tb_arena *scratch;
    tb_real *g;                                 /* rows x rows */
    tb_real *lambda, *last, *trial, *xi, *best; /* rows */
    tb_real *s;                                 /* dofs */
    double best_residual;
    tb_staggered_part normals, friction;
    tb_acceleration acceleration;
    tb_real share;                 /* of a turn's change that is taken */
    double gain, smallest;         /* residual and change when they last gained */
    int32_t turns, idle;           /* so far; since then */
    uint64_t sets[TURNS_OF_CYCLE]; /* of the last turns, hashed */
    int32_t cycle;                 /* see tb_solve_work */
    tb_solve_work account;
    int32_t work; /* saddle systems */
} tb_staggered;

static tb_status take_staggered(tb_staggered *it)
{
    const size_t rows = (size_t)it->problem->number_of_rows;
    it->g = TB_ARENA_ARRAY(it->scratch, tb_real, rows * rows);
    it->lambda = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->last = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->trial = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->xi = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->best = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->s = TB_ARENA_ZEROED(it->scratch, tb_real, it->problem->number_of_dofs);
    return it->g && it->lambda && it->last && it->trial && it->xi && it->best && it->s
               ? TB_OK
               : TB_RESOURCE_EXHAUSTED;
}

static void project(const tb_problem *problem, tb_real *lambda)
{
    for (int32_t k = 0; k < problem->number_of_blocks; k++) {
        const tb_block *block = &problem->blocks[k];
        tb_prox_block(block->law, block->rows, block->mu, block->lower, block->upper,
                      lambda + block->row);
    }
}

/* Projects the impulses on the exact laws and keeps them if they are the best so far. */
static tb_status judge_turn(tb_staggered *it)
{
    const tb_problem *problem = it->problem;
    const size_t bytes = (size_t)problem->number_of_rows * sizeof(tb_real);
    if (!tb_all_finite(it->lambda, problem->number_of_rows)) return TB_OK;
    memcpy(it->trial, it->lambda, bytes);
    project(problem, it->trial);
    tb_residuals residuals;
    const tb_status status =
        tb_problem_residuals(problem, it->trial, it->scratch, NULL, &residuals);
    if (status != TB_OK || !(residuals.natural < it->best_residual)) return status;
    it->best_residual = residuals.natural;
    memcpy(it->best, it->trial, bytes);
    return TB_OK;
}

/* A part's f: xi of all other impulses, less what pulls to the centre. */
static void aim_part(tb_staggered *it, tb_staggered_part *part)
{
    memcpy(it->trial, it->lambda, (size_t)it->problem->number_of_rows * sizeof(tb_real));
    for (int32_t j = 0; j < part->n; j++) {
        part->last[j] = it->lambda[part->row[j]];
        it->trial[part->row[j]] = 0;
    }
    tb_problem_apply(it->problem, it->trial, it->s, it->xi);
    for (int32_t j = 0; j < part->n; j++)
        part->f[j] = it->xi[part->row[j]] - part->shift * part->last[j];
}

/* False where the program has no system that can be solved. */
static tb_status solve_part(tb_staggered *it, tb_staggered_part *part, bool *solved)
{
    *solved = true;
    if (part->n == 0) return TB_OK;
    tb_qp_result result;
    const tb_status status = tb_qp_solve(part->work, part->active, part->x, part->lambda, &result);
    *solved = status == TB_OK && result.status != TB_DIVERGED;
    if (status != TB_OK) return status == TB_FAILED_PRECONDITION ? TB_OK : status;
    it->work += result.iterations;
    it->account.linear_solves += result.solves;
    it->account.factorizations += result.factorizations;
    it->account.resets += result.resets;
    for (int32_t j = 0; j < part->n && *solved; j++) it->lambda[part->row[j]] = part->x[j];
    return TB_OK;
}

/* ---- friction ---- */

/* The program of all contacts that have friction; the facets that the start saturates. */
static tb_status make_friction(tb_staggered *it)
{
    const tb_problem *problem = it->problem;
    const int32_t blocks = problem->number_of_blocks;
    int32_t *contacts = TB_ARENA_ARRAY(it->scratch, int32_t, blocks), count = 0;
    if (!contacts) return TB_RESOURCE_EXHAUSTED;
    for (int32_t k = 0; k < blocks; k++) {
        const tb_block *block = &problem->blocks[k];
        const bool rubs = block->law == TB_LAW_COULOMB || block->law == TB_LAW_PLANAR;
        if (rubs && block->mu > 0) contacts[count++] = k;
    }
    return tb_staggered_friction(problem, it->g, contacts, count, it->scratch, &it->friction);
}

/* a_i' of the friction that there is, and the largest diagonal number of its rows */
static tb_real reach_of_facet(const tb_staggered *it, int32_t i, tb_real *diagonal)
{
    const tb_staggered_part *part = &it->friction;
    const int64_t rows = it->problem->number_of_rows;
    tb_real reached = 0;
    *diagonal = 0;
    for (int32_t k = part->qp.row_start[i]; k < part->qp.row_start[i + 1]; k++) {
        const int64_t row = part->row[part->qp.column[k]];
        reached += part->qp.value[k] * it->lambda[row];
        *diagonal = tb_max(*diagonal, it->g[row * rows + row]);
    }
    return reached;
}

/* Limits from the normals, and the set that they predict (Litven 3.8): a facet holds where the last
 * friction goes beyond its new limit, or its multiplier, as an impulse, outweighs what is left. A
 * contact without a normal impulse is pinned to no friction by one facet of each opposite two. */
static void limit_friction(tb_staggered *it)
{
    tb_staggered_part *part = &it->friction;
    tb_real largest = 0;
    for (int32_t i = 0; i < part->qp.constraints; i++)
        largest = tb_max(largest, it->lambda[it->problem->blocks[part->block_of[i]].row]);
    for (int32_t i = 0; i < part->qp.constraints; i++) {
        const tb_block *block = &it->problem->blocks[part->block_of[i]];
        const tb_real normal = it->lambda[block->row];
        const bool pressed = normal > (tb_real)NO_IMPULSE * largest;
        part->b[i] = pressed ? block->mu * normal : 0;
        part->pins[i] = pressed ? TB_PIN_NONE : (i % 2 == 0 ? TB_PIN_HELD : TB_PIN_OFF);
        tb_real diagonal;
        const tb_real reached = reach_of_facet(it, i, &diagonal);
        if (!(diagonal > 0)) continue;
        part->active[i] = part->b[i] - reached - part->lambda[i] / diagonal < 0;
    }
}

/* Pinned contacts have no friction to the last bit. What would pull at them stands at that facet
 * of two opposite ones that it leans on, for the next prediction. */
static void clear_pinned(tb_staggered *it)
{
    tb_staggered_part *part = &it->friction;
    for (int32_t i = 0; i < part->qp.constraints; i++) {
        if (part->pins[i] != TB_PIN_HELD) continue;
        const tb_block *block = &it->problem->blocks[part->block_of[i]];
        for (int32_t r = 1; r < block->rows; r++) it->lambda[block->row + r] = 0;
        part->lambda[i + 1] = tb_max(-part->lambda[i], 0);
        part->lambda[i] = tb_max(part->lambda[i], 0);
    }
}

static tb_status solve_friction(tb_staggered *it, bool *solved)
{
    limit_friction(it);
    aim_part(it, &it->friction);
    const tb_status status = solve_part(it, &it->friction, solved);
    clear_pinned(it);
    return status;
}

/* ---- the turns ---- */

/* Kinetic energy of the last change over that of the impulses (4.19), of all rows: its root. */
static double change_of_turn(const tb_staggered *it)
{
    const int64_t rows = it->problem->number_of_rows;
    double change = 0, size = 0;
    for (int64_t i = 0; i < rows; i++) {
        double by_change = 0, by_lambda = 0;
        for (int64_t j = 0; j < rows; j++) {
            const double g = (double)it->g[i * rows + j], l = (double)it->lambda[j];
            by_change += g * (l - (double)it->last[j]);
            by_lambda += g * l;
        }
        change += by_change * ((double)it->lambda[i] - (double)it->last[i]);
        size += by_lambda * (double)it->lambda[i];
    }
    return size > 0 ? sqrt(fmax(change, 0) / size) : (change > 0 ? DBL_MAX : 0);
}

/* What the start says of sets: bounds that hold; and of friction what pulls at facets, from which
 * the first limits predict theirs. */
static void begin_sets(tb_staggered *it)
{
    tb_staggered_part *part = &it->normals;
    for (int32_t i = 0; i < part->qp.constraints; i++) {
        const int32_t k = part->qp.row_start[i];
        const tb_real at = part->qp.value[k] * it->lambda[part->row[part->qp.column[k]]];
        part->active[i] = at >= part->b[i];
    }
    part = &it->friction;
    tb_problem_apply(it->problem, it->lambda, it->s, it->xi);
    for (int32_t i = 0; i < part->qp.constraints; i++) {
        tb_real pull = 0;
        for (int32_t k = part->qp.row_start[i]; k < part->qp.row_start[i + 1]; k++)
            pull -= part->qp.value[k] * it->xi[part->row[part->qp.column[k]]];
        part->lambda[i] = tb_max(pull / 2, 0);
    }
}

static tb_status take_turn(tb_staggered *it, bool *solved)
{
    *solved = true;
    aim_part(it, &it->normals);
    tb_status status = solve_part(it, &it->normals, solved);
    if (status == TB_OK && *solved) status = solve_friction(it, solved);
    if (status == TB_OK) status = judge_turn(it);
    return status;
}

static uint64_t hash_set(uint64_t hash, const tb_staggered_part *part)
{
    for (int32_t i = 0; i < part->qp.constraints; i++) /* FNV-1a */
        hash = (hash ^ (uint64_t)(part->active[i] | part->pins[i] << 1)) * 1099511628211u;
    return hash;
}

/* After how many turns the present sets have come back; TURNS_OF_CYCLE: more, or other each time. */
static int32_t find_cycle(const tb_staggered *it)
{
    const uint64_t *sets = it->sets;
    const int32_t now = it->turns - 1;
    for (int32_t k = 1; k < TURNS_OF_CYCLE && k <= now; k++)
        if (sets[(now - k) % TURNS_OF_CYCLE] == sets[now % TURNS_OF_CYCLE]) return k;
    return TURNS_OF_CYCLE;
}

/* Looks whether turns still gain. False: they go round, with smaller steps too. */
static bool watch_turns(tb_staggered *it, double change)
{
    const uint64_t normals = hash_set(14695981039346656037u, &it->normals);
    it->sets[it->turns++ % TURNS_OF_CYCLE] = hash_set(normals, &it->friction);
    it->idle++;
    if (it->best_residual < GAIN_OF_RESIDUAL * it->gain) {
        it->gain = it->best_residual;
        it->idle = 0;
    }
    if (change < GAIN_OF_CHANGE * it->smallest) {
        it->smallest = change;
        it->idle = 0;
    }
    if (it->idle < TURNS_WITHOUT_GAIN) return true;
    it->cycle = find_cycle(it);
    if (it->share <= LEAST_SHARE) return false;
    it->share = LEAST_SHARE;
    it->smallest = it->acceleration.smallest = DBL_MAX;
    it->idle = 0;
    tb_accelerate_restart(&it->acceleration);
    return true;
}

/* The start of the next turn, from this one's. Both keep the cone, and so does what lies between. */
static void move_on(tb_staggered *it, bool accelerate)
{
    for (int32_t i = 0; i < it->problem->number_of_rows && it->share < 1; i++)
        it->lambda[i] = it->last[i] + it->share * (it->lambda[i] - it->last[i]);
    if (accelerate) tb_accelerate_step(&it->acceleration, it->problem, it->lambda);
}

static tb_status take_turns(tb_staggered *it)
{
    const tb_solve_options *options = it->options;
    const size_t bytes = (size_t)it->problem->number_of_rows * sizeof(tb_real);
    const double stop = fmax(SHARE_OF_TOLERANCE * options->tolerance, 4 * (double)TB_REAL_EPSILON);
    it->gain = it->best_residual;
    it->smallest = DBL_MAX;
    it->share = 1;
    while (it->best_residual > options->tolerance && it->work < options->maximum_iterations) {
        if (options->cancelled && options->cancelled(options->cancelled_context))
            return TB_CANCELLED;
        const bool accelerate = it->turns >= PLAIN_TURNS;
        memcpy(it->last, it->lambda, bytes);
        if (accelerate) tb_accelerate_begin(&it->acceleration, it->lambda);
        bool solved = true;
        const tb_status status = take_turn(it, &solved);
        if (status != TB_OK) return status;
        const double change = change_of_turn(it);
        if (!solved || !(change > stop)) {
            it->cycle = 0;
            return TB_OK;
        }
        if (!watch_turns(it, change)) return TB_OK;
        move_on(it, accelerate);
    }
    return TB_OK;
}

/* Memory, both programs, and the start inside its sets. */
static tb_status begin_turns(tb_staggered *it, const tb_warm_start *warm)
{
    const tb_problem *problem = it->problem;
    const tb_solve_options *options = it->options;
    tb_status status = take_staggered(it);
    if (status != TB_OK) return status;
    if (warm->lambda && options->warm_start && tb_all_finite(warm->lambda, problem->number_of_rows))
        memcpy(it->lambda, warm->lambda, (size_t)problem->number_of_rows * sizeof(tb_real));
    project(problem, it->lambda);
    status = tb_problem_delassus(problem, it->g);
    if (status == TB_OK) status = tb_staggered_normals(problem, it->g, it->scratch, &it->normals);
    if (status == TB_OK) status = make_friction(it);
    if (status == TB_OK)
        status = tb_accelerate_prepare(&it->acceleration, problem, ACCELERATION_TURNS, it->scratch);
    if (status != TB_OK) return status;
    tb_staggered_part *parts[2] = {&it->normals, &it->friction};
    for (int k = 0; k < 2; k++)
        if (parts[k]->n > 0)
            tb_qp_listen(parts[k]->work, options->cancelled, options->cancelled_context);
    return judge_turn(it);
}

TB_EXTERN tb_status tb_solve_staggered(const tb_problem *problem, const tb_solve_options *options,
                                       tb_warm_start *warm, tb_solution *solution)
{
    if (!(options->tolerance >= 0) || options->maximum_iterations < 0) return TB_INVALID_ARGUMENT;
    const tb_arena_mark mark = tb_arena_get_mark(warm->scratch);
    tb_staggered it = {
        .problem = problem, .options = options, .scratch = warm->scratch, .best_residual = DBL_MAX};
    tb_status status = begin_turns(&it, warm);
    if (status == TB_OK && problem->number_of_rows > 0) {
        begin_sets(&it);
        status = take_turns(&it);
    }
    if (status != TB_OK) goto done;

    memcpy(solution->lambda, it.best, (size_t)problem->number_of_rows * sizeof(tb_real));
    status = tb_problem_judge(problem, solution->lambda, it.scratch, solution->whitened,
                              solution->xi, &solution->residuals);
    if (status != TB_OK) goto done;
    tb_problem_statuses(problem, solution->lambda, solution->statuses);
    solution->iterations = it.work;
    solution->halvings = 0;
    solution->status = solution->residuals.natural <= options->tolerance ? TB_OK : TB_NOT_CONVERGED;
    solution->work = it.account;
    solution->work.cycle = solution->status == TB_OK ? 0 : it.cycle;
    tb_solution_sign(solution, "staggered");
done:
    tb_arena_return_to(warm->scratch, mark);
    return status;
}
