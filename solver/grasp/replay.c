/* Trials to be looked at: films that a job keeps of chosen trials, and trials played again.
 *
 * A film takes the poses that a course records, so a world on a GPU is filmed without being
 * fetched, and no step depends on whether a trial is filmed. Whether a film is kept may depend on
 * the verdict; until then every trial that may have it is filmed. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grasp/grasp.h"
#include "grasp/replay.h"

/* One film fits into a message of any gRPC client. */
enum { POSE_NUMBERS = 7, ONE_FILM_BYTES = 4000000, FILM_BYTES = 64 << 20 };

static const double DEFAULT_FILM_INTERVAL_S = 0.02;

/* ---- films ---- */

/* Frames of a film at most: the first, one every `every` steps, the last. */
static int64_t most_frames(const tb_grasp_plan *plan)
{
    return plan->phases.end / plan->filming.every + 2;
}

static uint64_t film_bytes(const tb_grasp_plan *plan)
{
    const uint64_t numbers = (uint64_t)plan->model->number_of_bodies * POSE_NUMBERS;
    return (uint64_t)most_frames(plan) * (numbers * sizeof(float) + sizeof(double));
}

/* Worlds of a GPU that are filmed at the same time have FILM_BYTES together. */
static void drop_slots(tb_grasp_job *job)
{
    const uint64_t most = FILM_BYTES / film_bytes(&job->plan);
    const int32_t kept = most < 1                                ? 1
                         : most < (uint64_t)job->number_of_slots ? (int32_t)most
                                                                 : job->number_of_slots;
    while (job->card != NULL && job->number_of_slots > kept)
        grasp_world_give(&job->slots[--job->number_of_slots].world);
}

tb_status tb_grasp_job_film(tb_grasp_job *job, const tb_grasp_film_options *options,
                            tb_error *error)
{
    tb_grasp_plan *plan = &job->plan;
    grasp_filming *f = &plan->filming;
    const double interval = options->interval != 0 ? options->interval : DEFAULT_FILM_INTERVAL_S;
    if (!(interval > 0 && interval < INFINITY))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "interval",
                             "interval is %g s, expected more than 0", options->interval);
    if (options->copies < 0 || options->copies > plan->perturbation.count)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "copies",
                             "copies is %d, each grasp has %d", (int)options->copies,
                             (int)plan->perturbation.count);
    const double steps = fmin(interval / plan->dt + 0.5, (double)plan->phases.end);
    f->copies = options->copies > 0 ? options->copies : 1;
    f->verdicts = options->verdicts;
    f->every = steps < 1 ? 1 : (int64_t)steps;
    const uint64_t film = film_bytes(plan);
    const int64_t frames = most_frames(plan);
    if (film > ONE_FILM_BYTES || film * (uint64_t)f->copies > FILM_BYTES) {
        memset(f, 0, sizeof *f);
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "interval",
                             "a trial of %lld frames would take %llu bytes, more than %d, or the "
                             "copies of a grasp more than %d: take a longer interval",
                             (long long)frames, (unsigned long long)film, ONE_FILM_BYTES,
                             FILM_BYTES);
    }
    if (options->poses != NULL) {
        const size_t count = (size_t)plan->number_of_poses;
        f->poses = malloc(count * sizeof *f->poses);
        if (f->poses == NULL) return tb_fail_memory(error, count, "a grasp job");
        memcpy(f->poses, options->poses, count * sizeof *f->poses);
    }
    drop_slots(job);
    return TB_OK;
}

uint64_t tb_grasp_job_film_bytes(const tb_grasp_job *job)
{
    const grasp_filming *f = &job->plan.filming;
    if (f->every == 0) return 0;
    const uint64_t film = film_bytes(&job->plan), trials = (uint64_t)job->trials;
    const uint64_t active = (uint64_t)job->number_of_slots, given = (uint64_t)f->copies;
    const uint64_t waiting = FILM_BYTES / film < trials ? FILM_BYTES / film : trials;
    return film * (active + waiting + given);
}

void grasp_film_give(tb_grasp_job *job)
{
    const grasp_film *films = job->records[job->given].films;
    for (int32_t i = 0; i < job->plan.filming.copies && films != NULL; i++)
        if (films[i].frames > 0) job->film_bytes -= film_bytes(&job->plan);
}

bool grasp_film_waits(const tb_grasp_job *job)
{
    return job->film_bytes >= FILM_BYTES;
}

static bool has_pose(const tb_grasp_plan *plan, const grasp_world *world)
{
    return plan->filming.poses != NULL && plan->filming.poses[world->grasp];
}

static void take_frame(grasp_world *world, tb_state *state)
{
    const tb_model *m = world->plan->model;
    grasp_film *film = &world->film;
    float *to = film->poses + (int64_t)film->frames * m->number_of_bodies * POSE_NUMBERS;
    if (tb_state_body_motions(state, world->motions) != TB_OK) return;
    for (int32_t b = 0; b < m->number_of_bodies; b++, to += POSE_NUMBERS) {
        for (int k = 0; k < 3; k++) to[k] = (float)world->motions[b].position[k];
        for (int k = 0; k < 4; k++) to[3 + k] = (float)world->motions[b].orientation[k];
    }
    film->times[film->frames++] = (double)world->step * world->plan->dt;
}

