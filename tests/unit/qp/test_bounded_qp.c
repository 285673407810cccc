/* Programs with bounds by a team's SCHURPA: against the library's own, and by the KKT
 * conditions. */
#include "tribo_qp.h"
#include "qp/bounded_qp.h"

#include "qp_util.h"

enum { MOST = 200 };

static const double SMALL = sizeof(tb_real) == 8 ? 1e-10 : 1e-4;

static tb_arena arena;
static tb_bounded program;
static tb_bounded_result result;

/* Memory for n variables; H = G G' / n + shift. */
static void open_program(int32_t n, tb_random *random, double shift)
{
    tb_arena_reset(&arena);
    TEST_OK(tb_bounded_take(&program, n, true, &arena), NULL);
    TEST_OK(tb_bounded_begin(&program, &arena), NULL);
    program.tolerance = sizeof(tb_real) == 8 ? 1e-12 : 1e-5; /* as of staggered projections */
    static double g[MOST * MOST];
    for (int32_t i = 0; i < n * n; i++) g[i] = tb_random_normal(random);
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j <= i; j++) {
            double sum = i == j ? shift : 0;
            for (int32_t k = 0; k < n; k++) sum += g[i * n + k] * g[j * n + k] / n;
            program.h[i * n + j] = program.h[j * n + i] = TB_R(sum);
        }
}

/* Bounds of every kind: none, one, two, and such as leave one value. */
static void choose_bounds(tb_random *random)
{
    for (int32_t j = 0; j < program.n; j++) {
        const double width = tb_random_uniform(random), middle = 0.3 * tb_random_normal(random);
        const int kind = (int)(tb_random_uniform(random) * 5);
        program.f[j] = TB_R(tb_random_normal(random));
        program.lower[j] = kind == 0 || kind == 1 ? -TB_R(INFINITY) : TB_R(middle - width);
        program.upper[j] = kind == 0 || kind == 2 ? TB_R(INFINITY) : TB_R(middle + width);
        if (kind == 4) program.lower[j] = program.upper[j];
    }
}

/* The KKT conditions, in double from the numbers alone. */
static void check_answer(const char *what, int seed)
{
    const int32_t n = program.n;
    ck_assert_msg(result.status == TB_OK, "%s %d: %s after %d systems, %g", what, seed,
                  tb_status_name(result.status), result.iterations, result.relative);
    for (int32_t i = 0; i < n; i++) {
        double g = (double)program.f[i], size = fabs(g);
        for (int32_t k = 0; k < n; k++) {
            g += (double)program.h[i * n + k] * (double)program.x[k];
            size += fabs((double)program.h[i * n + k] * (double)program.x[k]);
        }
        const double x = (double)program.x[i], near = SMALL * (1 + fabs(x));
        const double slack = SMALL * 10 * (1 + size);
        ck_assert(x >= (double)program.lower[i] - near && x <= (double)program.upper[i] + near);
        TEST_NEAR(program.gradient[i], g, slack);
        if (program.state[i] == TB_BOUND_FREE) {
            ck_assert(program.lower[i] < program.upper[i]);
            TEST_NEAR(g, 0, slack);
        } else {
            const bool lower = program.state[i] == TB_BOUND_LOWER;
            ck_assert(program.x[i] == (lower ? program.lower[i] : program.upper[i]));
            if (program.lower[i] < program.upper[i]) ck_assert(lower ? g >= -slack : g <= slack);
        }
    }
}

static void solve_program(const char *what, int seed)
{
    TEST_OK(tb_bounded_solve(&program, NULL, &result), NULL);
    check_answer(what, seed);
}

/* The same by qp.h, bounds as rows. */
static void compare_with_library(int seed)
{
    const int32_t n = program.n;
    made_qp made;
    int32_t m = 0;
    made_qp_open(&made, n, n - 1, 2 * n, 2 * n);
    for (int32_t j = 0; j < n; j++) {
        made.f[j] = program.f[j];
        for (int32_t i = j; i < n; i++) made.hessian[i - j + j * n] = program.h[i * n + j];
        for (int side = 0; side < 2; side++) {
            const tb_real bound = side == 0 ? -program.lower[j] : program.upper[j];
            if (!(tb_abs(bound) <= TB_REAL_MAX)) continue;
            made.column[m] = j;
            made.value[m] = side == 0 ? -1 : 1;
            made.b[m] = bound;
            m++;
            made.row_start[m] = m;
        }
    }
    made.qp.constraints = m;
    const tb_qp_options options = {.method = TB_QP_SCHURPA,
                                   .maximum_iterations = 200,
                                   .maximum_solves = 500,
                                   .maximum_changes = 500,
                                   .maximum_refinements = 2};
    static uint8_t active[2 * MOST];
    static tb_real x[MOST], lambda[2 * MOST];
    tb_k0 k0;
    tb_qp_workspace *work = NULL;
    tb_qp_result own;
    memset(active, 0, sizeof active);
    TEST_OK(tb_k0_bounds(&made.qp, false, 0, &made.arena, &k0), NULL);
    TEST_OK(tb_qp_begin(&made.qp, &k0, &options, &made.arena, &work), NULL);
    TEST_OK(tb_qp_solve(work, active, x, lambda, &own), NULL);
    for (int32_t j = 0; j < n; j++)
        ck_assert_msg(fabs((double)(x[j] - program.x[j])) <= 1e3 * SMALL, "seed %d, x[%d]: %g, %g",
                      seed, (int)j, (double)x[j], (double)program.x[j]);
    made_qp_free(&made);
}

