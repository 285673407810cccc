/* Capsule against box: the segment and the box by six axes, then the segment over a face or across
 * an edge.
 *
 * The three face normals and the three crossings of edges with the segment contain the axis of
 * least penetration, as for two boxes. If the shapes are separated, the same features are used
 * if they lie over each other; the general method handles the rest (corners, ends beyond an
 * edge, parallel edges). */
#ifndef TB_COLLIDE_CAPSULE_BOX_H
#define TB_COLLIDE_CAPSULE_BOX_H

#include "collide/convex/box_box.h"
#include "collide/convex/patch.h"

/* The segment over face (axis, positive) of the box; c, u: middle and direction in the box's
 * axes. */
TB_FN_LARGE int tb_capsule_on_face(const tb_posed_shape *a, const tb_posed_shape *b, int axis,
                                   int positive, const tb_real c[3], const tb_real u[3],
                                   tb_real slack, tb_real margin, tb_contact_point *points,
                                   tb_real *least)
{
    const tb_real h[3] = {b->size.x, b->size.y, b->size.z};
    const tb_real radius = a->size.x, half = a->size.y;
    const tb_real sign = positive ? TB_R(1) : TB_R(-1);
    const uint32_t face = tb_box_face_feature(axis, positive);
    const uint32_t own_edge = tb_feature_edge(0, 1);
    tb_real s[2] = {-half, half}; /* ends of the part over the face */
    uint32_t own[2] = {TB_FEATURE_VERTEX, TB_FEATURE_VERTEX | 1u}, other[2] = {face, face};

    for (int k = 0; k < 3; k++) {
        if (k == axis) continue;
        const int along = 3 - axis - k;
        for (int plus = 0; plus < 2; plus++) {
            const tb_real side = plus ? TB_R(1) : TB_R(-1);
            const tb_real middle = side * c[k] - h[k], rise = side * u[k];
            const tb_real d0 = middle - half * rise, d1 = middle + half * rise;
            if (d0 > slack && d1 > slack) return 0;
            if (!(d0 > slack || d1 > slack)) continue;
            const int end = d0 > slack ? 0 : 1;
            const tb_real at = -middle / rise;
            if (!(end ? at < s[1] : at > s[0])) continue;
            const uint32_t corner = (uint32_t)(((positive ? 1 : 0) << axis) | (plus ? 1 << k : 0));
            s[end] = at;
            own[end] = own_edge;
            other[end] = tb_feature_edge(corner, corner | (1u << along));
        }
    }
    if (!(s[0] <= s[1])) return 0;

    const tb_vec3 out = tb_v3_scale(tb_m33_column(&b->pose.rotation, axis), sign);
    const tb_vec3 n = tb_v3_negate(out), direction = tb_m33_column(&a->pose.rotation, 2);
    const int upright = tb_abs(u[axis]) > TB_PATCH_UPRIGHT;
    const int low = sign * u[axis] > 0 ? 0 : 1; /* the end nearer to the face */
    int count = 0;
    for (int end = 0; end < 2; end++) {
        if (upright && end != low) continue;
        if (end == 1 && own[1] == own_edge && s[1] - s[0] <= slack && count) continue;
        const tb_real gap = sign * (c[axis] + s[end] * u[axis]) - h[axis] - radius;
        *least = tb_min(*least, gap);
        if (!(gap <= margin)) continue;
        const tb_vec3 p =
            tb_v3_add_scaled(tb_v3_add_scaled(a->pose.position, direction, s[end]), n, radius);
        tb_contact_set_a(&points[count++], n, p, gap, tb_feature(own[end], other[end]));
    }
    return count;
}

