/* A quadratic program from outside, in working precision: numbers are converted where they must be,
 * and the saddle systems go to whoever is made for their rows. */
#include "solve/qp.h"

#include <string.h>

#define tb_qp_program_run TB_SYMBOL(tb_qp_program_run)
tb_status tb_qp_program_run(const tb_qp_program *program, const tb_qp_options *options,
                            tb_arena *arena, uint8_t *active, double *x, double *lambda,
                            tb_qp_result *result);

#ifdef TB_SINGLE
static const tb_real *program_numbers(tb_arena *arena, const double *from, size_t count)
{
    tb_real *to = TB_ARENA_ARRAY(arena, tb_real, count);
    for (size_t i = 0; i < count && to; i++) to[i] = (tb_real)from[i];
    return to;
}
#else
static const tb_real *program_numbers(tb_arena *arena, const double *from, size_t count)
{
    (void)count;
    return from ? from : TB_ARENA_ARRAY(arena, tb_real, 0);
}
#endif

/* AUTO asks those who take only their own kind of rows first. */
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

tb_status tb_qp_program_run(const tb_qp_program *program, const tb_qp_options *options,
                            tb_arena *arena, uint8_t *active, double *x, double *lambda,
                            tb_qp_result *result)
{
    const size_t n = (size_t)program->n, m = (size_t)program->constraints;
    const size_t entries = m > 0 ? (size_t)program->row_start[m] : 0;
    const tb_qp qp = {
        .n = program->n,
        .half_bandwidth = program->half_bandwidth,
        .hessian =
            program_numbers(arena, program->hessian, n * ((size_t)program->half_bandwidth + 1)),
        .f = program_numbers(arena, program->f, n),
        .constraints = program->constraints,
        .equalities = program->equalities,
        .row_start = program->row_start,
        .column = program->column,
        .value = program_numbers(arena, program->value, entries),
        .b = program_numbers(arena, program->b, m),
    };
    tb_real *own_x = TB_ARENA_ARRAY(arena, tb_real, n);
    tb_real *own_lambda = TB_ARENA_ARRAY(arena, tb_real, m);
    if (!qp.hessian || !qp.f || !qp.value || !qp.b || !own_x || !own_lambda)
        return TB_RESOURCE_EXHAUSTED;
    tb_k0 k0 = {0};
    tb_qp_work *work = NULL;
    tb_status status = choose_system(&qp, options, arena, &k0);
    if (status == TB_OK) status = tb_qp_begin(&qp, &k0, options, arena, &work);
    if (status == TB_OK) status = tb_qp_solve(work, active, own_x, own_lambda, result);
    if (status != TB_OK) return status;
    for (size_t j = 0; j < n; j++) x[j] = (double)own_x[j];
    for (size_t i = 0; i < m; i++) lambda[i] = (double)own_lambda[i];
    return TB_OK;
}
