/* A step by the volume law: memory, one integration, contacts and the account of energy. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "penalty/penalty_internal.h"

static const char DEFAULT_INTEGRATOR[] = "rkfix4";

/* ---- memory ---- */

/* Parts of a model that have no smooth force here. */
static tb_status check_model(const tb_model *m, tb_error *error)
{
    int32_t adhesive = m->has_adhesion;
    const struct {
        int32_t count;
        const char *what;
    } others[] = {{m->number_of_equalities, "equalities"},
                  {m->number_of_limited_joints, "joint limits"},
                  {m->number_of_dry_dofs, "dry friction in joints"},
                  {m->number_of_activations, "actuators with activations"},
                  {m->number_of_fluids, "a medium"},
                  {adhesive, "adhesion"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].count > 0)
            return tb_fail_field(error, TB_UNSUPPORTED, "scheme",
                                 "the volume law has no %s, and the model has", others[i].what);
    for (int32_t i = 0; i < m->number_of_tendons; i++)
        if (m->tendons[i].limited || m->tendons[i].dry_friction > 0)
            return tb_fail_field(error, TB_UNSUPPORTED, "scheme",
                                 "the volume law has no limits and no friction of tendons, and "
                                 "tendon '%s' has",
                                 tb_model_thing_name(m, TB_HANDLE_TENDON, i));
    return TB_OK;
}

static tb_status take_arrays(tb_penalty *p, const tb_model *m, tb_error *error)
{
    tb_arena *arena = &p->arena;
    const size_t bodies = (size_t)m->number_of_bodies;
    const size_t shapes = (size_t)p->number_of_shapes;
    p->size = m->number_of_coordinates + m->number_of_dofs + 1;
    p->poses = TB_ARENA_ARRAY(arena, tb_pose, bodies);
    p->linear = TB_ARENA_ZEROED(arena, tb_vec3, bodies);
    p->angular = TB_ARENA_ZEROED(arena, tb_vec3, bodies);
    p->com = TB_ARENA_ZEROED(arena, tb_vec3, bodies);
    p->wrenches = TB_ARENA_ARRAY(arena, double, 6 * bodies);
    p->kinematic =
        TB_ARENA_ARRAY(arena, double, TB_KINEMATIC_NUMBERS * m->number_of_kinematic_bodies);
    p->shape_poses = TB_ARENA_ARRAY(arena, tb_pose, shapes);
    p->boxes = TB_ARENA_ARRAY(arena, double, 6 * shapes);
    p->law_bodies = TB_ARENA_ZEROED(arena, tb_law_body, m->number_of_trees);
    p->near_boxes = TB_ARENA_ARRAY(arena, double, 6 * shapes);
    p->bounded_boxes = TB_ARENA_ARRAY(arena, double, 6 * shapes);
    p->bounded = TB_ARENA_ARRAY(arena, int32_t, shapes);
    p->bounded_shapes = TB_ARENA_ARRAY(arena, int32_t, shapes);
    p->y = TB_ARENA_ARRAY(arena, double, p->size);
    p->scratch = TB_ARENA_ARRAY(arena, double, (size_t)TB_INTEGRATE_ARRAYS *(size_t)p->size);
    if (!p->poses || !p->linear || !p->angular || !p->com || !p->wrenches || !p->kinematic ||
        !p->shape_poses || !p->boxes || !p->near_boxes || !p->bounded_boxes || !p->bounded ||
        !p->bounded_shapes || !p->law_bodies || !p->y || !p->scratch)
        return tb_fail_memory(error, 0, "a world by the volume law");
    return TB_OK;
}

/* A near pair's margin is a share of the usual shape's size. */
static double choose_margin(const tb_penalty *p)
{
    double sum = 0;
    int32_t count = 0;
    for (int32_t i = 0; i < p->number_of_shapes; i++) {
        const tb_law_shape *x = &p->shapes[i];
        if (x->half_space || x->fixed) continue;
        sum += fmax(x->upper[0] - x->lower[0],
                    fmax(x->upper[1] - x->lower[1], x->upper[2] - x->lower[2]));
        count++;
    }
    return count ? 0.1 * sum / count : 0;
}

/* ---- single bodies ---- */

