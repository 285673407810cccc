/* The parts of a general step as kernels: a world's step between two of them. Beside step_kernel.h,
 * for every kernel but that of small worlds. */
#include "gpu/batch/step_kernel.h"

/* ---- a step that begins ---- */

/* Whether a kernel that keeps its world goes on with this one. */
TB_STATIC bool is_sparse(const tb_gpu_launch *launch, const tb_gpu_world *world)
{
    return launch->crowded > 0 && world->state.number_of_contacts <= launch->crowded;
}

TB_STATIC void load_new_step(const tb_gpu_launch *launch, tb_gpu_world *world, saved_step *saved,
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
TB_STATIC tb_status begin_step(shared_step *shared, const tb_gpu_launch *launch,
                               tb_gpu_world *world, tb_certificate *certificate)
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

/* ---- a search beside the begin ---- */

enum {
    FOUND_BYTES =
        (sizeof(tb_found) + TB_ARENA_ALIGNMENT - 1) / TB_ARENA_ALIGNMENT * TB_ARENA_ALIGNMENT
};

/* As large as the world's memory: what it found, then its arena. */
TB_STATIC unsigned char *search_memory_of(const tb_gpu_launch *launch, int32_t slot)
{
    return launch->searches + (size_t)slot * launch->arena_size;
}

/* ---- a step between two parts ---- */

/* Whether `part` is the next one of a world, the same for all lanes. */
TB_STATIC bool is_before_part(const saved_step *saved, int32_t part)
{
    int32_t stage = part;
    if (TB_LEADER) stage = __ldcg(&saved->stage);
    tb_team_share(&stage, sizeof stage);
    return stage == part;
}

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

TB_STATIC void save_step(saved_step *saved, const shared_step *shared)
{
    tb_team_sync();
    tb_team_copy(&saved->stepping, &shared->stepping, sizeof saved->stepping);
    tb_team_copy(&saved->arena, &shared->workspace.arena, sizeof saved->arena);
}

/* Stage of a world after a part with this status. */
TB_STATIC int32_t stage_after(int32_t part, tb_status status)
{
    return status == TB_OK ? (part + 1) % TB_GPU_KERNELS : (int32_t)STAGE_ENDED;
}

TB_STATIC void record_divergence(tb_gpu_world *world, tb_status status,
                                 const tb_certificate *certificate)
{
    if (world->course.steps > 0 && status == TB_DIVERGED)
        tb_course_record_outputs(&world->state, &world->course, step_of_course(world), certificate);
}

/* Saves the step after a part that is neither its solve nor its end. */
TB_STATIC void leave_part(const tb_gpu_launch *launch, tb_gpu_world *world, saved_step *saved,
                          const shared_step *shared, int32_t part, tb_status status,
                          const tb_certificate *certificate)
{
    record_divergence(world, status, certificate);
    save_step(saved, shared);
    tb_team_sync(); /* every lane has read the fields that are written below */
    if (!TB_LEADER) return;
    if (status != TB_OK)
        end_world(launch, world, status, shared->workspace.arena.peak, certificate);
    saved->stage = stage_after(part, status);
}

/* Whether solves are started in the order of their kinds. */
TB_STATIC bool is_ordered(const tb_gpu_launch *launch)
{
    return launch->kinds != NULL && launch->arena_size >= SAVED_STEP_BYTES;
}

/* The slot of a place in that order. */
TB_STATIC int32_t slot_at(const tb_gpu_launch *launch, int32_t rank)
{
    if (!is_ordered(launch) || rank >= launch->slots) return rank;
    return launch->order[rank];
}
