/* The signed distance of a closed mesh on a lattice. See mesh.h.
 *
 * The distance is the exact one to the nearest triangle, by the mesh's tree of boxes; the point nearest on
 * a triangle is found by its Voronoi regions (Ericson, Real-time collision detection, 5.1.5). The winding
 * number of a node is the sum of the signed crossings of a ray along x: for a closed surface that
 * is exact. Rays pass beside the nodes by a millionth of a cube, so that none runs along a face. */
#include "grid/mesh/mesh.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/parallel.h"
#include "base/sha256.h"
#include "model/model.h"

/* nodes of a lattice; a larger mesh has wider cubes */
static const double MOST_SAMPLES = 4e6;
/* of a cube's edge: how far rays pass from nodes along y and z */
static const double RAY_SHIFT[2] = {1.0e-6, 1.7e-6};
enum { STACK = 128 };

struct tb_soft_mesh {
    atomic_int users;
    tb_arena arena; /* of `surface` */
    tb_triangle_mesh surface;
    double volume; /* m^3 */
    char digest[TB_SOFT_DIGEST];
    tb_soft_samples samples;
    double *distance;
};

/* ---- life ---- */

static tb_vec3 vertex_of(const tb_soft_mesh *m, int32_t triangle, int32_t corner)
{
    return tb_v3_load(m->surface.vertices +
                      3 * (size_t)m->surface.triangles[3 * triangle + corner]);
}

/* INVALID_ARGUMENT for an edge without a neighbour; the message has the first one's ends. */
static tb_status check_closed(const tb_soft_mesh *m, tb_error *error)
{
    const int32_t edges = 3 * m->surface.number_of_triangles;
    int32_t open = 0, first = 0;
    for (int32_t i = edges - 1; i >= 0; i--)
        if (m->surface.adjacent[i] < 0) open++, first = i;
    if (open == 0) return TB_OK;
    const tb_vec3 a = vertex_of(m, first / 3, first % 3);
    const tb_vec3 b = vertex_of(m, first / 3, (first % 3 + 1) % 3);
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "mesh",
                         "the mesh is not closed: %d of its edges have no second triangle that "
                         "turns the same way; triangle %d's goes from (%g %g %g) to (%g %g %g) m",
                         open, first / 3, a.x, a.y, a.z, b.x, b.y, b.z);
}

static tb_status check_numbers(const double *vertices, int32_t number_of_vertices,
                               const int32_t *triangles, int32_t number_of_triangles,
                               tb_error *error)
{
    if (number_of_triangles > TB_SOFT_MOST_TRIANGLES)
        return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "mesh",
                             "%d triangles; a soft body's mesh has at most %d", number_of_triangles,
                             TB_SOFT_MOST_TRIANGLES);
    for (int32_t i = 0; i < 3 * number_of_vertices; i++)
        if (!(fabs(vertices[i]) <= 1e6))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "mesh",
                                 "vertex %d has a coordinate of %g m", i / 3, vertices[i]);
    for (int32_t i = 0; i < 3 * number_of_triangles; i++)
        if (triangles[i] < 0 || triangles[i] >= number_of_vertices)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "mesh",
                                 "triangle %d has vertex %d; there are %d", i / 3, triangles[i],
                                 number_of_vertices);
    return TB_OK;
}

static tb_status set_digest(tb_soft_mesh *m, tb_error *error)
{
    tb_bytes b = {0};
    const tb_triangle_mesh *s = &m->surface;
    tb_status status =
        tb_bytes_append(&b, s->vertices, 3 * (size_t)s->number_of_vertices * sizeof *s->vertices);
    if (status == TB_OK)
        status = tb_bytes_append(&b, s->triangles,
                                 3 * (size_t)s->number_of_triangles * sizeof *s->triangles);
    if (status == TB_OK)
        tb_sha256_hex(b.base, b.size, m->digest);
    else
        tb_fail_memory(error, b.size, "a mesh's digest");
    tb_bytes_free(&b);
    return status;
}

