/* sor and jor: known answers, storage forms against each other, matrices that are singular or
 * skewed, scales, divergence, warm starts, numbers that are not numbers. */
#include "test_util.h"

#include "problem_util.h"

static made_problem made, given;
static made_solution one, two;

static const char *const SOLVERS[] = {"sor", "jor"};

/* a sphere of 2 kg and radius 0.1 m on a floor along Z: c is its free velocity over the step */
static void sphere_on_floor(double vx, double vz, double mu)
{
    const double m = 1 / sqrt(2.0), j = 1 / sqrt(0.4 * 2 * 0.01), r = 0.1;
    const double y[18] = {0, 0, m, 0, 0, 0, m, 0, 0, 0, -r * j, 0, 0, m, 0, r * j, 0, 0};
    const double c[3] = {vz, vx, 0};
    made_begin(&made, 6);
    made_add(&made, TB_LAW_COULOMB, 3, TB_R(mu), 0, 6, 0, 0, y, c);
}

START_TEST(a_sphere_sticks_slides_and_lifts_off)
{
    for (int k = 0; k < 2; k++) {
        const tb_solve_options options = made_options(SOLVERS[k], 1e-13);
        /* normal impulse m v; sticking needs (2/7) m vx: rolling friction of a solid sphere */
        sphere_on_floor(0.7, -1, 0.5);
        made_solve(&made.problem, &options, NULL, &one);
        TEST_STATUS(one.solution.status, TB_OK, NULL);
        TEST_NEAR(one.lambda[0], 2, 1e-12);
        TEST_NEAR(one.lambda[1], -2.0 / 7 * 2 * 0.7, 1e-12);
        ck_assert(one.statuses[0] == TB_CONTACT_STICK);

        sphere_on_floor(7, -1, 0.5);
        made_solve(&made.problem, &options, NULL, &one);
        TEST_NEAR(one.lambda[0], 2, 1e-11);
        TEST_NEAR(one.lambda[1], -1, 1e-11);
        ck_assert(one.statuses[0] == TB_CONTACT_SLIP);

        sphere_on_floor(7, 1, 0.5);
        made_solve(&made.problem, &options, NULL, &one);
        ck_assert(one.lambda[0] == 0 && one.lambda[1] == 0 && one.statuses[0] == TB_CONTACT_OPEN);
        TEST_NEAR(one.xi[1], 7, 0);

        sphere_on_floor(7, -1, 0);
        made_solve(&made.problem, &options, NULL, &one);
        TEST_NEAR(one.lambda[0], 2, 1e-11);
        ck_assert(one.lambda[1] == 0 && one.lambda[2] == 0);
    }
}
END_TEST

START_TEST(storage_forms_agree_to_rounding)
{
    made_random(&made, 11, 90, 40, 0.6, 1);
    for (int k = 0; k < 2; k++) {
        tb_solve_options options = made_options(SOLVERS[k], 0);
        options.maximum_iterations = 15;
        options.local_solve = false;
        options.accelerate = false;
        options.storage = TB_STORAGE_FACTORIZED;
        made_solve(&made.problem, &options, NULL, &one);
        for (int form = TB_STORAGE_DENSE; form <= TB_STORAGE_T; form++) {
            options.storage = (tb_storage)form;
            made_solve(&made.problem, &options, NULL, &two);
            ck_assert(two.returned == TB_OK && two.solution.iterations == 15);
            for (int32_t i = 0; i < made.problem.number_of_rows; i++)
                TEST_NEAR(two.lambda[i], one.lambda[i], 1e-11);
        }
    }
}
END_TEST

