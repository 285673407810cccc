/* Kinematics, composite rigid bodies, sparse factorization, recursive Newton-Euler.
 *
 * Method: Featherstone, Rigid Body Dynamics Algorithms, 2008, ch. 5 and 6, with all spatial vectors
 * of a tree about one point in world axes, so that no transforms are needed between a body and its
 * parent. */
#include "step/dynamics/dynamics.h"
#include "step/dynamics/free_body.h"

TB_EXTERN tb_status tb_dynamics_take(tb_dynamics *dynamics, const tb_model *model, tb_arena *arena)
{
    tb_dynamics *d = dynamics;
    const int32_t bodies = model->number_of_bodies, dofs = model->number_of_dofs;
    *d = TB_VALUE(tb_dynamics){.model = model, .mass_row = model->chain_start};

    d->poses = TB_ARENA_ARRAY(arena, tb_pose, bodies);
    d->orientations = TB_ARENA_ARRAY(arena, tb_quaternion, bodies);
    d->references = TB_ARENA_ARRAY(arena, tb_vec3, model->number_of_trees);
    d->axes = TB_ARENA_ARRAY(arena, tb_motion, dofs);
    d->velocities = TB_ARENA_ARRAY(arena, tb_motion, bodies);
    d->inertias = TB_ARENA_ARRAY(arena, tb_inertia, bodies);
    d->accelerations = TB_ARENA_ARRAY(arena, tb_motion, bodies);
    d->forces = TB_ARENA_ARRAY(arena, tb_force, bodies);
    d->composites = TB_ARENA_ARRAY(arena, tb_inertia, bodies);
    d->mass = TB_ARENA_ARRAY(arena, tb_real, model->number_of_chain_dofs);
    d->inverse_root = TB_ARENA_ARRAY(arena, tb_real, dofs);
    const bool complete = d->poses && d->orientations && d->references && d->axes &&
                          d->velocities && d->inertias && d->accelerations && d->forces &&
                          d->composites && d->mass && d->inverse_root;
    return complete ? TB_OK : TB_RESOURCE_EXHAUSTED;
}

/* ---- positions ---- */

TB_STATIC void place_body(tb_dynamics *d, int32_t b, tb_vec3 position, tb_quaternion orientation)
{
    d->orientations[b] = orientation;
    d->poses[b].position = position;
    d->poses[b].rotation = tb_q_matrix(orientation);
}

/* Applies a body's joints in turn to its pose, and stores each joint's anchor and axis for the
 * motion axes: both of the pose before the joint's own motion, which leaves a hinge's axis and
 * anchor in place. */
TB_STATIC void apply_joints(tb_dynamics *d, const tb_model_body *body, const tb_real *q,
                            tb_vec3 *position, tb_quaternion *orientation)
{
    for (int32_t j = body->joint; j < body->joint + body->number_of_joints; j++) {
        const tb_model_joint *joint = &d->model->joints[j];
        const tb_real *x = q + joint->coordinate;
        tb_motion *axes = d->axes + joint->dof;
        const tb_vec3 offset = tb_v3_load(joint->position);
        const tb_vec3 anchor = tb_v3_add(*position, tb_q_rotate(*orientation, offset));
        const tb_vec3 axis = tb_q_rotate(*orientation, tb_v3_load(joint->axis));

        /* axes hold the anchor in `linear` until the tree's reference is known */
        switch (joint->type) {
        case TB_JOINT_SLIDE:
            *position = tb_v3_add_scaled(*position, axis, x[0] - TB_R(joint->reference));
            axes[0].angular = tb_v3(0, 0, 0);
            axes[0].linear = axis;
            break;
        case TB_JOINT_HINGE: {
            const tb_real angle = x[0] - TB_R(joint->reference);
            const tb_vec3 turn = tb_v3_scale(tb_v3_load(joint->axis), angle);
            *orientation = tb_q_normalize(tb_q_mul(*orientation, tb_q_from_rotation_vector(turn)));
            *position = tb_v3_sub(anchor, tb_q_rotate(*orientation, offset));
            axes[0].angular = axis;
            axes[0].linear = anchor;
            break;
        }
        case TB_JOINT_BALL:
            *orientation = tb_q_normalize(tb_q_mul(*orientation, tb_q(x[0], x[1], x[2], x[3])));
            *position = tb_v3_sub(anchor, tb_q_rotate(*orientation, offset));
            for (int k = 0; k < 3; k++) axes[k].linear = anchor;
            break;
        case TB_JOINT_FREE:
            *position = tb_v3(x[0], x[1], x[2]);
            *orientation = tb_q_normalize(tb_q(x[3], x[4], x[5], x[6]));
            break;
        default: break;
        }
        if (joint->type == TB_JOINT_BALL || joint->type == TB_JOINT_FREE) {
            const int first = joint->type == TB_JOINT_FREE ? 3 : 0;
            const tb_mat33 r = tb_q_matrix(*orientation);
            for (int k = 0; k < 3; k++) axes[first + k].angular = tb_m33_column(&r, k);
        }
    }
}

