/* Taking a contact problem apart into its islands, and putting their solutions together.
 *
 * A world of many bodies is seldom one problem: fallen dominoes, humanoids on a floor and stacks
 * beside each other touch in groups. Solved as one, every sweep and every factorization serves all
 * groups until the hardest one has converged. In the factorized form G = Y' Y two blocks are
 * coupled exactly if their rows of Y share a dof, so that a union of dofs by blocks finds the
 * groups.
 *
 * The tolerance of the whole problem is relative to the norm of its c. An island is judged against
 * the mean of the square of its own c and of its share, by rows, of the square of the whole: these
 * add up to the square of the whole, so that the whole reaches the tolerance where every island
 * does, and an island whose c is tiny is not asked for more digits than the others leave. */
#include "solve/islands.h"

#include "base/team.h"

#include <string.h>

/* Worlds of fewer dofs cost little more as a whole, and have few islands. */
enum { LEAST_DOFS_APART = TB_DENSE_DOFS };

TB_STATIC int32_t root_of_dof(int32_t *parent, int32_t i)
{
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
}

/* The root of the first dof of a block; -1 if it has none. */
TB_STATIC int32_t root_of_block(const tb_problem *problem, const tb_block *block, int32_t *parent)
{
    return block->width > 0 ? root_of_dof(parent, tb_block_dof(problem, block, 0)) : -1;
}

/* Joins all dofs of each block. A smaller index is the root, so that islands are numbered by their
 * first dof. */
TB_STATIC void join_dofs(const tb_problem *problem, int32_t *parent)
{
    for (int32_t i = 0; i < problem->number_of_dofs; i++) parent[i] = i;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        const int32_t first = root_of_block(problem, block, parent);
        for (int32_t k = 0; k < block->segments; k++) {
            const tb_segment run = problem->segments[block->segment + k];
            for (int32_t dof = run.dof; dof < run.dof + run.count; dof++) {
                const int32_t one = root_of_dof(parent, first), other = root_of_dof(parent, dof);
                if (one < other)
                    parent[other] = one;
                else
                    parent[one] = other;
            }
        }
    }
}

/* Numbers the islands in the order of their first blocks, and counts their blocks and dofs. Blocks
 * without a dof belong to the first island. number: dofs, of a root's island; of: blocks. Returns
 * the number of islands. */
TB_STATIC int32_t count_islands(const tb_problem *problem, int32_t *parent, int32_t *number,
                                int32_t *of, tb_island *islands)
{
    int32_t count = 0;
    for (int32_t i = 0; i < problem->number_of_dofs; i++) number[i] = -1;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        const int32_t root = root_of_block(problem, block, parent);
        if (root >= 0 && number[root] < 0) {
            memset(&islands[count], 0, sizeof islands[count]);
            number[root] = count++;
        }
        of[b] = root < 0 ? 0 : number[root];
    }
    for (int32_t b = 0; b < problem->number_of_blocks && count > 0; b++) {
        islands[of[b]].blocks++;
        islands[of[b]].rows += problem->blocks[b].rows;
        islands[of[b]].segments += problem->blocks[b].segments;
    }
    for (int32_t i = 0, first = 0, row = 0, segment = 0; i < count; i++) {
        islands[i].first = first;
        islands[i].row = row;
        islands[i].segment = segment;
        first += islands[i].blocks;
        row += islands[i].rows;
        segment += islands[i].segments;
    }
    return count;
}

/* Blocks in the order of the islands, with rows, segments and dofs counted from each island's
 * first. Contacts of a pair share their runs, here as there. own_dof: dofs, within the island. */
TB_STATIC void sort_blocks(tb_islands *s, const int32_t *of, const int32_t *own_dof)
{
    const tb_problem *problem = s->problem;
    for (int32_t i = 0; i < s->number; i++) {
        tb_island *own = &s->islands[i];
        own->blocks = own->rows = own->segments = 0;
    }
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *from = &problem->blocks[b];
        tb_island *own = &s->islands[of[b]];
        const int32_t at = own->first + own->blocks;
        const tb_block *last = own->blocks > 0 ? &problem->blocks[s->order[at - 1]] : NULL;
        tb_block *to = &s->blocks[at];
        *to = *from;
        to->row = own->rows;
        if (last && last->segment == from->segment && last->segments == from->segments) {
            to->segment = s->blocks[at - 1].segment;
        } else {
            to->segment = own->segments;
            for (int32_t k = 0; k < from->segments; k++) {
                const tb_segment run = problem->segments[from->segment + k];
                tb_segment *copy = &s->segments[own->segment + own->segments++];
                copy->dof = run.count > 0 ? own_dof[run.dof] : 0;
                copy->count = run.count;
            }
        }
        s->order[at] = b;
        own->blocks++;
        own->rows += from->rows;
    }
}

