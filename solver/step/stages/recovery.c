/* Recovery of positions: a motion of positions alone removes penetrations, violated limits and open
 * loops after a step's velocities are solved for (split impulse: Nützi 3.8; Catto, Game Developers
 * Conference 2014).
 *
 * The velocities u of the step keep every gap from growing worse. Of all motions v with
 *
 *     W_n (u + v) + (gap + slop) / dt >= 0  for contacts and limits,
 *     W v + error / dt = 0                  for loops,
 *
 * the recovery takes the smallest one in the metric of the mass matrix. It is again a contact
 * problem: the whitened rows are those of the velocities, there is no friction, the impulses start
 * from zero and the statuses from the gaps that ask. Few rows are solved exactly, more of them to the
 * step's tolerance. The coordinates move by dt v; v is no part of the
 * velocity, so recovery brings no momentum, and energy only by lifting bodies against gravity and
 * springs.
 *
 * A system of gaps may have no solution: two links that overlap along the axis of their joint, a
 * limit that a weld violates. Every row hence is elastic, with a tenth of its own Delassus number
 * as compliance (loops and limits with less): the problem becomes least squares, whose answer is
 * unique and near the exact one if all gaps can be closed. Rows that close almost nothing of their
 * gap are faults, and the certificate names the worst. */
#include <math.h>
#include <string.h>

#include "step/stages/stages.h"

/* Compliance of a row over its Delassus number. Loops and limits have less, so that they hold
 * against a contact that contradicts them. */
#define RECOVERY_CONTACT_COMPLIANCE ((tb_real)0.1)
#define RECOVERY_JOINT_COMPLIANCE   ((tb_real)1e-3)
/* A contact whose normal row is less than this share of its tangent rows has the compliance of
 * one at that share: a motion along it would be large elsewhere. */
#define RECOVERY_LEAST_REACH ((tb_real)0.01)
/* Share of the requested motion below which a row is a fault. */
#define RECOVERY_LEAST_SHARE ((tb_real)0.02)
/* The speed of a dof (rad/s or m/s) over that of recovery (m/s) is no more: an ill-conditioned row
 * asks for more, and a large motion meets contacts that the step has not seen. */
#define RECOVERY_LARGEST_SPEED 4
enum { RECOVERY_ITERATIONS = 200 };
/* Up to so many rows or dofs, and as long as its set settles within so many rounds, the recovery is solved
 * by active sets; else by the step's solver. */
enum { RECOVERY_DENSE_ROWS = 64, RECOVERY_DENSE_DOFS = 64, RECOVERY_SETS = 12 };
/* Share of the largest wanted motion that is rounding. */
#define RECOVERY_ROUNDING (64 * TB_REAL_EPSILON)

/* The problem of the recovery. Its rows are some of the step's. */
typedef struct recovery_problem {
    tb_block *blocks;
    int32_t *rows;           /* blocks: first row in the step's problem */
    tb_real *c, *compliance; /* rows */
    tb_real *start;          /* rows: no impulses */
    uint8_t *statuses;       /* blocks: a contact or limit pushes if its gap asks for a motion */
    int32_t number_of_blocks, number_of_rows;
} recovery_problem;

/* How many rows of a block of the step recover; they are its first. */
TB_STATIC int32_t recovering_rows(const tb_world *w, int32_t equalities, int32_t block)
{
    const tb_block *b = &w->blocks[block];
    if (block >= w->first_contact_block || b->law == TB_LAW_UNILATERAL) return 1;
    return b->law == TB_LAW_BILATERAL && w->memory[b->row] >= equalities ? b->rows : 0;
}

/* Whether a block asks for a motion that the velocities do not give it anyway. Contacts and limits
 * ask from twice the slop on, so that the ones at rest do not ask in every step for a rounding. */
