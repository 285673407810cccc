/* Basis of the kernels of a step on a card, each compiled as double and with TB_SINGLE as float:
 *
 *   step_begin.cu, step_detect.cu, step_end.cu   a part of the step of every world (step_part.h)
 *   step_solve.cu, step_staggered.cu             its solve (step_solve_part.h)
 *   step_alone.cu, step_warp.cu, step_pile.cu    all steps of a world
 *
 * A block is one warp of one team or several (base/team.h). A world's team computes it with the
 * world's own memory, in an order that does not depend on the number of lanes, so its bytes cannot
 * depend on its neighbours, its place in the batch or the size of the launch.
 *
 * A kernel file defines KERNEL_NAME, KERNEL_START and KERNEL_STAGES, includes this header, and ends
 * with its kernel (STEP_KERNEL) and the function that starts it (STEP_START). */
#include "gpu/batch/stages.h"

#include "gpu/batch/physics.h"

#include "gpu/device/gpu_internal.h"
#include "step/certificate.h"

/* The stage of a world between kernels: the number of the part that comes next, or one of these. A
 * solve may outlast the kernels that come after its own; until it ends, the world belongs to it
 * alone. */
enum { STAGE_IN_SOLVE = TB_GPU_KERNELS, STAGE_ENDED };

/* Input of the next part, at the beginning of a world's memory. */
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

/* A team's part of that memory: the shared step, and behind it the launch's bytes for a factor. */
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

/* Whether there is a world, and room for its saved step. */
TB_STATIC bool is_slot(const tb_gpu_launch *launch, int32_t slot)
{
    return slot < launch->slots && launch->first + slot < launch->number_of_worlds &&
           launch->arena_size >= SAVED_STEP_BYTES;
}

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

/* Records and counts a step that has ended. */
TB_STATIC void end_step(const tb_gpu_launch *launch, tb_gpu_world *world, tb_status status,
                        size_t peak, const tb_certificate *certificate)
{
    if (world->course.steps > 0 && (status == TB_DIVERGED || status == TB_OK))
        tb_course_record_outputs(&world->state, &world->course, step_of_course(world), certificate);
    tb_team_sync(); /* every lane has read the fields that are written below */
    if (TB_LEADER && status != TB_OK) end_world(launch, world, status, peak, certificate);
    if (TB_LEADER && status == TB_OK) {
        tb_certificate_add(&world->merged, certificate);
        world->steps_left--;
    }
    tb_team_sync();
}

/* ---- the kernel ---- */

/* names of this precision, after KERNEL_NAME and the others have been expanded */
#define KERNEL_SYMBOL(name) TB_SYMBOL(name)
#define step_kernel         KERNEL_SYMBOL(KERNEL_NAME)

/* The kernel, with a minimum number of resident blocks a processor. */
#define STEP_KERNEL(blocks_at_once)                                                                \
    extern "C" __global__ void __launch_bounds__(TB_GPU_BLOCK_THREADS, blocks_at_once)             \
        step_kernel(const __grid_constant__ tb_gpu_launch launch)

/* The slot that this team serves. */
TB_STATIC int32_t slot_of_team(void)
{
    return (int32_t)(blockIdx.x * blockDim.y + threadIdx.y);
}

/* An odd number of units, so that teams that read the same of theirs ask different banks. */
static size_t shared_bytes_of_team(size_t fast)
{
    return SHARED_STEP_BYTES + fast +
           (SHARED_STEP_BYTES + fast + TB_ARENA_ALIGNMENT) % (2 * TB_ARENA_ALIGNMENT);
}

/* Shared memory of a block's teams, bytes; `fast` for a factor only where each team gets it. */
static size_t shared_bytes_of_block(size_t worlds, size_t fast)
{
    const size_t own = shared_bytes_of_team(fast);
    return worlds * own <= TB_GPU_MOST_NEAR_BYTES ? worlds * own : worlds * SHARED_STEP_BYTES;
}

/* Blocks that have a team for every slot. */
static __host__ __device__ int32_t blocks_of(const tb_gpu_launch *launch, int32_t worlds)
{
    return (launch->slots + worlds - 1) / worlds;
}

/* The function that starts the kernel: lanes of each world, teams of each, in blocks of their own, and shared
 * memory of a block of `worlds` worlds. */
#define STEP_START(lanes_of_world, teams, shared_bytes)                                            \
    extern "C" cudaError_t KERNEL_SYMBOL(KERNEL_START)(const tb_gpu_launch *launch,                \
                                                       cudaStream_t stream)                        \
    {                                                                                              \
        const int32_t lanes = lanes_of_world, worlds = TB_GPU_BLOCK_THREADS / lanes;               \
        const unsigned blocks = (unsigned)(blocks_of(launch, worlds) * (teams));                   \
        step_kernel<<<blocks, dim3((unsigned)lanes, (unsigned)worlds), shared_bytes, stream>>>(    \
            *launch);                                                                              \
        return cudaGetLastError();                                                                 \
    }

#ifdef TB_STAGE_TIMES
extern "C" void KERNEL_SYMBOL(KERNEL_STAGES)(unsigned long long sums[TB_STAGE_SUMS])
{
    tb_stages_take(sums);
}
#endif

#ifdef TB_UNIT_WARP
#include "gpu/batch/step_warp_kernel.h"
#endif