/* Numbers of the rows and of the start, in the order of the islands. */
TB_STATIC void sort_numbers(tb_islands *s, const tb_warm_start *warm)
{
    const tb_problem *problem = s->problem;
    TB_EACH (i, s->number) {
        const tb_island *own = &s->islands[i];
        for (int32_t k = own->first; k < own->first + own->blocks; k++) {
            const tb_block *from = &problem->blocks[s->order[k]];
            const int32_t row = own->row + s->blocks[k].row;
            for (int32_t r = 0; r < from->rows; r++) {
                s->c[row + r] = problem->c[from->row + r];
                if (s->compliance) s->compliance[row + r] = problem->compliance[from->row + r];
                if (s->warm) s->warm[row + r] = warm->lambda[from->row + r];
                if (s->fine) s->fine[row + r] = warm->fine[from->row + r];
            }
            if (s->known) s->known[k] = warm->statuses[s->order[k]];
            if (s->speeds) s->speeds[k] = warm->speeds[s->order[k]];
        }
    }
    tb_team_sync();
}

TB_STATIC tb_status take_island_arrays(tb_islands *s, const tb_warm_start *warm, bool warms,
                                       int32_t segments, const tb_solution *solution)
{
    const int32_t blocks = s->problem->number_of_blocks, rows = s->problem->number_of_rows;
    tb_arena *arena = warm->scratch;
    tb_real **arrays[] = {&s->c,    &s->lambda, &s->xi,         &s->compliance,
                          &s->warm, &s->fine,   &s->lambda_fine};
    const bool wanted[] = {true,
                           true,
                           true,
                           s->problem->compliance != NULL,
                           warms && warm->lambda,
                           warms && warm->lambda && warm->fine,
                           solution->fine != NULL};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        *arrays[i] = wanted[i] ? TB_ARENA_ARRAY(arena, tb_real, rows) : NULL;
        if (wanted[i] && !*arrays[i]) return TB_RESOURCE_EXHAUSTED;
    }
    s->order = TB_ARENA_ARRAY(arena, int32_t, blocks);
    s->blocks = TB_ARENA_ARRAY(arena, tb_block, blocks);
    s->segments = TB_ARENA_ARRAY(arena, tb_segment, segments);
    s->statuses = TB_ARENA_ARRAY(arena, uint8_t, blocks);
    if (!s->order || !s->blocks || !s->segments || !s->statuses) return TB_RESOURCE_EXHAUSTED;
    if (warms && warm->statuses) {
        s->known = TB_ARENA_ARRAY(arena, uint8_t, blocks);
        if (!s->known) return TB_RESOURCE_EXHAUSTED;
    }
    if (warms && warm->speeds) {
        s->speeds = TB_ARENA_ARRAY(arena, tb_real, blocks);
        if (!s->speeds) return TB_RESOURCE_EXHAUSTED;
    }
    return TB_OK;
}

/* Numbers the dofs of each island from 0 on, in their order. own_dof: dofs. */
TB_STATIC void number_dofs(tb_islands *s, int32_t *parent, const int32_t *number, int32_t *own_dof)
{
    for (int32_t i = 0; i < s->problem->number_of_dofs; i++) {
        const int32_t island = number[root_of_dof(parent, i)];
        own_dof[i] = island >= 0 ? s->islands[island].dofs++ : -1;
    }
}

