/* Stop tests of the theses, one element or block wide, for the CPU and the GPU. */
#ifndef TB_STOP_TESTS_H
#define TB_STOP_TESTS_H

#include "contact/prox.h"

/* Nützi 4.49: |new - old| <= |old| relative + absolute. False for NaN. */
TB_FN int tb_element_converged(tb_real value, tb_real previous, double relative, double absolute)
{
    const double e = (double)value - (double)previous, size = (double)previous;
    return (e < 0 ? -e : e) <= (size < 0 ? -size : size) * relative + absolute;
}

/* Betz 3.8 for one block: no approach faster than the tolerance; friction at rest, at its bound, or
 * without a normal impulse. r has one number per row. */
TB_FN int tb_block_one_sided(int law, int rows, tb_real mu, tb_real lower, tb_real upper,
                             const tb_real *lambda, const tb_real *xi, const tb_real *r,
                             double tolerance)
{
    if (law == TB_LAW_BILATERAL) {
        for (int i = 0; i < rows; i++)
            if (!((double)tb_abs(xi[i]) < tolerance)) return 0;
        return 1;
    }
    if (law == TB_LAW_BOX) {
        const tb_real trial = lambda[0] - r[0] * xi[0];
        return (double)tb_abs(xi[0]) < tolerance || trial <= lower || trial >= upper;
    }
    if (!((double)xi[0] > -tolerance)) return 0;
    if (law == TB_LAW_UNILATERAL || lambda[0] == 0) return 1;

    /* at rest */
    int rest = 1;
    for (int i = 1; i < rows; i++) rest = rest && (double)tb_abs(xi[i]) < tolerance;
    if (rest) return 1;

    /* clamped: the projection moves the trial impulse */
    tb_real trial[TB_BLOCK_ROWS], bound[TB_BLOCK_ROWS];
    trial[0] = bound[0] = lambda[0];
    for (int i = 1; i < rows; i++) trial[i] = bound[i] = lambda[i] - r[i] * xi[i];
    tb_prox_block(law, rows, mu, lower, upper, bound);
    int clamped = 0;
    for (int i = 1; i < rows; i++) clamped = clamped || bound[i] != trial[i];
    return clamped;
}

#endif
