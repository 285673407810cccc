/* Impulses of the closing of many loops by Newton's linear system, whose unknowns are the bodies' velocities: the
 * net of a flex has more edges than degrees of freedom, and a graph of few neighbours. */
#include "solve/newton/newton_system.h"
#include "step/stages/stages.h"

/* The system's ridge rounds the answer by epsilon over its share of the diagonal: one more solve with the
 * factor at hand takes that away. */
enum { PASSES = 2 };

TB_STATIC tb_real trace_of(const tb_problem *p)
{
    tb_real trace = 0;
    for (int32_t b = 0; b < p->number_of_blocks; b++) {
        const tb_block *block = &p->blocks[b];
        const tb_real *values = p->values + block->value;
        for (int64_t i = 0; i < (int64_t)block->rows * block->width; i++)
            trace += values[i] * values[i];
    }
    return trace;
}

TB_STATIC tb_status solve_closing(const tb_problem *p, tb_real ridge, tb_arena *arena, tb_real *mu,
                                  bool *solved)
{
    const int32_t rows = p->number_of_rows, blocks = p->number_of_blocks;
    const tb_real weight = trace_of(p) * ridge;
    tb_newton_system system;
    tb_real *weights = TB_ARENA_ARRAY(arena, tb_real, blocks);
    tb_real *slope = TB_ARENA_ZEROED(arena, tb_real, TB_BLOCK_ROWS * (int64_t)rows);
    tb_real *lack = TB_ARENA_ARRAY(arena, tb_real, rows);
    tb_real *change = TB_ARENA_ARRAY(arena, tb_real, rows);
    tb_real *s = TB_ARENA_ARRAY(arena, tb_real, p->number_of_dofs);
    uint8_t *statuses = TB_ARENA_ARRAY(arena, uint8_t, blocks);
    if (!weights || !slope || !lack || !change || !s || !statuses) return TB_RESOURCE_EXHAUSTED;
    if (!(weight > 0)) return TB_OK;
    for (int32_t b = 0; b < blocks; b++) {
        const tb_block *block = &p->blocks[b];
        weights[b] = weight;
        statuses[b] = TB_CONTACT_STICK;
        for (int32_t i = 0; i < block->rows; i++)
            slope[TB_BLOCK_ROWS * (int64_t)block->row + i * (block->rows + 1)] = 1;
    }
    tb_status status = tb_newton_system_prepare(&system, p, arena);
    for (int32_t r = 0; r < rows; r++) mu[r] = 0;
    *solved = true;
    for (int pass = 0; pass < PASSES && *solved && status == TB_OK; pass++) {
        tb_problem_apply(p, mu, s, lack);
        for (int32_t r = 0; r < rows; r++) lack[r] = -lack[r] / weight - mu[r];
        status = tb_newton_system_solve(&system, weights, slope, lack, statuses, change, solved);
        for (int32_t r = 0; r < rows && *solved; r++) mu[r] += change[r];
    }
    return status;
}

TB_EXTERN tb_status tb_equality_impulses(const tb_problem *problem, tb_real ridge, tb_arena *arena,
                                         tb_real *mu, bool *solved)
{
    const tb_arena_mark mark = tb_arena_get_mark(arena);
    *solved = false;
    const tb_status status = solve_closing(problem, ridge, arena, mu, solved);
    tb_arena_return_to(arena, mark);
    return status;
}
