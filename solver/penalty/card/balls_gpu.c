/* Worlds of balls by the volume law on a GPU: states and scenes on this side, all steps of a call on the card
 * (balls.h). The last evaluation's contacts are found once more on the processor, for the state's
 * records. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/error.h"
#include "penalty/card/balls.h"
#include "penalty/penalty_internal.h"

enum { LAUNCH_STEPS = 256, CANCELLED_STEPS = 32 };
/* A cube is wider than the largest ball by this, so that rounding moves no partner two cubes away. */
static const double CUBE_SLACK = 1e-6;

/* A world of the call. */
typedef struct ball_world {
    tb_state *state;
    const tb_course *course; /* or NULL */
    int32_t steps_left;
    tb_certificate merged;
    tb_status status;
    tb_error error;
} ball_world;

typedef struct balls_context {
    const tb_backend *gpu;
    void *card;
    int32_t wanted, threads;
    tb_penalty **memory; /* threads */
    char sha256[65];     /* of the scene's model */
    tb_balls_scene scene;
    ball_world *worlds; /* capacity */
    int32_t capacity;
    double *numbers; /* y, forces, point, deepest of a run */
    int32_t *counts; /* contacts, diverged, degenerate of a run */
    size_t number_capacity, count_capacity;
    double seconds;
    int64_t allocations;
    /* of a run */
    const tb_step_options *options;
    ball_world *first;
    tb_balls_run run;
} balls_context;

/* ---- the context ---- */

static void free_scene(balls_context *c)
{
    free(c->scene.balls);
    free(c->scene.free_bodies);
    free(c->scene.plane);
    memset(&c->scene, 0, sizeof c->scene);
    c->sha256[0] = 0;
}

static void destroy(void *context)
{
    balls_context *c = context;
    for (int32_t i = 0; i < c->threads && c->memory; i++) tb_penalty_destroy(c->memory[i]);
    if (c->card) c->gpu->balls_close(c->card);
    free_scene(c);
    free(c->memory);
    free(c->worlds);
    free(c->numbers);
    free(c->counts);
    free(c);
}

