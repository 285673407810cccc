/* Time of a call for few worlds on a GPU: worlds that stay there and worlds fetched with every
 * step, one step a call and several, without and with pauses; and the share by the card's own
 * clock.
 *
 *   bench_gpu_calls SCENE.xml [WORLDS...]
 *
 * prints a line of JSON for each. The cost of a call beside its steps is the difference between one
 * step a call and several; the cost of cold caches and clocks, that with pauses. Without a GPU it says
 * so and ends. */
#include <unistd.h>

#include "common_bench.h"

enum { WARM = 50, CALLS = 300, LARGEST = 1 << 16 };

/* A kind of call. */
typedef struct way {
    tb_precision precision;
    bool resident;
    int32_t steps;
    int32_t pause_us; /* before each */
} way;

static const way WAYS[] = {{TB_DOUBLE, true, 1, 0},  {TB_DOUBLE, true, 1, 1000},
                           {TB_DOUBLE, true, 2, 0},  {TB_DOUBLE, true, 16, 0},
                           {TB_DOUBLE, false, 1, 0}, {TB_DOUBLE, false, 16, 0},
                           {TB_FLOAT, true, 1, 0},   {TB_FLOAT, true, 16, 0}};

static void print(int32_t worlds, const way *w, const double *times, const tb_device_use *before,
                  const tb_device_use *after)
{
    const double steps_us = 1e6 * (after->compute_seconds - before->compute_seconds) / CALLS;
    double mean = 0;
    for (int i = 0; i < CALLS; i++) mean += times[i] / CALLS;
    const double copies_us = 1e6 * (after->copy_seconds - before->copy_seconds) / CALLS;
    printf("{\"worlds\": %d, \"precision\": \"%s\", \"resident\": %s, \"steps\": %d, \"pause_us\": "
           "%d, \"us\": %.1f, "
           "\"us_fastest\": %.1f, \"steps_us\": %.1f, \"copies_us\": %.1f, \"beside_us\": %.1f, "
           "\"us_a_step\": %.1f, \"bytes\": %.0f}\n",
           worlds, w->precision == TB_FLOAT ? "float" : "double", w->resident ? "true" : "false",
           w->steps, w->pause_us, times[CALLS / 2], times[0], steps_us, copies_us,
           mean - steps_us - copies_us, times[CALLS / 2] / w->steps,
           (double)(after->copied_bytes - before->copied_bytes) / CALLS);
    fflush(stdout);
}

static tb_status measure(const tb_model *model, int32_t worlds, const way *w, tb_error *error)
{
    static double times[CALLS];
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    tb_device_use before = {0}, after = {0};
    tb_state **states = calloc((size_t)worlds, sizeof(tb_state *));
    if (states == NULL) return TB_RESOURCE_EXHAUSTED;
    options.backend = TB_BACKEND_GPU;
    options.precision = w->precision;
    options.resident = w->resident;
    tb_status status = tb_stepper_create(&options, &stepper, error);
    if (status == TB_OK) status = tb_stepper_warm(stepper, error);
    for (int32_t i = 0; i < worlds && status == TB_OK; i++)
        status = tb_state_create(model, &states[i], error);
    for (int i = 0; i < WARM + CALLS && status == TB_OK; i++) {
        if (i == WARM) tb_device_measure(TB_BACKEND_GPU, 0, &before, error);
        if (w->pause_us > 0) usleep((useconds_t)w->pause_us);
        const double begin = bench_now();
        status = tb_step_batch(stepper, states, worlds, w->steps, NULL, error);
        if (i >= WARM) times[i - WARM] = 1e6 * (bench_now() - begin);
    }
    tb_device_measure(TB_BACKEND_GPU, 0, &after, error);
    bench_sort(times, CALLS);
    if (status == TB_OK) print(worlds, w, times, &before, &after);
    for (int32_t i = 0; i < worlds; i++) tb_state_destroy(states[i]);
    tb_stepper_destroy(stepper);
    free(states);
    return status;
}

int main(int argc, char **argv)
{
    tb_error error = {0};
    tb_backend_info gpu;
    tb_model *model = NULL;
    tb_status status = tb_backend_describe(TB_BACKEND_GPU, &gpu);
    if (status != TB_OK || gpu.devices == 0 || argc < 2) {
        printf("{\"skipped\": \"%s\"}\n", argc < 2 ? "no scene was named" : gpu.reason);
        return 0;
    }
    status = tb_model_load(argv[1], NULL, &model, &error);
    for (int i = 2; i < argc + (argc == 2) && status == TB_OK; i++) {
        const int worlds = argc == 2 ? 1 : atoi(argv[i]);
        if (worlds < 1 || worlds > LARGEST) continue;
        for (size_t k = 0; k < sizeof WAYS / sizeof *WAYS && status == TB_OK; k++)
            status = measure(model, worlds, &WAYS[k], &error);
    }
    tb_model_destroy(model);
    if (status != TB_OK) fprintf(stderr, "bench_gpu_calls: %s\n", error.message);
    return status != TB_OK;
}
