/* Motion of a small world: free bodies in coordinates of their centres of mass, and slides, whose axes
 * and masses never change. Both have constant inverse roots of their masses, so that rows are whitened
 * by products alone.
 *
 * A free body keeps the velocity u of its origin. With its centre at R c from there, the rule of
 * begin.c (Coriolis terms at the mean velocity of the step, less the part that is quadratic in the
 * change D) is
 *
 *     I dw = dt (t - q(w0 + D) + q(D)),  q(w) = w x I w,  D = dt/2 I^-1 (t - q(w0)),
 *     du   = dt (g + f / m) - R (dw x c) - dt R (r(w0 + D) - r(D)),  r(w) = w x (w x c),
 *
 * and where c is zero the energy-keeping rule of free_body.h. */
#ifndef TB_GPU_WARP_MOTION_H
#define TB_GPU_WARP_MOTION_H

#include "gpu/batch/small/warp_keep.h"

/* ---- where bodies are ---- */

/* The rotation of a quaternion, whose length need not be one to the last bit. */
TB_FN tb_mat33 warp_rotation(tb_quaternion q)
{
    const tb_real length2 = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z;
    const tb_real s = length2 > 0 ? 2 / length2 : TB_R(0);
    const tb_real x = s * q.x, y = s * q.y, z = s * q.z;
    const tb_real xx = x * q.x, xy = x * q.y, xz = x * q.z, yy = y * q.y, yz = y * q.z,
                  zz = z * q.z, wx = x * q.w, wy = y * q.w, wz = z * q.w;
    return TB_VALUE(tb_mat33){{1 - (yy + zz), xy - wz, xz + wy, xy + wz, 1 - (xx + zz), yz - wx,
                               xz - wy, yz + wx, 1 - (xx + yy)}};
}

TB_STATIC void place_free_body(warp_body *b, tb_vec3 com, const tb_real *x, const tb_real *u)
{
    b->pose.position = tb_v3(x[0], x[1], x[2]);
    b->pose.rotation = warp_rotation(tb_q(x[3], x[4], x[5], x[6]));
    b->centre = tb_pose_point(&b->pose, com);
    b->velocity = tb_v3(u[0], u[1], u[2]);
    b->spin = tb_m33_mul_v3(&b->pose.rotation, tb_v3(u[3], u[4], u[5]));
}

TB_STATIC void place_sliding_body(const warp_keep *keep, const warp_model_body *body, warp_body *b)
{
    const warp_common *common = keep->common;
    tb_vec3 position = body->pose.position, velocity = tb_v3(0, 0, 0);
    TB_ROLLED
    for (uint32_t left = body->slides; left != 0; left &= left - 1) {
        const int32_t i = lowest_bit(left);
        const tb_real x = keep->q[common->dof[i].coordinate];
        position = tb_v3_add_scaled(position, common->axes[i], x);
        velocity = tb_v3_add_scaled(velocity, common->axes[i], keep->u[i]);
    }
    b->pose.position = b->centre = position;
    b->velocity = velocity;
}

/* ---- forces ---- */

/* The law of an actuator whose force is affine in its length and speed (warp_fits.c), on a slide. */
TB_STATIC tb_actuator_law warp_actuator_law(const warp_keep *keep, int32_t actuator)
{
    const warp_model_actuator *a = &keep->common->actuator[actuator];
    const double input = fmin(fmax(keep->controls[actuator], a->least), a->most);
    const double l = a->gear * (double)keep->q[keep->common->row[actuator].coordinate];
    const double k = -a->gain[1] * input - a->bias[1], d = -a->gain[2] * input - a->bias[2];
    tb_actuator_law law;
    law.constant = a->gain[0] * input + a->bias[0] - k * l;
    law.damping = (double)keep->timing.dt * k + d;
    law.lower = a->lower;
    law.upper = a->upper;
    return law;
}

/* 1 / a in double from a seed in float, to an ulp or two. */
TB_FN double warp_reciprocal(double a)
{
    double y = (double)(1 / (float)a);
    y *= 2 - a * y;
    return y * (2 - a * y);
}

