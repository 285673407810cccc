/* The block banded solver against LAPACK's band routines and against dense sums.
 * Compiled as float too (test_band_f32.c). */
#include "qp/band_kernel.h"
#include "qp/lapack.h"

#include "qp_util.h"

#define ROUNDING ((double)TB_REAL_EPSILON)

/* n, half-bandwidth, block (0: the solver's own) */
static const int32_t SIZES[][3] = {{1, 0, 0},     {5, 4, 0},     {9, 0, 8},     {33, 3, 8},
                                   {64, 8, 8},    {65, 16, 16},  {100, 99, 32}, {130, 31, 32},
                                   {200, 40, 0},  {257, 64, 64}, {300, 150, 0}, {90, 20, 24},
                                   {120, 20, 20}, {70, 10, 128}};
enum { NUMBER_OF_SIZES = sizeof SIZES / sizeof SIZES[0], COLUMNS = 11 };

static void make(made_qp *made, const int32_t *size)
{
    tb_random random = tb_random_stream((uint64_t)size[0], (uint64_t)size[1]);
    made_qp_open(made, size[0], size[1], 0, 0);
    made_qp_hessian(made, &random, 0.1);
}

static tb_real *numbers(made_qp *made, int32_t count, uint64_t seed)
{
    tb_random random = tb_random_stream(seed, 5);
    tb_real *x = TB_ARENA_ARRAY(&made->arena, tb_real, count);
    ck_assert(x != NULL);
    for (int32_t i = 0; i < count; i++) x[i] = TB_R(tb_random_normal(&random));
    return x;
}

static double element(const made_qp *made, int32_t i, int32_t j)
{
    const int32_t low = i > j ? i : j, high = i > j ? j : i, half = made->qp.half_bandwidth;
    return low - high > half ? 0 : (double)made->hessian[low - high + (int64_t)high * (half + 1)];
}

START_TEST(products_are_those_of_the_dense_matrix)
{
    for (int k = 0; k < NUMBER_OF_SIZES; k++) {
        made_qp made;
        make(&made, SIZES[k]);
        const int32_t n = SIZES[k][0];
        tb_real *x = numbers(&made, (n + 3) * COLUMNS, 1);
        for (int32_t i = 0; i < n; i += 3) x[i] = 0; /* zeros are skipped: rightly? */
        tb_real *y = numbers(&made, (n + 1) * COLUMNS, 2);
        double *exact = TB_ARENA_ARRAY(&made.arena, double, n);
        ck_assert(exact != NULL);
        tb_band_multiply(made.hessian, n, SIZES[k][1], COLUMNS, x, n + 3, y, n + 1);
        for (int32_t c = 0; c < COLUMNS; c++) {
            tb_band_multiply_double(made.hessian, n, SIZES[k][1], x + c * (n + 3), exact);
            for (int32_t i = 0; i < n; i++) {
                double sum = 0, size = 1;
                for (int32_t j = 0; j < n; j++) {
                    const double part = element(&made, i, j) * (double)x[c * (n + 3) + j];
                    sum += part;
                    size += fabs(part);
                }
                TEST_NEAR(y[c * (n + 1) + i], sum, 4 * ROUNDING * size);
                TEST_NEAR(exact[i], sum, 4 * DBL_EPSILON * size);
            }
        }
        made_qp_free(&made);
    }
}
END_TEST

START_TEST(solutions_agree_with_those_of_lapack)
{
    for (int k = 0; k < NUMBER_OF_SIZES; k++) {
        made_qp made;
        make(&made, SIZES[k]);
        const int32_t n = SIZES[k][0], half = SIZES[k][1];
        tb_band band;
        TEST_OK(tb_band_take(&band, n, half, SIZES[k][2], &made.arena), NULL);
        ck_assert_int_eq(band.block % TB_BAND_LANE, 0);
        ck_assert_int_eq(tb_band_factor(&band, made.hessian, n, half, 0), n);

        const int size = n, width = half, stride = half + 1, columns = COLUMNS;
        const size_t entries = (size_t)stride * (size_t)n;
        int info = 0;
        tb_real *factor = TB_ARENA_ARRAY(&made.arena, tb_real, entries);
        ck_assert(factor != NULL);
        memcpy(factor, made.hessian, entries * sizeof *factor);
        TB_LAPACK(pbtrf)("L", &size, &width, factor, &stride, &info, 1);
        ck_assert_int_eq(info, 0);

        /* the residual of each is rounding, and they agree as far as the condition lets them */
        tb_real *right = numbers(&made, n * COLUMNS, 3);
        tb_real *ours = numbers(&made, (n + 2) * COLUMNS, 4);
        tb_real *theirs = numbers(&made, n * COLUMNS, 5);
        memcpy(theirs, right, (size_t)(n * COLUMNS) * sizeof *right);
        for (int32_t c = 0; c < COLUMNS; c++)
            memcpy(ours + c * (n + 2), right + c * n, (size_t)n * sizeof *right);
        tb_band_solve(&band, COLUMNS, ours, n + 2);
        TB_LAPACK(pbtrs)("L", &size, &width, &columns, factor, &stride, theirs, &size, &info, 1);
        for (int32_t c = 0; c < COLUMNS; c++) {
            double largest = 0;
            for (int32_t i = 0; i < n; i++)
                largest = fmax(largest, fabs((double)theirs[c * n + i]));
            for (int32_t i = 0; i < n; i++) {
                double sum = -(double)right[c * n + i];
                for (int32_t j = 0; j < n; j++)
                    sum += element(&made, i, j) * (double)ours[c * (n + 2) + j];
                TEST_NEAR(sum, 0, 100 * ROUNDING * (1 + 10 * largest));
                TEST_NEAR(ours[c * (n + 2) + i], theirs[c * n + i], 2e3 * ROUNDING * (1 + largest));
            }
        }
        made_qp_free(&made);
    }
}
END_TEST