/* Moves the axes from their anchors to the tree's reference point. */
TB_STATIC void finish_axes(tb_dynamics *d, const tb_model_body *body, tb_vec3 reference)
{
    for (int32_t j = body->joint; j < body->joint + body->number_of_joints; j++) {
        const tb_model_joint *joint = &d->model->joints[j];
        tb_motion *axes = d->axes + joint->dof;
        const int count =
            joint->type == TB_JOINT_HINGE ? 1 : (joint->type == TB_JOINT_BALL ? 3 : 0);
        for (int k = 0; k < count; k++)
            axes[k].linear = tb_v3_cross(axes[k].angular, tb_v3_sub(reference, axes[k].linear));
        if (joint->type != TB_JOINT_FREE) continue;
        const tb_vec3 r = tb_v3_sub(reference, d->poses[joint->body].position);
        for (int k = 0; k < 3; k++) {
            axes[k].angular = tb_v3(0, 0, 0);
            axes[k].linear = tb_v3(TB_R(k == 0), TB_R(k == 1), TB_R(k == 2));
            axes[3 + k].linear = tb_v3_cross(axes[3 + k].angular, r);
        }
    }
}

TB_STATIC void place_single_free(tb_dynamics *d, const tb_model_tree *tree, const tb_real *q)
{
    const tb_real *x = q + tree->coordinate;
    const tb_vec3 position = tb_v3(x[0], x[1], x[2]);
    place_body(d, tree->body, position, tb_q_normalize(tb_q(x[3], x[4], x[5], x[6])));
    d->references[tree - d->model->trees] = position;
}

/* True if the body's pose in the parent's frame at the reference coordinates is a shift. */
TB_STATIC bool is_shifted_only(const tb_model_body *body)
{
    const double *o = body->orientation;
    return o[0] == 1 && o[1] == 0 && o[2] == 0 && o[3] == 0;
}

/* The body's own pose, and its tree's reference and axes; bodies above it are placed already. */
TB_STATIC void place_by_joints(tb_dynamics *d, int32_t b, const tb_real *q, const double *kinematic)
{
    const tb_model *m = d->model;
    if (b == 0) {
        place_body(d, 0, tb_v3(0, 0, 0), tb_q_identity());
        return;
    }
    const tb_model_body *body = &m->bodies[b];
    if (body->kinematic >= 0) {
        const double *k = kinematic + 13 * body->kinematic;
        place_body(d, b, tb_v3_load(k), tb_q_normalize(tb_q_load(k + 3)));
        return;
    }
    if (body->tree >= 0 && m->trees[body->tree].single_free) {
        place_single_free(d, &m->trees[body->tree], q);
        return;
    }
    const tb_pose *parent = &d->poses[body->parent];
    tb_vec3 position = tb_pose_point(parent, tb_v3_load(body->position));
    const bool shifted = is_shifted_only(body);
    tb_quaternion orientation = d->orientations[body->parent];
    if (!shifted) orientation = tb_q_mul(orientation, tb_q_load(body->orientation));
    if (shifted && body->number_of_joints == 0) {
        d->orientations[b] = orientation;
        d->poses[b] = TB_VALUE(tb_pose){.position = position, .rotation = parent->rotation};
        return;
    }
    if (body->number_of_joints) apply_joints(d, body, q, &position, &orientation);
    place_body(d, b, position, orientation);

    if (body->tree < 0) return;
    tb_vec3 reference = position;
    if (m->trees[body->tree].body == b)
        d->references[body->tree] = position;
    else
        reference = d->references[body->tree];
    if (body->number_of_joints) finish_axes(d, body, reference);
}

