/* The float build of a team's pairs with meshes, likewise. */
#define TB_SINGLE
#include "test_mesh_team.c"
