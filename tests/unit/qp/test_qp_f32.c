/* test_qp.c in float. */
#define TB_SINGLE
#include "test_qp.c"
