/* Worlds by the volume law on a GPU: states and scenes on this side, all steps of a call on the card, by the
 * kernel of balls (balls.h) or of solids (solids.h). The last evaluation's contacts are found once more on the processor, for the state's
 * records. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/error.h"
#include "penalty/card/card_scene.h"
#include "penalty/penalty_internal.h"

enum { LAUNCH_STEPS = 256, CANCELLED_STEPS = 32 };

/* A world of the call. */
typedef struct volume_world {
    tb_state *state;
    const tb_course *course; /* or NULL */
    int32_t steps_left;
    tb_certificate merged;
    tb_status status;
    tb_error error;
} volume_world;

typedef struct volume_context {
    const tb_backend *gpu;
    void *card;
    int32_t wanted, threads;
    tb_penalty **memory; /* threads */
    char sha256[65];     /* of the scene's model */
    tb_card_scene scene;
    volume_world *worlds; /* capacity */
    int32_t capacity;
    double *numbers; /* y, forces, point, deepest of a run */
    int32_t *counts; /* contacts, diverged, degenerate of a run */
    size_t number_capacity, count_capacity;
    double seconds;
    int64_t allocations;
    /* of a run */
    const tb_step_options *options;
    volume_world *first;
    tb_volume_run run;
} volume_context;

/* ---- the context ---- */

static void free_scene(volume_context *c)
{
    tb_card_scene_free(&c->scene);
    c->sha256[0] = 0;
}

static void destroy(void *context)
{
    volume_context *c = context;
    for (int32_t i = 0; i < c->threads && c->memory; i++) tb_penalty_destroy(c->memory[i]);
    if (c->card) c->gpu->volume_close(c->card);
    free_scene(c);
    free(c->memory);
    free(c->worlds);
    free(c->numbers);
    free(c->counts);
    free(c);
}

/* The method of the options' integrator. UNSUPPORTED for one that chooses its steps. */
static tb_status find_method(const tb_step_options *options, tb_volume_method *method,
                             tb_error *error)
{
    const char *name = tb_penalty_integrator(options);
    tb_fixed_method fixed;
    memset(method, 0, sizeof *method);
    method->symplectic = strcmp(name, "symplectic") == 0;
    method->stages = 1;
    if (method->symplectic) return TB_OK;
    if (!tb_integrator_fixed(name, &fixed) || fixed.stages > TB_VOLUME_STAGES)
        return tb_fail_field(error, TB_UNSUPPORTED, "solve.solver",
                             "integrator '%s' does not run on the GPU: symplectic and rkfix1 to "
                             "rkfix4 do",
                             name);
    method->stages = fixed.stages;
    for (int32_t s = 0; s < fixed.stages; s++) {
        method->b[s] = fixed.b[s];
        memcpy(method->a[s], fixed.a[s], sizeof method->a[s]);
    }
    return TB_OK;
}

static tb_status create(const tb_step_options *options, void **context, tb_error *error)
{
    const tb_backend *gpu = NULL;
    tb_volume_method method;
    tb_status status = find_method(options, &method, error);
    if (status == TB_OK) status = tb_backend_find(TB_BACKEND_GPU, &gpu, error);
    if (status != TB_OK) return status;
    if (!gpu->volume_open)
        return tb_fail_field(error, TB_UNSUPPORTED, "backend", "backend '%s' has no volume law",
                             gpu->name);
    volume_context *c = calloc(1, sizeof *c);
    if (!c) return tb_fail_memory(error, sizeof *c, "the volume law on a GPU");
    c->gpu = gpu;
    c->wanted = options->threads;
    c->threads = tb_parallel_threads(options->threads);
    c->memory = calloc((size_t)c->threads, sizeof(tb_penalty *));
    status = c->memory ? gpu->volume_open(options->device, &c->card, error)
                       : tb_fail_memory(error, 0, "the volume law on a GPU");
    for (int32_t i = 0; i < c->threads && status == TB_OK; i++) {
        c->memory[i] = calloc(1, sizeof *c->memory[i]);
        if (!c->memory[i]) status = tb_fail_memory(error, 0, "the volume law on a GPU");
    }
    if (status != TB_OK) {
        destroy(c);
        return status;
    }
    *context = c;
    return TB_OK;
}

