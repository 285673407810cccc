/* Counts of Poulsen's scenes: contacts, blocks of A, colours (his tables 3.2 and section 7.3). */
#include "contact/edge_colouring.h"
#include "scenes/poulsen.h"

#include <string.h>

static void note_sizes(const tb_edge_colouring *c, int32_t *smallest, int32_t *largest)
{
    *smallest = INT32_MAX;
    *largest = 0;
    for (int32_t i = 0; i < c->colours; i++) {
        const int32_t size = c->start[i + 1] - c->start[i];
        if (size < *smallest) *smallest = size;
        if (size > *largest) *largest = size;
    }
}

static tb_status count_colours(const tb_edge_graph *graph, tb_arena *arena,
                               tb_poulsen_counts *counts, tb_error *error)
{
    tb_edge_table table;
    tb_edge_colouring colours;
    tb_status status = tb_edge_table_build(graph, arena, &table);
    if (status != TB_OK) return tb_fail_memory(error, 0, "a contact graph");
    counts->nnz = tb_edge_blocks(graph, &table);
    counts->largest_degree = tb_edge_largest_degree(graph, &table);
    status = tb_edge_colour_balanced(graph, &table, 0, arena, &colours, error);
    if (status != TB_OK) return status;
    counts->balanced_colours = colours.colours;
    note_sizes(&colours, &counts->balanced_smallest, &counts->balanced_largest);
    status = tb_edge_colour_greedy(graph, &table, arena, &colours);
    if (status == TB_OK) {
        counts->greedy_colours = colours.colours;
        const double smallest = TB_EDGE_SMALL_SHARE * graph->edges;
        status = tb_edge_merge_unsafe(graph->edges, (int32_t)smallest, arena, &colours);
    }
    if (status != TB_OK) return tb_fail_memory(error, 0, "a colouring");
    counts->unsafe = colours.unsafe;
    for (int32_t i = 0; i < colours.colours && i < TB_POULSEN_COLOURS; i++)
        counts->size[counts->colours++] = colours.start[i + 1] - colours.start[i];
    return TB_OK;
}

tb_status tb_poulsen_count(const char *name, tb_poulsen_counts *counts, tb_error *error)
{
    tb_poulsen_scene scene;
    tb_arena arena;
    memset(counts, 0, sizeof *counts);
    tb_status status = tb_poulsen_scene_create(name, &scene, error);
    if (status != TB_OK) return status;
    tb_arena_init(&arena, 0);
    const tb_edge_graph graph = {scene.bodies, scene.contacts, scene.a, scene.b};
    counts->bodies = scene.bodies;
    counts->contacts = scene.contacts;
    status = count_colours(&graph, &arena, counts, error);
    tb_arena_destroy(&arena);
    tb_poulsen_scene_destroy(&scene);
    return status;
}
