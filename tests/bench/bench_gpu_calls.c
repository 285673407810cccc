/* What a call for few worlds takes on a GPU, one step a call: worlds that stay there and worlds that
 * come home with every step, and of the time what the card's own clock says.
 *
 * bench_gpu_calls SCENE.xml [WORLDS...] prints a line of JSON for each. TRIBO_GPU_GRAPHS=0 makes the
 * same calls without CUDA graphs. Without a GPU it says so and is done. */
#include "common_bench.h"

enum { WARM = 50, CALLS = 500, LARGEST = 1 << 16 };

static tb_status measure(const tb_model *model, int32_t worlds, bool resident, tb_error *error)
{
    static double times[CALLS];
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    tb_device_use before = {0}, after = {0};
    tb_state **states = calloc((size_t)worlds, sizeof(tb_state *));
    if (states == NULL) return TB_RESOURCE_EXHAUSTED;
    options.backend = TB_BACKEND_GPU;
    options.resident = resident;
    tb_status status = tb_stepper_create(&options, &stepper, error);
    if (status == TB_OK) status = tb_stepper_warm(stepper, error);
    for (int32_t i = 0; i < worlds && status == TB_OK; i++)
        status = tb_state_create(model, &states[i], error);
    for (int i = 0; i < WARM + CALLS && status == TB_OK; i++) {
        if (i == WARM) tb_device_measure(TB_BACKEND_GPU, 0, &before, error);
        const double begin = bench_now();
        status = tb_step_batch(stepper, states, worlds, 1, NULL, error);
        if (i >= WARM) times[i - WARM] = 1e6 * (bench_now() - begin);
    }
    tb_device_measure(TB_BACKEND_GPU, 0, &after, error);
    bench_sort(times, CALLS);
    if (status == TB_OK)
        printf("{\"worlds\": %d, \"resident\": %s, \"us\": %.1f, \"us_fastest\": %.1f, "
               "\"steps_us\": %.1f, \"copies_us\": %.1f, \"bytes\": %.0f, \"graphs\": %lld}\n",
               worlds, resident ? "true" : "false", times[CALLS / 2], times[0],
               1e6 * (after.compute_seconds - before.compute_seconds) / CALLS,
               1e6 * (after.copy_seconds - before.copy_seconds) / CALLS,
               (double)(after.copied_bytes - before.copied_bytes) / CALLS,
               (long long)after.captures);
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
        status = measure(model, worlds, true, &error);
        if (status == TB_OK) status = measure(model, worlds, false, &error);
    }
    tb_model_destroy(model);
    if (status != TB_OK) fprintf(stderr, "bench_gpu_calls: %s\n", error.message);
    return status != TB_OK;
}
