/* Solids: the closed bodies whose overlaps the volume law measures.
 *
 * A solid is a triangle surface, or a half-space, with its decomposition into convex pieces. Pieces
 * come from planes of the surface (a binary space partition that only uses planes with surface in
 * front of them), so that their union is the solid and their interiors are disjoint. */
#ifndef TB_SOLID_H
#define TB_SOLID_H

#include "base/base.h"

/* A surface of triangles, counter-clockwise seen from outside. Heap. */
typedef struct tb_surface_mesh {
    double *vertices; /* number_of_vertices x 3, m */
    int32_t *triangles;
    int32_t number_of_vertices, number_of_triangles;
    int32_t vertex_capacity, triangle_capacity;
} tb_surface_mesh;

/* A convex piece of a solid: faces are loops of vertices. */
typedef struct tb_piece {
    int32_t vertex, number_of_vertices; /* first in vertices */
    int32_t face, number_of_faces;      /* first in planes, cuts and loop_starts */
    double lower[3], upper[3];          /* m, box in the solid's frame */
} tb_piece;

typedef struct tb_solid {
    tb_surface_mesh surface; /* empty for a half-space */
    tb_piece *pieces;
    double *vertices;     /* x 3, m */
    double *planes;       /* faces x 4: outward unit normal n and offset w; inside is n.x <= w */
    int32_t *cuts;        /* faces: 0: surface; +k, -k: both sides of the k-th inner plane */
    int32_t *loop_starts; /* faces + 1 */
    int32_t *loops;       /* vertex numbers of the piece */
    int32_t number_of_pieces, number_of_faces;
    int32_t most_faces; /* of one piece */
    bool half_space;    /* one face, no vertices: the plane z = 0, inside is z <= 0 */
    double lower[3], upper[3];
} tb_solid;

/* Appends the prism over an outline (count x 2, m, counter-clockwise, concave or not) between two
 * heights. INVALID_ARGUMENT for an outline that crosses itself or runs clockwise. */
tb_status tb_surface_mesh_extrude(tb_surface_mesh *mesh, const double *outline, int32_t count,
                                  double lower, double upper, tb_error *error);

/* Treatment of a surface that is not the boundary of a solid. */
typedef enum tb_repair { TB_REPAIR_REFUSE, TB_REPAIR_MEND } tb_repair;

void tb_surface_mesh_free(tb_surface_mesh *mesh);
/* Appends a vertex (m) or a triangle; the number of the vertex, or -1 if memory is refused. */
int32_t tb_surface_mesh_vertex(tb_surface_mesh *mesh, double x, double y, double z);
bool tb_surface_mesh_triangle(tb_surface_mesh *mesh, int32_t a, int32_t b, int32_t c);
/* m^3, by signed tetrahedra about the first vertex; negative for a surface turned inside out. */
double tb_surface_mesh_volume(const tb_surface_mesh *mesh);

/* Merges equal vertices and drops triangles of zero area, then checks that the surface is closed,
 * turned outwards and free of self-intersections. INVALID_ARGUMENT names the fault with its place:
 * an edge with one triangle (a hole), with triangles of one direction (reversed faces), triangles
 * that cross. With TB_REPAIR_MEND reversed faces are turned and holes are closed by fans; a surface
 * that crosses itself cannot be mended and is refused. */
tb_status tb_surface_mesh_check(tb_surface_mesh *mesh, tb_repair repair, const char *name,
                                tb_error *error);

/* Builds a solid, which takes over the surface. INVALID_ARGUMENT for a surface without volume;
 * UNSUPPORTED if no convex pieces were found whose volume is the surface's. */
tb_status tb_solid_of_mesh(tb_surface_mesh *surface, const char *name, tb_solid *solid,
                           tb_error *error);
/* The half-space below z = 0. */
tb_status tb_solid_of_half_space(tb_solid *solid, tb_error *error);
void tb_solid_free(tb_solid *solid);

#endif
