/* The pattern of a sparse LU of small dense blocks: which nodes merge, the order of elimination,
 * and the fill.
 *
 * Order: minimum degree, the first of equals, on a quotient graph (George and Liu, SIAM Review 31,
 * 1989): an eliminated group becomes an element for the clique that it leaves, and absorbs the
 * elements that it was in, so that the graph never outgrows the given one. Degrees are exact. Fill:
 * row by row along the elimination tree (Liu, SIAM J. Matrix Anal. 11, 1990; Davis, ACM Trans.
 * Math. Softw. 31, 2005), first counted, then listed. Memory goes with the entries of the graph and
 * of the fill, never with the square of the nodes.
 *
 * The code has many branches and little arithmetic, so a team's leader runs it alone; the other
 * lanes take memory with it. */
#include "solve/newton/block_lu.h"

#include "base/team.h"

#include <string.h>

enum {
    LARGEST_GROUP = 48, /* rows: three such blocks fill half of a first-level cache */
    FILL_TO_JOIN = 16   /* groups: with less fill, joined blocks are no cheaper */
};

/* Working memory of orders and lists, of nodes or of groups. */
#define lu_graph TB_SYMBOL(lu_graph)
typedef struct lu_graph {
    int32_t nodes;
    int32_t *start, *neighbour; /* CSR, ascending, each once, self left out */
    int32_t *group_start, *group_neighbour;
    int32_t *group_size; /* rows */
    int32_t *mark;       /* the last look at it */
    int32_t *order, *place, *parent;
    int32_t *rows, *shift, *number; /* of places, for joined groups */
} lu_graph;

/* Lists of the quotient graph, in one of two buffers: at the end of a buffer, live entries move
 * to the other. */
#define lu_quotient TB_SYMBOL(lu_quotient)
typedef struct lu_quotient {
    int32_t *list, *other; /* `room` numbers each */
    int32_t used, room;
    int32_t *first;                /* of a group: its list, elements before groups */
    int32_t *elements, *variables; /* how many of each; of an element: none and its clique */
    int32_t *degree;
    int32_t *tree; /* 2 leaves: the group of smallest degree below; -1: none */
    int32_t leaves;
    int32_t tag; /* of the last look */
} lu_quotient;

/* ---- the graph, tidied ---- */

/* Rows of the graph ascending, each neighbour once: the graph is symmetric, so its columns read in
 * order are its rows. */
TB_STATIC void tidy_graph(lu_graph *to, const tb_node_graph *graph)
{
    const int32_t n = graph->nodes;
    int32_t *next = to->mark;
    TB_ROLLED
    for (int32_t i = 0; i <= n; i++) to->start[i] = graph->start[i];
    TB_ROLLED
    for (int32_t i = 0; i < n; i++) next[i] = graph->start[i];
    for (int32_t j = 0; j < n; j++) {
        TB_ROLLED
        for (int32_t k = graph->start[j]; k < graph->start[j + 1]; k++) {
            const int32_t i = graph->neighbour[k];
            const bool again = next[i] > graph->start[i] && to->neighbour[next[i] - 1] == j;
            if (i != j && !again) to->neighbour[next[i]++] = j;
        }
    }
    for (int32_t i = 0, end = 0; i < n; i++) {
        const int32_t from = to->start[i], many = next[i] - from;
        TB_ROLLED
        for (int32_t k = 0; k < many; k++) to->neighbour[end + k] = to->neighbour[from + k];
        to->start[i] = end;
        end += many;
        if (i == n - 1) to->start[n] = end;
    }
    TB_ROLLED
    for (int32_t i = 0; i < n; i++) to->mark[i] = -1;
}

/* ---- which nodes become one ---- */

/* A group for every node, in the order of the first of each: nodes with equal closed neighbourhoods
 * while their rows are few enough. */
