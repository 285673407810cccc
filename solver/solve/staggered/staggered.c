/* Staggered projections: normal impulses and friction in turn, each a quadratic program solved by
 * SCHURPA (Litven, algorithms 4.1 and 4.2; Kaufman, Sueda, James, Pai, Staggered projections for
 * frictional contact in multibody systems, 2008).
 *
 *     (C)  normals that are not negative,      with friction held
 *     (F)  friction within mu times them,      with normals held
 *
 * Each program is factored once a step and keeps its bordered columns; only f and bounds change
 * from turn to turn, and sets begin where the last turn's ended or its multipliers point. Contacts
 * without a normal impulse have no friction: all their facets meet in a point, and which of them
 * hold would be rounding (Litven's theorem 4.2 asks for limits above zero). Both bounds are zero
 * then, and the variable stays in the program.
 *
 * A turn is a map of the impulses to themselves, and it need not contract: large friction that
 * carries normal impulses makes turns cycle. So turns are accelerated (accelerate.h), and where
 * neither their change nor the residual falls for long, only half of a turn's change is taken. If
 * the turns still cycle, solution->work.cycle says so.
 *
 * In space the cone of (F) has four facets inscribed in the Coulomb cone. So the answer is exact
 * for contacts that stick or have no friction and for planar ones; for contacts that slide it has
 * as little as 0.71 of the friction. Its residual is measured against the exact cone, as every
 * solver's, and the status says NOT_CONVERGED where that is above the tolerance. The solver returns
 * the impulses of the smallest residual.
 *
 * A team's work (base/team.h), on a card in a kernel of its own (gpu/batch/step_staggered.cu). */
#include "base/team.h"
#include "solve/sweep/accelerate.h"
#include "solve/solve.h"
#include "solve/staggered/staggered.h"

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

/* Each lane has one; arrays are the team's. */
typedef struct tb_staggered {
    const tb_problem *problem;
    tb_problem still; /* the same with c = 0: the effect of impulses alone */
    const tb_solve_options *options;
    tb_arena *scratch;
    tb_real *lambda, *last, *trial, *xi, *best; /* rows */
    tb_real *s;                                 /* dofs */
    double best_residual;
    tb_staggered_program normals, friction;
    tb_acceleration acceleration;
    tb_real share;         /* of a turn's change that is taken */
    double gain, smallest; /* residual and change when they last gained */
    int32_t turns, idle;   /* so far; since then */
    uint64_t *sets;        /* TURNS_OF_CYCLE: of the last turns, hashed */
    int32_t cycle;         /* see tb_solve_work */
    tb_solve_work account;
    int32_t work; /* saddle systems */
} tb_staggered;

TB_STATIC tb_status take_staggered(tb_staggered *it)
{
    const size_t rows = (size_t)it->problem->number_of_rows;
    tb_real *none = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->lambda = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->last = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->trial = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->xi = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->best = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->s = TB_ARENA_ZEROED(it->scratch, tb_real, it->problem->number_of_dofs);
    it->sets = TB_ARENA_ZEROED(it->scratch, uint64_t, TURNS_OF_CYCLE);
    it->still = *it->problem;
    it->still.c = none;
    return none && it->lambda && it->last && it->trial && it->xi && it->best && it->s && it->sets
               ? TB_OK
               : TB_RESOURCE_EXHAUSTED;
}

TB_STATIC void copy_rows(const tb_staggered *it, tb_real *to, const tb_real *from)
{
    tb_team_copy(to, from, (size_t)it->problem->number_of_rows * sizeof(tb_real));
    tb_team_sync();
}

TB_STATIC void project_rows(const tb_problem *problem, tb_real *lambda)
{
    TB_EACH (k, problem->number_of_blocks) {
        const tb_block *block = &problem->blocks[k];
        tb_prox_block(block->law, block->rows, block->mu, block->lower, block->upper,
                      lambda + block->row);
    }
    tb_team_sync();
}