START_TEST(storage_forms_agree_from_a_warm_start)
{
    /* Nützi 3.7: with a start vector, the second tangent still sees the first one's old impulse */
    tb_random random = tb_random_stream(12, 1);
    static double warm[MADE_ROWS];
    made_random(&made, 12, 60, 25, 0.6, 1);
    for (int32_t i = 0; i < made.problem.number_of_rows; i++)
        warm[i] = i % 3 == 0 ? 1 + tb_random_uniform(&random) : 0.2 * tb_random_normal(&random);
    tb_solve_options options = made_options("sor", 0);
    options.local_solve = options.accelerate = false;
    for (int32_t sweeps = 1; sweeps < 4; sweeps++) {
        options.maximum_iterations = sweeps;
        options.storage = TB_STORAGE_FACTORIZED;
        made_solve(&made.problem, &options, warm, &one);
        for (int form = TB_STORAGE_DENSE; form <= TB_STORAGE_T; form++) {
            options.storage = (tb_storage)form;
            made_solve(&made.problem, &options, warm, &two);
            for (int32_t i = 0; i < made.problem.number_of_rows; i++)
                TEST_NEAR(two.lambda[i], one.lambda[i], 1e-12);
        }
    }
}
END_TEST

START_TEST(random_problems_are_solved_whatever_the_options)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        made_random(&made, seed, 60, 30, 0.1 * (double)(seed % 10), 1);
        for (int k = 0; k < 2; k++)
            for (int mask = 0; mask < 4; mask++) {
                tb_solve_options options = made_options(SOLVERS[k], 1e-10);
                options.local_solve = mask & 1;
                options.accelerate = mask & 2;
                made_solve(&made.problem, &options, NULL, &one);
                ck_assert_msg(one.solution.status == TB_OK, "seed %d %s mask %d: %s, %g", (int)seed,
                              SOLVERS[k], mask, tb_status_name(one.solution.status),
                              one.solution.residuals.natural);
                ck_assert(one.solution.residuals.natural <= 1e-10);
                ck_assert(one.solution.residuals.cone <= 1e-14);
            }
    }
}
END_TEST

START_TEST(problems_of_every_scale_are_solved)
{
    const double scales[] = {1e-6, 1e-3, 1, 1e3, 1e6}; /* G from 1e-12 to 1e12 per kg */
    for (int i = 0; i < 5; i++) {
        made_random(&made, 21, 40, 20, 0.5, scales[i]);
        tb_solve_options options = made_options("sor", 1e-6);
        made_solve(&made.problem, &options, NULL, &one);
        /* impulses of 1e12 N s for velocities of 1 m/s: the residual at rho = 1 is in N s there */
        const double reach = scales[i] < 1e-2 ? 1e-6 / (scales[i] * scales[i]) : 1e-6;
        ck_assert_msg(one.solution.residuals.natural <= reach, "scale %g: %g", scales[i],
                      one.solution.residuals.natural);
        ck_assert(one.solution.status == TB_OK || scales[i] < 1);
        for (int32_t r = 0; r < made.problem.number_of_rows; r++)
            ck_assert(isfinite(one.lambda[r]));
    }
}
END_TEST

START_TEST(a_matrix_that_is_not_symmetric_is_used_as_given)
{
    made_random(&made, 31, 20, 20, 0.4, 1);
    made_given(&given, &made);
    const int32_t n = given.problem.number_of_rows;
    tb_random random = tb_random_stream(32, 1);
    for (int32_t i = 0; i < n * n; i++)
        given.dense[i] += 0.05 * tb_random_normal(&random) * (i % (n + 1) != 0);
    const tb_solve_options options = made_options("sor", 1e-10);
    made_solve(&given.problem, &options, NULL, &one);
    TEST_STATUS(one.solution.status, TB_OK, NULL);
    /* judged by the matrix itself, by hand */
    for (int32_t i = 0; i < n; i++) {
        double xi = given.c[i];
        for (int32_t j = 0; j < n; j++) xi += given.dense[i * n + j] * one.lambda[j];
        TEST_NEAR(one.xi[i], xi, 1e-12);
    }
    free(given.dense);
}
END_TEST

