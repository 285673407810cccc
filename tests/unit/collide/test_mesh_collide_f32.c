/* test_mesh_collide.c in float. */
#define TB_SINGLE
#include "test_mesh_collide.c"
