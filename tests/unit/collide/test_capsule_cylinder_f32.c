/* The narrow phase of convex pairs again, in float. */
#define TB_SINGLE
#include "test_capsule_cylinder.c"
