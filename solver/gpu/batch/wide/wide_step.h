/* The solve of a world of up to 36 dofs by the warp's Newton (wide_solve.h), in the place of
 * tb_step_solve, or of the first part of it. */
#ifndef TB_GPU_WIDE_STEP_H
#define TB_GPU_WIDE_STEP_H

#include "gpu/batch/wide/wide_recovery.h"
#include "gpu/batch/wide/wide_statuses.h"
#include "step/stages/stages.h"

/* ---- the solution ---- */

/* Whether the caller's options leave the choice of a solver. */
TB_STATIC bool wide_is_asked_for(const tb_world *w)
{
    const tb_solve_options *o = &w->options->solve;
    return w->solver == TB_SOLVER_NUMBER_auto && o->stop == TB_STOP_RESIDUAL && o->warm_start &&
           o->maximum_iterations >= (int32_t)WIDE_STEPS;
}

/* The other residuals of an item's answer, as judge.h has them of a block. */
TB_STATIC void wide_judge_item(const wide_own *o, tb_residuals *worst)
{
    const double l0 = o->lambda[0];
    if (o->lower < -FLT_MAX * 0.5 && o->upper > FLT_MAX * 0.5) return; /* of an equality */
    const double friction = sqrt(o->lambda[1] * o->lambda[1] + o->lambda[2] * o->lambda[2]);
    worst->cone = tb_larger(worst->cone, tb_larger(o->lower - l0, l0 - o->upper));
    if (o->rows > 1)
        worst->cone = tb_larger(worst->cone, friction - (double)o->mu * tb_larger(0, l0));
    if (o->lower != 0 || o->upper < FLT_MAX) return; /* of a box */
    worst->complementarity = tb_larger(worst->complementarity, fabs(l0 * o->x[0]));
    worst->penetration_velocity = tb_larger(worst->penetration_velocity, -o->x[0]);
}

/* Statuses of all blocks by the answer. */
TB_STATIC void wide_put_statuses(wide_solve *s, uint8_t *statuses)
{
    const wide_memory *m = wide_memory_of(s);
    TB_EACH (b, s->problem.number_of_blocks) {
        const tb_block block = s->problem.blocks[b];
        tb_real own[WIDE_ROWS] = {0, 0, 0, 0};
        WIDE_FULL
        for (int32_t r = 0; r < WIDE_ROWS; r++)
            if (r < block.rows) own[r] = TB_R(m->answer[block.row + r]);
        statuses[b] = tb_block_status(&block, own);
    }
}

/* Writes down the answer, which was judged last, and its residuals. */
TB_STATIC void wide_put_solution(wide_solve *s, const wide_progress *now, tb_solution *solution)
{
    const wide_memory *m = wide_memory_of(s);
    tb_residuals worst = {0};
    TB_EACH (item, s->items) {
        wide_own o = wide_item_of(m, item);
        wide_take_rows(&o, m->answer, o.lambda);
        wide_take_rows(&o, m->x, o.x);
        wide_judge_item(&o, &worst);
        WIDE_FULL
        for (int32_t r = 0; r < WIDE_ROWS; r++) {
            if (r >= o.rows) continue;
            const tb_real coarse = TB_R(o.lambda[r]);
            solution->lambda[o.row + r] = coarse;
            solution->xi[o.row + r] = TB_R(o.x[r]);
            if (solution->fine) solution->fine[o.row + r] = TB_R(o.lambda[r] - (double)coarse);
        }
    }
    TB_EACH (dof, s->dofs) solution->whitened[dof] = m->s[dof];
    solution->has_fine = solution->fine != NULL;
    solution->iterations = now->steps + now->sweeps;
    solution->work.linear_solves = solution->work.factorizations = now->steps;
    tb_solution_sign(solution, now->steps > 0 ? "newton" : now->sweeps > 0 ? "sor" : "auto");
    solution->residuals = TB_VALUE(tb_residuals){
        .natural = tb_residual_known(now->residual),
        .natural_absolute = tb_residual_known(now->residual / s->inverse_norm),
        .complementarity = tb_residual_known(tb_team_largest(worst.complementarity)),
        .cone = tb_residual_known(tb_team_largest(worst.cone)),
        .penetration_velocity = tb_residual_known(tb_team_largest(worst.penetration_velocity))};
    wide_put_statuses(s, solution->statuses);
}

