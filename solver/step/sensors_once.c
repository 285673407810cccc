/* Numbers of a model's sensors in a state. Double, outside the step.
 *
 * Positions and velocities are those of the state. Accelerations are (u - u before the last step) /
 * dt, carried through the bodies by their frames' motion, and forces are impulses of the last step
 * over dt. Like MuJoCo's, accelerometers feel gravity. A force sensor gives the force of the parent
 * body on the site's body: the subtree's rate of momentum less its weight and the forces of
 * contacts, connects, welds and wrenches on it. */
#include <math.h>
#include <string.h>

#include "step/stages/stages.h"

/* A force and its moment about the world's origin, N and N m. */
typedef struct push {
    tb_vec3 force, moment;
} push;

typedef struct reading {
    const tb_state *state;
    const tb_model *model;
    double dt;
    tb_dynamics dynamics;
    tb_body_motion *motions;                        /* bodies */
    tb_vec3 *accelerations, *angular_accelerations; /* bodies; origin, m/s^2 and rad/s^2; or NULL */
    push *carried;                                  /* bodies: by the parent on the body; or NULL */
} reading;

static tb_vec3 origin_of(const reading *r, int32_t body)
{
    return tb_v3_load(r->motions[body].position);
}

static tb_quaternion axes_of(const reading *r, int32_t body)
{
    return tb_q_load(r->motions[body].orientation);
}

static tb_vec3 angular_of(const reading *r, int32_t body)
{
    return tb_v3_load(r->motions[body].angular_velocity);
}

/* Velocity of the body's point at a place of space. */
static tb_vec3 velocity_at(const reading *r, int32_t body, tb_vec3 point)
{
    return tb_v3_add(tb_v3_load(r->motions[body].linear_velocity),
                     tb_v3_cross(angular_of(r, body), tb_v3_sub(point, origin_of(r, body))));
}

static tb_vec3 acceleration_at(const reading *r, int32_t body, tb_vec3 point)
{
    const tb_vec3 w = angular_of(r, body), arm = tb_v3_sub(point, origin_of(r, body));
    return tb_v3_add(
        tb_v3_add(r->accelerations[body], tb_v3_cross(r->angular_accelerations[body], arm)),
        tb_v3_cross(w, tb_v3_cross(w, arm)));
}

/* ---- accelerations ---- */

/* Adds the joints of a body to its parent's motion `v` and rate of motion `a`, both about O. */
static void add_joints(const reading *r, const tb_model_body *body, tb_motion v, tb_motion *a)
{
    const tb_state *s = r->state;
    for (int32_t j = body->joint; j >= 0 && j < body->joint + body->number_of_joints; j++) {
        const tb_model_joint *joint = &r->model->joints[j];
        tb_motion relative = tb_motion_zero(), rate = tb_motion_zero();
        for (int32_t i = joint->dof; i < joint->dof + tb_joint_dofs(joint->type); i++) {
            const tb_motion axis = tb_dynamics_axis(&r->dynamics, i);
            relative = tb_motion_add_scaled(relative, axis, s->u[i]);
            rate = tb_motion_add_scaled(rate, axis, (s->u[i] - s->past_u[i]) / r->dt);
        }
        *a = tb_motion_add_scaled(*a, rate, 1);
        *a = tb_motion_add_scaled(*a, tb_motion_cross(v, relative), 1);
        /* a free joint's velocity is that of the origin, which O is only now */
        if (joint->type == TB_JOINT_FREE)
            a->linear = tb_v3_sub(a->linear, tb_v3_cross(relative.angular, relative.linear));
        v = tb_motion_add_scaled(v, relative, 1);
    }
}

