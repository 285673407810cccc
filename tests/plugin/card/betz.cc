/* The kernel of Betz's sweeps, played: the source that cards run, lane by lane. */
#include "one_kernel.h"

#include "../../../solver/gpu/planar/betz.cu"

#ifndef TB_SINGLE
PLAY_KERNEL(tb_gpu_betz_sweeps, tb_gpu_betz)
#endif
