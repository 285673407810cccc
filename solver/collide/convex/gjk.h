/* Distance of two convex cores by the method of Gilbert, Johnson and Keerthi (IEEE J. Robotics and
 * Automation 4, 1988), with the nearest point of a simplex by its Voronoi regions (Ericson,
 * Real-Time Collision Detection, 5.1).
 *
 * All tests are relative to the sizes of their operands. The loop ends by convergence, by a
 * repeated support point, by a distance that no longer decreases, or by its iteration limit. */
#ifndef TB_COLLIDE_GJK_H
#define TB_COLLIDE_GJK_H

#include "collide/convex/support.h"

enum { TB_GJK_ITERATIONS = 64 };

typedef enum tb_gjk_end {
    TB_GJK_APART,   /* distance and nearest points are valid */
    TB_GJK_BEYOND,  /* farther apart than the limit; no other result */
    TB_GJK_TOUCHING /* overlapping, or too near for a direction */
} tb_gjk_end;

typedef struct tb_simplex {
    tb_vertex v[4];
    tb_real weight[4]; /* barycentric coordinates of the nearest point */
    int count;
} tb_simplex;

/* nearest point of a segment to the origin: weights in place, returns the point */
TB_FN tb_vec3 tb_nearest_segment(tb_vec3 a, tb_vec3 b, tb_real weight[2])
{
    const tb_vec3 ab = tb_v3_sub(b, a);
    const tb_real length2 = tb_v3_length2(ab);
    const tb_real t = length2 > 0 ? tb_clamp(-tb_v3_dot(a, ab) / length2, 0, 1) : TB_R(0);
    weight[0] = 1 - t;
    weight[1] = t;
    return tb_v3_add_scaled(a, ab, t);
}

/* nearest point of a triangle to the origin */
TB_FN_LARGE tb_vec3 tb_nearest_triangle(tb_vec3 a, tb_vec3 b, tb_vec3 c, tb_real weight[3])
{
    const tb_vec3 ab = tb_v3_sub(b, a), ac = tb_v3_sub(c, a);
    const tb_vec3 n = tb_v3_cross(ab, ac);
    const tb_real area2 = tb_v3_length2(n);
    if (area2 > 0) {
        /* the origin's foot on the plane is inside if it sees all three edges turn the same way */
        const tb_vec3 foot = tb_v3_scale(n, tb_v3_dot(n, a) / area2);
        const tb_vec3 fa = tb_v3_sub(a, foot), fb = tb_v3_sub(b, foot), fc = tb_v3_sub(c, foot);
        const tb_real wa = tb_v3_dot(n, tb_v3_cross(fb, fc));
        const tb_real wb = tb_v3_dot(n, tb_v3_cross(fc, fa));
        const tb_real wc = tb_v3_dot(n, tb_v3_cross(fa, fb));
        const tb_real sum = wa + wb + wc;
        if (wa >= 0 && wb >= 0 && wc >= 0 && sum > 0) {
            weight[0] = wa / sum;
            weight[1] = wb / sum;
            weight[2] = wc / sum;
            return foot;
        }
    }
    tb_real w[2];
    tb_vec3 p = tb_nearest_segment(a, b, w), best = p;
    weight[0] = w[0], weight[1] = w[1], weight[2] = 0;
    p = tb_nearest_segment(b, c, w);
    if (tb_v3_length2(p) < tb_v3_length2(best))
        best = p, weight[0] = 0, weight[1] = w[0], weight[2] = w[1];
    p = tb_nearest_segment(c, a, w);
    if (tb_v3_length2(p) < tb_v3_length2(best))
        best = p, weight[0] = w[1], weight[1] = 0, weight[2] = w[0];
    return best;
}

/* Nearest point to the origin of the hull of `count` points, and their weights in it. *inside: the origin is in the
 * tetrahedron; no weights. */
TB_FN_LARGE tb_vec3 tb_nearest_of(const tb_vec3 p[4], int count, tb_real weight[4], int *inside)
{
    *inside = 0;
    tb_vec3 best = p[0];
    weight[0] = 1;
    if (count == 2) {
        best = tb_nearest_segment(p[0], p[1], weight);
    } else if (count == 3) {
        best = tb_nearest_triangle(p[0], p[1], p[2], weight);
    } else if (count == 4) {
        /* faces with the origin on their outer side; all faces if the tetrahedron is flat */
        tb_real least = TB_REAL_MAX;
        for (int k = 0; k < 4; k++) {
            const int i0 = k == 0 ? 1 : 0, i1 = k <= 1 ? 2 : 1, i2 = k <= 2 ? 3 : 2;
            const tb_vec3 a = p[i0], b = p[i1], c = p[i2];
            const tb_vec3 n = tb_v3_cross(tb_v3_sub(b, a), tb_v3_sub(c, a));
            const tb_real apex = tb_v3_dot(n, tb_v3_sub(p[k], a));
            const tb_real origin = -tb_v3_dot(n, a);
            if (apex > 0 ? origin > 0 : (apex < 0 && origin < 0)) continue;
            tb_real w[3];
            const tb_vec3 near = tb_nearest_triangle(a, b, c, w);
            const tb_real d = tb_v3_length2(near);
            if (d < least) {
                least = d;
                best = near;
                weight[k] = 0;
                weight[i0] = w[0], weight[i1] = w[1], weight[i2] = w[2];
            }
        }
        if (least == TB_REAL_MAX) {
            *inside = 1;
            return tb_v3(0, 0, 0);
        }
    }
    return best;
}

