/* The energy of a state, and where a step's change of it comes from. Double only.
 *
 * With the mass matrix and the directions of its rows held fixed, a step changes the kinetic energy
 * by exactly the work that its impulses do at the mean velocity (u0 + u1) / 2. The account sorts
 * that work by the source of the impulse. The rest of a step's change of energy is its
 * discretization error: of second order in dt, and larger only where a motion is no longer
 * resolved. */
#include <math.h>
#include <string.h>

#include "step/stages/elastic/elastic.h"
#include "step/stages/stages.h"

TB_EXTERN tb_status tb_dynamics_look(tb_dynamics *d, const tb_state *state, tb_arena *arena)
{
    if (tb_dynamics_take(d, state->model, arena) != TB_OK) return TB_RESOURCE_EXHAUSTED;
    tb_dynamics_positions(d, state->q, state->kinematic);
    tb_dynamics_velocities(d, state->u, state->kinematic);
    return TB_OK;
}

/* Energy of a spring whose force is -x (k + p0 x + p1 x^2). */
TB_STATIC double polynomial_energy(double k, const double p[2], double x)
{
    return x * x * (k / 2 + x * (p[0] / 3 + x * p[1] / 4));
}

TB_STATIC double stretch_energy(const tb_model_joint *joint, double x)
{
    return polynomial_energy(joint->stiffness, joint->stiffness_polynomial, x);
}

TB_CALLED double spring_energy(const tb_model *m, const double *q)
{
    double energy = 0;
    for (int32_t j = 0; j < m->number_of_joints; j++) {
        const tb_model_joint *joint = &m->joints[j];
        const double *x = q + joint->coordinate;
        if (joint->stiffness == 0 && !m->has_polynomials) continue;
        if (joint->type == TB_JOINT_HINGE || joint->type == TB_JOINT_SLIDE) {
            energy += stretch_energy(joint, x[0] - joint->spring_reference);
        } else if (joint->type == TB_JOINT_BALL) {
            energy += stretch_energy(joint, tb_v3_length(tb_q_rotation_vector(tb_q_load(x))));
        } else if (joint->type == TB_JOINT_FREE) {
            const double *at = m->q_reference + joint->coordinate;
            const tb_vec3 way = tb_v3_sub(tb_v3_load(x), tb_v3_load(at));
            const tb_quaternion back = tb_q_conjugate(tb_q_load(at + 3));
            const tb_vec3 turn = tb_q_rotation_vector(tb_q_mul(back, tb_q_load(x + 3)));
            energy += stretch_energy(joint, tb_v3_length(way)) +
                      stretch_energy(joint, tb_v3_length(turn));
        }
    }
    return energy;
}

/* Energy of tendon springs at the poses in d, the poses of q. */
TB_CALLED double tendon_energy(const tb_dynamics *d, const double *q)
{
    const tb_model *m = d->model;
    double energy = 0;
    for (int32_t t = 0; t < m->number_of_tendons; t++) {
        const tb_model_tendon *tendon = &m->tendons[t];
        if (tendon->stiffness == 0 && !tendon->is_polynomial) continue;
        const double length = tendon->number_of_points > 0 ? tb_tendon_measure(d, t, NULL)
                                                           : tb_tendon_fixed_length(m, t, q);
        const double stretch = tb_tendon_stretch(tendon, length);
        energy += polynomial_energy(tendon->stiffness, tendon->stiffness_polynomial, stretch);
    }
    return energy;
}

/* Velocity of a body's centre of mass, and its angular velocity in body axes. */
typedef struct body_motion {
    tb_vec3 linear, angular;
} body_motion;

TB_STATIC body_motion motion_of(const tb_dynamics *d, int32_t b)
{
    const tb_model_body *body = &d->model->bodies[b];
    const tb_vec3 com = tb_pose_point(&d->poses[b], tb_v3_load(body->com));
    return TB_VALUE(body_motion){
        tb_motion_at(d->velocities[b], tb_v3_sub(com, d->references[body->tree])),
        tb_m33_tmul_v3(&d->poses[b].rotation, d->velocities[b].angular)};
}