TB_STATIC int32_t merge_nodes(tb_block_lu *lu, lu_graph *to, const int32_t *size)
{
    const int32_t n = to->nodes;
    int32_t groups = 0;
    TB_ROLLED
    for (int32_t i = 0; i < n; i++) lu->group[i] = -1;
    for (int32_t i = 0; i < n; i++) {
        if (lu->group[i] >= 0) continue;
        const int32_t from = to->start[i], end = to->start[i + 1];
        int32_t rows = size[i];
        lu->group[i] = groups;
        lu->offset[i] = 0;
        to->mark[i] = i;
        TB_ROLLED
        for (int32_t k = from; k < end; k++) to->mark[to->neighbour[k]] = i;
        for (int32_t k = from; k < end; k++) {
            const int32_t j = to->neighbour[k], own = to->start[j];
            if (j <= i || lu->group[j] >= 0 || rows + size[j] > LARGEST_GROUP) continue;
            bool equal = to->start[j + 1] - own == end - from;
            for (int32_t m = own; equal && m < to->start[j + 1]; m++)
                equal = to->mark[to->neighbour[m]] == i;
            if (!equal) continue;
            lu->group[j] = groups;
            lu->offset[j] = rows;
            rows += size[j];
        }
        to->group_size[groups++] = rows;
    }
    return groups;
}

/* The graph of the groups: the neighbours of each group's first node. */
TB_STATIC void couple_groups(const tb_block_lu *lu, lu_graph *to)
{
    int32_t entry = 0, group = 0;
    TB_ROLLED
    for (int32_t i = 0; i < to->nodes; i++) to->mark[i] = -1;
    for (int32_t i = 0; i < to->nodes; i++) {
        if (lu->group[i] != group) continue;
        to->group_start[group] = entry;
        to->mark[group] = group;
        TB_ROLLED
        for (int32_t k = to->start[i]; k < to->start[i + 1]; k++) {
            const int32_t other = lu->group[to->neighbour[k]];
            if (to->mark[other] == group) continue;
            to->mark[other] = group;
            to->group_neighbour[entry++] = other;
        }
        group++;
    }
    to->group_start[group] = entry;
}

/* ---- minimum degree ---- */

/* Puts a group where its degree belongs in the tree; -1: takes it out. */
TB_CALLED void set_degree(lu_quotient *q, int32_t i, int32_t degree)
{
    q->degree[i] = degree;
    q->tree[q->leaves + i] = degree < 0 ? -1 : i;
    TB_ROLLED
    for (int32_t at = (q->leaves + i) / 2; at > 0; at /= 2) {
        const int32_t left = q->tree[2 * at], right = q->tree[2 * at + 1];
        const bool is_right = left < 0 || (right >= 0 && q->degree[right] < q->degree[left]);
        q->tree[at] = is_right ? right : left;
    }
}

/* Moves live entries to the other buffer. */
TB_STATIC void compact(lu_quotient *q, int32_t groups)
{
    int32_t end = 0;
    TB_ROLLED
    for (int32_t i = 0; i < groups; i++) {
        const int32_t many = q->elements[i] + q->variables[i];
        memcpy(q->other + end, q->list + q->first[i], (size_t)many * sizeof(int32_t));
        q->first[i] = end;
        end += many;
    }
    int32_t *full = q->list;
    q->list = q->other;
    q->other = full;
    q->used = end;
}

/* Appends nodes without the present mark to the buffer. */
TB_CALLED void gather_unseen(lu_quotient *q, int32_t *mark, const int32_t *from, int32_t many)
{
    TB_ROLLED
    for (int32_t k = 0; k < many; k++) {
        if (mark[from[k]] == q->tag) continue;
        mark[from[k]] = q->tag;
        q->list[q->used++] = from[k];
    }
}

/* New neighbours of group i in the clique of p: p as an element, and all neighbours that are
 * neither an ended element nor in the clique. The list does not grow. */
