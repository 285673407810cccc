/* A triangle of a mesh against a polytope: the contact normal and the points.
 *
 * The polytope is a box, a hull, or a triangle of another mesh. The normal is the direction of
 * greatest separation among those that both surfaces allow: the triangle's own, the polytope's
 * faces where the mesh is a local summit, and crossings of two edges whose arcs of normals cross
 * (Gregorius, The Separating Axis Test between Convex Polyhedra, GDC 2013, with the arcs of the
 * mesh instead of the triangle's). The points come from one face clipped by the sides of the other,
 * or from the two edges.
 *
 * Normals point from the mesh to the polytope. */
#ifndef TB_MESH_PAIR_H
#define TB_MESH_PAIR_H

#include "collide/mesh/mesh_view.h"

/* A convex polyhedron in the pair's coordinates; borrows its arrays. */
typedef struct tb_polytope {
    int32_t number_of_vertices, number_of_faces, number_of_edges;
    const tb_vec3 *vertices;
    const tb_vec3 *normals; /* of faces, outward */
    const tb_real *offsets; /* of faces */
    const int32_t *face_start, *face_vertices;
    const int32_t *edges;        /* x 2, vertices */
    const tb_vec3 *edge_normals; /* x 2, of the faces beside each edge */
    tb_vec3 centre;
    tb_real reach;            /* m, of the whole shape around the centre */
    const tb_mesh_view *view; /* view of a mesh triangle, else NULL */
    const tb_mesh_triangle *triangle;
} tb_polytope;

/* A point of one triangle, not yet compared with its neighbours. */
typedef struct tb_mesh_contact {
    tb_vec3 normal, on_mesh, on_shape; /* from the mesh to the shape */
    tb_real gap;
    tb_real height; /* offset of the triangle's plane along the normal: identifies the region
                       together with it */
    int32_t triangle;
    uint32_t feature; /* id of the shape's feature */
    uint8_t code;     /* kind of the point, and the triangle's feature */
    bool of_face;     /* the normal is the triangle's */
    bool cut;     /* of_face: lies on an edge of the mesh beyond which the shape reaches deeper */
    bool witness; /* used only to judge the face: the triangle touches along another normal */
    int32_t instead_of; /* -1, or index of a point: this point replaces it if that point's face does
                       not touch */
} tb_mesh_contact;

/* codes: the second half of a point's feature id */
enum {
    TB_CODE_SHAPE_VERTEX = 0, /* on the triangle's face */
    TB_CODE_SIDE = 1,         /* + edge: the shape's outline over an edge of the triangle */
    TB_CODE_CORNER = 4,       /* + corner: under or over the shape's face */
    TB_CODE_OUTLINE = 7,  /* + edge: an edge of the triangle over the outline of the shape's face */
    TB_CODE_EDGES = 10,   /* + edge: two edges */
    TB_CODE_NEAREST = 13, /* nearest points */
    TB_CODE_INSIDE = 14   /* the shape's centre is inside the mesh */
};

/* A corner of a clipped polygon: its position, its feature, and the side that cut it (-1: none). */
typedef struct tb_mesh_corner {
    tb_vec3 x;
    uint32_t feature;
    int32_t cut;
} tb_mesh_corner;

/* Clips a polygon, a segment or a point to the inner side of a plane (normal . x <= offset +
 * slack); returns the count. `to` holds count + 1 corners. New corners take the feature of the
 * corner where their edge begins, in the order of the polygon. */
TB_FN_LARGE int32_t tb_mesh_clip(const tb_mesh_corner *from, int32_t count, tb_vec3 normal,
                                 tb_real offset, tb_real slack, int32_t side, tb_mesh_corner *to)
{
    int32_t n = 0;
    const int32_t edges = count > 2 ? count : count - 1;
    for (int32_t i = 0; i < count; i++) {
        const tb_mesh_corner *p = &from[i], *q = &from[i + 1 < count ? i + 1 : 0];
        const tb_real dp = tb_v3_dot(normal, p->x) - offset;
        if (dp <= slack) to[n++] = *p;
        if (i >= edges) continue;
        const tb_real dq = tb_v3_dot(normal, q->x) - offset;
        if ((dp <= slack) == (dq <= slack)) continue;

        /* the crossing, computed from the inner end so that both directions agree */
        const tb_mesh_corner *in = dp <= slack ? p : q, *out = dp <= slack ? q : p;
        const tb_real d_in = dp <= slack ? dp : dq, d_out = dp <= slack ? dq : dp;
        const tb_real f = tb_clamp(d_in / (d_in - d_out), 0, 1);
        to[n].x = tb_v3_lerp(in->x, out->x, f);
        to[n].feature = p->feature;
        to[n].cut = side;
        n++;
    }
    return n;
}

