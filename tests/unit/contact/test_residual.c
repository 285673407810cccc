/* Residuals and stop tests on problems with answers known by hand. */
#include "test_util.h"

#include "problem_util.h"

static made_problem made;

/* a unit mass on a floor, normal first: G = 1 */
static void block_on_floor(double c_normal, double c_tangent, double mu)
{
    const double y[9] = {0, 0, 1, 1, 0, 0, 0, 1, 0};
    const double c[3] = {c_normal, c_tangent, 0};
    made_begin(&made, 3);
    made_add(&made, TB_LAW_COULOMB, 3, TB_R(mu), 0, 3, 0, 0, y, c);
}

static tb_residuals judge(const tb_problem *problem, const tb_real *lambda, tb_real *xi)
{
    tb_arena arena;
    tb_arena_init(&arena, 0);
    tb_residuals residuals;
    ck_assert(tb_problem_residuals(problem, lambda, &arena, xi, &residuals) == TB_OK);
    ck_assert(arena.used == 0);
    tb_arena_destroy(&arena);
    return residuals;
}

START_TEST(exact_answers_of_one_block_have_no_residual)
{
    double xi[3];
    /* sticks: stopped dead */
    block_on_floor(-2, -0.5, 0.5);
    const double stick[3] = {2, 0.5, 0};
    ck_assert(judge(&made.problem, stick, xi).natural == 0);
    ck_assert(xi[0] == 0 && xi[1] == 0);
    /* slides: friction at its bound against the slip */
    block_on_floor(-2, -3, 0.5);
    const double slide[3] = {2, 1, 0};
    const tb_residuals r = judge(&made.problem, slide, xi);
    TEST_NEAR(r.natural, 0, 1e-16);
    TEST_NEAR(xi[1], -2, 0);
    TEST_NEAR(r.cone, 0, 0);
    /* opens */
    block_on_floor(2, -3, 0.5);
    const double none[3] = {0, 0, 0};
    ck_assert(judge(&made.problem, none, xi).natural == 0);
}
END_TEST

START_TEST(the_natural_map_is_relative_to_c)
{
    double xi[3];
    block_on_floor(-4, 0, 0.5);
    /* lambda = 0: x = -xi = (4, 0, 0) lies in the cone, the map is 4, and |c| is 4 */
    const double none[3] = {0, 0, 0};
    const tb_residuals r = judge(&made.problem, none, xi);
    TEST_NEAR(r.natural_absolute, 4, 0);
    TEST_NEAR(r.natural, 1, 0);
    TEST_NEAR(r.penetration_velocity, 4, 0);
    block_on_floor(0, 0, 0.5);
    const double some[3] = {0.25, 0, 0};
    const tb_residuals zero = judge(&made.problem, some, xi);
    ck_assert(zero.natural == zero.natural_absolute && zero.natural > 0);
}
END_TEST

START_TEST(errors_have_their_own_measures)
{
    block_on_floor(-2, 0, 0.5);
    const double lambda[3] = {3, 2, 0};
    double xi[3];
    const tb_residuals r = judge(&made.problem, lambda, xi);
    TEST_NEAR(r.complementarity, 3, 1e-15); /* xi_n = 1 */
    TEST_NEAR(r.cone, 0.5, 1e-15);
    TEST_NEAR(r.penetration_velocity, 0, 0);
}
END_TEST

START_TEST(numbers_that_are_not_finite_give_an_unknown_residual_and_no_nan)
{
    block_on_floor(-2, 0, 0.5);
    made.c[1] = NAN;
    const double none[3] = {0, 0, 0};
    ck_assert(judge(&made.problem, none, NULL).natural == TB_RESIDUAL_UNKNOWN);
    const double y[1] = {1}, c[1] = {NAN};
    made_begin(&made, 1);
    made_add(&made, TB_LAW_UNILATERAL, 1, 0, 0, 1, 0, 0, y, c);
    ck_assert(judge(&made.problem, none, NULL).natural == TB_RESIDUAL_UNKNOWN);
}
END_TEST

START_TEST(applying_assembling_and_gathering_agree)
{
    static made_problem given;
    static double lambda[MADE_ROWS], s[MADE_ROWS], a[MADE_ROWS], b[MADE_ROWS], x[MADE_ROWS];
    made_random(&made, 5, 60, 20, 0.5, 1);
    for (int32_t i = 0; i < made.problem.number_of_rows; i++) made.compliance[i] = 0.1 * (i % 3);
    made.problem.compliance = made.compliance;
    made_given(&given, &made);
    tb_random random = tb_random_stream(6, 1);
    const int32_t n = made.problem.number_of_rows;
    for (int32_t i = 0; i < n; i++) lambda[i] = tb_random_normal(&random);
    tb_problem_apply(&made.problem, lambda, s, a);
    tb_problem_apply(&given.problem, lambda, s, b);
    judge(&made.problem, lambda, x);
    for (int32_t i = 0; i < n; i++) {
        TEST_NEAR(a[i], b[i], 1e-10);
        TEST_NEAR(a[i], x[i], 1e-10);
    }
    double g[9];
    tb_problem_local_block(&made.problem, 7, g);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            TEST_NEAR(g[3 * i + j], given.dense[(21 + i) * n + 21 + j], 1e-12);
    free(given.dense);
}
END_TEST