START_TEST(redundant_contacts_are_solved)
{
    /* every contact four times: G has rank at most a quarter */
    tb_random random = tb_random_stream(41, 1);
    made_begin(&made, 12);
    for (int i = 0; i < 8; i++) {
        double y[36], c[3];
        for (int k = 0; k < 36; k++) y[k] = tb_random_normal(&random);
        for (int k = 0; k < 3; k++) c[k] = tb_random_normal(&random) - 1;
        for (int copy = 0; copy < 4; copy++)
            made_add(&made, TB_LAW_COULOMB, 3, TB_R(0.5), 0, 6, 6, 6, y, c);
    }
    for (int k = 0; k < 2; k++) {
        const tb_solve_options options = made_options(SOLVERS[k], 1e-9);
        made_solve(&made.problem, &options, NULL, &one);
        ck_assert_msg(one.solution.status == TB_OK, "%s: %g", SOLVERS[k],
                      one.solution.residuals.natural);
    }
}
END_TEST

START_TEST(rows_without_mass_behind_them_are_left_alone)
{
    const double y[18] = {0}, c[3] = {-1, 0.5, 0};
    sphere_on_floor(0.7, -1, 0.5);
    made_add(&made, TB_LAW_COULOMB, 3, TB_R(0.5), 0, 6, 0, 0, y, c);
    for (int k = 0; k < 2; k++) {
        tb_solve_options options = made_options(SOLVERS[k], 1e-12);
        options.maximum_iterations = 50;
        made_solve(&made.problem, &options, NULL, &one);
        ck_assert(one.lambda[3] == 0 && one.lambda[4] == 0 && one.lambda[5] == 0);
        TEST_NEAR(one.lambda[0], 2, 1e-9);
        ck_assert(one.solution.status == TB_NOT_CONVERGED); /* a massless dof cannot be stopped */
    }
}
END_TEST

START_TEST(other_laws_have_their_answers)
{
    const double unit[1] = {1};
    made_begin(&made, 12);
    /* a limit, a motor with a force limit, and one that it cannot exceed, each on a dof of its
     * own */
    const double approach[1] = {-3}, away[1] = {2}, weak[1] = {-0.25};
    made_add(&made, TB_LAW_UNILATERAL, 1, 0, 0, 1, 0, 0, unit, approach);
    made_add(&made, TB_LAW_UNILATERAL, 1, 0, 1, 1, 0, 0, unit, away);
    made_add(&made, TB_LAW_BOX, 1, 0, 2, 1, 0, 0, unit, approach)->upper = 1;
    made_add(&made, TB_LAW_BOX, 1, 0, 3, 1, 0, 0, unit, weak)->upper = 1;
    /* a weld of a body of six dofs */
    double y[36], c[6] = {1, 2, 3, 4, 5, 6};
    tb_random random = tb_random_stream(51, 1);
    for (int i = 0; i < 36; i++) y[i] = tb_random_normal(&random) + 3 * (i % 7 == 0);
    made_add(&made, TB_LAW_BILATERAL, 6, 0, 4, 6, 0, 0, y, c);
    /* planar */
    const double plane[4] = {1, 0, 0, 1}, slide[2] = {-2, 5};
    made_add(&made, TB_LAW_PLANAR, 2, TB_R(0.25), 10, 2, 0, 0, plane, slide);
    for (int k = 0; k < 2; k++)
        for (int local = 0; local < 2; local++)
            for (int form = TB_STORAGE_FACTORIZED; form <= TB_STORAGE_T; form++) {
                tb_solve_options options = made_options(SOLVERS[k], 1e-12);
                options.local_solve = local;
                options.storage = (tb_storage)form;
                made_solve(&made.problem, &options, NULL, &one);
                ck_assert_msg(one.solution.status == TB_OK, "%s local %d form %d: %g", SOLVERS[k],
                              local, form, one.solution.residuals.natural);
                TEST_NEAR(one.lambda[0], 3, 1e-10);
                TEST_NEAR(one.lambda[1], 0, 0);
                TEST_NEAR(one.lambda[2], 1, 1e-12);
                TEST_NEAR(one.lambda[3], 0.25, 1e-10);
                for (int i = 0; i < 6; i++) TEST_NEAR(one.xi[4 + i], 0, 1e-9);
                TEST_NEAR(one.lambda[10], 2, 1e-10);
                TEST_NEAR(one.lambda[11], -0.5, 1e-10);
            }
}
END_TEST

