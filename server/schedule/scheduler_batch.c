/* A batch: the worlds of several step jobs with equal options, advanced together by some steps.
 *
 * One thread steps a world from start to end and reads no other world, so batching affects speed
 * alone: a batch's bytes are those of each job alone. The thread that has the device steps small
 * batches itself; waking other threads would take longer. Certificates of chunks are merged step by
 * step in the same order as in one long call; with energy sums, a chunk is one step, so that the
 * order of the additions is the same too. */
#include "schedule/scheduler_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "schedule/pace.h"

/* Least work that justifies waking the other threads. */
static const double PARALLEL_NS = 150e3;
/* Least time of a world's step beside which a copy of the world costs nothing. */
static const double LASTING_STEP_NS = 1e6;

static tb_status grow_worlds(td_batch *batch, int32_t worlds, tb_error *error)
{
    if (worlds <= batch->worlds_capacity) return TB_OK;
    const size_t n = (size_t)worlds;
    tb_state **states = realloc(batch->states, n * sizeof *states);
    if (states != NULL) batch->states = states;
    tb_certificate *certificates = realloc(batch->certificates, n * sizeof *certificates);
    if (certificates != NULL) batch->certificates = certificates;
    int64_t *expected = realloc(batch->expected, n * sizeof *expected);
    if (expected != NULL) batch->expected = expected;
    td_saved *saved = realloc(batch->saved, n * sizeof *saved);
    if (saved != NULL) batch->saved = saved;
    if (states == NULL || certificates == NULL || expected == NULL || saved == NULL)
        return tb_fail_memory(error, n * sizeof *certificates, "a batch");
    batch->worlds_capacity = worlds;
    return TB_OK;
}

/* On a card all launches are one stepper's. */
static tb_status make_steppers(td_batch *batch, const td_device *device, tb_error *error)
{
    tb_step_options options = tb_step_defaults();
    tb_status status = TB_OK;
    options.threads = batch->packers;
    if (batch->card) {
        td_device_apply(device, &options);
        return tb_stepper_create(&options, &batch->parallel, error);
    }
    if (batch->threads > 1) status = tb_stepper_create(&options, &batch->parallel, error);
    options.threads = 1;
    if (status == TB_OK) status = tb_stepper_create(&options, &batch->serial, error);
    return status;
}

tb_status td_batch_create(td_batch *batch, const td_device *device, int32_t threads, int32_t worlds,
                          tb_error *error)
{
    const bool card = device != NULL && device->backend != TB_BACKEND_CPU;
    *batch = (td_batch){.threads = card ? 1 : threads,
                        .packers = threads,
                        .slice_ns = card ? TD_CARD_SLICE_NS : TD_SLICE_NS,
                        .card = card};
    tb_status status = make_steppers(batch, device, error);
    if (status == TB_OK) status = grow_worlds(batch, worlds, error);
    if (status != TB_OK) td_batch_destroy(batch);
    return status;
}

void td_batch_destroy(td_batch *batch)
{
    tb_stepper_destroy(batch->serial);
    tb_stepper_destroy(batch->parallel);
    free(batch->list);
    free(batch->states);
    free(batch->certificates);
    free(batch->expected);
    free(batch->saved);
    *batch = (td_batch){0};
}

void td_batch_clear(td_batch *batch)
{
    batch->jobs = batch->worlds = 0;
    batch->step_ns = 0;
}

bool td_batch_add(td_batch *batch, td_job *job, double step_ns, double backlog_ns)
{
    if (batch->jobs == batch->capacity) {
        const int32_t capacity = batch->capacity > 0 ? 2 * batch->capacity : 64;
        td_job **grown = realloc(batch->list, (size_t)capacity * sizeof *batch->list);
        if (grown == NULL) return false;
        batch->list = grown;
        batch->capacity = capacity;
    }
    job->step_ns = step_ns;
    job->backlog_ns = backlog_ns;
    job->status = TB_OK;
    job->moved = job->finished = false;
    job->cut = 0;
    batch->list[batch->jobs++] = job;
    batch->worlds += job->worlds;
    batch->step_ns += step_ns;
    return true;
}

/* ---- jobs ---- */

