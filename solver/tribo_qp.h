/* Convex quadratic programs by primal-dual active sets: the second public header of libtribo.
 *
 * Litven, A parallel active-set method for solving frictional contact problems, UBC 2013. The
 * programs know no contacts; the solver `staggered` makes its two programs with them. */
#ifndef TRIBO_QP_H
#define TRIBO_QP_H

#include "tribo.h"

#ifdef __cplusplus
extern "C" {
#endif

/*     min 1/2 x' H x + f' x    subject to    a_i' x  = b_i   for the first `equalities` rows,
 *                                            a_i' x <= b_i   for the others
 *
 * with H symmetric and positive definite, or at least so where the equalities leave x free. Arrays
 * are borrowed. */
typedef struct tb_qp_program {
    int32_t n, half_bandwidth; /* half_bandwidth: n - 1 where H is dense */
    /* the lower band by columns, LAPACK's: element (i, j), 0 <= i - j <= half_bandwidth, at
     * [i - j + j * (half_bandwidth + 1)] */
    const double *hessian;
    const double *f; /* n */
    int32_t constraints, equalities;
    const int32_t *row_start; /* constraints + 1; rows are compressed, no column twice in one */
    const int32_t *column;
    const double *value;
    const double *b; /* constraints */
} tb_qp_program;

/* Primal-dual active sets (Litven, A parallel active-set method for solving frictional contact
 * problems, UBC 2013): PDAS factors every system afresh, SCHURPA the first one and borders it. */
typedef enum tb_qp_method { TB_QP_PDAS, TB_QP_SCHURPA } tb_qp_method;

/* How a saddle system is solved. */
typedef enum tb_qp_system {
    TB_QP_AUTO,        /* BOUNDS where all rows have one entry, FACETS where they are such, DENSE */
    TB_QP_DENSE,       /* any rows: Cholesky of H and of a matrix as large as the active set */
    TB_QP_BOUNDS,      /* rows of one entry: block banded Cholesky of the free variables' part */
    TB_QP_BOUNDS_BAND, /* the same by LAPACK's band routines */
    TB_QP_FACETS       /* rows of two entries 1 or -1 on variables 2c, 2c + 1 */
} tb_qp_system;

typedef struct tb_qp_options {
    tb_qp_method method;
    tb_precision precision;
    tb_qp_system system;
    /* On a GPU all of it runs on the card, its own way with AUTO, BOUNDS or FACETS: rows of one
     * entry, and rows of two as large as each other on variables 2c, 2c + 1, of which a pair has
     * one kind. Others are UNSUPPORTED there; a backend AUTO leaves them to the processor. It keeps
     * a smaller border than maximum_changes where the card's memory asks for it, and solves for some
     * columns before they are needed. */
    tb_backend_choice backend;
    int32_t device;              /* of that backend */
    int32_t block;               /* rows of a block of the banded solver; 0: its own choice */
    int32_t maximum_iterations;  /* saddle systems */
    int32_t maximum_solves;      /* right-hand sides of one factorization, then a fresh one */
    int32_t maximum_changes;     /* bordered columns, then a fresh factorization */
    int32_t maximum_refinements; /* of one saddle system, where the KKT residual asks for them */
    double tolerance;            /* of the relative KKT residual; 0: 1e-10, and 1e-4 in float */
    double tie; /* what is within it of a constraint stays as it is, relative; 0: 100 roundings */
} tb_qp_options;

/* SCHURPA in double, AUTO, on the CPU, 100 iterations, 500 solves, 500 changes, 4 refinements. */
tb_qp_options tb_qp_defaults(void);

/* Largest components, computed in double from x and lambda alone. */
typedef struct tb_kkt {
    double stationarity;    /* of H x + f + A lambda */
    double primal;          /* of a' x - b, where positive; of equalities either way */
    double dual;            /* of -lambda of inequalities, where positive */
    double complementarity; /* of lambda (b - a' x) of inequalities */
    double relative;        /* the largest of them, each over the size of what it is a sum of */
} tb_kkt;

typedef struct tb_qp_result {
    tb_status status; /* OK, NOT_CONVERGED, DIVERGED (numbers that are not finite) */
    int32_t iterations;
    int32_t solves, batches; /* right-hand sides, and how many times they were solved for */
    int32_t factorizations;
    int32_t resets;    /* factorizations that SCHURPA made for its limits or for exactness */
    int32_t deletions; /* bordered columns that were taken out: a change undone */
    int32_t refinements;
    int32_t dropped;    /* constraints left out of sets because they depended on others */
    int32_t cycle;      /* sets that came back, and after how many; single changes since then */
    int32_t dual_steps; /* of the dual method that ended it where even single changes came back */
    int32_t largest_border; /* most bordered columns at a time */
    int32_t active;         /* inequalities of the last set */
    int32_t corrected;      /* inequalities in which the first and the last set differ */
    double factor_seconds, solve_seconds, seconds; /* `seconds`: all of the method */
    tb_kkt kkt;
} tb_qp_result;

/* Solves from the working set `active` (constraints, 0 or 1; what equalities have does not matter),
 * which becomes the last one. Writes x (n) and the multipliers lambda (constraints). Not reaching
 * the tolerance is result->status; an infeasible program ends so. INVALID_ARGUMENT names the field,
 * UNSUPPORTED rows that `system` or `backend` does not take; FAILED_PRECONDITION: the equalities
 * alone make a singular system; RESOURCE_EXHAUSTED; NOT_FOUND, UNAVAILABLE, ABORTED: the device. */
tb_status tb_qp_program_solve(const tb_qp_program *, const tb_qp_options *, uint8_t *active,
                              double *x, double *lambda, tb_qp_result *, tb_error *);

/* A program to be solved again and again: H, rows and options stay, f, b and the set change.
 *
 * SCHURPA keeps what a solve leaves behind, here or on the card: K0's factorization with the set that
 * it belongs to, and the bordered columns. The next solve borders from there, so one from a near set
 * needs no factorization (result->factorizations is 0). What a solve gives depends on those before
 * it in its last digits; the same solves in the same order give the same bytes. PDAS keeps nothing
 * but memory.
 *
 * open   borrows the program's H and rows until it is closed; its f and b are only checked. Statuses
 *        of tb_qp_program_solve.
 * solve  as tb_qp_program_solve, for f (n) and b (constraints). After a failure the next one factors.
 * forget drops what is kept: the next solve factors at the set that it is given. */
typedef struct tb_qp_solver tb_qp_solver;
tb_status tb_qp_solver_open(const tb_qp_program *, const tb_qp_options *, tb_qp_solver **,
                            tb_error *);
tb_status tb_qp_solver_solve(tb_qp_solver *, const double *f, const double *b, uint8_t *active,
                             double *x, double *lambda, tb_qp_result *, tb_error *);
void tb_qp_solver_forget(tb_qp_solver *);
void tb_qp_solver_close(tb_qp_solver *); /* NULL is fine */

/* ---- experiments of the thesis ------------------------------------------------------------------ */

/* C = B A for a symmetric band B (n x n, `band` as a program's hessian) and an A of `columns` columns
 * of n numbers, one behind the other: Litven's symgbmm (chapter 6) in his three variants. On a card
 * the two of it sum in the same order and give the same bytes. */
typedef enum tb_symgbmm_variant {
    TB_SYMGBMM_HOST,  /* the processor: the product of this library's own solvers */
    TB_SYMGBMM_NAIVE, /* a card: a lane for each number of C, all from the card's memory */
    TB_SYMGBMM_SHARED /* a card: tiles of 16 x 16 by way of the blocks' memory */
} tb_symgbmm_variant;

/* `seconds`, where it is not NULL: of the product alone, with the data where it is computed.
 * UNAVAILABLE, NOT_FOUND, ABORTED: the card; INVALID_ARGUMENT; RESOURCE_EXHAUSTED. */
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
