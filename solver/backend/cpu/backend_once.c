/* The CPU backend: worlds handed out to threads, each with a workspace of its own.
 *
 * A world is stepped start to end by one thread, so its bytes cannot depend on its neighbours or on
 * the number of threads. Which precision runs is one function pointer. */
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/error.h"
#include "penalty/penalty.h"
#include "step/planar/planar.h"
#include "step/soft.h"
#include "step/step.h"

TB_BOTH_PRECISIONS(tb_status, tb_world_step,
                   (tb_state * state, const tb_step_options *options, tb_workspace *workspace,
                    tb_certificate *certificate, tb_error *error))

/* Working memory of a thread, kept between steps. */
typedef struct cpu_memory {
    tb_workspace workspace;
    tb_planar_kept planar;
} cpu_memory;

typedef struct cpu_context {
    int32_t wanted; /* threads that the options named */
    int32_t threads;
    cpu_memory *memory; /* threads */
    /* of a batch, kept so that a warm one allocates nothing */
    tb_status *statuses; /* capacity: worlds */
    int32_t capacity;
    tb_error *errors; /* threads: the first failure each met */
    int32_t *failed;  /* threads: world of that failure, -1 */
} cpu_context;

typedef struct batch {
    cpu_context *context;
    const tb_step_options *options;
    tb_state *const *states;
    const tb_course *courses; /* or NULL */
    int32_t steps;
    tb_certificate *certificates; /* or NULL */
} batch;

static void destroy(void *context)
{
    cpu_context *c = context;
    for (int32_t i = 0; i < c->threads && c->memory; i++) {
        tb_arena_destroy(&c->memory[i].workspace.arena);
        tb_penalty_destroy(c->memory[i].workspace.penalty);
        tb_planar_kept_destroy(&c->memory[i].planar);
    }
    free(c->memory);
    free(c->statuses);
    free(c->errors);
    free(c->failed);
    free(c);
}

static tb_status create(const tb_step_options *options, void **context, tb_error *error)
{
    cpu_context *c = calloc(1, sizeof *c);
    if (!c) return tb_fail_memory(error, sizeof *c, "the CPU backend");
    c->wanted = options->threads;
    c->threads = tb_parallel_threads(options->threads);
    const size_t threads = (size_t)c->threads;
    c->memory = calloc(threads, sizeof *c->memory);
    c->errors = calloc(threads, sizeof *c->errors);
    c->failed = calloc(threads, sizeof *c->failed);
    if (!c->memory || !c->errors || !c->failed) {
        destroy(c);
        return tb_fail_memory(error, threads * sizeof *c->errors, "the CPU backend");
    }
    *context = c;
    return TB_OK;
}

static tb_status step_once(const tb_step_options *options, tb_state *state, cpu_memory *memory,
                           tb_certificate *certificate, tb_error *error)
{
    tb_workspace *workspace = &memory->workspace;
    if (state->soft) return tb_soft_step_state(state, options, workspace, certificate, error);
    if (options->scheme == TB_SCHEME_PLANAR)
        return tb_planar_step(state, options, workspace, &memory->planar, certificate, error);
    if (options->scheme == TB_SCHEME_VOLUME)
        return tb_penalty_step(state, options, workspace, certificate, error);
    return options->precision == TB_FLOAT
               ? tb_world_step_f32(state, options, workspace, certificate, error)
               : tb_world_step(state, options, workspace, certificate, error);
}

/* Applies a course's inputs and records its outputs, step by step; a step that failed for another
 * reason than divergence has no outputs. */
static tb_status follow(const tb_step_options *options, tb_state *state, const tb_course *course,
                        cpu_memory *memory, tb_certificate *merged, tb_error *error)
{
    tb_status status = TB_OK;
    for (int32_t i = 0; i < course->steps && status == TB_OK; i++) {
        tb_certificate certificate = {0};
        tb_arena_reset(&memory->workspace.arena);
        status = tb_course_apply_inputs(state, course, i, &memory->workspace.arena);
        if (status != TB_OK) return tb_fail_memory(error, 0, "the inputs of a course");
        status = step_once(options, state, memory, &certificate, error);
        if (status == TB_OK || status == TB_DIVERGED)
            tb_course_record_outputs(state, course, i, &certificate);
        tb_certificate_merge(merged, &certificate);
    }
    return status;
}

