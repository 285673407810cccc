/* Convex polyhedra for collision: qhull's facets made into clean polygons with full topology.
 *
 * Files give coordinates as floats or decimals, so the six sides of a box arrive as facets that
 * differ in direction by rounding. Contact manifolds and feature ids want six faces. Facets
 * therefore grow into faces: starting from the largest, neighbours join if their vertices lie in
 * its plane to MERGE_DISTANCE; vertices between only two faces lie on an edge and are dropped.
 * If a region is not one polygon, or the polyhedron does not close, the merge is undone and
 * qhull's facets stay. */
#include "model/model_internal.h"

#include <stdlib.h>
#include <string.h>

/* Distance from the plane at which a vertex still lies in a face, over the largest half extent:
 * above the rounding of floats, below intended features. */
#define MERGE_DISTANCE 1e-6
/* Cosine of the largest angle between the planes of facets that are merged (0.57 degrees). */
#define MERGE_COSINE 0.99995

/* One directed edge of a facet. */
typedef struct hull_edge {
    int32_t from, to; /* points */
    int32_t facet;
    int32_t twin; /* index of the edge in the opposite direction */
} hull_edge;

/* All arrays are in one arena. */
typedef struct hull_workspace {
    tb_arena arena;
    const double *points;
    tb_facets facets;
    int32_t corners;  /* all facets' vertices = directed edges */
    hull_edge *edges; /* corner by corner: edge from the corner to the next */
    tb_vec3 *normals; /* unit, by facet */
    double *areas, *widths;
    double distance; /* m, MERGE_DISTANCE times the extent */

    int32_t number_of_faces;
    int32_t *face_of;    /* by facet */
    int32_t *loop_start; /* number_of_faces + 1 */
    int32_t *loops;      /* points; at most `corners` */
} hull_workspace;

static tb_vec3 point_at(const hull_workspace *w, int32_t index)
{
    return tb_v3_load(w->points + 3 * (size_t)index);
}

/* ---- facets ---- */

static int compare_edges(const void *left, const void *right)
{
    const hull_edge *l = *(hull_edge *const *)left, *r = *(hull_edge *const *)right;
    const int32_t l0 = l->from < l->to ? l->from : l->to, l1 = l->from < l->to ? l->to : l->from;
    const int32_t r0 = r->from < r->to ? r->from : r->to, r1 = r->from < r->to ? r->to : r->from;
    if (l0 != r0) return l0 < r0 ? -1 : 1;
    return (l1 > r1) - (l1 < r1);
}

/* Directed edges with their opposite edges: tb_facets_build ensures that each has one. */
static bool link_edges(hull_workspace *w)
{
    hull_edge **sorted = TB_ARENA_ARRAY(&w->arena, hull_edge *, w->corners);
    w->edges = TB_ARENA_ARRAY(&w->arena, hull_edge, w->corners);
    if (sorted == NULL || w->edges == NULL) return false;
    for (int32_t f = 0; f < w->facets.number_of_faces; f++) {
        const int32_t first = w->facets.face_start[f], end = w->facets.face_start[f + 1];
        for (int32_t i = first; i < end; i++) {
            w->edges[i].from = w->facets.face_vertices[i];
            w->edges[i].to = w->facets.face_vertices[i + 1 < end ? i + 1 : first];
            w->edges[i].facet = f;
            sorted[i] = &w->edges[i];
        }
    }
    qsort(sorted, (size_t)w->corners, sizeof(hull_edge *), compare_edges);
    for (int32_t i = 0; i + 1 < w->corners; i += 2) {
        sorted[i]->twin = (int32_t)(sorted[i + 1] - w->edges);
        sorted[i + 1]->twin = (int32_t)(sorted[i] - w->edges);
    }
    return true;
}

/* Twice the area of a polygon along its normal, about its first vertex. */
static tb_vec3 newell(const hull_workspace *w, const int32_t *loop, int32_t count)
{
    tb_vec3 sum = tb_v3(0, 0, 0);
    const tb_vec3 origin = point_at(w, loop[0]);
    for (int32_t i = 1; i + 1 < count; i++)
        sum = tb_v3_add(sum, tb_v3_cross(tb_v3_sub(point_at(w, loop[i]), origin),
                                         tb_v3_sub(point_at(w, loop[i + 1]), origin)));
    return sum;
}

