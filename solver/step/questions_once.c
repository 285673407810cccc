/* Questions about a state: where bodies are, energy, mass matrix, smooth acceleration. Double,
 * outside the step. */
#include <string.h>

#include "step/stages/stages.h"

/* Velocity of a body at its origin, for any reference point of its tree. */
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
    tb_status status = tb_state_sync_to_host(state, TB_PARTS_NUMBERS, NULL);
    for (int32_t b = first; b < last && status == TB_OK; b++) {
        if (free_body_motion(state, b, &motions[b - first])) continue;
        if (!walked) status = tb_dynamics_look(&d, state, &arena);
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

double tb_state_energy(const tb_state *state)
{
    tb_arena arena = {0};
    tb_state_sync_to_host(state, TB_PARTS_NUMBERS, NULL);
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
    tb_status status = tb_state_sync_to_host(state, TB_PARTS_NUMBERS, error);
    if (status != TB_OK) return status;
    status = tb_dynamics_look(&d, state, &arena);
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
        status = tb_tendons_add_mass(&d, &arena, mass);
    }
    tb_arena_destroy(&arena);
    return status;
}

tb_status tb_state_smooth_acceleration(const tb_state *state, double *acceleration, tb_error *error)
{
    tb_workspace workspace = {.threads = 1};
    tb_status status = tb_state_sync_to_host(state, TB_PARTS_NUMBERS, error);
    if (status != TB_OK) return status;
    status = tb_world_smooth_acceleration(state, &workspace, acceleration, error);
    tb_arena_destroy(&workspace.arena);
    return status;
}
