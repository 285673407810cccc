/* test_mesh_pairs.c in float. */
#define TB_SINGLE
#include "test_mesh_pairs.c"