START_TEST(spin_and_rolling_blocks_are_solved)
{
    tb_random random = tb_random_stream(61, 1);
    made_begin(&made, 60);
    for (int i = 0; i < 20; i++) {
        double y[72], c[6];
        const int rows = i % 2 ? 4 : 6;
        for (int k = 0; k < 12 * rows; k++) y[k] = tb_random_normal(&random);
        for (int k = 0; k < rows; k++) c[k] = tb_random_normal(&random) - (k == 0);
        made_add(&made, rows == 4 ? TB_LAW_SPIN : TB_LAW_ROLLING, rows, TB_R(0.4), 6 * (i % 10), 6,
                 6 * ((i * 7 + 3) % 10 == i % 10 ? (i + 1) % 10 : (i * 7 + 3) % 10), 6, y, c);
    }
    for (int k = 0; k < 2; k++) {
        const tb_solve_options options = made_options(SOLVERS[k], 1e-9);
        made_solve(&made.problem, &options, NULL, &one);
        ck_assert_msg(one.solution.status == TB_OK, "%s: %g after %d, %d halvings", SOLVERS[k],
                      one.solution.residuals.natural, one.solution.iterations,
                      one.solution.halvings);
    }
}
END_TEST

START_TEST(compliance_makes_a_servo_yield)
{
    const double unit[1] = {1}, c[1] = {-3};
    made_begin(&made, 1);
    tb_block *block = made_add(&made, TB_LAW_BOX, 1, 0, 0, 1, 0, 0, unit, c);
    block->lower = -10;
    block->upper = 10;
    made.compliance[0] = 2; /* (1 + 2) lambda = 3 */
    made.problem.compliance = made.compliance;
    for (int form = TB_STORAGE_FACTORIZED; form <= TB_STORAGE_T; form++) {
        tb_solve_options options = made_options("sor", 1e-13);
        options.storage = (tb_storage)form;
        made_solve(&made.problem, &options, NULL, &one);
        TEST_NEAR(one.lambda[0], 1, 1e-12);
    }
}
END_TEST

START_TEST(every_r_strategy_reaches_the_answer)
{
    made_random(&made, 71, 30, 20, 0.5, 0.4);
    const tb_r_strategy strategies[] = {TB_R_DIAGONAL, TB_R_RICHARDSON, TB_R_SPECTRUM};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++) {
            tb_solve_options options = made_options(SOLVERS[k], 1e-8);
            options.r_strategy = strategies[i];
            options.maximum_halvings = 20;
            if (strategies[i] == TB_R_RICHARDSON) options.omega = 0.2;
            made_solve(&made.problem, &options, NULL, &one);
            ck_assert_msg(one.solution.status == TB_OK, "strategy %d %s: %g", i, SOLVERS[k],
                          one.solution.residuals.natural);
        }
}
END_TEST

START_TEST(every_stop_test_stops)
{
    made_random(&made, 81, 30, 20, 0.5, 1);
    for (int stop = TB_STOP_RESIDUAL; stop <= TB_STOP_ONE_SIDED; stop++) {
        tb_solve_options options = made_options("sor", stop == TB_STOP_MERIT ? 1e-18 : 1e-9);
        options.stop = (tb_stop_test)stop;
        made_solve(&made.problem, &options, NULL, &one);
        ck_assert_msg(one.solution.status == TB_OK, "stop test %d", stop);
        ck_assert(one.solution.iterations < 5000);
        /* Betz's test lets contacts open under load; all others mean a small residual */
        if (stop != TB_STOP_ONE_SIDED) ck_assert(one.solution.residuals.natural < 1e-6);
    }
}
END_TEST

