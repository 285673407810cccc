/* A grasp job: all copies of all grasps, played in slices by all threads.
 *
 * Every thread steps one world and takes the next trial when it is done. Worlds are independent,
 * so the assignment of worlds to threads has no effect. Results are delivered in the order of
 * the poses, each merged from its trials in the order of the copies: the same bytes for any
 * threads and slices. On a GPU all worlds step together (rounds.c). */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/parallel.h"
#include "grasp/grasp.h"

enum {
    CHUNK = 4,          /* steps between two reads of the clock */
    CARD_WORLDS = 8192, /* active worlds on a GPU */
    /* A launch lasts as long as its slowest world. Different steps are hard in different worlds, so
     * fewer launches of more steps wait less; the rows of many worlds would take too much memory. */
    FEW_WORLDS = 512,
    STEPS_OF_FEW = 64
};

/* ---- life ---- */

static tb_status make_steppers(tb_grasp_job *job, int32_t threads, tb_error *error)
{
    tb_step_options options = job->plan.step;
    tb_status status = TB_OK;
    if (!job->plan.on_card) {
        for (int32_t i = 0; i < job->number_of_slots && status == TB_OK; i++)
            status = tb_stepper_create(&options, &job->slots[i].stepper, error);
        return status;
    }
    const size_t n = (size_t)job->number_of_slots;
    job->threads = tb_parallel_threads(threads);
    job->live = calloc(n, sizeof *job->live);
    job->states = calloc(n, sizeof *job->states);
    job->courses = calloc(n, sizeof *job->courses);
    if (job->live == NULL || job->states == NULL || job->courses == NULL)
        return tb_fail_memory(error, n * sizeof *job->courses, "a grasp job");
    options.threads = threads;
    options.resident = true;
    options.solve.cancelled = grasp_round_ends;
    options.solve.cancelled_context = job;
    return tb_stepper_create(&options, &job->card, error);
}

/* Allocates a world for each thread, or CARD_WORLDS for a GPU. */
static tb_status make_slots(tb_grasp_job *job, int32_t threads, tb_error *error)
{
    tb_status status = TB_OK;
    int64_t count = job->plan.on_card ? CARD_WORLDS : tb_parallel_threads(threads);
    if (count > job->trials) count = job->trials;
    if (job->plan.on_card && count <= FEW_WORLDS) job->plan.steps_at_once = STEPS_OF_FEW;
    job->slots = calloc((size_t)count, sizeof *job->slots);
    if (job->slots == NULL) return tb_fail_memory(error, 0, "a grasp job");
    for (int32_t i = 0; i < (int32_t)count && status == TB_OK; i++) {
        job->number_of_slots = i + 1;
        status = grasp_world_take(&job->plan, &job->slots[i].world, error);
    }
    return status == TB_OK ? make_steppers(job, threads, error) : status;
}

tb_status tb_grasp_job_create(const tb_grasp_request *request, tb_grasp_job **job, tb_error *error)
{
    *job = NULL;
    tb_stepper *trial = NULL;
    tb_status status = grasp_check(request, error);
    /* checks the step's options before anything is compiled */
    if (status == TB_OK) status = tb_stepper_create(&request->step, &trial, error);
    const bool on_card = trial != NULL && strcmp(tb_stepper_measure(trial).backend, "cpu") != 0;
    tb_stepper_destroy(trial);
    if (status != TB_OK) return status;
    tb_grasp_job *made = calloc(1, sizeof *made);
    if (made == NULL) return tb_fail_memory(error, sizeof *made, "a grasp job");
    pthread_mutex_init(&made->lock, NULL);
    status = grasp_plan_make(request, &made->plan, error);
    made->plan.on_card = on_card;
    if (status == TB_OK && made->plan.step.backend == TB_BACKEND_AUTO &&
        tb_model_has_meshes(made->plan.model)) {
        made->plan.step.backend = TB_BACKEND_CPU;
        made->plan.step.device = 0;
        made->plan.on_card = false;
    }
    if (status == TB_OK) {
        made->trials = (int64_t)made->plan.number_of_poses * made->plan.perturbation.count;
        made->steps_total = made->trials * made->plan.phases.end;
        made->records = calloc((size_t)made->plan.number_of_poses, sizeof *made->records);
        if (made->records == NULL) status = tb_fail_memory(error, 0, "a grasp job");
    }
    if (status == TB_OK) status = make_slots(made, request->step.threads, error);
    if (status != TB_OK)
        tb_grasp_job_destroy(made);
    else
        *job = made;
    return status;
}

