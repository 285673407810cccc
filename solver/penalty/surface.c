/* Triangle surfaces: building, volume, and the check that a surface bounds a solid. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "penalty/solid.h"

/* Corners nearer than this share of the surface's size are one. */
#define SAME_VERTEX 1e-12

void tb_surface_mesh_free(tb_surface_mesh *mesh)
{
    free(mesh->vertices);
    free(mesh->triangles);
    memset(mesh, 0, sizeof *mesh);
}

int32_t tb_surface_mesh_vertex(tb_surface_mesh *mesh, double x, double y, double z)
{
    double *grown = tb_grow(mesh->vertices, mesh->number_of_vertices + 1, &mesh->vertex_capacity,
                            3 * sizeof(double));
    if (!grown) return -1;
    mesh->vertices = grown;
    grown += 3 * (size_t)mesh->number_of_vertices;
    grown[0] = x, grown[1] = y, grown[2] = z;
    return mesh->number_of_vertices++;
}

bool tb_surface_mesh_triangle(tb_surface_mesh *mesh, int32_t a, int32_t b, int32_t c)
{
    if (a < 0 || b < 0 || c < 0) return false;
    int32_t *grown = tb_grow(mesh->triangles, mesh->number_of_triangles + 1,
                             &mesh->triangle_capacity, 3 * sizeof(int32_t));
    if (!grown) return false;
    mesh->triangles = grown;
    grown += 3 * (size_t)mesh->number_of_triangles++;
    grown[0] = a, grown[1] = b, grown[2] = c;
    return true;
}

static tb_vec3 corner(const tb_surface_mesh *m, int32_t triangle, int k)
{
    return tb_v3_load(m->vertices + 3 * (size_t)m->triangles[3 * (size_t)triangle + (size_t)k]);
}

double tb_surface_mesh_volume(const tb_surface_mesh *mesh)
{
    double six = 0;
    if (mesh->number_of_vertices == 0) return 0;
    const tb_vec3 o = tb_v3_load(mesh->vertices);
    for (int32_t t = 0; t < mesh->number_of_triangles; t++) {
        const tb_vec3 a = tb_v3_sub(corner(mesh, t, 0), o), b = tb_v3_sub(corner(mesh, t, 1), o),
                      c = tb_v3_sub(corner(mesh, t, 2), o);
        six += tb_v3_dot(a, tb_v3_cross(b, c));
    }
    return six / 6;
}

/* ---- merging ---- */

typedef struct keyed {
    int64_t key[3];
    int32_t vertex;
} keyed;

static int compare_keys(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    for (int i = 0; i < 3; i++)
        if (x->key[i] != y->key[i]) return x->key[i] < y->key[i] ? -1 : 1;
    return x->vertex - y->vertex;
}

/* Gives equal corners one number and leaves out triangles that lost a corner. */
static tb_status merge_vertices(tb_surface_mesh *m, const char *name, tb_error *error)
{
    double size = 0;
    for (int32_t i = 0; i < 3 * m->number_of_vertices; i++) {
        if (!isfinite(m->vertices[i]))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, name, "'%s': vertex %d is not finite",
                                 name, i / 3);
        size = fmax(size, fabs(m->vertices[i]));
    }
    keyed *keys = calloc((size_t)m->number_of_vertices + 1, sizeof *keys);
    int32_t *first = calloc((size_t)m->number_of_vertices + 1, sizeof *first);
    if (!keys || !first) {
        free(keys);
        free(first);
        return tb_fail_memory(error, 0, "a surface");
    }
    const double unit = size > 0 ? size * SAME_VERTEX : 1;
    for (int32_t v = 0; v < m->number_of_vertices; v++) {
        for (int i = 0; i < 3; i++) keys[v].key[i] = llround(m->vertices[3 * v + i] / unit);
        keys[v].vertex = v;
    }
    qsort(keys, (size_t)m->number_of_vertices, sizeof *keys, compare_keys);
    for (int32_t i = 0, begin = 0; i < m->number_of_vertices; i++) {
        if (memcmp(keys[i].key, keys[begin].key, sizeof keys[i].key) != 0) begin = i;
        first[keys[i].vertex] = keys[begin].vertex;
    }
    int32_t kept = 0;
    for (int32_t t = 0; t < m->number_of_triangles; t++) {
        const int32_t *v = m->triangles + 3 * t;
        const int32_t a = first[v[0]], b = first[v[1]], c = first[v[2]];
        if (a == b || b == c || c == a) continue;
        m->triangles[3 * kept] = a, m->triangles[3 * kept + 1] = b, m->triangles[3 * kept + 2] = c;
        kept++;
    }
    m->number_of_triangles = kept;
    free(keys);
    free(first);
    return TB_OK;
}