/* Drops the vertices without a weight. */
TB_FN void tb_simplex_keep(tb_simplex *s, const tb_real weight[4])
{
    int n = 0;
    s->weight[0] = weight[0];
    for (int k = 0; k < s->count; k++) {
        if (!(weight[k] > 0)) continue;
        if (n < k) s->v[n] = s->v[k];
        s->weight[n++] = weight[k];
    }
    s->count = n > 0 ? n : 1;
}

/* Nearest point of the simplex to the origin; drops unused vertices. *inside: the origin is in
 * the tetrahedron. */
TB_FN_LARGE tb_vec3 tb_simplex_nearest(tb_simplex *s, int *inside)
{
    tb_vec3 p[4];
    tb_real weight[4] = {0, 0, 0, 0};
    for (int k = 0; k < 4; k++) p[k] = s->v[k < s->count ? k : 0].w;
    const tb_vec3 nearest = tb_nearest_of(p, s->count, weight, inside);
    if (!*inside) tb_simplex_keep(s, weight);
    return nearest;
}

/* Distance of two cores. *nearest is the point of A - B nearest to the origin. limit: distances
 * above it are not computed. scale: size of both, m. *s: the last simplex. A vertex enters it only when it is known
 * to come nearer, because copies of vertices are most of what a lane of a card would wait for. */
TB_FN_LARGE tb_gjk_end tb_gjk(tb_core *a, tb_core *b, tb_real limit, tb_real scale, tb_simplex *s,
                              tb_vec3 *nearest)
{
    const tb_real touching = TB_COLLIDE_TIE * scale;
    /* on curved surfaces convergence has no end; later code refines the normal */
    const tb_real loose =
        tb_core_curved(a) || tb_core_curved(b) ? TB_COLLIDE_TIE * TB_COLLIDE_FLAT : 0;
    const tb_real tolerance = tb_max(8 * TB_REAL_EPSILON, loose * 1000);
    tb_vec3 v = tb_v3_sub(a->inside, b->inside);
    if (!(tb_v3_length2(v) > 0)) v = tb_v3(1, 0, 0);
    s->count = 1;
    s->v[0] = tb_cso_support(a, b, tb_v3_negate(v));
    s->weight[0] = 1;
    v = s->v[0].w;
    tb_real v2 = tb_v3_length2(v);
    tb_real largest2 = v2;
    tb_gjk_end end = TB_GJK_APART;
    int stalled = 0;
    for (int iteration = 0; iteration < TB_GJK_ITERATIONS; iteration++) {
        if (!(v2 > touching * touching)) {
            end = TB_GJK_TOUCHING;
            break;
        }
        tb_vertex w = tb_cso_support(a, b, tb_v3_negate(v));
        const tb_real vw = tb_v3_dot(v, w.w);
        if (vw > 0 && vw * vw > v2 * limit * limit) return TB_GJK_BEYOND;
        largest2 = tb_max(largest2, tb_v3_length2(w.w));
        /* no point of A - B is nearer by more than this */
        if (v2 - vw <= tolerance * v2 + 4 * TB_REAL_EPSILON * tb_sqrt(v2 * largest2)) break;
        int known = 0;
        tb_vec3 points[4] = {w.w, w.w, w.w, w.w};
        for (int k = 0; k < 3; k++) {
            if (k >= s->count) continue;
            points[k] = s->v[k].w;
            known |= w.w.x == points[k].x && w.w.y == points[k].y && w.w.z == points[k].z;
        }
        if (known) break;

        int inside;
        tb_real weight[4] = {0, 0, 0, 0};
        const tb_vec3 p = tb_nearest_of(points, s->count + 1, weight, &inside);
        if (inside) {
            s->v[s->count++] = w;
            v = p;
            end = TB_GJK_TOUCHING;
            break;
        }
        const tb_real p2 = tb_v3_length2(p);
        /* near the end the direction still changes while the length does not */
        stalled = p2 < v2 ? 0 : stalled + 1;
        if (!(p2 <= v2 * (1 + 4 * TB_REAL_EPSILON)) || stalled > 3) break;
        s->v[s->count++] = w;
        tb_simplex_keep(s, weight);
        v = p;
        v2 = p2;
    }
    *nearest = v;
    return end;
}

/* the points of both cores from the simplex's weights */
TB_FN void tb_simplex_points(const tb_simplex *s, tb_vec3 *on_a, tb_vec3 *on_b)
{
    *on_a = tb_v3(0, 0, 0);
    *on_b = tb_v3(0, 0, 0);
    for (int k = 0; k < s->count; k++) {
        *on_a = tb_v3_add_scaled(*on_a, s->v[k].a, s->weight[k]);
        *on_b = tb_v3_add_scaled(*on_b, s->v[k].b, s->weight[k]);
    }
}

#endif
