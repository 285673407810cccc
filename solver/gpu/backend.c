/* The GPU backend: the table that the library finds in the plug-in.
 *
 * A call takes its worlds in pieces that fit the card's memory. A world stopped by a capacity
 * continues in the next round with a larger one: nothing is dropped, and the larger capacity holds
 * for all worlds of its model from then on. So a warm batch is one launch, or a few of many steps
 * each (choose.h).
 *
 * A world with so many shapes that it would keep its team busy and the card idle is stepped alone,
 * in large-world mode, if that mode supports it; results do not depend on the choice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/base.h"
#include "gpu/batch/small/warp_fits.h"
#include "gpu/coloured/rows.h"
#include "gpu/large/large_step.h"
#include "gpu/grid/fields.h"
#include "gpu/penalty/pairs.h"
#include "gpu/penalty/traverse.h"
#include "gpu/penalty/volume.h"
#include "gpu/planar/betz.h"
#include "gpu/qp/program.h"
#include "gpu/qp/symgbmm.h"
#include "gpu/stored/stored.h"
#include "gpu/shared_card.h"

/* of the card's memory: limit of model images */
static const double MODELS_SHARE = 0.25;

/* One stepper on a card. */
typedef struct card_stepper {
    tb_gpu_card *card;
    int32_t threads;
} card_stepper;

__attribute__((visibility("default"))) extern const tb_backend tb_backend_plugin;

static void destroy(void *context)
{
    card_stepper *g = context;
    tb_gpu_card_leave(g->card);
    free(g);
}

static tb_status check(const tb_step_options *options, tb_error *error)
{
    if (tb_solver_number(options->solve.solver) == TB_SOLVER_NONE)
        return tb_fail_field(error, TB_UNSUPPORTED, "solve.solver",
                             "solver '%s' does not run on the GPU", options->solve.solver);
    if (options->precision == TB_FLOAT && options->report_energy)
        return tb_fail_field(error, TB_UNSUPPORTED, "report_energy",
                             "energies are not reported in float on the GPU");
    return TB_OK;
}

static tb_status create(const tb_step_options *options, void **context, tb_error *error)
{
    char reason[TB_ERROR_MESSAGE_SIZE];
    tb_status status = check(options, error);
    if (status != TB_OK) return status;
    const int32_t devices = tb_gpu_count(reason);
    if (options->device >= devices)
        return tb_fail_field(error, TB_NOT_FOUND, "device", "device %d of %d of backend 'gpu'",
                             options->device, devices);
    card_stepper *g = calloc(1, sizeof *g);
    if (g == NULL) return tb_fail_memory(error, sizeof *g, "the GPU backend");
    status = tb_gpu_card_enter(options->device, &tb_backend_plugin, &g->card, error);
    if (status != TB_OK) {
        free(g);
        return status;
    }
    g->threads = tb_parallel_threads(options->threads);
    *context = g;
    return TB_OK;
}

static bool serves(const void *context, const tb_step_options *options)
{
    const card_stepper *g = context;
    return options->device == g->card->index;
}

/* ---- a call ---- */

static tb_status reserve_tasks(tb_gpu_batch *b, int32_t worlds, tb_error *error)
{
    if (worlds <= b->capacity) return TB_OK;
    const size_t n = (size_t)worlds;
    tb_gpu_task *tasks = realloc(b->tasks, n * sizeof *tasks);
    if (tasks != NULL) b->tasks = tasks;
    tb_gpu_move *moves = realloc(b->moves, n * sizeof *moves);
    if (moves != NULL) b->moves = moves;
    int32_t *pending = realloc(b->pending, n * sizeof *pending);
    if (pending != NULL) b->pending = pending;
    int64_t *models = realloc(b->tables.models, n * sizeof *models);
    if (models != NULL) b->tables.models = models;
    if (tasks == NULL || moves == NULL || pending == NULL || models == NULL)
        return tb_fail_memory(error, n * sizeof *tasks, "a batch");
    b->capacity = worlds;
    return TB_OK;
}

/* Brings data of a state that another card has newer to the host first. */
static tb_status drop_copy_of_other_card(const tb_gpu_batch *b, tb_state *state, tb_error *error)
{
    if (state->device_copy == NULL ||
        (state->device_copy->backend == &tb_backend_plugin &&
         tb_gpu_device_copy_of(state)->device_copies == b->device_copies))
        return TB_OK;
    const tb_status status = tb_state_sync_to_host(state, TB_STATE_ALL, error);
    if (status == TB_OK) tb_state_drop_device_copy(state);
    return status;
}

