/* Quadratic programs with bounds on a card against the processor's: the same sets, and KKT conditions
 * that are reckoned here from the numbers alone. Where there is no card, one that the processor plays
 * runs the same kernels on small programs. */
#include "gpu_qp_util.h"

/* n, half-bandwidth; small ones first */
static const int32_t SIZES[][2] = {{1, 0},     {5, 4},   {65, 64},  {130, 31},
                                   {230, 60},  {64, 8},  {257, 64}, {300, 150},
                                   {200, 199}, {400, 0}, {700, 60}, {1500, 333}};
enum { SMALL_SIZES = 5, NUMBER_OF_SIZES = sizeof SIZES / sizeof SIZES[0] };

static const double TOLERANCE[] = {[TB_DOUBLE] = 1e-10, [TB_FLOAT] = 1e-4};

static tb_qp_options options_of(tb_qp_method method, tb_precision precision,
                                tb_backend_choice where)
{
    tb_qp_options options = tb_qp_defaults();
    options.method = method;
    options.precision = precision;
    options.backend = where;
    return options;
}

/* Both from the same start; on the card twice, and the bytes are the same. */
static void compare(given_qp *g, const uint8_t *start, tb_qp_method method, tb_precision precision)
{
    const size_t m = (size_t)g->program.constraints;
    const tb_qp_options on_card = options_of(method, precision, TB_BACKEND_GPU);
    const tb_qp_options here = options_of(method, precision, TB_BACKEND_CPU);
    solved a = solve_from(g, start, &here), b = solve_from(g, start, &on_card);
    ck_assert_int_eq(a.result.status, TB_OK);
    ck_assert_msg(b.result.status == TB_OK, "n %d, half %d: %s, kkt %g", g->program.n,
                  g->program.half_bandwidth, tb_status_name(b.result.status),
                  b.result.kkt.relative);
    ck_assert_mem_eq(a.active, b.active, m);
    const double residual = kkt_of(g, &b);
    ck_assert_msg(residual <= TOLERANCE[precision], "n %d, half %d: residual %g", g->program.n,
                  g->program.half_bandwidth, residual);
    ck_assert(b.result.kkt.relative <= TOLERANCE[precision]);
    ck_assert_int_eq(a.result.active, b.result.active);
    ck_assert_int_eq(a.result.corrected, b.result.corrected);
    if (method == TB_QP_PDAS) {
        ck_assert_int_eq(b.result.iterations, a.result.iterations);
        ck_assert_int_eq(b.result.factorizations, b.result.iterations);
    } else {
        ck_assert_int_eq(b.result.factorizations, 1 + b.result.resets);
    }
    solved c = solve_from(g, start, &on_card);
    ck_assert_mem_eq(b.x, c.x, (size_t)g->program.n * sizeof *b.x);
    ck_assert_mem_eq(b.lambda, c.lambda, m * sizeof *b.lambda);
    ck_assert_int_eq(b.result.solves, c.result.solves);
    free_solved(&a);
    free_solved(&b);
    free_solved(&c);
}

static void compare_all(int kind, bool played)
{
    for (int k = 0; k < (played ? SMALL_SIZES : NUMBER_OF_SIZES); k++) {
        given_qp g = given_bounds(SIZES[k][0], SIZES[k][1], (uint64_t)k + 1, kind);
        uint8_t *start = calloc((size_t)g.program.constraints + 1, 1);
        ck_assert_ptr_nonnull(start);
        for (int precision = TB_DOUBLE; precision <= TB_FLOAT; precision++)
            for (int method = TB_QP_PDAS; method <= TB_QP_SCHURPA; method++)
                compare(&g, start, (tb_qp_method)method, (tb_precision)precision);
        free(start);
        free_given(&g);
    }
}

START_TEST(programs_from_a_cold_start_end_in_the_sets_of_the_processor)
{
    compare_all(LOWER_BOUNDS, card_is_played());
}
END_TEST

START_TEST(bounds_on_both_sides_that_are_not_zero_are_solved)
{
    compare_all(BOTH_BOUNDS, card_is_played());
}
END_TEST