/* Nearest points of the segments p + s u and q + t v, s and t in 0 to 1; false if the nearest
 * points of the lines lie outside a segment. */
TB_FN bool tb_mesh_edges_cross(tb_vec3 p, tb_vec3 u, tb_vec3 q, tb_vec3 v, tb_real *s, tb_real *t)
{
    const tb_vec3 w = tb_v3_sub(q, p);
    const tb_real uu = tb_v3_length2(u), vv = tb_v3_length2(v), uv = tb_v3_dot(u, v);
    const tb_real determinant = uu * vv - uv * uv, slack = TB_MESH_ANGLE;
    if (!(determinant > 0)) return false;
    *s = (tb_v3_dot(w, u) * vv - tb_v3_dot(w, v) * uv) / determinant;
    *t = (tb_v3_dot(w, u) * uv - tb_v3_dot(w, v) * uu) / determinant;
    return *s >= -slack && *s <= 1 + slack && *t >= -slack && *t <= 1 + slack;
}

/* Axis of greatest separation of a triangle and a polytope. */
typedef enum tb_mesh_axis_kind {
    TB_MESH_AXIS_NONE,     /* farther apart than the margin, or not facing each other */
    TB_MESH_AXIS_TRIANGLE, /* the triangle's face */
    TB_MESH_AXIS_FACE,     /* face `index` of the polytope */
    TB_MESH_AXIS_EDGES     /* edge `index` of the polytope and edge `other` of the triangle */
} tb_mesh_axis_kind;

typedef struct tb_mesh_axis {
    tb_mesh_axis_kind kind;
    tb_vec3 normal;
    tb_real separation;
    int32_t index, other;
    int32_t lowest;  /* lowest vertex of the polytope over the triangle's plane */
    bool behind;     /* the polytope's middle lies behind the triangle */
    bool faces_it;   /* the polytope is on the front of the triangle */
    int32_t reserve; /* another face of the polytope with nearly the same separation, or -1 */
    bool touching;   /* no axis separates the two by more than the margin */
} tb_mesh_axis;

/* Whether arcs of normals (a, b) of the mesh and (c, d) of the other shape, both as directions of
 * contact, cross on the unit sphere. */
TB_FN bool tb_mesh_arcs_cross(tb_vec3 a, tb_vec3 b, tb_vec3 c, tb_vec3 d)
{
    const tb_vec3 bxa = tb_v3_cross(b, a), dxc = tb_v3_cross(d, c);
    const tb_real cba = tb_v3_dot(c, bxa), dba = tb_v3_dot(d, bxa);
    const tb_real adc = tb_v3_dot(a, dxc), bdc = tb_v3_dot(b, dxc);
    return cba * dba < 0 && adc * bdc < 0 && cba * bdc > 0;
}

/* Whether the mesh has a summit along d under or over face f: at this corner of the triangle,
 * or, if the triangle is nearly level with the face, at a climb from it. The climb keeps the far
 * corners of a nearly level foot in contact: one triangle has the summit, but all of them share
 * its normal. */
