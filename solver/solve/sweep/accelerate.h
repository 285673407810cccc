/* Anderson acceleration of a sweep: from the last few sweeps' changes, the combination of their
 * results whose changes cancel best (Anderson, J. ACM 12, 1965; type II of Fang and Saad, 2009).
 *
 * A sweep maps impulses x to g(x), and its change f = g(x) - x vanishes at the solution. Once the
 * set of open, sticking and sliding contacts has settled, g is smooth and close to linear, and the
 * combination is GMRES's; before that it may jump too far. So the combined impulses are
 * projected to their sets, and an accelerated step that increases the changes is undone. */
#ifndef TB_ACCELERATE_H
#define TB_ACCELERATE_H

#include "solve/sweep/sweep_internal.h"

enum { TB_ACCELERATION_DEPTH = 16 };

/* Each lane of a team has one; the lanes share the arrays behind its pointers and call these
 * functions together. */
#define tb_acceleration TB_SYMBOL(tb_acceleration)
typedef struct tb_acceleration {
    int32_t rows, depth, count, oldest; /* count: differences held, in a ring */
    tb_real *weight;                    /* rows: impulse to velocity units */
    tb_real *x, *g, *f;   /* rows: impulses before the last sweep, after it, weighted change */
    tb_real *dg, *df;     /* depth x rows: differences of g and f from sweep to sweep */
    double *gram, *along; /* depth x depth: df . df; depth: f . df */
    tb_real *safe;        /* rows: result of the sweep with the smallest change so far */
    double smallest;      /* that change, in velocity units */
    bool primed;          /* g and f hold a sweep */
    bool jumped;          /* x was an accelerated start */
    int32_t plain, pause; /* plain sweeps still to make, and after the next failure */
} tb_acceleration;

#define tb_accelerate_prepare TB_SYMBOL(tb_accelerate_prepare)
TB_EXTERN tb_status tb_accelerate_prepare(tb_acceleration *a, const tb_problem *problem,
                                          int32_t depth, tb_arena *scratch);

/* Forgets the past: after a roll-back, a new omega. */
#define tb_accelerate_restart TB_SYMBOL(tb_accelerate_restart)
TB_EXTERN void tb_accelerate_restart(tb_acceleration *a);

/* Before a sweep: notes where it starts. */
#define tb_accelerate_begin TB_SYMBOL(tb_accelerate_begin)
TB_EXTERN void tb_accelerate_begin(tb_acceleration *a, const tb_real *lambda);

/* After a sweep: replaces `lambda` (the sweep's result) by an accelerated start for the next. True
 * where it did, so that s must be summed afresh. */
#define tb_accelerate_step TB_SYMBOL(tb_accelerate_step)
TB_EXTERN bool tb_accelerate_step(tb_acceleration *a, const tb_problem *problem, tb_real *lambda);

#endif
