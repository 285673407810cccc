/* Equalities: loops closed by points or frames, joints and tendons that follow one another.
 *
 * On the velocity level they are bilateral rows. On the position level their drift, which is of
 * second order in dt, is projected away after the step in the metric of the mass matrix,
 *
 *     q <- q - M^-1 W (W' M^-1 W)^-1 error,
 *
 * so that a loop's error is that of the arithmetic and not of the time step. Moreau's scheme treats
 * the velocity likewise, u <- u - M^-1 W (W' M^-1 W)^-1 W' u with W at the end of the step: only
 * from a velocity that keeps the loop closed does the next step's midpoint rule have its second
 * order (see tb_equality_bias). */
#include <math.h>
#include <string.h>

#include "step/stages/stages.h"

TB_STATIC tb_real polynomial(const double p[5], tb_real y, tb_real *slope)
{
    *slope = TB_R(p[1]) + y * (TB_R(2 * p[2]) + y * (TB_R(3 * p[3]) + y * TB_R(4 * p[4])));
    return TB_R(p[0]) + y * (TB_R(p[1]) + y * (TB_R(p[2]) + y * (TB_R(p[3]) + y * TB_R(p[4]))));
}

/* ---- joints and tendons ---- */

TB_STATIC tb_real *begin_joint(tb_world *w, const tb_model_equality *e, const tb_real *q,
                               int32_t memory, tb_real *error)
{
    const tb_model *m = w->model;
    const tb_model_joint *a = &m->joints[e->a], *b = e->b >= 0 ? &m->joints[e->b] : NULL;
    const int32_t leaves[2] = {a->dof, b ? b->dof : -1};
    tb_real *values = tb_block_begin(w, TB_LAW_BILATERAL, 1, leaves, 2, memory);
    if (!values) return NULL;
    tb_real slope;
    const tb_real y = b ? q[b->coordinate] - TB_R(e->reference_b) : 0;
    *error = q[a->coordinate] - TB_R(e->reference_a) - polynomial(e->polynomial, y, &slope);
    values[tb_block_position(&w->chains, a->dof)] += 1;
    if (b) values[tb_block_position(&w->chains, b->dof)] -= slope;
    return values;
}

/* Adds a tendon to a row; returns its drift. */
TB_STATIC tb_real fill_tendon(const tb_world *w, int32_t tendon, tb_real scale, tb_real *values)
{
    const tb_transmission t = tb_tendon_transmission(w, tendon);
    for (int32_t i = 0; i < t.count; i++)
        values[tb_block_position(&w->chains, t.dofs[i])] += scale * TB_R(t.coefficients[i]);
    return scale * TB_R(t.drift);
}

TB_STATIC tb_real *begin_tendon(tb_world *w, const tb_model_equality *e, const tb_real *q,
                                int32_t memory, tb_real *error, tb_real *drift)
{
    const tb_model *m = w->model;
    const tb_model_tendon *a = &m->tendons[e->a], *b = e->b >= 0 ? &m->tendons[e->b] : NULL;
    const int32_t count = a->count + (b ? b->count : 0);
    int32_t *leaves = TB_ARENA_ARRAY(w->arena, int32_t, count);
    if (!leaves) return NULL;
    memcpy(leaves, m->tendon_dofs + a->first, (size_t)a->count * sizeof *leaves);
    if (b) memcpy(leaves + a->count, m->tendon_dofs + b->first, (size_t)b->count * sizeof *leaves);
    tb_real *values = tb_block_begin(w, TB_LAW_BILATERAL, 1, leaves, count, memory);
    if (!values) return NULL;
    tb_real slope;
    const tb_real y = b ? tb_tendon_length(w, e->b, q) - TB_R(e->reference_b) : 0;
    *error =
        tb_tendon_length(w, e->a, q) - TB_R(e->reference_a) - polynomial(e->polynomial, y, &slope);
    *drift = fill_tendon(w, e->a, 1, values);
    if (b) *drift += fill_tendon(w, e->b, -slope, values);
    return values;
}

/* ---- bodies ---- */

