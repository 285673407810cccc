/* Transmissions: forces on the dofs by an actuator's force, and the length of the actuator.
 *
 * A moment is the force on a dof for a unit force of the actuator. Sites, slider-cranks and torques
 * in a parent's axes have moments that change with the pose; a step finds these once, after its
 * motion. The definitions are MuJoCo's (XML reference, actuator/general). */
#include <math.h>

#include "step/stages/stages.h"

TB_EXTERN bool tb_transmissions_take(tb_world *world)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    w->moments = w->lengths = NULL;
    if (m->number_of_moments > 0) {
        w->moments = TB_ARENA_ARRAY(w->arena, double, m->number_of_moments);
        w->lengths = TB_ARENA_ARRAY(w->arena, double, m->number_of_actuators);
        if (!w->moments || !w->lengths) return false;
    }
    w->setpoints = w->servo_errors = NULL;
    if (m->has_servo_memory) {
        w->setpoints = TB_ARENA_ZEROED(w->arena, double, m->number_of_actuators);
        w->servo_errors = TB_ARENA_ZEROED(w->arena, double, m->number_of_actuators);
        if (!w->setpoints || !w->servo_errors) return false;
    }
    w->held = NULL;
    w->motor_excess = NULL;
    if (m->has_joint_forces) {
        w->held = TB_ARENA_ARRAY(w->arena, bool, m->number_of_actuators);
        w->motor_excess = TB_ARENA_ARRAY(w->arena, tb_real, m->number_of_dofs);
        if (!w->held || !w->motor_excess) return false;
    }
    return true;
}

/* ---- sites ---- */

/* A site's place and axes in the world. */
typedef struct site_frame {
    tb_vec3 position;
    tb_quaternion orientation;
} site_frame;

TB_STATIC site_frame frame_of(const tb_world *w, int32_t index)
{
    const tb_model_site *site = &w->model->sites[index];
    const tb_dynamics *d = &w->dynamics;
    site_frame f;
    f.position = tb_pose_point(&d->poses[site->body], tb_v3_load(site->position));
    f.orientation = tb_q_mul(d->orientations[site->body], tb_q_load(site->orientation));
    return f;
}

/* Moments of a force and a torque at a point of the world, on `count` dofs. */
TB_STATIC void put_moments(const tb_world *w, const int32_t *dofs, int32_t count, tb_vec3 point,
                           tb_vec3 force, tb_vec3 torque, double *moments)
{
    const tb_dynamics *d = &w->dynamics;
    for (int32_t i = 0; i < count; i++) {
        const tb_vec3 r = tb_v3_sub(point, d->references[d->model->dofs[dofs[i]].tree]);
        const tb_force f = {tb_v3_add(torque, tb_v3_cross(r, force)), force};
        moments[i] = (double)tb_motion_dot(tb_dynamics_axis(d, dofs[i]), f);
    }
}

/* The gear's force and torque in the axes of `f`. */
TB_STATIC void gear_wrench(const tb_model_actuator *a, const site_frame *f, tb_vec3 *force,
                           tb_vec3 *torque)
{
    *force = tb_q_rotate(f->orientation, tb_v3_load(a->gear));
    *torque = tb_q_rotate(f->orientation, tb_v3_load(a->gear + 3));
}

/* A site on its own has no length. */
TB_STATIC double find_site(const tb_world *w, const tb_model_actuator *a, double *moments)
{
    const site_frame f = frame_of(w, a->site);
    tb_vec3 force, torque;
    gear_wrench(a, &f, &force, &torque);
    put_moments(w, w->model->moment_dofs + a->moment, a->number_of_moments, f.position, force,
                torque, moments);
    return 0;
}

/* The site in the frame of its reference: translation and rotation between them, along the gear.
 * A body that carries both sites feels no force. */
TB_STATIC double find_site_to_site(const tb_world *w, const tb_model_actuator *a, double *moments)
{
    const int32_t *dofs = w->model->moment_dofs + a->moment;
    const site_frame f = frame_of(w, a->site), r = frame_of(w, a->reference);
    const int32_t own = a->own_moments, others = a->number_of_moments - own;
    tb_vec3 force, torque;
    gear_wrench(a, &r, &force, &torque);
    put_moments(w, dofs, own, f.position, force, torque, moments);
    put_moments(w, dofs + own, others, r.position, tb_v3_negate(force), tb_v3_negate(torque),
                moments + own);
    const tb_quaternion back = tb_q_conjugate(r.orientation);
    const tb_vec3 way = tb_q_rotate(back, tb_v3_sub(f.position, r.position));
    const tb_vec3 turn = tb_q_rotation_vector(tb_q_mul(back, f.orientation));
    return (double)(tb_v3_dot(way, tb_v3_load(a->gear)) + tb_v3_dot(turn, tb_v3_load(a->gear + 3)));
}

/* A slider on the axis z of the reference, a rod of length r from it to the site, v between the
 * sites: length = z.v - sqrt((z.v)^2 + r^2 - v.v), whose derivatives by v and z are the force on
 * the site and, crossed with z, the torque on the slider's body. Out of the rod's reach the root is
 * dropped. */
