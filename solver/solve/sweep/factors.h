/* Factors of one block's update, from its diagonal block of G: r-factors by rows, or a whole
 * block. */
#ifndef TB_FACTORS_H
#define TB_FACTORS_H

#include "solve/sweep/sweep.h"

/* Coupling of a contact's rows above which it pays to solve it as a block. Below, a projected step
 * is as good and half the price: a sphere's own block is diagonal. */
#define TB_COUPLING_THAT_PAYS TB_R(0.05)

/* largest off-diagonal number of a 3x3 block against its diagonal, squared;
 * and its tangents' ratio */
TB_FN bool tb_block_solve_pays(const tb_real g[9])
{
    if (!(g[0] > 0) || !(g[4] > 0) || !(g[8] > 0)) return false;
    const tb_real c = TB_COUPLING_THAT_PAYS * TB_COUPLING_THAT_PAYS;
    const tb_real nt0 = tb_abs(g[1] * g[3]), nt1 = tb_abs(g[2] * g[6]), tt = tb_abs(g[5] * g[7]);
    if (nt0 > c * g[0] * g[4] || nt1 > c * g[0] * g[8] || tt > c * g[4] * g[8]) return true;
    return tb_min(g[4], g[8]) < TB_R(0.7) * tb_max(g[4], g[8]);
}

/* Sliding friction can press the contact together faster than its normal impulse parts it
 * (Painleve): then no r makes projected steps contract, and a single contact needs a solution of
 * the whole. Rare: a slender body, mu > 1. */
TB_FN bool tb_block_is_painleve(const tb_real g[9], tb_real mu)
{
    return mu * tb_hypot2(g[1], g[2]) >= g[0] || mu * tb_hypot2(g[3], g[6]) >= g[0];
}

/* omega over the diagonal, or none where a row has no mass behind it */
TB_FN tb_real tb_over(tb_real omega, tb_real diagonal)
{
    const tb_real r = diagonal > 0 ? omega / diagonal : 0;
    return r <= TB_REAL_MAX ? r : 0;
}

/* Nützi 4.41: one r for the normal, one for all rows of friction by the largest of their diagonals.
 * Three rows and more that are projected as one can couple so far that this overshoots: half of
 * Gershgorin's bound on their eigenvalues is the limit of stability. */
TB_FN void tb_block_diagonal_r(tb_sweep_block *block, const tb_real *g, tb_real omega)
{
    const int n = block->rows;
    block->r_normal = tb_over(omega, g[0]);
    block->r_friction = block->r_normal;
    if (n == 1) return;
    const int first = block->law == TB_LAW_BILATERAL ? 0 : 1;
    tb_real largest = 0, bound = 0;
    for (int i = first; i < n; i++) {
        tb_real sum = 0;
        for (int j = first; j < n; j++) sum += tb_abs(g[i * n + j]);
        largest = tb_max(largest, g[i * n + i]);
        bound = tb_max(bound, sum);
    }
    if (n > 3) largest = tb_max(largest, TB_R(0.6) * bound);
    block->r_friction = tb_over(omega, largest);
}

#endif
