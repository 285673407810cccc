/* An object's colliding surface as triangles in its own frame, for sampling grasps. Round
 * primitives become polyhedra inscribed in them. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grasp/surface.h"

static const double PI = 3.14159265358979323846;
enum { ROUND = 32, HALF_ROUND = 16 }; /* segments of a circle, and of a meridian */

static bool reserve(grasp_surface *s, int32_t extra)
{
    while (s->count + extra > s->capacity) {
        grasp_triangle *grown = tb_grow(s->triangles, s->capacity + 1, &s->capacity, sizeof *grown);
        if (grown == NULL) return false;
        s->triangles = grown;
    }
    return true;
}

/* Adds a triangle, counter-clockwise seen from outside; one without area is left out. */
static bool add(grasp_surface *s, const grasp_frame *frame, tb_vec3 a, tb_vec3 b, tb_vec3 c)
{
    if (!reserve(s, 1)) return false;
    grasp_triangle *t = &s->triangles[s->count];
    t->corner = grasp_frame_out(frame, a);
    t->edge1 = tb_q_rotate(frame->orientation, tb_v3_sub(b, a));
    t->edge2 = tb_q_rotate(frame->orientation, tb_v3_sub(c, a));
    const tb_vec3 normal = tb_v3_cross(t->edge1, t->edge2);
    const double length = tb_v3_length(normal);
    if (!(length > 1e-14)) return true;
    t->normal = tb_v3_scale(normal, 1 / length);
    s->area += length / 2;
    t->area = s->area; /* cumulative area */
    s->count++;
    return true;
}

static bool add_box(grasp_surface *s, const grasp_frame *f, const double h[3])
{
    for (int axis = 0; axis < 3; axis++)
        for (int side = -1; side <= 1; side += 2) {
            double n[3] = {0}, u[3] = {0}, v[3] = {0};
            n[axis] = side * h[axis];
            u[(axis + 1) % 3] = h[(axis + 1) % 3];
            v[(axis + 2) % 3] = side * h[(axis + 2) % 3];
            tb_vec3 corners[4];
            static const int SIGNS[4][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}};
            for (int i = 0; i < 4; i++)
                corners[i] =
                    tb_v3_add_scaled(tb_v3_add_scaled(tb_v3_load(n), tb_v3_load(u), SIGNS[i][0]),
                                     tb_v3_load(v), SIGNS[i][1]);
            if (!add(s, f, corners[0], corners[1], corners[2]) ||
                !add(s, f, corners[0], corners[2], corners[3]))
                return false;
        }
    return true;
}

/* A surface of revolution or an ellipsoid: rings of points, each a height and a radius, scaled. */
static bool add_rings(grasp_surface *s, const grasp_frame *f, double (*rings)[2], int count,
                      const double scale[3])
{
    for (int i = 0; i + 1 < count; i++)
        for (int k = 0; k < ROUND; k++) {
            tb_vec3 p[4];
            for (int c = 0; c < 4; c++) {
                const double *ring = rings[i + c / 2];
                const double angle = 2 * PI * (k + (c == 1 || c == 2)) / ROUND;
                p[c] = tb_v3(scale[0] * ring[1] * cos(angle), scale[1] * ring[1] * sin(angle),
                             scale[2] * ring[0]);
            }
            if (!add(s, f, p[0], p[1], p[2]) || !add(s, f, p[0], p[2], p[3])) return false;
        }
    return true;
}

static bool add_round(grasp_surface *s, const grasp_frame *f, const tb_model_shape *shape)
{
    double rings[2 * HALF_ROUND + 4][2], scale[3] = {1, 1, 1};
    int count = 0;
    if (shape->type == TB_SHAPE_CYLINDER) {
        const double r = shape->size[0], h = shape->size[1];
        double corners[4][2] = {{-h, 0}, {-h, r}, {h, r}, {h, 0}};
        return add_rings(s, f, corners, 4, scale);
    }
    const double r = shape->type == TB_SHAPE_ELLIPSOID ? 1 : shape->size[0];
    const double h = shape->type == TB_SHAPE_CAPSULE ? shape->size[1] : 0;
    if (shape->type == TB_SHAPE_ELLIPSOID) memcpy(scale, shape->size, sizeof scale);
    for (int half = 0; half < 2; half++)
        for (int i = half; i <= HALF_ROUND / 2; i++, count++) {
            const double angle = PI * (i + half * HALF_ROUND / 2) / HALF_ROUND - PI / 2;
            rings[count][0] = r * sin(angle) + (half ? h : -h);
            rings[count][1] = fmax(0, r * cos(angle));
            if (half == 0 && i == HALF_ROUND / 2 && h > 0) {
                count++;
                rings[count][0] = h;
                rings[count][1] = r;
            }
        }
    return add_rings(s, f, rings, count, scale);
}

