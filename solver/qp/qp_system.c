/* The saddle system of a working set: factored or bordered, solved, refined. */
#include "qp/qp_internal.h"

#include <string.h>
#include <time.h>

TB_EXTERN double tb_qp_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

TB_EXTERN void tb_qp_count_solves(tb_qp_workspace *work, int32_t columns, double start)
{
    work->result->solve_seconds += tb_qp_clock() - start;
    work->result->solves += columns;
    work->result->batches++;
    work->solves_of_base += columns;
}

TB_EXTERN void tb_qp_solve_base(tb_qp_workspace *work)
{
    const tb_qp *qp = work->qp;
    tb_real *upper = work->base_solution, *lower = upper + qp->n;
    for (int32_t j = 0; j < qp->n; j++) upper[j] = -qp->f[j];
    for (int32_t k = 0; k < work->base_count; k++) lower[k] = qp->b[work->base[k]];
    const double start = tb_qp_clock();
    if (work->k0.halves)
        tb_qp_half_make(work, upper, lower, &work->base_half);
    else
        work->k0.solve(work->k0.context, 1, upper);
    tb_qp_count_solves(work, 1, start);
}

/* Drops constraint `place` of the list or, if it is an equality or none, all that can be
 * dropped; false if none can. */
static bool leave_out(tb_qp_workspace *work, int32_t place)
{
    const int32_t equalities = work->qp->equalities;
    if (work->base_count == equalities) return false;
    work->result->dropped++;
    if (place < 0) { /* not known which one: all */
        work->result->dropped += work->base_count - equalities - 1;
        work->base_count = equalities;
        return true;
    }
    if (place < equalities) place = work->base_count - 1;
    work->base_count--;
    memmove(work->base + place, work->base + place + 1,
            (size_t)(work->base_count - place) * sizeof *work->base);
    return true;
}

TB_EXTERN tb_status tb_qp_factor_at(tb_qp_workspace *work, const uint8_t *set)
{
    const tb_qp *qp = work->qp;
    tb_qp_border_clear(work);
    work->factored = false;
    work->base_count = 0;
    for (int32_t i = 0; i < qp->constraints; i++) {
        work->base_place[i] = -1;
        if (!tb_qp_is_equality(qp, i) && !set[i]) continue;
        if (work->base_count < work->most)
            work->base[work->base_count++] = i;
        else
            work->result->dropped++;
    }
    for (;;) {
        int32_t dependent = -1;
        const double start = tb_qp_clock();
        const tb_status status =
            work->k0.factor(work->k0.context, work->base, work->base_count, &dependent);
        work->result->factor_seconds += tb_qp_clock() - start;
        work->result->factorizations++;
        if (status == TB_OK) break;
        if (status != TB_FAILED_PRECONDITION || !leave_out(work, dependent)) return status;
    }
    memset(work->active, 0, (size_t)qp->constraints);
    for (int32_t k = 0; k < work->base_count; k++) {
        work->base_place[work->base[k]] = k;
        work->active[work->base[k]] = 1;
    }
    work->factored = true;
    work->solves_of_base = 0;
    tb_qp_solve_base(work);
    return TB_OK;
}

TB_EXTERN tb_status tb_qp_move_to(tb_qp_workspace *work, const uint8_t *set)
{
    if (work->options.method == TB_QP_SCHURPA && tb_qp_border_move(work, set)) {
        memcpy(work->active, set, (size_t)work->qp->constraints);
        return TB_OK;
    }
    work->result->resets += work->options.method == TB_QP_SCHURPA;
    return tb_qp_factor_at(work, set);
}

/* x and lambda from y and pi, the unknowns of the bordered system */
static bool unscramble(tb_qp_workspace *work)
{
    const tb_qp *qp = work->qp;
    if (!tb_all_finite(work->y, qp->n + work->base_count) ||
        !tb_all_finite(work->pi, work->changes))
        return false;
    memcpy(work->x, work->y, (size_t)qp->n * sizeof(tb_real));
    for (int32_t i = 0; i < qp->constraints; i++) {
        if (!work->active[i])
            work->lambda[i] = 0;
        else if (work->base_place[i] >= 0)
            work->lambda[i] = work->y[qp->n + work->base_place[i]];
        else
            work->lambda[i] = work->pi[work->slot[i]];
    }
    return true;
}

static const double *product_of_answer(tb_qp_workspace *work)
{
    const tb_qp *qp = work->qp;
    if (!work->product_known)
        tb_band_multiply_double(qp->hessian, qp->n, qp->half_bandwidth, work->x, work->product);
    work->product_known = true;
    return work->product;
}

/* Finishes an answer in halves, of an x in y: computes the base's multipliers from A0 nu = -f - H x
 * - A_added pi. Each answer takes one product with H, which the residual reuses. */
