/* Staggered projections: normal impulses and friction in turn, each a quadratic program solved by
 * SCHURPA (Litven, algorithms 4.1 and 4.2; Kaufman, Sueda, James, Pai, Staggered projections for
 * frictional contact in multibody systems, 2008).
 *
 *     (C)  normals that are not negative,      with friction held
 *     (F)  friction within mu times them,      with normals held
 *
 * Each program is factored once and keeps its bordered columns; only f and b change from turn to
 * turn, and sets begin where the last turn's ended. Contacts without a normal impulse have no
 * friction and are left out of (F), whose facets would all meet in a point there: which of them
 * hold would be rounding. (F) is made anew when it is others that are left out.
 *
 * In space the cone of (F) has four facets inscribed in the Coulomb cone. So the answer is exact
 * for contacts that stick or have no friction and for planar ones; for contacts that slide it has
 * as little as 0.71 of the friction. Its residual is measured against the exact cone, as every
 * solver's, and the status says NOT_CONVERGED where that is above the tolerance. Nor does the
 * alternation converge in all cases: the best impulses met are what is returned. */
#include "solve/solve.h"
#include "solve/staggered.h"

#include <string.h>

/* normal impulses below this share of the largest are none */
static const double NO_IMPULSE = sizeof(tb_real) == sizeof(float) ? 1e-6 : 1e-12;
/* turns end when the impulses' change, in the kinetic metric, is this share of the tolerance */
static const double SHARE_OF_TOLERANCE = 1e-3;
enum { TURNS_WITHOUT_GAIN = 200 };

typedef struct tb_staggered {
    const tb_problem *problem;
    const tb_solve_options *options;
    tb_arena *scratch;
    tb_real *g;                                 /* rows x rows */
    tb_real *lambda, *last, *trial, *xi, *best; /* rows */
    tb_real *s;                                 /* dofs */
    double best_residual;
    tb_staggered_part normals, friction;
    int32_t *contacts, contact_count; /* those with friction now */
    uint8_t *in_friction;             /* blocks */
    uint8_t *facets;                  /* 4 a block: active ones of the last turn */
    tb_arena_mark before_friction;
    bool made_friction;
    int32_t work; /* saddle systems */
} tb_staggered;

static tb_status take_staggered(tb_staggered *it)
{
    const size_t rows = (size_t)it->problem->number_of_rows;
    const int32_t blocks = it->problem->number_of_blocks;
    it->g = TB_ARENA_ARRAY(it->scratch, tb_real, rows * rows);
    it->lambda = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->last = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->trial = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->xi = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->best = TB_ARENA_ZEROED(it->scratch, tb_real, rows);
    it->s = TB_ARENA_ZEROED(it->scratch, tb_real, it->problem->number_of_dofs);
    it->contacts = TB_ARENA_ARRAY(it->scratch, int32_t, blocks);
    it->in_friction = TB_ARENA_ZEROED(it->scratch, uint8_t, blocks);
    it->facets = TB_ARENA_ZEROED(it->scratch, uint8_t, 4 * (size_t)blocks);
    return it->g && it->lambda && it->last && it->trial && it->xi && it->best && it->s &&
                   it->contacts && it->in_friction && it->facets
               ? TB_OK
               : TB_RESOURCE_EXHAUSTED;
}

/* Projects the impulses on the exact laws and keeps them if they are the best so far. */
static tb_status judge_turn(tb_staggered *it)
{
    const tb_problem *problem = it->problem;
    const size_t bytes = (size_t)problem->number_of_rows * sizeof(tb_real);
    if (!tb_all_finite(it->lambda, problem->number_of_rows)) return TB_OK;
    memcpy(it->trial, it->lambda, bytes);
    for (int32_t k = 0; k < problem->number_of_blocks; k++) {
        const tb_block *block = &problem->blocks[k];
        tb_prox_block(block->law, block->rows, block->mu, block->lower, block->upper,
                      it->trial + block->row);
    }
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
    for (int32_t j = 0; j < part->n && *solved; j++) it->lambda[part->row[j]] = part->x[j];
    return TB_OK;
}

/* ---- friction ---- */

