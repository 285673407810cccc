/* Largest distance at which two shapes can meet within the step.
 *
 * Speculative contacts replace swept ones. A pair's margin is the contact margin plus the
 * distance by which the two shapes can approach each other within the step. A contact with a
 * positive gap only bounds the approach speed by gap / time, so a superfluous contact costs a
 * row and never causes a force, while a missing one lets a finger through a wall. */
#ifndef TB_APPROACH_H
#define TB_APPROACH_H

#include "collide/collide.h"

/* A shape where its body is. A mesh that is closed and convex is its hull, and the mesh's radius is in
 * `size.x`. */
TB_FN tb_posed_shape tb_shape_at(const tb_model *m, const tb_model_shape *shape,
                                 const tb_pose *body)
{
    tb_posed_shape posed;
    tb_pose local;
    local.position = tb_v3_load(shape->position);
    for (int k = 0; k < 9; k++) local.rotation.m[k] = TB_R(shape->rotation[k]);
    posed.type = shape->type;
    posed.size = tb_v3_load(shape->size);
    posed.pose = tb_pose_mul(body, &local);
    posed.hull = shape->type == TB_SHAPE_CONVEX ? &m->hulls[shape->asset] : NULL;
    posed.mesh = NULL;
    posed.field = shape->type == TB_SHAPE_HEIGHT_FIELD ? &m->height_fields[shape->asset] : NULL;
    if (shape->type == TB_SHAPE_MESH) {
        /* by the type, not by posed.mesh: ptxas 13.0 tests a pointer that was just cleared too early */
        const tb_triangle_mesh *mesh = &m->meshes[shape->asset];
        if (mesh->hull < 0) {
            posed.mesh = mesh;
        } else {
            posed.type = TB_SHAPE_CONVEX;
            posed.hull = &m->hulls[mesh->hull];
        }
    }
    return posed;
}

/* Speed of the shape's farthest point about its body's origin, m/s. */
TB_FN tb_real tb_shape_spin(const tb_model_shape *shape, tb_vec3 angular)
{
    return shape->type == TB_SHAPE_PLANE || shape->type == TB_SHAPE_HEIGHT_FIELD
               ? 0
               : tb_v3_length(angular) * TB_R(shape->reach);
}

/* The box enlarged by half the margin (m), and swept along the shape's own motion for `time`. */
TB_FN tb_box tb_box_swept(const tb_box *box, tb_vec3 velocity, tb_real spin, tb_real time,
                          tb_real margin)
{
    tb_box swept;
    const tb_vec3 way = tb_v3_scale(velocity, time);
    const tb_real grow = margin * TB_R(0.5) + spin * time;
    const tb_vec3 g = tb_v3(grow, grow, grow), zero = tb_v3(0, 0, 0);
    swept.lower = tb_v3_sub(tb_v3_add(box->lower, tb_v3_min(way, zero)), g);
    swept.upper = tb_v3_add(tb_v3_add(box->upper, tb_v3_max(way, zero)), g);
    return swept;
}

/* The gap up to which two shapes get contacts, m. */
TB_FN tb_real tb_pair_margin(tb_vec3 velocity_a, tb_real spin_a, tb_vec3 velocity_b, tb_real spin_b,
                             tb_real time, tb_real margin)
{
    const tb_real approach = tb_v3_length(tb_v3_sub(velocity_a, velocity_b)) + spin_a + spin_b;
    return margin + time * approach;
}

#endif
