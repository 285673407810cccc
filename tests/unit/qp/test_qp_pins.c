/* Pinned constraints of a quadratic program: held ones are equalities at any index, dropped ones
 * have no effect, and both change from solve to solve. */
#include "tribo_qp.h"
#include "qp/qp_internal.h"

#include "qp_util.h"

enum { N = 30, M = 24, EQUALITIES = 2, HELD = 4, OFF = 5 };
static const double TOLERANCE = 1e-9;

static made_qp plain, pinned;
static solved_qp expected, got;

static tb_qp_options options_of(tb_qp_method method)
{
    tb_qp_options options = tb_qp_defaults();
    options.method = method;
    return options;
}

/* The same rows twice: as equalities and cut short, and as pins. */
static void make_both(uint64_t seed, uint8_t pins[M])
{
    made_qp_rows(&plain, seed, N, M, EQUALITIES + HELD);
    made_qp_rows(&pinned, seed, N, M, EQUALITIES + HELD);
    plain.qp.constraints = M - OFF;
    pinned.qp.equalities = EQUALITIES;
    memset(pins, TB_PIN_NONE, M);
    for (int32_t i = 0; i < HELD; i++) pins[EQUALITIES + i] = TB_PIN_HELD;
    for (int32_t i = M - OFF; i < M; i++) pins[i] = TB_PIN_OFF;
    pinned.qp.pins = pins;
}

START_TEST(pinned_rows_are_equalities_or_none)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        const tb_qp_options options = options_of(seed % 2 ? TB_QP_PDAS : TB_QP_SCHURPA);
        uint8_t pins[M];
        make_both(seed, pins);
        solved_qp_make(&expected, &plain, K0_DENSE, &options);
        solved_qp_make(&got, &pinned, K0_DENSE, &options);
        ck_assert_int_eq(expected.result.status, TB_OK);
        ck_assert_int_eq(got.result.status, TB_OK);
        for (int32_t j = 0; j < N; j++) TEST_NEAR(got.x[j], expected.x[j], TOLERANCE);
        bool negative = false;
        for (int32_t i = 0; i < M - OFF; i++) {
            TEST_NEAR(got.lambda[i], expected.lambda[i], TOLERANCE * (1 + fabs(got.lambda[i])));
            negative = negative || (pins[i] == TB_PIN_HELD && got.lambda[i] < -TOLERANCE);
        }
        for (int32_t i = M - OFF; i < M; i++) ck_assert(got.lambda[i] == 0 && !got.active[i]);
        if (seed == 0) ck_assert(negative); /* else there was nothing to see */
        made_qp_free(&plain);
        made_qp_free(&pinned);
    }
}
END_TEST

START_TEST(the_dual_method_knows_them)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        const tb_qp_options options = options_of(TB_QP_SCHURPA);
        uint8_t pins[M], set[M];
        int32_t steps = 0;
        make_both(seed, pins);
        solved_qp_make(&got, &pinned, K0_DENSE, &options);
        ck_assert(tb_qp_dual_set(got.work, set, &steps));
        ck_assert_mem_eq(set, got.active, M);
        made_qp_free(&plain);
        made_qp_free(&pinned);
    }
}
END_TEST

/* Pairs without a limit are pinned to zero by one facet of each opposite two. */
START_TEST(facets_are_pinned_and_freed_with_one_factorization)
{
    enum { PAIRS = 20 };
    uint8_t pins[4 * PAIRS];
    tb_real limits[PAIRS];
    const tb_qp_options options = options_of(TB_QP_SCHURPA);
    made_qp_facets(&pinned, 7, PAIRS, 2 * PAIRS - 1);
    pinned.qp.pins = pins;
    for (int32_t c = 0; c < PAIRS; c++) limits[c] = pinned.b[4 * c];
    solved_qp_open(&got, &pinned, K0_FACETS, &options);
    for (int32_t round = 0; round < 6; round++) {
        for (int32_t i = 0; i < 4 * PAIRS; i++) {
            const bool zero = (i / 4 + round) % 3 == 0;
            pinned.b[i] = zero ? 0 : limits[i / 4];
            pins[i] = zero ? (i % 2 == 0 ? TB_PIN_HELD : TB_PIN_OFF) : TB_PIN_NONE;
        }
        solved_qp_run(&got);
        ck_assert_int_eq(got.result.status, TB_OK);
        ck_assert_int_eq(got.result.factorizations, round == 0);
        for (int32_t j = 0; j < 2 * PAIRS; j++)
            if (pins[2 * j] != TB_PIN_NONE) TEST_NEAR(got.x[j], 0, 1e-13);

        /* a force on a pinned pair may be borne by either of two opposite facets */
        for (int32_t i = 0; i < 4 * PAIRS; i += 2)
            if (pins[i] == TB_PIN_HELD && got.lambda[i] < 0) {
                got.lambda[i + 1] = -got.lambda[i];
                got.lambda[i] = 0;
            }
        check_kkt(&pinned, &got, TOLERANCE);
    }
    made_qp_free(&pinned);
}
END_TEST

static bool count_down(void *context)
{
    int *left = context;
    return (*left)-- <= 0;
}

START_TEST(a_solve_ends_where_it_is_told_to)
{
    const tb_qp_options options = options_of(TB_QP_SCHURPA);
    made_qp_facets(&plain, 3, 20, 39);
    solved_qp_make(&expected, &plain, K0_FACETS, &options);
    ck_assert_int_gt(expected.result.iterations, 2);
    for (int asked = 0; asked <= expected.result.iterations; asked++) {
        int left = asked;
        solved_qp_open(&got, &plain, K0_FACETS, &options);
        tb_qp_listen(got.work, count_down, &left);
        const tb_status status = tb_qp_solve(got.work, got.active, got.x, got.lambda, &got.result);
        ck_assert_int_eq(status, asked < expected.result.iterations ? TB_CANCELLED : TB_OK);
    }
    made_qp_free(&plain);
}
END_TEST

TEST_MAIN(pinned_rows_are_equalities_or_none, the_dual_method_knows_them,
          facets_are_pinned_and_freed_with_one_factorization, a_solve_ends_where_it_is_told_to)