TB_STATIC double find_crank(const tb_world *w, const tb_model_actuator *a, double *moments)
{
    const int32_t *dofs = w->model->moment_dofs + a->moment;
    const site_frame pin = frame_of(w, a->site), slider = frame_of(w, a->reference);
    const int32_t own = a->own_moments, others = a->number_of_moments - own;
    const tb_vec3 z = tb_q_rotate(slider.orientation, tb_v3(0, 0, 1));
    const tb_vec3 v = tb_v3_sub(pin.position, slider.position);
    const tb_real along = tb_v3_dot(z, v), rod = TB_R(a->rod_length);
    const tb_real square = along * along + rod * rod - tb_v3_length2(v);
    const tb_real root = square > 0 ? tb_sqrt(square) : 0;
    tb_vec3 by_v = z, by_z = v;
    if (square > 0) {
        const tb_real part = 1 - along / root;
        by_v = tb_v3_add_scaled(tb_v3_scale(z, part), v, 1 / root);
        by_z = tb_v3_scale(v, part);
    }
    const tb_real gear = TB_R(a->gear[0]);
    const tb_vec3 force = tb_v3_scale(by_v, gear), none = tb_v3(0, 0, 0);
    const tb_vec3 torque = tb_v3_scale(tb_v3_cross(z, by_z), gear);
    put_moments(w, dofs, own, pin.position, force, none, moments);
    put_moments(w, dofs + own, others, slider.position, tb_v3_negate(force), torque, moments + own);
    return a->gear[0] * (double)(along - root);
}

/* ---- joints ---- */

TB_STATIC tb_quaternion joint_turn(const tb_world *w, const tb_model_joint *joint)
{
    const tb_real *x = w->q + joint->coordinate + (joint->type == TB_JOINT_FREE ? 3 : 0);
    return tb_q_normalize(tb_q(x[0], x[1], x[2], x[3]));
}

/* A ball's length is its rotation vector along the gear; a free joint has none. */
TB_STATIC double joint_length(const tb_world *w, const tb_model_actuator *a)
{
    const tb_model_joint *joint = &w->model->joints[a->joint];
    if (joint->type == TB_JOINT_FREE) return 0;
    if (joint->type != TB_JOINT_BALL) return a->gear[0] * (double)w->q[joint->coordinate];
    const tb_vec3 turn = tb_q_rotation_vector(joint_turn(w, joint));
    return a->gear[0] * (double)turn.x + a->gear[1] * (double)turn.y + a->gear[2] * (double)turn.z;
}

/* Dofs of ball and free joints turn about the child's axes, the gear is given in the parent's. */
TB_STATIC double find_joint(const tb_world *w, const tb_model_actuator *a, double *moments)
{
    const tb_model_joint *joint = &w->model->joints[a->joint];
    const int first = joint->type == TB_JOINT_FREE ? 3 : 0;
    const tb_quaternion back = tb_q_conjugate(joint_turn(w, joint));
    const tb_vec3 torque = tb_q_rotate(back, tb_v3_load(a->gear + first));
    for (int i = 0; i < first; i++) moments[i] = a->gear[i];
    for (int i = 0; i < 3; i++) moments[first + i] = (double)tb_v3_at(torque, i);
    return first > 0 ? 0 : (double)tb_v3_dot(tb_q_rotation_vector(joint_turn(w, joint)), torque);
}

/* ---- all ---- */

TB_EXTERN void tb_transmissions_find(tb_world *world)
{
    const tb_world *w = world;
    const tb_model *m = w->model;
    if (m->number_of_moments == 0) return;
    TB_EACH (i, m->number_of_actuators) {
        const tb_model_actuator *a = &m->actuators[i];
        double *moments = w->moments + a->moment;
        w->lengths[i] = 0;
        switch (a->transmission) {
        case TB_TRANSMISSION_JOINT: w->lengths[i] = find_joint(w, a, moments); break;
        case TB_TRANSMISSION_SITE: w->lengths[i] = find_site(w, a, moments); break;
        case TB_TRANSMISSION_SITE_TO_SITE: w->lengths[i] = find_site_to_site(w, a, moments); break;
        case TB_TRANSMISSION_CRANK: w->lengths[i] = find_crank(w, a, moments); break;
        default: break;
        }
    }
    tb_team_sync();
}

TB_EXTERN tb_transmission tb_actuator_transmission(const tb_world *world, int32_t actuator)
{
    const tb_model *m = world->model;
    const tb_model_actuator *a = &m->actuators[actuator];
    tb_transmission t = {.scale = 1};
    if (a->transmission != TB_TRANSMISSION_FIXED) {
        if (a->number_of_moments == 0) return t;
        t.dofs = m->moment_dofs + a->moment;
        t.coefficients = world->moments + a->moment;
        t.count = a->number_of_moments;
        return t;
    }
    if (a->tendon >= 0) {
        t = tb_tendon_transmission(world, a->tendon);
        t.scale = a->gear[0];
        return t;
    }
    const tb_model_joint *joint = &m->joints[a->joint];
    t.first = joint->dof;
    t.coefficients = a->gear;
    t.count = tb_joint_dofs(joint->type);
    return t;
}

TB_EXTERN double tb_actuator_length(const tb_world *world, int32_t actuator)
{
    const tb_model_actuator *a = &world->model->actuators[actuator];
    if (a->transmission != TB_TRANSMISSION_FIXED)
        return a->number_of_moments > 0 ? world->lengths[actuator] : 0;
    if (a->tendon >= 0) return a->gear[0] * (double)tb_tendon_length(world, a->tendon, world->q);
    return joint_length(world, a);
}