/* ---- edges ---- */

typedef struct edge {
    int32_t low, high, triangle;
    bool forward; /* the triangle runs from low to high */
} edge;

static int compare_edges(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    if (x->low != y->low) return x->low < y->low ? -1 : 1;
    if (x->high != y->high) return x->high < y->high ? -1 : 1;
    return x->triangle < y->triangle ? -1 : x->triangle > y->triangle;
}

/* All edges, sorted, 3 a triangle; heap. NULL if memory is refused. */
static edge *list_edges(const tb_surface_mesh *m)
{
    edge *edges = calloc(3 * (size_t)m->number_of_triangles + 1, sizeof *edges);
    for (int32_t t = 0; t < m->number_of_triangles && edges; t++)
        for (int k = 0; k < 3; k++) {
            const int32_t a = m->triangles[3 * t + k], b = m->triangles[3 * t + (k + 1) % 3];
            edges[3 * t + k] = (edge){a < b ? a : b, a < b ? b : a, t, a < b};
        }
    if (edges) qsort(edges, 3 * (size_t)m->number_of_triangles, sizeof *edges, compare_edges);
    return edges;
}

static tb_status fail_at(const tb_surface_mesh *m, const edge *e, const char *fault,
                         const char *name, tb_error *error)
{
    const double *a = m->vertices + 3 * e->low, *b = m->vertices + 3 * e->high;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, name,
                         "'%s': %s at the edge from (%.6g, %.6g, %.6g) to (%.6g, %.6g, %.6g) m of "
                         "triangle %d",
                         name, fault, a[0], a[1], a[2], b[0], b[1], b[2], e->triangle);
}

static bool same_edge(const edge *a, const edge *b)
{
    return a->low == b->low && a->high == b->high;
}

/* Every edge has as many triangles one way as the other. */
static tb_status check_edges(const tb_surface_mesh *m, const char *name, tb_error *error)
{
    edge *edges = list_edges(m);
    if (!edges) return tb_fail_memory(error, 0, "edges of a surface");
    const int32_t count = 3 * m->number_of_triangles;
    tb_status status = TB_OK;
    for (int32_t i = 0, end; i < count && status == TB_OK; i = end) {
        int32_t forward = 0;
        for (end = i; end < count && same_edge(&edges[i], &edges[end]); end++)
            forward += edges[end].forward ? 1 : -1;
        if (forward == 0) continue;
        status =
            fail_at(m, &edges[i], end - i == 1 ? "a hole" : "faces that are reversed", name, error);
    }
    free(edges);
    return status;
}

/* ---- mending ---- */

/* Turns triangles until neighbours agree, from the first triangle of each connected part on; then
 * each part whose volume is negative as a whole. */