/* ---- the solve of a step ---- */

/* Steps and sweeps of a solve in its first launch, where launches overlap: a solve that needs more goes on
 * in the next launch, with as many again as it has made, and other worlds do not wait for it. */
enum { WIDE_SLICE = 24 };

/* The most steps and sweeps between two questions whether to go on: a round and the sweeps after it. */
enum { WIDE_MOST_AT_ONCE = (int)WIDE_STEPS_OF_ROUND + (int)WIDE_LONGEST_BURST };

/* A paused solve. */
typedef struct TB_ALIGNED(16) wide_pause {
    wide_progress now;
    tb_arena_mark mark; /* of the arena before the solve */
    double lambda[WIDE_MOST_ROWS], x[WIDE_MOST_ROWS];
} wide_pause;

/* How far a step's solve is after wide_step_solve. */
typedef enum wide_outcome {
    WIDE_DONE, /* all of it */
    WIDE_LACKING, /* impulses; tb_step_solve adds the recovery of positions, or sees to an answer beyond the
                     tolerance */
    WIDE_BEGUN, /* paused: the next launch goes on with it */
    WIDE_LEFT   /* none of it, tb_step_solve makes it */
} wide_outcome;

/* A part of a solve. */
typedef struct wide_slice {
    wide_pause *pause; /* where a solve is kept that pauses, or has paused before */
    bool resumes;      /* it is not the first part */
    int32_t first;     /* steps and sweeps before it pauses for the first time; 0: it does not */
} wide_slice;

/* The start of a solve, or the iterate where it was paused. */
TB_STATIC void wide_take_up(wide_solve *s, const tb_world *w, const wide_pause *pause,
                            wide_progress *now)
{
    wide_load(s, w->number_of_values, w->warm, w->fine);
    memset(now, 0, sizeof *now);
    if (!pause) {
        if (wide_begin(s, now) || wide_step_from_statuses(s, now) != WIDE_FAILED) return;
        wide_put_start(s, w->warm, w->fine);
        now->residual = wide_judge(s);
        wide_sweep_start(s, now);
        wide_weigh_start(now);
        return;
    }
    *now = pause->now;
    TB_EACH (r, s->rows) {
        wide_memory_of(s)->lambda[r] = pause->lambda[r];
        wide_memory_of(s)->x[r] = pause->x[r];
    }
    tb_team_sync();
}

TB_STATIC void wide_put_down(wide_solve *s, const wide_progress *now, tb_arena_mark mark,
                             wide_pause *pause)
{
    TB_EACH (r, s->rows) {
        pause->lambda[r] = wide_memory_of(s)->lambda[r];
        pause->x[r] = wide_memory_of(s)->x[r];
    }
    if (TB_LEADER) {
        pause->now = *now;
        pause->mark = mark;
    }
    tb_team_sync();
}

/* Keeps the answer of a start that is given up, if it is the best so far. */
TB_CALLED void wide_keep_best(wide_solve *s, wide_progress *now, tb_solution *solution)
{
    now->residual = wide_judge(s);
    if (now->best > 0 && now->best <= now->residual) return;
    now->best = now->residual;
    wide_put_solution(s, now, solution);
}

/* Rounds from one start after the other. `pause`: steps and sweeps after which the solve pauses.
 * WIDE_GIVEN_UP: the solution is the best that `most` steps and sweeps have found, beyond the tolerance. */
TB_STATIC wide_state wide_make_starts(wide_solve *s, wide_progress *now, int32_t pause,
                                      int32_t most, tb_solution *solution)
{
    TB_ROLLED
    for (;;) {
        wide_state state = wide_iterate(s, now, pause < most ? pause : most);
        const bool last = now->steps + now->sweeps >= most;
        if (state == WIDE_PAUSED && last) state = WIDE_GIVEN_UP;
        if (state != WIDE_GIVEN_UP) return state;
        wide_keep_best(s, now, solution);
        if (now->best <= s->tolerance) return WIDE_REACHED;
        if (last) return WIDE_GIVEN_UP;
        wide_begin_again(s, now);
    }
}

