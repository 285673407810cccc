/* Constructive solid geometry: see csg_solid.h. */
#include "model/import/mesh/csg_solid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"

/* Corners within this share of the size of a plane are on it; equal ones are one. */
#define ON_PLANE 1e-9

enum { MOST_CORNERS = 1 << 24, MOST_DEEP = 1000 };

/* A tree: children by index, -1: none. */
typedef struct node {
    int32_t plane, front, back;
    bool flipped;
} node;

typedef struct tree {
    node *nodes;
    int32_t count, capacity;
} tree;

void tb_csg_pool_free(tb_csg_pool *p)
{
    free(p->vertices);
    free(p->planes);
    free(p->corners);
    free(p->crossings);
    memset(p, 0, sizeof *p);
}

void tb_csg_solid_free(tb_csg_solid *solid)
{
    free(solid->polygons);
    memset(solid, 0, sizeof *solid);
}

static bool broken(const tb_csg_pool *p)
{
    return p->no_memory || p->too_large || p->too_far || !tb_budget_holds();
}

/* ---- vertices, planes, polygons ---- */

int32_t tb_csg_vertex(tb_csg_pool *p, double x, double y, double z)
{
    double *grown =
        tb_grow(p->vertices, p->number_of_vertices + 1, &p->vertex_capacity, 3 * sizeof *grown);
    const bool is_near = fabs(x) <= TB_MESH_COORDINATE_LIMIT &&
                         fabs(y) <= TB_MESH_COORDINATE_LIMIT && fabs(z) <= TB_MESH_COORDINATE_LIMIT;
    p->too_far = p->too_far || !is_near;
    if (grown == NULL || !is_near || p->number_of_vertices >= TB_MESH_FILE_LIMIT) {
        p->no_memory = p->no_memory || grown == NULL;
        p->too_large = p->too_large || (grown != NULL && is_near);
        if (grown != NULL) p->vertices = grown;
        return 0;
    }
    p->vertices = grown;
    grown += 3 * (size_t)p->number_of_vertices;
    grown[0] = x + 0.0, grown[1] = y + 0.0, grown[2] = z + 0.0;
    p->size = fmax(p->size, fmax(fabs(x), fmax(fabs(y), fabs(z))));
    return p->number_of_vertices++;
}

static tb_vec3 vertex(const tb_csg_pool *p, int32_t v)
{
    return tb_v3_load(p->vertices + 3 * (size_t)v);
}

/* Distance from a plane, m; rounded to 0 on the plane. */
static double side(const tb_csg_pool *p, int32_t plane, bool flipped, int32_t v)
{
    const double *n = p->planes + 4 * (size_t)plane, *x = p->vertices + 3 * (size_t)v;
    const double d = n[0] * x[0] + n[1] * x[1] + n[2] * x[2] - n[3];
    if (fabs(d) <= ON_PLANE * p->size) return 0;
    return flipped ? -d : d;
}

static int32_t add_plane(tb_csg_pool *p, tb_vec3 n, double w)
{
    double *grown =
        tb_grow(p->planes, p->number_of_planes + 1, &p->plane_capacity, 4 * sizeof *grown);
    if (grown == NULL) {
        p->no_memory = true;
        return 0;
    }
    p->planes = grown;
    grown += 4 * (size_t)p->number_of_planes;
    grown[0] = n.x, grown[1] = n.y, grown[2] = n.z, grown[3] = w;
    return p->number_of_planes++;
}

/* Room for corners behind the last one; false if it is refused. */
static bool corner_room(tb_csg_pool *p, int32_t count)
{
    if (p->number_of_corners + count > MOST_CORNERS) {
        p->too_large = true;
        return false;
    }
    int32_t *grown =
        tb_grow(p->corners, p->number_of_corners + count, &p->corner_capacity, sizeof *grown);
    if (grown != NULL) p->corners = grown;
    p->no_memory = p->no_memory || grown == NULL;
    return grown != NULL;
}

static void add_polygon(tb_csg_pool *p, tb_csg_solid *solid, const tb_csg_polygon *polygon)
{
    tb_csg_polygon *grown =
        tb_grow(solid->polygons, solid->count + 1, &solid->capacity, sizeof *grown);
    if (grown == NULL) {
        p->no_memory = true;
        return;
    }
    solid->polygons = grown;
    solid->polygons[solid->count++] = *polygon;
}

