/* Everything that is not a contact and still pushes by a set-valued law: actuators, dry friction,
 * limits, tendons, equalities.
 *
 * An actuator whose force falls with the speed, f = constant - damping v, is a row with compliance
 * E = 1 / (dt damping) and box limits: xi = v + E lambda - constant / damping = 0 while the force
 * is within its limits, and the limit when it is not. A servo is thus integrated implicitly and
 * never gives more than its limit (design decision 3). */
#include <math.h>

#include "step/step_internal.h"

/* ---- actuators ---- */

TB_EXTERN tb_transmission tb_actuator_transmission(const tb_model *model,
                                                   const tb_model_actuator *actuator)
{
    tb_transmission t = {.scale = 1};
    if (actuator->tendon >= 0) {
        const tb_model_tendon *tendon = &model->tendons[actuator->tendon];
        t.dofs = model->tendon_dofs + tendon->first;
        t.coefficients = model->tendon_coefficients + tendon->first;
        t.count = tendon->count;
        t.scale = actuator->gear[0];
        return t;
    }
    const tb_model_joint *joint = &model->joints[actuator->joint];
    t.first = joint->dof;
    t.coefficients = actuator->gear;
    t.count = tb_joint_dofs(joint->type);
    return t;
}

TB_EXTERN tb_real tb_tendon_length(const tb_model *model, int32_t tendon, const tb_real *q)
{
    const tb_model_tendon *t = &model->tendons[tendon];
    tb_real length = 0;
    for (int32_t i = t->first; i < t->first + t->count; i++)
        length += TB_R(model->tendon_coefficients[i]) * q[model->tendon_coordinates[i]];
    return length;
}

TB_EXTERN tb_real tb_tendon_stretch(const tb_model_tendon *tendon, tb_real length)
{
    const tb_real lower = TB_R(tendon->spring_lower), upper = TB_R(tendon->spring_upper);
    return length > upper ? length - upper : length < lower ? length - lower : 0;
}

/* gear times coordinate; a ball's is its rotation vector, a free joint has none */
TB_STATIC double actuator_length(const tb_world *w, const tb_model_actuator *a)
{
    if (a->tendon >= 0) return a->gear[0] * (double)tb_tendon_length(w->model, a->tendon, w->q);
    const tb_model_joint *joint = &w->model->joints[a->joint];
    const tb_real *x = w->q + joint->coordinate;
    if (joint->type == TB_JOINT_FREE) return 0;
    if (joint->type != TB_JOINT_BALL) return a->gear[0] * (double)x[0];
    const tb_vec3 turn = tb_q_rotation_vector(tb_q(x[0], x[1], x[2], x[3]));
    return a->gear[0] * (double)turn.x + a->gear[1] * (double)turn.y + a->gear[2] * (double)turn.z;
}

/* A spring k with a damper d on something at x that moves at v0 before the step and v1 after it:
 * force = -k x + past v0 - damping v1. With theta = 1 this is the force at the end of the step,
 * with theta = 1/2 (x is at the midpoint) its mean over the step,
 * as for springs and dampers on joints. */
TB_STATIC void spring_damper(const tb_world *w, double k, double d, double *past, double *damping)
{
    const double theta = (double)w->theta, stiffness = theta * theta * (double)w->dt * k;
    *past = theta == 1 ? 0 : stiffness - (1 - theta) * d;
    *damping = stiffness + theta * d;
}

TB_EXTERN tb_actuator_law tb_actuator_evaluate(const tb_world *world, int32_t actuator)
{
    const tb_model_actuator *a = &world->model->actuators[actuator];
    double x = tb_actuator_control(a, world->state->controls[actuator]);
    if (a->activation >= 0) x = world->state->activations[a->activation];

    const double k0 = a->gain[0] * x + a->bias[0];
    const double kl = a->gain[1] * x + a->bias[1];
    const double kv = a->gain[2] * x + a->bias[2];

    const tb_transmission t = tb_actuator_transmission(world->model, a);
    double past;
    tb_actuator_law law;
    spring_damper(world, -kl, -kv, &past, &law.damping);
    law.constant = k0 + kl * actuator_length(world, a);
    if (past != 0) law.constant += past * tb_transmission_velocity(&t, world->u);
    law.lower = a->force_limited ? a->force_lower : -INFINITY;
    law.upper = a->force_limited ? a->force_upper : INFINITY;
    return law;
}

/* Fills one row with a transmission, times `scale`. */
TB_STATIC void fill_transmission(const tb_world *w, const tb_transmission *t, double scale,
                                 tb_real *values)
{
    for (int32_t i = 0; i < t->count; i++)
        values[tb_block_position(w, tb_transmission_dof(t, i))] +=
            TB_R(scale * t->scale * t->coefficients[i]);
}

