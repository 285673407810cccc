/* Forks of a world: ten free boxes in two piles, at rest under some dozens of contacts, forked a
 * thousand times on one core, beside a plain copy of as many bytes into memory from malloc. Forks
 * share contacts until they step, so they should cost less than the copy.
 *
 * All forks of a round live at once, so that their memory is new and each pays for its pages, as a
 * planner's do that tries a thousand things from one state. Processor time of this thread. */
#include "common_bench.h"

#include <time.h>

enum { FORKS = 1000, ROUNDS = 31, BOXES = 10 };

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Two piles of five boxes on a plane. */
static tb_model *piles(void)
{
    tb_error error = {0};
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    bench_check(tb_scene_create(NULL, &scene, &error), &error);
    tb_shape_def plane = tb_shape_defaults();
    plane.type = TB_SHAPE_PLANE;
    bench_check(tb_scene_add_shape(scene, &plane, NULL, &error), &error);
    for (int i = 0; i < BOXES; i++) {
        tb_handle body;
        tb_body_def def = tb_body_defaults();
        def.position[0] = 0.5 * (i % 2);
        def.position[2] = 0.1 + 0.2 * (i / 2);
        bench_check(tb_scene_add_body(scene, &def, &body, &error), &error);
        tb_joint_def joint = tb_joint_defaults();
        joint.body = body;
        joint.type = TB_JOINT_FREE;
        bench_check(tb_scene_add_joint(scene, &joint, NULL, &error), &error);
        tb_shape_def box = tb_shape_defaults();
        box.body = body;
        box.type = TB_SHAPE_BOX;
        box.size[0] = box.size[1] = box.size[2] = 0.1;
        bench_check(tb_scene_add_shape(scene, &box, NULL, &error), &error);
    }
    bench_check(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

static double fork_all(const tb_state *state)
{
    static tb_state *forks[FORKS];
    tb_error error = {0};
    const double start = thread_seconds();
    for (int i = 0; i < FORKS; i++) bench_check(tb_state_fork(state, &forks[i], &error), &error);
    const double seconds = thread_seconds() - start;
    for (int i = 0; i < FORKS; i++) tb_state_destroy(forks[i]);
    return seconds;
}

static double copy_all(const unsigned char *bytes, size_t size)
{
    static unsigned char *copies[FORKS];
    const double start = thread_seconds();
    for (int i = 0; i < FORKS; i++) {
        copies[i] = malloc(size);
        if (copies[i] == NULL) exit(1);
        memcpy(copies[i], bytes, size);
    }
    const double seconds = thread_seconds() - start;
    for (int i = 0; i < FORKS; i++) free(copies[i]);
    return seconds;
}

int main(void)
{
    tb_error error = {0};
    tb_model *model = piles();
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    unsigned char *bytes = NULL;
    size_t size = 0;
    bench_check(tb_state_create(model, &state, &error), &error);
    bench_check(tb_stepper_create(NULL, &stepper, &error), &error);
    bench_check(tb_step(stepper, state, 200, NULL, &error), &error);
    bench_check(tb_state_snapshot(state, &bytes, &size, &error), &error);

    bench_figure forks = {.name = "fork 10 bodies 1000 times", .unit = "s"};
    bench_figure copies = {.name = "copy as many bytes", .unit = "s"};
    for (int i = 0; i < ROUNDS; i++) {
        bench_add(&forks, fork_all(state));
        bench_add(&copies, copy_all(bytes, size));
    }
    bench_print_number("contacts", "1", tb_state_number_of_contacts(state));
    bench_print_number("bytes of a snapshot", "B", (double)size);
    bench_print(&forks);
    bench_print(&copies);
    bench_print_number("fork over copy", "1", bench_median(&forks) / bench_median(&copies));

    tb_bytes_destroy(bytes);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
    return 0;
}
