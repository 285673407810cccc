/* Whole steps: growth with the size of one world, two threads against one over many worlds.
 *
 * Growth: n balls in columns of 10 under gravity, settled; the time of a step at 20 sweeps at the
 * most, so that the work grows and not the difficulty. Columns at rest need one sweep: then the
 * residual is 0. The exponent is the slope of log(time) over log(contacts) between 100 and 100,000
 * balls. */
#include "common_bench.h"

static tb_model *columns(int n)
{
    tb_error error;
    tb_scene_def def = tb_scene_defaults();
    def.dt = 1e-3;
    def.gravity[2] = -9.81;
    tb_scene *scene = NULL;
    bench_check(tb_scene_create(&def, &scene, &error), &error);
    tb_shape_def floor = tb_shape_defaults();
    floor.type = TB_SHAPE_PLANE;
    bench_check(tb_scene_add_shape(scene, &floor, NULL, &error), &error);
    const int columns = (n + 9) / 10, side = (int)ceil(sqrt(columns));
    for (int i = 0; i < n; i++) {
        const int column = i / 10;
        tb_body_def body = tb_body_defaults();
        tb_handle handle;
        /* columns touch their neighbours along x, so contacts form one graph */
        body.position[0] = 0.2 * (column % side);
        body.position[1] = 0.25 * (column / side);
        body.position[2] = 0.1 + 0.2 * (i % 10);
        bench_check(tb_scene_add_body(scene, &body, &handle, &error), &error);
        tb_joint_def joint = tb_joint_defaults();
        joint.type = TB_JOINT_FREE;
        joint.body = handle;
        bench_check(tb_scene_add_joint(scene, &joint, NULL, &error), &error);
        tb_shape_def shape = tb_shape_defaults();
        shape.type = TB_SHAPE_SPHERE;
        shape.body = handle;
        shape.size[0] = 0.1;
        bench_check(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    }
    tb_model *model = NULL;
    bench_check(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

static tb_step_options few_sweeps(int32_t threads)
{
    tb_step_options options = tb_step_defaults();
    options.solve.tolerance = 0;
    options.solve.solver = "sor"; /* a fixed number of sweeps: auto would look for another way */
    options.solve.maximum_iterations = 20;
    options.threads = threads;
    return options;
}

/* Median time of a step, s; contacts of the last one in *contacts. */
static double time_step(int n, int32_t *contacts)
{
    tb_error error;
    tb_model *model = columns(n);
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    const tb_step_options options = few_sweeps(1);
    bench_check(tb_state_create(model, &state, &error), &error);
    bench_check(tb_stepper_create(&options, &stepper, &error), &error);
    bench_check(tb_step(stepper, state, 3, NULL, &error), &error);

    char name[64];
    snprintf(name, sizeof name, "step of %d balls", n);
    bench_figure figure = {.name = name, .unit = "s"};
    const int repeats = n < 10000 ? 20000 / n : 1;
    for (int run = 0; run < (n < 50000 ? 9 : 5); run++) {
        const double start = bench_now();
        bench_check(tb_step(stepper, state, repeats, NULL, &error), &error);
        bench_add(&figure, (bench_now() - start) / repeats);
    }
    *contacts = tb_state_number_of_contacts(state);
    bench_print(&figure);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
    return bench_median(&figure);
}

static void growth(void)
{
    double x[4], y[4];
    for (int k = 0; k < 4; k++) {
        int32_t contacts = 0;
        y[k] = log(time_step((int)pow(10, k + 2), &contacts));
        x[k] = log(contacts);
    }
    bench_print_number("growth exponent in contacts, 100 to 100,000 balls", "1",
                       (y[3] - y[0]) / (x[3] - x[0]));
}

/* 64 worlds of 100 balls: one thread against two, in turn. */
static void threads(void)
{
    enum { WORLDS = 64, STEPS = 20 };
    tb_error error;
    tb_model *model = columns(100);
    tb_state *states[WORLDS];
    tb_stepper *steppers[2] = {NULL, NULL};
    for (int i = 0; i < WORLDS; i++)
        bench_check(tb_state_create(model, &states[i], &error), &error);
    for (int i = 0; i < 2; i++) {
        const tb_step_options options = few_sweeps(i + 1);
        bench_check(tb_stepper_create(&options, &steppers[i], &error), &error);
    }
    bench_figure times[2] = {{.name = "64 worlds, one thread", .unit = "s"},
                             {.name = "64 worlds, two threads", .unit = "s"}};
    bench_figure ratio = {.name = "speed of two threads over one", .unit = "1"};
    for (int run = 0; run < 10; run++) {
        double seconds[2];
        for (int i = 0; i < 2; i++) {
            const double start = bench_now();
            bench_check(tb_step_batch(steppers[i], states, WORLDS, STEPS, NULL, &error), &error);
            seconds[i] = bench_now() - start;
            if (run > 0) bench_add(&times[i], seconds[i]);
        }
        if (run > 0) bench_add(&ratio, seconds[0] / seconds[1]);
    }
    for (int i = 0; i < 2; i++) bench_print(&times[i]);
    bench_print(&ratio);
    for (int i = 0; i < 2; i++) tb_stepper_destroy(steppers[i]);
    for (int i = 0; i < WORLDS; i++) tb_state_destroy(states[i]);
    tb_model_destroy(model);
}

int main(void)
{
    growth();
    threads();
    return 0;
}
