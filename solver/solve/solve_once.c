/* Public functions about solvers, once for both precisions: names, summaries, defaults. */
#include "solve/solve.h"

#include <string.h>

static const char *const SOLVER_TEXTS[][2] = {
#define TB_SOLVER_TEXT(solver, text) {#solver, text},
    TB_SOLVER_LIST(TB_SOLVER_TEXT)
#undef TB_SOLVER_TEXT
};

enum { NUMBER_OF_SOLVERS = sizeof SOLVER_TEXTS / sizeof SOLVER_TEXTS[0] };

const char *tb_solver_name(int32_t index)
{
    return index >= 0 && index < NUMBER_OF_SOLVERS ? SOLVER_TEXTS[index][0] : NULL;
}

const char *tb_solver_summary(int32_t index)
{
    return index >= 0 && index < NUMBER_OF_SOLVERS ? SOLVER_TEXTS[index][1] : NULL;
}

int32_t tb_solver_number(const char *name)
{
    if (!name) return TB_SOLVER_NONE;
#define TB_SOLVER_MATCH(solver)                                                                    \
    if (strcmp(name, #solver) == 0) return TB_SOLVER_NUMBER_##solver;
    TB_DEVICE_SOLVER_LIST(TB_SOLVER_MATCH)
#undef TB_SOLVER_MATCH
    return TB_SOLVER_NONE;
}

tb_solve_options tb_solve_defaults(void)
{
    return (tb_solve_options){
        .solver = "auto",
        .tolerance = 1e-6,
        .maximum_iterations = 2000,
        .omega = 0,
        .r_strategy = TB_R_DIAGONAL,
        .storage = TB_STORAGE_AUTO,
        .stop = TB_STOP_RESIDUAL,
        .warm_start = true,
        /* fewer sweeps on some problems, cycles on others: rows are the safe choice */
        .local_solve = false,
        .accelerate = true,
        .maximum_halvings = 5,
        .threads = 0,
    };
}
