/* One part of the step on a card: what step_begin.cu, step_detect.cu, step_solve.cu,
 * step_staggered.cu and step_end.cu make a kernel of, or (step_alone.cu) all of them, each as double
 * and with TB_SINGLE as float.
 *
 * A block is one warp of one team or several (base/team.h). Whatever a world does is done by its own
 * team with its own memory, in an order that does not depend on how many lanes there are, so its
 * bytes cannot depend on its neighbours, its place in the batch or the size of the launch. */
#include "gpu/batch/stages.h"

#include "gpu/batch/physics.h"

#include "gpu/device/gpu_internal.h"
#include "step/certificate.h"

/* Where a world stands between kernels: before this part of a step, or in its solve, or where a status
 * has left it. A solve may outlast the kernels that come after its own; while it goes on the world is
 * its alone. */
enum { STAGE_IN_SOLVE = TB_GPU_KERNELS, STAGE_ENDED };

/* At the beginning of a world's memory: what the next part goes on from. */
typedef struct saved_step {
    tb_stepping stepping;
    tb_arena arena;
    int32_t stage;
    int32_t kind, rank; /* of its solve, and which of that kind it is */
} saved_step;

enum {
    FIRST_BYTES = 4096, /* of a world's memory behind that: the arrays of the motion, about */
    SAVED_STEP_BYTES =
        (sizeof(saved_step) + TB_ARENA_ALIGNMENT - 1) / TB_ARENA_ALIGNMENT * TB_ARENA_ALIGNMENT
};

/* Data of the step of one world, in the memory that a block shares. All lanes read it all the time; in
 * global memory the lanes' own numbers would push it out of the cache. */
typedef struct shared_step {
#ifdef TB_UNIT_WARP
    warp_keep keep;
#else
    tb_stepping stepping;
#endif
    tb_workspace workspace;
} shared_step;

enum {
    SHARED_STEP_BYTES =
        (sizeof(shared_step) + TB_ARENA_ALIGNMENT - 1) / TB_ARENA_ALIGNMENT * TB_ARENA_ALIGNMENT
};

/* A team's part of that memory: what is at hand, and behind it what the launch gives for a factor. */
TB_STATIC unsigned char *shared_memory_of_team(size_t *bytes)
{
    extern __shared__ __align__(TB_ARENA_ALIGNMENT) unsigned char near[];
    unsigned all;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(all));
    *bytes = all / blockDim.y;
    return near + threadIdx.y * *bytes;
}

TB_STATIC shared_step *shared_step_of_team(void)
{
    size_t bytes;
    return (shared_step *)shared_memory_of_team(&bytes);
}

static __device__ void *tb_team_fast(size_t *bytes)
{
    unsigned char *own = shared_memory_of_team(bytes);
    *bytes -= SHARED_STEP_BYTES;
    return *bytes > 0 ? own + SHARED_STEP_BYTES : NULL;
}

TB_STATIC saved_step *saved_step_of(const tb_gpu_launch *launch, int32_t slot)
{
    return (saved_step *)(launch->arenas + (size_t)slot * launch->arena_size);
}

/* Whether there is a world, and room for what it leaves between parts. */
TB_STATIC bool is_slot(const tb_gpu_launch *launch, int32_t slot)
{
    return slot < launch->slots && launch->first + slot < launch->number_of_worlds &&
           launch->arena_size >= SAVED_STEP_BYTES;
}

#if KERNEL < 4
/* Whether a world stands before this part, the same for all lanes; a launch of solves takes it, so that
 * no other has it. What a solve has left is seen from then on. */
TB_STATIC bool is_before_kernel(saved_step *saved)
{
    int32_t stage = KERNEL;
    if (TB_LEADER)
        stage = KERNEL == TB_GPU_KERNEL_SOLVE
                    ? atomicCAS(&saved->stage, KERNEL, (int32_t)STAGE_IN_SOLVE)
                    : __ldcg(&saved->stage);
    tb_team_share(&stage, sizeof stage);
    if (KERNEL == TB_GPU_KERNEL_END && stage == KERNEL) __threadfence();
    return stage == KERNEL;
}

