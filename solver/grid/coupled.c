/* One step of a state with soft bodies: soft and rigid bodies push each other.
 *
 * Where rigid bodies can move, they step with every substep of the soft ones. Over a longer step the
 * answer of a rigid contact to soft ones comes too late: a mug on a floor between two soft pads then
 * rocks from one to the other and gains energy.
 *
 * A trial step of the rigid bodies, with the impulses that they got from soft ones before, predicts
 * their velocities with their own contacts, joints and motors. The contact programs of the soft
 * bodies correct that prediction by the bodies' answers to other impulses (partners.c). The rigid
 * step then takes the impulses as wrenches: each impulse acts on both sides, whatever was predicted. The
 * prediction is exact for free bodies that touch soft ones alone, and for rest. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grid/attached.h"

static tb_status check_options(const tb_step_options *o, tb_error *error)
{
    if (o->scheme != TB_SCHEME_STEWART_TRINKLE)
        return tb_fail_field(error, TB_UNSUPPORTED, "scheme",
                             "scenes with soft bodies step by the scheme stewart-trinkle");
    if (o->precision == TB_FLOAT)
        return tb_fail_field(error, TB_UNSUPPORTED, "precision",
                             "scenes with soft bodies step in double");
    return TB_OK;
}

/* ---- rigid bodies ---- */

/* Velocity of the centre of mass, and angular velocity. */
static void twist_of(const tb_body_motion *motion, double twist[6])
{
    const tb_vec3 arm = tb_v3_sub(tb_v3_load(motion->com), tb_v3_load(motion->position));
    const tb_vec3 angular = tb_v3_load(motion->angular_velocity);
    tb_v3_store(twist, tb_v3_add(tb_v3_load(motion->linear_velocity), tb_v3_cross(angular, arm)));
    tb_v3_store(twist + 3, angular);
}

/* Where the rigid bodies are and how fast. */
static tb_status place(const tb_state *state, tb_error *error)
{
    tb_state_soft *s = state->soft;
    const tb_status status = tb_state_body_motions(state, s->motions);
    if (status != TB_OK)
        return tb_fail(error, status, "where rigid bodies are: %s", tb_status_text(status));
    for (int32_t i = 0; i < s->world->number_of_rigid; i++) {
        tb_soft_rigid *r = s->world->rigid + i;
        const tb_body_motion *motion = s->motions + r->body;
        r->position = tb_v3_load(motion->position);
        r->orientation = tb_q_load(motion->orientation);
        r->centre = tb_v3_load(motion->com);
        twist_of(motion, r->first);
        memcpy(r->last, r->first, sizeof r->last);
        memset(r->impulse, 0, sizeof r->impulse);
        memset(r->response, 0, sizeof r->response);
        memset(r->root, 0, sizeof r->root);
        r->moves = false;
    }
    return TB_OK;
}

/* Adds impulses (N s, N m s) as wrenches over a step. */
static void add_wrenches(tb_state *state, const tb_soft_world *w, bool before, double dt)
{
    for (int32_t i = 0; i < w->number_of_rigid; i++) {
        const tb_soft_rigid *r = w->rigid + i;
        const double *impulse = before ? r->before : r->impulse;
        for (int k = 0; k < 6; k++) state->wrenches[6 * r->body + k] += impulse[k] / dt;
    }
}

/* M^-1 J' e for a unit wrench on a body, by the change of the smooth acceleration. */
static tb_status answer(tb_state *trial, tb_workspace *workspace, int32_t body, int component,
                        const double *base, double *acceleration, tb_error *error)
{
    double *wrench = trial->wrenches + 6 * body + component;
    const double kept = *wrench;
    *wrench += 1;
    const tb_status status = tb_world_smooth_acceleration(trial, workspace, acceleration, error);
    *wrench = kept;
    for (int32_t i = 0; i < trial->model->number_of_dofs; i++) acceleration[i] -= base[i];
    return status;
}