/* a' M b of one body for two motions of it, J */
TB_STATIC double body_product(const tb_model_body *body, const body_motion *a, const body_motion *b)
{
    const tb_mat33 inertia = tb_m33_symmetric(body->inertia);
    return body->mass * tb_v3_dot(a->linear, b->linear) +
           tb_v3_dot(a->angular, tb_m33_mul_v3(&inertia, b->angular));
}

/* -m g . com of all bodies, without the weight that is compensated, J */
TB_CALLED double gravity_energy(const tb_dynamics *d)
{
    const tb_model *m = d->model;
    const tb_vec3 gravity = tb_v3_load(m->gravity);
    double energy = 0;
    for (int32_t b = 1; b < m->number_of_bodies; b++) {
        if (m->bodies[b].tree < 0) continue;
        const tb_vec3 com = tb_pose_point(&d->poses[b], tb_v3_load(m->bodies[b].com));
        energy -=
            m->bodies[b].mass * (1 - m->bodies[b].gravity_compensation) * tb_v3_dot(gravity, com);
    }
    return energy;
}

/* Energy of tendon armatures at velocities u of the dofs, J. */
TB_CALLED double armature_energy(const tb_dynamics *d, const double *u, tb_arena *arena)
{
    const tb_model *m = d->model;
    double energy = 0;
    for (int32_t i = 0; i < m->number_of_tendons; i++) {
        const tb_model_tendon *t = &m->tendons[i];
        if (t->armature == 0) continue;
        const double *row = m->tendon_coefficients + t->first;
        if (t->number_of_points > 0) {
            double *own = TB_ARENA_ARRAY(arena, double, t->count);
            if (!own) return energy;
            tb_tendon_measure(d, i, own);
            row = own;
        }
        double speed = 0;
        for (int32_t k = 0; k < t->count; k++) speed += row[k] * u[m->tendon_dofs[t->first + k]];
        energy += 0.5 * t->armature * speed * speed;
    }
    return energy;
}

/* of bodies and armatures at u, whose velocities are in d, J */
TB_CALLED double kinetic_energy(const tb_dynamics *d, const double *u, tb_arena *arena)
{
    const tb_model *m = d->model;
    double energy = armature_energy(d, u, arena);
    for (int32_t b = 1; b < m->number_of_bodies; b++) {
        if (m->bodies[b].tree < 0) continue;
        const body_motion motion = motion_of(d, b);
        energy += 0.5 * body_product(&m->bodies[b], &motion, &motion);
    }
    for (int32_t i = 0; i < m->number_of_dofs; i++)
        energy += 0.5 * m->dofs[i].armature * u[i] * u[i];
    return energy;
}

/* of gravity and springs at q, whose poses are in d, J */
TB_CALLED double potential_energy(const tb_dynamics *d, const double *q)
{
    return spring_energy(d->model, q) + gravity_energy(d) + tendon_energy(d, q) +
           tb_elastics_energy(d);
}

TB_EXTERN double tb_world_energy(const tb_state *state, tb_arena *arena)
{
    const tb_arena_mark mark = tb_arena_get_mark(arena);
    tb_dynamics d;
    double energy = 0;
    if (tb_dynamics_look(&d, state, arena) == TB_OK)
        energy = potential_energy(&d, state->q) + kinetic_energy(&d, state->u, arena);
    tb_arena_return_to(arena, mark);
    return energy;
}

/* ---- the account of a step ---- */

TB_EXTERN bool tb_world_turns_fast(const tb_world *world, const double *u)
{
    const tb_model *m = world->model;
    const double most = TB_UNCHECKED_TURN / world->dt;
    bool fast = false;
    TB_EACH (t, m->number_of_trees) {
        const tb_model_tree *tree = &m->trees[t];
        double sum = 0;
        for (int32_t i = tree->dof; i < tree->dof + tree->number_of_dofs; i++) {
            const tb_model_joint *joint = &m->joints[m->dofs[i].joint];
            const bool slides = joint->type == TB_JOINT_SLIDE ||
                                (joint->type == TB_JOINT_FREE && i < joint->dof + 3);
            if (!slides) sum += fabs(u[i]);
        }
        fast = fast || !(sum <= most);
    }
    return tb_team_any(fast);
}

