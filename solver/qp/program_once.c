/* Public functions of quadratic programs: defaults, checks, precision, random programs. */
#include "qp/facet_coordinates.h"
#include "backend/backend.h"
#include "base/base.h"
#include "qp/host_program.h"

#include <stdlib.h>
#include <string.h>

/* A program of a caller, held by a backend or by the processor in one precision. */
struct tb_qp_solver {
    tb_arena arena;
    tb_qp_card_program given; /* without f and b */
    tb_qp_options options;
    const tb_backend *backend; /* NULL: the processor */
    void *context;             /* the backend's */
    /* the program in facet coordinates, if the backend solves it so; else NULL */
    tb_qp_facet_coordinates *coordinates;
    const tb_qp_host_calls *calls; /* the processor's */
    void *host;
};

tb_qp_options tb_qp_defaults(void)
{
    return (tb_qp_options){
        .method = TB_QP_SCHURPA,
        .precision = TB_DOUBLE,
        .system = TB_QP_AUTO,
        .maximum_iterations = 100,
        .maximum_solves = 500,
        .maximum_changes = 500,
        .maximum_refinements = 4,
    };
}

/* ---- checks of the caller's input ---- */

static tb_status check_numbers(const char *field, const double *numbers, size_t count,
                               tb_error *error)
{
    if (!numbers && count > 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s is missing", field);
    for (size_t i = 0; i < count; i++)
        if (!isfinite(numbers[i]))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s[%zu] is %g, not finite",
                                 field, i, numbers[i]);
    return TB_OK;
}

static tb_status check_rows(const tb_qp_program *p, tb_arena *arena, tb_error *error)
{
    if (p->constraints == 0) return TB_OK;
    if (!p->row_start || !p->column)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, p->row_start ? "column" : "row_start",
                             "%s is missing", p->row_start ? "column" : "row_start");
    int32_t *seen = TB_ARENA_ZEROED(arena, int32_t, p->n);
    if (!seen) return tb_fail_memory(error, (size_t)p->n * sizeof *seen, "the checks");
    if (p->row_start[0] != 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "row_start", "row_start[0] is %d, not 0",
                             (int)p->row_start[0]);
    for (int32_t i = 0; i < p->constraints; i++) {
        if (p->row_start[i + 1] < p->row_start[i])
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "row_start",
                                 "row_start[%d] is %d, less than the one before it", (int)i + 1,
                                 (int)p->row_start[i + 1]);
        for (int32_t k = p->row_start[i]; k < p->row_start[i + 1]; k++) {
            const int32_t column = p->column[k];
            if (column < 0 || column >= p->n)
                return tb_fail_field(error, TB_INVALID_ARGUMENT, "column",
                                     "column[%d] is %d, not one of %d variables", (int)k,
                                     (int)column, (int)p->n);
            if (seen[column] == i + 1)
                return tb_fail_field(error, TB_INVALID_ARGUMENT, "column",
                                     "row %d has variable %d twice", (int)i, (int)column);
            seen[column] = i + 1;
        }
    }
    return TB_OK;
}

static tb_status check_range(const char *field, int32_t value, int32_t lower, int32_t upper,
                             tb_error *error)
{
    if (value >= lower && value <= upper) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s is %d, not within %d and %d", field,
                         (int)value, (int)lower, (int)upper);
}

static tb_status check_options(const tb_qp_options *o, tb_error *error)
{
    const struct {
        const char *field;
        int32_t value, lower, upper;
    } numbers[] = {
        {"method", (int32_t)o->method, TB_QP_PDAS, TB_QP_SCHURPA},
        {"precision", (int32_t)o->precision, TB_DOUBLE, TB_FLOAT},
        {"system", (int32_t)o->system, TB_QP_AUTO, TB_QP_FACETS},
        {"backend", (int32_t)o->backend, TB_BACKEND_CPU, TB_BACKEND_AUTO},
        {"device", o->device, 0, INT32_MAX},
        {"block", o->block, 0, 4096},
        {"maximum_iterations", o->maximum_iterations, 1, 1000000},
        {"maximum_solves", o->maximum_solves, 0, INT32_MAX},
        {"maximum_changes", o->maximum_changes, 0, 20000},
        {"maximum_refinements", o->maximum_refinements, 0, 1000},
    };
    for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
        const tb_status status = check_range(numbers[k].field, numbers[k].value, numbers[k].lower,
                                             numbers[k].upper, error);
        if (status != TB_OK) return status;
    }
    if (!(o->tolerance >= 0 && o->tie >= 0))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, o->tolerance >= 0 ? "tie" : "tolerance",
                             "%s is %g, not a number from 0 on",
                             o->tolerance >= 0 ? "tie" : "tolerance",
                             o->tolerance >= 0 ? o->tie : o->tolerance);
    return TB_OK;
}

