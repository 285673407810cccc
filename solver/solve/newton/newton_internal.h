/* Shared declarations of Newton's two ways: rounds from any start (newton.c), and steps from the
 * sets of the last solve (newton_sets.c). */
#ifndef TB_NEWTON_INTERNAL_H
#define TB_NEWTON_INTERNAL_H

#include "solve/newton/newton_system.h"
#include "solve/solve.h"

/* Each lane of a team has one; the lanes share the arrays behind its pointers and call these
 * functions together: all see the results at the return. */
#define tb_newton TB_SYMBOL(tb_newton)
typedef struct tb_newton {
    const tb_problem *problem;
    const tb_solve_options *options;
    tb_arena *scratch;
    tb_newton_system system;
    tb_problem linear;         /* the problem with c = 0 */
    tb_real *lambda, *xi, *p;  /* rows */
    tb_real *change, *dxi;     /* rows: the step */
    tb_real *trial, *trial_xi; /* rows */
    tb_real *prox_gap;         /* rows: prox - lambda */
    tb_real *fine;             /* rows: rounding of lambda in steps from sets; NULL: none */
    tb_real *slope;            /* squares of blocks, at 6 row */
    tb_real *shift, *stiff;    /* rows: c and E of the proximal problem, for sweeps; before, shift
                                  has the impulses that the steps from sets began with */
    tb_real *best, *last;      /* rows; last: impulses at the begin of the last round */
    tb_real *s;                /* dofs */
    tb_real *g, *weight;       /* blocks: mean diagonal of G; w */
    uint8_t *statuses;         /* blocks */
    uint8_t *former;           /* blocks, of newton_path.c: of the last step */
    double *squares;           /* rows: shares of the merit */
    tb_real epsilon, shrink;
    tb_real floor; /* epsilon falls no further for now */
    double best_residual;
    double rest;  /* share of the tolerance below which a warm start needs no step from sets */
    int32_t work; /* sweeps and steps so far */
    int32_t resets;
    int32_t failures, fallbacks;
    tb_real boldest;      /* smallest factor by which epsilon falls */
    double gain_residual; /* best residual when it last halved, and the work until then */
    int32_t gain_work;
    bool at_rounding; /* the rounds ended since rounding leaves no more to gain */
} tb_newton;

#ifdef TB_SINGLE
#define TB_SMALLEST_EPSILON TB_R(3e-6)
#else
#define TB_SMALLEST_EPSILON TB_R(1e-10)
#endif

/* Where no impulses satisfy a contradiction, steps pile them up for hardly any gain: a residual
 * must be below this share of the best to be the best. */
#define TB_WORTHWHILE_GAIN 0.95

/* Mean diagonal of G in a block; 0 for one that no impulse moves along its first row, or that is
 * out of range: it is left alone. */
#define tb_newton_mean_diagonal TB_SYMBOL(tb_newton_mean_diagonal)
TB_EXTERN tb_real tb_newton_mean_diagonal(const tb_problem *problem, int32_t index);
/* The mean diagonals of all blocks. */
#define tb_newton_measure TB_SYMBOL(tb_newton_measure)
TB_EXTERN void tb_newton_measure(tb_newton *it);

/* Takes memory for it->problem. RESOURCE_EXHAUSTED. */
#define tb_newton_prepare TB_SYMBOL(tb_newton_prepare)
TB_EXTERN tb_status tb_newton_prepare(tb_newton *it);

/* Impulses (rows) brought into their sets. */
#define tb_newton_project TB_SYMBOL(tb_newton_project)
TB_EXTERN void tb_newton_project(const tb_problem *problem, const tb_real *lambda, tb_real *to);

/* The same of impulses with their rounding, in both `fine` (rows, or NULL): the rounding is
 * dropped where the projection moves an impulse. */
