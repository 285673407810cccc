/* Jaw and mug on a card: world-steps a second of many worlds in the hold, and of whole grasps from
 * different starts, at residuals 1e-3 and 1e-6, in float and double.
 *
 *   bench_gpu [--grasp] [--quick] [--backend cpu] [WORLDS ...]      (1 1024 8192 32768)
 *
 * The scene that MuJoCo Warp is timed on (tests/data/jaw_mug.c): close for 1 s, lift to 0.2 m until
 * 2 s, hold until 3 s, dt 2 ms. Compute time is the card's own, by its events around the launches;
 * wall time is that of the calls, copies to and from the card included. Prints one JSON object a
 * line: each names commit, card and driver. */
#include <unistd.h>

#include "common_bench.h"

enum { HOLD_STEPS = 100, WARM_STEPS = 20, REPEATS = 3, GRASP_STEPS = 1500, PIECE = 10 };

static const double DT = 2e-3; /* s */

/* A look instead of a measurement: one short run at 1e-3 in float and one at 1e-6 in double. */
static bool quick;

typedef struct bench {
    tb_model *model;
    tb_backend_choice backend;
    tb_device_info device;
    char commit[64];
} bench;

static void load(bench *b)
{
    tb_error error;
    char self[512], command[1400], path[600];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *slash = strstr(self, "/bench/");
    if (slash != NULL) *slash = '\0';
    snprintf(command, sizeof command, "'%s/data/jaw_mug' /tmp > /dev/null", self);
    if (system(command) != 0) exit(1);
    snprintf(path, sizeof path, "/tmp/jaw_mug.xml");
    bench_check(tb_model_load(path, NULL, &b->model, &error), &error);

    /* the plug-in beside the tests' folder, unless the caller knows better */
    slash = strstr(self, "/tests");
    if (slash != NULL) *slash = '\0';
    snprintf(path, sizeof path, "%s/libtribo_gpu.so", self);
    if (setenv("TRIBO_GPU_PLUGIN", path, 0) != 0) exit(1);
    bench_check(tb_device_describe(b->backend, 0, &b->device, &error), &error);

    const char *commit = getenv("TRIBO_COMMIT");
    FILE *git = commit == NULL ? popen("git rev-parse --short=12 HEAD 2>/dev/null", "r") : NULL;
    snprintf(b->commit, sizeof b->commit, "%s", commit != NULL ? commit : "unknown");
    if (git != NULL) {
        if (fscanf(git, "%63s", b->commit) != 1) snprintf(b->commit, sizeof b->commit, "unknown");
        pclose(git);
    }
}

static void control(const bench *b, tb_state *state, const char *actuator, double value)
{
    tb_error error;
    const int32_t index = tb_model_find(b->model, TB_HANDLE_ACTUATOR, actuator);
    bench_check(tb_state_set_control(state, index, value, &error), &error);
}

static void close_jaw(const bench *b, tb_state *state)
{
    control(b, state, "close-1", 20);
    control(b, state, "close+1", 20);
}

/* A world in which the mug is held in the air. */
static tb_state *held(const bench *b)
{
    tb_error error;
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    bench_check(tb_state_create(b->model, &state, &error), &error);
    bench_check(tb_stepper_create(NULL, &stepper, &error), &error);
    close_jaw(b, state);
    for (int i = 0; i < GRASP_STEPS; i++) {
        control(b, state, "lift", 0.2 * fmin(fmax(DT * i - 1, 0), 1));
        bench_check(tb_step(stepper, state, 1, NULL, &error), &error);
    }
    tb_stepper_destroy(stepper);
    return state;
}

static int32_t lifted(const bench *b, tb_state *const *states, int32_t worlds)
{
    const int32_t mug = tb_model_find(b->model, TB_HANDLE_BODY, "mug");
    int32_t count = 0;
    for (int32_t i = 0; i < worlds; i++) {
        tb_body_motion motion;
        bench_check(tb_state_body_motion(states[i], mug, &motion), NULL);
        count += motion.position[2] > 0.19;
    }
    return count;
}