/* ---- velocities ---- */

/* Motion of a tree's base, a kinematic body or the world, about the tree's reference. Adds to
 * *acceleration (may be NULL) that of a base of constant velocities, because its point at the
 * reference changes. */
TB_STATIC tb_motion base_motion(const tb_dynamics *d, int32_t tree, tb_motion *acceleration)
{
    const tb_model *m = d->model;
    const int32_t base = m->bodies[m->bodies[m->trees[tree].body].parent].fixed_to;
    tb_motion v = tb_motion_zero();
    if (m->bodies[base].kinematic < 0) return v;
    v = d->velocities[base];
    if (acceleration)
        acceleration->linear = tb_v3_sub(acceleration->linear, tb_v3_cross(v.angular, v.linear));
    v.linear = tb_motion_at(v, tb_v3_sub(d->references[tree], d->poses[base].position));
    return v;
}

/* The body's velocity; the velocities of bodies above it are known. */
TB_STATIC void move_by_joints(tb_dynamics *d, int32_t b, const tb_real *u, const double *kinematic)
{
    const tb_model *m = d->model;
    if (b == 0) {
        d->velocities[0] = tb_motion_zero();
        return;
    }
    const tb_model_body *body = &m->bodies[b];
    if (body->kinematic >= 0) {
        const double *k = kinematic + 13 * body->kinematic;
        d->velocities[b].linear = tb_v3_load(k + 7);
        d->velocities[b].angular = tb_v3_load(k + 10);
        return;
    }
    if (body->tree >= 0 && m->trees[body->tree].single_free) {
        const tb_real *w = u + body->dof;
        d->velocities[b].linear = tb_v3(w[0], w[1], w[2]);
        d->velocities[b].angular = tb_m33_mul_v3(&d->poses[b].rotation, tb_v3(w[3], w[4], w[5]));
        return;
    }
    /* a tree's first body is carried by a base that moves without the tree's dofs */
    tb_motion v = body->tree >= 0 && m->trees[body->tree].body == b
                      ? base_motion(d, body->tree, NULL)
                      : d->velocities[body->parent];
    for (int32_t i = body->dof; i < body->dof + body->number_of_dofs; i++)
        v = tb_motion_add_scaled(v, d->axes[i], u[i]);
    d->velocities[b] = v;
}

#ifdef TB_DEVICE
/* Level by level, the bodies of one dealt out. q, u: NULL leaves positions, velocities as they
 * are. */
TB_STATIC void look_at_bodies(tb_dynamics *d, const tb_real *q, const tb_real *u,
                              const double *kinematic)
{
    const tb_model *m = d->model;
    for (int32_t level = 0; level < m->number_of_levels; level++) {
        TB_EACH (b, m->number_of_bodies) {
            if (m->bodies[b].level != level) continue;
            if (q) place_by_joints(d, b, q, kinematic);
            if (u) move_by_joints(d, b, u, kinematic);
        }
        tb_team_sync();
    }
}
#else
/* A body comes after the bodies above it. Bodies are handled in groups, so that the second pass
 * finds them in the cache. Bodies that are fixed to the world are handled once. */
TB_STATIC void look_at_bodies(tb_dynamics *d, const tb_real *q, const tb_real *u,
                              const double *kinematic)
{
    enum { TOGETHER = 64 };
    const int32_t bodies = d->model->number_of_bodies;
    for (int32_t first = 0, end = 0; first < bodies; first = end) {
        end = bodies - first > TOGETHER ? first + TOGETHER : bodies;
        for (int32_t b = first; q && b < end; b++)
            if (!d->fixed_are_placed || d->model->bodies[b].fixed_to != 0)
                place_by_joints(d, b, q, kinematic);
        for (int32_t b = first; u && b < end; b++)
            if (!d->fixed_are_stopped || d->model->bodies[b].fixed_to != 0)
                move_by_joints(d, b, u, kinematic);
    }
    d->fixed_are_placed = d->fixed_are_placed || q;
    d->fixed_are_stopped = d->fixed_are_stopped || u;
}
#endif

