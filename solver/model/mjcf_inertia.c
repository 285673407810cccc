/* Reflected inertias, for what MJCF gives by time constants and damping ratios.
 *
 * A joint's springdamper and a servo's dampratio need 1 / (J M^-1 J'), the inertia that a force
 * along J feels, with M the mass matrix of the described pose. The scene as read so far is compiled
 * for its masses and poses, M is summed from every body's Jacobian, and both are thrown away. */
#include <stdlib.h>
#include <string.h>

#include "model/mjcf.h"
#include "model/model.h"
#include "model/tendon_path.h"

enum { DOF_LIMIT = 4000 }; /* M is dense: 128 MB */

/* A unit velocity of a dof: what it does to a point of the world and to everything's rotation. */
typedef struct motion {
    tb_vec3 linear;  /* of the world's origin, m/s */
    tb_vec3 angular; /* rad/s */
} motion;

static void find_poses(const tb_model *model, tb_pose *poses)
{
    poses[0] = tb_pose_identity();
    for (int32_t b = 1; b < model->number_of_bodies; b++) {
        const tb_model_body *body = &model->bodies[b];
        tb_pose local;
        local.position = tb_v3_load(body->position);
        local.rotation = tb_q_matrix(tb_q_load(body->orientation));
        poses[b] = tb_pose_mul(&poses[body->parent], &local);
    }
}

static motion turning(tb_vec3 axis, tb_vec3 through)
{
    const motion result = {tb_v3_cross(through, axis), axis};
    return result;
}

static motion shifting(tb_vec3 direction)
{
    const motion result = {direction, tb_v3(0, 0, 0)};
    return result;
}

static void find_motions(const tb_model *model, const tb_pose *poses, motion *motions)
{
    for (int32_t j = 0; j < model->number_of_joints; j++) {
        const tb_model_joint *joint = &model->joints[j];
        const tb_pose *pose = &poses[joint->body];
        motion *out = motions + joint->dof;
        const tb_vec3 axis = tb_m33_mul_v3(&pose->rotation, tb_v3_load(joint->axis));
        const tb_vec3 anchor = tb_pose_point(pose, tb_v3_load(joint->position));
        switch (joint->type) {
        case TB_JOINT_HINGE: out[0] = turning(axis, anchor); break;
        case TB_JOINT_SLIDE: out[0] = shifting(axis); break;
        case TB_JOINT_BALL:
            for (int i = 0; i < 3; i++) out[i] = turning(tb_m33_column(&pose->rotation, i), anchor);
            break;
        default:
            for (int i = 0; i < 3; i++) {
                out[i] = shifting(tb_v3(i == 0, i == 1, i == 2));
                out[3 + i] = turning(tb_m33_column(&pose->rotation, i), pose->position);
            }
        }
    }
}

/* Adds a body's part of M: sum over the pairs of dofs that move it. */
static void add_body(const tb_model *model, int32_t b, const tb_pose *pose, const motion *motions,
                     double *mass, size_t n)
{
    const tb_model_body *body = &model->bodies[b];
    const tb_mat33 own = tb_m33_symmetric(body->inertia);
    const tb_mat33 inertia = tb_m33_rotate_symmetric(&pose->rotation, &own);
    const tb_vec3 com = tb_pose_point(pose, tb_v3_load(body->com));
    for (int32_t i = body->last_dof; i >= 0; i = model->dofs[i].parent) {
        const tb_vec3 vi = tb_v3_add(motions[i].linear, tb_v3_cross(motions[i].angular, com));
        const tb_vec3 momentum = tb_v3_scale(vi, body->mass);
        const tb_vec3 spin = tb_m33_mul_v3(&inertia, motions[i].angular);
        for (int32_t j = i; j >= 0; j = model->dofs[j].parent) {
            const tb_vec3 vj = tb_v3_add(motions[j].linear, tb_v3_cross(motions[j].angular, com));
            const double entry = tb_v3_dot(vj, momentum) + tb_v3_dot(motions[j].angular, spin);
            mass[(size_t)i * n + (size_t)j] += entry;
        }
    }
}

/* 1 / (J M^-1 J') with L the Cholesky factor of M; `row` is J and is overwritten. */
static double reflected(const double *factor, int n, double *row)
{
    double sum = 0;
    tb_cholesky_forward(factor, n, n, row);
    for (int i = 0; i < n; i++) sum += row[i] * row[i];
    return sum > 0 ? 1 / sum : 0;
}

/* A joint's: over the diagonal of M^-1, averaged over the dofs that are alike. */
static double of_joint(const tb_model *model, const double *factor, int n, int32_t j, double *row)
{
    const tb_model_joint *joint = &model->joints[j];
    const int32_t dofs = joint->type == TB_JOINT_BALL || joint->type == TB_JOINT_FREE ? 3 : 1;
    double sum = 0;
    for (int32_t i = 0; i < dofs; i++) {
        memset(row, 0, (size_t)n * sizeof *row);
        row[joint->dof + i] = 1;
        const double inertia = reflected(factor, n, row);
        sum += inertia > 0 ? 1 / inertia : 0;
    }
    return sum > 0 ? (double)dofs / sum : 0;
}