static void find_accelerations(reading *r)
{
    const tb_model *m = r->model;
    const bool stepped = r->state->steps > 0;
    for (int32_t b = 0; b < m->number_of_bodies; b++) {
        const tb_model_body *body = &m->bodies[b];
        r->accelerations[b] = r->angular_accelerations[b] = tb_v3(0, 0, 0);
        if (!stepped || b == 0 || body->kinematic >= 0) continue; /* kinematic: constant velocity */
        const int32_t p = body->parent;
        const tb_vec3 o =
            body->tree >= 0 ? origin_of(r, m->trees[body->tree].body) : origin_of(r, b);
        const tb_vec3 to_o = tb_v3_sub(o, origin_of(r, p)), w = angular_of(r, p);
        tb_motion v = {w, velocity_at(r, p, o)};
        tb_motion a = {
            r->angular_accelerations[p],
            tb_v3_add(r->accelerations[p], tb_v3_cross(r->angular_accelerations[p], to_o))};
        a.linear = tb_v3_sub(a.linear, tb_v3_cross(w, tb_v3_load(r->motions[p].linear_velocity)));
        add_joints(r, body, v, &a);
        const tb_vec3 arm = tb_v3_sub(origin_of(r, b), o);
        r->angular_accelerations[b] = a.angular;
        r->accelerations[b] =
            tb_v3_add(tb_motion_at(a, arm),
                      tb_v3_cross(angular_of(r, b), tb_v3_load(r->motions[b].linear_velocity)));
    }
}

/* ---- forces between bodies ---- */

/* I x of a body about its centre of mass, world axes. */
static tb_vec3 inertia_times(const reading *r, int32_t body, tb_vec3 x)
{
    const double *i = r->model->bodies[body].inertia;
    const tb_quaternion axes = axes_of(r, body);
    const tb_vec3 own = tb_q_rotate(tb_q_conjugate(axes), x);
    return tb_q_rotate(axes, tb_v3(i[0] * own.x + i[3] * own.y + i[4] * own.z,
                                   i[3] * own.x + i[1] * own.y + i[5] * own.z,
                                   i[4] * own.x + i[5] * own.y + i[2] * own.z));
}

static void add_push(push *to, tb_vec3 force, tb_vec3 point, tb_vec3 torque, double scale)
{
    to->force = tb_v3_add_scaled(to->force, force, scale);
    to->moment = tb_v3_add_scaled(to->moment, tb_v3_add(tb_v3_cross(point, force), torque), scale);
}

/* Force and torque of a contact on B, at its position. */
static void contact_push(const tb_contact_record *c, double dt, tb_vec3 *force, tb_vec3 *torque)
{
    const tb_vec3 axes[3] = {tb_v3_load(c->normal), tb_v3_load(c->tangent1),
                             tb_v3_load(c->tangent2)};
    *force = *torque = tb_v3(0, 0, 0);
    for (int k = 0; k < c->kind; k++) {
        tb_vec3 *sum = k < 3 ? force : torque;
        *sum = tb_v3_add_scaled(*sum, axes[k % 3], c->impulse[k] / dt);
    }
}

static void subtract_contacts(reading *r)
{
    const tb_model *m = r->model;
    for (int32_t i = 0; i < r->state->number_of_contacts; i++) {
        const tb_contact_record *c = &r->state->contacts[i];
        tb_vec3 force, torque;
        contact_push(c, r->dt, &force, &torque);
        const tb_vec3 at = tb_v3_load(c->position);
        add_push(&r->carried[m->shapes[c->shape_a].body], force, at, torque, 1);
        add_push(&r->carried[m->shapes[c->shape_b].body], force, at, torque, -1);
    }
}

static tb_vec3 point_of(const reading *r, int32_t body, const double own[3])
{
    return tb_v3_add(origin_of(r, body), tb_q_rotate(axes_of(r, body), tb_v3_load(own)));
}

static void subtract_loops(reading *r)
{
    const tb_model *m = r->model;
    const double *rows = r->state->row_impulses + tb_row_memory_layout(m).equalities;
    for (int32_t i = 0; i < m->number_of_equalities; i++, rows += TB_EQUALITY_ROWS) {
        const tb_model_equality *e = &m->equalities[i];
        if (e->disabled || (e->type != TB_EQUALITY_CONNECT && e->type != TB_EQUALITY_WELD))
            continue;
        const tb_vec3 force = tb_v3_scale(tb_v3_load(rows), 1 / r->dt);
        const tb_vec3 torque = e->type == TB_EQUALITY_WELD
                                   ? tb_v3_scale(tb_v3_load(rows + 3), 1 / r->dt)
                                   : tb_v3(0, 0, 0);
        add_push(&r->carried[e->a], force, point_of(r, e->a, e->anchor_a), torque, 1);
        add_push(&r->carried[e->b], force, point_of(r, e->b, e->anchor_b), torque, -1);
    }
}

