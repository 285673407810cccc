/* Search tables of a hull: edges and first vertices of climbs to the extreme vertex, faces by
 * vertex, the thickness and the bounding box.
 *
 * Faces are merged where their corners are level to MERGE_DISTANCE (hull.c), so that the polyhedron
 * of merged faces is convex to that distance only: along its edges a climb can end below the top.
 * Climbs therefore use the edges of the unmerged hull of the vertices.
 *
 * The directions of space are cut into the cells of a cube's six sides; every cell keeps the vertex
 * that is extreme along its middle, so that a climb from there is a few edges long for any
 * number of vertices, and depends on the direction alone. */
#include "model/model_internal.h"

#include <stdlib.h>
#include <string.h>

/* Distance of a face's plane from a vertex up to which the face is listed with the vertex, over the
 * vertex's distance from the centre: above the narrow phase's tolerance for flat faces in
 * double. */
#define LISTED_DISTANCE 2e-6

enum { VERTICES_OF_A_CELL = 12, MOST_CELLS = 24 };

/* ---- climbs ---- */

static int compare_numbers(const void *left, const void *right)
{
    const int32_t l = *(const int32_t *)left, r = *(const int32_t *)right;
    return (l > r) - (l < r);
}

/* Vertices joined by an edge of these facets, ascending; a vertex of no facet keeps its
 * neighbours. */
static bool fill_climbs(tb_hull *hull, const tb_facets *facets, tb_arena *arena)
{
    const int32_t vertices = hull->number_of_vertices;
    int32_t *start = TB_ARENA_ZEROED(arena, int32_t, vertices + 2);
    if (start == NULL) return false;
    for (int32_t i = 0; i < facets->face_start[facets->number_of_faces]; i++)
        start[facets->face_vertices[i] + 2]++;
    for (int32_t v = 0; v < vertices; v++) {
        const int32_t own = hull->neighbour_start[v + 1] - hull->neighbour_start[v];
        start[v + 2] = start[v + 1] + (start[v + 2] > 0 ? start[v + 2] : own);
    }
    int32_t *climbs = TB_ARENA_ARRAY(arena, int32_t, start[vertices + 1]);
    if (climbs == NULL) return false;
    for (int32_t f = 0; f < facets->number_of_faces; f++) {
        const int32_t first = facets->face_start[f], end = facets->face_start[f + 1];
        for (int32_t i = first; i < end; i++)
            climbs[start[facets->face_vertices[i] + 1]++] =
                facets->face_vertices[i + 1 < end ? i + 1 : first];
    }
    for (int32_t v = 0; v < vertices; v++) {
        const int32_t from = start[v], own = hull->neighbour_start[v];
        if (start[v + 1] == from)
            while (own + start[v + 1] - from < hull->neighbour_start[v + 1]) {
                climbs[start[v + 1]] = hull->neighbours[own + start[v + 1] - from];
                start[v + 1]++;
            }
        qsort(climbs + from, (size_t)(start[v + 1] - from), sizeof *climbs, compare_numbers);
    }
    hull->climb_start = start;
    hull->climbs = climbs;
    return true;
}

/* The edges of climbs: the hull's own edges unless faces were merged, or if the vertices have no
 * hull to rounding. */
static bool find_climbs(tb_hull *hull, bool merged, tb_arena *arena)
{
    tb_facets facets;
    tb_error why = {0};
    hull->climb_start = hull->neighbour_start;
    hull->climbs = hull->neighbours;
    if (!merged) return true;
    const tb_status status =
        tb_facets_build(hull->vertices, hull->number_of_vertices, 0, &facets, &why);
    if (status == TB_RESOURCE_EXHAUSTED) return false;
    if (status != TB_OK) return true;
    const bool filled = fill_climbs(hull, &facets, arena);
    tb_facets_free(&facets);
    return filled;
}

static int32_t climb(const tb_hull *hull, tb_vec3 direction, int32_t from)
{
    int32_t best = from;
    double most = tb_v3_dot(direction, tb_v3_load(hull->vertices + 3 * (size_t)from));
    for (;;) {
        int32_t next = best;
        for (int32_t k = hull->climb_start[best]; k < hull->climb_start[best + 1]; k++) {
            const double *v = hull->vertices + 3 * (size_t)hull->climbs[k];
            const double height = tb_v3_dot(direction, tb_v3_load(v));
            if (height > most) most = height, next = hull->climbs[k];
        }
        if (next == best) return best;
        best = next;
    }
}

/* Middle of a cell, by the numbering of tb_hull_cell. */
static tb_vec3 middle_of(int32_t cell, int32_t cells)
{
    const int32_t side = cell / (cells * cells), row = cell / cells % cells, column = cell % cells;
    const double u = (2 * column + 1.0) / cells - 1, v = (2 * row + 1.0) / cells - 1;
    const double sign = side % 2 ? 1 : -1;
    if (side / 2 == 0) return tb_v3(sign, u, v);
    if (side / 2 == 1) return tb_v3(v, sign, u);
    return tb_v3(u, v, sign);
}

static bool fill_starts(tb_hull *hull, tb_arena *arena)
{
    int32_t cells = 2;
    while (cells < MOST_CELLS && VERTICES_OF_A_CELL * cells * cells < hull->number_of_vertices)
        cells++;
    const int32_t count = 6 * cells * cells;
    int32_t *starts = TB_ARENA_ARRAY(arena, int32_t, count);
    if (starts == NULL) return false;
    for (int32_t i = 0, vertex = 0; i < count; i++)
        starts[i] = vertex = climb(hull, middle_of(i, cells), vertex);
    hull->starts = starts;
    hull->cells = cells;
    return true;
}

