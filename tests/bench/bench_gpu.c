/* Batches of one scene on a card: world-steps a second of worlds in the hold, and of whole motions
 * from different starts, in float and double, at certificate residuals 1e-3 and 1e-6.
 *
 *   bench_gpu [--grasp] [--quick] [--backend cpu] [WORLDS ...]            (1 1024 8192 32768)
 *   bench_gpu --model hand.xml --controls hand.csv --vary can:0.003:0.3 --held can:0.4 --grasp 8192
 *
 *   --parts LIST      hold, whole or both (hold; --grasp is both)
 *   --how LIST        float:1e-3,double:1e-6,...; else all four in the hold, these two in the whole
 *   --hold-steps N    timed three times (100)
 *   --whole-steps N   ends a whole motion after N steps, where worlds are many. The hold still
 *                     starts from the end of the scene's own motion; the varied hold is left out
 *   --solver NAME     (auto)
 *   --merge SHARE     contact_merge of the steps (0)
 *   --lanes N[,N,N,N] --alone N --overlap N
 *                     fix the schedule of the steps (solver/backend/backend.h)
 *   --courses N       whole ways by courses of N steps, which hold the controls (0: a call for each row of
 *                     the scene's controls)
 *   --asked           by a caller that may cancel and never does: its launches are shorter
 *
 * and the scene's own options, see common_worlds.h. Without --model the scene is jaw and mug: close
 * for 1 s, lift to 0.2 m until 2 s, hold until 3 s, dt 2 ms. The hold is the end of the whole: all
 * worlds equal at rest ("hold"), and after the whole every world in its own state ("varied hold").
 * Compute time is the card's own, by its events around the launches; wall time is that of the
 * calls, copies to and from the card included. Prints one JSON object a line: each names commit,
 * card, driver, the steps of the way that it is or begins after ("way"), and those of the scene's.
 * */
#include "backend/backend.h"
#include "common_worlds.h"

enum { WARM_STEPS = 20, REPEATS = 3, MOST_STEPS = 500, MOST_HOWS = 8 };

typedef struct how {
    tb_precision precision;
    double tolerance;
} how;

typedef struct bench {
    bench_scene scene;
    tb_backend_choice backend;
    tb_device_info device;
    const char *solver; /* NULL: the default */
    double merge;       /* tb_step_options.contact_merge */
    how hows[MOST_HOWS];
    int number_of_hows; /* 0: the usual ones */
    int32_t hold_steps;
    int32_t whole_steps;  /* 0: the scene's */
    int32_t course_steps; /* 0: no courses */
    tb_backend_schedule schedule;
    bool hold, whole;
    bool asked;
    bool quick; /* a look: one short run at 1e-3 in float and one at 1e-6 in double */
    char commit[64];
} bench;

typedef struct figures {
    const char *part;
    int32_t worlds, steps, held;
    int32_t failed; /* calls of a world in which not every step converged */
    int32_t way;    /* steps of the way that it is, or begins after */
    tb_step_options options;
    double compute, wall, copy; /* s, of all steps */
    double residual, sweeps, contacts, penetration;
    tb_stepper_use use;
} figures;

static bool is_cancelled(void *context)
{
    (void)context;
    return false;
}

/* ---- figures ---- */

static void print(const bench *b, const figures *f)
{
    const double n = (double)f->worlds * f->steps;
    printf("{\"bench\": \"gpu\", \"commit\": \"%s\", \"card\": \"%s\", \"driver\": \"%s\", "
           "\"backend\": \"%s\", \"scene\": \"%s\", \"part\": \"%s\", "
           "\"precision\": \"%s\", \"tolerance\": %g, \"solver\": \"%s\", \"merge\": %g, "
           "\"asked\": %s, \"worlds\": %d, "
           "\"steps\": %d, \"way\": %d, \"scene_steps\": %d, \"world_steps_per_s\": %.6g, "
           "\"contact_steps_per_s\": %.6g, "
           "\"us_per_step\": %.6g, \"world_steps_per_s_with_copies\": %.6g, \"copy_s\": %.4g, "
           "\"residual\": %.3g, \"unconverged\": %d, \"penetration\": %.3g, "
           "\"sweeps_per_step\": %.4g, \"contacts\": %.4g, \"held\": %d, "
           "\"device_bytes\": %llu, \"regrowths\": %lld}\n",
           b->commit, b->device.name, b->device.driver, f->use.backend, b->scene.name, f->part,
           f->options.precision == TB_FLOAT ? "float" : "double", f->options.solve.tolerance,
           f->options.solve.solver, f->options.contact_merge, b->asked ? "true" : "false",
           f->worlds, f->steps, f->way, b->scene.steps, n / f->compute,
           n / f->compute * f->contacts, 1e6 * f->compute / f->steps, n / f->wall, f->copy,
           f->residual, f->failed, f->penetration, f->sweeps, f->contacts, f->held,
           (unsigned long long)f->use.device_bytes, (long long)f->use.regrowths);
    fflush(stdout);
}

