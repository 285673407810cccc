/* A plane against every convex shape, in closed form.
 *
 * The plane is shape A; its normal is the contact normal, so every point is exact to rounding. */
#ifndef TB_COLLIDE_PLANE_PAIRS_H
#define TB_COLLIDE_PLANE_PAIRS_H

#include "collide/convex/faces.h"

/* Cosines between a shape's axis and the normal: above UPRIGHT a cylinder is on its cap and a
 * box on its face, and the far end is dropped; below LYING a cylinder is on its side. */
#define TB_COLLIDE_UPRIGHT TB_R(0.8)
#define TB_COLLIDE_LYING   TB_R(0.7)

/* height of a point over the plane */
TB_FN tb_real tb_plane_height(const tb_posed_shape *plane, tb_vec3 normal, tb_vec3 point)
{
    return tb_v3_dot(normal, tb_v3_sub(point, plane->pose.position));
}

TB_FN int tb_plane_sphere(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                          tb_contact_point *points)
{
    const tb_vec3 n = tb_m33_column(&a->pose.rotation, 2);
    const tb_real gap = tb_plane_height(a, n, b->pose.position) - b->size.x;
    if (!(gap <= margin)) return 0;
    tb_contact_set_b(points, n, tb_v3_add_scaled(b->pose.position, n, -b->size.x), gap, 0);
    return 1;
}

TB_FN int tb_plane_capsule(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                           tb_contact_point *points)
{
    const tb_vec3 n = tb_m33_column(&a->pose.rotation, 2);
    const tb_vec3 axis = tb_m33_column(&b->pose.rotation, 2);
    const tb_real height = tb_plane_height(a, n, b->pose.position) - b->size.x;
    const tb_real rise = tb_v3_dot(n, axis) * b->size.y;
    int count = 0;
    for (uint32_t end = 0; end < 2; end++) {
        const tb_real side = end ? TB_R(1) : TB_R(-1);
        const tb_real gap = height + side * rise;
        if (!(gap <= margin)) continue;
        const tb_vec3 centre = tb_v3_add_scaled(b->pose.position, axis, side * b->size.y);
        tb_contact_set_b(&points[count++], n, tb_v3_add_scaled(centre, n, -b->size.x), gap,
                         tb_feature(TB_FEATURE_FACE, TB_FEATURE_VERTEX | end));
    }
    return count;
}

/* Corners by their number's bits: bit i set is the + side of axis i. The upper corners of an
 * upright box are dropped: they can only touch after a turn of half a right angle. */
TB_FN_LARGE int tb_plane_box(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                             tb_contact_point *points)
{
    const tb_vec3 n = tb_m33_column(&a->pose.rotation, 2);
    const tb_real height = tb_plane_height(a, n, b->pose.position);
    const tb_vec3 cosine = tb_m33_tmul_v3(&b->pose.rotation, n);
    const tb_vec3 rise = tb_v3(cosine.x * b->size.x, cosine.y * b->size.y, cosine.z * b->size.z);
    if (!(height - tb_abs(rise.x) - tb_abs(rise.y) - tb_abs(rise.z) <= margin)) return 0;

    uint32_t upright = 0, upper = 0; /* bit of the upright axis, and its value at the upper end */
    if (tb_abs(cosine.x) > TB_COLLIDE_UPRIGHT) upright = 1, upper = cosine.x > 0 ? 1u : 0u;
    if (tb_abs(cosine.y) > TB_COLLIDE_UPRIGHT) upright = 2, upper = cosine.y > 0 ? 2u : 0u;
    if (tb_abs(cosine.z) > TB_COLLIDE_UPRIGHT) upright = 4, upper = cosine.z > 0 ? 4u : 0u;

    const tb_vec3 ex = tb_v3_scale(tb_m33_column(&b->pose.rotation, 0), b->size.x);
    const tb_vec3 ey = tb_v3_scale(tb_m33_column(&b->pose.rotation, 1), b->size.y);
    const tb_vec3 ez = tb_v3_scale(tb_m33_column(&b->pose.rotation, 2), b->size.z);
    int count = 0;
    for (uint32_t corner = 0; corner < 8; corner++) {
        if (upright && (corner & upright) == upper) continue;
        const tb_real x = corner & 1 ? TB_R(1) : TB_R(-1);
        const tb_real y = corner & 2 ? TB_R(1) : TB_R(-1);
        const tb_real z = corner & 4 ? TB_R(1) : TB_R(-1);
        const tb_real gap = height + (x * rise.x + y * rise.y + z * rise.z);
        if (!(gap <= margin)) continue;
        const tb_vec3 offset = tb_v3(x * ex.x + y * ey.x + z * ez.x, x * ex.y + y * ey.y + z * ez.y,
                                     x * ex.z + y * ey.z + z * ez.z);
        tb_contact_set_b(&points[count++], n, tb_v3_add(b->pose.position, offset), gap,
                         tb_feature(TB_FEATURE_FACE, TB_FEATURE_VERTEX | corner));
    }
    return count;
}

