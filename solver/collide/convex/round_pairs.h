/* Spheres and capsules among themselves, a sphere against cylinder, box, ellipsoid and hull, and a
 * capsule beside a cylinder.
 *
 * A sphere has one contact with a convex shape, at the point nearest to its centre; its feature
 * id is always 0, because a rolling sphere keeps the contact. */
#ifndef TB_COLLIDE_ROUND_PAIRS_H
#define TB_COLLIDE_ROUND_PAIRS_H

#include "collide/manifold.h"

/* Two balls whose centres differ by `offset` (from A to B). `fallback`: a unit normal for the case
 * that they coincide. Writes the point if the gap allows it. */
TB_FN int tb_ball_ball(tb_vec3 centre_a, tb_real radius_a, tb_vec3 offset, tb_real radius_b,
                       tb_real margin, tb_vec3 fallback, uint64_t feature, tb_contact_point *point,
                       uint32_t *flags)
{
    const tb_real reach = margin + radius_a + radius_b;
    const tb_real distance2 = tb_v3_length2(offset);
    if (!(distance2 <= reach * reach) && distance2 > 1) return 0; /* small ones may underflow */
    const tb_vec3 none = tb_v3(0, 0, 0);
    tb_vec3 n = tb_v3_normalize(offset, none);
    tb_real distance = tb_v3_dot(n, offset);
    if (!(tb_v3_length2(n) > TB_R(0.5))) {
        n = fallback;
        distance = 0;
        *flags |= TB_CONTACT_DEGENERATE;
    }
    const tb_real gap = distance - radius_a - radius_b;
    if (!(gap <= margin)) return 0;
    tb_contact_set_a(point, n, tb_v3_add_scaled(centre_a, n, radius_a), gap, feature);
    return 1;
}

TB_FN int tb_sphere_sphere(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                           tb_contact_point *points, uint32_t *flags)
{
    const tb_vec3 offset = tb_v3_sub(b->pose.position, a->pose.position);
    return tb_ball_ball(a->pose.position, a->size.x, offset, b->size.x, margin, tb_v3(0, 0, 1), 0,
                        points, flags);
}

TB_FN int tb_sphere_capsule(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                            tb_contact_point *points, uint32_t *flags)
{
    const tb_vec3 offset = tb_v3_sub(b->pose.position, a->pose.position);
    const tb_vec3 axis = tb_m33_column(&b->pose.rotation, 2);
    const tb_real s = tb_clamp(-tb_v3_dot(offset, axis), -b->size.y, b->size.y);
    return tb_ball_ball(a->pose.position, a->size.x, tb_v3_add_scaled(offset, axis, s), b->size.x,
                        margin, tb_m33_column(&b->pose.rotation, 0), 0, points, flags);
}

/* Writes the contact of a sphere A with the surface point `surface` of B, with outward normal
 * `outward` there; the centre is at `height` over the surface. All but height in B's frame. */
TB_FN int tb_sphere_contact(const tb_posed_shape *a, const tb_posed_shape *b, tb_vec3 surface,
                            tb_vec3 outward, tb_real height, tb_real margin,
                            tb_contact_point *point)
{
    const tb_real gap = height - a->size.x;
    if (!(gap <= margin)) return 0;
    const tb_vec3 n = tb_v3_negate(tb_m33_mul_v3(&b->pose.rotation, outward));
    tb_contact_set_b(point, n, tb_pose_point(&b->pose, surface), gap, 0);
    return 1;
}

TB_FN_LARGE int tb_sphere_cylinder(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                   tb_contact_point *points, uint32_t *flags)
{
    const tb_vec3 c = tb_pose_inverse_point(&b->pose, a->pose.position);
    const tb_real radius = b->size.x, half = b->size.y;
    const tb_vec3 across = tb_v3(c.x, c.y, 0);
    tb_vec3 radial = tb_v3_normalize(across, tb_v3(0, 0, 0));
    const tb_real rho = tb_v3_dot(radial, across);
    const tb_real side = rho - radius, over = tb_abs(c.z) - half;
    const tb_real up = c.z < 0 ? TB_R(-1) : TB_R(1);
    const tb_vec3 axis = tb_v3(0, 0, up);

    if (side > 0 && over > 0) { /* nearest to the rim */
        const tb_vec3 away = tb_v3_add(tb_v3_scale(radial, side), tb_v3_scale(axis, over));
        const tb_vec3 n = tb_v3_normalize(away, axis);
        const tb_vec3 rim = tb_v3(radial.x * radius, radial.y * radius, up * half);
        return tb_sphere_contact(a, b, rim, n, tb_v3_dot(n, away), margin, points);
    }
    if (over > side)
        return tb_sphere_contact(a, b, tb_v3(c.x, c.y, up * half), axis, over, margin, points);
    if (!(rho > 0)) { /* on the axis, nearest to the side */
        radial = tb_v3(1, 0, 0);
        if (side - a->size.x <= margin) *flags |= TB_CONTACT_DEGENERATE;
    }
    return tb_sphere_contact(a, b, tb_v3(radial.x * radius, radial.y * radius, c.z), radial, side,
                             margin, points);
}