/* Rows of B at its point minus A at its own, along world axes; then of the angular velocities. */
TB_STATIC void fill_bodies(const tb_world *w, const tb_model_equality *e, const tb_vec3 points[2],
                           tb_real *values, int32_t rows)
{
    const tb_model *m = w->model;
    const int32_t bodies[2] = {e->a, e->b};
    for (int side = 0; side < 2; side++) {
        const tb_real sign = side ? TB_R(1) : TB_R(-1);
        int32_t i = w->chains.width;
        for (int32_t dof = m->bodies[bodies[side]].last_dof; dof >= 0; dof = m->dofs[dof].parent) {
            do i--;
            while (w->chains.dofs[i] != dof);
            const tb_motion axis = tb_dynamics_axis(&w->dynamics, dof);
            const tb_vec3 r = tb_v3_sub(points[side], w->dynamics.references[m->dofs[dof].tree]);
            const tb_vec3 v = tb_motion_at(axis, r);
            for (int k = 0; k < 3; k++) {
                values[k * w->chains.width + i] += sign * tb_v3_at(v, k);
                if (rows == 6)
                    values[(3 + k) * w->chains.width + i] += sign * tb_v3_at(axis.angular, k);
            }
        }
    }
}

TB_STATIC tb_real *begin_bodies(tb_world *w, const tb_model_equality *e, int32_t memory,
                                tb_real *errors, tb_real *drift)
{
    const tb_model *m = w->model;
    const tb_dynamics *d = &w->dynamics;
    const int32_t rows = e->type == TB_EQUALITY_WELD ? 6 : 3;
    const int32_t leaves[2] = {m->bodies[e->a].last_dof, m->bodies[e->b].last_dof};
    tb_real *values = tb_block_begin(w, TB_LAW_BILATERAL, rows, leaves, 2, memory);
    if (!values) return NULL;

    const tb_vec3 points[2] = {tb_pose_point(&d->poses[e->a], tb_v3_load(e->anchor_a)),
                               tb_pose_point(&d->poses[e->b], tb_v3_load(e->anchor_b))};
    fill_bodies(w, e, points, values, rows);
    const tb_vec3 apart = tb_v3_sub(points[1], points[0]);
    const tb_quaternion wanted = tb_q_mul(d->orientations[e->a], tb_q_load(e->orientation));
    const tb_vec3 turned =
        tb_q_rotation_vector(tb_q_mul(d->orientations[e->b], tb_q_conjugate(wanted)));
    const tb_motion moved = tb_motion_add_scaled(tb_prescribed_motion(w, e->b, points[1]),
                                                 tb_prescribed_motion(w, e->a, points[0]), -1);
    for (int k = 0; k < 3; k++) {
        errors[k] = tb_v3_at(apart, k);
        drift[k] = tb_v3_at(moved.linear, k);
        if (rows != 6) continue;
        errors[3 + k] = tb_v3_at(turned, k);
        drift[3 + k] = tb_v3_at(moved.angular, k);
    }
    return values;
}

TB_EXTERN tb_real *tb_equality_begin(tb_world *world, int32_t equality, const tb_real *q,
                                     int32_t memory, tb_real errors[TB_EQUALITY_ROWS],
                                     tb_real drift[TB_EQUALITY_ROWS])
{
    const tb_model_equality *e = &world->model->equalities[equality];
    for (int k = 0; k < TB_EQUALITY_ROWS; k++) errors[k] = drift[k] = 0;
    switch (e->type) {
    case TB_EQUALITY_JOINT: return begin_joint(world, e, q, memory, errors);
    case TB_EQUALITY_TENDON: return begin_tendon(world, e, q, memory, errors, drift);
    default: return begin_bodies(world, e, memory, errors, drift);
    }
}

/* Stewart and Trinkle: the loop keeps its error, which the projection below takes away.
 *
 * Moreau: the rows change their direction within the step, so a velocity that keeps the loop closed
 * at its beginning has the velocity dt/2 W'' u along the rows of its middle, and one that does so
 * at the end the opposite. The rows hence turn the velocity round, like a collision with e = 1, and
 * like it they keep the energy. */
TB_EXTERN void tb_equality_bias(const tb_world *world, const tb_real *values, int32_t rows,
                                const tb_real drift[TB_EQUALITY_ROWS],
                                tb_real bias[TB_EQUALITY_ROWS])
{
    const tb_world *w = world;
    for (int32_t r = 0; r < rows; r++)
        bias[r] = w->theta == 1
                      ? 0
                      : tb_block_dot(&w->chains, values + r * w->chains.width, w->u) + drift[r];
}

/* Error (m or rad) up to which a loop is closed within one step. */
TB_STATIC tb_real projected_error(const tb_world *w)
{
    return TB_R(w->options->recovery_speed) * w->dt;
}

TB_EXTERN void tb_equality_recovery(const tb_world *world, int32_t rows,
                                    const tb_real errors[TB_EQUALITY_ROWS], tb_real *recovery)
{
    const tb_world *w = world;
    const tb_real speed = TB_R(w->options->recovery_speed);
    tb_real largest = 0;
    for (int32_t r = 0; r < rows; r++) largest = tb_max(largest, tb_abs(errors[r]));
    const bool far = largest > projected_error(w);
    for (int32_t r = 0; r < rows; r++)
        recovery[r] = far ? tb_clamp(errors[r] / w->dt, -speed, speed) : 0;
}

