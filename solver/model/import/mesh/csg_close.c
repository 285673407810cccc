/* From the polygons of csg_solid.h to a closed surface of triangles: equal corners become one, corners
 * that lie on edges become corners of these edges, polygons become fans of triangles. */
#include "model/import/mesh/csg_solid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Corners within this share of the size are one; of an edge, on it. */
#define SAME_POINT 4e-9

typedef struct place {
    double x;
    int32_t vertex;
} place;

typedef struct closing {
    tb_csg_pool *pool;
    place *places;   /* used vertices by x */
    int32_t *one_of; /* vertices: representative of each */
    int32_t count;
    int32_t *loop, *spare; /* one polygon with corners on its edges */
    int32_t loop_capacity, spare_capacity;
    double reach; /* m */
    tb_mesh_data *mesh;
    int32_t triangle_capacity;
    bool no_memory;
} closing;

static tb_vec3 at(const closing *c, int32_t v)
{
    return tb_v3_load(c->pool->vertices + 3 * (size_t)v);
}

static int compare_places(const void *a, const void *b)
{
    const place *p = a, *q = b;
    if (p->x != q->x) return p->x < q->x ? -1 : 1;
    return p->vertex < q->vertex ? -1 : p->vertex > q->vertex;
}

/* The vertices that polygons use, by x; then each gets the first one within reach. */
static bool weld(closing *c, const tb_csg_solid *solid)
{
    const tb_csg_pool *p = c->pool;
    const size_t all = (size_t)p->number_of_vertices + 1;
    c->one_of = malloc(all * sizeof *c->one_of);
    c->places = malloc(all * sizeof *c->places);
    if (c->one_of == NULL || c->places == NULL) return false;
    for (int32_t v = 0; v < p->number_of_vertices; v++) c->one_of[v] = -1;
    for (int32_t i = 0; i < solid->count; i++)
        for (int32_t k = 0; k < solid->polygons[i].count; k++) {
            const int32_t v = p->corners[solid->polygons[i].corner + k];
            if (c->one_of[v] >= 0) continue;
            c->one_of[v] = v;
            c->places[c->count++] = (place){p->vertices[3 * (size_t)v], v};
        }
    qsort(c->places, (size_t)c->count, sizeof *c->places, compare_places);
    int32_t kept = 0;
    for (int32_t i = 0; i < c->count; i++) {
        const place x = c->places[i];
        for (int32_t k = kept - 1; k >= 0 && c->places[k].x >= x.x - c->reach; k--) {
            if (tb_v3_length(tb_v3_sub(at(c, c->places[k].vertex), at(c, x.vertex))) > c->reach)
                continue;
            c->one_of[x.vertex] = c->places[k].vertex;
            break;
        }
        if (c->one_of[x.vertex] == x.vertex) c->places[kept++] = x;
    }
    c->count = kept;
    return true;
}

static bool append(int32_t **list, int32_t *count, int32_t *capacity, int32_t v)
{
    int32_t *grown = tb_grow(*list, *count + 1, capacity, sizeof *grown);
    if (grown == NULL) return false;
    *list = grown;
    (*list)[(*count)++] = v;
    return true;
}

