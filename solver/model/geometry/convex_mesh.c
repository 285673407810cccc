/* Whether a triangle mesh is the surface of a convex polytope, and that polytope.
 *
 * Such a mesh collides as the polytope: one search for the nearest features instead of one a
 * triangle, and a body deep inside is pushed out along one direction, where triangles on opposite
 * sides would hold it. A mesh is such a surface if
 *
 *   - every edge of a triangle with area has one neighbour, in the opposite direction, and none is
 *     concave (edge kinds of triangle_mesh.c);
 *   - the vertices of its hull reach no farther along the normal of a triangle than the triangle
 *     itself, to CONVEX_DISTANCE: all triangles lie in the hull's surface and face outwards;
 *   - the triangles have the area of the hull, to CONVEX_AREA: they cover it once.
 *
 * Open, concave, inward and nested meshes fail one of these and collide as their triangles. */
#include "model/model_internal.h"

/* Largest distance of a triangle from the surface of the hull, over the largest half extent. */
#define CONVEX_DISTANCE 1e-6
/* Largest relative difference of the areas of triangles and hull. */
#define CONVEX_AREA 1e-6
/* Triangles times vertices of the hull: the comparison takes about 0.1 s. */
#define MOST_COMPARISONS 1e8

static tb_vec3 corner(const tb_triangle_mesh *mesh, int32_t triangle, int k)
{
    return tb_v3_load(mesh->vertices +
                      3 * (size_t)mesh->triangles[3 * (size_t)triangle + (size_t)k]);
}

static tb_vec3 normal_of(const tb_triangle_mesh *mesh, int32_t triangle)
{
    return tb_v3_load(mesh->normals + 3 * (size_t)triangle);
}

static bool edges_are_convex(const tb_triangle_mesh *mesh)
{
    for (int32_t t = 0; t < mesh->number_of_triangles; t++)
        for (int k = 0; k < 3 && tb_v3_length2(normal_of(mesh, t)) > 0; k++) {
            const uint8_t kind = mesh->edge_kind[3 * (size_t)t + (size_t)k];
            if (kind == TB_EDGE_BOUNDARY || kind == TB_EDGE_CONCAVE) return false;
        }
    return mesh->number_of_tree_triangles >= 4;
}

static double twice_area(tb_vec3 a, tb_vec3 b, tb_vec3 c)
{
    return tb_v3_length(tb_v3_cross(tb_v3_sub(b, a), tb_v3_sub(c, a)));
}

static double twice_area_of_hull(const tb_hull *hull)
{
    double sum = 0;
    for (int32_t f = 0; f < hull->number_of_faces; f++) {
        const int32_t *face = hull->face_vertices + hull->face_start[f];
        const int32_t corners = hull->face_start[f + 1] - hull->face_start[f];
        for (int32_t k = 1; k + 1 < corners; k++)
            sum += twice_area(tb_v3_load(hull->vertices + 3 * (size_t)face[0]),
                              tb_v3_load(hull->vertices + 3 * (size_t)face[k]),
                              tb_v3_load(hull->vertices + 3 * (size_t)face[k + 1]));
    }
    return sum;
}

static bool covers_hull(const tb_triangle_mesh *mesh, const tb_hull *hull)
{
    double extent = 0, area = 0;
    for (int k = 0; k < 3; k++) extent = tb_max(extent, 0.5 * (mesh->upper[k] - mesh->lower[k]));
    if ((double)mesh->number_of_triangles * hull->number_of_vertices > MOST_COMPARISONS)
        return false;
    for (int32_t t = 0; t < mesh->number_of_triangles; t++) {
        const tb_vec3 n = normal_of(mesh, t), origin = corner(mesh, t, 0);
        if (!(tb_v3_length2(n) > 0)) continue;
        area += twice_area(origin, corner(mesh, t, 1), corner(mesh, t, 2));
        for (int32_t v = 0; v < hull->number_of_vertices; v++)
            if (tb_v3_dot(n, tb_v3_sub(tb_v3_load(hull->vertices + 3 * (size_t)v), origin)) >
                CONVEX_DISTANCE * extent)
                return false;
    }
    const double whole = twice_area_of_hull(hull);
    return fabs(area - whole) <= CONVEX_AREA * whole;
}

tb_status tb_triangle_mesh_hull(const tb_triangle_mesh *mesh, tb_arena *arena, tb_hull *hull,
                                bool *convex, tb_error *error)
{
    const tb_arena_mark mark = tb_arena_get_mark(arena);
    tb_error why = {0};
    *convex = false;
    if (!edges_are_convex(mesh)) return TB_OK;
    const tb_status status =
        tb_hull_build(mesh->vertices, mesh->number_of_vertices, arena, hull, &why);
    if (status == TB_RESOURCE_EXHAUSTED || status == TB_CANCELLED) {
        *error = why;
        return status;
    }
    /* another failure: a flat mesh, which has no hull */
    *convex = status == TB_OK && covers_hull(mesh, hull);
    if (!*convex) tb_arena_return_to(arena, mark);
    return TB_OK;
}
