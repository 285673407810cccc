/* Quadratic programs by active sets: KKT conditions, sets, borders, resets, cycles.
 * Compiled as float too (test_qp_f32.c). */
#include "qp_util.h"

#define TOLERANCE (sizeof(tb_real) == sizeof(float) ? 1e-4 : 1e-10)

static tb_qp_options options_of(tb_qp_method method)
{
    tb_qp_options options = tb_qp_defaults();
    options.method = method;
    return options;
}

static void check_solved(const made_qp *made, const solved_qp *solved)
{
    ck_assert_msg(solved->result.status == TB_OK,
                  "%s after %d iterations, kkt %g, cycle %d, dropped %d",
                  tb_status_name(solved->result.status), solved->result.iterations,
                  solved->result.kkt.relative, solved->result.cycle, solved->result.dropped);
    check_kkt(made, solved, TOLERANCE);
}

static void check_same_set(const made_qp *made, const solved_qp *one, const solved_qp *two)
{
    ck_assert_mem_eq(one->active, two->active, (size_t)made->qp.constraints);
}

/* ---- solutions ---- */

START_TEST(bounds_with_a_band_are_solved_by_both_methods_with_the_same_set)
{
    static const int32_t SIZES[][2] = {{1, 0}, {7, 2}, {40, 0}, {60, 59}, {120, 9}, {300, 40}};
    for (size_t s = 0; s < sizeof SIZES / sizeof SIZES[0]; s++)
        for (uint64_t seed = 0; seed < 6; seed++) {
            made_qp made;
            made_qp_bounds(&made, seed, SIZES[s][0], SIZES[s][1]);
            const tb_qp_options direct = options_of(TB_QP_PDAS), border = options_of(TB_QP_SCHURPA);
            solved_qp a, b, c, d;
            solved_qp_make(&a, &made, K0_BOUNDS, &direct);
            solved_qp_make(&b, &made, K0_BOUNDS, &border);
            solved_qp_make(&c, &made, K0_BOUNDS_LAPACK, &border);
            solved_qp_make(&d, &made, K0_DENSE, &border);
            check_solved(&made, &a);
            check_solved(&made, &b);
            check_solved(&made, &c);
            check_solved(&made, &d);
            check_same_set(&made, &a, &b);
            check_same_set(&made, &a, &c);
            check_same_set(&made, &a, &d);
            ck_assert_int_eq(a.result.factorizations, a.result.iterations);
            ck_assert_int_eq(a.result.solves, a.result.iterations);
            ck_assert_int_eq(b.result.factorizations, 1);
            ck_assert_int_eq(b.result.iterations, a.result.iterations);
            made_qp_free(&made);
        }
}
END_TEST

START_TEST(general_rows_and_equalities_are_solved)
{
    int32_t with_active = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        made_qp made;
        const int32_t n = 4 + (int32_t)(seed % 5) * 6;
        made_qp_rows(&made, seed, n, n / 2 + 1, (int32_t)(seed % 3));
        const tb_qp_options direct = options_of(TB_QP_PDAS), border = options_of(TB_QP_SCHURPA);
        solved_qp a, b;
        solved_qp_make(&a, &made, K0_DENSE, &direct);
        solved_qp_make(&b, &made, K0_DENSE, &border);
        check_solved(&made, &a);
        check_solved(&made, &b);
        check_same_set(&made, &a, &b);
        with_active += b.result.active > 0;
        made_qp_free(&made);
    }
    ck_assert_int_gt(with_active, 20);
}
END_TEST

