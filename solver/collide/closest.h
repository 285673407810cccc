/* The best separating direction of two convex cores, to rounding.
 *
 * GJK or EPA name the features and give the normal to about half the digits. The rest follows from the
 * features: two edges have the normal across both; a curved surface against a vertex or an edge has the
 * normal at which the line between the extreme points is the normal itself, found by Newton's method. */
#ifndef TB_COLLIDE_CLOSEST_H
#define TB_COLLIDE_CLOSEST_H

#include "collide/epa.h"
#include "collide/faces.h"

typedef struct tb_closest {
    tb_vec3 normal;     /* unit, from A to B */
    tb_real separation; /* m, of the cores along it */
    tb_vec3 on_a, on_b; /* m, points of the cores, relative to the common origin */
    tb_simplex simplex; /* features that make them */
    int face;           /* 1, 2: the normal is that of a flat face of A, of B; 0: of neither */
    int degenerate;
} tb_closest;

/* The direction that the features of one shape in the simplex let slide: 1 if they span an edge, 0 if they are
 * one vertex or lie on a curved surface, 2 if they span more. */
TB_FN int tb_simplex_edge(const tb_simplex *s, const tb_core *core, int of_b, tb_vec3 *edge)
{
    uint32_t ids[4];
    tb_vec3 points[4];
    int n = 0;
    for (int k = 0; k < s->count; k++) {
        const uint32_t id = of_b ? s->v[k].id_b : s->v[k].id_a;
        int known = 0;
        while (known < n && ids[known] != id) known++;
        if (known < n) continue;
        ids[n] = id;
        points[n++] = of_b ? s->v[k].b : s->v[k].a;
    }
    if (n < 2) return 0;
    if (core->type == TB_SHAPE_CYLINDER)
        *edge = tb_m33_column(core->rotation, 2);
    else
        *edge = tb_v3_normalize(tb_v3_sub(points[1], points[0]), tb_v3(1, 0, 0));
    return n == 2 ? 1 : 2;
}

/* How well the extreme point along a unit direction is defined: 0 if a whole cap or a line on the side of a
 * cylinder is extreme, 1 if a rim is, 2 for points and surfaces that curve both ways. */
TB_FN int tb_core_sharpness(const tb_core *core, tb_vec3 out)
{
    if (core->type != TB_SHAPE_CYLINDER) return 2;
    const tb_vec3 axis = tb_m33_column(core->rotation, 2);
    const int cap = tb_v3_length(tb_v3_cross(out, axis)) < TB_COLLIDE_FLAT;
    return cap || tb_abs(tb_v3_dot(out, axis)) < TB_COLLIDE_FLAT ? 0 : 1;
}

/* A point of the core's edge as seen along the unit normal `out`: of a cylinder, of the line on its side. */
TB_FN tb_vec3 tb_core_edge_point(const tb_core *core, tb_vec3 out, tb_vec3 near_it)
{
    if (core->type != TB_SHAPE_CYLINDER) return near_it;
    const tb_vec3 axis = tb_m33_column(core->rotation, 2);
    const tb_vec3 across = tb_v3_add_scaled(out, axis, -tb_v3_dot(out, axis));
    const tb_real s = tb_v3_dot(axis, tb_v3_sub(near_it, core->centre));
    return tb_v3_add_scaled(tb_v3_add_scaled(core->centre, axis, s), tb_v3_normalize(across, out),
                            core->size.x);
}

/* Whether p lies along the core's own edge, if that is a straight one. */
TB_FN int tb_core_along(const tb_core *core, tb_vec3 p)
{
    if (core->type != TB_SHAPE_CYLINDER && core->type != TB_SHAPE_CAPSULE) return 1;
    const tb_real s = tb_v3_dot(tb_m33_column(core->rotation, 2), tb_v3_sub(p, core->centre));
    return tb_abs(s) <= core->size.y + TB_COLLIDE_FLAT * core->extent;
}