/* One of the programs and its factor; returns n. */
static int32_t make_factored(made_qp *made, tb_band *band)
{
    make(made, SIZES[8]);
    const int32_t n = SIZES[8][0];
    TEST_OK(tb_band_take(band, n, SIZES[8][1], 0, &made->arena), NULL);
    ck_assert_int_eq(tb_band_factor(band, made->hessian, n, SIZES[8][1], 0), n);
    return n;
}

START_TEST(a_column_alone_is_solved_as_in_company)
{
    made_qp made;
    tb_band band;
    const int32_t n = make_factored(&made, &band);
    tb_real *together = numbers(&made, n * COLUMNS, 6), *alone = numbers(&made, n * COLUMNS, 6);
    tb_band_solve(&band, COLUMNS, together, n);
    for (int32_t c = 0; c < COLUMNS; c++) tb_band_solve(&band, 1, alone + c * n, n);
    ck_assert_mem_eq(together, alone, (size_t)(n * COLUMNS) * sizeof *alone);
    made_qp_free(&made);
}
END_TEST

START_TEST(halves_of_a_solve_make_the_whole_one)
{
    made_qp made;
    tb_band band;
    const int32_t n = make_factored(&made, &band);
    tb_real *whole = numbers(&made, n * COLUMNS, 7), *halves = numbers(&made, n * COLUMNS, 7);
    for (int32_t c = 0; c < COLUMNS; c++) /* each begins somewhere, the last nowhere */
        for (int32_t i = 0; i < n * c / (COLUMNS - 1); i++)
            whole[c * n + i] = halves[c * n + i] = 0;
    tb_band_solve(&band, COLUMNS, whole, n);
    tb_band_forward(&band, COLUMNS, halves, n);
    for (int32_t c = 0; c < COLUMNS; c++)
        for (int32_t i = 0; i < n * c / (COLUMNS - 1); i++) ck_assert(halves[c * n + i] == 0);
    tb_band_backward(&band, COLUMNS, halves, n);
    ck_assert_mem_eq(whole, halves, (size_t)(n * COLUMNS) * sizeof *whole);
    made_qp_free(&made);
}
END_TEST

START_TEST(rows_of_a_list_are_factored_as_a_matrix_of_their_own)
{
    for (int k = 0; k < NUMBER_OF_SIZES; k++) {
        made_qp made, part;
        make(&made, SIZES[k]);
        const int32_t n = SIZES[k][0], half = SIZES[k][1];
        int32_t list[300], count = 0, reach = 0;
        for (int32_t j = 0; j < n; j++)
            if (j % 3 != 1) list[count++] = j;
        for (int32_t p = 0; p < count; p++)
            for (int32_t q = p; q < count && list[q] - list[p] <= half; q++)
                if (q - p > reach) reach = q - p;
        made_qp_open(&part, count, reach, 0, 0);
        for (int32_t p = 0; p < count; p++)
            for (int32_t q = p; q < count && q - p <= reach; q++)
                part.hessian[q - p + p * (reach + 1)] = TB_R(element(&made, list[q], list[p]));
        tb_band one, other;
        TEST_OK(tb_band_take(&one, n, half, SIZES[k][2], &made.arena), NULL);
        TEST_OK(tb_band_take(&other, n, half, SIZES[k][2], &part.arena), NULL);
        ck_assert_int_eq(tb_band_factor_list(&one, made.hessian, half, list, count, reach, 0),
                         count);
        ck_assert_int_eq(tb_band_factor(&other, part.hessian, count, reach, 0), count);
        tb_real *x = numbers(&made, count, 8), *y = numbers(&part, count, 8);
        tb_band_solve(&one, 1, x, count);
        tb_band_solve(&other, 1, y, count);
        ck_assert_mem_eq(x, y, (size_t)count * sizeof *x);
        made_qp_free(&made);
        made_qp_free(&part);
    }
}
END_TEST