/* ---- faces at vertices ---- */

/* Faces by vertex, and the search for those near one. */
typedef struct face_search {
    const tb_hull *hull;
    int32_t *start, *faces; /* corners of each vertex: number_of_vertices + 1, face indices */
    int32_t *seen;          /* by face: 1 + the vertex that it was last looked at for */
    int32_t *found;         /* faces of one vertex */
} face_search;

static bool search_begin(face_search *s, const tb_hull *hull, tb_arena *scratch)
{
    const int32_t vertices = hull->number_of_vertices, corners = hull->number_of_face_indices;
    *s = (face_search){.hull = hull};
    s->start = TB_ARENA_ZEROED(scratch, int32_t, vertices + 2);
    s->faces = TB_ARENA_ARRAY(scratch, int32_t, corners);
    s->seen = TB_ARENA_ZEROED(scratch, int32_t, hull->number_of_faces);
    s->found = TB_ARENA_ARRAY(scratch, int32_t, hull->number_of_faces);
    if (!s->start || !s->faces || !s->seen || !s->found) return false;
    for (int32_t i = 0; i < corners; i++) s->start[hull->face_vertices[i] + 2]++;
    for (int32_t v = 0; v < vertices; v++) s->start[v + 2] += s->start[v + 1];
    for (int32_t f = 0; f < hull->number_of_faces; f++)
        for (int32_t i = hull->face_start[f]; i < hull->face_start[f + 1]; i++)
            s->faces[s->start[hull->face_vertices[i] + 1]++] = f;
    return true;
}

/* Faces that meet at the vertex, and those joined to them whose planes pass it closely: ascending in
 * s->found. Returns their number. */
static int32_t search_faces(face_search *s, int32_t vertex)
{
    const tb_hull *h = s->hull;
    const tb_vec3 v = tb_v3_load(h->vertices + 3 * (size_t)vertex);
    const double near = LISTED_DISTANCE * tb_v3_length(tb_v3_sub(v, tb_v3_load(h->centre)));
    int32_t count = 0;
    for (int32_t i = s->start[vertex]; i < s->start[vertex + 1]; i++) {
        s->found[count++] = s->faces[i];
        s->seen[s->faces[i]] = vertex + 1;
    }
    for (int32_t k = 0; k < count; k++) {
        const int32_t face = s->found[k];
        for (int32_t i = h->face_start[face]; i < h->face_start[face + 1]; i++) {
            const int32_t corner = h->face_vertices[i];
            for (int32_t j = s->start[corner]; j < s->start[corner + 1]; j++) {
                const int32_t next = s->faces[j];
                const double *plane = h->planes + 4 * (size_t)next;
                if (s->seen[next] == vertex + 1) continue;
                s->seen[next] = vertex + 1;
                if (plane[3] - tb_v3_dot(tb_v3_load(plane), v) <= near) s->found[count++] = next;
            }
        }
    }
    qsort(s->found, (size_t)count, sizeof *s->found, compare_numbers);
    return count;
}

static bool fill_faces(tb_hull *hull, tb_arena *scratch, tb_arena *arena)
{
    face_search s;
    if (!search_begin(&s, hull, scratch)) return false;
    int32_t *start = TB_ARENA_ARRAY(arena, int32_t, hull->number_of_vertices + 1);
    if (start == NULL) return false;
    int64_t total = 0;
    for (int32_t v = 0; v < hull->number_of_vertices; v++) {
        start[v] = (int32_t)total;
        total += search_faces(&s, v);
        if (total > INT32_MAX) return false;
    }
    start[hull->number_of_vertices] = (int32_t)total;
    int32_t *faces = TB_ARENA_ARRAY(arena, int32_t, (int32_t)total);
    if (faces == NULL) return false;
    memset(s.seen, 0, (size_t)hull->number_of_faces * sizeof *s.seen);
    for (int32_t v = 0; v < hull->number_of_vertices; v++)
        memcpy(faces + start[v], s.found, (size_t)search_faces(&s, v) * sizeof *faces);
    hull->vertex_face_start = start;
    hull->vertex_faces = faces;
    return true;
}

static void fill_box(tb_hull *hull)
{
    tb_vec3 lower = tb_v3_load(hull->vertices), upper = lower;
    for (int32_t v = 1; v < hull->number_of_vertices; v++) {
        const tb_vec3 p = tb_v3_load(hull->vertices + 3 * (size_t)v);
        lower = tb_v3_min(lower, p);
        upper = tb_v3_max(upper, p);
    }
    tb_v3_store(hull->middle, tb_v3_lerp(lower, upper, 0.5));
    tb_v3_store(hull->half, tb_v3_scale(tb_v3_sub(upper, lower), 0.5));
}

bool tb_hull_index(tb_hull *hull, bool merged, tb_arena *scratch, tb_arena *arena)
{
    const tb_vec3 centre = tb_v3_load(hull->centre);
    fill_box(hull);
    hull->thickness = INFINITY;
    for (int32_t f = 0; f < hull->number_of_faces; f++) {
        const double *plane = hull->planes + 4 * (size_t)f;
        const double height = plane[3] - tb_v3_dot(tb_v3_load(plane), centre);
        hull->thickness = tb_min(hull->thickness, height);
    }
    return fill_faces(hull, scratch, arena) && find_climbs(hull, merged, arena) &&
           fill_starts(hull, arena);
}
