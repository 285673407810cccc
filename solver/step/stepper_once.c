/* The public face of stepping: options, steppers, certificates. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "step/certificate.h"
#include "step/large/large_plan.h"
#include "step/planar/planar.h"
#include "step/pull.h"
#include "step/soft.h"
#include "step/step.h"
#include "tribo_soft.h"

enum { PARALLEL_WORLDS = 512 }; /* courses that are worth waking threads for */

struct tb_stepper {
    tb_step_options options;
    char solver[16]; /* options.solve.solver points here */
    const tb_backend *backend;
    void *context;
    void *soft;             /* of the processor's loop, for soft bodies on a card; NULL: none yet */
    tb_workspace questions; /* for questions about one world */
};

/* ---- options ---- */

tb_step_options tb_step_defaults(void)
{
    return (tb_step_options){.scheme = TB_SCHEME_STEWART_TRINKLE,
                             .precision = TB_DOUBLE,
                             .solve = tb_solve_defaults(),
                             .recovery_speed = 0.5,
                             .speculative_time = 1,
                             .contact_slop = 1e-6,
                             .contact_margin = 5e-4,
                             .closure_tolerance = 1e-10,
                             .closure_slop = 1e-6,
                             .threads = 1};
}

static tb_status check_number(double x, double lower, double upper, const char *field,
                              tb_error *error)
{
    if (x >= lower && x <= upper) return TB_OK; /* false for NaN */
    return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s is %g, expected %g to %g", field, x,
                         lower, upper);
}

/* Schemes whose states are on the processor, in double; planar contacts and worlds of balls may go to a GPU. */
static bool is_host_scheme(const tb_step_options *o)
{
    return o->scheme == TB_SCHEME_PLANAR || o->scheme == TB_SCHEME_VOLUME;
}

static const char *scheme_name(const tb_step_options *o)
{
    return o->scheme == TB_SCHEME_PLANAR ? "planar" : "volume";
}

/* Whether the solver is one of the scheme's: contact solvers, or integrators of the volume law. */
static bool is_known_solver(const tb_step_options *o)
{
    if (o->scheme != TB_SCHEME_VOLUME) return tb_solver_find(o->solve.solver) != NULL;
    bool known = strcmp(o->solve.solver, "auto") == 0;
    for (int32_t i = 0; tb_integrator_name(i) && !known; i++)
        known = strcmp(o->solve.solver, tb_integrator_name(i)) == 0;
    return known;
}

/* Names the field at fault. */
static tb_status check_options(const tb_step_options *o, tb_error *error)
{
    const struct {
        double x, lower, upper;
        const char *field;
    } numbers[] = {{o->dt, 0, 1, "dt"},
                   {o->solve.tolerance, 0, 1, "solve.tolerance"},
                   {o->solve.omega, 0, 2, "solve.omega"},
                   {o->solve.impulse_limit, 0, 1e30, "solve.impulse_limit"},
                   {o->solve.maximum_iterations, 1, 1e9, "solve.maximum_iterations"},
                   {o->solve.maximum_halvings, 0, 60, "solve.maximum_halvings"},
                   {(double)o->solve.colouring, 0, TB_COLOURING_RELAXED, "solve.colouring"},
                   {o->solve.colours, 0, INT32_MAX, "solve.colours"},
                   {o->recovery_speed, 0, 1e6, "recovery_speed"},
                   {o->speculative_time, 0, 100, "speculative_time"},
                   {o->contact_slop, 0, 1, "contact_slop"},
                   {o->contact_margin, 0, 1e3, "contact_margin"},
                   {o->contact_merge, 0, 0.1, "contact_merge"},
                   {o->closure_tolerance, 0, 1, "closure_tolerance"},
                   {o->closure_slop, 0, 1, "closure_slop"},
                   {o->threads, 0, 4096, "threads"},
                   {(double)o->scheme, 0, TB_SCHEME_VOLUME, "scheme"},
                   {(double)o->precision, 0, TB_FLOAT, "precision"},
                   {(double)o->backend, 0, TB_BACKEND_AUTO, "backend"},
                   {o->device, 0, 1 << 20, "device"}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const tb_status status =
            check_number(numbers[i].x, numbers[i].lower, numbers[i].upper, numbers[i].field, error);
        if (status != TB_OK) return status;
    }
    if (!o->solve.solver || !is_known_solver(o))
        return tb_fail_field(error, TB_NOT_FOUND, "solve.solver", "there is no %s '%s'",
                             o->scheme == TB_SCHEME_VOLUME ? "integrator" : "solver",
                             o->solve.solver ? o->solve.solver : "");
    if (is_host_scheme(o) && o->precision == TB_FLOAT)
        return tb_fail_field(error, TB_UNSUPPORTED, "precision",
                             "the %s scheme steps in double only", scheme_name(o));
    return TB_OK;
}