static bool add_hull(grasp_surface *s, const grasp_frame *f, const tb_hull *hull)
{
    for (int32_t face = 0; face < hull->number_of_faces; face++) {
        const int32_t *v = hull->face_vertices + hull->face_start[face];
        const int32_t n = hull->face_start[face + 1] - hull->face_start[face];
        const tb_vec3 a = tb_v3_load(hull->vertices + 3 * (size_t)v[0]);
        for (int32_t i = 1; i + 1 < n; i++)
            if (!add(s, f, a, tb_v3_load(hull->vertices + 3 * (size_t)v[i]),
                     tb_v3_load(hull->vertices + 3 * (size_t)v[i + 1])))
                return false;
    }
    return true;
}

static bool add_mesh(grasp_surface *s, const grasp_frame *f, const tb_triangle_mesh *mesh)
{
    for (int32_t i = 0; i < mesh->number_of_triangles; i++) {
        const int32_t *t = mesh->triangles + 3 * (size_t)i;
        if (!add(s, f, tb_v3_load(mesh->vertices + 3 * (size_t)t[0]),
                 tb_v3_load(mesh->vertices + 3 * (size_t)t[1]),
                 tb_v3_load(mesh->vertices + 3 * (size_t)t[2])))
            return false;
    }
    return true;
}

/* Frame of a body in the root's, all joints as described; in the world's frame if the body is
 * not below the root. */
static grasp_frame in_root(const tb_model *m, int32_t body, int32_t root)
{
    grasp_frame frame = {tb_v3(0, 0, 0), tb_q_identity()};
    for (; body != root && body > 0; body = m->bodies[body].parent) {
        const grasp_frame own =
            grasp_frame_make(m->bodies[body].position, m->bodies[body].orientation);
        frame = grasp_frame_mul(&own, &frame);
    }
    return frame;
}

tb_status grasp_surface_make(const tb_model *m, grasp_surface *s, tb_error *error)
{
    int32_t root = 0;
    bool done = true;
    memset(s, 0, sizeof *s);
    /* bodies that move relative to each other have no common frame */
    const tb_status status = grasp_object_root(m, &root, error);
    if (status != TB_OK) return status;
    for (int32_t i = 0; i < m->number_of_shapes && done; i++) {
        const tb_model_shape *shape = &m->shapes[i];
        if (shape->body == 0 || (shape->category == 0 && shape->mask == 0)) continue;
        const grasp_frame own = grasp_frame_make(shape->position, shape->orientation);
        const grasp_frame body = in_root(m, shape->body, root);
        const grasp_frame frame = grasp_frame_mul(&body, &own);
        switch (shape->type) {
        case TB_SHAPE_BOX: done = add_box(s, &frame, shape->size); break;
        case TB_SHAPE_SPHERE:
        case TB_SHAPE_CAPSULE:
        case TB_SHAPE_CYLINDER:
        case TB_SHAPE_ELLIPSOID: done = add_round(s, &frame, shape); break;
        case TB_SHAPE_CONVEX: done = add_hull(s, &frame, &m->hulls[shape->asset]); break;
        case TB_SHAPE_MESH: done = add_mesh(s, &frame, &m->meshes[shape->asset]); break;
        default: break;
        }
    }
    if (!done) return tb_fail_memory(error, 0, "an object's surface");
    if (s->count == 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "object",
                             "the object has no surface that collides");
    return TB_OK;
}

void grasp_surface_free(grasp_surface *s)
{
    free(s->triangles);
    memset(s, 0, sizeof *s);
}
