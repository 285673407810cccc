/* Steps of Newton's from the statuses of a wide world's start, as solve/newton/newton_sets.c makes them: from
 * one step of time to the next few contacts and joints change theirs.
 *
 * The first step has slopes and impulses of the statuses that the start's impulses have, later ones those of
 * their projections. Nothing shortens a step. When statuses have settled, p moves and they stay. Where that
 * lowers the residual no more, impulses of redundant contacts creep, and rounds go on. */
#ifndef TB_GPU_WIDE_STATUSES_H
#define TB_GPU_WIDE_STATUSES_H

#include "gpu/batch/wide/wide_solve.h"

/* Epsilon of these steps, the most of them, and of those in a row that are no better than one before. */
static const tb_real WIDE_STATUS_EPSILON = TB_R(1e-3);
enum { WIDE_STATUS_STEPS = 8, WIDE_PATIENCE = 2 };
/* Statuses have settled where the merit, over the norm of c, is at most this share of the tolerance. */
static const double WIDE_SETTLED = 0.1;

/* Statuses of the iterate, and the slopes that they have there. */
TB_STATIC void wide_assume_statuses(wide_solve *w, tb_real epsilon)
{
    wide_memory *m = wide_memory_of(w);
    TB_EACH (item, w->items) {
        wide_own o = wide_item_of(m, item);
        wide_take_rows(&o, m->lambda, o.lambda);
        m->status[item] = (uint8_t)wide_status_of(&o, o.lambda);
    }
    (void)wide_look(w, epsilon, WIDE_ASSUMED, 0);
    tb_team_sync();
}

/* From a start that was judged. CONTRACTED: rounds go on from the iterate. FAILED: it is no better than the
 * start.
 *
 * An answer before the last step counts only when it has settled: dry friction of light joints has impulses that a
 * residual within the tolerance does not see, and answers that have not settled let such joints creep. */
TB_CALLED wide_end wide_step_from_statuses(wide_solve *w, wide_progress *now)
{
    wide_memory *m = wide_memory_of(w);
    double best = now->start, settled = DBL_MAX;
    int idle = 0;
    now->epsilon = WIDE_STATUS_EPSILON;
    wide_assume_statuses(w, now->epsilon);
    TB_ROLLED
    for (int k = 0; k < WIDE_STATUS_STEPS && idle <= WIDE_PATIENCE; k++) {
        now->steps++;
        wide_solve_system(w);
        const double merit = wide_look(w, now->epsilon, WIDE_STEP, 1);
        tb_team_sync();
        now->residual = wide_residual_of(w, m->lambda, 1);
        const bool judged = now->residual <= WIDE_NEAR * w->tolerance;
        const bool settles = merit * w->inverse_norm <= WIDE_SETTLED * w->tolerance;
        if (judged) now->residual = wide_judge(w);
        if (settles && now->residual <= w->tolerance) return WIDE_SOLVED;
        if (settles && now->residual < now->start && now->residual > WIDE_STALLED * settled) break;
        idle = now->residual < best ? 0 : idle + 1;
        best = fmin(best, now->residual);
        if (settles) settled = now->residual;
        if (!judged && !settles) continue;
        wide_find_velocities(w, m->lambda);
        (void)wide_look(w, now->epsilon, judged ? WIDE_AT_START : WIDE_ASSUMED, 0);
        tb_team_sync();
    }
    now->summed = DBL_MAX; /* x has followed leaps, or is the answer's */
    if (now->residual <= w->tolerance) now->residual = wide_judge(w);
    if (now->residual <= w->tolerance) return WIDE_SOLVED;
    return now->residual < now->start ? WIDE_CONTRACTED : WIDE_FAILED;
}

#endif