/* AUTO keeps these schemes on the processor: most of their solvers are only there. */
static tb_backend_choice choice_of(const tb_step_options *o)
{
    return is_host_scheme(o) && o->backend == TB_BACKEND_AUTO ? TB_BACKEND_CPU : o->backend;
}

/* The backend that the options ask for. One with a card looks itself whether it has the device. */
static tb_status find_backend(const tb_step_options *o, const tb_backend **backend, tb_error *error)
{
    if (o->scheme == TB_SCHEME_PLANAR && o->backend == TB_BACKEND_GPU) {
        *backend = &tb_backend_planar;
        return TB_OK;
    }
    if (o->scheme == TB_SCHEME_VOLUME && o->backend == TB_BACKEND_GPU) {
        *backend = &tb_backend_volume;
        return TB_OK;
    }
    const tb_status status = tb_backend_find(choice_of(o), backend, error);
    if (status != TB_OK || *backend != &tb_backend_cpu || o->device == 0) return status;
    return tb_fail_field(error, TB_NOT_FOUND, "device",
                         "there is no device %d: backend 'cpu' has 1", o->device);
}

/* ---- steppers ---- */

/* The solver's name may be the stepper's own: tb_stepper_options lends it. */
static void keep_options(tb_stepper *stepper, const tb_step_options *options)
{
    const char *name = options->solve.solver;
    if (name != stepper->solver) strncpy(stepper->solver, name, sizeof stepper->solver - 1);
    stepper->options = *options;
    stepper->options.solve.solver = stepper->solver;
}

tb_status tb_stepper_create(const tb_step_options *options, tb_stepper **stepper, tb_error *error)
{
    const tb_step_options defaults = tb_step_defaults();
    if (!options) options = &defaults;
    *stepper = NULL;
    tb_status status = check_options(options, error);
    if (status != TB_OK) return status;
    tb_stepper *s = calloc(1, sizeof *s);
    if (!s) return tb_fail_memory(error, sizeof *s, "a stepper");
    keep_options(s, options);
    s->questions.threads = 1;
    status = find_backend(options, &s->backend, error);
    if (status == TB_OK) status = s->backend->create(&s->options, &s->context, error);
    if (status != TB_OK) {
        free(s);
        return status;
    }
    *stepper = s;
    return TB_OK;
}

void tb_stepper_destroy(tb_stepper *stepper)
{
    if (!stepper) return;
    stepper->backend->destroy(stepper->context);
    if (stepper->soft) tb_backend_cpu.destroy(stepper->soft);
    tb_arena_destroy(&stepper->questions.arena);
    free(stepper);
}

tb_step_options tb_stepper_options(const tb_stepper *stepper)
{
    return stepper->options;
}

/* Another backend, or other working memory; on failure all is as it was. */
static tb_status exchange(tb_stepper *stepper, const tb_backend *backend,
                          const tb_step_options *options, tb_error *error)
{
    void *context = NULL;
    const tb_status status = backend->create(options, &context, error);
    if (status != TB_OK) return status;
    stepper->backend->destroy(stepper->context);
    stepper->backend = backend;
    stepper->context = context;
    return TB_OK;
}