static tb_status step_world(const batch *b, int32_t world, cpu_memory *memory,
                            tb_certificate *merged, tb_error *error)
{
    tb_state *state = b->states[world];
    tb_status status = TB_OK;
    memset(merged, 0, sizeof *merged);
    if (b->courses) return follow(b->options, state, &b->courses[world], memory, merged, error);
    for (int32_t i = 0; i < b->steps && status == TB_OK; i++) {
        tb_certificate certificate;
        status = step_once(b->options, state, memory, &certificate, error);
        tb_certificate_merge(merged, &certificate);
    }
    return status;
}

static void run_world(void *context, int32_t i, int32_t thread)
{
    const batch *b = context;
    cpu_context *c = b->context;
    tb_certificate merged;
    tb_error error;
    c->statuses[i] = step_world(b, i, &c->memory[thread], &merged, &error);
    if (b->certificates) b->certificates[i] = merged;
    if (c->statuses[i] == TB_OK) return;
    if (c->failed[thread] >= 0 && c->failed[thread] < i) return;
    c->failed[thread] = i;
    c->errors[thread] = error;
}

/* One world alone: the workspace may use all threads within its stages. */
static tb_status step_alone(const batch *b, tb_error *error)
{
    const cpu_context *c = b->context;
    tb_certificate merged;
    c->memory[0].workspace.threads = c->threads;
    const tb_status status = step_world(b, 0, &c->memory[0], &merged, error);
    if (b->certificates) b->certificates[0] = merged;
    return status;
}

static tb_status step_batch(void *context, const tb_step_options *options, tb_state *const *states,
                            const tb_course *courses, int32_t worlds, int32_t steps,
                            tb_certificate *certificates, tb_error *error)
{
    cpu_context *c = context;
    batch b = {.context = c,
               .options = options,
               .states = states,
               .courses = courses,
               .steps = steps,
               .certificates = certificates};
    if (worlds == 0) return TB_OK;
    if (worlds == 1) return step_alone(&b, error);

    if (worlds > c->capacity) {
        const size_t bytes = (size_t)worlds * sizeof *c->statuses;
        tb_status *grown = realloc(c->statuses, bytes);
        if (!grown) return tb_fail_memory(error, bytes, "a batch");
        c->statuses = grown;
        c->capacity = worlds;
    }
    for (int32_t i = 0; i < c->threads; i++) {
        c->memory[i].workspace.threads = 1;
        c->failed[i] = -1;
    }
    tb_parallel_for(worlds, 1, c->threads, run_world, &b);

    /* the first world that failed speaks, whichever thread had it */
    int32_t first = -1;
    for (int32_t i = 0; i < c->threads; i++) {
        if (c->failed[i] < 0 || (first >= 0 && c->failed[first] < c->failed[i])) continue;
        first = i;
    }
    if (first < 0) return TB_OK;
    const int32_t world = c->failed[first];
    return tb_fail_world(error, c->statuses[world], worlds, world, &c->errors[first]);
}

static bool serves(const void *context, const tb_step_options *options)
{
    const cpu_context *c = context;
    return options->threads == c->wanted;
}

static void measure(const void *context, tb_stepper_use *use)
{
    const cpu_context *c = context;
    for (int32_t i = 0; i < c->threads; i++) {
        const cpu_memory *m = &c->memory[i];
        use->host_bytes += m->workspace.arena.capacity + m->planar.arena.capacity;
        use->allocations += m->workspace.arena.allocations + m->planar.arena.allocations;
    }
}

/* ---- the device: this machine ---- */

static int32_t devices(char reason[TB_ERROR_MESSAGE_SIZE])
{
    reason[0] = '\0';
    return 1;
}

static tb_status describe(int32_t device, tb_device_info *info, tb_error *error)
{
    (void)device, (void)error;
    strcpy(info->name, "this machine's processors");
    info->processors = tb_parallel_threads(0);
    return TB_OK;
}

const tb_backend tb_backend_cpu = {.abi = TB_BACKEND_ABI,
                                   .name = "cpu",
                                   .devices = devices,
                                   .describe = describe,
                                   .create = create,
                                   .destroy = destroy,
                                   .serves = serves,
                                   .step = step_batch,
                                   .measure = measure};
