/* Poulsen's colourings of a contact graph: bodies are vertices, contacts are edges, and contacts of one
 * colour share no body (A Parallel Gauss-Seidel Method for Computing Contact Forces, DIKU 2010, ch. 4).
 *
 * These are Poulsen's sequential colourings, comparable with his tables; a large world on a GPU
 * colours its contacts in parallel (colouring.h). Every body counts, also a fixed ground, which
 * Poulsen makes a hub. */
#ifndef TB_EDGE_COLOURING_H
#define TB_EDGE_COLOURING_H

#include "base/base.h"

/* Edges k between bodies a[k] and b[k], -1: no body (an end that joins no edges). Borrowed. */
typedef struct tb_edge_graph {
    int32_t bodies, edges;
    const int32_t *a, *b;
} tb_edge_graph;

/* The edges of each body in ascending order: start (bodies + 1), edge. */
typedef struct tb_edge_table {
    int32_t *start, *edge;
} tb_edge_table;

tb_status tb_edge_table_build(const tb_edge_graph *graph, tb_arena *arena, tb_edge_table *table);

/* Number of neighbours of edge k: d_e = d_a + d_b - 2 if two bodies share at most one edge. */
int32_t tb_edge_degree(const tb_edge_graph *graph, const tb_edge_table *table, int32_t k);
int32_t tb_edge_largest_degree(const tb_edge_graph *graph, const tb_edge_table *table);

/* Blocks of A = J W J' that are not zero, in linear time: the sum of d_e + 1 (Poulsen A3). */
int64_t tb_edge_blocks(const tb_edge_graph *graph, const tb_edge_table *table);

/* Edges sorted by colour: colour c has order[start[c]] to order[start[c + 1] - 1], in edge order. */
typedef struct tb_edge_colouring {
    int32_t colours;
    int32_t unsafe; /* the last colours, 0 or 1, whose edges may share bodies */
    int32_t *start; /* colours + 1 */
    int32_t *order; /* edges */
} tb_edge_colouring;

/* First-free: each edge, in order, takes the smallest colour that no neighbour has. */
tb_status tb_edge_colour_greedy(const tb_edge_graph *graph, const tb_edge_table *table,
                                tb_arena *arena, tb_edge_colouring *colouring);

/* Balanced: each edge, in order, takes the free colour with the fewest edges so far. wanted:
 * number of colours; 0: the largest edge degree, as in Poulsen's results, and at least enough
 * for the first-free rule. INVALID_ARGUMENT if wanted is below the largest degree of a body;
 * FAILED_PRECONDITION names an edge without a free colour. */
tb_status tb_edge_colour_balanced(const tb_edge_graph *graph, const tb_edge_table *table,
                                  int32_t wanted, tb_arena *arena, tb_edge_colouring *colouring,
                                  tb_error *error);

/* Merges colours of fewer than `smallest` edges into one unsafe colour, which becomes the last. One such
 * colour alone stays safe. */
tb_status tb_edge_merge_unsafe(int32_t edges, int32_t smallest, tb_arena *arena,
                               tb_edge_colouring *colouring);

/* Share of all edges below which a colour counts as small. Any value between 0.053 and 0.132
 * reproduces the thesis, which merges 2,781 of 52,909 contacts, and not 5,329 of 40,320. */
#define TB_EDGE_SMALL_SHARE 0.1

#endif