/* Adds what the motion of a body does to a tendon that it holds at a point. */
static void add_pull(const tb_model *model, const motion *motions, int32_t body, tb_vec3 point,
                     tb_vec3 pull, double *row)
{
    for (int32_t i = model->bodies[body].last_dof; i >= 0; i = model->dofs[i].parent)
        row[i] +=
            tb_v3_dot(pull, tb_v3_add(motions[i].linear, tb_v3_cross(motions[i].angular, point)));
}

/* How a spatial tendon's length changes with the dofs, times `gear`. */
static void add_spatial(const tb_model *model, const tb_pose *poses, const motion *motions,
                        int32_t tendon, double gear, double *row)
{
    const tb_model_tendon *t = &model->tendons[tendon];
    tb_tendon_walk walk = tb_tendon_begin();
    for (;;) {
        const tb_tendon_run run = tb_tendon_next(model->tendon_points + t->first_point,
                                                 t->number_of_points, poses, &walk);
        if (run.pieces == 0) return;
        for (int32_t k = 0; k < run.pieces; k++) {
            const tb_tendon_piece *p = &run.piece[k];
            const tb_vec3 along =
                tb_v3_normalize(tb_v3_sub(p->ends[1], p->ends[0]), tb_v3(0, 0, 0));
            for (int e = 0; e < 2; e++)
                add_pull(model, motions, p->bodies[e], p->ends[e],
                         tb_v3_scale(along, (e ? gear : -gear) * run.share), row);
        }
    }
}

static double of_actuator(const mjcf *m, const tb_model *model, const tb_pose *poses,
                          const motion *motions, const double *factor, int n,
                          const mjcf_actuator *actuator, double *row)
{
    const double *gear = actuator->def.gear;
    memset(row, 0, (size_t)n * sizeof *row);
    if (actuator->joint >= 0) {
        const tb_model_joint *joint = &model->joints[actuator->joint];
        for (int32_t i = 0; i < tb_joint_dofs(joint->type); i++) row[joint->dof + i] = gear[i];
    } else {
        const mjcf_tendon *tendon = &m->tendons[actuator->tendon];
        for (int32_t i = 0; i < tendon->def.number_of_joints; i++)
            row[model->joints[tendon->joint_indices[i]].dof] +=
                gear[0] * tendon->def.coefficients[i];
        if (tendon->def.number_of_points > 0)
            add_spatial(model, poses, motions, actuator->tendon, gear[0], row);
    }
    return reflected(factor, n, row);
}

tb_status mjcf_reflected_inertias(mjcf *m, double **joints, double **actuators)
{
    tb_model *model = NULL;
    tb_pose *poses = NULL;
    motion *motions = NULL;
    double *mass = NULL, *row = NULL;
    *joints = *actuators = NULL;

    tb_status status = tb_scene_compile(m->scene, &model, m->error);
    if (status != TB_OK) goto done;
    const size_t n = (size_t)model->number_of_dofs;
    if (n > DOF_LIMIT || model->number_of_joints != m->number_of_joints) {
        status = tb_fail(m->error, n > DOF_LIMIT ? TB_RESOURCE_EXHAUSTED : TB_INTERNAL,
                         "damping ratios need the mass matrix, which is only formed up to %d dofs",
                         DOF_LIMIT);
        goto done;
    }
    poses = calloc((size_t)model->number_of_bodies, sizeof *poses);
    motions = calloc(n + 1, sizeof *motions);
    mass = calloc(n * n + 1, sizeof *mass);
    row = calloc(n + 1, sizeof *row);
    *joints = calloc((size_t)m->number_of_joints + 1, sizeof **joints);
    *actuators = calloc((size_t)m->number_of_actuators + 1, sizeof **actuators);
    if (poses == NULL || motions == NULL || mass == NULL || row == NULL || *joints == NULL ||
        *actuators == NULL) {
        status = tb_fail_memory(m->error, n * n * sizeof *mass, "a mass matrix");
        goto done;
    }

    find_poses(model, poses);
    find_motions(model, poses, motions);
    for (int32_t b = 1; b < model->number_of_bodies; b++)
        add_body(model, b, &poses[b], motions, mass, n);
    for (size_t i = 0; i < n; i++) mass[i * n + i] += model->dofs[i].armature;
    if (tb_cholesky(mass, (int)n, (int)n) != (int)n) {
        status = tb_fail(m->error, TB_INVALID_ARGUMENT,
                         "damping ratios need a mass matrix that is positive definite");
        goto done;
    }
    for (int32_t i = 0; i < m->number_of_joints; i++)
        if (m->joints[i].time_constant > 0) (*joints)[i] = of_joint(model, mass, (int)n, i, row);
    for (int32_t i = 0; i < m->number_of_actuators; i++)
        if (m->actuators[i].damping_ratio > 0)
            (*actuators)[i] =
                of_actuator(m, model, poses, motions, mass, (int)n, &m->actuators[i], row);
done:
    if (status != TB_OK) {
        free(*joints);
        free(*actuators);
        *joints = *actuators = NULL;
    }
    free(poses);
    free(motions);
    free(mass);
    free(row);
    tb_model_destroy(model);
    return status;
}