/* ---- projection ---- */

enum { PROJECTION_STEPS = 5 };

/* Rows of all equalities as assembled. */
typedef struct closure {
    tb_real *errors;     /* m or rad */
    tb_real *velocities; /* under the velocity asked about, drift included */
    tb_real *biases;
    tb_real largest; /* error */
} closure;

TB_STATIC bool take_closure(tb_world *w, closure *c)
{
    const int32_t rows = TB_EQUALITY_ROWS * w->model->number_of_equalities;
    c->errors = TB_ARENA_ARRAY(w->arena, tb_real, rows);
    c->velocities = TB_ARENA_ARRAY(w->arena, tb_real, rows);
    c->biases = TB_ARENA_ARRAY(w->arena, tb_real, rows);
    return c->errors && c->velocities && c->biases;
}

/* Drops all blocks, and the chains in their segments. */
TB_STATIC void drop_blocks(tb_world *w)
{
    tb_world_sync(w); /* all are done with them */
    if (TB_LEADER) {
        w->number_of_blocks = w->number_of_rows = w->number_of_segments = 0;
        w->number_of_values = 0;
        w->has_chains = false;
    }
    tb_world_sync(w);
}

TB_STATIC tb_status add_equalities_at(tb_world *w, const tb_real *q, const tb_real *u, closure *c)
{
    const tb_model *m = w->model;
    drop_blocks(w);
    c->largest = 0;
    for (int32_t i = 0; i < m->number_of_equalities; i++) {
        if (m->equalities[i].disabled) continue;
        const int32_t row = w->number_of_rows;
        tb_real own[TB_EQUALITY_ROWS], drift[TB_EQUALITY_ROWS];
        tb_real *values = tb_equality_begin(w, i, q, -1, own, drift);
        if (!values) return TB_RESOURCE_EXHAUSTED;
        tb_equality_bias(w, values, w->number_of_rows - row, drift, c->biases + row);
        for (int32_t r = row; r < w->number_of_rows; r++) {
            const int32_t k = r - row;
            c->errors[r] = own[k];
            c->velocities[r] = tb_block_dot(&w->chains, values + k * w->chains.width, u) + drift[k];
            c->largest = tb_max(c->largest, tb_abs(own[k]));
        }
        if (w->chains.width == 0)
            tb_block_cancel(w);
        else
            tb_block_end(w, values);
    }
    return TB_OK;
}

/* Assembles all equalities at q into fresh blocks; velocities are those of u. */
TB_STATIC tb_status assemble_equalities(tb_world *w, const tb_real *q, const tb_real *u, closure *c)
{
    tb_status status = TB_OK;
    if (tb_world_alone(w)) status = add_equalities_at(w, q, u, c);
    tb_world_together(w, &status);
    tb_team_share(&c->largest, sizeof c->largest);
    return status;
}

/* Ridges over the mean diagonal of G, tried one after the other. Loops in a plane have rows that
 * say the same, which rounding makes singular; rows that differ by the last digits of their axes
 * take a larger one, else an error between them moves the loop far away. */
#define ROUNDING_RIDGE (TB_REAL_EPSILON * 64)
#define AXES_RIDGE     tb_max((tb_real)1e-9, TB_REAL_EPSILON * 64)

/* mu = -G^-1 x by Cholesky. False where that has no answer. */
TB_STATIC bool least_impulses(const tb_real *x, int32_t n, tb_real ridge, tb_real *g, tb_real *mu)
{
    tb_real trace = 0;
    for (int32_t i = 0; i < n; i++) trace += g[i * n + i];
    for (int32_t i = 0; i < n; i++) {
        g[i * n + i] += trace * ridge;
        mu[i] = -x[i];
    }
    if (!(trace > 0) || tb_cholesky(g, n, n) != n) return false;
    tb_cholesky_solve(g, n, n, mu);
    return true;
}

