/* Control of an iteration of sweeps: when the residual is checked, and whether the sweeps diverge or
 * stagnate. One world of a batch (iterate.c) and a large world (coloured_iterate.h) share it.
 *
 * The changes of a sweep follow the residual up to a factor, which every check learns anew. The next
 * check comes when the estimate passes the tolerance, or after half as many sweeps more. The control
 * holds numbers alone: the caller computes residuals and copies impulses. */
#ifndef TB_SWEEP_CONTROL_H
#define TB_SWEEP_CONTROL_H

#include "base/real.h"

#include <float.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    TB_SWEEPS_OF_DIVERGENCE = 6,   /* in a row with growing changes */
    TB_SWEEPS_OF_STAGNATION = 200, /* and as many again as led to the best residual */
    TB_SWEEPS_TO_REFRESH = 64,     /* s is summed afresh: it gathers rounding */
    TB_SWEEPS_BETWEEN_CHECKS = 8   /* at least */
};
/* times the smallest change seen */
#define TB_GROWTH_OF_DIVERGENCE 100.0
/* Below it, a residual that does not fall is slow and not in a cycle: many problems pause for
 * thousands of sweeps and then go on. */
#define TB_RESIDUAL_OF_STAGNATION 1e-3

typedef struct tb_sweep_control {
    double ratio;          /* residual over estimate, learnt */
    double smallest, last; /* estimates */
    double best_residual;  /* of the impulses that the caller holds as the best */
    int32_t growths, next_check;
    int32_t best_sweep; /* sweep of the best residual, or of the last halving of omega */
    bool has_best;
} tb_sweep_control;

TB_FN void tb_sweep_control_begin(tb_sweep_control *control, int32_t first_check)
{
    control->ratio = 1;
    control->smallest = control->last = control->best_residual = DBL_MAX;
    control->growths = 0;
    control->next_check = first_check;
    control->best_sweep = 0;
    control->has_best = false;
}

/* Learns from a check after `sweeps` sweeps, and sets the next one. natural: the residual that belongs
 * to the estimate. */
TB_FN void tb_sweep_control_checked(tb_sweep_control *control, double natural, double estimate,
                                    int32_t sweeps)
{
    const int32_t least = TB_SWEEPS_BETWEEN_CHECKS;
    if (estimate > 0) control->ratio = natural / estimate;
    const int32_t gap = sweeps / 2 > least ? sweeps / 2 : least;
    control->next_check = sweeps <= INT32_MAX - gap ? sweeps + gap : INT32_MAX;
}

/* Whether a checked residual is the best so far, which the control then holds. */
TB_FN bool tb_sweep_control_is_best(tb_sweep_control *control, double residual, int32_t sweeps)
{
    if (!(residual < control->best_residual)) return false;
    control->best_residual = residual;
    control->best_sweep = sweeps;
    control->has_best = true;
    return true;
}

/* Whether the changes of sweeps grow without bound. jumped: an acceleration moved the start. */
TB_FN bool tb_sweep_control_diverges(tb_sweep_control *control, double estimate, bool jumped)
{
    if (!(estimate <= DBL_MAX)) return true;
    control->growths = estimate > control->last && !jumped ? control->growths + 1 : 0;
    control->last = estimate;
    if (estimate < control->smallest) control->smallest = estimate;
    return control->growths >= TB_SWEEPS_OF_DIVERGENCE &&
           estimate > TB_GROWTH_OF_DIVERGENCE * control->smallest;
}

/* Whether the best residual is old and large, as it is in a cycle of too large an omega. */
TB_FN bool tb_sweep_control_stagnates(const tb_sweep_control *control, int32_t sweeps)
{
    return control->best_residual > TB_RESIDUAL_OF_STAGNATION &&
           sweeps - control->best_sweep > control->best_sweep + TB_SWEEPS_OF_STAGNATION;
}

/* After a return to the best impulses with half the omega. */
TB_FN void tb_sweep_control_rolled_back(tb_sweep_control *control)
{
    control->growths = 0;
    control->smallest = control->last = DBL_MAX;
}

#endif
