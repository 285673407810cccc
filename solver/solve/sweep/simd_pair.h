/* Pairs of numbers, in which the row kernels are written.
 *
 * A processor's vector unit holds two doubles or more; the compiler keeps a pair in one register
 * there. A card's lane works on one number at a time, and a pair is two of them. The sums are the
 * same, in the same order. */
#ifndef TB_SIMD_PAIR_H
#define TB_SIMD_PAIR_H

#include "base/real.h"

#ifdef TB_DEVICE

typedef struct tb_simd_pair {
    tb_real first, second;
} tb_simd_pair;

TB_FN tb_simd_pair tb_simd_pair_of(tb_real first, tb_real second)
{
    tb_simd_pair p;
    p.first = first;
    p.second = second;
    return p;
}

/* x[0], x[1], wherever they lie */
TB_FN tb_simd_pair tb_simd_pair_load(const tb_real *x)
{
    return tb_simd_pair_of(x[0], x[1]);
}

TB_FN void tb_simd_pair_store(tb_real *x, tb_simd_pair a)
{
    x[0] = a.first;
    x[1] = a.second;
}

TB_FN tb_simd_pair tb_simd_pair_add(tb_simd_pair a, tb_simd_pair b)
{
    return tb_simd_pair_of(a.first + b.first, a.second + b.second);
}

TB_FN tb_simd_pair tb_simd_pair_mul(tb_simd_pair a, tb_simd_pair b)
{
    return tb_simd_pair_of(a.first * b.first, a.second * b.second);
}

TB_FN tb_real tb_simd_pair_sum(tb_simd_pair a)
{
    return a.first + a.second;
}

#else

/* two lanes that may lie anywhere on their own alignment */
typedef tb_real tb_simd_pair
    __attribute__((vector_size(2 * sizeof(tb_real)), aligned(sizeof(tb_real)), may_alias));

TB_FN tb_simd_pair tb_simd_pair_of(tb_real first, tb_real second)
{
    return (tb_simd_pair){first, second};
}

TB_FN tb_simd_pair tb_simd_pair_load(const tb_real *x)
{
    return *(const tb_simd_pair *)x;
}

TB_FN void tb_simd_pair_store(tb_real *x, tb_simd_pair a)
{
    *(tb_simd_pair *)x = a;
}

TB_FN tb_simd_pair tb_simd_pair_add(tb_simd_pair a, tb_simd_pair b)
{
    return a + b;
}

TB_FN tb_simd_pair tb_simd_pair_mul(tb_simd_pair a, tb_simd_pair b)
{
    return a * b;
}

TB_FN tb_real tb_simd_pair_sum(tb_simd_pair a)
{
    return a[0] + a[1];
}

#endif
#endif
