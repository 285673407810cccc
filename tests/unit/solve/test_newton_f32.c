/* The float build of newton and auto: the same sources, judged in double. */
#define TB_SINGLE
#include "test_util.h"

#include "problem_util.h"

static made_problem made, given;
static made_solution one;

START_TEST(floats_reach_what_floats_can)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        made_random(&made, seed, 120, 30, 0.5, 1);
        made_given(&given, &made);
        for (int k = 0; k < 4; k++) {
            tb_solve_options options = made_options(k % 2 ? "auto" : "newton", 2e-5);
            options.maximum_iterations = 500;
            made_solve(k < 2 ? &made.problem : &given.problem, &options, NULL, &one);
            ck_assert_msg(one.solution.status == TB_OK, "seed %d %s: %g after %d", (int)seed,
                          one.solution.solver, one.solution.residuals.natural,
                          one.solution.iterations);
        }
        free(given.dense);
    }
}
END_TEST

START_TEST(beyond_their_rounding_floats_say_so_and_stay_finite)
{
    made_random(&made, 3, 120, 30, 0.5, 1);
    for (int k = 0; k < 4; k++) {
        tb_solve_options options = made_options(k % 2 ? "auto" : "newton", 1e-12);
        options.maximum_iterations = k < 2 ? 300 : 100000;
        made_solve(&made.problem, &options, NULL, &one);
        TEST_STATUS(one.solution.status, TB_NOT_CONVERGED, NULL);
        ck_assert(one.solution.residuals.natural < 1e-4);
        ck_assert_int_le(one.solution.iterations, k < 2 ? 300 : 3000); /* the solvers stop there */
        ck_assert(tb_all_finite(one.lambda, made.problem.number_of_rows));
    }
}
END_TEST

/* The residual of impulses, with or without their rounding. */
static double residual_of(const tb_problem *problem, const tb_real *lambda, const tb_real *fine)
{
    tb_arena arena;
    tb_residuals residuals;
    tb_arena_init(&arena, 0);
    ck_assert(tb_problem_judge(problem, lambda, fine, &arena, NULL, NULL, &residuals) == TB_OK);
    tb_arena_destroy(&arena);
    return residuals.natural;
}

START_TEST(what_rounding_leaves_of_impulses_goes_on)
{
    static made_solution rough;
    int better = 0, stands = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        made_random(&made, seed, 120, 30, 0.5, 1);
        tb_solve_options options = made_options("newton", 2e-5);
        made_solve(&made.problem, &options, NULL, &rough);
        TEST_STATUS(rough.solution.status, TB_OK, NULL);
        options.tolerance = 2e-6;
        options.maximum_iterations = 6; /* steps from sets */
        const tb_warm_start warm = {.lambda = rough.lambda, .statuses = rough.statuses};
        made_solve_warm(&made.problem, &options, warm, &one);
        if (one.solution.status != TB_OK) continue;
        ck_assert(one.solution.has_fine);
        const double whole = residual_of(&made.problem, one.lambda, one.fine);
        ck_assert(whole ==
                  one.solution.residuals.natural); /* the reported residual is that of the result */
        better += whole < residual_of(&made.problem, one.lambda, NULL);

        /* and it is a start: no work is left, but at slipping contacts, whose rims a projection
         * meets only to within rounding */
        const tb_warm_start again = {
            .lambda = one.lambda, .fine = one.fine, .statuses = one.statuses};
        options.tolerance = whole * 1.001;
        made_solve_warm(&made.problem, &options, again, &rough);
        stands += rough.solution.iterations == 0;
    }
    ck_assert_int_ge(better, 4);
    ck_assert_int_ge(stands, 4);
}
END_TEST

TEST_MAIN(what_rounding_leaves_of_impulses_goes_on, floats_reach_what_floats_can,
          beyond_their_rounding_floats_say_so_and_stay_finite)