/* Steps all worlds, by courses or (NULL) without, and adds the time. */
static void advance(tb_stepper *stepper, tb_state **states, const tb_course *courses, int32_t steps,
                    tb_certificate *certificates, figures *f)
{
    tb_error error;
    const tb_stepper_use before = tb_stepper_measure(stepper);
    const double start = bench_now();
    const tb_status status =
        courses ? tb_step_courses(stepper, states, courses, f->worlds, certificates, &error)
                : tb_step_batch(stepper, states, f->worlds, steps, certificates, &error);
    bench_check(status, &error);
    const double wall = bench_now() - start;
    f->use = tb_stepper_measure(stepper);
    const double compute = f->use.compute_seconds - before.compute_seconds;
    f->wall += wall;
    f->compute += compute > 0 ? compute : wall; /* the CPU has no clock of its own */
    f->copy += f->use.copy_seconds - before.copy_seconds;
    f->steps += steps;
    for (int32_t i = 0; i < f->worlds; i++) {
        f->residual = fmax(f->residual, certificates[i].residual);
        f->penetration = fmax(f->penetration, certificates[i].penetration);
        f->sweeps += (double)certificates[i].iterations / f->worlds;
        f->contacts += (double)tb_state_number_of_contacts(states[i]) / f->worlds * steps;
        f->failed += certificates[i].status != TB_OK;
    }
}

static void finish(const bench *b, figures *f, tb_state **states)
{
    f->sweeps /= f->steps;
    f->contacts /= f->steps;
    f->held = bench_scene_held(&b->scene, states, f->worlds);
    print(b, f);
}

/* ---- parts ---- */

static void run_hold(const bench *b, const char *part, tb_stepper *stepper, tb_state **states,
                     tb_certificate *certificates, figures f)
{
    figures warm = f;
    advance(stepper, states, NULL, b->quick ? 2 : WARM_STEPS, certificates, &warm);
    f.part = part;
    for (int i = 0; i < (b->quick ? 1 : REPEATS); i++)
        advance(stepper, states, NULL, b->quick ? WARM_STEPS : b->hold_steps, certificates, &f);
    finish(b, &f, states);
}

static int32_t whole_steps(const bench *b)
{
    const bool cut = b->whole_steps > 0 && b->whole_steps < b->scene.steps;
    return cut ? b->whole_steps : b->scene.steps;
}

/* The whole way by courses, all worlds with the same controls. */
static void run_courses(const bench *b, tb_stepper *stepper, tb_state **states,
                        tb_certificate *certificates, figures *f)
{
    const int32_t actuators = tb_model_count(b->scene.model).actuators;
    tb_course *courses = calloc((size_t)f->worlds, sizeof *courses);
    double *controls = calloc((size_t)(b->course_steps * actuators), sizeof *controls);
    if (courses == NULL || controls == NULL) exit(1);
    for (int32_t until = 0; f->steps < f->way;) {
        const int32_t left = f->way - f->steps;
        const int32_t steps = left < b->course_steps ? left : b->course_steps;
        for (int32_t k = 0; k < steps; k++) {
            if (f->steps + k >= until)
                until = bench_scene_command(&b->scene, states, 1, f->steps + k);
            memcpy(controls + k * actuators, tb_state_controls(states[0]),
                   (size_t)actuators * sizeof *controls);
        }
        for (int32_t i = 0; i < f->worlds; i++)
            courses[i] = (tb_course){.steps = steps, .controls = controls};
        advance(stepper, states, courses, steps, certificates, f);
    }
    free(courses);
    free(controls);
}