tb_status grasp_film_begin(grasp_world *world, tb_error *error)
{
    const tb_grasp_plan *plan = world->plan;
    const grasp_filming *f = &plan->filming;
    if (f->every == 0 || world->copy >= f->copies) return TB_OK;
    if (f->verdicts == 0 && !has_pose(plan, world)) return TB_OK;
    const size_t frames = (size_t)most_frames(plan);
    const size_t numbers = (size_t)plan->model->number_of_bodies * POSE_NUMBERS;
    world->film.times = malloc(frames * sizeof(double));
    world->film.poses = malloc(frames * numbers * sizeof(float));
    if (world->film.times == NULL || world->film.poses == NULL)
        return tb_fail_memory(error, frames * numbers * sizeof(float), "a film");
    world->film.filmed = 0;
    take_frame(world, world->state);
    return TB_OK;
}

void grasp_film_look(grasp_world *world, int32_t noted, bool last)
{
    grasp_film *film = &world->film;
    if (film->poses == NULL || world->step == film->filmed) return;
    if (!last && world->step % world->plan->filming.every != 0) return;
    tb_course_show(&world->course, noted, world->shown);
    take_frame(world, world->shown);
    film->filmed = world->step;
}

void grasp_film_free(grasp_film *film)
{
    free(film->times);
    free(film->poses);
    memset(film, 0, sizeof *film);
}

void grasp_film_keep(tb_grasp_job *job, grasp_world *world, grasp_film *films)
{
    const grasp_filming *f = &job->plan.filming;
    if (world->film.poses == NULL) return;
    if ((f->verdicts >> world->trial.verdict & 1) == 0 && !has_pose(&job->plan, world)) return;
    films[world->copy] = world->film;
    job->film_bytes += film_bytes(&job->plan);
    memset(&world->film, 0, sizeof world->film);
}

bool tb_grasp_job_filmed(const tb_grasp_job *job, int32_t copy, tb_grasp_film *film)
{
    const grasp_film *films = job->out.films;
    if (films == NULL || copy < 0 || copy >= job->plan.filming.copies) return false;
    if (films[copy].frames == 0) return false;
    *film = (tb_grasp_film){.copy = copy,
                            .frames = films[copy].frames,
                            .bodies = job->plan.model->number_of_bodies,
                            .times = films[copy].times,
                            .poses = films[copy].poses};
    return true;
}

/* ---- one trial again ---- */

/* The same steps as in the job, since no result depends on other worlds or on how steps are
 * divided. A dropped object is followed to the end of the protocol, past the step at which the
 * job's trial ends. */
typedef struct replay {
    tb_grasp_plan plan;
    grasp_world world;
    tb_stepper *stepper;
    int64_t every; /* steps between two shown states */
    tb_grasp_show *show;
    void *context;
} replay;

static tb_status show(const replay *r, tb_error *error)
{
    const double time = (double)r->world.step * r->plan.dt;
    return r->show(r->context, r->world.state, time, &r->world.steps[0], error);
}

/* A step that nothing judges any more. */
static tb_status fall_on(replay *r, tb_error *error)
{
    grasp_world *world = &r->world;
    grasp_world_plan(world, 1);
    const tb_status status =
        tb_step_courses(r->stepper, &world->state, &world->course, 1, NULL, error);
    world->step++;
    return status;
}

static tb_status play(replay *r, tb_error *error)
{
    const int64_t end = r->plan.phases.end;
    int64_t shown = 0;
    bool done = false, ended = false;
    tb_status status = show(r, error);
    while (status == TB_OK && r->world.step < end && !ended) {
        status =
            done ? fall_on(r, error) : grasp_world_play(&r->world, r->stepper, 1, &done, error);
        const int64_t step = r->world.step;
        ended = step == end || (done && r->world.trial.verdict != TB_GRASP_DROPPED);
        if (status != TB_OK || step == shown || !(ended || step % r->every == 0)) continue;
        status = show(r, error);
        shown = step;
    }
    return status;
}

tb_status tb_grasp_replay(const tb_grasp_request *request, int32_t copy, double interval,
                          tb_grasp_show *show_state, void *context, tb_model **model,
                          tb_error *error)
{
    replay r = {.show = show_state, .context = context};
    *model = NULL;
    tb_status status = grasp_check(request, error);
    if (status == TB_OK && request->number_of_poses != 1)
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, "poses", "a replay has one pose");
    if (status == TB_OK && (copy < 0 || copy >= request->perturbation.count))
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, "copy", "copy is %d, expected 0 to %d",
                               (int)copy, (int)request->perturbation.count - 1);
    if (status != TB_OK) return status;

    status = grasp_plan_make(request, &r.plan, error);
    if (status == TB_OK) {
        r.every = (int64_t)(interval / r.plan.dt + 0.5);
        if (r.every < 1) r.every = 1;
        status = grasp_world_take(&r.plan, &r.world, error);
    }
    if (status == TB_OK) status = tb_stepper_create(&r.plan.step, &r.stepper, error);
    if (status == TB_OK) status = grasp_world_begin(&r.world, 0, copy, error);
    if (status == TB_OK) status = play(&r, error);

    grasp_world_give(&r.world);
    tb_stepper_destroy(r.stepper);
    if (status == TB_OK) {
        *model = r.plan.model;
        r.plan.model = NULL;
    }
    grasp_plan_free(&r.plan);
    return status;
}
