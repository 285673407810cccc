/* Contact forces from overlaps: the laws of Göteman and Roxling (GPU Usage for Parallel Functions and
 * Contacts in Modelica, Lund 2015), one contact wide.
 *
 * Spheres repel each other as springs, f = c_s d, or by Hertz. Polyhedra repel each other by the law
 * of Nassauer and Kuna, F = E 0.7523 sqrt(V d) (1 + c_d v_d), at the centroid of each disjoint
 * overlap, with friction that depends on the sliding velocity (6.5) and a rotational damping about
 * the normal. The force is a smooth function of poses and velocities, which integrators of ordinary
 * differential equations need. */
#ifndef TB_VOLUME_LAW_H
#define TB_VOLUME_LAW_H

#include <stdbool.h>

#include "base/vector.h"
#include "tribo_scene.h"

/* Springs in series for stiffnesses, which leaves equal materials as they are; else the mean. */
TB_FN tb_volume_constants tb_volume_constants_of_pair(const tb_volume_constants *a,
                                                      const tb_volume_constants *b)
{
    tb_volume_constants c;
    c.elasticity = 2 * a->elasticity * b->elasticity / (a->elasticity + b->elasticity);
    c.damping = (a->damping + b->damping) / 2;
    c.sliding_velocity = (a->sliding_velocity + b->sliding_velocity) / 2;
    c.static_friction = (a->static_friction + b->static_friction) / 2;
    c.kinetic_friction = (a->kinetic_friction + b->kinetic_friction) / 2;
    c.rotation_damping = (a->rotation_damping + b->rotation_damping) / 2;
    c.sphere_stiffness = a->sphere_stiffness > 0 && b->sphere_stiffness > 0
                             ? 2 * a->sphere_stiffness * b->sphere_stiffness /
                                   (a->sphere_stiffness + b->sphere_stiffness)
                             : 0;
    c.joined = a->joined || b->joined;
    return c;
}

/* One disjoint overlap of two bodies. */
typedef struct tb_overlap_part {
    double volume;    /* m^3 */
    double depth;     /* m, (6.4) */
    tb_vec3 centroid; /* m, world */
    tb_vec3 area; /* m^2, world: area vector of the part of B's surface inside A; (6.3) gives the
                         normal as its direction, from B to A */
} tb_overlap_part;

/* Force and torque of one contact on body A, at the part's centroid; body B gets the negatives. */
typedef struct tb_contact_push {
    tb_vec3 force;  /* N */
    tb_vec3 torque; /* N m */
    double normal_force;
} tb_contact_push;

/* Friction coefficient at sliding speed v (6.5): mu_s near v = v_s, mu_k far above it, 0 at rest. */
TB_FN double tb_volume_friction(const tb_volume_constants *c, double speed)
{
    if (!(c->static_friction > 0)) return 0;
    const double x = speed / c->sliding_velocity, x2 = x * x;
    const double ratio = c->kinetic_friction / c->static_friction;
    const double corrected = c->static_friction * (1 - 0.09 * ratio * ratio * ratio * ratio);
    return (2 * corrected - c->kinetic_friction) * x2 / (x2 * x2 + 1) + c->kinetic_friction -
           c->kinetic_friction / (x2 + 1);
}

/* The push of one overlap. velocity: of A relative to B at the centroid, m/s; spin: angular velocity
 * of A relative to B, rad/s. The damping factor 1 + c_d v_d is held at 0 from below, so that no
 * contact pulls. An overlap without a normal (one body inside the other) gives no push. */
TB_FN tb_contact_push tb_volume_push(const tb_volume_constants *c, const tb_overlap_part *part,
                                     tb_vec3 velocity, tb_vec3 spin)
{
    const double k = 0.75225277806367504925; /* 4 / (3 sqrt(pi)) */
    tb_contact_push push;
    push.force = push.torque = tb_v3(0, 0, 0);
    push.normal_force = 0;
    const double area = (double)tb_v3_length(part->area);
    if (!(area > 0) || !(part->volume > 0) || !(part->depth > 0)) return push;
    const tb_vec3 normal = tb_v3_scale(part->area, TB_R(1 / area));
    const double approach = -(double)tb_v3_dot(velocity, normal);
    const double factor = 1 + c->damping * approach;
    if (!(factor > 0)) return push;
    const double force =
        c->elasticity * k * (double)tb_sqrt(TB_R(part->volume * part->depth)) * factor;
    const tb_vec3 tangential = tb_v3_add_scaled(velocity, normal, TB_R(approach));
    const double speed = (double)tb_v3_length(tangential);
    push.normal_force = force;
    push.force = tb_v3_scale(normal, TB_R(force));
    if (speed > 0)
        push.force = tb_v3_add_scaled(push.force, tangential,
                                      TB_R(-tb_volume_friction(c, speed) * force / speed));
    push.torque = tb_v3_scale(
        normal, TB_R(-area * force * c->rotation_damping * (double)tb_v3_dot(spin, normal)));
    return push;
}

/* Normal force (N) of two spheres at depth d (m): c_s d, or Hertz's 4/3 E* sqrt(R) d^(3/2), where E is
 * the effective modulus as in the law of polyhedra and R the reduced radius. */
TB_FN double tb_sphere_push(const tb_volume_constants *c, double radius_a, double radius_b,
                            double depth)
{
    if (c->sphere_stiffness > 0) return c->sphere_stiffness * depth;
    const double radius = radius_a * radius_b / (radius_a + radius_b);
    return 4.0 / 3.0 * c->elasticity * (double)tb_sqrt(TB_R(radius * depth)) * depth;
}

/* Overlap of a ball with a half-space, in closed form: a cap of height d <= 2 R. normal: out of the
 * half-space, from B to A; gap: distance of the centre from its plane. False without overlap. */
TB_FN bool tb_ball_in_half_space(tb_vec3 centre, double radius, tb_vec3 normal, double gap,
                                 tb_overlap_part *part)
{
    const double pi = 3.14159265358979323846;
    double d = radius - gap;
    if (!(d > 0)) return false;
    if (d > 2 * radius) d = 2 * radius;
    part->depth = d;
    part->volume = pi * d * d * (3 * radius - d) / 3;
    /* distance of the cap's centroid from the ball's centre: 3 (2R - d)^2 / (4 (3R - d)) */
    const double middle = 3 * (2 * radius - d) * (2 * radius - d) / (4 * (3 * radius - d));
    part->centroid = tb_v3_add_scaled(centre, normal, TB_R(-middle));
    part->area = tb_v3_scale(normal, TB_R(pi * (2 * radius * d - d * d)));
    return true;
}

#endif
