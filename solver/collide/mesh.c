/* Triangle meshes and height fields against everything.
 *
 * A pair is looked at from the other shape's position, in world axes. The tree gives the triangles near it,
 * each triangle its points (mesh_pair.h for boxes, hulls and other meshes; the nearest points of GJK and EPA
 * for round shapes), and mesh_reduce.c makes manifolds of them. The surface is one-sided: what lies behind a
 * triangle is not pushed by it, so a thin wall pushes to the side that was touched. Only where the shape's
 * centre itself lies inside the mesh does the nearest piece of surface push it out. */
#include "collide/mesh_internal.h"

enum { DISC_CORNERS = 16 };

/* sine below which a line of a shape lies along an edge */
#define LINE_PARALLEL TB_R(2e-3)

/* One pair at work. */
typedef struct job {
    const tb_posed_shape *other; /* the shape that is not `view`'s mesh */
    tb_vec3 origin; /* m, world: that shape's position, or the mesh's against a plane */
    tb_mesh_view view;
    tb_core core; /* of `other`, unless it is a mesh */
    tb_vec3 centre;
    tb_polytope polytope; /* boxes and hulls; one triangle at a time of a mesh */
    bool polyhedral;
    tb_real margin, noise;
    double lower[3], upper[3]; /* box of `other` in the mesh's frame, with the margin */
    tb_mesh_corner *from, *to; /* clipping: room for the largest face and 8 */
    tb_mesh_points points;
    bool behind; /* some triangle has the centre behind it */
    uint32_t flags;
} job;

/* ---- setting up --------------------------------------------------------------------------------- */

static tb_mesh_view view_of(const tb_triangle_mesh *mesh, const tb_pose *pose, tb_vec3 origin)
{
    tb_mesh_view v;
    v.mesh = mesh;
    v.rotation = pose->rotation;
    const tb_vec3 o = tb_m33_tmul_v3(&pose->rotation, tb_v3_sub(origin, pose->position));
    v.origin[0] = (double)o.x;
    v.origin[1] = (double)o.y;
    v.origin[2] = (double)o.z;
    return v;
}

/* The box of a convex shape along the mesh's axes, by its extreme points. */
static void job_bounds(job *j)
{
    for (int axis = 0; axis < 3; axis++) {
        const tb_vec3 along = tb_m33_column(&j->view.rotation, axis);
        uint32_t id;
        const tb_vec3 top = tb_core_support(&j->core, along, &id);
        const tb_vec3 bottom = tb_core_support(&j->core, tb_v3_negate(along), &id);
        const tb_real grow = j->core.radius + j->margin;
        j->lower[axis] = j->view.origin[axis] + (double)(tb_v3_dot(bottom, along) - grow);
        j->upper[axis] = j->view.origin[axis] + (double)(tb_v3_dot(top, along) + grow);
    }
}

static bool job_buffers(job *j, int32_t largest_face)
{
    const size_t room = (size_t)(largest_face > DISC_CORNERS ? largest_face : DISC_CORNERS) + 8;
    j->from = TB_ARENA_ARRAY(j->points.arena, tb_mesh_corner, room);
    j->to = TB_ARENA_ARRAY(j->points.arena, tb_mesh_corner, room);
    return j->from && j->to;
}

/* corners of a box in the order of bits x, y, z; its faces counter-clockwise from outside */
static const int32_t box_face_start[7] = {0, 4, 8, 12, 16, 20, 24};
static const int32_t box_face_corners[24] = {0, 4, 6, 2, 1, 3, 7, 5, 0, 1, 5, 4,
                                             2, 6, 7, 3, 0, 2, 3, 1, 4, 5, 7, 6};

static bool polytope_of_box(job *j)
{
    tb_arena *arena = j->points.arena;
    tb_vec3 *vertices = TB_ARENA_ARRAY(arena, tb_vec3, 8);
    tb_vec3 *normals = TB_ARENA_ARRAY(arena, tb_vec3, 6);
    tb_real *offsets = TB_ARENA_ARRAY(arena, tb_real, 6);
    int32_t *edges = TB_ARENA_ARRAY(arena, int32_t, 24);
    tb_vec3 *edge_normals = TB_ARENA_ARRAY(arena, tb_vec3, 24);
    if (!vertices || !normals || !offsets || !edges || !edge_normals) return false;
    const tb_real h[3] = {j->core.size.x, j->core.size.y, j->core.size.z};
    for (int v = 0; v < 8; v++)
        vertices[v] =
            tb_m33_mul_v3(j->core.rotation,
                          tb_v3(v & 1 ? h[0] : -h[0], v & 2 ? h[1] : -h[1], v & 4 ? h[2] : -h[2]));
    for (int f = 0; f < 6; f++) {
        const tb_vec3 column = tb_m33_column(j->core.rotation, f / 2);
        normals[f] = f & 1 ? column : tb_v3_negate(column);
        offsets[f] = h[f / 2];
    }
    int32_t n = 0;
    for (int axis = 0; axis < 3; axis++)
        for (int v = 0; v < 8; v++) {
            if (v >> axis & 1) continue;
            const int b = (axis + 1) % 3, c = (axis + 2) % 3;
            edges[2 * n] = v;
            edges[2 * n + 1] = v | 1 << axis;
            edge_normals[2 * n] = normals[2 * b + (v >> b & 1)];
            edge_normals[2 * n + 1] = normals[2 * c + (v >> c & 1)];
            n++;
        }
    j->polytope = (tb_polytope){.number_of_vertices = 8,
                                .number_of_faces = 6,
                                .number_of_edges = 12,
                                .vertices = vertices,
                                .normals = normals,
                                .offsets = offsets,
                                .face_start = box_face_start,
                                .face_vertices = box_face_corners,
                                .edges = edges,
                                .edge_normals = edge_normals,
                                .centre = j->centre,
                                .reach = h[0] + h[1] + h[2]};
    return job_buffers(j, 4);
}

