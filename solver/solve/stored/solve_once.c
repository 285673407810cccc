/* A problem from a file on a card: full-sor on the stored T in rounds, judged between them by the residual
 * that every solver is judged by, and the processor where the card does not get there. */
#include "solve/stored/stored.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "solve/solve.h"

enum { FIRST_ROUND = 100 }; /* iterations; every round is twice as long as the last */
/* Impulses of zero have a residual of at most 1; a residual well above it means divergence. */
static const double DIVERGED_RESIDUAL = 4;

typedef struct card_solve {
    const tb_problem *problem;
    const tb_solve_options *options;
    int32_t device;
    tb_arena scratch;
    double *padded, *lambda, *xi; /* 3 numbers a contact; rows; rows */
    double alpha;
    tb_residuals residuals;
    tb_problem_result *result;
} card_solve;

static tb_status open_solve(card_solve *s, tb_error *error)
{
    const size_t rows = (size_t)s->problem->number_of_rows;
    const size_t padded = 3 * (size_t)s->problem->number_of_blocks;
    tb_arena_init(&s->scratch, 0);
    s->padded = TB_ARENA_ZEROED(&s->scratch, double, padded);
    s->lambda = TB_ARENA_ZEROED(&s->scratch, double, rows);
    s->xi = TB_ARENA_ZEROED(&s->scratch, double, rows);
    if (s->padded && s->lambda && s->xi) return TB_OK;
    return tb_fail_memory(error, (padded + 2 * rows) * sizeof(double), "the solution");
}

/* Iterates on the card and judges the impulses in the rows of the problem. */
static tb_status run_round(card_solve *s, const tb_prox_system *system, int32_t iterations,
                           tb_error *error)
{
    const tb_problem *p = s->problem;
    tb_prox_options options = tb_prox_defaults();
    tb_prox_result made;
    options.variant = "full-sor";
    options.backend = TB_BACKEND_GPU;
    options.device = s->device;
    options.iterations = iterations;
    options.check_period = 0;
    tb_status status = tb_prox_iterate(system, &options, s->padded, &made, error);
    if (status != TB_OK) return status;
    s->result->iterations += made.iterations;
    s->result->seconds += made.seconds;
    for (int32_t b = 0; b < p->number_of_blocks; b++)
        for (int32_t k = 0; k < p->blocks[b].rows; k++)
            s->lambda[p->blocks[b].row + k] = s->padded[3 * b + k];
    return tb_problem_judge(p, s->lambda, NULL, &s->scratch, NULL, s->xi, &s->residuals);
}

/* Whether a residual that fell from `before` to `now` over the last `made` iterations meets the tolerance
 * within `left` more, at the same rate. */
static bool gets_there(double before, double now, int64_t made, int64_t left, double tolerance)
{
    if (!(now < before)) return false;
    const double rate = log(now / before) / (double)made;
    return now * exp(rate * (double)left) <= tolerance;
}

/* Rounds with one alpha. OK: the residual meets the tolerance; NOT_CONVERGED: it does not; DIVERGED: it
 * is larger than that of zero impulses ever is. */
static tb_status iterate_rounds(card_solve *s, const tb_prox_system *system, int64_t *left,
                                tb_error *error)
{
    const tb_solve_options *o = s->options;
    double before = DBL_MAX;
    memset(s->padded, 0, 3 * (size_t)s->problem->number_of_blocks * sizeof *s->padded);
    for (int64_t round = FIRST_ROUND; *left > 0; round *= 2) {
        const int64_t count = round < *left ? round : *left;
        if (o->cancelled && o->cancelled(o->cancelled_context))
            return tb_fail(error, TB_CANCELLED, "%s", tb_status_text(TB_CANCELLED));
        const tb_status status = run_round(s, system, (int32_t)count, error);
        if (status != TB_OK) return status;
        *left -= count;
        const double now = s->residuals.natural;
        if (now <= o->tolerance) return TB_OK;
        if (!(now < DIVERGED_RESIDUAL)) return TB_DIVERGED;
        /* the first rounds go through a transient that says nothing of the rate */
        if (round >= 16 * FIRST_ROUND && !gets_there(before, now, count, *left, o->tolerance))
            return TB_NOT_CONVERGED;
        before = now;
    }
    return TB_NOT_CONVERGED;
}

static tb_status solve_on_card(card_solve *s, tb_error *error)
{
    int64_t left = s->options->maximum_iterations;
    tb_status status = TB_DIVERGED;
    s->alpha = s->options->omega > 0 ? s->options->omega : 1;
    for (int32_t k = 0; k <= s->options->maximum_halvings && status == TB_DIVERGED; k++) {
        tb_prox_system *system = NULL;
        status = tb_stored_system_of(s->problem, s->alpha, &system, error);
        if (status == TB_OK) status = iterate_rounds(s, system, &left, error);
        tb_prox_system_destroy(system);
        s->alpha /= 2;
    }
    return status;
}

static tb_status check_arguments(const void *file, const tb_solve_options *options, int32_t device,
                                 const void *result, tb_error *error)
{
    if (!file || !options || !result)
        return tb_fail_field(error, TB_INVALID_ARGUMENT,
                             !file ? "file" : (!options ? "options" : "result"),
                             "an argument is missing");
    if (!tb_solver_find(options->solver))
        return tb_fail_field(error, TB_NOT_FOUND, "solver", "there is no solver '%s'",
                             options->solver ? options->solver : "(none)");
    if (device < 0 || !(options->tolerance >= 0) || options->maximum_iterations < 1)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "options", "an option is out of range");
    return TB_OK;
}

tb_status tb_problem_solve_on(const tb_problem_file *file, tb_backend_choice choice, int32_t device,
                              const tb_solve_options *options, double *reactions,
                              double *velocities, tb_problem_result *result, tb_error *error)
{
    const tb_backend *backend = NULL;
    tb_status status = check_arguments(file, options, device, result, error);
    if (status == TB_OK) status = tb_backend_find(choice, &backend, error);
    if (status != TB_OK) return status;
    if (!backend->prox_iterate)
        return tb_problem_solve(file, options, reactions, velocities, result, error);
    memset(result, 0, sizeof *result);
    card_solve s = {.problem = tb_problem_file_local(file),
                    .options = options,
                    .device = device,
                    .result = result};
    const size_t bytes = (size_t)s.problem->number_of_rows * sizeof(double);
    status = open_solve(&s, error);
    if (status == TB_OK) status = solve_on_card(&s, error);
    if (status == TB_NOT_CONVERGED || status == TB_DIVERGED) {
        status = tb_problem_solve(file, options, reactions, velocities, result, error);
    } else if (status == TB_OK) {
        strcpy(result->solver, "full-sor");
        result->residual = s.residuals.natural;
        result->on_gpu = true;
        if (reactions) memcpy(reactions, s.lambda, bytes);
        if (velocities) memcpy(velocities, s.xi, bytes);
    }
    tb_arena_destroy(&s.scratch);
    return status;
}
