/* The first half of a step: state in, collision configuration, dynamics, forces, free velocity.
 *
 * Moreau's midpoint rule moves to q + dt/2 u first (Nützi ch. 4); Stewart and Trinkle's stays at q
 * (Betz 3.4). Springs and dampers on joints are implicit: with theta = 1 at the end of the step,
 * with theta = 1/2 at its middle, which keeps the midpoint rule's second order,
 *
 *     (M + dt theta D + dt^2 theta^2 K) (u1 - u0) = dt (f - K (x - x0) - D u0 ...)
 *
 * so they enter the mass matrix's diagonal and need no rows. */
#include <math.h>
#include <string.h>

#include "step/dynamics/free_body.h"
#if !defined(TB_SINGLE) && !defined(TB_DEVICE)
#include "step/stages/elastic/elastic.h"
#endif
#include "step/stages/stages.h"

/* ---- loading ---- */

TB_STATIC tb_status take_arrays(tb_world *w)
{
    const tb_model *m = w->model;
    const int32_t dofs = m->number_of_dofs;
    tb_arena_pieces pieces = tb_arena_begin(w->arena);
    w->q = TB_ARENA_PIECE(&pieces, tb_real, m->number_of_coordinates);
    w->u = TB_ARENA_PIECE(&pieces, tb_real, dofs);
    w->u_free = TB_ARENA_PIECE(&pieces, tb_real, dofs);
    w->u_end = TB_ARENA_PIECE(&pieces, tb_real, dofs);
    w->force = TB_ARENA_PIECE(&pieces, tb_real, dofs);
    w->diagonal = TB_ARENA_PIECE(&pieces, tb_real, dofs);
    w->actuator_force = TB_ARENA_PIECE(&pieces, double, m->number_of_actuators);
    w->kinematic =
        TB_ARENA_PIECE(&pieces, double, TB_KINEMATIC_NUMBERS * m->number_of_kinematic_bodies);
    w->chains.dofs = TB_ARENA_PIECE(&pieces, int32_t, dofs + 1);
    w->chains.parents = TB_ARENA_PIECE(&pieces, int32_t, dofs + 1);
    w->chains.sides = TB_ARENA_PIECE(&pieces, int8_t, dofs + 1);
    tb_arena_end(&pieces);
    if (!w->q || !w->u || !w->u_free || !w->u_end || !w->force || !w->diagonal ||
        !w->actuator_force || !w->kinematic || !w->chains.dofs || !w->chains.parents ||
        !w->chains.sides)
        return TB_RESOURCE_EXHAUSTED;
    TB_EACH (i, dofs) w->force[i] = 0;
    if (tb_tendons_take(w) != TB_OK) return TB_RESOURCE_EXHAUSTED;
    if (!tb_transmissions_take(w) || !tb_passive_take(w)) return TB_RESOURCE_EXHAUSTED;
    return tb_dynamics_take(&w->dynamics, m, w->arena);
}

TB_STATIC void load_state(tb_world *w, const double *kinematic)
{
    const tb_model *m = w->model;
    TB_EACH (i, m->number_of_coordinates) w->q[i] = TB_R(w->state->q[i]);
    TB_EACH (i, m->number_of_dofs) w->u[i] = TB_R(w->state->u[i]);
    TB_EACH (i, TB_KINEMATIC_NUMBERS * m->number_of_kinematic_bodies)
        w->kinematic[i] = kinematic[i];
    tb_team_sync();
}

/* Poses and velocities at the collision configuration. */
TB_STATIC void move_to_collision(tb_world *w)
{
    const tb_real ahead = w->dt * (1 - w->theta);
    if (w->theta != 1) {
        tb_dynamics_integrate(w->model, w->u, ahead, w->q);
        tb_world_move_kinematic(w, ahead);
    }
    tb_dynamics_motion(&w->dynamics, w->q, w->u, w->kinematic);
}

