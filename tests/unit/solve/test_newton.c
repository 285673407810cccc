/* newton and auto: slopes of the laws against differences, known answers, agreement with sor for
 * every law, refinement of sor's result, warm starts, failures. */
#include "test_util.h"

#include "problem_util.h"
#include "solve/newton/law_slope.h"
#include "solve/newton/newton_internal.h"
#include "solve/sweep/rows.h"

static made_problem made, given;
static made_solution one, two;

static const char *const SOLVERS[] = {"newton", "auto"};

/* ---- slopes ---- */

/* columns of dx/dz by central differences */
static void differences(const tb_block *block, const double *z, double *d)
{
    const double h = 1e-6;
    for (int j = 0; j < block->rows; j++) {
        double left[6], right[6];
        for (int i = 0; i < block->rows; i++) left[i] = right[i] = z[i];
        left[j] -= h;
        right[j] += h;
        tb_prox_block(block->law, block->rows, block->mu, block->lower, block->upper, left);
        tb_prox_block(block->law, block->rows, block->mu, block->lower, block->upper, right);
        for (int i = 0; i < block->rows; i++)
            d[i * block->rows + j] = (right[i] - left[i]) / (2 * h);
    }
}

START_TEST(slopes_of_all_laws_are_those_of_their_projections)
{
    static const struct {
        tb_law law;
        int rows;
    } LAWS[] = {{TB_LAW_UNILATERAL, 1}, {TB_LAW_PLANAR, 2},  {TB_LAW_COULOMB, 3},
                {TB_LAW_SPIN, 4},       {TB_LAW_ROLLING, 6}, {TB_LAW_BILATERAL, 5},
                {TB_LAW_BOX, 1}};
    tb_random random = tb_random_stream(7, 1);
    int seen[3] = {0, 0, 0};
    for (size_t l = 0; l < sizeof LAWS / sizeof LAWS[0]; l++)
        for (int n = 0; n < 300; n++) {
            const tb_block block = {
                .law = LAWS[l].law, .rows = LAWS[l].rows, .mu = 0.6, .lower = -1, .upper = 0.5};
            double z[6] = {0}, x[6] = {0}, d[36], by_differences[36];
            for (int i = 0; i < block.rows; i++) z[i] = 1.5 * tb_random_normal(&random);
            if (n % 5 == 0 && block.rows > 2) z[2] = 0; /* along an axis */
            for (int i = 0; i < block.rows; i++) x[i] = z[i];
            tb_prox_block(block.law, block.rows, block.mu, block.lower, block.upper, x);
            const tb_contact_status status = tb_law_slope(&block, z, x, x, d);
            seen[status]++;
            differences(&block, z, by_differences);
            for (int i = 0; i < block.rows * block.rows; i++) {
                const double size = 1 + fabs(by_differences[i]);
                TEST_NEAR(d[i], by_differences[i], 1e-4 * size);
            }

            /* at a solution the statuses and the projection say the same, slip, spin and rolling alike */
            double assumed[6], of_status[36];
            const double reach =
                block.rows > 2 ? hypot(z[1] - x[1], z[2] - x[2]) : fabs(z[1] - x[1]);
            ck_assert(tb_law_slope_of_status(&block, (int)status, reach, z, x, assumed,
                                             of_status) == status);
            for (int i = 0; i < block.rows; i++) TEST_NEAR(assumed[i], x[i], 1e-3);
            for (int i = 0; i < block.rows * block.rows; i++) TEST_NEAR(of_status[i], d[i], 2e-3);
        }
    ck_assert(seen[TB_CONTACT_OPEN] > 100 && seen[TB_CONTACT_STICK] > 100 &&
              seen[TB_CONTACT_SLIP] > 100);
}
END_TEST

/* ---- known answers ---- */

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
        sphere_on_floor(0.7, -1, 0.5);
        made_solve(&made.problem, &options, NULL, &one);
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

        sphere_on_floor(7, -1, 0);
        made_solve(&made.problem, &options, NULL, &one);
        TEST_NEAR(one.lambda[0], 2, 1e-11);
        ck_assert(one.lambda[1] == 0 && one.lambda[2] == 0);
    }
}
END_TEST