/* A body's pose in the world at the reference coordinates, where no joint lies above it. */
static void find_home(const tb_model *m, int32_t b, tb_vec3 *position, tb_quaternion *orientation)
{
    *position = tb_v3_load(m->bodies[b].position);
    *orientation = tb_q_load(m->bodies[b].orientation);
    for (int32_t p = m->bodies[b].parent; p > 0; p = m->bodies[p].parent) {
        const tb_quaternion turn = tb_q_load(m->bodies[p].orientation);
        *position = tb_v3_add(tb_v3_load(m->bodies[p].position), tb_q_rotate(turn, *position));
        *orientation = tb_q_mul(turn, *orientation);
    }
    *orientation = tb_q_normalize(*orientation);
}

/* The constants of one slide or hinge at a body's home. */
static void take_joint(tb_law_body *law, const tb_model_joint *joint, int32_t i, tb_vec3 position,
                       tb_quaternion orientation)
{
    const tb_vec3 anchor = tb_v3_load(joint->position);
    tb_v3_store(law->axes[i], tb_q_rotate(orientation, tb_v3_load(joint->axis)));
    law->references[i] = joint->reference;
    if (joint->type != TB_JOINT_HINGE) return;
    memcpy(law->local_axis, joint->axis, sizeof law->local_axis);
    memcpy(law->local_anchor, joint->position, sizeof law->local_anchor);
    tb_v3_store(law->anchor, tb_v3_add(position, tb_q_rotate(orientation, anchor)));
}

/* The inverse inertia of the slides or of the hinge. False if it is singular. */
static bool invert_inertia(const tb_model_body *body, tb_law_body *law)
{
    tb_mat33 inertia = tb_m33_identity(), inverse;
    for (int32_t i = 0; i < law->dofs && law->joints == TB_LAW_SLIDES; i++)
        for (int32_t k = 0; k < law->dofs; k++)
            inertia.m[3 * i + k] =
                body->mass * tb_v3_dot(tb_v3_load(law->axes[i]), tb_v3_load(law->axes[k]));
    if (law->joints == TB_LAW_HINGE) {
        const tb_mat33 about_com = tb_m33_symmetric(body->inertia);
        const tb_vec3 axis = tb_v3_load(law->local_axis);
        const tb_vec3 arm =
            tb_v3_cross(axis, tb_v3_sub(tb_v3_load(body->com), tb_v3_load(law->local_anchor)));
        inertia.m[0] =
            tb_v3_dot(axis, tb_m33_mul_v3(&about_com, axis)) + body->mass * tb_v3_length2(arm);
    }
    if (tb_m33_inverse(&inertia, &inverse) == 0) return false;
    memcpy(law->inverse_inertia, inverse.m, sizeof law->inverse_inertia);
    return true;
}

/* A free body whose origin is not its centre of mass. False if it has no inertia. */
static bool take_free(const tb_model_body *body, tb_law_body *law)
{
    const tb_mat33 inertia = tb_m33_symmetric(body->inertia);
    tb_mat33 inverse;
    if (!(body->mass > 0) || tb_m33_inverse(&inertia, &inverse) == 0) return false;
    law->joints = TB_LAW_FREE_BESIDE;
    law->inverse_mass = 1 / body->mass;
    memcpy(law->inverse_inertia, inverse.m, sizeof law->inverse_inertia);
    memcpy(law->inertia, body->inertia, sizeof law->inertia);
    return true;
}

bool tb_penalty_simple_body(const tb_model *m, int32_t tree, tb_law_body *law)
{
    const tb_model_tree *t = &m->trees[tree];
    const tb_model_body *body = &m->bodies[t->body];
    tb_vec3 position;
    tb_quaternion orientation;
    memset(law, 0, sizeof *law);
    for (int32_t d = t->dof; d < t->dof + t->number_of_dofs; d++)
        if (m->dofs[d].damping != 0 || m->dofs[d].armature != 0) return false;
    law->dofs = t->number_of_dofs;
    law->weight = body->mass * (1 - body->gravity_compensation);
    if (t->single_free) {
        law->joints = TB_LAW_FREE;
        law->inverse_mass = t->inverse_mass;
        memcpy(law->inverse_inertia, t->inverse_inertia, sizeof law->inverse_inertia);
        memcpy(law->inertia, body->inertia, sizeof law->inertia);
        return true;
    }
    if (t->number_of_bodies != 1 || t->number_of_joints > TB_LAW_SLIDES_MOST) return false;
    memcpy(law->com, body->com, sizeof law->com);
    if (m->joints[t->joint].type == TB_JOINT_FREE) return take_free(body, law);
    law->joints = m->joints[t->joint].type == TB_JOINT_HINGE ? TB_LAW_HINGE : TB_LAW_SLIDES;
    if (law->joints == TB_LAW_HINGE && t->number_of_joints > 1) return false;
    find_home(m, t->body, &position, &orientation);
    tb_v3_store(law->position, position);
    tb_q_store(law->orientation, orientation);
    for (int32_t i = 0; i < t->number_of_joints; i++) {
        const tb_model_joint *joint = &m->joints[t->joint + i];
        if (joint->stiffness != 0 ||
            (law->joints == TB_LAW_SLIDES && joint->type != TB_JOINT_SLIDE))
            return false;
        take_joint(law, joint, i, position, orientation);
    }
    return invert_inertia(body, law);
}

