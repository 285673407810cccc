/* Islands of a contact problem: found where blocks share dofs, solved apart, put together. */
#include "test_util.h"

#include "problem_util.h"
#include "solve/islands.h"

enum { BODIES = 24, CONTACTS = 90 };

static made_problem made;
static made_solution one, two;

static tb_islands find(tb_arena *arena, const tb_real *warm_lambda)
{
    const tb_solve_options options = made_options("auto", 1e-9);
    const tb_warm_start warm = {.scratch = arena, .lambda = warm_lambda};
    const tb_solution solution = {.lambda = one.lambda};
    tb_islands islands;
    const tb_status status = tb_islands_find(&made.problem, &options, &warm, &solution, &islands);
    TEST_STATUS(status, TB_OK, NULL);
    return islands;
}

/* Every block of the problem is in one island, with its numbers and dofs. */
static void check_islands(const tb_islands *islands)
{
    int seen[MADE_BLOCKS] = {0};
    int32_t dofs = 0;
    double squares = 0;
    for (int32_t i = 0; i < islands->number; i++) {
        const tb_island *own = &islands->islands[i];
        tb_problem part;
        tb_warm_start warm = {0};
        tb_solution solution;
        tb_islands_open(islands, i, &part, &warm, &solution);
        int32_t row = 0, to_problem[6 * BODIES];
        for (int32_t k = 0; k < part.number_of_dofs; k++) to_problem[k] = -1;
        for (int32_t k = 0; k < part.number_of_blocks; k++) {
            const int32_t b = islands->order[own->first + k];
            const tb_block *here = &part.blocks[k], *there = &made.blocks[b];
            seen[b]++;
            ck_assert_int_eq(here->row, row);
            row += here->rows;
            for (int32_t r = 0; r < here->rows; r++)
                ck_assert(part.c[here->row + r] == made.c[there->row + r]);
            for (int32_t a = 0; a < here->width; a++) {
                int32_t *dof = &to_problem[tb_block_dof(&part, here, a)];
                const int32_t its = tb_block_dof(&made.problem, there, a);
                if (*dof < 0) *dof = its;
                ck_assert_int_eq(*dof, its);
            }
        }
        ck_assert_int_eq(row, part.number_of_rows);
        dofs += part.number_of_dofs;
        squares += part.c_squared;
    }
    for (int32_t b = 0; b < made.problem.number_of_blocks; b++) ck_assert_int_eq(seen[b], 1);
    ck_assert_int_eq(dofs, made.problem.number_of_dofs);
    TEST_NEAR(squares, tb_problem_c_squared(&made.problem), 1e-12 * squares);
}

START_TEST(islands_are_the_groups_that_share_no_dof)
{
    static const int32_t GROUPS[] = {2, 3, 8};
    for (int k = 0; k < 3; k++) {
        tb_arena arena;
        tb_arena_init(&arena, 0);
        made_groups(&made, (uint64_t)k, CONTACTS, BODIES, GROUPS[k], 0.5);
        const tb_islands islands = find(&arena, NULL);
        ck_assert_int_eq(islands.number, GROUPS[k]);
        check_islands(&islands);
        tb_arena_destroy(&arena);
    }
}
END_TEST

/* One contact between two groups joins them; few dofs, one island and a given matrix stay whole. */
START_TEST(a_shared_contact_joins_and_small_problems_stay_whole)
{
    tb_arena arena;
    tb_arena_init(&arena, 0);
    double y[36], c[3] = {-1, 0, 0};
    for (int i = 0; i < 36; i++) y[i] = 0.1 * (i % 7) - 0.2;
    made_groups(&made, 4, CONTACTS, BODIES, 4, 0.5);
    made_add(&made, TB_LAW_COULOMB, 3, TB_R(0.5), 0, 6, 6, 6, y, c);
    tb_islands islands = find(&arena, NULL);
    ck_assert_int_eq(islands.number, 3);
    check_islands(&islands);

    made_groups(&made, 4, CONTACTS, BODIES, 1, 0.5);
    islands = find(&arena, NULL);
    ck_assert_int_eq(islands.number, 0);
    made_groups(&made, 4, 30, 10, 2, 0.5);
    islands = find(&arena, NULL);
    ck_assert_int_eq(islands.number, 0);
    tb_arena_destroy(&arena);
}
END_TEST

