/* A GPU for tests that must run anywhere: the card that is there, or one that the processor plays
 * (tests/plugin/card). */
#ifndef CARD_UTIL_H
#define CARD_UTIL_H

#include "gpu_util.h"

/* Sets up the played card; NULL restores a default. Tests may share one process. */
static inline void play_card(const char *memory, const char *cards, const char *lose)
{
    const char *names[] = {"TRIBO_TEST_CARD_MEMORY", "TRIBO_TEST_CARDS", "TRIBO_TEST_LOSE"};
    const char *values[] = {memory, cards, lose};
    ck_assert_int_eq(setenv("TRIBO_TEST_PLAYED", "1", 1), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(values[i] ? setenv(names[i], values[i], 1) : unsetenv(names[i]), 0);
}

/* True if it is a played one. */
static inline bool find_card(void)
{
    char path[1024];
    tb_backend_info info;
    const char *wanted = getenv("TRIBO_TEST_PLAYED");
    snprintf(path, sizeof path, "%s/libtribo_gpu.so", build_folder());
    const bool played =
        wanted != NULL || access("/dev/nvidiactl", F_OK) != 0 || access(path, R_OK) != 0;
    if (played) snprintf(path, sizeof path, "%s/tests/plugin/card.so", build_folder());
    ck_assert_int_eq(setenv("TRIBO_GPU_PLUGIN", path, 1), 0);
    TEST_OK(tb_backend_describe(TB_BACKEND_GPU, &info), NULL);
    ck_assert_msg(info.devices > 0, "%s", info.reason);
    return played;
}

/* tb_solve_options.cancelled: no, as often as the context says, then yes. */
static inline bool gives_up(void *context)
{
    int *left = context;
    return (*left)-- == 0;
}

static inline tb_device_use use_of(int32_t device)
{
    tb_error error;
    tb_device_use use;
    TEST_OK(tb_device_measure(TB_BACKEND_GPU, device, &use, &error), &error);
    return use;
}

static inline tb_stepper *resident_stepper(int32_t device)
{
    tb_error error;
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    options.backend = TB_BACKEND_GPU;
    options.device = device;
    options.resident = true;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    TEST_OK(tb_stepper_warm(stepper, &error), &error);
    return stepper;
}

/* A stepper whose worlds are fetched after every step. */
static inline tb_stepper *plain_stepper(void)
{
    return stepper_on(TB_BACKEND_GPU, TB_DOUBLE);
}

static inline void push(tb_state *state, int k)
{
    double force[256] = {0};
    tb_error error;
    const int32_t dofs = tb_model_count(tb_state_model(state)).dofs;
    for (int32_t i = 0; i < dofs; i++) force[i] = 0.01 * ((i + k) % 5);
    TEST_OK(tb_state_set_applied_force(state, force, dofs, &error), &error);
}

static inline void step(tb_stepper *stepper, tb_state *state, int steps)
{
    tb_error error = {0};
    TEST_OK(tb_step(stepper, state, steps, NULL, &error), &error);
}

static inline void destroy(tb_state *state, tb_stepper *stepper, tb_model *model)
{
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    tb_model_destroy(model);
}

#endif
