/* The solver mprgp on a processor: an island's iterations by loops (mprgp.h). */
#include "solve/planar/mprgp.h"
#include "solve/planar/mprgp_run.h"

#include <math.h>

/* A little less than the tolerance, which the judge's sums in another order may exceed. */
static const double MPRGP_MARGIN = 0.999;

TB_EXTERN bool tb_mprgp_rubs(const tb_problem *problem)
{
    for (int32_t b = 0; b < problem->number_of_blocks; b++)
        if (problem->blocks[b].rows > 1) return true;
    return false;
}

TB_EXTERN tb_status tb_mprgp_open(tb_betz_run *run, const tb_problem *problem,
                                  const tb_solve_options *options, const tb_warm_start *warm,
                                  tb_solution *solution)
{
    if (options->stop != TB_STOP_RESIDUAL || options->r_strategy != TB_R_DIAGONAL)
        return TB_UNSUPPORTED;
    const tb_status status = tb_betz_open(run, problem, options, warm, solution, false);
    if (status != TB_OK) return status;
    tb_solution_sign(solution, "mprgp");
    run->z.tolerance *= TB_R(MPRGP_MARGIN * sqrt(tb_problem_c_squared(problem)));
    run->next_check = run->most;
    return TB_OK;
}

/* The iterations up to one look. False: they gave up. */
TB_STATIC tb_status mprgp_run(tb_betz_run *run)
{
    const tb_problem *problem = run->z.problem;
    const size_t rows = (size_t)problem->number_of_rows;
    tb_mprgp it = {.z = run->z,
                   .xi = TB_ARENA_ARRAY(run->scratch, tb_real, rows),
                   .along = TB_ARENA_ARRAY(run->scratch, tb_real, rows),
                   .q = TB_ARENA_ARRAY(run->scratch, tb_real, rows),
                   .limit = TB_ARENA_ARRAY(run->scratch, tb_real, problem->number_of_blocks),
                   .shares = TB_ARENA_ZEROED(run->scratch, double, TB_MPRGP_SUMS *TB_MPRGP_LANES),
                   .own_least = TB_RESIDUAL_UNKNOWN,
                   .tolerance = (double)run->z.tolerance,
                   .rubs = tb_mprgp_rubs(problem)};
    if (!it.xi || !it.along || !it.q || !it.limit || !it.shares) return TB_RESOURCE_EXHAUSTED;
    const tb_solve_options *o = run->options;
    tb_status status = TB_OK;
    while (!run->done && status == TB_OK) {
        if (o->cancelled && o->cancelled(o->cancelled_context)) return TB_CANCELLED;
        it.most = tb_betz_due(run);
        if (!tb_mprgp_iterate(&it)) run->most = run->made + it.made;
        status = tb_betz_look(run, it.made, false, false);
    }
    return status;
}

TB_EXTERN tb_status tb_solve_mprgp(const tb_problem *problem, const tb_solve_options *options,
                                   tb_warm_start *warm, tb_solution *solution)
{
    const tb_arena_mark mark = tb_arena_get_mark(warm->scratch);
    tb_betz_run run;
    tb_status status = tb_mprgp_open(&run, problem, options, warm, solution);
    if (status == TB_OK) status = mprgp_run(&run);
    if (status == TB_OK) status = tb_betz_close(&run);
    tb_arena_return_to(warm->scratch, mark);
    return status;
}
