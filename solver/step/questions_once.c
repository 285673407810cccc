/* Questions about a state: where bodies are, energy, mass matrix, smooth acceleration. Double,
 * outside the step. */
#include <string.h>

#include "step/step_internal.h"

/* Dynamics of a state in an arena of their own. */
static tb_status look(const tb_state *state, tb_dynamics *d, tb_arena *arena)
{
    if (tb_dynamics_take(d, state->model, arena) != TB_OK) return TB_RESOURCE_EXHAUSTED;
    tb_dynamics_positions(d, state->q, state->kinematic);
    tb_dynamics_velocities(d, state->u, state->kinematic);
    return TB_OK;
}

/* Velocity of a body at its origin, whatever point its tree is measured about. */
static tb_vec3 origin_velocity(const tb_dynamics *d, int32_t body)
{
    const tb_model_body *b = &d->model->bodies[body];
    const tb_motion *v = &d->velocities[body];
    tb_vec3 about;
    if (b->tree >= 0)
        about = d->references[b->tree];
    else
        about = d->poses[b->fixed_to].position;
    return tb_motion_at(*v, tb_v3_sub(d->poses[body].position, about));
}

/* A single free body needs no tree walked; false for any other. */
static bool free_body_motion(const tb_state *state, int32_t body, tb_body_motion *motion)
{
    const tb_model *m = state->model;
    const tb_model_body *b = &m->bodies[body];
    if (b->tree < 0 || m->trees[b->tree].number_of_bodies != 1 || b->number_of_joints != 1 ||
        m->joints[b->joint].type != TB_JOINT_FREE)
        return false;
    const double *q = state->q + m->joints[b->joint].coordinate, *u = state->u + b->dof;
    const tb_quaternion o = tb_q_normalize(tb_q_load(q + 3));
    memcpy(motion->position, q, 3 * sizeof(double));
    tb_q_store(motion->orientation, o);
    tb_v3_store(motion->com, tb_v3_add(tb_v3_load(q), tb_q_rotate(o, tb_v3_load(b->com))));
    memcpy(motion->linear_velocity, u, 3 * sizeof(double));
    tb_v3_store(motion->angular_velocity, tb_q_rotate(o, tb_v3_load(u + 3)));
    return true;
}

static void walked_motion(const tb_dynamics *d, int32_t body, tb_body_motion *motion)
{
    tb_v3_store(motion->position, d->poses[body].position);
    tb_q_store(motion->orientation, d->orientations[body]);
    tb_v3_store(motion->com,
                tb_pose_point(&d->poses[body], tb_v3_load(d->model->bodies[body].com)));
    tb_v3_store(motion->linear_velocity, origin_velocity(d, body));
    tb_v3_store(motion->angular_velocity, d->velocities[body].angular);
}

/* Bodies [first, last): the trees are walked once, and only if there is one. */
static tb_status body_motions(const tb_state *state, int32_t first, int32_t last,
                              tb_body_motion *motions)
{
    tb_arena arena = {0};
    tb_dynamics d;
    bool walked = false;
    tb_status status = TB_OK;
    for (int32_t b = first; b < last && status == TB_OK; b++) {
        if (free_body_motion(state, b, &motions[b - first])) continue;
        if (!walked) status = look(state, &d, &arena);
        walked = true;
        if (status == TB_OK) walked_motion(&d, b, &motions[b - first]);
    }
    tb_arena_destroy(&arena);
    return status;
}

tb_status tb_state_body_motion(const tb_state *state, int32_t body, tb_body_motion *motion)
{
    if (body < 0 || body >= state->model->number_of_bodies || !motion) return TB_INVALID_ARGUMENT;
    return body_motions(state, body, body + 1, motion);
}

tb_status tb_state_body_motions(const tb_state *state, tb_body_motion *motions)
{
    if (!motions) return TB_INVALID_ARGUMENT;
    return body_motions(state, 0, state->model->number_of_bodies, motions);
}

const tb_certificate *tb_state_certificate(const tb_state *state)
{
    return &state->certificate;
}

/* ---- energy ---- */

static double spring_energy(const tb_state *state)
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
    for (int32_t t = 0; t < m->number_of_tendons; t++) {
        const tb_model_tendon *tendon = &m->tendons[t];
        const double stretch = tb_tendon_stretch(tendon, tb_tendon_length(m, t, state->q));
        energy += 0.5 * tendon->stiffness * stretch * stretch;
    }
    return energy;
}

double tb_world_energy(const tb_state *state, tb_arena *arena)
{
    const tb_model *m = state->model;
    const tb_arena_mark mark = tb_arena_get_mark(arena);
    tb_dynamics d;
    double energy = spring_energy(state);
    if (look(state, &d, arena) == TB_OK) {
        const tb_vec3 gravity = tb_v3_load(m->gravity);
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

double tb_state_energy(const tb_state *state)
{
    tb_arena arena = {0};
    const double energy = tb_world_energy(state, &arena);
    tb_arena_destroy(&arena);
    return energy;
}

/* ---- mass matrix and acceleration ---- */

tb_status tb_state_mass_matrix(const tb_state *state, double *mass, tb_error *error)
{
    const int32_t n = state->model->number_of_dofs;
    tb_arena arena = {0};
    tb_dynamics d;
    tb_status status = look(state, &d, &arena);
    double *unit = TB_ARENA_ZEROED(&arena, double, n);
    double *column = TB_ARENA_ARRAY(&arena, double, n);
    if (status != TB_OK || !unit || !column) {
        status = tb_fail_memory(error, 0, "a mass matrix");
    } else {
        tb_dynamics_mass(&d, NULL);
        for (int32_t j = 0; j < n; j++) {
            unit[j] = 1;
            tb_dynamics_mass_multiply(&d, unit, column);
            unit[j] = 0;
            for (int32_t i = 0; i < n; i++) mass[(size_t)i * (size_t)n + (size_t)j] = column[i];
        }
    }
    tb_arena_destroy(&arena);
    return status;
}

tb_status tb_state_smooth_acceleration(const tb_state *state, double *acceleration, tb_error *error)
{
    tb_workspace workspace = {.threads = 1};
    const tb_status status = tb_world_smooth_acceleration(state, &workspace, acceleration, error);
    tb_arena_destroy(&workspace.arena);
    return status;
}
