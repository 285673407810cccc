/* Dynamics of a state as it stands, and its energy. Double, outside the step. */
#include "step/step_internal.h"

TB_EXTERN tb_status tb_dynamics_look(tb_dynamics *d, const tb_state *state, tb_arena *arena)
{
    if (tb_dynamics_take(d, state->model, arena) != TB_OK) return TB_RESOURCE_EXHAUSTED;
    tb_dynamics_positions(d, state->q, state->kinematic);
    tb_dynamics_velocities(d, state->u, state->kinematic);
    return TB_OK;
}

TB_STATIC double spring_energy(const tb_state *state)
{
    const tb_model *m = state->model;
    double energy = 0;
    for (int32_t j = 0; j < m->number_of_joints; j++) {
        const tb_model_joint *joint = &m->joints[j];
        if (joint->stiffness == 0) continue;
        const double *x = state->q + joint->coordinate;
        double stretch = 0;
        if (joint->type == TB_JOINT_HINGE || joint->type == TB_JOINT_SLIDE)
            stretch = x[0] - joint->spring_reference;
        else if (joint->type == TB_JOINT_BALL)
            stretch = tb_v3_length(tb_q_rotation_vector(tb_q_load(x)));
        energy += 0.5 * joint->stiffness * stretch * stretch;
    }
    return energy;
}

TB_STATIC double tendon_energy(const tb_dynamics *d, const tb_state *state)
{
    const tb_model *m = state->model;
    double energy = 0;
    for (int32_t t = 0; t < m->number_of_tendons; t++) {
        const tb_model_tendon *tendon = &m->tendons[t];
        if (tendon->stiffness == 0) continue;
        const double length = tendon->number_of_points > 0 ? tb_tendon_measure(d, t, NULL)
                                                           : tb_tendon_fixed_length(m, t, state->q);
        const double stretch = tb_tendon_stretch(tendon, length);
        energy += 0.5 * tendon->stiffness * stretch * stretch;
    }
    return energy;
}

TB_EXTERN double tb_world_energy(const tb_state *state, tb_arena *arena)
{
    const tb_model *m = state->model;
    const tb_arena_mark mark = tb_arena_get_mark(arena);
    tb_dynamics d;
    double energy = spring_energy(state);
    if (tb_dynamics_look(&d, state, arena) == TB_OK) {
        const tb_vec3 gravity = tb_v3_load(m->gravity);
        energy += tendon_energy(&d, state);
        for (int32_t b = 1; b < m->number_of_bodies; b++) {
            const tb_model_body *body = &m->bodies[b];
            if (body->tree < 0) continue;
            const tb_vec3 com = tb_pose_point(&d.poses[b], tb_v3_load(body->com));
            const tb_vec3 v =
                tb_motion_at(d.velocities[b], tb_v3_sub(com, d.references[body->tree]));
            const tb_vec3 w = tb_m33_tmul_v3(&d.poses[b].rotation, d.velocities[b].angular);
            const tb_mat33 inertia = tb_m33_symmetric(body->inertia);
            energy += 0.5 * body->mass * tb_v3_length2(v) +
                      0.5 * tb_v3_dot(w, tb_m33_mul_v3(&inertia, w)) -
                      body->mass * tb_v3_dot(gravity, com);
        }
        for (int32_t i = 0; i < m->number_of_dofs; i++)
            energy += 0.5 * m->dofs[i].armature * state->u[i] * state->u[i];
    }
    tb_arena_return_to(arena, mark);
    return energy;
}
