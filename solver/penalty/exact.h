/* The exact sign of a plane's value at a point: n.x - w for numbers as they are stored.
 *
 * A floating-point filter decides nearly always. Else the sum is an expansion, a list of numbers that
 * do not overlap and whose last one has the sign of their sum (Shewchuk, Adaptive Precision
 * Floating-Point Arithmetic, 1997). No compiler flag may contract products and sums. */
#ifndef TB_EXACT_H
#define TB_EXACT_H

#include <stdint.h>

#include "base/vector.h"

/* s + e = a + b */
TB_FN void tb_two_sum(double a, double b, double *s, double *e)
{
    *s = a + b;
    const double back = *s - a;
    *e = (a - (*s - back)) + (b - back);
}

/* p + e = a b, by Dekker's halves */
TB_FN void tb_two_product(double a, double b, double *p, double *e)
{
    const double split = 134217729.0; /* 2^27 + 1 */
    const double ca = split * a, cb = split * b;
    const double ah = ca - (ca - a), bh = cb - (cb - b);
    const double al = a - ah, bl = b - bh;
    *p = a * b;
    *e = ((ah * bh - *p) + ah * bl + al * bh) + al * bl;
}

/* Adds x to an expansion of n numbers, smallest first; returns n + 1. */
TB_FN int32_t tb_expansion_add(double *expansion, int32_t n, double x)
{
    for (int32_t i = 0; i < n; i++) tb_two_sum(expansion[i], x, &x, &expansion[i]);
    expansion[n] = x;
    return n + 1;
}

/* The value n.x - w of a plane (n, w) with an exact sign: 0 only if it is 0. */
TB_FN double tb_plane_side(const double plane[4], const double x[3])
{
    const double a = plane[0] * x[0], b = plane[1] * x[1], c = plane[2] * x[2];
    const double d = a + b + c - plane[3];
    const double size = tb_abs(a) + tb_abs(b) + tb_abs(c) + tb_abs(plane[3]);
    if (tb_abs(d) > 1e-15 * size) return d; /* 4 roundings of at most 1.2e-16 each */
    double expansion[7], p, e;
    int32_t n = tb_expansion_add(expansion, 0, -plane[3]);
    for (int k = 0; k < 3; k++) {
        tb_two_product(plane[k], x[k], &p, &e);
        n = tb_expansion_add(expansion, n, e);
        n = tb_expansion_add(expansion, n, p);
    }
    for (int32_t i = n - 1; i > 0; i--)
        if (expansion[i] != 0) return expansion[i];
    return expansion[0];
}

#endif
