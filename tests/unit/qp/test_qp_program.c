/* Quadratic programs through the public header: both precisions, every system, refusals. */
#include "tribo_qp.h"
#include "qp/facet_coordinates.h"
#include "test_util.h"

enum { N = 60, HALF = 9 };

typedef struct given {
    tb_qp_program program;
    double hessian[N * (HALF + 1)], f[N], value[N], b[N], x[N], lambda[N];
    int32_t row_start[N + 1], column[N];
    uint8_t active[N];
    tb_qp_result result;
    tb_error error;
} given;

/* random, x >= 0 */
static given make(uint64_t seed)
{
    given g;
    memset(&g, 0, sizeof g);
    TEST_OK(tb_qp_random(N, HALF, seed, g.hessian, g.f, &g.error), &g.error);
    for (int32_t i = 0; i < N; i++) {
        g.row_start[i + 1] = i + 1;
        g.column[i] = i;
        g.value[i] = -1;
    }
    g.program = (tb_qp_program){.n = N, .half_bandwidth = HALF, .constraints = N};
    return g;
}

static tb_status solve(given *g, const tb_qp_options *options)
{
    g->program.hessian = g->hessian;
    g->program.f = g->f;
    g->program.row_start = g->row_start;
    g->program.column = g->column;
    g->program.value = g->value;
    g->program.b = g->b;
    return tb_qp_program_solve(&g->program, options, g->active, g->x, g->lambda, &g->result,
                               &g->error);
}

START_TEST(every_system_and_both_precisions_find_the_same_solution)
{
    static const tb_qp_system SYSTEMS[] = {TB_QP_AUTO, TB_QP_DENSE, TB_QP_BOUNDS,
                                           TB_QP_BOUNDS_BAND};
    given first = make(3);
    tb_qp_options options = tb_qp_defaults();
    TEST_OK(solve(&first, &options), &first.error);
    TEST_STATUS(first.result.status, TB_OK, NULL);
    ck_assert(first.result.kkt.relative < 1e-12);
    ck_assert(first.result.active > 10 && first.result.active < N - 10);
    for (size_t k = 0; k < sizeof SYSTEMS / sizeof SYSTEMS[0]; k++)
        for (int precision = TB_DOUBLE; precision <= TB_FLOAT; precision++) {
            given g = make(3);
            options.system = SYSTEMS[k];
            options.precision = (tb_precision)precision;
            TEST_OK(solve(&g, &options), &g.error);
            TEST_STATUS(g.result.status, TB_OK, NULL);
            ck_assert_mem_eq(g.active, first.active, N);
            for (int32_t i = 0; i < N; i++)
                TEST_NEAR(g.x[i], first.x[i], precision == TB_FLOAT ? 1e-4 : 1e-11);
            ck_assert(precision == TB_DOUBLE || g.result.kkt.relative > 1e-12);
        }
}
END_TEST

START_TEST(a_step_from_the_solution_is_one_system)
{
    given g = make(4);
    const tb_qp_options options = tb_qp_defaults();
    TEST_OK(solve(&g, &options), &g.error);
    ck_assert_int_gt(g.result.iterations, 1);
    TEST_OK(solve(&g, &options), &g.error);
    ck_assert_int_eq(g.result.iterations, 1);
    ck_assert_int_eq(g.result.solves, 1);
    ck_assert_int_eq(g.result.corrected, 0);
}
END_TEST

START_TEST(a_solver_keeps_its_factorization_until_it_forgets)
{
    given g = make(7);
    tb_qp_options options = tb_qp_defaults();
    tb_qp_solver *solver = NULL;
    TEST_OK(solve(&g, &options), &g.error); /* and its arrays have their places */
    TEST_OK(tb_qp_solver_open(&g.program, &options, &solver, &g.error), &g.error);
    for (int round = 0; round < 5; round++) {
        if (round == 3) tb_qp_solver_forget(solver);
        TEST_OK(tb_qp_solver_solve(solver, g.f, g.b, g.active, g.x, g.lambda, &g.result, &g.error),
                &g.error);
        TEST_STATUS(g.result.status, TB_OK, NULL);
        ck_assert(g.result.kkt.relative < 1e-12);
        ck_assert_int_eq(g.result.factorizations, round == 0 || round == 3);
        for (int i = 0; i < N; i += 7) g.f[i] = -g.f[i];
    }
    g.f[3] = NAN;
    TEST_STATUS(tb_qp_solver_solve(solver, g.f, g.b, g.active, g.x, g.lambda, &g.result, &g.error),
                TB_INVALID_ARGUMENT, &g.error);
    ck_assert_str_eq(g.error.field, "f");
    tb_qp_solver_close(solver);
    tb_qp_solver_close(NULL);
}
END_TEST

START_TEST(random_programs_are_what_their_seed_says)
{
    given a = make(5), b = make(5), c = make(6);
    ck_assert_mem_eq(a.hessian, b.hessian, sizeof a.hessian);
    ck_assert_mem_eq(a.f, b.f, sizeof a.f);
    ck_assert(memcmp(a.f, c.f, sizeof a.f) != 0);
    ck_assert(memcmp(a.hessian, c.hessian, sizeof a.hessian) != 0);
    for (int32_t k = 1; k <= HALF; k++) /* the corner behind the last column */
        ck_assert(a.hessian[(N - 1) * (HALF + 1) + k] == 0);

    /* the mean of the diagonal is that of a sum of squares over their number */
    double mean = 0;
    for (int32_t j = HALF; j < N; j++) mean += a.hessian[j * (HALF + 1)] / (N - HALF);
    ck_assert(mean > 0.7 && mean < 1.4);
}
END_TEST