/* Projects the impulses on the exact laws and keeps them if they are the best so far. */
TB_CALLED tb_status judge_turn(tb_staggered *it)
{
    const tb_problem *problem = it->problem;
    if (!tb_all_finite(it->lambda, problem->number_of_rows)) return TB_OK;
    copy_rows(it, it->trial, it->lambda);
    project_rows(problem, it->trial);
    tb_residuals residuals;
    const tb_status status =
        tb_problem_residuals(problem, it->trial, it->scratch, NULL, &residuals);
    if (status != TB_OK || !(residuals.natural < it->best_residual)) return status;
    it->best_residual = residuals.natural;
    copy_rows(it, it->best, it->trial);
    return TB_OK;
}

/* A program's f: xi of all other impulses, less the proximal pull to the centre. */
TB_STATIC void aim_part(tb_staggered *it, tb_staggered_program *part)
{
    tb_bounded *program = &part->program;
    copy_rows(it, it->trial, it->lambda);
    tb_staggered_gather(part, it->lambda, false, part->last);
    TB_EACH (j, part->n) it->trial[part->row[j]] = 0;
    tb_team_sync();
    tb_problem_apply(it->problem, it->trial, it->s, it->xi);
    tb_staggered_gather(part, it->xi, true, program->f);
    TB_EACH (j, part->n) program->f[j] -= part->shift * part->last[j];
    tb_team_sync();
}

/* *solved: false where the program has no system that can be solved. */
TB_CALLED tb_status solve_part(tb_staggered *it, tb_staggered_program *part, bool *solved)
{
    *solved = true;
    if (part->n == 0) return TB_OK;
    aim_part(it, part);
    tb_bounded_result result;
    const tb_status status = tb_staggered_solve(part, it->options, &result);
    *solved = status == TB_OK && result.status != TB_DIVERGED;
    if (status != TB_OK) return status == TB_FAILED_PRECONDITION ? TB_OK : status;
    it->work += result.iterations;
    it->account.linear_solves += result.solves;
    it->account.factorizations += result.factorizations;
    it->account.resets += result.resets;
    if (*solved) tb_staggered_scatter(part, part->program.x, it->lambda);
    return TB_OK;
}

/* ---- friction ---- */

/* The largest normal impulse of a contact with friction. */
TB_STATIC tb_real largest_normal(const tb_staggered *it)
{
    const tb_staggered_program *part = &it->friction;
    double own = 0;
    TB_EACH (j, part->n) {
        const double normal = (double)it->lambda[it->problem->blocks[part->block_of[j]].row];
        if (normal > own) own = normal;
    }
    return TB_R(tb_team_largest(own));
}

/* Limits from the normals, and the set that they predict (Litven 3.8): a bound is active where the
 * last friction impulse, after a Jacobi step, exceeds it. A contact without a normal impulse is
 * held at zero friction. */
TB_STATIC void limit_friction(tb_staggered *it)
{
    tb_staggered_program *part = &it->friction;
    tb_bounded *program = &part->program;
    const tb_real least = TB_R(NO_IMPULSE) * largest_normal(it);
    tb_staggered_gather(part, it->lambda, false, part->last);
    TB_EACH (j, part->n) {
        const tb_block *block = &it->problem->blocks[part->block_of[j]];
        const tb_real normal = it->lambda[block->row];
        const tb_real limit = normal > least ? block->mu * normal : 0;
        const tb_real aim = part->last[j] - TB_R(program->gradient[j]) / part->diagonal[j];
        program->lower[j] = -limit;
        program->upper[j] = limit;
        program->state[j] = aim < -limit  ? (uint8_t)TB_BOUND_LOWER
                            : aim > limit ? (uint8_t)TB_BOUND_UPPER
                                          : (uint8_t)TB_BOUND_FREE;
    }
    tb_team_sync();
}

/* ---- the turns ---- */

/* lambda' G lambda */
TB_STATIC double kinetic_energy(const tb_staggered *it, const tb_real *lambda)
{
    double sum = 0;
    tb_problem_apply(&it->still, lambda, it->s, it->xi);
    TB_ROLLED
    for (int32_t i = 0; i < it->problem->number_of_rows; i++)
        sum += (double)lambda[i] * (double)it->xi[i];
    tb_team_sync(); /* all have read them */
    return sum;
}