static void find_carried(reading *r)
{
    const tb_model *m = r->model;
    const tb_vec3 gravity = tb_v3_load(m->gravity);
    memset(r->carried, 0, (size_t)m->number_of_bodies * sizeof *r->carried);
    if (r->state->steps == 0) return;
    for (int32_t b = 1; b < m->number_of_bodies; b++) {
        const tb_vec3 com = tb_v3_load(r->motions[b].com), w = angular_of(r, b);
        const tb_vec3 rate =
            tb_v3_scale(tb_v3_sub(acceleration_at(r, b, com), gravity), m->bodies[b].mass);
        const tb_vec3 spin = tb_v3_add(inertia_times(r, b, r->angular_accelerations[b]),
                                       tb_v3_cross(w, inertia_times(r, b, w)));
        const double *wrench = r->state->wrenches + 6 * (size_t)b;
        add_push(&r->carried[b], rate, com, spin, 1);
        add_push(&r->carried[b], tb_v3_load(wrench), com, tb_v3_load(wrench + 3), -1);
    }
    subtract_contacts(r);
    subtract_loops(r);
    for (int32_t b = m->number_of_bodies - 1; b > 0; b--) {
        push *parent = &r->carried[m->bodies[b].parent];
        parent->force = tb_v3_add(parent->force, r->carried[b].force);
        parent->moment = tb_v3_add(parent->moment, r->carried[b].moment);
    }
}

/* ---- touch ---- */

/* Whether the ray from `p` along `d` meets a ball, scaled to radius 1. */
static bool ray_meets_ball(tb_vec3 p, tb_vec3 d)
{
    const double a = tb_v3_dot(d, d), b = tb_v3_dot(p, d), c = tb_v3_dot(p, p) - 1;
    return c <= 0 || (b <= 0 && b * b >= a * c);
}

/* Narrows [*from, *to] to where the ray is within |x| <= half; false if nowhere. */
static bool clip(double x, double d, double half, double *from, double *to)
{
    if (d == 0) return fabs(x) <= half;
    const double one = (-half - x) / d, two = (half - x) / d;
    *from = fmax(*from, fmin(one, two));
    *to = fmin(*to, fmax(one, two));
    return *from <= *to;
}

static bool ray_meets_cylinder(tb_vec3 p, tb_vec3 d, double radius, double half)
{
    double from = 0, to = INFINITY;
    if (!clip(p.z, d.z, half, &from, &to)) return false;
    const double a = d.x * d.x + d.y * d.y, b = p.x * d.x + p.y * d.y;
    const double c = p.x * p.x + p.y * p.y - radius * radius;
    if (a == 0) return c <= 0;
    const double root = b * b - a * c;
    if (root < 0) return false;
    from = fmax(from, (-b - sqrt(root)) / a);
    to = fmin(to, (-b + sqrt(root)) / a);
    return from <= to;
}

static bool ray_meets_zone(const tb_model_sensor *s, tb_vec3 p, tb_vec3 d)
{
    const double *size = s->zone_size;
    double from = 0, to = INFINITY;
    switch (s->zone_type) {
    case TB_SHAPE_SPHERE:
        return ray_meets_ball(tb_v3_scale(p, 1 / size[0]), tb_v3_scale(d, 1 / size[0]));
    case TB_SHAPE_ELLIPSOID:
        return ray_meets_ball(tb_v3(p.x / size[0], p.y / size[1], p.z / size[2]),
                              tb_v3(d.x / size[0], d.y / size[1], d.z / size[2]));
    case TB_SHAPE_BOX:
        return clip(p.x, d.x, size[0], &from, &to) && clip(p.y, d.y, size[1], &from, &to) &&
               clip(p.z, d.z, size[2], &from, &to);
    case TB_SHAPE_CYLINDER: return ray_meets_cylinder(p, d, size[0], size[1]);
    default: /* a capsule */
        if (ray_meets_cylinder(p, d, size[0], size[1])) return true;
        for (int end = -1; end <= 1; end += 2) {
            const tb_vec3 q = tb_v3(p.x, p.y, p.z - end * size[1]);
            if (ray_meets_ball(tb_v3_scale(q, 1 / size[0]), tb_v3_scale(d, 1 / size[0])))
                return true;
        }
        return false;
    }
}

