/* Penetration depth of two convex cores by an expanding polytope (van den Bergen, Proximity Queries
 * and Penetration Depth Computation on 3D Game Objects, GDC 2001), with one change: face distances
 * are signed.
 *
 * The polytope lies inside the obstacle A - B and grows towards its support planes. The face with
 * the least signed distance is grown, whether or not the origin is inside the polytope. The start
 * therefore need not enclose the origin, and shapes that touch or are apart by a rounding error
 * give the same normal as shapes that overlap by one. A flat obstacle (two crossing segments) gives
 * its plane's normal.
 *
 * The caller provides the polytope's memory: it is ten times the size of all other narrow-phase
 * data, and a GPU reserves the stack of its deepest function for every lane. */
#ifndef TB_COLLIDE_EPA_H
#define TB_COLLIDE_EPA_H

#include "collide/convex/gjk.h"

enum { TB_EPA_VERTICES = 128, TB_EPA_FACES = 256, TB_EPA_EDGES = 256 };

typedef struct tb_epa_face {
    tb_vec3 normal; /* unit, outward; zero for a face without area */
    tb_real height; /* signed distance of the origin below the face */
    int16_t v[3];   /* v[0] < 0: free */
} tb_epa_face;

typedef struct tb_epa {
    tb_vertex vertices[TB_EPA_VERTICES];
    tb_epa_face faces[TB_EPA_FACES];
    int number_of_vertices, number_of_faces; /* faces: highest in use + 1 */
    int nearest; /* face of least height, which bounds the depth from below */
    /* during growth: the rim's edges, and the free places among the faces, ascending */
    int16_t from[TB_EPA_EDGES], to[TB_EPA_EDGES];
    uint8_t places[TB_EPA_FACES];
} tb_epa;

/* returns 3: vertices[0..3] is a tetrahedron; less: the obstacle is flat, a line or a point */
TB_FN_LARGE int tb_epa_start(tb_core *a, tb_core *b, const tb_simplex *s, tb_real scale, tb_epa *e)
{
    const tb_real noise = 16 * TB_COLLIDE_NOISE * scale;
    tb_vertex *v = e->vertices;
    v[0] = s->v[0];
    int known = s->count; /* usable vertices of s */

    /* a second point */
    int next = 1;
    tb_real most = noise;
    int found = 0;
    for (int k = 1; k < known; k++) {
        const tb_real d = tb_v3_length(tb_v3_sub(s->v[k].w, v[0].w));
        if (d > most) most = d, v[1] = s->v[k], found = 1;
    }
    for (int k = 0; k < 6 && !found; k++) {
        const tb_real sign = k & 1 ? TB_R(-1) : TB_R(1);
        const tb_vec3 axis = tb_v3(k < 2 ? sign : 0, k >> 1 == 1 ? sign : 0, k > 3 ? sign : 0);
        const tb_vertex w = tb_cso_support(a, b, axis);
        const tb_real d = tb_v3_length(tb_v3_sub(w.w, v[0].w));
        if (d > most) most = d, v[1] = w, next = 2;
    }
    if (!found && next == 1) return 0;

    /* a third, off the line */
    const tb_vec3 line = tb_v3_normalize(tb_v3_sub(v[1].w, v[0].w), tb_v3(1, 0, 0));
    tb_vec3 t1, t2;
    tb_v3_tangents(line, &t1, &t2);
    most = noise;
    found = 0;
    for (int k = 1; k < known; k++) {
        const tb_real d = tb_v3_length(tb_v3_cross(line, tb_v3_sub(s->v[k].w, v[0].w)));
        if (d > most) most = d, v[2] = s->v[k], found = 1;
    }
    for (int k = 0; k < 4 && !found; k++) {
        const tb_vec3 t = tb_v3_scale(k < 2 ? t1 : t2, k & 1 ? TB_R(-1) : TB_R(1));
        const tb_vertex w = tb_cso_support(a, b, t);
        const tb_real d = tb_v3_length(tb_v3_cross(line, tb_v3_sub(w.w, v[0].w)));
        if (d > most) most = d, v[2] = w, next = 3;
    }
    if (!found && next < 3) return 1;

    /* a fourth, off the plane */
    const tb_vec3 normal = tb_v3_normalize(
        tb_v3_cross(tb_v3_sub(v[1].w, v[0].w), tb_v3_sub(v[2].w, v[0].w)), tb_v3(0, 0, 1));
    most = noise;
    found = 0;
    for (int k = 1; k < known; k++) {
        const tb_real d = tb_abs(tb_v3_dot(normal, tb_v3_sub(s->v[k].w, v[0].w)));
        if (d > most) most = d, v[3] = s->v[k], found = 1;
    }
    for (int k = 0; k < 2 && !found; k++) {
        const tb_vertex w = tb_cso_support(a, b, tb_v3_scale(normal, k ? TB_R(-1) : TB_R(1)));
        const tb_real d = tb_abs(tb_v3_dot(normal, tb_v3_sub(w.w, v[0].w)));
        if (d > most) most = d, v[3] = w, next = 4;
    }
    return found || next == 4 ? 3 : 2;
}