static bool finish_halves(tb_qp_workspace *work)
{
    const tb_qp *qp = work->qp;
    if (!tb_all_finite(work->y, qp->n)) return false;
    tb_band_multiply_double(qp->hessian, qp->n, qp->half_bandwidth, work->y, work->product);
    for (int32_t j = 0; j < qp->n; j++)
        work->rest[j] = (tb_real)(-(double)qp->f[j] - work->product[j]);
    for (int32_t s = 0; s < work->changes; s++) {
        const int32_t i = work->changed[s];
        for (int32_t k = qp->row_start[i]; k < qp->row_start[i + 1] && work->base_place[i] < 0; k++)
            work->rest[qp->column[k]] -= qp->value[k] * work->pi[s];
    }
    work->k0.halves->multipliers(work->k0.context, work->rest, work->y + qp->n);
    work->product_known = unscramble(work);
    return work->product_known;
}

TB_EXTERN bool tb_qp_answer(tb_qp_workspace *work)
{
    const tb_qp *qp = work->qp;
    for (int32_t s = 0; s < work->changes; s++) {
        const int32_t i = work->changed[s];
        work->pi[s] = work->base_place[i] >= 0 ? 0 : qp->b[i];
    }
    work->product_known = false;
    if (!work->k0.halves) {
        memcpy(work->y, work->base_solution, (size_t)(qp->n + work->base_count) * sizeof(tb_real));
        tb_qp_border_solve(work, work->y, work->pi);
        return unscramble(work);
    }
    tb_qp_half half = work->base_half; /* but for t, which is kept */
    half.t = work->step_half.t;
    memcpy(half.t, work->base_half.t,
           (size_t)work->k0.halves->unknowns(work->k0.context) * sizeof(tb_real));
    const double start = tb_qp_clock();
    tb_qp_half_solve(work, &half, work->y, work->pi);
    work->result->solve_seconds += tb_qp_clock() - start;
    return finish_halves(work);
}

/* The residual of the system, summed in double. A row of a constraint that was taken away has a
 * slack of its own and so none; its multiplier, which the border holds at zero, is taken for
 * that. */
static void find_residual(tb_qp_workspace *work, tb_real *lower)
{
    const tb_qp *qp = work->qp;
    const double *product = product_of_answer(work);
    for (int32_t j = 0; j < qp->n; j++) work->sum[j] = product[j] + (double)qp->f[j];
    for (int32_t i = 0; i < qp->constraints; i++)
        for (int32_t k = qp->row_start[i]; k < qp->row_start[i + 1] && work->active[i]; k++)
            work->sum[qp->column[k]] += (double)qp->value[k] * (double)work->lambda[i];
    for (int32_t j = 0; j < qp->n; j++) work->step[j] = (tb_real)-work->sum[j];
    for (int32_t k = 0; k < work->base_count; k++) {
        const int32_t i = work->base[k];
        work->step[qp->n + k] =
            work->active[i] ? (tb_real)((double)qp->b[i] - tb_qp_row_times(qp, i, work->x)) : 0;
        if (!work->active[i]) work->y[qp->n + k] = 0;
    }
    for (int32_t s = 0; s < work->changes; s++) {
        const int32_t i = work->changed[s];
        lower[s] = work->base_place[i] >= 0
                       ? 0
                       : (tb_real)((double)qp->b[i] - tb_qp_row_times(qp, i, work->x));
    }
}

TB_EXTERN bool tb_qp_refine(tb_qp_workspace *work)
{
    const int32_t n = work->qp->n;
    tb_real *lower = work->schur_workspace; /* memory for the border's part of the step */
    work->result->refinements++;
    find_residual(work, lower);
    work->product_known = false;
    const double start = tb_qp_clock();
    if (work->k0.halves) {
        tb_qp_half_make(work, work->step, work->step + n, &work->step_half);
        tb_qp_half_solve(work, &work->step_half, work->step, lower);
    } else {
        work->k0.solve(work->k0.context, 1, work->step);
        tb_qp_border_solve(work, work->step, lower);
    }
    tb_qp_count_solves(work, 1, start);
    const int32_t rows = work->k0.halves ? n : n + work->base_count;
    for (int32_t j = 0; j < rows; j++) work->y[j] += work->step[j];
    for (int32_t s = 0; s < work->changes; s++) work->pi[s] += lower[s];
    return work->k0.halves ? finish_halves(work) : unscramble(work);
}

TB_EXTERN void tb_qp_measure_answer(tb_qp_workspace *work)
{
    const double *product = product_of_answer(work);
    tb_qp_measure(work->qp, work->x, work->lambda, product, work->sum, &work->result->kkt);
}