START_TEST(divergence_is_rolled_back_and_omega_halved)
{
    /* forty contacts on one body: Jacobi with omega 1 multiplies every change by far more than
     * one */
    made_random(&made, 91, 40, 1, 0.5, 1);
    tb_solve_options options = made_options("jor", 1e-8);
    options.omega = 1;
    options.maximum_halvings = 10;
    made_solve(&made.problem, &options, NULL, &one);
    ck_assert(one.solution.halvings > 0);
    ck_assert_msg(one.solution.status == TB_OK, "%s, residual %g, %d halvings, %d sweeps",
                  tb_status_name(one.solution.status), one.solution.residuals.natural,
                  one.solution.halvings, one.solution.iterations);
    options.maximum_halvings = 0;
    made_solve(&made.problem, &options, NULL, &one);
    TEST_STATUS(one.solution.status, TB_DIVERGED, NULL);
    for (int32_t i = 0; i < made.problem.number_of_rows; i++) ck_assert(isfinite(one.lambda[i]));
}
END_TEST

START_TEST(numbers_that_are_not_finite_diverge_and_nothing_but_zeros_leaves)
{
    for (int k = 0; k < 2; k++)
        for (int which = 0; which < 4; which++) {
            made_random(&made, 95, 20, 10, 0.5, 1);
            const double bad = which % 2 ? INFINITY : NAN;
            if (which < 2)
                made.c[17] = TB_R(bad);
            else
                made.values[40] = TB_R(bad);
            const tb_solve_options options = made_options(SOLVERS[k], 1e-8);
            made_solve(&made.problem, &options, NULL, &one);
            TEST_STATUS(one.solution.status, TB_DIVERGED, NULL);
            for (int32_t i = 0; i < made.problem.number_of_rows; i++) {
                ck_assert(one.lambda[i] == 0);
                ck_assert(isfinite(one.xi[i]));
            }
            ck_assert(isfinite(one.solution.residuals.natural));
        }
}
END_TEST

START_TEST(a_warm_start_costs_one_sweep_and_refines_to_rest)
{
    /* fourteen contacts between two bodies, nearly all stuck: a grasp */
    made_random(&made, 103, 14, 2, 1.5, 1);
    static double warm[MADE_ROWS];
    tb_solve_options options = made_options("sor", 1e-6);
    made_solve(&made.problem, &options, NULL, &one);
    const int32_t cold = one.solution.iterations;
    double residual = one.solution.residuals.natural;
    for (int step = 0; step < 400; step++) {
        memcpy(warm, one.lambda, sizeof warm);
        made_solve(&made.problem, &options, warm, &one);
        ck_assert_msg(one.solution.iterations == 1, "step %d: %d sweeps", step,
                      one.solution.iterations);
    }
    ck_assert(cold > 1);
    ck_assert_msg(one.solution.residuals.natural < 1e-13 &&
                      one.solution.residuals.natural < residual,
                  "residual %g", one.solution.residuals.natural);
}
END_TEST

START_TEST(a_warm_start_that_is_not_finite_or_outside_its_sets_is_mended)
{
    made_random(&made, 103, 20, 10, 0.5, 1);
    static double warm[MADE_ROWS];
    for (int32_t i = 0; i < made.problem.number_of_rows; i++) warm[i] = i % 7 ? -50.0 : NAN;
    const tb_solve_options options = made_options("sor", 1e-9);
    made_solve(&made.problem, &options, warm, &one);
    TEST_STATUS(one.solution.status, TB_OK, NULL);
}
END_TEST

