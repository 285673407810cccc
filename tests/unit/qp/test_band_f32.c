/* test_band.c in float. */
#define TB_SINGLE
#include "test_band.c"