START_TEST(a_good_start_needs_one_factorization_and_few_batches)
{
    (void)card_is_played();
    given_qp g = given_bounds(200, 30, 3, LOWER_BOUNDS);
    const size_t m = (size_t)g.program.constraints;
    uint8_t *start = calloc(m, 1);
    ck_assert_ptr_nonnull(start);
    const tb_qp_options here = options_of(TB_QP_SCHURPA, TB_DOUBLE, TB_BACKEND_CPU);
    const tb_qp_options on_card = options_of(TB_QP_SCHURPA, TB_DOUBLE, TB_BACKEND_GPU);
    solved a = solve_from(&g, start, &here);
    for (int32_t delta = 0; delta <= 50; delta += 25) {
        memcpy(start, a.active, m);
        for (int32_t i = 0; i < delta; i++) start[i] = !start[i];
        solved b = solve_from(&g, start, &on_card);
        ck_assert_int_eq(b.result.status, TB_OK);
        ck_assert_mem_eq(a.active, b.active, m);
        ck_assert_int_eq(b.result.factorizations, 1);
        ck_assert_int_eq(b.result.corrected, delta);
        ck_assert_int_ge(b.result.solves, delta + 1);
        ck_assert_int_le(b.result.batches, b.result.iterations);
        if (delta == 0) ck_assert_int_eq(b.result.iterations, 1);
        compare(&g, start, TB_QP_SCHURPA, TB_FLOAT);
        free_solved(&b);
    }
    free_solved(&a);
    free(start);
    free_given(&g);
}
END_TEST

START_TEST(small_borders_reset_and_change_nothing_else)
{
    (void)card_is_played();
    given_qp g = given_bounds(150, 20, 4, LOWER_BOUNDS);
    uint8_t *start = calloc((size_t)g.program.constraints, 1);
    ck_assert_ptr_nonnull(start);
    tb_qp_options options = options_of(TB_QP_SCHURPA, TB_DOUBLE, TB_BACKEND_CPU);
    solved a = solve_from(&g, start, &options);
    options.backend = TB_BACKEND_GPU;
    for (int k = 0; k < 2; k++) {
        options.maximum_changes = k == 0 ? 3 : 500;
        options.maximum_solves = k == 0 ? 500 : 12;
        solved b = solve_from(&g, start, &options);
        ck_assert_int_eq(b.result.status, TB_OK);
        ck_assert_int_gt(b.result.resets, 0);
        ck_assert_int_eq(b.result.factorizations, 1 + b.result.resets);
        ck_assert_int_le(b.result.largest_border, k == 0 ? 3 : 12);
        ck_assert_mem_eq(a.active, b.active, (size_t)g.program.constraints);
        free_solved(&b);
    }
    free_solved(&a);
    free(start);
    free_given(&g);
}
END_TEST

START_TEST(equalities_hold_and_no_constraints_are_one_system)
{
    (void)card_is_played();
    given_qp g = given_bounds(90, 12, 5, LOWER_BOUNDS);
    uint8_t *start = calloc((size_t)g.program.constraints, 1);
    ck_assert_ptr_nonnull(start);
    g.program.equalities = 7;
    for (int32_t i = 0; i < 7; i++) g.b[i] = 0.25 * (i - 3);
    compare(&g, start, TB_QP_SCHURPA, TB_DOUBLE);
    compare(&g, start, TB_QP_PDAS, TB_FLOAT);
    g.program.equalities = g.program.constraints = 0;
    compare(&g, start, TB_QP_SCHURPA, TB_DOUBLE);
    free(start);
    free_given(&g);
}
END_TEST

START_TEST(what_a_card_does_not_take_is_said)
{
    (void)card_is_played();
    given_qp g = given_bounds(20, 4, 6, LOWER_BOUNDS);
    uint8_t active[20] = {0};
    double x[20], lambda[20];
    tb_qp_result result;
    tb_error error;
    tb_qp_options options = options_of(TB_QP_SCHURPA, TB_DOUBLE, TB_BACKEND_GPU);
    options.device = 1000;
    TEST_STATUS(tb_qp_program_solve(&g.program, &options, active, x, lambda, &result, &error),
                TB_NOT_FOUND, &error);
    ck_assert_str_eq(error.field, "device");
    options.device = 0;
    options.system = TB_QP_DENSE;
    TEST_STATUS(tb_qp_program_solve(&g.program, &options, active, x, lambda, &result, &error),
                TB_UNSUPPORTED, &error);
    options.system = TB_QP_AUTO;
    g.row_start[1] = 2; /* row 0 has variables 0 and 1 */
    TEST_STATUS(tb_qp_program_solve(&g.program, &options, active, x, lambda, &result, &error),
                TB_UNSUPPORTED, &error);
    ck_assert_str_eq(error.field, "system");
    g.row_start[1] = 1;
    for (int32_t j = 0; j < 20; j++) g.hessian[j * 5] = -1;
    TEST_STATUS(tb_qp_program_solve(&g.program, &options, active, x, lambda, &result, &error),
                TB_FAILED_PRECONDITION, &error);
    free_given(&g);
}
END_TEST

TEST_MAIN(programs_from_a_cold_start_end_in_the_sets_of_the_processor,
          bounds_on_both_sides_that_are_not_zero_are_solved,
          a_good_start_needs_one_factorization_and_few_batches,
          small_borders_reset_and_change_nothing_else,
          equalities_hold_and_no_constraints_are_one_system, what_a_card_does_not_take_is_said)