/* The lowest point of each rim, and, for an upright cylinder, four points fixed to the lower
 * cap: these keep their feature ids while the cylinder is upright, and the lowest point of the
 * rim makes tipping exact. */
TB_FN_LARGE int tb_plane_cylinder(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                  tb_contact_point *points)
{
    const tb_vec3 n = tb_m33_column(&a->pose.rotation, 2);
    const tb_vec3 axis = tb_m33_column(&b->pose.rotation, 2);
    const tb_real radius = b->size.x, half = b->size.y;
    const tb_real cosine = tb_v3_dot(n, axis);
    /* sine and direction of steepest descent over the caps, from the other two axes:
     * exact when small */
    const tb_vec3 ax = tb_m33_column(&b->pose.rotation, 0);
    const tb_vec3 ay = tb_m33_column(&b->pose.rotation, 1);
    const tb_real nx = tb_v3_dot(n, ax), ny = tb_v3_dot(n, ay);
    const tb_real sine = tb_sqrt(nx * nx + ny * ny);
    const tb_real height = tb_plane_height(a, n, b->pose.position);
    if (!(height - half * tb_abs(cosine) - radius * sine <= margin)) return 0;

    const uint32_t lower = cosine > 0 ? 0u : 1u; /* cap 1 is at +Z */
    tb_real dx = 0, dy = 0;
    if (sine > 0) dx = -nx / sine, dy = -ny / sine;
    int count = 0;

    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t cap = i ? 1 - lower : lower;
        const tb_real side = cap ? TB_R(1) : TB_R(-1);
        const tb_vec3 centre = tb_v3_add_scaled(b->pose.position, axis, side * half);
        const tb_real level = height + side * half * cosine;
        const int standing = i == 0 && tb_abs(cosine) > TB_COLLIDE_UPRIGHT;
        if (i == 1 && tb_abs(cosine) > TB_COLLIDE_LYING) break;

        /* skip a rim point that coincides with one of the four fixed points */
        const int fixed = standing && tb_min(tb_abs(dx), tb_abs(dy)) < TB_R(1e-4);
        const tb_real gap = level - radius * sine;
        if (!fixed && !(standing && sine <= TB_COLLIDE_FLAT) && gap <= margin) {
            const tb_vec3 rim =
                tb_v3_add_scaled(tb_v3_add_scaled(centre, ax, radius * dx), ay, radius * dy);
            tb_contact_set_b(&points[count++], n, rim, gap,
                             tb_feature(TB_FEATURE_FACE, TB_FEATURE_EDGE | cap));
        }
        for (uint32_t k = 0; standing && k < 4; k++) {
            const tb_real at = k & 1 ? -radius : radius;
            const tb_real fixed_gap = level + at * (k & 2 ? ny : nx);
            if (!(fixed_gap <= margin)) continue;
            tb_contact_set_b(&points[count++], n, tb_v3_add_scaled(centre, k & 2 ? ay : ax, at),
                             fixed_gap,
                             tb_feature(TB_FEATURE_FACE, TB_FEATURE_VERTEX | (cap << 2) | k));
        }
    }
    return count;
}