TB_EXTERN double tb_world_begin_energy(tb_world *world)
{
    const tb_dynamics *d = &world->dynamics;
    if (world->theta != 1) return tb_world_energy(world->state, world->arena);
    const double energy = potential_energy(d, world->q) + kinetic_energy(d, world->u, world->arena);
    tb_team_sync();
    return energy;
}

TB_EXTERN double tb_world_end_energy(tb_world *world, bool placed)
{
    tb_dynamics *d = &world->dynamics;
    if (placed)
        tb_dynamics_velocities(d, world->u_end, world->kinematic);
    else
        tb_dynamics_motion(d, world->q, world->u_end, world->kinematic);
    const double energy =
        potential_energy(d, world->q) + kinetic_energy(d, world->u_end, world->arena);
    tb_team_sync();
    return energy;
}

/* A velocity of the dofs, and the motions of the bodies that it gives on bases that do not move. */
typedef struct world_motion {
    const double *u;
    body_motion *bodies;
} world_motion;

/* The motions at the poses of the step's collision configuration, at_rest NULL: of the velocities
 * that the dynamics have. */
TB_CALLED void read_motions(tb_world *w, const double *at_rest, const world_motion *motion)
{
    if (at_rest) tb_dynamics_velocities(&w->dynamics, motion->u, at_rest);
    TB_EACH (i, w->model->number_of_bodies)
        if (w->model->bodies[i].tree >= 0) motion->bodies[i] = motion_of(&w->dynamics, i);
    tb_team_sync();
}

/* a' M b, J */
TB_CALLED double mass_product(const tb_world *w, const world_motion *a, const world_motion *b)
{
    const tb_model *m = w->model;
    double sum = 0;
    for (int32_t i = 1; i < m->number_of_bodies; i++)
        if (m->bodies[i].tree >= 0)
            sum += body_product(&m->bodies[i], &a->bodies[i], &b->bodies[i]);
    for (int32_t i = 0; i < m->number_of_dofs; i++) sum += m->dofs[i].armature * a->u[i] * b->u[i];
    return sum;
}

/* d' M d (J) for d = b - a - c, c NULL: b - a */
TB_CALLED double change_product(const tb_world *w, const world_motion *a, const world_motion *b,
                                const world_motion *c)
{
    const tb_model *m = w->model;
    double sum = 0;
    for (int32_t i = 1; i < m->number_of_bodies; i++) {
        if (m->bodies[i].tree < 0) continue;
        body_motion change = {tb_v3_sub(b->bodies[i].linear, a->bodies[i].linear),
                              tb_v3_sub(b->bodies[i].angular, a->bodies[i].angular)};
        if (c) {
            change.linear = tb_v3_sub(change.linear, c->bodies[i].linear);
            change.angular = tb_v3_sub(change.angular, c->bodies[i].angular);
        }
        sum += body_product(&m->bodies[i], &change, &change);
    }
    for (int32_t i = 0; i < m->number_of_dofs; i++) {
        const double change = b->u[i] - a->u[i] - (c ? c->u[i] : 0);
        sum += m->dofs[i].armature * change * change;
    }
    return sum;
}

/* Work of actuators whose force is constant over the step. */
TB_CALLED double held_force_work(const tb_world *w, const double *mean)
{
    const tb_model *m = w->model;
    double work = 0;
    for (int32_t a = 0; a < m->number_of_actuators; a++) {
        if (w->actuator_force[a] == 0) continue;
        const tb_transmission t = tb_actuator_transmission(w, a);
        work += w->dt * w->actuator_force[a] * tb_transmission_velocity(&t, mean);
    }
    return work;
}

/* Sum over the bodies of a' B b (J) for two velocities of the dofs, B the added mass of implicit
 * drag. */
