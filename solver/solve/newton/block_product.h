/* Products of dense blocks on a processor; the sparse LU spends most of its time here.
 *
 * Every number is a sum of four products at a time, in one order on every processor. AVX2 computes
 * twice as many sums at once, with the same bytes. A card has a loop of its own in block_lu.c. */
#ifndef TB_BLOCK_PRODUCT_H
#define TB_BLOCK_PRODUCT_H

#include "base/real.h"

/* numbers wherever they lie, which the compiler splits where the processor has less */
typedef tb_real tb_product_vector
    __attribute__((vector_size(4 * sizeof(tb_real)), aligned(sizeof(tb_real)), may_alias));
typedef tb_real tb_product_pair
    __attribute__((vector_size(2 * sizeof(tb_real)), aligned(sizeof(tb_real)), may_alias));
enum { TB_PRODUCT_LANES = 4, TB_PRODUCT_ROWS = 3, TB_PRODUCT_VECTORS = 2 };

/* A tile of c -= a b in registers: rows x (vectors and pairs), `pairs` 0 or 1. */
static inline __attribute__((always_inline)) void
tb_product_tile(tb_real *c, const tb_real *a, const tb_real *b, int32_t k, int32_t n,
                const int rows, const int vectors, const int pairs)
{
    tb_product_vector sums[TB_PRODUCT_ROWS][TB_PRODUCT_VECTORS];
    tb_product_pair ends[TB_PRODUCT_ROWS];
    const int end = vectors * TB_PRODUCT_LANES;
#pragma GCC unroll 3
    for (int i = 0; i < rows; i++) {
        const tb_real *from = c + i * (int64_t)n;
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sums[i][v] = *(const tb_product_vector *)(from + v * TB_PRODUCT_LANES);
        if (pairs) ends[i] = *(const tb_product_pair *)(from + end);
    }
    int32_t p = 0;
    for (; p + 4 <= k; p += 4) {
        const tb_real *right = b + (int64_t)p * n, *left = a + p;
        const tb_real *row1 = right + n, *row2 = row1 + n, *row3 = row2 + n;
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            const int at = v * TB_PRODUCT_LANES;
            const tb_product_vector r0 = *(const tb_product_vector *)(right + at),
                                    r1 = *(const tb_product_vector *)(row1 + at),
                                    r2 = *(const tb_product_vector *)(row2 + at),
                                    r3 = *(const tb_product_vector *)(row3 + at);
#pragma GCC unroll 3
            for (int i = 0; i < rows; i++) {
                const tb_real *f = left + i * (int64_t)k;
                sums[i][v] -= (f[0] * r0 + f[1] * r1) + (f[2] * r2 + f[3] * r3);
            }
        }
        if (pairs) {
            const tb_product_pair r0 = *(const tb_product_pair *)(right + end),
                                  r1 = *(const tb_product_pair *)(row1 + end),
                                  r2 = *(const tb_product_pair *)(row2 + end),
                                  r3 = *(const tb_product_pair *)(row3 + end);
#pragma GCC unroll 3
            for (int i = 0; i < rows; i++) {
                const tb_real *f = left + i * (int64_t)k;
                ends[i] -= (f[0] * r0 + f[1] * r1) + (f[2] * r2 + f[3] * r3);
            }
        }
    }
    for (; p < k; p++) {
        const tb_real *right = b + (int64_t)p * n;
#pragma GCC unroll 3
        for (int i = 0; i < rows; i++) {
            const tb_real f = a[i * (int64_t)k + p];
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                sums[i][v] -= f * *(const tb_product_vector *)(right + v * TB_PRODUCT_LANES);
            if (pairs) ends[i] -= f * *(const tb_product_pair *)(right + end);
        }
    }
#pragma GCC unroll 3
    for (int i = 0; i < rows; i++) {
        tb_real *to = c + i * (int64_t)n;
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            *(tb_product_vector *)(to + v * TB_PRODUCT_LANES) = sums[i][v];
        if (pairs) *(tb_product_pair *)(to + end) = ends[i];
    }
}

/* one column of c -= a b */
static inline __attribute__((always_inline)) void tb_product_column(tb_real *c, const tb_real *a,
                                                                    const tb_real *b, int32_t k,
                                                                    int32_t n, const int rows)
{
    for (int i = 0; i < rows; i++, a += k, c += n) {
        tb_real sum = *c;
        int32_t p = 0;
        for (; p + 4 <= k; p += 4) {
            const tb_real *r = b + (int64_t)p * n;
            sum -= (a[p] * r[0] + a[p + 1] * r[n]) +
                   (a[p + 2] * r[2 * (int64_t)n] + a[p + 3] * r[3 * (int64_t)n]);
        }
        for (; p < k; p++) sum -= a[p] * b[(int64_t)p * n];
        *c = sum;
    }
}

static inline __attribute__((always_inline)) void tb_product_rows(tb_real *c, const tb_real *a,
                                                                  const tb_real *b, int32_t k,
                                                                  int32_t n, const int rows)
{
    int32_t j = 0;
    for (; j + 8 <= n; j += 8) tb_product_tile(c + j, a, b + j, k, n, rows, 2, 0);
    if (j + 6 <= n) {
        tb_product_tile(c + j, a, b + j, k, n, rows, 1, 1);
        j += 6;
    } else if (j + 4 <= n) {
        tb_product_tile(c + j, a, b + j, k, n, rows, 1, 0);
        j += 4;
    } else if (j + 2 <= n) {
        tb_product_tile(c + j, a, b + j, k, n, rows, 0, 1);
        j += 2;
    }
    if (j < n) tb_product_column(c + j, a, b + j, k, n, rows);
}

static inline __attribute__((always_inline)) void tb_product(tb_real *TB_RESTRICT c,
                                                             const tb_real *a, const tb_real *b,
                                                             int32_t m, int32_t k, int32_t n)
{
    if (m == 6 && k == 6 && n == 6) { /* two free bodies, with the lengths known */
        tb_product_tile(c, a, b, 6, 6, 3, 1, 1);
        tb_product_tile(c + 18, a + 18, b, 6, 6, 3, 1, 1);
        return;
    }
    int32_t i = 0;
    for (; i + 3 <= m; i += 3) tb_product_rows(c + (int64_t)i * n, a + (int64_t)i * k, b, k, n, 3);
    for (; i < m; i++) tb_product_rows(c + (int64_t)i * n, a + (int64_t)i * k, b, k, n, 1);
}

#if defined(__x86_64__) && !defined(__AVX2__)
__attribute__((target("avx2"))) static void tb_product_avx2(tb_real *TB_RESTRICT c,
                                                            const tb_real *a, const tb_real *b,
                                                            int32_t m, int32_t k, int32_t n)
{
    tb_product(c, a, b, m, k, n);
}
#define TB_PRODUCT_AVX2 __builtin_cpu_supports("avx2")
#else
#define TB_PRODUCT_AVX2      false
#define tb_product_avx2(...) ((void)0)
#endif

/* c -= a b, a: m x k, b: k x n, row-major without gaps */
static void tb_subtract_product(tb_real *TB_RESTRICT c, const tb_real *a, const tb_real *b,
                                int32_t m, int32_t k, int32_t n)
{
    if (TB_PRODUCT_AVX2)
        tb_product_avx2(c, a, b, m, k, n);
    else
        tb_product(c, a, b, m, k, n);
}

#endif
