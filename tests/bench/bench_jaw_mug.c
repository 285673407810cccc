/* One world of jaw and mug, one thread, residual 1e-6: time of a step over the whole grasp and in
 * the hold.
 *
 * The scene also times other simulators (tests/data/jaw_mug.c): close for 1 s, lift to 0.2 m
 * until 2 s, hold until 4 s, dt 2 ms. Usage: bench_jaw_mug [MODEL.xml [MERGE]]; without a model, or
 * with "", the generator beside it writes one. MERGE: contact_merge of the steps. */
#include <unistd.h>

#include "common_bench.h"

enum { STEPS = 2000, HOLD_FROM = 1500 };

static tb_model *load(const char *path)
{
    tb_error error;
    tb_model *model = NULL;
    char made[512], command[1400];
    if (path == NULL || path[0] == '\0') {
        char self[512];
        const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
        self[length > 0 ? length : 0] = '\0';
        char *slash = strstr(self, "/bench/");
        if (slash != NULL) *slash = '\0';
        snprintf(command, sizeof command, "'%s/data/jaw_mug' '%s/data' > /dev/null", self, self);
        if (system(command) != 0) exit(1);
        snprintf(made, sizeof made, "%.480s/data/jaw_mug.xml", self);
        path = made;
    }
    bench_check(tb_model_load(path, NULL, &model, &error), &error);
    return model;
}

typedef struct grasp {
    double whole, hold; /* s a step */
    double iterations, residual, contacts;
} grasp;

static grasp run(const tb_model *model, tb_stepper *stepper)
{
    tb_error error;
    tb_state *state = NULL;
    bench_check(tb_state_create(model, &state, &error), &error);
    const int32_t lift = tb_model_find(model, TB_HANDLE_ACTUATOR, "lift");
    bench_check(tb_state_set_control(state, tb_model_find(model, TB_HANDLE_ACTUATOR, "close-1"), 20,
                                     &error),
                &error);
    bench_check(tb_state_set_control(state, tb_model_find(model, TB_HANDLE_ACTUATOR, "close+1"), 20,
                                     &error),
                &error);
    grasp g = {0};
    const double start = bench_now();
    double hold = 0;
    for (int i = 0; i < STEPS; i++) {
        if (i == HOLD_FROM) hold = bench_now();
        const double time = 2e-3 * i;
        tb_certificate c;
        bench_check(tb_state_set_control(state, lift, 0.2 * fmin(fmax(time - 1, 0), 1), &error),
                    &error);
        bench_check(tb_step(stepper, state, 1, &c, &error), &error);
        g.iterations += c.iterations;
        g.residual = fmax(g.residual, c.residual);
        if (i >= HOLD_FROM) g.contacts += c.contacts;
    }
    const double end = bench_now();
    g.whole = (end - start) / STEPS;
    g.hold = (end - hold) / (STEPS - HOLD_FROM);
    g.iterations /= STEPS;
    g.contacts /= STEPS - HOLD_FROM;
    tb_body_motion motion;
    bench_check(tb_state_body_motion(state, tb_model_find(model, TB_HANDLE_BODY, "mug"), &motion),
                NULL);
    if (!(motion.position[2] > 0.19)) {
        fprintf(stderr, "bench: the mug was not lifted (z %.4f m)\n", motion.position[2]);
        exit(1);
    }
    tb_state_destroy(state);
    return g;
}

int main(int argc, char **argv)
{
    tb_error error;
    tb_model *model = load(argc > 1 ? argv[1] : NULL);
    tb_step_options options = tb_step_defaults();
    options.solve.tolerance = 1e-6;
    if (argc > 2) options.contact_merge = strtod(argv[2], NULL);
    tb_stepper *stepper = NULL;
    bench_check(tb_stepper_create(&options, &stepper, &error), &error);
    bench_figure whole = {.name = "jaw and mug, a step of the whole grasp", .unit = "s"};
    bench_figure hold = {.name = "jaw and mug, a step of the hold", .unit = "s"};
    grasp last = {0};
    run(model, stepper);
    for (int i = 0; i < 7; i++) {
        last = run(model, stepper);
        bench_add(&whole, last.whole);
        bench_add(&hold, last.hold);
    }
    bench_print(&whole);
    bench_print(&hold);
    bench_print_number("jaw and mug, sweeps a step", "1", last.iterations);
    bench_print_number("jaw and mug, contacts in the hold", "1", last.contacts);
    bench_print_number("jaw and mug, largest residual", "1", last.residual);
    tb_stepper_destroy(stepper);
    tb_model_destroy(model);
    return 0;
}
