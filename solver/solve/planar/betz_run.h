/* A solve by Betz's sweeps, cut at the places where its residual is looked at, so that a device can
 * make the sweeps between two looks of many solves at once (step/planar/islands_gpu_once.c).
 *
 *     open;  while (!done) { make tb_betz_due sweeps, fewer where they end or exceed the limit;
 *     look }  close
 */
#ifndef TB_BETZ_RUN_H
#define TB_BETZ_RUN_H

#include "solve/planar/betz.h"

#define tb_betz_run TB_SYMBOL(tb_betz_run)
typedef struct tb_betz_run {
    tb_betz z;
    const tb_solve_options *options;
    tb_arena *scratch;
    tb_solution *solution;
    tb_real omega, omega_of_r; /* omega_of_r: the omega that r was computed with */
    tb_real mu_factor;         /* 1, or 0 for mu = 1 as listed */
    int32_t threads;
    int64_t made, most; /* sweeps since the last restart, and how many there may be */
    int64_t next_check; /* sweeps at which the residual is looked at */
    bool serial, in_turn, richardson, done;
} tb_betz_run;

/* The solver whose solve is cut. */
typedef enum tb_betz_kind { TB_BETZ_OF_SERIAL, TB_BETZ_OF_CUDA, TB_BETZ_OF_MPRGP } tb_betz_kind;

/* Checks options and problem, takes arrays from the scratch of `warm`, computes r, and starts from
 * warm impulses; for mprgp neither lists of dofs nor r nor s. UNSUPPORTED, INVALID_ARGUMENT,
 * RESOURCE_EXHAUSTED. */
#define tb_betz_open TB_SYMBOL(tb_betz_open)
TB_EXTERN tb_status tb_betz_open(tb_betz_run *run, const tb_problem *problem,
                                 const tb_solve_options *options, const tb_warm_start *warm,
                                 tb_solution *solution, tb_betz_kind kind);
/* Sweeps until the next look. */
#define tb_betz_due TB_SYMBOL(tb_betz_due)
TB_EXTERN int32_t tb_betz_due(const tb_betz_run *run);
/* N s, of a trial p_n; 0: none, or too many restarts already. */
#define tb_betz_limit TB_SYMBOL(tb_betz_limit)
TB_EXTERN tb_real tb_betz_limit(const tb_betz_run *run);
/* After `made` sweeps, with their impulses in z.p. ended: all contacts pass the one-sided test;
 * over: a trial impulse exceeded the limit. Sets `done`, or restarts with zero impulses and a
 * smaller r. */
#define tb_betz_look TB_SYMBOL(tb_betz_look)
TB_EXTERN tb_status tb_betz_look(tb_betz_run *run, int32_t made, bool ended, bool over);
/* Fills the solution. Impulses that are not finite become zero, and the solve DIVERGED. */
#define tb_betz_close TB_SYMBOL(tb_betz_close)
TB_EXTERN tb_status tb_betz_close(tb_betz_run *run);

/* Whether the next sweep has mu = 1, as the listing of prox_cuda has it. */
static inline bool tb_betz_begins_as_listed(const tb_betz_run *run)
{
    return run->options->as_listed && !run->serial && run->made == 0;
}

#endif