tb_status tb_soft_mesh_create(const double *vertices, int32_t number_of_vertices,
                              const int32_t *triangles, int32_t number_of_triangles,
                              tb_soft_mesh **mesh, tb_error *error)
{
    *mesh = NULL;
    tb_status status =
        check_numbers(vertices, number_of_vertices, triangles, number_of_triangles, error);
    if (status != TB_OK) return status;
    tb_soft_mesh *m = calloc(1, sizeof *m);
    if (m == NULL) return tb_fail_memory(error, sizeof *m, "a mesh");
    atomic_init(&m->users, 1);
    status = tb_triangle_mesh_build(vertices, number_of_vertices, triangles, number_of_triangles,
                                    &m->arena, &m->surface, error);
    if (status == TB_OK) status = check_closed(m, error);
    if (status == TB_OK) {
        const tb_triangle_mesh *s = &m->surface;
        m->volume = tb_mesh_mass_properties(s->vertices, s->number_of_vertices, s->triangles,
                                            s->number_of_triangles, TB_MESH_INERTIA_EXACT)
                        .volume;
        if (!(fabs(m->volume) > 0))
            status = tb_fail_field(error, TB_INVALID_ARGUMENT, "mesh", "the mesh has no volume");
    }
    if (status == TB_OK) status = set_digest(m, error);
    if (status == TB_OK)
        *mesh = m;
    else
        tb_soft_mesh_release(m);
    return status;
}

void tb_soft_mesh_retain(tb_soft_mesh *m)
{
    atomic_fetch_add(&m->users, 1);
}

void tb_soft_mesh_release(tb_soft_mesh *m)
{
    if (m == NULL || atomic_fetch_sub(&m->users, 1) != 1) return;
    tb_arena_destroy(&m->arena);
    free(m->distance);
    free(m);
}

double tb_soft_mesh_volume(const tb_soft_mesh *m)
{
    return fabs(m->volume);
}

void tb_soft_mesh_bounds(const tb_soft_mesh *m, double lower[3], double upper[3])
{
    memcpy(lower, m->surface.lower, sizeof m->surface.lower);
    memcpy(upper, m->surface.upper, sizeof m->surface.upper);
}

const char *tb_soft_mesh_digest(const tb_soft_mesh *m)
{
    return m->digest;
}

const tb_soft_samples *tb_soft_mesh_samples(const tb_soft_mesh *m)
{
    return &m->samples;
}

/* ---- distance ---- */

/* The square of the distance from p to a segment. */
static double segment_distance2(tb_vec3 p, tb_vec3 a, tb_vec3 b)
{
    const tb_vec3 ab = tb_v3_sub(b, a), ap = tb_v3_sub(p, a);
    const double length2 = tb_v3_length2(ab), along = tb_v3_dot(ap, ab);
    const double t = length2 > 0 ? tb_max(0.0, tb_min(along / length2, 1.0)) : 0;
    return tb_v3_length2(tb_v3_sub(ap, tb_v3_scale(ab, t)));
}

/* The square of the distance from p to a triangle. */
static double triangle_distance2(tb_vec3 p, tb_vec3 a, tb_vec3 b, tb_vec3 c)
{
    const tb_vec3 ab = tb_v3_sub(b, a), ac = tb_v3_sub(c, a), ap = tb_v3_sub(p, a);
    const tb_vec3 normal = tb_v3_cross(ab, ac);
    const double area2 = tb_v3_length2(normal);
    /* barycentric coordinates of the foot in the plane, times area2 */
    const double v = tb_v3_dot(tb_v3_cross(ap, ac), normal);
    const double w = tb_v3_dot(tb_v3_cross(ab, ap), normal);
    if (area2 > 0 && v >= 0 && w >= 0 && v + w <= area2) {
        const double height = tb_v3_dot(ap, normal);
        return height * height / area2;
    }
    return tb_min(segment_distance2(p, a, b),
                  tb_min(segment_distance2(p, b, c), segment_distance2(p, c, a)));
}