tb_status tb_stepper_set_options(tb_stepper *stepper, const tb_step_options *options,
                                 tb_error *error)
{
    const tb_backend *backend = NULL;
    tb_status status = check_options(options, error);
    if (status == TB_OK) status = find_backend(options, &backend, error);
    if (status != TB_OK) return status;

    /* working memory that does not suit is recreated */
    if (backend != stepper->backend || backend->serves == NULL ||
        !backend->serves(stepper->context, options)) {
        status = exchange(stepper, backend, options, error);
        if (status != TB_OK) return status;
    }
    keep_options(stepper, options);
    return TB_OK;
}

tb_stepper_use tb_stepper_measure(const tb_stepper *stepper)
{
    tb_stepper_use use = {.backend = stepper->backend->name};
    stepper->backend->measure(stepper->context, &use);
    if (stepper->soft) {
        tb_stepper_use soft = {0};
        tb_backend_cpu.measure(stepper->soft, &soft);
        use.host_bytes += soft.host_bytes;
        use.allocations += soft.allocations;
    }
    return use;
}

tb_status tb_stepper_warm(tb_stepper *stepper, tb_error *error)
{
    return stepper->backend->warm ? stepper->backend->warm(stepper->context, error) : TB_OK;
}

size_t tb_stepper_allocated(const tb_stepper *stepper)
{
    const tb_stepper_use use = tb_stepper_measure(stepper);
    return (size_t)(use.host_bytes + use.device_bytes);
}

int64_t tb_stepper_allocations(const tb_stepper *stepper)
{
    return tb_stepper_measure(stepper).allocations;
}

tb_status tb_step(tb_stepper *stepper, tb_state *state, int32_t steps, tb_certificate *certificate,
                  tb_error *error)
{
    return tb_step_batch(stepper, &state, 1, steps, certificate, error);
}

/* For a backend that steps in the host's memory: everything is there, and no device has
 * anything. */
static tb_status sync_to_host(tb_state *const *states, int32_t worlds, tb_error *error)
{
    const tb_status status = tb_states_sync_to_host(states, worlds, TB_STATE_ALL, error);
    if (status != TB_OK) return status;
    for (int32_t i = 0; i < worlds; i++)
        if (states[i]->device_copy) tb_state_drop_device_copy(states[i]);
    return TB_OK;
}

/* Whether a card is slower for the world than the processor. */
static bool is_slow_on_card(const tb_state *state, const tb_step_options *options)
{
    if (state->soft) return tb_state_soft_nodes(state) < TB_SOFT_CARD_NODES;
    if (!tb_model_has_meshes(state->model)) return false;
    return state->model->number_of_colliding_shapes < TB_LARGE_WORLD ||
           tb_large_refuses(state->model, options) != NULL;
}

/* `auto` has no models to look at before worlds are there. One that is slow on a card keeps the batch from it. */
static tb_status choose_again(tb_stepper *stepper, tb_state *const *states, int32_t worlds,
                              tb_error *error)
{
    if (choice_of(&stepper->options) != TB_BACKEND_AUTO) return TB_OK;
    bool slow = false;
    for (int32_t i = 0; i < worlds && !slow; i++)
        slow = is_slow_on_card(states[i], &stepper->options);
    const tb_backend *backend = NULL;
    const tb_status status =
        tb_backend_find(slow ? TB_BACKEND_CPU : TB_BACKEND_AUTO, &backend, error);
    if (status != TB_OK || backend == stepper->backend) return status;
    return exchange(stepper, backend, &stepper->options, error);
}

