/* Residuals of one block's impulses, in double for any working precision, and the contact's
 * status: open, stick or slip. */
#ifndef TB_JUDGE_H
#define TB_JUDGE_H

#include "contact/contact.h"

#include <math.h>

/* fmax without a call: if one argument is NaN, the result is the other */
TB_FN double tb_larger(double known, double other)
{
    return other > known || known != known ? other : known;
}

/* Normal part of the nearest point of the cone { |t| <= mu n } to a point outside of it, whose normal
 * part is `normal` and whose tangential part has length `slip`; 0: the nearest point is the tip. */
TB_FN double tb_cone_rim(double normal, double slip, double mu)
{
    const double reach = normal + mu * slip;
    return reach > 0 ? reach / (1 + mu * mu) : 0;
}

/* Nearest point of the second-order cone { |x_T| <= mu x_N } of De Saxcé's form, in place; x = (normal,
 * tangents), `rows` 2 or 3. mu = 0 leaves the normal's ray. In double in the float build too, as all
 * residuals are. */
TB_FN void tb_project_cone(double *x, int rows, double mu)
{
    const double slip = rows == 2 ? fabs(x[1]) : sqrt(x[1] * x[1] + x[2] * x[2]);
    if (slip <= mu * x[0]) return;
    const double normal = tb_cone_rim(x[0], slip, mu);
    x[0] = normal;
    for (int i = 1; i < rows; i++) x[i] = normal > 0 ? x[i] * (mu * normal / slip) : 0;
}

/* one block's natural map at rho = 1: f = lambda - projection(lambda - xi...),
 * squared and summed */
TB_FN double tb_block_natural(const tb_block *block, const double *lambda, const double *xi)
{
    double x[TB_BLOCK_ROWS];
    const int32_t n = block->rows;
    for (int32_t i = 0; i < n; i++) {
        x[i] = lambda[i] - xi[i];
        if (isnan(x[i])) return NAN; /* a projection could hide a NaN */
    }
    switch (block->law) {
    case TB_LAW_UNILATERAL: x[0] = fmax(x[0], 0.0); break;
    case TB_LAW_PLANAR:
        x[0] -= (double)block->mu * fabs(xi[1]);
        tb_project_cone(x, 2, (double)block->mu);
        break;
    case TB_LAW_COULOMB:
        x[0] -= (double)block->mu * sqrt(xi[1] * xi[1] + xi[2] * xi[2]);
        tb_project_cone(x, 3, (double)block->mu);
        break;
    case TB_LAW_BOX: x[0] = fmin(fmax(x[0], (double)block->lower), (double)block->upper); break;
    case TB_LAW_SPIN:
    case TB_LAW_ROLLING: {
        /* the projection's own error, an ulp of the impulse, is far below any tolerance of these
         * laws */
        tb_real y[TB_BLOCK_ROWS];
        for (int32_t i = 0; i < n; i++) y[i] = TB_R(x[i]);
        tb_prox_block(block->law, n, block->mu, block->lower, block->upper, y);
        for (int32_t i = 0; i < n; i++) x[i] = (double)y[i];
        break;
    }
    default: break;
    }
    double sum = 0;
    TB_ROLLED
    for (int32_t i = 0; i < n; i++) sum += (lambda[i] - x[i]) * (lambda[i] - x[i]);
    return sum;
}

/* excess of the block's friction over its set, N s */
TB_FN double tb_block_cone_excess(const tb_block *block, const double *lambda)
{
    const double mu = (double)block->mu, normal = tb_larger(0, lambda[0]);
    switch (block->law) {
    case TB_LAW_UNILATERAL: return tb_larger(0, -lambda[0]);
    case TB_LAW_PLANAR: return tb_larger(fabs(lambda[1]) - mu * normal, -lambda[0]);
    case TB_LAW_COULOMB: {
        const double friction = sqrt(lambda[1] * lambda[1] + lambda[2] * lambda[2]);
        return tb_larger(friction - mu * normal, -lambda[0]);
    }
    case TB_LAW_SPIN:
    case TB_LAW_ROLLING: {
        const double friction =
            sqrt(lambda[1] * lambda[1] + lambda[2] * lambda[2] + 2.25 * lambda[3] * lambda[3]);
        double excess = tb_larger(friction - mu * normal, -lambda[0]);
        if (block->law == TB_LAW_ROLLING)
            excess = tb_larger(excess, hypot(lambda[4], lambda[5]) - normal);
        return excess;
    }
    case TB_LAW_BOX:
        return tb_larger((double)block->lower - lambda[0], lambda[0] - (double)block->upper);
    default: return 0;
    }
}

TB_FN double tb_residual_known(double x)
{
    return isfinite(x) ? x : TB_RESIDUAL_UNKNOWN;
}

/* OPEN, STICK or SLIP from the impulses: friction on the rim to within rounding is slip, because
 * a stuck contact lies farther inside. */
TB_FN uint8_t tb_block_status(const tb_block *block, const tb_real *l)
{
    const tb_real rim = 1 - 16 * TB_REAL_EPSILON;
    switch (block->law) {
    case TB_LAW_BILATERAL: return TB_CONTACT_STICK;
    case TB_LAW_BOX:
        return l[0] <= block->lower || l[0] >= block->upper ? TB_CONTACT_SLIP : TB_CONTACT_STICK;
    case TB_LAW_UNILATERAL: return l[0] > 0 ? TB_CONTACT_SLIP : TB_CONTACT_OPEN;
    default: break;
    }
    if (!(l[0] > 0)) return TB_CONTACT_OPEN;
    if (block->law == TB_LAW_PLANAR)
        return tb_abs(l[1]) >= rim * block->mu * l[0] ? TB_CONTACT_SLIP : TB_CONTACT_STICK;
    tb_real extent = tb_hypot2(l[1], l[2]);
    if (block->law != TB_LAW_COULOMB) extent = tb_hypot2(extent, l[3] * TB_R(1.5));
    return extent >= rim * block->mu * l[0] ? TB_CONTACT_SLIP : TB_CONTACT_STICK;
}

#endif
