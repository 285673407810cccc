/* Making and solving the two programs of staggered projections. */
#include "solve/staggered/staggered.h"

#include "base/team.h"

#include <string.h>

/* of the mean diagonal: far above rounding, far below an effect on the solution in one iteration */
static const double STAGGERED_SHIFT = sizeof(tb_real) == sizeof(float) ? 1e-4 : 1e-7;
static const double STAGGERED_TOLERANCE = sizeof(tb_real) == sizeof(float) ? 1e-5 : 1e-12;

/* ---- variables ---- */

TB_STATIC tb_status take_part(tb_staggered_program *part, int32_t n, tb_arena *arena)
{
    memset(part, 0, sizeof *part);
    part->n = n;
    part->block_of = TB_ARENA_ARRAY(arena, int32_t, n);
    part->row = TB_ARENA_ARRAY(arena, int32_t, n);
    part->turn = TB_ARENA_ARRAY(arena, uint8_t, n);
    part->diagonal = TB_ARENA_ARRAY(arena, tb_real, n);
    part->last = TB_ARENA_ARRAY(arena, tb_real, n);
    if (!part->block_of || !part->row || !part->turn || !part->diagonal || !part->last)
        return TB_RESOURCE_EXHAUSTED;
    bool small = true;
#ifndef TB_DEVICE
    small = n <= TB_STAGGERED_SMALL;
#endif
    tb_status status = tb_bounded_take(&part->program, n, small, arena);
    part->program.tolerance = STAGGERED_TOLERANCE;
#ifndef TB_DEVICE
    if (status == TB_OK && !small) status = tb_staggered_large_take(part, arena);
#endif
    return status;
}

TB_STATIC void put_variable(tb_staggered_program *part, int32_t j, int32_t block, int32_t row,
                            int32_t turn)
{
    part->block_of[j] = block;
    part->row[j] = row;
    part->turn[j] = (uint8_t)turn;
}

/* how many rows of a block the program of normals has; -1: none of its business */
TB_STATIC int32_t rows_of_normals(const tb_block *block)
{
    switch (block->law) {
    case TB_LAW_UNILATERAL:
    case TB_LAW_PLANAR:
    case TB_LAW_COULOMB:
    case TB_LAW_BOX: return 1;
    case TB_LAW_BILATERAL: return block->rows;
    default: return -1;
    }
}

TB_EXTERN tb_status tb_staggered_normals(const tb_problem *problem, tb_arena *arena,
                                         tb_staggered_program *part)
{
    int32_t n = 0;
    TB_ROLLED
    for (int32_t k = 0; k < problem->number_of_blocks; k++) {
        const int32_t rows = rows_of_normals(&problem->blocks[k]);
        if (rows < 0) return TB_UNSUPPORTED;
        n += rows;
    }
    const tb_status status = take_part(part, n, arena);
    if (status != TB_OK) return status;
    TB_ROLLED
    for (int32_t k = 0, j = 0; k < problem->number_of_blocks && TB_LEADER; k++) {
        const tb_block *block = &problem->blocks[k];
        TB_ROLLED
        for (int32_t r = 0; r < rows_of_normals(block); r++, j++) {
            put_variable(part, j, k, block->row + r, TB_TURN_NONE);
            part->program.lower[j] = block->law == TB_LAW_BOX         ? block->lower
                                     : block->law == TB_LAW_BILATERAL ? -TB_R(INFINITY)
                                                                      : 0;
            part->program.upper[j] = block->law == TB_LAW_BOX ? block->upper : TB_R(INFINITY);
        }
    }
    tb_team_sync();
    return TB_OK;
}

TB_FN bool has_friction(const tb_block *block)
{
    return (block->law == TB_LAW_COULOMB || block->law == TB_LAW_PLANAR) && block->mu > 0;
}

TB_EXTERN tb_status tb_staggered_friction(const tb_problem *problem, tb_arena *arena,
                                          tb_staggered_program *part)
{
    int32_t n = 0;
    TB_ROLLED
    for (int32_t k = 0; k < problem->number_of_blocks; k++)
        if (has_friction(&problem->blocks[k])) n += problem->blocks[k].rows - 1;
    const tb_status status = take_part(part, n, arena);
    if (status != TB_OK) return status;
    TB_ROLLED
    for (int32_t k = 0, j = 0; k < problem->number_of_blocks && TB_LEADER; k++) {
        const tb_block *block = &problem->blocks[k];
        if (!has_friction(block)) continue;
        const bool planar = block->law == TB_LAW_PLANAR;
        put_variable(part, j++, k, block->row + 1, planar ? TB_TURN_NONE : TB_TURN_SUM);
        if (!planar) put_variable(part, j++, k, block->row + 2, TB_TURN_DIFFERENCE);
    }
    tb_team_sync();
    return TB_OK;
}