#ifdef TB_DEVICE
TB_EXTERN tb_status tb_world_pose(tb_world *world, const double *kinematic)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    tb_arena_pieces pieces = tb_arena_begin(w->arena);
    w->q = TB_ARENA_PIECE(&pieces, tb_real, m->number_of_coordinates);
    w->u = TB_ARENA_PIECE(&pieces, tb_real, m->number_of_dofs);
    w->kinematic =
        TB_ARENA_PIECE(&pieces, double, TB_KINEMATIC_NUMBERS * m->number_of_kinematic_bodies);
    tb_arena_end(&pieces);
    if (!w->q || !w->u || !w->kinematic) return TB_RESOURCE_EXHAUSTED;
    if (tb_dynamics_take(&w->dynamics, m, w->arena) != TB_OK) return TB_RESOURCE_EXHAUSTED;
    load_state(w, kinematic);
    move_to_collision(w);
    return TB_OK;
}
#endif

/* ---- forces ---- */

/* Keeps the forces of joint springs and dampers for the account of energy. False if memory is
 * refused. */
TB_STATIC bool keep_spring_force(tb_world *w)
{
#ifdef TB_SINGLE
    return true; /* accounts for no energy */
#endif
    const int32_t dofs = w->model->number_of_dofs;
    tb_real *kept = TB_ARENA_ARRAY(w->arena, tb_real, dofs);
    if (!kept) return false;
    TB_EACH (i, dofs) kept[i] = w->force[i];
    tb_team_sync();
    if (TB_LEADER) w->spring_force = kept;
    tb_team_sync();
    return true;
}

TB_STATIC bool is_wrench(const double wrench[6])
{
    bool any = false;
    for (int k = 0; k < 6; k++) any |= wrench[k] != 0;
    return any;
}

/* Adds the wrench on a body to the forces. Joints of type free have their linear velocity in world axes and
 * their angular in body axes; wrenches are in world axes about the centre of mass. */
TB_STATIC void push_wrench(tb_world *w, int32_t body, const double wrench[6])
{
    const tb_model *m = w->model;
    const tb_vec3 com = tb_pose_point(&w->dynamics.poses[body], tb_v3_load(m->bodies[body].com));
    const tb_vec3 r = tb_v3_sub(com, w->dynamics.references[m->bodies[body].tree]);
    tb_force f;
    f.force = tb_v3_load(wrench);
    f.moment = tb_v3_add(tb_v3_load(wrench + 3), tb_v3_cross(r, f.force));
    for (int32_t i = m->bodies[body].last_dof; i >= 0; i = m->dofs[i].parent)
        w->force[i] += tb_motion_dot(tb_dynamics_axis(&w->dynamics, i), f);
}

/* Most worlds have no wrenches. */
TB_STATIC void add_wrenches(tb_world *w)
{
    const tb_model *m = w->model;
    const double *wrenches = w->state->wrenches;
    bool any = false;
    TB_EACH (b, m->number_of_bodies) any |= is_wrench(wrenches + 6 * b);
    if (!tb_team_any(any)) return;
    for (int32_t b = 1; TB_LEADER && b < m->number_of_bodies; b++)
        if (m->bodies[b].tree >= 0 && is_wrench(wrenches + 6 * b))
            push_wrench(w, b, wrenches + 6 * b);
    tb_team_sync();
}

/* Coriolis terms at the mean velocity of the step, which makes the step second order in them. The
 * mean is predicted without contacts and limits, so its change D = du / 2 may be far from
 * what they leave of it: of the terms at u0 + D the part that is quadratic in D is left out,
 * which is of third order, and would push a chain at rest against a limit. bias: 2 x dofs, first at u0;
 * then the mean's. */
