/* The best separating direction of two convex cores, to rounding.
 *
 * GJK or EPA name the features and give the normal to about half the digits. The rest follows from the
 * features: two edges have the normal across both; a curved surface against a vertex or an edge has the
 * normal at which the line between the extreme points is the normal itself, found by Newton's method. */
#ifndef TB_COLLIDE_CLOSEST_H
#define TB_COLLIDE_CLOSEST_H

#include "collide/epa.h"

typedef struct tb_closest {
    tb_vec3 normal;     /* unit, from A to B */
    tb_real separation; /* m, of the cores along it */
    tb_vec3 on_a, on_b; /* m, points of the cores, relative to the common origin */
    tb_simplex simplex; /* features that make them */
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
    const int rank_a = tb_simplex_edge(&c->simplex, a, 0, &edge_a);
    const int rank_b = tb_simplex_edge(&c->simplex, b, 1, &edge_b);
    int polished = 0;

    if (rank_a == 1 && rank_b == 1 && tb_v3_length2(tb_v3_cross(edge_a, edge_b)) >
                                          TB_COLLIDE_PARALLEL * TB_COLLIDE_PARALLEL) {
        n = tb_v3_normalize(tb_v3_cross(edge_a, edge_b), n);
        if (tb_v3_dot(n, c->normal) < 0) n = tb_v3_negate(n);
    } else if ((curved_a || curved_b) && rank_a < 2 && rank_b < 2) {
        const tb_vec3 *edge = rank_a ? &edge_a : (rank_b ? &edge_b : 0);
        tb_polish_normal(a, b, edge, &n);
        polished = 1;
    }
    c->separation = tb_core_separation(a, b, c->normal);
    const tb_real sharp = tb_core_separation(a, b, n);
    const tb_real noise = TB_COLLIDE_NOISE * (a->extent + b->extent);
    if (sharp < c->separation - noise) return;
    c->normal = n;
    c->separation = sharp;
    if (!polished) return;
    /* a curved surface has one extreme point; its partner lies across the gap */
    const tb_vertex v = tb_cso_support(a, b, n);
    if (curved_b && !rank_b) {
        c->on_b = v.b;
        c->on_a = tb_v3_add_scaled(v.b, n, -sharp);
    } else if (!rank_a) {
        c->on_a = v.a;
        c->on_b = tb_v3_add_scaled(v.a, n, sharp);
    } else if (!rank_b) {
        c->on_b = v.b;
        c->on_a = tb_v3_add_scaled(v.b, n, -sharp);
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
}

/* False if the cores are farther apart than `limit`. */
TB_FN int tb_closest_find(tb_core *a, tb_core *b, tb_real limit, tb_closest *c)
{
    const tb_real scale = a->extent + b->extent;
    tb_vec3 nearest;
    const tb_gjk_end end = tb_gjk(a, b, limit, scale, &c->simplex, &nearest);
    c->degenerate = 0;
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
    return 1;
}

#endif