/* Solves a problem whose solution has its arrays. */
TB_STATIC wide_outcome wide_find_solution(tb_world *w, wide_solve *s, const wide_slice *slice,
                                          tb_arena_mark mark, tb_solution *solution)
{
    if (TB_LEADER) {
        s->has_fine = solution->fine != NULL;
        s->tolerance = w->options->solve.tolerance;
    }
    wide_progress now;
    wide_take_up(s, w, slice->resumes ? slice->pause : NULL, &now);
    const int32_t made = slice->resumes ? now.steps + now.sweeps : 0;
    const int32_t more = made > slice->first ? made : slice->first;
    const int32_t most = w->options->solve.maximum_iterations - (int32_t)WIDE_MOST_AT_ONCE;
    const wide_state state =
        wide_make_starts(s, &now, slice->first > 0 ? made + more : INT32_MAX, most, solution);
    if (state == WIDE_PAUSED) {
        wide_put_down(s, &now, mark, slice->pause);
        return WIDE_BEGUN;
    }
    if (TB_LEADER) {
        double history[TB_HISTORY_NUMBERS]; /* read whole, not byte by byte; it stays as it is */
        for (int32_t i = 0; i < TB_HISTORY_NUMBERS; i++) history[i] = w->state->history[i];
        memcpy(&w->history, history, sizeof w->history);
        w->factor = NULL;
    }
    if (state == WIDE_REACHED) wide_put_solution(s, &now, solution);
    solution->iterations = now.steps + now.sweeps;
    solution->status = state == WIDE_REACHED ? TB_OK : TB_NOT_CONVERGED;
    return state == WIDE_REACHED ? WIDE_DONE : WIDE_LACKING;
}

/* Arrays of the solution of a new solve, and which statuses are known; false: this kernel does not take
 * such a solve. */
TB_STATIC bool wide_begin_solution(tb_world *w, const tb_problem *problem, tb_solution *solution)
{
    tb_real *speeds;
    if (!wide_is_asked_for(w) || !wide_fits(problem, w->number_of_values)) return false;
    if (take_solution(w, problem, solution, &speeds, NULL) != TB_OK) return false;
    if (problem->number_of_rows > 0) find_statuses(w, speeds);
    return true;
}

/* The solve of a step, from its start or from where it was paused. */
TB_STATIC wide_outcome wide_step_solve(tb_stepping *stepping, wide_solve *solve,
                                       const wide_slice *slice)
{
    tb_world *w = &stepping->world;
    const tb_problem *problem = &solve->problem;
    tb_arena_mark mark = tb_arena_get_mark(w->arena);
    tb_solution solution;
    wide_outcome outcome = WIDE_LEFT;
    memset(&solution, 0, sizeof solution);
    if (TB_LEADER) solve->problem = tb_world_problem(w);
    tb_team_sync();
    fetch_problem(w);
    if (slice->resumes) {
        solution = stepping->solution;
        mark = slice->pause->mark;
        tb_team_sync();
    }
    if (slice->resumes || wide_begin_solution(w, problem, &solution)) {
        if (problem->number_of_rows > 0) {
            outcome = wide_find_solution(w, solve, slice, mark, &solution);
        } else {
            solve_nothing(problem, &solution);
            outcome = WIDE_DONE;
        }
    }
    if (outcome == WIDE_LEFT) {
        tb_team_sync();
        tb_arena_return_to(w->arena, mark);
        if (TB_LEADER) memset(&stepping->solution, 0, sizeof stepping->solution);
        tb_team_sync();
        return WIDE_LEFT;
    }
    const bool recovers = outcome == WIDE_DONE && tb_world_asks_for_recovery(w, &solution);
    tb_real *velocity = recovers ? wide_recover(solve, w, &solution) : NULL;
    tb_team_sync();
    if (TB_LEADER) {
        stepping->solution = solution;
        stepping->recovered.velocity = velocity;
    }
    tb_team_sync();
    return recovers && !velocity ? WIDE_LACKING : outcome;
}

#endif