static void free_record(const tb_grasp_plan *plan, grasp_record *record)
{
    for (int32_t i = 0; i < plan->filming.copies && record->films != NULL; i++)
        grasp_film_free(&record->films[i]);
    free(record->films);
    free(record->trials);
    free(record->contacts);
    memset(record, 0, sizeof *record);
}

void tb_grasp_job_destroy(tb_grasp_job *job)
{
    if (job == NULL) return;
    for (int32_t i = 0; i < job->number_of_slots; i++) {
        grasp_world_give(&job->slots[i].world);
        tb_stepper_destroy(job->slots[i].stepper);
    }
    for (int32_t i = 0; i < job->plan.number_of_poses && job->records != NULL; i++)
        free_record(&job->plan, &job->records[i]);
    free_record(&job->plan, &job->out);
    tb_stepper_destroy(job->card);
    free(job->live);
    free(job->states);
    free(job->courses);
    free(job->fingers);
    free(job->slots);
    free(job->records);
    grasp_plan_free(&job->plan);
    pthread_mutex_destroy(&job->lock);
    free(job);
}

/* ---- playing ---- */

void grasp_job_fail(tb_grasp_job *job, tb_status status, const tb_error *error)
{
    pthread_mutex_lock(&job->lock);
    if (job->status == TB_OK) {
        job->status = status;
        job->error = *error;
    }
    pthread_mutex_unlock(&job->lock);
}

bool grasp_job_take(tb_grasp_job *job, int32_t *grasp, int32_t *copy)
{
    const int32_t copies = job->plan.perturbation.count;
    bool taken = false;
    pthread_mutex_lock(&job->lock);
    if (job->status == TB_OK && job->next < job->trials && !grasp_film_waits(job)) {
        *grasp = (int32_t)(job->next / copies);
        *copy = (int32_t)(job->next % copies);
        grasp_record *record = &job->records[*grasp];
        if (record->trials == NULL) record->trials = calloc((size_t)copies, sizeof *record->trials);
        const size_t films = (size_t)job->plan.filming.copies;
        if (films > 0 && record->films == NULL)
            record->films = calloc(films, sizeof *record->films);
        taken = record->trials != NULL && (films == 0 || record->films != NULL);
        if (taken)
            job->next++;
        else
            job->status = tb_fail_memory(&job->error, 0, "a grasp's trials");
    }
    pthread_mutex_unlock(&job->lock);
    return taken;
}

tb_status grasp_job_finish(tb_grasp_job *job, grasp_world *world, tb_error *error)
{
    grasp_record *record = &job->records[world->grasp];
    tb_status status = TB_OK;
    record->trials[world->copy] = world->trial;
    if (world->copy == 0) {
        status = grasp_quality(world, &record->epsilon, &record->volume, error);
        record->contacts = world->contacts;
        record->number_of_contacts = world->number_of_contacts;
        world->contacts = NULL;
    }
    pthread_mutex_lock(&job->lock);
    grasp_film_keep(job, world, record->films);
    record->done++;
    job->trials_done++;
    job->trials_held += world->trial.verdict == TB_GRASP_HELD;
    job->trials_uncertified += world->trial.verdict == TB_GRASP_UNCERTIFIED;
    job->steps_total -= job->plan.phases.end - world->trial.steps;
    job->grasps_done += record->done == job->plan.perturbation.count;
    pthread_mutex_unlock(&job->lock);
    grasp_world_end(world);
    return status;
}

int64_t grasp_job_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool grasp_job_goes_on(const tb_grasp_job *job)
{
    return grasp_job_now() < job->until &&
           !(job->yields != NULL && job->yields(job->yields_context));
}