/* Begins a one-row block over a transmission. Dofs of a joint are one chain;
 * a tendon's are many. */
TB_STATIC tb_real *begin_transmission(tb_world *w, tb_law law, const tb_transmission *t,
                                      double scale, int32_t memory)
{
    const int32_t last = t->first + t->count - 1;
    tb_real *values = t->dofs ? tb_block_begin(w, law, 1, t->dofs, t->count, memory)
                              : tb_block_begin(w, law, 1, &last, 1, memory);
    if (values) fill_transmission(w, t, scale, values);
    return values;
}

TB_STATIC void end_row(tb_world *w, tb_real *values, tb_real bias, tb_real compliance)
{
    const int32_t row = w->blocks[w->number_of_blocks - 1].row;
    w->c[row] = tb_block_dot(w, values, w->u_free) + bias;
    w->compliance[row] = compliance;
    w->has_compliance |= compliance != 0;
    tb_block_end(w, values);
}

TB_STATIC tb_status add_actuators(tb_world *w, const tb_row_memory *memory)
{
    const tb_model *m = w->model;
    for (int32_t a = 0; a < m->number_of_actuators; a++) {
        const tb_actuator_law law = tb_actuator_evaluate(w, a);
        if (!(law.damping > 0)) continue;
        const tb_transmission t = tb_actuator_transmission(m, &m->actuators[a]);
        tb_real *values = begin_transmission(w, TB_LAW_BOX, &t, 1, memory->actuators + a);
        if (!values) return TB_RESOURCE_EXHAUSTED;
        tb_block *b = &w->blocks[w->number_of_blocks - 1];
        const double dt = (double)w->dt;
        b->lower = law.lower > -INFINITY ? TB_R(law.lower * dt) : -TB_REAL_MAX;
        b->upper = law.upper < INFINITY ? TB_R(law.upper * dt) : TB_REAL_MAX;
        end_row(w, values, TB_R(-law.constant / law.damping), TB_R(1 / (dt * law.damping)));
    }
    return TB_OK;
}

/* ---- dry friction ---- */

TB_STATIC tb_status add_dry_friction(tb_world *w, const tb_row_memory *memory)
{
    const tb_model *m = w->model;
    for (int32_t k = 0; k < m->number_of_dry_dofs; k++) {
        const int32_t i = m->dry_dofs[k];
        const tb_real most = TB_R(m->dofs[i].dry_friction) * w->dt;
        if (!(most > 0)) continue;
        tb_real *values = tb_block_begin(w, TB_LAW_BOX, 1, &i, 1, memory->dof_friction + i);
        if (!values) return TB_RESOURCE_EXHAUSTED;
        values[tb_block_position(w, i)] = 1;
        tb_block *b = &w->blocks[w->number_of_blocks - 1];
        b->lower = -most;
        b->upper = most;
        end_row(w, values, 0, 0);
    }
    return TB_OK;
}

/* ---- limits ---- */

/* Whether a limit at distance `gap` can be reached within the step; twice the way, to be early. */
TB_STATIC bool limit_is_near(const tb_world *w, tb_real gap, tb_real speed)
{
    if (w->theta != 1) return gap <= TB_R(w->options->contact_slop);
    return gap <= 2 * w->dt * tb_abs(speed) + TB_R(w->options->contact_margin);
}

/* c of a limit row. Stewart and Trinkle: gap / dt, to the last bit, for a limit is one row.
 * Moreau: a closed limit is an inelastic impact. */
TB_STATIC tb_real limit_bias(const tb_world *w, tb_real gap)
{
    if (w->theta != 1) return 0;
    return tb_gap_velocity(gap, 0, w->dt, TB_R(w->options->recovery_speed));
}

TB_STATIC tb_status add_scalar_limit(tb_world *w, int32_t dof, tb_real gap, tb_real sign,
                                     int32_t memory)
{
    if (!limit_is_near(w, gap, w->u_free[dof])) return TB_OK;
    tb_real *values = tb_block_begin(w, TB_LAW_UNILATERAL, 1, &dof, 1, memory);
    if (!values) return TB_RESOURCE_EXHAUSTED;
    values[tb_block_position(w, dof)] = sign;
    end_row(w, values, limit_bias(w, gap), 0);
    return TB_OK;
}

