/* Triangle meshes for collision: vertices merged, neighbours found, edges classified, tree built.
 *
 * The kind of an edge prevents contacts at internal edges: a flat or concave edge allows only
 * face normals. The height of the neighbour's far vertex over the triangle's plane gives the
 * kind. Triangles without area (needles) stay in the list. An edge shared by two triangles with
 * area belongs to these two, regardless of needles on it; if a needle lies between two
 * triangles, as at a corner on a long edge, the triangles become neighbours through it. */
#include "model/model_internal.h"

#include "model/geometry/indexed_point.h"

#include <stdlib.h>
#include <string.h>

/* Twice the area over the square of the longest edge, below which the area counts as zero. */
#define SMALLEST_SHAPE 1e-12
/* Sine of the largest angle between neighbours in one plane. */
#define FLAT_SINE 1e-4

typedef struct mesh_workspace {
    tb_arena scratch;
    double *vertices;
    int32_t *triangles, *adjacent, *ids;
    double *normals;
    uint8_t *kinds;
    int32_t number_of_vertices, number_of_triangles;
} mesh_workspace;

/* ---- vertices ---- */

/* Equal vertices become the first of them; numbers keep the order of first appearance. */
static bool merge_vertices(mesh_workspace *w, const double *vertices, int32_t count,
                           const int32_t *triangles)
{
    tb_indexed_point *sorted = TB_ARENA_ARRAY(&w->scratch, tb_indexed_point, count);
    int32_t *to = TB_ARENA_ARRAY(&w->scratch, int32_t, count);
    if (sorted == NULL || to == NULL) return false;
    for (int32_t i = 0; i < count; i++) {
        for (int k = 0; k < 3; k++) sorted[i].x[k] = vertices[3 * (size_t)i + (size_t)k] + 0.0;
        sorted[i].index = i;
    }
    if (count > 0) qsort(sorted, (size_t)count, sizeof *sorted, tb_indexed_point_compare);
    for (int32_t i = 0, first = 0; i < count; i++) {
        if (memcmp(sorted[first].x, sorted[i].x, sizeof sorted[i].x) != 0) first = i;
        to[sorted[i].index] = sorted[first].index;
    }
    for (int32_t i = 0; i < count; i++) {
        if (to[i] == i) {
            memcpy(w->vertices + 3 * (size_t)w->number_of_vertices, vertices + 3 * (size_t)i,
                   3 * sizeof(double));
            to[i] = w->number_of_vertices++;
        } else {
            to[i] = to[to[i]]; /* already numbered: the first comes before */
        }
    }
    for (int32_t i = 0; i < 3 * w->number_of_triangles; i++) w->triangles[i] = to[triangles[i]];
    return true;
}

/* ---- triangles ---- */

static tb_vec3 corner(const mesh_workspace *w, int32_t triangle, int k)
{
    return tb_v3_load(w->vertices + 3 * (size_t)w->triangles[3 * (size_t)triangle + (size_t)k]);
}

static tb_vec3 normal_of(const mesh_workspace *w, int32_t triangle)
{
    return tb_v3_load(w->normals + 3 * (size_t)triangle);
}

static bool has_area(const mesh_workspace *w, int32_t triangle)
{
    return tb_v3_length2(normal_of(w, triangle)) > 0;
}

static int32_t set_normals(mesh_workspace *w)
{
    int32_t sound = 0;
    for (int32_t t = 0; t < w->number_of_triangles; t++) {
        const tb_vec3 a = corner(w, t, 0), b = corner(w, t, 1), c = corner(w, t, 2);
        const tb_vec3 ab = tb_v3_sub(b, a), ac = tb_v3_sub(c, a), bc = tb_v3_sub(c, b);
        /* use the shortest edges: their cross product has the smallest rounding error */
        const double l_ab = tb_v3_length2(ab), l_ac = tb_v3_length2(ac), l_bc = tb_v3_length2(bc);
        const double longest = tb_max(l_ab, tb_max(l_ac, l_bc));
        const tb_vec3 area = longest == l_bc   ? tb_v3_cross(ab, ac)
                             : longest == l_ac ? tb_v3_cross(ab, bc)
                                               : tb_v3_cross(ac, bc);
        tb_vec3 normal = tb_v3(0, 0, 0);
        if (tb_v3_length(area) > SMALLEST_SHAPE * longest && tb_v3_length(area) > 0) {
            normal = tb_v3_normalize(area, normal);
            w->ids[sound++] = t;
        }
        tb_v3_store(w->normals + 3 * (size_t)t, normal);
    }
    return sound;
}

/* ---- neighbours ---- */