/* As in MuJoCo, a contact counts if the line from its position out of the body along its normal
 * meets the zone. */
static double touch(const reading *r, const tb_model_sensor *s)
{
    const tb_model *m = r->model;
    const int32_t body = s->of.body;
    const tb_quaternion axes = tb_q_mul(axes_of(r, body), tb_q_load(s->of.orientation)),
                        back = tb_q_conjugate(axes);
    const tb_vec3 at = point_of(r, body, s->of.position);
    double sum = 0;
    for (int32_t i = 0; i < r->state->number_of_contacts; i++) {
        const tb_contact_record *c = &r->state->contacts[i];
        const bool a = m->shapes[c->shape_a].body == body, b = m->shapes[c->shape_b].body == body;
        if (!(a || b) || c->impulse[0] <= 0) continue;
        const tb_vec3 out = tb_v3_scale(tb_v3_load(c->normal), b ? -1 : 1);
        const tb_vec3 from = tb_v3_sub(tb_v3_load(c->position), at);
        if (ray_meets_zone(s, tb_q_rotate(back, from), tb_q_rotate(back, out)))
            sum += c->impulse[0] / r->dt;
    }
    return sum;
}

/* ---- subtrees ---- */

/* Bodies of a subtree follow its root. */
static int32_t subtree_end(const tb_model *m, int32_t body)
{
    int32_t end = body + 1;
    while (end < m->number_of_bodies && m->bodies[end].parent >= body) end++;
    return end;
}

static tb_vec3 subtree(const reading *r, const tb_model_sensor *s)
{
    const tb_model *m = r->model;
    const int32_t first = s->object, end = subtree_end(m, first);
    tb_vec3 com = tb_v3(0, 0, 0), velocity = com, momentum = com;
    double mass = 0;
    for (int32_t b = first; b < end; b++) {
        const tb_vec3 c = tb_v3_load(r->motions[b].com);
        mass += m->bodies[b].mass;
        com = tb_v3_add_scaled(com, c, m->bodies[b].mass);
        velocity = tb_v3_add_scaled(velocity, velocity_at(r, b, c), m->bodies[b].mass);
    }
    if (mass > 0) com = tb_v3_scale(com, 1 / mass), velocity = tb_v3_scale(velocity, 1 / mass);
    if (mass <= 0) com = origin_of(r, first);
    if (s->type == TB_SENSOR_SUBTREE_COM) return com;
    if (s->type == TB_SENSOR_SUBTREE_VELOCITY) return velocity;
    for (int32_t b = first; b < end; b++) {
        const tb_vec3 c = tb_v3_load(r->motions[b].com);
        const tb_vec3 v = tb_v3_sub(velocity_at(r, b, c), velocity);
        momentum = tb_v3_add(momentum, inertia_times(r, b, angular_of(r, b)));
        momentum = tb_v3_add_scaled(momentum, tb_v3_cross(tb_v3_sub(c, com), v), m->bodies[b].mass);
    }
    return momentum;
}

/* ---- frames ---- */

static tb_vec3 axis_of(tb_quaternion axes, int k)
{
    return tb_q_rotate(axes, tb_v3(k == 0, k == 1, k == 2));
}