/* A ball joint may turn by at most `upper` from its reference, about any axis. */
TB_STATIC tb_status add_ball_limit(tb_world *w, const tb_model_joint *joint, int32_t memory)
{
    const tb_real *x = w->q + joint->coordinate;
    const tb_vec3 turn = tb_q_rotation_vector(tb_q(x[0], x[1], x[2], x[3]));
    const tb_real angle = tb_v3_length(turn), gap = TB_R(joint->upper) - angle;
    const tb_real *u = w->u_free + joint->dof;
    if (!limit_is_near(w, gap, tb_v3_length(tb_v3(u[0], u[1], u[2])))) return TB_OK;
    const tb_vec3 axis = tb_v3_normalize(turn, tb_v3(1, 0, 0));
    const int32_t last = joint->dof + 2;
    tb_real *values = tb_block_begin(w, TB_LAW_UNILATERAL, 1, &last, 1, memory);
    if (!values) return TB_RESOURCE_EXHAUSTED;
    for (int k = 0; k < 3; k++) values[tb_block_position(w, joint->dof + k)] = -tb_v3_at(axis, k);
    end_row(w, values, limit_bias(w, gap), 0);
    return TB_OK;
}

TB_STATIC tb_status add_joint_limits(tb_world *w, const tb_model_joint *joint, int32_t memory)
{
    if (!joint->limited) return TB_OK;
    if (joint->type == TB_JOINT_BALL) return add_ball_limit(w, joint, memory);
    if (joint->type != TB_JOINT_HINGE && joint->type != TB_JOINT_SLIDE) return TB_OK;
    const tb_real x = w->q[joint->coordinate];
    const tb_status status = add_scalar_limit(w, joint->dof, x - TB_R(joint->lower), 1, memory);
    if (status != TB_OK) return status;
    return add_scalar_limit(w, joint->dof, TB_R(joint->upper) - x, -1, memory + 1);
}

/* A single free body's joint has none. */
TB_STATIC tb_status add_limits(tb_world *w, const tb_row_memory *memory)
{
    const tb_model *m = w->model;
    for (int32_t t = 0; t < m->number_of_jointed_trees; t++) {
        const tb_model_tree *tree = &m->trees[m->jointed_trees[t]];
        for (int32_t j = tree->joint; j < tree->joint + tree->number_of_joints; j++) {
            const tb_status status =
                add_joint_limits(w, &m->joints[j], memory->joint_limits + 2 * j);
            if (status != TB_OK) return status;
        }
    }
    return TB_OK;
}

/* ---- tendons ---- */

TB_STATIC tb_transmission tendon_transmission(const tb_model *m, int32_t tendon)
{
    const tb_model_tendon *t = &m->tendons[tendon];
    return TB_VALUE(tb_transmission){m->tendon_dofs + t->first, m->tendon_coefficients + t->first,
                                     0, t->count, 1};
}

/* Spring and damper of a tendon, like an actuator without limits. */
TB_STATIC tb_actuator_law tendon_law(const tb_world *w, int32_t tendon)
{
    const tb_model_tendon *t = &w->model->tendons[tendon];
    const tb_transmission transmission = tendon_transmission(w->model, tendon);
    const double stretch = (double)tb_tendon_stretch(t, tb_tendon_length(w->model, tendon, w->q));
    const double k = stretch != 0 ? t->stiffness : 0;
    double past;
    tb_actuator_law law = {.lower = -INFINITY, .upper = INFINITY};
    spring_damper(w, k, t->damping, &past, &law.damping);
    law.constant = past * tb_transmission_velocity(&transmission, w->u) - k * stretch;
    return law;
}

TB_STATIC tb_status add_tendon_spring(tb_world *w, int32_t tendon, int32_t slot)
{
    const tb_transmission t = tendon_transmission(w->model, tendon);
    const tb_actuator_law law = tendon_law(w, tendon);
    if (!(law.damping > 0)) return TB_OK;
    tb_real *values = begin_transmission(w, TB_LAW_BILATERAL, &t, 1, slot);
    if (!values) return TB_RESOURCE_EXHAUSTED;
    end_row(w, values, TB_R(-law.constant / law.damping), TB_R(1 / ((double)w->dt * law.damping)));
    return TB_OK;
}

TB_STATIC tb_status add_tendons(tb_world *w, const tb_row_memory *memory)
{
    const tb_model *m = w->model;
    for (int32_t i = 0; i < m->number_of_tendons; i++) {
        const tb_model_tendon *tendon = &m->tendons[i];
        const int32_t slot = memory->tendon_rows + TB_TENDON_ROWS * i;
        const tb_transmission t = tendon_transmission(m, i);
        const tb_real length = tb_tendon_length(m, i, w->q);
        tb_real speed = 0;
        for (int32_t k = 0; k < t.count; k++)
            speed += TB_R(t.coefficients[k]) * w->u_free[t.dofs[k]];

        for (int side = 0; tendon->limited && side < 2; side++) {
            const tb_real gap = side ? TB_R(tendon->upper) - length : length - TB_R(tendon->lower);
            if (!limit_is_near(w, gap, speed)) continue;
            tb_real *values =
                begin_transmission(w, TB_LAW_UNILATERAL, &t, side ? -1 : 1, slot + side);
            if (!values) return TB_RESOURCE_EXHAUSTED;
            end_row(w, values, limit_bias(w, gap), 0);
        }
        if (tendon->dry_friction > 0) {
            tb_real *values = begin_transmission(w, TB_LAW_BOX, &t, 1, slot + 2);
            if (!values) return TB_RESOURCE_EXHAUSTED;
            tb_block *b = &w->blocks[w->number_of_blocks - 1];
            b->upper = TB_R(tendon->dry_friction) * w->dt;
            b->lower = -b->upper;
            end_row(w, values, 0, 0);
        }
        if (add_tendon_spring(w, i, slot + 3) != TB_OK) return TB_RESOURCE_EXHAUSTED;
    }
    return TB_OK;
}

