/* What the files of the active-set methods share. */
#ifndef TB_QP_INTERNAL_H
#define TB_QP_INTERNAL_H

#include "solve/qp.h"

struct tb_qp_work {
    const tb_qp *qp;
    tb_k0 k0;
    tb_qp_options options;
    int32_t most;  /* constraints that can be active at a time */
    int32_t limit; /* bordered columns */
    tb_qp_result *result;

    /* K0: the set that was factored, and what its solve gave for (-f; b0) */
    bool factored;
    int32_t *base; /* base_count constraints, ascending */
    int32_t base_count;
    int32_t *base_place;    /* constraints: position in `base`, or -1 */
    tb_real *base_solution; /* n + base_count: v of (3.7) */
    int32_t solves_of_base; /* right-hand sides since the factorization */
    tb_real largest_f, largest_a, largest_b;

    /* the border: one slot for every constraint that differs from the base */
    int32_t *changed; /* limit: the constraint of a slot */
    int32_t changes;
    int32_t *wanted; /* limit: positions in the base of the constraints that were taken away */
    int32_t *slot;   /* constraints: its slot, or -1 */
    tb_real *border; /* limit columns of n + most: R = K0^-1 U */
    tb_real *schur;  /* limit x limit: -U' R */
    tb_real *schur_factor, *schur_work;
    int *schur_pivots, *schur_integers;
    tb_real *pi; /* limit */

    /* the last answer */
    uint8_t *active; /* constraints */
    uint8_t *next;   /* constraints */
    tb_real *y;      /* n + base_count */
    tb_real *step;   /* n + most, of a refinement */
    tb_real *x;      /* n */
    tb_real *lambda; /* constraints */
    double *product; /* n */
    tb_real *rest;   /* n: what the multipliers of the base must make */

    /* sets that systems were solved for: bits, and a hash of each */
    int32_t visits, words;
    uint64_t *hash, *visited; /* maximum_iterations + 1; the same times words */
};

/* a_i' z */
TB_FN double tb_qp_row_times(const tb_qp *qp, int32_t i, const tb_real *z)
{
    double sum = 0;
    for (int32_t k = qp->row_start[i]; k < qp->row_start[i + 1]; k++)
        sum += (double)qp->value[k] * (double)z[qp->column[k]];
    return sum;
}

/* Monotonic seconds. */
#define tb_qp_clock TB_SYMBOL(tb_qp_clock)
TB_EXTERN double tb_qp_clock(void);

/* K0's solve, counted and timed. `wanted` as there. */
#define tb_qp_solve_k0 TB_SYMBOL(tb_qp_solve_k0)
TB_EXTERN void tb_qp_solve_k0(tb_qp_work *work, int32_t columns, tb_real *x, const int32_t *wanted,
                              int32_t number_wanted);

/* Changes the border so that it stands for `set`. False where it would be too large, has cost too
 * many solves, or the Schur matrix is singular to working precision: K0 is to be factored again. */
#define tb_qp_border_move TB_SYMBOL(tb_qp_border_move)
TB_EXTERN bool tb_qp_border_move(tb_qp_work *work, const uint8_t *set);

/* Solves the bordered system: y holds K0^-1 of the upper right-hand side and becomes the answer, pi
 * holds the lower one (limit numbers) and becomes the border's unknowns. Where K0 has a way to its
 * multipliers, columns of R lack most of theirs, and so does y. */
#define tb_qp_border_solve TB_SYMBOL(tb_qp_border_solve)
TB_EXTERN void tb_qp_border_solve(const tb_qp_work *work, tb_real *y, tb_real *pi);

/* No changes: the base is the set. */
#define tb_qp_border_clear TB_SYMBOL(tb_qp_border_clear)
TB_EXTERN void tb_qp_border_clear(tb_qp_work *work);

/* The set of the solution by the dual method, one constraint at a time. False: there is no solution,
 * or the program is too large for dense matrices, or H with the equalities is not definite. */
#define tb_qp_dual_set TB_SYMBOL(tb_qp_dual_set)
TB_EXTERN bool tb_qp_dual_set(const tb_qp *qp, uint8_t *set, int32_t *steps);

/* The KKT residual; `product` (n doubles) is scratch. */
#define tb_qp_measure TB_SYMBOL(tb_qp_measure)
TB_EXTERN void tb_qp_measure(const tb_qp *qp, const tb_real *x, const tb_real *lambda,
                             double *product, tb_kkt *kkt);

#endif