TB_EXTERN tb_status tb_islands_find(const tb_problem *problem, const tb_solve_options *options,
                                    const tb_warm_start *warm, const tb_solution *solution,
                                    tb_islands *islands)
{
    tb_islands *s = islands;
    memset(s, 0, sizeof *s);
    s->problem = problem;
    const int32_t dofs = problem->number_of_dofs, blocks = problem->number_of_blocks;
    if (!problem->values || dofs <= LEAST_DOFS_APART || blocks < 2) return TB_OK;
    tb_arena *arena = warm->scratch;
    int32_t *parent = TB_ARENA_ARRAY(arena, int32_t, dofs);
    int32_t *number = TB_ARENA_ARRAY(arena, int32_t, dofs);
    int32_t *own_dof = TB_ARENA_ARRAY(arena, int32_t, dofs);
    int32_t *of = TB_ARENA_ARRAY(arena, int32_t, blocks);
    s->islands = TB_ARENA_ARRAY(arena, tb_island, blocks < dofs ? blocks : dofs);
    if (!parent || !number || !own_dof || !of || !s->islands) return TB_RESOURCE_EXHAUSTED;
    int32_t found[2] = {0, 0}; /* islands, segments */
    if (TB_LEADER) {
        join_dofs(problem, parent);
        found[0] = count_islands(problem, parent, number, of, s->islands);
        for (int32_t i = 0; i < found[0]; i++) found[1] += s->islands[i].segments;
    }
    tb_team_share(found, sizeof found);
    if (found[0] < 2) return TB_OK;

    s->c_squared = tb_problem_c_squared(problem);
    tb_problem bare = *problem;
    bare.c_squared = 0;
    s->own_squares = tb_problem_c_squared(&bare);
    const tb_status status = take_island_arrays(s, warm, options->warm_start, found[1], solution);
    if (status != TB_OK) return status;
    s->number = found[0];
    if (TB_LEADER) {
        number_dofs(s, parent, number, own_dof);
        sort_blocks(s, of, own_dof);
    }
    tb_team_sync();
    sort_numbers(s, warm);
    return TB_OK;
}

TB_EXTERN void tb_islands_open(const tb_islands *s, int32_t i, tb_problem *problem,
                               tb_warm_start *warm, tb_solution *solution)
{
    const tb_island *own = &s->islands[i];
    memset(problem, 0, sizeof *problem);
    problem->number_of_blocks = own->blocks;
    problem->number_of_rows = own->rows;
    problem->number_of_dofs = own->dofs;
    problem->blocks = s->blocks + own->first;
    problem->segments = s->segments + own->segment;
    problem->values = s->problem->values;
    problem->c = s->c + own->row;
    problem->compliance = s->compliance ? s->compliance + own->row : NULL;
    const double of_rows = (double)own->rows / s->problem->number_of_rows;
    const double of_c =
        s->own_squares > 0 ? tb_problem_c_squared(problem) / s->own_squares : of_rows;
    problem->c_squared = s->c_squared * (of_c + of_rows) / 2;

    warm->lambda = s->warm ? s->warm + own->row : NULL;
    warm->fine = s->fine ? s->fine + own->row : NULL;
    warm->statuses = s->known ? s->known + own->first : NULL;
    warm->speeds = s->speeds ? s->speeds + own->first : NULL;
    warm->factor = NULL;
    warm->last_factor = NULL;
    warm->apart = true;

    memset(solution, 0, sizeof *solution);
    solution->lambda = s->lambda + own->row;
    solution->fine = s->lambda_fine ? s->lambda_fine + own->row : NULL;
    solution->xi = s->xi + own->row;
    solution->statuses = s->statuses + own->first;
}

TB_EXTERN void tb_islands_begin(tb_solution *solution)
{
    solution->iterations = solution->halvings = solution->first_check = 0;
    solution->first_residual = 0;
    memset(&solution->work, 0, sizeof solution->work);
    solution->at_rounding = solution->has_fine = false;
    solution->status = TB_OK;
}

TB_EXTERN void tb_islands_close(const tb_islands *s, int32_t i, const tb_solution *part,
                                tb_solution *solution)
{
    const tb_island *own = &s->islands[i];
    const tb_problem *problem = s->problem;
    tb_team_sync();
    TB_EACH (k, own->blocks) {
        const int32_t b = s->order[own->first + k];
        const tb_block *to = &problem->blocks[b];
        const int32_t row = s->blocks[own->first + k].row;
        for (int32_t r = 0; r < to->rows; r++) {
            solution->lambda[to->row + r] = part->lambda[row + r];
            if (solution->fine)
                solution->fine[to->row + r] = part->has_fine ? part->fine[row + r] : 0;
        }
        solution->statuses[b] = part->statuses[k];
    }
    tb_team_sync();
    if (part->iterations >= solution->iterations) tb_solution_sign(solution, part->solver);
    if (part->iterations > solution->iterations) solution->iterations = part->iterations;
    if (part->work.linear_solves > solution->work.linear_solves)
        solution->work.linear_solves = part->work.linear_solves;
    if (part->work.factorizations > solution->work.factorizations)
        solution->work.factorizations = part->work.factorizations;
    if (part->work.resets > solution->work.resets) solution->work.resets = part->work.resets;
    solution->halvings += part->halvings;
    solution->has_fine = solution->has_fine || part->has_fine;
    if (part->status == TB_OK || solution->status == TB_DIVERGED) return;
    solution->status = part->status;
    solution->at_rounding = part->at_rounding;
}
