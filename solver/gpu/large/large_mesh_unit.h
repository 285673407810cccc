/* The physics of large_unit.h with pairs of meshes and height fields. */
#ifndef TB_GPU_LARGE_MESH_UNIT_H
#define TB_GPU_LARGE_MESH_UNIT_H

#include "gpu/large/large_unit.h"

#include "collide/mesh/mesh_triangle.c"
#include "collide/mesh/mesh_solid.c"
#include "collide/mesh/mesh_height_field.c"
#include "collide/mesh/mesh_reduce.c"
#include "collide/mesh/mesh_convex.c"
#include "collide/mesh/mesh_walk.c"
#include "collide/mesh/mesh.c"
#include "collide/mesh/mesh_team.c"

#include "step/large/large_mesh.h"

#endif