/* The segment across edge i of the box, with the unit direction `out` from the box in its axes. */
TB_FN_LARGE int tb_capsule_on_edge(const tb_posed_shape *a, const tb_posed_shape *b, int i,
                                   const tb_real out[3], const tb_real c[3], const tb_real u[3],
                                   tb_real separation, tb_real slack, tb_real margin,
                                   tb_contact_point *points)
{
    const tb_real h[3] = {b->size.x, b->size.y, b->size.z};
    tb_real d[3]; /* from the edge's middle to the segment's */
    uint32_t corner = 0;
    for (int k = 0; k < 3; k++) {
        d[k] = c[k];
        if (k == i) continue;
        d[k] -= out[k] > 0 ? h[k] : -h[k];
        if (out[k] > 0) corner |= 1u << k;
    }
    const tb_real du = d[0] * u[0] + d[1] * u[1] + d[2] * u[2];
    const tb_real s = (u[i] * d[i] - du) / (1 - u[i] * u[i]); /* along the segment */
    const tb_real r = d[i] + s * u[i];                        /* along the edge */
    if (tb_abs(s) > a->size.y + slack || tb_abs(r) > h[i] + slack) return TB_COLLIDE_GENERAL;
    const tb_real gap = separation - a->size.x;
    if (!(gap <= margin)) return 0;
    const tb_vec3 n = tb_v3_negate(tb_m33_mul_v3(&b->pose.rotation, tb_v3(out[0], out[1], out[2])));
    const tb_vec3 p = tb_v3_add_scaled(a->pose.position, tb_m33_column(&a->pose.rotation, 2), s);
    tb_contact_set_a(points, n, tb_v3_add_scaled(p, n, a->size.x), gap,
                     tb_feature(TB_FEATURE_SURFACE, tb_feature_edge(corner, corner | (1u << i))));
    return 1;
}

/* Number of points, or TB_COLLIDE_GENERAL. */
TB_FN_LARGE int tb_capsule_box(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                               tb_contact_point *points, uint32_t *flags)
{
    const tb_vec3 cv = tb_pose_inverse_point(&b->pose, a->pose.position);
    const tb_vec3 uv = tb_m33_tmul_v3(&b->pose.rotation, tb_m33_column(&a->pose.rotation, 2));
    const tb_real c[3] = {cv.x, cv.y, cv.z}, u[3] = {uv.x, uv.y, uv.z};
    const tb_real h[3] = {b->size.x, b->size.y, b->size.z};
    const tb_real radius = a->size.x, half = a->size.y, reach = margin + radius;
    const tb_real size = h[0] + h[1] + h[2] + half;
    const tb_real tie = TB_COLLIDE_TIE * (size + radius);

    tb_real face = -TB_REAL_MAX, edge = -TB_REAL_MAX, edge_length = 1;
    int axis = 0, edge_axis = 0;
    for (int i = 0; i < 3; i++) {
        const tb_real s = tb_abs(c[i]) - h[i] - half * tb_abs(u[i]);
        if (!(s <= reach)) return 0;
        if (s > face + tie) face = s, axis = i;
    }
    for (int i = 0; i < 3; i++) {
        const int k = i == 2 ? 0 : i + 1, l = i == 0 ? 2 : i - 1;
        const tb_real length2 = u[k] * u[k] + u[l] * u[l];
        if (!(length2 > TB_COLLIDE_PARALLEL * TB_COLLIDE_PARALLEL)) continue;
        const tb_real length = tb_sqrt(length2);
        const tb_real s =
            (tb_abs(c[l] * u[k] - c[k] * u[l]) - (h[k] * tb_abs(u[l]) + h[l] * tb_abs(u[k]))) /
            length;
        if (!(s <= reach)) return 0;
        if (s > edge + tie) edge = s, edge_axis = i, edge_length = length;
    }
    const tb_real slack = TB_COLLIDE_FLAT * size;
    if (edge > face + tie) {
        /* side by side they touch along a stretch */
        if (edge_length < TB_COLLIDE_SIDE_BY_SIDE) return TB_COLLIDE_GENERAL;
        const int k = edge_axis == 2 ? 0 : edge_axis + 1, l = edge_axis == 0 ? 2 : edge_axis - 1;
        tb_real out[3] = {0, 0, 0};
        out[k] = -u[l] / edge_length;
        out[l] = u[k] / edge_length;
        if (out[k] * c[k] + out[l] * c[l] < 0) out[k] = -out[k], out[l] = -out[l];
        return tb_capsule_on_edge(a, b, edge_axis, out, c, u, edge, slack, margin, points);
    }
    tb_real least = TB_REAL_MAX;
    const int count =
        tb_capsule_on_face(a, b, axis, c[axis] > 0, c, u, slack, margin, points, &least);
    if (least > face - radius + 4 * tie) return TB_COLLIDE_GENERAL;
    if (cv.x == 0 && cv.y == 0 && cv.z == 0) *flags |= TB_CONTACT_DEGENERATE;
    return count;
}

#endif
