/* One triangle of a mesh against one shape.
 *
 * Against boxes, hulls and triangles of other meshes the axes of mesh_pair.h give the touching
 * features, and clipping gives the points. Round shapes have no such axes: the nearest points of
 * GJK and EPA give the direction, and the shape's facing patch is clipped to the triangle. In
 * both cases a direction is valid only if the mesh can touch along it (mesh_view.h). */
#include "collide/mesh/mesh_internal.h"

/* sine below which a line of a shape lies along an edge */
#define LINE_PARALLEL TB_R(2e-3)

/* ---- nearest points ---- */

/* A triangle as a hull of no thickness, in the pair's coordinates. */
typedef struct flat_hull {
    tb_posed_shape shape;
    tb_hull hull;
    double vertices[9], planes[8];
} flat_hull;

TB_TABLE int32_t flat_start[3] = {0, 3, 6}, flat_corners[6] = {0, 1, 2, 0, 2, 1};

TB_STATIC void flat_hull_of(const tb_mesh_triangle *t, flat_hull *f)
{
    for (int k = 0; k < 3; k++) {
        tb_v3_store(&f->vertices[3 * k], t->v[k]);
        f->hull.centre[k] = 0;
    }
    for (int k = 0; k < 9; k++) f->hull.centre[k % 3] += f->vertices[k] / 3;
    tb_v3_store(&f->planes[0], t->normal);
    tb_v3_store(&f->planes[4], tb_v3_negate(t->normal));
    f->planes[3] = (double)t->offset;
    f->planes[7] = -(double)t->offset;
    f->hull.number_of_vertices = 3;
    f->hull.number_of_faces = 2;
    f->hull.number_of_edges = 0;
    f->hull.number_of_face_indices = 6;
    f->hull.vertices = f->vertices;
    f->hull.planes = f->planes;
    f->hull.face_start = flat_start;
    f->hull.face_vertices = flat_corners;
    f->hull.edges = NULL;
    f->hull.neighbour_start = NULL;
    f->hull.neighbours = NULL;
    f->hull.thickness = 0;
    f->hull.vertex_face_start = NULL;
    f->hull.vertex_faces = NULL;
    f->hull.climb_start = NULL;
    f->hull.climbs = NULL;
    f->hull.starts = NULL;
    f->hull.cells = 0;
    f->shape = TB_VALUE(tb_posed_shape){.type = TB_SHAPE_CONVEX, .hull = &f->hull};
    f->shape.pose = tb_pose_identity();
}

/* Whether the mesh can touch along d at point q of the triangle. */
TB_STATIC bool point_holds(const tb_mesh_job *j, const tb_mesh_triangle *t, tb_vec3 q, tb_vec3 d)
{
    if (tb_v3_dot(d, t->normal) < -TB_MESH_ANGLE) return false;
    const tb_real near = 64 * j->noise;
    for (int k = 0; k < 3; k++)
        if (tb_v3_length2(tb_v3_sub(q, t->v[k])) <= near * near)
            return tb_mesh_vertex_holds(&j->view, t->index, k, d);
    for (int k = 0; k < 3; k++)
        if (tb_v3_dot(t->side[k], tb_v3_sub(q, t->v[k])) > -near &&
            tb_mesh_edge_holds(&j->view, t, k, d))
            return true;
    return false;
}

/* Nearest points of the triangle and a convex core, by tb_closest_find: 0 if they are farther
 * apart than the margin; without `room`, overlapping cores give no more than that. */
TB_STATIC int nearest_point(const tb_mesh_job *j, const tb_mesh_triangle *t, tb_core *core,
                            tb_closest *c, tb_epa *room)
{
    flat_hull flat;
    flat_hull_of(t, &flat);
    tb_core triangle = tb_core_of(&flat.shape, tb_v3(0, 0, 0));
    return tb_closest_find(core, &triangle, j->margin + core->radius, c, room);
}

/* The same if the depth of the overlap matters; without room the job sets wants_room. */
TB_STATIC bool nearest_if_room(tb_mesh_job *j, const tb_mesh_triangle *t, tb_core *core,
                               tb_closest *c)
{
    const int found = nearest_point(j, t, core, c, j->room);
    if (found == TB_CLOSEST_NO_ROOM) j->wants_room = true;
    return found > 0;
}