static tb_status take_model(tb_penalty *p, const tb_model *m, tb_error *error)
{
    if (strcmp(p->sha256, m->sha256) == 0) return TB_OK;
    p->sha256[0] = 0;
    p->listed = false;
    tb_penalty_free_solids(p);
    tb_arena_reset(&p->arena);
    tb_status status = check_model(m, error);
    if (status == TB_OK) status = tb_penalty_take_shapes(p, m, error);
    if (status == TB_OK) status = take_arrays(p, m, error);
    if (status != TB_OK) return status;
    p->simple = m->number_of_actuators == 0 && m->number_of_tendons == 0 && !m->has_polynomials &&
                m->number_of_kinematic_bodies == 0;
    for (int32_t t = 0; t < m->number_of_trees && p->simple; t++)
        p->simple = tb_penalty_simple_body(m, t, &p->law_bodies[t]);
    p->margin = choose_margin(p);
    p->y_energy = NAN;
    memcpy(p->sha256, m->sha256, sizeof p->sha256);
    return TB_OK;
}

tb_status tb_penalty_prepare(tb_penalty *p, const tb_state *state, tb_error *error)
{
    const tb_status status = take_model(p, state->model, error);
    p->state = state;
    p->degenerate = false;
    return status;
}

void tb_penalty_destroy(tb_penalty *penalty)
{
    if (!penalty) return;
    tb_penalty_free_solids(penalty);
    tb_arena_destroy(&penalty->arena);
    tb_arena_destroy(&penalty->dynamics_memory.arena);
    tb_overlaps_found_free(&penalty->found);
    tb_broad_free(&penalty->broad);
    free(penalty->pairs);
    free(penalty->contacts);
    free(penalty);
}

/* ---- the step ---- */

/* Semi-implicit Euler: velocities by the forces at the start, then positions by the new velocities;
 * symplectic for forces of positions alone. */
static tb_status step_symplectic(tb_penalty *p, tb_initial_value *problem, tb_error *error)
{
    const tb_model *m = p->state->model;
    const int32_t coordinates = m->number_of_coordinates;
    const tb_status status = tb_penalty_slope(p, 0, p->y, p->scratch, error);
    problem->evaluations = problem->steps = 1;
    if (status != TB_OK) return status;
    for (int32_t i = coordinates; i < p->size; i++) p->y[i] += problem->dt * p->scratch[i];
    if (!p->simple) tb_dynamics_integrate(m, p->y + coordinates, problem->dt, p->y);
    for (int32_t t = 0; t < m->number_of_trees && p->simple; t++)
        tb_law_fly(&p->law_bodies[t], p->y + m->trees[t].coordinate,
                   p->y + coordinates + m->trees[t].dof, problem->dt);
    return TB_OK;
}

static tb_status integrate(tb_penalty *p, const tb_step_options *options, const char *name,
                           tb_initial_value *problem, tb_error *error)
{
    const tb_state *state = p->state;
    const tb_model *m = state->model;
    memcpy(p->y, state->q, (size_t)m->number_of_coordinates * sizeof *p->y);
    memcpy(p->y + m->number_of_coordinates, state->u, (size_t)m->number_of_dofs * sizeof *p->y);
    p->y[p->size - 1] = 0;
    *problem = (tb_initial_value){.slope = tb_penalty_slope,
                                  .context = p,
                                  .size = p->size,
                                  .threads = p->dynamics_memory.threads,
                                  .dt = options->dt > 0 ? options->dt : m->dt,
                                  .tolerance = options->solve.tolerance,
                                  .y = p->y,
                                  .scratch = p->scratch};
    if (strcmp(name, "symplectic") == 0) return step_symplectic(p, problem, error);
    return tb_integrate(name, problem, error);
}

