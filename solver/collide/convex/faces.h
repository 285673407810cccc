/* The flat face of a convex core with its normal closest to a direction. */
#ifndef TB_COLLIDE_FACES_H
#define TB_COLLIDE_FACES_H

#include "collide/convex/support.h"

/* A cylinder shows its cap above this cosine between axis and direction, else its side. */
#define TB_PATCH_CAP TB_R(0.7)

/* Index of the hull face closest to a local direction among the faces at the vertex farthest
 * along it: a face elsewhere may be closer in direction but lie behind. Ties by index. `from`:
 * first vertex of the search. */
TB_FN int32_t tb_hull_face_towards(const tb_hull *hull, tb_vec3 local, int32_t from)
{
    const int32_t vertex = tb_hull_support(hull, local, from);
    const tb_vec3 v = tb_v3_load(&hull->vertices[3 * vertex]);
    const tb_vec3 middle = tb_v3_load(hull->centre);
    const tb_real level = TB_COLLIDE_FLAT * tb_v3_length(tb_v3_sub(v, middle));
    int32_t best = -1;
    tb_real most = -TB_REAL_MAX;
    const int32_t *listed = hull->vertex_face_start ? hull->vertex_faces : 0;
    const int32_t first = listed ? hull->vertex_face_start[vertex] : 0;
    const int32_t end = listed ? hull->vertex_face_start[vertex + 1] : hull->number_of_faces;
    for (int32_t k = first; k < end; k++) {
        const int32_t f = listed ? listed[k] : k;
        const tb_vec3 m = tb_v3_load(&hull->planes[4 * f]);
        const tb_real c = tb_v3_dot(local, m);
        if (!(c > most + TB_COLLIDE_FLAT * TB_COLLIDE_FLAT)) continue;
        if (TB_R(hull->planes[4 * f + 3]) - tb_v3_dot(m, v) > level) continue;
        most = c;
        best = f;
    }
    return best < 0 ? 0 : best;
}

/* The unit normal of the flat face closest to `towards`; 0 if the shape has none near it. */
TB_FN_LARGE int tb_core_face_normal(const tb_core *core, tb_vec3 towards, tb_vec3 *normal)
{
    const tb_vec3 d = tb_m33_tmul_v3(core->rotation, towards);
    if (core->type == TB_SHAPE_BOX) {
        int axis = 0;
        if (tb_abs(d.y) > tb_abs(d.x) + TB_COLLIDE_FLAT) axis = 1;
        if (tb_abs(d.z) > tb_abs(axis ? d.y : d.x) + TB_COLLIDE_FLAT) axis = 2;
        *normal = tb_m33_column(core->rotation, axis);
    } else if (core->type == TB_SHAPE_CYLINDER && tb_abs(d.z) > TB_PATCH_CAP) {
        *normal = tb_m33_column(core->rotation, 2);
    } else if (core->type == TB_SHAPE_CONVEX && core->hull->number_of_faces > 0) {
        const int32_t f = tb_hull_face_towards(core->hull, d, core->last);
        *normal = tb_m33_mul_v3(core->rotation, tb_v3_load(&core->hull->planes[4 * f]));
    } else {
        return 0;
    }
    if (core->type != TB_SHAPE_CONVEX && tb_v3_dot(*normal, towards) < 0)
        *normal = tb_v3_negate(*normal);
    return 1;
}

#endif
