/* Loads a model and steps its worlds in portions. See simulation.h. */
#include "simulation/simulation.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/interrupt.h"

/* A portion of steps aims at this time: short enough for Ctrl-C and a moving bar. */
static const double PORTION_S = 0.05;
/* Largest portion whose energies are summed: shapes stepped, and steps. The last digits of a sum
 * depend on the portion's length, so no clock sets it. */
enum { PORTION_SHAPES = 4096, PORTION_STEPS = 16 };
/* A step belongs to a row of controls that begins this share of a step after it: times are sums of
 * many steps, rows are decimal. */
static const double ROW_TOLERANCE_STEPS = 1e-6;

/* ---- options ---- */

simulation_options simulation_defaults(void)
{
    const tb_step_options defaults = tb_step_defaults();
    simulation_options options = {.worlds = 1, .device = device_defaults()};
    options.scheme = (int)defaults.scheme;
    options.precision = (int)defaults.precision;
    options.storage = (int)defaults.solve.storage;
    options.r_strategy = (int)defaults.solve.r_strategy;
    options.colouring = (int)defaults.solve.colouring;
    return options;
}

void simulation_option_list(simulation_options *o, args_option list[SIMULATION_OPTIONS])
{
    /* in the order of the library's enumerations */
    static const char *const SCHEMES[] = {"stewart-trinkle", "moreau", "planar", NULL};
    static const char *const CONTACTS[] = {"exact", "volume", NULL};
    static const char *const PRECISIONS[] = {"double", "single", NULL};
    static const char *const STORAGES[] = {"auto", "factorized", "dense", "T", NULL};
    static const char *const STRATEGIES[] = {"diagonal", "richardson", "spectrum", "gauss-seidel",
                                             NULL};
    static const char *const COLOURINGS[] = {"rigid", "balanced", "relaxed", NULL};
    args_option device[DEVICE_OPTIONS];
    args_option import[IMPORTING_OPTIONS];
    device_option_list(&o->device, device);
    importing_option_list(&o->import, import);
    const args_option options[SIMULATION_OPTIONS] = {
        {"dt", "S", "step in seconds (the model's)", ARGS_NUMBER, &o->dt, DBL_MIN, 1, NULL},
        {"scheme", "NAME", "time stepping", ARGS_CHOICE, &o->scheme, 0, 0, SCHEMES},
        {"contact", "NAME", "exact: the hard law; volume: forces from overlap volumes", ARGS_CHOICE,
         &o->contact, 0, 0, CONTACTS},
        {"integrator", "NAME", "of --contact volume (rkfix4): see 'tribo version'", ARGS_TEXT,
         &o->integrator, 0, 0, NULL},
        {"precision", "NAME", "of the arithmetic", ARGS_CHOICE, &o->precision, 0, 0, PRECISIONS},
        {"solver", "NAME", "contact solver: see 'tribo solve --help'", ARGS_TEXT, &o->solver, 0, 0,
         NULL},
        {"tolerance", "T", "residual at which a step's solver stops; of an integrator", ARGS_NUMBER,
         &o->tolerance, DBL_MIN, 1, NULL},
        {"merge", "SHARE", "join contact points nearer than this share of a body's size (0)",
         ARGS_NUMBER, &o->contact_merge, 0, 0.1, NULL},
        {"max-iterations", "N", "of the solver, each step", ARGS_INTEGER, &o->maximum_iterations, 1,
         INT32_MAX, NULL},
        {"omega", "W", "relaxation of the solver", ARGS_NUMBER, &o->omega, DBL_MIN, 2, NULL},
        {"storage", "NAME", "of the contact problem", ARGS_CHOICE, &o->storage, 0, 0, STORAGES},
        {"r", "NAME", "how the solver's step is found", ARGS_CHOICE, &o->r_strategy, 0, 0,
         STRATEGIES},
        {"colouring", "NAME", "of --solver coloured", ARGS_CHOICE, &o->colouring, 0, 0, COLOURINGS},
        {"colours", "N", "least number of --colouring balanced", ARGS_INTEGER, &o->colours, 0,
         INT32_MAX, NULL},
        {"worlds", "N", "copies stepped side by side (1)", ARGS_INTEGER, &o->worlds, 1, 1000000,
         NULL},
        device[0],
        device[1],
        {"threads", "N", "0: all processors (0)", ARGS_INTEGER, &o->threads, 0, 4096, NULL},
        {"keyframe", "NAME", "begin at this keyframe (name or number; \"start\" if there is one)",
         ARGS_TEXT, &o->keyframe, 0, 0, NULL},
        import[0],
        import[1],
        import[2],
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    memcpy(list, options, sizeof options);
}

bool simulation_check_solver(const char *command, const char *solver)
{
    const char *names[32] = {NULL};
    char list[256] = "";
    size_t used = 0;
    if (solver == NULL) return true;
    for (int32_t i = 0; i < 31 && tb_solver_name(i) != NULL; i++) {
        names[i] = tb_solver_name(i);
        if (strcmp(names[i], solver) == 0) return true;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ",
                                     names[i]);
    }
    const char *nearest = args_nearest(solver, names);
    if (nearest != NULL)
        args_complain(command, "no solver '%s' among %s; did you mean '%s'?", solver, list,
                      nearest);
    else
        args_complain(command, "no solver '%s' among %s", solver, list);
    return false;
}

