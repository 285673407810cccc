/* The registry: solvers by name. A new solver is its file and a line of TB_SOLVER_LIST. */
#include "solve/solve.h"

#include <string.h>

tb_solve_function *tb_solver_find(const char *name)
{
    if (!name) return NULL;
#define TB_SOLVER_MATCH(solver, text)                                                              \
    if (strcmp(name, #solver) == 0) return TB_SYMBOL(tb_solve_##solver);
    TB_SOLVER_LIST(TB_SOLVER_MATCH)
#undef TB_SOLVER_MATCH
    return NULL;
}
