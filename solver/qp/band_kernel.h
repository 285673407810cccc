/* Products of blocks with panels; the banded solver spends most of its time here.
 *
 * A panel is BAND_WIDTH numbers wide and contiguous, so that a block's rows meet it in the cache's
 * own order. Every sum adds its terms in order on every processor: AVX2 computes twice as many sums
 * at a time, with the same bytes. */
#ifndef TB_BAND_KERNEL_H
#define TB_BAND_KERNEL_H

#include "qp/band.h"

enum { BAND_WIDTH = TB_BAND_LANE, BAND_PANELS = 4 };
/* BAND_PANELS: panels (right-hand sides / BAND_WIDTH) that one pass solves */

/* 32 bytes wherever they lie, which the compiler splits where the processor has less */
typedef tb_real band_vector __attribute__((vector_size(32), aligned(sizeof(tb_real)), may_alias));
enum { BAND_LANES = 32 / sizeof(tb_real) };

/* c += sign a b; element (i, t) of a at a[i * row + t * step], m x k; b: a panel's k rows; c: m
 * rows, `stride` apart. m is a multiple of TB_BAND_LANE. A tile of `rows` rows x `vectors` vectors of
 * BAND_LANES numbers stays in registers. Numbers `ahead` of those in use are prefetched; 0: none. */
static inline __attribute__((always_inline)) void
sum_products(tb_real *TB_RESTRICT c, int64_t stride, const tb_real *a, int64_t row, int64_t step,
             const tb_real *b, int32_t m, int32_t k, tb_real sign, int64_t ahead, const int rows,
             const int vectors)
{
    for (int32_t j = 0; j < BAND_WIDTH; j += vectors * BAND_LANES)
        for (int32_t i = 0; i < m; i += rows) {
            band_vector sums[8][2] = {{{0}}};
            const tb_real *left = a + i * row;
            for (int32_t t = 0; t < k; t++, left += step) {
                band_vector right[2];
                if (ahead) __builtin_prefetch(left + t % rows * row + ahead);
#pragma GCC unroll 2
                for (int v = 0; v < vectors; v++)
                    right[v] =
                        *(const band_vector *)(b + (int64_t)t * BAND_WIDTH + j + v * BAND_LANES);
#pragma GCC unroll 8
                for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
                    for (int v = 0; v < vectors; v++) sums[r][v] += left[r * row] * right[v];
            }
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
                for (int v = 0; v < vectors; v++)
                    *(band_vector *)(c + (i + r) * stride + j + v * BAND_LANES) +=
                        sign * sums[r][v];
        }
}

#if defined(__x86_64__) && !defined(__AVX2__)
enum { WIDE_ROWS = 8 * BAND_LANES / BAND_WIDTH, WIDE_VECTORS = BAND_WIDTH / BAND_LANES };

__attribute__((target("avx2"))) static inline void
sum_products_avx2(tb_real *TB_RESTRICT c, int64_t stride, const tb_real *a, int64_t row,
                  int64_t step, const tb_real *b, int32_t m, int32_t k, tb_real sign, int64_t ahead)
{
    if (ahead)
        sum_products(c, stride, a, row, step, b, m, k, sign, ahead, WIDE_ROWS, WIDE_VECTORS);
    else
        sum_products(c, stride, a, row, step, b, m, k, sign, 0, WIDE_ROWS, WIDE_VECTORS);
}
#define BAND_AVX2 __builtin_cpu_supports("avx2")
#else
#define BAND_AVX2              false
#define sum_products_avx2(...) ((void)0)
#endif

static inline void band_product(tb_real *TB_RESTRICT c, int64_t stride, const tb_real *a,
                                int64_t row, int64_t step, const tb_real *b, int32_t m, int32_t k,
                                tb_real sign, int64_t ahead)
{
    if (BAND_AVX2)
        sum_products_avx2(c, stride, a, row, step, b, m, k, sign, ahead);
    else
        sum_products(c, stride, a, row, step, b, m, k, sign, ahead, 4, 1);
}

/* The same sums for one column and a square block, row-major. Memory latency bounds this walk,
 * so the next rows, or the next block behind this one, are prefetched. */
static inline void band_product_along(tb_real *TB_RESTRICT c, const tb_real *a, int32_t size,
                                      const tb_real *b, tb_real sign)
{
    enum { ROWS = TB_BAND_LANE };
    for (int32_t i = 0; i < size; i += ROWS) {
        tb_real sums[ROWS] = {0};
        const tb_real *left = a + (int64_t)i * size;
        for (int32_t t = 0; t < size; t += ROWS) {
            for (int r = 0; r < ROWS; r++)
                __builtin_prefetch(left + (ROWS + t / ROWS) * (int64_t)size + ROWS * r);
            for (int32_t u = t; u < t + ROWS; u++)
                for (int r = 0; r < ROWS; r++) sums[r] += left[r * (int64_t)size + u] * b[u];
        }
        for (int r = 0; r < ROWS; r++) c[i + r] += sign * sums[r];
    }
}

/* c += sign a' b: as above with the block transposed. */
static inline void band_product_across(tb_real *TB_RESTRICT c, const tb_real *a, int32_t size,
                                       const tb_real *b, tb_real sign)
{
    enum { CHUNK = 64, AHEAD = 16 };
    for (int32_t first = 0; first < size; first += CHUNK) {
        const int32_t count = size - first < CHUNK ? size - first : CHUNK;
        tb_real sums[CHUNK] = {0};
        for (int32_t t = 0; t < size; t++) {
            const tb_real *row = a + (int64_t)t * size + first, factor = b[t];
            for (int32_t i = 0; i < count; i += TB_BAND_LANE) {
                __builtin_prefetch(row + AHEAD * (int64_t)size + i);
                for (int32_t k = i; k < i + TB_BAND_LANE; k++) sums[k] += factor * row[k];
            }
        }
        for (int32_t i = 0; i < count; i++) c[first + i] += sign * sums[i];
    }
}

#endif
