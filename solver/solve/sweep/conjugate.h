/* Sweeps of sor along conjugate directions; see conjugate.c. Not in units for a device, nor in single
 * precision. */
#ifndef TB_CONJUGATE_H
#define TB_CONJUGATE_H

#include "solve/solve.h"

#if defined(TB_DEVICE) || defined(TB_SINGLE)
TB_FN bool tb_conjugate_suits(const tb_problem *problem, const tb_solve_options *options,
                              int32_t sweeps)
{
    (void)problem;
    (void)options;
    (void)sweeps;
    return false;
}
#else
/* Whether so many sweeps of a problem suit the method: it is large, half of its blocks or more have no
 * friction, and the options do not ask for another way or another end of the sweeps. */
TB_EXTERN bool tb_conjugate_suits(const tb_problem *problem, const tb_solve_options *options,
                                  int32_t sweeps);

/* As tb_solve_sor, but for solution->solver. */
TB_EXTERN tb_status tb_conjugate_solve(const tb_problem *problem, const tb_solve_options *options,
                                       const tb_warm_start *warm, tb_solution *solution);
#endif

#endif