START_TEST(other_laws_have_their_answers)
{
    const double unit[1] = {1};
    made_begin(&made, 12);
    const double approach[1] = {-3}, away[1] = {2}, weak[1] = {-0.25};
    made_add(&made, TB_LAW_UNILATERAL, 1, 0, 0, 1, 0, 0, unit, approach);
    made_add(&made, TB_LAW_UNILATERAL, 1, 0, 1, 1, 0, 0, unit, away);
    made_add(&made, TB_LAW_BOX, 1, 0, 2, 1, 0, 0, unit, approach)->upper = 1;
    made_add(&made, TB_LAW_BOX, 1, 0, 3, 1, 0, 0, unit, weak)->upper = 1;
    double y[36], c[6] = {1, 2, 3, 4, 5, 6};
    tb_random random = tb_random_stream(51, 1);
    for (int i = 0; i < 36; i++) y[i] = tb_random_normal(&random) + 3 * (i % 7 == 0);
    made_add(&made, TB_LAW_BILATERAL, 6, 0, 4, 6, 0, 0, y, c);
    const double plane[4] = {1, 0, 0, 1}, slide[2] = {-2, 5};
    made_add(&made, TB_LAW_PLANAR, 2, TB_R(0.25), 10, 2, 0, 0, plane, slide);
    made_given(&given, &made);
    for (int k = 0; k < 2; k++)
        for (int form = 0; form < 2; form++) {
            const tb_solve_options options = made_options(SOLVERS[k], 1e-12);
            made_solve(form ? &given.problem : &made.problem, &options, NULL, &one);
            TEST_STATUS(one.solution.status, TB_OK, NULL);
            TEST_NEAR(one.lambda[0], 3, 1e-10);
            TEST_NEAR(one.lambda[1], 0, 0);
            TEST_NEAR(one.lambda[2], 1, 1e-10);
            TEST_NEAR(one.lambda[3], 0.25, 1e-10);
            for (int i = 0; i < 6; i++) TEST_NEAR(one.xi[4 + i], 0, 1e-10);
            TEST_NEAR(one.lambda[10], 2, 1e-10);
            TEST_NEAR(one.lambda[11], -0.5, 1e-10);
        }
    free(given.dense);
}
END_TEST

/* ---- against sor ---- */

/* One law or all of them between random pairs of ten bodies; bilateral blocks couple two rows. */
static void random_of_law(tb_law law, bool all, uint64_t seed, bool compliant)
{
    static const int ROWS[] = {1, 2, 3, 4, 6, 2, 1};
    tb_random random = tb_random_stream(seed, 61);
    made_begin(&made, 60);
    for (int i = 0; i < 24; i++) {
        double y[72], c[6];
        const tb_law own = all ? (tb_law)(i % 7) : law;
        const int rows = ROWS[own], a = i % 10, b = (i * 7 + 3) % 10;
        if (own == TB_LAW_BILATERAL && i > 12) continue; /* more would contradict each other */
        for (int k = 0; k < 12 * rows; k++) y[k] = tb_random_normal(&random);
        for (int k = 0; k < rows; k++) c[k] = tb_random_normal(&random) - (k == 0);
        tb_block *block =
            made_add(&made, own, rows, TB_R(0.4), 6 * a, 6, 6 * (b == a ? 9 - a : b), 6, y, c);
        block->lower = -0.05;
        block->upper = 0.03;
    }
    if (!compliant) return;
    for (int32_t i = 0; i < made.problem.number_of_rows; i++)
        made.compliance[i] = 3 * tb_random_uniform(&random);
    made.problem.compliance = made.compliance;
}

START_TEST(every_law_agrees_with_sor)
{
    for (int law = 0; law <= TB_LAW_BOX + 1; law++)
        for (uint64_t seed = 0; seed < 6; seed++) {
            random_of_law((tb_law)law, law > TB_LAW_BOX, seed, seed % 2);
            made_given(&given, &made);
            tb_solve_options options = made_options("sor", 1e-12);
            made_solve(&made.problem, &options, NULL, &two);
            TEST_STATUS(two.solution.status, TB_OK, NULL);
            options = made_options("newton", 1e-10);
            options.maximum_iterations = 300;
            for (int form = 0; form < 2; form++) {
                made_solve(form ? &given.problem : &made.problem, &options, NULL, &one);
                ck_assert_msg(one.solution.status == TB_OK, "law %d seed %d form %d: %g after %d",
                              law, (int)seed, form, one.solution.residuals.natural,
                              one.solution.iterations);
                for (int32_t i = 0; i < made.problem.number_of_rows; i++)
                    TEST_NEAR(one.xi[i], two.xi[i], 1e-7);
            }
            free(given.dense);
        }
}
END_TEST

