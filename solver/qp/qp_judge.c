/* Residuals of the KKT conditions of a quadratic program. All sums are in double, whatever
 * precision the numbers have. */
#include "qp/qp_internal.h"

static void grow_to(double *largest, double value)
{
    /* a value that is not a number is the largest of all */
    if (!(fabs(value) <= *largest)) *largest = fabs(value);
}

/* numbers that are not finite count as the largest double */
static double qp_bounded(double value)
{
    return fabs(value) <= DBL_MAX ? value : DBL_MAX;
}

static double qp_relative(double value, double scale)
{
    return qp_bounded(scale > 0 ? value / scale : value);
}

TB_EXTERN void tb_qp_measure(const tb_qp *qp, const tb_real *x, const tb_real *lambda,
                             const double *product, double *sum, tb_kkt *kkt)
{
    *kkt = (tb_kkt){0};
    double force = 0, length = 0, multiplier = 0, row = 0;
    for (int32_t j = 0; j < qp->n; j++) {
        grow_to(&force, product[j]);
        grow_to(&force, (double)qp->f[j]);
        sum[j] = product[j] + (double)qp->f[j];
    }
    for (int32_t i = 0; i < qp->constraints; i++) {
        if (tb_qp_is_off(qp, i)) continue;
        const double b = (double)qp->b[i], l = (double)lambda[i];
        const bool equal = tb_qp_is_equality(qp, i);
        double reached = 0;
        for (int32_t k = qp->row_start[i]; k < qp->row_start[i + 1]; k++) {
            const double a = (double)qp->value[k];
            const double part = a * (double)x[qp->column[k]];
            sum[qp->column[k]] += a * l;
            reached += part;
            grow_to(&length, part);
            grow_to(&row, a);
            grow_to(&force, a * l);
        }
        grow_to(&length, b);
        grow_to(&multiplier, l);
        if (equal || reached > b || !(reached - b <= DBL_MAX)) grow_to(&kkt->primal, reached - b);
        if (equal) continue;
        if (l < 0) grow_to(&kkt->dual, l);
        grow_to(&kkt->complementarity, l * (b - reached));
    }
    double largest_f = 0;
    for (int32_t j = 0; j < qp->n; j++) {
        grow_to(&kkt->stationarity, sum[j]);
        grow_to(&largest_f, (double)qp->f[j]);
    }
    if (row > 0) grow_to(&multiplier, largest_f / row);

    const double parts[] = {qp_relative(kkt->stationarity, force), qp_relative(kkt->primal, length),
                            qp_relative(kkt->dual, multiplier),
                            qp_relative(kkt->complementarity, multiplier * length)};
    for (int k = 0; k < 4; k++) grow_to(&kkt->relative, parts[k]);
    kkt->stationarity = qp_bounded(kkt->stationarity);
    kkt->primal = qp_bounded(kkt->primal);
    kkt->dual = qp_bounded(kkt->dual);
    kkt->complementarity = qp_bounded(kkt->complementarity);
}

TB_EXTERN tb_status tb_qp_judge(const tb_qp *qp, const tb_real *x, const tb_real *lambda,
                                tb_arena *scratch, tb_kkt *kkt)
{
    const tb_arena_mark mark = tb_arena_get_mark(scratch);
    double *product = TB_ARENA_ARRAY(scratch, double, qp->n);
    double *sum = TB_ARENA_ARRAY(scratch, double, qp->n);
    if (!product || !sum) return TB_RESOURCE_EXHAUSTED;
    tb_band_multiply_double(qp->hessian, qp->n, qp->half_bandwidth, x, product);
    tb_qp_measure(qp, x, lambda, product, sum, kkt);
    tb_arena_return_to(scratch, mark);
    return TB_OK;
}
