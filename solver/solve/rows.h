/* Row kernels of the factorized form: Y_row . s for the rows of a block, and s += rows' change.
 *
 * The lengths 6 and 6 + 6 (free bodies) are fixed, unrolled and kept in pairs of lanes: the same
 * sums in the same order on every machine, whatever its vector unit. */
#ifndef TB_ROWS_H
#define TB_ROWS_H

#include "solve/sweep.h"

/* two lanes that may lie anywhere on their own alignment */
typedef tb_real tb_pair
    __attribute__((vector_size(2 * sizeof(tb_real)), aligned(sizeof(tb_real)), may_alias));

#define TB_PAIR(pointer, at) (*(const tb_pair *)((pointer) + (at)))

static inline tb_real tb_pair_sum(tb_pair p)
{
    return p[0] + p[1];
}

static inline tb_real tb_dot6(const tb_real *y, const tb_real *a)
{
    const tb_pair sum = TB_PAIR(y, 0) * TB_PAIR(a, 0) + TB_PAIR(y, 2) * TB_PAIR(a, 2) +
                        TB_PAIR(y, 4) * TB_PAIR(a, 4);
    return tb_pair_sum(sum);
}

static inline tb_real tb_dot66(const tb_real *y, const tb_real *a, const tb_real *b)
{
    const tb_pair left = TB_PAIR(y, 0) * TB_PAIR(a, 0) + TB_PAIR(y, 2) * TB_PAIR(a, 2) +
                         TB_PAIR(y, 4) * TB_PAIR(a, 4);
    const tb_pair right = TB_PAIR(y, 6) * TB_PAIR(b, 0) + TB_PAIR(y, 8) * TB_PAIR(b, 2) +
                          TB_PAIR(y, 10) * TB_PAIR(b, 4);
    return tb_pair_sum(left + right);
}

/* a += three rows' change, the rows `stride` apart */
static inline void tb_add6x3(tb_real *a, const tb_real *y, int stride, const tb_real change[3])
{
    const tb_pair c0 = {change[0], change[0]}, c1 = {change[1], change[1]},
                  c2 = {change[2], change[2]};
    /* the normal's change is known first */
    for (int j = 0; j < 6; j += 2)
        *(tb_pair *)(a + j) = (TB_PAIR(a, j) + TB_PAIR(y, j) * c0) +
                              (TB_PAIR(y + stride, j) * c1 + TB_PAIR(y + 2 * stride, j) * c2);
}

/* xi (rows) of any block */
static inline void tb_gather_any(const tb_problem *problem, const tb_block *block, const tb_real *s,
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
            for (int32_t j = 0; j < segment[k].count; j++) sum += y[j] * from[j];
            y += segment[k].count;
        }
        xi[i] = sum;
    }
}

static inline void tb_scatter_any(const tb_problem *problem, const tb_block *block, tb_real *s,
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
static inline tb_real tb_dot_long(const tb_real *x, const tb_real *y, int32_t n)
{
    tb_pair a = {0, 0}, b = {0, 0};
    int32_t j = 0;
    for (; j + 4 <= n; j += 4) {
        a += TB_PAIR(x, j) * TB_PAIR(y, j);
        b += TB_PAIR(x, j + 2) * TB_PAIR(y, j + 2);
    }
    tb_real sum = tb_pair_sum(a + b);
    for (; j < n; j++) sum += x[j] * y[j];
    return sum;
}

#endif
