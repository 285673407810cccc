/* See choose.h. */
#include "gpu/batch/choose.h"

#include <stdlib.h>
#include <string.h>

#include "solve/newton/block_lu.h"
#include "solve/solve.h"

enum {
    /* Warps of a processor before more worlds share each, and the fewest lanes of a world. On an H200
     * jaw and mug in the hold make, M world-steps/s in float (double) by lanes a world: 1,024 worlds
     * 2.21 (2.08) by 8, 2.37 (2.23) by 16, 2.28 by 32; 8,192 worlds 3.15 by 1, 5.12 (4.59) by 2,
     * 6.91 (5.92) by 4, 7.31 (6.06) by 8, 5.71 by 16; 32,768 worlds 8.62 by 4. */
    WARPS_OF_MANY = 16,
    FEWEST_LANES = 4,
    /* Fewer worlds and steps end together: nobody gets ahead of anybody. */
    WORLDS_THAT_OVERLAP = 128,
    STEPS_THAT_OVERLAP = 4,
    /* Solves of so many iterations or more are long; and a call's are where such ones make a quarter of
     * all iterations. */
    LONG = 16,
    LONG_OF = 4,
    /* Worlds a processor that each go alone, and where solves are long. On an H200, k world-steps/s side
     * by side and alone: humanoid in double whole 264 worlds 95 and 101, 528 154 and 135, hold 528 619
     * and 695, 1,024 942 and less than half of it; jaw and mug in float, hold 528 1,277 and 1,470. */
    ALONE = 4,
    ALONE_OF_LONG = 2,
    /* Steps of a launch at most: where worlds go alone, so that no kernel runs for long; where nothing is
     * known; where solves are not long, so that it is looked again; where they are. What is left of worlds
     * that stay behind goes on in the next one. */
    STEPS_ALONE = 128,
    STEPS_OF_A_QUESTION = 32, /* where the caller is asked in between whether it still wants them */
    STEPS_OF_THE_FIRST = 32,
    STEPS_OF_A_LOOK = 128,
    STEPS_OF_A_LAUNCH = 512,
    /* Steps of all worlds of a launch in which warps keep their worlds: 20 ms at 20 M a second. */
    WORLD_STEPS_OF_A_WARP_LAUNCH = 3 << 17,
    /* Where small worlds have their own kernel: see choose.h. */
    WARP_IN_FLOAT = 1,
    WARP_IN_DOUBLE_TOO = 2,
    /* Blocks of solves that others do not wait for, so many for each processor where solves are long,
     * else one for so many processors, since the next kernels have need of their places. On an H200 with
     * 132 processors, k world-steps/s of whole ways, with none, 17, 33, 264 and 528: humanoid 1,024 worlds
     * -, -, -, 233 (with 8 queues to the card and not 32 169), -, 8,192 worlds -, -, 342, 354, 350; Shadow
     * hand 1,024 -, -, -, 64, -; six boxes 4,096 in float 593, 1,276, -, 1,592, -, in double 1,437, 2,052
     * with 8, 2,228, 2,217, -; jaw and mug 8,192 3,466, 3,741, 3,751, 3,523, 3,395. Where long solves
     * were given up and begun anew beside, the first two made 124 and 296, the hand 41. */
    OVERLAP_OF_LONG = 2,
    OVERLAP_OF_SHORT = 4,
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

/* A variable whose text is no number counts as absent. */
static int32_t setting(const char *name, int32_t usual, int32_t most)
{
    char *end = NULL;
    const char *text = getenv(name);
    if (text == NULL) return usual;
    const long number = strtol(text, &end, 10);
    if (end == text || *end != '\0') return usual;
    return number < 0 ? 0 : number > most ? most : (int32_t)number;
}

/* One number for all parts of a step or one for each; 0: chosen. */
static void read_lanes(int32_t lanes[TB_GPU_KERNELS])
{
    const char *text = getenv("TRIBO_GPU_LANES");
    for (int part = 0; text != NULL && part < TB_GPU_KERNELS; part++) {
        char *end = NULL;
        const long number = strtol(text, &end, 10);
        const bool is_number = end != text && (*end == ',' || *end == '\0');
        lanes[part] = is_number && number > 0 && number <= INT32_MAX ? (int32_t)number : 0;
        const char *next = strchr(text, ',');
        if (next != NULL) text = next + 1;
    }
}

tb_gpu_settings tb_gpu_settings_read(void)
{
    tb_gpu_settings s = {.overlap = setting("TRIBO_GPU_OVERLAP", -1, INT32_MAX),
                         .groups = setting("TRIBO_GPU_GROUPS", 0, TB_GPU_GROUPS),
                         .alone = setting("TRIBO_GPU_ALONE", -1, INT32_MAX),
                         .warp = setting("TRIBO_GPU_WARP", WARP_IN_FLOAT, WARP_IN_DOUBLE_TOO),
                         .fast = setting("TRIBO_GPU_FAST", FAST_OF_A_WORLD, INT32_MAX),
                         .fast_staggered =
                             setting("TRIBO_GPU_FAST_STAGGERED", FAST_OF_STAGGERED, 1 << 20)};
    read_lanes(s.lanes);
    return s;
}

/* ---- by size ---- */

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

int32_t tb_gpu_choose_steps(int32_t most, bool asked)
{
    return asked ? least(most, STEPS_OF_A_QUESTION) : most;
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
    for (int part = 0; part < TB_GPU_KERNELS; part++)
        launch->lanes[part] = lanes_of(settings->lanes[part], processors, launch->number_of_worlds);
}

void tb_gpu_effort_add(tb_gpu_effort *effort, int32_t iterations)
{
    effort->solves++;
    effort->iterations += iterations;
    if (iterations >= LONG) effort->of_long += iterations;
}

static bool is_long(const tb_gpu_effort *effort)
{
    return effort->of_long > 0 && LONG_OF * effort->of_long >= effort->iterations;
}

void tb_gpu_choose_alone(const tb_gpu_settings *settings, int32_t processors,
                         const tb_gpu_effort *effort, tb_gpu_launch *launch)
{
    const int32_t usual = processors * (is_long(effort) ? ALONE_OF_LONG : ALONE);
    const int32_t most = settings->alone >= 0 ? settings->alone : usual;
    const int32_t worlds = launch->number_of_worlds;
    launch->alone =
        worlds <= most && launch->slots >= worlds && launch->solver != TB_SOLVER_NUMBER_staggered;
    if (launch->alone) launch->steps = least(launch->steps, STEPS_ALONE);
}

void tb_gpu_choose_warp(tb_gpu_launch *launch)
{
    const int32_t steps = WORLD_STEPS_OF_A_WARP_LAUNCH / launch->number_of_worlds;
    launch->alone = TB_GPU_ALONE_BY_WARP;
    launch->overlap = 0;
    launch->groups = 1;
    launch->steps = least(launch->steps, least(steps > 0 ? steps : 1, STEPS_ALONE));
    for (int part = 0; part < TB_GPU_KERNELS; part++) launch->lanes[part] = TB_GPU_BLOCK_THREADS;
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

void tb_gpu_choose_overlap(const tb_gpu_settings *settings, int32_t processors,
                           const tb_gpu_effort *effort, tb_gpu_launch *launch)
{
    const int32_t worlds = launch->number_of_worlds, lanes = launch->lanes[TB_GPU_KERNEL_SOLVE];
    const int64_t lanes_at_once =
        (int64_t)processors * TB_GPU_BLOCKS_AT_ONCE * TB_GPU_BLOCK_THREADS;
    launch->overlap = 0;
    launch->groups = 1;
    if (launch->alone || launch->slots < worlds || launch->steps < STEPS_THAT_OVERLAP)
        return; /* slots: they come in turns */
    if (settings->overlap == 0 || (settings->overlap < 0 && worlds < WORLDS_THAT_OVERLAP)) return;
    const bool known = effort->solves > 0, none = known && effort->of_long == 0;
    launch->steps = least(launch->steps, is_long(effort) ? STEPS_OF_A_LAUNCH
                                         : known         ? STEPS_OF_A_LOOK
                                                         : STEPS_OF_THE_FIRST);
    if (settings->overlap < 0 && none) return; /* no solve was long: nobody is left behind */
    launch->overlap = is_long(effort) ? processors * OVERLAP_OF_LONG
                                      : (processors + OVERLAP_OF_SHORT - 1) / OVERLAP_OF_SHORT;
    if (settings->overlap > 0) launch->overlap = settings->overlap;
    launch->groups = (int64_t)worlds * lanes > lanes_at_once ? TB_GPU_GROUPS : 1;
    if (settings->groups > 0) launch->groups = settings->groups;
    if (launch->groups * TB_GPU_BLOCK_THREADS > worlds) launch->groups = 1;
}
