/* The kernel of Poulsen's iterations, played: the source that cards run, lane by lane. */
#include "one_kernel.h"

#include "../../../solver/gpu/coloured/rows.cu"

#ifndef TB_SINGLE
PLAY_KERNEL(tb_gpu_rows_iterations, tb_gpu_rows)
#endif