/* Points of the lines through on_a and on_b where they are nearest to each other along n. */
TB_FN void tb_closest_on_edges(const tb_core *a, const tb_core *b, tb_vec3 edge_a, tb_vec3 edge_b,
                               tb_vec3 n, tb_real separation, tb_vec3 *on_a, tb_vec3 *on_b)
{
    const tb_vec3 p = tb_core_edge_point(a, n, *on_a);
    const tb_vec3 d = tb_v3_sub(tb_core_edge_point(b, tb_v3_negate(n), *on_b), p);
    const tb_real cosine = tb_v3_dot(edge_a, edge_b);
    const tb_real da = tb_v3_dot(d, edge_a), db = tb_v3_dot(d, edge_b);
    *on_a = tb_v3_add_scaled(p, edge_a, (da - cosine * db) / (1 - cosine * cosine));
    *on_b = tb_v3_add_scaled(*on_a, n, separation);
}

/* Newton's method on the unit sphere, restricted to normals across `edge` if there is one: finds where the
 * extreme point of A - B has no part along the tangents. Derivatives by differences. */
TB_FN void tb_polish_normal(tb_core *a, tb_core *b, const tb_vec3 *edge, tb_vec3 *normal)
{
#ifdef TB_SINGLE
    const tb_real step = TB_R(3e-3);
#else
    const tb_real step = TB_R(1e-5);
#endif
    tb_vec3 n = *normal;
    if (edge) n = tb_v3_normalize(tb_v3_add_scaled(n, *edge, -tb_v3_dot(n, *edge)), n);
    tb_real best = tb_core_separation(a, b, n);
    const int dimensions = edge ? 1 : 2;
    for (int iteration = 0; iteration < 8; iteration++) {
        tb_vec3 t[2];
        tb_v3_tangents(n, &t[0], &t[1]);
        if (edge) t[0] = tb_v3_cross(n, *edge);
        const tb_vec3 w = tb_cso_support(a, b, n).w;
        const tb_real r0 = tb_v3_dot(w, t[0]), r1 = tb_v3_dot(w, t[1]);
        tb_real j[4] = {0, 0, 0, 0};
        for (int d = 0; d < dimensions; d++) {
            const tb_vec3 m = tb_v3_normalize(tb_v3_add_scaled(n, t[d], step), n);
            const tb_vec3 v = tb_cso_support(a, b, m).w;
            const tb_vec3 across = tb_v3_add_scaled(v, m, -tb_v3_dot(v, m));
            j[d] = (tb_v3_dot(across, t[0]) - r0) / step;
            j[2 + d] = (tb_v3_dot(across, t[1]) - r1) / step;
        }
        tb_real x0 = 0, x1 = 0;
        if (dimensions == 1) {
            if (!(tb_abs(j[0]) > 0)) break;
            x0 = -r0 / j[0];
        } else {
            const tb_real determinant = j[0] * j[3] - j[1] * j[2];
            if (!(tb_abs(determinant) > 0)) break;
            x0 = (j[1] * r1 - j[3] * r0) / determinant;
            x1 = (j[2] * r0 - j[0] * r1) / determinant;
        }
        const tb_real length = tb_sqrt(x0 * x0 + x1 * x1);
        if (!(length < TB_R(0.3))) break;
        const tb_vec3 m = tb_v3_normalize(
            tb_v3_add_scaled(tb_v3_add_scaled(n, t[0], x0), t[1], dimensions == 2 ? x1 : 0), n);
        const tb_real separation = tb_core_separation(a, b, m);
        if (!(separation >= best - TB_REAL_EPSILON * 16 * (a->extent + b->extent))) break;
        n = m;
        best = tb_max(best, separation);
        if (length < TB_REAL_EPSILON * 16) break;
    }
    *normal = n;
}