/* K of a body that joints hold: twists for the velocities M^-1 J' e. */
static tb_status respond_by_joints(tb_state *trial, tb_workspace *workspace, tb_soft_rigid *r,
                                   double response[36], tb_error *error)
{
    const int32_t dofs = trial->model->number_of_dofs;
    const size_t bytes = (size_t)dofs * sizeof(double);
    double *base = calloc(3 * (size_t)dofs, sizeof *base), still[6];
    if (base == NULL) return tb_fail_memory(error, 3 * bytes, "a body's answer");
    double *acceleration = base + dofs, *u = base + 2 * dofs;
    tb_body_motion motion;
    memcpy(u, trial->u, bytes);
    tb_status status = tb_world_smooth_acceleration(trial, workspace, base, error);
    memset(trial->u, 0, bytes);
    if (status == TB_OK) status = tb_state_body_motion(trial, r->body, &motion);
    if (status == TB_OK) twist_of(&motion, still);
    for (int c = 0; status == TB_OK && c < 6; c++) {
        double twist[6];
        memcpy(trial->u, u, bytes);
        status = answer(trial, workspace, r->body, c, base, acceleration, error);
        memcpy(trial->u, acceleration, bytes);
        if (status == TB_OK) status = tb_state_body_motion(trial, r->body, &motion);
        if (status == TB_OK) twist_of(&motion, twist);
        for (int k = 0; status == TB_OK && k < 6; k++) response[6 * k + c] = twist[k] - still[k];
    }
    memcpy(trial->u, u, bytes);
    free(base);
    return status;
}

static tb_status respond(tb_state *trial, tb_workspace *workspace, tb_soft_rigid *r,
                         tb_error *error)
{
    const tb_model *m = trial->model;
    const tb_model_body *body = m->bodies + r->body;
    double response[36] = {0};
    if (body->last_dof < 0) return TB_OK;
    const tb_model_tree *tree = m->trees + body->tree;
    if (tree->single_free) {
        const tb_mat33 rotation = tb_q_matrix(r->orientation);
        tb_mat33 inverse;
        memcpy(inverse.m, tree->inverse_inertia, sizeof inverse.m);
        const tb_mat33 half = tb_m33_mul(&rotation, &inverse);
        const tb_mat33 turned = tb_m33_transpose(&rotation), world = tb_m33_mul(&half, &turned);
        for (int i = 0; i < 3; i++) {
            response[7 * i] = tree->inverse_mass;
            for (int j = 0; j < 3; j++) response[6 * (3 + i) + 3 + j] = world.m[3 * i + j];
        }
    } else {
        const tb_status status = respond_by_joints(trial, workspace, r, response, error);
        if (status != TB_OK) return status;
    }
    tb_soft_rigid_respond(r, response);
    return TB_OK;
}

/* Velocities after a trial step, and the answers of the bodies that may touch soft ones. */
static tb_status predict(const tb_state *state, const tb_step_options *options,
                         tb_workspace *workspace, double dt, tb_error *error)
{
    tb_state_soft *s = state->soft;
    tb_state *trial = NULL;
    tb_certificate ignored;
    if (state->model->number_of_dofs == 0) return TB_OK;
    tb_status status = tb_state_fork_rigid(state, &trial, error);
    for (int32_t i = 0; status == TB_OK && i < s->world->number_of_rigid; i++)
        if (tb_soft_rigid_is_near(s->world, i, dt))
            status = respond(trial, workspace, s->world->rigid + i, error);
    if (status == TB_OK) {
        add_wrenches(trial, s->world, true, dt);
        /* a trial step that diverges predicts nothing; the step itself then says so */
        status = tb_world_step(trial, options, workspace, &ignored, error);
        if (status == TB_OK && tb_state_body_motions(trial, s->motions) == TB_OK)
            for (int32_t i = 0; i < s->world->number_of_rigid; i++)
                twist_of(s->motions + s->world->rigid[i].body, s->world->rigid[i].last);
        if (status == TB_DIVERGED) status = TB_OK;
    }
    tb_state_destroy(trial);
    return status;
}

