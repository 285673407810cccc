/* A solve by a team of lanes, in the precision that the including file is compiled for. */
#ifndef TEAM_SOLVE_H
#define TEAM_SOLVE_H

#include "solve/solve.h"

#define team_solve_call TB_SYMBOL(team_solve_call)
typedef struct team_solve_call {
    const tb_problem *problem;
    const tb_solve_options *options;
    int32_t solver, lanes;
    const tb_real *warm; /* rows or NULL */
    void *memory;        /* the arena's */
    size_t bytes;
} team_solve_call;

#ifdef __cplusplus
extern "C" {
#endif
/* DATA_LOSS if the lanes' results differ. `solution` comes with its arrays. */
#define team_solve TB_SYMBOL(team_solve)
tb_status team_solve(const team_solve_call *call, tb_solution *solution);
#ifdef __cplusplus
}
#endif

#endif