static tb_status turn_triangles(tb_surface_mesh *m, tb_error *error)
{
    const int32_t count = m->number_of_triangles;
    edge *edges = list_edges(m);
    int8_t *turn = calloc((size_t)count + 1, 1); /* 0 unseen, 1 as it is, -1 turned */
    int32_t *stack = calloc((size_t)count + 1, sizeof *stack);
    int32_t *across = malloc((3 * (size_t)count + 1) * sizeof *across); /* signed: 1 + triangle */
    if (!edges || !turn || !stack || !across) {
        free(edges), free(turn), free(stack), free(across);
        return tb_fail_memory(error, 0, "a surface that is mended");
    }
    memset(across, 0, 3 * (size_t)count * sizeof *across);
    for (int32_t i = 0; i + 1 < 3 * count; i++) {
        if (!same_edge(&edges[i], &edges[i + 1])) continue;
        const edge *a = &edges[i], *b = &edges[i + 1];
        const int32_t sign = a->forward != b->forward ? 1 : -1;
        for (int k = 0; k < 3; k++) {
            if (!across[3 * a->triangle + k]) {
                across[3 * a->triangle + k] = sign * (1 + b->triangle);
                break;
            }
        }
        for (int k = 0; k < 3; k++) {
            if (!across[3 * b->triangle + k]) {
                across[3 * b->triangle + k] = sign * (1 + a->triangle);
                break;
            }
        }
        i++;
    }
    for (int32_t seed = 0; seed < count; seed++) {
        if (turn[seed]) continue;
        double six = 0;
        int32_t bottom = 0, top = 0;
        turn[seed] = 1;
        stack[top++] = seed;
        for (bottom = 0; bottom < top; bottom++) {
            const int32_t t = stack[bottom];
            six +=
                turn[t] * tb_v3_dot(corner(m, t, 0), tb_v3_cross(corner(m, t, 1), corner(m, t, 2)));
            for (int k = 0; k < 3; k++) {
                const int32_t other = abs(across[3 * t + k]) - 1;
                if (other < 0 || turn[other]) continue;
                turn[other] = (int8_t)(across[3 * t + k] > 0 ? turn[t] : -turn[t]);
                stack[top++] = other;
            }
        }
        for (int32_t i = 0; i < top && six < 0; i++) turn[stack[i]] = (int8_t)-turn[stack[i]];
    }
    for (int32_t t = 0; t < count; t++) {
        if (turn[t] > 0) continue;
        const int32_t b = m->triangles[3 * t + 1];
        m->triangles[3 * t + 1] = m->triangles[3 * t + 2];
        m->triangles[3 * t + 2] = b;
    }
    free(edges), free(turn), free(stack), free(across);
    return TB_OK;
}

/* Closes every loop of open edges by a fan about its mean. */
static tb_status close_holes(tb_surface_mesh *m, tb_error *error)
{
    edge *edges = list_edges(m);
    const int32_t count = 3 * m->number_of_triangles;
    int32_t *next = malloc(((size_t)m->number_of_vertices + 1) * sizeof *next);
    bool fits = edges != NULL && next != NULL;
    const int32_t vertices = m->number_of_vertices;
    for (int32_t v = 0; v < vertices && fits; v++) next[v] = -1;
    for (int32_t i = 0; i < count && fits; i++) {
        if ((i > 0 && same_edge(&edges[i - 1], &edges[i])) ||
            (i + 1 < count && same_edge(&edges[i], &edges[i + 1])))
            continue;
        /* a hole runs against its triangle */
        next[edges[i].forward ? edges[i].high : edges[i].low] =
            edges[i].forward ? edges[i].low : edges[i].high;
    }
    for (int32_t v = 0; v < vertices && fits; v++) {
        if (next[v] < 0) continue;
        double mean[3] = {0, 0, 0};
        int32_t n = 0, k = v;
        do {
            for (int i = 0; i < 3; i++) mean[i] += m->vertices[3 * k + i];
            n++;
            k = next[k];
        } while (k >= 0 && k != v && n <= vertices);
        if (k != v) break; /* no loop: the check names the place */
        const int32_t middle = tb_surface_mesh_vertex(m, mean[0] / n, mean[1] / n, mean[2] / n);
        for (k = v; next[k] >= 0 && fits;) {
            const int32_t to = next[k];
            fits = tb_surface_mesh_triangle(m, k, to, middle);
            next[k] = -1;
            k = to;
        }
    }
    free(edges);
    free(next);
    return fits ? TB_OK : tb_fail_memory(error, 0, "a surface that is mended");
}

/* ---- self-intersection ---- */

/* Whether the segment a b passes through the inside of a triangle. */
static bool pierces(tb_vec3 a, tb_vec3 b, const tb_vec3 t[3], double epsilon)
{
    const tb_vec3 n = tb_v3_cross(tb_v3_sub(t[1], t[0]), tb_v3_sub(t[2], t[0]));
    const double length = tb_v3_length(n);
    const double da = tb_v3_dot(n, tb_v3_sub(a, t[0])), db = tb_v3_dot(n, tb_v3_sub(b, t[0]));
    const double margin = epsilon * length;
    if (!((da > margin && db < -margin) || (da < -margin && db > margin))) return false;
    const tb_vec3 x = tb_v3_lerp(a, b, da / (da - db));
    for (int k = 0; k < 3; k++) {
        const tb_vec3 e = tb_v3_sub(t[(k + 1) % 3], t[k]);
        if (!(tb_v3_dot(n, tb_v3_cross(e, tb_v3_sub(x, t[k]))) >
              epsilon * length * tb_v3_length(e)))
            return false;
    }
    return true;
}