START_TEST(random_piles_are_solved_to_1e_10)
{
    for (uint64_t seed = 0; seed < 30; seed++) {
        made_random(&made, seed, 120, 20 + (int32_t)seed, 0.1 * (double)(seed % 11), 1);
        for (int k = 0; k < 2; k++) {
            const tb_solve_options options = made_options(SOLVERS[k], 1e-10);
            made_solve(&made.problem, &options, NULL, &one);
            ck_assert_msg(one.solution.status == TB_OK, "seed %d %s: %g after %d", (int)seed,
                          SOLVERS[k], one.solution.residuals.natural, one.solution.iterations);
        }
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
    const tb_solve_options options = made_options("newton", 1e-12);
    made_solve(&given.problem, &options, NULL, &one);
    TEST_STATUS(one.solution.status, TB_OK, NULL);
    ck_assert_str_eq(one.solution.solver, "newton");
    for (int32_t i = 0; i < n; i++) {
        double xi = given.c[i];
        for (int32_t j = 0; j < n; j++) xi += given.dense[i * n + j] * one.lambda[j];
        TEST_NEAR(one.xi[i], xi, 1e-12);
    }
    free(given.dense);
}
END_TEST

/* ---- after sor ---- */

/* Boxes upon each other, each as heavy as `ratio` of the one below, four contacts between each pair
 * and none at the same place: 12 rows for 6 dofs. */
static void stack_of_boxes(int boxes, double ratio)
{
    static const double CORNERS[4][2] = {{1, 1}, {1, -1}, {-1, -1}, {-1, 1}};
    made_begin(&made, 6 * boxes);
    double mass = 1;
    for (int i = 0; i < boxes; i++) {
        const double below = mass;
        if (i > 0) mass *= ratio;
        for (int k = 0; k < 4; k++) {
            double y[36] = {0}, c[3] = {-0.01, 1e-4, 0};
            const int width = i > 0 ? 12 : 6;
            for (int side = 0; side < width / 6; side++) {
                const double m = side ? mass : (i > 0 ? below : mass), sign = side || !i ? 1 : -1;
                const double x = 0.1 * CORNERS[k][0], z = sign > 0 ? -0.1 : 0.1;
                const double yy = 0.1 * CORNERS[k][1];
                const double root = sign / sqrt(m), turn = sign / sqrt(m * 0.02 / 3);
                double *n = y + 6 * side, *t = n + width, *u = t + width;
                n[2] = t[0] = u[1] = root;
                n[3] = yy * turn; /* r x e */
                n[4] = -x * turn;
                t[4] = z * turn;
                t[5] = -yy * turn;
                u[3] = -z * turn;
                u[5] = x * turn;
            }
            if (i > 0) c[0] = c[1] = 0; /* all fall and slide together */
            made_add(&made, TB_LAW_COULOMB, 3, TB_R(0.5), i > 0 ? 6 * i - 6 : 0, 6, 6 * i,
                     i > 0 ? 6 : 0, y, c);
        }
    }
}

START_TEST(a_stack_that_grows_heavier_upwards_needs_newton)
{
    stack_of_boxes(8, 3);
    tb_solve_options options = made_options("sor", 1e-10);
    options.maximum_iterations = 2000;
    made_solve(&made.problem, &options, NULL, &one);
    ck_assert(one.solution.status == TB_NOT_CONVERGED);
    for (int k = 0; k < 2; k++) {
        options.solver = SOLVERS[k];
        made_solve(&made.problem, &options, NULL, &one);
        ck_assert_msg(one.solution.status == TB_OK, "%s: %g", SOLVERS[k],
                      one.solution.residuals.natural);
        ck_assert_str_eq(one.solution.solver, "newton");
        ck_assert(one.solution.iterations < 300);
        double load = 0, mass = 0;
        for (int i = 0; i < 8; i++) mass += pow(3, i);
        for (int i = 0; i < 4; i++) load += one.lambda[3 * i];
        TEST_NEAR_RELATIVE(load, 0.01 * mass, 1e-8);
    }
}
END_TEST

START_TEST(a_warm_start_needs_less_than_a_cold_one)
{
    stack_of_boxes(6, 2);
    static double warm[MADE_ROWS];
    for (int k = 0; k < 2; k++) {
        const tb_solve_options options = made_options(SOLVERS[k], 1e-10);
        made_solve(&made.problem, &options, NULL, &one);
        const int32_t cold = one.solution.iterations;
        memcpy(warm, one.lambda, sizeof warm);
        made_solve(&made.problem, &options, warm, &one);
        TEST_STATUS(one.solution.status, TB_OK, NULL);
        ck_assert_msg(one.solution.iterations == 1, "the same again: %d", one.solution.iterations);

        /* the next step's load, the same contacts */
        const tb_real before[2] = {made.c[0], made.c[1]};
        for (int i = 0; i < 4; i++) {
            made.c[3 * i] *= TB_R(1.01);
            made.c[3 * i + 1] *= TB_R(0.9);
        }
        made_solve(&made.problem, &options, warm, &one);
        TEST_STATUS(one.solution.status, TB_OK, NULL);
        ck_assert_msg(one.solution.iterations < cold, "%s: %d warm, %d cold", SOLVERS[k],
                      one.solution.iterations, cold);
        for (int i = 0; i < 8; i++) made.c[3 * (i / 2) + i % 2] = before[i % 2];
    }
}
END_TEST

/* Cold loads of a stack on which sweeps fail: with a history `auto` does not sweep in vain each
 * time, but tries sweeps now and then; and where sweeps work, it returns to them. */
START_TEST(auto_begins_with_what_was_the_cheaper_way)
{
    enum { SOLVES = 60 };
    const tb_solve_options options = made_options("auto", 1e-10);
    tb_solve_history history = {0};
    const tb_warm_start warm = {.history = &history};
    stack_of_boxes(8, 3);
    made_solve(&made.problem, &options, NULL, &one);
    ck_assert_str_eq(one.solution.solver, "newton");
    const int32_t alone = one.solution.iterations - one.solution.work.linear_solves;
    const tb_real load = made.c[0];
    int32_t begun = 0, sweeps = 0;
    for (int i = 0; i < SOLVES; i++) {
        made.c[0] =
            load * TB_R(1 + 1e-3 * (i % 7)); /* the steps of a world are never quite alike */
        made_solve_warm(&made.problem, &options, warm, &one);
        TEST_STATUS(one.solution.status, TB_OK, NULL);
        const int32_t made_here = one.solution.iterations - one.solution.work.linear_solves;
        begun += made_here <= 5; /* factorizations of Newton itself */
        sweeps += made_here;
    }
    ck_assert_msg(begun > SOLVES / 4 && begun < SOLVES, "Newton began %d of %d", begun, SOLVES);
    ck_assert_msg(2 * sweeps < SOLVES * alone, "%d sweeps, alone %d a solve", sweeps, alone);

    /* one box on the floor: Newton's way is forgotten */
    stack_of_boxes(1, 1);
    for (int i = 0; i < SOLVES; i++) {
        made_solve_warm(&made.problem, &options, warm, &one);
        TEST_STATUS(one.solution.status, TB_OK, NULL);
    }
    ck_assert_str_eq(one.solution.solver, "sor");
}
END_TEST

/* Sweeps whose average is high, since Newton had to end them once, end solves from wrong statuses: the
 * average follows at once, so that the next solve begins with sweeps. */
START_TEST(auto_returns_to_sweeps_that_end_what_steps_from_statuses_left)
{
    enum { CONTACTS = 30 };
    const tb_solve_options options = made_options("auto", 1e-6);
    int32_t cases = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        made_random(&made, seed, CONTACTS, 6, 1.5, 1);
        double zero[3 * CONTACTS] = {0};
        uint8_t statuses[CONTACTS];
        for (int b = 0; b < CONTACTS; b++) statuses[b] = (uint8_t)((b + (int)seed) % 3);
        tb_solve_history history = {.sweeps = 1000, .steps = 1, .price = 1};
        tb_warm_start warm = {.lambda = zero, .statuses = statuses, .history = &history};
        made_solve_warm(&made.problem, &options, warm, &one);
        const double sweeps = one.solution.iterations - one.solution.work.linear_solves;
        const bool stepped = one.solution.work.linear_solves > 0;
        /* after 30 sweeps steps from statuses are tried once more */
        if (strcmp(one.solution.solver, "sor") != 0 || !stepped || sweeps > 30) continue;
        ck_assert_msg(history.sweeps <= 0.5 * (1000 + sweeps), "%g after %g", history.sweeps,
                      sweeps);
        cases++;
    }
    ck_assert_int_gt(cases, 0);
}
END_TEST

