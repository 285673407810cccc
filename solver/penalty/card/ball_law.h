/* Contacts of balls, and the motion of free bodies under forces: formulas of the volume law that processor
 * and card share, one contact or one body wide (volume_law.h has the sources). */
#ifndef TB_BALL_LAW_H
#define TB_BALL_LAW_H

#include "penalty/volume_law.h"

/* A body's motion at a point of an integration. */
typedef struct tb_law_motion {
    tb_vec3 com;             /* m, world */
    tb_vec3 linear, angular; /* m/s of the centre of mass; rad/s; world axes */
} tb_law_motion;

/* A free body's constants. */
typedef struct tb_law_body {
    double inverse_mass;       /* 1/kg, with the armature */
    double inverse_inertia[9]; /* body axes, with the armature */
    double inertia[6];         /* kg m^2: xx, yy, zz, xy, xz, yz */
    double weight;             /* kg: mass that gravity acts on */
} tb_law_body;

TB_FN tb_vec3 tb_law_velocity_at(const tb_law_motion *m, tb_vec3 x)
{
    return tb_v3_add(m->linear, tb_v3_cross(m->angular, tb_v3_sub(x, m->com)));
}

/* Adds a force and a torque that act at a point to a wrench about the centre of mass. */
TB_FN void tb_law_add_wrench(double w[6], tb_vec3 com, tb_vec3 at, tb_vec3 force, tb_vec3 torque)
{
    const tb_vec3 turn = tb_v3_add(torque, tb_v3_cross(tb_v3_sub(at, com), force));
    for (int k = 0; k < 3; k++) {
        w[k] += tb_v3_at(force, k);
        w[3 + k] += tb_v3_at(turn, k);
    }
}

/* Result of tb_law_two_balls. */
typedef enum tb_ball_contact {
    TB_BALLS_APART,
    TB_BALLS_TOUCH,
    TB_BALLS_EQUAL /* centres in one place: no direction to push in */
} tb_ball_contact;

/* Two balls, A and B: a spring along the line of centres, nothing else (3.9). */
TB_FN tb_ball_contact tb_law_two_balls(const tb_volume_constants *c, tb_vec3 xa, double ra,
                                       tb_vec3 xb, double rb, tb_overlap_part *part,
                                       tb_contact_push *push)
{
    const tb_vec3 line = tb_v3_sub(xa, xb);
    const double distance2 = tb_v3_length2(line);
    if (!(distance2 < (ra + rb) * (ra + rb))) return TB_BALLS_APART;
    const double distance = tb_sqrt(distance2);
    if (!(distance > 0)) return TB_BALLS_EQUAL;
    const tb_vec3 normal = tb_v3_scale(line, 1 / distance);
    const double depth = ra + rb - distance;
    push->normal_force = tb_sphere_push(c, ra, rb, depth);
    push->force = tb_v3_scale(normal, push->normal_force);
    push->torque = tb_v3(0, 0, 0);
    part->volume = 0;
    part->depth = depth;
    part->centroid = tb_v3_add_scaled(xb, normal, rb - depth / 2);
    part->area = normal;
    return TB_BALLS_TOUCH;
}

/* Acceleration of a free body (world, body axes) under wrenches about its centre of mass: w of contacts and
 * `more` (N, N m, world), and `applied` (world, body axes). v: its six velocities. */
TB_FN void tb_law_free_acceleration(const tb_law_body *body, const double gravity[3],
                                    const tb_mat33 *rotation, const double v[6], const double w[6],
                                    const double more[6], const double applied[6], double s[6])
{
    const tb_mat33 inertia = tb_m33_symmetric(body->inertia);
    const tb_vec3 spin = tb_v3_load(v + 3);
    const tb_vec3 torque =
        tb_m33_tmul_v3(rotation, tb_v3_add(tb_v3_load(w + 3), tb_v3_load(more + 3)));
    const tb_vec3 gyro = tb_v3_cross(spin, tb_m33_mul_v3(&inertia, spin));
    double x[3];
    for (int k = 0; k < 3; k++) {
        s[k] = body->inverse_mass * (w[k] + more[k] + applied[k] + body->weight * gravity[k]);
        x[k] = tb_v3_at(torque, k) + applied[3 + k] - tb_v3_at(gyro, k);
    }
    for (int k = 0; k < 3; k++)
        s[3 + k] = body->inverse_inertia[3 * k] * x[0] + body->inverse_inertia[3 * k + 1] * x[1] +
                   body->inverse_inertia[3 * k + 2] * x[2];
}

/* q' of a quaternion turned by w (body axes): q (0, w) / 2 */
TB_FN void tb_law_quaternion_slope(const double q[4], const double w[3], double slope[4])
{
    const tb_quaternion r = tb_q_mul(tb_q_load(q), tb_q(0, w[0], w[1], w[2]));
    slope[0] = r.w / 2, slope[1] = r.x / 2, slope[2] = r.y / 2, slope[3] = r.z / 2;
}

#endif