/* Says where a world stands after this part; from then on another launch may take it up. */
TB_STATIC void store_stage(saved_step *saved, tb_status status)
{
    const int32_t stage = status == TB_OK ? (KERNEL + 1) % TB_GPU_KERNELS : (int32_t)STAGE_ENDED;
    if (KERNEL != TB_GPU_KERNEL_SOLVE) {
        saved->stage = stage;
    } else {
        __threadfence();
        atomicExch(&saved->stage, stage);
    }
}
#endif

/* Both blocks of contacts are the world's own; those that it came with are only read. So after each
 * step the block that was not just written is the next one to write. */
TB_STATIC void choose_next(tb_gpu_world *world)
{
    tb_state *state = &world->state;
    state->next_contacts =
        state->contacts == world->contacts[0] ? world->contacts[1] : world->contacts[0];
    state->next_capacity = world->contact_capacity;
    state->next_wanted = 0;
}

/* A capacity ended the step, and the host gives more; or it was the world's last. */
TB_STATIC void end_world(const tb_gpu_launch *launch, tb_gpu_world *world, tb_status status,
                         size_t peak, const tb_certificate *certificate)
{
    world->status = status;
    if (status == TB_RESOURCE_EXHAUSTED) {
        world->contacts_needed = world->state.next_wanted;
        if (peak + SAVED_STEP_BYTES > launch->arena_size)
            world->arena_needed = peak + SAVED_STEP_BYTES;
        return;
    }
    tb_certificate_add(&world->merged, certificate);
    world->steps_left = 0;
}

/* Step of the world's course that is made. */
TB_STATIC int32_t step_of_course(const tb_gpu_world *world)
{
    return world->course.steps - world->steps_left;
}

#if KERNEL == 0 || KERNEL == 4
#ifndef TB_UNIT_WARP
TB_STATIC void load_step(const tb_gpu_launch *launch, tb_gpu_world *world, saved_step *saved,
                         shared_step *shared)
{
    if (TB_LEADER) {
        tb_arena_over(&shared->workspace.arena, (unsigned char *)saved + SAVED_STEP_BYTES,
                      launch->arena_size - SAVED_STEP_BYTES);
        shared->workspace.threads = 1;
        shared->workspace.solver = launch->solver;
        choose_next(world);
    }
    tb_team_sync();
}

/* Applies the course's inputs, then begins the world's step in the same memory. */
TB_STATIC tb_status begin(shared_step *shared, const tb_gpu_launch *launch, tb_gpu_world *world,
                          tb_certificate *certificate)
{
    tb_workspace *workspace = &shared->workspace;
    if (world->course.steps > 0) {
        const tb_status status = tb_course_apply_inputs(&world->state, &world->course,
                                                        step_of_course(world), &workspace->arena);
        if (status != TB_OK) return status;
    }
    return tb_step_begin(&shared->stepping, &world->state, &launch->options, workspace, certificate,
                         NULL);
}
#endif
#else
TB_STATIC void load_step(const tb_gpu_launch *launch, const saved_step *saved, shared_step *shared)
{
    tb_team_copy(&shared->stepping, &saved->stepping, sizeof shared->stepping);
    tb_team_copy(&shared->workspace.arena, &saved->arena, sizeof shared->workspace.arena);
    tb_team_sync();
    const size_t used = shared->workspace.arena.used;
    tb_team_fetch((const unsigned char *)saved + SAVED_STEP_BYTES,
                  used < FIRST_BYTES ? used : (size_t)FIRST_BYTES);
    if (TB_LEADER) {
        shared->stepping.world.arena = &shared->workspace.arena;
        shared->stepping.world.options = &launch->options;
    }
    tb_team_sync();
}
#endif

#if KERNEL < 3
TB_STATIC void save_step(saved_step *saved, const shared_step *shared)
{
    tb_team_sync();
    tb_team_copy(&saved->stepping, &shared->stepping, sizeof saved->stepping);
    tb_team_copy(&saved->arena, &shared->workspace.arena, sizeof saved->arena);
}
#endif