static double box_distance2(const tb_tree_node *node, const double p[3])
{
    double sum = 0;
    for (int a = 0; a < 3; a++) {
        const double d = tb_max(0.0, tb_max(node->lower[a] - p[a], p[a] - node->upper[a]));
        sum += d * d;
    }
    return sum;
}

/* The square of the distance from p to the surface, at most `bound`. */
static double surface_distance2(const tb_soft_mesh *m, const double p[3], double bound)
{
    const tb_tree_node *nodes = m->surface.nodes;
    int32_t stack[STACK], depth = 0;
    double best = bound;
    stack[depth++] = 0;
    while (depth > 0) {
        const int32_t i = stack[--depth];
        if (box_distance2(nodes + i, p) >= best) continue;
        if (nodes[i].right == 0) {
            for (int32_t k = 0; k < nodes[i].count; k++) {
                const int32_t t = m->surface.tree_triangles[nodes[i].first + k];
                best = tb_min(best, triangle_distance2(tb_v3_load(p), vertex_of(m, t, 0),
                                                       vertex_of(m, t, 1), vertex_of(m, t, 2)));
            }
            continue;
        }
        /* the nearer child is looked at first */
        const int32_t left = i + 1, right = nodes[i].right;
        const bool left_first = box_distance2(nodes + left, p) <= box_distance2(nodes + right, p);
        stack[depth++] = left_first ? right : left;
        stack[depth++] = left_first ? left : right;
    }
    return best;
}

static void measure_plane(void *context, int32_t k, int32_t thread)
{
    tb_soft_mesh *m = context;
    const tb_soft_samples *s = &m->samples;
    (void)thread;
    for (int32_t j = 0; j < s->nodes[1]; j++) {
        double *row = m->distance + (size_t)s->nodes[0] * (size_t)(j + s->nodes[1] * k);
        double near = 1e150;
        for (int32_t i = 0; i < s->nodes[0]; i++) {
            const double p[3] = {s->origin[0] + i * s->step, s->origin[1] + j * s->step,
                                 s->origin[2] + k * s->step};
            /* from node to node the distance grows by no more than the step */
            const double bound = (near + s->step) * (near + s->step) * (1 + 1e-9);
            near = sqrt(surface_distance2(m, p, bound));
            row[i] = near;
        }
    }
}

/* ---- sign ---- */

typedef struct crossing {
    double x;
    int32_t sign;
} crossing;

static int compare_crossings(const void *left, const void *right)
{
    const crossing *l = left, *r = right;
    if (l->x != r->x) return l->x < r->x ? -1 : 1;
    return (l->sign > r->sign) - (l->sign < r->sign);
}

/* On which side of the edge from vertex `from` to `to` the ray passes, seen along x: twice the area with
 * it. The edge is taken the same way round for both of its triangles. */
static double side_of(const tb_soft_mesh *m, int32_t from, int32_t to, const double ray[2])
{
    const double *a = m->surface.vertices + 3 * (size_t)(from < to ? from : to);
    const double *b = m->surface.vertices + 3 * (size_t)(from < to ? to : from);
    const double area = (b[1] - a[1]) * (ray[1] - a[2]) - (b[2] - a[2]) * (ray[0] - a[1]);
    /* on the edge itself: a side all the same */
    const double side = area == 0 ? 1e-300 : area;
    return from < to ? side : -side;
}

/* Where a ray along x crosses a triangle; sign 0: nowhere. */
static crossing cross_triangle(const tb_soft_mesh *m, int32_t triangle, const double ray[2])
{
    const int32_t *v = m->surface.triangles + 3 * triangle;
    double side[3], whole = 0, x = 0;
    for (int e = 0; e < 3; e++) side[e] = side_of(m, v[e], v[(e + 1) % 3], ray);
    if ((side[0] > 0) != (side[1] > 0) || (side[1] > 0) != (side[2] > 0)) return (crossing){0, 0};
    for (int e = 0; e < 3; e++) {
        whole += side[e];
        x += side[e] * m->surface.vertices[3 * (size_t)v[(e + 2) % 3]];
    }
    /* a triangle that faces along x is left through: the winding number falls behind it */
    return (crossing){x / whole, side[0] > 0 ? -1 : 1};
}

