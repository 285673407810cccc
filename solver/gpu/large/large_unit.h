/* The physics of one large world as one translation unit: the sources of the rooms that its stages need,
 * for CUDA and, with one lane that plays a card, for plain C++ (tests/unit/gpu/large_played.cc). */
#ifndef TB_GPU_LARGE_UNIT_H
#define TB_GPU_LARGE_UNIT_H

#if defined(TB_BASE_H) || defined(TB_REAL_H)
#error "gpu/large/large_unit.h comes before all other headers of the library"
#endif
#define TB_DEVICE 1

#include <float.h>
#include <math.h>
#include <string.h>

#include "gpu/device/device_memory.h"

#include "model/touch.c"

#include "collide/narrow.c"

#include "step/dynamics/kinematic_once.c"

#include "step/large/large_finish.h"
#include "step/large/large_layout.h"

#endif
