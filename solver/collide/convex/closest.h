/* The best separating direction of two convex cores, to rounding: GJK or EPA, then refinement by
 * the nearest features. */
#ifndef TB_COLLIDE_CLOSEST_H
#define TB_COLLIDE_CLOSEST_H

#include "collide/convex/parts.h"

typedef struct tb_closest {
    tb_vec3 normal;     /* unit, from A to B */
    tb_real separation; /* m, of the cores along it */
    tb_vec3 on_a, on_b; /* m, points of the cores, relative to the common origin */
    tb_simplex simplex; /* features that make them */
    int face;           /* 1, 2: the normal is that of a flat face of A, of B; 0: of neither */
    int degenerate;
} tb_closest;

/* How well the extreme point along a unit direction is defined: 0 if a whole cap or a line on
 * the side of a cylinder is extreme, or for flat shapes, which are not tested; 1 if it is one
 * point of a curved surface. */
TB_FN int tb_core_sharp(const tb_core *core, tb_vec3 out)
{
    if (core->type == TB_SHAPE_SPHERE || core->type == TB_SHAPE_ELLIPSOID) return 1;
    if (core->type != TB_SHAPE_CYLINDER) return 0;
    const tb_vec3 axis = tb_m33_column(core->rotation, 2);
    return tb_v3_length(tb_v3_cross(out, axis)) > TB_COLLIDE_FLAT &&
           tb_abs(tb_v3_dot(out, axis)) > TB_COLLIDE_FLAT;
}

/* Whether a point in the plane of a flat face of the core lies on that face. */
TB_FN_LARGE int tb_core_holds(const tb_core *core, tb_vec3 point)
{
    const tb_vec3 p = tb_m33_tmul_v3(core->rotation, tb_v3_sub(point, core->centre));
    const tb_vec3 h = core->size;
    const tb_real slack = TB_COLLIDE_FLAT * core->extent;
    if (core->type == TB_SHAPE_BOX)
        return tb_abs(p.x) <= h.x + slack && tb_abs(p.y) <= h.y + slack &&
               tb_abs(p.z) <= h.z + slack;
    if (core->type == TB_SHAPE_CYLINDER) return tb_sqrt(p.x * p.x + p.y * p.y) <= h.x + slack;
    if (core->type != TB_SHAPE_CONVEX) return 1;
    if (core->hull->number_of_faces == 2) { /* a flat polygon has no planes at its sides */
        const tb_hull *hull = core->hull;
        const tb_vec3 m = tb_v3_load(hull->planes);
        for (int32_t k = 0; k < hull->face_start[1]; k++) {
            const int32_t next = k + 1 < hull->face_start[1] ? k + 1 : 0;
            const tb_vec3 v = tb_v3_load(&hull->vertices[3 * hull->face_vertices[k]]);
            const tb_vec3 w = tb_v3_load(&hull->vertices[3 * hull->face_vertices[next]]);
            const tb_vec3 side = tb_v3_normalize(tb_v3_cross(tb_v3_sub(w, v), m), tb_v3(0, 0, 0));
            if (tb_v3_dot(side, tb_v3_sub(p, v)) > slack) return 0;
        }
        return 1;
    }
    for (int32_t f = 0; f < core->hull->number_of_faces; f++) {
        const tb_vec3 m = tb_v3_load(&core->hull->planes[4 * f]);
        if (tb_v3_dot(m, p) > TB_R(core->hull->planes[4 * f + 3]) + slack) return 0;
    }
    return 1;
}

/* Nearest points for a cap of one core (of: 1 A, 2 B) and the other core's features on it: of
 * the features in the simplex, the point nearest to the cap's middle. */
