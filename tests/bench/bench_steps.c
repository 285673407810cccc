/* Processor time of steps of one model, asked for in portions, so that another engine can be timed by
 * turns (tests/peers/peer_steps.py).
 *
 *   bench_steps [--energy] [--solver NAME] [--package-path A:B] MODEL [STEPS...]
 *
 * Makes the portions named, else one for each number that standard input brings, and prints a line of
 * JSON for each: steps, seconds of processor time, and the portion's merged certificate. */
#include "common_bench.h"

static tb_step_options options;
static const char *path, *packages;

static char **parse(char **argument)
{
    options = tb_step_defaults();
    options.threads = options.solve.threads = 1;
    options.report_energy = false;
    for (argument++; *argument && strncmp(*argument, "--", 2) == 0; argument++) {
        if (strcmp(*argument, "--energy") == 0)
            options.report_energy = true;
        else if (strcmp(*argument, "--solver") == 0 && argument[1])
            options.solve.solver = *++argument;
        else if (strcmp(*argument, "--package-path") == 0 && argument[1])
            packages = *++argument;
        else
            return NULL;
    }
    path = *argument;
    return path ? argument + 1 : NULL;
}

static void step(tb_stepper *stepper, tb_state *state, int32_t steps)
{
    tb_certificate c;
    tb_error error;
    memset(&c, 0, sizeof c);
    const double began = bench_worked();
    const tb_status status = tb_step(stepper, state, steps, &c, &error);
    const double seconds = bench_worked() - began;
    if (status != TB_OK && status != TB_DIVERGED) bench_check(status, &error);
    printf("{\"steps\": %d, \"seconds\": %.9g, \"status\": \"%s\", \"residual\": %.3g, "
           "\"contacts\": %d, \"rows\": %d, \"iterations\": %d, \"linear_solves\": %lld, "
           "\"factorizations\": %lld, \"flags\": %u, \"solver\": \"%s\"}\n",
           steps, seconds, tb_status_name(c.status), c.residual, c.contacts, c.rows, c.iterations,
           (long long)c.linear_solves, (long long)c.factorizations, c.flags, c.solver);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    tb_error error;
    tb_model *model = NULL;
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    char **portions = argc > 0 ? parse(argv) : NULL;
    if (!portions) {
        fprintf(stderr, "bench_steps [--energy] [--solver NAME] [--package-path A:B] MODEL "
                        "[STEPS...]\n");
        return 2;
    }
    tb_import_options import = tb_import_defaults();
    if (packages) import.package_path = packages;
    bench_check(tb_model_load(path, &import, &model, &error), &error);
    bench_check(tb_state_create(model, &state, &error), &error);
    bench_check(tb_stepper_create(&options, &stepper, &error), &error);
    printf("{\"dofs\": %d}\n", tb_model_count(model).dofs);
    fflush(stdout);
    int steps;
    if (*portions)
        for (; *portions; portions++) step(stepper, state, atoi(*portions));
    else
        while (scanf("%d", &steps) == 1) step(stepper, state, steps);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
    return 0;
}
