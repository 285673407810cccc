/* Length ranges of muscles, found by pulling them: asked for by importers, answered by the stepper. */
#ifndef TB_PULL_H
#define TB_PULL_H

#include "model/model.h"

/* How a muscle is pulled. */
typedef struct tb_pull_search {
    double acceleration;           /* norm of that of all dofs */
    double most_force;             /* norm of that on all dofs; 0: no bound */
    double time_constant;          /* s, in which velocities fade */
    double dt, duration, interval; /* s; a length counts in the last interval of the duration */
} tb_pull_search;

/* A joint (hinge or slide) or a tendon, the other one -1, and its lengths' factor. */
typedef struct tb_pull_target {
    int32_t joint, tendon;
    double gear;
} tb_pull_target;

/* From the described pose the muscle is pulled short, then long, by forces along its moments that accelerate
 * the dofs at a fixed rate, while velocities fade (MuJoCo's mj_setLengthRange). ends: its shortest and longest
 * length, m or rad; spreads: how much it still changes there. The model has to be without other forces.
 * RESOURCE_EXHAUSTED beyond 500 dofs or the thread's budget, INVALID_ARGUMENT for a singular mass matrix.
 *
 * It stands beside tb_step: a program that reads scenes and does not link the stepper, as the C client, has NULL
 * here. */
__attribute__((weak)) tb_status tb_pull_muscle(const tb_model *model, const tb_pull_search *how,
                                               const tb_pull_target *muscle, double ends[2],
                                               double spreads[2], tb_error *error);

#endif