/* The step of the rigid bodies with the impulses of the soft ones. */
static tb_status step_rigid(tb_state *state, const tb_step_options *options,
                            tb_workspace *workspace, double dt, tb_certificate *certificate,
                            tb_error *error)
{
    const size_t bytes = 6 * (size_t)state->model->number_of_bodies * sizeof(double);
    double *kept = malloc(bytes);
    if (kept == NULL) return tb_fail_memory(error, bytes, "wrenches");
    memcpy(kept, state->wrenches, bytes);
    add_wrenches(state, state->soft->world, false, dt);
    const tb_status status = tb_world_step(state, options, workspace, certificate, error);
    memcpy(state->wrenches, kept, bytes);
    free(kept);
    return status;
}

/* Largest error of the programs' predicted velocities of the touched bodies. */
static double prediction_error(const tb_state *state)
{
    tb_state_soft *s = state->soft;
    double worst = 0;
    if (state->model->number_of_dofs == 0 || tb_state_body_motions(state, s->motions) != TB_OK)
        return 0;
    for (int32_t i = 0; i < s->world->number_of_rigid; i++) {
        const tb_soft_rigid *r = s->world->rigid + i;
        double twist[6], square = 0;
        if (!r->moves || (r->impulse[0] == 0 && r->impulse[1] == 0 && r->impulse[2] == 0)) continue;
        twist_of(s->motions + r->body, twist);
        for (int k = 0; k < 3; k++) square += (twist[k] - r->twist[k]) * (twist[k] - r->twist[k]);
        worst = tb_max(worst, sqrt(square));
    }
    return worst;
}

/* ---- the whole ---- */

static void certify(const tb_soft_world *w, const tb_soft_certificate *c, double before,
                    bool energy, tb_certificate *certificate)
{
    static const char *const names[] = {"schurpa", "direct", "newton"};
    if (certificate->status == TB_OK && c->status != TB_OK) {
        certificate->status = TB_NOT_CONVERGED;
        certificate->flags |= TB_CERTIFICATE_NOT_CONVERGED;
    }
    certificate->residual =
        tb_max(certificate->residual, tb_max(c->normal.residual, c->tangential.residual));
    certificate->penetration = tb_max(certificate->penetration, c->penetration);
    certificate->contacts += c->contacts;
    certificate->iterations += c->normal.solves + c->tangential.solves;
    if (certificate->rows == 0 && c->contacts > 0)
        strcpy(certificate->solver, names[w->scene.options.contact]);
    certificate->rows += c->normal.variables + c->tangential.variables;
    if (!energy) return;
    const double after = c->kinetic + c->elastic + c->potential;
    certificate->energy += after;
    certificate->energy_change += after - before;
    certificate->energy_damping -= c->damped;
    certificate->energy_friction += c->contact_work;
}

static double energy_of(tb_soft_world *w)
{
    double sum = 0;
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++) {
        double energy[3];
        tb_soft_world_measure(w, b, energy, NULL, NULL);
        sum += energy[0] + energy[1] + energy[2];
    }
    return sum;
}

/* Impulses of the part before, as those that bodies may expect in a part of dt. */
static void expect_impulses(tb_soft_world *w, double dt)
{
    for (int32_t i = 0; i < w->number_of_rigid && w->last_part > 0; i++)
        for (int k = 0; k < 6; k++) w->rigid[i].before[k] *= dt / w->last_part;
    w->last_part = dt;
}

/* A part of a step: its length is options->dt. */
static tb_status step_part(tb_state *state, const tb_step_options *options, tb_workspace *workspace,
                           tb_soft_certificate *c, tb_certificate *certificate, tb_error *error)
{
    tb_soft_world *w = state->soft->world;
    const double dt = options->dt;
    tb_certificate part = {0};
    w->coupled_start = w->time;
    w->coupled_dt = dt;
    tb_arena_reset(&workspace->arena);
    expect_impulses(w, dt);
    tb_status status = place(state, error);
    if (status == TB_OK) status = predict(state, options, workspace, dt, error);
    if (status == TB_OK) status = tb_soft_advance(w, dt, c, error);
    if (status == TB_OK) status = step_rigid(state, options, workspace, dt, &part, error);
    if (status != TB_OK) return status;
    tb_certificate_merge(certificate, &part);
    c->prediction_error = tb_max(c->prediction_error, prediction_error(state));
    for (int32_t i = 0; i < w->number_of_rigid; i++)
        memcpy(w->rigid[i].before, w->rigid[i].impulse, sizeof w->rigid[i].before);
    return TB_OK;
}