typedef struct figures {
    const char *part;
    int32_t worlds, steps, lifted;
    tb_step_options options;
    double compute, wall, copy; /* s, of all steps */
    double residual, sweeps, contacts;
    tb_stepper_use use;
} figures;

static void print(const bench *b, const figures *f)
{
    const double n = (double)f->worlds * f->steps;
    printf("{\"bench\": \"gpu\", \"commit\": \"%s\", \"card\": \"%s\", \"driver\": \"%s\", "
           "\"backend\": \"%s\", \"scene\": \"jaw and mug\", \"part\": \"%s\", "
           "\"precision\": \"%s\", \"tolerance\": %g, \"worlds\": %d, \"steps\": %d, "
           "\"world_steps_per_s\": %.6g, \"contact_steps_per_s\": %.6g, \"us_per_step\": %.6g, "
           "\"world_steps_per_s_with_copies\": %.6g, \"copy_s\": %.4g, \"residual\": %.3g, "
           "\"sweeps_per_step\": %.4g, \"contacts\": %.4g, \"lifted\": %d, "
           "\"device_bytes\": %llu, \"regrowths\": %lld}\n",
           b->commit, b->device.name, b->device.driver, f->use.backend, f->part,
           f->options.precision == TB_FLOAT ? "float" : "double", f->options.solve.tolerance,
           f->worlds, f->steps, n / f->compute, n / f->compute * f->contacts,
           1e6 * f->compute / f->steps, n / f->wall, f->copy, f->residual, f->sweeps, f->contacts,
           f->lifted, (unsigned long long)f->use.device_bytes, (long long)f->use.regrowths);
    fflush(stdout);
}

/* Steps all worlds and adds what it took. */
static void advance(tb_stepper *stepper, tb_state **states, int32_t steps,
                    tb_certificate *certificates, figures *f)
{
    tb_error error;
    const tb_stepper_use before = tb_stepper_measure(stepper);
    const double start = bench_now();
    bench_check(tb_step_batch(stepper, states, f->worlds, steps, certificates, &error), &error);
    const double wall = bench_now() - start;
    f->use = tb_stepper_measure(stepper);
    const double compute = f->use.compute_seconds - before.compute_seconds;
    f->wall += wall;
    f->compute += compute > 0 ? compute : wall; /* the CPU has no clock of its own */
    f->copy += f->use.copy_seconds - before.copy_seconds;
    f->steps += steps;
    for (int32_t i = 0; i < f->worlds; i++) {
        f->residual = fmax(f->residual, certificates[i].residual);
        f->sweeps += (double)certificates[i].iterations / f->worlds;
        f->contacts += (double)tb_state_number_of_contacts(states[i]) / f->worlds * steps;
    }
}

static void finish(const bench *b, figures *f, tb_state **states)
{
    f->sweeps /= f->steps;
    f->contacts /= f->steps;
    f->lifted = lifted(b, states, f->worlds);
    print(b, f);
}

static void run_hold(const bench *b, tb_stepper *stepper, tb_state **states,
                     tb_certificate *certificates, figures f)
{
    figures warm = f;
    advance(stepper, states, quick ? 2 : WARM_STEPS, certificates, &warm);
    f.part = "hold";
    for (int i = 0; i < (quick ? 1 : REPEATS); i++)
        advance(stepper, states, quick ? WARM_STEPS : HOLD_STEPS, certificates, &f);
    finish(b, &f, states);
}

/* Every world begins elsewhere: the mug is displaced and turned. The lift's command changes every
 * PIECE steps; in between the card is alone. */