TB_FN_LARGE void tb_closest_on_cap(const tb_core *a, const tb_core *b, int of, tb_closest *c)
{
    const tb_core *cap = of == 1 ? a : b, *other = of == 1 ? b : a;
    tb_vec3 p[3], q[3]; /* on the other, and its offset from the cap's axis */
    const tb_vec3 toward = of == 1 ? tb_v3_negate(c->normal) : c->normal;
    const tb_vec3 axis = tb_m33_column(other->rotation, 2);
    const int round = other->type == TB_SHAPE_CYLINDER;
    const int lying = round && tb_abs(tb_v3_dot(axis, toward)) < TB_R(0.5);
    const int count = lying ? 2 : (c->simplex.count < 3 ? c->simplex.count : 3);
    for (int k = 0; k < count; k++) {
        p[k] = of == 1 ? c->simplex.v[k].b : c->simplex.v[k].a;
        if (lying) { /* the line on the side that lies on the cap */
            const tb_vec3 across = tb_v3_add_scaled(toward, axis, -tb_v3_dot(toward, axis));
            p[k] = tb_v3_add_scaled(other->centre, axis, k ? other->size.y : -other->size.y);
            p[k] = tb_v3_add_scaled(p[k], tb_v3_normalize(across, toward), other->size.x);
        }
        q[k] = tb_v3_sub(p[k], cap->centre);
        q[k] = tb_v3_add_scaled(q[k], c->normal, -tb_v3_dot(q[k], c->normal));
    }
    tb_real w[3] = {1, 0, 0};
    if (count == 2) tb_nearest_segment(q[0], q[1], w);
    if (count == 3) tb_nearest_triangle(q[0], q[1], q[2], w);
    tb_vec3 on = tb_v3_scale(p[0], w[0]);
    for (int k = 1; k < count; k++) on = tb_v3_add_scaled(on, p[k], w[k]);
    if (round && !lying) {
        /* two caps: the middle of their overlap along the line of their centres */
        tb_vec3 d = tb_v3_sub(other->centre, cap->centre);
        d = tb_v3_add_scaled(d, c->normal, -tb_v3_dot(d, c->normal));
        const tb_vec3 u = tb_v3_normalize(d, tb_v3(0, 0, 0));
        const tb_real away = tb_v3_dot(u, d);
        const tb_real low = tb_max(-cap->size.x, away - other->size.x);
        const tb_real high = tb_min(cap->size.x, away + other->size.x);
        const tb_vec3 middle = tb_v3_add_scaled(cap->centre, u, TB_R(0.5) * (low + high));
        on = tb_v3_add_scaled(middle, c->normal, tb_v3_dot(c->normal, tb_v3_sub(p[0], middle)));
    }
    const tb_vec3 opposite =
        tb_v3_add_scaled(on, c->normal, of == 1 ? -c->separation : c->separation);
    c->on_a = of == 1 ? opposite : on;
    c->on_b = of == 1 ? on : opposite;
}

/* Takes the exact normal of a flat face, A's before B's, if it separates better than the current
 * normal. A face normal that separates worse by little more than rounding is also taken if it
 * has nearly the same direction, so that faces flat on each other keep one normal. Returns 0 if
 * the face was taken but cannot be the nearest feature, because the other shape's extreme point
 * lies beside it. */
TB_FN_LARGE int tb_closest_take_face(tb_core *a, tb_core *b, tb_closest *c)
{
    const tb_real tie = TB_COLLIDE_TIE * (a->extent + b->extent + a->radius + b->radius);
    const tb_vec3 found = c->normal;
    tb_vec3 out[3], best = found;
    tb_real separation[3], most = c->separation;
    int has[3];
    for (int of = 1; of <= 2; of++) {
        has[of] =
            tb_core_face_normal(of == 1 ? a : b, of == 1 ? found : tb_v3_negate(found), &out[of]);
        if (!has[of]) continue;
        const tb_vec3 n = of == 1 ? out[of] : tb_v3_negate(out[of]);
        separation[of] = tb_core_separation(a, b, n);
        if (separation[of] > most) most = separation[of], best = n;
    }
    for (int of = 1; of <= 2; of++) {
        if (!has[of]) continue;
        tb_core *base = of == 1 ? a : b, *other = of == 1 ? b : a;
        const tb_vec3 n = of == 1 ? out[of] : tb_v3_negate(out[of]);
        const tb_real turn = tb_v3_length(tb_v3_cross(n, best));
        if (!(separation[of] >= most - (turn < 10 * TB_COLLIDE_FLAT ? tie : TB_R(0)))) continue;
        c->normal = n;
        c->separation = separation[of];
        c->face = of;
        tb_simplex_points(&c->simplex, &c->on_a, &c->on_b);
        if (tb_core_sharp(other,
                          n)) { /* a curved surface has its one extreme point over the face */
            uint32_t id;
            const tb_vec3 p = tb_core_support(other, tb_v3_negate(out[of]), &id);
            c->on_a = of == 1 ? tb_v3_add_scaled(p, n, -c->separation) : p;
            c->on_b = of == 1 ? p : tb_v3_add_scaled(p, n, c->separation);
            return tb_core_holds(base, of == 1 ? c->on_a : c->on_b);
        }
        if (base->type == TB_SHAPE_CYLINDER) tb_closest_on_cap(a, b, of, c);
        return 1;
    }
    return 1;
}

