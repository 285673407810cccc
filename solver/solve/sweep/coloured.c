/* Coloured Gauss-Seidel (Poulsen ch. 4): blocks of one colour share no dof, so that they are swept
 * at once on any number of threads, and the sweep is still Gauss-Seidel in the order of the
 * colours.
 *
 * Colours are first-free in the order of the blocks, all of them safe (his rigid solver). Within a
 * colour no block reads what another writes, and the measure of a sweep is summed in the order of
 * the chunks, so that bytes do not depend on the number of threads. All else is as in sor. */
#include "solve/sweep/forms.h"

#include "base/parallel.h"

#ifndef TB_DEVICE

enum { COLOURED_CHUNK = 64 }; /* blocks that one thread takes at a time */

/* One colour under way. */
#define tb_coloured_pass TB_SYMBOL(tb_coloured_pass)
typedef struct tb_coloured_pass {
    tb_sweeper *sweeper;
    int32_t first, count;
} tb_coloured_pass;

TB_STATIC void coloured_chunk(void *context, int32_t chunk, int32_t thread)
{
    const tb_coloured_pass *pass = (const tb_coloured_pass *)context;
    tb_sweeper *sweeper = pass->sweeper;
    const tb_problem *problem = sweeper->problem;
    const int32_t from = chunk * COLOURED_CHUNK;
    const int32_t to = pass->count - from > COLOURED_CHUNK ? from + COLOURED_CHUNK : pass->count;
    double measure = 0;
    (void)thread;
    for (int32_t i = from; i < to; i++) {
        const int32_t b = sweeper->colours->order[pass->first + i];
        const tb_sweep_block *block = &sweeper->blocks[b];
        tb_real *lambda = sweeper->lambda + block->row;
        tb_real xi[TB_BLOCK_ROWS], change[TB_BLOCK_ROWS];
        tb_gather_any(problem, &problem->blocks[b], sweeper->s, xi);
        for (int k = 0; k < block->rows; k++) {
            xi[k] += problem->c[block->row + k];
            if (problem->compliance) xi[k] += problem->compliance[block->row + k] * lambda[k];
        }
        measure += tb_move_block(sweeper, b, true, xi, lambda, change,
                                 sweeper->alpha ? &sweeper->alpha[b] : NULL);
        tb_scatter_any(problem, &problem->blocks[b], sweeper->s, change);
    }
    sweeper->colours->measures[chunk] = measure;
}

TB_EXTERN double tb_coloured_sweep(tb_sweeper *sweeper)
{
    const tb_colours *colours = sweeper->colours;
    double measure = 0;
    for (int32_t c = 0; c < colours->number; c++) {
        tb_coloured_pass pass = {sweeper, colours->start[c],
                                 colours->start[c + 1] - colours->start[c]};
        const int32_t chunks = (pass.count + COLOURED_CHUNK - 1) / COLOURED_CHUNK;
        tb_parallel_for(chunks, 1, colours->threads, coloured_chunk, &pass);
        for (int32_t i = 0; i < chunks; i++) measure += colours->measures[i];
    }
    return measure;
}

/* Blocks in order, each the smallest colour that none of its neighbours has. */
TB_EXTERN tb_status tb_colours_find(const tb_problem *problem, int32_t threads, tb_arena *arena,
                                    tb_colours *colours)
{
    const int32_t n = problem->number_of_blocks;
    tb_contact_graph graph;
    const tb_status status = tb_contact_graph_build(problem, arena, &graph);
    if (status != TB_OK) return status;
    int32_t *colour = TB_ARENA_ARRAY(arena, int32_t, n);
    int32_t *marks = TB_ARENA_ZEROED(arena, int32_t, (size_t)n + 1);
    int32_t *start = TB_ARENA_ZEROED(arena, int32_t, (size_t)n + 2);
    int32_t *order = TB_ARENA_ARRAY(arena, int32_t, n);
    colours->measures = TB_ARENA_ARRAY(arena, double, (size_t)n / COLOURED_CHUNK + 1);
    if (!colour || !marks || !start || !order || !colours->measures) return TB_RESOURCE_EXHAUSTED;
    int32_t number = 0;
    for (int32_t b = 0; b < n; b++) {
        for (int32_t i = graph.start[b]; i < graph.start[b + 1]; i++)
            if (graph.neighbour[i] < b) marks[colour[graph.neighbour[i]]] = b + 1;
        int32_t c = 0;
        while (marks[c] == b + 1) c++;
        colour[b] = c;
        if (c >= number) number = c + 1;
        start[c + 1]++;
    }
    for (int32_t c = 0; c < number; c++) start[c + 1] += start[c];
    for (int32_t c = 0; c < number; c++) marks[c] = start[c];
    for (int32_t b = 0; b < n; b++) order[marks[colour[b]]++] = b;
    colours->number = number;
    colours->start = start;
    colours->order = order;
    colours->threads = tb_parallel_threads(threads);
    return TB_OK;
}

TB_EXTERN tb_status tb_solve_coloured(const tb_problem *problem, const tb_solve_options *options,
                                      tb_warm_start *warm, tb_solution *solution)
{
    const bool stored =
        options->storage != TB_STORAGE_AUTO && options->storage != TB_STORAGE_FACTORIZED;
    if (!problem->values || stored) return TB_UNSUPPORTED;
    return tb_iterate_coloured(problem, options, warm, solution, "coloured", TB_SOR_OMEGA);
}

#endif