START_TEST(friction_facets_are_solved_and_never_two_opposite_ones_hold)
{
    static const int32_t SIZES[][2] = {{1, 1}, {8, 15}, {20, 7}, {50, 12}};
    for (size_t s = 0; s < sizeof SIZES / sizeof SIZES[0]; s++)
        for (uint64_t seed = 0; seed < 10; seed++) {
            made_qp made;
            made_qp_facets(&made, seed, SIZES[s][0], SIZES[s][1]);
            const tb_qp_options direct = options_of(TB_QP_PDAS), border = options_of(TB_QP_SCHURPA);
            solved_qp a, b, c;
            solved_qp_make(&a, &made, K0_FACETS, &direct);
            solved_qp_make(&b, &made, K0_FACETS, &border);
            solved_qp_make(&c, &made, K0_DENSE, &border);
            check_solved(&made, &a);
            check_solved(&made, &b);
            check_solved(&made, &c);
            check_same_set(&made, &a, &b);
            check_same_set(&made, &a, &c);
            for (int32_t i = 0; i < made.qp.constraints; i += 2)
                ck_assert(!(b.active[i] && b.active[i + 1]));
            made_qp_free(&made);
        }
}
END_TEST

/* The solution by trying all sets: dense Gaussian elimination of every saddle system. */
static bool solve_dense(double *a, double *x, int n)
{
    for (int k = 0; k < n; k++) {
        int pivot = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
        if (fabs(a[pivot * n + k]) < 1e-9) return false;
        for (int j = 0; j < n; j++) {
            const double swap = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = swap;
        }
        const double swap = x[k];
        x[k] = x[pivot];
        x[pivot] = swap;
        for (int i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / a[k * n + k];
            for (int j = k; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
            x[i] -= factor * x[k];
        }
    }
    for (int k = n - 1; k >= 0; k--) {
        for (int j = k + 1; j < n; j++) x[k] -= a[k * n + j] * x[j];
        x[k] /= a[k * n + k];
    }
    return true;
}

/* Best x over all sets with a feasible x and nonnegative multipliers. */
static bool enumerate_sets(const tb_qp *qp, double *best)
{
    const int n = qp->n, m = qp->constraints;
    for (unsigned set = 0; set < 1u << m; set++) {
        double a[400] = {0}, x[20] = {0};
        int rows[20], count = 0;
        for (int i = 0; i < m; i++)
            if (set >> i & 1) rows[count++] = i;
        const int size = n + count;
        if (size > 20 || count > n) continue;
        for (int j = 0; j < n; j++) {
            x[j] = -(double)qp->f[j];
            for (int i = j; i < n; i++)
                a[i * size + j] = a[j * size + i] =
                    (double)qp->hessian[i - j + j * (qp->half_bandwidth + 1)];
        }
        for (int p = 0; p < count; p++) {
            x[n + p] = (double)qp->b[rows[p]];
            for (int k = qp->row_start[rows[p]]; k < qp->row_start[rows[p] + 1]; k++)
                a[qp->column[k] * size + n + p] = a[(n + p) * size + qp->column[k]] =
                    (double)qp->value[k];
        }
        if (!solve_dense(a, x, size)) continue;
        bool good = true;
        for (int p = 0; p < count; p++) good = good && x[n + p] >= -1e-9;
        for (int i = 0; i < m; i++) {
            double at = 0;
            for (int k = qp->row_start[i]; k < qp->row_start[i + 1]; k++)
                at += (double)qp->value[k] * x[qp->column[k]];
            good = good && at <= (double)qp->b[i] + 1e-9;
        }
        if (!good) continue;
        memcpy(best, x, (size_t)n * sizeof *best);
        return true;
    }
    return false;
}

START_TEST(small_programs_agree_with_trying_all_sets)
{
    int32_t by_dual = 0;
    for (uint64_t seed = 100; seed < 200; seed++) {
        made_qp made;
        const int32_t n = 2 + (int32_t)(seed % 4);
        if (seed % 2)
            made_qp_rows(&made, seed, n, n + 3, 0); /* more constraints than variables */
        else
            made_qp_facets(&made, seed, 2, 3);
        double best[20];
        ck_assert(enumerate_sets(&made.qp, best));
        for (int method = 0; method < 2; method++) {
            const tb_qp_options options = options_of((tb_qp_method)method);
            solved_qp a;
            solved_qp_make(&a, &made, K0_DENSE, &options);
            check_solved(&made, &a);
            by_dual += a.result.dual_steps > 0;
            for (int32_t j = 0; j < made.qp.n; j++)
                TEST_NEAR(a.x[j], best[j], 1e3 * TOLERANCE * (1 + fabs(best[j])));
        }
        made_qp_free(&made);
    }
    ck_assert_int_gt(by_dual, 0);
}
END_TEST

START_TEST(a_program_without_constraints_is_one_system)
{
    made_qp made;
    tb_random random = tb_random_stream(3, 3);
    made_qp_open(&made, 9, 3, 0, 0);
    made_qp_hessian(&made, &random, 0.1);
    for (int32_t j = 0; j < 9; j++) made.f[j] = TB_R(tb_random_normal(&random));
    const tb_qp_options options = options_of(TB_QP_SCHURPA);
    for (int kind = K0_DENSE; kind <= K0_BOUNDS_LAPACK; kind++) {
        solved_qp a;
        solved_qp_make(&a, &made, (k0_kind)kind, &options);
        check_solved(&made, &a);
        ck_assert_int_eq(a.result.iterations, 1);
    }
    made_qp_free(&made);
}
END_TEST

/* min x'x/2 - y, y <= 2, x + y = 3: H is singular, K0 with the equality is not where y is bound */
START_TEST(a_semidefinite_hessian_is_solved_where_the_set_makes_it_definite)
{
    made_qp made;
    made_qp_open(&made, 2, 0, 2, 3);
    made.hessian[0] = 1;
    made.f[1] = -1;
    made.qp.equalities = 1;
    made.value[0] = made.value[1] = made.value[2] = 1;
    made.column[1] = made.column[2] = 1;
    made.row_start[1] = 2;
    made.row_start[2] = 3;
    made.b[0] = 3;
    made.b[1] = 2;
    const tb_qp_options options = options_of(TB_QP_SCHURPA);
    solved_qp a;
    solved_qp_make(&a, &made, K0_DENSE, &options);
    check_solved(&made, &a);
    TEST_NEAR(a.x[0], 1, 1e-5);
    TEST_NEAR(a.x[1], 2, 1e-5);
    made_qp_free(&made);
}
END_TEST

/* ---- borders ---- */

START_TEST(a_good_start_needs_few_solves)
{
    made_qp made;
    made_qp_bounds(&made, 5, 400, 30);
    const tb_qp_options options = options_of(TB_QP_SCHURPA);
    solved_qp cold;
    solved_qp_make(&cold, &made, K0_BOUNDS, &options);
    check_solved(&made, &cold);
    ck_assert_int_gt(cold.result.solves, 100);
    ck_assert_int_eq(cold.result.corrected, cold.result.active);
    for (int32_t delta = 0; delta <= 20; delta += 10) {
        solved_qp warm;
        solved_qp_open(&warm, &made, K0_BOUNDS, &options);
        memcpy(warm.active, cold.active, 400);
        for (int32_t i = 0; i < delta; i++) warm.active[i] = !warm.active[i];
        solved_qp_run(&warm);
        check_solved(&made, &warm);
        check_same_set(&made, &warm, &cold);
        ck_assert_int_eq(warm.result.corrected, delta);
        ck_assert_int_le(warm.result.solves, delta + 15);
        ck_assert_int_ge(warm.result.solves, delta + 1);
        ck_assert_int_eq(warm.result.factorizations, 1);
        if (delta == 0) ck_assert_int_eq(warm.result.iterations, 1);
    }
    made_qp_free(&made);
}
END_TEST

START_TEST(undone_changes_take_their_columns_out)
{
    int32_t deletions = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        made_qp made;
        made_qp_bounds(&made, seed, 80, 20);
        const tb_qp_options options = options_of(TB_QP_SCHURPA);
        solved_qp a;
        solved_qp_make(&a, &made, K0_BOUNDS, &options);
        check_solved(&made, &a);
        deletions += a.result.deletions;
        ck_assert_int_le(a.result.largest_border, a.result.corrected + a.result.deletions);
        made_qp_free(&made);
    }
    ck_assert_int_gt(deletions, 10);
}
END_TEST

