/* Motion of single bodies under forces: formulas of the volume law that processor and card share, one
 * body wide.
 *
 * A tree of one body that is free, that slides along up to three axes, or that turns about one axis has
 * constant inertia in its velocities and no force that depends on them but the gyroscopic one of a free
 * body. All other trees need the dynamics of the step. */
#ifndef TB_BODY_LAW_H
#define TB_BODY_LAW_H

#include "penalty/volume_law.h"

/* The box of a turned box, m. */
TB_FN void tb_law_turn_box(const tb_pose *pose, const double lower[3], const double upper[3],
                           double turned_lower[3], double turned_upper[3])
{
    for (int i = 0; i < 3; i++) {
        double middle = tb_v3_at(pose->position, i), half = 0;
        for (int k = 0; k < 3; k++) {
            const double r = pose->rotation.m[3 * i + k];
            middle += r * (lower[k] + upper[k]) / 2;
            half += tb_abs(r) * (upper[k] - lower[k]) / 2;
        }
        turned_lower[i] = middle - half;
        turned_upper[i] = middle + half;
    }
}

/* A body's motion at a point of an integration. */
typedef struct tb_law_motion {
    tb_vec3 com;             /* m, world */
    tb_vec3 linear, angular; /* m/s of the centre of mass; rad/s; world axes */
} tb_law_motion;

/* The joints of a body: those of a tree that has one body. */
typedef enum tb_law_joints {
    TB_LAW_FREE,        /* its centre of mass is its origin */
    TB_LAW_FREE_BESIDE, /* its centre of mass is elsewhere; the linear velocity is that of its origin */
    TB_LAW_SLIDES,
    TB_LAW_HINGE
} tb_law_joints;

enum { TB_LAW_SLIDES_MOST = 3 };

/* A body's constants. */
typedef struct tb_law_body {
    tb_law_joints joints;
    int32_t dofs;
    double inverse_mass;       /* free: 1/kg */
    double inverse_inertia[9]; /* free: body axes; else of the dofs, 3 x 3 */
    double inertia[6];         /* free: kg m^2: xx, yy, zz, xy, xz, yz */
    double weight;             /* kg: mass that gravity acts on */
    /* slides and hinge */
    double position[3], orientation[4]; /* world, at the reference coordinates */
    double axes[TB_LAW_SLIDES_MOST][3]; /* world */
    double references[TB_LAW_SLIDES_MOST];
    double local_axis[3], local_anchor[3], anchor[3]; /* hinge: body frame, body frame, world */
    double com[3];                                    /* m, body frame */
} tb_law_body;

TB_FN bool tb_law_is_free(const tb_law_body *body)
{
    return body->joints == TB_LAW_FREE || body->joints == TB_LAW_FREE_BESIDE;
}

/* Sine and cosine of an angle, rad, to one unit of the last place, with the same bytes on processors and cards,
 * where the libraries' functions differ in the last bit. The argument of the Taylor series is the angle less the
 * nearest multiple of pi/2. Two parts of pi/2 have 33 bits each, so their multiples are exact up to 1e6 rad;
 * beyond 1e6 rad the library computes both. */
TB_FN void tb_law_sine_cosine(double angle, double *sine, double *cosine)
{
    if (!(fabs(angle) <= 1e6)) {
        *sine = sin(angle);
        *cosine = cos(angle);
        return;
    }
    const double quarters = floor(angle * 0.63661977236758134 + 0.5);
    const double most = angle - quarters * 1.5707963267341256;
    const double less = quarters * 6.077100506303966e-11, least = quarters * 2.0222662487959506e-21;
    const double taken = less + least, x = most - taken, z = x * x, half = 1 - z / 2;
    const double lost = (most - x) - taken - (least - (taken - less)); /* beside x */
    const double odd =
        -1 / 6.0 +
        z * (1 / 120.0 +
             z * (-1 / 5040.0 +
                  z * (1 / 362880.0 + z * (-1 / 39916800.0 +
                                           z * (1 / 6227020800.0 + z * (-1 / 1307674368000.0 +
                                                                        z / 355687428096000.0))))));
    const double even =
        1 / 24.0 +
        z * (-1 / 720.0 +
             z * (1 / 40320.0 + z * (-1 / 3628800.0 +
                                     z * (1 / 479001600.0 + z * (-1 / 87178291200.0 +
                                                                 z * (1 / 20922789888000.0 -
                                                                      z / 6402373705728000.0))))));
    const double s = x + (x * z * odd + lost * half);
    const double c = half + ((1 - half) - z / 2 + z * z * even - x * lost);
    const int32_t quarter = (int32_t)quarters & 3;
    *sine = quarter % 2 == 0 ? s : c;
    *cosine = quarter % 2 == 0 ? c : s;
    if (quarter >= 2) *sine = -*sine;
    if (quarter == 1 || quarter == 2) *cosine = -*cosine;
}

