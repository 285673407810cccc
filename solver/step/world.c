/* One step of one world: the pipeline and its results. */
#include <math.h>
#include <string.h>

#include "step/dynamics/free_body.h"
#include "step/stages/stages.h"

/* The world of a step that begins, in memory that is zero. */
TB_STATIC void open_world(tb_world *w, const tb_state *state, const tb_step_options *options,
                          tb_workspace *workspace)
{
    w->model = state->model;
    w->state = state;
    w->options = options;
    w->arena = &workspace->arena;
    w->threads = workspace->threads;
    w->solver = workspace->solver;
    w->dt = TB_R(options->dt > 0 ? options->dt : state->model->dt);
    w->theta = options->scheme == TB_SCHEME_MOREAU ? TB_R(0.5) : TB_R(1);
}

TB_STATIC tb_world make_world(const tb_state *state, const tb_step_options *options,
                              tb_workspace *workspace)
{
    tb_world w = {.model = state->model};
    open_world(&w, state, options, workspace);
    return w;
}

TB_EXTERN tb_problem tb_world_problem(const tb_world *world)
{
    return TB_VALUE(tb_problem){.number_of_blocks = world->number_of_blocks,
                                .number_of_rows = world->number_of_rows,
                                .number_of_dofs = world->model->number_of_dofs,
                                .blocks = world->blocks,
                                .segments = world->segments,
                                .values = world->values,
                                .c = world->c,
                                .compliance = world->has_compliance ? world->compliance : NULL};
}

/* Dynamics and the rows that are no contacts. DIVERGED where the motion has left the range of
 * numbers before any contact is looked for. */
TB_STATIC tb_status assemble(tb_world *w, tb_error *error)
{
    tb_arena_reset(w->arena);
    const tb_status status = tb_world_begin(w, error);
    if (status != TB_OK) return status;
    if (!tb_team_all_finite(w->q, w->model->number_of_coordinates) ||
        !tb_team_all_finite(w->u_free, w->model->number_of_dofs))
        return TB_DIVERGED;
    TB_STAGE_DONE(TB_STAGE_BEGIN);
    return tb_world_assemble_rows(w, error);
}

