/* Convex quadratic programs by primal-dual active sets: the second public header of libtribo.
 *
 * Source: Litven, A parallel active-set method for solving frictional contact problems, UBC
 * 2013. A program is independent of contacts; the solver `staggered` builds its two programs
 * with this interface. */
#ifndef TRIBO_QP_H
#define TRIBO_QP_H

#include "tribo.h"

#ifdef __cplusplus
extern "C" {
#endif

/*     min 1/2 x' H x + f' x    subject to    a_i' x  = b_i   for the first `equalities` rows,
 *                                            a_i' x <= b_i   for the others
 *
 * with H symmetric and positive definite, at least on the null space of the equalities. Arrays
 * are borrowed. */
typedef struct tb_qp_program {
    int32_t n, half_bandwidth; /* half_bandwidth: n - 1 if H is dense */
    /* lower band by columns, in LAPACK's layout: element (i, j), 0 <= i - j <= half_bandwidth,
     * at [i - j + j * (half_bandwidth + 1)] */
    const double *hessian;
    const double *f; /* n */
    int32_t constraints, equalities;
    const int32_t *row_start; /* constraints + 1; compressed rows; no column occurs twice in a
                                 row */
    const int32_t *column;
    const double *value;
    const double *b; /* constraints */
} tb_qp_program;

/* Primal-dual active sets (Litven, A parallel active-set method for solving frictional contact
 * problems, UBC 2013): PDAS factors every system; SCHURPA factors the first system and then
 * borders it. */
typedef enum tb_qp_method { TB_QP_PDAS, TB_QP_SCHURPA } tb_qp_method;

/* Solver of a saddle system. */
typedef enum tb_qp_system {
    TB_QP_AUTO,        /* BOUNDS if all rows have one entry, FACETS if all rows fit FACETS, else
                          DENSE */
    TB_QP_DENSE,       /* any rows: Cholesky of H and of a matrix of the size of the active set */
    TB_QP_BOUNDS,      /* rows of one entry: block banded Cholesky of the free variables' part */
    TB_QP_BOUNDS_BAND, /* the same with LAPACK's band routines */
    TB_QP_FACETS       /* rows of two entries 1 or -1 on variables 2c, 2c + 1 */
} tb_qp_system;

typedef struct tb_qp_options {
    tb_qp_method method;
    tb_precision precision;
    tb_qp_system system;
    /* On a GPU the whole method runs on the card, with its own solver for AUTO, BOUNDS and
     * FACETS. That solver takes rows of one entry, and rows of two entries of equal magnitude on
     * variables 2c, 2c + 1, with one kind of row per pair. Other rows give UNSUPPORTED; the
     * backend AUTO solves them on the CPU. The GPU solver borders at most 512 columns, factors
     * where that is cheaper than a large border, and solves for some columns in advance. */
    tb_backend_choice backend;
    int32_t device;              /* of that backend */
    int32_t block;               /* rows of a block of the banded solver; 0: its own choice */
    int32_t maximum_iterations;  /* saddle systems */
    int32_t maximum_solves;      /* right-hand sides of one factorization, then a fresh one */
    int32_t maximum_changes;     /* bordered columns, then a fresh factorization */
    int32_t maximum_refinements; /* of one saddle system, while the KKT residual is too large */
    double tolerance;            /* of the relative KKT residual; 0: 1e-10, and 1e-4 in float */
    double tie; /* relative distance from a constraint within which its state does not change; 0:
                   100 roundings */
} tb_qp_options;

/* SCHURPA in double, AUTO, on the CPU, 100 iterations, 500 solves, 500 changes, 4 refinements. */
tb_qp_options tb_qp_defaults(void);

/* Largest components, computed in double from x and lambda alone. */
typedef struct tb_kkt {
    double stationarity;    /* of H x + f + A lambda */
    double primal;          /* of a' x - b: positive part for inequalities, magnitude for
                               equalities */
    double dual;            /* of -lambda of inequalities, positive part */
    double complementarity; /* of lambda (b - a' x) of inequalities */
    double relative;        /* largest of the four, each divided by the size of its summands */
} tb_kkt;

typedef struct tb_qp_result {
    tb_status status; /* OK, NOT_CONVERGED, DIVERGED (numbers that are not finite) */
    int32_t iterations;
    int32_t solves, batches; /* right-hand sides, and the number of solves that share them in
                                batches */
    int32_t factorizations;
    int32_t resets;    /* factorizations of SCHURPA because of its limits, for accuracy, or where a
                          card factors sooner than it borders */
    int32_t deletions; /* bordered columns removed because their change was undone */
    int32_t refinements;
    int32_t dropped;    /* constraints left out of the sets as linearly dependent */
    int32_t cycle;      /* period of a repeated active set; the method makes single changes after
                           it */
    int32_t dual_steps; /* steps of the dual method, which finishes when even single changes
                           repeat a set */
    int32_t largest_border; /* most bordered columns at one time */
    int32_t active;         /* inequalities of the last set */
    int32_t corrected;      /* inequalities in which the first and the last set differ */
    double factor_seconds, solve_seconds, seconds; /* `seconds`: the whole method */
    tb_kkt kkt;
} tb_qp_result;

/* Solves from the working set `active` (constraints, 0 or 1; entries of equalities are ignored)
 * and replaces it by the final set. Writes x (n) and the multipliers lambda (constraints). A
 * missed tolerance, also of an infeasible program, is reported in result->status.
 * INVALID_ARGUMENT names the field, UNSUPPORTED the rows that `system` or `backend` cannot take;
 * FAILED_PRECONDITION: the equalities alone give a singular system; RESOURCE_EXHAUSTED;
 * NOT_FOUND, UNAVAILABLE, ABORTED: the device. */
tb_status tb_qp_program_solve(const tb_qp_program *, const tb_qp_options *, uint8_t *active,
                              double *x, double *lambda, tb_qp_result *, tb_error *);

/* A solver for many programs with the same H, rows and options, and different f, b and active sets.
 *
 * SCHURPA keeps the factorization of K0, its active set and the bordered columns between solves, on
 * the CPU or on the card. The next solve borders that factorization, so a solve from a near set
 * needs no new one (result->factorizations is 0). The last digits of a result depend on the solves
 * before it; the same solves in the same order give the same bytes. PDAS keeps only memory.
 *
 * open   borrows the program's H and rows until close; its f and b are only checked. Statuses
 *        of tb_qp_program_solve.
 * solve  as tb_qp_program_solve, for f (n) and b (constraints). After a failure the next one factors.
 * forget drops the kept factorization: the next solve factors at its own active set. */
typedef struct tb_qp_solver tb_qp_solver;
tb_status tb_qp_solver_open(const tb_qp_program *, const tb_qp_options *, tb_qp_solver **,
                            tb_error *);
tb_status tb_qp_solver_solve(tb_qp_solver *, const double *f, const double *b, uint8_t *active,
                             double *x, double *lambda, tb_qp_result *, tb_error *);
void tb_qp_solver_forget(tb_qp_solver *);
void tb_qp_solver_close(tb_qp_solver *); /* NULL is fine */

/* ---- experiments of the thesis ------------------------------------------------------------------ */

/* C = B A for a symmetric band B (n x n, `band` as a program's hessian) and a dense A of
 * `columns` columns of n numbers, column-major: Litven's symgbmm (chapter 6) in three variants, and
 * the general product that he compares with. NAIVE and SHARED sum in the same order and give the same
 * bytes. */
typedef enum tb_symgbmm_variant {
    TB_SYMGBMM_HOST,   /* CPU: the product that this library's solvers use */
    TB_SYMGBMM_NAIVE,  /* GPU: one lane for each number of C, reads from global memory */
    TB_SYMGBMM_SHARED, /* GPU: tiles of 16 x 16 in shared memory */
    TB_SYMGBMM_GEMM    /* GPU: cuBLAS with all n x n numbers of B; UNSUPPORTED without cuBLAS */
} tb_symgbmm_variant;

/* `seconds`, if not NULL, receives the time of the product alone, without copies. UNAVAILABLE,
 * NOT_FOUND, ABORTED: the GPU; INVALID_ARGUMENT; RESOURCE_EXHAUSTED. */
tb_status tb_symgbmm(tb_symgbmm_variant variant, tb_precision precision, int32_t device, int32_t n,
                     int32_t half_bandwidth, int32_t columns, const double *band, const double *a,
                     double *c, double *seconds, tb_error *);

/* A random program of Litven's section 7.1, without its bounds: H = G G' / (half_bandwidth + 1) +
 * 0.1 with G a lower band of normal numbers, f normal. Writes the hessian, (half_bandwidth + 1) x
 * n, and f. */
tb_status tb_qp_random(int32_t n, int32_t half_bandwidth, uint64_t seed, double *hessian, double *f,
                       tb_error *);

#ifdef __cplusplus
}
#endif
#endif