/* mu = -G^-1 c of the problem's rows. *closing: of many rows, their factor; `held`: it is already known. */
TB_STATIC tb_status closing_impulses(const tb_world *w, const tb_problem *problem, tb_real ridge,
                                     bool held, tb_closing **closing, tb_real *mu, bool *solved)
{
    const int32_t n = problem->number_of_rows;
#ifdef TB_DEVICE
    (void)held, (void)closing;
#else
    if (n > TB_DENSE_DOFS) {
        if (!held && tb_closing_take_rows(closing, problem, ridge, w->arena) != TB_OK)
            return TB_RESOURCE_EXHAUSTED;
        return tb_closing_impulses(*closing, problem->c, mu, solved);
    }
#endif
    tb_real *g = TB_ARENA_ARRAY(w->arena, tb_real, (size_t)n * (size_t)n);
    if (!g || tb_problem_delassus(problem, g) != TB_OK) return TB_RESOURCE_EXHAUSTED;
    *solved = TB_LEADER && least_impulses(problem->c, n, ridge, g, mu);
    tb_team_sync();
    *solved = tb_team_any(*solved);
    return TB_OK;
}

/* The rows that the closing holds, or those of the world. */
TB_STATIC tb_problem rows_to_close(const tb_world *w, bool held, const tb_closing *closing)
{
#ifdef TB_DEVICE
    (void)held, (void)closing;
#else
    if (held) return tb_closing_rows(closing);
#endif
    return tb_world_problem(w);
}

/* s (dofs) = -M^-1 W G^-1 x: the smallest motion that takes x away from the rows, those that the closing holds
 * or else those of the world. Zero where that has no answer. *left: the largest that it leaves of x, to first
 * order; 0 without an answer. */
TB_STATIC tb_status least_motion(tb_world *w, const tb_real *x, tb_real ridge, bool held,
                                 tb_closing **closing, tb_real **motion, tb_real *left)
{
    tb_problem problem = rows_to_close(w, held, *closing);
    problem.c = x;
    const int32_t n = problem.number_of_rows, dofs = w->model->number_of_dofs;
    tb_real *mu = TB_ARENA_ARRAY(w->arena, tb_real, n);
    tb_real *xi = TB_ARENA_ARRAY(w->arena, tb_real, n);
    tb_real *s = TB_ARENA_ZEROED(w->arena, tb_real, dofs);
    double *velocities = TB_ARENA_ARRAY(w->arena, double, dofs);
    *motion = s;
    *left = 0;
    if (!mu || !xi || !s || !velocities) return TB_RESOURCE_EXHAUSTED;
    bool solved = false;
    const tb_status status = closing_impulses(w, &problem, ridge, held, closing, mu, &solved);
    if (status != TB_OK) return status;
    if (!solved) return TB_OK;
    tb_problem_apply(&problem, mu, s, xi);
    for (int32_t r = 0; r < n; r++) *left = tb_max(*left, tb_abs(xi[r]));
    TB_EACH (i, dofs) velocities[i] = (double)s[i];
    tb_team_sync();
    tb_dynamics_unwhiten(&w->dynamics, velocities);
    TB_EACH (i, dofs) s[i] = TB_R(velocities[i]);
    tb_team_sync();
    const bool finite = tb_all_finite(s, dofs);
    tb_team_sync(); /* all have looked */
    TB_EACH (i, finite ? 0 : dofs) s[i] = 0;
    tb_team_sync();
    return TB_OK;
}

TB_EXTERN tb_status tb_equality_predict(tb_world *world, tb_real *u)
{
    tb_world *w = world;
    closure c;
    tb_closing *closing = NULL;
    tb_real *motion = NULL, left;
    if (!take_closure(w, &c) || assemble_equalities(w, w->q, u, &c) != TB_OK)
        return TB_RESOURCE_EXHAUSTED;
    TB_EACH (r, w->number_of_rows) c.velocities[r] += c.biases[r];
    tb_team_sync();
    if (w->number_of_rows > 0) {
        if (least_motion(w, c.velocities, ROUNDING_RIDGE, false, &closing, &motion, &left) != TB_OK)
            return TB_RESOURCE_EXHAUSTED;
        TB_EACH (i, w->model->number_of_dofs) u[i] += motion[i];
        tb_team_sync();
    }
    drop_blocks(w);
    return TB_OK;
}

/* Equalities (blocks as assembled) that are off by more than the slop and have not come nearer by
 * half of the way that a step may bring them: faults. The world's gaps are the errors before. */
TB_STATIC void find_open_loops(tb_world *w, const closure *c, tb_recovered *recovered)
{
    const tb_real slop = TB_R(w->options->closure_slop), most = projected_error(w);
    for (int32_t b = 0; b < w->number_of_blocks; b++) {
        const int32_t row = w->blocks[b].row;
        tb_real before = 0, after = 0;
        for (int32_t r = row; r < row + w->blocks[b].rows; r++) {
            before = tb_max(before, tb_abs(w->gaps[r]));
            after = tb_max(after, tb_abs(c->errors[r]));
        }
        if (after <= slop || after <= before - TB_R(0.5) * tb_min(before, most)) continue;
        w->gaps[row] = after;
        tb_fault_add(&recovered->faults, &recovered->worst, 1, tb_world_fault(w, b));
    }
}