/* One thread's part of a slice. */
static void play_slot(void *context, int32_t index, int32_t thread)
{
    (void)thread;
    tb_grasp_job *job = context;
    grasp_slot *slot = &job->slots[index];
    tb_error error = {0};
    tb_status status = TB_OK;
    int32_t grasp, copy;
    do {
        bool done = false;
        if (!slot->busy) {
            if (!grasp_job_take(job, &grasp, &copy)) return;
            slot->busy = true;
            status = grasp_world_begin(&slot->world, grasp, copy, &error);
        }
        const int64_t before = slot->world.trial.steps;
        if (status == TB_OK)
            status = grasp_world_play(&slot->world, slot->stepper, CHUNK, &done, &error);
        pthread_mutex_lock(&job->lock);
        job->steps_done += slot->world.trial.steps - before;
        const bool stop = job->status != TB_OK;
        pthread_mutex_unlock(&job->lock);
        if (status == TB_OK && done) {
            slot->busy = false;
            status = grasp_job_finish(job, &slot->world, &error);
        }
        if (stop) return;
    } while (status == TB_OK && grasp_job_goes_on(job));
    if (status != TB_OK) grasp_job_fail(job, status, &error);
}

tb_status tb_grasp_job_advance(tb_grasp_job *job, int64_t budget_ns, bool *finished,
                               tb_error *error)
{
    const int64_t now = grasp_job_now();
    job->until = budget_ns > 0 && now < INT64_MAX - budget_ns ? now + budget_ns : now;
    const bool left = job->trials_done < job->trials && job->status == TB_OK;
    if (left && job->card != NULL)
        grasp_rounds_play(job);
    else if (left)
        tb_parallel_for(job->number_of_slots, 1, job->number_of_slots, play_slot, job);
    *finished = job->status != TB_OK || job->trials_done == job->trials;
    if (job->status != TB_OK && error != NULL) *error = job->error;
    return job->status;
}

void tb_grasp_job_set_yields(tb_grasp_job *job, bool (*yields)(const void *context),
                             const void *context)
{
    job->yields = yields;
    job->yields_context = context;
}

/* ---- results ---- */