TB_STATIC void add_nearest(tb_mesh_job *j, const tb_mesh_triangle *t, tb_vec3 on_mesh, tb_vec3 d,
                           tb_real gap, uint32_t feature)
{
    tb_mesh_contact *c = tb_mesh_points_reserve(&j->points, 1);
    if (!c) return;
    c->normal = d;
    c->on_mesh = on_mesh;
    c->on_shape = tb_v3_add_scaled(on_mesh, d, gap);
    c->gap = gap;
    c->height = tb_v3_dot(d, on_mesh);
    c->triangle = t->index;
    c->feature = feature;
    c->code = TB_CODE_NEAREST;
    c->of_face = c->cut = c->witness = false;
    c->instead_of = -1;
    j->points.count++;
}

/* ---- boxes, hulls and triangles ---- */

/* Points of the polytope's face towards the triangle, and of its lowest corner if that is not on
 * the face. */
TB_EXTERN void tb_mesh_polytope_on_triangle(tb_mesh_job *j, const tb_mesh_triangle *t,
                                            int32_t lowest)
{
    const tb_polytope *s = &j->polytope;
    int32_t face = 0;
    tb_real least = TB_REAL_MAX;
    for (int32_t f = 0; f < s->number_of_faces; f++) {
        const tb_real c = tb_v3_dot(s->normals[f], t->normal);
        if (c < least - TB_COLLIDE_FLAT) least = c, face = f;
    }
    const int32_t start = s->face_start[face], corners = s->face_start[face + 1] - start;
    bool has_lowest = false;
    for (int32_t i = 0; i < corners; i++) {
        const int32_t v = s->face_vertices[start + i];
        j->from[i].x = s->vertices[v];
        j->from[i].feature = (uint32_t)v;
        j->from[i].cut = -1;
        has_lowest = has_lowest || v == lowest;
    }
    tb_mesh_contact *out = tb_mesh_points_reserve(&j->points, corners + 4);
    if (!out) return;
    j->points.count += tb_mesh_points_on_triangle(t, j->from, corners, &s->normals[face], j->margin,
                                                  j->noise, j->to, out);
    if (has_lowest) return;
    j->from[0].x = s->vertices[lowest];
    j->from[0].feature = (uint32_t)lowest;
    j->from[0].cut = -1;
    out = tb_mesh_points_reserve(&j->points, 4);
    if (!out) return;
    j->points.count +=
        tb_mesh_points_on_triangle(t, j->from, 1, NULL, j->margin, j->noise, j->to, out);
}

/* The triangle on a face of the polytope. */
TB_STATIC void triangle_on_face(tb_mesh_job *j, const tb_mesh_triangle *t, int32_t face)
{
    const tb_polytope *s = &j->polytope;
    const int32_t start = s->face_start[face], sides = s->face_start[face + 1] - start;
    tb_vec3 *corners = TB_ARENA_ARRAY(j->points.arena, tb_vec3, sides);
    tb_mesh_contact *out = tb_mesh_points_reserve(&j->points, sides + 4);
    if (!corners || !out) {
        j->points.failed = true;
        return;
    }
    for (int32_t i = 0; i < sides; i++) corners[i] = s->vertices[s->face_vertices[start + i]];
    j->points.count +=
        tb_mesh_points_on_face(t, s->normals[face], s->offsets[face], corners, sides,
                               (uint32_t)face, j->margin, j->noise, j->from, j->to, out);
}

