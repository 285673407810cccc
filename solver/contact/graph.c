/* The contact graph joins blocks that share a dof (Nützi 4.7, Poulsen 3.10). Kinematic bodies
 * have no dofs, so a floor joins no blocks. In the given form, nonzero entries of G join blocks. */
#include "contact/contact.h"

#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* Blocks that touch each key (dof or row's block), as CSR. */
typedef struct touches {
    int32_t *start, *block;
} touches;

/* blocks by dof; a block with a dof in several runs is listed once per run */
static tb_status touches_of_dofs(const tb_problem *problem, tb_arena *arena, touches *t)
{
    t->start = TB_ARENA_ZEROED(arena, int32_t, (size_t)problem->number_of_dofs + 2);
    if (!t->start) return TB_RESOURCE_EXHAUSTED;
    int64_t total = 0;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) total += problem->blocks[b].width;
    if (total > INT32_MAX) return TB_RESOURCE_EXHAUSTED;
    t->block = TB_ARENA_ARRAY(arena, int32_t, total);
    if (!t->block) return TB_RESOURCE_EXHAUSTED;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t b = 0; b < problem->number_of_blocks; b++) {
            const tb_block *block = &problem->blocks[b];
            for (int32_t k = 0; k < block->segments; k++) {
                const tb_segment s = problem->segments[block->segment + k];
                for (int32_t j = s.dof; j < s.dof + s.count; j++) {
                    if (pass == 0)
                        t->start[j + 2]++;
                    else
                        t->block[t->start[j + 1]++] = b;
                }
            }
        }
        if (pass == 0)
            for (int32_t j = 0; j < problem->number_of_dofs; j++)
                t->start[j + 2] += t->start[j + 1];
    }
    return TB_OK;
}

/* counts each neighbour of block b once, in no particular order; lists them if the list is not
 * NULL */
static int32_t neighbours_by_dofs(const tb_problem *problem, const touches *t, int32_t b,
                                  int32_t stamp, int32_t *seen, int32_t *list)
{
    const tb_block *block = &problem->blocks[b];
    int32_t count = 0;
    seen[b] = stamp;
    for (int32_t k = 0; k < block->segments; k++) {
        const tb_segment s = problem->segments[block->segment + k];
        for (int32_t j = s.dof; j < s.dof + s.count; j++)
            for (int32_t i = t->start[j]; i < t->start[j + 1]; i++) {
                const int32_t other = t->block[i];
                if (seen[other] == stamp) continue;
                seen[other] = stamp;
                if (list) list[count] = other;
                count++;
            }
    }
    return count;
}

static int32_t neighbours_by_matrix(const tb_problem *problem, const int32_t *block_of, int32_t b,
                                    int32_t stamp, int32_t *seen, int32_t *list)
{
    const tb_block *block = &problem->blocks[b];
    const tb_matrix *m = problem->matrix;
    int32_t count = 0;
    seen[b] = stamp;
    for (int32_t row = block->row; row < block->row + block->rows; row++) {
        const int32_t from = m->dense ? 0 : m->row_start[row];
        const int32_t to = m->dense ? m->columns : m->row_start[row + 1];
        for (int32_t k = from; k < to; k++) {
            const tb_real value = m->dense ? m->dense[(int64_t)row * m->columns + k] : m->value[k];
            const int32_t other = block_of[m->dense ? k : m->column[k]];
            if (value == 0 || seen[other] == stamp) continue;
            seen[other] = stamp;
            if (list) list[count] = other;
            count++;
        }
    }
    return count;
}

tb_status tb_contact_graph_build(const tb_problem *problem, tb_arena *arena,
                                 tb_contact_graph *graph)
{
    const int32_t n = problem->number_of_blocks;
    int32_t *start = TB_ARENA_ZEROED(arena, int32_t, (size_t)n + 1);
    int32_t *seen = TB_ARENA_ZEROED(arena, int32_t, n);
    int32_t *block_of = NULL;
    touches t = {NULL, NULL};
    if (!start || !seen) return TB_RESOURCE_EXHAUSTED;
    if (problem->values) {
        const tb_status status = touches_of_dofs(problem, arena, &t);
        if (status != TB_OK) return status;
    } else {
        block_of = TB_ARENA_ARRAY(arena, int32_t, problem->number_of_rows);
        if (!block_of) return TB_RESOURCE_EXHAUSTED;
        for (int32_t b = 0; b < n; b++)
            for (int32_t i = 0; i < problem->blocks[b].rows; i++)
                block_of[problem->blocks[b].row + i] = b;
    }

    /* count, then list and sort */
    int32_t *neighbour = NULL;
    int64_t total = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t b = 0; b < n; b++) {
            const int32_t stamp = pass * n + b + 1;
            int32_t *list = pass == 0 ? NULL : neighbour + start[b];
            const int32_t count =
                problem->values ? neighbours_by_dofs(problem, &t, b, stamp, seen, list)
                                : neighbours_by_matrix(problem, block_of, b, stamp, seen, list);
            if (pass == 1) {
                qsort(list, (size_t)count, sizeof *list, ascending);
                continue;
            }
            total += count;
            if (total > INT32_MAX || n > INT32_MAX / 2) return TB_RESOURCE_EXHAUSTED;
            start[b + 1] = (int32_t)total;
        }
        if (pass == 0) {
            neighbour = TB_ARENA_ARRAY(arena, int32_t, total);
            if (!neighbour) return TB_RESOURCE_EXHAUSTED;
        }
    }
    graph->number_of_blocks = n;
    graph->start = start;
    graph->neighbour = neighbour;
    return TB_OK;
}
