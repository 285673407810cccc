/* The medium: forces on bodies that move through it, and their implicit part.
 *
 * The force is that of the velocities at the start of the step. Drag grows with the velocity, by at
 * most B = (by_linear, by_angular) of fluid.h, and enters the step as
 *
 *     (M + dt theta J' B J) (u1 - u0) = dt f(u0),
 *
 * a linearly implicit step that is stable however thick the medium and of first order in the drag
 * (Hairer and Wanner, Solving ODEs II, IV.7, with an inexact Jacobian). B is a mass and a moment of
 * inertia about the centre of the box or ellipsoid, so that it goes into the composite inertias. */
#include "step/stages/fluid.h"
#include "step/stages/stages.h"

TB_EXTERN bool tb_fluid_take(tb_world *world)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    w->fluid_force = NULL;
    w->drag = NULL;
    w->drag_forces = NULL;
    if (m->number_of_fluids == 0) return true;
    w->fluid_force = TB_ARENA_ARRAY(w->arena, tb_real, m->number_of_dofs);
    w->drag = TB_ARENA_ARRAY(w->arena, tb_inertia, m->number_of_bodies);
    w->drag_forces = TB_ARENA_ARRAY(w->arena, tb_force, m->number_of_bodies);
    return w->fluid_force && w->drag && w->drag_forces;
}

/* Adds one box's or ellipsoid's force and drag to its body's. */
TB_CALLED void add_fluid(tb_world *w, const tb_model_fluid *f, tb_force *force, tb_inertia *drag)
{
    const tb_model *m = w->model;
    const tb_dynamics *d = &w->dynamics;
    tb_mat33 own;
    for (int k = 0; k < 9; k++) own.m[k] = TB_R(f->rotation[k]);
    const tb_mat33 axes = tb_m33_mul(&d->poses[f->body].rotation, &own);
    const tb_vec3 centre = tb_pose_point(&d->poses[f->body], tb_v3_load(f->position));
    const tb_vec3 r = tb_v3_sub(centre, d->references[m->bodies[f->body].tree]);
    const tb_motion motion = d->velocities[f->body];
    const tb_vec3 through = tb_v3_sub(tb_motion_at(motion, r), tb_v3_load(m->wind));
    const tb_vec3 v = tb_m33_tmul_v3(&axes, through);
    const tb_vec3 turn = tb_m33_tmul_v3(&axes, motion.angular);
    const tb_real density = TB_R(m->density), viscosity = TB_R(m->viscosity);
    const tb_drag drawn = f->ellipsoid ? tb_fluid_ellipsoid(f, density, viscosity, v, turn)
                                       : tb_fluid_box(f, density, viscosity, v, turn);

    const tb_vec3 push = tb_m33_mul_v3(&axes, drawn.force);
    const tb_vec3 moment = tb_m33_mul_v3(&axes, drawn.moment);
    force->force = tb_v3_add(force->force, push);
    force->moment = tb_v3_add(force->moment, tb_v3_add(moment, tb_v3_cross(r, push)));

    const tb_real h = w->dt * w->theta, i = h * drawn.by_angular;
    const tb_mat33 about = {{i, 0, 0, 0, i, 0, 0, 0, i}};
    const tb_inertia more = tb_inertia_make(h * drawn.by_linear, r, &about);
    tb_inertia_add(drag, &more);
}

TB_CALLED void find_body(tb_world *w, int32_t b)
{
    const tb_model *m = w->model;
    const tb_model_body *body = &m->bodies[b];
    const tb_vec3 zero = tb_v3(0, 0, 0);
    tb_force force = {zero, zero};
    tb_inertia drag = {0, zero, 0, 0, 0, 0, 0, 0};
    for (int32_t i = 0; i < body->number_of_fluids; i++)
        add_fluid(w, &m->fluids[body->fluid + i], &force, &drag);
    w->drag_forces[b] = force;
    w->drag[b] = drag;
}

/* Every body carries the forces of the bodies behind it, and a dof feels the component along its
 * axis. */
TB_CALLED void project_tree(tb_world *w, const tb_model_tree *tree)
{
    const tb_model *m = w->model;
    for (int32_t b = tree->body + tree->number_of_bodies - 1; b > tree->body; b--) {
        tb_force *parent = &w->drag_forces[m->bodies[b].parent];
        *parent = tb_force_add(*parent, w->drag_forces[b]);
    }
    for (int32_t i = tree->dof; i < tree->dof + tree->number_of_dofs; i++)
        w->fluid_force[i] =
            tb_motion_dot(tb_dynamics_axis(&w->dynamics, i), w->drag_forces[m->dofs[i].body]);
}

TB_EXTERN void tb_fluid_forces(tb_world *world)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    TB_EACH (b, m->number_of_bodies) find_body(w, b);
    tb_team_sync();
    TB_EACH (t, m->number_of_trees) project_tree(w, &m->trees[t]);
    tb_team_sync();
    TB_EACH (i, m->number_of_dofs) w->force[i] += w->fluid_force[i];
    if (TB_LEADER) w->dynamics.drag = w->drag;
    tb_team_sync();
}
