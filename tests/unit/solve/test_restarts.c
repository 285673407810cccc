/* Newton from many starts: steps of wedged grasps that no sweep and no round of Newton solves. */
#include "test_util.h"

#include "problem_util.h"
#include "solve/newton/newton_internal.h"

static made_problem made;
static made_solution answer;
static double warm[MADE_ROWS];

/* Steps of grasps by robosuite's Panda gripper of its HammerObject, whose handle has a friction of 3
 * to 4: pads, motors with limits, dry friction, table. */
static const char *const WEDGED[] = {"tests/data/problems/wedged_handle_1.rows",
                                     "tests/data/problems/wedged_handle_2.rows",
                                     "tests/data/problems/wedged_handle_3.rows"};
enum { NUMBER_OF_WEDGED = sizeof WEDGED / sizeof WEDGED[0] };

/* The next number of a file; lines that begin with # are comments. */
static double next_number(FILE *file)
{
    double number = 0;
    while (fscanf(file, "%lf", &number) != 1) {
        ck_assert_int_eq(fgetc(file), '#');
        for (int c = 0; c != '\n'; c = fgetc(file)) ck_assert_int_ne(c, EOF);
    }
    return number;
}

static void read_problem(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    const int32_t blocks = (int32_t)next_number(file), rows = (int32_t)next_number(file),
                  dofs = (int32_t)next_number(file);
    ck_assert(blocks <= MADE_BLOCKS && rows <= MADE_ROWS);
    made_begin(&made, dofs);
    for (int32_t b = 0; b < blocks; b++) {
        double head[6], y[TB_BLOCK_ROWS * 16], c[TB_BLOCK_ROWS];
        for (int k = 0; k < 6; k++) head[k] = next_number(file);
        const int32_t first = made.problem.number_of_rows, n = (int32_t)head[2];
        ck_assert(n <= TB_BLOCK_ROWS && dofs <= 16);
        for (int32_t i = 0; i < n; i++) {
            c[i] = next_number(file);
            made.compliance[first + i] = next_number(file);
            warm[first + i] = next_number(file);
            for (int32_t k = 0; k < dofs; k++) y[i * dofs + k] = next_number(file);
        }
        tb_block *block = made_add(&made, (tb_law)(int)head[0], n, head[3], 0, dofs, 0, 0, y, c);
        block->lower = head[4];
        block->upper = head[5];
    }
    ck_assert_int_eq(made.problem.number_of_rows, rows);
    made.problem.compliance = made.compliance;
    fclose(file);
}

static tb_solve_options options_of(const char *solver)
{
    tb_solve_options options = tb_solve_defaults();
    options.solver = solver;
    options.maximum_iterations = 50000;
    return options;
}

static void solve_warm(const char *solver)
{
    const tb_solve_options options = options_of(solver);
    made_solve_warm(&made.problem, &options, (tb_warm_start){.lambda = warm}, &answer);
    ck_assert_int_eq(answer.returned, TB_OK);
}

START_TEST(auto_solves_wedged_handles)
{
    int32_t hard = 0;
    for (int i = 0; i < NUMBER_OF_WEDGED; i++) {
        read_problem(WEDGED[i]);
        solve_warm("newton");
        const bool newton = answer.solution.status == TB_OK;
        solve_warm("sor");
        hard += !newton && answer.solution.status != TB_OK;
        solve_warm("auto");
        ck_assert_msg(answer.solution.status == TB_OK, "%s: %g", WEDGED[i],
                      answer.solution.residuals.natural);
        ck_assert(answer.solution.residuals.natural <= 1e-6);
    }
    ck_assert_int_eq(hard, NUMBER_OF_WEDGED); /* else these files test nothing */
}
END_TEST

START_TEST(restarts_give_the_same_bytes)
{
    static double first[MADE_ROWS];
    for (int i = 0; i < NUMBER_OF_WEDGED; i++) {
        read_problem(WEDGED[i]);
        const size_t bytes = (size_t)made.problem.number_of_rows * sizeof(double);
        solve_warm("auto");
        memcpy(first, answer.lambda, bytes);
        solve_warm("auto");
        ck_assert_mem_eq(first, answer.lambda, bytes);
    }
}
END_TEST

/* Within their share of the limit, and none at all for a problem in the given form. */
START_TEST(restarts_stay_within_their_limits)
{
    static made_problem given;
    tb_arena arena;
    tb_arena_init(&arena, 0);
    tb_solve_options options = options_of("newton");
    const tb_warm_start start = {.lambda = warm, .scratch = &arena};
    tb_solution solution = {.lambda = answer.lambda,
                            .xi = answer.xi,
                            .whitened = answer.whitened,
                            .statuses = answer.statuses};
    read_problem(WEDGED[2]);
    options.maximum_iterations = 7;
    options.tolerance = 1e-300; /* no answer is as good */
    ck_assert_int_eq(tb_solve_restarts(&made.problem, &options, &start, &solution), TB_OK);
    ck_assert_int_eq(solution.iterations, 7);
    ck_assert_int_eq(solution.status, TB_NOT_CONVERGED);
    options.maximum_iterations = 5000;
    options.tolerance = 1e-6;
    made_given(&given, &made);
    ck_assert_int_eq(tb_solve_restarts(&given.problem, &options, &start, &solution), TB_OK);
    ck_assert_int_eq(solution.iterations, 0);
    ck_assert_int_eq(solution.status, TB_NOT_CONVERGED);
    free(given.dense);
    tb_arena_destroy(&arena);
}
END_TEST

TEST_MAIN(auto_solves_wedged_handles, restarts_give_the_same_bytes,
          restarts_stay_within_their_limits)
