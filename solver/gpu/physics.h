/* The physics as one translation unit: the sources of the rooms, for C++ and CUDA.
 *
 * Whoever includes this first thing gets tb_world_step and all below it as functions of a device
 * (or, compiled as plain C++, of a processor that plays one: tests/unit/device_world.cc). Nothing
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
#error "gpu/physics.h comes before all other headers of the library"
#endif
#define TB_DEVICE 1

#include <float.h>
#include <math.h>
#include <string.h>

#include "gpu/device_memory.h"

#include "model/touch.c"

#include "collide/narrow.c"
#include "collide/mesh_triangle.c"
#include "collide/mesh_solid.c"
#include "collide/mesh_field.c"
#include "collide/mesh_reduce.c"
#include "collide/mesh_convex.c"
#include "collide/mesh_walk.c"
#include "collide/mesh.c"
#include "collide/mesh_team.c"

#include "contact/problem.c"
#include "contact/residual.c"

#include "solve/accelerate.c"
#include "solve/prepare.c"
#include "solve/spectrum.c"
#include "solve/iterate.c"
#include "solve/jor.c"
#include "solve/sor.c"
#include "solve/block_lu.c"
#include "solve/block_lu_pattern.c"
#include "solve/newton_factorized.c"
#include "solve/newton_update.c"
#include "solve/newton_kept.c"
#include "solve/newton_system.c"
#include "solve/newton_sets.c"
#include "solve/newton.c"
#include "solve/auto.c"
#include "solve/bounded_factor.c"
#include "solve/bounded_qp.c"
#include "solve/staggered_part.c"
#include "solve/staggered.c"

#include "step/block.c"
#include "step/dynamics.c"
#include "step/kinematic_once.c"
#include "step/course_once.c"
#include "step/tendon.c"
#ifndef TB_SINGLE
#include "step/energy_once.c"
#endif
#include "step/transmission.c"
#include "step/actuators.c"
#include "step/fluid.c"
#include "step/passive.c"
#include "step/joint_rows.c"
#include "step/equality.c"
#include "step/begin.c"
#include "step/contact_rows.c"
#include "step/detect.c"
#include "step/detect_team.c"
#include "step/adhesion.c"
#include "step/recovery.c"
#include "step/world.c"

#endif
