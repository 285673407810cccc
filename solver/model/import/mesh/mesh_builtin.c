/* Meshes from parameters: see mesh_builtin.h. Coordinates are rounded to float as they are made. */
#include "model/import/mesh/mesh_builtin.h"

#include <stdlib.h>
#include <string.h>

enum { PARAMETER_LIMIT = 5, RESOLUTION_LIMIT = 2048 };

static const double PI = 3.14159265358979323846;

/* ---- growing a mesh ---- */

static bool reserve(tb_mesh_data *mesh, size_t vertices, size_t triangles)
{
    mesh->vertices = malloc(3 * (vertices + 1) * sizeof *mesh->vertices);
    mesh->triangles = malloc(3 * (triangles + 1) * sizeof *mesh->triangles);
    return mesh->vertices != NULL && mesh->triangles != NULL;
}

static int32_t add_vertex(tb_mesh_data *mesh, double x, double y, double z)
{
    double *at = mesh->vertices + 3 * (size_t)mesh->number_of_vertices;
    at[0] = tb_round_to_float(x);
    at[1] = tb_round_to_float(y);
    at[2] = tb_round_to_float(z);
    return mesh->number_of_vertices++;
}

static void add_triangle(tb_mesh_data *mesh, int32_t a, int32_t b, int32_t c)
{
    int32_t *at = mesh->triangles + 3 * (size_t)mesh->number_of_triangles++;
    at[0] = a;
    at[1] = b;
    at[2] = c;
}

/* A quadrangle, counter-clockwise seen from outside, cut between its second and last corner. */
static void add_quadrangle(tb_mesh_data *mesh, int32_t a, int32_t b, int32_t c, int32_t d)
{
    add_triangle(mesh, a, b, d);
    add_triangle(mesh, b, c, d);
}

/* ---- sphere: every triangle of an icosahedron cut into four, again and again ---- */

/* The middles of edges that have been made already: for each vertex a short list of (other end,
 * middle). A vertex has at most six edges. */
typedef struct middles {
    int32_t (*of)[6][2];
} middles;

static int32_t middle_of(tb_mesh_data *mesh, middles *known, int32_t a, int32_t b)
{
    const int32_t low = a < b ? a : b, high = a < b ? b : a;
    int slot = 0;
    for (; slot < 6 && known->of[low][slot][1] >= 0; slot++)
        if (known->of[low][slot][0] == high) return known->of[low][slot][1];
    const double *p = mesh->vertices + 3 * (size_t)a, *q = mesh->vertices + 3 * (size_t)b;
    float m[3];
    for (int k = 0; k < 3; k++) m[k] = ((float)p[k] + (float)q[k]) / 2.0f;
    const float length = sqrtf(m[0] * m[0] + m[1] * m[1] + m[2] * m[2]);
    const int32_t made =
        add_vertex(mesh, (double)(m[0] / length), (double)(m[1] / length), (double)(m[2] / length));
    if (slot < 6) {
        known->of[low][slot][0] = high;
        known->of[low][slot][1] = made;
    }
    return made;
}

static bool subdivide(tb_mesh_data *mesh)
{
    const int32_t triangles = mesh->number_of_triangles, vertices = mesh->number_of_vertices;
    int32_t *old = malloc(3 * (size_t)triangles * sizeof *old);
    middles known = {malloc((size_t)vertices * sizeof *known.of)};
    const bool good = old != NULL && known.of != NULL;
    for (int32_t v = 0; good && v < vertices; v++)
        for (int i = 0; i < 6; i++) known.of[v][i][1] = -1;
    if (good) memcpy(old, mesh->triangles, 3 * (size_t)triangles * sizeof *old);
    mesh->number_of_triangles = good ? 0 : triangles;
    for (int32_t t = 0; good && t < triangles; t++) {
        const int32_t *v = old + 3 * (size_t)t;
        const int32_t m01 = middle_of(mesh, &known, v[0], v[1]);
        const int32_t m12 = middle_of(mesh, &known, v[1], v[2]);
        const int32_t m20 = middle_of(mesh, &known, v[2], v[0]);
        add_triangle(mesh, v[0], m01, m20);
        add_triangle(mesh, v[1], m12, m01);
        add_triangle(mesh, v[2], m20, m12);
        add_triangle(mesh, m01, m12, m20);
    }
    free(old);
    free(known.of);
    return good;
}