START_TEST(increments_are_measured_as_the_theses_do)
{
    const double now[3] = {1, 2, 3}, before[3] = {1, 1, 5};
    TEST_NEAR(tb_increment_theta(now, before, 3), 5, 0);
    TEST_NEAR(tb_increment_epsilon(now, before, 3), 2, 0);
    ck_assert(tb_increment_element_test(now, now, 3, 0, 0));
    ck_assert(!tb_increment_element_test(now, before, 3, 0.1, 0.5));
    ck_assert(tb_increment_element_test(now, before, 3, 0.4, 0.6)); /* 1 <= 1.0, 2 <= 2.6 */
    ck_assert(tb_increment_norm_test(now, before, 3, 0.4, 0.2));    /* 2.236 <= 2.278 */
    ck_assert(!tb_increment_norm_test(now, before, 3, 0.4, 0.1));
    const double broken[3] = {1, NAN, 3};
    ck_assert(!tb_increment_element_test(broken, before, 3, 1e9, 1e9));
    ck_assert(!tb_increment_norm_test(broken, before, 3, 1e9, 1e9));
    ck_assert(tb_increment_epsilon(broken, before, 3) == TB_RESIDUAL_UNKNOWN);
}
END_TEST

START_TEST(betzs_test_is_one_sided)
{
    double xi[3] = {1e-3, 0, 0}; /* opening under load passes: that is its weakness */
    const double r[3] = {1, 1, 1}, load[3] = {1, 0, 0}, none[3] = {0, 0, 0};
    block_on_floor(-2, 0, 0.5);
    ck_assert(tb_problem_one_sided_test(&made.problem, load, xi, r, 1e-6));
    xi[0] = -1e-3;
    ck_assert(!tb_problem_one_sided_test(&made.problem, load, xi, r, 1e-6));
    xi[0] = 0;
    xi[1] = 0.1; /* trial -0.1 inside of the disk: not at rest, not clamped */
    ck_assert(!tb_problem_one_sided_test(&made.problem, load, xi, r, 1e-6));
    xi[1] = 2; /* trial -2: clamped */
    ck_assert(tb_problem_one_sided_test(&made.problem, load, xi, r, 1e-6));
    ck_assert(tb_problem_one_sided_test(&made.problem, none, xi, r, 1e-6));
}
END_TEST

START_TEST(statuses_tell_open_stick_and_slip)
{
    block_on_floor(-2, -3, 0.5);
    uint8_t status;
    const double open[3] = {0, 0, 0}, stick[3] = {2, 0.9, 0}, slip[3] = {2, 1, 0};
    tb_problem_statuses(&made.problem, open, &status);
    ck_assert(status == TB_CONTACT_OPEN);
    tb_problem_statuses(&made.problem, stick, &status);
    ck_assert(status == TB_CONTACT_STICK);
    tb_problem_statuses(&made.problem, slip, &status);
    ck_assert(status == TB_CONTACT_SLIP);
}
END_TEST

START_TEST(the_contact_graph_joins_what_shares_a_dof)
{
    static made_problem given;
    made_random(&made, 9, 80, 30, 0.5, 1);
    made_given(&given, &made);
    tb_arena arena;
    tb_arena_init(&arena, 0);
    tb_contact_graph a, b;
    TEST_OK(tb_contact_graph_build(&made.problem, &arena, &a), NULL);
    TEST_OK(tb_contact_graph_build(&given.problem, &arena, &b), NULL);
    ck_assert(a.number_of_blocks == 80 && a.start[80] == b.start[80]);
    for (int32_t i = 0; i < 80; i++) {
        for (int32_t k = a.start[i]; k < a.start[i + 1]; k++) {
            const int32_t j = a.neighbour[k];
            ck_assert(j != i && j == b.neighbour[k]);
            ck_assert(k == a.start[i] || a.neighbour[k - 1] < j);
        }
    }
    tb_arena_destroy(&arena);
    free(given.dense);
}
END_TEST

TEST_MAIN(exact_answers_of_one_block_have_no_residual, the_natural_map_is_relative_to_c,
          errors_have_their_own_measures,
          numbers_that_are_not_finite_give_an_unknown_residual_and_no_nan,
          applying_assembling_and_gathering_agree, increments_are_measured_as_the_theses_do,
          betzs_test_is_one_sided, statuses_tell_open_stick_and_slip,
          the_contact_graph_joins_what_shares_a_dof)