/* If the other shape's extreme point lies beside a cap, tilts the cap's normal towards that
 * point, over the rim there, by the tilt of the previous normal. */
TB_FN tb_vec3 tb_closest_over_rim(const tb_core *a, const tb_core *b, const tb_closest *c,
                                  tb_vec3 found)
{
    const tb_core *base = c->face == 2 ? b : a;
    if (base->type != TB_SHAPE_CYLINDER) return found;
    const tb_vec3 axis = tb_m33_column(base->rotation, 2);
    tb_vec3 away = tb_v3_sub(c->face == 2 ? c->on_b : c->on_a, base->centre);
    away = tb_v3_normalize(tb_v3_add_scaled(away, axis, -tb_v3_dot(away, axis)), tb_v3(0, 0, 0));
    const tb_real lean = tb_max(tb_v3_length(tb_v3_cross(found, axis)), TB_COLLIDE_FLAT);
    return tb_v3_normalize(tb_v3_add_scaled(c->normal, away, c->face == 2 ? -lean : lean),
                           c->normal);
}

/* Sharpens the normal by the parts of both cores that are in the simplex, beginning at `guess`. */
TB_FN_LARGE void tb_closest_sharpen(tb_core *a, tb_core *b, tb_closest *c, tb_vec3 guess)
{
    tb_part parts_a[TB_CORE_PARTS], parts_b[TB_CORE_PARTS];
    const int count_a = tb_core_parts(a, &c->simplex, 0, parts_a);
    const int count_b = tb_core_parts(b, &c->simplex, 1, parts_b);
    const int curved = tb_core_curved(a) || tb_core_curved(b);
    const tb_real noise = TB_COLLIDE_NOISE * (a->extent + b->extent);
    tb_closest best = *c;
    for (int i = 0; i < count_a; i++) {
        for (int k = 0; k < count_b; k++) {
            const int straight = tb_part_straight(&parts_a[i]) && tb_part_straight(&parts_b[k]);
            /* two flat parts: GJK and EPA are exact, except for crossing edges */
            if (!curved && !(straight && count_a == 3 && count_b == 3)) continue;
            if (straight && parts_a[i].kind == TB_PART_EDGE && parts_b[k].kind == TB_PART_EDGE &&
                tb_v3_length2(tb_v3_cross(parts_a[i].u, parts_b[k].u)) <=
                    TB_COLLIDE_PARALLEL * TB_COLLIDE_PARALLEL)
                continue;
            tb_vec3 n = guess, on_a = c->on_a, on_b = c->on_b;
            tb_real separation = -TB_REAL_MAX;
            const int right =
                tb_parts_normal(&parts_a[i], a, &parts_b[k], b, &n, &separation, &on_a, &on_b);
            if (!(separation >= best.separation - (right ? noise : TB_R(0)))) continue;
            best.normal = n;
            best.separation = separation;
            best.on_a = on_a;
            best.on_b = on_b;
            best.face = 0;
            if (right) {
                *c = best;
                return;
            }
        }
    }
    *c = best;
}

/* A point core inside a hull: the face of least depth. */
TB_FN void tb_closest_point_in_hull(const tb_core *a, const tb_core *b, tb_closest *c)
{
    const tb_vec3 local = tb_m33_tmul_v3(b->rotation, tb_v3_sub(a->centre, b->centre));
    tb_real most = -TB_REAL_MAX;
    tb_vec3 n = tb_v3(0, 0, 1);
    for (int32_t f = 0; f < b->hull->number_of_faces; f++) {
        const tb_vec3 m = tb_v3_load(&b->hull->planes[4 * f]);
        const tb_real height = tb_v3_dot(m, local) - TB_R(b->hull->planes[4 * f + 3]);
        if (height > most) most = height, n = m;
    }
    c->normal = tb_v3_negate(tb_m33_mul_v3(b->rotation, n));
    c->separation = most;
    c->on_a = a->centre;
    c->on_b = tb_v3_add_scaled(a->centre, c->normal, most);
    c->face = 2;
}

/* ---- two ellipsoids ---- */

/* Sums over two ellipsoids, as seen along a unit vector n with the tangents t0 and t1. The extreme
 * point of one along n is f(n) = R S^2 R'n / |S R'n| from its middle, R the rotation, S the semi-axes. */
typedef struct tb_ellipsoid_sums {
    tb_real height;    /* f . n */
    tb_real along[2];  /* f . t0, f . t1 */
    tb_real slopes[3]; /* t0 . f' t0, t0 . f' t1, t1 . f' t1 */
} tb_ellipsoid_sums;