#define tb_newton_project_fine TB_SYMBOL(tb_newton_project_fine)
TB_EXTERN void tb_newton_project_fine(const tb_problem *problem, const tb_real *lambda,
                                      const tb_real *fine, tb_real *to, tb_real *to_fine);

/* w of all blocks from epsilon. */
#define tb_newton_weigh TB_SYMBOL(tb_newton_weigh)
TB_EXTERN void tb_newton_weigh(tb_newton *it);

#define tb_newton_is_cancelled TB_SYMBOL(tb_newton_is_cancelled)
TB_EXTERN bool tb_newton_is_cancelled(const tb_newton *it);

/* Whether there is enough of a start for tb_newton_from_sets. */
#define tb_newton_has_sets TB_SYMBOL(tb_newton_has_sets)
TB_EXTERN bool tb_newton_has_sets(const tb_problem *problem, const tb_solve_options *options,
                                  const tb_warm_start *warm);

/* The merit of some impulses, DBL_MAX where it is not finite. With `keep`, their lack, slopes and
 * statuses stay for a step from there. */
#define tb_newton_merit TB_SYMBOL(tb_newton_merit)
TB_EXTERN double tb_newton_merit(tb_newton *it, const tb_real *lambda, const tb_real *xi,
                                 bool keep);

/* Prox gaps, slopes and statuses for a step: of the given sets, or (NULL) of the projections.
 * speeds: of slip, or NULL: from xi. True if the projections give the statuses of the step
 * before. */
#define tb_newton_linearize TB_SYMBOL(tb_newton_linearize)
TB_EXTERN bool tb_newton_linearize(tb_newton *it, const uint8_t *statuses, const tb_real *speeds);

/* Whether newton_path.c solves a problem: in double, of up to 64 dofs of linked
 * bodies, in the factorized form. */
#define tb_newton_has_path TB_SYMBOL(tb_newton_has_path)
TB_EXTERN bool tb_newton_has_path(const tb_problem *problem);
/* Rounds along falling weights from it->lambda, which is in its sets. The best impulses and their
 * residual are in `it`, where they are better than it->best; lambda is lost. */
#define tb_newton_follow_path TB_SYMBOL(tb_newton_follow_path)
TB_EXTERN tb_status tb_newton_follow_path(tb_newton *it);

/* Whether every row gives way by itself, so that the answer is unique without a pull. */
#define tb_newton_is_elastic TB_SYMBOL(tb_newton_is_elastic)
TB_EXTERN bool tb_newton_is_elastic(const tb_problem *problem);

/* Statuses of a solution from its impulses and xi. */
#define tb_newton_statuses TB_SYMBOL(tb_newton_statuses)
TB_EXTERN void tb_newton_statuses(const tb_newton *it, tb_solution *solution);

/* Steps from the sets of the last solve. *ended: the tolerance is reached, and all of `solution` is
 * filled but its solver and its work. Else `it` holds the best impulses and their residual. */
#define tb_newton_from_sets TB_SYMBOL(tb_newton_from_sets)
TB_EXTERN tb_status tb_newton_from_sets(tb_newton *it, const tb_warm_start *warm,
                                        tb_solution *solution, bool *ended);

/* Steps from sets as a solver of its own: if they do not reach the tolerance, `solution` has the best
 * impulses. `warm` has sets. */
#define tb_solve_from_sets TB_SYMBOL(tb_solve_from_sets)
TB_EXTERN tb_status tb_solve_from_sets(const tb_problem *problem, const tb_solve_options *options,
                                       const tb_warm_start *warm, tb_solution *solution);

/* Newton from starts about warm->lambda until the tolerance or the iterations are reached
 * (newton_restarts.c). Without a step for problems that are too large, or in the given form. Not in
 * units for a device, nor in single precision. */
#define tb_solve_restarts TB_SYMBOL(tb_solve_restarts)
TB_EXTERN tb_status tb_solve_restarts(const tb_problem *problem, const tb_solve_options *options,
                                      const tb_warm_start *warm, tb_solution *solution);

#endif