TB_STATIC void see_element(lu_quotient *q, const int32_t *mark, int32_t i, int32_t p)
{
    int32_t *list = q->list + q->first[i], *left = q->other, many = 0;
    const int32_t elements = q->elements[i], all = elements + q->variables[i];
    TB_ROLLED
    for (int32_t k = 0; k < elements; k++)
        if (q->variables[list[k]] > 0) left[many++] = list[k];
    left[many++] = p;
    q->elements[i] = many;
    TB_ROLLED
    for (int32_t k = elements; k < all; k++)
        if (mark[list[k]] != q->tag) left[many++] = list[k];
    q->variables[i] = many - q->elements[i];
    memcpy(list, left, (size_t)many * sizeof(int32_t));
}

/* Group p becomes an element: all that it sees, itself and through elements, which end. */
TB_STATIC void make_element(lu_quotient *q, int32_t *mark, int32_t groups, int32_t p)
{
    if (q->used > q->room - groups) compact(q, groups);
    const int32_t clique = q->used, *own = q->list + q->first[p], elements = q->elements[p];
    mark[p] = ++q->tag;
    gather_unseen(q, mark, own + elements, q->variables[p]);
    for (int32_t k = 0; k < elements; k++) {
        gather_unseen(q, mark, q->list + q->first[own[k]], q->variables[own[k]]);
        q->variables[own[k]] = 0; /* ended */
    }
    for (int32_t at = clique; at < q->used; at++) see_element(q, mark, q->list[at], p);
    q->first[p] = clique;
    q->elements[p] = 0;
    q->variables[p] = q->used - clique;
}

/* How many groups one sees, itself and through elements. */
TB_STATIC int32_t count_seen(lu_quotient *q, int32_t *mark, int32_t i)
{
    const int32_t *list = q->list + q->first[i], elements = q->elements[i];
    if (elements == 1 && q->variables[i] == 0) return q->variables[list[0]] - 1;
    int32_t seen = q->variables[i];
    mark[i] = ++q->tag;
    TB_ROLLED
    for (int32_t k = 0; k < seen; k++) mark[list[elements + k]] = q->tag;
    for (int32_t k = 0; k < elements; k++) {
        const int32_t *clique = q->list + q->first[list[k]];
        for (int32_t m = 0; m < q->variables[list[k]]; m++) {
            if (mark[clique[m]] == q->tag) continue;
            mark[clique[m]] = q->tag;
            seen++;
        }
    }
    return seen;
}

TB_STATIC void begin_quotient(lu_quotient *q, const lu_graph *graph, int32_t groups)
{
    q->used = graph->group_start[groups];
    q->tag = 0;
    memcpy(q->list, graph->group_neighbour, (size_t)q->used * sizeof(int32_t));
    memset(q->tree, -1, 2 * (size_t)q->leaves * sizeof(int32_t));
    TB_ROLLED
    for (int32_t i = 0; i < groups; i++) {
        graph->mark[i] = 0;
        q->first[i] = graph->group_start[i];
        q->elements[i] = 0;
        q->variables[i] = graph->group_start[i + 1] - graph->group_start[i];
        set_degree(q, i, q->variables[i]);
    }
}

/* Eliminates groups by smallest degree, the first of equals; false where that fills too much. */
TB_STATIC bool order_groups(lu_quotient *q, lu_graph *graph, int32_t groups)
{
    int64_t numbers = 0;
    begin_quotient(q, graph, groups);
    for (int32_t k = 0; k < groups; k++) {
        const int32_t p = q->tree[1], size = graph->group_size[p];
        graph->order[k] = p;
        graph->place[p] = k;
        set_degree(q, p, -1);
        make_element(q, graph->mark, groups, p);
        const int32_t *clique = q->list + q->first[p];
        numbers += (int64_t)size * size;
        TB_ROLLED
        for (int32_t m = 0; m < q->variables[p]; m++) {
            set_degree(q, clique[m], count_seen(q, graph->mark, clique[m]));
            numbers += 2 * (int64_t)size * graph->group_size[clique[m]];
        }
        if (numbers > TB_BLOCK_LU_NUMBERS) return false;
    }
    return true;
}

