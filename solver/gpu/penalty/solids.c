/* Worlds of solids by the volume law on a GPU: their scene and their numbers go to the card, and the blocks and
 * the memory of a launch are chosen. */
#include "gpu/penalty/volume.h"

#include <stdlib.h>
#include <string.h>

/* ---- the scene ---- */

/* The arrays of one solid. */
typedef struct solid_bytes {
    const void *from;
    size_t bytes;
} solid_bytes;

enum { SOLID_ARRAYS = 6 };

static void list_arrays(const tb_solid *s, solid_bytes arrays[SOLID_ARRAYS])
{
    const size_t faces = (size_t)s->number_of_faces;
    int32_t vertices = 0;
    for (int32_t i = 0; i < s->number_of_pieces; i++) vertices += s->pieces[i].number_of_vertices;
    const size_t loops = faces > 0 && s->loop_starts ? (size_t)s->loop_starts[faces] : 0;
    arrays[0] = (solid_bytes){s->pieces, (size_t)s->number_of_pieces * sizeof *s->pieces};
    arrays[1] = (solid_bytes){s->vertices, 3 * (size_t)vertices * sizeof *s->vertices};
    arrays[2] = (solid_bytes){s->planes, 4 * faces * sizeof *s->planes};
    arrays[3] = (solid_bytes){s->cuts, faces * sizeof *s->cuts};
    arrays[4] =
        (solid_bytes){s->loop_starts, s->loop_starts ? (faces + 1) * sizeof *s->loop_starts : 0};
    arrays[5] = (solid_bytes){s->loops, loops * sizeof *s->loops};
}

/* All solids in one block of bytes, whose pointers are offsets from `base`. */
static size_t pack_solids(const tb_solids_scene *scene, tb_solid *packed, char *block, char *base)
{
    size_t end = 0;
    for (int32_t i = 0; i < scene->number_of_solids; i++) {
        solid_bytes arrays[SOLID_ARRAYS];
        void *at[SOLID_ARRAYS];
        list_arrays(&scene->solids[i], arrays);
        for (int k = 0; k < SOLID_ARRAYS; k++) {
            at[k] = packed ? base + end : NULL;
            if (block && arrays[k].bytes > 0) memcpy(block + end, arrays[k].from, arrays[k].bytes);
            end += (arrays[k].bytes + 15) / 16 * 16;
        }
        if (!packed) continue;
        packed[i] = scene->solids[i];
        memset(&packed[i].surface, 0, sizeof packed[i].surface);
        packed[i].pieces = at[0];
        packed[i].vertices = at[1];
        packed[i].planes = at[2];
        packed[i].cuts = at[3];
        packed[i].loop_starts = at[4];
        packed[i].loops = at[5];
    }
    return end;
}

static tb_status place_scene(tb_gpu_volume *c, const tb_solids_scene *scene, const char *block,
                             size_t bytes, char **solids, tb_error *error)
{
    tb_solids_scene *s = &c->solids.scene;
    const size_t shapes = (size_t)scene->number_of_shapes;
    const size_t bodies = (size_t)scene->number_of_bodies;
    const tb_gpu_array arrays[] = {
        {solids, block, bytes, 0},
        {&s->solids, scene->solids, (size_t)scene->number_of_solids * sizeof *scene->solids, 0},
        {&s->shapes, scene->shapes, shapes * sizeof *scene->shapes, 0},
        {&s->bodies, scene->bodies, bodies * sizeof *scene->bodies, 0},
        {&s->first_shapes, scene->first_shapes, (bodies + 1) * sizeof *scene->first_shapes, 0},
        {&s->body_shapes, scene->body_shapes, shapes * sizeof *scene->body_shapes, 0}};
    return tb_gpu_volume_place(c, &c->scene, arrays, (int)(sizeof arrays / sizeof *arrays), error);
}

/* Memory of a world by the near pairs of its first pose. */
static tb_solids_room first_room(const tb_solids_scene *s)
{
    tb_solids_room room = {.pairs = 2 * s->pairs + 64,
                           .vertices = 2 * s->most_faces + (s->seams ? 6 * s->most_faces : 0),
                           .seams = s->seams ? s->most_faces : 0,
                           .faces = s->most_faces};
    room.fragments = 2 * room.pairs;
    return room;
}

tb_status tb_gpu_solids_scene(tb_gpu_volume *c, const tb_solids_scene *scene, tb_error *error)
{
    const size_t bytes = pack_solids(scene, NULL, NULL, NULL);
    const size_t solids = (size_t)scene->number_of_solids * sizeof *scene->solids;
    char *block = malloc(bytes + 1), *base = NULL;
    tb_solid *packed = malloc(solids + 1);
    tb_status status = block && packed ? TB_OK : tb_fail_memory(error, bytes, "solids for a GPU");
    c->solids.scene = *scene;
    c->solids.room = first_room(scene);
    if (status == TB_OK) {
        pack_solids(scene, NULL, block, NULL);
        status = place_scene(c, scene, block, bytes, &base, error);
    }
    /* the solids' pointers are known once their arrays have an address */
    if (status == TB_OK && solids > 0) {
        pack_solids(scene, packed, NULL, base);
        status = tb_gpu_check(&c->device,
                              cudaMemcpyAsync(c->solids.scene.solids, packed, solids,
                                              cudaMemcpyHostToDevice, c->device.stream),
                              "bringing solids", error);
    }
    if (status == TB_OK) status = tb_gpu_wait(&c->device, "bringing solids", error);
    free(block);
    free(packed);
    return status;
}

/* ---- a launch ---- */

