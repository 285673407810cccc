/* How the steps of a call are spread over a card: lanes of a world, worlds that go alone, steps of a
 * launch, and the number of solves that other worlds do not wait for (steps.c). None of these choices
 * changes a result. */
#ifndef TB_GPU_CHOOSE_H
#define TB_GPU_CHOOSE_H

#include "backend/backend.h"
#include "gpu/device/gpu_internal.h"

/* Effort of the last solves of a call's worlds. */
typedef struct tb_gpu_effort {
    int64_t solves, iterations, of_long; /* of_long: iterations of long solves */
} tb_gpu_effort;

/* The schedule that a test or a benchmark has fixed (backend.h), and the way to fix it. What is not fixed
 * in it, the functions below choose. */
tb_backend_schedule tb_gpu_fixed_schedule(void);
void tb_gpu_fix_schedule(const tb_backend_schedule *schedule);

/* Adds the last solve of a world that has made a step. */
void tb_gpu_effort_add(tb_gpu_effort *effort, int32_t iterations);

/* Steps of a launch: `most`, or fewer if the caller is `asked` whether to continue; `stops`: the launch
 * can end early. */
int32_t tb_gpu_choose_steps(int32_t most, bool asked, bool stops);
/* Lanes of a launch whose number of worlds is known. */
void tb_gpu_choose_lanes(const tb_backend_schedule *fixed, int32_t processors,
                         tb_gpu_launch *launch);
/* Whether the solves of a launch go to the kernel of wide worlds first: those in float of the solver
 * `auto`, where the smallest model has so many dofs. Whether a world fits there, the kernel sees. */
void tb_gpu_choose_wide(int32_t least_dofs, bool single, tb_gpu_launch *launch);
/* Whether the worlds of a launch go alone, whose number, slots, solver and steps are known; then its
 * steps are no more than one kernel should take. Wide worlds do not, so that their solves are those of
 * any other number of worlds. */
void tb_gpu_choose_alone(const tb_backend_schedule *fixed, int32_t processors,
                         const tb_gpu_effort *effort, tb_gpu_launch *launch);
/* The same where all worlds fit the kernel of small worlds, or all that of piles. */
void tb_gpu_choose_warp(bool pile, tb_gpu_launch *launch);
/* Whether a launch goes by one of these kernels. */
bool tb_gpu_is_by_warps(const tb_gpu_launch *launch);
/* Fast memory of a launch with a known solver, for `dofs` of the largest world, in numbers of
 * `real` bytes. The factors of staggered projections are squares of the number of contacts, too
 * large for it: that solver gets none. */
void tb_gpu_choose_fast(int32_t dofs, size_t real, tb_gpu_launch *launch);
/* Overlap, groups and, where solves overlap, steps of a launch whose worlds, lanes, slots and steps are
 * known. */
void tb_gpu_choose_overlap(const tb_backend_schedule *fixed, int32_t processors,
                           const tb_gpu_effort *effort, tb_gpu_launch *launch);

#endif