static bool polytope_of_hull(job *j)
{
    tb_arena *arena = j->points.arena;
    const tb_hull *hull = j->core.hull;
    tb_vec3 *vertices = TB_ARENA_ARRAY(arena, tb_vec3, hull->number_of_vertices);
    tb_vec3 *normals = TB_ARENA_ARRAY(arena, tb_vec3, hull->number_of_faces);
    tb_real *offsets = TB_ARENA_ARRAY(arena, tb_real, hull->number_of_faces);
    int32_t *edges = TB_ARENA_ARRAY(arena, int32_t, 2 * hull->number_of_edges);
    tb_vec3 *edge_normals = TB_ARENA_ARRAY(arena, tb_vec3, 2 * hull->number_of_edges);
    if (!vertices || !normals || !offsets || !edges || !edge_normals) return false;
    tb_real reach = 0;
    int32_t largest = 3;
    for (int32_t v = 0; v < hull->number_of_vertices; v++) {
        vertices[v] = tb_m33_mul_v3(j->core.rotation, tb_v3_load(&hull->vertices[3 * v]));
        reach = tb_max(reach, tb_v3_length(tb_v3_sub(vertices[v], j->centre)));
    }
    for (int32_t f = 0; f < hull->number_of_faces; f++) {
        normals[f] = tb_m33_mul_v3(j->core.rotation, tb_v3_load(&hull->planes[4 * f]));
        offsets[f] = TB_R(hull->planes[4 * f + 3]);
        if (hull->face_start[f + 1] - hull->face_start[f] > largest)
            largest = hull->face_start[f + 1] - hull->face_start[f];
    }
    for (int32_t e = 0; e < hull->number_of_edges; e++)
        for (int k = 0; k < 2; k++) {
            edges[2 * e + k] = hull->edges[4 * e + k];
            edge_normals[2 * e + k] = normals[hull->edges[4 * e + 2 + k]];
        }
    j->polytope = (tb_polytope){.number_of_vertices = hull->number_of_vertices,
                                .number_of_faces = hull->number_of_faces,
                                .number_of_edges = hull->number_of_edges,
                                .vertices = vertices,
                                .normals = normals,
                                .offsets = offsets,
                                .face_start = hull->face_start,
                                .face_vertices = hull->face_vertices,
                                .edges = edges,
                                .edge_normals = edge_normals,
                                .centre = j->centre,
                                .reach = reach};
    return job_buffers(j, largest);
}

/* ---- one triangle ------------------------------------------------------------------------------- */

/* A triangle as a hull of no thickness, in the pair's coordinates. */
typedef struct flat_hull {
    tb_posed_shape shape;
    tb_hull hull;
    double vertices[9], planes[8];
} flat_hull;

static const int32_t flat_start[3] = {0, 3, 6}, flat_corners[6] = {0, 1, 2, 0, 2, 1};

static void flat_hull_of(const tb_mesh_triangle *t, flat_hull *f)
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
    f->shape = (tb_posed_shape){.type = TB_SHAPE_CONVEX, .hull = &f->hull};
    f->shape.pose = tb_pose_identity();
}

/* Whether d is a direction in which the mesh can touch something at point q of the triangle. */
static bool point_holds(const job *j, const tb_mesh_triangle *t, tb_vec3 q, tb_vec3 d)
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

/* Nearest points of the triangle and a convex core; false if they are farther apart than the margin. */
static bool nearest_point(const job *j, const tb_mesh_triangle *t, tb_core *core, tb_closest *c)
{
    flat_hull flat;
    flat_hull_of(t, &flat);
    tb_core triangle = tb_core_of(&flat.shape, tb_v3(0, 0, 0));
    return tb_closest_find(core, &triangle, j->margin + core->radius, c);
}