static void measure(const void *context, tb_stepper_use *use)
{
    const volume_context *c = context;
    use->host_bytes += c->number_capacity * sizeof *c->numbers +
                       c->count_capacity * sizeof *c->counts +
                       (size_t)c->capacity * sizeof *c->worlds;
    use->allocations += c->allocations;
    use->compute_seconds += c->seconds;
}

/* ---- the scene ---- */

static tb_status take_scene(volume_context *c, const tb_state *state, tb_error *error)
{
    const tb_model *m = state->model;
    tb_penalty *p = c->memory[0];
    c->run.fresh = false;
    if (strcmp(c->sha256, m->sha256) == 0) return TB_OK;
    free_scene(c);
    tb_status status = tb_penalty_prepare(p, state, error);
    if (status != TB_OK) return status;
    memcpy(p->y, state->q, (size_t)m->number_of_coordinates * sizeof *p->y);
    memcpy(p->y + m->number_of_coordinates, state->u, (size_t)m->number_of_dofs * sizeof *p->y);
    status = tb_penalty_evaluate(p, 0, p->y, error);
    if (status == TB_OK) status = tb_card_scene_make(p, m, &c->scene, error);
    if (status != TB_OK) {
        free_scene(c);
        return status;
    }
    memcpy(c->sha256, m->sha256, sizeof c->sha256);
    c->run.fresh = true;
    return TB_OK;
}

/* ---- a run ---- */

static tb_status reserve(volume_context *c, int32_t worlds, tb_error *error)
{
    const size_t bodies = (size_t)c->scene.number_of_bodies * (size_t)worlds;
    const size_t numbers = (2 * TB_VOLUME_NUMBERS + TB_VOLUME_FORCES + 1) * bodies + 1;
    const size_t counts = 3 * (size_t)worlds;
    if (numbers > c->number_capacity) {
        double *grown = realloc(c->numbers, numbers * sizeof *grown);
        if (!grown) return tb_fail_memory(error, numbers * sizeof *grown, "worlds for a GPU");
        c->numbers = grown;
        c->number_capacity = numbers;
        c->allocations++;
    }
    if (counts > c->count_capacity) {
        int32_t *grown = realloc(c->counts, counts * sizeof *grown);
        if (!grown) return tb_fail_memory(error, counts * sizeof *grown, "worlds for a GPU");
        c->counts = grown;
        c->count_capacity = counts;
        c->allocations++;
    }
    tb_volume_run *r = &c->run;
    r->balls = c->scene.by_balls ? &c->scene.balls : NULL;
    r->solids = c->scene.by_balls ? NULL : &c->scene.solids;
    r->bodies = c->scene.number_of_bodies;
    r->worlds = worlds;
    r->y = c->numbers;
    r->point = r->y + TB_VOLUME_NUMBERS * bodies;
    r->deepest = r->point + TB_VOLUME_NUMBERS * bodies;
    double *forces = r->deepest + bodies;
    r->forces = forces;
    r->contacts = c->counts;
    r->diverged = r->contacts + worlds;
    r->degenerate = r->diverged + worlds;
    return TB_OK;
}

static void fill_world(void *context, int32_t world, int32_t thread)
{
    const volume_context *c = context;
    const tb_state *s = c->first[world].state;
    const tb_model *m = s->model;
    (void)thread;
    for (int32_t t = 0; t < m->number_of_trees; t++) {
        const tb_model_tree *tree = &m->trees[t];
        const size_t at = (size_t)world * (size_t)m->number_of_trees + (size_t)t;
        double *y = c->run.y + TB_VOLUME_NUMBERS * at;
        double *forces = (double *)(uintptr_t)c->run.forces + TB_VOLUME_FORCES * at;
        const size_t dofs = (size_t)tree->number_of_dofs;
        memset(y, 0, TB_VOLUME_NUMBERS * sizeof *y);
        memset(forces, 0, TB_VOLUME_FORCES * sizeof *forces);
        memcpy(y, s->q + tree->coordinate, (size_t)tree->number_of_coordinates * sizeof *y);
        memcpy(y + TB_VOLUME_VELOCITY, s->u + tree->dof, dofs * sizeof *y);
        memcpy(forces, s->wrenches + 6 * tree->body, 6 * sizeof *forces);
        memcpy(forces + 6, s->applied + tree->dof, dofs * sizeof *forces);
    }
}