/* Kinetic energy of the last change over that of the impulses (4.19), of all rows: its root. */
TB_STATIC double change_of_turn(const tb_staggered *it)
{
    TB_EACH (i, it->problem->number_of_rows) it->trial[i] = it->lambda[i] - it->last[i];
    tb_team_sync();
    const double change = kinetic_energy(it, it->trial), size = kinetic_energy(it, it->lambda);
    if (!(change > 0)) return 0;
    return size > 0 ? sqrt(change / size) : DBL_MAX;
}

/* First sets from the start: active bounds; and for friction its driving forces, from which the
 * first limits predict their sets. */
TB_STATIC void staggered_first_sets(tb_staggered *it)
{
    tb_bounded *normals = &it->normals.program, *friction = &it->friction.program;
    tb_staggered_gather(&it->normals, it->lambda, false, it->normals.last);
    TB_EACH (j, normals->n) {
        const tb_real at = it->normals.last[j];
        normals->state[j] = at <= normals->lower[j]   ? (uint8_t)TB_BOUND_LOWER
                            : at >= normals->upper[j] ? (uint8_t)TB_BOUND_UPPER
                                                      : (uint8_t)TB_BOUND_FREE;
    }
    tb_team_sync();
    tb_problem_apply(it->problem, it->lambda, it->s, it->xi);
    tb_staggered_gather(&it->friction, it->xi, true, friction->f);
    TB_EACH (j, friction->n) friction->gradient[j] = (double)friction->f[j];
    tb_team_sync();
}

TB_STATIC tb_status take_turn(tb_staggered *it, bool *solved)
{
    *solved = true;
    tb_status status = solve_part(it, &it->normals, solved);
    if (status == TB_OK && *solved) {
        limit_friction(it);
        status = solve_part(it, &it->friction, solved);
    }
    if (status == TB_OK) status = judge_turn(it);
    return status;
}

/* After how many turns the present sets have come back; TURNS_OF_CYCLE: more, or other each
 * time. */
TB_STATIC int32_t find_cycle(const tb_staggered *it)
{
    const uint64_t *sets = it->sets;
    const int32_t now = it->turns - 1;
    TB_ROLLED
    for (int32_t k = 1; k < TURNS_OF_CYCLE && k <= now; k++)
        if (sets[(now - k) % TURNS_OF_CYCLE] == sets[now % TURNS_OF_CYCLE]) return k;
    return TURNS_OF_CYCLE;
}

/* Looks whether turns still gain. False: they go round, with smaller steps too. */
TB_STATIC bool watch_turns(tb_staggered *it, double change)
{
    if (TB_LEADER)
        it->sets[it->turns % TURNS_OF_CYCLE] =
            it->normals.program.hash ^ it->friction.program.hash * 1099511628211u;
    tb_team_sync();
    it->turns++;
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
    tb_team_sync(); /* all have read them */
    if (it->share <= LEAST_SHARE) return false;
    it->share = LEAST_SHARE;
    it->smallest = it->acceleration.smallest = DBL_MAX;
    it->idle = 0;
    tb_accelerate_restart(&it->acceleration);
    return true;
}

/* The start of the next turn. This start and the last lie in the cone, and so do all points
 * between them. */
TB_STATIC void move_on(tb_staggered *it, bool accelerate)
{
    if (it->share < 1) {
        TB_EACH (i, it->problem->number_of_rows)
            it->lambda[i] = it->last[i] + it->share * (it->lambda[i] - it->last[i]);
        tb_team_sync();
    }
    if (accelerate) tb_accelerate_step(&it->acceleration, it->problem, it->lambda);
}

TB_STATIC bool staggered_is_cancelled(const tb_solve_options *options)
{
#ifdef TB_DEVICE
    (void)options;
    return false;
#else
    return options->cancelled && options->cancelled(options->cancelled_context);
#endif
}