static bool has_friction(const tb_block *block)
{
    return (block->law == TB_LAW_COULOMB || block->law == TB_LAW_PLANAR) && block->mu > 0;
}

/* Lists the contacts that have friction; true if they are others than in the last turn. The others'
 * tangential impulses become zero. */
static bool list_contacts(tb_staggered *it)
{
    const tb_problem *problem = it->problem;
    tb_real largest = 0;
    for (int32_t k = 0; k < problem->number_of_blocks; k++)
        if (has_friction(&problem->blocks[k]))
            largest = tb_max(largest, it->lambda[problem->blocks[k].row]);
    bool changed = false;
    it->contact_count = 0;
    for (int32_t k = 0; k < problem->number_of_blocks; k++) {
        const tb_block *block = &problem->blocks[k];
        const bool held =
            has_friction(block) && it->lambda[block->row] > (tb_real)NO_IMPULSE * largest;
        if (held) it->contacts[it->contact_count++] = k;
        if (!held && (block->law == TB_LAW_COULOMB || block->law == TB_LAW_PLANAR))
            for (int32_t r = 1; r < block->rows; r++) it->lambda[block->row + r] = 0;
        changed = changed || held != (it->in_friction[k] != 0);
        it->in_friction[k] = held;
    }
    return changed;
}

/* Where a part's constraint stands among its contact's facets. */
static int32_t facet_place(const tb_staggered_part *part, int32_t i)
{
    int32_t first = i;
    while (first > 0 && part->block_of[first - 1] == part->block_of[i]) first--;
    return 4 * part->block_of[i] + i - first;
}

static tb_status make_friction(tb_staggered *it)
{
    tb_arena_return_to(it->scratch, it->before_friction);
    const tb_status status = tb_staggered_friction(it->problem, it->g, it->contacts,
                                                   it->contact_count, it->scratch, &it->friction);
    if (status != TB_OK) return status;
    it->made_friction = true;
    for (int32_t i = 0; i < it->friction.qp.constraints; i++)
        it->friction.active[i] = it->facets[facet_place(&it->friction, i)];
    return TB_OK;
}

/* Limits from the normals, and the set that they predict (Litven 3.8): a facet holds where the last
 * friction goes beyond its new limit, or its multiplier, as an impulse, outweighs what is left. */
static void limit_friction(tb_staggered *it)
{
    tb_staggered_part *part = &it->friction;
    const int64_t rows = it->problem->number_of_rows;
    for (int32_t i = 0; i < part->qp.constraints; i++) {
        const tb_block *block = &it->problem->blocks[part->block_of[i]];
        part->b[i] = block->mu * it->lambda[block->row];
        tb_real reached = 0, diagonal = 0;
        for (int32_t k = part->qp.row_start[i]; k < part->qp.row_start[i + 1]; k++) {
            const int64_t row = part->row[part->qp.column[k]];
            reached += part->qp.value[k] * it->lambda[row];
            diagonal = tb_max(diagonal, it->g[row * rows + row]);
        }
        if (!(diagonal > 0)) continue;
        part->active[i] = part->b[i] - reached - part->lambda[i] / diagonal < 0;
    }
}