TB_FN bool tb_mesh_summit_holds(const tb_mesh_view *view, const tb_mesh_triangle *t, int corner,
                                tb_vec3 d, const tb_polytope *s, int32_t f)
{
    enum { STEPS = 64 };
    int32_t triangle = t->index;
    int k = corner;
    if (!tb_mesh_climb(view, &triangle, &k, d)) return true;
    if (tb_v3_dot(d, t->normal) < TB_R(0.9)) return false;
    for (int step = 0; step < STEPS; step++) {
        const tb_vec3 x = tb_mesh_vertex(view, view->mesh->triangles[3 * triangle + k]);
        if (tb_v3_length2(tb_v3_sub(x, s->centre)) > s->reach * s->reach) return false;
        if (tb_mesh_climb(view, &triangle, &k, d)) continue;
        if (s->triangle) return true;
        const int32_t start = s->face_start[f], sides = s->face_start[f + 1] - start;
        for (int32_t i = 0; i < sides; i++) {
            const tb_vec3 a = s->vertices[s->face_vertices[start + i]];
            const tb_vec3 b = s->vertices[s->face_vertices[start + (i + 1 < sides ? i + 1 : 0)]];
            const tb_vec3 out = tb_v3_cross(tb_v3_sub(b, a), s->normals[f]);
            if (tb_v3_dot(out, tb_v3_sub(x, a)) > 0) return false;
        }
        return true;
    }
    return false;
}

/* The triangle's face as the axis: the polytope is in front of it, across it or behind it. False if
 * they are farther apart than the margin. noise: m, the length that rounding can make at this
 * size. */
TB_FN bool tb_mesh_try_triangle(const tb_mesh_triangle *t, const tb_polytope *s, tb_real margin,
                                tb_real noise, tb_mesh_axis *best)
{
    tb_real lowest = TB_REAL_MAX, highest = -TB_REAL_MAX;
    for (int32_t i = 0; i < s->number_of_vertices; i++) {
        const tb_real h = tb_v3_dot(t->normal, s->vertices[i]) - t->offset;
        if (h < lowest) lowest = h, best->lowest = i;
        highest = tb_max(highest, h);
    }
    best->behind = tb_v3_dot(t->normal, s->centre) - t->offset < 0;
    /* a solid behind the plane is inside or beyond a wall; a triangle there may be the
     * penetrating part */
    if (lowest > margin || (!s->triangle && highest < -noise)) return false;
    best->faces_it = s->triangle ? tb_v3_dot(s->triangle->normal, t->normal) < TB_R(-0.01) ||
                                       tb_mesh_vertex_holds(s->view, s->triangle->index,
                                                            best->lowest, tb_v3_negate(t->normal))
                                 : !best->behind;
    if (best->faces_it) {
        best->kind = TB_MESH_AXIS_TRIANGLE;
        best->separation = lowest;
    }
    return true;
}

/* The polytope's faces as axes, where the triangle's corner is a summit of the mesh. False as
 * above. */
TB_FN bool tb_mesh_try_faces(const tb_mesh_view *view, const tb_mesh_triangle *t,
                             const tb_polytope *s, tb_real margin, tb_real noise,
                             tb_mesh_axis *best)
{
    for (int32_t f = 0; f < s->number_of_faces; f++) {
        const tb_vec3 d = tb_v3_negate(s->normals[f]);
        tb_real separation = TB_REAL_MAX;
        int corner = 0;
        for (int k = 0; k < 3; k++) {
            const tb_real h = tb_v3_dot(s->normals[f], t->v[k]) - s->offsets[f];
            if (h < separation) separation = h, corner = k;
        }
        if (separation > margin) return false;
        if (tb_v3_dot(d, t->normal) < -TB_MESH_ANGLE) continue;
        if (tb_mesh_same_direction(d, t->normal) && best->kind == TB_MESH_AXIS_TRIANGLE) continue;
        const bool better =
            separation > best->separation + noise + TB_R(1e-6) * tb_abs(best->separation);
        /* Two nearly level triangles alone do not decide which face carries the contact; both
         * are recorded, and the comparison of all triangles decides. */
        const bool level = s->triangle && tb_v3_dot(d, t->normal) > TB_R(0.9);
        if (!(better || level) || !tb_mesh_summit_holds(view, t, corner, d, s, f)) continue;
        if (!better) {
            best->reserve = f;
            continue;
        }
        best->kind = TB_MESH_AXIS_FACE;
        best->separation = separation;
        best->normal = d;
        best->index = f;
    }
    return true;
}

