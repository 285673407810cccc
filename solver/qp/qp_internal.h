/* Shared declarations of the active-set methods. */
#ifndef TB_QP_INTERNAL_H
#define TB_QP_INTERNAL_H

#include "qp/qp.h"

enum { QP_FORCES = 32 /* columns that are made at a time where K0 solves in halves */ };

/* A right-hand side (a; e) where K0 solves in halves. */
#define tb_qp_half TB_SYMBOL(tb_qp_half)
typedef struct tb_qp_half {
    tb_real *t;          /* unknowns: L^-1 Z' pull */
    tb_real *particular; /* n: Y e */
    tb_real *pull;       /* n: a - H Y e */
} tb_qp_half;

struct tb_qp_workspace {
    const tb_qp *qp;
    tb_k0 k0;
    tb_qp_options options;
    int32_t most;  /* constraints that can be active at a time */
    int32_t limit; /* bordered columns */
    tb_qp_result *result;
    bool (*cancelled)(void *context);
    void *cancelled_context;

    /* K0: the factored set and its solution for (-f; b0) */
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
    int32_t *slot;   /* constraints: its slot, or -1 */
    tb_real *border; /* limit columns of n + most: R = K0^-1 U; in halves, their t */
    tb_real *schur;  /* limit x limit: -U' R */
    tb_real *schur_factor, *schur_workspace;
    int *schur_pivots, *schur_integers;
    tb_real *pi; /* limit */

    /* in halves; else not taken */
    tb_qp_half base_half; /* of (-f; b0) */
    tb_qp_half step_half; /* of a refinement, and of the present solve */
    tb_real *forces;      /* n x QP_FORCES */

    /* the last answer */
    uint8_t *active; /* constraints */
    uint8_t *next;   /* constraints */
    tb_real *y;      /* n + base_count */
    tb_real *step;   /* n + most, of a refinement */
    tb_real *x;      /* n */
    tb_real *lambda; /* constraints */
    double *product; /* n: H x, where it is known */
    bool product_known;
    double *sum;   /* n: scratch */
    tb_real *rest; /* n: right side of the base's multipliers; scratch */

    /* sets that systems were solved for: bits, and a hash of each */
    int32_t visits, words;
    uint64_t *hash, *visited; /* maximum_iterations + 1; the same times words */
};

/* Whether a constraint holds with equality in any case, and whether it is one at all. */
TB_FN bool tb_qp_is_equality(const tb_qp *qp, int32_t i)
{
    return i < qp->equalities || (qp->pins && qp->pins[i] == TB_PIN_HELD);
}

TB_FN bool tb_qp_is_off(const tb_qp *qp, int32_t i)
{
    return qp->pins && qp->pins[i] == TB_PIN_OFF;
}

TB_FN bool tb_qp_is_cancelled(const tb_qp_workspace *work)
{
    return work->cancelled && work->cancelled(work->cancelled_context);
}

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

/* ---- systems ---- */

/* Factors K0 for a set, without the constraints that depend on others in it, and solves its
 * system. */
#define tb_qp_factor_at TB_SYMBOL(tb_qp_factor_at)
TB_EXTERN tb_status tb_qp_factor_at(tb_qp_workspace *work, const uint8_t *set);

/* v = K0^-1 (-f; b0), or the half of it that columns meet. */
#define tb_qp_solve_base TB_SYMBOL(tb_qp_solve_base)
TB_EXTERN void tb_qp_solve_base(tb_qp_workspace *work);

/* Makes a set the present one: by a border where the method has one and it will do. */
#define tb_qp_move_to TB_SYMBOL(tb_qp_move_to)
TB_EXTERN tb_status tb_qp_move_to(tb_qp_workspace *work, const uint8_t *set);

/* x and lambda of the present set; false where they are not finite. */
#define tb_qp_answer TB_SYMBOL(tb_qp_answer)
TB_EXTERN bool tb_qp_answer(tb_qp_workspace *work);

/* One step of iterative refinement; false where it does not stay finite. */
#define tb_qp_refine TB_SYMBOL(tb_qp_refine)
TB_EXTERN bool tb_qp_refine(tb_qp_workspace *work);

/* The answer's KKT residual goes to the result. */
#define tb_qp_measure_answer TB_SYMBOL(tb_qp_measure_answer)
TB_EXTERN void tb_qp_measure_answer(tb_qp_workspace *work);

/* Right-hand sides were solved for since `start`. */
#define tb_qp_count_solves TB_SYMBOL(tb_qp_count_solves)
TB_EXTERN void tb_qp_count_solves(tb_qp_workspace *work, int32_t columns, double start);

/* ---- the border ---- */

/* Changes the border to `set`. False if the border would be too large, has cost too many solves,
 * or the Schur matrix is singular to working precision: the caller then factors K0 again. */
#define tb_qp_border_move TB_SYMBOL(tb_qp_border_move)
TB_EXTERN bool tb_qp_border_move(tb_qp_workspace *work, const uint8_t *set);

/* Solves the bordered system: y holds K0^-1 of the upper right-hand side and becomes the answer, pi
 * holds the lower one (limit numbers) and becomes the border's unknowns. */
#define tb_qp_border_solve TB_SYMBOL(tb_qp_border_solve)
TB_EXTERN void tb_qp_border_solve(const tb_qp_workspace *work, tb_real *y, tb_real *pi);

/* pi <- the Schur matrix's inverse times pi. */
#define tb_qp_border_unknowns TB_SYMBOL(tb_qp_border_unknowns)
TB_EXTERN void tb_qp_border_unknowns(const tb_qp_workspace *work, tb_real *pi);

/* No changes: the base is the set. */
#define tb_qp_border_clear TB_SYMBOL(tb_qp_border_clear)
TB_EXTERN void tb_qp_border_clear(tb_qp_workspace *work);

/* ---- the same in halves (qp_halves.c) ---- */

/* half <- that of (a; e). */
#define tb_qp_half_make TB_SYMBOL(tb_qp_half_make)
TB_EXTERN void tb_qp_half_make(tb_qp_workspace *work, const tb_real *a, const tb_real *e,
                               tb_qp_half *half);

/* Columns and rows of the Schur matrix for the slots from `known` on. */
#define tb_qp_half_columns TB_SYMBOL(tb_qp_half_columns)
TB_EXTERN void tb_qp_half_columns(tb_qp_workspace *work, int32_t known);

/* The bordered system's x for the upper right-hand side `half`, whose t is overwritten. pi as for
 * tb_qp_border_solve. */
#define tb_qp_half_solve TB_SYMBOL(tb_qp_half_solve)
TB_EXTERN void tb_qp_half_solve(tb_qp_workspace *work, const tb_qp_half *half, tb_real *x,
                                tb_real *pi);

/* ---- the end ---- */

/* The set of the solution by the dual method, one constraint at a time. False: there is no
 * solution, or the program is too large for dense matrices, or H with the equalities is not
 * definite, or the work was cancelled. */
#define tb_qp_dual_set TB_SYMBOL(tb_qp_dual_set)
TB_EXTERN bool tb_qp_dual_set(const tb_qp_workspace *work, uint8_t *set, int32_t *steps);

/* The KKT residual, given the product H x; `sum` (n) is scratch. */
#define tb_qp_measure TB_SYMBOL(tb_qp_measure)
TB_EXTERN void tb_qp_measure(const tb_qp *qp, const tb_real *x, const tb_real *lambda,
                             const double *product, double *sum, tb_kkt *kkt);

#endif