#if KERNEL == 4
/* A step that has ended. */
TB_STATIC void end_step(const tb_gpu_launch *launch, tb_gpu_world *world, tb_status status,
                        size_t peak, const tb_certificate *certificate)
{
    if (world->course.steps > 0 && (status == TB_DIVERGED || status == TB_OK))
        tb_course_record_outputs(&world->state, &world->course, step_of_course(world), certificate);
    tb_team_sync(); /* all have read what is written below */
    if (TB_LEADER && status != TB_OK) end_world(launch, world, status, peak, certificate);
    if (TB_LEADER && status == TB_OK) {
        tb_certificate_add(&world->merged, certificate);
        world->steps_left--;
    }
    tb_team_sync();
}

#ifdef TB_UNIT_WARP
#include "gpu/batch/small/warp_kernel.h"
#else
/* All steps of a world, whatever the others do. */
TB_STATIC void go_alone(const tb_gpu_launch *launch, tb_gpu_world *world, saved_step *saved)
{
    shared_step *shared = shared_step_of_team();
    if (TB_LEADER) {
        world->status = TB_OK;
        world->contacts_needed = 0;
        world->arena_needed = 0;
    }
    tb_team_sync();
    for (int32_t left = launch->steps; left > 0 && world->steps_left > 0 && world->status == TB_OK;
         left--) {
        tb_certificate certificate;
        TB_STAGES_BEGIN();
        load_step(launch, world, saved, shared);
        tb_status status = begin(shared, launch, world, &certificate);
        if (status == TB_OK) status = tb_step_detect(&shared->stepping, &certificate, NULL);
        if (status == TB_OK) status = tb_step_solve(&shared->stepping, NULL);
        if (status == TB_OK) status = tb_step_end(&shared->stepping, &certificate, NULL);
        end_step(launch, world, status, shared->workspace.arena.peak, &certificate);
    }
}
#endif

TB_STATIC void step_slot(const tb_gpu_launch *launch, int32_t slot)
{
#ifdef TB_UNIT_WARP
    go_by_warp(launch, slot);
#else
    go_alone(launch, &launch->worlds[launch->first + slot], saved_step_of(launch, slot));
#endif
}
#else
/* Does this part's work where a world stands before it. */
TB_STATIC void run_kernel(const tb_gpu_launch *launch, tb_gpu_world *world, saved_step *saved)
{
    shared_step *shared = shared_step_of_team();
    tb_certificate certificate;
    tb_status status;
    TB_STAGES_BEGIN();
#if KERNEL == 0 /* begin */
    if (launch->step == 0 && TB_LEADER) {
        world->status = TB_OK;
        world->contacts_needed = 0;
        world->arena_needed = 0;
        saved->stage = KERNEL;
    }
    tb_team_sync();
    if (!is_before_kernel(saved) || world->status != TB_OK || world->steps_left == 0) return;
    load_step(launch, world, saved, shared);
    status = begin(shared, launch, world, &certificate);
#else
    if (KERNEL != TB_GPU_KERNEL_SOLVE && !is_before_kernel(saved))
        return; /* solves: it has been taken */
    load_step(launch, saved, shared);
#if KERNEL == 1   /* detect */
    status = tb_step_detect(&shared->stepping, &certificate, NULL);
#elif KERNEL == 2 /* solve */
    memset(&certificate, 0, sizeof certificate);
    status = tb_step_solve(&shared->stepping, NULL);
#else
    status = tb_step_end(&shared->stepping, &certificate, NULL);
#endif
#endif
    if (world->course.steps > 0 && (status == TB_DIVERGED || (KERNEL == 3 && status == TB_OK)))
        tb_course_record_outputs(&world->state, &world->course, step_of_course(world),
                                 &certificate);
#if KERNEL != 3
    save_step(saved, shared);
#endif
    if (KERNEL == TB_GPU_KERNEL_SOLVE) __threadfence();
    tb_team_sync(); /* all have read what is written below, and written what others read */
    if (!TB_LEADER) return;
    if (status != TB_OK)
        end_world(launch, world, status, shared->workspace.arena.peak, &certificate);
#if KERNEL == 3 /* end */
    if (status == TB_OK) {
        tb_certificate_add(&world->merged, &certificate);
        world->steps_left--;
    }
#endif
    store_stage(saved, status);
}

TB_STATIC void step_slot(const tb_gpu_launch *launch, int32_t slot)
{
    run_kernel(launch, &launch->worlds[launch->first + slot], saved_step_of(launch, slot));
}

#endif

/* ---- solves in order ---- */

