/* A single free body alone: its inverse mass matrix, its free velocity, its motion. One body
 * wide; begin.c and world.c step the bodies of any world by it, large_motion.h the bodies of a
 * large world. */
#ifndef TB_FREE_BODY_H
#define TB_FREE_BODY_H

#include "model/model.h"
#include "step/dynamics/spatial.h"

/* x <- (s x, C x): the constant s and 3x3 matrix C of a single free body */
TB_FN void tb_free_body_multiply(double s, const double c[9], tb_real x[6])
{
    const tb_real a = x[3], b = x[4], e = x[5];
    for (int k = 0; k < 3; k++) {
        x[k] *= TB_R(s);
        x[3 + k] = TB_R(c[3 * k]) * a + TB_R(c[3 * k + 1]) * b + TB_R(c[3 * k + 2]) * e;
    }
}

/* The same with s and C of H^-1, of a whitened velocity. */
TB_FN void tb_free_body_unwhiten(const tb_model_tree *tree, double x[6])
{
    const double *c = tree->inverse_root, a = x[3], b = x[4], e = x[5];
    for (int k = 0; k < 3; k++) {
        x[k] *= (double)TB_R(tree->inverse_mass_root);
        x[3 + k] = (double)TB_R(c[3 * k]) * a + (double)TB_R(c[3 * k + 1]) * b +
                   (double)TB_R(c[3 * k + 2]) * e;
    }
}

/* x <- M^-1 x for the six dofs of a single free body. */
TB_FN void tb_free_body_solve(const tb_model_tree *tree, tb_real x[6])
{
    tb_free_body_multiply(tree->inverse_mass, tree->inverse_inertia, x);
}

/* Velocity after dt under gravity and `force` (N and, in body axes, N m), if no row pushed; it
 * turns by the energy-keeping implicit rule. */
TB_FN void tb_free_body_velocity(const tb_model_body *body, const tb_model_tree *tree,
                                 tb_vec3 gravity, const tb_real u[6], const tb_real force[6],
                                 tb_real dt, tb_real u_free[6])
{
    const tb_mat33 inertia = tb_m33_symmetric(body->inertia);
    const tb_vec3 w0 = tb_v3(u[3], u[4], u[5]);
    const tb_vec3 turn = tb_v3_sub(tb_gyroscopic_step(&inertia, w0, dt), w0);
    for (int k = 0; k < 3; k++) {
        u_free[k] = dt * (force[k] + TB_R(body->mass) * tb_v3_at(gravity, k));
        u_free[3 + k] = dt * force[3 + k];
    }
    tb_free_body_solve(tree, u_free);
    for (int k = 0; k < 3; k++) {
        u_free[k] += u[k];
        u_free[3 + k] = u_free[3 + k] + u[3 + k] + tb_v3_at(turn, k);
    }
}

/* A ball joint's quaternion turned by angular velocity w (body axes) for dt. */
TB_FN void tb_ball_turn(tb_real x[4], const tb_real w[3], tb_real dt)
{
    const tb_quaternion o =
        tb_q_integrate(tb_q(x[0], x[1], x[2], x[3]), tb_v3(w[0], w[1], w[2]), dt);
    x[0] = o.w, x[1] = o.x, x[2] = o.y, x[3] = o.z;
}

/* Moves a free body's seven coordinates by its six velocities. */
TB_FN void tb_free_body_fly(tb_real x[7], const tb_real u[6], tb_real dt)
{
    for (int k = 0; k < 3; k++) x[k] += dt * u[k];
    tb_ball_turn(x + 3, u + 3, dt);
}

/* The rest of a step's way, from velocities u0 at its start and u1 at its end. Stewart and
 * Trinkle's rule moves by the velocity at the end of the step, which closes gaps to the last bit
 * but turns a tumbling body to first order only. Where no impulse turned a free body (`pushed`), it
 * turns by the mean angular velocity, the one that tb_gyroscopic_step took its torque at: that is
 * the midpoint rule, of second order. */
TB_FN void tb_free_body_move(tb_real q[7], const tb_real u0[6], const tb_real u1[6], bool pushed,
                             tb_real dt, tb_real theta)
{
    if (theta != 1 || pushed) {
        tb_free_body_fly(q, u1, dt * theta);
        return;
    }
    tb_real mean[6];
    for (int k = 0; k < 3; k++) {
        mean[k] = u1[k];
        mean[3 + k] = TB_R(0.5) * (u0[3 + k] + u1[3 + k]);
    }
    tb_free_body_fly(q, mean, dt);
}

#endif