/* A capsule beside a cylinder: finds the segment point nearest to the infinite cylinder. Its
 * distance is a lower bound, so beyond the margin the shapes are apart; if the side is the
 * nearest feature of that point, the contact is that of a sphere there. The general method
 * handles a segment that enters the side, passes a cap or runs along the axis. Returns the
 * number of points, or TB_COLLIDE_GENERAL. */
TB_FN_LARGE int tb_capsule_cylinder(const tb_posed_shape *a, const tb_posed_shape *b,
                                    tb_real margin, tb_contact_point *points)
{
    const tb_vec3 c = tb_pose_inverse_point(&b->pose, a->pose.position);
    const tb_vec3 u = tb_m33_tmul_v3(&b->pose.rotation, tb_m33_column(&a->pose.rotation, 2));
    const tb_real length = a->size.y, radius = b->size.x, half = b->size.y;
    const tb_real reach = margin + a->size.x;
    if (tb_abs(c.z) - half - length * tb_abs(u.z) > reach) return 0;
    const tb_real sine2 = u.x * u.x + u.y * u.y;
    if (!(sine2 > TB_COLLIDE_SIDE_BY_SIDE * TB_COLLIDE_SIDE_BY_SIDE)) return TB_COLLIDE_GENERAL;
    const tb_real s = tb_clamp(-(c.x * u.x + c.y * u.y) / sine2, -length, length);
    const tb_vec3 p = tb_v3_add_scaled(c, u, s);
    const tb_real rho = tb_sqrt(p.x * p.x + p.y * p.y), side = rho - radius;
    if (side > reach) return 0;
    /* this near to the side, or beyond a cap, another feature may be the nearest */
    if (!(side > TB_COLLIDE_FLAT * (radius + half + length)) || tb_abs(p.z) > half)
        return TB_COLLIDE_GENERAL;
    const tb_vec3 radial = tb_v3(p.x / rho, p.y / rho, 0);
    return tb_sphere_contact(a, b, tb_v3(radial.x * radius, radial.y * radius, p.z), radial, side,
                             margin, points);
}

TB_FN_LARGE int tb_sphere_box(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                              tb_contact_point *points)
{
    const tb_vec3 c = tb_pose_inverse_point(&b->pose, a->pose.position);
    const tb_vec3 h = b->size;
    const tb_vec3 over = tb_v3(tb_abs(c.x) - h.x, tb_abs(c.y) - h.y, tb_abs(c.z) - h.z);
    const tb_real reach = margin + a->size.x;
    if (over.x > reach || over.y > reach || over.z > reach) return 0;
    const tb_vec3 sign = tb_v3(c.x < 0 ? TB_R(-1) : TB_R(1), c.y < 0 ? TB_R(-1) : TB_R(1),
                               c.z < 0 ? TB_R(-1) : TB_R(1));
    tb_vec3 surface =
        tb_v3(tb_clamp(c.x, -h.x, h.x), tb_clamp(c.y, -h.y, h.y), tb_clamp(c.z, -h.z, h.z));
    const int outside = (over.x > 0) + (over.y > 0) + (over.z > 0);
    if (outside > 1) { /* nearest to an edge or a corner */
        const tb_vec3 away =
            tb_v3(over.x > 0 ? sign.x * over.x : TB_R(0), over.y > 0 ? sign.y * over.y : TB_R(0),
                  over.z > 0 ? sign.z * over.z : TB_R(0));
        const tb_vec3 n = tb_v3_normalize(away, tb_v3(0, 0, 1));
        return tb_sphere_contact(a, b, surface, n, tb_v3_dot(n, away), margin, points);
    }
    /* over one face, or inside and nearest to one */
    if (over.x >= over.y && over.x >= over.z) {
        surface.x = sign.x * h.x;
        return tb_sphere_contact(a, b, surface, tb_v3(sign.x, 0, 0), over.x, margin, points);
    }
    if (over.y >= over.z) {
        surface.y = sign.y * h.y;
        return tb_sphere_contact(a, b, surface, tb_v3(0, sign.y, 0), over.y, margin, points);
    }
    surface.z = sign.z * h.z;
    return tb_sphere_contact(a, b, surface, tb_v3(0, 0, sign.z), over.z, margin, points);
}