/* on every processor the sums are the same */
START_TEST(products_of_blocks_are_the_same_bytes_with_any_vectors)
{
    enum { SIZE = 24, MOST = SIZE * SIZE };
    made_qp made;
    make(&made, SIZES[0]);
    const tb_real *a = numbers(&made, MOST, 9), *b = numbers(&made, SIZE * BAND_WIDTH, 10);
    for (int across = 0; across < 2; across++) {
        const int32_t row = across ? 1 : SIZE, step = across ? SIZE : 1;
        tb_real *plain = numbers(&made, SIZE * SIZE, 11), *wide = numbers(&made, SIZE * SIZE, 11);
        tb_real *column = TB_ARENA_ZEROED(&made.arena, tb_real, SIZE), right[SIZE];
        ck_assert(column != NULL);
        for (int32_t t = 0; t < SIZE; t++) right[t] = b[t * BAND_WIDTH + 3];
        for (int32_t i = 0; i < SIZE; i++) column[i] = plain[i * SIZE + 3];
        sum_products(plain, SIZE, a, row, step, b, SIZE, SIZE, -1, 0, 4, 1);
        band_product(wide, SIZE, a, row, step, b, SIZE, SIZE, -1, MOST);
        (across ? band_product_across : band_product_along)(column, a, SIZE, right, -1);
        ck_assert_mem_eq(plain, wide, SIZE * SIZE * sizeof *plain);
        for (int32_t i = 0; i < SIZE; i++) ck_assert(column[i] == plain[i * SIZE + 3]);
        ck_assert(plain[0] != numbers(&made, 1, 11)[0]);
    }
    made_qp_free(&made);
}
END_TEST

START_TEST(memory_for_a_large_matrix_serves_smaller_ones)
{
    made_qp large;
    make(&large, SIZES[10]);
    tb_band band;
    TEST_OK(tb_band_take(&band, SIZES[10][0], SIZES[10][1], 0, &large.arena), NULL);
    for (int k = 0; k < 7; k++) {
        made_qp made;
        make(&made, SIZES[k]);
        const int32_t n = SIZES[k][0];
        ck_assert_int_eq(tb_band_factor(&band, made.hessian, n, SIZES[k][1], 0), n);
        tb_real *x = numbers(&made, n, 7), *y = numbers(&made, n, 7);
        tb_band_solve(&band, 1, x, n);
        for (int32_t i = 0; i < n; i++) {
            double sum = 0, size = 1;
            for (int32_t j = 0; j < n; j++) {
                sum += element(&made, i, j) * (double)x[j];
                size += fabs(element(&made, i, j) * (double)x[j]);
            }
            TEST_NEAR(sum, y[i], 100 * ROUNDING * size);
        }
        made_qp_free(&made);
    }
    made_qp_free(&large);
}
END_TEST

START_TEST(a_matrix_that_is_not_positive_definite_names_its_pivot)
{
    for (int k = 3; k < NUMBER_OF_SIZES; k++) {
        made_qp made;
        make(&made, SIZES[k]);
        const int32_t n = SIZES[k][0], half = SIZES[k][1], bad = n - 1 - n / 3;
        tb_band band;
        TEST_OK(tb_band_take(&band, n, half, SIZES[k][2], &made.arena), NULL);
        made.hessian[(int64_t)bad * (half + 1)] = -1;
        ck_assert_int_eq(tb_band_factor(&band, made.hessian, n, half, 0), bad);
        made.hessian[(int64_t)bad * (half + 1)] = TB_R(NAN);
        ck_assert_int_eq(tb_band_factor(&band, made.hessian, n, half, 0), bad);
        made_qp_free(&made);
    }
}
END_TEST

START_TEST(a_pivot_that_is_small_against_its_diagonal_is_refused_when_asked)
{
    made_qp made;
    made_qp_open(&made, 20, 1, 0, 0);
    for (int32_t i = 0; i < 20; i++) made.hessian[2 * i] = 1;
    made.hessian[2 * 10 + 1] = TB_R(1 - 1e-3); /* rows 10 and 11 are nearly the same */
    tb_band band;
    TEST_OK(tb_band_take(&band, 20, 1, 0, &made.arena), NULL);
    ck_assert_int_eq(tb_band_factor(&band, made.hessian, 20, 1, TB_R(1e-4)), 20);
    ck_assert_int_eq(tb_band_factor(&band, made.hessian, 20, 1, TB_R(1e-2)), 11);
    made_qp_free(&made);
}
END_TEST

START_TEST(memory_that_is_refused_is_said)
{
    tb_arena arena;
    tb_arena_init(&arena, 100000);
    tb_band band;
    TEST_STATUS(tb_band_take(&band, 1000, 100, 0, &arena), TB_RESOURCE_EXHAUSTED, NULL);
    tb_arena_destroy(&arena);
}
END_TEST

TEST_MAIN(products_are_those_of_the_dense_matrix, solutions_agree_with_those_of_lapack,
          a_column_alone_is_solved_as_in_company, halves_of_a_solve_make_the_whole_one,
          rows_of_a_list_are_factored_as_a_matrix_of_their_own,
          products_of_blocks_are_the_same_bytes_with_any_vectors,
          memory_for_a_large_matrix_serves_smaller_ones,
          a_matrix_that_is_not_positive_definite_names_its_pivot,
          a_pivot_that_is_small_against_its_diagonal_is_refused_when_asked,
          memory_that_is_refused_is_said)
