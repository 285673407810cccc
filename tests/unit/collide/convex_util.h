/* Random convex shapes and small hulls, with references that do not use the code under test:
 * support functions of their own, a test whether a point is inside, hulls by trying every
 * triangle. */
#ifndef CONVEX_UTIL_H
#define CONVEX_UTIL_H

#include "base/random.h"
#include "collide/collide.h"
#include "test_util.h"

enum { SMALL_HULL_VERTICES = 12, SMALL_HULL_FACES = 24, SMALL_HULL_CORNERS = 72 };

/* A hull with its memory. */
typedef struct small_hull {
    tb_hull hull;
    double vertices[SMALL_HULL_VERTICES * 3], planes[SMALL_HULL_FACES * 4];
    int32_t face_start[SMALL_HULL_FACES + 1], face_vertices[SMALL_HULL_CORNERS];
    int32_t neighbour_start[SMALL_HULL_VERTICES + 1], neighbours[SMALL_HULL_VERTICES * 11];
} small_hull;

static inline double dot3(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Faces of points in convex position, by trying the plane of every three of them. */
static inline void small_hull_build(small_hull *h, const double *points, int count)
{
    memset(h, 0, sizeof *h);
    memcpy(h->vertices, points, (size_t)count * 3 * sizeof *points);
    double size = 0;
    for (int i = 0; i < 3 * count; i++) size = fmax(size, fabs(points[i]));
    const double flat = 1e-9 * size;
    bool joined[SMALL_HULL_VERTICES][SMALL_HULL_VERTICES] = {{false}};
    int faces = 0, corners = 0;
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++)
            for (int k = j + 1; k < count; k++) {
                const double *p = &points[3 * i], *q = &points[3 * j], *r = &points[3 * k];
                const double u[3] = {q[0] - p[0], q[1] - p[1], q[2] - p[2]};
                const double v[3] = {r[0] - p[0], r[1] - p[1], r[2] - p[2]};
                double n[3] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2],
                               u[0] * v[1] - u[1] * v[0]};
                const double length = sqrt(dot3(n, n));
                if (!(length > flat * size)) continue;
                for (int c = 0; c < 3; c++) n[c] /= length;
                int above = 0, below = 0, on[SMALL_HULL_VERTICES], coplanar = 0;
                for (int m = 0; m < count; m++) {
                    const double s = dot3(n, &points[3 * m]) - dot3(n, p);
                    above += s > flat;
                    below += s < -flat;
                    if (fabs(s) <= flat) on[coplanar++] = m;
                }
                if (above && below) continue;
                if (above) n[0] = -n[0], n[1] = -n[1], n[2] = -n[2];
                bool known = false; /* found from another three of its corners */
                for (int f = 0; f < faces; f++) known |= dot3(n, &h->planes[4 * f]) > 1 - 1e-12;
                if (known) continue;
                /* around the middle, counter-clockwise */
                double middle[3] = {0, 0, 0}, angle[SMALL_HULL_VERTICES], t[3], b[3];
                for (int m = 0; m < coplanar; m++)
                    for (int c = 0; c < 3; c++) middle[c] += points[3 * on[m] + c] / coplanar;
                for (int c = 0; c < 3; c++) t[c] = points[3 * on[0] + c] - middle[c];
                b[0] = n[1] * t[2] - n[2] * t[1];
                b[1] = n[2] * t[0] - n[0] * t[2];
                b[2] = n[0] * t[1] - n[1] * t[0];
                for (int m = 0; m < coplanar; m++) {
                    const double d[3] = {points[3 * on[m]] - middle[0],
                                         points[3 * on[m] + 1] - middle[1],
                                         points[3 * on[m] + 2] - middle[2]};
                    angle[m] = atan2(dot3(d, b), dot3(d, t));
                }
                for (int m = 1; m < coplanar; m++)
                    for (int o = m; o > 0 && angle[o] < angle[o - 1]; o--) {
                        const double swap_angle = angle[o];
                        const int swap_on = on[o];
                        angle[o] = angle[o - 1], angle[o - 1] = swap_angle;
                        on[o] = on[o - 1], on[o - 1] = swap_on;
                    }
                memcpy(&h->planes[4 * faces], n, sizeof n);
                h->planes[4 * faces + 3] = dot3(n, p);
                h->face_start[faces++] = corners;
                for (int m = 0; m < coplanar; m++) {
                    const int from = on[m], to = on[m + 1 < coplanar ? m + 1 : 0];
                    h->face_vertices[corners++] = from;
                    joined[from][to] = joined[to][from] = true;
                }
            }
    h->face_start[faces] = corners;
    int n = 0;
    for (int i = 0; i < count; i++) {
        h->neighbour_start[i] = n;
        for (int j = 0; j < count; j++)
            if (joined[i][j]) h->neighbours[n++] = j;
        for (int c = 0; c < 3; c++) h->hull.centre[c] += points[3 * i + c] / count;
    }
    h->neighbour_start[count] = n;
    h->hull.number_of_vertices = count;
    h->hull.number_of_faces = faces;
    h->hull.number_of_edges = n / 2;
    h->hull.number_of_face_indices = corners;
    h->hull.vertices = h->vertices;
    h->hull.planes = h->planes;
    h->hull.face_start = h->face_start;
    h->hull.face_vertices = h->face_vertices;
    h->hull.neighbour_start = h->neighbour_start;
    h->hull.neighbours = h->neighbours;
}