/* Lanes that a world has work for. */
static int32_t lanes_wanted(const tb_solids_scene *s)
{
    const int32_t pairs = s->single ? s->pairs : 32 * s->pairs;
    return pairs > s->number_of_shapes ? pairs : s->number_of_shapes;
}

/* A team of blocks a world where worlds are few, else a block; blocks are no wider than a world. Teams are as
 * many as the card holds at once and half of its memory has room for. */
static tb_status choose_blocks(tb_gpu_volume *c, tb_error *error)
{
    tb_gpu_solids *g = &c->solids;
    tb_solids_memory memory;
    const int32_t wanted = lanes_wanted(&g->scene);
    size_t free_bytes = 0, total = 0;
    int resident = 1;
    g->threads = TB_GPU_SOLIDS_THREADS;
    while (g->threads > 32 && g->threads / 2 >= wanted) g->threads /= 2;
    tb_status status = tb_gpu_check(&c->device, tb_gpu_solids_resident(g->threads, &resident),
                                    "asking for its blocks", error);
    if (status == TB_OK) status = tb_gpu_free_memory(&c->device, &free_bytes, &total, error);
    if (status != TB_OK) return status;
    const int32_t most = c->processors * (resident > 0 ? resident : 1);
    const int32_t blocks = (wanted + g->threads - 1) / g->threads;
    g->teams = g->worlds < most ? g->worlds : most;
    g->blocks = most / g->teams < blocks ? most / g->teams : blocks;
    g->team_bytes = (tb_solids_place(&g->scene, &g->room, NULL, &memory) + 255) / 256 * 256;
    g->lane_bytes = tb_solids_lane_bytes(&g->scene, &g->room);
    for (;;) {
        const size_t lanes = (size_t)g->blocks * (size_t)g->threads;
        const size_t bytes = (g->team_bytes + lanes * g->lane_bytes) * (size_t)g->teams;
        if (bytes <= (free_bytes + c->rooms.capacity) / 2) return TB_OK;
        if (g->teams > 1)
            g->teams = (g->teams + 1) / 2;
        else if (g->blocks > 1)
            g->blocks = (g->blocks + 1) / 2;
        else
            return TB_OK; /* the reservation says that there is too little memory */
    }
}

static tb_status bring(tb_gpu_volume *c, const tb_volume_run *run, tb_error *error)
{
    tb_gpu_solids *g = &c->solids;
    const size_t worlds = (size_t)run->worlds, bodies = worlds * (size_t)run->bodies;
    const size_t numbers = TB_VOLUME_NUMBERS * bodies * sizeof(double);
    g->method = run->method;
    g->worlds = run->worlds;
    g->steps = run->steps;
    tb_status status = choose_blocks(c, error);
    if (status != TB_OK) return status;
    const size_t teams = (size_t)g->teams, lanes = (size_t)g->blocks * (size_t)g->threads;
    const tb_gpu_array arrays[] = {
        {&g->y, run->y, numbers, 0},
        {&g->point, run->y, numbers, 0},
        {&g->slopes, NULL, (size_t)run->method.stages * numbers, 0},
        {&g->forces, run->forces, TB_VOLUME_FORCES * bodies * sizeof(double), 0},
        {&g->deepest, NULL, bodies * sizeof(double), 0},
        {&g->step_contacts, NULL, worlds * (size_t)run->steps * sizeof *g->step_contacts, 0},
        {&g->diverged, NULL, worlds * sizeof *g->diverged, TB_GPU_NEVER_BYTE},
        {&g->degenerate, NULL, worlds * sizeof *g->degenerate, 0},
        {&g->meetings, NULL, teams * TB_GPU_SOLIDS_MEETING * sizeof *g->meetings, 0},
        {&g->needed, NULL, 4 * sizeof *g->needed, 0}};
    status =
        tb_gpu_volume_place(c, &c->memory, arrays, (int)(sizeof arrays / sizeof *arrays), error);
    const size_t memory = teams * g->team_bytes;
    if (status == TB_OK)
        status = tb_gpu_reserve(&c->device, &c->rooms, memory + teams * lanes * g->lane_bytes + 1,
                                error);
    g->team_memory = c->rooms.memory;
    g->lane_memory = g->team_memory + memory;
    return status;
}

tb_status tb_gpu_solids_launch(tb_gpu_volume *c, const tb_volume_run *run,
                               tb_gpu_volume_results *results, tb_error *error)
{
    const tb_gpu_solids *g = &c->solids;
    const tb_status status = bring(c, run, error);
    if (status != TB_OK) return status;
    *results = (tb_gpu_volume_results){g->y,        g->point,     g->deepest, g->step_contacts,
                                       g->diverged, g->degenerate};
    return tb_gpu_check(&c->device, tb_gpu_start_solids(g, c->device.stream), "stepping solids",
                        error);
}

tb_status tb_gpu_solids_grow(tb_gpu_volume *c, bool *again, tb_error *error)
{
    tb_solids_room *room = &c->solids.room;
    int32_t needed[4] = {0, 0, 0, 0};
    tb_status status = tb_gpu_volume_fetch(c, needed, c->solids.needed, sizeof needed, error);
    if (status == TB_OK) status = tb_gpu_wait(&c->device, "stepping solids", error);
    if (status != TB_OK) return status;
    int32_t *const rooms[4] = {&room->pairs, &room->fragments, &room->vertices, &room->faces};
    for (int k = 0; k < 4; k++) {
        if (needed[k] == 0) continue;
        *again = true;
        *rooms[k] = needed[k] + needed[k] / 2;
        if (k == 2 && c->solids.scene.seams) room->seams = room->vertices;
    }
    return TB_OK;
}