static bool make_sphere(tb_mesh_data *mesh, int32_t subdivisions)
{
    /* golden rectangles in the planes xy, yz, zx; faces around vertex 0, its ring, and opposite */
    static const int32_t FACES[20][3] = {
        {0, 11, 5},  {0, 5, 1},  {0, 1, 7},  {0, 7, 10}, {0, 10, 11}, {1, 5, 9}, {5, 11, 4},
        {11, 10, 2}, {10, 7, 6}, {7, 1, 8},  {3, 9, 4},  {3, 4, 2},   {3, 2, 6}, {3, 6, 8},
        {3, 8, 9},   {4, 9, 5},  {2, 4, 11}, {6, 2, 10}, {8, 6, 7},   {9, 8, 1}};
    const size_t triangles = (size_t)20 << 2 * subdivisions;
    if (!reserve(mesh, triangles / 2 + 2, triangles)) return false;
    const double golden = tb_round_to_float((1.0 + sqrt(5.0)) / 2.0);
    const double norm = sqrt(1.0 + (double)((float)golden * (float)golden));
    for (int plane = 0; plane < 3; plane++)
        for (int i = 0; i < 4; i++) {
            const double one = (i % 2 == 0 ? -1.0 : 1.0) / norm;
            const double far = (i < 2 ? golden : -golden) / norm;
            double p[3] = {0};
            p[plane] = one;
            p[(plane + 1) % 3] = far;
            add_vertex(mesh, p[0], p[1], p[2]);
        }
    for (int f = 0; f < 20; f++) add_triangle(mesh, FACES[f][0], FACES[f][1], FACES[f][2]);
    for (int32_t i = 0; i < subdivisions; i++)
        if (!subdivide(mesh)) return false;
    return true;
}

/* ---- hemisphere: four triangular sheets from the pole to the equator ---- */

static int32_t hemisphere_ring(int32_t row)
{
    return 2 * row * (row + 1) + 1; /* first vertex of a ring; it has 4 (row + 1) */
}

static bool make_hemisphere(tb_mesh_data *mesh, int32_t resolution)
{
    static const double EQUATOR[5][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}, {1, 0}};
    const size_t n = (size_t)resolution + 1;
    if (!reserve(mesh, 2 + 2 * n * (n + 1), 4 * n * n + 4 * n)) return false;
    add_vertex(mesh, 0, 0, 1);
    for (int32_t row = 0; row <= resolution; row++) {
        const double down = (double)(row + 1) / (resolution + 1);
        for (int side = 0; side < 4; side++)
            for (int32_t i = 0; i <= row; i++) {
                /* on the octahedron, then out to the sphere */
                double p[3] = {0, 0, 1 - down};
                for (int k = 0; k < 2; k++) {
                    const double from = down * EQUATOR[side][k], to = down * EQUATOR[side + 1][k];
                    p[k] = from + i * ((to - from) / (row + 1));
                }
                const double norm = sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]);
                add_vertex(mesh, p[0] / norm, p[1] / norm, p[2] / norm);
            }
    }
    const int32_t centre = add_vertex(mesh, 0, 0, 0);

    for (int32_t i = 0; i < 4; i++) add_triangle(mesh, 0, 1 + i, 1 + (i + 1) % 4);
    for (int32_t row = 0; row < resolution; row++) {
        const int32_t upper = hemisphere_ring(row), lower = hemisphere_ring(row + 1);
        const int32_t in_upper = 4 * (row + 1), in_lower = 4 * (row + 2);
        for (int32_t side = 0; side < 4; side++)
            for (int32_t i = 0; i < row + 2; i++) {
                const int32_t u = i + (row + 1) * side, l = i + (row + 2) * side;
                add_triangle(mesh, upper + u % in_upper, lower + l % in_lower,
                             lower + (l + 1) % in_lower);
                if (i < row + 1)
                    add_triangle(mesh, upper + u % in_upper, lower + (l + 1) % in_lower,
                                 upper + (u + 1) % in_upper);
            }
    }
    const int32_t rim = hemisphere_ring(resolution), in_rim = 4 * (resolution + 1);
    for (int32_t i = 0; i < in_rim; i++)
        add_triangle(mesh, rim + i, centre, rim + (i + 1) % in_rim);
    return true;
}

/* ---- superquadrics ---- */

/* cosine and sine with their size raised to a power, the sign kept */
static double power_cos(double angle, double exponent)
{
    return copysign(pow(fabs(cos(angle)), exponent), cos(angle));
}

static double power_sin(double angle, double exponent)
{
    return copysign(pow(fabs(sin(angle)), exponent), sin(angle));
}

