/* The mathematics of base/ again, in float. */
#define TB_SINGLE
#include "test_base_math.c"
