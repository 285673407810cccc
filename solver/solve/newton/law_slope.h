/* The slopes of the projections: the part of a contact law that only Newton needs.
 *
 * For x = prox(z) of a block, an element of the generalized Jacobian D = dx/dz (Clarke; Alart and
 * Curnier, CMAME 92, 1991), rows x rows, row-major. Friction's set scales with the new normal
 * impulse, so that its rows depend on z_N too: with R = mu x_N and x_T = P(z_T, R),
 *
 *     dx_T = M dz_T + (x_T - M z_T) / R  mu dx_N,        M = dP/dz_T at constant R,
 *
 * since P(k z, k R) = k P(z, R). For a set with the semi-axes a_i, (1 + d / a_i^2) x_i = z_i
 * outside, and with h_i = a_i^2 / (a_i^2 + d) and the normal n_i = x_i / a_i^2
 *
 *     M = H - H n n' H / (n' H n),   H = diag(h).
 *
 * While the impulses of the iterate lie off their rim, M is taken with their own direction on the
 * left instead of n (Hueber, Stadler, Wohlmuth, SIAM J. Sci. Comput. 30, 2008, section 4: it keeps
 * the system regular; at the solution both are the same). */
#ifndef TB_LAW_SLOPE_H
#define TB_LAW_SLOPE_H

#include "contact/contact.h"

/* One set of friction: x = P(z) of n rows with the semi-axes axis[i] * scale, where the scale is
 * factor x_N and `normal` is dx_N/dz_N. Writes rows and columns `first` on, and column 0, of d.
 * True where x lies on the rim. */
TB_FN_LARGE int tb_slope_of_set(int n, const tb_real *axis, tb_real scale, tb_real factor,
                                tb_real normal, const tb_real *z, const tb_real *x,
                                const tb_real *lambda, int rows, int first, tb_real *d)
{
    tb_real extent = 0, own = 0;
    for (int i = 0; i < n; i++) {
        TB_ROLLED
        for (int j = 0; j < rows; j++) d[(first + i) * rows + j] = 0;
        if (!(scale > 0)) continue;
        const tb_real u = z[i] / (axis[i] * scale), v = lambda[i] / (axis[i] * scale);
        extent += u * u;
        own += v * v;
    }
    if (!(scale > 0) || !(extent <= TB_REAL_MAX)) return 1;
    if (extent <= 1) {
        TB_ROLLED
        for (int i = 0; i < n; i++) d[(first + i) * rows + first + i] = 1;
        return 0;
    }

    /* x is z, each row shrunk by its h */
    tb_real h[3], right[3], left[3], sum = 0;
    const tb_real inside = own > 1 && own <= TB_REAL_MAX ? 1 / tb_sqrt(own) : 1;
    TB_ROLLED
    for (int i = 0; i < n; i++) {
        const tb_real square = axis[i] * axis[i] * scale * scale;
        h[i] = z[i] != 0 ? tb_clamp(x[i] / z[i], 0, 1) : 0;
        right[i] = h[i] * x[i] / square;
        sum += right[i] * x[i] / square;
        left[i] = h[i] * (n > 1 && own <= TB_REAL_MAX ? inside * lambda[i] : x[i]) / square;
    }

    /* a row at rest along z_i = 0 still shrinks: by the d of the others */
    tb_real distance = 0;
    TB_ROLLED
    for (int i = 0; i < n; i++) {
        const tb_real square = axis[i] * axis[i] * scale * scale;
        if (h[i] > 0) distance = tb_max(distance, square * (1 - h[i]) / h[i]);
    }
    TB_ROLLED
    for (int i = 0; i < n; i++) {
        const tb_real square = axis[i] * axis[i] * scale * scale;
        if (z[i] == 0) h[i] = square / (square + distance);
    }
    if (!(sum > 0)) return 1;
    for (int i = 0; i < n; i++) {
        tb_real along = 0;
        TB_ROLLED
        for (int j = 0; j < n; j++) {
            /* exact slope for the part of the normal row, the regular slope for the matrix */
            const tb_real exact = (i == j ? h[i] : 0) - h[i] * x[i] /
                                                            (axis[i] * axis[i] * scale * scale) *
                                                            right[j] / sum;
            along += exact * z[j];
            d[(first + i) * rows + first + j] = (i == j ? h[i] : 0) - left[i] * right[j] / sum;
        }
        d[(first + i) * rows] = (x[i] - along) / scale * factor * normal;
    }
    return 1;
}

/* x = prox(z) of a block and its slope d (rows x rows); `lambda` is the iterate. Returns the
 * block's status. */
