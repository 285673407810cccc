/* Prox operators: projections that turn a contact law into an equation.
 *
 * lambda = prox_C(lambda - r xi) holds for any r > 0 exactly when xi obeys the law of C at lambda
 * (Nützi 4.8, Betz 2.39). Everything here is one contact wide and free of memory access beyond its
 * arguments, so that the CPU sweeps and the GPU kernels share it. Friction always uses the new
 * normal impulse for the radius of its set (Nützi 4.35). */
#ifndef TB_PROX_H
#define TB_PROX_H

#include "contact/problem.h"

/* sqrt(x^2 + y^2) without intermediate overflow or underflow */
TB_FN_LARGE tb_real tb_hypot2(tb_real x, tb_real y)
{
    const tb_real a = tb_abs(x), b = tb_abs(y);
    const tb_real large = a > b ? a : b, small = a > b ? b : a;
    if (!(large > 0) || !(large <= TB_REAL_MAX)) return large;
    const tb_real t = small / large;
    return large * tb_sqrt(1 + t * t);
}

/* nearest point of lambda >= 0 */
TB_FN tb_real tb_prox_unilateral(tb_real x)
{
    return tb_max(x, 0);
}

/* nearest point of lower <= lambda <= upper */
TB_FN tb_real tb_prox_box(tb_real x, tb_real lower, tb_real upper)
{
    return tb_clamp(x, lower, upper);
}

/* nearest point of the disk of this radius (>= 0), in place */
TB_FN void tb_prox_disk(tb_real x[2], tb_real radius)
{
    const tb_real length2 = x[0] * x[0] + x[1] * x[1];
    tb_real length;
    if (length2 >= TB_REAL_MIN_NORMAL && length2 <= TB_REAL_MAX) {
        if (length2 <= radius * radius) return;
        length = tb_sqrt(length2);
    } else {
        /* the squares overflow or underflow */
        length = tb_hypot2(x[0], x[1]);
        if (length <= radius) return;
    }
    /* radius 0, a common case, skips the division, which is slow on a GPU for zero */
    const tb_real scale = radius == 0 ? radius : radius / length;
    x[0] *= scale;
    x[1] *= scale;
}

/* The factor that brings a vector of squared length `length2` into a disk, 1 within it: by a reciprocal
 * root (Nützi, listing 5.1), for chains of dependent contacts on a card, where a root and a division
 * take longer than all else. Lengths whose squares leave the range are tb_prox_disk's business. */
TB_FN tb_real tb_prox_disk_factor(tb_real length2, tb_real radius)
{
    return length2 > radius * radius ? radius * tb_rsqrt(length2) : 1;
}

/* Planar contact: x = (normal, tangent), replaced by its projection (Betz 3.6). */
TB_FN void tb_prox_planar(tb_real x[2], tb_real mu)
{
    x[0] = tb_max(x[0], 0);
    x[1] = tb_clamp(x[1], -mu * x[0], mu * x[0]);
}

/* Projects a contact impulse onto the Coulomb set.
 * x       (normal, tangent 1, tangent 2), N s; replaced by the projection
 * mu      friction coefficient, dimensionless, >= 0 */
TB_FN void tb_prox_coulomb(tb_real x[3], tb_real mu)
{
    x[0] = tb_max(x[0], 0);
    tb_prox_disk(x + 1, mu * x[0]);
}

/* Nearest point of the Contensou ellipsoid with semi-axes (radius, radius, 2/3 radius), in place:
 * x = (tangent 1, tangent 2, scaled spin). Outside, the projection is x_i a_i^2 / (a_i^2 + d) with
 * d > 0 the root of the secular equation S(d) = sum (a_i x_i / (a_i^2 + d))^2 = 1 (Poulsen 3.5).
 * S is convex and falls, and 1 / sqrt(S) is nearly straight, so Newton's method from the left of
 * the root approaches it monotonically, up to rounding. */
TB_FN_LARGE void tb_prox_ellipsoid(tb_real x[3], tb_real radius)
{
    const tb_real axis = TB_R(2.0 / 3.0);

    /* in units of the radius; a radius too small to divide by counts as zero */
    if (!(radius > TB_REAL_MIN_NORMAL)) {
        x[0] = x[1] = x[2] = 0;
        return;
    }
    const tb_real slide = tb_hypot2(x[0], x[1]) / radius, spin = tb_abs(x[2]) / radius;
    if (!(slide <= TB_REAL_MAX) || !(spin <= TB_REAL_MAX)) {
        x[0] = x[1] = x[2] = 0;
        return;
    }
    const tb_real s = spin / axis;
    if (slide <= 1 && s <= 1 && slide * slide + s * s <= 1) return;

    /* left of the root: the point where one term alone equals 1 */
    tb_real d = tb_max(0, tb_max(slide - 1, axis * spin - axis * axis));
    for (int i = 0; i < 40; i++) {
        const tb_real t = slide / (1 + d), p = axis * spin / (axis * axis + d);
        const tb_real sum = t * t + p * p;
        const tb_real slope = t * t / (1 + d) + p * p / (axis * axis + d);
        const tb_real step = sum * (tb_sqrt(sum) - 1) / slope;
        if (!(step > 0)) break;
        d += step;
        if (step <= TB_REAL_EPSILON * d) break;
    }
    const tb_real shrink = 1 / (1 + d);
    x[0] *= shrink;
    x[1] *= shrink;
    x[2] *= axis * axis / (axis * axis + d);
}

/* Projects a whole block: x (rows numbers) is replaced by prox_C(x). Blocks with friction
 * project their normal row first. Bilateral rows are free and unchanged. */
TB_FN_LARGE void tb_prox_block(int law, int rows, tb_real mu, tb_real lower, tb_real upper,
                               tb_real *x)
{
    (void)rows;
    switch (law) {
    case TB_LAW_UNILATERAL: x[0] = tb_prox_unilateral(x[0]); break;
    case TB_LAW_PLANAR: tb_prox_planar(x, mu); break;
    case TB_LAW_COULOMB: tb_prox_coulomb(x, mu); break;
    case TB_LAW_SPIN:
        x[0] = tb_prox_unilateral(x[0]);
        tb_prox_ellipsoid(x + 1, mu * x[0]);
        break;
    case TB_LAW_ROLLING:
        x[0] = tb_prox_unilateral(x[0]);
        tb_prox_ellipsoid(x + 1, mu * x[0]);
        tb_prox_disk(x + 4, x[0]);
        break;
    case TB_LAW_BOX: x[0] = tb_prox_box(x[0], lower, upper); break;
    default: break;
    }
}

#endif
