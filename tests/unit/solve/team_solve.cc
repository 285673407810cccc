// The solvers as a card compiles them, with threads as the lanes of a team. Compiled twice, as
// double and with TB_SINGLE as float.
#define TB_TEAM_PLAYED 1
#include "gpu/batch/physics.h"

#include "gpu/team_play.h"
#include "team_solve.h"

struct solve_call {
    const team_solve_call *call;
    tb_solution *solutions; // a lane each
    tb_arena arena;
    tb_status status[32];
};

static void solve_as_lane(void *context, int32_t lane)
{
    solve_call *all = (solve_call *)context;
    const team_solve_call *call = all->call;
    tb_warm_start warm = tb_warm_start();
    warm.lambda = call->warm;
    warm.scratch = &all->arena;
    tb_status status = TB_UNSUPPORTED;
    switch (call->solver) {
#define SOLVER_CASE(solver)                                                                        \
    case TB_SOLVER_NUMBER_##solver:                                                                \
        status = TB_SYMBOL(tb_solve_##solver)(call->problem, call->options, &warm,                 \
                                              &all->solutions[lane]);                              \
        break;
        TB_DEVICE_SOLVER_LIST(SOLVER_CASE)
#undef SOLVER_CASE
    default: break;
    }
    all->status[lane] = status;
}

tb_status team_solve(const team_solve_call *call, tb_solution *solution)
{
    tb_solution solutions[32]; // padding and all: they are compared as bytes
    solve_call all;
    all.call = call;
    all.solutions = solutions;
    tb_arena_over(&all.arena, call->memory, call->bytes);
    for (int32_t i = 0; i < call->lanes; i++) memcpy(&solutions[i], solution, sizeof *solution);
    team_play(call->lanes, solve_as_lane, &all);
    for (int32_t i = 1; i < call->lanes; i++)
        if (all.status[i] != all.status[0] ||
            memcmp(&solutions[i], &solutions[0], sizeof *solutions) != 0)
            return TB_DATA_LOSS; // each lane has the same solution
    *solution = solutions[0];
    return all.status[0];
}