TB_FN_LARGE void tb_epa_face_set(tb_epa *e, int face, int v0, int v1, int v2)
{
    tb_epa_face *f = &e->faces[face];
    const tb_vec3 p = e->vertices[v0].w, q = e->vertices[v1].w, r = e->vertices[v2].w;
    const tb_vec3 none = tb_v3(0, 0, 0);
    f->v[0] = (int16_t)v0;
    f->v[1] = (int16_t)v1;
    f->v[2] = (int16_t)v2;
    f->normal = tb_v3_normalize(tb_v3_cross(tb_v3_sub(q, p), tb_v3_sub(r, p)), none);
    f->height = TB_REAL_MAX; /* without area: never grown, never seen */
    if (tb_v3_length2(f->normal) > TB_R(0.5)) {
        const tb_vec3 middle = tb_v3_add(p, tb_v3_add(q, r));
        f->height = tb_v3_dot(f->normal, middle) / 3;
    }
    if (face >= e->number_of_faces) e->number_of_faces = face + 1;
}

/* Makes a face the nearest one if it is; of equally near faces the first one is. */
TB_FN void tb_epa_compare(tb_epa *e, int face)
{
    const tb_real height = e->faces[face].height;
    const tb_real least = e->nearest < 0 ? height : e->faces[e->nearest].height;
    if (e->nearest < 0 || height < least || (height == least && face < e->nearest))
        e->nearest = face;
}

/* Removes the faces that see vertex `apex` and the nearest face: their rim becomes the edges, their
 * places are free, and the nearest face is one of those that stay (-1: none does). Returns the
 * number of free places, -1: no memory left for edges. One pass over the faces, since there are many
 * of them and few change. */
TB_FN int tb_epa_open(tb_epa *e, int apex, tb_real noise, int *edges)
{
    int16_t *from = e->from, *to = e->to;
    int count = 0, places = 0, nearest = -1;
    tb_real least = TB_REAL_MAX;
    const tb_vec3 w = e->vertices[apex].w;
    for (int f = 0; f < e->number_of_faces; f++) {
        tb_epa_face *face = &e->faces[f];
        if (face->v[0] < 0) {
            e->places[places++] = (uint8_t)f;
            continue;
        }
        if (f != e->nearest && !(tb_v3_dot(face->normal, w) > face->height + noise)) {
            if (nearest < 0 || face->height < least) nearest = f, least = face->height;
            continue;
        }
        for (int k = 0; k < 3; k++) {
            const int16_t i = face->v[k], j = face->v[k == 2 ? 0 : k + 1];
            int twin = 0; /* an edge met from both sides is inside the hole */
            while (twin < count && !(from[twin] == j && to[twin] == i)) twin++;
            if (twin < count) {
                count--;
                from[twin] = from[count];
                to[twin] = to[count];
            } else if (count < TB_EPA_EDGES) {
                from[count] = i;
                to[count++] = j;
            } else {
                return -1;
            }
        }
        face->v[0] = -1;
        e->places[places++] = (uint8_t)f;
    }
    e->nearest = nearest;
    *edges = count;
    return places;
}