TB_STATIC bool asks(const tb_world *w, const tb_solution *solution, int32_t equalities,
                    int32_t block)
{
    const tb_block *b = &w->blocks[block];
    const int32_t rows = recovering_rows(w, equalities, block);
    if (rows == 0) return false;
    if (b->law == TB_LAW_BILATERAL) {
        bool any = false;
        for (int32_t r = b->row; r < b->row + rows; r++) any = any || w->recovery[r] != 0;
        return any;
    }
    const bool contact = block >= w->first_contact_block;
    const tb_real slop = TB_R(contact ? w->options->contact_slop : w->options->closure_slop);
    const tb_real ask = w->recovery[b->row];
    return ask < 0 && w->gaps[b->row] < -2 * slop && solution->xi[b->row] + ask < 0;
}

TB_STATIC bool take_problem(const tb_world *w, recovery_problem *p)
{
    p->blocks = TB_ARENA_ARRAY(w->arena, tb_block, w->number_of_blocks);
    p->rows = TB_ARENA_ARRAY(w->arena, int32_t, w->number_of_blocks);
    p->c = TB_ARENA_ARRAY(w->arena, tb_real, w->number_of_rows);
    p->compliance = TB_ARENA_ARRAY(w->arena, tb_real, w->number_of_rows);
    p->start = TB_ARENA_ZEROED(w->arena, tb_real, w->number_of_rows);
    p->statuses = TB_ARENA_ARRAY(w->arena, uint8_t, w->number_of_blocks);
    return p->blocks && p->rows && p->c && p->compliance && p->start && p->statuses;
}

/* A row of the recovery. */
typedef struct recovery_row {
    tb_real c, compliance;
} recovery_row;

/* Row r of a block of the step as a row of the recovery. */
TB_CALLED recovery_row make_row(const tb_world *w, const tb_solution *solution, int32_t block,
                                int32_t r)
{
    const tb_block *b = &w->blocks[block];
    const bool loop = b->law == TB_LAW_BILATERAL;
    const tb_real reach = b->rows >= 3 && !loop
                              ? RECOVERY_LEAST_REACH * tb_max(tb_block_row_square(w->values, b, 1),
                                                              tb_block_row_square(w->values, b, 2))
                              : 0;
    const tb_real g = tb_max(tb_block_row_square(w->values, b, r), reach);
    const tb_real ask = w->recovery[b->row + r], xi = tb_max(solution->xi[b->row + r], 0);
    const tb_real share =
        block >= w->first_contact_block ? RECOVERY_CONTACT_COMPLIANCE : RECOVERY_JOINT_COMPLIANCE;
    /* a row that nothing moves gets a finite impulse */
    return TB_VALUE(recovery_row){.c = loop ? ask : xi + ask, .compliance = g > 0 ? share * g : 1};
}

/* A block of the step as the `number`-th of the recovery, with rows from `row` on. */
TB_CALLED void write_block(const tb_world *w, const tb_solution *solution, int32_t block,
                           int32_t rows, int32_t number, int32_t row, recovery_problem *p)
{
    const tb_block *b = &w->blocks[block];
    const bool loop = b->law == TB_LAW_BILATERAL;
    p->blocks[number] = *b;
    p->blocks[number].law = loop ? TB_LAW_BILATERAL : TB_LAW_UNILATERAL;
    p->blocks[number].row = row;
    p->blocks[number].rows = rows;
    p->rows[number] = b->row;
    for (int32_t r = 0; r < rows; r++) {
        const recovery_row own = make_row(w, solution, block, r);
        p->c[row + r] = own.c;
        p->compliance[row + r] = own.compliance;
    }
    const tb_contact_status pushes = p->c[row] < 0 ? TB_CONTACT_SLIP : TB_CONTACT_OPEN;
    p->statuses[number] = (uint8_t)(loop ? TB_CONTACT_STICK : pushes);
}

