/* Boxes and hulls as polytopes in a mesh pair's coordinates, with the arcs of normals of their
 * edges, so that one routine handles both. */
#include "collide/mesh/mesh_internal.h"

/* corners of a box in the order of bits x, y, z; its faces counter-clockwise from outside */
TB_TABLE int32_t box_face_start[7] = {0, 4, 8, 12, 16, 20, 24};
TB_TABLE int32_t box_face_corners[24] = {0, 4, 6, 2, 1, 3, 7, 5, 0, 1, 5, 4,
                                         2, 6, 7, 3, 0, 2, 3, 1, 4, 5, 7, 6};

/* Arrays of a polytope with these numbers of vertices, faces and edges. */
typedef struct solid_arrays {
    tb_vec3 *vertices, *normals, *edge_normals;
    tb_real *offsets;
    int32_t *edges;
} solid_arrays;

TB_STATIC bool take_solid(solid_arrays *s, int32_t vertices, int32_t faces, int32_t edges,
                          tb_arena *arena)
{
    s->vertices = TB_ARENA_ARRAY(arena, tb_vec3, vertices);
    s->normals = TB_ARENA_ARRAY(arena, tb_vec3, faces);
    s->offsets = TB_ARENA_ARRAY(arena, tb_real, faces);
    s->edges = TB_ARENA_ARRAY(arena, int32_t, 2 * edges);
    s->edge_normals = TB_ARENA_ARRAY(arena, tb_vec3, 2 * edges);
    return s->vertices && s->normals && s->offsets && s->edges && s->edge_normals;
}

TB_STATIC bool solid_of_box(tb_mesh_job *j, tb_arena *arena)
{
    solid_arrays s;
    if (!take_solid(&s, 8, 6, 12, arena)) return false;
    const tb_vec3 size = j->core.size;
    TB_EACH (v, 8)
        s.vertices[v] = tb_m33_mul_v3(
            j->core.rotation,
            tb_v3(v & 1 ? size.x : -size.x, v & 2 ? size.y : -size.y, v & 4 ? size.z : -size.z));
    TB_EACH (f, 6) {
        const tb_vec3 column = tb_m33_column(j->core.rotation, f / 2);
        s.normals[f] = f & 1 ? column : tb_v3_negate(column);
        s.offsets[f] = tb_v3_at(size, f / 2);
    }
    tb_team_sync();
    TB_EACH (e, 12) {
        /* four edges per axis, from corners without its bit */
        const int axis = e / 4, b = (axis + 1) % 3, c = (axis + 2) % 3;
        const int low = e % 4 & ((1 << axis) - 1), v = (e % 4 - low) << 1 | low;
        s.edges[2 * e] = v;
        s.edges[2 * e + 1] = v | 1 << axis;
        s.edge_normals[2 * e] = s.normals[2 * b + (v >> b & 1)];
        s.edge_normals[2 * e + 1] = s.normals[2 * c + (v >> c & 1)];
    }
    if (!TB_LEADER) return true;
    j->largest = 4;
    j->polytope = TB_VALUE(tb_polytope){.number_of_vertices = 8,
                                        .number_of_faces = 6,
                                        .number_of_edges = 12,
                                        .vertices = s.vertices,
                                        .normals = s.normals,
                                        .offsets = s.offsets,
                                        .face_start = box_face_start,
                                        .face_vertices = box_face_corners,
                                        .edges = s.edges,
                                        .edge_normals = s.edge_normals,
                                        .centre = j->centre,
                                        .reach = size.x + size.y + size.z};
    return true;
}

/* The largest of the lanes' numbers. */
TB_STATIC tb_real largest_of_team(tb_real own)
{
    tb_real largest = own;
    for (int32_t lane = 0; lane < tb_team_lanes(); lane++) {
        tb_real other = own;
        tb_team_pass(&other, sizeof other, lane);
        largest = tb_max(largest, other);
    }
    return largest;
}

TB_STATIC bool solid_of_hull(tb_mesh_job *j, tb_arena *arena)
{
    const tb_hull *hull = j->core.hull;
    solid_arrays s;
    if (!take_solid(&s, hull->number_of_vertices, hull->number_of_faces, hull->number_of_edges,
                    arena))
        return false;
    tb_real reach = 0;
    TB_EACH (v, hull->number_of_vertices) {
        s.vertices[v] = tb_m33_mul_v3(j->core.rotation, tb_v3_load(&hull->vertices[3 * v]));
        reach = tb_max(reach, tb_v3_length(tb_v3_sub(s.vertices[v], j->centre)));
    }
    reach = largest_of_team(reach);
    TB_EACH (f, hull->number_of_faces) {
        s.normals[f] = tb_m33_mul_v3(j->core.rotation, tb_v3_load(&hull->planes[4 * f]));
        s.offsets[f] = TB_R(hull->planes[4 * f + 3]);
    }
    tb_team_sync();
    TB_EACH (e, hull->number_of_edges)
        for (int k = 0; k < 2; k++) {
            s.edges[2 * e + k] = hull->edges[4 * e + k];
            s.edge_normals[2 * e + k] = s.normals[hull->edges[4 * e + 2 + k]];
        }
    if (!TB_LEADER) return true;
    j->largest = 3;
    for (int32_t f = 0; f < hull->number_of_faces; f++) {
        const int32_t corners = hull->face_start[f + 1] - hull->face_start[f];
        j->largest = corners > j->largest ? corners : j->largest;
    }
    j->polytope = TB_VALUE(tb_polytope){.number_of_vertices = hull->number_of_vertices,
                                        .number_of_faces = hull->number_of_faces,
                                        .number_of_edges = hull->number_of_edges,
                                        .vertices = s.vertices,
                                        .normals = s.normals,
                                        .offsets = s.offsets,
                                        .face_start = hull->face_start,
                                        .face_vertices = hull->face_vertices,
                                        .edges = s.edges,
                                        .edge_normals = s.edge_normals,
                                        .centre = j->centre,
                                        .reach = reach};
    return true;
}

TB_EXTERN bool tb_mesh_solid(tb_mesh_job *j, tb_arena *arena)
{
    if (j->kind != TB_MESH_ON_CONVEX || !j->polyhedral) return true;
    return j->other->type == TB_SHAPE_BOX ? solid_of_box(j, arena) : solid_of_hull(j, arena);
}
