/* Newton's system solved by the factor of an earlier step of the same solve.
 *
 * From one step to the next few blocks change their term in A = 1 + Y D' Y' (newton_system.h): a
 * contact opens, another begins to slip, a slip turns. With C the blocks whose D' differs from the
 * factored one,
 *
 *     A = A0 + Y_C dD Y_C',     Z = inverse(A0) Y_C,
 *     inverse(A) b = y - Z inverse(1 + dD Y_C' Z) dD Y_C' y,      y = inverse(A0) b
 *
 * (Woodbury; Hager, SIAM Review 31, 1989), the Schur complement of the system bordered by the
 * changes, as in SCHURPA (Litven 3.5). Columns of Z stay from step to step until the matrix is
 * factored anew, when an update would cost more. A contact that opens subtracts 1 / w from a sum
 * and loses digits: the answer is refined against the present matrix, and if that does not
 * contract, the matrix is factored. Added blocks need no new pattern; dofs outside of the pattern's
 * nodes are unit rows of A0.
 *
 * A slip that turns changes its block in every step, and a new round changes the weights w of all
 * blocks: among slipping contacts an update seldom pays. Neither does GMRES preconditioned by an
 * old factor, on the system of the impulses (tests/bench/results/README.md, "Newton by an older
 * factor"). */
#include "solve/newton/newton_system.h"

#include "base/team.h"
#include "solve/sweep/rows.h"

enum {
    MOST_CHANGED_ROWS = 96,
    LEAST_CHANGED_ROWS = 6, /* fewer columns cost more to count than they save */
    MOST_REFINEMENTS = 3
};
static const double WORTH_OF_FACTORING = 0.5; /* an update's largest share of its cost */
/* of the right side's length: refined no further; and good enough where it goes no further */
#ifdef TB_SINGLE
static const double WELL_REFINED = 1e-6, REFINED = 1e-4;
#else
static const double WELL_REFINED = 1e-13, REFINED = 1e-8;
#endif

TB_EXTERN tb_status tb_newton_update_prepare(tb_newton_system *system)
{
    const tb_problem *problem = system->problem;
    tb_newton_update *update = &system->update;
    const int64_t squares = TB_BLOCK_ROWS * (int64_t)problem->number_of_rows;
    update->factored = TB_ARENA_ARRAY(system->arena, tb_real, squares);
    update->differs = TB_ARENA_ARRAY(system->arena, uint8_t, problem->number_of_blocks);
    update->column = TB_ARENA_ARRAY(system->arena, int32_t, problem->number_of_blocks);
    if (!update->factored || !update->differs || !update->column) return TB_RESOURCE_EXHAUSTED;
    return TB_OK;
}

TB_EXTERN tb_status tb_newton_update_fit(tb_newton_system *system)
{
    const tb_problem *problem = system->problem;
    tb_newton_update *update = &system->update;
    tb_arena *arena = system->arena;
    update->has_factor = false;
    update->factoring = system->lu.operations;
    update->products = 0;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const double width = problem->blocks[b].width, numbers = problem->blocks[b].rows * width;
        update->products += 2 * numbers;
        if (system->inside[b]) update->factoring += numbers * width;
    }

    /* as many rows as are worth it if each asks for a column */
    const double worth =
        WORTH_OF_FACTORING * update->factoring / (double)(system->lu.numbers + 1) - 1;
    update->most = MOST_CHANGED_ROWS;
    if (worth < (double)update->most) update->most = (int32_t)worth;
    if (update->most < LEAST_CHANGED_ROWS) update->most = 0;
    if (update->most == 0) return TB_OK;
    const int64_t most = update->most, dofs = problem->number_of_dofs;
    update->changed = TB_ARENA_ARRAY(arena, int32_t, most);
    update->part = TB_ARENA_ARRAY(arena, int32_t, most);
    update->solved_columns = TB_ARENA_ARRAY(arena, tb_real, most * dofs);
    update->solving = TB_ARENA_ARRAY(arena, tb_real, most * system->lu.rows);
    update->right = TB_ARENA_ARRAY(arena, tb_real, dofs);
    update->answer = TB_ARENA_ARRAY(arena, tb_real, dofs);
    update->small = TB_ARENA_ARRAY(arena, tb_real, most);
    if (!update->changed || !update->part || !update->solved_columns || !update->solving ||
        !update->right || !update->answer || !update->small)
        return TB_RESOURCE_EXHAUSTED;
    return tb_block_lu_dense(&update->schur, update->most, arena);
}