TB_STATIC tb_status mean_bias(tb_world *w, tb_real *bias)
{
    const tb_model *m = w->model;
    tb_dynamics *d = &w->dynamics;
    const int32_t dofs = m->number_of_dofs;
    tb_arena_pieces pieces = tb_arena_begin(w->arena);
    tb_real *mean = TB_ARENA_PIECE(&pieces, tb_real, 2 * dofs);
    tb_motion *velocities = TB_ARENA_PIECE(&pieces, tb_motion, 2 * m->number_of_bodies);
    tb_arena_end(&pieces);
    if (!mean || !velocities) return TB_RESOURCE_EXHAUSTED;
    tb_real *change = mean + dofs;
    const tb_real *of_change = bias + dofs;
    TB_EACH (i, dofs) mean[i] = w->force[i] - bias[i];
    tb_team_sync();
    tb_dynamics_solve(d, mean);
    TB_EACH (i, dofs) mean[i] = w->u[i] + w->dt * mean[i];
    tb_team_sync();
    /* rows push too: without them the prediction is of first order only */
    const bool second_order = w->theta != 1 && w->dt > 0;
    if (second_order && m->number_of_actuators + m->number_of_tendons > 0 &&
        tb_servos_predict(w, mean) != TB_OK)
        return TB_RESOURCE_EXHAUSTED;
    if (second_order && m->number_of_equalities > 0 && tb_equality_predict(w, mean) != TB_OK)
        return TB_RESOURCE_EXHAUSTED;
    TB_EACH (i, dofs) {
        change[i] = TB_R(0.5) * (mean[i] - w->u[i]);
        mean[i] = w->u[i] + change[i];
    }
    tb_team_sync();
    tb_dynamics_bias_of_two(d, mean, w->kinematic, tb_v3_load(m->gravity), velocities, bias);
    tb_tendons_gain(w, velocities);
    TB_EACH (i, dofs) bias[i] -= of_change[i];
    tb_team_sync();
    return TB_OK;
}

/* u_free = u0 + M^-1 dt (force - bias). */
TB_STATIC tb_status jointed_velocity(tb_world *w)
{
    const tb_model *m = w->model;
    tb_dynamics *d = &w->dynamics;
    const int32_t dofs = m->number_of_dofs;
    tb_real *bias = TB_ARENA_ARRAY(w->arena, tb_real, 2 * dofs);
    if (!bias) return TB_RESOURCE_EXHAUSTED;
    tb_dynamics_bias(d, w->u, tb_v3_load(m->gravity), false, bias);
    tb_tendons_gain(w, d->velocities);
    tb_team_sync();
    if (mean_bias(w, bias) != TB_OK) return TB_RESOURCE_EXHAUSTED;
    TB_EACH (i, dofs) w->u_free[i] = w->dt * (w->force[i] - bias[i]);
    tb_team_sync();
    tb_dynamics_solve(d, w->u_free);
    TB_EACH (i, dofs) w->u_free[i] += w->u[i];
    tb_team_sync();
    return TB_OK;
}

TB_STATIC void single_free_velocity(tb_world *w, const tb_model_tree *tree)
{
    tb_free_body_velocity(&w->model->bodies[tree->body], tree, tb_v3_load(w->model->gravity),
                          w->u + tree->dof, w->force + tree->dof, w->dt, w->u_free + tree->dof);
}

TB_STATIC tb_status free_velocity(tb_world *w)
{
    const tb_model *m = w->model;
    if (m->number_of_jointed_trees > 0 && jointed_velocity(w) != TB_OK)
        return TB_RESOURCE_EXHAUSTED;
    if (m->number_of_jointed_trees == 0) tb_tendons_gain(w, w->dynamics.velocities);
    TB_EACH (t, m->number_of_trees)
        if (m->trees[t].single_free) single_free_velocity(w, &m->trees[t]);
    tb_team_sync();
#ifndef TB_DEVICE
    for (int32_t i = 0; w->sleep && w->sleep->any && i < m->number_of_dofs; i++)
        if (tb_world_leaves_out(w, m->dofs[i].tree)) w->u_free[i] = 0;
#endif
    return TB_OK;
}

TB_EXTERN tb_status tb_world_begin(tb_world *world, tb_error *error)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    if (take_arrays(w) != TB_OK) return tb_fail_memory(error, 0, "a step's arrays");
#ifndef TB_DEVICE
    if (!tb_sleep_open(w)) return tb_fail_memory(error, 0, "a step's arrays");