static int32_t cross_surface(const tb_soft_mesh *m, const double ray[2], crossing *crossings)
{
    const tb_tree_node *nodes = m->surface.nodes;
    int32_t stack[STACK], depth = 0, count = 0;
    stack[depth++] = 0;
    while (depth > 0) {
        const int32_t i = stack[--depth];
        const tb_tree_node *n = nodes + i;
        if (ray[0] < n->lower[1] || ray[0] > n->upper[1] || ray[1] < n->lower[2] ||
            ray[1] > n->upper[2])
            continue;
        if (n->right != 0) {
            stack[depth++] = i + 1;
            stack[depth++] = n->right;
            continue;
        }
        for (int32_t k = 0; k < n->count; k++) {
            crossings[count] = cross_triangle(m, m->surface.tree_triangles[n->first + k], ray);
            count += crossings[count].sign != 0;
        }
    }
    qsort(crossings, (size_t)count, sizeof *crossings, compare_crossings);
    return count;
}

/* Negative distances where the winding number is not 0. */
static tb_status sign_nodes(tb_soft_mesh *m, tb_error *error)
{
    const tb_soft_samples *s = &m->samples;
    const size_t most = (size_t)m->surface.number_of_triangles + 1;
    crossing *crossings = malloc(most * sizeof *crossings);
    if (crossings == NULL) return tb_fail_memory(error, most * sizeof *crossings, "a mesh's sign");
    for (int32_t k = 0; k < s->nodes[2]; k++)
        for (int32_t j = 0; j < s->nodes[1]; j++) {
            const double ray[2] = {s->origin[1] + (j + RAY_SHIFT[0]) * s->step,
                                   s->origin[2] + (k + RAY_SHIFT[1]) * s->step};
            double *row = m->distance + (size_t)s->nodes[0] * (size_t)(j + s->nodes[1] * k);
            const int32_t count = cross_surface(m, ray, crossings);
            int32_t winding = 0, next = 0;
            for (int32_t i = 0; i < s->nodes[0]; i++) {
                const double x = s->origin[0] + i * s->step;
                while (next < count && crossings[next].x <= x) winding += crossings[next++].sign;
                if (winding != 0) row[i] = -row[i];
            }
        }
    free(crossings);
    return TB_OK;
}

tb_status tb_soft_mesh_measure(tb_soft_mesh *m, double step, double margin, int32_t threads,
                               tb_error *error)
{
    tb_soft_samples *s = &m->samples;
    double size[3], volume = 1;
    if (m->distance != NULL) return TB_OK;
    for (int a = 0; a < 3; a++) {
        size[a] = m->surface.upper[a] - m->surface.lower[a] + 2 * margin;
        volume *= size[a];
    }
    s->step = tb_max(step, cbrt(volume / MOST_SAMPLES));
    size_t count = 1;
    for (int a = 0; a < 3; a++) {
        s->nodes[a] = (int32_t)ceil(size[a] / s->step) + 1;
        /* the rest of the last cube is on both sides */
        s->origin[a] =
            0.5 * (m->surface.lower[a] + m->surface.upper[a]) - 0.5 * (s->nodes[a] - 1) * s->step;
        count *= (size_t)s->nodes[a];
    }
    m->distance = malloc(count * sizeof *m->distance);
    if (m->distance == NULL)
        return tb_fail_memory(error, count * sizeof *m->distance, "a mesh's distance");
    s->distance = m->distance;
    tb_parallel_for(s->nodes[2], 1, threads, measure_plane, m);
    return sign_nodes(m, error);
}
