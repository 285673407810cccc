/* Reflected inertias, for quantities that MJCF gives by time constants and damping ratios.
 *
 * A joint's springdamper and a servo's dampratio need 1 / (J M^-1 J'), the inertia that a force
 * along J feels, with M the mass matrix of the described pose. The scene as read so far is compiled
 * for its masses and poses, M is summed from every body's Jacobian, and both are thrown away. */
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/mjcf.h"
#include "model/model.h"
#include "model/tendon_path.h"

enum { DOF_LIMIT = 4000 }; /* M is dense: 128 MB */

/* Motion at unit velocity of a dof: velocity of a point of the world, and rotation. */
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

/* Adds the effect of a body's motion on a tendon attached at a point. */
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

/* Adds to `row` the moments of a force and a torque at a point of a body. */
static void add_wrench(const tb_model *model, const motion *motions, int32_t body, tb_vec3 point,
                       tb_vec3 force, tb_vec3 torque, double *row)
{
    for (int32_t i = model->bodies[body].last_dof; i >= 0; i = model->dofs[i].parent) {
        const tb_vec3 v = tb_v3_add(motions[i].linear, tb_v3_cross(motions[i].angular, point));
        row[i] += tb_v3_dot(force, v) + tb_v3_dot(torque, motions[i].angular);
    }
}

/* J of an actuator on a site: step/stages/transmission.c has the formulas. */
static void site_row(const mjcf *m, const tb_model *model, const tb_pose *poses,
                     const motion *motions, const tb_actuator_def *def, double *row)
{
    /* the importer adds bodies in the model's order */
    const bool alone = tb_handle_is_none(def->reference);
    const tb_site_def *site = &m->sites[def->target.index - 1];
    const tb_site_def *other = alone ? site : &m->sites[def->reference.index - 1];
    const int32_t body = (int32_t)site->body.index, base = (int32_t)other->body.index;
    const tb_vec3 at = tb_pose_point(&poses[body], tb_v3_load(site->position));
    const tb_vec3 from = tb_pose_point(&poses[base], tb_v3_load(other->position));
    const tb_mat33 own = tb_q_matrix(tb_q_load(other->orientation));
    const tb_mat33 axes = tb_m33_mul(&poses[base].rotation, &own);
    tb_vec3 force = tb_m33_mul_v3(&axes, tb_v3_load(def->gear));
    tb_vec3 torque = tb_m33_mul_v3(&axes, tb_v3_load(def->gear + 3)), back = tb_v3_negate(torque);
    if (def->rod_length > 0) {
        const tb_vec3 z = tb_m33_column(&axes, 2), v = tb_v3_sub(at, from);
        const double along = tb_v3_dot(z, v);
        const double square = along * along + def->rod_length * def->rod_length - tb_v3_length2(v);
        const double root = square > 0 ? sqrt(square) : 0, part = square > 0 ? 1 - along / root : 1;
        force = tb_v3_scale(z, part);
        if (square > 0) force = tb_v3_add_scaled(force, v, 1 / root);
        force = tb_v3_scale(force, def->gear[0]);
        torque = tb_v3(0, 0, 0);
        back = tb_v3_scale(tb_v3_cross(z, v), part * def->gear[0]);
    }
    add_wrench(model, motions, body, at, force, torque, row);
    if (!alone) add_wrench(model, motions, base, from, tb_v3_negate(force), back, row);
}

/* J of an actuator at the described pose. */
static void actuator_row(const mjcf *m, const tb_model *model, const tb_pose *poses,
                         const motion *motions, const mjcf_actuator *actuator, double *row)
{
    const double *gear = actuator->def.gear;
    if (actuator->joint >= 0) {
        const tb_model_joint *joint = &model->joints[actuator->joint];
        for (int32_t i = 0; i < tb_joint_dofs(joint->type); i++) row[joint->dof + i] = gear[i];
    } else if (actuator->tendon >= 0) {
        const mjcf_tendon *tendon = &m->tendons[actuator->tendon];
        for (int32_t i = 0; i < tendon->def.number_of_joints; i++)
            row[model->joints[tendon->joint_indices[i]].dof] +=
                gear[0] * tendon->def.coefficients[i];
        if (tendon->def.number_of_points > 0)
            add_spatial(model, poses, motions, actuator->tendon, gear[0], row);
    } else if (actuator->def.target.kind == TB_HANDLE_SITE) {
        site_row(m, model, poses, motions, &actuator->def, row);
    }
}

/* The acceleration |M^-1 J'| of a unit force. */
static double acceleration(const double *factor, int n, double *row)
{
    double sum = 0;
    tb_cholesky_solve(factor, n, n, row);
    for (int i = 0; i < n; i++) sum += row[i] * row[i];
    return sqrt(sum);
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
    for (int32_t i = 0; i < m->number_of_actuators; i++) {
        const mjcf_actuator *actuator = &m->actuators[i];
        if (!(actuator->damping_ratio > 0) && !(actuator->muscle_scale > 0)) continue;
        if (actuator->def.orientation != TB_ORIENTATION_NONE) {
            (*actuators)[i] = of_joint(model, mass, (int)n, actuator->joint, row);
            continue;
        }
        memset(row, 0, n * sizeof *row);
        actuator_row(m, model, poses, motions, actuator, row);
        (*actuators)[i] = actuator->muscle_scale > 0 ? acceleration(mass, (int)n, row)
                                                     : reflected(mass, (int)n, row);
    }
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