static tb_status make_tasks(tb_gpu_batch *b, tb_state *const *states, const tb_course *courses,
                            int32_t worlds, int32_t steps, tb_error *error)
{
    tb_status status = reserve_tasks(b, worlds, error);
    if (status != TB_OK) return status;
    const size_t limit = (size_t)((double)b->memory * MODELS_SHARE);
    tb_gpu_models_begin(&b->models, &b->device, limit);
    const tb_model *last = NULL;
    for (int32_t i = 0; i < worlds; i++) {
        tb_gpu_task *task = &b->tasks[i];
        *task = (tb_gpu_task){.state = states[i],
                              .course = courses != NULL ? &courses[i] : NULL,
                              .steps_left = courses != NULL ? courses[i].steps : steps};
        if (states[i]->model == last) {
            task->model = b->tasks[i - 1].model;
            task->model->holders++;
            continue;
        }
        last = states[i]->model;
        status = tb_gpu_models_hold(&b->models, &b->device, last, &task->model, error);
        if (status != TB_OK) return status;
    }
    return TB_OK;
}

/* True if the world has steps left and no failure that a larger capacity cannot cure. */
static bool goes_on(const tb_gpu_task *task)
{
    if (task->steps_left == 0) return false;
    if (task->status == TB_OK) return true;
    return task->status == TB_RESOURCE_EXHAUSTED &&
           (task->contacts_needed > 0 || task->arena_needed > 0);
}

/* The kernels of small worlds and of piles are of float: in double that of small worlds was slower than the
 * general ones where worlds differ (results of tests/bench/gpu). */
static tb_gpu_way way_of(const tb_model *model, const tb_step_options *options)
{
    if (options->precision != TB_FLOAT) return TB_GPU_GENERAL;
    if (tb_gpu_warp_fits(model, options)) return TB_GPU_BY_WARP;
    return tb_gpu_pile_fits(model, options) ? TB_GPU_BY_PILE : TB_GPU_GENERAL;
}

static void choose_ways(tb_gpu_batch *b, const tb_step_options *options, int32_t worlds)
{
    const tb_model *last = NULL;
    tb_gpu_way usual = TB_GPU_GENERAL;
    for (int32_t i = 0; i < worlds; i++) {
        const tb_model *model = b->tasks[i].state->model;
        if (model != last) usual = way_of(model, options);
        b->tasks[i].usual = usual;
        b->tasks[i].way = tb_gpu_next_way(&b->tasks[i]);
        last = model;
    }
}

static int32_t list_pending(tb_gpu_batch *b, int32_t worlds)
{
    int32_t count = 0;
    for (int way = 0; way < TB_GPU_WORLD_WAYS; way++)
        for (int32_t i = 0; i < worlds; i++)
            if ((int)b->tasks[i].way == way && goes_on(&b->tasks[i])) b->pending[count++] = i;
    return count;
}

/* Enlarges a capacity for all worlds of a model: to one and a half times the request, since the
 * request is only the need up to the refusal. */
static void learn(tb_gpu_batch *b, const int32_t *pending, int32_t count)
{
    bool grew = false;
    for (int32_t i = 0; i < count; i++) {
        const tb_gpu_task *task = &b->tasks[pending[i]];
        tb_gpu_model *model = task->model;
        if (task->status != TB_RESOURCE_EXHAUSTED) continue;
        if (task->contacts_needed > model->contact_capacity) {
            const int64_t wanted = (int64_t)task->contacts_needed + task->contacts_needed / 2;
            model->contact_capacity = wanted < INT32_MAX ? (int32_t)wanted : INT32_MAX;
            grew = true;
        }
        if (task->arena_needed > model->arena_size) {
            const size_t wanted = task->arena_needed + task->arena_needed / 2;
            model->arena_size = (wanted + 4095) / 4096 * 4096;
            grew = true;
        }
    }
    b->regrowths += grew;
}