TB_FN_LARGE tb_contact_status tb_law_slope(const tb_block *block, const tb_real *z,
                                           const tb_real *lambda, tb_real *x, tb_real *d)
{
    const tb_real disk[2] = {1, 1}, ellipsoid[3] = {1, 1, TB_R(2.0 / 3.0)};
    const int n = block->rows;
    TB_ROLLED
    for (int i = 0; i < n; i++) x[i] = z[i];
    TB_ROLLED
    for (int i = 0; i < n * n; i++) d[i] = 0;
    tb_prox_block(block->law, n, block->mu, block->lower, block->upper, x);
    if (block->law == TB_LAW_BILATERAL) {
        TB_ROLLED
        for (int i = 0; i < n; i++) d[i * n + i] = 1;
        return TB_CONTACT_STICK;
    }
    if (block->law == TB_LAW_BOX) {
        const int free = z[0] > block->lower && z[0] < block->upper;
        d[0] = free ? 1 : 0;
        return free ? TB_CONTACT_STICK : TB_CONTACT_SLIP;
    }
    if (!(z[0] > 0)) return TB_CONTACT_OPEN;
    d[0] = 1;
    int slips = 0;
    const tb_real radius = block->mu * x[0];
    switch (block->law) {
    case TB_LAW_PLANAR:
        slips = tb_slope_of_set(1, disk, radius, block->mu, 1, z + 1, x + 1, lambda + 1, n, 1, d);
        break;
    case TB_LAW_COULOMB:
        slips = tb_slope_of_set(2, disk, radius, block->mu, 1, z + 1, x + 1, lambda + 1, n, 1, d);
        break;
    case TB_LAW_ROLLING:
        slips = tb_slope_of_set(2, disk, x[0], 1, 1, z + 4, x + 4, lambda + 4, n, 4, d);
        slips |=
            tb_slope_of_set(3, ellipsoid, radius, block->mu, 1, z + 1, x + 1, lambda + 1, n, 1, d);
        break;
    case TB_LAW_SPIN:
        slips =
            tb_slope_of_set(3, ellipsoid, radius, block->mu, 1, z + 1, x + 1, lambda + 1, n, 1, d);
        break;
    default: break;
    }
    return slips || block->law == TB_LAW_UNILATERAL ? TB_CONTACT_SLIP : TB_CONTACT_STICK;
}

/* The projection of z and its slope d as they were if the block had this status, to first order: a
 * contact that slips does so along its own impulses, as fast as `reach` (m/s over the weight of z's
 * velocities, N s) says. That is the speed of slip alone: a contact that also spins and rolls does it as fast
 * as z says. Not known: as z is. Returns the status that has been assumed. */
TB_FN_LARGE tb_contact_status tb_law_slope_of_status(const tb_block *block, int status,
                                                     tb_real reach, const tb_real *z,
                                                     const tb_real *lambda, tb_real *x, tb_real *d)
{
    const int n = block->rows;
    if (status > TB_CONTACT_SLIP) return tb_law_slope(block, z, lambda, x, d);
    const int box = block->law == TB_LAW_BOX;
    if (status == TB_CONTACT_STICK || block->law == TB_LAW_BILATERAL ||
        (block->law == TB_LAW_UNILATERAL && status == TB_CONTACT_SLIP)) {
        TB_ROLLED
        for (int i = 0; i < n * n; i++) d[i] = i % (n + 1) == 0 ? 1 : 0;
        for (int i = 0; i < n; i++) x[i] = z[i];
        return block->law == TB_LAW_UNILATERAL ? TB_CONTACT_SLIP : TB_CONTACT_STICK;
    }
    if (status == TB_CONTACT_OPEN || box) {
        TB_ROLLED
        for (int i = 0; i < n * n; i++) d[i] = 0;
        TB_ROLLED
        for (int i = 0; i < n; i++) x[i] = 0;
        const int low = lambda[0] - block->lower < block->upper - lambda[0];
        if (box) x[0] = low ? block->lower : block->upper;
        return box ? TB_CONTACT_SLIP : TB_CONTACT_OPEN;
    }

    /* slopes where the slip has taken z, and the projection of z from there */
    const tb_real radius = block->mu * lambda[0], least = TB_R(1e-3), rim = TB_R(0.999);
    tb_real from[TB_BLOCK_ROWS], extent = tb_hypot2(lambda[1], n > 2 ? lambda[2] : 0);
    if (n > 3) { /* in the ellipsoid's metric; its normal is steeper along the spin */
        extent = tb_hypot2(extent, lambda[3] * TB_R(1.5));
        reach = tb_hypot2(tb_hypot2(z[1] - lambda[1], z[2] - lambda[2]),
                          TB_R(2.0 / 3.0) * (z[3] - lambda[3]));
    }
    const tb_real far = radius > 0 ? tb_max(reach / radius, least) : least;
    for (int i = 0; i < n; i++) from[i] = lambda[i];
    for (int i = 1; i < n && i < 4 && extent >= rim * radius; i++)
        from[i] *= 1 + (i == 3 ? TB_R(2.25) : 1) * far;
    if (n > 4 && tb_hypot2(lambda[4], lambda[5]) >= rim * lambda[0]) {
        const tb_real roll = tb_hypot2(z[4] - lambda[4], z[5] - lambda[5]);
        const tb_real far_roll = lambda[0] > 0 ? tb_max(roll / lambda[0], least) : least;
        for (int i = 4; i < n; i++) from[i] *= 1 + far_roll;
    }
    const tb_contact_status assumed = tb_law_slope(block, from, lambda, x, d);
    for (int i = 0; i < n; i++) {
        TB_ROLLED
        for (int k = 0; k < n; k++) x[i] += d[i * n + k] * (z[k] - from[k]);
    }
    return assumed;
}

#endif