/* ---- manners ---- */

START_TEST(the_same_problem_gives_the_same_bytes_and_memory_is_taken_once)
{
    made_random(&made, 105, 120, 30, 0.5, 1);
    for (int k = 0; k < 2; k++) {
        const tb_solve_options options = made_options(SOLVERS[k], 1e-10);
        tb_arena arena;
        tb_arena_init(&arena, 0);
        static tb_real first[MADE_ROWS];
        int64_t allocations = 0;
        for (int run = 0; run < 3; run++) {
            tb_warm_start warm = {.scratch = &arena};
            one.solution = (tb_solution){.lambda = one.lambda,
                                         .xi = one.xi,
                                         .whitened = one.whitened,
                                         .statuses = one.statuses};
            ck_assert(tb_solver_find(SOLVERS[k])(&made.problem, &options, &warm, &one.solution) ==
                      TB_OK);
            if (run == 0) memcpy(first, one.lambda, sizeof first);
            ck_assert(memcmp(first, one.lambda, 360 * sizeof(tb_real)) == 0);
            tb_arena_reset(&arena);
            if (run == 1) allocations = arena.allocations;
            if (run == 2) ck_assert(arena.allocations == allocations);
        }
        tb_arena_destroy(&arena);
    }
}
END_TEST

START_TEST(whitened_velocity_comes_back)
{
    made_random(&made, 107, 30, 10, 0.5, 1);
    const tb_solve_options options = made_options("newton", 1e-9);
    static double s[MADE_ROWS];
    made_solve(&made.problem, &options, NULL, &one);
    ck_assert_str_eq(one.solution.solver, "newton");
    tb_problem_whiten(&made.problem, one.lambda, s);
    for (int32_t i = 0; i < 60; i++) TEST_NEAR(one.whitened[i], s[i], 1e-12);
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
            for (int32_t i = 0; i < made.problem.number_of_rows; i++)
                ck_assert(one.lambda[i] == 0 && isfinite(one.xi[i]));
            ck_assert(isfinite(one.solution.residuals.natural));
        }
}
END_TEST

