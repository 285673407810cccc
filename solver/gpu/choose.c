/* See choose.h. */
#include "choose.h"

#include <stdlib.h>
#include <string.h>

#include "solve/solve.h"

enum {
    /* Warps of a processor before more worlds share each, and the fewest lanes of a world. On an H200
     * jaw and mug in the hold make, M world-steps/s in float (double) by lanes a world: 1,024 worlds
     * 2.21 (2.08) by 8, 2.37 (2.23) by 16, 2.28 by 32; 8,192 worlds 3.15 by 1, 5.12 (4.59) by 2,
     * 6.91 (5.92) by 4, 7.31 (6.06) by 8, 5.71 by 16; 32,768 worlds 8.62 by 4. */
    WARPS_OF_MANY = 16,
    FEWEST_LANES = 4,
    /* None waits: of the steps of jaw and mug only 0.4 % take more than 30 iterations, 4 % while the
     * jaw closes, and what waiting gains or costs has not been measured. */
    USUAL_PATIENCE = 0,
    /* Warps of a processor that take solves which wait. */
    TAKERS = 8,
    /* Worlds go in groups where a solve took so many times the mean, and so many are left for each;
     * in fewer steps they do not come apart. */
    UNEVEN = 4,
    STEPS_OF_GROUPS = 4,
    WORLDS_OF_GROUP = 128
};

/* ---- from the environment ---- */

static int32_t setting(const char *name, int32_t usual, int32_t most)
{
    const char *text = getenv(name);
    const int number = text != NULL && *text != '\0' ? atoi(text) : usual;
    return number < 0 ? 0 : number > most ? most : number;
}

tb_gpu_settings tb_gpu_settings_read(void)
{
    tb_gpu_settings s = {.groups = setting("TRIBO_GPU_GROUPS", 0, TB_GPU_GROUPS),
                         .patience = setting("TRIBO_GPU_PATIENCE", USUAL_PATIENCE, INT32_MAX)};
    const char *lanes = getenv("TRIBO_GPU_LANES");
    for (int part = 0; lanes != NULL && part < TB_GPU_PARTS; part++) {
        const char *next = strchr(lanes, ',');
        s.lanes[part] = atoi(lanes) < 0 ? 0 : atoi(lanes);
        if (next != NULL) lanes = next + 1;
    }
    return s;
}

/* ---- by size ---- */

static int32_t lanes_of(int32_t wanted, int32_t processors, int32_t worlds)
{
    int32_t lanes = TB_GPU_BLOCK_THREADS;
    const int64_t most = (int64_t)processors * TB_GPU_BLOCK_THREADS * WARPS_OF_MANY;
    while (wanted > 0 ? lanes > wanted : lanes > FEWEST_LANES && (int64_t)lanes * worlds > most)
        lanes /= 2;
    return lanes;
}

/* Solves wait for more lanes than they have, and only `auto` gives up. */
void tb_gpu_choose_lanes(const tb_gpu_settings *settings, int32_t processors, tb_gpu_launch *launch)
{
    for (int part = 0; part < TB_GPU_PARTS; part++)
        launch->lanes[part] = lanes_of(settings->lanes[part], processors, launch->number_of_worlds);
    const bool waits = launch->solver == TB_SOLVER_NUMBER_auto &&
                       launch->lanes[TB_GPU_PART_SOLVE] < TB_GPU_BLOCK_THREADS;
    launch->patience = waits ? settings->patience : 0;
    launch->takers = launch->patience > 0 ? processors * TAKERS : 0;
}

int32_t tb_gpu_choose_groups(const tb_gpu_settings *settings, const tb_gpu_launch *launch,
                             const tb_gpu_effort *effort)
{
    const int32_t worlds = launch->number_of_worlds;
    int32_t groups = settings->groups;
    if (launch->slots < worlds) return 1; /* they come in turns */
    if (groups == 0 && (launch->steps < STEPS_OF_GROUPS ||
                        effort->most * worlds <= UNEVEN * (effort->sum + worlds)))
        return 1;
    if (groups == 0) groups = worlds / WORLDS_OF_GROUP;
    if (groups > TB_GPU_GROUPS) groups = TB_GPU_GROUPS;
    if (groups > worlds) groups = worlds;
    return groups < 1 ? 1 : groups;
}
