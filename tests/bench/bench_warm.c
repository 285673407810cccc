/* A grasp of 1,000 steps at a residual of 1e-8 in one session, one step a call: linear solves,
 * factorizations and time of a step from warm sets, against cold starts and against sweeps. Then
 * two sessions of the grasp alternate, call by call, one half a second behind the other. Times are
 * those of the processor, since one world is one thread's work.
 *
 * The two grasps: common_warm.h. Goals: five times fewer linear solves warm than cold; auto faster
 * than sor. The same calls through a daemon: bench_wire_warm. */
#include "common_warm.h"

enum { ROUNDS = 7 };

typedef struct session {
    tb_state *state;
    tb_certificate sum;
} session;

/* one call */
static void step(warm_scene *s, tb_stepper *stepper, session *run)
{
    tb_error error;
    tb_certificate c;
    warm_command(s, tb_state_steps(run->state));
    bench_check(tb_state_set_controls(run->state, s->controls, s->counts.actuators, &error),
                &error);
    bench_check(tb_state_set_applied_force(run->state, s->forces, s->counts.dofs, &error), &error);
    bench_check(tb_step(stepper, run->state, 1, &c, &error), &error);
    tb_certificate_merge(&run->sum, &c);
}

static void end(const warm_scene *s, session *run)
{
    warm_check(s, run->state);
    tb_state_destroy(run->state);
}

/* time of a step, s */
static double alone(warm_scene *s, tb_stepper *stepper, tb_certificate *sum)
{
    session run = {.state = warm_start(s)};
    const double start = bench_worked();
    for (int i = 0; i < WARM_STEPS; i++) step(s, stepper, &run);
    const double seconds = (bench_worked() - start) / WARM_STEPS;
    *sum = run.sum;
    end(s, &run);
    return seconds;
}

static double interleaved(warm_scene *s, tb_stepper *stepper, tb_certificate sums[2])
{
    session runs[2] = {{.state = warm_start(s)}, {.state = warm_start(s)}};
    const double start = bench_worked();
    for (int i = 0; i < WARM_STEPS + WARM_DELAY; i++) {
        if (i < WARM_STEPS) step(s, stepper, &runs[0]);
        if (i >= WARM_DELAY) step(s, stepper, &runs[1]);
    }
    const double seconds = (bench_worked() - start) / (2.0 * WARM_STEPS);
    for (int k = 0; k < 2; k++) {
        sums[k] = runs[k].sum;
        end(s, &runs[k]);
    }
    return seconds;
}

enum { AUTO_WARM, NEWTON_WARM, SOR_WARM, NEWTON_COLD, AUTO_COLD, WAYS };

static void measure(warm_scene *s)
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
        options.solve.tolerance = WARM_TOLERANCE;
        options.solve.solver = LIST[w].solver;
        options.solve.warm_start = LIST[w].warm;
        options.solve.maximum_iterations = WARM_ITERATIONS;
        bench_check(tb_stepper_create(&options, &steppers[w], &error), &error);
    }
    /* alternating, so that other load on the machine affects all alike */
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
    for (int w = 0; w < WAYS; w++) warm_print_work(s, LIST[w].name, &sums[w]);
    warm_print_work(s, "first of two sessions", &both[0]);
    warm_print_work(s, "second of two sessions", &both[1]);
    warm_print(s, "newton", "linear solves, cold over warm",
               (double)sums[NEWTON_COLD].linear_solves / (double)sums[NEWTON_WARM].linear_solves);
    warm_print(s, "sor over auto", "time of a step, warm", bench_median(&over_auto));
    warm_print(s, "sor over newton", "time of a step, warm", bench_median(&over_newton));
    for (int w = 0; w < WAYS; w++) tb_stepper_destroy(steppers[w]);
}

int main(void)
{
    warm_scene scenes[WARM_SCENES];
    warm_load(scenes);
    for (int k = 0; k < WARM_SCENES; k++) {
        measure(&scenes[k]);
        warm_free(&scenes[k]);
    }
    return 0;
}
