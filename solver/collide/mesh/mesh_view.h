/* A triangle mesh in a pair's coordinates, and the valid contact directions of its surface.
 *
 * A contact normal d belongs to a point of a surface only if the point is farthest along d among
 * its neighbours (the point's normal cone, its Voronoi region for distances). For a face this is
 * the face normal; for a convex edge the arc between the normals of its two faces; for a vertex the
 * cone of the fan around it; for flat and concave edges the set is empty. A triangle alone would
 * allow more directions, which cause bumps at internal edges; this file therefore tests every
 * direction against the mesh.
 *
 * Coordinates are in world axes relative to the other shape's position, so that a mesh that is
 * large or far away costs no digits. */
#ifndef TB_MESH_VIEW_H
#define TB_MESH_VIEW_H

#include "collide/manifold.h"

/* Sine of the angle within which directions count as equal, and lengths (relative to the pair's
 * size) within which points do. */
#ifdef TB_SINGLE
#define TB_MESH_ANGLE  TB_R(5e-4)
#define TB_MESH_LENGTH TB_R(2e-6)
#else
#define TB_MESH_ANGLE  TB_R(1e-7)
#define TB_MESH_LENGTH TB_R(1e-11)
#endif

enum { TB_MESH_FAN = 1024 }; /* largest number of triangles visited around one vertex */

typedef struct tb_mesh_view {
    const tb_triangle_mesh *mesh;
    double origin[3];  /* m, the pair's origin in the mesh's frame */
    tb_mat33 rotation; /* mesh frame to world axes */
} tb_mesh_view;

/* One triangle of a mesh. */
typedef struct tb_mesh_triangle {
    tb_vec3 v[3];     /* m */
    tb_vec3 normal;   /* unit */
    tb_real offset;   /* m: normal . x = offset on the plane */
    tb_vec3 side[3];  /* unit, in the plane, outward across the edges (v0 v1), (v1 v2), (v2 v0) */
    tb_vec3 other[3]; /* the far end of each edge's arc of normals, which begins at `normal` */
    bool open[3];     /* the arc is longer than a point: convex and boundary edges */
    int32_t index;    /* in the mesh */
} tb_mesh_triangle;

TB_FN tb_vec3 tb_mesh_vertex(const tb_mesh_view *view, int32_t vertex)
{
    const double *p = &view->mesh->vertices[3 * vertex];
    return tb_m33_mul_v3(&view->rotation,
                         tb_v3(TB_R(p[0] - view->origin[0]), TB_R(p[1] - view->origin[1]),
                               TB_R(p[2] - view->origin[2])));
}

TB_FN tb_vec3 tb_mesh_normal(const tb_mesh_view *view, int32_t triangle)
{
    return tb_m33_mul_v3(&view->rotation, tb_v3_load(&view->mesh->normals[3 * triangle]));
}

TB_FN_LARGE void tb_mesh_triangle_load(const tb_mesh_view *view, int32_t index, tb_mesh_triangle *t)
{
    const tb_triangle_mesh *mesh = view->mesh;
    t->index = index;
    t->normal = tb_mesh_normal(view, index);
    for (int k = 0; k < 3; k++) t->v[k] = tb_mesh_vertex(view, mesh->triangles[3 * index + k]);
    t->offset = (tb_v3_dot(t->normal, t->v[0]) + tb_v3_dot(t->normal, t->v[1]) +
                 tb_v3_dot(t->normal, t->v[2])) /
                3;
    for (int k = 0; k < 3; k++) {
        const tb_vec3 edge = tb_v3_sub(t->v[(k + 1) % 3], t->v[k]);
        const uint8_t kind = mesh->edge_kind[3 * index + k];
        const int32_t across = mesh->adjacent[3 * index + k];
        t->side[k] = tb_v3_normalize(tb_v3_cross(edge, t->normal), t->normal);
        t->open[k] = kind == TB_EDGE_BOUNDARY || kind == TB_EDGE_CONVEX;
        t->other[k] = t->normal;
        if (kind == TB_EDGE_BOUNDARY || across < 0)
            t->other[k] = t->side[k];
        else if (kind == TB_EDGE_CONVEX)
            t->other[k] = tb_mesh_normal(view, across);
    }
}

/* State of a climb: the highest neighbour of a vertex so far. */
typedef struct tb_mesh_climber {
    tb_vec3 d;       /* unit, mesh frame */
    const double *p; /* the vertex */
    tb_real most;    /* m, height of the best neighbour over it */
    int32_t triangle;
    int corner;
} tb_mesh_climber;

