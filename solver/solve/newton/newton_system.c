/* Patterns, assembly and solution of Newton's linear system, in both forms. */
#include "solve/newton/newton_system.h"

#include "base/team.h"
#include "solve/sweep/rows.h"

#include <string.h>

TB_EXTERN tb_status tb_newton_system_prepare(tb_newton_system *system, const tb_problem *problem,
                                             tb_arena *arena)
{
    memset(system, 0, sizeof *system);
    system->problem = problem;
    system->arena = arena;
    const int32_t rows = problem->number_of_rows, dofs = problem->number_of_dofs;
    system->inside = TB_ARENA_ZEROED(arena, uint8_t, problem->number_of_blocks);
    system->arena_x = TB_ARENA_ARRAY(arena, tb_real, problem->values ? dofs : rows);
    system->work = TB_ARENA_ARRAY(arena, tb_real, rows);
    if (!system->inside || !system->arena_x || !system->work) return TB_RESOURCE_EXHAUSTED;
    if (problem->values) {
        system->node = TB_ARENA_ARRAY(arena, int32_t, dofs);
        system->node_row = TB_ARENA_ARRAY(arena, int32_t, dofs);
        system->ds = TB_ARENA_ARRAY(arena, tb_real, dofs);
        int32_t widest = 0;
        TB_ROLLED
        for (int32_t b = 0; b < problem->number_of_blocks; b++)
            if (problem->blocks[b].width > widest) widest = problem->blocks[b].width;
        system->widest = widest;
        system->reduced = TB_ARENA_ARRAY(arena, tb_real, TB_BLOCK_ROWS * (int64_t)rows);
        system->square = TB_ARENA_ZEROED(arena, tb_real, (size_t)widest * (size_t)widest);
        system->last_dof = TB_ARENA_ARRAY(arena, int32_t, problem->number_of_blocks);
        system->alike_before = TB_ARENA_ARRAY(arena, int32_t, problem->number_of_blocks);
        system->alike_after = TB_ARENA_ARRAY(arena, int32_t, problem->number_of_blocks);
        if (!system->node || !system->node_row || !system->ds || !system->reduced ||
            !system->square || !system->last_dof || !system->alike_before || !system->alike_after)
            return TB_RESOURCE_EXHAUSTED;
#ifndef TB_DEVICE
        if (tb_newton_full_dofs(dofs)) {
            system->full = TB_ARENA_ARRAY(arena, tb_real, (size_t)dofs * (size_t)dofs);
            if (!system->full) return TB_RESOURCE_EXHAUSTED;
        }
#endif
        return tb_newton_update_prepare(system);
    } else {
        system->node = TB_ARENA_ARRAY(arena, int32_t, problem->number_of_blocks);
        system->row_block = TB_ARENA_ARRAY(arena, int32_t, rows);
        if (!system->node || !system->row_block) return TB_RESOURCE_EXHAUSTED;
        TB_EACH (b, problem->number_of_blocks)
            for (int32_t i = 0; i < problem->blocks[b].rows; i++)
                system->row_block[problem->blocks[b].row + i] = b;
        tb_team_sync();
    }
    return TB_OK;
}

/* ---- given form: a node is a block ---- */

/* the entries of a row of G, one after the other; false past the last */
TB_CALLED bool next_entry(const tb_matrix *matrix, int32_t row, int32_t *at, int32_t *column,
                          tb_real *value)
{
    if (matrix->dense) {
        if (*at >= matrix->columns) return false;
        *column = *at;
        *value = matrix->dense[(int64_t)row * matrix->columns + *at];
    } else {
        const int32_t k = matrix->row_start[row] + *at;
        if (k >= matrix->row_start[row + 1]) return false;
        *column = matrix->column[k];
        *value = matrix->value[k];
    }
    (*at)++;
    return true;
}

/* Couplings of the blocks inside, both ways where only one is there. Called twice: to count, and to
 * list. */
TB_STATIC void count_or_list_given(const tb_newton_system *system, int32_t *start,
                                   int32_t *neighbour)
{
    const tb_problem *problem = system->problem;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        if (system->node[b] < 0) continue;
        const tb_block *block = &problem->blocks[b];
        for (int32_t i = 0; i < block->rows; i++) {
            int32_t at = 0, column = 0, last = -1;
            tb_real value = 0;
            while (next_entry(problem->matrix, block->row + i, &at, &column, &value)) {
                const int32_t other = system->row_block[column];
                if (value == 0 || other == last || other == b || system->node[other] < 0) continue;
                last = other;
                const int32_t from = system->node[b], to = system->node[other];
                if (neighbour) {
                    neighbour[start[from]++] = to;
                    neighbour[start[to]++] = from;
                } else {
                    start[from + 1]++;
                    start[to + 1]++;
                }
            }
        }
    }
}