START_TEST(the_same_problem_gives_the_same_bytes)
{
    made_random(&made, 105, 100, 40, 0.5, 1);
    const tb_solve_options options = made_options("sor", 1e-9);
    made_solve(&made.problem, &options, NULL, &one);
    made_solve(&made.problem, &options, NULL, &two);
    ck_assert(memcmp(one.lambda, two.lambda, 300 * sizeof(tb_real)) == 0);
}
END_TEST

/* The answer is unique with few contacts on many dofs; colours change the order, threads
 * nothing. */
START_TEST(coloured_agrees_with_sor_on_any_number_of_threads)
{
    made_random(&made, 109, 90, 60, 0.5, 1);
    const tb_solve_options options = made_options("sor", 1e-12);
    tb_solve_options coloured = made_options("coloured", 1e-12);
    coloured.threads = 1;
    made_solve(&made.problem, &options, NULL, &one);
    made_solve(&made.problem, &coloured, NULL, &two);
    TEST_STATUS(one.solution.status, TB_OK, NULL);
    TEST_STATUS(two.solution.status, TB_OK, NULL);
    ck_assert_str_eq(two.solution.solver, "coloured");
    for (int32_t i = 0; i < 270; i++) TEST_NEAR(two.xi[i], one.xi[i], 1e-9);
    for (int32_t threads = 2; threads < 6; threads += 3) {
        coloured.threads = threads;
        made_solve(&made.problem, &coloured, NULL, &one);
        ck_assert(memcmp(one.lambda, two.lambda, 270 * sizeof(tb_real)) == 0);
    }
    coloured.storage = TB_STORAGE_T;
    made_solve(&made.problem, &coloured, NULL, &one);
    TEST_STATUS(one.returned, TB_UNSUPPORTED, NULL);
}
END_TEST

/* Other colours are another order: the same velocities, other impulses on the way, and bytes that threads
 * do not change. */
START_TEST(colourings_agree_on_any_number_of_threads)
{
    made_random(&made, 109, 90, 60, 0.5, 1);
    tb_solve_options options = made_options("coloured", 1e-12);
    made_solve(&made.problem, &options, NULL, &one);
    static tb_real xi[270], first[270], rigid[270];
    memcpy(xi, one.xi, sizeof xi);
    for (int way = 0; way < 4; way++) {
        options.colouring = (tb_solve_colouring)(way < 3 ? way : TB_COLOURING_BALANCED);
        options.colours = way == 3 ? 80 : 0;
        options.maximum_iterations = 3;
        options.threads = 1;
        made_solve(&made.problem, &options, NULL, &one);
        memcpy(first, one.lambda, sizeof first);
        if (way == 0)
            memcpy(rigid, first, sizeof rigid);
        else
            ck_assert(memcmp(first, rigid, sizeof rigid) != 0);
        options.threads = 5;
        made_solve(&made.problem, &options, NULL, &one);
        ck_assert(memcmp(first, one.lambda, sizeof first) == 0);
        options.maximum_iterations = 100000;
        made_solve(&made.problem, &options, NULL, &one);
        TEST_STATUS(one.solution.status, TB_OK, NULL);
        for (int32_t i = 0; i < 270; i++) TEST_NEAR(one.xi[i], xi[i], 1e-9);
    }
    options.colouring = (tb_solve_colouring)3;
    made_solve(&made.problem, &options, NULL, &one);
    TEST_STATUS(one.returned, TB_INVALID_ARGUMENT, NULL);
}
END_TEST

START_TEST(whitened_velocity_comes_back)
{
    made_random(&made, 107, 30, 10, 0.5, 1);
    const tb_solve_options options = made_options("sor", 1e-9);
    static double s[MADE_ROWS];
    made_solve(&made.problem, &options, NULL, &one);
    tb_problem_whiten(&made.problem, one.lambda, s);
    for (int32_t i = 0; i < 60; i++) TEST_NEAR(one.whitened[i], s[i], 1e-12);
}
END_TEST

