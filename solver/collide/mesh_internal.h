/* What the files of the mesh half share. */
#ifndef TB_MESH_INTERNAL_H
#define TB_MESH_INTERNAL_H

#include "collide/convex_pair.h"
#include "collide/mesh_pair.h"

/* Points as they are found, before neighbouring triangles are compared. */
typedef struct tb_mesh_points {
    tb_mesh_contact *items;
    int32_t count, capacity;
    tb_arena *arena;
    bool failed; /* the arena refused */
} tb_mesh_points;

/* Room for `count` more, or NULL; the caller adds to `count` what it wrote. */
#define tb_mesh_points_room TB_SYMBOL(tb_mesh_points_room)
tb_mesh_contact *tb_mesh_points_room(tb_mesh_points *points, int32_t count);

/* Who touches whom: the mesh, and what else is known of the other side. */
typedef struct tb_mesh_pair {
    const tb_mesh_view *view;
    const tb_mesh_view
        *other; /* if it is a mesh too, else NULL; features are then triangle << 2 | corner */
    const tb_polytope *solid; /* if it is a box or a hull, else NULL */
} tb_mesh_pair;

/* Compares the points of all triangles and keeps what a manifold needs: drops what only one triangle by
 * itself could believe, merges, reduces every region of one normal to at most TB_MANIFOLD_POINTS. The points
 * that are kept stand first, in order; returns how many, -1 where the arena refused. noise: m. */
#define tb_mesh_reduce TB_SYMBOL(tb_mesh_reduce)
int32_t tb_mesh_reduce(tb_mesh_points *points, const tb_mesh_pair *pair, tb_real noise);

/* The part of a height field inside a box of its frame (and a ring of cells around it), as a mesh from the
 * arena: the surface, and where the part reaches them the sides and the bottom. Triangle numbers are those
 * of the part; `names` gets the numbers in the whole field. False where the arena refused. */
#define tb_field_part TB_SYMBOL(tb_field_part)
bool tb_field_part(const tb_height_field *field, const double lower[3], const double upper[3],
                   tb_arena *arena, tb_triangle_mesh *mesh, const int32_t **names);

#endif