/* Everything but the way back from a failure. `before` is the state at the start of the step. */
static tb_status step_all(tb_state *state, const tb_state *before, const tb_step_options *options,
                          tb_workspace *workspace, tb_soft_certificate *c,
                          tb_certificate *certificate, tb_error *error)
{
    tb_soft_world *w = state->soft->world;
    const double dt = options->dt > 0 ? options->dt : state->model->dt, start = w->time;
    const bool parts = state->model->number_of_dofs > 0;
    tb_step_options part = *options;
    tb_status status = TB_OK;
    int32_t done = 0, count = 1;
    w->scene.options.dt = dt;
    w->scene.options.threads = workspace->threads;
    const double energy = options->report_energy ? energy_of(w) : 0;
    c->smallest_volume = 1e300;
    while (status == TB_OK && count > 0) {
        const double rest = start + dt - w->time;
        if (parts) status = tb_soft_count_substeps(w, rest, done, &count, error);
        part.dt = rest / count;
        /* impulses of the last step are those of a whole one, which parts begin from */
        if (status == TB_OK && done == 0 && count > 1)
            status = tb_state_scale_impulses(state, part.dt / dt);
        if (status == TB_OK) status = step_part(state, &part, workspace, c, certificate, error);
        done++;
        count--;
    }
    if (status == TB_OK && done > 1) status = tb_state_scale_impulses(state, dt / part.dt);
    if (status != TB_OK) return status;
    w->time = start + dt;
    tb_state_count_one_step(state, before, before->time + dt);
    certificate->step = state->steps;
    certificate->time = state->time;
    status = tb_soft_finish(w, c, error);
    if (status != TB_OK) return status;
    certify(w, c, energy, options->report_energy, certificate);
    return TB_OK;
}

tb_status tb_soft_step_state(tb_state *state, const tb_step_options *options,
                             tb_workspace *workspace, tb_certificate *certificate, tb_error *error)
{
    tb_state_soft *s = state->soft;
    tb_soft_certificate c = {.status = TB_OK};
    memset(certificate, 0, sizeof *certificate);
    tb_status status = check_options(options, error);
    if (status != TB_OK) return status;
    if (state->status == TB_DIVERGED) return tb_state_freeze(state, certificate, error);
    tb_state *before = NULL;
    const bool on_card = options->backend == TB_BACKEND_GPU;
    status = tb_soft_world_place(s->world, on_card ? TB_BACKEND_GPU : TB_BACKEND_CPU,
                                 on_card ? options->device : 0, error);
    if (status == TB_OK) status = tb_soft_world_begin_step(s->world, &s->backup, error);
    if (status == TB_OK) status = tb_state_fork_rigid(state, &before, error);
    if (status != TB_OK) return status;
    status = step_all(state, before, options, workspace, &c, certificate, error);
    if (status == TB_OK) {
        s->certificate = c;
        state->certificate = *certificate;
        tb_state_destroy(before);
        return TB_OK;
    }
    tb_error ignored;
    const tb_status undone = tb_soft_world_undo_step(s->world, &s->backup, &ignored);
    /* of a lost card, ABORTED is the cause already */
    if (undone != TB_OK && undone != TB_ABORTED) status = TB_DIVERGED;
    tb_state_put_back_rigid(state, before);
    tb_state_destroy(before);
    if (status == TB_DIVERGED)
        tb_state_freeze(state, certificate, &ignored); /* the cause is in `error` */
    return status;
}