TB_EXTERN void tb_dynamics_positions(tb_dynamics *dynamics, const tb_real *q,
                                     const double *kinematic)
{
    look_at_bodies(dynamics, q, NULL, kinematic);
}

TB_EXTERN void tb_dynamics_velocities(tb_dynamics *dynamics, const tb_real *u,
                                      const double *kinematic)
{
    look_at_bodies(dynamics, NULL, u, kinematic);
}

TB_EXTERN void tb_dynamics_motion(tb_dynamics *dynamics, const tb_real *q, const tb_real *u,
                                  const double *kinematic)
{
    look_at_bodies(dynamics, q, u, kinematic);
}

/* ---- mass matrix ---- */

TB_STATIC void place_inertia(tb_dynamics *d, int32_t b)
{
    const tb_model_body *body = &d->model->bodies[b];
    const tb_mat33 *rotation = &d->poses[b].rotation;
    const tb_vec3 com = tb_pose_point(&d->poses[b], tb_v3_load(body->com));
    const tb_mat33 local = tb_m33_symmetric(body->inertia);
    const tb_mat33 world = tb_m33_rotate_symmetric(rotation, &local);
    d->inertias[b] =
        tb_inertia_make(TB_R(body->mass), tb_v3_sub(com, d->references[body->tree]), &world);
}

/* The body's own part of the composites. */
TB_STATIC void start_composite(tb_dynamics *d, int32_t b)
{
    place_inertia(d, b);
    d->composites[b] = d->inertias[b];
    if (d->drag) tb_inertia_add(&d->composites[b], &d->drag[b]);
}

/* True if the body moves with its parent. */
TB_STATIC bool is_part_of_parent(const tb_model *m, int32_t b)
{
    return m->bodies[b].number_of_joints == 0 && b != m->trees[m->bodies[b].tree].body;
}

/* Composite inertias of a tree, leaves first. A body that moves with its parent gives it its own
 * inertia too, so that the bias has one force for both. */
TB_STATIC void compose_inertias(tb_dynamics *d, const tb_model_tree *tree)
{
    const tb_model *m = d->model;
    for (int32_t b = tree->body + tree->number_of_bodies - 1; b > tree->body; b--) {
        const int32_t parent = m->bodies[b].parent;
        tb_inertia_add(&d->composites[parent], &d->composites[b]);
        if (is_part_of_parent(m, b)) tb_inertia_add(&d->inertias[parent], &d->inertias[b]);
    }
}

/* The dof's row of the mass matrix. */
TB_STATIC void write_mass_row(tb_dynamics *d, int32_t i, const tb_real *diagonal)
{
    const tb_model *m = d->model;
    tb_real *row = d->mass + d->mass_row[i];
    const tb_force f = tb_inertia_mul(&d->composites[m->dofs[i].body], d->axes[i]);
    for (int32_t j = i; j >= 0; j = m->dofs[j].parent) *row++ = tb_motion_dot(d->axes[j], f);
    d->mass[d->mass_row[i]] += TB_R(m->dofs[i].armature) + (diagonal ? diagonal[i] : 0);
}

#ifdef TB_DEVICE
/* Whether the tree is one that the mass matrix is made for. */
TB_STATIC bool is_jointed(const tb_model *m, int32_t tree)
{
    return tree >= 0 && !m->trees[tree].single_free;
}