/* Point of the surface of an ellipsoid nearest to `p`, both in its axes, by the root of
 * sum (e_i p_i / (t + e_i^2))^2 = 1 in scaled form (Eberly, Distance from a Point to an Ellipse, an
 * Ellipsoid, or a Hyperellipsoid, 2013). The sum is convex and decreasing, and Newton's method
 * starts where it exceeds 1, so it converges monotonically to the root. */
TB_FN_LARGE tb_vec3 tb_ellipsoid_nearest(tb_vec3 size, tb_vec3 p)
{
    tb_real e[3] = {size.x, size.y, size.z}, y[3] = {tb_abs(p.x), tb_abs(p.y), tb_abs(p.z)}, x[3];
    int order[3] = {0, 1, 2}; /* semi-axes descending */
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2 - i; k++)
            if (e[order[k]] < e[order[k + 1]]) {
                const int swap = order[k];
                order[k] = order[k + 1];
                order[k + 1] = swap;
            }
    const tb_real last = e[order[2]];
    if (!(last > 0)) { /* flat: its disc, or less */
        return tb_v3(tb_clamp(p.x, -e[0], e[0]), tb_clamp(p.y, -e[1], e[1]),
                     tb_clamp(p.z, -e[2], e[2]));
    }
    tb_real r[3], z[3], s = -TB_REAL_MAX;
    for (int i = 0; i < 3; i++) {
        const int k = order[i];
        const tb_real ratio = e[k] / last;
        r[i] = ratio * ratio;
        z[i] = y[k] / e[k];
        if (z[i] > 0) s = tb_max(s, r[i] * (z[i] - 1));
    }
    /* in the plane of the two longer axes: the nearest point may lie off that plane */
    tb_real rest = 1;
    int off = !(z[2] > 0);
    for (int i = 0; i < 2 && off; i++) {
        if (!(z[i] > 0)) continue;
        const tb_real f = r[i] > 1 ? r[i] * z[i] / (r[i] - 1) : TB_REAL_MAX;
        rest = f < 2 ? rest - f * f : TB_R(-1);
    }
    off = off && rest >= 0;
    if (off) {
        s = -1;
    } else {
        for (int iteration = 0; iteration < 60; iteration++) {
            tb_real g = -1, slope = 0;
            for (int i = 0; i < 3; i++) {
                if (!(z[i] > 0)) continue;
                const tb_real f = r[i] * z[i] / (s + r[i]);
                g += f * f;
                slope -= 2 * f * f / (s + r[i]);
            }
            if (!(g > 0) || !(slope < 0)) break;
            const tb_real next = s - g / slope;
            const tb_real step = next - s;
            if (!(step > 0)) break;
            s = next;
            if (step <= 4 * TB_REAL_EPSILON * (s + 1)) break;
        }
    }
    for (int i = 0; i < 3; i++) {
        const int k = order[i];
        x[k] = z[i] > 0 ? r[i] * y[k] / (s + r[i]) : TB_R(0);
    }
    if (off) x[order[2]] = last * tb_sqrt(rest);
    return tb_v3(p.x < 0 ? -x[0] : x[0], p.y < 0 ? -x[1] : x[1], p.z < 0 ? -x[2] : x[2]);
}

TB_FN int tb_sphere_ellipsoid(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                              tb_contact_point *points, uint32_t *flags)
{
    const tb_vec3 h = b->size;
    const tb_vec3 c = tb_pose_inverse_point(&b->pose, a->pose.position);
    const tb_real reach = margin + a->size.x;
    if (tb_abs(c.x) > h.x + reach || tb_abs(c.y) > h.y + reach || tb_abs(c.z) > h.z + reach)
        return 0;
    const tb_vec3 surface = tb_ellipsoid_nearest(h, c);
    const tb_vec3 away = tb_v3_sub(c, surface);
    /* the surface's own normal, scaled by the smallest axis so that nothing overflows */
    const tb_real least = tb_min(h.x, tb_min(h.y, h.z));
    tb_vec3 n = tb_v3_normalize(away, tb_v3(0, 0, 1));
    if (least > 0)
        n = tb_v3_normalize(tb_v3(surface.x / h.x * (least / h.x), surface.y / h.y * (least / h.y),
                                  surface.z / h.z * (least / h.z)),
                            n);
    const int count = tb_sphere_contact(a, b, surface, n, tb_v3_dot(n, away), margin, points);
    if (count && c.x == 0 && c.y == 0 && c.z == 0) *flags |= TB_CONTACT_DEGENERATE;
    return count;
}

/* Parameters of the nearest points of two segments centre + s axis, |s| <= half, with unit axes.
 * offset: centre of B minus centre of A. The distance is convex in (s, t), so clamping s, then t,
 * then s again ends at the minimum (Ericson, Real-Time Collision Detection, 5.1.9). */
