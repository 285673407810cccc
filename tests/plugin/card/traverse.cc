/* The kernel of traversals of BSP trees, played: the source that cards run, lane by lane. */
#include "one_kernel.h"

#include "../../../solver/gpu/penalty/traverse.cu"

#ifndef TB_SINGLE
PLAY_KERNEL(tb_gpu_traverse_parts, tb_gpu_traverse)
#endif