static void frame(const reading *r, const tb_model_sensor *s, double *out)
{
    const int32_t body = s->of.body, base = s->relative.body;
    const tb_vec3 at = point_of(r, body, s->of.position);
    const tb_quaternion axes = tb_q_mul(axes_of(r, body), tb_q_load(s->of.orientation));
    tb_vec3 origin = tb_v3(0, 0, 0), v = origin, moving = origin, turning = origin;
    tb_quaternion back = tb_q_load((const double[4]){1, 0, 0, 0});
    if (s->has_reference) {
        origin = point_of(r, base, s->relative.position);
        back = tb_q_conjugate(tb_q_mul(axes_of(r, base), tb_q_load(s->relative.orientation)));
        moving = velocity_at(r, base, at); /* of the reference's point there */
        turning = angular_of(r, base);
    }
    switch (s->type) {
    case TB_SENSOR_FRAME_ORIENTATION: tb_q_store(out, tb_q_mul(back, axes)); return;
    case TB_SENSOR_FRAME_POSITION: v = tb_v3_sub(at, origin); break;
    case TB_SENSOR_FRAME_X_AXIS: v = axis_of(axes, 0); break;
    case TB_SENSOR_FRAME_Y_AXIS: v = axis_of(axes, 1); break;
    case TB_SENSOR_FRAME_Z_AXIS: v = axis_of(axes, 2); break;
    case TB_SENSOR_FRAME_LINEAR_VELOCITY: v = tb_v3_sub(velocity_at(r, body, at), moving); break;
    case TB_SENSOR_FRAME_ANGULAR_VELOCITY: v = tb_v3_sub(angular_of(r, body), turning); break;
    case TB_SENSOR_FRAME_LINEAR_ACCELERATION:
        if (r->state->steps > 0)
            v = tb_v3_sub(acceleration_at(r, body, at), tb_v3_load(r->model->gravity));
        break;
    default: v = r->angular_accelerations[body]; break;
    }
    tb_v3_store(out, tb_q_rotate(back, v));
}

static void site(const reading *r, const tb_model_sensor *s, double *out)
{
    const int32_t body = s->of.body;
    const tb_vec3 at = point_of(r, body, s->of.position);
    const tb_quaternion axes = tb_q_mul(axes_of(r, body), tb_q_load(s->of.orientation));
    tb_vec3 v = tb_v3(0, 0, 0);
    switch (s->type) {
    case TB_SENSOR_VELOCIMETER: v = velocity_at(r, body, at); break;
    case TB_SENSOR_GYRO: v = angular_of(r, body); break;
    case TB_SENSOR_ACCELEROMETER:
        if (r->state->steps > 0)
            v = tb_v3_sub(acceleration_at(r, body, at), tb_v3_load(r->model->gravity));
        break;
    case TB_SENSOR_FORCE: v = r->carried[body].force; break;
    default: v = tb_v3_sub(r->carried[body].moment, tb_v3_cross(at, r->carried[body].force)); break;
    }
    tb_v3_store(out, tb_q_rotate(tb_q_conjugate(axes), v));
}

/* ---- joints, tendons, actuators ---- */

static double tendon(const reading *r, int32_t index, bool speed, double *row)
{
    const tb_model *m = r->model;
    const tb_model_tendon *t = &m->tendons[index];
    const bool spatial = t->number_of_points > 0;
    if (!speed)
        return spatial ? tb_tendon_measure(&r->dynamics, index, NULL)
                       : tb_tendon_fixed_length(m, index, r->state->q);
    const double *c = m->tendon_coefficients + t->first;
    if (spatial) {
        tb_tendon_measure(&r->dynamics, index, row);
        c = row;
    }
    double sum = 0;
    for (int32_t k = 0; k < t->count; k++) sum += c[k] * r->state->u[m->tendon_dofs[t->first + k]];
    return sum;
}

static double actuator(const reading *r, const tb_model_sensor *s, double *row)
{
    const tb_model_actuator *a = &r->model->actuators[s->object];
    const bool speed = s->type == TB_SENSOR_ACTUATOR_VELOCITY;
    if (s->type == TB_SENSOR_ACTUATOR_FORCE) return r->state->actuator_force[s->object];
    if (a->tendon >= 0) return a->gear[0] * tendon(r, a->tendon, speed, row);
    const tb_model_joint *joint = &r->model->joints[a->joint];
    return a->gear[0] * (speed ? r->state->u[joint->dof] : r->state->q[joint->coordinate]);
}

