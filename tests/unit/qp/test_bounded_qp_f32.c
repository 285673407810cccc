/* Programs with bounds in float: the same sources. */
#define TB_SINGLE
#include "test_bounded_qp.c"