TB_CALLED double drag_product(tb_world *w, const double *a, const double *b, tb_motion *motions,
                              const double *at_rest)
{
    const tb_model *m = w->model;
    double sum = 0;
    if (m->number_of_fluids == 0) return 0;
    tb_dynamics_velocities(&w->dynamics, a, at_rest);
    for (int32_t i = 1; i < m->number_of_bodies; i++) motions[i] = w->dynamics.velocities[i];
    tb_team_sync();
    tb_dynamics_velocities(&w->dynamics, b, at_rest);
    for (int32_t i = 1; i < m->number_of_bodies; i++)
        if (m->bodies[i].tree >= 0)
            sum +=
                tb_motion_dot(motions[i], tb_inertia_mul(&w->drag[i], w->dynamics.velocities[i]));
    tb_team_sync();
    return sum;
}

/* Works of rows that are neither contacts nor joints. */
typedef struct servo_works {
    double motors, springs; /* of tendons and elastics, with their dampers */
    double damping;         /* the dampers' part of it */
} servo_works;

TB_CALLED servo_works servo_row_works(const tb_world *w, const tb_solution *solution,
                                      const double *mean)
{
    const tb_model *m = w->model;
    const tb_row_memory memory = tb_row_memory_layout(m);
    servo_works works = {0, 0, 0};
    works.springs = tb_elastics_work(w, solution, mean, &works.damping);
    for (int32_t r = 0; r < w->contact_rows; r++) {
        const int32_t a = w->memory[r] - memory.actuators, k = w->memory[r] - memory.tendon_rows;
        if (a >= 0 && a < m->number_of_actuators) {
            const tb_transmission t = tb_actuator_transmission(w, a);
            works.motors += solution->lambda[r] * tb_transmission_velocity(&t, mean);
        } else if (k >= 0 && k < TB_TENDON_ROWS * m->number_of_tendons && k % TB_TENDON_ROWS == 3) {
            const tb_transmission t = tb_tendon_transmission(w, k / TB_TENDON_ROWS);
            const double speed = tb_transmission_velocity(&t, mean);
            const double u = (1 - w->theta) * tb_transmission_velocity(&t, w->u) +
                             w->theta * tb_transmission_velocity(&t, w->u_end);
            works.springs += solution->lambda[r] * speed;
            const tb_model_tendon *tendon = &m->tendons[k / TB_TENDON_ROWS];
            const double *p = tendon->damping_polynomial;
            const double damping = tendon->damping + fabs(u) * (p[0] + p[1] * fabs(u));
            works.damping -= w->dt * damping * u * speed;
        }
    }
    return works;
}

/* Largest angle (rad) that a body turns by in the step, at these motions. */
TB_STATIC double largest_turn(const tb_world *w, const body_motion *motions)
{
    const tb_model *m = w->model;
    double largest = 0;
    for (int32_t b = 1; b < m->number_of_bodies; b++)
        if (m->bodies[b].tree >= 0)
            largest = fmax(largest, w->dt * tb_v3_length(motions[b].angular));
    return largest;
}

/* Energy (J) that turning bodies exchange: kinetic, of springs, and weights times their arms. */
TB_CALLED double exchanged_energy(const tb_world *w, double kinetic)
{
    const tb_model *m = w->model;
    const tb_dynamics *d = &w->dynamics;
    const double gravity = tb_v3_length(tb_v3_load(m->gravity));
    double energy =
        kinetic + spring_energy(m, w->q) + tendon_energy(d, w->q) + tb_elastics_energy(d);
    for (int32_t b = 1; b < m->number_of_bodies; b++) {
        const tb_model_body *body = &m->bodies[b];
        if (body->tree < 0 || m->trees[body->tree].single_free) continue;
        const tb_vec3 com = tb_pose_point(&d->poses[b], tb_v3_load(body->com));
        const tb_vec3 arm = tb_v3_sub(com, d->poses[m->trees[body->tree].body].position);
        energy += body->mass * gravity * tb_v3_length(arm);
    }
    return energy;
}

