/* Boxes and hulls as a mesh pair sees them: polytopes in the pair's coordinates, with the arcs of
 * normals of their edges, so that one routine serves both. */
#include "collide/mesh_internal.h"

/* corners of a box in the order of bits x, y, z; its faces counter-clockwise from outside */
TB_TABLE int32_t box_face_start[7] = {0, 4, 8, 12, 16, 20, 24};
TB_TABLE int32_t box_face_corners[24] = {0, 4, 6, 2, 1, 3, 7, 5, 0, 1, 5, 4,
                                         2, 6, 7, 3, 0, 2, 3, 1, 4, 5, 7, 6};

TB_EXTERN bool tb_mesh_solid_of_box(tb_mesh_job *j)
{
    tb_arena *arena = j->points.arena;
    tb_vec3 *vertices = TB_ARENA_ARRAY(arena, tb_vec3, 8);
    tb_vec3 *normals = TB_ARENA_ARRAY(arena, tb_vec3, 6);
    tb_real *offsets = TB_ARENA_ARRAY(arena, tb_real, 6);
    int32_t *edges = TB_ARENA_ARRAY(arena, int32_t, 24);
    tb_vec3 *edge_normals = TB_ARENA_ARRAY(arena, tb_vec3, 24);
    if (!vertices || !normals || !offsets || !edges || !edge_normals) return false;
    const tb_real h[3] = {j->core.size.x, j->core.size.y, j->core.size.z};
    for (int v = 0; v < 8; v++)
        vertices[v] =
            tb_m33_mul_v3(j->core.rotation,
                          tb_v3(v & 1 ? h[0] : -h[0], v & 2 ? h[1] : -h[1], v & 4 ? h[2] : -h[2]));
    for (int f = 0; f < 6; f++) {
        const tb_vec3 column = tb_m33_column(j->core.rotation, f / 2);
        normals[f] = f & 1 ? column : tb_v3_negate(column);
        offsets[f] = h[f / 2];
    }
    int32_t n = 0;
    for (int axis = 0; axis < 3; axis++)
        for (int v = 0; v < 8; v++) {
            if (v >> axis & 1) continue;
            const int b = (axis + 1) % 3, c = (axis + 2) % 3;
            edges[2 * n] = v;
            edges[2 * n + 1] = v | 1 << axis;
            edge_normals[2 * n] = normals[2 * b + (v >> b & 1)];
            edge_normals[2 * n + 1] = normals[2 * c + (v >> c & 1)];
            n++;
        }
    j->polytope = TB_VALUE(tb_polytope){.number_of_vertices = 8,
                                        .number_of_faces = 6,
                                        .number_of_edges = 12,
                                        .vertices = vertices,
                                        .normals = normals,
                                        .offsets = offsets,
                                        .face_start = box_face_start,
                                        .face_vertices = box_face_corners,
                                        .edges = edges,
                                        .edge_normals = edge_normals,
                                        .centre = j->centre,
                                        .reach = h[0] + h[1] + h[2]};
    return tb_mesh_job_buffers(j, 4);
}

TB_EXTERN bool tb_mesh_solid_of_hull(tb_mesh_job *j)
{
    tb_arena *arena = j->points.arena;
    const tb_hull *hull = j->core.hull;
    tb_vec3 *vertices = TB_ARENA_ARRAY(arena, tb_vec3, hull->number_of_vertices);
    tb_vec3 *normals = TB_ARENA_ARRAY(arena, tb_vec3, hull->number_of_faces);
    tb_real *offsets = TB_ARENA_ARRAY(arena, tb_real, hull->number_of_faces);
    int32_t *edges = TB_ARENA_ARRAY(arena, int32_t, 2 * hull->number_of_edges);
    tb_vec3 *edge_normals = TB_ARENA_ARRAY(arena, tb_vec3, 2 * hull->number_of_edges);
    if (!vertices || !normals || !offsets || !edges || !edge_normals) return false;
    tb_real reach = 0;
    int32_t largest = 3;
    for (int32_t v = 0; v < hull->number_of_vertices; v++) {
        vertices[v] = tb_m33_mul_v3(j->core.rotation, tb_v3_load(&hull->vertices[3 * v]));
        reach = tb_max(reach, tb_v3_length(tb_v3_sub(vertices[v], j->centre)));
    }
    for (int32_t f = 0; f < hull->number_of_faces; f++) {
        normals[f] = tb_m33_mul_v3(j->core.rotation, tb_v3_load(&hull->planes[4 * f]));
        offsets[f] = TB_R(hull->planes[4 * f + 3]);
        if (hull->face_start[f + 1] - hull->face_start[f] > largest)
            largest = hull->face_start[f + 1] - hull->face_start[f];
    }
    for (int32_t e = 0; e < hull->number_of_edges; e++)
        for (int k = 0; k < 2; k++) {
            edges[2 * e + k] = hull->edges[4 * e + k];
            edge_normals[2 * e + k] = normals[hull->edges[4 * e + 2 + k]];
        }
    j->polytope = TB_VALUE(tb_polytope){.number_of_vertices = hull->number_of_vertices,
                                        .number_of_faces = hull->number_of_faces,
                                        .number_of_edges = hull->number_of_edges,
                                        .vertices = vertices,
                                        .normals = normals,
                                        .offsets = offsets,
                                        .face_start = hull->face_start,
                                        .face_vertices = hull->face_vertices,
                                        .edges = edges,
                                        .edge_normals = edge_normals,
                                        .centre = j->centre,
                                        .reach = reach};
    return tb_mesh_job_buffers(j, largest);
}