/* ---- fill ---- */

/* Fill of every place of the order: counted into `next` (`later` NULL), or listed from
 * next[place] on, ascending. */
TB_CALLED void count_or_list_later(const lu_graph *graph, int32_t groups, int32_t *next,
                                   int32_t *later)
{
    for (int32_t row = 0; row < groups; row++) {
        const int32_t i = graph->order[row];
        graph->mark[row] = row;
        graph->parent[row] = -1;
        for (int32_t k = graph->group_start[i]; k < graph->group_start[i + 1]; k++) {
            int32_t at = graph->place[graph->group_neighbour[k]];
            if (at > row) continue;
            while (graph->mark[at] != row) {
                if (graph->parent[at] < 0) graph->parent[at] = row;
                if (later)
                    later[next[at]++] = row;
                else
                    next[at]++;
                graph->mark[at] = row;
                at = graph->parent[at];
            }
        }
    }
}

/* ---- groups that are eliminated one after another ---- */

/* Joins each place to its parent where that fills all that it fills, so that the joined block has no more
 * numbers, and has no other such child. Writes where a place's rows lie within its block, and the
 * number of its block. fill: of each place. Returns the number of blocks. */
TB_STATIC int32_t join_places(const lu_graph *graph, int32_t groups, const int32_t *fill)
{
    int32_t *to = graph->number, blocks = 0;
    TB_ROLLED
    for (int32_t k = 0; k < groups; k++) {
        graph->rows[k] = graph->group_size[graph->order[k]];
        graph->shift[k] = 0;
    }
    for (int32_t k = 0; k < groups; k++) {
        const int32_t parent = graph->parent[k];
        const bool joins = parent >= 0 && fill[k] >= FILL_TO_JOIN && fill[k] == fill[parent] + 1 &&
                           graph->shift[parent] == 0 &&
                           graph->rows[k] + graph->rows[parent] <= LARGEST_GROUP;
        to[k] = joins ? parent : -1;
        if (!joins) continue;
        graph->shift[parent] = graph->rows[k];
        graph->rows[parent] += graph->rows[k];
    }
    TB_ROLLED
    for (int32_t k = 0; k < groups; k++)
        if (to[k] < 0) graph->rows[blocks++] = graph->rows[k];
    for (int32_t k = groups - 1, last = blocks; k >= 0; k--) to[k] = to[k] < 0 ? --last : to[to[k]];
    return blocks;
}

/* The graph of the blocks, which are numbered in the order of elimination, each with all neighbours of
 * its groups. */
TB_STATIC void join_graph(lu_graph *graph, int32_t groups, int32_t blocks)
{
    int32_t *start = graph->start, *neighbour = graph->neighbour;
    for (int32_t k = 0; k <= blocks; k++) start[k] = 0;
    TB_ROLLED
    for (int32_t k = 0; k < groups; k++) {
        const int32_t i = graph->order[k];
        start[graph->number[k]] += graph->group_start[i + 1] - graph->group_start[i];
    }
    TB_ROLLED
    for (int32_t k = 1; k <= blocks; k++) start[k] += start[k - 1]; /* ends, to begin with */
    for (int32_t k = groups - 1; k >= 0; k--) {
        const int32_t i = graph->order[k];
        TB_ROLLED
        for (int32_t m = graph->group_start[i]; m < graph->group_start[i + 1]; m++)
            neighbour[--start[graph->number[k]]] =
                graph->number[graph->place[graph->group_neighbour[m]]];
    }
    graph->start = graph->group_start;
    graph->group_start = start;
    graph->neighbour = graph->group_neighbour;
    graph->group_neighbour = neighbour;
}