/* Row of the first of the impulses that a variable is made of. */
TB_FN int32_t first_row(const tb_staggered_program *part, int32_t j)
{
    return part->row[j] - (part->turn[j] == TB_TURN_DIFFERENCE);
}

/* x1 + x2 and x1 - x2; half of that for forces, so that impulse times velocity keeps its value */
TB_EXTERN void tb_staggered_gather(const tb_staggered_program *part, const tb_real *rows,
                                   bool forces, tb_real *variables)
{
    TB_EACH (j, part->n) {
        const tb_real *own = rows + first_row(part, j);
        const tb_real factor = forces ? TB_R(0.5) : 1;
        variables[j] = part->turn[j] == TB_TURN_NONE  ? own[0]
                       : part->turn[j] == TB_TURN_SUM ? factor * (own[0] + own[1])
                                                      : factor * (own[0] - own[1]);
    }
    tb_team_sync();
}

TB_EXTERN void tb_staggered_scatter(const tb_staggered_program *part, const tb_real *variables,
                                    tb_real *rows)
{
    TB_EACH (j, part->n)
        rows[part->row[j]] = part->turn[j] == TB_TURN_NONE  ? variables[j]
                             : part->turn[j] == TB_TURN_SUM ? (variables[j] + variables[j + 1]) / 2
                                                            : (variables[j - 1] - variables[j]) / 2;
    tb_team_sync();
}

/* ---- H ---- */

/* G of two rows, made symmetric: files have others */
TB_FN tb_real mean_coupling(const tb_real *g, int64_t rows, int64_t i, int64_t j)
{
    return (g[i * rows + j] + g[j * rows + i]) / 2;
}

/* t_i' G t_j, with t the columns of T in x = T u */
TB_CALLED tb_real coupling(const tb_staggered_program *part, const tb_real *g, int64_t rows,
                           int32_t i, int32_t j)
{
    const int32_t first = first_row(part, i), other = first_row(part, j);
    const bool one = part->turn[i] == TB_TURN_NONE, single = part->turn[j] == TB_TURN_NONE;
    const tb_real sign_i = part->turn[i] == TB_TURN_DIFFERENCE ? TB_R(-1) : TB_R(1);
    const tb_real sign_j = part->turn[j] == TB_TURN_DIFFERENCE ? TB_R(-1) : TB_R(1);
    tb_real sum = mean_coupling(g, rows, first, other);
    if (!single) sum += sign_j * mean_coupling(g, rows, first, other + 1);
    if (!one) {
        tb_real second = mean_coupling(g, rows, first + 1, other);
        if (!single) second += sign_j * mean_coupling(g, rows, first + 1, other + 1);
        sum += sign_i * second;
    }
    return sum * (one ? 1 : TB_R(0.5)) * (single ? 1 : TB_R(0.5));
}

TB_EXTERN void tb_staggered_fill(tb_staggered_program *part, const tb_problem *problem,
                                 const tb_real *g)
{
    const int64_t n = part->n, rows = problem->number_of_rows;
    tb_real *h = part->program.h;
    double trace = 0;
    TB_EACH (j, part->n) part->diagonal[j] = coupling(part, g, rows, j, j);
    tb_team_sync();
    for (int64_t j = 0; j < n; j++) trace += fabs((double)part->diagonal[j]);
    part->shift = TB_R(STAGGERED_SHIFT * (trace > 0 ? trace / (double)n : 1));
    tb_team_sync();
    TB_EACH (j, part->n) part->diagonal[j] += part->shift;
    tb_team_sync();
#ifndef TB_DEVICE
    if (part->large) {
        tb_real *band = tb_staggered_large_hessian(part->large);
        for (int32_t j = 0; j < part->n; j++)
            for (int32_t i = j; i < part->n; i++)
                band[i - j + j * n] = i == j ? part->diagonal[j] : coupling(part, g, rows, i, j);
        return;
    }
#endif
    TB_EACH (j, part->n) {
        TB_ROLLED
        for (int32_t i = 0; i < j; i++) {
            const tb_real number = coupling(part, g, rows, j, i);
            h[i * n + j] = number;
            h[j * n + i] = number;
        }
        h[j * n + j] = part->diagonal[j];
    }
    tb_team_sync();
}

/* ---- solving ---- */

TB_EXTERN tb_status tb_staggered_begin(tb_staggered_program *part, tb_arena *arena)
{
#ifndef TB_DEVICE
    if (part->large) return tb_staggered_large_begin(part, arena);
#endif
    return part->n > 0 ? tb_bounded_begin(&part->program, arena) : TB_OK;
}

TB_EXTERN tb_status tb_staggered_solve(tb_staggered_program *part, const tb_solve_options *options,
                                       tb_bounded_result *result)
{
#ifndef TB_DEVICE
    if (part->large) return tb_staggered_large_solve(part, options, result);
#endif
    return tb_bounded_solve(&part->program, options, result);
}