static tb_status solve_friction(tb_staggered *it, bool *solved)
{
    tb_status status = TB_OK;
    const bool changed = list_contacts(it);
    const bool fresh = changed || !it->made_friction;
    if (fresh) status = make_friction(it);
    if (status != TB_OK) return status;
    aim_part(it, &it->friction);
    uint8_t *kept = it->facets;
    if (fresh) { /* there are no multipliers to predict from: what held is what begins */
        for (int32_t i = 0; i < it->friction.qp.constraints; i++) {
            const tb_block *block = &it->problem->blocks[it->friction.block_of[i]];
            it->friction.b[i] = block->mu * it->lambda[block->row];
        }
    } else {
        limit_friction(it);
    }
    status = solve_part(it, &it->friction, solved);
    for (int32_t i = 0; i < it->friction.qp.constraints && status == TB_OK; i++)
        kept[facet_place(&it->friction, i)] = it->friction.active[i];
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

/* What a start says of sets: bounds that hold, facets that are saturated. */
static void begin_sets(tb_staggered *it)
{
    tb_staggered_part *part = &it->normals;
    for (int32_t i = 0; i < part->qp.constraints; i++) {
        const int32_t k = part->qp.row_start[i];
        const tb_real at = part->qp.value[k] * it->lambda[part->row[part->qp.column[k]]];
        part->active[i] = at >= part->b[i];
    }
    for (int32_t k = 0; k < it->problem->number_of_blocks; k++) {
        const tb_block *block = &it->problem->blocks[k];
        if (!has_friction(block)) continue;
        const tb_real limit = block->mu * it->lambda[block->row] * TB_R(1 - 1e-6);
        if (!(limit > 0)) continue;
        const tb_real x = it->lambda[block->row + 1];
        const tb_real y = block->law == TB_LAW_PLANAR ? 0 : it->lambda[block->row + 2];
        uint8_t *facets = it->facets + 4 * (size_t)k;
        facets[0] = x + y >= limit;
        facets[1] = -x - y >= limit;
        if (block->law == TB_LAW_PLANAR) continue;
        facets[2] = x - y >= limit;
        facets[3] = y - x >= limit;
    }
}

static tb_status take_turns(tb_staggered *it)
{
    const tb_solve_options *options = it->options;
    const size_t bytes = (size_t)it->problem->number_of_rows * sizeof(tb_real);
    const double stop = fmax(SHARE_OF_TOLERANCE * options->tolerance, 4 * (double)TB_REAL_EPSILON);
    double gain = it->best_residual;
    int32_t without_gain = 0;
    while (it->best_residual > options->tolerance && it->work < options->maximum_iterations &&
           without_gain < TURNS_WITHOUT_GAIN) {
        if (options->cancelled && options->cancelled(options->cancelled_context))
            return TB_CANCELLED;
        memcpy(it->last, it->lambda, bytes);
        bool solved = true;
        aim_part(it, &it->normals);
        tb_status status = solve_part(it, &it->normals, &solved);
        if (status == TB_OK && solved) status = solve_friction(it, &solved);
        if (status == TB_OK) status = judge_turn(it);
        if (status != TB_OK) return status;
        if (!solved || !(change_of_turn(it) > stop)) return TB_OK;
        without_gain++;
        if (it->best_residual < 0.99 * gain) {
            gain = it->best_residual;
            without_gain = 0;
        }
    }
    return TB_OK;
}

TB_EXTERN tb_status tb_solve_staggered(const tb_problem *problem, const tb_solve_options *options,
                                       tb_warm_start *warm, tb_solution *solution)
{
    if (!(options->tolerance >= 0) || options->maximum_iterations < 0) return TB_INVALID_ARGUMENT;
    const tb_arena_mark mark = tb_arena_get_mark(warm->scratch);
    const size_t bytes = (size_t)problem->number_of_rows * sizeof(tb_real);
    tb_staggered it = {
        .problem = problem, .options = options, .scratch = warm->scratch, .best_residual = DBL_MAX};
    tb_status status = take_staggered(&it);
    if (status != TB_OK) goto done;
    if (warm->lambda && options->warm_start) memcpy(it.lambda, warm->lambda, bytes);
    status = tb_problem_delassus(problem, it.g);
    if (status == TB_OK) status = tb_staggered_normals(problem, it.g, it.scratch, &it.normals);
    if (status != TB_OK) goto done;
    it.before_friction = tb_arena_get_mark(it.scratch);
    status = judge_turn(&it);
    if (status == TB_OK && problem->number_of_rows > 0) {
        begin_sets(&it);
        status = take_turns(&it);
    }
    if (status != TB_OK) goto done;

    memcpy(solution->lambda, it.best, bytes);
    tb_arena_return_to(it.scratch, it.before_friction);
    status = tb_problem_judge(problem, solution->lambda, it.scratch, solution->whitened,
                              solution->xi, &solution->residuals);
    if (status != TB_OK) goto done;
    tb_problem_statuses(problem, solution->lambda, solution->statuses);
    solution->iterations = it.work;
    solution->halvings = 0;
    solution->status = solution->residuals.natural <= options->tolerance ? TB_OK : TB_NOT_CONVERGED;
    tb_solution_sign(solution, "staggered");
done:
    tb_arena_return_to(warm->scratch, mark);
    return status;
}
