/* The float build of a team's solvers, likewise. */
#define TB_SINGLE
#include "test_team_solve.c"
