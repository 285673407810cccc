/* Small convex programs with bounds, by a team: SCHURPA over dense matrices.
 *
 *     min 1/2 x' H x + f' x    subject to    lower <= x <= upper
 *
 * The method is that of qp.h (Litven, chapters 2 and 3), for programs that a team solves within a
 * step (base/team.h), on a card or on a processor and with the same bytes: no black boxes, and no
 * LAPACK. A bound fixes its variable, so the factored matrix is H over the free variables
 * (his C0_solve),
 *
 *     H_FF = L L',   L^-1 is stored: a solve is two products, which lanes share,
 *                    where substitution would go row by row;
 *
 * and a set that differs from the factored one borders it. A variable that was bound and now is
 * free (r) brings the column H_Fr, one that was free and now is bound (a) the column e_a:
 *
 *     [ H_FF  U ] [x_F       ]   [w_F     ]        U = [H_Fr  e_a],   D = [H_rr  0]
 *     [ U'    D ] [x_r, -nu_a] = [w_r, d_a]                               [0     0]
 *
 *     t = L^-1 w_F,  T = L^-1 U,  (D - T' T) pi = (w_r, d_a) - T' t,  x_F = L'^-1 (t - T pi).
 *
 * T is kept column by column while its variable differs. D - T' T is positive definite over r and
 * negative definite over a, and such a matrix has L D L' whatever the order of its rows, without
 * pivots (Vanderbei, Symmetric quasidefinite matrices, SIAM J. Optimization 5, 1995): new columns
 * are new rows of the factor.
 *
 * While sets are new, every variable that violates its conditions changes. When a set comes back, or
 * the sets have changed for long, only the first such variable changes: with H positive definite, no
 * set then comes back (Murty's least index, for bounds: Judice and Pires, Computers and Operations
 * Research 21, 1994). */
#ifndef TB_BOUNDED_QP_H
#define TB_BOUNDED_QP_H

#include "tribo_qp.h"
#include "base/base.h"

/* Where a variable is. */
enum { TB_BOUND_FREE, TB_BOUND_LOWER, TB_BOUND_UPPER };

/* Result of a solve and its counts. */
typedef struct tb_bounded_result {
    tb_status status;   /* OK, NOT_CONVERGED, DIVERGED: numbers that are not finite */
    int32_t iterations; /* systems */
    int32_t solves;     /* right-hand sides: of systems, of bordered columns, of refinements */
    int32_t factorizations, resets, refinements, deletions, largest_border;
    int32_t cycle;   /* sets after which one had come back; 0: none did */
    double relative; /* KKT residual, as that of tb_kkt */
} tb_bounded_result;

/* A program with the arrays that persist between solves. Each lane has one; the arrays are the
 * team's. The caller fills the first ones: H before the first solve; f, bounds and the first set
 * before each. */
#define tb_bounded TB_SYMBOL(tb_bounded)
typedef struct tb_bounded {
    int32_t n;
    tb_real *h;             /* n x n, both triangles, positive definite */
    tb_real *f;             /* n */
    tb_real *lower, *upper; /* n; infinite: none; equal: the variable has this value */
    uint8_t *state;         /* n: where to begin, then where it ended */
    tb_real *x;             /* n: the answer */
    double *gradient;       /* n: H x + f there */
    double tolerance;       /* of the KKT residual */
    uint64_t hash;          /* of where it ended */

    /* the factored set */
    bool factored;
    int32_t frees;   /* free variables */
    int32_t *free;   /* their indices, ascending */
    int32_t *place;  /* n: position among them, or -1 */
    tb_real *root;   /* n x n; frees x frees: L^-1 below the diagonal, its transpose above */
    tb_real *pivots; /* frees: 1 / L_jj */
    int32_t used;    /* right-hand sides since then */

    /* the border: a slot for each variable that differs */
    int32_t limit, changes;
    int32_t *changed; /* limit: the variable of a slot */
    int32_t *slot;    /* n: its slot, or -1 */
    tb_real *border;  /* frees x limit: T, row by row */
    tb_real *schur;   /* limit x limit: D - T' T */
    int32_t rows;     /* of its factor that are up to date */
    tb_real *factor;  /* limit x limit: L above, L D below */
    tb_real *scale;   /* limit: D */
    tb_real *pi;      /* limit */

    uint8_t *next;   /* n: the predicted set */
    uint64_t *known; /* hashes of the sets that were solved for */
    /* numbers on their way: n each */
    tb_real *fixed, *force, *own, *half, *step, *along;
} tb_bounded;

/* Takes the caller's arrays; without H where `with_h` is false. */
#define tb_bounded_take TB_SYMBOL(tb_bounded_take)
TB_EXTERN tb_status tb_bounded_take(tb_bounded *b, int32_t n, bool with_h, tb_arena *arena);

/* Takes the others. */
#define tb_bounded_begin TB_SYMBOL(tb_bounded_begin)
TB_EXTERN tb_status tb_bounded_begin(tb_bounded *b, tb_arena *arena);

/* Solves. FAILED_PRECONDITION where H is not definite to working precision; CANCELLED, where
 * `cancelled` says so between systems (on processors; NULL: never). */
#define tb_bounded_solve TB_SYMBOL(tb_bounded_solve)
TB_EXTERN tb_status tb_bounded_solve(tb_bounded *b, const tb_solve_options *options,
                                     tb_bounded_result *result);

/* ---- the factor and the border (bounded_factor.c) ---- */

/* Makes `next` the set, factored. False: H is not definite. */
#define tb_bounded_factor TB_SYMBOL(tb_bounded_factor)
TB_EXTERN bool tb_bounded_factor(tb_bounded *b, tb_bounded_result *result);

/* Makes `next` the set by a border. False where that would be too large, has cost too many solves,
 * or is singular to working precision: H_FF is to be factored again. */
#define tb_bounded_border TB_SYMBOL(tb_bounded_border)
TB_EXTERN bool tb_bounded_border(tb_bounded *b, tb_bounded_result *result);

/* The present set's system: x of the free variables for the right-hand side `force` (n). `fixed`
 * has the values of variables that are bound now and were free; NULL: zero. */
#define tb_bounded_system TB_SYMBOL(tb_bounded_system)
TB_EXTERN void tb_bounded_system(tb_bounded *b, const tb_real *force, const tb_real *fixed,
                                 tb_real *to);

/* Which k count for number i of a product. */
enum { TB_ALL_COLUMNS, TB_COLUMNS_UP_TO, TB_COLUMNS_FROM };

/* to_i += sum over k of m[k stride + i] v_k for n numbers, in the order of k; zeros of v are left
 * out. A sync has to follow. */
#define tb_bounded_add TB_SYMBOL(tb_bounded_add)
TB_EXTERN void tb_bounded_add(tb_real *to, int32_t n, const tb_real *m, int64_t stride,
                              const tb_real *v, int32_t count, int which);

#endif
