/* Worlds of balls by the volume law on a GPU: their scene and their numbers go to the card. */
#include "gpu/penalty/volume.h"

tb_status tb_gpu_balls_scene(tb_gpu_volume *c, const tb_balls_scene *scene, tb_error *error)
{
    tb_balls_scene *s = &c->balls.scene;
    *s = *scene;
    const tb_gpu_array arrays[] = {
        {&s->balls, scene->balls, (size_t)scene->shapes * sizeof *scene->balls, 0},
        {&s->free_bodies, scene->free_bodies, (size_t)scene->bodies * sizeof *scene->free_bodies,
         0},
        {&s->plane, scene->plane, (size_t)scene->planes * sizeof *scene->plane, 0}};
    return tb_gpu_volume_place(c, &c->scene, arrays, (int)(sizeof arrays / sizeof *arrays), error);
}

static tb_status bring(tb_gpu_volume *c, const tb_volume_run *run, tb_error *error)
{
    tb_gpu_balls *g = &c->balls;
    const size_t worlds = (size_t)run->worlds, shapes = worlds * (size_t)run->balls->shapes;
    const size_t bodies = worlds * (size_t)run->bodies, number = sizeof(double);
    const size_t numbers = TB_VOLUME_NUMBERS * bodies * number;
    g->method = run->method;
    g->worlds = run->worlds;
    g->steps = run->steps;
    g->alone = run->worlds > 1 && run->balls->shapes <= TB_GPU_BALLS_ALONE;
    g->scans = g->alone && run->balls->shapes <= TB_GPU_BALLS_SCANNED;
    g->slots = 64;
    while (!g->scans && g->slots < TB_GPU_BALLS_SLOTS * (uint32_t)run->balls->shapes) g->slots *= 2;
    const size_t heads = g->scans ? 0 : 2 * worlds * g->slots;
    const tb_gpu_array arrays[] = {
        {&g->y, run->y, numbers, 0},
        {&g->point, run->y, numbers, 0},
        {&g->slopes, NULL, (size_t)run->method.stages * numbers, 0},
        {&g->forces, run->forces, TB_VOLUME_FORCES * bodies * number, 0},
        {&g->seen, NULL, 2 * TB_BALLS_SEEN * shapes * number, 0},
        {&g->heads, NULL, heads * sizeof *g->heads, 0},
        {&g->next, NULL, 2 * shapes * sizeof *g->next, 0},
        {&g->deepest, NULL, bodies * number, 0},
        {&g->step_contacts, NULL, worlds * (size_t)run->steps * sizeof *g->step_contacts, 0},
        {&g->diverged, NULL, worlds * sizeof *g->diverged, TB_GPU_NEVER_BYTE},
        {&g->degenerate, NULL, worlds * sizeof *g->degenerate, 0},
        {&g->meeting, NULL, 32 * sizeof *g->meeting, 0}};
    return tb_gpu_volume_place(c, &c->memory, arrays, (int)(sizeof arrays / sizeof *arrays), error);
}

tb_status tb_gpu_balls_launch(tb_gpu_volume *c, const tb_volume_run *run,
                              tb_gpu_volume_results *results, tb_error *error)
{
    const tb_gpu_balls *g = &c->balls;
    const tb_status status = bring(c, run, error);
    if (status != TB_OK) return status;
    *results = (tb_gpu_volume_results){g->y,        g->point,     g->deepest, g->step_contacts,
                                       g->diverged, g->degenerate};
    return tb_gpu_check(&c->device, tb_gpu_start_balls(g, c->processors, c->device.stream),
                        "stepping balls", error);
}