/* the corner of the last columns lies outside of the matrix */
static tb_status check_hessian(const tb_qp_program *p, tb_error *error)
{
    if (!p->hessian)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "hessian", "hessian is missing");
    for (int64_t j = 0; j < p->n; j++) {
        const double *column = p->hessian + j * ((int64_t)p->half_bandwidth + 1);
        for (int64_t i = j; i < p->n && i - j <= p->half_bandwidth; i++)
            if (!isfinite(column[i - j]))
                return tb_fail_field(error, TB_INVALID_ARGUMENT, "hessian",
                                     "element (%d, %d) of the hessian is %g, not finite", (int)i,
                                     (int)j, column[i - j]);
    }
    return TB_OK;
}

static tb_status check_program(const tb_qp_program *p, bool on_card, tb_arena *arena,
                               tb_error *error)
{
    tb_status status = check_range("n", p->n, 1, INT32_MAX / 2, error);
    if (status == TB_OK)
        status = check_range("half_bandwidth", p->half_bandwidth, 0, p->n - 1, error);
    if (status == TB_OK)
        status = check_range("constraints", p->constraints, 0, INT32_MAX / 2, error);
    if (status == TB_OK)
        status = check_range("equalities", p->equalities, 0,
                             p->constraints < p->n ? p->constraints : p->n, error);
    if (status == TB_OK) status = check_rows(p, arena, error);
    if (status != TB_OK) return status;
    const size_t n = (size_t)p->n, m = (size_t)p->constraints;
    if (!on_card) status = check_hessian(p, error);
    if (status == TB_OK) status = check_numbers("f", p->f, n, error);
    if (status == TB_OK) status = check_numbers("b", p->b, m, error);
    if (status == TB_OK)
        status = check_numbers("value", p->value, m > 0 ? (size_t)p->row_start[m] : 0, error);
    return status;
}

/* ---- solving ---- */

static tb_status fail_open(const tb_qp_solver *solver, tb_status status, tb_error *error)
{
    if (status == TB_OK) return TB_OK;
    if (status == TB_UNSUPPORTED)
        return tb_fail_field(error, status, "system",
                             "a row is not of the kind that this system takes");
    return tb_fail(error, status, "a program of %d variables and %d constraints needs more memory",
                   (int)solver->given.program.n, (int)solver->given.program.constraints);
}

static tb_status open_here(tb_qp_solver *solver, tb_error *error)
{
    const bool single = solver->options.precision == TB_FLOAT;
    if (!solver->given.program.hessian)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "hessian",
                             "the hessian lies on a card, and the program is solved here");
    solver->calls = single ? &tb_qp_host_calls_of_float : &tb_qp_host_calls_of_double;
    const tb_status status = solver->calls->open(&solver->given.program, &solver->options,
                                                 &solver->arena, &solver->host);
    return fail_open(solver, status, error);
}