#endif
    load_state(w, w->state->kinematic);
    TB_STAGE_DONE(TB_STAGE_ARRAYS);
    move_to_collision(w);
    tb_tendons_place(w);
    TB_STAGE_DONE(TB_STAGE_MOTION);

    tb_transmissions_find(w);
    tb_passive_forces(w);
    if (!keep_spring_force(w)) return tb_fail_memory(error, 0, "a step's arrays");
    add_wrenches(w);
    TB_EACH (i, m->number_of_dofs) w->force[i] += TB_R(w->state->applied[i]);
    tb_team_sync();
    tb_dynamics_mass(&w->dynamics, w->diagonal);
    const tb_status status = tb_dynamics_factor(&w->dynamics, error);
    /* a model that has made a step has inertia: its pose has left the range of numbers */
    if (status != TB_OK) return w->state->steps > 0 ? TB_DIVERGED : status;
    TB_STAGE_DONE(TB_STAGE_MASS);
    tb_actuators_push(w, false);
    if (free_velocity(w) != TB_OK) return tb_fail_memory(error, 0, "a step's free velocity");
    return TB_OK;
}

/* ---- smooth acceleration ---- */

#if !defined(TB_SINGLE) && !defined(TB_DEVICE)
/* Springs and dampers of tendons, which a step has as rows, as it has elastics. */
TB_STATIC void add_tendon_springs(tb_world *w)
{
    const tb_model *m = w->model;
    for (int32_t t = 0; t < m->number_of_tendons; t++) {
        const tb_model_tendon *tendon = &m->tendons[t];
        if (tendon->stiffness == 0 && tendon->damping == 0 && !tendon->is_polynomial) continue;
        const tb_transmission on = tb_tendon_transmission(w, t);
        const double stretch = tb_tendon_stretch(tendon, tb_tendon_length(w, t, w->q));
        const double velocity = tb_transmission_velocity(&on, w->u);
        double slope;
        const double k = tb_polynomial_coefficient(tendon->stiffness, tendon->stiffness_polynomial,
                                                   stretch, &slope);
        const double d = tb_polynomial_coefficient(tendon->damping, tendon->damping_polynomial,
                                                   fabs(velocity), &slope);
        const double force = -k * stretch - d * velocity;
        for (int32_t i = 0; i < on.count; i++) w->force[on.dofs[i]] += on.coefficients[i] * force;
    }
}

TB_EXTERN tb_status tb_world_smooth_acceleration(const tb_state *state, tb_workspace *workspace,
                                                 double *acceleration, tb_error *error)
{
    /* a step of no length: nothing is implicit, nothing moves */
    const tb_step_options options = tb_step_defaults();
    const tb_model *m = state->model;
    tb_world w = {.model = m,
                  .state = state,
                  .options = &options,
                  .arena = &workspace->arena,
                  .threads = workspace->threads};
    tb_arena_reset(w.arena);
    tb_status status = tb_world_begin(&w, error);
    double *force = status == TB_OK ? TB_ARENA_ARRAY(w.arena, double, m->number_of_dofs) : NULL;
    if (!force) return status == TB_OK ? tb_fail_memory(error, 0, "an acceleration") : status;

    /* tb_world_begin left the other forces in place and the velocities at u; its actuators without
     * rows are in there, so begin again with all of them */
    memset(w.force, 0, (size_t)m->number_of_dofs * sizeof *w.force);
    tb_passive_forces(&w);
    add_tendon_springs(&w);
    tb_elastics_push(&w, w.force);
    add_wrenches(&w);
    tb_actuators_push(&w, true);
    tb_dynamics_bias(&w.dynamics, w.u, tb_v3_load(m->gravity), true, force);
    for (int32_t i = 0; i < m->number_of_dofs; i++)
        acceleration[i] = w.force[i] + state->applied[i] - force[i];
    tb_dynamics_solve(&w.dynamics, acceleration);
    if (tb_tendons_slow(&w, acceleration) != TB_OK)
        return tb_fail_memory(error, 0, "an acceleration");
    return TB_OK;
}
#endif
