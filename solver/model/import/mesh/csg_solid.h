/* Union, difference and intersection of closed surfaces (constructive solid geometry).
 *
 * Surfaces are lists of convex polygons over one pool of vertices and planes. Each operation puts the
 * polygons of one solid through the tree of planes of the other (Naylor, Amanatides and Thibault,
 * Merging BSP trees yields polyhedral set operations, 1990; the order of clips is that of csg.js).
 * Corners within a billionth of the solids' size of a plane are on it; smaller features are lost. A
 * neighbour that was cut where another was not leaves a corner on an edge, so that the last step puts
 * such corners into the edges on which they lie. */
#ifndef TB_CSG_SOLID_H
#define TB_CSG_SOLID_H

#include "model/import/mesh/mesh_file.h"

typedef struct tb_csg_polygon {
    int32_t corner, count; /* in the pool's corners */
    int32_t plane;
    bool flipped; /* against its plane's normal */
} tb_csg_polygon;

/* A closed surface, or nothing. */
typedef struct tb_csg_solid {
    tb_csg_polygon *polygons;
    int32_t count, capacity;
} tb_csg_solid;

typedef struct tb_csg_crossing {
    int32_t a, b, plane, vertex; /* a < b; a -1: a free slot */
} tb_csg_crossing;

/* Vertices, planes and corners of all solids of one file. */
typedef struct tb_csg_pool {
    double *vertices;           /* x 3, m */
    double *planes;             /* x 4: unit normal, offset */
    int32_t *corners;           /* vertices of polygons */
    tb_csg_crossing *crossings; /* hash table: vertices where planes cut edges */
    int32_t number_of_vertices, number_of_planes, number_of_corners, number_of_crossings;
    int32_t vertex_capacity, plane_capacity, corner_capacity, crossing_slots;
    double size; /* m, the largest coordinate */
    bool no_memory, too_large, too_far;
} tb_csg_pool;

typedef enum tb_csg_operation {
    TB_CSG_UNION,
    TB_CSG_DIFFERENCE,
    TB_CSG_INTERSECTION
} tb_csg_operation;

void tb_csg_pool_free(tb_csg_pool *pool);
void tb_csg_solid_free(tb_csg_solid *solid);

/* The number of a new vertex. */
int32_t tb_csg_vertex(tb_csg_pool *pool, double x, double y, double z);
/* Appends a face, counter-clockwise seen from outside; one that is not convex or not flat becomes
 * triangles. Failures are flags of the pool. */
void tb_csg_face(tb_csg_pool *pool, tb_csg_solid *solid, const int32_t *vertices, int32_t count);

/* a = a op b; b becomes empty. Failures are flags of the pool. */
void tb_csg_combine(tb_csg_pool *pool, tb_csg_operation operation, tb_csg_solid *a,
                    tb_csg_solid *b);

/* The triangles of a solid. INVALID_ARGUMENT names the place of an edge that stayed open;
 * RESOURCE_EXHAUSTED without memory or beyond the limits of a mesh file. The caller frees *mesh. */
tb_status tb_csg_triangles(tb_csg_pool *pool, const tb_csg_solid *solid, const char *file,
                           tb_mesh_data *mesh, tb_error *error);

#endif