TB_STATIC void write_problem(const tb_world *w, const tb_solution *solution, int32_t equalities,
                             recovery_problem *p)
{
    p->number_of_blocks = p->number_of_rows = 0;
    for (int32_t base = 0; base < w->number_of_blocks; base += tb_team_lanes()) {
        const int32_t b = base + tb_team_lane();
        const int32_t rows = b < w->number_of_blocks ? recovering_rows(w, equalities, b) : 0;
        int32_t more_blocks, more_rows;
        const int32_t number = p->number_of_blocks + tb_team_before(rows > 0, &more_blocks);
        const int32_t row = p->number_of_rows + tb_team_before(rows, &more_rows);
        if (rows > 0) write_block(w, solution, b, rows, number, row, p);
        p->number_of_blocks += more_blocks;
        p->number_of_rows += more_rows;
    }
    tb_team_sync();
}

/* Sum of the squares of the wanted motions, by which the tolerance is measured: c of open
 * contacts is unrelated to them. */
TB_STATIC double asked_squared(const recovery_problem *p)
{
    double sum = 0;
    for (int32_t n = 0; n < p->number_of_blocks; n++)
        for (int32_t r = p->blocks[n].row; r < p->blocks[n].row + p->blocks[n].rows; r++)
            if (p->blocks[n].law == TB_LAW_BILATERAL || p->c[r] < 0)
                sum += (double)p->c[r] * (double)p->c[r];
    return sum;
}

/* The blocks that push, as a problem of their own. Their impulses satisfy (Y' Y + E) push = -c, with
 * the Delassus matrix Y' Y and the compliance E; the whitened velocity s = Y push satisfies
 * (1 + Y E^-1 Y') s = -Y E^-1 c. The smaller of the two systems is solved. */
typedef struct pushing_blocks {
    tb_block *blocks;    /* their rows are numbered from 0 */
    int32_t *rows;       /* rows: the same row of the recovery */
    tb_real *compliance; /* rows */
    tb_real *g;          /* a square of rows or of dofs: the matrix, then its Cholesky factor */
    tb_real *y;          /* rows x dofs: the rows of Y'; NULL: there are no more rows than dofs */
    tb_real *push;       /* rows: impulses */
    tb_real *s;          /* dofs: right side, then whitened velocity */
    int32_t number_of_blocks, number_of_rows;
} pushing_blocks;

TB_STATIC bool take_pushing(const tb_world *w, const recovery_problem *p, pushing_blocks *pushing)
{
    const int32_t rows = p->number_of_rows, dofs = w->model->number_of_dofs;
    const bool many = rows > dofs;
    pushing->blocks = TB_ARENA_ARRAY(w->arena, tb_block, p->number_of_blocks);
    pushing->rows = TB_ARENA_ARRAY(w->arena, int32_t, rows);
    pushing->compliance = TB_ARENA_ARRAY(w->arena, tb_real, rows);
    pushing->g = TB_ARENA_ARRAY(w->arena, tb_real, many ? dofs * dofs : rows * rows);
    pushing->y = many ? TB_ARENA_ARRAY(w->arena, tb_real, rows * dofs) : NULL;
    pushing->push = TB_ARENA_ARRAY(w->arena, tb_real, rows);
    pushing->s = TB_ARENA_ARRAY(w->arena, tb_real, dofs);
    return pushing->blocks && pushing->rows && pushing->compliance && pushing->g &&
           (pushing->y || !many) && pushing->push && pushing->s;
}

/* Lists the blocks whose status is that they push. */
TB_STATIC void list_pushing(const recovery_problem *p, pushing_blocks *pushing)
{
    int32_t blocks = 0, rows = 0;
    for (int32_t n = 0; n < p->number_of_blocks; n++) {
        const tb_block *b = &p->blocks[n];
        if (p->statuses[n] == TB_CONTACT_OPEN) continue;
        if (TB_LEADER) {
            pushing->blocks[blocks] = *b;
            pushing->blocks[blocks].row = rows;
            for (int32_t k = 0; k < b->rows; k++) {
                pushing->rows[rows + k] = b->row + k;
                pushing->compliance[rows + k] = p->compliance[b->row + k];
            }
        }
        blocks++;
        rows += b->rows;
    }
    pushing->number_of_blocks = blocks;
    pushing->number_of_rows = rows;
    tb_team_sync();
}