#ifndef TB_UNIT_WARP /* it has a solver and a step of its own */
#ifdef TB_DEVICE
/* UNSUPPORTED for a number that is none, or of a solver that this unit has not. */
TB_EXTERN tb_status tb_world_run_solver(const tb_world *world, const tb_solve_options *options,
                                        const tb_problem *problem, tb_warm_start *warm,
                                        tb_solution *solution, tb_error *error)
{
    tb_status status = TB_UNSUPPORTED;
    switch (world->solver) {
#define TB_SOLVER_CASE(solver)                                                                     \
    case TB_SOLVER_NUMBER_##solver:                                                                \
        status = TB_SYMBOL(tb_solve_##solver)(problem, options, warm, solution);                   \
        break;
        TB_UNIT_SOLVER_LIST(TB_SOLVER_CASE)
#undef TB_SOLVER_CASE
    default: break;
    }
    return status == TB_OK ? TB_OK : tb_fail(error, status, "");
}
#else
TB_EXTERN tb_status tb_world_run_solver(const tb_world *world, const tb_solve_options *options,
                                        const tb_problem *problem, tb_warm_start *warm,
                                        tb_solution *solution, tb_error *error)
{
    (void)world;
    tb_solve_function *solver = tb_solver_find(options->solver);
    if (!solver)
        return tb_fail_field(error, TB_NOT_FOUND, "solver", "there is no solver '%s'",
                             options->solver ? options->solver : "");
    const tb_status status = solver(problem, options, warm, solution);
    if (status != TB_OK)
        return tb_fail(error, status, "solver '%s': %s", options->solver, tb_status_text(status));
    return TB_OK;
}
#endif

TB_STATIC bool is_auto(const tb_world *w)
{
#ifdef TB_DEVICE
    return w->solver == TB_SOLVER_NUMBER_auto;
#else
    return tb_solver_number(w->options->solve.solver) == TB_SOLVER_NUMBER_auto;
#endif
}

TB_STATIC void take_factor(tb_warm_start *warm, double *factor, int32_t kept)
{
    tb_team_copy(factor, warm->last_factor, (size_t)kept * sizeof(double));
    tb_team_sync();
    warm->last_factor = NULL;
}

/* Statuses of the last step, and how fast its contacts slipped. */
TB_STATIC void find_statuses(tb_world *w, tb_real *speeds)
{
    TB_EACH (b, w->first_contact_block) {
        const double known = w->state->row_statuses[w->memory[w->blocks[b].row]];
        w->warm_statuses[b] = (uint8_t)(known > 0 ? known - 1 : (double)TB_STATUS_UNKNOWN);
        speeds[b] = 0;
    }
    TB_EACH (i, w->number_of_contacts) {
        w->warm_statuses[w->first_contact_block + i] = (uint8_t)w->records[i].status;
        speeds[w->first_contact_block + i] = TB_R(w->records[i].draft.slip_speed);
    }
    tb_team_sync();
}

/* Memory of a step's solution and of what its solve begins with. */
TB_STATIC tb_status take_solution(tb_world *w, const tb_problem *problem, tb_solution *solution,
                                  tb_real **speeds, tb_error *error)
{
    const int32_t rows = problem->number_of_rows, dofs = problem->number_of_dofs;
    const int32_t blocks = problem->number_of_blocks;
    *speeds = TB_ARENA_ARRAY(w->arena, tb_real, blocks);
    w->warm_statuses = TB_ARENA_ARRAY(w->arena, uint8_t, blocks);
    *solution =
        TB_VALUE(tb_solution){.lambda = TB_ARENA_ARRAY(w->arena, tb_real, rows),
                              .fine = w->fine ? TB_ARENA_ARRAY(w->arena, tb_real, rows) : NULL,
                              .xi = TB_ARENA_ARRAY(w->arena, tb_real, rows),
                              .whitened = TB_ARENA_ARRAY(w->arena, double, dofs),
                              .statuses = TB_ARENA_ARRAY(w->arena, uint8_t, blocks)};
    if (!solution->lambda || !solution->xi || !solution->whitened || !solution->statuses ||
        (w->fine && !solution->fine) || !*speeds || !w->warm_statuses)
        return tb_fail_memory(error, 0, "a step's solution");
    return TB_OK;
}

/* The solution of a step without rows. */
TB_STATIC void solve_nothing(const tb_problem *problem, tb_solution *solution)
{
    TB_EACH (i, problem->number_of_dofs) solution->whitened[i] = 0;
    tb_team_sync();
}

#ifndef TB_DEVICE
/* Rows that ask for less than this share of the fastest dof's velocity, all together, ask for the rounding of velocities,
 * which may contradict itself: nets in free flight. Their residual is over this share. */
#define SMALLEST_SHARE 1e-8

TB_STATIC double constant_squared(const tb_world *w, const tb_problem *problem)
{
    double fastest = 0;
    for (int32_t i = 0; i < w->model->number_of_dofs; i++)
        fastest = fmax(fastest, fabs((double)w->u_free[i]));
    const double least = SMALLEST_SHARE * fastest;
    return fmax(tb_problem_c_squared(problem), problem->number_of_rows * least * least);
}
#endif

TB_STATIC tb_status solve(tb_world *w, const tb_problem *problem, tb_solution *solution,
                          tb_error *error)
{
    const int32_t kept = tb_cached_factor_numbers(problem->number_of_dofs);
    tb_solve_history history; /* a lane's own, like the solution */
    tb_real *speeds;
    const tb_status taken = take_solution(w, problem, solution, &speeds, error);
    if (taken != TB_OK) return taken;
    w->factor = TB_ARENA_ARRAY(w->arena, double, kept);
    if (!w->factor) return tb_fail_memory(error, 0, "a step's solution");
    if (problem->number_of_rows == 0) {
        solve_nothing(problem, solution);
        return TB_OK;
    }
    find_statuses(w, speeds);
    tb_lane_copy(&history, w->state->history, sizeof history);
    tb_warm_start warm = {.scratch = w->arena};
    if (w->options->solve.warm_start) {
        warm.last_factor = w->state->factor;
        if (!is_auto(w)) take_factor(&warm, w->factor, kept);
        warm.lambda = w->warm;
        warm.fine = w->fine;
        warm.statuses = w->warm_statuses;
        warm.speeds = speeds;
        warm.history = &history;
        warm.factor = w->factor;
    }
    tb_problem known = *problem; /* terms that every residual needs */
#ifdef TB_DEVICE
    known.c_squared = tb_problem_c_squared(problem);
#else
    known.c_squared = constant_squared(w, problem);
#endif
    const tb_status status =
        tb_world_run_solver(w, &w->options->solve, &known, &warm, solution, error);
    if (TB_LEADER) {
        w->history = history;
        if (!warm.factor || warm.last_factor) w->factor = NULL;
    }
    return status;
}
#endif

/* ---- after the solve ---- */

/* A single free body's coordinates at the end. change: of its velocities, by rows. */
TB_STATIC void move_free_body(tb_world *w, const tb_model_tree *tree, const double *change)
{
    const bool pushed = change[3] != 0 || change[4] != 0 || change[5] != 0;
    tb_free_body_move(w->q + tree->coordinate, w->u + tree->dof, w->u_end + tree->dof, pushed,
                      w->dt, w->theta);
}

/* u and q at the end, which takes the whitened velocities; false if a number has left the range of
 * numbers. Dofs, joints and free bodies are dealt out. */
TB_STATIC bool integrate(tb_world *w, const tb_solution *solution)
{
    const tb_model *m = w->model;
    double *change = solution->whitened;
    tb_dynamics_unwhiten(&w->dynamics, change);
    TB_EACH (i, m->number_of_dofs) {
        const bool rests = tb_world_leaves_out(w, m->dofs[i].tree);
        w->u_end[i] = rests ? 0 : TB_R(change[i] + (double)w->u_free[i]);
    }
    tb_team_sync();
    TB_EACH (j, m->number_of_joints) {
        const int32_t tree = m->bodies[m->joints[j].body].tree;
        if (!m->trees[tree].single_free && !tb_world_leaves_out(w, tree))
            tb_dynamics_integrate_joint(m, j, w->u_end, w->dt * w->theta, w->q);
    }
    TB_EACH (t, m->number_of_trees)
        if (m->trees[t].single_free && !tb_world_leaves_out(w, t))
            move_free_body(w, &m->trees[t], change + m->trees[t].dof);
    tb_team_sync();
    tb_world_move_kinematic(w, w->dt * w->theta);
    return tb_team_all_finite(w->u_end, m->number_of_dofs) &&
           tb_team_all_finite(w->q, m->number_of_coordinates);
}

/* Turns drafts of contacts into records: impulses, velocities and statuses of the solution. All that a contact
 * needs is read, of its missing rows the first one's numbers, before the first of its numbers is written:
 * then a card waits for its memory twice a contact. */
TB_STATIC void finish_records(tb_world *w, const tb_solution *solution)
{
    const tb_block *blocks = w->blocks + w->first_contact_block;
    const uint8_t *statuses = solution->statuses + w->first_contact_block;
    const tb_real *fine = solution->has_fine ? solution->fine : NULL;
    TB_EACH (i, w->number_of_contacts) {
        tb_contact_record *r = &w->records[i];
        const tb_contact_draft draft = r->draft;
        const int32_t rows = r->kind, row = blocks[i].row, status = statuses[i];
        const double scale[6] = {
            1, 1, 1, draft.spin_radius, draft.rolling_length, draft.rolling_length};
        double impulse[6];
        tb_real xi[3];
        for (int32_t k = 0; k < 3; k++) xi[k] = solution->xi[row + (k < rows ? k : 0)];
        for (int32_t k = 0; k < 6; k++)
            impulse[k] = tb_impulse_at(solution->lambda, fine, row + (k < rows ? k : 0));
        for (int32_t k = 0; k < 3; k++)
            r->velocity[k] = k < rows ? (double)(xi[k] - TB_R(draft.bias[k])) : 0;
        for (int32_t k = 0; k < 6; k++) r->impulse[k] = k < rows ? scale[k] * impulse[k] : 0;
        r->status = status;
    }
}

/* Forces of the last step, and activations moved on. */
TB_STATIC void store_actuators(const tb_world *w, tb_state *state)
{
    const tb_model *m = w->model;
    const tb_row_memory memory = tb_row_memory_layout(m);
    const double dt = (double)w->dt;
    TB_EACH (a, m->number_of_actuators) {
        state->actuator_force[a] =
            w->actuator_force[a] + state->row_impulses[memory.actuators + a] / dt;
        tb_actuator_advance(w, a, state);
    }
}

/* Impulses, contacts and actuator forces. */
TB_STATIC void remember(tb_world *w, tb_state *state, const tb_solution *solution)
{
#ifndef TB_DEVICE
    if (w->sleep && w->sleep->any)
        tb_sleep_clear_rows(w, state);
    else
#endif
        TB_EACH (r, tb_row_memory_layout(w->model).total)
            state->row_impulses[r] = state->row_statuses[r] = 0;
    tb_team_sync();
    const tb_real *fine = solution->has_fine ? solution->fine : NULL;
    TB_EACH (r, w->contact_rows)
        state->row_impulses[w->memory[r]] = tb_impulse_at(solution->lambda, fine, r);
    TB_EACH (b, w->first_contact_block)
        state->row_statuses[w->memory[w->blocks[b].row]] = 1 + solution->statuses[b];
    /* the closing of loops has dropped the blocks: the numbers of rows are no longer the solve's */
    if (w->contact_rows + w->number_of_contacts > 0) {
        if (TB_LEADER) tb_lane_copy(state->history, &w->history, sizeof w->history);
        if (w->factor)
            tb_team_copy(state->factor, w->factor,
                         (size_t)tb_cached_factor_numbers(w->model->number_of_dofs) *
                             sizeof(double));
    }
    tb_team_sync();
    store_actuators(w, state);
    finish_records(w, solution);
    tb_team_sync();
    int32_t contacts = w->number_of_contacts;
#ifndef TB_DEVICE
    if (w->sleep && w->sleep->any) contacts = tb_sleep_keep_contacts(w);
#endif
    if (TB_LEADER) tb_state_take_next(state, contacts);
}

TB_STATIC void commit(const tb_world *w, tb_state *state)
{
    const tb_model *m = w->model;
#ifndef TB_DEVICE
    if (w->sleep && w->sleep->any)
        tb_sleep_commit(w, state);
    else
#endif
        TB_EACH (i, m->number_of_coordinates) state->q[i] = (double)w->q[i];
    TB_EACH (i, m->number_of_past_velocities) state->past_u[i] = state->u[i];
    TB_EACH (i, m->number_of_dofs) state->u[i] = (double)w->u_end[i];
    TB_EACH (i, TB_KINEMATIC_NUMBERS * m->number_of_kinematic_bodies)
        state->kinematic[i] = w->kinematic[i];
    if (TB_LEADER) {
        state->steps++;
        state->time += (double)w->dt;
    }
    tb_team_sync();
}

/* Counts blocks that had a status before the solve, and of these the blocks that kept it. */
TB_STATIC void count_statuses(const tb_world *w, const tb_solution *solution, tb_certificate *c)
{
    if (!w->options->solve.warm_start) return;
    for (int32_t b = 0; b < w->number_of_blocks; b++) {
        if (w->warm_statuses[b] == TB_STATUS_UNKNOWN) continue;
        c->known_statuses++;
        c->kept_statuses += w->warm_statuses[b] == solution->statuses[b];
    }
}

TB_STATIC void certify(const tb_world *w, const tb_solution *solution, tb_certificate *certificate)
{
    tb_certificate *c = certificate;
    /* a solver that gave up left its best, finite impulses: the world has not diverged */
    c->status = solution->status == TB_OK ? TB_OK : TB_NOT_CONVERGED;
    if (solution->status != TB_OK) c->flags |= TB_CERTIFICATE_NOT_CONVERGED;
    if (solution->halvings) c->flags |= TB_CERTIFICATE_HALVED;
    if (w->collide_flags & TB_CONTACT_DEGENERATE) c->flags |= TB_CERTIFICATE_DEGENERATE;
    c->residual = (double)solution->residuals.natural;
    c->cone_error = (double)solution->residuals.cone;
    c->complementarity_error = (double)solution->residuals.complementarity;
    c->penetration = (double)w->deepest;
    c->contacts = w->number_of_contacts;
    c->rows = w->number_of_rows;
    c->iterations = solution->iterations;
    memcpy(c->solver, solution->solver, sizeof c->solver);
    c->linear_solves = solution->work.linear_solves;
    c->factorizations = solution->work.factorizations;
    c->resets = solution->work.resets;
    if (w->number_of_rows) count_statuses(w, solution, c);
}

/* The world stays at its last good state for good. gained: J, of energy that nothing explains; 0:
 * the
 * numbers have left their range. */
TB_STATIC tb_status freeze(tb_state *state, tb_certificate *certificate, double gained,
                           tb_error *error)
{
    certificate->status = TB_DIVERGED;
    certificate->flags |= TB_CERTIFICATE_DIVERGED;
    certificate->step = state->steps;
    certificate->time = state->time;
    tb_team_sync(); /* all have read the status */
    if (TB_LEADER) {
        state->status = TB_DIVERGED;
        state->certificate = *certificate;
    }
    tb_team_sync();
    if (gained != 0)
        return tb_fail(
            error, TB_DIVERGED,
            "the world diverged in step %lld at %.9g s and is frozen: the step would gain "
            "%.3g J that nothing explains",
            (long long)state->steps + 1, state->time, gained);
    return tb_fail(error, TB_DIVERGED, "the world diverged in step %lld at %.9g s and is frozen",
                   (long long)state->steps + 1, state->time);
}

/* ---- energy ---- */

/* Energy account of a step, if wanted. It needs doubles: the float build has the energies before
 * and after the step, on the processor, and no sources. */
#if defined(TB_SINGLE) || defined(TB_UNIT_WARP)
TB_STATIC double energy_of(tb_world *w)
{
#ifdef TB_DEVICE
    (void)w;
    return 0;
#else
    return w->options->report_energy ? tb_world_energy(w->state, w->arena) : 0;
#endif
}

TB_STATIC tb_status account_for_velocities(tb_world *w, const tb_solution *solution,
                                           tb_energy_account *account, tb_error *error)
{
    (void)w, (void)solution, (void)error;
    tb_lane_clear(account, sizeof *account);
    return TB_OK;
}

TB_STATIC double moved_energy(tb_world *w, bool *placed)
{
    (void)w;
    *placed = false;
    return 0;
}

TB_STATIC double settle_account(tb_world *w, const tb_energy_account *a, double before,
                                tb_certificate *c)
{
    (void)w, (void)a, (void)before, (void)c;
    return 0;
}
#else
/* Share of the energy that is rounding. */
#define ENERGY_ROUNDING 1e-6

/* Energy before the step, where the step is accounted for: where it is wanted, and where bodies
 * turn so fast that the discretization may make energy. */
TB_STATIC double energy_of(tb_world *w)
{
    const bool accounts = w->options->report_energy || tb_world_turns_fast(w, w->u) ||
                          tb_world_turns_fast(w, w->u_free);
    tb_team_sync();
    if (TB_LEADER) w->accounts = accounts;
    tb_team_sync();
    return accounts ? tb_world_begin_energy(w) : 0;
}

TB_STATIC tb_status account_for_velocities(tb_world *w, const tb_solution *solution,
                                           tb_energy_account *account, tb_error *error)
{
    tb_lane_clear(account, sizeof *account);
    return w->accounts ? tb_world_account(w, solution, account, error) : TB_OK;
}

/* Energy of the coordinates and velocities as they are by now. Leaves the poses there: *placed. */
TB_STATIC double moved_energy(tb_world *w, bool *placed)
{
    *placed = w->accounts;
    return w->accounts ? tb_world_end_energy(w, false) : 0;
}

/* Where the change of energy comes from, if that is reported. Returns the energy (J) that the step
 * has gained beyond its sources and its discretization error; 0: none. */
TB_STATIC double settle_account(tb_world *w, const tb_energy_account *a, double before,
                                tb_certificate *certificate)
{
    if (!w->accounts) return 0;
    tb_certificate c = *certificate;
    /* the closing of loops has placed the bodies */
    c.energy = tb_world_end_energy(w, w->model->number_of_equalities > 0);
    c.energy_change = c.energy - before;
    c.energy_recovery = a->recovers ? c.energy - a->energy : 0;
    c.energy_motors = a->motors;
    c.energy_damping = a->damping;
    c.energy_friction = a->friction;
    c.energy_applied = a->applied;
    const double known = c.energy_recovery + a->motors + a->damping + a->friction + a->applied;
    if (a->bases_move)
        c.energy_applied += c.energy_change - known;
    else
        c.energy_unexplained = c.energy_change - known;
    c.energy_bound =
        a->bound + ENERGY_ROUNDING * (fabs(before) + fabs(c.energy) + fabs(a->motors) +
                                      fabs(a->damping) + fabs(a->applied) + fabs(a->friction));
    if (w->options->report_energy) *certificate = c;
    return c.energy_unexplained <= c.energy_bound ? 0 : c.energy_unexplained;
}
#endif

/* Motion of positions alone: recovery, and the closing of loops. */
TB_STATIC tb_status move_positions(tb_world *w, tb_recovered *recovered, tb_energy_account *account,
                                   tb_certificate *c, tb_error *error)
{
    account->recovers = recovered->velocity || w->model->number_of_equalities > 0;
    bool placed = false;
    if (account->recovers) account->energy = moved_energy(w, &placed);
    if (recovered->velocity) tb_world_move_recovery(w, recovered->velocity);
    placed = placed && !recovered->velocity;
    const tb_status status =
        tb_world_close_loops(w, w->q, placed, recovered, &c->closure_error, error);
    if (recovered->velocity && TB_LEADER) tb_world_find_violated_limits(w, recovered);
    tb_team_sync();
    if (recovered->faults > 0) {
        c->flags |= TB_CERTIFICATE_INFEASIBLE;
        c->faults = recovered->faults;
        c->worst_fault = recovered->worst;
    }
    return status;
}

/* ---- the parts of a step ---- */

TB_STATIC void fetch_contacts(const tb_contact_record *records, int32_t count)
{
    tb_team_fetch(records, (size_t)count * sizeof *records);
}

/* Numbers of the state that a step begins with. */
TB_STATIC void fetch_state(const tb_state *state)
{
    tb_team_fetch(state->numbers, (size_t)(state->history - state->numbers) * sizeof(double));
}

TB_STATIC void fetch_problem(const tb_world *w)
{
    const size_t rows = (size_t)w->number_of_rows;
    tb_team_fetch(w->values, (size_t)w->number_of_values * sizeof(tb_real));
    tb_team_fetch(w->blocks, (size_t)w->number_of_blocks * sizeof(tb_block));
    tb_team_fetch(w->c, rows * sizeof(tb_real));
    tb_team_fetch(w->warm, rows * sizeof(tb_real));
    tb_team_fetch(w->segments, (size_t)w->number_of_segments * sizeof(tb_segment));
    fetch_contacts(w->records, w->number_of_contacts);
}

#ifndef TB_UNIT_WARP
TB_EXTERN tb_status tb_step_begin(tb_stepping *stepping, tb_state *state,
                                  const tb_step_options *options, tb_workspace *workspace,
                                  tb_certificate *certificate, tb_error *error)
{
    tb_world *w = &stepping->world;
    tb_lane_clear(certificate, sizeof *certificate);
    if (state->status == TB_DIVERGED) return freeze(state, certificate, 0, error);
    tb_team_clear(stepping, sizeof *stepping); /* parts of a step hand it on whole */
    tb_team_sync();
    if (TB_LEADER) {
        open_world(w, state, options, workspace);
        w->home = state;
    }
    fetch_state(state);
    tb_team_sync();
    const tb_status status = assemble(w, error);
    TB_STAGE_DONE(TB_STAGE_ROWS);
    return status == TB_DIVERGED ? freeze(state, certificate, 0, error) : status;
}

#ifndef TB_DEVICE
/* The step anew, after what slept has been touched. */
TB_STATIC tb_status begin_again(tb_world *w, tb_error *error)
{
    tb_sleep_wake_touched(w);
    *w = (tb_world){.model = w->model,
                    .state = w->state,
                    .home = w->home,
                    .options = w->options,
                    .arena = w->arena,
                    .threads = w->threads,
                    .solver = w->solver,
                    .dt = w->dt,
                    .theta = w->theta};
    const tb_status status = assemble(w, error);
    return status == TB_OK ? tb_world_detect(w, error) : status;
}
#endif

TB_EXTERN tb_status tb_step_detect(tb_stepping *stepping, tb_certificate *certificate,
                                   tb_error *error)
{
    tb_world *w = &stepping->world;
    fetch_contacts(w->state->contacts, w->state->number_of_contacts);
    tb_status status = tb_world_detect(w, error);
#ifndef TB_DEVICE
    while (status == TB_OK && w->sleep && w->sleep->wakes) status = begin_again(w, error);
#endif
    if (status == TB_OK) status = tb_world_adhere(w, error);
    TB_STAGE_DONE(TB_STAGE_CONTACTS);
    if (status != TB_DIVERGED) return status;
    tb_lane_clear(certificate, sizeof *certificate);
    return freeze(w->home, certificate, 0, error);
}

TB_EXTERN tb_status tb_step_solve(tb_stepping *stepping, tb_error *error)
{
    tb_world *w = &stepping->world;
    fetch_problem(w);
    const double energy = energy_of(w);
    const tb_problem problem = tb_world_problem(w);
    tb_solution solution = stepping->solution;
    const bool solved = solution.lambda != NULL; /* by a kernel before this one */
    tb_status status = solved ? TB_OK : solve(w, &problem, &solution, error);
    if (status == TB_OK) status = tb_world_take_no_energy(w, &problem, &solution, error);
    tb_recovered recovered = {0};
    if (status == TB_OK) status = tb_world_recover(w, &solution, &recovered, error);
    if (TB_LEADER) {
        stepping->energy_before = energy;
        stepping->solution = solution;
        stepping->recovered = recovered;
    }
    tb_team_sync();
    TB_STAGE_DONE(TB_STAGE_SOLVE);
    return status;
}

TB_EXTERN tb_status tb_step_end(tb_stepping *stepping, tb_certificate *certificate, tb_error *error)
{
    tb_world *w = &stepping->world;
    tb_state *state = w->home;
    fetch_contacts(w->records, w->number_of_contacts);
    tb_lane_clear(certificate, sizeof *certificate);
    certify(w, &stepping->solution, certificate);
    if (!integrate(w, &stepping->solution)) return freeze(state, certificate, 0, error);
    tb_energy_account account;
    tb_status status = TB_OK;
#ifndef TB_DEVICE
    if (w->sleep)
        status = tb_sleep_choose(w, &stepping->recovered, stepping->solution.status == TB_OK);
    if (status != TB_OK) return tb_fail_memory(error, 0, "a step's contacts");
#endif
    status = account_for_velocities(w, &stepping->solution, &account, error);
    if (status == TB_OK)
        status = move_positions(w, &stepping->recovered, &account, certificate, error);
    if (status != TB_OK) return status;
    const double gained = settle_account(w, &account, stepping->energy_before, certificate);
    if (gained != 0) return freeze(state, certificate, gained, error);
    remember(w, state, &stepping->solution);
    commit(w, state);
#ifndef TB_DEVICE
    if (w->sleep) tb_sleep_end(w, certificate);
#endif

    certificate->step = state->steps;
    certificate->time = state->time;
#if defined(TB_SINGLE)
    certificate->energy = energy_of(w);
    if (w->options->report_energy)
        certificate->energy_change = certificate->energy - stepping->energy_before;
#endif
    if (TB_LEADER) state->certificate = *certificate;
    tb_team_sync();
    TB_STAGE_DONE(TB_STAGE_END);
    return TB_OK;
}

TB_EXTERN tb_status tb_world_step(tb_state *state, const tb_step_options *options,
                                  tb_workspace *workspace, tb_certificate *certificate,
                                  tb_error *error)
{
#ifndef TB_DEVICE
    if (tb_sleep_rests(state, &workspace->arena)) {
        const tb_world w = make_world(state, options, workspace);
        tb_sleep_rest(state, (double)w.dt, options->report_energy, w.arena, certificate);
        return TB_OK;
    }
#endif
    tb_stepping s;
    tb_status status = tb_step_begin(&s, state, options, workspace, certificate, error);
    if (status == TB_OK) status = tb_step_detect(&s, certificate, error);
    if (status == TB_OK) status = tb_step_solve(&s, error);
    return status == TB_OK ? tb_step_end(&s, certificate, error) : status;
}
#endif

#if !defined(TB_SINGLE) && !defined(TB_DEVICE)
TB_EXTERN tb_status tb_world_export(const tb_state *state, const tb_step_options *options,
                                    tb_workspace *workspace, const char *path, tb_error *error)
{
    tb_world w = make_world(state, options, workspace);
    tb_status status = assemble(&w, error);
    if (status == TB_OK) status = tb_world_detect(&w, error);
    if (status == TB_OK) status = tb_world_adhere(&w, error);
    if (status == TB_DIVERGED) return tb_fail(error, status, "the world has diverged");
    if (status != TB_OK) return status;
    const tb_problem problem = tb_world_problem(&w);
    return tb_problem_write(&problem, path, error);
}
#endif