bool simulation_check_law(const char *command, const simulation_options *options)
{
    if (options->contact == 0) {
        if (options->integrator == NULL) return simulation_check_solver(command, options->solver);
        args_complain(command, "--integrator goes with --contact volume");
        return false;
    }
    if (options->solver != NULL || options->scheme != simulation_defaults().scheme) {
        args_complain(command,
                      "--contact volume has no --scheme and no --solver, but --integrator");
        return false;
    }
    const char *names[32] = {"auto"};
    for (int32_t i = 0; i < 30 && tb_integrator_name(i) != NULL; i++)
        names[i + 1] = tb_integrator_name(i);
    for (int i = 0; names[i] != NULL && options->integrator != NULL; i++)
        if (strcmp(names[i], options->integrator) == 0) return true;
    if (options->integrator == NULL) return true;
    const char *nearest = args_nearest(options->integrator, names);
    args_complain(command, "no integrator '%s'%s%s%s; 'tribo version' lists them",
                  options->integrator, nearest ? "; did you mean '" : "", nearest ? nearest : "",
                  nearest ? "'?" : "");
    return false;
}

static tb_step_options step_options(const simulation_options *options)
{
    tb_step_options step = tb_step_defaults();
    step.dt = options->dt;
    step.scheme = (tb_scheme)options->scheme;
    step.precision = (tb_precision)options->precision;
    step.threads = (int32_t)options->threads;
    step.report_energy = options->report_energy;
    step.contact_merge = options->contact_merge;
    step.solve.threads = (int32_t)options->threads;
    step.solve.storage = (tb_storage)options->storage;
    step.solve.r_strategy = (tb_r_strategy)options->r_strategy;
    step.solve.colouring = (tb_solve_colouring)options->colouring;
    step.solve.colours = (int32_t)options->colours;
    device_apply(&options->device, &step);
    if (options->solver != NULL) step.solve.solver = options->solver;
    if (options->contact == 1) {
        step.scheme = TB_SCHEME_VOLUME;
        step.solve.solver = options->integrator != NULL ? options->integrator : "auto";
    }
    if (options->tolerance > 0) step.solve.tolerance = options->tolerance;
    if (options->omega > 0) step.solve.omega = options->omega;
    if (options->maximum_iterations > 0)
        step.solve.maximum_iterations = (int32_t)options->maximum_iterations;
    return step;
}

/* ---- setting up ---- */

tb_status simulation_load_model(const char *path, importing *import, const char *keyframe,
                                bool quiet, tb_model **model, tb_error *error)
{
    tb_import_options options = tb_import_defaults();
    tb_status status = import != NULL ? importing_fill(import, &options, error) : TB_OK;
    options.overlap_keyframe = keyframe;
    if (status == TB_OK) status = tb_model_load(path, &options, model, error);
    if (status != TB_OK) return status;
    const int32_t warnings = tb_model_count(*model).warnings;
    for (int32_t i = 0; i < warnings && !quiet; i++)
        fprintf(stderr, "tribo: warning: %s\n", tb_model_warning(*model, i));
    return TB_OK;
}