/* The rows of Y' on all dofs. */
TB_STATIC void spread_pushing(const tb_world *w, pushing_blocks *pushing)
{
    const int32_t dofs = w->model->number_of_dofs;
    TB_EACH (n, pushing->number_of_blocks) {
        const tb_block *b = &pushing->blocks[n];
        const tb_real *value = w->values + b->value;
        for (int32_t k = 0; k < b->rows; k++) {
            tb_real *y = pushing->y + (b->row + k) * dofs;
            for (int32_t i = 0; i < dofs; i++) y[i] = 0;
            for (int32_t q = b->segment; q < b->segment + b->segments; q++)
                for (int32_t i = 0; i < w->segments[q].count; i++)
                    y[w->segments[q].dof + i] = *value++;
        }
    }
    tb_team_sync();
}

/* 1 + Y E^-1 Y', its lower triangle, and -Y E^-1 c. */
TB_STATIC void sum_pushing(const tb_world *w, const recovery_problem *p, pushing_blocks *pushing)
{
    const int32_t dofs = w->model->number_of_dofs;
    TB_EACH (i, dofs) {
        tb_real *g = pushing->g + i * dofs, right = 0;
        for (int32_t j = 0; j <= i; j++) g[j] = i == j ? 1 : 0;
        for (int32_t r = 0; r < pushing->number_of_rows; r++) {
            const tb_real *y = pushing->y + r * dofs;
            if (y[i] == 0) continue;
            const tb_real factor = y[i] / pushing->compliance[r];
            for (int32_t j = 0; j <= i; j++) g[j] += factor * y[j];
            right -= factor * p->c[pushing->rows[r]];
        }
        pushing->s[i] = right;
    }
    tb_team_sync();
}

/* Impulses of the pushing rows by the system of all dofs. */
TB_STATIC bool push_by_dofs(const recovery_problem *p, pushing_blocks *pushing, int32_t dofs)
{
    if (tb_cholesky(pushing->g, dofs, dofs) != dofs) return false;
    tb_cholesky_solve(pushing->g, dofs, dofs, pushing->s);
    for (int32_t r = 0; r < pushing->number_of_rows; r++) {
        tb_real xi = p->c[pushing->rows[r]];
        for (int32_t i = 0; i < dofs; i++) xi += pushing->y[r * dofs + i] * pushing->s[i];
        pushing->push[r] = -xi / pushing->compliance[r];
    }
    return true;
}

/* Impulses of the pushing rows by the system of these rows. */
TB_STATIC bool push_by_rows(const recovery_problem *p, pushing_blocks *pushing)
{
    const int32_t n = pushing->number_of_rows;
    for (int32_t i = 0; i < n; i++) pushing->push[i] = -p->c[pushing->rows[i]];
    if (tb_cholesky(pushing->g, n, n) != n) return false;
    tb_cholesky_solve(pushing->g, n, n, pushing->push);
    return true;
}

/* Impulses that give each pushing row its motion; others have none. *pushed: false where rounding
 * leaves no Cholesky factor. */
TB_STATIC tb_status push_rows(const tb_world *w, const tb_problem *problem,
                              const recovery_problem *p, pushing_blocks *pushing, tb_real *lambda,
                              bool *pushed)
{
    const int32_t dofs = problem->number_of_dofs;
    if (pushing->number_of_rows > dofs) {
        spread_pushing(w, pushing);
        sum_pushing(w, p, pushing);
        *pushed = TB_LEADER && push_by_dofs(p, pushing, dofs);
    } else {
        tb_problem own = *problem;
        own.blocks = pushing->blocks;
        own.compliance = pushing->compliance;
        own.number_of_blocks = pushing->number_of_blocks;
        own.number_of_rows = pushing->number_of_rows;
        if (tb_problem_delassus(&own, pushing->g) != TB_OK) return TB_RESOURCE_EXHAUSTED;
        *pushed = TB_LEADER && push_by_rows(p, pushing);
    }
    tb_team_sync();
    *pushed = tb_team_any(*pushed);
    TB_EACH (r, p->number_of_rows) lambda[r] = 0;
    tb_team_sync();
    TB_EACH (r, pushing->number_of_rows) lambda[pushing->rows[r]] = pushing->push[r];
    tb_team_sync();
    return TB_OK;
}

