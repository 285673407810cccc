/* Exact solution of one contact: the 3x3 Coulomb problem
 *
 *     u = W lambda + b,     K contains lambda,  orthogonal to  u + mu |u_T| e_N  in K*.
 *
 * Three cases. Open: lambda = 0 if b_N >= 0. Stick: u = 0 and lambda in the cone. Slip: u_N = 0 and
 * friction on the rim, opposite to the slip velocity, u_T = -alpha lambda_T with alpha > 0. With
 * the normal row eliminated,
 *
 *     lambda_T(alpha) = -inverse(A + alpha 1) beta,          A = W_TT - W_TN W_NT / W_NN,
 *     lambda_N(alpha) = -(b_N + W_NT lambda_T) / W_NN,    beta = b_T - W_TN b_N / W_NN,
 *
 * and the rim condition |lambda_T| = mu lambda_N is one equation in alpha (the quartic of Bonnefon
 * and Daviet, RR-7923, in secular form). psi = mu lambda_N / |lambda_T| - 1 is nearly linear in
 * alpha, so Newton's method takes a few steps; a bracket makes it converge, also for W that is not
 * symmetric. If the equation fails (W singular or indefinite), damped projections replace it.
 *
 * Floor on alpha: a few ulps of W, so that a singular A gives a finite stick. */
#ifndef TB_LOCAL_SOLVE_H
#define TB_LOCAL_SOLVE_H

#include "contact/prox.h"

typedef struct tb_local_contact {
    tb_real inverse_normal; /* 1 / W_NN */
    tb_real nt[2], tn[2];   /* W_NT, W_TN */
    tb_real a[4];           /* Schur complement A, row-major */
    tb_real floor;          /* smallest alpha */
    int valid;              /* 0: W_NN <= 0 or not finite; use projections */
} tb_local_contact;

/* Data shared by the three cases, from W (row-major 3x3) and 1 / W_NN (ignored if W_NN <= 0). */
TB_FN tb_local_contact tb_local_prepare(const tb_real w[9], tb_real inverse_normal)
{
    tb_local_contact local;
    const tb_real size = w[0] + tb_abs(w[4]) + tb_abs(w[8]);
    local.valid = w[0] > 0 && size <= TB_REAL_MAX && inverse_normal <= TB_REAL_MAX;
    local.inverse_normal = inverse_normal;
    local.nt[0] = w[1];
    local.nt[1] = w[2];
    local.tn[0] = w[3];
    local.tn[1] = w[6];
    local.a[0] = w[4] - w[3] * w[1] * inverse_normal;
    local.a[1] = w[5] - w[3] * w[2] * inverse_normal;
    local.a[2] = w[7] - w[6] * w[1] * inverse_normal;
    local.a[3] = w[8] - w[6] * w[2] * inverse_normal;
    local.floor = 4 * TB_REAL_EPSILON * size;
    return local;
}

/* lambda(alpha), and the slope of psi; returns psi, or -1 if A + alpha 1 is not definite. */
TB_FN tb_real tb_local_rim(const tb_local_contact *local, const tb_real beta[2], tb_real b_normal,
                           tb_real mu, tb_real alpha, tb_real lambda[3], tb_real *slope)
{
    const tb_real a = local->a[0] + alpha, d = local->a[3] + alpha;
    const tb_real determinant = a * d - local->a[1] * local->a[2];
    *slope = 0;
    if (!(determinant > 0) || !(a > 0)) return -1;
    const tb_real inverse = 1 / determinant;
    const tb_real x = -(d * beta[0] - local->a[1] * beta[1]) * inverse;
    const tb_real y = -(a * beta[1] - local->a[2] * beta[0]) * inverse;
    const tb_real normal =
        -(b_normal + local->nt[0] * x + local->nt[1] * y) * local->inverse_normal;
    lambda[0] = normal;
    lambda[1] = x;
    lambda[2] = y;
    const tb_real length2 = x * x + y * y;
    if (!(length2 > 0)) return normal >= 0 ? TB_REAL_MAX : -1;
    const tb_real over = 1 / tb_sqrt(length2);

    /* d lambda_T / d alpha = -inverse(A + alpha 1) lambda_T */
    const tb_real dx = -(d * x - local->a[1] * y) * inverse;
    const tb_real dy = -(a * y - local->a[2] * x) * inverse;
    const tb_real dn = -(local->nt[0] * dx + local->nt[1] * dy) * local->inverse_normal;
    *slope = mu * over * (dn - normal * (x * dx + y * dy) * over * over);
    return mu * normal * over - 1;
}

/* The impulse that gives zero contact velocity; true if the impulse lies in the cone. */
TB_FN int tb_local_stick(const tb_local_contact *local, const tb_real beta[2], tb_real b_normal,
                         tb_real mu, tb_real lambda[3])
{
    const tb_real a = local->a[0] + local->floor, d = local->a[3] + local->floor;
    const tb_real determinant = a * d - local->a[1] * local->a[2];
    if (!(determinant > 0) || !(a > 0)) return 0;
    const tb_real inverse = 1 / determinant;
    const tb_real x = -(d * beta[0] - local->a[1] * beta[1]) * inverse;
    const tb_real y = -(a * beta[1] - local->a[2] * beta[0]) * inverse;
    lambda[0] = -(b_normal + local->nt[0] * x + local->nt[1] * y) * local->inverse_normal;
    lambda[1] = x;
    lambda[2] = y;
    const tb_real radius = mu * lambda[0];
    return radius >= 0 && x * x + y * y <= radius * radius;
}