TB_FN void tb_mesh_climber_try(tb_mesh_climber *c, const tb_triangle_mesh *mesh, int32_t triangle,
                               int corner)
{
    const double *q = &mesh->vertices[3 * mesh->triangles[3 * triangle + corner]];
    const tb_vec3 e = tb_v3(TB_R(q[0] - c->p[0]), TB_R(q[1] - c->p[1]), TB_R(q[2] - c->p[2]));
    const tb_real rise = tb_v3_dot(c->d, e);
    if (rise <= c->most || rise <= TB_MESH_ANGLE * tb_v3_length(e)) return;
    c->most = rise;
    c->triangle = triangle;
    c->corner = corner;
}

/* The neighbour of a corner that is highest along the unit direction d, as a corner of a
 * triangle; false if the corner itself is the highest of its fan. */
TB_FN_LARGE bool tb_mesh_climb(const tb_mesh_view *view, int32_t *triangle, int *corner, tb_vec3 d)
{
    const tb_triangle_mesh *mesh = view->mesh;
    const int32_t vertex = mesh->triangles[3 * *triangle + *corner];
    tb_mesh_climber c;
    c.d = tb_m33_tmul_v3(&view->rotation, d);
    c.p = &mesh->vertices[3 * vertex];
    c.most = 0;
    c.triangle = -1;
    c.corner = 0;

    /* around in one direction until the fan closes or ends, then from the start in the other */
    bool closed = false;
    for (int way = 0; way < 2 && !closed; way++) {
        int32_t t = *triangle;
        int k = *corner;
        for (int step = 0; step < TB_MESH_FAN && !closed; step++) {
            tb_mesh_climber_try(&c, mesh, t, (k + 1) % 3);
            tb_mesh_climber_try(&c, mesh, t, (k + 2) % 3);
            const int32_t next = mesh->adjacent[3 * t + (way == 0 ? k : (k + 2) % 3)];
            closed = next == *triangle;
            if (next < 0 || closed) break;
            int found = -1;
            for (int n = 0; n < 3; n++)
                if (mesh->triangles[3 * next + n] == vertex) found = n;
            if (found < 0) {
                /* a neighbour on whose edge the vertex lies */
                for (int n = 0; n < 3; n++) tb_mesh_climber_try(&c, mesh, next, n);
                break;
            }
            t = next;
            k = found;
        }
    }
    if (c.triangle < 0) return false;
    *triangle = c.triangle;
    *corner = c.corner;
    return true;
}

/* Whether a corner of a triangle is farthest along the unit direction d among its neighbours. */
TB_FN bool tb_mesh_vertex_holds(const tb_mesh_view *view, int32_t triangle, int corner, tb_vec3 d)
{
    return !tb_mesh_climb(view, &triangle, &corner, d);
}

/* The same for the inside of an edge: of its two triangles, neither rises along d. */
TB_FN bool tb_mesh_edge_holds(const tb_mesh_view *view, const tb_mesh_triangle *t, int edge,
                              tb_vec3 d)
{
    if (!t->open[edge]) return false;
    const tb_triangle_mesh *mesh = view->mesh;
    const tb_vec3 rise = tb_v3_sub(t->v[(edge + 2) % 3], t->v[edge]);
    if (tb_v3_dot(d, rise) > TB_MESH_ANGLE * tb_v3_length(rise)) return false;
    const int32_t across = mesh->adjacent[3 * t->index + edge];
    if (across < 0) return true;
    const int32_t a = mesh->triangles[3 * t->index + edge];
    const int32_t b = mesh->triangles[3 * t->index + (edge + 1) % 3];
    for (int n = 0; n < 3; n++) {
        const int32_t v = mesh->triangles[3 * across + n];
        if (v == a || v == b) continue;
        const tb_vec3 beyond = tb_v3_sub(tb_mesh_vertex(view, v), t->v[edge]);
        if (tb_v3_dot(d, beyond) > TB_MESH_ANGLE * tb_v3_length(beyond)) return false;
    }
    return true;
}

/* Whether two unit directions count as one. */
TB_FN bool tb_mesh_same_direction(tb_vec3 a, tb_vec3 b)
{
    return tb_v3_length2(tb_v3_sub(a, b)) <= 16 * TB_MESH_ANGLE * TB_MESH_ANGLE;
}

#endif