static bool measure_facets(hull_workspace *w)
{
    const int32_t count = w->facets.number_of_faces;
    w->normals = TB_ARENA_ARRAY(&w->arena, tb_vec3, count);
    w->areas = TB_ARENA_ARRAY(&w->arena, double, count);
    w->widths = TB_ARENA_ARRAY(&w->arena, double, count);
    if (!w->normals || !w->areas || !w->widths) return false;
    tb_vec3 lower = point_at(w, w->facets.face_vertices[0]), upper = lower;
    for (int32_t f = 0; f < count; f++) {
        const int32_t first = w->facets.face_start[f], end = w->facets.face_start[f + 1];
        const tb_vec3 area = newell(w, w->facets.face_vertices + first, end - first);
        double longest = 0;
        for (int32_t i = first; i < end; i++) {
            const tb_vec3 p = point_at(w, w->edges[i].from), q = point_at(w, w->edges[i].to);
            longest = tb_max(longest, tb_v3_length(tb_v3_sub(q, p)));
            lower = tb_v3_min(lower, p);
            upper = tb_v3_max(upper, p);
        }
        w->normals[f] = tb_v3_normalize(area, tb_v3(0, 0, 1));
        w->areas[f] = tb_v3_length(area);
        w->widths[f] = longest > 0 ? w->areas[f] / longest : 0;
    }
    const tb_vec3 size = tb_v3_sub(upper, lower);
    w->distance = MERGE_DISTANCE * 0.5 * tb_max(size.x, tb_max(size.y, size.z));
    return true;
}

/* ---- merging ---- */

static bool belongs(const hull_workspace *w, int32_t facet, tb_vec3 normal, double offset)
{
    /* the normal of a sliver is mostly rounding error: it must only not face away */
    const double cosine = tb_v3_dot(w->normals[facet], normal);
    if (cosine < (w->widths[facet] > 10 * w->distance ? MERGE_COSINE : 0)) return false;
    for (int32_t i = w->facets.face_start[facet]; i < w->facets.face_start[facet + 1]; i++)
        if (fabs(tb_v3_dot(normal, point_at(w, w->facets.face_vertices[i])) - offset) > w->distance)
            return false;
    return true;
}

static void grow_face(hull_workspace *w, int32_t seed, int32_t face, int32_t *queue)
{
    const tb_vec3 normal = w->normals[seed];
    const double offset =
        tb_v3_dot(normal, point_at(w, w->facets.face_vertices[w->facets.face_start[seed]]));
    int32_t head = 0, tail = 0;
    w->face_of[seed] = face;
    queue[tail++] = seed;
    while (head < tail) {
        const int32_t facet = queue[head++];
        for (int32_t i = w->facets.face_start[facet]; i < w->facets.face_start[facet + 1]; i++) {
            const int32_t next = w->edges[w->edges[i].twin].facet;
            if (w->face_of[next] >= 0 || !belongs(w, next, normal, offset)) continue;
            w->face_of[next] = face;
            queue[tail++] = next;
        }
    }
}

typedef struct ranked_facet {
    double area;
    int32_t facet;
} ranked_facet;

static int compare_ranks(const void *left, const void *right)
{
    const ranked_facet *l = left, *r = right;
    if (l->area != r->area) return l->area > r->area ? -1 : 1;
    return (l->facet > r->facet) - (l->facet < r->facet);
}

/* Faces of merged facets, largest seeds first; or one face a facet. */
static bool assign_faces(hull_workspace *w, bool merge)
{
    const int32_t count = w->facets.number_of_faces;
    int32_t *queue = TB_ARENA_ARRAY(&w->arena, int32_t, count);
    ranked_facet *ranks = TB_ARENA_ARRAY(&w->arena, ranked_facet, count);
    w->face_of = TB_ARENA_ARRAY(&w->arena, int32_t, count);
    if (!queue || !ranks || !w->face_of) return false;
    w->number_of_faces = 0;
    for (int32_t f = 0; f < count; f++) {
        w->face_of[f] = merge ? -1 : f;
        ranks[f].area = w->areas[f];
        ranks[f].facet = f;
    }
    if (!merge) {
        w->number_of_faces = count;
        return true;
    }
    qsort(ranks, (size_t)count, sizeof *ranks, compare_ranks);
    for (int32_t i = 0; i < count; i++)
        if (w->face_of[ranks[i].facet] < 0)
            grow_face(w, ranks[i].facet, w->number_of_faces++, queue);
    return true;
}