static bool frozen(const td_job *job, int32_t world)
{
    return job->steps_done > 0 && job->certificates[world].status == TB_DIVERGED;
}

static void merge(td_job *job, int32_t world, const tb_certificate *certificate)
{
    if (job->steps_done == 0)
        job->certificates[world] = *certificate;
    else
        tb_certificate_merge(&job->certificates[world], certificate);
}

/* The first failure of a job is kept. */
static void fail_job(td_job *job, tb_status status, const tb_error *error)
{
    if (status == TB_OK || job->status != TB_OK) return;
    job->status = status;
    job->error = *error;
    job->error.status = status;
}

/* ---- a step that ends within ---- */

/* Whether nobody waits for the only job of a batch any more. The solvers of all worlds ask so at every sweep, and
 * the clock is read at few of them. */
static bool is_unwanted(void *context)
{
    enum { QUESTIONS = 16 };
    td_batch *batch = context;
    tb_error ignored;
    if (atomic_load_explicit(&batch->unwanted, memory_order_relaxed)) return true;
    const uint32_t before = atomic_fetch_add_explicit(&batch->questions, 1, memory_order_relaxed);
    if ((before + 1) % QUESTIONS != 0) return false;
    if (td_job_wanted(batch->list[0], td_monotonic_ns(), &ignored) == TB_OK) return false;
    atomic_store_explicit(&batch->unwanted, true, memory_order_relaxed);
    return true;
}

static void forget_saved(td_batch *batch, int32_t worlds)
{
    for (int32_t w = 0; w < worlds; w++) tb_bytes_destroy(batch->saved[w].bytes);
}

/* Saves the worlds of the only job of a batch. False if out of memory. */
static bool save_worlds(td_batch *batch)
{
    const td_job *job = batch->list[0];
    tb_error error;
    for (int32_t w = 0; w < job->worlds; w++) {
        td_saved *saved = &batch->saved[w];
        *saved = (td_saved){0};
        if (tb_state_snapshot(job->states[w], &saved->bytes, &saved->size, &error) == TB_OK)
            continue;
        forget_saved(batch, w);
        return false;
    }
    return true;
}

/* A step that lasts can end within where nobody waits for it any more: that of one world, whose state then is
 * that of the last whole step, or of the worlds of one job, which are saved before, since some of them may have
 * made the step. The first step of a job is not known to be short. */
static bool can_end_within(const td_batch *batch, int32_t steps)
{
    const td_job *job = batch->list[0];
    if (batch->card || batch->jobs > 1) return false;
    if (batch->worlds == 1) return true;
    const double known = (double)job->step_estimate_ns;
    return steps == 1 && (known == 0 || known > LASTING_STEP_NS * job->worlds);
}

/* All worlds go back to the last whole step. */
static void take_back(td_batch *batch, int32_t steps)
{
    td_job *job = batch->list[0];
    tb_status status = TB_CANCELLED;
    tb_error error = {0};
    for (int32_t w = 0; w < job->worlds; w++) {
        const td_saved *saved = &batch->saved[w];
        tb_error own = {0};
        const tb_status result = tb_state_restore(job->states[w], saved->bytes, saved->size, &own);
        if (result == TB_OK) continue;
        status = result;
        error = own;
    }
    job->cut = steps;
    fail_job(job, status, &error);
}

/* ---- one launch ---- */

static void launch_serial(td_batch *batch, int32_t steps)
{
    for (int32_t i = 0; i < batch->jobs; i++) {
        td_job *job = batch->list[i];
        for (int32_t w = 0; w < job->worlds; w++) {
            if (frozen(job, w)) continue;
            const int64_t before = tb_state_steps(job->states[w]);
            tb_certificate certificate;
            tb_error error;
            const tb_status status =
                tb_step(batch->serial, job->states[w], steps, &certificate, &error);
            const int64_t made = tb_state_steps(job->states[w]) - before;
            if (made > 0 || status != TB_CANCELLED) merge(job, w, &certificate);
            job->moved = true;
            if (status == TB_CANCELLED) job->cut = steps - (int32_t)made;
            if (status != TB_DIVERGED) fail_job(job, status, &error);
        }
    }
}