/* The rotation by an angle, rad, about a unit axis. */
TB_FN tb_quaternion tb_law_turn(tb_vec3 axis, double angle)
{
    double sine, cosine;
    tb_law_sine_cosine(angle / 2, &sine, &cosine);
    return tb_q_normalize(tb_q(cosine, sine * axis.x, sine * axis.y, sine * axis.z));
}

/* The pose and the motion of a body at coordinates q and velocities u. */
TB_FN void tb_law_move(const tb_law_body *body, const double *q, const double *u, tb_pose *pose,
                       tb_law_motion *motion)
{
    motion->linear = motion->angular = tb_v3(0, 0, 0);
    if (tb_law_is_free(body)) {
        pose->position = motion->com = tb_v3_load(q);
        pose->rotation = tb_q_matrix(tb_q_normalize(tb_q_load(q + 3)));
        motion->linear = tb_v3_load(u);
        motion->angular = tb_m33_mul_v3(&pose->rotation, tb_v3_load(u + 3));
        if (body->joints == TB_LAW_FREE) return;
        const tb_vec3 arm = tb_m33_mul_v3(&pose->rotation, tb_v3_load(body->com));
        motion->com = tb_v3_add(pose->position, arm);
        motion->linear = tb_v3_add(motion->linear, tb_v3_cross(motion->angular, arm));
        return;
    }
    tb_quaternion orientation = tb_q_load(body->orientation);
    pose->position = tb_v3_load(body->position);
    if (body->joints == TB_LAW_HINGE) {
        const double angle = q[0] - body->references[0];
        orientation =
            tb_q_normalize(tb_q_mul(orientation, tb_law_turn(tb_v3_load(body->local_axis), angle)));
        pose->position = tb_v3_sub(tb_v3_load(body->anchor),
                                   tb_q_rotate(orientation, tb_v3_load(body->local_anchor)));
        motion->angular = tb_v3_scale(tb_v3_load(body->axes[0]), u[0]);
    }
    for (int32_t i = 0; i < body->dofs && body->joints == TB_LAW_SLIDES; i++) {
        const tb_vec3 axis = tb_v3_load(body->axes[i]);
        pose->position = tb_v3_add_scaled(pose->position, axis, q[i] - body->references[i]);
        motion->linear = tb_v3_add_scaled(motion->linear, axis, u[i]);
    }
    pose->rotation = tb_q_matrix(orientation);
    motion->com = tb_pose_point(pose, tb_v3_load(body->com));
    if (body->joints == TB_LAW_HINGE)
        motion->linear =
            tb_v3_cross(motion->angular, tb_v3_sub(motion->com, tb_v3_load(body->anchor)));
}

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

/* The same where the origin is not the centre of mass: applied forces act at the origin, and s has its
 * acceleration, a - alpha x r - w x (w x r). */
TB_FN void tb_law_beside_acceleration(const tb_law_body *body, const double gravity[3],
                                      const tb_mat33 *rotation, const double v[6],
                                      const double w[6], const double more[6],
                                      const double applied[6], double s[6])
{
    const tb_vec3 arm = tb_m33_mul_v3(rotation, tb_v3_load(body->com));
    const tb_vec3 spin = tb_m33_mul_v3(rotation, tb_v3_load(v + 3));
    double moved[6]; /* to the centre of mass */
    for (int k = 0; k < 3; k++) moved[k] = more[k];
    tb_v3_store(moved + 3, tb_v3_sub(tb_v3_load(more + 3), tb_v3_cross(arm, tb_v3_load(applied))));
    tb_law_free_acceleration(body, gravity, rotation, v, w, moved, applied, s);
    const tb_vec3 turn = tb_m33_mul_v3(rotation, tb_v3_load(s + 3));
    const tb_vec3 falls =
        tb_v3_add(tb_v3_cross(turn, arm), tb_v3_cross(spin, tb_v3_cross(spin, arm)));
    tb_v3_store(s, tb_v3_sub(tb_v3_load(s), falls));
}