TB_STATIC warp_law warp_row_of_law(const warp_keep *keep, const tb_actuator_law *law)
{
    const double dt = (double)keep->timing.dt;
    const double inverse = law->damping > 0 ? warp_reciprocal(law->damping) : 0;
    warp_law row;
    row.is = law->damping > 0;
    row.lower = law->lower > -INFINITY ? TB_R(law->lower * dt) : -WARP_NONE;
    row.upper = law->upper < INFINITY ? TB_R(law->upper * dt) : WARP_NONE;
    row.bias = TB_R(-law->constant * inverse);
    row.compliance = TB_R(inverse) / keep->timing.dt;
    return row;
}

/* Force of an actuator that has no row. */
TB_STATIC double warp_actuator_force(const warp_keep *keep, int32_t actuator,
                                     const tb_actuator_law *law)
{
    if (law->damping > 0) return 0;
    const double v =
        keep->common->actuator[actuator].gear * (double)keep->u[keep->common->row[actuator].dof];
    return fmin(fmax(law->constant - law->damping * v, law->lower), law->upper);
}

/* Springs, dampers, actuators and applied forces on dofs. */
TB_STATIC void find_forces(warp_keep *keep, warp_forces *forces)
{
    const warp_common *common = keep->common;
    const int32_t lane = tb_team_lane();
    if (lane < keep->actuators) {
        const tb_actuator_law law = warp_actuator_law(keep, lane);
        keep->laws[lane] = warp_row_of_law(keep, &law);
        keep->pushing[lane] = warp_actuator_force(keep, lane, &law);
    }
    tb_team_sync();
    TB_EACH (i, keep->dofs) {
        tb_real force = TB_R(keep->state->applied[i]);
        if (is_slide(keep->slides, i)) {
            const warp_model_dof *dof = &common->dof[i];
            const tb_real stretch = keep->q[dof->coordinate] - dof->spring_reference;
            const tb_real k = dof->stiffness;
            force -= (dof->damping + k * keep->timing.dt) * keep->u[i] + k * stretch;
        }
        TB_ROLLED
        for (uint32_t left = common->dof[i].actuators; left != 0; left &= left - 1) {
            const int32_t a = lowest_bit(left);
            force += TB_R(common->actuator[a].gear * keep->pushing[a]);
        }
        forces->force[i] = force;
    }
    tb_team_sync();
}

/* ---- free velocities ---- */

/* The angular velocity's quadratic terms: q(w0 + D) - q(D), and r likewise. */
TB_FN void mean_terms(const tb_mat33 *inertia, tb_vec3 c, tb_vec3 w, tb_vec3 change, tb_vec3 *q,
                      tb_vec3 *r)
{
    const tb_vec3 mean = tb_v3_add(w, change);
    *q = tb_v3_sub(tb_v3_cross(mean, tb_m33_mul_v3(inertia, mean)),
                   tb_v3_cross(change, tb_m33_mul_v3(inertia, change)));
    *r = tb_v3_sub(tb_v3_cross(mean, tb_v3_cross(mean, c)),
                   tb_v3_cross(change, tb_v3_cross(change, c)));
}

/* I^-1 x by its lower triangular root C: C C' x. */
TB_FN tb_vec3 by_root_twice(const tb_real c[9], tb_vec3 x)
{
    const tb_real a = c[0] * x.x + c[3] * x.y + c[6] * x.z, b = c[4] * x.y + c[7] * x.z,
                  e = c[8] * x.z;
    return tb_v3(c[0] * a, c[3] * a + c[4] * b, c[6] * a + c[7] * b + c[8] * e);
}