START_TEST(small_limits_reset_and_change_nothing_else)
{
    for (uint64_t seed = 0; seed < 10; seed++) {
        made_qp made;
        made_qp_bounds(&made, seed, 150, 20);
        const tb_qp_options direct = options_of(TB_QP_PDAS);
        solved_qp a;
        solved_qp_make(&a, &made, K0_BOUNDS, &direct);
        check_solved(&made, &a);
        for (int32_t k = 0; k < 2; k++) {
            tb_qp_options options = options_of(TB_QP_SCHURPA);
            if (k == 0)
                options.maximum_changes = 3;
            else
                options.maximum_solves = 12;
            solved_qp b;
            solved_qp_make(&b, &made, K0_BOUNDS, &options);
            check_solved(&made, &b);
            check_same_set(&made, &a, &b);
            ck_assert_int_gt(b.result.resets, 0);
            ck_assert_int_eq(b.result.factorizations, 1 + b.result.resets);
            ck_assert_int_le(b.result.largest_border, k == 0 ? 3 : 12);
        }
        made_qp_free(&made);
    }
}
END_TEST

/* other f and b, the same H and rows: the factors of the first solve serve */
START_TEST(a_second_program_with_the_same_matrices_needs_no_factorization)
{
    made_qp made;
    made_qp_facets(&made, 4, 40, 19);
    const tb_qp_options options = options_of(TB_QP_SCHURPA);
    solved_qp kept, fresh;
    solved_qp_make(&kept, &made, K0_FACETS, &options);
    tb_random random = tb_random_stream(9, 9);
    for (int32_t round = 0; round < 5; round++) {
        for (int32_t j = 0; j < made.qp.n; j++) made.f[j] += TB_R(0.05 * tb_random_normal(&random));
        for (int32_t i = 0; i < made.qp.constraints; i++) made.b[i] *= TB_R(1.02);
        solved_qp_run(&kept);
        check_solved(&made, &kept);
        ck_assert_int_eq(kept.result.factorizations, 0);
        solved_qp_make(&fresh, &made, K0_FACETS, &options);
        check_solved(&made, &fresh);
        check_same_set(&made, &kept, &fresh);
        ck_assert_int_lt(kept.result.solves, fresh.result.solves);
    }
    tb_qp_forget(kept.work);
    solved_qp_run(&kept);
    ck_assert_int_eq(kept.result.factorizations, 1);
    ck_assert_int_eq(kept.result.iterations, 1);
    made_qp_free(&made);
}
END_TEST