/* ---- loops ---- */

static bool is_border(const hull_workspace *w, int32_t edge)
{
    return w->face_of[w->edges[edge].facet] != w->face_of[w->edges[w->edges[edge].twin].facet];
}

/* The border edge that follows a border edge around its face. */
static int32_t next_border(const hull_workspace *w, int32_t edge)
{
    for (int32_t guard = 0; guard <= w->corners; guard++) {
        const int32_t facet = w->edges[edge].facet;
        edge = edge + 1 < w->facets.face_start[facet + 1] ? edge + 1 : w->facets.face_start[facet];
        if (is_border(w, edge)) return edge;
        edge = w->edges[edge].twin;
    }
    return edge;
}

/* Traces each face's border. Vertices with `degree` below 3 are dropped. *sound: every face is
 * one polygon of at least 3 corners. */
static bool trace_loops(hull_workspace *w, const int32_t *degree, bool *sound)
{
    int32_t *borders = TB_ARENA_ZEROED(&w->arena, int32_t, w->number_of_faces); /* edges in all */
    int32_t *first = TB_ARENA_ARRAY(&w->arena, int32_t, w->number_of_faces);
    w->loop_start = TB_ARENA_ARRAY(&w->arena, int32_t, w->number_of_faces + 1);
    w->loops = TB_ARENA_ARRAY(&w->arena, int32_t, w->corners);
    if (!borders || !first || !w->loop_start || !w->loops) return false;
    for (int32_t i = w->corners - 1; i >= 0; i--)
        if (is_border(w, i)) {
            borders[w->face_of[w->edges[i].facet]]++;
            first[w->face_of[w->edges[i].facet]] = i;
        }
    *sound = true;
    int32_t at = 0;
    for (int32_t f = 0; f < w->number_of_faces; f++) {
        w->loop_start[f] = at;
        if (borders[f] == 0) *sound = false;
        int32_t edge = first[f];
        for (int32_t i = 0; i < borders[f]; i++) {
            if (degree == NULL || degree[w->edges[edge].from] >= 3)
                w->loops[at++] = w->edges[edge].from;
            edge = next_border(w, edge);
            if (edge == first[f] && i + 1 < borders[f]) *sound = false; /* a second loop */
        }
        if (borders[f] > 0 && edge != first[f]) *sound = false;
        if (at - w->loop_start[f] < 3) *sound = false;
    }
    w->loop_start[w->number_of_faces] = at;
    return true;
}

/* Number of border edges that leave each point. */
static int32_t *border_degrees(hull_workspace *w, int32_t count)
{
    int32_t *degree = TB_ARENA_ZEROED(&w->arena, int32_t, count);
    for (int32_t i = 0; degree != NULL && i < w->corners; i++)
        if (is_border(w, i)) degree[w->edges[i].from]++;
    return degree;
}

/* ---- result ---- */

typedef struct loop_edge {
    int32_t low, high, face;
    bool forward; /* the face walks from low to high */
} loop_edge;

static int compare_loop_edges(const void *left, const void *right)
{
    const loop_edge *l = left, *r = right;
    if (l->low != r->low) return l->low < r->low ? -1 : 1;
    if (l->high != r->high) return l->high < r->high ? -1 : 1;
    return (int)r->forward - (int)l->forward;
}

/* Edges of the loops in pairs, forward first; *sound is false if an edge does not occur exactly
 * once in each direction or Euler's formula does not hold. */