TB_FN void tb_ellipsoid_add(const tb_core *core, tb_vec3 n, const tb_vec3 *t,
                            tb_ellipsoid_sums *sums)
{
    const tb_vec3 h = core->size;
    const tb_vec3 d = tb_m33_tmul_v3(core->rotation, n);
    const tb_vec3 d0 = tb_m33_tmul_v3(core->rotation, t[0]);
    const tb_vec3 d1 = tb_m33_tmul_v3(core->rotation, t[1]);
    const tb_vec3 e = tb_v3(h.x * d.x, h.y * d.y, h.z * d.z);
    const tb_vec3 e0 = tb_v3(h.x * d0.x, h.y * d0.y, h.z * d0.z);
    const tb_vec3 e1 = tb_v3(h.x * d1.x, h.y * d1.y, h.z * d1.z);
    const tb_real length = tb_v3_length(e);
    if (!(length > 0)) return;
    const tb_real inverse = 1 / length;
    const tb_real a0 = tb_v3_dot(e, e0) * inverse, a1 = tb_v3_dot(e, e1) * inverse;
    sums->height += length;
    sums->along[0] += a0;
    sums->along[1] += a1;
    sums->slopes[0] += (tb_v3_dot(e0, e0) - a0 * a0) * inverse;
    sums->slopes[1] += (tb_v3_dot(e0, e1) - a0 * a1) * inverse;
    sums->slopes[2] += (tb_v3_dot(e1, e1) - a1 * a1) * inverse;
}

typedef enum tb_ellipsoids_end {
    TB_ELLIPSOIDS_FAILED, /* Newton's method does not converge */
    TB_ELLIPSOIDS_APART,  /* farther than the limit along *normal */
    TB_ELLIPSOIDS_FOUND
} tb_ellipsoids_end;

/* tb_parts_newton for two ellipsoids: the same equation and steps, with the scalars that both need in
 * place of points and their derivatives. A separation beyond `limit` along any normal ends it. */
TB_FN_LARGE tb_ellipsoids_end tb_ellipsoids_newton(const tb_core *a, const tb_core *b,
                                                   tb_real limit, tb_vec3 *normal)
{
    const tb_vec3 between = tb_v3_sub(a->centre, b->centre);
    const tb_real largest_step = TB_R(0.5); /* rad */
    tb_vec3 n = *normal;
    tb_real before = TB_REAL_MAX;
    for (int iteration = 0; iteration < 20; iteration++) {
        tb_vec3 t[2];
        tb_v3_tangents(n, &t[0], &t[1]);
        tb_ellipsoid_sums sums = {0, {0, 0}, {0, 0, 0}};
        tb_ellipsoid_add(a, n, t, &sums);
        tb_ellipsoid_add(b, n, t, &sums);
        const tb_real depth = sums.height + tb_v3_dot(between, n);
        const tb_real r0 = sums.along[0] + tb_v3_dot(between, t[0]);
        const tb_real r1 = sums.along[1] + tb_v3_dot(between, t[1]);
        *normal = n;
        if (-depth > limit) return TB_ELLIPSOIDS_APART;
        const tb_real reach = tb_sqrt(depth * depth + r0 * r0 + r1 * r1);
        if (tb_abs(r0) + tb_abs(r1) <= 2 * TB_REAL_EPSILON * reach) return TB_ELLIPSOIDS_FOUND;
        const tb_real j0 = sums.slopes[0] - depth, j1 = sums.slopes[1], j2 = sums.slopes[2] - depth;
        const tb_real determinant = j0 * j2 - j1 * j1;
        if (!(tb_abs(determinant) > 0)) return TB_ELLIPSOIDS_FAILED;
        const tb_real x0 = (j1 * r1 - j2 * r0) / determinant;
        const tb_real x1 = (j1 * r0 - j0 * r1) / determinant;
        const tb_real length = tb_sqrt(x0 * x0 + x1 * x1);
        /* at the rounding floor, or diverging */
        if (before < TB_R(1e-3) && length > TB_R(0.5) * before) return TB_ELLIPSOIDS_FOUND;
        if (!(length <= TB_REAL_MAX)) return TB_ELLIPSOIDS_FAILED;
        const tb_real f = length > largest_step ? largest_step / length : TB_R(1);
        before = f < 1 ? TB_REAL_MAX : length;
        n = tb_v3_normalize(tb_v3_add_scaled(tb_v3_add_scaled(n, t[0], f * x0), t[1], f * x1), n);
    }
    *normal = n;
    return before < TB_R(1e-3) ? TB_ELLIPSOIDS_FOUND : TB_ELLIPSOIDS_FAILED;
}