/* Drops blocks whose impulse pulls, and takes blocks whose gap would stay open. False if none
 * changes. */
TB_STATIC bool change_pushing(recovery_problem *p, const tb_solution *solved)
{
    tb_real largest = 0;
    for (int32_t r = 0; r < p->number_of_rows; r++) largest = tb_max(largest, tb_abs(p->c[r]));
    const tb_real rounding = RECOVERY_ROUNDING * largest;
    bool changes = false;
    for (int32_t n = 0; n < p->number_of_blocks; n++) {
        const int32_t row = p->blocks[n].row;
        const bool pushes = p->statuses[n] != TB_CONTACT_OPEN;
        if (p->blocks[n].law == TB_LAW_BILATERAL) continue;
        if (pushes ? solved->lambda[row] >= 0 : solved->xi[row] >= -rounding) continue;
        p->statuses[n] = (uint8_t)(pushes ? TB_CONTACT_OPEN : TB_CONTACT_SLIP);
        changes = true;
    }
    return changes;
}

/* The recovery by active sets, exact to rounding: compliance makes the problem strictly convex, and
 * the smaller of two symmetric systems costs less than Newton's (Hintermüller, Ito and Kunisch, SIAM J.
 * Optim. 13, 2003). *settled: false where the set still changes after RECOVERY_SETS rounds. */
TB_STATIC tb_status recover_by_sets(tb_world *w, const tb_problem *problem, recovery_problem *p,
                                    tb_solution *solved, bool *settled)
{
    const int32_t dofs = problem->number_of_dofs;
    *settled = false;
    if (p->number_of_rows > RECOVERY_DENSE_ROWS && dofs > RECOVERY_DENSE_DOFS) return TB_OK;
    pushing_blocks pushing;
    if (!take_pushing(w, p, &pushing)) return TB_RESOURCE_EXHAUSTED;
    bool changes = true;
    for (int set = 0; set < RECOVERY_SETS && changes; set++) {
        list_pushing(p, &pushing);
        bool pushed = false;
        const tb_status status = push_rows(w, problem, p, &pushing, solved->lambda, &pushed);
        if (status != TB_OK || !pushed) return status;
        tb_problem_apply(problem, solved->lambda, pushing.s, solved->xi);
        const bool change = TB_LEADER && change_pushing(p, solved);
        tb_team_sync();
        changes = tb_team_any(change);
    }
    *settled = !changes;
    TB_EACH (i, dofs) solved->whitened[i] = (double)pushing.s[i];
    tb_team_sync();
    return TB_OK;
}

/* Velocities from whitened ones; a tree's velocities are scaled down together to the largest
 * speed. */
TB_CALLED void take_velocity(const tb_world *w, double *whitened, tb_real *velocity)
{
    const tb_model *m = w->model;
    const double most = RECOVERY_LARGEST_SPEED * w->options->recovery_speed;
    tb_dynamics_unwhiten(&w->dynamics, whitened);
    TB_EACH (t, m->number_of_trees) {
        const tb_model_tree *tree = &m->trees[t];
        const int32_t end = tree->dof + tree->number_of_dofs;
        double largest = 0;
        bool finite = true;
        for (int32_t i = tree->dof; i < end; i++) {
            largest = fmax(largest, fabs(whitened[i]));
            finite = finite && isfinite(whitened[i]);
        }
        const double scale = !finite ? 0 : largest > most ? most / largest : 1;
        for (int32_t i = tree->dof; i < end; i++)
            velocity[i] = finite ? TB_R(scale * whitened[i]) : 0;
    }
    tb_team_sync();
}