/* The method of the options' integrator. UNSUPPORTED for one that chooses its steps. */
static tb_status find_method(const tb_step_options *options, tb_balls_method *method,
                             tb_error *error)
{
    const char *name = tb_penalty_integrator(options);
    tb_fixed_method fixed;
    memset(method, 0, sizeof *method);
    method->symplectic = strcmp(name, "symplectic") == 0;
    method->stages = 1;
    if (method->symplectic) return TB_OK;
    if (!tb_integrator_fixed(name, &fixed) || fixed.stages > TB_BALLS_STAGES)
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
    tb_balls_method method;
    tb_status status = find_method(options, &method, error);
    if (status == TB_OK) status = tb_backend_find(TB_BACKEND_GPU, &gpu, error);
    if (status != TB_OK) return status;
    if (!gpu->balls_open)
        return tb_fail_field(error, TB_UNSUPPORTED, "backend", "backend '%s' has no volume law",
                             gpu->name);
    balls_context *c = calloc(1, sizeof *c);
    if (!c) return tb_fail_memory(error, sizeof *c, "the volume law on a GPU");
    c->gpu = gpu;
    c->wanted = options->threads;
    c->threads = tb_parallel_threads(options->threads);
    c->memory = calloc((size_t)c->threads, sizeof(tb_penalty *));
    status = c->memory ? gpu->balls_open(options->device, &c->card, error)
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

static bool serves(const void *context, const tb_step_options *options)
{
    (void)context, (void)options; /* the device and the threads are the context's */
    return false;
}

static void measure(const void *context, tb_stepper_use *use)
{
    const balls_context *c = context;
    use->host_bytes += c->number_capacity * sizeof *c->numbers +
                       c->count_capacity * sizeof *c->counts +
                       (size_t)c->capacity * sizeof *c->worlds;
    use->allocations += c->allocations;
    use->compute_seconds += c->seconds;
}

/* ---- the scene ---- */

/* The kind of thing in a model that the card's volume law has not, NULL: none. */
static const char *missing(const tb_penalty *p, const tb_model *m)
{
    if (!p->all_free) return "joints, motors, springs or bodies that are moved";
    for (int32_t t = 0; t < m->number_of_trees; t++)
        if (!m->trees[t].single_free) return "a body whose centre of mass is not at its origin";
    for (int32_t i = 0; i < p->number_of_shapes; i++) {
        const tb_law_shape *x = &p->shapes[i];
        if (x->solid >= 0 && !x->half_space) return "shapes that are no balls";
        if (x->half_space && !x->fixed) return "a plane that moves";
        if (!x->fixed && m->filters[x->shape].above >= 0) return "free bodies within others";
    }
    if (m->number_of_shape_excludes > 0 || m->number_of_excludes > 0 || m->number_of_pairs > 0)
        return "excluded or listed pairs of shapes";
    if (m->number_of_past_velocities > 0) return "sensors of accelerations";
    return NULL;
}

static void take_ball(const tb_penalty *p, const tb_model *m, int32_t i, tb_ball *ball)
{
    const tb_law_shape *x = &p->shapes[i];
    const tb_pose *pose = &p->shape_poses[i];
    memset(ball, 0, sizeof *ball);
    ball->body = x->fixed ? -1 : m->bodies[x->body].tree;
    ball->category = m->filters[x->shape].category;
    ball->mask = m->filters[x->shape].mask;
    ball->radius = x->half_space ? 0 : x->radius;
    ball->constants = x->constants;
    if (x->fixed)
        tb_v3_store(ball->position, pose->position);
    else
        memcpy(ball->position, m->shapes[x->shape].position, sizeof ball->position);
    if (x->half_space) tb_v3_store(ball->normal, tb_m33_column(&pose->rotation, 2));
}

static tb_status fill_scene(balls_context *c, const tb_penalty *p, const tb_model *m,
                            tb_error *error)
{
    tb_balls_scene *s = &c->scene;
    double largest = 0;
    s->shapes = p->number_of_shapes;
    s->bodies = m->number_of_trees;
    s->balls = calloc((size_t)s->shapes + 1, sizeof *s->balls);
    s->free_bodies = calloc((size_t)s->bodies + 1, sizeof *s->free_bodies);
    s->plane = calloc((size_t)s->shapes + 1, sizeof *s->plane);
    if (!s->balls || !s->free_bodies || !s->plane)
        return tb_fail_memory(error, 0, "a scene of balls");
    for (int32_t t = 0; t < s->bodies; t++)
        s->free_bodies[t] = (tb_balls_body){tb_penalty_free_body(m, t), -1};
    for (int32_t i = 0; i < s->shapes; i++) {
        tb_ball *ball = &s->balls[i];
        take_ball(p, m, i, ball);
        if (!(ball->radius > 0)) s->plane[s->planes++] = i;
        largest = fmax(largest, ball->radius);
        if (ball->body < 0) continue;
        if (s->free_bodies[ball->body].ball >= 0)
            return tb_fail_field(error, TB_UNSUPPORTED, "backend",
                                 "the volume law on a GPU has one ball a body, and body '%s' has "
                                 "more",
                                 tb_model_thing_name(m, TB_HANDLE_BODY, p->shapes[i].body));
        s->free_bodies[ball->body].ball = i;
    }
    memcpy(s->gravity, m->gravity, sizeof s->gravity);
    s->cubes_per_metre = largest > 0 ? 1 / (2 * largest * (1 + CUBE_SLACK)) : 1;
    return TB_OK;
}

static tb_status take_scene(balls_context *c, const tb_state *state, tb_error *error)
{
    const tb_model *m = state->model;
    tb_penalty *p = c->memory[0];
    c->run.fresh = false;
    if (strcmp(c->sha256, m->sha256) == 0) return TB_OK;
    free_scene(c);
    tb_status status = tb_penalty_prepare(p, state, error);
    if (status != TB_OK) return status;
    const char *what = missing(p, m);
    if (what)
        return tb_fail_field(error, TB_UNSUPPORTED, "backend",
                             "the volume law on a GPU has free balls, fixed balls and planes; it "
                             "has no %s, and the model has",
                             what);
    memcpy(p->y, state->q, (size_t)m->number_of_coordinates * sizeof *p->y);
    memcpy(p->y + m->number_of_coordinates, state->u, (size_t)m->number_of_dofs * sizeof *p->y);
    status = tb_penalty_evaluate(p, 0, p->y, error);
    if (status == TB_OK) status = fill_scene(c, p, m, error);
    if (status != TB_OK) {
        free_scene(c);
        return status;
    }
    memcpy(c->sha256, m->sha256, sizeof c->sha256);
    c->run.fresh = true;
    return TB_OK;
}

/* ---- a run ---- */

static tb_status reserve(balls_context *c, int32_t worlds, tb_error *error)
{
    const size_t bodies = (size_t)c->scene.bodies * (size_t)worlds;
    const size_t numbers = (2 * TB_BALLS_NUMBERS + TB_BALLS_FORCES + 1) * bodies + 1;
    const size_t counts = 3 * (size_t)worlds;
    if (numbers > c->number_capacity) {
        double *grown = realloc(c->numbers, numbers * sizeof *grown);
        if (!grown) return tb_fail_memory(error, numbers * sizeof *grown, "worlds of balls");
        c->numbers = grown;
        c->number_capacity = numbers;
        c->allocations++;
    }
    if (counts > c->count_capacity) {
        int32_t *grown = realloc(c->counts, counts * sizeof *grown);
        if (!grown) return tb_fail_memory(error, counts * sizeof *grown, "worlds of balls");
        c->counts = grown;
        c->count_capacity = counts;
        c->allocations++;
    }
    tb_balls_run *r = &c->run;
    r->scene = &c->scene;
    r->worlds = worlds;
    r->y = c->numbers;
    r->point = r->y + TB_BALLS_NUMBERS * bodies;
    r->deepest = r->point + TB_BALLS_NUMBERS * bodies;
    double *forces = r->deepest + bodies;
    r->forces = forces;
    r->contacts = c->counts;
    r->diverged = r->contacts + worlds;
    r->degenerate = r->diverged + worlds;
    return TB_OK;
}

static void fill_world(void *context, int32_t world, int32_t thread)
{
    const balls_context *c = context;
    const tb_state *s = c->first[world].state;
    const tb_model *m = s->model;
    (void)thread;
    for (int32_t t = 0; t < m->number_of_trees; t++) {
        const tb_model_tree *tree = &m->trees[t];
        const size_t at = (size_t)world * (size_t)m->number_of_trees + (size_t)t;
        double *y = c->run.y + TB_BALLS_NUMBERS * at;
        double *forces = (double *)(uintptr_t)c->run.forces + TB_BALLS_FORCES * at;
        memcpy(y, s->q + tree->coordinate, 7 * sizeof *y);
        memcpy(y + 7, s->u + tree->dof, 6 * sizeof *y);
        y[TB_BALLS_WORK] = 0;
        memcpy(forces, s->wrenches + 6 * tree->body, 6 * sizeof *forces);
        memcpy(forces + 6, s->applied + tree->dof, 6 * sizeof *forces);
    }
}

/* The numbers of a world in the order of its state. */
static void unpack(const tb_model *m, const double *bodies, double *y)
{
    double work = 0;
    for (int32_t t = 0; t < m->number_of_trees; t++) {
        const double *from = bodies + TB_BALLS_NUMBERS * (size_t)t;
        memcpy(y + m->trees[t].coordinate, from, 7 * sizeof *y);
        memcpy(y + m->number_of_coordinates + m->trees[t].dof, from + 7, 6 * sizeof *y);
        work += from[TB_BALLS_WORK];
    }
    y[m->number_of_coordinates + m->number_of_dofs] = work;
}

static void end_world(void *context, int32_t world, int32_t thread)
{
    balls_context *c = context;
    ball_world *w = &c->first[world];
    const tb_balls_run *r = &c->run;
    tb_penalty *p = c->memory[thread];
    const tb_model *m = w->state->model;
    const size_t first = (size_t)world * (size_t)c->scene.bodies;
    tb_certificate certificate;
    if (r->diverged[world] >= 0) return;
    w->status = tb_penalty_prepare(p, w->state, &w->error);
    if (w->status != TB_OK) return;
    double *point = p->scratch; /* the integrator's, which has no work here */
    unpack(m, r->point + TB_BALLS_NUMBERS * first, point);
    unpack(m, r->y + TB_BALLS_NUMBERS * first, p->y);
    tb_penalty_steps steps = {.integrator = tb_penalty_integrator(c->options),
                              .point = point,
                              .dt = r->method.dt,
                              .steps = r->steps,
                              .evaluations = r->steps * r->method.stages,
                              .contacts = r->contacts[world],
                              .degenerate = r->degenerate[world] != 0};
    for (int32_t b = 0; b < c->scene.bodies; b++)
        steps.penetration = fmax(steps.penetration, r->deepest[first + (size_t)b]);
    w->status = tb_penalty_take_steps(p, w->state, c->options, &steps, &certificate, &w->error);
    if (w->status != TB_OK) return;
    w->steps_left -= r->steps;
    tb_certificate_merge(&w->merged, &certificate);
}

/* Steps of `count` worlds of one model from `first` on. A world that diverged is as before. */
static tb_status run_worlds(balls_context *c, ball_world *first, int32_t count, int32_t steps,
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
    status = c->gpu->balls_run(c->card, &c->run, error);
    if (status != TB_OK) {
        c->sha256[0] = 0; /* the card's scene is unknown */
        return status;
    }
    c->seconds += c->run.seconds;
    tb_parallel_for(count, 1, count > 1 ? c->threads : 1, end_world, c);
    return TB_OK;
}

/* The world goes to the step before the one that diverged, and is frozen there. */
static tb_status freeze(balls_context *c, ball_world *w, int32_t step, tb_error *error)
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

static bool goes_on(const ball_world *w)
{
    return w->steps_left > 0 && w->status == TB_OK;
}

/* Worlds of one model, one behind the other, that all have steps left. */
static int32_t count_like(const ball_world *w, int32_t most)
{
    int32_t n = 1;
    while (n < most && goes_on(&w[n]) && !w[n].course &&
           strcmp(w[n].state->model->sha256, w->state->model->sha256) == 0)
        n++;
    return w->course ? 1 : n;
}

static tb_status advance_some(balls_context *c, ball_world *w, int32_t count, tb_error *error)
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
    if (!diverged) return tb_fail_memory(error, 0, "worlds of balls");
    memcpy(diverged, c->run.diverged, (size_t)count * sizeof *diverged);
    tb_status failed = TB_OK;
    for (int32_t i = 0; i < count && failed == TB_OK; i++)
        if (diverged[i] >= 0) failed = freeze(c, &w[i], diverged[i], error);
    free(diverged);
    return failed;
}

/* One step of a course. */
static tb_status follow(balls_context *c, ball_world *w, tb_error *error)
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

static tb_status reserve_worlds(balls_context *c, int32_t worlds, tb_error *error)
{
    if (worlds <= c->capacity) return TB_OK;
    const size_t bytes = (size_t)worlds * sizeof *c->worlds;
    ball_world *grown = realloc(c->worlds, bytes);
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
    balls_context *c = context;
    tb_status status = find_method(options, &c->run.method, error);
    if (status == TB_OK) status = reserve_worlds(c, worlds, error);
    if (status != TB_OK) return status;
    c->options = options;
    for (int32_t i = 0; i < worlds; i++) {
        ball_world *w = &c->worlds[i];
        *w = (ball_world){.state = states[i],
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
        const ball_world *w = &c->worlds[i];
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
                                      .serves = serves,
                                      .step = step_batch,
                                      .measure = measure};