START_TEST(random_programs_have_the_answer_that_the_library_s_own_method_has)
{
    for (int seed = 0; seed < 60; seed++) {
        tb_random random = tb_random_stream((uint64_t)seed, 5);
        open_program(1 + seed * 2, &random, 0.05);
        choose_bounds(&random);
        for (int32_t j = 0; j < program.n; j++) program.state[j] = (uint8_t)((j * 7 + seed) % 3);
        solve_program("random", seed);
        /* one value is a lower bound like another: the library finds them contradict */
        for (int32_t j = 0; j < program.n; j++)
            if (program.lower[j] >= program.upper[j]) program.lower[j] = -TB_R(INFINITY);
        memset(program.state, TB_BOUND_FREE, (size_t)program.n);
        solve_program("random, free", seed);
        compare_with_library(seed);
        ck_assert_int_eq(result.cycle, 0);
    }
}
END_TEST

/* f and the bounds change from solve to solve and H stays: a border stays, whose columns may
 * leave again. */
START_TEST(what_changes_is_bordered_and_undone_columns_leave)
{
    for (int seed = 0; seed < 10; seed++) {
        tb_random random = tb_random_stream((uint64_t)seed, 6);
        open_program(60, &random, 0.1);
        choose_bounds(&random);
        solve_program("first", seed);
        ck_assert_int_eq(result.factorizations, 1);
        static tb_real first[MOST];
        memcpy(first, program.x, 60 * sizeof *first);
        for (int32_t j = 0; j < 60; j += 4) program.f[j] = -program.f[j];
        solve_program("changed", seed);
        ck_assert_int_eq(result.factorizations, 0);
        ck_assert_int_gt(result.largest_border, 0);
        for (int32_t j = 0; j < 60; j += 4) program.f[j] = -program.f[j];
        solve_program("back", seed);
        ck_assert_int_eq(result.factorizations, 0);
        ck_assert_int_gt(result.deletions, 0);
        for (int32_t j = 0; j < 60; j++) TEST_NEAR(program.x[j], first[j], 100 * SMALL);
        solve_program("again", seed);
        ck_assert_int_eq(result.iterations, 1);
    }
}
END_TEST

START_TEST(a_border_that_is_full_is_factored)
{
    tb_random random = tb_random_stream(1, 7);
    open_program(MOST, &random, 0.5);
    for (int32_t j = 0; j < MOST; j++) {
        program.f[j] = TB_R(10 + tb_random_normal(&random));
        program.upper[j] = 1;
    }
    solve_program("all at their bounds", 1);
    ck_assert_int_eq(result.resets, 1);
    ck_assert_int_eq(result.factorizations, 2);
    /* and after many solves, though nothing changes */
    int32_t factorizations = 0;
    for (int i = 0; i < 600; i++) {
        program.f[i % MOST] += TB_R(0.01);
        solve_program("many", i);
        factorizations += result.factorizations;
    }
    ck_assert_int_eq(factorizations, 1);
}
END_TEST

/* Full steps go round three sets for ever, from six of the eight sets: Curtis, Han, Robinson, A
 * globally convergent primal-dual active-set framework for large-scale convex quadratic
 * optimization, 2015. */
START_TEST(sets_that_come_back_are_seen_and_single_changes_end_the_work)
{
    static const tb_real H[9] = {4, 5, -5, 5, 9, -5, -5, -5, 7}, F[3] = {2, 1, -3};
    int32_t cycles = 0;
    for (unsigned set = 0; set < 8; set++)
        for (int side = 0; side < 2; side++) {
            tb_random random = tb_random_stream(1, 7);
            open_program(3, &random, 0);
            memcpy(program.h, H, sizeof H);
            for (int32_t j = 0; j < 3; j++) {
                /* x <= 0, and its mirror image */
                program.f[j] = side ? -F[j] : F[j];
                program.lower[j] = side ? 0 : -TB_R(INFINITY);
                program.upper[j] = side ? TB_R(INFINITY) : 0;
                const uint8_t bound = side ? TB_BOUND_LOWER : TB_BOUND_UPPER;
                program.state[j] = set >> j & 1 ? bound : TB_BOUND_FREE;
            }
            solve_program("cycle", (int)set);
            ck_assert(result.cycle == 0 || result.cycle == 3);
            cycles += result.cycle > 0;
        }
    ck_assert_int_eq(cycles, 12);
}
END_TEST