static void add_nearest(job *j, const tb_mesh_triangle *t, tb_vec3 on_mesh, tb_vec3 d, tb_real gap,
                        uint32_t feature)
{
    tb_mesh_contact *c = tb_mesh_points_room(&j->points, 1);
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

/* The face of the polytope that looks at the triangle, and if its lowest corner is another, that too. */
static void polytope_on_triangle(job *j, const tb_mesh_triangle *t, int32_t lowest)
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
    tb_mesh_contact *out = tb_mesh_points_room(&j->points, corners + 4);
    if (!out) return;
    j->points.count += tb_mesh_points_on_triangle(t, j->from, corners, &s->normals[face], j->margin,
                                                  j->noise, j->to, out);
    if (has_lowest) return;
    j->from[0].x = s->vertices[lowest];
    j->from[0].feature = (uint32_t)lowest;
    j->from[0].cut = -1;
    out = tb_mesh_points_room(&j->points, 4);
    if (!out) return;
    j->points.count +=
        tb_mesh_points_on_triangle(t, j->from, 1, NULL, j->margin, j->noise, j->to, out);
}

/* The triangle on a face of the polytope. */
static void triangle_on_face(job *j, const tb_mesh_triangle *t, int32_t face)
{
    const tb_polytope *s = &j->polytope;
    const int32_t start = s->face_start[face], sides = s->face_start[face + 1] - start;
    tb_vec3 *corners = TB_ARENA_ARRAY(j->points.arena, tb_vec3, sides);
    tb_mesh_contact *out = tb_mesh_points_room(&j->points, sides + 4);
    if (!corners || !out) {
        j->points.failed = true;
        return;
    }
    for (int32_t i = 0; i < sides; i++) corners[i] = s->vertices[s->face_vertices[start + i]];
    j->points.count +=
        tb_mesh_points_on_face(t, s->normals[face], s->offsets[face], corners, sides,
                               (uint32_t)face, j->margin, j->noise, j->from, j->to, out);
}

static void triangle_and_polytope(job *j, const tb_mesh_triangle *t)
{
    const tb_polytope *s = &j->polytope;
    const tb_mesh_axis axis = tb_mesh_find_axis(&j->view, t, s, j->margin, j->noise);
    if (!axis.touching) return;
    /* A triangle knows nothing of the solid behind it: a depth beyond the margin is only believed where the
     * two really meet. Where it is real, some triangle does. */
    tb_closest c;
    flat_hull flat;
    tb_core triangle;
    tb_core *core = &j->core;
    if (s->triangle) {
        flat_hull_of(s->triangle, &flat);
        triangle = tb_core_of(&flat.shape, tb_v3(0, 0, 0));
        core = &triangle;
    }
    if (axis.separation < -j->margin && !nearest_point(j, t, core, &c)) return;
    j->behind = j->behind || axis.behind;
    const int32_t before = j->points.count;
    if (axis.kind == TB_MESH_AXIS_TRIANGLE) {
        polytope_on_triangle(j, t, axis.lowest);
        const int32_t first = j->points.count;
        if (axis.reserve >= 0) triangle_on_face(j, t, axis.reserve);
        for (int32_t i = first; i < j->points.count && first > before; i++)
            j->points.items[i].instead_of = before;
    } else if (axis.kind == TB_MESH_AXIS_FACE) {
        triangle_on_face(j, t, axis.index);
    } else if (axis.kind == TB_MESH_AXIS_EDGES) {
        tb_mesh_contact *out = tb_mesh_points_room(&j->points, 1);
        if (!out) return;
        if (tb_mesh_point_of_edges(t, s, &axis, out)) j->points.count++;
    }
    tb_real least = TB_REAL_MAX;
    for (int32_t i = before; i < j->points.count; i++)
        least = tb_min(least, j->points.items[i].gap);
    if (axis.kind != TB_MESH_AXIS_TRIANGLE && axis.faces_it) {
        const int32_t first = j->points.count;
        polytope_on_triangle(j, t, axis.lowest);
        /* unless the better axis has nearly the same normal and runs where nothing touches */
        const bool real = first == before && tb_v3_dot(axis.normal, t->normal) > TB_R(0.9);
        for (int32_t i = first; i < j->points.count; i++) j->points.items[i].witness = !real;
    }

    /* Apart, and no point has the gap that the planes have: corners or edges are nearest to each other. */
    if (least <= axis.separation + j->noise || !(t->open[0] || t->open[1] || t->open[2])) return;
    if (!nearest_point(j, t, core, &c) || c.degenerate || c.separation <= j->noise) return;
    const tb_vec3 d = tb_v3_negate(c.normal);
    if (!point_holds(j, t, c.on_b, d)) return;
    if (s->triangle) {
        /* the other mesh must hold the direction too */
        job back = *j;
        back.view = *s->view;
        if (!point_holds(&back, s->triangle, c.on_a, c.normal)) return;
    }
    add_nearest(j, t, c.on_b, d, c.separation, tb_simplex_feature(&c.simplex, core, 0));
}

/* What a round shape turns towards `out`, as corners for clipping; returns how many. *flat: whether they
 * bound a flat face, whose normal is in patch->normal. */
