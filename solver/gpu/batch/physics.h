/* The physics as one translation unit: the sources of the rooms, for C++ and CUDA.
 *
 * A source that includes this file first gets tb_world_step and all below it as device functions
 * (or, compiled as plain C++, of a processor that plays one: tests/unit/gpu/device_world.cc). Nothing
 * is written twice: these are the files that the library is made of, and the lists below are all
 * that a step needs of them. One unit lets the compiler see through every call.
 *
 * On a card, large functions are called and not copied (TB_FN_LARGE, TB_EXTERN): copied into every
 * caller, the narrow phase took twelve million characters of intermediate code and more than ten
 * minutes to assemble; called, it is less than a quarter of that. A call through a pointer to a
 * function would hide from the assembler how much stack a lane needs.
 *
 * TB_SINGLE chooses float, as everywhere. */
#ifndef TB_GPU_PHYSICS_H
#define TB_GPU_PHYSICS_H

#if defined(TB_BASE_H) || defined(TB_REAL_H)
#error "gpu/batch/physics.h comes before all other headers of the library"
#endif
#define TB_DEVICE 1

#include <float.h>
#include <math.h>
#include <string.h>

#include "gpu/device/device_memory.h"

#include "model/touch.c"

#include "collide/narrow.c"
#ifndef TB_UNIT_WARP
#include "collide/mesh/mesh_triangle.c"
#include "collide/mesh/mesh_solid.c"
#include "collide/mesh/mesh_height_field.c"
#include "collide/mesh/mesh_reduce.c"
#include "collide/mesh/mesh_convex.c"
#include "collide/mesh/mesh_walk.c"
#include "collide/mesh/mesh.c"
#include "collide/mesh/mesh_team.c"
#endif

#include "contact/problem.c"
#include "contact/residual.c"

#ifndef TB_UNIT_WARP
#include "solve/sweep/accelerate.c"
#include "solve/sweep/prepare.c"
#include "solve/sweep/spectrum.c"
#include "solve/sweep/iterate.c"
#include "solve/sweep/jor.c"
#include "solve/sweep/sor.c"
#include "solve/newton/block_lu.c"
#include "solve/newton/block_lu_pattern.c"
#include "solve/newton/newton_factorized.c"
#include "solve/newton/newton_update.c"
#include "solve/newton/newton_cached_factor.c"
#include "solve/newton/newton_system.c"
#include "solve/newton/newton_sets.c"
#include "solve/newton/newton_path.c"
#include "solve/newton/newton.c"
#include "solve/islands.c"
#include "solve/auto.c"
#include "qp/bounded_factor.c"
#include "qp/bounded_qp.c"
#include "solve/staggered/staggered_program.c"
#include "solve/staggered/staggered.c"
#endif

#include "step/stages/block.c"
#include "step/dynamics/dynamics.c"
#include "step/dynamics/factor.c"
#include "step/dynamics/kinematic_once.c"
#include "step/state/course_once.c"
#ifdef TB_UNIT_WARP
#include "gpu/batch/small/warp_without.h"
#else
#include "step/stages/tendon.c"
#ifndef TB_SINGLE
#include "step/stages/energy_once.c"
#endif
#include "step/stages/fluid.c"
#include "step/stages/equality.c"
#include "step/stages/adhesion.c"
#endif
#include "step/stages/transmission.c"
#include "step/stages/actuators.c"
#include "step/stages/passive.c"
#include "step/stages/joint_rows.c"
#include "step/stages/begin.c"
#include "step/stages/contact_rows.c"
#include "step/stages/detect.c"
#ifndef TB_UNIT_WARP
#include "step/stages/detect/search_team.c"
#include "step/stages/detect_team.c"
#endif
#include "step/stages/last_resort.c"
#include "step/stages/recovery.c"
#include "step/world.c"
#ifndef TB_UNIT_WARP
#include "step/search_beside.c"
#endif
#ifdef TB_UNIT_WARP
#include "gpu/batch/small/warp_step.h"
#endif

#endif