/* A black box that is a little wrong: refinement asks it again. */
static tb_k0 exact_k0;

static void wrong_solve(void *context, int32_t columns, tb_real *x)
{
    exact_k0.solve(context, columns, x);
    for (int32_t i = 0; i < 20; i++) x[i] *= TB_R(1 + 1e-3);
}

static void wrong_backward(void *context, tb_real *t, tb_real *x)
{
    exact_k0.halves->backward(context, t, x);
    for (int32_t i = 0; i < 20; i++) x[i] *= TB_R(1 + 1e-3);
}

static tb_status wrong_factor(void *context, const int32_t *active, int32_t count,
                              int32_t *dependent)
{
    return exact_k0.factor(context, active, count, dependent);
}

static void refine_until_good(k0_kind kind)
{
    made_qp made;
    made_qp_bounds(&made, 2, 100, 10);
    tb_qp_options options = options_of(TB_QP_SCHURPA);
    options.maximum_refinements = 10;
    options.tie = 1e-6;
    solved_qp a, b;
    solved_qp_make(&a, &made, kind, &options);
    solved_qp_open(&b, &made, kind, &options);
    exact_k0 = b.k0;
    tb_k0_halves halves = {0};
    if (exact_k0.halves) halves = *exact_k0.halves;
    halves.backward = wrong_backward;
    const tb_k0 wrong = {.context = exact_k0.context,
                         .factor = wrong_factor,
                         .solve = exact_k0.halves ? NULL : wrong_solve,
                         .halves = exact_k0.halves ? &halves : NULL};
    TEST_OK(tb_qp_begin(&made.qp, &wrong, &options, &made.arena, &b.work), NULL);
    solved_qp_run(&b);
    check_solved(&made, &b);
    check_same_set(&made, &a, &b);
    ck_assert_int_gt(b.result.refinements, 0);
    ck_assert_int_gt(b.result.largest_border, 0);

    /* without refinements it cannot reach the tolerance, and says that it did not */
    options.maximum_refinements = 0;
    TEST_OK(tb_qp_begin(&made.qp, &wrong, &options, &made.arena, &b.work), NULL);
    memcpy(b.active, a.active, 100);
    solved_qp_run(&b);
    ck_assert_int_eq(b.result.status, TB_NOT_CONVERGED);
    ck_assert(b.result.kkt.relative > TOLERANCE);
    made_qp_free(&made);
}