/* A world that stopped short without having diverged failed; the batch's own status is that of the
 * first world that stopped, for any reason. */
static void judge(const td_batch *batch, td_job *job, int32_t index, int32_t world,
                  tb_status status, const tb_error *error)
{
    const tb_certificate *c = &batch->certificates[index];
    if (c->status == TB_DIVERGED || tb_state_steps(batch->states[index]) == batch->expected[index])
        return;
    tb_error mine = {0};
    if (status == TB_OK || status == TB_DIVERGED)
        status = tb_fail(&mine, TB_RESOURCE_EXHAUSTED, "world %d: no memory for a step", world);
    else
        tb_fail(&mine, status, "%s", error->message);
    fail_job(job, status, &mine);
}

static void launch_together(td_batch *batch, tb_stepper *stepper, int32_t steps)
{
    int32_t n = 0;
    for (int32_t i = 0; i < batch->jobs; i++) {
        const td_job *job = batch->list[i];
        for (int32_t w = 0; w < job->worlds; w++) {
            if (frozen(job, w)) continue;
            batch->states[n] = job->states[w];
            batch->expected[n++] = tb_state_steps(job->states[w]) + steps;
        }
    }
    tb_error error = {0};
    const tb_status status =
        tb_step_batch(stepper, batch->states, n, steps, batch->certificates, &error);
    if (atomic_load(&batch->unwanted)) {
        take_back(batch, steps);
        return;
    }
    n = 0;
    for (int32_t i = 0; i < batch->jobs; i++) {
        td_job *job = batch->list[i];
        for (int32_t w = 0; w < job->worlds; w++) {
            if (frozen(job, w)) continue;
            judge(batch, job, n, w, status, &error);
            job->moved =
                job->moved || tb_state_steps(batch->states[n]) > batch->expected[n] - steps;
            /* a world that did not move keeps its certificate */
            const tb_certificate *c = &batch->certificates[n++];
            if (c->step > 0 || c->status != TB_OK) merge(job, w, c);
        }
    }
}

/* Number of steps that takes about one time slice, at most that of the shortest job. */
static int32_t choose_steps(const td_batch *batch, double threads)
{
    int32_t steps = INT32_MAX;
    for (int32_t i = 0; i < batch->jobs; i++) {
        const td_job *job = batch->list[i];
        const int32_t left = job->steps - job->steps_done;
        if (left < steps) steps = left;
        /* an unmeasured job, or one that sums up energies, goes step by step */
        if (job->step_estimate_ns == 0 || job->options.report_energy) return 1;
    }
    const double fit = (double)batch->slice_ns * threads / fmax(batch->step_ns, 1);
    return fit < 1 ? 1 : fit < (double)steps ? (int32_t)fit : steps;
}

static void count_results(const td_job *job, td_metrics *metrics)
{
    int64_t diverged = 0, not_converged = 0;
    for (int32_t w = 0; w < job->worlds; w++) {
        diverged += job->certificates[w].status == TB_DIVERGED;
        not_converged += job->certificates[w].status == TB_NOT_CONVERGED;
    }
    if (diverged > 0) td_metrics_add(metrics, TD_METRIC_DIVERGED, diverged);
    if (not_converged > 0) td_metrics_add(metrics, TD_METRIC_NOT_CONVERGED, 1);
}

/* True if every job has launched before; a first launch also loads models and allocates. */
static bool is_known(const td_batch *batch)
{
    for (int32_t i = 0; i < batch->jobs; i++)
        if (batch->list[i]->step_estimate_ns == 0) return false;
    return true;
}

/* The pace of a scene, by a launch in which worlds of it alone went all the way. */
static void note_pace(const td_batch *batch, int32_t steps, int64_t took_ns, double threads)
{
    const uint64_t pace = batch->list[0]->pace;
    if (batch->paces == NULL || pace == 0) return;
    for (int32_t i = 0; i < batch->jobs; i++) {
        const td_job *job = batch->list[i];
        if (job->pace != pace || job->status != TB_OK) return;
        for (int32_t w = 0; w < job->worlds; w++)
            if (job->certificates[w].status == TB_DIVERGED) return;
    }
    td_pace_note(batch->paces, pace, batch->card ? TB_BACKEND_GPU : TB_BACKEND_CPU, batch->worlds,
                 (double)took_ns * threads / steps, td_monotonic_ns());
}