/* UNSUPPORTED where the backend does not take such rows, even turned. */
static tb_status open_there(tb_qp_solver *solver, const tb_backend *backend, tb_error *error)
{
    const tb_qp_program *program = &solver->given.program;
    const tb_qp_system system = solver->options.system;
    bool bounds = system == TB_QP_AUTO || system == TB_QP_BOUNDS;
    for (int32_t i = 0; i < program->constraints && bounds; i++)
        bounds = program->row_start[i + 1] - program->row_start[i] == 1;
    if (!bounds) {
        tb_status status = TB_UNSUPPORTED;
        if (system == TB_QP_AUTO || system == TB_QP_FACETS)
            status = tb_qp_to_facet_coordinates(program, &solver->arena, &solver->coordinates);
        if (status == TB_UNSUPPORTED)
            return tb_fail_field(error, status, "system",
                                 "backend '%s' takes bounds on single variables, and facets of "
                                 "pairs",
                                 backend->name);
        if (status != TB_OK) return fail_open(solver, status, error);
        program = &solver->coordinates->turned.program;
    }
    const tb_status status =
        backend->program_open(program, &solver->options, &solver->context, error);
    if (status == TB_OK) solver->backend = backend;
    return status;
}

/* A backend that was asked for and takes programs, or the processor. */
static tb_status open_somewhere(tb_qp_solver *solver, tb_error *error)
{
    const tb_backend_choice choice = solver->options.backend;
    const tb_backend *backend = NULL;
    tb_status status = tb_backend_find(choice, &backend, error);
    if (status != TB_OK) return status;
    if (backend->program_open != NULL && backend != &tb_backend_cpu) {
        status = open_there(solver, backend, error);
        if (status != TB_UNSUPPORTED || choice == TB_BACKEND_GPU) return status;
        solver->coordinates = NULL;
    }
    if (choice == TB_BACKEND_GPU)
        return tb_fail_field(error, TB_UNSUPPORTED, "backend", "backend '%s' takes no programs",
                             backend->name);
    return open_here(solver, error);
}

static tb_status fail_missing(const char *missing, tb_error *error)
{
    if (!missing) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, missing, "%s is missing", missing);
}

/* A NULL band: the Hessian is the program's. */
static tb_status open_solver(const tb_qp_card_program *given, const tb_qp_options *options,
                             tb_qp_solver **result, tb_error *error)
{
    tb_arena checks;
    *result = NULL;
    tb_arena_init(&checks, 0);
    tb_status status = check_options(options, error);
    if (status == TB_OK)
        status = check_program(&given->program, given->band != NULL, &checks, error);
    tb_arena_destroy(&checks);
    if (status != TB_OK) return status;
    tb_qp_solver *solver = calloc(1, sizeof *solver);
    if (!solver) return tb_fail_memory(error, sizeof *solver, "a solver");
    tb_arena_init(&solver->arena, 0);
    solver->given = *given;
    solver->given.program.f = solver->given.program.b = NULL;
    solver->options = *options;
    status = open_somewhere(solver, error);
    if (status == TB_OK)
        *result = solver;
    else
        tb_qp_solver_close(solver);
    return status;
}

tb_status tb_qp_solver_open(const tb_qp_program *program, const tb_qp_options *options,
                            tb_qp_solver **result, tb_error *error)
{
    const char *missing = !program ? "program" : !options ? "options" : !result ? "solver" : NULL;
    if (missing) return fail_missing(missing, error);
    const tb_qp_card_program given = {.program = *program};
    return open_solver(&given, options, result, error);
}

tb_status tb_qp_solver_open_on_card(const tb_qp_card_program *program, const tb_qp_options *options,
                                    tb_qp_solver **result, tb_error *error)
{
    return open_solver(program, options, result, error);
}

static tb_status solve_there(tb_qp_solver *solver, const double *f, const double *b,
                             uint8_t *active, double *x, double *lambda, tb_qp_result *result,
                             tb_error *error)
{
    const tb_backend *backend = solver->backend;
    if (!solver->coordinates)
        return backend->program_solve(solver->context, f, b, active, x, lambda, result, error);
    tb_qp_facet_force(solver->coordinates, f);
    tb_status status = backend->program_solve(solver->context, solver->coordinates->f, b, active, x,
                                              lambda, result, error);
    if (status != TB_OK) return status;
    tb_qp_from_facet_coordinates(solver->coordinates, x);
    if (!solver->given.program.hessian)
        return TB_OK; /* the residual is that in the rows' coordinates */
    return tb_qp_facet_judge(&solver->given.program, f, b, x, lambda, &solver->arena, &result->kkt,
                             error);
}

