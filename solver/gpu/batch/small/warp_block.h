/* A block of the kernels in which a warp has its world: numbers that are read at once, the natural map. */
#ifndef TB_GPU_WARP_BLOCK_H
#define TB_GPU_WARP_BLOCK_H

#include "base/team.h"
#include "contact/judge.h"
#include "solve/solve.h"

enum { WARP_ITEMS = 32 /* blocks of a world at most: a lane each */ };
enum { WARP_PART = 4 /* numbers that are read at once */ };

static const tb_real WARP_NONE = TB_REAL_MAX; /* no bound */

/* Four numbers that are read at once. */
typedef struct TB_ALIGNED(16) warp_quad {
    tb_real v[WARP_PART];
} warp_quad;

/* The lowest set bit's place. */
TB_FN int32_t lowest_bit(uint32_t bits)
{
    return tb_count_bits((bits & (0 - bits)) - 1);
}

static const double WARP_LEAST_SQUARE = 1e-30; /* squares below count as zero */

/* 1 / sqrt(a) in double from a seed in float, to an ulp or two; 0 where a is too small for one. */
TB_FN double warp_inverse_root(double a)
{
#ifdef __CUDA_ARCH__
    double y = (double)rsqrtf((float)a);
#else
    double y = (double)(1 / sqrtf((float)a));
#endif
    y *= 1.5 - 0.5 * a * y * y;
    y *= 1.5 - 0.5 * a * y * y;
    return a > WARP_LEAST_SQUARE ? y : 0;
}

/* Square of the natural map at rho = 1 of a block's impulses l and velocities x: tb_block_natural
 * (judge.h) of laws without spin and rolling, without its roots and quotients, which are long in double
 * on a card. mu = 0: tangents carry no impulse. */
TB_FN double warp_natural_of(const double l[3], const double x[3], double mu, double lower,
                             double upper)
{
    const double slip2 = x[1] * x[1] + x[2] * x[2];
    double n = l[0] - x[0] - mu * (slip2 * warp_inverse_root(slip2)), t1 = l[1] - x[1],
           t2 = l[2] - x[2];
    if (mu > 0) {
        /* nearest point of the cone { |t| <= mu n } */
        const double length2 = t1 * t1 + t2 * t2, inverse = warp_inverse_root(length2);
        const double length = length2 * inverse;
        if (length > mu * n) {
            n = tb_cone_rim(n, length, mu);
            t1 *= mu * n * inverse;
            t2 *= mu * n * inverse;
        }
    } else {
        n = fmin(fmax(n, lower), upper);
        t1 = l[1], t2 = l[2];
    }
    return (l[0] - n) * (l[0] - n) + (l[1] - t1) * (l[1] - t1) + (l[2] - t2) * (l[2] - t2);
}

/* ---- where a block's numbers lie ---- */

/* Where the columns of a tree are: dof i of it has the column column + i - dof. A small world counts as one
 * tree. A body that never moves has no column of a pile: WARP_COLUMNS. */
typedef struct warp_tree_place {
    int32_t dof, column;
} warp_tree_place;

/* The column of a dof of the tree. */
TB_FN int32_t warp_column_of(warp_tree_place place, int32_t dof)
{
    return place.column + dof - place.dof;
}

/* Whitened rows of a block in shared memory. */
typedef struct warp_rows {
    tb_real *y;     /* the first number of the first row */
    int32_t stride; /* from a row to the next one */
    int32_t at[2];  /* from there the number of the first dof of each side's tree */
} warp_rows;

/* Residual and counts of a solve. */
typedef struct warp_effort {
    double residual, start; /* start: of the impulses that the solve began with */
    int32_t rounds, sweeps;
} warp_effort;

#endif