/* Worlds with soft bodies step in the processor's loop, whichever device has their fields. */
static tb_status step_soft(tb_stepper *stepper, tb_state *const *states, const tb_course *courses,
                           int32_t worlds, int32_t steps, tb_certificate *certificates,
                           tb_error *error)
{
    const tb_backend *loop = &tb_backend_cpu;
    if (stepper->soft && !loop->serves(stepper->soft, &stepper->options)) {
        loop->destroy(stepper->soft);
        stepper->soft = NULL;
    }
    tb_status status = TB_OK;
    if (!stepper->soft) status = loop->create(&stepper->options, &stepper->soft, error);
    if (status == TB_OK) status = sync_to_host(states, worlds, error);
    if (status != TB_OK) return status;
    tb_step_options there = stepper->options;
    there.backend = TB_BACKEND_GPU; /* `auto` has chosen it */
    return loop->step(stepper->soft, &there, states, courses, worlds, steps, certificates, error);
}

/* Consecutive worlds, all of them with soft bodies or all without. The backend finds states where it looks for
 * them. */
static tb_status step_alike(tb_stepper *stepper, tb_state *const *states, const tb_course *courses,
                            int32_t worlds, int32_t steps, tb_certificate *certificates,
                            tb_error *error)
{
    if (worlds > 0 && states[0]->soft && stepper->backend != &tb_backend_cpu)
        return step_soft(stepper, states, courses, worlds, steps, certificates, error);
    if (!stepper->backend->fetch) {
        const tb_status status = sync_to_host(states, worlds, error);
        if (status != TB_OK) return status;
    }
    return stepper->backend->step(stepper->context, &stepper->options, states, courses, worlds,
                                  steps, certificates, error);
}

/* Contacts of elements and elastic forces are those of a processor's step in space. */
static tb_status check_elements(const tb_stepper *stepper, tb_state *const *states, int32_t worlds,
                                tb_error *error)
{
    if (stepper->backend == &tb_backend_cpu && !is_host_scheme(&stepper->options)) return TB_OK;
    for (int32_t i = 0; i < worlds; i++)
        if (states[i]->model->number_of_elements > 0 || states[i]->model->number_of_elastics > 0)
            return tb_fail_field(error, TB_UNSUPPORTED, "backend",
                                 "%s of flexes are stepped by a processor, not by scheme %s on "
                                 "backend %s",
                                 states[i]->model->number_of_elements > 0 ? "elements" : "elastics",
                                 scheme_name(&stepper->options), stepper->backend->name);
    return TB_OK;
}

static tb_status step_all(tb_stepper *stepper, tb_state *const *states, const tb_course *courses,
                          int32_t worlds, int32_t steps, tb_certificate *certificates,
                          tb_error *error)
{
    /* a call that ends before its first step leaves no certificate of an earlier call */
    if (certificates) memset(certificates, 0, (size_t)worlds * sizeof *certificates);
    tb_status status = choose_again(stepper, states, worlds, error), first_failure = TB_OK;
    int32_t first = 0;
    if (status == TB_OK) status = check_elements(stepper, states, worlds, error);
    if (status != TB_OK) return status;
    do {
        int32_t end = first;
        while (end < worlds && !states[end]->soft == !states[first]->soft) end++;
        tb_error ignored;
        status = step_alike(stepper, states + first, courses ? courses + first : NULL, end - first,
                            steps, certificates ? certificates + first : NULL,
                            first_failure == TB_OK ? error : &ignored);
        if (first_failure == TB_OK) first_failure = status;
        first = end;
    } while (first < worlds);
    return first_failure;
}

static tb_status check_worlds(tb_state *const *states, int32_t worlds, tb_error *error)
{
    if (worlds < 0 || (worlds > 0 && !states))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "worlds", "%d worlds", worlds);
    return TB_OK;
}

tb_status tb_step_batch(tb_stepper *stepper, tb_state *const *states, int32_t worlds, int32_t steps,
                        tb_certificate *certificates, tb_error *error)
{
    const tb_status status = check_worlds(states, worlds, error);
    if (status != TB_OK) return status;
    if (steps < 0) return tb_fail_field(error, TB_INVALID_ARGUMENT, "steps", "%d steps", steps);
    return step_all(stepper, states, NULL, worlds, steps, certificates, error);
}