TB_EXTERN void tb_mesh_triangle_and_polytope(tb_mesh_job *j, const tb_mesh_triangle *t)
{
    const tb_polytope *s = &j->polytope;
    const tb_mesh_axis axis = tb_mesh_find_axis(&j->view, t, s, j->margin, j->noise);
    if (!axis.touching) return;
    /* A triangle has no solid behind it, so a depth beyond the margin is accepted only if
     * triangle and shape intersect. A real penetration has an intersecting triangle. */
    tb_closest c;
    flat_hull flat;
    tb_core triangle;
    tb_core *core = &j->core;
    if (s->triangle) {
        flat_hull_of(s->triangle, &flat);
        triangle = tb_core_of(&flat.shape, tb_v3(0, 0, 0));
        core = &triangle;
    } else {
        core->last = axis.lowest; /* resets the start of the search, so that the result does not
                                     depend on the previous triangle */
    }
    if (axis.separation < -j->margin && nearest_point(j, t, core, &c, NULL) == 0) return;
    j->behind = j->behind || axis.behind;
    const int32_t before = j->points.count;
    if (axis.kind == TB_MESH_AXIS_TRIANGLE) {
        tb_mesh_polytope_on_triangle(j, t, axis.lowest);
        const int32_t first = j->points.count;
        if (axis.reserve >= 0) triangle_on_face(j, t, axis.reserve);
        for (int32_t i = first; i < j->points.count && first > before; i++)
            j->points.items[i].instead_of = before;
    } else if (axis.kind == TB_MESH_AXIS_FACE) {
        triangle_on_face(j, t, axis.index);
    } else if (axis.kind == TB_MESH_AXIS_EDGES) {
        tb_mesh_contact *out = tb_mesh_points_reserve(&j->points, 1);
        if (!out) return;
        if (tb_mesh_point_of_edges(t, s, &axis, out)) j->points.count++;
    }
    tb_real least = TB_REAL_MAX;
    for (int32_t i = before; i < j->points.count; i++)
        least = tb_min(least, j->points.items[i].gap);
    if (axis.kind != TB_MESH_AXIS_TRIANGLE && axis.faces_it) {
        const int32_t first = j->points.count;
        tb_mesh_polytope_on_triangle(j, t, axis.lowest);
        /* unless the better axis has nearly the same normal and gives no points */
        const bool real = first == before && tb_v3_dot(axis.normal, t->normal) > TB_R(0.9);
        for (int32_t i = first; i < j->points.count; i++) j->points.items[i].witness = !real;
    }

    /* Apart, and no point has the gap of the planes: corners or edges are the nearest features. */
    if (least <= axis.separation + j->noise || !(t->open[0] || t->open[1] || t->open[2])) return;
    if (!nearest_if_room(j, t, core, &c) || c.degenerate || c.separation <= j->noise) return;
    const tb_vec3 d = tb_v3_negate(c.normal);
    if (!point_holds(j, t, c.on_b, d)) return;
    if (s->triangle) {
        /* the direction must be valid for the other mesh too */
        tb_mesh_job back = *j;
        back.view = *s->view;
        if (!point_holds(&back, s->triangle, c.on_a, c.normal)) return;
    }
    add_nearest(j, t, c.on_b, d, c.separation, tb_simplex_feature(&c.simplex, core, 0));
}

/* ---- round shapes ---- */

/* The patch of a round shape towards `out`, as corners for clipping; returns their number.
 * *flat: whether they bound a flat face, whose normal is in patch->normal. */
TB_STATIC int32_t corners_of_patch(tb_mesh_job *j, tb_vec3 out, tb_patch *patch, bool *flat)
{
    tb_patch_of(&j->core, out, patch);
    *flat = patch->kind == TB_PATCH_DISC || patch->kind == TB_PATCH_POLYGON;
    int32_t count = patch->count;
    if (patch->kind == TB_PATCH_DISC) {
        /* a polygon on the rim that begins at its extreme point */
        const tb_vec3 across = tb_v3_add_scaled(out, patch->normal, -tb_v3_dot(out, patch->normal));
        tb_vec3 u = patch->ax;
        if (tb_v3_length2(across) > TB_MESH_ANGLE * TB_MESH_ANGLE)
            u = tb_v3_normalize(across, patch->ax);
        const tb_vec3 v = tb_v3_cross(patch->normal, u);
        count = TB_MESH_DISC_CORNERS;
        for (int32_t k = 0; k < count; k++) {
            const tb_real a = TB_R(6.283185307179586) * TB_R(k) / TB_R(TB_MESH_DISC_CORNERS);
            const tb_vec3 r = tb_v3_add_scaled(tb_v3_scale(u, tb_cos(a)), v, tb_sin(a));
            j->from[k].x = tb_v3_add_scaled(patch->centre, r, patch->radius);
            j->from[k].feature = (patch->face & 1) * TB_MESH_DISC_CORNERS + (uint32_t)k;
            j->from[k].cut = -1;
        }
        return count;
    }
    for (int32_t k = 0; k < count; k++) {
        j->from[k].x = patch->p[k];
        j->from[k].feature = patch->id[k];
        j->from[k].cut = -1;
    }
    return count;
}

