/* Solving a problem that came from a file. */
#include "solve/solve.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

tb_status tb_problem_solve(const tb_problem_file *file, const tb_solve_options *options,
                           double *reactions, double *velocities, tb_problem_result *result,
                           tb_error *error)
{
    if (!file || !options || !result)
        return tb_fail_field(error, TB_INVALID_ARGUMENT,
                             !file ? "file" : (!options ? "options" : "result"),
                             "an argument is missing");
    tb_solve_function *solve = tb_solver_find(options->solver);
    if (!solve)
        return tb_fail_field(error, TB_NOT_FOUND, "solver", "there is no solver '%s'",
                             options->solver ? options->solver : "(none)");
    const tb_problem *problem = tb_problem_file_local(file);
    const size_t rows = (size_t)problem->number_of_rows;
    tb_arena scratch;
    tb_arena_init(&scratch, 0);
    tb_warm_start warm = {.scratch = &scratch};
    tb_solution solution = {
        .lambda = TB_ARENA_ZEROED(&scratch, double, rows),
        .xi = TB_ARENA_ZEROED(&scratch, double, rows),
        .statuses = TB_ARENA_ZEROED(&scratch, uint8_t, problem->number_of_blocks),
    };
    tb_status status = TB_OK;
    if (!solution.lambda || !solution.xi || !solution.statuses) {
        status = tb_fail_memory(error, rows * 2 * sizeof(double), "the solution");
        goto done;
    }
    const double begin = seconds_now();
    status = solve(problem, options, &warm, &solution);
    const double seconds = seconds_now() - begin;
    if (status != TB_OK) {
        tb_fail(error, status,
                status == TB_UNSUPPORTED ? "solver '%s' has no such storage for a given matrix"
                : status == TB_CANCELLED ? "solver '%s' was told to end"
                : status == TB_INVALID_ARGUMENT ? "solver '%s': an option is out of range"
                                                : "solver '%s' could not get the memory it needs",
                options->solver);
        goto done;
    }
    *result = (tb_problem_result){
        .status = solution.status,
        .residual = solution.residuals.natural,
        .iterations = solution.iterations,
        .seconds = seconds,
        .cycle = solution.work.cycle,
    };
    memcpy(result->solver, solution.solver, sizeof result->solver);
    if (reactions) memcpy(reactions, solution.lambda, rows * sizeof(double));
    if (velocities) memcpy(velocities, solution.xi, rows * sizeof(double));
done:
    tb_arena_destroy(&scratch);
    return status;
}