static bool make_supersphere(tb_mesh_data *mesh, int32_t n, double e, double along)
{
    const size_t size = (size_t)n;
    if (!reserve(mesh, (size - 1) * size + 2, 2 * size * (size - 1))) return false;
    add_vertex(mesh, 0, 0, -1);
    for (int32_t i = 1; i < n; i++) {
        const double v = -PI / 2 + i * PI / n;
        for (int32_t j = 0; j < n; j++) {
            const double u = -PI + j * 2 * PI / n;
            add_vertex(mesh, power_cos(v, along) * power_cos(u, e),
                       power_cos(v, along) * power_sin(u, e), power_sin(v, along));
        }
    }
    const int32_t north = add_vertex(mesh, 0, 0, 1);
    for (int32_t j = 0; j < n; j++) add_triangle(mesh, 0, 1 + (j + 1) % n, 1 + j);
    for (int32_t i = 0; i < n - 2; i++)
        for (int32_t j = 0; j < n; j++) {
            const int32_t row = 1 + i * n, next = (j + 1) % n;
            add_quadrangle(mesh, row + j, row + next, row + n + next, row + n + j);
        }
    const int32_t last = 1 + (n - 2) * n;
    for (int32_t j = 0; j < n; j++) add_triangle(mesh, last + j, last + (j + 1) % n, north);
    return true;
}

static bool make_supertorus(tb_mesh_data *mesh, int32_t n, double radius, double s, double t)
{
    const size_t size = (size_t)n;
    if (!reserve(mesh, size * size, 2 * size * size)) return false;
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j < n; j++) {
            const double u = 2 * PI * i / n, v = 2 * PI * j / n;
            const double out = 1 + radius * power_cos(v, s);
            add_vertex(mesh, out * power_cos(u, t), out * power_sin(u, t),
                       radius * power_sin(v, s));
        }
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j < n; j++) {
            const int32_t row = i * n, next_row = (i + 1) % n * n, next = (j + 1) % n;
            add_quadrangle(mesh, row + j, next_row + j, next_row + next, row + next);
        }
    return true;
}

/* ---- cone, wedge, plate ---- */

static bool make_cone(tb_mesh_data *mesh, int32_t edges, double top)
{
    if (!reserve(mesh, 2 * (size_t)edges + 1, 0)) return false;
    for (int32_t i = 0; i < edges; i++)
        add_vertex(mesh, cos(2 * i * PI / edges), sin(2 * i * PI / edges), -1);
    if (!(top > 0)) {
        add_vertex(mesh, 0, 0, 1);
        return true;
    }
    for (int32_t i = edges; i < 2 * edges; i++)
        add_vertex(mesh, top * cos(2 * i * PI / edges), top * sin(2 * i * PI / edges), 1);
    return true;
}

/* Edge `i` of `n` bins over the field of view (rad), denser in the middle by gamma. */
static double wedge_edge(int32_t i, int32_t n, double field, double gamma)
{
    double x = -1;
    for (int32_t k = 0; k < i; k++) x += 2.0 / n; /* summed, as its rounding shows in the float */
    if (gamma != 0) x = gamma * pow(x, 5) + (1 - gamma) * x;
    return x * (field * PI / 180);
}

static bool make_wedge(tb_mesh_data *mesh, int32_t nx, int32_t ny, const double field[2],
                       double gamma)
{
    if (!reserve(mesh, (size_t)nx * (size_t)ny, 0)) return false;
    for (int32_t i = 0; i < nx; i++)
        for (int32_t j = 0; j < ny; j++) {
            const double azimuth =
                0.5 * (wedge_edge(i + 1, nx, field[0], gamma) + wedge_edge(i, nx, field[0], gamma));
            const double elevation =
                0.5 * (wedge_edge(j + 1, ny, field[1], gamma) + wedge_edge(j, ny, field[1], gamma));
            add_vertex(mesh, cos(elevation) * sin(azimuth), sin(elevation),
                       -cos(elevation) * cos(azimuth));
        }
    return true;
}