/* A polygon of corners that the pool already has at its end. */
static void close_polygon(tb_csg_pool *p, tb_csg_solid *solid, int32_t count, int32_t plane,
                          bool flipped)
{
    const tb_csg_polygon polygon = {p->number_of_corners, count, plane, flipped};
    p->number_of_corners += count;
    add_polygon(p, solid, &polygon);
}

/* Whether a face is flat and turns left at every corner. */
static bool is_convex(const tb_csg_pool *p, const int32_t *v, int32_t count, tb_vec3 n, double w)
{
    for (int32_t i = 0; i < count; i++) {
        const tb_vec3 a = vertex(p, v[i]), b = vertex(p, v[(i + 1) % count]),
                      c = vertex(p, v[(i + 2) % count]);
        const tb_vec3 turn = tb_v3_cross(tb_v3_sub(b, a), tb_v3_sub(c, b));
        const double scale = tb_v3_length(tb_v3_sub(b, a)) * tb_v3_length(tb_v3_sub(c, b));
        if (tb_v3_dot(turn, n) < -1e-12 * scale) return false;
        if (fabs(tb_v3_dot(n, a) - w) > ON_PLANE * p->size) return false;
    }
    return true;
}

static void add_face(tb_csg_pool *p, tb_csg_solid *solid, const int32_t *v, int32_t count,
                     bool whole)
{
    const tb_vec3 origin = vertex(p, v[0]);
    tb_vec3 normal = tb_v3(0, 0, 0);
    for (int32_t i = 1; i + 1 < count; i++)
        normal = tb_v3_add(normal, tb_v3_cross(tb_v3_sub(vertex(p, v[i]), origin),
                                               tb_v3_sub(vertex(p, v[i + 1]), origin)));
    const double area = tb_v3_length(normal);
    if (!(area > 0)) return;
    const tb_vec3 n = tb_v3_scale(normal, 1 / area);
    const double w = tb_v3_dot(n, origin);
    if (whole && !is_convex(p, v, count, n, w)) {
        int32_t *triangles = malloc(3 * (size_t)count * sizeof *triangles);
        if (triangles == NULL || tb_polygon_triangulate(p->vertices, v, count, triangles) != TB_OK)
            p->no_memory = true;
        for (int32_t i = 0; i < count - 2 && !p->no_memory; i++)
            add_face(p, solid, triangles + 3 * i, 3, false);
        free(triangles);
        return;
    }
    const int32_t plane = add_plane(p, n, w);
    if (!corner_room(p, count)) return;
    memcpy(p->corners + p->number_of_corners, v, (size_t)count * sizeof *v);
    close_polygon(p, solid, count, plane, false);
}

void tb_csg_face(tb_csg_pool *p, tb_csg_solid *solid, const int32_t *v, int32_t count)
{
    add_face(p, solid, v, count, count > 3);
}

/* ---- splits ---- */

static uint32_t slot_of(const tb_csg_pool *p, int32_t a, int32_t b, int32_t plane)
{
    uint64_t h = ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) * 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 29 ^ (uint64_t)(uint32_t)plane) * 0xD6E8FEB86659FD93u;
    return (uint32_t)(h >> 32) & (uint32_t)(p->crossing_slots - 1);
}

static bool grow_crossings(tb_csg_pool *p)
{
    const int32_t old = p->crossing_slots;
    tb_csg_crossing *before = p->crossings;
    p->crossing_slots = old == 0 ? 256 : 2 * old;
    p->crossings = malloc((size_t)p->crossing_slots * sizeof *p->crossings);
    if (p->crossings == NULL) {
        p->crossings = before;
        p->crossing_slots = old;
        return false;
    }
    for (int32_t i = 0; i < p->crossing_slots; i++) p->crossings[i].a = -1;
    for (int32_t i = 0; i < old; i++) {
        if (before[i].a < 0) continue;
        uint32_t at = slot_of(p, before[i].a, before[i].b, before[i].plane);
        while (p->crossings[at].a >= 0) at = (at + 1) & (uint32_t)(p->crossing_slots - 1);
        p->crossings[at] = before[i];
    }
    free(before);
    return true;
}