/* Two ellipsoids by Newton's method from the line of their middles; without a result, but for a
 * separation beyond `limit`, where they are farther apart. For separated ellipsoids the normal that
 * solves the equation is unique; in shallow penetration (a tenth of the smallest semi-axis) it is the
 * nearest. */
TB_FN int tb_closest_ellipsoids(tb_core *a, tb_core *b, tb_real limit, tb_closest *c)
{
    const tb_vec3 none = tb_v3(0, 0, 0), ahead = tb_v3_sub(b->centre, a->centre);
    const tb_real least = tb_min(tb_min(a->size.x, tb_min(a->size.y, a->size.z)),
                                 tb_min(b->size.x, tb_min(b->size.y, b->size.z)));
    tb_vec3 n = tb_v3_normalize(ahead, none);
    if (!(tb_v3_length2(n) > 0)) return 0;
    const tb_vec3 first = n;
    const tb_ellipsoids_end end = tb_ellipsoids_newton(a, b, limit, &n);
    if (end == TB_ELLIPSOIDS_FAILED) return 0;
    uint32_t id;
    c->normal = n;
    c->on_a = tb_core_support(a, n, &id);
    c->separation = tb_v3_dot(n, tb_v3_sub(tb_core_support(b, tb_v3_negate(n), &id), c->on_a));
    if (end == TB_ELLIPSOIDS_APART) return 1;
    c->on_b = tb_v3_add_scaled(c->on_a, n, c->separation);
    c->simplex.count = 1;
    c->simplex.weight[0] = 1;
    c->simplex.v[0] = tb_cso_support(a, b, first);
    return c->separation > TB_R(-0.1) * least;
}

enum { TB_CLOSEST_NO_ROOM = -1 };

/* The closest features after GJK, whose last simplex is in c->simplex; as tb_closest_find. */
TB_FN_LARGE int tb_closest_after(tb_core *a, tb_core *b, tb_gjk_end end, tb_vec3 nearest,
                                 tb_closest *c, tb_epa *room)
{
    c->degenerate = 0;
    c->face = 0;
    if (end == TB_GJK_BEYOND) return 0;
    if (end == TB_GJK_APART) {
        c->normal = tb_v3_normalize(tb_v3_negate(nearest), tb_v3(0, 0, 1));
    } else if (a->type == TB_SHAPE_SPHERE && b->type == TB_SHAPE_CONVEX) {
        tb_closest_point_in_hull(a, b, c);
        return 1;
    } else if (!room) {
        return TB_CLOSEST_NO_ROOM;
    } else {
        const tb_real scale = a->extent + b->extent;
        const int rank = tb_epa_normal(a, b, scale, &c->simplex, &c->normal, room);
        const tb_vec3 ahead = tb_v3_sub(b->inside, a->inside);
        c->degenerate = rank < 2 || !(tb_v3_length2(ahead) > 0);
    }
    tb_simplex_points(&c->simplex, &c->on_a, &c->on_b);
    c->separation = tb_core_separation(a, b, c->normal);

    /* flat shapes: crossing edges, then faces. Curved shapes: a face if it is certain, else the
     * parts */
    const int curved = tb_core_curved(a) || tb_core_curved(b);
    if (!curved) tb_closest_sharpen(a, b, c, c->normal);
    const tb_vec3 found = c->normal;
    const int certain = tb_closest_take_face(a, b, c);
    if (certain && (c->face || !curved)) return 1;
    tb_closest_sharpen(a, b, c, certain ? c->normal : tb_closest_over_rim(a, b, c, found));
    if (!c->face) tb_closest_take_face(a, b, c);
    return 1;
}

/* False if the cores are farther apart than `limit`. Overlapping cores need the scratch `room`;
 * with NULL they give TB_CLOSEST_NO_ROOM and no result but the simplex that tb_closest_after goes on
 * from. */
TB_FN_LARGE int tb_closest_find(tb_core *a, tb_core *b, tb_real limit, tb_closest *c, tb_epa *room)
{
    tb_vec3 nearest;
    if (a->type == TB_SHAPE_ELLIPSOID && b->type == TB_SHAPE_ELLIPSOID) {
        c->degenerate = 0;
        c->face = 0;
        if (tb_closest_ellipsoids(a, b, limit, c)) return c->separation <= limit;
    }
    const tb_gjk_end end = tb_gjk(a, b, limit, a->extent + b->extent, &c->simplex, &nearest);
    return tb_closest_after(a, b, end, nearest, c, room);
}

#endif
