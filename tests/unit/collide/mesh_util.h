/* Meshes and hulls for the tests of the mesh half: floors, boxes, spheres and mugs of triangles. */
#ifndef MESH_UTIL_H
#define MESH_UTIL_H

#include "collide/collide.h"
#include "test_util.h"

enum { MESH_POINTS = 512 };

typedef struct contacts {
    tb_contact_point p[MESH_POINTS];
    int32_t count;
    uint32_t flags;
} contacts;

/* A list of vertices and triangles under construction. */
typedef struct soup {
    double *vertices;
    int32_t *triangles;
    int32_t number_of_vertices, number_of_triangles, room_vertices, room_triangles;
} soup;

static inline int32_t soup_vertex(soup *s, double x, double y, double z)
{
    if (s->number_of_vertices == s->room_vertices) {
        s->room_vertices = 2 * s->room_vertices + 64;
        s->vertices = realloc(s->vertices, sizeof(double) * 3 * (size_t)s->room_vertices);
        ck_assert_ptr_nonnull(s->vertices);
    }
    double *v = &s->vertices[3 * s->number_of_vertices];
    v[0] = x;
    v[1] = y;
    v[2] = z;
    return s->number_of_vertices++;
}

static inline void soup_triangle(soup *s, int32_t a, int32_t b, int32_t c)
{
    if (s->number_of_triangles == s->room_triangles) {
        s->room_triangles = 2 * s->room_triangles + 64;
        s->triangles = realloc(s->triangles, sizeof(int32_t) * 3 * (size_t)s->room_triangles);
        ck_assert_ptr_nonnull(s->triangles);
    }
    int32_t *t = &s->triangles[3 * s->number_of_triangles++];
    t[0] = a;
    t[1] = b;
    t[2] = c;
}

static inline void soup_quad(soup *s, int32_t a, int32_t b, int32_t c, int32_t d)
{
    soup_triangle(s, a, b, c);
    soup_triangle(s, a, c, d);
}

static inline void soup_free(soup *s)
{
    free(s->vertices);
    free(s->triangles);
}

/* The compiled mesh; the soup is freed. */
static inline tb_triangle_mesh soup_mesh(soup *s, tb_arena *arena)
{
    tb_triangle_mesh mesh;
    tb_error error = {0};
    TEST_OK(tb_triangle_mesh_build(s->vertices, s->number_of_vertices, s->triangles,
                                   s->number_of_triangles, arena, &mesh, &error),
            &error);
    soup_free(s);
    return mesh;
}

/* A parallelogram of n x m quads from `origin` along u and v, normal u x v. Vertices inside are
 * moved about within the plane by up to `jitter` of a step. */
static inline void soup_patch(soup *s, const double origin[3], const double u[3], const double v[3],
                              int n, int m, double jitter, tb_random *random)
{
    const int32_t first = s->number_of_vertices;
    for (int i = 0; i <= n; i++)
        for (int j = 0; j <= m; j++) {
            double a = (double)i / n, b = (double)j / m;
            if (jitter > 0 && i > 0 && i < n && j > 0 && j < m) {
                a += tb_random_between(random, -jitter, jitter) / n;
                b += tb_random_between(random, -jitter, jitter) / m;
            }
            soup_vertex(s, origin[0] + a * u[0] + b * v[0], origin[1] + a * u[1] + b * v[1],
                        origin[2] + a * u[2] + b * v[2]);
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            const int32_t p = first + i * (m + 1) + j;
            if ((i + j) % 2)
                soup_quad(s, p, p + m + 1, p + m + 2, p + 1);
            else
                soup_quad(s, p + m + 1, p + m + 2, p + 1, p);
        }
}

/* n x n quads of a square floor of half side `half`, normal +Z, at height z */
static inline void soup_floor(soup *s, double half, double z, int n, double jitter,
                              tb_random *random)
{
    soup_patch(s, (const double[]){-half, -half, z}, (const double[]){2 * half, 0, 0},
               (const double[]){0, 2 * half, 0}, n, n, jitter, random);
}

/* A closed box of n x n quads a side. */
static inline void soup_box(soup *s, double x, double y, double z, int n)
{
    const double h[3] = {x, y, z};
    for (int axis = 0; axis < 3; axis++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const int b = (axis + 1) % 3, c = (axis + 2) % 3;
            double origin[3], u[3] = {0}, v[3] = {0};
            origin[axis] = sign * h[axis];
            origin[b] = -h[b];
            origin[c] = -h[c];
            u[sign > 0 ? b : c] = 2 * h[sign > 0 ? b : c];
            v[sign > 0 ? c : b] = 2 * h[sign > 0 ? c : b];
            soup_patch(s, origin, u, v, n, n, 0, NULL);
        }
}

/* A sphere of n meridians and n / 2 parallels. */
static inline void soup_sphere(soup *s, double radius, int n)
{
    const double pi = 3.14159265358979323846;
    const int rings = n / 2;
    const int32_t south = soup_vertex(s, 0, 0, -radius);
    for (int i = 1; i < rings; i++)
        for (int k = 0; k < n; k++) {
            const double a = pi * i / rings, b = 2 * pi * k / n;
            soup_vertex(s, radius * sin(a) * cos(b), radius * sin(a) * sin(b), -radius * cos(a));
        }
    const int32_t north = soup_vertex(s, 0, 0, radius);
    for (int k = 0; k < n; k++) {
        const int32_t next = (k + 1) % n;
        soup_triangle(s, south, south + 1 + next, south + 1 + k);
        for (int i = 0; i < rings - 2; i++) {
            const int32_t row = south + 1 + i * n;
            soup_quad(s, row + k, row + next, row + n + next, row + n + k);
        }
        const int32_t last = north - n;
        soup_triangle(s, last + k, last + next, north);
    }
}