/* Power (W) of gravity and springs at a motion. */
TB_CALLED double conservative_power(const tb_world *w, const world_motion *motion)
{
    const double *u = motion->u;
    const tb_model *m = w->model;
    const tb_vec3 gravity = tb_v3_load(m->gravity);
    double power = tb_elastics_power(w, u), slope;
    for (int32_t b = 1; b < m->number_of_bodies; b++)
        if (m->bodies[b].tree >= 0)
            power += m->bodies[b].mass * tb_v3_dot(gravity, motion->bodies[b].linear);
    for (int32_t j = 0; j < m->number_of_joints; j++) {
        const tb_model_joint *joint = &m->joints[j];
        if (joint->type != TB_JOINT_HINGE && joint->type != TB_JOINT_SLIDE) continue;
        const double stretch = w->q[joint->coordinate] - joint->spring_reference;
        power -= tb_polynomial_coefficient(joint->stiffness, joint->stiffness_polynomial, stretch,
                                           &slope) *
                 stretch * u[joint->dof];
    }
    for (int32_t t = 0; t < m->number_of_tendons; t++) {
        const tb_model_tendon *tendon = &m->tendons[t];
        if (tendon->stiffness == 0 && !tendon->is_polynomial) continue;
        const tb_transmission on = tb_tendon_transmission(w, t);
        const double stretch = tb_tendon_stretch(tendon, tb_tendon_length(w, t, w->q));
        power -= tb_polynomial_coefficient(tendon->stiffness, tendon->stiffness_polynomial, stretch,
                                           &slope) *
                 stretch * tb_transmission_velocity(&on, u);
    }
    return power;
}

/* Largest share of the exchanged energy that is called an error of the step. */
#define LARGEST_ERROR 0.1
/* m/s: energies of motions so slow are rounding */
#define SMALLEST_SPEED 1e-6

/* True if a tree's base is a kinematic body. */
TB_STATIC bool bases_move(const tb_world *w)
{
    const tb_model *m = w->model;
    for (int32_t t = 0; t < m->number_of_trees; t++) {
        const int32_t parent = m->bodies[m->trees[t].body].parent;
        const int32_t k = m->bodies[m->bodies[parent].fixed_to].kinematic;
        if (k < 0) continue;
        for (int i = 7; i < TB_KINEMATIC_NUMBERS; i++)
            if (w->kinematic[TB_KINEMATIC_NUMBERS * k + i] != 0) return true;
    }
    return false;
}

/* Memory for a motion's bodies. */
TB_STATIC world_motion take_motion(tb_world *w, const double *u)
{
    return TB_VALUE(world_motion){
        u, TB_ARENA_ARRAY(w->arena, body_motion, w->model->number_of_bodies)};
}

/* Whether the speed of a tendon's armature grows by the turning of its pieces. */
TB_FN bool has_turning_armature(const tb_model_tendon *t)
{
    return t->armature != 0 && t->number_of_points > 0;
}

/* Sets the bodies' accelerations at the velocities of the end, which armature_error needs. False if memory is
 * refused. */
TB_CALLED bool accelerate_tendons(tb_world *w)
{
    const tb_model *m = w->model;
    bool any = false;
    for (int32_t i = 0; i < m->number_of_tendons; i++)
        any = any || has_turning_armature(&m->tendons[i]);
    if (!any) return true;
    tb_real *bias = TB_ARENA_ARRAY(w->arena, tb_real, m->number_of_dofs);
    if (!bias) return false;
    tb_dynamics_bias(&w->dynamics, w->u_end, tb_v3_load(m->gravity), false, bias);
    tb_team_sync();
    return true;
}

/* Discretization error (J) of a spatial tendon's armature a. The step takes the tendon's speed s
 * and the growth g of s by the turning of its pieces from the begin; at the end they are others, so
 * that a dt (g1 s1 - g0 s) remains, and terms of higher order. The bodies move with u_end. */
TB_CALLED double armature_error(const tb_world *w, int32_t tendon, double speed, double mean,
                                double turn)
{
    const double dt = w->dt, first = w->tendon_gains[tendon];
    const double last = tb_tendon_gain(w, tendon, w->dynamics.velocities);
    const double growth = dt * fmax(fabs(first), fabs(last));
    return w->model->tendons[tendon].armature *
           (dt * fabs(last * speed - first * mean) + growth * growth +
            2 * turn * growth * fmax(fabs(speed), fabs(mean)));
}

