/* See choose.h. */
#include "gpu/batch/choose.h"

#include "gpu/device/side_streams.h"
#include "solve/newton/block_lu.h"
#include "solve/solve.h"

/* Measurements behind these numbers: tests/bench/gpu/results/README.md, "Settings of a batch". */
enum {
    /* Warps of a processor before several worlds share each warp, and the fewest lanes of a world. */
    WARPS_OF_MANY = 16,
    FEWEST_LANES = 4,
    /* Fewest worlds and steps of a launch whose solves overlap. Smaller launches end together, so an
     * overlap gains nothing. */
    WORLDS_THAT_OVERLAP = 128,
    STEPS_THAT_OVERLAP = 4,
    /* A solve with at least LONG iterations is long. A call's solves count as long if long solves
     * make at least one in LONG_OF of all iterations. */
    LONG = 16,
    LONG_OF = 4,
    /* Most worlds of a processor that go alone, each through all its steps in one kernel; and where
     * solves are long. */
    ALONE = 4,
    ALONE_OF_LONG = 2,
    /* Most steps of a launch. Worlds that stay behind go on in the next launch. */
    STEPS_ALONE =
        128, /* of worlds that go alone or by warps; a clock may end it before (launch_time.h) */
    STEPS_OF_A_QUESTION = 32, /* where the caller is asked in between whether to go on */
    STEPS_THAT_STOP = 64,     /* where the caller is asked meanwhile (tb_gpu_launch.stop) */
    STEPS_OF_THE_FIRST = 32,  /* where the effort of the worlds' solves is unknown */
    STEPS_OF_A_LOOK = 128,    /* where solves are short: they may become long */
    STEPS_OF_A_LAUNCH = 512,  /* where solves are long */
    /* Blocks of solves that other worlds do not wait for: OVERLAP_OF_LONG for each processor where
     * solves are long, else one for OVERLAP_OF_SHORT processors, since the next kernels need the
     * remaining processors. */
    OVERLAP_OF_LONG = 2,
    OVERLAP_OF_SHORT = 4,
    /* Bytes of shared memory for a world's factor. More shared memory takes too much from the cache. */
    FAST_OF_A_WORLD = 2 << 10
};

_Static_assert(sizeof((tb_backend_schedule *)0)->lanes / sizeof(int32_t) == TB_GPU_KERNELS,
               "a number of lanes for each part of a step");
/* ---- fixed ---- */

static tb_backend_schedule fixed_schedule = {.alone = -1, .overlap = -1};

tb_backend_schedule tb_gpu_fixed_schedule(void)
{
    return fixed_schedule;
}

void tb_gpu_fix_schedule(const tb_backend_schedule *schedule)
{
    fixed_schedule = *schedule;
}

/* ---- by size ---- */

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

int32_t tb_gpu_choose_steps(int32_t most, bool asked, bool stops)
{
    return asked ? least(most, stops ? STEPS_THAT_STOP : STEPS_OF_A_QUESTION) : most;
}

static int32_t lanes_of(int32_t wanted, int32_t processors, int32_t worlds)
{
    int32_t lanes = TB_GPU_BLOCK_THREADS;
    const int64_t most = (int64_t)processors * TB_GPU_BLOCK_THREADS * WARPS_OF_MANY;
    while (wanted > 0 ? lanes > wanted : lanes > FEWEST_LANES && (int64_t)lanes * worlds > most)
        lanes /= 2;
    return lanes;
}

void tb_gpu_choose_lanes(const tb_backend_schedule *fixed, int32_t processors,
                         tb_gpu_launch *launch)
{
    for (int part = 0; part < TB_GPU_KERNELS; part++)
        launch->lanes[part] = lanes_of(fixed->lanes[part], processors, launch->number_of_worlds);
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

void tb_gpu_choose_wide(int32_t least_dofs, bool single, tb_gpu_launch *launch)
{
    launch->wide =
        single && launch->solver == TB_SOLVER_NUMBER_auto && least_dofs <= TB_GPU_WIDE_DOFS;
}

void tb_gpu_choose_alone(const tb_backend_schedule *fixed, int32_t processors,
                         const tb_gpu_effort *effort, tb_gpu_launch *launch)
{
    const int32_t usual = processors * (is_long(effort) ? ALONE_OF_LONG : ALONE);
    const int32_t most = fixed->alone >= 0 ? fixed->alone : usual;
    const int32_t worlds = launch->number_of_worlds;
    launch->alone = worlds <= most && launch->slots >= worlds && !launch->wide &&
                    launch->solver != TB_SOLVER_NUMBER_staggered;
    if (launch->alone) launch->steps = least(launch->steps, STEPS_ALONE);
}

bool tb_gpu_is_by_warps(const tb_gpu_launch *launch)
{
    return launch->alone == TB_GPU_ALONE_BY_WARP || launch->alone == TB_GPU_ALONE_BY_PILE;
}

void tb_gpu_choose_warp(bool pile, tb_gpu_launch *launch)
{
    launch->alone = pile ? TB_GPU_ALONE_BY_PILE : TB_GPU_ALONE_BY_WARP;
    launch->overlap = 0;
    launch->steps = least(launch->steps, STEPS_ALONE);
    launch->groups = 1;
    for (int part = 0; part < TB_GPU_KERNELS; part++) launch->lanes[part] = TB_GPU_BLOCK_THREADS;
}

void tb_gpu_choose_fast(int32_t dofs, size_t real, tb_gpu_launch *launch)
{
    enum { UNIT = 16 }; /* to which every world's part is aligned */
    const size_t bytes = (tb_block_lu_dense_bytes(dofs, real) + UNIT - 1) / UNIT * UNIT;
    const bool fits = bytes <= FAST_OF_A_WORLD && launch->solver != TB_SOLVER_NUMBER_staggered;
    launch->fast = fits ? (int32_t)bytes : 0;
}

void tb_gpu_choose_overlap(const tb_backend_schedule *fixed, int32_t processors,
                           const tb_gpu_effort *effort, tb_gpu_launch *launch)
{
    const int32_t worlds = launch->number_of_worlds, lanes = launch->lanes[TB_GPU_KERNEL_SOLVE];
    const int64_t lanes_at_once =
        (int64_t)processors * TB_GPU_BLOCKS_AT_ONCE * TB_GPU_BLOCK_THREADS;
    launch->overlap = 0;
    launch->groups = 1;
    if (launch->alone || launch->slots < worlds || launch->steps < STEPS_THAT_OVERLAP)
        return; /* slots: they come in turns */
    if (fixed->overlap == 0 || (fixed->overlap < 0 && worlds < WORLDS_THAT_OVERLAP)) return;
    const bool known = effort->solves > 0, none = known && effort->of_long == 0;
    launch->steps = least(launch->steps, is_long(effort) ? STEPS_OF_A_LAUNCH
                                         : known         ? STEPS_OF_A_LOOK
                                                         : STEPS_OF_THE_FIRST);
    if (fixed->overlap < 0 && none) return; /* no solve was long: all worlds end together */
    launch->overlap = is_long(effort) ? processors * OVERLAP_OF_LONG
                                      : (processors + OVERLAP_OF_SHORT - 1) / OVERLAP_OF_SHORT;
    if (fixed->overlap > 0) launch->overlap = fixed->overlap;
    launch->groups = (int64_t)worlds * lanes > lanes_at_once ? TB_GPU_GROUPS : 1;
    if (launch->groups * TB_GPU_BLOCK_THREADS > worlds) launch->groups = 1;
}