START_TEST(bad_options_are_refused)
{
    sphere_on_floor(1, -1, 0.5);
    tb_solve_options options = made_options("sor", NAN);
    made_solve(&made.problem, &options, NULL, &one);
    ck_assert(one.returned == TB_INVALID_ARGUMENT);
    options = made_options("sor", 1e-6);
    options.maximum_iterations = 0;
    made_solve(&made.problem, &options, NULL, &one);
    ck_assert(one.returned == TB_INVALID_ARGUMENT);
    options = made_options("sor", 1e-6);
    options.omega = -1;
    made_solve(&made.problem, &options, NULL, &one);
    ck_assert(one.returned == TB_INVALID_ARGUMENT);
    ck_assert(tb_solver_find("nonesuch") == NULL && tb_solver_find(NULL) == NULL);
    ck_assert_str_eq(tb_solver_name(0), "sor");
    ck_assert(tb_solver_name(99) == NULL && tb_solver_summary(-1) == NULL);
    made_given(&given, &made);
    options = made_options("sor", 1e-6);
    options.storage = TB_STORAGE_FACTORIZED;
    made_solve(&given.problem, &options, NULL, &one);
    ck_assert(one.returned == TB_UNSUPPORTED);
    free(given.dense);
}
END_TEST

START_TEST(a_problem_without_contacts_is_solved)
{
    made_begin(&made, 6);
    const tb_solve_options options = made_options("sor", 1e-9);
    made_solve(&made.problem, &options, NULL, &one);
    TEST_STATUS(one.solution.status, TB_OK, NULL);
}
END_TEST

/* Sweeps that steps from the statuses had to end: the history learns what both cost, so that the next solve
 * can begin with the steps. */
START_TEST(auto_learns_the_cost_of_sweeps_that_steps_from_statuses_ended)
{
    enum { CONTACTS = 60 };
    const tb_solve_options options = made_options("auto", 1e-6);
    int32_t cases = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        made_random(&made, seed, CONTACTS, 10, 1.2, 1);
        tb_solve_history history = {0};
        made_solve_warm(&made.problem, &options, (tb_warm_start){.history = &history}, &one);
        const tb_solution *solution = &one.solution;
        TEST_STATUS(solution->status, TB_OK, NULL);
        const int32_t sweeps = solution->iterations - solution->work.linear_solves;
        if (solution->work.linear_solves == 0 || sweeps != 30) continue;
        ck_assert_msg(history.sweeps > sweeps, "%g after %d", history.sweeps, sweeps);
        cases++;
    }
    ck_assert_int_gt(cases, 0);
}
END_TEST

TEST_MAIN(a_sphere_sticks_slides_and_lifts_off, storage_forms_agree_to_rounding,
          storage_forms_agree_from_a_warm_start, random_problems_are_solved_whatever_the_options,
          problems_of_every_scale_are_solved, a_matrix_that_is_not_symmetric_is_used_as_given,
          redundant_contacts_are_solved, rows_without_mass_behind_them_are_left_alone,
          other_laws_have_their_answers, spin_and_rolling_blocks_are_solved,
          compliance_makes_a_servo_yield, every_r_strategy_reaches_the_answer,
          every_stop_test_stops, divergence_is_rolled_back_and_omega_halved,
          numbers_that_are_not_finite_diverge_and_nothing_but_zeros_leaves,
          a_warm_start_costs_one_sweep_and_refines_to_rest,
          a_warm_start_that_is_not_finite_or_outside_its_sets_is_mended,
          the_same_problem_gives_the_same_bytes, coloured_agrees_with_sor_on_any_number_of_threads,
          colourings_agree_on_any_number_of_threads, whitened_velocity_comes_back,
          bad_options_are_refused, a_problem_without_contacts_is_solved,
          auto_learns_the_cost_of_sweeps_that_steps_from_statuses_ended)
