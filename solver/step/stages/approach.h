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

/* A shape in motion with its body. */
typedef struct tb_flight {
    tb_box box;                        /* not swept */
    tb_vec3 origin, velocity, angular; /* of the body: m, m/s there, rad/s */
    tb_real spin;                      /* see tb_shape_spin */
} tb_flight;

/* Velocity of a point that moves with a shape's body, m/s. */
TB_FN tb_vec3 tb_flight_velocity(const tb_flight *f, tb_vec3 point)
{
    return tb_v3_add(f->velocity, tb_v3_cross(f->angular, tb_v3_sub(point, f->origin)));
}

/* The same bound as tb_pair_margin's, but over the region where the surfaces can meet, for meshes, whose
 * number of pairs of triangles grows with the cube of the margin: bodies that roll on each other are
 * slow there and fast elsewhere. The region is the part of the box of `a` within `margin` of the box
 * of `b`. The relative velocity is affine in the point, so that its largest speed is at a corner.
 * Two terms cover the rest: the points that meet are up to `margin` apart, and move on arcs.
 * margin: m, of tb_pair_margin; least: m, at rest. */
TB_FN tb_real tb_local_margin(const tb_flight *a, const tb_flight *b, tb_real margin, tb_real time,
                              tb_real least)
{
    const tb_vec3 reach = tb_v3(margin, margin, margin);
    const tb_vec3 lower = tb_v3_max(a->box.lower, tb_v3_sub(b->box.lower, reach));
    const tb_vec3 upper = tb_v3_min(a->box.upper, tb_v3_add(b->box.upper, reach));
    tb_real fastest2 = 0;
    for (int corner = 0; corner < 8; corner++) {
        const tb_vec3 point = tb_v3(corner & 1 ? upper.x : lower.x, corner & 2 ? upper.y : lower.y,
                                    corner & 4 ? upper.z : lower.z);
        const tb_vec3 speed = tb_v3_sub(tb_flight_velocity(a, point), tb_flight_velocity(b, point));
        fastest2 = tb_max(fastest2, tb_v3_length2(speed));
    }
    const tb_real turn_a = tb_v3_length(a->angular), turn_b = tb_v3_length(b->angular);
    const tb_real arcs = TB_R(0.5) * time * (turn_a * a->spin + turn_b * b->spin);
    const tb_real approach = tb_sqrt(fastest2) + turn_b * margin + arcs;
    return tb_min(margin, least + time * approach);
}

#endif
