/* The product of a symmetric band with a matrix in its three variants, against sums over the matrix and
 * against each other. Where there is no card, one that the processor plays runs the same kernels. */
#include "tribo_qp.h"
#include "gpu_qp_util.h"

/* n, half-bandwidth, columns; small ones first */
static const int32_t SIZES[][3] = {{1, 0, 1},   {5, 4, 3},    {16, 3, 16},    {33, 32, 17},
                                   {70, 16, 5}, {65, 20, 33}, {400, 100, 40}, {1000, 333, 70}};
enum { SMALL_SIZES = 6, NUMBER_OF_SIZES = sizeof SIZES / sizeof SIZES[0] };

static const double ROUNDING[] = {[TB_DOUBLE] = DBL_EPSILON, [TB_FLOAT] = FLT_EPSILON};

static double *numbers(size_t count, uint64_t seed)
{
    tb_random random = tb_random_stream(seed, 3);
    double *x = malloc(count * sizeof *x);
    ck_assert_ptr_nonnull(x);
    for (size_t i = 0; i < count; i++) x[i] = tb_random_normal(&random);
    return x;
}

/* a number of B A by its definition, and the sum of its terms' sizes */
static double number_of_product(const double *band, int32_t n, int32_t half, const double *a,
                                int32_t i, double *size)
{
    double sum = 0;
    *size = 0;
    for (int32_t k = i > half ? i - half : 0; k < n && k <= i + half; k++) {
        const int32_t low = i > k ? i : k, high = i > k ? k : i;
        const double part = band[low - high + (int64_t)high * (half + 1)] * a[k];
        sum += part;
        *size += fabs(part);
    }
    return sum;
}

static double *multiply(tb_symgbmm_variant variant, tb_precision precision, const int32_t *size,
                        const double *band, const double *a)
{
    tb_error error;
    double seconds = -1, *c = numbers((size_t)size[0] * (size_t)size[2], 9);
    TEST_OK(
        tb_symgbmm(variant, precision, 0, size[0], size[1], size[2], band, a, c, &seconds, &error),
        &error);
    ck_assert(seconds >= 0);
    return c;
}

START_TEST(the_three_variants_agree)
{
    const int sizes = card_is_played() ? SMALL_SIZES : NUMBER_OF_SIZES;
    for (int k = 0; k < sizes; k++)
        for (int precision = TB_DOUBLE; precision <= TB_FLOAT; precision++) {
            const int32_t n = SIZES[k][0], half = SIZES[k][1], columns = SIZES[k][2];
            const size_t count = (size_t)n * (size_t)columns;
            double *band = numbers((size_t)n * ((size_t)half + 1), 1), *a = numbers(count, 2);
            double *c[3];
            for (int v = TB_SYMGBMM_HOST; v <= TB_SYMGBMM_SHARED; v++)
                c[v] = multiply((tb_symgbmm_variant)v, (tb_precision)precision, SIZES[k], band, a);
            ck_assert_mem_eq(c[TB_SYMGBMM_NAIVE], c[TB_SYMGBMM_SHARED], count * sizeof *a);
            for (size_t e = 0; e < count; e++) {
                double size;
                const double sum = number_of_product(band, n, half, a + e / (size_t)n * (size_t)n,
                                                     (int32_t)(e % (size_t)n), &size);
                for (int v = TB_SYMGBMM_HOST; v <= TB_SYMGBMM_SHARED; v++)
                    TEST_NEAR(c[v][e], sum, (2 * half + 4) * ROUNDING[precision] * size);
            }
            for (int v = 0; v < 3; v++) free(c[v]);
            free(band);
            free(a);
        }
}
END_TEST

START_TEST(cublas_agrees_or_is_named_as_missing)
{
    enum { N = 70, HALF = 16, COLUMNS = 5 };
    const int32_t size[3] = {N, HALF, COLUMNS};
    (void)card_is_played();
    tb_error error;
    double *band = numbers(N * (HALF + 1), 1), *a = numbers(N * COLUMNS, 2);
    double *c = numbers(N * COLUMNS, 9);
    for (int precision = TB_DOUBLE; precision <= TB_FLOAT; precision++) {
        const tb_status status = tb_symgbmm(TB_SYMGBMM_GEMM, (tb_precision)precision, 0, size[0],
                                            size[1], size[2], band, a, c, NULL, &error);
        if (status == TB_UNSUPPORTED) {
            ck_assert_msg(strstr(error.message, "cuBLAS") != NULL, "%s", error.message);
            continue;
        }
        TEST_OK(status, &error);
        for (int e = 0; e < N * COLUMNS; e++) {
            double terms;
            const double sum = number_of_product(band, N, HALF, a + e / N * N, e % N, &terms);
            TEST_NEAR(c[e], sum, (2 * HALF + 4) * ROUNDING[precision] * terms);
        }
    }
    free(band);
    free(a);
    free(c);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    (void)card_is_played();
    tb_error error;
    const double band[4] = {1, 0, 1, 0}, a[2] = {1, 2};
    double c[2];
    TEST_STATUS(tb_symgbmm(TB_SYMGBMM_HOST, TB_DOUBLE, 0, 2, 2, 1, band, a, c, NULL, &error),
                TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "half_bandwidth");
    TEST_STATUS(tb_symgbmm(TB_SYMGBMM_NAIVE, TB_DOUBLE, 0, 2, 1, 0, band, a, c, NULL, &error),
                TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "columns");
    TEST_STATUS(tb_symgbmm(TB_SYMGBMM_SHARED, TB_DOUBLE, 1000, 2, 1, 1, band, a, c, NULL, &error),
                TB_NOT_FOUND, &error);
    ck_assert_str_eq(error.field, "device");
    TEST_OK(tb_symgbmm(TB_SYMGBMM_SHARED, TB_DOUBLE, 0, 2, 1, 1, band, a, c, NULL, &error), &error);
    ck_assert(c[0] == 1 && c[1] == 2);
}
END_TEST

TEST_MAIN(the_three_variants_agree, cublas_agrees_or_is_named_as_missing,
          what_makes_no_sense_is_refused)
