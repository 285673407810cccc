/* The border of a K0 that solves in halves (qp.h).
 *
 * A change of a constraint is a right-hand side u = (a; e): a row a that is added, or a position e
 * of the base whose multiplier goes. With y = Y e and t = L^-1 Z' (a - H y), the product of two of
 * them is
 *
 *     u_r' K0^-1 u_s = t_r' t_s + a_r' y_s + a_s' y_r - y_r' H y_s,
 *
 * so the Schur matrix is a Gram matrix of forward halves with a few more terms, and one backward
 * half of the combined columns gives the answer:
 *
 *     x = y_0 - sum pi_s y_s + Z L'^-1 (t_0 - sum pi_s t_s)
 *
 * Against whole columns that saves every other sweep through the factor, and H's products with
 * them. */
#include "qp/qp_internal.h"

#include <string.h>

/* column `place` of Y: its entries */
typedef struct halves_shift {
    int32_t count, variable[2];
    tb_real number[2];
} halves_shift;

/* y of a change; none for a row that is added */
static halves_shift shift_of(const tb_qp_workspace *work, int32_t constraint)
{
    halves_shift shift = {0};
    const int32_t place = work->base_place[constraint];
    if (place >= 0)
        shift.count =
            work->k0.halves->column(work->k0.context, place, shift.variable, shift.number);
    return shift;
}

static tb_real shift_times(const halves_shift *shift, const tb_real *z)
{
    tb_real sum = 0;
    for (int32_t k = 0; k < shift->count; k++) sum += shift->number[k] * z[shift->variable[k]];
    return sum;
}

/* a' y for a row */
static tb_real row_times_shift(const tb_qp *qp, int32_t row, const halves_shift *shift)
{
    tb_real sum = 0;
    for (int32_t k = qp->row_start[row]; k < qp->row_start[row + 1]; k++)
        for (int32_t q = 0; q < shift->count; q++)
            if (shift->variable[q] == qp->column[k]) sum += qp->value[k] * shift->number[q];
    return sum;
}

/* terms of a product of two changes beside their t */
static tb_real tie_of_changes(const tb_qp_workspace *work, int32_t r, int32_t s)
{
    const tb_qp *qp = work->qp;
    const halves_shift one = shift_of(work, r), other = shift_of(work, s);
    if (one.count == 0) return row_times_shift(qp, r, &other);
    if (other.count == 0) return row_times_shift(qp, s, &one);
    tb_real sum = 0;
    for (int32_t k = 0; k < one.count; k++)
        for (int32_t q = 0; q < other.count; q++)
            sum -= one.number[k] * other.number[q] *
                   tb_band_element(qp->hessian, qp->half_bandwidth, one.variable[k],
                                   other.variable[q]);
    return sum;
}

TB_EXTERN void tb_qp_half_make(tb_qp_workspace *work, const tb_real *a, const tb_real *e,
                               tb_qp_half *half)
{
    const tb_qp *qp = work->qp;
    const tb_k0 *k0 = &work->k0;
    k0->halves->particular(k0->context, e, half->particular);
    tb_band_multiply_sparse(qp->hessian, qp->n, qp->half_bandwidth, half->particular, work->rest);
    for (int32_t j = 0; j < qp->n; j++) half->pull[j] = a[j] - work->rest[j];
    k0->halves->forward(k0->context, 1, half->pull, half->t);
}

/* a - H y of a change */
static void fill_force(const tb_qp_workspace *work, int32_t constraint, tb_real *force)
{
    const tb_qp *qp = work->qp;
    const halves_shift shift = shift_of(work, constraint);
    memset(force, 0, (size_t)qp->n * sizeof *force);
    for (int32_t k = 0; k < shift.count; k++)
        tb_band_add_column(qp->hessian, qp->n, qp->half_bandwidth, shift.variable[k],
                           -shift.number[k], force);
    if (shift.count > 0) return;
    for (int32_t k = qp->row_start[constraint]; k < qp->row_start[constraint + 1]; k++)
        force[qp->column[k]] = qp->value[k];
}

TB_EXTERN void tb_qp_half_columns(tb_qp_workspace *work, int32_t known)
{
    const int64_t n = work->qp->n, limit = work->limit;
    const int32_t unknowns = work->k0.halves->unknowns(work->k0.context);
    for (int32_t first = known; first < work->changes; first += QP_FORCES) {
        const int32_t left = work->changes - first, count = left < QP_FORCES ? left : QP_FORCES;
        for (int32_t s = 0; s < count; s++)
            fill_force(work, work->changed[first + s], work->forces + s * n);
        work->k0.halves->forward(work->k0.context, count, work->forces,
                                 work->border + (int64_t)first * unknowns);
    }
    for (int32_t s = known; s < work->changes; s++)
        for (int32_t r = 0; r <= s; r++) {
            const tb_real dot = tb_band_dot(work->border + (int64_t)r * unknowns,
                                            work->border + (int64_t)s * unknowns, unknowns);
            work->schur[s * limit + r] = work->schur[r * limit + s] =
                -(dot + tie_of_changes(work, work->changed[r], work->changed[s]));
        }
}

TB_EXTERN void tb_qp_half_solve(tb_qp_workspace *work, const tb_qp_half *half, tb_real *x,
                                tb_real *pi)
{
    const tb_k0 *k0 = &work->k0;
    const int32_t unknowns = k0->halves->unknowns(k0->context);
    for (int32_t s = 0; s < work->changes; s++) {
        const halves_shift shift = shift_of(work, work->changed[s]);
        pi[s] -= tb_band_dot(work->border + (int64_t)s * unknowns, half->t, unknowns);
        pi[s] -= shift.count > 0
                     ? shift_times(&shift, half->pull)
                     : (tb_real)tb_qp_row_times(work->qp, work->changed[s], half->particular);
    }
    tb_qp_border_unknowns(work, pi);
    memcpy(x, half->particular, (size_t)work->qp->n * sizeof *x);
    for (int32_t s = 0; s < work->changes; s++) {
        const halves_shift shift = shift_of(work, work->changed[s]);
        const tb_real *column = work->border + (int64_t)s * unknowns;
        for (int32_t k = 0; k < shift.count; k++) x[shift.variable[k]] -= pi[s] * shift.number[k];
        for (int32_t i = 0; i < unknowns; i++) half->t[i] -= column[i] * pi[s];
    }
    k0->halves->backward(k0->context, half->t, x);
}