/* Groups that are eliminated one after another with the same fill become one block (a fundamental
 * supernode; Liu, Ng, Peyton, SIAM J. Matrix Anal. 14, 1993): near the end of the order, where
 * most of the work is, large blocks cost less by the number than small ones. */
TB_STATIC void join_groups(tb_block_lu *lu, lu_graph *graph)
{
    const int32_t groups = lu->groups;
    const int32_t blocks = join_places(graph, groups, lu->later_start);
    for (int32_t i = 0; i < lu->nodes; i++) {
        const int32_t place = graph->place[lu->group[i]];
        lu->offset[i] += graph->shift[place];
        lu->group[i] = graph->number[place];
    }
    join_graph(graph, groups, blocks);
    for (int32_t k = 0; k < blocks; k++) {
        graph->group_size[k] = graph->rows[k];
        graph->order[k] = graph->place[k] = k;
    }
    lu->groups = blocks;
}

/* Joins groups, and counts where a place's entries begin; their number. */
TB_STATIC int64_t count_entries(tb_block_lu *lu, lu_graph *graph)
{
    int64_t entries = 0;
    for (int32_t k = 0; k <= lu->groups; k++) lu->later_start[k] = 0;
    count_or_list_later(graph, lu->groups, lu->later_start, NULL);
    join_groups(lu, graph);
    for (int32_t k = 0; k <= lu->groups; k++) lu->later_start[k] = 0;
    count_or_list_later(graph, lu->groups, lu->later_start, NULL);
    for (int32_t k = 0; k <= lu->groups; k++) {
        const int32_t own = lu->later_start[k];
        lu->later_start[k] = (int32_t)entries;
        entries += own;
    }
    return entries;
}

/* Places of groups, rows and numbers. */
TB_STATIC void lay_out_pattern(tb_block_lu *lu, lu_graph *graph)
{
    const int32_t groups = lu->groups;
    int32_t *next = graph->start; /* done with it */
    int64_t value = 0;
    TB_ROLLED
    for (int32_t k = 0; k < groups; k++) next[k] = lu->later_start[k];
    count_or_list_later(graph, groups, next, lu->later);
    lu->rows = 0;
    TB_ROLLED
    for (int32_t k = 0; k < groups; k++) {
        lu->size[k] = graph->group_size[graph->order[k]];
        lu->first[k] = lu->rows;
        lu->rows += lu->size[k];
    }
    lu->operations = 0;
    for (int32_t k = 0; k < groups; k++) {
        const double d = (double)lu->size[k];
        double width = 0;
        lu->diagonal[k] = value;
        value += (int64_t)lu->size[k] * lu->size[k];
        TB_ROLLED
        for (int32_t a = lu->later_start[k]; a < lu->later_start[k + 1]; a++) {
            const int64_t block = (int64_t)lu->size[k] * lu->size[lu->later[a]];
            lu->upper[a] = value;
            lu->lower[a] = value + block;
            value += 2 * block;
            width += lu->size[lu->later[a]];
        }
        lu->operations += d * d * d / 3 + d * d * width + d * width * width;
    }
    lu->numbers = value;
    for (int32_t i = 0; i < lu->nodes; i++) lu->group[i] = graph->place[lu->group[i]];
}

/* ---- analysis ---- */

TB_STATIC bool take_nodes(tb_block_lu *lu, lu_graph *graph, int32_t n, int32_t couplings,
                          tb_arena *arena)
{
    lu->nodes = graph->nodes = n;
    int32_t **own[] = {&lu->group, &lu->offset, &lu->size, &lu->first};
    TB_ROLLED
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (!(*own[i] = TB_ARENA_ARRAY(arena, int32_t, n))) return false;
    int32_t **of_graph[] = {&graph->start, &graph->group_start, &graph->group_size, &graph->mark,
                            &graph->order, &graph->place,       &graph->parent,     &graph->rows,
                            &graph->shift, &graph->number};
    TB_ROLLED
    for (size_t i = 0; i < sizeof of_graph / sizeof of_graph[0]; i++)
        if (!(*of_graph[i] = TB_ARENA_ARRAY(arena, int32_t, n + 1))) return false;
    lu->later_start = TB_ARENA_ARRAY(arena, int32_t, n + 1);
    lu->diagonal = TB_ARENA_ARRAY(arena, int64_t, n);
    graph->neighbour = TB_ARENA_ARRAY(arena, int32_t, couplings);
    graph->group_neighbour = TB_ARENA_ARRAY(arena, int32_t, couplings);
    return lu->later_start && lu->diagonal && graph->neighbour && graph->group_neighbour;
}