/* Crossed edges of both as axes. False as above. */
TB_FN bool tb_mesh_try_edges(const tb_mesh_triangle *t, const tb_polytope *s, tb_real margin,
                             tb_real noise, tb_mesh_axis *best)
{
    for (int k = 0; k < 3; k++) {
        if (!t->open[k]) continue;
        const tb_vec3 edge = tb_v3_sub(t->v[(k + 1) % 3], t->v[k]);
        const tb_real edge2 = tb_v3_length2(edge);
        for (int32_t e = 0; e < s->number_of_edges; e++) {
            const tb_vec3 c = tb_v3_negate(s->edge_normals[2 * e]);
            const tb_vec3 d = tb_v3_negate(s->edge_normals[2 * e + 1]);
            if (!tb_mesh_arcs_cross(t->normal, t->other[k], c, d)) continue;
            const tb_vec3 from = s->vertices[s->edges[2 * e]];
            const tb_vec3 along = tb_v3_sub(s->vertices[s->edges[2 * e + 1]], from);
            tb_vec3 axis = tb_v3_cross(edge, along);
            const tb_real parallel2 = TB_COLLIDE_PARALLEL * TB_COLLIDE_PARALLEL * edge2;
            if (tb_v3_length2(axis) <= parallel2 * tb_v3_length2(along)) continue;
            axis = tb_v3_normalize(axis, t->normal);
            if (tb_v3_dot(axis, tb_v3_add(t->normal, t->other[k])) < 0) axis = tb_v3_negate(axis);
            const tb_real separation = tb_v3_dot(axis, tb_v3_sub(from, t->v[k]));
            if (separation > margin) return false;
            if (separation <= best->separation + noise + TB_R(1e-3) * tb_abs(best->separation))
                continue;
            best->kind = TB_MESH_AXIS_EDGES;
            best->separation = separation;
            best->normal = axis;
            best->index = e;
            best->other = k;
        }
    }
    return true;
}

/* The axis of least overlap of a triangle and a polytope, of kind NONE if they are farther apart
 * than the margin. */
TB_FN_LARGE tb_mesh_axis tb_mesh_find_axis(const tb_mesh_view *view, const tb_mesh_triangle *t,
                                           const tb_polytope *s, tb_real margin, tb_real noise)
{
    tb_mesh_axis best;
    best.kind = TB_MESH_AXIS_NONE;
    best.normal = t->normal;
    best.separation = -TB_REAL_MAX;
    best.index = best.other = 0;
    best.lowest = 0;
    best.reserve = -1;
    best.touching = best.faces_it = false;
    best.touching = tb_mesh_try_triangle(t, s, margin, noise, &best) &&
                    tb_mesh_try_faces(view, t, s, margin, noise, &best) &&
                    tb_mesh_try_edges(t, s, margin, noise, &best);
    if (!best.touching) best.kind = TB_MESH_AXIS_NONE;
    return best;
}

/* Points of the triangle's face against the facing polygon, segment or point of the shape. The
 * polygon is in `from` and is overwritten; `from` and `to` hold count + 3 corners. slope: unit
 * normal of the polygon's plane, or NULL. Returns the number of points written to `out`, which
 * holds count + 3. */
TB_FN_LARGE int32_t tb_mesh_points_on_triangle(const tb_mesh_triangle *t, tb_mesh_corner *from,
                                               int32_t count, const tb_vec3 *slope, tb_real margin,
                                               tb_real noise, tb_mesh_corner *to,
                                               tb_mesh_contact *out)
{
    /* change of the shape's height over the plane outward across each edge; the tolerance for
     * level slopes must be the same as elsewhere, or both normals would be dropped */
    bool deeper[3];
    for (int k = 0; k < 3; k++) {
        tb_real run = 1, rise = 0;
        if (slope) {
            run = -tb_v3_dot(*slope, t->normal);
            rise = tb_v3_dot(*slope, t->side[k]);
        } else if (count == 2) {
            const tb_vec3 u = tb_v3_sub(from[1].x, from[0].x);
            run = tb_v3_dot(u, t->side[k]);
            rise = tb_v3_dot(u, t->normal);
            if (run < 0) run = -run, rise = -rise;
        }
        deeper[k] = t->open[k] && rise < -8 * TB_MESH_ANGLE * run;
    }

    for (int k = 0; k < 3; k++) {
        count = tb_mesh_clip(from, count, t->side[k], tb_v3_dot(t->side[k], t->v[k]), noise, k, to);
        tb_mesh_corner *swap = from;
        from = to;
        to = swap;
    }
    int32_t n = 0;
    for (int32_t i = 0; i < count; i++) {
        const tb_real gap = tb_v3_dot(t->normal, from[i].x) - t->offset;
        if (gap > margin) continue;
        tb_mesh_contact *c = &out[n++];
        c->normal = t->normal;
        c->on_shape = from[i].x;
        c->on_mesh = tb_v3_add_scaled(from[i].x, t->normal, -gap);
        c->gap = gap;
        c->height = t->offset;
        c->triangle = t->index;
        c->feature = from[i].feature;
        c->code = (uint8_t)(from[i].cut < 0 ? TB_CODE_SHAPE_VERTEX : TB_CODE_SIDE + from[i].cut);
        c->of_face = true;
        c->cut = from[i].cut >= 0 && deeper[from[i].cut];
        c->witness = false;
        c->instead_of = -1;
    }
    return n;
}