/* The thing that a row of the step's problem belongs to, and its error. */
TB_EXTERN tb_fault tb_world_fault(const tb_world *world, int32_t block)
{
    const tb_world *w = world;
    const int32_t row = w->blocks[block].row;
    const tb_row_memory memory = tb_row_memory_layout(w->model);
    tb_fault f = {TB_FAULT_OVERLAP, -1, -1, fabs((double)w->gaps[row])};
    if (block >= w->first_contact_block) {
        const tb_contact_record *r = &w->records[block - w->first_contact_block];
        f.a = r->shape_a;
        f.b = r->shape_b;
        return f;
    }
    const int32_t at = w->memory[row];
    if (at >= memory.equalities) {
        f.kind = TB_FAULT_EQUALITY;
        f.a = (at - memory.equalities) / TB_EQUALITY_ROWS;
    } else if (at >= memory.tendon_rows) {
        f.kind = TB_FAULT_TENDON_LIMIT;
        f.a = (at - memory.tendon_rows) / TB_TENDON_ROWS;
    } else {
        f.kind = TB_FAULT_JOINT_LIMIT;
        f.a = at / 2;
    }
    return f;
}

/* Distance (m or rad) of a joint at its coordinates x from its nearer limit, negative beyond it. */
TB_STATIC double limit_gap(const tb_model_joint *joint, const tb_real *x)
{
    if (joint->type != TB_JOINT_BALL)
        return fmin((double)x[0] - joint->lower, joint->upper - (double)x[0]);
    return joint->upper - (double)tb_v3_length(tb_q_rotation_vector(tb_q(x[0], x[1], x[2], x[3])));
}

TB_EXTERN void tb_world_find_violated_limits(const tb_world *world, tb_recovered *recovered)
{
    const tb_model *m = world->model;
    const double most = world->options->recovery_speed * (double)world->dt;
    for (int32_t k = 0; k < m->number_of_limited_joints; k++) {
        const tb_model_joint *joint = &m->joints[m->limited_joints[k]];
        tb_real before[4];
        for (int32_t i = 0; i < tb_joint_coordinates(joint->type) && i < 4; i++)
            before[i] = TB_R(world->state->q[joint->coordinate + i]);
        const double off = -limit_gap(joint, world->q + joint->coordinate);
        const double was = -limit_gap(joint, before);
        if (off <= world->options->closure_slop || was <= world->options->closure_slop) continue;
        if (off <= was - (double)RECOVERY_LEAST_SHARE * fmin(was, most)) continue;
        const tb_fault fault = {TB_FAULT_JOINT_LIMIT, m->limited_joints[k], -1, off};
        tb_fault_add(&recovered->faults, &recovered->worst, 1, fault);
    }
}

/* Whether a row that asks for a motion, c < 0, got next to nothing of it. */
TB_FN bool lacks_motion(tb_real c, tb_real got)
{
    return c < 0 && got < -RECOVERY_LEAST_SHARE * c;
}

/* Contacts and tendons' limits that got next to nothing. Loops and joints are judged by where they
 * end (tb_world_close_loops, tb_world_find_violated_limits). */
TB_CALLED void find_faults(const tb_world *w, const recovery_problem *p, const tb_solution *solved,
                           tb_recovered *recovered)
{
    for (int32_t n = 0; n < p->number_of_blocks; n++) {
        const tb_block *b = &p->blocks[n];
        if (b->law != TB_LAW_UNILATERAL) continue;
        const tb_real elastic = p->compliance[b->row] * solved->lambda[b->row];
        if (!lacks_motion(p->c[b->row], solved->xi[b->row] - elastic - p->c[b->row])) continue;
        int32_t block = 0;
        while (w->blocks[block].row != p->rows[n]) block++;
        const tb_fault fault = tb_world_fault(w, block);
        if (fault.kind != TB_FAULT_JOINT_LIMIT)
            tb_fault_add(&recovered->faults, &recovered->worst, 1, fault);
    }
}