/* Fetches the results of a piece if worlds do not stay on the card. */
static tb_status sync_piece_to_host(tb_gpu_batch *b, const tb_step_options *options,
                                    const int32_t *piece, int32_t count, tb_error *error)
{
    if (options->resident) return TB_OK;
    tb_state **states = malloc((size_t)count * sizeof *states);
    if (states == NULL) return tb_fail_memory(error, (size_t)count * sizeof *states, "a batch");
    for (int32_t i = 0; i < count; i++) states[i] = b->tasks[piece[i]].state;
    const tb_status status = tb_gpu_device_copies_fetch(states, count, TB_STATE_ALL, error);
    free(states);
    return status;
}

static tb_status run_all(tb_gpu_batch *b, const tb_step_options *options, int32_t worlds,
                         tb_error *error)
{
    choose_ways(b, options, worlds);
    for (int32_t count; (count = list_pending(b, worlds)) > 0;) {
        if (options->solve.cancelled && options->solve.cancelled(options->solve.cancelled_context))
            return tb_fail(error, TB_CANCELLED, "%s", tb_status_text(TB_CANCELLED));
        for (int32_t first = 0, n; first < count; first += n) {
            const int32_t *piece = b->pending + first;
            const tb_gpu_way way = b->tasks[piece[0]].way;
            tb_status status = tb_gpu_batch_run(b, options, piece, count - first, &n, error);
            if (status == TB_OK) status = sync_piece_to_host(b, options, piece, n, error);
            if (status != TB_OK) return status;
            learn(b, piece, n);
            if (way == TB_GPU_ONE_GENERAL) break; /* so that these worlds go on with all others */
        }
    }
    return TB_OK;
}

/* The first world that failed speaks, in the CPU's words. */
static tb_status tell(const tb_gpu_batch *b, int32_t worlds, tb_error *error)
{
    for (int32_t i = 0; i < worlds; i++) {
        const tb_gpu_task *task = &b->tasks[i];
        if (task->status == TB_OK) continue;
        char name[32] = "";
        if (worlds > 1) snprintf(name, sizeof name, "world %d: ", i);
        if (task->status == TB_DIVERGED)
            return tb_fail(error, TB_DIVERGED,
                           "%sthe world diverged in step %lld at %.9g s and is frozen", name,
                           (long long)task->state->steps + 1, task->state->time);
        return tb_fail(error, task->status, "%s%s", name, tb_status_text(task->status));
    }
    return TB_OK;
}

/* ---- large worlds ---- */

static tb_status ask(const tb_step_options *options, tb_error *error)
{
    const tb_solve_options *solve = &options->solve;
    if (solve->cancelled == NULL || !solve->cancelled(solve->cancelled_context)) return TB_OK;
    return tb_fail(error, TB_CANCELLED, "%s", tb_status_text(TB_CANCELLED));
}

/* Steps one world in large-world mode; asks the caller between steps, if required, whether to
 * continue. */
static tb_status step_on(tb_gpu_batch *b, tb_gpu_large_world *large, tb_gpu_task *task,
                         const tb_step_options *options, tb_error *error)
{
    tb_status status = TB_OK;
    do { /* once at least: a world that is frozen says so */
        const int32_t steps =
            tb_gpu_choose_steps(task->steps_left, options->solve.cancelled != NULL, false);
        tb_certificate certificate;
        status = ask(options, error);
        if (status == TB_OK)
            status = tb_gpu_large_step(&b->device, b->device_copies, large, task->model->image,
                                       task->state, options, steps, &certificate, &b->copied_bytes,
                                       error);
        if (status == TB_OK) tb_certificate_merge(&task->merged, &certificate);
        task->steps_left -= steps;
    } while (task->steps_left > 0 && status == TB_OK && task->state->status == TB_OK);
    return status;
}

/* The same, with courses applied and recorded by the host. */
static tb_status step_along(tb_gpu_batch *b, tb_gpu_large_world *large, tb_gpu_task *task,
                            const tb_step_options *options, tb_error *error)
{
    tb_state *s = task->state;
    const tb_course *course = task->course;
    tb_arena arena = {0};
    tb_status status = TB_OK;
    bool frozen = false;
    for (int32_t i = 0; i < course->steps && status == TB_OK && !frozen; i++) {
        tb_certificate certificate;
        status = ask(options, error);
        if (status == TB_OK) status = tb_state_sync_to_host(s, TB_PARTS_NUMBERS, error);
        if (status == TB_OK && tb_course_apply_inputs(s, course, i, &arena) != TB_OK)
            status = tb_fail_memory(error, 0, "the inputs of a course");
        tb_state_mark_host_newer(s, tb_course_arrays(course));
        if (status == TB_OK)
            status = tb_gpu_large_step(&b->device, b->device_copies, large, task->model->image, s,
                                       options, 1, &certificate, &b->copied_bytes, error);
        if (status == TB_OK) status = tb_state_sync_to_host(s, TB_STATE_ALL, error);
        if (status != TB_OK) break;
        tb_course_record_outputs(s, course, i, &certificate);
        tb_certificate_merge(&task->merged, &certificate);
        frozen = certificate.status == TB_DIVERGED;
        tb_arena_reset(&arena);
    }
    tb_arena_destroy(&arena);
    return status;
}

