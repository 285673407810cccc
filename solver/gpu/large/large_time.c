/* Large-world mode's kernels warmed up, and measured: see large_run.h. */
#include "gpu/large/large_launch.h"

#include <stdlib.h>

#include "base/base.h"

/* Of each array, where kernels are only warmed up: sorts have other kernels for a few items. */
enum { WARM_ITEMS = 1 << 13 };

/* ---- warming up ---- */

/* All that a step and a call can launch, over nothing. */
static tb_status warm(tb_gpu_large_world *f, tb_gpu_device *d, bool round, bool rolls,
                      tb_error *error)
{
    static const tb_gpu_large_launches all[] = {TB_GPU_LARGE_TAKE_RECORDS, TB_GPU_LARGE_STEP,
                                                TB_GPU_LARGE_WRITE_RECORDS};
    tb_status status = TB_OK;
    f->calls->make_idle(f->world, WARM_ITEMS, round, rolls);
    for (int part = 0; part < TB_GPU_LARGE_MEMORIES && status == TB_OK; part++) {
        const size_t size = f->calls->lay_out(f->world, (tb_gpu_large_memory)part, NULL);
        status = tb_gpu_large_allocate(f, d, (tb_gpu_large_memory)part, error);
        if (status == TB_OK)
            status = tb_gpu_check(d, cudaMemsetAsync(f->parts[part].memory, 0, size, d->stream),
                                  "warming up", error);
    }
    tb_gpu_large_view v;
    f->calls->view(f->world, &v);
    if (status == TB_OK) status = tb_gpu_reserve_pinned(d, &f->control, v.control_size, error);
    if (status != TB_OK) return status;
    f->calls->rest(f->control.memory);
    status = tb_gpu_large_send_control(f, d, error);
    for (size_t k = 0; k < sizeof all / sizeof *all && status == TB_OK; k++) {
        status = tb_gpu_large_reserve_scratch(f, d, all[k], error);
        if (status == TB_OK) status = tb_gpu_large_start(f, d, all[k], NULL, error);
    }
    return status == TB_OK ? tb_gpu_wait(d, "warming up", error) : status;
}

tb_status tb_gpu_large_warm(tb_gpu_device *device, tb_error *error)
{
    static const tb_gpu_large_calls *const both[] = {&tb_gpu_large_kernels,
                                                     &tb_gpu_large_kernels_f32};
    tb_status status = TB_OK;
    for (int k = 0; k < 8 && status == TB_OK; k++) {
        tb_gpu_large_world f = {.calls = both[k / 4]};
        f.world = calloc(1, f.calls->size);
        status = f.world != NULL ? warm(&f, device, k % 2 == 0, k / 2 % 2 == 1, error)
                                 : tb_fail_memory(error, f.calls->size, "a field");
        tb_gpu_large_destroy(&f, device);
    }
    /* for a large world a full card has no room anyway */
    return status == TB_RESOURCE_EXHAUSTED ? TB_OK : status;
}

/* ---- measurement ---- */

tb_status tb_gpu_large_time_stages(tb_gpu_device *device, tb_gpu_large_world *large,
                                   double *seconds, tb_error *error)
{
    tb_gpu_large_world *f = large;
    tb_gpu_device *d = device;
    cudaEvent_t marks[TB_GPU_LARGE_MARKS] = {0};
    tb_status status = tb_gpu_large_reserve_scratch(f, d, TB_GPU_LARGE_STEP, error);
    for (int k = 0; k < TB_GPU_LARGE_MARKS && status == TB_OK; k++)
        status = tb_gpu_check(d, cudaEventCreate(&marks[k]), "making an event", error);
    const tb_gpu_large_state none = {
        .number_of_contacts = f->cached, .steps = f->report.steps, .time = f->report.time};
    f->has_cache = false; /* the cache is of a step that the world's state does not have */
    f->calls->begin(f->control.memory, &none, 1);
    if (status == TB_OK) status = tb_gpu_large_send_control(f, d, error);
    if (status == TB_OK) status = tb_gpu_large_start(f, d, TB_GPU_LARGE_STEP, marks, error);
    if (status == TB_OK) status = tb_gpu_large_fetch_control(f, d, error);
    for (int k = 0; k + 1 < TB_GPU_LARGE_MARKS && status == TB_OK; k++) {
        float milliseconds = 0;
        status = tb_gpu_check(d, cudaEventElapsedTime(&milliseconds, marks[k], marks[k + 1]),
                              "taking a time", error);
        seconds[k] = 1e-3 * (double)milliseconds;
    }
    for (int k = 0; k < TB_GPU_LARGE_MARKS; k++)
        if (marks[k] != NULL) (void)cudaEventDestroy(marks[k]);
    return status;
}

/* A graph of sweeps with a launch a colour. */
static tb_status capture_colours(tb_gpu_large_world *f, tb_gpu_device *d, int32_t sweeps,
                                 cudaGraphExec_t *graph, tb_error *error)
{
    cudaGraph_t drawn = NULL;
    tb_status status =
        tb_gpu_check(d, cudaStreamBeginCapture(d->stream, cudaStreamCaptureModeThreadLocal),
                     "capturing sweeps", error);
    if (status != TB_OK) return status;
    status = tb_gpu_check(
        d, f->calls->start_colours(f->world, sweeps, f->report.colours, f->report.units, d->stream),
        "launching colours", error);
    const cudaError_t ended = cudaStreamEndCapture(d->stream, &drawn);
    if (status == TB_OK) status = tb_gpu_check(d, ended, "capturing sweeps", error);
    if (status == TB_OK)
        status = tb_gpu_check(d, cudaGraphInstantiate(graph, drawn, 0), "making a graph", error);
    if (drawn != NULL) (void)cudaGraphDestroy(drawn);
    return status;
}

tb_status tb_gpu_large_time_sweeps(tb_gpu_device *device, tb_gpu_large_world *large, int32_t sweeps,
                                   bool launches, double *seconds, tb_error *error)
{
    tb_gpu_large_world *f = large;
    tb_gpu_device *d = device;
    cudaGraphExec_t graph = NULL;
    tb_step_options usual = f->options, options;
    usual.solve.solver = f->solver == TB_SOLVER_NUMBER_jor ? "jor" : "sor";
    options = usual;
    options.solve.maximum_iterations = sweeps;
    (void)f->calls->set_options(f->world, f->model, &options);
    tb_status status = launches ? capture_colours(f, d, sweeps, &graph, error) : TB_OK;
    *seconds = 0;
    if (status == TB_OK) status = tb_gpu_mark(d, 0, error);
    if (status == TB_OK)
        status = launches ? tb_gpu_check(d, cudaGraphLaunch(graph, d->stream), "sweeping", error)
                          : tb_gpu_large_start(f, d, TB_GPU_LARGE_SWEEPS, NULL, error);
    if (status == TB_OK) status = tb_gpu_mark(d, 1, error);
    if (status == TB_OK) status = tb_gpu_wait(d, "sweeps", error);
    if (status == TB_OK) status = tb_gpu_elapsed(d, 0, 1, seconds, error);
    if (graph != NULL) (void)cudaGraphExecDestroy(graph);
    (void)f->calls->set_options(f->world, f->model, &usual);
    return status;
}