static void normalize_quaternions(const tb_model *m, double *q)
{
    for (int32_t j = 0; j < m->number_of_joints; j++) {
        const tb_model_joint *joint = &m->joints[j];
        if (joint->type != TB_JOINT_FREE && joint->type != TB_JOINT_BALL) continue;
        double *x = q + joint->coordinate + (joint->type == TB_JOINT_FREE ? 3 : 0);
        tb_q_store(x, tb_q_normalize(tb_q_load(x)));
    }
}

/* The contacts of the last evaluation, with their forces times dt as impulses. */
static tb_status remember(tb_penalty *p, tb_state *state, double dt, tb_certificate *c)
{
    const int32_t count = p->number_of_contacts;
    const tb_status status = tb_state_reserve_next(state, count);
    if (status != TB_OK) return status;
    for (int32_t i = 0; i < count; i++) {
        const tb_law_contact *x = &p->contacts[i];
        tb_contact_record *r = &state->next_contacts[i];
        const tb_vec3 away = tb_v3_normalize(x->part.area, tb_v3(0, 0, 1));
        const tb_vec3 normal = tb_v3_negate(away); /* records point from A to B */
        const tb_vec3 force = tb_v3_negate(x->push.force), speed = tb_v3_negate(x->velocity);
        tb_vec3 t1, t2;
        tb_v3_tangents(normal, &t1, &t2);
        memset(r, 0, sizeof *r);
        r->shape_a = p->shapes[x->a].shape;
        r->shape_b = p->shapes[x->b].shape;
        r->feature = (uint64_t)i;
        tb_v3_store(r->position, x->part.centroid);
        tb_v3_store(r->normal, normal);
        tb_v3_store(r->tangent1, t1);
        tb_v3_store(r->tangent2, t2);
        r->gap = -x->part.depth;
        const tb_vec3 axes[3] = {normal, t1, t2};
        for (int k = 0; k < 3; k++) {
            r->impulse[k] = dt * tb_v3_dot(force, axes[k]);
            r->velocity[k] = tb_v3_dot(speed, axes[k]);
        }
        r->impulse[3] = -dt * tb_v3_dot(x->push.torque, normal);
        r->kind = TB_CONTACT_SPIN;
        r->status = TB_CONTACT_SLIP;
        c->penetration = fmax(c->penetration, x->part.depth);
    }
    tb_state_take_next(state, count);
    return TB_OK;
}

/* The contacts' work is integrated with the motion. The rest of the energy change is the work of
 * motors, dampers and moved bodies, if there are any, else the integrator's error. */
static void settle_energy(const tb_model *m, const tb_state *state, double before, double after,
                          double work, tb_certificate *c)
{
    bool others = m->number_of_actuators > 0 || m->number_of_kinematic_bodies > 0;
    for (int32_t d = 0; d < m->number_of_dofs; d++)
        others = others || m->dofs[d].damping != 0 || state->applied[d] != 0;
    for (int32_t i = 0; i < 6 * m->number_of_bodies; i++)
        others = others || state->wrenches[i] != 0;
    c->energy = after;
    c->energy_change = after - before;
    c->energy_friction = work;
    if (others)
        c->energy_applied = c->energy_change - work;
    else
        c->energy_unexplained = c->energy_change - work;
}

/* Sums of 0 y: a vector loop, which 65,000 comparisons are not. */
bool tb_penalty_is_finite(const tb_penalty *p, const double *y)
{
    double sums[4] = {0};
    int32_t i = 0;
    for (; i + 4 <= p->size; i += 4)
        for (int k = 0; k < 4; k++) sums[k] += 0 * y[i + k];
    for (; i < p->size; i++) sums[0] += 0 * y[i];
    return sums[0] + sums[1] + sums[2] + sums[3] == 0;
}

static double measure_energy(tb_penalty *p)
{
    tb_arena_reset(&p->dynamics_memory.arena);
    return tb_world_energy(p->state, &p->dynamics_memory.arena);
}

/* The energy of p's state, J, before a step overwrites p->y: known from the last step where nobody
 * has moved the state since. */
static double energy_before(tb_penalty *p)
{
    const tb_state *state = p->state;
    const tb_model *m = state->model;
    const size_t coordinates = (size_t)m->number_of_coordinates;
    const double known = p->y_energy;
    const bool same =
        !isnan(known) && m->number_of_kinematic_bodies == 0 &&
        memcmp(p->y, state->q, coordinates * sizeof *p->y) == 0 &&
        memcmp(p->y + coordinates, state->u, (size_t)m->number_of_dofs * sizeof *p->y) == 0;
    return same ? known : measure_energy(p);
}

