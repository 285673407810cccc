/* test_broad.c in float. */
#define TB_SINGLE
#include "test_broad.c"