/* u_free of a free body whose centre of mass is not its origin. */
TB_STATIC void free_body_velocity(const warp_keep *keep, const warp_body *b,
                                  const warp_model_body *body, const tb_mat33 inertia,
                                  const tb_real *force, tb_real *free)
{
    const tb_real *u = keep->u + body->dof;
    const tb_real dt = keep->timing.dt;
    const tb_vec3 c = body->com, spin = tb_v3(u[3], u[4], u[5]);
    /* generalized forces are about the origin */
    const tb_vec3 f = tb_v3(force[0], force[1], force[2]);
    const tb_vec3 about = tb_v3_cross(c, tb_m33_tmul_v3(&b->pose.rotation, f));
    const tb_vec3 t = tb_v3_sub(tb_v3(force[3], force[4], force[5]), about);
    tb_vec3 q, r;
    q = tb_v3_cross(spin, tb_m33_mul_v3(&inertia, spin));
    const tb_vec3 change =
        tb_v3_scale(by_root_twice(body->spin_root, tb_v3_sub(t, q)), TB_R(0.5) * dt);
    mean_terms(&inertia, c, spin, change, &q, &r);
    const tb_vec3 turn = tb_v3_scale(by_root_twice(body->spin_root, tb_v3_sub(t, q)), dt);
    const tb_vec3 own =
        tb_m33_mul_v3(&b->pose.rotation, tb_v3_add_scaled(tb_v3_cross(turn, c), r, dt));
    const tb_real inverse_mass = body->root * body->root;
    for (int k = 0; k < 3; k++) {
        const tb_real g = TB_R(keep->model->gravity[k]);
        free[k] = u[k] + dt * (g + force[k] * inverse_mass) - tb_v3_at(own, k);
        free[3 + k] = u[3 + k] + tb_v3_at(turn, k);
    }
}

/* Motion of the free body without impulses of rows, in double (contact_rows.c says why). */
TB_STATIC void free_body_motion(warp_body *b, tb_vec3 com, const tb_real *u)
{
    const tb_real *m = b->pose.rotation.m;
    double s[3], arm[3];
    for (int k = 0; k < 3; k++) {
        s[k] = arm[k] = 0;
        for (int j = 0; j < 3; j++) {
            s[k] += (double)m[3 * k + j] * (double)u[3 + j];
            arm[k] += (double)m[3 * k + j] * (double)tb_v3_at(com, j);
        }
        b->free_spin[k] = s[k];
    }
    b->free_velocity[0] = (double)u[0] + s[1] * arm[2] - s[2] * arm[1];
    b->free_velocity[1] = (double)u[1] + s[2] * arm[0] - s[0] * arm[2];
    b->free_velocity[2] = (double)u[2] + s[0] * arm[1] - s[1] * arm[0];
}

TB_STATIC void sliding_body_motion(const warp_keep *keep, uint32_t slides, warp_body *b)
{
    double v[3] = {0, 0, 0};
    TB_ROLLED
    for (uint32_t left = slides; left != 0; left &= left - 1) {
        const int32_t i = lowest_bit(left);
        const tb_vec3 axis = keep->common->axes[i];
        for (int k = 0; k < 3; k++) v[k] += (double)keep->u_free[i] * (double)tb_v3_at(axis, k);
    }
    for (int k = 0; k < 3; k++) b->free_velocity[k] = v[k];
}

/* u_free of slides: u + M^-1 dt (force - bias). */
TB_STATIC void slide_velocities(warp_keep *keep, const warp_forces *forces)
{
    const warp_common *common = keep->common;
    const int32_t own = tb_team_lane();
    if (!(own < keep->dofs && is_slide(keep->slides, own))) return;
    tb_real sum = 0;
    TB_ROLLED
    for (uint32_t left = keep->slides; left != 0; left &= left - 1) {
        const int32_t j = lowest_bit(left);
        sum += common->inverse[own][j] * (forces->force[j] - common->bias[j]);
    }
    keep->u_free[own] = keep->u[own] + keep->timing.dt * sum;
}

TB_STATIC void single_free_motion(warp_keep *keep, int32_t dof, const tb_real *force,
                                  const tb_model_body *body)
{
    const tb_model_tree *tree = &keep->model->trees[body->tree];
    tb_free_body_velocity(body, tree, tb_v3_load(keep->model->gravity), keep->u + dof, force,
                          keep->timing.dt, keep->u_free + dof);
}

