/* Staggered projections in float: the same sources, judged in double. */
#define TB_SINGLE
#include "test_util.h"

#include "problem_util.h"

static made_problem made;
static made_solution one;

START_TEST(floats_reach_what_floats_can)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        made_random(&made, seed, 40, 20, 0, 1);
        const tb_solve_options options = made_options("staggered", 1e-4);
        made_solve(&made.problem, &options, NULL, &one);
        TEST_OK(one.returned, NULL);
        ck_assert_msg(one.solution.status == TB_OK, "seed %d: %g", (int)seed,
                      one.solution.residuals.natural);
    }
}
END_TEST

START_TEST(floats_in_space_end_and_keep_the_cone)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        made_random(&made, seed, 40, 20, 0.5, 1);
        const tb_solve_options options = made_options("staggered", 1e-5);
        made_solve(&made.problem, &options, NULL, &one);
        TEST_OK(one.returned, NULL);
        ck_assert(one.solution.residuals.natural < 0.5 && one.solution.residuals.cone < 1e-6);
        ck_assert_int_lt(one.solution.iterations, 5000);
    }
}
END_TEST

TEST_MAIN(floats_reach_what_floats_can, floats_in_space_end_and_keep_the_cone)
