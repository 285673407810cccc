/* See choose.h. */
#include "choose.h"

#include <stdlib.h>
#include <string.h>

#include "solve/block_lu.h"
#include "solve/solve.h"

enum {
    /* Warps of a processor before more worlds share each, and the fewest lanes of a world. On an H200
     * jaw and mug in the hold make, M world-steps/s in float (double) by lanes a world: 1,024 worlds
     * 2.21 (2.08) by 8, 2.37 (2.23) by 16, 2.28 by 32; 8,192 worlds 3.15 by 1, 5.12 (4.59) by 2,
     * 6.91 (5.92) by 4, 7.31 (6.06) by 8, 5.71 by 16; 32,768 worlds 8.62 by 4. */
    WARPS_OF_MANY = 16,
    FEWEST_LANES = 4,
    /* Fewer worlds and steps end together: nobody gets ahead of anybody. */
    WORLDS_THAT_WAIT = 128,
    STEPS_THAT_WAIT = 4,
    /* Worlds a processor that each go alone: one for each of its schedulers. On an H200, double 1e-6,
     * k world-steps/s side by side and alone: humanoid whole 64 worlds 13.6 and 33.4, 264 45 and 106,
     * 528 74 and 141, hold 528 619 and 695, 1,024 942 and less than half of it; Shadow hand whole 132
     * 8.7 and 20.7; jaw and mug in float, hold 528 1,277 and 1,470. */
    ALONE = 4,
    /* Steps of a launch at most, where worlds wait or go alone: then it is looked again at what solves
     * take, and no kernel runs for long. What is left of worlds that have waited goes on in the next
     * one. */
    STEPS_OF_A_LAUNCH = 128,
    STEPS_OF_THE_FIRST = 8, /* where nothing is known */
    /* Of three solves two may have to wait: what stays behind goes on beside, and nobody else waits for
     * it. The first run of sweeps is never cut short. On an H200, k world-steps/s, with one of 32 that
     * may wait and so: humanoid whole 1,024 worlds 116 and 126, 8,192 226 and 238, Shadow hand whole
     * 1,024 42 and 58, six boxes whole 4,096 826 and 1,034; jaw and mug alike. */
    WAIT_OF = 2,
    ALL_OF = 3,
    LEAST_PATIENCE = 10,
    /* And nobody waits where long solves are less than an eighth of all that is done: what is begun
     * anew is lost, jaw and mug whole in float 8,192 worlds 2.81 with and 2.92 M without, 32,768 3.28
     * and 3.55. */
    LONG_OF = 8,
    /* warps of a processor that take solves which wait */
    TAKERS = 4,
    /* Bytes of shared memory for a world's factor: what is more the cache misses. On an H200, k
     * world-steps/s without and with: jaw and mug of 8 dofs, whole 8,192 in float 3,262 and 3,353; in
     * double the humanoid of 27, hold 1,024 966 and 908, the Shadow hand of 31, whole 1,024 49 and 37. */
    FAST_OF_A_WORLD = 2 << 10,
    /* Of staggered projections, whose factors are the squares of contacts, and all of their worlds have
     * it, whatever they need. On an H200 in double, 1,024 worlds, k world-steps/s with 0, 2, 4, 8 and 16
     * KiB: jaw and mug being lifted 784, 732, 734, 723, 567, six boxes 293, 276, 275, 260, 187. */
    FAST_OF_STAGGERED = 0
};

/* ---- from the environment ---- */

static int32_t setting(const char *name, int32_t usual, int32_t most)
{
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') return usual;
    const int number = atoi(text);
    return number < 0 ? 0 : number > most ? most : number;
}

tb_gpu_settings tb_gpu_settings_read(void)
{
    tb_gpu_settings s = {.patience = setting("TRIBO_GPU_PATIENCE", -1, INT32_MAX),
                         .takers = setting("TRIBO_GPU_TAKERS", 0, 1 << 16),
                         .alone = setting("TRIBO_GPU_ALONE", -1, INT32_MAX),
                         .fast = setting("TRIBO_GPU_FAST", FAST_OF_A_WORLD, INT32_MAX),
                         .fast_staggered =
                             setting("TRIBO_GPU_FAST_STAGGERED", FAST_OF_STAGGERED, 1 << 20)};
    const char *lanes = getenv("TRIBO_GPU_LANES");
    for (int part = 0; lanes != NULL && part < TB_GPU_PARTS; part++) {
        const char *next = strchr(lanes, ',');
        s.lanes[part] = atoi(lanes) < 0 ? 0 : atoi(lanes);
        if (next != NULL) lanes = next + 1;
    }
    return s;
}