/* Moves the state, of energy `before`, to p->y after `steps` steps. */
static tb_status finish(tb_penalty *p, tb_state *state, const tb_step_options *options, double dt,
                        int32_t steps, double before, tb_certificate *c, tb_error *error)
{
    const tb_model *m = state->model;
    const tb_status status = remember(p, state, dt, c);
    if (status != TB_OK) return tb_fail_memory(error, 0, "contacts");
    memcpy(state->past_u, state->u, (size_t)m->number_of_past_velocities * sizeof *state->past_u);
    memcpy(state->q, p->y, (size_t)m->number_of_coordinates * sizeof *p->y);
    memcpy(state->u, p->y + m->number_of_coordinates, (size_t)m->number_of_dofs * sizeof *p->y);
    for (int32_t i = 0; i < steps; i++) {
        tb_kinematic_move(state->kinematic, m->number_of_kinematic_bodies, dt);
        state->steps++;
        state->time += dt;
    }
    p->y_energy = NAN;
    if (!options->report_energy) return TB_OK;
    p->y_energy = measure_energy(p);
    settle_energy(m, state, before, p->y_energy, p->y[p->size - 1], c);
    return TB_OK;
}

static void certify(const tb_penalty *p, tb_state *state, const char *integrator,
                    int64_t evaluations, tb_certificate *c)
{
    c->status = TB_OK;
    if (p->degenerate) c->flags |= TB_CERTIFICATE_DEGENERATE;
    c->contacts = p->number_of_contacts;
    c->iterations = (int32_t)evaluations;
    strncpy(c->solver, integrator, sizeof c->solver - 1);
    c->step = state->steps;
    c->time = state->time;
    state->certificate = *c;
}

const char *tb_penalty_integrator(const tb_step_options *options)
{
    const char *name = options->solve.solver;
    return strcmp(name, "auto") == 0 ? DEFAULT_INTEGRATOR : name;
}

tb_status tb_penalty_take_steps(tb_penalty *p, tb_state *state, const tb_step_options *options,
                                const tb_penalty_steps *steps, tb_certificate *certificate,
                                tb_error *error)
{
    memset(certificate, 0, sizeof *certificate);
    tb_penalty_begin_kept(p);
    tb_status status = tb_penalty_evaluate(p, 0, steps->point, error);
    if (status != TB_OK) return status;
    const double before = options->report_energy ? measure_energy(p) : 0;
    status = finish(p, state, options, steps->dt, steps->steps, before, certificate, error);
    if (status != TB_OK) return status;
    certify(p, state, steps->integrator, steps->evaluations, certificate);
    if (steps->degenerate) certificate->flags |= TB_CERTIFICATE_DEGENERATE;
    certificate->penetration = fmax(certificate->penetration, steps->penetration);
    if (steps->contacts > certificate->contacts) certificate->contacts = steps->contacts;
    state->certificate = *certificate;
    return TB_OK;
}

tb_status tb_penalty_step(tb_state *state, const tb_step_options *options, tb_workspace *workspace,
                          tb_certificate *certificate, tb_error *error)
{
    memset(certificate, 0, sizeof *certificate);
    if (state->status == TB_DIVERGED) return tb_state_freeze(state, certificate, error);
    if (!workspace->penalty) workspace->penalty = calloc(1, sizeof *workspace->penalty);
    tb_penalty *p = workspace->penalty;
    if (!p) return tb_fail_memory(error, sizeof *p, "the volume law");
    p->dynamics_memory.threads = workspace->threads;
    tb_status status = tb_penalty_prepare(p, state, error);
    if (status != TB_OK) return status;
    const char *name = tb_penalty_integrator(options);
    const double before = options->report_energy ? energy_before(p) : 0;
    tb_initial_value problem;
    p->y_energy = NAN;
    tb_penalty_begin_kept(p);
    status = integrate(p, options, name, &problem, error);
    if (status == TB_DIVERGED || (status == TB_OK && !tb_penalty_is_finite(p, p->y)))
        return tb_state_freeze(state, certificate, error);
    if (status != TB_OK) return status;
    normalize_quaternions(state->model, p->y);
    status = finish(p, state, options, problem.dt, 1, before, certificate, error);
    if (status == TB_OK) certify(p, state, name, problem.evaluations, certificate);
    return status;
}
