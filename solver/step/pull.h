/* The search for a muscle's length range (model/pull.h). */
#ifndef TB_STEP_PULL_H
#define TB_STEP_PULL_H

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/linear.h"
#include "model/pull.h"
#include "tribo_step.h"

enum { PULL_DOF_LIMIT = 500 }; /* the mass matrix is dense, and factored in each step */

/* A length is at rest that changes by no more than this share a step. */
#define PULL_REST 1e-10

#define PULL_TRY(call)                                                                             \
    do {                                                                                           \
        const tb_status status_ = (call);                                                          \
        if (status_ != TB_OK) return status_;                                                      \
    } while (0)

/* A model that is pulled. */
typedef struct puller {
    const tb_pull_search *how;
    const tb_model *model;
    tb_stepper *stepper;
    tb_state *state;
    int32_t dofs, tendons;
    double *mass, *force, *row, *u; /* dofs x dofs; dofs */
    double *lengths, *moments;      /* of tendons; tendons x dofs */
    tb_error *error;
} puller;

static tb_status begin_pulling(puller *p, const tb_model *model)
{
    tb_step_options options = tb_step_defaults();
    options.dt = p->how->dt;
    options.threads = options.solve.threads = 1;
    options.backend = TB_BACKEND_CPU;
    p->model = model;
    p->dofs = model->number_of_dofs;
    p->tendons = model->number_of_tendons;
    if (p->dofs > PULL_DOF_LIMIT)
        return tb_fail(p->error, TB_RESOURCE_EXHAUSTED,
                       "lengths of muscles are found in models of up to %d dofs", PULL_DOF_LIMIT);
    const size_t n = (size_t)p->dofs, tendons = (size_t)p->tendons;
    p->mass = calloc(n * n + 1, sizeof *p->mass);
    p->force = calloc(n + 1, sizeof *p->force);
    p->row = calloc(n + 1, sizeof *p->row);
    p->u = calloc(n + 1, sizeof *p->u);
    p->lengths = calloc(tendons + 1, sizeof *p->lengths);
    p->moments = calloc(tendons * n + 1, sizeof *p->moments);
    if (!p->mass || !p->force || !p->row || !p->u || !p->lengths || !p->moments)
        return tb_fail_memory(p->error, n * (n + tendons) * sizeof *p->mass, "a mass matrix");
    PULL_TRY(tb_state_create(model, &p->state, p->error));
    return tb_stepper_create(&options, &p->stepper, p->error);
}

static void end_pulling(puller *p)
{
    tb_state_destroy(p->state);
    tb_stepper_destroy(p->stepper);
    free(p->mass);
    free(p->force);
    free(p->row);
    free(p->u);
    free(p->lengths);
    free(p->moments);
}

/* The muscle's length and its moments, in `force`. */
static tb_status look(puller *p, const tb_pull_target *muscle, double *length)
{
    const double gear = muscle->gear;
    memset(p->force, 0, (size_t)p->dofs * sizeof *p->force);
    if (muscle->joint >= 0) {
        const tb_model_joint *joint = &p->model->joints[muscle->joint];
        *length = gear * tb_state_q(p->state)[joint->coordinate];
        p->force[joint->dof] = gear;
        return TB_OK;
    }
    PULL_TRY(tb_state_tendons(p->state, p->lengths, p->moments, p->error));
    *length = gear * p->lengths[muscle->tendon];
    for (int32_t i = 0; i < p->dofs; i++)
        p->force[i] = gear * p->moments[(size_t)muscle->tendon * (size_t)p->dofs + (size_t)i];
    return TB_OK;
}

/* One step under the muscle's pull (sign -1) or push (1). */
static tb_status advance(puller *p, const tb_pull_target *muscle, double sign, double *length)
{
    const tb_pull_search *how = p->how;
    const size_t n = (size_t)p->dofs;
    const double fade = exp(-how->dt / fmax(0.01, how->time_constant));
    for (size_t i = 0; i < n; i++) p->u[i] = fade * tb_state_u(p->state)[i];
    PULL_TRY(tb_state_set_u(p->state, p->u, p->dofs, p->error));
    PULL_TRY(look(p, muscle, length));
    PULL_TRY(tb_state_mass_matrix(p->state, p->mass, p->error));
    if (tb_cholesky(p->mass, p->dofs, p->dofs) != p->dofs)
        return tb_fail(p->error, TB_INVALID_ARGUMENT,
                       "lengths of muscles need a mass matrix that is positive definite");
    memcpy(p->row, p->force, n * sizeof *p->row);
    tb_cholesky_solve(p->mass, p->dofs, p->dofs, p->row);
    double norm = 0, acceleration = 0;
    for (size_t i = 0; i < n; i++) {
        norm = hypot(norm, p->force[i]);
        acceleration = hypot(acceleration, p->row[i]);
    }
    double scale = how->acceleration / fmax(DBL_MIN, acceleration);
    if (how->most_force > 0) scale = fmin(scale, how->most_force / fmax(DBL_MIN, norm));
    for (size_t i = 0; i < n; i++) p->force[i] *= norm > 0 ? sign * scale : 0;
    PULL_TRY(tb_state_set_applied_force(p->state, p->force, p->dofs, p->error));
    return tb_step(p->stepper, p->state, 1, NULL, p->error);
}

/* An end of the muscle's range, the shortest (sign -1) or longest length of the last interval; *spread:
 * how much the length changes there. A length that has been at rest for an interval stays. */
static tb_status find_end(puller *p, const tb_pull_target *muscle, double sign, double *end,
                          double *spread)
{
    const tb_pull_search *how = p->how;
    double low = INFINITY, high = -INFINITY, before = NAN, rest = 0;
    PULL_TRY(tb_state_reset(p->state, -1, p->error));
    for (double time = how->dt; time <= how->duration; time += how->dt) {
        double length = 0;
        /* once a row of the mass matrix */
        for (int32_t i = 0; i < p->dofs; i++) PULL_TRY(tb_budget_check(p->error));
        PULL_TRY(advance(p, muscle, sign, &length));
        rest = fabs(length - before) <= PULL_REST * (1 + fabs(length)) ? rest + how->dt : 0;
        before = length;
        if (rest > how->interval) low = INFINITY, high = -INFINITY;
        if (rest > how->interval || time > how->duration - how->interval) {
            low = fmin(low, length);
            high = fmax(high, length);
        }
        if (rest > how->interval) break;
    }
    *end = sign < 0 ? low : high;
    *spread = high - low;
    return TB_OK;
}

tb_status tb_pull_muscle(const tb_model *model, const tb_pull_search *how,
                         const tb_pull_target *muscle, double ends[2], double spreads[2],
                         tb_error *error)
{
    puller p = {.how = how, .error = error};
    tb_status status = begin_pulling(&p, model);
    for (int side = 0; side < 2 && status == TB_OK; side++)
        status = find_end(&p, muscle, 2 * side - 1, &ends[side], &spreads[side]);
    end_pulling(&p);
    return status;
}

#undef PULL_TRY
#endif
