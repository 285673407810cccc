/* Elements as posed shapes: segments as capsules, triangles as flat hulls that a ball is rolled over. Part of
 * detect.c. */
#ifndef TB_ELEMENT_POSE_H
#define TB_ELEMENT_POSE_H

#include <string.h>

#include "step/stages/detect/detection.h"

/* An element as a capsule, or as a flat hull that a ball is rolled over. */
typedef struct element_pose {
    tb_posed_shape posed;
    tb_hull hull;
    double vertices[9], planes[8];
    tb_vec3 corners[3];
    tb_vec3 velocity; /* m/s, the mean of the corners' */
    tb_real spread;   /* m/s, the farthest from it */
    tb_box box;       /* swept */
} element_pose;

TB_STATIC void pose_capsule(element_pose *p, tb_real radius)
{
    const tb_vec3 along = tb_v3_sub(p->corners[1], p->corners[0]);
    const tb_real length = tb_v3_length(along);
    const tb_vec3 z = length > 0 ? tb_v3_scale(along, 1 / length) : tb_v3(0, 0, 1);
    tb_vec3 x, y;
    tb_v3_tangents(z, &x, &y);
    p->posed.type = TB_SHAPE_CAPSULE;
    p->posed.size = tb_v3(radius, length / 2, 0);
    p->posed.pose.position = tb_v3_lerp(p->corners[0], p->corners[1], TB_R(0.5));
    p->posed.pose.rotation = TB_VALUE(tb_mat33){{x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z}};
}

/* Sides of a triangle: its edges from each corner to the next, the upper face left of them. */
TB_STATIC void pose_triangle(element_pose *p, tb_real radius)
{
    static const int32_t FACE_START[] = {0, 3, 6}, FACES[] = {0, 1, 2, 0, 2, 1},
                         EDGES[] = {0, 1, 0, 1, 1, 2, 0, 1, 2, 0, 0, 1},
                         NEIGHBOUR_START[] = {0, 2, 4, 6}, NEIGHBOURS[] = {1, 2, 0, 2, 0, 1};
    const tb_vec3 middle = tb_v3_scale(
        tb_v3_add(tb_v3_add(p->corners[0], p->corners[1]), p->corners[2]), TB_R(1.0 / 3));
    const tb_vec3 across = tb_v3_cross(tb_v3_sub(p->corners[1], p->corners[0]),
                                       tb_v3_sub(p->corners[2], p->corners[0]));
    const tb_real area = tb_v3_length(across);
    const tb_vec3 normal = area > 0 ? tb_v3_scale(across, 1 / area) : tb_v3(0, 0, 1);
    tb_vec3 lower = tb_v3(0, 0, 0), upper = lower;
    for (int k = 0; k < 3; k++) {
        const tb_vec3 v = tb_v3_sub(p->corners[k], middle);
        tb_v3_store(&p->vertices[3 * k], v);
        lower = tb_v3_min(lower, v);
        upper = tb_v3_max(upper, v);
    }
    tb_v3_store(&p->planes[0], normal);
    tb_v3_store(&p->planes[4], tb_v3_negate(normal));
    p->planes[3] = p->planes[7] = 0;
    p->hull = TB_VALUE(tb_hull){.number_of_vertices = 3,
                                .number_of_faces = 2,
                                .number_of_edges = 3,
                                .number_of_face_indices = 6,
                                .vertices = p->vertices,
                                .planes = p->planes,
                                .face_start = FACE_START,
                                .face_vertices = FACES,
                                .edges = EDGES,
                                .neighbour_start = NEIGHBOUR_START,
                                .neighbours = NEIGHBOURS};
    tb_v3_store(p->hull.middle, tb_v3_lerp(lower, upper, TB_R(0.5)));
    tb_v3_store(p->hull.half, tb_v3_scale(tb_v3_sub(upper, lower), TB_R(0.5)));
    p->posed.type = TB_SHAPE_CONVEX;
    p->posed.size = tb_v3(radius, 0, 0);
    p->posed.hull = &p->hull;
    p->posed.pose = tb_pose_identity();
    p->posed.pose.position = middle;
}

TB_STATIC void pose_element(const tb_world *w, const tb_model_element *e, element_pose *p)
{
    const tb_model *m = w->model;
    const tb_real radius = TB_R(m->shapes[e->balls[0]].size[0]);
    tb_vec3 velocities[3];
    memset(p, 0, sizeof *p);
    for (int32_t k = 0; k < e->corners; k++) {
        const shape_motion own = look_at_shape(w, e->balls[k]);
        p->corners[k] = own.posed.pose.position;
        velocities[k] = own.velocity;
        p->velocity = tb_v3_add_scaled(p->velocity, own.velocity, 1 / (tb_real)e->corners);
    }
    for (int32_t k = 0; k < e->corners; k++)
        p->spread = tb_max(p->spread, tb_v3_length(tb_v3_sub(velocities[k], p->velocity)));
    if (e->corners == 2)
        pose_capsule(p, radius);
    else
        pose_triangle(p, radius);
    const tb_box box = tb_shape_box(&p->posed);
    p->box = tb_box_swept(&box, p->velocity, p->spread, look_ahead(w), least_margin(w));
}

#endif