typedef struct mesh_edge {
    int32_t low, high;
    int32_t place; /* 3 triangle + edge */
} mesh_edge;

static int compare_edges(const void *left, const void *right)
{
    const mesh_edge *l = left, *r = right;
    if (l->low != r->low) return l->low < r->low ? -1 : 1;
    if (l->high != r->high) return l->high < r->high ? -1 : 1;
    return (l->place > r->place) - (l->place < r->place);
}

static int32_t edge_start(const mesh_workspace *w, int32_t place)
{
    return w->triangles[place];
}

/* Links two entries of one edge if their triangles have it in opposite directions. */
static bool link_places(mesh_workspace *w, int32_t a, int32_t b)
{
    if (a / 3 == b / 3 || edge_start(w, a) == edge_start(w, b)) return false;
    w->adjacent[a] = b / 3;
    w->adjacent[b] = a / 3;
    return true;
}

/* Whether two corners coincide: such a needle has its edge in both directions and no triangle
 * behind it. */
static bool is_folded(const mesh_workspace *w, int32_t triangle)
{
    const int32_t *v = w->triangles + 3 * (size_t)triangle;
    return v[0] == v[1] || v[1] == v[2] || v[2] == v[0];
}

/* Links the triangles of one edge. Triangles with area come first: if two of them share the
 * edge, needles on it have no effect. A single one, or none, is linked to a needle. An edge of
 * three triangles with area, or of two with inconsistent orientation, is a boundary for all. */
static void link_edge(mesh_workspace *w, const mesh_edge *edges, int32_t count)
{
    int32_t sound[2] = {-1, -1}, number_of_sound = 0;
    for (int32_t i = 0; i < count; i++) {
        if (!has_area(w, edges[i].place / 3)) continue;
        if (number_of_sound < 2) sound[number_of_sound] = edges[i].place;
        number_of_sound++;
    }
    if (number_of_sound == 2) link_places(w, sound[0], sound[1]);
    if (number_of_sound > 1) return;
    int32_t first = sound[0];
    for (int32_t i = 0; i < count && first < 0; i++)
        if (!is_folded(w, edges[i].place / 3)) first = edges[i].place;
    for (int32_t i = 0; i < count && first >= 0; i++)
        if (!is_folded(w, edges[i].place / 3) && link_places(w, first, edges[i].place)) return;
}

static bool link_triangles(mesh_workspace *w)
{
    const int32_t count = 3 * w->number_of_triangles;
    mesh_edge *edges = TB_ARENA_ARRAY(&w->scratch, mesh_edge, count);
    if (edges == NULL) return false;
    for (int32_t i = 0; i < count; i++) {
        const int32_t p = w->triangles[i], q = w->triangles[i % 3 == 2 ? i - 2 : i + 1];
        edges[i].low = p < q ? p : q;
        edges[i].high = p < q ? q : p;
        edges[i].place = i;
        w->adjacent[i] = -1;
    }
    if (count > 0) qsort(edges, (size_t)count, sizeof *edges, compare_edges);
    for (int32_t i = 0; i < count;) {
        int32_t end = i + 1;
        while (end < count && edges[end].low == edges[i].low && edges[end].high == edges[i].high)
            end++;
        if (edges[i].low != edges[i].high) link_edge(w, edges + i, end - i);
        i = end;
    }
    return true;
}

/* The neighbour of a needle on the side away from triangle `from`: across the longest of its
 * other edges, because the short edges lie against the long one. */
static int32_t through(const mesh_workspace *w, int32_t needle, int32_t from)
{
    int32_t next = -1;
    double longest = -1;
    for (int k = 0; k < 3; k++) {
        const int32_t other = w->adjacent[3 * needle + k];
        const double length =
            tb_v3_length2(tb_v3_sub(corner(w, needle, (k + 1) % 3), corner(w, needle, k)));
        if (other < 0 || other == from || length <= longest) continue;
        longest = length;
        next = other;
    }
    return next;
}

/* The nearest triangle with area behind an edge, through needles; -1 if there is none. */
static int32_t behind(const mesh_workspace *w, int32_t place)
{
    int32_t from = place / 3, at = w->adjacent[place];
    for (int guard = 0; at >= 0 && !has_area(w, at) && guard < 16; guard++) {
        const int32_t next = through(w, at, from);
        from = at;
        at = next;
    }
    return at >= 0 && has_area(w, at) && at != place / 3 ? at : -1;
}