/* Replaces the faces that see vertex `apex`, the nearest one among them, by the cone over their rim.
 * 0: no memory left, and the polytope is open. */
TB_FN_LARGE int tb_epa_grow(tb_epa *e, int apex, tb_real noise)
{
    int edges = 0;
    const int places = tb_epa_open(e, apex, noise, &edges);
    if (places < 0 || edges < 3 || TB_EPA_FACES - e->number_of_faces + places < edges) return 0;
    for (int k = 0; k < edges; k++) {
        const int place = k < places ? e->places[k] : e->number_of_faces;
        tb_epa_face_set(e, place, e->from[k], e->to[k], apex);
        tb_epa_compare(e, place);
    }
    return 1;
}

/* the face as a simplex, with the weights of its point nearest to the origin */
TB_FN void tb_epa_give(const tb_epa *e, const tb_epa_face *face, tb_simplex *s)
{
    s->count = 3;
    for (int i = 0; i < 3; i++) s->v[i] = e->vertices[face->v[i]];
    tb_nearest_triangle(s->v[0].w, s->v[1].w, s->v[2].w, s->weight);
}

/* Normal of a flat obstacle of rank 0 to 2 (a point, a line, a plane), on B's side: `ahead` points
 * from A's inside to B's. `s` receives its vertices with the weights of the nearest point. */
TB_FN void tb_epa_normal_of_flat(const tb_epa *e, int rank, tb_vec3 ahead, tb_simplex *s,
                                 tb_vec3 *normal)
{
    tb_vec3 t1, t2, n;
    const tb_vec3 toward = tb_v3_normalize(ahead, tb_v3(0, 0, 1));
    n = toward;
    s->count = rank + 1;
    for (int k = 0; k <= rank; k++) s->v[k] = e->vertices[k];
    if (rank == 2)
        n = tb_v3_cross(tb_v3_sub(s->v[1].w, s->v[0].w), tb_v3_sub(s->v[2].w, s->v[0].w));
    if (rank == 1) { /* perpendicular to the line, as close to B's direction as possible */
        const tb_vec3 line = tb_v3_normalize(tb_v3_sub(s->v[1].w, s->v[0].w), toward);
        tb_v3_tangents(line, &t1, &t2);
        const tb_real c1 = tb_v3_dot(toward, t1), c2 = tb_v3_dot(toward, t2);
        n = tb_v3_add(tb_v3_scale(t1, c1), tb_v3_scale(t2, c2));
        if (!(tb_v3_length2(n) > TB_R(1e-4))) n = t1;
    }
    n = tb_v3_normalize(n, toward);
    *normal = tb_v3_dot(n, ahead) < 0 ? tb_v3_negate(n) : n;
    int inside;
    tb_simplex_nearest(s, &inside);
}

/* The faces of the tetrahedron vertices[0..3], outward. */
TB_FN void tb_epa_set_tetrahedron(tb_epa *e)
{
    e->number_of_faces = 0;
    e->number_of_vertices = 4;
    const tb_vec3 p0 = e->vertices[0].w;
    const tb_vec3 n0 =
        tb_v3_cross(tb_v3_sub(e->vertices[1].w, p0), tb_v3_sub(e->vertices[2].w, p0));
    const int flip = tb_v3_dot(n0, tb_v3_sub(e->vertices[3].w, p0)) > 0;
    const int i1 = flip ? 2 : 1, i2 = flip ? 1 : 2;
    tb_epa_face_set(e, 0, 0, i1, i2);
    tb_epa_face_set(e, 1, 0, i2, 3);
    tb_epa_face_set(e, 2, i2, i1, 3);
    tb_epa_face_set(e, 3, i1, 0, 3);
    e->nearest = -1;
    for (int f = 0; f < 4; f++) tb_epa_compare(e, f);
}

