/* Row kernels of the factorized form: Y_row . s for the rows of a block, and s += rows' change.
 *
 * The lengths 6 and 6 + 6 (free bodies) are fixed, unrolled and kept in pairs of lanes: the same
 * sums in the same order on every machine, whatever its vector unit. */
#ifndef TB_ROWS_H
#define TB_ROWS_H

#include "solve/sweep/simd_pair.h"
#include "solve/sweep/sweep.h"

/* x[at] y[at], x[at + 1] y[at + 1] */
TB_FN tb_simd_pair tb_simd_pair_product(const tb_real *x, const tb_real *y, int at)
{
    return tb_simd_pair_mul(tb_simd_pair_load(x + at), tb_simd_pair_load(y + at));
}

/* the products of six numbers with six, summed to two */
TB_FN tb_simd_pair tb_products6(const tb_real *x, const tb_real *y)
{
    return tb_simd_pair_add(
        tb_simd_pair_add(tb_simd_pair_product(x, y, 0), tb_simd_pair_product(x, y, 2)),
        tb_simd_pair_product(x, y, 4));
}

TB_FN tb_real tb_dot6(const tb_real *y, const tb_real *a)
{
    return tb_simd_pair_sum(tb_products6(y, a));
}

TB_FN tb_real tb_dot66(const tb_real *y, const tb_real *a, const tb_real *b)
{
    return tb_simd_pair_sum(tb_simd_pair_add(tb_products6(y, a), tb_products6(y + 6, b)));
}

/* a += three rows' change, the rows `stride` apart */
TB_FN void tb_add6x3(tb_real *a, const tb_real *y, int stride, const tb_real change[3])
{
    const tb_simd_pair c0 = tb_simd_pair_of(change[0], change[0]);
    const tb_simd_pair c1 = tb_simd_pair_of(change[1], change[1]);
    const tb_simd_pair c2 = tb_simd_pair_of(change[2], change[2]);
    /* the normal's change is known first */
    for (int j = 0; j < 6; j += 2) {
        const tb_simd_pair normal = tb_simd_pair_mul(tb_simd_pair_load(y + j), c0);
        const tb_simd_pair tangent1 = tb_simd_pair_mul(tb_simd_pair_load(y + stride + j), c1);
        const tb_simd_pair tangent2 = tb_simd_pair_mul(tb_simd_pair_load(y + 2 * stride + j), c2);
        tb_simd_pair_store(a + j,
                           tb_simd_pair_add(tb_simd_pair_add(tb_simd_pair_load(a + j), normal),
                                            tb_simd_pair_add(tangent1, tangent2)));
    }
}

/* xi (rows) of any block */
TB_FN_LARGE void tb_gather_any(const tb_problem *problem, const tb_block *block, const tb_real *s,
                               tb_real *xi)
{
    const tb_segment *segment = problem->segments + block->segment;
    const tb_real *y = problem->values + block->value;
    const int32_t width = block->width;
    if (block->rows == 3) {
        /* three chains of sums side by side */
        tb_real x0 = 0, x1 = 0, x2 = 0;
        for (int32_t k = 0; k < block->segments; k++) {
            const tb_real *from = s + segment[k].dof;
            TB_ROLLED
            for (int32_t j = 0; j < segment[k].count; j++) {
                x0 += y[j] * from[j];
                x1 += y[j + width] * from[j];
                x2 += y[j + 2 * width] * from[j];
            }
            y += segment[k].count;
        }
        xi[0] = x0;
        xi[1] = x1;
        xi[2] = x2;
        return;
    }
    for (int32_t i = 0; i < block->rows; i++) {
        tb_real sum = 0;
        for (int32_t k = 0; k < block->segments; k++) {
            const tb_real *from = s + segment[k].dof;
            TB_ROLLED
            for (int32_t j = 0; j < segment[k].count; j++) sum += y[j] * from[j];
            y += segment[k].count;
        }
        xi[i] = sum;
    }
}

TB_FN void tb_scatter_any(const tb_problem *problem, const tb_block *block, tb_real *s,
                          const tb_real *change)
{
    const tb_segment *segment = problem->segments + block->segment;
    const tb_real *y = problem->values + block->value;
    const int32_t width = block->width;
    if (block->rows == 3) {
        for (int32_t k = 0; k < block->segments; k++) {
            tb_real *to = s + segment[k].dof;
            for (int32_t j = 0; j < segment[k].count; j++)
                to[j] += y[j] * change[0] + y[j + width] * change[1] + y[j + 2 * width] * change[2];
            y += segment[k].count;
        }
        return;
    }
    for (int32_t i = 0; i < block->rows; i++) {
        for (int32_t k = 0; k < block->segments; k++) {
            tb_real *to = s + segment[k].dof;
            for (int32_t j = 0; j < segment[k].count; j++) to[j] += y[j] * change[i];
            y += segment[k].count;
        }
    }
}

/* x . y with four chains of sums in a fixed order */
TB_FN_LARGE tb_real tb_dot_long(const tb_real *x, const tb_real *y, int32_t n)
{
    tb_simd_pair a = tb_simd_pair_of(0, 0), b = tb_simd_pair_of(0, 0);
    int32_t j = 0;
    TB_ROLLED
    for (; j + 4 <= n; j += 4) {
        a = tb_simd_pair_add(a, tb_simd_pair_product(x, y, j));
        b = tb_simd_pair_add(b, tb_simd_pair_product(x, y, j + 2));
    }
    tb_real sum = tb_simd_pair_sum(tb_simd_pair_add(a, b));
    TB_ROLLED
    for (; j < n; j++) sum += x[j] * y[j];
    return sum;
}

#endif