static loop_edge *pair_edges(hull_workspace *w, int32_t vertices, bool *sound)
{
    const int32_t corners = w->loop_start[w->number_of_faces];
    loop_edge *edges = TB_ARENA_ARRAY(&w->arena, loop_edge, corners);
    if (edges == NULL) return NULL;
    for (int32_t f = 0; f < w->number_of_faces; f++)
        for (int32_t i = w->loop_start[f]; i < w->loop_start[f + 1]; i++) {
            const int32_t p = w->loops[i];
            const int32_t q = w->loops[i + 1 < w->loop_start[f + 1] ? i + 1 : w->loop_start[f]];
            edges[i] = (loop_edge){p < q ? p : q, p < q ? q : p, f, p < q};
        }
    qsort(edges, (size_t)corners, sizeof *edges, compare_loop_edges);
    *sound = corners % 2 == 0 && vertices - corners / 2 + w->number_of_faces == 2;
    for (int32_t i = 0; *sound && i < corners; i += 2) {
        const loop_edge *a = &edges[i], *b = &edges[i + 1];
        *sound = a->low == b->low && a->high == b->high && a->forward && !b->forward &&
                 (i + 2 >= corners || b->low != edges[i + 2].low || b->high != edges[i + 2].high);
    }
    return edges;
}

/* Numbers the points in use from 0 in their order; loops then hold these numbers. */
static int32_t *number_vertices(hull_workspace *w, int32_t points, int32_t *count)
{
    const int32_t corners = w->loop_start[w->number_of_faces];
    int32_t *number = TB_ARENA_ARRAY(&w->arena, int32_t, points);
    if (number == NULL) return NULL;
    for (int32_t i = 0; i < points; i++) number[i] = -1;
    for (int32_t i = 0; i < corners; i++) number[w->loops[i]] = 0;
    *count = 0;
    for (int32_t i = 0; i < points; i++)
        if (number[i] == 0) number[i] = (*count)++;
    for (int32_t i = 0; i < corners; i++) w->loops[i] = number[w->loops[i]];
    return number;
}

/* Neighbours of every vertex, ascending, from the sorted edges. */
static void fill_neighbours(const loop_edge *edges, int32_t corners, int32_t vertices,
                            int32_t *start, int32_t *neighbours)
{
    memset(start, 0, ((size_t)vertices + 1) * sizeof *start);
    for (int32_t i = 0; i < corners; i += 2) {
        start[edges[i].low + 1]++;
        start[edges[i].high + 1]++;
    }
    for (int32_t i = 0; i < vertices; i++) start[i + 1] += start[i];
    /* lower neighbours come first: sorted by (low, high), so both passes ascend */
    for (int32_t i = 0; i < corners; i += 2) neighbours[start[edges[i].high]++] = edges[i].low;
    for (int32_t i = 0; i < corners; i += 2) neighbours[start[edges[i].low]++] = edges[i].high;
    for (int32_t i = vertices; i > 0; i--) start[i] = start[i - 1];
    start[0] = 0;
}