TB_EXTERN void tb_dynamics_mass(tb_dynamics *dynamics, const tb_real *diagonal)
{
    tb_dynamics *d = dynamics;
    const tb_model *m = d->model;
    TB_EACH (b, m->number_of_bodies)
        if (is_jointed(m, m->bodies[b].tree)) start_composite(d, b);
    tb_team_sync();
    TB_EACH (t, m->number_of_jointed_trees) compose_inertias(d, &m->trees[m->jointed_trees[t]]);
    tb_team_sync();
    TB_EACH (i, m->number_of_dofs)
        if (is_jointed(m, m->dofs[i].tree)) write_mass_row(d, i, diagonal);
    tb_team_sync();
}
#else
TB_EXTERN void tb_dynamics_mass(tb_dynamics *dynamics, const tb_real *diagonal)
{
    tb_dynamics *d = dynamics;
    const tb_model *m = d->model;
    for (int32_t t = 0; t < m->number_of_jointed_trees; t++) {
        const tb_model_tree *tree = &m->trees[m->jointed_trees[t]];
        const int32_t first = tree->body, end = tree->body + tree->number_of_bodies;
        for (int32_t b = first; b < end; b++) start_composite(d, b);
        compose_inertias(d, tree);
        for (int32_t i = tree->dof; i < tree->dof + tree->number_of_dofs; i++)
            write_mass_row(d, i, diagonal);
    }
}
#endif

TB_EXTERN void tb_dynamics_mass_multiply(const tb_dynamics *dynamics, const tb_real *x, tb_real *y)
{
    const tb_dynamics *d = dynamics;
    const tb_model *m = d->model;
    for (int32_t t = 0; t < m->number_of_trees; t++) {
        const tb_model_tree *tree = &m->trees[t];
        const int32_t first = tree->dof, end = tree->dof + tree->number_of_dofs;
        if (tree->single_free) {
            const tb_model_body *body = &m->bodies[tree->body];
            const tb_mat33 inertia = tb_m33_symmetric(body->inertia);
            const tb_vec3 w = tb_v3(x[first + 3], x[first + 4], x[first + 5]);
            const tb_vec3 iw = tb_m33_mul_v3(&inertia, w);
            for (int k = 0; k < 3; k++) {
                y[first + k] = TB_R(body->mass + m->dofs[first + k].armature) * x[first + k];
                y[first + 3 + k] =
                    tb_v3_at(iw, k) + TB_R(m->dofs[first + 3 + k].armature) * x[first + 3 + k];
            }
            continue;
        }
        for (int32_t i = first; i < end; i++) y[i] = 0;
        for (int32_t i = first; i < end; i++) {
            const tb_real *row = d->mass + d->mass_row[i];
            y[i] += *row++ * x[i];
            for (int32_t j = m->dofs[i].parent; j >= 0; j = m->dofs[j].parent, row++) {
                y[i] += *row * x[j];
                y[j] += *row * x[i];
            }
        }
    }
}

/* Lanes that work on a tree: one, if trees are dealt out, or all. */
typedef struct tree_lanes {
    int32_t lane, lanes;
} tree_lanes;

TB_STATIC void sync_tree(tree_lanes by)
{
    if (by.lanes > 1) tb_team_sync();
}

/* Whether all lanes go from tree to tree: where there are few. */
TB_STATIC bool trees_together(const tb_model *m)
{
    return 4 * m->number_of_jointed_trees <= tb_team_lanes();
}

TB_STATIC tree_lanes one_lane(void)
{
    return TB_VALUE(tree_lanes){0, 1};
}

TB_STATIC tree_lanes all_lanes(void)
{
    return TB_VALUE(tree_lanes){tb_team_lane(), tb_team_lanes()};
}

/* From the leaves to the root, every dof takes from all pairs of its ancestors the part that it
 * explains. Ancestors are dealt out. */