/* Grows the polytope until the support plane of a face is within the tolerance; *best is the face
 * with the support plane nearest to the origin. False: out of memory, or no face left to grow. */
TB_FN bool tb_epa_expand(tb_core *a, tb_core *b, tb_real scale, tb_epa *e, tb_epa_face *best)
{
    const int curved = tb_core_curved(a) || tb_core_curved(b);
    const tb_real tolerance = (curved ? TB_COLLIDE_ROUND : TB_COLLIDE_NOISE * 4) * scale;
    tb_real reach = TB_REAL_MAX;
    *best = e->faces[e->nearest];
    for (;;) {
        const tb_epa_face *f = &e->faces[e->nearest];
        if (f->height == TB_REAL_MAX) return false;
        const tb_vertex w = tb_cso_support(a, b, f->normal);
        const tb_real support = tb_v3_dot(f->normal, w.w);
        const bool converged = !(support > f->height + tolerance);
        if (converged || support < reach) *best = *f;
        reach = tb_min(reach, support);
        if (converged) return true;
        if (e->number_of_vertices >= TB_EPA_VERTICES) return false;
        e->vertices[e->number_of_vertices] = w;
        if (!tb_epa_grow(e, e->number_of_vertices, TB_COLLIDE_NOISE * scale)) return false;
        e->number_of_vertices++;
    }
}

/* A flat side of the obstacle consists of many faces level with `best`: takes the one with the
 * origin's projection. */
TB_FN void tb_epa_choose_level(const tb_epa *e, const tb_epa_face *best, tb_real scale,
                               tb_simplex *s, tb_vec3 *normal)
{
    tb_real least = TB_REAL_MAX;
    const tb_real level = best->height + TB_COLLIDE_NOISE * 8 * scale;
    for (int k = 0; k < e->number_of_faces; k++) {
        const tb_epa_face *f = &e->faces[k];
        if (f->v[0] < 0 || !(f->height <= level)) continue;
        if (!(tb_v3_length(tb_v3_cross(f->normal, best->normal)) < 10 * TB_COLLIDE_FLAT &&
              tb_v3_dot(f->normal, best->normal) > 0))
            continue;
        tb_real weight[3];
        const tb_vec3 p = tb_nearest_triangle(e->vertices[f->v[0]].w, e->vertices[f->v[1]].w,
                                              e->vertices[f->v[2]].w, weight);
        const tb_real distance2 = tb_v3_length2(p);
        if (!(distance2 < least)) continue;
        least = distance2;
        *normal = f->normal;
        tb_epa_give(e, f, s);
    }
}

/* Normal of least penetration: the unit direction with the smallest support of A - B. `s` is
 * GJK's last simplex on entry, and receives the final face with its weights; `e` is scratch.
 * Returns the rank of the obstacle: below 3 it is flat, below 2 the normal is not unique. */
TB_FN_LARGE int tb_epa_normal(tb_core *a, tb_core *b, tb_real scale, tb_simplex *s, tb_vec3 *normal,
                              tb_epa *e)
{
    const tb_vec3 ahead = tb_v3_sub(b->inside, a->inside);
    const int rank = tb_epa_start(a, b, s, scale, e);
    if (rank < 3) {
        tb_epa_normal_of_flat(e, rank, ahead, s, normal);
        return rank;
    }
    tb_epa_face best;
    tb_epa_set_tetrahedron(e);
    const bool converged = tb_epa_expand(a, b, scale, e, &best);
    tb_epa_give(e, &best, s);
    *normal = best.normal;
    if (converged) tb_epa_choose_level(e, &best, scale, s, normal);
    *normal = tb_v3_normalize(*normal, tb_v3_normalize(ahead, tb_v3(0, 0, 1)));
    return 3;
}

#endif