tb_status tb_qp_solver_solve(tb_qp_solver *solver, const double *f, const double *b,
                             uint8_t *active, double *x, double *lambda, tb_qp_result *result,
                             tb_error *error)
{
    if (!solver || !result) return fail_missing(!solver ? "solver" : "result", error);
    const tb_qp_program *p = &solver->given.program;
    const char *missing = !active && p->constraints   ? "active"
                          : !x                        ? "x"
                          : !lambda && p->constraints ? "lambda"
                                                      : NULL;
    if (missing) return fail_missing(missing, error);
    tb_status status = check_numbers("f", f, (size_t)p->n, error);
    if (status == TB_OK) status = check_numbers("b", b, (size_t)p->constraints, error);
    if (status != TB_OK) return status;
    if (solver->backend) return solve_there(solver, f, b, active, x, lambda, result, error);
    status = solver->calls->solve(solver->host, f, b, active, x, lambda, result);
    if (status == TB_FAILED_PRECONDITION)
        return tb_fail(error, status,
                       "the Hessian with the equalities alone makes a singular system");
    return fail_open(solver, status, error);
}

void tb_qp_solver_forget(tb_qp_solver *solver)
{
    if (solver->backend) solver->backend->program_forget(solver->context);
    if (solver->host) solver->calls->forget(solver->host);
}

void tb_qp_solver_close(tb_qp_solver *solver)
{
    if (!solver) return;
    if (solver->backend) solver->backend->program_close(solver->context);
    tb_arena_destroy(&solver->arena);
    free(solver);
}

tb_status tb_qp_program_solve(const tb_qp_program *program, const tb_qp_options *options,
                              uint8_t *active, double *x, double *lambda, tb_qp_result *result,
                              tb_error *error)
{
    tb_qp_solver *solver = NULL;
    tb_status status = tb_qp_solver_open(program, options, &solver, error);
    if (status == TB_OK)
        status =
            tb_qp_solver_solve(solver, program->f, program->b, active, x, lambda, result, error);
    tb_qp_solver_close(solver);
    return status;
}

/* ---- random programs ---- */

/* with it, SCHURPA needs about as many solves as in the table (16 to 78; there 15 to 77) */
static const double RANDOM_SHIFT = 0.1;

tb_status tb_qp_random(int32_t n, int32_t half_bandwidth, uint64_t seed, double *hessian, double *f,
                       tb_error *error)
{
    tb_status status = check_range("n", n, 1, INT32_MAX / 2, error);
    if (status == TB_OK) status = check_range("half_bandwidth", half_bandwidth, 0, n - 1, error);
    if (status != TB_OK) return status;
    if (!hessian || !f)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, hessian ? "f" : "hessian", "%s is missing",
                             hessian ? "f" : "hessian");
    tb_arena arena;
    tb_arena_init(&arena, 0);
    const int64_t stride = (int64_t)half_bandwidth + 1;
    double *column = TB_ARENA_ARRAY(&arena, double, stride);
    if (!column) {
        status = tb_fail_memory(error, (size_t)stride * sizeof *column, "a column");
        goto done;
    }

    /* H is a sum of a square for every column of G, each with numbers of its own */
    memset(hessian, 0, (size_t)n * (size_t)stride * sizeof *hessian);
    const double scale = 1 / (double)stride;
    for (int32_t k = 0; k < n; k++) {
        tb_random random = tb_random_stream(seed, (uint64_t)k + 1);
        const int32_t length = n - k < (int32_t)stride ? n - k : (int32_t)stride;
        for (int32_t i = 0; i < length; i++) column[i] = tb_random_normal(&random);
        for (int32_t j = 0; j < length; j++) {
            double *to = hessian + (k + j) * stride;
            const double factor = column[j] * scale;
            for (int32_t i = j; i < length; i++) to[i - j] += factor * column[i];
        }
    }
    tb_random random = tb_random_stream(seed, 0);
    for (int32_t j = 0; j < n; j++) {
        hessian[j * stride] += RANDOM_SHIFT;
        f[j] = tb_random_normal(&random);
    }
done:
    tb_arena_destroy(&arena);
    return status;
}
