/* Quadratic programs of a caller, in working precision: converts numbers where needed and
 * chooses the saddle system that fits the rows. */
#include "qp/host_program.h"
#include "qp/qp.h"

#include <string.h>

typedef struct host_program {
    tb_qp qp;
    tb_k0 k0;
    tb_qp_workspace *work;
    tb_real *f, *b, *x, *lambda; /* f and b in float alone */
} host_program;

#ifdef TB_SINGLE
static const tb_real *program_numbers(tb_arena *arena, const double *from, size_t count)
{
    tb_real *to = TB_ARENA_ARRAY(arena, tb_real, count);
    for (size_t i = 0; i < count && to; i++) to[i] = (tb_real)from[i];
    return to;
}

static const tb_real *numbers_of_solve(tb_real *room, const double *from, size_t count)
{
    for (size_t i = 0; i < count; i++) room[i] = (tb_real)from[i];
    return room;
}
#else
static const tb_real *program_numbers(tb_arena *arena, const double *from, size_t count)
{
    (void)count;
    return from ? from : TB_ARENA_ARRAY(arena, tb_real, 0);
}

static const tb_real *numbers_of_solve(tb_real *room, const double *from, size_t count)
{
    (void)count;
    return from ? from : room;
}
#endif

/* AUTO tries the systems for special rows first. */
static tb_status choose_system(const tb_qp *qp, const tb_qp_options *options, tb_arena *arena,
                               tb_k0 *k0)
{
    const tb_qp_system asked = options->system;
    tb_status status = TB_UNSUPPORTED;
    if (asked == TB_QP_AUTO || asked == TB_QP_BOUNDS || asked == TB_QP_BOUNDS_BAND)
        status = tb_k0_bounds(qp, asked == TB_QP_BOUNDS_BAND, options->block, arena, k0);
    if (asked == TB_QP_FACETS || (asked == TB_QP_AUTO && status == TB_UNSUPPORTED))
        status = tb_k0_facets(qp, options->block, arena, k0);
    if (asked == TB_QP_DENSE || (asked == TB_QP_AUTO && status == TB_UNSUPPORTED))
        status = tb_k0_dense(qp, arena, k0);
    return status;
}

static tb_status open_program(const tb_qp_program *program, const tb_qp_options *options,
                              tb_arena *arena, void **result)
{
    const size_t n = (size_t)program->n, m = (size_t)program->constraints;
    const size_t entries = m > 0 ? (size_t)program->row_start[m] : 0;
    const bool single = sizeof(tb_real) == sizeof(float);
    host_program *host = TB_ARENA_ZEROED(arena, host_program, 1);
    if (!host) return TB_RESOURCE_EXHAUSTED;
    host->f = TB_ARENA_ZEROED(arena, tb_real, single ? n : 1);
    host->b = TB_ARENA_ZEROED(arena, tb_real, single ? m : 1);
    host->x = TB_ARENA_ARRAY(arena, tb_real, n);
    host->lambda = TB_ARENA_ARRAY(arena, tb_real, m);
    host->qp = (tb_qp){
        .n = program->n,
        .half_bandwidth = program->half_bandwidth,
        .hessian =
            program_numbers(arena, program->hessian, n * ((size_t)program->half_bandwidth + 1)),
        .constraints = program->constraints,
        .equalities = program->equalities,
        .row_start = program->row_start,
        .column = program->column,
        .value = program_numbers(arena, program->value, entries),
    };
    if (!host->f || !host->b || !host->x || !host->lambda || !host->qp.hessian || !host->qp.value)
        return TB_RESOURCE_EXHAUSTED;
    *result = host;
    const tb_status status = choose_system(&host->qp, options, arena, &host->k0);
    if (status != TB_OK) return status;
    return tb_qp_begin(&host->qp, &host->k0, options, arena, &host->work);
}

static tb_status solve_program(void *program, const double *f, const double *b, uint8_t *active,
                               double *x, double *lambda, tb_qp_result *result)
{
    host_program *host = program;
    const size_t n = (size_t)host->qp.n, m = (size_t)host->qp.constraints;
    host->qp.f = numbers_of_solve(host->f, f, n);
    host->qp.b = numbers_of_solve(host->b, b, m);
    const tb_status status = tb_qp_solve(host->work, active, host->x, host->lambda, result);
    if (status != TB_OK || result->status == TB_DIVERGED) tb_qp_forget(host->work);
    if (status != TB_OK) return status;
    for (size_t j = 0; j < n; j++) x[j] = (double)host->x[j];
    for (size_t i = 0; i < m; i++) lambda[i] = (double)host->lambda[i];
    return TB_OK;
}

static void forget_program(void *program)
{
    const host_program *host = program;
    tb_qp_forget(host->work);
}

#ifdef TB_SINGLE
#define HOST_CALLS tb_qp_host_calls_of_float
#else
#define HOST_CALLS tb_qp_host_calls_of_double
#endif
const tb_qp_host_calls HOST_CALLS = {open_program, solve_program, forget_program};
