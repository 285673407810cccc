/* Two numbers side by side: what the row kernels are written in.
 *
 * A processor's vector unit holds two doubles or more; the compiler keeps a pair in one register
 * there. A card's lane works on one number at a time, and a pair is two of them. The sums are the
 * same, in the same order. */
#ifndef TB_TWIN_H
#define TB_TWIN_H

#include "base/real.h"

#ifdef TB_DEVICE

typedef struct tb_twin {
    tb_real first, second;
} tb_twin;

TB_FN tb_twin tb_twin_of(tb_real first, tb_real second)
{
    tb_twin p;
    p.first = first;
    p.second = second;
    return p;
}

/* x[0], x[1], wherever they lie */
TB_FN tb_twin tb_twin_load(const tb_real *x)
{
    return tb_twin_of(x[0], x[1]);
}

TB_FN void tb_twin_store(tb_real *x, tb_twin a)
{
    x[0] = a.first;
    x[1] = a.second;
}

TB_FN tb_twin tb_twin_add(tb_twin a, tb_twin b)
{
    return tb_twin_of(a.first + b.first, a.second + b.second);
}

TB_FN tb_twin tb_twin_mul(tb_twin a, tb_twin b)
{
    return tb_twin_of(a.first * b.first, a.second * b.second);
}

TB_FN tb_real tb_twin_sum(tb_twin a)
{
    return a.first + a.second;
}

#else

/* two lanes that may lie anywhere on their own alignment */
typedef tb_real tb_twin
    __attribute__((vector_size(2 * sizeof(tb_real)), aligned(sizeof(tb_real)), may_alias));

TB_FN tb_twin tb_twin_of(tb_real first, tb_real second)
{
    return (tb_twin){first, second};
}

TB_FN tb_twin tb_twin_load(const tb_real *x)
{
    return *(const tb_twin *)x;
}

TB_FN void tb_twin_store(tb_real *x, tb_twin a)
{
    *(tb_twin *)x = a;
}

TB_FN tb_twin tb_twin_add(tb_twin a, tb_twin b)
{
    return a + b;
}

TB_FN tb_twin tb_twin_mul(tb_twin a, tb_twin b)
{
    return a * b;
}

TB_FN tb_real tb_twin_sum(tb_twin a)
{
    return a[0] + a[1];
}

#endif
#endif