/* Damped projections lambda <- prox(lambda - r (W lambda + b)), normal first, for matrices
 * without a solvable rim equation. Leaves lambda in the cone for any W. */
TB_FN_LARGE void tb_local_project(const tb_real w[9], const tb_real b[3], tb_real mu,
                                  tb_real lambda[3])
{
    tb_real row = 0;
    for (int i = 1; i < 3; i++) row = tb_max(row, tb_abs(w[3 * i + 1]) + tb_abs(w[3 * i + 2]));
    const tb_real rn = w[0] > 0 ? 1 / w[0] : 0, rt = row > 0 ? 1 / row : 0;
    for (int k = 0; k < 60; k++) {
        const tb_real old[3] = {lambda[0], lambda[1], lambda[2]};
        lambda[0] -= rn * (w[0] * lambda[0] + w[1] * lambda[1] + w[2] * lambda[2] + b[0]);
        lambda[0] = tb_max(lambda[0], 0);
        const tb_real x = w[3] * lambda[0] + w[4] * lambda[1] + w[5] * lambda[2] + b[1];
        const tb_real y = w[6] * lambda[0] + w[7] * lambda[1] + w[8] * lambda[2] + b[2];
        lambda[1] -= rt * x;
        lambda[2] -= rt * y;
        tb_prox_disk(lambda + 1, mu * lambda[0]);
        tb_real change = 0, size = 0;
        for (int i = 0; i < 3; i++) {
            change = tb_max(change, tb_abs(lambda[i] - old[i]));
            size = tb_max(size, tb_abs(lambda[i]));
        }
        if (!(change > 4 * TB_REAL_EPSILON * size)) break;
    }
    for (int i = 0; i < 3; i++)
        if (!(tb_abs(lambda[i]) <= TB_REAL_MAX)) lambda[0] = lambda[1] = lambda[2] = 0;
}

/* Solves one contact. `b` is the velocity without its own impulse. `alpha` (in and out, may start
 * at 0) is the slip parameter of the last solve, the first guess. `newton` bounds the Newton
 * steps on the rim equation; 60 make it exact to rounding, and 2 or 3 suffice within a sweep,
 * because the result is projected to the cone. `lambda` is the last impulse on entry and the
 * solution on return. */
TB_FN_LARGE tb_contact_status tb_local_solve(const tb_local_contact *local, const tb_real w[9],
                                             const tb_real b[3], tb_real mu, int newton,
                                             tb_real *alpha, tb_real lambda[3])
{
    if (b[0] >= 0) {
        lambda[0] = lambda[1] = lambda[2] = 0;
        return TB_CONTACT_OPEN;
    }
    if (!local->valid) {
        tb_local_project(w, b, mu, lambda);
        return lambda[0] > 0 ? TB_CONTACT_SLIP : TB_CONTACT_OPEN;
    }
    if (!(mu > 0)) {
        lambda[0] = -b[0] * local->inverse_normal;
        lambda[1] = lambda[2] = 0;
        return TB_CONTACT_SLIP;
    }
    const tb_real beta[2] = {b[1] - local->tn[0] * b[0] * local->inverse_normal,
                             b[2] - local->tn[1] * b[0] * local->inverse_normal};
    tb_real trial[3] = {0, 0, 0};
    if (tb_local_stick(local, beta, b[0], mu, trial)) {
        lambda[0] = trial[0];
        lambda[1] = trial[1];
        lambda[2] = trial[2];
        return TB_CONTACT_STICK;
    }

    /* psi < 0 at the floor and grows to infinity: find its root */
    tb_real low = local->floor, high = TB_REAL_MAX, slope;
    tb_real at = *alpha > low ? *alpha : low;
    tb_real psi = tb_local_rim(local, beta, b[0], mu, at, trial, &slope);
    int found = 0;
    for (int i = 0; i < newton; i++) {
        if (psi < 0)
            low = at;
        else
            high = at;
        tb_real next = slope > 0 ? at - psi / slope : -1;
        if (!(next > low) || !(next < high)) {
            next = high < TB_REAL_MAX ? tb_sqrt(low) * tb_sqrt(high)
                                      : 4 * at + local->a[0] + local->a[3];
            if (!(next > low) || !(next < high)) {
                found = 1; /* no number lies between the bounds */
                break;
            }
        }
        const tb_real step = tb_abs(next - at);
        at = next;
        psi = tb_local_rim(local, beta, b[0], mu, at, trial, &slope);
        if (step <= 4 * TB_REAL_EPSILON * at || tb_abs(psi) <= 4 * TB_REAL_EPSILON) {
            found = 1;
            break;
        }
    }
    if (!(trial[0] >= 0) || !(trial[0] <= TB_REAL_MAX) || (!found && newton >= 60)) {
        tb_local_project(w, b, mu, lambda);
        *alpha = 0;
        return lambda[0] > 0 ? TB_CONTACT_SLIP : TB_CONTACT_OPEN;
    }
    *alpha = at;
    tb_prox_disk(trial + 1, mu * trial[0]);
    lambda[0] = trial[0];
    lambda[1] = trial[1];
    lambda[2] = trial[2];
    return TB_CONTACT_SLIP;
}

#endif
