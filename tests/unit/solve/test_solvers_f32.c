/* The float build of the solvers: the same sources, judged in double. */
#define TB_SINGLE
#include "test_util.h"

#include "contact/judge.h"
#include "problem_util.h"

static made_problem made, given;
static made_solution one, two;

START_TEST(floats_reach_what_floats_can)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        made_random(&made, seed, 60, 30, 0.5, 1);
        for (int k = 0; k < 2; k++) {
            tb_solve_options options = made_options(k ? "jor" : "sor", 2e-5);
            made_solve(&made.problem, &options, NULL, &one);
            ck_assert_msg(one.solution.status == TB_OK, "seed %d %s: %g", (int)seed,
                          one.solution.solver, one.solution.residuals.natural);
        }
    }
}
END_TEST

START_TEST(residuals_of_floats_are_sums_in_double)
{
    made_random(&made, 3, 60, 30, 0.5, 1);
    made_given(&given, &made);
    const tb_solve_options options = made_options("sor", 1e-4);
    made_solve(&made.problem, &options, NULL, &one);
    /* xi by hand in double: the reported xi is its rounding */
    const int32_t n = made.problem.number_of_rows;
    double s[180] = {0};
    for (int32_t b = 0; b < made.problem.number_of_blocks; b++) {
        const tb_block *block = &made.blocks[b];
        for (int32_t i = 0; i < 3; i++)
            for (int32_t j = 0; j < block->width; j++) {
                const tb_segment *run = &made.segments[block->segment];
                const int32_t dof = j < 6 ? run[0].dof + j : run[1].dof + j - 6;
                s[dof] += (double)made.values[block->value + i * block->width + j] *
                          (double)one.lambda[block->row + i];
            }
    }
    for (int32_t b = 0; b < made.problem.number_of_blocks; b++) {
        const tb_block *block = &made.blocks[b];
        for (int32_t i = 0; i < 3; i++) {
            double xi = (double)made.c[block->row + i];
            for (int32_t j = 0; j < block->width; j++) {
                const tb_segment *run = &made.segments[block->segment];
                const int32_t dof = j < 6 ? run[0].dof + j : run[1].dof + j - 6;
                xi += (double)made.values[block->value + i * block->width + j] * s[dof];
            }
            TEST_NEAR(one.xi[block->row + i], xi, 1e-6 * fmax(1, fabs(xi)) * 0.1);
        }
    }
    ck_assert(n == 180);
    free(given.dense);
}
END_TEST

START_TEST(storage_forms_of_floats_agree_to_rounding)
{
    made_random(&made, 11, 60, 40, 0.6, 1);
    tb_solve_options options = made_options("sor", 0);
    options.maximum_iterations = 10;
    options.accelerate = false;
    made_solve(&made.problem, &options, NULL, &one);
    for (int form = TB_STORAGE_DENSE; form <= TB_STORAGE_T; form++) {
        options.storage = (tb_storage)form;
        made_solve(&made.problem, &options, NULL, &two);
        for (int32_t i = 0; i < made.problem.number_of_rows; i++)
            TEST_NEAR(two.lambda[i], one.lambda[i], 1e-3);
    }
}
END_TEST

START_TEST(one_contact_is_solved_exactly_in_float)
{
    tb_random random = tb_random_stream(3, 1);
    for (int trial = 0; trial < 20000; trial++) {
        tb_real a[9], w[9], b[3];
        for (int i = 0; i < 9; i++) a[i] = TB_R(tb_random_normal(&random) * 0.5 + (i % 4 == 0));
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++) {
                w[3 * i + j] = TB_R(i == j ? 0.2 : 0);
                for (int k = 0; k < 3; k++) w[3 * i + j] += a[3 * i + k] * a[3 * j + k];
            }
            b[i] = TB_R(tb_random_normal(&random));
        }
        const tb_local_contact local = tb_local_prepare(w, 1 / w[0]);
        tb_real alpha = 0, lambda[3] = {0, 0, 0};
        tb_local_solve(&local, w, b, TB_R(0.5), 60, &alpha, lambda);
        double u[3], x[3];
        for (int i = 0; i < 3; i++)
            u[i] = (double)b[i] + (double)w[3 * i] * (double)lambda[0] +
                   (double)w[3 * i + 1] * (double)lambda[1] +
                   (double)w[3 * i + 2] * (double)lambda[2];
        const double rho = 1 / (double)(w[0] + w[4] + w[8]);
        for (int i = 0; i < 3; i++) x[i] = (double)lambda[i] - rho * u[i];
        x[0] -= rho * 0.5 * hypot(u[1], u[2]);
        tb_project_cone(x, 3, 0.5);
        for (int i = 0; i < 3; i++) TEST_NEAR(x[i], lambda[i], 1e-4);
    }
}
END_TEST

TEST_MAIN(floats_reach_what_floats_can, residuals_of_floats_are_sums_in_double,
          storage_forms_of_floats_agree_to_rounding, one_contact_is_solved_exactly_in_float)