tb_status simulation_find_keyframe(const tb_model *model, const char *keyframe, int32_t *index,
                                   tb_error *error)
{
    *index = tb_model_find(model, TB_HANDLE_KEYFRAME, "start");
    if (keyframe == NULL) return TB_OK;
    const int32_t count = tb_model_count(model).keyframes;
    *index = tb_model_find(model, TB_HANDLE_KEYFRAME, keyframe);
    if (*index >= 0) return TB_OK;

    char *end = NULL;
    const long number = strtol(keyframe, &end, 10);
    if (end != keyframe && *end == '\0' && number >= 0 && number < count) {
        *index = (int32_t)number;
        return TB_OK;
    }
    char list[256] = "";
    name_list names = {0};
    const tb_status status = name_list_create(model, TB_HANDLE_KEYFRAME, &names, error);
    if (status != TB_OK) return status;
    name_list_join(&names, list, sizeof list);
    name_list_free(&names);
    return cli_fail(error, TB_NOT_FOUND, "", 0, "keyframe", "no keyframe '%s'; there are: %s",
                    keyframe, list);
}

tb_status simulation_open(const simulation_options *options, simulation *s, tb_error *error)
{
    memset(s, 0, sizeof *s);
    const tb_step_options step = step_options(options);
    int32_t keyframe = -1;

    s->import = options->import;
    tb_status status = simulation_load_model(options->path, &s->import, options->keyframe,
                                             options->quiet, &s->model, error);
    if (status != TB_OK) goto done;
    status = simulation_find_keyframe(s->model, options->keyframe, &keyframe, error);
    if (status != TB_OK) goto done;
    if (options->remote == NULL) status = tb_stepper_create(&step, &s->stepper, error);
    if (status != TB_OK) goto done;

    s->dt = step.dt > 0 ? step.dt : tb_model_dt(s->model);
    s->report_energy = step.report_energy;
    s->worlds = calloc((size_t)options->worlds, sizeof(tb_state *));
    s->latest = calloc((size_t)options->worlds, sizeof *s->latest);
    s->portion = calloc((size_t)options->worlds, sizeof *s->portion);
    if (s->worlds == NULL || s->latest == NULL || s->portion == NULL) {
        status = cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, "worlds",
                          "no memory for %lld worlds", (long long)options->worlds);
        goto done;
    }
    for (int64_t i = 0; i < options->worlds; i++) {
        status = tb_state_create(s->model, &s->worlds[i], error);
        if (status != TB_OK) goto done;
        s->number_of_worlds++;
        if (keyframe >= 0) status = tb_state_reset(s->worlds[i], keyframe, error);
        if (status != TB_OK) goto done;
    }
    if (options->remote != NULL) {
        char device[DEVICE_NAME];
        tb_import_options import = tb_import_defaults();
        status = importing_fill(&s->import, &import, error);
        if (status != TB_OK) goto done;
        import.overlap_keyframe = options->keyframe;
        const remote_step remote = {&step, device_name(&options->device, device),
                                    s->number_of_worlds, keyframe, &import};
        status = remote_session_open(options->remote, options->path, s->model, &remote, &s->remote,
                                     error);
    }
done:
    if (status != TB_OK) simulation_close(s);
    return status;
}

void simulation_close(simulation *s)
{
    for (int32_t i = 0; i < s->number_of_worlds; i++) tb_state_destroy(s->worlds[i]);
    free(s->worlds);
    free(s->latest);
    free(s->portion);
    remote_session_close(s->remote);
    tb_stepper_destroy(s->stepper);
    tb_model_destroy(s->model);
    importing_free(&s->import);
    memset(s, 0, sizeof *s);
}

/* ---- running ---- */

/* Sets the row's controls in every world; lowers *steps to the steps until the next row. */
static tb_status apply_controls(simulation *s, const control_table *controls, int64_t *steps,
                                tb_error *error)
{
    const double time = tb_state_time(s->worlds[0]);
    const double tolerance = ROW_TOLERANCE_STEPS * s->dt;
    const int32_t row = controls_row(controls, time, tolerance);
    for (int32_t i = 0; row >= 0 && i < controls->columns; i++) {
        const double value = controls->values[(size_t)row * (size_t)controls->columns + (size_t)i];
        for (int32_t w = 0; w < s->number_of_worlds; w++) {
            const tb_status status =
                tb_state_set_control(s->worlds[w], controls->actuators[i], value, error);
            if (status != TB_OK) return status;
        }
    }
    if (row + 1 < controls->rows) {
        const double until = (controls->times[row + 1] - time) / s->dt;
        const double whole = ceil(until - ROW_TOLERANCE_STEPS);
        if (whole < (double)*steps) *steps = whole > 1 ? (int64_t)whole : 1;
    }
    return TB_OK;
}