START_TEST(a_solve_that_is_not_exact_is_refined_until_the_residual_says_so)
{
    refine_until_good(K0_DENSE);
    refine_until_good(K0_BOUNDS);
}
END_TEST

/* ---- trouble ---- */

START_TEST(degenerate_constraints_do_not_make_sets_chatter)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        made_qp made;
        made_qp_bounds(&made, seed, 60, 8);
        const tb_qp_options options = options_of(TB_QP_SCHURPA);
        solved_qp a;
        solved_qp_make(&a, &made, K0_BOUNDS, &options);
        check_solved(&made, &a);
        /* f such that every bound that was active now has a multiplier of zero */
        for (int32_t i = 0; i < 60; i++) made.f[i] -= a.lambda[i] * -made.value[i];
        for (int method = 0; method < 2; method++) {
            const tb_qp_options again = options_of((tb_qp_method)method);
            solved_qp b;
            solved_qp_make(&b, &made, K0_BOUNDS, &again);
            check_solved(&made, &b);
            for (int32_t i = 0; i < 60; i++) TEST_NEAR(b.x[i], a.x[i], 1e3 * TOLERANCE);
            memset(b.active, 1, 60);
            solved_qp_run(&b);
            check_solved(&made, &b);
        }
        made_qp_free(&made);
    }
}
END_TEST

/* Three bounds for which full steps go round three sets for ever, from six of the eight sets:
 * Curtis, Han, Robinson, A globally convergent primal-dual active-set framework for large-scale
 * convex quadratic optimization, 2015. */
START_TEST(sets_that_come_back_are_seen_and_single_steps_end_the_work)
{
    static const tb_real H[3][3] = {{4, 5, -5}, {5, 9, -5}, {-5, -5, 7}};
    static const tb_real F[3] = {2, 1, -3};
    int32_t cycles = 0;
    for (int method = 0; method < 2; method++)
        for (unsigned set = 0; set < 8; set++) {
            made_qp made;
            made_qp_open(&made, 3, 2, 3, 3);
            for (int32_t j = 0; j < 3; j++) {
                for (int32_t i = j; i < 3; i++) made.hessian[i - j + 3 * j] = H[i][j];
                made.f[j] = F[j];
                made.row_start[j + 1] = j + 1;
                made.column[j] = j;
                made.value[j] = 1;
            }
            const tb_qp_options options = options_of((tb_qp_method)method);
            solved_qp a;
            solved_qp_open(&a, &made, K0_BOUNDS, &options);
            for (int32_t j = 0; j < 3; j++) a.active[j] = set >> j & 1;
            solved_qp_run(&a);
            check_solved(&made, &a);
            ck_assert(a.result.cycle == 0 || a.result.cycle == 3);
            cycles += a.result.cycle > 0;
            made_qp_free(&made);
        }
    ck_assert_int_eq(cycles, 12);
}
END_TEST

