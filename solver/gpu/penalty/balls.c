/* Worlds of balls by the volume law on a GPU: the host's side. The scene stays on the card from run to run;
 * a run brings the bodies' numbers there and back. */
#include "gpu/penalty/balls.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/device/device.h"

enum { BEFORE, AFTER };
/* above every number of a step */
enum { NEVER_BYTE = 0x7f };

typedef struct balls_card {
    tb_gpu_device device;
    tb_gpu_buffer scene, memory;
    tb_gpu_balls balls; /* pointers of the card */
    int processors;
} balls_card;

/* An array of a run or a scene on the card. */
typedef struct card_array {
    void *to; /* the pointer that gets its address */
    const void *from;
    size_t bytes;
    int fill; /* where `from` is NULL */
} card_array;

/* Memory for arrays, one behind the other, with the host's bytes or a fill in them. */
static tb_status place(balls_card *c, tb_gpu_buffer *buffer, const card_array *arrays, int count,
                       tb_error *error)
{
    size_t end = 0;
    for (int i = 0; i < count; i++) end += (arrays[i].bytes + 255) / 256 * 256;
    tb_status status = tb_gpu_reserve(&c->device, buffer, end + 1, error);
    end = 0;
    for (int i = 0; i < count && status == TB_OK; i++) {
        char *at = (char *)buffer->memory + end;
        end += (arrays[i].bytes + 255) / 256 * 256;
        memcpy(arrays[i].to, &at, sizeof at);
        if (arrays[i].bytes == 0) continue;
        status = tb_gpu_check(
            &c->device,
            arrays[i].from ? cudaMemcpyAsync(at, arrays[i].from, arrays[i].bytes,
                                             cudaMemcpyHostToDevice, c->device.stream)
                           : cudaMemsetAsync(at, arrays[i].fill, arrays[i].bytes, c->device.stream),
            "bringing balls", error);
    }
    return status;
}

static tb_status bring_scene(balls_card *c, const tb_balls_scene *scene, tb_error *error)
{
    tb_balls_scene *s = &c->balls.scene;
    *s = *scene;
    const card_array arrays[] = {
        {&s->balls, scene->balls, (size_t)scene->shapes * sizeof *scene->balls, 0},
        {&s->free_bodies, scene->free_bodies, (size_t)scene->bodies * sizeof *scene->free_bodies,
         0},
        {&s->plane, scene->plane, (size_t)scene->planes * sizeof *scene->plane, 0}};
    return place(c, &c->scene, arrays, (int)(sizeof arrays / sizeof *arrays), error);
}

static tb_status bring(balls_card *c, const tb_balls_run *run, tb_error *error)
{
    tb_gpu_balls *g = &c->balls;
    const size_t worlds = (size_t)run->worlds, shapes = worlds * (size_t)run->scene->shapes;
    const size_t bodies = worlds * (size_t)run->scene->bodies, number = sizeof(double);
    const size_t numbers = TB_BALLS_NUMBERS * bodies * number;
    g->method = run->method;
    g->worlds = run->worlds;
    g->steps = run->steps;
    g->alone = run->worlds > 1 && run->scene->shapes <= TB_GPU_BALLS_ALONE;
    for (g->slots = 64; g->slots < TB_GPU_BALLS_SLOTS * (uint32_t)run->scene->shapes;)
        g->slots *= 2;
    const card_array arrays[] = {
        {&g->y, run->y, numbers, 0},
        {&g->point, run->y, numbers, 0},
        {&g->slopes, NULL, (size_t)run->method.stages * numbers, 0},
        {&g->forces, run->forces, TB_BALLS_FORCES * bodies * number, 0},
        {&g->seen, NULL, 2 * TB_BALLS_SEEN * shapes * number, 0},
        {&g->heads, NULL, 2 * worlds * g->slots * sizeof *g->heads, 0},
        {&g->next, NULL, 2 * shapes * sizeof *g->next, 0},
        {&g->deepest, NULL, bodies * number, 0},
        {&g->step_contacts, NULL, worlds * (size_t)run->steps * sizeof *g->step_contacts, 0},
        {&g->diverged, NULL, worlds * sizeof *g->diverged, NEVER_BYTE},
        {&g->degenerate, NULL, worlds * sizeof *g->degenerate, 0},
        {&g->meeting, NULL, 32 * sizeof *g->meeting, 0}};
    return place(c, &c->memory, arrays, (int)(sizeof arrays / sizeof *arrays), error);
}