TB_EXTERN void tb_mesh_round_on_triangle(tb_mesh_job *j, const tb_mesh_triangle *t)
{
    tb_patch patch;
    bool flat;
    const int32_t count = corners_of_patch(j, tb_v3_negate(t->normal), &patch, &flat);
    tb_mesh_contact *out = tb_mesh_points_reserve(&j->points, count + 4);
    if (!out) return;
    j->points.count += tb_mesh_points_on_triangle(t, j->from, count, flat ? &patch.normal : NULL,
                                                  j->margin, j->noise, j->to, out);
}

/* A line of the shape along an edge of the triangle: the two ends of their common stretch. */
TB_STATIC bool add_line_on_edge(tb_mesh_job *j, const tb_mesh_triangle *t, const tb_patch *patch,
                                tb_vec3 d)
{
    const tb_vec3 along = tb_v3_sub(patch->p[1], patch->p[0]);
    const tb_real length = tb_v3_length(along);
    if (!(length > j->noise)) return false;
    const tb_vec3 u = tb_v3_scale(along, 1 / length);
    for (int k = 0; k < 3; k++) {
        const tb_vec3 a = t->v[k], b = t->v[(k + 1) % 3];
        const tb_vec3 edge = tb_v3_sub(b, a);
        if (!t->open[k] ||
            tb_v3_length(tb_v3_cross(u, edge)) > LINE_PARALLEL * tb_v3_length(edge) ||
            tb_abs(tb_v3_dot(d, edge)) > LINE_PARALLEL * tb_v3_length(edge) ||
            !tb_mesh_edge_holds(&j->view, t, k, d))
            continue;
        const tb_real ta = tb_v3_dot(u, tb_v3_sub(a, patch->p[0]));
        const tb_real tb = tb_v3_dot(u, tb_v3_sub(b, patch->p[0]));
        const tb_real low = tb_max(0, tb_min(ta, tb)), high = tb_min(length, tb_max(ta, tb));
        if (high - low <= 16 * j->noise) continue;
        for (uint32_t end = 0; end < 2; end++) {
            const tb_vec3 x = tb_v3_add_scaled(patch->p[0], u, end ? high : low);
            const tb_real gap = tb_v3_dot(d, tb_v3_sub(x, a));
            if (gap <= j->margin) add_nearest(j, t, tb_v3_add_scaled(x, d, -gap), d, gap, 8 + end);
        }
        return true;
    }
    return false;
}

TB_EXTERN void tb_mesh_triangle_and_round(tb_mesh_job *j, const tb_mesh_triangle *t)
{
    tb_closest c;
    const bool behind = tb_v3_dot(t->normal, j->centre) - t->offset < 0;
    if (!nearest_if_room(j, t, &j->core, &c)) return;
    if (c.degenerate) j->flags |= TB_CONTACT_DEGENERATE;
    j->behind = j->behind || behind;
    const tb_vec3 d = tb_v3_negate(c.normal);
    const bool apart = c.separation > j->noise && !c.degenerate;
    if (behind && !apart) return;
    if (tb_mesh_same_direction(d, t->normal) || !point_holds(j, t, c.on_b, d)) {
        if (!behind) tb_mesh_round_on_triangle(j, t);
        return;
    }

    tb_patch patch;
    bool flat;
    const int32_t corners = corners_of_patch(j, c.normal, &patch, &flat);
    if (flat && tb_mesh_same_direction(patch.normal, c.normal)) {
        /* a flat end of the shape on an edge or a corner of the mesh */
        tb_vec3 x[TB_MESH_DISC_CORNERS];
        for (int32_t k = 0; k < corners && k < TB_MESH_DISC_CORNERS; k++) x[k] = j->from[k].x;
        tb_mesh_contact *out = tb_mesh_points_reserve(&j->points, corners + 4);
        if (!out) return;
        j->points.count += tb_mesh_points_on_face(
            t, patch.normal, tb_v3_dot(patch.normal, patch.centre), x, corners, patch.face & 1,
            j->margin, j->noise, j->from, j->to, out);
        return;
    }
    if (patch.kind == TB_PATCH_SEGMENT && add_line_on_edge(j, t, &patch, d)) return;
    add_nearest(j, t, c.on_b, d, c.separation - j->core.radius, 0);
}