/* The first place at or behind x. */
static int32_t first_place(const closing *c, double x)
{
    int32_t low = 0, high = c->count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (c->places[middle].x < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Appends the start of an edge and the corners that lie on it, in their order. */
static bool fill_edge(closing *c, int32_t a, int32_t b, int32_t *count)
{
    const tb_vec3 xa = at(c, a), line = tb_v3_sub(at(c, b), xa);
    const double length = tb_v3_length(line), low = fmin(xa.x, xa.x + line.x) - c->reach,
                 high = fmax(xa.x, xa.x + line.x) + c->reach;
    if (!append(&c->loop, count, &c->loop_capacity, a)) return false;
    const int32_t first = *count;
    for (int32_t i = first_place(c, low); i < c->count && c->places[i].x <= high; i++) {
        const int32_t v = c->places[i].vertex;
        if (v == a || v == b) continue;
        const tb_vec3 d = tb_v3_sub(at(c, v), xa);
        const double along = tb_v3_dot(d, line) / length;
        if (along <= 0 || along >= length) continue;
        if (tb_v3_length(tb_v3_add_scaled(d, line, -along / length)) > c->reach) continue;
        if (!append(&c->loop, count, &c->loop_capacity, v)) return false;
        /* insertion by the distance from the start */
        for (int32_t k = *count - 1; k > first; k--) {
            const double before = tb_v3_dot(tb_v3_sub(at(c, c->loop[k - 1]), xa), line) / length;
            if (before <= along) break;
            const int32_t swap = c->loop[k];
            c->loop[k] = c->loop[k - 1], c->loop[k - 1] = swap;
        }
    }
    return true;
}

static bool add_triangle(closing *c, int32_t a, int32_t b, int32_t d)
{
    tb_mesh_data *m = c->mesh;
    int32_t *grown =
        tb_grow(m->triangles, m->number_of_triangles + 1, &c->triangle_capacity, 3 * sizeof *grown);
    if (grown == NULL) return false;
    m->triangles = grown;
    grown += 3 * (size_t)m->number_of_triangles++;
    grown[0] = a, grown[1] = b, grown[2] = d;
    return true;
}

/* Whether each corner of a loop turns left by more than rounding. */
static bool is_strict(const closing *c, int32_t count, tb_vec3 normal)
{
    for (int32_t i = 0; i < count; i++) {
        const tb_vec3 a = at(c, c->loop[(i + count - 1) % count]), b = at(c, c->loop[i]),
                      d = at(c, c->loop[(i + 1) % count]);
        const tb_vec3 e = tb_v3_sub(b, a), f = tb_v3_sub(d, b);
        const double least = 1e-6 * tb_v3_length(e) * tb_v3_length(f);
        if (!(tb_v3_dot(tb_v3_cross(e, f), normal) > least)) return false;
    }
    return true;
}

/* Covers a convex loop by a fan from a corner or, where corners lie in line, from its middle. */
static bool cover(closing *c, int32_t count, tb_vec3 normal)
{
    if (is_strict(c, count, normal)) {
        for (int32_t k = 1; k + 1 < count; k++)
            if (!add_triangle(c, c->loop[0], c->loop[k], c->loop[k + 1])) return false;
        return true;
    }
    tb_vec3 middle = tb_v3(0, 0, 0);
    for (int32_t k = 0; k < count; k++)
        middle = tb_v3_add_scaled(middle, at(c, c->loop[k]), 1.0 / count);
    const int32_t v = tb_csg_vertex(c->pool, middle.x, middle.y, middle.z);
    if (c->pool->no_memory || c->pool->too_large) return false;
    for (int32_t k = 0; k < count; k++)
        if (!add_triangle(c, v, c->loop[k], c->loop[(k + 1) % count])) return false;
    return true;
}

static bool close_polygon(closing *c, const tb_csg_polygon *polygon)
{
    const tb_csg_pool *p = c->pool;
    int32_t corners = 0, count = 0;
    for (int32_t k = 0; k < polygon->count; k++) {
        const int32_t v = c->one_of[p->corners[polygon->corner + k]];
        if (corners > 0 && c->spare[corners - 1] == v) continue;
        if (!append(&c->spare, &corners, &c->spare_capacity, v)) return false;
    }
    while (corners > 1 && c->spare[corners - 1] == c->spare[0]) corners--;
    if (corners < 3) return true;
    for (int32_t k = 0; k < corners; k++)
        if (!fill_edge(c, c->spare[k], c->spare[(k + 1) % corners], &count)) return false;
    const double *n = p->planes + 4 * (size_t)polygon->plane;
    const double sign = polygon->flipped ? -1 : 1;
    /* a polygon whose corners lie in line is nothing */
    double widest = 0;
    for (int32_t k = 1; k + 1 < count; k++) {
        const tb_vec3 e = tb_v3_sub(at(c, c->loop[k]), at(c, c->loop[0])),
                      f = tb_v3_sub(at(c, c->loop[k + 1]), at(c, c->loop[0]));
        widest += tb_v3_dot(tb_v3_cross(e, f), tb_v3_scale(tb_v3_load(n), sign));
    }
    if (!(widest > c->reach * c->reach)) return true;
    return cover(c, count, tb_v3_scale(tb_v3_load(n), sign));
}

/* ---- the check ---- */

typedef struct edge {
    int32_t low, high, turns;
} edge;

static int compare_edges(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    if (x->low != y->low) return x->low < y->low ? -1 : 1;
    return x->high < y->high ? -1 : x->high > y->high;
}

static tb_status check_closed(const closing *c, const char *file, tb_error *error)
{
    const tb_mesh_data *m = c->mesh;
    const int32_t count = 3 * m->number_of_triangles;
    edge *edges = malloc(((size_t)count + 1) * sizeof *edges);
    if (edges == NULL) return tb_fail_memory(error, (size_t)count * sizeof *edges, file);
    for (int32_t i = 0; i < count; i++) {
        const int32_t a = m->triangles[i], b = m->triangles[i % 3 == 2 ? i - 2 : i + 1];
        edges[i] = (edge){a < b ? a : b, a < b ? b : a, a < b ? 1 : -1};
    }
    qsort(edges, (size_t)count, sizeof *edges, compare_edges);
    tb_status status = TB_OK;
    for (int32_t i = 0, end; i < count && status == TB_OK; i = end) {
        int32_t turns = 0;
        for (end = i; end < count && compare_edges(&edges[i], &edges[end]) == 0; end++)
            turns += edges[end].turns;
        if (turns == 0) continue;
        const tb_vec3 a = at(c, edges[i].low), b = at(c, edges[i].high);
        status = tb_fail_file(error, TB_INVALID_ARGUMENT, file, 0, "mesh",
                              "the solid is not closed at the edge from (%.6g, %.6g, %.6g) to "
                              "(%.6g, %.6g, %.6g)",
                              a.x, a.y, a.z, b.x, b.y, b.z);
    }
    free(edges);
    return status;
}

tb_status tb_csg_triangles(tb_csg_pool *pool, const tb_csg_solid *solid, const char *file,
                           tb_mesh_data *mesh, tb_error *error)
{
    closing c = {.pool = pool, .mesh = mesh, .reach = SAME_POINT * pool->size};
    memset(mesh, 0, sizeof *mesh);
    if (pool->too_large)
        return tb_fail_file(error, TB_RESOURCE_EXHAUSTED, file, 0, "mesh",
                            "the solid has too many faces");
    if (pool->too_far)
        return tb_fail_file(error, TB_INVALID_ARGUMENT, file, 0, "mesh",
                            "a coordinate lies beyond %g m", TB_MESH_COORDINATE_LIMIT);
    bool fits = !pool->no_memory && weld(&c, solid);
    for (int32_t i = 0; i < solid->count && fits; i++)
        fits = close_polygon(&c, &solid->polygons[i]);
    tb_status status = fits ? TB_OK : tb_fail_memory(error, 0, file);
    if (status == TB_OK) status = check_closed(&c, file, error);
    if (status == TB_OK) {
        const size_t bytes = 3 * (size_t)pool->number_of_vertices * sizeof(double);
        mesh->vertices = malloc(bytes + 1);
        if (mesh->vertices == NULL)
            status = tb_fail_memory(error, bytes, file);
        else
            memcpy(mesh->vertices, pool->vertices, bytes);
        mesh->number_of_vertices = pool->number_of_vertices;
    }
    if (status == TB_OK) status = tb_mesh_data_compact(mesh, error);
    free(c.places);
    free(c.one_of);
    free(c.loop);
    free(c.spare);
    if (status != TB_OK) tb_mesh_data_free(mesh);
    return status;
}