static bool make_plate(tb_mesh_data *mesh, int32_t nx, int32_t ny)
{
    if (!reserve(mesh, (size_t)nx * (size_t)ny, 2 * (size_t)nx * (size_t)ny)) return false;
    for (int32_t i = 0; i < nx; i++)
        for (int32_t j = 0; j < ny; j++)
            add_vertex(mesh, -1 + (i + 0.5) * (2.0 / nx), -1 + (j + 0.5) * (2.0 / ny), -1);
    for (int32_t i = 1; i < nx; i++)
        for (int32_t j = 1; j < ny; j++) {
            const int32_t before = (i - 1) * ny + j, here = i * ny + j;
            add_triangle(mesh, before - 1, here - 1, before);
            add_triangle(mesh, here, before, here - 1);
        }
    return true;
}

/* ---- parameters ---- */

/* Range of a parameter: integers are cut off, as MuJoCo does. */
typedef struct parameter_rule {
    const char *name;
    double least, most;
    bool open, integer; /* open: least itself is out of range */
} parameter_rule;

typedef struct builtin_rule {
    const char *name;
    int32_t count;
    parameter_rule parameters[PARAMETER_LIMIT];
} builtin_rule;

static const builtin_rule RULES[] = {
    {"sphere", 1, {{"subdivisions", 0, 4, false, true}}},
    {"hemisphere", 1, {{"resolution", 0, 10, false, true}}},
    {"cone", 2, {{"edges", 3, RESOLUTION_LIMIT, false, true}, {"radius", 0, 1e6, false, false}}},
    {"supersphere",
     3,
     {{"resolution", 3, RESOLUTION_LIMIT, false, true},
      {"e", 0, 1e3, false, false},
      {"n", 0, 1e3, false, false}}},
    {"supertorus",
     4,
     {{"resolution", 3, RESOLUTION_LIMIT, false, true},
      {"radius", 0, 1, true, false},
      {"s", 0, 1e3, true, false},
      {"t", 0, 1e3, true, false}}},
    {"wedge",
     5,
     {{"horizontal resolution", 1, RESOLUTION_LIMIT, false, true},
      {"vertical resolution", 1, RESOLUTION_LIMIT, false, true},
      {"horizontal field of view", 0, 180, true, false},
      {"vertical field of view", 0, 90, true, false},
      {"gamma", 0, 1, false, false}}},
    {"plate",
     2,
     {{"horizontal resolution", 1, RESOLUTION_LIMIT, false, true},
      {"vertical resolution", 1, RESOLUTION_LIMIT, false, true}}},
};

static tb_status check_parameters(const builtin_rule *rule, const double *given, int32_t count,
                                  double parameters[PARAMETER_LIMIT], tb_error *error)
{
    if (count != rule->count)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "params",
                             "builtin=\"%s\" takes %d params, not %d", rule->name, (int)rule->count,
                             (int)count);
    for (int32_t i = 0; i < count; i++) {
        const parameter_rule *p = &rule->parameters[i];
        const double x = p->integer ? trunc(given[i]) : given[i];
        if (!(p->open ? x > p->least : x >= p->least) || !(x <= p->most))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "params",
                                 "builtin=\"%s\": %s is %g, not %s %g and at most %g", rule->name,
                                 p->name, given[i], p->open ? "above" : "at least", p->least,
                                 p->most);
        parameters[i] = x;
    }
    return TB_OK;
}

tb_status tb_mesh_make_builtin(tb_builtin_mesh kind, const double *parameters, int32_t count,
                               tb_mesh_data *mesh, tb_error *error)
{
    double p[PARAMETER_LIMIT] = {0};
    memset(mesh, 0, sizeof *mesh);
    const tb_status status = check_parameters(&RULES[kind], parameters, count, p, error);
    if (status != TB_OK) return status;
    const int32_t n = (int32_t)p[0];
    bool good = false;
    switch (kind) {
    case TB_BUILTIN_SPHERE: good = make_sphere(mesh, n); break;
    case TB_BUILTIN_HEMISPHERE: good = make_hemisphere(mesh, n); break;
    case TB_BUILTIN_CONE: good = make_cone(mesh, n, p[1]); break;
    case TB_BUILTIN_SUPERSPHERE: good = make_supersphere(mesh, n, p[1], p[2]); break;
    case TB_BUILTIN_SUPERTORUS: good = make_supertorus(mesh, n, p[1], p[2], p[3]); break;
    case TB_BUILTIN_WEDGE: good = make_wedge(mesh, n, (int32_t)p[1], p + 2, p[4]); break;
    case TB_BUILTIN_PLATE: good = make_plate(mesh, n, (int32_t)p[1]); break;
    }
    if (good) return TB_OK;
    tb_mesh_data_free(mesh);
    return tb_fail_memory(error, (size_t)n * sizeof *mesh->vertices, "a mesh");
}