/* Sharpens c->normal by the features in c->simplex, and sets separation and points by it. */
TB_FN void tb_closest_sharpen(tb_core *a, tb_core *b, tb_closest *c)
{
    const int curved_a = tb_core_curved(a), curved_b = tb_core_curved(b);
    tb_vec3 edge_a, edge_b, n = c->normal;
    int rank_a = tb_simplex_edge(&c->simplex, a, 0, &edge_a);
    int rank_b = tb_simplex_edge(&c->simplex, b, 1, &edge_b);
    const tb_real noise = TB_COLLIDE_NOISE * (a->extent + b->extent);

    c->separation = tb_core_separation(a, b, c->normal);
    if (rank_a == 1 && rank_b == 1 &&
        tb_v3_length2(tb_v3_cross(edge_a, edge_b)) > TB_COLLIDE_PARALLEL * TB_COLLIDE_PARALLEL) {
        n = tb_v3_normalize(tb_v3_cross(edge_a, edge_b), n);
        if (tb_v3_dot(n, c->normal) < 0) n = tb_v3_negate(n);
        const tb_real sharp = tb_core_separation(a, b, n);
        tb_vec3 on_a = c->on_a, on_b = c->on_b;
        tb_closest_on_edges(a, b, edge_a, edge_b, n, sharp, &on_a, &on_b);
        if (sharp >= c->separation - noise && tb_core_along(a, on_a) && tb_core_along(b, on_b)) {
            c->normal = n;
            c->separation = sharp;
            c->on_a = on_a;
            c->on_b = on_b;
            return;
        }
    }
    if (!(curved_a || curved_b) || rank_a > 1 || rank_b > 1) return;

    /* along either edge, or none if the simplex had strayed over one that is not extreme */
    int best = -1;
    tb_real sharp = c->separation - noise;
    for (int k = 0; k < 3; k++) {
        if ((k == 0 && !rank_a) || (k == 1 && !rank_b) || (k == 2 && best >= 0)) continue;
        tb_vec3 m = c->normal;
        tb_polish_normal(a, b, k == 0 ? &edge_a : (k == 1 ? &edge_b : 0), &m);
        const tb_real separation = tb_core_separation(a, b, m);
        if (!(separation > sharp + (best < 0 ? 0 : noise))) continue;
        sharp = separation;
        n = m;
        best = k;
    }
    if (best < 0) return;
    if (best != 0) rank_a = 0;
    if (best != 1) rank_b = 0;
    c->normal = n;
    c->separation = sharp;
    /* the sharper extreme point of the two; its partner lies across the gap */
    const tb_vertex v = tb_cso_support(a, b, n);
    const int sharp_a = rank_a ? 0 : tb_core_sharpness(a, n);
    const int sharp_b = rank_b ? 0 : tb_core_sharpness(b, n);
    if (sharp_a == 0 && sharp_b == 0) return;
    c->on_a = sharp_a >= sharp_b ? v.a : tb_v3_add_scaled(v.b, n, -sharp);
    c->on_b = sharp_a >= sharp_b ? tb_v3_add_scaled(v.a, n, sharp) : v.b;
}

/* Points of a cap of one core (of: 1 A, 2 B) and of what lies on it: of the features in the simplex, the point
 * nearest to the cap's middle. */
TB_FN void tb_closest_on_cap(const tb_core *a, const tb_core *b, int of, tb_closest *c)
{
    const tb_core *cap = of == 1 ? a : b, *other = of == 1 ? b : a;
    tb_vec3 p[3], q[3]; /* on the other, and its offset from the cap's axis */
    const int count = c->simplex.count < 3 ? c->simplex.count : 3;
    for (int k = 0; k < count; k++) {
        p[k] = of == 1 ? c->simplex.v[k].b : c->simplex.v[k].a;
        q[k] = tb_v3_sub(p[k], cap->centre);
        q[k] = tb_v3_add_scaled(q[k], c->normal, -tb_v3_dot(q[k], c->normal));
    }
    tb_real w[3] = {1, 0, 0};
    if (count == 2) tb_nearest_segment(q[0], q[1], w);
    if (count == 3) tb_nearest_triangle(q[0], q[1], q[2], w);
    tb_vec3 on = tb_v3_scale(p[0], w[0]);
    for (int k = 1; k < count; k++) on = tb_v3_add_scaled(on, p[k], w[k]);
    if (other->type == TB_SHAPE_CYLINDER && tb_core_sharpness(other, c->normal) == 0) {
        /* two caps: the middle of what they share between their middles */
        tb_vec3 d = tb_v3_sub(other->centre, cap->centre);
        const tb_real along = tb_v3_dot(d, c->normal);
        d = tb_v3_add_scaled(d, c->normal, -along);
        const tb_vec3 u = tb_v3_normalize(d, tb_v3(0, 0, 0));
        const tb_real far = tb_v3_dot(u, d);
        const tb_real low = tb_max(-cap->size.x, far - other->size.x);
        const tb_real high = tb_min(cap->size.x, far + other->size.x);
        const tb_vec3 middle = tb_v3_add_scaled(cap->centre, u, TB_R(0.5) * (low + high));
        on = tb_v3_add_scaled(middle, c->normal, tb_v3_dot(c->normal, tb_v3_sub(p[0], middle)));
    }
    const tb_real step = of == 1 ? -c->separation : c->separation;
    const tb_vec3 opposite = tb_v3_add_scaled(on, c->normal, step);
    c->on_a = of == 1 ? opposite : on;
    c->on_b = of == 1 ? on : opposite;
}