TB_STATIC int32_t number_given(tb_newton_system *system, int32_t *size)
{
    int32_t nodes = 0;
    TB_ROLLED
    for (int32_t b = 0; b < system->problem->number_of_blocks; b++) {
        system->node[b] = -1;
        if (!system->inside[b]) continue;
        size[nodes] = system->problem->blocks[b].rows;
        system->node[b] = nodes++;
    }
    return nodes;
}

/* rows of a block: weight on the diagonal and slope times its rows of G */
TB_STATIC void assemble_given(tb_newton_system *system, int32_t b, tb_real weight,
                              const tb_real *slope)
{
    const tb_problem *problem = system->problem;
    const tb_block *block = &problem->blocks[b];
    const tb_block_lu *lu = &system->lu;
    const int32_t n = block->rows, own = system->node[b], group = lu->group[own];
    tb_real *to = NULL;
    int32_t stride = 0, shift = 0;
    for (int32_t k = 0; k < n; k++) {
        const int32_t row = block->row + k;
        int32_t at = 0, column = 0, last = -1;
        tb_real value = 0;
        while (next_entry(problem->matrix, row, &at, &column, &value)) {
            const int32_t other = system->row_block[column];
            if (value == 0 || system->node[other] < 0) continue;
            if (other != last) {
                const int32_t node = system->node[other], column_group = lu->group[node];
                stride = lu->size[column_group];
                to = tb_block_lu_block(lu, group, column_group) +
                     (int64_t)lu->offset[own] * stride + lu->offset[node];
                shift = problem->blocks[other].row;
                last = other;
            }
            TB_ROLLED
            for (int32_t i = 0; i < n; i++)
                to[(int64_t)i * stride + column - shift] += slope[i * n + k] * value;
        }
    }
    stride = lu->size[group];
    to = tb_block_lu_block(lu, group, group) + (int64_t)lu->offset[own] * (stride + 1);
    for (int32_t i = 0; i < n; i++) {
        to[(int64_t)i * (stride + 1)] += weight;
        if (!problem->compliance) continue;
        TB_ROLLED
        for (int32_t k = 0; k < n; k++)
            to[(int64_t)i * stride + k] += slope[i * n + k] * problem->compliance[block->row + k];
    }
}

TB_STATIC void solve_given(tb_newton_system *system, const tb_real *weight, const tb_real *slope,
                           const tb_real *prox_gap, tb_real *dlambda, bool *solved)
{
    const tb_problem *problem = system->problem;
    tb_block_lu *lu = &system->lu;

    /* blocks outside move by their prox gap, which the others see; it is mostly zero: an open
     * contact bears no load */
    bool outside_rests = true;
    tb_block_lu_clear(lu);
    TB_EACH (b, problem->number_of_blocks)
        for (int32_t i = 0; i < problem->blocks[b].rows; i++) {
            const int32_t row = problem->blocks[b].row + i;
            dlambda[row] = system->inside[b] ? 0 : prox_gap[row];
            outside_rests = outside_rests && dlambda[row] == 0;
        }
    tb_team_sync();
    const bool outside_moves = !tb_team_all(outside_rests);
    TB_EACH (b, problem->number_of_blocks) {
        const tb_block *block = &problem->blocks[b];
        if (!system->inside[b]) continue;
        const int32_t n = block->rows;
        const tb_real *d = slope + TB_BLOCK_ROWS * (int64_t)block->row;
        for (int32_t i = 0; i < n; i++) {
            int32_t at = 0, column = 0;
            tb_real value = 0, sum = 0;
            while (outside_moves &&
                   next_entry(problem->matrix, block->row + i, &at, &column, &value))
                sum += value * dlambda[column];
            system->work[block->row + i] = sum;
        }
        assemble_given(system, b, weight[b], d);
        tb_real *x =
            system->x + lu->first[lu->group[system->node[b]]] + lu->offset[system->node[b]];
        for (int32_t i = 0; i < n; i++) {
            x[i] = weight[b] * prox_gap[block->row + i];
            TB_ROLLED
            for (int32_t k = 0; k < n; k++) x[i] -= d[i * n + k] * system->work[block->row + k];
        }
    }
    tb_team_sync();
    *solved = tb_block_lu_factor(lu);
    system->factorizations++;
    if (!*solved) return;
    tb_block_lu_solve(lu, system->x);
    TB_EACH (b, problem->number_of_blocks) {
        if (!system->inside[b]) continue;
        const tb_real *x =
            system->x + lu->first[lu->group[system->node[b]]] + lu->offset[system->node[b]];
        for (int32_t i = 0; i < problem->blocks[b].rows; i++)
            dlambda[problem->blocks[b].row + i] = x[i];
    }
    tb_team_sync();
}

