/* Merging certificates of several steps, for every backend. */
#ifndef TB_CERTIFICATE_H
#define TB_CERTIFICATE_H

#include "base/base.h"

/* Counts `more` faults, of which `other` is the worst. */
TB_FN void tb_fault_add(int32_t *faults, tb_fault *worst, int32_t more, tb_fault other)
{
    if (more > 0 && (*faults == 0 || other.amount > worst->amount)) *worst = other;
    *faults += more;
}

/* Worst errors, last time, sums of iterations. */
TB_FN void tb_certificate_add(tb_certificate *into, const tb_certificate *other)
{
    if (other->status == TB_DIVERGED || into->status == TB_OK) into->status = other->status;
    into->flags |= other->flags;
    into->step = other->step;
    into->time = other->time;
    into->residual = fmax(into->residual, other->residual);
    into->penetration = fmax(into->penetration, other->penetration);
    into->cone_error = fmax(into->cone_error, other->cone_error);
    into->complementarity_error = fmax(into->complementarity_error, other->complementarity_error);
    into->closure_error = fmax(into->closure_error, other->closure_error);
    into->energy = other->energy;
    into->energy_change += other->energy_change;
    into->energy_recovery += other->energy_recovery;
    into->energy_motors += other->energy_motors;
    into->energy_damping += other->energy_damping;
    into->energy_friction += other->energy_friction;
    into->energy_applied += other->energy_applied;
    into->energy_unexplained += other->energy_unexplained;
    into->energy_bound += other->energy_bound;
    into->contacts = other->contacts > into->contacts ? other->contacts : into->contacts;
    into->rows = other->rows > into->rows ? other->rows : into->rows;
    into->iterations += other->iterations;
    into->known_statuses += other->known_statuses;
    into->kept_statuses += other->kept_statuses;
    into->linear_solves += other->linear_solves;
    into->factorizations += other->factorizations;
    into->resets += other->resets;
    into->asleep = other->asleep > into->asleep ? other->asleep : into->asleep;
    if (other->faults > 0 &&
        (into->faults == 0 || other->worst_fault.amount > into->worst_fault.amount))
        into->worst_fault = other->worst_fault;
    into->faults = other->faults > into->faults ? other->faults : into->faults;
    for (size_t i = 0; i < sizeof into->solver; i++) into->solver[i] = other->solver[i];
}

#endif