TB_STATIC tb_status factor_tree(tb_dynamics *d, const tb_model_tree *tree, tree_lanes by,
                                tb_error *error)
{
    const tb_model *m = d->model;
    for (int32_t k = tree->dof + tree->number_of_dofs - 1; k >= tree->dof; k--) {
        const int32_t *chain = m->chains + d->mass_row[k];
        const int32_t length = d->mass_row[k + 1] - d->mass_row[k];
        tb_real *row_k = d->mass + d->mass_row[k];
        const tb_real pivot = row_k[0];
        if (!(pivot > 0) || !(pivot <= TB_REAL_MAX))
            return tb_fail(error, TB_FAILED_PRECONDITION,
                           "dof %d of body '%s' has no inertia (mass matrix is singular)", k,
                           tb_model_thing_name(m, TB_HANDLE_BODY, m->dofs[k].body));
        if (by.lane == 0) d->inverse_root[k] = 1 / tb_sqrt(pivot);

        for (int32_t i = 1 + by.lane; i < length; i += by.lanes) {
            const tb_real a = row_k[i] / pivot;
            tb_real *row_i = d->mass + d->mass_row[chain[i]];
            for (int32_t j = i; j < length; j++) row_i[j - i] -= a * row_k[j];
        }
        sync_tree(by); /* all have read the row */
        for (int32_t i = 1 + by.lane; i < length; i += by.lanes) row_k[i] /= pivot;
    }
    return TB_OK;
}

TB_EXTERN tb_status tb_dynamics_factor(tb_dynamics *dynamics, tb_error *error)
{
    const tb_model *m = dynamics->model;
    const int32_t trees = m->number_of_jointed_trees;
    const bool together = trees_together(m);
    tb_status status = TB_OK;
    TB_EACH (t, together ? 0 : trees) {
        status = factor_tree(dynamics, &m->trees[m->jointed_trees[t]], one_lane(), error);
        if (status != TB_OK) break;
    }
    for (int32_t t = 0; together && t < trees && status == TB_OK; t++)
        status = factor_tree(dynamics, &m->trees[m->jointed_trees[t]], all_lanes(), error);
    tb_team_sync();
    return tb_team_any(status != TB_OK) ? TB_FAILED_PRECONDITION : TB_OK;
}

/* x_i of L x = D^-1 y; the x of its ancestors are known. */
TB_STATIC void substitute(const tb_dynamics *d, int32_t i, tb_real *x)
{
    const int32_t *chain = d->model->chains + d->mass_row[i];
    const int32_t length = d->mass_row[i + 1] - d->mass_row[i];
    const tb_real *row = d->mass + d->mass_row[i];
    tb_real own = x[i] * (d->inverse_root[i] * d->inverse_root[i]);
    for (int32_t j = 1; j < length; j++) own -= row[j] * x[chain[j]];
    x[i] = own;
}

/* Lanes share the ancestors on the pass to the root, and dofs of equal depth on the way back. */
TB_STATIC void solve_tree(const tb_dynamics *d, const tb_model_tree *tree, tree_lanes by,
                          tb_real *x)
{
    const tb_model *m = d->model;
    const int32_t first = tree->dof, end = tree->dof + tree->number_of_dofs;
    for (int32_t i = end - 1; i >= first; i--) {
        const int32_t *chain = m->chains + d->mass_row[i];
        const int32_t length = d->mass_row[i + 1] - d->mass_row[i];
        const tb_real *row = d->mass + d->mass_row[i];
        const tb_real own = x[i];
        for (int32_t j = 1 + by.lane; j < length; j += by.lanes) x[chain[j]] -= row[j] * own;
        sync_tree(by);
    }
    if (by.lanes == 1) {
        for (int32_t i = first; i < end; i++) substitute(d, i, x);
        return;
    }
    for (int32_t length = 1; length <= m->longest_chain; length++) {
        for (int32_t i = first + by.lane; i < end; i += by.lanes)
            if (d->mass_row[i + 1] - d->mass_row[i] == length) substitute(d, i, x);
        sync_tree(by);
    }
}

TB_EXTERN void tb_dynamics_solve(const tb_dynamics *dynamics, tb_real *x)
{
    const tb_model *m = dynamics->model;
    const bool together = trees_together(m);
    TB_EACH (t, m->number_of_trees) {
        if (m->trees[t].single_free)
            tb_free_body_solve(&m->trees[t], x + m->trees[t].dof);
        else if (!together)
            solve_tree(dynamics, &m->trees[t], one_lane(), x);
    }
    for (int32_t t = 0; together && t < m->number_of_jointed_trees; t++)
        solve_tree(dynamics, &m->trees[m->jointed_trees[t]], all_lanes(), x);
    tb_team_sync();
}