static int compare_numbers(const void *left, const void *right)
{
    const double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

static double median_slip(const tb_grasp_trial *trials, int32_t count)
{
    double *slips = malloc(((size_t)count + 1) * sizeof *slips);
    int32_t n = 0;
    if (slips == NULL) return 0;
    for (int32_t i = 0; i < count; i++)
        if (trials[i].verdict == TB_GRASP_HELD || trials[i].verdict == TB_GRASP_SLIPPED)
            slips[n++] = trials[i].slip;
    qsort(slips, (size_t)n, sizeof *slips, compare_numbers);
    const double median = n == 0 ? 0 : (slips[(n - 1) / 2] + slips[n / 2]) / 2;
    free(slips);
    return median;
}

/* Sums the contacts of each body of the hand, in the order in which they first appear. */
static void sum_fingers(tb_grasp_job *job)
{
    tb_grasp_result *r = &job->result;
    free(job->fingers);
    job->fingers = calloc((size_t)r->number_of_contacts + 1, sizeof *job->fingers);
    r->fingers = job->fingers;
    r->number_of_fingers = 0;
    for (int32_t i = 0; i < r->number_of_contacts && job->fingers != NULL; i++) {
        int32_t k = 0;
        while (k < r->number_of_fingers && job->fingers[k].body != r->contacts[i].body) k++;
        if (k == r->number_of_fingers)
            job->fingers[r->number_of_fingers++].body = r->contacts[i].body;
        job->fingers[k].force += r->contacts[i].force;
    }
}

const tb_grasp_result *tb_grasp_job_next(tb_grasp_job *job)
{
    const tb_grasp_plan *plan = &job->plan;
    const int32_t copies = plan->perturbation.count;
    if (job->given == plan->number_of_poses || job->records[job->given].done < copies) return NULL;
    grasp_film_give(job);
    free_record(plan, &job->out);
    job->out = job->records[job->given];
    memset(&job->records[job->given], 0, sizeof *job->records);

    tb_grasp_result *r = &job->result;
    memset(r, 0, sizeof *r);
    r->index = job->given++;
    r->pose = &plan->poses[r->index];
    r->name = r->pose->name;
    r->trials = job->out.trials;
    r->number_of_trials = copies;
    r->contacts = job->out.contacts;
    r->number_of_contacts = job->out.number_of_contacts;
    r->epsilon = job->out.epsilon;
    r->volume = job->out.volume;
    int32_t held = 0;
    for (int32_t i = 0; i < copies; i++) {
        held += r->trials[i].verdict == TB_GRASP_HELD;
        r->uncertified += r->trials[i].verdict == TB_GRASP_UNCERTIFIED;
    }
    r->certificate = r->trials[0].certificate;
    const int32_t decided = copies - r->uncertified;
    r->success = decided > 0 ? (double)held / decided : 0;
    tb_wilson_interval(held, decided, plan->confidence, &r->lower, &r->upper);
    r->slip = median_slip(r->trials, copies);
    for (int32_t i = 0; i < r->number_of_contacts; i++)
        r->margin = i == 0 ? r->contacts[i].margin : fmin(r->margin, r->contacts[i].margin);
    sum_fingers(job);
    const tb_vec3 way = tb_q_rotate(tb_q_normalize(tb_q_load(r->pose->orientation)),
                                    tb_v3_load(plan->protocol.approach));
    tb_v3_store(r->approach, tb_v3_scale(way, plan->protocol.approach_distance));
    tb_v3_store(r->centre, grasp_object_centre(plan));
    r->radius = plan->object_radius;
    return r;
}

tb_grasp_progress tb_grasp_job_progress(const tb_grasp_job *job)
{
    return (tb_grasp_progress){.grasps = job->plan.number_of_poses,
                               .grasps_done = job->grasps_done,
                               .trials = job->trials,
                               .trials_done = job->trials_done,
                               .trials_held = job->trials_held,
                               .trials_uncertified = job->trials_uncertified,
                               .world_steps_done = job->steps_done,
                               .world_steps = job->steps_total};
}

const tb_model *tb_grasp_job_model(const tb_grasp_job *job)
{
    return job->plan.model;
}

int32_t tb_grasp_job_number_of_warnings(const tb_grasp_job *job)
{
    return job->plan.number_of_warnings;
}

const char *tb_grasp_job_warning(const tb_grasp_job *job, int32_t index)
{
    return index >= 0 && index < job->plan.number_of_warnings ? job->plan.warnings[index] : "";
}

const tb_hand_info *tb_grasp_job_hand(const tb_grasp_job *job)
{
    return &job->plan.info;
}

double tb_grasp_job_seconds(const tb_grasp_job *job)
{
    return (double)job->plan.phases.end * job->plan.dt;
}

/* ---- Wilson's score interval ---- */

/* E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22, 1927.
 * Unlike the textbook interval, it is valid for few trials and for rates of 0 and 1. */

/* The z at which the normal distribution's two tails together hold `tails`, erfc(z / sqrt 2) =
 * tails, by bisection, which needs no table and is exact to rounding. */
static double normal_quantile(double tails)
{
    double lower = 0, upper = 40;
    for (int i = 0; i < 200; i++) {
        const double middle = (lower + upper) / 2;
        if (erfc(middle / sqrt(2)) > tails)
            lower = middle;
        else
            upper = middle;
    }
    return (lower + upper) / 2;
}

void tb_wilson_interval(int64_t successes, int64_t trials, double confidence, double *lower,
                        double *upper)
{
    *lower = 0;
    *upper = 1;
    if (trials <= 0 || !(confidence > 0 && confidence < 1)) return;
    const double n = (double)trials, rate = (double)successes / n;
    const double z = normal_quantile(1 - confidence), z2 = z * z;
    const double centre = (rate + z2 / (2 * n)) / (1 + z2 / n);
    const double half = z / (1 + z2 / n) * sqrt(rate * (1 - rate) / n + z2 / (4 * n * n));
    *lower = successes == 0 ? 0 : fmax(0, centre - half);
    *upper = successes == trials ? 1 : fmin(1, centre + half);
}