/* Energy (J) that tendons may gain in a step by its discretization: a spring that becomes taut or
 * slack within the step pulls by the begin's stretch, k (dt v)^2 / 2; and armature_error. turn:
 * rad, the largest of a body. */
TB_CALLED double tendon_error(const tb_world *w, double turn)
{
    const tb_model *m = w->model;
    const double dt = w->dt;
    double error = 0, slope;
    for (int32_t i = 0; i < m->number_of_tendons; i++) {
        const tb_model_tendon *t = &m->tendons[i];
        const tb_transmission on = tb_tendon_transmission(w, i);
        const double speed = tb_transmission_velocity(&on, w->u_end);
        const double stretch = tb_tendon_stretch(t, tb_tendon_length(w, i, w->q));
        tb_polynomial_coefficient(t->stiffness, t->stiffness_polynomial, stretch, &slope);
        error += 0.5 * fmax(t->stiffness, slope) * dt * dt * speed * speed;
        if (!has_turning_armature(t)) continue;
        const double mean = 0.5 * (speed + tb_transmission_velocity(&on, w->u));
        error += armature_error(w, i, speed, mean, turn);
    }
    return error;
}

/* Energy (J) that springs of joints may gain where a dof turns back within a step: the step takes the
 * spring's force at the end of u1, k dt u1, and its work at the mean, (k dt^2 / 2) |u0 u1| less than
 * the spring takes. */
TB_CALLED double returning_springs_error(const tb_world *w)
{
    const tb_model *m = w->model;
    double error = 0, slope;
    for (int32_t j = 0; j < m->number_of_joints; j++) {
        const tb_model_joint *joint = &m->joints[j];
        if (joint->stiffness == 0 && !m->has_polynomials) continue;
        double stiffness = joint->stiffness;
        if (joint->type == TB_JOINT_HINGE || joint->type == TB_JOINT_SLIDE) {
            tb_polynomial_coefficient(joint->stiffness, joint->stiffness_polynomial,
                                      w->q[joint->coordinate] - joint->spring_reference, &slope);
            stiffness = fmax(stiffness, slope);
        }
        const int32_t last = joint->dof + tb_joint_dofs(joint->type);
        for (int32_t i = joint->dof; i < last; i++)
            error += 0.5 * stiffness * w->dt * w->dt * fmax(0.0, -w->u[i] * w->u_end[i]);
    }
    return error;
}

/* The largest discretization error that a step from `begin` to `end` may have, J: see
 * tb_energy_account. pushed: the change of velocity by the rows, which the Coriolis terms do not
 * contain. works: J, the sum of the magnitudes of all works, because the directions of forces turn
 * with the bodies too. springs: J, of tendon_error and returning_springs_error. */
TB_CALLED double error_bound(const tb_world *w, const world_motion *begin, const world_motion *end,
                             const world_motion *pushed, double works, double springs)
{
    const tb_model *m = w->model;
    const double turn = fmax(largest_turn(w, begin->bodies), largest_turn(w, end->bodies));
    const double square = fmax(mass_product(w, begin, begin), mass_product(w, end, end));
    const double exchanged = exchanged_energy(w, 0.5 * square) + works;
    const double of_rows = sqrt(fabs(mass_product(w, pushed, pushed) * square));
    /* without the rows, whose impulses at an impact do not vanish with dt */
    const double changed =
        fmin(change_product(w, begin, end, NULL), change_product(w, begin, end, pushed));
    double mass = 0;
    for (int32_t b = 1; b < m->number_of_bodies; b++)
        if (m->bodies[b].tree >= 0) mass += m->bodies[b].mass;
    return changed + w->dt * fabs(conservative_power(w, end) - conservative_power(w, begin)) +
           fmin(3 * turn * turn, LARGEST_ERROR) * exchanged +
           3 * fmin(turn, LARGEST_ERROR) * of_rows + springs +
           mass * SMALLEST_SPEED * SMALLEST_SPEED;
}