START_TEST(what_cannot_be_reached_is_said_and_costs_no_more_than_allowed)
{
    for (int k = 0; k < 2; k++) {
        /* two welds of one dof to different velocities */
        const double unit[1] = {1}, up[1] = {1}, down[1] = {-1};
        made_begin(&made, 1);
        made_add(&made, TB_LAW_BILATERAL, 1, 0, 0, 1, 0, 0, unit, up);
        made_add(&made, TB_LAW_BILATERAL, 1, 0, 0, 1, 0, 0, unit, down);
        tb_solve_options options = made_options(SOLVERS[k], 1e-8);
        options.maximum_iterations = 500;
        made_solve(&made.problem, &options, NULL, &one);
        TEST_STATUS(one.solution.status, TB_NOT_CONVERGED, NULL);
        ck_assert(one.solution.iterations <= 500);
        TEST_NEAR(one.xi[0], 1, 0.1); /* between both, to the gain that is worthwhile */
        TEST_NEAR(one.xi[1], -1, 0.1);
        ck_assert(fabs(one.lambda[0]) < 100);

        /* a massless dof cannot be stopped */
        const double y[18] = {0}, c[3] = {-1, 0.5, 0};
        sphere_on_floor(0.7, -1, 0.5);
        made_add(&made, TB_LAW_COULOMB, 3, TB_R(0.5), 0, 6, 0, 0, y, c);
        made_solve(&made.problem, &options, NULL, &one);
        TEST_STATUS(one.solution.status, TB_NOT_CONVERGED, NULL);
        ck_assert(one.lambda[3] == 0 && one.lambda[4] == 0 && one.lambda[5] == 0);
        TEST_NEAR(one.lambda[0], 2, 1e-9);

        /* beyond rounding */
        made_random(&made, 3, 60, 20, 0.5, 1);
        options.tolerance = 1e-18;
        made_solve(&made.problem, &options, NULL, &one);
        ck_assert(one.solution.iterations <= 500);
        ck_assert(one.solution.residuals.natural < 1e-10);
    }
}
END_TEST