/* ---- both ---- */

/* The next part is short and sequential: the leader runs it. */

/* Couplings of nodes, counted in start[node + 1], or listed from start[node] on: afterwards start
 * is one ahead. */
TB_CALLED void count_or_list(const tb_newton_system *system, int32_t nodes, int32_t *start,
                             int32_t *neighbour)
{
    if (TB_LEADER) {
        if (system->problem->values)
            tb_newton_list_dofs(system, start + 1, neighbour);
        else
            count_or_list_given(system, start + 1, neighbour);
        TB_ROLLED
        for (int32_t i = 1; !neighbour && i <= nodes; i++) start[i + 1] += start[i];
    }
    tb_team_sync();
}

/* Few dofs; or more of them, if blocks reach over a large part of these, so that an ordering saves
 * little: trees with long chains, not piles of bodies. The last dof comes first: elimination from
 * the leaves of trees causes no fill. */
TB_STATIC bool is_one_node(const tb_newton_system *system)
{
    const int32_t dofs = system->problem->number_of_dofs;
    if (!system->problem->values || dofs < 1 || dofs > TB_DENSE_DOFS) return false;
    return dofs <= TB_CACHED_FACTOR_DOFS || 4 * system->widest >= dofs;
}

/* For a pattern that has just been made. */
TB_STATIC tb_status fit_pattern(tb_newton_system *system)
{
    system->x = tb_block_lu_single_node(&system->lu);
    if (!system->x) system->x = system->arena_x;
    return system->problem->values ? tb_newton_update_fit(system) : TB_OK;
}

TB_STATIC tb_status make_one_node(tb_newton_system *system)
{
    const int32_t dofs = system->problem->number_of_dofs;
    system->pattern_mark = tb_arena_get_mark(system->arena);
    system->has_pattern = true;
    TB_EACH (k, dofs) {
        system->node[k] = 0;
        system->node_row[k] = dofs - 1 - k;
    }
    system->one_node = true;
    const tb_status status = tb_block_lu_dense(&system->lu, dofs, system->arena);

    /* a dof is eliminated from the rows that couple with it, and from all of their length */
    const double sparse = 0.5 * (double)dofs * dofs * system->widest;
    if (sparse < system->lu.operations) system->lu.operations = sparse;
    return status == TB_OK ? fit_pattern(system) : status;
}

/* Nodes and graph of the blocks that are not open, ordered; `keeps`: with the blocks of the pattern before,
 * so that contacts that open and close by turns ask for one order only. */
TB_CALLED tb_status make_pattern(tb_newton_system *system, const uint8_t *statuses, bool keeps)
{
    const tb_problem *problem = system->problem;
    tb_arena *arena = system->arena;
    if (is_one_node(system)) {
        tb_team_sync();
        TB_EACH (b, problem->number_of_blocks) system->inside[b] = statuses[b] != TB_CONTACT_OPEN;
        tb_team_sync();
        return system->has_pattern ? TB_OK : make_one_node(system);
    }
    const bool grows = keeps && system->has_pattern;
    if (system->has_pattern)
        tb_arena_return_to(arena, system->pattern_mark);
    else
        system->pattern_mark = tb_arena_get_mark(arena);
    system->has_pattern = true;
    tb_team_sync();
    TB_EACH (b, problem->number_of_blocks)
        system->inside[b] = (grows && system->inside[b]) || statuses[b] != TB_CONTACT_OPEN;
    tb_team_sync();

    const int32_t most = problem->values ? problem->number_of_dofs : problem->number_of_blocks;
    int32_t *size = TB_ARENA_ARRAY(arena, int32_t, most);
    if (!size) return TB_RESOURCE_EXHAUSTED;
    int32_t nodes = 0;
    if (TB_LEADER)
        nodes = problem->values ? tb_newton_number_dofs(system, size) : number_given(system, size);
    tb_team_share(&nodes, sizeof nodes);
    int32_t *start = TB_ARENA_ZEROED(arena, int32_t, (size_t)nodes + 2);
    if (!start) return TB_RESOURCE_EXHAUSTED;

    count_or_list(system, nodes, start, NULL);
    int32_t *neighbour = TB_ARENA_ARRAY(arena, int32_t, start[nodes + 1]);
    if (!neighbour) return TB_RESOURCE_EXHAUSTED;
    tb_team_sync(); /* how many has been read */
    count_or_list(system, nodes, start, neighbour);
    const tb_node_graph graph = {
        .nodes = nodes, .size = size, .start = start, .neighbour = neighbour};
    const tb_status status = tb_block_lu_analyse(&system->lu, &graph, arena);
    return status == TB_OK ? fit_pattern(system) : status;
}