/* More rows than variables, of which only some can hold at a time: full steps go round, single ones
 * too. The dual method ends it; the residual is that of any other solution. */
START_TEST(programs_on_which_sets_go_round_are_solved_all_the_same)
{
    int32_t cycles = 0, by_dual = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        made_qp made;
        const int32_t n = 2 + (int32_t)(seed % 9), m = n + 3 + (int32_t)(seed % 4) * 5;
        made_qp_rows(&made, seed + 1000, n, m, seed % 3 == 0 && n > 3);
        for (int method = 0; method < 2; method++) {
            const tb_qp_options options = options_of((tb_qp_method)method);
            solved_qp a;
            solved_qp_make(&a, &made, K0_DENSE, &options);
            check_solved(&made, &a);
            ck_assert_int_le(a.result.iterations, options.maximum_iterations);
            cycles += a.result.cycle > 0;
            by_dual += a.result.dual_steps > 0;
        }
        made_qp_free(&made);
    }
    ck_assert_int_gt(cycles, 50);
    ck_assert_int_gt(by_dual, 50);
}
END_TEST

START_TEST(a_program_without_a_feasible_point_is_not_called_solved)
{
    /* x <= -1 and -x <= -1 */
    made_qp made;
    made_qp_open(&made, 1, 0, 2, 2);
    made.hessian[0] = 1;
    made.value[0] = 1;
    made.value[1] = -1;
    made.row_start[1] = 1;
    made.row_start[2] = 2;
    made.b[0] = made.b[1] = -1;
    for (int kind = K0_DENSE; kind <= K0_BOUNDS; kind++)
        for (int method = 0; method < 2; method++) {
            const tb_qp_options options = options_of((tb_qp_method)method);
            solved_qp a;
            solved_qp_make(&a, &made, (k0_kind)kind, &options);
            ck_assert_int_eq(a.result.status, TB_NOT_CONVERGED);
            ck_assert(a.result.kkt.primal >= 1);
            ck_assert(isfinite((double)a.x[0]) && isfinite((double)a.lambda[0]));
        }
    made_qp_free(&made);
}
END_TEST

START_TEST(rows_that_depend_on_each_other_are_left_out)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        made_qp made;
        made_qp_rows(&made, seed, 10, 8, 0);
        /* every odd row is its neighbour again, scaled */
        for (int32_t i = 1; i < 8; i += 2) {
            for (int32_t j = 0; j < 10; j++)
                made.value[10 * i + j] = 2 * made.value[10 * (i - 1) + j];
            made.b[i] = 2 * made.b[i - 1];
        }
        const tb_qp_options options = options_of(TB_QP_SCHURPA);
        solved_qp a;
        solved_qp_open(&a, &made, K0_DENSE, &options);
        memset(a.active, 1, 8);
        solved_qp_run(&a);
        check_solved(&made, &a);
        ck_assert_int_ge(a.result.dropped, 4);
        made_qp_free(&made);
    }
}
END_TEST

START_TEST(equalities_that_contradict_are_a_failed_precondition)
{
    made_qp made;
    made_qp_rows(&made, 1, 4, 3, 2);
    for (int32_t j = 0; j < 4; j++) made.value[4 + j] = made.value[j];
    const tb_qp_options options = options_of(TB_QP_SCHURPA);
    solved_qp a;
    solved_qp_open(&a, &made, K0_DENSE, &options);
    TEST_STATUS(tb_qp_solve(a.work, a.active, a.x, a.lambda, &a.result), TB_FAILED_PRECONDITION,
                NULL);
    made_qp_free(&made);
}
END_TEST