/* A mug without a handle: outer radius r, wall t, floor t thick, height h, n segments around, m up
 * the wall; axis +Z, bottom at z = 0. */
static inline void soup_mug(soup *s, double r, double t, double h, int n, int m)
{
    const double pi = 3.14159265358979323846;
    const int32_t bottom = soup_vertex(s, 0, 0, 0), inside = soup_vertex(s, 0, 0, t);
    const int32_t rings = s->number_of_vertices; /* outer m + 1, then inner m + 1 */
    for (int side = 0; side < 2; side++)
        for (int i = 0; i <= m; i++)
            for (int k = 0; k < n; k++) {
                const double a = 2 * pi * k / n, radius = side ? r - t : r;
                const double z = side ? t + (h - t) * i / m : h * i / m;
                soup_vertex(s, radius * cos(a), radius * sin(a), z);
            }
    const int32_t inner = rings + (m + 1) * n;
    for (int k = 0; k < n; k++) {
        const int32_t next = (k + 1) % n;
        soup_triangle(s, bottom, rings + next, rings + k);
        soup_triangle(s, inside, inner + k, inner + next);
        for (int i = 0; i < m; i++) {
            const int32_t o = rings + i * n, p = inner + i * n;
            soup_quad(s, o + k, o + next, o + n + next, o + n + k);
            soup_quad(s, p + next, p + k, p + n + k, p + n + next);
        }
        const int32_t o = rings + m * n, p = inner + m * n;
        soup_quad(s, o + k, o + next, p + next, p + k);
    }
}

static inline tb_pose pose_at(double x, double y, double z)
{
    tb_pose p = tb_pose_identity();
    p.position = tb_v3(TB_R(x), TB_R(y), TB_R(z));
    return p;
}

static inline tb_pose pose_random(tb_random *random, double reach)
{
    tb_pose p;
    p.position = tb_v3(TB_R(tb_random_between(random, -reach, reach)),
                       TB_R(tb_random_between(random, -reach, reach)),
                       TB_R(tb_random_between(random, -reach, reach)));
    const tb_quaternion q =
        tb_q_normalize(tb_q(TB_R(tb_random_normal(random)), TB_R(tb_random_normal(random)),
                            TB_R(tb_random_normal(random)), TB_R(tb_random_normal(random))));
    p.rotation = tb_q_matrix(q);
    return p;
}

static inline tb_posed_shape shape_of(tb_shape_type type, double x, double y, double z,
                                      tb_pose pose)
{
    tb_posed_shape s = {.type = type, .size = tb_v3(TB_R(x), TB_R(y), TB_R(z)), .pose = pose};
    return s;
}

static inline tb_posed_shape shape_of_mesh(const tb_triangle_mesh *mesh, tb_pose pose)
{
    tb_posed_shape s = {.type = TB_SHAPE_MESH, .mesh = mesh, .pose = pose};
    return s;
}

static inline contacts collide(const tb_posed_shape *a, const tb_posed_shape *b, double margin,
                               tb_arena *arena)
{
    contacts c;
    memset(&c, 0, sizeof c);
    c.count = tb_collide_pair(a, b, TB_R(margin), c.p, MESH_POINTS, arena, &c.flags);
    ck_assert_int_ge(c.count, 0);
    ck_assert_int_le(c.count, MESH_POINTS);
    for (int32_t i = 0; i < c.count; i++) {
        const tb_contact_point *p = &c.p[i];
        ck_assert(isfinite((double)p->gap) && p->gap <= TB_R(margin));
        TEST_NEAR(tb_v3_length(p->normal), 1, 16 * (double)TB_REAL_EPSILON);
        for (int32_t k = 0; k < i; k++) ck_assert(p->feature != c.p[k].feature);
    }
    return c;
}

static inline double least_gap(const contacts *c)
{
    double least = HUGE_VAL;
    for (int32_t i = 0; i < c->count; i++) least = fmin(least, (double)c->p[i].gap);
    return least;
}

/* ---- convex shapes against them ---- */

/* 1e-12 in double, scaled to the working precision */
static const double tight = 4500 * (double)TB_REAL_EPSILON;

static const tb_shape_type convex_types[] = {TB_SHAPE_SPHERE, TB_SHAPE_CAPSULE,   TB_SHAPE_CYLINDER,
                                             TB_SHAPE_BOX,    TB_SHAPE_ELLIPSOID, TB_SHAPE_CONVEX};
enum { CONVEX_TYPES = sizeof convex_types / sizeof convex_types[0] };

static inline tb_hull random_hull(tb_arena *arena, tb_random *random, double size)
{
    double points[3 * 20];
    for (int i = 0; i < 60; i++) points[i] = size * tb_random_between(random, -1, 1);
    tb_hull hull;
    tb_error error = {0};
    TEST_OK(tb_hull_build(points, 20, arena, &hull, &error), &error);
    return hull;
}

static inline tb_posed_shape convex_shape(tb_shape_type type, double size, const tb_hull *hull,
                                          tb_pose pose)
{
    tb_posed_shape s = shape_of(type, 0.8 * size, 0.5 * size, 0.3 * size, pose);
    if (type == TB_SHAPE_CONVEX) s.hull = hull;
    return s;
}

/* lowest point of a shape over the plane z = 0 */
static inline double lowest_gap(const tb_posed_shape *shape, tb_arena *arena)
{
    const tb_posed_shape plane = shape_of(TB_SHAPE_PLANE, 0, 0, 0, tb_pose_identity());
    const contacts c = collide(&plane, shape, 1e6, arena);
    ck_assert_int_gt(c.count, 0);
    return least_gap(&c);
}

#endif
