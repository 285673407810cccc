/* Poulsen's first-free and balanced colourings, and the merging of small colours. */
#include "contact/edge_colouring.h"

#include <string.h>

/* ---- the graph ---- */

tb_status tb_edge_table_build(const tb_edge_graph *g, tb_arena *arena, tb_edge_table *table)
{
    table->start = TB_ARENA_ZEROED(arena, int32_t, (size_t)g->bodies + 2);
    table->edge = TB_ARENA_ARRAY(arena, int32_t, 2 * (size_t)g->edges);
    if (!table->start || !table->edge) return TB_RESOURCE_EXHAUSTED;
    int32_t *end = table->start + 1; /* current end of each body's list while filling */
    for (int32_t k = 0; k < g->edges; k++) {
        if (g->a[k] >= 0) end[g->a[k] + 1]++;
        if (g->b[k] >= 0) end[g->b[k] + 1]++;
    }
    for (int32_t i = 0; i < g->bodies; i++) end[i + 1] += end[i];
    for (int32_t k = 0; k < g->edges; k++) {
        if (g->a[k] >= 0) table->edge[end[g->a[k]]++] = k;
        if (g->b[k] >= 0) table->edge[end[g->b[k]]++] = k;
    }
    return TB_OK;
}

static int32_t degree(const tb_edge_table *table, int32_t body)
{
    return body >= 0 ? table->start[body + 1] - table->start[body] : 0;
}

int32_t tb_edge_degree(const tb_edge_graph *g, const tb_edge_table *table, int32_t k)
{
    const int32_t a = degree(table, g->a[k]), b = degree(table, g->b[k]);
    return (a > 0 ? a - 1 : 0) + (b > 0 ? b - 1 : 0);
}

int32_t tb_edge_largest_degree(const tb_edge_graph *g, const tb_edge_table *table)
{
    int32_t largest = 0;
    for (int32_t k = 0; k < g->edges; k++) {
        const int32_t d = tb_edge_degree(g, table, k);
        if (d > largest) largest = d;
    }
    return largest;
}

int64_t tb_edge_blocks(const tb_edge_graph *g, const tb_edge_table *table)
{
    int64_t blocks = 0;
    for (int32_t k = 0; k < g->edges; k++) blocks += tb_edge_degree(g, table, k) + 1;
    return blocks;
}

/* ---- colours ---- */

/* Marks with `stamp` the colours of a body's coloured edges. */
static void mark(const tb_edge_table *table, int32_t body, const int32_t *colour, int32_t stamp,
                 int32_t *marks)
{
    if (body < 0) return;
    for (int32_t i = table->start[body]; i < table->start[body + 1]; i++) {
        const int32_t c = colour[table->edge[i]];
        if (c >= 0) marks[c] = stamp;
    }
}

/* Sorts edges by colour, stably. */
static tb_status sort_by_colour(int32_t edges, int32_t colours, const int32_t *colour,
                                tb_arena *arena, tb_edge_colouring *c)
{
    c->colours = colours;
    c->unsafe = 0;
    c->start = TB_ARENA_ZEROED(arena, int32_t, (size_t)colours + 2);
    c->order = TB_ARENA_ARRAY(arena, int32_t, edges);
    if (!c->start || !c->order) return TB_RESOURCE_EXHAUSTED;
    int32_t *end = c->start + 1;
    for (int32_t k = 0; k < edges; k++) end[colour[k] + 1]++;
    for (int32_t i = 0; i < colours; i++) end[i + 1] += end[i];
    for (int32_t k = 0; k < edges; k++) c->order[end[colour[k]]++] = k;
    return TB_OK;
}

tb_status tb_edge_colour_greedy(const tb_edge_graph *g, const tb_edge_table *table, tb_arena *arena,
                                tb_edge_colouring *colouring)
{
    const size_t most = (size_t)tb_edge_largest_degree(g, table) + 1;
    int32_t *colour = TB_ARENA_ARRAY(arena, int32_t, g->edges);
    int32_t *marks = TB_ARENA_ZEROED(arena, int32_t, most);
    int32_t colours = 0;
    if (!colour || !marks) return TB_RESOURCE_EXHAUSTED;
    memset(colour, -1, (size_t)g->edges * sizeof *colour);
    for (int32_t k = 0; k < g->edges; k++) {
        mark(table, g->a[k], colour, k + 1, marks);
        mark(table, g->b[k], colour, k + 1, marks);
        int32_t c = 0;
        while (marks[c] == k + 1) c++;
        colour[k] = c;
        if (c >= colours) colours = c + 1;
    }
    return sort_by_colour(g->edges, colours, colour, arena, colouring);
}

static int32_t largest_body_degree(const tb_edge_graph *g, const tb_edge_table *table)
{
    int32_t largest = 0;
    for (int32_t i = 0; i < g->bodies; i++)
        if (degree(table, i) > largest) largest = degree(table, i);
    return largest;
}

tb_status tb_edge_colour_balanced(const tb_edge_graph *g, const tb_edge_table *table,
                                  int32_t wanted, tb_arena *arena, tb_edge_colouring *colouring,
                                  tb_error *error)
{
    const int32_t needed = largest_body_degree(g, table);
    int32_t colours = wanted;
    if (wanted == 0) colours = tb_edge_largest_degree(g, table);
    if (wanted == 0 && colours < needed) colours = needed;
    if (colours < needed)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "colours",
                             "%d colours are too few: a body has %d contacts", colours, needed);
    int32_t *colour = TB_ARENA_ARRAY(arena, int32_t, g->edges);
    int32_t *marks = TB_ARENA_ZEROED(arena, int32_t, colours);
    int32_t *count = TB_ARENA_ZEROED(arena, int32_t, colours);
    if (!colour || !marks || !count) return tb_fail_memory(error, 0, "a colouring");
    memset(colour, -1, (size_t)g->edges * sizeof *colour);
    for (int32_t k = 0; k < g->edges; k++) {
        mark(table, g->a[k], colour, k + 1, marks);
        mark(table, g->b[k], colour, k + 1, marks);
        int32_t best = -1;
        for (int32_t c = 0; c < colours; c++)
            if (marks[c] != k + 1 && (best < 0 || count[c] < count[best])) best = c;
        if (best < 0)
            return tb_fail_field(error, TB_FAILED_PRECONDITION, "colours",
                                 "%d colours are too few: contact %d has neighbours of all of them",
                                 colours, k);
        colour[k] = best;
        count[best]++;
    }
    const tb_status status = sort_by_colour(g->edges, colours, colour, arena, colouring);
    return status == TB_OK ? TB_OK : tb_fail_memory(error, 0, "a colouring");
}

tb_status tb_edge_merge_unsafe(int32_t edges, int32_t smallest, tb_arena *arena,
                               tb_edge_colouring *c)
{
    int32_t small = 0, kept = 0;
    for (int32_t i = 0; i < c->colours; i++) small += c->start[i + 1] - c->start[i] < smallest;
    if (small < 2) return TB_OK;
    int32_t *colour = TB_ARENA_ARRAY(arena, int32_t, edges);
    if (!colour) return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < c->colours; i++) {
        const bool safe = c->start[i + 1] - c->start[i] >= smallest;
        for (int32_t j = c->start[i]; j < c->start[i + 1]; j++)
            colour[c->order[j]] = safe ? kept : c->colours - small;
        kept += safe;
    }
    const tb_status status = sort_by_colour(edges, kept + 1, colour, arena, c);
    c->unsafe = 1;
    return status;
}
