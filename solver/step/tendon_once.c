/* Questions about tendons, and the effect of their armature outside of the step. Double. */
#include <string.h>

#include "step/stages/stages.h"

/* Coefficients of a tendon at the poses in d; `own` holds those of a spatial one. */
static const double *row_of(const tb_dynamics *d, int32_t tendon, double *own)
{
    const tb_model_tendon *t = &d->model->tendons[tendon];
    if (t->number_of_points == 0) return d->model->tendon_coefficients + t->first;
    tb_tendon_measure(d, tendon, own);
    return own;
}

static double times(const tb_model *m, const tb_model_tendon *t, const double *row, const double *x)
{
    double sum = 0;
    for (int32_t k = 0; k < t->count; k++) sum += row[k] * x[m->tendon_dofs[t->first + k]];
    return sum;
}

tb_status tb_state_tendons(const tb_state *state, double *lengths, double *jacobian,
                           tb_error *error)
{
    const tb_model *m = state->model;
    const size_t dofs = (size_t)m->number_of_dofs, tendons = (size_t)m->number_of_tendons;
    tb_arena arena = {0};
    tb_dynamics d;
    tb_status status = tb_state_sync_to_host(state, TB_PARTS_NUMBERS, error);
    if (status != TB_OK) return status;
    status = tb_dynamics_look(&d, state, &arena);
    double *own = TB_ARENA_ARRAY(&arena, double, m->number_of_tendon_terms);
    if (status != TB_OK || !own) {
        tb_arena_destroy(&arena);
        return tb_fail_memory(error, 0, "lengths of tendons");
    }
    if (jacobian) memset(jacobian, 0, tendons * dofs * sizeof *jacobian);
    for (int32_t i = 0; i < m->number_of_tendons; i++) {
        const tb_model_tendon *t = &m->tendons[i];
        const double *row = row_of(&d, i, own);
        lengths[i] = t->number_of_points > 0 ? tb_tendon_measure(&d, i, NULL)
                                             : tb_tendon_fixed_length(m, i, state->q);
        for (int32_t k = 0; jacobian && k < t->count; k++)
            jacobian[(size_t)i * dofs + (size_t)m->tendon_dofs[t->first + k]] += row[k];
    }
    tb_arena_destroy(&arena);
    return TB_OK;
}

/* ---- armature ---- */

TB_EXTERN tb_status tb_tendons_add_mass(const tb_dynamics *dynamics, tb_arena *arena, double *mass)
{
    const tb_model *m = dynamics->model;
    const size_t dofs = (size_t)m->number_of_dofs;
    double *own = TB_ARENA_ARRAY(arena, double, m->number_of_tendon_terms);
    if (!own) return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < m->number_of_tendons; i++) {
        const tb_model_tendon *t = &m->tendons[i];
        if (t->armature == 0) continue;
        const double *row = row_of(dynamics, i, own);
        const int32_t *at = m->tendon_dofs + t->first;
        for (int32_t j = 0; j < t->count; j++)
            for (int32_t k = 0; k < t->count; k++)
                mass[(size_t)at[j] * dofs + (size_t)at[k]] += t->armature * row[j] * row[k];
    }
    return TB_OK;
}

/* One tendon after another, M_k = M_(k-1) + a J' J, by the formula of Sherman and Morrison. */
TB_EXTERN tb_status tb_tendons_slow(const tb_world *world, double *x)
{
    const tb_model *m = world->model;
    const int32_t dofs = m->number_of_dofs;
    int32_t heavy = 0, done = 0;
    for (int32_t i = 0; i < m->number_of_tendons; i++) heavy += m->tendons[i].armature > 0;
    if (heavy == 0) return TB_OK;
    double *all = TB_ARENA_ZEROED(world->arena, double, (size_t)heavy *(size_t)dofs);
    double *scales = TB_ARENA_ARRAY(world->arena, double, heavy);
    int32_t *which = TB_ARENA_ARRAY(world->arena, int32_t, heavy);
    if (!all || !scales || !which) return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < m->number_of_tendons; i++) {
        const tb_model_tendon *t = &m->tendons[i];
        if (t->armature == 0) continue;
        const tb_transmission on = tb_tendon_transmission(world, i);
        const double gain =
            t->number_of_points > 0 ? tb_tendon_gain(world, i, world->dynamics.velocities) : 0;
        double *z = all + (size_t)done * (size_t)dofs; /* M_(k-1)^-1 J' */
        for (int32_t k = 0; k < on.count; k++) z[on.dofs[k]] += on.coefficients[k];
        tb_dynamics_solve(&world->dynamics, z);
        for (int32_t p = 0; p < done; p++) {
            const double *before = all + (size_t)p * (size_t)dofs;
            const tb_transmission past = tb_tendon_transmission(world, which[p]);
            const double share = scales[p] * times(m, &m->tendons[which[p]], past.coefficients, z);
            for (int32_t k = 0; k < dofs; k++) z[k] -= share * before[k];
        }
        const double through = times(m, t, on.coefficients, z);
        scales[done] = t->armature / (1 + t->armature * through);
        which[done++] = i;
        /* the force -a gain, and the tendon's own inertia times the acceleration */
        const double push = scales[done - 1] * (times(m, t, on.coefficients, x) + gain);
        for (int32_t k = 0; k < dofs; k++) x[k] -= push * z[k];
    }
    return TB_OK;
}