/* Takes the exact normal of a flat face, A's before B's, if it separates better than what was found. One that
 * separates as well but for a little more than rounding is taken if it is also nearly the same direction:
 * so faces that lie flat on each other keep one normal. */
TB_FN void tb_closest_take_face(tb_core *a, tb_core *b, tb_closest *c)
{
    const tb_real size = a->extent + b->extent;
    const tb_real tie = TB_COLLIDE_TIE * (size + a->radius + b->radius);
    tb_real best = c->separation;
    const tb_vec3 found = c->normal;
    for (int of = 1; of <= 2; of++) {
        tb_vec3 n;
        if (!tb_core_face_normal(of == 1 ? a : b, of == 1 ? found : tb_v3_negate(found), &n))
            continue;
        if (of == 2) n = tb_v3_negate(n);
        const tb_real separation = tb_core_separation(a, b, n);
        const tb_real turn = tb_v3_length(tb_v3_cross(n, c->normal));
        const tb_real room = turn < 10 * TB_COLLIDE_FLAT ? tie : TB_R(0);
        /* B's face must be better than A's, not as good */
        if (!(c->face ? separation > best + room : separation >= best - room)) continue;
        c->normal = n;
        c->separation = best = separation;
        c->face = of;
        tb_simplex_points(&c->simplex, &c->on_a, &c->on_b);
        tb_core *other = of == 1 ? b : a;
        if ((of == 1 ? a : b)->type == TB_SHAPE_CYLINDER) tb_closest_on_cap(a, b, of, c);
        if (!((tb_core_curved(other) || other->type == TB_SHAPE_SPHERE) &&
              tb_core_sharpness(other, n) > 0))
            continue;
        uint32_t id; /* a curved surface has its one extreme point over the face */
        const tb_vec3 p = tb_core_support(other, of == 1 ? tb_v3_negate(n) : n, &id);
        c->on_a = of == 1 ? tb_v3_add_scaled(p, n, -separation) : p;
        c->on_b = of == 1 ? p : tb_v3_add_scaled(p, n, separation);
    }
}

/* A point core inside a hull: the face that it is least below. */
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

/* False if the cores are farther apart than `limit`. */
TB_FN int tb_closest_find(tb_core *a, tb_core *b, tb_real limit, tb_closest *c)
{
    const tb_real scale = a->extent + b->extent;
    tb_vec3 nearest;
    const tb_gjk_end end = tb_gjk(a, b, limit, scale, &c->simplex, &nearest);
    c->degenerate = 0;
    c->face = 0;
    if (end == TB_GJK_BEYOND) return 0;
    if (end == TB_GJK_APART) {
        c->normal = tb_v3_normalize(tb_v3_negate(nearest), tb_v3(0, 0, 1));
        tb_simplex_points(&c->simplex, &c->on_a, &c->on_b);
    } else if (a->type == TB_SHAPE_SPHERE && b->type == TB_SHAPE_CONVEX) {
        tb_closest_point_in_hull(a, b, c);
        return 1;
    } else {
        const int rank = tb_epa_normal(a, b, scale, &c->simplex, &c->normal);
        if (rank < 2) c->degenerate = 1;
        const tb_vec3 ahead = tb_v3_sub(b->inside, a->inside);
        if (!(tb_v3_length2(ahead) > 0)) c->degenerate = 1;
        tb_simplex_points(&c->simplex, &c->on_a, &c->on_b);
    }
    tb_closest_sharpen(a, b, c);
    tb_closest_take_face(a, b, c);
    return 1;
}

#endif