/* The numbers of a world in the order of its state. */
static void unpack(const tb_model *m, const double *bodies, double *y)
{
    double work = 0;
    for (int32_t t = 0; t < m->number_of_trees; t++) {
        const double *from = bodies + TB_VOLUME_NUMBERS * (size_t)t;
        const tb_model_tree *tree = &m->trees[t];
        memcpy(y + tree->coordinate, from, (size_t)tree->number_of_coordinates * sizeof *y);
        memcpy(y + m->number_of_coordinates + tree->dof, from + TB_VOLUME_VELOCITY,
               (size_t)tree->number_of_dofs * sizeof *y);
        work += from[TB_VOLUME_WORK];
    }
    y[m->number_of_coordinates + m->number_of_dofs] = work;
}

static void end_world(void *context, int32_t world, int32_t thread)
{
    volume_context *c = context;
    volume_world *w = &c->first[world];
    const tb_volume_run *r = &c->run;
    tb_penalty *p = c->memory[thread];
    const tb_model *m = w->state->model;
    const size_t first = (size_t)world * (size_t)c->scene.number_of_bodies;
    tb_certificate certificate;
    if (r->diverged[world] >= 0) return;
    w->status = tb_penalty_prepare(p, w->state, &w->error);
    if (w->status != TB_OK) return;
    double *point = p->scratch; /* the integrator's, which has no work here */
    unpack(m, r->point + TB_VOLUME_NUMBERS * first, point);
    unpack(m, r->y + TB_VOLUME_NUMBERS * first, p->y);
    tb_penalty_steps steps = {.integrator = tb_penalty_integrator(c->options),
                              .point = point,
                              .dt = r->method.dt,
                              .steps = r->steps,
                              .evaluations = r->steps * r->method.stages,
                              .contacts = r->contacts[world],
                              .degenerate = r->degenerate[world] != 0};
    for (int32_t b = 0; b < c->scene.number_of_bodies; b++)
        steps.penetration = fmax(steps.penetration, r->deepest[first + (size_t)b]);
    w->status = tb_penalty_take_steps(p, w->state, c->options, &steps, &certificate, &w->error);
    if (w->status != TB_OK) return;
    w->steps_left -= r->steps;
    tb_certificate_merge(&w->merged, &certificate);
}

/* Steps of `count` worlds of one model from `first` on. A world that diverged is as before. */
static tb_status run_worlds(volume_context *c, volume_world *first, int32_t count, int32_t steps,
                            tb_error *error)
{
    tb_status status = take_scene(c, first->state, error);
    const bool fresh = c->run.fresh;
    if (status == TB_OK) status = reserve(c, count, error);
    if (status != TB_OK) return status;
    c->first = first;
    c->run.fresh = fresh;
    c->run.steps = steps;
    c->run.method.dt = c->options->dt > 0 ? c->options->dt : first->state->model->dt;
    tb_parallel_for(count, 1, count > 1 ? c->threads : 1, fill_world, c);
    status = c->gpu->volume_run(c->card, &c->run, error);
    if (status != TB_OK) {
        c->sha256[0] = 0; /* the card's scene is unknown */
        return status;
    }
    c->seconds += c->run.seconds;
    tb_parallel_for(count, 1, count > 1 ? c->threads : 1, end_world, c);
    return TB_OK;
}

/* The world goes to the step before the one that diverged, and is frozen there. */
static tb_status freeze(volume_context *c, volume_world *w, int32_t step, tb_error *error)
{
    tb_certificate certificate;
    if (step > 0) {
        const tb_status status = run_worlds(c, w, 1, step, error);
        if (status != TB_OK || w->status != TB_OK) return status;
    }
    memset(&certificate, 0, sizeof certificate);
    w->status = tb_state_freeze(w->state, &certificate, &w->error);
    tb_certificate_merge(&w->merged, &certificate);
    w->steps_left = 0;
    return TB_OK;
}

static bool goes_on(const volume_world *w)
{
    return w->steps_left > 0 && w->status == TB_OK;
}

/* Worlds of one model, one behind the other, that all have steps left. */
static int32_t count_like(const volume_world *w, int32_t most)
{
    int32_t n = 1;
    while (n < most && goes_on(&w[n]) && !w[n].course &&
           strcmp(w[n].state->model->sha256, w->state->model->sha256) == 0)
        n++;
    return w->course ? 1 : n;
}