/* True if the failure of one world concerns the others. */
static bool ends_all(tb_status status)
{
    return status == TB_ABORTED || status == TB_CANCELLED;
}

/* Large worlds go to the card one after another. One that finds too little memory does not stop
 * the others; its failure is reported at the end. */
static tb_status step_large(card_stepper *g, const tb_step_options *options, int32_t worlds,
                            tb_error *first, tb_error *error)
{
    tb_gpu_batch *b = &g->card->batch;
    tb_gpu_large_world *large = &g->card->large;
    for (int32_t i = 0; i < worlds; i++) {
        tb_gpu_task *task = &b->tasks[i];
        if (!tb_gpu_large_takes(task->state, options, b->schedule.large)) continue;
        const double before = large->compute_seconds;
        const int64_t regrowths = large->regrowths;
        tb_status status =
            (task->course == NULL ? step_on : step_along)(b, large, task, options, error);
        if (status == TB_OK) {
            status = sync_piece_to_host(b, options, &i, 1, error);
        } else if (status != TB_ABORTED) { /* the state reached until then */
            tb_error unread;
            (void)sync_piece_to_host(b, options, &i, 1, &unread);
        }
        task->steps_left = 0;
        task->status = status == TB_OK ? task->state->status : status;
        b->launches++;
        b->regrowths += large->regrowths > regrowths;
        if (large->compute_seconds > before) b->compute_seconds += large->compute_seconds - before;
        if (ends_all(status)) return status;
        if (status != TB_OK && first->status == TB_OK) {
            if (error != NULL) *first = *error;
            first->status = status;
        }
    }
    return TB_OK;
}

/* A large world keeps its memory from call to call; a call that finds none free takes that
 * memory. */
static bool give_large_world_up(card_stepper *g, tb_status status)
{
    tb_gpu_large_world *large = &g->card->large;
    if (status != TB_RESOURCE_EXHAUSTED || large->world == NULL) return false;
    tb_gpu_large_destroy(large, &g->card->batch.device);
    return true;
}

/* The launches have the card, readers of other worlds may come and go. */
static tb_status step_here(card_stepper *g, const tb_step_options *options, tb_state *const *states,
                           const tb_course *courses, int32_t worlds, int32_t steps,
                           tb_certificate *certificates, tb_error *error)
{
    tb_gpu_batch *b = &g->card->batch;
    tb_gpu_device_copies *device_copies = &g->card->device_copies;
    pthread_mutex_lock(&device_copies->lock);
    b->threads = device_copies->threads = g->threads;
    pthread_mutex_unlock(&device_copies->lock);
    b->schedule = tb_gpu_fixed_schedule();
    /* copies of other cards are fetched there, so this card is entered later */
    tb_status status = TB_OK;
    for (int32_t i = 0; i < worlds && status == TB_OK; i++)
        status = drop_copy_of_other_card(b, states[i], error);
    if (status == TB_OK) status = tb_gpu_device_enter(&b->device, error);
    if (status == TB_OK) status = make_tasks(b, states, courses, worlds, steps, error);
    if (give_large_world_up(g, status))
        status = make_tasks(b, states, courses, worlds, steps, error);
    if (status != TB_OK) return status;
    tb_error first = {0};
    status = step_large(g, options, worlds, &first, error);
    if (status == TB_OK) status = run_all(b, options, worlds, error);
    if (give_large_world_up(g, status)) status = run_all(b, options, worlds, error);
    if (status == TB_OK && first.status != TB_OK) {
        status = first.status;
        if (error != NULL) *error = first;
    }
    for (int32_t i = 0; i < worlds && certificates != NULL; i++)
        certificates[i] = b->tasks[i].merged;
    return status == TB_OK ? tell(b, worlds, error) : status;
}

