/* Contact points and their feature ids, the output of every narrow-phase pair.
 *
 * The feature id of a point names the topological features that make it: a vertex of one shape
 * on a face of the other, an edge on an edge. The id does not depend on the reference shape of
 * clipping, so it survives a change of reference. A pair with a single sliding point (a sphere
 * rolling over a box) always uses id 0, because it is one contact. */
#ifndef TB_COLLIDE_MANIFOLD_H
#define TB_COLLIDE_MANIFOLD_H

#include "collide/collide.h"

/* In place of a number of points: a method for the types of the pair leaves it to the one for any two convex shapes,
 * for instance because the features of the best axis do not lie over each other. */
enum { TB_COLLIDE_GENERAL = -1 };

/* A feature of one shape: kind in two bits, number in thirty. */
#define TB_FEATURE_SURFACE 0u
#define TB_FEATURE_VERTEX  0x40000000u
#define TB_FEATURE_EDGE    0x80000000u
#define TB_FEATURE_FACE    0xC0000000u
#define TB_FEATURE_NUMBER  0x3FFFFFFFu

/* Tolerances relative to the size of the shapes. TIE: a face normal is preferred over a better axis
 * by this much, so that rounding does not make the normal flip. NOISE: rounding error of
 * lengths. PARALLEL: sine of an angle that counts as zero. FLAT: the same for faces, and the
 * margin within which points count as over a face. ROUND: accuracy of EPA on a curved surface. */
#ifdef TB_SINGLE
#define TB_COLLIDE_TIE      TB_R(1e-5)
#define TB_COLLIDE_NOISE    TB_R(2e-6)
#define TB_COLLIDE_PARALLEL TB_R(1e-3)
#define TB_COLLIDE_FLAT     TB_R(1e-4)
#define TB_COLLIDE_ROUND    TB_R(5e-5)
#else
#define TB_COLLIDE_TIE      TB_R(1e-7)
#define TB_COLLIDE_NOISE    TB_R(1e-13)
#define TB_COLLIDE_PARALLEL TB_R(1e-5)
#define TB_COLLIDE_FLAT     TB_R(1e-7)
#define TB_COLLIDE_ROUND    TB_R(1e-5)
#endif

/* Polytopes that overlap have the contacts of a face although crossed edges have the least depth, if
 * both normals have nearly one direction (cosine of at least FACE_LEAN), the depth along the face's is
 * at most FACE_DEPTH times the least, and the deepest point over the face has at least FACE_REACH of it.
 * Where two faces lie on each other, their edges cross: once the shapes lean by a rounding, two crossed
 * edges have the least depth, by as little, and their single contact would let the shapes tip into each
 * other. */
#define TB_COLLIDE_FACE_LEAN  TB_R(0.995)
#define TB_COLLIDE_FACE_DEPTH TB_R(1.1)
#define TB_COLLIDE_FACE_REACH TB_R(0.9)

/* Sine of the angle below which two edges, or an edge and the contact plane,
 * touch along a stretch. */
#define TB_COLLIDE_SIDE_BY_SIDE TB_R(2e-3)

TB_FN uint64_t tb_feature(uint32_t a, uint32_t b)
{
    return ((uint64_t)a << 32) | b;
}

/* an edge by its two vertices, whichever way it runs */
TB_FN uint32_t tb_feature_edge(uint32_t v0, uint32_t v1)
{
    const uint32_t low = v0 < v1 ? v0 : v1, high = v0 < v1 ? v1 : v0;
    return TB_FEATURE_EDGE | (((high << 15) | low) & TB_FEATURE_NUMBER);
}

/* Writes one point from its position on A. */
TB_FN void tb_contact_set_a(tb_contact_point *c, tb_vec3 normal, tb_vec3 on_a, tb_real gap,
                            uint64_t feature)
{
    c->normal = normal;
    c->point_a = on_a;
    c->point_b = tb_v3_add_scaled(on_a, normal, gap);
    c->gap = gap;
    c->feature = feature;
}

/* Writes one point from its position on B. */
TB_FN void tb_contact_set_b(tb_contact_point *c, tb_vec3 normal, tb_vec3 on_b, tb_real gap,
                            uint64_t feature)
{
    c->normal = normal;
    c->point_a = tb_v3_add_scaled(on_b, normal, -gap);
    c->point_b = on_b;
    c->gap = gap;
    c->feature = feature;
}

/* Exchanges the roles of A and B in the contacts. */
TB_FN void tb_contact_mirror(tb_contact_point *points, int count)
{
    for (int i = 0; i < count; i++) {
        const tb_vec3 p = points[i].point_a;
        points[i].normal = tb_v3_negate(points[i].normal);
        points[i].point_a = points[i].point_b;
        points[i].point_b = p;
    }
}

/* Keeps at most TB_MANIFOLD_POINTS of `count` points (at most 160), in place and in their order:
 * the deepest, then repeatedly the point farthest from all kept points. Ties within a tolerance
 * follow the order of the points, so that rounding does not reshuffle a flat contact. */
TB_FN_LARGE int tb_manifold_reduce(tb_contact_point *points, int count)
{
    if (count <= TB_MANIFOLD_POINTS) return count;
    tb_real distance2[160];
    uint8_t kept[160];
    if (count > 160) count = 160;

    tb_vec3 lower = points[0].point_a, upper = lower;
    for (int i = 1; i < count; i++) {
        lower = tb_v3_min(lower, points[i].point_a);
        upper = tb_v3_max(upper, points[i].point_a);
    }
    const tb_real slack = TB_COLLIDE_FLAT * tb_v3_length(tb_v3_sub(upper, lower));
    int next = 0;
    for (int i = 0; i < count; i++) {
        distance2[i] = TB_REAL_MAX;
        kept[i] = 0;
        if (points[i].gap < points[next].gap - slack) next = i;
    }
    for (int chosen = 0; chosen < TB_MANIFOLD_POINTS; chosen++) {
        const tb_vec3 p = points[next].point_a;
        kept[next] = 1;
        int farthest = -1;
        for (int i = 0; i < count; i++) {
            distance2[i] = tb_min(distance2[i], tb_v3_length2(tb_v3_sub(points[i].point_a, p)));
            if (kept[i]) continue;
            if (farthest < 0 || distance2[i] > distance2[farthest] * (1 + TB_COLLIDE_FLAT))
                farthest = i;
        }
        next = farthest;
    }
    int n = 0;
    for (int i = 0; i < count; i++)
        if (kept[i]) points[n++] = points[i];
    return n;
}

#endif
