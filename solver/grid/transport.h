/* Advection of a nodal field: dq/dt + v . grad q = 0, one node at a time (Litven, section 4.1).
 *
 * First order: upwind differences. Second order: upwind differences with limited slopes, in two
 * stages of Heun's method (the total variation diminishing one, Shu and Osher 1988). Both carry a
 * linear field exactly in space, so that a rigid motion leaves no strain behind. */
#ifndef TB_SOFT_TRANSPORT_H
#define TB_SOFT_TRANSPORT_H

#include "base/vector.h"

typedef enum tb_soft_advection { TB_SOFT_FIRST_ORDER, TB_SOFT_SECOND_ORDER } tb_soft_advection;

/* the smaller of two slopes of one sign, else 0 */
TB_FN double tb_soft_minmod(double a, double b)
{
    if (a * b <= 0) return 0;
    return tb_abs(a) < tb_abs(b) ? a : b;
}

/* The upwind difference of q along one axis, not divided by the spacing. q points at the node's
 * number, numbers of neighbours are `stride` away: one of them for the first order, two for the
 * second, on the side that v comes from, and one on the other side. */
TB_FN double tb_soft_upwind(const double *q, int64_t stride, double v, tb_soft_advection order)
{
    const int64_t back = v > 0 ? -stride : stride;
    const double first = q[0] - q[back];
    const double sign = v > 0 ? 1.0 : -1.0;
    if (order == TB_SOFT_FIRST_ORDER) return sign * first;
    /* the curvature with the smaller magnitude of the two that q's cell has (ENO) */
    const double behind = first - (q[back] - q[2 * back]);
    const double ahead = (q[-back] - q[0]) - first;
    return sign * (first + 0.5 * tb_soft_minmod(behind, ahead));
}

/* v . grad q for one component of q, whose array starts at q */
TB_FN double tb_soft_advection_rate(const double *q, const int64_t stride[3], const double v[3],
                                    const double spacing[3], tb_soft_advection order)
{
    double rate = 0;
    for (int a = 0; a < 3; a++)
        rate += v[a] * tb_soft_upwind(q, stride[a], v[a], order) / spacing[a];
    return rate;
}

#endif
