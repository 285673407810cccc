/* Shared by the sweeping solvers: the prepared problem, and one block's update.
 *
 * A sweep visits the blocks in their order. It gathers a block's xi (from the whitened velocity s,
 * from rows of G, or from rows of T), moves its impulses by the law, and in the factorized form
 * scatters the change into s. The update in the middle sees only a block's own numbers (its
 * diagonal block of G, its r-factors) and is the same in every form, for SOR and JOR, on CPU and
 * GPU.
 *
 * Rows of friction are projected together with the new normal impulse, after the normal's own
 * change has been propagated to them (Nützi 3.7). They share one r, since their set is round
 * (4.41). */
#ifndef TB_SWEEP_H
#define TB_SWEEP_H

#include "contact/contact.h"

/* Relaxation. Gauss-Seidel: 1 is the plain method; more gained nothing on the problem files, and
 * can diverge. Jacobi: the largest that was stable in Nützi's dense packings (sec. 6.2); divergence
 * halves it. */
#define TB_SOR_OMEGA 1.0
#define TB_JOR_OMEGA 0.35

/* How a block's rows lie over the dofs; the common shapes have kernels of fixed length. */
typedef enum tb_sweep_shape {
    TB_SHAPE_OF_ANY, /* runs of any number and length */
    TB_SHAPE_OF_ONE, /* one run of 6: a free body against the world */
    TB_SHAPE_OF_TWO  /* two runs of 6: two free bodies */
} tb_sweep_shape;

/* How a block is solved. */
enum {
    TB_SOLVE_BY_ROWS,
    TB_SOLVE_WHOLE,       /* exactly for the others as they are, for a while (see leave_blocks) */
    TB_SOLVE_WHOLE_ALWAYS /* likewise, because rows cannot be solved one by one (Painlevé block) */
};

/* One block as the sweep reads it: 128 bytes in double, without gaps, so that it is written at
 * once. */
typedef struct TB_ALIGNED(16) tb_sweep_block {
    uint8_t law, rows, shape, block_solve;
    int32_t row;
    int32_t dof_a, dof_b; /* first dofs of the runs, in the shapes ONE and TWO */
    int64_t value;        /* into problem->values */
    int64_t local;        /* rows > 3: first number of its diagonal block in `local` */
    tb_real mu;
    tb_real g[9];                 /* diagonal block, rows x rows row-major; rows <= 3 */
    tb_real r_normal, r_friction; /* of the first row and of all others (bilateral: all equal) */
} tb_sweep_block;

/* Moves a Coulomb contact's impulses by one projected step: normal, then both tangents.
 * xi comes in as gathered; `change` (3) goes out as new - old. */
TB_FN void tb_update_coulomb(const tb_sweep_block *block, int propagate, const tb_real xi[3],
                             tb_real lambda[3], tb_real change[3])
{
    /* one contact's work is a chain of dependent operations: independent ones come before the
     * new normal impulse */
    const tb_real r = block->r_friction;
    tb_real t[2] = {lambda[1] - r * xi[1], lambda[2] - r * xi[2]};
    const tb_real carry[2] = {r * block->g[3], r * block->g[6]};
    const tb_real normal = tb_max(lambda[0] - block->r_normal * xi[0], 0);
    change[0] = normal - lambda[0];
    if (propagate) {
        t[0] -= carry[0] * change[0];
        t[1] -= carry[1] * change[0];
    }
    tb_prox_disk(t, block->mu * normal);
    change[1] = t[0] - lambda[1];
    change[2] = t[1] - lambda[2];
    lambda[0] = normal;
    lambda[1] = t[0];
    lambda[2] = t[1];
}

/* The same contact solved exactly for xi of all others as they are, then over-relaxed by omega and
 * brought back into the cone. `alpha` is kept from sweep to sweep. */
TB_FN_LARGE void tb_update_coulomb_exact(const tb_sweep_block *block, tb_real omega,
                                         const tb_real xi[3], tb_real lambda[3], tb_real change[3],
                                         tb_real *alpha)
{
    const tb_real *w = block->g;
    const tb_real old[3] = {lambda[0], lambda[1], lambda[2]};
    const tb_real b[3] = {xi[0] - (w[0] * old[0] + w[1] * old[1] + w[2] * old[2]),
                          xi[1] - (w[3] * old[0] + w[4] * old[1] + w[5] * old[2]),
                          xi[2] - (w[6] * old[0] + w[7] * old[1] + w[8] * old[2])};
    const tb_local_contact local = tb_local_prepare(w, block->r_normal);
    tb_local_solve(&local, w, b, block->mu, 4, alpha, lambda);
    if (omega != 1) {
        for (int i = 0; i < 3; i++) lambda[i] = old[i] + omega * (lambda[i] - old[i]);
        tb_prox_coulomb(lambda, block->mu);
    }
    for (int i = 0; i < 3; i++) change[i] = lambda[i] - old[i];
}

/* Any law, row group by row group, from its diagonal block g (rows x rows). For TB_LAW_BILATERAL
 * each row in turn. r: of the first row and of the others. */
TB_FN_LARGE void tb_update_any(const tb_sweep_block *block, const tb_real *g, tb_real lower,
                               tb_real upper, int propagate, tb_real *xi, tb_real *lambda,
                               tb_real *change)
{
    const int n = block->rows;
    if (block->law == TB_LAW_BILATERAL) {
        for (int i = 0; i < n; i++) {
            change[i] = -block->r_friction * xi[i];
            lambda[i] += change[i];
            if (propagate)
                for (int j = i + 1; j < n; j++) xi[j] += g[j * n + i] * change[i];
        }
        return;
    }
    tb_real x[TB_BLOCK_ROWS];

    /* the first row */
    x[0] = lambda[0] - block->r_normal * xi[0];
    x[0] = block->law == TB_LAW_BOX ? tb_prox_box(x[0], lower, upper) : tb_prox_unilateral(x[0]);
    change[0] = x[0] - lambda[0];
    if (propagate)
        for (int j = 1; j < n; j++) xi[j] += g[j * n] * change[0];

    /* friction, as one */
    for (int i = 1; i < n; i++) x[i] = lambda[i] - block->r_friction * xi[i];
    switch (block->law) {
    case TB_LAW_PLANAR: x[1] = tb_clamp(x[1], -block->mu * x[0], block->mu * x[0]); break;
    case TB_LAW_COULOMB: tb_prox_disk(x + 1, block->mu * x[0]); break;
    case TB_LAW_SPIN:
    case TB_LAW_ROLLING: tb_prox_ellipsoid(x + 1, block->mu * x[0]); break;
    default: break;
    }
    if (block->law == TB_LAW_ROLLING) {
        if (propagate) {
            for (int j = 4; j < 6; j++) {
                tb_real carried = 0;
                for (int i = 1; i < 4; i++) carried += g[j * n + i] * (x[i] - lambda[i]);
                x[j] -= block->r_friction * carried;
            }
        }
        tb_prox_disk(x + 4, x[0]);
    }
    for (int i = 1; i < n; i++) change[i] = x[i] - lambda[i];
    for (int i = 0; i < n; i++) lambda[i] = x[i];
}

#endif
