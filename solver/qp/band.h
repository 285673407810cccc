/* Symmetric positive definite systems with a band: Cholesky by blocks, and solving for many
 * right-hand sides at once (Litven 5.3, algorithm 5.3).
 *
 * The factor is cut into square blocks. Diagonal blocks are inverted once, so that a solve consists
 * of products of blocks: few dependent steps, each wide, as cards and vector units need. Litven's
 * blocks are as large as the half-bandwidth, one below each diagonal one. Here the size is free and
 * there are as many below as the band needs: small blocks make the inverses cheap (his cost as much
 * as half a factorization), large ones make few steps. A dense matrix is the case of a
 * half-bandwidth of n - 1.
 *
 * Matrices come as LAPACK's lower band: element (i, j), i >= j, at a[i - j + j * stride], with
 * stride = half-bandwidth + 1. */
#ifndef TB_BAND_H
#define TB_BAND_H

#include "base/base.h"

/* Blocks are multiples of this: the widest vector of floats that the kernels are written for. */
enum { TB_BAND_LANE = 8, TB_BAND_LARGEST_BLOCK = 4096 };

/* The factor L. Block column j has below + 1 blocks of block x block numbers, row-major: first the
 * inverse of L_jj, then L_j+1,j and so on; where the last ones stick out of the matrix they are
 * zero, and a ragged end is filled with the identity. */
#define tb_band TB_SYMBOL(tb_band)
typedef struct tb_band {
    int32_t n, half_bandwidth;
    int32_t block, blocks, below;
    tb_real *factor;
    tb_real *work; /* of the factorization: below + 1 blocks */
    tb_real *rows; /* of a solve: right-hand sides, in panels */
} tb_band;

/* A good size of blocks on a processor. */
#define tb_band_block_size TB_SYMBOL(tb_band_block_size)
TB_EXTERN int32_t tb_band_block_size(int32_t half_bandwidth);

/* Takes memory for matrices of up to n rows. `block` 0: tb_band_block_size; else rounded up to a
 * multiple of TB_BAND_LANE. RESOURCE_EXHAUSTED where memory is refused. */
#define tb_band_take TB_SYMBOL(tb_band_take)
TB_EXTERN tb_status tb_band_take(tb_band *band, int32_t n, int32_t half_bandwidth, int32_t block,
                                 tb_arena *arena);

/* Factors the leading n rows of a matrix (n and half_bandwidth at most those of tb_band_take).
 * Returns n, or the index of the first pivot at or below `threshold` times its diagonal entry. */
#define tb_band_factor TB_SYMBOL(tb_band_factor)
TB_EXTERN int32_t tb_band_factor(tb_band *band, const tb_real *a, int32_t n, int32_t half_bandwidth,
                                 tb_real threshold);

/* The same for rows and columns `list` (ascending, `count` of them) of a band. No entry of the list
 * is coupled with another one more than `reach` places away. */
#define tb_band_factor_list TB_SYMBOL(tb_band_factor_list)
TB_EXTERN int32_t tb_band_factor_list(tb_band *band, const tb_real *a, int32_t half_bandwidth,
                                      const int32_t *list, int32_t count, int32_t reach,
                                      tb_real threshold);

/* x <- inverse(A) x for `columns` right-hand sides of n numbers, `stride` apart. */
#define tb_band_solve TB_SYMBOL(tb_band_solve)
TB_EXTERN void tb_band_solve(tb_band *band, int32_t columns, tb_real *x, int64_t stride);

/* Its halves, x <- inverse(L) x and x <- inverse(L') x. The first begins where x does: zeros before
 * that cost nothing. */
#define tb_band_forward TB_SYMBOL(tb_band_forward)
TB_EXTERN void tb_band_forward(tb_band *band, int32_t columns, tb_real *x, int64_t stride);
#define tb_band_backward TB_SYMBOL(tb_band_backward)
TB_EXTERN void tb_band_backward(tb_band *band, int32_t columns, tb_real *x, int64_t stride);

/* y <- A x for a symmetric band A (LAPACK's lower), columns `stride` apart: symgbmm. */
#define tb_band_multiply TB_SYMBOL(tb_band_multiply)
TB_EXTERN void tb_band_multiply(const tb_real *a, int32_t n, int32_t half_bandwidth,
                                int32_t columns, const tb_real *x, int64_t stride, tb_real *y,
                                int64_t y_stride);

/* The sum of a[i] x[i], in an order that suits vectors. */
#define tb_band_dot TB_SYMBOL(tb_band_dot)
TB_EXTERN tb_real tb_band_dot(const tb_real *a, const tb_real *x, int32_t count);

/* Element (i, j) of A. */
TB_FN tb_real tb_band_element(const tb_real *a, int32_t half_bandwidth, int32_t i, int32_t j)
{
    const int32_t low = i > j ? i : j, high = i > j ? j : i;
    if (low - high > half_bandwidth) return 0;
    return a[low - high + (int64_t)high * ((int64_t)half_bandwidth + 1)];
}

/* y += factor times one column of A. */
#define tb_band_add_column TB_SYMBOL(tb_band_add_column)
TB_EXTERN void tb_band_add_column(const tb_real *a, int32_t n, int32_t half_bandwidth,
                                  int32_t column, tb_real factor, tb_real *y);

/* y <- A x for one column of which few numbers may differ from zero. */
#define tb_band_multiply_sparse TB_SYMBOL(tb_band_multiply_sparse)
TB_EXTERN void tb_band_multiply_sparse(const tb_real *a, int32_t n, int32_t half_bandwidth,
                                       const tb_real *x, tb_real *y);

/* y <- A x for one column with all sums in double, for residuals. */
#define tb_band_multiply_double TB_SYMBOL(tb_band_multiply_double)
TB_EXTERN void tb_band_multiply_double(const tb_real *a, int32_t n, int32_t half_bandwidth,
                                       const tb_real *x, double *y);

#endif
