/* The kernel of worlds of solids, played: the source that cards run, lane by lane. */
#include "one_kernel.h"

#include "../../../solver/gpu/penalty/solids.cu"

#ifndef TB_SINGLE
PLAY_KERNEL(tb_gpu_solids_steps, tb_gpu_solids)
#endif