/* Nearly singular programs, as of redundant contacts: three of four directions have a shift
 * alone. */
START_TEST(nearly_singular_programs_are_solved)
{
    for (int seed = 0; seed < 20; seed++) {
        tb_random random = tb_random_stream((uint64_t)seed, 8);
        const int32_t n = 40, rank = 12;
        open_program(n, &random, 0);
        static double y[MOST * MOST], motion[MOST];
        for (int32_t i = 0; i < n * rank; i++) y[i] = tb_random_normal(&random);
        for (int32_t k = 0; k < rank; k++) motion[k] = tb_random_normal(&random);
        for (int32_t i = 0; i < n; i++) {
            double force = 0;
            for (int32_t k = 0; k < rank; k++) force += y[i * rank + k] * motion[k];
            program.f[i] = TB_R(force);
            program.upper[i] = TB_R(INFINITY);
            for (int32_t j = 0; j < n; j++) {
                double sum = i == j ? (sizeof(tb_real) == 8 ? 1e-6 : 1e-3) : 0;
                for (int32_t k = 0; k < rank; k++) sum += y[i * rank + k] * y[j * rank + k];
                program.h[i * n + j] = TB_R(sum);
            }
        }
        if (sizeof(tb_real) == 4) program.tolerance = 1e-4; /* float's accuracy */
        TEST_OK(tb_bounded_solve(&program, NULL, &result), NULL);
        ck_assert_msg(result.status == TB_OK, "seed %d: %s, %g after %d systems", seed,
                      tb_status_name(result.status), result.relative, result.iterations);
        for (int32_t j = 0; j < n; j++) ck_assert(program.x[j] >= -TB_R(1e-3));
    }
}
END_TEST

/* Zero is zero: with nothing that pulls, and with ties everywhere, sets stay as they are. */
START_TEST(ties_change_nothing)
{
    tb_random random = tb_random_stream(3, 9);
    open_program(30, &random, 0.1);
    for (int32_t j = 0; j < 30; j++) {
        program.upper[j] = j % 3 == 0 ? 0 : 1;
        program.state[j] = j % 2 ? TB_BOUND_LOWER : TB_BOUND_FREE;
    }
    solve_program("ties", 0);
    ck_assert_int_eq(result.iterations, 1);
    for (int32_t j = 0; j < 30; j++) ck_assert(program.x[j] == 0);
    for (int32_t j = 1; j < 30; j++)
        if (j % 3) ck_assert_int_eq(program.state[j], j % 2);
}
END_TEST

START_TEST(what_is_not_definite_or_not_a_number_is_said)
{
    tb_random random = tb_random_stream(4, 9);
    open_program(5, &random, 0.1);
    choose_bounds(&random);
    program.f[2] = TB_R(NAN);
    TEST_OK(tb_bounded_solve(&program, NULL, &result), NULL);
    ck_assert_int_eq(result.status, TB_DIVERGED);
    open_program(5, &random, 0.1);
    for (int32_t j = 0; j < 5; j++) program.upper[j] = 1;
    program.h[2 * 5 + 2] = -1;
    TEST_STATUS(tb_bounded_solve(&program, NULL, &result), TB_FAILED_PRECONDITION, NULL);
    memset(program.state, TB_BOUND_LOWER, 5);
    program.f[2] = 1;
    program.factored = false; /* now the row is out of it */
    TEST_OK(tb_bounded_solve(&program, NULL, &result), NULL);
}
END_TEST

static bool count_down(void *context)
{
    int *left = context;
    return (*left)-- <= 0;
}

START_TEST(it_listens_between_systems)
{
    tb_solve_options options = tb_solve_defaults();
    tb_random random = tb_random_stream(1, 10);
    open_program(50, &random, 0.1);
    choose_bounds(&random);
    int left = 2;
    options.cancelled = count_down;
    options.cancelled_context = &left;
    TEST_STATUS(tb_bounded_solve(&program, &options, &result), TB_CANCELLED, NULL);
    ck_assert_int_eq(result.iterations, 2);
    solve_program("again", 0);
}
END_TEST

TEST_MAIN(random_programs_have_the_answer_that_the_library_s_own_method_has,
          what_changes_is_bordered_and_undone_columns_leave, a_border_that_is_full_is_factored,
          sets_that_come_back_are_seen_and_single_changes_end_the_work,
          nearly_singular_programs_are_solved, ties_change_nothing,
          what_is_not_definite_or_not_a_number_is_said, it_listens_between_systems)