/* The triangle against a flat face of the shape, given by its corners counter-clockwise from
 * outside, which is the reference. Buffers `from`, `to` and `out` hold sides + 3. */
TB_FN_LARGE int32_t tb_mesh_points_on_face(const tb_mesh_triangle *t, tb_vec3 normal,
                                           tb_real offset, const tb_vec3 *corners, int32_t sides,
                                           uint32_t face, tb_real margin, tb_real noise,
                                           tb_mesh_corner *from, tb_mesh_corner *to,
                                           tb_mesh_contact *out)
{
    for (int k = 0; k < 3; k++) {
        from[k].x = t->v[k];
        from[k].feature = (uint32_t)k;
        from[k].cut = -1;
    }
    int32_t count = 3;
    for (int32_t s = 0; s < sides && count > 0; s++) {
        const tb_vec3 a = corners[s], b = corners[s + 1 < sides ? s + 1 : 0];
        const tb_vec3 outward = tb_v3_normalize(tb_v3_cross(tb_v3_sub(b, a), normal), normal);
        count = tb_mesh_clip(from, count, outward, tb_v3_dot(outward, a), noise, s, to);
        tb_mesh_corner *swap = from;
        from = to;
        to = swap;
    }
    int32_t n = 0;
    for (int32_t i = 0; i < count; i++) {
        const tb_real gap = tb_v3_dot(normal, from[i].x) - offset;
        if (gap > margin) continue;
        tb_mesh_contact *c = &out[n++];
        c->normal = tb_v3_negate(normal);
        c->on_mesh = from[i].x;
        c->on_shape = tb_v3_add_scaled(from[i].x, normal, -gap);
        c->gap = gap;
        c->height = -offset;
        c->triangle = t->index;
        c->feature = from[i].cut < 0 ? face : (uint32_t)from[i].cut;
        c->code =
            (uint8_t)((from[i].cut < 0 ? TB_CODE_CORNER : TB_CODE_OUTLINE) + (int)from[i].feature);
        c->of_face = c->cut = c->witness = false;
        c->instead_of = -1;
    }
    return n;
}

/* The point of one edge of each; false if the lines cross outside the edges. */
TB_FN_LARGE bool tb_mesh_point_of_edges(const tb_mesh_triangle *t, const tb_polytope *s,
                                        const tb_mesh_axis *axis, tb_mesh_contact *c)
{
    const int k = axis->other;
    const tb_vec3 p = t->v[k], u = tb_v3_sub(t->v[(k + 1) % 3], p);
    const tb_vec3 q = s->vertices[s->edges[2 * axis->index]];
    const tb_vec3 v = tb_v3_sub(s->vertices[s->edges[2 * axis->index + 1]], q);
    tb_real at_u, at_v;
    if (!tb_mesh_edges_cross(p, u, q, v, &at_u, &at_v)) return false;
    c->normal = axis->normal;
    c->on_mesh = tb_v3_add_scaled(p, u, at_u);
    c->on_shape = tb_v3_add_scaled(q, v, at_v);
    c->gap = axis->separation;
    c->height = tb_v3_dot(axis->normal, c->on_mesh);
    c->triangle = t->index;
    c->feature = (uint32_t)axis->index;
    c->code = (uint8_t)(TB_CODE_EDGES + k);
    c->of_face = c->cut = c->witness = false;
    c->instead_of = -1;
    return true;
}

#endif
