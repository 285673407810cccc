/* Grasps on a GPU: rounds of some steps of all active worlds.
 *
 * A GPU steps a thousand worlds in the time of one, so all worlds step together, each in its own
 * phase. CPU threads write the course of every world, the GPU steps the worlds, CPU threads
 * judge the recordings, and a finished world's slot takes the next trial. Worlds stay on the
 * GPU; the job fetches them only when the fingers have closed and at the end. When the slice ends,
 * each world ends the step that it makes, and goes on from there in the next round. A world's results
 * do not depend on other worlds or on the division into rounds. */
#include <string.h>

#include "base/error.h"
#include "base/parallel.h"
#include "grasp/grasp.h"

enum {
    GRAIN = 8,
    NOT_MADE = -1 /* step of a certificate; made steps count from 1 */
};

/* Assigns trials to free slots and lists the active slots. */
static int32_t fill(tb_grasp_job *job)
{
    int32_t n = 0;
    for (int32_t i = 0; i < job->number_of_slots; i++) {
        grasp_slot *slot = &job->slots[i];
        int32_t grasp, copy;
        if (!slot->busy) {
            if (!grasp_job_take(job, &grasp, &copy)) continue;
            slot->busy = true;
            slot->done = false;
            slot->world.grasp = grasp;
            slot->world.copy = copy;
            slot->world.state = NULL; /* begins in `tell` */
        }
        job->live[n++] = slot;
    }
    return n;
}

/* Begins a new world if needed; writes the world's course of this round. */
static void tell(void *context, int32_t index, int32_t thread)
{
    (void)thread;
    const tb_grasp_job *job = context;
    grasp_slot *slot = job->live[index];
    grasp_world *world = &slot->world;
    slot->status = TB_OK;
    if (world->state == NULL) {
        slot->status = grasp_world_begin(world, world->grasp, world->copy, &slot->error);
        slot->done = world->trial.verdict == TB_GRASP_COLLIDED;
    }
    if (slot->status == TB_OK && !slot->done) grasp_world_plan(world, job->plan.steps_at_once);
}

static void look(void *context, int32_t index, int32_t thread)
{
    (void)thread;
    const tb_grasp_job *job = context;
    grasp_slot *slot = job->live[index];
    slot->status = grasp_world_look(&slot->world, &slot->done, &slot->error);
}

static void end(void *context, int32_t index, int32_t thread)
{
    (void)thread;
    tb_grasp_job *job = context;
    grasp_slot *slot = job->live[index];
    if (slot->done) slot->status = grasp_job_finish(job, &slot->world, &slot->error);
    if (slot->done) slot->busy = false;
}

/* Runs a function for all active slots; false after a failure, which the job keeps. */
static bool for_live(tb_grasp_job *job, int32_t count, tb_parallel_function *function)
{
    tb_parallel_for(count, GRAIN, job->threads, function, job);
    for (int32_t i = 0; i < count; i++)
        if (job->live[i]->status != TB_OK)
            grasp_job_fail(job, job->live[i]->status, &job->live[i]->error);
    return job->status == TB_OK;
}

/* Moves worlds with steps left to the front; the others end. */
static bool drop_done(tb_grasp_job *job, int32_t *count)
{
    int32_t n = 0;
    if (!for_live(job, *count, end)) return false;
    for (int32_t i = 0; i < *count; i++)
        if (!job->live[i]->done) job->live[n++] = job->live[i];
    *count = n;
    return true;
}

/* Fetches all worlds that are read next from the GPU in one call. */
static tb_status fetch(tb_grasp_job *job, int32_t count, tb_error *error)
{
    int32_t n = 0;
    for (int32_t i = 0; i < count; i++) {
        const grasp_world *world = &job->live[i]->world;
        if (grasp_world_reads(world)) job->states[n++] = world->state;
    }
    return tb_states_fetch(job->states, n, true, error);
}

/* The caller's own answer ends the job. */
static bool is_cancelled(const tb_grasp_job *job)
{
    const tb_solve_options *solve = &job->plan.step.solve;
    return solve->cancelled != NULL && solve->cancelled(solve->cancelled_context);
}

/* The first question comes before the first step. A round that ended without a step is followed by
 * one that goes to its end, so that slices of any length bring the job forward. */
bool grasp_round_ends(void *context)
{
    tb_grasp_job *job = context;
    if (is_cancelled(job)) return true;
    return job->questions++ > 0 && !job->idle && !grasp_job_goes_on(job);
}

/* Marks the steps of a course as not made, and counts the made ones, from the first on. */
static void mark_steps(const grasp_world *world)
{
    for (int32_t i = 0; i < world->course.steps; i++) world->steps[i].step = NOT_MADE;
}

static int32_t made_steps(const grasp_world *world)
{
    int32_t made = 0;
    while (made < world->course.steps && world->steps[made].step != NOT_MADE) made++;
    return made;
}

/* A diverged world has its flag in the certificate; the other worlds are stepped. In a round that is
 * ended, worlds have made different numbers of steps. */
static tb_status step(tb_grasp_job *job, int32_t count, tb_error *error)
{
    for (int32_t i = 0; i < count; i++) {
        mark_steps(&job->live[i]->world);
        job->states[i] = job->live[i]->world.state;
        job->courses[i] = job->live[i]->world.course;
    }
    job->questions = 0;
    const tb_status status =
        tb_step_courses(job->card, job->states, job->courses, count, NULL, error);
    const bool ended = status == TB_CANCELLED && !is_cancelled(job);
    if (status != TB_OK && status != TB_DIVERGED && !ended) return status;
    job->idle = true;
    for (int32_t i = 0; i < count; i++) {
        grasp_world *world = &job->live[i]->world;
        world->course.steps = made_steps(world);
        job->idle = job->idle && world->course.steps == 0;
    }
    return fetch(job, count, error);
}

/* Steps of the active trials, for the progress. */
static int64_t count_steps(const tb_grasp_job *job, int32_t count)
{
    int64_t steps = 0;
    for (int32_t i = 0; i < count; i++) steps += job->live[i]->world.trial.steps;
    return steps;
}

/* One round of the first `count` slots; false after a failure. */
static bool play_round(tb_grasp_job *job, int32_t count)
{
    tb_error error = {0};
    const int64_t before = count_steps(job, count);
    const tb_status status = step(job, count, &error);
    if (status != TB_OK) {
        grasp_job_fail(job, status, &error);
        return false;
    }
    if (!for_live(job, count, look)) return false;
    job->steps_done += count_steps(job, count) - before;
    return drop_done(job, &count);
}

void grasp_rounds_play(tb_grasp_job *job)
{
    do {
        int32_t count = fill(job);
        if (count == 0) return;
        if (!for_live(job, count, tell) || !drop_done(job, &count)) return;
        if (!play_round(job, count)) return;
    } while (grasp_job_goes_on(job));
}