TB_EXTERN tb_status tb_newton_system_price(tb_newton_system *system, const uint8_t *statuses,
                                           tb_newton_price *price)
{
    const tb_problem *problem = system->problem;
    const tb_status status = statuses ? make_pattern(system, statuses, false) : TB_OK;
    if (status != TB_OK) return status;
    double assembly = 0;
    price->sweep = 1;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        double numbers = (double)block->rows * block->width;
        if (problem->values) {
            price->sweep += 2 * numbers;
            if (system->inside[b]) assembly += numbers * block->width;
        } else {
            const tb_matrix *matrix = problem->matrix;
            numbers = matrix->dense ? (double)block->rows * matrix->columns
                                    : matrix->row_start[block->row + block->rows] -
                                          matrix->row_start[block->row];
            price->sweep += numbers;
            if (system->inside[b]) assembly += 3 * numbers;
        }
    }
    price->step = system->lu.operations / 2 + assembly + 5 * price->sweep;
    price->sets_step = system->lu.operations / 2 + assembly / 2 + 1.5 * price->sweep;
    return TB_OK;
}

/* A pattern that has all blocks of which some status is not open. */
TB_STATIC tb_status cover_pattern(tb_newton_system *system, const uint8_t *statuses)
{
    bool covered = system->has_pattern && !is_one_node(system);
    TB_ROLLED
    for (int32_t b = 0; covered && b < system->problem->number_of_blocks; b++)
        covered = system->inside[b] || statuses[b] == TB_CONTACT_OPEN;
    return covered ? TB_OK : make_pattern(system, statuses, true);
}

TB_STATIC tb_status solve_factorized(tb_newton_system *system, const tb_real *weight,
                                     const tb_real *slope, const tb_real *prox_gap,
                                     const uint8_t *statuses, tb_real *dlambda, bool *solved)
{
    *solved = false;
    if (!tb_newton_reduce(system, weight, slope, prox_gap, statuses, dlambda)) return TB_OK;
    *solved = tb_newton_update_solve(system) || tb_newton_cached_factor_solve(system);
    if (!*solved) {
        tb_status status = cover_pattern(system, statuses);
#ifndef TB_DEVICE
        if (status == TB_OK && system->one_node && !system->groups)
            status = tb_newton_group_rows(system);
#endif
        if (status != TB_OK) return status;
        *solved = tb_newton_factor_dofs(system);
        if (*solved) {
            tb_newton_update_begin(system);
            tb_newton_cache_factor(system);
        }
    }
    if (*solved) tb_newton_expand(system, statuses, dlambda);
    return TB_OK;
}

TB_EXTERN tb_status tb_newton_system_solve(tb_newton_system *system, const tb_real *weight,
                                           const tb_real *slope, const tb_real *prox_gap,
                                           const uint8_t *statuses, tb_real *dlambda, bool *solved)
{
    const tb_problem *problem = system->problem;
    tb_status status = TB_OK;
    if (problem->values) {
        status = solve_factorized(system, weight, slope, prox_gap, statuses, dlambda, solved);
    } else {
        status = cover_pattern(system, statuses);
        if (status == TB_OK) solve_given(system, weight, slope, prox_gap, dlambda, solved);
    }
    if (status != TB_OK) return status;
    *solved = *solved && tb_team_all_finite(dlambda, problem->number_of_rows);
    system->solves++;
    return TB_OK;
}

TB_EXTERN void tb_newton_system_move(const tb_newton_system *system, const tb_real *dlambda,
                                     tb_real *dxi)
{
    const tb_problem *problem = system->problem;
    TB_EACH (b, problem->number_of_blocks) {
        const tb_block *block = &problem->blocks[b];
        if (problem->values) {
            for (int32_t i = block->row; i < block->row + block->rows; i++)
                dxi[i] = system->work[i];
        } else {
            for (int32_t i = 0; i < block->rows; i++) {
                int32_t at = 0, column = 0;
                tb_real value = 0, sum = 0;
                while (next_entry(problem->matrix, block->row + i, &at, &column, &value))
                    sum += value * dlambda[column];
                dxi[block->row + i] = sum;
            }
        }
        for (int32_t i = 0; problem->compliance && i < block->rows; i++)
            dxi[block->row + i] += problem->compliance[block->row + i] * dlambda[block->row + i];
    }
    tb_team_sync();
}