/* Memory for the graph and once more for a clique; with more, entries would move less often. */
TB_STATIC bool take_quotient(lu_quotient *q, int32_t groups, int32_t couplings, tb_arena *arena)
{
    q->leaves = 1;
    while (q->leaves < groups) q->leaves *= 2;
    q->room = couplings + 2 * groups;
    q->list = TB_ARENA_ARRAY(arena, int32_t, q->room);
    q->other = TB_ARENA_ARRAY(arena, int32_t, q->room);
    q->tree = TB_ARENA_ARRAY(arena, int32_t, 2 * (int64_t)q->leaves);
    int32_t **arrays[] = {&q->first, &q->elements, &q->variables, &q->degree};
    TB_ROLLED
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        if (!(*arrays[i] = TB_ARENA_ARRAY(arena, int32_t, groups))) return false;
    return q->list && q->other && q->tree;
}

TB_STATIC tb_status take_entries(tb_block_lu *lu, int64_t entries, tb_arena *arena)
{
    lu->later = TB_ARENA_ARRAY(arena, int32_t, entries);
    lu->upper = TB_ARENA_ARRAY(arena, int64_t, entries);
    lu->lower = TB_ARENA_ARRAY(arena, int64_t, entries);
    return lu->later && lu->upper && lu->lower ? TB_OK : TB_RESOURCE_EXHAUSTED;
}

TB_EXTERN tb_status tb_block_lu_analyse(tb_block_lu *lu, const tb_node_graph *graph,
                                        tb_arena *arena)
{
    const int32_t n = graph->nodes, couplings = graph->start[n];
    lu_graph own;
    lu_quotient quotient;
    memset(lu, 0, sizeof *lu);
    if (!take_nodes(lu, &own, n, couplings, arena)) return TB_RESOURCE_EXHAUSTED;
    if (TB_LEADER) {
        tidy_graph(&own, graph);
        lu->groups = merge_nodes(lu, &own, graph->size);
        couple_groups(lu, &own);
    }
    tb_team_share(&lu->groups, sizeof lu->groups);
    if (!take_quotient(&quotient, lu->groups, couplings, arena)) return TB_RESOURCE_EXHAUSTED;
    int64_t entries = -1;
    if (TB_LEADER && order_groups(&quotient, &own, lu->groups)) entries = count_entries(lu, &own);
    tb_team_share(&entries, sizeof entries);
    tb_team_share(&lu->groups, sizeof lu->groups);
    tb_team_sync();
    if (entries < 0) return TB_UNSUPPORTED;
    const tb_status status = take_entries(lu, entries, arena);
    if (status != TB_OK) return status;
    if (TB_LEADER) lay_out_pattern(lu, &own);
    tb_team_share(&lu->rows, sizeof lu->rows);
    tb_team_share(&lu->numbers, sizeof lu->numbers);
    tb_team_share(&lu->operations, sizeof lu->operations);
    tb_team_sync();

    lu->values = TB_ARENA_ARRAY(arena, tb_real, lu->numbers);
    lu->exchange = TB_ARENA_ARRAY(arena, int32_t, lu->rows);
    lu->work = TB_ARENA_ARRAY(arena, tb_real, lu->rows);
    return lu->values && lu->exchange && lu->work ? TB_OK : TB_RESOURCE_EXHAUSTED;
}