TB_EXTERN void tb_dynamics_unwhiten_tree(const tb_dynamics *dynamics, const tb_model_tree *tree,
                                         double *x)
{
    const tb_dynamics *d = dynamics;
    const tb_model *m = d->model;
    if (tree->single_free) {
        tb_free_body_unwhiten(tree, x + tree->dof);
        return;
    }
    for (int32_t i = tree->dof; i < tree->dof + tree->number_of_dofs; i++) {
        const tb_real *row = d->mass + d->mass_row[i] + 1;
        x[i] *= (double)d->inverse_root[i];
        for (int32_t j = m->dofs[i].parent; j >= 0; j = m->dofs[j].parent)
            x[i] -= (double)*row++ * x[j];
    }
}

TB_EXTERN void tb_dynamics_unwhiten(const tb_dynamics *dynamics, double *x)
{
    const tb_model *m = dynamics->model;
    TB_EACH (t, m->number_of_trees) tb_dynamics_unwhiten_tree(dynamics, &m->trees[t], x);
    tb_team_sync();
}

/* ---- bias ---- */

/* Velocity-dependent part of a body's acceleration: the motion before each joint carries the
 * joint's own motion. `v` is the velocity before the body's joints. */
TB_STATIC tb_motion carried(const tb_dynamics *d, const tb_model_body *body, const tb_real *u,
                            tb_motion v)
{
    tb_motion a = tb_motion_zero();
    for (int32_t j = body->joint; j < body->joint + body->number_of_joints; j++) {
        const tb_model_joint *joint = &d->model->joints[j];
        const tb_motion *axes = d->axes + joint->dof;
        const tb_real *w = u + joint->dof;
        tb_motion own = tb_motion_zero();
        const int32_t count = tb_joint_dofs(joint->type);
        for (int k = 0; k < count; k++) own = tb_motion_add_scaled(own, axes[k], w[k]);
        if (joint->type == TB_JOINT_FREE) {
            /* the point at O changes as the body's origin moves on: -w x v of the origin */
            a.linear = tb_v3_sub(a.linear, tb_v3_cross(own.angular, tb_v3(w[0], w[1], w[2])));
        } else {
            a = tb_motion_add_scaled(a, tb_motion_cross(v, own), 1);
        }
        v = tb_motion_add_scaled(v, own, 1);
    }
    return a;
}

TB_STATIC void single_free_bias(const tb_dynamics *d, const tb_model_tree *tree, const tb_real *u,
                                tb_vec3 gravity, bool gyroscopic, tb_real *bias)
{
    const tb_model_body *body = &d->model->bodies[tree->body];
    const tb_vec3 w = tb_v3(u[tree->dof + 3], u[tree->dof + 4], u[tree->dof + 5]);
    tb_vec3 moment = tb_v3(0, 0, 0);
    if (gyroscopic) {
        const tb_mat33 inertia = tb_m33_symmetric(body->inertia);
        moment = tb_v3_cross(w, tb_m33_mul_v3(&inertia, w));
    }
    for (int k = 0; k < 3; k++) {
        bias[tree->dof + k] = -TB_R(body->mass) * tb_v3_at(gravity, k);
        bias[tree->dof + 3 + k] = tb_v3_at(moment, k);
    }
}

/* Acceleration and force of one body; its parent's are known. The base accelerates upward in
 * place of gravity. The force of a body that moves with its parent is in the parent's. */
TB_STATIC void accelerate_body(tb_dynamics *d, int32_t b, const tb_real *u, tb_vec3 gravity)
{
    const tb_model *m = d->model;
    const tb_model_body *body = &m->bodies[b];
    if (is_part_of_parent(m, b)) {
        d->accelerations[b] = d->accelerations[body->parent];
        d->forces[b] = tb_force_zero();
        return;
    }
    tb_motion v, a = tb_motion_zero();
    a.linear = tb_v3_negate(gravity);
    if (m->trees[body->tree].body == b) {
        v = base_motion(d, body->tree, &a);
    } else {
        v = d->velocities[body->parent];
        a = d->accelerations[body->parent];
    }
    d->accelerations[b] = tb_motion_add_scaled(a, carried(d, body, u, v), 1);
    const tb_inertia *inertia = &d->inertias[b];
    const tb_force momentum = tb_inertia_mul(inertia, d->velocities[b]);
    d->forces[b] = tb_force_add(tb_inertia_mul(inertia, d->accelerations[b]),
                                tb_force_cross(d->velocities[b], momentum));
}