/* Accelerations of a body's dofs, as tb_law_free_acceleration; com: of its motion. */
TB_FN void tb_law_acceleration(const tb_law_body *body, const double gravity[3],
                               const tb_mat33 *rotation, tb_vec3 com, const double *u,
                               const double w[6], const double more[6], const double *applied,
                               double *s)
{
    if (body->joints == TB_LAW_FREE) {
        tb_law_free_acceleration(body, gravity, rotation, u, w, more, applied, s);
        return;
    }
    if (body->joints == TB_LAW_FREE_BESIDE) {
        tb_law_beside_acceleration(body, gravity, rotation, u, w, more, applied, s);
        return;
    }
    tb_vec3 force, torque;
    force = tb_v3_add(tb_v3_load(w), tb_v3_load(more));
    force = tb_v3_add_scaled(force, tb_v3_load(gravity), body->weight);
    torque = tb_v3_add(tb_v3_load(w + 3), tb_v3_load(more + 3));
    double x[3] = {0, 0, 0};
    if (body->joints == TB_LAW_HINGE) {
        const tb_vec3 arm = tb_v3_sub(com, tb_v3_load(body->anchor));
        torque = tb_v3_add(torque, tb_v3_cross(arm, force));
        x[0] = tb_v3_dot(tb_v3_load(body->axes[0]), torque) + applied[0];
    } else {
        for (int32_t i = 0; i < body->dofs; i++)
            x[i] = tb_v3_dot(tb_v3_load(body->axes[i]), force) + applied[i];
    }
    for (int32_t i = 0; i < body->dofs; i++) {
        const double *row = body->inverse_inertia + 3 * i;
        s[i] = row[0] * x[0] + row[1] * x[1] + row[2] * x[2];
    }
}

/* Slopes of a body's coordinates. */
TB_FN void tb_law_coordinate_slopes(const tb_law_body *body, const double *q, const double *u,
                                    double *slope)
{
    const int32_t straight = tb_law_is_free(body) ? 3 : body->dofs;
    for (int32_t k = 0; k < straight; k++) slope[k] = u[k];
    if (tb_law_is_free(body)) tb_law_quaternion_slope(q + 3, u + 3, slope + 3);
}

/* Moves coordinates by constant velocities for a time dt. */
TB_FN void tb_law_fly(const tb_law_body *body, double *q, const double *u, double dt)
{
    const int32_t straight = tb_law_is_free(body) ? 3 : body->dofs;
    for (int32_t k = 0; k < straight; k++) q[k] += dt * u[k];
    if (!tb_law_is_free(body)) return;
    const tb_vec3 spin = tb_v3_load(u + 3);
    const tb_quaternion turn =
        tb_law_turn(tb_v3_normalize(spin, tb_v3(1, 0, 0)), tb_v3_length(spin) * dt);
    tb_q_store(q + 3, tb_q_normalize(tb_q_mul(tb_q_load(q + 3), turn)));
}

/* ---- shapes ---- */

/* A shape in the frame of its body. */
typedef struct tb_law_outline {
    const double *position, *rotation; /* m, 3; 9 */
    double radius;                     /* m, > 0: a ball */
    bool half_space;
    const double *lower, *upper; /* m, box in the shape's frame */
} tb_law_outline;

/* The pose and the box (lower, upper; m) of a shape in the world. A half-space is everywhere. */
TB_FN void tb_law_place_shape(const tb_law_outline *shape, const tb_pose *body, tb_pose *pose,
                              double box[6])
{
    pose->position = tb_pose_point(body, tb_v3_load(shape->position));
    if (shape->radius > 0) { /* no turn matters, unless it meets a polyhedron */
        pose->rotation = body->rotation;
        for (int k = 0; k < 3; k++) {
            box[k] = tb_v3_at(pose->position, k) - shape->radius;
            box[3 + k] = tb_v3_at(pose->position, k) + shape->radius;
        }
        return;
    }
    tb_mat33 local;
    for (int k = 0; k < 9; k++) local.m[k] = shape->rotation[k];
    pose->rotation = tb_m33_mul(&body->rotation, &local);
    if (shape->half_space) {
        for (int k = 0; k < 3; k++) box[k] = -TB_REAL_MAX, box[3 + k] = TB_REAL_MAX;
        return;
    }
    tb_law_turn_box(pose, shape->lower, shape->upper, box, box + 3);
}

/* ---- contacts ---- */

/* A contact with its effect on two bodies. */
typedef struct tb_law_pressed {
    tb_contact_push push; /* on A */
    tb_vec3 velocity;     /* m/s, of A relative to B at the centroid */
    double power;         /* W */
} tb_law_pressed;

/* given: the push where it is known already, or NULL. */
TB_FN void tb_law_press(const tb_volume_constants *c, const tb_overlap_part *part,
                        const tb_contact_push *given, const tb_law_motion *a,
                        const tb_law_motion *b, tb_law_pressed *pressed)
{
    const tb_vec3 spin = tb_v3_sub(a->angular, b->angular);
    pressed->velocity =
        tb_v3_sub(tb_law_velocity_at(a, part->centroid), tb_law_velocity_at(b, part->centroid));
    if (given)
        pressed->push = *given;
    else
        pressed->push = tb_volume_push(c, part, pressed->velocity, spin);
    pressed->power =
        tb_v3_dot(pressed->push.force, pressed->velocity) + tb_v3_dot(pressed->push.torque, spin);
}

#endif