/* ---- prediction ---- */

/* Adds to u what force = constant - damping v, within its limits, gives it within the step, v taken
 * at its end. push: dofs, scratch. */
TB_STATIC void predict_push(const tb_world *w, const tb_transmission *t, const tb_actuator_law *law,
                            tb_real *push, tb_real *u)
{
    const int32_t dofs = w->model->number_of_dofs;
    TB_EACH (i, dofs) push[i] = 0;
    tb_team_sync();
    for (int32_t i = 0; TB_LEADER && i < t->count; i++)
        push[tb_transmission_dof(t, i)] += TB_R(t->scale * t->coefficients[i]);
    tb_team_sync();
    tb_dynamics_solve(&w->dynamics, push);
    const double dt = (double)w->dt;
    const double force = (law->constant - law->damping * tb_transmission_velocity(t, u)) /
                         (1 + dt * law->damping * tb_transmission_velocity(t, push));
    const tb_real impulse = TB_R(dt * fmin(fmax(force, law->lower), law->upper));
    tb_team_sync(); /* all have read u */
    TB_EACH (i, dofs) u[i] += impulse * push[i];
    tb_team_sync();
}

TB_EXTERN tb_status tb_servos_predict(tb_world *world, tb_real *u)
{
    const tb_world *w = world;
    const tb_model *m = w->model;
    tb_real *push = TB_ARENA_ARRAY(w->arena, tb_real, m->number_of_dofs);
    if (!push) return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < m->number_of_tendons; i++) {
        const tb_transmission t = tendon_transmission(m, i);
        const tb_actuator_law law = tendon_law(w, i);
        if (law.damping > 0) predict_push(w, &t, &law, push, u);
    }
    for (int32_t a = 0; a < m->number_of_actuators; a++) {
        const tb_transmission t = tb_actuator_transmission(m, &m->actuators[a]);
        const tb_actuator_law law = tb_actuator_evaluate(w, a);
        if (law.damping > 0) predict_push(w, &t, &law, push, u);
    }
    return TB_OK;
}

/* ---- equalities ---- */

TB_STATIC tb_status add_equalities(tb_world *w, const tb_row_memory *memory)
{
    const tb_model *m = w->model;
    for (int32_t e = 0; e < m->number_of_equalities; e++) {
        if (m->equalities[e].disabled) continue;
        tb_real errors[TB_EQUALITY_ROWS], drift[TB_EQUALITY_ROWS];
        tb_real bias[TB_EQUALITY_ROWS];
        tb_real *values =
            tb_equality_begin(w, e, w->q, memory->equalities + TB_EQUALITY_ROWS * e, errors, drift);
        if (!values) return TB_RESOURCE_EXHAUSTED;
        const tb_block *b = &w->blocks[w->number_of_blocks - 1];
        if (b->width == 0) {
            tb_block_cancel(w);
            continue;
        }
        tb_equality_bias(w, values, b->rows, errors, drift, bias);
        for (int32_t r = 0; r < b->rows; r++)
            w->c[b->row + r] =
                tb_block_dot(w, values + r * w->width, w->u_free) + drift[r] + bias[r];
        tb_block_end(w, values);
    }
    return TB_OK;
}

/* Few, and each behind the one before it: one lane's work. */
TB_EXTERN tb_status tb_world_assemble_rows(tb_world *world, tb_error *error)
{
    const tb_row_memory memory = tb_row_memory_layout(world->model);
    tb_status status = TB_OK;
    if (tb_world_alone(world) &&
        (add_equalities(world, &memory) != TB_OK || add_tendons(world, &memory) != TB_OK ||
         add_actuators(world, &memory) != TB_OK || add_dry_friction(world, &memory) != TB_OK ||
         add_limits(world, &memory) != TB_OK))
        status = TB_RESOURCE_EXHAUSTED;
    tb_world_together(world, &status);
    return status == TB_OK ? TB_OK : tb_fail_memory(error, 0, "a step's rows");
}
