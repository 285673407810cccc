/* Jacobi over-relaxed prox, "JOR Prox" (Nützi 4.40): all blocks see the same impulses, so that the
 * order of the work does not matter. Needs a small omega, since the changes of neighbours add
 * up. */
#include "solve/sweep/forms.h"

TB_EXTERN double tb_jor_sweep(tb_sweeper *sweeper)
{
#ifdef TB_DEVICE
    return tb_team_jacobi(sweeper);
#else
    switch (sweeper->storage) {
    case TB_STORAGE_FACTORIZED: return tb_sweep_factorized(sweeper, false);
    case TB_STORAGE_T: return tb_sweep_t(sweeper, false);
    default: return tb_sweep_given(sweeper, false);
    }
#endif
}

TB_EXTERN tb_status tb_solve_jor(const tb_problem *problem, const tb_solve_options *options,
                                 tb_warm_start *warm, tb_solution *solution)
{
    return tb_iterate(problem, options, warm, solution, "jor", TB_JOR_OMEGA, false);
}