/* Steps of a portion: of a length that depends on the model alone where energies are summed, else the
 * last length by the clock, `steps`. A card gets whole launches. */
static int64_t portion_length(const simulation *s, int64_t steps)
{
    if (!s->report_energy) return steps;
    const bool on_card =
        s->stepper == NULL || strcmp(tb_stepper_measure(s->stepper).backend, "cpu") != 0;
    const int64_t shapes = (int64_t)tb_model_count(s->model).shapes * s->number_of_worlds;
    const int64_t fit = on_card || shapes < 1 ? PORTION_STEPS : PORTION_SHAPES / shapes;
    return fit < 1 ? 1 : fit < PORTION_STEPS ? fit : PORTION_STEPS;
}

/* Steps of the portion that begins after `done` steps. The last step is alone, so that its certificate
 * is separate. */
static tb_status begin_portion(simulation *s, int64_t longest, int64_t done, int64_t steps,
                               const control_table *controls, int64_t *length, tb_error *error)
{
    *length = portion_length(s, longest);
    if (*length > steps - done) *length = steps - done;
    if (*length > 1 && *length == steps - done) --*length;
    memset(s->portion, 0, (size_t)s->number_of_worlds * sizeof *s->portion);
    return controls != NULL ? apply_controls(s, controls, length, error) : TB_OK;
}

/* Steps all worlds; their certificates go to `latest` and are added to the portion's. */
static tb_status make_steps(simulation *s, int32_t steps, tb_error *error)
{
    const tb_status status =
        s->remote != NULL
            ? remote_session_step(s->remote, s->worlds, steps, s->latest, error)
            : tb_step_batch(s->stepper, s->worlds, s->number_of_worlds, steps, s->latest, error);
    for (int32_t w = 0; w < s->number_of_worlds; w++)
        tb_certificate_merge(&s->portion[w], &s->latest[w]);
    s->last = s->latest[0];
    s->steps = tb_state_steps(s->worlds[0]);
    return status;
}

static void end_portion(simulation *s)
{
    for (int32_t w = 0; w < s->number_of_worlds; w++) {
        if (!s->has_merged && w == 0)
            s->merged = s->portion[0];
        else
            tb_certificate_merge(&s->merged, &s->portion[w]);
    }
    s->has_merged = true;
}

tb_status simulation_run(simulation *s, int64_t steps, const control_table *controls,
                         simulation_watch *watch, void *context, progress *bar, tb_error *error)
{
    int64_t longest = 1, left = 0; /* left: steps of the portion */
    for (int64_t done = 0; done < steps;) {
        tb_status status = TB_OK;
        if (interrupt_requested()) {
            if (left > 0) end_portion(s);
            return cli_fail(error, TB_CANCELLED, "", 0, NULL,
                            "interrupted after %lld of %lld steps", (long long)done,
                            (long long)steps);
        }
        if (left == 0) status = begin_portion(s, longest, done, steps, controls, &left, error);
        if (status != TB_OK) return status;

        const int64_t now = watch != NULL ? 1 : left;
        const double start = progress_clock();
        status = make_steps(s, (int32_t)now, error);
        const double elapsed = progress_clock() - start;
        s->seconds += elapsed;
        done += now;
        left -= now;
        const bool goes_on = status == TB_OK && (watch == NULL || watch(context, s));
        if (left == 0 || !goes_on) end_portion(s);
        if (!goes_on) return status;
        if (bar != NULL) progress_update(bar, (double)done);

        if (elapsed < PORTION_S / 2 && longest < 1 << 20)
            longest *= 2;
        else if (elapsed > PORTION_S * 2 && longest > 1)
            longest /= 2;
    }
    return TB_OK;
}