TB_FN void tb_segment_segment(tb_vec3 offset, tb_vec3 axis_a, tb_real half_a, tb_vec3 axis_b,
                              tb_real half_b, tb_real *at_a, tb_real *at_b)
{
    const tb_real cosine = tb_v3_dot(axis_a, axis_b);
    /* sine squared from the cross product: 1 - cosine^2 would lose it near parallel */
    const tb_real sine2 = tb_v3_length2(tb_v3_cross(axis_a, axis_b));
    const tb_real da = tb_v3_dot(offset, axis_a), db = tb_v3_dot(offset, axis_b);
    tb_real s = 0;
    if (sine2 > TB_COLLIDE_NOISE * TB_COLLIDE_NOISE)
        s = tb_clamp((da - cosine * db) / sine2, -half_a, half_a);
    else
        s = tb_clamp(da, -half_a, half_a);
    tb_real t = cosine * s - db;
    if (t < -half_b || t > half_b) {
        t = tb_clamp(t, -half_b, half_b);
        s = tb_clamp(da + cosine * t, -half_a, half_a);
    }
    *at_a = s;
    *at_b = t;
}

/* Crossing capsules touch in one point. Capsules within a few degrees of parallel also touch at
 * the two ends of their common stretch; each end is an exact contact of a ball with the other
 * capsule. */
TB_FN_LARGE int tb_capsule_capsule(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                   tb_contact_point *points, uint32_t *flags)
{
    const tb_vec3 offset = tb_v3_sub(b->pose.position, a->pose.position);
    const tb_vec3 ua = tb_m33_column(&a->pose.rotation, 2),
                  ub = tb_m33_column(&b->pose.rotation, 2);
    const tb_real ra = a->size.x, ha = a->size.y, rb = b->size.x, hb = b->size.y;
    tb_real s, t;
    tb_segment_segment(offset, ua, ha, ub, hb, &s, &t);
    const tb_vec3 apart = tb_v3_sub(tb_v3_add_scaled(offset, ub, t), tb_v3_scale(ua, s));
    const tb_vec3 cross = tb_v3_cross(ua, ub);
    const tb_vec3 fallback = tb_v3_normalize(cross, tb_m33_column(&a->pose.rotation, 0));
    const tb_real reach = margin + ra + rb;
    if (tb_v3_length2(apart) > reach * reach && reach * reach > 0) return 0;

    /* the shared stretch, in A's parameter */
    const tb_real cosine = tb_v3_dot(ua, ub);
    int count = 0;
    tb_real deepest = TB_REAL_MAX;
    if (tb_v3_length2(cross) < TB_R(0.01)) {
        const tb_real middle = tb_v3_dot(offset, ua), width = hb * tb_abs(cosine);
        const tb_real low = tb_max(-ha, middle - width), high = tb_min(ha, middle + width);
        for (uint32_t end = 0; end < 2 && high - low > TB_COLLIDE_FLAT * (ha + hb); end++) {
            const int own =
                end ? middle + width >= ha : middle - width <= -ha; /* A's end, else B's */
            tb_real at_a, at_b;
            uint64_t feature;
            if (own) {
                at_a = end ? ha : -ha;
                at_b = tb_clamp(at_a * cosine - tb_v3_dot(offset, ub), -hb, hb);
                feature = tb_feature(TB_FEATURE_VERTEX | end, TB_FEATURE_SURFACE);
            } else {
                const uint32_t end_b = cosine > 0 ? end : 1 - end;
                at_b = end_b ? hb : -hb;
                at_a = tb_clamp(middle + at_b * cosine, -ha, ha);
                feature = tb_feature(TB_FEATURE_SURFACE, TB_FEATURE_VERTEX | end_b);
            }
            const tb_vec3 gap =
                tb_v3_sub(tb_v3_add_scaled(offset, ub, at_b), tb_v3_scale(ua, at_a));
            const int made = tb_ball_ball(tb_v3_add_scaled(a->pose.position, ua, at_a), ra, gap, rb,
                                          margin, fallback, feature, &points[count], flags);
            if (made) deepest = tb_min(deepest, points[count].gap);
            count += made;
        }
    }
    tb_contact_point nearest;
    const uint32_t before = *flags;
    if (tb_ball_ball(tb_v3_add_scaled(a->pose.position, ua, s), ra, apart, rb, margin, fallback, 0,
                     &nearest, flags)) {
        /* axes that cross still have the normal of their plane: only parallel ones have none */
        if (tb_v3_length2(cross) > TB_COLLIDE_PARALLEL * TB_COLLIDE_PARALLEL) *flags = before;
        if (nearest.gap < deepest - TB_COLLIDE_FLAT * (ra + rb)) points[count++] = nearest;
    }
    return count;
}

#endif