#if KERNEL < 3
TB_STATIC bool is_ordered(const tb_gpu_launch *launch)
{
    return launch->kinds != NULL && launch->arena_size >= SAVED_STEP_BYTES;
}
#endif

#if KERNEL == 0
TB_STATIC int32_t bounded(int32_t value, int32_t count)
{
    return value < count ? value : count - 1;
}

/* Kind of a world's next solve, predicted from its last one. */
TB_STATIC int32_t kind_of(const tb_gpu_world *world)
{
    const tb_certificate *last = &world->state.certificate;
    tb_solve_history history;
    memcpy(&history, world->state.history, sizeof history);
    const int32_t way = tb_auto_begins_with_sweeps(&history) ? 1 : 0;
    const int32_t size = bounded((last->contacts + 3) / 4, TB_GPU_SIZES);
    int32_t length = 0;
    while (length < TB_GPU_LENGTHS - 1 && last->iterations >= 1 << length) length++;
    return (way * TB_GPU_SIZES + size) * TB_GPU_LENGTHS + length;
}

/* Every slot is of a kind, whether its world goes on or not. */
TB_STATIC void count_kind(const tb_gpu_launch *launch, int32_t slot)
{
    const int32_t world = launch->first + slot;
    if (!is_ordered(launch) || !TB_LEADER || slot >= launch->slots) return;
    saved_step *saved = saved_step_of(launch, slot);
    saved->kind = world < launch->number_of_worlds ? kind_of(&launch->worlds[world]) : 0;
    saved->rank = atomicAdd(&launch->kinds[saved->kind], 1);
}
#elif KERNEL == 1
/* Behind those of the kinds before its own. */
TB_STATIC void take_rank(const tb_gpu_launch *launch, int32_t slot)
{
    if (!is_ordered(launch) || slot >= launch->slots) return;
    const saved_step *saved = saved_step_of(launch, slot);
    int32_t own = 0, before = 0;
    TB_EACH (k, saved->kind) own += launch->kinds[k];
    (void)tb_team_before(own, &before);
    if (TB_LEADER) launch->order[before + saved->rank] = slot;
}
#elif KERNEL == 2
TB_STATIC int32_t slot_at(const tb_gpu_launch *launch, int32_t rank)
{
    if (!is_ordered(launch) || rank >= launch->slots) return rank;
    return launch->order[rank];
}

/* For the next step. */
TB_STATIC void clear_kinds(const tb_gpu_launch *launch, int32_t slot)
{
    if (!is_ordered(launch) || slot > 0) return;
    TB_EACH (k, TB_GPU_KINDS) launch->kinds[k] = 0;
}
#endif

#if KERNEL == 2
/* ---- solves that overlap ---- */

/* Behind all that the block has done so far. */
TB_STATIC void count_block(const tb_gpu_launch *launch, int which)
{
    if (launch->overlap == 0) return;
    __threadfence();
    __syncwarp();
    if (threadIdx.x == 0 && threadIdx.y == 0) atomicAdd(&launch->counts[which], 1);
}
#endif

/* ---- the kernel ---- */

/* names of this precision, after what they stand for has been put in */
#define KERNEL_SYMBOL(name) TB_SYMBOL(name)
#define step_kernel         KERNEL_SYMBOL(KERNEL_NAME)
#ifdef TB_UNIT_WARP
#define warp_prepare_kernel KERNEL_SYMBOL(tb_gpu_prepare_warp)
extern "C" __global__ void __launch_bounds__(TB_GPU_BLOCK_THREADS)
    warp_prepare_kernel(const __grid_constant__ tb_gpu_launch launch)
{
    const int32_t slot = (int32_t)blockIdx.x;
    if (is_slot(&launch, slot)) prepare_model(&launch, slot);
}
#endif

#ifdef TB_UNIT_WARP
/* Fewer blocks than the other kernels have, each with more registers: the registers that a lane has too
 * few of go through the L1 cache, and the shared memory of fewer blocks leaves more of it. */
enum { BLOCKS_AT_ONCE = 12 };
#else
enum { BLOCKS_AT_ONCE = TB_GPU_BLOCKS_AT_ONCE };
#endif

