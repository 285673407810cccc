/* A solve by mprgp, cut as Betz's are (betz_run.h): a device iterates between two looks. */
#ifndef TB_MPRGP_RUN_H
#define TB_MPRGP_RUN_H

#include "solve/planar/betz_run.h"
#include "solve/planar/mprgp_lists.h"

/* As tb_betz_open, for iterations of mprgp; run->z.tolerance is of the natural map, m/s, and the
 * lists come from the scratch of `warm`. UNSUPPORTED also for other stop tests than RESIDUAL and
 * other strategies of r than DIAGONAL. */
#define tb_mprgp_open TB_SYMBOL(tb_mprgp_open)
TB_EXTERN tb_status tb_mprgp_open(tb_betz_run *run, tb_mprgp_lists *lists,
                                  const tb_problem *problem, const tb_solve_options *options,
                                  const tb_warm_start *warm, tb_solution *solution);

/* Whether a block has friction. */
#define tb_mprgp_rubs TB_SYMBOL(tb_mprgp_rubs)
TB_EXTERN bool tb_mprgp_rubs(const tb_problem *problem);

#endif