static void joint(const reading *r, const tb_model_sensor *s, double *out)
{
    const tb_model_joint *j = &r->model->joints[s->object];
    const double *q = r->state->q + j->coordinate, *u = r->state->u + j->dof;
    const double *limits = r->state->row_impulses + tb_row_memory_layout(r->model).joint_limits +
                           2 * (size_t)s->object;
    switch (s->type) {
    case TB_SENSOR_JOINT_POSITION: out[0] = q[0]; break;
    case TB_SENSOR_JOINT_VELOCITY: out[0] = u[0]; break;
    case TB_SENSOR_BALL_ORIENTATION: memcpy(out, q, 4 * sizeof *out); break;
    case TB_SENSOR_BALL_VELOCITY: memcpy(out, u, 3 * sizeof *out); break;
    default: out[0] = (limits[0] + limits[1]) / r->dt; break;
    }
}

/* ---- the whole ---- */

static void read_sensor(const reading *r, const tb_model_sensor *s, double *row, double *out)
{
    if (s->type <= TB_SENSOR_BALL_VELOCITY)
        joint(r, s, out);
    else if (s->type <= TB_SENSOR_TENDON_VELOCITY)
        out[0] = tendon(r, s->object, s->type == TB_SENSOR_TENDON_VELOCITY, row);
    else if (s->type <= TB_SENSOR_ACTUATOR_FORCE)
        out[0] = actuator(r, s, row);
    else if (s->type <= TB_SENSOR_FRAME_ANGULAR_ACCELERATION)
        frame(r, s, out);
    else if (s->type <= TB_SENSOR_SUBTREE_ANGULAR_MOMENTUM)
        tb_v3_store(out, subtree(r, s));
    else if (s->type <= TB_SENSOR_TORQUE)
        site(r, s, out);
    else
        out[0] = s->type == TB_SENSOR_TOUCH ? touch(r, s) : r->state->time;
    const bool direction =
        (s->type >= TB_SENSOR_FRAME_ORIENTATION && s->type <= TB_SENSOR_FRAME_Z_AXIS) ||
        s->type == TB_SENSOR_BALL_ORIENTATION;
    for (int32_t k = 0; k < s->numbers && s->cutoff > 0 && !direction; k++)
        out[k] = fmax(-s->cutoff, fmin(s->cutoff, out[k]));
}

tb_status tb_state_sensors(const tb_state *state, double dt, double *numbers, tb_error *error)
{
    const tb_model *m = state->model;
    if (!(dt > 0))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "dt", "dt must be above 0, not %g", dt);
    if (m->number_of_sensors == 0) return TB_OK;
    tb_arena arena = {0};
    reading r = {.state = state, .model = m, .dt = dt};
    tb_status status = tb_state_sync_to_host(state, TB_STATE_ALL, error);
    if (status != TB_OK) return status;
    const bool rates = m->number_of_past_velocities > 0;
    const int32_t bodies = m->number_of_bodies, some = rates ? bodies : 0;
    status = tb_dynamics_look(&r.dynamics, state, &arena);
    r.motions = TB_ARENA_ARRAY(&arena, tb_body_motion, bodies);
    r.accelerations = TB_ARENA_ARRAY(&arena, tb_vec3, some);
    r.angular_accelerations = TB_ARENA_ARRAY(&arena, tb_vec3, some);
    r.carried = TB_ARENA_ARRAY(&arena, push, some);
    double *row = TB_ARENA_ARRAY(&arena, double, m->number_of_tendon_terms);
    if (status != TB_OK || !r.motions || !r.accelerations || !r.angular_accelerations ||
        !r.carried || !row)
        status = tb_fail_memory(error, 0, "sensors");
    if (status == TB_OK) status = tb_state_body_motions(state, r.motions);
    if (status == TB_OK && rates) {
        find_accelerations(&r);
        find_carried(&r);
    }
    for (int32_t i = 0; i < m->number_of_sensors && status == TB_OK; i++)
        read_sensor(&r, &m->sensors[i], row, numbers + m->sensors[i].first);
    tb_arena_destroy(&arena);
    return status;
}
