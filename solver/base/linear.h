/* Small dense linear algebra, row-major, in working precision. For blocks of a few rows; large
 * systems go to LAPACK. */
#ifndef TB_LINEAR_H
#define TB_LINEAR_H

#include "base/vector.h"

/* Cholesky factor L of a symmetric n x n matrix, in place in the lower triangle (leading dimension
 * `stride`). Returns n, or the index of the first pivot that is not positive. */
TB_FN_LARGE int tb_cholesky(tb_real *a, int n, int stride)
{
    for (int j = 0; j < n; j++) {
        tb_real pivot = a[j * stride + j];
        for (int k = 0; k < j; k++) pivot -= a[j * stride + k] * a[j * stride + k];
        if (!(pivot > 0)) return j;
        pivot = tb_sqrt(pivot);
        a[j * stride + j] = pivot;
        for (int i = j + 1; i < n; i++) {
            tb_real sum = a[i * stride + j];
            for (int k = 0; k < j; k++) sum -= a[i * stride + k] * a[j * stride + k];
            a[i * stride + j] = sum / pivot;
        }
    }
    return n;
}

/* x <- inverse(L) x */
TB_FN void tb_cholesky_forward(const tb_real *l, int n, int stride, tb_real *x)
{
    for (int i = 0; i < n; i++) {
        tb_real sum = x[i];
        for (int k = 0; k < i; k++) sum -= l[i * stride + k] * x[k];
        x[i] = sum / l[i * stride + i];
    }
}

/* x <- inverse(L') x */
TB_FN void tb_cholesky_backward(const tb_real *l, int n, int stride, tb_real *x)
{
    for (int i = n - 1; i >= 0; i--) {
        tb_real sum = x[i];
        for (int k = i + 1; k < n; k++) sum -= l[k * stride + i] * x[k];
        x[i] = sum / l[i * stride + i];
    }
}

/* x <- inverse(L L') x */
TB_FN_LARGE void tb_cholesky_solve(const tb_real *l, int n, int stride, tb_real *x)
{
    tb_cholesky_forward(l, n, stride, x);
    tb_cholesky_backward(l, n, stride, x);
}

/* Eigenvalues (descending) and eigenvectors (columns of a proper rotation) of a symmetric 3x3
 * matrix, by cyclic Jacobi rotations: slow, but exact to rounding also for repeated values. */
TB_FN void tb_m33_eigen(const tb_mat33 *symmetric, tb_real values[3], tb_mat33 *vectors)
{
    tb_mat33 a = *symmetric, v = tb_m33_identity();
    for (int sweep = 0; sweep < 50; sweep++) {
        const tb_real off = tb_abs(a.m[1]) + tb_abs(a.m[2]) + tb_abs(a.m[5]);
        const tb_real scale = tb_abs(a.m[0]) + tb_abs(a.m[4]) + tb_abs(a.m[8]);
        if (off <= scale * TB_REAL_EPSILON * TB_R(1e-2) || off == 0) break;
        for (int p = 0; p < 2; p++) {
            for (int q = p + 1; q < 3; q++) {
                const tb_real apq = a.m[3 * p + q];
                if (apq == 0) continue;
                const tb_real theta = (a.m[4 * q] - a.m[4 * p]) / (2 * apq);
                const tb_real t = (theta >= 0 ? TB_R(1) : TB_R(-1)) /
                                  (tb_abs(theta) + tb_sqrt(theta * theta + 1));
                const tb_real c = 1 / tb_sqrt(t * t + 1), s = t * c;

                /* a <- J' a J. The eliminated element is set to zero: a computed one keeps a
                 * rounding error, which repeated eigenvalues would rotate in every sweep. */
                const int r = 3 - p - q;
                const tb_real arp = a.m[3 * r + p], arq = a.m[3 * r + q];
                a.m[4 * p] -= t * apq;
                a.m[4 * q] += t * apq;
                a.m[3 * p + q] = a.m[3 * q + p] = 0;
                a.m[3 * r + p] = a.m[3 * p + r] = c * arp - s * arq;
                a.m[3 * r + q] = a.m[3 * q + r] = s * arp + c * arq;
                for (int k = 0; k < 3; k++) { /* v <- v J */
                    const tb_real x = v.m[3 * k + p], y = v.m[3 * k + q];
                    v.m[3 * k + p] = c * x - s * y;
                    v.m[3 * k + q] = s * x + c * y;
                }
            }
        }
    }

    /* sort descending, keep the rotation proper */
    int order[3] = {0, 1, 2};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2 - i; j++)
            if (a.m[4 * order[j]] < a.m[4 * order[j + 1]]) {
                const int swap = order[j];
                order[j] = order[j + 1];
                order[j + 1] = swap;
            }
    for (int i = 0; i < 3; i++) values[i] = a.m[4 * order[i]];
    const tb_vec3 c0 = tb_m33_column(&v, order[0]), c1 = tb_m33_column(&v, order[1]);
    *vectors = tb_m33_from_columns(c0, c1, tb_v3_cross(c0, c1));
}

#endif