/* points on an ellipsoid are in convex position */
static inline void small_hull_random(small_hull *h, tb_random *random, double scale)
{
    double points[SMALL_HULL_VERTICES * 3];
    const int count = 4 + (int)(tb_random_u32(random) % 7);
    const double axes[3] = {scale * tb_random_between(random, 0.3, 1),
                            scale * tb_random_between(random, 0.3, 1),
                            scale * tb_random_between(random, 0.3, 1)};
    for (int i = 0; i < count; i++) {
        double p[3], length = 0;
        for (int c = 0; c < 3; c++) p[c] = tb_random_normal(random), length += p[c] * p[c];
        for (int c = 0; c < 3; c++) points[3 * i + c] = axes[c] * p[c] / sqrt(length);
    }
    small_hull_build(h, points, count);
}

static inline void small_hull_box(small_hull *h, double x, double y, double z)
{
    double points[24];
    for (int i = 0; i < 8; i++) {
        points[3 * i] = i & 1 ? x : -x;
        points[3 * i + 1] = i & 2 ? y : -y;
        points[3 * i + 2] = i & 4 ? z : -z;
    }
    small_hull_build(h, points, 8);
}

/* ---- shapes ---- */

static inline tb_posed_shape shape_of(tb_shape_type type, double x, double y, double z)
{
    tb_posed_shape s;
    memset(&s, 0, sizeof s);
    s.type = type;
    if (type != TB_SHAPE_CONVEX) s.size = tb_v3(TB_R(x), TB_R(y), TB_R(z));
    s.pose = tb_pose_identity();
    return s;
}

static inline tb_posed_shape shape_at(tb_posed_shape s, double x, double y, double z)
{
    s.pose.position = tb_v3(TB_R(x), TB_R(y), TB_R(z));
    return s;
}

static inline tb_posed_shape shape_turned(tb_posed_shape s, double x, double y, double z)
{
    s.pose.rotation = tb_q_matrix(tb_q_from_rotation_vector(tb_v3(TB_R(x), TB_R(y), TB_R(z))));
    return s;
}

static inline tb_quaternion random_rotation(tb_random *random)
{
    return tb_q_normalize(tb_q(TB_R(tb_random_normal(random)), TB_R(tb_random_normal(random)),
                               TB_R(tb_random_normal(random)), TB_R(tb_random_normal(random))));
}

static inline tb_vec3 random_direction(tb_random *random)
{
    return tb_v3_normalize(tb_v3(TB_R(tb_random_normal(random)), TB_R(tb_random_normal(random)),
                                 TB_R(tb_random_normal(random))),
                           tb_v3(0, 0, 1));
}

/* A shape of sizes 0.2 to 1 times scale in a random pose within `spread`. One pose in three is
 * axis-aligned, so that faces and edges meet in parallel. */
static inline tb_posed_shape random_shape(tb_random *random, tb_shape_type type, double scale,
                                          double spread, small_hull *memory)
{
    double s[3], p[3];
    for (int c = 0; c < 3; c++) s[c] = scale * tb_random_between(random, 0.2, 1);
    for (int c = 0; c < 3; c++) p[c] = spread * tb_random_between(random, -1, 1);
    tb_posed_shape shape = shape_of(type, s[0], s[1], s[2]);
    if (type == TB_SHAPE_CONVEX) {
        small_hull_random(memory, random, scale);
        shape.hull = &memory->hull;
    }
    shape.pose.position = tb_v3(TB_R(p[0]), TB_R(p[1]), TB_R(p[2]));
    shape.pose.rotation = tb_q_matrix(random_rotation(random));
    if (tb_random_u32(random) % 3 == 0) {
        const uint32_t turn = tb_random_u32(random) % 3;
        const tb_vec3 x = tb_v3(turn == 0, turn == 1, turn == 2);
        const tb_vec3 y = tb_v3(turn == 2, turn == 0, turn == 1);
        shape.pose.rotation = tb_m33_from_columns(x, y, tb_v3_cross(x, y));
    }
    return shape;
}