/* ---- courses ---- */

typedef struct check {
    tb_state *const *states;
    const tb_course *courses;
    atomic_int first; /* first world whose course is invalid; the number of worlds: none */
} check;

static bool are_finite(const double *numbers, int64_t count)
{
    bool finite = true;
    for (int64_t i = 0; i < count && numbers; i++) finite = finite && isfinite(numbers[i]);
    return finite;
}

/* The fault of a course, NULL: none. */
static const char *fault_of(const tb_course *course, const tb_model *m)
{
    const int64_t steps = course->steps;
    const int64_t bodies = steps * m->number_of_kinematic_bodies;
    if (steps < 0) return "steps";
    if (course->number_of_watches < 0 || course->number_of_watches > TB_COURSE_WATCHES)
        return "watches";
    if (!are_finite(course->kinematic, TB_KINEMATIC_NUMBERS * bodies)) return "kinematic bodies";
    if (!are_finite(course->accelerations, 6 * bodies)) return "accelerations";
    if (!are_finite(course->controls, steps * m->number_of_actuators)) return "controls";
    for (int64_t i = 0; i < bodies && course->kinematic; i++) {
        const double *o = course->kinematic + TB_KINEMATIC_NUMBERS * i + 3;
        if (!(o[0] * o[0] + o[1] * o[1] + o[2] * o[2] + o[3] * o[3] > 1e-20)) return "orientations";
    }
    return NULL;
}

static void check_course(void *context, int32_t i, int32_t thread)
{
    (void)thread;
    check *c = context;
    int first = atomic_load(&c->first);
    if (i >= first || !fault_of(&c->courses[i], c->states[i]->model)) return;
    while (i < first && !atomic_compare_exchange_weak(&c->first, &first, i)) continue;
}

static tb_status check_courses(tb_state *const *states, const tb_course *courses, int32_t worlds,
                               int32_t threads, tb_error *error)
{
    check c = {.states = states, .courses = courses};
    atomic_init(&c.first, worlds);
    tb_parallel_for(worlds, 64, worlds < PARALLEL_WORLDS ? 1 : threads, check_course, &c);
    const int32_t first = atomic_load(&c.first);
    if (first == worlds) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "courses", "the %s of course %d make no sense",
                         fault_of(&courses[first], states[first]->model), first);
}

tb_status tb_step_courses(tb_stepper *stepper, tb_state *const *states, const tb_course *courses,
                          int32_t worlds, tb_certificate *certificates, tb_error *error)
{
    tb_status status = check_worlds(states, worlds, error);
    if (status != TB_OK || worlds == 0) return status;
    if (!courses) return tb_fail_field(error, TB_INVALID_ARGUMENT, "courses", "no courses");
    status = check_courses(states, courses, worlds, stepper->options.threads, error);
    if (status != TB_OK) return status;
    return step_all(stepper, states, courses, worlds, 0, certificates, error);
}

tb_status tb_export_problem(tb_stepper *stepper, const tb_state *state, const char *path,
                            tb_error *error)
{
    const tb_status status = tb_state_sync_to_host(state, TB_STATE_ALL, error);
    if (status != TB_OK) return status;
    if (stepper->options.scheme == TB_SCHEME_VOLUME)
        return tb_fail_field(error, TB_UNSUPPORTED, "scheme",
                             "the volume law solves no contact problem that could be exported");
    if (stepper->options.scheme == TB_SCHEME_PLANAR)
        return tb_planar_export(state, &stepper->options, &stepper->questions, path, error);
    return tb_world_export(state, &stepper->options, &stepper->questions, path, error);
}

/* ---- certificates ---- */

void tb_certificate_merge(tb_certificate *into, const tb_certificate *other)
{
    tb_certificate_add(into, other);
}
