/* A grasp of 1,000 steps at a residual of 1e-8 in one session, one step a call: linear solves,
 * factorizations and time of a step from warm sets, against cold starts and against sweeps.
 *
 * Two scenes: the jaw and mug that simulators are timed on (tests/data/jaw_mug.c), and the hand that
 * takes the same kind of mug by its handle, which is harder (tests/data/hand.c, keyframe "handle").
 * The jaw closes, lifts, holds; from 1.5 s to 1.7 s the mug is pulled and twisted to and fro. Then
 * two sessions of it take turns, call by call, one half a second behind the other.
 *
 * Goals: five times fewer linear solves warm than cold; auto faster than sor. */
#include <unistd.h>

#include "common_bench.h"

enum { STEPS = 1000, ROUNDS = 7, DELAY = 250 };
static const double TOLERANCE = 1e-8;

typedef struct scene {
    const char *name;
    tb_model *model;
    int32_t keyframe;   /* -1: none */
    int32_t lift;       /* actuator */
    int32_t closing[2]; /* actuators */
    double force;       /* N */
    int32_t mug;
} scene;

typedef struct session {
    tb_state *state;
    double height; /* of the lift at the start */
    tb_certificate sum;
} session;

/* Runs a generator of tests/data; the folder that it wrote to. */
static void generate(const char *program, char folder[520])
{
    char self[512], command[1600];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *slash = strstr(self, "/bench/");
    if (slash != NULL) *slash = '\0';
    snprintf(folder, 520, "%s/data", self);
    snprintf(command, sizeof command, "'%s/%s' '%s' > /dev/null", folder, program, folder);
    if (system(command) != 0) exit(1);
}

static tb_model *load(const char *program, const char *file)
{
    tb_error error;
    tb_model *model = NULL;
    char folder[520], path[600];
    generate(program, folder);
    snprintf(path, sizeof path, "%.520s/%.60s", folder, file);
    bench_check(tb_model_load(path, NULL, &model, &error), &error);
    return model;
}

static session begin(const scene *s)
{
    tb_error error;
    session run = {0};
    bench_check(tb_state_create(s->model, &run.state, &error), &error);
    if (s->keyframe >= 0) bench_check(tb_state_reset(run.state, s->keyframe, &error), &error);
    for (int k = 0; k < 2; k++)
        bench_check(tb_state_set_control(run.state, s->closing[k], s->force, &error), &error);
    run.height = tb_state_controls(run.state)[s->lift];
    return run;
}

/* one call */
static void step(const scene *s, tb_stepper *stepper, session *run)
{
    tb_error error;
    tb_certificate c;
    const double time = 2e-3 * (double)tb_state_steps(run->state), pull = time - 1.5;
    double wrench[6] = {0};
    if (pull >= 0 && pull < 0.2) {
        wrench[0] = 0.5 * sin(60 * pull);
        wrench[1] = 2 * sin(100 * pull);
        wrench[5] = 0.02;
    }
    const double lift = run->height + 0.1 * fmin(fmax((time - 0.6) / 0.6, 0), 1);
    bench_check(tb_state_set_control(run->state, s->lift, lift, &error), &error);
    bench_check(tb_state_set_body_wrench(run->state, s->mug, wrench, &error), &error);
    bench_check(tb_step(stepper, run->state, 1, &c, &error), &error);
    tb_certificate_merge(&run->sum, &c);
}

static void end(const scene *s, session *run)
{
    tb_body_motion motion;
    bench_check(tb_state_body_motion(run->state, s->mug, &motion), NULL);
    if (tb_state_steps(run->state) >= STEPS && !(motion.position[2] > 0.09)) {
        fprintf(stderr, "bench: %s was not lifted (z %.4f m)\n", s->name, motion.position[2]);
        exit(1);
    }
    tb_state_destroy(run->state);
}

/* time of a step, s */
static double alone(const scene *s, tb_stepper *stepper, tb_certificate *sum)
{
    session run = begin(s);
    const double start = bench_now();
    for (int i = 0; i < STEPS; i++) step(s, stepper, &run);
    const double seconds = (bench_now() - start) / STEPS;
    *sum = run.sum;
    end(s, &run);
    return seconds;
}

static double interleaved(const scene *s, tb_stepper *stepper, tb_certificate sums[2])
{
    session runs[2] = {begin(s), begin(s)};
    const double start = bench_now();
    for (int i = 0; i < STEPS + DELAY; i++) {
        if (i < STEPS) step(s, stepper, &runs[0]);
        if (i >= DELAY) step(s, stepper, &runs[1]);
    }
    const double seconds = (bench_now() - start) / (2.0 * STEPS);
    for (int k = 0; k < 2; k++) {
        sums[k] = runs[k].sum;
        end(s, &runs[k]);
    }
    return seconds;
}

static void print(const scene *s, const char *way, const char *what, double value)
{
    char name[160];
    snprintf(name, sizeof name, "%s, %s, %s", s->name, way, what);
    bench_print_number(name, "1", value);
}