/* ---- an independent view ---- */

/* farthest point along a direction */
static inline tb_vec3 plain_support(const tb_posed_shape *s, tb_vec3 direction)
{
    const tb_vec3 d = tb_m33_tmul_v3(&s->pose.rotation, direction);
    const tb_vec3 h = s->size;
    tb_vec3 p = tb_v3(0, 0, 0);
    const tb_vec3 u = tb_v3_normalize(d, tb_v3(0, 0, 1));
    if (s->type == TB_SHAPE_SPHERE) {
        p = tb_v3_scale(u, h.x);
    } else if (s->type == TB_SHAPE_CAPSULE) {
        p = tb_v3_scale(u, h.x);
        p.z += d.z > 0 ? h.y : -h.y;
    } else if (s->type == TB_SHAPE_CYLINDER) {
        const tb_vec3 r = tb_v3_normalize(tb_v3(d.x, d.y, 0), tb_v3(0, 0, 0));
        p = tb_v3(r.x * h.x, r.y * h.x, d.z > 0 ? h.y : -h.y);
    } else if (s->type == TB_SHAPE_BOX) {
        p = tb_v3(d.x > 0 ? h.x : -h.x, d.y > 0 ? h.y : -h.y, d.z > 0 ? h.z : -h.z);
    } else if (s->type == TB_SHAPE_ELLIPSOID) {
        const tb_vec3 e = tb_v3_normalize(tb_v3(d.x * h.x, d.y * h.y, d.z * h.z), u);
        p = tb_v3(e.x * h.x, e.y * h.y, e.z * h.z);
    } else {
        tb_real most = -TB_REAL_MAX;
        for (int32_t i = 0; i < s->hull->number_of_vertices; i++) {
            const tb_vec3 v = tb_v3_load(&s->hull->vertices[3 * i]);
            if (tb_v3_dot(d, v) > most) most = tb_v3_dot(d, v), p = v;
        }
    }
    return tb_pose_point(&s->pose, p);
}

/* gap between both along a unit normal from A to B; a lower bound of the signed distance */
static inline tb_real plain_separation(const tb_posed_shape *a, const tb_posed_shape *b,
                                       tb_vec3 normal)
{
    const tb_vec3 on_a = plain_support(a, normal);
    const tb_vec3 on_b = plain_support(b, tb_v3_negate(normal));
    return tb_v3_dot(normal, tb_v3_sub(on_b, on_a));
}

/* How far a point is outside a shape: <= 0 inside; outside at least a good part of the distance. */
static inline tb_real outside(const tb_posed_shape *s, tb_vec3 point)
{
    const tb_vec3 p = tb_pose_inverse_point(&s->pose, point), h = s->size;
    if (s->type == TB_SHAPE_PLANE) return p.z;
    if (s->type == TB_SHAPE_SPHERE) return tb_v3_length(p) - h.x;
    if (s->type == TB_SHAPE_CAPSULE)
        return tb_v3_length(tb_v3(p.x, p.y, p.z - tb_clamp(p.z, -h.y, h.y))) - h.x;
    if (s->type == TB_SHAPE_CYLINDER)
        return tb_max(tb_sqrt(p.x * p.x + p.y * p.y) - h.x, tb_abs(p.z) - h.y);
    if (s->type == TB_SHAPE_BOX)
        return tb_max(tb_abs(p.x) - h.x, tb_max(tb_abs(p.y) - h.y, tb_abs(p.z) - h.z));
    if (s->type == TB_SHAPE_ELLIPSOID)
        return (tb_v3_length(tb_v3(p.x / h.x, p.y / h.y, p.z / h.z)) - 1) *
               tb_min(h.x, tb_min(h.y, h.z));
    tb_real most = -TB_REAL_MAX;
    for (int32_t f = 0; f < s->hull->number_of_faces; f++)
        most = tb_max(most, tb_v3_dot(tb_v3_load(&s->hull->planes[4 * f]), p) -
                                TB_R(s->hull->planes[4 * f + 3]));
    return most;
}

static const char *const shape_names[] = {"plane", "sphere",    "capsule", "cylinder",
                                          "box",   "ellipsoid", "convex"};

#endif