/* ---- by size ---- */

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t lanes_of(int32_t wanted, int32_t processors, int32_t worlds)
{
    int32_t lanes = TB_GPU_BLOCK_THREADS;
    const int64_t most = (int64_t)processors * TB_GPU_BLOCK_THREADS * WARPS_OF_MANY;
    while (wanted > 0 ? lanes > wanted : lanes > FEWEST_LANES && (int64_t)lanes * worlds > most)
        lanes /= 2;
    return lanes;
}

void tb_gpu_choose_lanes(const tb_gpu_settings *settings, int32_t processors, tb_gpu_launch *launch)
{
    for (int part = 0; part < TB_GPU_PARTS; part++)
        launch->lanes[part] = lanes_of(settings->lanes[part], processors, launch->number_of_worlds);
}

void tb_gpu_choose_alone(const tb_gpu_settings *settings, int32_t processors, tb_gpu_launch *launch)
{
    const int32_t most = settings->alone >= 0 ? settings->alone : processors * ALONE;
    const int32_t worlds = launch->number_of_worlds;
    launch->alone =
        worlds <= most && launch->slots >= worlds && launch->solver != TB_SOLVER_NUMBER_staggered;
    if (launch->alone) launch->steps = least(launch->steps, STEPS_OF_A_LAUNCH);
}

void tb_gpu_choose_fast(const tb_gpu_settings *settings, int32_t dofs, size_t real,
                        tb_gpu_launch *launch)
{
    enum { UNIT = 16 }; /* to which every world's part is aligned */
    if (launch->solver == TB_SOLVER_NUMBER_staggered) {
        launch->fast = settings->fast_staggered / UNIT * UNIT;
        return;
    }
    const size_t bytes = (tb_block_lu_dense_bytes(dofs, real) + UNIT - 1) / UNIT * UNIT;
    const size_t most =
        settings->fast < TB_GPU_MOST_NEAR_BYTES ? (size_t)settings->fast : TB_GPU_MOST_NEAR_BYTES;
    launch->fast = bytes <= most ? (int32_t)bytes : 0;
}

/* ---- by what solves take ---- */

void tb_gpu_effort_add(tb_gpu_effort *effort, int32_t iterations)
{
    int k = 0;
    while (k < TB_GPU_EFFORTS - 1 && iterations >= 1 << k) k++;
    effort->counts[k]++;
    effort->solves++;
}

/* Iterations that not too many of the last solves went beyond, a power of two. */
static int32_t enough_for_others(const tb_gpu_effort *effort)
{
    int k = TB_GPU_EFFORTS - 1;
    for (int32_t beyond = 0; k > 0; k--) {
        beyond += effort->counts[k];
        if (ALL_OF * (int64_t)beyond > WAIT_OF * (int64_t)effort->solves) break;
    }
    return 1 << k;
}

/* Whether what long solves take is an eighth of all at least: those of about twice the patience and
 * more, since who waits is begun anew. */
static bool long_ones_count(const tb_gpu_effort *effort, int32_t patience)
{
    int64_t beyond = 0, all = 0;
    for (int k = 0; k < TB_GPU_EFFORTS; k++) {
        const int64_t work = (int64_t)effort->counts[k] << k; /* at most */
        all += work;
        if ((int64_t)1 << k >= 3 * (int64_t)patience) beyond += work;
    }
    return LONG_OF * beyond >= all;
}

/* Only `auto` gives up. */
void tb_gpu_choose_patience(const tb_gpu_settings *settings, int32_t processors,
                            const tb_gpu_effort *effort, tb_gpu_launch *launch)
{
    const int32_t worlds = launch->number_of_worlds;
    int32_t patience = settings->patience;
    launch->patience = launch->takers = 0;
    if (launch->solver != TB_SOLVER_NUMBER_auto || launch->alone || launch->slots < worlds ||
        launch->steps < STEPS_THAT_WAIT)
        return; /* slots: they come in turns */
    if (patience < 0 && worlds < WORLDS_THAT_WAIT) return;
    if (patience < 0 && effort->solves == 0) {
        launch->steps = least(launch->steps, STEPS_OF_THE_FIRST);
        return;
    }
    if (patience < 0) patience = enough_for_others(effort);
    if (patience == 0) return;
    if (settings->patience < 0 && patience < LEAST_PATIENCE) patience = LEAST_PATIENCE;
    launch->steps = least(launch->steps, STEPS_OF_A_LAUNCH);
    if (settings->patience < 0 && !long_ones_count(effort, patience)) return;
    launch->patience = patience;
    launch->takers = settings->takers > 0 ? settings->takers : processors * TAKERS;
    launch->takers = least(launch->takers, launch->slots);
}