/* Lowest point: -R S^2 R'n / |S R'n|. */
TB_FN int tb_plane_ellipsoid(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                             tb_contact_point *points)
{
    const tb_vec3 n = tb_m33_column(&a->pose.rotation, 2);
    const tb_vec3 local = tb_m33_tmul_v3(&b->pose.rotation, n);
    const tb_vec3 s = b->size;
    const tb_vec3 scaled = tb_v3(s.x * local.x, s.y * local.y, s.z * local.z);
    const tb_real reach = tb_v3_length(scaled);
    const tb_real gap = tb_plane_height(a, n, b->pose.position) - reach;
    if (!(gap <= margin)) return 0;
    const tb_real f = reach > 0 ? -1 / reach : TB_R(0);
    const tb_vec3 lowest = tb_v3(f * s.x * scaled.x, f * s.y * scaled.y, f * s.z * scaled.z);
    tb_contact_set_b(points, n, tb_pose_point(&b->pose, lowest), gap, 0);
    return 1;
}

/* The lowest vertex and the vertices of the lowest-facing face. */
TB_FN_LARGE int tb_plane_convex(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                tb_contact_point *points)
{
    const tb_vec3 n = tb_m33_column(&a->pose.rotation, 2);
    const tb_vec3 local = tb_m33_tmul_v3(&b->pose.rotation, n);
    const tb_hull *hull = b->hull;
    if (!hull || hull->number_of_vertices <= 0) return 0;
    const tb_real height = tb_plane_height(a, n, b->pose.position);

    if (hull->cells > 0) { /* in most cases the hull's box is above the margin */
        const tb_vec3 half = tb_v3_load(hull->half);
        const tb_real middle = height + tb_v3_dot(local, tb_v3_load(hull->middle));
        const tb_real reach =
            tb_abs(local.x) * half.x + tb_abs(local.y) * half.y + tb_abs(local.z) * half.z;
        if (!(middle - reach <= margin + TB_COLLIDE_NOISE * reach)) return 0;
    }
    const tb_vec3 down = tb_v3_negate(local);
    const int32_t lowest = tb_hull_support(hull, down, 0);
    if (!(height + tb_v3_dot(local, tb_v3_load(&hull->vertices[3 * lowest])) <= margin)) return 0;
    const int32_t face = hull->number_of_faces > 0 ? tb_hull_face_towards(hull, down, lowest) : -1;
    tb_contact_point all[65];
    int count = 0;
    const int32_t start = face < 0 ? 0 : hull->face_start[face];
    const int32_t size = face < 0 ? 0 : hull->face_start[face + 1] - start;
    const int32_t stride = 1 + (size - 1) / 64; /* faces of more than 64 corners are thinned */
    int seen = 0;
    for (int32_t k = 0; k < size + stride; k += stride) {
        if (k >= size && seen) break;
        const int32_t v = k >= size ? lowest : hull->face_vertices[start + k];
        seen |= v == lowest;
        const tb_vec3 p = tb_v3_load(&hull->vertices[3 * v]);
        const tb_real gap = height + tb_v3_dot(local, p);
        if (gap <= margin)
            tb_contact_set_b(&all[count++], n, tb_pose_point(&b->pose, p), gap,
                             tb_feature(TB_FEATURE_FACE, TB_FEATURE_VERTEX | (uint32_t)v));
        if (k >= size) break;
    }
    count = tb_manifold_reduce(all, count);
    for (int i = 0; i < count; i++) points[i] = all[i];
    return count;
}

#endif