static void print_work(const scene *s, const char *way, const tb_certificate *c)
{
    print(s, way, "linear solves a step", (double)c->linear_solves / STEPS);
    print(s, way, "factorizations a step", (double)c->factorizations / STEPS);
    print(s, way, "sweeps a step", (double)(c->iterations - c->linear_solves) / STEPS);
    print(s, way, "resets", (double)c->resets);
    if (c->known_statuses > 0)
        print(s, way, "share of statuses kept",
              (double)c->kept_statuses / (double)c->known_statuses);
    print(s, way, "largest residual", c->residual);
}

enum { AUTO_WARM, NEWTON_WARM, SOR_WARM, NEWTON_COLD, AUTO_COLD, WAYS };

static void measure(const scene *s)
{
    static const struct {
        const char *name, *solver;
        bool warm;
    } LIST[WAYS] = {{"auto warm", "auto", true},
                    {"newton warm", "newton", true},
                    {"sor warm", "sor", true},
                    {"newton cold", "newton", false},
                    {"auto cold", "auto", false}};
    tb_error error;
    bench_figure times[WAYS + 1] = {{0}}, over_auto = {0}, over_newton = {0};
    char names[WAYS + 1][120];
    tb_certificate sums[WAYS], both[2];
    tb_stepper *steppers[WAYS];
    for (int w = 0; w <= WAYS; w++) {
        snprintf(names[w], sizeof names[w], "%s, %s, a step", s->name,
                 w < WAYS ? LIST[w].name : "auto warm in two sessions by turns");
        times[w].name = names[w];
        times[w].unit = "s";
    }
    for (int w = 0; w < WAYS; w++) {
        tb_step_options options = tb_step_defaults();
        options.solve.tolerance = TOLERANCE;
        options.solve.solver = LIST[w].solver;
        options.solve.warm_start = LIST[w].warm;
        options.solve.maximum_iterations = 2000;
        bench_check(tb_stepper_create(&options, &steppers[w], &error), &error);
    }
    /* ways in turns, so that what else the machine does is everyone's */
    for (int round = 0; round <= ROUNDS; round++) {
        for (int w = 0; w < WAYS; w++) {
            const double seconds = alone(s, steppers[w], &sums[w]);
            if (round > 0) bench_add(&times[w], seconds);
        }
        const double seconds = interleaved(s, steppers[AUTO_WARM], both);
        if (round == 0) continue;
        bench_add(&times[WAYS], seconds);
        const double sweeps = times[SOR_WARM].samples[round - 1];
        bench_add(&over_auto, sweeps / times[AUTO_WARM].samples[round - 1]);
        bench_add(&over_newton, sweeps / times[NEWTON_WARM].samples[round - 1]);
    }
    for (int w = 0; w <= WAYS; w++) bench_print(&times[w]);
    for (int w = 0; w < WAYS; w++) print_work(s, LIST[w].name, &sums[w]);
    print_work(s, "first of two sessions", &both[0]);
    print_work(s, "second of two sessions", &both[1]);
    print(s, "newton", "linear solves, cold over warm",
          (double)sums[NEWTON_COLD].linear_solves / (double)sums[NEWTON_WARM].linear_solves);
    print(s, "sor over auto", "time of a step, warm", bench_median(&over_auto));
    print(s, "sor over newton", "time of a step, warm", bench_median(&over_newton));
    for (int w = 0; w < WAYS; w++) tb_stepper_destroy(steppers[w]);
}

static int32_t find(const tb_model *model, tb_handle_kind kind, const char *name)
{
    const int32_t index = tb_model_find(model, kind, name);
    if (index < 0) {
        fprintf(stderr, "bench: the model has no '%s'\n", name);
        exit(1);
    }
    return index;
}

int main(void)
{
    scene jaw = {.name = "jaw and mug", .keyframe = -1, .force = 20};
    jaw.model = load("jaw_mug", "jaw_mug.xml");
    jaw.lift = find(jaw.model, TB_HANDLE_ACTUATOR, "lift");
    jaw.closing[0] = find(jaw.model, TB_HANDLE_ACTUATOR, "close-1");
    jaw.closing[1] = find(jaw.model, TB_HANDLE_ACTUATOR, "close+1");
    jaw.mug = find(jaw.model, TB_HANDLE_BODY, "mug");
    measure(&jaw);
    tb_model_destroy(jaw.model);

    scene hand = {.name = "hand on the handle", .force = 40};
    char folder[520];
    generate("mug", folder); /* its mesh */
    hand.model = load("hand", "grasp.xml");
    hand.keyframe = find(hand.model, TB_HANDLE_KEYFRAME, "handle");
    hand.lift = find(hand.model, TB_HANDLE_ACTUATOR, "lift");
    hand.closing[0] = find(hand.model, TB_HANDLE_ACTUATOR, "close_left");
    hand.closing[1] = find(hand.model, TB_HANDLE_ACTUATOR, "close_right");
    hand.mug = find(hand.model, TB_HANDLE_BODY, "mug");
    measure(&hand);
    tb_model_destroy(hand.model);
    return 0;
}