/* The answer is the whole problem's, with its residual and the warm start it was given. */
START_TEST(islands_solved_apart_solve_the_whole)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        const tb_solve_options options = made_options("auto", 1e-9);
        made_groups(&made, seed, CONTACTS, BODIES, 6, 0.5);
        made_solve(&made.problem, &options, NULL, &one);
        TEST_STATUS(one.returned, TB_OK, NULL);
        ck_assert_int_eq((int)one.solution.status, TB_OK);
        ck_assert(one.solution.residuals.natural <= 1e-9);

        tb_arena arena;
        tb_arena_init(&arena, 0);
        tb_residuals residuals;
        TEST_STATUS(tb_problem_residuals(&made.problem, one.lambda, &arena, two.xi, &residuals),
                    TB_OK, NULL);
        tb_arena_destroy(&arena);
        ck_assert(residuals.natural == one.solution.residuals.natural);
        for (int32_t i = 0; i < made.problem.number_of_rows; i++) ck_assert(two.xi[i] == one.xi[i]);

        /* from the answer there is next to nothing left to do */
        tb_solve_options again = options;
        again.warm_start = true;
        made_solve(&made.problem, &again, one.lambda, &two);
        ck_assert_int_eq((int)two.solution.status, TB_OK);
        ck_assert_int_lt(two.solution.iterations, one.solution.iterations);
        ck_assert_int_le(two.solution.iterations, 2);
    }
}
END_TEST

/* Iterations are those of the hardest island, and the others take fewer. */
START_TEST(an_easy_island_does_not_pay_for_a_hard_one)
{
    const tb_solve_options options = made_options("auto", 1e-10);
    made_groups(&made, 11, CONTACTS, BODIES, 6, 0.5);
    made_solve(&made.problem, &options, NULL, &one);
    int32_t most = 0;
    double work = 0;
    tb_arena arena;
    tb_arena_init(&arena, 0);
    const tb_islands islands = find(&arena, NULL);
    for (int32_t i = 0; i < islands.number; i++) {
        tb_problem part;
        tb_warm_start warm = {0};
        tb_solution solution;
        tb_islands_open(&islands, i, &part, &warm, &solution);
        made_solve(&part, &options, NULL, &two);
        if (two.solution.iterations > most) most = two.solution.iterations;
        work += two.solution.iterations * (double)part.number_of_rows;
    }
    tb_arena_destroy(&arena);
    ck_assert_int_eq(one.solution.iterations, most);
    ck_assert(work < 0.9 * most * made.problem.number_of_rows);
}
END_TEST

/* A history is the mean of the islands' histories; a failing island is reported. */
START_TEST(islands_share_a_history_and_report_a_failure)
{
    tb_solve_options options = made_options("auto", 1e-9);
    tb_solve_history history = {0};
    made_groups(&made, 2, CONTACTS, BODIES, 6, 0.5);
    made_solve_warm(&made.problem, &options, (tb_warm_start){.history = &history}, &one);
    ck_assert_int_eq((int)one.solution.status, TB_OK);
    ck_assert(history.sweeps > 0 && history.sweeps <= one.solution.iterations * 1e3);
    options.maximum_iterations = 3;
    made_solve(&made.problem, &options, NULL, &one);
    ck_assert_int_eq((int)one.solution.status, TB_NOT_CONVERGED);
    ck_assert(one.solution.residuals.natural > 1e-9);
}
END_TEST

TEST_MAIN(islands_are_the_groups_that_share_no_dof,
          a_shared_contact_joins_and_small_problems_stay_whole,
          islands_solved_apart_solve_the_whole, an_easy_island_does_not_pay_for_a_hard_one,
          islands_share_a_history_and_report_a_failure)