static bool cancel(void *context)
{
    return ++*(int *)context > 12;
}

START_TEST(a_solve_is_cancelled)
{
    stack_of_boxes(8, 3);
    for (int k = 0; k < 2; k++) {
        int asked = 0;
        tb_solve_options options = made_options(SOLVERS[k], 1e-14);
        options.cancelled = cancel;
        options.cancelled_context = &asked;
        made_solve(&made.problem, &options, NULL, &one);
        ck_assert(one.returned == TB_CANCELLED && asked == 13);
    }
}
END_TEST

START_TEST(bad_options_are_refused_and_empty_problems_solved)
{
    sphere_on_floor(1, -1, 0.5);
    for (int k = 0; k < 2; k++) {
        tb_solve_options options = made_options(SOLVERS[k], NAN);
        made_solve(&made.problem, &options, NULL, &one);
        ck_assert(one.returned == TB_INVALID_ARGUMENT);
        options = made_options(SOLVERS[k], 1e-6);
        options.maximum_iterations = 0;
        made_solve(&made.problem, &options, NULL, &one);
        ck_assert(one.returned == TB_INVALID_ARGUMENT);
    }
    made_begin(&made, 6);
    for (int k = 0; k < 2; k++) {
        const tb_solve_options options = made_options(SOLVERS[k], 1e-9);
        made_solve(&made.problem, &options, NULL, &one);
        ck_assert(one.returned == TB_OK && one.solution.status == TB_OK);
    }
}
END_TEST

START_TEST(auto_sweeps_where_sweeps_will_do)
{
    made_random(&made, 3, 60, 30, 0.3, 1);
    const tb_solve_options options = made_options("auto", 1e-4);
    made_solve(&made.problem, &options, NULL, &one);
    TEST_STATUS(one.solution.status, TB_OK, NULL);
    ck_assert_str_eq(one.solution.solver, "sor");
}
END_TEST

/* Rows that all give way, and statuses that follow from c alone, as a recovery knows them: without a
 * history `auto` makes steps from these statuses and no sweep. Without statuses it begins with
 * sweeps. */
START_TEST(auto_begins_with_the_statuses_where_rows_give_way)
{
    static double zero[MADE_ROWS];
    static uint8_t statuses[MADE_BLOCKS];
    for (uint64_t seed = 0; seed < 20; seed++) {
        random_of_law(TB_LAW_UNILATERAL, false, seed, true);
        tb_solve_options options = made_options("sor", 1e-13);
        made_solve(&made.problem, &options, NULL, &two);
        TEST_STATUS(two.solution.status, TB_OK, NULL);
        for (int32_t b = 0; b < made.problem.number_of_blocks; b++)
            statuses[b] = made.c[made.blocks[b].row] < 0 ? TB_CONTACT_SLIP : TB_CONTACT_OPEN;
        options = made_options("auto", 1e-10);
        options.warm_start = true;
        const tb_warm_start known = {.lambda = zero, .statuses = statuses};
        made_solve_warm(&made.problem, &options, known, &one);
        TEST_STATUS(one.solution.status, TB_OK, NULL);
        ck_assert_int_eq(one.solution.iterations, one.solution.work.linear_solves);
        ck_assert_int_le(one.solution.work.linear_solves, 6); /* one run of steps */
        for (int32_t i = 0; i < made.problem.number_of_rows; i++)
            TEST_NEAR(one.lambda[i], two.lambda[i], 1e-8);
        made_solve(&made.problem, &options, NULL, &one);
        TEST_STATUS(one.solution.status, TB_OK, NULL);
        ck_assert_int_gt(one.solution.iterations, one.solution.work.linear_solves);
    }
}
END_TEST

/* Four contacts of one body whose normals cancel each other, as of a link that jams, and a start
 * that is far along them: its rounding exceeds the tolerance. */