extern "C" __global__ void __launch_bounds__(TB_GPU_BLOCK_THREADS, BLOCKS_AT_ONCE)
    step_kernel(const __grid_constant__ tb_gpu_launch launch)
{
    const int32_t slot = (int32_t)(blockIdx.x * blockDim.y + threadIdx.y);
#if KERNEL == 2
    const int32_t own = slot_at(&launch, slot);
    const bool taken = is_slot(&launch, own) && is_before_kernel(saved_step_of(&launch, own));
    clear_kinds(&launch, slot);
    /* a block that has begun takes no more worlds: by the next launch they may stand anywhere */
    count_block(&launch, TB_GPU_BEGUN);
    if (taken) step_slot(&launch, own);
    count_block(&launch, TB_GPU_DONE);
#else
    if (is_slot(&launch, slot)) step_slot(&launch, slot);
#if KERNEL == 0
    count_kind(&launch, slot);
#elif KERNEL == 1
    take_rank(&launch, slot);
#endif
#endif
}

/* An odd number of units, so that teams that read the same of theirs ask different banks. */
static size_t shared_bytes_of_team(size_t fast)
{
    return SHARED_STEP_BYTES + fast +
           (SHARED_STEP_BYTES + fast + TB_ARENA_ALIGNMENT) % (2 * TB_ARENA_ALIGNMENT);
}

#ifdef TB_UNIT_WARP
/* The blocks of a problem beside what is at hand. */
static size_t shared_bytes(const tb_gpu_launch *launch, size_t worlds)
{
    (void)launch;
    return worlds * shared_bytes_of_team(WARP_BYTES);
}
#elif !defined(KERNEL_ASKS)
/* Shared memory of a block's teams, bytes; room for a factor only where each team gets one. */
static size_t shared_bytes(const tb_gpu_launch *launch, size_t worlds)
{
    const bool solves = KERNEL == TB_GPU_KERNEL_SOLVE || KERNEL == TB_GPU_KERNELS;
    const size_t own = shared_bytes_of_team(solves ? (size_t)launch->fast : 0);
    return worlds * own <= TB_GPU_MOST_NEAR_BYTES ? worlds * own : worlds * SHARED_STEP_BYTES;
}
#else
/* The same where a block may have more than others, and fewer of them room at once: as much as was
 * chosen, or what a card gives who asks for more than every kernel may have. */
static size_t shared_bytes(const tb_gpu_launch *launch, size_t worlds)
{
    enum { UNASKED = 44 << 10, DECLARED = 4 << 10, UNITS = 2 * TB_ARENA_ALIGNMENT };
    size_t own = shared_bytes_of_team((size_t)launch->fast);
    int device = 0, most = 0;
    if (worlds * own <= UNASKED) return worlds * own;
    cudaError_t result = cudaGetDevice(&device);
    if (result == cudaSuccess)
        result = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (result == cudaSuccess) {
        const size_t each = ((size_t)most - DECLARED) / worlds;
        if (own > each) own = each / UNITS * UNITS - TB_ARENA_ALIGNMENT;
        result =
            cudaFuncSetAttribute((const void *)step_kernel,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(worlds * own));
    }
    if (result == cudaSuccess) return worlds * own;
    (void)cudaGetLastError();
    return worlds * SHARED_STEP_BYTES;
}
#endif

extern "C" cudaError_t KERNEL_SYMBOL(KERNEL_START)(const tb_gpu_launch *launch, cudaStream_t stream)
{
    const int32_t lanes = launch->lanes[KERNEL % TB_GPU_KERNELS],
                  worlds = TB_GPU_BLOCK_THREADS / lanes;
    const int32_t blocks = (launch->slots + worlds - 1) / worlds;
#ifdef TB_UNIT_WARP
    warp_prepare_kernel<<<(unsigned)blocks, TB_GPU_BLOCK_THREADS,
                          shared_bytes(launch, (size_t)worlds), stream>>>(*launch);
#endif
    step_kernel<<<(unsigned)blocks, dim3((unsigned)lanes, (unsigned)worlds),
                  shared_bytes(launch, (size_t)worlds), stream>>>(*launch);
    return cudaGetLastError();
}

#ifdef TB_STAGE_TIMES
extern "C" void KERNEL_SYMBOL(KERNEL_STAGES)(unsigned long long sums[TB_STAGE_SUMS])
{
    tb_stages_take(sums);
}
#endif
