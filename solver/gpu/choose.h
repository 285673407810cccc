/* How the steps of a call are spread over a card: lanes of a world, groups of worlds, and which solves
 * wait for a second launch (steps.c). None of it can be seen in what the steps leave. */
#ifndef TB_GPU_CHOOSE_H
#define TB_GPU_CHOOSE_H

#include "groups.h"

/* What measurements choose themselves; 0 but for patience: it is chosen here. */
typedef struct tb_gpu_settings {
    int32_t lanes[TB_GPU_PARTS]; /* of a world */
    int32_t groups;              /* of a call's worlds */
    int32_t patience;            /* iterations of a solve that does not wait; 0: none waits */
} tb_gpu_settings;

/* Iterations of the last solves of a call's worlds. */
typedef struct tb_gpu_effort {
    int64_t most, sum;
} tb_gpu_effort;

/* From the environment: TRIBO_GPU_LANES, one number for all parts of a step or one for each;
 * TRIBO_GPU_GROUPS; TRIBO_GPU_PATIENCE. */
tb_gpu_settings tb_gpu_settings_read(void);

/* Lanes and patience of a launch whose worlds and solver are known. */
void tb_gpu_choose_lanes(const tb_gpu_settings *settings, int32_t processors,
                         tb_gpu_launch *launch);
/* How many groups the worlds of a launch go in, at least one and at most TB_GPU_GROUPS. */
int32_t tb_gpu_choose_groups(const tb_gpu_settings *settings, const tb_gpu_launch *launch,
                             const tb_gpu_effort *effort);

#endif
