/* A backend that loses a device on demand: the CPU's, until the file named by TRIBO_TEST_LOSE exists; with
 * .N behind that name, device N alone. TRIBO_TEST_CARDS gives the number of devices (1), TRIBO_TEST_MEMORY
 * their bytes of memory, comma-separated. From then on every step is ABORTED, as with a GPU whose context is poisoned. It is built as a plug-in with the
 * library inside, and found by TRIBO_GPU_PLUGIN, as the GPU's is.
 *
 * It takes quadratic programs if TRIBO_TEST_PROGRAMS is set, and converges at none of them: it gives back a
 * wrong set and a wrong solution. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/error.h"
#include "step/step.h"

extern const tb_backend tb_backend_plugin;

static int32_t devices(char reason[TB_ERROR_MESSAGE_SIZE])
{
    const char *cards = getenv("TRIBO_TEST_CARDS");
    reason[0] = '\0';
    return cards != NULL ? atoi(cards) : 1;
}

static tb_status describe(int32_t device, tb_device_info *info, tb_error *error)
{
    const tb_status status = tb_backend_cpu.describe(0, info, error);
    snprintf(info->name, sizeof info->name, "a device that can be lost");
    info->memory = 1 << 20;
    const char *memory = getenv("TRIBO_TEST_MEMORY");
    for (int32_t i = 0; memory != NULL; i++) {
        char *end = NULL;
        info->memory = strtoull(memory, &end, 10);
        memory = *end == ',' && i < device ? end + 1 : NULL;
    }
    return status;
}

static tb_status create(const tb_step_options *options, void **context, tb_error *error)
{
    return tb_backend_cpu.create(options, context, error);
}

static void destroy(void *context)
{
    tb_backend_cpu.destroy(context);
}

static bool serves(const void *context, const tb_step_options *options)
{
    return tb_backend_cpu.serves(context, options);
}

static tb_status step(void *context, const tb_step_options *options, tb_state *const *states,
                      const tb_course *courses, int32_t worlds, int32_t steps,
                      tb_certificate *certificates, tb_error *error)
{
    const char *lost = getenv("TRIBO_TEST_LOSE");
    char alone[4096] = "";
    if (lost != NULL) snprintf(alone, sizeof alone, "%s.%d", lost, (int)options->device);
    if (lost != NULL && (access(lost, F_OK) == 0 || access(alone, F_OK) == 0))
        return tb_fail(error, TB_ABORTED, "the device is lost: '%s' is there", lost);
    return tb_backend_cpu.step(context, options, states, courses, worlds, steps, certificates,
                               error);
}

static void measure(const void *context, tb_stepper_use *use)
{
    tb_backend_cpu.measure(context, use);
}

static tb_status program_open(const tb_qp_program *program, const tb_qp_options *options,
                              void **context, tb_error *error)
{
    (void)options;
    if (getenv("TRIBO_TEST_PROGRAMS") == NULL)
        return tb_fail(error, TB_UNSUPPORTED, "this device takes no programs");
    int32_t *sizes = malloc(2 * sizeof *sizes);
    if (sizes == NULL) return tb_fail_memory(error, 2 * sizeof *sizes, "a program");
    sizes[0] = program->n;
    sizes[1] = program->constraints;
    *context = sizes;
    return TB_OK;
}

static tb_status program_solve(void *context, const double *f, const double *b, uint8_t *active,
                               double *x, double *lambda, tb_qp_result *result, tb_error *error)
{
    const int32_t *sizes = context;
    (void)f, (void)b, (void)error;
    for (int32_t i = 0; i < sizes[0]; i++) x[i] = 1e9;
    for (int32_t i = 0; i < sizes[1]; i++) {
        lambda[i] = -1e9;
        active[i] = active[i] == 0;
    }
    *result = (tb_qp_result){.status = TB_NOT_CONVERGED, .kkt.relative = 1};
    return TB_OK;
}

static void program_forget(void *context)
{
    (void)context;
}

const tb_backend tb_backend_plugin = {.abi = TB_BACKEND_ABI,
                                      .name = "failing",
                                      .devices = devices,
                                      .describe = describe,
                                      .create = create,
                                      .destroy = destroy,
                                      .serves = serves,
                                      .step = step,
                                      .measure = measure,
                                      .program_open = program_open,
                                      .program_solve = program_solve,
                                      .program_forget = program_forget,
                                      .program_close = free,
                                      .program_leave = free};