START_TEST(providers_refuse_rows_that_are_not_theirs)
{
    made_qp made;
    tb_k0 k0;
    made_qp_rows(&made, 1, 4, 3, 0);
    TEST_STATUS(tb_k0_bounds(&made.qp, false, 0, &made.arena, &k0), TB_UNSUPPORTED, NULL);
    TEST_STATUS(tb_k0_facets(&made.qp, 0, &made.arena, &k0), TB_UNSUPPORTED, NULL);
    made_qp_free(&made);
    made_qp_facets(&made, 1, 4, 3);
    made.value[3] = 2;
    TEST_STATUS(tb_k0_facets(&made.qp, 0, &made.arena, &k0), TB_UNSUPPORTED, NULL);
    made_qp_free(&made);
}
END_TEST

START_TEST(sizes_and_options_without_sense_are_refused)
{
    made_qp made;
    made_qp_bounds(&made, 1, 5, 2);
    tb_k0 k0;
    tb_qp_workspace *work = NULL;
    TEST_OK(tb_k0_dense(&made.qp, &made.arena, &k0), NULL);
    tb_qp_options options = tb_qp_defaults();
    options.maximum_iterations = 0;
    TEST_STATUS(tb_qp_begin(&made.qp, &k0, &options, &made.arena, &work), TB_INVALID_ARGUMENT,
                NULL);
    options = tb_qp_defaults();
    options.tolerance = NAN;
    TEST_STATUS(tb_qp_begin(&made.qp, &k0, &options, &made.arena, &work), TB_INVALID_ARGUMENT,
                NULL);
    options = tb_qp_defaults();
    made.qp.half_bandwidth = 5;
    TEST_STATUS(tb_qp_begin(&made.qp, &k0, &options, &made.arena, &work), TB_INVALID_ARGUMENT,
                NULL);
    made_qp_free(&made);
}
END_TEST

START_TEST(the_same_program_gives_the_same_bytes)
{
    made_qp made;
    made_qp_bounds(&made, 8, 200, 25);
    const tb_qp_options options = options_of(TB_QP_SCHURPA);
    solved_qp a, b;
    solved_qp_make(&a, &made, K0_BOUNDS, &options);
    solved_qp_make(&b, &made, K0_BOUNDS, &options);
    ck_assert_mem_eq(a.x, b.x, 200 * sizeof *a.x);
    ck_assert_mem_eq(a.lambda, b.lambda, 200 * sizeof *a.lambda);
    made_qp_free(&made);
}
END_TEST

TEST_MAIN(bounds_with_a_band_are_solved_by_both_methods_with_the_same_set,
          general_rows_and_equalities_are_solved,
          friction_facets_are_solved_and_never_two_opposite_ones_hold,
          small_programs_agree_with_trying_all_sets, a_program_without_constraints_is_one_system,
          a_semidefinite_hessian_is_solved_where_the_set_makes_it_definite,
          a_good_start_needs_few_solves, undone_changes_take_their_columns_out,
          small_limits_reset_and_change_nothing_else,
          a_second_program_with_the_same_matrices_needs_no_factorization,
          a_solve_that_is_not_exact_is_refined_until_the_residual_says_so,
          degenerate_constraints_do_not_make_sets_chatter,
          sets_that_come_back_are_seen_and_single_steps_end_the_work,
          programs_on_which_sets_go_round_are_solved_all_the_same,
          a_program_without_a_feasible_point_is_not_called_solved,
          rows_that_depend_on_each_other_are_left_out,
          equalities_that_contradict_are_a_failed_precondition,
          providers_refuse_rows_that_are_not_theirs, sizes_and_options_without_sense_are_refused,
          the_same_program_gives_the_same_bytes)
