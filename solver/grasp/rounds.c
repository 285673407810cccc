/* Grasps on a card: rounds of one step of all worlds in play.
 *
 * A card takes a thousand worlds in the time of one, so they go together, each at its own place of
 * the protocol: the processors tell every world what it is to do, the card steps them all, the
 * processors look at those that have something to show, and a world that is done makes room for the
 * next trial. Worlds stay on the card; in the phase that nobody looks at (while the hand closes) they
 * are not even fetched. A world's numbers depend on nobody else, so results are those of one that is
 * played alone on the same card. */
#include <string.h>

#include "base/error.h"
#include "base/parallel.h"
#include "grasp/grasp.h"

enum { GRAIN = 8 };

/* Trials for the slots that have none, and the list of those that are in play. */
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

/* Begins a new world; tells any what it is to do in the next step. */
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
    if (slot->status == TB_OK && !slot->done)
        slot->status = grasp_world_before(world, &slot->error);
}

static void look(void *context, int32_t index, int32_t thread)
{
    (void)thread;
    const tb_grasp_job *job = context;
    grasp_slot *slot = job->live[index];
    slot->status = grasp_world_after(&slot->world, &slot->certificate, &slot->done, &slot->error);
}

static void end(void *context, int32_t index, int32_t thread)
{
    (void)thread;
    tb_grasp_job *job = context;
    grasp_slot *slot = job->live[index];
    if (slot->done) slot->status = grasp_job_finish(job, &slot->world, &slot->error);
    if (slot->done) slot->busy = false;
}

/* All slots in play; false after a failure, which is the job's. */
static bool for_live(tb_grasp_job *job, int32_t count, tb_parallel_function *function)
{
    tb_parallel_for(count, GRAIN, job->threads, function, job);
    for (int32_t i = 0; i < count; i++)
        if (job->live[i]->status != TB_OK)
            grasp_job_fail(job, job->live[i]->status, &job->live[i]->error);
    return job->status == TB_OK;
}

/* Worlds that have something to do, in front; the others are done and end. */
static bool drop_done(tb_grasp_job *job, int32_t *count)
{
    int32_t n = 0;
    if (!for_live(job, *count, end)) return false;
    for (int32_t i = 0; i < *count; i++)
        if (!job->live[i]->done) job->live[n++] = job->live[i];
    *count = n;
    return true;
}

/* Worlds that are about to be read come from the card together. */
static tb_status fetch(tb_grasp_job *job, int32_t count, bool before, tb_error *error)
{
    int32_t n = 0;
    for (int32_t i = 0; i < count; i++) {
        const grasp_world *world = &job->live[i]->world;
        if (world->state != NULL &&
            (before ? grasp_world_is_pushed(world) : grasp_world_reads(world)))
            job->states[n++] = world->state;
    }
    return tb_states_fetch(job->states, n, !before, error);
}

/* A world that diverged says so in its certificate, and the others have been stepped. */
static tb_status step(tb_grasp_job *job, int32_t count, tb_error *error)
{
    for (int32_t i = 0; i < count; i++) job->states[i] = job->live[i]->world.state;
    const tb_status status =
        tb_step_batch(job->card, job->states, count, 1, job->certificates, error);
    if (status != TB_OK && status != TB_DIVERGED) return status;
    for (int32_t i = 0; i < count; i++) job->live[i]->certificate = job->certificates[i];
    job->steps_done += count;
    return fetch(job, count, false, error);
}

void grasp_rounds_play(tb_grasp_job *job)
{
    tb_error error = {0};
    do {
        int32_t count = fill(job);
        tb_status status = fetch(job, count, true, &error);
        if (count == 0) return;
        if (status == TB_OK) {
            if (!for_live(job, count, tell) || !drop_done(job, &count)) return;
            status = step(job, count, &error);
        }
        if (status != TB_OK) {
            grasp_job_fail(job, status, &error);
            return;
        }
        if (!for_live(job, count, look) || !drop_done(job, &count)) return;
    } while (grasp_job_goes_on(job));
}
