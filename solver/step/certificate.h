/* Merging certificates of several steps, for every backend. */
#ifndef TB_CERTIFICATE_H
#define TB_CERTIFICATE_H

#include "base/base.h"

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
    into->contacts = other->contacts > into->contacts ? other->contacts : into->contacts;
    into->rows = other->rows > into->rows ? other->rows : into->rows;
    into->iterations += other->iterations;
    into->known_statuses += other->known_statuses;
    into->kept_statuses += other->kept_statuses;
    into->linear_solves += other->linear_solves;
    into->factorizations += other->factorizations;
    into->resets += other->resets;
    for (size_t i = 0; i < sizeof into->solver; i++) into->solver[i] = other->solver[i];
}

#endif
