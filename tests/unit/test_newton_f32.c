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
        ck_assert_int_le(one.solution.iterations, k < 2 ? 300 : 3000); /* they do not go on */
        ck_assert(tb_all_finite(one.lambda, made.problem.number_of_rows));
    }
}
END_TEST

TEST_MAIN(floats_reach_what_floats_can, beyond_their_rounding_floats_say_so_and_stay_finite)