/* Every body carries the forces of the bodies behind it ... */
TB_STATIC void gather_forces(tb_dynamics *d, const tb_model_tree *tree)
{
    const tb_model *m = d->model;
    for (int32_t b = tree->body + tree->number_of_bodies - 1; b > tree->body; b--) {
        tb_force *parent = &d->forces[m->bodies[b].parent];
        *parent = tb_force_add(*parent, d->forces[b]);
    }
}

/* ... and a dof feels the component along its axis. */
TB_STATIC tb_real dof_bias(const tb_dynamics *d, int32_t dof)
{
    return tb_motion_dot(d->axes[dof], d->forces[d->model->dofs[dof].body]);
}

#ifdef TB_DEVICE
TB_EXTERN void tb_dynamics_bias(tb_dynamics *dynamics, const tb_real *u, tb_vec3 gravity,
                                bool gyroscopic, tb_real *bias)
{
    tb_dynamics *d = dynamics;
    const tb_model *m = d->model;
    for (int32_t level = 0; level < m->number_of_levels; level++) {
        TB_EACH (b, m->number_of_bodies)
            if (m->bodies[b].level == level && is_jointed(m, m->bodies[b].tree))
                accelerate_body(d, b, u, gravity);
        tb_team_sync();
    }
    TB_EACH (t, m->number_of_trees) {
        if (m->trees[t].single_free)
            single_free_bias(d, &m->trees[t], u, gravity, gyroscopic, bias);
        else
            gather_forces(d, &m->trees[t]);
    }
    tb_team_sync();
    TB_EACH (i, m->number_of_dofs)
        if (is_jointed(m, m->dofs[i].tree)) bias[i] = dof_bias(d, i);
    tb_team_sync();
}
#else
TB_EXTERN void tb_dynamics_bias(tb_dynamics *dynamics, const tb_real *u, tb_vec3 gravity,
                                bool gyroscopic, tb_real *bias)
{
    tb_dynamics *d = dynamics;
    const tb_model *m = d->model;
    for (int32_t t = 0; t < m->number_of_trees; t++) {
        const tb_model_tree *tree = &m->trees[t];
        if (tree->single_free) {
            single_free_bias(d, tree, u, gravity, gyroscopic, bias);
            continue;
        }
        for (int32_t b = tree->body; b < tree->body + tree->number_of_bodies; b++)
            accelerate_body(d, b, u, gravity);
        gather_forces(d, tree);
        for (int32_t i = tree->dof; i < tree->dof + tree->number_of_dofs; i++)
            bias[i] = dof_bias(d, i);
    }
}
#endif

/* ---- integration ---- */

TB_EXTERN void tb_dynamics_integrate_tree(const tb_model *model, const tb_model_tree *tree,
                                          const tb_real *u, tb_real dt, tb_real *q)
{
    if (tree->single_free) {
        tb_free_body_fly(q + tree->coordinate, u + tree->dof, dt);
        return;
    }
    for (int32_t j = tree->joint; j < tree->joint + tree->number_of_joints; j++) {
        const tb_model_joint *joint = &model->joints[j];
        tb_real *x = q + joint->coordinate;
        const tb_real *w = u + joint->dof;
        switch (joint->type) {
        case TB_JOINT_HINGE:
        case TB_JOINT_SLIDE: x[0] += dt * w[0]; break;
        case TB_JOINT_BALL: tb_ball_turn(x, w, dt); break;
        case TB_JOINT_FREE: tb_free_body_fly(x, w, dt); break;
        default: break;
        }
    }
}

TB_EXTERN void tb_dynamics_integrate(const tb_model *model, const tb_real *u, tb_real dt,
                                     tb_real *q)
{
    TB_EACH (t, model->number_of_trees)
        tb_dynamics_integrate_tree(model, &model->trees[t], u, dt, q);
    tb_team_sync();
}
