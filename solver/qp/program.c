/* A quadratic program from outside, in working precision: numbers are converted where they must be,
 * and the saddle systems go to whoever is made for their rows. */
#include "qp/qp.h"

#include <string.h>

#define tb_qp_held TB_SYMBOL(tb_qp_held)
typedef struct tb_qp_held {
    tb_qp qp;
    tb_k0 k0;
    tb_qp_work *work;
    tb_real *f, *b, *x, *lambda; /* f and b in float alone */
} tb_qp_held;

#define tb_qp_held_open TB_SYMBOL(tb_qp_held_open)
tb_status tb_qp_held_open(const tb_qp_program *program, const tb_qp_options *options,
                          tb_arena *arena, tb_qp_held **held);
#define tb_qp_held_solve TB_SYMBOL(tb_qp_held_solve)
tb_status tb_qp_held_solve(tb_qp_held *held, const double *f, const double *b, uint8_t *active,
                           double *x, double *lambda, tb_qp_result *result);
#define tb_qp_held_forget TB_SYMBOL(tb_qp_held_forget)
void tb_qp_held_forget(tb_qp_held *held);

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

tb_status tb_qp_held_open(const tb_qp_program *program, const tb_qp_options *options,
                          tb_arena *arena, tb_qp_held **result)
{
    const size_t n = (size_t)program->n, m = (size_t)program->constraints;
    const size_t entries = m > 0 ? (size_t)program->row_start[m] : 0;
    const bool single = sizeof(tb_real) == sizeof(float);
    tb_qp_held *held = TB_ARENA_ZEROED(arena, tb_qp_held, 1);
    if (!held) return TB_RESOURCE_EXHAUSTED;
    held->f = TB_ARENA_ZEROED(arena, tb_real, single ? n : 1);
    held->b = TB_ARENA_ZEROED(arena, tb_real, single ? m : 1);
    held->x = TB_ARENA_ARRAY(arena, tb_real, n);
    held->lambda = TB_ARENA_ARRAY(arena, tb_real, m);
    held->qp = (tb_qp){
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
    if (!held->f || !held->b || !held->x || !held->lambda || !held->qp.hessian || !held->qp.value)
        return TB_RESOURCE_EXHAUSTED;
    *result = held;
    const tb_status status = choose_system(&held->qp, options, arena, &held->k0);
    if (status != TB_OK) return status;
    return tb_qp_begin(&held->qp, &held->k0, options, arena, &held->work);
}

tb_status tb_qp_held_solve(tb_qp_held *held, const double *f, const double *b, uint8_t *active,
                           double *x, double *lambda, tb_qp_result *result)
{
    const size_t n = (size_t)held->qp.n, m = (size_t)held->qp.constraints;
    held->qp.f = numbers_of_solve(held->f, f, n);
    held->qp.b = numbers_of_solve(held->b, b, m);
    const tb_status status = tb_qp_solve(held->work, active, held->x, held->lambda, result);
    if (status != TB_OK || result->status == TB_DIVERGED) tb_qp_forget(held->work);
    if (status != TB_OK) return status;
    for (size_t j = 0; j < n; j++) x[j] = (double)held->x[j];
    for (size_t i = 0; i < m; i++) lambda[i] = (double)held->lambda[i];
    return TB_OK;
}

void tb_qp_held_forget(tb_qp_held *held)
{
    tb_qp_forget(held->work);
}