static tb_status step_batch(void *context, const tb_step_options *options, tb_state *const *states,
                            const tb_course *courses, int32_t worlds, int32_t steps,
                            tb_certificate *certificates, tb_error *error)
{
    card_stepper *g = context;
    tb_status status = check(options, error);
    if (status != TB_OK || worlds == 0) return status;
    pthread_mutex_lock(&g->card->stepping);
    status = step_here(g, options, states, courses, worlds, steps, certificates, error);
    tb_gpu_card_publish(g->card);
    pthread_mutex_unlock(&g->card->stepping);
    return status;
}

static tb_status warm(void *context, tb_error *error)
{
    card_stepper *g = context;
    tb_gpu_device *d = &g->card->batch.device;
    pthread_mutex_lock(&g->card->stepping);
    tb_status status = tb_gpu_device_enter(d, error);
    if (status == TB_OK)
        status = tb_gpu_check(d, tb_gpu_warm_steps(d->stream), "warming steps up", error);
    if (status == TB_OK)
        status = tb_gpu_check(d, tb_gpu_warm_steps_f32(d->stream), "warming steps up", error);
    if (status == TB_OK) status = tb_gpu_wait(d, "warming up", error);
    if (status == TB_OK) status = tb_gpu_large_warm(d, error);
    tb_gpu_card_publish(g->card);
    pthread_mutex_unlock(&g->card->stepping);
    return status;
}

static tb_status use_of(int32_t device, tb_device_use *use, tb_error *error)
{
    (void)error;
    tb_gpu_card_use(device, use);
    return TB_OK;
}

static void measure(const void *context, tb_stepper_use *use)
{
    const card_stepper *g = context;
    const tb_gpu_batch *b = &g->card->batch;
    tb_gpu_device_copies *device_copies = &g->card->device_copies;
    pthread_mutex_lock(&device_copies->lock);
    use->host_bytes = b->device.host_bytes + device_copies->device.host_bytes;
    use->device_bytes = b->device.device_bytes + device_copies->device.device_bytes +
                        tb_gpu_soft_bytes(g->card->index);
    use->allocations = b->device.allocations + device_copies->device.allocations;
    use->regrowths = b->regrowths;
    use->copied_bytes = b->copied_bytes + device_copies->use.copied_bytes;
    use->copy_seconds = b->copy_seconds + device_copies->use.copy_seconds;
    use->compute_seconds = b->compute_seconds;
    use->lost = b->device.lost || device_copies->device.lost;
    pthread_mutex_unlock(&device_copies->lock);
}

const tb_backend tb_backend_plugin = {.abi = TB_BACKEND_ABI,
                                      .name = "gpu",
                                      .prepare = tb_gpu_prepare,
                                      .devices = tb_gpu_count,
                                      .describe = tb_gpu_describe,
                                      .create = create,
                                      .destroy = destroy,
                                      .serves = serves,
                                      .step = step_batch,
                                      .measure = measure,
                                      .fix_schedule = tb_gpu_fix_schedule,
                                      .warm = warm,
                                      .use = use_of,
                                      .fetch = tb_gpu_device_copies_fetch,
                                      .share = tb_gpu_device_copy_share,
                                      .release = tb_gpu_device_copy_release,
                                      .program_open = tb_gpu_program_open,
                                      .program_solve = tb_gpu_program_solve,
                                      .program_forget = tb_gpu_program_forget,
                                      .program_close = tb_gpu_program_close,
                                      .program_leave = tb_gpu_program_leave,
                                      .symgbmm = tb_gpu_symgbmm,
                                      .prox_iterate = tb_gpu_prox_iterate,
                                      .planar_open = tb_gpu_planar_open,
                                      .planar_sweep = tb_gpu_planar_sweep,
                                      .planar_close = tb_gpu_planar_close,
                                      .rows_iterate = tb_gpu_rows_iterate,
                                      .volume_open = tb_gpu_volume_open,
                                      .volume_run = tb_gpu_volume_run,
                                      .volume_close = tb_gpu_volume_close,
                                      .soft_open = tb_gpu_soft_open,
                                      .soft_call = tb_gpu_soft_call,
                                      .soft_close = tb_gpu_soft_close,
                                      .box_pairs = tb_gpu_box_pairs,
                                      .traverse_trees = tb_gpu_traverse_trees};
