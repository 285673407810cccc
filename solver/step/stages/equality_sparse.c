/* Impulses of the closing of many loops by Newton's linear system, whose unknowns are the bodies' velocities: the
 * net of a flex has more edges than degrees of freedom, and a graph of few neighbours. */
#include <string.h>

#include "solve/newton/newton_system.h"
#include "step/stages/stages.h"

/* The system's ridge rounds the answer by epsilon over its share of the diagonal: one more solve with the
 * factor at hand takes that away. */
enum { PASSES = 2 };

struct tb_closing {
    tb_problem problem; /* its arrays are the closing's own */
    tb_block *blocks;
    tb_segment *segments;
    tb_real *values, *compliance;
    int32_t number_of_segments;
    int64_t number_of_values;
    tb_newton_system system;
    tb_real weight;             /* of every block */
    tb_real *weights, *slope;   /* blocks; squares of the rows */
    tb_real *lack, *change, *s; /* rows, rows, dofs */
    uint8_t *statuses;          /* blocks */
};

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

/* Whether the rows of a problem have the dofs of the closing's rows, and their places in the arrays. */
TB_STATIC bool has_dofs_of(const tb_closing *c, const tb_problem *p)
{
    if (p->number_of_blocks != c->problem.number_of_blocks) return false;
    for (int32_t b = 0; b < p->number_of_blocks; b++) {
        const tb_block *own = &c->blocks[b], *other = &p->blocks[b];
        if (own->rows != other->rows || own->width != other->width || own->value != other->value ||
            own->segment != other->segment || own->segments != other->segments)
            return false;
    }
    return memcmp(c->segments, p->segments, (size_t)c->number_of_segments * sizeof *c->segments) ==
           0;
}

TB_STATIC tb_status take_closing_arrays(tb_closing *c, const tb_problem *p, tb_arena *arena)
{
    const int32_t rows = p->number_of_rows, blocks = p->number_of_blocks;
    for (int32_t b = 0; b < blocks; b++) {
        const tb_block *block = &p->blocks[b];
        const int64_t end = block->value + (int64_t)block->rows * block->width;
        if (block->segment + block->segments > c->number_of_segments)
            c->number_of_segments = block->segment + block->segments;
        if (end > c->number_of_values) c->number_of_values = end;
    }
    c->blocks = TB_ARENA_ARRAY(arena, tb_block, blocks);
    c->segments = TB_ARENA_ARRAY(arena, tb_segment, c->number_of_segments);
    c->values = TB_ARENA_ARRAY(arena, tb_real, c->number_of_values);
    c->compliance = TB_ARENA_ZEROED(arena, tb_real, rows);
    c->weights = TB_ARENA_ARRAY(arena, tb_real, blocks);
    c->slope = TB_ARENA_ZEROED(arena, tb_real, TB_BLOCK_ROWS * (int64_t)rows);
    c->lack = TB_ARENA_ARRAY(arena, tb_real, rows);
    c->change = TB_ARENA_ARRAY(arena, tb_real, rows);
    c->s = TB_ARENA_ARRAY(arena, tb_real, p->number_of_dofs);
    c->statuses = TB_ARENA_ARRAY(arena, uint8_t, blocks);
    if (!c->blocks || !c->segments || !c->values || !c->compliance || !c->weights || !c->slope ||
        !c->lack || !c->change || !c->s || !c->statuses)
        return TB_RESOURCE_EXHAUSTED;
    memcpy(c->blocks, p->blocks, (size_t)blocks * sizeof *c->blocks);
    memcpy(c->segments, p->segments, (size_t)c->number_of_segments * sizeof *c->segments);
    c->problem = *p;
    c->problem.blocks = c->blocks;
    c->problem.segments = c->segments;
    c->problem.values = c->values;
    c->problem.compliance = p->compliance ? c->compliance : NULL;
    for (int32_t b = 0; b < blocks; b++) {
        const tb_block *block = &c->blocks[b];
        c->statuses[b] = TB_CONTACT_STICK;
        for (int32_t i = 0; i < block->rows; i++)
            c->slope[TB_BLOCK_ROWS * (int64_t)block->row + i * (block->rows + 1)] = 1;
    }
    return tb_newton_system_prepare(&c->system, &c->problem, arena);
}

TB_EXTERN tb_status tb_closing_take_rows(tb_closing **closing, const tb_problem *problem,
                                         tb_real ridge, tb_arena *arena)
{
    if (!*closing || !has_dofs_of(*closing, problem)) {
        *closing = TB_ARENA_ZEROED(arena, tb_closing, 1);
        if (!*closing || take_closing_arrays(*closing, problem, arena) != TB_OK)
            return TB_RESOURCE_EXHAUSTED;
    }
    tb_closing *c = *closing;
    memcpy(c->values, problem->values, (size_t)c->number_of_values * sizeof *c->values);
    if (problem->compliance)
        memcpy(c->compliance, problem->compliance,
               (size_t)problem->number_of_rows * sizeof *c->compliance);
    c->weight = trace_of(problem) * ridge;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) c->weights[b] = c->weight;
    c->system.update.has_factor = false;
    return TB_OK;
}

TB_EXTERN tb_problem tb_closing_rows(const tb_closing *closing)
{
    return closing->problem;
}

TB_EXTERN tb_status tb_closing_impulses(tb_closing *closing, const tb_real *c, tb_real *mu,
                                        bool *solved)
{
    tb_problem problem = closing->problem;
    const int32_t rows = problem.number_of_rows;
    tb_real *lack = closing->lack;
    tb_status status = TB_OK;
    problem.c = c;
    for (int32_t r = 0; r < rows; r++) mu[r] = 0;
    *solved = closing->weight > 0;
    for (int pass = 0; pass < PASSES && *solved && status == TB_OK; pass++) {
        tb_problem_apply(&problem, mu, closing->s, lack);
        for (int32_t r = 0; r < rows; r++) lack[r] = -lack[r] / closing->weight - mu[r];
        status = tb_newton_system_solve(&closing->system, closing->weights, closing->slope, lack,
                                        closing->statuses, closing->change, solved);
        for (int32_t r = 0; r < rows && *solved; r++) mu[r] += closing->change[r];
    }
    return status;
}
