/* Tests the flat faces of a pair before any iterative method.
 *
 * Most pairs of a scene are separated by a face's plane, or rest on one. The separation along a
 * face normal is a lower bound of the distance: above the margin the pair is done, and if
 * contact points have that separation, it is the distance. In shallow penetration the same holds
 * if the shapes are much thicker than the penetration. */
#ifndef TB_COLLIDE_FACE_FIRST_H
#define TB_COLLIDE_FACE_FIRST_H

#include "collide/convex/closest.h"

/* hulls with more faces are tested along one face only */
enum { TB_FACE_FIRST_FACES = 24 };

/* Depth, relative to the thickness of the thinner shape, up to which a face is trusted. */
#define TB_FACE_FIRST_SHALLOW TB_R(0.01)

typedef struct tb_face_first {
    tb_real separation; /* largest of one shape's faces */
    tb_vec3 normal;     /* from A to B */
    tb_real thickness;  /* m, least distance of the inside point from a face */
} tb_face_first;

/* one more normal (outward of its own shape); 0 if it separates by more than `limit` */
TB_FN int tb_face_first_try(tb_core *a, tb_core *b, tb_vec3 normal, tb_real tie, tb_real limit,
                            tb_face_first *best)
{
    const tb_real separation = tb_core_separation(a, b, normal);
    if (separation > limit) return 0;
    if (separation > best->separation + tie) {
        best->separation = separation;
        best->normal = normal;
    }
    return 1;
}

/* Tests the faces of A (of 1) or B (of 2) that face the other shape. 0 if one separates by more
 * than `limit`. */
TB_FN_LARGE int tb_face_first_of(tb_core *a, tb_core *b, int of, tb_real tie, tb_real limit,
                                 tb_face_first *best)
{
    const tb_core *base = of == 1 ? a : b;
    const tb_vec3 ahead = tb_v3_sub(b->inside, a->inside); /* signs below turn normals along it */
    const tb_vec3 h = base->size;
    best->separation = -TB_REAL_MAX;
    best->normal = ahead;
    best->thickness = TB_REAL_MAX;
    if (base->type == TB_SHAPE_BOX || base->type == TB_SHAPE_CYLINDER) {
        const int box = base->type == TB_SHAPE_BOX;
        best->thickness = box ? tb_min(h.x, tb_min(h.y, h.z)) : tb_min(h.x, h.y);
        for (int k = box ? 0 : 2; k < 3; k++) {
            const tb_vec3 axis = tb_m33_column(base->rotation, k);
            const tb_vec3 n = tb_v3_dot(axis, ahead) < 0 ? tb_v3_negate(axis) : axis;
            if (!tb_face_first_try(a, b, n, tie, limit, best)) return 0;
        }
    } else if (base->type == TB_SHAPE_CONVEX) {
        const tb_hull *hull = base->hull;
        const tb_real sign = of == 1 ? TB_R(1) : TB_R(-1);
        const tb_vec3 local = tb_v3_scale(tb_m33_tmul_v3(base->rotation, ahead), sign);
        const tb_vec3 middle = tb_v3_load(hull->centre);
        const int many = hull->number_of_faces > TB_FACE_FIRST_FACES;
        const int32_t towards = many ? tb_hull_face_towards(hull, local, base->last) : 0;
        const int known = many && hull->vertex_face_start != 0;
        const int32_t begin = known ? towards : 0;
        const int32_t end = known ? towards + 1 : hull->number_of_faces;
        if (known) best->thickness = TB_R(hull->thickness);
        for (int32_t f = begin; f < end; f++) {
            const tb_vec3 m = tb_v3_load(&hull->planes[4 * f]);
            best->thickness =
                tb_min(best->thickness, TB_R(hull->planes[4 * f + 3]) - tb_v3_dot(m, middle));
            if (many ? f != towards : !(tb_v3_dot(m, local) > 0)) continue;
            const tb_vec3 n = tb_v3_scale(tb_m33_mul_v3(base->rotation, m), sign);
            if (!tb_face_first_try(a, b, n, tie, limit, best)) return 0;
        }
    }
    return 1;
}

/* 0: farther apart than `limit`. 1: no usable face. 2: *c holds the best face's normal and
 * separation, which solve the pair if contacts with that separation exist. */
TB_FN_LARGE int tb_face_first_find(tb_core *a, tb_core *b, tb_real tie, tb_real limit,
                                   tb_closest *c)
{
    tb_face_first of_a, of_b;
    if (!tb_face_first_of(a, b, 1, tie, limit, &of_a)) return 0;
    if (!tb_face_first_of(a, b, 2, tie, limit, &of_b)) return 0;
    const int first = of_a.separation + tie >= of_b.separation;
    c->face = first ? 1 : 2;
    c->normal = first ? of_a.normal : of_b.normal;
    c->separation = first ? of_a.separation : of_b.separation;
    c->degenerate = 0;
    const tb_real thickness = tb_min(of_a.thickness, of_b.thickness);
    return c->separation > -TB_FACE_FIRST_SHALLOW * tb_min(thickness, a->extent + b->extent) ? 2
                                                                                             : 1;
}

#endif