TB_EXTERN void tb_newton_update_begin(tb_newton_system *system)
{
    const tb_problem *problem = system->problem;
    tb_newton_update *update = &system->update;
    TB_EACH (b, problem->number_of_blocks) {
        const tb_block *block = &problem->blocks[b];
        const int64_t square = TB_BLOCK_ROWS * (int64_t)block->row;
        for (int32_t i = 0; i < block->rows * block->rows; i++)
            update->factored[square + i] = system->reduced[square + i];
        update->column[b] = -1;
    }
    tb_team_sync();
    update->columns = 0;
    update->has_factor = true;
}

/* ---- changed blocks ---- */

TB_STATIC void mark_changed(tb_newton_system *system)
{
    const tb_problem *problem = system->problem;
    TB_EACH (b, problem->number_of_blocks) {
        const tb_block *block = &problem->blocks[b];
        const int64_t square = TB_BLOCK_ROWS * (int64_t)block->row;
        const tb_real *now = system->reduced + square, *then = system->update.factored + square;
        bool differs = false;
        TB_ROLLED
        for (int32_t i = 0; i < block->rows * block->rows; i++)
            differs = differs || now[i] != then[i];
        system->update.differs[b] = differs;
    }
    tb_team_sync();
}

/* Lists the rows of changed blocks; returns their number, or -1 if they are too many. *fresh:
 * the number of rows without a column. */
TB_STATIC int32_t list_changed(tb_newton_system *system, int32_t *fresh)
{
    const tb_problem *problem = system->problem;
    tb_newton_update *update = &system->update;
    int32_t rows = 0;
    *fresh = 0;
    mark_changed(system);
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        if (!update->differs[b]) continue;
        const int32_t n = problem->blocks[b].rows;
        if (rows + n > update->most) return -1;
        for (int32_t i = 0; TB_LEADER && i < n; i++) {
            update->changed[rows + i] = b;
            update->part[rows + i] = i;
        }
        rows += n;
        if (update->column[b] < 0) *fresh += n;
    }
    tb_team_sync();
    return rows;
}

/* True if an update costs less than a new factorization. Columns are dropped if there is no
 * memory for more. */
TB_STATIC bool is_worth_it(tb_newton_system *system, int32_t rows, int32_t *fresh)
{
    tb_newton_update *update = &system->update;
    if (update->columns + *fresh > update->most) {
        TB_EACH (b, system->problem->number_of_blocks) update->column[b] = -1;
        tb_team_sync();
        update->columns = 0;
        *fresh = rows;
    }
    const double n = (double)rows, column = (double)system->lu.numbers;
    const double schur = n * n * n / 3 + n * update->products / 2;
    return (double)*fresh * column + schur + 2 * (column + update->products) <=
           WORTH_OF_FACTORING * update->factoring;
}

/* ---- columns and their Schur matrix ---- */

/* Columns of Z for the `fresh` rows that have none. */
TB_STATIC void make_columns(tb_newton_system *system, int32_t rows, int32_t fresh)
{
    const tb_problem *problem = system->problem;
    tb_newton_update *update = &system->update;
    const int64_t dofs = problem->number_of_dofs;
    tb_real *first = update->solved_columns + update->columns * dofs;
    tb_team_clear(first, (size_t)(fresh * dofs) * sizeof(tb_real));
    tb_team_clear(update->solving, (size_t)system->lu.rows * (size_t)fresh * sizeof(tb_real));
    tb_team_sync();
    int32_t at = 0;
    for (int32_t c = 0; c < rows; c++) {
        const tb_block *block = &problem->blocks[update->changed[c]];
        if (update->column[update->changed[c]] >= 0) continue;
        const tb_real *y = problem->values + block->value + (int64_t)update->part[c] * block->width;
        TB_EACH (a, block->width) {
            const int32_t dof = tb_block_dof(problem, block, a);
            if (system->node[dof] < 0)
                first[at * dofs + dof] = y[a];
            else
                update->solving[(int64_t)tb_newton_row_of_dof(system, dof) * fresh + at] = y[a];
        }
        at++;
    }
    tb_team_sync();
    tb_block_lu_solve_columns(&system->lu, update->solving, fresh);
    TB_EACH (k, problem->number_of_dofs) {
        if (system->node[k] < 0) continue;
        const tb_real *from = update->solving + (int64_t)tb_newton_row_of_dof(system, k) * fresh;
        TB_ROLLED
        for (int32_t i = 0; i < fresh; i++) first[i * dofs + k] = from[i];
    }
    if (TB_LEADER) {
        TB_ROLLED
        for (int32_t c = 0, i = update->columns; c < rows; c++) {
            const int32_t b = update->changed[c];
            if (update->part[c] == 0 && update->column[b] < 0) {
                update->column[b] = i;
                i += problem->blocks[b].rows;
            }
        }
    }
    tb_team_sync();
    update->columns += fresh;
}