/* Poses, forces and free velocities. False where a number has left its range. */
TB_STATIC bool warp_begin(warp_keep *keep, warp_problem *p)
{
    size_t bytes;
    warp_forces *forces = (warp_forces *)(void *)warp_free_memory(p, &bytes);
    const int32_t own = tb_team_lane();
    const bool is = own < keep->bodies;
    warp_body *b = &keep->body[is ? own : 0];
    const warp_model_body *body = &keep->common->body[is ? own : 0];
    const bool free = is && body->dof >= 0, slides = is && body->slides != 0;
    if (free) place_free_body(b, body->com, keep->q + body->coordinate, keep->u + body->dof);
    if (slides) place_sliding_body(keep, body, b);
    TB_STAGE_DONE(TB_STAGE_MOTION);
    find_forces(keep, forces);
    TB_STAGE_DONE(TB_STAGE_MASS);
    slide_velocities(keep, forces);
    if (free) {
        const tb_model_body *of_model = &keep->model->bodies[own];
        if (body->single_free)
            single_free_motion(keep, body->dof, forces->force + body->dof, of_model);
        else
            free_body_velocity(keep, b, body, tb_m33_symmetric(of_model->inertia),
                               forces->force + body->dof, keep->u_free + body->dof);
        free_body_motion(b, body->com, keep->u_free + body->dof);
    }
    tb_team_sync();
    if (slides) sliding_body_motion(keep, body->slides, b);
    tb_team_sync();
    bool finite = true;
    TB_EACH (i, keep->dofs) finite = finite && tb_all_finite(&keep->u_free[i], 1);
    TB_EACH (i, keep->coordinates) finite = finite && tb_all_finite(&keep->q[i], 1);
    TB_STAGE_DONE(TB_STAGE_BEGIN);
    return tb_team_all(finite);
}

#ifndef TB_SINGLE
/* Whether a free body turns so fast that the general step accounts for its energy (stages.h). */
TB_STATIC bool warp_turns_fast(const warp_keep *keep)
{
    const int32_t own = tb_team_lane();
    const double most = TB_UNCHECKED_TURN / (double)keep->timing.dt;
    bool fast = false;
    const int32_t dof = own < keep->bodies ? keep->common->body[own].dof : -1;
    if (dof >= 0) {
        const tb_real *u = keep->u + dof, *v = keep->u_free + dof;
        fast = !(tb_abs(u[3]) + tb_abs(u[4]) + tb_abs(u[5]) <= most) ||
               !(tb_abs(v[3]) + tb_abs(v[4]) + tb_abs(v[5]) <= most);
    }
    return tb_team_any(fast);
}
#endif

/* ---- the end of a step ---- */

/* Velocities of a free body from whitened ones. */
TB_STATIC void end_free_body(const warp_keep *keep, const warp_body *b, const warp_model_body *body,
                             const double *s, tb_real u[6])
{
    const double c[3] = {(double)body->com.x, (double)body->com.y, (double)body->com.z};
    const tb_real *root = body->spin_root, *m = b->pose.rotation.m;
    const tb_real *free = keep->u_free + body->dof;
    const double turn[3] = {(double)root[0] * s[3], (double)root[3] * s[3] + (double)root[4] * s[4],
                            (double)root[6] * s[3] + (double)root[7] * s[4] +
                                (double)root[8] * s[5]};
    const double own[3] = {turn[1] * c[2] - turn[2] * c[1], turn[2] * c[0] - turn[0] * c[2],
                           turn[0] * c[1] - turn[1] * c[0]};
    for (int k = 0; k < 3; k++) {
        const double moved = (double)m[3 * k] * own[0] + (double)m[3 * k + 1] * own[1] +
                             (double)m[3 * k + 2] * own[2];
        u[k] = TB_R((double)body->root * s[k] - moved + (double)free[k]);
        u[3 + k] = TB_R(turn[k] + (double)free[3 + k]);
    }
}

/* A quaternion turned by angular velocity w (body axes) for dt. Half of the angle goes through series for its
 * sine and cosine, and the length, which is one but for rounding, through a step of Newton's method. */