static void run_grasps(const bench *b, tb_stepper *stepper, tb_state **states,
                       tb_certificate *certificates, figures f)
{
    tb_error error;
    double q[64];
    const tb_model_counts n = tb_model_count(b->model);
    tb_joint_info joint;
    bench_check(
        tb_model_joint_info(b->model, tb_model_find(b->model, TB_HANDLE_JOINT, "mug"), &joint),
        NULL);
    for (int32_t i = 0; i < f.worlds; i++) {
        bench_check(tb_state_reset(states[i], -1, &error), &error);
        memcpy(q, tb_state_q(states[i]), (size_t)n.coordinates * sizeof *q);
        const double turn = 0.2 * (i % 97) / 97;
        q[joint.coordinate] += 0.004 * ((i % 31) / 15.0 - 1);
        q[joint.coordinate + 1] += 0.004 * ((i % 37) / 18.0 - 1);
        q[joint.coordinate + 3] = cos(turn / 2);
        q[joint.coordinate + 6] = sin(turn / 2);
        bench_check(tb_state_set_q(states[i], q, n.coordinates, &error), &error);
        close_jaw(b, states[i]);
    }
    f.part = "whole grasps";
    const int32_t lift = tb_model_find(b->model, TB_HANDLE_ACTUATOR, "lift");
    while (f.steps < GRASP_STEPS) {
        const double time = DT * f.steps;
        const bool ramp = time >= 1 && time < 2;
        const double height = 0.2 * fmin(fmax(time + DT * PIECE / 2 - 1, 0), 1);
        for (int32_t i = 0; i < f.worlds; i++)
            bench_check(tb_state_set_control(states[i], lift, time < 1 ? 0 : height, &error),
                        &error);
        advance(stepper, states, ramp ? PIECE : 500, certificates, &f);
    }
    finish(b, &f, states);
}

static void run(const bench *b, tb_state *start, int32_t worlds, bool grasp)
{
    tb_error error;
    tb_state **states = calloc((size_t)worlds, sizeof(tb_state *));
    tb_certificate *certificates = calloc((size_t)worlds, sizeof *certificates);
    if (states == NULL || certificates == NULL) exit(1);
    for (int k = 0; k < 4; k++) {
        if (quick && k % 3 != 0) continue;
        figures f = {.worlds = worlds, .options = tb_step_defaults()};
        tb_stepper *stepper = NULL;
        f.options.backend = b->backend;
        f.options.threads = 0;
        f.options.precision = k < 2 ? TB_FLOAT : TB_DOUBLE;
        f.options.solve.tolerance = k % 2 == 0 ? 1e-3 : 1e-6;
        bench_check(tb_stepper_create(&f.options, &stepper, &error), &error);
        for (int32_t i = 0; i < worlds; i++)
            bench_check(tb_state_fork(start, &states[i], &error), &error);
        run_hold(b, stepper, states, certificates, f);
        if (grasp && k % 3 == 0) run_grasps(b, stepper, states, certificates, f);
        for (int32_t i = 0; i < worlds; i++) tb_state_destroy(states[i]);
        tb_stepper_destroy(stepper);
    }
    free(states);
    free(certificates);
}

int main(int argc, char **argv)
{
    static const int32_t WORLDS[] = {1, 1024, 8192, 32768};
    bench b = {.backend = TB_BACKEND_GPU};
    bool grasp = false, chosen = false;
    for (int i = 1; i < argc; i++) {
        grasp |= strcmp(argv[i], "--grasp") == 0;
        quick |= strcmp(argv[i], "--quick") == 0;
        if (strcmp(argv[i], "cpu") == 0) b.backend = TB_BACKEND_CPU;
    }
    tb_backend_info info;
    load(&b);
    bench_check(tb_backend_describe(b.backend, &info), NULL);
    if (info.devices == 0) {
        printf("bench: no GPU: %s\n", info.reason);
        return 0;
    }
    tb_state *start = held(&b);
    for (int i = 1; i < argc; i++) {
        const int worlds = atoi(argv[i]);
        if (worlds > 0) run(&b, start, worlds, grasp);
        chosen |= worlds > 0;
    }
    for (size_t i = 0; !chosen && i < sizeof WORLDS / sizeof *WORLDS; i++)
        run(&b, start, WORLDS[i], grasp && WORLDS[i] <= 8192);
    tb_state_destroy(start);
    tb_model_destroy(b.model);
    return 0;
}