START_TEST(a_start_of_impulses_that_cancel_is_given_up)
{
    for (uint64_t seed = 0; seed < 10; seed++) {
        tb_random random = tb_random_stream(seed, 93);
        tb_real start[12] = {0};
        double sum[6] = {0};
        made_begin(&made, 6);
        for (int k = 0; k < 4; k++) {
            double y[18];
            for (int i = 0; i < 18; i++) y[i] = tb_random_normal(&random);
            for (int i = 0; i < 6; i++) {
                y[i] = k < 3 ? y[i] : -sum[i];
                sum[i] += y[i];
            }
            const double c[3] = {0, tb_random_normal(&random), tb_random_normal(&random)};
            made_add(&made, TB_LAW_COULOMB, 3, TB_R(0.5), 0, 6, 0, 0, y, c);
            start[3 * k] = TB_R(3e10);
        }
        for (int k = 0; k < 2; k++) {
            tb_solve_options options = made_options(SOLVERS[k], 1e-6);
            options.maximum_iterations = 2000;
            options.warm_start = true;
            made_solve(&made.problem, &options, start, &one);
            ck_assert_msg(one.solution.status == TB_OK, "seed %d %s: %g after %d", (int)seed,
                          SOLVERS[k], one.solution.residuals.natural, one.solution.iterations);
        }
    }
}
END_TEST

/* Steps from sets that begin with a known weak pull make it a little stronger where they reach the
 * tolerance, and much stronger where they do not: then the pull was not in their way. */
START_TEST(a_known_pull_that_does_not_help_is_given_up)
{
    static tb_real start[MADE_ROWS];
    static uint8_t statuses[MADE_BLOCKS];
    made_random(&made, 6, 20, 6, 0.5, 1);
    tb_solve_options options = made_options("newton", 1e-8);
    made_solve(&made.problem, &options, NULL, &one);
    ck_assert_int_eq((int)one.solution.status, TB_OK);
    for (int fails = 0; fails < 2; fails++) {
        tb_arena arena;
        tb_arena_init(&arena, 0);
        tb_solve_history history = {.pull = 1e-8};
        for (int32_t i = 0; i < made.problem.number_of_rows; i++)
            start[i] = one.lambda[i] * TB_R(fails ? 0.1 : 1 - 1e-4);
        for (int32_t b = 0; b < made.problem.number_of_blocks; b++)
            statuses[b] = fails ? TB_CONTACT_STICK : one.statuses[b];
        const tb_warm_start warm = {
            .lambda = start, .statuses = statuses, .scratch = &arena, .history = &history};
        two.solution = (tb_solution){.lambda = two.lambda,
                                     .fine = two.fine,
                                     .xi = two.xi,
                                     .whitened = two.whitened,
                                     .statuses = two.statuses};
        tb_solve_options from_sets = options;
        from_sets.warm_start = true;
        if (fails) from_sets.maximum_iterations = 1;
        TEST_STATUS(tb_solve_from_sets(&made.problem, &from_sets, &warm, &two.solution), TB_OK,
                    NULL);
        ck_assert_int_eq((int)two.solution.status, fails ? TB_NOT_CONVERGED : TB_OK);
        TEST_NEAR(history.pull, fails ? 1.2e-7 : 1.5e-8, 1e-12);
        tb_arena_destroy(&arena);
    }
}
END_TEST

TEST_MAIN(a_known_pull_that_does_not_help_is_given_up,
          slopes_of_all_laws_are_those_of_their_projections, a_sphere_sticks_slides_and_lifts_off,
          other_laws_have_their_answers, every_law_agrees_with_sor,
          random_piles_are_solved_to_1e_10, a_matrix_that_is_not_symmetric_is_used_as_given,
          a_stack_that_grows_heavier_upwards_needs_newton, a_warm_start_needs_less_than_a_cold_one,
          auto_begins_with_what_was_the_cheaper_way,
          auto_returns_to_sweeps_that_end_what_steps_from_statuses_left,
          the_same_problem_gives_the_same_bytes_and_memory_is_taken_once,
          whitened_velocity_comes_back,
          numbers_that_are_not_finite_diverge_and_nothing_but_zeros_leaves,
          what_cannot_be_reached_is_said_and_costs_no_more_than_allowed, a_solve_is_cancelled,
          bad_options_are_refused_and_empty_problems_solved, auto_sweeps_where_sweeps_will_do,
          auto_begins_with_the_statuses_where_rows_give_way,
          a_start_of_impulses_that_cancel_is_given_up)