/* From the start, each world from its own, to the end. Where controls change the card waits. */
static void run_whole(const bench *b, tb_stepper *stepper, tb_state **states,
                      tb_certificate *certificates, figures f)
{
    for (int32_t i = 0; i < f.worlds; i++) bench_scene_start(&b->scene, states[i], i);
    f.part = "whole";
    f.way = whole_steps(b);
    if (b->course_steps > 0) {
        f.part = "whole by courses";
        run_courses(b, stepper, states, certificates, &f);
    }
    while (f.steps < f.way) {
        const int32_t until = bench_scene_command(&b->scene, states, f.worlds, f.steps);
        const int32_t steps = (until < f.way ? until : f.way) - f.steps;
        advance(stepper, states, NULL, steps < MOST_STEPS ? steps : MOST_STEPS, certificates, &f);
    }
    finish(b, &f, states);
}

static void run_one(const bench *b, how way, bool whole, tb_state *held, int32_t worlds,
                    tb_state **states, tb_certificate *certificates)
{
    tb_error error;
    tb_stepper *stepper = NULL;
    figures f = {.worlds = worlds, .way = b->scene.steps, .options = tb_step_defaults()};
    f.options.backend = b->backend;
    f.options.threads = 0;
    f.options.precision = way.precision;
    f.options.solve.tolerance = way.tolerance;
    f.options.contact_merge = b->merge;
    if (b->asked) f.options.solve.cancelled = is_cancelled;
    if (b->solver != NULL) f.options.solve.solver = b->solver;
    bench_check(tb_stepper_create(&f.options, &stepper, &error), &error);
    for (int32_t i = 0; i < worlds; i++)
        bench_check(tb_state_fork(held, &states[i], &error), &error);
    if (b->hold) run_hold(b, "hold", stepper, states, certificates, f);
    if (whole) {
        run_whole(b, stepper, states, certificates, f);
        /* where the way was cut they hold nothing yet */
        if (b->hold && whole_steps(b) == b->scene.steps)
            run_hold(b, "varied hold", stepper, states, certificates, f);
    }
    for (int32_t i = 0; i < worlds; i++) tb_state_destroy(states[i]);
    tb_stepper_destroy(stepper);
}

static void run(const bench *b, tb_state *held, int32_t worlds, bool whole)
{
    static const how USUAL[] = {
        {TB_FLOAT, 1e-3}, {TB_FLOAT, 1e-6}, {TB_DOUBLE, 1e-3}, {TB_DOUBLE, 1e-6}};
    tb_state **states = calloc((size_t)worlds, sizeof(tb_state *));
    tb_certificate *certificates = calloc((size_t)worlds, sizeof *certificates);
    if (states == NULL || certificates == NULL) exit(1);
    for (int i = 0; i < b->number_of_hows; i++)
        run_one(b, b->hows[i], whole, held, worlds, states, certificates);
    for (int i = 0; i < 4 && b->number_of_hows == 0; i++) {
        const bool ends = i % 3 == 0;
        if (ends || (b->hold && !b->quick))
            run_one(b, USUAL[i], whole && ends, held, worlds, states, certificates);
    }
    free(states);
    free(certificates);
}

/* A world at the end of the undisturbed whole, stepped on the CPU. */
static tb_state *held_world(const bench *b)
{
    tb_error error;
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    bench_check(tb_state_create(b->scene.model, &state, &error), &error);
    bench_check(tb_stepper_create(NULL, &stepper, &error), &error);
    bench_scene_start(&b->scene, state, 0);
    for (int32_t step = 0; step < b->scene.steps;) {
        const int32_t until = bench_scene_command(&b->scene, &state, 1, step);
        bench_check(tb_step(stepper, state, until - step, NULL, &error), &error);
        step = until;
    }
    tb_stepper_destroy(stepper);
    return state;
}

/* ---- the command line ---- */

static void read_hows(bench *b, char *list)
{
    for (char *item = strtok(list, ","); item != NULL; item = strtok(NULL, ",")) {
        const char *tolerance = strchr(item, ':');
        if (tolerance == NULL || b->number_of_hows == MOST_HOWS) {
            fprintf(stderr, "bench: --how takes float:1e-3,double:1e-6,...\n");
            exit(2);
        }
        b->hows[b->number_of_hows++] =
            (how){item[0] == 'f' ? TB_FLOAT : TB_DOUBLE, strtod(tolerance + 1, NULL)};
    }
}