static bool fill_hull(hull_workspace *w, const int32_t *number, int32_t points, int32_t count,
                      const loop_edge *paired, tb_arena *arena, tb_hull *hull)
{
    const int32_t faces = w->number_of_faces, corners = w->loop_start[faces];
    double *vertices = TB_ARENA_ARRAY(arena, double, 3 * count);
    double *planes = TB_ARENA_ARRAY(arena, double, 4 * faces);
    int32_t *face_start = TB_ARENA_ARRAY(arena, int32_t, faces + 1);
    int32_t *face_vertices = TB_ARENA_ARRAY(arena, int32_t, corners);
    int32_t *edges = TB_ARENA_ARRAY(arena, int32_t, 2 * corners);
    int32_t *neighbour_start = TB_ARENA_ARRAY(arena, int32_t, count + 1);
    int32_t *neighbours = TB_ARENA_ARRAY(arena, int32_t, corners);
    if (!vertices || !planes || !face_start || !face_vertices || !edges || !neighbour_start ||
        !neighbours)
        return false;

    memset(hull->centre, 0, sizeof hull->centre);
    for (int32_t i = 0; i < points; i++)
        if (number[i] >= 0) tb_v3_store(vertices + 3 * (size_t)number[i], point_at(w, i));
    for (int32_t i = 0; i < 3 * count; i++) hull->centre[i % 3] += vertices[i] / count;
    memcpy(face_start, w->loop_start, ((size_t)faces + 1) * sizeof *face_start);
    memcpy(face_vertices, w->loops, (size_t)corners * sizeof *face_vertices);

    /* each plane touches its outermost corner, so that no corner stands out of its own face */
    const double *kept = w->points;
    w->points = vertices;
    for (int32_t f = 0; f < faces; f++) {
        const int32_t *loop = face_vertices + face_start[f];
        const int32_t size = face_start[f + 1] - face_start[f];
        const tb_vec3 normal = tb_v3_normalize(newell(w, loop, size), tb_v3(0, 0, 1));
        double offset = -INFINITY;
        for (int32_t i = 0; i < size; i++)
            offset = tb_max(offset, tb_v3_dot(normal, point_at(w, loop[i])));
        tb_v3_store(planes + 4 * (size_t)f, normal);
        planes[4 * (size_t)f + 3] = offset;
    }
    w->points = kept;

    for (int32_t i = 0; i < corners; i += 2) {
        edges[2 * i] = paired[i].low;
        edges[2 * i + 1] = paired[i].high;
        edges[2 * i + 2] = paired[i].face;
        edges[2 * i + 3] = paired[i + 1].face;
    }
    fill_neighbours(paired, corners, count, neighbour_start, neighbours);
    hull->number_of_vertices = count;
    hull->number_of_faces = faces;
    hull->number_of_edges = corners / 2;
    hull->number_of_face_indices = corners;
    hull->vertices = vertices;
    hull->planes = planes;
    hull->face_start = face_start;
    hull->face_vertices = face_vertices;
    hull->edges = edges;
    hull->neighbour_start = neighbour_start;
    hull->neighbours = neighbours;
    return true;
}

/* Makes faces of facets in one of several ways. *sound is false if they do not fit together. */
static bool make_hull(hull_workspace *w, int32_t points, bool merge, bool drop, tb_arena *arena,
                      tb_hull *hull, bool *sound)
{
    int32_t vertices = 0;
    const int32_t *degree = NULL;
    *sound = false;
    if (!assign_faces(w, merge)) return false;
    if (drop && (degree = border_degrees(w, points)) == NULL) return false;
    if (!trace_loops(w, degree, sound)) return false;
    if (!*sound) return true;
    const int32_t *number = number_vertices(w, points, &vertices);
    if (number == NULL) return false;
    const loop_edge *edges = pair_edges(w, vertices, sound);
    if (edges == NULL) return false;
    return !*sound || (fill_hull(w, number, points, vertices, edges, arena, hull) &&
                       tb_hull_index(hull, merge, &w->arena, arena));
}

tb_status tb_hull_build(const double *points, int32_t count, tb_arena *arena, tb_hull *hull,
                        tb_error *error)
{
    return tb_hull_build_within(points, count, 0, arena, hull, error);
}

tb_status tb_hull_build_within(const double *points, int32_t count, int32_t most, tb_arena *arena,
                               tb_hull *hull, tb_error *error)
{
    static const struct {
        bool merge, drop;
    } ways[] = {{true, true}, {false, true}, {false, false}};
    hull_workspace w = {.points = points};
    memset(hull, 0, sizeof *hull);
    tb_status status = tb_facets_build(points, count, most, &w.facets, error);
    if (status != TB_OK) return status;
    tb_arena_init(&w.arena, 0);
    w.corners = w.facets.face_start[w.facets.number_of_faces];

    bool sound = false, memory = link_edges(&w) && measure_facets(&w);
    for (size_t i = 0; memory && !sound && i < sizeof ways / sizeof ways[0]; i++)
        memory = make_hull(&w, count, ways[i].merge, ways[i].drop, arena, hull, &sound);
    if (!memory)
        status = tb_fail_memory(error, (size_t)w.corners * sizeof(hull_edge), "hull");
    else if (!sound)
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, "vertices",
                               "the points are so close to a plane that their hull does not close");
    tb_arena_destroy(&w.arena);
    tb_facets_free(&w.facets);
    return status;
}
