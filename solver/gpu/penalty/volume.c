/* Steps by the volume law on a GPU: the host's side of runs, of balls (balls.c) or of solids (solids.c). */
#include "gpu/penalty/volume.h"

#include <stdlib.h>
#include <string.h>

enum { BEFORE, AFTER };

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

tb_status tb_gpu_volume_place(tb_gpu_volume *c, tb_gpu_buffer *buffer, const tb_gpu_array *arrays,
                              int count, tb_error *error)
{
    size_t end = 0;
    for (int i = 0; i < count; i++) end += aligned(arrays[i].bytes);
    tb_status status = tb_gpu_reserve(&c->device, buffer, end + 1, error);
    end = 0;
    for (int i = 0; i < count && status == TB_OK; i++) {
        const tb_gpu_array *a = &arrays[i];
        char *at = (char *)buffer->memory + end;
        end += aligned(a->bytes);
        memcpy(a->to, &at, sizeof at);
        if (a->bytes == 0) continue;
        status = tb_gpu_check(&c->device,
                              a->from ? cudaMemcpyAsync(at, a->from, a->bytes,
                                                        cudaMemcpyHostToDevice, c->device.stream)
                                      : cudaMemsetAsync(at, a->fill, a->bytes, c->device.stream),
                              "bringing worlds", error);
    }
    return status;
}

tb_status tb_gpu_volume_fetch(tb_gpu_volume *c, void *to, const void *from, size_t bytes,
                              tb_error *error)
{
    if (bytes == 0) return TB_OK;
    return tb_gpu_check(&c->device,
                        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, c->device.stream),
                        "fetching worlds", error);
}

/* The most contacts of a step of each world, and the steps that diverged. */
static void settle(tb_volume_run *run, const int32_t *step_contacts)
{
    for (int32_t w = 0; w < run->worlds; w++) {
        run->contacts[w] = 0;
        for (int32_t i = 0; i < run->steps; i++) {
            const int32_t count = step_contacts[(size_t)w * (size_t)run->steps + (size_t)i];
            if (count > run->contacts[w]) run->contacts[w] = count;
        }
        if (run->diverged[w] >= run->steps) run->diverged[w] = -1;
    }
}

static tb_status fetch_results(tb_gpu_volume *c, tb_volume_run *run,
                               const tb_gpu_volume_results *from, int32_t *step_contacts,
                               tb_error *error)
{
    const size_t worlds = (size_t)run->worlds, bodies = worlds * (size_t)run->bodies;
    const size_t numbers = TB_VOLUME_NUMBERS * bodies * sizeof(double);
    const struct {
        void *to;
        const void *from;
        size_t bytes;
    } results[] = {
        {run->y, from->y, numbers},
        {run->point, from->point, numbers},
        {run->deepest, from->deepest, bodies * sizeof(double)},
        {step_contacts, from->step_contacts, worlds * (size_t)run->steps * sizeof *step_contacts},
        {run->diverged, from->diverged, worlds * sizeof *run->diverged},
        {run->degenerate, from->degenerate, worlds * sizeof *run->degenerate}};
    tb_status status = TB_OK;
    for (size_t i = 0; i < sizeof results / sizeof *results && status == TB_OK; i++)
        status = tb_gpu_volume_fetch(c, results[i].to, results[i].from, results[i].bytes, error);
    if (status == TB_OK) status = tb_gpu_wait(&c->device, "stepping worlds", error);
    return status;
}

/* One launch, and its results. */
static tb_status make_steps(tb_gpu_volume *c, tb_volume_run *run, int32_t *step_contacts,
                            bool *again, tb_error *error)
{
    tb_gpu_volume_results results;
    tb_status status = run->solids ? tb_gpu_solids_launch(c, run, &results, error)
                                   : tb_gpu_balls_launch(c, run, &results, error);
    if (status == TB_OK) status = tb_gpu_mark(&c->device, AFTER, error);
    *again = false;
    if (status == TB_OK && run->solids) status = tb_gpu_solids_grow(c, again, error);
    if (status != TB_OK || *again) return status;
    status = fetch_results(c, run, &results, step_contacts, error);
    if (status == TB_OK) status = tb_gpu_elapsed(&c->device, BEFORE, AFTER, &run->seconds, error);
    if (status == TB_OK) settle(run, step_contacts);
    return status;
}

tb_status tb_gpu_volume_run(void *context, tb_volume_run *run, tb_error *error)
{
    tb_gpu_volume *c = context;
    tb_status status = tb_gpu_device_enter(&c->device, error);
    if (status == TB_OK && run->fresh)
        status = run->solids ? tb_gpu_solids_scene(c, run->solids, error)
                             : tb_gpu_balls_scene(c, run->balls, error);
    if (status != TB_OK) return status;
    const size_t counts = (size_t)run->worlds * (size_t)run->steps;
    int32_t *step_contacts = malloc((counts + 1) * sizeof *step_contacts);
    if (!step_contacts)
        return tb_fail_memory(error, counts * sizeof *step_contacts, "the contacts of steps");
    bool again = true;
    run->seconds = 0;
    while (status == TB_OK && again) {
        status = tb_gpu_mark(&c->device, BEFORE, error);
        if (status == TB_OK) status = make_steps(c, run, step_contacts, &again, error);
    }
    free(step_contacts);
    return status;
}

void tb_gpu_volume_close(void *context)
{
    tb_gpu_volume *c = context;
    if (!c) return;
    tb_gpu_release(&c->device, &c->scene);
    tb_gpu_release(&c->device, &c->memory);
    tb_gpu_release(&c->device, &c->rooms);
    tb_gpu_device_close(&c->device);
    free(c);
}

tb_status tb_gpu_volume_open(int32_t device, void **context, tb_error *error)
{
    char reason[TB_ERROR_MESSAGE_SIZE];
    const int32_t devices = tb_gpu_count(reason);
    *context = NULL;
    if (device >= devices)
        return tb_fail_field(error, TB_NOT_FOUND, "device", "device %d of %d of backend 'gpu'",
                             (int)device, (int)devices);
    tb_gpu_volume *c = calloc(1, sizeof *c);
    if (!c) return tb_fail_memory(error, sizeof *c, "the volume law on a GPU");
    tb_status status = tb_gpu_device_open(device, &c->device, error);
    if (status != TB_OK) {
        free(c);
        return status;
    }
    status = tb_gpu_check(
        &c->device, cudaDeviceGetAttribute(&c->processors, cudaDevAttrMultiProcessorCount, device),
        "asking for its processors", error);
    if (status != TB_OK) {
        tb_gpu_volume_close(c);
        return status;
    }
    *context = c;
    return TB_OK;
}