TB_STATIC tb_quaternion warp_turn(tb_quaternion q, tb_vec3 w, tb_real dt)
{
    /* rad^2: in float the series are exact; in double they serve where nothing turns */
    const tb_real most = sizeof(tb_real) == sizeof(float) ? TB_R(0.01) : TB_R(0);
    const tb_vec3 half = tb_v3_scale(w, TB_R(0.5) * dt);
    const tb_real a2 = tb_v3_dot(half, half);
    const tb_real s = 1 - a2 * (TB_R(1.0 / 6) - a2 * TB_R(1.0 / 120));
    const tb_real c = 1 - a2 * (TB_R(0.5) - a2 * (TB_R(1.0 / 24) - a2 * TB_R(1.0 / 720)));
    const tb_quaternion end = tb_q_mul(q, tb_q(c, s * half.x, s * half.y, s * half.z));
    const tb_real length2 = end.w * end.w + end.x * end.x + end.y * end.y + end.z * end.z,
                  off = length2 - 1;
    if (!(a2 <= most) || !(tb_abs(off) <= TB_R(1e-4))) return tb_q_integrate(q, w, dt);
    const tb_real f = 1 - TB_R(0.5) * off;
    return tb_q(f * end.w, f * end.x, f * end.y, f * end.z);
}

/* Moves a free body: tb_free_body_move. u0 and u1: velocities at the start and at the end of the step. `mean`: it
 * turns by their mean, because no impulse has turned it. */
TB_STATIC void warp_fly(tb_real x[7], const tb_real *u0, const tb_real u1[6], bool mean, tb_real dt)
{
    const tb_real old = mean ? TB_R(0.5) : TB_R(0), end = 1 - old;
    const tb_vec3 w =
        tb_v3(old * u0[3] + end * u1[3], old * u0[4] + end * u1[4], old * u0[5] + end * u1[5]);
    for (int k = 0; k < 3; k++) x[k] += dt * u1[k];
    const tb_quaternion q = warp_turn(tb_q(x[3], x[4], x[5], x[6]), w, dt);
    x[3] = q.w, x[4] = q.x, x[5] = q.y, x[6] = q.z;
}

/* u and q at the end from whitened velocities; false if a number has left its range, then both are as
 * they were. */
TB_STATIC bool warp_integrate(warp_keep *keep, const double *s)
{
    const warp_common *common = keep->common;
    const int32_t own = tb_team_lane();
    const tb_real dt = keep->timing.dt;
    const warp_model_body *body = &common->body[own < keep->bodies ? own : 0];
    const bool free = own < keep->bodies && body->dof >= 0;
    const bool slides = own < keep->dofs && is_slide(keep->slides, own);
    tb_real x[7], u[6], end = 0, at = 0;
    bool finite = true;
    const warp_body *b = &keep->body[free ? own : 0];
    const int32_t coordinate = free ? body->coordinate : 0;
    if (free) {
        const double *of = s + warp_column_of(body->tree_place, body->dof);
        for (int k = 0; k < 7; k++) x[k] = keep->q[coordinate + k];
        end_free_body(keep, b, body, of, u);
        warp_fly(x, keep->u + body->dof, u,
                 body->single_free && of[3] == 0 && of[4] == 0 && of[5] == 0, dt);
        tb_real none = 0; /* no loop over an address: x and u stay in registers */
        for (int k = 0; k < 7; k++) none += x[k] * 0;
        for (int k = 0; k < 6; k++) none += u[k] * 0;
        finite = none == 0;
    }
    const int32_t place = slides ? common->dof[own].coordinate : 0;
    if (slides) {
        double sum = (double)keep->u_free[own];
        TB_ROLLED
        for (uint32_t left = keep->slides; left != 0; left &= left - 1) {
            const int32_t j = lowest_bit(left);
            sum += (double)common->roots[own][j] * s[warp_column_of(common->dof[j].tree_place, j)];
        }
        end = TB_R(sum);
        at = keep->q[place] + dt * end;
        finite = finite && end * 0 + at * 0 == 0;
    }
    if (!tb_team_all(finite)) return false;
    if (free) {
        for (int k = 0; k < 7; k++) keep->q[coordinate + k] = x[k];
        for (int k = 0; k < 6; k++) keep->u[body->dof + k] = u[k];
    }
    if (slides) {
        keep->q[place] = at;
        keep->u[own] = end;
    }
    tb_team_sync();
    return true;
}

#endif