/* Writes down why nobody waits for a job that ended within a step, and after how many steps. */
static void tell_end(td_job *job)
{
    tb_error why = {0};
    const tb_status status = td_job_wanted(job, td_monotonic_ns(), &why);
    if (status == TB_OK) return;
    job->status = status;
    job->error = why;
}

/* Distributes a launch's steps, times and results over its jobs. */
static void settle(td_batch *batch, int32_t steps, int64_t took_ns, double threads,
                   td_metrics *metrics)
{
    for (int32_t i = 0; i < batch->jobs; i++) {
        td_job *job = batch->list[i];
        const int32_t made = job->status == TB_OK || job->moved ? steps - job->cut : 0;
        job->steps_done += made;
        const double share = job->step_ns / batch->step_ns;
        job->compute_ns += (int64_t)((double)took_ns * share);

        /* device time of one thread; the average of a few launches is steadier than the last */
        const double measured = (double)took_ns * threads * share / (double)steps;
        const double known = (double)job->step_estimate_ns;
        const double estimate = known > 0 ? 0.75 * known + 0.25 * measured : measured;
        job->step_estimate_ns = estimate < 1 ? 1 : (int64_t)estimate;

        bool all_frozen = true;
        for (int32_t w = 0; w < job->worlds && all_frozen; w++)
            all_frozen = job->certificates[w].status == TB_DIVERGED;
        job->finished = job->status != TB_OK || job->steps_done >= job->steps || all_frozen;
        if (job->finished) count_results(job, metrics);
        if (job->status == TB_CANCELLED) tell_end(job);
        td_metrics_add(metrics, TD_METRIC_WORLD_STEPS, (int64_t)made * job->worlds);
    }
}

static void fail_all(td_batch *batch, tb_status status, const tb_error *error)
{
    for (int32_t i = 0; i < batch->jobs; i++) {
        fail_job(batch->list[i], status, error);
        batch->list[i]->finished = true;
    }
}

int64_t td_batch_launch(td_batch *batch, td_metrics *metrics)
{
    const int64_t begin = td_monotonic_ns();
    const bool known = is_known(batch);
    double threads = batch->threads < batch->worlds ? batch->threads : batch->worlds;
    int32_t steps = choose_steps(batch, threads);
    const bool parallel = batch->card || (batch->parallel != NULL && batch->worlds > 1 &&
                                          batch->step_ns * steps > PARALLEL_NS);
    if (!parallel) {
        threads = 1;
        steps = choose_steps(batch, 1);
    }

    tb_error error = {0};
    tb_stepper *stepper = parallel ? batch->parallel : batch->serial;
    tb_step_options options = batch->list[0]->options;
    options.threads = parallel ? batch->packers : 1;
    options.solve.threads = 1;
    tb_status status = grow_worlds(batch, batch->worlds, &error);
    const bool within = status == TB_OK && can_end_within(batch, steps);
    const bool saved = within && batch->worlds > 1 && save_worlds(batch);
    atomic_store(&batch->unwanted, false);
    if (saved || (within && batch->worlds == 1)) {
        options.solve.cancelled = is_unwanted;
        options.solve.cancelled_context = batch;
    }
    if (status == TB_OK) status = tb_stepper_set_options(stepper, &options, &error);
    if (status != TB_OK)
        fail_all(batch, status, &error);
    else if (parallel || saved)
        launch_together(batch, stepper, steps);
    else
        launch_serial(batch, steps);
    if (saved) forget_saved(batch, batch->list[0]->worlds);
    if (status != TB_OK) return 0;
    const int64_t took = td_monotonic_ns() - begin;
    if (known) note_pace(batch, steps, took, threads);
    settle(batch, steps, took, threads, metrics);
    td_metrics_add(metrics, TD_METRIC_BATCHES, 1);
    td_metrics_add(metrics, TD_METRIC_BATCHED_REQUESTS, batch->jobs);
    return took;
}