/* dD times the velocities that v (dofs) gives a block */
TB_CALLED void changed_response(const tb_newton_system *system, int32_t b, const tb_real *v,
                                tb_real *response)
{
    const tb_problem *problem = system->problem;
    const tb_block *block = &problem->blocks[b];
    const int64_t square = TB_BLOCK_ROWS * (int64_t)block->row;
    const tb_real *now = system->reduced + square, *then = system->update.factored + square;
    const int32_t n = block->rows;
    tb_real velocity[TB_BLOCK_ROWS];
    tb_gather_any(problem, block, v, velocity);
    for (int32_t i = 0; i < n; i++) {
        response[i] = 0;
        TB_ROLLED
        for (int32_t k = 0; k < n; k++)
            response[i] += (now[i * n + k] - then[i * n + k]) * velocity[k];
    }
}

/* column c of the update */
TB_STATIC const tb_real *solved_column(const tb_newton_system *system, int32_t c)
{
    const tb_newton_update *update = &system->update;
    const int64_t column = update->column[update->changed[c]] + update->part[c];
    return update->solved_columns + column * system->problem->number_of_dofs;
}

/* 1 + dD Y_C' Z, factored; false where it is singular */
TB_STATIC bool factor_update(tb_newton_system *system, int32_t rows)
{
    tb_newton_update *update = &system->update;
    tb_block_lu_shrink(&update->schur, rows);
    TB_EACH (c, rows) {
        const tb_real *z = solved_column(system, c);
        for (int32_t i = 0; i < rows;) {
            const int32_t b = update->changed[i], n = system->problem->blocks[b].rows;
            tb_real response[TB_BLOCK_ROWS];
            changed_response(system, b, z, response);
            TB_ROLLED
            for (int32_t k = 0; k < n; k++, i++)
                update->schur.values[(int64_t)i * rows + c] = (i == c ? 1 : 0) + response[k];
        }
    }
    tb_team_sync();
    return tb_block_lu_factor(&update->schur);
}

/* v <- inverse(A) v as well as the update knows it */
TB_STATIC void apply_update(tb_newton_system *system, int32_t rows, tb_real *v)
{
    tb_newton_update *update = &system->update;
    tb_newton_apply_factor(system, v);
    TB_EACH (c, rows)
        if (update->part[c] == 0)
            changed_response(system, update->changed[c], v, update->small + c);
    tb_team_sync();
    tb_block_lu_solve(&update->schur, update->small);
    for (int32_t c = 0; c < rows; c++) {
        const tb_real *z = solved_column(system, c);
        TB_EACH (k, system->problem->number_of_dofs) v[k] -= update->small[c] * z[k];
    }
    tb_team_sync();
}

/* ---- refinement ---- */

/* ds = b - A answer, and its length */
TB_STATIC double leave_residual(tb_newton_system *system)
{
    const tb_newton_update *update = &system->update;
    tb_newton_product(system, update->answer, system->ds);
    TB_EACH (k, system->problem->number_of_dofs) system->ds[k] = update->right[k] - system->ds[k];
    tb_team_sync();
    return tb_newton_length(system->ds, system->problem->number_of_dofs);
}

/* The answer to `right`, refined; false where that does not contract. */
TB_STATIC bool refine_update(tb_newton_system *system, int32_t rows)
{
    const int32_t dofs = system->problem->number_of_dofs;
    const tb_newton_update *update = &system->update;
    const double length = tb_newton_length(update->right, dofs);
    double before = DBL_MAX;
    tb_team_clear(update->answer, (size_t)dofs * sizeof(tb_real));
    for (int k = 0; k <= MOST_REFINEMENTS; k++) {
        apply_update(system, rows, system->ds);
        TB_EACH (i, dofs) update->answer[i] += system->ds[i];
        tb_team_sync();
        const double left = leave_residual(system);
        if (left <= WELL_REFINED * length) return true;
        if (!(left <= before / 2)) return left <= REFINED * length;
        before = left;
    }
    return before <= REFINED * length;
}

TB_EXTERN bool tb_newton_update_solve(tb_newton_system *system)
{
    tb_newton_update *update = &system->update;
    if (!update->has_factor) return false;
    int32_t fresh = 0;
    const int32_t rows = list_changed(system, &fresh);
    if (rows < 0) return false;
    if (rows == 0) {
        tb_newton_apply_factor(system, system->ds);
        return true;
    }
    if (!is_worth_it(system, rows, &fresh)) return false;
    if (fresh > 0) make_columns(system, rows, fresh);
    if (!factor_update(system, rows)) return false;
    const size_t bytes = (size_t)system->problem->number_of_dofs * sizeof(tb_real);
    tb_team_copy(update->right, system->ds, bytes);
    tb_team_sync();
    const bool refined = refine_update(system, rows);
    tb_team_copy(system->ds, refined ? update->answer : update->right, bytes);
    tb_team_sync();
    return refined;
}
