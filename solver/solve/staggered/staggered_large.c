/* Programs of staggered projections that are large: by qp.h, as bounds with LAPACK. */
#include "qp/qp.h"
#include "solve/solve.h"
#include "solve/staggered/staggered.h"

#include <string.h>

/* A constraint for each bound that there is: x_j <= upper or -x_j <= -lower. */
struct tb_staggered_large {
    tb_qp qp;
    tb_k0 k0;
    tb_qp_workspace *work;
    tb_real *hessian, *b, *lambda;
    int32_t *row_start, *column;
    tb_real *value;
    uint8_t *active, *pins;
};

static bool is_bound(tb_real value)
{
    return tb_abs(value) <= TB_REAL_MAX;
}

tb_status tb_staggered_large_take(tb_staggered_program *part, tb_arena *arena)
{
    const size_t n = (size_t)part->n, most = 2 * n;
    tb_staggered_large *l = TB_ARENA_ZEROED(arena, tb_staggered_large, 1);
    if (!l) return TB_RESOURCE_EXHAUSTED;
    l->hessian = TB_ARENA_ARRAY(arena, tb_real, n * n);
    l->b = TB_ARENA_ZEROED(arena, tb_real, most);
    l->lambda = TB_ARENA_ZEROED(arena, tb_real, most);
    l->row_start = TB_ARENA_ZEROED(arena, int32_t, most + 1);
    l->column = TB_ARENA_ZEROED(arena, int32_t, most);
    l->value = TB_ARENA_ZEROED(arena, tb_real, most);
    l->active = TB_ARENA_ZEROED(arena, uint8_t, most);
    l->pins = TB_ARENA_ZEROED(arena, uint8_t, most);
    if (!l->hessian || !l->b || !l->lambda || !l->row_start || !l->column || !l->value ||
        !l->active || !l->pins)
        return TB_RESOURCE_EXHAUSTED;
    part->large = l;
    return TB_OK;
}

tb_real *tb_staggered_large_hessian(tb_staggered_large *large)
{
    return large->hessian;
}

tb_status tb_staggered_large_begin(tb_staggered_program *part, tb_arena *arena)
{
    tb_staggered_large *l = part->large;
    const tb_bounded *p = &part->program;
    int32_t m = 0;
    for (int32_t j = 0; j < part->n; j++)
        for (int side = 0; side < 2; side++) {
            if (!is_bound(side == 0 ? p->lower[j] : p->upper[j])) continue;
            l->column[m] = j;
            l->value[m] = side == 0 ? TB_R(-1) : TB_R(1);
            m++;
            l->row_start[m] = m;
        }
    l->qp = (tb_qp){.n = part->n,
                    .half_bandwidth = part->n - 1,
                    .hessian = l->hessian,
                    .f = p->f,
                    .constraints = m,
                    .row_start = l->row_start,
                    .column = l->column,
                    .value = l->value,
                    .b = l->b,
                    .pins = l->pins};
    const tb_qp_options options = {
        .method = TB_QP_SCHURPA,
        .maximum_iterations = 40, /* a turn that ends without progress is followed by the next */
        .maximum_solves = 500,
        .maximum_changes = 500,
        .maximum_refinements = 2,
        .tolerance = p->tolerance,
    };
    const tb_status status = tb_k0_bounds(&l->qp, false, 0, arena, &l->k0);
    return status == TB_OK ? tb_qp_begin(&l->qp, &l->k0, &options, arena, &l->work) : status;
}

/* b, pins and the set from where the program's variables are. */
static void tell_large(const tb_staggered_program *part)
{
    const tb_bounded *p = &part->program;
    tb_staggered_large *l = part->large;
    for (int32_t i = 0; i < l->qp.constraints; i++) {
        const int32_t j = l->column[i];
        const bool is_lower = l->value[i] < 0, fixed = p->lower[j] >= p->upper[j];
        l->b[i] = is_lower ? -p->lower[j] : p->upper[j];
        l->pins[i] = !fixed ? TB_PIN_NONE : is_lower ? TB_PIN_HELD : TB_PIN_OFF;
        l->active[i] = p->state[j] == (is_lower ? TB_BOUND_LOWER : TB_BOUND_UPPER);
    }
}

/* The gradient is the force of the bounds. */
static void ask_large(tb_staggered_program *part)
{
    tb_bounded *p = &part->program;
    const tb_staggered_large *l = part->large;
    memset(p->state, TB_BOUND_FREE, (size_t)part->n);
    for (int32_t j = 0; j < part->n; j++) p->gradient[j] = 0;
    p->hash = 14695981039346656037u; /* FNV-1a */
    for (int32_t i = 0; i < l->qp.constraints; i++) {
        const int32_t j = l->column[i];
        if (l->active[i]) p->state[j] = l->value[i] < 0 ? TB_BOUND_LOWER : TB_BOUND_UPPER;
        p->gradient[j] -= (double)l->value[i] * (double)l->lambda[i];
        p->hash = (p->hash ^ (uint64_t)(l->active[i] | l->pins[i] << 1)) * 1099511628211u;
    }
}

tb_status tb_staggered_large_solve(tb_staggered_program *part, const tb_solve_options *options,
                                   tb_bounded_result *result)
{
    tb_staggered_large *l = part->large;
    tb_qp_result own;
    tell_large(part);
    if (options) tb_qp_listen(l->work, options->cancelled, options->cancelled_context);
    const tb_status status = tb_qp_solve(l->work, l->active, part->program.x, l->lambda, &own);
    *result = (tb_bounded_result){.status = own.status,
                                  .iterations = own.iterations,
                                  .solves = own.solves,
                                  .factorizations = own.factorizations,
                                  .resets = own.resets,
                                  .refinements = own.refinements,
                                  .deletions = own.deletions,
                                  .largest_border = own.largest_border,
                                  .cycle = own.cycle,
                                  .relative = own.kkt.relative};
    if (status == TB_OK) ask_large(part);
    return status;
}
