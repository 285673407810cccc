/* Convex quadratic programs by primal-dual active sets (Litven, A parallel active-set method for
 * solving frictional contact problems, UBC 2013, chapters 2 and 3).
 *
 *     min 1/2 x' H x + f' x    subject to    a_i' x  = b_i   for the first `equalities` rows,
 *                                            a_i' x <= b_i   for the others
 *
 * A working set guesses which inequalities hold with equality; a saddle system gives x and the
 * multipliers of the guess, and all constraints that contradict it change at once (his 2.12):
 *
 *     [ H   A ] [x     ]   [-f]          next set = { i : b_i - a_i' x - lambda_i < 0 }
 *     [ A'  0 ] [lambda] = [ b]
 *
 * This is Newton's method on min(b - A' x, lambda) = 0; where the set no longer changes, the KKT
 * conditions hold. PDAS, his DIRECT, factors every system afresh. SCHURPA factors the first one,
 * K0, and borders it by a row and a column for every constraint that has changed since: the column
 * (a_i; 0) for an added constraint, (0; e_j) for a removed one (3.5). A later iteration solves for
 * the new columns together, and factors a matrix as large as the number of changes.
 *
 * K0's structure is hidden behind a tb_k0, three functions that an application provides: there is
 * one for any constraints (dense), one for bounds on variables with a band (contact), one for four
 * facets a cell (friction). */
#ifndef TB_QP_H
#define TB_QP_H

#include "tribo_qp.h"
#include "qp/band.h"

/* Status of an inequality before a solve. */
enum {
    TB_PIN_NONE, /* nothing: the method decides */
    TB_PIN_HELD, /* holds with equality; its multiplier may have any sign */
    TB_PIN_OFF   /* is left out */
};

/* Borrows its arrays. Rows of A are compressed; entries of a row in any order, no column twice. */
#define tb_qp TB_SYMBOL(tb_qp)
typedef struct tb_qp {
    int32_t n, half_bandwidth;
    const tb_real *hessian; /* LAPACK's lower band, (half_bandwidth + 1) x n; dense: n - 1 */
    const tb_real *f;       /* n */
    int32_t constraints, equalities;
    const int32_t *row_start; /* constraints + 1 */
    const int32_t *column;
    const tb_real *value;
    const tb_real *b;    /* constraints */
    const uint8_t *pins; /* constraints, or NULL: none; may change from solve to solve as f and b */
} tb_qp;

/* K0's solve in halves, of one whose rows have a simple right inverse: with A0' Y = I, Z a basis of
 * the rows' null space, N numbers, and Z' H Z = L L',
 *
 *     K0 (x; nu) = (a; e)   has   x = Y e + Z L'^-1 t,   t = L^-1 Z' (a - H Y e),
 *
 * and products of two right-hand sides in K0^-1 are those of their t, but for the terms of Y. So a
 * bordered column costs half a solve, and the other half is made once for them all.
 *
 * unknowns    N, of the last factorization
 * particular  x <- Y e
 * column      column `place` of Y: its entries' variables and numbers; returns how many, 1 or 2
 * forward     t <- L^-1 Z' r for `columns` vectors r (n each, one behind the other), N each
 * backward    x <- x + Z L'^-1 t; t is used up
 * multipliers nu with A0 nu = r, for an r (n) in the range of A0, as stationarity requires */
#define tb_k0_halves TB_SYMBOL(tb_k0_halves)
typedef struct tb_k0_halves {
    int32_t (*unknowns)(const void *context);
    void (*particular)(const void *context, const tb_real *e, tb_real *x);
    int32_t (*column)(const void *context, int32_t place, int32_t variable[2], tb_real number[2]);
    void (*forward)(void *context, int32_t columns, const tb_real *r, tb_real *t);
    void (*backward)(void *context, tb_real *t, tb_real *x);
    void (*multipliers)(const void *context, const tb_real *r, tb_real *nu);
} tb_k0_halves;

/* The saddle matrix of a working set behind three functions.
 *
 * factor  takes K0 = [H A0; A0' 0] for `count` constraints `active` (ascending). It may not keep f
 *         or b. FAILED_PRECONDITION where K0 is singular; *dependent is then the position in
 *         `active` of a constraint without which it may be better, or -1: not known.
 *         RESOURCE_EXHAUSTED where memory is refused.
 * solve   replaces `columns` right-hand sides, n + count numbers each, one behind the other.
 * halves  replaces `solve`, or is NULL. */