/* Assembles all equalities at q under the step's last velocity. placed: the poses are those of q. */
TB_STATIC tb_status look_at_loops(tb_world *w, const tb_real *q, bool placed, closure *c)
{
    if (!placed) tb_dynamics_positions(&w->dynamics, q, w->kinematic);
    tb_tendons_place(w);
    return assemble_equalities(w, q, w->u_end, c);
}

/* Share of an error above which a motion that leaves it is not worth while. */
#define HARDLY_CLOSED ((tb_real)0.9)

/* Newton steps on the errors, as long as each halves them: a loop may not close at all. Rows that
 * contradict one another, as those of axes that miss each other by 10 nm, keep an error that no
 * motion takes away, and the step to first order shows it before anything moves.
 *
 * With the rows of the step before and their factor, a step contracts the errors as that one did. Where two such
 * steps reach the tolerance, they cost less than one with new rows. */
TB_STATIC tb_status project_positions(tb_world *w, tb_real *q, closure *c)
{
    const int32_t coordinates = w->model->number_of_coordinates;
    const tb_real tolerance = TB_R(w->options->closure_tolerance);
    tb_closing *closing = NULL;
    tb_real *motion = NULL, left, *before = TB_ARENA_ARRAY(w->arena, tb_real, coordinates);
    if (!before) return TB_RESOURCE_EXHAUSTED;
    tb_real ridge = ROUNDING_RIDGE;
    bool holds = false;
    for (int step = 0; step < PROJECTION_STEPS; step++) {
        if (c->largest <= tolerance) return TB_OK;
        const tb_real last = c->largest;
        if (least_motion(w, c->errors, ridge, holds, &closing, &motion, &left) != TB_OK)
            return TB_RESOURCE_EXHAUSTED;
        if (left > HARDLY_CLOSED * last) return TB_OK;
        tb_team_copy(before, q, (size_t)coordinates * sizeof *q);
        tb_team_sync();
        tb_dynamics_integrate(w->model, motion, 1, q);
        if (look_at_loops(w, q, false, c) != TB_OK) return TB_RESOURCE_EXHAUSTED;
        const bool held = holds;
        const tb_real rate = c->largest / last;
        holds = closing && step + 2 < PROJECTION_STEPS && c->largest * rate * rate <= tolerance;
        if (c->largest <= TB_R(0.5) * last) continue;
        holds = false;
        if (c->largest >= last) {
            tb_team_copy(q, before, (size_t)coordinates * sizeof *q);
            tb_team_sync();
            if (look_at_loops(w, q, false, c) != TB_OK) return TB_RESOURCE_EXHAUSTED;
        }
        if (held) continue;
        if (ridge == AXES_RIDGE) return TB_OK;
        ridge = AXES_RIDGE;
    }
    return TB_OK;
}

TB_STATIC tb_status close_loops(tb_world *w, tb_real *q, bool placed, tb_recovered *recovered,
                                double *closure_error)
{
    tb_closing *closing = NULL;
    tb_real *motion = NULL, left;
    closure c;
    if (!take_closure(w, &c) || look_at_loops(w, q, placed, &c) != TB_OK)
        return TB_RESOURCE_EXHAUSTED;
    if (w->number_of_rows == 0) return TB_OK;
    /* the recovery has drawn loops far from closed together */
    if (c.largest <= projected_error(w) && project_positions(w, q, &c) != TB_OK)
        return TB_RESOURCE_EXHAUSTED;
    *closure_error = (double)c.largest;
    if (TB_LEADER) find_open_loops(w, &c, recovered);
    tb_team_sync();
    if (w->theta == 1) return TB_OK;
    if (least_motion(w, c.velocities, ROUNDING_RIDGE, false, &closing, &motion, &left) != TB_OK)
        return TB_RESOURCE_EXHAUSTED;
    TB_EACH (i, w->model->number_of_dofs) w->u_end[i] += motion[i];
    tb_team_sync();
    return TB_OK;
}

TB_EXTERN tb_status tb_world_close_loops(tb_world *world, tb_real *q, bool placed,
                                         tb_recovered *recovered, double *closure_error,
                                         tb_error *error)
{
    *closure_error = 0;
    if (world->model->number_of_equalities == 0) return TB_OK;
    if (close_loops(world, q, placed, recovered, closure_error) != TB_OK)
        return tb_fail_memory(error, 0, "the closing of loops");
    return TB_OK;
}