static tb_status advance_some(volume_context *c, volume_world *w, int32_t count, tb_error *error)
{
    const int32_t most = c->options->solve.cancelled ? CANCELLED_STEPS : LAUNCH_STEPS;
    int32_t steps = w->course ? 1 : most;
    for (int32_t i = 0; i < count; i++) steps = w[i].steps_left < steps ? w[i].steps_left : steps;
    if (c->options->solve.cancelled &&
        c->options->solve.cancelled(c->options->solve.cancelled_context))
        return tb_fail(error, TB_CANCELLED, "%s", tb_status_text(TB_CANCELLED));
    const tb_status status = run_worlds(c, w, count, steps, error);
    if (status != TB_OK) return status;
    int32_t *diverged = malloc((size_t)count * sizeof *diverged);
    if (!diverged) return tb_fail_memory(error, 0, "worlds for a GPU");
    memcpy(diverged, c->run.diverged, (size_t)count * sizeof *diverged);
    tb_status failed = TB_OK;
    for (int32_t i = 0; i < count && failed == TB_OK; i++)
        if (diverged[i] >= 0) failed = freeze(c, &w[i], diverged[i], error);
    free(diverged);
    return failed;
}

/* One step of a course. */
static tb_status follow(volume_context *c, volume_world *w, tb_error *error)
{
    tb_arena arena = {0};
    const int32_t step = w->course->steps - w->steps_left;
    const tb_status fits = tb_course_apply_inputs(w->state, w->course, step, &arena);
    tb_arena_destroy(&arena);
    if (fits != TB_OK) return tb_fail_memory(error, 0, "the inputs of a course");
    const tb_status status = advance_some(c, w, 1, error);
    if (status == TB_OK && (w->status == TB_OK || w->status == TB_DIVERGED))
        tb_course_record_outputs(w->state, w->course, step, &w->state->certificate);
    return status;
}

static tb_status reserve_worlds(volume_context *c, int32_t worlds, tb_error *error)
{
    if (worlds <= c->capacity) return TB_OK;
    const size_t bytes = (size_t)worlds * sizeof *c->worlds;
    volume_world *grown = realloc(c->worlds, bytes);
    if (!grown) return tb_fail_memory(error, bytes, "a batch");
    c->worlds = grown;
    c->capacity = worlds;
    c->allocations++;
    return TB_OK;
}

static tb_status step_batch(void *context, const tb_step_options *options, tb_state *const *states,
                            const tb_course *courses, int32_t worlds, int32_t steps,
                            tb_certificate *certificates, tb_error *error)
{
    volume_context *c = context;
    tb_status status = find_method(options, &c->run.method, error);
    if (status == TB_OK) status = reserve_worlds(c, worlds, error);
    if (status != TB_OK) return status;
    c->options = options;
    for (int32_t i = 0; i < worlds; i++) {
        volume_world *w = &c->worlds[i];
        *w = (volume_world){.state = states[i],
                            .course = courses ? &courses[i] : NULL,
                            .steps_left = courses ? courses[i].steps : steps};
        if (states[i]->status != TB_DIVERGED || w->steps_left == 0) continue;
        status = freeze(c, w, 0, error);
        if (status != TB_OK) return status;
    }
    /* worlds of one model go on together, until the first of them ends */
    for (int32_t i = 0; i < worlds; i++)
        while (status == TB_OK && goes_on(&c->worlds[i]))
            status =
                c->worlds[i].course
                    ? follow(c, &c->worlds[i], error)
                    : advance_some(c, &c->worlds[i], count_like(&c->worlds[i], worlds - i), error);
    for (int32_t i = 0; i < worlds && certificates; i++) certificates[i] = c->worlds[i].merged;
    for (int32_t i = 0; i < worlds && status == TB_OK; i++) {
        const volume_world *w = &c->worlds[i];
        status = w->status;
        if (status != TB_OK) tb_fail_world(error, status, worlds, i, &w->error);
    }
    return status;
}

/* `devices` and `describe` are never called: this backend wraps the GPU's own. */
const tb_backend tb_backend_volume = {.abi = TB_BACKEND_ABI,
                                      .name = "gpu",
                                      .create = create,
                                      .destroy = destroy,
                                      .step = step_batch,
                                      .measure = measure};