/* The vertex where a plane cuts an edge: the same one for both polygons of the edge. */
static int32_t cross(tb_csg_pool *p, int32_t a, int32_t b, double da, double db, int32_t plane)
{
    if (a > b) {
        const int32_t v = a;
        const double d = da;
        a = b, b = v, da = db, db = d;
    }
    if (2 * (p->number_of_crossings + 1) > p->crossing_slots && !grow_crossings(p)) {
        p->no_memory = true;
        return 0;
    }
    uint32_t at = slot_of(p, a, b, plane);
    for (; p->crossings[at].a >= 0; at = (at + 1) & (uint32_t)(p->crossing_slots - 1))
        if (p->crossings[at].a == a && p->crossings[at].b == b && p->crossings[at].plane == plane)
            return p->crossings[at].vertex;
    const tb_vec3 x = tb_v3_lerp(vertex(p, a), vertex(p, b), da / (da - db));
    const int32_t v = tb_csg_vertex(p, x.x, x.y, x.z);
    p->crossings[at] = (tb_csg_crossing){a, b, plane, v};
    p->number_of_crossings++;
    return v;
}

/* Sorts a polygon at a plane: to `front`, to `back`, to both in parts, or to `same` or `opposite`. */
static void sort_polygon(tb_csg_pool *p, const tb_csg_polygon *polygon, int32_t plane, bool flipped,
                         tb_csg_solid *same, tb_csg_solid *opposite, tb_csg_solid *front,
                         tb_csg_solid *back)
{
    bool any_front = false, any_back = false;
    for (int32_t i = 0; i < polygon->count && polygon->plane != plane; i++) {
        const double d = side(p, plane, flipped, p->corners[polygon->corner + i]);
        any_front = any_front || d > 0;
        any_back = any_back || d < 0;
    }
    if (!any_front && !any_back) {
        const double *a = p->planes + 4 * (size_t)polygon->plane,
                     *b = p->planes + 4 * (size_t)plane;
        const bool agree =
            (a[0] * b[0] + a[1] * b[1] + a[2] * b[2] > 0) == (polygon->flipped == flipped);
        add_polygon(p, agree ? same : opposite, polygon);
        return;
    }
    if (!any_back || !any_front) {
        add_polygon(p, any_front ? front : back, polygon);
        return;
    }
    for (int part = 0; part < 2; part++) {
        const double sign = part == 0 ? 1 : -1;
        int32_t count = 0;
        if (!corner_room(p, polygon->count + 2)) return;
        for (int32_t i = 0; i < polygon->count; i++) {
            const int32_t a = p->corners[polygon->corner + i],
                          b = p->corners[polygon->corner + (i + 1) % polygon->count];
            const double da = sign * side(p, plane, flipped, a),
                         db = sign * side(p, plane, flipped, b);
            if (da >= 0) p->corners[p->number_of_corners + count++] = a;
            if ((da > 0 && db < 0) || (da < 0 && db > 0))
                p->corners[p->number_of_corners + count++] = cross(p, a, b, da, db, plane);
        }
        close_polygon(p, part == 0 ? front : back, count, polygon->plane, polygon->flipped);
    }
}

/* ---- trees ---- */

/* The number of a new node, -1 if there is no room. */
static int32_t add_node(tb_csg_pool *p, tree *t, const tb_csg_polygon *root)
{
    node *grown = tb_grow(t->nodes, t->count + 1, &t->capacity, sizeof *grown);
    if (grown == NULL) {
        p->no_memory = true;
        return -1;
    }
    t->nodes = grown;
    t->nodes[t->count] = (node){root->plane, -1, -1, root->flipped};
    return t->count++;
}

/* The number of the subtree of some polygons, -1 for none; frees the list. Chains, as those of convex
 * solids, need no recursion. */
static int32_t build(tb_csg_pool *p, tree *t, tb_csg_solid list, int32_t depth)
{
    int32_t first = -1, before = -1;
    bool was_front = false;
    p->too_large = p->too_large || depth > MOST_DEEP;
    while (list.count > 0 && !broken(p)) {
        /* the middle one: lists often run round a body, whose neighbours divide it badly */
        const tb_csg_polygon root = list.polygons[list.count / 2];
        const int32_t index = add_node(p, t, &root);
        if (index < 0) break;
        if (before < 0)
            first = index;
        else if (was_front)
            t->nodes[before].front = index;
        else
            t->nodes[before].back = index;
        tb_csg_solid on = {0}, front = {0}, back = {0};
        for (int32_t i = 0; i < list.count; i++)
            sort_polygon(p, &list.polygons[i], root.plane, root.flipped, &on, &on, &front, &back);
        tb_csg_solid_free(&on);
        tb_csg_solid_free(&list);
        if (front.count > 0 && back.count > 0) {
            const int32_t child = build(p, t, front, depth + 1);
            t->nodes[index].front = child;
            front = (tb_csg_solid){0};
        }
        was_front = front.count > 0;
        list = was_front ? front : back;
        if (was_front)
            tb_csg_solid_free(&back);
        else
            tb_csg_solid_free(&front);
        before = index;
    }
    tb_csg_solid_free(&list);
    return first;
}