/* Limits have rows only where a joint comes near them by its velocity. */
TB_EXTERN void tb_world_move_recovery(const tb_world *world, tb_real *velocity)
{
    const tb_world *w = world;
    const tb_model *m = w->model;
    TB_EACH (k, m->number_of_limited_joints) {
        const tb_model_joint *joint = &m->joints[m->limited_joints[k]];
        if (joint->type != TB_JOINT_HINGE && joint->type != TB_JOINT_SLIDE) continue;
        const tb_real x = w->q[joint->coordinate];
        const tb_real below = tb_min((TB_R(joint->lower) - x) / w->dt, 0);
        const tb_real above = tb_max((TB_R(joint->upper) - x) / w->dt, 0);
        velocity[joint->dof] = tb_clamp(velocity[joint->dof], below, above);
    }
    tb_team_sync();
    tb_dynamics_integrate(m, velocity, w->dt, w->q);
}

#ifndef TB_UNIT_WARP
TB_STATIC tb_status recover_by_solver(tb_world *w, const tb_problem *problem,
                                      const recovery_problem *p, tb_solution *solved,
                                      tb_error *error)
{
    tb_solve_options options = w->options->solve;
    options.maximum_iterations = RECOVERY_ITERATIONS;
    options.stop = TB_STOP_RESIDUAL;
    options.warm_start = true;
    tb_warm_start warm = {.lambda = p->start, .statuses = p->statuses, .scratch = w->arena};
    return tb_world_run_solver(w, &options, problem, &warm, solved, error);
}

TB_EXTERN bool tb_world_asks_for_recovery(const tb_world *world, const tb_solution *solution)
{
    const int32_t equalities = tb_row_memory_layout(world->model).equalities;
    bool any = false;
    TB_EACH (b, world->number_of_blocks) any = any || asks(world, solution, equalities, b);
    return tb_team_any(any);
}

TB_EXTERN tb_status tb_world_recover(tb_world *world, const tb_solution *solution,
                                     tb_recovered *recovered, tb_error *error)
{
    tb_world *w = world;
    const int32_t equalities = tb_row_memory_layout(w->model).equalities;
    const int32_t dofs = w->model->number_of_dofs;
    memset(recovered, 0, sizeof *recovered);
    if (!tb_world_asks_for_recovery(w, solution)) return TB_OK;

    recovery_problem p;
    tb_real *velocity = TB_ARENA_ARRAY(w->arena, tb_real, dofs);
    if (!take_problem(w, &p) || !velocity) return tb_fail_memory(error, 0, "a step's recovery");
    write_problem(w, solution, equalities, &p);
    tb_solution solved =
        TB_VALUE(tb_solution){.lambda = TB_ARENA_ARRAY(w->arena, tb_real, p.number_of_rows),
                              .xi = TB_ARENA_ARRAY(w->arena, tb_real, p.number_of_rows),
                              .whitened = TB_ARENA_ARRAY(w->arena, double, dofs),
                              .statuses = TB_ARENA_ARRAY(w->arena, uint8_t, p.number_of_blocks)};
    if (!solved.lambda || !solved.xi || !solved.whitened || !solved.statuses)
        return tb_fail_memory(error, 0, "a step's recovery");

    tb_problem problem = tb_world_problem(w);
    problem.blocks = p.blocks;
    problem.number_of_blocks = p.number_of_blocks;
    problem.number_of_rows = p.number_of_rows;
    problem.c = p.c;
    problem.compliance = p.compliance;
    problem.c_squared = asked_squared(&p);
    bool settled;
    if (recover_by_sets(w, &problem, &p, &solved, &settled) != TB_OK)
        return tb_fail_memory(error, 0, "a step's recovery");
    const tb_status status = settled ? TB_OK : recover_by_solver(w, &problem, &p, &solved, error);
    if (status != TB_OK) return status;
    find_faults(w, &p, &solved, recovered);
    take_velocity(w, solved.whitened, velocity);
    recovered->velocity = velocity;
    return TB_OK;
}
#endif