static tb_edge_kind kind_of(const mesh_workspace *w, int32_t place)
{
    const int32_t a = place / 3, b = w->adjacent[place];
    if (b < 0) return TB_EDGE_BOUNDARY;
    const tb_vec3 n = normal_of(w, a), m = normal_of(w, b);
    if (tb_v3_length(tb_v3_cross(n, m)) <= FLAT_SINE) /* or folded back on itself: a sharp edge */
        return tb_v3_dot(n, m) > 0 ? TB_EDGE_FLAT : TB_EDGE_CONVEX;
    /* the corner of b farthest from a's plane decides the side */
    const tb_vec3 origin = corner(w, a, place % 3);
    double height = 0;
    for (int k = 0; k < 3; k++) {
        const double h = tb_v3_dot(n, tb_v3_sub(corner(w, b, k), origin));
        if (fabs(h) > fabs(height)) height = h;
    }
    return height > 0 ? TB_EDGE_CONCAVE : TB_EDGE_CONVEX;
}

/* ---- the whole ---- */

static bool build(mesh_workspace *w, const double *vertices, int32_t number_of_vertices,
                  const int32_t *triangles, tb_arena *arena)
{
    const size_t n = (size_t)w->number_of_triangles;
    w->vertices = TB_ARENA_ARRAY(arena, double, 3 * (size_t)number_of_vertices);
    w->triangles = TB_ARENA_ARRAY(arena, int32_t, 3 * n);
    w->adjacent = TB_ARENA_ARRAY(arena, int32_t, 3 * n);
    w->normals = TB_ARENA_ARRAY(arena, double, 3 * n);
    w->kinds = TB_ARENA_ARRAY(arena, uint8_t, 3 * n);
    w->ids = TB_ARENA_ARRAY(&w->scratch, int32_t, n);
    return w->vertices && w->triangles && w->adjacent && w->normals && w->kinds && w->ids &&
           merge_vertices(w, vertices, number_of_vertices, triangles);
}

static tb_status check(const double *vertices, int32_t number_of_vertices, const int32_t *triangles,
                       int32_t number_of_triangles, tb_error *error)
{
    if (number_of_vertices < 0 || number_of_vertices > TB_MESH_LIMIT || number_of_triangles < 0 ||
        number_of_triangles > TB_MESH_LIMIT)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "number_of_triangles",
                             "a mesh of %d vertices and %d triangles is out of range",
                             (int)number_of_vertices, (int)number_of_triangles);
    for (int32_t i = 0; i < 3 * number_of_vertices; i++)
        if (!isfinite(vertices[i]))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "vertices", "vertex %d is not finite",
                                 (int)(i / 3));
    for (int32_t i = 0; i < 3 * number_of_triangles; i++)
        if (triangles[i] < 0 || triangles[i] >= number_of_vertices)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "triangles",
                                 "triangle %d uses vertex %d of %d", (int)(i / 3),
                                 (int)triangles[i], (int)number_of_vertices);
    return TB_OK;
}

tb_status tb_triangle_mesh_build(const double *vertices, int32_t number_of_vertices,
                                 const int32_t *triangles, int32_t number_of_triangles,
                                 tb_arena *arena, tb_triangle_mesh *mesh, tb_error *error)
{
    mesh_workspace w = {.number_of_triangles = number_of_triangles};
    memset(mesh, 0, sizeof *mesh);
    tb_status status = check(vertices, number_of_vertices, triangles, number_of_triangles, error);
    if (status != TB_OK) return status;
    tb_arena_init(&w.scratch, 0);
    if (!build(&w, vertices, number_of_vertices, triangles, arena)) {
        status = tb_fail_memory(error, (size_t)number_of_triangles * 64, "triangle mesh");
        goto done;
    }
    const int32_t sound = set_normals(&w);
    if (!link_triangles(&w)) {
        status = tb_fail_memory(error, (size_t)number_of_triangles * 36, "triangle mesh");
        goto done;
    }
    for (int32_t i = 0; i < 3 * number_of_triangles; i++) {
        w.kinds[i] = TB_EDGE_BOUNDARY;
        if (!has_area(&w, i / 3)) continue;
        /* needles keep their neighbours, so that the next edge can still look through them */
        w.adjacent[i] = behind(&w, i);
        w.kinds[i] = (uint8_t)kind_of(&w, i);
    }
    mesh->number_of_vertices = w.number_of_vertices;
    mesh->number_of_triangles = number_of_triangles;
    mesh->vertices = w.vertices;
    mesh->triangles = w.triangles;
    mesh->adjacent = w.adjacent;
    mesh->normals = w.normals;
    mesh->edge_kind = w.kinds;
    mesh->hull = -1;
    status = tb_mesh_tree_build(w.vertices, w.triangles, w.ids, sound, arena, mesh, error);
done:
    tb_arena_destroy(&w.scratch);
    return status;
}
