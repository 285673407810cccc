/* The kernel of worlds of balls, played: the source that cards run, lane by lane. */
#include "one_kernel.h"

#include "../../../solver/gpu/penalty/balls.cu"

#ifndef TB_SINGLE
PLAY_KERNEL(tb_gpu_balls_steps, tb_gpu_balls)
#endif
