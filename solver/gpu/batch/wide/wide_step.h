/* The solve of a world of up to 36 dofs by the warp's Newton (wide_solve.h), in the place of
 * tb_step_solve, or of the first part of it. */
#ifndef TB_GPU_WIDE_STEP_H
#define TB_GPU_WIDE_STEP_H

#include "gpu/batch/wide/wide_solve.h"
#include "step/stages/stages.h"

/* Whether the caller's options leave the choice of a solver. */
TB_STATIC bool wide_is_asked_for(const tb_world *w)
{
    const tb_solve_options *o = &w->options->solve;
    return w->solver == TB_SOLVER_NUMBER_auto && o->stop == TB_STOP_RESIDUAL && o->warm_start &&
           o->maximum_iterations >= (int32_t)WIDE_STEPS + (int32_t)WIDE_SWEEPS;
}

/* Writes down the answer, which is judged once more, from the impulses as they are kept. */
TB_STATIC tb_status wide_put_solution(const wide_solve *s, tb_world *w, tb_solution *solution)
{
    const tb_problem *problem = s->problem;
    TB_EACH (r, problem->number_of_rows) {
        const double lambda = wide_answer(s->m)[r];
        solution->lambda[r] = TB_R(lambda);
        if (solution->fine) solution->fine[r] = TB_R(lambda - (double)TB_R(lambda));
    }
    tb_team_sync();
    solution->has_fine = solution->fine != NULL;
    solution->iterations = s->steps + s->sweeps;
    solution->work.linear_solves = solution->work.factorizations = s->steps;
    tb_solution_sign(solution, s->steps > 0 ? "newton" : s->sweeps > 0 ? "sor" : "auto");
    const tb_status status =
        tb_problem_judge(problem, solution->lambda, solution->fine, w->arena, solution->whitened,
                         solution->xi, &solution->residuals);
    if (status != TB_OK || solution->residuals.natural > s->tolerance) return TB_UNSUPPORTED;
    tb_problem_statuses(problem, solution->lambda, solution->statuses);
    return TB_OK;
}

/* UNSUPPORTED: the general solvers have to do it. */
TB_STATIC tb_status wide_find_solution(tb_world *w, wide_memory *memory, tb_solution *solution)
{
    tb_problem problem = tb_world_problem(w);
    tb_real *speeds;
    if (!wide_is_asked_for(w) || !wide_fits(&problem)) return TB_UNSUPPORTED;
    if (take_solution(w, &problem, solution, &speeds, NULL) != TB_OK) return TB_UNSUPPORTED;
    if (problem.number_of_rows == 0) {
        solve_nothing(&problem, solution);
        return TB_OK;
    }
    find_statuses(w, speeds);
    problem.c_squared = tb_problem_c_squared(&problem);
    wide_solve s = {.problem = &problem,
                    .m = memory,
                    .tolerance = w->options->solve.tolerance,
                    .inverse_norm = problem.c_squared > 0 ? 1 / sqrt(problem.c_squared) : 1};
    tb_solve_history history;
    memcpy(&history, w->state->history, sizeof history);
    const bool begins_with_sweeps = wide_begins_with_sweeps(&history);
    wide_load(&s, w->warm, w->fine);
    if (!wide_iterate(&s, begins_with_sweeps)) return TB_UNSUPPORTED;
    wide_learn(&s, begins_with_sweeps, &history);
    if (TB_LEADER) {
        w->history = history;
        w->factor = NULL;
    }
    return wide_put_solution(&s, w, solution);
}

/* How far a step's solve is after wide_step_solve. */
typedef enum wide_outcome {
    WIDE_DONE,    /* all of it */
    WIDE_LACKING, /* the step has its impulses; tb_step_solve adds the recovery of positions */
    WIDE_LEFT     /* none of it, tb_step_solve makes it */
} wide_outcome;

TB_STATIC wide_outcome wide_step_solve(tb_stepping *stepping, wide_memory *memory)
{
    tb_world *w = &stepping->world;
    const tb_arena_mark mark = tb_arena_get_mark(w->arena);
    tb_solution solution;
    memset(&solution, 0, sizeof solution);
    fetch_problem(w);
    if (wide_find_solution(w, memory, &solution) != TB_OK) {
        tb_arena_return_to(w->arena, mark);
        return WIDE_LEFT;
    }
    const bool recovers = tb_world_asks_for_recovery(w, &solution);
    tb_team_sync();
    if (TB_LEADER) stepping->solution = solution;
    tb_team_sync();
    return recovers ? WIDE_LACKING : WIDE_DONE;
}

#endif