static int32_t corners_of_patch(job *j, tb_vec3 out, tb_patch *patch, bool *flat)
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
        count = DISC_CORNERS;
        for (int32_t k = 0; k < count; k++) {
            const tb_real a = TB_R(6.283185307179586) * TB_R(k) / TB_R(DISC_CORNERS);
            const tb_vec3 r = tb_v3_add_scaled(tb_v3_scale(u, tb_cos(a)), v, tb_sin(a));
            j->from[k].x = tb_v3_add_scaled(patch->centre, r, patch->radius);
            j->from[k].feature = (patch->face & 1) * DISC_CORNERS + (uint32_t)k;
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

static void round_on_triangle(job *j, const tb_mesh_triangle *t)
{
    tb_patch patch;
    bool flat;
    const int32_t count = corners_of_patch(j, tb_v3_negate(t->normal), &patch, &flat);
    tb_mesh_contact *out = tb_mesh_points_room(&j->points, count + 4);
    if (!out) return;
    j->points.count += tb_mesh_points_on_triangle(t, j->from, count, flat ? &patch.normal : NULL,
                                                  j->margin, j->noise, j->to, out);
}

/* A line of the shape along an edge of the triangle: the two ends of where they run beside each other. */
static bool add_line_on_edge(job *j, const tb_mesh_triangle *t, const tb_patch *patch, tb_vec3 d)
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

static void triangle_and_round(job *j, const tb_mesh_triangle *t)
{
    tb_closest c;
    const bool behind = tb_v3_dot(t->normal, j->centre) - t->offset < 0;
    if (!nearest_point(j, t, &j->core, &c)) return;
    if (c.degenerate) j->flags |= TB_CONTACT_DEGENERATE;
    j->behind = j->behind || behind;
    const tb_vec3 d = tb_v3_negate(c.normal);
    const bool apart = c.separation > j->noise && !c.degenerate;
    if (behind && !apart) return;
    if (tb_mesh_same_direction(d, t->normal) || !point_holds(j, t, c.on_b, d)) {
        if (!behind) round_on_triangle(j, t);
        return;
    }

    tb_patch patch;
    bool flat;
    const int32_t corners = corners_of_patch(j, c.normal, &patch, &flat);
    if (flat && tb_mesh_same_direction(patch.normal, c.normal)) {
        /* a flat end of the shape on an edge or a corner of the mesh */
        tb_vec3 x[DISC_CORNERS];
        for (int32_t k = 0; k < corners && k < DISC_CORNERS; k++) x[k] = j->from[k].x;
        tb_mesh_contact *out = tb_mesh_points_room(&j->points, corners + 4);
        if (!out) return;
        j->points.count += tb_mesh_points_on_face(
            t, patch.normal, tb_v3_dot(patch.normal, patch.centre), x, corners, patch.face & 1,
            j->margin, j->noise, j->from, j->to, out);
        return;
    }
    if (patch.kind == TB_PATCH_SEGMENT && add_line_on_edge(j, t, &patch, d)) return;
    add_nearest(j, t, c.on_b, d, c.separation - j->core.radius, 0);
}

/* ---- trees -------------------------------------------------------------------------------------- */

static bool boxes_apart(const double *lower_a, const double *upper_a, const double *lower_b,
                        const double *upper_b)
{
    for (int k = 0; k < 3; k++)
        if (lower_a[k] > upper_b[k] || upper_a[k] < lower_b[k]) return true;
    return false;
}

static void triangle_bounds(const tb_triangle_mesh *mesh, int32_t t, double lower[3],
                            double upper[3])
{
    const int32_t *v = &mesh->triangles[3 * t];
    for (int k = 0; k < 3; k++) {
        const double a = mesh->vertices[3 * v[0] + k], b = mesh->vertices[3 * v[1] + k];
        const double c = mesh->vertices[3 * v[2] + k];
        lower[k] = fmin(a, fmin(b, c));
        upper[k] = fmax(a, fmax(b, c));
    }
}

typedef void triangle_function(job *j, const tb_mesh_triangle *t);

/* Calls `function` for every triangle whose box meets that of the other shape. */
static void for_triangles(job *j, triangle_function *function)
{
    const tb_triangle_mesh *mesh = j->view.mesh;
    int32_t *stack = TB_ARENA_ARRAY(j->points.arena, int32_t, mesh->number_of_nodes + 1);
    if (!stack) {
        j->points.failed = true;
        return;
    }
    int32_t depth = 0;
    if (mesh->number_of_nodes > 0) stack[depth++] = 0;
    while (depth > 0 && !j->points.failed) {
        const int32_t i = stack[--depth];
        const tb_tree_node *node = &mesh->nodes[i];
        if (boxes_apart(node->lower, node->upper, j->lower, j->upper)) continue;
        if (node->right) {
            stack[depth++] = node->right;
            stack[depth++] = i + 1;
            continue;
        }
        for (int32_t k = 0; k < node->count; k++) {
            const int32_t t = mesh->tree_triangles[node->first + k];
            double lower[3], upper[3];
            triangle_bounds(mesh, t, lower, upper);
            if (boxes_apart(lower, upper, j->lower, j->upper)) continue;
            tb_mesh_triangle triangle;
            tb_mesh_triangle_load(&j->view, t, &triangle);
            function(j, &triangle);
        }
    }
}

/* ---- a centre inside the mesh --------------------------------------------------------------------- */

typedef struct nearest_triangle {
    tb_vec3 centre, point;
    tb_real distance, height; /* height: over the triangle's plane */
    tb_mesh_triangle triangle;
    bool found;
} nearest_triangle;

static void nearest_try(nearest_triangle *n, const tb_mesh_triangle *t, tb_real noise)
{
    tb_real w[3];
    const tb_vec3 toward =
        tb_nearest_triangle(tb_v3_sub(t->v[0], n->centre), tb_v3_sub(t->v[1], n->centre),
                            tb_v3_sub(t->v[2], n->centre), w);
    const tb_real distance = tb_v3_length(toward);
    const tb_real height = tb_v3_dot(t->normal, n->centre) - t->offset;
    /* where several share the nearest point, the one most across the way tells inside from outside */
    if (n->found && distance > n->distance + noise) return;
    if (n->found && distance > n->distance - noise && tb_abs(height) <= tb_abs(n->height)) return;
    n->found = true;
    n->distance = distance;
    n->height = height;
    n->point = tb_v3_add(n->centre, toward);
    n->triangle = *t;
}

/* The piece of surface nearest to the shape's centre, among all near the shape. */
static nearest_triangle nearest_of(job *j)
{
    nearest_triangle n;
    n.found = false;
    n.centre = j->centre;
    n.distance = n.height = 0;
    const tb_triangle_mesh *mesh = j->view.mesh;
    for (int32_t i = 0; i < mesh->number_of_nodes;) {
        const tb_tree_node *node = &mesh->nodes[i];
        /* depth first: a left child follows its parent, and a subtree is skipped by its leaves' boxes */
        if (node->right == 0 && !boxes_apart(node->lower, node->upper, j->lower, j->upper))
            for (int32_t k = 0; k < node->count; k++) {
                tb_mesh_triangle t;
                tb_mesh_triangle_load(&j->view, mesh->tree_triangles[node->first + k], &t);
                nearest_try(&n, &t, j->noise);
            }
        i++;
    }
    return n;
}

/* Pushes the shape out through the surface nearest to its centre, if that is inside. */
static void push_out(job *j)
{
    const nearest_triangle n = nearest_of(j);
    if (!n.found || n.height >= 0) return;

    const tb_mesh_triangle *t = &n.triangle;
    tb_vec3 d = tb_v3_normalize(tb_v3_sub(n.point, j->centre), t->normal);
    if (n.distance <= 16 * j->noise || tb_v3_dot(d, t->normal) > TB_R(0.99)) d = t->normal;
    j->points.count = 0;
    if (tb_mesh_same_direction(d, t->normal)) {
        if (j->polyhedral) {
            int32_t lowest = 0;
            for (int32_t v = 1; v < j->polytope.number_of_vertices; v++)
                if (tb_v3_dot(d, j->polytope.vertices[v]) <
                    tb_v3_dot(d, j->polytope.vertices[lowest]))
                    lowest = v;
            polytope_on_triangle(j, t, lowest);
        } else {
            round_on_triangle(j, t);
        }
        for (int32_t i = 0; i < j->points.count; i++) j->points.items[i].cut = false;
        if (j->points.count > 0) return;
    }
    tb_mesh_contact *c = tb_mesh_points_room(&j->points, 1);
    if (!c) return;
    uint32_t id;
    const tb_vec3 lowest =
        tb_v3_add_scaled(tb_core_support(&j->core, tb_v3_negate(d), &id), d, -j->core.radius);
    c->normal = d;
    c->on_shape = lowest;
    c->gap = tb_v3_dot(d, tb_v3_sub(lowest, n.point));
    c->on_mesh = tb_v3_add_scaled(lowest, d, -c->gap);
    c->height = tb_v3_dot(d, n.point);
    c->triangle = t->index;
    c->feature = id;
    c->code = TB_CODE_INSIDE;
    c->of_face = c->cut = c->witness = false;
    c->instead_of = -1;
    j->points.count++;
}

/* ---- kinds of pairs ------------------------------------------------------------------------------ */

static void collide_convex(job *j)
{
    for_triangles(j, j->polyhedral ? triangle_and_polytope : triangle_and_round);
    if (j->behind && !j->points.failed) push_out(j);
}

/* Corners of the mesh near or below a plane. */
static void collide_plane(job *j)
{
    const tb_triangle_mesh *mesh = j->view.mesh;
    const tb_vec3 up = tb_m33_column(&j->other->pose.rotation, 2);
    const tb_vec3 local = tb_m33_tmul_v3(&j->view.rotation, up);
    const tb_real offset = tb_v3_dot(up, j->centre);
    for (int32_t i = 0; i < mesh->number_of_nodes; i++) {
        const tb_tree_node *node = &mesh->nodes[i];
        if (node->right) continue;
        tb_real lowest = -offset;
        for (int k = 0; k < 3; k++) {
            const tb_real s = tb_v3_at(local, k);
            lowest += s * TB_R((s > 0 ? node->lower[k] : node->upper[k]) - j->view.origin[k]);
        }
        if (lowest > j->margin + j->noise) continue;
        for (int32_t k = 0; k < 3 * node->count; k++) {
            const int32_t t = mesh->tree_triangles[node->first + k / 3];
            const int32_t v = mesh->triangles[3 * t + k % 3];
            const tb_vec3 x = tb_mesh_vertex(&j->view, v);
            const tb_real gap = tb_v3_dot(up, x) - offset;
            if (gap > j->margin) continue;
            tb_mesh_contact *c = tb_mesh_points_room(&j->points, 1);
            if (!c) return;
            c->normal = tb_v3_negate(up);
            c->on_mesh = x;
            c->on_shape = tb_v3_add_scaled(x, up, -gap);
            c->gap = gap;
            c->height = 0;
            c->triangle = v; /* a corner of a mesh on a plane is named by itself */
            c->feature = 0;
            c->code = TB_CODE_CORNER;
            c->of_face = c->cut = c->witness = false;
            c->instead_of = -1;
            j->points.count++;
        }
    }
}

/* Two nodes that may meet. */
typedef struct node_pair {
    int32_t a, b;
} node_pair;

/* Box of a box of mesh B in mesh A's frame. */
static void carry_box(const tb_mat33 *rotation, const double shift[3], const double *lower,
                      const double *upper, double grow, double out_lower[3], double out_upper[3])
{
    for (int r = 0; r < 3; r++) {
        double centre = shift[r], half = grow;
        for (int c = 0; c < 3; c++) {
            const double m = (double)rotation->m[3 * r + c];
            centre += m * (lower[c] + upper[c]) / 2;
            half += fabs(m) * (upper[c] - lower[c]) / 2;
        }
        out_lower[r] = centre - half;
        out_upper[r] = centre + half;
    }
}

/* The triangle of another mesh as a polytope with one face. */
typedef struct triangle_polytope {
    tb_mesh_triangle triangle;
    int32_t edges[6];
    tb_vec3 edge_normals[6];
} triangle_polytope;

static void polytope_of_triangle(job *j, triangle_polytope *p, const tb_mesh_view *view,
                                 int32_t index)
{
    tb_mesh_triangle_load(view, index, &p->triangle);
    int32_t n = 0;
    for (int32_t k = 0; k < 3; k++) {
        if (!p->triangle.open[k]) continue;
        p->edges[2 * n] = k;
        p->edges[2 * n + 1] = (k + 1) % 3;
        p->edge_normals[2 * n] = p->triangle.normal;
        p->edge_normals[2 * n + 1] = p->triangle.other[k];
        n++;
    }
    const tb_triangle_mesh *mesh = view->mesh;
    double size = 0, middle[3];
    for (int k = 0; k < 3; k++) {
        middle[k] = (mesh->lower[k] + mesh->upper[k]) / 2 - view->origin[k];
        size += mesh->upper[k] - mesh->lower[k];
    }
    j->polytope = (tb_polytope){.number_of_vertices = 3,
                                .number_of_faces = 1,
                                .number_of_edges = n,
                                .vertices = p->triangle.v,
                                .normals = &p->triangle.normal,
                                .offsets = &p->triangle.offset,
                                .face_start = flat_start,
                                .face_vertices = flat_corners,
                                .edges = p->edges,
                                .edge_normals = p->edge_normals,
                                .centre = tb_m33_mul_v3(&view->rotation, tb_v3_load(middle)),
                                .reach = TB_R(size / 2),
                                .view = view,
                                .triangle = &p->triangle};
}

static void collide_leaves(job *j, const tb_mesh_view *view, const tb_tree_node *a,
                           const tb_tree_node *b, const tb_mat33 *rotation, const double shift[3])
{
    const tb_triangle_mesh *mesh_a = j->view.mesh, *mesh_b = view->mesh;
    for (int32_t q = 0; q < b->count && !j->points.failed; q++) {
        const int32_t tb = mesh_b->tree_triangles[b->first + q];
        double lower[3], upper[3];
        triangle_bounds(mesh_b, tb, lower, upper);
        carry_box(rotation, shift, lower, upper, (double)j->margin, j->lower, j->upper);
        if (boxes_apart(a->lower, a->upper, j->lower, j->upper)) continue;
        triangle_polytope p;
        polytope_of_triangle(j, &p, view, tb);
        for (int32_t k = 0; k < a->count; k++) {
            const int32_t ta = mesh_a->tree_triangles[a->first + k];
            triangle_bounds(mesh_a, ta, lower, upper);
            if (boxes_apart(lower, upper, j->lower, j->upper)) continue;
            tb_mesh_triangle t;
            tb_mesh_triangle_load(&j->view, ta, &t);
            const int32_t before = j->points.count;
            triangle_and_polytope(j, &t);
            /* the other mesh's triangle goes into the name, four corners to a triangle */
            for (int32_t i = before; i < j->points.count; i++)
                j->points.items[i].feature = ((uint32_t)tb << 2) | (j->points.items[i].feature & 3);
        }
    }
}

/* Both trees at once, the larger box first. */
static void collide_meshes(job *j, const tb_mesh_view *view)
{
    const tb_triangle_mesh *a = j->view.mesh, *b = view->mesh;
    const tb_mat33 back = tb_m33_transpose(&j->view.rotation);
    const tb_mat33 rotation = tb_m33_mul(&back, &view->rotation);
    double shift[3];
    for (int k = 0; k < 3; k++) {
        shift[k] = j->view.origin[k];
        for (int c = 0; c < 3; c++) shift[k] -= (double)rotation.m[3 * k + c] * view->origin[c];
    }
    int32_t capacity = 256, depth = 0;
    node_pair *stack = TB_ARENA_ARRAY(j->points.arena, node_pair, capacity);
    if (!stack || a->number_of_nodes == 0 || b->number_of_nodes == 0) {
        j->points.failed = !stack;
        return;
    }
    stack[depth++] = (node_pair){0, 0};
    while (depth > 0 && !j->points.failed) {
        const node_pair p = stack[--depth];
        const tb_tree_node *na = &a->nodes[p.a], *nb = &b->nodes[p.b];
        double lower[3], upper[3];
        carry_box(&rotation, shift, nb->lower, nb->upper, (double)j->margin, lower, upper);
        if (boxes_apart(na->lower, na->upper, lower, upper)) continue;
        if (!na->right && !nb->right) {
            collide_leaves(j, view, na, nb, &rotation, shift);
            continue;
        }
        if (depth + 2 > capacity) {
            node_pair *grown = TB_ARENA_ARRAY(j->points.arena, node_pair, 2 * capacity);
            if (!grown) {
                j->points.failed = true;
                return;
            }
            for (int32_t i = 0; i < depth; i++) grown[i] = stack[i];
            stack = grown;
            capacity *= 2;
        }
        double size_a = 0, size_b = 0;
        for (int k = 0; k < 3; k++) {
            size_a += na->upper[k] - na->lower[k];
            size_b += nb->upper[k] - nb->lower[k];
        }
        if (na->right && (!nb->right || size_a >= size_b)) {
            stack[depth++] = (node_pair){na->right, p.b};
            stack[depth++] = (node_pair){p.a + 1, p.b};
        } else {
            stack[depth++] = (node_pair){p.a, nb->right};
            stack[depth++] = (node_pair){p.a, p.b + 1};
        }
    }
}

/* ---- the pair ------------------------------------------------------------------------------------ */

static bool mesh_like(const tb_posed_shape *s)
{
    return s->type == TB_SHAPE_MESH || s->type == TB_SHAPE_HEIGHT_FIELD;
}

/* The mesh of a shape; of a height field the part inside a box of its frame. */
static const tb_triangle_mesh *mesh_of(const tb_posed_shape *s, const double lower[3],
                                       const double upper[3], tb_arena *arena,
                                       tb_triangle_mesh *part, const int32_t **names)
{
    if (s->type == TB_SHAPE_MESH) return s->mesh;
    return tb_field_part(s->field, lower, upper, arena, part, names) ? part : NULL;
}

/* The box of a mesh or a whole height field. */
static void bounds_of(const tb_posed_shape *s, double lower[3], double upper[3])
{
    for (int k = 0; k < 3; k++) {
        if (s->type == TB_SHAPE_MESH) {
            lower[k] = s->mesh->lower[k];
            upper[k] = s->mesh->upper[k];
        } else {
            const double half = k == 0 ? s->field->half_x : s->field->half_y;
            lower[k] = k < 2 ? -half : -s->field->base;
            upper[k] = k < 2 ? half : s->field->highest;
        }
    }
}

/* The box of mesh-like b in the frame of a, with the margin. */
static void bounds_in(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                      double lower[3], double upper[3])
{
    double box_lower[3], box_upper[3];
    bounds_of(b, box_lower, box_upper);
    const tb_pose relative = tb_pose_relative(&a->pose, &b->pose);
    double shift[3];
    tb_v3_store(shift, relative.position);
    carry_box(&relative.rotation, shift, box_lower, box_upper, (double)margin, lower, upper);
}

/* Length below which rounding hides differences: of both sizes and of how far they lie from their frames'
 * origins. */
static tb_real noise_of(const job *j)
{
    double size = 0;
    for (int k = 0; k < 3; k++) size = fmax(size, j->upper[k] - j->lower[k]);
    const tb_vec3 p = j->origin;
    const double far = fmax(fabs((double)p.x), fmax(fabs((double)p.y), fabs((double)p.z)));
    return TB_R(size) * TB_MESH_LENGTH + TB_R(far) * TB_REAL_EPSILON * 4;
}

static int32_t write_points(const job *j, const int32_t *names, bool flip, tb_contact_point *points,
                            int32_t capacity)
{
    for (int32_t i = 0; i < j->points.count && i < capacity; i++) {
        const tb_mesh_contact *c = &j->points.items[i];
        tb_contact_point *p = &points[i];
        const tb_vec3 on_mesh = tb_v3_add(c->on_mesh, j->origin);
        p->normal = flip ? tb_v3_negate(c->normal) : c->normal;
        p->gap = c->gap;
        if (flip) {
            p->point_b = on_mesh;
            p->point_a = tb_v3_add_scaled(on_mesh, c->normal, c->gap);
        } else {
            p->point_a = on_mesh;
            p->point_b = tb_v3_add_scaled(on_mesh, c->normal, c->gap);
        }
        const uint32_t triangle = (uint32_t)(names ? names[c->triangle] : c->triangle);
        p->feature = (uint64_t)triangle << 36 | (uint64_t)(c->feature & 0xFFFFFFF) << 8 | c->code;
    }
    return j->points.count;
}

int32_t tb_collide_mesh(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                        tb_contact_point *points, int32_t capacity, tb_arena *scratch,
                        uint32_t *flags)
{
    const tb_arena_mark mark = tb_arena_get_mark(scratch);
    const bool flip = !mesh_like(a);
    const tb_posed_shape *shape = flip ? b : a;
    job j = {.other = flip ? a : b, .margin = margin};
    j.points.arena = scratch;
    const tb_vec3 origin = (j.other->type == TB_SHAPE_PLANE ? shape : j.other)->pose.position;
    j.origin = origin;
    tb_triangle_mesh part_a, part_b;
    tb_mesh_view other_view;
    tb_mesh_pair pair = {.view = &j.view};
    const int32_t *names = NULL;
    int32_t count = -1;

    if (j.other->type == TB_SHAPE_PLANE) {
        double lower[3], upper[3];
        bounds_of(shape, lower, upper);
        const tb_triangle_mesh *mesh = mesh_of(shape, lower, upper, scratch, &part_a, &names);
        if (!mesh) goto done;
        j.view = view_of(mesh, &shape->pose, origin);
        for (int k = 0; k < 3; k++) j.lower[k] = lower[k], j.upper[k] = upper[k];
        j.noise = noise_of(&j);
        j.centre = tb_v3_sub(j.other->pose.position, origin);
        names = NULL;
        collide_plane(&j);
    } else if (mesh_like(j.other)) {
        double lower[3], upper[3];
        bounds_in(shape, j.other, margin, j.lower, j.upper);
        bounds_in(j.other, shape, margin, lower, upper);
        const int32_t *names_b = NULL;
        const tb_triangle_mesh *mesh = mesh_of(shape, j.lower, j.upper, scratch, &part_a, &names);
        const tb_triangle_mesh *mesh_b = mesh_of(j.other, lower, upper, scratch, &part_b, &names_b);
        if (!mesh || !mesh_b) goto done;
        j.view = view_of(mesh, &shape->pose, origin);
        other_view = view_of(mesh_b, &j.other->pose, origin);
        pair.other = &other_view;
        j.noise = noise_of(&j);
        j.polyhedral = true;
        if (!job_buffers(&j, 3)) goto done;
        collide_meshes(&j, &other_view);
    } else {
        j.core = tb_core_of(j.other, origin);
        j.centre = j.core.inside;
        j.view = view_of(NULL, &shape->pose, origin);
        job_bounds(&j);
        j.noise = noise_of(&j);
        const tb_triangle_mesh *mesh = mesh_of(shape, j.lower, j.upper, scratch, &part_a, &names);
        if (!mesh) goto done;
        j.view.mesh = mesh;
        j.polyhedral = j.other->type == TB_SHAPE_BOX ||
                       (j.other->type == TB_SHAPE_CONVEX && j.core.hull->number_of_faces > 0);
        const bool room = !j.polyhedral                   ? job_buffers(&j, DISC_CORNERS)
                          : j.other->type == TB_SHAPE_BOX ? polytope_of_box(&j)
                                                          : polytope_of_hull(&j);
        if (!room) goto done;
        if (j.polyhedral) pair.solid = &j.polytope;
        collide_convex(&j);
    }
    if (tb_mesh_reduce(&j.points, &pair, j.noise) < 0) goto done;
    *flags |= j.flags;
    count = write_points(&j, names, flip, points, capacity);
done:
    tb_arena_return_to(scratch, mark);
    return count;
}