#define tb_k0 TB_SYMBOL(tb_k0)
typedef struct tb_k0 {
    void *context;
    tb_status (*factor)(void *context, const int32_t *active, int32_t count, int32_t *dependent);
    void (*solve)(void *context, int32_t columns, tb_real *x);
    const tb_k0_halves *halves;
} tb_k0;

/* Any constraints, H positive definite: Cholesky of H and of A0' H^-1 A0 (LAPACK). If H is only
 * semidefinite, L D L' of the whole of K0. Memory: n^2 and the active rows. */
#define tb_k0_dense TB_SYMBOL(tb_k0_dense)
TB_EXTERN tb_status tb_k0_dense(const tb_qp *qp, tb_arena *arena, tb_k0 *k0);

/* Constraints of one entry each (Litven's C0_solve, corrected): bounds on single variables. The
 * free variables' part of H keeps its band and is factored by tb_band, blocks as for tb_band_take,
 * or by LAPACK's band routines. UNSUPPORTED where a row has more entries. */
#define tb_k0_bounds TB_SYMBOL(tb_k0_bounds)
TB_EXTERN tb_status tb_k0_bounds(const tb_qp *qp, bool lapack, int32_t block, tb_arena *arena,
                                 tb_k0 *k0);

/* Friction (Litven's F0_solve, corrected): pairs of variables 2c, 2c + 1 with rows of two entries
 * 1 or -1, at most two independent ones of a pair active at a time, as four facets
 * |x_2c| + |x_2c+1| <= b have them. UNSUPPORTED where a row is not of that kind. */
#define tb_k0_facets TB_SYMBOL(tb_k0_facets)
TB_EXTERN tb_status tb_k0_facets(const tb_qp *qp, int32_t block, tb_arena *arena, tb_k0 *k0);

/* State of a program between solves: K0's factorization and the bordered columns, valid while H
 * and the rows stay the same; f and b may change. */
#define tb_qp_workspace TB_SYMBOL(tb_qp_workspace)
typedef struct tb_qp_workspace tb_qp_workspace;

/* Takes the memory for a program (borrowed, with k0 copied) from the arena; nothing is computed.
 * INVALID_ARGUMENT where sizes or options make no sense, RESOURCE_EXHAUSTED without memory. */
#define tb_qp_begin TB_SYMBOL(tb_qp_begin)
TB_EXTERN tb_status tb_qp_begin(const tb_qp *qp, const tb_k0 *k0, const tb_qp_options *options,
                                tb_arena *arena, tb_qp_workspace **work);

/* Solves from the working set `active` (constraints, 0 or 1; equalities count as active), which
 * becomes the last set. x (n) and lambda (constraints) are results only. Every change of set is the
 * full Newton step while sets are new. When a set repeats, which PDASM may do, steps change one
 * constraint, the first: bounds with positive definite H then end (Murty, Linear complementarity,
 * 1988, 4.2). When sets repeat even so, the dual method finds the set (qp_dual.c); NOT_CONVERGED
 * remains for programs that have no solution, and for the limit of iterations. Failures are
 * FAILED_PRECONDITION (the equalities alone make a singular system), CANCELLED and
 * RESOURCE_EXHAUSTED. */
#define tb_qp_solve TB_SYMBOL(tb_qp_solve)
TB_EXTERN tb_status tb_qp_solve(tb_qp_workspace *work, uint8_t *active, tb_real *x, tb_real *lambda,
                                tb_qp_result *result);

/* Has `cancelled` asked between saddle systems and in the dual method: true ends a solve as
 * CANCELLED. NULL: never. */
#define tb_qp_listen TB_SYMBOL(tb_qp_listen)
TB_EXTERN void tb_qp_listen(tb_qp_workspace *work, bool (*cancelled)(void *context), void *context);

/* Drops the factorization: the next solve factors at the set that it is given. */
#define tb_qp_forget TB_SYMBOL(tb_qp_forget)
TB_EXTERN void tb_qp_forget(tb_qp_workspace *work);

/* The KKT residual of any x and lambda. `scratch` gives 2 n doubles. */
#define tb_qp_judge TB_SYMBOL(tb_qp_judge)
TB_EXTERN tb_status tb_qp_judge(const tb_qp *qp, const tb_real *x, const tb_real *lambda,
                                tb_arena *scratch, tb_kkt *kkt);

#endif