static void move_polygons(tb_csg_pool *p, tb_csg_solid *from, tb_csg_solid *to)
{
    for (int32_t i = 0; i < from->count; i++) add_polygon(p, to, &from->polygons[i]);
    tb_csg_solid_free(from);
}

/* Moves the polygons of a list that lie outside of the tree's solid to `kept`, or those inside of it if
 * `inside`; frees the list. Polygons in its surface go to the front if their normals agree with it,
 * turned by `inside`. */
static void clip_into(tb_csg_pool *p, const tree *t, int32_t index, tb_csg_solid list, bool inside,
                      tb_csg_solid *kept)
{
    while (list.count > 0 && !broken(p)) {
        const node *n = &t->nodes[index];
        const int32_t ahead = inside ? n->back : n->front, behind = inside ? n->front : n->back;
        tb_csg_solid front = {0}, back = {0};
        for (int32_t i = 0; i < list.count; i++)
            sort_polygon(p, &list.polygons[i], n->plane, n->flipped != inside, &front, &back,
                         &front, &back);
        tb_csg_solid_free(&list);
        if (ahead < 0) move_polygons(p, &front, kept);
        if (behind < 0) tb_csg_solid_free(&back);
        if (ahead >= 0 && behind >= 0) {
            clip_into(p, t, ahead, front, inside, kept);
            front = (tb_csg_solid){0};
        }
        list = front.count > 0 ? front : back;
        index = front.count > 0 ? ahead : behind;
        if (list.polygons != front.polygons) tb_csg_solid_free(&front);
        if (list.polygons != back.polygons) tb_csg_solid_free(&back);
    }
    tb_csg_solid_free(&list);
}

static tb_csg_solid clip(tb_csg_pool *p, const tree *t, tb_csg_solid list, bool inside)
{
    tb_csg_solid kept = {0};
    clip_into(p, t, 0, list, inside, &kept);
    return kept;
}

static void flip(tb_csg_pool *p, tb_csg_solid *list)
{
    for (int32_t i = 0; i < list->count; i++) {
        tb_csg_polygon *x = &list->polygons[i];
        x->flipped = !x->flipped;
        /* corners may be shared with another list: copy, then turn round */
        if (!corner_room(p, x->count)) return;
        for (int32_t k = 0; k < x->count; k++)
            p->corners[p->number_of_corners + k] = p->corners[x->corner + x->count - 1 - k];
        x->corner = p->number_of_corners;
        p->number_of_corners += x->count;
    }
}

/* The orders of csg.js. Solids are turned inside out so that of two flush faces one stays, or none where
 * the solids touch from both sides. */
void tb_csg_combine(tb_csg_pool *p, tb_csg_operation operation, tb_csg_solid *a, tb_csg_solid *b)
{
    if (a->count == 0 || b->count == 0) {
        if (operation == TB_CSG_INTERSECTION) a->count = 0;
        if (operation == TB_CSG_UNION)
            for (int32_t i = 0; i < b->count; i++) add_polygon(p, a, &b->polygons[i]);
        b->count = 0;
        return;
    }
    tree ta = {0}, tb = {0};
    tb_csg_solid copies[2] = {{0}, {0}};
    for (int32_t i = 0; i < a->count; i++) add_polygon(p, &copies[0], &a->polygons[i]);
    for (int32_t i = 0; i < b->count; i++) add_polygon(p, &copies[1], &b->polygons[i]);
    build(p, &ta, copies[0], 0);
    build(p, &tb, copies[1], 0);
    const bool meets = operation != TB_CSG_UNION; /* a is turned, b is kept inside of a */
    if (meets) flip(p, a);
    *a = clip(p, &tb, *a, operation == TB_CSG_INTERSECTION);
    *b = clip(p, &ta, *b, meets);
    flip(p, b);
    *b = clip(p, &ta, *b, meets);
    if (meets) flip(p, a);
    if (operation != TB_CSG_DIFFERENCE) flip(p, b);
    for (int32_t i = 0; i < b->count; i++) add_polygon(p, a, &b->polygons[i]);
    b->count = 0;
    free(ta.nodes);
    free(tb.nodes);
}
