/* Coloured Gauss-Seidel (Poulsen ch. 4): blocks of one colour share no dof, so that they are swept
 * at once on any number of threads, and the sweep is still Gauss-Seidel in the order of the
 * colours.
 *
 * Colours are first-free in the order of the blocks (his rigid solver), balanced, or first-free with
 * small ones merged into an unsafe colour (relaxed). Within a safe colour no block reads another's
 * writes; blocks of the unsafe colour see the impulses before it, and their changes are added in the
 * order of the blocks. The measure of a sweep is summed in the order of the chunks. So bytes do not
 * depend on the number of threads. All else is as in sor. */
#include "solve/sweep/forms.h"

#include "base/parallel.h"

#include <string.h>

#ifndef TB_DEVICE

enum { COLOURED_CHUNK = 64 }; /* blocks that one thread takes at a time */

/* Colours with a smaller share of the blocks are merged by RELAXED; the value that reproduces the
 * thesis (contact/edge_colouring.h). */
static const double UNSAFE_SHARE = 0.1;

/* One colour under way. */
#define tb_coloured_pass TB_SYMBOL(tb_coloured_pass)
typedef struct tb_coloured_pass {
    tb_sweeper *sweeper;
    int32_t first, count;
    bool unsafe;
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
        measure += tb_move_block(sweeper, b, !pass->unsafe, xi, lambda, change,
                                 sweeper->alpha ? &sweeper->alpha[b] : NULL);
        if (pass->unsafe)
            for (int k = 0; k < block->rows; k++)
                sweeper->colours->changes[block->row + k] = change[k];
        else
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
                                 colours->start[c + 1] - colours->start[c],
                                 c >= colours->number - colours->unsafe};
        const int32_t chunks = (pass.count + COLOURED_CHUNK - 1) / COLOURED_CHUNK;
        tb_parallel_for(chunks, 1, colours->threads, coloured_chunk, &pass);
        for (int32_t i = 0; i < chunks; i++) measure += colours->measures[i];
        for (int32_t i = 0; pass.unsafe && i < pass.count; i++) {
            const tb_block *block = &sweeper->problem->blocks[colours->order[pass.first + i]];
            tb_scatter_any(sweeper->problem, block, sweeper->s, colours->changes + block->row);
        }
    }
    return measure;
}

/* Colours of all blocks, and their numbers of blocks. */
#define tb_block_colours TB_SYMBOL(tb_block_colours)
typedef struct tb_block_colours {
    tb_contact_graph graph;
    int32_t blocks, number;
    int32_t *colour; /* blocks */
    int32_t *size;   /* colours, blocks + 1 at most; zero beyond `number` */
    int32_t *marks;  /* blocks + 1: the last block that had a neighbour of this colour, plus 1 */
} tb_block_colours;

/* Marks the colours of a block's neighbours before it. */
TB_STATIC void mark_neighbours(tb_block_colours *k, int32_t block)
{
    for (int32_t i = k->graph.start[block]; i < k->graph.start[block + 1]; i++)
        if (k->graph.neighbour[i] < block) k->marks[k->colour[k->graph.neighbour[i]]] = block + 1;
}

/* Blocks in order, each the smallest colour that no neighbour has. */
TB_STATIC void colour_first_free(tb_block_colours *k)
{
    k->number = 0;
    for (int32_t b = 0; b < k->blocks; b++) {
        mark_neighbours(k, b);
        int32_t c = 0;
        while (k->marks[c] == b + 1) c++;
        k->colour[b] = c;
        if (c >= k->number) k->number = c + 1;
        k->size[c]++;
    }
}

/* Blocks in order, each the free colour with the fewest blocks (Poulsen 4.3), out of as many colours
 * as first-free has or `wanted`, if that is more; a block whose neighbours have them all opens another. */
TB_STATIC void colour_balanced(tb_block_colours *k, int32_t wanted)
{
    colour_first_free(k);
    if (wanted > k->number) k->number = wanted < k->blocks ? wanted : k->blocks;
    memset(k->size, 0, ((size_t)k->blocks + 1) * sizeof *k->size);
    memset(k->marks, 0, ((size_t)k->blocks + 1) * sizeof *k->marks);
    for (int32_t b = 0; b < k->blocks; b++) {
        mark_neighbours(k, b);
        int32_t least = -1;
        for (int32_t c = 0; c < k->number; c++)
            if (k->marks[c] != b + 1 && (least < 0 || k->size[c] < k->size[least])) least = c;
        if (least < 0) least = k->number++;
        k->colour[b] = least;
        k->size[least]++;
    }
}

/* Gives small colours the number of the first of them and numbers the rest without gaps, that one
 * last; false if fewer than two are small. `marks` receives the new numbers. */
TB_STATIC bool merge_small(tb_block_colours *k)
{
    int32_t small = 0, kept = 0;
    for (int32_t c = 0; c < k->number; c++) small += k->size[c] < UNSAFE_SHARE * (double)k->blocks;
    if (small < 2) return false;
    const int32_t unsafe = k->number - small;
    for (int32_t c = 0; c < k->number; c++) {
        const bool is_small = k->size[c] < UNSAFE_SHARE * (double)k->blocks;
        k->marks[c] = is_small ? unsafe : kept++;
    }
    memset(k->size, 0, (size_t)k->number * sizeof *k->size);
    for (int32_t b = 0; b < k->blocks; b++) {
        k->colour[b] = k->marks[k->colour[b]];
        k->size[k->colour[b]]++;
    }
    k->number = unsafe + 1;
    return true;
}

TB_EXTERN tb_status tb_colours_find(const tb_problem *problem, const tb_solve_options *options,
                                    tb_arena *arena, tb_colours *colours)
{
    const int32_t n = problem->number_of_blocks;
    tb_block_colours k = {.blocks = n};
    const tb_status status = tb_contact_graph_build(problem, arena, &k.graph);
    if (status != TB_OK) return status;
    k.colour = TB_ARENA_ARRAY(arena, int32_t, n);
    k.marks = TB_ARENA_ZEROED(arena, int32_t, (size_t)n + 1);
    k.size = TB_ARENA_ZEROED(arena, int32_t, (size_t)n + 1);
    int32_t *start = TB_ARENA_ARRAY(arena, int32_t, (size_t)n + 2);
    int32_t *order = TB_ARENA_ARRAY(arena, int32_t, n);
    colours->measures = TB_ARENA_ARRAY(arena, double, (size_t)n / COLOURED_CHUNK + 1);
    if (!k.colour || !k.marks || !k.size || !start || !order || !colours->measures)
        return TB_RESOURCE_EXHAUSTED;
    colours->unsafe = 0;
    switch (options->colouring) {
    case TB_COLOURING_BALANCED: colour_balanced(&k, options->colours); break;
    case TB_COLOURING_RELAXED:
        colour_first_free(&k);
        colours->unsafe = merge_small(&k);
        break;
    default: colour_first_free(&k); break;
    }
    if (colours->unsafe) {
        colours->changes = TB_ARENA_ARRAY(arena, tb_real, problem->number_of_rows);
        if (!colours->changes) return TB_RESOURCE_EXHAUSTED;
    }
    start[0] = 0;
    for (int32_t c = 0; c < k.number; c++) start[c + 1] = start[c] + k.size[c];
    for (int32_t c = 0; c < k.number; c++) k.marks[c] = start[c];
    for (int32_t b = 0; b < n; b++) order[k.marks[k.colour[b]]++] = b;
    colours->number = k.number;
    colours->start = start;
    colours->order = order;
    colours->threads = tb_parallel_threads(options->threads);
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
