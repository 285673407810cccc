/* Passive forces: springs and dampers of joints, gravity compensation; the medium is in fluid.c.
 *
 * Springs and dampers are implicit (begin.c). A spring or damper with a polynomial coefficient
 * applies its exact force, and its slope, if positive, enters the mass matrix. */
#include "step/stages/stages.h"

TB_EXTERN bool tb_passive_take(tb_world *world)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    w->compensation = NULL;
    if (m->compensates_gravity) {
        w->compensation = TB_ARENA_ARRAY(w->arena, tb_real, m->number_of_dofs);
        if (!w->compensation) return false;
    }
    return tb_fluid_take(w);
}

/* ---- springs and dampers ---- */

/* Adds a spring on `count` dofs that are stretched by `stretch`, of length `length`. Its stretch at
 * the end of the step (theta 1) or its mean over the step (theta 1/2, from the midpoint) is known
 * if the velocity stayed. */
TB_STATIC void add_spring(tb_world *w, const tb_model_joint *joint, int32_t dof, int count,
                          const tb_real *stretch, tb_real length)
{
    const tb_real h = w->dt * w->theta, ahead = w->theta == 1 ? w->dt : 0;
    tb_real slope;
    const tb_real k = tb_polynomial_coefficient(TB_R(joint->stiffness), joint->stiffness_polynomial,
                                                length, &slope);
    if (count > 1) slope = tb_max(slope, k); /* across the stretch */
    for (int n = 0; n < count; n++) {
        w->force[dof + n] -= k * stretch[n] + slope * ahead * w->u[dof + n];
        w->diagonal[dof + n] += h * h * slope;
    }
}

/* A ball's or free joint's turn from its reference. */
TB_STATIC void add_turn_spring(tb_world *w, const tb_model_joint *joint, const tb_real *x,
                               int32_t dof, tb_quaternion reference)
{
    const tb_quaternion now = tb_q_normalize(tb_q(x[0], x[1], x[2], x[3]));
    const tb_vec3 turn = tb_q_rotation_vector(tb_q_mul(tb_q_conjugate(reference), now));
    const tb_real stretch[3] = {turn.x, turn.y, turn.z};
    add_spring(w, joint, dof, 3, stretch, tb_v3_length(turn));
}

TB_STATIC void add_joint_spring(tb_world *w, const tb_model_joint *joint)
{
    const tb_real *x = w->q + joint->coordinate;
    if (joint->type == TB_JOINT_HINGE || joint->type == TB_JOINT_SLIDE) {
        const tb_real stretch = x[0] - TB_R(joint->spring_reference);
        add_spring(w, joint, joint->dof, 1, &stretch, stretch);
    } else if (joint->type == TB_JOINT_BALL) {
        add_turn_spring(w, joint, x, joint->dof, tb_q_identity());
    } else if (joint->type == TB_JOINT_FREE) {
        const double *at = w->model->q_reference + joint->coordinate;
        const tb_vec3 way = tb_v3_sub(tb_v3(x[0], x[1], x[2]), tb_v3_load(at));
        const tb_real stretch[3] = {way.x, way.y, way.z};
        add_spring(w, joint, joint->dof, 3, stretch, tb_v3_length(way));
        add_turn_spring(w, joint, x + 3, joint->dof + 3, tb_q_load(at + 3));
    }
}

TB_STATIC void add_damper(tb_world *w, int32_t i)
{
    const tb_model_dof *dof = &w->model->dofs[i];
    tb_real slope;
    const tb_real d = tb_polynomial_coefficient(TB_R(dof->damping), dof->damping_polynomial,
                                                tb_abs(w->u[i]), &slope);
    w->force[i] -= d * w->u[i];
    w->diagonal[i] = w->dt * w->theta * slope;
}

TB_STATIC void add_tree_springs(tb_world *w, const tb_model_tree *tree)
{
    const tb_model *m = w->model;
    TB_EACH (k, tree->number_of_dofs) {
        const int32_t i = tree->dof + k;
        w->diagonal[i] = 0;
        if (m->dofs[i].damping != 0 || m->has_polynomials) add_damper(w, i);
    }
    tb_team_sync();
    TB_EACH (n, tree->number_of_joints) {
        const tb_model_joint *joint = &m->joints[tree->joint + n];
        if (joint->stiffness != 0 || m->has_polynomials) add_joint_spring(w, joint);
    }
}

/* ---- gravity compensation ---- */

/* Upward forces at the centres of mass, from the leaves of the tree to the dofs. */
TB_STATIC void compensate_tree(tb_world *w, const tb_model_tree *tree)
{
    const tb_model *m = w->model;
    tb_dynamics *d = &w->dynamics;
    const tb_vec3 gravity = tb_v3_load(m->gravity), reference = d->references[tree - m->trees];
    const int32_t first = tree->body, end = tree->body + tree->number_of_bodies;
    for (int32_t b = first; b < end; b++) {
        const tb_model_body *body = &m->bodies[b];
        const tb_vec3 com = tb_pose_point(&d->poses[b], tb_v3_load(body->com));
        d->forces[b].force =
            tb_v3_scale(gravity, -TB_R(body->mass) * TB_R(body->gravity_compensation));
        d->forces[b].moment = tb_v3_cross(tb_v3_sub(com, reference), d->forces[b].force);
    }
    for (int32_t b = end - 1; b > first; b--) {
        tb_force *parent = &d->forces[m->bodies[b].parent];
        *parent = tb_force_add(*parent, d->forces[b]);
    }
    for (int32_t i = tree->dof; i < tree->dof + tree->number_of_dofs; i++)
        w->compensation[i] = tb_motion_dot(tb_dynamics_axis(d, i), d->forces[m->dofs[i].body]);
}

TB_STATIC void compensate(tb_world *w)
{
    const tb_model *m = w->model;
    TB_EACH (t, m->number_of_trees) compensate_tree(w, &m->trees[t]);
    tb_team_sync();
    TB_EACH (i, m->number_of_dofs) w->force[i] += w->compensation[i];
    tb_team_sync();
}

TB_EXTERN void tb_passive_forces(tb_world *world)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    /* a single free body has neither springs nor dampers */
    for (int32_t t = 0; t < m->number_of_jointed_trees; t++)
        add_tree_springs(w, &m->trees[m->jointed_trees[t]]);
    tb_team_sync();
    if (m->compensates_gravity) compensate(w);
    if (m->number_of_fluids > 0) tb_fluid_forces(w);
}