static tb_status fetch(balls_card *c, void *to, const void *from, size_t bytes, tb_error *error)
{
    if (bytes == 0) return TB_OK;
    return tb_gpu_check(&c->device,
                        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, c->device.stream),
                        "fetching balls", error);
}

/* The most contacts of a step of each world, and the steps that diverged. */
static void settle(tb_balls_run *run, const int32_t *step_contacts)
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

static tb_status make_steps(balls_card *c, tb_balls_run *run, int32_t *step_contacts,
                            tb_error *error)
{
    const tb_gpu_balls *g = &c->balls;
    const size_t worlds = (size_t)run->worlds, bodies = worlds * (size_t)run->scene->bodies;
    const size_t numbers = TB_BALLS_NUMBERS * bodies * sizeof(double);
    tb_status status = tb_gpu_mark(&c->device, BEFORE, error);
    if (status == TB_OK)
        status = tb_gpu_check(&c->device, tb_gpu_start_balls(g, c->processors, c->device.stream),
                              "stepping balls", error);
    if (status == TB_OK) status = tb_gpu_mark(&c->device, AFTER, error);
    const struct {
        void *to;
        const void *from;
        size_t bytes;
    } results[] = {
        {run->y, g->y, numbers},
        {run->point, g->point, numbers},
        {run->deepest, g->deepest, bodies * sizeof(double)},
        {step_contacts, g->step_contacts, worlds * (size_t)run->steps * sizeof *step_contacts},
        {run->diverged, g->diverged, worlds * sizeof *run->diverged},
        {run->degenerate, g->degenerate, worlds * sizeof *run->degenerate}};
    for (size_t i = 0; i < sizeof results / sizeof *results && status == TB_OK; i++)
        status = fetch(c, results[i].to, results[i].from, results[i].bytes, error);
    if (status == TB_OK) status = tb_gpu_wait(&c->device, "stepping balls", error);
    run->seconds = 0;
    if (status == TB_OK) status = tb_gpu_elapsed(&c->device, BEFORE, AFTER, &run->seconds, error);
    return status;
}

tb_status tb_gpu_balls_run(void *context, tb_balls_run *run, tb_error *error)
{
    balls_card *c = context;
    tb_status status = tb_gpu_device_enter(&c->device, error);
    if (status == TB_OK && run->fresh) status = bring_scene(c, run->scene, error);
    if (status == TB_OK) status = bring(c, run, error);
    if (status != TB_OK) return status;
    const size_t counts = (size_t)run->worlds * (size_t)run->steps;
    int32_t *step_contacts = malloc((counts + 1) * sizeof *step_contacts);
    if (!step_contacts)
        return tb_fail_memory(error, counts * sizeof *step_contacts, "the contacts of steps");
    status = make_steps(c, run, step_contacts, error);
    if (status == TB_OK) settle(run, step_contacts);
    free(step_contacts);
    return status;
}

void tb_gpu_balls_close(void *context)
{
    balls_card *c = context;
    if (!c) return;
    tb_gpu_release(&c->device, &c->scene);
    tb_gpu_release(&c->device, &c->memory);
    tb_gpu_device_close(&c->device);
    free(c);
}

tb_status tb_gpu_balls_open(int32_t device, void **context, tb_error *error)
{
    char reason[TB_ERROR_MESSAGE_SIZE];
    const int32_t devices = tb_gpu_count(reason);
    *context = NULL;
    if (device >= devices)
        return tb_fail_field(error, TB_NOT_FOUND, "device", "device %d of %d of backend 'gpu'",
                             (int)device, (int)devices);
    balls_card *c = calloc(1, sizeof *c);
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
        tb_gpu_balls_close(c);
        return status;
    }
    *context = c;
    return TB_OK;
}
