/* Gauss-Seidel over-relaxed prox, "SOR Prox" (Nützi 4.48, Betz 2.54): blocks in their order, each
 * seeing the changes of all before it. With local solves, a Coulomb contact is not moved by one
 * projected step but solved exactly for the present impulses of the others (block Gauss-Seidel). */
#include "solve/sweep/forms.h"
#if !defined(TB_DEVICE) && !defined(TB_SINGLE)
#include "solve/sweep/conjugate.h"
#endif

TB_EXTERN double tb_sor_sweep(tb_sweeper *sweeper)
{
#ifdef TB_DEVICE
    return tb_team_gauss_seidel(sweeper);
#else
    switch (sweeper->storage) {
    case TB_STORAGE_FACTORIZED: return tb_sweep_factorized(sweeper, true);
    case TB_STORAGE_T: return tb_sweep_t(sweeper, true);
    default: return tb_sweep_given(sweeper, true);
    }
#endif
}

TB_EXTERN tb_status tb_solve_sor(const tb_problem *problem, const tb_solve_options *options,
                                 tb_warm_start *warm, tb_solution *solution)
{
#if !defined(TB_DEVICE) && !defined(TB_SINGLE)
    if (tb_conjugate_suits(problem, options, options->maximum_iterations)) {
        tb_solution_sign(solution, "sor");
        return tb_conjugate_solve(problem, options, warm, solution);
    }
#endif
    return tb_iterate(problem, options, warm, solution, "sor", TB_SOR_OMEGA, true);
}