/* One number for all parts of a step, or one for each. */
static void read_lanes(int32_t lanes[4], char *list)
{
    int count = 0;
    for (char *item = strtok(list, ","); item != NULL && count < 4; item = strtok(NULL, ","))
        lanes[count++] = atoi(item);
    for (; count < 4; count++) lanes[count] = lanes[0];
}

static bool option(bench *b, const char *name, char *value)
{
    if (bench_scene_option(&b->scene, name, value)) return true;
    if (strcmp(name, "--how") == 0) {
        read_hows(b, value);
    } else if (strcmp(name, "--parts") == 0) {
        b->hold = strstr(value, "hold") != NULL || strstr(value, "both") != NULL;
        b->whole = strstr(value, "whole") != NULL || strstr(value, "both") != NULL;
    } else if (strcmp(name, "--hold-steps") == 0) {
        b->hold_steps = atoi(value);
    } else if (strcmp(name, "--courses") == 0) {
        b->course_steps = atoi(value);
    } else if (strcmp(name, "--lanes") == 0) {
        read_lanes(b->schedule.lanes, value);
    } else if (strcmp(name, "--alone") == 0) {
        b->schedule.alone = atoi(value);
    } else if (strcmp(name, "--overlap") == 0) {
        b->schedule.overlap = atoi(value);
    } else if (strcmp(name, "--whole-steps") == 0) {
        b->whole_steps = atoi(value);
    } else if (strcmp(name, "--solver") == 0) {
        b->solver = value;
    } else if (strcmp(name, "--merge") == 0) {
        b->merge = strtod(value, NULL);
    } else if (strcmp(name, "--backend") == 0) {
        b->backend = strcmp(value, "cpu") == 0 ? TB_BACKEND_CPU : TB_BACKEND_GPU;
    } else {
        return false;
    }
    return true;
}

/* The options; the worlds are moved to the front of argv. Returns their number. */
static int read_options(bench *b, int argc, char **argv)
{
    int worlds = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--grasp") == 0) {
            b->whole = true;
        } else if (strcmp(argv[i], "--asked") == 0) {
            b->asked = true;
        } else if (strcmp(argv[i], "--quick") == 0) {
            b->quick = true;
        } else if (atoi(argv[i]) > 0) {
            argv[worlds++] = argv[i];
        } else if (i + 1 == argc || !option(b, argv[i], argv[i + 1])) {
            fprintf(stderr, "bench: %s is no option; tests/bench/bench_gpu.c begins with them\n",
                    argv[i]);
            exit(2);
        } else {
            i++;
        }
    }
    return worlds;
}

/* The plug-in beside the tests' folder, unless the environment names one; and the names of
 * machine and commit. */
static bool find_device(bench *b, const char *build)
{
    tb_error error;
    tb_backend_info info;
    char path[600];
    snprintf(path, sizeof path, "%s/libtribo_gpu.so", build);
    if (setenv("TRIBO_GPU_PLUGIN", path, 0) != 0) exit(1);
    bench_check(tb_backend_describe(b->backend, &info), NULL);
    if (info.devices == 0) {
        printf("bench: no GPU: %s\n", info.reason);
        return false;
    }
    bench_check(tb_device_describe(b->backend, 0, &b->device, &error), &error);
    const tb_backend *backend = NULL;
    bench_check(tb_backend_find(b->backend, &backend, &error), &error);
    if (backend->fix_schedule != NULL) backend->fix_schedule(&b->schedule);
    bench_commit(b->commit);
    return true;
}

int main(int argc, char **argv)
{
    static const int32_t WORLDS[] = {1, 1024, 8192, 32768};
    bench b = {.backend = TB_BACKEND_GPU,
               .hold_steps = 100,
               .hold = true,
               .schedule = tb_backend_schedule_chosen()};
    const char *build = bench_build_folder();
    const int chosen = read_options(&b, argc, argv);
    if (!find_device(&b, build)) return 0;
    bench_scene_load(&b.scene, build);
    tb_state *held = held_world(&b);
    for (int i = 0; i < chosen; i++) run(&b, held, atoi(argv[i]), b.whole);
    for (size_t i = 0; chosen == 0 && i < sizeof WORLDS / sizeof *WORLDS; i++)
        run(&b, held, WORLDS[i], b.whole && WORLDS[i] <= 8192);
    tb_state_destroy(held);
    bench_scene_free(&b.scene);
    return 0;
}