/* facets on pairs 0 and 2, bounds on the rest, the last of which has no partner */
START_TEST(facets_are_bounds_in_the_coordinates_of_their_rows)
{
    enum { VARIABLES = 7, ROWS = 11, BAND = 3 };
    static const int SIGNS[4][2] = {{1, 1}, {-1, -1}, {1, -1}, {-1, 1}};
    double h[VARIABLES * (BAND + 1)], f[VARIABLES], b[ROWS], value[2 * ROWS], x[2][VARIABLES];
    double lambda[2][ROWS];
    int32_t row_start[ROWS + 1] = {0}, column[2 * ROWS], rows = 0, at = 0;
    uint8_t active[2][ROWS] = {{0}};
    tb_qp_result result;
    tb_error error;
    tb_arena arena;
    tb_arena_init(&arena, 0);
    TEST_OK(tb_qp_random(VARIABLES, BAND, 11, h, f, &error), &error);
    for (int32_t j = 0; j < VARIABLES; j++) {
        const bool pair = j == 0 || j == 4;
        for (int k = 0; k < (pair ? 4 : 1); k++) {
            column[at] = j, value[at++] = pair ? 2 * SIGNS[k][0] : -1;
            if (pair) column[at] = j + 1, value[at++] = 2 * SIGNS[k][1];
            b[rows] = pair ? 0.3 : 0.1;
            row_start[++rows] = at;
        }
        j += pair;
    }
    ck_assert_int_eq(rows, ROWS);
    tb_qp_program facets = {VARIABLES, BAND, h, f, ROWS, 0, row_start, column, value, b};
    tb_qp_options options = tb_qp_defaults();
    TEST_OK(tb_qp_program_solve(&facets, &options, active[0], x[0], lambda[0], &result, &error),
            &error);
    ck_assert(result.active > 1);

    tb_qp_facet_coordinates *turned = NULL;
    TEST_OK(tb_qp_to_facet_coordinates(&facets, &arena, &turned), NULL);
    tb_qp_facet_force(turned, f);
    turned->turned.program.f = turned->f;
    turned->turned.program.b = b;
    options.system = TB_QP_BOUNDS;
    TEST_OK(tb_qp_program_solve(&turned->turned.program, &options, active[1], x[1], lambda[1],
                                &result, &error),
            &error);
    tb_qp_from_facet_coordinates(turned, x[1]);
    ck_assert_mem_eq(active[0], active[1], ROWS);
    for (int j = 0; j < VARIABLES; j++) TEST_NEAR(x[0][j], x[1][j], 1e-12);
    for (int i = 0; i < ROWS; i++) TEST_NEAR(lambda[0][i], lambda[1][i], 1e-12);
    tb_kkt kkt;
    TEST_OK(tb_qp_facet_judge(&facets, f, b, x[1], lambda[1], &arena, &kkt, &error), &error);
    ck_assert(kkt.relative < 1e-12);

    column[0] = 2; /* a row over two pairs, and a pair with both kinds of rows */
    TEST_STATUS(tb_qp_to_facet_coordinates(&facets, &arena, &turned), TB_UNSUPPORTED, NULL);
    column[0] = 0;
    column[8] = 1;
    TEST_STATUS(tb_qp_to_facet_coordinates(&facets, &arena, &turned), TB_UNSUPPORTED, NULL);
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused_by_name)
{
    const tb_qp_options good = tb_qp_defaults();
    for (int k = 0; k < 12; k++) {
        given g = make(1);
        tb_qp_options options = good;
        const char *field = NULL;
        switch (k) {
        case 0: g.program.n = 0, field = "n"; break;
        case 1: g.program.half_bandwidth = N, field = "half_bandwidth"; break;
        case 2: g.program.constraints = -1, field = "constraints"; break;
        case 3: g.program.equalities = N + 1, field = "equalities"; break;
        case 4: g.hessian[7] = NAN, field = "hessian"; break;
        case 5: g.f[N - 1] = INFINITY, field = "f"; break;
        case 6: g.b[0] = NAN, field = "b"; break;
        case 7: g.value[3] = INFINITY, field = "value"; break;
        case 8: g.column[5] = N, field = "column"; break;
        case 9: g.row_start[5] = 3, field = "row_start"; break;
        case 10: options.maximum_iterations = 0, field = "maximum_iterations"; break;
        case 11: options.tolerance = NAN, field = "tolerance"; break;
        }
        TEST_STATUS(solve(&g, &options), TB_INVALID_ARGUMENT, NULL);
        ck_assert_str_eq(g.error.field, field);
    }
    given g = make(1);
    g.row_start[1] = 2; /* row 0 has variables 0 and 1 */
    tb_qp_options options = good;
    options.system = TB_QP_BOUNDS;
    TEST_STATUS(solve(&g, &options), TB_UNSUPPORTED, NULL);
    g.column[1] = 0; /* and now one of them twice */
    TEST_STATUS(solve(&g, &options), TB_INVALID_ARGUMENT, NULL);
    ck_assert_str_eq(g.error.field, "column");
}
END_TEST

START_TEST(a_hessian_that_is_not_definite_is_a_failed_precondition)
{
    given g = make(1);
    tb_qp_options options = tb_qp_defaults();
    for (int32_t j = 0; j < N; j++) g.hessian[j * (HALF + 1)] = 0;
    options.system = TB_QP_BOUNDS;
    TEST_STATUS(solve(&g, &options), TB_FAILED_PRECONDITION, NULL);
}
END_TEST

TEST_MAIN(every_system_and_both_precisions_find_the_same_solution,
          a_step_from_the_solution_is_one_system, a_solver_keeps_its_factorization_until_it_forgets,
          facets_are_bounds_in_the_coordinates_of_their_rows,
          random_programs_are_what_their_seed_says, what_makes_no_sense_is_refused_by_name,
          a_hessian_that_is_not_definite_is_a_failed_precondition)