typedef struct boxed {
    double lower[3], upper[3];
    int32_t triangle;
} boxed;

static int compare_lower(const void *a, const void *b)
{
    const boxed *x = a, *y = b;
    return x->lower[0] < y->lower[0] ? -1 : x->lower[0] > y->lower[0];
}

static bool triangles_cross(const tb_surface_mesh *m, int32_t s, int32_t t, double epsilon)
{
    tb_vec3 a[3], b[3];
    for (int k = 0; k < 3; k++) a[k] = corner(m, s, k), b[k] = corner(m, t, k);
    for (int k = 0; k < 3; k++)
        if (pierces(a[k], a[(k + 1) % 3], b, epsilon) || pierces(b[k], b[(k + 1) % 3], a, epsilon))
            return true;
    return false;
}

static tb_status check_crossings(const tb_surface_mesh *m, const char *name, tb_error *error)
{
    const int32_t count = m->number_of_triangles;
    boxed *boxes = calloc((size_t)count + 1, sizeof *boxes);
    if (!boxes) return tb_fail_memory(error, 0, "boxes of a surface");
    double size = 0;
    for (int32_t t = 0; t < count; t++) {
        boxes[t].triangle = t;
        for (int i = 0; i < 3; i++) {
            const double x[3] = {tb_v3_at(corner(m, t, 0), i), tb_v3_at(corner(m, t, 1), i),
                                 tb_v3_at(corner(m, t, 2), i)};
            boxes[t].lower[i] = fmin(x[0], fmin(x[1], x[2]));
            boxes[t].upper[i] = fmax(x[0], fmax(x[1], x[2]));
            size = fmax(size, fmax(fabs(boxes[t].lower[i]), fabs(boxes[t].upper[i])));
        }
    }
    qsort(boxes, (size_t)count, sizeof *boxes, compare_lower);
    tb_status status = TB_OK;
    for (int32_t i = 0; i < count && status == TB_OK; i++)
        for (int32_t k = i + 1; k < count && boxes[k].lower[0] <= boxes[i].upper[0]; k++) {
            if (boxes[k].lower[1] > boxes[i].upper[1] || boxes[i].lower[1] > boxes[k].upper[1] ||
                boxes[k].lower[2] > boxes[i].upper[2] || boxes[i].lower[2] > boxes[k].upper[2] ||
                !triangles_cross(m, boxes[i].triangle, boxes[k].triangle, 1e-10 * size))
                continue;
            const tb_vec3 x = corner(m, boxes[i].triangle, 0);
            status = tb_fail_field(error, TB_INVALID_ARGUMENT, name,
                                   "'%s': triangles %d and %d cross each other near "
                                   "(%.6g, %.6g, %.6g) m",
                                   name, boxes[i].triangle, boxes[k].triangle, x.x, x.y, x.z);
            break;
        }
    free(boxes);
    return status;
}

tb_status tb_surface_mesh_check(tb_surface_mesh *mesh, tb_repair repair, const char *name,
                                tb_error *error)
{
    tb_status status = merge_vertices(mesh, name, error);
    if (status == TB_OK && repair == TB_REPAIR_MEND) {
        status = turn_triangles(mesh, error);
        if (status == TB_OK) status = close_holes(mesh, error);
        if (status == TB_OK) status = turn_triangles(mesh, error);
    }
    if (status == TB_OK) status = check_edges(mesh, name, error);
    if (status == TB_OK) status = check_crossings(mesh, name, error);
    if (status != TB_OK) return status;
    if (tb_surface_mesh_volume(mesh) < 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, name,
                             "'%s': all faces are reversed: its volume is %.6g m3", name,
                             tb_surface_mesh_volume(mesh));
    return TB_OK;
}