TB_EXTERN tb_status tb_world_account(tb_world *world, const tb_solution *solution,
                                     tb_energy_account *account, tb_error *error)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    const int32_t dofs = m->number_of_dofs;
    const size_t kinematic = (size_t)(TB_KINEMATIC_NUMBERS * m->number_of_kinematic_bodies);
    double *mean = TB_ARENA_ARRAY(w->arena, double, dofs);
    double *by_rows = TB_ARENA_ARRAY(w->arena, double, dofs);
    double *change = TB_ARENA_ARRAY(w->arena, double, dofs);
    double *at_rest = TB_ARENA_ZEROED(w->arena, double, kinematic);
    const world_motion begin = take_motion(w, w->u), end = take_motion(w, w->u_end);
    const world_motion pushed = take_motion(w, by_rows);
    const world_motion pulled = take_motion(w, w->pulled);
    tb_motion *dragged = TB_ARENA_ARRAY(w->arena, tb_motion, m->number_of_bodies);
    if (!mean || !by_rows || !change || !at_rest || !dragged || !begin.bodies || !end.bodies ||
        !pushed.bodies || !pulled.bodies)
        return tb_fail_memory(error, 0, "an account of energy");
    TB_EACH (i, dofs) {
        mean[i] = 0.5 * (w->u[i] + w->u_end[i]);
        by_rows[i] = w->u_end[i] - w->u_free[i];
        change[i] = w->u_end[i] - w->u[i];
    }
    tb_team_sync();
    /* until here the dynamics move with u0 */
    read_motions(w, m->number_of_kinematic_bodies > 0 ? at_rest : NULL, &begin);
    read_motions(w, at_rest, &end);
    if (!accelerate_tendons(w)) return tb_fail_memory(error, 0, "an account of energy");
    const double springs = tendon_error(w, largest_turn(w, end.bodies)) +
                           returning_springs_error(w) + tb_elastics_error(w);
    tb_team_sync(); /* all have read the velocities */
    read_motions(w, at_rest, &pushed);
    if (w->pulled) read_motions(w, at_rest, &pulled);

    double held = held_force_work(w, mean);
    const servo_works servos = servo_row_works(w, solution, mean);
    double rows = 0.5 * (mass_product(w, &begin, &pushed) + mass_product(w, &end, &pushed)) +
                  drag_product(w, mean, by_rows, dragged, at_rest);
    double held_forces = 0, driven = 0;
    double damping = servos.damping - drag_product(w, mean, change, dragged, at_rest);
    double pulls = w->pulled
                       ? 0.5 * (mass_product(w, &begin, &pulled) + mass_product(w, &end, &pulled)) +
                             drag_product(w, mean, w->pulled, dragged, at_rest)
                       : 0;
    for (int32_t i = 0; i < dofs; i++) {
        const double u = (1 - w->theta) * w->u[i] + w->theta * w->u_end[i];
        held_forces += w->dt * (w->force[i] - w->spring_force[i]) * mean[i];
        damping += w->dt * tb_damper_force(&m->dofs[i], w->u[i], u) * mean[i];
        if (w->fluid_force) damping += w->dt * w->fluid_force[i] * mean[i];
        if (w->motor_excess) held += w->dt * w->motor_excess[i] * mean[i];
        if (m->trees[m->dofs[i].tree].single_free) continue;
        rows += w->diagonal[i] * by_rows[i] * mean[i];
        if (w->pulled) pulls += w->diagonal[i] * w->pulled[i] * mean[i];
    }
    for (int32_t r = 0; r < w->number_of_rows; r++)
        if (w->driven[r] != 0) driven -= solution->lambda[r] * w->driven[r];

    tb_energy_account *a = account;
    a->motors = held + servos.motors + pulls;
    a->damping = damping;
    a->applied = held_forces - held + driven;
    a->friction = rows - servos.motors - servos.springs - driven;
    a->bound = error_bound(
        w, &begin, &end, &pushed,
        fabs(a->motors) + fabs(a->damping) + fabs(a->applied) + fabs(a->friction), springs);
    a->bases_move = bases_move(w);
    tb_team_sync();
    return TB_OK;
}
