/* Contacts of a mesh with a convex shape whose centre lies inside the mesh.
 *
 * Each triangle near the shape gives the centre's distance and its height over the plane; the
 * nearest triangle decides the side of the centre and the direction out. */
#include "collide/mesh/mesh_internal.h"

/* From the centre to the nearest point of a triangle. */
TB_STATIC tb_vec3 way_to(const tb_mesh_job *j, const tb_mesh_triangle *t)
{
    tb_real w[3];
    return tb_nearest_triangle(tb_v3_sub(t->v[0], j->centre), tb_v3_sub(t->v[1], j->centre),
                               tb_v3_sub(t->v[2], j->centre), w);
}

TB_EXTERN tb_mesh_nearest tb_mesh_near_centre(const tb_mesh_job *j, int32_t triangle)
{
    tb_mesh_triangle t;
    tb_mesh_triangle_load(&j->view, triangle, &t);
    return TB_VALUE(tb_mesh_nearest){.distance = tb_v3_length(way_to(j, &t)),
                                     .height = tb_v3_dot(t.normal, j->centre) - t.offset,
                                     .triangle = triangle};
}

TB_EXTERN bool tb_mesh_push_out(tb_mesh_job *j, const tb_mesh_nearest *nearest)
{
    if (nearest->triangle < 0 || nearest->height >= 0) return false;
    tb_mesh_triangle loaded;
    const tb_mesh_triangle *t = &loaded;
    tb_mesh_triangle_load(&j->view, nearest->triangle, &loaded);
    j->core.last = 0;
    const tb_vec3 point = tb_v3_add(j->centre, way_to(j, t));
    tb_vec3 d = tb_v3_normalize(tb_v3_sub(point, j->centre), t->normal);
    if (nearest->distance <= 16 * j->noise || tb_v3_dot(d, t->normal) > TB_R(0.99)) d = t->normal;
    j->points.count = 0;
    if (tb_mesh_same_direction(d, t->normal)) {
        if (j->polyhedral) {
            int32_t lowest = 0;
            for (int32_t v = 1; v < j->polytope.number_of_vertices; v++)
                if (tb_v3_dot(d, j->polytope.vertices[v]) <
                    tb_v3_dot(d, j->polytope.vertices[lowest]))
                    lowest = v;
            tb_mesh_polytope_on_triangle(j, t, lowest);
        } else {
            tb_mesh_round_on_triangle(j, t);
        }
        for (int32_t i = 0; i < j->points.count; i++) j->points.items[i].cut = false;
        if (j->points.count > 0) return true;
    }
    tb_mesh_contact *c = tb_mesh_points_reserve(&j->points, 1);
    if (!c) return false;
    uint32_t id;
    const tb_vec3 lowest =
        tb_v3_add_scaled(tb_core_support(&j->core, tb_v3_negate(d), &id), d, -j->core.radius);
    c->normal = d;
    c->on_shape = lowest;
    c->gap = tb_v3_dot(d, tb_v3_sub(lowest, point));
    c->on_mesh = tb_v3_add_scaled(lowest, d, -c->gap);
    c->height = tb_v3_dot(d, point);
    c->triangle = t->index;
    c->feature = id;
    c->code = TB_CODE_INSIDE;
    c->of_face = c->cut = c->witness = false;
    c->instead_of = -1;
    j->points.count++;
    return true;
}