TB_STATIC tb_status take_turns(tb_staggered *it)
{
    const tb_solve_options *options = it->options;
    const double stop = fmax(SHARE_OF_TOLERANCE * options->tolerance, 4 * (double)TB_REAL_EPSILON);
    it->gain = it->best_residual;
    it->smallest = DBL_MAX;
    it->share = 1;
    while (it->best_residual > options->tolerance && it->work < options->maximum_iterations) {
        if (staggered_is_cancelled(options)) return TB_CANCELLED;
        const bool accelerate = it->turns >= PLAIN_TURNS;
        copy_rows(it, it->last, it->lambda);
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

/* Both programs; the Delassus matrix lies where their factors will. */
TB_CALLED tb_status make_programs(tb_staggered *it)
{
    const tb_problem *problem = it->problem;
    const size_t rows = (size_t)problem->number_of_rows;
    tb_status status = tb_staggered_normals(problem, it->scratch, &it->normals);
    if (status == TB_OK) status = tb_staggered_friction(problem, it->scratch, &it->friction);
    if (status != TB_OK) return status;
    const tb_arena_mark mark = tb_arena_get_mark(it->scratch);
    tb_real *g = TB_ARENA_ARRAY(it->scratch, tb_real, rows * rows);
    if (!g) return TB_RESOURCE_EXHAUSTED;
    status = tb_problem_delassus(problem, g);
    if (status != TB_OK) return status;
    tb_staggered_fill(&it->normals, problem, g);
    tb_staggered_fill(&it->friction, problem, g);
    tb_arena_return_to(it->scratch, mark);
    status = tb_staggered_begin(&it->normals, it->scratch);
    if (status == TB_OK) status = tb_staggered_begin(&it->friction, it->scratch);
    return status;
}

/* Memory, both programs, and the start inside its sets. */
TB_STATIC tb_status begin_turns(tb_staggered *it, const tb_warm_start *warm)
{
    const tb_problem *problem = it->problem;
    tb_status status = take_staggered(it);
    if (status != TB_OK) return status;
    if (warm->lambda && it->options->warm_start &&
        tb_all_finite(warm->lambda, problem->number_of_rows))
        copy_rows(it, it->lambda, warm->lambda);
    project_rows(problem, it->lambda);
    status = make_programs(it);
    if (status == TB_OK)
        status = tb_accelerate_prepare(&it->acceleration, problem, ACCELERATION_TURNS, it->scratch);
    return status == TB_OK ? judge_turn(it) : status;
}

/* the best impulses leave, with their honest account */
TB_STATIC tb_status finish_turns(const tb_staggered *it, tb_solution *solution)
{
    const tb_problem *problem = it->problem;
    copy_rows(it, solution->lambda, it->best);
    const tb_status status =
        tb_problem_judge(problem, solution->lambda, NULL, it->scratch, solution->whitened,
                         solution->xi, &solution->residuals);
    if (status != TB_OK) return status;
    tb_problem_statuses(problem, solution->lambda, solution->statuses);
    solution->iterations = it->work;
    solution->halvings = 0;
    solution->status =
        solution->residuals.natural <= it->options->tolerance ? TB_OK : TB_NOT_CONVERGED;
    solution->work = it->account;
    solution->work.cycle = solution->status == TB_OK ? 0 : it->cycle;
    tb_solution_sign(solution, "staggered");
    return TB_OK;
}

TB_EXTERN tb_status tb_solve_staggered(const tb_problem *problem, const tb_solve_options *options,
                                       tb_warm_start *warm, tb_solution *solution)
{
    if (!(options->tolerance >= 0) || options->maximum_iterations < 0) return TB_INVALID_ARGUMENT;
    const tb_arena_mark mark = tb_arena_get_mark(warm->scratch);
    tb_staggered it;
    memset(&it, 0, sizeof it);
    it.problem = problem;
    it.options = options;
    it.scratch = warm->scratch;
    it.best_residual = DBL_MAX;
    tb_status status = begin_turns(&it, warm);
    if (status == TB_OK && problem->number_of_rows > 0) {
        staggered_first_sets(&it);
        status = take_turns(&it);
    }
    if (status == TB_OK) status = finish_turns(&it, solution);
    tb_arena_return_to(warm->scratch, mark);
    return status;
}
